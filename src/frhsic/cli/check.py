"""`frhsic check`: every problem of a table at once, and the command to run next."""

from __future__ import annotations

import itertools
import json
import shlex
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

import typer

from frhsic.cli import _terminal
from frhsic.formatting import features_sentence

if TYPE_CHECKING:
    from frhsic.tables.problems import Problem

# Options that can be passed only once.
ONE_VALUE = ("--date-format", "--groups", "--positive", "--row-weights")


@_terminal.with_fields
def check(
    columns: _terminal.Columns,
    reading: _terminal.Reading,
    *,
    seed: _terminal.Seed = 0,
    as_json: _terminal.AsJson = False,
) -> None:
    """List all problems in a table before training, and the command to run next.

    Each problem is listed with the option that resolves it. Problems include codes for missing
    values, text among numbers, values written as months or with units, rows of totals, repeated
    headers, labels spelled in several ways, identifiers, people with several rows, features that
    repeat the attribute or give the target away (alone or together), outliers, columns of weights,
    and rows that repeat or contradict other rows. `frhsic train` runs the same check.

    [bold]Examples[/bold]

    [cyan]frhsic check people.csv --target approved --sensitive age[/cyan]

    [bold]Exit codes[/bold]

    0 the table can be used; 2 the table cannot be used, or another error occurred.
    """
    from frhsic.tables.files import TableFile
    from frhsic.tables.training import check_file

    named = columns.roles.required
    columns = _terminal.with_names(columns, columns.table, reading, named=named)
    roles = columns.roles
    named = [*roles.required, *roles.sensitive]
    file = TableFile.open(columns.table, **vars(reading), named=named)
    with _terminal.progress() as watch, file.name_in_errors():
        watch(f"reading {columns.table.name}")
        rows, found, examined = check_file(file, roles, seed=seed)
    problems = found.sorted_problems
    notes = [*file.notes, *rows.note("checked"), *rows.repeated_note]
    if settled_columns(problems) >= {*examined.features}:
        problems = [keep_named(problem, roles.features or ()) for problem in problems]
    command = next_command(columns, reading, problems, seed)
    left = [name for name in examined.features if name not in settled_columns(problems)]
    if as_json:
        document = {
            "problems": [asdict(problem) for problem in problems],
            "notes": notes,
            "features": left,
            "command": command,
        }
        typer.echo(json.dumps(document, indent=1))
    else:
        _show(problems, notes, command, features_sentence(left))
    if any(problem.certainty == "error" for problem in problems):
        raise typer.Exit(_terminal.BAD_INPUT)


def next_command(
    columns: _terminal.Columns,
    reading: _terminal.Reading,
    problems: Sequence[Problem],
    seed: int = 0,
) -> str:
    """Return the next command, with the options that resolve errors and likely problems: it trains
    on the table, or checks it again if columns could not be examined without these options.
    """
    words = ["frhsic", "check" if unread_columns(problems) else "train", str(columns.table)]
    names = {"order": "split-by", "weights": "row-weights", "separator": "delimiter"}
    for name, value in (vars(columns) | vars(reading)).items():
        option = f"--{names.get(name, name).replace('_', '-')}"
        if value is True:
            words.append(option)
        elif name != "table" and value is not None and value is not False:
            for each in value if isinstance(value, list) else [value]:
                words += [option, str(each)]
    if seed:
        words += ["--seed", str(seed)]
    command = shlex.join(words)
    return " ".join([command, *settling_options(problems)])


def keep_named(problem: Problem, features: Sequence[str]) -> Problem:
    """Return a problem without its option if the option drops the table's only feature, named in
    --features.
    """
    from frhsic.tables.problems import option_text

    column = next(iter(problem.columns), "")
    if column not in features or problem.option != option_text("drop", column):
        return problem
    text = (
        f"{problem.text} No other feature is left. If {column!r} is a score to be audited, run"
        f" `frhsic audit` with {option_text('score', column)}."
    )
    return replace(problem, text=text, option="")


def settling_options(problems: Sequence[Problem]) -> list[str]:
    """Return the options that resolve errors and likely problems, without repetition; for options
    that can be passed only once, the first value.
    """
    decided = [problem for problem in problems if problem.certainty in ("error", "likely")]
    words = shlex.split(" ".join(problem.option for problem in decided))
    options: dict[str, str] = {}
    for option, value in itertools.pairwise([*words, "--"]):
        if option.startswith("--"):
            text = option if value.startswith("--") else shlex.join([option, value])
            options.setdefault(option if option in ONE_VALUE else text, text)
    return [*options.values()]


def unread_columns(problems: Sequence[Problem]) -> list[str]:
    """Return the columns that are read as numbers or dates only with the suggested options."""
    from frhsic.tables.problems import UNREAD

    return [
        problem.columns[0]
        for problem in problems
        if problem.kind in UNREAD
        and problem.certainty in ("error", "likely")
        and problem.option
        and "--drop" not in problem.option
    ]


def settled_columns(problems: Sequence[Problem]) -> set[str]:
    """Return the columns that aren't features with the suggested options."""
    words = shlex.split(" ".join(settling_options(problems)))
    roles = ("--drop", "--groups", "--row-weights")
    return {column for option, column in itertools.pairwise(words) if option in roles}


def first_question(problems: Sequence[Problem]) -> str:
    """Return a sentence about possible problems, with the one to decide on first."""
    from frhsic.tables.columns import list_names
    from frhsic.tables.problems import LEAKS, TARGET_LABELS

    text = "The command omits the options for possible problems."
    if len(problems) == 1:
        return text
    first = problems[0]
    names = list_names(first.columns[:3])
    reason = ""
    if first.kind == TARGET_LABELS:
        reason = ", since this decision changes what is predicted"
    if first.kind in LEAKS:
        reason = (
            ", since a model that uses what is known only after the target seems better than it is"
        )
    return f"{text} Of these {len(problems)} problems, decide on {names} first{reason}."


def _show(problems: Sequence[Problem], notes: Sequence[str], command: str, features: str) -> None:
    from rich.table import Table
    from rich.text import Text

    from frhsic.tables.columns import list_names

    terminal = _terminal.console()
    styles = {"error": "bold red", "likely": "bold yellow", "possible": "cyan", "certain": "dim"}
    table = Table("", "rows", "problem", "option", box=None, padding=(0, 2, 0, 0))
    for problem in problems:
        table.add_row(
            Text(problem.certainty, style=styles[problem.certainty]),
            "" if problem.rows is None else f"{problem.rows:,}",
            Text(problem.text),
            Text(problem.option),
        )
    for note in notes:
        terminal.print(Text(f"note: {note}", style="dim"))
    if problems:
        terminal.print(table)
    else:
        terminal.print("No problems found.")
    if any(problem.certainty == "error" and not problem.option for problem in problems):
        terminal.print("Resolve the errors that have no option, then check again.")
        return
    terminal.print(Text("Run next:", style="bold"))
    terminal.print(Text(command), soft_wrap=True)
    if unread := unread_columns(problems):
        were = "was" if len(unread) == 1 else "were"
        said = f"{list_names(unread)} {were} not examined as numbers or dates"
        text = f"This command checks the table again, since {said}."
        terminal.print(Text(text), soft_wrap=True)
    terminal.print(Text(features), soft_wrap=True)
    open_questions = [problem for problem in problems if problem.certainty == "possible"]
    if open_questions:
        terminal.print(Text(first_question(open_questions)), soft_wrap=True)
