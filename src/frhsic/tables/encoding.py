"""Encode the codes of a table as a matrix: numbers and dates are scaled, categories become one 0/1
column per level.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np

from frhsic.tables.columns import LARGEST_FEATURE, MOST_ENCODED_LEVELS
from frhsic.tables.schema import ColumnType

# Number of evenly spaced quantiles that a quantile scale stores; the tails add a few.
MOST_KNOTS = 64

Scaling = Literal["quantile", "range"]


@dataclass(frozen=True)
class Scale:
    r"""Piecewise linear map of the numbers of a column, through knots.

    With scaling by range, as in the paper, the smallest and the largest training value become 0 and
    1, and new values are extrapolated linearly. With scaling by quantiles, training values become
    their mid-ranks, scaled to [0, 1]: heavy tails lose their influence, order and ties are
    preserved, and values beyond the training range are clipped to its ends. Each knot :math:`k_j`
    is then a value that stands for :math:`n_j` training rows, and

    .. math:: k_j \mapsto \frac{r_j - r_1}{r_m - r_1}, \qquad r_j = w_1 + \dots + w_{j-1} + \tfrac12
        w_j,

    with :math:`w_j = n_j`, but at most a third of the rows that do not have the most frequent
    value. This bound keeps the other values apart if most rows are zero. Each distinct value is a
    knot if there are at most :data:`MOST_KNOTS`. A constant column becomes 0.

    Attributes
    ----------
    missing
        Whether any training row lacked the value; if so, a second column is 1 where it is missing.
    middle
        The median, which replaces missing values.
    clipped
        Whether values beyond the knots are clipped.

    Examples
    --------
    >>> scale = Scale.fit("income", np.array([10.0, 20.0, 30.0, 1e6]), "quantile")
    >>> scale(np.array([10.0, 15.0, 30.0, 1e6, 2e6])).ravel().round(3).tolist()
    [0.0, 0.167, 0.667, 1.0, 1.0]
    >>> Scale.fit("age", np.array([20.0, 60.0]), "range")(np.array([20.0, 30.0, 70.0])).tolist()
    [[0.0], [0.25], [1.25]]
    """

    name: str
    missing: bool
    middle: float
    knots: tuple[float, ...]
    places: tuple[float, ...]
    clipped: bool

    @classmethod
    def fit(cls, name: str, values: np.ndarray, scaling: Scaling) -> Self:
        """Fit the scale to a column; NaN is missing."""
        absent = np.isnan(values)
        present = np.zeros(1)
        if not absent.all():
            present = np.clip(values[~absent], -LARGEST_FEATURE, LARGEST_FEATURE)
        middle = float(np.quantile(present, 0.5, method="inverted_cdf"))
        if scaling == "range":
            knots = np.unique([present.min(), present.max()])
            places = np.arange(len(knots), dtype=np.float64)
        else:
            knots, places = _quantile_knots(present)
        return cls(
            name,
            bool(absent.any()),
            middle,
            tuple(knots.tolist()),
            tuple(places.tolist()),
            scaling == "quantile",
        )

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns of the matrix."""
        return (self.name, f"{self.name}=missing") if self.missing else (self.name,)

    def scale_values(self, values: np.ndarray) -> np.ndarray:
        """Return the scaled value of each number; none may be missing."""
        if len(self.knots) < 2:
            return np.zeros(len(values))
        knots = np.array(self.knots)
        places = np.array(self.places)
        least = knots[0] if self.clipped else -LARGEST_FEATURE
        most = knots[-1] if self.clipped else LARGEST_FEATURE
        inside = np.clip(values, least, most)
        right = np.clip(np.searchsorted(knots, inside, side="right"), 1, len(knots) - 1)
        low = places[right - 1]
        high = places[right]
        with np.errstate(over="ignore"):
            share = (inside - knots[right - 1]) / (knots[right] - knots[right - 1])
        place = low + np.clip(share, -1e15, 1e15) * (high - low)
        # rounding must not pass the next knot
        return np.asarray(np.minimum(place, high) if self.clipped else place)

    def __call__(self, values: np.ndarray) -> np.ndarray:
        """Return one column, or two with the indicator of missing values."""
        absent = np.isnan(values)
        column = self.scale_values(np.where(absent, self.middle, values))
        return np.column_stack([column, absent]) if self.missing else column[:, None]


