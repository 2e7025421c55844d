"""Encoding of columns: scales of numbers, levels, missing values, dates, joined parts, and what is
written to files.
"""

from __future__ import annotations

import datetime
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from estimator_samples import saved_and_read
from frhsic.tables.columns import MOST_ENCODED_LEVELS
from frhsic.tables.encoding import Category, Scale, Scaling, TableEncoding
from frhsic.tables.schema import Schema

SCALINGS: tuple[Scaling, ...] = ("quantile", "range")


@dataclass
class FrameEncoding:
    """The encoding of a frame with its schema."""

    schema: Schema
    encoding: TableEncoding

    @classmethod
    def fit(cls, frame: pd.DataFrame, scaling: Scaling = "quantile") -> FrameEncoding:
        schema = Schema.learn(frame)
        return cls(schema, TableEncoding.fit(schema.codes(frame), schema.columns, scaling))

    def __call__(self, frame: pd.DataFrame) -> np.ndarray:
        return self.encoding(self.schema.codes(frame))


def quantiles(values: Any) -> Scale:
    return Scale.fit("x", np.array(values), "quantile")


anything = st.floats(allow_nan=True, allow_infinity=False)
columns = st.lists(
    st.one_of(anything, st.sampled_from([0.0, 1.0, -1e300, 1e300, 5e-324, math.nan])),
    min_size=1,
    max_size=150,
)


@pytest.mark.parametrize("scaling", SCALINGS)
@settings(max_examples=150, deadline=None)
@given(columns, columns)
def test_every_scale_is_finite_and_monotone_for_any_numbers(
    scaling: Scaling, training: list[float], new: list[float]
):
    scale = Scale.fit("x", np.array(training), scaling)
    values = np.array(training + new)
    encoded = scale(values)
    assert np.isfinite(encoded).all()
    assert np.isfinite(encoded.astype(np.float32)).all()
    assert encoded.shape == (len(values), len(scale.names))
    present = ~np.isnan(values)
    order = np.argsort(values[present], kind="stable")
    # a quotient with a root below it is rounded twice, so neighbours may change places by two ulps
    rounding = 2 * np.spacing(np.abs(encoded[present, 0]).max(initial=0.0))
    assert (np.diff(encoded[present, 0][order]) >= -rounding).all()


@settings(max_examples=150, deadline=None)
@given(st.lists(st.floats(-1e6, 1e6).map(lambda x: round(x, 3)), min_size=2, max_size=200))
def test_quantiles_keep_the_order_of_distinct_training_values(values: list[float]):
    scale = quantiles(values)
    distinct = np.unique(values)
    places = scale.scale_values(distinct)
    assert (np.diff(places) > 0).all()
    if len(distinct) > 1:
        assert (places[0], places[-1]) == (0.0, 1.0)


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(SCALINGS), columns, columns)
def test_an_encoding_survives_json_and_encodes_the_same(
    scaling: Scaling, training: list[float], new: list[float]
):
    frame = pd.DataFrame(
        {"x": training, "job": [["cook", "clerk", None][i % 3] for i in range(len(training))]}
    )
    own = FrameEncoding.fit(frame, scaling)
    again = saved_and_read(own.encoding)
    assert again == own.encoding
    codes = own.schema.codes(pd.DataFrame({"x": new, "job": "nurse"}))
    np.testing.assert_array_equal(again(codes), own.encoding(codes))


def test_places_are_mid_ranks_by_definition():
    """Mean of the shares of rows below and at most each value, moved to [0, 1]."""
    rng = np.random.default_rng(1)
    column = rng.integers(0, 30, 500).astype(float)
    ranks = np.array([((column < x).mean() + (column <= x).mean()) / 2 for x in column])
    expected = (ranks - ranks.min()) / (ranks.max() - ranks.min())
    np.testing.assert_allclose(quantiles(column).scale_values(column), expected, atol=1e-12)


def test_uniform_numbers_keep_their_places_and_an_outlier_does_not_move_the_others():
    column = np.linspace(0, 1, 5000)
    np.testing.assert_allclose(quantiles(column).scale_values(column), column, atol=0.01)
    for scaling, moved in zip(SCALINGS, (0.01, 0.5)):
        before = Scale.fit("x", column, scaling).scale_values(column)
        after = Scale.fit("x", np.append(column, 1e300), scaling).scale_values(column)
        assert (np.abs(after - before).max() < moved) == (scaling != "range")
    with_outliers = np.concatenate([[-1e100], column, [1e90, 1e100]])
    assert (np.diff(quantiles(with_outliers).scale_values(with_outliers)) > 0).all()


@pytest.mark.parametrize("share", [0.5, 0.9, 0.99])
def test_a_zero_inflated_column_leaves_room_for_what_is_not_zero(share: float):
    rng = np.random.default_rng(0)
    column = np.where(rng.random(4000) < share, 0.0, rng.lognormal(size=4000))
    places = quantiles(column).scale_values(column)
    assert places[column == 0].max() == 0.0
    assert np.ptp(places[column > 0]) > 0.7


