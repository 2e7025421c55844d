r"""Representations that are solved: each row has one of L prototypes, from which heads can hardly
read S.

.. math:: \min_{P, q, c} \; F = E\, d(X, c_l) + \varepsilon\, \mathrm{KL}(P \| q)
    + \frac{1}{2 \tau} \sum_l \frac{\|v_l\|^2}{p_l},
    \qquad v_l = E[P(l | X)\, m(X)], \quad p_l = E\, P(l | X),

where :math:`m_k(x) = E[\varphi_k(S) | x]`, and d is what is lost of a row in prototype l. The last
sum is :math:`\sum_k \mathrm{Var}(E[\varphi_k(S) | Z])`, and it is 0 exactly when every head of Z is
at parity in the span of :math:`\varphi`; :math:`\tau = 0` demands it. For fixed centers c and
masses q, F is convex in P, and

.. math:: \min_P F = -\min_\lambda G, \quad
    G = \varepsilon\, E \log \sum_l q_l e^{-a_l(X) / \varepsilon}, \quad
    a_l(x) = d(x, c_l) + \lambda_l \cdot m(x) - \tau \|\lambda_l\|^2 / 2,

with :math:`P(l | x) \propto q_l e^{-a_l(x) / \varepsilon}`. Smooth and convex, G has L × K
arguments. The steps q = p and center = mean lower F, too, and so does a smaller
:math:`\varepsilon`, at which P becomes certain (docs/theory.md).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from scipy.optimize import minimize
from scipy.spatial.distance import cdist
from scipy.special import xlogy

# Mean of the largest P(l | x) that ends the search. With few distinct rows no certain choice may be
# at parity, so that ε is halved a limited number of times.
CERTAIN, HALVINGS = 0.9, 20

# Steps of descent at each ε, and the share of the objective below which a gain ends them.
STEPS, GAIN = 10, 1e-3

# Scaled gradient of G that ends L-BFGS: along the way, and for the solution.
ROUGH, EXACT = 1e-4, 1e-9

# Smallest probability of a class in a center.
FLOOR = 1e-12

# Differences that may be rounding, as a share of what is compared.
ROUNDING = 1e-9


class Kind(Protocol):
    """What some columns of the targets are.

    The distance is a Bregman divergence, so that the best center is the mean.
    """

    def distances(self, targets: np.ndarray, centers: np.ndarray) -> np.ndarray:
        """Return d of rows (n, T) and centers (L, T) as (L, n)."""
        ...


@dataclass(frozen=True)
class Probabilities:
    r"""Probabilities of the classes of a target, :math:`d(x, c) = \mathrm{KL}(\eta(x) \| c)`."""

    columns: slice

    def distances(self, targets: np.ndarray, centers: np.ndarray) -> np.ndarray:
        """See :class:`Kind`."""
        eta = targets[:, self.columns]  # (n, C)
        log_centers = np.log(np.maximum(centers[:, self.columns], FLOOR))  # (L, C)
        return np.asarray(xlogy(eta, eta).sum(axis=1) - log_centers @ eta.T)


@dataclass(frozen=True)
class Numbers:
    r"""Predicted numbers, or columns to keep, :math:`d(x, c) = \|x - c\|^2`.

    They come divided by their standard deviation; columns, also by the root of their number.
    """

    columns: slice

    def distances(self, targets: np.ndarray, centers: np.ndarray) -> np.ndarray:
        """See :class:`Kind`."""
        x = targets[:, self.columns]
        return np.asarray(cdist(centers[:, self.columns], x, "sqeuclidean"))


@dataclass(frozen=True, eq=False)
class SolverRows:
    """Rows to solve for: targets (n, T), means m (n, K) and weights (n,) with sum 1."""

    targets: np.ndarray
    means: np.ndarray
    weights: np.ndarray


@dataclass(frozen=True, eq=False)
class Prototypes:
    """Prototypes, and the probability with which a row has each of them.

    Attributes
    ----------
    kinds
        What the columns of the targets are.
    origin
        Mean of m over the solved rows, which is subtracted, for φ(S) has mean 0; (K,).
    centers, mass, multipliers
        c, (L, T); q, (L,); and λ, (L, K).
    epsilon, tolerance
        ε and τ = 1/μ.
    objective
        Least F for these centers and masses.
    """

    kinds: Sequence[Kind]
    origin: np.ndarray
    centers: np.ndarray
    mass: np.ndarray
    multipliers: np.ndarray
    epsilon: float
    tolerance: float
    objective: float = np.inf

    def distances(self, targets: np.ndarray) -> np.ndarray:
        """Return d of each prototype and row, (L, n)."""
        return np.asarray(sum(kind.distances(targets, self.centers) for kind in self.kinds))

    def costs(self, distances: np.ndarray, means: np.ndarray) -> np.ndarray:
        """Return a = d + λ·m − τ‖λ‖²/2 of each prototype and row, (L, n)."""
        constant = self.multipliers @ self.origin
        constant = constant + self.tolerance / 2 * (self.multipliers**2).sum(axis=1)
        return np.asarray(self.multipliers @ means.T + distances - constant[:, None])

    def choice(self, distances: np.ndarray, means: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return P(l | x), (L, n), and log Σ_l q_l exp(−a_l/ε), (n,)."""
        exponents = np.log(self.mass)[:, None] - self.costs(distances, means) / self.epsilon
        top = exponents.max(axis=0)
        P = np.exp(exponents - top)
        total = P.sum(axis=0)
        return P / total, top + np.log(total)

    def probabilities(self, targets: np.ndarray, means: np.ndarray) -> np.ndarray:
        """Return P(l | x) of rows with targets (n, T) and means (n, K); (L, n)."""
        return self.choice(self.distances(targets), means)[0]


