"""The real datasets: rows, columns, balance and sums, pinned."""

from __future__ import annotations

import io
import zipfile

import numpy as np
import pandas as pd
import pytest

from frhsic.datasets import catalogue, load_dataset
from frhsic.datasets.catalogue import ENTRIES
from frhsic.datasets.dataset import encoded
from real_data import raw_folder, real

__all__ = ["real"]

# name, variant: n, d, sum of y, sum of s, and sums of some columns of X. ACS Income: of the 46 % sample of the state.
PINNED = {
    ("adult", "published"): (
        32561, 107, 7841, 1256257,
        {"capital-gain": 35089324, "hours-per-week": 1316684, "sex=Male": 21790, "workclass=?": 1836},
    ),
    ("adult", "corrected"): (
        30162, 103, 7508, 1159364,
        {"capital-gain": 32937141, "hours-per-week": 1234568, "sex=Male": 20380, "education=Bachelors": 5044},
    ),
    ("acs_income", "published"): (
        20000, 9, 8163, 855178, {"WKHP": 757112, "OCCP": 79908508, "SCHL": 369333, "POBP": 1919744},
    ),
    ("acs_income", "corrected"): (
        20000, 98, 8163, 855178,
        {"WKHP": 757112, "OCCP=management": 2160, "POBP=Asia": 2759, "POBP=Latin America": 3046, "SCHL=21": 4887},
    ),
    ("meps", "published"): (13283, 19, 2848, 609705, {"TTLP15X": 427073210, "POVCAT15": 46490, "EDUCYR": 168852}),
    ("meps", "corrected"): (
        15830, 141, 2718, 555482,
        {"PCS42": 471438.34, "K6SUM42": 27982, "REGION53=3": 6139, "HIBPDX=-1": 4474, "INSCOV15=2": 5600},
    ),
    ("crime", "published"): (
        1994, 99, 474.53, 924.01, {"population": 114.84, "OtherPerCap": 567.74, "racepctblack": 358.18},
    ),
    ("crime", "corrected"): (
        1994, 99, 474.53, 358.18, {"population": 114.84, "OtherPerCap": 567.49, "householdsize": 924.01},
    ),
    ("compas", "published"): (
        6172, 16, 2809, 213147, {"priors_count": 20037, "sex=Female": 1175, "race=African-American": 3175},
    ),
    ("compas", "corrected"): (
        6172, 14, 2809, 213147, {"priors_count": 20037, "sex=Female": 1175, "c_charge_degree=F": 3970},
    ),
    ("bank", "corrected"): (41188, 61, 4640, 1648511, {"campaign": 105754, "poutcome=success": 1373}),
    ("credit", "corrected"): (30000, 32, 6636, 1064565, {"LIMIT_BAL": 5024529680, "PAY_0": -501, "MARRIAGE=3": 323}),
    ("support", "corrected"): (9105, 44, 4265, 570435.7427, {"num.co": 17014, "scoma": 109781, "ca=metastatic": 1858}),
    ("pension", "corrected"): (9275, 6, 3637, 364086.795164, {"age": 381019, "nettfa": 176889.787068, "pira": 2359}),
    ("wages", "corrected"): (6763, 19, 15203.871454, 321.126898, {"female": 3514, "phsrank": 379790, "south": 2212}),
}  # fmt: skip


@pytest.mark.parametrize(("name", "variant"), PINNED)
def test_rows_columns_balance_and_sums_are_the_pinned_ones(real, name, variant):
    data = real(name, variant)
    n, d, y, s, sums = PINNED[name, variant]
    assert (data.n, data.d) == (n, d)
    assert (n, d) == getattr(ENTRIES[name], variant)
    if name == "acs_income" and "the paper's rows" in data.provenance and "another" not in data.provenance:
        pytest.skip("the whole state is here; the sums are pinned for the sample")
    assert float(data.y.sum()) == pytest.approx(y, abs=1e-6)
    assert float(data.s.sum()) == pytest.approx(s, abs=1e-6)
    assert {column: float(data.X[column].sum()) for column in sums} == pytest.approx(sums, abs=1e-6)


@pytest.mark.parametrize(("name", "variant"), PINNED)
def test_every_split_is_finite_and_scaled_and_says_where_the_rows_are_from(real, name, variant):
    data = real(name, variant)
    split = data.split(42)
    assert split.train.x.isfinite().all()
    assert split.test.x.isfinite().all()
    assert (float(split.train.x.min()), float(split.train.x.max())) == (0.0, 1.0)
    assert len(split.train) == int(0.8 * data.n)
    assert "sha256" in data.provenance
    assert data.licence
    assert data.citation
    assert data.dropped
    assert data.attributes[0] not in data.X


@pytest.mark.parametrize("name", ["adult", "meps", "compas", "acs_income"])
def test_indicators_of_one_column_add_up_to_one(real, name):
    data = real(name)
    sources = {column.source for column in data.features if column.kind == "indicator"}
    for source in sources:
        own = [column.name for column in data.features if column.source == source]
        assert (data.X[own].sum(axis=1) == 1).all(), source


def test_published_crime_protects_the_neighbour_of_the_column_it_means(real):
    published, corrected = real("crime", "published"), real("crime")
    assert published.attributes == ("householdsize",)
    assert corrected.attributes == ("racepctblack",)
    assert published.s.std() == pytest.approx(0.1637, abs=1e-4)  # the published spectra imply a variance of .0264
    assert sorted(corrected.protecting("householdsize").X) == sorted(published.X)


