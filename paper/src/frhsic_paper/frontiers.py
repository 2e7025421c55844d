"""Results of a sweep that several studies share: frontiers, matched points, and means over
repeats.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from frhsic.datasets.catalogue import ENTRIES
from frhsic_paper.frontier import Frontier, Point, Run
from frhsic_paper.models import best_in_band
from frhsic_paper.printed import DATASET_NAMES, METHOD_NAMES, PRINTED_SIX, dataset_name, method_name
from frhsic_paper.protocol import BAND, BASELINE, CONTRACTED, Protocol
from frhsic_paper.records import Record, grouped, matching
from frhsic_paper.results import Results
from frhsic_paper.table import (
    Cell,
    Listed,
    Spread,
    Table,
    mean_and_deviation,
    mean_and_error,
    protocol_tables,
)

CONVENTIONS = {
    "gdp_probability": "probabilities, population",
    "gdp_standardized": "scale-free, population",
    "gdp_decision": "decisions, population",
    "gdp_logit": "raw output, population",
    "gdp_probability_uniform": "probabilities, uniform grid",
    "gdp_logit_uniform": "raw output, uniform grid (published)",
}
"""Columns of a record that contain GDP, one for each convention, and their names."""


SHRINKING = (0.75, 0.5, 0.25, 0.1, 0.02)
"""Shares of the scores' spread that contraction leaves."""

NEARLY_CONSTANT = 0.05
"""A model counts as constant if the spread of its scores is at most this share of the unpenalized
spread.
"""

SCALED = ("gdp_logit", "gdp_probability", "eo_gdp_")
"""Prefixes of the columns that contraction multiplies."""

PAPER_HEADS = ("linear", "mlp", "forest", "svm")
"""Heads of the paper's transfer study."""

BUDGETS = 201
"""Number of equispaced dependence budgets on which the envelope is integrated."""


@dataclass(frozen=True)
class Scale:
    """Map from performance and dependence to [0, 1]; to compare sweeps, use the same scale for
    all.
    """

    worst: float
    best: float
    dependence: float

    def __post_init__(self) -> None:
        if not self.dependence > 0:
            raise ValueError(
                f"the baseline's dependence is {self.dependence}; it must be positive to define a"
                " scale."
            )

    @classmethod
    def from_frontier(cls, full: Frontier) -> Scale:
        """Return a sweep's own scale: the worst and best mean performance of its points, and the
        baseline's dependence.
        """
        utilities = [full.signed(p.performance) for p in full.points]
        return cls(min(utilities), max(utilities), full.method_points(full.baseline)[0].dependence)

    def utility(self, performance: np.ndarray) -> np.ndarray:
        """Return performance mapped so that `worst` is 0 and `best` is 1, clipped to this range."""
        if self.best == self.worst:
            return np.ones_like(performance)
        return np.clip((performance - self.worst) / (self.best - self.worst), 0, 1)


def naup(full: Frontier) -> dict[str, float]:
    r"""Normalised area under the Pareto envelope, :math:`\int_0^1 U(g)\,dg`, for each method.

    :math:`U(g)` is the best normalised performance among the method's points whose dependence is at
    most :math:`g` times the baseline's, or 0 if there is none; the integral uses the trapezoid rule
    on 201 equispaced budgets. The value depends on the scale; the paper's scale depends on the
    compared methods.
    """
    scale = paper_scale(full)
    return {
        m: _area(full, full.method_points(m), scale) for m in full.methods if m != full.baseline
    }


def naup_by_repeat(full: Frontier) -> dict[str, np.ndarray]:
    """Return the area of each repeat's own envelope for each method, on one shared scale, for
    paired tests.
    """
    scale = paper_scale(full)
    parts = [
        replace(full, runs=tuple(run for run in full.runs if run.repeat == repeat))
        for repeat in sorted({run.repeat for run in full.runs})
    ]
    return {
        m: np.array(
            [_area(part, part.method_points(m), scale) for part in parts if m in part.methods]
        )
        for m in full.methods
        if m != full.baseline
    }


def corrected_error(differences: np.ndarray, protocol: Protocol) -> float:
    """Return the standard error of the mean of paired differences, corrected for the rows that
    splits share (Nadeau and Bengio 2003).
    """
    test_share = 0.2
    ratio = test_share / (1 - test_share - protocol.validation)
    return float(np.sqrt((1 / len(differences) + ratio) * differences.var(ddof=1)))


def _area(full: Frontier, points: Sequence[Point], scale: Scale) -> float:
    budgets = np.linspace(0, 1, BUDGETS)
    utility = scale.utility(np.array([full.signed(p.performance) for p in points]))
    cost = np.minimum(np.array([p.dependence for p in points]) / scale.dependence, 1)
    reached = np.where(cost[:, None] <= budgets[None, :], utility[:, None], 0.0).max(axis=0)
    return float(np.trapezoid(reached, budgets))


