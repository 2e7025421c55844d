"""The coupling of tables with S: what is left of S, what can still be recovered, and attacks on a
release; and the gaps of thirty heads on Z, beside `ParityEncoder`.

    python benchmarks/coupling.py leak heads attacks scale show --jobs 16 --out FOLDER
    python benchmarks/coupling.py leak --table adult --method coupling raw --split 1 --out FOLDER

Records are written as those of `encoder.py`. From each table its target and a few columns are taken
out; 60 % of the rows are fitted on, and the last 20 % are the test rows. Settings were chosen on
the 20 % between.

leak
    R² of S on test rows by probes that were fitted on released training rows, its standard error,
    and the value on shuffled S. A probe counts if it reads at least 80 % of the best probe's R²
    from the raw columns and finds a planted leak of .02. Recovery is R² of the columns that were
    taken out, less their mean given S, by the better of ridge regression and boosted trees, over
    that from the raw columns.
heads
    Ridge regression, boosted trees and a network for each of ten columns: those taken out, the
    target, and others of the table. 20 % of the rows fit these heads and 20 % measure their gaps,
    on Z of the coupling and of encoders that keep the target, or all columns taken out.
attacks
    What a release tells of S beside Z: counts, other releases, and batches.
scale
    Seconds of CPU and memory for all rows of Adult, and for a million rows of ten columns.
"""

from __future__ import annotations

import copy
import resource
from time import process_time
from typing import Any, NamedTuple

import lightgbm
import numpy as np
import pandas as pd
from encoder import Study, command_line, heads_test, markdown, standard_error
from scipy.stats import f_oneway
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.linear_model import Ridge, RidgeCV
from sklearn.neighbors import KNeighborsRegressor
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import SplineTransformer, StandardScaler

from frhsic import (
    FRHSICClassifier,
    FRHSICRegressor,
    ParityCoupling,
    ParityEncoder,
    gdp,
    load_dataset,
)
from frhsic_paper.records import Record, grouped

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

PROBES = ("ridge", "boosted", "extra trees", "neighbors", "network")
COUPLINGS = ("coupling", "named")  # the second is told which columns will be recovered
PROBED_ROWS = 12_000
NETWORK_ROWS = 6_000
BANDS = 10
BATCH = 1000

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


def thirds(rows: Rows, split: int) -> list[Rows]:
    """Return 60 % of the rows, which fit Z, 20 % between, and 20 % to measure on."""
    n = len(rows.s)
    order = np.random.default_rng([split, n]).permutation(n)
    return [
        Rows(
            rows.X.iloc[own].reset_index(drop=True),
            rows.targets.iloc[own].reset_index(drop=True),
            rows.s[own],
        )
        for own in np.split(order, [int(0.6 * n), int(0.8 * n)])
    ]


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
    varies = fit.std(axis=0) > 1e-9
    indicator = ((fit == 0) | (fit == 1)).all(axis=0)
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
    center = t.mean()
    scale = t.std()
    model = probe(kind).fit(z[0][:rows], (t[:rows] - center) / scale)
    predicted = model.predict(z[1]) * scale + center
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
        ends = [np.searchsorted(order, values, side=side) for side in ("left", "right")]
        return np.sum(ends, axis=0)[:, None] / (2 * len(s))

    means = make_pipeline(SplineTransformer(12), Ridge(1e-3)).fit(ranks(s), targets)
    return targets - means.predict(ranks(s)), new - means.predict(ranks(s_new))


def erased(Z: tuple[np.ndarray, np.ndarray], s: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """LEACE: the nearest affine map of x from which no linear map predicts s (Belrose et al.
    2023).
    """
    x = Z[0] - Z[0].mean(axis=0)
    variances, directions = np.linalg.eigh(x.T @ x / len(x))
    kept = variances > 1e-8 * variances.max()
    root = np.sqrt(variances[kept])
    directions = directions[:, kept]
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
    edges = np.quantile(fit.s, np.arange(1, BANDS) / BANDS)
    levels = np.linspace(0, 1, 101)
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
) -> tuple[tuple[np.ndarray, np.ndarray], Record]:
    """Return Z of the training rows and of the others as matrices, and what is to be noted."""
    if method == "raw":
        return same_columns((fit.X, new.X)), {}
    if method in COUPLINGS:
        model = ParityCoupling(random_state=0, n_jobs=1)
        targets = fit.targets if method == "named" else None
        Z = model.fit_transform(fit.X, targets, sensitive_features=fit.s)
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


def leak(split: int, method: str, table: str) -> Record:
    """Return R² of S and of the columns that were taken out, from Z of a method."""
    fit, _, new = thirds(typed(table), split)
    start = process_time()
    z, record = representation(method, fit, new)
    record["seconds"] = process_time() - start
    probes = PROBES if method in ("raw", *COUPLINGS) else PROBES[:3]
    rng = np.random.default_rng(split)
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