def test_corrected_crime_leaves_the_imputation_to_the_split(real):
    data = real("crime")
    hole = data.X["OtherPerCap"].isna().to_numpy()
    assert hole.sum() == 1
    assert real("crime", "published").X.isna().to_numpy().sum() == 0
    split = data.split(42)
    part = split.train if hole[split.train.rows].any() else split.test
    position = int(np.flatnonzero(hole[part.rows])[0])
    column = list(data.X).index("OtherPerCap")
    observed = data.X["OtherPerCap"].to_numpy()[split.train.rows]
    low, high = np.nanmin(observed), np.nanmax(observed)
    assert float(part.x[position, column]) == pytest.approx((np.nanmedian(observed) - low) / (high - low), rel=1e-6)


def test_acs_codes_fall_into_their_documented_groups():
    births = pd.Series([6, 72, 158, 160, 161, 163, 207, 301, 303, 313, 440, 501], name="POBP")
    assert catalogue.acs_groups(births)[1].tolist() == [
        "US state", "US island area", "Asia", "Europe", "Asia", "Europe", "Asia", "Northern America",
        "Latin America", "Latin America", "Africa", "Oceania or at sea",
    ]  # fmt: skip
    jobs = pd.Series([10, 440, 500, 1021, 3255, 3603, 4720, 9830], name="OCCP")
    groups = catalogue.acs_groups(jobs)[1].tolist()
    assert groups[:4] == ["management", "management", "business and finance", "computers and mathematics"]
    assert groups[4:] == ["health care practice", "health care support", "sales", "military"]
    with pytest.raises(ValueError, match="code 9920"):
        catalogue.acs_groups(pd.Series([9920], name="OCCP"))


def state_archive(rows: int = 12, **columns: object) -> bytes:
    """A zip like the Census Bureau's, of a small state."""
    values = {name: np.arange(1, rows + 1) for name in ("COW", "SCHL", "MAR", "OCCP", "POBP", "RELP", "SEX", "RAC1P")}
    values |= {"AGEP": 30, "WKHP": 40, "PINCP": 60_000, "PWGTP": 1, "SERIALNO": "x"} | columns
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("psam_p06.csv", pd.DataFrame(values, index=range(rows)).to_csv(index=False))
        archive.writestr("../../evil.txt", "never extracted")
    return buffer.getvalue()


def test_the_official_archive_is_filtered_as_the_task_says():
    ages = [16, 17, *[30] * 10]
    hours = [40, 40, 0, *[40] * 9]
    income = [60_000, 60_000, 60_000, 100, 50_000, 50_001, *[7_000] * 6]
    weight = [1, 1, 1, 1, 1, 1, 0, *[1] * 5]
    table = pd.read_csv(
        io.BytesIO(catalogue.unpack_acs(state_archive(AGEP=ages, WKHP=hours, PINCP=income, PWGTP=weight)))
    )
    assert table["COW"].tolist() == [2, 5, 6, 8, 9, 10, 11, 12]
    assert table["PINCP_gt_50000"].tolist() == [1, 0, 1, 0, 0, 0, 0, 0]
    assert list(table) == catalogue.ACS_TABLE


def test_a_whole_state_is_known_by_its_length_and_by_rows_of_it():
    with pytest.raises(ValueError, match="has 12 rows; California in 2018 has 195665"):
        catalogue.check_acs(catalogue.unpack_acs(state_archive()))
    folder = raw_folder()
    if folder is None or not (folder / "acs_income" / "acsincome_ca_2018.csv.gz").is_file():
        pytest.skip("needs the sample of the state in a folder")
    sample = pd.read_csv(folder / "acs_income" / "acsincome_ca_2018.csv.gz").set_index("ca_row")
    table = pd.DataFrame(1, index=range(catalogue.ACS_ROWS), columns=catalogue.ACS_TABLE)
    with pytest.raises(ValueError, match="not the rows that are known"):
        catalogue.check_acs(table.to_csv(index=False).encode())
    table.loc[sample.index] = sample[catalogue.ACS_TABLE]
    catalogue.check_acs(table.to_csv(index=False).encode())


def test_a_value_outside_the_levels_given_is_an_error():
    with pytest.raises(ValueError, match=r"the values \[9\], which are not among"):
        encoded(pd.DataFrame({"COW": [1, 9]}), [], {"COW": [1, 2]})


def test_support_knows_nothing_of_what_came_later(real):
    data = real("support")
    later = ("hospdead", "death", "d.time", "slos", "sfdm2", "charges", "tot", "dnr", "surv", "prg", "aps")
    assert not [column for column in data.X if column.startswith(later)]
    assert data.X["glucose"].isna().sum() == 4500


@pytest.mark.parametrize(
    ("name", "variant", "message"),
    [
        ("aduld", "corrected", "Did you mean 'adult'"),
        ("zzz", "corrected", "There are: adult, acs_income"),
        ("adult", "correct", "variant="),
        ("bank", "published", "does not use"),
    ],
)
def test_a_dataset_that_is_not_there_is_an_error(name, variant, message):
    with pytest.raises(ValueError, match=message):
        load_dataset(name, variant)