@pytest.mark.parametrize("scaling", SCALINGS)
def test_a_missing_number_takes_the_place_of_the_median_and_has_an_indicator(scaling: Scaling):
    frame = pd.DataFrame(
        {"x": [5.0, np.nan, 1.0, 3.0], "never": [1.0, 2.0, 3.0, 4.0], "all": [np.nan] * 4}
    )
    encoding = FrameEncoding.fit(frame, scaling)
    assert encoding.encoding.names == ("x", "x=missing", "never", "all", "all=missing")
    matrix = encoding(frame)
    assert matrix[1, 0] == matrix[3, 0]
    assert matrix[:, 1].tolist() == [0, 1, 0, 0]
    assert np.unique(matrix[:, 3]).tolist() == [0]
    new = encoding(pd.DataFrame({"x": [np.nan], "never": [np.nan], "all": [7.0]}))
    assert np.isfinite(new).all()
    assert new[0, 0] == matrix[3, 0]
    assert new[0, 2] in matrix[:, 2]


def test_missing_is_a_level_of_its_own_and_an_unseen_level_counts_as_missing():
    frame = pd.DataFrame({"job": ["cook", None, "clerk"], "team": ["a", "b", "a"]})
    encoding = FrameEncoding.fit(frame)
    assert encoding.encoding.names == ("job=clerk", "job=cook", "job=missing", "team=a", "team=b")
    new = pd.DataFrame({"job": ["pilot", np.nan], "team": [None, "a"]})
    np.testing.assert_array_equal(encoding(new), [[0, 0, 1, 0, 0], [0, 0, 1, 1, 0]])
    encoding.schema.require_levels(new.assign(job="cook"))
    with pytest.raises(ValueError, match="'job' has 'pilot', which did not occur in training"):
        encoding.schema.require_levels(new)


def test_of_many_levels_the_most_frequent_keep_a_column():
    rng = np.random.default_rng(0)
    codes = (rng.pareto(0.5, 60_000) * 20).clip(max=20_000).astype(int)
    values = pd.Series([f"c{i:05d}" for i in codes])
    assert values.nunique() > 5000
    encoding = FrameEncoding.fit(values.to_frame("code"))
    (encoder,) = encoding.encoding.columns
    assert isinstance(encoder, Category)
    assert encoding.encoding.width == MOST_ENCODED_LEVELS
    counts = values.value_counts()
    least = counts[list(encoder.levels)].min()
    assert least >= counts.drop(list(encoder.levels)).max()
    matrix = encoding(values.to_frame("code"))
    assert (matrix.sum(axis=1) == 1).all()
    assert matrix[:, -1].sum() == counts.drop(list(encoder.levels)).sum()
    new = encoding(pd.DataFrame({"code": ["never seen", counts.index[0]]}))
    assert new[0, -1] == new[1].sum() == 1


def test_text_that_identifies_rows_is_refused_by_name():
    frame = pd.DataFrame({"who": [f"person {i}" for i in range(300)]})
    with pytest.raises(
        ValueError, match=r"column 'who' contains text in which nearly every value.*identifies rows"
    ):
        FrameEncoding.fit(frame)
    with pytest.raises(ValueError, match="'who'"):
        FrameEncoding.fit(frame.assign(who=frame["who"].where(frame.index % 20 > 0)))
    few = FrameEncoding.fit(frame.head(MOST_ENCODED_LEVELS))
    assert few.encoding.width == MOST_ENCODED_LEVELS


@pytest.mark.parametrize(
    ("values", "days"),
    [
        (pd.to_datetime(["2020-01-01", None, "2020-01-11"]), [18262, None, 18272]),
        ([datetime.date(2020, 1, 1), None, datetime.date(2020, 1, 11)], [18262, None, 18272]),
        ([datetime.datetime(2020, 1, 1, 12), None, None], [18262.5, None, None]),
        (pd.PeriodIndex(["2020-01", None, "2020-02"], freq="M"), [18262, None, 18293]),
        (pd.to_timedelta([36, None, 12], unit="h"), [1.5, None, 0.5]),
        ([datetime.time(6), None, datetime.time(18)], [0.25, None, 0.75]),
    ],
)
def test_dates_and_durations_count_days(values: Any, days: list[float | None]):
    frame = pd.DataFrame({"when": pd.Series(values)})
    encoding = FrameEncoding.fit(frame, "range")
    (column,) = encoding.encoding.columns
    known = [day for day in days if day is not None]
    assert isinstance(column, Scale)
    assert {*column.knots} == {min(known), max(known)}
    assert column.missing == (None in days)
    assert encoding.schema.kinds["when"] == ("duration" if known[0] < 2 else "date")
    assert np.isfinite(encoding(frame)).all()
    with pytest.raises(
        ValueError,
        match="column 'when' contains numbers; in the training rows, it contained",
    ):
        encoding(pd.DataFrame({"when": [1.0, 2.0]}))


def test_dates_are_the_same_in_any_resolution_and_a_column_of_nothing_is_taken():
    frame = pd.DataFrame({"when": pd.date_range("2020", periods=5)})
    encoding = FrameEncoding.fit(frame)
    for unit in ("s", "ms", "us", "ns"):
        np.testing.assert_array_equal(
            encoding(frame.astype(f"datetime64[{unit}]")), encoding(frame)
        )
    np.testing.assert_array_equal(encoding(pd.DataFrame({"when": [pd.NaT, None]})), [[0.5], [0.5]])
    np.testing.assert_array_equal(encoding(pd.DataFrame({"when": [None, None]})), [[0.5], [0.5]])
