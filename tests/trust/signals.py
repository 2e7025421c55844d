"""Signals at random times, two writers, full and read-only folders, links and little memory.

Every command runs on a small table in a folder of its own. Afterwards each of its output files is
absent, as it was before, or whole, and nothing else is there.

    python tests/trust/signals.py [--count 200] [--jobs 1] [--seed 0] [--only predict audit]

prints counts as JSON, and exits with 1 if anything was half-written or left behind.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from cli_samples import people
from frhsic import load

OLD = b"what was there before"
CODES = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGKILL: -signal.SIGKILL}
COLUMNS = ["--features", "skill", "--features", "rank", "--max-rows", "100"]
REPRODUCE = ["reproduce", "synthetic", "--out", "records"]
COMMANDS: dict[str, tuple[list[str], list[str]]] = {
    "train": (
        ["train", "people.csv", "-t", "repaid", "-s", "age", *COLUMNS, "-o", "out", "-r", "page"],
        ["out", "page"],
    ),
    "audit": (
        ["audit", "people.csv", "-s", "age", "--score", "score", "--max-rows", "100", "-o", "page"],
        ["page"],
    ),
    "predict": (["predict", "model", "many.csv", "-o", "scores"], ["scores"]),
    "reproduce": (
        [*REPRODUCE, "--epochs", "1", "--repeats", "1", "--device", "cpu"],
        [],
    ),
}
"""Each command, and the files that it writes into its folder."""


def prepare(folder: Path) -> None:
    """Write the tables, and the model that is served."""
    people(300).to_csv(folder / "people.csv", index=False)
    people(20_000).to_csv(folder / "many.csv", index=False)
    started(["train", *COMMANDS["train"][0][1:-4], "-o", "model", "-r", "page"], folder).wait()
    (folder / "page").unlink()


def started(
    arguments: list[str], folder: Path, limit: Callable[[], None] | None = None
) -> subprocess.Popen[bytes]:
    """Start a command in a folder. It heeds SIGINT, which a shell may let it ignore."""

    def before() -> None:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        if limit is not None:
            limit()

    return subprocess.Popen(
        [sys.executable, "-m", "frhsic.cli", *arguments],
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=(folder / "said").open("wb"),
        start_new_session=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        preexec_fn=before,
    )


def fresh(source: Path, old: list[str]) -> Path:
    """Return a folder with the inputs, and with old files in the place of some outputs."""
    folder = Path(tempfile.mkdtemp(dir=source.parent))
    for path in source.iterdir():
        (folder / path.name).hardlink_to(path)
    for name in old:
        (folder / name).write_bytes(OLD)
    return folder


def is_whole(path: Path) -> bool:
    """Return whether an output is complete: a model, a page or a table."""
    if path.name == "out":
        load(path)
        return True
    content = path.read_text()
    if path.name == "page":
        return content.rstrip().endswith("</html>")
    return content.endswith("\n") and content.count("\n") == 20_001


def problems(folder: Path, source: Path, outputs: list[str], old: list[str]) -> list[str]:
    """Return what is half-written or left behind in a folder."""
    names = {path.name for path in folder.iterdir()} - {"said", "records"}
    found = [f"{name} was left" for name in names - {path.name for path in source.iterdir()}]
    found = [line for line in found if line.split()[0] not in outputs]
    states = set()
    for name in outputs:
        path = folder / name
        if not path.exists():
            states.add("absent")
        elif name in old and path.read_bytes() == OLD:
            states.add("old")
        elif is_whole(path):
            states.add("whole")
        else:
            found.append(f"{name} is half-written")
    if "whole" in states and len(states) > 1:
        found.append("one output is new and another is not")
    if "absent" in states and old:
        found.append("an old file is gone")
    found += [f"{path.name} was left" for path in folder.rglob("*.part")]
    if b"Traceback" in (folder / "said").read_bytes():
        found.append("a traceback was printed")
    return found


def running(session: int) -> list[int]:
    """Return the processes of a session that are still there."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
            if int(fields[3]) == session and fields[0] != "Z":
                found.append(int(entry.name))
    return found


