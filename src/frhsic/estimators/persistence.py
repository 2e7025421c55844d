"""Save fitted models to one file and load them again.

A file is a safetensors file. Its tensors are the weights of encoder and head, the state of the penalty and the
training curves; of boosted trees, the bytes of the booster's own text format. Its metadata hold a JSON header under the
key "frhsic": the number of the layout, versions, the estimator and its parameters, the architecture, the columns with
their scales and levels, the classes, and a SHA-256 checksum of the header and the tensors. Any reader of safetensors
can read it, :func:`describe` returns it, and reading it executes nothing. The checksum finds damage, not forgery:
anyone can write a file with a right one. Load models only from people whom you trust to give you a model.
"""

from __future__ import annotations

import copy
import hashlib
import json
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

from frhsic._files import write_whole
from frhsic._version import __version__
from frhsic.estimators import transport_files
from frhsic.estimators.base_files import base_from_file, base_parameter, base_to_file
from frhsic.estimators.ensemble import EncoderEnsemble, encoders_in
from frhsic.estimators.header import InvalidHeaderError, check_header, check_tensors, reading
from frhsic.estimators.plain import from_json, is_custom, labels_from_json, labels_to_json, to_json
from frhsic.fleet import Bottleneck, affine_head, mlp_encoder
from frhsic.fleet.randomness import seeded
from frhsic.penalties import NoPenalty, Penalty
from frhsic.transport import ScoreTransport

if TYPE_CHECKING:
    from frhsic.estimators.base import ParityBase

LAYOUT = 3
"""Number of the layout that is written; files with a larger number are refused. Layout 2 added the bottleneck, layout 3
the base model, several encoders of columns, the activation of the encoder, ensembles and early stopping."""

KEY = "frhsic"
ESTIMATORS = ("ParityClassifier", "ParityEncoder", "ParityRegressor")
LEARNED = (
    "n_features_in_",
    "representation_size_",
    "random_seed_",
    "n_fits_",
    "best_epochs_",
    "target_mean_",
    "target_scale_",
    "task_",
    "feature_encoding_",
    "sensitive_encoding_",
)
NAMES = ("feature_names_in_", "sensitive_names_in_")
CURVES = ("loss_curve_", "penalty_curve_", "validation_curve_")
BEFORE_THEY_EXISTED: dict[str, Any] = {
    "base": None,
    "weight_decay": 0.0,
    "variance_floor": 0.0,
    "activation": "selu",
    "schedule": "constant",
    "early_stopping": False,
    "ensemble": 1,
    "scaling": "range",
    "reconstruct": "columns",
}
"""Parameters that older files do not have, and the values those models were trained with."""


def save(model: Any, path: str | Path) -> None:
    """Write a fitted model to one file. A write that fails leaves no file.

    The file holds the weights of a custom encoder or penalty, but not its code: pass the object again to :func:`load`.
    Boosted trees are written as arrays, a base of LightGBM or XGBoost in its own format, and any other scikit-learn
    estimator by skops (``pip install 'frhsic[skops]'``), if it consists of types of scikit-learn, NumPy and SciPy.
    A `random_state` that is a generator is written as the seed drawn from it. A
    :class:`~frhsic.transport.ScoreTransport` is written with the sorted values of S of the rows that it was fitted on.

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


def file_bytes(model: Any) -> bytes:
    """Return the content of the file that :func:`save` writes."""
    from frhsic.boosting import files  # imported here because boosted estimators import this module to save

    if type(model) in files.CLASSES.values():
        check_is_fitted(model)
        header, tensors = files.header_of(model), files.tensors_of(model)
        header["layout"], header["versions"]["frhsic"] = LAYOUT, __version__
    elif type(model) is ScoreTransport:
        check_is_fitted(model)
        header, tensors = transport_files.header_of(model), transport_files.tensors_of(model)
        header["layout"], header["versions"]["frhsic"] = LAYOUT, __version__
    elif type(model) in _classes().values():
        check_is_fitted(model)
        base, base_tensors = base_to_file(model.base_)
        header = {**_header(model), "base": base}
        tensors = _tensors(model) | {f"base.{name}": values for name, values in base_tensors.items()}
    else:
        known = ", ".join([*ESTIMATORS, *files.CLASSES, "ScoreTransport"])
        raise TypeError(f"model is {type(model).__name__}; pass a fitted {known}.")
    header["checksum"] = _checksum(header, tensors)
    content: bytes = to_bytes(tensors, {KEY: json.dumps(header, allow_nan=False)})
    return content


def load(path: str | Path, *, encoder: Any = None, penalty: Any = None, base: Any = None) -> Any:
    """Return the fitted model of a file. It predicts bit for bit what the saved one did on the same device.

    A file that is cut off, foreign, of a newer version or changed since it was written is refused with the reason.

    Parameters
    ----------
    path
        File that :func:`save` has written.
    encoder, penalty
        The custom encoder or penalty that the model was made with, if it was made with one.
    base
        The function or object that the model was made with as its base. All other bases are in the file.
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
    from frhsic.boosting import files  # see file_bytes

    if str(header.get("estimator")) in files.CLASSES:
        with reading(name):
            return files.model_of(header, tensors)
    if header.get("estimator") == "ScoreTransport":
        with reading(name):
            return transport_files.transport_of(header, tensors)
    with reading(name):
        check_header(header)
        check_tensors(header, tensors, CURVES)
    if penalty is not None and not isinstance(penalty, Penalty):
        raise TypeError(f"penalty is {penalty!r}; pass an object such as the one that was trained with.")
    model = _classes()[header["estimator"]]()
    made = _given_encoders(encoder, header["architecture"])
    with reading(name):
        parameters = _parameters(header, {"encoder": encoder, "penalty": penalty})
        if not parameters.keys() <= model.get_params(deep=False).keys():
            raise InvalidHeaderError("it has parameters that this version does not know")
        if not isinstance(parameters.get("device", "auto"), str):
            raise InvalidHeaderError("its device is not a name")
        model.set_params(**parameters)
        _restore(model, header, tensors, made, base)
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
        learned["classes_"] = labels_to_json(model.classes_)
    head = model.head_
    assert isinstance(head, nn.Linear)
    return {
        "layout": LAYOUT,
        "versions": {"frhsic": __version__, "torch": torch.__version__, "scikit-learn": sklearn.__version__},
        "estimator": type(model).__name__,
        "parameters": parameters,
        "architecture": {
            "encoder": "mlp_encoder" if model.encoder is None else parameters["encoder"],
            "columns": model.feature_encoding_.width + (0 if model.base_ is None else model.base_.width),
            "hidden": [int(size) for size in model.hidden_layer_sizes],
            "activation": model.activation,
            "head": [head.in_features, head.out_features],
            "bottleneck": model.has_bottleneck_,
            "ensemble": len(encoders_in(model.encoder_)),
        },
        "penalty": to_json(model.penalty_),
        "learned": learned,
    }


