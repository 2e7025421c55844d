"""Shared parts of all commands: options, exit codes, one-line errors, console, and progress
line.
"""

from __future__ import annotations

import contextlib
import fnmatch
import functools
import inspect
import os
import re
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer
from typer import Argument, Option
from typer.core import TyperGroup

from frhsic._progress import listen
from frhsic.formatting import did_you_mean, printable

if TYPE_CHECKING:
    from rich.console import Console

    from frhsic.auditing import Context
    from frhsic.parity.limits import LimitLike
    from frhsic.report import Report
    from frhsic.tables.roles import ColumnRoles

# Exit codes: 1 only if a number exceeds its limit, 2 for every error.
ABOVE, BAD_INPUT, INTERRUPTED, TERMINATED = 1, 2, 130, 143
DEFAULT_REPORT = Path("frhsic-report.html")
# Colors of verdicts.
VERDICT_STYLES = {"kept": "bold green", "unclear": "bold yellow", "not kept": "bold red"}
# Most characters in an error message.
LONGEST = 2000
# Environment variables that set the number of threads of BLAS or OpenMP libraries and of torch when
# they are imported.
THREADS = "OMP_NUM_THREADS"
Watch = Callable[[str], None]

_received: list[int] = []


def parse_limit(
    texts: Sequence[str], attributes: Sequence[str], measures: Sequence[str]
) -> LimitLike:
    """Return the limit set by options, in the form used in Python. ``=`` stands for ``<=`` or
    ``>=``, which a shell would interpret as a redirection; an attribute's limit is written as
    ``age=0.05``.

    Examples
    --------
    >>> parse_limit(["50%"], ["age"], ["gdp"]), parse_limit(["0.02"], ["age"], ["gdp"])
    ('50%', 0.02)
    >>> parse_limit(["age=0", "gdp=0.1"], ["age", "hours"], ["gdp"])
    [{'age': 0.0}, 'gdp <= 0.1']
    """
    limits = [_parse_limit_text(text, attributes, measures) for text in texts]
    if not limits:
        return None
    return limits[0] if len(limits) == 1 else limits


def parse_confidence(text: str) -> float | None:
    """Return the confidence given by an option, or None for ``none``."""
    if text.strip() == "none":
        return None
    with contextlib.suppress(ValueError):
        if 0 < float(text) < 1:
            return float(text)
    raise ValueError(
        f"--confidence is {text!r}; pass a number such as 0.95, or none to limit only the estimate."
    )


def _parse_limit_text(text: str, attributes: Sequence[str], measures: Sequence[str]) -> LimitLike:
    from frhsic.parity.limits import AT_LEAST

    named = re.fullmatch(r"\s*([^<>=]+?)\s*=\s*(.+)", text)
    if named is None:
        if text.strip() == "none":
            return None
        try:
            return float(text)
        except ValueError:
            return text
    name, limit = named.groups()
    if name in measures:
        return f"{name} {'>=' if name in AT_LEAST else '<='} {limit}"
    if name in attributes:
        return {name: _parse_limit_text(limit, (), measures)}
    raise ValueError(
        f"--limit names {name!r}, which is neither a --sensitive column nor a measure."
        f"{did_you_mean(name, [*attributes, *measures])}"
    )


