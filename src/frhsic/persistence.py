"""Save fitted models to one file and load them again.

A file is an uncompressed zip archive. `model.json` holds versions, parameters, coefficients and the
frontier; `weights.safetensors` the weights of a network; `schema.json` and the arrays beside it are
scikit-learn, LightGBM and XGBoost models in the format of skops. Training rows are not in it,
except in models that are made of them, such as nearest neighbours and couplings, whose columns are
among the weights.

Loading runs no code of the file. JSON and weights are data. Of a skops schema, every node is
compared with a list of classes before anything is built: the estimators of scikit-learn, LightGBM
and XGBoost, the data that they hold, and nothing that can be called, so that predictions run no
code of the file either. An uncompressed file cannot unpack to more than its own size, and trees are
checked to have an end. That is all that is promised. A forged model predicts what its author likes,
and a forged booster, tree or table can crash the process, because those libraries do not check all
of them: load models only from people you trust.

To save another class, add it to `KINDS` with a `Kind`, and its fitted attributes that
are plain data to `PLAIN`. A dataclass among them belongs into `CLASSES`.
"""

from __future__ import annotations

import copy
import io
import json
import math
import re
import zipfile
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import safetensors.torch
import sklearn
import torch
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from frhsic import kernels, penalties
from frhsic._files import write_whole
from frhsic._version import __version__
from frhsic.estimators import (
    FRHSICClassifier,
    FRHSICRegressor,
    ParityClassifier,
    ParityCoupling,
    ParityEncoder,
    ParityRegressor,
)
from frhsic.estimators.conditional import (
    BoostedMeans,
    BoostedTrees,
    ConditionalLaw,
    Hinges,
    SensitiveBasis,
    TreeTable,
)
from frhsic.estimators.coupling import DensityRatio, JointBasis
from frhsic.estimators.frontier import Choice, Frontier, Gap
from frhsic.estimators.network import NetworkEstimator, set_state
from frhsic.estimators.parity import ParityEstimator
from frhsic.estimators.solving import Block, Solution
from frhsic.formatting import printable
from frhsic.kernels import Kernel
from frhsic.penalties import NoPenalty, Penalty
from frhsic.tables.encoding import Category, Number, Quantiles, Robust, TableEncoding
from frhsic.tables.schema import ColumnType, Schema
from frhsic.training import MLP, Training
from frhsic.training.data import seeded
from frhsic.training.result import Bottleneck

__all__ = ["load", "save"]

HEADER, WEIGHTS, SCHEMA = "model.json", "weights.safetensors", "schema.json"
NAMES = re.compile(
    rf"{re.escape(HEADER)}|{re.escape(WEIGHTS)}|{re.escape(SCHEMA)}|\d{{1,9}}\.(npy|bin)"
)

# Limits: bytes and entries of a file; bytes of model.json, of which Python takes about twenty times
# as much memory; bytes of the header of the weights, for the same reason; bytes of an array of
# text, which its JSON does not bound
MOST_BYTES, MOST_ENTRIES, MOST_JSON, MOST_NAMES, MOST_TEXT = 2**30, 10**5, 2**24, 2**20, 2**24

TABLES = (Category, ColumnType, Number, Quantiles, Robust, Schema, TableEncoding)
FITTED = (
    Block,
    Choice,
    DensityRatio,
    Gap,
    JointBasis,
    MLP,
    SensitiveBasis,
    Solution,
    Frontier,
    Training,
)
CLASSES: dict[str, Any] = {cls.__name__: cls for cls in (*TABLES, *FITTED)} | {
    name: cls
    for module, base in ((kernels, Kernel), (penalties, Penalty))
    for name, cls in vars(module).items()
    if isinstance(cls, type)
    and issubclass(cls, base)
    and cls is not base
    and not name.startswith("_")
}
"""What `model.json` can hold beside numbers, text, lists and arrays; built from its fields or its
arguments.
"""

PLAIN: dict[str, Any] = {
    "n_features_in_": int,
    "feature_names_in_": np.ndarray,
    "sensitive_names_in_": np.ndarray,
    "classes_": np.ndarray,
    "random_seed_": int,
    "n_fits_": int,
    "best_epoch_": (int, type(None)),
    "representation_size_": int,
    "loss_curve_": np.ndarray,
    "penalty_curve_": np.ndarray,
    "validation_curve_": (np.ndarray, type(None)),
    "has_bottleneck_": bool,
    "schema_": Schema,
    "sensitive_schema_": Schema,
    "feature_encoding_": TableEncoding,
    "sensitive_encoding_": TableEncoding,
    "penalty_": Penalty,
    "task_": str,
    "target_mean_": (float, int),
    "target_scale_": (float, int),
    "ratio_": DensityRatio,
    "move_cost_": (float, int),
    "untouched_": (float, int),
    "solution_": (Solution, type(None)),
    "frontier_": (Frontier, type(None)),
    "choice_": (Choice, type(None)),
}
"""Fitted attributes that `model.json` holds, as far as a model has them, with their types."""


