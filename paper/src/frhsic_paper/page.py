"""All pages of the reproduction and their figures, written only from records: an index, and a page
for each study.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from frhsic._files import write_whole
from frhsic_paper.claim import Finding, judge_claims
from frhsic_paper.plot import Drawn, save
from frhsic_paper.protocol import PROTOCOLS, Protocol
from frhsic_paper.records import MODEL, Record, digest
from frhsic_paper.results import Results
from frhsic_paper.steps import Computation, Measurement, Part, Stamp, Training
from frhsic_paper.studies import STUDIES
from frhsic_paper.study import Study
from frhsic_paper.summary import (
    COUNTED,
    INDEX,
    count_claims,
    render_template,
    summary,
    verdict_counts,
)
from frhsic_paper.table import Cell, Listed, Table

FOLDER = "evidence"
"""Folder of the studies' pages, which also contains those of benchmarks."""

LONG = 12
"""Tables with more rows than this are collapsed."""

PAGE = "reproduction.md"
"""File of the main page; the others are in the folder."""


def write(
    out: Path, to: Path, studies: Sequence[Study] = STUDIES, *, overwrite: bool = False
) -> list[Path]:
    """Write the pages and their figures from the records in a directory.

    Parameters
    ----------
    out
        Directory of the records.
    to
        Directory of the pages. Pages of single studies are written to its folder `evidence`,
        figures to `figures`.
    studies
        Studies that have a page.
    overwrite
        Whether to replace pages that were written from other records; if False, they raise an
        error.

    Returns
    -------
    list of Path
        The files written.
    """
    results = Results.read(out)
    if not results.files:
        raise ValueError(
            f"no records in {out}: run `frhsic reproduce NAME` first, or pass the directory with"
            " --out."
        )
    stamp = f"<!-- from the records {fingerprint(out)} -->\n"
    names = ("claims", *(study.name for study in studies))
    owned = (to / PAGE, *(to / FOLDER / f"{name}.md" for name in names))
    before = [path for path in owned if path.exists()]
    for path in before:
        if not overwrite and not path.read_text(encoding="utf-8").endswith(stamp):
            raise ValueError(
                f"{path} was not written from the records in {out}: pass --overwrite to replace it,"
                " or another folder with --docs-to."
            )
    findings = judge_claims((claim for study in studies for claim in study.claims), results)
    drawn = figures(results, studies)
    pages = {
        PAGE: summary(results, findings, studies),
        **details(results, findings, drawn, studies),
    }
    paths = [
        save(one.figure, to / "figures" / f"{one.name}.svg")
        for some in drawn.values()
        for one in some
    ]
    for name, text in pages.items():
        (to / name).parent.mkdir(parents=True, exist_ok=True)
        write_whole(to / name, f"{text}\n{stamp}".encode())
    for path in before:  # pages of studies that no longer have one
        if path.relative_to(to).as_posix() not in pages:
            path.unlink()
    return [*paths, *(to / name for name in pages)]


def fingerprint(out: Path) -> str:
    """Return a short hash of all record files in a directory."""
    files = (
        (path.name, hashlib.sha256(path.read_bytes()).hexdigest())
        for path in sorted(out.glob("*.parquet"))
    )
    return digest(*files)


def figures(results: Results, studies: Sequence[Study] = STUDIES) -> dict[str, Sequence[Drawn]]:
    """Return the figures of every study, in page order."""
    return {study.name: study.figures(results) for study in studies}


def details(
    results: Results,
    findings: Mapping[str, Finding],
    drawn: Mapping[str, Sequence[Drawn]],
    studies: Sequence[Study] = STUDIES,
) -> dict[str, str]:
    """Return the pages as Markdown, keyed by file name, starting with the index.

    A study has a page if it has claims, or records from which it has tables or figures.
    """
    late = due_records(results, studies)
    shown: list[Study] = []
    pages: dict[str, str] = {}
    for study in studies:
        figures = drawn.get(study.name, ())
        if study.title and ((tables := study.tables(results)) or study.claims or figures):
            shown.append(study)
            page = study_page(study, results, findings, tables, figures, late)
            pages[f"{FOLDER}/{study.name}.md"] = page
    index = render_template(
        "claims.md.j2",
        cost="; ".join(
            f"{file.models:,} models of the {file.protocol} sweep in {file.seconds / 60:.1f}"
            " minutes"
            for file in sources("tradeoff", results)
        ),
        due=bool(late),
        counts=count_claims(findings),
        kinds=COUNTED,
        findings=findings,
        studies=shown,
        overview=_overview(shown, findings),
        files=[name.removeprefix(f"{FOLDER}/").removesuffix(".md") for name in pages],
    )
    return {f"{FOLDER}/claims.md": index, **pages}


def study_page(
    study: Study,
    results: Results,
    findings: Mapping[str, Finding],
    tables: Sequence[Listed],
    figures: Sequence[Drawn],
    late: Sequence[Due],
) -> str:
    """Return the page of a study; long tables are collapsed."""
    files = study_files(study)
    some = [source for file in files for source in sources(file, results)]
    return render_template(
        "study.md.j2",
        study=study,
        lead=study.lead(results),
        items=[item for item in INDEX if item.study == study.name],
        command=f"frhsic reproduce {study.name}" + (" --protocol both" if study.published else ""),
        sources=sources_table(some) if some else None,
        trained=any(source.models for source in some),
        caveats=_caveats(study, some, [d for d in late if d.file in files]),
        findings=findings,
        figures=figures,
        tables=tables,
        long=LONG,
    )


