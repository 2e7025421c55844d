"""All pages of the reproduction and their figures, written from records alone."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

from frhsic._files import write_whole
from frhsic_paper.claim import judged
from frhsic_paper.details import FOLDER, details
from frhsic_paper.plot import Drawn, save
from frhsic_paper.records import digest
from frhsic_paper.results import Results
from frhsic_paper.studies import STUDIES
from frhsic_paper.study import Study
from frhsic_paper.summary import summary

PAGE = f"{FOLDER}.md"
"""File of the page on top; the others are in the folder."""

STAMP = "<!-- from the records "
"""Begins the last line of a page, which names the records that it came from."""


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
    before = [path for path in (to / PAGE, *sorted((to / FOLDER).glob("*.md"))) if path.exists()]
    for path in before:
        if not overwrite and not path.read_text(encoding="utf-8").endswith(stamp):
            raise ValueError(
                f"{path} was not written from the records in {out}: pass --overwrite to replace it, or another folder "
                "with --docs-to."
            )
    findings = judged((claim for study in studies for claim in study.claims), results)
    drawn = figures(results, studies)
    pages = {PAGE: summary(results, findings, studies), **details(results, findings, drawn, studies)}
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
    return {study.name: study.figures(results) for study in studies}
