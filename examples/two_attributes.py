"""Two attributes with a limit each: age, and distance to work, which is skewed.

python examples/two_attributes.py
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from applicants import applicants

from frhsic import ParityClassifier
from frhsic.parity import gdp


def main(n: int = 2000) -> pd.DataFrame:
    (table, hired, protected), (new_table, _, new_protected) = sample(n, 0), sample(n, 1)
    model = ParityClassifier(limit={"age": "50%", "distance": 0.02}, n_jobs=1, random_state=0)
    model.fit(table, hired, sensitive_features=protected)
    print(model.choice_)
    rows = {}
    for name, fitted in (("no limit", model.at(None)), ("limit", model)):
        scores = fitted.predict_proba(new_table)[:, 1]
        rows[name] = {attribute: float(gdp(scores, s, resamples=0)) for attribute, s in new_protected.items()}
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
