"""The weights of networks, and the modules that the weights belong to."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import torch
from torch import nn

from frhsic.estimators.network import NetworkEstimator, set_state
from frhsic.penalties import NoPenalty
from frhsic.persistence.boosters import require
from frhsic.training import MLP
from frhsic.training.data import fork_generators
from frhsic.training.result import Bottleneck


def weights_of(model: NetworkEstimator) -> dict[str, dict[str, np.ndarray]]:
    """Return the weights of each module of a network, keyed by the module's name."""
    return {
        part: {name: v.cpu().numpy() for name, v in getattr(model, f"{part}_").state_dict().items()}
        for part in ("encoder", "head", "penalty")
    }


def complete(model: Any, weights: dict[str, dict[str, np.ndarray]]) -> None:
    """Create a model's modules and load the weights from the file into them."""
    states = {
        part: {name: torch.from_numpy(values.copy()) for name, values in own.items()}
        for part, own in weights.items()
    }
    size = model.representation_size_
    own = isinstance(model.encoder, MLP | None)
    require(
        len(getattr(model.encoder, "hidden", ())) <= len(states["encoder"]),
        "it has fewer weights than layers",
    )
    require(isinstance(model.has_bottleneck_, bool), "has_bottleneck_ is neither true nor false")
    # without memory: a file that requests more weights than it contains is rejected before they are
    # allocated
    with fork_generators(), torch.device("meta" if own else "cpu"):
        encoder = model._encoder_maker()(model.feature_encoding_.width)
        require(isinstance(encoder, nn.Module), "encoder must return a torch.nn.Module")
        if model.has_bottleneck_:
            encoder = nn.Sequential(encoder, Bottleneck(size))
    with torch.device("meta"):
        head = nn.Linear(size, len(states["head"]["bias"]))
    encoder.load_state_dict(states["encoder"], assign=own)
    head.load_state_dict(states["head"], assign=True)
    model.encoder_ = encoder.eval()
    model.head_ = head.eval()
    # the name of a custom penalty fails below
    model.penalty_ = copy.deepcopy(getattr(model, "penalty_", model.penalty))
    set_state(model.penalty_, states["penalty"])
    if not isinstance(model.penalty_, NoPenalty):
        model.penalty_.n_attributes = len(model.sensitive_encoding_.columns)
