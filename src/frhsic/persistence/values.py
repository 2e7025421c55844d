"""Values as JSON: numbers, text, lists, arrays, and objects of the classes that are listed."""

from __future__ import annotations

import io
import json
import math
import re
import sys
import zipfile
from collections import UserList
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any, get_type_hints

import numpy as np

from frhsic.persistence import boosters, scikit_learn
from frhsic.persistence.rules import (
    DATA,
    LISTED,
    NOT_WRITTEN,
    build,
    check_state,
    class_of,
    is_of,
    name_of,
    require,
    state_of,
)

# Bytes of an array of text, which its JSON does not bound
MOST_TEXT = 2**24
# Numbers of an array without any, in a direction that is not empty
MOST_EMPTY = 2**16

BUILDERS: dict[str, tuple[Callable[[Any], dict[str, Any]], Callable[[dict[str, Any]], Any]]] = {
    "lightgbm.Booster": (boosters.lightgbm_state, boosters.build_lightgbm),
    "xgboost.Booster": (boosters.xgboost_state, boosters.build_xgboost),
    "scipy.interpolate.BSpline": (scikit_learn.spline_state, scikit_learn.build_spline),
    "sklearn.tree._tree.Tree": (scikit_learn.tree_state, scikit_learn.build_tree),
    "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor": (
        scikit_learn.predictor_state,
        scikit_learn.build_predictor,
    ),
}
"""How objects that are no estimators are taken apart and built."""

# Nodes of a skops file that are data, unless skops itself says otherwise
SKOPS_DATA = re.compile(
    "(Bytearray|Bytes|DType|DefaultDict|Dict|Json|List|NdArray|Set|Slice|Tuple|Type)Node"
)


CHECKS = scikit_learn.SCIKIT_LEARN_CHECKS | boosters.BOOSTER_CHECKS


class UnwritableError(TypeError):
    """An object inside a model that no file can hold."""


class Writer:
    """Turns values into JSON. The arrays of models, and objects of classes that are not listed, are
    kept apart.
    """

    def __init__(self) -> None:
        self.arrays: list[np.ndarray] = []
        self.foreign: list[bytes] = []
        self.names: set[str] = set()
        self.odd: set[str] = set()  # why objects of listed classes are not as the list says
        self.numbers = 0  # of boosters

    def model(self, value: Any) -> Any:
        """Return a model, or a list of models, as JSON."""
        if isinstance(value, (np.ndarray, np.generic)) and value.dtype.kind in "biuf":
            order = "F" if value.flags.f_contiguous and value.ndim > 1 else "C"
            self.arrays.append(np.array(value.T if order == "F" else value))
            return {"class": "numbers", "fields": [len(self.arrays) - 1, order]}
        if isinstance(value, np.ndarray) and value.dtype.kind == "U" and value.size:
            letters = np.ascontiguousarray(value)[..., None].view(np.uint32)
            self.arrays.append(letters)
            return {"class": "text", "fields": len(self.arrays) - 1}
        if isinstance(value, slice):
            return {"class": "slice", "fields": [value.start, value.stop, value.step]}
        if isinstance(value, np.dtype) or (
            isinstance(value, type) and issubclass(value, np.number)
        ):
            name = "dtype" if isinstance(value, np.dtype) else "type"
            return {"class": name, "fields": np.dtype(value).str}
        written = _plain(value, self.model)
        return self._object(value) if written is None and value is not None else written

    def _object(self, value: Any) -> Any:
        """Return an object of a listed class, or a reference to what skops makes of another."""
        arrays = len(self.arrays)
        foreign = len(self.foreign)
        names = set(self.names)
        name = name_of(type(value))
        if name is None:
            return self._foreign(value)
        try:
            if name in BUILDERS:
                state = BUILDERS[name][0](value)
                check_state(name, state)
                self.numbers += boosters.numbers_of(state) if "text" in state else 0
            else:
                state = state_of(name, value)
                _assembled(name, state)  # as it will be when it is read
            return {"class": name, "fields": {k: self.model(v) for k, v in state.items()}}
        except UnwritableError:
            raise
        except Exception as error:  # whatever is not as the list says
            reason = str(error).removeprefix(NOT_WRITTEN) or type(error).__name__
            self.odd.add(f"A {name} is among them because of this: {reason}")
            del self.arrays[arrays:]
            del self.foreign[foreign:]
            self.names = names
            return self._foreign(value)

    def _foreign(self, value: Any) -> Any:
        import skops.io

        cls = value if hasattr(value, "__qualname__") else type(value)
        name = f"{cls.__module__}.{cls.__qualname__}"
        try:
            data = skops.io.dumps(value)
        except Exception as error:  # of whatever its attributes are
            raise UnwritableError(
                f"the model holds a {name}, whose attributes skops cannot write ({error}). Keep"
                " the model with joblib.dump, and load it only from people you trust."
            ) from error
        self.names |= {name} | foreign_names(data)
        self.foreign.append(data)
        return {"class": "skops", "fields": len(self.foreign) - 1}