@dataclass(frozen=True)
class Matched:
    """The point of one method with the smallest GDP inside the performance band, and the method's
    area.

    `weight` is the chosen weight, or the most frequent one if each repeat chose its own. `inside`
    is the share of repeats in which some weight was inside the band. If no model was chosen, the
    other fields are None.
    """

    dataset: str
    method: str
    weight: float | None
    performance: Spread | None
    gdp: Spread | None
    naup: float | None
    inside: float


def record_datasets(records: Iterable[Record]) -> tuple[str, ...]:
    """Return the datasets of records: first those of the paper, in its order, then others."""
    return _ordered((r["dataset"] for r in records), DATASET_NAMES)


def swept_datasets(records: Iterable[Record]) -> tuple[str, ...]:
    """Return the datasets for which the records contain the unpenalized model."""
    return record_datasets(matching(records, method=BASELINE))


def record_methods(records: Iterable[Record]) -> tuple[str, ...]:
    """Return the penalized methods of records: first those of the paper, in its order, then
    others.
    """
    return tuple(
        name for name in _ordered((r["method"] for r in records), METHOD_NAMES) if name != BASELINE
    )


def record_weights(records: Iterable[Record], **where: object) -> list[float]:
    """Return the sorted weights of the penalized models in the records with the given values."""
    own = matching(records, **where)
    return sorted({float(r["weight"]) for r in own if r["method"] != BASELINE})


def finite_records(records: Iterable[Record], *columns: str) -> list[Record]:
    """Return the records of models that did not diverge and have all these columns."""
    return [
        r
        for r in records
        if not r.get("diverged") and all(r.get(column) is not None for column in columns)
    ]


def shared_repeats(records: Sequence[Record]) -> list[Record]:
    """Return the records of repeats that all methods of a dataset have, since means over different
    repeats are not comparable.
    """
    repeats: dict[str, dict[str, set[int]]] = {}
    for r in records:
        repeats.setdefault(r["dataset"], {}).setdefault(r["method"], set()).add(r["repeat"])
    common = {dataset: set.intersection(*methods.values()) for dataset, methods in repeats.items()}
    return [r for r in records if r["repeat"] in common[r["dataset"]]]


def column_values(records: Iterable[Record], column: str) -> list[float]:
    """Return the numbers in one column, for models that did not diverge."""
    return [float(r[column]) for r in finite_records(records, column)]


def mean_over_repeats(records: Iterable[Record], column: str, **where: object) -> Spread | None:
    """Return the mean and standard deviation over repeats of one column, for the records with the
    given values; None if there are no such records.
    """
    return mean_and_deviation(column_values(matching(records, **where), column))


def mean_value(records: Iterable[Record], column: str, **where: object) -> float | None:
    """Return the mean over repeats of one column, as in :func:`mean_over_repeats`."""
    spread = mean_over_repeats(records, column, **where)
    return None if spread is None else spread.mean


def head_deviations(
    records: Iterable[Record], dataset: str, method: str, weight: float
) -> dict[int, float]:
    """Return the standard deviation (ddof 0) of GDP over the paper's four heads, for each
    repeat.
    """
    own = matching(finite_records(records, "gdp"), dataset=dataset, method=method, weight=weight)
    heads = grouped((r for r in own if r["head"] in PAPER_HEADS), "repeat")
    return {
        repeat: float(np.std(column_values(some, "gdp")))
        for (repeat,), some in heads.items()
        if len(some) == len(PAPER_HEADS)
    }


def is_error(dataset: str, records: Iterable[Record] = ()) -> bool:
    """Return whether performance on a dataset is an error, so that lower is better.

    This is taken from the records if they contain the task, and from the list of datasets
    otherwise.
    """
    tasks = {r["task"] for r in matching(records, dataset=dataset) if r.get("task")}
    if not tasks and dataset in ENTRIES:
        tasks = {ENTRIES[dataset].task}
    return tasks == {"regression"}


def frontier(records: Iterable[Record], dataset: str, gdp: str) -> Frontier:
    """Return the frontier of one dataset under one GDP convention, without models that diverged."""
    usable = finite_records(matching(records, dataset=dataset), "performance", gdp)
    kinds = {"method": str, "weight": float, "repeat": int, "performance": float, gdp: float}
    runs = tuple(Run(*(kind(r[key]) for key, kind in kinds.items())) for r in usable)
    return Frontier(runs, higher_is_better=not is_error(dataset, usable))


