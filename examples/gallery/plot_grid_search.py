"""
A pipeline in a grid search
===========================

scikit-learn's metadata routing passes the sensitive attribute to ``fit`` and the scorers. Enable
it, and request ``sensitive_features`` for both.
"""

# %%
# Synthetic applicants. Experience helps people get hired, and it grows with age.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn import config_context
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import make_scorer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from frhsic import ParityClassifier
from frhsic.parity import gdp_difference

n = 1000
rng = np.random.default_rng(0)
age = rng.uniform(20, 65, size=n).round()
X = pd.DataFrame(
    {
        "experience": np.clip(age - 22 + rng.normal(0, 4, size=n), 0, None).round(),
        "test": rng.normal(60, 15, size=n).round(),
        "degree": rng.choice(["none", "bachelor", "master"], size=n),
    }
)
log_odds = 0.07 * (X["experience"] - 20) + 0.06 * (X["test"] - 60) + 0.8 * (X["degree"] == "master")
hired = (rng.random(n) < 1 / (1 + np.exp(-log_odds))).astype(int)

# %%
# The grid varies C of the model of y and, for the plot, the limit. There are two scorers: log loss,
# and the gap, which needs age. Linear models of y and of age make the search fast.

columns = make_column_transformer((OneHotEncoder(), ["degree"]), remainder=StandardScaler())
with config_context(enable_metadata_routing=True):
    model = ParityClassifier(
        make_pipeline(columns, LogisticRegression()),
        attribute_estimator=make_pipeline(columns, Ridge()),  # default: splines and trees
        random_state=0,
    )
    gap = make_scorer(gdp_difference, greater_is_better=False, response_method="predict_proba")
    search = GridSearchCV(
        model.set_fit_request(sensitive_features=True),
        {"estimator__logisticregression__C": [0.003, 1], "limit": [None, "50%", 0]},
        scoring={"log_loss": "neg_log_loss", "gap": gap.set_score_request(sensitive_features=True)},
        refit="log_loss",
        cv=2,
    )
    search.fit(X, hired, sensitive_features=age)
results = pd.DataFrame(search.cv_results_)
C = "param_estimator__logisticregression__C"
print(results[[C, "param_limit", "mean_test_log_loss", "mean_test_gap"]])

# %%
# You don't have to search over limits: ``search.best_estimator_.at("25%")`` returns the model at
# any limit without refitting.

fig, ax = plt.subplots(figsize=(6, 3.8), layout="constrained")
for c, part in results.groupby(C):
    ax.plot(-part["mean_test_gap"], -part["mean_test_log_loss"], marker="o", label=f"C = {c:g}")
ax.set(
    xlabel="gap by age, validation folds",
    ylabel="log loss, validation folds",
    title="Log loss against the gap, for three limits and two values of C",
)
ax.legend()
plt.show()
