"""LightGBM with the penalty in its objective: the trees are an ordinary LightGBM model that needs no age to predict.

python examples/lightgbm_objective.py
"""

from __future__ import annotations

import lightgbm
import numpy as np
import pandas as pd
from applicants import applicants
from scipy.special import expit

from frhsic.boosting import objective
from frhsic.parity import gdp, standardized_gdp


def main(n: int = 4000, trees: int = 150) -> pd.DataFrame:
    table, hired, age = applicants(2 * n)
    X = table.assign(degree=table["degree"].astype("category"))
    rows = []
    for weight in (0.0, 30.0, 300.0):
        penalized = objective(age[:n], weight, "binary", learning_rate=0.1)
        base = penalized.base_score(hired[:n])  # a custom objective loses the base score and the link ...
        data = lightgbm.Dataset(X[:n], hired[:n], init_score=np.full(n, base))
        booster = lightgbm.train({"objective": penalized, "learning_rate": 0.1, "verbosity": -1}, data, trees)
        scores = expit(base + booster.predict(X[n:]))  # ... so they are put back here
        rows.append(
            {
                "weight": weight,
                "accuracy": np.mean((scores > 0.5) == hired[n:]),
                "gdp": float(gdp(scores, age[n:])),
                "standardized gdp": float(standardized_gdp(scores, age[n:])),
            }
        )
    results = pd.DataFrame(rows)
    print(results.round(3).to_string(index=False))
    return results


if __name__ == "__main__":
    main()
