r"""What the base model gives and what the penalty gives: every method with and without a base, at equal dependence.

Roles of the rows, by a permutation that is fixed for each dataset. The *development half* is where settings were
chosen (screens of encoders, scales, epochs, kernels, width of Z and floor, on validation rows inside it). The other
half is cut into five parts of a tenth of the rows each; in split k, part k is tested on, all other rows train (85 %) or
validate (15 %). So no test row was a row of these screens, and no row is tested twice. Bank and Credit had no screen.
The settings of the boosted base and of penalised boosting were chosen on validation rows of other splits, which overlap
the test rows here.
This is the second look at that half. After the first, in which Z leaked more than the default before on three tables,
width of Z, floor and kernel were chosen anew in the development half, and this half was cut anew (`CUT`).

Each method is trained at nine weights. GDP is :func:`frhsic.parity.gdp` on the test rows. The program
`base_model_report.py` reads performance at equal GDP off these paths, joins a run into the shipped records, and makes
the tables and the figure of the page. A run that was cut off goes on where it stopped.

    python benchmarks/base_model.py --device cuda --jobs 16 --out FOLDER
    python benchmarks/base_model.py --group trees --out FOLDER               # no GPU needed: about 12 minutes of CPU
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

from frhsic._files import write_whole
from frhsic.boosting import BoostedParityClassifier, BoostedParityRegressor
from frhsic.estimators.bases import BaseRows, fitted_base
from frhsic.fleet import Member, Recipe, TrainingData, affine_head, mlp_encoder, train
from frhsic.kernels import Gaussian, Linear
from frhsic.parity import gdp
from frhsic.penalties import HSIC
from frhsic.penalty_names import penalty_named
from frhsic.tables import TableEncoding
from frhsic.transport import ScoreTransport

DATASETS = ("crime", "compas", "adult", "acs_income", "meps", "credit", "bank")
UNTUNED = ("bank", "credit")
SPLITS = 5
SEED = 7
CUT = 24
WEIGHTS = (0.0, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)
AMOUNTS = (0.0, 0.25, 0.5, 0.75, 0.9, 1.0)
RIVALS = ("reg-gdp", "frem", "frhsic", "mmd", "dcor", "adv", "laftr")
FEW_RIVALS = RIVALS[:4]
PROBED = WEIGHTS[1:7]
KERNEL = 10 * (Linear() + Gaussian(1.0))


class Style(NamedTuple):
    """Inputs and training: the paper's, or those of the estimators."""

    base: bool
    scaling: str
    hidden: tuple[int, ...]
    activation: str
    schedule: str
    ranks: bool
    size: int
    decay: float
    floor: float

    def length(self, rows: int) -> tuple[int, int | None]:
        """Return epochs and patience."""
        if self.schedule == "constant":
            return 200, None
        return auto_epochs(rows), 20 if rows < 10_000 else None


PAPER = Style(False, "range", (50,), "selu", "constant", False, 50, 0.0, 0.0)
BEFORE = PAPER._replace(decay=1e-3, floor=0.01)
RIVAL = Style(True, "robust", (128, 128), "gelu", "cosine", True, 16, 1e-3, 0.0)
NEW = RIVAL._replace(floor=0.3)


def auto_epochs(rows: int, batch_size: int = 256) -> int:
    """Return the epochs of about 2,500 steps, from 20 to 100, as the estimators do."""
    return int(np.clip(round(2500 / math.ceil(rows / batch_size)), 20, 100))


class Method(NamedTuple):
    """A penalty trained in one style."""

    name: str
    penalty: Any
    style: Style