class Commands(TyperGroup):
    """The commands of the program. It converts errors from any command, including those of other
    packages, to exit codes.
    """

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command whose help text is wrapped only to the terminal's width, and whose flags
        show no type.
        """
        command: Any = super().get_command(ctx, cmd_name)
        if command is not None:
            command.help = re.sub(r"(?<=\S)\n(?=\S)", " ", command.help or "")
            for option in command.get_params(ctx):
                if getattr(option, "is_flag", False):
                    option.metavar = ""
        return command

    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        """Read the options of the program itself."""
        given = [*args]
        try:
            return super().parse_args(ctx, args)
        except Exception as error:
            if not given or not hasattr(error, "format_message"):  # without arguments, show help
                raise
            echo(f"frhsic: {error.format_message()}", err=True)
            raise typer.Exit(BAD_INPUT) from None

    def invoke(self, ctx: Any) -> Any:
        """Run a command. After an error, print one line and exit with 2; after an interrupt, exit
        with 130.
        """
        code = BAD_INPUT
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as interrupt:
            said, code = str(interrupt) or "interrupted.", INTERRUPTED
        except (typer.Abort, typer.Exit):
            raise
        except BrokenPipeError:  # the reader, such as head, has closed the pipe
            raise typer.Exit(BAD_INPUT) from None
        except Exception as error:
            if os.environ.get("FRHSIC_TRACEBACK"):
                traceback.print_exc()
            if hasattr(error, "format_message"):  # typer cannot read an option
                said = printable(f"{error.format_message().rstrip('.')}. See --help.", LONGEST)
            else:
                text = self._named(ctx, " ".join(str(error).split()))
                expected = isinstance(error, (ValueError, TypeError, OSError)) and text
                said = printable(text if expected else f"{type(error).__name__}: {text}", LONGEST)
            if _received:  # other libraries convert an interrupt to their own errors
                said, code = "interrupted.", 128 + _received[-1]
        command = " ".join(filter(None, ("frhsic", ctx.invoked_subcommand)))
        with contextlib.suppress(OSError):  # standard error may be closed, too
            echo(f"{command}: {said}", err=True)
        raise typer.Exit(code)

    def _named(self, ctx: Any, text: str) -> str:
        """Return a message in which names of arguments, except lists, are replaced with names of
        options; a name after --missing or --replace belongs to a column.
        """
        command = self.get_command(ctx, ctx.invoked_subcommand or "")
        for option in [] if command is None else command.get_params(ctx):
            argument = rf"(?<!--missing )(?<!--replace )\b{option.name}=(?=[^\s\[])"
            text = re.sub(argument, f"{option.opts[0]} ", text)
        return text.replace("sensitive_features", "--sensitive")


def handle_signals() -> None:
    """Make SIGTERM end the program in the same way as an error, so that workers are stopped and
    unfinished files are removed.

    Signals are recorded, since an error after a signal is not an error in the input.
    """

    def end(number: int, frame: object) -> NoReturn:
        _received.append(number)
        raise KeyboardInterrupt if number == signal.SIGINT else SystemExit(TERMINATED)

    signal.signal(signal.SIGTERM, end)
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # unless a shell ignores it
        signal.signal(signal.SIGINT, end)


def echo(text: str, *, err: bool = False) -> None:
    """Print text without control characters, which names or paths may contain."""
    typer.echo(printable(text), err=err)


def console(*, stderr: bool = False) -> Console:
    """Return the console for standard output; a pipe or a file has no width and gets 160
    columns.
    """
    from rich.console import Console
    from rich.segment import Segment

    class Printable(Console):
        """A console that removes control characters from text before it reaches the terminal."""

        def render(self, *arguments: Any, **named: Any) -> Iterable[Segment]:
            for segment in super().render(*arguments, **named):
                yield (
                    segment if segment.control else Segment(printable(segment.text), segment.style)
                )

    console = Printable(stderr=stderr)
    if not console.is_terminal:
        console.width = 160
    return console


def show(
    notes: Sequence[str],
    files: Mapping[str, Path],
    report: Report | None = None,
    changes: Sequence[Sequence[str]] = (),
) -> None:
    """Print notes and the paths of written files; for a report, also the changes and its closing
    lines. If standard output is not a terminal, only the paths go to standard output; everything
    else goes to standard error, so that it isn't missed in a log.
    """
    from rich.table import Table
    from rich.text import Text

    terminal = console()
    lines: dict[str, str] = {}
    style = ""
    if report is not None:
        from frhsic.report.first_page import closing_lines, verdict

        lines = closing_lines(report)
        style = VERDICT_STYLES.get(verdict(report).kind, "bold")
    if not terminal.is_terminal:
        for path in files.values():
            echo(str(path))
        before = [*(f"note: {note}" for note in notes), *("  ".join(row) for row in changes)]
        for line in (*before, *(f"{name + ':':9}{text}" for name, text in lines.items())):
            echo(line, err=True)
        return
    for note in notes:
        terminal.print(Text(f"note: {note}", style="dim"))
    if changes:
        table = Table.grid(padding=(0, 2))
        for row in changes:
            table.add_row(*map(Text, row))
        terminal.print(table)
    paths = ", ".join(str(path) for path in files.values())
    for name, text in (lines | {", ".join(files): paths}).items():
        shown = Text(text, style=style if name == "verdict" else "")
        terminal.print(Text(f"{name:9}").append_text(shown), soft_wrap=True)


@contextlib.contextmanager
def progress() -> Iterator[Watch]:
    """If standard error is a terminal, show the current step and its progress on one line, which is
    removed at the end.
    """
    from rich.markup import escape

    terminal = console(stderr=True)
    if not terminal.is_terminal:
        yield lambda step: None
        return
    step, started = "starting", time.monotonic()
    with terminal.status(step) as status:

        def watch(name: str) -> None:
            nonlocal step, started
            step, started = name, time.monotonic()
            status.update(escape(step))

        def count(done: int, total: int | None, unit: str) -> None:
            left = progress_text(done, total, unit, time.monotonic() - started)
            status.update(escape(f"{step}: {left}"))

        with listen(count):
            yield watch


def progress_text(done: int, total: int | None, unit: str, seconds: float) -> str:
    """Describe how much of a step is done, and how long the rest will take at the same speed.

    Examples
    --------
    >>> progress_text(2, 10, "models", 15.0)
    '2 of 10 models, about 60 s left'
    >>> progress_text(2000, None, "rows", 15.0)
    '2,000 rows'
    """
    if total is None or not 0 < done <= total:
        return f"{done:,} {unit}"
    left = seconds * (total - done) / done
    shown = f"{left:.0f} s" if left < 100 else f"{left / 60:.0f} min"
    return f"{done:,} of {total:,} {unit}, about {shown} left"


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Compute on one thread: blocks of rows are small, so more threads gain little and are slow on
    busy cores. Libraries imported within the context take their number of threads from the
    environment.
    """
    from frhsic._threads import limit_threads

    torch = sys.modules.get("torch")
    threads = 1 if torch is None else torch.get_num_threads()
    variable = os.environ.get(THREADS)
    os.environ[THREADS] = "1"
    if torch is not None:
        torch.set_num_threads(1)
    try:
        with limit_threads(1):
            yield
    finally:
        if torch is not None:
            torch.set_num_threads(threads)
        if variable is None:
            del os.environ[THREADS]
        else:
            os.environ[THREADS] = variable


