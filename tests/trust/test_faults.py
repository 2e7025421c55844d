"""Kills, interrupts, full disks, read-only folders and two at once: after each, a second run equals an undisturbed one.

A moment of a fault is a file operation of the command or a share of its time, both drawn at random.
"""

from __future__ import annotations

import hashlib
import http.server
import os
import random
import re
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("frhsic_paper")
pytest.importorskip("fcntl")

from counting import Counts
from forked import Child, Ended, Server

from estimator_samples import biased, quick
from frhsic import FRHSICClassifier, save
from frhsic_paper import records
from trust_samples import table

NAMES = ("save", "download", "report", "reproduce", "train")
SIGNALS = {"interrupt": signal.SIGINT, "terminate": signal.SIGTERM, "kill": signal.SIGKILL}
CASES = 14
UNFINISHED = re.compile(r"\.[0-9a-f]{32}(\.part)?")
DATES = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d)?)?|\d+ \w+ 20\d\d|\d+(\.\d+)? (s|seconds|minutes?)\b")
DATA = b"age,score\n" + b"".join(b"%d,%d\n" % (i, i * i) for i in range(4000))


class Slowly(http.server.BaseHTTPRequestHandler):
    """Sends the file in pieces, so that a signal can come between them."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(DATA)))
        self.end_headers()
        for start in range(0, len(DATA), 4096):
            try:
                self.wfile.write(DATA[start : start + 4096])
            except OSError:  # the other end was killed
                return
            time.sleep(0.02)

    def log_message(self, *arguments: Any) -> None:
        pass


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Slowly) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{running.server_port}/file.csv"
        running.shutdown()


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("inputs")
    table(120).to_csv(folder / "people.csv", index=False)
    X, y, s = biased(60)
    for name, size in (("old", 4), ("new", 40)):
        model = FRHSICClassifier(**quick(hidden=(size,), epochs=2))
        save(model.fit(X, y, sensitive_features=s), folder / name)
    return folder


@dataclass(frozen=True)
class Undisturbed:
    """What a command does when nothing happens to it."""

    ended: Ended
    state: dict[str, Any]


class Commands:
    """The commands, and what each leaves when nothing happens to it."""

    def __init__(self, server: Server, inputs: Path, address: str, home: Path) -> None:
        self.server, self.inputs, self.address, self.home = server, inputs, address, home
        self.known: dict[str, Undisturbed] = {}
        self.folders = 0

    def folder(self, name: str, at: Path | None = None) -> Path:
        """Return a new folder, as it is before the command: with an old model where one is to be replaced."""
        self.folders += 1
        folder = (at or self.home) / f"{name}-{self.folders}"
        folder.mkdir()
        if name == "save":
            shutil.copy(self.inputs / "old", folder / "model")
        return folder

    def child(self, name: str, folder: Path, **fault: Any) -> Child:
        people, model, report = str(self.inputs / "people.csv"), str(folder / "model"), str(folder / "report.html")
        columns = ["-t", "y", "-s", "age", "--features", "score"]
        arguments = {
            "train": ["train", people, *columns, "-o", model, "-r", report],
            "reproduce": ["reproduce", "synthetic", "--epochs", "1", "--repeats", "1", "--workers", "1",
                          "--device", "cpu", "--out", str(folder)],
            "save": ["save_model", str(self.inputs / "new"), model],
            "report": ["audit", people, "-s", "age", "--score", "score", "--max-rows", "100", "-o", report],
            "download": ["download", self.address, hashlib.sha256(DATA).hexdigest(), str(folder)],
        }[name]  # fmt: skip
        return Child(tuple(arguments), str(folder), **fault)

    def run(self, name: str, folder: Path, **fault: Any) -> Ended:
        return self.server.run(self.child(name, folder, **fault))[0]

    def undisturbed(self, name: str) -> Undisturbed:
        if name not in self.known:
            folder = self.folder(name)
            ended = self.run(name, folder)
            assert ended.code == 0, ended.errors
            self.known[name] = Undisturbed(ended, state(folder))
            assert not any(UNFINISHED.fullmatch(Path(path).name) for path in self.known[name].state)
        return self.known[name]

    def holds_after(self, name: str, folder: Path, ended: Ended) -> None:
        """Check what a fault has left, run again, and compare with an undisturbed run."""
        expected, left = self.undisturbed(name), state(folder)
        begun = {path for path in left if UNFINISHED.fullmatch(Path(path).name)}
        assert not begun or ended.code < 0, begun  # only a kill may leave files that were begun
        for path in left.keys() - begun:
            if path.endswith(".parquet"):
                assert all(record in expected.state[path] for record in left[path])
            else:
                assert left[path] in (
                    expected.state[path],
                    hashlib.sha256((self.inputs / "old").read_bytes()).hexdigest(),
                )
        again = self.run(name, folder)
        assert again.code == expected.ended.code, again.errors
        after = state(folder)
        assert {path: after[path] for path in after if path not in begun} == expected.state


@pytest.fixture(scope="module")
def commands(server: Server, inputs: Path, address: str, tmp_path_factory: pytest.TempPathFactory) -> Commands:
    return Commands(server, inputs, address, tmp_path_factory.mktemp("faults"))


def state(folder: Path) -> dict[str, Any]:
    """Return what the files of a folder hold, without dates and durations; logs hold little else."""
    contents: dict[str, Any] = {}
    for path in sorted(folder.rglob("*")):
        if path.suffix == ".parquet":
            contents[str(path.relative_to(folder))] = [
                {name: value for name, value in record.items() if name != "seconds"} for record in records.read(path)
            ]
        elif path.is_file() and path.suffix != ".log":
            data = path.read_bytes()
            if path.suffix == ".html":
                data = DATES.sub("", data.decode()).encode()
            contents[str(path.relative_to(folder))] = hashlib.sha256(data).hexdigest()
    return contents


def disturbed(commands: Commands, name: str, kind: str, number: int, *, by_time: bool) -> str:
    """Send one signal at a random moment, check what is left, and say how the command ended."""
    rng = random.Random(f"{name} {kind} {number}")
    known, folder = commands.undisturbed(name).ended, commands.folder(name)
    moment: dict[str, Any] = {"event": rng.randint(1, known.events)}
    if by_time:
        moment = {"after": rng.uniform(0, 1.1 * known.seconds)}
    ended = commands.run(name, folder, signal=SIGNALS[kind], **moment)
    stopped = {"interrupt": (130, -signal.SIGINT), "terminate": (143, -signal.SIGTERM), "kill": (-signal.SIGKILL,)}[
        kind
    ]
    assert ended.code in (*stopped, known.code), ended
    commands.holds_after(name, folder, ended)
    shutil.rmtree(folder)
    return "stopped" if ended.code in stopped else "had ended"


@pytest.mark.parametrize("kind", SIGNALS)
@pytest.mark.parametrize("name", ["save", "download"])
def test_a_signal_at_a_file_operation(name: str, kind: str, commands: Commands):
    assert disturbed(commands, name, kind, 0, by_time=False) == "stopped"


@pytest.mark.slow
@pytest.mark.parametrize("kind", SIGNALS)
@pytest.mark.parametrize("name", NAMES)
def test_signals_at_random_moments(name: str, kind: str, commands: Commands, counts: Counts):
    if counts.has("signals", name, kind):
        pytest.skip("counted already")
    outcomes = {"stopped": 0, "had ended": 0}
    for number in range(CASES):
        outcomes[disturbed(commands, name, kind, number, by_time=number % 2 == 1)] += 1
    counts.put("signals", name, kind, outcomes)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_limit_on_the_size_of_files(name: str, commands: Commands, counts: Counts):
    known = commands.undisturbed(name)
    folder = commands.folder(name)
    commands.run(name, folder)
    largest = max(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    sizes = [0, 1, 100, largest // 2, largest - 1]
    for size in sizes:
        folder = commands.folder(name)
        ended = commands.run(name, folder, largest_file=size)
        assert ended.code in (1, 2), ended
        assert name in ("save", "download") or (ended.errors.count("\n") == 1 and ended.code == 2), ended.errors
        assert name == "reproduce" or state(folder).keys() <= {"model"}
        commands.holds_after(name, folder, ended)
    assert known.ended.code in (0, 1)
    counts.put("other faults", name, "size of files limited", {"survived": len(sizes)})


def mounted(folder: Path, options: str) -> bool:
    folder.mkdir(exist_ok=True)
    return subprocess.run(["mount", "-t", "tmpfs", "-o", options, "none", str(folder)], check=False).returncode == 0


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own, of 256 kB."""
    if os.geteuid() != 0 or shutil.which("mount") is None or not mounted(tmp_path / "disk", "size=256k"):
        pytest.skip("no file system can be mounted here")
    yield tmp_path / "disk"
    subprocess.run(["umount", "-l", str(tmp_path / "disk")], check=True)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_full_disk_and_a_read_only_one(name: str, disk: Path, commands: Commands, counts: Counts):
    rooms = (0, 4096, 8192)  # bytes that are left
    for room in rooms:
        folder = commands.folder(name, at=disk)
        filler = disk / "filler"
        free = os.statvfs(disk)
        filler.write_bytes(bytes(max(0, free.f_bavail * free.f_frsize - room)))
        ended = commands.run(name, folder)
        filler.unlink()
        assert ended.code in (1, 2) or (room and ended.code == 0), ended
        commands.holds_after(name, folder, ended)
        shutil.rmtree(folder)
    folder = commands.folder(name, at=disk)
    before = state(folder)
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    ended = commands.run(name, folder)
    subprocess.run(["mount", "-o", "remount,rw,size=4m", str(disk)], check=True)
    assert ended.code in (1, 2), ended
    assert "ead-only" in ended.errors
    assert state(folder) == before
    commands.holds_after(name, folder, ended)
    counts.put("other faults", name, "full disk", {"survived": len(rooms)})
    counts.put("other faults", name, "read-only file system", {"survived": 1})


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_two_at_once(name: str, commands: Commands, counts: Counts):
    known, times = commands.undisturbed(name), 3
    for _ in range(times):
        folder = commands.folder(name)
        codes = [ended.code for ended in commands.server.run(*[commands.child(name, folder)] * 2)]
        assert all(code == known.ended.code or (name == "reproduce" and code == 2) for code in codes), codes
        assert state(folder) == known.state
    counts.put("other faults", name, "two at once", {"survived": times})
