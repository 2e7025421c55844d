"""How far scores are from the outcomes that they predict, on average over bins of the score."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from frhsic import _arrays

__all__ = ["calibration_error"]

# Bins of the calibration error, with about as many rows each.
CALIBRATION_BINS = 10


def calibration_error(scores: Any, y: Any) -> float:
    r"""Root mean square gap between scores and outcomes, by bins of the score, without the bias of
    small bins.

    .. math:: \sqrt{\max\Bigl(0,\; \tfrac{1}{n} \sum_b n_b U_b\Bigr)}, \quad
        U_b = \frac{1}{n_b (n_b - 1)} \sum_{i \ne j \in b} r_i r_j, \quad r = y - \text{score}.

    0 when the mean outcome of each bin is its mean score; in the unit of y. U_b is without bias for
    the squared mean residual of bin b. The usual calibration error takes the mean itself, which is
    above 0 in a small bin also for a perfectly calibrated model: at 100 rows and 10 bins by .1 or
    more. This one is defined for a constant score too, where a calibration slope is not. Gaps that
    cancel within a bin are not seen.

    Parameters
    ----------
    scores : array of shape (n,)
        Probabilities of an outcome, or predictions of y.
    y : array of shape (n,)
        Whether the outcome came (0/1), or the number that was predicted.

    References
    ----------
    Kumar, Liang and Ma (2019), Verified uncertainty calibration: the debiased estimator.

    Examples
    --------
    >>> (
    ...     round(calibration_error([0.2] * 10, [1] * 4 + [0] * 6), 3),
    ...     calibration_error([0.4] * 10, [1] * 4 + [0] * 6),
    ... )
    (0.115, 0.0)
    """
    pair = _arrays.paired((scores, "scores"), (y, "y"))
    score, outcome = (values[:, 0].astype(np.float64) for values in pair)
    edges = np.quantile(score, np.arange(1, CALIBRATION_BINS) / CALIBRATION_BINS)
    bins = np.searchsorted(edges, score, side="right")  # equal scores share a bin
    rows = np.bincount(bins)
    residual = outcome - score
    total = np.bincount(bins, residual)
    squares = np.bincount(bins, residual**2)
    pairs = (total**2 - squares)[rows > 1] / (rows - 1)[rows > 1]  # n_b U_b
    return math.sqrt(max(0.0, float(pairs.sum()) / len(score)))
