"""Training past one machine: sums over parts are those of all rows, partitions do not matter, the
result is that of one machine, and what goes wrong ends in an error that says so.
"""

from __future__ import annotations

import contextlib
import json
import os
import pkgutil
import re
import signal
import subprocess
import sys
import threading
import time
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
import pandas as pd
import pytest
from pytest import approx
from sklearn.base import clone
from sklearn.linear_model import LinearRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import PredefinedSplit
from typer.testing import CliRunner

import frhsic
from frhsic import ParityClassifier, ParityRegressor, distributed
from frhsic.cli import app
from frhsic.distributed.frames import hash_numbers
from frhsic.estimators.additive import Design, Grams, logistic_sums
from frhsic.parity.column import GapOptions
from frhsic.parity.gap import largest_gap
from frhsic.parity.ranks import TENTHS, RankGap, RankSums
from frhsic.parity.rows import check_rows
from frhsic.parity.sums import Cells

dd = pytest.importorskip("dask.dataframe")
dask = pytest.importorskip("dask")
dask_cluster = pytest.importorskip("distributed")

pytestmark = [
    pytest.mark.usefixtures("few_trees"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning"),
]

FEATURES = ["skill", "rank", "job"]


@pytest.fixture(scope="module")
def client() -> Any:
    """A cluster of one worker in this process."""
    with dask_cluster.Client(
        processes=False, n_workers=1, threads_per_worker=1, dashboard_address=":0"
    ) as client:
        yield client


def people(n: int, seed: int = 0) -> pd.DataFrame:
    """Return numbers, categories and missing values that follow age, a label and a number."""
    rng = np.random.default_rng(seed)
    age = rng.uniform(20, 60, n)
    frame = pd.DataFrame(
        {
            "skill": age + rng.normal(size=n) * 10,
            "rank": rng.normal(size=n),
            "job": rng.choice(["cook", "smith", "tailor"], n),
            "age": age,
            "number": np.arange(n) * 3 + 7,
            "person": np.arange(n) // 3,
            "weight": rng.integers(1, 4, n) / 2,
        }
    )
    frame.loc[::7, "rank"] = np.nan
    odds = frame["skill"] / 20 - 2 + frame["rank"].fillna(0) + (frame["job"] == "cook")
    frame["repaid"] = np.where(rng.random(n) < 1 / (1 + np.exp(-odds)), "yes", "no")
    frame["income"] = odds + rng.normal(size=n)
    return frame


def trained(frame: Any, estimator: Any = None, target: str = "repaid", **options: Any) -> Any:
    estimator = ParityClassifier(random_state=0, cv=2) if estimator is None else estimator
    named = [FEATURES, [target, "age"], options.values()]
    columns = [name for name in dict.fromkeys(chain(*named)) if name in frame.columns]
    if isinstance(frame, pd.DataFrame):
        frame = dd.from_pandas(frame, npartitions=3, sort=False)
    return distributed.fit(
        estimator, frame[columns], target=target, sensitive_features="age", **options
    )


@pytest.fixture(scope="module")
def both(client: Any) -> tuple[pd.DataFrame, Any, Any]:
    """A table, the model that a cluster fitted, and that of one machine."""
    frame = people(1_500)
    estimator = ParityClassifier(random_state=0, cv=2)
    model = trained(frame, estimator, key="number")
    local = clone(estimator)
    local.fit(frame[FEATURES], frame["repaid"], sensitive_features=frame["age"])
    return frame, model, local


@pytest.mark.parametrize("parts", [2, 9])
def test_sums_over_parts_are_those_of_all_rows(parts):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(500, 4))
    x[:, 0] += 1e5
    x[rng.random(500) < 0.1, 1] = np.nan
    x[:, 2] = rng.integers(0, 6, 500)
    fold = rng.integers(0, 3, 500)
    labels = rng.integers(0, 2, 500)
    design = Design.fit(x, [2], fold, rng.integers(1, 3, 500) / 2)
    targets = np.column_stack([x[:, 3], labels])
    whole = Grams.of(design, targets)
    some = [design.at(rows) for rows in np.array_split(np.arange(500), parts)]
    pieces = np.array_split(targets, parts)
    each = [Grams.about(*pair, whole.means, 3) for pair in zip(some, pieces)]
    assert sum(each[1:], start=each[0]).sums == approx(whole.sums, rel=1e-10, abs=1e-8)
    coefficients = rng.normal(size=(3, design.basis.count, 1))
    intercepts = rng.normal(size=(3, 1))
    step = partial(logistic_sums, coefficients=coefficients, intercepts=intercepts)
    several = [step(*pair) for pair in zip(some, np.array_split(labels, parts))]
    for own, of_parts in zip(step(design, labels), zip(*several)):
        assert sum(of_parts) == approx(own, rel=1e-10, abs=1e-8)


