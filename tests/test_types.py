"""The code of the README, the first page and the cookbook passes `mypy --strict`."""

from __future__ import annotations

import doctest
import subprocess
import sys
from pathlib import Path

import pytest

from test_docs import ROOT, blocks

PAGES = [ROOT / "README.md", ROOT / "docs" / "index.md", ROOT / "docs" / "cookbook.md"]
# What readers have; `my_model` and others are made on the pages.
TABLES = """
from __future__ import annotations
from typing import Any
import pandas as pd
X: pd.DataFrame
X_test: pd.DataFrame
X_new: pd.DataFrame
y: pd.Series[Any]
y_test: pd.Series[Any]
y_new: pd.Series[Any]
age: pd.Series[Any]
age_test: pd.Series[Any]
age_new: pd.Series[Any]
"""


def source(page: Path) -> str:
    """Return the code of a page as one module, without that for packages of others."""
    parts = [TABLES]
    for package, code in blocks(page):
        if ">>>" in code:
            examples = doctest.DocTestParser().get_examples(code)
            parts += [example.source for example in examples]
        elif package in ("", "onnx"):
            parts.append(code)
    return "\n".join(parts)


@pytest.mark.slow
def test_the_code_of_the_first_pages_passes_a_strict_type_checker(tmp_path: Path):
    pytest.importorskip("mypy")
    modules = [tmp_path / f"{page.stem.lower()}_page.py" for page in PAGES]
    for page, module in zip(PAGES, modules, strict=True):
        module.write_text(source(page))
    # the functions of examples have no annotations, as most people write them
    relaxed = ["no-untyped-def", "no-untyped-call"]
    options = [f"--disable-error-code={code}" for code in relaxed]
    command = [sys.executable, "-m", "mypy", "--strict", *options, *modules]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
