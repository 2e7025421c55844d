"""The list of what a model file may hold, `listed.toml`, and what its words mean."""

from __future__ import annotations

import inspect
import os
import sys
import tomllib
from collections import UserList
from collections.abc import Callable
from functools import cache
from importlib import import_module
from importlib.resources import files
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

import numpy as np

from frhsic.tables.columns import MOST_TABLE_COLUMNS

_LIST = tomllib.loads(files(__package__).joinpath("listed.toml").read_text("utf-8"))

LISTED: dict[str, dict[str, bool]] = {
    f"{module}.{name}": {a.rstrip("?"): not a.endswith("?") for a in attributes.split()}
    for module, classes in _LIST["classes"].items()
    for name, attributes in classes.items()
}
"""Fitted attributes of each class, and whether it has to have them."""

ATTRIBUTES: dict[str, str] = {
    attribute: kind for kind, names in _LIST["attributes"].items() for attribute in names.split()
}
"""What each attribute may be."""

BOOSTERS: dict[str, Any] = _LIST["boosters"]
"""Parts of the texts of LightGBM and XGBoost."""

DATA: dict[str, str] = {
    name: module for module, names in _LIST["data"].items() for name in names.split()
}
"""The module of each class of the library's own data."""

OWN: list[str] = _LIST["own"].split()
"""Fitted attributes of the library's own estimators."""

OWN_PARAMETERS: list[str] = _LIST["own_parameters"].split()
"""Parameters of the library's own estimators that are compared with the list."""

# The kind of attributes that are not written
DERIVED = "derived"
# Attributes that all transformers of scikit-learn can have
COMMON = {"feature_names_in_", "_sklearn_output_config"}


NOT_WRITTEN = "frhsic.save has not written it: "


def require(condition: Any, reason: str) -> None:
    """Refuse a file."""
    if not condition:
        raise ValueError(f"{NOT_WRITTEN}{reason}.")


# What the words of the list mean


def fits(value: Any, kind: str) -> bool:
    """Return whether a value is of a kind, such as "none | list of numbers".

    Examples
    --------
    >>> fits(3, "none | count"), fits("3", "none | count"), fits([np.ones(2)], "list of numbers")
    (True, False, True)
    """
    return any(_fits(value, one) for one in kind.split(" | "))


def _fits(value: Any, kind: str) -> bool:
    container, _, content = kind.partition(" of ")
    if content:
        items = _items(value, container)
        return items is not None and all(
            any(_fits(item, one) for one in content.split("/")) for item in items
        )
    if kind in MEANINGS:
        return MEANINGS[kind](value)
    if kind in _LIST["words"]:
        return isinstance(value, str) and value in _LIST["words"][kind].split()
    if len(kind) > 1 and kind.lstrip("_")[0].isupper():
        return kind in [base.__name__ for base in type(value).__mro__]
    return isinstance(value, str) and value == kind


def _items(value: Any, container: str) -> list[Any] | None:
    """Return what a list, a mapping or a two-dimensional array of objects holds."""
    if container == "list" and isinstance(value, list):
        return value
    if container == "mapping" and isinstance(value, dict):
        return list(value.values())
    if container == "grid" and isinstance(value, np.ndarray) and value.ndim == 2:
        return value.ravel().tolist()
    return None


def _is_integer(value: Any) -> bool:
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    return whole and -(2**63) <= value < 2**64


def _is_number(value: Any) -> bool:
    return _is_integer(value) or isinstance(value, (float, np.floating))


def _is_scalar(value: Any) -> bool:
    return value is None or isinstance(value, (bool, np.bool_, str)) or _is_number(value)


def _is_array(value: Any, kinds: str) -> bool:
    return isinstance(value, (np.ndarray, np.generic)) and value.dtype.kind in kinds


def _is_labels(value: Any) -> bool:
    text = _is_array(value, "O") and all(map(_is_scalar, value.ravel().tolist()))
    return (text or _is_array(value, "biufU")) and value.ndim == 1


def _is_plain(value: Any) -> bool:
    if isinstance(value, dict):
        return all(map(_is_scalar, value)) and _is_plain(list(value.values()))
    if isinstance(value, (list, tuple)):
        return all(map(_is_plain, value))
    return _is_scalar(value) or _is_labels(value)


def _is_columns(value: Any) -> bool:
    """A column or several, by name, by position or as a mask."""
    several = isinstance(value, (list, UserList)) and all(map(_is_scalar, value))
    return several or _is_labels(value) or isinstance(value, (str, int))


def _is_step(value: Any, length: int = 2) -> bool:
    """A name, a model and, of a transformer, its columns."""
    named = isinstance(value, tuple) and len(value) == length and isinstance(value[0], str)
    return (
        named
        and fits(value[1], "none | drop | passthrough | model")
        and all(map(_is_columns, value[2:]))
    )


