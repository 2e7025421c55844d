"""What `ParityEncoder` is good for, beside the closed form and the coupling, on rows that none of
them has seen.

    python benchmarks/encoder_heads.py heads losses recovery releases show --jobs 16 --out FOLDER

Records are those of `encoder.py`: a run that was cut off goes on where it stopped.

heads
    Thirty heads on Z: ridge regression, boosted trees and a network for each of ten columns: those
    that `coupling.py` takes out of the table, the target, and others of the table. The encoder
    keeps the target, or the target and the columns taken out. 60 % of the rows fit it,
    20 % fit the heads and 20 % measure their gaps.
losses
    Loss of Z as a prediction of the target, and of a fresh head on Z, less that of the closed form
    at the same GDP, in % of what the unconstrained model gains over a constant. All are measured on
    the same fresh rows. The closed form's loss is interpolated as a decreasing function of GDP;
    beyond the ends of its frontier it is that of the end.
recovery
    R² of five columns less their means given S, as a share of what raw columns recover. Z is told
    these columns. Probes are fitted on 20 % of the rows, and 20 % measure them.
releases
    What Z tells of S alone and beside another release of the same rows: with another seed, at
    another limit, and refitted after 5 % of the rows were exchanged. How many rows change their Z
    if other rows of the call change must be 0.
"""

from __future__ import annotations

import copy
from typing import Any

import coupling
import numpy as np
import pandas as pd
from bases import served_path
from encoder import (
    BOOSTED,
    PROBES,
    TABLES,
    Record,
    Study,
    along,
    command_line,
    grouped,
    heads_test,
    markdown,
    parts_of,
    recovered,
    standard_error,
)
from scipy.stats import f_oneway
from sklearn.isotonic import IsotonicRegression
from sklearn.metrics import log_loss, mean_squared_error

from frhsic import (
    ParityClassifier,
    ParityCoupling,
    ParityEncoder,
    ParityRegressor,
    gdp,
    load_dataset,
)
from frhsic.estimators.heads_gap import HeadsTest

LEVEL = 0.05


def released(
    method: str, y: Any, parts: list[coupling.Rows], seed: int, uses_sensitive: bool = False
) -> tuple[tuple[np.ndarray, np.ndarray], Record]:
    """Return Z of the rows that fit heads and of those that measure them, X itself for "raw"; and
    of an encoder the upper end of the gap that it states, and the gap on these rows.
    """
    fit = parts[0]
    later = parts[1:]
    if method == "raw":
        return coupling.same_columns((later[0].X, later[1].X)), {}
    if method == "coupling":
        model = ParityCoupling(random_state=seed, n_jobs=1)
        model.fit(fit.X, y, sensitive_features=fit.s)
        pair = [model.transform(part.X, sensitive_features=part.s) for part in later]
        return coupling.same_columns((pair[0], pair[1])), {}
    encoder = ParityEncoder(limit=0, uses_sensitive=uses_sensitive, n_jobs=1, random_state=seed)
    encoder.fit(fit.X, y, sensitive_features=fit.s)
    known = [{"sensitive_features": part.s} if uses_sensitive else {} for part in later]
    pair = [
        pd.DataFrame(np.asarray(encoder.transform(part.X, **own)))
        for part, own in zip(later, known)
    ]
    fresh = heads_test(np.concatenate(pair), np.concatenate([part.s for part in later])).gap()
    note = {
        "prototypes": len(encoder.prototypes_),
        "stated": encoder.choice_.gaps["sensitive"].high,
        "fresh": fresh.value,
        "fresh low": fresh.low,
    }
    return coupling.same_columns((pair[0], pair[1])), note


HEADED = ("adult", "credit", "bank", "acs_income")
HEAD_ROWS = 5_000
ENCODED = ("encoder: target", "encoder: named")


def head_targets(rows: coupling.Rows) -> np.ndarray:
    """Return ten columns: those taken out, the target, and other columns of X, as standardized
    numbers.
    """
    z = coupling.matrix(rows.X)
    free = 10 - rows.targets.shape[1]
    # the columns must vary; the same ones on all splits
    candidates = np.flatnonzero((np.abs(z - np.median(z, axis=0)) > 0).mean(axis=0) >= 0.05)
    chosen = np.random.default_rng(0).choice(candidates, free, replace=False)
    columns = np.column_stack([rows.targets.to_numpy(np.float64), z[:, chosen]])
    return (columns - columns.mean(axis=0)) / columns.std(axis=0)


