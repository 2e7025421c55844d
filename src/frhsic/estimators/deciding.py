r"""Optimal decisions under parity, computed from the dual of a linear program.

Decisions d(x) in [0, 1] have the gain :math:`E[d\,(\eta - \tau)]`, and their gap curve for an
attribute is :math:`\sum_k E[d\,m_k] \varphi_k`. If the gaps are limited to :math:`t_j`, the largest
possible gain is the minimum of

.. math:: E\,\Bigl(\eta - \tau - \sum_j m_{c_j}\Bigr)_+ + \sum_j t_j \max_v |\nu_j(v)|,
    \qquad c_{jk} = \sum_v p_v \nu_j(v) \varphi_{jk}(v),

over all functions :math:`\nu_j` of the attributes, and
:math:`d = 1\{\eta - \tau > \sum_j m_{c_j}\}` (docs/theory.md). This problem is convex. A ridge
:math:`\kappa |c|^2 / 2` makes c unique.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

from frhsic.estimators.constraints import GapCurves, LabelledRows
from frhsic.estimators.families import Family, SolverTask, Units, combine, log_odds

# Losses of decisions that differ by less are treated as equal, because of rounding.
TIED = 1e-9

# For the recalibration of η: ridge on the factor of the log-odds, smallest ridge on a coefficient
# of m, and gradient below which the fit has converged.
CALIBRATION_RIDGE = 1e-5
LEAST_RIDGE = 1e-9
CALIBRATION_PRECISION = 1e-10

# Smallest unconstrained gap in decisions used as the base of shares.
LEAST_WHOLE = 1e-3

# κ: the gap of the solution exceeds its limit by at most κ|c|.
DUAL_RIDGE = 1e-3

# Smallest width of the kink, as a multiple of the root mean square of η - τ. The kink is narrow
# enough if the gaps of soft and hard decisions, and their costs for these gaps, differ by at most
# this share of the limits.
DUAL_NARROWEST = 1e-3
DUAL_AGREEMENT = 0.05

# Products of multipliers and slacks at the minimum, as a share of width and limit.
DUAL_BARRIER = 0.03

# Norms of the residuals of the optimality conditions at which the search ends: for the final width,
# and for intermediate widths.
DUAL_PRECISION = 1e-13
DUAL_ROUGH = 1e-6
DUAL_ITERATIONS = 100
DUAL_SHORTEST = 1e-6


@dataclass(frozen=True)
class Decisions(Family):
    """Decisions with the smallest loss, where a false positive costs τ and a false negative 1 - τ.

    Decisions are positive if η exceeds a threshold that depends linearly on m. The first half of
    the parameters recalibrates η: an intercept, a factor for the log-odds of η, and coefficients of
    m, because y can depend on m even given η. The second half determines the decisions: an
    intercept, a factor for η, and coefficients of m.
    """

    decides = True

    def inputs(
        self, eta: np.ndarray, means: np.ndarray, units: Units
    ) -> tuple[np.ndarray, np.ndarray]:
        return log_odds(eta), means

    def target(self, sample: LabelledRows, units: Units) -> np.ndarray:
        return sample.y

    def outputs(self, parameters: np.ndarray, base: np.ndarray, columns: np.ndarray) -> np.ndarray:
        calibration, rule = np.split(parameters, 2)
        eta = expit(calibration[0] + calibration[1] * base + combine(columns, calibration[2:]))
        return np.asarray(rule[0] + rule[1] * eta - combine(columns, rule[2:]))

    def loss(self, task: SolverTask, parameters: np.ndarray) -> float:
        """Return the mean loss of hard decisions."""
        taken = self.outputs(parameters, task.base, task.columns) > 0
        costs = np.where(task.y == 1, (1 - task.threshold) * ~taken, task.threshold * taken)
        return float(task.weights @ costs)

    def constant(self, task: SolverTask) -> np.ndarray:
        """Return the constant decision with the smaller loss."""
        constant = np.zeros(2 * (2 + task.columns.shape[1]))
        constant[len(constant) // 2] = 1.0 if task.mean() > task.threshold + TIED else -1.0
        return constant

    def path(self, task: SolverTask, shares: np.ndarray) -> np.ndarray:
        """Return the parameters for each trade-off, (G, P). The gaps are limited to the given
        shares of the gap in unconstrained decisions.
        """
        assert task.curves is not None
        curves, limited = task.curves.limited()
        strata, width = curves.shares.shape
        # while solving, each stratum has its own coefficients, including the last
        common, levels = np.split(task.columns, [width], axis=1)
        rest = common - levels.reshape(len(common), strata - 1, width).sum(axis=1)
        columns = np.column_stack([levels, rest])[:, limited]
        average = np.hstack([np.diag(share) for share in curves.shares])
        away = np.eye(strata * width) - np.tile(average, (strata, 1))
        each = np.tile(np.broadcast_to(task.ridge, len(away))[-width:], strata)
        ridge = DUAL_RIDGE * np.eye(len(away)) + away.T @ (each[:, None] * away)
        ridge = ridge[np.ix_(limited, limited)]
        calibration = recalibration(task, task.columns.shape[1])
        eta = expit(calibration[0] + calibration[1] * task.base + task.columns @ calibration[2:])
        gains = eta - task.threshold
        # minus a multiple of the probability of the condition, so that constants have no gap
        chance = curves.chance[0] + np.outer(eta, curves.chance[1])
        offset = task.weights @ columns / (task.weights @ chance)
        centered = columns - chance * offset
        sums = centered.T @ (task.weights * (gains > 0))
        limits = max(curves.largest(sums[:, None]), LEAST_WHOLE) * curves.scales
        path = []
        for share in shares:
            own = calibration
            if share < 1:
                bounds = share * limits
                c, _ = solve_dual(gains, centered, task.weights, curves, bounds, ridge=ridge)
            else:  # no constraint
                own = np.append(recalibration(task, 0), np.zeros(task.columns.shape[1]))
                c = np.zeros(len(offset))
            intercept, factor = curves.chance @ (c * offset)
            every = np.zeros(len(limited))
            every[limited] = c
            each = every.reshape(strata, width)
            mean = (curves.shares * each).sum(axis=0)
            along = np.vstack([mean, each[:-1] - mean]).ravel()
            rule = [intercept - task.threshold, 1 + factor, *along]
            path.append(np.append(own, rule))
        return np.array(path)


def recalibration(task: SolverTask, count: int) -> np.ndarray:
    """Return the coefficients, starting with the intercept, of a logistic regression of y on the
    log-odds of η and the first `count` columns of m, with the ridge of the task.
    """
    inputs = np.column_stack([np.ones(len(task.y)), task.base, task.columns[:, :count]])
    along = np.broadcast_to(task.ridge, task.columns.shape[1:])[:count]
    ridge = np.append([0.0, CALIBRATION_RIDGE], np.maximum(along, LEAST_RIDGE))

    def objective(line: np.ndarray) -> tuple[float, np.ndarray]:
        margin = inputs @ line
        loss = task.weights @ (np.logaddexp(0.0, margin) - task.y * margin)
        slope = inputs.T @ (task.weights * (expit(margin) - task.y))
        return float(loss + ridge @ line**2), slope + 2 * ridge * line

    def curvature(line: np.ndarray) -> np.ndarray:
        chance = expit(inputs @ line)
        spread = task.weights * chance * (1 - chance)
        return np.asarray((inputs.T * spread) @ inputs + 2 * np.diag(ridge))

    found: Any = minimize(
        objective,
        np.append([0.0, 1.0], np.zeros(count)),
        jac=True,
        hess=curvature,
        method="trust-exact",
        options={"gtol": CALIBRATION_PRECISION},
    )
    return np.asarray(found.x)


def solve_dual(
    gains: np.ndarray,
    means: np.ndarray,
    weights: np.ndarray,
    curves: GapCurves,
    limits: np.ndarray,
    *,
    ridge: np.ndarray | float = DUAL_RIDGE,
    narrowest: float = DUAL_NARROWEST,
    agreement: float = DUAL_AGREEMENT,
) -> tuple[np.ndarray, float]:
    r"""Return the coefficients c of optimal decisions under limits, (K,), and the width over which
    the decisions d = expit((gains - means @ c) / width) are soft.

    The kink is smoothed over a width, which is halved until soft and hard decisions have the same
    gap and the same :math:`E[d\,m_c]`. Hard decisions with the same gap but a different
    :math:`E[d\,m_c]` are suboptimal.

    Parameters
    ----------
    gains
        Gain from a positive decision about each row, :math:`\eta - \tau`, (n,).
    means
        The columns m for all limits, side by side, (n, K), centered so that constant decisions have
        no gap.
    weights
        Weights of the rows, which sum to 1, (n,).
    curves
        The limited curves, whose functions have the conditional means m.
    limits
        Largest allowed gaps, which must be positive, (J,).
    ridge
        :math:`\kappa`, or the matrix of a quadratic form in c, (K, K).
    narrowest, agreement
        Smallest width, and largest accepted difference between soft and hard decisions.
    """
    unit = max(float(np.sqrt(weights @ gains**2)), 1e-9)
    if np.ndim(ridge) == 0:
        ridge = ridge * np.eye(means.shape[1])
    dual = _Dual(gains, means, weights, curves, limits, np.asarray(ridge))
    half = curves.mass * (curves.own @ limits) / 2
    z = np.append(np.zeros(len(half)), np.full(len(limits), unit))
    multipliers = np.stack([half, half])
    width = unit
    while True:
        z, multipliers = dual.minimum(width, z, multipliers, DUAL_ROUGH)
        c = dual.moments @ z
        margin = gains - means @ c
        soft = means.T @ (weights * expit(margin / width))
        hard = means.T @ (weights * (margin > 0))
        apart = np.abs(curves.gaps(soft[:, None]) - curves.gaps(hard[:, None]))
        price = limits @ z[-len(limits) :]
        agree = (apart <= agreement * limits).all() and abs(c @ (soft - hard)) <= agreement * price
        if width <= narrowest * unit or (width < 0.1 * unit and agree):
            return dual.moments @ dual.minimum(width, z, multipliers, DUAL_PRECISION)[0], width
        width /= 2


@dataclass(frozen=True, eq=False)
class _Dual:
    """The dual of one problem, with a smoothed kink.

    The variables z are the function ν on all cells and the bounds u, (M + J). The multipliers of u
    - ν and u + ν, (2, M), differ by the gap curve times the mass of the cells.
    """

    gains: np.ndarray
    means: np.ndarray
    weights: np.ndarray
    curves: GapCurves
    limits: np.ndarray
    ridge: np.ndarray

    @cached_property
    def moments(self) -> np.ndarray:
        """The matrix that maps z to c, (K, M + J)."""
        curves = self.curves
        bounds = np.zeros((self.means.shape[1], len(self.limits)))
        return np.hstack([curves.values.T * curves.mass, bounds])

    def rooms(self, z: np.ndarray) -> np.ndarray:
        """Return the slacks u - ν and u + ν, (2, M)."""
        cells = len(self.curves.mass)
        nu = z[:cells]
        top = self.curves.own @ z[cells:]
        return np.array([top - nu, top + nu])

    def pull(self, multipliers: np.ndarray) -> np.ndarray:
        """Return the gradient with respect to z of the slacks u - ν and u + ν, weighted by the
        multipliers and summed.
        """
        down, up = multipliers
        return np.append(up - down, (down + up) @ self.curves.own)

    def taken(self, width: float, z: np.ndarray) -> np.ndarray:
        """Return the soft decisions, (n,)."""
        return np.asarray(expit((self.gains - self.means @ (self.moments @ z)) / width))

    def residuals(
        self, width: float, z: np.ndarray, multipliers: np.ndarray, aim: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the residuals of the optimality conditions: the gradient with respect to z, and
        the differences between the products of multipliers and slacks and their target.
        """
        sums = self.means.T @ (self.weights * self.taken(width, z))
        slope = self.moments.T @ (self.ridge @ (self.moments @ z) - sums) - self.pull(multipliers)
        slope[-len(self.limits) :] += self.limits
        return slope, multipliers * self.rooms(z) - aim

    def minimum(
        self, width: float, z: np.ndarray, multipliers: np.ndarray, precision: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the z and the multipliers at the minimum, found by a primal-dual interior-point
        method.
        """
        # the products of multipliers and slacks shrink with the width, so that this minimum is a
        # good start for the next width
        least = DUAL_BARRIER * width * float(self.limits.sum()) / len(self.curves.mass)
        for _ in range(DUAL_ITERATIONS):
            rooms = self.rooms(z)
            aim = max(0.1 * float((multipliers * rooms).mean()), least)
            slope, products = self.residuals(width, z, multipliers, aim)
            size = _norm(slope, products)
            if size < precision:
                break
            wanted = -products / rooms  # the change in the multipliers at fixed slacks
            step = self.step(width, z, multipliers / rooms, self.pull(wanted) - slope)
            change = wanted - multipliers / rooms * self.rooms(step)
            fastest = max((-self.rooms(step) / rooms).max(), (-change / multipliers).max(), 0.99)
            share = 0.99 / float(fastest)
            while share > DUAL_SHORTEST:
                left = self.residuals(width, z + share * step, multipliers + share * change, aim)
                if _norm(*left) <= (1 - 0.01 * share) * size:
                    break
                share /= 2
            z = z + share * step
            multipliers = multipliers + share * change
        return z, multipliers

    def step(
        self, width: float, z: np.ndarray, ratios: np.ndarray, right: np.ndarray
    ) -> np.ndarray:
        """Return the Newton step.

        The matrix of the step is the sum of two terms: a matrix that is diagonal in ν and bordered
        by the bounds, and the curvature in the few coefficients c. The system is therefore first
        solved without the curvature.
        """
        own = self.curves.own
        diagonal = ratios.sum(axis=0)[:, None]
        border = own * (ratios[1] - ratios[0])[:, None]
        corner = (4 * ratios.prod(axis=0)) @ (own / diagonal)
        sides = np.column_stack([right, self.moments.T])
        nu = sides[: len(own)]
        bounds = (sides[len(own) :] - border.T @ (nu / diagonal)) / corner[:, None]
        bordered = np.vstack([(nu - border @ bounds) / diagonal, bounds])
        taken = self.taken(width, z)
        steepness = self.weights * taken * (1 - taken) / width
        identity = np.eye(self.means.shape[1])
        curvature = self.ridge + (self.means.T * steepness) @ self.means
        moved = self.moments @ bordered
        c = np.linalg.solve(identity + moved[:, 1:] @ curvature, moved[:, 0])
        return np.asarray(bordered[:, 0] - bordered[:, 1:] @ (curvature @ c))


def _norm(slope: np.ndarray, products: np.ndarray) -> float:
    return float(np.sqrt(slope @ slope + (products**2).sum()))
