"""Measure every trade-off of a fit on all rows, by sums over blocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import is_classifier

from frhsic.distributed.engine import sum_over_blocks
from frhsic.distributed.running import ColumnSummary
from frhsic.estimators.constraints import Constraint, LabelledRows
from frhsic.estimators.engine import Engine
from frhsic.estimators.frontier import RESAMPLES, TEST_RESAMPLES, Frontier, Gap
from frhsic.estimators.parity import mean_and_error, weighted_moments
from frhsic.parity.column import ColumnGap, GapOptions
from frhsic.parity.gap import largest_gap
from frhsic.parity.local_means import Windows
from frhsic.parity.ranks import TENTHS, RankGap, RankSums
from frhsic.parity.sums import Cells, ScoreSums, summed_effective_rows
from frhsic.scoring import auc_and_influence

# Scores are counted in ranges of equal mass in the sample, for AUC and deciles, whose error is at
# most the mass of a range.
RANGES = 1_024


@dataclass(frozen=True, eq=False)
class Predictions:
    """η, (n,) or (n, C), and m, (n, K), of the rows of a block, by models without their folds."""

    rows: LabelledRows
    eta: np.ndarray
    means: np.ndarray

    @classmethod
    def of(cls, model: Any, rows: LabelledRows, eta: np.ndarray, means: np.ndarray) -> Predictions:
        """Return the rows that are measured: where one fold's predictor serves, those that it has
        not seen.
        """
        if model.solution_.family.averages or model.folds_ is not None:
            return cls(rows, eta, means)
        served = rows.fold == 0
        return cls(rows.at(served), eta[served], means[served])


@dataclass(frozen=True, eq=False)
class Predictor:
    """The models that predict rows of each fold without it."""

    model: Any
    constraints: tuple[Constraint, ...]
    engines: tuple[Engine, ...]

    def __call__(self, block: LabelledRows) -> Predictions:
        """Return what they predict of the rows of a block."""
        model = self.model
        predicted = np.empty((len(block.y), len(self.engines[0].shares)))
        for fold, engine in enumerate(self.engines):
            own = block.fold == fold
            if own.any():
                predicted[own] = engine.predict(block.codes[own])[0]
        eta, means = model._eta_and_means(predicted)
        if model.uses_sensitive:
            means = model._known_means(self.constraints, block.s, eta)
        return Predictions.of(model, block, eta, means)


@dataclass(frozen=True, eq=False)
class Extremes:
    """Smallest and largest of some columns, (G,); ``+`` joins parts."""

    low: np.ndarray
    high: np.ndarray

    def __add__(self, other: Extremes) -> Extremes:
        return Extremes(np.minimum(self.low, other.low), np.maximum(self.high, other.high))


class Outline(NamedTuple):
    """Sums over rows of what performance is made of, for each trade-off, and what sums over cells
    need to know.

    Attributes
    ----------
    rows
        Number of rows.
    base
        Sums of w and w y.
    losses
        Moments of the loss of each trade-off, (G, 5).
    right
        Of each class, sums of w and of w of the rows that are predicted right, (G, C, 2).
    ranges
        Weight of the rows of each of two classes in each range of the score, (G, 2, ranges).
    extremes
        Of the scores that gaps are measured on.
    levels
        For each constraint, the values of its attribute.
    score_ranges
        For each constraint, weight in each range of the score, (G, ranges), if ranks are limited.
    """

    rows: int
    base: np.ndarray
    losses: np.ndarray
    right: np.ndarray
    ranges: np.ndarray
    extremes: Extremes
    levels: tuple[ColumnSummary | None, ...]
    score_ranges: tuple[np.ndarray, ...]


@dataclass(frozen=True, eq=False)
class Measure:
    """What is needed to measure rows: the estimator with its solution, the constraints, and for
    each trade-off the ends of the score ranges, (G, ranges - 1).
    """

    model: Any
    constraints: tuple[Constraint, ...]
    ends: np.ndarray
    scale: float

    def scores(self, sample: Predictions, place: int) -> np.ndarray:
        """Return the scores of rows at a trade-off, (n,) or (n, C)."""
        solution = self.model.solution_
        rows = sample.rows
        return np.asarray(
            solution.out_of_fold(place, rows.fold, sample.eta, sample.means, rows.strata)
        )

    def columns(self, scores: np.ndarray) -> np.ndarray:
        """Return what a gap is measured on, (n, columns): scores, or decisions."""
        solution = self.model.solution_
        if solution.family.decides:
            scores = (scores > solution.units.threshold).astype(np.float64)
        return scores.reshape(len(scores), -1)

    def outline(self, sample: Predictions) -> Outline | None:
        """Return what the first pass sums over the rows of a block."""
        rows = sample.rows
        model = self.model
        if not len(rows.y):
            return None
        weights = rows.mass * self.scale
        ranked = model.aim == "rank"
        kept = [one.rows(rows.s, rows.y) for one in self.constraints]
        losses, right, ranges, extremes, score_ranges = [], [], [], [], []
        for place, ends in enumerate(self.ends):
            scores = self.scores(sample, place)
            columns = self.columns(scores)
            extremes.append((columns.min(axis=0), columns.max(axis=0)))
            if not model.solution_.family.decides:
                losses.append(weighted_moments(model._losses(scores, rows.y), weights))
            if is_classifier(model):
                predicted = (
                    scores.argmax(axis=1)
                    if scores.ndim == 2
                    else scores > model.solution_.units.threshold
                )
                codes = rows.y.astype(np.int64)
                count = len(model.classes_)
                each = [weights, weights * (predicted == rows.y)]
                right.append([np.bincount(codes, one, minlength=count) for one in each])
            if scores.ndim == 1:
                at = np.searchsorted(ends, scores)
                size = len(ends) + 1
                if is_classifier(model):
                    both = np.bincount(codes * size + at, weights, minlength=2 * size)
                    ranges.append(both.reshape(2, size))
                if ranked:
                    score_ranges.append(
                        [np.bincount(at[x], weights[x], minlength=size) for x in kept]
                    )
        return Outline(
            rows=len(rows.y),
            base=np.array([weights.sum(), weights @ rows.y]),
            losses=np.array(losses),
            right=np.array(right),
            ranges=np.array(ranges),
            extremes=Extremes(*np.array(extremes).transpose(1, 0, 2)),
            levels=tuple(
                ColumnSummary.from_values(rows.s[x, one.attribute], counted=True)
                for one, x in zip(self.constraints, kept)
            ),
            score_ranges=tuple(np.array(score_ranges).transpose(1, 0, 2)) if ranked else (),
        )

    def performance(self, outline: Outline) -> dict[str, np.ndarray]:
        """Return the performance of each trade-off by name."""
        decides = self.model.solution_.family.decides
        if not is_classifier(self.model):
            each = [mean_and_error("squared_error", own) for own in outline.losses]
        else:
            each = []
            for i, (total, correct) in enumerate(outline.right):
                own = {} if decides else mean_and_error("log_loss", outline.losses[i])
                if len(total) == 2:
                    own["auc"] = auc_of_ranges(outline.ranges[i])
                own["accuracy"] = float(correct.sum() / total.sum())
                if len(total) == 2:
                    own["balanced_accuracy"] = float(np.mean(correct / total))
                each.append(own)
        return {name: np.array([one[name] for one in each]) for name in each[0]}


def auc_of_ranges(weights: np.ndarray) -> float:
    """Return the AUC of rows whose scores are known by their range, (2, ranges); rows of one range
    count as ties.
    """
    places = np.tile(np.arange(weights.shape[1], dtype=np.float64), 2)
    y = np.repeat([0.0, 1.0], weights.shape[1])
    filled = weights.ravel() > 0
    return auc_and_influence(places[filled], y[filled], weights.ravel()[filled])[0]


@dataclass(frozen=True, eq=False)
class GapPass:
    """What the second pass needs: for each constraint its cells and, where ranks are limited, the
    edges of ranges of the score of each trade-off; of each trade-off, for each column of scores, a
    center, (G, columns), and extremes.
    """

    measure: Measure
    cells: tuple[AttributeCells, ...]
    edges: tuple[tuple[np.ndarray, ...], ...]
    centers: np.ndarray
    extremes: Extremes

    def sums(self, sample: Predictions) -> tuple[Any, ...] | None:
        """Return, for each constraint and trade-off, the sums of each column."""
        rows = sample.rows
        constraints = self.measure.constraints
        if not len(rows.y):
            return None
        kept = [one.rows(rows.s, rows.y) for one in constraints]
        weights = None if rows.weights is None else rows.weights * self.measure.scale
        result: list[list[Any]] = [[] for _ in kept]
        for place in range(len(self.centers)):
            columns = self.measure.columns(self.measure.scores(sample, place))
            for i, (one, x) in enumerate(zip(constraints, kept)):
                own = None if weights is None else weights[x]
                s = rows.s[x, one.attribute]
                strata = self.cells[i].strata(rows.row_strata(x))
                result[i].append(self._sums(i, place, columns[x], s, own, strata))
        return tuple(map(tuple, result))

    def _sums(
        self,
        i: int,
        place: int,
        columns: np.ndarray,
        s: np.ndarray,
        weights: np.ndarray | None,
        strata: np.ndarray | None,
    ) -> Any:
        cells = self.cells[i].cells
        if self.edges:
            return RankSums.of(columns[:, 0], s, weights, self.edges[i][place], cells, strata)
        centers = self.centers[place].tolist()
        ends = zip(self.extremes.low[place].tolist(), self.extremes.high[place].tolist())
        each = zip(columns.T, centers, ends)
        return tuple(
            cells.sums(column, s, center, own, weights, strata) for column, center, own in each
        )

    def gaps(self, i: int, sums: Sequence[Any], deciles: Sequence[np.ndarray]) -> list[Any]:
        """Return the gaps of each trade-off along one constraint, each of some columns."""
        cells = self.cells[i].cells
        if self.edges:
            pairs = zip(sums, deciles)
            return [[RankGap.from_sums(own, levels, cells)] for own, levels in pairs]
        nodes = cells.stratum_nodes if cells.strata else cells.nodes
        windows = None
        gaps = []
        for columns in sums:
            every = [with_unit_weights(own).group_sums(nodes) for own in columns]
            windows = Windows(every[0]) if windows is None else windows
            gaps.append([ColumnGap(own, windows, number) for number, own in enumerate(every)])
        return gaps


def with_unit_weights(sums: ScoreSums) -> ScoreSums:
    """Return the sums for weights with mean 1, with their effective number of rows."""
    scale = sums.rows.sum() / sums.powers[0, 0].sum()
    powers = sums.powers * scale ** np.arange(1, 5)[:, None, None]
    return replace(sums, powers=powers, effective=summed_effective_rows(powers, None))


def range_quantiles(weights: np.ndarray, ends: np.ndarray, ranks: np.ndarray) -> np.ndarray:
    """Return the smallest ends of ranges that at least some shares of the rows do not exceed."""
    below = np.cumsum(weights)
    at = np.searchsorted(below, ranks * below[-1] * (1 - 1e-12))
    return np.asarray(ends[np.minimum(at, len(ends) - 1)])


def measure_frontier(
    model: Any,
    constraints: tuple[Constraint, ...],
    sample: Predictions,
    blocks: Sequence[Any],
    mean_weight: float,
) -> Frontier:
    """Return the frontier of a solved estimator, measured over all rows: delayed predictions of
    blocks; a sample of them is here.
    """
    places = range(len(model.solution_.parameters))
    draft = Measure(model, constraints, np.zeros((0, 0)), 1 / mean_weight)
    scores = [draft.scores(sample, place) for place in places]
    shares = np.linspace(0, 1, RANGES + 1)[1:-1]
    ends = np.zeros((len(places), 0))
    if scores[0].ndim == 1:
        ends = np.quantile(scores, shares, axis=1, method="inverted_cdf").T
    measure = replace(draft, ends=ends)
    outline: Outline = sum_over_blocks(blocks, measure.outline)
    ranked = model.aim == "rank"
    edges = []
    deciles = []
    for own in outline.score_ranges:
        levels = [range_quantiles(*pair, TENTHS) for pair in zip(own, ends)]
        between = [range_quantiles(*pair, TENTHS - 0.05) for pair in zip(own, ends)]
        last = [range_quantiles(*pair, np.array([0.95])) for pair in zip(own, ends)]
        deciles.append(levels)
        edges.append(tuple(np.unique(np.concatenate(each)) for each in zip(levels, between, last)))
    gap_pass = GapPass(
        measure,
        tuple(
            AttributeCells.of(one, levels, sample.rows, outline.rows)
            for one, levels in zip(constraints, outline.levels)
        ),
        tuple(edges) if ranked else (),
        np.array([draft.columns(own).mean(axis=0) for own in scores]),
        outline.extremes,
    )
    sums = sum_over_blocks(blocks, gap_pass.sums)
    confidence = model.confidence or 0.95
    options = GapOptions(confidence, RESAMPLES, seed=0, test=False)
    gaps: dict[str, tuple[Gap, ...]] = {}
    pvalues: dict[str, float] = {}
    for i, one in enumerate(constraints):
        name = sample.rows.names[one.attribute]
        each = gap_pass.gaps(i, sums[i], deciles[i] if ranked else ())
        results = [largest_gap(columns, options) for columns in each]
        path = [Gap(result.value, *result.interval) for result in results]
        gaps[name] = tuple(map(Gap.maximum, gaps.get(name, path), path))
        test = largest_gap(each[0], GapOptions(0.95, TEST_RESAMPLES, seed=0))
        pvalues[name] = min(pvalues.get(name, 1.0), test.pvalue)
    base_rate = None
    if len(getattr(model, "classes_", ())) <= 2:
        base_rate = float(outline.base[1] / outline.base[0])
    frontier: Frontier = model._frontier(
        measure.performance(outline), gaps, pvalues, base_rate, outline.rows
    )
    return frontier


@dataclass(frozen=True, eq=False)
class AttributeCells:
    """Cells along an attribute, and the place of each stratum among those that have cells: others
    have no row in the sample and count as the last.
    """

    cells: Cells
    places: np.ndarray | None

    @classmethod
    def of(
        cls, constraint: Constraint, levels: ColumnSummary | None, sample: LabelledRows, rows: int
    ) -> AttributeCells:
        """Return the cells of all values, where they were counted, else of those of the sample."""
        kept = constraint.rows(sample.s, sample.y)
        s = sample.s[kept, constraint.attribute]
        mass = sample.mass[kept]
        strata = sample.row_strata(kept)
        counted = None if levels is None or sample.weights is not None else levels.counts
        if counted is None:
            whole = sampled_cells(s, mass, rows, 1)
        else:
            counted = counted.sort_index()
            counts = np.asarray(counted, dtype=np.int64)
            whole = Cells.from_values(counted.index.to_numpy(), counts, rows)
        if strata is None:
            return cls(whole, None)
        present, own = np.unique(strata, return_inverse=True)
        places = np.full(sample.n_strata, len(present) - 1)
        places[present] = np.arange(len(present))
        parts = []
        for number in range(len(present)):
            x = own == number
            size = round(rows * x.mean())
            parts.append(sampled_cells(s[x], mass[x], size, len(present)))
        return cls(whole.with_strata(parts), places)

    def strata(self, codes: np.ndarray | None) -> np.ndarray | None:
        """Return the places of the strata of rows."""
        return None if codes is None or self.places is None else self.places[codes]


def sampled_cells(s: np.ndarray, mass: np.ndarray, rows: int, strata: int) -> Cells:
    """Return the cells along the values of a sample of so many rows."""
    values, place = np.unique(s, return_inverse=True)
    counts = np.bincount(place).astype(np.int64)
    weights = np.bincount(place, mass).astype(np.float64)
    return Cells.from_values(values, counts, rows, weights, None, strata)
