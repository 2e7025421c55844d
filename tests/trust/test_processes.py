"""A signal leaves no file half written."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from cli_samples import table
from running_commands import started, stopped


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_signal_leaves_a_training_without_files_or_with_all(tmp_path: Path, number: int):
    table(40_000).to_csv(tmp_path / "people.csv", index=False)
    asked = ["train", str(tmp_path / "people.csv"), "-t", "y", "-s", "age", "--features", "score"]
    process = started(*asked, "-o", str(tmp_path / "model"), "-r", str(tmp_path / "report.html"))
    returned, _ = stopped(process, number, all_of_them=False, after=25)
    assert returned in (
        {signal.SIGINT: 130, signal.SIGTERM: 143}.get(signal.Signals(number), -number),
        0,
    )
    assert {path.name for path in tmp_path.iterdir()} in (
        {"people.csv"},
        {"people.csv", "model", "report.html"},
    )
