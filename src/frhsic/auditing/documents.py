"""Frozen dataclasses as JSON documents and back, with messages that say where a document is wrong."""

from __future__ import annotations

import dataclasses
import json
import math
import types
import typing
from typing import TYPE_CHECKING, Any, Self, TypeVar

from frhsic.formatting import did_you_mean

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

T = TypeVar("T", bound="DataclassInstance")


@dataclasses.dataclass(frozen=True)
class Document:
    """Base of dataclasses that are written to JSON and read back without loss.

    A subclass has a field `format` whose default is the version of its JSON form.
    """

    def to_dict(self) -> dict[str, Any]:
        """Return plain dicts, lists, strings and numbers."""
        fields: dict[str, Any] = to_plain(self)
        return fields

    def to_json(self, *, indent: int | None = None) -> str:
        """Return the document as JSON."""
        return json.dumps(self.to_dict(), allow_nan=False, ensure_ascii=False, indent=indent)

    @classmethod
    def from_dict(cls, fields: Any) -> Self:
        """Return the object that :meth:`to_dict` wrote; raise if its format is another."""
        written = fields.get("format") if isinstance(fields, dict) else None
        expected = next(f.default for f in dataclasses.fields(cls) if f.name == "format")
        if written != expected:
            raise ValueError(
                f"the document's format is {written!r}; this version reads {expected}. "
                "Make it again from the data, or read it with the version that wrote it."
            )
        return from_plain(cls, fields)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return the object that :meth:`to_json` wrote."""
        return cls.from_dict(json.loads(text))


def to_plain(value: Any) -> Any:
    """Return dicts, lists, strings, numbers, booleans and None; a number that is not finite raises.

    Examples
    --------
    >>> to_plain((1, 2.5, "a", None))
    [1, 2.5, 'a', None]
    """
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: to_plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {str(key): to_plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{value} cannot be written as JSON; a value that is not finite is left out or None.")
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise TypeError(f"{type(value).__name__} cannot be written as JSON.")


def from_plain(kind: type[T], value: Any, where: str = "") -> T:
    """Return an instance of the dataclass `kind` from the dict of :func:`to_plain`."""
    where = where or kind.__name__
    hints, fields = typing.get_type_hints(kind), {f.name: f for f in dataclasses.fields(kind)}
    _require(isinstance(value, dict), where, value, "an object")
    for key in value:
        if key not in fields:
            hint = did_you_mean(str(key), fields)
            raise ValueError(f"{where} holds {key!r}, which is not a field of {kind.__name__}.{hint}")
    for name, field in fields.items():
        required = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        if required and name not in value:
            raise ValueError(f"{where} lacks {name!r}.")
    return kind(**{name: _convert(hints[name], item, f"{where}.{name}") for name, item in value.items()})


def _convert(hint: Any, value: Any, where: str) -> Any:
    arguments = typing.get_args(hint)
    origin = typing.get_origin(hint)
    if origin in (typing.Union, types.UnionType):
        kinds = [kind for kind in arguments if kind is not type(None)]
        if value is None and len(kinds) < len(arguments):
            return None
        # several scalars, such as str | int | float | bool: the one that came
        return _convert(next((kind for kind in kinds if type(value) is kind), kinds[0]), value, where)
    if origin is tuple:
        _require(isinstance(value, list), where, value, "a list")
        return tuple(_convert(arguments[0], item, f"{where}[{i}]") for i, item in enumerate(value))
    if origin is dict:
        _require(isinstance(value, dict), where, value, "an object")
        return {str(key): _convert(arguments[1], item, f"{where}.{key}") for key, item in value.items()}
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        return from_plain(hint, value, where)
    if hint is float and type(value) in (int, float):
        _require(math.isfinite(value), where, value, "a finite number")
        return float(value)
    _require(type(value) is hint, where, value, hint.__name__)
    return value


def _require(fits: bool, where: str, value: Any, expected: str) -> None:
    if not fits:
        raise ValueError(f"{where} is {str(value)[:40]!r}; {expected} was expected.")
