"""`frhsic train`: from a table to a model with a parity limit, its trade-offs and audits."""

from __future__ import annotations

import contextlib
import hashlib
import json
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from typer import Option

from frhsic._files import require_writable, write_together
from frhsic.cli import _terminal
from frhsic.cli._terminal import DEFAULT_REPORT
from frhsic.cli.predict import shield_text
from frhsic.formatting import features_sentence

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

    from frhsic.auditing import Settings
    from frhsic.estimators import Distilled
    from frhsic.parity.limits import LimitLike
    from frhsic.report import Report
    from frhsic.tables.training import TrainingTable

DEFAULT_MODEL = Path("frhsic-model.frhsic")
# File suffix of a distilled model.
SERVED = {"onnx": ".onnx", "lightgbm": ".served.frhsic"}
# Most rows used for a report if the table is larger than memory.
HELD_OUT_ROWS = 20_000


@dataclass(frozen=True)
class TrainOptions:
    """What to fit."""

    limit: Annotated[
        list[str] | None,
        Option(
            help=(
                "Largest gap: a number, a target (a share of the unconstrained gap, such as 50%, or"
                " 0 for the smallest gap) or none. Write age=50% to limit one of several"
                " attributes, and gdp=0.05 to name the measure. May be repeated. Default: 50%."
            )
        ),
    ] = None
    aim: Annotated[
        Literal["score", "rank", "decision"],
        Option(
            help=(
                "What should not vary with the attribute: score (the mean), rank (the order) or"
                " decision."
            )
        ),
    ] = "score"
    condition: Annotated[
        Literal["positive", "both"] | None,
        Option(
            help=(
                "positive: compare rows of the positive class (equal opportunity); both: rows of"
                " each class (equalized odds)."
            )
        ),
    ] = None
    uses_sensitive: Annotated[
        bool,
        Option("--uses-sensitive", help="Also predict from the sensitive attributes."),
    ] = False
    confidence: Annotated[
        str,
        Option(
            help=(
                "Confidence of the gap's interval, whose upper end must be within a numeric"
                " --limit; with none, only the estimate must be within the limit."
            )
        ),
    ] = "0.95"
    control: _terminal.Control = None
    seed: _terminal.Seed = 0

    def estimator(self, data: TrainingTable) -> Any:
        """Return the unfitted estimator."""
        from frhsic.estimators import ParityClassifier, ParityRegressor
        from frhsic.estimators.frontier import limited_measure

        kind: Any = ParityRegressor if data.classes is None else ParityClassifier
        names = [str(name) for name in data.s]
        measure = limited_measure(self.aim, self.condition)
        limit = _terminal.parse_limit(self.limit or ["50%"], names, [measure])
        chosen = {name: getattr(self, name) for name in ("aim", "condition", "uses_sensitive")}
        return kind(
            limit=limit,
            confidence=_terminal.parse_confidence(self.confidence),
            **chosen,
            n_jobs=1,
            random_state=self.seed,
        )


