"""A table with a target, a sensitive attribute and its provenance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import pandas as pd

Task = Literal["binary", "regression", "multiclass"]


def encode_columns(
    frame: pd.DataFrame, numeric: Sequence[str], categorical: Mapping[str, Sequence[object] | None]
) -> pd.DataFrame:
    """Return numeric columns unchanged, followed by one 0/1 column for each level of each
    categorical column.

    If a categorical column maps to None, its levels are the sorted values that occur in it. A value
    that is not among the given levels is an error. For a missing value, all 0/1 columns are 0.

    Examples
    --------
    >>> table = pd.DataFrame({"age": [3, 4], "sex": ["f", "m"]})
    >>> encode_columns(table, ["age"], {"sex": None}).to_dict("list")
    {'age': [3.0, 4.0], 'sex=f': [1.0, 0.0], 'sex=m': [0.0, 1.0]}
    """
    columns = {name: frame[name].astype(np.float64) for name in numeric}
    for name, given in categorical.items():
        present = frame[name].dropna().unique().tolist()
        levels: list[Any] = sorted(present) if given is None else list(given)
        unknown = sorted(set(present) - set(levels), key=str)
        if unknown:
            raise ValueError(
                f"column {name} has the values {unknown}, which are not among its levels {levels}."
            )
        for level in levels:
            columns[f"{name}={level}"] = (frame[name] == level).astype(np.float64)
    return pd.DataFrame(columns)


@dataclass(frozen=True, eq=False)
class Dataset:
    """Features X, target y and sensitive attribute s, with one row per observation and their
    provenance.

    Attributes
    ----------
    name : str
        Argument of :func:`~frhsic.datasets.load_dataset`.
    X : DataFrame of shape (n, d)
        Features, all numeric, with NaN for missing values.
    y : Series of length n
        Target: 0/1, a number, or class codes 0, 1, ... in the order of `classes`.
    s : Series of length n, or DataFrame of shape (n, q) for several attributes
        Sensitive attribute in its own unit (years, percent, ...).
    task : "binary", "regression" or "multiclass"
    classes : tuple of str
        Labels of the classes; empty for a regression.
    provenance : str
        The owner of the data, and the selection of rows.
    licence : str
        Terms for the use of the data.
    citation : str
        Reference to cite.
    dropped : tuple of str
        One sentence about each omission and the reason.

    Examples
    --------
    >>> table = pd.DataFrame({"hours": [40.0, 20.0, 38.0], "score": [1.0, 0.0, 1.0]})
    >>> data = Dataset(
    ...     "toy",
    ...     table,
    ...     pd.Series([1, 0, 1]),
    ...     pd.Series([30.0, 50.0, 41.0], name="age"),
    ...     "binary",
    ... )
    >>> data.n, data.d, data.attributes
    (3, 2, ('age',))
    """

    name: str
    X: pd.DataFrame
    y: pd.Series[Any]
    s: pd.Series[Any] | pd.DataFrame
    task: Task
    classes: tuple[str, ...] = ()
    provenance: str = ""
    licence: str = ""
    citation: str = ""
    dropped: tuple[str, ...] = ()

    def __repr__(self) -> str:
        protected = ", ".join(self.attributes)
        return (
            f"Dataset({self.name!r}: n={self.n}, d={self.d}, {self.task}, target {self.y.name!r},"
            f" sensitive {protected})"
        )

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.X)

    @property
    def d(self) -> int:
        """Number of columns of X."""
        return self.X.shape[1]

    @property
    def attributes(self) -> tuple[str, ...]:
        """Names of the sensitive attributes."""
        return tuple(str(name) for name in pd.DataFrame(self.s).columns)

    def take(self, rows: Sequence[int] | np.ndarray) -> Dataset:
        """Return the rows at the given positions, in the given order."""
        index = np.asarray(rows, dtype=np.int64)
        return replace(
            self,
            X=self.X.iloc[index].reset_index(drop=True),
            y=self.y.iloc[index].reset_index(drop=True),
            s=self.s.iloc[index].reset_index(drop=True),
        )

    def sample(self, n: int, seed: int) -> Dataset:
        """Return n rows drawn without replacement: the first n in the legacy generator's
        permutation.
        """
        if not 1 <= n <= self.n:
            raise ValueError(
                f"cannot sample {n} of the {self.n} rows of {self.name}; pass a number from 1 to"
                f" {self.n}."
            )
        return self.take(legacy_permutation(self.n, seed)[:n])


def legacy_permutation(n: int, seed: int) -> np.ndarray:
    """Return a permutation of 0, ..., n - 1 from NumPy's legacy generator, as in the published
    splits.

    Examples
    --------
    >>> legacy_permutation(4, 42).tolist()
    [1, 3, 0, 2]
    """
    return np.random.RandomState(seed).permutation(n)
