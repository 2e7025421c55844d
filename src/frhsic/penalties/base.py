r"""The interface of penalties: a scalar for each batch, with a method for state that is fitted once
and a method for state that is refitted during training.

A training loop calls three methods; only the last one is differentiated:

.. code-block:: python

    penalty.prepare(s_train, generator)           # once: bins, the scale of S, an adversary's
                                                  initial weights
    for epoch in range(epochs):
        for x, y, s in batches:
            z = encoder(x)
            penalty.adapt(z.detach(), s, epoch)   # an adversary takes a step, a bandwidth is
                                                  refreshed
            scores = head(z)
            loss = task(scores, y) + weight * penalty(z, s, scores=scores, y=y)

All state consists of tensors, stored in buffers and changed in place.
``torch.func.functional_call`` under ``torch.func.vmap`` can then run a penalty for many models at
once, on state stacked along a leading axis. So a call must not read a tensor's value into Python or
draw random numbers, and its shapes must depend only on those of its arguments.
"""

from __future__ import annotations

import copy
import inspect
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, Self

import torch
from torch import Tensor, nn

from frhsic.dependence.grams import hsic_biased_from_gram, hsic_weighted_from_gram

# Rows that must be independent of S: all (demographic parity), or those with y = 1 (equal
# opportunity).
PenaltyCondition = Literal["positive"] | None

# Fewest rows with y = 1 for which the penalty of a batch is computed.
MIN_ROWS = 11


@dataclass(frozen=True)
class Batch:
    """One batch with checked shapes: matrices with m rows, in the dtype and on the device of
    `z`.
    """

    z: Tensor  # (m, d)
    s: Tensor  # (m, q)
    scores: Tensor | None  # (m, c), if given
    row_weight: Tensor | None  # (m,), 0 for rows that aren't counted; None if all are equal

    @property
    def rows(self) -> int:
        """The number of rows m, including rows with weight 0."""
        return self.z.shape[0]

    @cached_property
    def shares(self) -> Tensor:
        """Row weights divided by their sum, of shape (m,)."""
        if self.row_weight is None:
            return torch.full((self.rows,), 1 / self.rows, dtype=self.z.dtype, device=self.z.device)
        return self.row_weight / self.row_weight.sum().clamp_min(
            torch.finfo(self.row_weight.dtype).tiny
        )

    def hsic(self, l: Tensor, k: Tensor) -> Tensor:
        """Return the biased HSIC of two Gram matrices, or of two matrices of distances, over the
        rows of the batch.

        The first matrix is centered, which is cheaper if it has no gradient, so pass the matrix of
        s first.
        """
        return (
            hsic_biased_from_gram(l, k)
            if self.row_weight is None
            else hsic_weighted_from_gram(l, k, self.shares)
        )