@_terminal.with_fields
def train(
    columns: _terminal.Columns,
    *,
    reading: _terminal.Reading,
    recipe: TrainOptions,
    out: Annotated[Path, Option("--out", "-o", help="File for the model.")] = DEFAULT_MODEL,
    report: Annotated[
        Path | None,
        Option(
            "--report",
            "-r",
            help=f"File for the report. Default: {DEFAULT_REPORT}, or none with --json.",
        ),
    ] = None,
    test_share: Annotated[
        float, Option(min=0, max=1, help="Share of rows held out for the report.")
    ] = 0.2,
    held_out: Annotated[
        Path | None,
        Option(
            help="CSV file for the held-out rows, with their targets, attributes and scores;"
            " `frhsic audit` computes the same numbers from this file."
        ),
    ] = None,
    serve: Annotated[
        Literal["onnx", "lightgbm"] | None,
        Option(
            help=(
                "Also distill the model into plain trees for fast serving: lightgbm for `frhsic"
                " predict` and frhsic.load, onnx for other programs. This takes another"
                " fit; the command prints how much quality is lost."
            )
        ),
    ] = None,
    fast: Annotated[
        bool,
        Option(
            "--fast",
            help="Skip what the first screen of the report doesn't show: tests of dependence,"
            " probes, equal opportunity.",
        ),
    ] = False,
    title: _terminal.Title = None,
    max_rows: _terminal.MaxRows = 2000,
    as_json: _terminal.AsJson = False,
    require: Annotated[
        list[str] | None,
        Option(
            help=(
                "Limit that must be met on the held-out rows, such as gdp=0.05; see --limit of"
                " `frhsic audit`. A share refers to the unconstrained gap on these rows. May be"
                " repeated."
            )
        ),
    ] = None,
    scheduler: Annotated[
        str | None,
        Option(
            help=(
                "Dask scheduler such as tcp://10.0.0.1:8786, or local: TABLE may then be a folder"
                ' or a pattern such as "part-*.parquet", and its files may be larger than the'
                " memory of this machine."
            )
        ),
    ] = None,
    statements: _terminal.Stated,
) -> None:
    """Fit the best predictor whose gap for each attribute is within a limit, and report every
    trade-off.

    The model is fitted once for all limits and audited on held-out rows, with and without the
    limit. Run [cyan]frhsic check[/cyan] first: it lists the problems in a table and the options
    that resolve them.

    [bold]Examples[/bold]

    [cyan]frhsic train people.csv --target approved --sensitive age --limit 50%[/cyan]

    Halves the gap by age. Writes the model to frhsic-model.frhsic, and the report with all
    trade-offs to frhsic-report.html.

    [cyan]frhsic train people.parquet -t income --positive ">50K" -s age -s hours --limit age=25%
    --limit hours=0.02 [/cyan]

    A separate limit for each of two attributes; the model predicts whether income is ">50K".

    [cyan]frhsic train people.csv -t approved -s age --control education[/cyan]

    Halves the gap by age among people with the same education.

    [cyan]frhsic train people.csv -t approved -s age --limit 0.02 --confidence 0.99 --aim decision
    --json[/cyan]

    The upper end of the 99 % interval of the gap in decisions is within the limit. For a pipeline:
    JSON on standard output.

    [cyan]frhsic audit new.csv --model frhsic-model.frhsic -s age --limit gdp=0.05[/cyan]

    Later, audit the same model on other rows.

    [cyan]frhsic train "part-*.parquet" -t approved -s age --scheduler tcp://10.0.0.1:8786[/cyan]

    More rows than fit into the memory of one machine, on a Dask cluster whose workers together can
    hold them; --scheduler local uses the cores and the memory of this machine. The report uses at
    most 20,000 rows.

    [bold]Exit codes[/bold]

    0 done, and the --limit is met or probably met on the held-out rows; 1 the fit cannot meet the
    limit, the limit is exceeded or probably exceeded on the held-out rows, or a --require is not
    met with certainty on these rows (a limit given as a share, or as 0, is a target, which fails
    only if it is clearly missed); 2 any error; 130 interrupted.
    """
    with _terminal.one_thread(), contextlib.ExitStack() as stack:
        from frhsic.auditing.results import LIMITABLE
        from frhsic.parity.limits import parse_limits

        named = columns.roles.required
        columns = _terminal.with_names(columns, columns.table, reading, scheduler, named=named)
        recipe = _terminal.with_names(recipe, columns.table, reading, scheduler, named=named)
        if scheduler is not None and serve is not None:
            raise ValueError(
                "--serve cannot be combined with --scheduler, since --serve works on one machine."
            )
        required = _terminal.parse_limit(require or [], columns.sensitive, LIMITABLE)
        parse_limits(required, LIMITABLE)  # raises errors before anything is read
        if statements.threshold is not None and recipe.aim == "decision":
            raise ValueError("--aim decision chooses its own threshold; leave out --threshold.")
        page = {} if as_json and report is None else {"report": report or DEFAULT_REPORT}
        files = {"model": out} | page
        if serve is not None:
            files["served model"] = out.with_suffix(SERVED[serve])
        if held_out is not None:
            files["held-out rows"] = held_out
        require_writable(files, {"table": columns.table})
        table = None
        if scheduler is None:
            data = read(columns, reading, recipe.seed)
        else:
            cluster = scheduled(columns, reading, scheduler, test_share, recipe.seed)
            table = stack.enter_context(cluster)
            data = table.held_out
        if (
            statements.threshold is not None
            and data.classes is not None
            and not 0 < statements.threshold < 1
        ):
            raise ValueError(
                f"--threshold is {statements.threshold:g}, but scores are probabilities; pass a"
                " number between 0 and 1."
            )
        from frhsic.auditing import Settings

        if serve == "onnx":
            require_onnx(data)
        settings = Settings(max_rows=max_rows, seed=recipe.seed, fast=fast)
        inputs = [columns.table]
        if table is None:
            model, result = fit_and_report(
                data, recipe, test_share, settings, title, statements, columns.table, required
            )
            _, test = data.split(test_share, recipe.seed)
        else:
            inputs = table.files
            test = table.test
            fit = table.fit(recipe.estimator(data), recipe.control)
            model, result = report_fit(fit, data, settings, title, statements, None, required)
        finish(
            model,
            result,
            files,
            inputs,
            as_json=as_json,
            held_out=None if held_out is None else scored_rows(model, data, test),
            served=None if serve is None else distilled_model(model, data, test_share, recipe.seed),
        )


