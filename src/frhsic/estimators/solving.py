r"""Coefficients of the closed form, for every trade-off between loss and gap.

Over all functions f of x, the least loss at a given gap is reached by

.. math:: \partial \ell(f(x), \eta(x)) = -m_c(x), \qquad m_c(x) = \sum_k c_k m_k(x),

with :math:`\eta(x) = E[Y | x]` and :math:`m_k(x) = E[\varphi_k(S) | x]` (docs/theory.md). Here the
few numbers c are found on rows whose :math:`\eta` and :math:`m` come from models that have not seen
them:

.. math:: \min_{a, b, c} \; \frac1n \sum_i \ell(f(x_i), y_i) + \mu \, \Bigl\| \bigl( N_j(f) / t_j
    \bigr)_j \Bigr\|,
    \qquad N_j = \sum_v p_v \bigl( \sqrt{g_j(v)^2 + \varepsilon^2} - \varepsilon \bigr),

for a grid of :math:`\mu`; what is minimised has the square of the norm. The curve
:math:`g_j(v) = \sum_k \hat E[f \varphi_k(S)] \varphi_k(v)` on the nodes v of an attribute is the
gap, projected on its functions, and a and b recalibrate :math:`\eta`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from scipy.special import expit, log_softmax, logit, softmax

from frhsic.estimators.conditional import SensitiveBasis
from frhsic.parity.limits import Limit

Family = Literal[
    "binary",
    "classes",
    "numbers",
    "rank",
    "rank of numbers",
    "decision",
    "clipped",
    "clipped decision",
]

# Base rate below which decisions are made for balanced accuracy, with the base rate as threshold.
RARE = 0.2

# Shares of the unconstrained gap that the trade-offs aim at.
SHARES = np.array([1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.15, 0.1, 0.05, 0.02, 0.005])

# Least of these shares that a mixture with a constant aims at; closer to it hardly a prediction is
# left.
LEAST_MIXED = 0.1

# μ of a first solution with almost no gap, in units of the loss; what it costs sets the scale of
# the others.
STRICTEST = 100.0

# Rows, drawn at random, that the coefficients are solved on; a few dozen numbers need no more.
MOST_ROWS = 50_000

# Decrease of the objective that ends the search for its least value.
TOLERANCE = 1e-6

# First second derivatives of the objective, inverted, in the scaled parameters.
FIRST_INVERSE = 10.0

# ε, as a share of the gap that a trade-off aims at.
SMOOTHNESS = 0.1

# The norm over several curves is the p-norm with this p, close to their largest.
LARGEST = 4.0

DECILES = np.arange(1, 10) / 10
# Places, on the ranks of η, between which the coefficients of the rank family change linearly.
KNOTS = np.linspace(0.0, 1.0, 4)

# Width over which a decision is softened while solving, in standard deviations of the score or of
# its log-odds.
WIDTH = 0.1

# Cells of the grid of a soft rank: for each such width, and on each side of the mean score.
CELLS, MOST_CELLS = 8, 2_500

CLIP = 1e-6


@dataclass(frozen=True, eq=False)
class Sample:
    """Checked rows of a call of fit. `y` holds numbers, or codes of the classes; `labels` is y as
    it was given.
    """

    X: Any
    y: np.ndarray
    labels: np.ndarray
    s: np.ndarray
    names: tuple[str, ...]
    weights: np.ndarray | None
    groups: np.ndarray | None
    fold: np.ndarray
    seed: int
    numeric: bool

    @property
    def mass(self) -> np.ndarray:
        """The weight of each row, 1 where none were given."""
        return np.ones(len(self.y)) if self.weights is None else self.weights

    @property
    def base_rate(self) -> float | None:
        """The mean of y; None for more than two classes."""
        if not self.numeric and self.y.max() > 1:
            return None
        return float(np.average(self.y, weights=self.mass))

    def at(self, rows: np.ndarray) -> tuple[np.ndarray | None, np.ndarray | None]:
        """Return weights and groups of some rows."""
        weights, groups = (
            None if values is None else values[rows] for values in (self.weights, self.groups)
        )
        return weights, groups


@dataclass(frozen=True, eq=False)
class Curve:
    """The gap along one attribute among the rows of one condition, from a function of x or of S for
    each row, (n, K).

    `functions` are weighted, centred rows. The curve of scores f is ``basis.values @ sums`` with
    their sums ``functions.T @ f``.
    """

    basis: SensitiveBasis
    functions: np.ndarray
    scale: float = 1.0

    @classmethod
    def of(
        cls, basis: SensitiveBasis, functions: np.ndarray, weights: np.ndarray, scale: float = 1.0
    ) -> Curve:
        """Return the curve of rows with weights, which are 0 where a row does not count."""
        shares = (weights / weights.sum())[:, None]
        centred = functions - (shares * functions).sum(axis=0)
        return cls(basis, shares * centred, scale)

    def gap(self, outputs: np.ndarray) -> float:
        """Return N without smoothing, the mean over the columns of outputs (n, c)."""
        return self.norm(self.functions.T @ outputs, 0.0)[0]

    def norm(self, sums: np.ndarray, smoothness: float) -> tuple[float, np.ndarray]:
        """Return N of sums (K, c), the mean over their columns, and its gradient."""
        values = self.basis.values
        curve = values @ sums
        length = np.sqrt(curve**2 + smoothness**2)
        weights = self.basis.mass[:, None] / sums.shape[1]
        gradient = values.T @ (weights * curve / np.maximum(length, 1e-300))
        return float((weights * (length - smoothness)).sum()), gradient


class Evaluation(NamedTuple):
    """Loss of some parameters, sums (K, c) of the outputs of rows along functions (n, K), and the
    gradient of loss + ⟨weights, sums⟩.
    """

    loss: float
    sums: np.ndarray
    gradient: Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows to solve on: η as `base`, (n,) or (n, C); m as `means`, (n, K); y (n,) or (n, C);
    weights that sum to 1.

    `width` is that over which decisions are softened, for each row; `ridge` is the weight of the
    square of each coefficient along m.
    """

    family: Family
    base: np.ndarray
    means: np.ndarray
    y: np.ndarray
    weights: np.ndarray
    curves: Sequence[Curve] = ()
    width: np.ndarray | None = None
    ridge: np.ndarray | float = 0.0

    def evaluate(self, parameters: np.ndarray, functions: np.ndarray) -> Evaluation:
        """Return loss, sums along functions of the rows (n, K), and gradient at some parameters."""
        return _FAMILIES[self.family](self, parameters, functions)

    def loss(self, parameters: np.ndarray) -> float:
        """Return the loss of some parameters."""
        return self.evaluate(parameters, np.zeros((len(self.y), 1))).loss

    def at(self, rows: np.ndarray) -> Rows:
        """Return some of the rows, without curves."""
        width = None if self.width is None else self.width[rows]
        return replace(
            self,
            base=self.base[rows],
            means=self.means[rows],
            y=self.y[rows],
            weights=self.weights[rows],
            curves=(),
            width=width,
        )

    @property
    def outputs(self) -> int:
        """Number of outputs of a row that curves see."""
        return 1 if self.base.ndim == 1 else self.base.shape[1]

    def constant(self) -> np.ndarray:
        """Return the parameters of the best constant: its mean, frequencies, or one decision."""
        start, _, own = self.parameters()
        constant = np.zeros_like(start)
        mean = np.average(self.y, axis=0, weights=self.weights)
        if self.family == "decision":
            constant[0] = -1.0 if mean > 0.5 else 1.0
        elif self.family == "classes":
            constant[1:own] = link(self.family, mean)
        else:
            constant[0] = link(self.family, mean)
        return constant

    def parameters(self) -> tuple[np.ndarray, np.ndarray, int]:
        """Return those of η itself, a scale for each, and how many of them recalibrate η before
        those along m follow.

        The scales give all steps similar effects.
        """
        classes = self.outputs
        first, scales = [0.0, 1.0], [1.0, 1 / max(float(self.base.std()), 1e-3)]
        if self.family == "decision":
            first, scales = [0.0], [1.0]
        elif self.family == "classes":
            first, scales = [1.0, *[0.0] * classes], [1.0] * (1 + classes)
        along = np.repeat(1 / np.maximum(self.means.std(axis=0), 1e-3), classes)
        return np.append(first, np.zeros(len(along))), np.append(scales, along), len(first)

    def softened(self, parameters: np.ndarray) -> Rows:
        """Return the rows with the width over which indicators of a rank are softened."""
        if not self.family.startswith("rank"):
            return self
        score = outputs("numbers", parameters, self.base, self.means)
        return replace(self, width=np.array(max(WIDTH * float(score.std()), CLIP)))


