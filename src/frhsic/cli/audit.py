"""`frhsic audit`: from a table to a report."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from frhsic._files import require_writable, write_together
from frhsic.cli import _options, _terminal
from frhsic.cli._terminal import Watch
from frhsic.formatting import figure

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import RenderableType

    from frhsic.auditing import Audit, Settings
    from frhsic.report.driving import Drivers
    from frhsic.tables.files import Rows, TableFile

DEFAULT_OUT = Path("frhsic-report.html")


@dataclass(frozen=True)
class _Options:
    """What is audited, and how."""

    table: Annotated[Path, typer.Argument(help="CSV, TSV, Parquet or Arrow. Only the columns that are named are read.")]
    sensitive: Annotated[
        list[str],
        typer.Option(
            "--sensitive",
            "-s",
            help="Column of a continuous sensitive attribute; may be repeated, also for groups such as sex, within "
            "which the gap along the attribute is measured too.",
        ),
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
    target: Annotated[
        str | None, typer.Option("--target", "-t", help="Column of the target, for equal opportunity.")
    ] = None
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
        list[float] | None,
        typer.Option(help="Value of the attribute at which to contrast, such as 30; may be repeated."),
    ] = None
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help=f"Where the report goes; {DEFAULT_OUT} if not given.")
    ] = None
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the audit as JSON; a report is then written only with --out.")
    ] = False
    against: Annotated[
        Path | None,
        typer.Option(help="JSON of an earlier audit, written by --json: the report says what has changed since."),
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


@_options.with_fields
def audit(options: _Options, reading: _options.Reading, stated: _options.Stated) -> None:
    """Audit scores or a representation against continuous sensitive attributes, and write a report.

    The report is one HTML file that needs no network: mean score along the attribute with its band, dependence with
    tests and intervals, what a probe recovers, what theorems guarantee, and what all of it does not tell.

    [bold]Examples[/bold]

    [cyan]frhsic audit scores.csv --sensitive age --score probability[/cyan]

    One score, one attribute; the report lands in frhsic-report.html.

    [cyan]frhsic audit scores.parquet -s age -s hours --score p --target approved -o report.html[/cyan]

    Two attributes, by themselves and together, and equal opportunity on the rows with approved = 1.

    [cyan]frhsic audit z.arrow -s age --embedding "z_*" --target income --positive ">50K" --at 30 --at 60[/cyan]

    A representation: its dependence, a linear head for the target, contrasts near 30 and near 60.

    [cyan]frhsic audit scores.csv -s age --score p --json --require gdp=0.1[/cyan]

    For a pipeline: JSON on standard output, exit code 1 unless the limit is kept.

    [cyan]frhsic audit june.csv -s age --score p --require gdp=0.03 --against may.json --pdf june.pdf[/cyan]

    A month later: is the limit kept, what has changed since the audit that --json wrote, and the report as PDF.

    [cyan]frhsic audit panel.csv -s age --score p --groups customer --require "gdp=10% of base rate"[/cyan]

    Several rows of each customer: without --groups they pass for several customers, and chance for a gap.

    [cyan]frhsic audit "scores-*.parquet" -s age --score p --scheduler tcp://10.0.0.1:8786[/cyan]

    More rows than fit into memory, on a Dask cluster; --scheduler local uses the cores of this machine.

    [bold]Exit codes[/bold]

    0 done; 1 a --require is not kept or not shown to be kept, or since --against a gap has grown, performance has
    fallen, or the attribute, the score or the base rate has changed; 2 any error; 130 interrupted.
    """
    from frhsic.report import words

    page = {} if options.as_json and options.out is None else {"report": options.out or DEFAULT_OUT}
    files = page | stated.files
    result = _run(options, reading, stated, files)
    if options.as_json:
        _terminal.echo_json(result.to_json(indent=1))
    else:
        findings = [words.findings(result, attribute)[0] for attribute in result.attributes] + _improvements(result)
        _terminal.show(lambda: _tables(result), words.warnings(result), files, findings)
    _terminal.exit_above(words.alarms(result))


def _run(options: _Options, reading: _options.Reading, stated: _options.Stated, files: dict[str, Path]) -> Audit:
    """Check, read, audit, write; return the audit."""
    if options.score is None and not options.embedding and options.model is None:
        raise ValueError("say what to audit: --score COLUMN, --embedding PATTERN or --model FILE.")
    if options.model is not None and (options.score is not None or options.embedding):
        raise ValueError("--model brings its own scores and representation; leave --score and --embedding out.")
    for name in ("positive", "favourable"):
        if getattr(options, name) is not None and options.target is None:
            raise ValueError(f"--{name} names a value of the target; pass --target too.")
    earlier = None if options.against is None else _earlier(options.against)
    inputs = {"table": options.table, "model": options.model, "earlier audit": options.against}
    require_writable(files, {kind: path for kind, path in inputs.items() if path is not None})
    drivers: tuple[Drivers, ...] = ()
    with _terminal.progress() as watch, _terminal.one_thread():
        if options.scheduler is not None:
            result = _scheduled(options, reading, stated, watch)
        else:
            result, drivers = _audited(options, reading, stated, watch, explained=bool(files))
        if earlier is not None:
            from frhsic.auditing import since

            result = since(result, earlier, stated.require or ())
        if files:
            from frhsic.report import Report
            from frhsic.report.page import content

            watch("writing the report")
            report = Report(result, drivers=drivers)
            write_together({path: content(report, kind) for kind, path in files.items()})
    return result


def _earlier(path: Path) -> Audit:
    """Read an earlier audit, as ``--json`` wrote it."""
    from frhsic.auditing import Audit

    try:
        return Audit.from_json(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"--against {str(path)!r} is not an audit that can be read: {error}") from None


def _parts(options: _Options, names: Sequence[str], table: str) -> list[str]:
    """Return the columns of the representation, without those that have another role."""
    from frhsic.tables.columns import expand

    taken = {*options.sensitive, options.target, options.groups, options.row_weights}
    matches = chain(*(expand(pattern, names, table) for pattern in options.embedding or ()))
    parts = [name for name in dict.fromkeys(matches) if name not in taken]
    if options.embedding and not parts:
        raise ValueError("--embedding matches only columns that have another role; nothing is left to audit.")
    return parts


def _audited(
    options: _Options, reading: _options.Reading, stated: _options.Stated, watch: Watch, *, explained: bool
) -> tuple[Audit, tuple[Drivers, ...]]:
    """Read the table and audit it; return the audit and, for a model, which columns carry the attributes."""
    import pandas as pd

    from frhsic import report
    from frhsic.auditing import Settings, audit
    from frhsic.tables.columns import common_name
    from frhsic.tables.files import TableFile, read_rows
    from frhsic.tables.sensitive import read_sensitive

    watch(f"reading {options.table.name}")
    served = None
    if options.model is None:
        file = TableFile.open(options.table, reading.options)
    else:
        from frhsic.cli._models import Served

        served = Served.load(options.model)
        file = served.open(options.table, reading.options)
    parts = _parts(options, file.names, options.table.name)
    needed = [file.find(name) for name in (*options.sensitive, options.target, options.score) if name is not None]
    design = [file.find(name) for name in (options.groups, options.row_weights) if name is not None]
    columns = [*needed, *parts, *design, *(served.columns if served else ())]
    count = _terminal.row_counter(options.table, watch)
    rows = read_rows(file, columns, required=[*needed, *parts], seed=options.seed, watch=count)
    values, notes = _numbers(options, file, rows, parts)
    if served is not None:
        z, scores = served.audited(rows.frame, file)
        name, score_name = f"representation of {served.path.name}", f"score of {served.path.name}"
        notes += served.unseen_notes()
    else:
        z = values[parts].to_numpy() if parts else None
        scores = None if options.score is None else values[options.score].to_numpy()
        name, score_name = common_name(parts) if parts else "", options.score or ""
    if z is None:
        z, scores, name = scores, None, score_name
    context = replace(
        stated.context(options.table, options.model),
        title=options.title or "",
        source=options.table.name,
        name=name,
        given=rows.given,
        dropped=rows.dropped,
        remarks=tuple(notes),
    )
    result = audit(
        z,
        values[options.sensitive],
        None if options.target is None else values[options.target],
        positive=options.positive,
        favourable=options.favourable,
        settings=_settings(options, watch),
        scores=None if scores is None else pd.Series(scores, values.index, name=score_name),
        sample_weight=None if options.row_weights is None else values[options.row_weights],
        groups=None if options.groups is None else values[options.groups],
        limit=() if options.against else stated.require or (),  # since() checks them against an earlier audit
        threshold=stated.threshold,
        context=context,
    )
    drivers: tuple[Drivers, ...] = ()
    if served is not None and hasattr(served.model, "predict") and explained and not rows.sampled:
        watch("what drives the score")
        s = read_sensitive(values[[attribute.name for attribute in result.attributes]])
        frame = rows.frame[served.columns]
        drivers = report.driving.drivers(
            lambda part, _: served.scores(part, file), frame, s.values, s.names, Settings()
        )
    return result, drivers


def _numbers(options: _Options, file: TableFile, rows: Rows, parts: list[str]) -> tuple[pd.DataFrame, list[str]]:
    """Return the columns that are measured: numbers, the target with its own values, groups as text; and notes."""
    import pandas as pd

    from frhsic.tables.columns import label, numbers
    from frhsic.tables.schema import Schema

    frame, notes = rows.frame, [*file.notes, *rows.note("audited")]
    values: dict[str, Any] = {}
    numeric = [*parts, *([] if options.score is None else [options.score])]
    typed = Schema.learn(
        frame[
            list(dict.fromkeys([*options.sensitive, *numeric, *filter(None, (options.target, options.row_weights))]))
        ],
        decimal=file.decimal,
    )(frame)
    values |= {name: typed[name] for name in options.sensitive}
    values |= {name: numbers(typed[name], f"column {name!r}") for name in numeric if name not in values}
    if options.target is not None and options.target not in values:
        values[options.target] = typed[options.target]
        if options.positive is None:
            numbers(typed[options.target], f"column {options.target!r} (target)", remedy="Pass --positive VALUE.")
    if options.row_weights is not None:
        values[options.row_weights] = numbers(typed[options.row_weights], f"column {options.row_weights!r} (weights)")
    if options.groups is not None:
        values[options.groups] = frame[options.groups].map(label, na_action="ignore").replace("", None)
    return pd.DataFrame(values, frame.index), notes


def _scheduled(options: _Options, reading: _options.Reading, stated: _options.Stated, watch: Watch) -> Audit:
    """Audit all rows of the files that the table stands for; workers have to see them under the same paths."""
    from frhsic import distributed
    from frhsic.distributed.files import file_columns, read_files, table_files
    from frhsic.tables.columns import expand

    if options.model is not None:
        raise ValueError("--model is not applied on a cluster; write its scores by frhsic predict, and pass --score.")
    if reading != type(reading)():
        raise ValueError("--delimiter, --decimal and --encoding are not used with --scheduler; write Parquet.")
    if options.groups is not None or options.row_weights is not None:
        raise ValueError(
            "--groups and --row-weights are not used with --scheduler, whose audit takes rows as independent and "
            "equal. Write all rows of some of the groups into one file, and audit it without --scheduler."
        )
    assert options.scheduler is not None
    paths = table_files(str(options.table))
    names = file_columns(paths[0])
    parts = _parts(options, names, paths[0])
    named = [name for name in (*options.sensitive, options.target, options.score) if name is not None]
    columns = list(dict.fromkeys(chain(parts, *(expand(name, names, paths[0]) for name in named))))
    watch(f"connecting to {options.scheduler}")
    with distributed.cluster(options.scheduler):
        return distributed.audit(
            read_files(paths, columns),
            sensitive=options.sensitive,
            score=options.score,
            embedding=parts,
            target=options.target,
            positive=options.positive,
            favourable=options.favourable,
            settings=_settings(options, watch),
            limit=() if options.against else stated.require or (),
            threshold=stated.threshold,
            context=replace(stated.context(None), title=options.title or "", source=str(options.table)),
        )


def _settings(options: _Options, watch: Watch) -> Settings:
    from frhsic.auditing import Settings

    return Settings(options.confidence, options.max_rows, seed=options.seed, at=options.at or (), watch=watch)


def _tables(result: Audit) -> Iterator[RenderableType]:
    """Yield the finding and the main numbers of each attribute."""
    from rich.table import Table
    from rich.text import Text

    from frhsic.report.words import findings, label

    for attribute in result.attributes:
        yield Text(findings(result, attribute)[0], style="bold")
        shown = Table(
            "measure", "value", "interval", "if independent", title=Text(attribute.name), title_justify="left"
        )
        for number in attribute.all_rows.numbers:
            ends = (
                "-" if number.interval is None else f"{figure(number.interval.low)} to {figure(number.interval.high)}"
            )
            shown.add_row(Text(label(number.key)), figure(number.value), ends, figure(number.under_independence))
        yield shown
    for line in _improvements(result):
        yield Text(line)


def _improvements(result: Audit) -> list[str]:
    """Return a line for each gap that has fallen, and each measure of performance that has risen."""
    from frhsic.report.words import drift_line

    return [drift_line(change) for change in result.drift if change.improved]
