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
from typing import Any, NamedTuple

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

SCREEN_ROWS, FINAL_ROWS = 6000, 8000
NEIGHBORS = 20
TREES = 100
WIDTHS = (2, 4, 8, 16)
RIDGES = np.logspace(-6, 4, 11)


# --- data ---


class Rows(NamedTuple):
    """X without the columns to recover, these columns as they are, and the attribute."""

    x: np.ndarray
    targets: np.ndarray
    s: np.ndarray


class Task(NamedTuple):
    """One split of a dataset: rows to train on, and those to measure on, by name."""

    seed: int
    names: tuple[str, ...]
    fit: Rows
    measure: dict[str, Rows]


@cache
def loaded(name: str) -> Dataset:
    return load_dataset(name)


def task_of(name: str, seed: int, rows: int | None, final: bool) -> Task:
    """Return one split: 60 % to train, 20 % to choose, 20 % to report."""
    data = loaded(name)
    split = data.split(seed, train=0.6, validation=0.2)
    held_out, columns = HELD_OUT[name], list(data.X.columns)
    recovered = [columns.index(column) for column in held_out.values()]
    sources = {data.features[j].source for j in recovered}
    kept = [j for j, feature in enumerate(data.features) if feature.source not in sources]

    def taken(part: Any, most: int | None) -> Rows:
        x, y, s = (values.double().numpy()[:most] for values in part)
        return Rows(x[:, kept], np.column_stack([x[:, recovered], y]), s.reshape(len(x), -1))

    parts = {"validation": split.validation} | ({"test": split.test} if final else {})
    half = None if rows is None else rows // 2
    return Task(
        seed, (*held_out, "target"), taken(split.train, rows), {k: taken(part, half) for k, part in parts.items()}
    )


# --- probes ---


def probe(kind: str) -> Any:
    """Return an unfitted model."""
    if kind == "boosted":
        return HistGradientBoostingRegressor(max_iter=TREES, early_stopping=False, random_state=0)
    return make_pipeline(
        StandardScaler(), RidgeCV(alphas=RIDGES) if kind == "linear" else KNeighborsRegressor(NEIGHBORS)
    )


def r2(kind: str, z: dict[str, np.ndarray], t: dict[str, np.ndarray]) -> dict[str, float]:
    """Fit a probe to the rows named "fit"; return its R² on the others."""
    model = probe(kind).fit(z["fit"], t["fit"])
    return {part: float(r2_score(t[part], model.predict(z[part]))) for part in z if part != "fit"}


def measured(task: Task, z: dict[str, np.ndarray]) -> dict[str, Any]:
    """Return leak and recovery of a representation of all rows, for each part that is measured on."""
    varies = z["fit"].std(0) > 1e-6
    z = {part: values[:, varies] if varies.any() else values for part, values in z.items()}
    rows = {"fit": task.fit, **task.measure}
    basis = RankSpline.fit(task.fit.s)
    coefficients, *_ = np.linalg.lstsq(basis(task.fit.s), task.fit.targets, rcond=None)
    whole = {part: of.targets for part, of in rows.items()}
    residual = {part: of.targets - basis(of.s) @ coefficients for part, of in rows.items()}
    record: dict[str, Any] = {part: {"leaks": {}, "recovery": {}, "partial": {}} for part in task.measure}
    with threadpool_limits(1):
        for kind in ("linear", "boosted", "neighbors"):
            for part, value in r2(kind, z, {part: of.s[:, 0] for part, of in rows.items()}).items():
                record[part]["leaks"][kind] = value
        # the screen chooses by partial recovery alone
        for what, targets in (("recovery", whole), ("partial", residual))[0 if "test" in task.measure else 1 :]:
            for j, name in enumerate(task.names):
                both = [r2(kind, z, {part: t[:, j] for part, t in targets.items()}) for kind in ("linear", "boosted")]
                for part in record:
                    record[part][what][name] = max(value[part] for value in both)
    return record


# --- representations without training ---


