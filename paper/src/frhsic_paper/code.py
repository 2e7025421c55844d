"""The code that produced a record, as text; the record's stamp is a hash of it.

It consists of the source of a function, of all functions, classes and constants of the two packages
that it uses, of what these use, and so on. Comments, docstrings, layout, error messages and the
methods by which objects are shown are left out, because only people read them; changing them
doesn't make records stale.
"""

from __future__ import annotations

import ast
import hashlib
import importlib
import inspect
import io
import json
import re
import sys
import textwrap
import tokenize
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import cache, partial
from itertools import chain
from types import FunctionType, MethodType, ModuleType
from typing import Any

PACKAGES = ("frhsic", "frhsic_paper")

APART = frozenset(
    f"frhsic_paper.{name}"
    for name in ("records", "options", "code", "steps", "claim", "plot", "table", "printed")
)
"""Modules that store or show numbers without changing them."""

GPU = "._gpu."
"""GPU kernels, which can't be imported on a machine without a GPU. They are not followed, so that
the stamp is the same everywhere; tests compare their results with those of the code that is
followed.
"""

SHOWN = ("__repr__", "__str__", "_repr_html_")
"""Methods by which objects are shown."""


class Choices(dict[str, Any]):
    """Functions by name. Each record uses only one of them, so they are not followed; the record's
    stamp includes the code of the function that it uses.
    """


Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda

Named = tuple[str, Any]
"""A name, including its module, and its value."""

Place = tuple[int, int]
"""The line and column of source code, counted from 0; columns are bytes."""


def code(*roots: object) -> list[tuple[str, str]]:
    """Return the names and source of all code reachable from the given functions, classes and
    values, sorted by name.

    Examples
    --------
    >>> from frhsic.kernels import Gaussian
    >>> names = [name for name, _ in code(Gaussian)]
    >>> "frhsic.kernels.Gaussian" in names, "frhsic.kernels.squared_distances" in names
    (True, True)
    """
    found: dict[str, str] = {}
    seen: dict[int, object] = {}
    waiting = list(roots)
    while waiting:
        one = waiting.pop()
        if callable(one):
            one = inspect.unwrap(one)
        if id(one) in seen:
            continue
        seen[id(one)] = one
        if not isinstance(one, type | FunctionType):
            waiting += _parts(one)
            continue
        waiting += [cell.cell_contents for cell in getattr(one, "__closure__", None) or ()]
        if _counts(one.__module__):
            text, names = _parsed(one)
            short = f" {text}" if "<lambda>" in one.__qualname__ else ""  # lambdas share a name
            found[f"{one.__module__}.{one.__qualname__}{short}"] = text
            for name, value in names:
                try:
                    found[name] = json.dumps(value)
                except (TypeError, ValueError):
                    waiting.append(value)
    return sorted(found.items())


@cache
def code_hash(*roots: Hashable) -> str:
    """Return a hash of the code reachable from the given functions, classes and values."""
    return hashlib.sha256(json.dumps(code(*roots)).encode()).hexdigest()


def _counts(module: str) -> bool:
    return module.split(".")[0] in PACKAGES and module not in APART


def _parts(value: Any) -> list[Any]:
    """Return the parts of a value that can contain code."""
    if isinstance(value, partial):
        return [value.func, *value.args, *value.keywords.values()]
    if isinstance(value, MethodType):
        return [value.__func__, value.__self__]
    if isinstance(value, Mapping):
        return [] if isinstance(value, Choices) else list(value.values())
    if isinstance(value, list | tuple | set | frozenset):
        return list(value)
    if is_dataclass(value):
        return [type(value), *(getattr(value, f.name) for f in fields(value))]
    return [type(value)] if _counts(type(value).__module__) else []


