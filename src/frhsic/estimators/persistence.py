"""Save fitted models to one file and load them again.

A file is a safetensors file. Its tensors are the weights of encoder and head, the state of the penalty and the
training curves. Its metadata hold a JSON header under the key "frhsic": the number of the layout, versions, the
estimator and its parameters, the architecture, the columns with their scales and levels, the classes, and a SHA-256
checksum of the header and the tensors. Any reader of safetensors can read it, :func:`describe` returns it, and reading
it executes nothing. The checksum finds damage, not forgery: anyone can write a file with a right one. Load models only
from people whom you trust to give you a model; a bad file cannot do worse than predict badly.
"""

from __future__ import annotations

import copy
import hashlib
import inspect
import json
from dataclasses import asdict, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import sklearn
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file
from safetensors.torch import save as to_bytes
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from frhsic import kernels, penalties
from frhsic._files import write_whole
from frhsic._version import __version__
from frhsic.estimators.header import InvalidHeaderError, check_header, check_tensors, reading
from frhsic.fleet import Bottleneck, affine_head, mlp_encoder
from frhsic.fleet.randomness import seeded
from frhsic.kernels import Kernel
from frhsic.penalties import NoPenalty, Penalty
from frhsic.tables import Category, Number, TableEncoding

if TYPE_CHECKING:
    from frhsic.estimators.base import ParityBase

LAYOUT = 2
"""Number of the layout that is written. Layout 2 added the bottleneck; files with a larger number are refused."""

KEY = "frhsic"
ESTIMATORS = ("ParityClassifier", "ParityEncoder", "ParityRegressor")
LEARNED = (
    "n_features_in_",
    "representation_size_",
    "random_seed_",
    "n_fits_",
    "target_mean_",
    "target_scale_",
    "task_",
    "feature_encoding_",
    "sensitive_encoding_",
)
NAMES = ("feature_names_in_", "sensitive_names_in_")
CURVES = ("loss_curve_", "penalty_curve_")
BEFORE_THEY_EXISTED = {"weight_decay": 0.0, "variance_floor": 0.0}
"""Parameters that the first files do not have, and the values those models were trained with."""

RENAMED_CLASSES: dict[str, str] = {}
"""Old to new name of each renamed kernel or penalty. Whoever renames one adds it here, so that old files still load."""

RENAMED_ARGUMENTS = {"estimator": "statistic", "standardise_scores": "standardize_scores", "fewest": "min_rows"}
"""Old to new name of each renamed argument of a kernel or penalty. Applied to an old file where the class has the new
name. Whoever renames an argument adds it here."""

RENAMED_VALUES = {"standardised": "standardized", "normalised": "normalized"}
"""Old to new spelling of each renamed option. Applied to every argument of a kernel or penalty in an old file. Whoever
renames an option adds it here."""


def save(model: ParityBase, path: str | Path) -> None:
    """Write a fitted model to one file. A write that fails leaves no file.

    The file holds the weights of a custom encoder or penalty, but not its code: pass the object again to :func:`load`.
    A `random_state` that is a generator is written as the seed drawn from it.

    Examples
    --------
    >>> import tempfile
    >>> from frhsic.estimators import ParityRegressor
    >>> model = ParityRegressor(penalty_weight=0, epochs=1, random_state=0).fit([[0.0], [1.0]], [1.0, 3.0])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(model, f"{folder}/model.frhsic")
    ...     again = load(f"{folder}/model.frhsic")
    >>> bool((again.predict([[0.5]]) == model.predict([[0.5]])).all())
    True
    """
    write_whole(Path(path), file_bytes(model))


def file_bytes(model: ParityBase) -> bytes:
    """Return the content of the file that :func:`save` writes."""
    if type(model) not in _classes().values():
        raise TypeError(f"model is {type(model).__name__}; pass a fitted {', '.join(ESTIMATORS)}.")
    check_is_fitted(model)
    header, tensors = _header(model), _tensors(model)
    header["checksum"] = _checksum(header, tensors)
    content: bytes = to_bytes(tensors, {KEY: json.dumps(header, allow_nan=False)})
    return content


def load(path: str | Path, *, encoder: Any = None, penalty: Any = None) -> Any:
    """Return the fitted model of a file. It predicts bit for bit what the saved one did on the same device.

    A file that is cut off, foreign, of a newer version or changed since it was written is refused with the reason.

    Parameters
    ----------
    path
        File that :func:`save` has written.
    encoder, penalty
        The custom encoder or penalty that the model was made with, if it was made with one.
    """
    header, name = describe(path), Path(path).name
    with reading(name):
        tensors = load_file(path)
        written, current = header.get("checksum"), _checksum(header, tensors)
    if written != current:
        raise ValueError(
            f"{name} is not what was written: its checksum is {current[:12]}..., it says {str(written)[:12]}... "
            "Get the file again."
        )
    with reading(name):
        check_header(header)
        check_tensors(header, tensors, CURVES)
    if penalty is not None and not isinstance(penalty, Penalty):
        raise TypeError(f"penalty is {penalty!r}; pass an object such as the one that was trained with.")
    model = _classes()[header["estimator"]]()
    made = _given_encoder(encoder, header["architecture"])
    with reading(name):
        parameters = _parameters(header, {"encoder": encoder, "penalty": penalty})
        if not parameters.keys() <= model.get_params(deep=False).keys():
            raise InvalidHeaderError("it has parameters that this version does not know")
        model.set_params(**parameters)
        _restore(model, header, tensors, made)
    return model


