"""One schema for every file: a cell is read by what the training table held, never by its
neighbours.
"""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from estimator_samples import quick
from frhsic import ParityClassifier, load, save
from frhsic.cli import app
from frhsic.estimators import FRHSICClassifier
from frhsic.persistence import from_json, to_json
from frhsic.tables import files
from frhsic.tables.files import TableFile
from frhsic.tables.schema import DATE_FORMS, NUMBER_MARKS, Schema, date_forms
from frhsic.tables.training import ColumnRoles, read_training_table

run = CliRunner().invoke
pytestmark = pytest.mark.usefixtures("few_trees")


def learned(*cells: str, decimal: str | None = ".") -> str:
    return Schema.learn(pd.DataFrame({"x": list(cells)}), decimal=decimal).columns[0].kind


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        (["1", "2.5", "-3e4", " 7 "], "number"),
        (["0", "0.5", "-0.25", "?"], "number"),
        (["007", "12"], "text"),
        (["1234567890123456", "1"], "text"),
        (["1", "2", "x"], "text"),
        (["1,234", "2"], "text"),
        (["True", "false"], "boolean"),
        (["", "NA", "?"], "empty"),
        (["none", "cook"], "text"),
        (["2024-05-31", "-"], "date"),
        (["2024-05", "2024-06"], "text"),
        (["2024-02-30", "2024-03-01"], "text"),
        ([f"p{i}" for i in range(65)], "identifier"),
        ([f"p{i}" for i in range(64)], "text"),
    ],
)
def test_the_kind_of_a_column_of_a_text_file(cells, kind):
    assert learned(*cells) == kind


def test_in_a_table_with_types_text_stays_text_unless_it_is_dates():
    assert learned("1", "2", decimal=None) == "text"
    assert learned("NA", "cook", decimal=None) == "text"
    assert learned("31.05.2024", "01.06.2024", decimal=None) == "date"
    frame = pd.DataFrame(
        {
            "a": pd.Categorical([3, 1]),
            "b": [1, 2],
            "c": pd.to_timedelta([1, 2], "D"),
            "d": [True] * 2,
        }
    )
    frame = frame.assign(e=pd.date_range("2020", periods=2))
    schema = Schema.learn(frame)
    assert list(schema.kinds.values()) == ["category", "number", "duration", "boolean", "date"]
    pd.testing.assert_frame_equal(schema(frame), frame, check_dtype=False)
    assert schema.columns[0].levels == (1, 3)


@pytest.mark.parametrize("form", DATE_FORMS[1:])
def test_dates_in_every_form_are_the_same_days(form):
    days = pd.Series(pd.date_range("2019-12-29 10:20:30", periods=40, freq="9D"))
    if "%H" not in form:
        days = days.dt.normalize()
    elif "%S" not in form:
        days = days.dt.floor("min")
    cells = days.dt.strftime(form)
    assert form in date_forms(cells)
    schema = Schema.learn(cells.to_frame("d"), decimal=".")
    assert schema(cells.to_frame("d"))["d"].tolist() == days.tolist()
    alone = [schema(cells.iloc[[i]].to_frame("d"))["d"].iloc[0] for i in range(40)]
    assert alone == days.tolist()


def test_how_dates_are_read_is_told(tmp_path):
    rng, n = np.random.default_rng(0), 60
    days = [f"{rng.integers(1, 13):02d}/{rng.integers(1, 13):02d}/2024" for _ in range(n)]
    frame = pd.DataFrame(
        {
            "when": days,
            "age": rng.integers(20, 60, n),
            "x": rng.normal(size=n),
            "y": np.arange(n) % 2,
        }
    )
    frame.to_csv(tmp_path / "t.csv", index=False)
    data = read_training_table(TableFile.open(tmp_path / "t.csv"), ColumnRoles("y", ("age",)))
    assert data.notes[0].startswith("'when' is read as a date: month, day, year; write it as")
    for form, notes in (
        ("%d/%m/%Y", ("'when' is read as a date: day, month, year.",)),
        ("%d. %B %Y", ("'when' is read as a date: day, month, year.",)),
        ("%Y-%m-%d", ()),
    ):
        frame["when"] = pd.date_range("2024-01-20", periods=n).strftime(form)
        frame.to_csv(tmp_path / "t.csv", index=False)
        assert (
            read_training_table(
                TableFile.open(tmp_path / "t.csv"), ColumnRoles("y", ("age",))
            ).notes
            == notes
        )


