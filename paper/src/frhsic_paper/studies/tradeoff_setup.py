"""Claims about how the sweep of the trade-offs was set up: its grid, tables and data."""

from __future__ import annotations

from functools import cache

import numpy as np

from frhsic.datasets.loading import ENTRIES
from frhsic.frontier import Frontier, Run
from frhsic_paper.claim import NOT_RUN, Claim, Outcome, outcome_of
from frhsic_paper.frontiers import finite, is_error, naup, nearly, rounded
from frhsic_paper.printed import DATASET_NAMES, METHOD_NAMES, PRINTED_SIX, printed, printed_sweeps
from frhsic_paper.protocol import BASELINE, DATASETS, METHODS, PAPER_WEIGHTS, PROTOCOLS, PUBLISHED, Protocol
from frhsic_paper.results import Results

TEXT_WEIGHTS = (0.1, 1.0, 10.0, 100.0, 500.0)
"""The weights that the paper's text names."""

TEXT_COLUMNS = 107
"""Columns that the text gives for Adult."""

CRIME_ATTRIBUTE = {"published": "household size", "corrected": "share of black residents"}


@cache
def printed_area(dataset: str, weights: tuple[float, ...] | None) -> str:
    """Return FRHSIC's area and rank from the published files, on all weights or some."""
    runs = tuple(
        Run(r["method"], r["weight"], 0, r["performance"], r["gdp"])
        for r in printed_sweeps()
        if r["dataset"] == dataset
        and r["method"] in (*PRINTED_SIX, BASELINE)
        and (weights is None or r["method"] == BASELINE or r["weight"] in weights)
    )
    areas = naup(rounded(Frontier(runs, higher_is_better=not is_error(dataset)), PUBLISHED.decimals))
    return f"{areas['frhsic']:.3f} (rank {nearly(areas, 'frhsic')[0]})"


def _one_grid(results: Results, protocol: Protocol) -> Outcome:
    if not protocol.printed:
        return Outcome(None, f"{len(PAPER_WEIGHTS)} for every method")
    grids = {m: {float(r["weight"]) for r in printed_sweeps() if r["method"] == m} for m in METHODS}
    text = ", ".join(f"{METHOD_NAMES[m]} {len(grid)}" for m, grid in grids.items())
    return outcome_of([grid == set(TEXT_WEIGHTS) for grid in grids.values()], f"weights in the files: {text}")


def _why_one_grid(results: Results) -> str:
    grids = (None, PAPER_WEIGHTS, TEXT_WEIGHTS)
    text = "; ".join(f"{DATASET_NAMES[d]} {' → '.join(printed_area(d, grid) for grid in grids)}" for d in DATASETS)
    return f"""
        FRHSIC's nAUP from the published files, all 18 weights → the shared nine → the five of the text: {text}.
    """


def _tables_agree(results: Results, protocol: Protocol) -> Outcome:
    if not protocol.printed:
        return Outcome(None, "one table")
    main, summary = (
        {(r["dataset"], r["method"]): r["gdp"] for r in printed(table)}
        for table in ("matched_performance", "pareto_summary")
    )
    apart = [
        f"{DATASET_NAMES[key[0]]} {main[key]} against {summary[key]}"
        for key in main
        if key in summary and main[key] != summary[key]
    ]
    return Outcome(not apart, "; ".join(apart) or "equal everywhere")


def _printed_crime_gdp() -> float:
    return float(next(r["gdp"] for r in printed_sweeps() if r["dataset"] == "crime" and r["method"] == BASELINE))


def _crime_attribute(results: Results, protocol: Protocol) -> Outcome:
    """Judge by the corrected records; the published ones must be there to compare with."""
    means = {}
    for name in PROTOCOLS:
        records = finite(results.of("tradeoff", name), PUBLISHED.gdp)
        values = [r[PUBLISHED.gdp] for r in records if r["dataset"] == "crime" and r["method"] == BASELINE]
        if values:
            means[name] = float(np.mean(values))
    if protocol.name not in means:
        return NOT_RUN
    mean, theirs = means[protocol.name], _printed_crime_gdp()
    judged = len(means) == len(PROTOCOLS) and not protocol.printed
    text = f"Unfair GDP {mean:.3f} with {CRIME_ATTRIBUTE[protocol.variant]}"
    return Outcome(abs(mean - theirs) < 0.3 * theirs if judged else None, text)


def _adult_rows(results: Results, protocol: Protocol) -> Outcome:
    """Compare the shape in the published files with that of the rows without missing values."""
    rows, columns = ENTRIES["adult"].corrected
    if not protocol.printed:
        return Outcome(None, f"n = {rows:,}, d = {columns}")
    row = next(r for r in printed_sweeps() if r["dataset"] == "adult")
    removed = row["n"] == rows and row["d"] == TEXT_COLUMNS
    return Outcome(removed, f"files: n = {row['n']:,}, d = {row['d']}; without missing values {rows:,} and {columns}")


def _why_crime_attribute(results: Results) -> str:
    return f"""
        The published GDP of {_printed_crime_gdp():.3f} is that of household size, the column before racial composition
        in the file; with racial composition the unpenalised model's GDP is several times larger, in the same
        convention.
    """


SETUP_CLAIMS = (
    Claim(
        name="one-grid",
        place="Section 5.1, Appendix",
        statement="All methods are swept over the same five weights.",
        printed="{0.1, 1, 10, 100, 500}",
        rule=_one_grid,
        reason=_why_one_grid,
    ),
    Claim(
        name="tables-agree",
        place="main table and Pareto summary",
        statement="Both tables are read off the same sweep by the same rule.",
        printed="same rule stated",
        rule=_tables_agree,
        reason="""
            GDP of FRHSIC in the main table against the summary in the appendix: the first reads 18 weights, the second
            9.
        """,
    ),
    Claim(
        name="crime-attribute",
        place="Section 5.1",
        statement="The sensitive attribute of Crime is racial composition.",
        printed="Unfair GDP .029",
        rule=_crime_attribute,
        reason=_why_crime_attribute,
    ),
    Claim(
        name="adult-rows",
        place="Appendix, datasets",
        statement="Adult: missing values removed, d = 107.",
        printed="n ≈ 30,000, d = 107",
        rule=_adult_rows,
        reason="""
            All 32,561 rows of the source were used, with “?” as a level of its own; 107 columns cannot be had
            otherwise.
        """,
    ),
)
