"""A fitted model of every listed class, and forged copies of each: every attribute in turn is
something else.

Run as a program it reads all of them and lets those predict that are not refused, each in a process
of its own with little time and memory:

    python tests/trust/forging.py [one in so many]
"""

from __future__ import annotations

import copy
import json
import os
import resource
import signal
import sys
import time
import warnings
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
import pandas as pd
import xgboost
from frhsic.estimators.conditional import BoostedMeans, SplinesAndTrees
from joblib import parallel_config
from sklearn import ensemble, linear_model, preprocessing, tree
from sklearn.compose import ColumnTransformer
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import make_pipeline

from frhsic.persistence.rules import LISTED
from frhsic.persistence.values import Reader, Writer

SECONDS, BYTES = 10, 2**30

rng = np.random.default_rng(0)
X = np.column_stack([rng.normal(size=(120, 2)), rng.integers(0, 4, size=120)])
GAPS = np.where(X < -1, np.nan, X)
LETTERS = pd.DataFrame(
    {"job": rng.choice(["cook", "nurse", "clerk"], 120), "hours": X[:, 0], "size": X[:, 1]}
)
Y = (X[:, 0] + X[:, 2] > 1).astype(int)
THREE = np.arange(120) % 3
FEW: dict[str, Any] = {"n_estimators": 3, "max_depth": 3, "random_state": 0}
LEAVES: dict[str, Any] = {"n_estimators": 3, "num_leaves": 4, "n_jobs": 1, "verbose": -1}


def samples() -> dict[str, tuple[Any, tuple[Any, ...]]]:
    """Return fitted models, and what each of them predicts from."""
    numbers = (X,)
    trees = {"max_depth": 3, "random_state": 0}
    models: list[tuple[Any, Any, Any]] = [
        (linear_model.LinearRegression(), X, Y),
        (linear_model.LogisticRegression(class_weight={0: 1.0, 1: 2.0}), X, THREE),
        (linear_model.Ridge(), X, Y),
        (linear_model.RidgeCV((0.1, 1.0)), X, Y),
        (linear_model.RidgeClassifier(), X, THREE),
        (preprocessing.MaxAbsScaler(), X, Y),
        (preprocessing.MinMaxScaler((0, 2)), X, Y),
        (preprocessing.OneHotEncoder(min_frequency=30, drop="first"), X[:, 2:], Y),
        (preprocessing.OneHotEncoder(handle_unknown="ignore"), X[:, 2:], Y),
        (preprocessing.OrdinalEncoder(max_categories=3), GAPS[:, 2:], Y),
        (preprocessing.PowerTransformer(), X, Y),
        (preprocessing.QuantileTransformer(n_quantiles=9), X, Y),
        (preprocessing.RobustScaler(), X, Y),
        (preprocessing.SplineTransformer(n_knots=4, include_bias=False), X, Y),
        (preprocessing.SplineTransformer(extrapolation="periodic", sparse_output=True), X, Y),
        (preprocessing.StandardScaler().set_output(transform="pandas"), X, Y),
        (preprocessing.TargetEncoder(), X[:, 2:], THREE),
        (SimpleImputer(add_indicator=True), GAPS, Y),
        (tree.DecisionTreeClassifier(**trees), X, THREE),
        (tree.DecisionTreeRegressor(**trees), X, np.column_stack([Y, THREE])),
        (ensemble.ExtraTreesClassifier(**FEW), X, THREE),
        (ensemble.ExtraTreesRegressor(**FEW), X, Y),
        (ensemble.RandomForestClassifier(**FEW, n_jobs=1), X, THREE),  # threads add in any order
        (ensemble.RandomForestRegressor(**FEW), X, np.column_stack([Y, THREE])),
        (ensemble.GradientBoostingClassifier(**FEW), X, THREE),
        (ensemble.GradientBoostingClassifier(**FEW, init="zero"), X, Y),
        (ensemble.GradientBoostingRegressor(**FEW, loss="huber"), X, Y),
        (ensemble.HistGradientBoostingClassifier(max_iter=2, max_leaf_nodes=4), X, THREE),
        (ensemble.HistGradientBoostingRegressor(max_iter=2, loss="poisson"), X, Y),
        (lightgbm.LGBMClassifier(**LEAVES), X, THREE),
        (lightgbm.LGBMRegressor(**LEAVES), X, Y),
        (xgboost.XGBClassifier(n_estimators=3, n_jobs=1), X, THREE),
        (xgboost.XGBRegressor(n_estimators=3, n_jobs=1), X, Y),
        (MultiOutputRegressor(lightgbm.LGBMRegressor(**LEAVES)), X, np.column_stack([Y, THREE])),
        (BoostedMeans(2), LETTERS, np.column_stack([Y, X[:, 1]])),
        (SplinesAndTrees(True, random_state=0), LETTERS, Y),
        (SplinesAndTrees(random_state=0), LETTERS, np.column_stack([Y, X[:, 1]])),
    ]
    models += variants()
    columns = ColumnTransformer(
        [
            ("a", preprocessing.OneHotEncoder(), ["job"]),
            ("b", make_pipeline(SimpleImputer(), preprocessing.StandardScaler()), ["hours"]),
        ],
        remainder="passthrough",
    )
    models.append((make_pipeline(columns, linear_model.LogisticRegression()), LETTERS, Y))
    categories = lightgbm.LGBMClassifier(**LEAVES, min_child_samples=5)
    models.append((categories, pd.DataFrame(X).astype({2: "category"}), Y))
    fitted = {}
    with warnings.catch_warnings(action="ignore"):
        for place, (model, rows, y) in enumerate(models):
            fitted[f"{place} {type(model).__name__}"] = (model.fit(rows, y), (rows,))
        fitted["frozen"] = (FrozenEstimator(fitted["0 LinearRegression"][0]), numbers)
    return fitted


