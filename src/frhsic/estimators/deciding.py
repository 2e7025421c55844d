r"""Optimal decisions under parity: the dual of a linear program.

Decisions d(x) in [0, 1] gain :math:`E[d\,(\eta - \tau)]`. Along an attribute their gap curve is
:math:`\sum_k E[d\,m_k] \varphi_k`. With limits :math:`t_j` on the gaps of some such curves, the
most that decisions can gain is the least value of

.. math:: E\,\Bigl(\eta - \tau - \sum_j m_{c_j}\Bigr)_+ + \sum_j t_j \max_v |\nu_j(v)|,
    \qquad c_{jk} = \sum_v p_v \nu_j(v) \varphi_{jk}(v),

over all functions :math:`\nu_j` of the attributes, and
:math:`d = 1\{\eta - \tau > \sum_j m_{c_j}\}` (docs/theory.md). This problem is convex. A ridge
:math:`\kappa |c|^2 / 2` makes c unique.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.linalg import block_diag
from scipy.optimize import minimize
from scipy.special import expit

from frhsic.estimators.basis import SensitiveBasis
from frhsic.estimators.constraints import LabelledRows, condition_probability
from frhsic.estimators.families import Family, Problem, Units, combine, log_odds

# Weight of the square of what a recalibration of η changes.
CALIBRATION_RIDGE = 1e-5

# κ: the gap of the solution exceeds its limit by at most κ|c|.
DUAL_RIDGE = 1e-3

# Smallest width of the kink, in root mean squares of η - τ, and difference between the gaps of soft
# and hard decisions, as a share of the limit, from which on the kink is narrow enough.
DUAL_NARROWEST = 1e-3
DUAL_AGREEMENT = 0.05

# Products of multipliers and rooms in the minimum, as a share of width and limit.
DUAL_BARRIER = 0.03

# Norm of what is left of the conditions of the minimum at which the search ends, and for widths
# that only lead to the next one.
DUAL_PRECISION = 1e-13
DUAL_ROUGH = 1e-6
DUAL_ITERATIONS = 100
DUAL_SHORTEST = 1e-6


@dataclass(frozen=True)
class Decisions(Family):
    """Decisions that lose least: η above a threshold that moves along m.

    A wrong positive decision loses the threshold τ, a wrong negative one 1 - τ. The parameters are
    two that recalibrate the log-odds of η, an intercept, a factor of η, and the coefficients.
    """

    decides = True

    def inputs(
        self, eta: np.ndarray, means: np.ndarray, units: Units
    ) -> tuple[np.ndarray, np.ndarray]:
        return log_odds(eta), means

    def target(self, sample: LabelledRows, units: Units) -> np.ndarray:
        return sample.y

    def outputs(self, parameters: np.ndarray, base: np.ndarray, columns: np.ndarray) -> np.ndarray:
        shift, slope, intercept, factor = parameters[:4]
        eta = expit(shift + slope * base)
        return np.asarray(intercept + factor * eta - combine(columns, parameters[4:]))

    def loss(self, task: Problem, parameters: np.ndarray) -> float:
        """Return the loss of hard decisions."""
        taken = self.outputs(parameters, task.base, task.columns) > 0
        return decision_loss(taken, task)

    def constant(self, task: Problem) -> np.ndarray:
        """Return the one decision for everybody that loses less."""
        constant = np.zeros(4 + task.columns.shape[1])
        constant[2] = 1.0 if task.mean() > task.threshold else -1.0
        return constant

    def path(self, task: Problem, shares: np.ndarray) -> np.ndarray:
        """Return the parameters for each trade-off, (G, P), with gaps of some shares of that of
        decisions without limits.
        """
        calibration = recalibrated(task.base, task.y, task.weights)
        eta = expit(calibration[0] + calibration[1] * task.base)
        gains = eta - task.threshold
        taken = (gains > 0).astype(np.float64)
        first = np.array([*calibration, -task.threshold, 1.0, *np.zeros(task.columns.shape[1])])
        widths = [curve.basis.values.shape[1] for curve in task.curves]
        starts = np.cumsum(widths)[:-1]
        offsets = []
        centered = []
        gaps = []
        for curve, columns in zip(task.curves, np.split(task.columns, starts, axis=1)):
            # less a multiple of the chance of the condition, so that constants have no gap
            kept = condition_probability(curve.among, eta)
            offset = task.weights @ columns / (task.weights @ kept)
            offsets.append(offset)
            centered.append(columns - np.outer(kept, offset))
            sums = (task.weights * taken) @ centered[-1]
            gaps.append(curve.norm(sums[:, None], 0.0)[0])
        scales = np.array([curve.scale for curve in task.curves])
        whole = float((gaps / scales).max())
        if whole == 0:
            return np.tile(first, (len(shares), 1))
        path = [first]
        for share in shares[1:]:
            c, _ = solve_dual(
                gains,
                np.column_stack(centered),
                task.weights,
                [curve.basis for curve in task.curves],
                share * whole * scales,
            )
            own = np.append(first[:4], c)
            for curve, part, offset in zip(task.curves, np.split(c, starts), offsets):
                without, with_y = condition_probability(curve.among, np.array([0.0, 1.0]))
                own[2] += without * (part @ offset)
                own[3] += (with_y - without) * (part @ offset)
            path.append(own)
        return np.array(path)


def decision_loss(taken: np.ndarray, task: Problem) -> float:
    """Return the mean loss of decisions: τ for a wrong positive, 1 - τ for a wrong negative one."""
    costs = np.where(task.y == 1, (1 - task.threshold) * ~taken, task.threshold * taken)
    return float(task.weights @ costs)


def recalibrated(base: np.ndarray, y: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return intercept and slope of the log-odds of y along some log-odds, near 0 and 1 where rows
    say little.
    """

    def objective(line: np.ndarray) -> tuple[float, np.ndarray]:
        margin = line[0] + line[1] * base
        loss = weights @ (np.logaddexp(0.0, margin) - y * margin)
        away = line - [0.0, 1.0]
        slope = weights * (expit(margin) - y)
        gradient = np.array([slope.sum(), slope @ base]) + 2 * CALIBRATION_RIDGE * away
        return float(loss + CALIBRATION_RIDGE * away @ away), gradient

    solved = minimize(objective, np.array([0.0, 1.0]), jac=True, options={"gtol": 1e-10})
    return np.asarray(solved.x)


