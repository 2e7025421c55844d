"""Training rows, the members of a fleet with their random streams, and the batches that members are
trained on.

Every stream is ``numpy.random.SeedSequence([seed, split, purpose, *more])`` with a fixed number for
each purpose, independent of the weight λ and of the method. Therefore, adding a weight or a method
changes no other model, and two methods trained with the same (seed, split) start from the same
weights and see the same batches, so their results are paired. Draws are made on the CPU, so that a
GPU gets the same numbers.

Layers draw their initial weights from torch's global generators, and so does dropout during
training; neither accepts a separate generator. All code that draws from the global generators runs
in this module, under one lock, with a stream for each purpose. Initial weights are drawn from a
private generator, so that other code cannot affect them.
"""

from __future__ import annotations

import inspect
import math
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from enum import IntEnum
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from frhsic import _tensors


@dataclass(frozen=True, order=True)
class Member:
    """One model of a fleet: the weight λ of the penalty, the seed, and the split that the model is
    trained on.

    Initial weights, the order of batches and the penalty's randomness are functions of (seed,
    split) only.

    Examples
    --------
    >>> Member(penalty_weight=10.0, seed=42)
    Member(penalty_weight=10.0, seed=42, split=0)
    """

    penalty_weight: float
    seed: int = 0
    split: int = 0

    def __post_init__(self) -> None:
        if not (math.isfinite(self.penalty_weight) and self.penalty_weight >= 0):
            raise ValueError(
                f"penalty_weight is {self.penalty_weight}; pass a finite nonnegative number."
            )
        if not (0 <= self.seed < 2**32 and 0 <= self.split < 2**32):
            raise ValueError(
                f"seed={self.seed}, split={self.split}; pass whole numbers from 0 to 2**32 - 1."
            )


def grid(
    penalty_weights: Iterable[float],
    seeds: Iterable[int] = (0,),
    splits: Iterable[int] | None = None,
) -> list[Member]:
    """Return one member for each weight and each (seed, split) pair.

    `splits` has one entry for each seed. By default, every seed uses split 0.

    Examples
    --------
    >>> members = grid([0.0, 1.0], seeds=[42, 43], splits=[0, 1])
    >>> [(one.penalty_weight, one.seed, one.split) for one in members]
    [(0.0, 42, 0), (1.0, 42, 0), (0.0, 43, 1), (1.0, 43, 1)]
    """
    seeds = list(seeds)
    weights = list(penalty_weights)
    pairs = zip(seeds, [0] * len(seeds) if splits is None else splits, strict=True)
    return [Member(float(w), int(seed), int(split)) for seed, split in pairs for w in weights]


