"""A Dask cluster by its address, or one on this machine."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from typing import Any

from frhsic.distributed.rows import dask_module

TIMEOUT = 10
"""Seconds to wait for a scheduler."""


@contextlib.contextmanager
def cluster(address: str, *, timeout: float = TIMEOUT) -> Iterator[Any]:
    """Connect to a Dask cluster for the time of a ``with`` block, and yield the client.

    Within the block, :func:`frhsic.distributed.audit`, :func:`frhsic.select_weight` and everything else that uses
    Dask or joblib run on the cluster.

    Parameters
    ----------
    address
        Address of a scheduler, such as ``"tcp://10.0.0.1:8786"``; or ``"local"`` for one process for each core of this
        machine, ``"local:4"`` for four.
    timeout
        Seconds to wait for the scheduler.

    Examples
    --------
    >>> with cluster("local:x"):
    ...     pass
    Traceback (most recent call last):
    ValueError: the scheduler is 'local:x'; pass an address such as tcp://10.0.0.1:8786, local, or local:4.
    """
    local = re.fullmatch(r"local(?::([1-9]\d*))?", address)
    if local is None and (address.startswith("local:") or not re.fullmatch(r"\S+:\d+", address)):
        raise ValueError(
            f"the scheduler is {address!r}; pass an address such as tcp://10.0.0.1:8786, local, or local:4."
        )
    dask_module()
    import distributed
    import joblib

    with contextlib.ExitStack() as stack:
        if local is not None:
            workers = int(local[1]) if local[1] else None
            place: Any = stack.enter_context(
                distributed.LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=":0")
            )
        else:
            place = address
        try:
            client = stack.enter_context(distributed.Client(place, timeout=timeout))
        except OSError as error:
            raise ConnectionError(
                f"no scheduler answers at {address} within {timeout:g} s; start one with dask scheduler, check address "
                "and firewall, or pass local to use this machine."
            ) from error
        stack.enter_context(joblib.parallel_config(backend="dask"))
        yield client
