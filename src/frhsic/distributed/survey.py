"""The first pass over the rows: how many there are, ranges, values of the attributes, and random samples of rows."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from frhsic.distributed.reduction import added
from frhsic.distributed.rows import Block
from frhsic.parity.summed import Cells

MOST_VALUES = 4096
"""Distinct values of an attribute that are counted; if there are more, their ranks come from the sample."""
LOOK = 20_000
CANDIDATES = 16
"""Rows that partitions send for each row of the sample: those whose hash is small. Others need not be sent."""


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
    values: np.ndarray | None
    counts: np.ndarray | None

    @classmethod
    def of(cls, s: np.ndarray) -> Values:
        """Return the values of some rows."""
        low, high, whole = float(s.min()), float(s.max()), bool(np.array_equal(s, np.round(s)))
        if len(np.unique(s[:LOOK])) > MOST_VALUES:
            return cls(low, high, whole, None, None)
        return cls(low, high, whole, *_few(*np.unique(s, return_counts=True)))

    def __add__(self, other: Values) -> Values:
        low, high, whole = min(self.low, other.low), max(self.high, other.high), self.whole and other.whole
        if self.values is None or other.values is None or self.counts is None or other.counts is None:
            return Values(low, high, whole, None, None)
        values, place = np.unique(np.concatenate([self.values, other.values]), return_inverse=True)
        counts = np.bincount(place, np.concatenate([self.counts, other.counts])).astype(np.int64)
        return Values(low, high, whole, *_few(values, counts))


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

    def cells(self, attribute: int) -> Cells | None:
        """Return the cells along an attribute; None if it is constant."""
        values, counts = self.counted(attribute)
        return Cells.of(values, counts, self.rows) if len(values) > 1 else None


@dataclass(frozen=True, eq=False)
class Scores:
    """Range of some numbers and their sum, and whether all of them are 0 or 1."""

    low: float
    high: float
    total: float
    binary: bool

    @classmethod
    def of(cls, values: np.ndarray | None) -> Scores | None:
        """Return what is known of the numbers; None if there are none."""
        if values is None or not len(values):
            return None
        binary = bool(((values == 0) | (values == 1)).all())
        return cls(float(values.min()), float(values.max()), float(values.sum()), binary)

    def __add__(self, other: Scores) -> Scores:
        total, binary = self.total + other.total, self.binary and other.binary
        return Scores(min(self.low, other.low), max(self.high, other.high), total, binary)


@dataclass(frozen=True, eq=False)
class Survey:
    """What the first pass found: rows given, all complete rows, those with the favourable outcome, scores and target.

    What has no rows is None.
    """

    given: int
    everyone: Sample | None
    favoured: Sample | None
    scores: Scores | None
    target: Scores | None

    def __add__(self, other: Survey) -> Survey:
        parts: dict[str, Any] = {p.name: added(getattr(self, p.name), getattr(other, p.name)) for p in fields(self)}
        return Survey(**parts)


def survey_of(given: int, block: Block, draw: Draw) -> Survey:
    """Return the survey of the rows of one partition."""
    return Survey(
        given,
        Sample.of(block, draw),
        None if block.favoured is None else Sample.of(block.take(block.favoured), draw),
        Scores.of(block.f),
        Scores.of(block.y),
    )


def _few(values: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray | None, np.ndarray | None]:
    return (values, counts) if len(values) <= MOST_VALUES else (None, None)
