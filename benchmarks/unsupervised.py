r"""Representations without a target: what is left of S, and what other targets can still be recovered.

    PYTHONPATH=src FRHSIC_DATA=... python benchmarks/unsupervised.py --screen --device cuda --jobs 16
    PYTHONPATH=src FRHSIC_DATA=... python benchmarks/unsupervised.py --final --device cuda --jobs 16 --splits 5

For each dataset its target and a few columns are taken out of X. An encoder sees the rest, and S while it is trained.
Probes are then fitted on the training rows of Z, and measured on validation rows (``--screen``, on which everything is
chosen) or on test rows (``--final``):

leak
    R² of S, the largest of ridge regression, boosted trees and nearest neighbours.
recovery
    R² of each column that was taken out, the larger of ridge regression and boosted trees; the mean over columns.
partial recovery
    The same after E[column | S] is taken out of the column: all that a representation without S can hold of it.

Both kinds of recovery are also given as a share of what the raw columns reach.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, replace
from functools import cache, partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.decomposition import PCA
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import RidgeCV
from sklearn.metrics import r2_score
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits
from torch import Tensor, nn

from frhsic.datasets import Dataset, load_dataset
from frhsic.fleet import Member, Recipe, TrainingData, affine_head, mlp_encoder, train
from frhsic.fleet.residuals import RankSpline, residuals
from frhsic.kernels import Gaussian, Kernel, Linear
from frhsic.penalties import HSIC
from frhsic.penalties.base import Batch

HELD_OUT: dict[str, dict[str, str]] = {
    "adult": {"hours": "hours-per-week", "sex": "sex=Female", "married": "marital-status=Married-civ-spouse"},
    "acs_income": {"hours": "WKHP", "sex": "SEX=2", "married": "MAR=1"},
    "meps": {"sex": "SEX=2", "blood pressure": "HIBPDX=1", "high income": "POVCAT15=5"},
    "crime": {"unemployed": "PctUnemployed", "median income": "medIncome", "no school": "PctNotHSGrad"},
    "compas": {"priors": "priors_count", "felony": "c_charge_degree=F"},
}
"""Columns that are taken out of X, with all levels of their source, to be recovered beside the dataset's own target."""

SCREEN_ROWS = 6000
NEIGHBORS = 20
TREES = 100
RIDGES = np.logspace(-6, 4, 11)


# --- data ---


@dataclass(frozen=True)
class Rows:
    """Rows of one split: X without the columns to recover, these columns as they are, and the attribute."""

    x: np.ndarray
    targets: np.ndarray
    s: np.ndarray


@dataclass(frozen=True)
class Task:
    """Training rows of one split of a dataset, and the rows that probes are measured on."""

    dataset: str
    seed: int
    names: tuple[str, ...]
    fit: Rows
    measure: Rows


@cache
def loaded(name: str) -> Dataset:
    return load_dataset(name)


