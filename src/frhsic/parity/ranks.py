"""The gap of ranks: the mean gap of the decisions at the score's own deciles."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from frhsic.parity.column import (
    ColumnGap,
    GapOptions,
    Signs,
    chi_factor,
    column_gap,
    wrong_sign_loss,
)
from frhsic.parity.interval import GapEstimate
from frhsic.parity.local_means import Windows
from frhsic.parity.rows import Array, Integers, ScoreRows
from frhsic.parity.sums import TINY, Cells, ScoreSums

TENTHS = np.arange(1, 10) / 10

NEAR_DECILE = 0.05
"""Rows whose rank is within this distance of a decile determine how the gap changes with the
decile.
"""


@dataclass(frozen=True, eq=False)
class DecidedRows:
    """Rows with the decision at each threshold, or sums over such rows within one node and one
    range of ranks.

    Attributes
    ----------
    decisions
        Whether the score exceeds each threshold, as 0 or 1, (rows, thresholds).
    tied
        Whether the score equals the threshold.
    rank
        Share of the rows up to this one.
    node
        Node of the attribute that the row is in.
    means
        Mean decisions of the stratum of each row, (rows, thresholds).
    powers
        Sums of the powers 1 to 3 of the weights, (3, rows).
    clusters
        Cluster of each row, or None if rows are independent.
    """

    decisions: Array
    tied: NDArray[np.bool_]
    rank: Array
    node: Integers
    means: Array
    powers: Array
    clusters: Integers | None = None


@dataclass(frozen=True, eq=False)
class RankSums:
    """Sums over rows in ranges of the score, by cells of the attribute; ``+`` merges parts with
    independent rows.

    Attributes
    ----------
    edges
        Edges between the ranges of scores, increasing, (E,). There are ranges below, between and
        above the edges, and a range for scores equal to each edge.
    powers
        Sums of the powers 1 to 4 of the weights, (4, cells, 2 E + 1).
    rows
        Number of rows in each cell.
    low, high
        Smallest and largest value of the attribute in each cell.
    strata
        Number of strata, each with the same number of cells.
    """

    edges: Array
    powers: Array
    rows: Integers
    low: Array
    high: Array
    strata: int = 1

    @classmethod
    def of(
        cls,
        score: Array,
        s: Array,
        weights: Array | None,
        edges: Array,
        cells: Cells,
        strata: Integers | None = None,
    ) -> RankSums:
        """Compute the sums over the given rows."""
        weights = np.ones(len(s)) if weights is None else weights
        at = np.searchsorted(edges, score)
        tied = edges[np.minimum(at, len(edges) - 1)] == score
        ranges = 2 * len(edges) + 1
        place = cells.place(s, strata) * ranges + 2 * at + tied
        # what does not depend on scores
        whole = cells.sums(np.zeros(len(s)), s, 0.0, (0.0, 0.0), None, strata)
        size = len(whole.rows)
        powers = [np.bincount(place, weights**p, minlength=size * ranges) for p in range(1, 5)]
        shaped = np.reshape(powers, (4, size, ranges)).astype(np.float64)
        return cls(edges, shaped, whole.rows, whole.low, whole.high, whole.strata)

    def __add__(self, other: RankSums) -> RankSums:
        return replace(
            self,
            powers=self.powers + other.powers,
            rows=self.rows + other.rows,
            low=np.minimum(self.low, other.low),
            high=np.maximum(self.high, other.high),
        )

    def scaled(self) -> RankSums:
        """Return the sums for weights with mean 1."""
        scale = self.rows.sum() / self.powers[0].sum()
        return replace(self, powers=self.powers * scale ** np.arange(1, 5)[:, None, None])

    def score_sums(self, decided: Array, effective: float) -> ScoreSums:
        """Return the sums of decisions, (…, ranges), which are constant in each range."""
        mass = self.powers[0].sum(axis=0)
        center = decided @ mass / mass.sum()
        away = decided - center[..., None]
        powers = [np.tensordot(away**j, self.powers, (-1, -1)) for j in range(5)]
        both = (center > 0) & (center < 1)
        return ScoreSums(
            powers=np.stack(powers, axis=-2),
            rows=self.rows,
            low=self.low,
            high=self.high,
            center=center,
            ends=(np.where(both, 0.0, center), np.where(both, 1.0, center)),
            at_ends=self.rows.astype(np.float64),
            effective=effective,
            strata=self.strata,
        )


class RankGap:
    """The mean gap of the decisions at nine deciles."""

    scale = np.ones(())
    most = 1.0  # only limits the ends; the gap of a decision is at most 0.5
    magnitude = 1.0

    def __init__(
        self, rows: ScoreRows, cells: Cells | None = None, windows: Windows | None = None
    ) -> None:
        score = rows.scores[:, 0]
        weights = rows.weights
        order = np.argsort(score, kind="stable")
        below = np.cumsum(weights[order])
        rank = np.empty(len(order))
        rank[order] = below / below[-1]
        deciles = score[order][np.searchsorted(below, TENTHS * below[-1] * (1 - 1e-12))]
        self.thresholds, which = np.unique(deciles, return_inverse=True)
        decided = replace(rows, scores=(score[:, None] > self.thresholds).astype(np.float64))
        cells = Cells.from_rows(rows) if cells is None else cells
        columns = np.ascontiguousarray(decided.scores.T)
        numbers = range(len(columns))
        self._join(column_gap(decided, columns, None, cells, windows, numbers), which)
        self.rows = decided
        self.stratum_means = decided.stratum_means
        self.effective = rows.effective
        self.entries = DecidedRows(
            decisions=decided.scores,
            tied=score[:, None] == self.thresholds,
            rank=rank,
            node=cells.node(rows.s, rows.strata),
            means=self.stratum_means[0 if rows.strata is None else rows.strata],
            powers=np.stack([weights, weights**2, weights**3]),
            clusters=rows.clusters,
        )

    @classmethod
    def from_sums(cls, sums: RankSums, deciles: Array, cells: Cells) -> RankGap:
        """Return the gap computed from sums over ranges of the score, whose edges include all
        deciles.
        """
        sums = sums.scaled()
        thresholds, which = np.unique(deciles, return_inverse=True)
        place = 2 * np.searchsorted(sums.edges, thresholds) + 1  # the range of ties
        ranges = np.arange(sums.powers.shape[2])
        decisions = (ranges[:, None] > place).astype(np.float64)
        totals = sums.powers.sum(axis=(1, 2))
        effective = float(totals[0] ** 2 / totals[1])
        gap = cls.__new__(cls)
        gap.thresholds = thresholds
        starts = cells.stratum_nodes if cells.strata else cells.nodes
        nodes = sums.score_sums(decisions.T, effective).group_sums(starts)
        gap._join(ColumnGap(nodes, Windows(nodes), range(len(thresholds))), which)
        mass = sums.powers[0].sum(axis=0)
        below = np.cumsum(mass) / mass.sum()
        strata = sums.powers[0].reshape(sums.strata, -1, len(mass)).sum(axis=1)
        gap.stratum_means = strata @ decisions / strata.sum(axis=1, keepdims=True)
        gap.effective = effective
        cell, at = np.nonzero(sums.powers[0])
        gap.entries = DecidedRows(
            decisions=decisions[at],
            tied=at[:, None] == place,
            rank=(below - mass / mass.sum() / 2)[at],
            node=np.searchsorted(starts, cell, side="right") - 1,
            means=gap.stratum_means[cell // len(cells.starts)],
            powers=sums.powers[:3, cell, at],
        )
        return gap

    def _join(self, columns: ColumnGap, which: Integers) -> None:
        """Store the gaps of the distinct deciles, and the index of each decile among them."""
        self.columns = columns
        self.shares = np.bincount(which) / 9
        self.gaps = columns.value[which]
        self.n = columns.n
        self.value = self.gaps.mean()
        self.windows = columns.windows
        self.resolution = self.windows.share

    def null(self, options: GapOptions) -> Array:
        """Return estimates for random draws in which no decision depends on s."""
        columns = self.columns
        if self.entries.clusters is not None:
            return np.asarray(self.shares @ columns.null(options))
        means = columns.means.means_from_sums(self._joint_noise(options))
        factor = chi_factor(columns.means.freedom[0], options)
        return np.asarray(self.shares @ columns.noise_statistics(*means) * factor)

    def _joint_noise(self, options: GapOptions) -> Array:
        """Draw sums over nodes for all decisions together, of shape (decisions, nodes, draws).

        If the score is independent of s, decisions have the same covariance at every node. A row
        above the higher of two thresholds is also above the lower one, so the product of the two
        decisions equals the decision at the higher one.
        """
        sums = self.columns.sums
        spread = np.sqrt(sums.squared_weights)
        shape = len(self.thresholds), len(spread), options.resamples
        # the added variance of the second column uses the same seed; the two are never compared
        random = np.random.default_rng([options.seed, 1])
        normal = random.standard_normal((shape[0], shape[1] * shape[2])).reshape(shape)
        for stratum, rates in zip(sums.strata, self.stratum_means):
            root = self.decision_root(rates)
            normal[:, stratum] = np.tensordot(root, normal[:, stratum], 1)
        return np.asarray(spread[:, None] * normal)

    def decision_root(self, rate: Array) -> Array:
        """Return a square root of the covariance matrix of the decisions for one row, of shape
        (decisions, decisions), if the score is independent of s.
        """
        covariance = np.minimum.outer(rate, rate) - np.outer(rate, rate)
        values, vectors = np.linalg.eigh(covariance * self.columns.sums.bessel)
        return np.asarray(vectors * np.sqrt(np.maximum(values, 0)))

    def terms(self, signs: Signs) -> Array:
        """Return the contribution of each row to the gap, including its effect on the deciles."""
        rows = self.entries
        weights = rows.powers[0]
        n = float(weights.sum())
        slope = signs.slope[:, rows.node].T
        tied = rows.tied.astype(np.float64)
        few = (rows.tied.any(axis=0)) & (weights @ tied / n <= NEAR_DECILE)
        at = rows.rank @ tied / np.maximum(tied.sum(axis=0), 1)
        away = np.abs(rows.rank[:, None] - at)
        near = np.where(few & (away > NEAR_DECILE), 0.0, weights[:, None])
        moved = (near * slope).sum(axis=0) / near.sum(axis=0)
        decided = rows.decisions + self.columns.sums.ends[0]
        each = slope * (rows.decisions - rows.means) - moved * decided - signs.gap
        return np.asarray(weights * (each @ self.shares) / n)

    def estimates(self, options: GapOptions) -> tuple[GapEstimate, GapEstimate]:
        """Return what the lower and the upper end are computed from."""
        columns = self.columns
        lost = wrong_sign_loss(columns.shares, columns.fine_signs)
        upper = self._estimate(columns.fine_signs, options)
        return self._estimate(columns.signs, options), replace(upper, lost=self.shares @ lost)

    def _estimate(self, signs: Signs, options: GapOptions) -> GapEstimate:
        rows = self.entries
        terms = self.terms(signs)
        weights, squares, cubes = rows.powers
        if rows.clusters is None:
            terms = terms / weights
        else:
            terms = np.bincount(rows.clusters, weights=terms).astype(np.float64)
            squares = cubes = np.ones(len(terms))
        extra = np.sqrt(self.columns.uncertain_variance(signs, options))
        bessel = self.effective / max(self.effective - 1, 1)
        variance = bessel * float(squares @ terms**2)
        error = math.sqrt(variance + float(self.shares @ extra) ** 2)
        return GapEstimate(
            value=self.shares @ signs.gap,
            error=error,
            skewness=float(cubes @ terms**3) / max(error**3, TINY),
            freedom=self.columns.means.freedom.min(),
        )