FIELD_TYPES: dict[str, Any] = {kind.__name__: kind for kind in (int, str, bool, dict, tuple)} | {
    "float": (float, int)
}
"""Types of the fields of dataclasses that are checked, by their annotations."""


@dataclass(frozen=True)
class Kind:
    """How models are written, beside their parameters and plain attributes.

    `complete` checks that what was read fits together, and builds what is left from the tensors,
    which `tensors` returns. `models` names parameters and fitted attributes that hold models, which
    skops writes.
    """

    complete: Callable[[Any, dict[str, Tensor]], None]
    models: Collection[str] = ()
    tensors: Callable[[Any], dict[str, Tensor]] = lambda model: {}


def save(model: Any, path: str | Path) -> None:
    """Write a fitted model to one file. A write that fails leaves no file.

    The code of a function as `estimator`, and of an encoder or a penalty of your own, is not in the
    file: pass the object again to :func:`load`. A `random_state` that is a generator is written as
    the seed drawn from it.

    Examples
    --------
    >>> import tempfile
    >>> model = FRHSICRegressor(penalty_weight=0, random_state=0).fit([[0.0], [1.0]], [1.0, 3.0])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(model, f"{folder}/model.frhsic")
    ...     again = load(f"{folder}/model.frhsic")
    >>> bool((again.predict([[0.5]]) == model.predict([[0.5]])).all())
    True
    """
    write_whole(Path(path), file_bytes(model))


def file_bytes(model: Any) -> bytes:
    """Return the content of the file that :func:`save` writes. Equal models have equal bytes."""
    cls, kind = KINDS.get(type(model).__name__, (None, NETWORK))
    if type(model) is not cls:
        raise TypeError(f"model is {type(model).__name__}; pass a fitted {', '.join(KINDS)}.")
    check_is_fitted(model)
    parameters = model.get_params(deep=False)
    parts = {name: parameters.get(name, getattr(model, name, None)) for name in kind.models}
    functions = {
        name for name, part in parts.items() if callable(part) and not hasattr(part, "get_params")
    }
    parts = {
        name: part for name, part in parts.items() if part is not None and name not in functions
    }
    if isinstance(model, ParityEstimator) and model.models_[0] is model.estimator:
        del parts["models_"]  # a model that was given is a parameter
    plain = {name: to_json(value) for name, value in parameters.items() if name not in parts}
    if _is_custom(plain["random_state"]):
        plain["random_state"] = model.random_seed_
    fitted = {name: to_json(getattr(model, name)) for name in PLAIN if hasattr(model, name)}
    header = {
        "kind": type(model).__name__,
        "versions": {
            "frhsic": __version__,
            "torch": torch.__version__,
            "scikit-learn": sklearn.__version__,
        },
        "parameters": plain,
        "fitted": {name: value for name, value in fitted.items() if not _is_custom(value)},
    }
    tensors = {
        name: values.detach().cpu().contiguous().clone()
        for name, values in kind.tensors(model).items()
    }
    entries = {HEADER: json.dumps(header, allow_nan=False).encode()}
    entries |= {WEIGHTS: safetensors.torch.save(tensors)} if tensors else {}
    entries |= skops_entries(parts) if parts else {}
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in entries.items():
            archive.writestr(zipfile.ZipInfo(name), content)  # without the time of day
    if buffer.tell() > MOST_BYTES:
        raise ValueError(
            f"the file would have {buffer.tell():,} bytes, and {MOST_BYTES:,} are read. Use fewer"
            " trees."
        )
    return buffer.getvalue()


def load(
    path: str | Path,
    *,
    estimator: Any = None,
    encoder: Any = None,
    penalty: Any = None,
    trusted: Collection[str] = (),
) -> Any:
    """Return the fitted model of a file. It predicts bit for bit what the saved one did on the same
    machine.

    A file that is cut off, foreign, changed or forged is a ValueError with the reason. See the
    notes of the module on what is promised of forged files.

    Parameters
    ----------
    path
        File that :func:`save` has written.
    estimator, encoder, penalty
        The function, custom encoder or custom penalty that the model was made with, if it was made
        with one.
    trusted
        Names of classes and functions beyond the list of this library that the file may hold, such
        as those of your own estimators. They can run any code when the model is loaded and when it
        predicts.
    """
    given = {"estimator": estimator, "encoder": encoder, "penalty": penalty}
    with _opened(path) as archive:
        header = _header(archive)
        cls, kind = KINDS[header["kind"]]
        model, names = cls(), archive.namelist()
        parts = skops_parts(archive, frozenset(trusted)) if SCHEMA in names else {}
        weights = archive.read(WEIGHTS) if WEIGHTS in names else b""
        require(
            int.from_bytes(weights[:8], "little") <= MOST_NAMES, "its weights have too many names"
        )
        tensors = safetensors.torch.load(weights) if weights else {}
        require(parts.keys() <= set(kind.models), "it holds models that its kind does not have")
        parameters = {name: part for name, part in parts.items() if not name.endswith("_")}
        parameters |= _parameters(header["parameters"], given)
        require(
            parameters.keys() == model.get_params(deep=False).keys(),
            "it has other parameters than this version",
        )
        model.set_params(**parameters)
        for name, value in header["fitted"].items():
            attribute = from_json(value)
            require(
                name in PLAIN and isinstance(attribute, PLAIN[name]),
                f"{name!r} is not as it should be",
            )
            setattr(model, name, attribute)
        for name, part in parts.items():
            setattr(model, name, part)
        kind.complete(model, tensors)
    return model


