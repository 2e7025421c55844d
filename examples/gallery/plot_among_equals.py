"""
Compare people with the same education
======================================

Scores rise with age. Do they also rise among people with the same education, or do older people
just have a different education? On the command line, ``frhsic audit scores.csv -s age --score score
--control education`` runs this audit and writes a report.
"""

# %%
# 6,000 synthetic applicants. Older applicants more often have a degree, which raises the score;
# among those with a degree, the score also rises with age.

import matplotlib.pyplot as plt
import numpy as np

import frhsic
from frhsic.auditing import Settings

ROWS = 6_000
rng = np.random.default_rng(0)
age = rng.uniform(20, 65, size=ROWS)
level = np.digitize(rng.uniform(size=ROWS) + (age - 42) / 120, [0.35, 0.75])
education = np.array(["school", "college", "degree"])[level]
score = 0.3 + 0.1 * level + 0.004 * (age - 42) * (level == 2) + 0.1 * rng.normal(size=ROWS)

# %%
# The audit gives the gap among people with the same education and the gap among all people, with an
# interval for their difference. Neither number shows what causes the gap.

audit = frhsic.audit(
    score,
    age,
    control_features={"education": education},
    limit="within <= 0.05",
    settings=Settings(fast=True),
)
print(frhsic.report.text(audit))
within = audit["s"].all_rows.within
for name, group in within.strata.items():
    print(f"{name}: gap {group['gdp'].value:.3f}, {group.rows:,} people")

# %%
# ``limit="within <= 0.05"`` limits the gap among people with the same education, and
# ``ParityClassifier().fit(X, y, sensitive_features="age", control_features="education")`` fits a
# model that lowers it.

fig, axes = plt.subplots(1, 3, figsize=(8, 3), sharey=True, layout="constrained")
for ax, (name, group) in zip(axes, within.strata.items()):
    curve = group.curves["gdp"]
    ax.fill_between(curve.grid, curve.low, curve.high, alpha=0.2)
    ax.plot(curve.grid, curve.mean)
    ax.axhline(curve.overall, color="black", linestyle=":")
    ax.set(title=name, xlabel="age")
axes[0].set_ylabel("mean score")
plt.show()
