"""The file of a fitted model: one safetensors file whose metadata hold a JSON header.

The tensors are the weights of encoder and head, the state of the penalty and the curves of training. The header, under
the key "frhsic" of the metadata, has the layout's number, versions, the estimator's name, its parameters, the
architecture, the columns with their scales and levels, the classes, and a SHA-256 checksum over all of that and of the
tensors. Nothing in it is executed when it is read.
"""

from __future__ import annotations

import copy
import hashlib
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import sklearn
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from frhsic._version import __version__
from frhsic.estimators.recipes import built, is_custom, recipe
from frhsic.fleet import Bottleneck, affine_head, mlp_encoder
from frhsic.penalties import NoPenalty, Penalty

if TYPE_CHECKING:
    from frhsic.estimators.base import ParityBase

__all__ = ["LAYOUT", "header_of", "read", "restore", "set_state", "write"]

LAYOUT = 2
"""Number of the layout that is written; files with a larger one are refused. 2: the encoder may end in a bottleneck."""

KEY = "frhsic"
NUMBERS = (
    "n_features_in_",
    "representation_size_",
    "random_seed_",
    "n_fits_",
    "target_mean_",
    "target_scale_",
    "task_",
)
TABLES = ("feature_encoding_", "sensitive_encoding_")
NAMES = ("feature_names_in_", "sensitive_names_in_")
CURVES = ("loss_curve_", "penalty_curve_")


def write(estimator: ParityBase, path: str | Path) -> None:
    """Write a fitted estimator; the file is complete or not there."""
    check_is_fitted(estimator)
    parameters = {name: recipe(value) for name, value in estimator.get_params(deep=False).items()}
    if is_custom(parameters["random_state"]):
        parameters["random_state"] = estimator.random_seed_
    learned: dict[str, Any] = {name: recipe(getattr(estimator, name)) for name in NUMBERS if hasattr(estimator, name)}
    learned |= {name: recipe(getattr(estimator, name)) for name in TABLES if hasattr(estimator, name)}
    learned |= {name: [str(n) for n in getattr(estimator, name)] for name in NAMES if hasattr(estimator, name)}
    if hasattr(estimator, "classes_"):
        learned["classes_"] = _labels(estimator.classes_)
    header = {
        "layout": LAYOUT,
        "versions": {"frhsic": __version__, "torch": torch.__version__, "scikit-learn": sklearn.__version__},
        "estimator": type(estimator).__name__,
        "parameters": parameters,
        "architecture": _architecture(estimator),
        "penalty": recipe(estimator.penalty_),
        "learned": learned,
    }
    tensors = {f"encoder.{n}": v for n, v in estimator.encoder_.state_dict().items()}
    tensors |= {f"head.{n}": v for n, v in estimator.head_.state_dict().items()}
    tensors |= {f"penalty.{n}": v for n, v in estimator.penalty_.state_dict().items()}
    tensors |= {n: torch.from_numpy(np.array(getattr(estimator, n))) for n in CURVES}
    tensors = {name: values.detach().cpu().contiguous().clone() for name, values in tensors.items()}
    header["checksum"] = _checksum(header, tensors)
    target = Path(path)
    partial = target.with_name(f".{target.name}.{os.getpid()}.partial")
    try:
        partial.write_bytes(save(tensors, {KEY: json.dumps(header, allow_nan=False)}))
        os.replace(partial, target)
    finally:
        partial.unlink(missing_ok=True)


def header_of(path: str | Path) -> dict[str, Any]:
    """Return the header of a file, without its checksum being checked; raise if it is not one of ours."""
    file = Path(path)
    if not file.is_file():
        raise FileNotFoundError(f"there is no saved model {str(file)!r}.")
    try:
        with safe_open(file, framework="pt") as opened:
            metadata = opened.metadata() or {}
    except (SafetensorError, OSError) as error:
        raise ValueError(f"{file.name} is not a whole safetensors file: {error}. It may have been cut off.") from error
    try:
        header = json.loads(metadata[KEY])
        layout = header["layout"]
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{file.name} is a safetensors file, but not one that frhsic.save has written.") from error
    if not isinstance(layout, int) or not 1 <= layout <= LAYOUT:
        raise ValueError(
            f"{file.name} has layout {layout!r}, written by frhsic {header.get('versions', {}).get('frhsic', '?')}; "
            f"this is frhsic {__version__}, which reads layouts up to {LAYOUT}. Load it with a newer version."
        )
    return dict(header)


