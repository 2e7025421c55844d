"""`frhsic audit`: from a table to a report."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from frhsic._files import require_writable, write_together
from frhsic.cli import _limits, _options, _terminal
from frhsic.cli._terminal import Watch
from frhsic.formatting import did_you_mean, figure

if TYPE_CHECKING:
    import numpy as np
    from rich.console import RenderableType

    from frhsic.auditing import Audit
    from frhsic.tables import Derived, NumericTable, ReadOptions

DEFAULT_OUT = Path("frhsic-report.html")

EPILOG = """
[bold]Examples[/bold]

[cyan]frhsic audit scores.csv --sensitive age --score probability[/cyan]

One score, one attribute; the report lands in frhsic-report.html.

[cyan]frhsic audit scores.parquet -s age -s hours --score p --target approved -o report.html[/cyan]

Two attributes, by themselves and together, and equal opportunity on the rows with approved = 1.

[cyan]frhsic audit z.arrow -s age --embedding "z_*" --target income --positive ">50K" --at 30 --at 60[/cyan]

A representation: its dependence, a linear head for the target, contrasts near 30 and near 60.

[cyan]frhsic audit scores.csv -s age --score p --json --fail-above gdp=0.1 --fail-above probe_trees=0.2[/cyan]

For a pipeline: JSON on standard output, exit code 1 if a number is above its limit.

[cyan]frhsic audit june.csv -s age --score p --require gdp=10% --against may.json --pdf june.pdf[/cyan]

A month later: is the limit kept, has the gap grown since the audit that --json wrote, and the report as PDF.

[cyan]frhsic audit panel.csv -s age --score p --groups customer --require gdp=10%[/cyan]

Several rows of each customer: without --groups they pass for several customers, and chance for a gap.

[cyan]frhsic audit "scores-*.parquet" -s age --score p --scheduler tcp://10.0.0.1:8786[/cyan]

More rows than fit into memory, on a Dask cluster; --scheduler local uses the cores of this machine.

[bold]Exit codes[/bold]

