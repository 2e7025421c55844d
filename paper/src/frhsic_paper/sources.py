"""Where the numbers of a study come from: its command, the files of its records, their cost and hardware."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from frhsic_paper.protocol import PROTOCOLS
from frhsic_paper.records import MODEL, Record
from frhsic_paper.results import Results
from frhsic_paper.steps import Training
from frhsic_paper.study import Study
from frhsic_paper.table import Table


@dataclass(frozen=True)
class Source:
    """One file of records.

    `models` counts trained models. `seconds` is the time that training them took, 0 where none was trained. `hardware`
    names processors and GPUs; it is empty where the records do not say.
    """

    study: str
    protocol: str
    records: int
    models: int
    seconds: float
    hardware: tuple[str, ...]

    @classmethod
    def of(cls, study: str, protocol: str, records: Sequence[Record]) -> Source:
        """Read a file's records. The models of one method, dataset and part are trained together.

        Examples
        --------
        >>> model = {"part": "models", "dataset": "crime", "method": "frem", "weight": 1.0, "seconds": 3.0}
        >>> records = [model | {"repeat": 0}, model | {"repeat": 1, "hardware": "NVIDIA H200"}, {"part": "sides"}]
        >>> source = Source.of("bound", "corrected", records)
        >>> source.records, source.models, source.seconds, source.hardware
        (3, 2, 3.0, ('NVIDIA H200',))
        """
        models = [r for r in records if r.keys() >= MODEL and r.get("seconds") is not None]
        fleets = {(r["part"], r["dataset"], r["method"]): float(r["seconds"]) for r in models}
        names = {str(r["hardware"]) for r in records if r.get("hardware")}
        return cls(study, protocol, len(records), len(models), sum(fleets.values()), tuple(sorted(names)))

    @property
    def file(self) -> str:
        """Name of the file."""
        return f"{self.study}-{self.protocol}.parquet"


def sources(study: str, results: Results) -> list[Source]:
    """Return the files of one name that hold records, by protocol."""
    found = ((name, results.of(study, name)) for name in PROTOCOLS)
    return [Source.of(study, name, records) for name, records in found if records]


def files_of(study: Study) -> tuple[str, ...]:
    """Return the names of the files that the steps of a study write, its own last."""
    names: dict[str, None] = {}
    for protocol in PROTOCOLS.values():
        for step in (*study.train, *study.measure):
            file = step.grid(protocol).study if isinstance(step, Training) else getattr(step, "study", study.name)
            names[file] = None
    names.pop(study.name, None)
    return *names, study.name


def command_of(study: Study) -> str:
    """Return the command that runs a study under each of its protocols."""
    return f"frhsic reproduce {study.name}" + (" --protocol both" if study.published else "")


def sources_table(some: Sequence[Source]) -> Table:
    """Return files of records with their cost and hardware."""
    rows = [
        [
            f"`results/{s.file}`",
            f"{s.records:,}",
            f"{s.models:,}" if s.models else None,
            f"{s.seconds:.0f} s" if s.models else None,
            "; ".join(s.hardware) or "not recorded",
        ]
        for s in some
    ]
    return Table.of(["file", "records", "models", "training", "hardware"], rows)
