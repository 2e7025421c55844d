"""A cluster that loses a worker in the middle of its work."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Iterator


@contextlib.contextmanager
def dying_worker() -> Iterator[str]:
    """Yield the address of a cluster of two processes, one of which is killed while it works;
    another takes its place.

    Raises at the end if no worker was killed.
    """
    from distributed import LocalCluster

    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster:
        killed, over = threading.Event(), threading.Event()

        def kill() -> None:
            while not over.is_set():
                busy = [
                    worker.name
                    for worker in list(cluster.scheduler.workers.values())
                    if worker.processing
                ]
                if busy:
                    time.sleep(0.2)
                    os.kill(cluster.workers[busy[0]].pid, signal.SIGKILL)
                    killed.set()
                    return
                time.sleep(0.01)

        thread = threading.Thread(target=kill, daemon=True)
        thread.start()
        yield cluster.scheduler_address
        over.set()
        thread.join()
        assert killed.is_set(), "no worker was busy, so none was killed"
