"""Power of the tests of independence beside hyppo's Hsic and dcor, at equal n and level .05.

    python benchmarks/power.py                          # the table and the figure of the documentation (half an hour)
    python benchmarks/power.py --draws 50 --rows 50     # a quick look

Four alternatives and independence itself, one column each for Z and S. Every test sees the same draws:

- `gamma_test` and `permutation_test` (199 permutations) at their default kernels, Gaussians at the median distance;
- `aggregated_test` (199 permutations) at its default kernels;
- hyppo's `Hsic` as it comes: unbiased statistic, chi-square approximation, the bandwidth of Z for S as well;
- dcor's permutation test of distance covariance (199 permutations) and its t test of distance correlation.

Needs the extra `benchmark` (hyppo, dcor).
"""

from __future__ import annotations

import argparse
import json
import math
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import torch

from frhsic.independence import aggregated_test, gamma_test, permutation_test

LEVEL = 0.05
RESAMPLES = 199
Array = np.ndarray
ROOT = Path(__file__).resolve().parent.parent


def independent(n: int, rng: np.random.Generator) -> tuple[Array, Array]:
    return rng.standard_normal(n), rng.standard_normal(n)


def linear(n: int, rng: np.random.Generator) -> tuple[Array, Array]:
    z = rng.standard_normal(n)
    return z, 0.3 * z + rng.standard_normal(n)


def quadratic(n: int, rng: np.random.Generator) -> tuple[Array, Array]:
    z = rng.uniform(-1, 1, n)
    return z, z**2 + 0.5 * rng.standard_normal(n)


def circular(n: int, rng: np.random.Generator) -> tuple[Array, Array]:
    angle = rng.uniform(0, 2 * np.pi, n)
    return np.cos(angle) + 0.3 * rng.standard_normal(n), np.sin(angle) + 0.3 * rng.standard_normal(n)


def heteroscedastic(n: int, rng: np.random.Generator) -> tuple[Array, Array]:
    z = rng.uniform(-1, 1, n)
    return z, (0.9 + 0.5 * z) * rng.standard_normal(n)


ALTERNATIVES = [linear, quadratic, circular, heteroscedastic, independent]


def tests() -> dict[str, Callable[[Array, Array, int], float]]:
    """Return the p-value of each test, as a function of z, s and a seed; a peer that is not installed is left out."""
    compared: dict[str, Callable[[Array, Array, int], float]] = {
        "gamma_test": lambda z, s, seed: gamma_test(z, s).pvalue,
        "permutation_test": lambda z, s, seed: permutation_test(z, s, resamples=RESAMPLES, random_state=seed).pvalue,
        "aggregated_test": lambda z, s, seed: aggregated_test(z, s, resamples=RESAMPLES, random_state=seed).pvalue,
    }
    if installed("hyppo"):
        from hyppo.independence import Hsic

        compared["hyppo Hsic"] = lambda z, s, seed: float(Hsic().test(z, s)[1])
    if installed("dcor"):
        from dcor.independence import distance_correlation_t_test, distance_covariance_test

        compared["dcor permutation"] = lambda z, s, seed: float(
            distance_covariance_test(z, s, num_resamples=RESAMPLES, random_state=seed).pvalue
        )
        compared["dcor t"] = lambda z, s, seed: float(distance_correlation_t_test(z, s).pvalue)
    return compared


def installed(peer: str) -> bool:
    there = find_spec(peer) is not None
    if not there:
        print(f"{peer} is not installed and is left out; `pip install frhsic[benchmark]` brings it.")
    return there


def study(rows: list[int], draws: int) -> list[dict[str, object]]:
    found: list[dict[str, object]] = []
    compared = tests()
    for alternative in ALTERNATIVES:
        for n in rows:
            rng = np.random.default_rng([n, ALTERNATIVES.index(alternative)])
            rejected: dict[str, int] = defaultdict(int)
            seconds: dict[str, float] = defaultdict(float)
            for draw in range(draws):
                z, s = alternative(n, rng)
                for name, test in compared.items():
                    begin = time.perf_counter()
                    rejected[name] += test(z, s, draw) <= LEVEL
                    seconds[name] += time.perf_counter() - begin
            for name in rejected:
                record = {
                    "alternative": alternative.__name__,
                    "n": n,
                    "test": name,
                    "power": rejected[name] / draws,
                    "milliseconds": 1e3 * seconds[name] / draws,
                    "draws": draws,
                }
                print(json.dumps(record), flush=True)
                found.append(record)
    return found


def table(found: list[dict[str, object]]) -> str:
    """Markdown: one row for each alternative and n, one column for each test."""
    names = list(dict.fromkeys(str(r["test"]) for r in found))
    cells = {(r["alternative"], r["n"], r["test"]): r["power"] for r in found}
    lines = ["| | n | " + " | ".join(names) + " |", "|---|---|" + "---|" * len(names)]
    for alternative, n in dict.fromkeys((r["alternative"], r["n"]) for r in found):
        values = " | ".join(f"{cells[alternative, n, name]:.2f}" for name in names)
        lines.append(f"| {alternative} | {n} | {values} |")
    return "\n".join(lines)


def figure(found: list[dict[str, object]], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    names = list(dict.fromkeys(str(r["test"]) for r in found))
    shown = list(dict.fromkeys(str(r["alternative"]) for r in found))
    styles = dict(zip(names, ["o-", "s-", "D-", "^--", "v:", "x:"]))
    colours = dict(zip(names, ["#0072b2", "#56b4e9", "#009e73", "#d55e00", "#cc79a7", "#999999"]))
    plt.rcParams["svg.hashsalt"] = "power"
    canvas, axes = plt.subplots(1, len(shown), figsize=(3.1 * len(shown), 3.2), sharey=True, layout="constrained")
    for axis, alternative in zip(np.atleast_1d(axes), shown):
        for name in names:
            points = [(r["n"], r["power"]) for r in found if (r["alternative"], r["test"]) == (alternative, name)]
            axis.plot(*zip(*points), styles[name], color=colours[name], label=name, markersize=4, linewidth=1.3)
        axis.axhline(LEVEL, color="black", linewidth=0.6, linestyle=(0, (1, 2)))
        axis.set(title=alternative, xlabel="n", ylim=(0, 1.02))
        axis.set_xticks(sorted({r["n"] for r in found}))
    np.atleast_1d(axes)[0].set_ylabel("share rejected at .05")
    canvas.legend(
        *np.atleast_1d(axes)[0].get_legend_handles_labels(), loc="outside lower center", ncols=6, frameon=False
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    canvas.savefig(path, metadata={"Date": None})


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=400)
    parser.add_argument("--rows", type=int, nargs="+", default=[50, 100, 200])
    parser.add_argument("--figure", type=Path, default=ROOT / "docs" / "figures" / "power.svg")
    options = parser.parse_args(argv)
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore", module="hyppo|numba|dcor")
    found = study(options.rows, options.draws)
    print(table(found))
    error = math.sqrt(0.25 / options.draws)
    print(f"\n{options.draws} draws: standard error of a share at most {error:.3f}")
    figure(found, options.figure)


if __name__ == "__main__":
    main()
