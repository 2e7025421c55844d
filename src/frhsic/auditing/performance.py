"""The base rate, and how well scores predict a target, with standard errors."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy import stats

from frhsic.auditing.comparing import difference
from frhsic.auditing.results import Change, Number, Quality, are_chances
from frhsic.auditing.rows import effective_rows
from frhsic.intervals import Interval
from frhsic.scoring import auc_and_influence

SHARE_METHOD = "Clopper and Pearson"  # method of intervals for shares
RATES = ("accuracy", "true_positive_rate", "false_positive_rate")  # rates of decisions


def base_rate(
    x: np.ndarray,
    confidence: float,
    weights: np.ndarray | None = None,
    groups: np.ndarray | None = None,
) -> Number:
    """Return the mean of a target or of scores, with Student's t interval, or the Clopper–Pearson
    interval if the values are 0/1.
    """
    shares = np.ones(len(x)) if weights is None else weights
    shares = shares / shares.sum()
    mean = float(shares @ x)
    terms = shares * (x - mean)
    error = math.sqrt(covariance(terms, terms, groups, weights))
    effective = effective_rows(len(x), weights, groups)
    binary = bool(((x == 0) | (x == 1)).all())
    return rate_number(mean, error, effective, len(x), binary=binary, confidence=confidence)


def rate_number(
    mean: float, error: float, effective: float, rows: int, *, binary: bool, confidence: float
) -> Number:
    """Return a mean with its interval; `effective` is the effective number of rows, or of groups.

    With groups or weights, the interval of a share p is that for n / d independent rows, where d is
    the ratio of the squared standard error of p to that for n independent rows. The number of rows
    is at most n, and smaller if the error is estimated from few groups (Korn and Graubard, 1998).
    """
    tail = (1 - confidence) / 2
    reach = float(stats.t.ppf(1 - tail, max(effective - 1, 1))) * error
    low, high, method = mean - reach, mean + reach, "Student's t"
    if binary:
        if 0 < mean < 1 and error > 0 and rows > 1:
            ratio = mean * (1 - mean) / (rows - 1) / error**2
            known = stats.t.ppf(tail, rows - 1) / stats.t.ppf(tail, max(effective - 1, 1))
            effective = rows * min(ratio * float(known) ** 2, 1.0)
        count, method = mean * effective, SHARE_METHOD
        low = float(stats.beta.ppf(tail, count, effective - count + 1)) if mean > 0 else 0.0
        high = float(stats.beta.ppf(1 - tail, count + 1, effective - count)) if mean < 1 else 1.0
    return Number(
        "base_rate", mean, rows, Interval(low, high, confidence, method), standard_error=error
    )


def covariance(
    a: np.ndarray,
    b: np.ndarray,
    groups: np.ndarray | None = None,
    weights: np.ndarray | None = None,
) -> float:
    """Return the covariance of two estimates, given the contribution of each row to each estimate;
    contributions are first summed within groups.
    """
    effective = effective_rows(len(a), weights, groups)
    if groups is not None:
        a, b = np.bincount(groups, a), np.bincount(groups, b)
    return float(a @ b) * effective / max(effective - 1, 1)


class Performance(NamedTuple):
    """One measure of performance: its value, the contribution of each row to this value, and its
    value for a constant score.
    """

    value: float
    terms: np.ndarray
    constant: float


def performance(
    scores: np.ndarray,
    y: np.ndarray,
    threshold: float | None,
    weights: np.ndarray | None = None,
) -> dict[str, Performance]:
    """Return several measures of how well scores predict y, compared with a constant score: the
    base rate or the mean.

    For a 0/1 target, the measures depend on the type of score; for a numeric target, they are the
    root mean squared error, the share of variance explained, and the mean of y minus the score.
    """
    w = np.ones(len(y)) if weights is None else weights
    w = w / w.sum()

    def mean(x: np.ndarray, constant: float, rows: np.ndarray | float = 1.0) -> Performance:
        shares = w * rows / float((w * rows).sum())
        value = float(shares @ x)
        count = 1 / float((shares**2).sum())
        few = math.sqrt(count / max(count - 1, 1))
        return Performance(value, few * shares * (x - value), constant)

    rate = float(w @ y)
    measures = {"mean_error": mean(y - scores, 0.0)}
    if not ((y == 0) | (y == 1)).all():
        square = mean(np.square(y - scores), 0.0)
        spread = mean(np.square(y - rate), 0.0)
        root = math.sqrt(square.value)
        measures["root_squared_error"] = Performance(
            root, square.terms / (2 * max(root, 1e-300)), math.sqrt(spread.value)
        )
        if spread.value > 0:
            ratio = square.value / spread.value
            terms = (ratio * spread.terms - square.terms) / spread.value
            measures["explained"] = Performance(1 - ratio, terms, 0.0)
        return measures
    both = 0 < rate < 1
    rare = _error_factor(y)
    if threshold is not None:
        yes = (scores > threshold).astype(np.float64)
        measures["accuracy"] = mean((yes == y).astype(np.float64), max(rate, 1 - rate))
        if both:
            usual = float(rate > 0.5)  # the more frequent outcome
            measures["true_positive_rate"] = mean(yes, usual, y == 1)
            measures["false_positive_rate"] = mean(yes, usual, y == 0)
    if both:
        auc, influence = auc_and_influence(scores, y, weights)
        measures["auc"] = Performance(auc, rare * w * influence, 0.5)
    if not are_chances(scores.min(), scores.max()):
        del measures["mean_error"]
        return measures
    error = measures["mean_error"]
    measures["mean_error"] = error._replace(terms=rare * error.terms)
    if not ((scores == 0) | (scores == 1)).all():  # scores are not decisions
        p = np.clip(scores, 1e-12, 1 - 1e-12)
        chance = float(stats.entropy([rate, 1 - rate]))
        measures["log_loss"] = mean(-np.log(np.where(y == 1, p, 1 - p)), chance)
    return measures


def _error_factor(y: np.ndarray) -> float:
    """Return the factor by which a standard error is multiplied to allow for a rare outcome.

    With few rows of one outcome, the standard error is itself uncertain. The factor uses a high
    quantile because the error is used in several comparisons.
    """
    rare = int(min(y.sum(), len(y) - y.sum()))
    return float(stats.t.ppf(0.998, max(rare - 1, 1)) / stats.norm.ppf(0.998)) * math.sqrt(
        1 + 1 / max(rare, 1)
    )


def qualities(
    scores: np.ndarray,
    y: np.ndarray,
    threshold: float | None,
    weights: np.ndarray | None = None,
    groups: np.ndarray | None = None,
    confidence: float = 0.95,
) -> Iterator[Quality]:
    """Yield measures of how well scores predict y, each with its standard error and, for a rate,
    its interval.
    """
    rated = {"true_positive_rate": y == 1, "false_positive_rate": y == 0}
    for key, result in performance(scores, y, threshold, weights).items():
        error = math.sqrt(covariance(result.terms, result.terms, groups, weights))
        interval = None
        if key in RATES:
            yes = scores > threshold
            kept = rated.get(key, np.ones(len(y), dtype=bool))
            interval = base_rate(
                (yes if key in rated else yes == y)[kept].astype(np.float64),
                confidence,
                None if weights is None else weights[kept],
                None if groups is None else groups[kept],
            ).interval
        yield Quality(key, result.value, result.constant, error, interval)


def class_accuracy(
    outputs: np.ndarray, codes: np.ndarray, weights: np.ndarray | None = None
) -> Performance:
    """Return how often the most probable of several classes is correct, compared with always
    predicting the most common class.
    """
    w = np.ones(len(codes)) if weights is None else weights
    w = w / w.sum()
    right = outputs.argmax(axis=1) == codes
    value = float(w @ right)
    return Performance(value, w * (right - value), float(np.bincount(codes, w).max()))


def class_quality(
    outputs: np.ndarray,
    codes: np.ndarray,
    confidence: float,
    weights: np.ndarray | None = None,
    groups: np.ndarray | None = None,
) -> Quality:
    """Return the result of :func:`class_accuracy` with its interval."""
    result = class_accuracy(outputs, codes, weights)
    error = math.sqrt(covariance(result.terms, result.terms, groups, weights))
    rows = len(codes)
    effective = effective_rows(rows, weights, groups)
    rate = rate_number(result.value, error, effective, rows, binary=True, confidence=confidence)
    return Quality("class_accuracy", result.value, result.constant, error, rate.interval)


def changes(
    was: np.ndarray,
    now: np.ndarray,
    y: np.ndarray,
    threshold: float | None,
    level: float,
    groups: np.ndarray | None = None,
    weights: np.ndarray | None = None,
) -> Iterator[Change]:
    """Yield the change in each measure of performance between two sets of scores for the same
    rows.
    """
    old, new = (performance(scores, y, threshold, weights) for scores in (was, now))
    for key in [key for key in old if key in new]:
        yield performance_change(key, old[key], new[key], level, groups, weights)


def performance_change(
    key: str,
    was: Performance,
    now: Performance,
    level: float,
    groups: np.ndarray | None = None,
    weights: np.ndarray | None = None,
) -> Change:
    """Return the change in one measure of performance on the same rows."""
    numbers = []
    for result in (was, now):
        error = math.sqrt(covariance(result.terms, result.terms, groups, weights))
        numbers.append(Number(key, result.value, len(result.terms), standard_error=error))
    shared = covariance(was.terms, now.terms, groups, weights)
    return difference(key, "", numbers[0], numbers[1], level, shared)