# The archive


@contextmanager
def _opened(path: str | Path) -> Iterator[zipfile.ZipFile]:
    """Open a file whose sizes and names are in order; every error of reading it is a ValueError
    that names it.
    """
    file = Path(path)
    if not file.is_file():
        raise FileNotFoundError(f"there is no saved model {str(file)!r}.")
    try:
        require(file.stat().st_size <= MOST_BYTES, f"it is larger than {MOST_BYTES} bytes")
        content = io.BytesIO(file.read_bytes())  # read once: what is checked is what is used
        require(
            content.getvalue().count(b"PK\x01\x02") <= MOST_ENTRIES,
            f"it has more than {MOST_ENTRIES} entries",
        )
        with zipfile.ZipFile(content) as archive:
            entries = archive.infolist()
            names = {entry.filename for entry in entries}
            require(all(map(NAMES.fullmatch, names)), "it has entries that no model has")
            require(len(names) == len(entries), "it has two entries of one name")
            stored = all(e.compress_type == 0 and e.compress_size == e.file_size for e in entries)
            require(stored, "an entry is compressed, or of another size than it says")
            require(
                sum(e.file_size for e in entries) <= len(content.getbuffer()), "its entries overlap"
            )
            yield archive
    except Exception as error:
        detail = str(error) if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"
        raise ValueError(f"{file.name} cannot be loaded: {printable(detail, 2000)}") from error


def _header(archive: zipfile.ZipFile) -> dict[str, Any]:
    require(
        archive.getinfo(HEADER).file_size <= MOST_JSON,
        f"its {HEADER} is larger than {MOST_JSON} bytes",
    )
    header = json.loads(
        archive.read(HEADER), parse_constant=int
    )  # which raises on NaN and Infinity
    require(
        isinstance(header, dict) and header.keys() == {"kind", "versions", "parameters", "fitted"},
        "not a model",
    )
    require(header["kind"] in list(KINDS), f"this version knows no {header['kind']!r}")
    return dict(header)


# JSON


def to_json(value: Any) -> Any:
    """Return a parameter or attribute as JSON. What cannot be built again from JSON is only named,
    under "custom".

    Examples
    --------
    >>> to_json(kernels.Gaussian(0.5))
    {'class': 'Gaussian', 'fields': {'bandwidth': 0.5}}
    >>> to_json(len)
    {'custom': 'builtins.len'}
    """
    if isinstance(value, np.generic) or (isinstance(value, Tensor) and value.numel() == 1):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return {"class": "float", "fields": str(value)}
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (tuple, list)):
        return [to_json(item) for item in value]
    content: Any = None
    if isinstance(value, Mapping):
        content = {str(key): to_json(item) for key, item in value.items()}
    elif isinstance(value, np.ndarray):
        values = [to_json(item) for item in value.ravel().tolist()]
        content = {"dtype": value.dtype.str, "shape": list(value.shape), "values": values}
    elif CLASSES.get(type(value).__name__) is type(value):
        own = (
            value.arguments()
            if isinstance(value, Penalty)
            else {f.name: getattr(value, f.name) for f in fields(value)}
        )
        content = {name: to_json(item) for name, item in own.items()}
    if content is None or _is_custom(content):
        named = value if hasattr(value, "__qualname__") else type(value)
        return {"custom": f"{named.__module__}.{named.__qualname__}"}
    name = {dict: "dict", np.ndarray: "array"}.get(type(value), type(value).__name__)
    return {"class": name, "fields": content}