def attacks(table: str) -> Record:
    """Return R² of S by what an attack knows, from a release and from others beside it."""
    fit, _, new = thirds(typed(table), 0)
    s = new.s
    model = ParityCoupling(random_state=0, n_jobs=1)
    Z = model.fit_transform(fit.X, sensitive_features=fit.s)
    Z_new = model.transform(new.X, sensitive_features=s)
    z, z_new = same_columns((Z, Z_new))
    changed = (z_new != same_columns((Z, new.X))[1]).any(axis=1)
    known = {
        "Z alone": (z, fit.s),
        "count in its own table": (np.column_stack([z, counts(Z, Z)]), fit.s),
        "count in another released table": (np.column_stack([z_new, counts(Z_new, Z)]), s),
        "raw columns": (same_columns((fit.X, new.X))[1], s),
        "which rows changed": (np.column_stack([z_new, changed]), s),
    }
    releases = []
    for seed in range(20):
        other = copy.copy(model)
        other.random_seed_ = 1000 + seed  # the same ratio, another draw
        releases.append(other.transform(new.X, sensitive_features=s))
    for count in (2, 5, 20):
        agree = np.sum([counts_equal(releases[0], one) for one in releases[:count]], axis=0)
        known[f"{count} releases"] = np.column_stack([*map(codes, releases[:count]), agree]), s
    record = {name: told("boosted", *each) for name, each in known.items()}
    rows = len(s) // BATCH * BATCH
    parts = [slice(i, i + BATCH) for i in range(0, rows, BATCH)]
    batches = [model.transform(new.X[part], sensitive_features=s[part]) for part in parts]
    both = same_columns((Z, pd.concat(batches)))
    record[f"batches of {BATCH}"] = r2("boosted", both, fit.s, s[:rows])
    return {"attacks": record}


def codes(X: pd.DataFrame) -> np.ndarray:
    categories = X.select_dtypes("category").apply(lambda column: column.cat.codes)
    return np.column_stack(
        [X.select_dtypes("number").to_numpy(np.float64), categories.to_numpy(np.float64)]
    )


def counts_equal(a: pd.DataFrame, b: pd.DataFrame) -> np.ndarray:
    return ((a == b) | (a.isna() & b.isna())).all(axis=1).to_numpy()


def scale(table: str) -> Record:
    """Return what it takes to make a table without S."""
    if table == "adult":
        X, _, s = typed(table)
    else:
        rng = np.random.default_rng(0)
        s = rng.normal(size=10**6)
        X = pd.DataFrame(0.4 * s[:, None] * (np.arange(10) < 4) + rng.normal(size=(10**6, 10)))
        X[8] = pd.Categorical((X[0] > 0.5).astype(int) + (X[0] > 1))
        X[9] = pd.Categorical((X[9] > 0.5).astype(int) + (X[9] > 1))
    start = process_time()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    ParityCoupling(random_state=0, n_jobs=1).fit_transform(X, sensitive_features=s)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    return {
        "rows": len(X),
        "cpu seconds": process_time() - start,
        "more memory, GB": memory / 2**20,
    }


def show_leak(records: list[Record]) -> str:
    """Return the means over splits of what probes read of S, and of what is recovered."""
    lines = []
    for record in records:
        cell = {"table": record["table"], "method": record["method"]}
        for kind, (value, error) in record["leak"].items():
            beside = {
                what: record[what][kind][0] for what in ("shuffled", "planted") if what in record
            }
            lines.append(cell | {"probe": kind, "leak": value, "±": error} | beside)
    groups = pd.DataFrame(lines).groupby(["table", "method", "probe"], sort=False)
    probes = groups.mean()
    probes["±"] /= np.sqrt(groups.size())
    raw = probes["leak"].xs("raw", level="method")
    reads = (raw / raw.groupby("table").max()).rename("of raw")
    probes = probes.reset_index().merge(reads.reset_index(), on=["table", "probe"])
    least = np.maximum(probes["leak"].clip(lower=0), probes["shuffled"] + 2 * probes["±"])
    counting = (probes["of raw"] >= 0.8) & (probes["planted"] > least)
    probes["counts"] = np.where(counting, "yes", "")
    frame = pd.DataFrame(records)
    frame["recovery"] = [np.mean([*columns.values()]) for columns in frame["recovery"]]
    kept = frame.pivot(index=["table", "split"], columns="method", values="recovery")
    tables = kept.div(kept["raw"], axis=0).groupby("table")
    recovery = tables.agg(lambda shares: f"{shares.mean():.2f} ± {shares.sem():.2f}")
    recovery["untouched"] = (
        frame[frame["method"] == "coupling"].groupby("table")["untouched"].mean()
    )
    return f"{markdown(probes)}\n\nRecovery:\n\n{markdown(recovery.reset_index())}"


def show_attacks(records: list[Record]) -> str:
    columns = {
        record["table"]: {
            name: f"{value:.3f} ± {error:.3f}" for name, (value, error) in record["attacks"].items()
        }
        for record in records
    }
    return markdown(pd.DataFrame(columns).rename_axis("attack").reset_index())