@pytest.mark.parametrize(("weighted", "controlled"), [(False, False), (True, False), (True, True)])
def test_the_rank_gap_of_sums_is_that_of_rows(weighted, controlled):
    """Each decile is a tie of a fifth of the rows, so that no rank between ties counts."""
    rng = np.random.default_rng(0)
    s = rng.integers(0, 9, 3_000).astype(np.float64)
    score = rng.integers(0, 5, 3_000) + (s > 4) * (rng.random(3_000) < 0.3)
    weights = rng.integers(1, 4, 3_000) / 2 if weighted else None
    strata = rng.integers(0, 2, 3_000) if controlled else None
    rows = check_rows(score, s, sample_weight=weights, strata=strata)
    ranks = RankGap(rows)
    edges = np.unique(score)
    cells = Cells.from_rows(rows)
    parts = np.array_split(np.arange(3_000), 4)
    each = score, s, weights, strata
    given = [[None if values is None else values[x] for values in each] for x in parts]
    sums = [RankSums.of(*own[:3], edges, cells, own[3]) for own in given]
    order = np.argsort(score)
    below = np.cumsum(np.ones(3_000) if weights is None else weights[order])
    deciles = score[order][np.searchsorted(below, TENTHS * below[-1])]
    summed = RankGap.from_sums(sum(sums[1:], start=sums[0]), deciles, cells)
    assert summed.value == approx(ranks.value, rel=1e-10)
    options = GapOptions(0.95, 99, 0)
    one, other = largest_gap(summed, options), largest_gap(ranks, options)
    assert one.interval == approx(other.interval, rel=1e-9)
    assert (one.standard_error, one.pvalue) == approx((other.standard_error, other.pvalue))


def test_the_rank_gap_of_many_scores_is_near_that_of_rows():
    rng = np.random.default_rng(0)
    s = rng.random(4_000)
    score = s + rng.normal(size=4_000)
    rows = check_rows(score, s)
    ranks = RankGap(rows)
    cells = Cells.from_rows(rows)
    edges = np.quantile(score, np.arange(1, 20) / 20, method="inverted_cdf")
    sums = RankSums.of(score, s, None, edges, cells)
    summed = RankGap.from_sums(sums, edges[1::2], cells)
    assert summed.value == approx(ranks.value, rel=1e-10)
    options = GapOptions(0.95, 99, 0)
    one, other = largest_gap(summed, options), largest_gap(ranks, options)
    assert one.interval == approx(other.interval, rel=0.01)


def test_a_model_of_a_cluster_is_near_that_of_one_machine(both):
    """Both have other folds and trees of other bins, and agree within two errors."""
    frame, model, local = both
    here, there = local.frontier_.to_frame(), model.frontier_.to_frame()
    assert len(here) == len(there)
    for place in (0, 20, 40):
        errors = (here["gap_age_high"] - here["gap_age_low"])[place] / 2
        assert abs(here["gap_age"] - there["gap_age"])[place] < errors
        assert abs(here["log_loss"] - there["log_loss"])[place] < 2 * here["log_loss_error"][place]
        assert abs(here["auc"] - there["auc"])[place] < 0.02
    assert model.frontier_.rows == len(frame)
    assert model.frontier_.base_rate == approx((frame["repaid"] == "yes").mean())
    assert (model.classes_ == local.classes_).all()
    assert model.choice_.met
    scores = model.predict_proba(frame[FEATURES])[:, 1]
    assert np.corrcoef(scores, local.predict_proba(frame[FEATURES])[:, 1])[0, 1] > 0.97


