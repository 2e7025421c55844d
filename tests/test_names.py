"""One word, one meaning: a class or a constant of the library is defined in one file."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import frhsic

SOURCES = Path(frhsic.__file__).parent


def words(module: ast.Module) -> Iterator[str]:
    for statement in module.body:
        if isinstance(statement, ast.ClassDef):
            yield statement.name
        elif isinstance(statement, ast.Assign | ast.AnnAssign):
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            for target in targets:
                yield from (node.id for node in ast.walk(target) if isinstance(node, ast.Name))


def files_of_words() -> dict[str, list[str]]:
    files: dict[str, list[str]] = {}
    for path in sorted(SOURCES.rglob("*.py")):
        for word in set(words(ast.parse(path.read_text()))):
            if not word.startswith("_"):
                files.setdefault(word, []).append(str(path.relative_to(SOURCES)))
    return files


def test_a_class_or_constant_is_defined_in_one_file():
    files = files_of_words()
    twice = {word: where for word, where in files.items() if len(where) > 1}
    assert not twice
