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
:math:`\varepsilon`, at which P becomes certain.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import OptimizeResult, minimize
from scipy.spatial.distance import cdist
from scipy.special import chndtr, chndtrinc, xlogy

from frhsic.estimators.frontier import Gap

# Mean of the largest P(l | x) that ends the search.
CERTAIN = 0.9
# Share of F below which the term in ε ends it, too: with few distinct rows no certain choice may be
# at parity.
NEGLIGIBLE = 1e-2
HALVINGS = 20

# Steps of descent at each ε, at most, and the share of F below which a gain ends them.
STEPS = 10
GAIN = 1e-3

# Scaled gradient of G that ends L-BFGS: along the way, and for the solution.
ROUGH = 1e-4
EXACT = 1e-9
# Rounds of L-BFGS, and iterations in each, at most.
ROUNDS = 20
ITERATIONS = 100
# Share of a bound on the Hessian that is added to it. Where choices are certain it nearly vanishes,
# and the first step of a round would be far too long.
CAUTION = 0.1

# Smallest probability of a class in a center.
FLOOR = 1e-12

# τ of moves of rows where none is tolerated; below it, distances would hardly count.
LEAST_TOLERANCE = 1e-2
# Multiples of τ in the stages of moves.
STAGES = (100, 30, 10, 3, 1)
# Passes over all distinct rows, and rows that one may move, at most, in each stage.
SWEEPS = 50
MOVED = 200

# Differences that may be rounding, as a share of what is compared.
ROUNDING = 1e-9


@dataclass(frozen=True)
class Probabilities:
    r"""Columns with the probabilities of classes, :math:`d(x, c) = \mathrm{KL}(\eta(x) \| c)`."""

    columns: slice

    def distances(self, targets: np.ndarray, centers: np.ndarray) -> np.ndarray:
        """Return d of rows (n, T) and centers (L, T) as (L, n)."""
        eta = targets[:, self.columns]  # (n, C)
        log_centers = np.log(np.maximum(centers[:, self.columns], FLOOR))  # (L, C)
        return np.asarray(xlogy(eta, eta).sum(axis=1) - log_centers @ eta.T)


@dataclass(frozen=True)
class Numbers:
    r"""Columns with predicted numbers, or columns of X, :math:`d(x, c) = \|x - c\|^2`.

    They come divided by their standard deviation; those of X, also by the root of their number.
    """

    columns: slice

    def distances(self, targets: np.ndarray, centers: np.ndarray) -> np.ndarray:
        """Return d of rows (n, T) and centers (L, T) as (L, n)."""
        x = targets[:, self.columns]
        return np.asarray(cdist(centers[:, self.columns], x, "sqeuclidean"))


# What columns of the targets may be. Both d are Bregman divergences: the best center is the mean.
Kind = Probabilities | Numbers


@dataclass(frozen=True, eq=False)
class SolverRows:
    """Rows to solve for: targets (n, T), means m (n, K) and weights (n,) with sum 1."""

    targets: np.ndarray
    means: np.ndarray
    weights: np.ndarray


