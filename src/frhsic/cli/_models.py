"""A saved model, applied to the rows of a table."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from frhsic.auditing import Settings
from frhsic.estimators import load
from frhsic.held_out import scores_of
from frhsic.report import Drivers, drivers
from frhsic.tables import Derived, ReadOptions, read_frame, read_sensitive
from frhsic.tables.columns import typed


def with_columns(path: Path) -> tuple[Any, list[str], list[str]]:
    """Load a model that knows its columns; return it, their names, and the names of those that hold numbers."""
    if not path.is_file():
        raise ValueError(f"there is no saved model {str(path)!r}.")
    model = load(path)
    features = getattr(model, "feature_names_in_", None)
    if features is None:
        raise ValueError(
            f"the model {path.name} was fitted on an array without column names, so its columns cannot be found in a "
            "table. Fit it on a DataFrame."
        )
    numeric = [column.name for column in model.feature_encoding_.columns if not hasattr(column, "levels")]
    return model, [str(name) for name in features], numeric


def with_dates(rows: pd.DataFrame, numeric: Sequence[str]) -> pd.DataFrame:
    """Return rows of a file in which numeric columns that hold dates as text are dates, as they were in training."""
    return rows.assign(**{str(name): column for name, column in typed(rows[list(numeric)]).items()})


def applied(path: Path) -> tuple[Derived, bool]:
    """Load a model that knows its columns; return the numbers it makes of rows, and whether the last is a score.

    The numbers are Z and the probability of the second class or the prediction, as far as the model has them.
    """
    model, features, numeric = with_columns(path)
    classes = getattr(model, "classes_", None)
    if classes is not None and len(classes) != 2:
        raise ValueError(
            f"the model {path.name} tells {len(classes)} classes apart; an audit is of one score. Write the "
            "probability of the class in question into the table and pass it as --score."
        )
    head = classes is not None or hasattr(model, "predict")
    encodes = hasattr(model, "transform")

    def make(rows: pd.DataFrame) -> np.ndarray:
        rows = with_dates(rows, numeric)
        parts = [model.transform(rows)] if encodes else []
        return np.column_stack([*parts, *([scores_of(model, rows)] if head else [])])

    width = int(model.representation_size_) if encodes else 0
    return Derived(tuple(features), width + head, make, tuple(numeric)), head


def drivers_of(path: Path, table: Path, attributes: Sequence[str], reading: ReadOptions) -> tuple[Drivers, ...]:
    """Return which columns carry the attributes into the score of a model, on rows that have them; none without."""
    derived, scored = applied(path)
    if not scored:
        return ()
    frame = read_frame(table, reading)
    sensitive = read_sensitive(frame[list(attributes)], allow_missing=True)
    known = ~np.isnan(sensitive.values).any(axis=1)
    rows = frame.loc[known, list(derived.columns)]
    return drivers(lambda part: derived.make(part)[:, -1], rows, sensitive.values[known], sensitive.names, Settings())
