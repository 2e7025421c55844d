"""
Embeddings of many columns
==========================

In embeddings, an attribute is spread over all columns, often not only in their means. ``ParityCoupling`` removes the
dependence whatever its shape is.
"""

# %%
# Forty columns: eight topics, and a direction that follows income. The spread of one topic grows with income, which
# erasing means cannot remove.

import matplotlib.pyplot as plt
import numpy as np
from lightgbm import LGBMRegressor
from sklearn.linear_model import RidgeCV

from frhsic import ParityCoupling

rng = np.random.default_rng(0)
n = 4000
income = rng.lognormal(size=2 * n)
rank = income.argsort().argsort() / (2 * n)
topics = rng.normal(size=(2 * n, 8))
hidden = np.column_stack([topics[:, :7], topics[:, 7] * (0.5 + 1.5 * rank), rank + 0.3 * rng.normal(size=2 * n)])
columns = hidden @ rng.normal(size=(9, 40)) + 0.5 * rng.normal(size=(2 * n, 40))
X, X_new, s, s_new = columns[:n], columns[n:], rank[:n], rank[n:]

# %%
# For comparison: the part of each column that income predicts linearly is taken out.

slopes = (s - s.mean()) @ (X - X.mean(axis=0)) / ((s - s.mean()) ** 2).sum()
residual, residual_new = (x - np.outer(t - s.mean(), slopes) for x, t in ((X, s), (X_new, s_new)))

# %%
# Rows stay as they are, or change places.

coupling = ParityCoupling(random_state=0, n_jobs=1)
Z = coupling.fit_transform(X, sensitive_features=s)
Z_new = coupling.transform(X_new, sensitive_features=s_new)
print(f"{coupling.untouched_:.0%} of the rows are untouched.")


def trees(z, t, z_new, t_new):
    return LGBMRegressor(n_estimators=60, num_leaves=15, n_jobs=1, verbose=-1).fit(z, t).score(z_new, t_new)


def topic(z, z_new):
    ridge = RidgeCV(np.logspace(-2, 3, 6))
    return np.mean([ridge.fit(z, topics[:n, k]).score(z_new, topics[n:, k]) for k in range(7)])


versions = {"columns": (X, X_new), "linear residuals": (residual, residual_new), "coupling": (Z, Z_new)}
leaks = {name: trees(z, s, z_new, s_new) for name, (z, z_new) in versions.items()}
kept = {name: topic(z, z_new) for name, (z, z_new) in versions.items()}
for name in versions:
    print(f"{name}: trees read R² {leaks[name]:.2f} of income; topics are recovered with R² {kept[name]:.2f}")

# %%
# The coupling pays with a part of the topics; the trees then read nothing of income.

fig, ax = plt.subplots(figsize=(5.6, 3.8), layout="constrained")
for name in versions:
    ax.scatter(leaks[name], kept[name])
    ax.annotate(name, (leaks[name], kept[name]), xytext=(6, -12), textcoords="offset points")
ax.set(xlabel="R² of income by boosted trees", ylabel="R² of seven topics by ridge regression", ylim=(0, 1.05))
ax.margins(x=0.2)
plt.show()
