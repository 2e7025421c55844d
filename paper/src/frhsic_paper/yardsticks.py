r"""Performance at equal dependence, by three yardsticks that shrinking the scores cannot win, and
how records are read.

* log loss (squared error for numbers) at equal GDP of the scores;
* AUC at equal rank gap, see :func:`frhsic.parity.rank_gap`;
* accuracy at equal GDP of the decisions at 1/2. Where fewer than a fifth of the training rows are
  positive: balanced accuracy, and decisions at the training base rate.

The paper's own yardstick, accuracy at 1/2 against the GDP of the scores, is no trade-off: p → 1/2 +
t(p − 1/2) keeps every decision and drives GDP to zero. It is shown beside the others and counted
nowhere.

A path is the points of a method, from no constraint to the strictest. Those that no other beats in
both gap and performance are its front, and the performance at a level is interpolated linearly
between two neighbours on it: a mean of two scores does at least as well in log loss, and a random
choice between two decisions as well in accuracy. For the same reason a level below the smallest gap
of the path is read between its last point and a constant, and counted as not reached. No such thing
holds for AUC: there, neighbours that are more than a quarter of the reference gap apart are not
interpolated, the one with the smaller gap counts, and a level below the smallest gap is lost: it
counts as AUC 1/2. Levels are shares of the gap of the reference, boosted trees without constraint,
on the same rows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import t as student
from sklearn.metrics import log_loss, roc_auc_score

from frhsic.parity import gdp, rank_gap
from frhsic_paper.printed import dataset_name, method_name
from frhsic_paper.table import Cell, Listed, Table

Frame = Any
"""A pandas table whose columns are known by name alone, which its types cannot say."""

LEVELS = (0.75, 0.5, 0.25)
"""Shares of the reference gap at which performance is read."""

RARE = 0.2
"""Base rate below which decisions are made at the base rate and judged by balanced accuracy."""

REFERENCE, CONSTANT, CONTRACTED = "reference", "constant", "contracted, no penalty"
"""Boosted trees without constraint, the best constant, and the reference contracted towards 1/2."""

STEPS = np.linspace(0, 1, 16)
"""Shares of the way from no constraint to the strictest at which paths have points."""


class Yardstick(NamedTuple):
    """Columns of a record: a gap, and a performance whose sign makes it a loss."""

    gap: str
    performance: str
    sign: int
    aim: str


YARDSTICKS = {
    "log loss or squared error at equal GDP": Yardstick("gdp", "loss", 1, "score"),
    "AUC at equal rank gap": Yardstick("rank_gap", "auc", -1, "rank"),
    "accuracy at equal GDP of decisions": Yardstick("gdp_decisions", "hits", -1, "decision"),
}
PAPER_YARDSTICK = Yardstick("gdp", "accuracy", -1, "score")


# Tests over splits that share rows

LEVEL = 0.05
"""Of the tests; one less it is the confidence of intervals."""


@dataclass(frozen=True)
class Corrected:
    """A mean difference over splits that share rows: its standard error, 95 % interval and
    two-sided p-value.
    """

    mean: float
    error: float
    low: float
    high: float
    pvalue: float


def corrected_t(differences: Sequence[float] | np.ndarray, test_per_training: float) -> Corrected:
    r"""Return the corrected resampled t-test of Nadeau and Bengio (2003).

    :math:`t = \bar d \big/ \sqrt{(1/J + n_{\mathrm{test}}/n_{\mathrm{train}})\, s^2}` with J − 1
    degrees of freedom, where :math:`\bar d` and :math:`s^2` are mean and variance of the
    differences of J splits. The second term is for rows that splits share; with 0 this is the
    paired t-test. One split allows no test: its p-value is 1.

    Examples
    --------
    >>> test = corrected_t([0.01, 0.03, 0.02, 0.04], 0.25)
    >>> round(test.mean, 3), round(test.error, 4), round(test.pvalue, 2)
    (0.025, 0.0091, 0.07)
    """
    d = np.asarray(differences, dtype=float)
    if test_per_training < 0:
        raise ValueError(
            f"test_per_training={test_per_training}; pass test rows divided by training rows."
        )
    mean, splits = float(d.mean()), len(d)
    if splits < 2:
        return Corrected(mean, math.nan, -math.inf, math.inf, 1.0)
    error = math.sqrt((1 / splits + test_per_training) * float(d.var(ddof=1)))
    if error == 0:
        return Corrected(mean, 0.0, mean, mean, 1.0 if mean == 0 else 0.0)
    half = error * float(student.ppf(1 - LEVEL / 2, splits - 1))
    return Corrected(
        mean, error, mean - half, mean + half, float(2 * student.sf(abs(mean) / error, splits - 1))
    )


def holm(pvalues: Sequence[float]) -> list[float]:
    """Return Holm's step-down adjusted p-values, in the order given.

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    adjusted = [1.0] * len(pvalues)
    running = 0.0
    for rank, index in enumerate(sorted(range(len(pvalues)), key=lambda i: pvalues[i])):
        running = max(running, min(1.0, (len(pvalues) - rank) * pvalues[index]))
        adjusted[index] = running
    return adjusted


