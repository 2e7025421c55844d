"""Shared by `train` and `demo`: train models, choose one, report on it, and print the result."""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from frhsic._files import write_together
from frhsic.cli import _limits, _options, _terminal
from frhsic.formatting import figure, plain
from frhsic.penalty_names import PENALTIES
from frhsic.sentences import HEADLINES

if TYPE_CHECKING:
    from rich.console import RenderableType

    from frhsic.auditing import Context, Settings
    from frhsic.report import Report
    from frhsic.selection import Rule, Selection
    from frhsic.tables import TrainingTable


@dataclass(frozen=True)
class Recipe:
    """Training options of the command line."""

    penalty: Annotated[
        str, typer.Option(help="; ".join(f"{name}: {one.description}" for name, one in PENALTIES.items()) + ".")
    ] = "frhsic"
    device: _options.Device = "auto"
    seed: _options.Seed = 0

    def estimator(self, binary: bool, **more: Any) -> Any:
        """Return the unfitted estimator."""
        from frhsic.estimators import FRHSICClassifier, FRHSICRegressor

        network = FRHSICClassifier if binary else FRHSICRegressor
        return network(self.penalty, device=self.device, random_state=self.seed, verbose=True, **more)


@dataclass(frozen=True)
class Page:
    """What is stated for the first page of the report, and the table that it is about."""

    stated: _options.Stated = field(default_factory=_options.Stated)
    table: Path | None = None

    @property
    def context(self) -> Context:
        """Who decides what about whom."""
        return self.stated.context(self.table)


@dataclass(frozen=True, eq=False)
class Trained:
    """Trained models, the index of the chosen one, and the report."""

    models: tuple[Any, ...]
    at: int
    report: Report
    notes: tuple[str, ...]
    selection: Selection | None = None

    @property
    def model(self) -> Any:
        """The model of the chosen weight."""
        return self.models[self.at]

    @property
    def unmet(self) -> str | None:
        """Why the choice does not meet the rule, or None if it does."""
        return None if self.selection is None or self.selection.satisfied else self.selection.reason


def read(columns: _options.Columns, seed: int) -> TrainingTable:
    """Read the columns of a table that are trained on, as the options name them."""
    from frhsic.tables import ColumnRoles, read_training_table

    if columns.split_by is not None and columns.groups is not None:
        raise ValueError("--split-by and --groups are two ways to split rows; pass one of them.")
    roles = ColumnRoles(
        columns.target,
        tuple(columns.sensitive),
        columns.positive,
        tuple(columns.features or ()),
        tuple(columns.drop or ()),
        columns.favourable,
        columns.groups,
        columns.split_by,
    )
    with _terminal.progress() as watch:
        table = read_training_table(
            columns.table,
            roles,
            seed=seed,
            watch=_terminal.row_counter(columns.table, watch),
            advice=_options.advice(),
            options=_options.read_options(columns.delimiter, columns.decimal),
        )
    labels = sorted(set(table.y.tolist())) if table.binary and columns.positive is None else []
    if not labels or not isinstance(labels[1], str):
        return table
    note = f"--positive was not given: scores are the probability of {labels[1]!r}, the last in the alphabet."
    return replace(table, notes=(*table.notes, note))


def train(
    data: TrainingTable,
    recipe: Recipe,
    weight: float,
    *,
    held_out: float,
    settings: Settings,
    title: str | None = None,
    page: Page | None = None,
) -> Trained:
    """Train with one weight of the penalty and without it, and report on held-out rows."""
    from frhsic.selection.fitting import Fitting

    (X, y, s, groups), test = _parts(data, [held_out], recipe.seed)
    weights = sorted({0.0, 0.0 if recipe.penalty == "none" else weight})
    with _noting() as notes, _terminal.steps() as watch:
        models = Fitting(recipe.estimator(data.binary), X, y, s, groups=groups, watch=watch).path(weights)
    reason = f"Trained on {len(y):,} rows and measured on {len(test[1]):,} others."
    return _reported(data, models, len(models) - 1, test, notes, reason, settings, title, page or Page())


def select(
    data: TrainingTable,
    estimator: Any,
    weights: Sequence[float],
    rule: Rule,
    *,
    validation: float,
    held_out: float,
    settings: Settings,
    title: str | None = None,
    page: Page | None = None,
) -> Trained:
    """Train all weights at once, choose one on validation rows, and report on test rows."""
    from frhsic.selection import LowGainWarning, UnmetTargetWarning, select_weight

    (X, y, s, groups), check, test = _parts(data, [validation, held_out], settings.seed)
    with _noting(UnmetTargetWarning, LowGainWarning) as notes, _terminal.steps() as watch:
        selection = select_weight(
            estimator,
            X,
            y,
            sensitive_features=s,
            rule=rule,
            weights=weights,
            validation=check,
            groups=groups,
            random_state=settings.seed,
            watch=watch,
        )
    notes += [f"No penalty was chosen: {selection.reason}."] if selection.weight == 0 and selection.satisfied else []
    reason = (
        f"λ = {plain(selection.weight)} was chosen on {selection.validation_rows:,} validation rows: "
        f"{selection.reason}. Points and curves are of {len(test[1]):,} test rows, which had no part in training or "
        "choice."
    )
    result = _reported(data, selection.models, selection.position, test, notes, reason, settings, title, page or Page())
    return replace(result, selection=selection)


def _parts(data: TrainingTable, shares: Sequence[float], seed: int) -> list[tuple[Any, Any, Any, Any]]:
    """Split the rows into X, y, s and groups, which are None without a column of groups."""
    parts = zip(data.split(shares, seed), data.split_rows(shares, seed))
    return [(*part, None if data.groups is None else data.groups[rows]) for part, rows in parts]


