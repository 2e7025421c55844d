"""The intake of tables: files, kinds of columns, marks of missing values, levels, targets, and what is refused."""

from __future__ import annotations

import datetime
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from frhsic.formatting import did_you_mean
from frhsic.tables import (
    Advice,
    Category,
    ColumnRoles,
    Number,
    ReadOptions,
    TableEncoding,
    column_names,
    files,
    find_kinds,
    kind_of,
    numbers,
    read_frame,
    read_target,
    read_training_table,
    to_pandas,
)
from frhsic.tables.columns import MISSING_MARKS, MOST_LEVELS, typed
from frhsic.tables.files import Reservoir, pieces, read_rows
from frhsic.tables.names import check_distinct, expand
from frhsic.tables.sensitive import attribute


def people(n: int = 60) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "age": rng.integers(20, 70, n),
            "hours": rng.normal(40, 5, n),
            "job": rng.choice(["cook", "clerk", "nurse"], n),
            "member": rng.random(n) < 0.5,
        }
    )


def write(frame: pd.DataFrame, path: Path) -> Path:
    import pyarrow as pa

    ending = path.name.split(".", 1)[1]
    if ending.startswith(("csv", "tsv", "txt")):
        frame.to_csv(path, index=False, sep="," if ending.startswith("csv") else "\t")
    elif ending == "parquet":
        frame.to_parquet(path)
    else:
        table = pa.Table.from_pandas(frame)
        new = pa.ipc.new_stream if ending == "ipc" else pa.ipc.new_file
        with pa.OSFile(str(path), "wb") as sink, new(sink, table.schema) as writer:
            writer.write_table(table, max_chunksize=25)
    return path


FILES = ["t.csv", "t.csv.gz", "t.csv.bz2", "t.tsv", "t.txt", "t.tsv.gz", "t.parquet", "t.feather", "t.arrow", "t.ipc"]


@pytest.mark.parametrize("name", FILES)
def test_every_kind_of_file_gives_the_same_rows_in_pieces_of_bounded_size(name, tmp_path, monkeypatch):
    monkeypatch.setattr(files, "CHUNK_ROWS", 7)
    path = write(people(), tmp_path / name)
    assert column_names(path) == list(people())
    parts = list(pieces(path, ["age", "job"]))
    assert max(map(len, parts)) <= 7
    assert list(parts[0]) == ["age", "job"]
    pd.testing.assert_frame_equal(read_frame(path), people())


def test_a_sample_is_uniform_and_keeps_rows_whole_and_in_order(monkeypatch):
    monkeypatch.setattr(files, "KEPT_ROWS", 1000)
    monkeypatch.setattr(files, "CHUNK_ROWS", 100)
    counts = np.zeros(4000)
    for seed in range(20):
        reservoir = Reservoir(2, seed)
        for start in range(0, 4000, 250):
            rows = np.arange(start, start + 250)
            reservoir.add(pd.DataFrame({"a": rows, "b": rows % 7}))
        kept = reservoir.rows()
        assert (len(kept), reservoir.seen) == (1000, 4000)
        assert kept["a"].is_monotonic_increasing
        assert (kept["b"] == kept["a"] % 7).all()
        counts[kept["a"]] += 1
    by_place = counts.reshape(20, 200).sum(axis=1)  # 1000 each, standard deviation about 27
    assert np.abs(by_place - 1000).max() < 4 * np.sqrt(20 * 200 * 0.25 * 0.75)


def test_memory_bounds_the_rows_of_wide_tables(monkeypatch):
    monkeypatch.setattr(files, "KEPT_BYTES", 8 * 10 * 2000)
    assert Reservoir(10, 0).keep == 2000
    assert Reservoir(1000, 0).keep == 1000


def test_a_short_file_is_kept_whole_and_watched(tmp_path):
    seen: list[int] = []
    rows = read_rows(write(people(), tmp_path / "t.csv"), ["age"], watch=seen.append)
    assert (rows.given, rows.dropped, rows.sampled, seen) == (60, 0, False, [60])
    assert rows.frame["age"].tolist() == people()["age"].tolist()


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1, 2], "number"),
        ([1.5, None], "number"),
        (np.array([1, 2.5], dtype=object), "number"),
        (pd.array([1, None], dtype="Int64"), "number"),
        ([True, False], "boolean"),
        (pd.array([True, None], dtype="boolean"), "boolean"),
        (["a", None], "category"),
        (pd.Categorical([1, 2]), "category"),
        (np.array([True, None], dtype=object), "category"),
        (pd.to_datetime(["2020-01-01", "2021-01-01"]), "date"),
        (pd.to_timedelta([1, 2], unit="D"), "date"),
        (np.array([datetime.date(2020, 1, 1)] * 2, dtype=object), "date"),
    ],
)
def test_kinds_of_columns(values: Any, kind: str):
    assert kind_of(pd.Series(values)) == kind