def read(path: str | Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Return header and tensors of a file after checking that they are what was written."""
    header = header_of(path)
    tensors = load_file(path)
    said = header.get("checksum")
    found = _checksum(header, tensors)
    if said != found:
        raise ValueError(
            f"{Path(path).name} is not what was written: its checksum is {found[:12]}..., it says {str(said)[:12]}... "
            "Get the file again."
        )
    return header, tensors


def restore(
    made: ParityBase, header: dict[str, Any], tensors: dict[str, Tensor], *, encoder: Any = None, penalty: Any = None
) -> None:
    """Give an unfitted estimator of the right class the parameters and the state of a file."""
    given = {"encoder": encoder, "penalty": penalty}
    # files from before there were such were trained without
    parameters: dict[str, Any] = {"weight_decay": 0.0, "variance_floor": 0.0}
    for name, value in header["parameters"].items():
        if given.get(name) is not None:
            parameters[name] = given[name]
        elif is_custom(value):
            raise ValueError(
                f"the model was made with {'an' if name == 'encoder' else 'a'} {name} of the user's own, "
                f"{value['custom']}, which a file cannot hold. "
                f"Pass it again: load(path, {name}=...)."
            )
        else:
            parameters[name] = built(value)
    made.set_params(**parameters)
    learned = header["learned"]
    for name, value in learned.items():
        if name == "classes_":
            made.classes_ = np.array(value["values"], dtype=value["dtype"])
        elif name in NAMES:
            setattr(made, name, np.array(value, dtype=object))
        else:
            setattr(made, name, built(value))
    architecture = header["architecture"]
    made.has_bottleneck_ = architecture.get("bottleneck", False)
    made.encoder_ = _loaded(_encoder(architecture, made.encoder), tensors, "encoder.")
    made.head_ = _loaded(affine_head(*architecture["head"]), tensors, "head.")
    own = made.penalty if is_custom(header["penalty"]) else built(header["penalty"])
    if not isinstance(own, Penalty):
        raise ValueError(
            "the model was trained with a penalty of the user's own; pass it again: load(path, penalty=...)."
        )
    made.penalty_ = copy.deepcopy(own)
    set_state(made.penalty_, {n.removeprefix("penalty."): v for n, v in tensors.items() if n.startswith("penalty.")})
    if not isinstance(made.penalty_, NoPenalty):
        made.penalty_.n_attributes = len(learned["sensitive_encoding_"]["table"])
    for name in CURVES:
        setattr(made, name, tensors[name].numpy())


def set_state(penalty: Penalty, state: dict[str, Tensor]) -> None:
    """Put tensors into the buffers of a penalty, those included that are None until it is prepared."""
    for name, values in state.items():
        *path, last = name.split(".")
        owner = penalty.get_submodule(".".join(path))
        if last not in owner._buffers and last not in owner._parameters:
            raise ValueError(f"{type(penalty).__name__} has no state {name!r}; it is not the penalty of this file.")
        if last in owner._parameters:
            with torch.no_grad():
                owner.get_parameter(last).copy_(values)
        else:
            owner._buffers[last] = values


def _architecture(estimator: ParityBase) -> dict[str, Any]:
    head = estimator.head_
    assert isinstance(head, nn.Linear)
    return {
        "encoder": "mlp_encoder" if estimator.encoder is None else recipe(estimator.encoder),
        "columns": estimator.feature_encoding_.width,
        "hidden": [int(size) for size in estimator.hidden_layer_sizes],
        "head": [head.in_features, head.out_features],
        "bottleneck": estimator.has_bottleneck_,
    }


def _encoder(architecture: dict[str, Any], given: Any) -> nn.Module:
    size = architecture["head"][0]
    made: Any
    if given is None:
        made = mlp_encoder(architecture["columns"], architecture["hidden"], size)
    else:
        made = copy.deepcopy(given) if isinstance(given, nn.Module) else given(architecture["columns"])
    if not isinstance(made, nn.Module):
        raise TypeError(f"encoder made {type(made).__name__}; it must make a torch.nn.Module.")
    return nn.Sequential(made, Bottleneck(size)) if architecture.get("bottleneck") else made


def _loaded(module: nn.Module, tensors: dict[str, Tensor], prefix: str) -> nn.Module:
    own = {name.removeprefix(prefix): values for name, values in tensors.items() if name.startswith(prefix)}
    try:
        module.load_state_dict(own)
    except RuntimeError as error:
        raise ValueError(f"the {prefix.rstrip('.')} does not fit the weights in the file: {error}") from error
    return module.eval()


def _labels(classes: np.ndarray) -> dict[str, Any]:
    values = classes.tolist()
    if not all(isinstance(value, (str, int, float, bool)) for value in values):
        raise TypeError(f"class labels {values!r} cannot be written as JSON; use text or numbers as labels.")
    return {"dtype": classes.dtype.str if classes.dtype != object else "object", "values": values}


def _checksum(header: dict[str, Any], tensors: dict[str, Tensor]) -> str:
    said = {name: value for name, value in header.items() if name != "checksum"}
    digest = hashlib.sha256(json.dumps(said, sort_keys=True).encode())
    for name in sorted(tensors):
        values = tensors[name]
        digest.update(f"{name} {values.dtype} {tuple(values.shape)}".encode())
        digest.update(values.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes() if values.numel() else b"")
    return digest.hexdigest()
