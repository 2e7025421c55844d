"""Rows of the partitions of a Dask data frame as numbers, and sums over them that are added up on the workers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import ndtri

from frhsic.auditing.inputs import Rows
from frhsic.probes import FOLDS
from frhsic.tables.columns import is_positive, numbers

Keys = NDArray[np.uint64]
T = TypeVar("T")

FAN_IN = 8
"""Results that one task adds up."""

FLOATS = ({np.dtype(np.float32)}, {np.dtype(np.float64)})
"""Types of columns that are one array when they are read."""


@dataclass(frozen=True)
class Roles:
    """Columns of a frame by what they are for: Z (or the score alone), attributes, score and target."""

    z: tuple[str, ...]
    s: tuple[str, ...]
    score: str | None = None
    target: str | None = None
    positive: object = None
    favourable: object = None
    seed: int = 0

    @property
    def columns(self) -> list[str]:
        """The names of all columns."""
        named = (*self.z, *self.s, self.score, self.target)
        return list(dict.fromkeys(name for name in named if name is not None))


@dataclass(frozen=True, eq=False)
class Block(Rows):
    """Rows without missing values; `key` is a hash of the number of each row in the whole frame.

    So draws do not depend on the partitions. z is float64, or as it was read.
    """

    key: Keys = field(kw_only=True)

    def first(self, most: int) -> Block:
        """Return the rows with the smallest keys, in the order of their keys: a random sample."""
        return self.keep(np.argsort(self.key)[:most])

    def joined(self, other: Block) -> Block:
        """Return the rows of two blocks."""
        own = {name: part for name, part in vars(self).items() if isinstance(part, np.ndarray)}
        both: dict[str, Any] = {name: np.concatenate([part, getattr(other, name)]) for name, part in own.items()}
        return replace(self, **both)

    @property
    def fold(self) -> np.ndarray:
        """The fold of each row."""
        return (hashed(self.key, 1) % np.uint64(FOLDS)).astype(np.int64)

    @property
    def noise(self) -> np.ndarray:
        """A standard normal number for each row, which is independent of everything else."""
        return np.asarray(ndtri(((hashed(self.key, 2) >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53))


def hashed(numbers: Keys, seed: int) -> Keys:
    """Return pseudo-random numbers of 64 bits for whole numbers: the finalizer of SplitMix64 (Steele et al., 2014).

    Examples
    --------
    The first numbers of that generator with the seeds 0 and 1.

    >>> hashed(np.arange(2, dtype=np.uint64), 0).tolist()
    [16294208416658607535, 10451216379200822465]
    """
    with np.errstate(over="ignore"):
        x = numbers + np.uint64((0x9E3779B97F4A7C15 * (2 * seed + 1)) % 2**64)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return x ^ (x >> np.uint64(31))


def block_of(part: pd.DataFrame, roles: Roles, number: int, first_row: int) -> tuple[int, Block]:
    """Return how many rows a partition has, and those without missing values.

    `number` is that of the partition, for messages; `first_row` is the number of its first row in the frame.
    """
    missing = [name for name in roles.columns if name not in part.columns]
    if missing:
        raise ValueError(
            f"partition {number} has no column {missing[0]!r}; its columns are {', '.join(map(str, part.columns))}. "
            "Give all partitions the same columns."
        )
    part = part.reset_index(drop=True)

    def column(name: str) -> np.ndarray:
        remedy = "Pass positive=VALUE to say which value counts as 1." if name == roles.target else ""
        return numbers(part[name], f"column {name!r} of partition {number}", remedy=remedy)

    s = np.column_stack([column(name) for name in roles.s])
    z = part[list(roles.z)].to_numpy() if set(part.dtypes[list(roles.z)]) in FLOATS else None
    with np.errstate(over="ignore", invalid="ignore"):
        sound = z is not None and np.isfinite(z.sum())
    if z is None or (not sound and np.isinf(z).any()):  # columns one by one, which tell what is wrong
        z = np.column_stack([column(name) for name in roles.z])
    f = None if roles.score is None else column(roles.score)
    y = favoured = None
    known = ~np.isnan(s).any(axis=1)
    known &= True if sound else ~np.isnan(z).any(axis=1)
    known &= True if f is None else ~np.isnan(f)
    if roles.target is not None:
        target = part[roles.target]
        known &= target.notna().to_numpy()
        if roles.positive is None:
            y = column(roles.target)
            known &= ~np.isnan(y)
        else:
            y = is_positive(target, roles.positive, f"{roles.target} of partition {number}")
        favoured = y == 1 if roles.favourable is None else is_positive(target, roles.favourable, roles.target) == 1
    key = hashed(np.arange(first_row, first_row + len(part), dtype=np.uint64), roles.seed)
    block = Block(z, s, f, y, favoured, key=key)
    return len(part), block if known.all() else block.keep(known)


def dask_module() -> Any:
    """Return the module dask, or raise with what to install."""
    try:
        import dask
        import dask.dataframe
        import distributed  # noqa: F401  # only asked whether it is there
    except ImportError as error:
        raise ImportError("Dask is not installed; install it with pip install 'frhsic[dask]'.") from error
    return dask


def require_columns(frame: Any, names: Sequence[str]) -> None:
    """Raise unless `frame` is a Dask data frame with these columns."""
    if not hasattr(frame, "to_delayed"):
        raise TypeError(
            f"frame is {type(frame).__name__}; pass a Dask data frame, such as dask.dataframe.read_parquet."
        )
    missing = [name for name in names if name not in frame.columns]
    if missing:
        raise ValueError(f"frame has no column {missing[0]!r}; its columns are {list(frame.columns)}.")


def first_rows(frame: Any, column: str) -> list[int]:
    """Return the number of the first row of each partition, from the lengths of one column, and the number of rows."""
    dask = dask_module()
    lengths = dask.compute(*(dask.delayed(len)(part) for part in frame[[column]].to_delayed()))
    return [0, *np.cumsum(lengths).tolist()]


def over_partitions(
    frame: Any, roles: Roles, starts: Sequence[int], step: Callable[[int, Block, Any], T], plan: Any
) -> T:
    """Return the sum over partitions of ``step(rows given, block, plan)``; see :func:`added`."""
    dask = dask_module()
    shared = dask.delayed((roles, step, plan), traverse=False)
    parts = frame[roles.columns].to_delayed()
    level = [
        dask.delayed(_stepped, pure=False)(part, shared, number, first)
        for number, (part, first) in enumerate(zip(parts, starts[:-1], strict=True))
    ]
    while len(level) > 1:  # the same tree for the same partitions, whichever worker is first
        level = [dask.delayed(reduce, pure=False)(added, level[i : i + FAN_IN]) for i in range(0, len(level), FAN_IN)]
    result: T = dask.compute(level[0])[0]
    return result


def added(first: Any, second: Any) -> Any:
    """Return the sum of two results: of tuples entry by entry, with None for what has no rows.

    Examples
    --------
    >>> added((1, None, (2.0,)), (10, 5, (20.0,)))
    (11, 5, (22.0,))
    """
    if first is None or second is None:
        return second if first is None else first
    if isinstance(first, tuple):
        return tuple(added(a, b) for a, b in zip(first, second, strict=True))
    return first + second


def _stepped(part: pd.DataFrame, shared: tuple[Roles, Callable[..., Any], Any], number: int, first_row: int) -> Any:
    roles, step, plan = shared
    return step(*block_of(part, roles, number, first_row), plan)