def test_every_mark_is_a_missing_number_and_a_decimal_sign_is_one_sign():
    schema = Schema.learn(pd.DataFrame({"x": ["1,5", *NUMBER_MARKS]}), decimal=",")
    values = schema(pd.DataFrame({"x": ["2,25", *NUMBER_MARKS]}))["x"]
    assert values.iloc[0] == 2.25
    assert values.iloc[1:].isna().all()
    for cell in ("1.234", "1.234,5", "a lot"):
        with pytest.raises(
            ValueError, match=f"held numbers in training; it holds '{cell}', first in row 2"
        ):
            schema(pd.DataFrame({"x": ["1", cell]}))
    assert schema(pd.DataFrame({"x": ["1.234"]}), ".")["x"].tolist() == [1.234]


def test_values_that_no_training_row_has_are_counted_and_named():
    schema = Schema.learn(pd.DataFrame({"job": ["cook", "clerk ", "", "7"]}), decimal=".")
    new = pd.DataFrame({"job": ["cook ", "COOK", "COOK", "", "NA", "7.0"]})
    assert schema.unseen(new) == {"job": {"COOK": 2, "7.0": 1}}
    assert schema(new)["job"].tolist()[:3] == ["cook", "COOK", "COOK"]
    assert schema(new)["job"].isna().tolist() == [False, False, False, True, True, False]
    assert schema(pd.DataFrame({"job": [7.0]}))["job"].tolist() == [
        "7"
    ]  # a file whose columns have types


def test_a_schema_survives_json_and_a_forged_one_is_refused():
    frame = pd.DataFrame({"a": ["007", "x"], "b": ["1", "2"], "c": ["31.12.2024", "01.01.2025"]})
    schema = Schema.learn(frame.assign(d=pd.Categorical([1.5, 2])), decimal=",", separator=";")
    plain = to_json(schema)
    assert from_json(plain) == schema
    for field, value in (("kind", "code"), ("form", "%s"), ("levels", "abc"), ("name", 3)):
        forged = to_json(schema)
        forged["fields"]["columns"][0]["fields"][field] = value
        with pytest.raises(ValueError):  # any message: files are made by anyone
            from_json(forged)


