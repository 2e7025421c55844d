"""The page on top: what held, how well the numbers agree, where everything is, and the fair
comparison.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from typing import NamedTuple

import jinja2

from frhsic_paper.agreement import agreement, counts
from frhsic_paper.claim import NOT_RUN, VERDICTS, Finding, unwrapped
from frhsic_paper.protocol import PROTOCOLS, PUBLISHED
from frhsic_paper.results import Results
from frhsic_paper.studies import STUDIES, tuned, yardsticks
from frhsic_paper.study import Study
from frhsic_paper.table import Cell, Table

SIGNS = {"holds": "✓", "holds in part": "◐", "does not hold": "✗", "cannot be judged": "?"}

PLURAL = {"holds": "hold", "holds in part": "hold in part", "does not hold": "do not hold"}


class Item(NamedTuple):
    """A table or figure of the paper: its number, what it shows, the study, our figure, the names
    of its claims.
    """

    number: str
    what: str
    study: str
    figure: str = ""
    claims: str = ""


INDEX = (
    Item("Figure 1", "conditional and joint routes", ""),
    Item(
        "Figure 2",
        "convergence of the estimators",
        "convergence",
        "convergence",
        "hsic-rate eipm-rate",
    ),
    Item(
        "Table 1",
        "matched performance",
        "tradeoff",
        "",
        "comparable no-method-dominates best-on-compas close-on-crime "
        "mid-pack mmd-competitive held-out-weight mean-and-std",
    ),
    Item(
        "Figure 3",
        "trade-offs, classification",
        "tradeoff",
        "pareto",
        "reg-gdp-collapse laftr-weak",
    ),
    Item("Figure 4", "trade-off on Crime", "tradeoff", "pareto-crime", "crime-attribute"),
    Item(
        "Table 2",
        "deviation over fresh heads",
        "transfer",
        "",
        "transfer-below-unfair most-consistent",
    ),
    Item("Figure 5", "seconds of an epoch", "runtime", "runtime", "speedup reg-gdp-faster timing"),
    Item("Table 3", "trade-offs at the 1 % band", "tradeoff", "", "tables-agree one-grid"),
    Item(
        "Figure 6",
        "synthetic data",
        "synthetic",
        "synthetic",
        "synthetic-monotone synthetic-accuracy synthetic-together",
    ),
    Item("Table 4", "Equal Opportunity", "equal-opportunity", "", "eo-compas eo-adult eo-full-gdp"),
    Item("Table 5", "two attributes", "multi-attribute", "", "multi-reduce joint-below-sum"),
    Item("Figure 7", "two attributes", "multi-attribute", "multi-attribute", "multi-reduce"),
    Item(
        "Figure 8",
        "mutual information",
        "mutual-information",
        "mutual-information",
        "information adversaries-zero",
    ),
    Item(
        "Figure 9",
        "fresh heads",
        "transfer",
        "transfer",
        "transfer-crime reg-gdp-transfer transfer-datasets",
    ),
    Item("Figure 10", "tightness of the bound", "bound", "bound", "bound-valid bound-non-vacuous"),
    Item(
        "Figure 11",
        "eigenvalue and bandwidth",
        "bandwidth-scaling",
        "bandwidth-scaling.svg",
        "eigenvalue-scaling",
    ),
    Item(
        "Figure 12",
        "several attributes",
        "high-dimensional",
        "high-dimensional",
        "dimension-time dimension-flat dimension-columns",
    ),
    Item("Table 6", "kernels", "ablation-kernel", "", "kernels-comparable gaussian-better"),
    Item("Table 7", "width of Z", "ablation-dimension", "", "dimension"),
    Item(
        "Figure 13",
        "choice of λ",
        "weight-selection",
        "weight-selection",
        "selection-range selection-performance",
    ),
)
"""The paper's tables and figures, in their order."""

MAIN = (
    "hsic-rate",
    "comparable",
    "any-head",
    "speedup",
    "information",
    "bound-non-vacuous",
    "selection-performance",
)
"""The claims that the paper's abstract and conclusion rest on."""


