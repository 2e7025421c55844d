"""Records of all experiments, read once, for tables, figures and claims."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from frhsic_paper import records
from frhsic_paper.protocol import PROTOCOLS
from frhsic_paper.records import Record

__all__ = ["Results"]


@dataclass(frozen=True)
class Results:
    """What was measured, by experiment and protocol; an experiment that was not run has no records.

    Examples
    --------
    >>> results = Results({("convergence", "corrected"): ({"n": 50, "error": 0.1},)})
    >>> len(results.of("convergence", "corrected")), len(results.of("convergence", "published"))
    (1, 0)
    """

    files: Mapping[tuple[str, str], Sequence[Record]]

    @classmethod
    def read(cls, directory: Path) -> Results:
        """Read every ``{experiment}-{protocol}.jsonl`` of a directory."""
        found: dict[tuple[str, str], Sequence[Record]] = {}
        for path in sorted(directory.glob("*.jsonl")):
            experiment, _, protocol = path.stem.rpartition("-")
            if protocol in PROTOCOLS and experiment:
                found[experiment, protocol] = tuple(records.read(path))
        return cls(found)

    def of(self, experiment: str, protocol: str) -> tuple[Record, ...]:
        """Return the records of one experiment under one protocol."""
        return tuple(self.files.get((experiment, protocol), ()))

    def seconds(self, experiment: str, protocol: str, unit: Callable[[Record], object]) -> float:
        """Return the seconds of training: those of each fleet, which all its records carry, counted once."""
        once = {unit(r): float(r["seconds"]) for r in self.of(experiment, protocol) if r.get("seconds") is not None}
        return sum(once.values())