def from_json(value: Any) -> Any:
    """Return the object that :func:`to_json` has written; lists become tuples.

    Examples
    --------
    >>> from_json(to_json(kernels.Gaussian(0.5) + kernels.Linear())) == kernels.Gaussian(
    ...     0.5
    ... ) + kernels.Linear()
    True
    """
    if isinstance(value, list):
        return tuple(from_json(item) for item in value)
    if not isinstance(value, dict):
        return value
    name, content = value["class"], value["fields"]
    if name == "float":
        return float(content)
    items = {key: from_json(item) for key, item in content.items()}
    if name == "dict":
        return items
    if name == "array":
        dtype, count = np.dtype(items["dtype"]), len(items["values"])
        require(
            dtype.kind in "biufUO" and dtype.itemsize * count <= MOST_TEXT + 8 * count,
            f"an array of {dtype}",
        )
        plain = all(isinstance(item, (str, int, float, bool)) for item in items["values"])
        require(plain, "an array of other things than text and numbers")
        return np.array(items["values"], dtype=dtype).reshape(items["shape"])
    require(name in CLASSES, f"{name!r} is not known to this version")
    cls = CLASSES[name]
    for field in fields(cls) if is_dataclass(cls) else ():
        kind = FIELD_TYPES.get(str(field.type).partition("[")[0])
        require(
            kind is None or isinstance(items.get(field.name), kind),
            f"{field.name!r} of a {name} is of no use",
        )
    return cls(**items)


def _is_custom(value: Any) -> bool:
    """Return whether JSON of :func:`to_json`, or any part of it, only names an object."""
    if isinstance(value, list):
        return any(map(_is_custom, value))
    return isinstance(value, dict) and ("custom" in value or any(map(_is_custom, value.values())))


