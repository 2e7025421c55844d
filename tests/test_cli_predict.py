"""`frhsic predict`: the scores of a saved model, row by row, without the sensitive attribute."""

from __future__ import annotations

import re
import warnings
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import lightgbm
import numpy as np
import pandas as pd
import pytest
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from cli_samples import done, one_line_and_2
from estimator_samples import people, quick
from frhsic import load, save
from frhsic.auditing import Audit
from frhsic.cli.predict import LEAST_REFUSED, Served
from frhsic.estimators import (
    FRHSICClassifier,
    FRHSICRegressor,
    ParityClassifier,
    ParityRegressor,
)
from frhsic.parity import gdp
from frhsic.tables.columns import MOST_ENCODED_LEVELS
from frhsic.tables.problems import SuspiciousColumnWarning
from frhsic.tables.schema import ColumnType, Schema

pytestmark = pytest.mark.usefixtures("few_trees")

FAST = quick(epochs=2)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("serving")
    X, paid, age = people()
    X = X.assign(size=X["size"].astype(str))
    rows = {"sensitive_features": age}
    save(FRHSICClassifier(**FAST).fit(X, np.where(paid, "yes", "no"), **rows), folder / "model")
    save(FRHSICRegressor(**FAST).fit(X, X["hours"] + age, **rows), folder / "numbers")
    with pytest.warns(SuspiciousColumnWarning, match="'job' alone predicts the target"):
        save(FRHSICClassifier(**FAST).fit(X, X["job"], **rows), folder / "jobs")
    save(FRHSICClassifier(**FAST).fit(X[["hours"]].to_numpy(), paid, **rows), folder / "nameless")
    table = X.assign(id=[f"p{i}" for i in range(len(X))], note="x", age=age)[
        ["note", "job", "id", *X.columns.drop("job")]
    ]
    table.to_csv(folder / "new.csv", index=False)
    table.to_parquet(folder / "new.parquet")
    return folder


def features(place):
    return pd.read_csv(place / "new.csv")[["hours", "job", "owner", "size"]]


def predicted(model, table, out):
    """Return what the command writes."""
    assert done(["predict", str(model), str(table), "-o", str(out)]).stderr == ""
    return pd.read_csv(out)


@pytest.mark.parametrize("table", ["new.csv", "new.parquet"])
@pytest.mark.parametrize("piece", [35, 100_000])
def test_scores_are_those_of_the_model_in_the_order_of_the_rows(
    place, tmp_path, reading, table, piece
):
    reading(piece)
    out = tmp_path / "scores.csv"
    result = done(
        ["predict", str(place / "model"), str(place / table), "-o", str(out), "--keep", "id"]
    )
    assert (result.stdout, result.stderr) == (f"{out}\n", "")
    scores, model = pd.read_csv(out), load(place / "model")
    assert list(scores) == ["id", "score", "predicted"]
    assert scores["id"].tolist() == [f"p{i}" for i in range(200)]
    assert np.allclose(scores["score"], model.predict_proba(features(place))[:, 1], atol=1e-6)
    assert scores["predicted"].tolist() == model.predict(features(place)).tolist()
    assert [path.name for path in tmp_path.iterdir()] == ["scores.csv"]


def test_numbers_and_several_classes_are_written_too(place, tmp_path):
    X = features(place)
    numbers, jobs = (
        predicted(place / name, place / "new.csv", tmp_path / "out.csv")
        for name in ("numbers", "jobs")
    )
    assert np.allclose(numbers["predicted"], load(place / "numbers").predict(X), rtol=1e-5)
    assert list(jobs) == ["score_clerk", "score_cook", "score_nurse", "predicted"]
    assert np.allclose(jobs.iloc[:, :3].sum(axis=1), 1)
    assert jobs["predicted"].tolist() == load(place / "jobs").predict(X).tolist()