@dataclass(frozen=True)
class TrainingData:
    """Training rows of D splits, with n rows each.

    Attributes
    ----------
    x : Tensor
        Features, (D, n, d).
    y : Tensor
        Targets, (D, n): 0/1, class numbers, or real values.
    s : Tensor
        Sensitive attributes, (D, n, q).
    sample_weight : Tensor or None
        Weights of the rows in the task loss, (D, n), with mean 1 in each split. The penalty does
        not use them.
    held_out : TrainingData or None
        Other rows of the same D splits, with the same columns. No model is trained on them. Each
        model keeps the weights of the epoch with the smallest task loss + λ · penalty on the
        held-out rows; see :class:`~frhsic.training.result.Course`.
    labelled : int or None
        Number of rows in each split with known S, if S is not known for all rows; these rows come
        first. The other rows are used for the task but not for the penalty, regardless of their
        values in `s`. With several attributes, a row counts as labeled if all attributes are known.

    Examples
    --------
    >>> data = TrainingData.of([[1, 2], [3, 4]], [0, 1], [0.5, 0.1])
    >>> data.x.shape, data.s.shape
    (torch.Size([1, 2, 2]), torch.Size([1, 2, 1]))
    """

    x: Tensor
    y: Tensor
    s: Tensor
    sample_weight: Tensor | None = None
    held_out: TrainingData | None = None
    labelled: int | None = None

    @classmethod
    def of(
        cls,
        x: Any,
        y: Any,
        s: Any,
        *,
        sample_weight: Any = None,
        held_out: TrainingData | None = None,
        dtype: torch.dtype = torch.float32,
    ) -> TrainingData:
        """Convert the arrays of one split, which may be from NumPy, pandas, polars or torch, or
        lists.

        NaN in `s` marks unknown values; rows with unknown values are moved to the end.

        Examples
        --------
        >>> data = TrainingData.of([[1, 2], [3, 4]], [0, 1], [0.5, 0.1])
        >>> data.splits, data.rows, data.columns
        (1, 2, 2)
        """
        known = _tensors.matrix(s, "s", allow_missing=True)
        missing = known.isnan().any(1)
        named = [(x, "x"), (y, "y"), (known.nan_to_num(), "s")]
        if sample_weight is not None:
            named.append((sample_weight, "sample_weight"))
        x, y, s, *more = (values.to(dtype) for values in _tensors.paired_matrices(*named))
        y = y.squeeze(1)
        weights = None
        if more:
            weights = more[0].squeeze(1)
            if bool((weights < 0).any()) or not bool(weights.sum() > 0):
                raise ValueError(
                    "sample_weight is negative in at least one row, or 0 in all rows; pass"
                    " nonnegative weights, at least one of them positive."
                )
            weights = weights / weights.mean()
        labelled = None
        if bool(missing.any()):
            labelled = int((~missing).sum())
            order = missing.int().argsort(stable=True)  # those with S first
            x = x[order]
            y = y[order]
            s = s[order]
            weights = None if weights is None else weights[order]
        return cls(
            x[None],
            y[None],
            s[None],
            sample_weight=None if weights is None else weights[None],
            held_out=held_out,
            labelled=labelled,
        )

    @classmethod
    def stacked(cls, parts: Sequence[TrainingData]) -> TrainingData:
        """Combine several splits, which must have equal numbers of rows and columns."""
        shapes = {(p.rows, p.labelled, *p.widths, p.held_out is None) for p in parts}
        if len(shapes) != 1:
            raise ValueError(
                "the splits differ in the numbers of rows, of rows with S, or of columns of x, s, y"
                " or weights, or in whether they have held-out rows:"
                f" {', '.join(sorted(map(str, shapes)))}."
            )

        def joined(name: str) -> Any:
            values = [getattr(p, name) for p in parts]
            return None if values[0] is None else torch.cat(values)

        held_out = [p.held_out for p in parts if p.held_out is not None]
        x, y, s, weights = (joined(name) for name in ("x", "y", "s", "sample_weight"))
        return cls(x, y, s, weights, cls.stacked(held_out) if held_out else None, parts[0].labelled)

    def __post_init__(self) -> None:
        if self.x.ndim != 3 or self.s.ndim != 3 or self.x.shape[:2] != self.s.shape[:2]:
            raise ValueError(
                f"x has shape {tuple(self.x.shape)} and s has shape {tuple(self.s.shape)}; pass"
                " arrays of shape (D, n, d) and (D, n, q)."
            )
        for name, values in (("y", self.y), ("sample_weight", self.sample_weight)):
            if values is not None and values.shape != self.x.shape[:2]:
                raise ValueError(
                    f"{name} has shape {tuple(values.shape)}; pass an array of shape"
                    f" {tuple(self.x.shape[:2])}."
                )
        if 0 in self.x.shape:
            raise ValueError(f"x is empty: its shape is {tuple(self.x.shape)}.")
        if self.labelled is not None and not 1 <= self.labelled <= self.rows:
            raise ValueError(
                f"S is NaN in {self.rows - self.labelled} of {self.rows} rows; pass S for some"
                " rows."
            )
        if self.held_out is not None and (self.held_out.splits, *self.held_out.widths) != (
            self.splits,
            *self.widths,
        ):
            raise ValueError(
                "the held-out rows differ from the training rows in splits or columns; pass"
                " held-out rows with the same splits and columns."
            )

    def table(self) -> Tensor:
        """Return the rows of all splits as one matrix, (D·n, d + q + ...), so that a single gather
        operation fetches a batch.
        """
        parts = [self.x, self.s, self.y[..., None]]
        if self.sample_weight is not None:
            parts.append(self.sample_weight[..., None])
        return torch.cat(parts, dim=-1).flatten(0, 1).contiguous()

    @property
    def widths(self) -> tuple[int, int, int, int]:
        """Number of columns of x, s, y and the sample weight in :meth:`table`; 0 if absent."""
        weights = 0 if self.sample_weight is None else 1
        return self.columns, self.s.shape[-1], 1, weights

    @property
    def splits(self) -> int:
        """Number D of splits."""
        return self.x.shape[0]

    @property
    def rows(self) -> int:
        """Number n of training rows in each split."""
        return self.x.shape[1]

    @property
    def columns(self) -> int:
        """Number d of features."""
        return self.x.shape[2]