def test_a_message_names_every_column_with_the_same_problem_and_what_to_do():
    n = MOST_LEVELS + 1
    frame = pd.DataFrame({"x": 1.0, "who": [f"p{i}" for i in range(n)], "id": [f"q{i}" for i in range(n)]})
    with pytest.raises(ValueError, match=rf"'who', 'id' of t.csv .* {n} different values.*Pass drop=\['who', 'id'\]"):
        find_kinds(frame, "t.csv")
    with pytest.raises(ValueError, match="Leave out: who id\\."):
        find_kinds(frame, "t.csv", advice=Advice(drop=lambda names: "Leave out: " + " ".join(names)))
    kinds = find_kinds(frame.iloc[:MOST_LEVELS], "t.csv")
    assert kinds == {"x": "number", "who": "category", "id": "category"}
    assert find_kinds(frame, "t.csv", categorical=["who", "id"])["who"] == "category"
    dates = pd.DataFrame({"a": pd.date_range("2020", periods=3), "b": pd.to_timedelta([1, 2, 3], unit="D")})
    assert find_kinds(dates, "t.csv") == {"a": "date", "b": "date"}
    with pytest.raises(ValueError, match="infinite values came in x"):
        find_kinds(pd.DataFrame({"x": [1.0, np.inf]}), "t.csv")


@pytest.mark.parametrize("mark", MISSING_MARKS)
def test_every_mark_is_a_missing_number_and_no_missing_text(mark: str):
    frame = typed(pd.DataFrame({"age": ["31", mark, "40"], "job": ["cook", mark, "clerk"]}))
    assert frame["age"].tolist()[::2] == [31, 40]
    assert frame["age"].isna().tolist() == [False, True, False]
    assert frame["job"].tolist() == ["cook", mark, "clerk"]


def test_marks_in_text_are_missing_on_request(tmp_path):
    (tmp_path / "t.csv").write_text("age, job\n31, ?\n?, cook\n40, ? \n")
    plain, marked = (read_frame(tmp_path / "t.csv", ReadOptions(text_marks=marks)) for marks in ((), ("?",)))
    assert plain["age"].isna().tolist() == marked["age"].isna().tolist() == [False, True, False]
    assert plain["job"].isna().sum() == 0
    assert marked["job"].isna().tolist() == [True, False, True]


def test_pieces_of_different_types_become_text(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "CHUNK_ROWS", 2)
    (tmp_path / "t.csv").write_text("code\n1\n2\nx\ny\n")
    assert read_frame(tmp_path / "t.csv")["code"].tolist() == ["1", "2", "x", "y"]


def test_a_separator_can_be_given(tmp_path):
    (tmp_path / "t.csv").write_text("a;b\n1;x\n")
    assert read_frame(tmp_path / "t.csv", ReadOptions(separator=";")).to_dict("list") == {"a": [1], "b": ["x"]}


@pytest.mark.parametrize(
    ("values", "error", "message"),
    [
        (["1", "old", "old", "young"], TypeError, "age is not numeric: it holds 'old', 'young', first in row 102"),
        ([1.0, np.inf], ValueError, "infinite values came in age"),
        ([1 + 1j], ValueError, "Complex data not supported"),
        (pd.to_datetime(["2020-01-01"]), TypeError, "age holds dates"),
    ],
)
def test_a_column_that_is_no_number_says_why(values: Any, error: type[Exception], message: str):
    with pytest.raises(error, match=message):
        numbers(pd.Series(values, index=range(100, 100 + len(values))), "age")


@pytest.mark.parametrize("convert", ["pandas", "polars", "lazy", "arrow", "mapping"])
def test_every_kind_of_frame_becomes_the_same(convert: str):
    frame: Any = people()
    if convert in ("polars", "lazy"):
        frame = pytest.importorskip("polars").from_pandas(frame)
    elif convert == "arrow":
        frame = pytest.importorskip("pyarrow").Table.from_pandas(frame)
    elif convert == "mapping":
        frame = frame.to_dict("list")
    pd.testing.assert_frame_equal(to_pandas(frame.lazy() if convert == "lazy" else frame), people(), check_dtype=False)


