r"""Columns without what the sensitive attributes tell about them, :math:`x - \hat E[x \mid s]`.

The conditional mean is a least-squares fit of a linear spline in each attribute,

.. math:: \hat E[x \mid s] = \sum_a \sum_k b_{ak}\, \Lambda_{ak}(g_a(s_a)),

where :math:`g_a(s)` is the normal score of the rank of s among the training rows, and :math:`\Lambda_{ak}` the hat
function of knot k: one at this knot, zero at all others, linear between. Ranks make the fit the same for every
increasing map of an attribute, and normal scores leave few rows of a tail to one line. A value that many rows share
moves the ranks by one knot at most, and up to 13 different values have a knot each. Several attributes add up; their
interactions stay in the residuals.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

KNOTS = 13
"""Number of knots of each attribute."""

ROWS_PER_KNOT = 10
"""Least number of rows for each knot; with fewer rows there are fewer knots, down to two."""


@dataclass(frozen=True, eq=False)
class RankSpline:
    """Basis of linear splines in the ranks of attributes: a function of rows (n, q) that returns the hat functions.

    Attributes
    ----------
    values, scores : tuple of ndarray
        Distinct values of each attribute in the training rows, in order, and the normal scores of their ranks. Scores
        of other values are interpolated; beyond the ends they stay the same.
    knots : tuple of ndarray
        Knots of each attribute, in normal scores.

    Examples
    --------
    Few values have a knot each, and the hat functions are their indicators.

    >>> s = np.repeat([1.0, 2.0, 7.0], 10)[:, None]
    >>> RankSpline.fit(s)(np.array([[1.0], [7.0], [4.5]])).round(2).tolist()
    [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, 0.5, 0.5]]
    """

    values: tuple[np.ndarray, ...]
    scores: tuple[np.ndarray, ...]
    knots: tuple[np.ndarray, ...]

    @classmethod
    def fit(cls, s: np.ndarray) -> RankSpline:
        """Rank the training rows, (n, q), and place the knots."""
        most = int(np.clip(len(s) // ROWS_PER_KNOT, 2, KNOTS))
        values, scores, knots = [], [], []
        for column in s.T:
            distinct, counts = np.unique(column, return_counts=True)
            capped = np.minimum(counts, len(s) / KNOTS)
            score = ndtri((np.cumsum(capped) - capped / 2) / capped.sum())
            inner = np.clip(ndtri(np.linspace(0, 1, most)[1:-1]), score[0], score[-1])
            values.append(distinct)
            scores.append(score)
            knots.append(score if len(score) <= most else np.unique([score[0], *inner, score[-1]]))
        return cls(tuple(values), tuple(scores), tuple(knots))

    def __call__(self, s: np.ndarray) -> np.ndarray:
        blocks = []
        for column, values, scores, knots in zip(s.T, self.values, self.scores, self.knots, strict=True):
            at = np.interp(column, values, scores)
            blocks += [np.interp(at, knots, one) for one in np.eye(len(knots))]
        return np.stack(blocks, axis=1)


def residuals(x: np.ndarray, s: np.ndarray, sample_weight: np.ndarray | None = None) -> np.ndarray:
    """Return x (n, d) without its conditional mean given s (n, q), fitted to the same rows.

    Examples
    --------
    A column that is a function of s leaves nothing; one that is not keeps its variance.

    >>> s = np.repeat([1.0, 2.0, 7.0], 10)[:, None]
    >>> noise = np.tile([-1.0, 1.0], 15)[:, None]
    >>> residuals(np.hstack([s**2, noise]), s).std(axis=0).round(2).tolist()
    [0.0, 1.0]
    """
    root = np.sqrt(np.ones(len(x)) if sample_weight is None else sample_weight)[:, None]
    basis = RankSpline.fit(s)(s)
    coefficients, *_ = np.linalg.lstsq(root * basis, root * x, rcond=None)
    return np.asarray(x - basis @ coefficients)
