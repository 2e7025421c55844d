"""The pages of the reproduction: an index of all claims, and one page for each study."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from frhsic_paper.claim import Finding
from frhsic_paper.grid import BY
from frhsic_paper.plot import Drawn
from frhsic_paper.printed import method_name
from frhsic_paper.protocol import PROTOCOLS, Protocol
from frhsic_paper.records import unit_of
from frhsic_paper.results import Results
from frhsic_paper.sources import Source, command_of, files_of, sources, sources_table
from frhsic_paper.steps import Computation, Measurement, Training
from frhsic_paper.studies import STUDIES
from frhsic_paper.study import Study
from frhsic_paper.summary import INDEX, SIGNS, counted, rendered
from frhsic_paper.table import Cell, Listed, Table

FOLDER = "reproduction"
"""Folder of the pages of the studies."""

WORDS = 1500
"""Words that a reader finishes in one sitting. The longest tables of a longer page stand on a page of their own."""


@dataclass(frozen=True)
class Placed:
    """A table of a study, its anchor, and whether it stands on the page of long tables."""

    listed: Listed
    anchor: str
    apart: bool


def details(
    results: Results,
    findings: Mapping[str, Finding],
    drawn: Mapping[str, Sequence[Drawn]],
    studies: Sequence[Study] = STUDIES,
) -> dict[str, str]:
    """Return the pages as markdown, by file name, the index first.

    A study has a page if it has claims, or records that give it tables or figures.
    """
    late = due(results, studies)
    shown: list[Study] = []
    pages: dict[str, str] = {}
    for study in studies:
        figures = drawn.get(study.name, ())
        if study.title and ((tables := study.tables(results)) or study.claims or figures):
            shown.append(study)
            pages |= study_pages(study, results, findings, tables, figures, late)
    index = rendered(
        "claims.md.j2",
        cost=_cost(results),
        due=due_table(late) if late else None,
        counts=counted(findings),
        findings=findings,
        studies=shown,
        overview=_overview(shown, findings),
        files=[name.removeprefix(f"{FOLDER}/").removesuffix(".md") for name in pages],
    )
    return {f"{FOLDER}/claims.md": index, **pages}


def study_pages(
    study: Study,
    results: Results,
    findings: Mapping[str, Finding],
    tables: Sequence[Listed],
    figures: Sequence[Drawn],
    late: Sequence[Due],
) -> dict[str, str]:
    """Return the page of a study, and that of its long tables if it has one."""
    files = files_of(study)
    some = [source for file in files for source in sources(file, results)]
    caveats = _caveats(study, some, [d for d in late if d.file in files])

    def page(apart: frozenset[int]) -> tuple[str, list[Placed]]:
        placed = [Placed(t, f"{study.name}-table-{k + 1}", k in apart) for k, t in enumerate(tables)]
        text = rendered(
            "study.md.j2",
            study=study,
            numbers=[item.number for item in INDEX if item.study == study.name],
            command=command_of(study),
            sources=sources_table(some) if some else None,
            caveats=caveats,
            findings=findings,
            figures=figures,
            tables=placed,
        )
        return text, placed

    longest = sorted(range(len(tables)), key=lambda k: -_words(tables[k].table.markdown()))
    for count in range(len(tables) + 1):
        text, placed = page(frozenset(longest[:count]))
        if _words(text) <= WORDS:
            break
    pages = {f"{FOLDER}/{study.name}.md": text}
    if any(table.apart for table in placed):
        pages[f"{FOLDER}/{study.name}_tables.md"] = rendered("study_tables.md.j2", study=study, tables=placed)
    return pages


def _words(text: str) -> int:
    return len(text.split())


def _caveats(study: Study, some: Sequence[Source], late: Sequence[Due]) -> list[str]:
    """Return what a reader must know of a study's records before trusting its numbers."""
    said = []
    protocols = [name for name in PROTOCOLS if study.published or not PROTOCOLS[name].printed]
    absent = [name for name in protocols if name not in {source.protocol for source in some}]
    if absent:
        said.append(f"Not run under the {' and '.join(absent)} protocol.")
    for d in late:
        text = f"`{d.file}-{d.protocol}.parquet` has {d.present:,} of {d.expected:,} records of {d.part}."
        if d.outdated:
            text = f"`{d.file}-{d.protocol}.parquet` holds records of other settings than the present ones."
        said.append(f"{text} The command makes what is due.")
    return said


def _overview(studies: Sequence[Study], findings: Mapping[str, Finding]) -> Table:
    """The studies, the paper's tables and figures that they are for, and their verdicts."""
    rows: list[tuple[Cell, ...]] = []
    for study in studies:
        numbers = ", ".join(item.number for item in INDEX if item.study == study.name)
        signs = " ".join(SIGNS[findings[claim.name].verdict] for claim in study.claims)
        rows.append((f"[{study.title}]({study.name}.md)", numbers or "not in the paper", signs))
    return Table.of(["study", "for", "claims"], rows)


def _cost(results: Results) -> str:
    files = sources("tradeoff", results)
    return "; ".join(f"{f.models:,} models of the {f.protocol} sweep in {f.seconds / 60:.1f} minutes" for f in files)


Made = Training | Measurement | Computation


@dataclass(frozen=True)
class Due:
    """Records of one file and part that the command would make or make again."""

    file: str
    part: str
    protocol: str
    present: int
    expected: int
    outdated: tuple[str, ...] = ()


def due(results: Results, studies: Iterable[Study]) -> list[Due]:
    """Return what the command would run, on a CPU, where these records are: too few, or made with other settings."""
    found = []
    for protocol, step in _steps(studies):
        for (file, part), expected in step.expected(protocol).items():
            present = len(results.of(f"{file}/{part}", protocol.name))
            old = (
                _outdated(results, step, protocol)
                if isinstance(step, Training) and present and part != "information"
                else ()
            )
            if present < expected or old:
                found.append(Due(file, part, protocol.name, present, expected, old))
    return found


def due_table(found: Iterable[Due]) -> Table:
    """Return what is due as a table."""
    rows = [
        [d.file, d.protocol, d.part, d.present, d.expected, ", ".join(map(method_name, d.outdated)) or None]
        for d in found
    ]
    return Table.of(["records", "protocol", "part", "present", "expected", "of other settings"], rows)


def _steps(studies: Iterable[Study]) -> Iterator[tuple[Protocol, Made]]:
    """Yield every step once, under each protocol of its study."""
    seen = set()
    for study in studies:
        for protocol in (p for p in PROTOCOLS.values() if study.published or not p.printed):
            for step in (*study.train, *study.measure):
                if isinstance(step, Made) and (id(step), protocol.name) not in seen:
                    seen.add((id(step), protocol.name))
                    yield protocol, step


def _outdated(results: Results, step: Training, protocol: Protocol) -> tuple[str, ...]:
    """Return the methods with records that depend on something else than the present settings."""
    grid = step.grid(protocol)
    hashes = {unit: wanted.depends_on for unit, wanted in grid.units(protocol).items()}
    kinds = Counter(
        (unit_of(r, BY), r.get("depends_on")) for r in results.of(f"{grid.study}/{grid.part}", protocol.name)
    )
    old = (unit[2] for unit, value in kinds if value != hashes.get(unit, value))
    return tuple(dict.fromkeys(old))
