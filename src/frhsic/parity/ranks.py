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
    column_gaps,
    wrong_sign_loss,
)
from frhsic.parity.interval import GapEstimate
from frhsic.parity.local_means import Windows
from frhsic.parity.rows import Array, Integers, ScoreRows
from frhsic.parity.sums import TINY, Cells, ScoreSums

TENTHS = np.arange(1, 10) / 10

NEAR_DECILE = 0.05
"""Rows whose rank is this close to a decile determine how the gap changes with it."""


@dataclass(frozen=True, eq=False)
class DecidedRows:
    """Rows with the decision of each threshold, or sums over such rows of one node and range of
    ranks.

    Attributes
    ----------
    decisions
        Whether the score exceeds each threshold, as 0 and 1, (rows, thresholds).
    tied
        Whether the score is the threshold.
    rank
        Share of the rows up to this one.
    node
        Node of the attribute.
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
    """Rows in ranges of their score, by cells of the attribute; ``+`` merges parts, whose rows are
    independent.

    Attributes
    ----------
    edges
        Scores between the ranges, increasing, (E,): there is a range below and between, and one for
        scores that are the edge itself.
    powers
        Sums of the powers 1 to 4 of the weights, (4, cells, 2 E + 1).
    rows
        Number of rows of each cell.
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
        """Return the sums over some rows."""
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
        """Return the sums of a decision, which is constant in each range."""
        mass = self.powers[0].sum(axis=0)
        center = float(mass @ decided / mass.sum())
        powers = np.stack([self.powers @ (decided - center) ** j for j in range(5)], axis=1)
        ends = (0.0, 1.0) if 0 < center < 1 else (center, center)
        return ScoreSums(
            powers=powers,
            rows=self.rows,
            low=self.low,
            high=self.high,
            center=center,
            ends=ends,
            at_ends=self.rows.astype(np.float64),
            effective=effective,
            strata=self.strata,
        )


class RankGap:
    """The mean gap of the decisions at nine deciles."""

    scale = 1.0
    most = 1.0  # for the ends alone; the gap of a decision is at most 0.5
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
        self._join(column_gaps(decided, cells=cells, windows=windows), which)
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
        windows = None
        columns = []
        for number, decided in enumerate(decisions.T):
            nodes = sums.score_sums(decided, effective).group_sums(starts)
            windows = Windows(nodes) if windows is None else windows
            columns.append(ColumnGap(nodes, windows, number))
        gap._join(columns, which)
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

    def _join(self, columns: list[ColumnGap], which: Integers) -> None:
        """Store the gaps of the distinct deciles, and the index of each decile among them."""
        self.columns = columns
        self.shares = np.bincount(which) / 9
        self.gaps = np.array([column.value for column in columns])[which]
        self.n = columns[0].n
        self.value = float(self.gaps.mean())
        self.windows = columns[0].windows
        self.resolution = self.windows.share

    def null(self, options: GapOptions) -> Array:
        """Return values of random draws in which no decision depends on s."""
        if self.entries.clusters is not None:
            draws = [column.null(options) for column in self.columns]
            return np.asarray(self.shares @ np.stack(draws))
        noise = self._joint_noise(options)
        draws = [
            column.noise_statistics(*column.means.means_from_sums(sums))
            for column, sums in zip(self.columns, noise)
        ]
        factor = chi_factor(self.columns[0].means.freedom, options)
        return np.asarray(self.shares @ np.stack(draws) * factor)

    def _joint_noise(self, options: GapOptions) -> Array:
        """Draw sums over nodes for all decisions together, of shape (decisions, nodes, draws).

        If the score is independent of s, decisions have the same covariance at every node. Rows
        above the higher of two thresholds are above the lower one too: the product of both
        decisions is the first.
        """
        sums = self.columns[0].sums
        spread = np.sqrt(sums.squared_weights)
        shape = len(self.columns), len(spread), options.resamples
        # also the seed of what the second column adds to the variance; the two are never compared
        random = np.random.default_rng([options.seed, 1])
        normal = random.standard_normal((shape[0], shape[1] * shape[2])).reshape(shape)
        for stratum, rates in zip(sums.strata, self.stratum_means):
            root = self.decision_root(rates)
            normal[:, stratum] = np.tensordot(root, normal[:, stratum], 1)
        return np.asarray(spread[:, None] * normal)

    def decision_root(self, rate: Array) -> Array:
        """Return a root of the covariance of the decisions of one row, of shape (decisions,
        decisions), if the score is independent of s.
        """
        covariance = np.minimum.outer(rate, rate) - np.outer(rate, rate)
        values, vectors = np.linalg.eigh(covariance * self.columns[0].sums.bessel)
        return np.asarray(vectors * np.sqrt(np.maximum(values, 0)))

    def terms(self, signs: list[Signs]) -> Array:
        """Return the contribution of each row to the gap, including its effect on the deciles."""
        rows = self.entries
        weights = rows.powers[0]
        n = float(weights.sum())
        influence = np.zeros(len(weights))
        for j, (share, column, sign) in enumerate(zip(self.shares, self.columns, signs)):
            at = rows.tied[:, j]
            slope = sign.slope[rows.node]
            near = weights
            if at.any() and float(weights[at].sum()) / n <= NEAR_DECILE:
                away = np.abs(rows.rank - rows.rank[at].mean())
                near = np.where(away <= NEAR_DECILE, weights, 0.0)
            decided = rows.decisions[:, j] + column.sums.ends[0]
            moved = near @ slope / near.sum() * decided
            influence += share * (slope * (rows.decisions - rows.means)[:, j] - moved - sign.gap)
        return np.asarray(weights * influence / n)

    def estimates(self, options: GapOptions) -> tuple[GapEstimate, GapEstimate]:
        """Return the components of the lower and of the upper end."""
        fine = [column.fine_signs for column in self.columns]
        lost = [wrong_sign_loss(column.shares, signs) for column, signs in zip(self.columns, fine)]
        lower = self._estimate([column.signs for column in self.columns], options)
        upper = self._estimate(fine, options)
        return lower, replace(upper, lost=float(self.shares @ lost))

    def _estimate(self, signs: list[Signs], options: GapOptions) -> GapEstimate:
        rows = self.entries
        terms = self.terms(signs)
        weights, squares, cubes = rows.powers
        if rows.clusters is None:
            terms = terms / weights
        else:
            terms = np.bincount(rows.clusters, weights=terms).astype(np.float64)
            squares = cubes = np.ones(len(terms))
        extra = [
            math.sqrt(column.uncertain_variance(sign, options))
            for column, sign in zip(self.columns, signs)
        ]
        bessel = self.effective / max(self.effective - 1, 1)
        variance = bessel * float(squares @ terms**2)
        error = math.sqrt(variance + float(self.shares @ extra) ** 2)
        return GapEstimate(
            value=float(self.shares @ [sign.gap for sign in signs]),
            error=error,
            skewness=float(cubes @ terms**3) / max(error**3, TINY),
            freedom=min(column.means.freedom for column in self.columns),
        )
