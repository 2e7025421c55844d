"""Options that several commands share."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from frhsic.auditing import Context
    from frhsic.tables.files import ReadOptions

Positive = Annotated[
    str | None,
    typer.Option(help="Value of the target that counts as 1; any other is 0. Needed for text other than yes and no."),
]
Favourable = Annotated[
    str | None,
    typer.Option(
        help="Value of the target that is good for a person, such as repaid; Equal Opportunity is measured on its "
        "rows. The positive value if not given."
    ),
]
Title = Annotated[str | None, typer.Option(help="Title of the report.")]
MaxRows = Annotated[int, typer.Option(help="Rows that the costly statistics use at most.")]
Seed = Annotated[int, typer.Option(help="Seed of every random draw.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print summary, files and report as JSON.")]


def positive_note(value: str, target: str) -> str:
    """Return a sentence on which of two answers was taken as positive."""
    return f"--positive was not given: {value!r} counts as 1 in {target!r}."


@dataclass(frozen=True)
class Columns:
    """A table to train on, and which of its columns are what."""

    table: Annotated[
        Path, typer.Argument(help="CSV, TSV, Parquet or Arrow. Rows that lack the target are dropped and counted.")
    ]
    target: Annotated[
        str,
        typer.Option("--target", "-t", help="Column to predict. Two values are classes, other numbers a regression."),
    ]
    sensitive: Annotated[
        list[str],
        typer.Option(
            "--sensitive",
            "-s",
            help="Numeric column that the prediction is not to depend on, or bands such as 30-39; may be repeated. It "
            "is needed to train, and to predict only with --uses-sensitive.",
        ),
    ]
    positive: Positive = None
    features: Annotated[
        list[str] | None,
        typer.Option(help='Columns to predict from, as names or a pattern such as "x_*"; all others if not given.'),
    ] = None
    drop: Annotated[
        list[str] | None,
        typer.Option(
            help="Columns to leave out; may be repeated. Identifiers are left out anyway, unless --features names them."
        ),
    ] = None
    favourable: Favourable = None
    order: Annotated[
        str | None,
        typer.Option(
            "--split-by",
            help="Column of dates or numbers: train on the earlier rows, report on the later; with --groups, on later "
            "rows of groups that were not trained on.",
        ),
    ] = None
    groups: Annotated[
        str | None, typer.Option(help="Column of groups, such as persons: no group is split between the parts.")
    ] = None


@dataclass(frozen=True)
class Reading:
    """How a text file is written."""

    delimiter: Annotated[
        str | None, typer.Option(help="Character between the fields of a text file; found out where it is clear.")
    ] = None
    decimal: Annotated[
        str | None, typer.Option(help="Decimal sign of a text file, . or ,; found out where it is clear.")
    ] = None
    encoding: Annotated[
        str | None, typer.Option(help="Encoding of a text file; UTF-8, or Windows-1252 where it is not, if not given.")
    ] = None

    @property
    def options(self) -> ReadOptions:
        """The options; a tab may be written as a backslash and t."""
        from frhsic.tables.files import ReadOptions

        return ReadOptions({"\\t": "\t"}.get(self.delimiter or "", self.delimiter), self.decimal, self.encoding)


@dataclass(frozen=True)
class Reporting:
    """How a trained model is reported."""

    test_share: Annotated[float, typer.Option(help="Share of the rows kept for the report alone.")] = 0.2
    title: Title = None
    max_rows: MaxRows = 2000
    as_json: AsJson = False


@dataclass(frozen=True)
class Stated:
    """What people state for the first page of a report."""

    threshold: Annotated[
        float | None, typer.Option(help="Score from which on the decision is yes; 0.5 for scores between 0 and 1.")
    ] = None
    decision: Annotated[str, typer.Option(help="What is decided, such as 'whether a loan is granted'.")] = ""
    people: Annotated[str, typer.Option(help="About whom, such as applicants.")] = ""
    period: Annotated[str, typer.Option(help="Period of the data, such as 'January to June 2025'.")] = ""
    author: Annotated[str, typer.Option(help="Who made the report.")] = ""
    pdf: Annotated[
        Path | None, typer.Option(help="Where the report goes as PDF; needs Chromium, Chrome or Edge on the PATH.")
    ] = None

    @property
    def files(self) -> dict[str, Path]:
        """Where the PDF goes, if one is wanted; raise if nothing can print it."""
        if self.pdf is None:
            return {}
        from frhsic.report.page import find_browser

        find_browser()
        return {"PDF": self.pdf}

    def context(self, data: Path | None, model: Path | None = None) -> Context:
        """Return who decides what about whom, with the present time and the fingerprints of the files."""
        from frhsic.auditing import Context

        stated = Context(decision=self.decision, people=self.people, period=self.period, author=self.author)
        return stated.stamped(data=data, model=model)


def with_fields(command: Callable[..., None]) -> Callable[..., None]:
    """Let typer see each field of a dataclass that a command takes as an option of its own.

    Examples
    --------
    >>> @with_fields
    ... def count(reporting: Reporting, *, weight: float = 1.0) -> None:
    ...     print(reporting.max_rows, weight)
    >>> count(test_share=0.2, title=None, max_rows=7, as_json=False, weight=2.0)
    7 2.0
    """
    parameters = inspect.signature(command, eval_str=True).parameters.values()
    groups: dict[str, Any] = {one.name: one.annotation for one in parameters if is_dataclass(one.annotation)}
    fields = {name: inspect.signature(group, eval_str=True).parameters for name, group in groups.items()}

    @functools.wraps(command)
    def call(**values: Any) -> None:
        for name, group in groups.items():
            values[name] = group(**{field: values.pop(field) for field in fields[name]})
        command(**values)

    options = [one for each in parameters for one in fields.get(each.name, {each.name: each}).values()]
    call.__signature__ = inspect.Signature([one.replace(kind=one.KEYWORD_ONLY) for one in options])  # type: ignore[attr-defined]  # typer reads it
    return call