def describe(path: str | Path) -> dict[str, Any]:
    """Return the header of a saved model as plain dictionaries, without building the model or checking its checksum."""
    file = Path(path)
    if not file.is_file():
        raise FileNotFoundError(f"there is no saved model {str(file)!r}.")
    try:
        with safe_open(file, framework="pt") as opened:
            metadata = opened.metadata() or {}
    except (SafetensorError, OSError) as error:
        raise ValueError(
            f"{file.name} is not a whole safetensors file: {str(error)[:200]}. It may have been cut off."
        ) from error
    try:
        header = json.loads(metadata[KEY])
        layout = header["layout"]
        versions = header.get("versions")
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise ValueError(f"{file.name} is a safetensors file, but not one that frhsic.save has written.") from error
    if not isinstance(layout, int) or not 1 <= layout <= LAYOUT:
        version = versions.get("frhsic", "?") if isinstance(versions, dict) else "?"
        raise ValueError(
            f"{file.name} has layout {str(layout)[:20]}, written by frhsic {str(version)[:20]}; "
            f"this is frhsic {__version__}, which reads layouts up to {LAYOUT}. Load it with a newer version."
        )
    return dict(header)


def set_state(penalty: Penalty, state: dict[str, Tensor]) -> None:
    """Put tensors into the buffers of a penalty, including those that are None until it is prepared."""
    for name, values in state.items():
        *path, last = name.split(".")
        owner = penalty.get_submodule(".".join(path))
        if last in owner._parameters:
            if owner.get_parameter(last).shape != values.shape:
                raise ValueError(f"the state {name!r} of {type(penalty).__name__} has shape {tuple(values.shape)}.")
            with torch.no_grad():
                owner.get_parameter(last).copy_(values)
        elif last in owner._buffers:
            owner._buffers[last] = values
        else:
            raise ValueError(f"{type(penalty).__name__} has no state {name!r}; it is not the penalty of this file.")


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
        return {"table": [{name: to_json(item) for name, item in asdict(column).items()} for column in value.columns]}
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
        columns = [{name: from_json(item) for name, item in column.items()} for column in value["table"]]
        return TableEncoding(tuple(Category(**c) if "levels" in c else Number(**c) for c in columns))
    for kind, module, base in (("kernel", kernels, Kernel), ("penalty", penalties, Penalty)):
        if kind in value:
            name = str(RENAMED_CLASSES.get(value[kind], value[kind]))
            cls = getattr(module, name, None)
            if not isinstance(cls, type) or not issubclass(cls, base) or cls is base:
                raise ValueError(f"the {kind} {name!r} is not known to this version of frhsic.")
            return cls(**_renamed(cls, {key: from_json(item) for key, item in value["arguments"].items()}))
    raise ValueError(f"{value.get('custom', value)!r} cannot be built from a file.")


def is_custom(value: Any) -> bool:
    """Return whether JSON of :func:`to_json`, or any part of it, only names an object."""
    if isinstance(value, list):
        return any(map(is_custom, value))
    return isinstance(value, dict) and ("custom" in value or any(map(is_custom, value.values())))


def _custom(value: Any) -> dict[str, str]:
    named = value if hasattr(value, "__qualname__") else type(value)
    return {"custom": f"{named.__module__}.{named.__qualname__}"}