def test_encoders_of_numbers_booleans_and_levels():
    frame = pd.DataFrame({"age": [20, 60], "member": [True, False], "job": ["cook", "clerk"]})
    encoding = TableEncoding.fit(frame, scaling="range")
    assert encoding.columns == (
        Number("age", 20, 60, 20),
        Number("member", 0, 1, 0),
        Category("job", ("clerk", "cook")),
    )
    for scaling in ("range", "quantile"):
        np.testing.assert_array_equal(TableEncoding.fit(frame, scaling=scaling)(frame), [[0, 1, 0, 1], [1, 0, 1, 0]])


def test_an_unseen_level_is_an_error_or_no_level():
    encoding = TableEncoding.fit(pd.DataFrame({"job": ["cook", "clerk"]}))
    new = pd.DataFrame({"job": ["cook", "nurse"]})
    with pytest.raises(ValueError, match=r"'nurse' \(row 1\), which no training row has"):
        encoding(new, "error")
    np.testing.assert_array_equal(encoding(new, "ignore"), [[0, 1], [0, 0]])


def test_a_column_that_was_numeric_may_not_become_text():
    encoding = TableEncoding.fit(pd.DataFrame({"x": [1.0, 2.0]}))
    with pytest.raises(ValueError, match="in the training rows it was numeric"):
        encoding(pd.DataFrame({"x": ["a", "b"]}))
    with pytest.raises(ValueError, match="numeric in one part and categorical in the other"):
        encoding | TableEncoding.fit(pd.DataFrame({"x": ["a", "b"]}))


def test_targets_of_two_classes_several_classes_and_numbers():
    two = read_target(pd.Series(["no", "yes", "no"], name="paid"))
    assert (two.task, two.classes, two.labels.tolist()) == ("binary", ("no", "yes"), ["no", "yes", "no"])
    codes = read_target(pd.Series([3.0, 1.0], name="y"))
    assert (codes.codes.tolist(), codes.labels.tolist(), codes.labels.dtype) == ([1, 0], [3, 1], np.int64)
    halves = read_target(pd.Series([0.5, 1.5], name="y"))
    assert halves.labels.tolist() == [0.5, 1.5]
    assert read_target(pd.Series([True, False], name="y")).labels.tolist() == [1, 0]
    assert read_target(pd.Series([1.0, 2.0, 3.0], name="y")).task == "regression"
    assert read_target(pd.Series(["a", "b", "c"], name="y")).task == "multiclass"
    with pytest.raises(ValueError, match="infinite values came in target 'y'"):
        read_target(pd.Series([0.0, np.inf], name="y"))


def test_one_value_against_the_rest():
    jobs = pd.Series(["cook", "clerk", "nurse"], name="job")
    cooks = read_target(jobs, task="binary", positive="cook")
    assert (cooks.codes.tolist(), cooks.classes) == ([1, 0, 0], (None, "cook"))
    with pytest.raises(ValueError, match=r"'coock' is not a value of 'job': 'clerk', 'cook', .*Did you mean 'cook'"):
        read_target(jobs, task="binary", positive="coock")
    with pytest.raises(ValueError, match="the task is multiclass"):
        read_target(jobs, positive="cook")
    with pytest.raises(ValueError, match="holds numbers"):
        read_target(pd.Series([1, 2], name="y"), positive="high")


def test_two_columns_of_one_name_are_refused_in_every_kind_of_file(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    (tmp_path / "t.csv").write_text("age,age,score\n1,2,3\n")
    pq.write_table(pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["age", "age"]), tmp_path / "t.parquet")
    for name in ("t.csv", "t.parquet"):
        with pytest.raises(ValueError, match=f"{name} has more than one column named age"):
            column_names(tmp_path / name)
    with pytest.raises(ValueError, match="named a, b; rename"):
        check_distinct(["b", "a", "a", "b", "c"], "t")


def test_names_are_suggested_and_patterns_expanded():
    assert did_you_mean(" AGE", ["job", "age"]) == " Did you mean 'age'?"
    assert did_you_mean("zebra", ["age", "job"]) == " There are: age, job."
    assert did_you_mean("q", [f"column {i}" for i in range(40)]).endswith("column 29, ....")
    assert expand("z_*", ["z_1", "a", "z_2"], "t") == ["z_1", "z_2"]
    assert expand("z_*", ["z_*", "z_1"], "t") == ["z_*"]


