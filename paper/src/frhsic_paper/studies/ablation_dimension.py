"""The dimension of the representation on the synthetic task."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from statistics import fmean

from frhsic_paper.claim import NOT_RUN, Outcome, claim, outcome_from_cases, protocol_rule
from frhsic_paper.frontiers import record_weights
from frhsic_paper.grid import Grid, methods_by_name
from frhsic_paper.printed import printed_records
from frhsic_paper.protocol import CONTRACTED, Protocol
from frhsic_paper.records import Record, matching
from frhsic_paper.steps import Training
from frhsic_paper.studies import ablation_kernel
from frhsic_paper.studies.ablation_kernel import ACCURACY_AND_GDP, PRINTED_WEIGHT, accuracy_and_gdp
from frhsic_paper.studies.synthetic import ByRepeat, is_clearly_below, one_seed_or, values_by_repeat
from frhsic_paper.study import Study
from frhsic_paper.table import Table, protocol_tables

DIMENSIONS = (2, 8, 32, 64)

DEFAULT = 8
"""The dimension that the paper calls its default."""


def grid(z_dim: int, protocol: Protocol) -> Grid:
    """Return the grid of models for one dimension."""
    return replace(
        ablation_kernel.grid(protocol),
        study="ablation-dimension",
        part=str(z_dim),
        methods=methods_by_name("frhsic", z_dim=z_dim),
        encoder=partial(ablation_kernel.ablation_encoder, z_dim),
        z_dim=z_dim,
    )


def _by_dimension(records: Sequence[Record]) -> dict[int, list[Record]]:
    return {d: matching(records, part=str(d)) for d in DIMENSIONS}


def dimension_table(records: Sequence[Record], protocol: Protocol) -> Table:
    """Return a table of accuracy and GDP by dimension of the representation."""
    in_paper = {r["d_z"]: r for r in printed_records("dim_ablation_lambda5")}
    by_dimension = _by_dimension(records)
    models = [(CONTRACTED, 2.0, d) for d, own in by_dimension.items() if own]
    models += sorted(
        ("frhsic", w, d) for d, own in by_dimension.items() for w in record_weights(own)
    )
    rows = [
        [d, *accuracy_and_gdp(by_dimension[d], protocol, method, weight, in_paper.get(d, {}))]
        for method, weight, d in models
    ]
    return Table.from_rows(["dimension of Z", *ACCURACY_AND_GDP], rows)


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
@protocol_rule("ablation-dimension")
def _dimension(records: Sequence[Record], protocol: Protocol) -> Outcome:
    """GDP at dimensions 2, 8, 32 and 64. It grows if the last value is above the first by more than
    two standard errors over paired splits, and no step goes down by more than that; one seed is not
    enough. As in the paper, λ = 5, where classifiers are almost constant; the table also has λ =
    0.5.
    """
    values = [
        values_by_repeat(own, protocol.gdp, "frhsic", PRINTED_WEIGHT)
        for own in _by_dimension(records).values()
    ]
    return one_seed_or(_grows, values)


@claim(
    "dimension-balance",
    "Appendix, dimensions",
    "The default d_Z = 8 is a good balance of accuracy and GDP.",
    "accuracy .620, GDP .0001",
)
@protocol_rule("ablation-dimension")
def _balance(records: Sequence[Record], protocol: Protocol) -> Outcome:
    """Two cases for each other dimension, at λ = 5: accuracy at 8 is not lower, and GDP not higher,
    by more than two standard errors over paired splits. Only the synthetic tasks have d_Z = 8; the
    encoders of the real datasets have 50.
    """
    accuracy, gdp = (
        {
            d: values_by_repeat(own, column, "frhsic", PRINTED_WEIGHT)
            for d, own in _by_dimension(records).items()
        }
        for column in ("performance", protocol.gdp)
    )
    if not all(accuracy.values()):
        return NOT_RUN
    cases = [
        f"d_Z = {d}: accuracy {fmean(accuracy[d].values()):.3f}, GDP {fmean(gdp[d].values()):.4f}"
        for d in DIMENSIONS
    ]
    if len(accuracy[DEFAULT]) < 2:
        return Outcome(True, "", tuple(cases))
    others = [d for d in DIMENSIONS if d != DEFAULT]
    good = [not is_clearly_below(accuracy[DEFAULT], accuracy[d]) for d in others]
    good += [not is_clearly_below(gdp[d], gdp[DEFAULT]) for d in others]
    return outcome_from_cases(good, "", cases)


STUDY = Study(
    name="ablation-dimension",
    about="table: width of Z",
    title="Dimension of the representation",
    words="The synthetic task, three splits. Corrected: five splits, and λ = 0.5 as well.",
    train=tuple(Training(partial(grid, d)) for d in DIMENSIONS),
    tables=protocol_tables(
        "ablation-dimension", "Dimension of the representation", dimension_table
    ),
    claims=(_dimension, _balance),
)