def show_scale(records: list[Record]) -> str:
    return markdown(pd.DataFrame(records))


LEVEL = 0.05
HEADED = ("adult", "credit", "bank", "acs_income")
HEAD_ROWS = 5_000
ENCODED = ("encoder: target", "encoder: named")


def released(
    method: str, y: Any, parts: list[Rows], seed: int
) -> tuple[tuple[np.ndarray, np.ndarray], Record]:
    """Return Z of the rows that fit heads and of those that measure them, X itself for "raw"; and
    of an encoder the upper end of the gap that it states, and the gap on these rows.
    """
    fit = parts[0]
    later = parts[1:]
    if method == "raw":
        return same_columns((later[0].X, later[1].X)), {}
    if method == "coupling":
        model = ParityCoupling(random_state=seed, n_jobs=1)
        model.fit(fit.X, y, sensitive_features=fit.s)
        pair = [model.transform(part.X, sensitive_features=part.s) for part in later]
        return same_columns((pair[0], pair[1])), {}
    encoder = ParityEncoder(limit=0, n_jobs=1, random_state=seed)
    encoder.fit(fit.X, y, sensitive_features=fit.s)
    pair = [pd.DataFrame(np.asarray(encoder.transform(part.X))) for part in later]
    fresh = heads_test(np.concatenate(pair), np.concatenate([part.s for part in later])).gap()
    note = {
        "prototypes": len(encoder.prototypes_),
        "stated": encoder.choice_.gaps["sensitive"].high,
        "fresh": fresh.value,
        "fresh low": fresh.low,
    }
    return same_columns((pair[0], pair[1])), note


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


def heads(split: int, table: str, method: str) -> Record:
    """Fit thirty heads on Z, and measure their gaps."""
    whole = typed(table)
    columns = pd.DataFrame(head_targets(whole))
    parts = thirds(whole, split)
    every = thirds(Rows(whole.X, columns, whole.s), split)
    y = {"encoder: target": parts[0].targets[["target"]], "encoder: named": parts[0].targets}
    (z, z_new), note = released(method, y.get(method), parts, split)
    s = every[2].s
    groups = np.searchsorted(np.quantile(s, np.arange(1, 10) / 10), s, side="right")
    measured = []
    few = slice(HEAD_ROWS)
    for kind in ("ridge", "boosted", "network"):
        for j in columns:
            head = probe(kind).fit(z[few], every[1].targets[j][few])
            scores = np.asarray(head.predict(z_new), dtype=np.float64)
            spread = float(scores.std())
            if spread < 1e-9:  # a constant head has no gap
                measured.append([kind, j, 0.0, 1.0, 1.0, 0.0])
                continue
            gap = gdp(scores, s, resamples=199)
            between = f_oneway(*(scores[groups == group] for group in np.unique(groups)))
            fitted = np.corrcoef(scores, every[2].targets[j])[0, 1]
            measured.append(
                [kind, j, gap.value / spread, gap.pvalue, float(between.pvalue), float(fitted)]
            )
    return {"heads": measured} | note


def show_heads(records: list[Record]) -> str:
    """Return the share of heads beyond chance and the median gap, by table and method."""
    lines = []
    for (table, method), own in grouped(records, "table", "method").items():
        each = np.array([[head[2:] for head in record["heads"]] for record in own], dtype=float)
        gaps = np.median(each[:, :, 0], axis=1)
        beyond = (each[:, :, 1:3] < LEVEL).mean(axis=1)
        notes = pd.DataFrame(own, columns=["prototypes", "stated", "fresh"]).mean()
        lines.append(
            {
                "table": table,
                "Z": method,
                "splits": len(own),
                "heads": each.shape[0] * each.shape[1],
                "prototypes": notes["prototypes"],
                "upper end": notes["stated"],
                "fresh ½√χ²": notes["fresh"],
                "beyond chance (GDP)": beyond[:, 0].mean(),
                "± (GDP)": standard_error(beyond[:, 0]),
                "beyond chance (F)": beyond[:, 1].mean(),
                "± (F)": standard_error(beyond[:, 1]),
                "median standardized gap": gaps.mean(),
                "± (gap)": standard_error(gaps),
                "mean standardized gap": each[:, :, 0].mean(),
                "correlation with the column": each[:, :, 3].mean(),
            }
        )
    return markdown(pd.DataFrame(lines))


STUDIES = {
    "leak": Study(
        leak,
        {
            "split": range(3),
            "method": (*COUPLINGS, "raw", "leace", "repair", "frhsic"),
            "table": [*TAKEN_OUT],
        },
        show_leak,
    ),
    "heads": Study(
        heads,
        {"split": range(10), "table": HEADED, "method": (*ENCODED, "coupling", "raw")},
        show_heads,
    ),
    "attacks": Study(attacks, {"table": ("adult", "credit")}, show_attacks),
    "scale": Study(scale, {"table": ("million", "adult")}, show_scale),
}

if __name__ == "__main__":
    command_line(STUDIES, __doc__)
