"""The paper's tables under both protocols: rows, columns, values and splits."""

from __future__ import annotations

import hashlib

import numpy as np
import pandas as pd
import pytest

from frhsic.datasets import Dataset, load_dataset
from frhsic_paper.datasets import load_published, load_variant, protect
from frhsic_paper.protocol import CORRECTED, DATASETS, PROTOCOLS, PUBLISHED
from frhsic_paper.splits import split_dataset
from real_data import real

# name: n, d, sum of y, sum of s, and sums of some columns of X of the published table. ACS Income:
# of the 46 % sample of the state.
PINNED = {
    "adult": (
        32561,
        107,
        7841,
        1256257,
        {
            "capital-gain": 35089324,
            "hours-per-week": 1316684,
            "sex=Male": 21790,
            "workclass=?": 1836,
        },
    ),
    "acs_income": (
        20000,
        9,
        8163,
        855178,
        {"WKHP": 757112, "OCCP": 79908508, "SCHL": 369333, "POBP": 1919744},
    ),
    "meps": (
        13283,
        19,
        2848,
        609705,
        {"TTLP15X": 427073210, "POVCAT15": 46490, "EDUCYR": 168852},
    ),
    "crime": (
        1994,
        99,
        474.53,
        924.01,
        {"population": 114.84, "OtherPerCap": 567.74, "racepctblack": 358.18},
    ),
    "compas": (
        6172,
        16,
        2809,
        213147,
        {"priors_count": 20037, "sex=Female": 1175, "race=African-American": 3175},
    ),
}

# The first digits of the checksums of X, y and s, and of the rows of the published splits.
CHECKSUMS = {
    ("adult", "published"): ("af929f210095", "0e8a04e90d1e"),
    ("adult", "corrected"): ("9bf894ae8234", "af492e8e0d1e"),
    ("acs_income", "published"): ("56e3be5bd40d", "750a78813b42"),
    ("acs_income", "corrected"): ("afa64d14734d", "750a78813b42"),
    ("meps", "published"): ("2fff88f84266", "c2e1db28c4f3"),
    ("meps", "corrected"): ("2a660c86078f", "ac256834cac3"),
    ("crime", "published"): ("d46c9c1ef313", "fb6613b96c76"),
    ("crime", "corrected"): ("a16940cc2483", "fb6613b96c76"),
    ("compas", "published"): ("07dd38c9a9ee", "c4d5e13b7145"),
    ("compas", "corrected"): ("353a190c4e1c", "c4d5e13b7145"),
}


def paper_table(name: str, protocol: str) -> Dataset:
    """Return a table, unless it is a draw from the whole state, which is not pinned."""
    data = real(load_variant, name, PROTOCOLS[protocol])
    if name == "acs_income" and "not the paper's draw" not in data.provenance:
        pytest.skip("the whole state is here; the sample is pinned")
    return data


def checksum(*arrays: np.ndarray | list[str]) -> str:
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(str(array).encode() if isinstance(array, list) else array.tobytes())
    return digest.hexdigest()[:12]


def table_checksum(data: Dataset) -> str:
    """Return the checksum of the names and values, in millionths: how text becomes a float64 may
    differ in the last bit between processors.
    """
    table = pd.concat([data.X, data.y, data.s], axis=1)
    values = np.nan_to_num(table.to_numpy(np.float64), nan=-1e9)
    return checksum([*map(str, table.columns)], np.rint(values * 1e6).astype("<i8"))


def split_checksum(data: Dataset) -> str:
    """Return the checksum of the training, validation and test rows of the published seeds."""
    splits = [split_dataset(data, seed, validation=0.2) for seed in range(42, 47)]
    parts = [part for one in splits for part in (one.train, one.validation, one.test)]
    return checksum(*(part.rows.astype("<i8") for part in parts))


@pytest.mark.parametrize("name", DATASETS)
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_names_values_and_splits_are_those_of_the_records(name, protocol):
    data = paper_table(name, protocol)
    assert (table_checksum(data), split_checksum(data)) == CHECKSUMS[name, protocol]


@pytest.mark.parametrize("name", DATASETS)
def test_a_published_table_has_the_pinned_sums(name):
    data = paper_table(name, "published")
    n, d, y, s, sums = PINNED[name]
    assert (data.n, data.d) == (n, d)
    assert float(data.y.sum()) == pytest.approx(y, abs=1e-6)
    assert float(data.s.sum()) == pytest.approx(s, abs=1e-6)
    assert {column: float(data.X[column].sum()) for column in sums} == pytest.approx(sums, abs=1e-6)


@pytest.mark.parametrize("name", DATASETS)
def test_a_published_table_says_where_its_rows_are_from_and_splits_into_scaled_rows(name):
    data = real(load_variant, name, PUBLISHED)
    split = split_dataset(data, 42)
    assert split.train.x.isfinite().all()
    assert split.test.x.isfinite().all()
    assert (float(split.train.x.min()), float(split.train.x.max())) == (0.0, 1.0)
    assert len(split.train) == int(0.8 * data.n)
    assert "sha256" in data.provenance
    assert all((data.licence, data.citation, data.dropped))
    assert data.attributes[0] not in data.X


def test_published_crime_protects_the_neighbour_of_the_column_it_means():
    published, corrected = (
        real(load_variant, "crime", protocol) for protocol in (PUBLISHED, CORRECTED)
    )
    assert published.attributes == ("householdsize",)
    assert corrected.attributes == ("racepctblack",)
    assert published.s.std() == pytest.approx(
        0.1637, abs=1e-4
    )  # the published spectra imply a variance of .0264
    assert sorted(protect(corrected, "householdsize").X) == sorted(published.X)


def test_published_crime_is_imputed_before_the_split_and_the_reasons_say_so():
    published = real(load_published, "crime")
    assert published.X.isna().to_numpy().sum() == 0
    assert "median over all rows" in published.dropped[-1]
    assert not any("stays NaN" in reason for reason in published.dropped)


def test_published_compas_has_the_counts_of_days_and_does_not_list_them_as_dropped():
    published, corrected = real(load_published, "compas"), real(load_dataset, "compas")
    days = {"days_b_screening_arrest", "c_days_from_compas"}
    assert {*published.X} - {*corrected.X} == days
    assert sum("days_b_screening_arrest" in reason for reason in corrected.dropped) == 1
    assert not any("days_b_screening_arrest" in reason for reason in published.dropped)


def test_a_table_that_the_paper_does_not_use_is_not_published():
    with pytest.raises(ValueError, match="does not use bank"):
        load_published("bank")