def test_bad_input_is_refused_and_nothing_is_written(place, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "few.csv").write_text("hours,owner\n1,True\n")
    (tmp_path / "none.csv").write_text("hours,job,owner,size\n")
    (tmp_path / "taken.csv").write_text("hours,job,owner,size,score\n1,cook,True,1,2\n")
    model, new = str(place / "model"), str(place / "new.csv")
    for arguments, message in (
        ([model, "few.csv"], "2 of the columns that model needs: 'job', 'size'"),
        ([model, "none.csv"], "a header but no rows"),
        ([model, new, "--keep", "idd"], "'idd'"),
        ([model, "taken.csv", "--keep", "score"], "--keep score"),
        ([model, "few.csv", "-o", "few.csv"], "would overwrite the table"),
        (["missing", new], "no saved model 'missing'"),
        ([new, model], "new.csv is not a saved model, but model may be. Pass the model first"),
        ([str(place / "nameless"), new], "without column names"),
        ([model, new, "-o", "nowhere/x.csv"], "the folder 'nowhere' of the scores"),
        ([model, "/dev/zero"], "/dev/zero is a pipe or a device"),
        (["/dev/zero", new], "'/dev/zero' is a folder, a pipe or a device; pass a file"),
        (
            [model, new, "--max-bytes", "9"],
            "takes more than 9 bytes of memory. If you trust the file",
        ),
    ):
        assert message in one_line_and_2(["predict", *arguments])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["few.csv", "none.csv", "taken.csv"]


def test_the_sheet_with_the_columns_of_the_model_is_read(place, tmp_path):
    pytest.importorskip("openpyxl")
    rows = pd.read_csv(place / "new.csv", dtype=str)
    with pd.ExcelWriter(tmp_path / "new.xlsx") as book:
        pd.DataFrame({"about": ["these rows"]}).to_excel(book, sheet_name="notes", index=False)
        rows.to_excel(book, sheet_name="rows", index=False)
    scores = []
    for table in (place / "new.csv", tmp_path / "new.xlsx"):
        done(["predict", str(place / "model"), str(table), "-o", str(tmp_path / "scores.csv")])
        scores.append(pd.read_csv(tmp_path / "scores.csv"))
    pd.testing.assert_frame_equal(*scores)


def test_a_column_that_is_kept_twice_is_written_once(place, tmp_path):
    out = str(tmp_path / "scores.csv")
    keep = ["--keep", "hours, hours", "--keep", "hours"]
    done(["predict", str(place / "model"), str(place / "new.csv"), *keep, "-o", out])
    assert [*pd.read_csv(out)] == ["hours", "score", "predicted"]


def test_a_wrong_cell_names_file_column_row_and_value(place, tmp_path):
    table = pd.read_csv(place / "new.csv").astype({"hours": object})
    table.loc[3, "hours"] = "many"
    table.to_csv(tmp_path / "new.csv", index=False)
    said = one_line_and_2(["predict", str(place / "model"), str(tmp_path / "new.csv")])
    assert "new.csv: column 'hours' contained numbers in training" in said
    assert "it contains 'many', first in row 4" in said


def closed_form(**parameters):
    return ParityClassifier(cv=2, n_jobs=1, random_state=0, **parameters)


CLOSED = {
    "score": (closed_form(), []),
    "decision": (closed_form(aim="decision"), []),
    "with S": (closed_form(uses_sensitive=True), ["age"]),
}


@pytest.mark.parametrize("name", CLOSED)
def test_a_closed_form_is_served_with_its_labels_and_its_threshold(name, tmp_path):
    model, needed = CLOSED[name]
    X, paid, age = people()
    labels = np.where(paid, "yes", "no")
    X = X.astype({"job": "category", "size": "category"})
    with warnings.catch_warnings(action="ignore"):
        model.fit(X, labels, sensitive_features=age)
    save(model, tmp_path / "model")
    X.head(9).assign(age=age).to_csv(tmp_path / "new.csv", index=False)
    asked = [tmp_path / "model", tmp_path / "new.csv", tmp_path / "scores"]
    scores = predicted(*asked)
    given = {"sensitive_features": age.head(9)} if needed else {}
    assert np.allclose(scores["score"], model.predict_proba(X.head(9), **given)[:, 1], atol=1e-12)
    assert scores["predicted"].tolist() == model.predict(X.head(9), **given).tolist()
    X.head(9).to_csv(tmp_path / "new.csv", index=False)
    done(["predict", *map(str, asked[:2]), "-o", str(asked[2])], 2 if needed else 0)