def methods(group: str, dataset: str) -> Iterator[Method]:
    """Return the methods of one group: without base as in the paper, or with base and the new inputs."""
    if group == "paper":
        yield Method("default before", partial(HSIC, KERNEL), BEFORE)
        for name in () if dataset in UNTUNED else RIVALS[:3]:
            yield Method(name, partial(penalty_named, name), PAPER)
    else:
        yield Method("default", partial(HSIC, KERNEL), NEW)
        yield Method("default, no base", partial(HSIC, KERNEL), NEW._replace(base=False))
        for name in FEW_RIVALS if dataset in UNTUNED else RIVALS:
            yield Method(f"{name}, base", partial(penalty_named, name, RIVAL.size), RIVAL)


class Table(NamedTuple):
    """A dataset as arrays."""

    X: pd.DataFrame
    y: np.ndarray
    s: np.ndarray
    task: str


def load(name: str, data: str | None) -> Table:
    """Return a dataset, from a folder of .npz files (X, y, s) if one is given."""
    if data is not None:
        with np.load(Path(data) / f"{name}.npz") as arrays:
            X, y, s = pd.DataFrame(arrays["X"].astype(float)), arrays["y"], arrays["s"]
    else:
        from frhsic import load_dataset

        loaded = load_dataset(name)
        X, y, s = loaded.X, loaded.y.to_numpy(float), loaded.s.to_numpy(float)
    X.columns = [f"x{j}" for j in range(X.shape[1])]  # LightGBM refuses names with commas and the like
    return Table(X, y, s, "regression" if len(np.unique(y)) > 2 else "binary")


