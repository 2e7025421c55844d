"""A synthetic table for the examples: who was hired, where experience counts and experience depends on age."""

from __future__ import annotations

import numpy as np
import pandas as pd


def applicants(n: int, seed: int = 0) -> tuple[pd.DataFrame, pd.Series, pd.Series]:
    """Return features, hired or not, and age."""
    rng = np.random.default_rng(seed)
    age = rng.uniform(20, 65, size=n).round()
    experience = np.clip(age - 22 + rng.normal(0, 4, size=n), 0, None).round()
    test = rng.normal(60, 15, size=n).round()
    degree = rng.choice(["none", "bachelor", "master"], size=n, p=[0.4, 0.4, 0.2])
    log_odds = 0.07 * (experience - 20) + 0.06 * (test - 60) + 0.8 * (degree == "master")
    hired = rng.random(n) < 1 / (1 + np.exp(-log_odds))
    table = pd.DataFrame({"experience": experience, "test": test, "degree": degree})
    return table, pd.Series(hired.astype(int), name="hired"), pd.Series(age, name="age")
