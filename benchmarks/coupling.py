r"""The coupling of tables with S: what is left of S, what can still be recovered, and attacks on a
release.

    python benchmarks/coupling.py run --jobs 16 --out coupling.jsonl
    python benchmarks/coupling.py report                                # of
                                                                        benchmarks/results/coupling.jsonl

``run`` measures what is not yet among the records, one JSON line each, so a run that was cut off
goes on where it stopped. From each table its target and a few columns are taken out; 60 % of the
rows are fitted on, and the last 20 % are the test rows. Settings were chosen on the 20 % between.

leak
    R² of S on test rows by probes that were fitted on released training rows, its standard error,
    and the value on shuffled S. A probe counts if it reads at least 80 % of the best probe's R²
    from the raw columns and finds a planted leak of .02.
recovery
    R² of each column that was taken out, less its mean given S; the larger of ridge regression and
    boosted trees.
attacks
    What a release tells of S beside Z: counts, other releases, and batches.
heads
    Thirty heads on Z: three models of ten columns. GDP of their scores on test rows and the p-value
    of an F test between ten groups of S, on ten splits.
scale
    Seconds of CPU and memory for all rows of Adult, and for a million rows of ten columns.
"""

from __future__ import annotations

import argparse
import copy
import json
import resource
import time
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import lightgbm
import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from scipy.stats import f_oneway
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.linear_model import Ridge, RidgeCV
from sklearn.neighbors import KNeighborsRegressor
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import SplineTransformer, StandardScaler
from threadpoolctl import threadpool_limits

from frhsic import (
    FRHSICClassifier,
    FRHSICRegressor,
    ParityCoupling,
    gdp,
    load_dataset,
)

TAKEN_OUT: dict[str, tuple[str, ...]] = {
    "adult": ("hours-per-week", "sex=Female", "marital-status=Married-civ-spouse"),
    "acs_income": ("WKHP", "SEX=2", "MAR=1"),
    "credit": ("LIMIT_BAL", "SEX=2", "EDUCATION=1"),
    "crime": ("PctUnemployed", "medIncome", "PctNotHSGrad"),
    "meps": ("SEX=2", "HIBPDX=1", "POVCAT15=5"),
    "compas": ("priors_count", "c_charge_degree=F"),
    "bank": ("campaign", "housing=yes", "marital=married"),
    "support": ("meanbp", "sex=female", "diabetes"),
    "pension": ("nettfa", "marr", "pira"),
    "wages": ("exper", "female", "south"),
}
"""Columns to recover, beside the target. The last five tables chose nothing."""

RECORDS = Path(__file__).parent / "results" / "coupling.jsonl"
PROBES = ("ridge", "boosted", "extra trees", "neighbors", "network")
METHODS = ("coupling", "named", "raw", "leace", "repair", "frhsic")
COUPLINGS = ("coupling", "named")  # the second is told which columns will be recovered
PROBED_ROWS, NETWORK_ROWS, HEAD_ROWS, BANDS = 12_000, 6_000, 5_000, 10
ATTACKED, HEADED = ("adult", "credit"), ("adult", "credit", "bank", "acs_income")

Pair = tuple[pd.DataFrame, pd.DataFrame]
"""Rows to train on, and rows to measure on."""


class Rows(NamedTuple):
    X: pd.DataFrame
    targets: pd.DataFrame
    s: np.ndarray


def typed(name: str) -> Rows:
    """Return a dataset with one categorical column for each source of indicators, its targets taken
    out, and S.
    """
    data = load_dataset(name)
    columns: dict[str, Any] = {
        str(column): data.X[column] for column in data.X if "=" not in column
    }
    levels: dict[str, list[str]] = {}
    for column in data.X:
        source, is_indicator, level = str(column).partition("=")
        if is_indicator:
            levels.setdefault(source, []).append(level)
    for source, own in levels.items():
        indicators = data.X[[f"{source}={level}" for level in own]].to_numpy()
        codes = np.where(indicators.any(axis=1), indicators.argmax(axis=1), -1)
        columns[source] = pd.Categorical.from_codes(codes, own)
    targets = data.X[list(TAKEN_OUT[name])].assign(target=data.y.to_numpy())
    sources = {taken.partition("=")[0] for taken in TAKEN_OUT[name]}
    X = pd.DataFrame(
        {column: values for column, values in columns.items() if column not in sources}
    )
    return Rows(X, targets, data.s.to_numpy(np.float64))


