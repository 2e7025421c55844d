"""What heads read of S from `ParityEncoder`: bounds on laws whose worst head is known, and leaks on
tables, measured on rows that the encoder has never seen.

    python benchmarks/encoder.py bound leak losses rivals show --jobs 16 --out FOLDER
    python benchmarks/encoder.py leak --table adult bank --split 2 --out FOLDER
    python benchmarks/encoder.py figure --out FOLDER     # docs/figures/encoder-leak.png

Each study has its file in the folder, with one JSON line for each job. A run that was cut off goes
on where it stopped; a job that failed has a line, too, which is to be deleted to run it again. Set
OMP_NUM_THREADS=1. `coupling.py` has thirty heads on Z.

bound
    The upper end of the gap beside the population's worst head and bound at the same resolution, on
    four laws and on waves of S with 2 to 30 periods, one after the other as the seed grows; and the
    worst head at a resolution ten times as fine.
leak
    What five probes explain of the rank of S and of its functions from Z, and from raw columns.
losses
    Loss of Z as a prediction of the target, and of a fresh head on Z, less that of the closed form
    at the same GDP, in % of what the unconstrained model gains over a constant. All are measured on
    the same fresh rows. The closed form's loss is interpolated as a decreasing function of GDP;
    beyond the ends of its frontier it is that of the end.
rivals
    What boosted trees read of S from Z and from the Z of networks with a penalty, at equal
    performance of the task head. Networks train on a GPU if there is one. Their weights and the
    terms of training are chosen on a fifth of the training rows: the trade-offs that no other one
    beats there are fitted again on all training rows and measured on fresh ones. The penalties' own
    settings are their defaults. The encoder has all of its trade-offs, and nothing of it is chosen.
    Performance is AUC, or R² of a number. Between two trade-offs, the leak is interpolated.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from copy import copy
from dataclasses import replace
from functools import partial
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from bases import served_path
from lightgbm import LGBMRegressor
from scipy.stats import rankdata
from sklearn.base import clone
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import Ridge
from sklearn.metrics import log_loss, mean_squared_error, r2_score, roc_auc_score
from sklearn.multioutput import MultiOutputRegressor
from sklearn.neighbors import KNeighborsRegressor
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from frhsic import (
    FRHSICClassifier,
    FRHSICRegressor,
    ParityClassifier,
    ParityEncoder,
    ParityRegressor,
    gdp,
    load_dataset,
)
from frhsic.datasets import Dataset
from frhsic.datasets.catalogue import ENTRIES
from frhsic.estimators.basis import SensitiveBasis
from frhsic.estimators.heads_gap import HeadsTest
from frhsic.estimators.network import fit_path
from frhsic.training import Training
from frhsic_paper.plot import ACCENT, LOOKS, finish, page_style, panels
from frhsic_paper.printed import dataset_name, method_name
from frhsic_paper.records import Record, grouped

# Fresh rows that stand for the population of a law.
POPULATION = 100_000


def smooth(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Six columns, three of which follow S along a line, a wave and a step."""
    s = rng.uniform(size=n)
    x = rng.normal(size=(n, 6))
    x[:, 0] += 2 * s
    x[:, 1] += np.sin(6 * s)
    x[:, 2] += 2 * (s > 0.7)
    odds = x[:, 0] + x[:, 3] + 0.5 * x[:, 1] * x[:, 4] - 1
    return x, rng.uniform(size=n) < 1 / (1 + np.exp(-odds)), s


