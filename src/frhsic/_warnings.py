"""Warnings that point to the caller's line, and a context manager that ignores warnings."""

from __future__ import annotations

import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

# Packages whose stack frames are skipped to find the caller.
INSIDE = ("frhsic.", "sklearn.")

_FILTERS = threading.RLock()


def warn(message: str, category: type[Warning]) -> None:
    """Warn at the first stack frame outside this library."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(INSIDE):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


@contextmanager
def ignore_warnings(category: type[Warning] = Warning) -> Iterator[None]:
    """Ignore a category of warnings, in one thread at a time because warning filters are global."""
    with _FILTERS, warnings.catch_warnings(action="ignore", category=category):
        yield
