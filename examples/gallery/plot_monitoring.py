"""
Monitor a model in production
=============================

A model was audited in January. Does its score depend on age more today than it did then? Audit the
rows of each month and compare with the first audit. On the command line,
``frhsic audit may.csv --against january.json`` does the same.
"""

# %%
# Six months of 2,000 scores each. From May on, the score rises slightly with age.

import matplotlib.pyplot as plt
import numpy as np

import frhsic
from frhsic.auditing import Audit, Settings, since

rng = np.random.default_rng(5)


def scores(strength, n=2000):
    age = rng.uniform(20, 70, size=n)
    return 0.5 + strength * (age - 45) / 500 + 0.1 * rng.normal(size=n), age


def audit_month(strength):
    score, age = scores(strength)
    return frhsic.audit(score, age, settings=Settings(fast=True))


# %%
# Keep the first audit as JSON, which contains no rows. Each later audit uses new rows.

january = audit_month(0.0).to_json()
strengths = {"February": 0.0, "March": 0.0, "April": 0.0, "May": 1.0, "June": 1.0}
months = {
    month: since(audit_month(strength), Audit.from_json(january))
    for month, strength in strengths.items()
}
for month, audit in months.items():
    gap = audit.drift[0]
    verdict = "changed" if gap.changed else "no significant change"
    print(f"{month}: GDP was {gap.before:.4f} and is {gap.after:.4f}: {verdict}.")

# %%
# The level of 5 % applies to all changes in one comparison together. Even without any change, about
# one month in twenty raises an alarm, so confirm an alarm on the rows of the next month.

fig, ax = plt.subplots(figsize=(7, 3.5), layout="constrained")
for position, audit in enumerate(months.values()):
    interval = audit.drift[0].interval
    ax.plot([position, position], [interval.low, interval.high], color="C0", linewidth=3)
ax.axhline(0, color="black", linestyle=":")
ax.set_xticks(range(len(months)), months)
ax.set(xlabel="month", ylabel="change in GDP since January", title="95 % intervals")
plt.show()
