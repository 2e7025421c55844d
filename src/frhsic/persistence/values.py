"""Values as JSON: numbers, text and containers are unchanged, and any other value is an object with
one key that names the type.

Arrays, the text of boosters and models from other libraries are stored in separate entries of the
file, which the JSON refers to by number. An object of this library is stored as the values that
define it: an estimator as its parameters, fitted attributes and weights.
"""

from __future__ import annotations

import io
import json
import math
import os
import re
import zipfile
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from importlib import import_module
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from frhsic._files import Budget
from frhsic.persistence.boosters import checked_text, require
from frhsic.tables.columns import column_of_parts, column_parts

DATA = {
    name: module
    for module, names in {
        "frhsic.estimators": (
            "ParityClassifier ParityRegressor ParityEncoder ParityCoupling FRHSICClassifier"
            " FRHSICRegressor Distilled DistilledClassifier"
        ),
        "frhsic.tables.schema": "ColumnType ReplacingSchema Schema",
        "frhsic.tables.encoding": "Category Scale TableEncoding",
        "frhsic.estimators.additive": "Bins",
        "frhsic.estimators.basis": "SensitiveBasis",
        "frhsic.estimators.constraints": "Constraint",
        "frhsic.estimators.coupling": "DensityRatio JointBasis",
        "frhsic.estimators.deciding": "Decisions",
        "frhsic.estimators.distilled": "ImitationCost",
        "frhsic.estimators.encoder": "Representation",
        "frhsic.estimators.engine": "Engine",
        "frhsic.estimators.families": (
            "BinaryScores ClassScores NumberRanks NumberScores ScoreRanks Units"
        ),
        "frhsic.estimators.folds": "HashedFolds",
        "frhsic.estimators.frontier": "Choice Frontier Gap",
        "frhsic.estimators.prototypes": "Numbers Probabilities Prototypes",
        "frhsic.estimators.solution": "Solution",
        "frhsic.estimators.targets": "KeptTarget",
        "frhsic.parity.strata": "ControlColumn Strata",
        "frhsic.kernels": (
            "Gaussian HalfDistance InverseMultiquadric Laplacian Linear Multiple PerColumn Sum"
        ),
        "frhsic.penalties": (
            "Adversary BinnedAdversary BinnedMMD DistanceCovariance EIPM GDP HSIC NoPenalty"
        ),
        "frhsic.training": "MLP Training",
    }.items()
    for name in names.split()
}
"""The library's own classes, each with its module. A penalty is defined by its arguments, an
estimator by its parameters and fitted attributes, and any other object by the fields of a
dataclass.
"""

ESTIMATORS = [name for name, module in DATA.items() if module == "frhsic.estimators"]
"""Models that can be saved on their own."""

FITTED = re.compile(
    r"n_features_in_|feature_names_in_|sensitive_names_in_|classes_|random_seed_|schema_"
    r"|sensitive_schema_|strata_|engine_|models_|attribute_models_|folds_|solution_"
    r"|frontier_|choice_"
    r"|repeated_|choices_|feature_encoding_|sensitive_encoding_|ratio_|move_cost_"
    r"|untouched_|_table|_schema|_identity|_release|n_fits_|best_epoch_|representation_size_"
    r"|loss_curve_|penalty_curve_|validation_curve_|has_bottleneck_|penalty_|target_mean_"
    r"|target_scale_|_sklearn_output_config"
)
"""Fitted attributes stored in a file, if the model has them."""

# Parts of a network, which are rebuilt before their weights are loaded.
MODULES = ("encoder_", "head_", "penalty_")
# Parameters that may be the user's own code, which is passed again to `load`.
USER_CODE = ("estimator", "encoder", "penalty")

# Cache of the annotations of a class, which take longer to read than an object.
class_hints = cache(get_type_hints)

# Memory of one value, keyed by the character that marks it: in JSON, in LightGBM's text, and in
# nodes of skops and arrays of safetensors.
JSON = {b",": 100, b"[": 200, b"{": 200}
TREE_MARKS = {b" ": 100, b"=": 200}
HEADER_MARKS = {b",": 100, b"{": 3000}

