"""Pictures of the theorems on populations, encoders and causes; `theorem_pictures.py` draws them."""

from __future__ import annotations

import math

import numpy as np
from drawing import BOUND, OTHER, QUIET, TRUTH, panels, people
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from frhsic.dependence import hsic, hsic_unbiased
from frhsic.kernels import Gaussian
from frhsic_paper.theory import (
    LinearEncoders,
    MLPEncoders,
    SingleEncoder,
    causal_necessity,
    khgr_bound,
    train_to_test,
    uniform_bound,
)


def uniform() -> Figure:
    """The bound for all encoders, that for one, and what samples do."""
    sizes = np.geomspace(100, 1e10, 33).astype(int)
    kernel = Gaussian(1.0)
    classes = {
        "a network, 50 hidden units": (MLPEncoders((107, 50, 50), (8.0, 8.0), 5.0), "-"),
        "linear encoders": (LinearEncoders(1.0, 1.0, 2), "--"),
        "one encoder, fixed before": (SingleEncoder(), ":"),
    }
    figure, (axis,) = panels(1, width=4.8, height=3.2)
    for name, (encoders, line) in classes.items():
        bounds = [uniform_bound(int(n), encoders, kernel, kernel).value for n in sizes]
        axis.loglog(sizes, bounds, line, color=BOUND, label=name)
    truth, seen = deviations()
    axis.loglog(truth, seen, "o", color=TRUTH, label="95 % of 100 samples are below")
    axis.axhspan(0.25, 1e6, color=QUIET, alpha=0.25, lw=0)
    axis.text(2e10, 0.4, "says nothing", ha="right", color="#5c564d")
    axis.set(xlabel="rows n", ylabel="HSIC, rows less population", ylim=(1e-3, 1e6))
    figure.legend(loc="outside upper center", ncols=2)
    return figure


def deviations() -> tuple[list[int], list[float]]:
    """For some n, the distance of HSIC on n rows from the population that 95 % of 100 samples do not exceed."""
    rng, kernel = np.random.default_rng(5), Gaussian(1.0)

    def sample(n: int) -> float:
        s = rng.normal(size=n)
        return float(hsic(0.6 * s + 0.8 * rng.normal(size=n), s, kernel, kernel))

    population = sample(200_000)
    sizes = [100, 400, 1600]
    return sizes, [float(np.quantile([abs(sample(n) - population) for _ in range(100)], 0.95)) for n in sizes]


def learned() -> Figure:
    """The encoder that looks best on its own rows is worse on others."""
    rng, kernel = np.random.default_rng(6), Gaussian(1.0)
    angles = np.linspace(0, np.pi, 60, endpoint=False)

    def draw(n: int) -> tuple[np.ndarray, np.ndarray]:
        s = rng.normal(size=n)
        x = rng.normal(size=(n, 2))
        x[:, 0] = 0.3 * s + 0.954 * x[:, 0]
        x[:, 1] = 0.3 * s + 0.954 * x[:, 1]
        return x @ np.array([np.cos(angles), np.sin(angles)]), s

    new, s_new = draw(20_000)
    population = [float(hsic_unbiased(new[:, j], s_new, kernel, kernel)) for j in range(60)]
    sizes, own, later = [50, 100, 200, 400, 800], [], []
    for n in sizes:
        chosen = []
        for _ in range(20):
            z, s = draw(n)
            on_rows = [float(hsic_unbiased(z[:, j], s, kernel, kernel)) for j in range(60)]
            best = int(np.argmin(on_rows))
            chosen.append((on_rows[best], population[best]))
        own.append(np.mean(chosen, axis=0)[0])
        later.append(np.mean(chosen, axis=0)[1])
    figure, (axis,) = panels(1, width=4.4, height=2.5)
    axis.plot(sizes, own, "o-", color=BOUND, label="on the rows that chose it")
    axis.plot(sizes, later, "s-", color=TRUTH, label="in the population")
    axis.axhline(0, color=QUIET, lw=0.8)
    axis.set(xscale="log", xlabel="rows n", ylabel="HSIC of the best encoder")
    axis.set_xticks(sizes, [str(n) for n in sizes])
    axis.minorticks_off()
    axis.legend()
    return figure


