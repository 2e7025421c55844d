"""Coefficients of the closed form for every trade-off and fold, and the scores that they give."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from frhsic.estimators.constraints import Constraint, GapCurves, LabelledRows
from frhsic.estimators.deciding import TIED, Decisions
from frhsic.estimators.families import Family, NumberRanks, Problem, SmoothFamily, Units
from frhsic.estimators.solving import GAP_SHARES, solve
from frhsic.parity.limits import Limit

# Least share of the gap that a mixture with a constant aims at; closer to it hardly a prediction is
# left.
LEAST_MIXED = 0.1

# Trade-offs from one that is solved to the next: the others lie between their parameters.
BETWEEN = 4


@dataclass(frozen=True, eq=False)
class Solution:
    """What a fitted predictor consists of beside its models.

    Attributes
    ----------
    family
        How scores are made.
    constraints
        The gaps that are limited.
    parameters
        The coefficients of each trade-off and fold, (G, J, P).
    units
        Units of scores.
    """

    family: Family
    constraints: tuple[Constraint, ...]
    parameters: np.ndarray
    units: Units

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
        """Find the coefficients of every trade-off without each fold; limits go by attribute.

        If some attributes have limits, the gaps along the others are left alone.
        """
        units = Units.of(sample, eta, family.decides)
        solution = cls(family, constraints, np.zeros(0), units)
        scales = solution._gap_units(sample, eta, limits)

        limited = [one for one in constraints if np.isfinite(scales[one.attribute])]

        def curves_of(rows: slice | np.ndarray) -> GapCurves:
            own = [scales[one.attribute] for one in limited]
            return GapCurves.of(limited, sample.s[rows], sample.y[rows], sample.mass[rows], own)

        base, columns = family.inputs(eta, means, units)
        mass = sample.mass / sample.mass.sum()
        ridge = solution._ridge(sample, eta, means)
        y = family.target(sample, units)
        whole = Problem(base, columns, y, mass, threshold=units.threshold, ridge=ridge)
        rng = np.random.default_rng(sample.seed)
        parameters = []
        for j in range(sample.fold.max() + 1):
            rows = np.flatnonzero(sample.fold != j)
            if len(rows) > family.most_rows:
                rows = np.sort(rng.choice(rows, family.most_rows, replace=False))
            task = whole.at(rows)
            task = replace(task, weights=task.weights / task.weights.sum(), curves=curves_of(rows))
            if isinstance(family, SmoothFamily):
                parameters.append(solve(family, task))
            else:
                assert isinstance(family, Decisions)
                parameters.append(family.path(task, GAP_SHARES))
        solution = replace(solution, parameters=np.stack(parameters, axis=1))
        if not isinstance(family, NumberRanks):
            whole = replace(whole, curves=curves_of(slice(None)))
            solution = solution.above_constant(whole, sample.fold)
        return solution.interpolated()

    def interpolated(self) -> Self:
        """Return the trade-offs with more of them between two neighbours."""
        steps = np.arange(BETWEEN)[:, None, None, None] / BETWEEN
        between = self.parameters[:-1] + steps * np.diff(self.parameters, axis=0)
        path = np.concatenate(np.swapaxes(between, 0, 1))
        return replace(self, parameters=np.append(path, self.parameters[-1:], axis=0))

    def above_constant(self, task: Problem, fold: np.ndarray) -> Self:
        """Return the trade-offs without those that lose to a constant at the same gap, out of fold;
        all folds share this decision.

        A mixture of a predictor with a constant has as large a share of its gap, and at least this
        share of what it gains over the constant. So after the trade-off that gains most for its
        gap, one that gains less for its own is replaced by such a mixture, which has as large a gap
        or the one that was aimed at. Decisions cannot be mixed: those that lose more than one and
        the same for everybody become that one, which has no gap and ends the path.
        """
        family = self.family
        assert isinstance(family, (SmoothFamily, Decisions))
        curves = task.curves
        assert curves is not None
        constant = family.constant(task)
        parameters = self.parameters.copy()
        count = len(parameters)
        gains = np.zeros(count)
        predictions = [np.empty_like(np.column_stack([task.base])) for _ in range(count)]
        for j in range(parameters.shape[1]):
            held_out = np.flatnonzero(fold == j)
            part = task.at(held_out)
            gains += family.loss(part, constant)
            for i in range(count):
                own = parameters[i, j]
                gains[i] -= family.loss(part, own)
                scores = family.outputs(own, part.base, part.columns)
                predictions[i][held_out] = np.reshape(scores, (len(held_out), -1))
        if family.decides:
            same = parameters[-1:].copy()
            same[..., 2:] = constant[2:]  # η as it was recalibrated does not count
            parameters[1:][gains[1:] < -TIED] = same
            return replace(self, parameters=np.append(parameters, same, axis=0))
        gaps = np.maximum([curves.largest(outputs) for outputs in predictions], 1e-12)
        best = int(np.argmax(gains / gaps))
        for i in range(best + 1, count):
            aim = min(gaps[i], max(GAP_SHARES[i], LEAST_MIXED) * gaps[0])
            share = min(aim / gaps[best], 1.0) if gains[best] > 0 else 0.0
            parameters[i] = constant + share * (parameters[best] - constant)
        return replace(self, parameters=parameters)

    def _ridge(self, sample: LabelledRows, eta: np.ndarray, means: np.ndarray) -> np.ndarray:
        r"""Return the weight of the square of each coefficient while solving,
        :math:`r_k = v_k K J / (J - 1)^2 n` times the curvature of the loss, and the mean square of
        the rank, from below and above, of a rank family.

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
        unknown *= self.family.curvature(eta, mass)
        shares = mass @ self.family.inputs(eta, np.ones_like(means), self.units)[1] ** 2
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
        if self.family.decides:
            scores = (scores > 0).astype(np.float64)
        curves = GapCurves.of(self.constraints, sample.s, sample.y, sample.mass)
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

    def scores(self, place: int, fold: int, eta: np.ndarray, means: np.ndarray) -> np.ndarray:
        """Return the scores of rows at a trade-off by the coefficients of one fold, in the units of
        y; a decision is whether they exceed its threshold.
        """
        inputs = self.family.inputs(eta, means, self.units)
        outputs = self.family.outputs(self.parameters[place, fold], *inputs)
        scores = self.units.center + self.units.scale * outputs
        return np.clip(scores, 0.0, 1.0) if self.family.decides else scores

    def out_of_fold(
        self, place: int, fold: np.ndarray, eta: np.ndarray, means: np.ndarray
    ) -> np.ndarray:
        """Return the score of each row by the models and coefficients that were fitted on the rows
        of the other folds.
        """
        scores = np.empty(eta.shape)
        for j in range(fold.max() + 1):
            own = fold == j
            scores[own] = self.scores(place, j, eta[own], means[own])
        return scores
