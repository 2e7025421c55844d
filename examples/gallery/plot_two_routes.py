"""
The conditional and the joint route
===================================

There are two ways to ask whether Z depends on a continuous S. The *conditional* route asks how Z differs near each
value of S: GDP compares means of a score, EIPM compares whole laws. No two rows have the same S, so both smooth over
neighbours, and somebody has to choose how widely. The *joint* route, HSIC, compares pairs (Z, S) with shuffled pairs.
It has no smoothing step.

This program computes all three on the same rows, for more and more rows.
"""

# %%
# In one world the score follows S slightly, in the other not at all. Each world is drawn twenty times for each n.

import matplotlib.pyplot as plt
import numpy as np

from frhsic.dependence import eipm, hsic_unbiased
from frhsic.parity import smoothed_gdp

rng = np.random.default_rng(0)
sizes, repeats = [50, 100, 200, 400, 800], 20


def world(n, strength):
    s = rng.uniform(size=n)
    return strength * np.cos(2 * np.pi * s) + rng.normal(size=n), s


def smoothed(score, s, width):
    return float(smoothed_gdp(score, s, bandwidth=width, bootstrap=0, permutations=0))


measures = {
    "GDP, smoothing width 0.02": lambda score, s: smoothed(score, s, 0.02),
    "GDP, smoothing width 0.2": lambda score, s: smoothed(score, s, 0.2),
    "EIPM, width chosen by n": lambda score, s: float(eipm(score, s, anchors=40, random_state=0)),
    "HSIC, unbiased": lambda score, s: float(hsic_unbiased(score, s)),
}
found = {name: np.empty((len(sizes), repeats, 2)) for name in measures}
for i, n in enumerate(sizes):
    for r in range(repeats):
        for j, strength in enumerate((0.6, 0.0)):
            score, s = world(n, strength)
            for name, measure in measures.items():
                found[name][i, r, j] = measure(score, s)

# %%
# Bars hold 90 % of the twenty values. The independent world should lie at zero.
#
# - With a narrow width, GDP is large in both worlds: means over few rows differ by chance.
# - With a wide width, chance does less, and more than half of the dependence is gone: smoothing has averaged it away.
# - EIPM chooses its width by n. It is far from zero under independence, and comes down slowly.
# - HSIC is zero on average under independence at every n. Its unit has no plain meaning, and that is its price.

fig, axes = plt.subplots(2, 2, figsize=(8.4, 6), layout="constrained", sharex=True)
for ax, (name, values) in zip(axes.flat, found.items()):
    for j, (label, colour) in enumerate((("S moves the score", "C3"), ("independent", "C0"))):
        middle = values[:, :, j].mean(axis=1)
        low, high = np.quantile(values[:, :, j], [0.05, 0.95], axis=1)
        at = np.array(sizes) * (0.96 if j else 1.04)
        ax.errorbar(at, middle, yerr=[middle - low, high - middle], marker="o", capsize=3, color=colour, label=label)
    ax.axhline(0, color="black", linewidth=0.8)
    ax.set(xscale="log", title=name)
    ax.set_xticks(sizes, [str(n) for n in sizes], minor=False)
    ax.minorticks_off()
for ax in axes[1]:
    ax.set_xlabel("rows")
axes[0, 0].set_ylabel("GDP (units of the score)")
axes[1, 0].set_ylabel("EIPM (kernel distance)")
axes[0, 1].set_ylabel("GDP (units of the score)")
axes[1, 1].set_ylabel("HSIC (no unit)")
axes[0, 0].legend()
plt.show()

# %%
# How often does a measure see the dependence? It does if its value is above 95 % of those of the independent world.
# GDP of the world that moves is 0.6 · 2/π = 0.38, by its definition.

print(f"{'rows':34s}" + "".join(f"{n:>8d}" for n in sizes))
for name, values in found.items():
    seen = (values[:, :, 0] > np.quantile(values[:, :, 1], 0.95, axis=1)[:, None]).mean(axis=1)
    print(f"{name + ', seen':34s}" + "".join(f"{share:8.0%}" for share in seen))
for name in list(measures)[:2]:
    print(f"{name + ', mean':34s}" + "".join(f"{value:8.2f}" for value in found[name][:, :, 0].mean(axis=1)))
