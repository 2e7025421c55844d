"""Time and memory of `ParityEncoder` beside one `LGBMClassifier`, on as many rows as wanted.

    python benchmarks/encoder_scale.py --rows 1000000 --jobs 16

The rows follow a law of twelve columns, of which eight are numbers and four are categories.
"""

from __future__ import annotations

import argparse
import resource
from time import perf_counter, process_time
from typing import Any

import numpy as np
import pandas as pd
from lightgbm import LGBMClassifier

from frhsic import ParityEncoder


def law(n: int, rng: np.random.Generator) -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    """Return columns, half of which follow S, with a rare outcome and a skewed S."""
    s = rng.gamma(2.0, size=n)
    numbers = rng.normal(size=(n, 8))
    numbers[:, 0] += np.log1p(s)
    numbers[:, 1] += np.sin(2 * s)
    numbers[:, 2] += s > 3
    numbers[:, 3] = np.round(10 * numbers[:, 3] + s)
    X = pd.DataFrame(numbers, columns=[f"number{j}" for j in range(8)])
    for j, levels in enumerate((3, 8, 20, 50)):
        codes = rng.integers(levels, size=n)
        if j < 2:
            codes = np.minimum(codes * s / 2, levels - 1).astype(np.int64)
        X[f"level{j}"] = np.array([f"l{code}" for code in range(levels)])[codes]
    odds = numbers[:, 0] + numbers[:, 4] + 0.5 * numbers[:, 1] * numbers[:, 5] - 3
    return X, rng.uniform(size=n) < 1 / (1 + np.exp(-odds)), s


def timed(call: Any) -> tuple[float, float]:
    """Return the seconds of a call by the clock and of all its threads."""
    wall = perf_counter()
    cpu = process_time()
    call()
    return perf_counter() - wall, process_time() - cpu


def peak() -> float:
    """Return the largest memory of this process so far, in GB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--jobs", type=int, default=1)
    arguments = parser.parse_args()
    X, y, s = law(arguments.rows, np.random.default_rng(0))
    print(f"{arguments.rows} rows: {peak():.2f} GB")
    codes = X.astype({f"level{j}": "category" for j in range(4)})
    model = LGBMClassifier(n_jobs=arguments.jobs, verbose=-1)
    boosted = timed(lambda: model.fit(codes, y))
    print(f"LGBMClassifier: {boosted[0]:.1f} s, {boosted[1]:.1f} s of CPU, {peak():.2f} GB")
    encoder = ParityEncoder(random_state=0, n_jobs=arguments.jobs)
    fitted = timed(lambda: encoder.fit(X, y, sensitive_features=s))
    print(f"fit: {fitted[0]:.1f} s, {fitted[1]:.1f} s of CPU, {peak():.2f} GB")
    moved = timed(lambda: encoder.transform(X))
    print(f"transform: {moved[0]:.1f} s, {moved[1]:.1f} s of CPU, {peak():.2f} GB")
    print(f"CPU of the fit, in fits of LGBMClassifier: {fitted[1] / boosted[1]:.1f}")


if __name__ == "__main__":
    main()
