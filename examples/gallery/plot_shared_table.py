"""
Share a table that doesn't reveal age
=====================================

A company gives a table of applicants to another team. It doesn't contain age, but experience and
job reveal it. It isn't known yet what the team will predict. ``ParityCoupling`` creates a table
with the same columns whose rows don't depend on age.
"""

# %%
# Experience and job depend on age; the test score and the region don't.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from lightgbm import LGBMRegressor

from frhsic import ParityCoupling


def applicants(n, seed):
    rng = np.random.default_rng(seed)
    age = rng.uniform(20, 65, size=n).round()
    experience = np.clip((age - 20) * rng.uniform(0.2, 1, size=n), 0, None).round()
    senior = rng.random(n) < 1 / (1 + np.exp(-(age - 45) / 6))
    job = pd.Categorical(np.where(senior, "senior", rng.choice(["clerk", "trainee"], size=n)))
    region = pd.Categorical(rng.choice(["north", "south"], size=n))
    columns = {"experience": experience, "job": job, "region": region, "test": rng.normal(size=n)}
    return pd.DataFrame(columns), age


X, age = applicants(6000, seed=0)
X_new, age_new = applicants(3000, seed=1)

# %%
# Creating the table requires age. A row that reveals its age, because it is more common at that age
# than among all people, is often swapped with another row. All other rows stay in place, so the
# table has the same rows in a partly different order.

coupling = ParityCoupling(random_state=0, n_jobs=1)
Z = coupling.fit_transform(X, sensitive_features=age)
Z_new = coupling.transform(X_new, sensitive_features=age_new)
print(f"{coupling.untouched_:.0%} of the rows are untouched.")

# %%
# Boosted trees can predict age from the original columns, but not from the shared table: on new
# rows their R² is about zero.


def probe(table, s, table_new, s_new):
    trees = LGBMRegressor(n_estimators=60, num_leaves=15, n_jobs=1, verbose=-1).fit(table, s)
    return trees.score(table_new, s_new)


before, after = probe(X, age, X_new, age_new), probe(Z, age, Z_new, age_new)
print(f"R² of age from the table before: {before:.2f}, after: {after:.2f}")

# %%
# Experience now has the same distribution at every age.

fig, axes = plt.subplots(1, 2, figsize=(7.6, 3.6), sharey=True, layout="constrained")
for ax, table, title in zip(axes, (X, Z), ("original", "shared")):
    ax.scatter(age, table["experience"], s=3, alpha=0.3)
    means = table["experience"].groupby(pd.cut(age, np.arange(20, 70, 5))).mean()
    ax.plot(np.arange(22.5, 65, 5), means, color="black", label="mean")
    ax.set(xlabel="age", title=title)
fig.suptitle("Experience by age")
axes[0].set_ylabel("years of experience")
axes[0].legend()
plt.show()

# %%
# A replaced row is another person's row. Use the table for training and statistics, not to decide
# about a person. It is not anonymous. Keep the list of changed rows secret, and share only one
# release.
