"""`frhsic predict`: the scores of a saved model for the rows of a table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from frhsic._files import require_writable, writing
from frhsic.cli import _options, _terminal

DEFAULT_SCORES = Path("frhsic-scores.csv")


@_options.with_fields
def predict(
    model: Annotated[Path, typer.Argument(help="Model that `frhsic train` or `frhsic.save` wrote.")],
    table: Annotated[
        Path, typer.Argument(help="CSV, TSV, Parquet or Arrow with the columns that the model was fitted on.")
    ],
    *,
    out: Annotated[Path, typer.Option("--out", "-o", help="CSV file for the scores.")] = DEFAULT_SCORES,
    keep: Annotated[
        list[str] | None, typer.Option(help="Column of the table to copy, such as an identifier; may be repeated.")
    ] = None,
    reading: _options.Reading,
) -> None:
    """Write the score and the prediction of a saved model for each row of a table.

    Columns are read as in training, and a row's score depends on this row alone. Values that no training row has are
    counted. The sensitive attribute is needed only by a model that was trained with --uses-sensitive. Columns that the
    model does not use are ignored.

    [bold]Examples[/bold]

    [cyan]frhsic predict frhsic-model.frhsic new.csv[/cyan]

    One row of frhsic-scores.csv for each row of the table, in its order.

    [cyan]frhsic predict frhsic-model.frhsic new.parquet --keep id -o scores.csv[/cyan]

    With the column id beside the scores, as it is written in the table.

    [bold]What is written[/bold]

    Two classes: score, the probability of --positive or of the second class, and predicted, the label of the training
    table by the threshold of the model: one half, or the --threshold of its training. More classes: predicted and one
    score_CLASS for each. Numbers: predicted. A model without a target: its representation, z_0, z_1, ...

    [bold]Exit codes[/bold]

    0 done; 2 bad input; 130 interrupted.
    """
    with _terminal.one_thread():
        from frhsic.cli._models import Served

        require_writable({"scores": out}, {"table": table, "model": model})
        served = Served.load(model)
        file = served.open(table, reading.options)
        kept = [file.find(name) for name in keep or ()]
        rows = 0
        with _terminal.progress() as watch, writing(out) as stream:
            count = _terminal.row_counter(table, watch)
            for frame in file.pieces(list(dict.fromkeys([*served.columns, *kept]))):
                if frame.empty:
                    continue
                outputs = served.outputs(frame, file)
                taken = [name for name in kept if name in outputs]
                if taken:
                    raise ValueError(f"--keep {taken[0]}: a column of this name is written; rename it in {table.name}.")
                frame[kept].join(outputs).to_csv(stream, index=False, header=rows == 0)
                rows += len(frame)
                count(rows)
            if rows == 0:
                raise ValueError(f"{table.name} has a header and no rows.")
    _terminal.show(list, [*file.notes, *served.unseen_notes()], {"scores": out})
