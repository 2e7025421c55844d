"""Signals, kills and two at once: no half-trained record, no worker left, a second run equals an
uninterrupted one.
"""

from __future__ import annotations

import signal
import sys
import time
from contextlib import nullcontext
from pathlib import Path

import pytest

from cli_samples import one_line_and_2
from frhsic_paper import records
from frhsic_paper.command import lock_folder, remove_unfinished
from running_commands import group, started, stopped

MODEL = {
    "part": "models",
    "dataset": "d",
    "method": "m",
    "weight": 1.0,
    "repeat": 0,
    "gdp": 0.5,
    "seconds": 1.0,
}


def test_a_folder_that_another_process_writes_to_is_refused(tmp_path: Path):
    folder = tmp_path / "quick"
    folder.mkdir()
    with lock_folder(folder):
        said = one_line_and_2(
            ["reproduce", "synthetic", "--epochs", "1", "--out", str(tmp_path), "--device", "cpu"]
        )
    assert "another process is writing" in said
    assert list(folder.iterdir()) == []


ERROR = {"part": "errors", "n": 4, "error": 0.25, "depends_on": "a"}


@pytest.mark.parametrize(
    ("first", "change", "twice"),
    [
        (MODEL, {"seconds": 2.0}, True),
        (MODEL, {"gdp": 0.6}, True),  # a second training of the same model
        (ERROR, {"error": 0.5}, False),  # another draw of one measurement
        (ERROR, {"depends_on": "b"}, True),
    ],
)
def test_a_record_that_is_there_twice_is_refused(
    tmp_path: Path, first: dict[str, object], change: dict[str, object], twice: bool
):
    records.write(tmp_path / "a.parquet", [first, first | change])
    with pytest.raises(ValueError, match="twice") if twice else nullcontext():
        assert len(records.read(tmp_path / "a.parquet")) == 2


def test_one_lock_at_a_time_and_what_a_kill_left_is_removed(tmp_path: Path):
    left = tmp_path / f".{'0' * 32}.part"
    left.touch()
    (tmp_path / ".mine.part").touch()
    with lock_folder(tmp_path):
        with pytest.raises(ValueError, match="another process is writing"), lock_folder(tmp_path):
            pass
        remove_unfinished(tmp_path)
    with lock_folder(tmp_path):
        pass
    assert {path.name for path in tmp_path.iterdir()} == {".mine.part"}


def test_where_the_system_has_no_locks_nothing_is_locked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setitem(sys.modules, "fcntl", None)
    with lock_folder(tmp_path), lock_folder(tmp_path):
        assert list(tmp_path.iterdir()) == []


def trained(folder: Path) -> list[dict[str, object]]:
    path = folder / "quick" / "synthetic-corrected.parquet"
    return [{k: v for k, v in r.items() if k != "seconds"} for r in records.read(path)]


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks for processes in /proc")
@pytest.mark.parametrize(
    ("number", "code", "all_of_them"),
    [
        (signal.SIGINT, 130, True),
        (signal.SIGINT, 130, False),
        (signal.SIGTERM, 143, False),
        (signal.SIGKILL, -signal.SIGKILL, False),
    ],
)
def test_a_signal_ends_a_run_with_its_workers_and_leaves_no_half_trained_record(
    tmp_path: Path, number: int, code: int, all_of_them: bool
):
    asked = [
        "reproduce",
        "synthetic",
        "--epochs",
        "400",
        "--repeats",
        "1",
        "--workers",
        "2",
        "--device",
        "cpu",
    ]
    process = started(*asked, "--out", str(tmp_path))
    deadline = time.monotonic() + 120
    while (
        len(group(process.pid)) < 3 and time.monotonic() < deadline
    ):  # until the workers are there
        time.sleep(0.5)
    returned, said = stopped(process, number, all_of_them=all_of_them, after=15)
    assert returned == code, said
    assert "Traceback" not in said
    assert all(record["epochs"] == 400 for record in trained(tmp_path))
    assert not list(tmp_path.rglob("*.part"))