def summary(
    results: Results, findings: Mapping[str, Finding], studies: Sequence[Study] = STUDIES
) -> str:
    """Return the page as markdown; `findings` are those of all claims."""
    claims = {claim.name: (claim, study.name) for study in studies for claim in study.claims}
    standings = yardsticks.tables(results)[:1]
    final = tuned.tables(results)[:1]
    return rendered(
        "reproduction.md.j2",
        counts=counted(findings),
        differing=differing(findings),
        agreement=_agreement(results),
        main=[(*claims[name], findings[name]) for name in MAIN if name in claims],
        index=index_table(results, findings),
        yardsticks=yardsticks.sentences(results),
        standings=standings[0].table if standings else None,
        words=yardsticks.STUDY.words,
        tuned=tuned.sentences(results),
        final=final[0].table if final else None,
    )


def counted(findings: Mapping[str, Finding]) -> str:
    """Return how many claims and theorems hold, as a sentence without its full stop."""
    parts = []
    for words, theorems in (("claims about experiments", False), ("theorems", True)):
        verdicts = [
            f.verdict for name, f in findings.items() if name.startswith("theorem-") == theorems
        ]
        counts = Counter(verdicts)
        parts.append(
            f"{len(verdicts)} {words},"
            f" {', '.join(f'{counts[v]} {PLURAL.get(v, v)}' for v in VERDICTS if counts[v])}"
        )
    return f"Of {parts[0]}; of {parts[1]}"


def differing(findings: Mapping[str, Finding]) -> str:
    """Return how many claims are judged twice, and the names of those whose second verdict is
    another.
    """
    twice = {name: (f, f.on_decisions) for name, f in findings.items() if f.on_decisions}
    other = [name for name, (first, second) in twice.items() if first.verdict != second.verdict]
    return f"{len(twice)} claims; the verdict differs for {', '.join(other) or 'none'}"


def index_table(results: Results, findings: Mapping[str, Finding]) -> Table:
    """The paper's tables and figures with verdicts and our figures."""
    rows: list[tuple[Cell, ...]] = []
    for item in INDEX:
        if not item.study:
            rows.append((item.number, item.what, "a drawing", ""))
            continue
        signs = " ".join(
            SIGNS[findings[name].verdict] for name in item.claims.split() if name in findings
        )
        ran = [name for name in PROTOCOLS if item.figure and results.of(item.study, name)]
        links = [f"[{name}](figures/{item.figure}-{name}.svg)" for name in ran]
        if item.figure.endswith(".svg"):
            links = [f"[both](figures/{item.figure})"]
        rows.append(
            (f"[{item.number}](reproduction/{item.study}.md)", item.what, signs, " ".join(links))
        )
    return Table.of(["", "shows", "claims", "figure"], rows)


def _agreement(results: Results) -> str:
    records = results.of("tradeoff", PUBLISHED.name)
    if not records:
        return ""
    within, near, total = counts(agreement(records))
    text = (
        f"{within} of {total} cells of the published sweep are within two combined standard"
        " deviations of ours"
    )
    return f"{text}, {near} within two standard errors"


def rendered(template: str, **content: object) -> str:
    """Return a template filled with its content."""
    return _environment().get_template(template).render(**content).rstrip() + "\n"


@cache
def _environment() -> jinja2.Environment:
    """Return the templates, which are compiled once."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("frhsic_paper", "."),
        undefined=jinja2.StrictUndefined,
        autoescape=False,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "markdown": Table.markdown,
        "unwrapped": unwrapped,
        "sign": SIGNS.__getitem__,
    }
    environment.tests["not_run"] = _is_not_run
    environment.globals["table"] = Table.of
    return environment


def _is_not_run(finding: Finding) -> bool:
    return finding.verdict == "cannot be judged" and NOT_RUN.text in (
        finding.published,
        finding.corrected,
    )
