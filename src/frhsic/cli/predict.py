"""`frhsic predict`: the scores of a saved model for the rows of a table."""

from __future__ import annotations

from collections.abc import Mapping
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

[cyan]frhsic predict model.frhsic new.csv[/cyan]

One row of frhsic-scores.csv for each row of the table, in its order.

[cyan]frhsic predict model.frhsic new.parquet --keep id -o scores.csv[/cyan]

With the column id of the table beside the scores.

[bold]What is written[/bold]

Two classes: score, the probability of the second class, and predicted, the class. More classes: predicted and one
score_CLASS for each. Numbers: predicted. A model without a target: its representation, z_0, z_1, ...

The sensitive attribute is not needed, unless the model was fitted with uses_sensitive. Columns that the model does not
use are ignored.

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
        if hasattr(fitted, "device"):
            fitted.device = device
        sensitive = list(fitted.sensitive_names_in_) if getattr(fitted, "uses_sensitive", False) else []
        names = column_names(table)
        for wanted, why in (
            ([*needed, *sensitive], f"columns that {model.name} needs"),
            (keep or [], "columns to keep"),
        ):
            missing = [name for name in wanted if name not in names]
            if missing:
                shown = ", ".join(map(repr, missing[:10])) + (", ..." if len(missing) > 10 else "")
                hint = did_you_mean(missing[0], names)
                raise ValueError(f"{table.name} lacks {len(missing)} of the {why}: {shown}.{hint}")
        taken = sorted({"score", "predicted"} & set(keep or ()))
        if taken:
            raise ValueError(f"--keep {taken[0]}: a column of this name is written; rename that of {table.name} first.")
        _write(fitted, needed, numeric, sensitive, table, list(keep or ()), out)
    _terminal.show(list, [], {"scores": out})


def _write(
    model: Any, needed: list[str], numeric: list[str], sensitive: list[str], table: Path, keep: list[str], out: Path
) -> None:
    """Write scores piece by piece, so that memory stays bounded."""
    from frhsic.cli import _models
    from frhsic.tables.files import pieces

    rows = 0
    with _terminal.progress() as watch, writing(out) as file:
        count = _terminal.row_counter(table, watch)
        for frame in pieces(table, list(dict.fromkeys([*needed, *sensitive, *keep])), [*numeric, *sensitive]):
            if frame.empty:
                continue
            features = _models.with_categories(model, _models.with_dates(frame[needed], numeric))
            scores = scored(model, features, {"sensitive_features": frame[sensitive]} if sensitive else {})
            frame[keep].join(scores).to_csv(file, index=False, header=rows == 0)
            rows += len(frame)
            count(rows)
        if rows == 0:
            raise ValueError(f"{table.name} has a header and no rows.")


def scored(model: Any, rows: pd.DataFrame, attributes: Mapping[str, Any]) -> pd.DataFrame:
    """Return what a model makes of rows and, if it uses them, of their attributes, by the names that are written."""
    import numpy as np
    import pandas as pd

    if not hasattr(model, "predict"):
        z = model.transform(rows)
        return pd.DataFrame(z, rows.index, [f"z_{i}" for i in range(z.shape[1])])
    if not hasattr(model, "predict_proba"):
        return pd.DataFrame({"predicted": model.predict(rows, **attributes)}, rows.index, dtype=np.float64)
    classes = np.asarray(model.classes_)
    p = np.asarray(model.predict_proba(rows, **attributes))
    names = ["score"] if len(classes) == 2 else [f"score_{label}" for label in classes]
    scores = pd.DataFrame(p[:, -len(names) :], rows.index, names)
    above = p[:, -1] > getattr(model, "threshold_", 0.5) if len(classes) == 2 else p.argmax(axis=1)
    scores["predicted"] = pd.Series(classes[above.astype(np.int64)], rows.index, dtype=object)
    return scores
