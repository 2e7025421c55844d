"""Coefficients of the closed form for each trade-off and fold, and the resulting scores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from scipy.interpolate import make_interp_spline

from frhsic.estimators.constraints import Constraint, GapCurves, LabelledRows
from frhsic.estimators.deciding import Decisions
from frhsic.estimators.families import Family, SmoothFamily, SolverTask, Units
from frhsic.estimators.solving import GAP_SHARES, solve
from frhsic.parity.limits import Limit

# Share of the unconstrained gap at which the path to a constant ends; any closer, scores would
# predict almost nothing.
LEAST_MIXED = 0.1

# Smaller gaps are replaced with this value when gains are divided by gaps.
LEAST_GAP = 1e-12

# Weight of the common coefficients in each stratum, as a number of rows: the coefficients of a
# stratum with this many rows are halfway between common and separate ones; those of a large stratum
# are almost separate. On rows of Adult and ACS income, 3 to 30 rows are best for decisions and 30
# to 300 for scores; between these, the loss at equal gaps changes by .001.
COMMON_ROWS = 50

# Number of steps from one solved trade-off to the next; the parameters of the others are
# interpolated. On the distributions of benchmarks/promise.py with 1,000 rows, 7 solved trade-offs
# with 7 interpolated ones between neighbors lose as little performance as 14 with 3. Half as many
# of both lose 4 to 8 % more, since the closest trade-off within a limit is farther from the limit.
BETWEEN = 8


@dataclass(frozen=True, eq=False)
class Solution:
    """All parts of a fitted predictor except its models.

    Attributes
    ----------
    family
        How scores are computed.
    constraints
        The gaps that are limited.
    parameters
        Coefficients of each trade-off and fold, (G, J, P): those of the columns of m and, for each
        stratum except the last, how much the stratum's coefficients differ from these.
    units
        Units of scores.
    centers
        Means of m in each stratum, divided by the mean probability of the condition, (S, K). The
        last stratum contains the rows whose control values have no stratum of their own. Without
        controls, the centers are zeros, (1, K).
    """

    family: Family
    constraints: tuple[Constraint, ...]
    parameters: np.ndarray
    units: Units
    centers: np.ndarray

    @classmethod
    def fit(
        cls,
        family: Family,
        sample: LabelledRows,
        constraints: tuple[Constraint, ...],
        eta: np.ndarray,
        means: np.ndarray,
        limits: Mapping[str, tuple[Limit, ...]],
    ) -> Self:
        """Compute the coefficients of every trade-off, leaving out each fold in turn. Limits are
        keyed by attribute. If only some attributes have limits, the gaps for all other attributes
        are not constrained.
        """
        units = Units.of(sample, eta, family.decides)
        strata = sample.n_strata
        solution = cls(family, constraints, np.zeros(0), units, np.zeros((strata, means.shape[1])))
        solution = replace(solution, centers=solution._centers(sample, eta, means))
        scales = solution._gap_units(sample, eta, limits)
        own_scales = [scales[one.attribute] for one in constraints]

        def curves_of(rows: np.ndarray) -> GapCurves:
            some = sample.at(rows)
            return GapCurves.of(
                constraints, some.s, some.y, some.mass, own_scales, some.strata, strata
            )

        base, columns = solution.inputs(eta, means, sample.strata)
        mass = sample.mass / sample.mass.sum()
        y = family.target(sample, units)
        whole = SolverTask(base, columns, y, mass, threshold=units.threshold)
        whole = replace(whole, curves=curves_of(np.arange(len(y))))
        whole = replace(whole, ridge=solution._ridge(sample, eta, means))
        rng = np.random.default_rng(sample.seed)
        paths = []
        for j in range(sample.fold.max() + 1):
            rows = np.flatnonzero(sample.fold != j)
            if len(rows) > family.most_rows:
                rows = np.sort(rng.choice(rows, family.most_rows, replace=False))
            task = whole.at(rows)
            task = replace(task, weights=task.weights / task.weights.sum(), curves=curves_of(rows))
            if isinstance(family, SmoothFamily):
                paths.append(solve(family, task))
            else:
                assert isinstance(family, Decisions)
                paths.append(family.path(task, GAP_SHARES))
        solution = replace(solution, parameters=np.stack(paths, axis=1))
        return solution.ended(whole, sample.fold).interpolated()

    def inputs(
        self, eta: np.ndarray, means: np.ndarray, strata: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the base scores and the columns of rows: m minus its mean in the stratum, once for
        all strata and once for each stratum except the last, where the rows in other strata are
        zero.
        """
        if strata is None:
            return self.family.inputs(eta, means, self.units)
        means = means - self._chances(eta) * self.centers[strata]
        base, columns = self.family.inputs(eta, means, self.units)
        levels = [columns * (strata == code)[:, None] for code in range(len(self.centers) - 1)]
        return base, np.column_stack([columns, *levels])

    def _chances(self, eta: np.ndarray) -> np.ndarray:
        """Return, for each column of m, the probability of its condition divided by the condition's
        overall rate, (n, K).
        """
        widths = [one.basis.values.shape[1] for one in self.constraints]
        chances = np.column_stack([one.chance(eta) for one in self.constraints])
        return np.repeat(chances, widths, axis=1)

    def _centers(self, sample: LabelledRows, eta: np.ndarray, means: np.ndarray) -> np.ndarray:
        """Return the means of m in each stratum, divided by the mean probabilities of the
        conditions, so that constants have no gap. A stratum without rows gets the means over all
        rows.
        """
        centers = np.zeros_like(self.centers)
        if sample.strata is not None:
            chances = self._chances(eta)
            for code in range(len(centers)):
                mass = sample.mass * (sample.strata == code)
                mass = mass if mass.any() else sample.mass
                centers[code] = (mass @ means) / (mass @ chances)
        return centers

    def losses_and_gaps(self, task: SolverTask, fold: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return, for each trade-off, the out-of-fold loss and the largest gap, where each gap is
        divided by its scale.
        """
        family, curves = self.family, task.curves
        assert isinstance(family, SmoothFamily)
        assert curves is not None
        losses = np.zeros(len(self.parameters))
        sums: list[Any] = [0.0] * len(losses)
        for j in range(self.parameters.shape[1]):
            rows = np.flatnonzero(fold == j)
            part = task.at(rows)
            share = part.weights.sum()
            part = replace(part, weights=part.weights / share)
            for i, parameters in enumerate(self.parameters[:, j]):
                own = family.evaluate(part, parameters, curves.functions[rows])
                losses[i] += share * own.loss
                sums[i] += own.sums
        return losses, np.array([curves.largest(each) for each in sums])

    @property
    def constant(self) -> np.ndarray:
        """Mask of the trade-offs that make the same decision for everybody. It is always false for
        scores, which always vary.
        """
        rule = self.parameters[..., self.parameters.shape[-1] // 2 :]
        same = ~rule[..., 1:].any(axis=(1, 2))
        return np.asarray(same & self.family.decides)

    def interpolated(self) -> Self:
        """Return a solution with additional trade-offs, interpolated between neighbors."""
        last = len(self.parameters) - 1
        line = make_interp_spline(np.arange(last + 1), self.parameters, k=1)
        return replace(self, parameters=line(np.linspace(0, last, BETWEEN * last + 1)))

    def ended(self, task: SolverTask, fold: np.ndarray) -> Self:
        """Return a solution with an end for its path of trade-offs, which is the same for all
        folds.

        For scores, the path follows the trade-offs up to the one with the highest out-of-fold ratio
        of gain (over a constant) to gap, and from there leads towards the constant. A mixture that
        weights a score by w, and a constant by 1 − w, has w times the gap and at least w times the
        gain, so the omitted trade-offs are worse than mixtures. The path ends at a tenth of the
        gap. A mixture doesn't change ranks, so trade-offs for ranks end at the smallest gap.
        Decisions can't be mixed: all trade-offs are kept, and the last one makes the same decision
        for everybody, which has no gap.
        """
        family = self.family
        constant = family.constant(task)
        if family.decides:
            end = self.parameters[-1].copy()
            rule = slice(end.shape[1] // 2, None)
            end[:, rule] = constant[rule]  # ignores parameters that only recalibrate η
            return replace(self, parameters=np.append(self.parameters, end[None], axis=0))
        losses, gaps = self.losses_and_gaps(task, fold)
        gaps = np.maximum(gaps, LEAST_GAP)
        if not family.averages:
            return replace(self, parameters=self.parameters[: max(int(np.argmin(gaps)), 1) + 1])
        gains = family.loss(task, constant) - losses
        best = int(np.argmax(gains / gaps))
        if best == len(gains) - 1:
            return self
        kept = self.parameters[: best + 1]
        share = min(LEAST_MIXED * gaps[0] / gaps[best], 1.0) if gains[best] > 0 else 0.0
        end = constant + share * (kept[-1] - constant)
        return replace(self, parameters=np.append(kept, end[None], axis=0))

    def _ridge(self, sample: LabelledRows, eta: np.ndarray, means: np.ndarray) -> np.ndarray:
        r"""Return the penalty weight of each squared coefficient while solving: :math:`r_k = v_k K
        J / (J - 1)^2 n` times the curvature of the loss and, for a rank family, times the mean
        square of the rank counted from above and from below.

        The rows contain the errors of :math:`\sum_k c_k m_k` for the models of J - 1 folds, but the
        coefficients are used with another model. If that model has p degrees of freedom, its errors
        have the variance :math:`|c|^2 v p J / (J - 1) n`, where v is the variance of
        :math:`\varphi_k(S)` about :math:`m_k`, and the functions are 0 for rows without S. The rows
        determine p (J - 1) directions of these errors, so a share of about K / p (J - 1) is unknown
        for K functions. How much the coefficients of a stratum differ from those of all strata is
        also penalized, by the curvature of the loss in :data:`COMMON_ROWS` rows.
        """
        mass = sample.mass / sample.mass.sum()
        targets = np.column_stack([one.targets(sample.s, sample.y) for one in self.constraints])
        folds = sample.fold.max() + 1
        count = means.shape[1]
        variance = mass @ (targets - means) ** 2
        unknown = variance * count * folds / (folds - 1) ** 2 * float(mass @ mass)
        curvature = self.family.curvature(eta, mass)
        unknown *= curvature
        shares = mass @ self.family.inputs(eta, np.ones_like(means), self.units)[1] ** 2
        classes = eta.shape[1] if eta.ndim == 2 else 1
        repeats = len(shares) // count
        ridge = shares * np.tile(unknown, repeats)
        second = curvature * (mass @ targets**2)
        own = ridge + COMMON_ROWS * float(mass @ mass) * shares * np.tile(second, repeats)
        return np.repeat(np.append(ridge, np.tile(own, len(self.centers) - 1)), classes)

    def _gap_units(
        self, sample: LabelledRows, eta: np.ndarray, limits: Mapping[str, tuple[Limit, ...]]
    ) -> list[float]:
        """Return the number by which the gap for each attribute is divided during solving: the
        limit or the size of the gap, relative to the smallest of these numbers. Gaps in scores are
        used in place of gaps in ranks, which matters only if some attributes have numbers as limits
        and others have shares.
        """
        scores = np.reshape(self.units.standard(eta), (len(eta), -1))
        if self.family.decides:
            scores = (scores > 0).astype(np.float64)
        strata = sample.strata, sample.n_strata
        curves = GapCurves.of(self.constraints, sample.s, sample.y, sample.mass, None, *strata)
        gaps = np.full(len(sample.names), 1e-6)
        attributes = [one.attribute for one in self.constraints]
        np.maximum.at(gaps, attributes, curves.gaps(curves.functions.T @ scores))
        limited = any(limits.values())
        units = []
        for name, gap in zip(sample.names, gaps):
            units_of_limits = [self._unit(one, gap, sample) for one in limits[name]]
            unlimited = np.inf if limited else gap
            units.append(min(units_of_limits, default=unlimited))
        return [unit / min(units) for unit in units]

    def _unit(self, limit: Limit, gap: float, sample: LabelledRows) -> float:
        if limit.base == "gap":
            return gap * max(limit.value, 1e-3)
        bound = limit.bound(gap, sample.base_rate)
        return bound / self.units.scale if bound else gap

    def scores(
        self,
        place: int,
        fold: int,
        eta: np.ndarray,
        means: np.ndarray,
        strata: np.ndarray | None = None,
    ) -> np.ndarray:
        """Return the scores of rows at a trade-off, in the unit of y, from the coefficients of one
        fold. A decision is positive if its score exceeds the threshold.
        """
        inputs = self.inputs(eta, means, strata)
        outputs = self.family.outputs(self.parameters[place, fold], *inputs)
        scores = self.units.center + self.units.scale * outputs
        return np.clip(scores, 0.0, 1.0) if self.family.decides else scores

    def out_of_fold(
        self,
        place: int,
        fold: np.ndarray,
        eta: np.ndarray,
        means: np.ndarray,
        strata: np.ndarray | None = None,
    ) -> np.ndarray:
        """Return the score of each row from models and coefficients fitted on the other folds."""
        scores = np.empty(eta.shape)
        for j in range(fold.max() + 1):
            own = fold == j
            codes = None if strata is None else strata[own]
            scores[own] = self.scores(place, j, eta[own], means[own], codes)
        return scores
