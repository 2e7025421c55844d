"""Time of the closed form, whole frontier and predictions, beside one LightGBM at its defaults, in
one run and on one thread each.

OMP_NUM_THREADS=1 python benchmarks/closed_form.py                     # Adult, all rows
python benchmarks/closed_form.py --rows 1000000 --threads 2            # made-up rows, with peak
                                                                       memory
"""

from __future__ import annotations

import argparse
import resource
import time

import numpy as np
from lightgbm import LGBMClassifier

from frhsic import ParityClassifier
from frhsic_paper.crossed.rows import load


def made_up(rows: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return X, y and s of rows with ten columns, three of which follow s."""
    rng = np.random.default_rng(0)
    s, X = rng.uniform(size=rows), rng.normal(size=(rows, 10))
    X[:, :3] += s[:, None]
    return X, (X.sum(axis=1) + rng.normal(size=rows) > 1).astype(float), s


def seconds(fit: object, *arguments: object, **more: object) -> tuple[float, float]:
    """Return CPU and wall-clock seconds of a call."""
    cpu, wall = time.process_time(), time.perf_counter()
    fit(*arguments, **more)  # type: ignore[operator]
    return time.process_time() - cpu, time.perf_counter() - wall


def main() -> None:
    """Print the times and their ratio."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int)
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    if arguments.rows:
        X, y, s = made_up(arguments.rows)
    else:
        table = load("adult")
        X, y, s = table.X.to_numpy(), table.y, table.s
    plain = min(
        seconds(LGBMClassifier(n_jobs=arguments.threads, verbose=-1).fit, X, y)[0] for _ in range(3)
    )
    fitted = LGBMClassifier(n_jobs=arguments.threads, verbose=-1).fit(X, y)
    predicting = min(seconds(fitted.predict_proba, X)[0] for _ in range(3))
    print(
        f"{len(y):,} rows of {X.shape[1]} columns; LightGBM {plain:.2f} s of CPU, predictions"
        f" {predicting:.2f} s"
    )
    for aim in ("score", "rank", "decision"):
        model = ParityClassifier(aim=aim, n_jobs=arguments.threads, random_state=0)
        cpu, wall = seconds(model.fit, X, y, sensitive_features=s)
        served = min(seconds(model.predict_proba, X)[0] for _ in range(3))
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
        print(
            f"aim {aim}: {cpu:.1f} s of CPU ({cpu / plain:.1f} times), {wall:.1f} s, peak"
            f" {peak:.2f} GB; predictions {served:.2f} s ({served / predicting:.1f} times)",
            flush=True,
        )


if __name__ == "__main__":
    main()