def exit_over_limits(lines: Sequence[str], shown: Iterable[str] = ()) -> None:
    """If any `lines` report an exceeded limit, print those that aren't among the `shown` lines to
    standard error, and exit with code 1.
    """
    told = "\n".join(shown)
    for line in lines:
        if line not in told:
            echo(line, err=True)
    if lines:
        raise typer.Exit(ABOVE)


# Options

Positive = Annotated[
    str | None,
    Option(
        help=(
            "Value of the target that counts as 1, or several separated by commas; all others"
            " count as 0. Required if the target is text with two values other than yes/no. Without"
            " this option, text with more values has one class per value."
        )
    ),
]
Favourable = Annotated[
    str | None,
    Option(
        help=(
            "Value of the target that is good for a person, such as repaid. Equal opportunity is"
            " measured on the rows with this value. Default: the positive value."
        )
    ),
]
DropRepeated = Annotated[
    bool,
    Option(
        "--drop-repeated", help="Drop rows that repeat an earlier one in every column of the table."
    ),
]
Title = Annotated[str | None, Option(help="Title of the report.")]
MaxRows = Annotated[int, Option(min=100, help="Maximum number of rows for the slow statistics.")]
Seed = Annotated[int, Option(min=0, help="Seed for all random draws.")]
AsJson = Annotated[
    bool, Option("--json", help="Print the summary, the paths of the files and the report as JSON.")
]


