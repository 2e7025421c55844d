"""A saved model, applied to the rows of a table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from frhsic.estimators import load
from frhsic.held_out import scores_of
from frhsic.tables import Derived
from frhsic.tables.columns import typed


def applied(path: Path) -> tuple[Derived, bool]:
    """Load a model that knows its columns; return the numbers it makes of rows, and whether the last is a score.

    The numbers are Z, if the model has one, and the probability of the second class or the prediction, if it has those.
    """
    if not path.is_file():
        raise ValueError(f"there is no saved model {str(path)!r}.")
    model = load(path)
    features = getattr(model, "feature_names_in_", None)
    if features is None:
        raise ValueError(
            f"the model {path.name} was fitted on an array without column names, so its columns cannot be found in a "
            "table. Fit it on a DataFrame."
        )
    classes = getattr(model, "classes_", None)
    if classes is not None and len(classes) != 2:
        raise ValueError(
            f"the model {path.name} tells {len(classes)} classes apart; an audit is of one score. Write the "
            "probability of the class in question into the table and pass it as --score."
        )
    head = classes is not None or hasattr(model, "predict")
    encodes = hasattr(model, "transform")  # boosted trees have no Z
    numeric, required, width = _columns(model) if encodes else _tree_columns(model)

    def make(rows: pd.DataFrame) -> np.ndarray:
        rows = rows.assign(
            **{str(name): column for name, column in typed(rows[list(numeric)]).items()}
        )  # dates in text
        parts = [model.transform(rows)] if encodes else []
        return np.column_stack([*parts, *([scores_of(model, rows)] if head else [])])

    return Derived(tuple(map(str, features)), width + head, make, numeric, required), head


def _columns(model: Any) -> tuple[tuple[str, ...], tuple[str, ...], int]:
    """Return the numeric columns of a model, those that it needs in every row, and the columns of Z."""
    columns = model.feature_encoding_.columns
    numeric = tuple(column.name for column in columns if not hasattr(column, "levels"))
    required = tuple(column.name for column in columns if not column.takes_missing)
    return numeric, required, int(model.representation_size_)


def _tree_columns(model: Any) -> tuple[tuple[str, ...], tuple[str, ...], int]:
    """Return the same for boosted trees, which take missing values and have no Z."""
    named = zip(model.columns_.names, model.columns_.levels)
    return tuple(name for name, levels in named if levels is None), (), 0