def spread(kinds: Sequence[Kind], rows: SolverRows, count: int) -> Prototypes:
    """Return prototypes to start from: at most `count` cells of the targets.

    Again and again, the cell with the largest sum of squares is divided at its mean along the
    column that has most of it (Su and Dy, 2007). The order of rows does not matter.
    """
    cell = np.zeros(len(rows.weights), dtype=np.int64)
    while True:
        joint = (cell == np.arange(cell.max() + 1)[:, None]) * rows.weights  # (cells, n)
        mass = joint.sum(axis=1)
        centers = joint @ rows.targets / mass[:, None]
        squares = joint @ (rows.targets - centers[cell]) ** 2  # (cells, T)
        widest = _first_largest(squares.sum(axis=1))
        column = _first_largest(squares[widest])
        width = np.sqrt(squares[widest, column] / mass[widest])
        if len(mass) == count or width < ROUNDING:
            break
        beyond = rows.targets[:, column] > centers[widest, column] + ROUNDING * width
        cell[(cell == widest) & beyond] = len(mass)
    origin = rows.weights @ rows.means
    start = Prototypes(kinds, origin, centers, mass, np.zeros((len(mass), len(origin))), 1.0, 0.0)
    lost = float(start.distances(rows.targets).min(axis=0) @ rows.weights)
    return replace(start, epsilon=max(lost, ROUNDING))


def path(start: Prototypes, rows: SolverRows, tolerances: Iterable[float]) -> list[Prototypes]:
    """Return the solution for each τ, each started from the one before: the largest τ first."""
    solutions = []
    for tolerance in tolerances:
        start = solve(start, rows, tolerance)
        solutions.append(start)
    return solutions


