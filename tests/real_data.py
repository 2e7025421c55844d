"""The raw files of the datasets for tests: in FRHSIC_DATA, or in a folder beside the repository."""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def raw_folder() -> Path | None:
    """Return the folder of raw files, where there is one."""
    named = os.environ.get("FRHSIC_DATA")
    places = [Path(named)] if named else [ROOT.parent / "shared" / "data", ROOT / "shared" / "data"]
    return next((place for place in places if place.is_dir()), None)