def require_onnx(data: TrainingTable) -> None:
    """Raise an error before training if ONNX cannot be written."""
    from frhsic.estimators.exporting import import_onnx, require_readable_columns

    import_onnx()
    require_readable_columns(data.schema)


def distilled_model(model: Any, data: TrainingTable, share: float, seed: int) -> Distilled:
    """Return plain trees that imitate a trained model and can read the same files."""
    import pandas as pd

    from frhsic.distilling import distill

    train, _ = data.split(share, seed)
    y = data.y[train]
    with _terminal.progress() as watch:
        watch("distilling the model")
        served = distill(
            model,
            None,
            data.X.iloc[train],
            y if data.classes is None else pd.Index(data.classes).get_indexer(y),
            sensitive_features=data.s.iloc[train],
            sample_weight=None if data.weights is None else data.weights[train],
            groups=None if data.groups is None else data.groups[train],
        )
    return served.as_trained(model)


def scored_rows(model: Any, data: TrainingTable, test: np.ndarray) -> pd.DataFrame:
    """Return the rows of a report as they are in the file, with the model's scores with and without
    the limit.
    """
    import pandas as pd

    from frhsic.scoring import model_scores

    columns: dict[str, Any] = {data.target_name: data.y[test]}
    if data.places is not None:
        columns = {"row": data.places[test] + 1} | columns
    columns |= {str(name): data.s[name].to_numpy()[test] for name in data.s}
    for name, values in (("groups", data.groups), ("weights", data.weights)):
        if values is not None:
            columns[name] = values[test]
    for control in () if model.strata_ is None else model.strata_.columns:
        columns[control.name] = data.X[control.name].to_numpy()[test]
    s = data.s.iloc[test].to_numpy()
    for name, fitted in (("score_without_limit", model.at(None)), ("score", model)):
        scores = model_scores(fitted, data.X.iloc[test], s)
        if scores.ndim == 1:
            columns[name] = scores
        else:
            columns |= {f"{name}_{label}": scores[:, i] for i, label in enumerate(model.classes_)}
    return pd.DataFrame(columns)


