"""One word, one meaning: names of classes, constants and functions of the library."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import frhsic

SOURCES = Path(frhsic.__file__).parent
API = Path(__file__).parent / "data" / "api.txt"

ROOMS = ("auditing/", "parity/", "report/", "tables/")
"""Rooms in which the names of all functions are checked, also of those that one file uses."""

UNCHECKED = re.compile(r"persistence/")
"""Files that are about to be rewritten."""

ALIKE = frozenset({"matrix", "paired_matrices", "subset_mask", "vector"})
"""Functions that convert arrays to NumPy in `_arrays.py` and to torch in `_tensors.py`."""

PREPOSITION = re.compile(
    "about|above|after|against|along|among|at|before|beside|between|beyond|by|for|in|near|of|on|over"
    "|since|under|within|without"
)

PARTICIPLE = re.compile(
    "(?!(need|seed|speed|encoding|meaning|string|timing|training)$)[a-z]+(ed|ing)"
    "|chosen|dealt|drawn|found|given|held|kept|known|left|lost|made|seen|shown|spread|taken|told"
    "|written"
)

ADVERB = re.compile("again|anew|apart|enough|lazily|nearly|together")


def words(module: ast.Module) -> Iterator[str]:
    for statement in module.body:
        if isinstance(statement, ast.ClassDef):
            yield statement.name
        elif isinstance(statement, ast.Assign | ast.AnnAssign):
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            for target in targets:
                yield from (node.id for node in ast.walk(target) if isinstance(node, ast.Name))


def functions(module: ast.Module) -> Iterator[str]:
    yield from (node.name for node in module.body if isinstance(node, ast.FunctionDef))


def modules() -> dict[str, ast.Module]:
    paths = sorted(SOURCES.rglob("*.py"))
    return {str(path.relative_to(SOURCES)): ast.parse(path.read_text()) for path in paths}


def files_by_name(names_of: dict[str, set[str]]) -> dict[str, list[str]]:
    files: dict[str, list[str]] = {}
    for file, names in names_of.items():
        for name in names:
            files.setdefault(name, []).append(file)
    return files


def used(module: ast.Module) -> set[str]:
    """Names that a file imports, or reads of another module or object."""
    nodes = list(ast.walk(module))
    imported = {
        name.name for node in nodes if isinstance(node, ast.ImportFrom) for name in node.names
    }
    return imported | {node.attr for node in nodes if isinstance(node, ast.Attribute)}


def is_refused(name: str) -> bool:
    """Whether a function is named neither by what it returns nor by a verb: by a participle or an
    adverb alone, or with a preposition at an end.
    """
    parts = name.strip("_").split("_")
    alone = len(parts) == 1 and (PARTICIPLE.fullmatch(parts[0]) or ADVERB.fullmatch(parts[0]))
    return bool(alone or PREPOSITION.fullmatch(parts[0]) or PREPOSITION.fullmatch(parts[-1]))


def test_a_class_or_constant_is_defined_in_one_file():
    names = {
        file: {word for word in words(module) if not word.startswith("_")}
        for file, module in modules().items()
    }
    twice = {name: files for name, files in files_by_name(names).items() if len(files) > 1}
    assert not twice


def test_what_is_refused_as_a_name():
    refused = ["told", "measured", "rows_of", "enough", "spread", "again", "over_tiles", "kept_by"]
    kept = ["n_prototypes", "solve_path", "initial_prototypes", "centered_gram", "meaning", "seed"]
    assert all(map(is_refused, refused))
    assert not any(map(is_refused, kept))


def test_a_function_of_several_files_is_named_by_its_result_or_a_verb():
    everything = modules()
    uses = files_by_name({file: used(module) for file, module in everything.items()})
    public = set(re.findall(r"\w+", API.read_text()))
    refused = [
        f"{file}: {name}"
        for file, module in everything.items()
        if not UNCHECKED.match(file)
        for name in functions(module)
        if is_refused(name) and name not in public
        if file.startswith(ROOMS) or (not name.startswith("_") and set(uses.get(name, ())) - {file})
    ]
    assert not refused


def test_a_function_is_defined_in_one_file():
    everything = {
        file: {name for name in functions(module) if not name.startswith("__")}
        for file, module in modules().items()
        if not UNCHECKED.match(file)
    }
    public = set(re.findall(r"\w+", API.read_text()))
    twice = {
        name: files
        for name, files in files_by_name(everything).items()
        if len(files) > 1 and name not in public | ALIKE
    }
    assert not twice