def hashed(frame: pd.DataFrame, folds: int) -> tuple[pd.DataFrame, np.ndarray]:
    """Return rows as the sample has them, and their folds."""
    identities = pd.util.hash_array(frame["number"].to_numpy(np.float64))
    keys = hash_numbers(identities, 0)
    order = np.argsort(keys)
    fold = (keys % np.uint64(folds)).astype(np.int64)
    return frame.iloc[order], fold[order]


@pytest.mark.parametrize(
    ("kind", "target", "options", "design"),
    [
        (ParityRegressor, "income", {}, "plain"),
        (ParityClassifier, "repaid", {"uses_sensitive": True}, "weighted"),
        (ParityClassifier, "repaid", {"aim": "decision", "condition": "both"}, "plain"),
        (ParityClassifier, "repaid", {"condition": "positive"}, "controlled"),
        pytest.param(ParityClassifier, "repaid", {"aim": "rank"}, "plain", marks=pytest.mark.slow),
    ],
)
def test_without_trees_and_with_the_same_folds_it_is_the_model_of_one_machine(
    client, monkeypatch, kind, target, options, design
):
    """All rows are in the sample then, so that no step differs but for rounding. Ranges of scores
    and of ranks cost AUC and the interval of a rank gap some digits, and equal weights put borders
    of nodes anywhere between two rows. The strictest rank predictors turn on rounding.
    """
    monkeypatch.setattr("frhsic.estimators.boosters.MOST_ROUNDS", 0)
    frame, fold = hashed(people(500), 2)
    estimator = kind(random_state=0, cv=2, **options)
    model = trained(
        frame.sort_index(),
        estimator,
        target,
        key="number",
        **({"sample_weight": "weight"} if design == "weighted" else {}),
        **({"control_features": "job"} if design == "controlled" else {}),
    )
    if "aim" not in options:
        estimator = clone(estimator).set_params(cv=PredefinedSplit(fold))
    local = estimator.fit(
        frame[FEATURES],
        frame[target],
        sensitive_features=frame[["age"]],
        sample_weight=frame["weight"] if design == "weighted" else None,
        control_features="job" if design == "controlled" else None,
    )
    assert model.engine_.table == approx(local.engine_.table, abs=1e-6)
    ranked = options.get("aim") == "rank"
    places = slice(0, 20 if ranked else None)
    own = (one.solution_.parameters[places] for one in (model, local))
    assert next(own) == approx(next(own), abs=1e-3)
    here, there = local.frontier_, model.frontier_
    for name, values in here.performance.items():
        tolerance = 1e-3 if name == "auc" or ranked else 1e-6
        assert there.performance[name][places] == approx(values[places], abs=tolerance)
    digits = (1e-3, 3e-3) if design == "weighted" or ranked else (1e-6, 1e-6)
    for one, other in zip(here.gaps["age"][places], there.gaps["age"][places]):
        assert other.value == approx(one.value, abs=digits[0])
        assert (other.low, other.high) == approx((one.low, one.high), abs=digits[1])
    assert there.pvalues["age"] == approx(here.pvalues["age"], rel=0.2, abs=1e-6)
    assert there.base_rate == approx(here.base_rate)


