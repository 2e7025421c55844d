"""A saved model, applied to the rows of a table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from frhsic.estimators import load
from frhsic.held_out import scores_of
from frhsic.tables import Derived


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
    encoding = getattr(model, "feature_encoding_", None)
    columns = () if encoding is None else encoding.columns
    numeric = [column.name for column in columns if not hasattr(column, "levels")]
    return model, [str(name) for name in features], numeric


def applied(path: Path) -> tuple[Derived, bool]:
    """Load a model that knows its columns; return the numbers it makes of rows, and whether the last is a score.

    The numbers are Z and, if the model has a head, the probability of the second class or the prediction.
    """
    model, features, numeric = with_columns(path)
    classes = getattr(model, "classes_", None)
    if classes is not None and len(classes) != 2:
        raise ValueError(
            f"the model {path.name} tells {len(classes)} classes apart; an audit is of one score. Write the "
            "probability of the class in question into the table and pass it as --score."
        )
    head = classes is not None or hasattr(model, "predict")

    def make(rows: pd.DataFrame) -> np.ndarray:
        return np.column_stack([model.transform(rows), *([scores_of(model, rows)] if head else [])])

    return Derived(tuple(features), int(model.representation_size_) + head, make, tuple(numeric)), head