@dataclass(frozen=True)
class Columns:
    """A training table and the roles of its columns."""

    table: Annotated[
        Path,
        Argument(help="CSV, TSV, Parquet or Excel. Rows without a target are dropped and counted."),
    ]
    target: Annotated[
        str,
        Option(
            "--target",
            "-t",
            help=(
                "Column to predict. Text or two distinct numbers: classification; any other"
                " numbers: regression."
            ),
        ),
    ]
    sensitive: Annotated[
        list[str],
        Option(
            "--sensitive",
            "-s",
            help=(
                "Columns that predictions should not depend on, separated by commas: numbers, or"
                " bands such as 30-39. Required to train; required to predict only with"
                " --uses-sensitive."
            ),
        ),
    ]
    positive: Positive = None
    features: Annotated[
        list[str] | None,
        Option(
            help=(
                'Columns to predict from, separated by commas: names or a pattern such as "x_*".'
                " Default: all other columns."
            )
        ),
    ] = None
    drop: Annotated[
        list[str] | None,
        Option(
            help=(
                "Columns to leave out, separated by commas. Identifiers are left out unless"
                " --features names them."
            )
        ),
    ] = None
    favourable: Favourable = None
    order: Annotated[
        str | None,
        Option(
            "--split-by",
            help=(
                "Column of dates or numbers: train on earlier rows and evaluate on later ones; with"
                " --groups, on later rows of groups that are not in the training rows."
            ),
        ),
    ] = None
    groups: Annotated[
        str | None,
        Option(help="Column of groups, such as people: all rows of a group stay together."),
    ] = None
    weights: Annotated[
        str | None, Option("--row-weights", help="Column of nonnegative row weights.")
    ] = None
    drop_repeated: DropRepeated = False

    @property
    def roles(self) -> ColumnRoles:
        """The roles of the table's columns."""
        from frhsic.tables.roles import ColumnRoles

        return ColumnRoles(**{role.name: getattr(self, role.name) for role in fields(ColumnRoles)})


Control = Annotated[
    list[str] | None,
    Option(
        "--control",
        help=(
            "Columns that scores are allowed to depend on, such as education, separated by commas:"
            " the gap is also measured among people with the same values. Numbers are binned into"
            " fifths."
        ),
    ),
]
Trusted = Annotated[
    list[str] | None,
    Option(
        "--trusted",
        help=(
            "Class from another library to allow in the model file; such a class can run code."
            " frhsic.save lists the classes in a model. May be repeated."
        ),
    ),
]


@dataclass(frozen=True)
class Reading:
    """How to read a table."""

    separator: Annotated[
        str | None,
        Option(
            "--delimiter",
            help="Character between the fields of a text file. Default: detected.",
        ),
    ] = None
    decimal: Annotated[
        str | None,
        Option(help="Decimal separator of a text file: . or , (default: detected)."),
    ] = None
    encoding: Annotated[
        str | None,
        Option(
            help=(
                "Encoding of a text file. Default: UTF-8, or a Windows encoding if the file is not"
                " UTF-8; a note says so."
            )
        ),
    ] = None
    date_format: Annotated[
        str | None,
        Option(
            help=(
                "Format of dates in text, such as %d/%m/%Y. Not needed for dates such as 2024-05-31"
                " and 31.05.2024; a saved model remembers the format."
            )
        ),
    ] = None
    max_bytes: Annotated[
        int | None,
        Option(
            help=(
                "Memory limit in bytes, for the table and for a model. Default: 200 times the size"
                " of the file for a table, 25 times for a model, but at least 128 MiB."
            )
        ),
    ] = None
    missing: Annotated[
        list[str] | None,
        Option(
            help=(
                "Codes for missing values, such as -9,unknown, or age=-9 for one column. May be"
                " repeated; a saved model remembers the codes."
            )
        ),
    ] = None
    replace: Annotated[
        list[str] | None,
        Option(
            help=(
                "Values to replace in a column, such as sex=M:male,F:female or balance=none:0. A"
                " star stands for a number: 'age=* yrs:*' removes a unit, and 'km=* m:0.001*'"
                " converts meters. Write a star in a cell as \\*. May be repeated; a saved model"
                " remembers the values."
            )
        ),
    ] = None
    sheet: Annotated[
        str | None,
        Option(
            help=(
                "Sheet of an Excel workbook, by name or number. Default: the first one with the"
                " named columns."
            )
        ),
    ] = None


