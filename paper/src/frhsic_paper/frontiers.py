"""Readings of a sweep that several studies share: frontiers, matched points, means over repeats."""

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
"""Columns of a record that hold GDP under some convention, and their names."""


SHRINKING = (0.75, 0.5, 0.25, 0.1, 0.02)
"""Shares of the scores' spread that are left."""

NEARLY_CONSTANT = 0.05
"""Share of the unpenalized scores' spread up to which a model counts as constant."""

SCALED = ("gdp_logit", "gdp_probability", "eo_gdp_")
"""Beginnings of the columns that contraction multiplies."""

PAPER_HEADS = ("linear", "mlp", "forest", "svm")
"""Heads of the paper's study of transfer."""

BUDGETS = 201
"""Number of equispaced dependence budgets on which the envelope is integrated."""


@dataclass(frozen=True)
class Scale:
    """Map from performance and dependence to [0, 1]; pass it on to compare sweeps on one scale."""

    worst: float
    best: float
    dependence: float

    def __post_init__(self) -> None:
        if not self.dependence > 0:
            raise ValueError(
                f"the baseline's dependence is {self.dependence}; a scale needs a positive one."
            )

    @classmethod
    def from_frontier(cls, full: Frontier) -> Scale:
        """Return a sweep's own scale: worst and best mean performance of its points, the baseline's
        dependence.
        """
        utilities = [full.signed(p.performance) for p in full.points]
        return cls(min(utilities), max(utilities), full.method_points(full.baseline)[0].dependence)

    def utility(self, performance: np.ndarray) -> np.ndarray:
        """Performance mapped so that `worst` is 0 and `best` is 1, clipped outside."""
        if self.best == self.worst:
            return np.ones_like(performance)
        return np.clip((performance - self.worst) / (self.best - self.worst), 0, 1)


def naup(full: Frontier) -> dict[str, float]:
    r"""Normalised area under the Pareto envelope, :math:`\int_0^1 U(g)\,dg`, for each method.

    :math:`U(g)` is the best normalised performance among the method's points whose dependence is at
    most :math:`g` times the baseline's, and 0 where there is none; the trapezoid rule on 201
    equispaced budgets. The value depends on the scale, the paper's, which depends on the methods
    compared.
    """
    scale = paper_scale(full)
    return {
        m: _area(full, full.method_points(m), scale) for m in full.methods if m != full.baseline
    }


def naup_by_repeat(full: Frontier) -> dict[str, np.ndarray]:
    """Area of each repeat's own envelope on one shared scale, for each method, for paired tests."""
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
    """The point of one method with the least GDP inside the performance band, and the method's
    area.

    `weight` is the chosen one, or the most frequent where each repeat chose its own. `inside` is
    the share of repeats in which some weight stayed inside the band. Where no model was chosen, the
    others are None.
    """

    dataset: str
    method: str
    weight: float | None
    performance: Spread | None
    gdp: Spread | None
    naup: float | None
    inside: float


def record_datasets(records: Iterable[Record]) -> tuple[str, ...]:
    """Return the datasets of some records: those of the paper in its order, then others."""
    return _ordered((r["dataset"] for r in records), DATASET_NAMES)


def swept_datasets(records: Iterable[Record]) -> tuple[str, ...]:
    """Return the datasets for which the records hold the unpenalized model."""
    return record_datasets(matching(records, method=BASELINE))


def record_methods(records: Iterable[Record]) -> tuple[str, ...]:
    """Return the penalized methods of some records: those of the paper in its order, then
    others.
    """
    return tuple(
        name for name in _ordered((r["method"] for r in records), METHOD_NAMES) if name != BASELINE
    )


def record_weights(records: Iterable[Record], **where: object) -> list[float]:
    """Return the weights of the penalized models of some records, sorted, of those with the given
    values.
    """
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
    """Return the records of repeats that all methods of a dataset have: means over others are not
    comparable.
    """
    repeats: dict[str, dict[str, set[int]]] = {}
    for r in records:
        repeats.setdefault(r["dataset"], {}).setdefault(r["method"], set()).add(r["repeat"])
    common = {dataset: set.intersection(*methods.values()) for dataset, methods in repeats.items()}
    return [r for r in records if r["repeat"] in common[r["dataset"]]]


def column_values(records: Iterable[Record], column: str) -> list[float]:
    """Return the numbers of one column, of models that did not diverge."""
    return [float(r[column]) for r in finite_records(records, column)]


def mean_over_repeats(records: Iterable[Record], column: str, **where: object) -> Spread | None:
    """Return the mean over repeats of one column, of the records with the given values, and the
    standard deviation; None without records.
    """
    return mean_and_deviation(column_values(matching(records, **where), column))


