"""Splits of a dataset by the paper's rule, and other columns as the sensitive attributes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch

from frhsic.datasets import Dataset
from frhsic_paper.datasets import protect
from frhsic_paper.splits import partition, split_dataset


def toy(n: int = 50, holes: int = 0) -> Dataset:
    draw = np.random.default_rng(0)
    X = pd.DataFrame(
        {
            "a": draw.normal(size=n) * 7 + 3,
            "b=yes": draw.integers(0, 2, n).astype(float),
            "c": np.full(n, 4.0),
        }
    )
    X.loc[: holes - 1, "a"] = np.nan
    y, s = (
        pd.Series(draw.integers(0, 2, n).astype(float), name="y"),
        pd.Series(draw.uniform(20, 60, n), name="age"),
    )
    return Dataset("toy", X, y, s, "binary")


def test_training_rows_are_the_first_of_the_legacy_permutation():
    data = toy(53)
    split = split_dataset(data, 44)
    order = np.random.RandomState(44).permutation(53)
    assert split.train.rows.tolist() == order[:42].tolist()  # floor(0.8 * 53) = 42
    assert split.test.rows.tolist() == order[42:].tolist()
    assert split.validation is None
    assert split.train.y.tolist() == data.y.to_numpy()[order[:42]].tolist()


@pytest.mark.parametrize(
    ("n", "shares", "sizes"),
    [
        (32561, (0.7, 0.15), [22792, 4884]),
        (1994, (0.7, 0.15), [1395, 299]),
        (6172, (0.7, 0.15), [4320, 925]),
        (32561, (None, 0.0), [26048, 0]),
        (13283, (None, 0.0), [10626, 0]),
        (100, (0.29, 0.0), [29, 0]),  # 0.29 * 100 is 28.999999999999996
    ],
)
def test_parts_have_the_published_sizes(n, shares, sizes):
    assert [len(part) for part in partition(np.arange(n), *shares)] == [*sizes, n - sum(sizes)]


@pytest.mark.parametrize("validation", [0.1, 0.15, 0.2])
def test_the_test_rows_do_not_depend_on_the_validation_share(validation):
    data = toy(97)
    two, three = split_dataset(data, 42), split_dataset(data, 42, validation=validation)
    assert three.test.rows.tolist() == two.test.rows.tolist()
    assert three.validation is not None
    assert [*three.train.rows, *three.validation.rows] == two.train.rows.tolist()


def test_scaling_is_by_the_training_rows_alone():
    data = toy(60)
    split = split_dataset(data, 1)
    changed = data.X.copy()
    changed.iloc[split.test.rows] = 1e6
    s = data.s.copy()
    s.iloc[split.test.rows] = -500.0
    again = split_dataset(replace(data, X=changed, s=s), 1)
    assert torch.equal(again.train.x, split.train.x)
    assert torch.equal(again.train.s, split.train.s)


def test_scaling_is_minus_minimum_over_range_by_definition():
    data = toy(40)
    split = split_dataset(data, 3)
    a = data.X["a"].to_numpy()
    low, high = a[split.train.rows].min(), a[split.train.rows].max()
    expected = (a[split.test.rows] - low) / (high - low)
    np.testing.assert_allclose(split.test.x[:, 0].numpy(), expected, rtol=1e-6, atol=1e-7)
    assert split.train.x.dtype == split.train.s.dtype == split.train.y.dtype == torch.float32
    assert float(split.train.s.min()) == 0.0
    assert float(split.train.s.max()) == 1.0


def test_missing_values_become_the_median_of_the_training_rows():
    data = toy(60, holes=20)
    split = split_dataset(data, 5)
    a = data.X["a"].to_numpy()
    median = np.nanmedian(a[split.train.rows])
    assert median != np.nanmedian(a)
    low, high = np.nanmin(a[split.train.rows]), np.nanmax(a[split.train.rows])
    holes = np.isnan(a[split.test.rows])
    assert holes.any()
    np.testing.assert_allclose(
        split.test.x[:, 0].numpy()[holes], (median - low) / (high - low), rtol=1e-6
    )


def test_protecting_moves_columns_and_gives_back_the_former_one():
    data = toy(20)
    moved = protect(data, "a")
    assert moved.attributes == ("a",)
    assert list(moved.X) == ["age", "b=yes", "c"]
    assert moved.X["age"].tolist() == data.s.tolist()
    back = protect(moved, "age")
    assert back.s.tolist() == data.s.tolist()
    assert sorted(back.X) == sorted(data.X)


@pytest.mark.parametrize(
    ("train", "validation", "message"),
    [
        (0.9, 0.1, "leave 45 to train, 5 to validate and 0 to test"),
        (1.2, 0.0, "train=1.2"),
        (None, 0.85, "each part needs at least one"),
        (None, -0.1, "validation=-0.1"),
        (None, 0.001, "0 to validate"),
    ],
)
def test_a_part_without_rows_is_refused(train, validation, message):
    with pytest.raises(ValueError, match=message):
        split_dataset(toy(), 0, train=train, validation=validation)
