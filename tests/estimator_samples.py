"""Samples for the estimators: a target that depends on a sensitive attribute and on something
else.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd

from frhsic._files import Budget
from frhsic.persistence.values import Reader, Writer


def saved_and_read(value: Any) -> Any:
    """Return a value once it was written to a file as JSON and read from it."""
    writer = Writer()
    text = json.dumps(writer.value(value))
    budget = Budget(2**20)
    return Reader(writer.arrays, writer.entries.__getitem__, budget).value(json.loads(text))


def quick(*, hidden: tuple[int, ...] = (16,), size: int = 8, **training: Any) -> dict[str, Any]:
    """Return the parameters of a small model that is trained as the paper's are, with some fields
    of its training.
    """
    from frhsic.training import MLP, Training

    return {
        "encoder": MLP(hidden, size),
        "training": Training(**{"epochs": 25, "batch_size": 64, "learning_rate": 0.02, **training}),
        "scaling": "range",
        "random_state": 0,
        "device": "cpu",
    }


def biased(n: int = 300, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """X (n, 3) with X[:, 0] close to s, a binary y that depends on X[:, 0] and X[:, 1], and s."""
    rng = np.random.default_rng(seed)
    s = rng.uniform(20, 70, size=n)
    X = np.column_stack([s + 5 * rng.normal(size=n), rng.normal(size=n), rng.normal(size=n)])
    y = (0.06 * (X[:, 0] - 45) + X[:, 1] + 0.2 * rng.normal(size=n) > 0).astype(int)
    return X, y, s


def people(n: int = 200, seed: int = 0) -> tuple[pd.DataFrame, pd.Series, pd.Series]:
    """A DataFrame with numbers, text, categories and booleans, a target and an age."""
    rng = np.random.default_rng(seed)
    age = rng.uniform(20, 70, size=n)
    frame = pd.DataFrame(
        {
            "hours": rng.integers(10, 60, size=n),
            "job": rng.choice(["clerk", "cook", "nurse"], size=n),
            "owner": rng.random(n) < 0.5,
            "size": pd.Categorical(rng.choice(["s", "m"], size=n), categories=["s", "m"]),
        }
    )
    paid = frame["hours"] + 0.5 * age + 5 * (frame["job"] == "nurse") > 58
    return frame, paid.rename("paid"), pd.Series(age, name="age")