def to_json(value: Any) -> Any:
    """Return a parameter or attribute as JSON. What cannot be built again from JSON is only named,
    under "custom".

    Examples
    --------
    >>> from frhsic import kernels
    >>> to_json(kernels.Gaussian(0.5))
    {'class': 'Gaussian', 'fields': {'bandwidth': 0.5}}
    >>> to_json(len)
    {'custom': 'builtins.len'}
    """
    if isinstance(value, np.generic) or (hasattr(value, "detach") and value.numel() == 1):
        value = value.item()  # of NumPy, or of a tensor
    written = _plain(value, to_json)
    if value is not None and (written is None or is_custom(written)):
        named = value if hasattr(value, "__qualname__") else type(value)
        return {"custom": f"{named.__module__}.{named.__qualname__}"}
    return written


def _plain(value: Any, to_json: Callable[[Any], Any]) -> Any:
    """Return numbers, text, containers and the library's own data as JSON, and None of anything
    else.
    """
    if isinstance(value, float) and not math.isfinite(value):
        return {"class": "float", "fields": str(value)}
    if isinstance(value, str):
        return str(value)
    if isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, tuple):
        return [to_json(item) for item in value]
    if isinstance(value, (list, UserList)):
        return {"class": "list", "fields": [to_json(item) for item in value]}
    if isinstance(value, Mapping):
        if all(isinstance(key, str) for key in value):
            return {"class": "dict", "fields": {str(k): to_json(v) for k, v in value.items()}}
        pairs = [[to_json(key), to_json(item)] for key, item in value.items()]
        return {"class": "pairs", "fields": pairs}
    if isinstance(value, np.ndarray):
        content = {
            "dtype": value.dtype.str,
            "shape": list(value.shape),
            "values": [to_json(item) for item in value.ravel().tolist()],
        }
        return {"class": "array", "fields": content}
    name = type(value).__name__
    if name not in DATA or class_of(name) is not type(value):
        return None
    if is_dataclass(value):
        own = {field.name: getattr(value, field.name) for field in fields(value)}
    else:
        own = value.arguments()  # of a penalty
    return {"class": name, "fields": {key: to_json(item) for key, item in own.items()}}


def is_custom(value: Any) -> bool:
    """Return whether JSON of :func:`to_json`, or any part of it, only names an object."""
    if isinstance(value, list):
        return any(map(is_custom, value))
    return isinstance(value, dict) and ("custom" in value or any(map(is_custom, value.values())))


