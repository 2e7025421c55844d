"""
What binning hides
==================

A common way to check a score against a continuous attribute is to cut the attribute into two groups and to compare
their means. This program shows a score that passes such a check and still follows the attribute closely.
"""

# %%
# Young and old applicants get low scores, those in between high ones. The two halves by age have the same mean.

import matplotlib.pyplot as plt
import numpy as np

from frhsic.parity import gdp, gdp_curve

rng = np.random.default_rng(0)
age = rng.uniform(18, 80, size=4000)
score = 0.3 + 0.3 * np.exp(-(((age - 49) / 15) ** 2)) + rng.normal(0, 0.1, size=4000)

older = age > np.median(age)
print(f"mean score of the younger half {score[~older].mean():.3f}, of the older half {score[older].mean():.3f}")

# %%
# The gap by age, GDP, is how far the mean score at an age is from the overall mean, on average over people.

gap = gdp(score, age)
print(f"GDP {gap.value:.3f}, 95 % interval {gap.interval[0]:.3f} to {gap.interval[1]:.3f}")

# %%
# The curve shows where the gap is. The two red lines are what a comparison of two halves sees.

curve = gdp_curve(score, age)
fig, ax = plt.subplots(figsize=(6.5, 4), layout="constrained")
ax.fill_between(curve.at, curve.lower, curve.upper, alpha=0.3, label="95 % band for the whole curve")
ax.plot(curve.at, curve.mean, marker="o", label="mean score in groups by age")
ax.axhline(curve.overall, color="black", linestyle=":", label="overall mean")
middle = np.median(age)
means = [score[~older].mean(), score[older].mean()]
ax.hlines(means, [age.min(), middle], [middle, age.max()], color="C3", label="means of the two halves")
ax.set(xlabel="age (years)", ylabel="mean score (from 0 to 1)")
ax.legend(loc="lower center", fontsize=8)
plt.show()
