"""A distilled model imitates its predictor, states what that costs, and is served from a file."""

from __future__ import annotations

import contextlib
import json
import os
import re
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from pytest import approx
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline

from cli_samples import done, people, run
from frhsic import ParityClassifier, ParityRegressor, distill, gdp, load, save
from frhsic.estimators import Distilled, DistilledClassifier
from frhsic.estimators.folds import fold_of_rows
from frhsic.scoring import model_scores

pytestmark = [
    pytest.mark.usefixtures("few_trees"),
    pytest.mark.filterwarnings("ignore::frhsic.estimators.UnmetLimitWarning"),
    pytest.mark.filterwarnings("ignore::frhsic.estimators.IndistinctGapWarning"),
]
SETTINGS: dict[str, Any] = {"cv": 2, "random_state": 0, "n_jobs": 1}


def table(rows: int = 400, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray, pd.Series]:
    """Numbers with holes, text and booleans, a target in numbers and an age that it follows."""
    rng = np.random.default_rng(seed)
    age = rng.uniform(20, 70, rows)
    frame = pd.DataFrame(
        {
            "years": age - 20 + 8 * rng.normal(size=rows),
            "skill": np.where(rng.random(rows) < 0.1, np.nan, rng.normal(size=rows)),
            "job": rng.choice(["clerk", "cook", "nurse"], rows),
            "owner": rng.random(rows) < 0.5,
        }
    )
    target = frame["years"] / 20 + frame["skill"].fillna(0) + 2 * (frame["job"] == "cook")
    return frame, (target + rng.normal(size=rows)).to_numpy(), pd.Series(age, name="age")


def dated(frame: pd.DataFrame) -> pd.DataFrame:
    days = pd.to_timedelta((30 * frame["years"]).round(), unit="D")
    return frame.assign(since=pd.Timestamp("2000-01-01") + days)