_LOCK = threading.RLock()

# Functions that draw initial weights and take a generator.
INITIALIZERS = frozenset(
    function
    for name, function in vars(nn.init).items()
    if name.endswith("_")
    and not name.startswith("_")
    and "generator" in inspect.signature(function).parameters
)

# Functions that draw on the CPU by default.
DRAWS = frozenset(
    {
        torch.rand,
        torch.randn,
        torch.randint,
        torch.randperm,
        torch.normal,
        torch.bernoulli,
        torch.multinomial,
    }
    | {
        Tensor.uniform_,
        Tensor.normal_,
        Tensor.random_,
        Tensor.bernoulli_,
        Tensor.exponential_,
        Tensor.log_normal_,
    }
)


class _Local(TorchFunctionMode):
    """Context that redirects draws on the CPU to a private generator, only in the thread that
    entered the context.
    """

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.generator = torch.Generator().manual_seed(seed)

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        if func in INITIALIZERS or func in DRAWS:  # the mode is off inside an initializer
            tensors = [x.device for x in args if isinstance(x, Tensor)]
            place = torch.device(
                kwargs.get("device") or (tensors or [torch.get_default_device()])[0]
            )
            if kwargs.get("generator") is None and place.type == "cpu":
                kwargs["generator"] = self.generator
        return func(*args, **kwargs)


class Purpose(IntEnum):
    """Purpose of a random stream. The seed of a stream depends on these numbers, so they never
    change.
    """

    WEIGHTS = 0
    ORDER = 1
    PENALTY = 2
    TRAINING = 3  # randomness inside a module, such as dropout
    HELD_OUT = 4  # batches of the held-out rows


def stream_seed(seed: int, split: int, purpose: Purpose, *more: int) -> int:
    """Return the 63-bit seed of a stream.

    Examples
    --------
    >>> stream_seed(42, 0, Purpose.ORDER) == stream_seed(42, 0, Purpose.ORDER)
    True
    >>> stream_seed(42, 0, Purpose.ORDER) == stream_seed(42, 1, Purpose.ORDER)
    False
    """
    entropy = np.random.SeedSequence([seed, split, int(purpose), *more])
    return int(entropy.generate_state(1, np.uint64)[0] >> 1)


def stream(seed: int, split: int, purpose: Purpose, *more: int) -> torch.Generator:
    """Return a CPU generator at the start of a stream."""
    return torch.Generator().manual_seed(stream_seed(seed, split, purpose, *more))


@contextmanager
def fork_generators(seed: int | None = None, *, private: bool = True) -> Iterator[None]:
    """Context in which code may create modules and draw from the global generators, which are
    seeded if a seed is given.

    The default dtype is float32 inside the context; it and the generators are restored at the end.
    With `private`, draws on the CPU come from a private generator, so that other threads cannot
    change them; this slows down every torch function.
    """
    ready = torch.cuda.is_initialized()  # type: ignore[no-untyped-call]  # not annotated in torch
    devices = [torch.cuda.current_device()] if ready else []
    with _LOCK, torch.random.fork_rng(devices):
        dtype = torch.get_default_dtype()
        torch.set_default_dtype(torch.float32)
        try:
            if seed is not None:
                torch.default_generator.manual_seed(seed)
                if devices:
                    torch.cuda.manual_seed(seed)
            with nullcontext() if seed is None or not private else _Local(seed):
                yield
        finally:
            torch.set_default_dtype(dtype)