def test_a_frozen_lightgbm_with_categories_is_served_and_audited(tmp_path):
    X, paid, age = people()
    X = X[["hours", "job"]].assign(job=X["job"].astype("category"))
    mine = lightgbm.LGBMClassifier(n_estimators=5, n_jobs=1, verbosity=-1).fit(X[:100], paid[:100])
    model = ParityClassifier(FrozenEstimator(mine), limit=None, n_jobs=1, cv=2, random_state=0)
    with pytest.raises(ValueError, match="X lacks 'job'"):
        model.fit(X[["hours"]], paid, sensitive_features=age)
    model.fit(X[100:], paid[100:], sensitive_features=age[100:])
    with pytest.warns(UserWarning, match="trusted=") as caught:
        save(model, tmp_path / "model")
    names = re.findall(r"'([\w.]+)'", str(caught[-1].message))
    trusted = [part for name in names for part in ("--trusted", name)]
    X.assign(age=age).to_csv(tmp_path / "new.csv", index=False)
    expected = model.predict_proba(X)[:, 1]
    out = tmp_path / "scores.csv"
    asked = [str(tmp_path / "model"), str(tmp_path / "new.csv"), "-o", str(out)]
    refusal = one_line_and_2(["predict", *asked])
    assert "load(path, trusted=['" in refusal
    assert "or --trusted for each" in refusal
    done(["predict", *asked, *trusted])
    scores = pd.read_csv(out)
    np.testing.assert_allclose(scores["score"], expected, rtol=1e-9)
    asked = [
        "audit",
        str(tmp_path / "new.csv"),
        "-s",
        "age",
        "--model",
        str(tmp_path / "model"),
        "--max-rows",
        "100",
        *trusted,
    ]
    gap = float(gdp(expected, age, resamples=0))
    assert Audit.from_json(done([*asked, "--json"]).stdout)["age"].all_rows[
        "gdp"
    ].value == pytest.approx(gap, rel=1e-9)


def test_a_model_of_bands_that_uses_them_reads_each_row_as_in_training(tmp_path):
    """An open band has no width of its own: alone in a file, it is still the point that it was in
    training.
    """
    random = np.random.default_rng(0)
    age, x = random.choice(["<30", "30-39", "40-49", "50+"], 300), random.normal(size=300)
    table = pd.DataFrame(
        {"age": age, "x": x, "paid": (x + (age == "50+") + random.normal(size=300) > 0).astype(int)}
    )
    table.to_csv(tmp_path / "all.csv", index=False)
    table[table["age"] == "50+"].head(3).to_csv(tmp_path / "old.csv", index=False)
    asked = [
        "train",
        str(tmp_path / "all.csv"),
        "-t",
        "paid",
        "-s",
        "age",
        "--uses-sensitive",
        "--limit",
        "none",
    ]
    done([*asked, "--max-rows", "100", "--json", "-o", str(tmp_path / "model")])
    every, old = (
        predicted(tmp_path / "model", tmp_path / f"{name}.csv", tmp_path / "scores")["score"]
        for name in ("all", "old")
    )
    np.testing.assert_allclose(old, every[age == "50+"][:3], rtol=1e-12)


