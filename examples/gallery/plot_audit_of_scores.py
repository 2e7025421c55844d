"""
Audit someone else's scores
===========================

A lender sends a table with each applicant's score, age and repayment. An audit needs only these
three columns; the model stays with the lender.
"""

# %%
# The lender's table (synthetic data).

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import frhsic
from frhsic.auditing import Settings

rng = np.random.default_rng(3)
n = 3000
age = np.round(20 + 50 * rng.beta(1.6, 2.4, size=n))
thrift = rng.normal(size=n)
repaid = (rng.random(n) < 1 / (1 + np.exp(-(1.2 + thrift + 0.01 * (age - 40))))).astype(int)
young = np.exp(-(((age - 22) / 9) ** 2))
score = 1 / (1 + np.exp(-(1.2 + 0.8 * thrift - 1.1 * young + 0.2 * rng.normal(size=n))))
table = pd.DataFrame({"score": score, "repaid": repaid, "age": age})

# %%
# We state a limit before the audit: on average over applicants, the mean score at an age may differ
# from the overall mean by at most 5 % of the share who repay. These settings are fast; the defaults
# use more rows.

audit = frhsic.audit(
    table["score"],
    table["age"],
    table["repaid"],
    limit="gdp <= 5% of base rate",
    settings=Settings(max_rows=600, probe_rows=1500, resamples=199),
)
attribute = audit["age"]
print(frhsic.report.text(audit))
check = audit.limits[0]
low, high = check.interval.low, check.interval.high
print(f"Limit {check.limit:.3f}: {check.verdict}. GDP {check.value:.3f} ({low:.3f} to {high:.3f}).")
for quality in audit.quality:
    if quality.key in ("accuracy", "auc"):
        print(f"{quality.key}: {quality.value:.3f}; a constant gets {quality.constant:.3f}")

# %%
# Each measure is printed with its value on shuffled ages. Only values well above that are evidence
# of dependence.

for number in attribute.all_rows.numbers:
    interval, shuffled = number.interval, number.under_independence
    between = f"{interval.low:.4f} to {interval.high:.4f}" if interval else "no interval"
    print(f"{number.key:25s} {number.value:8.4f}   {between:18s}", end="")
    print("" if shuffled is None else f"   shuffled {shuffled:.4f}")

# %%
# The curve shows which ages are affected. The band covers the means of all groups at once.

curve = attribute.all_rows.curves["gdp"]
fig, axes = plt.subplots(
    2,
    1,
    figsize=(6.5, 4.8),
    layout="constrained",
    sharex=True,
    gridspec_kw={"height_ratios": [3, 1]},
)
axes[0].fill_between(
    curve.grid, curve.low, curve.high, alpha=0.3, label="95 % band of the whole curve"
)
axes[0].plot(curve.grid, curve.mean, marker="o", label="mean score in groups by age")
axes[0].axhline(curve.overall, color="black", linestyle=":", label="overall mean")
axes[0].set(ylabel="probability of repaying", title="Mean score and number of applicants by age")
axes[0].legend()
axes[1].hist(table["age"], bins=np.arange(20, 72, 2), color="0.6")
axes[1].set(xlabel="age (years)", ylabel="applicants")
plt.show()

# %%
# ``frhsic.report.write(audit, "report.html")`` writes a report for decision makers.
