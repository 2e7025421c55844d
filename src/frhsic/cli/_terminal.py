"""What the commands share: exit codes, errors as one line, console, progress line."""

from __future__ import annotations

import contextlib
import os
import signal
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import typer
from typer.core import TyperGroup

from frhsic.formatting import printable, printable_json

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

ABOVE = 1
"""Exit code if a number is above its limit, and for nothing else."""
BAD_INPUT = 2
"""Exit code of every error."""
INTERRUPTED = 130
LOGGED_AFTER = 10.0
TERMINATED = 143
LONGEST = 2000
"""Characters of an error message at most."""
Watch = Callable[[str], None]

_received: list[int] = []


class Commands(TyperGroup):
    """The commands of the program. Errors of all of them, also of other packages' commands, become exit codes here."""

    def invoke(self, ctx: Any) -> Any:
        """Run a command. An error is printed as one line and exits with 2, an interrupt with 130."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as interrupt:
            said, code = str(interrupt) or "interrupted.", INTERRUPTED
        except Exception as error:
            if isinstance(error, typer.Abort) or hasattr(error, "exit_code"):  # typer's own, with a code of its own
                raise
            if os.environ.get("FRHSIC_TRACEBACK"):
                traceback.print_exc()
            said, code = _line(error), BAD_INPUT
            if _received:  # other libraries turn an interrupt into errors of their own
                said, code = "interrupted.", 128 + _received[-1]
        command = " ".join(filter(None, ("frhsic", ctx.invoked_subcommand)))
        with contextlib.suppress(OSError):  # standard error may be closed as well
            echo(f"{command}: {said}", err=True)
        raise typer.Exit(code)


def _line(error: Exception) -> str:
    """Return an error as one line; one that no code here raises on purpose is named."""
    expected = isinstance(error, (ValueError, TypeError, OSError))
    text = " ".join(str(error).split())
    return printable(text if expected and text else f"{type(error).__name__}: {text}", LONGEST)


def on_signals() -> None:
    """Let SIGTERM end the program as an error does, so that workers are stopped and unfinished files removed.

    The signals that came are remembered, since an error that follows one is no error of the input.
    """

    def end(number: int, frame: object) -> NoReturn:
        _received.append(number)
        raise KeyboardInterrupt if number == signal.SIGINT else SystemExit(TERMINATED)

    signal.signal(signal.SIGTERM, end)
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # else a shell has it ignored
        signal.signal(signal.SIGINT, end)


def echo(text: str, *, err: bool = False) -> None:
    """Print text without the control characters that a name or a path in it may have."""
    typer.echo(printable(text), err=err)


def echo_json(text: str) -> None:
    """Print JSON."""
    typer.echo(printable_json(text))


def console(*, stderr: bool = False) -> Console:
    """Return the console of standard output; a pipe or a file, which has no width, gets 160 columns."""
    from rich.console import Console
    from rich.segment import Segment

    class Printable(Console):
        """A console that passes no control characters of texts on to the terminal."""

        def render(self, *arguments: Any, **named: Any) -> Iterable[Segment]:
            for segment in super().render(*arguments, **named):
                yield segment if segment.control else Segment(printable(segment.text), segment.style)

    console = Printable(stderr=stderr)
    if not console.is_terminal:
        console.width = 160
    return console


def show(
    tables: Callable[[], Iterable[RenderableType]],
    notes: Sequence[str],
    files: Mapping[str, Path],
    findings: Sequence[str] = (),
) -> None:
    """Print tables, notes and where files were written on a terminal.

    Elsewhere the paths go to standard output, and findings and notes to standard error: they must not pass unseen in a
    log.
    """
    from rich.text import Text

    terminal = console()
    if not terminal.is_terminal:
        for path in files.values():
            echo(str(path))
        for line in (*findings, *(f"note: {note}" for note in notes)):
            echo(line, err=True)
        return
    for table in tables():
        terminal.print(table)
    for note in notes:
        terminal.print(Text(f"note: {note}", style="yellow"))
    for kind, path in files.items():
        terminal.print(Text(f"{kind}: {path}"), soft_wrap=True)


@contextlib.contextmanager
def progress() -> Iterator[Watch]:
    """Show the current step on standard error: on a terminal, in a line that is removed at the end; in a log, as a line
    for each step that lasts `LOGGED_AFTER` seconds.
    """
    import threading

    from rich.markup import escape

    terminal = console(stderr=True)
    if terminal.is_terminal:
        with terminal.status("starting") as status:
            yield lambda step: status.update(escape(step))
        return
    waiting = threading.Timer(0, echo)

    def watch(step: str) -> None:
        nonlocal waiting
        waiting.cancel()
        text = f"frhsic: {step}, since {time.strftime('%H:%M:%S')}"
        waiting = threading.Timer(LOGGED_AFTER, echo, [text], {"err": True})
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
        echo(line, err=True)
    if lines:
        raise typer.Exit(ABOVE)
