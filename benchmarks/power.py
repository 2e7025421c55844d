"""Power of the tests of independence beside hyppo's Hsic and dcor, at equal n and level .05.

    python benchmarks/power.py                          # the records and the table of the documentation (half an hour)
    python benchmarks/power.py --figure docs/figures/power.svg    # the figure, from the records

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

import matplotlib
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


def figure(found: list[dict[str, object]], path: Path, n: int = 100) -> None:
    """Draw the power at one n, a row for each alternative; of tests with nearly the same power, one."""
    from matplotlib.figure import Figure

    shown = {
        "permutation_test": ("o", "#0072b2", "permutation_test (gamma_test, hyppo Hsic: within .05)"),
        "aggregated_test": ("D", "#d55e00", "aggregated_test"),
        "dcor permutation": ("v", "#999999", "dcor permutation"),
    }
    alternatives = list(dict.fromkeys(str(r["alternative"]) for r in found))
    canvas = Figure(figsize=(6.4, 3.2), layout="constrained")
    axis = canvas.subplots()
    for test, (marker, colour, label) in shown.items():
        power = {str(r["alternative"]): r["power"] for r in found if (r["test"], r["n"]) == (test, n)}
        axis.plot([power[a] for a in alternatives], alternatives, marker, color=colour, markersize=8, label=label)
    axis.axvline(LEVEL, color="black", linewidth=0.8, linestyle=":")
    axis.set(xlabel=f"share rejected at .05, n = {n} (dotted: the level)", xlim=(0, 1.02))
    axis.margins(y=0.1)
    axis.invert_yaxis()
    axis.grid(axis="y", color="#ebebeb")
    axis.spines[["top", "right"]].set_visible(False)
    canvas.legend(loc="outside lower center", ncols=1, frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    with matplotlib.rc_context({"svg.hashsalt": "power"}):
        canvas.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=400)
    parser.add_argument("--rows", type=int, nargs="+", default=[50, 100, 200])
    parser.add_argument("--records", type=Path, default=ROOT / "benchmarks" / "results" / "power.json")
    parser.add_argument("--figure", type=Path, help="draw the records that are there, and run nothing")
    options = parser.parse_args(argv)
    if options.figure is not None:
        figure(json.loads(options.records.read_text(encoding="utf-8")), options.figure)
        return
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore", module="hyppo|numba|dcor")
    found = study(options.rows, options.draws)
    options.records.write_text("[\n" + ",\n".join(map(json.dumps, found)) + "\n]\n", encoding="utf-8")
    print(table(found))
    error = math.sqrt(0.25 / options.draws)
    print(f"\n{options.draws} draws: standard error of a share at most {error:.3f}")


if __name__ == "__main__":
    main()
