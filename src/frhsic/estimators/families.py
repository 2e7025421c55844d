r"""Families of the closed form: how a predictor is built from :math:`\eta` and m, and which
objective its coefficients minimize (derived in `docs/theory.md`).

To add a family, write a subclass of :class:`SmoothFamily` with these methods:

============  ==================================================================================
`link`        :math:`\eta` on the scale on which the coefficients act
`outputs`     the scores of rows
`evaluate`    the loss, the sums from which gaps are computed, and the gradient of both
`first`       the parameters of :math:`\eta` itself, if they are not 0, 1, 0, ...
`constant`    the parameters of the best constant, if the first one is not its link
============  ==================================================================================
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import numpy as np
from scipy.special import expit, log_softmax, logit, softmax

from frhsic.estimators.constraints import GapCurves, LabelledRows

# Share of the rarer class below which decisions are made for balanced accuracy, with the base rate
# as threshold.
RARE_DECISIONS = 0.2

# Number of random rows used to solve for the coefficients; a few dozen numbers need no more.
MOST_SOLVED_ROWS = 50_000

DECILES = np.arange(1, 10) / 10

# Width over which a decision is softened while solving, in standard deviations of the score or of
# its log-odds. The standard deviation is computed at each evaluation of the loss: when it was
# updated only between steps, the scores of one fold shrank up to 187 times as much as those of
# another, because soft decisions have no gap if all scores are equal.
WIDTH = 0.1

# Newton's method for a soft decile stops when its step, in widths, is below the first of these
# numbers, or the error of the share is below the second and may be due to rounding. The third is
# the maximum number of steps.
LAST_STEP = 1e-6
SHARE_ROUNDING = 1e-14
MOST_DECILE_STEPS = 100

# Number of widths from the median beyond which a soft indicator is 0 or 1 up to rounding; the
# exponential of twice this number does not overflow.
FARTHEST = 300.0

# Smallest distance of probabilities from 0 and 1.
CLIP = 1e-6


@dataclass(frozen=True, eq=False)
class Units:
    """Units in which scores are expressed during solving: numbers are centered and scaled, and
    decisions are centered at their threshold.

    `ranks` contains the quantiles of η, between which ranks are interpolated.
    """

    center: float
    scale: float
    threshold: float
    ranks: np.ndarray

    @classmethod
    def of(cls, sample: LabelledRows, eta: np.ndarray, decides: bool) -> Units:
        """Return the units for the rows of a fit."""
        center = 0.0
        scale = 1.0
        threshold = 0.5
        mean = float(np.average(sample.y, weights=sample.mass))
        if sample.numeric:
            center = mean
            variance = np.average((sample.y - center) ** 2, weights=sample.mass)
            scale = float(np.sqrt(variance)) or 1.0
        if decides:
            rare = not RARE_DECISIONS <= mean <= 1 - RARE_DECISIONS
            threshold = mean if rare else 0.5
            center = threshold
        ranks = np.zeros(0)
        if eta.ndim == 1:
            ranks = np.quantile((eta - center) / scale, np.linspace(0, 1, 101))
        return cls(center, scale, threshold, ranks)

    def standard(self, values: np.ndarray) -> np.ndarray:
        """Convert values in the unit of y to centered and scaled numbers."""
        return (values - self.center) / self.scale


class Evaluated(NamedTuple):
    """The loss at some parameters, the sums (K, c) of the outputs of rows along functions (n, K),
    and a function that returns the gradient of loss + ⟨weights, sums⟩.
    """

    loss: float
    sums: np.ndarray
    gradient: Callable[[np.ndarray], np.ndarray]


class StartingPoint(NamedTuple):
    """The parameters of η itself, a scale for each parameter that makes the effects of all steps
    similar, and the number of leading parameters that recalibrate η. The other parameters are
    coefficients along m.
    """

    parameters: np.ndarray
    scales: np.ndarray
    own: int


@dataclass(frozen=True, eq=False)
class SolverTask:
    """The problem to solve: η as `base`, (n,) or (n, C); m as `columns`, (n, K); y, (n,) or (n, C);
    weights that sum to 1; and the curves of the gaps.

    The decision threshold is `threshold`, and the penalty weight of each squared coefficient along
    m is `ridge`.
    """

    base: np.ndarray
    columns: np.ndarray
    y: np.ndarray
    weights: np.ndarray
    curves: GapCurves | None = None
    threshold: float = 0.5
    ridge: np.ndarray | float = 0.0

    def at(self, rows: np.ndarray) -> SolverTask:
        """Return the task for the given rows, without curves."""
        return replace(
            self,
            base=self.base[rows],
            columns=self.columns[rows],
            y=self.y[rows],
            weights=self.weights[rows],
            curves=None,
        )

    def mean(self) -> np.ndarray:
        """Return the weighted mean of y."""
        return np.asarray(np.average(self.y, axis=0, weights=self.weights))


@dataclass(frozen=True)
class Family(ABC):
    """How a predictor is built from η and m.

    Attributes
    ----------
    averages
        Whether the gap is measured in mean scores, so that the predictors of the folds can be
        averaged.
    decides
        Whether scores are only compared with a decision threshold.
    most_rows
        Largest number of rows used to solve for the coefficients.
    """

    averages: ClassVar[bool] = False
    decides: ClassVar[bool] = False
    most_rows: ClassVar[int] = MOST_SOLVED_ROWS

    @abstractmethod
    def inputs(
        self, eta: np.ndarray, means: np.ndarray, units: Units
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the base and the columns of rows; see :class:`SolverTask`."""

    @abstractmethod
    def outputs(self, parameters: np.ndarray, base: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Return the scores of rows, (n,) or (n, C)."""

    def target(self, sample: LabelledRows, units: Units) -> np.ndarray:
        """Return y in the form that the loss expects."""
        return units.standard(sample.y)

    def curvature(self, eta: np.ndarray, shares: np.ndarray) -> float:
        """Return half of the mean second derivative of the loss, weighted by the shares of the
        rows.
        """
        return 1.0

    @abstractmethod
    def loss(self, task: SolverTask, parameters: np.ndarray) -> float:
        """Return the loss at some parameters."""

    @abstractmethod
    def constant(self, task: SolverTask) -> np.ndarray:
        """Return the parameters of the best constant."""


@dataclass(frozen=True)
class SmoothFamily(Family):
    """A family whose coefficients are found by a descent method."""

    averages = True

    @abstractmethod
    def evaluate(
        self, task: SolverTask, parameters: np.ndarray, functions: np.ndarray
    ) -> Evaluated:
        """Return the loss at some parameters, the sums along functions of the rows (n, K), and the
        gradient.
        """

    def loss(self, task: SolverTask, parameters: np.ndarray) -> float:
        return self.evaluate(task, parameters, np.zeros((len(task.y), 1))).loss

    def link(self, eta: np.ndarray) -> np.ndarray:
        """Return η on the scale of the coefficients."""
        return eta

    def inputs(
        self, eta: np.ndarray, means: np.ndarray, units: Units
    ) -> tuple[np.ndarray, np.ndarray]:
        return self.link(units.standard(eta)), means

    def first(self, task: SolverTask) -> StartingPoint:
        """Return the parameters of η itself."""
        spread = max(float(task.base.std()), 1e-3)
        return _with_columns([0.0, 1.0], [1.0, 1 / spread], task)

    def constant(self, task: SolverTask) -> np.ndarray:
        constant = np.zeros_like(self.first(task).parameters)
        constant[0] = self.link(task.mean())
        return constant


def _with_columns(own: list[float], scales: list[float], task: SolverTask) -> StartingPoint:
    """Return a starting point with the given parameters, followed by coefficients of zero along m
    for each class.
    """
    classes = 1 if task.base.ndim == 1 else task.base.shape[1]
    along = np.repeat(1 / np.maximum(task.columns.std(axis=0), 1e-3), classes)
    return StartingPoint(np.append(own, np.zeros(len(along))), np.append(scales, along), len(own))


def combine(columns: np.ndarray, c: np.ndarray) -> np.ndarray:
    """Return Σ c_k m_k for each row. A matrix product is not used, because its rounding would
    depend on the number of rows.
    """
    return np.asarray(np.einsum("nk,k...->n...", columns, c))


def log_odds(eta: np.ndarray) -> np.ndarray:
    return np.asarray(logit(np.clip(eta, CLIP, 1 - CLIP)))


@dataclass(frozen=True)
class LogLossFamily(SmoothFamily):
    """A family of probabilities whose coefficients are on the scale of log-odds."""

    def link(self, eta: np.ndarray) -> np.ndarray:
        return log_odds(eta)

    def curvature(self, eta: np.ndarray, shares: np.ndarray) -> float:
        return float(np.mean(shares @ (eta * (1 - eta)))) / 2


@dataclass(frozen=True)
class BinaryScores(LogLossFamily):
    """Probabilities with the smallest log loss, f = η - m f(1 - f), where η is recalibrated."""

    def outputs(self, parameters: np.ndarray, base: np.ndarray, columns: np.ndarray) -> np.ndarray:
        eta = expit(parameters[0] + parameters[1] * base)
        f, _ = log_loss_root(eta, combine(columns, parameters[2:]))
        return np.asarray(np.clip(f, CLIP, 1 - CLIP))

    def evaluate(
        self, task: SolverTask, parameters: np.ndarray, functions: np.ndarray
    ) -> Evaluated:
        eta = expit(parameters[0] + parameters[1] * task.base)
        f, discriminant = log_loss_root(eta, task.columns @ parameters[2:])
        f = np.clip(f, CLIP, 1 - CLIP)
        spread = f * (1 - f)
        loss = -float(task.weights @ np.log(np.where(task.y == 1, f, 1 - f)))

        def gradient(weights: np.ndarray) -> np.ndarray:
            moved = task.weights * (f - task.y)
            moved += (functions @ weights)[:, 0] * spread
            moved /= discriminant
            base = moved * eta * (1 - eta) / spread
            return np.concatenate([[base.sum(), base @ task.base], -(task.columns.T @ moved)])

        return Evaluated(loss, functions.T @ f[:, None], gradient)


def log_loss_root(eta: np.ndarray, moved: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    r"""Return the f in [0, 1] with f = η - m f(1 - f), and the square root of the discriminant.

    The convex problem min ℓ(f, η) + m f has exactly one stationary point, which is a root of
    :math:`m f^2 - (1 + m) f + \eta = 0`. With the discriminant D, this root is :math:`(1 + m -
    \sqrt D) / 2m = 2\eta / (1 + m + \sqrt D)`.

    Examples
    --------
    >>> f, _ = log_loss_root(np.array([0.5]), np.array([1.0]))
    >>> bool(abs(f[0] - (0.5 - f[0] * (1 - f[0]))) < 1e-12)
    True
    """
    total = 1 + moved
    discriminant = np.sqrt(np.maximum(total**2 - 4 * moved * eta, CLIP**2))
    # the second form or, where 1 + m is negative, the first, so that two terms of the same sign are
    # added, which avoids cancellation
    double = total + np.copysign(discriminant, total)
    f = 2 * eta / double
    low = moved < -1
    if low.any():
        f[low] = double[low] / (2 * moved[low])
    return np.clip(f, 0.0, 1.0), discriminant


@dataclass(frozen=True)
class ClassScores(LogLossFamily):
    """Probabilities of several classes, whose margins are shifted by multiples of m. They have the
    lowest log loss of this form; the optimum over all functions of x has a different form.
    """

    def link(self, eta: np.ndarray) -> np.ndarray:
        return np.asarray(np.log(np.clip(eta, CLIP, 1.0)))

    def target(self, sample: LabelledRows, units: Units) -> np.ndarray:
        codes = sample.y.astype(int)
        return np.asarray(np.eye(codes.max() + 1)[codes])

    def first(self, task: SolverTask) -> StartingPoint:
        classes = task.base.shape[1]
        return _with_columns([1.0, *[0.0] * classes], [1.0] * (1 + classes), task)

    def constant(self, task: SolverTask) -> np.ndarray:
        first = self.first(task)
        constant = np.zeros_like(first.parameters)
        constant[1 : first.own] = self.link(task.mean())
        return constant

    def outputs(self, parameters: np.ndarray, base: np.ndarray, columns: np.ndarray) -> np.ndarray:
        return np.asarray(softmax(self._margins(parameters, base, columns), axis=1))

    def _margins(self, parameters: np.ndarray, base: np.ndarray, columns: np.ndarray) -> np.ndarray:
        classes = base.shape[1]
        c = parameters[1 + classes :].reshape(-1, classes)
        return np.asarray(parameters[1 : 1 + classes] + parameters[0] * base - combine(columns, c))

    def evaluate(
        self, task: SolverTask, parameters: np.ndarray, functions: np.ndarray
    ) -> Evaluated:
        log_f = log_softmax(self._margins(parameters, task.base, task.columns), axis=1)
        f = np.exp(log_f)
        loss = -float(task.weights @ (task.y * log_f).sum(axis=1))

        def gradient(weights: np.ndarray) -> np.ndarray:
            moved = functions @ weights
            turned = f * (moved - (moved * f).sum(axis=1, keepdims=True))
            slope = task.weights[:, None] * (f - task.y) + turned
            own = [[(slope * task.base).sum()], slope.sum(axis=0)]
            return np.concatenate([*own, -(task.columns.T @ slope).ravel()])

        return Evaluated(loss, functions.T @ f, gradient)


@dataclass(frozen=True)
class NumberScores(SmoothFamily):
    """Numbers with the smallest squared error, f = a + b η - Σ c_k m_k."""

    def outputs(self, parameters: np.ndarray, base: np.ndarray, columns: np.ndarray) -> np.ndarray:
        return np.asarray(parameters[0] + parameters[1] * base - combine(columns, parameters[2:]))

    def evaluate(
        self, task: SolverTask, parameters: np.ndarray, functions: np.ndarray
    ) -> Evaluated:
        f = self.outputs(parameters, task.base, task.columns)
        loss = float(task.weights @ (f - task.y) ** 2)

        def gradient(weights: np.ndarray) -> np.ndarray:
            slope = 2 * task.weights * (f - task.y) + (functions @ weights)[:, 0]
            return _linear_gradient(task, slope)

        return Evaluated(loss, functions.T @ f[:, None], gradient)


def _linear_gradient(task: SolverTask, slope: np.ndarray) -> np.ndarray:
    return np.concatenate([[slope.sum(), slope @ task.base], -(task.columns.T @ slope)])


@dataclass(frozen=True)
class NumberRanks(NumberScores):
    """Numbers whose gap curves are computed from soft indicators of scores that exceed the deciles.
    The coefficients along m change linearly with the rank of η.
    """

    averages = False
    most_rows = MOST_SOLVED_ROWS // 10

    def inputs(
        self, eta: np.ndarray, means: np.ndarray, units: Units
    ) -> tuple[np.ndarray, np.ndarray]:
        eta = units.standard(eta)
        rank = np.interp(eta, units.ranks, np.linspace(0, 1, len(units.ranks)))
        return self.link(eta), expanded(means, rank)

    def task_loss(self, task: SolverTask, score: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the loss of scores, and the derivative of the loss with respect to each score."""
        loss = float(task.weights @ (score - task.y) ** 2)
        return loss, 2 * task.weights * (score - task.y)

    def evaluate(
        self, task: SolverTask, parameters: np.ndarray, functions: np.ndarray
    ) -> Evaluated:
        score = NumberScores.outputs(self, parameters, task.base, task.columns)
        loss, slope_of_loss = self.task_loss(task, score)
        away = score - task.weights @ score
        variance = max(float(task.weights @ away**2), CLIP**2)
        width = WIDTH * np.sqrt(variance)
        above = soft_deciles(score, task.weights, width)
        steepness = above * (1 - above) / width

        def gradient(weights: np.ndarray) -> np.ndarray:
            moved = (weights.T @ functions.T) * steepness
            # a decile moves with the rows near it, so their mean effect is subtracted
            mean = moved.sum(axis=1) / np.maximum(steepness @ task.weights, 1e-12)
            slope = moved.sum(axis=0) - task.weights * (mean @ steepness)
            # the width grows with the scores, because multiplying all scores by a number keeps
            # ranks
            slope -= task.weights * away * (slope @ away) / variance
            return _linear_gradient(task, slope_of_loss + slope)

        return Evaluated(loss, functions.T @ above.T, gradient)


@dataclass(frozen=True)
class ScoreRanks(LogLossFamily, NumberRanks):
    """Like :class:`NumberRanks`, for probabilities whose log-odds are shifted by multiples of m."""

    def outputs(self, parameters: np.ndarray, base: np.ndarray, columns: np.ndarray) -> np.ndarray:
        return np.asarray(expit(NumberRanks.outputs(self, parameters, base, columns)))

    def task_loss(self, task: SolverTask, score: np.ndarray) -> tuple[float, np.ndarray]:
        loss = task.weights @ (np.logaddexp(0.0, score) - task.y * score)
        return float(loss), task.weights * (expit(score) - task.y)


def expanded(means: np.ndarray, rank: np.ndarray) -> np.ndarray:
    """Return the columns for the coefficients of a rank family: m multiplied by the rank of η,
    counted from above and from below.
    """
    return np.column_stack([means * (1 - rank)[:, None], means * rank[:, None]])


def soft_deciles(score: np.ndarray, weights: np.ndarray, width: float) -> np.ndarray:
    """Return soft indicators of the scores that exceed each decile, (9, n).

    A decile is the point for which the mean of the indicators equals the required share, so it
    depends smoothly on all rows near this point. It is found by Newton's method, which starts at
    the score of a row and stays within bounds.
    """
    order = np.argsort(score)
    below = np.cumsum(weights[order])
    deciles = score[order][np.searchsorted(below, DECILES * below[-1] * (1 - 1e-12))]
    middle = deciles[len(deciles) // 2]
    # exp((decile - score) / width) is a product, so that rows times deciles need no exponentials
    rows = np.exp(np.clip((middle - score) / width, -FARTHEST, FARTHEST))

    def above(deciles: np.ndarray) -> np.ndarray:
        steps = np.clip((deciles - middle) / width, -FARTHEST, FARTHEST)
        shares = np.outer(np.exp(steps), rows)
        shares += 1
        return np.reciprocal(shares, out=shares)

    # three widths beyond all rows, each indicator is within 5 % of 0 or 1
    low = np.full(len(deciles), score[order[0]] - 3 * width)
    high = np.full(len(deciles), score[order[-1]] + 3 * width)
    for _ in range(MOST_DECILE_STEPS):
        shares = above(deciles)
        squares = shares**2
        taken = shares @ weights
        error = taken - (1 - DECILES)
        low = np.where(error > 0, deciles, low)
        high = np.where(error < 0, deciles, high)
        density = np.maximum((taken - squares @ weights) / width, 1e-300)
        step = np.clip(error / density, -width, width)
        if ((np.abs(step) < LAST_STEP * width) | (np.abs(error) < SHARE_ROUNDING)).all():
            break
        following = deciles + step
        outside = (following < low) | (following > high)
        deciles = np.where(outside, (low + high) / 2, following)
    # the last step is so small that a first-order update is exact
    step = np.where(np.abs(step) < LAST_STEP * width, step / width, 0.0)
    squares -= shares
    squares *= step[:, None]
    squares += shares
    return squares
