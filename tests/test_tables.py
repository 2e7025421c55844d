"""Files and columns as people have them: separators, encodings, ragged rows, bands, targets,
columns to be named.
"""

from __future__ import annotations

import datetime
import gzip
import os
import resource
import sys
import warnings
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import sklearn.datasets
from sklearn.base import clone
from sklearn.linear_model import LinearRegression, LogisticRegression

import frhsic
from estimator_samples import biased, quick
from frhsic._progress import listen
from frhsic.estimators import ParityClassifier, ParityRegressor
from frhsic.parity import gdp
from frhsic.tables import files
from frhsic.tables.attributes import BandedAttributeWarning, read_sensitive
from frhsic.tables.checking import ColumnRoles
from frhsic.tables.columns import numbers, to_pandas
from frhsic.tables.features import feature_problems, joint_problems
from frhsic.tables.files import TableFile, read_rows
from frhsic.tables.identifiers import identifiers
from frhsic.tables.problems import Problem, SuspiciousColumnWarning
from frhsic.tables.schema import Schema
from frhsic.tables.targets import read_target
from frhsic.tables.text import shield
from frhsic.tables.training import TrainingTable, read_training_table
from frhsic.tables.view import TableCheck, View

EXPECTED = pd.DataFrame(
    {"age": [30, 40, 50], "job": ["cook", "clerk", "cook, chief"], "rate": [1.5, 0.25, -3.0]}
)


def read_frame(path: Path, **options: str) -> pd.DataFrame:
    file = TableFile.open(path, **options)
    frame = pd.concat(file.pieces(file.names), ignore_index=True)
    return Schema.learn(frame, decimal=file.decimal)(frame)


def trained(
    path: Path, target: str = "y", sensitive: Sequence[str] = ("age",), **roles: Any
) -> TrainingTable:
    return read_training_table(TableFile.open(path), ColumnRoles(target, sensitive, **roles))


def people(n: int = 60) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "age": rng.uniform(20, 70, n).round(),
            "hours": rng.normal(40, 5, n),
            "job": rng.choice(["cook", "clerk", "nurse"], n),
            "member": rng.random(n) < 0.5,
        }
    )


def write(frame: pd.DataFrame, path: Path) -> Path:
    ending = path.name.split(".", 1)[1]
    if ending.startswith(("csv", "tsv", "txt")):
        frame.to_csv(path, index=False, sep="," if ending.startswith("csv") else "\t")
    else:
        frame.to_parquet(path)
    return path


FILES = ["t.csv", "t.csv.gz", "t.tsv", "t.txt", "t.parquet"]


@pytest.mark.parametrize("name", FILES)
def test_every_kind_of_file_gives_the_same_rows_in_pieces_of_bounded_size(name, tmp_path, reading):
    reading(14)
    path = write(people(), tmp_path / name)
    file = TableFile.open(path)
    assert list(file.names) == list(people())
    parts = list(file.pieces(["job", "age"]))
    assert max(map(len, parts)) <= 7
    assert list(parts[0]) == ["job", "age"]
    pd.testing.assert_frame_equal(read_frame(path), people(), check_dtype=False)


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
    ],
)
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_separator_and_decimal_sign_are_found_out_and_said(
    name, separator, decimal, said, mark, tmp_path
):
    path = tmp_path / name
    path.write_text(mark + text(separator, decimal), encoding="utf-8")
    pd.testing.assert_frame_equal(read_frame(path), EXPECTED, check_dtype=False)
    notes = TableFile.open(path).notes
    assert len(notes) == len(said)
    assert all(word in note for word, note in zip(said, notes))