def solve_dual(
    gains: np.ndarray,
    means: np.ndarray,
    weights: np.ndarray,
    bases: Sequence[SensitiveBasis],
    limits: np.ndarray,
    *,
    ridge: float = DUAL_RIDGE,
    narrowest: float = DUAL_NARROWEST,
    agreement: float = DUAL_AGREEMENT,
) -> tuple[np.ndarray, float]:
    r"""Return the coefficients c of optimal decisions under some limits, (K,), and the width over
    which they are soft, d = expit((gains - means @ c) / width).

    The kink is smoothed over a width that is halved until soft and hard decisions have the same
    gap.

    Parameters
    ----------
    gains
        What a positive decision gains at each row, :math:`\eta - \tau`, (n,).
    means
        The columns m of all limits, side by side, (n, K), so centred that constants have no gap.
    weights
        Weights of the rows, with sum 1, (n,).
    bases
        For each limit, the functions of the attribute that its columns are means of.
    limits
        Largest gaps, above 0, (J,).
    ridge, narrowest, agreement
        :math:`\kappa`; smallest width; difference of the gaps that is small enough.

    Examples
    --------
    x is an attribute with two levels, and hardly a gap is allowed: the smallest coefficient that
    accepts both levels.

    >>> level = np.array([0.0, 1.0])
    >>> basis = SensitiveBasis.fit(level)
    >>> gains = np.array([-0.1, 0.3])
    >>> c, _ = solve_dual(gains, basis(level), np.full(2, 0.5), [basis], np.array([1e-6]))
    >>> np.abs(gains - basis(level) @ c).round(2).tolist()
    [0.0, 0.2]
    """
    unit = max(float(np.sqrt(weights @ gains**2)), 1e-9)
    dual = _Dual(gains, means, weights, bases, limits, ridge)
    width = unit
    point = dual.center(unit)
    while True:
        point = dual.minimum(width, point, DUAL_ROUGH)
        c = dual.moments @ point.nu
        margin = gains - means @ c
        soft = dual.gaps(expit(margin / width))
        hard = dual.gaps((margin > 0).astype(np.float64))
        agree = np.abs(soft - hard) <= agreement * limits
        if width <= narrowest * unit or (width < 0.1 * unit and agree.all()):
            return dual.moments @ dual.minimum(width, point, DUAL_PRECISION).nu, width
        width /= 2


class _Point(NamedTuple):
    """A function ν of all attributes, (M,), its bounds u, (J,), and the multipliers of u - ν and of
    u + ν, (2, M), whose difference is the gap curve times the mass of the nodes.
    """

    nu: np.ndarray
    bounds: np.ndarray
    multipliers: np.ndarray

    def moved(self, step: _Point, size: float) -> _Point:
        """Return the point some share of a step farther."""
        return _Point(*(own + size * more for own, more in zip(self, step)))


