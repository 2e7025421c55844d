"""Which records are missing, too few, or older than the present settings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from frhsic_paper.grid import BY
from frhsic_paper.printed import method_name
from frhsic_paper.protocol import PROTOCOLS, Protocol
from frhsic_paper.records import UNKNOWN, unit_of
from frhsic_paper.results import Results
from frhsic_paper.steps import Computation, Measurement, Training
from frhsic_paper.study import Study
from frhsic_paper.table import Table

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
        (unit_of(r, BY), r.get("depends_on", UNKNOWN)) for r in results.of(f"{grid.study}/{grid.part}", protocol.name)
    )
    old = (unit[2] for unit, value in kinds if value not in (UNKNOWN, hashes.get(unit, value)))
    return tuple(dict.fromkeys(old))
