r"""Columns without what the sensitive attributes tell about them, :math:`x - \hat E[x \mid s]`.

The conditional mean is a least-squares fit on cosines of the ranks of each attribute,

.. math:: \hat E[x \mid s] = b_0 + \sum_{a} \sum_{k=1}^{K} b_{ak} \sqrt 2 \cos(\pi k\, u_a), \qquad
    u_a = \text{mid-rank of } s_a \text{ among the training rows, in } (0, 1).

Ranks make it the same for every increasing map of an attribute. The cosines are orthonormal where an attribute has no
ties. Several attributes add up; their interactions are left in the residuals.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import rankdata

COSINES = 8
"""Number of cosines of each attribute."""

ROWS_PER_COSINE = 10
"""Least number of rows for each cosine; with fewer rows there are fewer cosines."""


@dataclass(frozen=True, eq=False)
class RankCosines:
    """Cosines of the ranks of attributes: a function of rows (n, q) that returns (n, q · K) columns.

    Attributes
    ----------
    values, ranks : tuple of ndarray
        Distinct values of each attribute in the training rows, in order, and their mid-ranks, from 0 to 1. Other values
        are ranked by linear interpolation.
    count : int
        Number K of cosines.

    Examples
    --------
    >>> basis = RankCosines.fit(np.arange(40.0)[:, None])
    >>> basis.count, basis(np.array([[19.5]])).round(3).tolist()
    (4, [[0.0, -1.414, -0.0, 1.414]])
    """

    values: tuple[np.ndarray, ...]
    ranks: tuple[np.ndarray, ...]
    count: int

    @classmethod
    def fit(cls, s: np.ndarray) -> RankCosines:
        """Rank the training rows, (n, q)."""
        values, ranks = [], []
        for column in s.T:
            distinct, first = np.unique(column, return_index=True)
            values.append(distinct)
            ranks.append((rankdata(column)[first] - 0.5) / len(s))
        return cls(tuple(values), tuple(ranks), int(np.clip(len(s) // ROWS_PER_COSINE, 1, COSINES)))

    def __call__(self, s: np.ndarray) -> np.ndarray:
        frequencies = np.pi * np.arange(1, self.count + 1)
        blocks = [np.interp(column, *known)[:, None] for column, known in zip(s.T, zip(self.values, self.ranks))]
        return np.concatenate([np.sqrt(2) * np.cos(u * frequencies) for u in blocks], axis=1)


def residuals(x: np.ndarray, s: np.ndarray, sample_weight: np.ndarray | None = None) -> np.ndarray:
    """Return x (n, d) without its conditional mean given s (n, q), fitted to the same rows.

    Examples
    --------
    A column that is a function of s leaves nothing; one that is not keeps its variance.

    >>> s = np.linspace(0, 1, 100)[:, None]
    >>> noise = np.tile([-1.0, 1.0], 50)[:, None]
    >>> residuals(np.hstack([3 * np.cos(np.pi * s), noise]), s).std(axis=0).round(2).tolist()
    [0.0, 1.0]
    """
    root = np.sqrt(np.ones(len(x)) if sample_weight is None else sample_weight)[:, None]
    design = np.hstack([np.ones((len(s), 1)), RankCosines.fit(s)(s)])
    coefficients, *_ = np.linalg.lstsq(root * design, root * x, rcond=None)
    return np.asarray(x - design @ coefficients)