# Measures


def decided(scores: np.ndarray, base_rate: float) -> np.ndarray:
    """Return decisions 0/1: at 1/2, or at the base rate where positives are rare."""
    return (scores > (base_rate if base_rate < RARE else 0.5)).astype(float)


def measured(
    scores: np.ndarray | None,
    y: np.ndarray,
    s: np.ndarray,
    base_rate: float | None,
    decisions: np.ndarray | None = None,
) -> dict[str, float]:
    """Return performance and gaps of one score, or of decisions alone.

    Parameters
    ----------
    scores
        Probabilities, or predictions of a number; None where a method only decides.
    base_rate
        Share of positive training rows; None for a number.
    decisions
        Decisions 0/1 or their probabilities, where a method has its own.

    Examples
    --------
    Contraction towards 1/2 halves GDP and changes neither accuracy nor what depends on the order
    alone.

    >>> rng = np.random.default_rng(0)
    >>> s, noise = rng.uniform(size=(2, 500))
    >>> y = (s + noise > 1).astype(float)
    >>> wide, narrow = (measured(0.5 + share * (s - 0.5), y, s, 0.5) for share in (1.0, 0.5))
    >>> round(narrow["gdp"] / wide["gdp"], 6), narrow["loss"] > wide["loss"]
    (0.5, True)
    >>> all(narrow[name] == wide[name] for name in ("accuracy", "auc", "rank_gap", "gdp_decisions"))
    True
    """
    numbers: dict[str, float] = {}
    if scores is not None:
        gap, spread = float(gdp(scores, s, resamples=0)), float(scores.std())
        numbers = {
            "spread": spread,
            "gdp": gap,
            "standardized_gdp": gap / spread if spread > 0 else 0.0,
        }
        numbers["rank_gap"] = float(rank_gap(scores, s, resamples=0))
    if base_rate is None:
        assert scores is not None
        return numbers | {"loss": float(np.mean((scores - y) ** 2))}
    if scores is not None:
        numbers["loss"] = float(log_loss(y, np.clip(scores, 1e-6, 1 - 1e-6), labels=[0, 1]))
        numbers |= {
            "brier": float(np.mean((scores - y) ** 2)),
            "auc": float(roc_auc_score(y, scores)),
        }
        numbers["accuracy"] = float(np.mean((scores > 0.5) == y))
        decisions = decided(scores, base_rate) if decisions is None else decisions
    assert decisions is not None
    negative, positive = (float(np.mean(decisions[y == label])) for label in (0, 1))
    balanced, accuracy = (
        (1 + positive - negative) / 2,
        float(np.mean(np.where(y == 1, decisions, 1 - decisions))),
    )
    numbers |= {
        "balanced_accuracy": balanced,
        "gdp_decisions": float(gdp(decisions, s, resamples=0)),
    }
    return numbers | {"hits": balanced if base_rate < RARE else accuracy}