def paper_scale(full: Frontier) -> Scale:
    """Return the scale of the paper's areas: over its six methods and Unfair, or over all methods
    if one of the six is missing.
    """
    if not set(PRINTED_SIX) <= set(full.methods):
        return Scale.from_frontier(full)
    return Scale.from_frontier(
        replace(
            full,
            runs=tuple(run for run in full.runs if run.method in (*PRINTED_SIX, full.baseline)),
        )
    )


def rounded_frontier(full: Frontier, decimals: int | None) -> Frontier:
    """Return a frontier of only the means, rounded as in the published files; if decimals is None,
    return the frontier itself.
    """
    if decimals is None:
        return full
    runs = tuple(
        Run(p.method, p.weight, 0, round(p.performance, decimals), round(p.dependence, decimals))
        for p in full.points
    )
    return replace(full, runs=runs)


def chosen_models(
    records: Iterable[Record], dataset: str, gdp: str
) -> dict[str, list[tuple[Record, bool]]]:
    """Return, for each method and repeat, the model chosen on validation rows, and whether it is
    inside the band.

    It has the smallest GDP inside the band of the same repeat's unpenalized model or, if no weight
    is inside, the best performance.
    """
    performance, dependence = "validation_performance", f"validation_{gdp}"
    usable = finite_records(matching(records, dataset=dataset), performance, dependence, gdp)
    base = {r["repeat"]: r[performance] for r in matching(usable, method=BASELINE)}
    higher = not is_error(dataset, usable)
    groups = grouped((r for r in usable if r["repeat"] in base), "method", "repeat")
    choices: dict[str, list[tuple[Record, bool]]] = {}
    for (method, repeat), group in sorted(groups.items()):
        place, inside = best_in_band(
            [r[performance] for r in group],
            [r[dependence] for r in group],
            baseline=base[repeat],
            band=BAND,
            higher_is_better=higher,
        )
        choices.setdefault(method, []).append((group[place], inside))
    return choices


def matched_points(records: Sequence[Record], dataset: str, protocol: Protocol) -> list[Matched]:
    """Return the matched point of every method under the protocol, starting with the unpenalized
    model.

    Under the published protocol, points are chosen by rounded means over repeats, on the test rows.
    Under the corrected protocol, a model is chosen in each repeat on its validation rows, and the
    results of the chosen models on test rows are averaged. Areas are normalized over the paper's
    six methods and Unfair.
    """
    full = frontier(records, dataset, protocol.gdp)
    areas = naup(rounded_frontier(full, protocol.decimals))
    choices = matched_by_split(records, dataset, protocol)
    return [
        _matched(choices.get(name, ()), dataset, name, protocol, areas.get(name))
        for name in (BASELINE, *record_methods(matching(records, dataset=dataset)))
    ]


def matched_by_split(
    records: Sequence[Record], dataset: str, protocol: Protocol
) -> dict[str, list[tuple[Record, bool]]]:
    """Return, for every split, each method's model at its matched point under the protocol, and
    whether it is inside the band.
    """
    if protocol.validation:
        return chosen_models(records, dataset, protocol.gdp)
    means = rounded_frontier(frontier(records, dataset, protocol.gdp), protocol.decimals)
    usable = finite_records(matching(records, dataset=dataset), "performance", protocol.gdp)
    return {
        m: [(r, True) for r in matching(usable, method=m, weight=point.weight)]
        for m, point in means.matched_points(BAND).items()
        if point is not None
    }


def rank_and_distance(values: dict[str, float], name: str) -> tuple[int, float]:
    """Return the rank of a method, with 1 for the largest value, and its distance from the largest
    value.

    Examples
    --------
    >>> rank_and_distance({"a": 0.5, "b": 0.75}, "a")
    (2, 0.25)
    """
    return 1 + sum(v > values[name] for v in values.values()), max(values.values()) - values[name]


def printed_name(dataset: str) -> str:
    """Return the name of a dataset, with the unit of its performance if that isn't accuracy."""
    return f"{dataset_name(dataset)}{' (MSE × 100)' if is_error(dataset) else ''}"


def printed_performance(performance: Spread | None, dataset: str) -> Spread | None:
    """Return a performance in the unit used in tables; errors are multiplied by 100, as in the
    paper.
    """
    if performance is None or not is_error(dataset):
        return performance
    deviation = None if performance.deviation is None else 100 * performance.deviation
    return Spread(100 * performance.mean, deviation, performance.bold)