MEANINGS: dict[str, Callable[[Any], bool]] = {
    "none": lambda value: value is None,
    "flag": lambda value: isinstance(value, (bool, np.bool_)),
    "count": lambda value: _is_integer(value) and 0 <= value < MOST_TABLE_COLUMNS,
    "number": _is_number,
    "integer": _is_integer,
    "share": lambda value: _is_number(value) and 0 <= value <= 1,
    "numbers": lambda value: _is_array(value, "biuf") or _is_number(value),
    "text": lambda value: isinstance(value, str),
    "labels": _is_labels,
    "plain": _is_plain,
    "columns": _is_columns,
    "slice": lambda value: isinstance(value, slice),
    "dtype": lambda value: (
        isinstance(value, np.dtype) or np.generic in getattr(value, "__mro__", ())
    ),
    "weights": lambda value: isinstance(value, dict) and _is_plain(value),
    "step": _is_step,
    "transformer": lambda value: _is_step(value, 3),
    "model": lambda value: hasattr(value, "get_params") or hasattr(value, "predict"),
}


def is_of(value: Any, hint: Any) -> bool:
    """Return whether a value is as an annotation says. Arrays are of numbers, and what may be
    anything is text, numbers or lists of them.

    Examples
    --------
    >>> is_of((1, 2.0), tuple[float, ...]), is_of(("a",), tuple[float, ...])
    (True, False)
    """
    kind = get_origin(hint) or hint
    parts = get_args(hint)
    if kind is Any:
        return _is_plain(value)
    if kind is Literal:
        return isinstance(value, (str, int)) and value in parts
    if kind in (Union, UnionType):
        return any(is_of(value, part) for part in parts)
    if kind is float:
        return _is_number(value)
    if kind is np.ndarray:
        return _is_array(value, "biuf")
    if not isinstance(value, kind) or not parts:
        return isinstance(value, kind)
    if kind is dict:
        return all(is_of(item, parts[1]) for item in value.values())
    return all(is_of(item, parts[0]) for item in value)


# Objects and their attributes


def name_of(cls: type) -> str | None:
    """Return the name of a class, or None if it is not listed."""
    for name in LISTED:
        module, _, own = name.rpartition(".")
        if own == cls.__name__ and getattr(sys.modules.get(module), own, None) is cls:
            return name
    return None


def class_of(name: str) -> Any:
    """Return the class of a listed name, or of one of the library's own data."""
    module, _, own = name.rpartition(".")
    return getattr(import_module(module or DATA[own]), own)


@cache
def _parameters(name: str) -> dict[str, Any]:
    """Return the parameters of a class, and of those that it is based on, with their defaults."""
    return {
        parameter.name: parameter.default
        for base in reversed(class_of(name).__mro__[:-1])
        if "__init__" in vars(base)
        for parameter in inspect.signature(base).parameters.values()
    }


def state_of(name: str, model: Any) -> dict[str, Any]:
    """Return the attributes that tell an estimator of a listed class from a new one."""
    parameters = model.get_params(deep=False)
    if isinstance(parameters.get("random_state"), (np.random.RandomState, np.random.Generator)):
        parameters["random_state"] = None  # predictions do not need it
    new = vars(type(model)(**parameters))
    state: dict[str, Any] = {}
    for attribute, value in {**vars(model), **parameters}.items():
        if attribute in parameters:
            made = _parameters(name).get(attribute)
        elif attribute in LISTED[name] or attribute not in new:
            made = new.get(attribute, state)
        else:
            continue
        plain = isinstance(value, (int, float, str, tuple)) and type(value) is type(made)
        if value is not made and not (plain and value == made):
            state[attribute] = value
    return {a: value for a, value in state.items() if ATTRIBUTES.get(a) != DERIVED}


def check_state(name: str, state: dict[str, Any]) -> None:
    """Refuse attributes that a listed class does not have, or that are not what they may be."""
    allowed = LISTED[name].keys() | _parameters(name).keys() | COMMON
    for attribute, value in state.items():
        kind = ATTRIBUTES.get(attribute, DERIVED)
        known = attribute in allowed and kind != DERIVED and fits(value, kind)
        require(known, f"{attribute!r} of a {name} is not as it should be")
    width = (state.get("n_features_in_"),)
    for attribute in state.keys() & set(_LIST["per_column"].split()):
        require(np.shape(state[attribute])[-1:] in ((), width), f"{attribute!r} of other columns")
    needed = {a for a, always in LISTED[name].items() if always and ATTRIBUTES[a] != DERIVED}
    missing = needed - state.keys()
    # all of them are missing in models that are not fitted, such as the parameter `estimator`
    require(not missing or missing == needed, f"a {name} without {', '.join(sorted(missing))}")


def build(name: str, state: dict[str, Any]) -> Any:
    """Return an estimator with some parameters and attributes."""
    fitted = {a: value for a, value in state.items() if a.startswith("_") or a.endswith("_")}
    model = class_of(name)(**limited({a: v for a, v in state.items() if a not in fitted}))
    vars(model).update(fitted)
    return model


def limited(parameters: dict[str, Any]) -> dict[str, Any]:
    """Return parameters with at most as many threads as this machine has processors."""
    if parameters.get("n_jobs") is None:
        return parameters
    return parameters | {"n_jobs": min(parameters["n_jobs"], os.cpu_count() or 1)}