def task_of(name: str, seed: int, rows: int | None, final: bool) -> Task:
    """Return one split: 60 % to train, 20 % to choose, 20 % to report."""
    data = loaded(name)
    split = data.split(seed, train=0.6, validation=0.2)
    sources = {feature.name: feature.source for feature in data.features}
    held_out = HELD_OUT[name]
    out = {sources[column] for column in held_out.values()}
    columns = list(data.X.columns)
    kept = [j for j, column in enumerate(columns) if sources[column] not in out]
    recovered = [columns.index(column) for column in held_out.values()]

    def taken(part: Any, most: int | None) -> Rows:
        x = part.x.double().numpy()[:most]
        targets = np.column_stack([x[:, recovered], part.y.double().numpy()[:most]])
        return Rows(x[:, kept], targets, part.s.double().numpy()[:most].reshape(len(x), -1))

    measured = split.test if final else split.validation
    names = (*held_out, "target")
    return Task(name, seed, names, taken(split.train, rows), taken(measured, None if rows is None else rows // 2))


# --- probes ---


def linear() -> Any:
    return make_pipeline(StandardScaler(), RidgeCV(alphas=RIDGES))


def boosted() -> Any:
    return HistGradientBoostingRegressor(max_iter=TREES, early_stopping=False, random_state=0)


def neighbors() -> Any:
    return make_pipeline(StandardScaler(), KNeighborsRegressor(NEIGHBORS))


def r2(model: Any, z: np.ndarray, t: np.ndarray, z_new: np.ndarray, t_new: np.ndarray) -> float:
    return float(r2_score(t_new, model.fit(z, t).predict(z_new)))


def measured(task: Task, z: np.ndarray, z_new: np.ndarray, final: bool) -> dict[str, Any]:
    """Return leak and recovery of one representation: z of the training rows, z_new of those to measure on.

    The screen leaves out the recovery of whole columns: it chooses by the partial one.
    """
    fit, new = task.fit, task.measure
    varies = z.std(0) > 1e-6
    z, z_new = (part[:, varies] if varies.any() else part for part in (z, z_new))
    with threadpool_limits(1):
        leaks = {make.__name__: r2(make(), z, fit.s[:, 0], z_new, new.s[:, 0]) for make in (linear, boosted, neighbors)}
        mean, mean_new = conditional_means(fit.targets, fit.s, new.s)
        recovery, partial_recovery = {}, {}
        for j, name in enumerate(task.names):
            t, t_new = fit.targets[:, j], new.targets[:, j]
            if final:
                recovery[name] = max(r2(make(), z, t, z_new, t_new) for make in (linear, boosted))
            t, t_new = t - mean[:, j], t_new - mean_new[:, j]
            partial_recovery[name] = max(r2(make(), z, t, z_new, t_new) for make in (linear, boosted))
    return {
        "leaks": leaks,
        "leak": max(0.0, *leaks.values()),
        "recovery": recovery,
        "partial": partial_recovery,
        "rank": int(np.linalg.matrix_rank(z - z.mean(0), tol=1e-4 * len(z) ** 0.5)),
    }


def conditional_means(t: np.ndarray, s: np.ndarray, s_new: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return E[t | s] of the rows it is fitted to and of others."""
    basis = RankSpline.fit(s)
    coefficients, *_ = np.linalg.lstsq(basis(s), t, rcond=None)
    return basis(s) @ coefficients, basis(s_new) @ coefficients


# --- representations without training ---


def erasure(x: np.ndarray, c: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    r"""Least-squares concept erasure (LEACE): :math:`r(x) = x - W^+ P W (x - \mu)` with :math:`W = \Sigma^{-1/2}`.

    P projects on the columns of :math:`W \Sigma_{xc}`. No linear map of r(x) predicts c, and among such affine maps r
    is the nearest to x (Belrose et al. 2023). Returns :math:`\mu` and the matrix to take off.
    """
    centered, concept = x - x.mean(0), c - c.mean(0)
    variances, directions = np.linalg.eigh(centered.T @ centered / len(x))
    kept = variances > 1e-8 * variances.max()
    variances, directions = variances[kept], directions[:, kept]
    whiten, unwhiten = directions / np.sqrt(variances), directions * np.sqrt(variances)
    u, values, _ = np.linalg.svd(whiten.T @ (centered.T @ concept / len(x)), full_matrices=False)
    u = u[:, values > 1e-8 * max(values.max(), 1e-30)]
    return x.mean(0), whiten @ u @ u.T @ unwhiten.T


def erased(fit: np.ndarray, concept: np.ndarray, *parts: np.ndarray) -> list[np.ndarray]:
    mean, off = erasure(fit, concept)
    return [part - (part - mean) @ off for part in parts]


def untrained(task: Task, width: int) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Yield raw columns, principal components and erasures, with their names."""
    x, new, s = task.fit.x, task.measure.x, task.fit.s
    spline = RankSpline.fit(s)(s)
    yield "raw columns", x, new
    for name, rows in (("PCA", x), ("PCA of residuals", residuals(x, s))):
        components = PCA(min(width, *x.shape)).fit(rows)
        yield name, components.transform(x), components.transform(new)
    yield "LEACE", *erased(x, s, x, new)
    yield "LEACE, spline", *erased(x, spline, x, new)


# --- trained representations ---


@dataclass(frozen=True)
class Candidate:
    """One way to train an encoder; every field but the name is a choice to compare."""

    name: str
    target: str = "residuals"  # "columns" of [0, 1] as before; "residuals" of x of mean variance 1; or "standardized"
    decoder_sees_s: bool = False
    kernel_z: Kernel = 10 * (Linear() + Gaussian(1.0))
    scale_z: Any = "whitened"
    published: bool = False
    width: int = 50
    hidden: int = 50
    epochs: int = 50
    batch_size: int = 256
    learning_rate: float = 1e-3
    weight_decay: float = 0.0
    floor: float = 0.01
    erase: bool = False  # LEACE of the spline on Z after training
    weights: tuple[float, ...] = (0.0, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)

    def penalty(self) -> HSIC:
        return HSIC.published() if self.published else HSIC(self.kernel_z, scale_z=self.scale_z, head_weight=0.0)

    def targets(self, x: np.ndarray, s: np.ndarray) -> np.ndarray:
        if self.target == "columns":
            return x
        rest = x - x.mean(0) if self.decoder_sees_s else residuals(x, s)
        variance = x.var(0)
        if self.target == "standardized":
            return rest / np.sqrt(np.maximum(variance, 1e-2 * variance.mean()))
        return rest / np.sqrt(variance.mean())


class WithBasis(nn.Module):
    """Encoder of (x, basis of s) that leaves the basis as it is, so that the head sees it."""

    def __init__(self, encoder: nn.Module, columns: int) -> None:
        super().__init__()
        self.encoder, self.columns = encoder, columns

    def forward(self, rows: Tensor) -> Tensor:
        return torch.cat([self.encoder(rows[:, : self.columns]), rows[:, self.columns :]], dim=1)


class FirstColumns(HSIC):
    """HSIC of the first columns of z: the representation without the basis of s."""

    width = 0

    def _value(self, batch: Batch) -> Tensor:
        return super()._value(replace(batch, z=batch.z[:, : self.width]))


def trained(task: Task, candidate: Candidate, device: str) -> Iterator[tuple[float, np.ndarray, np.ndarray]]:
    """Train one model for each weight, and yield weight and representations."""
    x, s = task.fit.x, task.fit.s
    inputs, encoder = x, partial(mlp_encoder, x.shape[1], candidate.hidden, candidate.width)
    penalty: Callable[[], HSIC] = candidate.penalty
    head_width = candidate.width
    if candidate.decoder_sees_s:
        spline = RankSpline.fit(s)(s)
        inputs, head_width = np.hstack([x, spline]), candidate.width + spline.shape[1]
        plain = encoder
        encoder = lambda: WithBasis(plain(), x.shape[1])  # noqa: E731

        def penalty() -> HSIC:
            part = FirstColumns(candidate.kernel_z, scale_z=candidate.scale_z, head_weight=0.0)
            part.width = candidate.width
            return part

    targets = candidate.targets(x, s)
    recipe = Recipe(
        "reconstruction",
        penalty,
        encoder,
        partial(affine_head, head_width, targets.shape[1]),
        epochs=candidate.epochs,
        batch_size=candidate.batch_size,
        learning_rate=candidate.learning_rate,
        weight_decay=candidate.weight_decay,
        variance_floor=0.0 if candidate.decoder_sees_s else candidate.floor,
    )
    members = [Member(weight, task.seed) for weight in candidate.weights]
    fleet = train(TrainingData.of(inputs, targets, s), members, recipe, device=device)
    parts = []
    for rows in (x, task.measure.x):
        padded = np.hstack([rows, np.zeros((len(rows), inputs.shape[1] - x.shape[1]))])
        z = fleet.transform(torch.from_numpy(padded).float())[:, :, : candidate.width]
        parts.append(z.double().cpu().numpy())
    for i, weight in enumerate(candidate.weights):
        z, new = parts[0][i], parts[1][i]
        if candidate.erase:
            z, new = erased(z, RankSpline.fit(s)(s), z, new)
        yield weight, z.astype(np.float32), new.astype(np.float32)


KERNELS = {
    "wide": 10 * (Linear() + Gaussian(1.0)),
    "half": 10 * (Linear() + Gaussian(0.5)),
    "narrow": 10 * (Linear() + Gaussian(0.5) + Gaussian(0.25)),
    "products": 10 * (Linear() + Linear() * Linear() + Gaussian(0.5)),
}
SMALL = Candidate("residuals, 16", width=16)
SCREEN = (
    Candidate("columns, 50", target="columns", weights=(0.003, 0.03, 0.1, 0.3, 1.0, 10.0)),
    Candidate("frhsic", target="columns", published=True, floor=0.0, weights=(0.1, 1.0, 10.0, 100.0, 1000.0)),
    Candidate("residuals, 50"),
    SMALL,
    replace(SMALL, name="residuals, 8", width=8),
    replace(SMALL, name="decoder sees s", decoder_sees_s=True),
    replace(SMALL, name="standardized", target="standardized"),
    replace(SMALL, name="half", kernel_z=KERNELS["half"]),
    replace(SMALL, name="narrow", kernel_z=KERNELS["narrow"]),
    replace(SMALL, name="products", kernel_z=KERNELS["products"]),
    replace(SMALL, name="no floor", floor=0.0),
    replace(SMALL, name="decay", weight_decay=1e-3),
    replace(SMALL, name="erased", erase=True),
    replace(SMALL, name="batches of 1024", batch_size=1024, learning_rate=2e-3),
    replace(SMALL, name="200 epochs", epochs=200),
    replace(SMALL, name="hidden 200", hidden=200),
    replace(SMALL, name="learning rate 3e-3", learning_rate=3e-3),
    Candidate("half, 50", kernel_z=KERNELS["half"]),
    Candidate("products, 50", kernel_z=KERNELS["products"]),
)


# --- program ---


@dataclass(frozen=True)
class Job:
    """One split of one dataset, and how to represent it; None stands for everything that is not trained."""

    dataset: str
    seed: int
    candidate: Candidate | None
    final: bool
    rows: int | None
    device: str

    @property
    def key(self) -> tuple[str, int, str]:
        return self.dataset, self.seed, self.candidate.name if self.candidate else "untrained"

    def __call__(self) -> list[dict[str, Any]]:
        torch.set_num_threads(1)
        task = task_of(self.dataset, self.seed, self.rows, self.final)
        started = time.perf_counter()
        found: list[tuple[str, float | None, np.ndarray, np.ndarray]]
        if self.candidate is None:
            found = [(name, None, z, new) for name, z, new in untrained(task, 16)]
        else:
            found = [(self.candidate.name, *rest) for rest in trained(task, self.candidate, self.device)]
        seconds = time.perf_counter() - started
        head = {"dataset": self.dataset, "seed": self.seed, "job": self.key[2], "final": self.final}
        return [
            head | {"method": name, "weight": weight, "seconds": seconds} | measured(task, z, new, self.final)
            for name, weight, z, new in found
        ]


def run(jobs: Sequence[Job], processes: int, path: Path) -> list[dict[str, Any]]:
    """Run the jobs that the file does not hold yet, append their records to it, and return all records of them."""
    records = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    done = {(record["dataset"], record["seed"], record["job"]) for record in records}
    waiting = [job for job in jobs if job.key not in done]
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        for batch in results(waiting, processes):
            records += batch
            file.writelines(json.dumps(record) + "\n" for record in batch)
            file.flush()
    wanted = {job.key for job in jobs}
    return [record for record in records if (record["dataset"], record["seed"], record["job"]) in wanted]


def results(jobs: Sequence[Job], processes: int) -> Iterator[list[dict[str, Any]]]:
    if processes == 1:
        yield from (job() for job in jobs)
        return
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        for future in as_completed([pool.submit(job) for job in jobs]):
            yield future.result()


LEVELS = (0.5, 0.25, 0.1)
"""Leaks at which methods are compared, as shares of the leak of the raw columns."""


def frontier(records: Sequence[dict[str, Any]], raw: dict[str, Any], share: float) -> float:
    """Return the best partial recovery, as a share of the raw columns', of a model that leaks at most this share."""
    allowed = share * raw["leak"]
    kept = [mean(record["partial"]) for record in records if record["leak"] <= allowed]
    return max(kept, default=0.0) / mean(raw["partial"])


def mean(of: dict[str, float]) -> float:
    return float(np.mean([max(0.0, value) for value in of.values()]))


def print_table(records: Sequence[dict[str, Any]]) -> None:
    """Print the best partial recovery of each method at each leak, one column for each dataset, and the mean."""
    datasets = list(dict.fromkeys(record["dataset"] for record in records))
    methods = list(dict.fromkeys(record["method"] for record in records))
    print(f"partial recovery at a leak of at most {LEVELS} of that of the raw columns, as a share of theirs")
    lines = []
    for method in methods:
        values = []
        for dataset in datasets:
            per_seed = []
            for seed in {record["seed"] for record in records if record["dataset"] == dataset}:
                mine = [r for r in records if (r["dataset"], r["seed"]) == (dataset, seed)]
                raw = [r for r in mine if r["method"] == "raw columns"]
                if raw:
                    own = [r for r in mine if r["method"] == method]
                    per_seed.append([frontier(own, raw[0], share) for share in LEVELS])
            values.append(np.mean(per_seed, axis=0) if per_seed else np.full(len(LEVELS), np.nan))
        cells = " | ".join(" ".join(f"{v:.2f}" for v in value) for value in values)
        lines.append((float(np.nanmean(values)), f"{method:22s} {cells} | {np.nanmean(values):.3f}"))
    print(f"{'':22s} " + " | ".join(f"{dataset:14s}" for dataset in datasets))
    for _, line in sorted(lines, reverse=True):
        print(line)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    stage = parser.add_mutually_exclusive_group(required=True)
    stage.add_argument("--screen", action="store_true", help="compare candidates on validation rows")
    stage.add_argument("--final", action="store_true", help="measure what was chosen on test rows")
    parser.add_argument("--datasets", default=",".join(HELD_OUT))
    parser.add_argument("--splits", type=int, default=1)
    parser.add_argument("--candidates", default="", help="names, separated by semicolons; all by default")
    parser.add_argument("--rows", type=int, default=None, help="at most so many training rows, and half as many others")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--data", default=None, help="folder of raw data, as in FRHSIC_DATA")
    parser.add_argument("--out", type=Path, default=None)
    arguments = parser.parse_args(argv)
    if arguments.data is not None:
        os.environ["FRHSIC_DATA"] = arguments.data
    stage_name = "final" if arguments.final else "screen"
    out = arguments.out or Path(__file__).parent / "results" / f"unsupervised_{stage_name}.jsonl"
    rows = arguments.rows or (None if arguments.final else SCREEN_ROWS)
    names = [name.strip() for name in arguments.candidates.split(";") if name.strip()]
    candidates = [c for c in SCREEN if not names or c.name in names]
    first = 200 if arguments.final else 100
    jobs = [
        Job(dataset, seed, candidate, arguments.final, rows, arguments.device)
        for candidate in (None, *candidates)
        for dataset in arguments.datasets.split(",")
        for seed in range(first, first + arguments.splits)
    ]
    started = time.perf_counter()
    records = run(jobs, arguments.jobs, out)
    print_table(records)
    print(f"{len(jobs)} jobs, {time.perf_counter() - started:.0f} s; records in {out}")


if __name__ == "__main__":
    main()