@pytest.mark.parametrize(
    ("roles", "message"),
    [
        (ColumnRoles("member", ("age",), features=("x_*",)), "no column of t.csv matches"),
        (ColumnRoles("member", ("age", "age")), "named twice"),
        (ColumnRoles("member", ("age",), drop=("age",)), "to be dropped"),
        (ColumnRoles("member", ("member",)), "both the target"),
        (ColumnRoles("member", ()), "sensitive is empty"),
        (ColumnRoles("member", ("age",), drop=("hours", "job")), "no column is left"),
        (ColumnRoles("job", ("age",)), "Pass positive=VALUE to predict one of them"),
    ],
)
def test_roles_that_do_not_fit_the_table_are_refused(roles: ColumnRoles, message: str, tmp_path):
    with pytest.raises(ValueError, match=message):
        read_training_table(write(people(), tmp_path / "t.csv"), roles)


def test_a_training_table_drops_rows_without_a_target_and_keeps_missing_features(tmp_path):
    frame = people().astype({"hours": object, "member": object})
    frame.loc[3, "hours"] = "?"
    frame.loc[5, "job"] = None
    frame.loc[[7, 8], "member"] = None
    table = read_training_table(write(frame, tmp_path / "t.csv"), ColumnRoles("member", ("age",)))
    assert (len(table.y), table.dropped, table.binary, table.target_name) == (58, 2, True, "member")
    assert (table.given, table.X["hours"].isna().sum(), table.X["job"].isna().sum()) == (60, 1, 1)
    assert table.X["hours"].dtype == np.float64
    assert set(table.X["job"].dropna()) == {"cook", "clerk", "nurse"}


@pytest.mark.parametrize("columns", [["age", "score"], ["score"], ["age", "job", "score"]])
def test_a_comma_at_the_end_of_each_row_does_not_shift_the_columns(tmp_path, columns):
    path = tmp_path / "people.csv"
    path.write_text("age,job,score\n30,cook,0.2,\n40,clerk,0.4,\n")
    (frame,) = pieces(path, columns, ["age", "score"])
    expected = {"age": [30, 40], "job": ["cook", "clerk"], "score": [0.2, 0.4]}
    assert {name: frame[name].tolist() for name in columns} == {name: expected[name] for name in columns}


@pytest.mark.parametrize("decimal", [".", ","])
def test_numbers_of_a_text_file_are_read_to_the_last_digit(tmp_path, decimal):
    numbers = np.random.default_rng(0).standard_normal(2_000) * 10.0 ** np.arange(-10, 10).repeat(100)
    path = tmp_path / "t.csv"
    pd.DataFrame({"a": numbers, "b": 1.5}).to_csv(path, index=False, sep=";", decimal=decimal)
    np.testing.assert_array_equal(read_frame(path)["a"], numbers)


def test_booleans_stay_booleans_as_labels():
    labels = read_target(pd.Series([True, False, True], name="paid")).labels
    assert labels.dtype == bool
    assert labels.tolist() == [True, False, True]


def test_an_attribute_is_refused_as_a_feature_by_name_and_left_out_of_a_pattern():
    roles = ColumnRoles("paid", ("age",), features=("skill", "age"))
    with pytest.raises(ValueError, match="'age' is named as a feature but is the target or a sensitive attribute"):
        roles.find_features(["age", "skill", "paid"], "people.csv")
    assert replace(roles, features=("*",)).find_features(["age", "skill", "paid"], "people.csv") == ["skill"]


def test_the_note_on_bands_shows_each_of_a_few_and_says_when_it_leaves_some_out():
    few = attribute(pd.Series(["60+", "18-29", "40-59", "30-39"]), "age")[1]
    assert few is not None
    assert few.endswith(": 18-29 as 23.5, 30-39 as 34.5, 40-59 as 49.5, 60+ as 69.5.")
    many = attribute(pd.Series([f"{start}-{start + 4}" for start in range(0, 100, 5)]), "age")[1]
    assert many is not None
    assert "20-24 as 22, ..., 75-79 as 77" in many


@pytest.mark.parametrize("dtype", [bool, "boolean"])
def test_a_value_of_a_boolean_target_may_be_written_as_text(dtype):
    column = pd.Series([True, False, False], name="paid", dtype=dtype)
    for written, codes in (("True", [1, 0, 0]), ("false", [0, 1, 1]), (False, [0, 1, 1]), ("1", [1, 0, 0])):
        assert read_target(column, positive=written).codes.tolist() == codes
    with pytest.raises(ValueError, match="'yes' is not a value of 'paid', which holds True and False"):
        read_target(column, positive="yes")