# Nodes of a skops file that can be called: functions, and types other than those of numbers and
# text. SciPy's splines contain a harmless function, which converts to an array.
CALLABLE = re.compile(
    r"(?s)(Method|Partial|OperatorFunc)Node.*|TypeNode builtins\.(?!(bool|int|float|str|object)$).*"
    r"|FunctionNode (?!scipy\.[\w.]+\.numpy\._aliases\.asarray$).*"
)
# Classes of scikit-learn that read files or call methods by name.
NAMED = re.compile(r"sklearn\..*(Stacking|Vectorizer|Chain|Threshold)\w*")


class Writer:
    """Converts values to JSON, and collects the other entries of the file. Custom functions and
    classes among a model's parameters are written by name.
    """

    def __init__(self, model: Any = None) -> None:
        self.custom = {}
        for name in USER_CODE:
            value = getattr(model, name, None)
            if callable(value) and not is_own(value) and not hasattr(value, "get_params"):
                self.custom[id(value)] = {"custom": [name, code_name(value)]}
        self.arrays: dict[str, np.ndarray] = {}
        self.entries: dict[str, bytes] = {}
        self.untrusted: set[str] = set()
        self._models: dict[int, Any] = {}

    def value(self, value: Any) -> Any:
        """Return a value as JSON."""
        if id(value) in self.custom:
            return self.custom[id(value)]
        if isinstance(value, np.generic) or (hasattr(value, "detach") and value.numel() == 1):
            value = value.item()  # a scalar of NumPy, or a tensor
        if isinstance(value, int | float | str | None):
            return value
        if isinstance(value, list):
            return [self.value(item) for item in value]
        if isinstance(value, tuple):
            return {"tuple": [self.value(item) for item in value]}
        if isinstance(value, Mapping):
            return {"dict": {key: self.value(item) for key, item in value.items()}}
        if isinstance(value, np.ndarray):
            return self._array(value)
        if isinstance(value, pd.DataFrame):
            columns = [[name, *column_parts(value[name])] for name in value]
            return {"frame": self.value(columns)}
        name = type(value).__name__
        if is_own(value):
            return {name: {key: self.value(item) for key, item in state_of(value).items()}}
        if name == "Booster" and hasattr(value, "model_to_string"):
            return {"booster": self._entry("txt", checked_text(value.model_to_string()).encode())}
        return self._model(value)

    def _array(self, values: np.ndarray) -> Any:
        if values.dtype.kind in "biuf":
            place = str(len(self.arrays))
            self.arrays[place] = values.copy()
            return {"array": place}
        kind = "U" if values.dtype.kind == "U" else "O"
        return {"objects": [kind, self.value(values.tolist())]}

    def _model(self, value: Any) -> Any:
        """Return a reference to the entry that skops writes for an object; an object that occurs
        repeatedly is written once.
        """
        if id(value) not in self._models:
            import skops.io

            try:
                data = skops.io.dumps(value)
                self.untrusted |= untrusted_names(data, Budget(2**63))
            except Exception as error:  # its attributes may raise anything
                raise TypeError(
                    f"the model contains a {code_name(value)}, which cannot be saved to a file"
                    f" ({error}). If you cannot change that, save the model with joblib.dump, and"
                    " load it only from people you trust."
                ) from error
            self._models[id(value)] = value, {"model": self._entry("skops", data)}
        return self._models[id(value)][1]

    def _entry(self, ending: str, data: bytes) -> str:
        name = f"{len(self.entries)}.{ending}"
        self.entries[name] = data
        return name


