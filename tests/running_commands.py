"""Commands in processes of their own, and signals that end them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from functools import partial
from pathlib import Path


def started(*arguments: str) -> subprocess.Popen[str]:
    """Start the command line so that it heeds SIGINT, which a shell lets its background jobs
    ignore.
    """
    return subprocess.Popen(
        [sys.executable, "-m", "frhsic", *arguments],
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