def read(columns: _terminal.Columns, reading: _terminal.Reading, seed: int) -> TrainingTable:
    """Read the columns of a table that the options name."""
    from frhsic.tables.files import TableFile
    from frhsic.tables.training import read_training_table

    roles = columns.roles
    named = [*roles.required, *roles.sensitive]
    file = TableFile.open(columns.table, **vars(reading), named=named)
    with _terminal.progress() as watch, file.name_in_errors():
        watch(f"reading {columns.table.name}")
        return read_training_table(file, roles, seed=seed)


@dataclass(frozen=True)
class ScheduledTable:
    """Training rows of many files, which stay on the cluster, and held-out rows in local memory for
    the report; `test` contains the rows of `held_out` with known attributes.
    """

    files: list[Path]
    frame: Any
    rows: int
    held_out: TrainingTable
    test: np.ndarray
    columns: _terminal.Columns

    def fit(self, estimator: Any, control: Sequence[str] | None) -> FinishedFit:
        """Fit on the rows that are not held out; with controls, gaps are among people with the same
        controls.
        """
        from frhsic import distributed

        data = self.held_out
        columns = self.columns
        roles = [*columns.sensitive, columns.groups, columns.weights]
        named = [name for name in roles if name is not None]
        frame = self.frame[[*data.X.columns, *named, columns.target]]
        with (
            warnings.catch_warnings(record=True, action="always") as caught,
            _terminal.progress() as watch,
        ):
            watch(f"fitting on {self.rows - len(data.y) - data.dropped:,} rows")
            model = distributed.fit(
                estimator,
                frame,
                target=columns.target,
                sensitive_features=columns.sensitive,
                control_features=control,
                groups=columns.groups,
                sample_weight=columns.weights,
            )
        counts = (
            f"Of {self.rows:,} rows, {len(self.test):,} were drawn to evaluate the model. It was"
            f" trained on the rows that are not held out and have a value for {data.target_name}."
        )
        dropped = data.dropped - data.removed - data.repeated + len(data.y) - len(self.test)
        return FinishedFit(model, self.test, caught, counts, self.rows, dropped)


@contextlib.contextmanager
def scheduled(
    columns: _terminal.Columns,
    reading: _terminal.Reading,
    scheduler: str,
    share: float,
    seed: int,
) -> Iterator[ScheduledTable]:
    """Connect to a cluster, split the rows of many files there, and read the held-out ones, at most
    20,000, as a table.
    """
    import numpy as np
    import pandas as pd

    from frhsic import distributed
    from frhsic.distributed.frames import file_columns, read_files, table_files
    from frhsic.distributed.rows import with_codes
    from frhsic.tables.files import TableFile
    from frhsic.tables.training import read_training_table

    if columns.order is not None or any(value is not None for value in vars(reading).values()):
        raise ValueError(
            "--split-by, --delimiter, --decimal, --encoding, --date-format, --missing, --replace"
            " and --sheet cannot be used with --scheduler, which needs typed columns, as in"
            " Parquet."
        )
    paths = table_files(str(columns.table))
    roles = columns.roles
    names = file_columns(paths[0])
    features = roles.find_features(names, paths[0])
    with distributed.cluster(scheduler):
        with _terminal.progress() as watch:
            watch(f"reading {columns.table.name}")
            every = read_files(paths, roles.columns(features)).dropna(subset=roles.required)
            rows = len(every)
            part = min(share, HELD_OUT_ROWS / max(rows, 1))
            held_out, rest = distributed.frames.split_frame(every, part, columns.groups, seed)
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder, "held-out.parquet")
                held = held_out.compute().reset_index(drop=True)
                held.to_parquet(path)
                chosen = replace(roles, features=roles.features and features, drop=None)
                data = read_training_table(TableFile.open(path), chosen, seed=seed)
        data = replace(data, name=columns.table.name, schema=None)
        frame = rest
        if data.classes is not None:
            assert data.places is not None
            known = held[columns.target].iloc[data.places]
            codes = pd.Index(data.classes).get_indexer(data.y)
            frame = with_codes(rest, columns.target, known, codes, columns.positive)
        test = np.flatnonzero(data.s.notna().all(axis=1))
        files = [Path(path) for path in paths]
        yield ScheduledTable(files, frame, rows, data, test, columns)


