"""One schema for every file: a cell is read by what the training table held, never by its
neighbours.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression
from typer.testing import CliRunner

import frhsic
from estimator_samples import quick, saved_and_read
from frhsic import ParityClassifier, load, save
from frhsic.cli import app
from frhsic.tables.checking import ColumnRoles
from frhsic.tables.files import TableFile
from frhsic.tables.schema import NUMBER_MARKS, Schema, parse_numbers
from frhsic.tables.training import read_training_table

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
        (["１２３", "4"], "text"),
        (["３１.05.2024"], "text"),
        (["True", "false"], "boolean"),
        (["", "NA", "?"], "empty"),
        (["none", "cook"], "text"),
        (["2024-05-31", "-"], "date"),
        (["2024-05", "2024-06"], "text"),
        (["2024-05-31", "31.05.2024", "2024-05-31T10:20+02:00", "never"], "date"),
        (["never", "unknown", "1.5.2024"], "text"),
        (["never", "1.5.2024"], "date"),
        (["10.0.0.1", "10.4.1.12"], "text"),
        (["12-34-56", "40-47-84"], "text"),
        (["20240531", "20240601"], "number"),
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


DAYS = pd.Series(pd.date_range("2019-12-29 10:20:30", periods=40, freq="9D"))


@pytest.mark.parametrize(
    "form", ["%Y-%m-%d", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%SZ", "%Y/%m/%d", "%d.%m.%Y"]
)
def test_iso_dates_and_those_with_points_are_read_cell_by_cell(form):
    days = DAYS if "%H" in form else DAYS.dt.normalize()
    cells = days.dt.strftime(form).to_frame("d")
    schema = Schema.learn(cells, decimal=".")
    assert schema(cells)["d"].tolist() == days.tolist()
    alone = [schema(cells.iloc[[i]])["d"].iloc[0] for i in range(40)]
    assert alone == days.tolist()


def test_dates_with_a_time_zone_are_taken_in_utc():
    cells = pd.DataFrame({"d": ["2024-05-31T10:20+02:00", "2024-05-31 08:20Z"]})
    assert Schema.learn(cells)(cells)["d"].tolist() == [pd.Timestamp("2024-05-31 08:20")] * 2


OTHER_DATES = [
    *("%m/%d/%Y", "%d-%m-%Y", "%d.%m.%y", "%d-%b-%Y", "%d. %B %Y", "%b %d, %Y"),
    *("%d.%m.%Y %H:%M", "%m/%d/%Y %I:%M:%S %p", "%a, %d %b %Y"),
]


@pytest.mark.parametrize("decimal", [".", None])
@pytest.mark.parametrize("form", OTHER_DATES)
def test_other_dates_are_an_error_until_their_format_is_said(form, decimal):
    days = DAYS.dt.floor("min") if "%M" in form else DAYS.dt.normalize()
    days = DAYS if "%S" in form else days
    cells = days.dt.strftime(form).to_frame("d")
    start = f"column 'd' is a date column, but it contains '{cells['d'][0]}'"
    message = f"{start}, .* with --date-format, .*pd.to_da"
    with pytest.raises(ValueError, match=message):
        Schema.learn(cells, decimal=decimal)(cells)
    schema = Schema.learn(cells, decimal=decimal, date_format=form)
    for read in (schema, saved_and_read(schema)):
        assert read(cells)["d"].tolist() == days.tolist()
        assert read(cells.iloc[[3]])["d"].tolist() == [days[3]]


@pytest.mark.parametrize(
    "cells", [["2024-02-30", "2024-03-01"], ["31.05.2024", "never"] * 2, ["31.05.2024", "2024"]]
)
def test_a_value_among_dates_that_is_none_is_named(cells):
    table = pd.DataFrame({"d": [*cells, "01.06.2024"]})
    wrong = next(cell for cell in cells if cell in ("2024-02-30", "never", "2024"))
    row = 1 + cells.index(wrong)
    with pytest.raises(
        ValueError, match=f"is a date column, but it contains '{wrong}', first in row {row}, "
    ):
        Schema.learn(table, decimal=".")(table)


def test_a_date_format_is_for_the_columns_that_it_fits_and_goes_before_numbers():
    table = pd.DataFrame(
        {
            "day": ["20240531", "20240601"],
            "iso": ["2024-05-31", "2024-06-01"],
            "x": ["1", "2"],
            "job": ["cook", "clerk"],
        }
    )
    schema = Schema.learn(table, decimal=".", date_format="%Y%m%d")
    assert list(schema.kinds.values()) == ["date", "date", "number", "text"]
    read = schema(table, date_format="%Y%m%d")
    assert read["day"].tolist() == read["iso"].tolist() == [*pd.to_datetime(table["iso"])]
    other = table.assign(day=["31/05/2024", "01/06/2024"])
    assert schema(other, date_format="%d/%m/%Y")["day"].tolist() == read["day"].tolist()
    with pytest.raises(ValueError, match=r"'31/05/2024', .*, first in row 1, .* match %Y%m%d"):
        schema(other)


def test_a_model_of_typed_dates_is_served_from_text_in_a_format():
    schema = Schema.learn(pd.DataFrame({"d": DAYS}))
    cells = DAYS.dt.strftime("%m.%d.%Y %H:%M:%S").to_frame("d")
    assert schema(cells, date_format="%m.%d.%Y %H:%M:%S")["d"].tolist() == DAYS.tolist()


@pytest.mark.parametrize(
    "form", ["%Q", "%s", "%d %d", "mixed", "ISO8601", "31/05/2024", "%", "%d" * 99]
)
def test_a_text_that_is_no_date_format_is_refused(form):
    table = pd.DataFrame({"d": ["31/05/2024"]})
    with pytest.raises(ValueError, match=r"the date format .* cannot be used: .* as %d/%m/%Y"):
        Schema.learn(table, date_format=form)
    with pytest.raises(ValueError, match="cannot be used"):
        Schema.learn(table)(table, date_format=form)


def test_a_date_format_of_train_is_that_of_predict_and_audit(tmp_path):
    rng, n = np.random.default_rng(0), 120
    day = pd.Series(pd.date_range("2020-01-01", periods=n)).sample(frac=1, random_state=0)
    frame = pd.DataFrame({"when": day.to_numpy(), "age": rng.integers(20, 60, n)})
    frame = frame.assign(x=rng.normal(size=n), y=rng.integers(0, 2, n), id=np.arange(n))
    table, model = tmp_path / "t.csv", tmp_path / "model"
    train = ["train", str(table), "-t", "y", "-s", "age", "--drop", "id"]
    train += ["-o", str(model), "--json", "--max-rows", "100"]
    audit = ["audit", str(table), "-s", "age", "--model", str(model), "--json", "--max-rows", "100"]
    scores = {}
    for form in ("%Y-%m-%d", "%d/%m/%Y"):
        frame.assign(when=frame["when"].dt.strftime(form)).to_csv(table, index=False)
        stated = [] if form == "%Y-%m-%d" else ["--date-format", form]
        if stated:
            refused = run(app, train)
            assert refused.exit_code == 2
            assert "column 'when' is a date column" in refused.output
            assert "--date-format" in refused.output
        result = run(app, [*train, *stated])
        assert result.exit_code in (0, 1), result.output
        scores[form] = predicted(model, table)
    assert run(app, audit).exit_code == 0
    assert scores["%d/%m/%Y"] == scores["%Y-%m-%d"]
    frame.assign(when=frame["when"].dt.strftime("%b %d, %Y")).to_csv(table, index=False)
    for command in (["predict", str(model), str(table), "-o", str(tmp_path / "s.csv")], audit):
        assert run(app, command).exit_code == 2
        assert run(app, [*command, "--date-format", "%b %d, %Y"]).exit_code == 0


def test_every_mark_is_a_missing_number_and_a_decimal_sign_is_one_sign():
    schema = Schema.learn(pd.DataFrame({"x": ["1,5", *NUMBER_MARKS]}), decimal=",")
    values = schema(pd.DataFrame({"x": ["2,25", *NUMBER_MARKS]}))["x"]
    assert values.iloc[0] == 2.25
    assert values.iloc[1:].isna().all()
    for cell in ("1.234", "1.234,5", "a lot", "１２３", "١٢"):
        with pytest.raises(
            ValueError,
            match=f"contained numbers in training, but it contains '{cell}', first in row 2",
        ):
            schema(pd.DataFrame({"x": ["1", cell]}))
    assert schema(pd.DataFrame({"x": ["1.234"]}), ".")["x"].tolist() == [1.234]


@pytest.mark.parametrize(
    ("cells", "values"),
    [
        (["210.000,00", "1.234", "0,50", "-12"], [210_000, 1_234, 0.5, -12]),
        (["1.234.567", "+1.234", "2500,5"], [1_234_567, 1_234, 2500.5]),
        (["1.234", "2.345"], None),  # a little more than 1 and 2, or thousands
        (["210.000,00", "1.23"], None),
        (["210.000,00", "21.00.000"], None),
        (["210.000,00", "0.500"], None),
        (["1.234.567.890.123.456", "1"], None),  # so many digits are a code
        (["192.168.1.17", "10.0.0.1"], None),
    ],
)
@pytest.mark.parametrize("decimal", [",", "."])
def test_groups_of_three_digits_are_numbers_where_they_can_be_nothing_else(cells, values, decimal):
    swapped = cells if decimal == "," else [cell.translate({44: ".", 46: ","}) for cell in cells]
    table = pd.DataFrame({"x": swapped})
    schema = Schema.learn(table, decimal=decimal)
    assert schema.kinds["x"] == ("text" if values is None else "number")
    if values is not None:
        for read in (schema, saved_and_read(schema)):
            assert read(table)["x"].tolist() == values
        one = table.iloc[[1]]  # a cell is read by the schema alone
        assert schema(one)["x"].tolist() == [values[1]]


@pytest.mark.parametrize("cells", [["1", None, "+2,5"], ["1", None, "2,5", "x"]])
def test_numbers_keep_their_rows(cells):
    rows = [7, 3, 5, 1][: len(cells)]
    values = [1.0, np.nan, 2.5, np.nan][: len(cells)]
    read = parse_numbers(pd.Series(cells, rows, dtype=str), ",")
    pd.testing.assert_series_equal(read, pd.Series(values, rows))


def test_values_that_no_training_row_has_are_counted_and_named():
    schema = Schema.learn(pd.DataFrame({"job": ["cook", "clerk ", "", "7"]}), decimal=".")
    new = pd.DataFrame({"job": ["cook ", "COOK", "KOCH", "", "NA", "7.0"]})
    assert schema.count_unseen(new) == {"job": {"KOCH": 1, "7.0": 1}}
    assert schema(new)["job"].tolist()[:3] == ["cook", "cook", "KOCH"]
    assert schema(new)["job"].isna().tolist() == [False, False, False, True, True, False]
    assert schema(pd.DataFrame({"job": [7.0]}))["job"].tolist() == [
        "7"
    ]  # a file whose columns have types


def test_a_schema_survives_json_and_a_forged_one_is_refused():
    frame = pd.DataFrame({"a": ["007", "x"], "b": ["1", "2"], "c": ["31.12.2024", "01.01.2025"]})
    schema = Schema.learn(frame.assign(d=pd.Categorical([1.5, 2])), decimal=",", separator=";")
    assert saved_and_read(schema) == schema
    for field, value in (("kind", "code"), ("date_format", "%s"), ("levels", "abc"), ("name", 3)):
        first = replace(schema.columns[0])
        object.__setattr__(first, field, value)
        with pytest.raises(ValueError):  # any message: files are made by anyone
            saved_and_read(replace(schema, columns=(first, *schema.columns[1:])))


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
    models = {"closed": closed}
    if find_spec("torch"):
        models["network"] = frhsic.FRHSICClassifier(**quick(epochs=2))
    for name, model in models.items():
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
    if name == "network":
        pytest.importorskip("torch")
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


def test_groups_and_codes_of_a_long_file_are_those_of_one_table(tmp_path, reading):
    """Typed piece by piece, 007 was 7 where all codes of a piece were digits, and a person became
    two.
    """
    reading(300)
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


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
@pytest.mark.parametrize("estimator", [None, LogisticRegression()])
def test_an_array_is_read_by_position_as_scikit_learn_does(estimator):
    rng, n = np.random.default_rng(0), 100
    X = pd.DataFrame(rng.normal(size=(n, 2)), columns=["a", "b"])
    model = ParityClassifier(estimator, limit=None, cv=2, n_jobs=1, random_state=0)
    y = (X["a"] + rng.normal(size=n) > 0).astype(int)
    model.fit(X, y, sensitive_features=rng.uniform(size=n))
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        scores = model.predict_proba(X.to_numpy())
    assert np.array_equal(scores, model.predict_proba(X))
    with pytest.raises(ValueError, match="X has 1 features, but ParityClassifier is expecting 2"):
        model.predict_proba(X.to_numpy()[:, :1])


def test_masked_values_are_missing():
    rng, n = np.random.default_rng(0), 100
    X, s = rng.normal(size=(n, 2)), rng.uniform(size=n)
    y = (X[:, 0] + rng.normal(size=n) > 0).astype(int)
    hidden = rng.random((n, 2)) < 0.3
    model = ParityClassifier(limit=None, cv=2, n_jobs=1, random_state=0)
    masked = np.ma.array(np.where(hidden, 1e6 * y[:, None], X), mask=hidden)
    expected = model.fit(np.where(hidden, np.nan, X), y, sensitive_features=s).predict_proba(X)
    assert np.array_equal(model.fit(masked, y, sensitive_features=s).predict_proba(X), expected)


@pytest.mark.parametrize("aim", ["score", "rank", "decision"])
def test_in_python_too_a_score_does_not_depend_on_the_other_rows(aim):
    rng, n = np.random.default_rng(0), 200
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
    path = tmp_path / "t.csv"
    table = write(half_new := messy(80).assign(job=["KOCHEN", "none"] * 40), path)
    audit = [
        "audit",
        str(table),
        "-s",
        "age",
        "--model",
        str(served / "closed"),
        "--max-rows",
        "100",
        "--json",
    ]
    predict = ["predict", str(served / "closed"), str(table), "-o", str(tmp_path / "s.csv")]
    asked = audit if command == "audit" else predict
    result = run(app, asked)
    assert result.exit_code == 0, result.output
    assert (
        "40 rows have a value in 'job' that did not occur in training: 'KOCHEN' (40)"
        in result.output
    )
    half_new.loc[1, "job"] = "Köchin"
    write(half_new, path)
    (tmp_path / "s.csv").unlink(missing_ok=True)
    result = run(app, asked)
    assert result.exit_code == 2
    refusal = " ".join(result.output.split())
    assert (
        "41 of 80 rows have a value in 'job' that did not occur in training: 'KOCHEN' (40)"
        in refusal
    )
    assert "In training, 'job' contained 'Koch', 'a" in refusal
    assert not (tmp_path / "s.csv").exists()
    write(half_new.head(19).assign(job="KOCH"), path)
    if command == "predict":  # of few rows, each may be new
        assert run(app, asked).exit_code == 0


def test_few_rows_are_coded_like_many() -> None:
    n = 60
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "number": rng.normal(size=n),
            "count": rng.integers(9, size=n),
            "single": rng.normal(size=n).astype(np.float32),
            "nullable": pd.array(rng.integers(9, size=n), dtype="Int64"),
            "huge": np.full(n, 10**30, dtype=object),
            "flag": rng.random(n) < 0.5,
            "maybe": pd.array(rng.random(n) < 0.5, dtype="boolean"),
            "text": rng.choice(["north", "south", "East "], n),
            "level": pd.Categorical(rng.choice(["a", "b"], n)),
            "grade": pd.Categorical(rng.integers(3, size=n)),
            "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(99, size=n), "D"),
            "time": pd.to_timedelta(rng.integers(99, size=n), "h"),
            "empty": np.full(n, None, dtype=object),
        }
    )
    schema = Schema.learn(frame)
    for name in ("number", "nullable", "maybe", "text", "level", "day", "time"):
        frame.loc[rng.random(n) < 0.2, name] = None
    frame["text"] = frame["text"].replace({"south": "SOUTH", "north": "elsewhere"})
    for known in (schema, replace(schema, missing={"count": ("8",), "text": ("east",)})):
        codes = known.codes(frame)
        assert np.isnan(codes).any()
        assert np.isfinite(codes[:, :-1]).any(axis=0).all()
        for width in (1, 3):
            few = [known.codes(frame.iloc[i : i + width]) for i in range(0, n, width)]
            np.testing.assert_array_equal(np.concatenate(few), codes)
        np.testing.assert_array_equal(known.row_codes(frame.to_dict("records")), codes)