@dataclass(frozen=True, eq=False)
class Block:
    """One attribute among the rows of one condition: "all", "positive" or "negative"."""

    attribute: int
    condition: str
    basis: SensitiveBasis
    rate: float

    @classmethod
    def fit(cls, sample: Sample, attribute: int, condition: str) -> Self:
        """Learn the functions of the attribute, and the share of the rows that the condition
        keeps.
        """
        among, s = kept_by(condition, sample.y), sample.s[:, attribute]
        rows = np.flatnonzero(among & ~np.isnan(s))
        if len(np.unique(s[rows])) < 2:
            raise ValueError(
                f"{sample.names[attribute]!r} does not vary among the {condition} rows."
            )
        basis = SensitiveBasis.fit(s[rows], sample.at(rows)[0])
        return cls(attribute, condition, basis, float(np.average(among, weights=sample.weights)))

    def rows(self, s: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return which rows the condition keeps that have the attribute, as booleans."""
        return np.asarray(kept_by(self.condition, y) & ~np.isnan(s[:, self.attribute]))

    def curve(self, s: np.ndarray, y: np.ndarray, weights: np.ndarray, scale: float = 1.0) -> Curve:
        """Return the curve of the rows that count."""
        return Curve.of(self.basis, self.functions(s), weights * self.rows(s, y), scale)

    def functions(self, s: np.ndarray) -> np.ndarray:
        """Return the functions of the attribute, zero where it is missing."""
        column = s[:, self.attribute]
        return np.where(np.isnan(column)[:, None], 0.0, self.basis(np.nan_to_num(column)))

    def targets(self, s: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return what m is the conditional mean of: φ(s) among the rows of the condition, over
        their share.
        """
        return np.asarray(self.functions(s) * (kept_by(self.condition, y) / self.rate)[:, None])

    def known(self, s: np.ndarray, eta: np.ndarray) -> np.ndarray:
        """Return m where S is known: φ(s), times the chance of the condition over its rate."""
        functions = self.functions(s)
        if self.condition == "all":
            return functions
        chance = eta if self.condition == "positive" else 1 - eta
        return np.asarray(functions * chance[:, None] / self.rate)


def kept_by(condition: str, y: np.ndarray) -> np.ndarray:
    """Return which rows a condition keeps, as booleans."""
    return np.asarray(
        {"all": np.full(len(y), True), "positive": y == 1, "negative": y == 0}[condition]
    )


@dataclass(frozen=True, eq=False)
class Solution:
    """What a fitted predictor consists of beside its models.

    `parameters` has the coefficients of each trade-off and fold, (G, J, P); `ranks` the quantiles
    of η between which a rank is interpolated; numbers are centred and scaled.
    """

    family: Family
    blocks: tuple[Block, ...]
    parameters: np.ndarray
    ranks: np.ndarray
    threshold: float
    center: float = 0.0
    scale: float = 1.0

    @classmethod
    def fit(
        cls,
        family: Family,
        sample: Sample,
        blocks: tuple[Block, ...],
        eta: np.ndarray,
        means: np.ndarray,
        limits: Mapping[str, tuple[Limit, ...]],
    ) -> Self:
        """Find the coefficients of every trade-off without each fold; limits go by attribute."""
        weights, center, scale, threshold, cost = sample.mass, 0.0, 1.0, 0.5, sample.mass
        if sample.numeric:
            center = float(np.average(sample.y, weights=weights))
            scale = float(np.sqrt(np.average((sample.y - center) ** 2, weights=weights))) or 1.0
        if family.endswith("decision"):
            rate = float(np.average(sample.y, weights=weights))
            if min(rate, 1 - rate) < RARE:
                threshold, cost = (
                    rate,
                    weights * np.where(sample.y == 1, 0.5 / rate, 0.5 / (1 - rate)),
                )
        ranks = (
            np.quantile((eta - center) / scale, np.linspace(0, 1, 101))
            if eta.ndim == 1
            else np.zeros(0)
        )
        solution = cls(family, blocks, np.zeros(0), ranks, threshold, center, scale)
        base, columns = solution.inputs(eta, means)
        y = (
            (sample.y - center) / scale
            if family != "classes"
            else np.eye(eta.shape[1])[sample.y.astype(int)]
        )
        scales = solution._gap_units(sample, eta, limits)
        rng = np.random.default_rng(sample.seed)
        most, iterations = (MOST_ROWS // 3, 30) if family.startswith("rank") else (MOST_ROWS, 60)
        clips = family.startswith("clipped")

        def curves_of(rows: np.ndarray) -> list[Curve]:
            return [
                block.curve(sample.s[rows], sample.y[rows], weights[rows], scales[block.attribute])
                for block in blocks
                if np.isfinite(scales[block.attribute])
            ]

        whole = Rows(
            family,
            base,
            columns,
            y,
            cost / cost.sum(),
            width=decision_width(eta) if family == "decision" else None,
            ridge=0.0 if clips else solution._ridge(sample, eta, means),
        )
        parameters = []
        for j in range(sample.fold.max() + 1):
            rows = np.flatnonzero(sample.fold != j)
            if len(rows) > most:
                rows = np.sort(rng.choice(rows, most, replace=False))
            task = whole.at(rows)
            task = replace(task, weights=task.weights / task.weights.sum(), curves=curves_of(rows))
            parameters.append(solve(task, iterations))
        solution = replace(solution, parameters=np.stack(parameters, axis=1))
        if clips or family.startswith("rank"):
            return solution
        whole = replace(whole, curves=curves_of(np.arange(len(y))))
        return solution.above_constant(whole, sample.fold)

    def above_constant(self, rows: Rows, fold: np.ndarray) -> Self:
        """Return the trade-offs without those that lose to a constant at the same gap, out of fold.

        A mixture of a predictor with a constant has as large a share of its gap, and at least this
        share of what it gains over the constant. So after the trade-off that gains most for its
        gap, one that gains less for its own is replaced by such a mixture, which has as large a gap
        or the one that was aimed at. Decisions cannot be mixed: those that are wrong more often
        than one and the same for everybody become that one.
        """
        constant = rows.constant()
        parameters = self.parameters.copy()
        count = len(parameters)
        gains = np.zeros(count)
        predictions = [np.empty((len(fold), rows.outputs)) for _ in range(count)]
        for j in range(parameters.shape[1]):
            held_out = np.flatnonzero(fold == j)
            part = rows.at(held_out)
            gains += part.loss(constant)
            for i in range(count):
                own = parameters[i, j]
                gains[i] -= part.loss(own)
                scores = outputs(self.family, own, part.base, part.means)
                predictions[i][held_out] = np.reshape(scores, (len(held_out), -1))
        if self.decides:
            parameters[1:][gains[1:] < 0] = constant
            return replace(self, parameters=parameters)
        gaps = np.array([max(c.gap(f) / c.scale for c in rows.curves) for f in predictions])
        gaps = np.maximum(gaps, 1e-12)
        best = int(np.argmax(gains / gaps))
        for i in range(best + 1, count):
            aim = min(gaps[i], max(SHARES[i], LEAST_MIXED) * gaps[0])
            share = min(aim / gaps[best], 1.0) if gains[best] > 0 else 0.0
            parameters[i] = constant + share * (parameters[best] - constant)
        return replace(self, parameters=parameters)

    def _ridge(self, sample: Sample, eta: np.ndarray, means: np.ndarray) -> np.ndarray:
        r"""Return the weight of the square of each coefficient while solving,
        :math:`r_k K J / (J - 1)^2 n` in the unit of the loss.

        Rows show the errors of :math:`\sum_k c_k m_k` for the models of J - 1 folds, and the
        coefficients serve another model. With p degrees of freedom its errors have the variance
        :math:`|c|^2 r p J / (J - 1) n`, where r is the variance of :math:`\varphi_k(S)` about
        :math:`m_k`. Rows show p (J - 1) directions of them, so for K functions about a share
        K / p (J - 1) is not known.
        """
        mass = sample.mass / sample.mass.sum()
        targets = np.column_stack([block.targets(sample.s, sample.y) for block in self.blocks])
        folds = sample.fold.max() + 1
        count = means.shape[1]
        variance = mass @ (targets - means) ** 2
        unknown = variance * count * folds / (folds - 1) ** 2 * float(mass @ mass)
        if self.family in ("binary", "classes", "rank"):  # half of the second derivative
            unknown *= float(np.mean(mass @ (eta * (1 - eta)))) / 2
        shares = mass @ self.inputs(eta, np.ones_like(means))[1] ** 2
        classes = eta.shape[1] if eta.ndim == 2 else 1
        return np.repeat(shares * np.tile(unknown, len(shares) // count), classes)

    def _gap_units(
        self, sample: Sample, eta: np.ndarray, limits: Mapping[str, tuple[Limit, ...]]
    ) -> list[float]:
        """Return what the gap along each attribute is divided by while solving: its limit, or its
        size, over the least of these.
        """
        scores = np.reshape((eta - self.center) / self.scale, (len(eta), -1))
        if self.decides:
            scores = (scores > self.threshold).astype(np.float64)
        gaps = np.full(len(sample.names), 1e-6)
        for block in self.blocks:
            gap = block.curve(sample.s, sample.y, sample.mass).gap(scores)
            gaps[block.attribute] = max(gaps[block.attribute], gap)
        limited = any(limits.values())
        units = []
        for name, gap in zip(sample.names, gaps):
            units_of_limits = [self._unit(one, gap, sample) for one in limits[name]]
            unlimited = np.inf if limited else gap
            units.append(min(units_of_limits, default=unlimited))
        return [unit / min(units) for unit in units]

    def _unit(self, limit: Limit, gap: float, sample: Sample) -> float:
        if limit.base == "gap":
            return gap * max(limit.value, 1e-3)
        bound = limit.bound(gap, sample.base_rate)
        return bound / self.scale if bound else gap

    @property
    def decides(self) -> bool:
        """Whether scores are distances to the threshold of a decision."""
        return self.family.endswith("decision")

    def at(self, position: float) -> np.ndarray:
        """Return the coefficients of each fold, (J, P), at a place between two trade-offs."""
        below = min(int(position), len(self.parameters) - 2)
        low, high = self.parameters[below : below + 2]
        return np.asarray(low + (position - below) * (high - low))

    def inputs(self, eta: np.ndarray, means: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return base and columns as the family takes them."""
        eta = (eta - self.center) / self.scale
        if self.family.startswith("clipped"):
            shift = self.threshold if self.decides else 0.0
            return eta - shift, (means - self.center) / self.scale - shift
        if self.family.startswith("rank"):
            rank = np.interp(eta, self.ranks, np.linspace(0, 1, len(self.ranks)))
            means = expanded(means, rank)
        return link(self.family, eta, self.threshold), means

    def scores(self, parameters: np.ndarray, eta: np.ndarray, means: np.ndarray) -> np.ndarray:
        """Return scores in the units of y; for decisions, the distance to zero."""
        return self.center + self.scale * outputs(self.family, parameters, *self.inputs(eta, means))

    def out_of_fold(
        self, position: float, fold: np.ndarray, eta: np.ndarray, means: np.ndarray
    ) -> np.ndarray:
        """Return the score of each row by the predictor of its own fold, which has not seen it."""
        scores = np.empty(eta.shape)
        for j, own in enumerate(self.at(position)):
            scores[fold == j] = self.scores(own, eta[fold == j], means[fold == j])
        return scores


def solve(rows: Rows, iterations: int = 60) -> np.ndarray:
    """Return the parameters for each trade-off, (G, P): η recalibrated, then each started from the
    one before.
    """
    if rows.family.startswith("clipped"):
        return _clipped(rows)
    start, units, own = rows.parameters()
    rows = rows.softened(start)
    functions = np.column_stack([curve.functions for curve in rows.curves])
    cuts = np.cumsum([curve.functions.shape[1] for curve in rows.curves])[:-1]
    loss, initial, _ = rows.evaluate(start, functions)
    gaps = [
        max(curve.norm(own, 0.0)[0], 1e-12)
        for curve, own in zip(rows.curves, np.split(initial, cuts))
    ]
    whole = max(gap / curve.scale for gap, curve in zip(gaps, rows.curves))

    def objective(
        scaled: np.ndarray, rows: Rows, mu: float, target: float
    ) -> tuple[float, np.ndarray]:
        parameters = scaled * units
        loss, sums, gradient = rows.evaluate(parameters, functions)
        each = [
            curve.norm(part, SMOOTHNESS * target * gap)
            for curve, part, gap in zip(rows.curves, np.split(sums, cuts), gaps)
        ]
        shares = (
            np.array([value / curve.scale for (value, _), curve in zip(each, rows.curves)]) / whole
        )
        norm = float((shares**LARGEST).sum() ** (1 / LARGEST))
        slopes = (shares / norm) ** (LARGEST - 1) if norm > 0 else np.zeros(len(shares))
        weights = np.concatenate(
            [slope / c.scale * back for slope, c, (_, back) in zip(slopes, rows.curves, each)]
        )
        slope = gradient(mu * norm / whole * weights)
        along = parameters[own:]
        slope[own:] += 2 * rows.ridge * along
        ridge = float(np.sum(rows.ridge * along**2))
        # the square has the same solutions as the norm and spreads them evenly
        return loss + ridge + mu * norm**2 / 2, slope * units

    def solved(
        current: np.ndarray, inverse: np.ndarray, mu: float, target: float = 1.0
    ) -> tuple[np.ndarray, np.ndarray]:
        softened = rows.softened(current * units)
        return descend(lambda at: objective(at, softened, mu, target), current, inverse, iterations)

    # without constraint c is 0: where η is wrong, moving along m lowers the loss and can raise the
    # gap of the model
    first = FIRST_INVERSE * np.eye(len(start))
    calibrated, _ = solved(start / units, first * (np.arange(len(start)) < own), 0.0)
    free, inverse = solved(calibrated, first, 0.0)
    # a model of y without error has no loss to measure by, so a tenth of the variance of y counts
    # at least
    mean = np.average(rows.y, axis=0, weights=rows.weights)
    unit = max(
        loss, 0.1 * float(np.average((rows.y - mean) ** 2, axis=0, weights=rows.weights).sum())
    )
    strict, _ = solved(free, first / STRICTEST, STRICTEST * unit)
    cost = max(rows.loss(strict * units) - rows.loss(free * units), 1e-4 * unit)
    path = [calibrated]
    current = free
    for target in SHARES[1:]:
        # where the cost of a share r of the gap is cost * (1 - r)², this μ leads to it
        mu = 2 * cost * (1 - target) / target
        current, inverse = solved(current, inverse, mu, target)
        path.append(current)
    return np.asarray(np.array(path) * units)


def descend(
    objective: Callable[[np.ndarray], tuple[float, np.ndarray]],
    at: np.ndarray,
    inverse: np.ndarray,
    iterations: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Return where an objective with its gradient is least, near a point, and the inverse of its
    second derivatives there: BFGS, with an inverse to begin with.

    Coordinates whose rows of the inverse are zero stay as they are.

    Examples
    --------
    >>> place, inverse = descend(lambda x: (x @ x, 2 * x), np.ones(2), np.eye(2), 10)
    >>> place.round(6).tolist()
    [0.0, 0.0]
    """
    value, slope = objective(at)
    for _ in range(iterations):
        step = -inverse @ slope
        gain = -float(slope @ step)
        if gain < 2 * TOLERANCE:
            break
        new, new_slope = objective(at + step)
        while new > value - 1e-4 * gain and gain > TOLERANCE:
            # where a parabola through both values is least, but not too close
            share = np.clip(gain / (2 * (new - value + gain)), 0.1, 0.5)
            step = share * step
            gain = share * gain
            new, new_slope = objective(at + step)
        if new >= value:
            break
        change = new_slope - slope
        product = float(step @ change)
        if product > 0:
            across = np.eye(len(at)) - np.outer(step, change) / product
            inverse = across @ inverse @ across.T + np.outer(step, step) / product
        at = at + step
        value, slope = new, new_slope
    return at, inverse


def _clipped(rows: Rows) -> np.ndarray:
    """Return the largest move of each trade-off, (G, 1), so that their gaps are spread as `SHARES`
    are.
    """
    moves = np.quantile(np.abs(rows.means[:, 0] - rows.base), np.linspace(0, 1, 48))
    gaps = []
    for move in moves:
        score = outputs(rows.family, np.array([move]), rows.base, rows.means)
        at = np.zeros(1)
        if rows.family == "clipped":
            at = np.quantile(score, DECILES, method="inverted_cdf", weights=rows.weights)
        gaps.append(rows.curves[0].gap((score[:, None] > at).astype(np.float64)))
    least = np.minimum.accumulate(gaps)
    wanted = least[-1] + (least[0] - least[-1]) * (SHARES - SHARES[-1]) / (1 - SHARES[-1])
    path = np.interp(wanted, least[::-1], moves[::-1])
    path[0], path[-1] = 0.0, moves[-1]
    return np.asarray(path[:, None])


def decision_width(eta: np.ndarray) -> np.ndarray:
    """Return the width of each row: the same in log-odds, so that thresholds near 0 and 1 are told
    apart, too.
    """
    spread = float(logit(np.clip(eta, CLIP, 1 - CLIP)).std())
    return np.asarray(np.maximum(WIDTH * spread * eta * (1 - eta), 1e-4))


def link(family: Family, eta: np.ndarray, threshold: float = 0.5) -> np.ndarray:
    """Return η on the scale of a family: log-odds, log-probabilities, numbers, or the distance to a
    threshold.
    """
    if family in ("binary", "rank"):
        return np.asarray(logit(np.clip(eta, CLIP, 1 - CLIP)))
    if family == "classes":
        return np.asarray(np.log(np.clip(eta, CLIP, 1.0)))
    return eta - threshold if family == "decision" else eta


def expanded(means: np.ndarray, rank: np.ndarray) -> np.ndarray:
    """Return the columns that coefficients of a rank family multiply: m times each hat function of
    the rank of η.
    """
    hats = np.stack([np.interp(rank, KNOTS, unit) for unit in np.eye(len(KNOTS))], axis=1)
    return np.asarray((hats[:, :, None] * means[:, None, :]).reshape(len(means), -1))


def outputs(
    family: Family, parameters: np.ndarray, base: np.ndarray, means: np.ndarray
) -> np.ndarray:
    """Return the scores of rows: probabilities (n,) or (n, C), numbers, or for decisions the
    distance to zero.
    """
    if family == "classes":
        return np.asarray(softmax(_class_margins(parameters, base, means), axis=1))
    if family == "decision":
        return np.asarray(base - parameters[0] - _combined(means, parameters[1:]))
    if family.startswith("clipped"):
        return np.asarray(np.clip(means[:, 0], base - parameters[0], base + parameters[0]))
    a, b, c = parameters[0], parameters[1], parameters[2:]
    if family == "binary":
        return _root(expit(a + b * base), _combined(means, c))[0]
    score = a + b * base - _combined(means, c)
    return np.asarray(expit(score) if family == "rank" else score)


def _combined(means: np.ndarray, c: np.ndarray) -> np.ndarray:
    """Return Σ c_k m_k of each row; a product of matrices would round it by the number of rows."""
    return np.asarray(np.einsum("nk,k...->n...", means, c))


def _root(eta: np.ndarray, moved: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    r"""Return the f in [0, 1] with f = η - m f(1 - f), and the root of the discriminant.

    The convex problem min ℓ(f, η) + m f has this one stationary point, the smaller root of a
    quadratic.

    Examples
    --------
    >>> f, _ = _root(np.array([0.5]), np.array([1.0]))
    >>> bool(abs(f[0] - (0.5 - f[0] * (1 - f[0]))) < 1e-12)
    True
    """
    total = 1 + moved
    discriminant = np.sqrt(np.maximum(total**2 - 4 * moved * eta, CLIP**2))
    # of two forms of one root the one that does not cancel
    double = total + np.copysign(discriminant, total)
    f = 2 * eta / double
    low = moved < -1
    if low.any():
        f[low] = double[low] / (2 * moved[low])
    return np.clip(f, 0.0, 1.0), discriminant


def _binary(rows: Rows, parameters: np.ndarray, functions: np.ndarray) -> Evaluation:
    a, b, c = parameters[0], parameters[1], parameters[2:]
    eta = expit(a + b * rows.base)
    f, discriminant = _root(eta, rows.means @ c)
    f = np.clip(f, CLIP, 1 - CLIP)
    spread = f * (1 - f)
    loss = -float(rows.weights @ np.log(np.where(rows.y == 1, f, 1 - f)))

    def gradient(weights: np.ndarray) -> np.ndarray:
        moved = rows.weights * (f - rows.y)
        moved += (functions @ weights)[:, 0] * spread
        moved /= discriminant
        base = moved * eta * (1 - eta) / spread
        return np.concatenate([[base.sum(), base @ rows.base], -(rows.means.T @ moved)])

    return Evaluation(loss, functions.T @ f[:, None], gradient)


def _numbers(rows: Rows, parameters: np.ndarray, functions: np.ndarray) -> Evaluation:
    f = outputs("numbers", parameters, rows.base, rows.means)
    loss = float(rows.weights @ (f - rows.y) ** 2)

    def gradient(weights: np.ndarray) -> np.ndarray:
        slope = 2 * rows.weights * (f - rows.y) + (functions @ weights)[:, 0]
        return _linear_gradient(rows, slope)

    return Evaluation(loss, functions.T @ f[:, None], gradient)


def _class_margins(parameters: np.ndarray, base: np.ndarray, means: np.ndarray) -> np.ndarray:
    classes = base.shape[1]
    c = parameters[1 + classes :].reshape(-1, classes)
    return np.asarray(parameters[1 : 1 + classes] + parameters[0] * base - _combined(means, c))


def _classes(rows: Rows, parameters: np.ndarray, functions: np.ndarray) -> Evaluation:
    log_f = log_softmax(_class_margins(parameters, rows.base, rows.means), axis=1)
    f = np.exp(log_f)
    loss = -float(rows.weights @ (rows.y * log_f).sum(axis=1))

    def gradient(weights: np.ndarray) -> np.ndarray:
        moved = functions @ weights
        slope = rows.weights[:, None] * (f - rows.y) + f * (
            moved - (moved * f).sum(axis=1, keepdims=True)
        )
        return np.concatenate(
            [[(slope * rows.base).sum()], slope.sum(axis=0), -(rows.means.T @ slope).ravel()]
        )

    return Evaluation(loss, functions.T @ f, gradient)


@dataclass(frozen=True, eq=False)
class SoftRanks:
    """Soft indicators of scores above their deciles, linear in each cell of a fine grid, so that
    sums over rows are sums over cells.

    A decile is where the indicators have the right mean, so that it moves with all rows near it.

    Attributes
    ----------
    cell, along
        Cell of each row, and how far along it the row is; (n,).
    starts, slopes
        The indicators at the start of each cell, and what they gain along it; (M, 9).
    size
        The size of a cell.
    """

    cell: np.ndarray
    along: np.ndarray
    starts: np.ndarray
    slopes: np.ndarray
    size: float

    @classmethod
    def of(cls, score: np.ndarray, weights: np.ndarray, width: float) -> SoftRanks:
        """Return those of scores whose weights sum to 1, softened over a width."""
        center = float(weights @ score)
        reach = 5 * math.sqrt(weights @ (score - center) ** 2)  # a 25th is farther away, at most
        size = max(width / CELLS, reach / MOST_CELLS)
        first = math.floor((center - reach) / size)
        count = math.floor((center + reach) / size) + 1 - first
        place = np.clip(score / size - first, 0.0, count * (1 - 1e-12))
        cell = place.astype(np.intp)
        along = place - cell
        points = (first + np.arange(count + 1)) * size
        mass = np.bincount(cell, weights * (1 - along), count + 1)
        mass += np.bincount(cell + 1, weights * along, count + 1)
        near = 12 * CELLS
        offsets = np.arange(-near, near + 1) * size / width
        softened = np.convolve(mass, np.heaviside(offsets, 0.5) - expit(offsets))[near:-near]
        above = 1 - np.cumsum(mass) + mass / 2 + softened
        deciles = np.interp(DECILES, 1 - above, points)
        soft = expit((points[:, None] - deciles) / width)
        density = np.maximum(mass @ (soft * (1 - soft)) / width, 1e-12)
        deciles += np.clip((mass @ soft - (1 - DECILES)) / density, -size, size)
        soft = expit((points[:, None] - deciles) / width)
        return cls(cell, along, soft[:-1], np.diff(soft, axis=0), size)

    def totals(self, values: np.ndarray) -> np.ndarray:
        """Return the sum of values (n,) over the rows of each cell."""
        return np.bincount(self.cell, values, len(self.starts))


def _rank(rows: Rows, parameters: np.ndarray, functions: np.ndarray) -> Evaluation:
    """Rank family: the curves see soft indicators of the score above its own deciles."""
    score = parameters[0] + parameters[1] * rows.base - rows.means @ parameters[2:]
    if rows.family == "rank":
        small = np.exp(-np.abs(score))
        loss = float(rows.weights @ (np.maximum(score, 0) + np.log1p(small) - rows.y * score))
        task = rows.weights * (np.where(score >= 0, 1.0, small) / (1 + small) - rows.y)
    else:
        loss = float(rows.weights @ (score - rows.y) ** 2)
        task = 2 * rows.weights * (score - rows.y)
    assert rows.width is not None
    ranks = SoftRanks.of(score, rows.weights, float(rows.width))
    columns = np.ascontiguousarray(functions.T)
    totals = np.array([ranks.totals(column) for column in columns])
    farther = np.array([ranks.totals(column * ranks.along) for column in columns])
    sums = totals @ ranks.starts + farther @ ranks.slopes

    def gradient(weights: np.ndarray) -> np.ndarray:
        slopes = ranks.slopes / ranks.size
        # a decile moves with the rows near it, so only what a row does beyond their mean counts
        near = np.maximum(ranks.totals(rows.weights) @ slopes, 1e-12)
        common = ((totals @ slopes) * weights).sum(axis=0) / near
        moved = -rows.weights * (slopes @ common)[ranks.cell]
        for column, slope in zip(columns, weights @ slopes.T):
            moved += column * slope[ranks.cell]
        return _linear_gradient(rows, task + moved)

    return Evaluation(loss, sums, gradient)


def _decision(rows: Rows, parameters: np.ndarray, functions: np.ndarray) -> Evaluation:
    margin = outputs("decision", parameters, rows.base, rows.means)
    width = rows.width
    assert width is not None
    taken = expit(margin / width)
    loss = float(rows.weights @ (rows.y * (1 - taken) + (1 - rows.y) * taken))

    def gradient(weights: np.ndarray) -> np.ndarray:
        slope = rows.weights * (1 - 2 * rows.y) + (functions @ weights)[:, 0]
        slope *= taken * (1 - taken) / width
        return -np.concatenate([[slope.sum()], rows.means.T @ slope])

    return Evaluation(loss, functions.T @ taken[:, None], gradient)


def _linear_gradient(rows: Rows, slope: np.ndarray) -> np.ndarray:
    return np.concatenate([[slope.sum(), slope @ rows.base], -(rows.means.T @ slope)])


_FAMILIES: dict[Family, Callable[[Rows, np.ndarray, np.ndarray], Evaluation]] = {
    "binary": _binary,
    "classes": _classes,
    "numbers": _numbers,
    "rank": _rank,
    "rank of numbers": _rank,
    "decision": _decision,
}