def batch_shapes(data: TrainingData, batch_size: int) -> list[tuple[int, int]]:
    """For each batch in one pass, return the number of rows and the number of rows with S; the last
    batch gets the remaining rows.

    If S is known for only some rows, these rows are spread evenly: batches of equal size differ by
    at most one such row.

    Examples
    --------
    >>> batch_shapes(TrainingData.of([1, 2, 3, 4, 5], [0] * 5, [0, 1, 2, 3, 4]), 2)
    [(2, 2), (2, 2), (1, 1)]
    >>> nan = float("nan")
    >>> batch_shapes(TrainingData.of([1, 2, 3, 4, 5], [0] * 5, [0, nan, 2, nan, 4]), 2)
    [(2, 1), (2, 1), (1, 1)]
    """
    labelled = data.rows if data.labelled is None else data.labelled
    ends = [*range(0, data.rows, batch_size), data.rows]
    with_s = [labelled * end // data.rows for end in ends]
    sizes = [end - start for start, end in pairwise(ends)]
    shares = [end - start for start, end in pairwise(with_s)]
    return list(zip(sizes, shares))


def batch_order(
    seed: int, split: int, epoch: int, n: int, purpose: Purpose = Purpose.ORDER
) -> Tensor:
    """Return the order of the n rows in an epoch, as a permutation that does not depend on earlier
    epochs.

    Examples
    --------
    >>> sorted(batch_order(42, 0, 7, 5).tolist())
    [0, 1, 2, 3, 4]
    """
    return torch.randperm(n, generator=stream(seed, split, purpose, epoch))


class Batches:
    """Batches of rows for every group of a fleet.

    The order of the rows in an epoch is stored on the device with a pointer to the next rows, so
    that all batches of one shape run the same operations, which can be captured as a CUDA graph.

    Parameters
    ----------
    data : TrainingData
        The training rows.
    table : Tensor
        The same rows on the device, as returned by ``data.table()``.
    keys : sequence of (int, int)
        Seed and split of each group; a group uses the rows of its split.
    batch_size : int
        Number of rows in a batch.
    purpose : Purpose
        Random stream that determines the order.
    """

    def __init__(
        self,
        data: TrainingData,
        table: Tensor,
        keys: Sequence[tuple[int, int]],
        batch_size: int,
        purpose: Purpose = Purpose.ORDER,
    ) -> None:
        self.table = table  # (D·n, columns)
        self.keys = keys
        self.purpose = purpose
        self.rows = data.rows
        self.labelled = data.labelled
        self.shapes = batch_shapes(data, batch_size)
        self.order = torch.zeros(len(keys), self.rows, dtype=torch.int64, device=table.device)
        self.start = torch.arange(self.shapes[0][0], device=table.device)
        self.next = self.start.clone()  # positions of the next batch in the order

    def shuffle(self, epoch: int) -> None:
        """Draw the order of the rows in an epoch for each group, and go to the beginning of the
        order.
        """
        orders = {
            (seed, split): self._order(seed, split, epoch) + split * self.rows
            for seed, split in set(self.keys)
        }
        order = torch.stack([orders[key] for key in self.keys])
        if self.order.is_cuda:
            order = order.pin_memory()  # so that the copy below doesn't wait
        self.order.copy_(order, non_blocking=True)
        self.rewind()

    def rewind(self) -> None:
        """Go to the beginning of the order."""
        self.next.copy_(self.start)

    @torch.no_grad()
    def take(self, size: int) -> Tensor:
        """Return the next `size` rows of every group, (G, size, columns); rows with S come
        first.
        """
        at = self.order.index_select(1, self.next[:size])  # (G, m)
        batch = self.table.index_select(0, at.flatten()).view(*at.shape, -1)  # (G, m, columns)
        self.next.add_(size)
        return batch

    def _order(self, seed: int, split: int, epoch: int) -> Tensor:
        order = batch_order(seed, split, epoch, self.rows, self.purpose)
        if self.labelled is None:
            return order
        has_s = order < self.labelled
        with_s = torch.split(order[has_s], [share for _, share in self.shapes])
        without = torch.split(order[~has_s], [size - share for size, share in self.shapes])
        return torch.cat([part for pair in zip(with_s, without) for part in pair])