def variants() -> list[tuple[Any, Any, Any]]:
    """Models whose attributes are of other types than those of the default parameters."""
    positive = np.abs(X) + 1
    two = np.column_stack([X[:, 0], X[:, 1] + 1])
    words = np.where(Y, "yes", "no")
    scaler = preprocessing.StandardScaler
    return [
        (scaler(with_mean=False, with_std=False), X, Y),
        (preprocessing.RobustScaler(with_centering=False, with_scaling=False), X, Y),
        (preprocessing.PowerTransformer("box-cox", standardize=False), positive, Y),
        (preprocessing.OneHotEncoder(drop=[1.0], dtype=np.float32), X[:, 2:], Y),
        (preprocessing.OrdinalEncoder(dtype=np.int32), LETTERS[["job"]], Y),
        (preprocessing.TargetEncoder(smooth=3.0), X[:, 2:], X[:, 0]),
        (preprocessing.SplineTransformer(extrapolation="linear", degree=1, order="F"), X, Y),
        (SimpleImputer(strategy="most_frequent"), LETTERS[["job"]], Y),
        (linear_model.LogisticRegression(solver="liblinear", class_weight="balanced"), X, words),
        (linear_model.LinearRegression(fit_intercept=False), X, two),
        (linear_model.Ridge(np.array([1.0, 2.0]), solver="sag"), X, two),
        (linear_model.RidgeCV(np.logspace(-1, 1, 3), alpha_per_target=True), X, two),
        (tree.DecisionTreeClassifier(max_depth=2, monotonic_cst=[1, 0, 0]), X, words),
        (ensemble.RandomForestClassifier(30, oob_score=True, max_depth=2), X, words),
        (ensemble.GradientBoostingClassifier(**FEW, subsample=0.7, loss="exponential"), X, Y),
        (ensemble.GradientBoostingRegressor(**FEW, loss="quantile", alpha=0.3), X, X[:, 0]),
        (ensemble.HistGradientBoostingClassifier(max_iter=5, early_stopping=True), X, words),
        (lightgbm.LGBMClassifier(**LEAVES, boosting_type="dart", max_bin=63), X, words),
        (lightgbm.LGBMRegressor(**LEAVES, objective="tweedie"), X, positive[:, 0]),
        (xgboost.XGBClassifier(n_estimators=3, scale_pos_weight=2.0, base_score=0.4), X, Y),
        (xgboost.XGBRegressor(n_estimators=3, objective="count:poisson", gamma=1), X, Y),
    ]


