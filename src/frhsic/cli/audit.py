"""`frhsic audit`: from a table to a report."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from frhsic._files import require_writable, write_together
from frhsic.cli import _terminal
from frhsic.cli._terminal import DEFAULT_REPORT, Watch
from frhsic.cli.predict import Served

if TYPE_CHECKING:
    import pandas as pd

    from frhsic.auditing import Audit
    from frhsic.parity.limits import LimitLike
    from frhsic.tables.files import TableFile
    from frhsic.tables.view import TableCheck


@dataclass(frozen=True)
class _Options:
    """What to audit and how."""

    table: Annotated[
        Path, Argument(help="CSV, TSV, Parquet or Excel. Only named columns are used.")
    ]
    sensitive: Annotated[
        list[str],
        Option(
            "--sensitive",
            "-s",
            help="Columns of continuous sensitive attributes, separated by commas.",
        ),
    ]
    score: Annotated[
        str | None,
        Option(help="Column of scores: probabilities, logits, predictions or decisions."),
    ] = None
    embedding: Annotated[
        list[str] | None,
        Option(
            help=(
                "Columns of a representation, separated by commas: names or a pattern such as"
                ' "z_*".'
            )
        ),
    ] = None
    model: Annotated[
        Path | None,
        Option(help="Saved model; its scores and its representation of the rows are audited."),
    ] = None
    trusted: _terminal.Trusted = None
    target: Annotated[
        str | None, Option("--target", "-t", help="Column of the target, for equal opportunity.")
    ] = None
    positive: _terminal.Positive = None
    favourable: _terminal.Favourable = None
    control: _terminal.Control = None
    groups: Annotated[
        str | None,
        Option(
            help=(
                "Column of groups of rows, such as people with several rows each. Intervals and"
                " tests of the gap, and --limit, then treat groups, not rows, as independent."
            )
        ),
    ] = None
    row_weights: Annotated[
        str | None,
        Option(help="Column of nonnegative row weights, for the gap and its curve."),
    ] = None
    drop_repeated: _terminal.DropRepeated = False
    limit: Annotated[
        list[str] | None,
        Option(
            help=(
                'Limit, such as gdp=0.05 or "gdp=10% of base rate"; eo=0.05 among rows with the'
                " favorable outcome; within=0.05 among people with the same --control; age=0.05"
                " for one of several attributes; 50% of the gap in --against. The report says"
                " whether it is met, and the exit code is 1 if it is not. May be repeated."
            )
        ),
    ] = None
    out: Annotated[
        Path | None,
        Option("--out", "-o", help=f"File for the report. Default: {DEFAULT_REPORT}."),
    ] = None
    as_json: Annotated[
        bool,
        Option("--json", help="Print the audit as JSON, and write a report only with --out."),
    ] = False
    against: Annotated[
        Path | None,
        Option(
            help=(
                "JSON of an earlier audit, from --json: the report says what has changed since"
                " then."
            )
        ),
    ] = None
    title: _terminal.Title = None
    max_rows: _terminal.MaxRows = 2000
    confidence: Annotated[float, Option(min=0, max=1, help="Confidence of the intervals.")] = 0.95
    seed: _terminal.Seed = 0
    scheduler: Annotated[
        str | None,
        Option(
            help=(
                "Dask scheduler such as tcp://10.0.0.1:8786, or local: TABLE may then be a folder"
                ' or a pattern such as "scores-*.parquet", and its files may be larger than the'
                " memory of this machine."
            )
        ),
    ] = None

    @property
    def inputs(self) -> dict[str, Path]:
        """The files to read, keyed by their names in messages."""
        files = {"table": self.table, "model": self.model, "earlier audit": self.against}
        return {kind: path for kind, path in files.items() if path is not None}

    @property
    def read(self) -> list[Path]:
        """All files to read, including those in a folder or matched by a pattern."""
        if self.scheduler is None:
            return list(self.inputs.values())
        from frhsic.distributed.frames import table_files

        return [*self.inputs.values(), *map(Path, table_files(str(self.table)))]

    @property
    def limits(self) -> LimitLike:
        """The limits, in the form used in Python."""
        from frhsic.auditing.results import LIMITABLE

        return _terminal.parse_limit(self.limit or [], self.sensitive, LIMITABLE)


@_terminal.with_fields
def audit(options: _Options, reading: _terminal.Reading, statements: _terminal.Stated) -> None:
    """Audit scores or a representation for dependence on continuous sensitive attributes, and write
    a report.

    The report is one self-contained HTML file: the mean score by attribute with its band, tests of
    dependence with intervals, how well a probe recovers the attribute, and the limitations of an
    audit.

    [bold]Examples[/bold]

    [cyan]frhsic audit scores.csv --sensitive age --score probability[/cyan]

    One score, one attribute; the report is in frhsic-report.html.

    [cyan]frhsic audit scores.parquet -s age -s hours --score p --target approved -o
    report.html[/cyan]

    Two attributes, separately and together, and equal opportunity among rows with approved = 1.

    [cyan]frhsic audit scores.csv -s age --score p --control education --limit within=0.05[/cyan]

    Also measure the gap among people with the same education, group by group, and limit it.

    [cyan]frhsic audit z.parquet -s age --embedding "z_*" --target income --positive ">50K"[/cyan]

    A representation: its dependence on age, and a linear head for the target.

    [cyan]frhsic audit scores.csv -s age --score p --json --limit gdp=0.1[/cyan]

    For a pipeline: JSON on standard output, and exit code 1 if the limit is not met.

    [cyan]frhsic audit june.csv -s age --score p --limit gdp=0.03 --against may.json[/cyan]

    A month later: is the limit met, and what has changed since the earlier audit?

    [cyan]frhsic audit panel.csv -s age --score p --groups customer --limit "gdp=10% of base
    rate"[/cyan]

    Several rows per customer: without --groups, rows count as different customers, and intervals
    are too narrow.

    [cyan]frhsic audit "scores-*.parquet" -s age --score p --scheduler tcp://10.0.0.1:8786[/cyan]

    More rows than fit into memory, on a Dask cluster; --scheduler local uses the cores of this
    machine.

    [bold]Exit codes[/bold]

    0 done; 1 a --limit is not met with certainty or, since the audit in --against, a gap has grown,
    performance has fallen, or the attribute, the score, the base rate or the mean error has
    changed; 2 any error; 130 interrupted.
    """
    files = (
        {} if options.as_json and options.out is None else {"report": options.out or DEFAULT_REPORT}
    )
    named = [options.target, options.score, options.groups, options.row_weights]
    options = _terminal.with_names(options, options.table, reading, options.scheduler, named=named)
    earlier = _check_options(options, files)
    with _terminal.progress() as watch, _terminal.one_thread():
        run = _on_one_machine if options.scheduler is None else _scheduled
        with warnings.catch_warnings(
            action="ignore", category=UserWarning
        ):  # the remarks already say this
            result = run(options, reading, statements, watch)
        if earlier is not None:
            from frhsic.auditing import since

            result = since(result, earlier, options.limits)
        from frhsic.report import Report

        report = Report(result, earlier=earlier)
        if files:
            from frhsic.report.page import render

            watch("writing the report")
            write_together({files["report"]: render(report).encode()}, options.read)
    from frhsic.report.first_page import alarms, closing_lines
    from frhsic.report.words import drift_cells, drift_line
    from frhsic.report.words import warnings as remarks

    if options.as_json:
        typer.echo(result.to_json(indent=1))
        _terminal.exit_over_limits(alarms(result))
        return
    _terminal.show(remarks(result), files, report, [*map(drift_cells, result.drift)])
    shown = [*closing_lines(report).values(), *map(drift_line, result.drift)]
    _terminal.exit_over_limits(alarms(result), shown)


def _check_options(options: _Options, files: dict[str, Path]) -> Audit | None:
    """Raise an error if options cannot be combined or a file cannot be written; return the earlier
    audit, if any.
    """
    from frhsic.auditing.comparing import parse_audit_limits
    from frhsic.auditing.results import LIMITABLE
    from frhsic.parity.limits import parse_limits

    # raises errors before anything is read
    if options.against is None:
        parse_audit_limits(options.limits)
    else:
        parse_limits(options.limits, LIMITABLE)
    if options.score is None and not options.embedding and options.model is None:
        raise ValueError(
            "specify what to audit: --score COLUMN, --embedding PATTERN or --model FILE."
        )
    if options.model is not None and (options.score is not None or options.embedding):
        raise ValueError(
            "the model computes its own scores and representation; leave out --score and"
            " --embedding."
        )
    for name in ("positive", "favourable"):
        if getattr(options, name) is not None and options.target is None:
            raise ValueError(f"--{name} names a value of the target; pass --target too.")
    require_writable(files, options.inputs)
    if options.against is None:
        return None
    from frhsic.auditing import Audit

    try:
        return Audit.from_json(options.against.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(
            f"--against {str(options.against)!r} cannot be read as an audit: {error}"
        ) from None


def _embedding_columns(options: _Options, names: Sequence[str], table: str) -> list[str]:
    """Return the columns of the representation, without columns that have another role."""
    from frhsic.tables.columns import expand

    controls = options.control or ()
    taken = {*options.sensitive, *controls, options.target, options.groups, options.row_weights}
    matches = chain(*(expand(pattern, names, table) for pattern in options.embedding or ()))
    parts = [name for name in dict.fromkeys(matches) if name not in taken]
    if options.embedding and not parts:
        raise ValueError(
            "--embedding matches only columns with another role, so nothing is left to audit."
        )
    return parts


def _audit_arguments(
    options: _Options, statements: _terminal.Stated, watch: Watch
) -> dict[str, Any]:
    """Return the arguments of an audit, in memory or on a cluster."""
    from frhsic.auditing import Settings

    return {
        "positive": options.positive,
        "favourable": options.favourable,
        "settings": Settings(
            options.confidence,
            options.max_rows,
            seed=options.seed,
            watch=watch,
        ),
        # if there is an earlier audit, since() checks the limits
        "limit": None if options.against else options.limits,
        "threshold": statements.threshold,
    }


@dataclass(frozen=True)
class _Table:
    """The rows that were read: raw cells for a model, and columns as numbers or text. `parts`
    contains the columns of a representation, `positive` is the value of the target that counts as
    1, and `dropped` is the number of rows with missing values.
    """

    cells: pd.DataFrame
    columns: pd.DataFrame
    parts: list[str]
    positive: str | None
    notes: list[str]
    given: int
    dropped: int


def _on_one_machine(
    options: _Options, reading: _terminal.Reading, statements: _terminal.Stated, watch: Watch
) -> Audit:
    """Read the table, read or predict its scores, and audit them."""
    from frhsic.tables.files import TableFile

    served = None
    named = [options.target, *options.sensitive, options.score, options.groups, options.row_weights]
    file = TableFile.open(options.table, **vars(reading), named=named)
    if options.model is not None:
        served = Served.load(options.model, options.trusted, reading.max_bytes)
        file = served.reopen(file, reading)
    with file.name_in_errors():
        table = _read_table(options, file, [] if served is None else served.columns, watch)
        scores = (
            _table_scores(options, table)
            if served is None
            else served.representation_and_scores(table.cells, file, options.positive)
        )
        return _audit_table(options, table, scores, served, statements, watch)


def _read_table(
    options: _Options, file: TableFile, features: Sequence[str], watch: Watch
) -> _Table:
    """Read the named columns and a model's features; each cell is converted only once."""
    from frhsic.tables.cells import require_numbers
    from frhsic.tables.codes import number_problems
    from frhsic.tables.columns import NAMED_ID, numbers, require_moderate
    from frhsic.tables.files import read_rows
    from frhsic.tables.identifiers import hides_people, repeated_problem
    from frhsic.tables.problems import require_none
    from frhsic.tables.sensitive import find_attributes
    from frhsic.tables.view import TableCheck

    parts = _embedding_columns(options, file.names, options.table.name)
    named = (*options.sensitive, options.target, options.score)
    needed = [file.find(name) for name in named if name is not None] + parts
    controls = [file.find(name) for name in options.control or ()]
    design = [file.find(name) for name in (options.groups, options.row_weights) if name is not None]
    asked = [*needed, *controls, *design, *features]
    small = _is_small(file)
    ids = [name for name in file.names if NAMED_ID.fullmatch(name) and name not in asked]
    watch(f"reading {options.table.name}")
    rows = read_rows(
        file,
        [*asked, *(ids if small else [])],
        required=needed,
        seed=options.seed,
        whole=options.drop_repeated or small,
    )
    same = 0  # rows that repeat the identifier of an earlier row, so they aren't equal by chance
    if small and ids:
        same = int(rows.repeats().sum())
        rows = replace(rows, frame=rows.frame.drop(columns=ids))
    if options.drop_repeated:
        rows = rows.without_repeated()
        same = 0
    numeric = [*parts, *filter(None, (options.score, options.row_weights))]
    measured = rows.frame[list(dict.fromkeys([*needed, *controls, *numeric]))]
    check = TableCheck.from_cells(
        measured, decimal=file.decimal, date_format=file.date_format, missing=file.missing
    )
    attributes = find_attributes(check, options.sensitive)
    columns = check.table
    for name in dict.fromkeys(numeric):
        if name in columns:
            with check.errors("not numbers", name, _words_option(check, name)):
                require_numbers(check.cells[name], check.decimal, f"column {name!r}")
                values = numbers(columns[name], f"column {name!r}")
                require_moderate(columns[name], values, f"column {name!r}")
                columns[name] = values
                check.problems += number_problems(columns[name])
    positive = options.positive
    if options.target is not None and options.target in columns:
        positive = _outcome(check, options.target, positive)
    require_none(check.problems, options.table.name)
    repeated = int(rows.repeats().sum())
    alike = int(rows.repeats(needed[-1:]).sum())
    if not hides_people(repeated, alike, len(rows.frame)):
        repeated = same
    if repeated:
        harm = "they count several times and intervals are too narrow"
        grouped = options.groups is not None
        check.problems.append(
            repeated_problem(repeated, len(rows.frame), harm=harm, grouped=grouped)
        )
    notes = [*file.notes, *rows.note("audited"), *rows.repeated_note]
    notes += map(str, rows.left_out.problems)
    notes += map(str, check.sorted_problems)
    columns = columns.assign(**attributes)
    lacking = rows.dropped - len(rows.left_out) - rows.repeated
    return _Table(rows.frame, columns, parts, positive, notes, rows.given, lacking)