def root_n() -> Figure:
    """How far a class of linear encoders can follow pure noise, and its bound."""
    rng = np.random.default_rng(7)
    sizes = [50, 200, 800, 3200]
    drawn = []
    for n in sizes:
        x = rng.normal(size=(n, 5))
        x /= np.linalg.norm(x, axis=1, keepdims=True)
        noise = rng.normal(size=(500, n, 2))
        drawn.append(np.linalg.norm(np.einsum("rnk,nd->rkd", noise, x), axis=(1, 2)).mean() / n)
    encoders = LinearEncoders(weight_bound=1.0, input_bound=1.0, outputs=2)
    figure, (axis,) = panels(1, width=4.2, height=2.4)
    axis.loglog(sizes, [encoders.complexity / math.sqrt(n) for n in sizes], color=BOUND, label="bound, falls as 1/√n")
    axis.loglog(sizes, drawn, "o", color=TRUTH, label="drawn, mean of 500")
    axis.set(xlabel="rows n", ylabel="Gaussian complexity")
    axis.yaxis.set_minor_formatter(NullFormatter())
    axis.legend()
    return figure


def bridge() -> Figure:
    """What stands between HSIC on training rows and on test rows."""
    sizes = [10**k for k in range(4, 10)]
    kernel, encoders = Gaussian(1.0), LinearEncoders(1.0, 1.0, 2)
    found = [train_to_test(0.01, n, n, encoders, kernel, kernel).details for n in sizes]
    names = {"hsic_train": "HSIC on training rows", "uniform_train": "all encoders", "single_test": "new rows"}
    figure, (axis,) = panels(1, width=4.6, height=2.6)
    below = np.zeros(len(sizes))
    for (key, name), color in zip(names.items(), (TRUTH, BOUND, OTHER), strict=True):
        heights = np.array([details[key] for details in found])
        axis.bar(range(len(sizes)), heights, bottom=below, color=color, width=0.6, label=name)
        below += heights
    axis.axhline(0.25, color=QUIET, ls=":", label="holds anyway")
    axis.set_xticks(range(len(sizes)), ["10⁴", "10⁵", "10⁶", "10⁷", "10⁸", "10⁹"])
    axis.set(xlabel="training rows, and as many test rows", ylabel="bound on HSIC")
    axis.legend()
    return figure


def maximal_correlation() -> Figure:
    """The correlation of the best smooth functions, and the bound, for smaller and smaller ridges."""
    z, age = people(300)
    ridges = np.geomspace(1, 0.003, 12)
    found = [khgr_bound(z, age, Gaussian(1.5), Gaussian(8.0), ridge_z=r, ridge_s=r) for r in ridges]
    figure, (axis,) = panels(1, width=4.4, height=2.5)
    axis.loglog(ridges, [one.value for one in found], "s-", color=BOUND, label="bound, HSIC / η²")
    axis.loglog(ridges, [one.bounded for one in found], "o-", color=TRUTH, label="squared correlation")
    axis.axhspan(1, 1e4, color=QUIET, alpha=0.25, lw=0)
    axis.text(1.0, 1.5, "says nothing", ha="right", color="#5c564d")
    axis.set(xlabel="ridge η (left: wilder functions)", ylabel="squared correlation", ylim=(1e-3, 1e4))
    axis.legend(loc="upper right")
    return figure


def causal() -> Figure:
    """HSIC lies below what interventions change; it can be zero although they change everything."""
    noise, s = np.random.default_rng(10).normal(size=300), np.array([0.0, 1.0])
    kernels = {"kernel_z": Gaussian(1.0), "kernel_s": Gaussian(1.0)}
    found = [causal_necessity(noise + effect * s[:, None], s, **kernels) for effect in np.linspace(0, 4, 15)]
    coin = causal_necessity([[0, 1], [1, 0]], [0, 1], **kernels)
    figure, (axis,) = panels(1, width=4.4, height=2.6)
    change = [one.details["effect"] for one in found]
    axis.plot(change, [one.value for one in found], color=BOUND, label="bound")
    axis.plot(change, [one.bounded for one in found], "o", color=TRUTH, label="Z = a · S + noise")
    axis.plot(coin.details["effect"], coin.bounded, "D", color=OTHER, ms=7, clip_on=False, label="Z turns S by a coin")
    axis.set(xlabel="mean change of Z if S is set", ylabel="HSIC", ylim=(0, None))
    axis.legend()
    return figure
