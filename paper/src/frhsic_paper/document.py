"""The document: every claim of the paper beside what was measured, with tables and figures, from records alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from frhsic_paper.claims import CLAIMS, Claim, Finding
from frhsic_paper.claims.claim import NOT_RUN, VERDICTS
from frhsic_paper.contents import Drawn, Listed
from frhsic_paper.figures.style import save
from frhsic_paper.penalty_tables import penalty_tables
from frhsic_paper.results import Results
from frhsic_paper.sections import SECTIONS, Section
from frhsic_paper.tables import Column, Table

__all__ = ["reproduction", "write"]

SIGNS = {"holds": "✓", "holds in part": "◐", "does not hold": "✗", "cannot be judged": "?"}

INTRODUCTION = """\
# Reproduction of the paper

Every table, figure and claim of the paper, run again by one command, laid beside the printed numbers. This page is
generated from the records in `results/`; nothing in it is written by hand:

```
frhsic reproduce all --protocol both     # hours on a CPU, minutes on a GPU; goes on where it was cut off
frhsic reproduce all --docs              # this page, its figures and the tables of the penalties, from the records
```

Each experiment is run under two protocols. **Published** keeps the conventions that the printed numbers were made with,
wrong ones included, so that one can see whether they reproduce. **Corrected** follows the paper's text, or the right
mathematics where the text is wrong, so that one can see what is true.

| | published | corrected |
|---|---|---|
| GDP | raw outputs, uniform grid over the range of S | probabilities, averaged over the population |
| weights | nine for every method (the printed tables give FRHSIC eighteen) | the same nine |
| choice of a weight | on test rows, means rounded to four digits | on validation rows, in each split |
| splits | 5 | 20 for the sweep |
| Crime | protects household size | protects the share of black residents |
| Adult, MEPS, ACS Income | missing values kept as levels; codes as numbers | rows dropped, categories one-hot |
| scales of X and S | all rows outside the sweep | training rows everywhere |

A verdict is decided by a rule from the records: **holds**, **holds in part** (in some of the cases that the claim
covers, or under one protocol only), **does not hold**, **cannot be judged** (not run).
"""


def write(out: Path, to: Path) -> list[Path]:
    """Write the document, its figures and the tables of the penalties from the records of a directory.

    Parameters
    ----------
    out
        Directory of the records.
    to
        Directory of the document; figures go to its folder `figures`.

    Returns
    -------
    list of Path
        What was written.
    """
    results = Results.read(out)
    if not results.files:
        raise ValueError(f"no records in {out}: run `frhsic reproduce NAME` first, or pass the directory with --out.")
    to.mkdir(parents=True, exist_ok=True)
    written: list[Path] = []
    drawn = {section.experiment: section.figures(results) for section in SECTIONS}
    for figures in drawn.values():
        written += [save(figure.figure, to / "figures" / f"{figure.name}.svg") for figure in figures]
    page = to / "reproduction.md"
    page.write_text(reproduction(results, drawn), encoding="utf-8")
    tables = to / "penalty_tables.md"
    tables.write_text(penalty_tables(results), encoding="utf-8")
    return [*written, page, tables]


def reproduction(results: Results, drawn: dict[str, list[Drawn]]) -> str:
    """Return the page as markdown; `drawn` are the figures of each section."""
    findings = {claim.name: claim.judge(results) for claim in CLAIMS}
    parts = [INTRODUCTION, _cost(results), "## All claims\n", _counts(findings), _overview(findings)]
    for section in SECTIONS:
        parts.append(_section(section, results, findings, drawn.get(section.experiment, [])))
    return "\n".join(part for part in parts if part).rstrip() + "\n"


def _cost(results: Results) -> str:
    lines = []
    for name in ("published", "corrected"):
        records = results.of("tradeoff", name)
        if records:
            seconds = results.seconds("tradeoff", name, lambda r: (r["dataset"], r["method"]))
            lines.append(f"{len(records):,} models of the {name} sweep in {seconds / 60:.1f} minutes")
    if not lines:
        return ""
    return f"Training time, as recorded: {'; '.join(lines)} (the paper: about 24 GPU-hours for its sweep).\n"


def _counts(findings: dict[str, Finding]) -> str:
    counts = Counter(finding.verdict for finding in findings.values())
    plural = {"holds": "hold", "holds in part": "hold in part", "does not hold": "do not hold"}
    told = ", ".join(f"{counts[v]} {plural.get(v, v)}" for v in VERDICTS if counts[v])
    return f"Of {len(findings)} claims, {told}.\n"


def _overview(findings: dict[str, Finding]) -> str:
    rows = tuple(
        (
            f"[{claim.statement}](#{claim.name})",
            claim.printed,
            f"{SIGNS[findings[claim.name].verdict]} {findings[claim.name].verdict}",
        )
        for claim in _in_order()
    )
    return Table((Column("claim"), Column("printed"), Column("verdict")), rows).markdown() + "\n"


def _in_order() -> list[Claim]:
    order = [section.experiment for section in SECTIONS]
    return sorted(CLAIMS, key=lambda claim: order.index(claim.experiment))


def _section(section: Section, results: Results, findings: dict[str, Finding], drawn: Sequence[Drawn]) -> str:
    claims = [claim for claim in CLAIMS if claim.experiment == section.experiment]
    listed = section.tables(results)
    if not claims and not listed and not drawn:
        return ""
    parts = [f"## {section.title}\n", section.about + "\n"]
    parts += [_claim(claim, findings[claim.name]) for claim in claims]
    parts += [f"![{figure.caption}](figures/{figure.name}.svg)\n\n*{figure.caption}.*\n" for figure in drawn]
    parts += [_listed(table) for table in listed]
    return "\n".join(parts)


def _claim(claim: Claim, finding: Finding) -> str:
    told = Table(
        (Column("printed"), Column("ours, published protocol"), Column("ours, corrected protocol")),
        ((claim.printed, finding.published, finding.corrected),),
    ).markdown()
    silent = finding.verdict == "cannot be judged" and NOT_RUN.text in (finding.published, finding.corrected)
    reason = "It was not run." if silent else finding.reason
    sign = f"{SIGNS[finding.verdict]} {finding.verdict[0].upper()}{finding.verdict[1:]}"
    return f'<a id="{claim.name}"></a>\n**{claim.statement}** ({claim.place})\n\n{told}\n\n**{sign}.** {reason}\n'


def _listed(listed: Listed) -> str:
    if listed.folded:
        return f"<details><summary>{listed.heading}</summary>\n\n{listed.table.markdown()}\n\n</details>\n"
    return f"**{listed.heading}**\n\n{listed.table.markdown()}\n"