class Reader:
    """Builds the values that :class:`Writer` and :func:`to_json` have written; JSON lists are
    tuples. `named` are the classes that the file says are not listed.
    """

    def __init__(
        self,
        arrays: dict[str, np.ndarray] | None = None,
        foreign: Callable[[int], bytes] | None = None,
        trusted: Collection[str] = (),
        named: Collection[str] = (),
    ) -> None:
        self.arrays = arrays or {}
        self.foreign = foreign
        self.trusted = set(trusted)
        self.named = set(map(str, named))
        self.numbers = 0  # of boosters

    def read(self, value: Any) -> Any:
        if isinstance(value, list):
            return tuple(map(self.read, value))
        if not isinstance(value, dict):
            return value
        name = value["class"]
        content = value["fields"]
        if name == "numbers":
            place, order = content
            values = self.arrays.pop(str(place))  # so that no array is used twice
            require(_is_sound(values.shape), "an array without numbers")
            return (values.T if order == "F" else values)[()]
        if name == "text":
            letters = self.arrays.pop(str(content))
            require(letters.dtype == np.uint32 and letters.size, "text without letters")
            require(letters.max() <= sys.maxunicode, "a letter that does not exist")
            return letters.view(f"U{letters.shape[-1]}")[..., 0]
        if name == "skops":
            return self._foreign(content)
        if name == "float":
            return float(content)
        if name in ("dtype", "type"):
            dtype = np.dtype(content)
            require(dtype.kind in "biufO", "a type of no numbers")
            return dtype if name == "dtype" else dtype.type
        if name == "slice":
            return slice(*content)
        if name == "list":
            return list(map(self.read, content))
        if name == "pairs":
            return {self.read(key): self.read(item) for key, item in content}
        items = {key: self.read(item) for key, item in content.items()}
        if name == "dict":
            return items
        if name == "array":
            return _array(items["dtype"], items["shape"], items["values"])
        if name in LISTED:
            if "text" in items:
                self.numbers += boosters.numbers_of(items)
                require(self.numbers <= boosters.MOST_NUMBERS, "boosters of too many trees")
            return _assembled(name, items)
        require(name in DATA, f"{name!r} is not known to this version")
        return _own(class_of(name), items)

    def _foreign(self, place: int) -> Any:
        """Return an object of a class that is not listed, if the user has named all that it is made
        of.
        """
        import skops.io

        require(self.named and self.foreign, "it holds objects that it does not name")
        assert self.foreign is not None
        self._require_trusted(self.named)
        data = self.foreign(place)
        self._require_trusted(self.named | foreign_names(data))
        return skops.io.loads(data, trusted=sorted(self.trusted))

    def _require_trusted(self, names: set[str]) -> None:
        if not names <= self.trusted:
            shown = ", ".join(map(repr, sorted(names)))
            raise ValueError(
                f"it holds {shown}, which may run code. If you trust its author, pass load(path,"
                f" trusted=[{shown}])."
            )


def from_json(value: Any) -> Any:
    """Return the object that :func:`to_json` has written.

    Examples
    --------
    >>> from frhsic import kernels
    >>> from_json(to_json(kernels.Gaussian(0.5) + kernels.Linear())) == kernels.Gaussian(
    ...     0.5
    ... ) + kernels.Linear()
    True
    """
    return Reader().read(value)


def foreign_names(data: bytes) -> set[str]:
    """Return the classes and functions of a skops file that are not plain data."""
    import skops.io

    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        schema = json.loads(archive.read("schema.json"))
    names = {
        f"{node['__module__']}.{node['__class__']}"
        for node in _nodes(schema)
        if not SKOPS_DATA.fullmatch(node["__loader__"])
    }
    return names | set(skops.io.get_untrusted_types(data=data))


def _nodes(schema: Any) -> Iterator[dict[str, Any]]:
    if isinstance(schema, dict):
        if "__loader__" in schema:
            yield schema
        schema = list(schema.values())
    for part in schema if isinstance(schema, list) else ():
        yield from _nodes(part)


def _assembled(name: str, state: dict[str, Any]) -> Any:
    """Return an object of a listed class, once its attributes are checked, each and together."""
    check_state(name, state)
    if name in BUILDERS:
        return BUILDERS[name][1](state)
    model = build(name, state)
    for attribute in state.keys() & CHECKS.keys():
        CHECKS[attribute](model)
    return model


def _own(cls: Any, items: dict[str, Any]) -> Any:
    """Return data of the library's own; penalties check their arguments themselves."""
    for field in fields(cls) if is_dataclass(cls) else ():
        sound = is_of(items.get(field.name), get_type_hints(cls)[field.name])
        require(sound, f"{field.name!r} of a {cls.__name__} is not as it should be")
    return cls(**items)


def _array(name: str, shape: tuple[int, ...], values: tuple[Any, ...]) -> np.ndarray:
    """Return an array of text or numbers, or of objects."""
    dtype = np.dtype(name)
    size = dtype.itemsize * len(values)
    # without a size, NumPy makes each text as long as the longest
    known = dtype.kind in "biufUO" and dtype.itemsize and size <= MOST_TEXT + 8 * len(values)
    require(known and _is_sound(shape), f"an array of {dtype}")
    if dtype.kind != "O":
        plain = all(isinstance(item, (str, int, float, bool)) for item in values)
        require(plain, "an array of other things than text and numbers")
        return np.array(values, dtype=dtype).reshape(shape)
    array = np.empty(len(values), dtype=object)
    for place, item in enumerate(values):
        array[place] = item
    return array.reshape(shape)


def _is_sound(shape: tuple[int, ...]) -> bool:
    """Return whether a shape is not large in one direction and empty in another."""
    return 0 not in shape or math.prod(length for length in shape if length) <= MOST_EMPTY
