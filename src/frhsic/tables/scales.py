"""Encoders of a numeric column: by quantiles, by a robust scale, or by its range."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

MOST_KNOTS = 64
"""Values of a column that its quantile scale remembers at even distances of rank; the tails add a few."""

Scaling = Literal["quantile", "robust", "range"]
Unit = Literal["number", "date", "duration"]
"""What a column held: numbers or booleans, dates (as days since 1970), or durations (as days)."""


class _Scale(ABC):
    """What the scales share: a missing value takes the place of the median, and may have an indicator.

    `missing` tells whether training rows lacked the value; then a second column is 1 where it is missing.
    """

    name: str
    missing: bool
    unit: Unit

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns of the matrix."""
        return (self.name, f"{self.name}=missing") if self.missing else (self.name,)

    @property
    @abstractmethod
    def middle(self) -> float:
        """The value that stands for a missing one."""

    @abstractmethod
    def scaled(self, values: np.ndarray) -> np.ndarray:
        """Return the place of each value, without missing values."""

    def __call__(self, values: np.ndarray, unknown: str = "ignore") -> np.ndarray:
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
        if len(self.knots) != len(self.counts):
            raise ValueError(f"{self.name!r} has {len(self.knots)} knots and {len(self.counts)} counts.")
        if not all(map(math.isfinite, self.knots)) or any(b <= a for a, b in zip(self.knots, self.knots[1:])):
            raise ValueError(f"the knots of {self.name!r} are not finite and increasing.")
        if any(count < 1 for count in self.counts):
            raise ValueError(f"a knot of {self.name!r} stands for no rows.")

    @classmethod
    def fit(cls, name: str, values: np.ndarray, unit: Unit = "number") -> Quantiles:
        """Fit the knots to a column; NaN is missing."""
        knots, counts = _summary(*np.unique(_present(values), return_counts=True))
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

    def __or__(self, other: Quantiles) -> Quantiles:
        """Join the scales of two parts: exact up to :data:`MOST_KNOTS` distinct values, else within about 0.03."""
        values, at = np.unique(np.array(self.knots + other.knots), return_inverse=True)
        counts = np.bincount(at, weights=np.array(self.counts + other.counts), minlength=len(values))
        summary = _summary(values, counts.astype(np.int64))
        return Quantiles(self.name, *summary, self.missing or other.missing, self.unit)


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
    rows: int
    missing: bool = False
    unit: Unit = "number"

    def __post_init__(self) -> None:
        if not (math.isfinite(self.center) and math.isfinite(self.scale) and self.scale > 0):
            raise ValueError(f"{self.name!r} has center {self.center} and scale {self.scale}; both must be finite.")

    @classmethod
    def fit(cls, name: str, values: np.ndarray, unit: Unit = "number") -> Robust:
        """Fit center and scale to a column; NaN is missing."""
        present, missing = _present(values), bool(np.isnan(values).any())
        if not len(present):
            return cls(name, 0.0, 1.0, 0, missing, unit)
        low, center, high = np.quantile(present, [0.25, 0.5, 0.75], method="inverted_cdf")
        with np.errstate(over="ignore"):
            width, away = high - low, np.abs(present - center)
        if width == 0 and away.any():
            width = np.quantile(away[away > 0], 0.5, method="inverted_cdf")
        largest = float(np.finfo(np.float64).max)
        return cls(name, float(center), float(min(width, largest)) or 1.0, len(present), missing, unit)

    @property
    def middle(self) -> float:
        return self.center

    def scaled(self, values: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore"):
            steps = np.clip((values - self.center) / self.scale, -1e15, 1e15)
        return np.asarray(steps / np.hypot(1.0, steps / 3.0))

    def __or__(self, other: Robust) -> Robust:
        """Join the scales of two parts: the means of center and scale by rows, which is an approximation."""
        missing = self.missing or other.missing
        if not (self.rows and other.rows):
            known = self if self.rows else other
            return Robust(self.name, known.center, known.scale, known.rows, missing, self.unit)
        rows = self.rows + other.rows
        a, b = self.rows / rows, other.rows / rows
        center, scale = a * self.center + b * other.center, a * self.scale + b * other.scale
        return Robust(self.name, center, scale, rows, missing, self.unit)


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
        present, missing = _present(values), bool(np.isnan(values).any())
        if not len(present):
            return cls(name, 0.0, 0.0, None, missing, unit)
        median = float(np.quantile(present, 0.5, method="inverted_cdf"))
        return cls(name, float(present.min()), float(present.max()), median, missing, unit)

    @property
    def middle(self) -> float:
        return self.low if self.median is None else self.median

    @property
    def _empty(self) -> bool:
        return self.median is None and self.missing

    def scaled(self, values: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore"):
            constant = self.low == self.high
            share = values - self.low if constant else _share(values, np.array(self.low), np.array(self.high))
        return np.clip(share, -1e15, 1e15)

    def __or__(self, other: Number) -> Number:
        """Join the scales of two parts: the range is exact, the median that of the first part."""
        if self._empty or other._empty:
            return replace(other if self._empty else self, missing=True)
        low, high = min(self.low, other.low), max(self.high, other.high)
        return Number(self.name, low, high, self.median, self.missing or other.missing, self.unit)


Scale = Quantiles | Robust | Number
SCALES: dict[Scaling, type[Quantiles] | type[Robust] | type[Number]] = {
    "quantile": Quantiles,
    "robust": Robust,
    "range": Number,
}


def _present(values: np.ndarray) -> np.ndarray:
    return np.asarray(values[~np.isnan(values)])


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
