"""
How scale fools HSIC
====================

HSIC compares distances between rows. If a model shrinks its representation Z, the distances shrink, and HSIC falls.
No information about S is lost by that. This program shows two ways in which HSIC is fooled, and the numbers
beside it that are not: the standardised gap, a probe, and HSIC of whitened columns.
"""

# %%
# Z has six columns. The first one follows age, the others are noise. A score is the sum of the columns.

import matplotlib.pyplot as plt
import numpy as np
import torch

from frhsic.dependence import hsic
from frhsic.kernels import Gaussian
from frhsic.parity import gdp, standardized_gdp
from frhsic.penalties import HSIC
from frhsic.probes import probe

rng = np.random.default_rng(0)
n = 1000
age = rng.uniform(18, 80, size=n)
Z = rng.normal(size=(n, 6))
Z[:, 0] = (age - 49) / 18 + 0.4 * rng.normal(size=n)

# %%
# First trick: shrink everything
# ------------------------------
# The kernel on Z is a Gaussian of bandwidth 3, as in a training loop that fixed its bandwidth once. We multiply Z by
# smaller and smaller factors. HSIC and the gap of the score (GDP) go to zero. The standardised gap divides by the
# standard deviation of the score, and the probe is a ridge regression that recovers age. Both stay where they were.

factors = np.logspace(0, -2, 7)
ages = Gaussian(18.0)
shrunk = {"HSIC, bandwidth 3": [], "GDP of the score": [], "standardised GDP": [], "R² of a linear probe": []}
for factor in factors:
    z = factor * Z
    score = z.sum(axis=1)
    shrunk["HSIC, bandwidth 3"].append(float(hsic(z, age, Gaussian(3.0), ages)))
    shrunk["GDP of the score"].append(float(gdp(score, age, resamples=0)))
    shrunk["standardised GDP"].append(float(standardized_gdp(score, age, resamples=0)))
    shrunk["R² of a linear probe"].append(probe(z, age, "linear").r2)

# %%
# Second trick: hide behind a large column
# ----------------------------------------
# A bandwidth at the median distance follows the scale of Z, so the first trick fails. But it is one number for all
# columns. We multiply a column of noise by larger and larger factors. The median distance grows with it, and the
# column that follows age becomes small beside it. HSIC falls again, and the probe does not. The penalty ``HSIC()`` of
# this library whitens Z first, and whitening undoes the factor.

whitened = HSIC(head_weight=0.0)
whitened.prepare(torch.tensor(age), torch.Generator().manual_seed(0))
growth = np.logspace(0, 2, 7)
hidden = {"HSIC, median bandwidth": [], "HSIC of whitened Z": [], "R² of a linear probe": []}
for factor in growth:
    z = Z * np.array([1, factor, 1, 1, 1, 1])
    hidden["HSIC, median bandwidth"].append(float(hsic(z, age)))
    hidden["HSIC of whitened Z"].append(float(whitened(torch.tensor(z), torch.tensor(age))))
    hidden["R² of a linear probe"].append(probe(z, age, "linear").r2)

for name, values in (shrunk | hidden).items():
    print(f"{name:25s} first {values[0]:.4f}   last {values[-1]:.6f}")

# %%
# The picture divides each number by its first value. A number that sees the dependence stays at 1.

fig, axes = plt.subplots(2, 1, figsize=(6.5, 7), layout="constrained")
for ax, at, numbers in ((axes[0], factors, shrunk), (axes[1], growth, hidden)):
    for (name, values), marker, size in zip(numbers.items(), "ovsx", (5, 6, 10, 5)):
        face = "none" if marker == "s" else None  # lines that coincide stay visible
        ax.plot(at, np.array(values) / values[0], marker=marker, markersize=size, markerfacecolor=face, label=name)
axes[0].invert_xaxis()
axes[0].set(xlabel="factor of all columns of Z", ylabel="value ÷ first value", title="Shrink everything")
axes[1].set(xlabel="factor of one column of noise", ylabel="value ÷ first value", title="Hide behind a large column")
for ax in axes:
    ax.set(xscale="log", yscale="log", ylim=(1e-5, 4))
    ax.legend(loc="lower left")
plt.show()

# %%
# Read HSIC of a model that was trained against it beside a probe and a standardised gap. An audit shows all three.