0 done; 1 a number is above its --fail-above limit, a --require is not kept or cannot be told, or a gap has grown since
--against; 2 any error; 130 interrupted.
"""


@dataclass(frozen=True)
class _Options:
    """What is audited, and how."""

    table: Annotated[Path, typer.Argument(help="CSV, TSV, Parquet or Arrow. Only the columns that are named are read.")]
    sensitive: Annotated[
        list[str],
        typer.Option("--sensitive", "-s", help="Column of a continuous sensitive attribute; may be repeated."),
    ]
    score: Annotated[
        str | None, typer.Option(help="Column of scores: probabilities, logits, predictions or decisions.")
    ] = None
    embedding: Annotated[
        list[str] | None,
        typer.Option(help='Columns of a representation, as names or a pattern such as "z_*"; may be repeated.'),
    ] = None
    model: Annotated[
        Path | None, typer.Option(help="A saved model; it is applied to the table, and its scores and Z are audited.")
    ] = None
    target: Annotated[str | None, typer.Option(help="Column of the target, for equal opportunity.")] = None
    positive: _options.Positive = None
    favourable: _options.Favourable = None
    groups: Annotated[
        str | None,
        typer.Option(
            help="Column that says which rows belong together, such as persons with several rows: the intervals and "
            "the test of the gap, and with them --require, count persons."
        ),
    ] = None
    row_weights: Annotated[
        str | None, typer.Option(help="Column of weights of rows, zero or more, for the gap and its curve.")
    ] = None
    at: Annotated[
        list[str] | None,
        typer.Option(help="Value of the attribute at which to contrast: 30, or age=30; may be repeated."),
    ] = None
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help=f"Where the report goes; {DEFAULT_OUT} if not given.")
    ] = None
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the audit as JSON; a report is then written only with --out.")
    ] = False
    fail_above: _options.FailAbove = None
    against: Annotated[
        Path | None,
        typer.Option(help="JSON of an earlier audit, written by --json: the report says whether the gap has changed."),
    ] = None
    title: _options.Title = None
    max_rows: _options.MaxRows = 2000
    confidence: Annotated[float, typer.Option(help="Confidence of the intervals.")] = 0.95
    seed: _options.Seed = 0
    scheduler: Annotated[
        str | None,
        typer.Option(
            help="Dask scheduler such as tcp://10.0.0.1:8786, or local: TABLE may then be a folder or a pattern such "
            'as "scores-*.parquet", and all its rows are audited without holding them in memory.'
        ),
    ] = None
    delimiter: _options.Delimiter = None
    decimal: _options.Decimal = None

    @property
    def design(self) -> list[str]:
        """Columns that say which rows belong together and how much they count."""
        return [name for name in (self.groups, self.row_weights) if name is not None]

    @property
    def reading(self) -> ReadOptions:
        """How a text file is read."""
        return _options.read_options(self.delimiter, self.decimal)


@_options.with_fields
def audit(options: _Options, stated: _options.Stated) -> None:
    """Audit scores or a representation against continuous sensitive attributes, and write a report.

    The report is one HTML file that needs no network: mean score along the attribute with its band, dependence with
    tests and intervals, what a probe recovers, what theorems guarantee, and what all of it does not tell.
    """
    limits = _limits.parsed(options.fail_above or ())
    result = _run(options, stated)
    above = _limits.exceeded(result, limits) + _limits.not_kept(result) + _limits.grown(result)
    if options.as_json:
        _terminal.echo_json(result.to_json(indent=1))
    else:
        _terminal.show(lambda: _tables(result), result.warnings, _files(options, stated))
    _terminal.exit_above(above)


def _files(options: _Options, stated: _options.Stated) -> dict[str, Path]:
    """Return where the report goes, as page and as PDF, as far as they are written."""
    page = {} if options.as_json and options.out is None else {"report": options.out or DEFAULT_OUT}
    return page | stated.files


@dataclass(frozen=True, eq=False)
class _Subject:
    """What is audited: the rows, z, the scores if there are any besides z, and the names of both."""

    table: NumericTable
    z: np.ndarray
    scores: np.ndarray | None
    name: str
    score_name: str | None


def _run(options: _Options, stated: _options.Stated) -> Audit:
    """Check, read, audit, write; return the audit."""
    if options.score is None and not options.embedding and options.model is None:
        raise ValueError("say what to audit: --score COLUMN, --embedding PATTERN or --model FILE.")
    if options.model is not None and (options.score is not None or options.embedding):
        raise ValueError("--model brings its own scores and representation; leave --score and --embedding out.")
    if options.positive is not None and options.target is None:
        raise ValueError("--positive says which value of the target counts as 1; pass --target too.")
    if options.favourable is not None and options.target is None:
        raise ValueError("--favourable says which value of the target is good for a person; pass --target too.")
    earlier = None if options.against is None else _limits.earlier(options.against)
    files = _files(options, stated)
    inputs = {"table": options.table, "model": options.model, "earlier audit": options.against}
    require_writable(files, {kind: path for kind, path in inputs.items() if path is not None})
    with _terminal.progress() as watch, _terminal.one_thread():
        if options.scheduler is not None:
            from frhsic.cli import _scheduled

            result, sampled = (
                _scheduled.audit(options, stated, _wanted(options.at or (), options.sensitive), watch),
                True,
            )
        else:
            result, sampled = _audited(options, stated, watch)
        if earlier is not None:
            from frhsic.auditing import drift

            result = replace(result, drift=drift(result, earlier))
        if files:
            from frhsic.report import Report
            from frhsic.report.printing import page_bytes

            page = Report(result)
            if options.model is not None and not sampled:
                from frhsic.cli._models import drivers_of

                watch("what drives the score")
                found = drivers_of(options.model, options.table, options.sensitive, options.reading)
                page = replace(page, drivers=found)
            watch("writing the report")
            write_together({path: page_bytes(page, kind) for kind, path in files.items()})
    return result


def _audited(options: _Options, stated: _options.Stated, watch: Watch) -> tuple[Audit, bool]:
    """Read the table and audit it; return the audit, and whether only a sample of the rows was read."""
    from frhsic import tables

    names = tables.column_names(options.table, options.reading)
    roles = {tables.find(name, names, options.table.name): "sensitive attribute" for name in options.sensitive}
    at = _wanted(options.at or (), list(roles))
    if options.target is not None:
        roles.setdefault(tables.find(options.target, names, options.table.name), "target")
    for name in options.design:
        tables.find(name, names, options.table.name)
    watch(f"reading {options.table.name}")
    subject = _subject(options, names, roles, watch)
    return _measure(options, stated, subject, at, watch), subject.table.sampled


def _subject(options: _Options, names: list[str], roles: dict[str, str], watch: Watch) -> _Subject:
    """Read what is audited from the table, or from the model that is applied to it."""
    import numpy as np

    from frhsic import tables

    def read(roles: dict[str, str], derived: Derived | None = None) -> NumericTable:
        return tables.read_numbers(
            options.table,
            roles,
            target=options.target,
            positive=options.positive,
            **({} if derived is None else {"derived": derived}),
            groups=options.groups,
            weights=options.row_weights,
            seed=options.seed,
            watch=_terminal.row_counter(options.table, watch),
            advice=_options.advice(),
            options=options.reading,
        )

    if options.model is not None:
        from frhsic.cli import _models

        derived, scored = _models.applied(options.model)
        for name in derived.columns:
            tables.find(name, names, options.table.name)
        table = read(roles, derived)
        if scored and derived.width == 1:
            return _Subject(table, table.derived[:, 0], None, f"score of {options.model.name}", None)
        z, scores = (table.derived[:, :-1], table.derived[:, -1]) if scored else (table.derived, None)
        return _Subject(table, z, scores, f"representation of {options.model.name}", f"score of {options.model.name}")
    matches = [tables.expand(pattern, names, options.table.name) for pattern in options.embedding or ()]
    parts = [name for name in dict.fromkeys(chain(*matches)) if name not in (*roles, *options.design)]
    if options.embedding and not parts:
        raise ValueError(
            "--embedding matches only the sensitive attribute, the target, groups or weights; nothing is left to audit."
        )
    score = None if options.score is None else tables.find(options.score, names, options.table.name)
    wanted = dict.fromkeys(parts, "embedding") | ({} if score is None else {score: "score"})
    table = read(wanted | roles)
    if not parts and score is not None:
        return _Subject(table, table.columns[score], None, score, None)
    scores = None if score is None else table.columns[score]
    z = np.column_stack([table.columns[name] for name in parts])
    return _Subject(table, z, scores, tables.common_name(parts), score)


def _measure(
    options: _Options,
    stated: _options.Stated,
    subject: _Subject,
    at: dict[str, list[float]] | list[float],
    watch: Watch,
) -> Audit:
    import pandas as pd

    from frhsic.auditing import Settings, audit

    table, target = subject.table, options.target
    result = audit(
        subject.z,
        pd.DataFrame({attribute: table.columns[attribute] for attribute in options.sensitive}),
        table.target,
        positive=options.positive,
        favourable=options.favourable,
        scores=subject.scores,
        at=at,
        settings=Settings(confidence=options.confidence, max_rows=options.max_rows, seed=options.seed),
        title=options.title,
        source=options.table.name,
        name=subject.name,
        score_name=subject.score_name,
        target_name=target,
        dropped=table.dropped,
        given=table.given,
        sample_weight=table.weights,
        clusters=table.groups,
        limit=stated.require or (),
        threshold=stated.threshold,
        context=stated.context(options.table, options.model),
        watch=watch,
    )
    notes = [*table.notes]
    if table.sampled:
        notes.append(f"The table has {table.given:,} rows; {table.rows:,} of them, drawn at random, were audited.")
    return replace(result, remarks=(*notes, *result.remarks))


def _wanted(texts: Sequence[str], attributes: list[str]) -> dict[str, list[float]] | list[float]:
    """Return the values for contrasts: a list for all attributes, or by attribute once one of them is named."""
    named: dict[str, list[float]] = {}
    for text in texts:
        name, equals, number = text.rpartition("=")
        value = _options.number(number)
        if not math.isfinite(value):
            raise ValueError(f"--at is {text!r}; pass a number, or NAME=NUMBER such as age=30.")
        if equals and name not in attributes:
            hint = did_you_mean(name, attributes)
            raise ValueError(f"--at names {name!r}, which is not among the sensitive attributes.{hint}")
        named.setdefault(name, []).append(value)
    nameless = named.pop("", [])
    if not nameless:
        return named
    if named and len(attributes) > 1:
        raise ValueError("--at is given with and without the name of an attribute; name it every time.")
    return [*named.get(attributes[0], []), *nameless]


def _tables(result: Audit) -> Iterator[RenderableType]:
    """Yield the finding and the main numbers of each attribute."""
    from rich.table import Table
    from rich.text import Text

    for attribute in result.attributes:
        yield Text(attribute.finding, style="bold")
        shown = Table(
            "measure", "value", "interval", "if independent", title=Text(attribute.name), title_justify="left"
        )
        for number in attribute.all_rows.numbers:
            ends = (
                "-" if number.interval is None else f"{figure(number.interval.low)} to {figure(number.interval.high)}"
            )
            shown.add_row(Text(number.label), figure(number.value), ends, figure(number.under_independence))
        yield shown
