"""`frhsic demo`: several models, a choice and a report on one dataset, in a few minutes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from frhsic._files import require_writable
from frhsic.cli import _options, _terminal, _training

if TYPE_CHECKING:
    from frhsic.tables import TrainingTable

DEFAULT_REPORT = Path("frhsic-report.html")
ADULT = "Adult census data"
MADE = "the paper's synthetic task"
PEOPLE = {ADULT: ("adults in the census", "1994"), MADE: ("made-up cases", "")}
"""About whom each table is, and from when."""
ROWS, EPOCHS = 12_000, 20
WEIGHTS = (0.0, 0.1, 0.3, 1.0, 2.0, 3.0, 5.0, 10.0, 30.0)

EPILOG = """
[bold]Examples[/bold]

[cyan]frhsic demo[/cyan]

A shortened run, about a minute on two cores; the report lands in frhsic-report.html.

[cyan]frhsic demo --full --out adult.html[/cyan]

All rows, all epochs and full audits: the numbers to quote, in many minutes without a GPU.

With a table of your own: [bold]frhsic train[/bold].
"""


def demo(
    out: Annotated[Path, typer.Option("--out", "-o", help="Where the report goes.")] = DEFAULT_REPORT,
    full: Annotated[bool, typer.Option("--full", help="Nothing shortened: all rows, all epochs, full audits.")] = False,
    rows: Annotated[int | None, typer.Option(min=200, help=f"Rows to use; {ROWS:,} if not given.")] = None,
    epochs: Annotated[int | None, typer.Option(min=1, help=f"Passes over the rows; {EPOCHS} if not given.")] = None,
    device: _options.Device = "auto",
    seed: _options.Seed = 0,
    as_json: _options.AsJson = False,
) -> None:
    """Income on the Adult census data, made as independent of age as 30 % of the gain over a constant allow.

    Trains nine models that differ in the weight of the penalty, chooses one on validation rows, and writes a report on
    test rows. Where the data cannot be had, the paper's synthetic task takes their place.
    """
    with _terminal.one_thread():
        from frhsic.auditing import Settings
        from frhsic.selection import PerformanceRule

        require_writable({"report": out})
        passes = epochs or (None if full else EPOCHS)
        with _terminal.progress() as watch:
            watch("getting the Adult census data")
            data = _data(rows or (None if full else ROWS), passes, seed)
        people, period = PEOPLE[data.name]
        network = _training.Recipe(device=device, seed=seed).estimator(data.binary)
        result = _training.select(
            data,
            network if passes is None else network.set_params(epochs=passes),
            WEIGHTS,
            PerformanceRule(0.3),
            validation=0.2,
            held_out=0.2,
            title="Adult: income above 50,000 dollars, and age" if data.name == ADULT else None,
            page=_training.Page(_options.Stated(decision="nothing; an example", people=people, period=period)),
            settings=Settings(seed=seed) if full else Settings(max_rows=800, resamples=200, seed=seed),
        )
        _training.finish(result, {"report": out}, as_json=as_json, limits={}, printed=_print)


def _data(rows: int | None, epochs: int | None, seed: int) -> TrainingTable:
    """Return a sample of Adult, or of the synthetic task if Adult is unavailable, with notes on what was shortened."""
    import pandas as pd

    from frhsic.datasets import DatasetUnavailableError, load_dataset
    from frhsic.datasets.synthetic import synthetic_task
    from frhsic.tables import TrainingTable

    notes = []
    try:
        data, name = load_dataset("adult"), ADULT
    except DatasetUnavailableError:
        data, name = synthetic_task(20_000, random_state=seed).dataset(), MADE
        notes.append(
            "The Adult data could not be had here, so the paper's synthetic task stands in for them: made data, in "
            "which only the feature that knows of s can predict y. “frhsic datasets fetch adult” says what was tried."
        )
    every = data.n
    if rows is not None and rows < every:
        data = data.sample(rows, seed)
    if data.n < every or epochs is not None:
        notes.append(
            f"This is a shortened run: {data.n:,} of {every:,} rows and few epochs, with smaller audits. “frhsic demo "
            "--full” leaves nothing out; its numbers differ."
        )
    return TrainingTable(
        data.X, data.y.to_numpy().astype(int), pd.DataFrame(data.s), True, name, str(data.y.name), notes=tuple(notes)
    )


def _print(result: _training.Trained, files: dict[str, Path]) -> None:
    """Print as for `train` on a terminal; elsewhere the summary, the notes and the path of the report."""
    if _terminal.console().is_terminal:
        _training.show(result, files)
        return
    for line in (result.report.summary, *result.notes, f"report: {files['report']}"):
        _terminal.echo(line)
