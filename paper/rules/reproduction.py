"""Numbers of docs/reproduction.md, and counts of records on the pages under docs/evidence/."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from rules.claims import KINDS, VERDICTS, claims, counted, in_words
from rules.comparison import Cells, is_met, on_fresh_tables, own_standings, tables_phrase
from rules.published import agreement, beside_small_tables, leading
from rules.records import ROOT, study
from rules.writing import listed

GIVEN = ("p → 1/2 + t(p − 1/2)", "the 1 % band")
PRINTED = [f"Table {k}" for k in range(1, 8)] + [f"Figure {k}" for k in range(2, 14)]


def phrases() -> Iterator[str]:
    """Yield what the page says."""
    yield from index_of_claims()
    if found := agreement():
        within, near, areas, alike, gaps = found
        yield (
            f"{within} numbers in the authors' files are within two combined standard deviations of"
            f" ours, {near} within two standard errors. Against the printed Table 1, nAUP is within"
            f" .05 of ours in {areas} cases ({alike} without ACS Income and FRHSIC) and GDP within"
            f" two combined standard deviations in {gaps}."
        )
        yield (
            "within two standard deviations of ours in {} cases (Table 2), {} (Table 4) and {}"
            " (Table 5).".format(*beside_small_tables())
        )
    if found := leading():
        yield (
            "Under the corrected protocol, FRHSIC has the largest nAUP (normalized area under the"
            " trade-off curve) of the paper's six methods on {} datasets by the GDP of scores, and"
            " on {} by that of decisions.".format(*found)
        )
    cells = on_fresh_tables()
    yield "On twelve new tables" if cells else "The comparison hasn't been run yet"
    if cells:
        yield goal(cells)
        yield f"The cells are from {tables_phrase(cells)}."


def index_of_claims() -> Iterator[str]:
    """Yield counts, verdicts and the index."""
    page = (ROOT / "docs" / "reproduction.md").read_text("utf-8")
    found = claims()
    yield "; ".join(counted(kind) for kind in KINDS).capitalize()
    twice = {name: claim for name, claim in found.items() if claim.second}
    other = [name for name, claim in twice.items() if claim.second != claim.sign]
    links = [f"[{name}](evidence/{found[name].page}#{name})" for name in other]
    names = ", ".join(sorted(links, key=page.find))
    which = f"{len(links)} of them: {names}" if links else "none"
    yield f"{len(twice)} claims; the verdict differs for {which}"
    for name in re.findall(r"^\| \[[^|]*\]\(evidence/[\w-]+\.md#([^)]+)\)", page, re.MULTILINE):
        if name in found:
            own = found[name]
            second = VERDICTS[own.second][0] if own.second else ""
            link = f"[{own.statement}](evidence/{own.page}#{name})"
            yield f"| {link} | {VERDICTS[own.sign][0]} | {second} |"
    shown = dict(re.findall(r"^\| \[(\w+ \d+)\](\([^)]+\) \| [^|]+)", page, re.MULTILINE))
    for number in PRINTED:
        verdicts = (
            overall([c.sign for c in found.values() if number in c.items and c.kind == kind])
            for kind in ("results", "reporting")
        )
        yield f"| [{number}]{shown.get(number, '')}| {' | '.join(verdicts)} |"


def overall(signs: list[str]) -> str:
    """Return the verdict of a table or figure, from those of its claims."""
    judged = set(signs) - {"?"}
    if not signs:
        return "no claim"
    if len(set(signs)) == 1:
        many = {1: "", 2: ": both claims"}.get(len(signs), f": all {len(signs)} claims")
        return VERDICTS[signs[0]][0] + many
    one = VERDICTS[judged.pop() if len(judged) == 1 else "◐"][0]
    return f"{one}: {in_words(signs)}"


def goal(cells: Cells) -> str:
    """Return where the goal was missed."""
    missed = [
        f"{quantity} {who}"
        for (quantity, who), found in own_standings(cells).items()
        if not is_met(*found)
    ]
    return (
        "The goal was to be ahead or level in nine of ten cells and behind by two standard errors"
        f" in none. It was {'missed for ' + listed(missed) if missed else 'met'}."
    )


def file_counts(folder: Path) -> list[str]:
    """Count the records and models of each file that a study's page in a folder names, and add up
    the seconds of their fleets.
    """
    wrong = []
    pages = sorted(folder.glob("*.md"))
    details = "\n".join(path.read_text(encoding="utf-8") for path in pages)
    line = r"\| `paper/results/([^`]+)\.parquet` \| (.*?) \| (.*?) \| (.*?) \|"
    for name, *cells in sorted(set(re.findall(line, details))):
        table = study(name)
        own = [f"{len(table):,}", "—", "—"]
        columns = ["part", "dataset", "method", "weight", "repeat", "seconds"]
        if set(columns) <= set(table.columns):
            models = table[columns].dropna()
            if len(models):
                total = models.groupby(["part", "dataset", "method"])["seconds"].last().sum()
                own[1:] = [f"{len(models):,}", f"{total:.0f} s"]
        if cells != own:
            wrong.append(f"{name}: {', '.join(own)}")
    return wrong
