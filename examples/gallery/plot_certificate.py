"""
A certificate at work
=====================

You hand a representation to somebody who will fit a head on it: a function from Z to a score. You do not know the head.
A certificate bounds how far the scores of *every* head of a given size can move with S, on the rows at hand.
"""

# %%
# Six columns, one of which follows income a little. The size of a head is its norm in the space of the kernel on Z; a
# norm of 1 is what the certificate assumes unless told otherwise.

import matplotlib.pyplot as plt
import numpy as np
import torch

from frhsic.certificates import gdp_certificate
from frhsic.kernels import Gaussian

rng = np.random.default_rng(0)
n = 600
income = np.exp(rng.normal(10, 0.5, size=n))
Z = rng.normal(size=(n, 6))
Z[:, 0] += 0.8 * (np.log(income) - 10)
kernel_z, kernel_s = Gaussian(3.0), Gaussian(1.0)
s = np.log(income) - 10

bound = gdp_certificate(Z, s, kernel_z=kernel_z, kernel_s=kernel_s)
print(bound)
for assumption in bound.assumes:
    print("  assumes:", assumption)

# %%
# Does it hold? We draw 300 heads at random, each of norm 1, and compute the gap of each. The gap is the part of the
# variance of the scores that S explains. The certificate carries the worst head of all. Its gap is the bound itself.

rows = torch.tensor(Z)
gram = kernel_z(rows, rows).numpy()
gaps = []
for _ in range(300):
    a = rng.normal(size=n) * (rng.random(n) < 0.02)  # about twelve rows carry the head, whose norm is √(aᵀKa)
    gaps.append(bound.gap(gram @ a / np.sqrt(a @ gram @ a)))
print(f"largest gap of 300 random heads {max(gaps):.4f}, of the worst head {bound.gap(bound.worst_scores):.4f}")
print(f"bound {bound.value:.4f}; without any certificate it could be {bound.trivial:.4f}")

# %%
# Top left: the random heads stay below the bound. Top right: the scores of the worst head. Below: three forms of the
# bound. The published one divides HSIC by the smallest eigenvalue in use. With more than a few directions of S it
# exceeds what holds anyway (grey), and says nothing.

forms = {"published": [], "trace": [], "tight": []}
directions = range(1, 9)
for m in directions:
    one = gdp_certificate(Z, s, kernel_z=kernel_z, kernel_s=kernel_s, directions=m)
    for form, values in forms.items():
        values.append(one.details[form])

fig, panels = plt.subplot_mosaic([["heads", "worst"], ["forms", "forms"]], figsize=(7, 6.2), layout="constrained")
axes = list(panels.values())
axes[0].hist(gaps, bins=25, color="C0")
axes[0].axvline(bound.value, color="C3", label="certificate")
axes[0].set(xlabel="gap (squared units of the score)", ylabel="random heads")
axes[0].legend()
axes[1].scatter(income / 1000, bound.worst_scores, s=5, color="C3")
axes[1].set(xlabel="income (thousands)", ylabel="score of the worst head", xscale="log")
axes[1].set_xticks([10, 20, 50, 100], ["10", "20", "50", "100"])
axes[1].minorticks_off()
for form, values in forms.items():
    axes[2].plot(directions, values, marker="o", label=form)
axes[2].axhspan(bound.trivial, 1e6, color="0.88", label="says nothing")
axes[2].set(xlabel="directions of S", ylabel="bound on the gap", yscale="log", ylim=(0.003, 100))
axes[2].legend(loc="upper left")
plt.show()

# %%
# The bound is about these rows. Compute it on rows that did not train the encoder.