def distinct(rows: SolverRows) -> tuple[SolverRows, np.ndarray]:
    """Return the distinct rows in the order of their values, and the place of each row, (n,)."""
    inputs = np.column_stack([rows.targets, rows.means])
    _, first, place = np.unique(inputs, axis=0, return_index=True, return_inverse=True)
    place = place.ravel()  # a column in NumPy 2.0
    weights = np.bincount(place, rows.weights)
    return SolverRows(rows.targets[first], rows.means[first], weights), place


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
        costs = self.multipliers @ means.T
        costs += distances
        costs -= constant[:, None]
        return np.asarray(costs)

    def choice(self, distances: np.ndarray, means: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return P(l | x), (L, n), and log Σ_l q_l exp(−a_l/ε), (n,)."""
        P = self.costs(distances, means)
        P /= -self.epsilon  # in place: this is where the time goes
        P += np.log(self.mass)[:, None]
        top = P.max(axis=0)
        P -= top
        np.exp(P, out=P)
        total = P.sum(axis=0)
        P /= total
        return P, top + np.log(total)

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
    """Return the solution for each τ, the largest first; each starts from the one before, at the
    first ε.
    """
    solutions = [start]
    for tolerance in tolerances:
        again = replace(solutions[-1], epsilon=start.epsilon)
        solutions.append(solve(again, rows, tolerance))
    return solutions[1:]


def solve(start: Prototypes, rows: SolverRows, tolerance: float) -> Prototypes:
    """Minimise F from a start: descend, and halve ε until the choice is nearly certain."""
    # fewer rows than K + 1, each with a certain choice, have no mean of m that is 0
    least = (rows.means.shape[1] + 1) / len(rows.weights)
    current = with_multipliers(replace(start, tolerance=tolerance), rows, ROUGH)
    for _ in range(HALVINGS):
        for _ in range(STEPS):
            last = current.objective
            current = with_multipliers(with_centers(current, rows, least), rows, ROUGH)
            if last - current.objective <= GAIN * last:
                break
        P = current.probabilities(rows.targets, rows.means)
        most = current.epsilon * np.log(len(P))  # of ε·KL
        if P.max(axis=0) @ rows.weights > CERTAIN or most < NEGLIGIBLE * current.objective:
            break
        current = with_multipliers(replace(current, epsilon=current.epsilon / 2), rows, ROUGH)
    return with_multipliers(current, rows, EXACT)


def with_centers(prototypes: Prototypes, rows: SolverRows, least: float) -> Prototypes:
    """Take the steps q = p and center = mean; leave out prototypes with less than a least mass."""
    joint = prototypes.probabilities(rows.targets, rows.means) * rows.weights  # (L, n)
    mass = joint.sum(axis=1)
    kept = mass >= min(least, mass.max())
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
    """Minimise G over λ by rounds of L-BFGS, each scaled anew."""
    distances = prototypes.distances(rows.targets)
    for _ in range(ROUNDS):
        prototypes, search = _searched(prototypes, distances, rows, precision)
        if search.success or search.nit < 3:
            break
    return prototypes


def _searched(
    prototypes: Prototypes, distances: np.ndarray, rows: SolverRows, precision: float
) -> tuple[Prototypes, OptimizeResult]:
    r"""Return what a round of L-BFGS arrives at, and its iterations.

    The search is over u with :math:`\lambda_l = \lambda_l^0 + R_l u_l`, where
    :math:`R_l R_l^\top` is the inverse of the block
    :math:`E[P_l (1 - P_l) m m^\top] / \varepsilon + \tau p_l I` of the Hessian at the start.
    """
    start = prototypes.multipliers
    scale = _inverse_root(_hessian_blocks(prototypes, distances, rows))

    def moved(u: np.ndarray) -> Prototypes:
        change = np.einsum("lij,lj->li", scale, u.reshape(start.shape))
        return replace(prototypes, multipliers=start + change)

    def scaled(u: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = dual(moved(u), distances, rows)
        return value, np.einsum("lij,li->lj", scale, gradient).ravel()

    options = {"maxiter": ITERATIONS, "maxcor": 20, "gtol": precision, "ftol": precision**2}
    search = minimize(scaled, np.zeros(start.size), jac=True, method="L-BFGS-B", options=options)
    return replace(moved(search.x), objective=-float(search.fun)), search


def _hessian_blocks(prototypes: Prototypes, distances: np.ndarray, rows: SolverRows) -> np.ndarray:
    """Return the Hessian of G for each λ_l alone, (L, K, K)."""
    P = prototypes.choice(distances, rows.means)[0]
    means = rows.means - prototypes.origin
    uncertain = P * (1 + CAUTION - P) * rows.weights / prototypes.epsilon  # (L, n)
    blocks = np.stack([(means.T * row) @ means for row in uncertain])
    ridge = prototypes.tolerance * (P @ rows.weights)
    return np.asarray(blocks + ridge[:, None, None] * np.eye(means.shape[1]))


def _inverse_root(blocks: np.ndarray) -> np.ndarray:
    """Return R with R Rᵀ the inverse of each symmetric block, (L, K, K)."""
    values, vectors = np.linalg.eigh(blocks)
    least = ROUNDING * (1 + values[:, -1:])
    return np.asarray(vectors / np.sqrt(np.maximum(values, least))[:, None, :])


def assigned(prototypes: Prototypes, rows: SolverRows) -> np.ndarray:
    r"""Give each row one prototype, (n,): the one with the least a, then moves that lower F.

    Without its term in ε, F is for every λ

    .. math:: E\, a_Z(X) + \frac{1}{2 \tau} \sum_l \frac{\|r_l\|^2}{p_l},
        \qquad r_l = E[1\{Z = l\} (m(X) - \tau \lambda_l)].

    The start has the least E a, so that moves lower the sum, which is that of
    :math:`\|v_l\|^2 / p_l` where τ = 0. Its factor, which is finite then, too, grows to 1/2τ in
    stages: the first moves are those that cost little. Rows with equal targets and means have the
    same prototype, and the order of rows does not matter.
    """
    rows, place = distinct(rows)
    moves = Moves(
        weights=rows.weights,
        means=rows.means - prototypes.origin,
        shifts=prototypes.tolerance * prototypes.multipliers,
        costs=prototypes.costs(prototypes.distances(rows.targets), rows.means),
    )
    for stage in STAGES:
        factor = 0.5 / (stage * max(prototypes.tolerance, LEAST_TOLERANCE))
        for _ in range(SWEEPS):
            if not moves.sweep(factor):
                break
    return np.asarray(moves.choice[place])


@dataclass(eq=False)
class Moves:
    r"""Moves of rows that lower :math:`E\, a_Z + \mathrm{factor} \sum_l \|r_l\|^2 / p_l`.

    Attributes
    ----------
    weights, means
        Weights of the rows, (n,), and their means m, (n, K).
    shifts, costs
        τλ, (L, K), and a, (L, n).
    """

    weights: np.ndarray
    means: np.ndarray
    shifts: np.ndarray
    costs: np.ndarray

    def __post_init__(self) -> None:
        self.choice = self.costs.argmin(axis=0)
        joint = (self.choice == np.arange(len(self.costs))[:, None]) * self.weights
        self.mass = joint.sum(axis=1)  # p
        self.sums = joint @ self.means - self.mass[:, None] * self.shifts  # r, (L, K)
        self.slack = ROUNDING * float(np.ptp(self.costs, axis=0) @ self.weights)

    def sweep(self, factor: float) -> bool:
        """Move rows, those that gain most first; return whether any was moved."""
        gains = -self.changes(np.arange(len(self.weights)), factor).min(axis=0)
        candidates = np.flatnonzero(gains > self.slack)
        # gains that differ by rounding count as equal, and keep the order of the rows
        order = np.argsort(-np.round(gains[candidates] / self.slack), kind="stable")
        moved = [self.move(row, factor) for row in candidates[order[:MOVED]]]
        return any(moved)

    def move(self, row: int, factor: float) -> bool:
        """Move a row to where that lowers the objective most; return whether it does."""
        gains = -self.changes(np.array([row]), factor)[:, 0]
        place = _first_largest(gains)
        if gains[place] <= self.slack:
            return False
        places = [self.choice[row], place]
        weights = self.weights[row] * np.array([-1, 1])
        self.mass[places] += weights
        self.sums[places] += weights[:, None] * (self.means[row] - self.shifts[places])
        self.choice[row] = place
        return True

    def changes(self, some: np.ndarray, factor: float) -> np.ndarray:
        """Return by how much the objective changes if one of some rows moves, (L, rows)."""
        weights = self.weights[some]
        means = self.means[some]
        costs = self.costs[:, some]
        squares = (self.sums**2).sum(axis=1)
        # of r + w(m − τλ): its product with r, and the square of what is added
        product = self.sums @ means.T - (self.sums * self.shifts).sum(axis=1)[:, None]
        linear = 2 * weights * product
        quadratic = weights**2 * cdist(self.shifts, means, "sqeuclidean")
        joined = squares[:, None] + linear + quadratic
        place = self.choice[some]
        own = place, np.arange(len(some))
        left = squares[place] - linear[own] + quadratic[own]
        now = _dependence(self.mass, squares)
        change = _dependence(self.mass[:, None] + weights, joined) - now[:, None]
        change += _dependence(self.mass[place] - weights, left) - now[place]
        change = factor * change + weights * (costs - costs[own])
        change[own] = 0.0
        return np.asarray(change)


def heads_gap(z: np.ndarray, phi: np.ndarray, weights: np.ndarray, confidence: float = 0.95) -> Gap:
    r"""Bound on the gap of every head of prototypes z, :math:`\tfrac12 \sqrt{\chi^2}`.

    .. math:: GDP(f(Z)) \le E\, TV(P_{Z | S}, P_Z) \le \tfrac12 \sqrt{\chi^2}, \qquad
        \chi^2 = \sum_l \|E[1\{Z = l\} \varphi(S)]\|^2 / p_l,

    for heads with values in [0, 1], if the orthonormal :math:`\varphi` span all functions of S with
    mean zero; otherwise, for gaps in their span. It is 0 exactly when Z and S are independent.

    The rows must have neither fitted nor solved. The mean K(L − 1)/n that the estimate of
    :math:`\chi^2` has at independence is subtracted. The ends are those of the noncentral
    :math:`\chi^2` law with K(L − 1) degrees of freedom, each at the given confidence. An estimate
    below that mean has the upper end of the mean, for 0 would claim too much.

    Parameters
    ----------
    z
        Prototypes of rows, (n,).
    phi
        Functions of S, (n, K); they are made orthonormal on these rows.
    weights
        Weights of the rows, (n,). They count as :math:`(\sum w)^2 / \sum w^2` rows.
    confidence
        Confidence of the upper end, and of the lower end, each by itself.
    """
    effective = weights.sum() ** 2 / (weights**2).sum()
    weights = weights / weights.sum()
    centered = phi - weights @ phi
    vectors, sizes, _ = np.linalg.svd(np.sqrt(weights)[:, None] * centered, full_matrices=False)
    vectors = vectors[:, sizes > ROUNDING * sizes.max(initial=1.0)]
    cells, cell = np.unique(z, return_inverse=True)
    joint = (cell == np.arange(len(cells))[:, None]) * np.sqrt(weights)  # (L, n)
    squares = ((joint @ vectors) ** 2).sum(axis=1)
    statistic = effective * float(_dependence((joint**2).sum(axis=1), squares).sum())
    degrees = vectors.shape[1] * (len(cells) - 1)
    if degrees == 0:
        return Gap(0.0, 0.0, 0.0)
    low = 0.0
    if chndtr(statistic, degrees, 0.0) > confidence:
        low = chndtrinc(statistic, degrees, confidence)
    high = chndtrinc(max(statistic, degrees), degrees, 1 - confidence)
    ends = np.array([max(statistic - degrees, 0.0), low, high])
    return Gap(*(np.sqrt(ends / effective) / 2).tolist())


def _dependence(mass: np.ndarray, squares: np.ndarray) -> np.ndarray:
    """Return ‖v‖²/p of prototypes with mass p and square ‖v‖²; 0 of those without rows."""
    return np.where(mass > ROUNDING, squares / np.maximum(mass, ROUNDING), 0.0)


def _first_largest(values: np.ndarray) -> int:
    """Return the first place of the largest value, whatever the rounding of its equals."""
    return int(np.flatnonzero(values >= values.max() - ROUNDING * np.abs(values).max())[0])
