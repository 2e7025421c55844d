"""The table of theorems names functions and files of tests that exist."""

import re
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).parents[2]
KINDS = {"Theorem": 5, "Proposition": 5, "Corollary": 6, "Lemma": 2}
"""Statements of the paper by kind."""
PARTS = ("In the paper", "In words", "Assumes", "Function", "Test")


def statements():
    """Return the parts of each statement, by the columns of the table."""
    page = (ROOT / "docs" / "theory.md").read_text(encoding="utf-8")
    rows = re.findall(rf"^\| ((?:{'|'.join(KINDS)}), .*) \|$", page, re.MULTILINE)
    return [dict(zip(PARTS, re.split(r" (?<!\\)\| ", row), strict=True)) for row in rows]


def test_every_statement_of_the_paper_has_an_assumption_a_function_and_a_test():
    assert all(all(statement.values()) for statement in statements())
    names = [statement["In the paper"] for statement in statements()]
    assert {kind: sum(name.startswith(f"{kind}, ") for name in names) for kind in KINDS} == KINDS


def test_every_function_and_every_file_of_tests_exists():
    for statement in statements():
        module, _, name = statement["Function"].strip("`").rpartition(".")
        assert callable(getattr(import_module(module or "frhsic_paper.theory"), name)), statement
        path = statement["Test"].strip("`")
        assert (ROOT / ("" if "/" in path else "paper/tests") / path).exists(), statement
