"""GridSearchCV over the limit of a pipeline: the attribute is routed to the fit and to the scorer.

python examples/pipeline_grid_search.py
"""

from __future__ import annotations

import pandas as pd
from applicants import applicants
from sklearn import config_context
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import make_scorer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from frhsic import ParityClassifier
from frhsic.parity import gdp_difference


def main(n: int = 2000) -> pd.DataFrame:
    table, hired, age = applicants(n)
    columns = make_column_transformer((OneHotEncoder(), ["degree"]), remainder=StandardScaler())
    with config_context(enable_metadata_routing=True):
        model = ParityClassifier(make_pipeline(columns, LogisticRegression()), n_jobs=1, random_state=0)
        gap = make_scorer(gdp_difference, greater_is_better=False, response_method="predict_proba")
        search = GridSearchCV(
            model.set_fit_request(sensitive_features=True),
            {"limit": [None, "50%", 0]},
            scoring={"log_loss": "neg_log_loss", "gap": gap.set_score_request(sensitive_features=True)},
            refit="log_loss",
            cv=3,
        )
        search.fit(table, hired, sensitive_features=age)
    results = pd.DataFrame(search.cv_results_)[["param_limit", "mean_test_log_loss", "mean_test_gap"]]
    print(results.to_string(index=False))
    return results


if __name__ == "__main__":
    main()
