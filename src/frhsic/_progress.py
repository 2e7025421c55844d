"""Report the progress of a long computation to a listener, if there is one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

# Receives the amount done, the total if known, and the unit, such as "rows".
Listener = Callable[[int, int | None, str], None]

_listener: ContextVar[Listener | None] = ContextVar("_listener", default=None)


@contextmanager
def listen(listener: Listener) -> Iterator[None]:
    """Call a listener whenever a computation in this block reports progress."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def has_listener() -> bool:
    """Return whether there is a listener; if there is none, totals need not be computed."""
    return _listener.get() is not None


def tell(done: int, total: int | None, unit: str) -> None:
    """Report progress.

    Examples
    --------
    >>> with listen(print):
    ...     tell(3, 10, "models")
    3 10 models
    """
    listener = _listener.get()
    if listener is not None:
        listener(done, total, unit)