def _tensors(model: ParityBase) -> dict[str, Tensor]:
    modules = {"encoder": model.encoder_, "head": model.head_, "penalty": model.penalty_}
    tensors = {f"{part}.{name}": v for part, module in modules.items() for name, v in module.state_dict().items()}
    curves = {name: getattr(model, name) for name in CURVES}
    tensors |= {name: torch.from_numpy(np.array(curve)) for name, curve in curves.items() if curve is not None}
    return {name: values.detach().cpu().contiguous().clone() for name, values in tensors.items()}


def _parameters(header: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """Return the constructor's parameters, with the custom encoder and penalty that were passed again."""
    known = _classes()[header["estimator"]]().get_params(deep=False)
    parameters: dict[str, Any] = {name: value for name, value in BEFORE_THEY_EXISTED.items() if name in known}
    for name, value in header["parameters"].items():
        if name == "base" and is_custom(value):
            continue  # restored from its own part of the file
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


def _restore(
    model: ParityBase, header: dict[str, Any], tensors: dict[str, Tensor], encoders: list[nn.Module] | None, base: Any
) -> None:
    """Give an estimator that has its parameters the fitted state of a file."""
    model.best_epochs_ = None
    model.base_ = base_from_file(header.get("base"), _state(tensors, "base"), base)
    model.base_performance_ = None if model.base_ is None else model.base_.performance
    if is_custom(header["parameters"].get("base")):
        model.base = base_parameter(model.base_)
    for name, value in header["learned"].items():
        if name == "classes_":
            model.classes_ = labels_from_json(value)
        else:
            setattr(model, name, np.array(value, dtype=object) if name in NAMES else from_json(value))
    architecture = header["architecture"]
    model.has_bottleneck_ = architecture.get("bottleneck", False)
    size, outputs = architecture["head"]
    with seeded():  # the initial weights that layers draw are overwritten
        members = _default_encoders(architecture) if encoders is None else encoders
        head = affine_head(size, outputs)
    if model.has_bottleneck_:
        members = [nn.Sequential(member, Bottleneck(size // len(members))) for member in members]
    together = len(members) > 1
    model.encoder_ = _loaded(EncoderEnsemble(members).double() if together else members[0], tensors, "encoder")
    model.head_ = _loaded(head.double() if together else head, tensors, "head")
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
        setattr(model, name, tensors[name].numpy() if name in tensors else None)


def _default_encoders(architecture: dict[str, Any]) -> list[nn.Module]:
    count, activation = architecture.get("ensemble", 1), architecture.get("activation", "selu")
    size = architecture["head"][0] // count
    return [mlp_encoder(architecture["columns"], architecture["hidden"], size, activation) for _ in range(count)]


def _given_encoders(custom: Any, architecture: dict[str, Any]) -> list[nn.Module] | None:
    """Return the encoder that the user passed again, made anew for each member of an ensemble."""
    if custom is None:
        return None
    with seeded():
        return [_given_encoder(custom, architecture["columns"]) for _ in range(architecture.get("ensemble", 1))]


def _given_encoder(custom: Any, columns: int) -> nn.Module:
    encoder = copy.deepcopy(custom) if isinstance(custom, nn.Module) else custom(columns)
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


def _checksum(header: dict[str, Any], tensors: dict[str, Tensor]) -> str:
    signed = {name: value for name, value in header.items() if name != "checksum"}
    digest = hashlib.sha256(json.dumps(signed, sort_keys=True).encode())
    for name in sorted(tensors):
        values = tensors[name]
        digest.update(f"{name} {values.dtype} {tuple(values.shape)}".encode())
        digest.update(values.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes() if values.numel() else b"")
    return digest.hexdigest()
