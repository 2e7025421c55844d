"""Save fitted models to one file and load them again.

A file is a safetensors file. Its tensors are the weights of encoder and head, the state of the penalty and the
training curves. Its metadata hold a JSON header under the key "frhsic": versions, the estimator and its parameters, the
architecture, the columns with their scales and levels, the classes, and a SHA-256 checksum of the header and the
tensors. Any reader of safetensors can read it, :func:`describe` returns it, and reading it executes nothing. The
checksum finds damage, not forgery: anyone can write a file with a right one. Load models only from people whom you
trust to give you a model.
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
from frhsic.estimators.ensemble import EncoderEnsemble, encoders_in
from frhsic.estimators.header import InvalidHeaderError, check_header, check_tensors, reading
from frhsic.estimators.plain import from_json, is_custom, labels_from_json, labels_to_json, to_json
from frhsic.penalties import NoPenalty, Penalty
from frhsic.training import Bottleneck, affine_head, mlp_encoder
from frhsic.training.randomness import seeded

if TYPE_CHECKING:
    from frhsic.estimators.network import NetworkEstimator

KEY = "frhsic"
ESTIMATORS = ("FRHSICClassifier", "FRHSICRegressor", "ParityEncoder")
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


def save(model: Any, path: str | Path) -> None:
    """Write a fitted model to one file. A write that fails leaves no file.

    The file holds the weights of a custom encoder or penalty, but not its code: pass the object again to :func:`load`.
    A `random_state` that is a generator is written as the seed drawn from it.

    Examples
    --------
    >>> import tempfile
    >>> from frhsic.estimators import FRHSICRegressor
    >>> model = FRHSICRegressor(penalty_weight=0, epochs=1, random_state=0).fit([[0.0], [1.0]], [1.0, 3.0])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(model, f"{folder}/model.frhsic")
    ...     again = load(f"{folder}/model.frhsic")
    >>> bool((again.predict([[0.5]]) == model.predict([[0.5]])).all())
    True
    """
    write_whole(Path(path), file_bytes(model))


def file_bytes(model: Any) -> bytes:
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

    A file that is cut off, foreign, of another version or changed since it was written is refused with the reason.

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
    encoders = _given_encoders(encoder, header["architecture"])
    with reading(name):
        parameters = _parameters(header, {"encoder": encoder, "penalty": penalty})
        if parameters.keys() != model.get_params(deep=False).keys():
            raise InvalidHeaderError("it has other parameters than this version")
        if not isinstance(parameters["device"], str):
            raise InvalidHeaderError("its device is not a name")
        model.set_params(**parameters)
        _restore(model, header, tensors, encoders)
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
        return dict(json.loads(metadata[KEY]))
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"{file.name} is a safetensors file, but not one that frhsic.save has written.") from error


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


def _classes() -> dict[str, type[NetworkEstimator]]:
    from frhsic import estimators  # imported here because the estimators import this module

    return {name: getattr(estimators, name) for name in ESTIMATORS}


def _header(model: NetworkEstimator) -> dict[str, Any]:
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
        "versions": {"frhsic": __version__, "torch": torch.__version__, "scikit-learn": sklearn.__version__},
        "estimator": type(model).__name__,
        "parameters": parameters,
        "architecture": {
            "encoder": "mlp_encoder" if model.encoder is None else parameters["encoder"],
            "columns": model.feature_encoding_.width,
            "hidden": [int(size) for size in model.hidden_layer_sizes],
            "activation": model.activation,
            "head": [head.in_features, head.out_features],
            "bottleneck": model.has_bottleneck_,
            "ensemble": len(encoders_in(model.encoder_)),
        },
        "penalty": to_json(model.penalty_),
        "learned": learned,
    }


def _tensors(model: NetworkEstimator) -> dict[str, Tensor]:
    modules = {"encoder": model.encoder_, "head": model.head_, "penalty": model.penalty_}
    tensors = {f"{part}.{name}": v for part, module in modules.items() for name, v in module.state_dict().items()}
    curves = {name: getattr(model, name) for name in CURVES}
    tensors |= {name: torch.from_numpy(np.array(curve)) for name, curve in curves.items() if curve is not None}
    return {name: values.detach().cpu().contiguous().clone() for name, values in tensors.items()}


def _parameters(header: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """Return the constructor's parameters, with the custom encoder and penalty that were passed again."""
    parameters = {}
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


def _restore(
    model: NetworkEstimator, header: dict[str, Any], tensors: dict[str, Tensor], encoders: list[nn.Module] | None
) -> None:
    """Give an estimator that has its parameters the fitted state of a file."""
    for name, value in header["learned"].items():
        if name == "classes_":
            model.classes_ = labels_from_json(value)
        else:
            setattr(model, name, np.array(value, dtype=object) if name in NAMES else from_json(value))
    architecture = header["architecture"]
    model.has_bottleneck_ = architecture["bottleneck"]
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
    count, activation = architecture["ensemble"], architecture["activation"]
    size = architecture["head"][0] // count
    return [mlp_encoder(architecture["columns"], architecture["hidden"], size, activation) for _ in range(count)]


def _given_encoders(custom: Any, architecture: dict[str, Any]) -> list[nn.Module] | None:
    """Return the encoder that the user passed again, made anew for each member of an ensemble."""
    if custom is None:
        return None
    with seeded():
        return [_given_encoder(custom, architecture["columns"]) for _ in range(architecture["ensemble"])]


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
