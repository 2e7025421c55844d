r"""Coefficients of the closed form, for every trade-off between loss and gap.

Over all functions f of x, the smallest loss at a given gap has a closed form,

.. math:: \partial \ell(f(x), \eta(x)) = -m_c(x), \qquad m_c(x) = \sum_k c_k m_k(x),

with :math:`\eta(x) = E[Y | x]` and :math:`m_k(x) = E[\varphi_k(S) | x]` (docs/theory.md). Here the
few numbers c are found by L-BFGS, for each :math:`\mu` of a grid, on rows with out-of-fold
:math:`\eta` and :math:`m`:

.. math:: \min_{a, b, c} \; \frac1n \sum_i \ell(f(x_i), y_i) + \sum_k r_k c_k^2 + \frac\mu2 \,
    \Bigl\| \bigl( N_j(f) / t_j \bigr)_j \Bigr\|_4^2,
    \qquad N_j = \sum_v p_v \bigl( \sqrt{g_j(v)^2 + \varepsilon^2} - \varepsilon \bigr).

The square has the same solutions as the norm and spreads them evenly. The curve :math:`g_j(v) =
\sum_k \hat E[f \varphi_k(S)] \varphi_k(v)` on the nodes v of an attribute is the gap, projected on
its functions. The :math:`t_j` are in proportion to the limits of the attributes
(`GapCurves.scales`), scaled so that the largest :math:`N_j(\eta) / t_j` is 1; r is a ridge
(`Solution._ridge`); a and b recalibrate :math:`\eta`.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.optimize import minimize

from frhsic.estimators.constraints import GapCurves
from frhsic.estimators.families import SmoothFamily, SolverTask

# Shares of the unconstrained gap, from which μ of each trade-off is guessed; the gaps that it leads
# to are measured.
GAP_SHARES = np.array([1.0, 0.8, 0.6, 0.4, 0.25, 0.1, 0.005])

# μ of a first solution with almost no gap, in units of the loss; what it costs sets the scale of
# the others.
STRICTEST = 100.0

# Decrease of the objective in a step that ends the search for its least value, and steps at most.
TOLERANCE = 1e-5
MOST_STEPS = 60

# ε, as a share of the gap that a trade-off aims at.
SMOOTHNESS = 0.1

# The norm over several curves is the p-norm with this p, close to their largest.
NORM_POWER = 4.0


def solve(family: SmoothFamily, task: SolverTask) -> np.ndarray:
    """Return the parameters for each trade-off, (G, P): η recalibrated, then each one starting from
    the one before.
    """
    first = family.first(task)
    curves = task.curves
    assert curves is not None
    gaps = curves.gaps(family.evaluate(task, first.parameters, curves.functions).sums)
    gaps = np.maximum(gaps, 1e-12)
    curves = replace(curves, scales=curves.scales * (gaps / curves.scales).max())

    def solved(
        start: np.ndarray,
        mu: float,
        target: float = 1.0,
        free: int | None = None,
    ) -> np.ndarray:
        """Return the scaled parameters after minimizing over the first `free`, with the others
        fixed.
        """

        def objective(scaled: np.ndarray) -> tuple[float, np.ndarray]:
            parameters = np.append(scaled, start[len(scaled) :]) * first.scales
            loss, sums, gradient = family.evaluate(task, parameters, curves.functions)
            norm, pull = gap_norm(curves, sums, SMOOTHNESS * target * gaps)
            along = parameters[first.own :]
            ridge = float(np.sum(task.ridge * along**2))
            slope = gradient(mu * norm * pull)
            slope[first.own :] += 2 * task.ridge * along
            return loss + ridge + mu * norm**2 / 2, (slope * first.scales)[: len(scaled)]

        found = minimize(
            objective,
            start[:free],
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": MOST_STEPS, "ftol": TOLERANCE},
        )
        return np.append(found.x, start[len(found.x) :])

    def loss_at(scaled: np.ndarray) -> float:
        return family.loss(task, scaled * first.scales)

    # The first trade-off has c = 0: where η is wrong, moving along m lowers the loss and can raise
    # the gap of the model. The others start from the least loss over c, too.
    calibrated = solved(first.parameters / first.scales, 0.0, free=first.own)
    free = solved(calibrated, 0.0)
    # a model of y without error has no loss to measure by, so a tenth of the variance of y counts
    # at least
    variance = np.average((task.y - task.mean()) ** 2, axis=0, weights=task.weights)
    unit = max(family.loss(task, first.parameters), 0.1 * float(variance.sum()))
    strict = solved(free, STRICTEST * unit)
    cost = max(loss_at(strict) - loss_at(free), 1e-4 * unit)
    path = [calibrated]
    current = free
    for target in GAP_SHARES[1:]:
        # where the cost of a share r of the gap is cost * (1 - r)², this μ leads to it
        mu = 2 * cost * (1 - target) / target
        current = solved(current, mu, target)
        path.append(current)
    return np.asarray(np.array(path) * first.scales)


def gap_norm(
    curves: GapCurves, sums: np.ndarray, smoothness: np.ndarray
) -> tuple[float, np.ndarray]:
    """Return the norm of sums (K, c) over all curves, each smoothed and divided by its scale, and
    its gradient.
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
