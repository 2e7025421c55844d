"""Two attributes at once: age and distance to work, penalized jointly and measured one by one.

python examples/two_attributes.py
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from applicants import applicants

from frhsic import FRHSICClassifier
from frhsic.estimators import fit_path
from frhsic.parity import gdp_by_attribute


def main(n: int = 2000, epochs: int = 60) -> pd.DataFrame:
    (table, hired, protected), (new_table, _, new_protected) = sample(n, 0), sample(n, 1)
    model = FRHSICClassifier(epochs=epochs, random_state=0)
    rows = {}
    for fitted in fit_path(model, table, hired, weights=[0.0, 10.0], sensitive_features=protected):
        scores = fitted.predict_proba(new_table)[:, 1]
        gaps = gdp_by_attribute(scores, new_protected, resamples=0)
        rows[f"weight {fitted.penalty_weight:g}"] = {name: float(gap) for name, gap in gaps.items()}
    gaps = pd.DataFrame(rows).T
    print(gaps.round(3).to_string())
    return gaps


def sample(n: int, seed: int) -> tuple[pd.DataFrame, pd.Series, pd.DataFrame]:
    """Return applicants of whom those from far away have spent less time on the test."""
    table, hired, age = applicants(n, seed)
    far = np.random.default_rng(seed + 100).exponential(10, size=n)
    table = table.assign(test=table["test"] - far)
    hired = hired.where(far < 20, 0)
    return table, hired, pd.DataFrame({"age": age, "distance": far})


if __name__ == "__main__":
    main()