def test_partitions_and_the_order_of_rows_do_not_matter_with_a_key(client, monkeypatch):
    monkeypatch.setattr("frhsic.estimators.boosters.MOST_ROUNDS", 0)
    frame = people(400)
    shuffled = frame.sample(frac=1, random_state=1)
    models = [
        trained(dd.from_pandas(table, npartitions=count, sort=False), key="number")
        for table, count in ((frame, 1), (shuffled, 5))
    ]
    one, other = models
    assert one.engine_.table == approx(other.engine_.table, abs=1e-6)
    assert one.engine_.constants == approx(other.engine_.constants, abs=1e-6)
    names = ["log_loss", "gap_age", "gap_age_low", "gap_age_high"]
    tables = [own.frontier_.to_frame()[names].to_numpy() for own in models]
    assert tables[0] == approx(tables[1], abs=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("aim", ["rank", "decision"])
@pytest.mark.parametrize("condition", [None, "both"])
def test_with_trees_other_aims_are_near_those_of_one_machine(client, aim, condition):
    frame = people(5_000)
    estimator = ParityClassifier(random_state=0, aim=aim, condition=condition)
    model = trained(frame, estimator, key="number")
    local = clone(estimator)
    local.fit(frame[FEATURES], frame["repaid"], sensitive_features=frame["age"])
    here, there = local.frontier_.to_frame(), model.frontier_.to_frame()
    for place in (0, 20, 40):
        error = (here["gap_age_high"] - here["gap_age_low"])[place] / 2
        assert abs(here["gap_age"] - there["gap_age"])[place] < error
        assert abs(here["auc"] - there["auc"])[place] < 0.01
        assert abs(here["accuracy"] - there["accuracy"])[place] < 0.015
    # identical rows are decided by the models that did not see them
    assert model.folds_ is not None
    assert model.predict(frame[FEATURES]).shape == (5_000,)


def test_groups_count_as_one_in_folds_and_intervals(client, monkeypatch):
    monkeypatch.setattr("frhsic.estimators.boosters.MOST_ROUNDS", 0)
    frame = people(600)
    model = trained(frame, ParityRegressor(random_state=0, cv=2), "income", groups="person")
    assert model.frontier_.rows == 600
    local = ParityRegressor(random_state=0, cv=2)
    local.fit(
        frame[FEATURES],
        frame["income"],
        sensitive_features=frame["age"],
        groups=frame["person"],
    )
    width = [one.frontier_.gaps["age"][0] for one in (model, local)]
    assert width[0].high - width[0].low == approx(width[1].high - width[1].low, rel=0.2)


def test_it_is_an_ordinary_model(both, tmp_path):
    frame, model, local = both
    assert {*vars(local)} <= {*vars(model)}
    frhsic.save(model, tmp_path / "m.frhsic")
    again = frhsic.load(tmp_path / "m.frhsic")
    expected = model.predict_proba(frame[FEATURES])
    assert np.array_equal(again.predict_proba(frame[FEATURES]), expected)
    assert model.at("20%").choice_.position > model.choice_.position
    assert repr(again.frontier_) == repr(model.frontier_)


def test_predictions_of_partitions_are_those_of_the_model(both, monkeypatch):
    frame, model, _ = both
    parts = dd.from_pandas(frame.iloc[:90], npartitions=4, sort=False)
    with dask.config.set(scheduler="sync"):
        scores = distributed.predict(model, parts)
        values = scores.compute()
    assert values["score"].to_numpy() == approx(model.predict_proba(frame[FEATURES][:90])[:, 1])
    assert (values["predicted"] == model.predict(frame[FEATURES][:90])).all()
    assert [*scores.dtypes] == [*values.dtypes]
    assert values.index.equals(frame.index[:90])
    with pytest.raises(ValueError, match="no column 'rank'"):
        distributed.predict(model, parts[["skill", "job"]])


def test_numbers_and_known_attributes_are_predicted_by_partition():
    frame = people(300)
    line = LinearRegression()
    model = ParityRegressor(line, attribute_estimator=line, uses_sensitive=True, random_state=0)
    model.fit(frame[["skill"]], frame["income"], sensitive_features=frame[["age"]])
    with dask.config.set(scheduler="sync"):
        values = distributed.predict(model, dd.from_pandas(frame, npartitions=2)).compute()
    expected = model.predict(frame[["skill"]], sensitive_features=frame[["age"]])
    assert values["predicted"].to_numpy() == approx(expected)


def lacking(part: pd.DataFrame) -> pd.DataFrame:
    return part.drop(columns="rank") if part["number"].min() > 500 else part


def retyped(part: pd.DataFrame) -> pd.DataFrame:
    return part.assign(rank="high") if part["number"].min() > 500 else part


def parts_of(frame: pd.DataFrame, change: Any) -> Any:
    pieces = [frame.iloc[i : i + 100] for i in range(0, len(frame), 100)]
    delayed = [dask.delayed(change)(piece) for piece in pieces]
    return dd.from_delayed(delayed, meta=frame.iloc[:0], verify_meta=False)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (lacking, ValueError, r"partition 2: columns \['rank'\] not in index"),
        (retyped, TypeError, r"'rank' has no common type: .*'high' and number values such as -?\d"),
    ],
)
def test_a_partition_that_differs_is_named(client, change, error, message):
    with pytest.raises(error, match=message):
        trained(parts_of(people(300), change), key="number")


