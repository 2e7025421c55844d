"""
A skewed attribute
==================

A few people earn much more than the rest. Measures that work with distances in dollars then see
little but these few. The gap works on ranks: it is the same for income and for its logarithm.
"""

# %%
# The score rises steadily with the rank of income, by 0.5 from the poorest to the richest. Its true
# gap is 0.125.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from frhsic import ParityRegressor, gdp
from frhsic.dependence import distance_correlation
from frhsic.parity import gdp_curve, smoothed_gdp

rng = np.random.default_rng(0)
n = 3000
income = pd.Series(np.exp(rng.normal(10, 1.5, size=n)), name="income")
rank = income.rank().to_numpy() / n
score = 0.25 + 0.5 * rank + 0.05 * rng.normal(size=n)

tenth = np.ptp(income) / 10  # the bandwidth of published comparisons
smoothed = smoothed_gdp(score, income, bandwidth=tenth, bootstrap=0, permutations=0)
gaps = {"income": gdp(score, income), "log income": gdp(score, np.log(income))}
for name, gap in gaps.items():
    print(f"gap along {name}: {gap.value:.4f} ({gap.interval[0]:.4f} to {gap.interval[1]:.4f})")
print(f"smoothed over a tenth of the range of income: {smoothed.value:.4f}")
for name, s in (("income", income), ("log income", np.log(income))):
    print(f"distance correlation with {name}: {float(distance_correlation(score, s)):.3f}")

# %%
# Training works on ranks as well, so income is passed as it is. For tests, HSIC and probes pass the
# logarithm.

X = np.column_stack([rank + 0.1 * rng.normal(size=n), rng.normal(size=n)])
y = X[:, 0] + X[:, 1]
model = ParityRegressor(limit="25%", n_jobs=1, random_state=0).fit(X, y, sensitive_features=income)
print(model.choice_)

# %%
# The same curve over both axes. In dollars nearly all people crowd at the left edge.

curve = gdp_curve(score, income)
fig, axes = plt.subplots(1, 2, figsize=(7.6, 3.6), layout="constrained", sharey=True)
for ax, scale in zip(axes, ("linear", "log")):
    ax.scatter(income[:800], score[:800], s=4, alpha=0.3, color="0.6")
    ax.plot(curve.at, curve.mean, marker="o", label="mean score")
    ax.axhline(curve.overall, color="black", linestyle=":", label="overall mean")
    ax.set(xscale=scale, xlabel=f"income, {scale} axis")
axes[0].set_ylabel("score")
axes[1].legend()
plt.show()
