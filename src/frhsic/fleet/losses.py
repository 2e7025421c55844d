r"""Task losses: means over the rows of a batch.

One formula each, on the head's raw output f and the target y:

====================  =====================================================================
``binary``            :math:`\log(1 + e^{f}) - y f` (cross-entropy with logits), y in {0, 1}
``multiclass``        :math:`\log \sum_c e^{f_c} - f_y`, y in {0, ..., C − 1}
``regression``        :math:`(f - y)^2`
``reconstruction``    :math:`\frac1d \sum_j (f_j - x_j)^2`: the target is x itself
====================  =====================================================================
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional

from frhsic.fleet.data import TrainingData

__all__ = ["TASKS", "Task", "check_target", "outputs_of", "row_losses"]

SOFTPLUS_LINEAR = 40.0
"""Above this log(1 + exp f) is f to the last digit of float64."""

Task = Literal["binary", "multiclass", "regression", "reconstruction"]


def _binary(scores: Tensor, y: Tensor, x: Tensor) -> Tensor:
    # log(1 + e^f) - yf is log(1 + e^-f) where y = 1: one sign, and fewer passes forward and backward
    return functional.softplus(torch.rsub(y, 1, alpha=2) * scores.squeeze(-1), threshold=SOFTPLUS_LINEAR)


def _multiclass(scores: Tensor, y: Tensor, x: Tensor) -> Tensor:
    return functional.cross_entropy(scores, y.long(), reduction="none")


def _regression(scores: Tensor, y: Tensor, x: Tensor) -> Tensor:
    return (scores.squeeze(-1) - y).square()


def _reconstruction(scores: Tensor, y: Tensor, x: Tensor) -> Tensor:
    return (scores - x).square().mean(-1)


TASKS: dict[Task, Callable[[Tensor, Tensor, Tensor], Tensor]] = {
    "binary": _binary,
    "multiclass": _multiclass,
    "regression": _regression,
    "reconstruction": _reconstruction,
}
"""Each task's loss of (scores (m, c), y (m,), x (m, d)), row by row: (m,)."""


def row_losses(task: Task, scores: Tensor, y: Tensor, x: Tensor) -> Tensor:
    """Return the loss of each row.

    Examples
    --------
    >>> row_losses("regression", torch.tensor([[1.0], [3.0]]), torch.tensor([0.0, 1.0]), torch.empty(2, 1))
    tensor([1., 4.])
    """
    return TASKS[task](scores, y, x)


def outputs_of(task: Task, data: TrainingData) -> int:
    """Return how many outputs the head needs."""
    if task == "multiclass":
        assert data.y is not None  # check_target has seen to it
        return int(data.y.max()) + 1
    return data.columns if task == "reconstruction" else 1


def check_target(task: Task, data: TrainingData) -> None:
    """Raise unless the target suits the task."""
    if task not in TASKS:
        raise ValueError(f"task is {task!r}; choose one of {', '.join(TASKS)}.")
    if task == "reconstruction":
        return
    if data.y is None:
        raise ValueError(f"task={task!r} needs a target, but y is None.")
    y = data.y
    if task == "binary" and not bool(((y == 0) | (y == 1)).all()):
        raise ValueError("task='binary' needs y in {0, 1}; other values came. Encode the classes, or use 'multiclass'.")
    if task == "multiclass" and not bool(((y >= 0) & (y == y.round())).all()):
        raise ValueError("task='multiclass' needs y as class numbers 0, 1, ...; encode the classes first.")
