"""Join files of records of one study that several processes made: ``python -m frhsic_paper.joined INTO FILE...``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from frhsic_paper import records


def join(into: Path, files: Sequence[Path]) -> int:
    """Write the records of some files, which must not share any, into one; return how many there are."""
    missing = [str(path) for path in files if not path.exists()]
    if missing or not files:
        raise ValueError(f"there is no file {', '.join(missing)}; pass the files to join after the one to write.")
    joined = [record for path in files for record in records.read(path)]
    records.write(into, joined)
    return len(records.read(into))  # refuses a record that came twice


if __name__ == "__main__":
    join(Path(sys.argv[1]), [Path(name) for name in sys.argv[2:]])
