"""What the estimators hand to training."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from torch import nn

from frhsic.penalties import Penalty
from frhsic.training import Task, TrainingData, mlp_encoder


@dataclass(frozen=True)
class FitCall:
    """Arguments of a call to `fit` or `partial_fit`, as they came."""

    X: Any
    y: Any
    sensitive_features: Any
    sample_weight: Any
    epochs: int | str
    classes: Any = None
    groups: Any = None


@dataclass(frozen=True)
class Problem:
    """Everything that training needs, apart from the weight of the penalty."""

    data: TrainingData
    task: Task
    encoder: Callable[[], nn.Module]
    head: Callable[[], nn.Module]
    penalty: Penalty
    seed: int
    through_bottleneck: bool = False
    """Whether `encoder` ends in the bottleneck of an earlier call, because there are too few rows for a new one."""


def encoder_maker(
    encoder: nn.Module | Callable[[int], nn.Module] | None,
    columns: int,
    hidden: Sequence[int],
    size: int,
    activation: str,
) -> Callable[[], nn.Module]:
    """Return a function that makes the encoder: the default, a copy of a module, or what a user's function makes."""
    if encoder is None:
        return partial(mlp_encoder, columns, list(hidden), size, activation)
    return partial(copy.deepcopy, encoder) if isinstance(encoder, nn.Module) else partial(encoder, columns)
