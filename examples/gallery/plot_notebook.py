"""
Models and results in a notebook
================================

Jupyter displays a model or a result on the last line of a cell as numbers with a plot. Each output
below is what Jupyter shows for the lines above it.
"""

# %%
# Synthetic applicants. Experience and a test determine who is hired, and experience reveals age.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression

import frhsic
from frhsic.auditing import Settings
from frhsic.parity import gdp, gdp_curve

n = 2000
rng = np.random.default_rng(0)
age = pd.Series(rng.uniform(20, 65, size=n).round(), name="age")
experience = ((age - 20) * rng.uniform(0.3, 1, size=n)).round(1)
X = pd.DataFrame({"experience": experience, "test": rng.normal(60, 12, size=n).round()})
log_odds = 0.09 * (X["experience"] - 14) + 0.05 * (X["test"] - 60)
hired = pd.Series(rng.random(n) < 1 / (1 + np.exp(-log_odds)), name="hired").astype(int)
train, later = slice(0, n // 2), slice(n // 2, n)

# %%
# A fitted model shows its choice, all trade-offs from the one without a limit (right) to the
# strictest, and its components; click a component to expand it.

model = frhsic.ParityClassifier(LogisticRegression(), limit="50%", random_state=0, n_jobs=1)
model.fit(X[train], hired[train], sensitive_features=age[train])

# %%
# The choice shows the gap before and after.

model.choice_

# %%
# A gap on later rows, with its interval.

scores = model.predict_proba(X[later])[:, 1]
gdp(scores, age[later])

# %%
# The curve behind the gap: the mean score by age, with its band.

gdp_curve(scores, age[later])

# %%
# An audit. These settings are fast; the defaults use more rows.

settings = Settings(max_rows=300, probe_rows=500, resamples=99)
frhsic.audit(scores, age[later], hired[later], limit=0.05, settings=settings)

# %%
# For your own plot, use the numbers: ``to_frame`` has a row for each trade-off.

tradeoffs = model.frontier_.to_frame()
tradeoffs.head(3)

# %%

fig, ax = plt.subplots(figsize=(6.5, 4), layout="constrained")
ax.plot(tradeoffs["gap_age"], tradeoffs["auc"], marker="o")
ax.axvline(model.choice_.gaps["age"].value, color="black", linestyle=":", label="chosen")
ax.set(xlabel="gap by age", ylabel="AUC", title="All trade-offs of one fit")
ax.legend()
plt.show()
