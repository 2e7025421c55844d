"""XGBoost with the penalty in its objective. The name of the built-in objective keeps the link when the model is saved.

python examples/xgboost_objective.py
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import xgboost
from applicants import applicants
from scipy.special import expit

from frhsic.boosting import objective
from frhsic.parity import gdp, standardized_gdp


def main(n: int = 4000, trees: int = 150) -> pd.DataFrame:
    table, hired, age = applicants(2 * n)
    X = pd.get_dummies(table, dtype=float)
    rows = []
    for weight in (0.0, 30.0, 300.0):
        penalized = objective(age[:n], weight, "binary", learning_rate=0.1)
        base = float(expit(penalized.base_score(hired[:n])))  # XGBoost takes the base score as a probability
        settings = {"objective": "binary:logistic", "base_score": base, "eta": 0.1, "max_depth": 5}
        booster = xgboost.train(settings, xgboost.DMatrix(X[:n], hired[:n]), trees, obj=penalized)
        scores = booster.predict(xgboost.DMatrix(X[n:]))
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
