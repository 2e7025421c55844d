"""The fresh tables of the second round: described in full, and read with the shape that was
committed.
"""

from __future__ import annotations

import re

import numpy as np
import pytest

from frhsic.datasets.sources import local_place
from frhsic_paper.crossed.rows import FRESH, NUMBERS, OTHER, SEEN, load

TABLES = {name: OTHER[name] for name in FRESH}


def test_fresh_tables_are_no_table_of_an_earlier_comparison():
    earlier = {table.sha256 for name, table in OTHER.items() if name not in FRESH}
    assert len({table.sha256 for table in TABLES.values()} - earlier) == len(FRESH) == 12
    assert not set(FRESH) & set(SEEN)
    assert {name for name in FRESH if OTHER[name].kind == "number"} == set(FRESH) & set(NUMBERS)


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_an_entry_names_its_file_its_columns_and_the_reasons_for_those_left_out(table):
    assert re.fullmatch(r"[a-z-]+==[0-9.]+", table.wheel or table.sdist)
    assert bool(table.archive) == bool(table.sdist)
    assert re.fullmatch("[0-9a-f]{64}", table.sha256)
    assert 1000 <= table.n <= 50_000
    assert table.distinct >= 30
    features = table.features.split()
    target = set(re.findall(r"[A-Za-z]\w*", re.sub("'.*?'", "", table.target)))
    columns = [*features, *table.left_out, *target, table.sensitive]
    assert len(columns) == len(set(columns)) >= 7
    assert set(table.categories.split()) <= set(features)
    assert all(table.left_out.values())


@pytest.mark.parametrize("name", FRESH)
def test_unseen_table_has_the_rows_and_values_that_were_committed(name):
    if local_place([OTHER[name].file]) is None:
        pytest.skip(f"{OTHER[name].member} is not in the cache")
    X, y, s = OTHER[name].read()
    assert (len(y), len(np.unique(s))) == (OTHER[name].n, OTHER[name].distinct)
    assert list(X) == OTHER[name].features.split()
    assert np.isfinite(y).all()
    assert np.isfinite(s).all()
    assert X.nunique().min() >= 2
    assert load(name).binary == (name not in NUMBERS)
