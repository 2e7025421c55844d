"""Groups stay together, time runs one way; the same in Python, in tables and on the command line."""

from __future__ import annotations

import datetime
import json
import time
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import log_loss
from typer.testing import CliRunner

from frhsic import load
from frhsic.cli import _terminal, app
from frhsic.report import Report
from frhsic.splits import by_group, in_order
from frhsic.tables import ColumnRoles, TrainingTable, read_training_table

pytestmark = pytest.mark.usefixtures("few_trees")

SHARES = [[0.2], [0.2, 0.3]]


@pytest.mark.parametrize("shares", SHARES)
@pytest.mark.parametrize("sizes", [[1] * 100, list(range(1, 41)), [300] + [1] * 50])
def test_no_group_is_in_two_parts_and_each_part_is_as_near_to_its_share_as_whole_groups_allow(sizes, shares):
    groups = np.random.default_rng(0).permutation(np.repeat([f"g{i}" for i in range(len(sizes))], sizes))
    parts = by_group(groups, shares, seed=1)
    assert sorted(np.concatenate(parts)) == list(range(len(groups)))
    assert all(len(part) for part in parts)
    seen = [set(groups[part]) for part in parts]
    assert sum(map(len, seen)) == len(sizes)
    for part, share in zip(parts[1:], shares):
        assert abs(len(part) - share * len(groups)) <= max(sizes)
    assert not np.array_equal(by_group(groups, shares, seed=2)[1], parts[1])
    assert np.array_equal(by_group(groups, shares, seed=1)[1], parts[1])


def test_groups_are_drawn_and_not_taken_by_name_or_by_size():
    groups = np.repeat(np.arange(10), 3)
    held = [set(groups[by_group(groups, [0.3], seed=seed)[1]].tolist()) for seed in range(200)]
    counts = [sum(group in one for one in held) for group in range(10)]
    assert min(counts) > 30  # 60 on average
    assert max(counts) < 90


@pytest.mark.parametrize("shares", SHARES)
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
def test_every_row_of_a_part_is_later_than_every_row_of_the_one_before(keys, shares):
    day = np.random.default_rng(0).integers(0, 60, size=200)  # several rows of one day
    parts = in_order(keys(day), shares)
    assert sorted(np.concatenate(parts)) == list(range(200))
    for earlier, later in pairwise(parts):
        assert day[earlier].max() < day[later].min()
    for part, share in zip(parts[1:], shares):
        assert abs(len(part) - 200 * share) <= np.bincount(day).max()


def test_dates_with_dots_are_day_month_and_year():
    written = ["02.12.2023", "01.02.2024", "28.01.2024", "03.01.2024"]
    parts = in_order(written, [0.5])
    assert [set(part.tolist()) for part in parts] == [{0, 3}, {1, 2}]


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        (["01/02/2024", "02/01/2024"], "whose order in time is not clear"),
        ([1.0, None, 2.0], "order lacks a value in 1 of 3 rows"),
        ([1, 1, 1], "order has 1 different value"),
        ([[1, 2], [3, 4]], "pass one value for each row"),
        (["May", "June", "July"], "order holds 'May', whose order in time is not clear"),
    ],
)
def test_keys_that_do_not_order_rows_are_refused(keys, message):
    with pytest.raises(ValueError, match=message):
        in_order(keys, [0.3])


def loans(n: int = 300) -> pd.DataFrame:
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


def read(path, **roles) -> TrainingTable:
    return read_training_table(path, ColumnRoles("repaid", ("age",), **roles))


def test_a_table_is_split_by_its_columns_which_are_no_features(tmp_path):
    data, path = loans(), tmp_path / "loans.csv"
    data.loc[5, "day"] = None
    data.to_csv(path, index=False)
    grouped = read(path, groups="person", drop=("day",))
    assert list(grouped.X) == ["skill", "other"]
    persons = [set(grouped.groups[rows]) for rows in grouped.split_rows([0.2, 0.2], 0)]
    assert sum(map(len, persons)) == 100
    assert [len(y) for _, y, _ in grouped.split([0.2, 0.2], 0)] == [180, 60, 60]
    timed = read(path, order="day", drop=("person",))
    assert timed.dropped == 1  # a row without a date has no place in time
    days = [timed.order[rows] for rows in timed.split_rows([0.2, 0.2], 0)]
    assert max(days[0]) < min(days[1]) <= max(days[1]) < min(days[2])


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
    rows = read(path, drop=(other,), **{"groups": column} if column == "person" else {"order": column})
    X, y, _ = rows.split([0.2], 0)[-1]
    assert report.audit.rows.used == len(y) == 60
    expected = log_loss(y, load(tmp_path / "model").predict_proba(X)[:, 1])
    assert report.tradeoff.after.performance == pytest.approx(expected, rel=1e-9)


def test_a_table_of_one_column_splits_as_its_column():
    groups = np.repeat(np.arange(10), 5)
    for one, other in zip(by_group(groups[:, None], [0.2], seed=0), by_group(groups, [0.2], seed=0)):
        np.testing.assert_array_equal(one, other)


def test_in_a_log_a_long_step_is_a_line_and_a_short_one_is_not(capsys, monkeypatch):
    monkeypatch.setattr(_terminal, "LOGGED_AFTER", 0.2)
    with _terminal.steps() as watch:
        watch("a short step")
        watch("a long step")
        time.sleep(0.6)
        watch("the last step")
    time.sleep(0.4)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("frhsic: a long step, since ")
