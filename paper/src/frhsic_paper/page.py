"""All pages of the reproduction and their figures, written from records alone, and the tables of the penalties."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path

from frhsic._files import write_whole
from frhsic_paper.claim import judged
from frhsic_paper.comparisons import (
    LEVEL,
    Compared,
    adjusted_together,
    compared_table,
    paired_areas,
    paired_matched,
    probe_table,
    summary_of_areas,
    variants_table,
)
from frhsic_paper.details import FOLDER, details
from frhsic_paper.frontiers import CONVENTIONS, datasets_of, shared_repeats, swept, with_contraction
from frhsic_paper.plot import Drawn, save
from frhsic_paper.printed import dataset_name
from frhsic_paper.protocol import CORRECTED, METHODS, OWN
from frhsic_paper.records import Record, digest
from frhsic_paper.rendering import rendered
from frhsic_paper.results import Results
from frhsic_paper.studies import PAGE, STUDIES, in_order
from frhsic_paper.studies.leak import leak_table, means_of
from frhsic_paper.study import Study
from frhsic_paper.summary import summary

MEASURES = ("gdp_probability", "gdp_standardized", "gdp_logit_uniform")

COMPARED = ("tradeoff", "untuned", "same_terms", "dense")
"""Sweeps whose methods the page of penalty tables compares."""

PAGES = ("summary.md", f"{FOLDER}.md", "evidence/penalty_tables.md")
"""Files of the pages beside those of single studies."""

STAMP = "<!-- from the records "
"""Begins the last line of a page, which names the records that it came from."""

RIVALS = ("reg-gdp", "frem", "mmd")
"""Methods that the sentence about what is left of S names."""


def write(out: Path, to: Path, studies: Sequence[Study] = STUDIES, *, overwrite: bool = False) -> list[Path]:
    """Write the pages and their figures from the records of a directory.

    Parameters
    ----------
    out
        Directory of the records.
    to
        Directory of the pages. Those of single studies go to its folder `reproduction`, figures to `figures`.
    studies
        Studies that have a page.
    overwrite
        Replace pages that were written from other records; otherwise they are an error.

    Returns
    -------
    list of Path
        The files written.
    """
    results = Results.read(out)
    if not results.files:
        raise ValueError(f"no records in {out}: run `frhsic reproduce NAME` first, or pass the directory with --out.")
    stamp = f"{STAMP}{fingerprint(out)} -->\n"
    before = [path for path in (*(to / name for name in PAGES), *sorted((to / FOLDER).glob("*.md"))) if path.exists()]
    for path in before:
        if not overwrite and not path.read_text(encoding="utf-8").endswith(stamp):
            raise ValueError(
                f"{path} was not written from the records in {out}: pass --overwrite to replace it, or another folder "
                "with --docs-to."
            )
    findings = judged((claim for study in studies for claim in study.claims), results)
    drawn = figures(results, studies)
    pages = {
        "summary.md": summary(results, findings, studies),
        **details(results, findings, drawn, studies),
        "evidence/penalty_tables.md": penalty_tables(results),
    }
    paths = [save(one.figure, to / "figures" / f"{one.name}.svg") for some in drawn.values() for one in some]
    for name, text in pages.items():
        (to / name).parent.mkdir(parents=True, exist_ok=True)
        write_whole(to / name, f"{text}\n{stamp}".encode())
    for path in before:  # of a study that has no page any more
        if path.relative_to(to).as_posix() not in pages and path.read_text(encoding="utf-8").count(STAMP):
            path.unlink()
    return [*paths, *(to / name for name in pages)]


def fingerprint(out: Path) -> str:
    """Return a short hash of all files of records in a directory."""
    files = ((path.name, hashlib.sha256(path.read_bytes()).hexdigest()) for path in sorted(out.glob("*.parquet")))
    return digest(*files)


def figures(results: Results, studies: Sequence[Study] = STUDIES) -> dict[str, Sequence[Drawn]]:
    """Return the figures of every study, in the order of the page."""
    return {study.name: study.figures(results) for study in in_order(studies, PAGE)}


def penalty_tables(results: Results) -> str:
    """Return the tables that compare this library's penalty with the paper's, from the corrected sweep.

    Without records of it, the page says so.
    """
    names = ("tradeoff", "untuned", "same-terms", "dense", "leak", "kernels-on-z")
    records: dict[str, Sequence[Record]] = {name.replace("-", "_"): results.of(name, CORRECTED.name) for name in names}
    records |= {name: with_contraction(records[name]) for name in COMPARED}
    if not any(r["method"] == OWN for r in records["tradeoff"]):
        records["tradeoff"] = ()
    compared = compared_everywhere(records)
    return rendered(
        "penalty_tables.md.j2",
        **records,
        conventions=CONVENTIONS,
        measures=MEASURES,
        compared=compared,
        tests=sum(len(pairs) for family in compared.values() for pairs in family.values()),
        counts=_counts,
        compared_table=compared_table,
        summary=summary_of_areas,
        probes=lambda some: probe_table(some, CORRECTED.gdp),
        variants=variants_table,
        shared_repeats=shared_repeats,
        leak_table=leak_table,
        leak_counts=_leak_counts,
    )


def compared_everywhere(records: Mapping[str, Sequence[Record]]) -> dict[tuple[str, str, str], Compared]:
    """Return all comparisons of the page, by sweep, convention and reading, adjusted for each other."""
    readings = {"areas": paired_areas, "matched": paired_matched}
    keys = [(sweep, gdp, reading) for sweep in COMPARED for gdp in MEASURES for reading in readings if records[sweep]]
    families = [
        {d: readings[reading](records[sweep], d, gdp, OWN) for d in swept(records[sweep])}
        for sweep, gdp, reading in keys
    ]
    return dict(zip(keys, adjusted_together(families)))


def _counts(compared: Compared) -> dict[str, int | str]:
    """Return on how many datasets this library's penalty is level with each of the paper's, and better than each."""
    of_paper = {dataset: [p for p in pairs if p.second in METHODS] for dataset, pairs in compared.items()}
    rivals = list(of_paper.values())
    alone = [d for d, pairs in of_paper.items() if all(p.advantage > 0 and p.pvalue < LEVEL for p in pairs)]
    return {
        "splits": max((p.splits for pairs in rivals for p in pairs), default=0),
        "level": sum(all(p.not_behind for p in pairs) for pairs in rivals),
        "best": sum(all(p.better for p in pairs) for pairs in rivals),
        "behind": sum(any(p.worse for p in pairs) for pairs in rivals),
        "datasets": len(rivals),
        "unadjusted": ", ".join(map(dataset_name, alone)) or "none",
    }


def _leak_counts(records: Sequence[Record], column: str) -> str:
    """Return on how many datasets this library's penalty leaves less than each rival."""
    datasets = datasets_of(records)
    means = [[means_of(records, d, method, [column])[0] for method in (OWN, *RIVALS)] for d in datasets]
    return f"{sum(all(own < rival for rival in rivals) for own, *rivals in means)} of {len(datasets)} datasets"