def split(rows: Rows, seed: int) -> tuple[Rows, Rows]:
    n = len(rows.s)
    order = np.random.default_rng([seed, n]).permutation(n)
    return tuple(
        Rows(
            rows.X.iloc[i].reset_index(drop=True),
            rows.targets.iloc[i].reset_index(drop=True),
            rows.s[i],
        )
        for i in (order[: int(0.6 * n)], order[int(0.8 * n) :])
    )


def matrix(X: pd.DataFrame) -> np.ndarray:
    """Return numbers with missing values at the median and marked, and indicators of levels."""
    blocks = []
    for name in X:
        column = X[name]
        if isinstance(column.dtype, pd.CategoricalDtype):
            blocks.append(np.eye(len(column.cat.categories) + 1)[column.cat.codes.to_numpy()])
        else:
            values = column.to_numpy(np.float64)
            blocks.append(
                np.column_stack([np.nan_to_num(values, nan=np.nanmedian(values)), np.isnan(values)])
            )
    return np.concatenate(blocks, axis=1)


def same_columns(Z: Pair) -> tuple[np.ndarray, np.ndarray]:
    """Return the columns that vary, with numbers of variance one and indicators as they are."""
    fit, new = map(matrix, Z)
    varies, indicator = fit.std(axis=0) > 1e-9, ((fit == 0) | (fit == 1)).all(axis=0)
    scale = np.where(indicator, 1.0, fit.std(axis=0))[varies]
    return fit[:, varies] / scale, new[:, varies] / scale


def probe(kind: str, seed: int = 0) -> Any:
    if kind == "boosted":
        return lightgbm.LGBMRegressor(
            n_estimators=100,
            num_leaves=15,
            learning_rate=0.08,
            n_jobs=1,
            verbose=-1,
            random_state=seed,
        )
    if kind == "extra trees":
        return ExtraTreesRegressor(
            50, min_samples_leaf=10, max_features=0.4, n_jobs=1, random_state=seed
        )
    if kind == "ridge":
        return make_pipeline(StandardScaler(), RidgeCV(np.logspace(-2, 5, 8)))
    if kind == "neighbors":
        return KNeighborsRegressor(100, n_jobs=1)
    network = MLPRegressor(
        hidden_layer_sizes=(64,),
        alpha=10.0,
        early_stopping=True,
        max_iter=40,
        batch_size=256,
        random_state=seed,
    )
    return make_pipeline(StandardScaler(), network)


def r2(
    kind: str, z: tuple[np.ndarray, np.ndarray], t: np.ndarray, t_new: np.ndarray
) -> tuple[float, float]:
    """Return R² on new rows of a probe that was fitted to others, and its standard error."""
    rows = NETWORK_ROWS if kind == "network" else PROBED_ROWS
    center, scale = t.mean(), t.std()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        predicted = (
            probe(kind).fit(z[0][:rows], (t[:rows] - center) / scale).predict(z[1]) * scale + center
        )
    gain = ((t_new - center) ** 2 - (t_new - predicted) ** 2) / ((t_new - center) ** 2).mean()
    return float(gain.mean()), float(gain.std() / np.sqrt(len(gain)))