def constant(y: np.ndarray, base_rate: float | None, mean: float) -> dict[str, float]:
    """Return what the training mean gives, which has no gap at all."""
    f = np.full(len(y), mean)
    numbers = dict.fromkeys(("spread", "gdp", "standardized_gdp", "rank_gap"), 0.0)
    if base_rate is None:
        return numbers | {"loss": float(np.mean((f - y) ** 2))}
    accuracy = float(np.mean((mean > 0.5) == y))
    numbers |= {
        "loss": float(log_loss(y, f, labels=[0, 1])),
        "brier": float(np.mean((f - y) ** 2)),
        "auc": 0.5,
    }
    numbers |= {"accuracy": accuracy, "balanced_accuracy": 0.5, "gdp_decisions": 0.0}
    return numbers | {"hits": 0.5 if base_rate < RARE else accuracy}


# Reading of paths


class Reading(NamedTuple):
    """The loss of a path at a level, and whether the path itself reaches the level."""

    loss: float
    reached: bool


def at_level(
    gap: np.ndarray, loss: np.ndarray, level: float, constant: float, widest: float = np.inf
) -> Reading:
    """Return the loss of a path at a gap, read off its front.

    `constant` is the loss of a constant. Below the smallest gap the last point is mixed with it, or
    with a finite `widest` lost to it. Where neighbours on the front are further apart than
    `widest`, the one with the smaller gap counts.

    Examples
    --------
    >>> gap, loss = np.array([2.0, 4.0, 5.0, 8.0]), np.array([5.0, 1.0, 2.0, 0.0])
    >>> at_level(gap, loss, 6, 9.0), at_level(gap, loss, 6, 9.0, widest=3)
    (Reading(loss=0.5, reached=True), Reading(loss=1.0, reached=True))
    >>> at_level(gap, loss, 1, 9.0), at_level(gap, loss, 1, 9.0, widest=3)
    (Reading(loss=7.0, reached=False), Reading(loss=9.0, reached=False))
    """
    whole = np.isfinite(gap) & np.isfinite(loss)
    gap, loss = gap[whole], loss[whole]
    if not len(gap):
        return Reading(constant, False)
    order = np.lexsort((loss, gap))
    gap, loss = gap[order], loss[order]
    best = np.minimum.accumulate(loss)
    front = np.append(True, best[1:] < best[:-1])
    gap, loss = gap[front], loss[front]
    i = int(np.searchsorted(gap, level, side="right")) - 1
    if i < 0:
        mixed = constant + level / gap[0] * (loss[0] - constant)
        return Reading(constant if np.isfinite(widest) else float(mixed), False)
    if i < len(gap) - 1 and gap[i + 1] - gap[i] > widest:
        return Reading(float(loss[i]), True)
    return Reading(float(np.interp(level, gap, loss)), True)


def read(records: Frame, yardstick: Yardstick, level: float) -> Frame:
    """Return loss, whether the level was reached, and the losses of reference and constant, by
    method and split.

    Some methods have one variant for each aim, with a name that ends in "(score)", "(rank)" or
    "(decision)". Only the variant that fits the yardstick is used.
    """
    gap, performance, sign, aim = yardstick
    others = tuple(f"({one.aim})" for one in YARDSTICKS.values() if one.aim != aim)
    records = records.dropna(subset=[gap, performance])
    records = records[~records.method.str.endswith(others)]
    records = records.assign(
        method=records.method.str.removesuffix(f" ({aim})"), value=sign * records[performance]
    )
    gaps, values, spread = (records[name].to_numpy(float) for name in (gap, "value", "spread"))
    places = records.groupby(["method", "split"]).indices
    rows = []
    for (method, split), path in places.items():
        if method == CONSTANT or (REFERENCE, split) not in places:
            continue
        reference, base = (places[name, split][0] for name in (REFERENCE, CONSTANT))
        if aim == "rank":
            path = path[~(spread[path] <= 1e-6)]  # equal scores have no ranks
        widest = 0.25 * gaps[reference] if aim == "rank" else np.inf
        one = at_level(gaps[path], values[path], level * gaps[reference], values[base], widest)
        rows.append((method, split, *one, values[reference], values[base]))
    return pd.DataFrame(
        rows, columns=["method", "split", "loss", "reached", "reference", "constant"]
    )


