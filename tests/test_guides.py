"""What the guides for maintainers name exists: files, modules, functions, classes, constants,
options and targets of make. A word of code in a guide is one of these, or one of `ELSEWHERE`.
"""

from __future__ import annotations

import importlib
import re
import tomllib
from functools import cache
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from frhsic.cli import app

ROOT = Path(__file__).parents[1]
LIBRARY = ROOT / "src" / "frhsic"
CONTRACT = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
CONTRIBUTING = ROOT / "CONTRIBUTING.md"
CONFTEST = ROOT / "conftest.py"
PICTURES = [ROOT / "docs" / "figures" / f"{name}.svg" for name in ("fit", "interval", "hsic")]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
PAGES += sorted((ROOT / "docs" / "evidence").glob("*.md"))
GUIDES = [CONTRIBUTING, ROOT / "docs" / "intervals.md", *PICTURES]

ELSEWHERE = {"gradcheck", "lint-imports", "ruff", "mypy"}
"""Words of code that belong to other libraries."""

NAMED = re.compile(r"`([^`\n]+)`(?=(?:[ \n]+(?:in|of)[ \n]+`([\w./]+\.(?:py|toml))`)?)")
"""A word of code, and the file that it is said to be in, if one follows."""


def words_in(path: Path) -> set[str]:
    return set(re.findall(r"[a-zA-Z_-][\w-]*", path.read_text()))


@cache  # not needed to hand tests out
def sources() -> set[str]:
    """Return the words of the library, its tests without this file, and the benchmarks."""
    files = [*LIBRARY.rglob("*.py"), *LIBRARY.rglob("*.toml"), *(ROOT / "benchmarks").glob("*.py")]
    files += [path for path in (ROOT / "tests").rglob("*.py") if path != Path(__file__)]
    return set().union(*map(words_in, files))


def options_of(command: Any) -> set[str]:
    """Return the options of a command and of those below it."""
    own = {option for one in command.params for option in (*one.opts, *one.secondary_opts)}
    below = getattr(command, "commands", {})
    return own.union({"--help"}, *map(options_of, below.values()))


OPTIONS = options_of(get_command(app))
PROGRAM = re.compile(r"benchmarks/\w+\.py")
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M))


def file_named(name: str) -> Path | None:
    """Return a file or folder by its path in the repository or in the library, or by its end."""
    places = [ROOT / name, LIBRARY / name, *ROOT.glob(f"src/**/{name}"), *ROOT.glob(f"*/{name}")]
    return next((path for path in places if path.exists()), None)


def exists(word: str, file: str = "") -> bool:
    """Return whether there is what a word of code names: a file, a target of make, or names that
    all stand in the sources, or in a file, if one is given.
    """
    if word in ELSEWHERE:
        return True
    first, *rest = word.split()
    if first == "make":
        return set(rest) <= TARGETS
    paths = [part for part in word.split() if re.search(r"/|\.(py|toml|md|txt)$", part)]
    if paths and (first == "python" or len(rest) == 0):
        files = [file_named(part) for part in paths]
        options = {part for part in rest if part.startswith("--")}
        named = [CONFTEST, *(path for path in files if path and path.is_file())]
        return None not in files and options <= set().union(*map(words_in, named))
    module, _, name = word.rpartition(".")
    if module.startswith("frhsic"):
        return hasattr(importlib.import_module(module), name)
    path = file_named(file) if file else None
    known = words_in(path) if path else set() if file else sources()
    return known.issuperset(re.findall(r"[a-zA-Z_][\w-]*", word))


def words_of(guide: Path) -> list[tuple[str, str]]:
    """Return the words of code of a page, or of a picture, with the files that they are said to be
    in.
    """
    text = guide.read_text()
    if guide.suffix == ".svg":
        return [(unescape(word), "") for word in re.findall(r'class="name"[^>]*>([^<]+)<', text)]
    commands = [(line.strip(), "") for line in re.findall(r"^    (python .*)$", text, re.M)]
    return NAMED.findall(text) + commands


@pytest.mark.parametrize("guide", GUIDES, ids=lambda path: path.name)
def test_what_a_guide_names_exists(guide: Path):
    words = words_of(guide)
    assert len(words) >= 8
    gone = [word for word, file in words if not exists(word, file)]
    assert not gone


@pytest.mark.parametrize(
    "false",
    [
        "`CORRECTION_LIST`",
        "`CORRECTIONS` in `parity/column.py`",
        "`frhsic.parity.gap_width`",
        "`_value(no_such_batch)`",
        "`parity/intervals.py`",
        '`"no-such-penalty"`',
        "`[no_such_table]`",
        "`make everything`",
        "`python -m pytest tests/test_gone.py`",
        "`python -m pytest tests/test_api.py --no-such-option`",
    ],
)
def test_a_name_that_is_gone_is_found(false: str):
    (word, file), *_ = NAMED.findall(false)
    assert not exists(word, file)


def unknown_options(text: str) -> list[str]:
    """Return options of a page that neither frhsic has nor the program that the line names; an
    option without a program may be of any that the page names.
    """
    unknown = []
    for line in text.splitlines():
        own = PROGRAM.findall(line)
        programs = "".join((ROOT / name).read_text() for name in own or PROGRAM.findall(text))
        known = set(re.findall(r'"(--[a-z-]+)"', programs)) | (set() if own else OPTIONS)
        unknown += [
            one for one in re.findall(r"(?<![\w-])--[a-z][a-z-]*", line) if one not in known
        ]
    return unknown


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_options_that_a_page_names_exist(page: Path):
    assert unknown_options(page.read_text()) == []


def test_an_option_that_is_gone_is_found():
    page = (
        "frhsic train --limit 0 --lmit 0\nbenchmarks/laws.py --of hsic --limit\nthe same by `--of`"
    )
    assert unknown_options(page) == ["--lmit", "--limit"]


def test_the_layers_of_the_guide_are_those_of_the_contract():
    (contract,) = [one for one in CONTRACT if one.get("containers") == ["frhsic"]]
    rows = re.findall(
        r"^\| (`.*?) \|",
        CONTRIBUTING.read_text().partition("## Layout")[2].partition("## Words")[0],
        re.M,
    )
    assert [set(re.findall(r"\w+", row)) for row in rows] == [
        set(re.findall(r"\w+", layer)) for layer in contract["layers"]
    ]