def with_dates_as_text(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.assign(since=frame["since"].astype(str))


KINDS: dict[str, dict[str, Any]] = {
    "score": {},
    "rank": {"aim": "rank"},
    "decision": {"aim": "decision"},
    "numbers": {"numbers": True},
    "with age": {"uses_sensitive": True},
    "array": {"array": True},
    "dates": {"dates": True},
}


def distilled(
    *, numbers: bool = False, array: bool = False, dates: bool = False, **options: Any
) -> tuple[Distilled, Any, dict[str, Any]]:
    """Return a distilled model, new rows, and what predictions of them need beside."""
    X, y, age = table()
    new, _, age_new = table(100, 1)
    if array:
        X, new = (frame[["years", "skill"]].to_numpy() for frame in (X, new))
    if dates:
        X, new = dated(X), dated(new)
    kind: Any = ParityRegressor if numbers else ParityClassifier
    target = y if numbers else np.where(y > 2.5, "yes", "no")
    model = distill(kind(**SETTINGS, **options), None, X, target, sensitive_features=age)
    more = {"sensitive_features": age_new} if options.get("uses_sensitive") else {}
    return model, new, more


@pytest.fixture(scope="module", params=KINDS)
def model(request: pytest.FixtureRequest) -> tuple[Distilled, Any, dict[str, Any]]:
    return distilled(**KINDS[request.param])


def test_a_distilled_model_is_saved_and_loaded_and_prints_in_few_lines(model, tmp_path):
    served, X, more = model
    save(served, tmp_path / "model.frhsic")
    again = load(tmp_path / "model.frhsic")
    assert_array_equal(again.predict(X, **more), served.predict(X, **more))
    assert_array_equal(
        model_scores(again, X, more.get("sensitive_features")),
        model_scores(served, X, more.get("sensitive_features")),
    )
    assert str(again) == str(served)
    assert type(load(tmp_path / "model.frhsic", type(served))) is type(served)
    with pytest.raises(ValueError, match="but a ParityRegressor was requested"):
        load(tmp_path / "model.frhsic", ParityRegressor)
    assert len(str(served).splitlines()) == 3 + len(served.costs) <= 6
    if isinstance(served, DistilledClassifier):
        assert set(served.predict(X, **more)) == {"yes", "no"}


def test_a_row_is_a_frame_a_dictionary_or_an_array_whatever_the_order_of_its_columns():
    served, X, _ = distilled()
    assert isinstance(served, DistilledClassifier)
    expected = served.predict_proba(X)
    rows = X.astype(object).where(X.notna(), None).to_dict("records")
    assert_array_equal(served.predict_proba(rows), expected)
    assert_array_equal(served.predict_proba(X[X.columns[::-1]].assign(more=1)), expected)
    each = [served.predict_proba(X[i : i + 1])[0] for i in range(20)]
    assert_array_equal(each, expected[:20])
    with pytest.raises(ValueError, match="X has no column 'job'"):
        served.predict(X.drop(columns="job"))
    with pytest.raises(ValueError, match="X has no column 'skill'"):
        served.predict([rows[0], {"years": 3.0}])


def test_text_that_holds_dates_is_read_as_dates():
    served, X, _ = distilled(dates=True)
    assert_array_equal(served.predict(with_dates_as_text(X)), served.predict(X))


def test_attributes_that_predictions_use_are_asked_for():
    served, X, more = distilled(uses_sensitive=True)
    named = X.assign(age=more["sensitive_features"])
    assert_array_equal(served.predict(named, sensitive_features="age"), served.predict(X, **more))
    with pytest.raises(ValueError, match="pass sensitive_features"):
        served.predict(X)


def test_costs_are_measured_on_rows_that_neither_has_seen():
    """The gap by the library's own function on these rows, and an interval that holds what is
    measured on many new rows.
    """
    X, y, age = table(600)
    weights = np.random.default_rng(3).uniform(0.5, 2, size=600)
    person = np.arange(600) // 4
    target = y > 2.5
    rows = {"sensitive_features": age, "sample_weight": weights, "groups": person}
    predictor = ParityClassifier(condition="both", **SETTINGS)
    served = distill(predictor, None, X, target, **rows)
    kept = fold_of_rows(target, 10, target, person, 0) == 0
    scores = model_scores(served, X)
    gaps = []
    for label in (False, True):
        at = kept & (target == label)
        gap = gdp(scores[at], age[at], sample_weight=weights[at], groups=person[at])
        gaps.append(float(gap))
    loss, gap = served.costs
    assert gap.after == approx(max(gaps))
    losses = -np.log(np.where(target, scores, 1 - scores))[kept]
    assert loss.after == approx(np.average(losses, weights=weights[kept]))
    assert all(cost.low <= cost.after - cost.before <= cost.high for cost in served.costs)
    assert served.rows == kept.sum()
    new, _, age_new = table(4000, 5)
    free = LogisticRegression().fit(X[["years"]], target).predict_proba(new[["years"]])[:, 1]
    served_gap = gdp(model_scores(served, new), age_new, resamples=0).value
    assert served_gap < 0.7 * gdp(free, age_new, resamples=0).value


def test_an_estimator_of_the_users_own_takes_numbers_and_a_pipeline_takes_the_table(tmp_path):
    X, y, age = table()
    filled = X.assign(skill=X["skill"].fillna(0))
    line = LinearRegression()
    predictor = ParityRegressor(line, attribute_estimator=line, limit="80%", cv=2, random_state=0)
    numbers = filled[["years", "skill"]]
    plain = distill(predictor, line, numbers, y, sensitive_features=age)
    assert_allclose(plain.predict(numbers), plain.model.predict(numbers.to_numpy()))
    columns = make_column_transformer(("passthrough", ["years", "skill"]))
    steps = make_pipeline(columns, LogisticRegression())
    classifier = ParityClassifier(limit=None, **SETTINGS)
    served = distill(classifier, steps, filled, y > 2.5, sensitive_features=age)
    assert_array_equal(model_scores(served, filled), served.model.predict_proba(filled)[:, 1])
    save(served, tmp_path / "model.frhsic")
    assert_array_equal(
        model_scores(load(tmp_path / "model.frhsic"), filled), model_scores(served, filled)
    )
    with pytest.raises(TypeError, match="a Pipeline, but only LightGBM trees can be exported"):
        served.to_onnx(tmp_path / "model.onnx")


def test_a_file_whose_columns_and_trees_differ_is_refused():
    served, _, _ = distilled(array=True)
    with pytest.raises(ValueError, match="different numbers of columns"):
        Distilled(served.model, None, 3, False, (), None, (), 0)


# ONNX


def test_onnx_gives_the_same_scores(model, tmp_path):
    runtime = pytest.importorskip("onnxruntime")
    served, X, more = model
    path = tmp_path / "model.onnx"
    if served.schema_ is not None and "since" in served.schema_.names:
        with pytest.raises(ValueError, match="column 'since' contains dates or durations"):
            served.to_onnx(path)
        return
    served.to_onnx(path)
    session = runtime.InferenceSession(path)
    if isinstance(X, np.ndarray):
        given = {"X": X}
    else:
        table = X.assign(**({"age": more["sensitive_features"]} if more else {}))
        given = {
            name: column.to_numpy()[:, None].astype(object if name == "job" else float)
            for name, column in table.items()
        }
    (scores,) = session.run(None, given)
    assert_allclose(
        scores[:, 0], model_scores(served, X, more.get("sensitive_features")), atol=2e-6
    )


def test_without_onnx_the_call_says_what_to_install(monkeypatch, tmp_path):
    served, _, _ = distilled(array=True)
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ModuleNotFoundError, match="install it with pip install onnx"):
        served.to_onnx(tmp_path / "model.onnx")
    assert not (tmp_path / "model.onnx").exists()