def beyond(
    s: np.ndarray, targets: np.ndarray, s_new: np.ndarray, new: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Take the mean given S out of each target: a spline in the ranks of S, fitted to the training
    rows.
    """
    order = np.sort(s)

    def ranks(values: np.ndarray) -> np.ndarray:
        return (np.searchsorted(order, values) + np.searchsorted(order, values, side="right"))[
            :, None
        ] / (2 * len(s))

    means = make_pipeline(SplineTransformer(12), Ridge(1e-3)).fit(ranks(s), targets)
    return targets - means.predict(ranks(s)), new - means.predict(ranks(s_new))


def erased(Z: tuple[np.ndarray, np.ndarray], s: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """LEACE: the nearest affine map of x from which no linear map predicts s (Belrose et al.
    2023).
    """
    x = Z[0] - Z[0].mean(axis=0)
    variances, directions = np.linalg.eigh(x.T @ x / len(x))
    kept = variances > 1e-8 * variances.max()
    root, directions = np.sqrt(variances[kept]), directions[:, kept]
    u = (directions / root).T @ (x.T @ (s - s.mean()))
    u /= np.linalg.norm(u)
    off = np.outer((directions / root) @ u, (directions * root) @ u)
    return tuple(z - (z - Z[0].mean(axis=0)) @ off for z in Z)


def repaired(
    Z: tuple[np.ndarray, np.ndarray], fit: Rows, new: Rows
) -> tuple[np.ndarray, np.ndarray]:
    """Full repair on ten bands of S, each table by itself, as in AIF360's DisparateImpactRemover.

    A value becomes the median, over the bands, of the values at its rank (Feldman et al. 2015).
    """
    edges, levels = np.quantile(fit.s, np.arange(1, BANDS) / BANDS), np.linspace(0, 1, 101)
    result = []
    for z, rows in zip(Z, (fit, new)):
        band = np.searchsorted(edges, rows.s, side="right")
        quantiles = [
            np.quantile(z[band == b], levels, axis=0, method="nearest") for b in np.unique(band)
        ]
        median = np.quantile(np.array(quantiles), 0.5, axis=0, method="lower")
        ranks = pd.DataFrame(z).groupby(band).rank(method="average", pct=True).to_numpy()
        result.append(np.take_along_axis(median, np.rint(ranks * 100).astype(int), axis=0))
    return tuple(result)


def representation(
    method: str, fit: Rows, new: Rows
) -> tuple[tuple[np.ndarray, np.ndarray], dict[str, Any]]:
    """Return Z of the training rows and of the others as matrices, and what is to be noted."""
    if method == "raw":
        return same_columns((fit.X, new.X)), {}
    if method in COUPLINGS:
        model = ParityCoupling(random_state=0, n_jobs=1)
        Z = model.fit_transform(
            fit.X, fit.targets if method == "named" else None, sensitive_features=fit.s
        )
        Z_new = model.transform(new.X, sensitive_features=new.s)
        return same_columns((Z, Z_new)), {"untouched": model.untouched_}
    if method == "leace":
        return erased(same_columns((fit.X, new.X)), fit.s), {}
    if method == "repair":
        return repaired(same_columns((fit.X, new.X)), fit, new), {}
    few = Rows(*(part[:NETWORK_ROWS] for part in fit))
    y = few.targets.iloc[:, -1].to_numpy()
    kind = FRHSICClassifier if set(np.unique(y)) <= {0.0, 1.0} else FRHSICRegressor
    network = kind(random_state=0, device="cpu").fit(few.X, y, sensitive_features=few.s)
    return (network.transform(fit.X), network.transform(new.X)), {}


def leak_task(name: str, method: str, seed: int) -> dict[str, Any]:
    fit, new = split(typed(name), seed)
    start = time.process_time()
    z, record = representation(method, fit, new)
    record["seconds"] = time.process_time() - start
    probes = PROBES if method in ("raw", *COUPLINGS) else PROBES[:3]
    rng = np.random.default_rng(seed)
    record["leak"] = {kind: r2(kind, z, fit.s, new.s) for kind in probes}
    if method in COUPLINGS:
        shuffled = rng.permutation(fit.s), rng.permutation(new.s)
        record["shuffled"] = {kind: r2(kind, z, *shuffled) for kind in probes}
        noise = np.sqrt(0.98 / 0.02) * fit.s.std()
        hidden = tuple(
            np.column_stack([part, s + noise * rng.normal(size=len(s))])
            for part, s in zip(z, (fit.s, new.s))
        )
        record["planted"] = {kind: r2(kind, hidden, fit.s, new.s) for kind in probes}
    targets = [part.targets.fillna(fit.targets.mean()).to_numpy(np.float64) for part in (fit, new)]
    residual = beyond(fit.s, targets[0], new.s, targets[1])
    record["recovery"] = {
        column: max(
            r2(kind, z, residual[0][:, j], residual[1][:, j])[0] for kind in ("ridge", "boosted")
        )
        for j, column in enumerate(fit.targets)
    }
    return record


def told(kind: str, columns: np.ndarray, s: np.ndarray) -> tuple[float, float]:
    """Return R² of S on the second half of the rows by a probe that was fitted to the first."""
    half = len(s) // 2
    return r2(kind, (columns[:half], columns[half:]), s[:half], s[half:])


def counts(rows: pd.DataFrame, among: pd.DataFrame) -> np.ndarray:
    """Return how often each row occurs in a table."""
    keys, others = (
        pd.util.hash_pandas_object(table.astype(str), index=False) for table in (rows, among)
    )
    return keys.map(others.value_counts()).fillna(0).to_numpy(np.float64)


def attack_task(name: str) -> dict[str, Any]:
    fit, new = split(typed(name), 0)
    model = ParityCoupling(random_state=0, n_jobs=1)
    s = fit.s
    Z = model.fit_transform(fit.X, sensitive_features=s)
    Z_new = model.transform(new.X, sensitive_features=new.s)
    z, z_new = same_columns((Z, Z_new))
    record: dict[str, Any] = {
        "Z alone": told("boosted", z, s),
        "count in its own table": told("boosted", np.column_stack([z, counts(Z, Z)]), s),
        "count in another released table": told(
            "boosted", np.column_stack([z_new, counts(Z_new, Z)]), new.s
        ),
    }
    x_new = same_columns((fit.X, new.X))[1]
    changed = (
        (pd.DataFrame(z_new) != pd.DataFrame(same_columns((Z, new.X))[1])).any(axis=1).to_numpy()
    )
    record["raw columns"] = told("boosted", x_new, new.s)
    record["which rows changed"] = told("boosted", np.column_stack([z_new, changed]), new.s)
    releases = []
    for seed in range(20):
        other = copy.copy(model)
        other.random_seed_ = 1000 + seed  # the same ratio, another draw
        releases.append(other.transform(new.X, sensitive_features=new.s))
        if len(releases) in (2, 5, 20):
            agree = np.sum([counts_equal(releases[0], one) for one in releases], axis=0)
            every = np.concatenate([codes(one) for one in releases], axis=1)
            record[f"{len(releases)} releases"] = told(
                "boosted", np.column_stack([every, agree]), new.s
            )
    rows = len(new.s) // 1000 * 1000
    parts = [
        model.transform(new.X[i : i + 1000], sensitive_features=new.s[i : i + 1000])
        for i in range(0, rows, 1000)
    ]
    both = same_columns((Z, pd.concat(parts)))
    record["batches of 1000"] = r2("boosted", both, s, new.s[:rows])
    return {"attacks": record}


def codes(X: pd.DataFrame) -> np.ndarray:
    categories = X.select_dtypes("category").apply(lambda column: column.cat.codes)
    return np.column_stack(
        [X.select_dtypes("number").to_numpy(np.float64), categories.to_numpy(np.float64)]
    )


def counts_equal(a: pd.DataFrame, b: pd.DataFrame) -> np.ndarray:
    return ((a == b) | (a.isna() & b.isna())).all(axis=1).to_numpy()


def head_targets(rows: Rows) -> np.ndarray:
    """Return ten columns: those taken out, the target, and other columns of X, as standardized
    numbers.
    """
    z = matrix(rows.X)
    free = 10 - rows.targets.shape[1]
    # the columns must vary; the same ones on all splits
    candidates = np.flatnonzero((np.abs(z - np.median(z, axis=0)) > 0).mean(axis=0) >= 0.05)
    chosen = np.random.default_rng(0).choice(candidates, free, replace=False)
    columns = np.column_stack([rows.targets.to_numpy(np.float64), z[:, chosen]])
    return (columns - columns.mean(axis=0)) / columns.std(axis=0)


def heads_task(name: str, seed: int) -> dict[str, Any]:
    whole = typed(name)
    targets = pd.DataFrame(head_targets(whole))
    fit, new = split(Rows(whole.X, targets, whole.s), seed)
    model = ParityCoupling(random_state=0, n_jobs=1)
    Z = model.fit_transform(fit.X, sensitive_features=fit.s)
    groups = np.searchsorted(np.quantile(new.s, np.arange(1, 10) / 10), new.s, side="right")
    heads = []
    pairs = {"coupling": (Z, model.transform(new.X, sensitive_features=new.s))}
    for method, pair in (pairs | ({"raw": (fit.X, new.X)} if seed == 0 else {})).items():
        z = same_columns(pair)
        for kind in ("ridge", "boosted", "network"):
            for j in range(targets.shape[1]):
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    head = probe(kind).fit(z[0][:HEAD_ROWS], fit.targets.iloc[:HEAD_ROWS, j])
                scores = np.asarray(head.predict(z[1]), dtype=np.float64)
                if scores.std() < 1e-12:
                    continue
                gap = gdp(scores, new.s, resamples=0)
                pvalue = f_oneway(*(scores[groups == group] for group in np.unique(groups))).pvalue
                fitted = float(np.corrcoef(scores, new.targets.iloc[:, j])[0, 1])
                heads.append(
                    [method, kind, j, float(gap) / float(scores.std()), float(pvalue), fitted]
                )
    return {"heads": heads}


def scale_task(name: str) -> dict[str, Any]:
    if name == "adult":
        X, _, s = typed(name)
    else:
        rng = np.random.default_rng(0)
        s = rng.normal(size=10**6)
        X = pd.DataFrame(0.4 * s[:, None] * (np.arange(10) < 4) + rng.normal(size=(10**6, 10)))
        X[8], X[9] = (pd.Categorical((X[j] > 0.5).astype(int) + (X[j] > 1)) for j in (0, 9))
    start, before = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    model = ParityCoupling(random_state=0, n_jobs=1)
    model.fit_transform(X, sensitive_features=s)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    return {
        "rows": len(X),
        "cpu seconds": time.process_time() - start,
        "more memory, GB": memory / 2**20,
    }


def tasks() -> dict[str, Callable[[], dict[str, Any]]]:
    """Return every measurement by its key, what matters most first."""
    every = {f"scale {name}": partial(scale_task, name) for name in ("million", "adult")}
    every |= {f"attacks {name}": partial(attack_task, name) for name in ATTACKED}
    leaks = [
        (name, method, seed)
        for seed in range(3)
        for method, name in product(METHODS if seed == 0 else METHODS[:3], TAKEN_OUT)
    ]
    every |= {
        f"leak {name} {method} {seed}": partial(leak_task, name, method, seed)
        for name, method, seed in leaks
    }
    return every | {
        f"heads {name} {seed}": partial(heads_task, name, seed)
        for seed in range(10)
        for name in HEADED
    }


def measured(key: str, task: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    start = time.process_time()
    with threadpool_limits(1):
        record = task()
    return {"key": key, **record, "cpu": time.process_time() - start}


def run(out: Path, jobs: int, wanted: Sequence[str]) -> None:
    known = {record["key"] for record in records(out)}
    left = {
        key: task
        for key, task in tasks().items()
        if key not in known and all(word in key for word in wanted)
    }
    with out.open("a") as file:
        parallel = Parallel(jobs, return_as="generator_unordered", batch_size=1, pre_dispatch="all")
        for record in parallel(delayed(measured)(key, task) for key, task in left.items()):
            print(json.dumps(record), file=file, flush=True)
            print(f"{record['key']}: {record['cpu']:.0f} s", flush=True)


def records(out: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.read_text().splitlines()] if out.exists() else []


def report(out: Path) -> None:
    every = records(out)
    leaks = [record for record in every if record["key"].startswith("leak") and "leak" in record]
    by: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for record in leaks:
        by.setdefault(tuple(record["key"].split()[1:3]), []).append(record)
    for (name, method), group in by.items():
        raw = by.get((name, "raw"), group)
        best = max(np.mean([r["leak"][kind][0] for r in raw]) for kind in PROBES)
        print(f"\n{name}, {method}, {len(group)} splits; raw R² {best:.3f}", end="")
        if method in COUPLINGS:
            print(f", untouched {np.mean([r['untouched'] for r in group]):.2f}", end="")
        recovery, base = (
            np.mean([list(r["recovery"].values()) for r in some], axis=0) for some in (group, raw)
        )
        print(
            f", recovery {100 * recovery.mean() / base.mean():.0f} %"
            f" {(100 * recovery / base).round().tolist()}"
        )
        for kind in group[0]["leak"]:
            mean, error = np.mean([r["leak"][kind] for r in group], axis=0)
            error /= np.sqrt(len(group))
            print(f"  {kind:12} leak {mean:7.4f} ± {error:.4f}", end="")
            if "planted" in group[0]:
                shuffled, planted = (
                    np.mean([r[what][kind] for r in group], axis=0)
                    for what in ("shuffled", "planted")
                )
                reads = np.mean([r["leak"][kind][0] for r in raw]) / best
                finds = planted[0] - max(mean, 0) > 0 and planted[0] > shuffled[0] + 2 * error
                print(
                    f"  shuffled {shuffled[0]:7.4f}  reads {reads:.0%} of raw  planted"
                    f" {planted[0]:.4f}",
                    end="",
                )
                print("" if reads >= 0.8 and finds else "  does not count", end="")
            print()
    for record in every:
        if "attacks" in record:
            print(f"\n{record['key']}")
            for attack, (value, error) in record["attacks"].items():
                print(f"  {attack:34} R² {value:7.4f} ± {error:.4f}")
        if "cpu seconds" in record:
            print(
                f"\n{record['key']}: {record['rows']:,} rows, {record['cpu seconds']:.0f} s of"
                " CPU, ",
                end="",
            )
            print(f"{record['more memory, GB']:.1f} GB")
    heads = pd.DataFrame(
        [
            [*record["key"].split()[1:], *head]
            for record in every
            for head in record.get("heads", ())
        ],
        columns=["table", "split", "method", "kind", "target", "gdp", "pvalue", "fit"],
    )
    for (name, method), group in heads.groupby(["table", "method"]):
        share = (group.pvalue < 0.05).groupby(group.split).mean()
        error = share.std() / np.sqrt(len(share))
        gap = group.groupby("split").gdp.mean()
        print(
            f"{name}, {method}: {len(group) // len(share)} heads on {len(share)} splits, ", end=""
        )
        print(f"standardized GDP {gap.mean():.4f}", end="")
        print(
            f" ± {gap.std() / np.sqrt(len(gap)):.4f}, beyond chance at .05: {share.mean():.3f} ±"
            f" {error:.3f}"
        )
    print(f"\n{sum(record['cpu'] for record in every) / 60:.0f} minutes of CPU")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("command", choices=("run", "report"))
    parser.add_argument("--out", type=Path, default=RECORDS)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument(
        "--only", nargs="*", default=(), help="measure the keys that hold all of these words"
    )
    options = parser.parse_args()
    if options.command == "run":
        run(options.out, options.jobs, options.only)
    else:
        report(options.out)


if __name__ == "__main__":
    main()
