"""How far a long computation is, for a listener; without one, nothing happens."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

# Takes what is done, of how much in all if that is known, and what is counted, such as "rows".
Listener = Callable[[int, int | None, str], None]

_listener: ContextVar[Listener | None] = ContextVar("_listener", default=None)


@contextmanager
def listen(listener: Listener) -> Iterator[None]:
    """Call a listener when a computation within tells how far it is."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def has_listener() -> bool:
    """Return whether there is a listener, so that it is worth to find out how much there is."""
    return _listener.get() is not None


def tell(done: int, total: int | None, unit: str) -> None:
    """Tell how much is done.

    Examples
    --------
    >>> with listen(print):
    ...     tell(3, 10, "models")
    3 10 models
    """
    listener = _listener.get()
    if listener is not None:
        listener(done, total, unit)
