r"""Coefficients of the closed form, for every trade-off between loss and gap.

Over all functions f of x, the smallest loss at a given gap has a closed form,

.. math:: \partial \ell(f(x), \eta(x)) = -m_c(x), \qquad m_c(x) = \sum_k c_k m_k(x),

with :math:`\eta(x) = E[Y | x]` and :math:`m_k(x) = E[\varphi_k(S) | x]` (docs/theory.md). This
module computes the few numbers c by BFGS, for each :math:`\mu` in a grid, on rows with out-of-fold
:math:`\eta` and :math:`m`:

.. math:: \min_{a, b, c} \; \frac1n \sum_i \ell(f(x_i), y_i) + \sum_k r_k c_k^2 + \frac\mu2 \,
    \Bigl\| \bigl( N_j(f) / t_j \bigr)_j \Bigr\|_4^2,
    \qquad N_j = \sum_v p_v \bigl( \sqrt{g_j(v)^2 + \varepsilon^2} - \varepsilon \bigr).

The squared norm has the same solutions as the norm, but they are spread evenly over :math:`\mu`.
The curve :math:`g_j(v) = \sum_k \hat E[f \varphi_k(S)] \varphi_k(v)` on the nodes v of an attribute
is the gap curve, projected onto the functions of the attribute. The :math:`t_j` are proportional to
the limits of the attributes (`GapCurves.scales`), and scaled so that the largest :math:`N_j(\eta) /
t_j` is 1. The ridge is r (`Solution._ridge`), and a and b recalibrate :math:`\eta`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import numpy as np

from frhsic.estimators.constraints import GapCurves
from frhsic.estimators.families import SmoothFamily, SolverTask

# Shares of the unconstrained gap, from which μ of each trade-off is guessed; the gaps that it leads
# to are measured.
GAP_SHARES = np.array([1.0, 0.8, 0.6, 0.4, 0.25, 0.1, 0.005])

# μ of first solutions, in units of the loss: what the last one costs sets the scale of the others.
# Ending at 10, 5 of 70 paths of ranks moved by more than 1e-8 after relative noise of 1e-13, some
# by .1; ending at 3, one did.
PROBE_MULTIPLIERS = (0.3, 1.0, 3.0)

# Largest ratio of the share that one solution starts from to its own: ranks have several local
# minima, so the next one is sought near the last.
LARGEST_STEP = 1.8

# Largest entry of the gradient at the end of a search, in units of the loss, so that scores are
# exact to about 1e-8, where a solution only leads to the next one, and steps at most. Searches that
# ended where a step gained 1e-5 left scores of the same rows up to .06 apart after rounding.
LARGEST_SLOPE = 1e-9
ROUGH_SLOPE = 1e-4
MOST_STEPS = 500

# Rounding of the objective that a step may raise it by, as a share of it.
VALUE_ROUNDING = 1e-13

# Trial steps at most, decrease and slope that a step must reach, as shares of the slope before it,
# and length of the first one.
MOST_TRIALS = 30
DECREASE = 1e-4
SLOPE = 0.9
FIRST_STEP = 0.1

# ε, as a share of the gap that a trade-off aims at, and as a share of the unconstrained gap at
# least.
SMOOTHNESS = 0.1
LEAST_SMOOTHNESS = 0.01

# The norm over several curves is the p-norm with this p, close to their largest.
NORM_POWER = 4.0


def solve(family: SmoothFamily, task: SolverTask) -> np.ndarray:
    """Return the parameters for each trade-off, (G, P). The first trade-off is the recalibrated η,
    and each of the following solutions starts from the previous one.
    """
    first = family.first(task)
    curves = task.curves
    assert curves is not None
    gaps = curves.gaps(family.evaluate(task, first.parameters, curves.functions).sums)
    gaps = np.maximum(gaps, 1e-12)
    curves = replace(curves, scales=curves.scales * (gaps / curves.scales).max())

    # a model of y without error has no loss to measure by, so a tenth of the variance of y counts
    # at least
    variance = np.average((task.y - task.mean()) ** 2, axis=0, weights=task.weights)
    unit = max(family.loss(task, first.parameters), 0.1 * float(variance.sum()))

    def solved(
        start: np.ndarray,
        inverse: np.ndarray | None,
        mu: float,
        target: float = 1.0,
        precision: float = ROUGH_SLOPE,
        free: int | None = None,
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """Minimize over the first `free` parameters, with all others fixed. Return the scaled
        parameters, and the inverse of the curvature at the minimum.
        """
        smoothness = max(SMOOTHNESS * target, LEAST_SMOOTHNESS) * gaps

        def objective(scaled: np.ndarray) -> tuple[float, np.ndarray]:
            parameters = np.append(scaled, start[len(scaled) :]) * first.scales
            loss, sums, gradient = family.evaluate(task, parameters, curves.functions)
            norm, pull = gap_norm(curves, sums, smoothness)
            along = parameters[first.own :]
            ridge = float(np.sum(task.ridge * along**2))
            slope = gradient(mu * norm * pull)
            slope[first.own :] += 2 * task.ridge * along
            return loss + ridge + mu * norm**2 / 2, (slope * first.scales)[: len(scaled)]

        least, inverse = minimum(objective, start[:free], precision * unit, inverse)
        return np.append(least, start[len(least) :]), inverse

    def loss_and_norm(scaled: np.ndarray) -> tuple[float, float]:
        loss, sums, _ = family.evaluate(task, scaled * first.scales, curves.functions)
        return loss, gap_norm(curves, sums, SMOOTHNESS * gaps)[0]

    # The first trade-off has c = 0: where η is wrong, moving along m lowers the loss and can raise
    # the gap of the model. The others start from the least loss over c, too.
    calibrated, _ = solved(
        first.parameters / first.scales, None, 0.0, precision=LARGEST_SLOPE, free=first.own
    )
    current, inverse = solved(calibrated, None, 0.0)
    # where the cost of a share r of the gap is cost * (1 - r)², one solution shows the cost, and
    # the derivative is the μ that leads to a share
    probe = current, inverse
    for mu in PROBE_MULTIPLIERS:
        probe = solved(*probe, mu * unit)
    losses, norms = zip(loss_and_norm(current), loss_and_norm(probe[0]))
    closed = max(1 - norms[1] / max(norms[0], 1e-300), 0.01)
    cost = max((losses[1] - losses[0]) / closed**2, 1e-4 * unit)
    path = [calibrated]
    for previous, target in pairwise(GAP_SHARES):
        steps = int(np.ceil(np.log(previous / target) / np.log(LARGEST_STEP)))
        for share in np.geomspace(previous, target, steps + 1)[1:]:
            mu = 2 * cost * (1 - share) / share
            precision = LARGEST_SLOPE if share == target else ROUGH_SLOPE
            current, inverse = solved(current, inverse, mu, share, precision)
        path.append(current)
    return np.asarray(np.array(path) * first.scales)


def minimum(
    objective: Callable[[np.ndarray], tuple[float, np.ndarray]],
    start: np.ndarray,
    precision: float,
    inverse: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray | None]:
    """Return a local minimum of a smooth function that returns its value and gradient, and the
    inverse of the curvature at this minimum, by BFGS. Starting from the inverse for a similar
    function saves steps.

    Near a minimum, decreases in the value become smaller than rounding errors earlier than the
    gradient does. A step may therefore increase the value by as much as a rounding error, and only
    the gradient ends the search.
    """
    at = start
    value, slope = objective(at)
    for _ in range(MOST_STEPS):
        if np.abs(slope).max() < precision:
            break
        if inverse is None:
            move = -slope * min(1.0, FIRST_STEP / float(np.linalg.norm(slope)))
        else:
            move = -(inverse @ slope)
        descent = float(move @ slope)
        length = 1.0
        low = 0.0
        high = np.inf
        for _ in range(MOST_TRIALS):
            new_value, new_slope = objective(at + length * move)
            highest = value + DECREASE * length * descent + VALUE_ROUNDING * abs(value)
            if not new_value <= highest:
                high = length
            elif new_slope @ move < SLOPE * descent:
                low = length
            else:
                break
            length = (low + high) / 2 if high < np.inf else 2 * low
        else:
            break
        move = length * move
        change = new_slope - slope
        at = at + move
        value = new_value
        slope = new_slope
        inverse = updated_inverse(inverse, move, change)
    return at, inverse


def updated_inverse(
    inverse: np.ndarray | None, move: np.ndarray, change: np.ndarray
) -> np.ndarray | None:
    """Return an update of the inverse curvature that maps a change in the gradient to the
    corresponding move.
    """
    product = float(move @ change)
    if product <= 1e-12 * np.linalg.norm(move) * np.linalg.norm(change):
        return inverse
    if inverse is None:
        inverse = np.eye(len(move)) * (product / float(change @ change))
    turned = inverse @ change
    along = np.outer(turned, move) / product
    factor = (1 + float(change @ turned) / product) / product
    return np.asarray(inverse - along - along.T + factor * np.outer(move, move))


def gap_norm(
    curves: GapCurves, sums: np.ndarray, smoothness: np.ndarray
) -> tuple[float, np.ndarray]:
    """Return the norm over all curves for sums (K, c), where each gap is smoothed and divided by
    its scale, and the gradient of this norm.
    """
    curve = curves.values @ sums
    epsilon = (curves.own @ smoothness)[:, None]
    length = np.sqrt(curve**2 + epsilon**2)
    mass = curves.mass[:, None] / sums.shape[1]
    shares = curves.own.T @ (mass * (length - epsilon)).sum(axis=1) / curves.scales
    norm = float((shares**NORM_POWER).sum() ** (1 / NORM_POWER))
    slopes = (shares / max(norm, 1e-300)) ** (NORM_POWER - 1) / curves.scales
    along = mass * curve / np.maximum(length, 1e-300)
    return norm, curves.values.T @ ((curves.own @ slopes)[:, None] * along)
