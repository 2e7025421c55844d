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
    if not isinstance(value, dict):
        raise ValueError(f"{where} is {_described(value)}; an object was expected.")
    hints = typing.get_type_hints(kind)
    fields = {f.name: f for f in dataclasses.fields(kind)}
    for key in value:
        if key not in fields:
            hint = did_you_mean(str(key), fields)
            raise ValueError(f"{where} holds {key!r}, which is not a field of {kind.__name__}.{hint}")
    given = {}
    for name, field in fields.items():
        if name in value:
            given[name] = _convert(hints[name], value[name], f"{where}.{name}")
        elif field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            raise ValueError(f"{where} lacks {name!r}.")
    return kind(**given)


def _convert(hint: Any, value: Any, where: str) -> Any:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return _one_of(arguments, value, where)
    if origin is tuple:
        if not isinstance(value, list):
            raise ValueError(f"{where} is {_described(value)}; a list was expected.")
        return tuple(_convert(arguments[0], item, f"{where}[{i}]") for i, item in enumerate(value))
    if origin is dict:
        if not isinstance(value, dict):
            raise ValueError(f"{where} is {_described(value)}; an object was expected.")
        return {str(key): _convert(arguments[1], item, f"{where}.{key}") for key, item in value.items()}
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        return from_plain(hint, value, where)
    return _scalar(hint, value, where)


def _one_of(arguments: tuple[Any, ...], value: Any, where: str) -> Any:
    if value is None and type(None) in arguments:
        return None
    kinds = [kind for kind in arguments if kind is not type(None)]
    if len(kinds) == 1:
        return _convert(kinds[0], value, where)
    for kind in kinds:  # several scalars, such as str | int | float | bool: the one that came
        if type(value) is kind:
            return value
    raise ValueError(f"{where} is {_described(value)}; {' or '.join(kind.__name__ for kind in kinds)} was expected.")


def _scalar(kind: type, value: Any, where: str) -> Any:
    if kind is float and isinstance(value, (int, float)) and not isinstance(value, bool):
        if not math.isfinite(value):
            raise ValueError(f"{where} is {value}; a finite number was expected.")
        return float(value)
    if type(value) is kind:
        return value
    raise ValueError(f"{where} is {_described(value)}; {kind.__name__} was expected.")


def _described(value: Any) -> str:
    if value is None:
        return "null"
    return (
        f"{type(value).__name__} {str(value)[:40]!r}" if isinstance(value, (str, int, float)) else type(value).__name__
    )
