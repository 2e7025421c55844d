"""The real datasets for tests: from FRHSIC_DATA, a folder of raw files beside the repository, or the package index."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from frhsic.datasets import Dataset, DatasetUnavailableError, load_dataset

ROOT = Path(__file__).resolve().parents[1]


def raw_folder() -> Path | None:
    """Return the folder of raw files, where there is one."""
    named = os.environ.get("FRHSIC_DATA")
    places = [Path(named)] if named else [ROOT.parent / "shared" / "data", ROOT / "shared" / "data"]
    return next((place for place in places if place.is_dir()), None)


@functools.cache
def _load(name: str, variant: str) -> Dataset | str:
    folder = raw_folder()
    with pytest.MonkeyPatch.context() as patch:
        if folder is not None:
            patch.setenv("FRHSIC_DATA", str(folder))
        try:
            return load_dataset(name, variant)
        except DatasetUnavailableError as error:
            return str(error)


@pytest.fixture(scope="session")
def real() -> Callable[..., Dataset]:
    """Return load(name, variant="corrected"), which skips the test when no place has the file."""

    def load(name: str, variant: str = "corrected") -> Dataset:
        loaded = _load(name, variant)
        if isinstance(loaded, str):
            pytest.skip(f"the real data cannot be had here: {loaded}")
        return loaded

    return load
