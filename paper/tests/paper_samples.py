"""Small stand-ins for the datasets of the experiments."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd
import pytest

from frhsic.datasets import Dataset
from frhsic_paper import datasets

ADULT_NUMBERS = (
    "fnlwgt",
    "education-num",
    "capital-gain",
    "capital-loss",
    "hours-per-week",
    "first level",
)


def stand_in(monkeypatch: pytest.MonkeyPatch, n: int = 2000) -> None:
    """Let studies load a toy in the place of a dataset, under both protocols."""
    for load in ("load_dataset", "load_published"):
        monkeypatch.setattr(datasets, load, partial(toy_dataset, n=n))


def toy_dataset(name: str, n: int = 2000) -> Dataset:
    """Return a table whose features know of s and y: a regression under the name of crime, else two
    classes.
    """
    draw = np.random.default_rng(len(name))
    s = np.round(20 + 60 * draw.random(n))
    x = draw.standard_normal((n, len(ADULT_NUMBERS))) + (s[:, None] - 50) / 30
    signal = x[:, 1] + 0.5 * x[:, 4] + 0.5 * draw.standard_normal(n)
    regression = name == "crime"
    y = 1 / (1 + np.exp(-signal)) if regression else (signal > np.median(signal)).astype(np.float64)
    return Dataset(
        name,
        pd.DataFrame(x, columns=list(ADULT_NUMBERS)),
        pd.Series(y, name="y"),
        pd.Series(s, name="age"),
        "regression" if regression else "binary",
    )
