"""Recipes: penalties, kernels and tables as plain JSON, from which they are built again."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
from torch import Tensor

from frhsic import kernels, penalties
from frhsic.estimators.tables import Category, Number, TableEncoding
from frhsic.kernels import Kernel
from frhsic.penalties import Penalty

__all__ = ["built", "recipe"]

KERNELS = (
    "Gaussian",
    "Laplacian",
    "InverseMultiquadric",
    "Linear",
    "Sum",
    "Product",
    "Multiple",
    "PerColumn",
    "Column",
)
RENAMED_ARGUMENTS = {
    "estimator": "statistic",
    "fewest": "min_rows",
    "standardise_scores": "standardize_scores",
}
RENAMED_SCALES = {"normalised": "normalized", "standardised": "standardized"}
PENALTIES = tuple(name for name in penalties.__all__ if name != "Penalty")


def recipe(value: Any) -> Any:
    """Return a value as JSON; what cannot be built again from JSON is only named, under "custom".

    Examples
    --------
    >>> recipe(penalties.HSIC(kernels.Gaussian(0.5)).kernel_z)
    {'kernel': 'Gaussian', 'arguments': {'bandwidth': 0.5}}
    >>> recipe(len)
    {'custom': 'builtins.len'}
    """
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Tensor) and value.numel() == 1:
        return float(value)
    if isinstance(value, (tuple, list)):
        return [recipe(item) for item in value]
    if isinstance(value, TableEncoding):
        return {"table": [_column(column) for column in value.columns]}
    if (
        isinstance(value, Kernel)
        and is_dataclass(value)
        and type(value) is getattr(kernels, type(value).__name__, None)
    ):
        arguments = {field.name: recipe(getattr(value, field.name)) for field in fields(value)}
        return _made("kernel", value, arguments)
    if isinstance(value, Penalty) and type(value) is getattr(penalties, type(value).__name__, None):
        return _made("penalty", value, {name: recipe(argument) for name, argument in value.arguments().items()})
    return _custom(value)


def built(value: Any) -> Any:
    """Return what a recipe describes; lists become tuples.

    Examples
    --------
    >>> built(recipe(kernels.Gaussian(0.5) + kernels.Linear())) == kernels.Gaussian(0.5) + kernels.Linear()
    True
    """
    if isinstance(value, list):
        return tuple(built(item) for item in value)
    if not isinstance(value, dict):
        return value
    if "table" in value:
        return TableEncoding(tuple(_built_column(column) for column in value["table"]))
    for kind, module, known in (("kernel", kernels, KERNELS), ("penalty", penalties, PENALTIES)):
        if kind in value:
            if value[kind] not in known:
                raise ValueError(f"the {kind} {value[kind]!r} is not known to this version of frhsic.")
            given = value["arguments"] if kind == "kernel" else current_arguments(value["arguments"])
            arguments = {name: built(argument) for name, argument in given.items()}
            return getattr(module, value[kind])(**arguments)
    raise ValueError(f"{value.get('custom', value)!r} cannot be built from a file.")


def current_arguments(arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of a penalty in a file of frhsic 0.1.0 under the names that they have now.

    Examples
    --------
    >>> current_arguments({"kernel_z": {"kernel": "Linear", "arguments": {}}, "representation_weight": 10.0})
    {'kernel_z': {'kernel': 'Multiple', 'arguments': {'factor': 10.0, 'kernel': {'kernel': 'Linear', 'arguments': {}}}}}
    """
    current = {RENAMED_ARGUMENTS.get(name, name): value for name, value in arguments.items()}
    if isinstance(current.get("scale_z"), str):
        current["scale_z"] = RENAMED_SCALES.get(current["scale_z"], current["scale_z"])
    factor = current.pop("representation_weight", 1.0)
    if factor != 1:
        current["kernel_z"] = {"kernel": "Multiple", "arguments": {"factor": factor, "kernel": current["kernel_z"]}}
    return current


def is_custom(value: Any) -> bool:
    """Return whether a recipe, or any part of it, only names a thing."""
    if isinstance(value, list):
        return any(map(is_custom, value))
    if isinstance(value, dict):
        return "custom" in value or any(map(is_custom, value.values()))
    return False


def _made(kind: str, value: object, arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the recipe, or only the name where an argument has none."""
    return _custom(value) if is_custom(arguments) else {kind: type(value).__name__, "arguments": arguments}


def _custom(value: Any) -> dict[str, str]:
    named = value if hasattr(value, "__qualname__") else type(value)
    return {"custom": f"{named.__module__}.{named.__qualname__}"}


def _column(column: Number | Category) -> dict[str, Any]:
    if isinstance(column, Number):
        return {"name": column.name, "low": column.low, "high": column.high}
    return {"name": column.name, "levels": list(column.levels)}


def _built_column(column: dict[str, Any]) -> Number | Category:
    if "levels" in column:
        return Category(column["name"], tuple(column["levels"]))
    return Number(column["name"], column["low"], column["high"])