def test_predictions_have_the_labels_of_the_training_table_and_the_stated_threshold(tmp_path):
    random = np.random.default_rng(0)
    age, x = random.uniform(20, 60, 200), random.normal(size=200)
    paid = np.where(x + random.normal(size=200) > 0.5, "ja", "nein")
    pd.DataFrame({"age": age, "x": x, "paid": paid}).to_csv(tmp_path / "all.csv", index=False)
    asked = [
        "train",
        str(tmp_path / "all.csv"),
        "-t",
        "paid",
        "--positive",
        "ja",
        "-s",
        "age",
        "--limit",
        "none",
    ]
    asked += ["--max-rows", "100", "--json", "-o", str(tmp_path / "model"), "--threshold", "0.3"]
    done(asked)
    scores = predicted(tmp_path / "model", tmp_path / "all.csv", tmp_path / "scores")
    assert scores["predicted"].tolist() == np.where(scores["score"] > 0.3, "ja", "nein").tolist()
    assert scores["score"].between(0.3, 0.5).any()  # decided otherwise by one half
    assert scores["score"][paid == "ja"].mean() > scores["score"][paid == "nein"].mean()
    model = load(tmp_path / "model")
    assert model.classes_.tolist() == ["nein", "ja"]
    assert model.predict(pd.DataFrame({"x": x})).tolist() == scores["predicted"].tolist()
    done([*asked, "--aim", "decision"], 2)
    pd.read_csv(tmp_path / "all.csv")[1:].to_csv(tmp_path / "other.csv", index=False)
    for name in ("all.csv", "other.csv"):
        audit = ["audit", str(tmp_path / name), "-s", "age", "--model", str(tmp_path / "model")]
        said = "model was trained on all.csv; on new rows, it may do worse."
        remarks = Audit.from_json(
            done([*audit, "--max-rows", "100", "--json"]).stdout
        ).context.remarks
        assert (said in remarks) == (name == "all.csv")


def test_a_line_does_not_depend_on_the_lines_beside_it_for_a_model_of_ones_own(tmp_path):
    random = np.random.default_rng(0)
    names = [f"x{j}" for j in range(60)]
    X = pd.DataFrame(random.normal(size=(1500, 60)) * np.logspace(-3, 3, 60), columns=names)
    age = pd.Series(X["x0"] * 1000 + random.normal(size=1500), name="age")
    y = X @ (random.normal(size=60) / np.logspace(-3, 3, 60)) + age
    own = make_pipeline(StandardScaler(), LinearRegression())
    model = ParityRegressor(own, attribute_estimator=own, cv=2, n_jobs=1, random_state=0)
    save(model.fit(X, y, sensitive_features=age), tmp_path / "model")
    X.to_csv(tmp_path / "all.csv", index=False)
    every = predicted(tmp_path / "model", tmp_path / "all.csv", tmp_path / "out.csv")["predicted"]
    for rows in (1, 33, 1025):
        chosen = random.permutation(1500)[:rows]
        X.iloc[chosen].to_csv(tmp_path / "some.csv", index=False)
        some = predicted(tmp_path / "model", tmp_path / "some.csv", tmp_path / "out.csv")
        np.testing.assert_array_equal(some["predicted"], every[chosen])


def test_kept_formulas_are_text_in_a_spreadsheet_unless_asked_for(place, tmp_path):
    cells = ["=cmd|'/c calc'!A1", "-5", "'quoted", "x"]
    table = pd.read_csv(place / "new.csv").head(4).assign(**{"=note": cells, "when": "2024-05-31"})
    table.to_csv(tmp_path / "new.csv", index=False)
    table.astype({"when": "datetime64[ns]"}).to_parquet(tmp_path / "new.parquet")
    for name in ("new.csv", "new.parquet"):
        asked = ["predict", str(place / "model"), str(tmp_path / name), "--keep", "=note"]
        asked += ["--keep", "when", "-o", str(tmp_path / "scores.csv")]
        done(asked)
        written = pd.read_csv(tmp_path / "scores.csv", dtype=str)
        assert written["'=note"].tolist() == ["'=cmd|'/c calc'!A1", "-5", "'quoted", "x"]
        assert written["when"].tolist() == ["2024-05-31"] * 4
        done([*asked, "--keep-formulas"])
        assert pd.read_csv(tmp_path / "scores.csv", dtype=str)["=note"].tolist() == cells


