"""`frhsic train`: from a table to a model, with audits before and after."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated

import typer

from frhsic._files import require_writable
from frhsic.cli import _limits, _options, _terminal, _training

DEFAULT_MODEL = Path("frhsic-model.safetensors")
DEFAULT_REPORT = Path("frhsic-report.html")

EPILOG = """
[bold]Examples[/bold]

[cyan]frhsic train people.csv --target approved --sensitive age[/cyan]

The model lands in frhsic-model.safetensors, the audits before and after in frhsic-report.html.

[cyan]frhsic train people.parquet -t income --positive ">50K" -s age -s hours --drop id -w 30[/cyan]

Two attributes; income = ">50K" against the rest; a column that identifies rows is left out.

[cyan]frhsic train people.csv -t approved -s age --penalty frem --json --fail-above gdp=0.05[/cyan]

For a pipeline: JSON on standard output, exit code 1 if GDP is above its limit on the held out rows.

[cyan]frhsic audit new.csv --model frhsic-model.safetensors -s age[/cyan]

Later, the same model on other rows. Which weight to take: see frhsic.select_weight in Python.

[bold]Exit codes[/bold]

0 done; 1 a number is above its --fail-above limit, or a --limit is not shown to be kept; 2 bad input; 130 interrupted.
"""


@_options.with_fields
def train(
    columns: _options.Columns,
    *,
    weight: Annotated[
        float,
        typer.Option("--penalty-weight", "-w", help="Weight λ of the penalty; a larger one leaves less dependence."),
    ] = 10.0,
    out: Annotated[Path, typer.Option("--out", "-o", help="Where the model goes.")] = DEFAULT_MODEL,
    report: Annotated[
        Path | None,
        typer.Option("--report", "-r", help=f"Where the report goes; {DEFAULT_REPORT} if not given, none with --json."),
    ] = None,
    recipe: _training.Recipe,
    reporting: _options.Reporting,
    stated: _options.Stated,
) -> None:
    """Train a model whose representation is penalised for depending on the attributes; audit it before and after.

    Two models are trained on the same rows, without the penalty and with it, and both are audited on rows that were
    held out. The second is written.
    """
    with _terminal.one_thread():
        from frhsic.auditing import Settings

        limits = _limits.parsed(reporting.fail_above or ())
        page = report if report is not None else (None if reporting.as_json else DEFAULT_REPORT)
        files = {"model": out} | ({} if page is None else {"report": page}) | stated.files
        require_writable(files, {"table": columns.table})
        settings = Settings(max_rows=reporting.max_rows, seed=recipe.seed)
        if not 0 <= weight < math.inf:
            raise ValueError(f"--penalty-weight is {weight:g}; pass zero or more.")
        data = _training.read(columns, recipe.seed)
        result = _training.train(
            data,
            recipe,
            weight,
            held_out=reporting.test_share,
            settings=settings,
            title=reporting.title,
            page=_training.Page(stated, columns.table),
        )
        _training.finish(result, files, as_json=reporting.as_json, limits=limits)
