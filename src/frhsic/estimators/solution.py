"""Coefficients of the closed form for every trade-off and fold, and the scores that they give."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from frhsic.estimators.constraints import Constraint, GapCurve, LabelledRows
from frhsic.estimators.families import (
    FAMILIES,
    TIED,
    ClippedRanks,
    Family,
    FamilyName,
    Problem,
    SmoothFamily,
    Units,
)
from frhsic.estimators.solving import GAP_SHARES, solve
from frhsic.parity.limits import Limit

# Least share of the gap that a mixture with a constant aims at; closer to it hardly a prediction is
# left.
LEAST_MIXED = 0.1


@dataclass(frozen=True, eq=False)
class Solution:
    """What a fitted predictor consists of beside its models.

    `parameters` has the coefficients of each trade-off and fold, (G, J, P).
    """

    family: FamilyName
    constraints: tuple[Constraint, ...]
    parameters: np.ndarray
    units: Units

    @classmethod
    def fit(
        cls,
        family: FamilyName,
        sample: LabelledRows,
        constraints: tuple[Constraint, ...],
        eta: np.ndarray,
        means: np.ndarray,
        limits: Mapping[str, tuple[Limit, ...]],
    ) -> Self:
        """Find the coefficients of every trade-off without each fold; limits go by attribute.

        If some attributes have limits, the gaps along the others are left alone.
        """
        form = FAMILIES[family]
        units = Units.of(sample, eta, form.decides)
        solution = cls(family, constraints, np.zeros(0), units)
        scales = solution._gap_units(sample, eta, limits)

        def curves_of(rows: np.ndarray) -> list[GapCurve]:
            return [
                one.curve(sample.s[rows], sample.y[rows], sample.mass[rows], scales[one.attribute])
                for one in constraints
                if np.isfinite(scales[one.attribute])
            ]

        base, columns = form.inputs(eta, means, units)
        cost = sample.mass
        if units.threshold != 0.5:  # of rare decisions: balanced accuracy
            rate = units.threshold
            cost = cost * np.where(sample.y == 1, 0.5 / rate, 0.5 / (1 - rate))
        whole = Problem(base, columns, form.target(sample, units), cost / cost.sum())
        if isinstance(form, SmoothFamily):
            ridge = solution._ridge(form, sample, eta, means)
            whole = replace(whole, width=form.width(eta), ridge=ridge)
        rng = np.random.default_rng(sample.seed)
        parameters = []
        for j in range(sample.fold.max() + 1):
            rows = np.flatnonzero(sample.fold != j)
            if len(rows) > form.most_rows:
                rows = np.sort(rng.choice(rows, form.most_rows, replace=False))
            task = whole.at(rows)
            task = replace(task, weights=task.weights / task.weights.sum(), curves=curves_of(rows))
            parameters.append(_path(form, task))
        solution = replace(solution, parameters=np.stack(parameters, axis=1))
        if not isinstance(form, SmoothFamily) or not form.beats_constant:
            return solution
        whole = replace(whole, curves=curves_of(np.arange(len(sample.y))))
        return solution.above_constant(form, whole, sample.fold)

    def above_constant(self, form: SmoothFamily, task: Problem, fold: np.ndarray) -> Self:
        """Return the trade-offs without those that lose to a constant at the same gap, out of fold;
        all folds share this decision.

        A mixture of a predictor with a constant has as large a share of its gap, and at least this
        share of what it gains over the constant. So after the trade-off that gains most for its
        gap, one that gains less for its own is replaced by such a mixture, which has as large a gap
        or the one that was aimed at. Decisions cannot be mixed: those that are wrong more often
        than one and the same for everybody become that one.
        """
        constant = form.constant(task)
        parameters = self.parameters.copy()
        count = len(parameters)
        gains = np.zeros(count)
        predictions = [np.empty_like(np.column_stack([task.base])) for _ in range(count)]
        for j in range(parameters.shape[1]):
            held_out = np.flatnonzero(fold == j)
            part = task.at(held_out)
            gains += form.loss(part, constant)
            for i in range(count):
                own = parameters[i, j]
                gains[i] -= form.loss(part, own)
                scores = form.outputs(own, part.base, part.means)
                predictions[i][held_out] = np.reshape(scores, (len(held_out), -1))
        if form.decides:
            parameters[1:][gains[1:] < -TIED] = constant
            return replace(self, parameters=parameters)
        gaps = np.array([max(c.gap(f) / c.scale for c in task.curves) for f in predictions])
        gaps = np.maximum(gaps, 1e-12)
        best = int(np.argmax(gains / gaps))
        for i in range(best + 1, count):
            aim = min(gaps[i], max(GAP_SHARES[i], LEAST_MIXED) * gaps[0])
            share = min(aim / gaps[best], 1.0) if gains[best] > 0 else 0.0
            parameters[i] = constant + share * (parameters[best] - constant)
        return replace(self, parameters=parameters)

    def _ridge(
        self, form: SmoothFamily, sample: LabelledRows, eta: np.ndarray, means: np.ndarray
    ) -> np.ndarray:
        r"""Return the weight of the square of each coefficient while solving,
        :math:`r_k = v_k K J / (J - 1)^2 n` times the curvature of the loss, and the mean square of
        the hat function of a rank family.

        Rows show the errors of :math:`\sum_k c_k m_k` for the models of J - 1 folds, and the
        coefficients serve another model. With p degrees of freedom its errors have the variance
        :math:`|c|^2 v p J / (J - 1) n`, where v is the variance of :math:`\varphi_k(S)` about
        :math:`m_k`, with 0 for the functions of rows without S. Rows show p (J - 1) directions
        of them, so for K functions about a share K / p (J - 1) is not known.
        """
        mass = sample.mass / sample.mass.sum()
        targets = np.column_stack([one.targets(sample.s, sample.y) for one in self.constraints])
        folds = sample.fold.max() + 1
        count = means.shape[1]
        variance = mass @ (targets - means) ** 2
        unknown = variance * count * folds / (folds - 1) ** 2 * float(mass @ mass)
        unknown *= form.curvature(eta, mass)
        shares = mass @ form.inputs(eta, np.ones_like(means), self.units)[1] ** 2
        classes = eta.shape[1] if eta.ndim == 2 else 1
        return np.repeat(shares * np.tile(unknown, len(shares) // count), classes)

    def _gap_units(
        self, sample: LabelledRows, eta: np.ndarray, limits: Mapping[str, tuple[Limit, ...]]
    ) -> list[float]:
        """Return what the gap along each attribute is divided by while solving: its limit, or its
        size, over the least of these. Gaps of scores stand in for those of ranks, which only counts
        where limits of several attributes mix numbers and shares.
        """
        scores = np.reshape(self.units.standard(eta), (len(eta), -1))
        if self.form.decides:
            scores = (scores > self.units.threshold).astype(np.float64)
        gaps = np.full(len(sample.names), 1e-6)
        for one in self.constraints:
            gap = one.curve(sample.s, sample.y, sample.mass).gap(scores)
            gaps[one.attribute] = max(gaps[one.attribute], gap)
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

    @property
    def form(self) -> Family:
        """The family by its name."""
        return FAMILIES[self.family]

    def at(self, position: float) -> np.ndarray:
        """Return the coefficients of each fold, (J, P), at a place between two trade-offs."""
        below = min(int(position), len(self.parameters) - 2)
        low, high = self.parameters[below : below + 2]
        return np.asarray(low + (position - below) * (high - low))

    def scores(self, parameters: np.ndarray, eta: np.ndarray, means: np.ndarray) -> np.ndarray:
        """Return scores in the units of y; for decisions, the distance to zero."""
        base, columns = self.form.inputs(eta, means, self.units)
        return self.units.center + self.units.scale * self.form.outputs(parameters, base, columns)

    def out_of_fold(
        self, position: float, fold: np.ndarray, eta: np.ndarray, means: np.ndarray
    ) -> np.ndarray:
        """Return the score of each row by the models and coefficients that were fitted on the rows
        of the other folds.
        """
        scores = np.empty(eta.shape)
        for j, own in enumerate(self.at(position)):
            scores[fold == j] = self.scores(own, eta[fold == j], means[fold == j])
        return scores


def _path(form: Family, task: Problem) -> np.ndarray:
    """Return the parameters for each trade-off, (G, P)."""
    if isinstance(form, ClippedRanks):
        return form.moves(task, GAP_SHARES)
    assert isinstance(form, SmoothFamily)
    return solve(form, task)