def test_partitions_without_rows_do_not_count(client, monkeypatch):
    monkeypatch.setattr("frhsic.estimators.boosters.MOST_ROUNDS", 0)
    frame = people(300)
    holes = parts_of(frame, lambda part: part if part["number"].min() > 10 else part.iloc[:0])
    model = trained(holes, ParityRegressor(random_state=0, cv=2), "income")
    assert model.frontier_.rows == 200


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        ({"repaid": None}, {}, "target 'repaid' is missing in 1 of 300 rows"),
        ({"age": "old"}, {}, "'age' is not numeric"),
        ({"weight": -1.0}, {"sample_weight": "weight"}, "partition 0: .* negative weights"),
        ({"number": None}, {"key": "number"}, "partition 0: column 'number' has missing values"),
    ],
)
def test_rows_that_cannot_be_fitted_are_refused(client, change, options, message):
    frame = people(300).astype(dict.fromkeys(change, object))
    for name, value in change.items():
        frame.loc[0, name] = value
    if "weight" in change:
        frame = frame.astype({"weight": float})
    with pytest.raises((ValueError, TypeError), match=message):
        trained(frame, **options)


def test_what_a_cluster_does_not_fit_is_refused_before_rows_are_read():
    frame = dd.from_pandas(people(30), npartitions=1)
    columns = {"target": "repaid", "sensitive_features": "age"}
    with pytest.raises(TypeError, match="LinearRegression; pass a ParityClassifier"):
        distributed.fit(LinearRegression(), frame, **columns)
    with pytest.raises(ValueError, match="custom models"):
        distributed.fit(ParityClassifier(LinearRegression()), frame, **columns)
    with pytest.raises(ValueError, match="number of folds"):
        distributed.fit(ParityClassifier(cv=[([0], [1])]), frame, **columns)
    with pytest.raises(ValueError, match="no column 'agee'"):
        distributed.fit(ParityClassifier(), frame, target="repaid", sensitive_features="agee")
    with pytest.raises(TypeError, match="pass a Dask data frame"):
        distributed.fit(ParityClassifier(), people(30), **columns)


def test_without_a_cluster_the_error_says_how_to_start_one(monkeypatch):
    def none() -> None:
        raise ValueError("No global client found and no address provided")

    monkeypatch.setattr("distributed.get_client", none)
    frame = dd.from_pandas(people(30), npartitions=1)
    with pytest.raises(ValueError, match="there is no cluster; fit within"):
        distributed.fit(ParityClassifier(), frame, target="repaid", sensitive_features="age")


@pytest.fixture
def files(tmp_path, monkeypatch) -> Any:
    """A folder with three files of rows, and a cluster in this process in place of a scheduler."""
    frame = people(600)
    for number in range(3):
        part = frame.iloc[number::3]
        part.to_parquet(tmp_path / f"part-{number}.parquet", index=False)

    @contextlib.contextmanager
    def cluster(address: str) -> Any:
        options = {"n_workers": 1, "threads_per_worker": 1, "dashboard_address": ":0"}
        with dask_cluster.Client(processes=False, **options) as client:
            yield client

    monkeypatch.setattr("frhsic.distributed.cluster", cluster)
    monkeypatch.chdir(tmp_path)
    return frame


def test_many_files_are_trained_on_and_scored_from_the_command_line(files, monkeypatch):
    monkeypatch.setattr("frhsic.estimators.boosters.MOST_ROUNDS", 0)
    named = "-t repaid -s age --drop income --drop number --drop person --drop weight"
    command = f"train part-*.parquet {named} --scheduler local --json --fast"
    done = CliRunner().invoke(app, command)
    assert done.exit_code in (0, 1), done.output
    model = frhsic.load("frhsic-model.frhsic")
    assert model.classes_.tolist() == ["no", "yes"]
    assert model.schema_.names == FEATURES
    assert 430 < model.frontier_.rows < 530
    done = CliRunner().invoke(app, ["predict", "frhsic-model.frhsic", "part-*.parquet", "-o", "s"])
    assert done.exit_code == 0, done.output
    scores = pd.read_csv("s/part-1.csv")
    expected = model.predict_proba(files[FEATURES].iloc[1::3])[:, 1]
    assert scores["score"].to_numpy() == approx(expected, abs=1e-12)
    assert sorted(path.name for path in Path("s").iterdir()) == [f"part-{i}.csv" for i in range(3)]


