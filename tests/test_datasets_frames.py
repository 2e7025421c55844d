"""Tables of the user's own."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from frhsic.datasets import from_file, from_frame


def table(**changes: object) -> pd.DataFrame:
    columns = {
        "age": [31, 52, 44, 27, 60, 38],
        "hours": [40.0, 20.0, 35.0, 38.0, 10.0, 41.0],
        "job": ["cook", "clerk", "cook", "nurse", "clerk", "cook"],
        "zone": [3, 1, 3, 2, 1, 2],
        "member": [True, False, True, True, False, False],
        "paid": ["no", "yes", "yes", "no", "yes", "no"],
    }
    return pd.DataFrame(columns | changes)


def test_text_becomes_indicators_and_numbers_stay():
    data = from_frame(table(), "paid", "age")
    assert list(data.X) == ["hours", "job=clerk", "job=cook", "job=nurse", "zone", "member"]
    assert data.X["job=cook"].tolist() == [1, 0, 1, 0, 0, 1]
    assert data.X["member"].tolist() == [1, 0, 1, 1, 0, 0]
    assert (data.task, data.classes) == ("binary", ("no", "yes"))
    assert data.y.tolist() == [0, 1, 1, 0, 1, 0]
    assert data.s.tolist() == table()["age"].tolist()
    assert data.kinds["job=cook"] == "indicator"


def test_codes_become_indicators_on_request():
    data = from_frame(table(), "paid", "age", categorical=["zone"])
    assert [column for column in data.X if column.startswith("zone")] == ["zone=1", "zone=2", "zone=3"]


def test_the_positive_class_can_be_named():
    data = from_frame(table(), "paid", "age", positive="no")
    assert data.y.tolist() == [1, 0, 0, 1, 0, 1]
    assert data.classes == ("yes", "no")


def test_several_sensitive_columns_make_a_frame():
    data = from_frame(table(), "paid", ["age", "hours"])
    assert data.attributes == ("age", "hours")
    assert data.s.shape == (6, 2)


def test_the_task_is_read_off_the_target_unless_it_is_said():
    assert from_frame(table(), "hours", "age").task == "regression"
    jobs = from_frame(table(), "job", "age")
    assert (jobs.task, jobs.classes, jobs.y.tolist()) == ("multiclass", ("clerk", "cook", "nurse"), [1, 0, 1, 2, 0, 1])
    zones = from_frame(table(), "zone", "age", task="multiclass")
    assert (zones.classes, zones.y.tolist()) == (("1", "2", "3"), [2, 0, 2, 1, 0, 1])
    assert from_frame(table(), "member", "age").y.tolist() == [1, 0, 1, 1, 0, 0]


def as_polars(frame):
    return pytest.importorskip("polars").from_pandas(frame)


def as_lazy(frame):
    return pytest.importorskip("polars").from_pandas(frame).lazy()


def as_arrow(frame):
    return pytest.importorskip("pyarrow").Table.from_pandas(frame)


def as_mapping(frame):
    return frame.to_dict("list")


def as_categories(frame):
    return frame.astype({"job": "category", "paid": "category"})


@pytest.mark.parametrize("convert", [as_polars, as_lazy, as_arrow, as_mapping, as_categories])
def test_every_kind_of_frame_gives_the_same(convert):
    expected, came = from_frame(table(), "paid", "age"), from_frame(convert(table()), "paid", "age")
    pd.testing.assert_frame_equal(came.X, expected.X)
    assert came.y.tolist() == expected.y.tolist()
    assert came.s.tolist() == expected.s.tolist()


def write_csv(path):
    table().to_csv(path, index=False)


def write_tsv(path):
    table().to_csv(path, index=False, sep="\t")


def write_parquet(path):
    table().to_parquet(path)


def write_feather(path):
    pytest.importorskip("pyarrow.feather").write_feather(table(), str(path))


def write_stream(path):
    pa = pytest.importorskip("pyarrow")
    came = pa.Table.from_pandas(table())
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, came.schema) as stream:
        stream.write_table(came)


@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("t.csv", write_csv),
        ("t.csv.gz", write_csv),
        ("t.tsv", write_tsv),
        ("t.parquet", write_parquet),
        ("t.feather", write_feather),
        ("t.arrow", write_stream),
    ],
)
def test_every_kind_of_file_gives_the_same(tmp_path, name, write):
    write(tmp_path / name)
    expected, came = from_frame(table(), "paid", "age"), from_file(tmp_path / name, "paid", "age")
    pd.testing.assert_frame_equal(came.X, expected.X)
    assert came.y.tolist() == expected.y.tolist()
    assert came.name == "t"


def test_the_frame_that_came_is_not_changed():
    frame = table(hours=[40.0, np.nan, 35.0, 38.0, 10.0, 41.0])
    before = frame.copy()
    from_frame(frame, "paid", "age", missing="impute", categorical=["zone"])
    pd.testing.assert_frame_equal(frame, before)


HOLES = {"hours": [40.0, np.nan, np.nan, 38.0, 10.0, 41.0], "job": ["cook", None, "cook", "nurse", None, "cook"]}


def test_missing_values_are_counted_and_stop_unless_a_policy_is_named():
    with pytest.raises(ValueError, match=r"3 of 6 rows have missing values \(hours 2, job 2\)"):
        from_frame(table(**HOLES), "paid", "age")


def test_missing_rows_are_dropped_on_request():
    data = from_frame(table(**HOLES), "member", "age", missing="drop")
    assert data.s.tolist() == [31, 27, 38]
    assert data.dropped[0] == "3 of 6 rows with missing values (hours 2, job 2)."


def test_missing_features_are_imputed_on_request_by_the_split():
    data = from_frame(table(**HOLES), "paid", "age", missing="impute")
    assert data.n == 6
    assert data.X["job=missing"].tolist() == [0, 1, 0, 0, 1, 0]
    assert data.X["hours"].isna().sum() == 2
    assert data.split(0).train.x.isfinite().all()


@pytest.mark.parametrize("column", ["age", "paid"])
def test_a_missing_target_or_sensitive_value_is_never_made_up(column):
    values = table()[column].astype(object).tolist()
    values[2] = None
    frame = table(**{column: pd.Series(values).astype("float64" if column == "age" else "string")})
    with pytest.raises(ValueError, match=f"missing values in {column} 1"):
        from_frame(frame, "paid", "age", missing="impute")
    assert from_frame(frame, "paid", "age", missing="drop").n == 5


def test_a_question_mark_in_a_text_file_is_missing_whatever_blanks_are_around_it(tmp_path):
    (tmp_path / "t.csv").write_text("age, job, paid\n31, ?, 1\n40, cook, 0\n52, clerk, 1\n")
    with pytest.raises(ValueError, match=r"1 of 3 rows have missing values \(job 1\)"):
        from_file(tmp_path / "t.csv", "paid", "age")


@pytest.mark.parametrize(
    ("frame", "arguments", "error", "message"),
    [
        (table(), {"target": "payed"}, ValueError, "no column 'payed'. Did you mean 'paid'"),
        (table(), {"sensitive": "Age"}, ValueError, "Did you mean 'age'"),
        (table(), {"sensitive": []}, ValueError, "sensitive is empty"),
        (table(), {"sensitive": ["age", "age"]}, ValueError, "named twice"),
        (table(), {"sensitive": "paid"}, ValueError, "both the target and a sensitive"),
        (table(), {"sensitive": "job"}, TypeError, "not numeric"),
        (table(age=5), {}, ValueError, "'age' is 5 in every row"),
        (table(paid="yes"), {}, ValueError, "nothing to predict"),
        (table(), {"missing": "ignore"}, ValueError, "missing='ignore'"),
        (table(), {"task": "ranking"}, ValueError, "task='ranking'"),
        (table(), {"task": "regression"}, TypeError, "a regression needs numbers"),
        (table(), {"target": "job", "task": "binary"}, ValueError, "has 3 different values"),
        (table(), {"positive": "maybe"}, ValueError, "not a value of 'paid': 'no', 'yes'"),
        (table(), {"target": "hours", "positive": 1}, ValueError, "the task is regression"),
        (table(), {"drop": ["age"]}, ValueError, "to be dropped but is the target, an attribute"),
        (table(), {"drop": "job"}, TypeError, r"pass a list of column names, \['job'\]"),
        (table(), {"drop": ["hours", "job", "zone", "member"]}, ValueError, "no column is left"),
        (table(hours=[1.0, np.inf, 1, 1, 1, 1]), {}, ValueError, "infinite values came in hours"),
        (table(age=pd.date_range("2020-01-01", periods=6)), {}, TypeError, "holds dates"),
        (table().iloc[:0], {}, ValueError, "no rows"),
        (3, {}, TypeError, "frame is int"),
        (pd.concat([table(), table()[["job"]]], axis=1), {}, ValueError, "more than one column named job"),
    ],
    ids=lambda value: "" if isinstance(value, (pd.DataFrame, type, str)) else str(value),
)
def test_bad_input_says_what_came_and_what_to_do(frame, arguments, error, message):
    with pytest.raises(error, match=message):
        from_frame(frame, **({"target": "paid", "sensitive": "age"} | arguments))


def test_a_column_of_names_is_not_made_into_hundreds_of_columns_unasked():
    n = 300
    frame = pd.DataFrame({"age": range(n), "who": [f"p{i}" for i in range(n)], "y": [0, 1] * (n // 2)})
    with pytest.raises(ValueError, match=r"300 different values.*Pass drop=\['who'\]"):
        from_frame(frame.assign(x=1.0), "y", "age")
    assert from_frame(frame.assign(x=1.0), "y", "age", drop=["who"]).d == 1
    assert from_frame(frame, "y", "age", categorical=["who"]).d == n


def test_a_file_that_is_not_there_or_not_readable_says_so(tmp_path):
    (tmp_path / "people.csv").write_text("")
    with pytest.raises(FileNotFoundError, match=r"no file .*peple.csv. Did you mean 'people.csv'"):
        from_file(tmp_path / "peple.csv", "y", "s")
    with pytest.raises(ValueError, match="cannot be read as CSV"):
        from_file(tmp_path / "people.csv", "y", "s")
    (tmp_path / "people.xlsx").write_text("")
    with pytest.raises(ValueError, match=r"ends in .xlsx; there is a reader for"):
        from_file(tmp_path / "people.xlsx", "y", "s")
    (tmp_path / "people.parquet").write_text("<html>")
    with pytest.raises(ValueError, match="cannot be read as Parquet"):
        from_file(tmp_path / "people.parquet", "y", "s")
    (tmp_path / "people.arrow").write_text("<html>")
    with pytest.raises(ValueError, match="cannot be read as Arrow"):
        from_file(tmp_path / "people.arrow", "y", "s")


def test_a_table_without_rows_is_refused():
    frame = pd.DataFrame({"x": [1.0, np.nan], "y": [0, 1], "s": [np.nan, 2.0]})
    with pytest.raises(ValueError, match=r"every row has a missing value \(x 1, s 1\); none is left"):
        from_frame(frame, "y", "s", missing="drop")
    data = from_frame(pd.DataFrame({"x": [1.0, 2.0], "y": [0, 1], "s": [1.0, 2.0]}), "y", "s")
    with pytest.raises(ValueError, match="table has no rows"):
        replace(data, X=data.X[:0], y=data.y[:0], s=data.s[:0])
