"""The JSON form of an audit as a JSON Schema, made from its dataclasses."""

from __future__ import annotations

import dataclasses
import types
import typing
from typing import Any

from frhsic.auditing.results import FORMAT, Audit

NAMES = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}


def audit_schema() -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of ``audit.to_json()``.

    The installed package has it as a file, ``frhsic/auditing/audit.schema.json``. Its version is the field ``format``
    of an audit, which is raised when a field changes its meaning or goes away.

    Examples
    --------
    >>> audit_schema()["$defs"]["RowCounts"]["required"]
    ['given', 'dropped', 'used', 'subsample']
    """
    definitions: dict[str, Any] = {}
    _define(Audit, definitions)
    definitions["Audit"]["properties"]["format"] = {"const": FORMAT}
    definitions["Audit"]["required"].append("format")
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:frhsic:audit:{FORMAT}",
        "title": "An audit of frhsic",
        "$ref": "#/$defs/Audit",
        "$defs": definitions,
    }


def _define(kind: type, definitions: dict[str, Any]) -> None:
    if kind.__name__ in definitions:
        return
    definitions[kind.__name__] = {}  # its place, before those of its parts
    hints = typing.get_type_hints(kind)
    fields = dataclasses.fields(kind)
    definitions[kind.__name__] |= {
        "type": "object",
        "properties": {field.name: _schema(hints[field.name], definitions) for field in fields},
        "required": [
            field.name
            for field in fields
            if field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        ],
        "additionalProperties": False,
    }


def _schema(hint: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        if all(kind in NAMES for kind in arguments):
            return {"type": [NAMES[kind] for kind in arguments]}
        return {"anyOf": [_schema(kind, definitions) for kind in arguments]}
    if origin is tuple:
        return {"type": "array", "items": _schema(arguments[0], definitions)}
    if origin is dict:
        return {"type": "object", "additionalProperties": _schema(arguments[1], definitions)}
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        _define(hint, definitions)
        return {"$ref": f"#/$defs/{hint.__name__}"}
    return {"type": NAMES[hint]}
