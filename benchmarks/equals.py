"""What parity among people of equal controls costs on ten tables, beside parity over all people,
models for each stratum by itself, and fairlearn's reductions with `control_features`.

    FRHSIC_DATA=... python benchmarks/equals.py            # all tables
    python benchmarks/equals.py --tables adult compas --peers   # with fairlearn on bands of S

The controls below were chosen before any fit. Two thirds of at most 4,500 rows fit, the others
measure. All methods have the same base models, a logistic or linear regression, so that a table
takes seconds; limits are shares of the first gap and are chosen on the rows of the fit.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from frhsic import ParityClassifier, ParityRegressor, gdp, load_dataset
from frhsic.estimators.targets import log_losses
from frhsic.parity.strata import Strata

CONTROLS = {
    "adult": "education-num",
    "acs_income": "SCHL",
    "meps": "REGION53",
    "crime": "population",
    "compas": "c_charge_degree",
    "bank": "education",
    "credit": "EDUCATION",
    "support": "dzgroup",
    "pension": "marr",
    "wages": "BA",
}
ROWS = 4_500
BANDS = 5
SHARES = ("50%", "25%")
RECORDS = Path(__file__).parent / "results" / "equals.jsonl"


class Table:
    """Rows that fit and rows that measure, with the control of each."""

    def __init__(self, name: str) -> None:
        data = load_dataset(name)
        rng = np.random.default_rng(0)
        rows = rng.permutation(data.n)[:ROWS]
        control = CONTROLS[name]
        X = data.X.iloc[rows].reset_index(drop=True)
        if control in X:
            w = X[control]
        else:  # one column for each level
            levels = [column for column in X if str(column).startswith(f"{control}=")]
            w = X[levels].idxmax(axis=1)
        self.name = name
        self.X = X.to_numpy(dtype=np.float64)
        self.y = np.asarray(data.y)[rows]
        self.s = np.asarray(data.s, dtype=np.float64).reshape(data.n, -1)[rows, 0]
        self.w = pd.Series(w.to_numpy(), name=control)
        self.train = np.arange(len(rows)) < 2 * len(rows) // 3
        self.classes = len(np.unique(self.y)) == 2

    def model(self, **parameters: Any) -> Any:
        """Return a predictor under parity with fast models."""
        kind = ParityClassifier if self.classes else ParityRegressor
        line = LogisticRegression(max_iter=1000) if self.classes else LinearRegression()
        settings = {"attribute_estimator": scaled(Ridge()), "cv": 3, "random_state": 0}
        return kind(scaled(line), **settings, **parameters)

    def losses(self, f: np.ndarray) -> np.ndarray:
        y = self.y[~self.train]
        if not self.classes:
            return np.asarray((f - y) ** 2)
        return log_losses(np.clip(f, 1e-6, 1 - 1e-6), (y == np.unique(self.y)[1]) * 1.0)

    def measured(self, f: np.ndarray, free: np.ndarray) -> dict[str, Any]:
        """Return gaps of new rows, and the loss above that without a limit, with its error."""
        held = ~self.train
        within = gdp(f, self.s[held], control_features=self.w[held], resamples=199)
        whole = gdp(f, self.s[held], resamples=199)
        extra = self.losses(f) - self.losses(free)
        return {
            "within": within.value,
            "within_interval": within.interval,
            "gap": whole.value,
            "gap_interval": whole.interval,
            "loss": float(self.losses(f).mean()),
            "extra_loss": float(extra.mean()),
            "extra_error": float(extra.std() / np.sqrt(len(extra))),
        }


def scaled(model: Any) -> Any:
    return make_pipeline(StandardScaler(), model)


def predicted(model: Any, X: np.ndarray, **known: Any) -> np.ndarray:
    if hasattr(model, "predict_proba"):
        return np.asarray(model.predict_proba(X, **known)[:, 1])
    return np.asarray(model.predict(X, **known))


def within(table: Table) -> Iterator[tuple[str, np.ndarray]]:
    """Yield the scores of each limit among people of equal controls, and without any."""
    train, held = table.train, ~table.train
    known = {"sensitive_features": table.s[train], "control_features": table.w[train]}
    model = table.model(limit="50%").fit(table.X[train], table.y[train], **known)
    for limit in (None, *SHARES, 0):
        f = predicted(model.at(limit), table.X[held], control_features=table.w[held])
        yield str(limit), f


def marginal(table: Table) -> Iterator[tuple[str, np.ndarray]]:
    """Yield the same over all people, from models that see the controls, too."""
    strata = Strata.fit(table.w)
    indicators = strata.codes(table.w)[:, None] == np.arange(strata.other)
    X = np.column_stack([table.X, indicators])
    train, held = table.train, ~table.train
    model = table.model(limit="50%").fit(
        X[train], table.y[train], sensitive_features=table.s[train]
    )
    for limit in (None, *SHARES, 0):
        yield str(limit), predicted(model.at(limit), X[held])


def separate(table: Table) -> Iterator[tuple[str, np.ndarray]]:
    """Yield the scores of a predictor for each stratum, fitted on its rows alone."""
    strata = Strata.fit(table.w[table.train])
    codes = strata.codes(table.w)
    held = ~table.train
    limits = (None, *SHARES, 0)
    scores = {limit: np.full(held.sum(), np.nan) for limit in limits}
    for code in np.unique(codes[held]):
        own = codes == code
        train = table.train & own
        if train.sum() < 2 or len(np.unique(table.y[train])) < 2:
            train = table.train
        X, y, s = table.X[train], table.y[train], table.s[train]
        model = table.model(limit=None).fit(X, y, sensitive_features=s)
        for limit in limits:
            scores[limit][own[held]] = predicted(model.at(limit), table.X[own & held])
    for limit, f in scores.items():
        yield str(limit), f


METHODS: dict[str, Callable[[Table], Iterator[tuple[str, np.ndarray]]]] = {
    "within": within,
    "marginal": marginal,
    "separate": separate,
}


def records(name: str) -> Iterator[dict[str, Any]]:
    """Yield a record for each method and limit."""
    table = Table(name)
    free = None
    for method, scores in METHODS.items():
        start = time.process_time()
        for limit, f in scores(table):
            free = f if free is None else free
            seconds = time.process_time() - start
            given = {"table": name, "control": table.w.name, "method": method, "limit": limit}
            yield given | table.measured(f, free) | {"seconds": seconds, "rows": len(table.y)}
            start = time.process_time()


def peers(name: str) -> Iterator[dict[str, Any]]:
    """Yield what decisions of ours and of fairlearn have and cost on the same rows; fairlearn sees
    bands of S.
    """
    from fairlearn.metrics import MetricFrame, selection_rate
    from fairlearn.reductions import DemographicParity, ExponentiatedGradient

    table = Table(name)
    train, held = table.train, ~table.train
    codes = Strata.fit(table.w[train]).codes(table.w)
    bands = pd.qcut(table.s, BANDS, labels=False, duplicates="drop")
    y = (table.y == np.unique(table.y)[1]).astype(int)
    line = scaled(LogisticRegression(max_iter=1000)).fit(table.X[train], y[train])
    known = {"sensitive_features": table.s[train], "control_features": table.w[train]}

    def outcome(method: str, limit: str, decided: np.ndarray, seconds: float) -> dict[str, Any]:
        frame = MetricFrame(
            metrics=selection_rate,
            y_true=y[held],
            y_pred=decided,
            sensitive_features=bands[held],
            control_features=codes[held],
        )
        gap = gdp(decided * 1.0, table.s[held], control_features=table.w[held], resamples=199)
        wrong = decided != y[held]
        return {
            "table": name,
            "control": table.w.name,
            "method": method,
            "limit": limit,
            "decisions_within": gap.value,
            "decisions_interval": gap.interval,
            "difference_of_bands": float(np.nanmax(frame.difference())),
            "error": float(wrong.mean()),
            "error_error": float(wrong.std() / np.sqrt(len(wrong))),
            "seconds": seconds,
            "rows": len(y),
        }

    yield outcome("logistic regression", "None", line.predict(table.X[held]), 0.0)
    start = time.process_time()
    model = table.model(aim="decision").fit(table.X[train], y[train], **known)
    seconds = time.process_time() - start
    for limit in SHARES:
        decided = model.at(limit).predict(table.X[held], control_features=table.w[held])
        yield outcome("frhsic", limit, decided, seconds)
    for bound in (0.05, 0.02):
        start = time.process_time()
        search = ExponentiatedGradient(
            scaled(LogisticRegression(max_iter=1000)),
            DemographicParity(difference_bound=bound),
            sample_weight_name="logisticregression__sample_weight",
            max_iter=20,
        )
        controls = codes[train]
        search.fit(
            table.X[train], y[train], sensitive_features=bands[train], control_features=controls
        )
        decided = search.predict(table.X[held], random_state=0)
        seconds = time.process_time() - start
        yield outcome("fairlearn", f"difference {bound}", decided, seconds)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--tables", nargs="+", default=[*CONTROLS], choices=[*CONTROLS])
    parser.add_argument("--peers", action="store_true")
    parser.add_argument("--records", type=Path, default=RECORDS)
    args = parser.parse_args(argv)
    warnings.simplefilter("ignore")
    with args.records.open("a") as file:
        for name in args.tables:
            for record in peers(name) if args.peers else records(name):
                print(json.dumps(record), file=file, flush=True)


if __name__ == "__main__":
    main()
