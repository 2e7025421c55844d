"""The table of theorems names functions and tests that exist."""

import ast
import re
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).parents[2]
KINDS = {"Theorem": 5, "Proposition": 5, "Corollary": 6, "Lemma": 2}
"""Statements of the paper by kind."""


def rows():
    lines = (ROOT / "docs" / "theorems.md").read_text(encoding="utf-8").splitlines()
    table = [line.strip("|").split("|") for line in lines if line.startswith("| ")][1:]
    return [[cell.strip() for cell in row] for row in table]


def test_every_statement_of_the_paper_has_a_row_with_an_assumption():
    assert all(len(row) == 4 and all(row) for row in rows())
    assert {kind: sum(row[0].startswith(kind) for row in rows()) for kind in KINDS} == KINDS


def test_every_function_and_every_test_of_the_table_exists():
    for statement, _, function, test in rows():
        module, _, name = function.strip("`").rpartition(".")
        assert callable(getattr(import_module(module), name)), statement
        path, _, called = test.strip("`").partition("::")
        tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
        assert called in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}, (statement, test)
        assert re.fullmatch(r"test_\w+", called)
