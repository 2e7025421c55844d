"""
Monitoring a model in use
=========================

A model was audited in January. Is its score still independent of age in May? If you test every
week, you will raise a false alarm sooner or later. ``SequentialTest`` may be looked at as often as
you like.
"""

# %%
# Forty weeks of 150 scores each. From week 21 on, the score rises a little with age. The
# sequential test is compared with a rank correlation that has its own p-value each week.

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import spearmanr

import frhsic
from frhsic.auditing import Settings, drift
from frhsic.independence import SequentialTest

LEVEL, WEEKS, CHANGE, STREAMS = 0.05, 40, 20, 40


def week(rng, strength, n=150):
    age = rng.uniform(20, 70, size=n)
    return 0.5 + strength * (age - 45) / 500 + 0.1 * rng.normal(size=n), age


rng = np.random.default_rng(5)
weeks = [week(rng, 0.0 if number < CHANGE else 1.0) for number in range(WEEKS)]

test = SequentialTest(level=LEVEL, resamples=499, random_state=0)
weekly = []
for score, age in weeks:
    test.update(score, age)
    weekly.append(spearmanr(score, age).pvalue)
alarm = next(
    number for number, evidence in enumerate(test.history, start=1) if evidence >= 1 / LEVEL
)
false = [pvalue for pvalue in weekly[:CHANGE] if pvalue <= LEVEL]
print(f"Sequential test: alarm in week {alarm}; the score changed in week {CHANGE + 1}.")
print(
    f"A rank correlation tested each week: {len(false)} false alarms in the first {CHANGE} weeks."
)

# %%
# The e-value is the evidence so far. Under independence it passes 20 with a chance of at most 5 %,
# over all weeks together. The weekly p-values have that chance each week. In this stream they raise
# the alarm sooner: that is what the safety of the sequential test costs.

fig, axes = plt.subplots(2, 1, figsize=(7, 5), layout="constrained", sharex=True)
numbers = np.arange(1, WEEKS + 1)
axes[0].plot(numbers, test.history, marker="o", markersize=3)
axes[0].axhline(1 / LEVEL, color="C3", linestyle="--", label="alarm at level 5 %")
axes[0].set(yscale="log", ylabel="e-value", title="One test for all weeks")
axes[1].plot(numbers, weekly, "o", markersize=4)
axes[1].axhline(LEVEL, color="C3", linestyle="--", label="level 5 %")
axes[1].set(yscale="log", xlabel="week", ylabel="p-value", title="A test of its own for each week")
for ax in axes:
    ax.axvline(CHANGE + 0.5, color="black", linestyle=":", label="the score begins to follow age")
    ax.legend(fontsize=8)
plt.show()

# %%
# Is the alarm rare if nothing happens? Forty streams of independent scores, forty weeks each:

rng, alarms, any_week = np.random.default_rng(6), 0, 0
for stream in range(STREAMS):
    quiet, weekly_alarm = SequentialTest(level=LEVEL, resamples=99, random_state=stream), False
    for _ in range(WEEKS):
        score, age = week(rng, 0.0, n=40)
        quiet.update(score, age)
        weekly_alarm |= spearmanr(score, age).pvalue <= LEVEL
    alarms, any_week = alarms + quiet.rejected, any_week + weekly_alarm
print(
    f"Of {STREAMS} streams, {alarms} have a false alarm; with a test for each week, {any_week} have"
    " one."
)

# %%
# An alarm says that there is dependence, not how much. Two audits say how much: one of the first
# twenty weeks, kept as JSON, and one of the weeks since.

quick = Settings(max_rows=200, probe_rows=300, resamples=99)


def audited(part):
    score, age = (np.concatenate(column) for column in zip(*part))
    return frhsic.audit(score, age, settings=quick)


earlier = frhsic.auditing.Audit.from_json(audited(weeks[:CHANGE]).to_json())
now = audited(weeks[CHANGE:])
change = drift(now, earlier)[0]
low, high = change.interval.low, change.interval.high
seen = "changed" if change.changed else "no change seen"
print(f"GDP was {change.before:.4f} and is {change.after:.4f}: {seen}.")
print(
    f"The change lies between {low:.4f} and {high:.4f} ({change.interval.confidence:.0%} interval)."
)
