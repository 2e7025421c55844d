"""A saved model, applied to the rows of a table."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["Saved"]


@dataclass(frozen=True)
class Saved:
    """A model that was loaded, and the names of the columns that it was fitted on."""

    model: Any
    features: tuple[str, ...]

    @classmethod
    def open(cls, path: Path) -> Saved:
        """Load a model; raise if it does not know the columns that it was fitted on."""
        if not path.exists():
            raise ValueError(f"there is no saved model {str(path)!r}.")
        model = import_module("frhsic.persistence").load(path)  # heavy: only where a model is asked for
        features = getattr(model, "feature_names_in_", None)
        if features is None:
            raise ValueError(
                f"the model {path.name} was fitted on an array without column names, so its columns cannot be found "
                "in a table. Fit it on a DataFrame."
            )
        return cls(model, tuple(str(name) for name in features))

    def apply(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return Z and the scores: the probability of the second class, or the prediction."""
        import pandas as pd

        frame = pd.DataFrame(rows, columns=list(self.features))
        z = np.asarray(self.model.transform(frame), dtype=np.float64)
        if hasattr(self.model, "predict_proba"):
            probabilities = np.asarray(self.model.predict_proba(frame), dtype=np.float64)
            if probabilities.shape[1] != 2:
                raise ValueError(
                    f"the model tells {probabilities.shape[1]} classes apart; an audit is of one score. Write the "
                    "probability of the class in question into the table and pass it as --score."
                )
            return z, probabilities[:, 1]
        return z, np.asarray(self.model.predict(frame), dtype=np.float64).reshape(len(frame))
