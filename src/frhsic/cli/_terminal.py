"""Terminal output that the commands share: exit codes, console, progress line."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

ABOVE = 1
BAD_INPUT = 2
INTERRUPTED = 130
LOGGED_AFTER = 10.0
Watch = Callable[[str], None]


def console() -> Console:
    """Return the console of standard output; a pipe or a file, which has no width, gets 160 columns."""
    from rich.console import Console

    console = Console()
    if not console.is_terminal:
        console.width = 160
    return console


def show(tables: Callable[[], Iterable[RenderableType]], notes: Sequence[str], files: Mapping[str, Path]) -> None:
    """Print tables, notes and where files were written on a terminal; elsewhere only the paths of the files."""
    from rich.text import Text

    terminal = console()
    if not terminal.is_terminal:
        for path in files.values():
            typer.echo(str(path))
        return
    for table in tables():
        terminal.print(table)
    for note in notes:
        terminal.print(Text(f"note: {note}", style="yellow"))
    for kind, path in files.items():
        terminal.print(Text(f"{kind}: {path}"), soft_wrap=True)


@contextlib.contextmanager
def progress() -> Iterator[Watch]:
    """Show the current step on a terminal; the line goes to standard error and is removed at the end."""
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda step: None
        return
    from rich.markup import escape

    with console.status("starting") as status:
        yield lambda step: status.update(escape(step))


@contextlib.contextmanager
def steps() -> Iterator[Watch]:
    """Print steps as lines on standard error: on a terminal each, in a log those that last `LOGGED_AFTER` seconds.

    Unlike :func:`progress` it may be used around training, which has a bar of its own on a terminal.
    """
    import threading

    def tell(step: str) -> None:
        typer.echo(f"frhsic: {step}", err=True)

    if sys.stderr.isatty():
        yield tell
        return
    waiting = threading.Timer(0, tell)

    def watch(step: str) -> None:
        nonlocal waiting
        waiting.cancel()
        waiting = threading.Timer(LOGGED_AFTER, tell, [f"{step}, since {time.strftime('%H:%M:%S')}"])
        waiting.daemon = True
        waiting.start()

    try:
        yield watch
    finally:
        waiting.cancel()


def row_counter(table: Path, watch: Watch) -> Callable[[int], None]:
    """Return a function that shows how many rows of a table have been read."""
    return lambda rows: watch(f"reading {table.name}: {rows:,} rows")


@contextlib.contextmanager
def refusing(command: str) -> Iterator[None]:
    """Print an error of the user's input as one message and exit with code 2; an interrupt exits with 130."""
    try:
        yield
    except (ValueError, TypeError, OSError) as error:
        typer.echo(f"frhsic {command}: {error}", err=True)
        raise typer.Exit(BAD_INPUT) from None
    except KeyboardInterrupt:
        typer.echo(f"frhsic {command}: interrupted.", err=True)
        raise typer.Exit(INTERRUPTED) from None


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Compute on one thread: blocks are small, so that more threads gain little and cost much on busy cores."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def exit_above(lines: Sequence[str]) -> None:
    """Print what is above its limit to standard error and exit with code 1, if there is anything."""
    for line in lines:
        typer.echo(line, err=True)
    if lines:
        raise typer.Exit(ABOVE)


def require_writable(files: dict[str, Path], table: Path | None = None) -> None:
    """Raise before training if a file could not be written, or would overwrite the table or another file."""
    seen: dict[Path, str] = {}
    for kind, path in files.items():
        whole = path.resolve()
        if not whole.parent.is_dir():
            raise ValueError(f"the folder {str(path.parent)!r} of the {kind} is not there; make it first.")
        if whole.is_dir():
            raise ValueError(f"the {kind} is to be written to {str(path)!r}, which is a folder; name a file in it.")
        if table is not None and whole == table.resolve():
            raise ValueError(f"the {kind} would overwrite the table {str(table)!r}; choose another path.")
        if whole in seen:
            raise ValueError(f"{seen[whole]} and {kind} would be the same file, {str(path)!r}; choose another path.")
        seen[whole] = kind
