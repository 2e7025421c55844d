"""Two passes over the rows of a Dask data frame: samples and ranges, then the sums that an audit is made from."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch

from frhsic.auditing.measures import gap_column
from frhsic.dependence.features import FeatureMaps
from frhsic.distributed.rows import Block, added
from frhsic.independence.featured import FeatureMoments, feature_moments
from frhsic.parity._sums import Cells, ScoreSums
from frhsic.probes import ProbeSums

MOST_VALUES = 4096
"""Distinct values of an attribute that are counted; if there are more, their ranks come from the sample."""
LOOK = 20_000
CANDIDATES = 16
"""Rows that partitions send for each row of the sample: those whose hash is small. Others need not be sent."""
SLICE = 4096
"""Rows of Z that are float64 at once."""


@dataclass(frozen=True, eq=False)
class Values:
    """Range of one attribute, whether all are whole numbers, and how often each value occurs: None if they are many."""

    low: float
    high: float
    whole: bool
    counts: pd.Series[int] | None = None

    @classmethod
    def of(cls, s: np.ndarray) -> Values:
        """Return the values of some rows."""
        many = len(np.unique(s[:LOOK])) > MOST_VALUES
        counts = None if many else pd.Series(s).value_counts(sort=False)
        return cls(float(s.min()), float(s.max()), bool(np.array_equal(s, np.round(s))), _few(counts))

    def __add__(self, other: Values) -> Values:
        counts = None
        if self.counts is not None and other.counts is not None:
            counts = self.counts.add(other.counts, fill_value=0).astype(np.int64)
        low, high = min(self.low, other.low), max(self.high, other.high)
        return Values(low, high, self.whole and other.whole, _few(counts))


def _few(counts: pd.Series[int] | None) -> pd.Series[int] | None:
    return None if counts is None or len(counts) > MOST_VALUES else counts


@dataclass(frozen=True, eq=False)
class Sample:
    """Number of rows of one population, the values of each attribute, and a random sample of its rows."""

    rows: int
    values: tuple[Values, ...]
    block: Block
    most: int

    @classmethod
    def of(cls, block: Block, most: int, total: int) -> Sample | None:
        """Return at most so many of some rows of a frame with `total` rows; None if there are none."""
        if not len(block):
            return None
        share, candidates = CANDIDATES * most / max(total, 1), block
        if share < 1:  # others cannot be in a sample of the whole frame
            candidates = block.take(block.key < np.uint64(int(share * 2**64)))
        candidates = candidates.first(most)
        candidates = replace(candidates, z=candidates.z.astype(np.float64))
        return cls(len(block), tuple(Values.of(column) for column in block.s.T), candidates, most)

    def __add__(self, other: Sample) -> Sample:
        values = tuple(a + b for a, b in zip(self.values, other.values))
        return Sample(self.rows + other.rows, values, self.block.joined(other.block).first(self.most), self.most)

    def counted(self, attribute: int) -> tuple[np.ndarray, np.ndarray]:
        """Return distinct values of an attribute and their numbers: of all rows, or of the sample if there are many."""
        counts = self.values[attribute].counts
        if counts is None:
            counts = pd.Series(self.block.s[:, attribute]).value_counts(sort=False)
        counts = counts.sort_index()
        return counts.index.to_numpy(), counts.to_numpy()

    def ranks(self, attribute: int) -> tuple[np.ndarray, np.ndarray]:
        """Return distinct values of an attribute and their mid-ranks, as shares less one half."""
        values, counts = self.counted(attribute)
        return values, (np.cumsum(counts) - counts / 2) / counts.sum() - 0.5

    def cells(self, attribute: int) -> Cells | None:
        """Return the cells along an attribute; None if it is constant."""
        values, counts = self.counted(attribute)
        return Cells.of(values, counts, self.rows) if len(values) > 1 else None


@dataclass(frozen=True, eq=False)
class Range:
    """Range of some numbers, sums of them and of their squares, and whether all of them are 0 or 1."""

    low: float
    high: float
    total: float
    squares: float
    binary: bool

    @classmethod
    def of(cls, values: np.ndarray | None) -> Range | None:
        """Return what is known of the numbers; None if there are none."""
        if values is None or not len(values):
            return None
        binary = bool(((values == 0) | (values == 1)).all())
        return cls(float(values.min()), float(values.max()), float(values.sum()), float(values @ values), binary)

    def __add__(self, other: Range) -> Range:
        sums = self.total + other.total, self.squares + other.squares
        return Range(min(self.low, other.low), max(self.high, other.high), *sums, self.binary and other.binary)


class First(NamedTuple):
    """What the first pass learns: rows given, complete rows, favoured rows, scores and target; None without rows."""

    given: int
    everyone: Sample | None
    favoured: Sample | None
    scores: Range | None
    target: Range | None


def first_pass(given: int, block: Block, size: tuple[int, int]) -> tuple[object, ...]:
    """Return what the rows of one partition tell, in the order of :class:`First`; size is that of :class:`Sample`."""
    favoured = None if block.favoured is None else Sample.of(block.take(block.favoured), *size)
    return given, Sample.of(block, *size), favoured, Range.of(block.f), Range.of(block.y)


@dataclass(frozen=True, eq=False)
class Scaling:
    """A shift and a scale for each column."""

    center: np.ndarray
    scale: np.ndarray

    @classmethod
    def of(cls, rows: np.ndarray) -> Scaling:
        """Return mean and standard deviation of a sample; 1 for a constant column."""
        spread = rows.std(axis=0)
        return cls(rows.mean(axis=0), np.where(spread > 0, spread, 1.0))

    def __call__(self, rows: np.ndarray) -> np.ndarray:
        return np.asarray((rows - self.center) / self.scale)


@dataclass(frozen=True, eq=False)
class GapPlan:
    """What the sums of one population need: cells along each attribute; center and extremes of each gap's column."""

    cells: tuple[Cells | None, ...]
    columns: dict[str, tuple[float, tuple[float, float]]]
    threshold: float | None

    def sums(self, block: Block) -> tuple[tuple[ScoreSums, ...] | None, ...]:
        """Return the sums of some rows: for each attribute one for each gap."""
        if not len(block) or block.f is None:
            return tuple(None for _ in self.cells)
        each = [(gap_column(key, block.f, block.y, self.threshold), *known) for key, known in self.columns.items()]
        return tuple(
            None if cells is None else tuple(cells.sums(column, s, center, ends) for column, center, ends in each)
            for cells, s in zip(self.cells, block.s.T)
        )