def _reported(
    data: TrainingTable,
    models: Sequence[Any],
    at: int,
    test: tuple[Any, Any, Any, Any],
    notes: list[str],
    reason: str,
    settings: Settings,
    title: str | None,
    page: Page,
) -> Trained:
    from frhsic.report import trained_report

    notes, chosen = [*data.notes, *notes], models[at]
    if getattr(chosen, "has_bottleneck_", False):
        notes.append(
            f"The representation keeps {chosen.representation_rank_} of its {chosen.representation_size_} directions; "
            "the others hardly vary, and were cut because a sensitive attribute could be read from them."
        )
    for model in models:
        if hasattr(model, "verbose"):
            model.verbose = False  # no progress bar in later calls
    with _terminal.progress() as watch:
        report = trained_report(
            models,
            at,
            test[0],
            test[1],
            sensitive_features=test[2],
            target_name=data.target_name,
            reason=reason,
            settings=settings,
            title=title,
            source=data.name,
            notes=notes,
            dropped=data.dropped,
            given=data.given or None,
            favourable=data.favourable,
            clusters=test[3],
            limit=page.stated.limit or (),
            threshold=page.stated.threshold,
            context=page.context,
            watch=watch,
        )
    return Trained(tuple(models), at, report, tuple(notes))


@contextmanager
def _noting(*ignored: type[Warning]) -> Iterator[list[str]]:
    """Collect warnings as notes for the report and the end of the output, where they are seen."""
    notes: list[str] = []
    with warnings.catch_warnings(record=True, action="always") as caught:
        yield notes
    notes += [str(one.message) for one in caught if not issubclass(one.category, ignored)]


def finish(
    result: Trained,
    files: dict[str, Path],
    *,
    as_json: bool,
    limits: dict[str, float],
    printed: Callable[[Trained, dict[str, Path]], None] | None = None,
) -> None:
    """Write model and report, print the result, and exit with 1 if it is not what was asked for."""
    from frhsic.estimators.persistence import file_bytes
    from frhsic.report.printing import page_bytes

    contents: dict[Path, bytes] = {}
    if "model" in files:
        contents[files["model"]] = file_bytes(result.model)
        result = replace(result, report=_of_model(result.report, contents[files["model"]]))
    contents |= {files[kind]: page_bytes(result.report, kind) for kind in ("report", "PDF") if kind in files}
    write_together(contents)
    if as_json:
        _terminal.echo_json(json.dumps(_plain(result, files), allow_nan=False, ensure_ascii=False, indent=1))
    else:
        (printed or show)(result, files)
    above = _limits.exceeded(result.report.audit, limits) + _limits.not_kept(result.report.audit)
    if result.unmet is not None:
        above.insert(0, f"not met: {result.unmet}.")
    _terminal.exit_above(above)


def _of_model(report: Report, model: bytes) -> Report:
    """Return the report with the fingerprint of the file of its model."""
    context = replace(report.audit.context, model_sha256=hashlib.sha256(model).hexdigest())
    return replace(report, audit=replace(report.audit, context=context))


def _plain(result: Trained, files: dict[str, Path]) -> dict[str, Any]:
    selection = result.selection
    chosen: dict[str, Any] = {"weight": float(result.model.penalty_weight), "summary": result.report.summary}
    if selection is not None:
        candidates = [
            {key: None if value != value else value for key, value in asdict(one).items()}
            for one in selection.candidates
        ]
        chosen |= {"satisfied": selection.satisfied, "reason": selection.reason, "validation": candidates}
    return {
        **chosen,
        "notes": list(result.notes),
        "files": {kind: str(path) for kind, path in files.items()},
        "report": result.report.to_dict(),
    }


def show(result: Trained, files: dict[str, Path]) -> None:
    """Print the finding, the trade-off and the main numbers on a terminal.

    Elsewhere the paths of the files, one on a line, and the notes on standard error: a column that gives the target
    away must not pass unseen in a log.
    """
    _terminal.show(lambda: _tables(result), result.notes, files)
    if not _terminal.console().is_terminal:
        for note in result.notes:
            _terminal.echo(f"note: {note}", err=True)


def _tables(result: Trained) -> Iterator[RenderableType]:
    from rich.markup import escape
    from rich.table import Table
    from rich.text import Text

    report = result.report
    tradeoff = report.tradeoff
    if tradeoff is not None and len(tradeoff.points) > 2:
        shown = Table("λ", tradeoff.performance_name, escape(f"GDP of {tradeoff.attribute}"), "HSIC", "")
        for point in tradeoff.points:
            note = "chosen" if point.chosen else point.label
            row = (plain(point.weight), figure(point.performance), figure(point.gdp), figure(point.hsic))
            shown.add_row(*row, Text(note), style="bold" if point.chosen else None)
        yield from (shown, Text(tradeoff.reason))
    for attribute in report.audit.attributes:
        audits = [a for a in (report.before, report.audit) if a is not None]
        weight = plain(result.model.penalty_weight)
        numbers = Table(escape(attribute.name), *(["λ = 0"] if report.before else []), f"λ = {weight}")
        for number in attribute.all_rows.numbers:
            if number.key in HEADLINES:
                values = [{n.key: n.value for n in a[attribute.name].all_rows.numbers}.get(number.key) for a in audits]
                numbers.add_row(Text(number.label), *map(figure, values))
        yield numbers
    yield Text(report.summary, style="bold")