def test_a_file_that_cannot_be_scored_leaves_the_others_whole(files, tmp_path):
    line = LinearRegression()
    model = ParityRegressor(line, attribute_estimator=line, random_state=0)
    model.fit(files[["skill"]], files["income"], sensitive_features=files["age"])
    frhsic.save(model, "m.frhsic")
    files[["rank"]].to_parquet("part-1.parquet")
    done = CliRunner().invoke(app, ["predict", "m.frhsic", ".", "-o", "scores"])
    assert done.exit_code == 2
    assert "part-1.parquet lacks 1 of the columns" in done.output
    assert [path.name for path in Path("scores").iterdir()] == ["part-0.csv"]
    assert len(pd.read_csv("scores/part-0.csv")) == 200
    done = CliRunner().invoke(app, ["predict", "m.frhsic", ".", "-o", "scores.csv"])
    assert "pass a folder, such as -o scores/" in done.output


def split_rows(count: int) -> Any:
    return dd.from_pandas(people(count), npartitions=6, sort=False)


def expected_model(model: Any, count: int) -> None:
    frame = people(count)
    assert model.frontier_.rows == count
    score = model.predict_proba(frame[FEATURES])[:, 1]
    assert roc_auc_score(frame["repaid"] == "yes", score) > 0.7


@pytest.fixture(scope="module")
def calm(client: Any) -> Any:
    """The model that one worker of this process fits."""
    return trained(split_rows(3_000), key="number", client=client)


def same_models(one: Any, other: Any) -> None:
    assert other.engine_.table == approx(one.engine_.table, abs=1e-6)
    names = ["log_loss", "gap_age", "gap_age_low", "gap_age_high"]
    tables = [model.frontier_.to_frame()[names].to_numpy() for model in (one, other)]
    assert tables[1] == approx(tables[0], abs=1e-5)


@pytest.mark.slow
def test_processes_give_the_model_of_one_worker_of_this_process(calm):
    with distributed.cluster("local:2") as several:
        model = trained(split_rows(3_000), key="number", client=several)
    expected_model(model, 3_000)
    same_models(calm, model)


@pytest.mark.slow
def test_forty_partitions_in_another_order_give_the_model_of_one(client, calm):
    shuffled = people(3_000).sample(frac=1, random_state=1)
    frames = [dd.from_pandas(shuffled, npartitions=n, sort=False) for n in (1, 40)]
    for frame in frames:
        same_models(calm, trained(frame, key="number", client=client))


PHASES = [
    "frhsic.distributed.parts.Parts.sum",
    "frhsic.distributed.fitting._learn",
    "frhsic.distributed.engine.ClusterRows.sums",
    "frhsic.estimators.engine.fit_logistic",
    "frhsic.distributed.engine.ClusterRows.boostings",
    "frhsic.estimators.predictor.ParityEstimator._solve",
    "frhsic.distributed.measuring.FrontierPass.frontier",
]


@pytest.mark.slow
@pytest.mark.parametrize("phase", PHASES)
def test_a_worker_that_is_lost_changes_nothing(phase, monkeypatch, calm):
    """It is killed in the work that a phase begins with; its rows are read again by others."""
    killed = threading.Event()
    with distributed.cluster("local:2") as client:
        pid = min(client.run(os.getpid).values())

        def kill() -> None:
            time.sleep(0.05)
            os.kill(pid, signal.SIGKILL)
            killed.set()

        module, _, name = phase.rpartition(".")
        place = pkgutil.resolve_name(re.sub(r"\.([A-Z])", r":\1", module))
        usual = getattr(place, name)
        thread = threading.Thread(target=kill)

        def with_death(*arguments: Any, **named: Any) -> Any:
            if thread.ident is None:
                thread.start()
            return usual(*arguments, **named)

        monkeypatch.setattr(place, name, with_death)
        model = trained(split_rows(3_000), key="number", client=client)
    assert killed.is_set()
    expected_model(model, 3_000)
    same_models(calm, model)


