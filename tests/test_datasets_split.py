"""Splits: which rows, and what they are scaled by."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch

from frhsic.datasets import Dataset, Feature
from frhsic.datasets.dataset import partition


def toy(n: int = 50, holes: int = 0, task: str = "binary", **changes: object) -> Dataset:
    draw = np.random.default_rng(0)
    X = pd.DataFrame(
        {"a": draw.normal(size=n) * 7 + 3, "b": draw.integers(0, 2, n).astype(float), "c": np.full(n, 4.0)}
    )
    X.loc[: holes - 1, "a"] = np.nan
    fields = {
        "name": "toy",
        "variant": "own",
        "X": X,
        "y": pd.Series(draw.integers(0, 2, n).astype(float), name="y"),
        "s": pd.Series(draw.uniform(20, 60, n), name="age"),
        "features": (Feature.numeric("a"), Feature.indicator("b", "yes"), Feature.numeric("c")),
        "task": task,
    }
    fields["X"].columns = ["a", "b=yes", "c"]
    return Dataset(**(fields | changes))


def test_training_rows_are_the_first_of_the_legacy_permutation():
    data = toy(53)
    split = data.split(44)
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
    two, three = data.split(42), data.split(42, validation=validation)
    assert three.test.rows.tolist() == two.test.rows.tolist()
    assert three.validation is not None
    assert [*three.train.rows, *three.validation.rows] == two.train.rows.tolist()


def test_scaling_is_by_the_training_rows_alone():
    data = toy(60)
    split = data.split(1)
    changed = data.X.copy()
    changed.iloc[split.test.rows] = 1e6
    s = data.s.copy()
    s.iloc[split.test.rows] = -500.0
    again = toy(60, X=changed, s=s).split(1)
    assert torch.equal(again.train.x, split.train.x)
    assert torch.equal(again.train.s, split.train.s)


def test_scaling_is_minus_minimum_over_range_by_definition(dtype):
    data = toy(40)
    split = data.split(3, dtype=dtype)
    a = data.X["a"].to_numpy()
    low, high = a[split.train.rows].min(), a[split.train.rows].max()
    expected = (a[split.test.rows] - low) / (high - low)
    np.testing.assert_allclose(split.test.x[:, 0].numpy(), expected, rtol=4 * torch.finfo(dtype).eps, atol=1e-7)
    assert split.train.x.dtype == split.train.s.dtype == split.train.y.dtype == dtype
    assert float(split.train.s.min()) == 0.0
    assert float(split.train.s.max()) == 1.0


def test_missing_values_become_the_median_of_the_training_rows():
    data = toy(60, holes=20)
    split = data.split(5)
    a = data.X["a"].to_numpy()
    median = np.nanmedian(a[split.train.rows])
    assert median != np.nanmedian(a)
    low, high = np.nanmin(a[split.train.rows]), np.nanmax(a[split.train.rows])
    holes = np.isnan(a[split.test.rows])
    assert holes.any()
    np.testing.assert_allclose(split.test.x[:, 0].numpy()[holes], (median - low) / (high - low), rtol=1e-6)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"train": 0.9, "validation": 0.1}, "leaves 45 to train, 5 to validate and 0 to test"),
        ({"train": 1.2}, "train=1.2"),
        ({"validation": 0.85}, "each part needs at least one"),
        ({"validation": -0.1}, "validation=-0.1"),
        ({"scaling": "test"}, "scaling='test'"),
        ({"validation": 0.001}, "0 to validate"),
    ],
)
def test_a_split_that_cannot_be_says_why(arguments, message):
    with pytest.raises(ValueError, match=message):
        toy(50).split(0, **arguments)


def test_protecting_moves_columns_and_gives_back_the_former_one():
    data = toy(20)
    moved = data.protecting("a")
    assert moved.attributes == ("a",)
    assert list(moved.X) == ["age", "b=yes", "c"]
    assert moved.X["age"].tolist() == data.s.tolist()
    back = moved.protecting("age")
    assert back.s.tolist() == data.s.tolist()
    assert sorted(back.X) == sorted(data.X)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (("agee",), "Did you mean 'age'"),
        (("b=yes",), "one level of a categorical column"),
        ((), "at least one"),
        (("a", "a"), "twice"),
    ],
)
def test_protecting_says_what_is_wrong(names, message):
    with pytest.raises(ValueError, match=message):
        toy(20).protecting(*names)


def test_a_sample_is_the_head_of_the_permutation():
    data = toy(20)
    assert data.sample(5, 42).s.tolist() == data.s.iloc[np.random.RandomState(42).permutation(20)[:5]].tolist()
    with pytest.raises(ValueError, match="has 20 rows"):
        data.sample(21, 42)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"y": pd.Series([0.0, 1.0])}, "lengths differ"),
        ({"s": pd.Series([np.nan] * 30)}, "s has 30 missing"),
        ({"features": (Feature.numeric("a"),)}, "do not match"),
    ],
)
def test_a_dataset_that_does_not_fit_together_is_refused(changes, message):
    whole = toy(30)
    with pytest.raises(ValueError, match=message):
        Dataset(**({f: getattr(whole, f) for f in whole.__dataclass_fields__} | changes))
