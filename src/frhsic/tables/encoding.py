"""Encode a table as a matrix: numbers and dates by a scale, categories as one 0/1 column for each level."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd

from frhsic import _arrays
from frhsic.tables.columns import MOST_LEVELS, Unit, check_distinct, feature, identifies_rows, is_frame, to_pandas

MOST_KNOTS = 64
"""Values of a column that its quantile scale remembers at even distances of rank; the tails add a few."""

Scaling = Literal["quantile", "robust", "range"]
Unknown = Literal["error", "ignore"]


class _Scale:
    """What the scales share: a missing value takes the place of the median, and may have an indicator.

    `missing` tells whether training rows lacked the value; then a second column is 1 where it is missing.
    """

    name: str
    missing: bool
    unit: Unit

    @property
    def middle(self) -> float:
        """The value that stands for a missing one."""
        raise NotImplementedError

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns of the matrix."""
        return (self.name, f"{self.name}=missing") if self.missing else (self.name,)

    def scaled(self, values: np.ndarray) -> np.ndarray:
        """Return the place of each value, without missing values."""
        raise NotImplementedError

    def __call__(self, values: np.ndarray, unknown: Unknown = "ignore") -> np.ndarray:
        """Return one column, or two with the indicator of missing values."""
        absent = np.isnan(values)
        column = self.scaled(np.where(absent, self.middle, values))
        return np.column_stack([column, absent]) if self.missing else column[:, None]


@dataclass(frozen=True)
class Quantiles(_Scale):
    r"""Piecewise linear map from the training values to their mid-ranks, scaled to [0, 1].

    Heavy tails lose their weight, order and ties stay, and values beyond the training range are put at its ends. Each
    knot :math:`k_j` is a value that stands for :math:`n_j` training rows, and

    .. math:: k_j \mapsto \frac{r_j - r_1}{r_m - r_1}, \qquad r_j = w_1 + \dots + w_{j-1} + \tfrac12 w_j,

    with :math:`w_j = n_j`, but at most a third of the rows that do not have the most frequent value. That bound keeps
    room for the other values where most rows are zero. With at most :data:`MOST_KNOTS` distinct values, each of them is
    a knot. A constant column becomes 0.

    Examples
    --------
    >>> scale = Quantiles.fit("income", np.array([10.0, 20.0, 30.0, 1e6]))
    >>> [round(float(place), 3) for place in scale.scaled(np.array([10.0, 15.0, 30.0, 1e6, 2e6]))]
    [0.0, 0.167, 0.667, 1.0, 1.0]
    """

    name: str
    knots: tuple[float, ...]
    counts: tuple[int, ...]
    missing: bool = False
    unit: Unit = "number"

    def __post_init__(self) -> None:
        knots, counts = np.array(self.knots, dtype=np.float64), np.array(self.counts, dtype=np.float64)
        if (
            len(knots) != len(counts)
            or not np.isfinite(knots).all()
            or (np.diff(knots) <= 0).any()
            or (counts < 1).any()
        ):
            raise ValueError(f"the knots of {self.name!r} are not finite and increasing, with a count each.")

    @classmethod
    def fit(cls, name: str, values: np.ndarray, unit: Unit = "number") -> Quantiles:
        """Fit the knots to a column; NaN is missing."""
        knots, counts = _summary(*np.unique(values[~np.isnan(values)], return_counts=True))
        return cls(name, knots, counts, bool(np.isnan(values).any()), unit)

    @property
    def places(self) -> np.ndarray:
        """The place of each knot, from 0 to 1."""
        return _places(np.array(self.counts, dtype=np.float64))

    @property
    def middle(self) -> float:
        if not self.knots:
            return 0.0
        rows = np.cumsum(self.counts)
        return self.knots[int(np.searchsorted(rows, rows[-1] / 2))]

    def scaled(self, values: np.ndarray) -> np.ndarray:
        if len(self.knots) < 2:
            return np.zeros(len(values))
        knots, places = np.array(self.knots), self.places
        inside = np.clip(values, knots[0], knots[-1])
        right = np.clip(np.searchsorted(knots, inside, side="right"), 1, len(knots) - 1)
        low, high = places[right - 1], places[right]
        share = _share(inside, knots[right - 1], knots[right])
        return np.asarray(np.minimum(low + share * (high - low), high))  # rounding must not pass the next knot


