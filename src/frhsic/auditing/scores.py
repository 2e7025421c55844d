"""What an audit tells of the scores themselves: how well they predict, their quantiles, decisions at a threshold."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from sklearn.metrics import roc_auc_score

from frhsic.calibration import calibration_error
from frhsic.parity import gdp_curve

LEVELS = (0.1, 0.25, 0.5, 0.75, 0.9)
ROWS_PER_GROUP = 100
MOST_GROUPS = 10


@dataclass(frozen=True)
class Quality:
    """How well the scores predict the target, beside a constant: the base rate, or the mean of the target.

    Attributes
    ----------
    key
        ``"accuracy"``, ``"true_positive_rate"``, ``"false_positive_rate"``, ``"auc"``, ``"calibration_error"`` or
        ``"squared_error"``.
    value, constant
        That of the scores, and that of the constant.
    higher_is_better
        False for an error.
    """

    key: str
    value: float
    constant: float
    higher_is_better: bool


@dataclass(frozen=True)
class ScoreQuantiles:
    """Quantiles of the score in groups of rows along S: `values[g][k]` is the quantile `levels[k]` of group g.

    Group g has all rows with S from `start[g]` to `end[g]`.
    """

    levels: tuple[float, ...]
    start: tuple[float, ...]
    end: tuple[float, ...]
    rows: tuple[int, ...]
    values: tuple[tuple[float, ...], ...]


def are_probabilities(scores: np.ndarray) -> bool:
    """Return whether all scores lie between 0 and 1."""
    return bool(scores.min() >= 0 and scores.max() <= 1)


def qualities(scores: np.ndarray, y: np.ndarray, threshold: float | None) -> Iterator[Quality]:
    """Yield how well scores predict y: of a 0/1 target what its kind of score allows, of another the squared error."""
    if set(np.unique(y)) <= {0.0, 1.0}:
        rate = float(y.mean())
        if threshold is not None:
            yes, usual = scores >= threshold, float(rate > 0.5)  # the constant predicts the more frequent outcome
            yield Quality("accuracy", float((yes == (y == 1)).mean()), max(rate, 1 - rate), True)
            if 0 < rate < 1:
                yield Quality("true_positive_rate", float(yes[y == 1].mean()), usual, True)
                yield Quality("false_positive_rate", float(yes[y == 0].mean()), usual, False)
        if 0 < rate < 1:
            yield Quality("auc", float(roc_auc_score(y, scores)), 0.5, True)
        if are_probabilities(scores):
            yield Quality("calibration_error", calibration_error(scores, y), 0.0, False)
    else:
        yield Quality("squared_error", float(np.square(y - scores).mean()), float(y.var()), False)


def score_quantiles(scores: np.ndarray, s: np.ndarray) -> ScoreQuantiles:
    """Return quantiles of the score in the groups that :func:`frhsic.parity.quantile_gap` compares."""
    column = s.reshape(-1)
    curve = gdp_curve(scores, column, groups=int(np.clip(len(column) // ROWS_PER_GROUP, 2, MOST_GROUPS)))
    groups = [scores[(column >= low) & (column <= high)] for low, high in zip(curve.start, curve.end)]
    return ScoreQuantiles(
        LEVELS,
        tuple(curve.start.tolist()),
        tuple(curve.end.tolist()),
        tuple(len(group) for group in groups),
        tuple(tuple(np.quantile(group, LEVELS).tolist()) for group in groups),
    )