@dataclass(frozen=True, eq=False)
class FeaturePlan:
    """What HSIC of one attribute needs: random features, and how both variables are scaled before."""

    maps: FeatureMaps
    z: Scaling
    s: Scaling


@dataclass(frozen=True, eq=False)
class Plan:
    """What the second pass needs to know; None for what is not summed."""

    everyone: GapPlan | None
    favoured: GapPlan | None
    dependence: tuple[FeaturePlan | None, ...]
    z: Scaling
    s: Scaling
    ranks: tuple[tuple[np.ndarray, np.ndarray], ...]
    edges: tuple[np.ndarray, ...]


class Sums(NamedTuple):
    """Sums over rows: gaps of all and of the favoured rows, and dependence, by attribute; probe; histograms."""

    everyone: tuple[tuple[ScoreSums, ...] | None, ...] | None
    favoured: tuple[tuple[ScoreSums, ...] | None, ...] | None
    dependence: tuple[FeatureMoments | None, ...]
    probe: ProbeSums | None
    histograms: tuple[np.ndarray, ...]


def second_pass(_: int, block: Block, plan: Plan) -> tuple[object, ...]:
    """Return the sums over the rows of one partition, in the order of :class:`Sums`."""
    everyone = favoured = probe = None
    moments: list[FeatureMoments | None] = [None] * len(plan.dependence)
    if len(block):
        everyone = None if plan.everyone is None else plan.everyone.sums(block)
        if plan.favoured is not None and block.favoured is not None:
            favoured = plan.favoured.sums(block.take(block.favoured))
        ranks = [np.interp(column, *known) for column, known in zip(block.s.T, plan.ranks)]
        fold, targets = block.fold, np.column_stack([plan.s(block.s), *ranks, block.noise])
        for rows in (slice(start, start + SLICE) for start in range(0, len(block), SLICE)):
            for i, one in enumerate(plan.dependence):
                if one is not None:
                    z, s = one.z(block.z[rows]), one.s(block.s[rows, i : i + 1])
                    moments[i] = added(moments[i], feature_moments(one.maps, torch.from_numpy(z), torch.from_numpy(s)))
            probe = added(probe, ProbeSums.of(plan.z(block.z[rows]), targets[rows], fold[rows]))
    histograms = tuple(np.histogram(column, bins=edges)[0] for column, edges in zip(block.s.T, plan.edges))
    return everyone, favoured, tuple(moments), probe, histograms