def readings(records: Frame) -> Frame:
    """Return :func:`read` for all datasets, yardsticks and levels.

    A yardstick is left out on a dataset whose reference gap is below three of its standard
    deviations over splits.
    """
    frames = []
    for dataset, own in records.groupby("dataset", sort=False):
        reference = own[own.method == REFERENCE]
        for name, yardstick in YARDSTICKS.items():
            gap = reference[yardstick.gap] if yardstick.gap in reference else pd.Series(dtype=float)
            if (
                reference.get(yardstick.performance, gap).isna().all()
                or not gap.mean() >= 3 * gap.std()
            ):
                continue
            for level in LEVELS:
                frames.append(
                    read(own, yardstick, level).assign(dataset=dataset, yardstick=name, level=level)
                )
    return pd.concat(frames, ignore_index=True)


# What a reader is told


def standings(read: Frame, methods: Sequence[str]) -> Frame:
    """Return mean rank and mean regret of methods, with 95 % intervals over datasets, and levels
    not reached.

    Regret is the loss beyond the best of these methods, as a share of what the reference gains over
    a constant: 0 for the best, 1 where all of that gain is lost. Cells of a dataset (levels and
    splits) are averaged first, so that the interval is that of a mean over datasets. Methods that a
    cell lacks are ranked nowhere in it.
    """
    own = read[read.method.isin(methods)]
    cell = own.groupby(["yardstick", "dataset", "level", "method"], sort=False)
    mean = (
        cell[["loss", "reference", "constant"]]
        .mean()
        .assign(missed=1 - cell.reached.mean())
        .reset_index()
    )
    best = mean.groupby(["yardstick", "dataset", "level"]).loss
    mean["rank"], gain = best.rank(), mean.constant - mean.reference
    mean["regret"] = (mean.loss - best.transform("min")) / gain
    by_dataset = mean.groupby(["yardstick", "method", "dataset"], sort=False)[
        ["rank", "regret", "missed"]
    ].mean()
    grouped = by_dataset.groupby(["yardstick", "method"], sort=False)
    count = grouped["rank"].count()
    half = grouped.std().mul(
        student.ppf(1 - LEVEL / 2, np.maximum(count - 1, 1)) / np.sqrt(count), axis=0
    )
    return grouped.mean().join(half[["rank", "regret"]].add_suffix("_half")).assign(datasets=count)


def contrasts(read: Frame, first: str, rivals: Sequence[str], test_per_training: float) -> Frame:
    """Return the first method against each rival on each dataset and yardstick: difference of
    losses, p after Holm.

    Losses are averaged over the levels of a split; splits share rows, so the test is the corrected
    t-test. Negative differences favour the first method.
    """
    loss = (
        read.groupby(["yardstick", "dataset", "method", "split"], sort=False)
        .loss.mean()
        .unstack("method")
    )
    rows = []
    for (yardstick, dataset), cell in loss.groupby(level=["yardstick", "dataset"], sort=False):
        for rival in rivals:
            d = (
                (cell[first] - cell[rival]).dropna()
                if rival in cell and first in cell
                else pd.Series(dtype=float)
            )
            if len(d) > 1:
                test = corrected_t(d.to_numpy(), test_per_training)
                rows.append(
                    (yardstick, dataset, rival, test.mean, test.low, test.high, test.pvalue)
                )
    columns = ["yardstick", "dataset", "rival", "difference", "low", "high", "p"]
    return pd.DataFrame(rows, columns=columns).assign(
        adjusted=lambda frame: holm(frame.p.to_list())
    )


def counted(compared: Frame) -> str:
    """Return how often the first method is better and worse after Holm, as words."""
    sure = compared[compared.adjusted < LEVEL]
    better, worse = int((sure.difference < 0).sum()), int((sure.difference > 0).sum())
    return (
        f"better in {better}, worse in {worse}, not significant in {len(compared) - better - worse}"
    )


