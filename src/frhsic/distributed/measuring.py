"""Measure every trade-off of a fit on all rows, using sums over blocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import is_classifier

from frhsic.distributed.parts import ColumnEnds, Parts, SampledCells
from frhsic.estimators.constraints import Constraint, LabelledRows
from frhsic.estimators.engine import Engine
from frhsic.estimators.frontier import (
    RANK_RESAMPLES,
    RESAMPLES,
    TEST_RESAMPLES,
    Frontier,
    Gap,
)
from frhsic.parity.column import ColumnGap, GapOptions
from frhsic.parity.gap import independence_test, largest_gap
from frhsic.parity.local_means import Windows
from frhsic.parity.ranks import TENTHS, RankGap, RankSums
from frhsic.parity.sums import ScoreSums, summed_effective_rows
from frhsic.scoring import mean_and_error, weighted_moments

# Number of ranges, of equal mass in the sample, in which scores are counted for AUC; its error is
# at most the mass of a range.
RANGES = 1_024


class FrontierSums(NamedTuple):
    """Sums over rows from which trade-offs are measured.

    Attributes
    ----------
    rows
        Number of rows.
    base
        Sums of w and w y.
    losses
        Moments of the loss of each trade-off, (G, 5).
    right
        For each trade-off and class, the sums of w over all rows and over the correctly predicted
        rows, (G, 2, C).
    ranges
        Weight of the rows in each range of the score, for each of two classes, (G, 2, ranges).
    gaps
        For each trade-off and constraint, the sums of each column of scores.
    """

    rows: int
    base: np.ndarray
    losses: np.ndarray
    right: np.ndarray
    ranges: np.ndarray
    gaps: tuple[tuple[Any, ...], ...]


class SampledScores(NamedTuple):
    """Statistics of the scores at one trade-off in the sample: the edges of the score's ranges, and
    the mean and the extremes of each column whose gap is measured.
    """

    ranges: np.ndarray
    columns: list[ColumnEnds]


@dataclass(frozen=True, eq=False)
class ConstraintCells:
    """Cells along the attribute of a constraint and, if ranks are limited, the deciles of the score
    and the edges of the ranges between them for each trade-off.
    """

    constraint: Constraint
    sampled: SampledCells
    deciles: list[np.ndarray]
    edges: list[np.ndarray]

    @classmethod
    def of(
        cls, constraint: Constraint, sample: LabelledRows, scores: Sequence[np.ndarray], total: int
    ) -> ConstraintCells:
        """Learn the cells from a sample and, if ranks are limited, the deciles from the sample's
        scores; `total` is the total number of rows.
        """
        kept = np.flatnonzero(constraint.rows(sample.s, sample.y))
        mass = sample.mass[kept]
        cells = SampledCells.of(
            sample.s[kept, constraint.attribute],
            round(total * len(kept) / len(sample.y)),
            mass,
            sample.row_strata(kept),
            sample.n_strata,
        )
        deciles = [weighted_quantiles(own[kept], mass, TENTHS) for own in scores]
        between = np.append(TENTHS - 0.05, 0.95)
        edges = [
            np.union1d(own, weighted_quantiles(every[kept], mass, between))
            for own, every in zip(deciles, scores)
        ]
        return cls(constraint, cells, deciles, edges)

    def gaps(self, sums: Sequence[Any]) -> list[ColumnGap | RankGap]:
        """Return the gaps at each trade-off, given the sums over its columns."""
        cells = self.sampled.cells
        if self.edges:
            pairs = zip(sums, self.deciles)
            return [RankGap.from_sums(own, levels, cells) for (own,), levels in pairs]
        nodes = cells.stratum_nodes if cells.strata else cells.nodes
        windows = None
        gaps: list[ColumnGap | RankGap] = []
        for columns in sums:
            every = ScoreSums.stacked([with_unit_weights(own) for own in columns]).group_sums(nodes)
            windows = Windows(every) if windows is None else windows
            gaps.append(ColumnGap(every, windows, range(len(columns))))
        return gaps


def with_unit_weights(sums: ScoreSums) -> ScoreSums:
    """Rescale sums to weights with mean 1, and set the effective number of rows."""
    scale = sums.rows.sum() / sums.powers[0, 0].sum()
    powers = sums.powers * scale ** np.arange(1, 5)[:, None, None]
    return replace(sums, powers=powers, effective=summed_effective_rows(powers, None))


def weighted_quantiles(values: np.ndarray, weights: np.ndarray, ranks: np.ndarray) -> np.ndarray:
    """Return weighted quantiles: for each rank, the smallest value that at least this share of the
    rows do not exceed.
    """
    order = np.argsort(values, kind="stable")
    below = np.cumsum(weights[order])
    at = np.searchsorted(below, ranks * below[-1] * (1 - 1e-12))
    return np.asarray(values[order][at])


@dataclass(frozen=True, eq=False)
class FrontierPass:
    """Measures all trade-offs of a solved estimator on the rows of a block, using the models fitted
    without each fold, and statistics of scores and attributes from the sample.
    """

    model: Any
    engines: tuple[Engine, ...]
    constraints: tuple[ConstraintCells, ...]
    trade_offs: list[SampledScores]
    scale: float

    @classmethod
    def of(
        cls,
        model: Any,
        engines: tuple[Engine, ...],
        constraints: Sequence[Constraint],
        sample: LabelledRows,
        eta: np.ndarray,
        means: np.ndarray,
        total: int,
        mean_weight: float,
    ) -> FrontierPass:
        """Learn the ranges and cells from a sample with out-of-fold η and m; `total` is the total
        number of rows.
        """
        draft = cls(model, engines, (), [], 1 / mean_weight)
        served = draft.served(sample)
        sample = sample.at(served)
        count = len(model.solution_.parameters)
        scores = [draft.scores(at, sample, eta[served], means[served]) for at in range(count)]
        shares = np.linspace(0, 1, RANGES + 1)[1:-1]
        trade_offs = [
            SampledScores(
                np.quantile(own, shares, method="inverted_cdf"),
                [ColumnEnds.of(column) for column in draft.columns(own).T],
            )
            for own in scores
        ]
        ranked = scores if model.aim == "rank" else []
        cells = [ConstraintCells.of(one, sample, ranked, total) for one in constraints]
        return replace(draft, constraints=tuple(cells), trade_offs=trade_offs)

    def served(self, rows: LabelledRows) -> np.ndarray:
        """Return a mask of the rows to measure: if the predictor of one fold is used for all rows,
        these are the rows that it was not trained on.
        """
        if self.model.solution_.family.averages or self.model.folds_ is not None:
            return np.arange(len(rows.y))
        return np.flatnonzero(rows.fold == 0)

    def predicted(self, rows: LabelledRows) -> tuple[np.ndarray, np.ndarray]:
        """Return η, (n,) or (n, C), and m, (n, K), for rows, predicted by models fitted without the
        row's fold.
        """
        model = self.model
        predicted = np.empty((len(rows.y), len(self.engines[0].shares)))
        for fold, engine in enumerate(self.engines):
            own = np.flatnonzero(rows.fold == fold)
            if len(own):
                predicted[own] = engine.predict(rows.codes[own])[0]
        eta, means = model._eta_and_means(predicted)
        if model.uses_sensitive:
            constraints = [one.constraint for one in self.constraints]
            means = model._known_means(constraints, rows.s, eta)
        return eta, means

    def scores(
        self, place: int, rows: LabelledRows, eta: np.ndarray, means: np.ndarray
    ) -> np.ndarray:
        """Return the scores of rows at a trade-off, (n,) or (n, C)."""
        solution = self.model.solution_
        return np.asarray(solution.out_of_fold(place, rows.fold, eta, means, rows.strata))

    def columns(self, scores: np.ndarray) -> np.ndarray:
        """Return the columns whose gap is measured, (n, columns): scores or decisions."""
        solution = self.model.solution_
        if solution.family.decides:
            scores = (scores > solution.units.threshold).astype(np.float64)
        return scores.reshape(len(scores), -1)

    def sums(self, rows: LabelledRows) -> FrontierSums | None:
        """Return the sums over the rows of a block."""
        served = self.served(rows)
        # cells along s are faster to find for sorted rows
        rows = rows.at(served[np.argsort(rows.s[served, 0])])
        if not len(rows.y):
            return None
        model = self.model
        eta, means = self.predicted(rows)
        weights = rows.mass * self.scale
        codes = rows.y.astype(np.int64)
        classes = len(getattr(model, "classes_", ()))
        kept = [np.flatnonzero(one.constraint.rows(rows.s, rows.y)) for one in self.constraints]
        losses, right, ranges, gaps = [], [], [], []
        for place, known in enumerate(self.trade_offs):
            scores = self.scores(place, rows, eta, means)
            if not model.solution_.family.decides:
                losses.append(weighted_moments(model._losses(scores, rows.y), weights))
            if classes:
                predicted = (
                    scores.argmax(axis=1)
                    if scores.ndim == 2
                    else scores > model.solution_.units.threshold
                )
                each = [weights, weights * (predicted == rows.y)]
                right.append([np.bincount(codes, one, minlength=classes) for one in each])
            if classes == 2:
                at = codes * RANGES + np.searchsorted(known.ranges, scores)
                ranges.append(np.bincount(at, weights, minlength=2 * RANGES).reshape(2, RANGES))
            columns = self.columns(scores)
            gaps.append(
                tuple(
                    self._gap_sums(one, place, rows, x, columns[x])
                    for one, x in zip(self.constraints, kept)
                )
            )
        return FrontierSums(
            rows=len(rows.y),
            base=np.array([weights.sum(), weights @ rows.y]),
            losses=np.array(losses),
            right=np.array(right),
            ranges=np.array(ranges),
            gaps=tuple(gaps),
        )

    def _gap_sums(
        self,
        one: ConstraintCells,
        place: int,
        rows: LabelledRows,
        kept: np.ndarray,
        columns: np.ndarray,
    ) -> tuple[Any, ...]:
        """Return the sums of each column at a trade-off over the rows that a constraint applies
        to.
        """
        s = rows.s[kept, one.constraint.attribute]
        weights = None if rows.weights is None else rows.weights[kept] * self.scale
        strata = rows.row_strata(kept)
        if one.edges:
            places = one.sampled.own_strata(strata)
            ranks = columns[:, 0], s, weights, one.edges[place], one.sampled.cells, places
            return (RankSums.of(*ranks),)
        return one.sampled.sums([*columns.T], self.trade_offs[place].columns, s, weights, strata)

    def performance(self, sums: FrontierSums) -> dict[str, np.ndarray]:
        """Return the performance of each trade-off by name."""
        decides = self.model.solution_.family.decides
        if not is_classifier(self.model):
            each = [mean_and_error("squared_error", own) for own in sums.losses]
        else:
            each = []
            for i, (total, correct) in enumerate(sums.right):
                own = {} if decides else mean_and_error("log_loss", sums.losses[i])
                if len(total) == 2:
                    own["auc"] = auc_of_ranges(sums.ranges[i])
                own["accuracy"] = float(correct.sum() / total.sum())
                if len(total) == 2:
                    own["balanced_accuracy"] = float(np.mean(correct / total))
                each.append(own)
        return {name: np.array([one[name] for one in each]) for name in each[0]}

    def frontier(self, blocks: Parts) -> Frontier:
        """Return the frontier, measured over all rows."""
        model = self.model
        sums: FrontierSums = blocks.sum(self.sums)
        confidence = model.confidence or 0.95
        resamples = RANK_RESAMPLES if model.aim == "rank" else RESAMPLES
        options = GapOptions(confidence, resamples, seed=0, test=False)
        gaps: dict[str, tuple[Gap, ...]] = {}
        pvalues: dict[str, float] = {}
        for one, own in zip(self.constraints, zip(*sums.gaps)):
            name = str(model.sensitive_names_in_[one.constraint.attribute])
            each = one.gaps(own)
            results = [largest_gap(gap, options) for gap in each]
            path = [Gap(result.value, *result.interval) for result in results]
            gaps[name] = tuple(map(Gap.maximum, gaps.get(name, path), path))
            (pvalue,), _ = independence_test(each[0], GapOptions(0.95, TEST_RESAMPLES, seed=0))
            pvalues[name] = min(pvalues.get(name, 1.0), pvalue)
        base_rate = None
        if len(getattr(model, "classes_", ())) <= 2:
            base_rate = float(sums.base[1] / sums.base[0])
        frontier: Frontier = model._frontier(
            self.performance(sums), gaps, pvalues, base_rate, sums.rows
        )
        return frontier


def auc_of_ranges(weights: np.ndarray) -> float:
    """Return the AUC, given the weight of each class's rows in each range of scores, (2, ranges).
    Rows in the same range count as ties.
    """
    negative, positive = weights
    below = np.cumsum(negative) - negative / 2
    return float(positive @ below / (positive.sum() * negative.sum()))
