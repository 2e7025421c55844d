r"""Additive regressions on a table, for all folds and targets at once.

.. math:: f(x) = b + \sum_j h_j(x_j)

Each :math:`h_j` is constant on the bins of a column. It is a linear combination of a line and
splines of the rank, or of indicators of levels. All least-squares problems are solved from one
weighted Gram matrix per fold: a fit that leaves out one fold uses the sum of the other folds'
matrices.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.interpolate import BSpline
from scipy.linalg import cho_factor, cho_solve, cholesky, solve_triangular
from scipy.optimize import minimize
from scipy.sparse import block_diag, csr_array, eye_array
from scipy.special import expit, logsumexp, softmax
from sklearn.utils.extmath import randomized_svd

from frhsic._trees import MOST_BINS, bins_of_a_column

# Maximum number of indicators for a column of levels.
MOST_INDICATORS = 32
# Levels with a smaller share of the total weight have one indicator in common.
SMALLEST_LEVEL = 0.003
# A column with at most this many distinct numbers gets one indicator for each; other columns get at
# most this many splines.
MOST_NUMBER_LEVELS = 6
MOST_SPLINES = 8
# Maximum number of functions of all columns together. With more columns, each gets fewer splines;
# if there are still too many functions, their leading principal components are used, computed from
# at most this many rows.
MOST_FUNCTIONS = 400
COMPONENT_ROWS = 4_096
# Maximum number of rows used for the Gram matrices, and the number of rows encoded at once.
GRAM_ROWS = 30_000
ROWS_OF_A_BLOCK = 4_096
# Functions with a smaller variance get the coefficient 0.
SMALLEST_VARIANCE = 1e-9
# Candidate ridge penalties, if the mean weight of the rows is 1.
RIDGE_GRID = np.logspace(-4, 1, 11)
# A logistic regression has converged when its scaled gradient is below this.
LOGISTIC_PRECISION = 1e-6


@dataclass(frozen=True, eq=False)
class Bins:
    """Bins of the columns of a numeric table: intervals between edges, and a bin for missing
    values.

    Attributes
    ----------
    edges
        For each column, the smallest value of each bin except the first, in increasing order.
    """

    edges: tuple[np.ndarray, ...]

    @property
    def starts(self) -> np.ndarray:
        """The index of the first bin of each column, followed by the number of bins; (d + 1,)."""
        return np.cumsum([0, *(len(edges) + 2 for edges in self.edges)])

    def incidence(self, x: np.ndarray) -> csr_array:
        """Return indicators of the bins of each row, (n, bins): each row has one bin per column."""
        if not self.edges:
            return csr_array((len(x), 0))
        n, d = x.shape
        indices = np.empty((n, d), dtype=np.int32)
        for j, edges in enumerate(self.edges):
            indices[:, j] = edges.searchsorted(x[:, j], side="right")
        missing = np.isnan(x)
        if missing.any():
            last = np.array([len(edges) + 1 for edges in self.edges], dtype=np.int32)
            indices = np.where(missing, last, indices)
        indices += self.starts[:-1].astype(np.int32)
        pointers = np.arange(0, n * d + 1, d)
        return csr_array((np.ones(n * d), indices.ravel(), pointers), (n, int(self.starts[-1])))


def column_functions(
    column: np.ndarray,
    is_category: bool,
    splines: int,
    weights: np.ndarray,
    most_bins: int = MOST_BINS,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the bin edges of a column, and the values of its functions on the bins, (bins, q).

    A numeric column gets a linear term if it has two distinct values, one indicator per value if it
    has a few, and otherwise a linear term between the minimum and the maximum as well as splines of
    the rank. A categorical column gets one indicator for each frequent level and one for all other
    levels. Missing values get an indicator, and missing numbers are replaced with the median.
    """
    missing = np.isnan(column)
    values, place = np.unique(column[~missing], return_inverse=True)
    mass = np.bincount(place, weights[~missing])
    if is_category:
        edges, functions = _level_functions(values, mass / weights.sum())
    elif len(values) <= 2 or len(values) > MOST_NUMBER_LEVELS:
        edges, functions = _number_functions(values, mass / mass.sum(), splines, most_bins)
    else:
        edges = values[1:]
        functions = np.vstack([np.eye(len(values)), np.zeros(len(values))])
    if missing.any() and not missing.all():
        indicator = np.zeros((len(functions), 1))
        indicator[-1] = 1.0
        functions = np.hstack([functions, indicator])
    return edges, functions


