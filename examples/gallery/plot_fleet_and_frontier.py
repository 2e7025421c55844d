"""
A fleet and its frontier
========================

How much accuracy does it cost to make a score depend less on age? One model cannot say. A *fleet* trains many penalty
weights and seeds at once, on the same batches, and the *frontier* shows what can be had.
"""

# %%
# Years in a job count, and they follow age. A test of skill counts too.

import matplotlib.pyplot as plt
import numpy as np
import torch

from frhsic import Frontier
from frhsic.parity import gdp
from frhsic.penalties import GDP, HSIC
from frhsic.training import MLP, Recipe, TrainingData, grid, train


def table(n, seed):
    rng = np.random.default_rng(seed)
    age = rng.uniform(20, 65, size=n)
    years = np.clip((age - 22) * rng.uniform(0.2, 1, size=n), 0, None)
    skill = rng.normal(size=n)
    hired = rng.random(n) < 1 / (1 + np.exp(-(0.12 * (years - 12) + skill)))
    return np.column_stack([(years - 12) / 10, skill]), hired.astype(float), (age - 42) / 13


x, y, age = table(2000, seed=0)
x_new, y_new, age_new = table(4000, seed=1)
x_new = torch.tensor(x_new, dtype=torch.float32)

# %%
# Seven weights, three seeds, two penalties: 42 models. Every member of a seed starts from the same numbers and sees the
# same batches, so differences between weights are not luck of the draw.

WEIGHTS, SEEDS = [0, 0.1, 0.3, 1, 3, 10, 30], range(3)
encoder = MLP(hidden=(32,), size=8)

records = []
for method, penalty in {"HSIC": HSIC(), "smoothed GDP (Reg-GDP)": GDP()}.items():
    recipe = Recipe("binary", penalty=penalty, encoder=encoder, epochs=20, learning_rate=3e-3, schedule="cosine")
    fleet = train(TrainingData.of(x, y, age), grid(WEIGHTS, SEEDS), recipe)
    print(f"{method}: {len(fleet)} models in {fleet.seconds:.1f} s")
    for member, scores in zip(fleet.members, fleet.scores(x_new)):
        if member.weight == 0 and method != "HSIC":
            continue  # the same models again
        chance = torch.sigmoid(scores[:, 0]).cpu().numpy()
        records.append(
            {
                "method": method if member.weight else "no penalty",
                "weight": member.weight,
                "repeat": member.seed,
                "accuracy": float(((chance > 0.5) == y_new).mean()),
                "gdp": float(gdp(chance, age_new, resamples=0)),
            }
        )

# %%
# ``Frontier`` averages over seeds. It marks the points that no other point of the same method beats in both respects.

frontier = Frontier.from_records(records, performance="accuracy", baseline="no penalty")
print(frontier.to_frame().round(3).to_string(index=False))
for method, match in frontier.matched(band=0.05).items():
    if match.point is not None:
        print(f"{method}: GDP {match.point.dependence:.3f} with accuracy of at least {match.floor:.3f}")

# %%
# Bars are standard deviations over seeds.

ax = frontier.plot()
for point in frontier.points:
    spread = {"xerr": point.dependence_sd, "yerr": point.performance_sd}
    ax.errorbar(point.dependence, point.performance, **spread, color="0.6", zorder=0, capsize=2)
ax.set(xlabel="GDP on new rows (probability)", ylabel="accuracy on new rows")
plt.show()

# %%
# At large weights the smoothed GDP gives up accuracy without any gap left to close. A frontier shows where to stop.
#
# These rows drew the picture; they must not choose the weight as well. ``select_weight`` chooses on validation rows.
