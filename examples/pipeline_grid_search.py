"""A Pipeline inside GridSearchCV: the attribute is routed to the step that asks for it, and to the scorer.

python examples/pipeline_grid_search.py
"""

from __future__ import annotations

import pandas as pd
from applicants import applicants
from sklearn import config_context
from sklearn.compose import make_column_transformer
from sklearn.metrics import make_scorer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder

from frhsic import FRHSICClassifier
from frhsic.parity import gdp_difference


def main(n: int = 2000, epochs: int = 60) -> pd.DataFrame:
    table, hired, age = applicants(n)
    with config_context(enable_metadata_routing=True):
        model = FRHSICClassifier(epochs=epochs, random_state=0).set_fit_request(sensitive_features=True)
        gap = make_scorer(gdp_difference, greater_is_better=False, response_method="predict_proba")
        # FRHSICClassifier takes the table as it is; the first step is there to show that any may stand before it
        columns = make_column_transformer((OneHotEncoder(), ["degree"]), remainder="passthrough")
        search = GridSearchCV(
            Pipeline([("columns", columns), ("model", model)]),
            {"model__penalty_weight": [0.0, 1.0, 10.0]},
            scoring={"accuracy": "accuracy", "gap": gap.set_score_request(sensitive_features=True)},
            refit=most_accurate_within(0.05),
            cv=3,
        )
        search.fit(table, hired, sensitive_features=age)
    results = pd.DataFrame(search.cv_results_)[["param_model__penalty_weight", "mean_test_accuracy", "mean_test_gap"]]
    print(results.to_string(index=False))
    print("chosen:", search.best_params_)
    return results


def most_accurate_within(target: float):
    """Refit the most accurate setting whose GDP is at most the target, or the one with the least."""

    def choose(results: dict) -> int:
        table = pd.DataFrame({"accuracy": results["mean_test_accuracy"], "gap": -results["mean_test_gap"]})
        within = table[table["gap"] <= target]
        return int(within["accuracy"].idxmax() if len(within) else table["gap"].idxmin())

    return choose


if __name__ == "__main__":
    main()
