r"""Representations without a target: what is left of S, and what other targets can still be recovered.

    PYTHONPATH=src FRHSIC_DATA=... python benchmarks/unsupervised.py --screen --device cuda --jobs 16
    PYTHONPATH=src FRHSIC_DATA=... python benchmarks/unsupervised.py --final --device cuda --jobs 16 --splits 5

For each dataset its target and a few columns are taken out of X. An encoder sees the rest, and S while it is trained.
Probes are fitted on its training rows and measured on validation rows (``--screen``) or test rows (``--final``). The
screen compared ways to train, with one hidden layer of 50 units, columns scaled by their range and 50 epochs; the final
measures the encoder of the library. The rows "columns" and "frhsic" of its records are encoders that reconstruct
columns, which the library had at the tag before-closed-form.

leak
    R² of S, the largest of ridge regression, boosted trees and nearest neighbours.
recovery
    R² of each column that was taken out, the larger of ridge regression and boosted trees; the mean over columns.
partial recovery
    The same after E[column | S] is taken out of the column: all that a representation without S can hold of it.
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

from frhsic import ParityEncoder
from frhsic.datasets import Dataset, load_dataset
from frhsic.estimators.encoder import RankSpline, residuals
from frhsic.kernels import Gaussian, Linear
from frhsic.penalties import HSIC
from frhsic.penalties.base import Batch
from frhsic.training import MLP, Member, Recipe, TrainingData, train

HELD_OUT: dict[str, dict[str, str]] = {
    "adult": {"hours": "hours-per-week", "sex": "sex=Female", "married": "marital-status=Married-civ-spouse"},
    "acs_income": {"hours": "WKHP", "sex": "SEX=2", "married": "MAR=1"},
    "meps": {"sex": "SEX=2", "blood pressure": "HIBPDX=1", "high income": "POVCAT15=5"},
    "crime": {"unemployed": "PctUnemployed", "median income": "medIncome", "no school": "PctNotHSGrad"},
    "compas": {"priors": "priors_count", "felony": "c_charge_degree=F"},
}
"""Columns that are taken out of X, with all levels of their source, to be recovered beside the dataset's own target."""

SCREEN_ROWS, FINAL_ROWS, NEIGHBORS, TREES = 6000, 8000, 20, 100
WIDTHS = (4, 16)
RIDGES = np.logspace(-6, 4, 11)
WHITENED = partial(HSIC, 10 * (Linear() + Gaussian(1.0)), head_weight=0.0)


class Rows(NamedTuple):
    """X without the columns to recover, these columns as they are, and the attribute."""

    x: np.ndarray
    targets: np.ndarray
    s: np.ndarray


class Task(NamedTuple):
    """One split of a dataset: rows to train on, and rows to measure on."""

    seed: int
    names: tuple[str, ...]
    fit: Rows
    measure: Rows


Pair = tuple[np.ndarray, np.ndarray]
"""Values of the rows to train on, and of those to measure on."""


@cache
def loaded(name: str) -> Dataset:
    return load_dataset(name)