def _caveats(study: Study, some: Sequence[Source], late: Sequence[Due]) -> list[str]:
    """Return notes that readers need before trusting a study's numbers: missing or stale
    records.
    """
    said = []
    protocols = [name for name in PROTOCOLS if study.published or not PROTOCOLS[name].printed]
    absent = [name for name in protocols if name not in {source.protocol for source in some}]
    if absent:
        said.append(f"Not run under the {' and '.join(absent)} protocol.")
    for d in late:
        text = (
            f"`{d.file}-{d.protocol}.parquet` has {d.present:,} of {d.expected:,} records of"
            f" {d.part}."
        )
        if d.outdated:
            text = (
                f"`{d.file}-{d.protocol}.parquet` is stale: its records of {d.part} were computed"
                " with different code or settings."
            )
        said.append(f"{text} Run the command to compute them.")
    return said


def _overview(studies: Sequence[Study], findings: Mapping[str, Finding]) -> Table:
    """Return a table of the studies, the paper's tables and figures that they reproduce, and their
    verdicts.
    """
    rows: list[tuple[Cell, ...]] = []
    for study in studies:
        numbers = ", ".join(item.number for item in INDEX if item.study == study.name)
        verdicts = [findings[claim.name].verdict for claim in study.claims]
        link = f"[{study.title}]({study.name}.md)"
        rows.append((link, numbers or "not in the paper", verdict_counts(verdicts)))
    return Table.from_rows(["study", "for", "claims"], rows)


Made = Training | Measurement | Computation


@dataclass(frozen=True)
class Due:
    """Records of one file and part that the command would compute or recompute, because they are
    missing or stale.
    """

    file: str
    part: str
    protocol: str
    present: int
    expected: int
    outdated: tuple[str, ...] = ()


def due_records(results: Results, studies: Iterable[Study]) -> list[Due]:
    """Return the records that the command would compute on a CPU, because too few exist or they
    were computed with other code or settings.
    """
    found = []
    for protocol, step in _steps(studies):
        stamps: Mapping[Part, Stamp] = {}
        for place, expected in step.expected_records(protocol).items():
            present = results.records("/".join(place), protocol.name)
            if present:
                stamps = stamps or step.stamps(protocol, results)
            stale = [
                r for r in present if "depends_on" not in r or r["depends_on"] != stamps[place](r)
            ]
            methods = tuple(dict.fromkeys(r.get("method", "all") for r in stale))
            if len(present) < expected or stale:
                old = ("all",) if stale and len(stale) == len(present) else methods
                found.append(Due(*place, protocol.name, len(present), expected, old))
    return found


def _steps(studies: Iterable[Study]) -> Iterator[tuple[Protocol, Made]]:
    """Yield every step once, under each protocol of its study."""
    seen = set()
    for study in studies:
        for protocol in (p for p in PROTOCOLS.values() if study.published or not p.printed):
            for step in (*study.train, *study.measure):
                if isinstance(step, Made) and (id(step), protocol.name) not in seen:
                    seen.add((id(step), protocol.name))
                    yield protocol, step


@dataclass(frozen=True)
class Source:
    """One file of records.

    `models` is the number of trained models. `seconds` is the time that their training took, or 0
    if none were trained. `hardware` has the names of processors and GPUs; it is empty if the
    records don't contain them.
    """

    study: str
    protocol: str
    records: int
    models: int
    seconds: float
    hardware: tuple[str, ...]

    @classmethod
    def from_records(cls, study: str, protocol: str, records: Sequence[Record]) -> Source:
        """Summarize a file's records. The models of one method, dataset and part are trained
        together.

        Examples
        --------
        >>> model = {
        ...     "part": "models",
        ...     "dataset": "crime",
        ...     "method": "frem",
        ...     "weight": 1.0,
        ...     "seconds": 3.0,
        ... }
        >>> records = [
        ...     model | {"repeat": 0},
        ...     model | {"repeat": 1, "hardware": "NVIDIA H200"},
        ...     {"part": "sides"},
        ... ]
        >>> source = Source.from_records("bound", "corrected", records)
        >>> source.records, source.models, source.seconds, source.hardware
        (3, 2, 3.0, ('NVIDIA H200',))
        """
        models = [r for r in records if r.keys() >= MODEL and r.get("seconds") is not None]
        fleets = {(r["part"], r["dataset"], r["method"]): float(r["seconds"]) for r in models}
        names = {str(r["hardware"]) for r in records if r.get("hardware")}
        return cls(
            study, protocol, len(records), len(models), sum(fleets.values()), tuple(sorted(names))
        )

    @property
    def file(self) -> str:
        """Name of the file."""
        return f"{self.study}-{self.protocol}.parquet"


def sources(study: str, results: Results) -> list[Source]:
    """Return the files of one name that contain records, by protocol."""
    found = ((name, results.records(study, name)) for name in PROTOCOLS)
    return [Source.from_records(study, name, records) for name, records in found if records]


def study_files(study: Study) -> tuple[str, ...]:
    """Return the names of the files that a study's steps write; its own file is the last."""
    names: dict[str, None] = {}
    for protocol in PROTOCOLS.values():
        for step in (*study.train, *study.measure):
            file = (
                step.grid(protocol).study
                if isinstance(step, Training)
                else getattr(step, "study", study.name)
            )
            names[file] = None
    names.pop(study.name, None)
    return *names, study.name


def sources_table(some: Sequence[Source]) -> Table:
    """Return a table of record files with their cost and hardware."""
    rows = [
        [
            f"`paper/results/{s.file}`",
            f"{s.records:,}",
            f"{s.models:,}" if s.models else None,
            f"{s.seconds:.0f} s" if s.models else None,
            "; ".join(s.hardware) or "not recorded",
        ]
        for s in some
    ]
    return Table.from_rows(["file", "records", "models", "training", "hardware"], rows)
