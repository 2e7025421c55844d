"""Subsets of a dataset for training, validation and test, scaled by the training rows."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
import pandas as pd
import torch
from torch import Tensor

if TYPE_CHECKING:
    from frhsic.datasets._dataset import Dataset


@dataclass(frozen=True, eq=False)
class Subset:
    """Training, validation or test rows of a split: `x, y, s = subset`.

    Attributes
    ----------
    x : Tensor of shape (n, d)
        Scaled features.
    y : Tensor of shape (n,)
        Target as it is; int64 codes for several classes.
    s : Tensor of shape (n,), or (n, q) for several attributes
        Scaled sensitive attribute; outside the training rows it may leave [0, 1].
    s_raw : Tensor, float64
        The same in its own unit.
    rows : ndarray of int
        Positions in the dataset.
    """

    x: Tensor
    y: Tensor
    s: Tensor
    s_raw: Tensor
    rows: np.ndarray

    def __iter__(self) -> Iterator[Tensor]:
        return iter((self.x, self.y, self.s))

    def __len__(self) -> int:
        return len(self.rows)

    def to(self, device: torch.device | str) -> Subset:
        """Return the subset with its tensors on another device."""
        return Subset(self.x.to(device), self.y.to(device), self.s.to(device), self.s_raw.to(device), self.rows)


@dataclass(frozen=True, eq=False)
class MinMaxScale:
    """Column-wise x -> (x - low) / (high - low), with missing values replaced by `fill` first.

    Examples
    --------
    >>> scale = MinMaxScale.fit(np.array([[1.0, 5.0], [3.0, 5.0], [np.nan, 5.0]]), ("a", "b"))
    >>> scale(np.array([[np.nan, 6.0], [4.0, 5.0]])).tolist()
    [[0.5, 1.0], [1.5, 0.0]]
    """

    low: np.ndarray
    high: np.ndarray
    fill: np.ndarray

    @classmethod
    def fit(cls, values: np.ndarray, names: tuple[str, ...]) -> MinMaxScale:
        """Take minimum, maximum and median of each column, missing values left out."""
        missing = np.isnan(values)
        empty = [name for name, all_missing in zip(names, missing.all(axis=0)) if all_missing]
        if empty:
            raise ValueError(
                f"no training row has a value in {', '.join(empty)}, so there is nothing to impute from. "
                "Drop that column or take more training rows."
            )
        median = np.nanmedian if missing.any() else np.median
        # a column that is complete here may have missing values in the rows that are scaled later
        return cls(np.nanmin(values, axis=0), np.nanmax(values, axis=0), np.asarray(median(values, axis=0)))

    def __call__(self, values: np.ndarray) -> np.ndarray:
        width = self.high - self.low
        filled = np.where(np.isnan(values), self.fill, values)
        return np.asarray((filled - self.low) / np.where(width > 0, width, 1.0))


class Partition(NamedTuple):
    """Positions of the rows of each subset."""

    train: np.ndarray
    validation: np.ndarray
    test: np.ndarray


@dataclass(frozen=True, eq=False)
class Split:
    """Training, validation and test rows of a dataset; `validation` is None in a split in two.

    `x_scale` and `s_scale` are the fitted scales, to scale new rows or to read s in its own unit.
    """

    train: Subset
    test: Subset
    validation: Subset | None
    x_scale: MinMaxScale
    s_scale: MinMaxScale
    seed: int

    @classmethod
    def of(
        cls, data: Dataset, rows: Partition, *, scaling: Literal["train", "all"], dtype: torch.dtype, seed: int
    ) -> Split:
        """Fit the scales and cut the tables at `rows`."""
        if scaling not in ("train", "all"):
            raise ValueError(f"scaling={scaling!r}; pass 'train' or 'all'.")
        features = data.X.to_numpy(np.float64)
        sensitive = pd.DataFrame(data.s).to_numpy(np.float64)
        fitted = rows.train if scaling == "train" else slice(None)
        x_scale = MinMaxScale.fit(features[fitted], tuple(data.kinds))
        s_scale = MinMaxScale.fit(sensitive[fitted], data.attributes)
        x_all = torch.from_numpy(x_scale(features)).to(dtype)
        s_all = torch.from_numpy(s_scale(sensitive)).to(dtype)
        s_raw = torch.from_numpy(sensitive.copy())
        if data.s.ndim == 1:
            s_all, s_raw = s_all[:, 0], s_raw[:, 0]
        kind = torch.int64 if data.task == "multiclass" else dtype
        y_all = torch.from_numpy(data.y.to_numpy(np.float64).copy()).to(kind)

        def subset(positions: np.ndarray) -> Subset:
            index = torch.from_numpy(positions)
            return Subset(x_all[index], y_all[index], s_all[index], s_raw[index], positions)

        validation = subset(rows.validation) if len(rows.validation) else None
        return cls(subset(rows.train), subset(rows.test), validation, x_scale, s_scale, seed)


def partition(order: np.ndarray, train: float | None, validation: float) -> Partition:
    """Cut a permutation into training, validation and test rows.

    Examples
    --------
    >>> [rows.tolist() for rows in partition(np.arange(10), None, 0.2)]
    [[0, 1, 2, 3, 4, 5], [6, 7], [8, 9]]
    >>> [rows.tolist() for rows in partition(np.arange(10), 0.5, 0.1)]
    [[0, 1, 2, 3, 4], [5], [6, 7, 8, 9]]
    """
    n = len(order)
    if not 0 <= validation < 1:
        raise ValueError(f"validation={validation}; pass a share of the rows, from 0 up to but not 1.")
    if train is not None and not 0 < train < 1:
        raise ValueError(f"train={train}; pass a share of the rows, between 0 and 1.")
    held = _count(validation, n)
    first = _count(train, n) if train is not None else _count(0.8, n) - held
    last = first + held
    if first < 1 or last >= n or (validation > 0 and held < 1):
        raise ValueError(
            f"train={train}, validation={validation} of {n} rows leaves {max(first, 0)} to train, {held} to validate "
            f"and {max(n - last, 0)} to test; each part needs at least one."
        )
    return Partition(order[:first], order[first:last], order[last:])


def _count(share: float, n: int) -> int:
    return math.floor(round(share * n, 9))  # 0.29 * 100 is 28.999999999999996
