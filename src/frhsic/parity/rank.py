"""The gap of a score's ranks: GDP of the decisions at its own deciles."""

from __future__ import annotations

import math
from copy import deepcopy
from dataclasses import replace
from typing import Any

import numpy as np

from frhsic import _arrays
from frhsic.parity._rows import Array, Rows, rows_of
from frhsic.parity._signs import Signs
from frhsic.parity.gap import RESAMPLES, GapOptions, ParityResult, centred_columns, largest_gap

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
        Labels of rows that belong together, the `clusters` of :func:`gdp`.
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
    rows = rows_of(scores, s, where, sample_weight, groups)
    if rows.scores.shape[1] > 1:
        raise ValueError(f"scores has {rows.scores.shape[1]} columns; pass one class at a time.")
    signs = Signs(rows)
    column = _Ranks(rows, signs)
    options = GapOptions(signs.resolution, confidence, resamples, _arrays.seed_of(random_state), False)
    result = largest_gap([column], len(rows.s), rows.effective, options)
    return replace(result, per_column=tuple(max(gap, 0.0) for gap in column.gaps), unit="share of rows")


def deciles(scores: Array, weights: Array) -> Array:
    """Return the nine deciles, each the smallest score that has at least its share of the weight at or below it."""
    order = np.argsort(scores, kind="stable")
    below = np.cumsum(weights[order])
    return np.asarray(scores[order][np.searchsorted(below, DECILES * below[-1] * (1 - 1e-12))])


class _Ranks:
    """The mean gap of the decisions at nine deciles."""

    def __init__(self, rows: Rows, signs: Signs) -> None:
        self.rows, self.weights = rows, rows.weights
        self.score = rows.scores[:, 0]
        self.at = deciles(self.score, self.weights)
        thresholds = np.unique(self.at)
        decisions = replace(rows, scores=(self.score[:, None] > thresholds).astype(np.float64))
        self.columns = centred_columns(decisions, signs)
        self.repeats = (self.at[:, None] == thresholds).mean(axis=0)
        by_threshold = np.array([column.value for column in self.columns])
        self.gaps = by_threshold[np.searchsorted(thresholds, self.at)]
        self.thresholds = thresholds
        self.value, self.magnitude = float(self.repeats @ by_threshold), 1.0

    def null(self, resamples: int, rng: np.random.Generator) -> Array:
        """Return values of resamples in which no decision depends on s; all share the random signs of the rows."""
        draws = [column.null(resamples, deepcopy(rng)) for column in self.columns]
        return np.asarray(self.repeats @ np.stack(draws))

    def uncertainty(self, resamples: int, rng: np.random.Generator) -> tuple[float, float]:
        """Return the standard error, and a bound on what uncertain signs take away from the value."""
        weights, rows = self.weights, self.rows
        influence, extra, lost = np.zeros(len(weights)), 0.0, 0.0
        order = np.argsort(self.score, kind="stable")
        rank = np.empty(len(order))
        rank[order] = np.cumsum(weights[order]) / weights.sum()
        for share, threshold, column in zip(self.repeats, self.thresholds, self.columns):
            at = self.score == threshold
            # a decile inside a large tie does not move
            tied = weights[at].sum() / weights.sum() > NEARBY
            middle = float(rank[at].mean())
            near = weights * (1.0 if tied else np.abs(rank - middle) <= NEARBY)
            influence += share * ((column.soft - near @ column.soft / near.sum()) * column.f - column.gap)
            own_extra, own_lost = column.uncertain_signs(resamples, deepcopy(rng))
            extra, lost = extra + share * math.sqrt(own_extra), lost + share * own_lost
        factor = rows.effective / max(rows.effective - 1, 1)
        variance = factor * rows.square_of_sums(weights * influence) / weights.sum() ** 2
        return math.sqrt(variance + extra**2), lost
