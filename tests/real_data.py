"""The datasets for tests, from raw files in FRHSIC_DATA, or in a folder beside the repository."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from frhsic.datasets import Dataset, DatasetUnavailableError

ROOT = Path(__file__).resolve().parents[1]


def raw_folder() -> Path | None:
    """Return the folder of raw files, where there is one."""
    named = os.environ.get("FRHSIC_DATA")
    places = [Path(named)] if named else [ROOT.parent / "shared" / "data", ROOT / "shared" / "data"]
    return next((place for place in places if place.is_dir()), None)


@functools.cache
def _dataset_or_reason(load: Callable[..., Dataset], *arguments: Any) -> Dataset | str:
    folder = raw_folder()
    with pytest.MonkeyPatch.context() as patch:
        if folder is not None:
            patch.setenv("FRHSIC_DATA", str(folder))
        try:
            return load(*arguments)
        except DatasetUnavailableError as error:
            return str(error)


def real(load: Callable[..., Dataset], *arguments: Any) -> Dataset:
    """Return load(*arguments), or skip the test when no place has the file."""
    data = _dataset_or_reason(load, *arguments)
    if isinstance(data, str):
        pytest.skip(f"the real data cannot be had here: {data}")
    return data