@dataclass(frozen=True)
class Robust(_Scale):
    r"""Robust scale with smooth clipping, :math:`u / \sqrt{1 + (u/3)^2}` with :math:`u = (x - \text{center}) /
    \text{scale}`, so that all values lie between -3 and 3.

    The center is the median and the scale the distance between the quartiles; where that is 0, the median distance of
    the other values from the median. A constant column becomes 0. The map is that of RealMLP (Holzmüller, Grinsztajn
    and Steinwart, "Better by default", 2024), except for the second scale.

    Examples
    --------
    >>> scale = Robust.fit("income", np.array([10.0, 20.0, 30.0, 40.0, 1e6]))
    >>> scale.center, scale.scale
    (30.0, 20.0)
    >>> scale.scaled(np.array([30.0, 1e6])).round(3).tolist()
    [0.0, 3.0]
    """

    name: str
    center: float
    scale: float
    missing: bool = False
    unit: Unit = "number"

    def __post_init__(self) -> None:
        if not (math.isfinite(self.center) and math.isfinite(self.scale) and self.scale > 0):
            raise ValueError(f"{self.name!r} has center {self.center} and scale {self.scale}; both must be finite.")

    @classmethod
    def fit(cls, name: str, values: np.ndarray, unit: Unit = "number") -> Robust:
        """Fit center and scale to a column; NaN is missing."""
        present, missing = values[~np.isnan(values)], bool(np.isnan(values).any())
        if not len(present):
            return cls(name, 0.0, 1.0, missing, unit)
        low, center, high = np.quantile(present, [0.25, 0.5, 0.75], method="inverted_cdf")
        with np.errstate(over="ignore"):
            width, away = high - low, np.abs(present - center)
        if width == 0 and away.any():
            width = np.quantile(away[away > 0], 0.5, method="inverted_cdf")
        largest = float(np.finfo(np.float64).max)
        return cls(name, float(center), float(min(width, largest)) or 1.0, missing, unit)

    @property
    def middle(self) -> float:
        return self.center

    def scaled(self, values: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore"):
            steps = np.clip((values - self.center) / self.scale, -1e15, 1e15)
        return np.asarray(steps / np.hypot(1.0, steps / 3.0))


@dataclass(frozen=True)
class Number(_Scale):
    r"""Scale by the range, :math:`x \mapsto (x - \text{low}) / (\text{high} - \text{low})`, the paper's choice.

    A constant column becomes 0. `median` is None if there was no value.

    Examples
    --------
    >>> Number("age", 20.0, 60.0)(np.array([20.0, 30.0, 70.0])).tolist()
    [[0.0], [0.25], [1.25]]
    """

    name: str
    low: float
    high: float
    median: float | None = None
    missing: bool = False
    unit: Unit = "number"

    def __post_init__(self) -> None:
        if not (math.isfinite(self.low) and math.isfinite(self.high) and self.low <= self.high):
            raise ValueError(f"{self.name!r} has the range {self.low} to {self.high}; both ends must be finite.")

    @classmethod
    def fit(cls, name: str, values: np.ndarray, unit: Unit = "number") -> Number:
        """Fit the range to a column; NaN is missing."""
        present, missing = values[~np.isnan(values)], bool(np.isnan(values).any())
        if not len(present):
            return cls(name, 0.0, 0.0, None, missing, unit)
        median = float(np.quantile(present, 0.5, method="inverted_cdf"))
        return cls(name, float(present.min()), float(present.max()), median, missing, unit)

    @property
    def middle(self) -> float:
        return self.low if self.median is None else self.median

    def scaled(self, values: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore"):
            constant = self.low == self.high
            share = values - self.low if constant else _share(values, np.array(self.low), np.array(self.high))
        return np.clip(share, -1e15, 1e15)


@dataclass(frozen=True)
class Category:
    """Encoder of a categorical column: the 0/1 indicator of each level that the training rows have.

    `other` adds a column for all other levels, unseen ones among them; without it they are all zeros. `missing` adds a
    column for rows without a value; without it they count as an unseen level.

    Examples
    --------
    >>> Category("job", ("clerk", "cook"))(np.array(["cook", "clerk"], dtype=object)).tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """

    name: str
    levels: tuple[Any, ...]
    other: bool = False
    missing: bool = False
    unit = "category"

    @classmethod
    def fit(cls, name: str, values: np.ndarray) -> Category:
        """Fit the levels to a column; None is missing. Above 64 levels, the 63 with the most rows keep a column."""
        counts = Counter(value for value in values.tolist() if value is not None)
        missing, levels = bool(pd.isna(values).any()), _sorted(set(counts))
        if len(levels) <= MOST_LEVELS:
            return cls(name, levels, missing=missing)
        common = sorted(levels, key=lambda level: -counts[level])[: MOST_LEVELS - 1]
        return cls(name, _sorted(set(common)), other=True, missing=missing)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns of the matrix."""
        further = [f"{self.name}=other"] * self.other + [f"{self.name}=missing"] * self.missing
        return (*(f"{self.name}={level}" for level in self.levels), *further)

    def __call__(self, values: np.ndarray, unknown: Unknown = "ignore") -> np.ndarray:
        """Return one column for each name."""
        absent = np.asarray(pd.isna(values))
        position = pd.Index(np.array(self.levels, dtype=object)).get_indexer(pd.Index(values, dtype=object))
        position[absent] = -1
        unseen = (position < 0) & ~(absent & self.missing)
        if unseen.any() and unknown == "error" and (not self.other or absent[unseen].any()):
            row = int((unseen & absent if self.other else unseen).argmax())
            value = "a missing value" if absent[row] else repr(values[row])
            raise ValueError(
                f"column {self.name!r} has {value} (row {row}), which no training row has; its levels are "
                f"{', '.join(map(repr, self.levels[:8]))}{', ...' * (len(self.levels) > 8)}. Map it to one of them, "
                "or pass handle_unknown='ignore' to give such rows no level."
            )
        indicators = np.zeros((len(values), len(self.names)))
        if self.other:
            position[unseen] = len(self.levels)
        if self.missing:
            position[absent] = len(self.levels) + self.other
        known = np.flatnonzero(position >= 0)
        indicators[known, position[known]] = 1.0
        return indicators


Encoder = Quantiles | Robust | Number | Category
SCALES: dict[str, type[Quantiles] | type[Robust] | type[Number]] = {
    "quantile": Quantiles,
    "robust": Robust,
    "range": Number,
}


@dataclass(frozen=True)
class TableEncoding:
    """How a table becomes a matrix: one encoder for each column, fitted on the training rows.

    Numbers, booleans and dates are scaled (see `scaling` of :meth:`fit`); text and categories of a DataFrame become one
    0/1 column for each level.

    Examples
    --------
    >>> encoding = TableEncoding.fit(pd.DataFrame({"age": [20, 60], "job": ["cook", "clerk"]}))
    >>> encoding.names
    ('age', 'job=clerk', 'job=cook')
    >>> encoding(pd.DataFrame({"age": [30], "job": ["cook"]})).tolist()
    [[0.25, 0.0, 1.0]]
    """

    columns: tuple[Encoder, ...]

    @classmethod
    def fit(cls, table: Any, name: str = "X", *, scaling: Scaling = "quantile") -> TableEncoding:
        """Fit one encoder to each column of a DataFrame or of an array of numbers.

        Parameters
        ----------
        table
            Training rows. Missing values are taken: a number at the place of the median, with an indicator column; a
            category as a level of its own.
        name
            How messages call the table.
        scaling : "quantile", "robust" or "range"
            How numbers and dates are scaled: :class:`Quantiles` to [0, 1], :class:`Robust` to (-3, 3), or
            :class:`Number` by minimum and maximum, as in the paper.
        """
        encoders: list[Encoder] = []
        for label, values, unit in _columns(table, name):
            if unit != "category":
                encoders.append(SCALES[scaling].fit(label, values, unit))
                continue
            if identifies_rows(len({*values.tolist()} - {None}), sum(value is not None for value in values)):
                raise ValueError(
                    f"column {label!r} of {name} holds text with {len(set(values.tolist())):,} different values in "
                    f"{len(values):,} rows, so it identifies rows. Drop it, or encode it first."
                )
            encoders.append(Category.fit(label, values))
        return cls(tuple(encoders))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns of the matrix."""
        return tuple(name for column in self.columns for name in column.names)

    @property
    def width(self) -> int:
        """Number of columns of the matrix."""
        return len(self.names)

    def __call__(self, table: Any, unknown: Unknown = "ignore", name: str = "X") -> np.ndarray:
        """Return the matrix, float64, of a table with the columns that the encoding was fitted on, in their order.

        A missing number in a column that had none in training takes the place of the median.
        """
        columns = _columns(table, name)
        if len(columns) != len(self.columns):
            raise ValueError(f"{name} has {len(columns)} columns; the training rows had {len(self.columns)}.")
        blocks = []
        for encoder, (label, values, unit) in zip(self.columns, columns):
            if unit != encoder.unit and encoder.unit != "category":
                if not pd.isna(values).all():
                    raise ValueError(
                        f"column {label!r} of {name} holds {HELD[unit]}; in the training rows it was "
                        f"{HELD[encoder.unit]}."
                    )
                values = np.full(len(values), np.nan)
            blocks.append(encoder(values, unknown))
        return np.concatenate(blocks, axis=1)


HELD = {"number": "numbers", "date": "dates", "duration": "durations", "category": "text or categories"}


def _columns(table: Any, name: str) -> list[tuple[str, np.ndarray, Any]]:
    """Return name, values and unit of each column: float64 for numbers and dates, objects for categories."""
    if not is_frame(table):
        array = _arrays.to_numpy(_arrays.matrix(table, name, allow_missing=True)).astype(np.float64)
        return [(f"x{j}", array[:, j], "number") for j in range(array.shape[1])]
    table = to_pandas(table, name)
    if len(table) == 0:
        raise ValueError(f"{name} has no rows.")
    check_distinct(table.columns, name)
    return [(label, *feature(table[label], f"column {label!r} of {name}")) for label in table.columns]


def _sorted(levels: set[Any]) -> tuple[Any, ...]:
    return tuple(sorted(levels, key=lambda level: (type(level).__name__, level)))


def _share(values: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Return (values - low) / (high - low), also where a difference is beyond the largest float."""
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        width = high - low
        share = (values - low) / width
        return np.asarray(
            np.where(np.isfinite(width) & np.isfinite(share), share, (values / 2 - low / 2) / (high / 2 - low / 2))
        )


def _places(counts: np.ndarray) -> np.ndarray:
    if len(counts) < 2:
        return np.zeros(len(counts))
    most = max(1.0, (counts.sum() - counts.max()) / 3)
    weights = np.minimum(counts, most)
    ranks = np.cumsum(weights) - weights / 2
    return np.asarray((ranks - ranks[0]) / (ranks[-1] - ranks[0]))


def _summary(values: np.ndarray, counts: np.ndarray) -> tuple[tuple[float, ...], tuple[int, ...]]:
    """Return knots among the sorted values, each with the number of rows nearest to it.

    They are :data:`MOST_KNOTS` values at even distances of rank and, before the first and the last distance, those 1,
    2, 4, ... rows from each end: one far-off row then takes no order from the others.
    """
    if len(values) > MOST_KNOTS:
        places = _places(counts.astype(np.float64))
        row = 1 / float(counts.sum())
        tail = row * 2.0 ** np.arange(max(0, math.ceil(-math.log2(MOST_KNOTS * row))))
        levels = np.concatenate([np.linspace(0.0, 1.0, MOST_KNOTS), tail, 1 - tail])
        at = np.unique(np.searchsorted(places, levels - row / 2))
        between = (places[at[1:]] + places[at[:-1]]) / 2
        counts = np.bincount(np.searchsorted(between, places), weights=counts, minlength=len(at)).astype(np.int64)
        values = values[at]
    return tuple(map(float, values)), tuple(map(int, counts))
