"""An upper bound on the gap of every head of a representation, corrected for overfitting."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import chdtrc, chndtr, chndtrinc

from frhsic.estimators.basis import ranges
from frhsic.estimators.frontier import Gap

# Maximum number of windows of S, and minimum number of rows in each.
MOST_WINDOWS = 20
WINDOW_ROWS = 100

# A function of S counts as predictable from x if its model is better than a constant by this many
# standard errors.
BEYOND_CHANCE = 2.0


@dataclass(frozen=True)
class HeadsTest:
    r"""How much prototypes Z reveal about S, and how much of this is noise.

    .. math:: GDP(f(Z)) \le E\, TV(P_{Z | S}, P_Z) \le \tfrac12 \sqrt{\chi^2}, \qquad
        \chi^2 = \sum_l \|E[1\{Z = l\} \varphi(S)]\|^2 / p_l,

    for heads with values in [0, 1], if the orthonormal :math:`\varphi` span all functions of S with
    mean zero, and otherwise for gaps in the span of :math:`\varphi`. In the first case, the bound
    is 0 exactly when Z and S are independent.

    Attributes
    ----------
    statistic
        Estimate of :math:`\chi^2` times the number of rows.
    degrees
        Mean of the statistic under independence, K(L − 1).
    rows
        Effective number of rows, which is smaller if weights differ or rows belong together.
    cells
        Number of prototypes L that occur.
    """

    statistic: float
    degrees: int
    rows: float
    cells: int

    @classmethod
    def from_rows(
        cls, z: np.ndarray, phi: np.ndarray, weights: np.ndarray, groups: np.ndarray | None = None
    ) -> HeadsTest:
        r"""Return the test for rows that were used neither to fit models nor to solve for
        prototypes.

        Parameters
        ----------
        z
            Prototypes of rows, (n,).
        phi
            Functions of S, (n, K), which are orthonormalized on these rows.
        weights, groups
            Weights of the rows, (n,), for an effective number of :math:`(\sum w)^2 / \sum w^2`
            rows, and the group of each row, numbered from 0, or None.
        """
        weights = weights / weights.sum()
        centered = phi - weights @ phi
        _, sizes, axes = np.linalg.svd(np.sqrt(weights)[:, None] * centered, full_matrices=False)
        kept = sizes > 1e-9 * sizes.max(initial=1.0)  # up to rounding, the others are in their span
        functions = centered @ axes[kept].T / sizes[kept]  # orthonormal under the weights
        cells, cell = np.unique(z, return_inverse=True)
        indicators = (cell == np.arange(len(cells))[:, None]) * weights  # (L, n)
        mass = indicators.sum(axis=1)
        sums = indicators @ functions
        degrees = functions.shape[1] * (len(cells) - 1)
        rows = 1 / float(weights @ weights)
        if groups is not None and degrees:
            rows /= _inflation(cell, functions, weights, mass, groups)
        chi_square = float(((sums**2).sum(axis=1) / mass).sum())
        return cls(rows * chi_square, degrees, rows, len(cells))

    @property
    def pvalue(self) -> float:
        """P-value of the test of independence."""
        return float(chdtrc(self.degrees, self.statistic)) if self.degrees else 1.0

    def gap(
        self, confidence: float = 0.95, explained: np.ndarray | None = None, most: int = 0
    ) -> Gap:
        r"""Return :math:`\tfrac12 \sqrt{\chi^2}`, corrected for noise, with one-sided confidence
        bounds at the given level.

        The ends are computed from the noncentral :math:`\chi^2` distribution. If an estimate is
        below the mean under independence, its upper end is computed from this mean, because an
        upper end computed from the estimate would be too optimistic.

        On the fitted rows, overfitting of the models and the multipliers makes the estimate too
        small, because these rows are balanced by construction but new rows are not. If `explained`
        contains the shares r of the variance of each function of S that x explains, the expected
        bias of :math:`\chi^2` is at most

        .. math:: (L - 1) \sum_k \Bigl( \frac{1 - r_k}{n} + \frac{r_k}{n_0} \Bigr)

        where the first term is the noise of linear smoothers, and the second term is the noise of
        multipliers computed from :math:`n_0` rows, where :math:`n_0` is at most `most`. The bias is
        also at most :math:`\sum_k r_k`, because x reveals no more about S. For each k, the smaller
        bound is added to the estimate and to its upper end.
        """
        if self.degrees == 0:
            return Gap(0.0, 0.0, 0.0)
        low = 0.0
        if chndtr(self.statistic, self.degrees, 0.0) > confidence:
            low = chndtrinc(self.statistic, self.degrees, confidence)
        high = chndtrinc(max(self.statistic, self.degrees), self.degrees, 1 - confidence)
        excess = max(self.statistic - self.degrees, 0.0)
        hidden = 0.0
        if explained is not None:
            shares = (1 - explained) / self.rows + explained / min(self.rows, most)
            hidden = float(np.minimum((self.cells - 1) * shares, explained).sum())
        ends = np.array([excess, low, high]) / self.rows
        ends += [hidden, 0.0, hidden]
        return Gap(*(np.sqrt(ends) / 2).tolist())


def window_indicators(s: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return indicators of windows of S with equal shares of the rows, (n, B). Each frequent value
    gets its own window, as does every level if there are at most 16.
    """
    level = np.unique(s, return_inverse=True)[1]
    mass = np.bincount(level, weights) / weights.sum()
    count = int(np.clip(len(s) // WINDOW_ROWS, 2, MOST_WINDOWS))
    window = ranges(mass, count, 1 / count)[level]
    return np.asarray(np.eye(window.max() + 1)[window])


def join_rare(z: np.ndarray, weights: np.ndarray, windows: int) -> np.ndarray:
    """Return the prototypes of rows, (n,), after merging the prototypes that have less than one row
    per window on average, because the distribution of the test is unknown for such prototypes.
    """
    cells, cell = np.unique(z, return_inverse=True)
    mass = np.bincount(cell, weights) / weights.sum()
    rare = mass * len(z) < windows
    return np.where(rare[cell], len(cells), cell)


def explained_shares(functions: np.ndarray, means: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the share of the variance of each function of S, (n, K), that out-of-fold predictions
    of this function explain, or 0 if the share is not significant.
    """
    weights = weights / weights.sum()
    squares = (functions - weights @ functions) ** 2
    gains = squares - (functions - means) ** 2
    gain = weights @ gains
    error = np.sqrt(weights**2 @ (gains - gain) ** 2)
    return np.where(gain > BEYOND_CHANCE * error, gain / (weights @ squares), 0.0)


def _inflation(
    cell: np.ndarray,
    functions: np.ndarray,
    weights: np.ndarray,
    mass: np.ndarray,
    groups: np.ndarray,
) -> float:
    r"""Return the factor, at least 1, by which groups increase the mean of the estimated χ² under
    independence.

    Each group g adds :math:`\sum_l \|\sum_{i \in g} w_i (1\{z_i = l\} - p_l) \varphi(s_i)\|^2 /
    p_l` to this mean.
    """
    sums = np.zeros((int(groups.max()) + 1, len(mass), functions.shape[1]))
    np.add.at(sums, (groups, cell), weights[:, None] * functions)
    totals = sums.sum(axis=1)  # (groups, K)
    sums -= mass[:, None] * totals[:, None, :]
    by_group = float(((sums**2).sum(axis=(0, 2)) / mass).sum())
    alone = (weights[:, None] * functions) ** 2
    by_row = float((alone.sum(axis=1) * (1 / mass[cell] - 1)).sum())
    return max(by_group / by_row, 1.0)