def interrupted(
    source: Path, command: str, number: signal.Signals, after: float, overwrites: bool
) -> tuple[str, list[str]]:
    """Send a signal to a command after some seconds; return how it ended, and what is wrong."""
    arguments, outputs = COMMANDS[command]
    old = outputs if overwrites else []
    folder = fresh(source, old)
    process = started(arguments, folder)
    time.sleep(after)
    process.send_signal(number)
    code = process.wait(120)
    deadline = time.monotonic() + 20
    while running(process.pid) and time.monotonic() < deadline:
        time.sleep(0.1)
    found = problems(folder, source, outputs, old)
    for left in running(process.pid):
        found.append("a process was left")
        os.kill(left, signal.SIGKILL)
    if code == -number and "a traceback was printed" in found:
        found.remove("a traceback was printed")  # Python had not yet come to the handlers
    if code not in (0, CODES[number], -number):
        found.append(f"exit code {code}: {(folder / 'said').read_text()[-300:]}")
    shutil.rmtree(folder)
    return ("done before" if code == 0 else "stopped"), found


def two_writers(source: Path, command: str) -> list[str]:
    arguments, outputs = COMMANDS[command]
    folder = fresh(source, [])
    codes = [process.wait(300) for process in [started(arguments, folder) for _ in range(2)]]
    found = problems(folder, source, outputs, [])
    if codes != [0, 0]:
        found.append(f"exit codes {codes}")
    return found


def limited(source: Path, command: str, limit: Callable[[], None]) -> list[str]:
    """Run a command within a limit of file size or memory: it ends with an error, or is done."""
    arguments, outputs = COMMANDS[command]
    folder = fresh(source, outputs)
    code = started(arguments, folder, limit).wait(300)
    found = problems(folder, source, outputs, outputs)
    if code not in (0, 2) and code > 0:
        found.append(f"exit code {code}")
    return found


def small_files() -> None:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))


def little_memory(megabytes: int) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (megabytes * 2**20,) * 2)


def in_another_folder(source: Path, command: str, options: str) -> list[str]:
    """Run a command whose outputs are links into a file system that is full or read-only."""
    arguments, outputs = COMMANDS[command]
    folder = fresh(source, [])
    target = Path(tempfile.mkdtemp(dir=source.parent))
    mount = ["mount", "-t", "tmpfs", "-o", options, "none", str(target)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        return []
    try:
        for name in outputs:
            (folder / name).symlink_to(target / name)
        code = started(arguments, folder).wait(300)
        found = [f"{path.name} was left" for path in target.iterdir()]
        found += [f"{name} is no link" for name in outputs if not (folder / name).is_symlink()]
        return found + ([] if code == 2 else [f"exit code {code}"])
    finally:
        subprocess.run(["umount", str(target)], check=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="*", default=list(COMMANDS), choices=list(COMMANDS))
    options = parser.parse_args()
    draw = random.Random(options.seed)
    counts: Counter[str] = Counter()
    wrong: list[str] = []
    with tempfile.TemporaryDirectory() as place:
        source = Path(place, "inputs")
        source.mkdir()
        prepare(source)
        (source / "said").unlink()
        seconds = {}
        for command in options.only:
            start = time.monotonic()
            started(COMMANDS[command][0], fresh(source, [])).wait()
            seconds[command] = min(time.monotonic() - start, 60)
        cases = []
        for place_of in range(options.count):
            command = options.only[place_of % len(options.only)]
            number = draw.choice(list(CODES))
            after = draw.uniform(0, seconds[command])
            cases.append((source, command, number, after, draw.random() < 0.5))
        with ThreadPoolExecutor(options.jobs) as pool:
            for case, (ended, found) in zip(cases, pool.map(lambda c: interrupted(*c), cases)):
                counts[f"{case[1]} {case[2].name} {ended}"] += 1
                wrong += [f"{case[1]} {case[2].name} after {case[3]:.2f} s: {f}" for f in found]
                sys.stderr.write(
                    f"{case[1]} {case[2].name} after {case[3]:.2f} s, {ended} {found}\n"
                )
        others = {}
        for command in {"train", "audit", "predict"} & set(options.only):
            others[f"{command}: two writers"] = partial(two_writers, source, command)
            others[f"{command}: small files"] = partial(limited, source, command, small_files)
            others[f"{command}: full folder"] = partial(
                in_another_folder, source, command, "size=4k"
            )
            others[f"{command}: read-only folder"] = partial(
                in_another_folder, source, command, "ro"
            )
            for megabytes in (500, 1000, 1500, 2000, 3000):
                memory = partial(little_memory, megabytes)
                others[f"{command}: {megabytes} MB"] = partial(limited, source, command, memory)
        for name, check in others.items():
            counts[name.partition(": ")[2]] += 1
            wrong += [f"{name}: {line}" for line in check()]
    sys.stdout.write(json.dumps(dict(sorted(counts.items())) | {"wrong": wrong}, indent=1) + "\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