def test_kept_numbers_with_decimal_commas_can_be_audited_beside_the_scores(place, tmp_path):
    X, paid, age = people()
    codes = [f"{i:05d}" for i in range(len(X))]
    table = X.assign(code=codes, age=age + 0.5, paid=np.where(paid, "yes", "No "))
    table.to_csv(tmp_path / "new.csv", index=False, sep=";", decimal=",")
    scores = tmp_path / "scores.csv"
    keep = [f"--keep={name}" for name in ("code", "age", "paid")]
    done(["predict", str(place / "model"), str(tmp_path / "new.csv"), *keep, "-o", str(scores)])
    written = pd.read_csv(scores, dtype=str)
    np.testing.assert_array_equal([float(text) for text in written["age"]], age + 0.5)
    assert list(written["code"]) == codes
    done(["audit", str(scores), "-s", "age", "--score", "score", "-t", "paid", "--json"])


def test_an_error_of_the_model_names_the_model():
    served = Served(Path("somebody.frhsic"), None, Schema(()), [])
    message = r"the model somebody\.frhsic cannot predict \(IndexError: list index out of range\)"
    with pytest.raises(ValueError, match=message), served.name_in_errors():
        [][0]
    with pytest.raises(ValueError, match=r"^of the table$"), served.name_in_errors():
        raise ValueError("of the table")


def unseen(levels: int = 2, **counts: int) -> Served:
    """A model of one column, and the values that no training row of it has."""
    column = ColumnType("job", "text", tuple(f"level {i}" for i in range(levels)))
    rows = Counter(job=sum(counts.values()))
    return Served(Path("model"), None, Schema((column,)), [], {"job": Counter(counts)}, rows)


@pytest.mark.parametrize(
    ("counts", "said"),
    [
        ({}, []),
        ({"c": 1}, ["1 row has a value in 'job' that did not occur in training: 'c' (1)."]),
        ({"c": 1, "d": 1200, "e": 7}, ["1,208 rows have {}: 'd' (1,200), 'e' (7), 'c' (1)."]),
        ({"c": 1, "d": 4, "e": 3, "f": 2}, ["10 rows have {}: 'd' (4), 'e' (3), 'f' (2), ...."]),
        ({"c" * 1000: 2}, [f"2 rows have {{}}: '{'c' * 60}… (1,000 characters)' (2)."]),
    ],
)
def test_new_values_are_counted_the_most_frequent_ones_first(
    counts: dict[str, int], said: list[str]
):
    words = "a value in 'job' that did not occur in training"
    assert unseen(**counts).unseen_notes(5000) == [line.format(words) for line in said]


def test_a_table_is_refused_if_most_of_its_rows_have_a_new_value():
    half = LEAST_REFUSED // 2
    assert len(unseen(c=half).unseen_notes(LEAST_REFUSED)) == 1
    assert len(unseen(c=LEAST_REFUSED - 1).unseen_notes(LEAST_REFUSED - 1)) == 1
    assert len(unseen(MOST_ENCODED_LEVELS + 1, c=40).unseen_notes(40)) == 1
    for levels, shown in (
        (2, "'level 0', 'level 1'"),
        (6, "'level 0', 'level 1', 'level 2', 'level 3', 'level 4', ..."),
        (MOST_ENCODED_LEVELS, "'level 4', ..."),
    ):
        told = f"^11 of 20 rows have .* contained .*{shown}; write its values the same way"
        with pytest.raises(ValueError, match=told):
            unseen(levels, c=half + 1).unseen_notes(LEAST_REFUSED)


def test_an_attribute_of_a_model_without_its_schema_is_read_as_numbers():
    """Models that were fitted in Python do not know how a file of attributes is written."""
    served = Served(Path("model"), SimpleNamespace(), Schema(()), ["age"])
    file: Any = SimpleNamespace(decimal=",", date_format="")
    _, attributes = served.inputs(pd.DataFrame({"age": ["31,5", "NA"]}), file)
    np.testing.assert_array_equal(attributes["age"], [31.5, np.nan])
    with pytest.raises(ValueError, match="column 'age' contained numbers in training"):
        served.inputs(pd.DataFrame({"age": ["31,5", "old"]}), file)


