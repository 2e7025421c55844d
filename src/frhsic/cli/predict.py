"""`frhsic predict`: the scores of a saved model for the rows of a table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from frhsic._files import require_writable, writing
from frhsic.cli import _options, _terminal
from frhsic.formatting import did_you_mean

if TYPE_CHECKING:
    import pandas as pd

DEFAULT_SCORES = Path("frhsic-scores.csv")

EPILOG = """
[bold]Examples[/bold]

[cyan]frhsic predict model.safetensors new.csv[/cyan]

One row of frhsic-scores.csv for each row of the table, in its order.

[cyan]frhsic predict model.safetensors new.parquet --keep id -o scores.csv[/cyan]

With the column id of the table beside the scores.

[bold]What is written[/bold]

Two classes: score, the probability of the second class, and predicted, the class. More classes: predicted and one
score_CLASS for each. Numbers: predicted. A model without a target: its representation, z_0, z_1, ...

The sensitive attribute is not needed. Columns that the model does not use are ignored.

[bold]Exit codes[/bold]

0 done; 2 bad input; 130 interrupted.
"""


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
    device: _options.Device = "cpu",
) -> None:
    """Write the score of a saved model for each row of a table; the sensitive attribute is not needed."""
    with _terminal.one_thread():
        from frhsic.cli import _models
        from frhsic.tables import column_names

        require_writable({"scores": out}, {"table": table, "model": model})
        fitted, needed, numeric = _models.with_columns(model)
        fitted.device = device
        names = column_names(table)
        for wanted, why in ((needed, f"columns that {model.name} needs"), (keep or [], "columns to keep")):
            missing = [name for name in wanted if name not in names]
            if missing:
                shown = ", ".join(map(repr, missing[:10])) + (", ..." if len(missing) > 10 else "")
                hint = did_you_mean(missing[0], names)
                raise ValueError(f"{table.name} lacks {len(missing)} of the {why}: {shown}.{hint}")
        taken = sorted({"score", "predicted"} & set(keep or ()))
        if taken:
            raise ValueError(f"--keep {taken[0]}: a column of this name is written; rename that of {table.name} first.")
        _write(fitted, needed, numeric, table, list(keep or ()), out)
    _terminal.show(list, [], {"scores": out})


def _write(model: Any, needed: list[str], numeric: list[str], table: Path, keep: list[str], out: Path) -> None:
    """Write scores piece by piece, so that memory stays bounded."""
    from frhsic.cli import _models
    from frhsic.tables.files import pieces

    rows = 0
    with _terminal.progress() as watch, writing(out) as file:
        count = _terminal.row_counter(table, watch)
        for frame in pieces(table, list(dict.fromkeys([*needed, *keep])), numeric):
            if frame.empty:
                continue
            scores = scored(model, _models.with_dates(frame[needed], numeric))
            frame[keep].join(scores).to_csv(file, index=False, header=rows == 0)
            rows += len(frame)
            count(rows)
        if rows == 0:
            raise ValueError(f"{table.name} has a header and no rows.")


def scored(model: Any, rows: pd.DataFrame) -> pd.DataFrame:
    """Return what a model makes of rows, by the names of the columns that are written."""
    import numpy as np
    import pandas as pd

    if not hasattr(model, "predict"):
        z = model.transform(rows)
        return pd.DataFrame(z, rows.index, [f"z_{i}" for i in range(z.shape[1])])
    if not hasattr(model, "predict_proba"):
        return pd.DataFrame({"predicted": model.predict(rows)}, rows.index, dtype=np.float64)
    classes = np.asarray(model.classes_)
    p = np.asarray(model.predict_proba(rows))
    names = ["score"] if len(classes) == 2 else [f"score_{label}" for label in classes]
    scores = pd.DataFrame(p[:, -len(names) :], rows.index, names)
    scores["predicted"] = pd.Series(classes[p.argmax(axis=1)], rows.index, dtype=object)
    return scores