def _words_option(check: TableCheck, name: str) -> str:
    """Return the option that treats words among the numbers of a column as missing."""
    from frhsic.tables.cells import readable_numbers
    from frhsic.tables.columns import is_text
    from frhsic.tables.problems import missing_option

    if not is_text(check.cells[name]):
        return ""
    read = readable_numbers(check.cells[name], check.sign)
    words = check.cells[name][read.index[read.isna()]].str.strip().unique().tolist()
    return "" if read.isna().all() else missing_option(name, words)


def _is_small(file: TableFile) -> bool:
    """Return whether a text file is small enough to read its other columns as well, in order to
    find repeated rows.
    """
    from frhsic.tables.files import PIECE_CELLS

    rows = file.row_count() if file.decimal else None
    return rows is not None and rows * len(file.names) <= PIECE_CELLS


def _outcome(check: TableCheck, target: str, positive: str | None) -> str | None:
    """Return the value of a target that counts as 1, after merging the spellings of each label in
    the check's table; None for numbers other than 0 and 1, which are unchanged.
    """
    from frhsic.tables.codes import number_problems
    from frhsic.tables.columns import column_kind, level_text
    from frhsic.tables.outcomes import find_target
    from frhsic.tables.problems import Problem, option_text
    from frhsic.tables.targets import join_labels, merge_labels, positive_labels

    column = check.table[target]
    labels = positive_labels(positive, merge_labels(column)[0].dropna().unique())
    text = column_kind(column) == "category"
    if positive is None and not text and set(column.unique()) != {0, 1}:
        check.problems += number_problems(column)
        return None
    outcome = find_target(check, target, positive)
    if outcome is not None and len(labels) > 1:
        check.table[target], joined = join_labels(merge_labels(column)[0], labels, target)
        return str(joined)
    if outcome is None or not text:
        return positive
    _, classes = outcome
    assert classes is not None  # since it is text
    if len(classes) > 2:
        said = f"target {target!r} has {len(classes)} classes; specify which of them counts as 1."
        option = option_text("positive", level_text(classes[0]))
        check.problems.append(Problem("target", said, (target,), None, "error", option))
        return None
    check.table[target], _ = merge_labels(column)
    return str(classes[1])


