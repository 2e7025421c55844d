"""Mutual information of representation and attribute, by nearest neighbours."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from matplotlib.figure import Figure

from frhsic_paper.claim import NOT_RUN, Case, Outcome, case_rule, claim, protocol_rule
from frhsic_paper.frontiers import frontier, mean_value, naup, record_methods, swept_datasets
from frhsic_paper.plot import AT_THE_STAR, draw_frontiers, protocol_figures
from frhsic_paper.printed import dataset_name, method_name
from frhsic_paper.protocol import BASELINE, Protocol
from frhsic_paper.records import Record
from frhsic_paper.study import Study
from frhsic_paper.sweep import SWEEP
from frhsic_paper.table import Table, protocol_tables

COLUMNS = {"published": "mi_published", "corrected": "mi"}
"""The column that contains each protocol's estimate."""

NOT_CLAIMED = ("compas",)
"""Datasets for which the paper doesn't compare mutual information."""


def least_table(records: Sequence[Record], protocol: Protocol) -> Table:
    """Return a table of each method's smallest mutual information within 1 % of the unpenalized
    performance, by dataset.
    """
    column, datasets = COLUMNS[protocol.name], swept_datasets(records)
    points = {d: frontier(records, d, column).matched_points() for d in datasets}
    rows = []
    for method in (BASELINE, *record_methods(records)):
        matched = [points[d].get(method) for d in datasets]
        rows.append([method_name(method), *(None if p is None else p.dependence for p in matched)])
    return Table.from_rows(["least MI within 1 %, nats", *map(dataset_name, datasets)], rows)


def draw(records: Sequence[Record], protocol: Protocol) -> Figure:
    """Draw the mutual information of Z and S against performance, over the weights of each
    method.
    """
    frontiers = {
        dataset_name(d): frontier(records, d, COLUMNS[protocol.name])
        for d in swept_datasets(records)
        if d not in NOT_CLAIMED
    }
    label = "mutual information of Z and S, nats"
    return draw_frontiers(frontiers, record_methods(records), label)


@claim(
    "information",
    "Appendix, mutual information",
    "FRHSIC tends to have lower mutual information of Z and S than Reg-GDP at comparable"
    " performance.",
    "FRHSIC .008, .015; Reg-GDP .017, .056 (Adult, Crime); in no published file",
)
@case_rule("mutual-information", "areas of FRHSIC and Reg-GDP")
def _lower_than_reg_gdp(records: Sequence[Record], protocol: Protocol) -> Iterator[Case]:
    """nAUP with mutual information in place of GDP, which compares all levels of performance at
    once. As published, marginal counts are inclusive and Z is not scaled; corrected, counts are
    strict and both are standardised.
    """  # noqa: D403  # the paper's name of an area
    for dataset in (d for d in swept_datasets(records) if d not in NOT_CLAIMED):
        full = frontier(records, dataset, COLUMNS[protocol.name])
        if full.method_points(BASELINE)[0].dependence > 0:
            areas = naup(full)
            if {"frhsic", "reg-gdp"} <= areas.keys():
                own, other = areas["frhsic"], areas["reg-gdp"]
                yield own > other, f"{dataset_name(dataset)} {own:.3f} and {other:.3f}"


@claim(
    "adversaries-zero",
    "Appendix, mutual information",
    "ADV and LAFTR report a mutual information of about 0 with high GDP, because their"
    " representations lie on manifolds.",
    "≈ 0",
)
@protocol_rule("mutual-information")
def _adversaries_zero(records: Sequence[Record], protocol: Protocol) -> Outcome:
    """The zero comes from counting neighbours inclusively on unscaled Z and from clipping, not from
    manifolds: with strict counts on standardised coordinates, Z contains information about S in the
    same models.
    """
    column = COLUMNS[protocol.name]
    means = {
        method: mean
        for method in ("adv", "laftr")
        if (mean := mean_value(records, column, dataset="adult", method=method)) is not None
    }
    if not means:
        return NOT_RUN
    text = ", ".join(f"{method_name(method)} {mean:.3f}" for method, mean in means.items())
    return Outcome(all(abs(mean) < 0.01 for mean in means.values()), f"Adult, mean over λ: {text}")


STUDY = Study(
    name="mutual-information",
    about="figure: mutual information (the sweep of tradeoff)",
    title="Mutual information of representation and attribute",
    words="""
        Nearest-neighbour estimates on test rows of the first splits of the sweep. They use only the
        two to five leading principal components of Z, so a low value does not show that S is gone;
        see [the probes](leak.md).
    """,
    train=SWEEP,
    tables=protocol_tables(
        "mutual-information", "Least mutual information within 1 % of performance", least_table
    ),
    figures=protocol_figures(
        "mutual-information",
        "Mutual information of Z and S against performance",
        draw,
        AT_THE_STAR,
    ),
    claims=(_lower_than_reg_gdp, _adversaries_zero),
)
