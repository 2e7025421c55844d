"""How well scores predict the target, each measure with its standard error, beside a constant."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from scipy import stats
from sklearn.metrics import roc_auc_score

from frhsic.auditing.results import Number, Quality
from frhsic.calibration import calibration_error
from frhsic.independence.effects import Interval


def mean_and_error(x: np.ndarray, weights: np.ndarray | None, groups: np.ndarray | None) -> tuple[float, float, float]:
    """Return the weighted mean, its standard error and the effective number of rows; rows of a group count together."""
    w = np.ones(len(x)) if weights is None else weights
    w = w / w.sum()
    mean = float(w @ x)
    shares, parts = w, w * (x - mean)
    if groups is not None:
        shares, parts = np.bincount(groups, w), np.bincount(groups, parts)
    effective = 1 / float((shares**2).sum())
    return mean, math.sqrt(float((parts**2).sum()) * effective / max(effective - 1, 1)), effective


def base_rate(
    x: np.ndarray, confidence: float, weights: np.ndarray | None = None, groups: np.ndarray | None = None
) -> Number:
    """Return the mean of a target or of scores; its interval is Student's, or Clopper and Pearson's for 0/1."""
    mean, error, effective = mean_and_error(x, weights, groups)
    binary = bool(((x == 0) | (x == 1)).all())
    return rate_number(mean, error, effective, len(x), binary=binary, confidence=confidence)


def rate_number(mean: float, error: float, effective: float, rows: int, *, binary: bool, confidence: float) -> Number:
    """Return a mean with its interval."""
    tail = (1 - confidence) / 2
    reach = float(stats.t.ppf(1 - tail, max(effective - 1, 1))) * error
    low, high, method = mean - reach, mean + reach, "Student's t"
    if binary:
        if 0 < mean < 1 and error > 0:  # rows of a group that are alike count as fewer
            effective = min(effective, mean * (1 - mean) / error**2)
        count, method = mean * effective, "Clopper and Pearson"
        low = float(stats.beta.ppf(tail, count, effective - count + 1)) if mean > 0 else 0.0
        high = float(stats.beta.ppf(1 - tail, count + 1, effective - count)) if mean < 1 else 1.0
    return Number("base_rate", mean, rows, Interval(low, high, confidence, method), standard_error=error)


def qualities(
    scores: np.ndarray,
    y: np.ndarray,
    threshold: float | None,
    weights: np.ndarray | None = None,
    groups: np.ndarray | None = None,
) -> Iterator[Quality]:
    """Yield how well scores predict y: of a 0/1 target what its kind of score allows, of another the squared error."""

    def mean(key: str, values: np.ndarray, constant: float, rows: np.ndarray | slice = slice(None)) -> Quality:
        parts = (None if part is None else part[rows] for part in (weights, groups))
        value, error, _ = mean_and_error(values[rows], *parts)
        return Quality(key, value, constant, error)

    rate = float(np.average(y, weights=weights))
    if not ((y == 0) | (y == 1)).all():
        yield mean("squared_error", np.square(y - scores), float(np.average((y - rate) ** 2, weights=weights)))
        yield mean("mean_error", y - scores, 0.0)
        return
    both, chances = 0 < rate < 1, bool(scores.min() >= 0 and scores.max() <= 1)
    if threshold is not None:
        yes, usual = (scores >= threshold).astype(np.float64), float(rate > 0.5)  # the more frequent outcome
        yield mean("accuracy", (yes == y).astype(np.float64), max(rate, 1 - rate))
        if both:
            yield mean("true_positive_rate", yes, usual, y == 1)
            yield mean("false_positive_rate", yes, usual, y == 0)
    widened = _widened(y)
    if both:
        auc, influence = _auc(scores, y, weights)
        yield Quality("auc", auc, 0.5, widened * mean_and_error(influence, weights, groups)[1])
    if chances:
        p = np.clip(scores, 1e-12, 1 - 1e-12)
        yield mean("log_loss", -np.log(np.where(y == 1, p, 1 - p)), float(stats.entropy([rate, 1 - rate])))
        yield Quality("calibration_error", calibration_error(scores, y), 0.0)
        error = mean("mean_error", y - scores, 0.0)
        yield replace(error, standard_error=widened * (error.standard_error or 0.0))


def changes(
    was: np.ndarray, now: np.ndarray, y: np.ndarray, threshold: float, groups: np.ndarray | None = None
) -> Iterator[Quality]:
    """Yield by how much the accuracy and the AUC of other scores of the same rows differ, with standard errors."""
    right = [((scores >= threshold) == y).astype(np.float64) for scores in (was, now)]
    difference, error, _ = mean_and_error(right[1] - right[0], None, groups)
    yield Quality("accuracy", difference, 0.0, error)
    if 0 < y.mean() < 1:
        (old, before), (new, after) = (_auc(scores, y, None) for scores in (was, now))
        error = mean_and_error(after - before, None, groups)[1]
        yield Quality("auc", new - old, 0.0, _widened(y) * error)


def _widened(y: np.ndarray) -> float:
    """Return the factor by which a standard error is widened with few rows of one outcome.

    It is uncertain itself then, and is read at levels for several comparisons.
    """
    rare = int(min(y.sum(), len(y) - y.sum()))
    return float(stats.t.ppf(0.998, max(rare - 1, 1)) / stats.norm.ppf(0.998)) * math.sqrt(1 + 1 / max(rare, 1))


def _auc(scores: np.ndarray, y: np.ndarray, weights: np.ndarray | None) -> tuple[float, np.ndarray]:
    """Return the AUC, with the influence of each row on it (DeLong et al., 1988)."""
    w = np.ones(len(y)) if weights is None else weights
    auc = float(roc_auc_score(y, scores, sample_weight=weights))
    influence = np.empty(len(y))
    for own, other, sign in ((1, 0, 1), (0, 1, -1)):
        order = np.sort(sign * scores[y == other])
        cumulated = np.append(0, np.cumsum(w[y == other][np.argsort(sign * scores[y == other])]))
        at = sign * scores[y == own]
        below = cumulated[np.searchsorted(order, at)] + cumulated[np.searchsorted(order, at, side="right")]
        share = float(w[y == own].sum() / w.sum())
        influence[y == own] = (below / (2 * cumulated[-1]) - auc) / share
    return auc, influence