@dataclass(frozen=True)
class Category:
    """Encoder of a column of levels: a 0/1 indicator for the code of each level in the training
    rows. `other` adds a column for all other levels, `missing` a column for rows without a code,
    whose level is missing or unseen. Without `missing`, such rows count as other levels; without
    either column, they contain only zeros.

    Examples
    --------
    >>> Category("job", ("clerk", "cook"), (0, 1))(np.array([1.0, 0.0])).tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """

    name: str
    levels: tuple[Any, ...]
    codes: tuple[int, ...]
    other: bool = False
    missing: bool = False

    @classmethod
    def fit(cls, name: str, values: np.ndarray, levels: Sequence[Any]) -> Self:
        """Fit to codes of levels; NaN is missing. With more than 64 levels, the 63 with the most
        rows keep a column.
        """
        absent = np.isnan(values)
        counts = np.bincount(values[~absent].astype(np.int64), minlength=len(levels))
        present = np.flatnonzero(counts)
        other = len(present) > MOST_ENCODED_LEVELS
        if other:
            order = np.argsort(-counts[present], kind="stable")
            present = np.sort(present[order[: MOST_ENCODED_LEVELS - 1]])
        places = present.tolist()
        kept = tuple(levels[place] for place in places)
        return cls(name, kept, tuple(places), other, bool(absent.any()))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns of the matrix."""
        levels = list(self.levels)
        if self.other:
            levels.append("other")
        if self.missing:
            levels.append("missing")
        return tuple(f"{self.name}={level}" for level in levels)

    def __call__(self, values: np.ndarray) -> np.ndarray:
        """Return one column for each name."""
        blocks = [values[:, None] == np.array(self.codes)]
        absent = np.isnan(values) if self.missing else np.full(len(values), False)
        if self.other:
            blocks.append(~blocks[0].any(axis=1, keepdims=True) & ~absent[:, None])
        if self.missing:
            blocks.append(absent[:, None])
        return np.hstack(blocks).astype(np.float64)


@dataclass(frozen=True)
class TableEncoding:
    """Encoding of the codes of a table as a matrix: one encoder for each column, fitted on the
    training rows.

    Numbers, booleans, dates and durations are scaled (see :class:`Scale`); a column of levels
    becomes one 0/1 column for each level.

    Examples
    --------
    >>> import pandas as pd
    >>> from frhsic.tables.schema import Schema
    >>> table = pd.DataFrame({"age": [20, 60], "job": ["cook", "clerk"]})
    >>> schema = Schema.learn(table)
    >>> encoding = TableEncoding.fit(schema.codes(table), schema.columns)
    >>> encoding.names
    ('age', 'job=clerk', 'job=cook')
    >>> encoding(schema.codes(pd.DataFrame({"age": [30], "job": ["cook"]}))).tolist()
    [[0.25, 0.0, 1.0]]
    """

    columns: tuple[Scale | Category, ...]

    @classmethod
    def fit(
        cls,
        codes: np.ndarray,
        columns: Sequence[ColumnType] | None = None,
        scaling: Scaling = "quantile",
    ) -> Self:
        """Fit one encoder to each column of the codes of a table, (n, d).

        Parameters
        ----------
        codes
            Training rows, as returned by :meth:`Schema.codes`. NaN is missing: a missing number is
            replaced by the median, with an indicator column; a missing level is a level of its own.
        columns
            Types of the columns; None for numbers.
        scaling : "quantile" or "range"
            How numbers and dates are scaled.
        """
        if columns is None:
            columns = [ColumnType(f"x{j}", "number") for j in range(codes.shape[1])]
        encoders: list[Scale | Category] = []
        for column, values in zip(columns, codes.T, strict=True):
            if column.kind == "identifier":
                raise ValueError(
                    f"column {column.name!r} contains text in which nearly every value is unique,"
                    " so it identifies rows. Drop it, or encode it first."
                )
            encoders.append(
                Category.fit(column.name, values, column.levels)
                if column.levels
                else Scale.fit(column.name, values, scaling)
            )
        return cls(tuple(encoders))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns of the matrix."""
        return tuple(name for column in self.columns for name in column.names)

    @property
    def width(self) -> int:
        """Number of columns of the matrix."""
        return len(self.names)

    def __call__(self, codes: np.ndarray) -> np.ndarray:
        """Return a float64 matrix for the codes of a table, which must have the columns that the
        encoding was fitted on.

        A missing number in a column without missing values in training is replaced by the median.
        """
        return np.concatenate(
            [encoder(values) for encoder, values in zip(self.columns, codes.T, strict=True)], axis=1
        )


def _quantile_knots(present: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the knots of the quantile scale of numbers, and their scaled values."""
    values, counts = np.unique(present, return_counts=True)
    if len(values) > MOST_KNOTS:
        # values at evenly spaced ranks and, before the first and after the last of them, those 1,
        # 2, 4, ... rows from each end, each with the number of rows nearest to it, so that one
        # outlier does not change the order of the other rows
        places = _places(counts)
        row = 1 / len(present)
        tail = row * 2.0 ** np.arange(max(0, math.ceil(-math.log2(MOST_KNOTS * row))))
        levels = np.concatenate([np.linspace(0.0, 1.0, MOST_KNOTS), tail, 1 - tail])
        at = np.unique(np.searchsorted(places, levels - row / 2))
        nearest = np.searchsorted((places[at[1:]] + places[at[:-1]]) / 2, places)
        values = values[at]
        counts = np.bincount(nearest, weights=counts, minlength=len(at))
    return values, _places(counts)


def _places(counts: np.ndarray) -> np.ndarray:
    """Return the mid-ranks of values, from 0 to 1, given the number of rows with each value."""
    if len(counts) < 2:
        return np.zeros(len(counts))
    weights = np.minimum(counts, max(1.0, (counts.sum() - counts.max()) / 3))
    ranks = np.cumsum(weights) - weights / 2
    return np.asarray((ranks - ranks[0]) / (ranks[-1] - ranks[0]))