def levels(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """S has five levels of different size; two columns of counts and two numbers follow it."""
    s = rng.choice(5, size=n, p=[0.4, 0.25, 0.2, 0.1, 0.05]).astype(float)
    x = np.column_stack(
        [
            rng.poisson(1 + s),
            rng.poisson(2 + (s == 2), size=n),
            s + 2 * rng.normal(size=n),
            rng.normal(size=n),
        ]
    )
    odds = 0.4 * x[:, 0] - x[:, 3] - 0.5 * x[:, 1]
    return x, rng.uniform(size=n) < 1 / (1 + np.exp(-odds)), s


def repeated(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Some hundred different rows, as in a table of categories."""
    s = rng.normal(size=n)
    x = np.column_stack(
        [
            rng.poisson(np.exp(0.4 * s)).clip(0, 4),
            rng.poisson(1, size=n).clip(0, 4),
            rng.uniform(size=n) < 1 / (1 + np.exp(-s)),
            rng.integers(3, size=n),
        ]
    ).astype(float)
    odds = 0.6 * x[:, 0] + 0.5 * x[:, 1] - x[:, 2] + 0.3 * x[:, 3] - 1
    return x, rng.uniform(size=n) < 1 / (1 + np.exp(-odds)), s


def independent(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Nothing follows S."""
    x = rng.normal(size=(n, 5))
    y = rng.uniform(size=n) < 1 / (1 + np.exp(-x[:, 0] - x[:, 1] * x[:, 2]))
    return x, y, rng.uniform(size=n)


def wave(periods: int, n: int, rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    """A column that follows S in waves of so many periods, and one that does not."""
    s = rng.uniform(size=n)
    x = rng.normal(size=(n, 2)) * [0.5, 1.0]
    x[:, 0] += 1.5 * np.sin(2 * np.pi * periods * s)
    return x, rng.uniform(size=n) < 1 / (1 + np.exp(-x.sum(axis=1))), s


LAWS = {law.__name__: law for law in (smooth, levels, repeated, independent)}
WAVES = "waves"

# Windows of S for each one of the encoder, where finer waves of heads are looked for.
FINER = 10


def worst_head(z: np.ndarray, s: np.ndarray) -> float:
    """Return the largest gap of a head of z with values in [0, 1], along levels of s.

    The gap is convex in the head, so that one with values 0 and 1 is the worst. With more than 15
    values of z, each of 500 random heads is improved until none of its values can be.
    """
    table = pd.crosstab(z, s, normalize=True).to_numpy()
    mass = table.sum(axis=0)
    moved = table - table.sum(axis=1, keepdims=True) * mass
    if len(table) <= 15:
        heads = np.array(list(product((0.0, 1.0), repeat=len(table) - 1)))
        return float(np.abs(heads @ moved[1:]).sum(axis=1).max())
    heads = np.random.default_rng(0).integers(2, size=(500, len(table)))
    for _ in range(50):
        heads = np.sign(heads @ moved) @ moved.T > 0
    return float(np.abs(heads @ moved).sum(axis=1).max())


def windows_of(fresh: np.ndarray, s: np.ndarray, count: int) -> np.ndarray:
    """Return the window of each fresh row, of so many with equal shares of the rows of a fit, or
    its level.
    """
    values, level = np.unique(fresh, return_inverse=True)
    edges = np.quantile(s, np.arange(1, count) / count)
    return level if len(values) <= count else np.searchsorted(edges, fresh)


def bound(seed: int, rows: int, law: str, limit: Any) -> Record:
    """Fit an encoder, and compare its bound with what heads reach on the population."""
    rng = np.random.default_rng([seed, rows])
    draw = partial(wave, 2 + seed % 29) if law == WAVES else LAWS[law]
    x, y, s = draw(rows, rng)
    fresh_x, fresh_y, fresh_s = draw(POPULATION, rng)
    start = process_time()
    encoder = ParityEncoder(limit=limit, random_state=seed).fit(x, y, sensitive_features=s)
    seconds = process_time() - start
    choice = encoder.choice_
    gap = choice.gaps["sensitive"]
    z = encoder.transform(fresh_x)[:, 0]
    cell = np.unique(z, return_inverse=True)[1]
    count = round(1 / choice.resolution)
    window = windows_of(fresh_s, s, count)
    fine = windows_of(fresh_s, s, FINER * count)
    functions = SensitiveBasis.fit(fresh_s)(fresh_s), np.eye(window.max() + 1)[window]
    bounds = [HeadsTest.from_rows(cell, phi, np.ones(len(cell))).gap().value for phi in functions]
    return {
        "periods": 2 + seed % 29 if law == WAVES else 0,
        "windows": count,
        "estimate": gap.value,
        "upper end": gap.high,
        "bound": max(bounds),
        "worst head": worst_head(cell, window),
        "finer head": worst_head(cell, fine),
        "finer head by chance": worst_head(rng.permutation(cell), fine),
        "prototypes": int(cell.max()) + 1,
        "auc": float(roc_auc_score(fresh_y, z)),
        "seconds": seconds,
    }


TABLES = tuple(ENTRIES)

# Rows that fit the encoder, and rows that it never sees, at most. Half of the latter fit the probes
# and the other half score them.
TRAIN, FRESH = 10_000, 20_000

PROBES = {
    "boosted trees": MultiOutputRegressor(
        LGBMRegressor(n_estimators=60, learning_rate=0.1, num_leaves=15, n_jobs=1, verbose=-1)
    ),
    "extra trees": ExtraTreesRegressor(60, min_samples_leaf=20, random_state=0),
    "ridge": make_pipeline(StandardScaler(), Ridge(1.0)),
    "network": make_pipeline(
        StandardScaler(),
        MLPRegressor(hidden_layer_sizes=(64,), max_iter=40, early_stopping=True, random_state=0),
    ),
    "neighbours": make_pipeline(StandardScaler(), KNeighborsRegressor(50)),
}


BOOSTED = {"boosted trees": PROBES["boosted trees"]}


def recovered(
    z: np.ndarray, s: np.ndarray, probes: dict[str, Any], fitting: np.ndarray | None = None
) -> dict[str, list[float]]:
    """Return what probes explain of rows that they have not seen: R² of the rank of S, the sum over
    its orthonormal functions, and the sum of those that are positive.

    They are fitted to the rows that `fitting` marks, by default to the first half.
    """
    targets = np.column_stack([rankdata(s) / len(s), SensitiveBasis.fit(s)(s)])
    if fitting is None:
        fitting = np.arange(len(s)) < len(s) // 2
    explained = {}
    for name, probe in probes.items():
        predicted = clone(probe).fit(z[fitting], targets[fitting]).predict(z[~fitting])
        each = r2_score(targets[~fitting], predicted, multioutput="raw_values")
        positive = np.maximum(each[1:], 0.0)
        explained[name] = [float(each[0]), float(each[1:].sum()), float(positive.sum())]
    return explained


def heads_test(z: np.ndarray, s: np.ndarray) -> HeadsTest:
    """Test whether Z, whose distinct rows are prototypes, tells anything of S."""
    cell = np.unique(z, axis=0, return_inverse=True)[1].ravel()
    return HeadsTest.from_rows(cell, SensitiveBasis.fit(s)(s), np.ones(len(s)))


def parts_of(data: Dataset, split: int) -> tuple[pd.DataFrame, Any, Any, Any, Any]:
    """Return columns, target, attribute, the rows to fit on and the fresh ones."""
    y = np.asarray(data.y).ravel()
    y = y if data.task == "regression" else y.astype(int)
    s = np.asarray(data.s, dtype=np.float64).reshape(len(y))
    order = np.random.default_rng([split, len(y)]).permutation(len(y))
    train = order[: min(len(y) // 2, TRAIN)]
    fresh = order[len(train) : len(train) + FRESH]
    return data.X.reset_index(drop=True), y, s, train, fresh


def head_of(data: Dataset, y: np.ndarray, score: np.ndarray) -> float:
    """Return AUC, or R² of numbers."""
    return float((r2_score if data.task == "regression" else roc_auc_score)(y, score))


def along(encoder: ParityEncoder) -> Iterator[ParityEncoder]:
    """Yield a fitted encoder at each of its trade-offs."""
    for position in range(len(encoder.frontier_.to_frame())):
        moved = copy(encoder)
        moved.choice_ = replace(encoder.choice_, position=position)
        yield moved


def leak(split: int, table: str) -> Record:
    """Fit an encoder on one part of a table, and probe its Z of the rest."""
    data = load_dataset(table)
    X, y, s, train, fresh = parts_of(data, split)
    start = process_time()
    encoder = ParityEncoder(random_state=split)
    encoder.fit(X.iloc[train], y[train], sensitive_features=s[train])
    seconds = process_time() - start
    new = X.iloc[fresh]
    distinct = len(X.iloc[train].drop_duplicates())
    record: Record = {"rows": len(train), "distinct": distinct, "fresh": len(fresh)}
    for limit in (None, "50%", 0):
        moved = encoder.at(limit)
        z = np.asarray(moved.transform(new))
        test = heads_test(z, s[fresh])
        name = str(limit)
        gap = moved.choice_.gaps["sensitive"]
        record[f"estimate {name}"] = 4 * gap.value**2
        record[f"upper end {name}"] = 4 * gap.high**2
        record[f"chi2 {name}"] = (test.statistic - test.degrees) / test.rows
        record[f"pvalue {name}"] = test.pvalue
        record[f"prototypes {name}"] = len(np.unique(z, axis=0))
        record[f"head {name}"] = head_of(data, y[fresh], z[:, 0])
    record["probes"] = recovered(z, s[fresh], PROBES)
    raw = new.to_numpy(dtype=np.float64)
    record["raw"] = recovered(raw, s[fresh], BOOSTED)["boosted trees"]
    return record | {"seconds": seconds}


def show_leak(records: list[Record]) -> str:
    """Return the leak of each table at limit 0, the best of five probes, and the largest split."""
    names = {
        "table": "table",
        "rows": "rows",
        "distinct": "distinct",
        "prototypes 0": "L",
        "head None": "head free",
        "head 0": "head 0",
        "best rank": "R2 rank",
        "best sum": "sum R2",
        "chi2 0": "chi2",
        "estimate 0": "estimated",
        "upper end 0": "upper end",
        "raw rank": "raw rank",
        "raw sum": "raw sum",
        "seconds": "seconds",
    }
    lines = pd.DataFrame(records)
    best = [np.max([*probes.values()], axis=0)[:2] for probes in lines["probes"]]
    lines[["best rank", "best sum"]] = np.array(best)
    lines[["raw rank", "raw sum"]] = np.array([raw[:2] for raw in lines["raw"]])
    frame = lines[[*names]].rename(columns=names).groupby("table", sort=False)
    worst = frame[["R2 rank", "sum R2", "chi2"]].max().add_prefix("worst ")
    return markdown(frame.mean().join(worst).reset_index())


def show_bound(records: list[Record]) -> str:
    """Return how often the upper end is above the worst head and above the bound."""
    frame = pd.DataFrame(records)
    frame["limit"] = frame["limit"].astype(str)
    frame["covers worst head"] = frame["upper end"] >= frame["worst head"]
    frame["covers bound"] = frame["upper end"] >= frame["bound"]
    frame["fits"] = 1
    means = frame.groupby(["law", "rows", "limit"]).agg(
        {
            "fits": "sum",
            "covers worst head": "mean",
            "covers bound": "mean",
            "estimate": "median",
            "upper end": "median",
            "bound": "median",
            "worst head": "median",
            "finer head": "median",
            "finer head by chance": "median",
            "prototypes": "median",
            "auc": "mean",
            "seconds": "median",
        }
    )
    return markdown(means.reset_index())


def loss_of(numbers: bool, y: np.ndarray, prediction: np.ndarray) -> float:
    """Return the squared error, or log loss."""
    if numbers:
        return float(mean_squared_error(y, prediction))
    return float(log_loss(y, np.clip(prediction, 1e-6, 1 - 1e-6)))


def cell_head(z: np.ndarray, y: np.ndarray, z_new: np.ndarray) -> np.ndarray:
    """Predict by the mean of y at each value of Z, with one row at the overall mean added."""
    means = pd.Series(y.astype(float)).groupby(z).agg(["sum", "count"])
    overall = y.mean()
    predicted = (means["sum"] + overall) / (means["count"] + 1)
    return pd.Series(z_new).map(predicted).fillna(overall).to_numpy()


def losses(split: int, table: str) -> Record:
    """Return GDP and loss along the encoder and along the closed form."""
    data = load_dataset(table)
    X, y, s, train, fresh = parts_of(data, split)
    numbers = data.task == "regression"
    fitting = fresh[: len(fresh) // 2]
    measuring = fresh[len(fresh) // 2 :]
    new = X.iloc[measuring]
    kind = ParityRegressor if numbers else ParityClassifier
    model = kind(limit=None, n_jobs=1, random_state=split)
    model.fit(X.iloc[train], y[train], sensitive_features=s[train])

    def point(prediction: np.ndarray) -> list[float]:
        gap = gdp(prediction, s[measuring], resamples=0)
        return [float(gap), loss_of(numbers, y[measuring], prediction)]

    closed = [point(f) for f in served_path(model.solution_, model._regressions(new))]
    encoder = ParityEncoder(limit=None, n_jobs=1, random_state=split)
    encoder.fit(X.iloc[train], y[train], sensitive_features=s[train])
    served = []
    fresh_heads = []
    for moved in along(encoder):
        z = np.asarray(moved.transform(X.iloc[fresh]))[:, 0]
        here = z[len(fitting) :]
        served.append(point(here))
        fresh_heads.append(point(cell_head(z[: len(fitting)], y[fitting], here)))
    constant = loss_of(numbers, y[measuring], np.full(len(measuring), y[train].mean()))
    free = closed[0][1]
    return {"constant": constant, "free": free, "closed": closed} | {
        "served": served,
        "fresh head": fresh_heads,
    }


def excess(record: Record, name: str) -> np.ndarray:
    """Return the loss at each trade-off less the closed form's at the same GDP, in % of the
    gain.
    """
    gaps, along_frontier = np.transpose(record["closed"])
    frontier = IsotonicRegression(increasing=False, out_of_bounds="clip").fit(gaps, along_frontier)
    own = np.array(record[name])
    beside = frontier.predict(own[:, 0])
    return np.asarray(100 * (own[:, 1] - beside) / (record["constant"] - record["free"]))


def show_losses(records: list[Record]) -> str:
    """Return what a head of Z loses against the closed form, by table."""
    lines = []
    for (name_of_table,), own in grouped(records, "table").items():
        line: Record = {"table": name_of_table, "splits": len(own)}
        for name in ("served", "fresh head"):
            values = np.array([excess(record, name) for record in own])
            medians = np.median(values, axis=1)
            line |= {
                f"{name}: median %": medians.mean(),
                f"± {name}": standard_error(medians),
                f"{name}: free %": values[:, 0].mean(),
                f"{name}: at 0 %": values[:, -1].mean(),
            }
        ends = [[record["served"][-1][0], min(record["closed"])[0]] for record in own]
        line["GDP at 0"], line["least GDP of the closed form"] = np.mean(ends, axis=0)
        lines.append(line)
    table = markdown(pd.DataFrame(lines))
    for name in ("served", "fresh head"):
        every = np.concatenate([excess(record, name) for record in records])
        within = np.mean(every <= 5)
        table += (
            f"\n\n{name}: median {np.median(every):.1f} % of the gain over {len(every)} trade-offs;"
            f" within 5 % in {within:.0%}."
        )
    return table


FIGURE = Path(__file__).parents[1] / "docs" / "figures" / "encoder-leak.png"

# Tables of the figure, and the least sum of R² that it tells apart.
DRAWN = ("adult", "acs_income", "meps", "crime")
FLOOR = 1e-3

# Networks, the weights of their penalties, and the terms of training: the paper's, and shorter ones
# with weight decay.
METHODS = ("frhsic", "frem", "reg-gdp", "adv", "mmd", "laftr", "dcor", "hsic")
WEIGHTS = np.geomspace(0.1, 1000, 7).tolist()
TERMS = (
    Training(),
    Training(epochs="auto", schedule="cosine", weight_decay=1e-3, variance_floor=0.01),
)

# Rows that fit the probes which choose, and fresh rows, at most.
PROBED = 3_000
RIVAL_FRESH = 10_000


def network_score(model: Any, X: pd.DataFrame) -> np.ndarray:
    """Return the predicted number, or the probability of the second class."""
    if isinstance(model, FRHSICRegressor):
        return np.asarray(model.predict(X))
    return np.asarray(model.predict_proba(X)[:, 1])


def undominated(points: Sequence[Sequence[float]]) -> list[int]:
    """Return the places of the points (head, leak) that no other one beats in both.

    >>> undominated([(0.8, 0.3), (0.7, 0.1), (0.7, 0.2)])
    [0, 1]
    """
    return [
        place
        for place, (head, leak) in enumerate(points)
        if not any(h >= head and l <= leak and (h, l) != (head, leak) for h, l in points)
    ]


def tuned_networks(
    data: Dataset, method: str, X: pd.DataFrame, y: np.ndarray, s: np.ndarray, seed: int
) -> list[Any]:
    """Return networks fitted on all rows, at the terms and weights that a fifth of them chose."""
    kind = FRHSICRegressor if data.task == "regression" else FRHSICClassifier
    networks = [kind(penalty=method, training=terms, random_state=seed) for terms in TERMS]
    fitting = np.arange(len(y)) < 4 * len(y) // 5
    probed = np.arange(len(y)) >= fitting.sum() - PROBED
    tried = []
    points = []
    for network in networks:
        path = fit_path(
            network,
            X[fitting],
            y[fitting],
            penalty_weights=WEIGHTS,
            sensitive_features=s[fitting],
        )
        for model, weight in zip(path, WEIGHTS):
            head = head_of(data, y[~fitting], network_score(model, X[~fitting]))
            z = model.transform(X[probed])
            read = recovered(z, s[probed], BOOSTED, fitting[probed])["boosted trees"]
            tried.append((network, weight))
            points.append((head, read[2]))
    chosen = [tried[place] for place in undominated(points)]
    models = []
    for network in networks:
        weights = [weight for own, weight in chosen if own is network]
        if weights:
            models += fit_path(network, X, y, penalty_weights=weights, sensitive_features=s)
    return models


def rivals(split: int, table: str, method: str) -> Record:
    """Return the head's performance and what boosted trees read of S, along the trade-offs."""
    data = load_dataset(table)
    X, y, s, train, fresh = parts_of(data, split)
    fresh = fresh[:RIVAL_FRESH]
    columns = X.iloc[train].reset_index(drop=True)
    new = X.iloc[fresh].reset_index(drop=True)
    pairs = []
    if method == "prototypes":
        encoder = ParityEncoder(limit=None, random_state=split)
        encoder.fit(columns, y[train], sensitive_features=s[train])
        for moved in along(encoder):
            z = np.asarray(moved.transform(new))
            pairs.append((z, z[:, 0]))
    else:
        for model in tuned_networks(data, method, columns, y[train], s[train], split):
            pairs.append((model.transform(new), network_score(model, new)))
    points = []
    for z, score in pairs:
        read = recovered(z, s[fresh], BOOSTED)["boosted trees"]
        points.append([head_of(data, y[fresh], score), *read])
    return {"points": points}


def leak_at(points: list[list[float]], heads: np.ndarray) -> np.ndarray:
    """Return the sum of positive R² at performances of the head, interpolated along a path."""
    reached, leaks = np.array(sorted(points))[:, [0, 3]].T
    return np.asarray(np.interp(heads, reached, leaks))


def common_heads(*paths: list[list[float]], count: int = 5) -> np.ndarray:
    """Return performances that all paths reach, evenly spaced; none, if there are none."""
    low = max(min(path)[0] for path in paths)
    high = min(max(path)[0] for path in paths)
    return np.linspace(low, high, count) if low < high else np.zeros(0)


def common_leaks(own: list[list[float]], other: list[list[float]]) -> list[float]:
    """Return the mean leak of two paths over performances that both reach, or nothing."""
    heads = common_heads(own, other)
    return [float(leak_at(path, heads).mean()) for path in (own, other)] if len(heads) else []


def beats(better: list[list[float]], worse: list[list[float]]) -> bool:
    """Return whether a trade-off of a path has more performance than another path at its best, and
    less leak.
    """
    most = max(worse)
    return any(point[0] > most[0] and point[3] < most[3] for point in better)


def show_rivals(records: list[Record]) -> str:
    """Return by how much each rival leaks more than prototypes at equal performance of the head:
    the mean over five performances that both reach, and over the splits, with its error.
    """
    paths = {
        key: own[0]["points"] for key, own in grouped(records, "table", "split", "method").items()
    }
    lines = []
    tables = dict.fromkeys(record["table"] for record in records)
    splits = sorted({record["split"] for record in records})
    for table, method in product(tables, METHODS):
        leaks = []
        apart = ahead = behind = 0
        for split in splits:
            own = paths.get((table, split, "prototypes"))
            other = paths.get((table, split, method))
            if own is None or other is None:
                continue
            if common := common_leaks(own, other):
                leaks.append(common)
            else:
                apart += 1
                ahead += beats(own, other)
                behind += beats(other, own)
        means = np.mean(leaks, axis=0) if leaks else np.full(2, np.nan)
        error = standard_error([other - own for own, other in leaks])
        difference = means[1] - means[0]
        lines.append([table, method, *means, difference, error, len(leaks), apart, ahead, behind])
    names = ["table", "rival", "prototypes", "its leak", "difference", "error", "splits", "apart"]
    frame = pd.DataFrame(lines, columns=[*names, "ahead", "behind"])
    known = frame.dropna(subset=["difference", "error"])
    less = int((known["difference"] > 2 * known["error"]).sum())
    more = int((known["difference"] < -2 * known["error"]).sum())
    return (
        f"{markdown(frame)}\n\nAt equal performance of the head, prototypes leak less by more than"
        f" two errors in {less} of {len(known)} cells, and more in {more}."
        f" {len(frame) - len(known)} cells have fewer than two splits in which both reach a common"
        " performance, and no error. apart: splits in which they reach none; ahead: of these,"
        " prototypes have more performance than the rival at its best, and less leak; behind: the"
        f" rival has both. Of {frame['apart'].sum()} such splits, prototypes are ahead in"
        f" {frame['ahead'].sum()} and behind in {frame['behind'].sum()}."
    )


def figure(folder: Path) -> None:
    """Draw what trees read of S against the head's performance, means over splits."""
    records = [one for one in records_of(folder / "rivals.jsonl") if "error" not in one]
    by_method = {
        key: [record["points"] for record in own]
        for key, own in grouped(records, "table", "method").items()
    }
    with page_style():
        canvas, axes = panels(len(DRAWN))
        for axis, table in zip(axes, DRAWN):
            for method in ("prototypes", *METHODS):
                paths = by_method.get((table, method))
                prototypes = by_method.get((table, "prototypes"))
                if not paths or not prototypes:
                    continue
                heads = common_heads(*paths, *prototypes, count=7)
                if not len(heads):
                    continue
                leaks = np.mean([leak_at(path, heads) for path in paths], axis=0)
                own = method == "prototypes"
                look = {"color": ACCENT, "marker": "o"} if own else LOOKS[method]
                axis.plot(
                    heads,
                    np.maximum(leaks, FLOOR),
                    **look,
                    label="ParityEncoder" if own else method_name(method),
                    linewidth=3 if own else 1.2,
                    markersize=6 if own else 3.5,
                    zorder=3 if own else 2,
                )
            regression = load_dataset(table).task == "regression"
            axis.set(
                title=dataset_name(table),
                xlabel="R² of the head" if regression else "AUC of the head",
                ylabel="S read from Z by trees (sum of R²)",
                yscale="log",
            )
            axis.locator_params(axis="x", nbins=4)
        finish(canvas, axes)
        canvas.savefig(FIGURE, dpi=144, metadata={"Software": None})


def standard_error(values: Any) -> float:
    """Return the standard error of a mean; NaN of fewer than two values."""
    return float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else np.nan


def markdown(frame: pd.DataFrame) -> str:
    """Return a table, its numbers with four digits after the point."""

    def cell(value: Any) -> str:
        if not isinstance(value, float):
            return str(value)
        return "–" if np.isnan(value) else f"{value:.4f}".removesuffix(".0000")

    lines = [[str(name) for name in frame], ["---"] * frame.shape[1]]
    lines += [[cell(value) for value in row] for row in frame.itertuples(index=False)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


class Study(NamedTuple):
    """A measurement of each job, the jobs as values of its arguments, outermost first, and what
    shows its records.
    """

    measure: Callable[..., Record]
    grid: dict[str, Sequence[Any]]
    show: Callable[[list[Record]], str]


STUDIES = {
    "bound": Study(
        bound,
        {"seed": range(200), "rows": (1000, 5000), "law": [*LAWS, WAVES], "limit": (0,)},
        show_bound,
    ),
    "leak": Study(leak, {"split": range(5), "table": TABLES}, show_leak),
    "losses": Study(losses, {"split": range(5), "table": TABLES}, show_losses),
    "rivals": Study(
        rivals,
        {"split": range(5), "table": TABLES, "method": ("prototypes", *METHODS)},
        show_rivals,
    ),
}


def attempt(study: Study, job: dict[str, Any]) -> Record:
    """Return the record of a job, with its seconds of CPU. A failure is a record, too."""
    start = process_time()
    try:
        with threadpool_limits(1), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            record = study.measure(**job)
    except Exception as error:
        record = {"error": f"{type(error).__name__}: {error}"}
    return job | record | {"cpu": process_time() - start}


def records_of(file: Path) -> list[Record]:
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def run(
    studies: dict[str, Study], asked: dict[str, Sequence[Any]], workers: int, folder: Path
) -> None:
    """Run the jobs without a record, and write each record as it comes."""
    folder.mkdir(parents=True, exist_ok=True)
    # not forked, since torch and its GPU do not survive that
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        files = {}
        for name, study in studies.items():
            file = folder / f"{name}.jsonl"
            known = records_of(file)
            values = [asked.get(field, every) for field, every in study.grid.items()]
            for each in product(*values):
                job = dict(zip(study.grid, each))
                if not any(job.items() <= record.items() for record in known):
                    files[pool.submit(attempt, study, job)] = file
        for place, done in enumerate(as_completed(files), 1):
            record = done.result()
            with files[done].open("a") as out:
                out.write(json.dumps(record) + "\n")
            print(f"{place} of {len(files)}", record.get("error", ""), flush=True)


def show(studies: dict[str, Study], folder: Path) -> None:
    """Print a table for each study that has records, and the jobs that failed."""
    for name, study in studies.items():
        records = records_of(folder / f"{name}.jsonl")
        if not records:
            continue
        failed = [record for record in records if "error" in record]
        minutes = sum(record.get("cpu", 0.0) for record in records) / 60
        print(
            f"\n## {name}\n\n{len(records)} jobs, of which {len(failed)} failed;"
            f" {minutes:.0f} minutes of CPU.\n"
        )
        for record in failed:
            print(f"- {record}")
        print(study.show([record for record in records if "error" not in record]))


def command_line(
    studies: dict[str, Study],
    description: str | None,
    draw: Callable[[Path], None] | None = None,
) -> None:
    """Run studies, show their records, or draw them."""

    def value(text: str) -> Any:
        try:
            return json.loads(text)
        except json.JSONDecodeError:
            return text

    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    more = ["show"] if draw is None else ["show", "figure"]
    parser.add_argument("commands", nargs="+", choices=[*studies, *more])
    parser.add_argument("--out", type=Path, required=True, help="folder of the records")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    grids = {field: every for study in studies.values() for field, every in study.grid.items()}
    for field, every in grids.items():
        if isinstance(every, range):
            parser.add_argument(f"--{field}", type=int, help="how many")
        else:
            known = dict.fromkeys(v for s in studies.values() for v in s.grid.get(field, ()))
            parser.add_argument(
                f"--{field}", type=value, nargs="+", choices=[*known], help="these only"
            )
    options = parser.parse_args()
    asked = {}
    for field in grids:
        own = getattr(options, field)
        if own is not None:
            asked[field] = range(own) if isinstance(own, int) else own
    chosen = {name: study for name, study in studies.items() if name in options.commands}
    run(chosen, asked, options.jobs, options.out)
    if "show" in options.commands:
        show(studies, options.out)
    if draw is not None and "figure" in options.commands:
        draw(options.out)


if __name__ == "__main__":
    command_line(STUDIES, __doc__, figure)
