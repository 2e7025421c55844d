"""The gap of a score's ranks: GDP of the decisions at its own deciles."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from frhsic import _arrays
from frhsic.parity.gap import RESAMPLES, Ends, GapOptions, ParityResult, columns_of, largest_gap, student
from frhsic.parity.local_means import TINY, Array, Cells, Rows, Smoother, one_column, rows_of, skewed_reach

DECILES = np.arange(1, 10) / 10
NEARBY = 0.05
"""Rows whose rank is this close to a decile say how the gap changes with it."""


def rank_gap(
    scores: Any,
    s: Any,
    *,
    where: Any = None,
    sample_weight: Any = None,
    groups: Any = None,
    confidence: float = 0.95,
    resamples: int = RESAMPLES,
    random_state: _arrays.RandomState = 0,
) -> ParityResult:
    r"""Mean generalized demographic parity of the decisions at the score's own deciles.

    .. math:: \frac19 \sum_{k=1}^9 \mathbb E_S \bigl| P(f > q_k | S) - P(f > q_k) \bigr|

    where :math:`q_k` is the k-th decile of the scores, the smallest score that at least a share k/10 of the rows does
    not exceed. Deciles that coincide count as often as they occur; a decile that no score exceeds counts zero. Zero in
    the population when the score is independent of s. It depends on the order of the scores alone, so no strictly
    increasing map of them, such as a logit or a contraction towards one half, changes it. Compare models by it at equal
    AUC.

    Parameters
    ----------
    scores
        One column.
    groups
        Labels of rows that belong together, as in :func:`gdp`.
    s, where, sample_weight, confidence, resamples, random_state
        As in :func:`gdp`. With ``resamples=0`` the value alone is computed.

    Notes
    -----
    Each of the nine gaps is estimated as in :func:`gdp`; `per_column` of the result holds them. The standard error
    counts that the deciles are estimated: moving a decile moves the gap by the mean sign of the rows near it.

    Examples
    --------
    A score with one value in each of two equally large groups. Five deciles are the lower value, with a gap of 0.5
    each; no score exceeds the other four.

    >>> result = rank_gap([0.2] * 50 + [0.7] * 50, [0.0] * 50 + [1.0] * 50)
    >>> round(float(result), 4)
    0.2778
    """
    column = _Ranks(one_column(rows_of(scores, s, where, sample_weight, groups)))
    result = largest_gap([column], GapOptions(confidence, resamples, _arrays.seed_of(random_state)))
    return replace(result, per_column=tuple(np.maximum(column.gaps, 0.0).tolist()))


def gap_of_each(
    scores: Any,
    s: Any,
    *,
    ranks: bool = False,
    sample_weight: Any = None,
    groups: Any = None,
    confidence: float = 0.95,
    resamples: int = RESAMPLES,
    random_state: _arrays.RandomState = 0,
) -> list[ParityResult]:
    """Return :func:`gdp` (or :func:`rank_gap`) of each column of scores alone, without the test of no gap.

    The columns share their smoother and their random numbers, so that many scores of the same rows cost little more
    than one; `expected_under_independence` and `pvalue` are NaN.
    """
    rows = rows_of(scores, s, None, sample_weight, groups)
    cells = Cells.of_rows(rows)
    smoother = Smoother(cells.sums_of(replace(rows, scores=rows.scores[:, :1]))[0].over(cells.nodes))
    options = GapOptions(confidence, resamples, _arrays.seed_of(random_state), test=False)
    each = (replace(rows, scores=column[:, None]) for column in rows.scores.T)
    columns = [_Ranks(one, smoother) if ranks else columns_of(one, None, smoother)[0] for one in each]
    return [largest_gap([column], options) for column in columns]


class _Ranks:
    """The mean gap of the decisions at nine deciles."""

    def __init__(self, rows: Rows, smoother: Smoother | None = None) -> None:
        score, weights = rows.scores[:, 0], rows.weights
        order = np.argsort(score, kind="stable")
        below = np.cumsum(weights[order])
        self.rank = np.empty(len(order))
        self.rank[order] = below / below[-1]
        deciles = score[order][np.searchsorted(below, DECILES * below[-1] * (1 - 1e-12))]
        self.thresholds, which = np.unique(deciles, return_inverse=True)
        self.rows = replace(rows, scores=(score[:, None] > self.thresholds).astype(np.float64))
        self.at = score[:, None] == self.thresholds
        self.columns = columns_of(self.rows, None, smoother)
        self.shares = np.bincount(which) / 9
        self.gaps = np.array([column.value for column in self.columns])[which]
        self.n, self.value, self.magnitude = len(rows.s), float(self.gaps.mean()), 1.0
        self.resolution, self.bound_resolution = self.columns[0].resolution, self.columns[0].bound_resolution

    def null(self, options: GapOptions) -> Array:
        """Return values of resamples in which no decision depends on s."""
        if self.rows.clusters is not None:
            draws = [column.null(options) for column in self.columns]
        else:
            noise = self._normal_noise(options)
            flat = np.zeros(noise.shape[1])
            draws = [
                column.smoother.resampled(column.sums, flat, flat, drawn, column.smoother.alone)
                for column, drawn in zip(self.columns, noise)
            ]
        return np.asarray(self.shares @ np.stack(draws))

    def _normal_noise(self, options: GapOptions) -> Array:
        """Draw sums over nodes for all decisions together, of shape (decisions, nodes, resamples).

        Of two decisions the one at the higher threshold implies the other, so that their product is the rarer one.
        """
        mean = np.array([-column.sums.ends[0] for column in self.columns])
        above = np.stack([c.sums.powers[1, 1] + m * c.sums.powers[1, 0] for c, m in zip(self.columns, mean)], axis=1)
        later = np.maximum.outer(np.arange(len(mean)), np.arange(len(mean)))
        weights = self.columns[0].sums.powers[1, 0][:, None, None]
        cross = above[:, :, None] * mean
        covariance = above[:, later] - cross - cross.transpose(0, 2, 1) + weights * np.outer(mean, mean)
        values, vectors = np.linalg.eigh(covariance * self.columns[0].sums.bessel)
        root = vectors * np.sqrt(np.maximum(values, 0))[:, None, :]
        normal = np.random.default_rng([options.seed, 1]).standard_normal((*root.shape[:2], options.resamples))
        return np.asarray((root @ normal).transpose(1, 0, 2))

    def ends(self, options: GapOptions, tail: float) -> Ends:
        """Return the interval at a probability of error on each side."""
        rows, weights, n = self.rows, self.rows.weights, float(self.rows.weights.sum())
        cells = Cells.of_rows(rows)
        node = np.searchsorted(cells.nodes, cells.place(rows.s), side="right") - 1
        influence, extra, beside = np.zeros(len(weights)), 0.0, np.zeros(4)
        for j, (share, column) in enumerate(zip(self.shares, self.columns)):
            at, soft = self.at[:, j], column.soft[node]
            # a decile inside a large tie does not move
            tied = float(weights[at].sum()) / n > NEARBY
            near = weights * (1.0 if tied else np.abs(self.rank - self.rank[at].mean()) <= NEARBY)
            decided = rows.scores[:, j] + column.sums.ends[0]
            influence += share * ((soft - near @ soft / near.sum()) * decided - column.gap)
            own_extra, own_lost = column.uncertain_signs(options)
            extra += share * math.sqrt(own_extra)
            beside += share * np.array([own_lost + column.within_nodes(), *column.beside(tail / len(self.columns))])
        sums: Array = weights * influence / n
        if rows.clusters is not None:
            sums = np.bincount(rows.clusters, weights=sums).astype(np.float64)
        bessel = rows.effective / max(rows.effective - 1, 1)
        error = math.sqrt(bessel * float(sums @ sums) + extra**2)
        skewness = float((sums**3).sum()) / max(error**3, TINY)
        below, above = skewed_reach(error, skewness, student(tail, rows.effective))
        lost, bound, missed, doubtful = beside.tolist()
        value = max(self.value, 0.0)
        high = value + float(above) + lost + missed
        return Ends(max(self.value - float(below), 0.0), high, error, bound, doubtful <= (high - value) / 2)
