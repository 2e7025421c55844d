"""A saved model, applied to the rows of a table."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from frhsic.estimators import load
from frhsic.held_out import scores_of
from frhsic.tables import Derived


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

    def make(rows: pd.DataFrame) -> np.ndarray:
        parts = [model.transform(rows)] if encodes else []
        return np.column_stack([*parts, *([scores_of(model, rows)] if head else [])])

    if encodes:
        numeric = tuple(column.name for column in model.feature_encoding_.columns if not hasattr(column, "levels"))
        width = int(model.representation_size_)
    else:
        numeric = tuple(name for name, levels in zip(model.columns_.names, model.columns_.levels) if levels is None)
        width = 0
    return Derived(tuple(map(str, features)), width + head, make, numeric), head
