"""Limit every thread pool to `n_jobs` threads during a call, and restore the pools afterwards.

OpenMP has a thread count for each Python thread, while BLAS often has one for the whole process. Of
several concurrent calls, only the first changes the thread count of BLAS, so that this count can be
restored.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache, wraps
from typing import Any, ParamSpec, TypeVar

from threadpoolctl import ThreadpoolController

P = ParamSpec("P")
R = TypeVar("R")

_blas = threading.Lock()


def thread_count(n_jobs: int | None) -> int:
    """Return the number of threads that `n_jobs` allows: one for None, all cores for -1.

    Examples
    --------
    >>> thread_count(None), thread_count(3)
    (1, 3)
    """
    if n_jobs is None or n_jobs > 0:
        return n_jobs or 1
    from joblib import effective_n_jobs  # slow to import; not needed for one

    return int(effective_n_jobs(n_jobs))


@contextmanager
def limit_threads(n_jobs: int | None) -> Iterator[None]:
    """Limit the threads of BLAS and OpenMP; pools with fewer threads are unchanged."""
    threads = thread_count(n_jobs)
    pools = _pools(len(sys.modules))
    first = _blas.acquire(blocking=False)
    try:
        limits: dict[str, int] = {}
        for pool in pools.info():
            if first or pool["user_api"] != "blas":
                name = pool["prefix"]
                limits[name] = min(limits.get(name, threads), pool["num_threads"])
        with pools.limit(limits=limits):
            yield
    finally:
        if first:
            _blas.release()


def limit_to_n_jobs(method: Callable[P, R]) -> Callable[P, R]:
    """Decorate a method of an estimator so that it uses at most `n_jobs` threads."""

    @wraps(method)
    def call(*arguments: P.args, **named: P.kwargs) -> R:
        estimator: Any = arguments[0]
        with limit_threads(estimator.n_jobs):
            return method(*arguments, **named)

    return call


@lru_cache(maxsize=1)
def _pools(modules: int) -> ThreadpoolController:
    """Return the thread pools of all libraries, including those loaded since the last call."""
    return ThreadpoolController()