@pytest.mark.slow
def test_a_worker_that_is_lost_while_scoring_changes_nothing(calm):
    rows = people(20_000)[FEATURES]
    with distributed.cluster("local:2") as client:
        pid = min(client.run(os.getpid).values())
        future = client.compute(distributed.predict(calm, dd.from_pandas(rows, npartitions=100)))
        while not any(client.processing().values()):
            time.sleep(0.01)
        os.kill(pid, signal.SIGKILL)
        assert not future.done()
        scores = future.result()
    assert scores["score"].to_numpy() == approx(calm.predict_proba(rows)[:, 1], abs=1e-12)


def deadly() -> None:
    """Let this process die as soon as it trains trees."""

    def die(*_: Any) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    lightgbm.train = die


@pytest.mark.slow
def test_trees_that_no_worker_survives_end_in_an_error_and_a_retry_works(calm):
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 0}),
        distributed.cluster("local:2") as client,
    ):
        client.run(deadly)
        with pytest.raises(dask_cluster.KilledWorker, match="trees"):
            trained(split_rows(3_000), key="number", client=client)
        client.restart()
        same_models(calm, trained(split_rows(3_000), key="number", client=client))


@pytest.fixture
def scheduler(tmp_path) -> Any:
    """The address of a scheduler with two workers, as a user starts them on the command line."""
    file = tmp_path / "scheduler.json"
    python = [sys.executable, "-m", "dask"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": tmp_path}
    local = ["--host", "127.0.0.1"]
    commands = [
        ["scheduler", *local, "--port", "0", "--dashboard-address", ":0"],
        *[["worker", *local, "--nthreads", "1", "--dashboard-address", ":0"]] * 2,
    ]
    with contextlib.ExitStack() as stack:
        for command in commands:
            process = subprocess.Popen([*python, *command, "--scheduler-file", file], **quiet)
            stack.callback(process.wait)
            stack.callback(process.terminate)
        for _ in range(600):
            if file.exists() and file.stat().st_size:
                break
            time.sleep(0.1)
        yield json.loads(file.read_text())["address"]


@pytest.mark.slow
def test_a_scheduler_and_workers_on_tcp_train_from_the_command_line(scheduler, tmp_path):
    people(3_000).drop(columns=["income", "person", "weight"]).to_parquet(tmp_path / "p-0.parquet")
    people(3_000, 1).drop(columns=["income", "person", "weight"]).to_parquet(
        tmp_path / "p-1.parquet"
    )
    options = ["-t", "repaid", "-s", "age", "--drop", "number", "--fast", "--scheduler", scheduler]
    command = [sys.executable, "-m", "frhsic", "train", "p-*.parquet", *options]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    model = frhsic.load(tmp_path / "frhsic-model.frhsic")
    assert model.schema_.names == FEATURES
    assert (tmp_path / "frhsic-report.html").stat().st_size > 10_000


@pytest.mark.slow
def test_a_client_that_goes_away_leaves_nothing_behind(scheduler, tmp_path):
    """Neither a file nor a task: the scheduler forgets what no client waits for."""
    for number in range(2):
        frame = people(20_000, number).drop(columns=["income", "person", "weight"])
        frame.to_parquet(tmp_path / f"p-{number}.parquet")
    options = ["-t", "repaid", "-s", "age", "--drop", "number", "--fast", "--scheduler", scheduler]
    command = [sys.executable, "-m", "frhsic", "train", "p-*.parquet", *options]
    with dask_cluster.Client(scheduler) as client:
        process = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.DEVNULL)
        for _ in range(3000):
            if any(client.processing().values()) and len(client.who_has()) > 2:
                break
            time.sleep(0.1)
        process.kill()
        process.wait()
        for _ in range(600):
            if not client.who_has() and not any(client.processing().values()):
                break
            time.sleep(0.1)
        assert not client.who_has()
    assert sorted(path.suffix for path in tmp_path.iterdir() if path.is_file()) == [
        ".json",
        ".parquet",
        ".parquet",
    ]
