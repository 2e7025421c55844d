"""Rows of one partition: checked columns as numbers, and a hash of each row's number."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import ndtri

from frhsic.probes import FOLDS
from frhsic.tables.columns import numbers
from frhsic.tables.targets import is_positive

Keys = NDArray[np.uint64]

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
class Block:
    """Rows without missing values.

    Attributes
    ----------
    key
        Hash of the number of each row in the whole frame, so that draws do not depend on the partitions.
    z, s
        Arrays with one row for each row of the block: (n, d) and (n, q); float64, or z as it was read.
    f
        Scores, or None.
    y, target
        The target as numbers and as it came, or None.
    favoured
        Rows with the favourable outcome: those that were named, or the ones with y = 1; None without a target.
    """

    key: Keys
    z: np.ndarray
    s: np.ndarray
    f: np.ndarray | None
    y: np.ndarray | None
    target: pd.Series[Any] | None
    favoured: np.ndarray | None

    def __len__(self) -> int:
        return len(self.key)

    def take(self, rows: np.ndarray) -> Block:
        """Return some of the rows, by mask or by position."""
        parts: dict[str, Any] = {part.name: getattr(self, part.name) for part in fields(self)}
        target = None if self.target is None else self.target.iloc[rows].reset_index(drop=True)
        taken: dict[str, Any] = {
            name: None if part is None else part[rows] for name, part in parts.items() if name != "target"
        }
        return replace(self, **taken, target=target)

    def first(self, most: int) -> Block:
        """Return the rows with the smallest keys, in the order of their keys: a random sample."""
        order = np.argsort(self.key) if len(self) <= most else np.argpartition(self.key, most)[:most]
        order = order[np.argsort(self.key[order])]
        return self.take(order)

    def joined(self, other: Block) -> Block:
        """Return the rows of two blocks."""
        parts: dict[str, Any] = {}
        for part in fields(self):
            pair = getattr(self, part.name), getattr(other, part.name)
            if pair[0] is None:
                parts[part.name] = None
            elif part.name == "target":
                parts[part.name] = pd.concat(pair, ignore_index=True)
            else:
                parts[part.name] = np.concatenate(pair)
        return Block(**parts)

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
    y = target = favoured = None
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
    block = Block(key, z, s, f, y, target, favoured)
    return len(part), block if known.all() else block.take(known)