def heads(split: int, table: str, method: str) -> Record:
    """Fit thirty heads on Z, and measure their gaps."""
    whole = coupling.typed(table)
    columns = pd.DataFrame(head_targets(whole))
    parts = coupling.thirds(whole, split)
    every = coupling.thirds(coupling.Rows(whole.X, columns, whole.s), split)
    y = {"encoder: target": parts[0].targets[["target"]], "encoder: named": parts[0].targets}
    (z, z_new), note = released(method, y.get(method), parts, split)
    s = every[2].s
    groups = np.searchsorted(np.quantile(s, np.arange(1, 10) / 10), s, side="right")
    measured = []
    few = slice(HEAD_ROWS)
    for kind in ("ridge", "boosted", "network"):
        for j in columns:
            head = coupling.probe(kind).fit(z[few], every[1].targets[j][few])
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


def stated(records: list[Record]) -> Record:
    """Return means of what encoders state of their gap and of what fresh rows show."""
    notes = {"prototypes": "prototypes", "upper end": "stated", "fresh ½√χ²": "fresh"}
    return {
        name: float(np.mean([record.get(field, np.nan) for record in records]))
        for name, field in notes.items()
    }


def show_heads(records: list[Record]) -> str:
    """Return the share of heads beyond chance and the median gap, by table and method."""
    lines = []
    for (table, method), own in grouped(records, "table", "method").items():
        each = np.array([[head[2:] for head in record["heads"]] for record in own], dtype=float)
        gaps = np.median(each[:, :, 0], axis=1)
        beyond = (each[:, :, 1:3] < LEVEL).mean(axis=1)
        lines.append(
            {
                "table": table,
                "Z": method,
                "splits": len(own),
                "heads": each.shape[0] * each.shape[1],
                **stated(own),
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

    closed = [point(f) for f in served_path(model, new)]
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


# A fifth column to keep, beside those that `coupling.py` takes out and the target.
FIFTH = {"adult": "capital-gain", "bank": "euribor3m", "credit": "BILL_AMT1", "meps": "PCS42"}

KEPT = ("raw", "encoder", "encoder with S", "coupling", "coupling, not told")


def recovery(split: int, table: str, method: str) -> Record:
    """Return R² of five columns beyond S, from Z that was told these columns, and what Z tells of
    S.
    """
    whole = coupling.typed(table)
    fifth = FIFTH[table]
    targets = whole.targets.assign(**{fifth: whole.X[fifth]})
    targets = targets.fillna(targets.mean()).astype(float)
    parts = coupling.thirds(coupling.Rows(whole.X.drop(columns=fifth), targets, whole.s), split)
    y = None if method == "coupling, not told" else parts[0].targets
    kind = "coupling" if method.startswith("coupling") else method
    z, note = released(kind, y, parts, split, uses_sensitive=method == "encoder with S")
    s = [part.s for part in parts[1:]]
    columns = [part.targets.to_numpy() for part in parts[1:]]
    residual = coupling.beyond(s[0], columns[0], s[1], columns[1])
    shares = {}
    for j, column in enumerate(targets):
        tried = [
            coupling.r2(probe, z, residual[0][:, j], residual[1][:, j])[0]
            for probe in ("ridge", "boosted")
        ]
        shares[column] = max(tried)
    fitting = np.arange(len(s[0]) + len(s[1])) < len(s[0])
    told = recovered(np.concatenate(z), np.concatenate(s), BOOSTED, fitting)["boosted trees"]
    return {"recovery": shares, "leak": told} | note


def show_recovery(records: list[Record]) -> str:
    """Return the recovery as a share of that of raw columns, and the leak, by table and method."""
    lines = []
    raw = grouped([record for record in records if record["method"] == "raw"], "table", "split")
    for (table, method), own in grouped(records, "table", "method").items():
        shares = []
        for record in own:
            base = raw.get((table, record["split"]))
            if base is not None:
                whole = sum(base[0]["recovery"].values())
                shares.append(sum(record["recovery"].values()) / whole)
        leaks = np.mean([record["leak"] for record in own], axis=0)
        lines.append(
            {
                "table": table,
                "Z": method,
                "splits": len(own),
                "share of raw": float(np.mean(shares)) if shares else np.nan,
                "±": standard_error(shares),
                "R2 of the rank of S": leaks[0],
                "sum R2": leaks[1],
                "sum of positive R2": leaks[2],
                **stated(own),
            }
        )
    return markdown(pd.DataFrame(lines))


# What reads two releases: these probes, and the χ² of pairs of prototypes.
READERS = {name: PROBES[name] for name in ("boosted trees", "extra trees", "ridge")}


def told(z: np.ndarray, s: np.ndarray) -> Record:
    """Return what the best probe explains, and the test of all heads."""
    test: HeadsTest = heads_test(z, s)
    best = np.max([*recovered(z, s, READERS).values()], axis=0)
    return {
        "R2 rank": float(best[0]),
        "sum R2": float(best[1]),
        "positive R2": float(best[2]),
        "chi2": (test.statistic - test.degrees) / test.rows,
        "pvalue": test.pvalue,
    }


def releases(split: int, table: str) -> Record:
    """Return what releases of the same rows tell, and how many rows change with their call."""
    data = load_dataset(table)
    X, y, s, train, fresh = parts_of(data, split)
    exchanged = len(train) // 20
    others = fresh[-exchanged:]
    fresh = fresh[:-exchanged]
    new = X.iloc[fresh]

    def fitted(rows: np.ndarray, seed: int) -> ParityEncoder:
        encoder = ParityEncoder(n_jobs=1, random_state=seed)
        return encoder.fit(X.iloc[rows], y[rows], sensitive_features=s[rows])

    def z_of(encoder: ParityEncoder, table: pd.DataFrame = new) -> np.ndarray:
        return np.asarray(encoder.transform(table))

    first = fitted(train, split)
    own = z_of(first)
    beside = {
        "another seed": z_of(fitted(train, split + 1000)),
        "limit 50%": z_of(first.at("50%")),
        "refit, 5 % other rows": z_of(fitted(np.r_[train[exchanged:], others], split)),
    }
    record: Record = {"first": told(own, s[fresh])}
    for name, z in beside.items():
        record[f"{name}, alone"] = told(z, s[fresh])
        record[f"first and {name}"] = told(np.column_stack([own, z]), s[fresh])
    raw = recovered(new.to_numpy(dtype=np.float64), s[fresh], BOOSTED)["boosted trees"]
    record["raw columns"] = dict(zip(("R2 rank", "sum R2", "positive R2"), raw))
    rng = np.random.default_rng(split)
    order = rng.permutation(len(fresh))
    some = order[:200]
    mixed = new.copy()
    neighbours = np.setdiff1d(np.arange(len(fresh)), some)
    mixed.iloc[neighbours] = new.iloc[rng.permutation(neighbours)].to_numpy()
    again = {
        "the same call": z_of(first),
        "a copy": z_of(copy.deepcopy(first)),
        "another limit and back": z_of(first.at("50%").at(0)),
        "another order": z_of(first, new.iloc[order])[np.argsort(order)],
        "rows added": z_of(first, pd.concat([new, X.iloc[train]]))[: len(fresh)],
        "neighbours changed": np.where(
            np.isin(np.arange(len(fresh)), some)[:, None], z_of(first, mixed), own
        ),
        "200 rows of the call": _inserted(own, some, z_of(first, new.iloc[some])),
        "one row a call": _inserted(
            own, some[:50], np.concatenate([z_of(first, new.iloc[[row]]) for row in some[:50]])
        ),
    }
    record["changed"] = {name: int((z != own).any(axis=1).sum()) for name, z in again.items()}
    return record


def _inserted(z: np.ndarray, rows: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return Z with other values of some rows."""
    result = z.copy()
    result[rows] = values
    return result


def show_releases(records: list[Record]) -> str:
    """Return what releases tell, by table, and how many rows have changed."""
    lines = []
    for (table,), own in grouped(records, "table").items():
        for name in [name for name in own[0] if name not in ("split", "table", "changed", "cpu")]:
            values = pd.DataFrame([record[name] for record in own])
            means = values.mean()
            line: Record = {"table": table, "release": name, "splits": len(own)}
            line |= {key: means[key] for key in means.index if key != "pvalue"}
            line["± sum R2"] = standard_error(values["sum R2"])
            if "pvalue" in values:
                line["significant splits"] = int((values["pvalue"] < LEVEL).sum())
            lines.append(line)
    changed = pd.DataFrame([record["changed"] for record in records]).sum()
    counts = ", ".join(f"{name} {count}" for name, count in changed.items())
    return f"{markdown(pd.DataFrame(lines))}\n\nRows whose Z changed with the call: {counts}."


# The longest jobs first, so that no process waits for them at the end.
STUDIES = {
    "releases": Study(
        releases, {"split": range(3), "table": ("adult", "compas", "bank")}, show_releases
    ),
    "heads": Study(
        heads,
        {"split": range(10), "table": HEADED, "method": (*ENCODED, "coupling", "raw")},
        show_heads,
    ),
    "losses": Study(losses, {"split": range(5), "table": TABLES}, show_losses),
    "recovery": Study(
        recovery, {"split": range(3), "table": [*FIFTH], "method": KEPT}, show_recovery
    ),
}

if __name__ == "__main__":
    command_line(STUDIES, __doc__)