def task_of(name: str, seed: int, rows: int, final: bool) -> Task:
    """Return one split: 60 % to train, 20 % to choose, 20 % to report; at most `rows` to train."""
    data = loaded(name)
    split = data.split(seed, train=0.6, validation=0.2)
    held_out, columns = HELD_OUT[name], list(data.X.columns)
    recovered = [columns.index(column) for column in held_out.values()]
    sources = {data.features[j].source for j in recovered}
    kept = [j for j, feature in enumerate(data.features) if feature.source not in sources]

    def taken(part: Any, most: int) -> Rows:
        x, y, s = (values.double().numpy()[:most] for values in part)
        return Rows(x[:, kept], np.column_stack([x[:, recovered], y]), s.reshape(len(x), -1))

    measure = taken(split.test if final else split.validation, rows // 2)
    return Task(seed, (*held_out, "target"), taken(split.train, rows), measure)


def probe(kind: str) -> Any:
    if kind == "boosted":
        return HistGradientBoostingRegressor(max_iter=TREES, early_stopping=False, random_state=0)
    return make_pipeline(
        StandardScaler(), RidgeCV(alphas=RIDGES) if kind == "linear" else KNeighborsRegressor(NEIGHBORS)
    )


def r2(kind: str, z: Pair, t: Pair) -> float:
    """Fit a probe to the training rows; return its R² on the others."""
    return float(r2_score(t[1], probe(kind).fit(z[0], t[0]).predict(z[1])))


def measured(task: Task, z: Pair) -> dict[str, Any]:
    """Return leak and recovery of a representation."""
    varies = z[0].std(0) > 1e-6
    z = (z[0][:, varies], z[1][:, varies]) if varies.any() else z
    fit, new, basis = task.fit, task.measure, RankSpline.fit(task.fit.s)
    coefficients, *_ = np.linalg.lstsq(basis(fit.s), fit.targets, rcond=None)
    residual = fit.targets - basis(fit.s) @ coefficients, new.targets - basis(new.s) @ coefficients
    record: dict[str, Any] = {"recovery": {}, "partial": {}}
    with threadpool_limits(1):
        s = fit.s[:, 0], new.s[:, 0]
        record["leaks"] = {kind: r2(kind, z, s) for kind in ("linear", "boosted", "neighbors")}
        for what, targets in (("recovery", (fit.targets, new.targets)), ("partial", residual)):
            for j, name in enumerate(task.names):
                t = targets[0][:, j], targets[1][:, j]
                record[what][name] = max(r2(kind, z, t) for kind in ("linear", "boosted"))
    return record


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


def erased(x: Pair, concept: np.ndarray) -> Pair:
    mean, off = erasure(x[0], concept)
    return x[0] - (x[0] - mean) @ off, x[1] - (x[1] - mean) @ off


def untrained(task: Task) -> Iterator[tuple[str, int | None, Pair]]:
    """Yield raw columns, erasures and principal components, with the number of these."""
    x, s = (task.fit.x, task.measure.x), task.fit.s
    linear, spline = erased(x, s), erased(x, RankSpline.fit(s)(s))
    yield "raw columns", None, x
    yield "LEACE", None, linear
    yield "LEACE, spline", None, spline
    for name, z, rows in (
        ("PCA", x, x[0]),
        ("PCA of residuals", x, residuals(x[0], s)),
        ("LEACE and PCA", linear, linear[0]),
        ("LEACE, spline, and PCA", spline, spline[0]),
    ):
        components = PCA().fit(rows)
        for k in WIDTHS:
            if k < components.n_components_:
                yield name, k, (components.transform(z[0])[:, :k], components.transform(z[1])[:, :k])


@dataclass(frozen=True)
class Candidate:
    """One way to train an encoder in the screen; every field but the name is a choice to compare."""

    name: str
    target: str = "residuals"  # "columns" of [0, 1] as before; "residuals" of x of mean variance 1; or "standardized"
    decoder_sees_s: bool = False
    penalty: Callable[[], HSIC] = WHITENED
    width: int = 50
    epochs: int = 50
    batch_size: int = 256
    learning_rate: float = 1e-3
    floor: float = 0.01
    erase: bool = False  # LEACE of the spline on Z after training
    weights: tuple[float, ...] = (0.0, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)

    def targets(self, x: np.ndarray, s: np.ndarray) -> np.ndarray:
        if self.target == "columns":
            return x
        rest = x - x.mean(0) if self.decoder_sees_s else residuals(x, s)
        variance = x.var(0)
        if self.target == "standardized":
            return rest / np.sqrt(np.maximum(variance, 1e-2 * variance.mean()))
        return rest / np.sqrt(variance.mean())

    def representations(self, task: Task, device: str) -> Iterator[tuple[float, Pair]]:
        """Train one model for each weight, and yield weight and representations."""
        x, s, spline = task.fit.x, task.fit.s, RankSpline.fit(task.fit.s)(task.fit.s)
        rows, width, d, penalty = x, self.width, x.shape[1], self.penalty
        encoder: Callable[[int], nn.Module] = MLP(size=width)
        if self.decoder_sees_s:
            rows, encoder, penalty = np.hstack([x, spline]), partial(WithBasis, d, width), partial(FirstColumns, width)
        recipe = Recipe(
            "reconstruction",
            penalty,
            encoder,
            epochs=self.epochs,
            batch_size=self.batch_size,
            learning_rate=self.learning_rate,
            weight_decay=0.0,
            variance_floor=0.0 if self.decoder_sees_s else self.floor,
        )
        members = [Member(weight, task.seed) for weight in self.weights]
        fleet = train(TrainingData.of(rows, self.targets(x, s), s), members, recipe, device=device)
        of_parts = []
        for values in (x, task.measure.x):
            padded = np.hstack([values, np.zeros((len(values), rows.shape[1] - d))])
            of_parts.append(fleet.transform(torch.from_numpy(padded).float())[:, :, : self.width].cpu().numpy())
        for i, weight in enumerate(self.weights):
            z = of_parts[0][i], of_parts[1][i]
            yield weight, erased(z, spline) if self.erase else z


class Estimator(NamedTuple):
    """An encoder of the library at some weights."""

    name: str
    make: Callable[..., ParityEncoder]
    weights: tuple[float, ...]

    def representations(self, task: Task, device: str) -> Iterator[tuple[float, Pair]]:
        """Fit one model for each weight, and yield weight and representations."""
        for weight in self.weights:
            model = self.make(penalty_weight=weight, random_state=task.seed, device=device)
            model.fit(task.fit.x, sensitive_features=task.fit.s)
            yield weight, (model.transform(task.fit.x), model.transform(task.measure.x))


class WithBasis(nn.Module):
    """Encoder of (x, basis of s) that leaves the basis as it is, so that the head sees it."""

    def __init__(self, columns: int, width: int, all_columns: int) -> None:
        super().__init__()
        self.encoder, self.columns = MLP(size=width)(columns), columns

    def forward(self, rows: Tensor) -> Tensor:
        return torch.cat([self.encoder(rows[:, : self.columns]), rows[:, self.columns :]], dim=1)


class FirstColumns(HSIC):
    """HSIC of the first columns of z: the representation without the basis of s."""

    def __init__(self, width: int) -> None:
        super().__init__(head_weight=0.0)
        self.width = width

    def _value(self, batch: Batch) -> Tensor:
        return super()._value(replace(batch, z=batch.z[:, : self.width]))


HALF = partial(HSIC, 10 * (Linear() + Gaussian(0.5)), head_weight=0.0)
PRODUCTS = partial(HSIC, 10 * (Linear() + Linear() * Linear() + Gaussian(0.5)), head_weight=0.0)
DEFAULT = Candidate("residuals")
SMALL = replace(DEFAULT, name="16", width=16)
COLUMNS = Candidate("columns", target="columns", weights=(0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 100.0))
PUBLISHED = Candidate("frhsic", "columns", penalty=HSIC.published, floor=0.0, weights=(0.1, 1.0, 10.0, 100.0, 1000.0))
SCREEN = (
    DEFAULT,
    COLUMNS,
    PUBLISHED,
    replace(DEFAULT, name="half", penalty=HALF),
    replace(DEFAULT, name="products", penalty=PRODUCTS),
    SMALL,
    replace(SMALL, name="8", width=8),
    replace(SMALL, name="decoder sees s", decoder_sees_s=True),
    replace(SMALL, name="standardized", target="standardized"),
    replace(SMALL, name="half, 16", penalty=HALF),
    replace(SMALL, name="no floor", floor=0.0),
    replace(SMALL, name="batches of 1024", batch_size=1024, learning_rate=2e-3),
    replace(SMALL, name="200 epochs", epochs=200),
    replace(SMALL, name="erased", erase=True),
)
FINAL = (Estimator("residuals", ParityEncoder, (3.0, 10.0, 30.0)),)


@dataclass(frozen=True)
class Job:
    """One split of one dataset, and how to represent it; None stands for everything that is not trained."""

    dataset: str
    seed: int
    candidate: Candidate | Estimator | None
    final: bool
    rows: int
    device: str

    @property
    def key(self) -> tuple[str, int, str]:
        return self.dataset, self.seed, self.candidate.name if self.candidate else "untrained"

    def __call__(self) -> list[dict[str, Any]]:
        torch.set_num_threads(1)
        task = task_of(self.dataset, self.seed, self.rows, self.final)
        started = time.perf_counter()
        found: list[tuple[str, float | None, Pair]]
        if self.candidate is None:
            found = list(untrained(task))
        else:
            found = [(self.candidate.name, *rest) for rest in self.candidate.representations(task, self.device)]
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
        return (yield from (job() for job in jobs))
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        for future in as_completed([pool.submit(job) for job in jobs]):
            yield future.result()


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
    parser.add_argument("--data", help="folder of raw data, as in FRHSIC_DATA")
    parser.add_argument("--out", type=Path, default=None)
    arguments = parser.parse_args(argv)
    if arguments.data is not None:
        os.environ["FRHSIC_DATA"] = arguments.data
    name = f"unsupervised_{'final' if arguments.final else 'screen'}.jsonl"
    out = arguments.out or Path(__file__).parent / "results" / name
    rows = arguments.rows or (FINAL_ROWS if arguments.final else SCREEN_ROWS)
    names = [name.strip() for name in arguments.candidates.split(";") if name.strip()]
    stages: Sequence[Candidate | Estimator] = FINAL if arguments.final else SCREEN
    candidates = [candidate for candidate in stages if not names or candidate.name in names]
    first = 300 if arguments.final else 100
    jobs = [
        Job(dataset, seed, candidate, arguments.final, rows, arguments.device)
        for candidate in (None, *candidates)
        for dataset in arguments.datasets.split(",")
        for seed in range(first, first + arguments.splits)
    ]
    records = run(jobs, arguments.jobs, out)
    import unsupervised_report

    print(unsupervised_report.table(records))
    print(f"{len(jobs)} jobs on {'test' if arguments.final else 'validation'} rows; records in {out}")


if __name__ == "__main__":
    main()
