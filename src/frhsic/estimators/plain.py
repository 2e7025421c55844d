"""Parameters of estimators as plain values, for JSON: kernels, penalties, encodings of tables, class labels."""

from __future__ import annotations

import inspect
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
from torch import Tensor

from frhsic import kernels, penalties
from frhsic.kernels import Kernel
from frhsic.penalties import Penalty
from frhsic.tables import TableEncoding

RENAMED_CLASSES: dict[str, str] = {}
"""Old to new name of each renamed kernel or penalty. Whoever renames one adds it here, so that old files still load."""

RENAMED_ARGUMENTS = {"estimator": "statistic", "standardise_scores": "standardize_scores", "fewest": "min_rows"}
"""Old to new name of each renamed argument of a kernel or penalty. Applied to an old file where the class has the new
name. Whoever renames an argument adds it here."""

RENAMED_VALUES = {"standardised": "standardized", "normalised": "normalized"}
"""Old to new spelling of each renamed option. Applied to every argument of a kernel or penalty in an old file. Whoever
renames an option adds it here."""


def to_json(value: Any) -> Any:
    """Return a parameter as JSON. What cannot be built again from JSON is only named, under "custom".

    Examples
    --------
    >>> to_json(kernels.Gaussian(0.5))
    {'kernel': 'Gaussian', 'arguments': {'bandwidth': 0.5}}
    >>> to_json(len)
    {'custom': 'builtins.len'}
    """
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Tensor) and value.numel() == 1:
        return float(value)
    if isinstance(value, (tuple, list)):
        return [to_json(item) for item in value]
    if isinstance(value, TableEncoding):
        return {"table": value.to_plain()}
    name = type(value).__name__
    arguments: dict[str, Any] = {}
    if isinstance(value, Kernel) and is_dataclass(value) and type(value) is getattr(kernels, name, None):
        kind, arguments = "kernel", {field.name: getattr(value, field.name) for field in fields(value)}
    elif isinstance(value, Penalty) and type(value) is getattr(penalties, name, None):
        kind, arguments = "penalty", value.arguments()
    else:
        return _custom(value)
    written = {argument: to_json(item) for argument, item in arguments.items()}
    return _custom(value) if is_custom(written) else {kind: name, "arguments": written}


def from_json(value: Any) -> Any:
    """Return the object that :func:`to_json` has written; lists become tuples.

    Examples
    --------
    >>> from_json(to_json(kernels.Gaussian(0.5) + kernels.Linear())) == kernels.Gaussian(0.5) + kernels.Linear()
    True
    """
    if isinstance(value, list):
        return tuple(from_json(item) for item in value)
    if not isinstance(value, dict):
        return value
    if "table" in value:
        return TableEncoding.from_plain(value["table"])
    for kind, module, base in (("kernel", kernels, Kernel), ("penalty", penalties, Penalty)):
        if kind in value:
            name = str(RENAMED_CLASSES.get(value[kind], value[kind]))
            cls = getattr(module, name, None)
            if not isinstance(cls, type) or not issubclass(cls, base) or cls is base:
                raise ValueError(f"the {kind} {name!r} is not known to this version of frhsic.")
            return cls(**_renamed(cls, {key: from_json(item) for key, item in value["arguments"].items()}))
    raise ValueError(f"{value.get('custom', value)!r} cannot be built from a file.")


def is_custom(value: Any) -> bool:
    """Return whether JSON of :func:`to_json`, or any part of it, only names an object."""
    if isinstance(value, list):
        return any(map(is_custom, value))
    return isinstance(value, dict) and ("custom" in value or any(map(is_custom, value.values())))


def labels_to_json(classes: np.ndarray) -> dict[str, Any]:
    """Return labels with their type as JSON."""
    values = classes.tolist()
    if not all(isinstance(value, (str, int, float, bool)) for value in values):
        raise TypeError(f"class labels {values!r} cannot be written as JSON; use text or numbers as labels.")
    return {"dtype": classes.dtype.str if classes.dtype != object else "object", "values": values}


def labels_from_json(value: dict[str, Any] | None) -> Any:
    """Return the labels that :func:`labels_to_json` has written, or None."""
    return None if value is None else np.array(value["values"], dtype=value["dtype"])


def _custom(value: Any) -> dict[str, str]:
    named = value if hasattr(value, "__qualname__") else type(value)
    return {"custom": f"{named.__module__}.{named.__qualname__}"}


def _renamed(cls: type, arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of an older file in the names and spellings of today."""
    known = inspect.signature(cls).parameters
    names = {old: new for old, new in RENAMED_ARGUMENTS.items() if new in known}
    current: dict[str, Any] = {
        names.get(name, name): RENAMED_VALUES.get(value, value) if isinstance(value, str) else value
        for name, value in arguments.items()
    }
    if "representation_weight" in current:  # now a factor of the kernel
        factor = current.pop("representation_weight")
        current["kernel_z"] = current["kernel_z"] if factor == 1 else factor * current["kernel_z"]
    return current
