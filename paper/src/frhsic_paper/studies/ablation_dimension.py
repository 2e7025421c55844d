"""The dimension of the representation on the synthetic task."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from statistics import fmean

from matplotlib.figure import Figure

from frhsic_paper.claim import NOT_RUN, Outcome, claim, outcome_from_cases, require_repeats
from frhsic_paper.frontiers import record_weights
from frhsic_paper.grid import Grid, methods_by_name
from frhsic_paper.plot import (
    Drawn,
    curve,
    directed_label,
    finish,
    intervals,
    page_style,
    panels,
    variant,
)
from frhsic_paper.printed import printed_records
from frhsic_paper.protocol import CONTRACTED, PROTOCOLS, Protocol
from frhsic_paper.records import Record
from frhsic_paper.results import Results
from frhsic_paper.steps import Training
from frhsic_paper.studies import ablation_kernel
from frhsic_paper.studies.ablation_kernel import PRINTED_WEIGHT, accuracy_and_gdp
from frhsic_paper.studies.synthetic import ByRepeat, is_clearly_below, one_seed_or, values_by_repeat
from frhsic_paper.study import Study
from frhsic_paper.table import Column, Listed, Table

DIMENSIONS = (2, 8, 32, 64)

DEFAULT = 8
"""The dimension that the paper calls its default."""


def grid(z_dim: int, protocol: Protocol) -> Grid:
    """Return the models of one dimension."""
    return replace(
        ablation_kernel.grid(protocol),
        study="ablation-dimension",
        part=str(z_dim),
        methods=methods_by_name("frhsic", z_dim=z_dim),
        encoder=partial(ablation_kernel.ablation_encoder, z_dim),
        z_dim=z_dim,
    )


def _by_dimension(results: Results, protocol: Protocol) -> dict[int, Sequence[Record]]:
    return {d: results.records(f"ablation-dimension/{d}", protocol.name) for d in DIMENSIONS}


def dimension_table(by_dimension: dict[int, Sequence[Record]], protocol: Protocol) -> Table:
    """Accuracy and GDP against the dimension of the representation."""
    in_paper = {r["d_z"]: r for r in printed_records("dim_ablation_lambda5")}
    models = [(CONTRACTED, 2.0, d) for d, records in by_dimension.items() if records]
    models += sorted(
        ("frhsic", w, d) for d, records in by_dimension.items() for w in record_weights(records)
    )
    rows = [
        [d, *accuracy_and_gdp(by_dimension[d], protocol, method, weight, in_paper.get(d, {}))]
        for method, weight, d in models
    ]
    headings = (
        "dimension of Z",
        "λ",
        "printed accuracy",
        Column("printed GDP", 4),
        "accuracy",
        Column("GDP", 4),
    )
    return Table.from_rows(headings, rows)


def tables(results: Results) -> list[Listed]:
    """One table for each protocol."""
    return [
        Listed(
            f"Dimension of the representation, {protocol.name} protocol",
            dimension_table(by_dimension, protocol),
        )
        for protocol in PROTOCOLS.values()
        if any((by_dimension := _by_dimension(results, protocol)).values())
    ]


def figures(results: Results) -> list[Drawn]:
    """One figure for each protocol."""
    drawn = []
    for protocol in PROTOCOLS.values():
        by_dimension = _by_dimension(results, protocol)
        records = [r for some in by_dimension.values() for r in some]
        if records:
            caption = f"Accuracy and GDP against the dimension of Z, {protocol.name} protocol"
            figure = draw(by_dimension, protocol)
            name = f"ablation-dimension-{protocol.name}"
            drawn.append(Drawn(name, caption + intervals(records), figure))
    return drawn


@page_style()
def draw(by_dimension: dict[int, Sequence[Record]], protocol: Protocol) -> Figure:
    """Accuracy and GDP against the dimension, a line for each weight."""
    figure, axes = panels(2)
    weights = record_weights(r for records in by_dimension.values() for r in records)
    for ax, label, column in zip(axes, ("accuracy", "GDP"), ("performance", protocol.gdp)):
        for index, weight in enumerate(weights):
            groups = [
                list(values_by_repeat(records, column, "frhsic", weight).values())
                for records in by_dimension.values()
            ]
            curve(ax, list(by_dimension), groups, **variant(index), label=f"λ = {weight:g}")
        ax.set(xscale="log", xlabel="dimension of Z")
        ax.set_ylabel(directed_label(label, higher=label == "accuracy"))
    finish(figure, axes)
    for ax in axes:
        ax.set_xticks(list(by_dimension), map(str, by_dimension))
    return figure


def _grows(values: Sequence[ByRepeat]) -> bool:
    return is_clearly_below(values[0], values[-1]) and not any(
        is_clearly_below(b, a) for a, b in pairwise(values)
    )


@claim(
    "dimension",
    "Table dimensions",
    "GDP grows with the dimension of Z.",
    ".0001, .0001, .0025, .0034",
)
def _dimension(results: Results, protocol: Protocol) -> Outcome:
    """GDP over dimensions 2, 8, 32, 64. It grows if the last is above the first and no step falls,
    each by more than two standard errors over paired splits; one seed cannot tell. λ = 5, as in the
    paper, where classifiers are all but constant; the table has λ = 0.5 too.
    """
    values = [
        values_by_repeat(records, protocol.gdp, "frhsic", PRINTED_WEIGHT)
        for records in _by_dimension(results, protocol).values()
    ]
    return one_seed_or(_grows, values)


@claim(
    "dimension-balance",
    "Appendix, dimensions",
    "The default d_Z = 8 is a good balance of accuracy and GDP.",
    "accuracy .620, GDP .0001",
)
def _balance(results: Results, protocol: Protocol) -> Outcome:
    """Two cases for each other dimension, at λ = 5: accuracy at 8 is not lower, and GDP not higher,
    by more than two standard errors over paired splits. Only the synthetic tasks have d_Z = 8; the
    encoders of the real datasets have 50.
    """
    by_dimension = _by_dimension(results, protocol)
    accuracy, gdp = (
        {
            d: values_by_repeat(records, column, "frhsic", PRINTED_WEIGHT)
            for d, records in by_dimension.items()
        }
        for column in ("performance", protocol.gdp)
    )
    if not all(accuracy.values()):
        return NOT_RUN
    cases = [
        f"d_Z = {d}: accuracy {fmean(accuracy[d].values()):.3f}, GDP {fmean(gdp[d].values()):.4f}"
        for d in DIMENSIONS
    ]
    every = [r for records in by_dimension.values() for r in records]
    if len(accuracy[DEFAULT]) < 2:
        return require_repeats(Outcome(True, "", tuple(cases)), every)
    others = [d for d in DIMENSIONS if d != DEFAULT]
    good = [not is_clearly_below(accuracy[DEFAULT], accuracy[d]) for d in others]
    good += [not is_clearly_below(gdp[d], gdp[DEFAULT]) for d in others]
    return require_repeats(outcome_from_cases(good, "", cases), every)


STUDY = Study(
    name="ablation-dimension",
    about="table: width of Z",
    title="Dimension of the representation",
    words="The same task, three splits; corrected adds λ = 0.5 and has five splits.",
    train=tuple(Training(partial(grid, d)) for d in DIMENSIONS),
    tables=tables,
    figures=figures,
    claims=(_dimension, _balance),
)
