"""Files and columns as people have them: separators, decimal commas, ragged rows, bands, and columns to be named."""

from __future__ import annotations

import bz2
import gzip
import lzma
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from estimator_samples import biased, quick
from frhsic.estimators import FRHSICClassifier, fit_path
from frhsic.tables import (
    BandedAttributeWarning,
    ColumnRoles,
    ReadOptions,
    SuspiciousColumnWarning,
    TrainingTable,
    column_names,
    read_frame,
    read_numbers,
    read_rows,
    read_sensitive,
    read_target,
    read_training_table,
    suspicions,
)
from frhsic.tables.dialect import dialect_of
from frhsic.tables.targets import MOST_CLASSES

EXPECTED = pd.DataFrame({"age": [30, 40, 50], "job": ["cook", "clerk", "cook, chief"], "rate": [1.5, 0.25, -3.0]})


def text(separator: str, decimal: str, quoted: bool = True) -> str:
    rows = [["age", "job", "rate"]]
    for age, job, rate in EXPECTED.itertuples(index=False):
        rows.append([str(age), f'"{job}"' if quoted else job, str(rate).replace(".", decimal)])
    return "\n".join(separator.join(row) for row in rows) + "\n"


@pytest.mark.parametrize(
    ("name", "separator", "decimal", "said"),
    [
        ("t.csv", ",", ".", []),
        ("t.csv", ";", ".", ["semicolons"]),
        ("t.csv", ";", ",", ["semicolons", "decimal commas"]),
        ("t.csv", "\t", ",", ["tabs", "decimal commas"]),
        ("t.csv", "|", ".", ["bars"]),
        ("t.tsv", "\t", ".", []),
        ("t.txt", ";", ",", ["semicolons", "decimal commas"]),
    ],
)
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_separator_and_decimal_sign_are_found_out_and_said(name, separator, decimal, said, mark, tmp_path):
    path = tmp_path / name
    path.write_text(mark + text(separator, decimal), encoding="utf-8")
    pd.testing.assert_frame_equal(read_frame(path), EXPECTED, check_dtype=False)
    notes = read_rows(path, ["age"]).notes
    assert len(notes) == len(said)
    assert all(word in note for word, note in zip(said, notes))


def test_what_is_said_goes_before_what_is_found_out(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a;b\n1,5;2,5\n")
    assert read_frame(path)["a"].tolist() == [1.5]
    assert read_frame(path, ReadOptions(decimal="."))["a"].tolist() == ["1,5"]
    with pytest.raises(ValueError, match="line 2 has 3 fields and the header 1"):
        read_frame(path, ReadOptions(separator=","))
    for options, message in (
        ({"separator": ";;"}, "pass one character"),
        ({"decimal": "·"}, "pass '.' or ','"),
        ({"separator": ",", "decimal": ","}, "cannot separate fields and be the decimal sign"),
    ):
        with pytest.raises(ValueError, match=message):
            ReadOptions(**options)


def test_numbers_with_decimal_commas_and_marks_are_numbers(tmp_path):
    (tmp_path / "t.csv").write_text("x;y\n1,5;a\n?;b\n2,25;c\n")
    assert read_frame(tmp_path / "t.csv")["x"].tolist()[::2] == [1.5, 2.25]
    assert read_frame(tmp_path / "t.csv")["x"].isna().tolist() == [False, True, False]


def test_a_comma_that_splits_evenly_is_not_given_up(tmp_path):
    (tmp_path / "t.csv").write_text("a;b,c;d\n1;2,3;4\n")
    assert column_names(tmp_path / "t.csv") == ["a;b", "c;d"]
    (tmp_path / "one.csv").write_text("age\n30\n40\n")
    assert column_names(tmp_path / "one.csv") == ["age"]
    assert dialect_of(tmp_path / "one.csv").notes == ()


def compressed(path: Path, content: bytes) -> Path:
    ending = path.suffix
    if ending == ".zip":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("t.csv", content)
    elif ending == ".zst":
        import pyarrow as pa

        with pa.output_stream(str(path), compression="zstd") as sink:
            sink.write(content)
    else:
        opener: Any = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}[ending]
        with opener(path, "wb") as file:
            file.write(content)
    return path


