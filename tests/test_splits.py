"""Groups stay together, time runs one way; the same in Python, in tables and on the command
line.
"""

import datetime
import json

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import log_loss
from typer.testing import CliRunner

from frhsic import load
from frhsic.cli import app
from frhsic.report import Report
from frhsic.splits import held_out_rows
from frhsic.tables.files import TableFile
from frhsic.tables.roles import ColumnRoles
from frhsic.tables.training import read_training_table

pytestmark = pytest.mark.usefixtures("few_trees")


def both(groups=None, order=None, share=0.2, seed=0):
    return held_out_rows(
        len(groups if order is None else order), share, seed=seed, groups=groups, order=order
    )


@pytest.mark.parametrize("share", [0.2, 0.5])
@pytest.mark.parametrize("sizes", [[1] * 100, list(range(1, 41)), [300] + [1] * 50])
def test_no_group_is_in_two_parts_and_the_part_is_as_near_to_its_share_as_whole_groups_allow(
    sizes, share
):
    groups = np.random.default_rng(0).permutation(
        np.repeat([f"g{i}" for i in range(len(sizes))], sizes)
    )
    fit, held = both(groups, share=share)
    assert sorted([*fit, *held]) == list(range(len(groups)))
    assert not set(groups[fit]) & set(groups[held])
    assert abs(len(held) - share * len(groups)) <= max(sizes)
    assert not np.array_equal(both(groups, share=share, seed=2)[1], held)
    assert np.array_equal(both(groups[:, None], share=share)[1], held)


def test_groups_are_drawn_and_not_taken_by_name_or_by_size():
    groups = np.repeat(np.arange(10), 3)
    held = [set(groups[both(groups, share=0.3, seed=seed)[1]].tolist()) for seed in range(200)]
    counts = [sum(group in one for one in held) for group in range(10)]
    assert min(counts) > 30  # 60 on average
    assert max(counts) < 90


@pytest.mark.parametrize(
    "keys",
    [
        lambda t: t,
        lambda t: t / 7 - 3,
        lambda t: pd.to_datetime("2020-01-01") + pd.to_timedelta(t, "D"),
        lambda t: [str(datetime.date(2019, 11, 1) + datetime.timedelta(int(day))) for day in t],
        lambda t: [datetime.date(2019, 11, 1) + datetime.timedelta(int(day)) for day in t],
    ],
)
def test_every_row_held_out_is_later_than_every_other(keys):
    day = np.random.default_rng(0).integers(0, 60, size=200)  # several rows of one day
    fit, held = both(order=keys(day))
    assert sorted([*fit, *held]) == list(range(200))
    assert day[fit].max() < day[held].min()
    assert abs(len(held) - 40) <= np.bincount(day).max()


@pytest.mark.parametrize("rows", ["of few days", "of all days"])
def test_with_groups_and_order_the_rows_held_out_are_later_and_of_other_groups(rows):
    rng = np.random.default_rng(0)
    group = rng.integers(0, 100, 1000)
    day = (
        group // 2 + rng.integers(0, 9, 1000)
        if rows == "of few days"
        else rng.integers(0, 365, 1000)
    )
    fit, held = both(group, day)
    assert day[fit].max() < day[held].min()
    assert not set(group[fit]) & set(group[held])
    assert len(held) >= (100 if rows == "of few days" else 20)
    assert len(fit) > 500
    later = (
        day >= day[held].min()
    )  # each group without earlier rows is held out with all of its rows
    new = set(group[later]) - set(group[~later])
    assert new <= set(group[held])


def test_dates_with_dots_are_day_month_and_year():
    written = ["02.12.2023", "01.02.2024", "28.01.2024", "03.01.2024"]
    parts = both(order=written, share=0.5)
    assert [set(part.tolist()) for part in parts] == [{0, 3}, {1, 2}]


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        (["01/02/2024", "02/01/2024"], "which cannot be ordered in time"),
        ([1.0, None, 2.0], "order is missing in 1 of 3 rows"),
        ([1, 1, 1], "order is the same in every row"),
        ([[1, 2], [3, 4]], "pass one value for each of the 2 rows"),
        (["May", "June", "July"], "order contains 'May', which cannot be ordered in time"),
    ],
)
def test_keys_that_do_not_order_rows_are_refused(keys, message):
    with pytest.raises(ValueError, match=message):
        both(order=keys, share=0.3)


def loans(n=300):
    rng = np.random.default_rng(0)
    person = np.repeat(np.arange(n // 3), 3)
    age, skill = np.round(rng.uniform(20, 70, n // 3))[person], rng.normal(size=n // 3)[person]
    return pd.DataFrame(
        {
            "person": [f"p{i}" for i in person],
            "day": pd.date_range("2021-01-01", periods=n).strftime("%Y-%m-%d")[rng.permutation(n)],
            "age": age,
            "skill": skill,
            "other": rng.normal(size=n),
            "repaid": (skill + 0.03 * (age - 45) > 0).astype(int),
        }
    )


def read(path, **roles):
    return read_training_table(TableFile.open(path), ColumnRoles("repaid", ("age",), **roles))


def test_a_table_is_split_by_its_columns_which_are_no_features(tmp_path):
    data, path = loans(), tmp_path / "loans.csv"
    data.loc[5, "day"] = None
    data.to_csv(path, index=False)
    grouped = read(path, groups="person", drop=("day",))
    assert list(grouped.X) == ["skill", "other"]
    train, test = grouped.split(0.2, 0)
    assert not set(grouped.groups[train]) & set(grouped.groups[test])
    assert (len(train), len(test)) == (240, 60)
    timed = read(path, order="day", drop=("person",))
    assert timed.dropped == 1  # a row without a date has no place in time
    train, test = timed.split(0.2, 0)
    assert timed.order[train].max() < timed.order[test].min()


@pytest.mark.parametrize(("option", "column"), [("--groups", "person"), ("--split-by", "day")])
def test_train_splits_by_a_column_and_reports_on_its_last_part(tmp_path, option, column):
    data, path = loans(), tmp_path / "loans.csv"
    data.to_csv(path, index=False)
    other = "day" if column == "person" else "person"
    asked = ["train", str(path), "-t", "repaid", "-s", "age", "--drop", other, option, column]
    asked += ["--max-rows", "100", "--limit", "none", "--out", str(tmp_path / "model"), "--json"]
    result = CliRunner().invoke(app, asked)
    assert result.exit_code == 0, result.output
    report = Report.from_dict(json.loads(result.stdout)["report"])
    rows = read(
        path, drop=(other,), **{"groups": column} if column == "person" else {"order": column}
    )
    _, test = rows.split(0.2, 0)
    assert report.audit.rows.used == len(test) == 60
    expected = log_loss(
        rows.y[test], load(tmp_path / "model").predict_proba(rows.X.iloc[test])[:, 1]
    )
    assert report.tradeoff.after.performance == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("share", [0.1, 0.3, 0.4])
def test_both_parts_have_the_same_share_of_each_class(share):
    y = np.random.default_rng(0).choice(3, 997, p=[0.02, 0.3, 0.68])
    first, second = (held_out_rows(997, share, seed=k, classes=y) for k in (0, 1))
    assert not np.array_equal(first[1], second[1])
    for train, held in (first, second):
        assert np.array_equal(np.sort(np.concatenate([train, held])), np.arange(997))
        counts = np.bincount(y[held], minlength=3)
        assert np.abs(counts - share * np.bincount(y)).max() < 1
