"""Commands in forked children of one process that has imported everything, so that a killed run costs little.

`Server` starts this file as a program. It reads one JSON line for each group of children and answers with one line.
A child can get a signal after some seconds or at one of its operations on files, and a limit on the size of its files.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import pkgutil
import resource
import select
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, NoReturn


@dataclass(frozen=True)
class Child:
    """What one child does, and what happens to it.

    Attributes
    ----------
    arguments
        Of the command `frhsic`, or the name of a function of `ACTIONS` and what it is called with.
    folder
        Operations on files below it count as events.
    signal, after, event
        A signal, and when the child gets it: after some seconds, or at the file operation with this number.
    largest_file
        Limit in bytes, as of a full disk.
    """

    arguments: tuple[str, ...]
    folder: str
    signal: int = 0
    after: float | None = None
    event: int | None = None
    largest_file: int | None = None


@dataclass(frozen=True)
class Ended:
    """Exit code (negative: the signal that ended it), seconds, file operations, and what was printed as errors."""

    code: int
    seconds: float
    events: int
    errors: str


class Server:
    """The process that forks. Use it in a with statement."""

    def __enter__(self) -> Server:
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
        self.process = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )
        return self

    def __exit__(self, *error: object) -> None:
        self.process.communicate()

    def run(self, *children: Child) -> list[Ended]:
        """Start some children at once and wait for all."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps([asdict(child) for child in children]) + "\n")
        self.process.stdin.flush()
        return [Ended(**ended) for ended in json.loads(self.process.stdout.readline())]


def save_model(model: str, path: str) -> None:
    """Save a model to a path that may hold another."""
    from frhsic import load, save

    save(load(Path(model)), Path(path))


def download(url: str, sha256: str, cache: str) -> None:
    """Download a file into a cache."""
    from frhsic.datasets.sources import RawFile, obtain

    os.environ.pop("FRHSIC_DATA", None)
    os.environ["FRHSIC_CACHE"] = cache
    obtain([RawFile("folder", "file.csv", (sha256,), "the page", url=url)])


ACTIONS: dict[str, Callable[..., None]] = {"save_model": save_model, "download": download}
CHANGES = {"os.rename", "os.remove", "os.link", "os.mkdir", "os.rmdir"}


def watch_files(folder: str, event: int | None, number: int, count: Callable[[], int]) -> None:
    """Count operations that change files below a folder, and send a signal at one of them."""
    seen = 0

    def hook(name: str, arguments: tuple[Any, ...]) -> None:
        nonlocal seen
        changes = name in CHANGES or (name == "open" and (arguments[2] or 0) & (os.O_WRONLY | os.O_RDWR | os.O_CREAT))
        if changes and str(arguments[0]).startswith(folder):
            seen += 1
            count()
            if seen == event:
                os.kill(os.getpid(), number)

    sys.addaudithook(hook)


def work(child: Child, errors: int, counter: int) -> None:
    """Do what a child does."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    os.dup2(errors, 2)
    sys.stdout, sys.stderr = open(1, "w", closefd=False), open(2, "w", closefd=False)  # noqa: SIM115
    if child.largest_file is not None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (child.largest_file, child.largest_file))
    watch_files(child.folder, child.event, child.signal, lambda: os.write(counter, b"."))
    first, *others = child.arguments
    if first in ACTIONS:
        ACTIONS[first](*others)
        return
    from frhsic.cli import main

    sys.argv = ["frhsic", *child.arguments]
    main()


def leave(task: Callable[[], None]) -> NoReturn:
    """Do a task and end as Python does, without taking down a heap that belongs to the parent."""
    code: object = 0
    try:
        task()
    except SystemExit as end:
        code = end.code
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    except BaseException:
        traceback.print_exc()
        code = 1
    sys.stderr.flush()
    os._exit(code if isinstance(code, int) else bool(code))


def drain(reader: int) -> bytes:
    """Read everything that is in a pipe now."""
    content = b""
    while select.select([reader], [], [], 0)[0]:
        piece = os.read(reader, 65536)
        if not piece:
            break
        content += piece
    return content


def forked(children: list[Child]) -> list[Ended]:
    """Fork children, send their signals, and wait for all."""
    started, running, pipes = time.perf_counter(), {}, {}
    for child in children:
        errors, counter = os.pipe(), os.pipe()
        os.set_blocking(errors[1], False)
        number = os.fork()
        if number == 0:
            leave(partial(work, child, errors[1], counter[1]))
        for end in (errors[1], counter[1]):
            os.close(end)
        running[number], pipes[number] = child, (errors[0], counter[0])
    ended: dict[int, Ended] = {}
    due = sorted((child.after, number) for number, child in running.items() if child.after is not None)
    while len(ended) < len(running):
        seconds = time.perf_counter() - started
        while due and seconds >= due[0][0]:
            number = due.pop(0)[1]
            if number not in ended:
                os.kill(number, running[number].signal)
        number, status = os.waitpid(-1, os.WNOHANG)
        if number:
            errors, counter = pipes[number]
            text, events = drain(errors).decode(errors="replace"), len(drain(counter))
            for end in (errors, counter):
                os.close(end)
            ended[number] = Ended(os.waitstatus_to_exitcode(status), seconds, events, text)
        else:
            time.sleep(0.002)
    return [ended[number] for number in running]


def import_all(*names: str) -> None:
    """Import modules, as far as they are here, so that children have them already."""
    for name in names:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    gc.freeze()


def import_commands() -> None:
    """Import all that a command may need."""
    for package in ("frhsic", "frhsic_paper"):
        with contextlib.suppress(ImportError):
            for module in pkgutil.walk_packages(importlib.import_module(package).__path__, f"{package}."):
                if not module.name.endswith("__main__"):
                    importlib.import_module(module.name)
    import_all("sklearn.ensemble", "skops.io", "torch.func", "torch._dynamo")
    from frhsic.estimators.network import NetworkEstimator
    from frhsic.training import Training

    NetworkEstimator._default_training = lambda self: Training(epochs=2)  # what is learned does not matter here


def serve() -> None:
    """Answer requests until the input ends. The commands are imported before the first of them is run."""
    import_all("frhsic.estimators", "frhsic.datasets.sources", "pooch", "requests")
    commands = False
    for line in sys.stdin:
        children = [Child(**{**child, "arguments": tuple(child["arguments"])}) for child in json.loads(line)]
        if not commands and any(child.arguments[0] not in ACTIONS for child in children):
            import_commands()
            commands = True
        answers = forked(children)
        sys.stdout.write(json.dumps([asdict(answer) for answer in answers]) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    serve()
