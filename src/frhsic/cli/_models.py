"""A saved model, applied to the rows of a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.pipeline import Pipeline

from frhsic.auditing import Settings
from frhsic.held_out import scores_of
from frhsic.persistence import load
from frhsic.report import Drivers, drivers
from frhsic.tables import Derived, ReadOptions, read_frame, read_sensitive
from frhsic.tables.columns import typed


@dataclass(frozen=True, eq=False)
class Served:
    """A model, the columns that it predicts from, those of them that hold numbers, and the attributes that it needs."""

    model: Any
    features: list[str]
    numeric: list[str]
    sensitive: list[str]

    @classmethod
    def load(cls, path: Path) -> Served:
        """Load a model that knows its columns."""
        if not path.is_file():
            raise ValueError(f"there is no saved model {str(path)!r}.")
        model = load(path)
        if not hasattr(model, "feature_names_in_"):
            raise ValueError(
                f"the model {path.name} was fitted on an array without column names, so its columns cannot be found in "
                "a table. Fit it on a DataFrame."
            )
        features = [str(name) for name in model.feature_names_in_]
        sensitive = model.sensitive_names_in_ if getattr(model, "uses_sensitive", False) else ()
        if hasattr(model, "device"):
            model.device = "cpu"
        return cls(model, features, _numeric(model, features), [str(name) for name in sensitive])

    @property
    def columns(self) -> list[str]:
        """All columns that a prediction needs."""
        return list(dict.fromkeys([*self.features, *self.sensitive]))

    def inputs(self, rows: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Return features and attributes of rows of a file: dates as dates, and text as a wrapped model takes it."""
        X = rows[self.features]
        X = X.assign(**{str(name): column for name, column in typed(X[self.numeric]).items()})
        if getattr(self.model, "estimator", None) is not None:  # which encodes its columns itself, by their type
            text = X.select_dtypes([object, "string"]).columns
            X = X.astype(dict.fromkeys(text, "category"))
        return X, rows[self.sensitive]

    def scores(self, rows: pd.DataFrame) -> np.ndarray:
        """Return the scores of rows of a file."""
        return scores_of(self.model, *self.inputs(rows))

    def predicted(self, rows: pd.DataFrame) -> np.ndarray:
        """Return labels, by the threshold of the model, or numbers."""
        X, s = self.inputs(rows)
        return np.asarray(self.model.predict(X, **({"sensitive_features": s} if self.sensitive else {})))


def _numeric(model: Any, features: Sequence[str]) -> list[str]:
    """Return the columns that held numbers or dates in training, as far as the model knows."""
    if hasattr(model, "feature_encoding_"):
        return [column.name for column in model.feature_encoding_.columns if not hasattr(column, "levels")]
    for part in chain(*model.attribute_models_, model.models_):
        table = part[0] if isinstance(part, Pipeline) else getattr(part, "table_", None)
        levels = getattr(table, "levels_", None)
        if levels is not None:
            return [name for name, each in zip(features, levels) if each is None]
    return []


def applied(path: Path) -> tuple[Derived, bool]:
    """Load a model that knows its columns; return the numbers it makes of rows, and whether the last is a score.

    The numbers are Z and the probability of the second class or the prediction, as far as the model has them.
    """
    served = Served.load(path)
    model = served.model
    classes = getattr(model, "classes_", None)
    if classes is not None and len(classes) != 2:
        raise ValueError(
            f"the model {path.name} tells {len(classes)} classes apart; an audit is of one score. Write the "
            "probability of the class in question into the table and pass it as --score."
        )
    head = classes is not None or hasattr(model, "predict")
    encodes = hasattr(model, "transform")

    def make(rows: pd.DataFrame) -> np.ndarray:
        parts = [model.transform(served.inputs(rows)[0])] if encodes else []
        return np.column_stack([*parts, *([served.scores(rows)] if head else [])])

    width = int(model.representation_size_) if encodes else 0
    return Derived(tuple(served.columns), width + head, make, tuple(served.numeric)), head


def drivers_of(path: Path, table: Path, attributes: Sequence[str], reading: ReadOptions) -> tuple[Drivers, ...]:
    """Return which columns carry the attributes into the score of a model, on rows that have them; none without."""
    derived, scored = applied(path)
    if not scored:
        return ()
    frame = read_frame(table, reading)
    sensitive = read_sensitive(frame[list(attributes)], allow_missing=True)
    known = ~np.isnan(sensitive.values).any(axis=1)
    rows = frame.loc[known, list(derived.columns)]
    values, names = sensitive.values[known], sensitive.names
    return drivers(lambda part, _: derived.make(part)[:, -1], rows, values, names, Settings())
