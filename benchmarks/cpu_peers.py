"""HSIC, distance correlation, the gamma test and an audit on a CPU beside hyppo, dcor, causal-learn
and KeOps.

    python benchmarks/cpu_peers.py                     # every comparison; writes
                                                       results/cpu_peers.json
    python benchmarks/cpu_peers.py --only hsic,gamma   # some of them; the records of the others
                                                       stay

Both sides run in this process, in turns, on the same rows. After one small call each (for
just-in-time compilers), each side is timed `--repeats` times, and the smallest CPU time counts:
other work on the machine disturbs it less than the time on the clock. Memory is the highest
resident memory above what was resident before the call (Linux). Records are printed as they come;
they say by how much the two numbers differ, unless the peer computes another number. The program
names peers that are not installed and leaves them out; `make benchmark` brings them.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

THREADS = "OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"
if __name__ == "__main__":  # before the libraries read them
    os.environ.update(dict.fromkeys(THREADS, os.environ.get("OMP_NUM_THREADS", "1")))

import numpy as np  # noqa: E402  # after the numbers of threads
import torch  # noqa: E402

from frhsic import audit  # noqa: E402
from frhsic.dependence import distance_correlation, hsic  # noqa: E402
from frhsic.independence import gamma_test  # noqa: E402
from frhsic.kernels import Gaussian, Laplacian  # noqa: E402
from frhsic_paper.records import hardware  # noqa: E402
from frhsic_paper.statistics.published import gamma_test_two_moments  # noqa: E402

RESULTS = Path(__file__).parent / "results" / "cpu_peers.json"
PEERS = "hyppo", "dcor", "causal-learn", "pykeops", "numpy"
Rows = np.ndarray
Call = Callable[[Rows, Rows], float]


@dataclass(frozen=True)
class Comparison:
    """One call of ours beside one of a peer: the size, and what to know about the peer's number."""

    section: str
    task: str
    peer: str
    n: int
    columns: int
    ours: Call
    theirs: Callable[[], Call]
    note: str = ""
    same: bool = True


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--only", default="hsic,dense,distance,gamma,audit", help="sections, separated by commas"
    )
    parser.add_argument("--scale", type=float, default=1.0, help="multiplies all numbers of rows")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    sections, installed = options.only.split(","), {}
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    for peer in PEERS:
        try:
            installed[peer] = version(peer)
        except PackageNotFoundError:
            print(f"{peer} is not installed and is left out; `make benchmark` brings it.")
    old = json.loads(options.out.read_text()) if options.out.exists() else {"records": []}
    records = [record for record in old["records"] if record["section"] not in sections]
    content = {
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
        "machine": old.get("machine", hardware(torch.device("cpu"))),
        "peers": old.get("peers", {}) | installed,
        "records": records,
    }
    for comparison in comparisons(options.scale):
        if comparison.section in sections and comparison.peer in installed:
            records.append(measured(comparison, options.repeats))
            print(records[-1], flush=True)
            options.out.write_text(json.dumps(content, indent=1) + "\n")


def sample(n: int, columns: int) -> tuple[Rows, Rows]:
    """Standardised columns, as causal-learn makes them; s depends weakly on the first of z."""
    rng = np.random.default_rng(n + columns)
    z = rng.standard_normal((n, columns))
    s = 0.05 * z[:, :1] + rng.standard_normal((n, 1))
    return tuple((x - x.mean(0)) / x.std(0, ddof=1) for x in (z, s))  # type: ignore[return-value]


def comparisons(scale: float) -> Iterator[Comparison]:
    few, some, many = (max(60, int(scale * n)) for n in (2000, 5000, 10_000))
    part, limit = (
        "p-value and distance correlation alone",
        "p-value of a gamma with the moments of the limit",
    )
    for d in (1, 50):
        w = math.sqrt(d)
        ours_hsic = partial(ours_with, (Gaussian(w), Gaussian(1.0)))
        ratio, hsic_learn, hsic_keops = (
            partial(hyppo_given, w),
            partial(causal_learn_hsic, w),
            partial(keops_hsic, w),
        )
        yield Comparison(
            "hsic", "HSIC divided by its norms", "hyppo", some, d, ours_effect(w), ratio, "its root"
        )
        yield Comparison("hsic", "HSIC", "causal-learn", some, d, ours_hsic, hsic_learn, "times n²")
        yield Comparison("hsic", "HSIC", "pykeops", some, d, ours_hsic, hsic_keops)
        n, note = (
            (some, "O(n log n)") if d == 1 else (few, "holds n² d numbers, hence the smaller n")
        )
        yield Comparison(
            "distance", "distance correlation", "dcor", n, d, ours_distance, dcor_distance, note
        )
        test = partial(causal_learn_test, w)
        yield Comparison("gamma", "gamma test", "causal-learn", many, d, ours_gamma(w), test, limit)
    for name, d, kernel, share, tails in (
        ("HSIC", 1, Gaussian, 1.0, 0.0),
        ("HSIC", 50, Gaussian, 1.0, 0.0),
        ("HSIC, Laplacian", 1, Laplacian, 1.0, 0.0),
        ("HSIC, heavy tails", 1, Gaussian, 1.0, 2.0),
        ("HSIC, bandwidth of .01", 1, Gaussian, 0.01, 0.0),
    ):
        kernels = kernel(share * math.sqrt(d)), kernel(share)
        ours = partial(stretched, tails, partial(ours_with, kernels))
        theirs = partial(partial, stretched, tails, partial(numpy_hsic, kernels))
        yield Comparison("dense", name, "numpy", some, d, ours, theirs)
    yield Comparison(
        "audit",
        "audit of a score",
        "hyppo",
        some,
        1,
        ours_audit,
        hyppo_dcor_audit,
        part,
        same=False,
    )


