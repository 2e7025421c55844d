"""Agreement of the gamma test with causal-learn's KCI_UInd: p-values on the same kernels, n = 1,000 and 2,000.

    python benchmarks/independence.py

Both sides use Gaussian kernels of the same given bandwidths on the same standardised columns. The peer matches a gamma
to the limit of n HSIC (mean tr K̃ tr L̃ / n, variance 2 tr K̃² tr L̃² / n²); `gamma_test` to the exact moments over
permutations. The two agree as n grows; in many dimensions the peer's moments are too large at small n, so that it
rejects too rarely. `cpu_peers.py` compares their times.

Needs the extra `benchmark` (causal-learn).
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from importlib.util import find_spec

import numpy as np
import torch

from frhsic.independence import gamma_test, permutation_test
from frhsic.kernels import Gaussian

PEER = "causallearn"


def data(n: int, d: int, seed: int, strength: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """Standardised columns, as the peer makes them; s depends on the first column of z by `strength`."""
    rng = np.random.default_rng(seed)
    z = rng.standard_normal((n, d))
    s = strength * z[:, :1] + rng.standard_normal((n, 1))
    return tuple((x - x.mean(0)) / x.std(0, ddof=1) for x in (z, s))  # type: ignore[return-value]  # two of them


def peer(z: np.ndarray, s: np.ndarray, width: float) -> float:
    from causallearn.utils.KCI.KCI import KCI_UInd

    return float(KCI_UInd(est_width="manual", kwidthx=width, kwidthy=1.0).compute_pvalue(z, s)[0])


def agreement(rows: list[int], draws: int) -> None:
    for d in (1, 50):
        width = float(np.sqrt(d))
        for n in rows:
            gaps, against, three, errors = [], [], [], []
            for seed in range(draws):
                z, s = data(n, d, seed, strength=0.03 * (seed % 3))
                ours = gamma_test(z, s, Gaussian(width), Gaussian(1.0)).pvalue
                if find_spec(PEER) is not None:
                    gaps.append(abs(ours - peer(z, s, width)))
                if seed < 10:
                    permuted = permutation_test(z, s, Gaussian(width), Gaussian(1.0), resamples=999, random_state=seed)
                    against.append(abs(ours - permuted.pvalue))
                    pearson = gamma_test(z, s, Gaussian(width), Gaussian(1.0))
                    three.append(abs(pearson.pvalue - permuted.pvalue))
                    errors.append(np.sqrt(permuted.pvalue * (1 - permuted.pvalue) / 999))
            record = {
                "n": n,
                "d": d,
                "largest gap to the peer": round(max(gaps), 4) if gaps else None,
                "mean gap to the peer": round(float(np.mean(gaps)), 4) if gaps else None,
                "largest gap to 999 permutations": round(max(against), 4),
                "the same with three moments": round(max(three), 4),
                "its simulation error": round(float(max(errors)), 4),
            }
            print(json.dumps(record), flush=True)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[1000, 2000])
    parser.add_argument("--draws", type=int, default=40, help="samples")
    options = parser.parse_args(argv)
    torch.set_num_threads(1)
    if find_spec(PEER) is None:
        print("causal-learn is not installed and is left out; `pip install frhsic[benchmark]` brings it.")
    agreement(options.rows, options.draws)


if __name__ == "__main__":
    main()