def erasure(x: np.ndarray, c: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    r"""Least-squares concept erasure (LEACE): :math:`r(x) = x - W^+ P W (x - \mu)` with :math:`W = \Sigma^{-1/2}`.

    P projects on the columns of :math:`W \Sigma_{xc}`. No linear map of r(x) predicts c, and among such affine maps r
    is the nearest to x (Belrose et al. 2023). Returns :math:`\mu` and the matrix to take off.
    """
    centered = x - x.mean(0)
    concept = (c - c.mean(0)) / np.maximum(c.std(0), 1e-12)
    variances, directions = np.linalg.eigh(centered.T @ centered / len(x))
    kept = variances > 1e-8 * variances.max()
    variances, directions = variances[kept], directions[:, kept]
    whiten, unwhiten = directions / np.sqrt(variances), directions * np.sqrt(variances)
    u, values, _ = np.linalg.svd(whiten.T @ (centered.T @ concept / len(x)), full_matrices=False)
    u = u[:, values > 1e-8]
    return x.mean(0), whiten @ u @ u.T @ unwhiten.T


def erased(x: dict[str, np.ndarray], concept: np.ndarray) -> dict[str, np.ndarray]:
    mean, off = erasure(x["fit"], concept)
    return {part: values - (values - mean) @ off for part, values in x.items()}


def untrained(task: Task) -> Iterator[tuple[str, int | None, dict[str, np.ndarray]]]:
    """Yield raw columns, principal components and erasures, with their names and the number of components."""
    x, s = inputs(task), task.fit.s
    yield "raw columns", None, x
    spline = RankSpline.fit(s)(s)
    for name, of_x, rows in (
        ("PCA", x, x["fit"]),
        ("PCA of residuals", x, residuals(x["fit"], s)),
        ("LEACE", erased(x, s), None),
        ("LEACE, spline", erased(x, spline), None),
    ):
        rows = of_x["fit"] if rows is None else rows
        components = PCA().fit(rows)
        for k in WIDTHS:
            if k < components.n_components_:
                yield name, k, {part: components.transform(values)[:, :k] for part, values in of_x.items()}
        if name.startswith("LEACE"):
            yield name, None, of_x


def inputs(task: Task) -> dict[str, np.ndarray]:
    return {"fit": task.fit.x, **{part: rows.x for part, rows in task.measure.items()}}


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
    rounded: float = 0.0  # Z in multiples of this, in standard deviations of its principal directions
    weights: tuple[float, ...] = (0.0, 1.0, 10.0, 30.0, 100.0, 300.0, 1000.0)

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


def trained(task: Task, candidate: Candidate, device: str) -> Iterator[tuple[float, dict[str, np.ndarray]]]:
    """Train one model for each weight, and yield weight and representations."""
    x, s, spline = task.fit.x, task.fit.s, RankSpline.fit(task.fit.s)(task.fit.s)
    rows, width, d = x, candidate.width, x.shape[1]
    encoder: Callable[[], nn.Module] = partial(mlp_encoder, d, candidate.hidden, width)
    penalty: Callable[[], HSIC] = candidate.penalty
    if candidate.decoder_sees_s:
        plain, rows, width = encoder, np.hstack([x, spline]), candidate.width + spline.shape[1]

        def encoder() -> nn.Module:
            return WithBasis(plain(), d)

        def penalty() -> HSIC:
            part = FirstColumns(candidate.kernel_z, scale_z=candidate.scale_z, head_weight=0.0)
            part.width = candidate.width
            return part

    recipe = Recipe(
        "reconstruction",
        penalty,
        encoder,
        partial(affine_head, width, d),
        epochs=candidate.epochs,
        batch_size=candidate.batch_size,
        learning_rate=candidate.learning_rate,
        weight_decay=candidate.weight_decay,
        variance_floor=0.0 if candidate.decoder_sees_s else candidate.floor,
    )
    members = [Member(weight, task.seed) for weight in candidate.weights]
    fleet = train(TrainingData.of(rows, candidate.targets(x, s), s), members, recipe, device=device)
    of_parts = {}
    for part, values in inputs(task).items():
        padded = np.hstack([values, np.zeros((len(values), rows.shape[1] - d))])
        of_parts[part] = fleet.transform(torch.from_numpy(padded).float())[:, :, : candidate.width].cpu().numpy()
    for i, weight in enumerate(candidate.weights):
        z = {part: values[i] for part, values in of_parts.items()}
        z = erased(z, spline) if candidate.erase else z
        if candidate.rounded:
            components = PCA().fit(z["fit"])
            unit = candidate.rounded * np.maximum(components.explained_variance_, 1e-12) ** 0.5
            z = {part: np.round(components.transform(values) / unit) for part, values in z.items()}
        yield weight, z


KERNELS = {
    "wide": 10 * (Linear() + Gaussian(1.0)),
    "half": 10 * (Linear() + Gaussian(0.5)),
    "narrow": 10 * (Linear() + Gaussian(0.5) + Gaussian(0.25)),
    "products": 10 * (Linear() + Linear() * Linear() + Gaussian(0.5)),
}
SMALL = Candidate("16", width=16)
NARROW = replace(SMALL, name="16, narrow", kernel_z=KERNELS["narrow"])
COLUMNS = (0.01, 0.1, 0.3, 1.0, 3.0, 10.0, 100.0)
SCREEN = (
    Candidate("columns, 50", target="columns", weights=COLUMNS),
    Candidate("frhsic", target="columns", published=True, floor=0.0, weights=(0.1, 1.0, 10.0, 100.0, 1000.0)),
    Candidate("columns, 16, narrow", target="columns", width=16, kernel_z=KERNELS["narrow"], weights=COLUMNS),
    Candidate("50"),
    SMALL,
    replace(SMALL, name="decoder sees s", decoder_sees_s=True, kernel_z=KERNELS["narrow"]),
    replace(SMALL, name="8", width=8),
    NARROW,
    replace(NARROW, name="4, narrow", width=4),
    replace(NARROW, name="200 epochs", epochs=200),
    replace(NARROW, name="standardized", target="standardized"),
    replace(NARROW, name="50, floor 0.1", width=50, floor=0.1),
    replace(NARROW, name="erased, 16", erase=True),
    replace(NARROW, name="erased, 32", erase=True, width=32),
    replace(NARROW, name="rounded 1", rounded=1.0),
    replace(NARROW, name="1024", batch_size=1024, learning_rate=3e-3),
    Candidate("published penalty", published=True, floor=0.0),
    Candidate("published penalty, floor", published=True),
    Candidate("published penalty, 16", published=True, width=16),
    Candidate("normalized", scale_z="normalized"),
    Candidate("normalized, half", scale_z="normalized", kernel_z=KERNELS["half"]),
    Candidate("normalized, half, no floor", scale_z="normalized", kernel_z=KERNELS["half"], floor=0.0),
    Candidate("normalized, 16, half", scale_z="normalized", kernel_z=KERNELS["half"], width=16),
    Candidate("normalized, narrow", scale_z="normalized", kernel_z=KERNELS["narrow"]),
    Candidate("by coordinate, half", scale_z="standardized", kernel_z=KERNELS["half"]),
)

FINAL = tuple(c for c in SCREEN if c.name in ("columns, 50", "frhsic", "50", "decoder sees s"))


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
        found: list[tuple[str, float | None, dict[str, np.ndarray]]]
        if self.candidate is None:
            found = list(untrained(task))
        else:
            found = [(self.candidate.name, *rest) for rest in trained(task, self.candidate, self.device)]
        head = {"dataset": self.dataset, "seed": self.seed, "job": self.key[2]}
        head["seconds"] = round(time.perf_counter() - started, 1)
        return [head | {"method": name, "weight": weight} | measured(task, z) for name, weight, z in found]


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


LEVELS = (0.75, 0.5, 0.25)
"""Leaks at which methods are compared, as shares of the leak of the raw columns."""


def leak(record: dict[str, Any], part: str) -> float:
    return max(0.0, *record[part]["leaks"].values())


def mean(record: dict[str, Any], part: str, what: str) -> float:
    return float(np.mean([max(0.0, value) for value in record[part][what].values()]))


def at_level(records: Sequence[dict[str, Any]], raw: dict[str, Any], share: float, part: str) -> tuple[float, float]:
    """Return leak and partial recovery on `part`, as shares of the raw columns'.

    The model is the one with the best partial recovery among those that leak at most this share, both on validation
    rows. Where no weight leaks so little, the representation that tells nothing has leak and recovery 0.
    """
    allowed = share * leak(raw, "validation")
    kept = [record for record in records if leak(record, "validation") <= allowed]
    if not kept:
        return 0.0, 0.0
    best = max(kept, key=lambda record: mean(record, "validation", "partial"))
    return leak(best, part) / leak(raw, part), mean(best, part, "partial") / mean(raw, part, "partial")


def print_table(records: Sequence[dict[str, Any]], part: str) -> None:
    """Print partial recovery of each method at each leak, one column for each dataset, and the mean over all."""
    datasets = list(dict.fromkeys(record["dataset"] for record in records))
    seeds = sorted({record["seed"] for record in records})
    print(f"{part} rows: leak and partial recovery, in % of the raw columns', where the leak on validation rows is at")
    print(f"most {' | '.join(f'{share:.0%}' for share in LEVELS)} of theirs; then the mean partial recovery of all")
    lines = []
    for method in dict.fromkeys(record["method"] for record in records):
        values = np.full((len(datasets), len(LEVELS), 2, len(seeds)), np.nan)
        for i, k in np.ndindex(len(datasets), len(seeds)):
            here = [r for r in records if (r["dataset"], r["seed"]) == (datasets[i], seeds[k])]
            raw = [r for r in here if r["method"] == "raw columns"]
            own = [r for r in here if r["method"] == method]
            if raw and own:
                values[i, :, :, k] = [at_level(own, raw[0], share, part) for share in LEVELS]
        shares = 100 * np.nanmean(values, axis=3)
        cells = ["|".join(f"{a:3.0f}{b:4.0f}" for a, b in dataset) for dataset in shares]
        lines.append((float(np.nanmean(shares[:, :, 1])), f"{method:20s} " + "   ".join(cells)))
    print(f"{'':20s} " + "   ".join(f"{dataset:23s}" for dataset in datasets))
    for score, line in sorted(lines, reverse=True):
        print(f"{line}   {score:5.1f}")


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
    rows = arguments.rows or (FINAL_ROWS if arguments.final else SCREEN_ROWS)
    names = [name.strip() for name in arguments.candidates.split(";") if name.strip()]
    candidates = [c for c in (FINAL if arguments.final else SCREEN) if not names or c.name in names]
    first = 200 if arguments.final else 100
    jobs = [
        Job(dataset, seed, candidate, arguments.final, rows, arguments.device)
        for candidate in (None, *candidates)
        for dataset in arguments.datasets.split(",")
        for seed in range(first, first + arguments.splits)
    ]
    started = time.perf_counter()
    records = run(jobs, arguments.jobs, out)
    for part in ("validation", "test") if arguments.final else ("validation",):
        print_table(records, part)
    print(f"{len(jobs)} jobs, {time.perf_counter() - started:.0f} s; records in {out}")


if __name__ == "__main__":
    main()