def _level_functions(levels: np.ndarray, mass: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    order = np.argsort(-mass, kind="stable")
    frequent = np.zeros(len(levels), dtype=bool)
    frequent[order[: MOST_INDICATORS - 1]] = True
    frequent &= mass >= SMALLEST_LEVEL
    # rare neighboring levels share a bin
    begins = np.r_[True, frequent[1:] | frequent[:-1]][: len(levels)]
    starts = levels[begins]
    own = frequent[begins]
    indicators = np.zeros((len(starts) + 1, int(own.sum()) + 1))
    indicators[:-1][own, np.arange(own.sum())] = 1.0
    indicators[:-1][~own, -1] = 1.0
    if not len(starts):
        return starts, np.zeros((2, 0))
    # a value below the first edge belongs to the first bin
    return starts[1:], indicators[:, indicators.any(axis=0)]


def _number_functions(
    values: np.ndarray, mass: np.ndarray, splines: int, most_bins: int
) -> tuple[np.ndarray, np.ndarray]:
    if len(values) < 2:
        return values[1:], np.zeros((len(values[1:]) + 2, 0))
    rank = np.cumsum(mass) - mass / 2
    place = np.arange(len(values))
    if len(values) > most_bins:
        groups = np.minimum((rank * most_bins + 1e-9).astype(np.int64), most_bins - 1)
        place = np.unique(groups, return_inverse=True)[1]
    begins = np.r_[True, place[1:] != place[:-1]]
    share = np.bincount(place, mass)
    means = np.bincount(place, mass * values) / share
    columns = [(means - values[0]) / (values[-1] - values[0])]
    middles = np.cumsum(share) - share / 2
    if len(values) > 2 and splines > 1:
        columns.extend(spline_functions(middles, splines).T)
    functions = np.column_stack(columns)
    median = functions[np.searchsorted(np.cumsum(share), 0.5)]
    return values[begins][1:], np.vstack([functions, median])


def spline_functions(rank: np.ndarray, count: int) -> np.ndarray:
    """Return the values of `count` B-splines at ranks (n,), with equally spaced knots from 0 to 1;
    the splines are cubic if there are at least four.
    """
    degree = min(3, count - 1)
    inner = np.linspace(0, 1, count - degree + 1)
    knots = np.r_[np.zeros(degree), inner, np.ones(degree)]
    return np.asarray(BSpline.design_matrix(np.clip(rank, 0, 1), knots, degree).toarray())


@dataclass(frozen=True, eq=False)
class Basis:
    """The functions of all columns.

    Attributes
    ----------
    bins
        Bins of the columns.
    functions
        Functions of single columns, evaluated on the bins, (bins, p).
    components
        The combinations of these functions that are used, (p, q): either the functions themselves
        or their principal components.
    """

    bins: Bins
    functions: csr_array
    components: Any

    @classmethod
    def fit(cls, x: np.ndarray, categorical: Sequence[int], weights: np.ndarray) -> Basis:
        """Learn the bins and functions from the columns of a numeric table, (n, d)."""
        d = x.shape[1]
        if not d:
            return cls(Bins(()), csr_array((0, 0)), eye_array(0))
        splines = int(np.clip(MOST_FUNCTIONS // d - 1, 0, MOST_SPLINES))
        most_bins = bins_of_a_column(d)
        parts = [
            column_functions(x[:, j], j in categorical, splines, weights, most_bins)
            for j in range(d)
        ]
        bins = Bins(tuple(edges for edges, _ in parts))
        functions = csr_array(block_diag([part for _, part in parts], format="csr"))
        if functions.shape[1] <= MOST_FUNCTIONS:
            return cls(bins, functions, eye_array(functions.shape[1], format="csr"))
        some = slice(None, None, -(-len(x) // COMPONENT_ROWS))
        values = (bins.incidence(x[some]) @ functions).toarray()
        return cls(bins, functions, leading_components(values, weights[some]))

    @property
    def count(self) -> int:
        """Number of functions that are used."""
        return int(self.components.shape[1])

    def values(self, incidence: csr_array) -> np.ndarray:
        """Return the values of the functions, (n, q), for rows with the given bins."""
        return np.asarray((incidence @ self.functions).toarray() @ self.components)

    def on_bins(self, coefficients: np.ndarray) -> np.ndarray:
        """Return the values of combinations (q, k) of the functions on each bin, (bins, k)."""
        return np.asarray(self.functions @ (self.components @ coefficients))

    def sums(self, sums: np.ndarray) -> np.ndarray:
        """Return the sums of the functions over rows, (q, k), given the sums for each bin, (bins,
        k).
        """
        return np.asarray(self.components.T @ (self.functions.T @ sums))


def leading_components(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the leading principal components of the functions' values, (n, p), as combinations of
    the functions, (p, q). They are computed by a randomized singular value decomposition.

    Functions are divided by the square root of their standard deviation, as in
    :meth:`Grams.without`. Each component is multiplied by its standard deviation σ. The product has
    the standard deviation σ², so dividing it by the square root of σ² returns the original
    component. The ridge therefore shrinks components and functions in the same way.
    """
    shares = (weights / weights.sum())[:, None]
    centered = values - (shares * values).sum(axis=0)
    variance = (shares * centered**2).sum(axis=0)
    varies = variance > SMALLEST_VARIANCE
    factors = np.zeros(len(variance))
    factors[varies] = variance[varies] ** -0.25
    _, sizes, axes = randomized_svd(
        np.sqrt(shares) * centered * factors, MOST_FUNCTIONS, n_iter=2, random_state=0
    )
    return np.asarray(factors[:, None] * axes.T * sizes)


@dataclass(frozen=True, eq=False)
class Design:
    """The rows of a fit: functions of the columns, and the bins, folds and weights of the rows."""

    basis: Basis
    incidence: csr_array
    fold: np.ndarray
    weights: np.ndarray

    @classmethod
    def fit(
        cls, x: np.ndarray, categorical: Sequence[int], fold: np.ndarray, weights: np.ndarray
    ) -> Design:
        """Learn the functions from a numeric table, (n, d)."""
        basis = Basis.fit(x, categorical, weights)
        return cls(basis, basis.bins.incidence(x), fold, weights)

    def at(self, rows: np.ndarray) -> Design:
        """Return a design with only the given rows."""
        return Design(self.basis, self.incidence[rows], self.fold[rows], self.weights[rows])

    @property
    def folds(self) -> int:
        """Number of folds."""
        return int(self.fold.max()) + 1

    def means(self, targets: np.ndarray) -> np.ndarray:
        """Return the means of the functions and the targets, (q + t,)."""
        mass = self.weights / self.weights.sum()
        functions = self.basis.sums(self.incidence.T @ mass)
        return np.concatenate([functions, mass @ targets])


@dataclass(frozen=True, eq=False)
class AdditivePart:
    """The contribution of each bin, (bins, folds, outputs), and the constants, (folds, outputs)."""

    table: np.ndarray
    constants: np.ndarray

    @classmethod
    def of(cls, basis: Basis, coefficients: np.ndarray, constants: np.ndarray) -> AdditivePart:
        """Return the additive part with these coefficients of the functions, (folds, q,
        outputs).
        """
        folds, q, outputs = coefficients.shape
        table = basis.on_bins(coefficients.transpose(1, 0, 2).reshape(q, folds * outputs))
        return cls(table.reshape(-1, folds, outputs), constants)

    def out_of_fold(self, design: Design) -> np.ndarray:
        """Return the margins of each row, (n, outputs), from the model fitted without the row's
        fold.
        """
        margins = np.empty((len(design.fold), self.table.shape[2]))
        for j in range(design.folds):
            own = np.flatnonzero(design.fold == j)
            margins[own] = design.incidence[own] @ self.table[:, j] + self.constants[j]
        return margins


@dataclass(frozen=True, eq=False)
class Grams:
    """Weighted Gram matrices of [1, functions, targets] for each fold, computed after the means
    over all rows are subtracted.

    Attributes
    ----------
    sums
        The Gram matrices, (folds, 1 + q + t, 1 + q + t).
    means
        The means that were subtracted from the functions and targets, (q + t,).
    """

    sums: np.ndarray
    means: np.ndarray

    @classmethod
    def of(cls, design: Design, targets: np.ndarray) -> Grams:
        """Return the Gram matrices of a design and targets (n, t)."""
        return cls.about(design, targets, design.means(targets), design.folds)

    @classmethod
    def about(cls, design: Design, targets: np.ndarray, means: np.ndarray, folds: int) -> Grams:
        """Return the Gram matrices after subtracting the given means, so that the matrices for
        parts of the rows can be added. The rows of a fold are summed in blocks.
        """
        basis = design.basis
        sums = np.zeros((folds, 1 + len(means), 1 + len(means)))
        for j in range(folds):
            rows = np.flatnonzero(design.fold == j)
            for start in range(0, len(rows), ROWS_OF_A_BLOCK):
                some = rows[start : start + ROWS_OF_A_BLOCK]
                values = basis.values(design.incidence[some])
                block = np.column_stack([values, targets[some]]) - means
                block = np.column_stack([np.ones(len(some)), block])
                block *= np.sqrt(design.weights[some])[:, None]
                sums[j] += block.T @ block
        return cls(sums, means)

    def __add__(self, other: Grams) -> Grams:
        return Grams(self.sums + other.sums, self.means)

    @property
    def training_mass(self) -> np.ndarray:
        """The total weight of the rows outside each fold."""
        mass = self.sums[:, 0, 0]
        return np.asarray(mass.sum() - mass)

    def along(self, directions: np.ndarray) -> Grams:
        """Return the Gram matrices for linear combinations (t, r) of the targets."""
        q = len(self.means) - len(directions)
        turn = block_diag([eye_array(1 + q), directions], format="csr")
        sums = np.stack([turn.T @ (turn.T @ own).T for own in self.sums])
        return Grams(sums, self.means @ turn[1:, 1:])

    def without(self, fold: int, q: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return, for the rows outside a fold, the means, (q + t,), the scaling factors of the q
        functions, and the covariance after scaling.

        Functions are divided by the square root of their standard deviation, a compromise between
        no scaling and full standardization: indicators of rare levels are shrunk more than other
        functions, but less than without scaling. Nearly constant functions get the factor 0, so
        their coefficients are 0.
        """
        total = self.sums.sum(axis=0) - self.sums[fold]
        means = total[0, 1:] / total[0, 0]
        covariance = total[1:, 1:] / total[0, 0] - np.outer(means, means)
        variance = np.diag(covariance)[:q]
        factors = np.zeros(q)
        varies = variance > SMALLEST_VARIANCE
        factors[varies] = variance[varies] ** -0.25
        every = np.append(factors, np.ones(len(means) - q))
        return means, factors, covariance * np.outer(every, every)


@dataclass(frozen=True, eq=False)
class RidgePath:
    """Coefficients, (folds, ridges, q, t), and intercepts, (folds, ridges, t), for each fold, ridge
    and target. The coefficients apply to the functions after :attr:`Grams.means` are subtracted.
    """

    grams: Grams
    coefficients: np.ndarray
    intercepts: np.ndarray

    @classmethod
    def fit(cls, grams: Grams, outputs: int) -> RidgePath:
        """Solve the regressions for the targets, which are the last `outputs` columns of the Gram
        matrices.
        """
        folds = len(grams.sums)
        q = len(grams.means) - outputs
        coefficients = np.zeros((folds, len(RIDGE_GRID), q, outputs))
        intercepts = np.zeros((folds, len(RIDGE_GRID), outputs))
        for j in range(folds):
            means, factors, covariance = grams.without(j, q)
            for i, ridge in enumerate(RIDGE_GRID):
                if q:
                    root = cho_factor(covariance[:q, :q] + ridge * np.eye(q), lower=True)
                    coefficients[j, i] = factors[:, None] * cho_solve(root, covariance[:q, q:])
                intercepts[j, i] = means[q:] - means[:q] @ coefficients[j, i]
        return cls(grams, coefficients, intercepts)

    def along(self, directions: np.ndarray) -> RidgePath:
        """Return the path for linear combinations (t, r) of the targets."""
        grams = self.grams.along(directions)
        return RidgePath(grams, self.coefficients @ directions, self.intercepts @ directions)

    @cached_property
    def errors(self) -> np.ndarray:
        """The mean squared error for each ridge and target on the held-out folds, (ridges, t)."""
        sums = self.grams.sums
        outputs = self.intercepts.shape[2]
        errors = np.zeros(self.intercepts.shape[1:])
        for own, slopes, intercepts in zip(sums, self.coefficients, self.intercepts):
            for i in range(len(errors)):
                # the residual is [−b, −coefficients, 1] times [1, functions, target]
                along = np.vstack([-intercepts[i : i + 1], -slopes[i], np.eye(outputs)])
                errors[i] += (along * (own @ along)).sum(axis=0)
        return np.asarray(errors / sums[:, 0, 0].sum())

    def best(self, basis: Basis) -> AdditivePart:
        """Return the additive part with the ridge that has the smallest error for each target."""
        ridges = self.errors.argmin(axis=0)
        outputs = np.arange(len(ridges))
        own = self.coefficients[:, ridges, :, outputs].transpose(1, 2, 0)  # (folds, q, outputs)
        means = self.grams.means
        constants = self.intercepts[:, ridges, outputs] + means[basis.count :]
        constants -= np.einsum("jqk,q->jk", own, means[: basis.count])
        return AdditivePart.of(basis, own, constants)


def margin_probabilities(margins: np.ndarray) -> np.ndarray:
    """Return the probability of each class from margins (…, C), or the probability of the second of
    two classes from log-odds (…, 1).
    """
    return np.asarray(expit(margins) if margins.shape[-1] == 1 else softmax(margins, axis=-1))


class LogisticSums(NamedTuple):
    """Sums over the rows outside each fold: of the losses, (folds,), of the residuals, (folds,
    outputs), and of the products of residuals and functions, (folds, q, outputs).
    """

    losses: np.ndarray
    residuals: np.ndarray
    moments: np.ndarray


def logistic_sums(
    design: Design, labels: np.ndarray, coefficients: np.ndarray, intercepts: np.ndarray
) -> LogisticSums:
    """Return the sums that a step of a logistic regression needs, over the given rows and their
    class codes, at coefficients (folds, q, outputs) and intercepts (folds, outputs).
    """
    folds, q, outputs = coefficients.shape
    ones = np.eye(max(outputs, 2))[labels][:, -outputs:]
    trains = (design.fold[:, None] != np.arange(folds)) * design.weights[:, None]
    table = design.basis.on_bins(coefficients.transpose(1, 0, 2).reshape(q, -1))
    margins = (design.incidence @ table).reshape(-1, folds, outputs) + intercepts
    if outputs == 1:
        losses = np.logaddexp(0, (1 - 2 * ones[:, None, :]) * margins)[..., 0]
    else:
        losses = logsumexp(margins, axis=2) - margins[np.arange(len(labels)), :, labels]
    residuals = trains[..., None] * (margin_probabilities(margins) - ones[:, None, :])
    sums = design.incidence.T @ residuals.reshape(len(labels), -1)
    moments = design.basis.sums(sums).reshape(q, folds, outputs).transpose(1, 0, 2)
    return LogisticSums((trains * losses).sum(axis=0), residuals.sum(axis=0), moments)


def fit_logistic(
    grams: Grams, outputs: int, ridge: float, sums: Callable[[np.ndarray, np.ndarray], LogisticSums]
) -> tuple[np.ndarray, np.ndarray]:
    """Return the coefficients, (folds, q, outputs), and intercepts, (folds, outputs), of logistic
    regressions that leave out each fold in turn, with a ridge penalty on the scaled functions.

    There is one output for two classes, and one output per class for more. The targets of the Gram
    matrices are the class indicators, and `sums` computes :func:`logistic_sums` over all rows. All
    folds are solved together, so that each step makes a single pass over the rows. L-BFGS is
    preconditioned with a quarter of the Gram matrix plus the ridge, which is an upper bound on the
    curvature.
    """
    folds = len(grams.sums)
    q = len(grams.means) - outputs
    mass = grams.training_mass
    start = np.zeros((folds, 1 + q, outputs))
    centers = np.zeros((folds, q, 1))
    factors = np.zeros((folds, q, 1))
    roots = np.zeros((folds, q, q))  # of the inverse metric
    for j in range(folds):
        means, factors[j, :, 0], covariance = grams.without(j, q)
        centers[j, :, 0] = grams.means[:q] + means[:q]
        metric = covariance[:q, :q] / 4 + ridge * np.eye(q)
        roots[j] = solve_triangular(cholesky(metric, lower=True), np.eye(q), lower=True).T
        rates = np.clip(grams.means[q:] + means[q:], 1e-6, 1 - 1e-6)
        odds = np.log(rates) if outputs > 1 else np.log(rates / (1 - rates))
        start[j, 0] = odds / 2

    def original(u: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the coefficients of the scaled functions, those of the original functions, and the
        intercepts.
        """
        u = u.reshape(start.shape)
        standard = roots @ u[:, 1:]
        plain = factors * standard
        return standard, plain, 2 * u[:, 0] - (centers * plain).sum(axis=1)

    def objective(u: np.ndarray) -> tuple[float, np.ndarray]:
        standard, plain, intercepts = original(u)
        step = sums(plain, intercepts)
        value = (step.losses / mass).sum() + ridge / 2 * (standard**2).sum()
        whole = step.residuals[:, None] / mass[:, None, None]
        moments = step.moments / mass[:, None, None]
        slopes = factors * (moments - centers * whole) + ridge * standard
        gradient = np.concatenate([2 * whole, roots.transpose(0, 2, 1) @ slopes], axis=1)
        return float(value), gradient.ravel()

    solved: Any = minimize(
        objective,
        start.ravel(),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": 200, "ftol": 0.0, "gtol": LOGISTIC_PRECISION, "maxcor": 10},
    )
    _, coefficients, intercepts = original(solved.x)
    return coefficients, intercepts