WRONG: list[Any] = [
    None,
    True,
    -1,
    10**6,
    10**12,
    2**63,
    -1e300,
    {"class": "float", "fields": "nan"},
    "1",
    "os.system",
    "/etc/passwd",
    [],
    {"class": "list", "fields": ["a", None]},
    {"class": "dict", "fields": {"a": 1}},
    {"class": "array", "fields": {"dtype": "<U11", "shape": [], "values": ["/etc/passwd"]}},
    {"class": "array", "fields": {"dtype": "|O", "shape": [], "values": ["filename"]}},
    {"class": "array", "fields": {"dtype": "<f8", "shape": [2], "values": [1.0, 2.0]}},
    {"class": "array", "fields": {"dtype": "<f8", "shape": [0, 10**9], "values": []}},
    {"class": "array", "fields": {"dtype": "<U99999999", "shape": [1], "values": ["a"]}},
    {"class": "array", "fields": {"dtype": "f8,f8", "shape": [1], "values": [1]}},
    {"class": "type", "fields": "<f8"},
    {"class": "dtype", "fields": "<U999999999"},
    {"class": "slice", "fields": [0, 10**9, 1]},
    {"class": "os.system", "fields": {}},
    {"class": "sklearn.dummy.DummyClassifier", "fields": {}},
    {"class": "sklearn.linear_model.Ridge", "fields": {"alpha": 2.0}},
    {"class": "sklearn.feature_extraction.text.CountVectorizer", "fields": {"input": "filename"}},
    {"class": "skops", "fields": 0},
    {"custom": "os.system"},
]
"""What may stand in the place of any attribute."""


def nodes_of(content: Any) -> Iterator[dict[str, Any]]:
    """Yield the objects of listed classes of a JSON text."""
    if isinstance(content, dict):
        if content.get("class") in LISTED:
            yield content
        content = list(content.values())
    for part in content if isinstance(content, list) else ():
        yield from nodes_of(part)


