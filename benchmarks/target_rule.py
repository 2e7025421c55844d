"""How often the weight that a rule on GDP takes has a true GDP above the target, on simulated paths
of scores.

    python benchmarks/target_rule.py [--rows 300] [--repeats 400]

A path has ten candidates, whose scores follow S less and less: candidate k has the conditional mean
a_k m(u) with a_k falling by a fifth at each step, u the rank of S, and noise. The true GDP of each
is known. The target lies just below the true GDP of one candidate in the middle, which is the
hardest place. Performance falls along the path, so the rule takes the least penalised candidate
that it admits. No model is trained.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np

from frhsic.parity import gdp
from frhsic.parity.limits import parse_limits
from frhsic.selection.rule import LIMITED_MEASURES, Candidate, choose

SIZES = 0.8 ** np.arange(10)
MIDDLE = 4
GRID = (np.arange(400_000) + 0.5) / 400_000
PATHS: dict[str, tuple[Callable[[np.ndarray], np.ndarray], float]] = {
    "line, little noise": (lambda u: u - 0.5, 0.1),
    "line, much noise": (lambda u: u - 0.5, 0.5),
    "parabola": (lambda u: (2 * u - 1) ** 2, 0.3),
    "two groups": (lambda u: (u > 0.8) * 1.0, 0.3),
    "jump and slope": (lambda u: (u > 0.5) + 0.3 * u, 0.4),
}


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=300)
    parser.add_argument("--repeats", type=int, default=400)
    options = parser.parse_args(arguments)
    for name, (mean, noise) in PATHS.items():
        gap = float(np.abs(mean(GRID) - mean(GRID).mean()).mean())
        truths = SIZES * gap
        target = float(truths[MIDDLE]) * 0.999
        missed = admitted = 0
        for repeat in range(options.repeats):
            chosen = chosen_candidate(
                mean, noise, target, options.rows, np.random.default_rng([options.rows, repeat])
            )
            admitted += chosen is not None
            missed += chosen is not None and truths[chosen] > target
        share = missed / options.repeats
        found = admitted / options.repeats
        print(
            f"{name:20s}  target missed {share:.3f}  some candidate admitted {found:.3f}",
            flush=True,
        )


def chosen_candidate(
    mean: Callable[[np.ndarray], np.ndarray],
    noise: float,
    target: float,
    rows: int,
    random: np.random.Generator,
) -> int | None:
    """Return the candidate that the rule takes, or None if it admits none."""
    u = random.random(rows)
    errors = random.standard_normal(rows)
    s = (u > 0.8) * 1.0 if np.unique(mean(u)).size == 2 else np.exp(u)
    bounds = np.full(len(SIZES), np.inf)
    for k in reversed(range(len(SIZES))):
        result = gdp(SIZES[k] * mean(u) + noise * errors, s, resamples=199)
        bounds[k] = max(result.interval[1], result.value)
        if bounds[k] > target:  # the rule looks no further
            break
    candidates = [
        Candidate(float(k), 1.0 - k / 100, 1.0, {"s": 0.0}, {"s": bound}, 0.0, 0.0, 1.0)
        for k, bound in enumerate(bounds)
    ]
    accepted, at = choose(candidates, parse_limits(target, LIMITED_MEASURES))
    return at if accepted[at] else None


if __name__ == "__main__":
    main()
