"""Save models in one environment and load them in another.

`python tests/trust/upgrading.py save FOLDER` writes models with their scores to a folder, and
`python tests/trust/upgrading.py load FOLDER` loads those of a folder and prints, as JSON, what came
of each: "equal", or the message of `load`.
"""

from __future__ import annotations

import json
import re
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from frhsic import (
    FRHSICClassifier,
    ParityClassifier,
    ParityEncoder,
    ParityRegressor,
    distill,
    load,
    save,
)
from frhsic.training import Training

rng = np.random.default_rng(0)
AGE = rng.uniform(20, 60, 300)
X = pd.DataFrame(
    {
        "years": AGE + rng.normal(scale=9, size=300),
        "job": rng.choice(["cook", "clerk", "smith"], 300),
        "hours": np.where(rng.random(300) < 0.1, np.nan, rng.normal(size=300)),
    }
)
NUMBERS = X[["years", "hours"]]
OWN = {"default", "numbers", "equal", "distilled", "encoder", "network"}
"""Models of which no part is of another library."""
Y = X["years"] / 10 + rng.normal(size=300) > 4


def models() -> dict[str, Any]:
    """Return models that are not fitted."""
    linear = make_pipeline(SimpleImputer(), LogisticRegression())
    settings: dict[str, Any] = {"cv": 2, "random_state": 0}
    return {
        "default": ParityClassifier(**settings),
        "numbers": ParityRegressor(**settings),
        "equal": ParityClassifier(**settings),
        "distilled": ParityClassifier(**settings),
        "encoder": ParityEncoder(**settings),
        "network": FRHSICClassifier(training=Training(epochs=3), random_state=0),
        "logistic regression": ParityClassifier(linear, **settings),
        "frozen": ParityClassifier(FrozenEstimator(linear.fit(NUMBERS, Y)), **settings),
        "histograms": ParityClassifier(HistGradientBoostingClassifier(max_iter=5), **settings),
    }


def scores(model: Any, rows: pd.DataFrame) -> np.ndarray:
    """Return what a model makes of rows."""
    methods = ("predict_proba", "predict", "transform")
    method = next(name for name in methods if hasattr(model, name))
    return np.asarray(getattr(model, method)(rows))


def rows_of(name: str) -> pd.DataFrame:
    """Return the columns that a model takes."""
    return X if name in OWN else NUMBERS


def save_all(folder: Path) -> None:
    """Fit and save all models, with the scores of the rows."""
    for name, model in models().items():
        rows = rows_of(name)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            controls = {"control_features": "hours"} if name == "equal" else {}
            y = Y if name != "numbers" else X["years"]
            if name == "distilled":
                model = distill(model, None, rows, y, sensitive_features=AGE)
            else:
                model.fit(rows, y, sensitive_features=AGE, **controls)
            save(model, folder / name)
        lines = "".join(str(one.message) for one in caught if "trusted=" in str(one.message))
        (folder / f"{name}.trusted").write_text("\n".join(re.findall(r"'([\w.]+)'", lines)))
        np.save(folder / f"{name}.npy", scores(model, rows))


def load_all(folder: Path) -> dict[str, str]:
    """Return what comes of loading each model."""
    results = {}
    for name in models():
        trusted = (folder / f"{name}.trusted").read_text().split()
        expected = np.load(folder / f"{name}.npy")
        try:
            with warnings.catch_warnings(action="error"):
                model = load(folder / name, trusted=trusted)
        except ValueError as error:
            results[name] = str(error)
            continue
        with warnings.catch_warnings(action="ignore"):
            found = scores(model, rows_of(name))
        largest = np.abs(found - expected).max() / np.abs(expected).max()
        results[name] = "equal" if largest <= 1e-6 else f"differs by {largest}"
    return results


if __name__ == "__main__":
    folder = Path(sys.argv[2])
    if sys.argv[1] == "save":
        save_all(folder)
    else:
        sys.stdout.write(json.dumps(load_all(folder)) + "\n")
