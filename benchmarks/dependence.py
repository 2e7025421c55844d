"""Time and peak memory of one dependence statistic: this library beside hyppo, dcor and causal-learn.

Run ``python benchmarks/dependence.py`` after ``make benchmark``. Each figure comes from a process of its own. It loads
data and libraries, runs a small problem first (for just-in-time compilers), and then measures the time (best of
`--repeats`, with CPU time beside it, which a busy machine disturbs less) and the highest resident memory above what was
resident before. The program names and skips what would need more than 20 GiB, more memory than is free or more than two
minutes, and peers that are not installed.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path

GIB = 1024.0  # MiB
LIMIT_MIB = 20 * GIB
LIMIT_SECONDS = 120


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[1000, 2000, 5000, 10_000])
    parser.add_argument("--columns", type=int, default=50)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only-peers", action="store_true", help="leave out the large problems of this library")
    parser.add_argument("--large", type=int, nargs=3, default=[20_000, 50_000, 200_000], help="sizes of those")
    parser.add_argument("--here", action="store_true", help="measure in this process: quicker, memory less exact")
    parser.add_argument("--measure", nargs=2, metavar=("WHAT", "N"), help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if options.measure:
        warnings.simplefilter("ignore")  # the peers' own deprecations
        what, n = options.measure
        print(json.dumps(measure(what, int(n), options.columns, options.repeats)))
        return
    print(f"d = {options.columns}, {options.threads} threads, best of {options.repeats}; memory above the inputs.")
    print("The last three columns are multiples of ours.\n")
    compare(options)
    if not options.only_peers:
        large(options)


# --- what is measured: name -> (statistic, MiB needed for n rows of d columns, known from their allocations) --------


def ours_hsic() -> Callable[..., object]:
    from frhsic.dependence import hsic

    return hsic


def ours_hsic_fixed() -> Callable[..., object]:
    from frhsic.dependence import hsic
    from frhsic.kernels import Gaussian

    return lambda z, s: hsic(z, s, Gaussian(10.0), Gaussian(1.0))


def ours_hsic_backward() -> Callable[..., object]:
    import torch

    from frhsic.dependence import hsic
    from frhsic.kernels import Gaussian

    def call(z: object, s: object) -> object:
        rows = torch.as_tensor(z).requires_grad_()
        hsic(rows, s, Gaussian(10.0), Gaussian(1.0)).backward()
        return rows.grad

    return call


def ours_features() -> Callable[..., object]:
    from frhsic.dependence import hsic_features

    return lambda z, s: hsic_features(z, s, random_state=0)


def ours_distance() -> Callable[..., object]:
    from frhsic.dependence import distance_correlation

    return distance_correlation


def hyppo_hsic() -> Callable[..., object]:
    from hyppo.independence import Hsic

    return lambda z, s: Hsic().statistic(z, s)


def causal_learn_hsic() -> Callable[..., object]:
    from causallearn.utils.KCI.KCI import KCI_UInd

    def statistic(z: object, s: object) -> object:
        test = KCI_UInd(est_width="median")
        return test.HSIC_V_statistic(*test.kernel_matrix(z, s))[0]

    return statistic


def dcor_distance() -> Callable[..., object]:
    from dcor import distance_correlation

    return distance_correlation


SUBJECTS: dict[str, tuple[Callable[[], Callable[..., object]], Callable[[int, int], float]]] = {
    "frhsic hsic": (ours_hsic, lambda n, d: 300),
    "hyppo Hsic().statistic": (hyppo_hsic, lambda n, d: 10 * n * n * 8 / 2**20),
    "causal-learn HSIC_V_statistic": (causal_learn_hsic, lambda n, d: 8 * n * n * 8 / 2**20),
    "frhsic distance_correlation": (ours_distance, lambda n, d: 300),
    "dcor distance_correlation": (dcor_distance, lambda n, d: n * n * d * 8 / 2**20),
}
PEERS = {"hyppo": "hyppo", "causal-learn": "causallearn", "dcor": "dcor"}  # the first word of a subject: its module
LARGE: dict[str, Callable[[], Callable[..., object]]] = {
    "hsic, kernels given": ours_hsic_fixed,
    "hsic and its gradient": ours_hsic_backward,
    "hsic_features": ours_features,
}


# --- one figure, in this process ------------------------------------------------------------------------------------


def measure(what: str, n: int, columns: int, repeats: int) -> dict[str, float]:
    import numpy as np

    make = SUBJECTS[what][0] if what in SUBJECTS else LARGE[what]
    statistic = make()
    rng = np.random.default_rng(0)
    z = rng.standard_normal((n, columns))
    s = z[:, :1] + rng.standard_normal((n, 1))
    statistic(z[:300].copy(), s[:300].copy())
    times: list[float] = []
    work: list[float] = []
    peak = 0.0
    for _ in range(repeats):
        before = reset_peak()
        start, start_cpu = time.perf_counter(), time.process_time()
        statistic(z, s)
        times.append(time.perf_counter() - start)
        work.append(time.process_time() - start_cpu)
        peak = max(peak, resident("VmHWM") - before)
        if sum(times) > LIMIT_SECONDS / 2:
            break
    return {"seconds": min(times), "cpu": min(work), "mebibytes": peak}


def resident(field: str) -> float:
    """MiB of resident memory, now (VmRSS) or at its highest (VmHWM)."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) / 1024
    raise RuntimeError(f"{field} is not told by this system; the benchmark needs Linux.")