class _Dual:
    """The dual of one problem with its kink smoothed."""

    def __init__(
        self,
        gains: np.ndarray,
        means: np.ndarray,
        weights: np.ndarray,
        bases: Sequence[SensitiveBasis],
        limits: np.ndarray,
        ridge: float,
    ) -> None:
        self.gains = gains
        self.means = means
        self.weights = weights
        self.limits = limits
        self.ridge = ridge
        self.mass = np.concatenate([basis.mass for basis in bases])
        nodes = [len(basis.mass) for basis in bases]
        self.own = np.repeat(np.eye(len(bases)), nodes, axis=0)  # (M, J), the limit of each node
        self.functions = block_diag(*(basis.values for basis in bases))  # (M, K)
        self.moments = self.functions.T * self.mass  # c = moments @ nu

    def center(self, unit: float) -> _Point:
        """Return a point to start from."""
        half = self.mass * (self.own @ self.limits) / 2
        bounds = np.full(len(self.limits), unit)
        return _Point(np.zeros(len(self.mass)), bounds, np.stack([half, half]))

    def gaps(self, decisions: np.ndarray) -> np.ndarray:
        """Return the gap along each curve, (J,)."""
        curves = self.functions @ (self.means.T @ (self.weights * decisions))
        return np.asarray((self.mass * np.abs(curves)) @ self.own)

    def rooms(self, point: _Point) -> np.ndarray:
        """Return u - ν and u + ν, (2, M)."""
        top = self.own @ point.bounds
        return np.stack([top - point.nu, top + point.nu])

    def taken(self, width: float, point: _Point) -> np.ndarray:
        """Return the soft decisions, (n,)."""
        c = self.moments @ point.nu
        return np.asarray(expit((self.gains - self.means @ c) / width))

    def residuals(self, width: float, point: _Point, aim: float) -> tuple[np.ndarray, ...]:
        """Return what is left of the conditions of the minimum: the slopes in ν and in the bounds,
        and products of multipliers and rooms less their aim.
        """
        sums = self.means.T @ (self.weights * self.taken(width, point))
        slope = self.ridge * self.moments @ point.nu - sums
        down, up = point.multipliers
        return (
            self.moments.T @ slope + down - up,
            self.limits - (down + up) @ self.own,
            point.multipliers * self.rooms(point) - aim,
        )

    def minimum(self, width: float, point: _Point, precision: float) -> _Point:
        """Return the minimum, by a primal-dual interior-point method."""
        # the products of multipliers and rooms shrink with the width, so that this is a start for
        # the next one
        least = DUAL_BARRIER * width * float(self.limits.sum()) / len(self.mass)
        for _ in range(DUAL_ITERATIONS):
            products = point.multipliers * self.rooms(point)
            aim = max(0.1 * float(products.mean()), least)
            left = self.residuals(width, point, aim)
            size = _norm(left)
            if size < precision:
                break
            step = self.step(width, point, left)
            share = 1.0
            for now, change in (
                (self.rooms(point), self.rooms(step)),
                (point.multipliers, step.multipliers),
            ):
                share = min(share, 0.99 / max(float((-change / now).max()), 0.99))
            while (
                _norm(self.residuals(width, point.moved(step, share), aim))
                > (1 - 0.01 * share) * size
                and share > DUAL_SHORTEST
            ):
                share /= 2
            point = point.moved(step, share)
        return point

    def step(self, width: float, point: _Point, left: tuple[np.ndarray, ...]) -> _Point:
        """Return the step of Newton's method.

        Its matrix is a diagonal in ν, bordered by the bounds, plus the curvature in the few
        coefficients c = Aν. So the steps of c and of the bounds are found first.
        """
        taken = self.taken(width, point)
        steepness = self.weights * taken * (1 - taken) / width
        identity = np.eye(self.means.shape[1])
        curvature = self.ridge * identity + (self.means.T * steepness) @ self.means
        rooms = self.rooms(point)
        ratios = point.multipliers / rooms
        wanted = -left[2] / rooms  # what multipliers would move by if the rooms stayed
        inverse = 1 / ratios.sum(axis=0)
        along = (ratios[0] - ratios[1]) * inverse  # how ν moves with its bound
        slope = left[0] + wanted[0] - wanted[1]
        bound_slope = left[1] - wanted.sum(axis=0) @ self.own
        coupled = (self.moments * along) @ self.own  # (K, J)
        system = np.block(
            [
                [identity + (self.moments * inverse) @ self.moments.T @ curvature, -coupled],
                [coupled.T @ curvature, np.diag((4 * ratios.prod(axis=0) * inverse) @ self.own)],
            ]
        )
        right = [-self.moments @ (inverse * slope), -bound_slope - (along * slope) @ self.own]
        few = np.linalg.solve(system, np.concatenate(right))
        c_step = few[: len(identity)]
        bounds = few[len(identity) :]
        nu = along * (self.own @ bounds) - inverse * (slope + self.moments.T @ (curvature @ c_step))
        step = _Point(nu, bounds, wanted)
        return step._replace(multipliers=wanted - ratios * self.rooms(step))


def _norm(parts: tuple[np.ndarray, ...]) -> float:
    return float(np.sqrt(sum(np.sum(part**2) for part in parts)))
