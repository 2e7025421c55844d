r"""What every penalty is: a scalar of one batch, with two named places for what it must fit.

A training loop calls three things, and only the last is differentiated:

.. code-block:: python

    penalty.prepare(s_train, generator)           # once: bins, the scale of S, an adversary's first weights
    for epoch in range(epochs):
        for x, y, s in batches:
            z = encoder(x)
            penalty.adapt(z.detach(), s, epoch)   # an adversary takes its step, a bandwidth is refreshed
            scores = head(z)
            loss = task(scores, y) + weight * penalty(z, s, scores=scores, y=y)

All state is tensors, held in buffers and changed in place, so that ``torch.func.functional_call`` under
``torch.func.vmap`` can run it for many models at once on state stacked along a leading axis. A call reads
no tensor's value into Python, draws nothing at random, and its shapes depend on the shapes that came.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn

from frhsic.kernels import Gaussian, Kernel

__all__ = ["Batch", "Condition", "NoPenalty", "Penalty"]

Condition = Literal["all", "positive"]
"""Which rows are asked to be independent of S: all (Demographic Parity) or those with y = 1 (Equal Opportunity)."""


@dataclass(frozen=True)
class Batch:
    """One batch after the door: matrices of m rows, in the dtype and on the device of `z`."""

    z: Tensor  # (m, d)
    s: Tensor  # (m, q)
    scores: Tensor | None  # (m, c), or None where the penalty does not read them
    chosen: Tensor | None  # (m,), how much each row counts: 1, 0, or a weight; None where all count alike

    @property
    def rows(self) -> int:
        """The number of rows m, those that do not count included."""
        return self.z.shape[0]

    @property
    def weights(self) -> Tensor:
        """One weight per row, in proportion to how much it counts and summing to one, of shape (m,)."""
        if self.chosen is None:
            return torch.full((self.rows,), 1 / self.rows, dtype=self.z.dtype, device=self.z.device)
        return self.chosen / self.chosen.sum().clamp_min(torch.finfo(self.chosen.dtype).tiny)


class Penalty(nn.Module, ABC):
    """A differentiable measure of how far a batch of representations depends on the sensitive attribute.

    Called as ``penalty(z, s, *, scores=None, y=None)`` with z (m, d), s (m,) or (m, q), scores (m,),
    (m, 1) or (m, c) and y (m,) or (m, 1). It returns a 0-d tensor.

    Parameters
    ----------
    condition
        ``"all"``, or ``"positive"`` for Equal Opportunity: the penalty of the rows with y = 1 alone.
    fewest
        With ``condition="positive"``: a batch with fewer rows than this that count gives 0. The published
        runs skipped batches with 10 or fewer.

    Attributes
    ----------
    needs_scores
        Whether a call must be given the head's raw output.
    needs_target
        Whether a call must be given y.
    fixed_state
        Names of buffers that :meth:`prepare` sets and :meth:`adapt` leaves alone.
    """

    needs_scores: bool = False
    needs_target: bool = False
    fixed_state: tuple[str, ...] = ()

    def __init__(self, *, condition: Condition = "all", fewest: int = 11) -> None:
        super().__init__()
        one_of("condition", condition, get_args(Condition))
        whole("fewest", fewest, 2)
        self.condition = condition
        self.fewest = fewest
        self.needs_target = condition == "positive"
        self.attributes_seen: int | None = None

    def arguments(self) -> dict[str, Any]:
        """Return the arguments that would make this penalty again, without what it has learnt, as far as it kept them.

        Examples
        --------
        >>> NoPenalty().arguments()
        {}
        """
        asked = inspect.signature(type(self)).parameters
        return {name: getattr(self, name) for name in asked if hasattr(self, name)}

    def extra_repr(self) -> str:
        """Return the arguments that are not the default ones, for ``repr``."""
        asked = inspect.signature(type(self)).parameters

        def default(name: str, value: Any) -> Any:
            usual = asked[name].default
            return Gaussian(1.0) if usual is None and isinstance(value, Kernel) else usual

        return ", ".join(f"{n}={v!r}" for n, v in self.arguments().items() if repr(v) != repr(default(n, v)))

    def prepare(self, s_train: Tensor, generator: torch.Generator) -> None:
        """Fix what depends on the training rows of S, once, before the first step.

        The state is made on the device and in the dtype of `s_train` (the default one, of integers), which are
        those of the batches to come. `generator` is used by penalties with parameters of their own; others leave
        it untouched.
        """
        s = columns(s_train, "s_train")
        s = s if s.is_floating_point() else s.to(torch.get_default_dtype())  # a scale of whole numbers is not one
        if not bool(torch.isfinite(s).all()):
            raise ValueError("s_train holds values that are NaN or infinite; drop those rows or impute them.")
        self.attributes_seen = s.shape[1]
        self._prepare(s.detach(), generator)

    def adapts(self, epoch: int) -> bool:
        """Return whether :meth:`adapt` does anything in this epoch (counted from 0)."""
        return False

    def adapt(self, z: Tensor, s: Tensor, epoch: int) -> None:
        """Refit what follows the representation, before each step; nothing unless :meth:`adapts`.

        No gradient flows through it, and the state is changed in place. Call it under ``vmap`` or plainly, but
        not inside ``torch.func.grad``, which lets nothing be changed in place.
        """
        if not self.adapts(epoch):
            return
        with torch.no_grad():
            batch = self._door(z.detach(), s, None, None)
            self._adapt(batch.z, batch.s)

    def forward(self, z: Tensor, s: Tensor, *, scores: Tensor | None = None, y: Tensor | None = None) -> Tensor:
        """Return the penalty of one batch, a 0-d tensor."""
        if self.needs_scores and scores is None:
            raise ValueError(f"{type(self).__name__} needs the head's raw output; pass scores=head(z).")
        if self.needs_target and y is None:
            raise ValueError(f"{type(self).__name__} with condition='positive' needs the target; pass y=y.")
        batch = self._door(z, s, scores if self.needs_scores else None, y if self.needs_target else None)
        value = self._value(batch)
        if batch.chosen is None:
            return value
        return torch.where(batch.chosen.sum() >= self.fewest, value, torch.zeros_like(value))

    def _prepare(self, s: Tensor, generator: torch.Generator) -> None:
        """Fit to the training rows, of shape (n, q)."""

    def _adapt(self, z: Tensor, s: Tensor) -> None:
        """Refit to a batch, z of shape (m, d) and s of shape (m, q), without gradient."""

    @abstractmethod
    def _value(self, batch: Batch) -> Tensor:
        """Return the penalty of a batch that has passed the door."""

    def _door(self, z: Tensor, s: Tensor, scores: Tensor | None, y: Tensor | None) -> Batch:
        """Check shapes, and only shapes: values may be batched, or on a GPU that must not be waited for."""
        _require_tensor(z, "z")
        if z.ndim != 2:
            raise ValueError(
                f"z has shape {tuple(z.shape)}; a penalty takes one batch, one row per observation: (m, d)."
            )
        if not z.is_floating_point():
            raise TypeError(f"z has dtype {z.dtype}; pass the floating-point output of an encoder.")
        m = z.shape[0]
        seen = columns(s, "s", m).to(z)
        if self.attributes_seen is not None and seen.shape[1] != self.attributes_seen:
            raise ValueError(
                f"s has {seen.shape[1]} columns, but prepare saw {self.attributes_seen}; pass the same attributes."
            )
        return Batch(
            z=z,
            s=seen,
            scores=None if scores is None else columns(scores, "scores", m).to(z),
            chosen=None if y is None else (single(y, "y", m) == 1).to(z),
        )

    def _lacks(self, what: str) -> RuntimeError:
        return RuntimeError(
            f"{type(self).__name__} has no {what} yet; call prepare(s_train, generator) before the first batch."
        )


class NoPenalty(Penalty):
    """Zero for every batch: training without regard to S.

    Examples
    --------
    >>> NoPenalty()(torch.ones(3, 2), torch.arange(3.0))
    tensor(0.)
    """

    def __init__(self) -> None:
        super().__init__()

    def _value(self, batch: Batch) -> Tensor:
        return nothing(batch.z)


def nothing(z: Tensor) -> Tensor:
    """Return 0 with a gradient of 0 in z: what a batch too small for its statistic gives."""
    return z.sum() * 0


def columns(x: Tensor, name: str, rows: int | None = None) -> Tensor:
    """Return a vector as one column and a matrix as it is, after checking its shape."""
    _require_tensor(x, name)
    if x.ndim not in (1, 2) or x.numel() == 0:
        raise ValueError(f"{name} has shape {tuple(x.shape)}; pass one row per observation: (m,) or (m, columns).")
    if rows is not None and x.shape[0] != rows:
        raise ValueError(f"lengths differ: z has {rows} rows, {name} has {x.shape[0]}. Pass rows of one batch.")
    return x[:, None] if x.ndim == 1 else x


def _require_tensor(x: object, name: str) -> None:
    if not isinstance(x, Tensor):
        raise TypeError(f"{name} is {type(x).__name__}; a penalty works on tensors. Pass torch.as_tensor({name}).")


def single(x: Tensor, name: str, rows: int | None = None) -> Tensor:
    """Return a vector or a matrix of one column as a vector."""
    column = columns(x, name, rows)
    if column.shape[1] != 1:
        raise ValueError(f"{name} has {column.shape[1]} columns; pass one.")
    return column[:, 0]


def one_of(name: str, value: object, choices: tuple[str, ...]) -> None:
    """Raise unless `value` is one of the choices."""
    if value not in choices:
        raise ValueError(f"{name}={value!r} is not known; pass one of {', '.join(map(repr, choices))}.")


def whole(name: str, value: object, least: int) -> None:
    """Raise unless `value` is an integer of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ValueError(f"{name}={value!r}; pass an integer of at least {least}.")


def positive(name: str, value: object) -> float:
    """Return `value` as a float; raise unless it is a positive, finite number."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < float("inf"):
        raise ValueError(f"{name}={value!r}; pass a positive, finite number.")
    return float(value)
