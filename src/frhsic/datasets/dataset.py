"""A table with a target and a sensitive attribute, its history, and its split into scaled training
and test rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd

from frhsic.formatting import did_you_mean

if TYPE_CHECKING:
    import torch
    from torch import Tensor

Task = Literal["binary", "regression", "multiclass"]


@dataclass(frozen=True)
class Feature:
    """One column of X: a number, or the 0/1 indicator that `source` has the level `level`.

    Examples
    --------
    >>> Feature.indicator("sex", "Female")
    Feature(name='sex=Female', kind='indicator', source='sex', level='Female')
    """

    name: str
    kind: Literal["numeric", "indicator"] = "numeric"
    source: str = ""
    level: str | None = None

    @classmethod
    def numeric(cls, name: str) -> Feature:
        """Return a feature that is a number."""
        return cls(name, "numeric", name)

    @classmethod
    def indicator(cls, source: str, level: object) -> Feature:
        """Return the indicator of one level of a categorical column."""
        return cls(f"{source}={level}", "indicator", source, str(level))


def encoded(
    frame: pd.DataFrame, numeric: Sequence[str], categorical: Mapping[str, Sequence[object] | None]
) -> tuple[pd.DataFrame, tuple[Feature, ...]]:
    """Return numeric columns as they are, then one 0/1 column for each level of each categorical
    one.

    A categorical column that maps to None has the levels that occur, sorted. A value that is not
    among the given levels is an error; a missing one has 0 everywhere.

    Examples
    --------
    >>> X, features = encoded(
    ...     pd.DataFrame({"age": [3, 4], "sex": ["f", "m"]}), ["age"], {"sex": None}
    ... )
    >>> X.to_dict("list")
    {'age': [3.0, 4.0], 'sex=f': [1.0, 0.0], 'sex=m': [0.0, 1.0]}
    """
    features = [Feature.numeric(name) for name in numeric]
    blocks = [frame[list(numeric)].to_numpy(np.float64)]
    for name, given in categorical.items():
        present = frame[name].dropna().unique().tolist()
        levels: list[Any] = sorted(present) if given is None else list(given)
        unknown = sorted(set(present) - set(levels), key=str)
        if unknown:
            raise ValueError(
                f"column {name} has the values {unknown}, which are not among its levels {levels}."
            )
        blocks += [(frame[name] == level).to_numpy(np.float64)[:, None] for level in levels]
        features += [Feature.indicator(name, level) for level in levels]
    X = pd.DataFrame(np.concatenate(blocks, axis=1), columns=[feature.name for feature in features])
    return X, tuple(features)


@dataclass(frozen=True, eq=False)
class Dataset:
    """Features X, target y and sensitive attribute s, one row per observation, with their history.

    Attributes
    ----------
    name : str
        Argument of :func:`~frhsic.datasets.load_dataset`.
    X : DataFrame of shape (n, d)
        Features, all numeric. A missing value stays NaN until :meth:`split` fills it with the
        median of the training rows, so that test rows do not influence it.
    y : Series of length n
        Target: 0/1, a number, or class codes 0, 1, ... in the order of `classes`.
    s : Series of length n, or DataFrame of shape (n, q) for several attributes
        Sensitive attribute in its own unit (years, per cent, ...).
    features : tuple of Feature
        Kind and source of each column of X.
    task : "binary", "regression" or "multiclass"
    classes : tuple of str
        Labels of the classes; empty for a regression.
    provenance, licence, citation : str
        Whose data these are, which rows, what one may do with them, what to cite.
    dropped : tuple of str
        What was left out, and why, in one sentence each.

    Examples
    --------
    >>> table = pd.DataFrame({"hours": [40.0, 20.0, 38.0], "score": [1.0, 0.0, 1.0]})
    >>> data = Dataset(
    ...     "toy",
    ...     table,
    ...     pd.Series([1, 0, 1]),
    ...     pd.Series([30.0, 50.0, 41.0], name="age"),
    ...     tuple(map(Feature.numeric, table)),
    ...     "binary",
    ... )
    >>> data.n, data.d, data.attributes
    (3, 2, ('age',))
    """

    name: str
    X: pd.DataFrame
    y: pd.Series[Any]
    s: pd.Series[Any] | pd.DataFrame
    features: tuple[Feature, ...]
    task: Task
    classes: tuple[str, ...] = ()
    provenance: str = ""
    licence: str = ""
    citation: str = ""
    dropped: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        names = list(self.X.columns)
        if names != [feature.name for feature in self.features]:
            raise ValueError(
                f"{self.name}: the columns of X do not match their descriptions, one for one."
            )
        if not len(self.X) == len(self.y) == len(self.s):
            raise ValueError(
                f"{self.name}: lengths differ: X has {len(self.X)} rows, y {len(self.y)}, s"
                f" {len(self.s)}."
            )
        if not len(self.X):
            raise ValueError(f"{self.name} has no rows.")
        for label, values in (("y", self.y.to_frame()), ("s", pd.DataFrame(self.s))):
            missing = int(values.isna().to_numpy().sum())
            if missing:
                raise ValueError(
                    f"{self.name}: {label} has {missing} missing values; drop those rows first."
                )

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

    def protecting(self, *names: str) -> Dataset:
        """Return the same rows with exactly these columns as the sensitive attributes.

        They leave X; an attribute that was sensitive and is not named becomes a feature.

        Examples
        --------
        >>> table = pd.DataFrame({"hours": [40.0, 20.0], "score": [1.0, 0.0]})
        >>> data = Dataset(
        ...     "toy",
        ...     table,
        ...     pd.Series([1, 0]),
        ...     pd.Series([30.0, 50.0], name="age"),
        ...     tuple(map(Feature.numeric, table)),
        ...     "binary",
        ... ).protecting("age", "hours")
        >>> data.attributes, list(data.X)
        (('age', 'hours'), ['score'])
        """
        if not names:
            raise ValueError("protecting() needs at least one column name.")
        if len(set(names)) < len(names):
            raise ValueError(f"a column is named twice among {', '.join(names)}.")
        sensitive = pd.DataFrame(self.s)
        kinds: dict[str, str] = {feature.name: feature.kind for feature in self.features}
        kinds |= dict.fromkeys(self.attributes, "numeric")
        for name in names:
            if name not in kinds:
                raise ValueError(f"{self.name} has no column {name!r}.{did_you_mean(name, kinds)}")
            if kinds[name] == "indicator":
                raise ValueError(
                    f"{name!r} is one level of a categorical column: its other levels would stay in"
                    " X and tell it. Protect a numeric column."
                )
        everything = pd.concat([sensitive, self.X], axis=1)
        returned = [name for name in self.attributes if name not in names]
        left = [feature for feature in self.features if feature.name not in names]
        features = (*map(Feature.numeric, returned), *left)
        return replace(
            self,
            X=everything[[feature.name for feature in features]],
            s=everything[names[0]] if len(names) == 1 else everything[list(names)],
            features=features,
        )

    def take(self, rows: Sequence[int] | np.ndarray) -> Dataset:
        """Return the rows at these positions, in this order."""
        index = np.asarray(rows, dtype=np.int64)
        return replace(
            self,
            X=self.X.iloc[index].reset_index(drop=True),
            y=self.y.iloc[index].reset_index(drop=True),
            s=self.s.iloc[index].reset_index(drop=True),
        )

    def sample(self, n: int, seed: int) -> Dataset:
        """Return n rows drawn without replacement: the first n of the legacy generator's
        permutation.
        """
        if not 1 <= n <= self.n:
            raise ValueError(
                f"sample({n}) of {self.name}, which has {self.n} rows; ask for 1 to {self.n}."
            )
        return self.take(legacy_permutation(self.n, seed)[:n])

    def split(
        self,
        seed: int,
        *,
        train: float | None = None,
        validation: float = 0.0,
        scaling: Literal["train", "all"] = "train",
        dtype: torch.dtype | None = None,
    ) -> Split:
        r"""Split the rows at random and scale every column to [0, 1].

        :math:`x \mapsto (x - \min) / (\max - \min)`, with the minimum and maximum of the training
        rows, for each column of X and of s; y is untouched. A column that is constant in training
        is only shifted to 0. Missing values become the median of the training rows first.

        The permutation is that of NumPy's legacy generator, the first :math:`\lfloor 0.8 n\rfloor`
        rows train: the published splits are the seeds 42 to 46.

        Parameters
        ----------
        seed : int
            From 0 to 2**32 - 1.
        train : float, optional
            Share of training rows. Left out, the last fifth are test rows, whatever `validation`
            is, and the validation rows come off the end of the training rows: the test rows stay
            the same.
        validation : float
            Share of validation rows; they follow the training rows. All others are test rows.
        scaling : "train" or "all"
            Rows that medians, minima and maxima are computed on. "all" includes test rows, as
            several published experiments did.
        dtype : torch.dtype, optional
            Type of x, s and of a binary or regression target; float32 if not given.

        Examples
        --------
        >>> table = pd.DataFrame({"hours": [40.0, 20.0, 38.0, 10.0, 30.0]})
        >>> data = Dataset(
        ...     "toy",
        ...     table,
        ...     pd.Series([1, 0, 1, 0, 1]),
        ...     pd.Series([30.0, 50.0, 41.0, 22.0, 63.0], name="age"),
        ...     (Feature.numeric("hours"),),
        ...     "binary",
        ... )
        >>> x, y, s = data.split(42).train
        >>> len(x), float(x.min()), float(x.max())
        (4, 0.0, 1.0)
        """
        import torch  # late: tables are loaded without it

        dtype = dtype or torch.float32
        if scaling not in ("train", "all"):
            raise ValueError(f"scaling={scaling!r}; pass 'train' or 'all'.")
        trained, validated, tested = partition(legacy_permutation(self.n, seed), train, validation)
        fitted = trained if scaling == "train" else np.arange(self.n)
        x = torch.from_numpy(min_max(self.X, fitted)).to(dtype)
        s = torch.from_numpy(min_max(pd.DataFrame(self.s), fitted)).to(dtype)
        if self.s.ndim == 1:
            s = s[:, 0]
        y = torch.from_numpy(self.y.to_numpy(np.float64).copy())
        y = y.to(torch.int64 if self.task == "multiclass" else dtype)

        def subset(rows: np.ndarray) -> Subset:
            return Subset(x[rows], y[rows], s[rows], rows)

        return Split(
            train=subset(trained),
            test=subset(tested),
            validation=subset(validated) if len(validated) else None,
            seed=seed,
        )


def legacy_permutation(n: int, seed: int) -> np.ndarray:
    """Return a permutation of 0, ..., n - 1 by NumPy's legacy generator, as the published splits
    drew it.

    Examples
    --------
    >>> legacy_permutation(4, 42).tolist()
    [1, 3, 0, 2]
    """
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or not 0 <= seed < 2**32:
        raise ValueError(f"seed={seed!r}; pass an integer from 0 to 2**32 - 1.")
    return np.random.RandomState(int(seed)).permutation(n)


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
        """Return the subset with its tensors on another device."""
        return Subset(self.x.to(device), self.y.to(device), self.s.to(device), self.rows)


@dataclass(frozen=True, eq=False)
class Split:
    """Training, validation and test rows of a dataset; `validation` is None in a split in two."""

    train: Subset
    test: Subset
    validation: Subset | None
    seed: int


def min_max(frame: pd.DataFrame, rows: np.ndarray) -> np.ndarray:
    """Return x -> (x - low) / (high - low) for each column, by `rows`; missing values become their
    median first.

    Examples
    --------
    >>> min_max(
    ...     pd.DataFrame({"a": [1.0, 3.0, np.nan], "b": [5.0, 5.0, 6.0]}), np.array([0, 1])
    ... ).tolist()
    [[0.0, 0.0], [1.0, 0.0], [0.5, 1.0]]
    """
    values = frame.to_numpy(np.float64)
    fitted = values[rows]
    empty = np.isnan(fitted).all(axis=0)
    if empty.any():
        raise ValueError(
            f"no training row has a value in {', '.join(frame.columns[empty])}, so there is nothing"
            " to impute from. Drop that column or take more training rows."
        )
    low = np.nanmin(fitted, axis=0)
    width = np.nanmax(fitted, axis=0) - low
    filled = np.where(np.isnan(values), np.nanmedian(fitted, axis=0), values)
    return np.asarray((filled - low) / np.where(width > 0, width, 1.0))


def partition(
    order: np.ndarray, train: float | None, validation: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
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
        raise ValueError(
            f"validation={validation}; pass a share of the rows, from 0 up to but not 1."
        )
    if train is not None and not 0 < train < 1:
        raise ValueError(f"train={train}; pass a share of the rows, between 0 and 1.")
    held = _count(validation, n)
    first = _count(train, n) if train is not None else _count(0.8, n) - held
    last = first + held
    if first < 1 or last >= n or (validation > 0 and held < 1):
        raise ValueError(
            f"train={train}, validation={validation} of {n} rows leaves {max(first, 0)} to train,"
            f" {held} to validate and {max(n - last, 0)} to test; each part needs at least one."
        )
    return order[:first], order[first:last], order[last:]


def _count(share: float, n: int) -> int:
    return math.floor(round(share * n, 9))  # 0.29 * 100 is 28.999999999999996
