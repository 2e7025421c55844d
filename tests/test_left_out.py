"""How rows that lack an attribute differ from the others: interval and sentence."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from frhsic.intervals import Interval, mean_difference
from frhsic.sentences import left_out


def test_the_interval_is_that_of_welchs_test_in_scipy():
    rng = np.random.default_rng(0)
    x, y = rng.normal(1, 2, 30), rng.normal(0, 1, 12)
    interval = mean_difference(x, y, 0.9)
    assert interval is not None
    ends = stats.ttest_ind(x, y, equal_var=False).confidence_interval(0.9)
    assert (interval.low, interval.high) == pytest.approx((ends.low, ends.high))


def test_it_covers_a_skewed_difference_as_often_as_it_says():
    rng = np.random.default_rng(1)
    intervals = [mean_difference(rng.exponential(1.0, 400), rng.exponential(2.0, 150)) for _ in range(400)]
    covered = np.mean([i.low <= -1.0 <= i.high for i in intervals if i is not None])
    assert 0.91 < covered < 0.98


def test_one_row_or_constant_scores_have_no_interval():
    assert mean_difference(np.ones(1), np.arange(5.0)) is None
    assert mean_difference(np.ones(4), np.zeros(5)) is None
    assert mean_difference(np.ones(4), np.arange(5.0)) is not None


@pytest.mark.parametrize(
    ("ends", "said"),
    [
        ((0.01, 0.05), "is 0.0300 above theirs (95 % interval 0.0100 to 0.0500): these numbers need not hold"),
        ((-0.05, -0.01), "is 0.0300 below theirs"),
        ((-0.01, 0.03), "which chance alone could explain."),
    ],
)
def test_the_sentence_says_how_many_and_how_they_differ(ends: tuple[float, float], said: str):
    text = left_out(1200, 5000, ["age", "income"], Interval(*ends, 0.95, "Welch's t"))
    assert text.startswith("1,200 of 5,000 rows lack age or income and are left out. The mean score of the other rows")
    assert said in text.replace("\u00a0", " ")