def fit_and_report(
    data: TrainingTable,
    recipe: TrainOptions,
    held_out: float,
    settings: Settings,
    title: str | None,
    statements: _terminal.Stated,
    table: Path | None = None,
    required: LimitLike = None,
) -> tuple[Any, Report]:
    """Fit on some of the rows and report on the others; return the model with the schema of its
    file, and the report.
    """
    import pandas as pd

    estimator = recipe.estimator(data)
    lost = [name for name in recipe.control or () if name not in data.X]
    if lost:
        raise ValueError(
            f"--control {lost[0]!r} is not a feature of the model; controls must be features. Name"
            " it in --features, but not in --sensitive or --drop."
        )
    train, test = data.split(held_out, recipe.seed)
    groups = None if data.groups is None else data.groups[train]
    weights = None if data.weights is None else data.weights[train]
    with (
        warnings.catch_warnings(record=True, action="always") as caught,
        _terminal.progress() as watch,
    ):
        watch(f"fitting on {len(train):,} rows")
        X, y, s = data.X.iloc[train], data.y[train], data.s.iloc[train]
        if data.classes is not None:
            y = pd.Index(data.classes).get_indexer(y)
        model = estimator.fit(
            X,
            y,
            sensitive_features=s,
            control_features=X[recipe.control] if recipe.control else None,
            groups=groups,
            sample_weight=weights,
        )
    rest = data.s.drop(index=data.s.index[[*train, *test]])
    lacking, given = int(rest.isna().any(axis=1).sum()), data.given or len(data.y) + data.dropped
    counts = _row_counts(data, given, len(train), len(test), lacking)
    unknown = data.dropped - data.removed - data.repeated + lacking
    fit = FinishedFit(model, test, caught, counts, given, unknown)
    return report_fit(fit, data, settings, title, statements, table, required)


@dataclass(frozen=True)
class FinishedFit:
    """A model, the held-out rows of its table, the warnings of the fit, a sentence about the rows,
    and the numbers of rows in the table and with missing values.
    """

    model: Any
    test: np.ndarray
    caught: Sequence[warnings.WarningMessage]
    counts: str
    given: int
    dropped: int


def report_fit(
    fit: FinishedFit,
    data: TrainingTable,
    settings: Settings,
    title: str | None,
    statements: _terminal.Stated,
    table: Path | None,
    required: LimitLike,
) -> tuple[Any, Report]:
    """Report on the held-out rows; return the model with the schema of its file, and the report."""
    import pandas as pd

    from frhsic.estimators import JoinedStrataWarning, UnlabelledRowsWarning, UnmetLimitWarning
    from frhsic.report import trained_report
    from frhsic.tables.problems import SuspiciousColumnWarning

    model = fit.model
    test = fit.test
    if data.classes is not None:
        model.classes_ = data.classes
    # the closing lines say whether a limit is met, and the check of the table lists the other
    # problems
    elsewhere = (
        JoinedStrataWarning,
        UnmetLimitWarning,
        UnlabelledRowsWarning,
        SuspiciousColumnWarning,
    )
    warned = [str(one.message) for one in fit.caught if not issubclass(one.category, elsewhere)]
    notes = [*dict.fromkeys([*data.notes, *warned]), fit.counts]
    with _terminal.progress() as watch:
        report = trained_report(
            model,
            data.X.iloc[test],
            pd.Series(data.y[test], data.X.index[test], name=data.target_name),
            sensitive_features=data.s.iloc[test],
            settings=replace(settings, watch=watch),
            favourable=data.favourable,
            groups=None if data.groups is None else data.groups[test],
            sample_weight=None if data.weights is None else data.weights[test],
            limit=required,
            threshold=statements.threshold,
            context=replace(
                statements.context(table),
                title=title or "",
                source=data.name,
                remarks=tuple(notes),
                features=tuple(map(str, data.X)),
                late=data.late,
                dropped=fit.dropped,
                given=fit.given,
            ),
        )
    if data.schema is not None:  # needed to read later files
        fingerprint = report.audit.context.origin.get("data", "")
        levels = {column.name: column.levels for column in model.schema_.columns}
        columns = (replace(one, levels=levels[one.name]) for one in data.schema.columns)
        model.schema_ = replace(data.schema, columns=tuple(columns), fingerprint=fingerprint)
        if model.uses_sensitive:
            model.sensitive_schema_ = data.sensitive_schema
    if data.classes is not None and statements.threshold is not None:
        units = replace(model.solution_.units, threshold=statements.threshold)
        model.solution_ = replace(model.solution_, units=units)
    return model, report


