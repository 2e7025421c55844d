"""Networks: their weights, and whether what was read fits together."""

from __future__ import annotations

import copy
import math
from typing import Any

import numpy as np
import torch
from sklearn.base import is_classifier
from torch import Tensor, nn

from frhsic.estimators import FRHSICClassifier, FRHSICRegressor
from frhsic.estimators.network import NetworkEstimator, set_state
from frhsic.penalties import NoPenalty, Penalty
from frhsic.persistence.models import Arrays, SavedParts
from frhsic.persistence.rules import require
from frhsic.tables.columns import MOST_ENCODED_LEVELS
from frhsic.training import MLP
from frhsic.training.data import fork_generators
from frhsic.training.result import Bottleneck


def _network_arrays(model: NetworkEstimator) -> Arrays:
    modules = {"encoder": model.encoder_, "head": model.head_, "penalty": model.penalty_}
    return {
        f"{part}.{name}": v.detach().cpu().numpy()
        for part, module in modules.items()
        for name, v in module.state_dict().items()
    }


def _complete_network(model: NetworkEstimator, arrays: Arrays) -> None:
    """Build the modules for the weights of a file and give an estimator what it has learned."""
    tensors = {name: torch.from_numpy(values) for name, values in arrays.items()}
    encoding = model.feature_encoding_
    size = model.representation_size_
    own = isinstance(model.encoder, MLP | None)
    outputs = len(tensors["head.bias"])
    require(model.n_features_in_ == len(encoding.columns), "its columns are of two numbers")
    for column in encoding.columns:
        require(len(column.names) <= MOST_ENCODED_LEVELS + 1, "a column of too many levels")
        column(np.array([np.nan]))  # it can be computed
    model._validate_params()
    require(len(getattr(model.encoder, "hidden", ())) <= len(tensors), "it has too few weights")
    if is_classifier(model):
        classes = len(np.unique(model.classes_))
        require(
            classes == len(model.classes_) and outputs == (1 if classes <= 2 else classes),
            "its classes differ",
        )
    else:
        require(
            outputs == 1
            and math.isfinite(model.target_mean_)
            and 0 < model.target_scale_ < math.inf,
            "no scale",
        )
    # modules without memory: a file that asks for more weights than it holds is refused before they
    # are made
    with fork_generators(), torch.device("meta" if own else "cpu"):
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


NETWORK = SavedParts(_complete_network, arrays=_network_arrays)
NETWORKS: dict[str, tuple[Any, SavedParts]] = {
    "FRHSICClassifier": (FRHSICClassifier, NETWORK),
    "FRHSICRegressor": (FRHSICRegressor, NETWORK),
}
"""Every network that is saved, by its name."""