def _parameters(written: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters of a constructor, with those that the user passed again."""
    parameters = {name: value for name, value in given.items() if value is not None}
    for name, value in written.items():
        if name in parameters:
            continue
        if _is_custom(value):
            raise ValueError(
                f"the model was made with {'a' if name == 'penalty' else 'an'} {name} of the user's"
                f" own, {value.get('custom')}, whose code is not in the file. Pass it again:"
                f" load(path, {name}=...)."
            )
        parameters[name] = from_json(value)
    return parameters


# Networks


def _network_tensors(model: NetworkEstimator) -> dict[str, Tensor]:
    modules = {"encoder": model.encoder_, "head": model.head_, "penalty": model.penalty_}
    return {
        f"{part}.{name}": v
        for part, module in modules.items()
        for name, v in module.state_dict().items()
    }


def _complete_network(model: NetworkEstimator, tensors: dict[str, Tensor]) -> None:
    """Build the modules for the weights of a file and give an estimator what it has learned."""
    encoding, size, own = (
        model.feature_encoding_,
        model.representation_size_,
        isinstance(model.encoder, MLP | None),
    )
    outputs = len(tensors["head.bias"])
    require(model.n_features_in_ == len(encoding.columns), "its columns are of two numbers")
    model._validate_params()
    require(len(getattr(model.encoder, "hidden", ())) <= len(tensors), "it has too few weights")
    if is_classifier(model):
        classes = len(np.unique(model.classes_))
        require(
            classes == len(model.classes_) and outputs == (1 if classes <= 2 else classes),
            "its classes differ",
        )
    elif isinstance(model, FRHSICRegressor):
        require(
            outputs == 1
            and math.isfinite(model.target_mean_)
            and 0 < model.target_scale_ < math.inf,
            "no scale",
        )
    # modules without memory: a file that asks for more weights than it holds is refused before they
    # are made
    with seeded(), torch.device("meta" if own else "cpu"):
        encoder = model._encoder_maker()(encoding.width)
        require(isinstance(encoder, nn.Module), "encoder must make a torch.nn.Module")
        if model.has_bottleneck_:
            encoder = nn.Sequential(encoder, Bottleneck(size))
    with torch.device("meta"):
        head = nn.Linear(size, outputs)
    states: dict[str, dict[str, Tensor]] = {"encoder": {}, "head": {}, "penalty": {}}
    for name, values in tensors.items():
        part, _, rest = name.partition(".")
        states[part][rest] = values
    model.encoder_ = _loaded(encoder, states["encoder"], "encoder", own=own)
    model.head_ = _loaded(head, states["head"], "head", own=True)
    penalty: Any = copy.deepcopy(getattr(model, "penalty_", model.penalty))
    require(isinstance(penalty, Penalty), f"its penalty is {penalty!r}")
    model.penalty_ = penalty
    set_state(model.penalty_, states["penalty"])
    if not isinstance(model.penalty_, NoPenalty):
        model.penalty_.n_attributes = len(model.sensitive_encoding_.columns)


def _loaded(module: nn.Module, state: dict[str, Tensor], part: str, *, own: bool) -> nn.Module:
    if own:
        sound = all(
            v.dtype in (torch.float32, torch.float64) and bool(v.isfinite().all())
            for v in state.values()
        )
        require(sound, f"the {part} has weights that are not finite numbers")
    try:
        module.load_state_dict(state, assign=own)
    except RuntimeError as error:
        raise ValueError(f"the {part} does not fit the weights in the file: {error}") from error
    return module.eval()


# The closed form


def _complete_parity(model: ParityEstimator, tensors: dict[str, Tensor]) -> None:
    """Check that models, coefficients and trade-offs of a file belong together."""
    given = not hasattr(model, "models_")
    if given:
        model.models_ = [model.estimator]
    model._check()
    require(
        isinstance(model.models_, list) and isinstance(model.attribute_models_, list),
        "it has no models",
    )
    solution, frontier, choice = model.solution_, model.frontier_, model.choice_
    if solution is None:
        require(
            frontier is None and choice is None and len(model.models_) == 1,
            "it has no coefficients",
        )
        return
    assert frontier is not None
    assert choice is not None
    attributes, width = len(model.sensitive_names_in_), 0
    for block in solution.blocks:
        starts, mass, values = block.basis.starts, block.basis.mass, block.basis.values
        sound = (
            values.ndim == 2
            and len(starts) == len(mass) == len(values) > 0
            and 0 <= block.attribute < attributes
        )
        require(sound and 0 < block.rate <= 1, "a basis is no basis")
        block.curve(np.zeros((2, attributes)), np.arange(2.0), np.ones(2))
        width += values.shape[1]  # no more than the numbers that are there
    trade_offs, folds, _ = solution.parameters.shape
    require(
        solution.family == model._family() and trade_offs > 1 and solution.scale > 0,
        "its coefficients differ",
    )
    # what it would predict of a row, and what it says of every trade-off, can be computed
    eta = np.full((1, len(model.classes_)) if solution.family == "classes" else 1, 0.5)
    numbers = [
        solution.parameters,
        *(part for block in solution.blocks for part in vars(block.basis).values()),
    ]
    numbers += [
        solution.scores(own, eta, np.zeros((1, width))) for own in solution.at(choice.position)
    ]
    require(
        all(np.isfinite(values).all() for values in numbers), "a coefficient is not a finite number"
    )
    table = frontier.to_frame().astype(float)
    reached = 0 <= choice.position <= trade_offs - 1 == len(table) - 1
    require(reached and frontier.choose(None, True) and str(choice), "its trade-offs differ")
    fitted = attributes if solution.family.startswith("clipped") or not model.uses_sensitive else 0
    require(len(model.models_) == (1 if given else folds), "it has a model too many or too few")
    require(
        list(map(len, model.attribute_models_)) == [fitted] * folds,
        "it has models of S too many or too few",
    )


# The coupling


def _coupling_tensors(model: ParityCoupling) -> dict[str, Tensor]:
    if not len(model.sensitive_names_in_):
        return {}
    handed = np.array([*model._handed.keys(), *model._handed.values()], dtype=np.uint64).reshape(
        2, -1
    )
    arrays = {
        **_columns(model._table),
        "m": model._m,
        "identity": model._identity.view(np.int64),
        "release": model._release,
        "pool": model.pool_,
        "handed": handed.view(np.int64),
    }
    return {name: torch.from_numpy(values) for name, values in arrays.items()}


def _complete_coupling(model: ParityCoupling, tensors: dict[str, Tensor]) -> None:
    """Give a coupling the rows that it hands out."""
    if not len(model.sensitive_names_in_):
        return
    arrays = {name: values.numpy() for name, values in tensors.items()}
    n, basis = len(arrays["m"]), model.ratio_.basis
    table = _table(arrays, n)
    require(
        table.shape[1] == model.n_features_in_ and len(model.models_) == model.cv,
        "its columns or models differ",
    )
    require(len(basis.parts) == len(model.sensitive_names_in_), "its attributes differ")
    require(
        all(len(arrays[name]) == n for name in ("identity", "release", "pool")),
        "its rows differ in number",
    )
    require(
        arrays["m"].shape[1] >= len(model.ratio_.calibration), "its ratio is of no use"
    )  # beside means of y
    rows = np.r_[arrays["release"], arrays["handed"][1]]
    require(
        rows.dtype == np.int64 and ((rows >= -1) & (rows < n)).all(),
        "it hands out rows that it does not have",
    )
    names = getattr(model, "feature_names_in_", None)
    model._table = table.set_axis(range(table.shape[1]) if names is None else names, axis=1)
    model._encoder, model._m, model._release = (
        TreeTable().fit(model._table),
        arrays["m"],
        arrays["release"],
    )
    model._identity, model.pool_ = arrays["identity"].view(np.uint64), arrays["pool"].astype(bool)
    keys, values = arrays["handed"].view(np.uint64)
    model._handed = dict(zip(map(int, keys), map(int, values)))


def _columns(table: pd.DataFrame) -> dict[str, np.ndarray]:
    """Return the columns of a table as numbers, and their types and levels as JSON."""
    arrays, kinds = {}, []
    for j in range(table.shape[1]):
        column, levels, ordered = table.iloc[:, j], None, None
        values: Any = column
        if isinstance(column.dtype, pd.CategoricalDtype):
            values, levels, ordered = (
                column.cat.codes,
                column.cat.categories,
                bool(column.cat.ordered),
            )
        elif column.dtype.kind in "mM":  # dates and durations
            values = column.astype("int64")
        elif column.dtype == object or not isinstance(column.dtype, np.dtype):
            values, levels = pd.factorize(column)
        arrays[f"column {j}"] = np.array(values)
        kinds.append(
            [
                str(column.dtype),
                to_json(levels if levels is None else np.array(levels, object)),
                ordered,
            ]
        )
    return arrays | {"kinds": np.frombuffer(json.dumps(kinds).encode(), dtype=np.uint8).copy()}


def _table(arrays: Mapping[str, np.ndarray], rows: int) -> pd.DataFrame:
    """Return the table that :func:`_columns` has written."""
    columns = {}
    for j, (dtype, levels, ordered) in enumerate(json.loads(arrays["kinds"].tobytes())):
        values, known = arrays[f"column {j}"], from_json(levels)
        require(values.shape == (rows,), "its rows differ in number")
        if known is None:
            columns[j] = pd.Series(values).astype(dtype)
        elif ordered is None:
            columns[j] = pd.Series(
                np.append(known, np.nan)[values], dtype=dtype
            )  # a code of -1 is a missing value
        else:
            columns[j] = pd.Series(
                pd.Categorical.from_codes(values, pd.Index(known.tolist()), ordered)
            )
    return pd.DataFrame(columns)


NETWORK = Kind(_complete_network, tensors=_network_tensors)
CLOSED_FORM = Kind(
    _complete_parity, ("estimator", "attribute_estimator", "models_", "attribute_models_")
)
COUPLING = Kind(_complete_coupling, ("estimator", "models_"), _coupling_tensors)
NETWORKS, CLOSED_FORMS = (
    (FRHSICClassifier, FRHSICRegressor, ParityEncoder),
    (ParityClassifier, ParityRegressor),
)
KINDS: dict[str, tuple[Any, Kind]] = {
    cls.__name__: (cls, kind)
    for some, kind in (
        (NETWORKS, NETWORK),
        (CLOSED_FORMS, CLOSED_FORM),
        ((ParityCoupling,), COUPLING),
    )
    for cls in some
}
"""Every class that is saved, by its name."""


# Models of scikit-learn, LightGBM and XGBoost: written by skops, and read if every part of them is
# listed


# brackets, braces and commas of a schema, of which Python takes about twenty times as much memory
MOST_PARTS = 1_500_000


def require(condition: Any, reason: str) -> None:
    if not condition:
        raise ValueError(f"frhsic.save has not written it: {reason}.")


def skops_entries(parts: Mapping[str, Any]) -> dict[str, bytes]:
    """Return the entries of a skops file.

    Addresses of objects are left out. A reader would build one object for equal addresses, so that
    a small forged schema could stand for a tree of any size.
    """
    import skops.io

    with zipfile.ZipFile(io.BytesIO(skops.io.dumps(dict(parts)))) as archive:
        schema = json.loads(archive.read(SCHEMA))
        files: dict[str, str] = {}
        for _, node in _nodes(schema):
            node.pop("__id__", None)
            if node["__class__"] == "Booster" and node["__module__"] == "lightgbm.basic":
                handle = node["content"]["content"]["_handle"]
                # by which LightGBM reads trees in threads whose errors end the process
                handle["content"] = json.dumps(
                    re.sub(r"tree_sizes=.*\n", "", json.loads(handle["content"]))
                )
            if "file" in node:
                node["file"] = files.setdefault(
                    node["file"], f"{len(files)}{Path(node['file']).suffix}"
                )
        text = json.dumps(schema).encode()
        if _parts_in(text) > MOST_PARTS:
            raise ValueError(
                f"the models have {_parts_in(text)} parts; a file holds {MOST_PARTS}. Use fewer"
                " trees."
            )
        return {SCHEMA: text} | {new: archive.read(old) for old, new in files.items()}


def skops_parts(archive: zipfile.ZipFile, trusted: frozenset[str]) -> dict[str, Any]:
    """Return the models of a file, once every node of its schema is known to be data or of a class
    that is listed.
    """
    import skops.io

    text = archive.read(SCHEMA)
    require(_parts_in(text) <= MOST_PARTS, f"its {SCHEMA} has more than {MOST_PARTS} parts")
    schema, listed = json.loads(text), _listed()
    require(
        schema["protocol"] > 0, "its protocol is too old"
    )  # in which a function has another name than it says
    used, unknown, read = set(trusted), set(), 0
    for attribute, node in _nodes(schema):
        require("__id__" not in node, "it shares objects")
        name, loader = f"{node['__module__']}.{node['__class__']}", node["__loader__"]
        if loader == "MethodNode":
            name += f".{node['content']['func']}"
        used.add(name)
        known = name in listed.get(loader, ()) and (
            loader != "TypeNode" or attribute in TYPE_ATTRIBUTES
        )
        if loader != "JsonNode" and name not in trusted and not known:
            unknown.add(name)
        if loader == "JsonNode" and attribute in ALLOWED_VALUES:
            value = json.loads(node["content"])
            require(value in ALLOWED_VALUES[attribute], f"{attribute} is {value!r}")
        read += archive.getinfo(node["file"]).file_size if "file" in node else 0
        _check_trees(archive, name, node)
    if unknown:
        names = ", ".join(repr(name) for name in sorted(unknown))
        raise ValueError(
            f"it holds {names}, which may run code. If you trust its author, pass load(path,"
            f" trusted=[{names}])."
        )
    require(
        read <= 4 * sum(e.file_size for e in archive.infolist()), "its arrays are used too often"
    )
    assert archive.fp is not None
    archive.fp.seek(0)
    return dict(
        skops.io.loads(archive.fp.read(), trusted=sorted(used))
    )  # which copies the list for every node


def _parts_in(text: bytes) -> int:
    return sum(map(text.count, (b"{", b"[", b",")))


def _nodes(schema: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield what skops builds, the nodes of a schema, each with the name of the attribute that
    holds it.
    """
    return ((name, value) for name, value in _dictionaries(schema) if "__loader__" in value)


def _dictionaries(content: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the dictionaries of a JSON text, each with the name of what holds it."""
    stack = [("", content)]
    while stack:
        name, value = stack.pop()
        if isinstance(value, dict):
            yield name, value
            stack.extend((name if key == "content" else key, item) for key, item in value.items())
        elif isinstance(value, list):
            stack.extend((name, item) for item in value)


def _check_trees(archive: zipfile.ZipFile, name: str, node: dict[str, Any]) -> None:
    """Refuse trees that would run for ever, or take more memory than the file, when they
    predict.
    """
    content = node.get("content", {})
    if name == "lightgbm.basic.Booster":
        _check_lightgbm(json.loads(content["content"]["_handle"]["content"]))
    elif name == "xgboost.core.Booster":
        _check_xgboost(archive.read(content["content"]["handle"]["file"]))
    elif node["__loader__"] == "TreeNode" or name.endswith(".TreePredictor"):
        file = io.BytesIO(archive.read(content["content"]["nodes"]["file"]))
        nodes, histogram = (
            np.lib.format.read_array(file, allow_pickle=False),
            name.endswith(".TreePredictor"),
        )
        leaf = nodes["is_leaf"] == 1 if histogram else nodes["left_child"] == -1
        for side in ("left", "right") if histogram else ("left_child", "right_child"):
            _require_end(nodes[side].astype(np.int64), leaf)
        if not histogram:
            columns, feature = (
                json.loads(node["__reduce__"]["args"]["content"][0]["content"]),
                nodes["feature"],
            )
            require(
                ((feature < columns) & (leaf | (feature >= 0))).all(), "a tree of other columns"
            )


def _check_lightgbm(text: str) -> None:
    require("tree_sizes" not in text, "a booster of another writer")
    columns = int(re.findall(r"max_feature_idx=(.*)", text)[0])
    for block in re.split(r"[\r\n]\s*Tree\s*=", text):
        pairs = [line.partition("=")[::2] for line in re.split(r"[\r\n]", block)]
        pairs = [
            (key.strip(), value)
            for key, value in pairs
            if key.strip() in (*BOOSTER_SIZES, *BOOSTER_LISTS)
        ]
        values = {key: np.array(value.split(), dtype=np.int64) for key, value in pairs}
        sizes = [int(values[key][0]) for key in BOOSTER_SIZES if key in values]
        fits = len(values) == len(pairs) and max(sizes, default=0) <= len(text)
        require(fits, "a booster of more parts than its text has")
        if "num_leaves" in values:
            left, right, features = (values.get(key, np.zeros(0)) for key in BOOSTER_LISTS)
            same = len(left) == len(right) == len(features) == values["num_leaves"][0] - 1
            require(same and (features <= columns).all(), "a tree of a booster without branches")
            for child in (left, right):
                _require_end(child, (child < 0) & (child >= -len(child) - 1))


def _check_xgboost(content: bytes) -> None:
    from xgboost import Booster

    booster = Booster()
    booster.__setstate__({"handle": bytearray(content)})
    learner = json.loads(booster.save_raw("json"))["learner"]
    sizes = {
        key: int(learner["learner_model_param"][key])
        for key in ("num_feature", "num_class", "num_target")
    }
    outputs = max(sizes["num_class"], sizes["num_target"], 1)
    for _, part in _dictionaries(learner):
        require(
            all(0 <= group < outputs for group in part.get("tree_info", [])), "a tree of no class"
        )
        if "left_children" in part:
            left, right, features = (np.array(part[key]) for key in XGBOOST_LISTS)
            inner = left != -1
            columns = (features >= 0) & (features < sizes["num_feature"])
            require(columns[inner].all(), "a tree of other columns")
            # each node is the child of one other, and the root of none: so every path has an end
            children = np.sort(np.concatenate([left[inner], right[inner]]))
            once = (np.diff(children, prepend=0) > 0).all() and (children < len(left)).all()
            require(once, "a tree without an end")


def _require_end(child: np.ndarray, leaf: np.ndarray) -> None:
    place = np.arange(len(child))
    require((leaf | ((place < child) & (child < len(child)))).all(), "a tree without an end")


BOOSTER_SIZES = ("num_class", "num_tree_per_iteration", "max_feature_idx", "num_leaves", "num_cat")
XGBOOST_LISTS = ("left_children", "right_children", "split_indices")
BOOSTER_LISTS = ("left_child", "right_child", "split_feature")

TYPE_ATTRIBUTES = ("dtype", "key_types", "default_factory")
"""Where fitted models hold a type, such as that of the numbers of an encoder; elsewhere it would be
called.
"""

METHODS = (None, "auto", "predict", "predict_proba", "predict_log_proba", "decision_function")
ALLOWED_VALUES: dict[str, tuple[Any, ...]] = {
    "stack_method": METHODS,
    "stack_method_": METHODS,
    "chain_method": METHODS,
    "chain_method_": METHODS,
    "response_method": METHODS,
    "_response_method": METHODS,
    "input": ("content",),
    "pool_size": (4,),
    "n_jobs": (None, *range(-256, 257)),
}
"""Values of attributes by which a model would call any method of any object, read files, or take
much memory
or many threads."""

INTERNAL = {
    "lightgbm.basic": "Booster",
    "lightgbm.sklearn": "LGBMClassifier LGBMRegressor",
    "sklearn.calibration": "_CalibratedClassifier _SigmoidCalibration",
    "sklearn.ensemble._hist_gradient_boosting.binning": "_BinMapper",
    "sklearn.ensemble._hist_gradient_boosting.predictor": "TreePredictor",
    "sklearn.metrics._scorer": "_PassthroughScorer",
    "sklearn.model_selection._split": "KFold StratifiedKFold",
    "sklearn.neural_network._stochastic_optimizers": "AdamOptimizer SGDOptimizer",
    "xgboost.core": "Booster",
    "xgboost.sklearn": "XGBClassifier XGBRegressor XGBRFClassifier XGBRFRegressor",
}
"""Classes beyond the public estimators of scikit-learn that fitted models hold."""


@cache
def _listed() -> dict[str, frozenset[str]]:
    """Return what each loader of skops may build. Loaders that are missing here build what can be
    called.
    """
    from sklearn._loss import _loss, link, loss
    from sklearn.utils import Bunch, all_estimators

    estimators = {
        cls
        for _, cls in all_estimators()
        if not any("__call__" in vars(base) for base in cls.__mro__)
    }
    parts = {
        cls
        for module in (link, loss)
        for cls in vars(module).values()
        if getattr(cls, "__module__", "") == module.__name__
    }
    scalars = {
        cls for cls in np.sctypeDict.values() if issubclass(cls, (np.number, np.bool_, np.str_))
    }
    ours = (TreeTable, BoostedMeans, BoostedTrees, ConditionalLaw, Hinges)
    names = {f"{cls.__module__}.{cls.__name__}" for cls in (*ours, *estimators, *parts)}
    names |= {f"{module}.{name}" for module, own in INTERNAL.items() for name in own.split()}
    losses = {
        f"{_loss.__name__}.{name}"
        for name in vars(_loss)
        if name.startswith("Cy") and "Function" not in name
    }
    by_loader: dict[str, set[Any]] = {
        "DictNode": {dict, Bunch, "collections.OrderedDict"},
        "DefaultDictNode": {"collections.defaultdict"},
        "ListNode": {list},
        "TupleNode": {tuple},
        "SetNode": {set},
        "SliceNode": {slice},
        "BytesNode": {bytes},
        "BytearrayNode": {bytearray},
        "TypeNode": {
            int,
            float,
            str,
            bool,
            list,
            dict,
            tuple,
            type(None),
            "collections.OrderedDict",
            *scalars,
        },
        "NdArrayNode": {np.ndarray, *scalars},
        "MaskedArrayNode": {np.ma.MaskedArray},
        "DTypeNode": {np.dtype},
        "RandomStateNode": {np.random.RandomState},
        "RandomGeneratorNode": {np.random.Generator},
        "TreeNode": {"sklearn.tree._tree.Tree"},
        "LossNode": losses,
        "ObjectNode": names,
    }
    return {
        loader: frozenset(
            cls if isinstance(cls, str) else f"{cls.__module__}.{cls.__name__}" for cls in classes
        )
        for loader, classes in by_loader.items()
    }