@dataclass(frozen=True)
class Stated:
    """Description of the decision for the first page of a report."""

    threshold: Annotated[
        float | None,
        Option(
            help=(
                "Score above which the decision is yes. Default for probabilities: 0.5 or, in"
                " audits, the base rate if that is below 20 % or above 80 %."
            )
        ),
    ] = None
    decision: Annotated[str, Option(help="The decision, such as 'whether a loan is granted'.")] = ""
    people: Annotated[
        str,
        Option(help="The people affected, such as applicants; with --groups, what the groups are."),
    ] = ""
    period: Annotated[str, Option(help="Period of the data, such as 'January to June 2025'.")] = ""
    author: Annotated[str, Option(help="Author of the report.")] = ""

    def context(self, data: Path | None, model: Path | None = None) -> Context:
        """Return the descriptions, with the current time and the files' fingerprints."""
        from frhsic.auditing import Context

        context = Context(
            decision=self.decision, people=self.people, period=self.period, author=self.author
        )
        return context.stamped(data=data, model=model)


# Options that name columns.
NAMING = ("sensitive", "features", "drop", "control", "embedding")


def split_names(texts: Iterable[str], names: Sequence[str]) -> list[str]:
    """Split options into names and patterns at commas, unless a column has the whole text as its
    name or matches it as a pattern.

    Examples
    --------
    >>> split_names(["age,job", "income, net"], ["age", "job", "income, net"])
    ['age', 'job', 'income, net']
    """
    found: list[str] = []
    for text in texts:
        whole = text in names or any(fnmatch.fnmatchcase(name, text) for name in names)
        found += [text] if whole else filter(None, map(str.strip, text.split(",")))
    return found


def with_names(
    options: Any,
    table: Path,
    reading: Reading,
    scheduler: str | None = None,
    *,
    named: Sequence[str | None],
) -> Any:
    """Return options, with names split at commas. The table's header is read only if there are
    commas; in a workbook, the header of the sheet that has all columns in `named`.
    """
    texts = {name: getattr(options, name, None) or () for name in NAMING}
    listed = [name for name in NAMING if any("," in text for text in texts[name])]
    if not listed:
        return options
    names: Sequence[str]
    if scheduler is None:
        from frhsic.tables.files import TableFile

        names = TableFile.open(table, **vars(reading), named=named).names
    else:
        from frhsic.distributed.frames import file_columns, table_files

        names = file_columns(table_files(str(table))[0])
    return replace(options, **{name: split_names(texts[name], names) for name in listed})


def with_fields(command: Callable[..., None]) -> Callable[..., None]:
    """Expose each field of a command's dataclass argument as a separate option.

    Examples
    --------
    >>> @with_fields
    ... def tell(reading: Reading, *, weight: float = 1.0) -> None:
    ...     print(reading.decimal, weight)
    >>> others = ("separator", "encoding", "date_format", "max_bytes", "missing", "replace")
    >>> tell(decimal=",", sheet=None, **dict.fromkeys(others), weight=2.0)
    , 2.0
    """
    parameters = inspect.signature(command, eval_str=True).parameters.values()
    groups: dict[str, Any] = {
        parameter.name: parameter.annotation
        for parameter in parameters
        if is_dataclass(parameter.annotation)
    }
    fields = {
        name: inspect.signature(group, eval_str=True).parameters for name, group in groups.items()
    }

    @functools.wraps(command)
    def call(**values: Any) -> None:
        for name, group in groups.items():
            values[name] = group(**{field: values.pop(field) for field in fields[name]})
        command(**values)

    options = [
        option
        for each in parameters
        for option in fields.get(each.name, {each.name: each}).values()
    ]
    keywords = [option.replace(kind=option.KEYWORD_ONLY) for option in options]
    call.__signature__ = inspect.Signature(keywords)  # type: ignore[attr-defined]  # typer reads it
    return call