def _table_scores(options: _Options, table: _Table) -> tuple[Any, Any]:
    """Return the representation and the scores in the table; None for either that the table
    lacks.
    """
    z = table.columns[table.parts].to_numpy() if table.parts else None
    return z, None if options.score is None else table.columns[options.score].to_numpy()


def _audit_table(
    options: _Options,
    table: _Table,
    scores: tuple[Any, Any],
    served: Served | None,
    statements: _terminal.Stated,
    watch: Watch,
) -> Audit:
    """Audit a representation and scores of the rows that were read."""
    import pandas as pd

    from frhsic.auditing import audit
    from frhsic.tables.columns import common_name, level_text
    from frhsic.tables.files import EXCEL_ENDINGS
    from frhsic.tables.identifiers import group_problems, unit_keys

    context = statements.context(options.table, options.model)
    notes = list(table.notes)
    if served is None:
        name = common_name(table.parts) if table.parts else ""
        score_name = options.score or ""
    else:
        name = f"representation of {served.path.name}"
        score_name = f"score of {served.path.name}"
        if served.schema.fingerprint == context.origin["data"]:
            workbook = options.table.name.lower().endswith(EXCEL_ENDINGS)
            notes.append(
                f"{served.path.name} was trained on {'a sheet of ' if workbook else ''}"
                f"{options.table.name}; on new rows, it may do worse."
            )
        notes += served.unseen_notes(len(table.cells))
        options, said = _with_base_rate(options, served)
        notes += said
    z, f = scores
    if z is None:
        z, f, name = f, None, score_name
    columns = table.columns
    groups = None
    if options.groups is not None:
        column = table.cells[options.groups]
        groups = unit_keys(column).map(level_text, na_action="ignore").replace("", None)
        notes += map(str, group_problems(column))
    return audit(
        z,
        columns[options.sensitive],
        None if options.target is None else columns[options.target],
        scores=None if f is None else pd.Series(f, columns.index, name=score_name),
        sample_weight=None if options.row_weights is None else columns[options.row_weights],
        groups=groups,
        control_features=table.columns[options.control] if options.control else None,
        context=replace(
            context,
            title=options.title or "",
            source=options.table.name,
            name=name,
            given=table.given,
            dropped=table.dropped,
            remarks=tuple(notes),
        ),
        **_audit_arguments(replace(options, positive=table.positive), statements, watch),
    )