def test_requested_codes_and_replacements_are_among_the_notes(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("age,sex\n-9,M\n30,female\n")
    assert TableFile.open(path, missing=["age=-9"], replace=["sex=M:male"]).notes == (
        "Treated as missing, as requested: age=-9.",
        "Replaced, as requested: sex=M:male.",
    )


def test_what_is_said_goes_before_what_is_found_out(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a;b\n1,5;2,5\n")
    assert read_frame(path)["a"].tolist() == [1.5]
    assert read_frame(path, decimal=".")["a"].tolist() == ["1,5"]
    with pytest.raises(ValueError, match="row 2 has 3 fields, but the header has 1"):
        read_frame(path, separator=",")


@pytest.mark.parametrize(
    ("rows", "decimal"),
    [
        ("210.000,00;1.234", ","),
        ("210.000,00;1.5", "."),
        ("1,5;1.234", "."),
        ("1,55;12.345", ","),
        ("1,555;12.345", "."),
        ("210,000.00;1", "."),
    ],
)
def test_a_number_with_groups_of_digits_and_a_fraction_shows_the_decimal_sign(
    rows, decimal, tmp_path
):
    path = tmp_path / "t.csv"
    path.write_text(f"a;b\n{rows}\n")
    assert TableFile.open(path).decimal == decimal


@pytest.mark.parametrize(
    ("cells", "said"),
    [
        (
            ["1.234", "2.345"],
            "most cells look like numbers: it contains '1.234', '2.345', first in",
        ),
        (
            ["1.234,5"] * 30 + ["n.v."],
            "some cells are not numbers: it contains 'n.v.', first in row",
        ),
        (["1.234,5", "2.345"], None),
        (["cook", "clerk", "2.345"], None),
        (["007", "008"], "some are numbers, codes or ranges ('007', '008')."),
        (["10.0.0.1", "10.0.0.2"], None),
    ],
)
def test_text_that_looks_like_numbers_is_remarked_on(cells, said, tmp_path):
    rows = [f"{cells[i % len(cells)]};{i % 2};{i % 50},5" for i in range(31 * len(cells))]
    path = tmp_path / "t.csv"
    path.write_text("\n".join(["x;y;age", *rows]) + "\n")
    file = TableFile.open(path, decimal=",")
    notes = read_training_table(file, ColumnRoles("y", ["age"])).notes
    found = [note for note in notes if note.startswith("'x' is read as text")]
    assert len(found) == (said is not None)
    assert all(said in note for note in found)


def test_latin_1_is_read_and_said_and_an_encoding_can_be_named(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes("größe,x\n1,ä\n".encode("latin-1"))
    assert read_frame(path).to_dict("list") == {"größe": [1], "x": ["ä"]}
    note = TableFile.open(path).notes[0]
    assert "Windows-1252. If that is wrong, pass another encoding, such as cp1250, with" in note
    path.write_bytes("größe,x\n1,ä\n".encode("utf-16"))
    for encoding in ({}, {"encoding": "utf-16"}):
        assert read_frame(path, **encoding).to_dict("list") == {"größe": [1], "x": ["ä"]}
        assert TableFile.open(path, **encoding).notes == ()
    for encoding in ("utf-8", "no such encoding"):
        with pytest.raises(ValueError, match="pass the right encoding"):
            read_frame(path, encoding=encoding)


@pytest.mark.parametrize(
    ("word", "read", "encoding"),
    [
        ("Michał", "Micha³", "Windows-1252"),
        ("Košťál", "Košťál", "Windows-1250"),
        ("Größe", "Größe", "Windows-1252"),
    ],
)
def test_a_file_in_cp1250_is_read_and_said(word, read, encoding, tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(f"x,y\n{word},1\n".encode("cp1250"))
    assert read_frame(path, encoding="cp1250")["x"].tolist() == [word]
    assert read_frame(path)["x"].tolist() == [read]
    note = TableFile.open(path).notes[0]
    assert f"it was read as {encoding}. If that is wrong, pass another encoding" in note


def test_a_comma_that_splits_evenly_is_not_given_up(tmp_path):
    (tmp_path / "t.csv").write_text("a;b,c;d\n1;2,3;4\n")
    assert TableFile.open(tmp_path / "t.csv").names == ("a;b", "c;d")


@pytest.mark.parametrize("ending", ["gz", "bz2", "zst", "zip"])
def test_compressed_files_are_read_and_damaged_ones_are_value_errors(ending, tmp_path):
    path = tmp_path / f"t.csv.{ending}"
    content = EXPECTED.to_csv(index=False, sep=";", decimal=",")
    if ending == "zst":
        with pytest.importorskip("pyarrow").output_stream(str(path), compression="zstd") as sink:
            sink.write(content.encode())
    else:
        EXPECTED.to_csv(path, index=False, sep=";", decimal=",")
    pd.testing.assert_frame_equal(read_frame(path), EXPECTED, check_dtype=False)
    for damaged in (path.read_bytes()[: path.stat().st_size // 2], b"nonsense", b"\0" * 5000):
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match="cannot be read as CSV"):
            read_frame(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a,b\n1,2\n3,4,5\n", "needs quotes; row 3 has 3 fields, but the header has 2: '3,4,5'"),
        (
            "a,b\n1,2\n3\n",
            "row 3 has 1 field, but the .*: '3'; if the last line is a footer, delete it",
        ),
        (
            "a,b\n1,2\n3\n4,5\n",
            "row 3 has 1 field, but the header has 2: '3'; complete or delete it",
        ),
        ('a,b\n"x\ny",2\n3,4,5\n', "row 3 has 3 fields, but the header has 2"),
        ("a,b\n1,2,,\n", "has 4 fields"),
        ("a,b,a\n1,2,3\n", "more than one column named a"),
        ("a,b,a \n1,2,3\n", "more than one column named a"),
        ("a,b\n1,2,\n3,4\n", "needs quotes; row 2 has 3 fields, but the header has 2"),
        ("a,b\n1,\0\n", "contains a NUL"),
        ("\n  \n\n", "it is empty, without even a header"),
        ("a,b\n", "a header but no rows"),
        ("\na,b", "a header but no rows"),
        ("a,b\n1,\n,2\n", "lacks a value for 'a' or 'b', so no rows remain"),
        ("a,b\n1,\n2,NA\n", "column 'b' is empty in all 2 rows"),
    ],
)
def test_files_that_are_damaged_or_lack_values_are_refused(content, message, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(content)
    with pytest.raises(ValueError, match=message):
        read_rows(TableFile.open(path), ["a", "b"], required=["a", "b"])


@pytest.mark.parametrize("content", ["a,b\n1,2\n\n  \n3,4\n", "a, b\n1, 2\n3, 4"])
def test_blank_lines_are_tolerated(content, tmp_path):
    (tmp_path / "t.csv").write_text(content)
    assert read_frame(tmp_path / "t.csv").to_dict("list") == {"a": [1, 3], "b": [2, 4]}


def test_a_separator_after_the_last_column_makes_an_empty_one(tmp_path):
    (tmp_path / "t.csv").write_text("a,b,\n1,2,\n3,4,\n")
    file = TableFile.open(tmp_path / "t.csv")
    assert file.names == ("a", "b", "Unnamed: 2")
    kinds = Schema.learn(read_rows(file, file.names).frame, decimal=".").kinds
    assert kinds["Unnamed: 2"] == "empty"


def test_lines_above_the_header_and_below_the_last_row_are_left_out_with_a_note(tmp_path):
    path = tmp_path / "t.csv"
    rows = "a,b,c\n1,2,3\n4,5,6\n"
    path.write_text(f"Loans of 2018\n\n{rows}Total lent: 16\n\nSource: the lender\n")
    file = TableFile.open(path)
    assert read_frame(path).to_dict("list") == {"a": [1, 4], "b": [2, 5], "c": [3, 6]}
    above, below = file.notes
    assert above == (
        "The table in t.csv begins on line 3. The line above it ('Loans of 2018') was left out."
    )
    assert below == (
        "The last 2 lines of t.csv ('Total lent: 16', 'Source: the lender') were left out because"
        " they look like remarks or totals."
    )
    path.write_bytes(f"Löhne, 2018;;;\r\n;;\r\n{rows.replace(',', ';')}".encode("cp1252"))
    assert read_frame(path).to_dict("list") == {"a": [1, 4], "b": [2, 5], "c": [3, 6]}
    note = TableFile.open(path).notes[0]
    assert "begins on line 3. The line above it ('Löhne, 2018') was" in note
    # found with any separator, and when only the first of many lines are used to detect it
    path.write_text(
        "Loans of 2018\n" + rows.replace(",", ";") + "7;8;9\n" * 99 + "Source: us all\n"
    )
    assert read_frame(path)["b"].tolist() == [2, 5, *[8] * 99]
    path.write_text("Loans; all branches\na;b;c;d\n1;2;3;4\n4;5;6;7\n")  # a separator in a title
    assert read_frame(path).to_dict("list") == {"a": [1, 4], "b": [2, 5], "c": [3, 6], "d": [4, 7]}
    path.write_text("Loans of 2018\n,a,b\n1,2,3\n2,5,6\n")
    assert read_frame(path).to_dict("list") == {"Unnamed: 0": [1, 2], "a": [2, 5], "b": [3, 6]}


@pytest.mark.parametrize("long", [False, True])
@pytest.mark.parametrize(
    "footer",
    [
        ["Source: registry; 2018", "Total;12"],
        ["* preliminary; to be revised", "Total", "n = 12"],
        ["Gesamt (12 Zeilen);12", "", "Quelle: Register"],
        ["\u00a9 office of statistics;", '"Total; 12 people"'],
        ["-- end of file --"],
    ],
)
def test_totals_and_remarks_in_any_order_below_a_table_are_named_and_left_out(
    footer, long, tmp_path
):
    path = tmp_path / "t.csv"
    rows = ["a;b;c", *["x;2;3,5"] * (99 if long else 4)]
    path.write_text("\n".join([*rows, *footer]))
    assert read_frame(path)["c"].tolist() == [3.5] * (len(rows) - 1)
    notes = " ".join(TableFile.open(path).notes)
    assert all(repr(line) in notes for line in footer if line)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        # a number alone may be a row that was cut off
        ("a,b,c\n1,2,3\n4\n", "row 3 has 1 field, but the header has 3: '4'; if the last line is"),
        ("a,b,c\n1,2,3\nBoth sums\n4,5,6\n", "'Both sums'; complete or delete it"),
        ("a,b,c\n1,2,3\nBoth sums\n4,5,6\nBoth sums\n", "'Both sums'; complete or delete it"),
        ("a,b,c\n1,2,3\nall of, us\nso far\n", "if the last 2 lines are a footer, delete them"),
        ("a,b,c\n1,2,3\nTotal, 2\n4,5,6\n", "'Total, 2'; complete or delete it"),
        # the header may have another separator
        ("a b c\n1,2,3\n4,5,6\n", "has 3 fields"),
        ("your words\nwell, yes\nno, never\n", "has 2 fields"),
    ],
)
def test_a_line_that_may_be_a_row_is_not_left_out(content, message, tmp_path):
    (tmp_path / "t.csv").write_text(content)
    with pytest.raises(ValueError, match=message):
        read_frame(tmp_path / "t.csv")


def test_rows_that_lack_several_values_count_for_the_first(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b,c\n1,2,3\n,,3\n4,,3\n,5,3\n6,7,\n8,9,\n")
    rows = read_rows(TableFile.open(path), ["a", "b", "c"], required=["b", "a", "c"])
    assert rows.lacking == {"b": 2, "a": 1, "c": 2}
    assert rows.dropped == 5


def test_words_in_one_column_are_rows(tmp_path):
    (tmp_path / "t.csv").write_text("said\nall of us\nnone of us\n")
    file = TableFile.open(tmp_path / "t.csv")
    assert file.notes == ()
    assert pd.concat(file.pieces(["said"]))["said"].tolist() == ["all of us", "none of us"]


def test_an_uneven_row_raises_no_error_in_a_thread_of_the_reader(tmp_path, monkeypatch):
    """Such an error lets the thread outlive the program's end, which aborts it now and then."""
    from pyarrow import csv as arrow_csv

    answers = []
    options = arrow_csv.ParseOptions

    def recording(**named):
        handler = named.pop("invalid_row_handler")

        def answer(row):
            answers.append(handler(row))
            return answers[-1]

        return options(**named, invalid_row_handler=answer)

    monkeypatch.setattr(arrow_csv, "ParseOptions", recording)
    (tmp_path / "t.csv").write_text("a,b\n1,2\n3,4,5\n6\n")
    with pytest.raises(ValueError, match="row 3 has 3 fields"):
        read_frame(tmp_path / "t.csv")
    assert answers == ["skip", "skip"]


def test_an_empty_line_of_one_column_is_a_row(tmp_path):
    (tmp_path / "t.csv").write_text("\nage\n30\n\n50\n")
    np.testing.assert_array_equal(read_frame(tmp_path / "t.csv")["age"], [30, np.nan, 50])


def test_a_blank_after_each_separator_belongs_to_no_field(tmp_path):
    (tmp_path / "t.csv").write_text("id, job\n1, cook\n2, clerk\n")
    assert read_frame(tmp_path / "t.csv")["job"].tolist() == ["cook", "clerk"]
    (tmp_path / "t.csv").write_text('id, job\n1, "cook, chief"\n2, clerk\n')
    with pytest.raises(ValueError, match="so text that contains the separator needs quotes"):
        read_frame(tmp_path / "t.csv")


def test_a_file_that_is_not_there_is_named_with_the_nearest_one_of_its_folder(tmp_path):
    (tmp_path / "table.csv").write_text("a\n1\n")
    for path, hint in (
        (tmp_path / "nowhere" / "table.csv", ""),
        (tmp_path / "tabel.csv", " Did you mean 'table.csv'?"),
    ):
        with pytest.raises(FileNotFoundError) as error:
            TableFile.open(path)
        assert str(error.value) == f"there is no file {path}.{hint}"


def test_a_pipe_is_refused(tmp_path):
    os.mkfifo(tmp_path / "t.csv")
    with pytest.raises(ValueError, match="can be read only once"):
        TableFile.open(tmp_path / "t.csv")


def test_a_sample_is_uniform_keeps_rows_whole_and_counts_those_of_the_file(tmp_path, reading):
    reading(1000, rows=1000)
    n = 6000
    frame = pd.DataFrame({"x": np.arange(n), "y": np.where(np.arange(n) % 10 == 0, np.nan, 1.0)})
    frame.to_csv(tmp_path / "t.csv", index=False)
    file, seen, counts = TableFile.open(tmp_path / "t.csv"), [], np.zeros(n)
    for seed in range(20):
        with listen(lambda *told: seen.append(told)):
            rows = read_rows(file, ["x", "y"], required=["y"], seed=seed)
        assert (rows.given, rows.dropped, len(rows.frame), rows.is_sample) == (n, 600, 1000, True)
        assert rows.frame.index.is_monotonic_increasing
        assert rows.frame["x"].tolist() == list(map(str, rows.frame.index))
        counts[rows.frame.index] += 1
    assert seen[-1] == (n, n, "rows")
    assert [done for done, *_ in seen[: len(seen) // 20]] == list(range(500, n + 1, 500))
    assert counts[::10].sum() == 0
    share = 1000 / 5400
    by_place = counts.reshape(20, 300).sum(axis=1)
    assert np.abs(by_place - 1000).max() < 4 * np.sqrt(20 * 270 * share * (1 - share))


@pytest.mark.parametrize("decimal", [".", ","])
def test_numbers_of_a_text_file_are_read_to_the_last_digit(tmp_path, decimal):
    values = np.random.default_rng(0).standard_normal(2_000) * 10.0 ** np.arange(-10, 10).repeat(
        100
    )
    path = tmp_path / "t.csv"
    pd.DataFrame({"a": values, "b": 1.5}).to_csv(path, index=False, sep=";", decimal=decimal)
    np.testing.assert_array_equal(read_frame(path)["a"], values)


@pytest.mark.parametrize(
    ("levels", "points"),
    [
        (["20-29", "30-39", "40-49"], [24.5, 34.5, 44.5]),
        (["20–29", "30 – 39", "40 to 49"], [24.5, 34.5, 44.5]),
        (["<25", "25-34", "35+"], [20.5, 29.5, 39.5]),
        (["≤ 20", "21..30", "> 60"], [15.5, 25.5, 64.5]),
        (["[20, 30)", "[30, 40)", "[40, 60)"], [25, 35, 50]),
        (["<25", "25+"], [25, 25]),
        (["<20", "20-29", "30-59", "60+"], [15.5, 24.5, 44.5, 74.5]),  # of the nearest band each
        (["0.5-1.5", "1.5-2.5", "70"], [1, 2, 70]),
        (["-10--5", "-5-5", "5-10"], [-7.5, 0, 7.5]),
    ],
)
def test_bands_are_taken_at_their_mid_points(levels, points):
    column = pd.Series([*levels, None, levels[0]], name="age")
    read = read_sensitive(column, allow_missing=True)
    np.testing.assert_allclose(read.values.ravel(), [*points, np.nan, points[0]])
    assert (read.names, len(read.notes)) == (("age",), 1)
    assert "'age' contains bands" in read.notes[0]
    with pytest.raises(ValueError, match="is NaN or infinite in 1 of"):
        read_sensitive(column)
    for held in (np.array(levels), levels, [*levels, None]):
        read = read_sensitive(held, allow_missing=True)
        np.testing.assert_allclose(read.values.ravel()[: len(points)], points)
        assert "'sensitive' contains bands" in read.notes[0]


def test_intervals_and_ordered_levels_are_numbers():
    age = pd.Series([22.0, 31.0, 58.0])
    cut = pd.cut(age, [20, 30, 40, 60])
    assert read_sensitive(cut.rename("age")).values.ravel().tolist() == [25, 35, 50]
    grades = pd.Series(
        pd.Categorical(["low", "high", "mid"], ["low", "mid", "high"], ordered=True), name="grade"
    )
    read = read_sensitive(pd.DataFrame({"age": age, "grade": grades}))
    assert read.values.tolist() == [[22, 0], [31, 2], [58, 1]]
    assert "ordered levels, which are replaced by their ranks: low as 0, mid as 1" in read.notes[0]


@pytest.mark.parametrize(
    "values", [["a", "b"], ["1,000", "1,234"], ["2020-01", "2020-02"], ["20-29", "old"]]
)
def test_other_text_is_no_sensitive_attribute(values):
    with pytest.raises(TypeError, match="is not numeric: it contains"):
        read_sensitive(pd.Series(values, name="age"))
    with pytest.raises(TypeError, match="is not numeric: it contains"):
        read_sensitive(np.array(values))


@pytest.mark.parametrize(
    "bands",
    [
        ["20-29", "30-39"],
        pd.Series(["20-29", "30-39"]),
        pd.Series(pd.interval_range(20, 40, 2)),
        pd.Series(pd.interval_range(20, 40, 2), dtype=object),
        pd.Series(["20-29", "30-39"], dtype="category"),
    ],
)
def test_statistics_of_numbers_say_how_bands_become_numbers(bands):
    with pytest.raises(TypeError, match="Replace bands such as 30-39 by their midpoints"):
        gdp([0.1, 0.2], bands)


def test_an_estimator_takes_bands_and_says_so():
    X, y, s = biased(200)
    bands = pd.Series([f"{int(v) // 10 * 10}-{int(v) // 10 * 10 + 9}" for v in s], name="age")
    pytest.importorskip("torch")
    model = frhsic.FRHSICClassifier(**quick(epochs=2))
    with pytest.warns(
        BandedAttributeWarning, match="'age' contains bands, which are replaced by their midpoints"
    ):
        banded = model.fit(X, y, sensitive_features=bands).predict_proba(X)
    points = pd.Series(s // 10 * 10 + 4.5, name="age")
    np.testing.assert_array_equal(
        banded, model.fit(X, y, sensitive_features=points).predict_proba(X)
    )


def table(n: int = 400) -> tuple[pd.DataFrame, np.ndarray, pd.DataFrame]:
    rng = np.random.default_rng(0)
    s = pd.DataFrame({"age": rng.integers(20, 70, n).astype(float)})
    X = pd.DataFrame(
        {
            "x": rng.normal(size=n),
            "job": rng.choice(["cook", "clerk"], n),
            "hours": rng.integers(0, 60, n),
        }
    )
    return X, (X["x"] + rng.normal(size=n) > 0).to_numpy().astype(float), s


def named(X: pd.DataFrame, y: np.ndarray, s: pd.DataFrame) -> list[str]:
    codes, classes, _ = read_target(pd.Series(y, name="y"))
    problems = feature_problems(X, codes, 0 if classes is None else 2, s)
    return [problem.text for problem in problems]


def test_an_honest_table_raises_no_suspicion():
    X, y, s = table()
    assert named(X, y, s) == []
    assert named(X.head(40).assign(id=range(40)), y[:40], s.head(40)) == []
    noise = pd.DataFrame(np.random.default_rng(1).normal(size=(400, 50))).rename(columns=str)
    rare = (np.arange(400) < 4).astype(float)
    assert named(noise, rare, s) == []


@pytest.mark.parametrize(
    ("name", "kind", "identifies"),
    [
        ("key", "distinct", True),  # a sample of numbers up to 7,000, none of them twice
        ("key", "one repeated", False),
        ("distance", "drawn", False),
        ("income", "fractions", False),
        ("amount", "far apart", False),
        ("Customer No.", "far apart", True),
        ("customerNo", "far apart", True),
        ("Customer ID", "drawn", True),
        ("paid", "far apart", False),
        ("PAID", "drawn", False),
    ],
)
def test_whole_numbers_none_of_which_repeats_are_an_identifier_unless_by_chance(
    name, kind, identifies
):
    rng = np.random.default_rng(3)
    values = {
        "distinct": (keys := rng.permutation(7_000)[:400]),
        "one repeated": np.append(keys[:-1], keys[0]),
        "drawn": rng.integers(0, 7_000, 400),
        "fractions": keys + 0.5,
        "far apart": rng.permutation(10_000_000)[:400],
    }[kind]
    assert len(np.unique(values)) == 400 or kind in ("one repeated", "drawn")
    assert identifiers(pd.DataFrame({name: values})) == ([name] if identifies else [])


def test_a_column_without_values_is_named():
    X, y, s = table()
    (sentence,) = named(
        X.assign(none=np.nan, half=np.where(y == 1, np.nan, X["x"] ** 2)[::-1]), y, s
    )
    assert sentence.startswith("'none' has no value")


def test_rows_that_repeat_an_identifier_and_all_else_are_counted_however_few(tmp_path: Path):
    codes = [f"{i * 7:06d}" for i in range(400)]
    frame = people(400).assign(code=codes, y=np.arange(400) % 2)
    again = frame.iloc[:3].assign(y=1 - frame["y"].iloc[:3])  # the same person, another time
    counts = []
    for table in (pd.concat([frame, again]), pd.concat([frame, again, frame.iloc[5:8]])):
        table.to_csv(tmp_path / "people.csv", index=False)
        notes = trained(tmp_path / "people.csv").notes
        counts.append([note.split(" in every")[0] for note in notes if "repeat" in note])
    assert counts == [[], ["3 of 406 rows repeat an earlier row"]]


def test_persons_who_came_twice_are_counted_and_coarse_columns_are_not():
    X, y, s = table()
    twice = np.concatenate([np.arange(400), np.arange(30)])
    who = {"who": [f"p{i}" for i in range(430)], "id": np.arange(430) * 7 % 430}
    repeated = X.iloc[twice].reset_index(drop=True).assign(**who)
    lines = named(repeated, y[twice], s.iloc[twice].reset_index(drop=True))
    assert [line.split(" in every")[0] for line in lines] == [
        "'id' seems to identify rows; drop it.",
        "30 of 430 rows repeat an earlier row",
    ]
    random = np.random.default_rng(0)
    coarse = pd.DataFrame({"job": random.choice(list("abcdefghij"), 900)})
    coarse["town"] = random.choice(list("abcdefghij"), 900)
    age = pd.DataFrame({"age": random.integers(2, 5, 900) * 10.0})
    rare = (random.random(900) < 0.1).astype(float)
    assert named(coarse, rare, age) == []


@pytest.mark.parametrize(
    "change", [lambda a: a, lambda a: 2020 - a, np.log, lambda a: np.where(a == 30, np.nan, a)]
)
def test_a_copy_of_a_sensitive_attribute_is_named(change):
    X, y, s = table()
    (sentence,) = named(X.assign(born=change(s["age"].to_numpy())), y, s)
    assert sentence.startswith("'born' repeats the sensitive attribute 'age'")
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
        (sentence,) = named(X.assign(**{name: values}), y, s)
        assert sentence.startswith(f"{name!r} alone predicts the target almost perfectly")
    wage = X["x"] * 100 + 3
    (sentence,) = named(X.drop(columns="x").assign(monthly=wage / 12), wage.to_numpy(), s)
    assert sentence.startswith("'monthly' alone predicts")
    flipped = np.where(rng.random(400) < 0.05, 1 - y, y)
    assert named(X.assign(flipped=flipped), y, s) == []
    grade = rng.integers(0, 4, 400)
    [leak] = feature_problems(X.assign(grade=grade + 1), grade.astype(float), 4, s)
    assert (leak.kind, leak.option) == ("leak", "--drop grade")
    rare = np.where(np.arange(400) < 4, 4, grade)  # a class of four rows
    [leak] = feature_problems(X.assign(grade=rare + 1), rare.astype(float), 5, s)
    assert leak.option == "--drop grade"
    assert not [*feature_problems(X, grade.astype(float), 4, s)]


def applications(n: int = 1_300) -> tuple[pd.DataFrame, np.ndarray]:
    """People with and without a card: who has none spends nothing, and so do 2 % of the others; the
    share that they spend of their income is never quite zero.
    """
    rng = np.random.default_rng(5)
    card = (rng.random(n) < 0.78).astype(float)
    income = rng.lognormal(1.1, 0.4, n)
    spent = np.where((card == 1) & (rng.random(n) > 0.02), rng.lognormal(5, 1, n), 0.0)
    share = np.maximum(12 * spent, 12) / (10_000 * income)
    return pd.DataFrame({"income": income, "spent": spent, "share": share}), card


def test_a_column_that_follows_from_the_target_is_named_with_the_pair_that_does():
    X, card = applications()
    none = pd.DataFrame(index=X.index)
    codes = card.astype(int)
    spent, share = feature_problems(X, codes, 2, none)
    assert spent.option == "--drop spent"
    assert spent.text.startswith("'spent' is 0 in 100 % of the rows of one class and in 2 % of")
    assert share.option == "--drop share"
    assert "'share' is at most" in share.text
    for rows in (X["spent"] == 0, X.index % 50 == 0):  # a date that some lack, cells that are lost
        lacking = X[["income"]].assign(spent=X["spent"].mask(rows))
        [leak] = feature_problems(lacking, codes, 2, none)
        assert leak.option == "--drop spent"
    [pair] = feature_problems(X[["income"]].assign(due=X["income"] + card - 0.5), codes, 2, none)
    assert set(pair.columns) == {"income", "due"}
    assert "the first is larger in 100 % of the rows of one class and in 0 %" in pair.text
    first, second = pair.columns
    assert f"If '{first}' is known only after the target, drop it, and '{second}' if" in pair.text


@pytest.mark.parametrize("operation", [np.add, np.subtract, np.multiply, np.divide])
def test_two_columns_from_which_a_number_follows_are_named(operation):
    rng = np.random.default_rng(6)
    X = pd.DataFrame(rng.lognormal(2, 1, (400, 3)), columns=["hours", "wage", "other"])
    y = operation(X["hours"], X["wage"]).round(3).to_numpy()
    X = X.mask(rng.random(X.shape) < 0.02)
    [leak] = feature_problems(X, y, 0, pd.DataFrame(index=X.index))
    assert set(leak.columns) == {"hours", "wage"}
    noisy = y * rng.lognormal(0, 0.1, 400)
    assert not [*feature_problems(X, noisy, 0, pd.DataFrame(index=X.index))]


TOGETHER = {
    "a sum": (lambda a, b, c: a + b + c, 0),
    "a sum of unequal parts": (lambda a, b, c: 10 * a + b + c / 5, 0),
    "a sum above a threshold": (lambda a, b, c: a + b + c > 60, 2),
    "a product and a ratio": (lambda a, b, c: a * b / c, 0),
    "a ratio above a threshold": (lambda a, b, c: a * b / c > 20, 2),
    "all of three": (lambda a, b, c: (a > 10) & (b > 10) & (c > 10), 2),
    "a count of three": (lambda a, b, c: 1 * (a > 20) + (b > 20) + (c > 20), 4),
}


def together(X: pd.DataFrame, y: np.ndarray, classes: int) -> list[Problem]:
    """Return the columns that give a target away together, if any do."""
    target = y.astype(int).astype(str) if classes > 2 else y
    read = TableCheck.from_cells(X.assign(target=target))
    view = View(read, ColumnRoles("target", []), [*X], pd.DataFrame(index=X.index))
    return [*joint_problems(view)]


@pytest.mark.parametrize("kind", TOGETHER)
def test_the_fewest_columns_that_give_the_target_away_together_are_named(kind):
    law, classes = TOGETHER[kind]
    rng = np.random.default_rng(8)
    parts = rng.lognormal(3, 0.8, (3, 1_500)).round(2)
    y = np.asarray(law(*parts), dtype=float)
    if classes:
        parts = parts if "threshold" in kind else (parts > (20 if classes == 4 else 10)) * 1.0
    X = pd.DataFrame(dict(zip("abc", parts)))
    X = X.assign(town=rng.choice(["x", "y"], len(X)), age=rng.normal(size=len(X)))
    [leak] = together(X, y, classes)
    assert (leak.kind, leak.certainty) == ("leak", "likely")
    assert set(leak.columns) == {"a", "b", "c"}
    assert leak.option == f"--drop {leak.columns[0]}"
    [again] = together(X.assign(b=X["b"].mask(X.index == 7, 1e6)), y, classes)
    assert set(again.columns) == {"a", "b", "c"}  # an outlier decides nothing
    for lacking in "abc" if "unequal" not in kind else ():  # the others are harmless without it
        assert not together(X.drop(columns=lacking), y, classes)
    flipped = np.where(rng.random(len(y)) < 0.05, y[::-1], y)
    assert not together(X, flipped, classes)


@pytest.mark.parametrize("name", ["breast_cancer", "diabetes", "iris", "wine", "digits"])
def test_no_ordinary_table_of_scikit_learn_seems_to_leak(name):
    X, y = getattr(sklearn.datasets, f"load_{name}")(return_X_y=True, as_frame=True)
    classes = 0 if name == "diabetes" else y.nunique()
    y = y.to_numpy()
    problems = feature_problems(X, y, classes, pd.DataFrame(index=X.index))
    assert [problem for problem in problems if problem.kind == "leak"] == []
    assert together(X, y, classes) == []


@pytest.mark.parametrize(
    ("name", "model"),
    [
        (
            "classifier",
            ParityClassifier(LogisticRegression(), attribute_estimator=LinearRegression(), cv=2),
        ),
        (
            "regressor",
            ParityRegressor(LinearRegression(), attribute_estimator=LinearRegression(), cv=2),
        ),
        ("network", None),
    ],
)
def test_estimators_warn_once_of_copies_of_the_target_and_the_attribute_and_not_of_strong_features(
    name, model
):
    if model is None:
        pytest.importorskip("torch")
        model = frhsic.FRHSICClassifier(**quick(epochs=1))
    X, y, s = table(200)
    X = X[["x", "hours"]]
    wage = X["x"] + 0.1 * np.random.default_rng(5).normal(size=len(X))
    target = wage if name == "regressor" else y
    copy = np.exp(wage) if name == "regressor" else 100 - 3 * y
    with warnings.catch_warnings(record=True, action="always") as caught:
        clone(model).fit(
            X.assign(paid_back=copy, born=2020 - s["age"]), target, sensitive_features=s
        )
    said = [
        str(one.message).split(" the ")[0]
        for one in caught
        if one.category is SuspiciousColumnWarning
    ]
    assert said == ["'born' repeats", "'paid_back' alone predicts"]
    noise = np.random.default_rng(6).normal(size=len(X))
    strong = X.assign(strong=target + 0.4 * noise, likely=s["age"] + 5 * noise)
    with warnings.catch_warnings(record=True, action="always") as caught:
        clone(model).fit(strong, target, sensitive_features=s)
    assert not [one for one in caught if one.category is SuspiciousColumnWarning]


def test_what_should_be_no_feature_is_left_out_or_named(tmp_path):
    X, y, s = table()
    frame = X.assign(
        row=range(400), who=[f"p{i}" for i in range(400)], none=np.nan, born=2020 - s["age"], y=y
    )
    frame = frame.assign(age=s["age"], grade=np.arange(400) % 3)
    frame.to_csv(tmp_path / "t.csv", index=False)
    data = trained(tmp_path / "t.csv")
    assert list(data.X) == ["x", "job", "hours", "born", "grade"]
    named = [note.split("'")[1] for note in data.notes if not note.startswith("Features")]
    assert named == ["born", "x", "y", "none", "row", "who"]
    doubt = "The target 'row' seems to identify rows. Is it really the column to predict?"
    assert doubt in trained(tmp_path / "t.csv", "row").notes
    asked = trained(tmp_path / "t.csv", features=("x", "row", "who", "none"))
    assert list(asked.X) == ["x", "row", "who"]
    grades = trained(tmp_path / "t.csv", "grade", features=("x",))
    assert "3 different values and is predicted as a number" in " ".join(grades.notes)


@pytest.mark.parametrize("missing", ["age", "y"])
def test_rows_without_an_attribute_stay_to_train_and_are_not_measured(missing, tmp_path):
    X, y, s = table(300)
    frame = X.assign(y=y, age=s["age"])
    frame.loc[::5, missing] = np.nan
    frame.to_csv(tmp_path / "t.csv", index=False)
    data = trained(tmp_path / "t.csv")
    lost = 0 if missing == "age" else 60
    assert (data.given, data.dropped, len(data.y)) == (300, lost, 300 - lost)
    train, test = data.split(0.2, 0)
    assert not data.s.iloc[test].isna().to_numpy().any()
    unknown = int(data.s["age"].isna().sum() - data.s["age"].iloc[train].isna().sum())
    assert len(train) + len(test) == len(data.y) - unknown
    # also said of audits, which train no model
    said = "'age' is missing in 60 of 300 rows, which are left out when gaps are measured."
    assert (said in data.notes) == (missing == "age")


@pytest.mark.parametrize("rows", [slice(None), slice(7, 8)])
@pytest.mark.filterwarnings("error")
def test_features_of_any_size_are_taken_and_said(rows, tmp_path):
    X, y, s = table(300)
    X.loc[X.index[rows], "x"] *= 1e300
    model = ParityClassifier(limit=None, n_jobs=1, random_state=0).fit(X, y)
    assert np.isfinite(model.predict_proba(X)).all()
    X.assign(y=y, age=s["age"]).to_csv(tmp_path / "t.csv", index=False)
    assert "'x' contains numbers beyond 1e+150" in " ".join(trained(tmp_path / "t.csv").notes)


def test_the_favourable_outcome_is_a_label_of_the_target(tmp_path):
    X, y, s = table(100)
    frame = X.assign(paid=np.where(y == 1, "yes", "no"), age=s["age"])
    frame.to_csv(tmp_path / "t.csv", index=False)

    def favoured(**roles: Any) -> object:
        return trained(tmp_path / "t.csv", "paid", **roles).favourable

    assert favoured() is None
    assert favoured(favourable="no") == "no"
    assert favoured(favourable="no", positive="yes") == "no"
    assert favoured(favourable="no", positive="no") == "no"
    with pytest.raises(
        ValueError,
        match="'maybe' is not a value of 'paid'; pass a value such as 'no', 'yes'",
    ):
        favoured(favourable="maybe")
    with pytest.raises(ValueError, match="needs a target with two classes"):
        trained(tmp_path / "t.csv", "x", favourable="1")


def test_a_band_without_an_end_is_refused_and_numbers_as_text_are_no_bands():
    everything = pd.Series(pd.arrays.IntervalArray([pd.Interval(-np.inf, np.inf)] * 2), name="age")
    with pytest.raises(ValueError, match="infinite"):
        read_sensitive(everything)
    assert read_sensitive(pd.Series(["30", "40"], name="age")).values.tolist() == [[30.0], [40.0]]


@pytest.mark.parametrize(
    ("values", "error", "message"),
    [
        (
            ["1", "old", "old", "young"],
            TypeError,
            "age is not numeric: it contains 'old', 'young', first in row 102",
        ),
        (
            [1.0, np.inf],
            ValueError,
            "age contains infinite values: it contains 'inf', first in row 102",
        ),
        ([1 + 1j], ValueError, "Complex data not supported"),
        (pd.to_datetime(["2020-01-01"]), TypeError, "age contains dates"),
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
    pd.testing.assert_frame_equal(
        to_pandas(frame.lazy() if convert == "lazy" else frame), people(), check_dtype=False
    )


def test_a_frame_of_dask_says_how_it_becomes_a_table():
    dask = pytest.importorskip("dask.dataframe")
    frame = dask.from_pandas(people(), npartitions=1)
    told = r"^X is a dask DataFrame; pass X\.compute\(\)\.$"
    with pytest.raises(TypeError, match=told):
        ParityClassifier().fit(frame, people()["age"], sensitive_features=people()["age"])


def test_columns_of_two_levels_are_refused():
    frame = people().set_axis(pd.MultiIndex.from_product([["a", "b"], ["x", "y"]]), axis=1)
    with pytest.raises(ValueError, match="X has 2-level column labels; join each"):
        to_pandas(frame, "X")


@pytest.mark.parametrize("cell", [[1], {"a": 1}])
def test_lists_and_records_are_named(cell, tmp_path):
    frame = people().assign(events=[cell] * 60)
    frame.to_parquet(tmp_path / "t.parquet")
    with pytest.raises(ValueError, match="column 'events' contains lists or records"):
        trained(tmp_path / "t.parquet", "member")


@pytest.mark.parametrize("cell", [[1], {"a": 1}])
@pytest.mark.parametrize("kind", ["text", "number"])
def test_lists_and_records_in_the_place_of_a_value_are_named(kind, cell):
    values = {"text": ["a", "b"], "number": ["1", "2"]}
    schema = Schema.learn(pd.DataFrame({"x": values[kind]}), decimal=".")
    with pytest.raises((TypeError, ValueError), match=r"'x' .*contains"):
        schema(pd.DataFrame({"x": [cell, cell]}))


def test_a_value_is_named_by_its_row_in_the_file(tmp_path, reading):
    reading(40)
    frame = people().assign(seen="2024-05-31", y=np.arange(60) % 2).astype({"y": object})
    frame.loc[:9, "y"] = ""
    frame.loc[50, "seen"] = "2024-05-32"
    frame.loc[20, "seen"] = "2024-06-01"
    file = TableFile.open(write(frame, tmp_path / "t.csv"))
    with pytest.raises(
        ValueError, match=r"'seen' is a date column, but it contains '2024-05-32', .* row 51,"
    ):
        read_training_table(file, ColumnRoles("y", ("age",)))
    pieces = list(file.pieces(["age"]))
    assert len(pieces) == 2
    assert pd.concat(pieces).index.tolist() == list(range(60))


@pytest.mark.parametrize(
    ("roles", "message"),
    [
        ({"features": ["x_*"]}, "no column 'x_"),
        ({"features": ["age", "job"]}, "cannot be a feature"),
        ({"sensitive": ["age", "age"]}, "only once; got age, age"),
        ({"drop": ["age"]}, "cannot be dropped"),
        ({"sensitive": ["member"]}, "both the target"),
        ({"drop": ["hours", "job"]}, "no features left"),
        ({"target": "job", "positive": "cok"}, "Did you mean 'cook'"),
    ],
)
def test_roles_that_do_not_fit_the_table_are_refused(roles: dict[str, Any], message: str, tmp_path):
    with pytest.raises(ValueError, match=message):
        trained(write(people(), tmp_path / "t.csv"), **{"target": "member", **roles})


@pytest.mark.parametrize(
    ("values", "positive", "codes", "classes"),
    [
        (["no", "yes", "no"], None, [0, 1, 0], ["no", "yes"]),
        (["ja", "nein", "ja"], None, [1, 0, 1], ["nein", "ja"]),
        (["Non", " OUI", "Non"], None, [0, 1, 0], ["Non", " OUI"]),
        (["ja", "nein", "ja"], "nein", [0, 1, 0], ["ja", "nein"]),
        (["b", "a", "b"], "a", [0, 1, 0], ["b", "a"]),
        (["cook", "clerk", "nurse"], "cook", [1, 0, 0], ["not cook", "cook"]),
        (["Yes", "no", "yes", "YES ", "NO", "no"], None, [1, 0, 1, 1, 0, 0], ["no", "YES"]),
        (["Cook", "clerk", "cook", "cook"], " COOK", [1, 0, 1, 1], ["clerk", "cook"]),
        ([0.5, 1.5], None, [0, 1], [0.5, 1.5]),
        ([0.0, 1.0, 1.0], "0", [1, 0, 0], [1, 0]),
        ([0.0, 2.0, 1.0], "2", [0, 1, 0], ["not 2", "2"]),
        ([True, False, True], "False", [0, 1, 0], [True, False]),
        ([1.0, 2.0, 3.0], None, [1, 2, 3], None),
    ],
)
def test_a_target_has_two_classes_with_the_positive_one_last_or_is_a_number(
    values, positive, codes, classes
):
    read, names, _ = read_target(pd.Series(values, name="y"), positive)
    assert read.tolist() == codes
    if classes is None:
        assert names is None
    else:
        assert [(type(name), name) for name in names.tolist()] == [
            (type(name), name) for name in classes
        ]


@pytest.mark.parametrize(
    ("values", "positive", "message"),
    [
        (["cook", "clerk", "nurse"], "coock", "Did you mean 'cook'"),
        (["no", "yes"], "default", "^'default' is not a value of 'y'. Available: no, yes.$"),
        (["cook", "clerk"], None, "which one counts as 1"),
        ([f"job {i}" for i in range(21)], None, "--positive VALUE"),
        ([1, 2], "high", "contains numbers"),
        ([0.0, np.inf], None, "target 'y' contains infinite values"),
        ([1, 1], None, "nothing to predict"),
    ],
)
def test_targets_that_cannot_be_predicted_are_refused(values, positive, message):
    with pytest.raises(ValueError, match=message):
        read_target(pd.Series(values, name="y"), positive)


def test_labels_that_differ_in_case_or_blanks_are_one_and_every_class_is_counted():
    labels = pd.Series(["Yes", "yes", "yes", "YES ", "y", "no", "No", None], name="paid")
    _, classes, notes = read_target(labels.dropna(), "yes")
    assert classes.tolist() == ["No", "yes"]
    assert notes == [
        "Labels of 'paid' that differ only in case or whitespace are merged: 'YES ' and 'Yes'"
        " into 'yes'; 'no' into 'No'.",
        "Answers in 'paid' with the same meaning are merged: 'y' into 'yes' (1 row).",
        "Target 'paid': 1 is 'yes' (5 rows); 0 is 'No' (2 rows).",
    ]
    assert read_target(labels.dropna(), "Y")[1].tolist() == ["No", "yes"]
    for values, said in (
        ([0, 1, 1], ["Target 'y': 1 is '1' (2 rows); 0 is '0' (1 row)."]),
        ([True, False], ["Target 'y': 1 is 'True' (1 row); 0 is 'False' (1 row)."]),
        ([1.5, 2.5, 3.5], []),
    ):
        assert read_target(pd.Series(values, name="y"))[2] == said
    several = pd.Series(list("abcdefgh"), name="y", dtype="category")
    assert read_target(several, "A")[2] == [
        "Target 'y': 1 is 'a' (1 row); 0 is 'b' (1 row), 'c' (1 row), 'd' (1 row), 'e' (1 row),"
        " 'f' (1 row) and 2 other values."
    ]


FORMULAS = ["=cmd|'/c calc'!A1", "@SUM(1)", "\t=1", " =1+1", "+49 170 1", "-x", "＝1", "\nx"]
PLAIN = ["-5", "+3", "-3,5", "-1.5e-300", "-5%", "-", "+", "'quoted", "it's", "", "007", "x=1"]


def test_formulas_are_shielded():
    assert [shield(cell) for cell in FORMULAS] == [f"'{cell}" for cell in FORMULAS]
    assert [shield(cell) for cell in PLAIN] == PLAIN
    assert [shield(value) for value in (-1.5, None, True)] == [-1.5, None, True]


def bomb(kind: str, path: Path) -> Path:
    """A file of few bytes: one line or cell of 40 MB, or 200 MB of rows."""
    rows = b"a,b\n" + b"1,2\n" * 10**7
    line = b"a,b\n" + b"a" * 40_000_000
    content = {"rows": rows, "line": line}.get(kind, b"")
    if kind == "cell":
        import pyarrow as pa
        from pyarrow import parquet

        table = pa.table({"a": ["a" * 40_000_000], "b": [1]})
        path = path / "t.parquet"
        parquet.write_table(table, path, compression="zstd", use_dictionary=False)
        return path
    path = path / "t.csv.gz"
    path.write_bytes(gzip.compress(content))
    return path


@pytest.fixture
def unpacking_less(monkeypatch):
    """What may always be unpacked is less than these files are."""
    monkeypatch.setattr("frhsic._files.ALWAYS_BYTES", 3 * 10**7)


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("rows", r"more than 30,000,000 bytes .* raise max_bytes \(--max-bytes\)"),
        ("line", "a line of more than 16,777,216 characters"),
        ("cell", "more than 30,000,000 bytes of memory"),
    ],
)
def test_a_bomb_of_compression_is_refused(kind, message, tmp_path, unpacking_less):
    path = bomb(kind, tmp_path)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(ValueError, match=f"^{path.name} cannot be read as .*{message}"):
        TableFile.open(path)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000  # kB


KINDS = ["string", "large_string", "string_view", "dictionary", "fixed", "zeros", "nothing"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_parquet_file_that_stands_for_gigabytes_is_refused(kind, tmp_path, unpacking_less):
    import pyarrow as pa
    from pyarrow import parquet

    if kind == "zeros":
        column = pa.array(np.zeros(40_000_000, np.int8))
    elif kind == "nothing":
        column = pa.nulls(10**8)
    elif kind == "fixed":
        column = pa.array([b"a" * 10_000] * 4_000, pa.binary(10_000))
    else:  # one text, in 60,000 rows
        text = pa.array(["a" * 100_000])
        column = pa.DictionaryArray.from_arrays(np.zeros(60_000, np.int32), text)
    path = tmp_path / "t.parquet"
    parquet.write_table(
        pa.table({"a": column}), path, compression="zstd", store_schema=kind == "dictionary"
    )
    if kind.startswith(("large", "string_")):  # the type that the header claims
        short = pa.table({"a": pa.array(["a"], kind)})
        parquet.write_table(short, tmp_path / "short.parquet")
        claimed = parquet.read_metadata(tmp_path / "short.parquet").metadata
        content = parquet.ParquetFile(path, read_dictionary=["a"]).read().replace_schema_metadata()
        with parquet.ParquetWriter(
            path, content.schema, compression="zstd", store_schema=False
        ) as writer:
            writer.write_table(content)
            writer.add_key_value_metadata({b"ARROW:schema": claimed[b"ARROW:schema"]})
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(ValueError, match=r"^t.parquet cannot be read as .*more than [\d,]+ bytes"):
        list(TableFile.open(path).pieces(["a"]))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000  # kB


def test_a_row_of_parquet_has_at_most_as_much_text_as_a_line(tmp_path):
    path = tmp_path / "t.parquet"
    pd.DataFrame({"a": ["a" * 2**24, "b"]}).to_parquet(path)
    with pytest.raises(ValueError, match="a row with more than 16,777,216 bytes of text"):
        list(TableFile.open(path).pieces(["a"]))


def workbook(path: Path, *sheets: list[list[Any]]) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.remove(book.active)
    for number, rows in enumerate(sheets, 1):
        sheet = book.create_sheet(f"part {number}")
        for row in rows:
            sheet.append(row)
    book.save(path)


def test_the_first_sheet_of_a_workbook_is_read_like_a_text_file(tmp_path):
    header = ["age", "code", " paid ", "seen", "dose", "on"]
    first = [30, "007", "yes", datetime.datetime(2024, 5, 31), 1.5, True]
    second = [40.0, "012", None, datetime.datetime(2024, 6, 1), "2,25", False]
    rows = [[], header, first, [], second]
    workbook(tmp_path / "t.xlsx", rows, [["other"], [1]])
    file = TableFile.open(tmp_path / "t.xlsx")
    cells = pd.concat(file.pieces(file.names))
    assert file.names == ("age", "code", "paid", "seen", "dose", "on")
    assert file.notes == (
        "The sheet 'part 1' of t.xlsx was read, but not 'part 2'. To read another sheet, pass its"
        " name, such as --sheet 'part 2'.",
    )
    assert cells["seen"].tolist() == ["2024-05-31", "2024-06-01"]
    table = Schema.learn(cells, decimal=file.decimal)(cells)
    assert table["age"].tolist() == [30, 40]
    assert table["code"].tolist() == ["007", "012"]
    assert table["paid"].isna().tolist() == [False, True]
    assert table["dose"].tolist() == [1.5, 2.25]
    assert table["on"].tolist() == [True, False]
    assert pd.api.types.is_datetime64_any_dtype(table["seen"])
    workbook(tmp_path / "twice.xlsx", [["x", "x"], [1, 2]])
    with pytest.raises(ValueError, match="more than one column named x"):
        TableFile.open(tmp_path / "twice.xlsx")
    workbook(tmp_path / "bare.xlsx", [["x", "y"]])
    with pytest.raises(ValueError, match="has a header but no rows"):
        TableFile.open(tmp_path / "bare.xlsx")


def test_sheets_with_the_same_columns_are_named(tmp_path):
    path = tmp_path / "t.xlsx"
    workbook(path, [["a", "b"], [1, 2]], [["Title"], ["a", "b"], [3, 4]], [["a", "c"], [5, 6]])
    note = "'part 2' has the same columns; to use its rows, too, append them to the sheet 'part 1'."
    notes = TableFile.open(path, named=["b"]).notes
    assert note in notes
    assert notes[0].endswith("such as --sheet 'part 2'.")


@pytest.mark.parametrize("sheet", ["part 2", "2"])
def test_a_sheet_is_chosen_by_its_name_or_number(sheet, tmp_path):
    path = tmp_path / "t.xlsx"
    workbook(path, [["a", "b"], [1, 2]], [["Title"], ["a", "b"], [3, 4]], [["c"], [5]], [])
    file = TableFile.open(path, sheet=sheet, named=["b", "a"])
    (piece,) = file.pieces(["a", "b"])
    assert piece.to_numpy().tolist() == [["3", "4"]]
    assert file.notes[0].startswith("The sheet 'part 2' of t.xlsx was read, but not 'part 1', ")
    assert TableFile.open(path, sheet="3").names == ("c",)
    for wrong in ("part 4", "0", "7"):
        with pytest.raises(ValueError, match=f"'{wrong}' is neither the name nor the number of a"):
            TableFile.open(path, sheet=wrong)
    text = tmp_path / "t.csv"
    text.write_text("a,b\n1,2\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"t\.csv is not an Excel workbook; leave out --sheet"):
        TableFile.open(text, sheet="2")


def test_the_sheet_with_the_named_columns_is_read(tmp_path):
    path = tmp_path / "t.xlsx"
    notes = [["About these data"], ["age: in years"]]
    data = [["All patients"], [], ["age", " paid ", "dose"], [30, "yes", 1], [40, "no", 2]]
    later = [["age", "paid", "dose"], [99, "no", 9]]
    workbook(path, notes, data, later)
    file = TableFile.open(path, named=["paid", "age", None])
    assert pd.concat(file.pieces(file.names)).to_numpy().tolist() == [
        ["30", "yes", "1"],
        ["40", "no", "2"],
    ]
    assert file.notes == (
        "The sheet 'part 2' of t.xlsx was read, but not 'part 1' and 'part 3'. To read another"
        " sheet, pass its name, such as --sheet 'part 3'.",
        "'part 3' has the same columns; to use its rows, too, append them to the sheet 'part 2'.",
        "The row above the header of the sheet 'part 2' ('All patients') was left out.",
    )
    message = (
        r"none of its sheets, 'part 1', 'part 2' and 'part 3', has all the named columns;"
        r" 'part 2' lacks 'payd'. Did you mean 'paid'\?$"
    )
    with pytest.raises(ValueError, match=message):
        TableFile.open(path, named=["payd", "age"])
    workbook(path, data)
    assert TableFile.open(path, named=["payd", "age"]).names == ("age", "paid", "dose")


def test_a_workbook_of_few_cells_far_apart_takes_little_memory(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.active.append(["x", "y"])
    book.active["XFD1"] = "z"
    book.active["A900000"] = 3
    book.save(tmp_path / "t.xlsx")
    assert TableFile.open(tmp_path / "t.xlsx").row_count() == 1


def test_a_workbook_that_unpacks_to_gigabytes_is_refused(tmp_path):
    pytest.importorskip("openpyxl")
    with zipfile.ZipFile(tmp_path / "t.xlsx", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/worksheets/sheet1.xml", b"<row/>" * 50_000_000)
    with pytest.raises(ValueError, match="takes more than 134,217,728 bytes of memory"):
        TableFile.open(tmp_path / "t.xlsx")


def test_without_openpyxl_a_workbook_is_refused_with_the_package(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    (tmp_path / "t.xlsx").write_bytes(b"PK")
    with pytest.raises(ValueError, match=r"needs openpyxl.*`pip install openpyxl`"):
        TableFile.open(tmp_path / "t.xlsx")


def test_short_row_groups_are_read_together(tmp_path):
    frame = pd.DataFrame({"a": range(1000), "b": ["x", None] * 500})
    path = tmp_path / "t.parquet"
    frame.to_parquet(path, row_group_size=1)
    (piece,) = TableFile.open(path).pieces(["a", "b"])
    pd.testing.assert_frame_equal(piece, frame, check_dtype=False)


def test_text_of_a_parquet_file_that_is_no_utf_8_is_refused(tmp_path):
    import pyarrow as pa
    from pyarrow import parquet

    path = tmp_path / "t.parquet"
    parquet.write_table(pa.table({"a": ["marker"] * 3}), path, compression="none")
    path.write_bytes(path.read_bytes().replace(b"marker", b"\xff\xfearke"))
    with pytest.raises(ValueError, match=r"^t.parquet cannot be read as Parquet: .*UTF8"):
        list(TableFile.open(path).pieces(["a"]))


def test_an_arrow_file_is_refused_with_the_readers_that_there_are(tmp_path):
    people().to_feather(tmp_path / "t.feather")
    with pytest.raises(ValueError, match=r"ends in \.feather; supported formats are \.csv,"):
        TableFile.open(tmp_path / "t.feather")


@pytest.mark.parametrize("name", FILES)
def test_a_name_that_is_not_utf_8_is_read(name, tmp_path):
    path = write(people(), tmp_path / name)
    other = path.with_name("\udcff" + name)
    path.rename(other)
    pd.testing.assert_frame_equal(read_frame(other), people(), check_dtype=False)


@pytest.mark.parametrize("columns", [40_000, files.MOST_TABLE_COLUMNS + 1])
def test_wide_text_is_read_up_to_a_number_of_columns(columns, tmp_path):
    path = tmp_path / "t.csv"
    header = ",".join(f"c{i}" for i in range(columns))
    row = ",".join(["1.5"] * columns)
    path.write_text("\n".join([header, row, row]))
    if columns > files.MOST_TABLE_COLUMNS:
        with pytest.raises(ValueError, match=r"131,073 columns; a table may have at most 131,072"):
            TableFile.open(path)
    else:
        (piece,) = TableFile.open(path).pieces(["c39999"])
        assert piece["c39999"].tolist() == ["1.5", "1.5"]


def test_of_long_lines_few_are_looked_at(tmp_path):
    path = tmp_path / "t.csv.gz"
    line = b"a," * 2**22 + b"a\n"
    path.write_bytes(gzip.compress(line * 12, 1))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(ValueError, match="4,194,305 columns"):
        TableFile.open(path)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 500_000  # kB


def test_a_file_that_does_not_fit_into_memory_is_named(tmp_path, monkeypatch):
    path = tmp_path / "t.csv"
    path.write_text("a\n1\n")

    def full(*arguments: object) -> None:
        raise MemoryError

    monkeypatch.setattr("frhsic.tables.text._check_text", full)
    with pytest.raises(MemoryError, match=r"t\.csv does not fit into memory"):
        TableFile.open(path)


def test_an_index_in_a_parquet_file_is_a_column(tmp_path):
    path = tmp_path / "t.parquet"
    pd.DataFrame({"a": [1, 2]}, index=pd.Index(["p", "q"], name="id")).to_parquet(path)
    (piece,) = TableFile.open(path).pieces(["id", "a"])
    assert piece.to_dict("list") == {"id": ["p", "q"], "a": [1, 2]}
