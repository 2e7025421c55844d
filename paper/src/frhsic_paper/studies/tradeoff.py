"""Trade-offs between performance and GDP on the five datasets: the sweep on which most of the paper
is based.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from matplotlib.figure import Figure

from frhsic_paper.agreement import agreement_tables
from frhsic_paper.frontiers import (
    CONVENTIONS,
    frontier,
    is_error,
    matched_points,
    naup,
    printed_name,
    printed_performance,
    record_methods,
    swept_datasets,
    with_contraction,
)
from frhsic_paper.plot import (
    AT_THE_STAR,
    GDP_NAMES,
    Drawn,
    draw_frontiers,
    intervals,
    protocol_figures,
)
from frhsic_paper.printed import DATASET_NAMES, method_name, printed_records
from frhsic_paper.protocol import BASELINE, CORRECTED, Protocol
from frhsic_paper.records import Record, matching
from frhsic_paper.results import Results
from frhsic_paper.studies.tradeoff_claims import CLAIMS
from frhsic_paper.study import Study
from frhsic_paper.sweep import SWEEP
from frhsic_paper.table import Cell, Column, Listed, Spread, Table, protocol_tables


def matched_table(records: Sequence[Record], protocol: Protocol) -> Table:
    """Return a table of matched points and areas for all datasets, with those of the paper's main
    table (for dCor, of its summary); the best method in each column is in bold.
    """
    records = with_contraction(records)
    theirs = {
        (r["dataset"], r["method"]): r
        for r in (*printed_records("pareto_summary"), *printed_records("matched_performance"))
    }
    rows: list[list[Cell]] = []
    for dataset in swept_datasets(records):
        points = matched_points(records, dataset, protocol)
        penalized = [p for p in points if p.method != BASELINE]
        least = min((p.gdp.mean for p in penalized if p.gdp is not None), default=None)
        largest = max((p.naup for p in penalized if p.naup is not None), default=None)
        for p in points:
            row = theirs.get((dataset, p.method), {})
            printed = row.get("performance")
            cells: list[Cell] = [
                printed_name(dataset),
                method_name(p.method),
                printed_performance(printed and Spread(printed), dataset),
                row.get("gdp"),
                row.get("naup"),
                None if p.weight is None else f"{p.weight:g}",
                printed_performance(p.performance, dataset),
                p.gdp and replace(p.gdp, bold=p.gdp.mean == least and p.method != BASELINE),
                None if p.naup is None else Spread(p.naup, None, p.naup == largest),
            ]
            rows.append([*cells, p.inside] if protocol.validation else cells)
    names = ("performance", "GDP", "nAUP")
    printed_columns = (Column(f"printed {name}", printed=True) for name in names)
    ours = ("λ", "performance", Column("GDP", 4), "nAUP")
    inside = [Column("splits inside the band", 2)] if protocol.validation else []
    return Table.from_rows(["dataset", "method", *printed_columns, *ours, *inside], rows)


def metrics_table(records: Sequence[Record], dataset: str) -> Table:
    """Return a table of areas under every GDP convention, with the best of each column in bold. For
    regression, predictions are raw outputs.
    """
    here = matching(records, dataset=dataset)
    areas = {
        c: naup(frontier(here, dataset, c))
        for c in CONVENTIONS
        if any(r.get(c) is not None for r in here)
        and not (is_error(dataset, here) and c.startswith("gdp_logit"))
    }
    rows = []
    for method in record_methods(here):
        values = [(by_method.get(method), max(by_method.values())) for by_method in areas.values()]
        cells = [
            None if value is None else Spread(value, None, value == best) for value, best in values
        ]
        rows.append([method_name(method), *cells])
    return Table.from_rows(["nAUP under GDP on", *(CONVENTIONS[column] for column in areas)], rows)


def tables(results: Results) -> list[Listed]:
    """Return matched points, areas under every GDP convention, and agreement with the published
    sweep.
    """
    listed = protocol_tables("tradeoff", "Matched performance", matched_table)(results)
    corrected = with_contraction(results.records("tradeoff", CORRECTED.name))
    for dataset in swept_datasets(corrected):
        heading = f"{DATASET_NAMES[dataset]} under every convention of GDP, corrected protocol"
        listed.append(Listed(heading, metrics_table(corrected, dataset), True))
    return [*listed, *agreement_tables(results)]


def figures(results: Results) -> list[Drawn]:
    """Return the frontiers of all datasets, including those under a scale-free GDP."""
    drawn = protocol_figures("tradeoff", "Frontiers", draw, AT_THE_STAR, "pareto")(results)
    corrected = results.records("tradeoff", CORRECTED.name)
    if corrected:
        caption = (
            "The same under GDP ÷ standard deviation of the scores, which contraction does not"
            f" change, corrected protocol{intervals(corrected, AT_THE_STAR)}"
        )
        figure = draw(corrected, replace(CORRECTED, gdp="gdp_standardized"))
        drawn.append(Drawn("pareto-scale-free", caption, figure))
    return drawn


def draw(records: Sequence[Record], protocol: Protocol) -> Figure:
    """Draw the frontiers of all methods and of contraction."""
    records = with_contraction(records)
    frontiers = {
        DATASET_NAMES[d]: frontier(records, d, protocol.gdp) for d in swept_datasets(records)
    }
    return draw_frontiers(frontiers, record_methods(records), GDP_NAMES[protocol.gdp])


STUDY = Study(
    name="tradeoff",
    about="table: matched performance; figures: Pareto fronts",
    title="Trade-offs on the five datasets",
    words="""
        Seven penalties of the paper and this library's own, nine weights each. Published: five
        splits, GDP of raw outputs on a uniform grid, the matched point chosen on rounded test
        means. Corrected: twenty splits, corrected data, GDP of probabilities averaged over the
        population, and in each split the weight chosen on validation rows. nAUP is normalized over
        the paper's six methods.

        The row and the dashed line “contracted, no penalty” train nothing: p → 1/2 + t(p − 1/2)
        keeps every decision of the model without penalty and multiplies GDP by t. So accuracy
        against the GDP of scores, the yardstick of the paper's tables and figures, is not a
        trade-off: anyone can lower the GDP by dividing the scores. Squared error against GDP is
        one, because contraction increases the error (Crime). Claims that rest on accuracy are
        therefore judged twice: as in the paper, and by accuracy at equal GDP of the decisions,
        which contraction cannot lower. Crime, a regression without decisions, does not count in
        the second verdict.
    """,
    train=SWEEP,
    tables=tables,
    figures=figures,
    claims=CLAIMS,
)