def _with_base_rate(options: _Options, served: Served) -> tuple[_Options, list[str]]:
    """Return options in which shares of the base rate are replaced with numbers, using the base
    rate of the model's training data; and a sentence about each.
    """
    from frhsic.auditing.results import LIMITABLE
    from frhsic.formatting import format_estimate, percent
    from frhsic.parity.limits import parse_limits

    rate = getattr(getattr(served.model, "frontier_", None), "base_rate", None)
    limits = []
    notes = []
    for text in options.limit or ():
        stated = _terminal.parse_limit([text], options.sensitive, LIMITABLE)
        for limit in parse_limits(stated, LIMITABLE):
            if limit.base == "base rate" and rate is not None:
                bound = float(f"{limit.bound(0.0, rate):.3g}")
                notes.append(
                    f"The limit of {format_estimate(bound)} is {percent(limit.value)} of the base"
                    f" rate ({percent(rate)}) of the rows that {served.path.name} was trained on."
                )
                head, _, _ = text.rpartition("=")
                text = f"{head}={bound}" if head else str(bound)
        limits.append(text)
    return replace(options, limit=limits), notes


def _scheduled(
    options: _Options, reading: _terminal.Reading, statements: _terminal.Stated, watch: Watch
) -> Audit:
    """Audit all rows of a table's files; workers must be able to read these under the same
    paths.
    """
    from frhsic import distributed
    from frhsic.distributed.frames import file_columns, read_files, table_files
    from frhsic.tables.columns import expand
    from frhsic.tables.targets import positive_labels

    unused = [options.model, options.groups, options.row_weights, *vars(reading).values()]
    if options.drop_repeated or any(value is not None for value in unused):
        raise ValueError(
            "--model, --groups, --row-weights, --drop-repeated, --delimiter, --decimal,"
            " --encoding, --date-format, --missing, --replace and --sheet cannot be used with"
            " --scheduler, which reads scores from Parquet and treats rows as independent and"
            " equally weighted. To use them, audit a file without --scheduler."
        )
    assert options.scheduler is not None
    paths = table_files(str(options.table))
    names = file_columns(paths[0])
    parts = _embedding_columns(options, names, paths[0])
    named = [
        name for name in (*options.sensitive, options.target, options.score) if name is not None
    ]
    named += options.control or ()
    columns = list(dict.fromkeys(chain(parts, *(expand(name, names, paths[0]) for name in named))))
    watch(f"connecting to {options.scheduler}")
    with distributed.cluster(options.scheduler):
        table = read_files(paths, columns)
        arguments = _audit_arguments(options, statements, watch)
        if options.positive is not None and "," in options.positive:
            values = table[options.target].value_counts(split_out=1).compute().index
            arguments["positive"] = positive_labels(options.positive, values)
        result = distributed.audit(
            table,
            sensitive=options.sensitive,
            score=options.score,
            embedding=parts,
            target=options.target,
            control_features=options.control or (),
            context=replace(
                statements.context(None), title=options.title or "", source=str(options.table)
            ),
            **arguments,
        )
    remarks = _class_counts(options, result)
    return replace(result, context=replace(result.context, remarks=remarks))


def _class_counts(options: _Options, result: Audit) -> tuple[str, ...]:
    """Return a sentence with the number of rows of each class, if the target has two classes."""
    from frhsic.formatting import format_count

    favoured = options.favourable is None and result.attributes[0].positives is not None
    rate = result.subject.base_rate
    if rate is None or options.target is None or not (options.positive or favoured):
        return ()
    ones = round(rate.value * result.rows.used)
    target = result.subject.target
    named = "" if target is None or target.positive is None else f" is {target.positive!r}"
    return (
        f"Target {options.target!r}: 1{named} ({format_count(ones, 'row')}); 0"
        f" ({format_count(result.rows.used - ones, 'row')}).",
    )
