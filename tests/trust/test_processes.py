"""Signals, kills and two at once: no half-trained record, no worker left, a second run equals an
uninterrupted one.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import nullcontext, suppress
from functools import partial
from pathlib import Path

import pytest

pytest.importorskip("frhsic_paper")

from cli_samples import one_line_and_2, table
from frhsic_paper import records
from frhsic_paper.command import locked

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
    with locked(folder):
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


def started(*arguments: str) -> subprocess.Popen[str]:
    """Start the command line so that it heeds SIGINT, which a shell lets its background jobs
    ignore.
    """
    return subprocess.Popen(
        [sys.executable, "-m", "frhsic.cli", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
    )


def group(leader: int) -> list[int]:
    """Return the processes of a session that are still running."""
    running = []
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
            if int(fields[3]) == leader and fields[0] != "Z":
                running.append(int(entry.name))
    return running


def stopped(
    process: subprocess.Popen[str], number: int, *, all_of_them: bool, after: float
) -> tuple[int, str]:
    """Send a signal after some seconds, to the process or as a terminal does to all; return exit
    code and message.
    """
    time.sleep(after)
    (os.killpg if all_of_them else os.kill)(process.pid, number)
    _, said = process.communicate(timeout=120)
    deadline = time.monotonic() + 20
    while group(process.pid) and time.monotonic() < deadline:
        time.sleep(0.2)
    left = group(process.pid)
    for one in left:
        os.kill(one, signal.SIGKILL)
    assert left == [], "processes were left behind"
    return process.returncode, said


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
