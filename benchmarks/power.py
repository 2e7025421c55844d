"""Power of the tests of independence beside hyppo's Hsic and dcor, at equal n and level .05.

    python benchmarks/power.py                          # the records, and a table of them (half an
                                                        hour)
    python benchmarks/power.py --figure docs/figures/power.svg    # the figure, from the records

Four alternatives and independence itself, one column each for Z and S. Every test sees the same
draws:

- `gamma_test` and `permutation_test` (199 permutations) at their default kernels, Gaussians at the
median distance;
- hyppo's `Hsic` as it comes: unbiased statistic, chi-square approximation, the bandwidth of Z for S
as well;
- dcor's permutation test of distance covariance (199 permutations) and its t test of distance
correlation.

Needs the extra `benchmark` (hyppo, dcor).
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from dcor.independence import distance_correlation_t_test, distance_covariance_test
from hyppo.independence import Hsic

from frhsic.independence import gamma_test, permutation_test
from frhsic_paper.plot import ACCENT, GRAY, dots_in_rows, finish, name_rows, panels, save, styled

LEVEL = 0.05
RESAMPLES = 199
Array = np.ndarray
RECORDS = Path(__file__).parent / "results" / "power.json"


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
    return np.cos(angle) + 0.3 * rng.standard_normal(n), np.sin(angle) + 0.3 * rng.standard_normal(
        n
    )


def heteroscedastic(n: int, rng: np.random.Generator) -> tuple[Array, Array]:
    z = rng.uniform(-1, 1, n)
    return z, (0.9 + 0.5 * z) * rng.standard_normal(n)


ALTERNATIVES = [linear, quadratic, circular, heteroscedastic, independent]


TESTS: dict[str, Callable[[Array, Array, int], float]] = {
    "gamma_test": lambda z, s, seed: gamma_test(z, s).pvalue,
    "permutation_test": lambda z, s, seed: (
        permutation_test(z, s, resamples=RESAMPLES, random_state=seed).pvalue
    ),
    "hyppo Hsic": lambda z, s, seed: float(Hsic().test(z, s)[1]),
    "dcor permutation": lambda z, s, seed: float(
        distance_covariance_test(z, s, num_resamples=RESAMPLES, random_state=seed).pvalue
    ),
    "dcor t": lambda z, s, seed: float(distance_correlation_t_test(z, s).pvalue),
}
"""The p-value of each test, as a function of z, s and a seed."""


def study(draws: int) -> pd.DataFrame:
    """Return the share of draws that each test rejects, and its time."""
    records = []
    for (place, alternative), n in product(enumerate(ALTERNATIVES), (50, 100, 200)):
        rng = np.random.default_rng([n, place])
        samples = [alternative(n, rng) for _ in range(draws)]
        for name, test in TESTS.items():
            begin = time.perf_counter()
            power = np.mean([test(z, s, seed) <= LEVEL for seed, (z, s) in enumerate(samples)])
            milliseconds = 1e3 * (time.perf_counter() - begin) / draws
            records.append((alternative.__name__, n, name, power, milliseconds, draws))
            print(*records[-1], flush=True)
    return pd.DataFrame(
        records, columns=["alternative", "n", "test", "power", "milliseconds", "draws"]
    )


def figure(records: pd.DataFrame, path: Path, n: int = 100) -> None:
    """Draw the power at one n, a row for each alternative; of tests with nearly the same power,
    one.
    """
    shown = {
        "permutation_test": (
            {"color": ACCENT, "marker": "o"},
            "permutation_test (gamma_test, hyppo Hsic: within .05)",
        ),
        "dcor permutation": ({"color": GRAY, "marker": "v"}, "dcor permutation"),
    }
    with styled():
        canvas, (axis,) = panels(1, 2.0)
        for test, (look, label) in shown.items():
            own = records[(records.test == test) & (records.n == n)]
            dots_in_rows(axis, [[value] for value in own.power], **look, label=label, markersize=6)
            name_rows(axis, list(own.alternative))
        axis.axvline(LEVEL, color="black", linewidth=0.8, linestyle=":")
        axis.set(xlabel=f"share rejected at .05, n = {n} (dotted: the level)", xlim=(0, 1.02))
        finish(canvas, [axis])
    save(canvas, path)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--draws", type=int, default=400)
    parser.add_argument("--records", type=Path, default=RECORDS)
    parser.add_argument(
        "--figure", type=Path, help="draw the records that are there, and run nothing"
    )
    options = parser.parse_args()
    if options.figure is not None:
        figure(pd.read_json(options.records), options.figure)
        return
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore", module="hyppo|numba|dcor")
    records = study(options.draws)
    records.to_json(options.records, orient="records", indent=1)
    shares = records.pivot(index=["alternative", "n"], columns="test", values="power")
    print(shares.loc[[one.__name__ for one in ALTERNATIVES], list(TESTS)].round(2).to_string())


if __name__ == "__main__":
    main()
