"""
Equal opportunity
=================

Demographic parity requires that the mean score doesn't depend on age among all people. Equal
Opportunity requires it only among people with the favorable outcome: those who would have done the
job well.
"""

# %%
# Older applicants do the job well more often, so the two criteria give different answers.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.metrics import log_loss

from frhsic import ParityClassifier
from frhsic.parity import equal_opportunity_gdp, gdp_curve, gdp_difference


def applicants(n, seed):
    rng = np.random.default_rng(seed)
    age = rng.uniform(20, 65, size=n).round()
    experience = np.clip(age - 22 + rng.normal(0, 4, size=n), 0, None)
    test = rng.normal(size=n)
    good = rng.random(n) < 1 / (1 + np.exp(-(0.07 * (experience - 20) + test)))
    return pd.DataFrame({"experience": experience, "test": test}), good.astype(int), age


n = 3000
X, y, age = applicants(n, seed=0)
X_new, y_new, age_new = applicants(n, seed=1)

# %%
# ``condition="positive"`` limits the gap among people with y = 1; ``condition="both"`` would limit
# it in each class.

models = {}
for name, condition in (("parity", None), ("equal opportunity", "positive")):
    models[name] = ParityClassifier(limit="10%", condition=condition, n_jobs=1, random_state=0)
    models[name].fit(X, y, sensitive_features=age)
models["no limit"] = models["parity"].at(None)

scores = {name: model.predict_proba(X_new)[:, 1] for name, model in models.items()}
rows = {
    name: {
        "log loss": log_loss(y_new, p),
        "gap": gdp_difference(y_new, p, sensitive_features=age_new),
        "gap among y = 1": equal_opportunity_gdp(y_new, p, sensitive_features=age_new),
    }
    for name, p in scores.items()
}
results = pd.DataFrame(rows).T
print(results.round(3).to_string())

# %%
# Left: all people. Right: those with the favorable outcome.

fig, axes = plt.subplots(1, 2, figsize=(7.8, 3.6), layout="constrained", sharey=True)
for ax, mask, title in ((axes[0], None, "all people"), (axes[1], y_new == 1, "people with y = 1")):
    for name, p in scores.items():
        curve = gdp_curve(p, age_new, where=mask)
        ax.plot(curve.at, curve.mean, marker="o", markersize=3, label=name)
    ax.set(xlabel="age (years)", title=title)
fig.suptitle("Mean score by age, for each model")
axes[0].set_ylabel("mean score")
axes[0].legend()
plt.show()
