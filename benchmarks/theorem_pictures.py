"""Pictures of docs/theorems.md, one for each theorem: a small case in which its two sides are computed.

python benchmarks/theorem_pictures.py                          # all of them, into docs/figures
python benchmarks/theorem_pictures.py --only localized --format png --out /tmp
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Sequence
from pathlib import Path

import matplotlib as mpl
import numpy as np
import torch
from drawing import BOUND, OTHER, QUIET, STYLE, TRUTH, panels, people
from matplotlib.figure import Figure
from theorem_population import bridge, causal, learned, maximal_correlation, root_n, uniform

from frhsic.certificates import gdp_certificate, localized_contrast
from frhsic.dependence import hsic_unbiased
from frhsic.kernels import Gaussian
from frhsic_paper.theory import (
    FiniteLaw,
    KernelExpansion,
    conditional_gaps,
    decomposable_identity,
    discrete_identity,
    disintegration_identity,
    eipm_bound,
    population_gdp,
    smoothed_contrast,
    spectral_equivalence,
)

FIGURES = Path(__file__).resolve().parents[1] / "docs" / "figures"
AGES = (25, 35, 45, 55)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=PICTURES, nargs="*", default=list(PICTURES))
    parser.add_argument("--format", choices=("svg", "png"), default="svg")
    parser.add_argument("--out", type=Path, default=FIGURES)
    options = parser.parse_args(argv)
    for name in options.only:
        with mpl.rc_context(STYLE):
            path = options.out / f"theorem-{name}.{options.format}"
            PICTURES[name]().savefig(path, metadata={"Date": None} if options.format == "svg" else None, dpi=110)


def zero() -> Figure:
    """Four shapes: correlation sees one of them, HSIC three, and independence has none."""
    rng = np.random.default_rng(0)
    s, noise = rng.uniform(-1, 1, (2, 1000))
    shapes = {
        "independent": noise,
        "line": s + 0.4 * noise,
        "hump": 1.5 * s**2 - 0.75 + 0.4 * noise,
        "spread": noise * (0.1 + np.abs(s)),
    }
    figure, axes = panels(4, sharex=True, sharey=True)
    for axis, (name, z) in zip(axes, shapes.items(), strict=True):
        axis.plot(s[:70], z[:70], ".", ms=3, color=TRUTH)
        ratio = float(hsic_unbiased(z, s)) / math.sqrt(float(hsic_unbiased(z, z)) * float(hsic_unbiased(s, s)))
        correlation = round(float(np.corrcoef(z, s)[0, 1]), 2) + 0.0
        axis.set_title(f"{name}\ncorrelation {correlation:.2f}\nHSIC, 0 to 1: {max(ratio, 0):.2f}")
        axis.set(xlabel="S", xticks=[], yticks=[])
    axes[0].set_ylabel("Z")
    return figure


def joint_table() -> np.ndarray:
    """P(Z = z, S = s) of five values of Z and four ages: older people have larger Z."""
    z, s = np.arange(5)[:, None], np.arange(4)[None, :]
    table = np.exp(-((z - 1 - 0.6 * s) ** 2) / 2) * np.array([0.4, 0.3, 0.2, 0.1])
    return table / table.sum()


def disintegration() -> Figure:
    """Joint minus product, and the same number as a sum over ages."""
    table = joint_table()
    excess = table - table.sum(1, keepdims=True) * table.sum(0)
    test = np.add.outer(np.linspace(-1, 1, 5), np.zeros(4)) * np.linspace(-1, 1, 4)
    both = disintegration_identity(table, test[None])
    parts = (excess * test).sum(0)
    figure, (left, right) = panels(2)
    grid = left.pcolormesh(excess, cmap="PuOr", vmin=-0.07, vmax=0.07, edgecolors="white")
    left.set(xlabel="age (S)", ylabel="Z", title="joint minus shuffled", yticks=[])
    left.set_xticks(np.arange(4) + 0.5, [str(age) for age in AGES])
    figure.colorbar(grid, ax=left, label="probability")
    names = [*(str(age) for age in AGES), "sum", "joint"]
    right.bar(names, [*parts, both.value, both.bounded], color=[QUIET] * 4 + [BOUND, TRUTH])
    right.set(xlabel="age (S)", ylabel="mean of the test function", title="share of an age · its difference")
    return figure


def recovery() -> Figure:
    """A test function that may change at every age reaches the conditional distance; others stay below."""
    z, s = np.arange(5)[:, None], np.arange(4)[None, :]
    table = np.exp(-((z - 2 - 1.2 * (-1) ** s) ** 2) / 2) / 4
    table /= table.sum(0) * 4
    marginal = table.sum(1, keepdims=True)
    heads = np.sign(np.arange(5)[None, :] - np.arange(1, 5)[:, None] + 0.5)
    both = decomposable_identity(table, heads)
    excess = heads @ (table - marginal * table.sum(0))  # of each head, at each age
    once = max(abs((excess * np.where(np.arange(4) < cut, 1, -1)).sum(1)).max() for cut in range(1, 5))
    figure, (left, right) = panels(2)
    for k, style in ((0, "-"), (1, "--")):
        label = f"ages {AGES[k]} and {AGES[k + 2]}"
        left.plot(range(5), 4 * table[:, k] - marginal[:, 0], style, marker="o", color=TRUTH, label=label)
    left.axhline(0, color=QUIET, lw=0.8)
    left.set(
        xlabel="Z", ylabel="probability, less overall", title="the difference turns at every age", ylim=(-0.25, 0.4)
    )
    left.set_xticks(range(5))
    left.legend(loc="upper center")
    names = ["function\nturns once", "function\nof each age", "mean distance\nover ages"]
    right.bar(names, [once, both.bounded, both.value], color=[BOUND, BOUND, TRUTH], width=0.6)
    right.set(ylabel="distance", title="what a class of functions sees")
    return figure


def decomposition() -> Figure:
    """HSIC of random laws, below the squared mean distance."""
    rng = np.random.default_rng(1)
    values = np.arange(6.0)
    gram = np.exp(-((values[:, None] - values) ** 2) / 8)
    bounds = []
    for concentration in np.geomspace(0.2, 30, 60):
        table = rng.dirichlet(np.full(36, concentration)).reshape(6, 6) + 1e-9
        bounds.append(eipm_bound(FiniteLaw.from_table(table / table.sum(), gram, gram)))
    right, left = [bound.value for bound in bounds], [bound.bounded for bound in bounds]
    figure, (axis,) = panels(1, width=3.6, height=2.6)
    axis.loglog(right, left, "o", color=TRUTH, label="a random table")
    ends = np.array([min(right), max(right)])
    axis.loglog(ends, ends, color=BOUND, label="the bound")
    axis.set(xlabel="κ · EIPM²", ylabel="HSIC")
    axis.legend()
    return figure


def smoothed() -> Figure:
    """Weights along S that oscillate faster have a larger norm, so their bound is larger."""
    z, age = people()
    grid, kernel = np.linspace(20, 70, 60), Gaussian(6.0)
    gram = np.asarray(kernel(torch.tensor(grid)[:, None], torch.tensor(grid)[:, None]))
    waves = range(1, 7)
    truths, bounds = [], []
    figure, (left, right) = panels(2)
    for k in waves:
        wanted = np.cos(np.pi * k * (grid - 20) / 50)
        weight = KernelExpansion(np.linalg.solve(gram + 1e-4 * np.eye(60), wanted), centers=grid[:, None])
        found = smoothed_contrast(z, age, weight, kernel_z=Gaussian(1.5), kernel_s=kernel)
        truths.append(math.sqrt(found.bounded))
        bounds.append(math.sqrt(found.value))
        if k in (1, 5):
            left.plot(grid, wanted, "-" if k == 1 else "--", color=OTHER, label="slow" if k == 1 else "fast")
    left.set(xlabel="age (S)", ylabel="weight of a person", title="two weights", ylim=(-1.2, 1.9))
    left.legend(loc="upper right", ncols=2)
    right.semilogy(waves, bounds, "s-", color=BOUND, label="bound: norm of the weights · √HSIC")
    right.semilogy(waves, truths, "o-", color=TRUTH, label="weighted mean of Z, less overall")
    right.set(xlabel="half waves of the weights", ylabel="distance", ylim=(0.01, 2))
    right.legend(loc="upper left")
    return figure


def localized() -> Figure:
    """The bound near one age is large where few people are near."""
    z, age = people()
    kernel = Gaussian(4.0)
    grid = np.linspace(20, 68, 40)
    found = [localized_contrast(z, age, float(at), kernel_z=Gaussian(1.5), kernel_s=kernel) for at in grid]
    figure = Figure(figsize=(4.6, 2.9), layout="constrained")
    top, below = figure.subplots(2, sharex=True, height_ratios=[3, 1])
    top.plot(grid, [math.sqrt(one.value) for one in found], color=BOUND, label="bound from HSIC")
    top.plot(grid, [math.sqrt(one.bounded) for one in found], color=TRUTH, label="people near this age against all")
    anyway = math.sqrt(found[0].trivial)
    top.axhline(anyway, color=QUIET, ls=":", label="holds anyway")
    top.set(ylabel="distance of Z", ylim=(0, 1.6 * anyway))
    top.legend(loc="upper left")
    below.hist(age, bins=25, color=QUIET)
    below.set(xlabel="age (S)", ylabel="people")
    return figure


def waves_law(speed: int, values: int = 24, rows: int = 200) -> tuple[FiniteLaw, torch.Tensor]:
    """A law whose Z follows `speed` half waves along S, and the rows of Z at each value."""
    rng = np.random.default_rng(3)
    s = torch.linspace(0, 1, values, dtype=torch.float64)[:, None]
    z = torch.tensor(rng.normal(size=(1, rows, 1))) + 0.8 * torch.cos(np.pi * speed * s)[:, :, None]
    pi = torch.full((values,), 1 / values, dtype=torch.float64)
    return FiniteLaw.from_conditionals(z, pi, Gaussian(0.25)(s, s), Gaussian(1.0)), z


def spectral() -> Figure:
    """Few directions leave a rest, many divide by a small eigenvalue."""
    figure, axes = panels(2, sharey=True)
    for axis, speed, name in zip(axes, (1, 4), ("slowly", "fast"), strict=True):
        law, _ = waves_law(speed)
        counts = range(1, 10)
        both = [spectral_equivalence(law, directions=m) for m in counts]
        axis.semilogy(counts, [one.value for one in both], "s-", color=BOUND, label="upper bound")
        axis.semilogy(counts, [one.bounded for one in both], color=TRUTH, label="conditional distance")
        axis.semilogy(counts, [one.details["lower"] for one in both], "^-", color=OTHER, label="lower bound, HSIC / κ")
        axis.set(xlabel="directions of S, m", title=f"Z changes {name} along S")
        axis.set_xticks([1, 3, 5, 7, 9])
    axes[0].set_ylabel("mean squared distance")
    axes[0].legend(loc="upper left")
    return figure


def population() -> Figure:
    """For a slow gap HSIC gives the bound, for a fast one the rest does."""
    speeds = range(1, 8)
    rest, part, truth = [], [], []
    for speed in speeds:
        law, z = waves_law(speed)
        rows = z.flatten(0, 1)
        head = KernelExpansion([1.0, -1.0], centers=[[1.0], [-1.0]])
        scores = head.values(Gaussian(1.0), rows)
        labels = torch.arange(z.shape[0]).repeat_interleave(z.shape[1])
        gaps = conditional_gaps(scores, labels)
        bound = population_gdp(law, gaps, head.norm(Gaussian(1.0), rows), directions=2, form="published")
        rest.append(bound.details["tail"])
        part.append(bound.value - bound.details["tail"])
        truth.append(bound.bounded)
    figure, (axis,) = panels(1, width=4.6, height=2.6)
    axis.bar(speeds, part, color=BOUND, width=0.6, label="squared norm · HSIC / λ₂")
    axis.bar(speeds, rest, bottom=part, color=QUIET, width=0.6, label="rest outside two directions")
    axis.plot(speeds, truth, "o", color=TRUTH, label="GDP² of the head")
    axis.set(xlabel="half waves of Z along S", ylabel="squared gap")
    axis.legend()
    return figure


def finite_sample() -> Figure:
    """Gaps of 200 random heads, and three forms of the bound."""
    z, age = people(400)
    kernel = Gaussian(1.5)
    bound = gdp_certificate(z, age, kernel_z=kernel, kernel_s=Gaussian(10.0), directions=4)
    rng, rows = np.random.default_rng(4), torch.tensor(z)
    gaps = []
    for _ in range(200):
        head = KernelExpansion(rng.normal(size=len(age)) * (rng.random(len(age)) < 0.02))
        gaps.append(bound.gap(head.values(kernel, rows) / head.norm(kernel, rows)))
    figure, (axis,) = panels(1, width=4.8, height=2.5)
    axis.hist(gaps, bins=np.geomspace(1e-5, 0.1, 30), color=TRUTH, label="random heads of norm 1")
    names = {"tight": ("exact: the worst head", "-"), "trace": ("trace", "--"), "published": ("published", ":")}
    for form, (name, line) in names.items():
        axis.axvline(bound.details[form], color=BOUND, ls=line, label=name)
    axis.axvline(bound.trivial, color=QUIET, label="holds anyway")
    axis.set(xscale="log", xlabel="squared gap along four directions of S", ylabel="heads")
    axis.legend(loc="upper left")
    return figure


def fubini() -> Figure:
    """The kernel mean of all people is the average of those of the ages."""
    grid, kernel = torch.linspace(-4, 5, 120, dtype=torch.float64)[:, None], Gaussian(0.6)
    rng = np.random.default_rng(8)
    centers, shares = (-1.5, 0.5, 2.5), (0.5, 0.3, 0.2)
    rows = [torch.tensor(rng.normal(center, 0.6, size=(400, 1))) for center in centers]
    means = [kernel(grid, z).mean(1) for z in rows]
    figure, (axis,) = panels(1, height=2.4)
    for mean, share, age, line in zip(means, shares, (25, 45, 65), ("-", "--", ":"), strict=True):
        axis.plot(grid, mean, line, color=QUIET, label=f"age {age}, {share:.0%} of people")
    everybody = torch.cat([z[: int(800 * share)] for z, share in zip(rows, shares, strict=True)])
    exact = sum(share * kernel(grid, z[: int(800 * share)]).mean(1) for z, share in zip(rows, shares, strict=True))
    axis.plot(grid, kernel(grid, everybody).mean(1), color=TRUTH, label="all people")
    axis.plot(grid[::8], exact[::8], "o", color=BOUND, label="average of the ages")
    axis.set(xlabel="Z", ylabel="mean similarity to z")
    figure.legend(loc="outside right center")
    return figure


def discrete() -> Figure:
    """HSIC as a sum over pairs of values of S."""
    rng = np.random.default_rng(9)
    s = np.repeat(np.arange(4.0), [40, 30, 20, 10])
    z = rng.normal(size=100) + 0.7 * s
    kernels = Gaussian(1.5), Gaussian(1.5)
    both, law = discrete_identity(z, s, *kernels), FiniteLaw.from_sample(z, s, *kernels)
    weights = np.asarray(law.probabilities)
    terms = np.outer(weights, weights) * np.asarray(law.gram_s * law.deviations)
    figure, (axis,) = panels(1, width=3.6, height=2.8)
    size = abs(terms).max()
    grid = axis.pcolormesh(terms, cmap="PuOr", vmin=-size, vmax=size, edgecolors="white")
    axis.set(xlabel="value of S", ylabel="value of S", aspect="equal")
    axis.set_title(f"sum {both.value:.4f}, HSIC of the rows {both.bounded:.4f}")
    axis.set_xticks(np.arange(4) + 0.5, list("1234"))
    axis.set_yticks(np.arange(4) + 0.5, list("1234"))
    figure.colorbar(grid, ax=axis, label="term of the sum")
    return figure


PICTURES: dict[str, Callable[[], Figure]] = {
    "zero": zero,
    "disintegration": disintegration,
    "recovery": recovery,
    "decomposition": decomposition,
    "smoothed": smoothed,
    "localized": localized,
    "spectral": spectral,
    "population": population,
    "finite-sample": finite_sample,
    "uniform": uniform,
    "learned": learned,
    "root-n": root_n,
    "bridge": bridge,
    "fubini": fubini,
    "discrete": discrete,
    "maximal-correlation": maximal_correlation,
    "causal": causal,
}

if __name__ == "__main__":
    main()