def changed_arrays(values: np.ndarray) -> Iterator[np.ndarray]:
    """Yield arrays in the place of another: of other numbers, types and shapes."""
    flat = values.ravel()
    top = 2**62 if values.dtype.itemsize == 8 else 200 if values.dtype == np.uint8 else 2**30
    for place in {0, len(flat) // 2, len(flat) - 1} if len(flat) else ():
        for number in (-1, 7, top):
            other = flat.copy()
            with warnings.catch_warnings(action="ignore"):
                other[place] = np.array(number).astype(values.dtype)
            yield other.reshape(values.shape)
    yield flat[:0]
    yield flat[: max(len(flat) - 1, 0)]
    yield np.concatenate([flat, flat])
    yield values.astype(np.float32)
    yield (values.astype(np.int64) if values.dtype.kind != "f" else np.zeros((), np.int8))
    yield np.zeros((0, 2**16 + 1))
    yield np.full_like(values, 3)
    if values.ndim:
        yield values[::-1].copy()


def texts(values: np.ndarray) -> Iterator[np.ndarray]:
    """Yield the text of a booster with other numbers, names or lines."""
    text = values.tobytes().decode()
    if text.startswith("{"):
        yield from _json_texts(text)
        return
    lines = text.split("\n")
    for place in range(min(len(lines), 45)):
        name, _, numbers = lines[place].partition("=")
        words = numbers.split(" ")
        others = [["-2000000"], ["2000000000"], ["1e400"], ["nan"], ["x"], []]
        for other in others:
            changed = f"{name}={' '.join(other + words[1:])}"
            yield _as_bytes([*lines[:place], changed], lines[place + 1 :])
        yield _as_bytes(lines[:place], lines[place + 1 :])
        yield _as_bytes(lines[: place + 1], [f"{name}=0", *lines[place + 1 :]])
        yield _as_bytes(
            lines[: place + 1], [f"x{name}=0", f"a {lines[place]}", *lines[place + 1 :]]
        )
    yield _as_bytes(lines, ["tree_sizes=7 7", "machines=a", "parameters:", "[data: /etc/passwd]"])
    objective = text.replace("num_class:3", "num_class:3000000")
    yield np.frombuffer(objective.encode(), np.uint8)


def _as_bytes(before: list[str], after: list[str]) -> np.ndarray:
    return np.frombuffer("\n".join([*before, *after]).encode(), np.uint8)


def _json_texts(text: str) -> Iterator[np.ndarray]:
    for path in list(_paths(json.loads(text)))[:90]:
        for wrong in (-1, 10**6, 2**40, "-1", "1000000", 1e40, [], None, {"a": 1}, "os.system"):
            content = json.loads(text)
            owner = content
            for key in path[:-1]:
                owner = owner[key]
            owner[path[-1]] = wrong
            yield np.frombuffer(json.dumps(content).encode(), np.uint8)


def _paths(content: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    pairs = content.items() if isinstance(content, dict) else enumerate(content[:2])
    for key, item in pairs:
        yield (*path, key)
        if isinstance(item, (dict, list)):
            yield from _paths(item, (*path, key))


Case = tuple[str, str, Any, dict[str, np.ndarray], Any, tuple[Any, ...]]


def cases() -> Iterator[Case]:
    """Yield forged models: class, attribute, JSON, arrays, the true model and its rows."""
    seen: set[str] = set()
    for sample, (model, rows) in samples().items():
        writer = Writer()
        text = json.dumps(writer.model(model))
        assert not writer.names, (sample, writer.names)
        arrays = {str(place): values for place, values in enumerate(writer.arrays)}
        for node in nodes_of(json.loads(text)):
            name = node["class"]
            if name in seen:
                continue
            seen.add(name)
            listed = {attribute.rstrip("?") for attribute in LISTED[name]}
            for attribute in sorted(
                {*listed, *node["fields"], "memory", "n_jobs", "x", "__class__"}
            ):
                for wrong in WRONG:
                    yield (
                        name,
                        attribute,
                        _forged(text, name, attribute, wrong),
                        arrays,
                        model,
                        rows,
                    )
                yield (name, attribute, _forged(text, name, attribute), arrays, model, rows)
                reference = node["fields"].get(attribute)
                if not (isinstance(reference, dict) and reference.get("class") == "numbers"):
                    continue
                place = str(reference["fields"][0])
                more = (
                    texts(arrays[place]) if attribute == "text" else changed_arrays(arrays[place])
                )
                for values in more:
                    yield (name, attribute, json.loads(text), arrays | {place: values}, model, rows)
    assert seen == LISTED.keys(), LISTED.keys() - seen


def _forged(text: str, name: str, attribute: str, *wrong: Any) -> Any:
    """Return JSON whose first object of a class has another attribute, or lacks it."""
    content = json.loads(text)
    fields = next(node["fields"] for node in nodes_of(content) if node["class"] == name)
    fields.pop(attribute, None)
    for value in wrong:
        fields[attribute] = copy.deepcopy(value)
    return content


def methods_of(model: Any) -> list[str]:
    """Return what a model can do; the default model of numbers has no probabilities."""
    methods = ("predict", "predict_proba", "transform")
    numbers = getattr(model, "classifier", True) is False
    return [m for m in methods if hasattr(model, m) and not (numbers and m == "predict_proba")]


def outcome(content: Any, arrays: dict[str, np.ndarray], model: Any, rows: tuple[Any, ...]) -> str:
    """Return what comes of a forged model: "refused", "raises", "predicts" or "takes memory"."""
    try:
        with warnings.catch_warnings(action="ignore"):
            copies = {name: values.copy() for name, values in arrays.items()}
            forged = Reader(copies).read(content)
    except MemoryError:
        return "takes memory"
    except Exception:
        return "refused"
    try:
        with warnings.catch_warnings(action="ignore"), parallel_config(backend="threading"):
            for method in methods_of(model):
                values = getattr(forged, method)(*rows)
                assert values.shape[0] == len(rows[0]), "another number of rows"
    except MemoryError:
        return "takes memory"
    except Exception:
        return "raises"
    return "predicts"


OUTCOMES = ("refused", "raises", "predicts", "takes memory")


def in_a_process(*forged: Any) -> str:
    """Return the outcome in a process that may take 10 seconds and 1 GB more than this one."""
    child = os.fork()
    if child == 0:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        most = pages * resource.getpagesize() + BYTES
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        signal.alarm(SECONDS)
        code = 99
        try:
            code = OUTCOMES.index(outcome(*forged))
        finally:
            os._exit(code)
    status = os.waitpid(child, 0)[1]
    if os.WIFEXITED(status) and os.WEXITSTATUS(status) < len(OUTCOMES):
        return OUTCOMES[os.WEXITSTATUS(status)]
    return f"ends with status {status}"


def main(step: int) -> None:
    counts: dict[str, int] = {}
    slowest = 0.0
    for name, attribute, *forged in islice(cases(), 0, None, step):
        start = time.perf_counter()
        result = in_a_process(*forged)
        slowest = max(slowest, time.perf_counter() - start)
        counts[result] = counts.get(result, 0) + 1
        if result not in OUTCOMES[:3]:
            sys.stderr.write(f"{name}.{attribute} {result}: {json.dumps(forged[0])[:300]}\n")
    sys.stdout.write(json.dumps(counts | {"seconds of the slowest": round(slowest, 2)}) + "\n")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1)
