"""A table with a target and a sensitive attribute, where it came from, and what was left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import pandas as pd
import torch

from frhsic.datasets._split import Split, partition
from frhsic.formatting import did_you_mean
from frhsic.tables import Task, check_distinct


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


@dataclass(frozen=True, eq=False)
class Dataset:
    """Features X, target y and sensitive attribute s, one row per observation, with their history.

    Attributes
    ----------
    name, variant : str
        Arguments of :func:`~frhsic.datasets.load_dataset`.
    X : DataFrame of shape (n, d)
        Features, all numeric. A missing value stays NaN until :meth:`split` fills it with the median
        of the training rows, so that test rows do not influence it.
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
    >>> data = Dataset("toy", "own", table, pd.Series([1, 0, 1]), pd.Series([30.0, 50.0, 41.0], name="age"),
    ...                tuple(map(Feature.numeric, table)), "binary")
    >>> data.n, data.d, data.attributes
    (3, 2, ('age',))
    """

    name: str
    variant: str
    X: pd.DataFrame
    y: pd.Series[Any]
    s: pd.Series[Any] | pd.DataFrame
    features: tuple[Feature, ...]
    task: Task
    classes: tuple[str, ...] = ()
    provenance: str = ""
    licence: str = ""
    citation: str = ""
    dropped: tuple[str, ...] = field(default=())

    def __post_init__(self) -> None:
        names = list(self.X.columns)
        if names != [feature.name for feature in self.features]:
            raise ValueError(f"{self.name}: the columns of X do not match their descriptions, one for one.")
        check_distinct(names, f"{self.name}: X")
        if not len(self.X) == len(self.y) == len(self.s):
            raise ValueError(
                f"{self.name}: lengths differ: X has {len(self.X)} rows, y {len(self.y)}, s {len(self.s)}."
            )
        if not len(self.X):
            raise ValueError(f"{self.name} has no rows.")
        for label, values in (("y", self.y.to_frame()), ("s", pd.DataFrame(self.s))):
            missing = int(values.isna().to_numpy().sum())
            if missing:
                raise ValueError(f"{self.name}: {label} has {missing} missing values; drop those rows first.")

    def __repr__(self) -> str:
        protected = ", ".join(self.attributes)
        return (
            f"Dataset({self.name!r}, {self.variant!r}: n={self.n}, d={self.d}, {self.task}, target {self.y.name!r}, "
            f"sensitive {protected})"
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
    def kinds(self) -> dict[str, str]:
        """Kind of each column of X, "numeric" or "indicator", by its name."""
        return {feature.name: feature.kind for feature in self.features}

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
        >>> data = Dataset("toy", "own", table, pd.Series([1, 0]), pd.Series([30.0, 50.0], name="age"),
        ...                tuple(map(Feature.numeric, table)), "binary").protecting("age", "hours")
        >>> data.attributes, list(data.X)
        (('age', 'hours'), ['score'])
        """
        if not names:
            raise ValueError("protecting() needs at least one column name.")
        if len(set(names)) < len(names):
            raise ValueError(f"a column is named twice among {', '.join(names)}.")
        sensitive = pd.DataFrame(self.s)
        kinds = self.kinds | dict.fromkeys(self.attributes, "numeric")
        for name in names:
            if name not in kinds:
                raise ValueError(f"{self.name} has no column {name!r}.{did_you_mean(name, kinds)}")
            if kinds[name] == "indicator":
                raise ValueError(
                    f"{name!r} is one level of a categorical column: its other levels would stay in X and "
                    "tell it. Protect a numeric column."
                )
        everything = pd.concat([sensitive, self.X], axis=1)
        returned = [name for name in self.attributes if name not in names]
        features = (*map(Feature.numeric, returned), *(f for f in self.features if f.name not in names))
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
        """Return n rows drawn without replacement: the first n of the legacy generator's permutation."""
        if not 1 <= n <= self.n:
            raise ValueError(f"sample({n}) of {self.name}, which has {self.n} rows; ask for 1 to {self.n}.")
        return self.take(legacy_permutation(self.n, seed)[:n])

    def split(
        self,
        seed: int,
        *,
        train: float | None = None,
        validation: float = 0.0,
        scaling: Literal["train", "all"] = "train",
        dtype: torch.dtype = torch.float32,
    ) -> Split:
        r"""Split the rows at random and scale every column to [0, 1].

        :math:`x \mapsto (x - \min) / (\max - \min)`, with the minimum and maximum of the training rows, for each
        column of X and of s; y is untouched. A column that is constant in training is only shifted to 0.
        Missing values become the median of the training rows first.

        The permutation is that of NumPy's legacy generator, the first :math:`\lfloor 0.8 n\rfloor` rows
        train: the published splits are the seeds 42 to 46.

        Parameters
        ----------
        seed : int
            From 0 to 2**32 - 1.
        train : float, optional
            Share of training rows. Left out, the last fifth are test rows, whatever `validation` is, and the
            validation rows come off the end of the training rows: the test rows stay the same.
        validation : float
            Share of validation rows; they follow the training rows. All others are test rows.
        scaling : "train" or "all"
            Rows that medians, minima and maxima are computed on. "all" includes test rows, as several published
            experiments did.
        dtype : torch.dtype
            Type of x, s and of a binary or regression target.

        Examples
        --------
        >>> table = pd.DataFrame({"hours": [40.0, 20.0, 38.0, 10.0, 30.0]})
        >>> data = Dataset("toy", "own", table, pd.Series([1, 0, 1, 0, 1]),
        ...                pd.Series([30.0, 50.0, 41.0, 22.0, 63.0], name="age"), (Feature.numeric("hours"),), "binary")
        >>> x, y, s = data.split(42).train
        >>> len(x), float(x.min()), float(x.max())
        (4, 0.0, 1.0)
        """
        rows = partition(legacy_permutation(self.n, seed), train, validation)
        return Split.of(self, rows, scaling=scaling, dtype=dtype, seed=seed)


def legacy_permutation(n: int, seed: int) -> np.ndarray:
    """Return a permutation of 0, ..., n - 1 by NumPy's legacy generator, as the published splits drew it.

    Examples
    --------
    >>> legacy_permutation(4, 42).tolist()
    [1, 3, 0, 2]
    """
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or not 0 <= seed < 2**32:
        raise ValueError(f"seed={seed!r}; pass an integer from 0 to 2**32 - 1.")
    return np.random.RandomState(int(seed)).permutation(n)
