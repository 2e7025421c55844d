"""
Halve the gap of a model in production
======================================

A bank predicts default with a LightGBM model; 6 % of applicants default. Years in a job
and at an address increase with age, so the score depends on age. The model stays unchanged; only
its scores are corrected.
"""

# %%
# A synthetic table in three parts: training rows of the model in production, newer rows, and rows
# for the report.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from lightgbm import LGBMClassifier
from sklearn.frozen import FrozenEstimator

from frhsic import ParityClassifier
from frhsic.auditing import Context, Settings
from frhsic.parity import gdp_curve
from frhsic.report import text, trained_report

n = 4000


def credit(n, seed=0):
    rng = np.random.default_rng(seed)
    age = np.round(20 + 50 * rng.beta(1.6, 2.6, size=n))
    job = np.clip((age - 20) * rng.uniform(0, 0.7, size=n), 0, None).round()
    address = np.clip((age - 18) * rng.uniform(0, 0.5, size=n), 0, None).round()
    income = np.exp(rng.normal(7.6, 0.45, size=n)).round(-1)
    debt = (income * rng.gamma(1.2, 0.35, size=n)).round(-1)
    log_odds = (
        -3.3 + 2.8 * debt / income - 0.16 * job - 0.14 * address - 1.5 * np.log(income / 2000)
    )
    default = (rng.random(n) < 1 / (1 + np.exp(-log_odds))).astype(int)
    columns = {"income": income, "debt": debt, "years_in_job": job, "years_at_address": address}
    return pd.DataFrame(columns), pd.Series(default, name="default"), pd.Series(age, name="age")


X, y, age = credit(3 * n)
old, new, test = slice(0, n), slice(n, 2 * n), slice(2 * n, 3 * n)
production = LGBMClassifier(n_estimators=60, num_leaves=7, learning_rate=0.05, n_jobs=1, verbose=-1)
production.fit(X[old], y[old])

# %%
# ``FrozenEstimator`` keeps the model unchanged. ``fit`` learns what its columns reveal about age,
# on rows that the model wasn't trained on.

model = ParityClassifier(FrozenEstimator(production), limit="50%", n_jobs=1, random_state=0)
model.fit(X[new], y[new], sensitive_features=age[new])
print(model.choice_)

# %%
# The report uses the third part. The favorable outcome is 0, and a loan is refused if its score is
# above 0.15.

report = trained_report(
    model,
    X[test],
    y[test],
    sensitive_features=age[test],
    favourable=0,
    threshold=0.15,
    context=Context(
        title="Default score and age",
        decision="whether a loan is granted",
        people="applicants",
        period="a synthetic year",
    ),
    settings=Settings(
        max_rows=300, probe_rows=500, resamples=99
    ),  # quick; the defaults use more rows
)
print(text(report))

# %%
# The mean score by age, before and after. ``frhsic.report.write(report, "report.html")`` writes
# the report.

fig, ax = plt.subplots(figsize=(6.5, 4), layout="constrained")
for label, fitted, color in (
    ("in production", model.at(None), "C1"),
    ("half the gap", model, "C0"),
):
    curve = gdp_curve(fitted.predict_proba(X[test])[:, 1], age[test])
    ax.fill_between(curve.at, curve.lower, curve.upper, color=color, alpha=0.25)
    ax.plot(curve.at, curve.mean, color=color, marker="o", label=label)
ax.axhline(y[test].mean(), color="black", linestyle=":", label="share of defaults")
ax.set(
    xlabel="age (years)",
    ylabel="mean score (probability of default)",
    title="Mean score by age, in production and with half the gap",
)
ax.legend()
plt.show()
