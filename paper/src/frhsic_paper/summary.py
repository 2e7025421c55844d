"""The overview page: which claims hold, how well the numbers agree, links to everything, and the
benchmark.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from typing import NamedTuple

import jinja2

from frhsic.report.words import join_names
from frhsic_paper.agreement import agreement, compare_small_tables, compare_with_print, counts
from frhsic_paper.claim import (
    NOT_RUN,
    VERDICTS,
    About,
    Cases,
    Claim,
    Finding,
    Verdict,
    unwrap,
    use_decision_gdp,
)
from frhsic_paper.frontiers import rank_and_distance
from frhsic_paper.printed import PRINTED_SIX
from frhsic_paper.protocol import CORRECTED, PUBLISHED
from frhsic_paper.results import Results
from frhsic_paper.studies import STUDIES, crossed
from frhsic_paper.studies.tradeoff_claims import method_areas
from frhsic_paper.study import Study
from frhsic_paper.table import Cell, Table

SIGNS = {"holds": "✓", "holds in part": "◐", "does not hold": "✗", "cannot be judged": "?"}

PLURAL: dict[Verdict, str] = {
    "holds": "hold",
    "holds in part": "hold in part",
    "does not hold": "do not hold",
    "cannot be judged": "cannot be judged",
}

COUNTED: dict[About, str] = {
    "results": "claims about results",
    "reporting": "about reporting (what the paper says about its own setup and tables)",
    "theory": (
        "formulas of theorems, checked on small distributions (where uniform bounds are vacuous)"
    ),
}


class Item(NamedTuple):
    """A table or figure of the paper: its number, what it shows, its study, and the names of its
    claims; links lead to the first of these.
    """

    number: str
    what: str
    study: str = ""
    claims: tuple[str, ...] = ()

    @property
    def anchor(self) -> str:
        """The anchor of its first claim on the study's page."""
        return self.number.lower().replace(" ", "-")


INDEX = (
    Item("Figure 1", "conditional and joint routes, a drawing"),
    Item("Figure 2", "convergence of the estimators", "convergence", ("hsic-rate", "eipm-rate")),
    Item(
        "Table 1",
        "matched performance",
        "tradeoff",
        (
            "comparable",
            "no-method-dominates",
            "best-on-compas",
            "close-on-crime",
            "mid-pack",
            "laftr-weak",
            "mmd-competitive",
            "held-out-weight",
            "mean-and-std",
        ),
    ),
    Item(
        "Figure 3",
        "trade-offs, classification",
        "tradeoff",
        ("comparable", "no-method-dominates", "reg-gdp-collapse"),
    ),
    Item("Figure 4", "trade-off on Crime", "tradeoff", ("crime-attribute",)),
    Item(
        "Table 2",
        "deviation over fresh heads",
        "transfer",
        ("transfer-below-unfair", "most-consistent"),
    ),
    Item("Figure 5", "seconds per epoch", "runtime", ("speedup", "reg-gdp-faster", "timing")),
    Item(
        "Table 3",
        "trade-offs within the 1 % band",
        "tradeoff",
        ("comparable", "tables-agree", "one-grid"),
    ),
    Item(
        "Figure 6",
        "synthetic data",
        "synthetic",
        ("synthetic-monotone", "synthetic-accuracy", "synthetic-together"),
    ),
    Item(
        "Table 4",
        "Equal Opportunity",
        "equal-opportunity",
        ("eo-compas", "eo-adult", "eo-full-gdp"),
    ),
    Item("Table 5", "two attributes", "multi-attribute", ("multi-reduce", "joint-below-sum")),
    Item("Figure 7", "two attributes", "multi-attribute", ("multi-reduce",)),
    Item(
        "Figure 8",
        "mutual information",
        "mutual-information",
        ("information", "adversaries-zero"),
    ),
    Item(
        "Figure 9",
        "fresh heads",
        "transfer",
        ("transfer-crime", "transfer-caption", "reg-gdp-transfer", "transfer-datasets"),
    ),
    Item("Figure 10", "tightness of the bound", "bound", ("bound-valid", "bound-non-vacuous")),
    Item("Figure 11", "eigenvalue and bandwidth", "bandwidth-scaling", ("eigenvalue-scaling",)),
    Item(
        "Figure 12",
        "several attributes, time",
        "high-dimensional",
        ("dimension-time", "dimension-flat", "dimension-columns"),
    ),
    Item("Table 6", "kernels", "ablation-kernel", ("kernels-comparable", "gaussian-better")),
    Item("Table 7", "width of Z", "ablation-dimension", ("dimension", "dimension-balance")),
    Item(
        "Figure 13",
        "choice of λ",
        "weight-selection",
        ("selection-range", "selection-performance", "practical-threshold"),
    ),
)
"""The paper's tables and figures, in order."""

MAIN = (
    "hsic-rate",
    "comparable",
    "any-head",
    "speedup",
    "information",
    "bound-non-vacuous",
    "selection-performance",
)
"""The claims on which the paper's abstract and conclusion are based."""


def summary(
    results: Results, findings: Mapping[str, Finding], studies: Sequence[Study] = STUDIES
) -> str:
    """Return the page as Markdown, given the findings on all claims."""
    claims = {claim.name: (claim, study.name) for study in studies for claim in study.claims}
    return render_template(
        "reproduction.md.j2",
        counts=count_claims(findings),
        differing=differing(findings, claims),
        led=_led(results),
        agreement=_agreement(results),
        main=[(*claims[name], findings[name]) for name in MAIN if name in claims],
        index=index_table(findings),
        crossed=crossed.STUDY.lead(results),
    )