class Penalty(nn.Module, ABC):
    """A differentiable measure of how much a batch of representations depends on the sensitive
    attribute.

    Call it as ``penalty(z, s, *, scores=None, y=None)`` with z (m, d), s (m,) or (m, q), scores
    (m,), (m, 1) or (m, c) and y (m,) or (m, 1). The result is a 0-d tensor.

    To write your own penalty, implement ``_value(batch)``, which returns a scalar. `batch` has the
    matrices ``batch.z`` (m, d), ``batch.s`` (m, q) and, with ``needs_scores = True``,
    ``batch.scores`` (m, c). Average over rows with ``batch.shares`` (m,), which sum to one; rows
    that aren't counted (for equal opportunity) have share 0. If needed, implement ``_prepare(s,
    generator)`` (fit to the training rows of S) and ``adapts(epoch)`` with ``_adapt(z, s)`` (refit
    to a batch). Declare state in ``__init__`` with ``self.register_buffer(name, None)`` and assign
    it in ``_prepare``, so that fleets can stack it and saved models can store it. ``_adapt``
    changes state in place; list the names of the buffers it changes in ``adapted``. ``__init__``
    must list every argument, including `condition`, and store each as an attribute of the same
    name.

    Parameters
    ----------
    condition
        None for demographic parity, with the penalty on all rows, or ``"positive"`` for equal
        opportunity, with the penalty on the rows with y = 1. A batch with 10 or fewer such rows
        gives 0, as in the published runs.

    Attributes
    ----------
    needs_scores
        Whether calls need the head's raw output.
    needs_target
        Whether calls need y.
    adapted
        Names of the buffers that :meth:`adapt` changes. Each model of a fleet has its own; models
        that see the same batches share all others.
    n_attributes
        Number of sensitive attributes; None before :meth:`prepare` is called.
    default_weight_decay
        Weight decay that an estimator applies to the encoder by default with this penalty; see
        :class:`frhsic.FRHSICClassifier`. 0 unless the penalty sets another value.
    default_variance_floor
        Floor for the variance of Z that an estimator uses by default with this penalty.

    Examples
    --------
    A penalty on the squared covariance of S with each column of Z.

    >>> class Covariance(Penalty):
    ...     def _value(self, batch):
    ...         centered = batch.s - batch.shares @ batch.s
    ...         return ((batch.shares[:, None] * centered).mT @ batch.z).square().sum()
    >>> Covariance()(torch.arange(4.0)[:, None], torch.arange(4.0))
    tensor(1.5625)

    The same penalty, with S divided by its standard deviation in the training rows, which is state.

    >>> class ScaledCovariance(Covariance):
    ...     def __init__(self, *, condition=None):
    ...         super().__init__(condition=condition)
    ...         self.register_buffer("scale", None)
    ...
    ...     def _prepare(self, s, generator):
    ...         self.scale = s.std(0)
    ...
    ...     def _value(self, batch):
    ...         return super()._value(batch) / self.scale.square().sum()
    >>> penalty = ScaledCovariance()
    >>> penalty.prepare(torch.tensor([0.0, 2.0]), torch.Generator())
    >>> penalty(torch.arange(4.0)[:, None], torch.arange(4.0))
    tensor(0.7813)
    """

    needs_scores: bool = False
    needs_target: bool = False
    adapted: tuple[str, ...] = ()
    default_weight_decay: float = 0.0
    default_variance_floor: float = 0.0

    def __init__(self, *, condition: PenaltyCondition = None) -> None:
        super().__init__()
        require_choice("condition", condition, ("positive", None))
        self.condition = condition
        self.needs_target = condition == "positive"
        self.n_attributes: int | None = None

    @property
    def prepared(self) -> bool:
        """Whether :meth:`prepare` was called. If so, training starts with the existing state."""
        return self.n_attributes is not None

    def unprepared(self) -> Self:
        """Return a copy that will be prepared again when training starts."""
        penalty = copy.deepcopy(self)
        penalty.n_attributes = None
        return penalty

    def arguments(self) -> dict[str, Any]:
        """Return the constructor's arguments that are stored in attributes of the same name,
        without learned state.

        Examples
        --------
        >>> NoPenalty().arguments()
        {}
        """
        parameters = inspect.signature(type(self)).parameters
        return {name: getattr(self, name) for name in parameters if hasattr(self, name)}

    def extra_repr(self) -> str:
        """Return the arguments, for ``repr``."""
        return ", ".join(f"{name}={value!r}" for name, value in self.arguments().items())

    def prepare(self, s_train: Tensor, generator: torch.Generator) -> None:
        """Fit the penalty to the training rows of S, once, before the first step.

        The state has the device and the dtype of `s_train` (the default dtype if `s_train` contains
        integers), and batches should match both. `generator` is used by penalties with random
        initial weights or a random subsample.
        """
        s = columns(s_train, "s_train")
        if not s.is_floating_point():  # an integer scale would be truncated
            s = s.to(torch.get_default_dtype())
        if not bool(torch.isfinite(s).all()):
            raise ValueError(
                "s_train contains NaN or infinite values; drop these rows or impute the values."
            )
        self.n_attributes = s.shape[1]
        self._prepare(s.detach(), generator)

    def adapts(self, epoch: int) -> bool:
        """Return whether :meth:`adapt` does anything in this epoch (counted from 0)."""
        return False

    def adapt(self, z: Tensor, s: Tensor, epoch: int) -> None:
        """Refit the state that depends on the representation. Call this method before each step in
        the epochs in which the penalty :meth:`adapts`.

        No gradient flows through this method, and the state is changed in place. Call it directly
        or under ``vmap``, but not inside ``torch.func.grad``, which does not allow changes in
        place.
        """
        if not self.adapts(epoch):
            return
        before = dict(self.named_buffers())
        with torch.no_grad():
            batch = self._checked(z.detach(), s, None, None)
            self._adapt(batch.z, batch.s)
        if any(buffer is not before.get(name) for name, buffer in self.named_buffers()):
            raise TypeError(
                f"{type(self).__name__}.adapt replaced a buffer; change buffers in place instead,"
                " with copy_."
            )

    def forward(
        self, z: Tensor, s: Tensor, *, scores: Tensor | None = None, y: Tensor | None = None
    ) -> Tensor:
        """Return the penalty on one batch, a 0-d tensor."""
        if self.needs_scores and scores is None:
            raise ValueError(
                f"{type(self).__name__} needs the head's raw output; pass scores=head(z)."
            )
        if self.needs_target and y is None:
            raise ValueError(
                f"{type(self).__name__} with condition='positive' needs the target; pass y=y."
            )
        batch = self._checked(z, s, scores, y if self.needs_target else None)
        value = self._value(batch)
        if batch.row_weight is None:
            return value
        return torch.where(batch.row_weight.sum() >= MIN_ROWS, value, torch.zeros_like(value))

    def _prepare(self, s: Tensor, generator: torch.Generator) -> None:
        """Fit the penalty to the training rows, of shape (n, q)."""

    def _adapt(self, z: Tensor, s: Tensor) -> None:
        """Refit the state to a batch with z of shape (m, d) and s of shape (m, q), without a
        gradient.
        """

    @abstractmethod
    def _value(self, batch: Batch) -> Tensor:
        """Return the penalty on a batch whose shapes were checked."""

    def _checked(self, z: Tensor, s: Tensor, scores: Tensor | None, y: Tensor | None) -> Batch:
        """Check shapes but not values: values may be batched by vmap, and reading values on a GPU
        would wait for the GPU.
        """
        _require_tensor(z, "z")
        if z.ndim != 2 or not z.is_floating_point():
            raise ValueError(
                f"z is {z.dtype} of shape {tuple(z.shape)}; pass the output of an encoder,"
                " floats of shape (m, d)."
            )
        m = z.shape[0]
        s = columns(s, "s", m).to(z)
        if self.n_attributes is not None and s.shape[1] != self.n_attributes:
            raise ValueError(
                f"s has {s.shape[1]} columns, but prepare got {self.n_attributes}; pass the same"
                " attributes that you passed to prepare."
            )
        f = None if scores is None else columns(scores, "scores", m).to(z)
        return Batch(z, s, f, None if y is None else (columns(y, "y", m, width=1)[:, 0] == 1).to(z))

    def _not_prepared(self, missing: str) -> RuntimeError:
        return RuntimeError(
            f"{type(self).__name__} has no {missing}; call prepare(s_train, generator) first."
        )