def messy(n: int, seed: int = 0) -> pd.DataFrame:
    """A table as people have it, every cell as text: codes, decimal commas, dates, marks,
    identifiers, levels.
    """
    rng = np.random.default_rng(seed)
    x, age, code = (
        rng.normal(size=n),
        rng.integers(20, 70, n),
        rng.choice(["007", "012", "7", "A12", "NA", ""], n),
    )
    day = pd.to_datetime("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, n), unit="D")
    number = [f"{value:.5g}".replace(".", ",") for value in x]
    ids = ["{:06d}", "{:d}", "1234567890123{:06d}", "NA", " {:d}", 'a";{:d}']
    y = np.where(x + 0.04 * (age - 45) + (code == "007") + rng.normal(size=n) > 0, "ja", "nein")
    return pd.DataFrame(
        {
            "id": [ids[i % 6].format(i) for i in range(n)],
            "code": code,
            "x": np.where(rng.random(n) < 0.1, rng.choice(["?", "", "n/a", "-"], n), number),
            "when": np.where(rng.random(n) < 0.1, "", day.strftime("%d.%m.%Y")),
            "job": rng.choice(["Koch", "Ärztin", "none", "x;y", 'say "no"', "a\nb"], n),
            "member": rng.choice(["true", "False"], n),
            "age": age.astype(str),
            "y": y,
        }
    )


FEATURES = ["code", "x", "when", "job", "member"]


def write(frame: pd.DataFrame, path: Path, encoding: str = "utf-8") -> Path:
    frame.to_csv(path, sep=";", index=False, encoding=encoding)
    return path


@pytest.fixture(scope="module")
def served(tmp_path_factory) -> Path:
    """A closed form and a network, trained on a messy file."""
    folder = tmp_path_factory.mktemp("served")
    file = TableFile.open(write(messy(400), folder / "train.csv"))
    data = read_training_table(file, ColumnRoles("y", ("age",), features=tuple(FEATURES)))
    closed = ParityClassifier(limit=0.05, cv=2, n_jobs=1, random_state=0)
    network = FRHSICClassifier(**quick(epochs=2))
    for name, model in (("closed", closed), ("network", network)):
        model.fit(data.X, data.y, sensitive_features=data.s)
        model.schema_ = data.schema
        save(model, folder / name)
    return folder


def predicted(model: Path, table: Path, note: str = "") -> list[str]:
    out = table.with_suffix(".scores")
    result = run(app, ["predict", str(model), str(table), "--keep", "id", "-o", str(out)])
    assert result.exit_code == 0, result.output
    assert note in result.stderr
    return list(pd.read_csv(out, dtype=str, na_filter=False).itertuples(index=False, name=None))


@pytest.mark.parametrize("name", ["closed", "network"])
def test_a_score_does_not_depend_on_the_other_rows(served, name, tmp_path):
    """Files whose codes are all digits, whose numbers have no decimals, or which have one row."""
    frame = messy(90, seed=1)
    whole = predicted(served / name, write(frame, tmp_path / "whole.csv"))
    assert [row[0] for row in whole] == frame["id"].tolist()
    kept = {
        "digits": frame["code"].isin(["007", "012", "7"]),
        "seven": frame["code"] == "7",
        "whole": ~frame["x"].str.contains(","),
        "undated": frame["when"] == "",
        "one": frame.index == 5,
    }
    for part, rows in kept.items():
        alone = predicted(served / name, write(frame[rows], tmp_path / f"{part}.csv"))
        assert alone == [row for row, keep in zip(whole, rows) if keep], part
    latin = predicted(
        served / name,
        write(frame, tmp_path / "latin.csv", encoding="cp1252"),
        "read as Windows-1252",
    )
    assert latin == whole


def test_shuffled_split_and_joined_files_have_the_same_scores(served, tmp_path):
    frame, rng = messy(60, seed=2), np.random.default_rng(0)
    for name in ("closed", "network"):
        whole = predicted(served / name, write(frame, tmp_path / "whole.csv"))
        order = rng.permutation(np.r_[np.arange(60), rng.integers(0, 60, 20)])
        for rows in np.split(order, [3, 30]):
            part = frame.iloc[rows][rng.permutation(frame.columns)]
            assert predicted(served / name, write(part, tmp_path / "p.csv")) == [
                whole[i] for i in rows
            ]


def test_groups_and_codes_of_a_long_file_are_those_of_one_table(tmp_path, monkeypatch):
    """Typed piece by piece, 007 was 7 where all codes of a piece were digits, and a person became
    two.
    """
    monkeypatch.setattr(files, "CELLS", 300)
    rng, n = np.random.default_rng(0), 400
    person = np.array([f"{i:03d}" for i in rng.integers(0, 40, n)])
    code = np.where(np.arange(n) < 200, "007", "A12")
    frame = pd.DataFrame(
        {"person": person, "code": code, "age": rng.integers(20, 60, n), "x": rng.normal(size=n)}
    )
    frame = frame.assign(
        y=rng.integers(0, 2, n), person=np.where(np.arange(n) >= 300, "Z1", person)
    )
    frame.to_csv(tmp_path / "t.csv", index=False)
    data = read_training_table(
        TableFile.open(tmp_path / "t.csv"), ColumnRoles("y", ("age",), groups="person")
    )
    assert set(data.X["code"]) == {"007", "A12"}
    assert data.groups.tolist() == frame["person"].tolist()
    train, test = data.split(0.3, 0)
    assert not set(data.groups[train]) & set(data.groups[test])


def test_kept_columns_are_written_as_they_are(served, tmp_path):
    ids = ["000001", "NA", "12345678901234567890", "1e5", " x", "", "1.10"]
    frame = messy(len(ids)).assign(id=ids)
    assert [row[0] for row in predicted(served / "closed", write(frame, tmp_path / "t.csv"))] == ids
    frame[FEATURES].assign(id=pd.array([2**62 + 1, None] + [7] * 5, "Int64")).to_parquet(
        tmp_path / "t.parquet"
    )
    out = predicted(served / "closed", tmp_path / "t.parquet")
    assert [row[0] for row in out[:3]] == [str(2**62 + 1), "", "7"]


def test_in_python_text_dates_are_dates_and_columns_keep_their_places():
    rng, n = np.random.default_rng(0), 200
    day = pd.Series(pd.date_range("2020-01-01", periods=n))
    X = pd.DataFrame({0: rng.normal(size=n), 1: day.dt.strftime("%d.%m.%Y")})
    y, s = (X[0] + rng.normal(size=n) > 0).astype(int), pd.Series(rng.uniform(size=n), name="s")
    model = ParityClassifier(limit=None, cv=2, n_jobs=1, random_state=0)
    text = model.fit(X, y, sensitive_features=s).predict_proba(X)
    dates = pd.DataFrame({0: X[0], 1: day})
    assert np.array_equal(text, model.fit(dates, y, sensitive_features=s).predict_proba(dates))
    with pytest.raises(ValueError, match="this model was fitted on"):
        model.predict_proba(pd.DataFrame({1: day, 0: X[0]}))


CELL = st.text(
    st.characters(codec="utf-8", exclude_characters="\0\r\n", exclude_categories=["Cs"]), max_size=8
)


@settings(max_examples=25, deadline=None)
@given(cells=st.lists(CELL, min_size=1, max_size=6))
def test_any_text_comes_out_of_a_file_as_it_went_in(tmp_path_factory, cells):
    path = tmp_path_factory.mktemp("any") / "t.csv"
    pd.DataFrame({"id": cells, "x": "1"}).to_csv(path, index=False)
    assert pd.concat(TableFile.open(path).pieces(["id"]))["id"].tolist() == cells


def test_a_model_with_categories_of_numbers_is_served_from_text(tmp_path):
    rng, n = np.random.default_rng(0), 200
    X = pd.DataFrame({"size": pd.Categorical(rng.integers(1, 4, n)), "x": rng.normal(size=n)})
    model = ParityClassifier(limit=None, cv=2, n_jobs=1, random_state=0)
    model.fit(X, rng.integers(0, 2, n), sensitive_features=rng.uniform(size=n))
    save(model, tmp_path / "model")
    X.assign(id="a").to_csv(tmp_path / "t.csv", index=False)
    scores = predicted(tmp_path / "model", tmp_path / "t.csv")
    np.testing.assert_allclose(
        [float(row[1]) for row in scores], load(tmp_path / "model").predict_proba(X)[:, 1]
    )


def test_masked_values_are_missing_and_a_lazy_frame_is_a_table():
    rng, n = np.random.default_rng(0), 200
    X, s = rng.normal(size=(n, 2)), rng.uniform(size=n)
    y = (X[:, 0] + rng.normal(size=n) > 0).astype(int)
    hidden = rng.random((n, 2)) < 0.3
    model = ParityClassifier(limit=None, cv=2, n_jobs=1, random_state=0)
    masked = np.ma.array(np.where(hidden, 1e6 * y[:, None], X), mask=hidden)
    expected = model.fit(np.where(hidden, np.nan, X), y, sensitive_features=s).predict_proba(X)
    assert np.array_equal(model.fit(masked, y, sensitive_features=s).predict_proba(X), expected)
    frame = pytest.importorskip("polars").DataFrame({"a": X[:, 0], "b": X[:, 1]})
    expected = model.fit(frame.to_pandas(), y, sensitive_features=s).predict_proba(frame)
    assert np.array_equal(
        model.fit(frame.lazy(), y, sensitive_features=s).predict_proba(frame.lazy()), expected
    )
    with pytest.raises(TypeError, match="dates"):
        model.fit(X, y, sensitive_features=pd.date_range("2020", periods=n))


@pytest.mark.parametrize("aim", ["score", "rank", "decision"])
def test_in_python_too_a_score_does_not_depend_on_the_other_rows(aim):
    rng, n = np.random.default_rng(0), 400
    s, b = rng.normal(size=(2, n))
    X = pd.DataFrame({"a": s + rng.normal(size=n), "b": b, "c": rng.choice(list("xyz"), n)})
    model = ParityClassifier(limit="75%", aim=aim, cv=2, n_jobs=1, random_state=0)
    with warnings.catch_warnings(action="ignore"):
        model.fit(X, (X["a"] + b > 0).astype(int), sensitive_features=s)
    whole = model.predict_proba(X)
    for _ in range(20):
        rows = rng.choice(n, rng.integers(1, 60))
        assert np.array_equal(model.predict_proba(X.iloc[rows]), whole[rows])


@pytest.mark.parametrize("command", ["predict", "audit"])
def test_levels_that_no_training_row_has_are_counted_once(served, tmp_path, command):
    table = write(messy(80).assign(job="KOCH"), tmp_path / "t.csv")
    audit = [
        "audit",
        str(table),
        "-s",
        "age",
        "--model",
        str(served / "network"),
        "--max-rows",
        "100",
        "--json",
    ]
    predict = ["predict", str(served / "closed"), str(table), "-o", str(tmp_path / "s.csv")]
    result = run(app, audit if command == "audit" else predict)
    assert result.exit_code == 0, result.output
    assert "80 rows have a value of 'job' that no training row has: 'KOCH' (80)" in result.output
