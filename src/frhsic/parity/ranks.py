"""The gap of ranks: the mean gap of the decisions at the score's own deciles."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from frhsic.parity.column import GapOptions, Signs, chi_factor, column_gaps, wrong_sign_loss
from frhsic.parity.interval import GapEstimate
from frhsic.parity.local_means import Windows
from frhsic.parity.rows import Array, ScoreRows
from frhsic.parity.sums import TINY, Cells

TENTHS = np.arange(1, 10) / 10

NEAR_DECILE = 0.05
"""Rows whose rank is this close to a decile say how the gap changes with it."""


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
        self.rank = np.empty(len(order))
        self.rank[order] = below / below[-1]
        deciles = score[order][np.searchsorted(below, TENTHS * below[-1] * (1 - 1e-12))]
        self.thresholds, which = np.unique(deciles, return_inverse=True)
        self.rows = replace(rows, scores=(score[:, None] > self.thresholds).astype(np.float64))
        self.at = score[:, None] == self.thresholds
        self.cells = Cells.from_rows(rows) if cells is None else cells
        self.columns = column_gaps(self.rows, cells=self.cells, windows=windows)
        self.shares = np.bincount(which) / 9
        self.gaps = np.array([column.value for column in self.columns])[which]
        self.n = len(rows.s)
        self.value = float(self.gaps.mean())
        self.windows = self.columns[0].windows
        self.resolution = self.windows.share

    def null(self, options: GapOptions) -> Array:
        """Return values of random draws in which no decision depends on s."""
        if self.rows.clusters is not None:
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

        Where the score is independent of s, decisions have the same covariance at every node. Rows
        above the higher of two thresholds are above the lower one too: the product of both
        decisions is the first.
        """
        sums = self.columns[0].sums
        spread = np.sqrt(sums.squared_weights)
        shape = len(self.columns), len(spread), options.resamples
        # also the seed of what the second column adds to the variance; the two are never compared
        random = np.random.default_rng([options.seed, 1])
        normal = random.standard_normal((shape[0], shape[1] * shape[2])).reshape(shape)
        for stratum, rates in zip(sums.strata, self.rows.stratum_means):
            root = self.decision_root(rates)
            normal[:, stratum] = np.tensordot(root, normal[:, stratum], 1)
        return np.asarray(spread[:, None] * normal)

    def decision_root(self, rate: Array) -> Array:
        """Return a root of the covariance of the decisions of one row, of shape (decisions,
        decisions), where the score is independent of s.
        """
        covariance = np.minimum.outer(rate, rate) - np.outer(rate, rate)
        values, vectors = np.linalg.eigh(covariance * self.columns[0].sums.bessel)
        return np.asarray(vectors * np.sqrt(np.maximum(values, 0)))

    def terms(self, signs: list[Signs]) -> Array:
        """Return what each row adds to the gap, with what it adds by moving the deciles."""
        rows = self.rows
        weights = rows.weights
        n = float(weights.sum())
        node = self.cells.node(rows.s, rows.strata)
        means = rows.stratum_means[0 if rows.strata is None else rows.strata]
        influence = np.zeros(len(weights))
        for j, (share, column, sign) in enumerate(zip(self.shares, self.columns, signs)):
            at = self.at[:, j]
            slope = sign.slope[node]
            near = weights
            if float(weights[at].sum()) / n <= NEAR_DECILE:  # inside a large tie it does not move
                away = np.abs(self.rank - self.rank[at].mean())
                near = np.where(away <= NEAR_DECILE, weights, 0.0)
            decided = rows.scores[:, j] + column.sums.ends[0]
            moved = near @ slope / near.sum() * decided
            influence += share * (slope * (rows.scores - means)[:, j] - moved - sign.gap)
        return np.asarray(weights * influence / n)

    def estimates(self, options: GapOptions) -> tuple[GapEstimate, GapEstimate]:
        """Return what the lower end, and what the upper end is made of."""
        fine = [column.fine_signs for column in self.columns]
        lost = [wrong_sign_loss(column.shares, signs) for column, signs in zip(self.columns, fine)]
        lower = self._estimate([column.signs for column in self.columns], options)
        upper = self._estimate(fine, options)
        return lower, replace(upper, lost=float(self.shares @ lost))

    def _estimate(self, signs: list[Signs], options: GapOptions) -> GapEstimate:
        rows = self.rows
        terms = self.terms(signs)
        if rows.clusters is not None:
            terms = np.bincount(rows.clusters, weights=terms).astype(np.float64)
        extra = [
            math.sqrt(column.uncertain_variance(sign, options))
            for column, sign in zip(self.columns, signs)
        ]
        bessel = rows.effective / max(rows.effective - 1, 1)
        error = math.sqrt(bessel * float(terms @ terms) + float(self.shares @ extra) ** 2)
        return GapEstimate(
            value=float(self.shares @ [sign.gap for sign in signs]),
            error=error,
            skewness=float((terms**3).sum()) / max(error**3, TINY),
            freedom=min(column.means.freedom for column in self.columns),
        )