def _row_counts(data: TrainingTable, given: int, train: int, test: int, lacking: int) -> str:
    """Return a sentence on how many rows are used for training and for the report, and how many are
    left out and why; the numbers add up to the rows of the table.
    """
    reasons = {
        **{f"without {name}": rows for name, rows in data.lacking.items()},
        "totals or headers": data.removed,
        "repeated": data.repeated,
        "not drawn": given - data.dropped - len(data.y),
        f"held out, but without {' or '.join(map(str, data.s))}": lacking,
        "in a group on the other side of the split in time": (len(data.y) - train - test - lacking),
    }
    left_out = ", ".join(f"{rows:,} ({reason})" for reason, rows in reasons.items() if rows)
    text = f"Of {given:,} rows, {train:,} were used to train the model and {test:,} to evaluate it"
    return f"{text}. Left out: {left_out}." if left_out else f"{text}."


def finish(
    model: Any,
    report: Report,
    files: dict[str, Path],
    inputs: Sequence[Path] = (),
    *,
    as_json: bool,
    held_out: pd.DataFrame | None = None,
    served: Distilled | None = None,
) -> None:
    """Write the model and the report, or neither; print the results; exit with code 1 if a limit is
    not met in the fit, or is exceeded on the report's rows.
    """
    from frhsic.persistence import file_bytes
    from frhsic.report.first_page import alarms, closing_lines, shortfalls
    from frhsic.report.page import render
    from frhsic.report.words import say

    contents: dict[Path, bytes] = {}
    if "model" in files:
        contents[files["model"]] = file_bytes(model)
        fingerprint = hashlib.sha256(contents[files["model"]]).hexdigest()
        context = report.audit.context
        context = replace(context, origin=context.origin | {"model": fingerprint})
        report = replace(report, audit=replace(report.audit, context=context))
    if "report" in files:
        contents[files["report"]] = render(report).encode()
    if served is not None:
        target = files["served model"]
        onnx = target.suffix == SERVED["onnx"]
        contents[target] = served.onnx_bytes() if onnx else file_bytes(served)
    if held_out is not None:
        contents[files["held-out rows"]] = shield_text(held_out).to_csv(index=False).encode()
    write_together(contents, inputs)
    met = report.tradeoff is not None and report.tradeoff.met
    lines = closing_lines(report)
    if as_json:
        document = {
            "met": met,
            "summary": lines,
            "notes": list(report.audit.context.remarks),
            "files": {kind: str(path) for kind, path in files.items()},
            "report": report.to_dict(),
        }
        if served is not None:
            document["served"] = [asdict(cost) for cost in served.costs]
        typer.echo(json.dumps(document, allow_nan=False, indent=1))
    else:
        context = report.audit.context
        _terminal.show([*context.remarks, features_sentence(context.features)], files, report)
        if served is not None:
            typer.echo(str(served), err=True)
    missed = dict.fromkeys([*shortfalls(report), *alarms(report.audit)])
    unmet = [] if met else [say("not_met")]
    _terminal.exit_over_limits([*unmet, *missed], () if as_json else lines.values())
