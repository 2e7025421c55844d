"""Ranks and decisions that may use the attribute, by the law of a score given it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.optimize import brentq

from frhsic.estimators.basis import MOST_LEVELS, SensitiveBasis
from frhsic.estimators.families import DECILES, Family, Problem, Units

# Points of a law of scores given S; width of its smoothing, in ranks of S; rows that the neighbours
# count for.
LAW_POINTS = 201
LAW_WIDTH = 0.02
LAW_ROWS = 100.0


@dataclass(frozen=True, eq=False)
class ConditionalLaw:
    r"""The law of a score given one attribute, which moves a score to where parity needs it.

    .. math:: T(f, s) = Q\bigl(F(f \mid s)\bigr)

    with the distribution function F of the score given S = s and the quantiles Q of all rows. With
    the true F, the law of :math:`T(f, S)` given S = s is the same for every s. F is that of the
    rows at a node of S, shrunk towards that of the nodes near it, which count as much as 100 rows
    at the node.

    Attributes
    ----------
    starts
        Smallest value of each node of S, increasing, (M,).
    mass
        Share of the rows in each node, (M,).
    scores
        Increasing scores at which F is known, (P,); it is linear in between.
    shares
        F at these scores for each node, (M, P).
    pooled
        The same for all rows, (P,).
    """

    starts: np.ndarray
    mass: np.ndarray
    scores: np.ndarray
    shares: np.ndarray
    pooled: np.ndarray

    @classmethod
    def fit(cls, score: np.ndarray, s: np.ndarray, weights: np.ndarray | None = None) -> Self:
        """Learn the law from scores and values without NaN, (n,), and their weights."""
        basis = SensitiveBasis.fit(s, weights)
        rows = np.ones(len(s)) if weights is None else weights * (len(s) / weights.sum())
        nodes = len(basis.mass)
        grid = np.unique(np.quantile(score, np.linspace(0, 1, LAW_POINTS)))
        bins = max(len(grid) - 1, 1)
        cell = np.clip(np.searchsorted(grid, score, side="right") - 1, 0, bins - 1)
        table = np.zeros((nodes, bins))
        np.add.at(table, (basis.node(s), cell), rows)
        near = np.eye(nodes)
        if nodes > MOST_LEVELS:
            rank = np.cumsum(basis.mass) - basis.mass / 2
            near = np.exp(-0.5 * ((rank[:, None] - rank) / LAW_WIDTH) ** 2)
        smooth = near @ table
        smooth /= smooth.sum(axis=1, keepdims=True)
        counts = table.sum(axis=1, keepdims=True)
        share = (table + LAW_ROWS * smooth) / (counts + LAW_ROWS)
        return cls(
            basis.starts,
            basis.mass,
            grid,
            np.column_stack([np.zeros(nodes), share.cumsum(axis=1)])[:, : len(grid)],
            np.append(0.0, (table.sum(axis=0) / table.sum()).cumsum())[: len(grid)],
        )

    def moved(self, score: np.ndarray, s: np.ndarray) -> np.ndarray:
        """Return T of scores at values of the attribute: beyond the fitted range its ends count,
        without a value f.
        """
        if len(self.scores) < 2:
            return score
        node = np.clip(np.searchsorted(self.starts, s, side="right") - 1, 0, None)
        last = len(self.scores) - 2
        cell = np.clip(np.searchsorted(self.scores, score, side="right") - 1, 0, last)
        width = self.scores[cell + 1] - self.scores[cell]
        along = np.clip((score - self.scores[cell]) / width, 0.0, 1.0)
        rank = self.shares[node, cell] * (1 - along) + self.shares[node, cell + 1] * along
        return np.where(np.isnan(s), score, np.interp(rank, self.pooled, self.scores))

    def optimal_rule(self, move: float, threshold: float) -> tuple[float, float]:
        r"""Return the two numbers of optimal decisions that know S, :math:`t_0` and r:

        .. math:: t(s) = \min(\max(Q_s, t_0 - \mu), t_0 + \mu), \qquad E\,t(S) = \tau, \qquad
            P(f > t(S)) = r,

        where the share r of the people of s has a score above :math:`Q_s`.
        """

        def thresholds(share: float) -> tuple[np.ndarray, float]:
            own = np.array([np.interp(1 - share, cdf, self.scores) for cdf in self.shares])

            def excess(center: float) -> float:
                return float(self.mass @ np.clip(own, center - move, center + move)) - threshold

            reach = move + 1 + float(np.abs(own - threshold).max())
            center = brentq(excess, threshold - reach, threshold + reach, xtol=1e-12)
            return np.clip(own, center - move, center + move), center

        def surplus(share: float) -> float:
            limits, _ = thresholds(share)
            below = [np.interp(limit, self.scores, cdf) for limit, cdf in zip(limits, self.shares)]
            return float(self.mass @ (1 - np.array(below))) - share

        share = brentq(surplus, 0.0, 1.0, xtol=1e-9)
        return thresholds(share)[1], share


@dataclass(frozen=True)
class KnownRanks(Family):
    """Where predictions may use S: each score goes to where its rank among people of its s leads,
    by at most a largest move, the one parameter.
    """

    knows_s = True

    def inputs(
        self, eta: np.ndarray, means: np.ndarray, units: Units
    ) -> tuple[np.ndarray, np.ndarray]:
        return units.standard(eta), units.standard(means)

    def outputs(self, parameters: np.ndarray, base: np.ndarray, columns: np.ndarray) -> np.ndarray:
        return np.asarray(np.clip(columns[:, 0], base - parameters[0], base + parameters[0]))

    def decided(self, score: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Return the decisions that the gap of scores is measured on, (n, c)."""
        deciles = np.quantile(score, DECILES, method="inverted_cdf", weights=weights)
        return np.asarray(score[:, None] > deciles)

    def parameters(self, move: float, task: Problem, law: ConditionalLaw) -> np.ndarray:
        """Return the parameters of a largest move."""
        return np.array([move])

    def path(self, task: Problem, shares: np.ndarray, law: ConditionalLaw) -> np.ndarray:
        """Return the parameters of each trade-off, (G, P), whose gaps are spread as some shares."""
        moves = np.quantile(np.abs(task.columns[:, 0] - task.base), np.linspace(0, 1, 48))
        gaps = []
        for move in moves:
            score = self.outputs(self.parameters(move, task, law), task.base, task.columns)
            decided = self.decided(score, task.weights)
            gaps.append(task.curves[0].gap(decided.astype(np.float64)))
        least = np.minimum.accumulate(gaps)
        wanted = least[-1] + (least[0] - least[-1]) * (shares - shares[-1]) / (1 - shares[-1])
        path = np.interp(wanted, least[::-1], moves[::-1])
        path[0] = 0.0
        path[-1] = moves[-1]
        return np.array([self.parameters(move, task, law) for move in path])


@dataclass(frozen=True)
class KnownDecisions(KnownRanks):
    r"""Optimal decisions that may use S: η above a threshold
    :math:`t(s) = \min(\max(Q_s, t_0 - \mu), t_0 + \mu)`, where the share r of the people of s has
    an η above :math:`Q_s`.

    The numbers :math:`t_0` and r are those with :math:`E\,t(S) = \tau` and
    :math:`P(\eta > t(S)) = r` (docs/theory.md). The parameters are μ, :math:`t_0`, and the score
    that the share r of all people exceeds.
    """

    decides = True

    def outputs(self, parameters: np.ndarray, base: np.ndarray, columns: np.ndarray) -> np.ndarray:
        move, center, common = parameters
        above = base - center
        return np.asarray(np.clip(columns[:, 0] - common, above - move, above + move))

    def decided(self, score: np.ndarray, weights: np.ndarray) -> np.ndarray:
        return np.asarray(score > 0)[:, None]

    def parameters(self, move: float, task: Problem, law: ConditionalLaw) -> np.ndarray:
        center, share = law.optimal_rule(move, task.threshold)
        common = np.interp(1 - share, law.pooled, law.scores)
        return np.array([move, center - task.threshold, common - task.threshold])
