"""What the commands share of the terminal: exit codes, a line that says what is being done."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["ABOVE", "BAD_INPUT", "Watch", "console", "progress"]

ABOVE = 1
BAD_INPUT = 2
Watch = Callable[[str], None]


def console() -> Console:
    """Return the console of standard output."""
    from rich.console import Console

    return Console()


@contextlib.contextmanager
def progress() -> Iterator[Watch]:
    """Say what is being done, on a terminal only; the line goes to standard error and leaves nothing behind."""
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda step: None
        return
    from rich.markup import escape

    with console.status("starting") as status:
        yield lambda step: status.update(escape(step))
