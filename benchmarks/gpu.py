"""Time, memory and error of exact HSIC on a GPU, and of training with the default penalty, in one
run.

    python benchmarks/gpu.py                        # every section, on the GPU
    python benchmarks/gpu.py --only hsic --most 18  # up to 2 ** 18 rows
    python benchmarks/gpu.py --only gradient,ties,training --penalties hsic --epochs 50

Sections: `hsic` (this library's GPU kernels, its tiles in float64 and plain PyTorch in float32 side
by side, for growing n, with the error relative to float64), `gradient`, `ties` (errors where rows
are independent and have few distinct values), `gamma` (the test of independence), `features`,
`training` (45 models on random data of Adult's shape, and one model on two columns). Times are
medians after a warm-up; memory is the highest above the inputs. The last table has the targets of
an H200 beside the results. All goes to a JSON file with the name of the GPU.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from frhsic.dependence import _gpu, hsic, hsic_features
from frhsic.independence import gamma_test
from frhsic.kernels import Gaussian
from frhsic.penalties import HSIC, Penalty
from frhsic.training import MLP, Member, Recipe, TrainingData, grid, train
from frhsic_paper.records import hardware

RESULTS = Path(__file__).parent / "results" / "gpu.json"
KERNELS = Gaussian(10.0), Gaussian(1.4)
COLUMNS = 50
PENALTIES: dict[str, Callable[[], Penalty] | None] = {
    "none": None,
    "published": HSIC.published,
    "hsic": HSIC,
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--only", default=",".join(SECTIONS), help="sections, separated by commas")
    parser.add_argument("--least", type=int, default=14, help="smallest power of two of rows")
    parser.add_argument("--most", type=int, default=20, help="largest power of two of rows")
    parser.add_argument("--epochs", type=int, default=200, help="epochs of the models on Adult")
    parser.add_argument(
        "--rows", type=int, default=26_048, help="rows of random data of Adult's shape"
    )
    parser.add_argument(
        "--penalties", default=",".join(PENALTIES), help="penalties to train with, by name"
    )
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    device = torch.device(options.device)
    name = hardware(device)
    records: dict[str, Any] = {"device": name, "torch": torch.__version__, "columns": COLUMNS}
    print(f"torch {torch.__version__} on {name}, d = {COLUMNS}")
    for section in options.only.split(","):
        records[section] = SECTIONS[section](options, device)
        print(f"\n{section}: {json.dumps(records[section], indent=1)}", flush=True)
    records["targets"] = against_targets(records)
    options.out.write_text(json.dumps(records, indent=1) + "\n")


def sample(n: int, device: torch.device, strength: float = 1.0) -> tuple[Tensor, Tensor]:
    generator = torch.Generator(device=device).manual_seed(n)
    z = torch.randn(n, COLUMNS, generator=generator, device=device)
    return z, strength * z[:, :1] + torch.randn(n, 1, generator=generator, device=device)


def plain_hsic(z: Tensor, s: Tensor) -> Tensor:
    """HSIC in float32 by PyTorch alone, by panels of rows: what one would write without a
    library.
    """
    n = len(z)
    joint = torch.zeros((), device=z.device)
    a, b = torch.empty(n, device=z.device), torch.empty(n, device=z.device)
    step = max(1, (1 << 28) // n)
    for i in range(0, n, step):
        k = torch.exp(torch.cdist(z[i : i + step], z).square() * (-0.5 / KERNELS[0].bandwidth ** 2))
        l = torch.exp((s[i : i + step] - s.mT).square() * (-0.5 / KERNELS[1].bandwidth ** 2))
        a[i : i + step], b[i : i + step] = k.mean(1), l.mean(1)
        joint += (k * l).sum() / n**2
    return joint - 2 * (a * b).mean() + a.mean() * b.mean()


@contextmanager
def tiles() -> Iterator[None]:
    """Leave the GPU kernels out: tiles in float64."""
    usable = _gpu.usable
    _gpu.usable = lambda x, **limits: False
    try:
        yield
    finally:
        _gpu.usable = usable


def measured(
    call: Callable[[], object], device: torch.device, repeats: int = 3
) -> dict[str, float]:
    """Return the median of the seconds of a call, and its peak memory in MB above what is held
    before.
    """
    call()
    seconds, peak = [], 0.0
    for _ in range(repeats):
        if device.type == "cuda":
            torch.cuda.synchronize()
            torch.cuda.reset_peak_memory_stats()
            held = torch.cuda.memory_allocated()
        start = time.perf_counter()
        call()
        if device.type == "cuda":
            torch.cuda.synchronize()
            peak = (torch.cuda.max_memory_allocated() - held) / 1e6
        seconds.append(time.perf_counter() - start)
    return {"seconds": sorted(seconds)[repeats // 2], "megabytes": peak}


def measure_hsic(options: argparse.Namespace, device: torch.device) -> list[dict[str, float]]:
    records = []
    for power in range(options.least, options.most + 1):
        n = 1 << power
        z, s = sample(n, device)
        ours = measured(partial(hsic, z, s, *KERNELS), device, 1 if power >= 20 else 3)
        record = {"n": n, **ours}
        if power <= 18:
            with tiles():
                double = measured(
                    lambda: hsic(z.double(), s.double(), *KERNELS),  # noqa: B023
                    device,
                    1,
                )
                truth = float(hsic(z.double(), s.double(), *KERNELS))
            plain = measured(partial(plain_hsic, z, s), device, 1)
            record |= {"tiles": double["seconds"], "plain": plain["seconds"], "value": truth}
            record |= {"error": abs(float(hsic(z, s, *KERNELS)) / truth - 1)}
            record |= {"plain_error": abs(float(plain_hsic(z, s)) / truth - 1)}
        records.append(record)
    return records


def measure_gradient(options: argparse.Namespace, device: torch.device) -> list[dict[str, float]]:
    records = []
    for power in sorted({min(16, options.most), min(17, options.most)}):
        z, s = sample(1 << power, device)

        def both(z: Tensor = z, s: Tensor = s) -> Tensor:
            rows = z.clone().requires_grad_()
            hsic(rows, s, *KERNELS).backward()
            assert rows.grad is not None
            return rows.grad

        record = {"n": 1 << power, **measured(both, device)}
        if power <= 16:
            with tiles():
                truth = both(z.double(), s.double())
            record["error"] = float((both() - truth).norm() / truth.norm())
        records.append(record)
    return records


def measure_ties(options: argparse.Namespace, device: torch.device) -> dict[str, float]:
    n = 1 << min(17, options.most)
    z, s = sample(n, device, 0.0)
    decision, years = (z[:, :1] > 0).float(), (4 * s).round() / 4
    cases = {
        "no ties": (z, s, *KERNELS),
        "s of few levels": (z, years, *KERNELS),
        "z and s of few levels": (z.round(), years, *KERNELS),
        "a decision and s of few levels": (decision, years, Gaussian(0.7), KERNELS[1]),
        "a decision and s": (decision, s, Gaussian(0.7), KERNELS[1]),
    }
    record = {}
    for name, (x, y, *kernels) in cases.items():
        with tiles():
            truth = float(hsic(x.double(), y.double(), *kernels))
        record[name] = abs(float(hsic(x, y, *kernels)) / truth - 1)
    return record


def measure_gamma(options: argparse.Namespace, device: torch.device) -> list[dict[str, float]]:
    records = []
    for power in sorted({min(15, options.most), min(18, options.most)}):
        z, s = sample(1 << power, device, 0.02)
        record = {"n": 1 << power, **measured(partial(gamma_test, z, s), device, 1)}
        record["pvalue"] = gamma_test(z, s).pvalue
        if power <= 15:
            with tiles():
                record["pvalue_float64"] = gamma_test(z.double(), s.double()).pvalue
        records.append(record)
    return records


def measure_features(options: argparse.Namespace, device: torch.device) -> list[dict[str, float]]:
    records = []
    for power in range(options.least, options.most + 1, 2):
        z, s = sample(1 << power, device)
        call = partial(hsic_features, z, s, *KERNELS, random_state=0)
        records.append({"n": 1 << power, **measured(call, device, 1)})
    return records


def measure_training(options: argparse.Namespace, device: torch.device) -> dict[str, float]:
    generator = torch.Generator().manual_seed(0)
    x = torch.rand(5, options.rows, 107, generator=generator)
    s = torch.rand(5, options.rows, 1, generator=generator)
    adult = TrainingData(x, (x[..., 0] + s[..., 0] > 1).float(), s)
    members = grid([0.0, 0.1, 0.5, 1, 5, 10, 50, 100, 500], range(42, 47), range(5))
    inputs = torch.rand(min(20_000, options.rows), 2, generator=generator)
    one = TrainingData.of(inputs, (inputs[:, 1] > 0.5).float(), inputs[:, :1])
    record: dict[str, float] = {}
    for name in options.penalties.split(","):
        penalty = PENALTIES[name]
        first, recipe = (Recipe("binary", penalty, epochs=epochs) for epochs in (1, options.epochs))
        record[f"first epoch, {name}"] = train(
            adult, members, first, device=device
        ).seconds  # compiles what it needs
        record[f"45 models, {name}"] = train(adult, members, recipe, device=device).seconds
        encoder = MLP(size=8)
        recipes = [Recipe("binary", penalty, encoder, epochs=epochs) for epochs in (10, 10, 50)]
        _, few, many = (
            train(one, [Member(1.0, 42)], recipe, device=device).seconds for recipe in recipes
        )
        record[f"one epoch, {name}"] = (many - few) / 40  # without the start
    return record


def against_targets(records: dict[str, Any]) -> list[dict[str, Any]]:
    """Return and print what was measured, each with the most that it may be on an H200."""
    by_rows = {
        part: {r["n"]: r for r in records.get(part, [])} for part in ("hsic", "gradient", "gamma")
    }
    training, ties = records.get("training", {}), records.get("ties", {})
    rows = [
        ("HSIC, 2**20 rows, s", by_rows["hsic"].get(1 << 20, {}).get("seconds"), 1.0),
        ("HSIC, 65,536 rows, s", by_rows["hsic"].get(1 << 16, {}).get("seconds"), 0.010),
        (
            "HSIC, largest error",
            max((r["error"] for r in records.get("hsic", []) if "error" in r), default=None),
            1e-5,
        ),
        (
            "value and gradient, 2**17 rows, s",
            by_rows["gradient"].get(1 << 17, {}).get("seconds"),
            0.120,
        ),
        (
            "value and gradient, 2**17 rows, MB",
            by_rows["gradient"].get(1 << 17, {}).get("megabytes"),
            200.0,
        ),
        ("gamma test, 2**18 rows, s", by_rows["gamma"].get(1 << 18, {}).get("seconds"), 1.0),
        ("independent, largest error", max(ties.values(), default=None), 1e-5),
        ("45 models, hsic, s", training.get("45 models, hsic"), 9.0),
        ("one epoch, hsic, s", training.get("one epoch, hsic"), 0.014),
    ]
    print(f"\n{'':36}{'measured':>10}{'target':>10}")
    found = []
    for name, value, target in rows:
        if value is not None:
            met = "met" if value <= target else "missed"
            print(f"{name:36}{value:>10.3g}{target:>10.3g}  {met}")
            found.append({"what": name, "measured": value, "target": target})
    return found


SECTIONS: dict[str, Callable[[argparse.Namespace, torch.device], Any]] = {
    "hsic": measure_hsic,
    "gradient": measure_gradient,
    "ties": measure_ties,
    "gamma": measure_gamma,
    "features": measure_features,
    "training": measure_training,
}

if __name__ == "__main__":
    main()