# --- ours
# --------------------------------------------------------------------------------------------------


def ours_with(kernels: Any, z: Rows, s: Rows) -> float:
    return float(hsic(z, s, *kernels))


def stretched(tails: float, call: Call, z: Rows, s: Rows) -> float:
    """Call with columns of heavy tails, if these are asked for."""
    return call(np.sinh(tails * z) if tails else z, np.sinh(tails * s) if tails else s)


def ours_effect(width: float) -> Call:
    return lambda z, s: (
        gamma_test_two_moments(
            z, s, Gaussian(width), Gaussian(width), moments="permutation"
        ).effect_size
    )


def ours_distance(z: Rows, s: Rows) -> float:
    return float(distance_correlation(z, s))


def ours_gamma(width: float) -> Call:
    return lambda z, s: gamma_test(z, s, Gaussian(width), Gaussian(1.0)).pvalue


def ours_audit(z: Rows, s: Rows) -> float:
    return float(len(audit(1 / (1 + np.exp(-z[:, 0])), s[:, 0]).attributes))


# --- the peers
# --------------------------------------------------------------------------------------------------


def hyppo_given(width: float) -> Call:
    from hyppo.independence import Hsic

    return lambda z, s: (
        float(Hsic(bias=True, gamma=1 / (2 * width**2)).statistic(z, s)) ** 2
    )  # it gives the root


def causal_learn(width: float) -> Any:
    from causallearn.utils.KCI.KCI import KCI_UInd

    return KCI_UInd(est_width="manual", kwidthx=width, kwidthy=1.0)


def causal_learn_hsic(width: float) -> Call:
    test = causal_learn(width)
    return lambda z, s: float(test.HSIC_V_statistic(*test.kernel_matrix(z, s))[0]) / len(z) ** 2


def causal_learn_test(width: float) -> Call:
    test = causal_learn(width)
    return lambda z, s: float(test.compute_pvalue(z, s)[0])


def keops_hsic(width: float) -> Call:
    from pykeops.torch import LazyTensor

    def gram(x: Rows, bandwidth: float) -> Any:
        x = torch.tensor(x)
        return (
            -((LazyTensor(x[:, None]) - LazyTensor(x[None])) ** 2).sum(-1) / (2 * bandwidth**2)
        ).exp()

    def call(z: Rows, s: Rows) -> float:
        n, k, l = len(z), gram(z, width), gram(s, 1.0)
        a, b = k.sum(1) / n, l.sum(1) / n
        return float((k * l).sum(1).sum() / n**2 - 2 * (a * b).mean() + a.mean() * b.mean())

    return call


def numpy_hsic(kernels: Any, z: Rows, s: Rows) -> float:
    """HSIC of two dense matrices, as anybody would write it."""

    def gram(x: Rows, kernel: Any) -> Rows:
        squares = (x**2).sum(1)
        away = np.maximum(squares[:, None] + squares - 2 * x @ x.T, 0)
        if isinstance(kernel, Laplacian):
            return np.exp(-np.sqrt(away) / kernel.bandwidth)
        return np.exp(-away / (2 * kernel.bandwidth**2))

    k, l = (gram(x, kernel) for x, kernel in zip((z, s), kernels))
    a, b = k.mean(1), l.mean(1)
    return float((k * l).mean() - 2 * (a * b).mean() + a.mean() * b.mean())


def dcor_distance() -> Call:
    from dcor import distance_correlation as peer

    return lambda z, s: float(peer(z, s))


def hyppo_dcor_audit() -> Call:
    from dcor import distance_correlation as peer
    from hyppo.independence import Hsic

    def call(z: Rows, s: Rows) -> float:
        peer(z, s)
        return float(Hsic().test(z, s, auto=True).pvalue)

    return call


# --- measuring
# --------------------------------------------------------------------------------------------------


def measured(comparison: Comparison, repeats: int) -> dict[str, Any]:
    """Return the record of a comparison: CPU seconds and memory of both sides, their values and the
    ratio.
    """
    calls = {"ours": comparison.ours, "peer": comparison.theirs()}
    for call in calls.values():
        quietly(call, *sample(min(300, comparison.n), comparison.columns))
    z, s = sample(comparison.n, comparison.columns)
    seconds: dict[str, list[float]] = {side: [] for side in calls}
    values, memory = {}, dict.fromkeys(calls, 0.0)
    for _ in range(repeats):
        for side, call in calls.items():
            Path("/proc/self/clear_refs").write_text(
                "5"
            )  # VmHWM starts again from what is resident now
            before = resident("VmRSS")
            start = time.process_time()
            values[side] = quietly(call, z, s)
            seconds[side].append(time.process_time() - start)
            memory[side] = max(memory[side], resident("VmHWM") - before)
    best = {side: min(times) for side, times in seconds.items()}
    described = {k: v for k, v in asdict(comparison).items() if k not in ("ours", "theirs")}
    return {
        **described,
        "machine": hardware(torch.device("cpu")),
        "seconds": best,
        "ratio": best["peer"] / max(best["ours"], 1e-6),
        "megabytes": memory,
        "values": values,
        "difference": abs(values["ours"] - values["peer"]) if comparison.same else None,
    }


def quietly(call: Call, z: Rows, s: Rows) -> float:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the peers' own deprecations
        return call(z, s)


def resident(field: str) -> float:
    """MB of resident memory, now (VmRSS) or at its highest (VmHWM)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(text.split()[1]) / 1000 for text in lines if text.startswith(field))


if __name__ == "__main__":
    main()
