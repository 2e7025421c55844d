"""The quickstart of the README runs on real data, as it stands there."""

from __future__ import annotations

import doctest
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from threadpoolctl import threadpool_limits

from frhsic.datasets import Dataset
from real_data import raw_folder, real  # noqa: F401  # a fixture

README = Path(__file__).resolve().parents[1] / "README.md"


@pytest.mark.usefixtures("few_trees")
def test_the_quickstart_runs_on_real_data(
    real: Callable[..., Dataset],  # noqa: F811  # pytest passes it
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
):
    real("adult")
    monkeypatch.chdir(tmp_path)
    if "FRHSIC_DATA" not in os.environ and raw_folder() is not None:
        monkeypatch.setenv("FRHSIC_DATA", str(raw_folder()))
    with threadpool_limits(1):
        failed, tried = doctest.testfile(
            str(README), module_relative=False, optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
        )
    assert (failed, tried > 5) == (0, True)
    assert (tmp_path / "model.frhsic").stat().st_size > 10_000


def test_the_quickstart_has_at_most_twelve_lines_and_every_link_leads_somewhere():
    text = README.read_text(encoding="utf-8")
    assert sum(line.startswith((">>> ", "... ")) for line in text.splitlines()) <= 12
    for place in {part.partition(")")[0] for part in text.split("](")[1:]}:
        assert (README.parent / place.partition("#")[0]).exists(), place


def test_the_front_page_is_short_and_its_pictures_small():
    text = README.read_text(encoding="utf-8")
    assert len(text.split()) <= 800
    pictures = [part.partition(")")[0] for part in text.split("![")[1:]]
    sizes = [(README.parent / picture.partition("](")[2]).stat().st_size for picture in pictures]
    assert len(sizes) == 2
    assert max(sizes) < 150_000
