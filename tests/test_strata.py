"""Control features become strata: levels, fifths of numbers, and "other" for what is rare."""

import json
from dataclasses import asdict

import numpy as np
import pandas as pd
import polars as pl
import pytest

from frhsic.parity.strata import MOST_STRATA, ControlColumn, Strata


def test_levels_are_strata_and_rare_missing_or_new_ones_are_other():
    jobs = ["nurse"] * 60 + ["cook"] * 50 + ["diver"] * 49 + [None] * 7
    strata = Strata.fit(jobs)
    assert strata.names == ("cook", "nurse", "other")
    assert strata.rows == (50, 60, 56)
    assert (strata.joined, strata.missing) == (1, 7)
    assert strata.codes(["cook", "nurse", "diver", "pilot", None]).tolist() == [0, 1, 2, 2, 2]
    assert np.bincount(strata.codes(jobs)).tolist() == [50, 60, 56]
    joined, missing = strata.notes
    assert (
        "1 small group with the same control was merged into 'other', which has 56 rows" in joined
    )
    assert "7 rows have no value" in missing
    others = strata.recounted(["cook"] * 3 + ["diver"] * 2 + [None])
    assert (others.rows, others.missing) == ((3, 0, 3), 1)
    joined, missing = others.notes  # with the counts of the rows that are shown
    assert "merged into 'other', which has 3 rows." in joined
    assert "1 row has no value of control and counts as 'other'." in missing


def test_numbers_are_cut_into_fifths_of_the_fitted_rows():
    hours = pd.Series(np.arange(1, 501), name="hours")
    strata = Strata.fit(hours)
    assert strata.columns[0].cuts == (100, 200, 300, 400)
    assert strata.rows == (100, 100, 100, 100, 100, 0)
    assert strata.names[:2] == ("up to 100", "above 100 to 200")
    codes = strata.codes(pd.Series([-5, 100, 100.5, 400, 9999, None]))
    assert codes.tolist() == [0, 0, 1, 3, 4, strata.other]
    assert "hours is numeric and was split into 5 bins" in strata.notes[0]


@pytest.mark.parametrize("common", [0.0, 9.0])
def test_a_number_with_one_frequent_value_has_two_parts(common):
    values = pd.Series([common] * 900 + list(np.linspace(0.5, 8.5, 100)), name="gain")
    strata = Strata.fit(values)
    assert len(strata.columns[0].cuts) == 1
    assert sorted(strata.rows) == [0, 100, 900]


def test_few_numbers_and_booleans_are_levels():
    strata = Strata.fit(pd.DataFrame({"flag": [True, False] * 100, "class": [1.0, 2.0] * 100}))
    assert [column.levels for column in strata.columns] == [("False", "True"), ("1", "2")]
    assert strata.names == ("False, 2", "True, 1", "other")  # those that occur
    assert strata.label == "flag and class"
    assert strata.codes({"class": [1, 1], "flag": [True, False]}).tolist() == [1, 2]


def test_categories_keep_their_order():
    column = pd.Series(pd.Categorical(["low", "high"] * 50, ["low", "mid", "high"]))
    assert ControlColumn.fit(column, "risk").levels == ("low", "high")


def test_strata_are_the_largest_ones():
    labels = np.repeat(np.arange(40), 50 + np.arange(40)).astype(str)
    strata = Strata.fit(labels)
    assert len(strata.levels) == MOST_STRATA
    assert strata.rows[-1] == sum(50 + i for i in range(8))
    assert strata.joined == 8


def test_strata_are_plain_data():
    strata = Strata.fit(pd.DataFrame({"job": ["a", "b"] * 100, "hours": np.arange(200.0)}))
    fields = json.loads(json.dumps(asdict(strata)))
    again = Strata(
        columns=tuple(
            ControlColumn(one["name"], tuple(one["cuts"]), tuple(one["levels"]))
            for one in fields["columns"]
        ),
        levels=tuple(map(tuple, fields["levels"])),
        rows=tuple(fields["rows"]),
        joined=fields["joined"],
        missing=fields["missing"],
    )
    assert again == strata


def test_columns_come_as_frames_and_arrays_of_any_kind():
    table = pd.DataFrame({"a": [0, 1] * 60, "b": ["x", "y", "y"] * 40})
    expected = Strata.fit(table).codes(table)
    assert np.array_equal(Strata.fit(pl.from_pandas(table)).codes(table), expected)
    assert np.array_equal(Strata.fit(table.to_numpy()).codes(table.to_numpy()), expected)
    one = Strata.fit(table["b"])
    assert np.array_equal(one.codes(table["b"].tolist()), one.codes(pl.Series("c", table["b"])))


def test_errors_say_what_is_wrong():
    strata = Strata.fit(pd.DataFrame({"a": [0, 1] * 60, "b": [0, 1] * 60}))
    with pytest.raises(ValueError, match="control_features lacks b"):
        strata.codes(pd.DataFrame({"a": [0], "c": [1]}))
    with pytest.raises(ValueError, match="more than one column named a"):
        Strata.fit(pd.DataFrame([[1, 2]], columns=["a", "a"]))
    with pytest.raises(TypeError, match="contains dates"):
        Strata.fit(pd.Series(pd.date_range("2020", periods=9), name="since"))
    with pytest.raises(ValueError, match="shape"):
        Strata.fit(np.zeros((2, 2, 2)))
