"""Run the recipes of the cookbook when the site is built, and show what they print.

A block shows its standard output and the value of its last line. Recipes share the table of the
quickstart, as in `tests/test_docs.py`. A block that needs a package which is not installed is
shown without output.
"""

from __future__ import annotations

import ast
import contextlib
import doctest
import io
import os
import re
import tempfile
import warnings
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

BLOCK = re.compile(r"(?:<!-- needs (\w+) -->\n)?```python\n(.*?)```\n", re.DOTALL)
QUICKSTART = Path(__file__).parents[1] / "start.md"
ROWS = {"": slice(0, 1500), "_test": slice(1500, 2250), "_new": slice(2250, 3000)}
"""Rows of the quickstart's table that are fitted on, held-out ones and new ones."""
LONGEST = 12
"""Lines of an output that are shown."""


def applicants() -> dict[str, Any]:
    """Return the names that recipes use: the table of the quickstart, split."""
    code = re.search(r"```python\n(.*?)```", QUICKSTART.read_text(), re.DOTALL)
    assert code is not None
    table: dict[str, Any] = {}
    for example in doctest.DocTestParser().get_examples(code.group(1)):
        exec(example.source, table)
    columns = {"X": table["X"], "y": table["hired"], "age": table["age"]}
    return {
        f"{name}{kind}": column[rows]
        for name, column in columns.items()
        for kind, rows in ROWS.items()
    }


def output(code: str, names: dict[str, Any]) -> str:
    """Run a block; return what it prints, and its last line if that is a value."""
    tree = ast.parse(code)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(compile(tree, "recipe", "exec"), names)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), "recipe", "eval"), names)
            if value is not None:
                printed.write(f"{value}\n")
    lines = printed.getvalue().rstrip().splitlines()
    if len(lines) > LONGEST:
        lines = [*lines[:LONGEST], "..."]
    return "\n".join(lines)


def add_outputs(app: Sphinx, docname: str, source: list[str]) -> None:
    """Show the output of each recipe below its code."""
    if docname != "cookbook":
        return
    names = applicants()

    def with_output(match: re.Match[str]) -> str:
        try:
            text = output(match.group(2), names)
        except ImportError:
            if match.group(1) is None:
                raise
            return match.group()
        if not text:
            return match.group()
        return f"{match.group()}\n```{{code-block}} text\n:class: output\n\n{text}\n```\n"

    before = os.getcwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            source[0] = BLOCK.sub(with_output, source[0])
        finally:
            os.chdir(before)


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("source-read", add_outputs)
    return {"parallel_read_safe": True}
