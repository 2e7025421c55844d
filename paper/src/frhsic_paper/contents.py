"""What a section of the document holds: tables and figures, as functions of the records."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from frhsic_paper.figures import sweeps as draw
from frhsic_paper.figures import theory as plot
from frhsic_paper.printed import DATASET_NAMES
from frhsic_paper.protocol import CORRECTED, PROTOCOLS, PUBLISHED, Protocol
from frhsic_paper.records import Record
from frhsic_paper.results import Results
from frhsic_paper.tables import Table, appendix, comparisons, theory
from frhsic_paper.tables import agreement as agree
from frhsic_paper.tables.frontiers import (
    matched_beside_printed,
    matched_table,
    metrics_table,
    pareto_summary,
    shared_repeats,
    swept,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "Drawn",
    "Listed",
    "agreement_tables",
    "bound_rows",
    "dimension_tables",
    "high_dimensional_tables",
    "information_figures",
    "information_tables",
    "leak_figures",
    "leak_tables",
    "nothing",
    "plain_figures",
    "plain_tables",
    "significance_tables",
    "spectrum_figures",
    "tradeoff_figures",
    "tradeoff_tables",
    "variants",
]

NAMES = {"published": "published protocol", "corrected": "corrected protocol"}


@dataclass(frozen=True)
class Listed:
    """A table under a heading; `folded` puts it behind a line that the reader opens."""

    heading: str
    table: Table
    folded: bool = False


@dataclass(frozen=True)
class Drawn:
    """A figure, the name of its file and what it shows."""

    name: str
    caption: str
    figure: Figure


def _each(
    results: Results,
    experiment: str,
    heading: str,
    make: Callable[[Sequence[Record], Protocol], Table],
    *,
    folded: bool = False,
) -> list[Listed]:
    return [
        Listed(f"{heading}, {NAMES[name]}", make(results.of(experiment, name), protocol), folded)
        for name, protocol in PROTOCOLS.items()
        if results.of(experiment, name)
    ]


def _drawn(
    results: Results, experiment: str, name: str, caption: str, make: Callable[[Sequence[Record], Protocol], Figure]
) -> list[Drawn]:
    return [
        Drawn(f"{name}-{protocol.name}", f"{caption}, {NAMES[key]}", make(results.of(experiment, key), protocol))
        for key, protocol in PROTOCOLS.items()
        if results.of(experiment, key)
    ]


def nothing(results: Results) -> list[Drawn]:
    return []


def tradeoff_tables(results: Results) -> list[Listed]:
    listed = []
    if results.of("tradeoff", "published"):
        table = matched_beside_printed(results.of("tradeoff", "published"), PUBLISHED)
        listed.append(Listed("Matched performance beside the printed table, published protocol", table))
    if results.of("tradeoff", "corrected"):
        table = matched_table(results.of("tradeoff", "corrected"), CORRECTED)
        listed.append(Listed("Matched performance, corrected protocol", table))
    listed += _each(results, "tradeoff", "Pareto summary (performance, GDP)", pareto_summary)
    for dataset in swept(results.of("tradeoff", "corrected")):
        table = metrics_table(results.of("tradeoff", "corrected"), dataset)
        listed.append(
            Listed(f"{DATASET_NAMES[dataset]} under every convention of GDP, corrected protocol", table, True)
        )
    return listed


def tradeoff_figures(results: Results) -> list[Drawn]:
    figures = _drawn(results, "tradeoff", "pareto", "Frontiers on the classification datasets", draw.pareto)
    for name, protocol in PROTOCOLS.items():
        records = results.of("tradeoff", name)
        if "crime" in swept(records):
            figure = draw.pareto(records, protocol, regression=True)
            figures.append(Drawn(f"pareto-crime-{name}", f"Frontier on Crime, {NAMES[name]}", figure))
    corrected = results.of("tradeoff", "corrected")
    if corrected:
        figure = draw.pareto(corrected, CORRECTED, gdp="gdp_standardized")
        figures.append(
            Drawn(
                "pareto-scale-free", "The same under GDP ÷ standard deviation of the scores, corrected protocol", figure
            )
        )
    return figures


def agreement_tables(results: Results) -> list[Listed]:
    records = results.of("tradeoff", "published")
    if not records:
        return []
    cells = agree.agreement(records)
    counted = [c for c in cells if c.dataset not in agree.LISTED]
    inside = sum(c.within for c in counted)
    heading = f"{inside} of {len(counted)} counted cells agree ({agree.share(cells):.1%})"
    return [
        Listed(heading, agree.agreement_table(cells)),
        Listed("Cells that do not agree, each with its cause", agree.disagreements_table(cells), True),
    ]


def significance_tables(results: Results) -> list[Listed]:
    records = results.of("tradeoff", "corrected")
    if not records:
        return []
    listed = []
    for first, name in (("frhsic", "FRHSIC"), ("hsic", "HSIC with the head")):
        if all(r["method"] != first for r in records):
            continue
        compared = comparisons.area_rows(records, CORRECTED.gdp, first)
        listed.append(Listed(f"nAUP over splits; p of {name} against each method", comparisons.area_table(compared)))
    return listed


def leak_tables(results: Results) -> list[Listed]:
    listed = []
    if results.of("leak", "corrected"):
        listed.append(
            Listed(
                "Heads trained afresh, probes and the worst head",
                comparisons.leak_table(shared_repeats(results.of("leak", "corrected"))),
            )
        )
    if results.of("tradeoff", "corrected"):
        table = comparisons.probe_table(results.of("tradeoff", "corrected"), CORRECTED.gdp)
        listed.append(Listed("Probes over all splits, at the weight that validation rows choose", table, True))
    return listed


def leak_figures(results: Results) -> list[Drawn]:
    records = shared_repeats(results.of("leak", "corrected"))
    caption = "GDP of the deployed and of the worst fresh head against what a probe reads of S, at matched performance"
    return [Drawn("leak", caption, draw.leak(records))] if records else []


def information_tables(results: Results) -> list[Listed]:
    listed = []
    for name, column in (("published", "mi_published"), ("corrected", "mi")):
        if results.of("mutual-information", name):
            table = theory.information_table(results.of("mutual-information", name), column)
            listed.append(Listed(f"Least mutual information within 1 % of performance, {NAMES[name]}", table))
    return listed


def information_figures(results: Results) -> list[Drawn]:
    columns = {"published": "mi_published", "corrected": "mi"}
    return _drawn(
        results,
        "mutual-information",
        "mutual-information",
        "Mutual information of Z and S against performance",
        lambda records, protocol: draw.information(records, columns[protocol.name]),
    )


def dimension_tables(results: Results) -> list[Listed]:
    listed = []
    for name, protocol in PROTOCOLS.items():
        found = {d: results.of(f"ablation-dimension/{d}", name) for d in appendix.DIMENSIONS}
        found = {d: records for d, records in found.items() if records}
        if found:
            table = appendix.dimension_table(dict(found), protocol)
            listed.append(Listed(f"Dimension of the representation, {NAMES[name]}", table))
    return listed


def high_dimensional_tables(results: Results) -> list[Listed]:
    listed = _each(
        results, "high-dimensional", "Seconds of an epoch", lambda records, _: theory.dimension_time_table(records)
    )
    errors = [r for r in results.of("high-dimensional", "corrected") if r["part"] == "error"]
    if errors:
        listed.append(Listed("Relative errors of estimates, Gaussian model", theory.dimension_error_table(errors)))
    return listed


def spectrum_figures(results: Results) -> list[Drawn]:
    found: dict[str, Sequence[Record]] = {name: results.of("bandwidth-scaling", name) for name in PROTOCOLS}
    if not any(found.values()):
        return []
    return [Drawn("bandwidth-scaling", "λ̂_S against the bandwidth, by both rules", plot.bandwidth_scaling(found))]


def bound_rows(records: Sequence[Record], protocol: Protocol) -> Table:
    return theory.bound_table([r for r in records if r["method"] == "frhsic"])


def variants(experiment: str) -> Callable[[Results], list[Listed]]:
    def tables(results: Results) -> list[Listed]:
        return _each(
            results,
            experiment,
            "nAUP of the variants",
            lambda records, protocol: comparisons.variants_table(records, protocol.gdp),
        )

    return tables


def plain_tables(
    experiment: str, heading: str, make: Callable[[Sequence[Record], Protocol], Table], *, folded: bool = False
) -> Callable[[Results], list[Listed]]:
    return lambda results: _each(results, experiment, heading, make, folded=folded)


def plain_figures(
    experiment: str, name: str, caption: str, make: Callable[[Sequence[Record], Protocol], Figure]
) -> Callable[[Results], list[Drawn]]:
    return lambda results: _drawn(results, experiment, name, caption, make)