@dataclass
class Reader:
    """Recreates the values that :class:`Writer` wrote."""

    arrays: dict[str, np.ndarray]
    entry: Callable[[str], bytes]
    budget: Budget
    trusted: Collection[str] = ()
    given: Mapping[str, Any] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)
    models: dict[str, Any] = field(default_factory=dict)

    def value(self, value: Any) -> Any:
        """Recreate a value from JSON."""
        if isinstance(value, list):
            return [self.value(item) for item in value]
        if not isinstance(value, dict):
            return value
        ((kind, content),) = value.items()
        if kind in DATA:
            cls = own_class(kind)
            return build(cls, {name: self.value(item) for name, item in content.items()})
        require(kind in KINDS, f"{kind!r} is not known to this version")
        return KINDS[kind](self, content)

    def _custom(self, content: Any) -> Any:
        name, code = content
        if self.given.get(name) is None:
            raise ValueError(
                f"the code of its {name}, {code}, is not in the file. Pass {name} again: load(path,"
                f" {name}=...)."
            )
        self.used.add(name)
        return self.given[name]

    def _array(self, place: str) -> np.ndarray:
        values = self.arrays.pop(place)  # no array may be used twice
        # an array that is empty along one axis may be large along another
        self.budget.charge(8 * math.prod(max(length, 1) for length in values.shape))
        return values

    def _objects(self, content: Any) -> np.ndarray:
        kind, values = content
        array = np.empty(len(values), dtype=object)
        array[:] = self.value(values)
        if kind == "U":
            self._charge_texts(len(array), array)
            array = array.astype(str)
        return array

    def _frame(self, content: Any) -> pd.DataFrame:
        parts = self.value(content)
        for _, _, values, levels, _ in parts:
            self._charge_texts(len(values), np.ravel(levels))
        return pd.DataFrame({name: column_of_parts(*own) for name, *own in parts})

    def _charge_texts(self, count: int, texts: Iterable[object]) -> None:
        """Charge the memory budget for an array of text, in which each element may take as much
        memory as the longest text.
        """
        self.budget.charge(4 * count * max(map(len, map(str, texts)), default=1))

    def _booster(self, name: str) -> Any:
        import lightgbm

        text = self.entry(name)
        self.budget.charge_text(text, TREE_MARKS)
        return lightgbm.Booster(model_str=checked_text(text.decode()))

    def _model(self, name: str) -> Any:
        """Read an object of another library if all of its classes are trusted by skops or named in
        `trusted`.
        """
        import skops.io

        if name not in self.models:
            data = self.entry(name)
            names = untrusted_names(data, self.budget)
            if not names <= set(self.trusted):
                raise ValueError(f"it contains classes that may run code. {trusting(names)}")
            self.models[name] = skops.io.loads(data, trusted=sorted(names))
        return self.models[name]


KINDS: dict[str, Callable[[Reader, Any], Any]] = {
    "tuple": lambda reader, items: tuple(reader.value(items)),
    "dict": lambda reader, items: {key: reader.value(item) for key, item in items.items()},
    "custom": Reader._custom,
    "array": Reader._array,
    "objects": Reader._objects,
    "frame": Reader._frame,
    "booster": Reader._booster,
    "model": Reader._model,
}
"""Methods that read values other than plain JSON."""


def trusting(names: Collection[str]) -> str:
    """Return a sentence that explains how to trust classes."""
    shown = ", ".join(map(repr, sorted(names)))
    return f"If you trust its author, pass load(path, trusted=[{shown}]), or --trusted for each."


def code_name(value: Any) -> str:
    """Return the name of a function or class, or the name of the class of any other object."""
    named = value if hasattr(value, "__qualname__") else type(value)
    return f"{named.__module__}.{named.__qualname__}"


def own_class(name: str) -> Any:
    """Return one of the library's own classes."""
    return getattr(import_module(DATA[name]), name)


def is_own(value: Any) -> bool:
    """Return whether an object is an instance of one of the library's own classes."""
    name = type(value).__name__
    return name in DATA and own_class(name) is type(value)


def state_of(value: Any) -> dict[str, Any]:
    """Return the values that define an object of this library."""
    if hasattr(value, "get_params"):
        return estimator_state(value)
    if hasattr(value, "arguments"):
        return dict(value.arguments())
    return {one.name: getattr(value, one.name) for one in fields(value)}


def estimator_state(model: Any) -> dict[str, Any]:
    """Return the parameters and fitted attributes of an estimator and, for a network, the
    weights.
    """
    check_is_fitted(model)
    state: dict[str, Any] = model.get_params(deep=False)
    if not isinstance(state["random_state"], int | None):
        state["random_state"] = model.random_seed_
    if not isinstance(state.get("cv", 0), int):
        state["cv"] = type(model)().cv
    for name, value in vars(model).items():
        if name in state or (name in MODULES and not is_own(value)):
            continue
        if not FITTED.fullmatch(name):
            raise TypeError(f"{name} of the {type(model).__name__} cannot be stored in a file.")
        state[name] = value
    if hasattr(model, "encoder_"):
        from frhsic.persistence import networks

        state["weights"] = networks.weights_of(model)
    return state


