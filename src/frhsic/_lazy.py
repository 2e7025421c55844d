"""Import the names of a package on first use, because their dependencies are optional or slow to
import.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Any

TORCH = "torch, which is not installed; run `pip install torch`"


def lazy_attributes(
    package: str, homes: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` for a package; `homes` maps each name to its module."""

    def get(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = attribute(f"{package}.{homes[name]}", name)
        setattr(sys.modules[package], name, value)
        return value

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *homes})

    return get, names


def has_torch() -> bool:
    """Return whether torch is installed, without importing it."""
    return find_spec("torch") is not None


def attribute(module: str, name: str) -> Any:
    """Return an attribute of a module; if torch is missing, raise an error that explains how to
    install torch.
    """
    try:
        return getattr(import_module(module), name)
    except ModuleNotFoundError as error:
        raise missing_module(name, error) from error


def missing_module(name: str, error: ModuleNotFoundError) -> ModuleNotFoundError:
    """Return an error that explains how to install torch, or the original error if another module
    is missing.
    """
    if error.name != "torch":
        return error
    return ModuleNotFoundError(f"{name} needs {TORCH}.", name="torch")