def reset_peak() -> float:
    Path("/proc/self/clear_refs").write_text("5")  # VmHWM starts again from what is resident now
    return resident("VmRSS")


# --- tables ---------------------------------------------------------------------------------------------------------


def measured(what: str, n: int, options: argparse.Namespace) -> dict[str, float] | str:
    """Return the figures of a subject, or a line that says why there are none."""
    module = PEERS.get(what.split()[0])
    if module is not None and find_spec(module) is None:
        return f"not run: {what.split()[0]} is not installed; `make benchmark` brings it"
    return measure(what, n, options.columns, options.repeats) if options.here else in_own_process(what, n, options)


def in_own_process(what: str, n: int, options: argparse.Namespace) -> dict[str, float] | str:
    threads = {name: str(options.threads) for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")}
    command = [sys.executable, __file__, "--columns", str(options.columns), "--repeats", str(options.repeats)]
    try:
        done = subprocess.run(
            [*command, "--measure", what, str(n)],
            env={**os.environ, **threads},
            capture_output=True,
            text=True,
            timeout=LIMIT_SECONDS,
        )
    except subprocess.TimeoutExpired:
        return f"over {LIMIT_SECONDS} s"
    if done.returncode:
        last = done.stderr.strip().splitlines()
        return last[-1] if last else f"stopped with status {done.returncode}"
    result: dict[str, float] = json.loads(done.stdout.strip().splitlines()[-1])
    return result


def compare(options: argparse.Namespace) -> None:
    print(f"{'n':>7}  {'statistic':<30} {'seconds':>8} {'CPU s':>8} {'MiB':>7} {'time':>8} {'CPU':>8} {'memory':>8}")
    for n in options.sizes:
        reference: dict[str, float] | None = None
        for what, (_, needs) in SUBJECTS.items():
            needed = needs(n, options.columns)
            if needed > min(LIMIT_MIB, 0.9 * available()):
                print(f"{n:>7}  {what:<30} not run: it would need about {needed / GIB:.0f} GiB")
                continue
            got = measured(what, n, options)
            if isinstance(got, str):
                print(f"{n:>7}  {what:<30} {got}")
                continue
            if what.startswith("frhsic"):  # the peers below it in the table are compared with it
                reference = got
            line = f"{n:>7}  {what:<30} {got['seconds']:>8.3f} {got['cpu']:>8.3f} {got['mebibytes']:>7.0f}"
            if reference is not None and reference is not got:
                least = {"seconds": 1e-6, "cpu": 1e-6, "mebibytes": 1.0}  # below a mebibyte a page more or less decides
                ratio = {key: got[key] / max(reference[key], least[key]) for key in got}
                line += f" {ratio['seconds']:>7.1f}x {ratio['cpu']:>7.1f}x {ratio['mebibytes']:>7.1f}x"
            print(line, flush=True)


def available() -> float:
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable"):
            return int(line.split()[1]) / 1024
    return LIMIT_MIB


def large(options: argparse.Namespace) -> None:
    print(f"\n{'n':>7}  {'frhsic alone':<30} {'seconds':>8} {'CPU s':>8} {'MiB':>7}")
    middle, more, most = options.large
    once = argparse.Namespace(**{**vars(options), "repeats": 1})
    forward: dict[str, float] = {}
    both: dict[str, float] = {}
    for what, n, how in (
        ("hsic, kernels given", middle, options),
        ("hsic and its gradient", middle, options),
        ("hsic, kernels given", more, once),
        ("frhsic hsic", more, once),
        ("hsic_features", most, once),
    ):
        got = measured(what, n, how)
        if isinstance(got, str):
            print(f"{n:>7}  {what:<30} {got}")
            continue
        print(f"{n:>7}  {what:<30} {got['seconds']:>8.3f} {got['cpu']:>8.3f} {got['mebibytes']:>7.0f}", flush=True)
        if n == middle:
            forward, both = (got, both) if what == "hsic, kernels given" else (forward, got)
    if forward and both:
        ratios = (both[key] / forward[key] for key in ("seconds", "cpu"))
        print("forward and backward together, over the forward: {:.2f} in time, {:.2f} in CPU time".format(*ratios))


if __name__ == "__main__":
    main()