def build(cls: Any, state: dict[str, Any]) -> Any:
    """Create an object of this library after checking that its attributes have the annotated types;
    penalties and estimators check their arguments themselves.
    """
    if hasattr(cls, "get_params"):
        return _build_estimator(cls, state)
    if not hasattr(cls, "arguments"):
        hints = class_hints(cls)
        for name, value in state.items():
            require(
                name in hints and is_of(value, hints[name]),
                f"{name!r} of a {cls.__name__} has an invalid value",
            )
    return cls(**state)


def _build_estimator(cls: Any, state: dict[str, Any]) -> Any:
    model = cls()
    parameters = model.get_params(deep=False).keys()
    require(parameters <= state.keys(), "its parameters differ from those of this version")
    weights = state.pop("weights", None)
    for name, value in state.items():
        require(name in parameters or FITTED.fullmatch(name), f"this version has no {name!r}")
        setattr(model, name, value)
    if getattr(model, "n_jobs", None) is not None:
        model.n_jobs = min(model.n_jobs, os.cpu_count() or 1)
    (getattr(model, "_check", None) or model._validate_params)()
    if weights:
        from frhsic.persistence import networks

        networks.complete(model, weights)
    return model


def is_of(value: Any, hint: Any) -> bool:
    """Return whether a value has the annotated type.

    Examples
    --------
    >>> is_of((1, 2.0), tuple[float, ...]), is_of(("a",), tuple[float, ...])
    (True, False)
    """
    kind = get_origin(hint) or hint
    parts = get_args(hint)
    if kind is Any:
        return True
    if kind is Literal:
        return isinstance(value, str | int) and value in parts
    if kind in (Union, UnionType):
        return any(is_of(value, part) for part in parts)
    if kind is float:
        kind = int | float
    if not isinstance(value, kind) or not parts:
        return isinstance(value, kind)
    if kind is dict:
        return all(is_of(key, parts[0]) and is_of(item, parts[1]) for key, item in value.items())
    if kind is tuple and parts[-1] is not ...:
        return len(value) == len(parts) and all(map(is_of, value, parts))
    return all(is_of(item, parts[0]) for item in value)


def untrusted_names(data: bytes, budget: Budget) -> set[str]:
    """Return the classes in a skops file that `trusted` must name; raise an error if the file
    contains anything callable, or a cache folder.
    """
    import skops.io

    nodes: list[Any] = []

    def keep(node: Any) -> Any:
        nodes.append(node)
        return node

    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        budget.charge(sum(entry.file_size for entry in archive.infolist()))
        schema = archive.read("schema.json")
        budget.charge_text(schema, HEADER_MARKS)
        json.loads(schema, object_hook=keep)
        sizes = {name: unpacked_size(archive, name) for name in archive.namelist()}
    for node in nodes:  # each has its own copies of an array
        budget.charge(3 * sizes.get(str(node.get("file")), 0))
    names = set(skops.io.get_untrusted_types(data=data))
    # nodes with the same number are one object
    others = {node.get("__id__") for node in nodes if node.get("content") != "null"}
    for node in nodes:
        name = f"{node.get('__module__')}.{node.get('__class__')}"
        # for old functions, the name is in `content`
        if CALLABLE.fullmatch(f"{node.get('__loader__')} {name}{node.get('content', '')}"):
            raise ValueError(
                f"it contains {name}, a function, which is never saved; instead of a"
                " FunctionTransformer, use your own transformer class"
            )
        folder = node.get("memory")
        if folder and folder["__id__"] in others:
            raise ValueError("it contains a cache folder; set memory=None")
        if NAMED.fullmatch(name):
            names.add(name)
    return names


def unpacked_size(archive: zipfile.ZipFile, name: str) -> int:
    """Return the size of an entry, which may itself be an archive, as for sparse matrices."""
    size = archive.getinfo(name).file_size
    with archive.open(name) as stream:
        if zipfile.is_zipfile(stream):
            size += sum(entry.file_size for entry in zipfile.ZipFile(stream).infolist())
    return size
