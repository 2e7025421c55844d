r"""What a model learns: task and loss, encoder and head, penalty, and the settings of the optimizer.

Task losses are means over the rows of a batch, of the head's raw output f and the target y:

====================  =====================================================================
``binary``            :math:`\log(1 + e^{f}) - y f` (cross-entropy with logits), y in {0, 1}
``multiclass``        :math:`\log \sum_c e^{f_c} - f_y`, y in {0, ..., C − 1}
``regression``        :math:`(f - y)^2`
``reconstruction``    :math:`\frac1c \sum_j (f_j - y_j)^2`; without y the target is x itself
====================  =====================================================================
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, get_args

import torch
from torch import Tensor, nn
from torch.nn import functional

from frhsic import _arrays
from frhsic.penalties.base import NoPenalty, Penalty
from frhsic.training.data import TrainingData
from frhsic.training.randomness import seeded

SOFTPLUS_LINEAR = 40.0
"""Above this value log(1 + exp f) equals f to the last digit of float64."""

ACTIVATIONS: dict[str, type[nn.Module]] = {
    "selu": nn.SELU,
    "relu": nn.ReLU,
    "tanh": nn.Tanh,
    "gelu": nn.GELU,
    "silu": nn.SiLU,
    "sigmoid": nn.Sigmoid,
}
"""Names that `activation` and `final_activation` of :func:`mlp_encoder` accept."""

Task = Literal["binary", "multiclass", "regression", "reconstruction"]

Schedule = Literal["constant", "cosine"]


@dataclass(frozen=True)
class Recipe:
    r"""What each model of a fleet learns. A model of weight λ minimizes

    .. math:: \frac1n \sum_i \ell(f(h(x_i)), y_i) + \lambda \cdot \text{penalty}(h(x), s)

    over encoder h and head f, by Adam on mini-batches. The defaults are the paper's.

    Parameters
    ----------
    task : {"binary", "multiclass", "regression", "reconstruction"}
        Task, which sets the loss ℓ; see :mod:`frhsic.training.recipe`.
    penalty : Penalty, callable or None
        Penalty, copied for every (seed, split), or a function that makes one. None trains without a penalty.
    encoder, head : callable, optional
        Functions that make a module. By default the paper's: :func:`mlp_encoder` and :func:`affine_head`.
    epochs : int
        Number of passes over the training rows.
    batch_size : int
        Rows of a mini-batch. The last batch of an epoch holds the rest.
    learning_rate : float
        Step size of Adam.
    weight_decay : float
        Weight decay w adds :math:`\tfrac w2 \|W\|^2` to the loss, where W are the weight matrices of the encoder.
        Biases and the head do not decay.
    variance_floor : float
        After training, drop principal directions of standardized Z whose variance on the training rows is below this;
        see :func:`~frhsic.training.bottleneck.floored`. 0 keeps all of Z.
    schedule : {"constant", "cosine"}
        Step size of epoch e of E: η, or :math:`\tfrac\eta2 (1 + \cos(\pi e / E))`, which falls to zero.
    patience : int, optional
        Stop a model after so many epochs without a smaller objective on the held-out rows of the data, which it needs;
        see :mod:`frhsic.training.stopping`. `epochs` is then the most. None takes all epochs.

    Examples
    --------
    >>> Recipe("binary", epochs=5).batch_size
    256
    """

    task: Task
    penalty: Penalty | Callable[[], Penalty] | None = None
    encoder: Callable[[], nn.Module] | None = None
    head: Callable[[], nn.Module] | None = None
    epochs: int = 200
    batch_size: int = 256
    learning_rate: float = 1e-3
    weight_decay: float = 0.0
    variance_floor: float = 0.0
    schedule: Schedule = "constant"
    patience: int | None = None

    def __post_init__(self) -> None:
        if self.task not in get_args(Task):
            raise ValueError(f"task is {self.task!r}; choose one of {', '.join(get_args(Task))}.")
        if self.schedule not in get_args(Schedule):
            raise ValueError(f"schedule is {self.schedule!r}; choose one of {', '.join(get_args(Schedule))}.")
        for name in ("epochs", "batch_size", "patience"):
            value = getattr(self, name)
            if name == "patience" and value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise ValueError(f"{name} is {value!r}; pass an integer of at least 1.")
        _arrays.require_positive(self.learning_rate, "learning_rate")
        if not 0 <= self.weight_decay < math.inf:
            raise ValueError(f"weight_decay is {self.weight_decay}; pass a finite number that is not negative.")
        if not 0 <= self.variance_floor < 1:
            raise ValueError(
                f"variance_floor is {self.variance_floor}; pass a number from 0, which cuts nothing, to below 1."
            )

    def step_size(self, epoch: int) -> float:
        """Return the step size of an epoch, counted from 0.

        Examples
        --------
        >>> [round(Recipe("binary", epochs=4, schedule="cosine").step_size(e), 6) for e in range(4)]
        [0.001, 0.000854, 0.0005, 0.000146]
        """
        if self.schedule == "constant":
            return self.learning_rate
        return self.learning_rate * (1 + math.cos(math.pi * epoch / self.epochs)) / 2

    def outputs(self, data: TrainingData) -> int:
        """Return how many outputs the head needs; raise if the target does not suit the task."""
        y = data.y
        if self.task == "reconstruction":
            return data.columns if y is None else data.widths[2]
        if y is None:
            raise ValueError(f"task={self.task!r} needs a target, but y is None.")
        if y.ndim > 2:
            raise ValueError(f"task={self.task!r} needs one target, but y has {y.shape[2]} columns.")
        if self.task == "binary" and not bool(((y == 0) | (y == 1)).all()):
            raise ValueError(
                "task='binary' needs y in {0, 1}; other values came. Encode the classes, or use 'multiclass'."
            )
        if self.task == "multiclass" and not bool(((y >= 0) & (y == y.round())).all()):
            raise ValueError("task='multiclass' needs y as class numbers 0, 1, ...; encode the classes first.")
        return int(y.max()) + 1 if self.task == "multiclass" else 1

    def modules(self, data: TrainingData, outputs: int) -> tuple[nn.Module, nn.Module, Penalty]:
        """Make encoder, head and penalty anew, with initial weights from the global random stream."""
        encoder = (mlp_encoder(data.columns) if self.encoder is None else self.encoder()).to(data.x.dtype)
        width = output_width(encoder, data)
        head = affine_head(width, outputs) if self.head is None else self.head()
        if self.penalty is None:
            return encoder, head, NoPenalty()
        return encoder, head, copy.deepcopy(self.penalty) if isinstance(self.penalty, Penalty) else self.penalty()


def output_width(encoder: nn.Module, data: TrainingData) -> int:
    """Return the width of Z, without drawing from the random stream; raise if the encoder does not fit the data."""
    with seeded(), torch.no_grad():
        try:
            z = encoder.eval()(data.x[0, :2].cpu())
        except RuntimeError as error:
            raise ValueError(f"the encoder does not take rows of {data.columns} columns: {error}") from error
    require_rows("encoder", z, min(2, data.rows))
    return int(z.shape[1])


def require_rows(module: str, values: Tensor, rows: int) -> None:
    """Raise unless a module gave one row of numbers for each row of the batch."""
    if values.ndim != 2 or len(values) != rows:
        raise ValueError(
            f"the {module} turned a batch of {rows} rows into shape {tuple(values.shape)}; it must give "
            f"({rows}, width)."
        )


def row_losses(task: Task, scores: Tensor, y: Tensor | None, x: Tensor) -> Tensor:
    """Return the loss of each row, (m,), from scores (m, c), y (m,), or (m, c) for a reconstruction, and x (m, d).

    Examples
    --------
    >>> row_losses("regression", torch.tensor([[1.0], [3.0]]), torch.tensor([0.0, 1.0]), torch.empty(2, 1))
    tensor([1., 4.])
    """
    if task == "reconstruction" or y is None:
        return (scores - (x if y is None else y)).square().mean(-1)
    if task == "multiclass":
        return functional.cross_entropy(scores, y.long(), reduction="none")
    if task == "regression":
        return (scores.squeeze(-1) - y).square()
    # log(1 + e^f) - yf is log(1 + e^-f) where y = 1: one sign, and fewer passes forward and backward
    return functional.softplus(torch.rsub(y, 1, alpha=2) * scores.squeeze(-1), threshold=SOFTPLUS_LINEAR)


def mlp_encoder(
    d: int,
    hidden: int | Sequence[int] = 50,
    out: int = 50,
    activation: str = "selu",
    final_activation: str | None = None,
) -> nn.Sequential:
    r"""Multi-layer encoder, :math:`z = W_2\,\sigma(W_1 x + b_1) + b_2`.

    The defaults are the encoder behind the paper's published numbers: d → 50 (SELU) → 50, with no activation after the
    second layer. The paper's text leaves the last activation open; `final_activation` names one.

    Parameters
    ----------
    d : int
        Number of input columns.
    hidden : int or sequence of int
        Widths of the hidden layers, each followed by `activation`.
    out : int
        Width of the representation.
    activation, final_activation : str
        Names from :data:`ACTIVATIONS`. `final_activation=None` leaves the representation affine in the last hidden
        layer.

    Examples
    --------
    >>> [tuple(p.shape) for p in mlp_encoder(3).parameters()]
    [(50, 3), (50,), (50, 50), (50,)]
    """
    widths = [d, *([hidden] if isinstance(hidden, int) else hidden), out]
    if min(widths) < 1:
        raise ValueError(f"layer widths are {widths}; each must be at least 1.")
    layers: list[nn.Module] = []
    for fan_in, fan_out in pairwise(widths[:-1]):
        layers += [nn.Linear(fan_in, fan_out), _activation(activation)]
    layers.append(nn.Linear(widths[-2], widths[-1]))
    if final_activation is not None:
        layers.append(_activation(final_activation))
    return nn.Sequential(*layers)


def affine_head(dz: int, outputs: int = 1) -> nn.Linear:
    """Affine head, f(z) = Wz + b: one output for a binary or real target, one per class otherwise.

    Examples
    --------
    >>> affine_head(50)
    Linear(in_features=50, out_features=1, bias=True)
    """
    return nn.Linear(dz, outputs)


def _activation(name: str) -> nn.Module:
    if name not in ACTIVATIONS:
        raise ValueError(f"activation {name!r} is not known; choose one of {', '.join(sorted(ACTIVATIONS))}.")
    return ACTIVATIONS[name]()