def test_a_label_that_hardly_a_row_gets_is_told_with_the_threshold(tmp_path):
    random = np.random.default_rng(0)
    X = pd.DataFrame({"a": random.normal(size=600), "b": random.normal(size=600)})
    rare = np.where(random.random(600) < 0.06, "yes", "no")
    age = pd.Series(random.normal(size=600), name="age")
    with pytest.warns(UserWarning, match="is not significant"):
        model = ParityClassifier(random_state=0, n_jobs=1).fit(X, rare, sensitive_features=age)
    save(model, tmp_path / "model")
    X.to_parquet(tmp_path / "new.parquet")
    out = tmp_path / "out.csv"
    said = done(["predict", str(tmp_path / "model"), str(tmp_path / "new.parquet"), "-o", str(out)])
    scores = pd.read_csv(out)
    given = int((scores["predicted"] == "yes").sum())
    expected = scores["score"].sum()
    assert 10 * given < expected
    assert f"{given} of 600 rows are labeled 'yes', although the scores add up to" in said.stderr
    assert f"{expected:,.0f}: the threshold of the model is 0.5" in said.stderr


def test_a_header_inside_the_file_gets_no_score(place, tmp_path):
    lines = (place / "new.csv").read_text().splitlines()
    path = tmp_path / "new.csv"
    path.write_text("\n".join([*lines[:50], lines[0], *lines[50:]]))
    out = tmp_path / "scores.csv"
    said = done(["predict", str(place / "model"), str(path), "-o", str(out)]).stderr
    assert "Row 50 repeats the names of the columns and is left out." in said
    pd.testing.assert_frame_equal(
        pd.read_csv(out), predicted(place / "model", place / "new.csv", tmp_path / "whole.csv")
    )


def test_numbers_beside_a_limit_need_not_occur_in_training(tmp_path):
    random = np.random.default_rng(0)
    crp = np.round(random.gamma(2, 3, 400) + 1, 1)
    x = (random.normal(size=400) + crp / 5).round(3)
    ill = np.where(x + random.normal(size=400) > 1.5, "yes", "no")
    cells = np.where(crp < 1.5, "<1.5", crp.astype(str))
    path = tmp_path / "labs.csv"
    pd.DataFrame({"crp": cells, "x": x, "ill": ill}).to_csv(path, index=False)
    model = tmp_path / "model.frhsic"
    roles = ["-t", "ill", "-s", "crp", "--uses-sensitive", "--fast", "--limit", "0.5"]
    done(["train", str(path), *roles, "--out", str(model), "--report", str(tmp_path / "r.html")])
    new = pd.DataFrame({"crp": ["3.25", "3.3", "<1.5", "1.5"], "x": [0.5, 0.5, 1.0, 1.0]})
    new.to_csv(tmp_path / "new.csv", index=False)
    scores = predicted(model, tmp_path / "new.csv", tmp_path / "scores.csv")["score"]
    assert scores.notna().all()
    assert scores[2] == scores[3]


def test_a_line_of_sums_and_means_gets_no_score(place, tmp_path):
    table = pd.read_csv(place / "new.csv")
    numbers = table.select_dtypes("number").columns
    filled = table.iloc[0].to_dict() | table[numbers].sum().to_dict() | {"note": "Total"}
    pd.concat([table, pd.DataFrame([filled])]).to_csv(tmp_path / "t.csv", index=False)
    out = tmp_path / "scores.csv"
    said = done(["predict", str(place / "model"), str(tmp_path / "t.csv"), "-o", str(out)]).stderr
    assert len(pd.read_csv(out)) == len(table)
    assert f"Row {len(table) + 1} contains totals of the other rows and is left out." in said