def standings_table(read: Frame, methods: Sequence[str]) -> Table:
    """Methods by yardsticks: mean rank, and mean regret in percent, with 95 % intervals over
    datasets.

    † and a share: how many levels the method does not reach itself.
    """
    table = standings(read, methods)
    rows: list[list[Cell]] = []
    for method in methods:
        cells: list[Cell] = [method_name(method)]
        for name in YARDSTICKS:
            if (name, method) not in table.index:
                cells += [None, None]
                continue
            own = table.loc[(name, method)]
            missed = f" †{100 * own.missed:.0f} %" if own.missed > 0.005 else ""
            cells.append(f"{own['rank']:.1f} ± {own.rank_half:.1f}")
            cells.append(f"{100 * own.regret:.1f} ± {100 * own.regret_half:.1f}{missed}")
        rows.append(cells)
    heads = [f"{what}, {name}" for name in YARDSTICKS for what in ("rank", "regret in %")]
    return Table.of(["method", *heads], rows)


def loss_table(records: Frame, yardstick: Yardstick, methods: Sequence[str]) -> Table:
    """Methods by datasets: performance at 75, 50 and 25 % of the reference gap; the best in bold, †
    not reached.
    """
    columns: dict[str, Any] = {}
    for dataset, own in records.groupby("dataset", sort=False):
        if own.get(yardstick.performance, pd.Series(dtype=float)).isna().all():
            continue
        for level in LEVELS:
            cell = read(own, yardstick, level)
            cell = cell[cell.method.isin(methods)].groupby("method")[["loss", "reached"]].mean()
            text = (yardstick.sign * cell.loss).map("{:.4f}".format)
            text = text.where(cell.loss > cell.loss.min(), "**" + text + "**") + np.where(
                cell.reached < 1, "†", ""
            )
            columns[f"{dataset_name(str(dataset))}, {level:.0%}"] = text
    rows = [[method_name(m), *(column.get(m) for column in columns.values())] for m in methods]
    return Table.of(
        ["method", *columns], [row for row in rows if any(cell is not None for cell in row[1:])]
    )


def headline(
    records: Frame, first: str, rivals: Sequence[str], test_per_training: float
) -> list[str]:
    """Return what is said of the first method over all yardsticks, and a sentence for each of them.

    Mean rank and mean regret with 95 % intervals over tables, the next best by regret, and tests
    against all rivals.
    """
    paths = readings(records)
    table, compared = (
        standings(paths, (first, *rivals)),
        contrasts(paths, first, rivals, test_per_training),
    )
    least = table.regret.groupby("yardstick").idxmin()
    lead = (
        f"The {first} has the least mean regret by {sum(m == first for _, m in least)} of"
        f" {len(least)} yardsticks"
    )
    said = [f"{lead}; of {len(compared)} comparisons after Holm it is {counted(compared)}."]
    for name in YARDSTICKS:
        own, against = table.xs(name, level="yardstick"), compared[compared.yardstick == name]
        if first in own.index and len(against):
            lead = own.loc[first]
            next_best = own.drop(first).regret.idxmin()
            said.append(
                f"{name[0].upper()}{name[1:]}: mean rank {lead['rank']:.1f} ± {lead.rank_half:.1f}"
                f" of {len(own)} over {int(lead.datasets)} tables, mean regret"
                f" {100 * lead.regret:.1f} ± {100 * lead.regret_half:.1f} %"
                f" ({method_name(next_best)}: {100 * own.regret[next_best]:.1f} %);"
                f" {counted(against)}."
            )
    return said


def listed(
    records: Frame, first: str, rivals: Sequence[str], others: Sequence[str]
) -> list[Listed]:
    """Return the tables of a comparison: standings of the first method and its rivals, then every
    cell.

    `others` are rows that are shown and are no rivals: variants of the first method, and what needs
    S to predict.
    """
    present = set(records.method.str.replace(r" \((score|rank|decision)\)$", "", regex=True))
    methods = [m for m in (first, *rivals, *others) if m in present]
    tables = [
        Listed(
            "Mean rank and mean regret with 95 % intervals over tables",
            standings_table(readings(records), [m for m in methods if m not in others]),
        )
    ]
    for name, yardstick in YARDSTICKS.items():
        heading = f"{name[0].upper()}{name[1:]}, at 75, 50 and 25 % of the reference gap"
        tables.append(Listed(heading, loss_table(records, yardstick, methods), folded=True))
    heading = "The paper's yardstick, accuracy at 1/2 at equal GDP, which contraction wins"
    return [*tables, Listed(heading, loss_table(records, PAPER_YARDSTICK, methods), folded=True)]
