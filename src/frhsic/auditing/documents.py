"""Frozen dataclasses as JSON documents and back, with messages that say where a document is wrong."""

from __future__ import annotations

import dataclasses
import json
import math
import types
import typing
from typing import Any, Self


@dataclasses.dataclass(frozen=True)
class Document:
    """Base of dataclasses that are written to JSON and read back without loss.

    A subclass has a field `format` whose default is the version of its JSON form.
    """

    def to_dict(self) -> dict[str, Any]:
        """Return plain dicts, lists, strings and numbers."""
        fields: dict[str, Any] = json.loads(self.to_json())
        return fields

    def to_json(self, *, indent: int | None = None) -> str:
        """Return the document as JSON; a number that is not finite raises."""
        return json.dumps(dataclasses.asdict(self), allow_nan=False, ensure_ascii=False, indent=indent)

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
        document: Self = _converted(cls, fields, cls.__name__)
        return document

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return the object that :meth:`to_json` wrote."""
        return cls.from_dict(json.loads(text))


def _converted(hint: Any, value: Any, where: str) -> Any:
    """Return JSON as a value of the type that `hint` names."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        kinds = [kind for kind in arguments if kind is not type(None)]
        if value is None and len(kinds) < len(arguments):
            return None
        # several scalars, such as str | int | float | bool: the one that came
        return _converted(next((kind for kind in kinds if type(value) is kind), kinds[0]), value, where)
    plain = {tuple: list, dict: dict}.get(origin) or (dict if dataclasses.is_dataclass(hint) else hint)
    if hint is float and type(value) in (int, float):
        value = float(value)
    if type(value) is not plain or (plain is float and not math.isfinite(value)):
        raise ValueError(f"{where} is {str(value)[:40]!r}; {plain.__name__} was expected.")
    if origin is tuple:
        return tuple(_converted(arguments[0], item, f"{where}[{i}]") for i, item in enumerate(value))
    if origin is dict:
        return {str(key): _converted(arguments[1], item, f"{where}.{key}") for key, item in value.items()}
    if not dataclasses.is_dataclass(hint):
        return value
    hints = typing.get_type_hints(hint)
    try:
        known = {name: _converted(hints[name], value[name], f"{where}.{name}") for name in value.keys() & hints.keys()}
        return typing.cast(Any, hint)(**value | known)
    except TypeError as error:  # a field that is missing or not known
        raise ValueError(f"{where} is no {getattr(hint, '__name__', hint)}: {error}") from None
