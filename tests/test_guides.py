"""What the guides for maintainers name exists: files, modules, functions, classes, constants,
options and targets of make. A word of code in a guide is one of these, or one of `ELSEWHERE`.
"""

from __future__ import annotations

import ast
import importlib
import re
import tomllib
from collections import defaultdict
from collections.abc import Iterator
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
PICTURES = [ROOT / "docs" / "figures" / f"{name}.svg" for name in ("fit", "interval", "hsic")]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
PAGES += sorted((ROOT / "docs" / "evidence").glob("*.md"))
GUIDES = [CONTRIBUTING, ROOT / "docs" / "intervals.md", *PICTURES]

ELSEWHERE = {"gradcheck", "lint-imports", "ruff", "mypy"}
"""Words of code that belong to other libraries."""

NAMED = re.compile(r"`([^`\n]+)`(?=(?:[ \n]+(?:in|of)[ \n]+`([\w./]+\.(?:py|toml))`)?)")
"""A word of code, and the file that it is said to be in, if one follows."""

SOURCES = [
    *LIBRARY.rglob("*.py"),
    *(ROOT / "tests").rglob("*.py"),
    *(ROOT / "benchmarks").glob("*.py"),
    ROOT / "conftest.py",
]


@cache  # seconds, and not needed to hand tests out
def definitions() -> tuple[dict[str, set[str]], dict[str, list[set[str]]], set[str]]:
    """Return the names that are defined, each with the modules and classes that define it; the
    parameters of each function; and all texts.
    """
    owners: dict[str, set[str]] = defaultdict(set)
    parameters: dict[str, list[set[str]]] = defaultdict(list)
    texts: set[str] = set()

    def visit(body: list[ast.stmt], owner: str) -> None:
        for node in body:
            if isinstance(node, ast.ClassDef):
                owners[node.name].add(owner)
                visit(node.body, node.name)
            elif isinstance(node, ast.FunctionDef):
                owners[node.name].add(owner)
                names = {one.arg for one in (*node.args.args, *node.args.kwonlyargs)}
                parameters[node.name].append(names)
                for name in names:
                    owners[name].add(node.name)
                for part in ast.walk(node):
                    if isinstance(part, ast.Attribute) and isinstance(part.ctx, ast.Store):
                        owners[part.attr].add(owner)
            elif isinstance(node, ast.Assign | ast.AnnAssign):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                for part in (part for target in targets for part in ast.walk(target)):
                    if isinstance(part, ast.Name):
                        owners[part.id].add(owner)

    for path in SOURCES:
        tree = ast.parse(path.read_text())
        module = path.parent.name if path.stem == "__init__" else path.stem
        owners[module].add(path.parent.name)
        visit(tree.body, module)
        texts |= {part.value for part in ast.walk(tree) if isinstance(part, ast.Constant)}
    for path in LIBRARY.rglob("*.toml"):
        for name in keys(tomllib.loads(path.read_text())):
            owners[name].add(path.stem)
    return owners, parameters, texts


def keys(table: dict[str, object]) -> Iterator[str]:
    for name, value in table.items():
        yield name
        if isinstance(value, dict):
            yield from keys(value)


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
    for folder in (ROOT, LIBRARY):
        if (folder / name).exists():
            return folder / name
    return next((path for path in SOURCES if str(path).endswith(f"/{name}")), None)


def exists(word: str, file: str = "") -> bool:
    """Return whether there is what a word of code names, and whether it is in a file, if one is
    given.
    """
    if file:
        path = file_named(file)
        own = re.split(r"[( ]", word.strip("[]"))[0].rpartition(".")[2]
        if path is None or not re.search(rf"\b{own}\b", path.read_text()):
            return False
    if word in ELSEWHERE:
        return True
    first, *rest = word.split()
    if first == "make":
        return set(rest) <= TARGETS
    if first == "python":
        files = [part for part in rest if "/" in part]
        options = [part for part in rest if part.startswith("--")]
        read = "".join(
            (ROOT / name).read_text() for name in ("conftest.py", *files) if exists(name)
        )
        return all(map(exists, files)) and all(f'"{option}"' in read for option in options)
    if re.search(r"/|\.(py|toml|md|txt)$", word):
        return file_named(word) is not None
    owners, parameters, texts = definitions()
    if word.startswith('"'):
        return word.strip('"') in texts
    if word.startswith("["):
        return word.strip("[]") in owners
    name, _, arguments = word.partition(" =")[0].partition("(")
    owner, _, own = name.rpartition(".")
    if owner.startswith("frhsic"):
        return hasattr(importlib.import_module(owner), own)
    wanted = {part.partition("=")[0] for part in arguments.strip(")").split(", ") if part}
    known = not wanted or any(wanted <= some for some in parameters[own])
    return known and own in owners and (not owner or owner in owners[own])


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
        "`ParityEstimator.fold`",
        "`frhsic.parity.gap_width`",
        "`_value(rows_of_a_batch)`",
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
    rows = re.findall(r"^\| (`.*?) \|", CONTRIBUTING.read_text().partition("## Words")[0], re.M)
    assert [set(re.findall(r"\w+", row)) for row in rows] == [
        set(re.findall(r"\w+", layer)) for layer in contract["layers"]
    ]