def count_claims(findings: Mapping[str, Finding]) -> str:
    """Return how many claims and theorems hold, as a sentence without its period."""
    parts = []
    for about, words in COUNTED.items():
        verdicts = [f.verdict for f in findings.values() if f.about == about]
        parts.append(f"of {len(verdicts)} {words}, {verdict_counts(verdicts)}")
    return "; ".join(parts).capitalize()


def verdict_counts(verdicts: Sequence[Verdict]) -> str:
    """Return a phrase with the number of verdicts of each kind.

    Examples
    --------
    >>> verdict_counts(["holds", "does not hold", "does not hold"])
    '1 holds and 2 do not hold'
    """
    counts = Counter(verdicts)
    parts = [f"{counts[v]} {v if counts[v] == 1 else PLURAL[v]}" for v in VERDICTS if counts[v]]
    return join_names(parts) if parts else "none"


def overall_verdict(verdicts: Sequence[Verdict]) -> str:
    """Return one verdict for several claims, with counts if their verdicts differ.

    Examples
    --------
    >>> (
    ...     overall_verdict(["holds", "does not hold"]),
    ...     overall_verdict(["holds", "holds"]),
    ...     overall_verdict([]),
    ... )
    ('holds in part: 1 holds and 1 does not hold', 'holds: both claims', 'no claim')
    """
    if len(verdicts) < 2:
        return verdicts[0] if verdicts else "no claim"
    if len(set(verdicts)) == 1:
        return f"{verdicts[0]}: {'both' if len(verdicts) == 2 else f'all {len(verdicts)}'} claims"
    judged = set(verdicts) - {"cannot be judged"}
    (one,) = judged if len(judged) == 1 else ("holds in part",)
    return f"{one}: {verdict_counts(verdicts)}"


def differing(findings: Mapping[str, Finding], claims: Mapping[str, tuple[Claim, str]]) -> str:
    """Return how many claims have two verdicts, and links to those whose second verdict differs;
    `claims` is keyed by name and contains their studies.
    """
    twice = {name: (f, f.on_decisions) for name, f in findings.items() if f.on_decisions}
    other = [name for name, (first, second) in twice.items() if first.verdict != second.verdict]
    links = [f"[{name}](evidence/{claims[name][1]}.md#{name})" for name in other]
    which = f"{len(links)} of them: {', '.join(links)}" if links else "none"
    return f"{len(twice)} claims; the verdict differs for {which}"


def index_table(findings: Mapping[str, Finding]) -> Table:
    """Return a table of the paper's tables and figures, with their verdicts in words."""
    rows: list[tuple[Cell, ...]] = []
    for item in INDEX:
        own = [findings[name] for name in item.claims if name in findings]
        verdicts = [
            overall_verdict([f.verdict for f in own if f.about == about])
            for about in ("results", "reporting")
        ]
        link = f"[{item.number}](evidence/{item.study}.md#{item.anchor})"
        rows.append((link if item.study else item.number, item.what, *verdicts))
    return Table.from_rows(
        ["", "shows", "verdict on its results", "verdict on its reporting"], rows
    )


def _agreement(results: Results) -> str:
    records = results.records("tradeoff", PUBLISHED.name)
    if not records:
        return ""
    within, near, total = counts(agreement(records))
    areas, alike, gaps = compare_with_print(records)
    return (
        f"{within} of {total} numbers in the authors' files are within two combined standard"
        f" deviations of ours, {near} within two standard errors. Against the printed Table 1, nAUP"
        f" is within .05 of ours in {areas} cases ({alike} without ACS Income and FRHSIC) and GDP"
        f" within two combined standard deviations in {gaps}. Numbers from single runs"
        " are within two standard deviations of ours in {} cases (Table 2), {} (Table 4) and {}"
        " (Table 5)".format(*compare_small_tables(results))
    )


def _led(results: Results) -> str:
    """Return a sentence with the number of datasets on which FRHSIC has the largest area, by either
    GDP.
    """
    counts_led = []
    for sweep in (results, use_decision_gdp(results)):
        areas = method_areas(sweep.records("tradeoff", CORRECTED.name), CORRECTED).values()
        ranks = [
            rank_and_distance(some, "frhsic")[0] for some in areas if len(some) == len(PRINTED_SIX)
        ]
        counts_led.append(Cases(ranks.count(1), len(ranks)))
    by_scores, by_decisions = counts_led
    if not by_scores.of:
        return ""
    return (
        "Under the corrected protocol, FRHSIC has the largest nAUP (normalized area under the"
        f" trade-off curve) of the paper's six methods on {by_scores} datasets by the GDP of"
        f" scores, and on {by_decisions} by that of decisions."
    )


def render_template(template: str, **content: object) -> str:
    """Return a template, filled in with its content."""
    return _environment().get_template(template).render(**content).rstrip() + "\n"


@cache
def _environment() -> jinja2.Environment:
    """Return the environment of the templates, which are compiled once."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("frhsic_paper", "."),
        undefined=jinja2.StrictUndefined,
        autoescape=False,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "markdown": Table.markdown,
        "unwrapped": unwrap,
        "sign": SIGNS.__getitem__,
    }
    environment.tests["not_run"] = _is_not_run
    environment.globals["table"] = Table.from_rows
    return environment


def _is_not_run(finding: Finding) -> bool:
    return finding.verdict == "cannot be judged" and NOT_RUN.lines in (
        finding.published,
        finding.corrected,
    )