def mean_value(records: Iterable[Record], column: str, **where: object) -> float | None:
    """Return the same without the deviation."""
    spread = mean_over_repeats(records, column, **where)
    return None if spread is None else spread.mean


def head_deviations(
    records: Iterable[Record], dataset: str, method: str, weight: float
) -> dict[int, float]:
    """Return the standard deviation (ddof 0) of GDP over the paper's four heads in each repeat."""
    own = matching(finite_records(records, "gdp"), dataset=dataset, method=method, weight=weight)
    heads = grouped((r for r in own if r["head"] in PAPER_HEADS), "repeat")
    return {
        repeat: float(np.std(column_values(some, "gdp")))
        for (repeat,), some in heads.items()
        if len(some) == len(PAPER_HEADS)
    }


def is_error(dataset: str, records: Iterable[Record] = ()) -> bool:
    """Return whether performance on a dataset is an error: lower is better.

    The records say so where they hold a task; otherwise the list of datasets does.
    """
    tasks = {r["task"] for r in matching(records, dataset=dataset) if r.get("task")}
    if not tasks and dataset in ENTRIES:
        tasks = {ENTRIES[dataset].task}
    return tasks == {"regression"}


def frontier(records: Iterable[Record], dataset: str, gdp: str) -> Frontier:
    """Return the frontier of one dataset under one convention of GDP, without models that
    diverged.
    """
    usable = finite_records(matching(records, dataset=dataset), "performance", gdp)
    kinds = {"method": str, "weight": float, "repeat": int, "performance": float, gdp: float}
    runs = tuple(Run(*(kind(r[key]) for key, kind in kinds.items())) for r in usable)
    return Frontier(runs, higher_is_better=not is_error(dataset, usable))


def paper_scale(full: Frontier) -> Scale:
    """Return the scale of the paper's areas: over its six methods and Unfair, or over all where not
    all six are.
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
    """Return a frontier of the means alone, rounded as the published files were; without decimals,
    the frontier.
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
    """Return, for each method and repeat, the model that validation rows choose, and whether it is
    inside the band.

    It has the least GDP inside the band of the same repeat's unpenalized model; where no weight is
    inside, the best performance.
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
    """Return the matched point of every method, as the protocol chooses it, the unpenalized model
    first.

    Published: on means over the repeats of the test rows, rounded. Corrected: in each repeat on its
    validation rows; then the test rows of the chosen models are averaged. Areas are normalized over
    the paper's six methods and Unfair.
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
    """Return the model of each method at its matched point in every split, as the protocol chooses
    it, and whether it is inside the band.
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
    """Return the rank of a method, 1 for the largest, and how far it is behind the largest.

    Examples
    --------
    >>> rank_and_distance({"a": 0.5, "b": 0.75}, "a")
    (2, 0.25)
    """
    return 1 + sum(v > values[name] for v in values.values()), max(values.values()) - values[name]


def printed_name(dataset: str) -> str:
    """Return the name of a dataset, with the unit of its performance where that is not accuracy."""
    return f"{dataset_name(dataset)}{' (MSE × 100)' if is_error(dataset) else ''}"


def printed_performance(performance: Spread | None, dataset: str) -> Spread | None:
    """Return a performance in the unit that tables print: an error times 100, as the paper has
    it.
    """
    if performance is None or not is_error(dataset):
        return performance
    deviation = None if performance.deviation is None else 100 * performance.deviation
    return Spread(100 * performance.mean, deviation, performance.bold)


def with_contraction(records: Sequence[Record]) -> list[Record]:
    r"""Return records with those of "contracted" added: the unpenalized scores, shrunk by a share
    t, no model trained.

    :math:`p \mapsto 1/2 + t (p - 1/2)`, or the raw output times t where GDP is of that, keeps every
    decision and so the accuracy, and multiplies GDP by t. A prediction of a number is shrunk
    towards its mean; its error is :math:`L_0 - t (L_0 - L_1 + \sigma^2) + t^2 \sigma^2` with the
    error :math:`L_0` of the mean and :math:`L_1` of the prediction; :math:`L_0` is that of the
    model of the same split whose penalty left it all but constant. What does not change with the
    scale, standardized GDP and the GDP of decisions, stays.
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
            continue  # no model of this split tells the error of the mean
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
    """Return means and standard deviations of some columns, in the units that tables print."""
    return [
        printed_performance(mean, records[0]["dataset"]) if mean and c == "performance" else mean
        for c in columns
        for mean in [mean_over_repeats(records, c)]
    ]


def variants_table(records: Sequence[Record], gdp: str) -> Table:
    """Areas of the variants of one study, variants by datasets, with standard errors over its
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
    """Return the areas of each method over the repeats that all methods have."""
    usable = shared_repeats(finite_records(records, "performance", gdp))
    return naup_by_repeat(frontier(usable, dataset, gdp))