# The command line


def test_train_writes_a_served_model_that_predicts_a_file(tmp_path: Path):
    rows = people(400)[["skill", "rank", "job", "age", "approved"]]
    rows.to_csv(tmp_path / "t.csv", index=False, sep=";", decimal=",")
    out = tmp_path / "model.frhsic"
    options = ["-t", "approved", "-s", "age", "-o", str(out), "--fast", "--json"]
    done(["train", str(tmp_path / "t.csv"), *options, "--serve", "lightgbm", "--threshold", "0.4"])
    scores = tmp_path / "scores.csv"
    served = tmp_path / "model.served.frhsic"
    done(["predict", str(served), str(tmp_path / "t.csv"), "-o", str(scores)])
    written = pd.read_csv(scores)
    model = load(served)
    assert_allclose(written["score"], model_scores(model, rows.drop(columns=["age", "approved"])))
    assert_array_equal(written["predicted"], np.where(written["score"] > 0.4, "yes", "no"))


def test_onnx_that_cannot_be_written_is_refused_before_training(tmp_path, monkeypatch):
    people(100).to_csv(tmp_path / "t.csv", index=False)
    options = ["-t", "approved", "-s", "age", "--features", "when", "--features", "skill"]
    command = ["train", str(tmp_path / "t.csv"), *options, "-o", str(tmp_path / "m.frhsic")]
    monkeypatch.setitem(sys.modules, "onnx", None)
    result = run([*command, "--serve", "onnx"])
    assert result.exit_code == 2
    assert "install it with pip install onnx" in result.output
    assert not (tmp_path / "m.frhsic").exists()


# The endpoint of the page "Serve"


def test_the_endpoint_of_the_page_answers_as_it_stands(tmp_path):
    """Scores for rows with a missing value, and a sentence for rows that lack a column."""
    page = Path(__file__).parents[1] / "docs" / "serve.md"
    (code,) = re.findall(r"```python\n(# service\.py\n.*?)```", page.read_text("utf-8"), re.DOTALL)
    (tmp_path / "service.py").write_text(code)
    served, X, _ = distilled()
    save(served, tmp_path / "applicants.served.frhsic")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address = f"http://127.0.0.1:{port}"
    rows = X.head(20).astype(object).where(X.notna(), None).to_dict("records")
    command = [sys.executable, "service.py"]
    environment = os.environ | {"PORT": str(port)}
    with subprocess.Popen(
        command, cwd=tmp_path, env=environment, stderr=subprocess.DEVNULL
    ) as process:
        try:
            wait_for(port)
            with urlopen(address, json.dumps(rows).encode()) as answer:
                assert_array_equal(json.load(answer), model_scores(served, X.head(20)))
            with pytest.raises(HTTPError) as refused:
                urlopen(address, b'[{"years": 1}]')
            assert "X has no column 'skill'" in refused.value.read().decode()
        finally:
            process.terminate()


def wait_for(port: int) -> None:
    """Return once a server listens."""
    for _ in range(1200):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
            return
        time.sleep(0.05)
    raise TimeoutError
