"""The records of all studies, read once for tables, figures and claims."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from frhsic_paper import records
from frhsic_paper.protocol import PROTOCOLS
from frhsic_paper.records import Record


@dataclass(frozen=True)
class Results:
    """Records by study and protocol; a study that was not run has none.

    Examples
    --------
    >>> sides = {"part": "sides", "rhs": 0.1}
    >>> results = Results({("bound", "corrected"): ({"part": "models", "weight": 1.0}, sides)})
    >>> len(results.records("bound", "corrected")), len(results.records("bound", "published"))
    (2, 0)
    >>> results.records("bound/sides", "corrected")
    ({'part': 'sides', 'rhs': 0.1},)
    """

    files: Mapping[tuple[str, str], Sequence[Record]]
    _parts: dict[tuple[str, str], tuple[Record, ...]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    @classmethod
    def read(cls, directory: Path) -> Results:
        """Read every ``{study}-{protocol}.parquet`` of a directory."""
        files: dict[tuple[str, str], Sequence[Record]] = {}
        for path in sorted(directory.glob("*.parquet")):
            study, _, protocol = path.stem.rpartition("-")
            if protocol in PROTOCOLS and study:
                files[study, protocol] = tuple(records.read(path))
        return cls(files)

    def records(self, name: str, protocol: str) -> tuple[Record, ...]:
        """Return the records of a study under one protocol; with the name "bound/sides", only those
        of its part "sides".
        """
        if (name, protocol) not in self._parts:
            study, _, part = name.partition("/")
            records = self.files.get((study, protocol), ())
            self._parts[name, protocol] = tuple(
                r for r in records if not part or r.get("part") == part
            )
        return self._parts[name, protocol]
