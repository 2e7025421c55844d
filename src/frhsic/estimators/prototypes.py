r"""Solve for representations: each row is assigned one of L prototypes, which reveal very little
about S.

.. math:: \min_{P, q, c} \; F = E\, d(X, c_l) + \varepsilon\, \mathrm{KL}(P \| q)
    + \frac{1}{2 \tau} \sum_l \frac{\|v_l\|^2}{p_l},
    \qquad v_l = E[P(l | X)\, m(X)], \quad p_l = E\, P(l | X),

where :math:`m_k(x) = E[\varphi_k(S) | x]`, and d is the loss from assigning a row to prototype l.
The last sum is :math:`\sum_k \mathrm{Var}(E[\varphi_k(S) | Z])`, which is 0 exactly when no head of
Z has a gap in the span of :math:`\varphi`. For :math:`\tau = 0`, the sum is constrained to be 0.
For fixed centers c and masses q, F is convex in P, and

.. math:: \min_P F = -\min_\lambda G, \quad
    G = \varepsilon\, E \log \sum_l q_l e^{-a_l(X) / \varepsilon}, \quad
    a_l(x) = d(x, c_l) + \lambda_l \cdot m(x) - \tau \|\lambda_l\|^2 / 2,

with :math:`P(l | x) \propto q_l e^{-a_l(x) / \varepsilon}`. G is a smooth, convex function of L × K
variables. F is lowered further by setting q to p and each center to the mean of its rows, and by
decreasing :math:`\varepsilon`, which makes P deterministic.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from scipy.spatial.distance import cdist
from scipy.special import xlogy


@dataclass(frozen=True)
class SearchSettings:
    """Settings of the search for prototypes."""

    # ε is halved until the mean of the largest P(l | x) exceeds this ...
    certain: float = 0.9
    # ... or the term in ε is a smaller share of F: with few distinct rows, possibly no
    # deterministic assignment is at parity
    negligible: float = 2e-2
    # ... or this many times
    halvings: int = 20
    # first ε, as a share of E d with one prototype
    first_epsilon: float = 0.05
    # first ε of a solution that starts from an earlier one, as a multiple of the earlier solution's
    # last ε
    restart: float = 2.0

    # maximum number of descent steps at each ε, and the decrease, as a share of F, below which
    # descent stops
    steps: int = 10
    least_gain: float = 1e-3

    # scaled gradient of G at which Newton's method stops: for intermediate problems and for the
    # solution
    rough: float = 1e-3
    exact: float = 1e-8
    # maximum number of iterations; far fewer are needed unless the method fails
    iterations: int = 200
    # initial and smallest damping: the share of its scale that is added to the Hessian
    damping: float = 1e-2
    least_damping: float = 1e-6
    # a step is accepted if it achieves this share of the decrease predicted by the second-order
    # model; below the second share, damping increases, and above the third it decreases, as in
    # trust-region methods
    sufficient: float = 1e-4
    poor: float = 0.25
    good: float = 0.75
    # share of a bound on the Hessian that is added to its scale: where assignments are certain, the
    # Hessian nearly vanishes, so the first step would be far too long
    caution: float = 0.1
    # rows whose largest probability is this close to 1 are left out of the Hessian
    undecided: float = 1e-3

    # logarithm of a probability that is lost to rounding when added to 1; computing with much
    # smaller ones is slow
    vanishing: float = -40.0
    # smallest probability of a class in a center, and of a prototype in the Hessian: its logarithm
    # is finite, and single precision can represent it
    least_probability: float = 1e-12

    # smallest τ for moving rows; with a smaller one, distances would hardly matter
    least_tolerance: float = 1e-2
    # multiples of τ for the stages of moves: in the first stages, only cheap moves are made
    stages: tuple[int, ...] = (100, 30, 10, 3, 1)
    # maximum number of passes over all distinct rows in each stage, and of rows moved per pass
    sweeps: int = 50
    moves: int = 200

    # doubling the number of prototypes must reduce the loss by this share of the loss with one
    # prototype
    worth: float = 0.01
    # relative differences that may be due to rounding
    rounding: float = 1e-9


SEARCH = SearchSettings()


@dataclass(frozen=True)
class Probabilities:
    r"""Columns that contain the probabilities of classes, with :math:`d(x, c) = \mathrm{KL}(\eta(x)
    \| c)`.
    """

    start: int
    stop: int

    def distances(self, targets: np.ndarray, centers: np.ndarray) -> np.ndarray:
        """Return d for rows with targets (n, T) and centers (L, T), of shape (L, n)."""
        eta = targets[:, self.start : self.stop]  # (n, C)
        columns = centers[:, self.start : self.stop]
        log_centers = np.log(np.maximum(columns, SEARCH.least_probability))  # (L, C)
        return np.asarray(xlogy(eta, eta).sum(axis=1) - log_centers @ eta.T)


@dataclass(frozen=True)
class Numbers:
    r"""Columns that contain predicted numbers divided by their standard deviation, with :math:`d(x,
    c) = \|x - c\|^2`.
    """

    start: int
    stop: int

    def distances(self, targets: np.ndarray, centers: np.ndarray) -> np.ndarray:
        """Return d for rows with targets (n, T) and centers (L, T), of shape (L, n)."""
        x = targets[:, self.start : self.stop]
        return np.asarray(cdist(centers[:, self.start : self.stop], x, "sqeuclidean"))


# Types of target columns. Each d is a Bregman divergence, so the best center is the mean.
Kind = Probabilities | Numbers


@dataclass(frozen=True, eq=False)
class SolverRows:
    """Rows used to solve: targets (n, T), means m (n, K), and weights (n,) that sum to 1."""

    targets: np.ndarray
    means: np.ndarray
    weights: np.ndarray

    def take(self, some: np.ndarray) -> SolverRows:
        """Return the given rows."""
        return SolverRows(self.targets[some], self.means[some], self.weights[some])


@dataclass(frozen=True, eq=False)
class DistinctRows:
    """Distinct rows, each with the total weight of its duplicates.

    Attributes
    ----------
    rows
        One row for each distinct x, with the mean and the total weight of its duplicates. Targets
        and means of duplicates may differ, because each duplicate is predicted by models that were
        not fitted on it.
    keys
        The key of each distinct x, in increasing order.
    repeated
        Mask of the values of x that occur more than once.
    """

    rows: SolverRows
    keys: np.ndarray
    repeated: np.ndarray

    @classmethod
    def from_keys(cls, rows: SolverRows, keys: np.ndarray) -> DistinctRows:
        """Merge the rows that have the same key, (n,). Keys identify x."""
        distinct, place, counts = np.unique(keys, return_inverse=True, return_counts=True)
        shares = rows.weights / rows.weights.sum()
        weights = np.bincount(place, shares)
        inputs = np.column_stack([rows.targets, rows.means])
        sums = np.zeros((len(distinct), inputs.shape[1]))
        np.add.at(sums, place, shares[:, None] * inputs)
        targets, means = np.split(sums / weights[:, None], [rows.targets.shape[1]], axis=1)
        return cls(SolverRows(targets, means, weights), distinct, counts > 1)


def look_up(
    keys: np.ndarray, known: np.ndarray, values: np.ndarray, otherwise: np.ndarray
) -> np.ndarray:
    """Look up keys in the sorted array `known`, and return their values. Keys that are not found
    get the values in `otherwise`.

    Examples
    --------
    >>> look_up(np.array([3, 4]), np.array([2, 3]), np.array([7, 8]), np.zeros(2)).tolist()
    [8.0, 0.0]
    """
    if not len(known):
        return otherwise
    at = np.minimum(np.searchsorted(known, keys), len(known) - 1)
    return np.where(known[at] == keys, values[at], otherwise)


@dataclass(frozen=True, eq=False)
class Prototypes:
    """Prototypes, and the parameters that determine their probabilities for a row.

    Attributes
    ----------
    kinds
        Types of the target columns.
    origin
        Mean of m over the rows used to solve, (K,), which is subtracted because φ(S) has mean 0.
    centers
        The centers c, (L, T).
    mass
        The masses q, (L,).
    multipliers
        The multipliers λ, (L, K).
    epsilon
        The weight ε of the KL term.
    tolerance
        The tolerance τ = 1/μ.
    objective
        The minimum of F for the centers and masses.
    """

    kinds: tuple[Kind, ...]
    origin: np.ndarray
    centers: np.ndarray
    mass: np.ndarray
    multipliers: np.ndarray
    epsilon: float
    tolerance: float
    objective: float = np.inf

    def distances(self, targets: np.ndarray) -> np.ndarray:
        """Return d for each prototype and each row, (L, n)."""
        return np.asarray(sum(kind.distances(targets, self.centers) for kind in self.kinds))

    def costs(self, distances: np.ndarray, means: np.ndarray) -> np.ndarray:
        """Return a = d + λ·m − τ‖λ‖²/2 for each prototype and each row, (L, n)."""
        constant = self.multipliers @ self.origin
        constant = constant + self.tolerance / 2 * (self.multipliers**2).sum(axis=1)
        costs = self.multipliers @ means.T
        costs += distances
        costs -= constant[:, None]
        return np.asarray(costs)

    def nearest(self, targets: np.ndarray, means: np.ndarray) -> np.ndarray:
        """Return the prototype with the smallest `a` for each row, (n,)."""
        return np.asarray(self.costs(self.distances(targets), means).argmin(axis=0))

    def choice(self, distances: np.ndarray, means: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return P(l | x), (L, n), and log Σ_l q_l exp(−a_l/ε), (n,)."""
        P = self.costs(distances, means)
        P /= -self.epsilon  # in place, because most of the time is spent here
        P += np.log(self.mass)[:, None]
        top = P.max(axis=0)
        P -= top
        np.maximum(P, SEARCH.vanishing, out=P)
        np.exp(P, out=P)
        total = P.sum(axis=0)
        P /= total
        return P, top + np.log(total)

    def probabilities(self, targets: np.ndarray, means: np.ndarray) -> np.ndarray:
        """Return P(l | x), (L, n), for rows with targets (n, T) and means (n, K)."""
        return self.choice(self.distances(targets), means)[0]