def _renamed(cls: type, arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of an older file in the names and spellings of today."""
    known = inspect.signature(cls).parameters
    names = {old: new for old, new in RENAMED_ARGUMENTS.items() if new in known}
    current: dict[str, Any] = {
        names.get(name, name): RENAMED_VALUES.get(value, value) if isinstance(value, str) else value
        for name, value in arguments.items()
    }
    if "representation_weight" in current:  # now a factor of the kernel
        factor = current.pop("representation_weight")
        current["kernel_z"] = current["kernel_z"] if factor == 1 else factor * current["kernel_z"]
    return current


def _classes() -> dict[str, type[ParityBase]]:
    from frhsic import estimators  # imported here because the estimators import this module

    return {name: getattr(estimators, name) for name in ESTIMATORS}


def _header(model: ParityBase) -> dict[str, Any]:
    parameters = {name: to_json(value) for name, value in model.get_params(deep=False).items()}
    if is_custom(parameters["random_state"]):
        parameters["random_state"] = model.random_seed_
    learned: dict[str, Any] = {name: to_json(getattr(model, name)) for name in LEARNED if hasattr(model, name)}
    learned |= {name: [str(label) for label in getattr(model, name)] for name in NAMES if hasattr(model, name)}
    if hasattr(model, "classes_"):
        learned["classes_"] = _labels(model.classes_)
    head = model.head_
    assert isinstance(head, nn.Linear)
    return {
        "layout": LAYOUT,
        "versions": {"frhsic": __version__, "torch": torch.__version__, "scikit-learn": sklearn.__version__},
        "estimator": type(model).__name__,
        "parameters": parameters,
        "architecture": {
            "encoder": "mlp_encoder" if model.encoder is None else parameters["encoder"],
            "columns": model.feature_encoding_.width,
            "hidden": [int(size) for size in model.hidden_layer_sizes],
            "head": [head.in_features, head.out_features],
            "bottleneck": model.has_bottleneck_,
        },
        "penalty": to_json(model.penalty_),
        "learned": learned,
    }


def _tensors(model: ParityBase) -> dict[str, Tensor]:
    modules = {"encoder": model.encoder_, "head": model.head_, "penalty": model.penalty_}
    tensors = {f"{part}.{name}": v for part, module in modules.items() for name, v in module.state_dict().items()}
    tensors |= {name: torch.from_numpy(np.array(getattr(model, name))) for name in CURVES}
    return {name: values.detach().cpu().contiguous().clone() for name, values in tensors.items()}


def _parameters(header: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """Return the constructor's parameters, with the custom encoder and penalty that were passed again."""
    parameters: dict[str, Any] = dict(BEFORE_THEY_EXISTED)
    for name, value in header["parameters"].items():
        if given.get(name) is not None:
            parameters[name] = given[name]
        elif is_custom(value):
            raise ValueError(
                f"the model was made with {'an' if name == 'encoder' else 'a'} {name} of the user's own, "
                f"{value['custom']}, which a file cannot hold. Pass it again: load(path, {name}=...)."
            )
        else:
            parameters[name] = from_json(value)
    return parameters


def _restore(model: ParityBase, header: dict[str, Any], tensors: dict[str, Tensor], encoder: nn.Module | None) -> None:
    """Give an estimator that has its parameters the fitted state of a file."""
    for name, value in header["learned"].items():
        if name == "classes_":
            model.classes_ = np.array(value["values"], dtype=value["dtype"])
        else:
            setattr(model, name, np.array(value, dtype=object) if name in NAMES else from_json(value))
    architecture = header["architecture"]
    model.has_bottleneck_ = architecture.get("bottleneck", False)
    size, outputs = architecture["head"]
    with seeded():  # the initial weights that layers draw are overwritten
        body = mlp_encoder(architecture["columns"], architecture["hidden"], size) if encoder is None else encoder
        head = affine_head(size, outputs)
    body = nn.Sequential(body, Bottleneck(size)) if model.has_bottleneck_ else body
    model.encoder_, model.head_ = _loaded(body, tensors, "encoder"), _loaded(head, tensors, "head")
    penalty = model.penalty if is_custom(header["penalty"]) else from_json(header["penalty"])
    if not isinstance(penalty, Penalty):
        raise ValueError(
            "the model was trained with a penalty of the user's own; pass it again: load(path, penalty=...)."
        )
    model.penalty_ = copy.deepcopy(penalty)
    set_state(model.penalty_, _state(tensors, "penalty"))
    if not isinstance(penalty, NoPenalty):
        model.penalty_.n_attributes = len(model.sensitive_encoding_.columns)
    for name in CURVES:
        setattr(model, name, tensors[name].numpy())


def _given_encoder(custom: Any, architecture: dict[str, Any]) -> nn.Module | None:
    """Return the encoder that the user passed again, made anew."""
    if custom is None:
        return None
    with seeded():
        encoder = copy.deepcopy(custom) if isinstance(custom, nn.Module) else custom(architecture["columns"])
    if not isinstance(encoder, nn.Module):
        raise TypeError(f"encoder made {type(encoder).__name__}; it must make a torch.nn.Module.")
    return encoder


def _loaded(module: nn.Module, tensors: dict[str, Tensor], part: str) -> nn.Module:
    try:
        module.load_state_dict(_state(tensors, part))
    except RuntimeError as error:
        raise ValueError(f"the {part} does not fit the weights in the file: {error}") from error
    return module.eval()


def _state(tensors: dict[str, Tensor], part: str) -> dict[str, Tensor]:
    prefix = f"{part}."
    return {name.removeprefix(prefix): values for name, values in tensors.items() if name.startswith(prefix)}


def _labels(classes: np.ndarray) -> dict[str, Any]:
    values = classes.tolist()
    if not all(isinstance(value, (str, int, float, bool)) for value in values):
        raise TypeError(f"class labels {values!r} cannot be written as JSON; use text or numbers as labels.")
    return {"dtype": classes.dtype.str if classes.dtype != object else "object", "values": values}


def _checksum(header: dict[str, Any], tensors: dict[str, Tensor]) -> str:
    signed = {name: value for name, value in header.items() if name != "checksum"}
    digest = hashlib.sha256(json.dumps(signed, sort_keys=True).encode())
    for name in sorted(tensors):
        values = tensors[name]
        digest.update(f"{name} {values.dtype} {tuple(values.shape)}".encode())
        digest.update(values.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes() if values.numel() else b"")
    return digest.hexdigest()
