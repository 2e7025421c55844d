"""Two passes over the rows of a Dask data frame: samples and ranges, then the sums that an audit is made from."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

import numpy as np
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


@dataclass(frozen=True)
class Draw:
    """Size of the samples, and the number of rows of the whole frame that they are drawn from."""

    most: int
    rows: int

    def candidates(self, block: Block) -> Block:
        """Return the rows of a block that can be in a sample of the whole frame."""
        share = CANDIDATES * self.most / max(self.rows, 1)
        if share < 1:
            block = block.take(block.key < np.uint64(int(share * 2**64)))
        block = block.first(self.most)
        return replace(block, z=block.z.astype(np.float64))


@dataclass(frozen=True, eq=False)
class Values:
    """Distinct values of one attribute and how often each occurs; `values` is None where there are too many."""

    low: float
    high: float
    whole: bool
    values: np.ndarray | None = None
    counts: np.ndarray | None = None

    @classmethod
    def of(cls, s: np.ndarray) -> Values:
        """Return the values of some rows."""
        low, high, whole = float(s.min()), float(s.max()), bool(np.array_equal(s, np.round(s)))
        if len(np.unique(s[:LOOK])) > MOST_VALUES:
            return cls(low, high, whole)
        return cls(low, high, whole, *_few(*np.unique(s, return_counts=True)))

    def __add__(self, other: Values) -> Values:
        low, high, whole = min(self.low, other.low), max(self.high, other.high), self.whole and other.whole
        if self.values is None or other.values is None or self.counts is None or other.counts is None:
            return Values(low, high, whole)
        values, place = np.unique(np.concatenate([self.values, other.values]), return_inverse=True)
        counts = np.bincount(place, np.concatenate([self.counts, other.counts])).astype(np.int64)
        return Values(low, high, whole, *_few(values, counts))


def _few(values: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray | None, np.ndarray | None]:
    return (values, counts) if len(values) <= MOST_VALUES else (None, None)


@dataclass(frozen=True, eq=False)
class Sample:
    """Number of rows of one population, the values of each attribute, and a random sample of its rows."""

    rows: int
    values: tuple[Values, ...]
    block: Block
    draw: Draw

    @classmethod
    def of(cls, block: Block, draw: Draw) -> Sample | None:
        """Return the sample of some rows; None if there are none."""
        if not len(block):
            return None
        return cls(len(block), tuple(Values.of(column) for column in block.s.T), draw.candidates(block), draw)

    def __add__(self, other: Sample) -> Sample:
        values = tuple(a + b for a, b in zip(self.values, other.values))
        return Sample(self.rows + other.rows, values, self.block.joined(other.block).first(self.draw.most), self.draw)

    def counted(self, attribute: int) -> tuple[np.ndarray, np.ndarray]:
        """Return distinct values of an attribute and their numbers: of all rows, or of the sample if there are many."""
        known = self.values[attribute]
        if known.values is not None and known.counts is not None:
            return known.values, known.counts
        values, counts = np.unique(self.block.s[:, attribute], return_counts=True)
        return values, counts

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


@dataclass(frozen=True, eq=False)
class First:
    """What the first pass learns: rows given, complete rows, favoured rows, scores and target; None without rows."""

    given: int
    everyone: Sample | None
    favoured: Sample | None
    scores: Range | None
    target: Range | None

    def __add__(self, other: First) -> First:
        parts: dict[str, Any] = {p.name: added(getattr(self, p.name), getattr(other, p.name)) for p in fields(self)}
        return First(**parts)


def first_pass(given: int, block: Block, draw: Draw) -> First:
    """Return what the rows of one partition tell."""
    return First(
        given,
        Sample.of(block, draw),
        None if block.favoured is None else Sample.of(block.take(block.favoured), draw),
        Range.of(block.f),
        Range.of(block.y),
    )


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