@pytest.mark.parametrize("ending", ["gz", "bz2", "xz", "zst", "zip"])
def test_compressed_files_are_read_and_damaged_ones_are_value_errors(ending, tmp_path):
    content = ("\ufeff" + text(";", ",")).encode()
    path = compressed(tmp_path / f"t.csv.{ending}", content)
    pd.testing.assert_frame_equal(read_frame(path), EXPECTED, check_dtype=False)
    big = compressed(tmp_path / f"u.csv.{ending}", b"a,b\n" + np.random.default_rng(0).bytes(3000).hex().encode())
    for damaged in (big.read_bytes()[: big.stat().st_size // 2], b"nonsense", b"\0" * 5000):
        big.write_bytes(damaged)
        with pytest.raises(ValueError, match="cannot be read as CSV") as error:
            read_frame(big)
        assert len(str(error.value)) < 500


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a,b\n1,2\n3,4,5\n", "line 3 has 3 fields and the header 2"),
        ("a,b\n1,2\n3\n", "line 3 has 1 fields and the header 2"),
        ('a,b\n"x\ny",2\n3,4,5\n', "line 4 has 3 fields"),
        ("a,b\n1,2,,\n", "line 2 has 4 fields"),
        ("a,b,a\n1,2,3\n", "more than one column named a"),
        ("a,b,a \n1,2,3\n", "more than one column named a"),
        ("a,b,\n1,2,3\n", "line 2 has 3 fields and the header 2"),
    ],
)
def test_rows_of_another_length_and_columns_of_one_name_are_refused(content, message, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(content)
    with pytest.raises(ValueError, match=message):
        read_frame(path)
    with pytest.raises(ValueError, match=message):
        read_numbers(path, {"a": "score"})


@pytest.mark.parametrize(
    "content", ["a,b\n1,2,\n3,4,\n", "a,b,\n1,2,\n3,4,\n", "a,b\n1,2,\n\n3,4\n", "a, b\n1, 2\n3, 4"]
)
def test_an_empty_field_at_the_end_and_blank_lines_are_tolerated(content, tmp_path):
    (tmp_path / "t.csv").write_text(content)
    assert read_frame(tmp_path / "t.csv").to_dict("list") == {"a": [1, 3], "b": [2, 4]}


def test_text_that_is_not_utf_8_says_so(tmp_path):
    (tmp_path / "t.csv").write_bytes("größe,x\n1,2\n".encode("latin-1"))
    with pytest.raises(ValueError, match=r"it is not UTF-8. Save it as UTF-8"):
        read_frame(tmp_path / "t.csv")


def test_iso_dates_of_a_text_file_are_dates(tmp_path):
    (tmp_path / "t.csv").write_text("when,code\n2020-01-31,2020-01\n?,2020-02\n2020-02-01T12:30,2020-03\n")
    frame = read_frame(tmp_path / "t.csv")
    assert frame["when"].isna().tolist() == [False, True, False]
    assert pd.api.types.is_datetime64_any_dtype(frame["when"])
    assert frame["code"].tolist() == ["2020-01", "2020-02", "2020-03"]


def test_counts_of_a_long_file_are_those_of_the_file(tmp_path, monkeypatch):
    from frhsic.tables import files

    monkeypatch.setattr(files, "KEPT_ROWS", 1000)
    monkeypatch.setattr(files, "CHUNK_ROWS", 500)
    n = 6000
    frame = pd.DataFrame({"x": np.arange(n) % 97, "y": np.where(np.arange(n) % 10 == 0, np.nan, 1.0)})
    frame.loc[::3, "x"] = np.nan
    frame.to_csv(tmp_path / "t.csv", index=False)
    rows = read_rows(tmp_path / "t.csv", ["x", "y"], required=["y"])
    assert (rows.given, rows.dropped, len(rows.frame), rows.sampled) == (n, 600, 1000, True)
    assert abs(rows.frame["x"].isna().mean() - 1 / 3) < 0.06
    assert (rows.frame.index % 10 != 0).all()


@pytest.mark.parametrize(
    ("levels", "points"),
    [
        (["20-29", "30-39", "40-49"], [24.5, 34.5, 44.5]),
        (["20–29", "30 – 39", "40 to 49"], [24.5, 34.5, 44.5]),
        (["<25", "25-34", "35+"], [20.5, 29.5, 39.5]),
        (["under 25", "25-34", "35 and over"], [20.5, 29.5, 39.5]),
        (["≤ 20", "21..30", "> 60"], [15.5, 25.5, 64.5]),
        (["[20, 30)", "[30, 40)", "[40, 60)"], [25, 35, 50]),
        (["<25", "25+"], [25, 25]),
        (["0.5-1.5", "1.5-2.5", "70"], [1, 2, 70]),
        (["-10--5", "-5-5", "5-10"], [-7.5, 0, 7.5]),
    ],
)
def test_bands_are_taken_at_their_mid_points(levels, points):
    column = pd.Series([*levels, None, levels[0]], name="age")
    read = read_sensitive(column, allow_missing=True)
    np.testing.assert_allclose(read.values.ravel(), [*points, np.nan, points[0]])
    assert (read.names, len(read.notes)) == (("age",), 1)
    assert "'age' holds bands" in read.notes[0]
    with pytest.raises(ValueError, match="1 values that are NaN"):
        read_sensitive(column)
    for held in (np.array(levels), levels, [*levels, None]):
        read = read_sensitive(held, allow_missing=True)
        np.testing.assert_allclose(read.values.ravel()[: len(points)], points)
        assert "'sensitive' holds bands" in read.notes[0]


def test_intervals_and_ordered_levels_are_numbers():
    age = pd.Series([22.0, 31.0, 58.0])
    cut = pd.cut(age, [20, 30, 40, 60])
    assert read_sensitive(cut.rename("age")).values.ravel().tolist() == [25, 35, 50]
    grades = pd.Series(pd.Categorical(["low", "high", "mid"], ["low", "mid", "high"], ordered=True), name="grade")
    read = read_sensitive(pd.DataFrame({"age": age, "grade": grades}))
    assert read.values.tolist() == [[22, 0], [31, 2], [58, 1]]
    assert "ordered levels, which are taken as ranks: low as 0, mid as 1" in read.notes[0]


@pytest.mark.parametrize("values", [["a", "b"], ["1,000", "1,234"], ["2020-01", "2020-02"], ["20-29", "old"]])
def test_other_text_is_no_sensitive_attribute(values):
    with pytest.raises(TypeError, match="is not numeric: it holds"):
        read_sensitive(pd.Series(values, name="age"))
    with pytest.raises(TypeError, match="holds text or categories"):
        read_sensitive(np.array(values))
    unordered = pd.Series(pd.Categorical(values), name="age")
    with pytest.raises(TypeError, match="is not numeric: it holds"):
        read_sensitive(unordered)


def test_numbers_come_out_as_they_went_in_whatever_holds_them():
    pa, pl = pytest.importorskip("pyarrow"), pytest.importorskip("polars")
    values = np.array([[1.0, 4.0], [np.nan, 5.0], [3.0, 6.0]])
    for held in (
        values,
        pd.DataFrame(values, columns=["a", "b"]),
        pl.DataFrame({"a": [1.0, None, 3.0], "b": [4, 5, 6]}),
        pa.table({"a": [1.0, None, 3.0], "b": [4, 5, 6]}),
    ):
        np.testing.assert_array_equal(read_sensitive(held, allow_missing=True).values, values)
    with pytest.raises(ValueError, match="infinite"):
        read_sensitive(np.array([1.0, np.inf]), allow_missing=True)
    with pytest.raises(ValueError, match="sensitive_features has more than one column named a"):
        read_sensitive(pd.DataFrame([["20-29", 1.0]], columns=["a", "a"]))


def test_an_estimator_takes_bands_and_says_so():
    X, y, s = biased(200)
    bands = pd.Series([f"{int(v) // 10 * 10}-{int(v) // 10 * 10 + 9}" for v in s], name="age")
    model = FRHSICClassifier(**quick(epochs=2))
    with pytest.warns(BandedAttributeWarning, match="'age' holds bands, which are taken at their mid-points"):
        banded = model.fit(X, y, sensitive_features=bands).predict_proba(X)
    points = pd.Series(s // 10 * 10 + 4.5, name="age")
    np.testing.assert_array_equal(banded, model.fit(X, y, sensitive_features=points).predict_proba(X))


def table(n: int = 400) -> tuple[pd.DataFrame, np.ndarray, pd.DataFrame]:
    rng = np.random.default_rng(0)
    s = pd.DataFrame({"age": rng.integers(20, 70, n).astype(float)})
    X = pd.DataFrame(
        {"x": rng.normal(size=n), "job": rng.choice(["cook", "clerk"], n), "hours": rng.integers(0, 60, n)}
    )
    return X, (X["x"] + rng.normal(size=n) > 0).to_numpy().astype(float), s


def named(X: pd.DataFrame, y: np.ndarray, s: pd.DataFrame) -> list[str]:
    return list(suspicions(X, read_target(pd.Series(y, name="y")), s))


def test_an_honest_table_raises_no_suspicion():
    X, y, s = table()
    assert named(X, y, s) == []
    assert named(X.head(40).assign(id=range(40)), y[:40], s.head(40)) == []
    noise = pd.DataFrame(np.random.default_rng(1).normal(size=(400, 50))).rename(columns=str)
    rare = (np.arange(400) < 4).astype(float)
    assert named(noise, rare, s) == []


@pytest.mark.parametrize("ids", ["rising", "shuffled", "gaps"])
def test_a_column_that_counts_rows_is_named(ids):
    X, y, s = table()
    rng = np.random.default_rng(2)
    values = {
        "rising": np.arange(400),
        "shuffled": 1000 + rng.permutation(400),
        "gaps": np.cumsum(rng.integers(1, 99, 400)),
    }[ids]
    (said,) = named(X.assign(row=values), y, s)
    assert "'row' holds whole numbers that all differ, and seems to identify rows. Pass drop=['row']" in said


@pytest.mark.parametrize("change", [lambda a: a, lambda a: 2020 - a, np.log, lambda a: np.where(a == 30, np.nan, a)])
def test_a_copy_of_a_sensitive_attribute_is_named(change):
    X, y, s = table()
    (said,) = named(X.assign(born=change(s["age"].to_numpy())), y, s)
    assert said.startswith("'born' repeats the sensitive attribute 'age'")
    noisy = s["age"] + np.random.default_rng(0).normal(0, 5, len(s))
    assert named(X.assign(born=noisy), y, s) == []


def test_a_column_that_gives_the_target_away_is_named():
    X, y, s = table()
    rng = np.random.default_rng(3)
    leaks = {
        "text": np.where(y == 1, "late", "on time"),
        "amount": np.where(y == 1, rng.lognormal(size=400), 0.0),
        "number": 3 - y + 0.01 * rng.normal(size=400),
        "code": y + 2 * rng.integers(0, 5, 400),
    }
    for name, values in leaks.items():
        (said,) = named(X.assign(**{name: values}), y, s)
        assert said.startswith(f"{name!r} alone predicts the target nearly without error")
    wage = X["x"] * 100 + 3
    (said,) = named(X.drop(columns="x").assign(monthly=wage / 12), wage.to_numpy(), s)
    assert said.startswith("'monthly' alone predicts")
    flipped = np.where(rng.random(400) < 0.05, 1 - y, y)
    assert named(X.assign(flipped=flipped), y, s) == []


def test_training_tables_name_suspicious_columns(tmp_path):
    X, y, s = table()
    frame = X.assign(row=range(400), born=2020 - s["age"], outcome=y, y=y, age=s["age"])
    frame.to_csv(tmp_path / "t.csv", index=False)
    notes = read_training_table(tmp_path / "t.csv", ColumnRoles("y", ("age",))).notes
    assert [note.split()[0] for note in notes] == ["'row'", "'born'", "'outcome'"]


def test_a_sensitive_column_that_is_still_in_X_is_named():
    X, y, s = biased(100)
    frame = pd.DataFrame(X, columns=["age", "b", "c"])
    model = FRHSICClassifier(**quick(epochs=1))
    with pytest.warns(SuspiciousColumnWarning, match="'age' is among the sensitive_features and still a column of X"):
        model.fit(frame, y, sensitive_features=pd.Series(s, name="age"))


@pytest.mark.parametrize("missing", ["age", "y"])
def test_rows_without_an_attribute_stay_to_train_and_are_not_measured(missing, tmp_path):
    X, y, s = table(300)
    frame = X.assign(y=y, age=s["age"])
    frame.loc[::5, missing] = np.nan
    frame.to_csv(tmp_path / "t.csv", index=False)
    data = read_training_table(tmp_path / "t.csv", ColumnRoles("y", ("age",)))
    lost = 0 if missing == "age" else 60
    assert (data.given, data.dropped, len(data.y)) == (300, lost, 300 - lost)
    train, check, test = data.split([0.2, 0.2], 0)
    assert not any(part[2].isna().to_numpy().any() for part in (check, test))
    if missing == "age":
        assert any("60 of 300 rows lack age" in note for note in data.notes)
        unknown = int(train[2]["age"].isna().sum())
        assert unknown > 20
        assert len(train[1]) + len(check[1]) + len(test[1]) == 300 - (60 - unknown)


def test_the_favourable_outcome_is_a_label_of_the_target(tmp_path):
    X, y, s = table(100)
    frame = X.assign(paid=np.where(y == 1, "yes", "no"), age=s["age"])
    frame.to_csv(tmp_path / "t.csv", index=False)

    def favoured(**roles: Any) -> object:
        return read_training_table(tmp_path / "t.csv", ColumnRoles("paid", ("age",), **roles)).favourable

    assert favoured() is None
    assert favoured(favourable="no") == "no"
    assert favoured(favourable="no", positive="yes") == 0
    assert favoured(favourable="no", positive="no") == 1
    with pytest.raises(ValueError, match="favourable='maybe' is not a value of 'paid': 'no', 'yes'"):
        favoured(favourable="maybe")
    with pytest.raises(ValueError, match="is for a target of two classes"):
        read_training_table(tmp_path / "t.csv", ColumnRoles("x", ("age",), favourable="1"))


def test_odd_arguments_are_named():
    X, y, s = biased(60)
    model = FRHSICClassifier(**quick(epochs=1))
    frame = pd.DataFrame(X, columns=["a", "a", "b"])
    with pytest.raises(ValueError, match="X has more than one column named a; rename them"):
        model.fit(frame, y, sensitive_features=s)
    objects = np.array([["cook", 1.0, 2.0]] * 60, dtype=object)
    with pytest.raises(ValueError, match=r"X is an array of objects .* Pass a DataFrame"):
        model.fit(objects, y, sensitive_features=s)
    with pytest.raises(TypeError, match=r"weights is None; pass a sequence of numbers"):
        fit_path(model, X, y, weights=None, sensitive_features=s)
    arrow = pytest.importorskip("pyarrow").table({"a": X[:, 0], "b": X[:, 1], "job": ["cook", "clerk"] * 30})
    fitted = model.fit(arrow, y, sensitive_features=s)
    np.testing.assert_array_equal(fitted.predict_proba(arrow), fitted.predict_proba(arrow.to_pandas()))


def test_a_file_of_blank_lines_and_an_archive_of_two_files_are_refused(tmp_path):
    (tmp_path / "blank.csv").write_text("\n  \n\n")
    with pytest.raises(ValueError, match=r"blank.csv cannot be read as CSV: it is empty and has not even a header"):
        read_frame(tmp_path / "blank.csv")
    with zipfile.ZipFile(tmp_path / "two.csv.zip", "w") as archive:
        for name in ("a.csv", "b.csv"):
            archive.writestr(name, "x\n1\n")
    with pytest.raises(ValueError, match="it holds 2 files; pass an archive of one"):
        read_frame(tmp_path / "two.csv.zip")


def test_rows_that_all_lack_one_of_two_columns_are_refused(tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n1,\n,2\n")
    with pytest.raises(ValueError, match=r"every row of t\.csv lacks a value in one of 'a', 'b'; none is left"):
        read_rows(tmp_path / "t.csv", ["a", "b"], numeric=["a", "b"], required=["a", "b"])


def test_an_error_of_the_system_is_told_as_it_is(tmp_path, monkeypatch):
    (tmp_path / "t.csv").write_text("a\n1\n")

    def failing(*_: Any) -> Any:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr("frhsic.tables.files.dialect_of", failing)
    with pytest.raises(OSError, match="Input/output error") as caught:
        read_frame(tmp_path / "t.csv")
    assert caught.value.errno == 5


def test_text_that_looks_like_dates_and_is_none_stays_text(tmp_path):
    (tmp_path / "t.csv").write_text("day\n2024-02-30\n2024-03-01\n")
    assert read_frame(tmp_path / "t.csv")["day"].tolist() == ["2024-02-30", "2024-03-01"]


def test_a_band_without_an_end_and_an_expression_are_refused():
    everything = pd.Series(pd.arrays.IntervalArray([pd.Interval(-np.inf, np.inf), pd.Interval(0, 1)]), name="age")
    with pytest.raises(ValueError, match="has no end; write a bound"):
        read_sensitive(everything)
    with pytest.raises(TypeError, match="sensitive_features"):
        read_sensitive(pl.col("age"))


def test_numbers_as_text_are_no_bands():
    read = read_sensitive(pd.Series(["30", "40"], name="age"))
    assert (read.values.tolist(), read.notes) == ([[30.0], [40.0]], ())


def test_a_target_of_too_many_classes_is_taken_for_numbers():
    with pytest.raises(ValueError, match=f"target 'y' has {MOST_CLASSES + 1} different values; is it a regression"):
        read_target(pd.Series([f"c{i}" for i in range(MOST_CLASSES + 1)], name="y"))


def test_training_rows_of_one_class_are_refused():
    n = 400
    y = np.zeros(n, dtype=int)
    rows = TrainingTable(pd.DataFrame({"x": np.arange(n)}), y, pd.DataFrame({"s": np.arange(float(n))}), True, "t", "y")
    with pytest.raises(ValueError, match=r"all 320 rows drawn for training have .*0.* as their target; t has too few"):
        rows.split([0.2], seed=0)


def test_a_copy_on_few_rows_raises_no_suspicion():
    X, y, s = table()
    few = np.where(np.arange(400) < 40, s["age"], np.nan)
    many = np.where(np.arange(400) < 60, s["age"], np.nan)
    assert named(X.assign(copy=few), y, s) == []
    assert "'copy' repeats the sensitive attribute 'age'" in named(X.assign(copy=many), y, s)[0]
