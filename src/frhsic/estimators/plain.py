"""Parameters of estimators as plain values, for JSON: kernels, penalties, encodings of tables, class labels."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
from torch import Tensor

from frhsic import kernels, penalties
from frhsic.kernels import Kernel
from frhsic.penalties import Penalty
from frhsic.tables import TableEncoding


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
            name = str(value[kind])
            cls = getattr(module, name, None)
            if not isinstance(cls, type) or not issubclass(cls, base) or cls is base:
                raise ValueError(f"the {kind} {name!r} is not known to this version of frhsic.")
            return cls(**{key: from_json(item) for key, item in value["arguments"].items()})
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
