"""A saved model, applied to the rows of a table."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Saved:
    """A loaded model, the columns it was fitted on, the numeric ones among them, and whether it has a head."""

    model: Any
    features: tuple[str, ...]
    numeric: tuple[str, ...]
    width: int
    scores: bool

    @classmethod
    def open(cls, path: Path) -> Saved:
        """Load a model; raise if it does not know the columns that it was fitted on."""
        if not path.is_file():
            raise ValueError(f"there is no saved model {str(path)!r}.")
        model = import_module("frhsic.estimators").load(path)  # heavy: only where a model is asked for
        features = getattr(model, "feature_names_in_", None)
        if features is None:
            raise ValueError(
                f"the model {path.name} was fitted on an array without column names, so its columns cannot be found "
                "in a table. Fit it on a DataFrame."
            )
        classes = getattr(model, "classes_", None)
        if classes is not None and len(classes) != 2:
            raise ValueError(
                f"the model {path.name} tells {len(classes)} classes apart; an audit is of one score. Write the "
                "probability of the class in question into the table and pass it as --score."
            )
        head = classes is not None or hasattr(model, "predict")
        width = int(model.representation_size_) + (1 if head else 0)
        numeric = [column.name for column in model.feature_encoding_.columns if not hasattr(column, "levels")]
        return cls(model, tuple(str(name) for name in features), tuple(numeric), width, head)

    def apply(self, rows: pd.DataFrame) -> np.ndarray:
        """Return Z and, in the last column, the score: the probability of the second class, or the prediction."""
        z = np.asarray(self.model.transform(rows), dtype=np.float64)
        if not self.scores:
            return z
        from frhsic.held_out import scores_of

        return np.column_stack([z, scores_of(self.model, rows).astype(np.float64)])