def with_contraction(records: Sequence[Record]) -> list[Record]:
    r"""Return records with those of the method "contracted" added: the unpenalized scores, shrunk
    by a factor t, without training a model.

    :math:`p \mapsto 1/2 + t (p - 1/2)`, or, if GDP refers to raw outputs, the raw output times t,
    keeps every decision and so the accuracy, and multiplies GDP by t. A prediction of a number is
    shrunk towards its mean; its error is :math:`L_0 - t (L_0 - L_1 + \sigma^2) + t^2 \sigma^2` with
    the error :math:`L_0` of the mean and :math:`L_1` of the prediction; :math:`L_0` is taken from a
    model of the same split that a penalty made nearly constant. Quantities that don't depend on the
    scale, which are standardized GDP and the GDP of decisions, don't change.
    """
    constants: dict[tuple[str, int], Record] = {}
    for r in finite_records(records, "performance", "score_sd"):
        key = r["dataset"], r["repeat"]
        if key not in constants or r["score_sd"] < constants[key]["score_sd"]:
            constants[key] = r
    contracted = []
    for r in matching(records, method=BASELINE):
        error, flat = is_error(r["dataset"], [r]), constants.get((r["dataset"], r["repeat"]), r)
        if error and flat.get("score_sd", np.inf) > NEARLY_CONSTANT * r.get("score_sd", 0.0):
            continue  # no model of this split gives the error of the mean
        for share in SHRINKING:
            scaled = {
                c: share * v
                for c, v in r.items()
                if c.removeprefix("validation_").startswith(SCALED) and v
            }
            if error:
                for part in (p for p in ("", "validation_") if f"{p}score_sd" in r):
                    mean, own, spread = (
                        flat[f"{part}performance"],
                        r[f"{part}performance"],
                        r[f"{part}score_sd"] ** 2,
                    )
                    scaled[f"{part}performance"] = (
                        mean - share * (mean - own + spread) + share**2 * spread
                    )
            contracted.append(r | scaled | {"method": CONTRACTED, "weight": 1 / share})
    return [*records, *contracted]


def _ordered(names: Iterable[str], known: Iterable[str]) -> tuple[str, ...]:
    present = dict.fromkeys(names)
    first = [name for name in known if name in present]
    return (*first, *(name for name in present if name not in first))


def _matched(
    choices: Sequence[tuple[Record, bool]],
    dataset: str,
    method: str,
    protocol: Protocol,
    area: float | None,
) -> Matched:
    """Return the mean of a method's chosen models."""
    if not choices:
        return Matched(dataset, method, None, None, None, area, 0.0)
    weights = [float(r["weight"]) for r, _ in choices]
    performance, gdp = (
        _spread([r[column] for r, _ in choices], protocol)
        for column in ("performance", protocol.gdp)
    )
    return Matched(
        dataset,
        method,
        max(sorted(set(weights)), key=weights.count),
        performance,
        gdp,
        area,
        float(np.mean([inside for _, inside in choices])),
    )


def _spread(values: Sequence[float], protocol: Protocol) -> Spread:
    mean = float(np.mean(values))
    if protocol.decimals is not None:
        mean = round(mean, protocol.decimals)
    several = len(values) > max(protocol.ddof, 1)
    return Spread(mean, float(np.std(values, ddof=protocol.ddof)) if several else None)


def column_means(records: Sequence[Record], columns: Iterable[str]) -> list[Spread | None]:
    """Return the means and standard deviations of columns, in the units used in tables."""
    return [
        printed_performance(mean, records[0]["dataset"]) if mean and c == "performance" else mean
        for c in columns
        for mean in [mean_over_repeats(records, c)]
    ]


def variants_table(records: Sequence[Record], gdp: str) -> Table:
    """Table of areas of the variants of one study by dataset, with standard errors over its
    splits.
    """
    records = with_contraction(records)
    areas = {d: areas_by_repeat(records, d, gdp) for d in swept_datasets(records)}
    rows: list[list[Cell]] = []
    for method in record_methods(records):
        cells: list[Cell] = [method_name(method)]
        for by_method in areas.values():
            best = max(
                float(values.mean()) for name, values in by_method.items() if name != CONTRACTED
            )
            mean = mean_and_error(by_method.get(method, ()))
            cells.append(mean and replace(mean, bold=mean.mean == best))
        rows.append(cells)
    return Table.from_rows(["nAUP ± SE", *map(dataset_name, areas)], rows)


def tables_of_variants(name: str) -> Callable[[Results], list[Listed]]:
    """Return the tables of a study that compares the areas of variants."""
    return protocol_tables(
        name,
        "nAUP of the variants",
        lambda records, protocol: variants_table(records, protocol.gdp),
    )


def areas_by_repeat(records: Sequence[Record], dataset: str, gdp: str) -> dict[str, np.ndarray]:
    """Return each method's areas for the repeats that all methods have."""
    usable = shared_repeats(finite_records(records, "performance", gdp))
    return naup_by_repeat(frontier(usable, dataset, gdp))