def split_rows(n: int, split: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return training, validation and test rows."""
    order = np.random.default_rng([SEED, 0]).permutation(n)
    parts = np.array_split(np.random.default_rng([SEED, CUT]).permutation(order[n // 2 :]), SPLITS)
    size = min(map(len, parts))  # equal sizes, so that splits can be stacked
    test = parts[split][:size]
    rest = np.setdiff1d(order, parts[split])[: n - max(map(len, parts))]
    rest = np.random.default_rng([SEED, CUT, split]).permutation(rest)
    held_out = round(0.15 * len(rest))
    return rest[held_out:], rest[:held_out], test


def measured(task: str, y: np.ndarray, raw: np.ndarray, s: np.ndarray) -> dict[str, float]:
    """Return performance (accuracy or mean squared error), proper loss and GDP of raw scores."""
    if task == "regression":
        error = float(np.mean((raw - y) ** 2))
        return {"performance": error, "loss": error, "gdp": float(gdp(raw, s, resamples=0))}
    probability = 1 / (1 + np.exp(-raw))
    return {
        "performance": float(((raw > 0) == y).mean()),
        "loss": float(np.mean(np.logaddexp(0, raw) - y * raw)),
        "gdp": float(gdp(probability, s, resamples=0)),
        "gdp_decisions": float(gdp((raw > 0).astype(float), s, resamples=0)),
    }


def raw_scores(model: Any, X: pd.DataFrame, task: str) -> np.ndarray:
    """Return predictions of a regressor, or log-odds of a classifier."""
    if task == "regression":
        return np.asarray(model.predict(X), dtype=float)
    p = np.clip(model.predict_proba(X)[:, 1], 1e-6, 1 - 1e-6)
    return np.asarray(np.log(p / (1 - p)))


def base_columns(name: str, split: int, data: str | None) -> tuple[np.ndarray, list[np.ndarray], float, np.ndarray]:
    """Fit the default base; return its columns (training out of fold; validation and test), CPU seconds, raw test."""
    with threadpool_limits(1):
        table, started = load(name, data), time.process_time()
        train_rows, *others = split_rows(len(table.y), split)
        X = table.X.iloc[train_rows].reset_index(drop=True)
        classes = None if table.task == "regression" else np.array([0.0, 1.0])
        x = TableEncoding.fit(X)(X)
        base, columns = fitted_base("boosted", BaseRows(X, x, table.y[train_rows], classes), split)
        assert base is not None
        seconds = time.process_time() - started
        raw = raw_scores(base.model, table.X.iloc[others[1]], table.task)
        return columns, [base(table.X.iloc[rows].reset_index(drop=True)) for rows in others], seconds, raw


def trees(name: str, split: int, data: str | None, weight: float) -> list[dict[str, Any]]:
    """Fit penalised boosting, and at weight 0 also LightGBM as it comes and the transport of its scores."""
    import lightgbm

    with threadpool_limits(1):
        table = load(name, data)
        fit_rows, validation_rows, test_rows = split_rows(len(table.y), split)
        binary = table.task == "binary"
        rows = [(r, table.X.iloc[r], table.y[r], table.s[r]) for r in (fit_rows, validation_rows, test_rows)]
        (_, X, y, s), (_, Xv, yv, sv), (_, Xt, yt, st) = rows
        records = []

        def note(method: str, at: float, raw_v: np.ndarray, raw_t: np.ndarray) -> None:
            for part, raw, target, attribute in (("validation", raw_v, yv, sv), ("test", raw_t, yt, st)):
                numbers = measured(table.task, target, raw, attribute)
                records.append({"method": method, "weight": at, "part": part, "split": split, **numbers})

        estimator = BoostedParityClassifier if binary else BoostedParityRegressor
        started = time.process_time()
        model = estimator(weight, n_jobs=1, random_state=split).fit(X, y, sensitive_features=s)
        note("boosting", weight, raw_scores(model, Xv, table.task), raw_scores(model, Xt, table.task))
        records[-1]["seconds"] = time.process_time() - started
        if weight == 0:
            kind = lightgbm.LGBMClassifier if binary else lightgbm.LGBMRegressor
            plain = kind(n_jobs=1, verbose=-1, random_state=split).fit(X, y)
            raw_v, raw_t = (raw_scores(plain, part, table.task) for part in (Xv, Xt))
            note("lightgbm", 0.0, raw_v, raw_t)
            shown = (lambda f: 1 / (1 + np.exp(-f))) if binary else (lambda f: f)
            back = (lambda p: np.log(np.clip(p, 1e-6, 1 - 1e-6) / np.clip(1 - p, 1e-6, 1))) if binary else shown
            transport = ScoreTransport().fit(shown(raw_v), sv)
            for amount in AMOUNTS:
                transport.set_params(amount=amount)
                moved = transport.transform(shown(raw_t), st)
                note("transport (needs S)", amount, raw_v, back(moved))
        return records


def probe(z: torch.Tensor, s: torch.Tensor, z_new: torch.Tensor, s_new: torch.Tensor, cosines: bool) -> float:
    """Return R² on other rows of a ridge regression of s on Z, or on 300 random cosines of it."""
    center, spread = z.mean(0), z.std(0) + 1e-9
    a, b = (z - center) / spread, (z_new - center) / spread
    if cosines:
        generator = torch.Generator().manual_seed(0)
        directions = torch.randn(a.shape[1], 300, generator=generator).to(a) / math.sqrt(a.shape[1])
        shift = 2 * math.pi * torch.rand(300, generator=generator).to(a)
        a, b = torch.cos(a @ directions + shift), torch.cos(b @ directions + shift)
    mean, level = a.mean(0), s.mean()
    a, b = a - mean, b - mean
    ridge = 1e-3 * len(a) * torch.eye(a.shape[1]).to(a)
    slope = torch.linalg.solve(a.T @ a + ridge, a.T @ (s - level))
    return float(1 - (s_new - level - b @ slope).square().mean() / (s_new - level).square().mean())


def boosted_probe(z: np.ndarray, s: np.ndarray, z_new: np.ndarray, s_new: np.ndarray) -> float:
    """Return R² on other rows of boosted trees."""
    from sklearn.ensemble import HistGradientBoostingRegressor

    with threadpool_limits(1):
        few = slice(None, 6000)
        model = HistGradientBoostingRegressor(max_iter=60, random_state=0).fit(z[few], s[few])
        return float(model.score(z_new, s_new))


class Part(NamedTuple):
    """One split, encoded: data to train on, and (x, y, s) of validation and test rows."""

    data: TrainingData
    others: list[tuple[np.ndarray, np.ndarray, np.ndarray]]
    s_train: np.ndarray
    center: float
    scale: float


def encoded(table: Table, style: Style, split: int, base: tuple[Any, ...], patience: int | None) -> Part:
    """Encode one split."""
    rows = split_rows(len(table.y), split)
    encoding = TableEncoding.fit(table.X.iloc[rows[0]], scaling=style.scaling)
    x = [encoding(table.X.iloc[r]) for r in rows]
    if style.base:
        x = [np.column_stack(pair) for pair in zip(x, (base[0], *base[1]))]
    of_s = pd.DataFrame({"s": table.s})
    scale = TableEncoding.fit(of_s.iloc[rows[0]], scaling="quantile" if style.ranks else "range")
    s = scale(of_s.iloc[rows[0]])
    y = table.y[rows[0]]
    center, spread = (float(y.mean()), float(y.std())) if table.task == "regression" else (0.0, 1.0)
    y = (y - center) / spread
    held_out = None
    kept = slice(None)
    if patience is not None:  # the rows are in random order
        first, kept = slice(None, len(y) // 10), slice(len(y) // 10, None)
        held_out = TrainingData.of(x[0][first], y[first], s[first])
    data = TrainingData.of(x[0][kept], y[kept], s[kept], held_out=held_out)
    others = [(x[i], table.y[rows[i]], table.s[rows[i]]) for i in (1, 2)]
    return Part(data, others, table.s[rows[0]][kept], center, spread)


def fleets(name: str, table: Table, method: Method, bases: list[Any], device: str, jobs: int) -> list[dict[str, Any]]:
    """Train a method on all splits of a dataset; measure on validation and test rows, and probe Z."""
    epochs, patience = method.style.length(len(split_rows(len(table.y), 0)[0]))
    parts = [encoded(table, method.style, k, bases[k], patience) for k in range(SPLITS)]
    records = []
    for width in sorted({part.data.columns for part in parts}):
        own = [k for k in range(SPLITS) if parts[k].data.columns == width]
        data = TrainingData.stacked([parts[k].data for k in own])
        recipe = Recipe(
            table.task,  # type: ignore[arg-type]
            method.penalty,
            partial(mlp_encoder, width, list(method.style.hidden), method.style.size, method.style.activation),
            partial(affine_head, method.style.size, 1),
            epochs=epochs,
            schedule=method.style.schedule,  # type: ignore[arg-type]
            patience=None if "adv" in method.name or "laftr" in method.name else patience,
            weight_decay=method.style.decay,
            variance_floor=method.style.floor,
        )
        members = [Member(weight, 100 + k, i) for i, k in enumerate(own) for weight in WEIGHTS]
        fleet = train(data, members, recipe, device=device)
        z_train = fleet.transform(data.x.to(fleet.device))
        jobs_here = []
        for which, part in enumerate(("validation", "test")):
            x = torch.stack([torch.as_tensor(parts[k].others[which][0], dtype=torch.float32) for k in own])
            x = x.to(fleet.device)
            scores = fleet.scores(x)[..., 0].double().cpu().numpy()
            z = fleet.transform(x)
            for j, member in enumerate(members):
                split = own[member.split]
                _, y, s = parts[split].others[which]
                raw = scores[j] * parts[split].scale + parts[split].center
                record = {"method": method.name, "weight": member.weight, "part": part, "split": split}
                if part == "test" and method.name in ("default", "default before"):
                    known = torch.as_tensor(parts[split].s_train, device=fleet.device)
                    new = torch.as_tensor(s, device=fleet.device)
                    rows = (z_train[j].double(), known, z[j].double(), new)
                    record |= {"linear": probe(*rows, False), "cosines": probe(*rows, True)}
                    arrays = z_train[j].cpu().numpy(), parts[split].s_train, z[j].cpu().numpy(), s
                    wanted = arrays if member.weight in PROBED else None
                else:
                    wanted = None
                jobs_here.append((record, (table.task, y, raw, s), wanted))
        numbers = Parallel(jobs)(delayed(measured)(*arguments) for _, arguments, _ in jobs_here)
        probed = Parallel(jobs)(delayed(boosted_probe)(*w) for _, _, w in jobs_here if w is not None)
        following = iter(probed)
        for (record, _, wanted), values in zip(jobs_here, numbers):
            extra = {} if wanted is None else {"boosted": next(following)}
            records.append({**record, **values, **extra, "seconds": fleet.seconds / len(members)})
    return records


def run(arguments: argparse.Namespace) -> None:
    """Train and measure what FOLDER does not hold yet: a file for each tree model, or for each method of a dataset."""
    folder, started = Path(arguments.out), time.time()
    folder.mkdir(parents=True, exist_ok=True)
    names = arguments.datasets.split(",")

    def path(*unit: str) -> Path:
        return folder / ("-".join((arguments.group, *unit)).replace(", ", "_") + ".jsonl")

    def write(file: Path, name: str, records: list[dict[str, Any]]) -> None:
        lines = [json.dumps({"dataset": name, "cut": CUT, **record}) + "\n" for record in records]
        write_whole(file, "".join(lines).encode())

    if arguments.group == "trees":
        models = [(name, weight, k) for name in reversed(names) for weight in WEIGHTS for k in range(SPLITS)]
        files = {path(name, f"{weight:g}", str(k)): (name, k, weight) for name, weight, k in models}
        work = {file: unit for file, unit in files.items() if not file.exists()}
        out = Parallel(arguments.jobs, return_as="generator")(
            delayed(trees)(name, k, arguments.data, weight) for name, k, weight in work.values()
        )
        for (file, unit), records in zip(work.items(), out):
            write(file, unit[0], records)
        return
    missing = {
        name: [method for method in methods(arguments.group, name) if not path(name, method.name).exists()]
        for name in names
    }
    pairs = [(name, k) for name in names if missing[name] for k in range(SPLITS)]
    bases = dict.fromkeys(pairs, ((), (), math.nan, None))
    if arguments.group == "base":
        fitted = Parallel(arguments.jobs)(delayed(base_columns)(name, k, arguments.data) for name, k in pairs)
        bases = dict(zip(pairs, fitted))
        print(f"bases {time.time() - started:.0f} s", flush=True)
    for name, wanted in missing.items():
        table = load(name, arguments.data)
        if arguments.group == "base" and wanted:
            records = []
            for k in range(SPLITS):
                test = split_rows(len(table.y), k)[2]
                numbers = measured(table.task, table.y[test], bases[name, k][3], table.s[test])
                records.append({"method": "base alone", "weight": 0.0, "part": "test", "split": k, **numbers})
                records[-1]["seconds"] = bases[name, k][2]
            write(path(name, "base alone"), name, records)
        for method in wanted:
            if time.time() - started > arguments.limit:
                print(f"no time for {name} {method.name}", flush=True)
                continue
            began, of_splits = time.time(), [bases[name, k] for k in range(SPLITS)]
            records = fleets(name, table, method, of_splits, arguments.device, arguments.jobs)
            write(path(name, method.name), name, records)
            print(f"{name} {method.name} {time.time() - began:.1f} s", flush=True)


def main(argv: Sequence[str] | None = None) -> None:
    """Train and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--group", choices=("paper", "base", "trees"), default="base")
    parser.add_argument("--datasets", default=",".join(DATASETS))
    parser.add_argument("--data", help="folder of NAME.npz with X, y, s; by default the datasets of the library")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--limit", type=float, default=math.inf, help="seconds after which no new training starts")
    parser.add_argument("--out", default="base-model")
    run(parser.parse_args(argv))


if __name__ == "__main__":
    main()
