"""The table of theorems names functions that exist."""

import re
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).parents[2]
KINDS = {"Theorem": 5, "Proposition": 5, "Corollary": 6, "Lemma": 2}
"""Statements of the paper by kind."""
PARTS = ("In the paper", "In words", "Assumes", "Function")


def statements():
    """Return the parts of each statement, by the columns of the table."""
    page = (ROOT / "docs" / "theory.md").read_text(encoding="utf-8")
    rows = re.findall(rf"^\| ((?:{'|'.join(KINDS)}), .*) \|$", page, re.MULTILINE)
    return [dict(zip(PARTS, re.split(r" (?<!\\)\| ", row), strict=True)) for row in rows]


def test_every_statement_of_the_paper_has_an_assumption_and_a_function():
    assert all(all(statement.values()) for statement in statements())
    names = [statement["In the paper"] for statement in statements()]
    assert {kind: sum(name.startswith(f"{kind}, ") for name in names) for kind in KINDS} == KINDS


def test_every_function_exists():
    for statement in statements():
        module, _, name = statement["Function"].strip("`").rpartition(".")
        assert callable(getattr(import_module(module or "frhsic_paper.theory"), name)), statement