@cache
def _parsed(one: Any) -> tuple[str, tuple[Named, ...]]:
    """Return the source of a function or class without what only people read, and everything in the
    two packages to which the rest refers.
    """
    try:
        source = textwrap.dedent(inspect.getsource(one))
    except (OSError, TypeError):  # created at run time, such as the methods of a dataclass
        return "", ()
    scope = vars(sys.modules[one.__module__])
    try:
        source = _for_machines(source)
    except SyntaxError:  # a part of a statement, such as a lambda in a dictionary
        names = _values(sorted(set(re.findall(r"[A-Za-z_]\w*", source))), one.__module__, scope)
    else:
        tree = ast.parse(source)
        free = _values(sorted(_free(tree)), one.__module__, scope)
        names = chain(free, _elsewhere(tree, scope))
    return " ".join(source.split()), tuple(names)


def _for_machines(source: str) -> str:
    """Return source code without what only people read, which is replaced by dots where a statement
    is needed.
    """
    tree = ast.parse(source)
    lines = source.splitlines()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            lines[row - 1] = lines[row - 1][:column]
    encoded = [line.encode() for line in lines]
    for (first, left), (last, right), instead in sorted(_for_people(tree), reverse=True):
        rest = encoded[last][right:]
        encoded[first : last + 1] = [
            encoded[first][:left] + instead + rest,
            *[b""] * (last - first),
        ]
    return b"\n".join(encoded).decode()


def _for_people(tree: ast.AST) -> Iterator[tuple[Place, Place, bytes]]:
    """Yield where source code has text that only people read, and what to put there instead."""
    for node in ast.iter_child_nodes(tree):
        match node:
            case ast.Expr(value=ast.Constant(value=str())):
                yield _start(node), _end(node), b"..."
            case ast.FunctionDef(name=name) if name in SHOWN:
                yield _start(node), _end(node), b"..."
            case ast.Raise(exc=ast.Call(func=error) as call):
                yield _end(error), _end(call), b""
            case _:
                yield from _for_people(node)


def _start(node: ast.stmt) -> Place:
    return node.lineno - 1, node.col_offset


def _end(node: ast.stmt | ast.expr) -> Place:
    return (node.end_lineno or node.lineno) - 1, node.end_col_offset or 0


def _free(tree: ast.AST) -> set[str]:
    """Return the names that source code reads but doesn't assign in the same function."""
    outside: list[ast.AST] = []
    names: set[str] = set()
    waiting = list(ast.iter_child_nodes(tree))
    while waiting:
        node = waiting.pop()
        if isinstance(node, Function):
            inside = list(ast.walk(node))
            own = {n.arg for n in inside if isinstance(n, ast.arg)}
            own |= {n.id for n in inside if isinstance(n, ast.Name) and _assigned(n)}
            names |= {n.id for n in inside if isinstance(n, ast.Name)} - own
        else:
            outside.append(node)
            waiting += ast.iter_child_nodes(node)
    return names | {n.id for n in outside if isinstance(n, ast.Name) and not _assigned(n)}


def _assigned(name: ast.Name) -> bool:
    return isinstance(name.ctx, ast.Store)


def _values(names: list[str], module: str, scope: Mapping[str, Any]) -> Iterator[Named]:
    """Yield the values of names in a module; other modules are followed by their attributes."""
    for name in names:
        value = scope.get(name)
        if value is not None and not isinstance(value, ModuleType) and not name.startswith("__"):
            yield f"{module}.{name}", value


def _elsewhere(tree: ast.AST, scope: Mapping[str, Any]) -> Iterator[Named]:
    """Yield what source code reads from other modules of the two packages: attributes such as
    `theory.bound`, or names imported within a function.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            module = scope.get(node.value.id)
            if isinstance(module, ModuleType) and _counts(module.__name__):
                yield from _values([node.attr], module.__name__, vars(module))
        elif isinstance(node, ast.ImportFrom):
            path = node.module or ""
            if _counts(path) and GPU not in path:
                imported = vars(importlib.import_module(path))
                yield from _values([alias.name for alias in node.names], path, imported)
