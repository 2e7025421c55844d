"""Coverage of the intervals of HSIC, normalized HSIC and squared distance correlation.

    python benchmarks/intervals.py                                     # the table of docs/tests.md (hours on one core)
    python benchmarks/intervals.py --rows 200 --draws 100 --quick      # a quick look

Z is normal with d columns; its first has correlation ρ with a normal U, and S is U, exp U, U rounded to halves, or 0
for most rows. Kernels are Gaussians at the median distances of 1,500 other rows, or half-distances. The true value is
0 for ρ = 0, otherwise the mean of the unbiased estimates over all draws.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Sequence

import numpy as np

from frhsic.independence import Effect, hsic_interval, normalized_hsic_interval
from frhsic.kernels import HalfDistance, default_gaussian

Array = np.ndarray
ATTRIBUTES: dict[str, Callable[[Array], Array]] = {
    "normal": lambda u: u,
    "log-normal": np.exp,
    "tied": lambda u: np.round(2 * u),
    "zero-inflated": lambda u: np.exp(np.maximum(u - 1, 0)) - 1,
}
CONFIDENCES = (0.95, 0.99)
SETTINGS = [("normal", d, rho) for d in (1, 10, 50) for rho in (0.0, 0.1, 0.3, 0.5)]
SETTINGS += [("log-normal", 1, 0.1), ("log-normal", 1, 0.3), ("log-normal", 10, 0.3)]
SETTINGS += [
    ("tied", 1, 0.1),
    ("tied", 1, 0.3),
    ("tied", 10, 0.3),
    ("zero-inflated", 1, 0.1),
    ("zero-inflated", 1, 0.3),
]


def sample(kind: str, d: int, rho: float, n: int, rng: np.random.Generator) -> tuple[Array, Array]:
    u, z = rng.standard_normal(n), rng.standard_normal((n, d))
    z[:, 0] = rho * u + math.sqrt(1 - rho**2) * z[:, 0]
    return z, ATTRIBUTES[kind](u)


def coverage(kind: str, d: int, rho: float, n: int, draws: int) -> dict[str, list[float]]:
    """Return the share of intervals that hold the true value, for each statistic and confidence."""
    rng = np.random.default_rng(1)
    gaussians = [default_gaussian(x)[0] for x in sample(kind, d, rho, 1500, rng)]
    halves = [HalfDistance(), HalfDistance()]
    effects: dict[tuple[str, float], list[Effect]] = {}
    for _ in range(draws):
        z, s = sample(kind, d, rho, n, rng)
        for c in CONFIDENCES:
            effects.setdefault(("HSIC", c), []).append(hsic_interval(z, s, *gaussians, confidence=c))
            for name, kernels in (("normalized", gaussians), ("dCor²", halves)):
                effects.setdefault((name, c), []).append(normalized_hsic_interval(z, s, *kernels, confidence=c))
    shares: dict[str, list[float]] = {}
    for (name, _), each in effects.items():
        truth = 0.0 if rho == 0 else float(np.mean([effect.value for effect in each]))
        held = [effect.interval.low <= truth <= effect.interval.high for effect in each]
        shares.setdefault(name, []).append(float(np.mean(held)))
    return shares


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[200, 1000])
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--quick", action="store_true", help="Only the first four settings.")
    options = parser.parse_args(argv)
    print("| n | S | d | ρ | HSIC | normalized | dCor² |\n|---|---|---|---|---|---|---|")
    for n in options.rows:
        for kind, d, rho in SETTINGS[:4] if options.quick else SETTINGS:
            shares = coverage(kind, d, rho, n, options.draws)
            cells = " | ".join(f"{a:.3f}, {b:.3f}" for a, b in shares.values())
            print(f"| {n:,} | {kind} | {d} | {rho:g} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