def initial_prototypes(kinds: tuple[Kind, ...], rows: SolverRows, count: int) -> Prototypes:
    """Return the starting prototypes, one for each of at most `count` cells of the targets. The
    cell with the largest sum of squares is repeatedly split at the mean of the column that
    contributes most to this sum (Su and Dy, 2007). The order of the rows doesn't matter.
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
        if len(mass) == count or width < SEARCH.rounding:
            break
        beyond = rows.targets[:, column] > centers[widest, column] + SEARCH.rounding * width
        cell[(cell == widest) & beyond] = len(mass)
    origin = rows.weights @ rows.means
    start = Prototypes(kinds, origin, centers, mass, np.zeros((len(mass), len(origin))), 1.0, 0.0)
    alone = replace(start, centers=(rows.weights @ rows.targets)[None])
    lost = float(alone.distances(rows.targets)[0] @ rows.weights)
    return replace(start, epsilon=max(SEARCH.first_epsilon * lost, SEARCH.rounding))


def solve_path(
    start: Prototypes,
    rows: SolverRows,
    tolerances: Iterable[float],
    precision: float = SEARCH.exact,
) -> list[Prototypes]:
    """Return the solutions for all τ, in decreasing order of τ. Each solution starts from the
    previous one.
    """
    solutions = []
    for tolerance in tolerances:
        solution = solve_prototypes(start, rows, tolerance, precision)
        solutions.append(solution)
        start = replace(solution, epsilon=SEARCH.restart * solution.epsilon)
    return solutions


def n_prototypes(kinds: tuple[Kind, ...], rows: SolverRows, most: int) -> int:
    """Return a number of prototypes that is at most `most`: the smallest of 4, 8, 16 and so on for
    which doubling the number would lower E d at parity by at most the share `worth` of E d with one
    prototype.

    For targets along a line, each doubling lowers E d by about a quarter as much as the previous
    doubling, as in any quantization. If the targets vary in more directions, the gains shrink more
    slowly, and the search continues as long as they are large enough.
    """

    def lost(count: int) -> float:
        solution = solve_prototypes(initial_prototypes(kinds, rows, count), rows, 0.0)
        distances = solution.distances(rows.targets)
        nearest = solution.costs(distances, rows.means).argmin(axis=0)
        return float(distances[nearest, np.arange(len(nearest))] @ rows.weights)

    single = initial_prototypes(kinds, rows, 1)
    worth = SEARCH.worth * float(single.distances(rows.targets)[0] @ rows.weights)
    count = 4
    last = lost(count)
    while 2 * count <= most:
        doubled = lost(2 * count)
        if last - doubled <= worth:
            break
        count = 2 * count
        if last - doubled <= 4 * worth:
            break
        last = doubled
    return min(count, most)


def solve_prototypes(
    start: Prototypes, rows: SolverRows, tolerance: float, precision: float = SEARCH.exact
) -> Prototypes:
    """Minimize F from a starting point, alternating between descent and halving ε until the
    assignment is nearly deterministic.
    """
    # if assignments are certain, a prototype with fewer than K + 1 rows can't have a mean m of 0
    least = (rows.means.shape[1] + 1) / len(rows.weights)
    current = with_multipliers(replace(start, tolerance=tolerance), rows, SEARCH.rough)
    for _ in range(SEARCH.halvings):
        for _ in range(SEARCH.steps):
            stepped = with_multipliers(with_centers(current, rows, least), rows, SEARCH.rough)
            gain = current.objective - stepped.objective
            if gain > 0:
                current = stepped
            if gain <= SEARCH.least_gain * current.objective:
                break
        P = current.probabilities(rows.targets, rows.means)
        most = current.epsilon * np.log(len(P))  # of ε·KL
        if (
            P.max(axis=0) @ rows.weights > SEARCH.certain
            or most < SEARCH.negligible * current.objective
        ):
            break
        halved = with_multipliers(replace(current, epsilon=current.epsilon / 2), rows, SEARCH.rough)
        if halved.objective == np.inf:
            break
        current = halved
    solution = with_multipliers(current, rows, precision)
    return solution if solution.objective < np.inf else current


def with_centers(prototypes: Prototypes, rows: SolverRows, least: float) -> Prototypes:
    """Set q to p and each center to the mean of its rows. Drop prototypes with too small a mass."""
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
    r"""Return G and its gradient, :math:`\tau p_l \lambda_l - v_l`, (L, K)."""
    P, logs = prototypes.choice(distances, rows.means)
    ridge = prototypes.tolerance * (P @ rows.weights)[:, None] * prototypes.multipliers
    gradient = ridge - P @ (rows.weights[:, None] * (rows.means - prototypes.origin))
    return prototypes.epsilon * float(logs @ rows.weights), gradient


def with_multipliers(prototypes: Prototypes, rows: SolverRows, precision: float) -> Prototypes:
    r"""Minimize G over λ with damped Newton steps. If the minimization does not converge, set the
    objective to infinity.

    The minimization is over u with :math:`\lambda_l = \lambda_l^0 + R_l u_l`, where :math:`R_l
    R_l^\top` is the inverse of the block :math:`E[P_l (1 - P_l) m m^\top] / \varepsilon + \tau p_l
    I` of the Hessian at the start. A Hessian is as expensive as several gradients, so it is reused
    as long as each step halves the gradient.
    """
    distances = prototypes.distances(rows.targets)
    shape = prototypes.multipliers.shape
    if not shape[1]:
        return replace(prototypes, objective=-dual(prototypes, distances, rows)[0])
    scale = _inverse_root(_hessian_blocks(prototypes, distances, rows))  # (L, K, K)

    def scaled(at: Prototypes) -> tuple[float, np.ndarray]:
        value, gradient = dual(at, distances, rows)
        return value, np.einsum("lij,li->lj", scale, gradient).ravel()

    def scaled_hessian(at: Prototypes) -> np.ndarray:
        blocks = hessian(at, distances, rows).reshape(shape + shape)
        both = np.einsum("lai,lamb,mbj->limj", scale, blocks, scale, optimize=True)
        return np.asarray(both.reshape(prototypes.multipliers.size, -1))

    current = prototypes
    value, gradient = scaled(current)
    identity = np.eye(len(gradient))
    curved_at = None
    halved = False
    damping = SEARCH.damping
    for _ in range(SEARCH.iterations):
        if np.abs(gradient).max() < precision:
            break
        if not halved and curved_at is not current:
            curvature = scaled_hessian(current)
            curved_at = current
        step = np.linalg.solve(curvature + damping * identity, -gradient)
        change = np.einsum("lij,lj->li", scale, step.reshape(shape))
        moved = replace(current, multipliers=current.multipliers + change)
        lower, after = scaled(moved)
        halved = bool(np.linalg.norm(after) <= np.linalg.norm(gradient) / 2)
        gain = (value - lower) / float(damping * step @ step - gradient @ step) * 2
        if halved or gain > SEARCH.good:
            damping = max(damping / 4, SEARCH.least_damping)
        elif gain < SEARCH.poor:
            damping *= 4
        if halved or gain > SEARCH.sufficient:
            current = moved
            value = lower
            gradient = after
    converged = np.abs(gradient).max() < 10 * SEARCH.rough
    return replace(current, objective=-value if converged else np.inf)


def hessian(prototypes: Prototypes, distances: np.ndarray, rows: SolverRows) -> np.ndarray:
    r"""Return the Hessian of G, (LK, LK): with :math:`b_l = m - \tau \lambda_l`, its blocks are
    :math:`E[P_l (\delta_{lj} - P_j) b_l b_j^\top] / \varepsilon + \delta_{lj} \tau p_l I`.
    """
    P = prototypes.choice(distances, rows.means)[0]
    mass = P @ rows.weights
    count, functions = prototypes.multipliers.shape
    # rows with a certain assignment add nothing; single precision is sufficient for a search
    # direction
    some = P.max(axis=0) < 1 - SEARCH.undecided
    P = np.maximum(P[:, some], SEARCH.least_probability).astype(np.float32)
    centered = (rows.means[some] - prototypes.origin).T.astype(np.float32)  # (K, rows)
    shifts = (prototypes.tolerance * prototypes.multipliers).astype(np.float32)
    b = centered - shifts[:, :, None]  # (L, K, rows)
    b *= np.sqrt(rows.weights[some]).astype(np.float32)
    weighted = b * np.sqrt(P)[:, None, :]
    b *= P[:, None, :]
    every = b.reshape(count * functions, -1)
    matrix = -(every @ every.T).astype(np.float64)
    blocks = matrix.reshape(count, functions, count, functions)
    cell = np.arange(count)
    blocks[cell, :, cell, :] += weighted @ weighted.transpose(0, 2, 1)
    matrix /= prototypes.epsilon
    ridge = np.repeat(prototypes.tolerance * mass, functions)
    matrix[np.diag_indices(len(matrix))] += ridge
    return np.asarray(matrix)


def _hessian_blocks(prototypes: Prototypes, distances: np.ndarray, rows: SolverRows) -> np.ndarray:
    """Return an approximate Hessian of G with respect to each λ_l alone, (L, K, K)."""
    P = prototypes.choice(distances, rows.means)[0]
    means = (rows.means - prototypes.origin).T  # (K, n)
    products = means[:, None] * means * (rows.weights / prototypes.epsilon)  # (K, K, n)
    ridge = prototypes.tolerance * (P @ rows.weights)
    blocks = np.tensordot(P * (1 + SEARCH.caution - P), products, axes=(1, 2))
    return np.asarray(blocks + ridge[:, None, None] * np.eye(len(means)))


def _inverse_root(blocks: np.ndarray) -> np.ndarray:
    """Return R such that R Rᵀ is the inverse of each symmetric block, (L, K, K)."""
    values, vectors = np.linalg.eigh(blocks)
    least = SEARCH.rounding * (1 + values[:, -1:])
    return np.asarray(vectors / np.sqrt(np.maximum(values, least))[:, None, :])


def assign_rows(prototypes: Prototypes, rows: SolverRows, movable: np.ndarray) -> np.ndarray:
    r"""Assign a prototype to each distinct row, (n,): first the prototype with the smallest a; then
    rows that are `movable`, (n,), are moved if this lowers F. For every λ, F without the term in ε
    is

    .. math:: E\, a_Z(X) + \frac{1}{2 \tau} \sum_l \frac{\|r_l\|^2}{p_l},
        \qquad r_l = E[1\{Z = l\} (m(X) - \tau \lambda_l)].

    The initial assignment has the smallest E a, so moves must lower the second term. If τ = 0, the
    sum in this term equals the sum of :math:`\|v_l\|^2 / p_l`. The factor of the sum increases to
    1/2τ in stages, with a lower bound on τ, so that the cheapest moves come first. The order of the
    rows doesn't matter, except for ties.
    """
    costs = prototypes.costs(prototypes.distances(rows.targets), rows.means)
    if not movable.any():
        return np.asarray(costs.argmin(axis=0))
    moves = Moves(
        weights=rows.weights,
        means=rows.means - prototypes.origin,
        shifts=prototypes.tolerance * prototypes.multipliers,
        costs=costs,
        movable=np.flatnonzero(movable),
    )
    for stage in SEARCH.stages:
        factor = 0.5 / (stage * max(prototypes.tolerance, SEARCH.least_tolerance))
        for _ in range(SEARCH.sweeps):
            if not moves.sweep(factor):
                break
    return np.asarray(moves.choice)


@dataclass(eq=False)
class Moves:
    r"""Moves of rows that lower :math:`E\, a_Z + \mathrm{factor} \sum_l \|r_l\|^2 / p_l`.

    Attributes
    ----------
    weights
        Weights of the rows, (n,).
    means
        Means m of the rows, (n, K).
    shifts
        The shifts τλ, (L, K).
    costs
        The costs a, (L, n).
    movable
        Indices of the rows that may move.
    """

    weights: np.ndarray
    means: np.ndarray
    shifts: np.ndarray
    costs: np.ndarray
    movable: np.ndarray

    def __post_init__(self) -> None:
        self.choice = self.costs.argmin(axis=0)
        joint = (self.choice == np.arange(len(self.costs))[:, None]) * self.weights
        self.mass = joint.sum(axis=1)  # p
        self.sums = joint @ self.means - self.mass[:, None] * self.shifts  # r, (L, K)
        self.slack = SEARCH.rounding * float(np.ptp(self.costs, axis=0) @ self.weights)

    def sweep(self, factor: float) -> bool:
        """Move rows in decreasing order of gain, and return whether any row was moved."""
        gains = -self.changes(self.movable, factor).min(axis=0)
        candidates = np.flatnonzero(gains > self.slack)
        # gains that differ only by rounding are treated as equal and keep the order of the rows
        order = np.argsort(-np.round(gains[candidates] / self.slack), kind="stable")
        moved = [self.move(row, factor) for row in self.movable[candidates[order[: SEARCH.moves]]]]
        return any(moved)

    def move(self, row: int, factor: float) -> bool:
        """Move a row to the prototype that lowers the objective most. Return False if no prototype
        does.
        """
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
        """Return the change in the objective, (L, rows), if only one of the given rows is moved to
        a prototype.
        """
        weights = self.weights[some]
        means = self.means[some]
        costs = self.costs[:, some]
        squares = (self.sums**2).sum(axis=1)
        # terms of ‖r + w(m − τλ)‖²: the product with r, and the square of the added vector
        product = self.sums @ means.T - (self.sums * self.shifts).sum(axis=1)[:, None]
        linear = 2 * weights * product
        quadratic = weights**2 * cdist(self.shifts, means, "sqeuclidean")
        joined = squares[:, None] + linear + quadratic
        place = self.choice[some]
        current = place, np.arange(len(some))
        left = squares[place] - linear[current] + quadratic[current]
        now = _dependence(self.mass, squares)
        change = _dependence(self.mass[:, None] + weights, joined) - now[:, None]
        change += _dependence(self.mass[place] - weights, left) - now[place]
        change = factor * change + weights * (costs - costs[current])
        change[current] = 0.0
        return np.asarray(change)


def _dependence(mass: np.ndarray, squares: np.ndarray) -> np.ndarray:
    """Return ‖v‖²/p for prototypes with mass p and squared norm ‖v‖²; 0 for those without rows."""
    return np.where(mass > SEARCH.rounding, squares / np.maximum(mass, SEARCH.rounding), 0.0)


def _first_largest(values: np.ndarray) -> int:
    """Return the index of the first of the largest values, where values that differ only by
    rounding are treated as equal.
    """
    return int(np.flatnonzero(values >= values.max() - SEARCH.rounding * np.abs(values).max())[0])
