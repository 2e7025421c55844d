r"""What a model learns: task and loss, encoder and head, penalty, and the settings of the
optimizer.

Task losses are means over the rows of a batch, of the head's raw output f and the target y:

====================  =====================================================================
``binary``            :math:`\log(1 + e^{f}) - y f` (cross-entropy with logits), y in {0, 1}
``multiclass``        :math:`\log \sum_c e^{f_c} - f_y`, y in {0, ..., C − 1}
``regression``        :math:`(f - y)^2`
====================  =====================================================================
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, get_args

import torch
from torch import Tensor, nn
from torch.nn import functional

from frhsic import _arrays
from frhsic.datasets.dataset import Task
from frhsic.penalties.base import NoPenalty, Penalty
from frhsic.training.data import TrainingData, fork_generators

# Above this value log(1 + exp f) equals f to the last digit of float64.
SOFTPLUS_LINEAR = 40.0

# Names that `activation` and `final_activation` of :class:`MLP` accept.
ACTIVATIONS = {
    kind.__name__.lower(): kind
    for kind in (nn.SELU, nn.ReLU, nn.Tanh, nn.GELU, nn.SiLU, nn.Sigmoid)
}

# Target number of optimizer steps for ``epochs="auto"``, and its fewest and most epochs.
AUTO_STEPS = 2_500
AUTO_EPOCHS = (20, 100)

Schedule = Literal["constant", "cosine"]


@dataclass(frozen=True)
class MLP:
    r"""Multi-layer encoder, :math:`z = W_2\,\sigma(W_1 x + b_1) + b_2`, returned by a call with the
    number of columns.

    The defaults are the encoder behind the paper's published numbers: d → 50 (SELU) → 50, with no
    activation after the second layer. The paper's text doesn't specify the last activation;
    `final_activation` sets it.

    Parameters
    ----------
    hidden : tuple of int
        Widths of the hidden layers, each followed by `activation`.
    size : int
        Width of the representation.
    activation, final_activation : str
        "selu", "relu", "gelu", "silu", "tanh" or "sigmoid". `final_activation=None` leaves the
        representation affine in the last hidden layer.

    Examples
    --------
    >>> [tuple(p.shape) for p in MLP()(3).parameters()]
    [(50, 3), (50,), (50, 50), (50,)]
    """

    hidden: tuple[int, ...] = (50,)
    size: int = 50
    activation: str = "selu"
    final_activation: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "hidden", tuple(self.hidden))
        for width in (*self.hidden, self.size):
            _arrays.require_integer(width, "a width of MLP")
        for name in (self.activation, self.final_activation or "selu"):
            if name not in ACTIVATIONS:
                raise ValueError(
                    f"activation {name!r} is not known; choose one of"
                    f" {', '.join(sorted(ACTIVATIONS))}."
                )

    def __call__(self, columns: int) -> nn.Sequential:
        """Return the encoder for a number of columns, with initial weights from torch's global
        stream.
        """
        widths = [columns, *self.hidden, self.size]
        layers: list[nn.Module] = []
        for fan_in, fan_out in pairwise(widths[:-1]):
            layers += [nn.Linear(fan_in, fan_out), ACTIVATIONS[self.activation]()]
        layers.append(nn.Linear(widths[-2], widths[-1]))
        if self.final_activation is not None:
            layers.append(ACTIVATIONS[self.final_activation]())
        return nn.Sequential(*layers)


@dataclass(frozen=True, kw_only=True)
class Training:
    r"""How a network is trained, by Adam on mini-batches. The defaults are the paper's.

    Parameters
    ----------
    epochs : int or "auto"
        Number of passes over the training rows. "auto" takes about 2,500 steps, in 20 to 100
        epochs.
    batch_size : int
        Rows of a mini-batch. The last batch of an epoch gets the remaining rows.
    learning_rate : float
        Step size η of Adam.
    schedule : {"constant", "cosine"}
        Step size of epoch e of E: η, or :math:`\tfrac\eta2 (1 + \cos(\pi e / E))`, which falls to
        zero.
    weight_decay : float, optional
        Weight decay w adds :math:`\tfrac w2 \|W\|^2` to the loss, where W are the weight matrices
        of the encoder. Biases and the head do not decay. None uses the penalty's
        `default_weight_decay`: 1e-3 for "hsic" and other HSIC penalties on whitened Z, 0 for the
        paper's methods.
    variance_floor : float, optional
        After training, drop principal directions of standardized Z whose variance on the training
        rows is below this, from 0 (drop none) to below 1. The penalty hardly depends on these
        directions, yet a linear probe can recover S from them. None uses the penalty's
        `default_variance_floor`: 0.3 for "hsic" and other HSIC penalties on whitened Z and the
        head, 0.01 for those without a term for the head, 0 for the paper's methods and for a
        penalty on the head alone. Z keeps its number of columns, which are then collinear, and the
        head is not refitted. Nothing is dropped if λ is 0, or if there are fewer than four rows for
        each coordinate of Z.
    early_stopping : bool or "auto"
        Whether an estimator holds out a tenth of its rows; ``frhsic.training.train`` takes held-out
        rows with its data. A model keeps the weights of the epoch with the smallest task loss + λ ·
        penalty on them. The task loss alone would choose early epochs, before the penalty has had
        an effect. "auto" holds rows out if there are 500 to 10,000, except for the penalties "adv"
        and "laftr", which learn during training and look small at first.
    patience : int
        A model stops after this many epochs without a smaller objective on the held-out rows, if
        there are any.

    Examples
    --------
    >>> Training(epochs=5).batch_size
    256
    """

    epochs: int | Literal["auto"] = 200
    batch_size: int = 256
    learning_rate: float = 1e-3
    schedule: Schedule = "constant"
    weight_decay: float | None = None
    variance_floor: float | None = None
    early_stopping: bool | Literal["auto"] = False
    patience: int = 20

    def __post_init__(self) -> None:
        if self.schedule not in get_args(Schedule):
            raise ValueError(
                f"schedule is {self.schedule!r}; choose one of {', '.join(get_args(Schedule))}."
            )
        if self.early_stopping not in (False, True, "auto"):
            raise ValueError(f"early_stopping={self.early_stopping!r}; pass False, True or 'auto'.")
        for name in ("epochs", "batch_size", "patience"):
            if not (name == "epochs" and self.epochs == "auto"):
                _arrays.require_integer(getattr(self, name), name)
        _arrays.require_positive(self.learning_rate, "learning_rate")
        _arrays.require_nonnegative(self.weight_decay or 0.0, "weight_decay")
        _arrays.require_nonnegative(self.variance_floor or 0.0, "variance_floor", below=1.0)


@dataclass(frozen=True)
class Recipe(Training):
    r"""What each model of a fleet learns. A model with penalty weight λ minimizes

    .. math:: \frac1n \sum_i \ell(f(h(x_i)), y_i) + \lambda \cdot \text{penalty}(h(x), s)

    over encoder h and head f. The other parameters are those of :class:`Training`.

    Parameters
    ----------
    task : {"binary", "multiclass", "regression"}
        Task, which sets the loss ℓ; see :mod:`frhsic.training.recipe`.
    penalty : Penalty, callable or None
        Penalty, copied for every (seed, split), or a function that returns one. None trains without
        a penalty.
    encoder : callable
        Function that returns the encoder for a number of columns.
    head : callable
        Function that returns the head for a width of Z and a number of outputs.

    Examples
    --------
    >>> Recipe("binary", epochs=5).encoder
    MLP(hidden=(50,), size=50, activation='selu', final_activation=None)
    """

    task: Task
    penalty: Penalty | Callable[[], Penalty] | None = None
    encoder: Callable[[int], nn.Module] = MLP()
    head: Callable[[int, int], nn.Module] = nn.Linear

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.task not in get_args(Task):
            raise ValueError(f"task is {self.task!r}; choose one of {', '.join(get_args(Task))}.")

    def epochs_on(self, rows: int) -> int:
        """Return the number of epochs for a number of rows.

        Examples
        --------
        >>> [Recipe("binary", epochs="auto").epochs_on(rows) for rows in (1000, 20_000, 1_000_000)]
        [100, 32, 20]
        """
        if self.epochs != "auto":
            return self.epochs
        least, most = AUTO_EPOCHS
        return min(max(round(AUTO_STEPS / math.ceil(rows / self.batch_size)), least), most)

    def step_size(self, epoch: int, epochs: int) -> float:
        """Return the step size of an epoch, counted from 0.

        Examples
        --------
        >>> [round(Recipe("binary", schedule="cosine").step_size(e, 4), 6) for e in range(4)]
        [0.001, 0.000854, 0.0005, 0.000146]
        """
        if self.schedule == "constant":
            return self.learning_rate
        return self.learning_rate * (1 + math.cos(math.pi * epoch / epochs)) / 2

    def decay(self, penalty: Penalty) -> float:
        """Return the weight decay with a penalty."""
        return penalty.default_weight_decay if self.weight_decay is None else self.weight_decay

    def floor(self, penalty: Penalty) -> float:
        """Return the variance floor with a penalty."""
        return (
            penalty.default_variance_floor if self.variance_floor is None else self.variance_floor
        )

    def outputs(self, data: TrainingData) -> int:
        """Return how many outputs the head needs; raise if the target does not match the task."""
        y = data.y
        suits = y.isfinite()
        if self.task == "binary":
            suits = (y == 0) | (y == 1)
        elif self.task == "multiclass":
            suits = (y >= 0) & (y == y.round())
        if not bool(suits.all()):
            raise ValueError(
                f"y does not match task={self.task!r}; pass 0 and 1 for binary, 0, 1, 2, ... for"
                " multiclass, or finite numbers for regression."
            )
        return int(y.max()) + 1 if self.task == "multiclass" else 1

    def modules(self, data: TrainingData, outputs: int) -> tuple[nn.Module, nn.Module, Penalty]:
        """Create a new encoder, head and penalty, with initial weights from the global random
        stream.
        """
        encoder = self.encoder(data.columns).to(data.x.dtype)
        head = self.head(output_width(encoder, data), outputs)
        if self.penalty is None:
            penalty: Penalty = NoPenalty()
        elif isinstance(self.penalty, Penalty):
            penalty = copy.deepcopy(self.penalty)
        else:
            penalty = self.penalty()
        return encoder, head, penalty


def output_width(encoder: nn.Module, data: TrainingData) -> int:
    """Return the width of Z, without drawing from the random stream; raise if the encoder does not
    fit the data.
    """
    with fork_generators(), torch.no_grad():
        try:
            z = encoder.eval()(data.x[0, :2].cpu())
        except RuntimeError as error:
            raise ValueError(
                f"the encoder fails on rows with {data.columns} columns: {error}"
            ) from error
    require_output_rows("encoder", z, min(2, data.rows))
    return int(z.shape[1])


def require_output_rows(module: str, values: Tensor, rows: int) -> None:
    """Raise unless a module returned one row of numbers for each row of the batch."""
    if values.ndim != 2 or len(values) != rows:
        raise ValueError(
            f"the {module} returns shape {tuple(values.shape)} for {rows} rows; it must return one"
            " row for each."
        )


def row_losses(task: Task, scores: Tensor, y: Tensor) -> Tensor:
    """Return the loss of each row, (m,), from scores (m, c) and y (m,).

    Examples
    --------
    >>> row_losses("regression", torch.tensor([[1.0], [3.0]]), torch.tensor([0.0, 1.0]))
    tensor([1., 4.])
    """
    if task == "multiclass":
        return functional.cross_entropy(scores, y.long(), reduction="none")
    if task == "regression":
        return (scores.squeeze(-1) - y).square()
    # log(1 + e^f) - yf is log(1 + e^-f) where y = 1: one change of sign saves passes forward and
    # backward
    return functional.softplus(
        torch.rsub(y, 1, alpha=2) * scores.squeeze(-1), threshold=SOFTPLUS_LINEAR
    )
