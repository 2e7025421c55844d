"""The paper's splits: training, validation and test rows of a dataset as scaled tensors."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from frhsic.datasets import Dataset
from frhsic.datasets.dataset import legacy_permutation


@dataclass(frozen=True, eq=False)
class Subset:
    """Training, validation or test rows of a split: `x, y, s = subset`.

    Attributes
    ----------
    x : Tensor of shape (n, d)
        Scaled features.
    y : Tensor of shape (n,)
        The unscaled target; int64 codes for several classes.
    s : Tensor of shape (n,), or (n, q) for several attributes
        Scaled sensitive attribute; rows outside the training set may have values outside [0, 1].
    rows : ndarray of int
        Positions in the dataset.
    """

    x: Tensor
    y: Tensor
    s: Tensor
    rows: np.ndarray

    def __iter__(self) -> Iterator[Tensor]:
        return iter((self.x, self.y, self.s))

    def __len__(self) -> int:
        return len(self.rows)

    def to(self, device: torch.device | str) -> Subset:
        """Return the subset, with its tensors on another device."""
        return Subset(self.x.to(device), self.y.to(device), self.s.to(device), self.rows)


@dataclass(frozen=True, eq=False)
class Split:
    """Training, validation and test rows of a dataset; `validation` is None in a split without
    validation rows.
    """

    train: Subset
    test: Subset
    validation: Subset | None
    seed: int


def split_dataset(
    data: Dataset,
    seed: int,
    *,
    train: float | None = None,
    validation: float = 0.0,
    scaling: Literal["train", "all"] = "train",
) -> Split:
    r"""Split the rows of a dataset at random and scale every column to [0, 1].

    :math:`x \mapsto (x - \min) / (\max - \min)`, with the minimum and maximum of the training rows,
    for each column of X and of s; y is unchanged. A column that is constant in the training rows is
    only shifted to 0. First, missing values are replaced with the median of the training rows.

    The permutation is drawn by NumPy's legacy generator, and the first :math:`\lfloor 0.8 n\rfloor`
    rows are the training rows. Seeds 42 to 46 give the published splits.

    Parameters
    ----------
    data : Dataset
    seed : int
        From 0 to 2**32 - 1.
    train : float, optional
        Share of training rows. By default, the last fifth of the rows are test rows, and validation
        rows are taken from the end of the training rows, so that the test rows don't depend on
        `validation`.
    validation : float
        Share of validation rows, which follow the training rows. All other rows are test rows.
    scaling : "train" or "all"
        Rows on which medians, minima and maxima are computed. "all" includes test rows, as in
        several published experiments.

    Examples
    --------
    >>> data = Dataset(
    ...     "toy",
    ...     pd.DataFrame({"hours": [40.0, 20.0, 38.0, 10.0, 30.0]}),
    ...     pd.Series([1, 0, 1, 0, 1]),
    ...     pd.Series([30.0, 50.0, 41.0, 22.0, 63.0], name="age"),
    ...     "binary",
    ... )
    >>> x, y, s = split_dataset(data, 42).train
    >>> len(x), float(x.min()), float(x.max())
    (4, 0.0, 1.0)
    """
    trained, validated, tested = partition(legacy_permutation(data.n, seed), train, validation)
    fitted = trained if scaling == "train" else np.arange(data.n)
    x = torch.from_numpy(min_max(data.X, fitted)).float()
    s = torch.from_numpy(min_max(pd.DataFrame(data.s), fitted)).float()
    if data.s.ndim == 1:
        s = s[:, 0]
    y = torch.from_numpy(data.y.to_numpy(np.float64).copy())
    y = y.to(torch.int64 if data.task == "multiclass" else torch.float32)

    def subset(rows: np.ndarray) -> Subset:
        return Subset(x[rows], y[rows], s[rows], rows)

    return Split(
        train=subset(trained),
        test=subset(tested),
        validation=subset(validated) if len(validated) else None,
        seed=seed,
    )


def min_max(frame: pd.DataFrame, rows: np.ndarray) -> np.ndarray:
    """Return (x - low) / (high - low) for each column, with the range over `rows`; first, missing
    values are replaced with the median of these rows.

    Examples
    --------
    >>> min_max(
    ...     pd.DataFrame({"a": [1.0, 3.0, np.nan], "b": [5.0, 5.0, 6.0]}), np.array([0, 1])
    ... ).tolist()
    [[0.0, 0.0], [1.0, 0.0], [0.5, 1.0]]
    """
    values = frame.to_numpy(np.float64)
    fitted = values[rows]
    low = np.nanmin(fitted, axis=0)
    width = np.nanmax(fitted, axis=0) - low
    filled = np.where(np.isnan(values), np.nanmedian(fitted, axis=0), values)
    return np.asarray((filled - low) / np.where(width > 0, width, 1.0))


def partition(
    order: np.ndarray, train: float | None, validation: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Split a permutation into training, validation and test rows.

    Examples
    --------
    >>> [rows.tolist() for rows in partition(np.arange(10), None, 0.2)]
    [[0, 1, 2, 3, 4, 5], [6, 7], [8, 9]]
    >>> [rows.tolist() for rows in partition(np.arange(10), 0.5, 0.1)]
    [[0, 1, 2, 3, 4], [5], [6, 7, 8, 9]]
    """
    n = len(order)
    held = _count(validation, n)
    first = _count(train, n) if train is not None else _count(0.8, n) - held
    last = first + held
    if first < 1 or held < 0 or last >= n or (validation > 0 and held < 1):
        raise ValueError(
            f"with train={train} and validation={validation}, {n} rows leave {max(first, 0)} to"
            f" train, {held} to validate and {max(n - last, 0)} to test; each part needs at least"
            " one."
        )
    return order[:first], order[first:last], order[last:]


def _count(share: float, n: int) -> int:
    return math.floor(round(share * n, 9))  # 0.29 * 100 is 28.999999999999996
