"""Calibration error."""

from __future__ import annotations

import numpy as np
import pytest

from frhsic.calibration import calibration_error


def calibration_by_pairs(scores: np.ndarray, y: np.ndarray, bins: np.ndarray) -> float:
    total = 0.0
    for b in np.unique(bins):
        r = (y - scores)[bins == b]
        n = len(r)
        if n > 1:
            total += n * sum(r[i] * r[j] for i in range(n) for j in range(n) if i != j) / (n * (n - 1))
    return float(np.sqrt(max(0.0, total / len(y))))


def test_the_calibration_error_is_the_mean_product_of_residuals_over_pairs_of_a_bin():
    scores = np.array([0.1, 0.1, 0.1, 0.6, 0.6, 0.9, 0.9, 0.9])
    y = np.array([1, 0, 1, 0, 0, 1, 1, 0])
    expected = calibration_by_pairs(scores, y, scores)
    assert expected > 0
    assert calibration_error(scores, y) == pytest.approx(expected, rel=1e-12)
    order = np.random.default_rng(0).permutation(8)
    assert calibration_error(scores[order], y[order]) == pytest.approx(expected, rel=1e-12)


def test_the_squared_calibration_error_is_without_bias():
    """Scores that are .1 too high everywhere: the mean of the squares, unclipped, is .01, also with few rows."""
    rng = np.random.default_rng(0)
    squares = []
    for _ in range(600):
        p = rng.uniform(0.1, 0.6, size=300)
        squares.append(calibration_error(p + 0.1, rng.random(300) < p) ** 2)
    error = np.std(squares) / np.sqrt(len(squares))
    assert abs(np.mean(squares) - 0.01) < 4 * error + 2e-4  # clipping at 0 adds a little
