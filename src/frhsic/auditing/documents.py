"""Frozen dataclasses that convert to JSON and back without loss. Reading JSON raises an error if a
number in it is impossible in an audit.
"""

from __future__ import annotations

import dataclasses
import json
import math
import types
import typing
from dataclasses import dataclass
from typing import Any, Literal, Self

from frhsic.intervals import Interval

# Fields and measures that must be between 0 and 1, or nonnegative.
CHANCE_FIELDS = {"pvalue", "adjusted", "confidence"}
COUNT_FIELDS = {
    *("rows", "given", "dropped", "used", "independent", "effective", "weighted"),
    "standard_error",
}
SHARE_KEYS = {
    "accuracy",
    "class_accuracy",
    "true_positive_rate",
    "false_positive_rate",
    "auc",
    "decision_ratio",
    "base_rate",
}
SIZE_KEYS = {"log_loss", "root_squared_error"}


@dataclass(frozen=True)
class Document:
    """Base class of dataclasses that convert to JSON and back without loss.

    A subclass has a field `format` whose default is the version of its JSON form.
    """

    def to_dict(self) -> dict[str, Any]:
        """Return the document as plain dicts, lists, strings and numbers."""
        fields: dict[str, Any] = json.loads(self.to_json())
        return fields

    def to_json(self, *, indent: int | None = None) -> str:
        """Return the document as JSON; raise an error if a number is not finite."""
        return json.dumps(dataclasses.asdict(self), allow_nan=False, indent=indent)

    @classmethod
    def from_dict(cls, fields: Any) -> Self:
        """Create a document from the output of :meth:`to_dict`; raise an error if the format
        version differs.
        """
        version = fields.get("format") if isinstance(fields, dict) else None
        expected = next(f.default for f in dataclasses.fields(cls) if f.name == "format")
        if version != expected:
            raise ValueError(
                f"the document's format is {version!r}, but this version of frhsic reads format"
                f" {expected}. Recreate the document from the data, or read it with the version"
                " of frhsic that wrote it."
            )
        try:
            document: Self = _convert(cls, fields)
            _require_ranges(document)
        except (AttributeError, KeyError, OverflowError, TypeError) as error:
            raise ValueError(f"the document is not a valid {cls.__name__}: {error}") from None
        return document

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Create a document from the output of :meth:`to_json`."""
        return cls.from_dict(json.loads(text))


def _convert(hint: Any, value: Any) -> Any:
    """Convert parsed JSON to the annotated type."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        # several scalar types, such as str | int | float | bool: keep the value
        return _convert(
            next((kind for kind in arguments if type(value) is kind), arguments[0]), value
        )
    if dataclasses.is_dataclass(hint):
        hints = typing.get_type_hints(hint)
        return typing.cast(Any, hint)(
            **{name: _convert(hints[name], part) for name, part in value.items()}
        )
    if origin is tuple and type(value) is list:
        return tuple(_convert(arguments[0], item) for item in value)
    if origin is dict:
        return {key: _convert(arguments[1], item) for key, item in value.items()}
    if origin is Literal or type(value) is hint or (hint is float and type(value) is int):
        return float(value) if hint is float else value
    raise TypeError(f"expected {hint}, got {str(value)[:40]!r}")


def _require_ranges(part: Any) -> None:
    """Raise an error if a number in part of a document is impossible in an audit."""
    if isinstance(part, (tuple, list)):
        for item in part:
            _require_ranges(item)
    if isinstance(part, dict):
        _require_ranges(list(part.values()))
    if isinstance(part, float) and not math.isfinite(part):
        raise ValueError(
            f"the document contains {part}, but all numbers must be finite."
            " Recreate it from the data."
        )
    if not dataclasses.is_dataclass(part):
        return
    fields = vars(part)
    _require_ranges(list(fields.values()))
    interval = fields.get("interval")
    shares = CHANCE_FIELDS | SHARE_KEYS
    if isinstance(interval, Interval) and interval.method == "Student's t":
        shares = shares - {"base_rate"}  # the mean of a numeric target
    if isinstance(part, Interval) and part.low > part.high:
        raise ValueError(
            f"the document contains an invalid interval from {part.low:g} to {part.high:g}"
        )
    for name, value in fields.items():
        kind = fields.get("key", name) if name == "value" else name
        if not isinstance(value, (int, float)) or name == "base_rate":
            continue
        negative = kind in COUNT_FIELDS | SIZE_KEYS | shares and value < 0
        if negative or (kind in shares and value > 1):
            raise ValueError(f"the document contains an invalid {kind}, {value:g}")