class NoPenalty(Penalty):
    """Zero for every batch, used to train without a penalty.

    Examples
    --------
    >>> NoPenalty()(torch.ones(3, 2), torch.arange(3.0))
    tensor(0.)
    """

    def __init__(self) -> None:  # without a condition
        super().__init__()

    def _value(self, batch: Batch) -> Tensor:
        return zero(batch.z)


def zero(z: Tensor) -> Tensor:
    """Return 0 with a gradient of 0 in z, the penalty on a batch that is too small for the
    statistic.
    """
    return z.sum() * 0


def columns(x: Tensor, name: str, rows: int | None = None, width: int | None = None) -> Tensor:
    """Check the shape of a vector or matrix, and return a vector as one column."""
    _require_tensor(x, name)
    if x.ndim not in (1, 2) or x.numel() == 0:
        raise ValueError(
            f"{name} has shape {tuple(x.shape)}; pass one row per observation, in shape (m,) or (m,"
            " columns)."
        )
    if rows is not None and x.shape[0] != rows:
        raise ValueError(
            f"lengths differ: z has {rows} rows, {name} has {x.shape[0]}. Pass the rows of one"
            " batch."
        )
    x = x[:, None] if x.ndim == 1 else x
    if width is not None and x.shape[1] != width:
        raise ValueError(f"{name} has {x.shape[1]} columns; pass {width} columns.")
    return x


def _require_tensor(x: object, name: str) -> None:
    if not isinstance(x, Tensor):
        raise TypeError(
            f"{name} is {type(x).__name__}; a penalty works on tensors. Pass"
            f" torch.as_tensor({name})."
        )


def require_choice(name: str, value: object, choices: tuple[object, ...]) -> None:
    """Raise an error unless `value` is one of the choices."""
    if value not in choices:
        raise ValueError(
            f"{name}={value!r} is not known; pass one of {', '.join(map(repr, choices))}."
        )