def solve(start: Prototypes, rows: SolverRows, tolerance: float) -> Prototypes:
    """Minimise F from a start: descend, and halve ε until the choice is nearly certain."""
    current = with_multipliers(replace(start, tolerance=tolerance), rows, ROUGH)
    for _ in range(HALVINGS):
        for _ in range(STEPS):
            last = current.objective
            current = with_multipliers(with_centers(current, rows), rows, ROUGH)
            if last - current.objective <= GAIN * last:
                break
        P = current.probabilities(rows.targets, rows.means)
        if P.max(axis=0) @ rows.weights > CERTAIN:
            break
        current = with_multipliers(replace(current, epsilon=current.epsilon / 2), rows, ROUGH)
    return with_multipliers(current, rows, EXACT)


def with_centers(prototypes: Prototypes, rows: SolverRows) -> Prototypes:
    """Take the steps q = p and center = mean; prototypes without mass are left out."""
    joint = prototypes.probabilities(rows.targets, rows.means) * rows.weights  # (L, n)
    mass = joint.sum(axis=1)
    kept = mass > ROUNDING
    return replace(
        prototypes,
        centers=(joint @ rows.targets)[kept] / mass[kept, None],
        mass=mass[kept] / mass[kept].sum(),
        multipliers=prototypes.multipliers[kept],
    )


def dual(
    prototypes: Prototypes, distances: np.ndarray, rows: SolverRows
) -> tuple[float, np.ndarray]:
    r"""Return G, and its gradient :math:`\tau p_l \lambda_l - v_l`, (L, K)."""
    P, logs = prototypes.choice(distances, rows.means)
    joint = P * rows.weights  # (L, n)
    ridge = prototypes.tolerance * joint.sum(axis=1)[:, None] * prototypes.multipliers
    gradient = ridge - joint @ (rows.means - prototypes.origin)
    return prototypes.epsilon * float(logs @ rows.weights), gradient


def with_multipliers(prototypes: Prototypes, rows: SolverRows, precision: float) -> Prototypes:
    r"""Minimise G over λ by L-BFGS.

    The search is over u with :math:`\lambda_l = \lambda_l^0 + R_l u_l`, where
    :math:`R_l R_l^\top` is the inverse of the block
    :math:`E[P_l (1 - P_l) m m^\top] / \varepsilon + \tau p_l I` of the Hessian at the start.
    """
    distances = prototypes.distances(rows.targets)
    start = prototypes.multipliers
    scale = _inverse_root(_hessian_blocks(prototypes, distances, rows))

    def moved(u: np.ndarray) -> Prototypes:
        change = np.einsum("lij,lj->li", scale, u.reshape(start.shape))
        return replace(prototypes, multipliers=start + change)

    def scaled(u: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = dual(moved(u), distances, rows)
        return value, np.einsum("lij,li->lj", scale, gradient).ravel()

    search = minimize(
        scaled,
        np.zeros(start.size),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": 1000, "maxcor": 20, "gtol": precision, "ftol": precision**2},
    )
    return replace(moved(search.x), objective=-float(search.fun))


def _hessian_blocks(prototypes: Prototypes, distances: np.ndarray, rows: SolverRows) -> np.ndarray:
    """Return the Hessian of G for each λ_l alone, (L, K, K)."""
    P = prototypes.choice(distances, rows.means)[0]
    means = rows.means - prototypes.origin
    uncertain = P * (1 - P) * rows.weights / prototypes.epsilon  # (L, n)
    blocks = np.stack([(means.T * row) @ means for row in uncertain])
    ridge = prototypes.tolerance * (P @ rows.weights)
    return np.asarray(blocks + ridge[:, None, None] * np.eye(means.shape[1]))


def _inverse_root(blocks: np.ndarray) -> np.ndarray:
    """Return R with R Rᵀ the inverse of each symmetric block, (L, K, K)."""
    values, vectors = np.linalg.eigh(blocks)
    least = ROUNDING * (1 + values[:, -1:])
    return np.asarray(vectors / np.sqrt(np.maximum(values, least))[:, None, :])


def _first_largest(values: np.ndarray) -> int:
    """Return the first place of the largest value, whatever the rounding of its equals."""
    return int(np.flatnonzero(values >= values.max() - ROUNDING * np.abs(values).max())[0])
