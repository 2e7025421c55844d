"""One place for output: what it refuses, and that a command writes all its files or none."""

from __future__ import annotations

import itertools
import os
import resource
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cli_samples import ASKED, done, one_line_and_2, table
from frhsic import _files
from frhsic._files import open_whole, require_writable, write_together, write_whole

pytestmark = pytest.mark.usefixtures("few_trees", "few_epochs")


@pytest.fixture
def csv(tmp_path: Path) -> Path:
    path = tmp_path / "people.csv"
    table(120).to_csv(path, index=False)
    return path


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def failing(function: Callable[..., Any], at: int, error: BaseException) -> Callable[..., Any]:
    """Return a function whose call of a given number fails."""
    calls = itertools.count(1)

    def wrapped(*arguments: Any, **named: Any) -> Any:
        if next(calls) == at:
            raise error
        return function(*arguments, **named)

    return wrapped


def by_link(csv: Path) -> Path:
    (csv.parent / "link.html").symlink_to(csv)
    return csv.parent / "link.html"


def by_hard_link(csv: Path) -> Path:
    os.link(csv, csv.parent / "link.html")
    return csv.parent / "link.html"


@pytest.mark.parametrize(
    "way", [Path, lambda csv: csv.parent / ".." / csv.parent.name / csv.name, by_link, by_hard_link]
)
def test_the_table_is_not_overwritten(csv: Path, way: Callable[[Path], Path]):
    before = csv.read_bytes()
    assert "would overwrite the table" in one_line_and_2(
        ["audit", str(csv), *ASKED, "-o", str(way(csv))]
    )
    assert csv.read_bytes() == before


def test_the_model_that_is_audited_is_not_overwritten(csv: Path):
    model = csv.parent / "model"
    model.write_bytes(b"x")
    asked = ["audit", str(csv), "-s", "age", "--model", str(model), "-o", str(model)]
    assert "would overwrite the model" in one_line_and_2(asked)


@pytest.mark.parametrize(
    "make", [None, lambda out: out.symlink_to("/dev/null"), os.mkfifo, Path.mkdir]
)
def test_devices_pipes_and_folders_are_refused_and_stay(
    csv: Path, make: Callable[[Path], None] | None
):
    target = csv.parent / "out" if make else Path("/dev/null")
    if make:
        make(target)
    one_line_and_2(["audit", str(csv), *ASKED, "-o", str(target)])
    assert not stat.S_ISREG(target.stat().st_mode)
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)


@pytest.mark.parametrize(
    "command",
    [
        ["train", "people.csv", "-t", "y", "-s", "age", "-o"],
        ["audit", "people.csv", *ASKED, "-o"],
        ["predict", "model", "people.csv", "-o"],
    ],
    ids=lambda command: command[0],
)
def test_a_file_is_refused_before_anything_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: list[str]
):
    monkeypatch.chdir(tmp_path)
    for name in ("people.csv", "model"):
        Path(name).write_bytes(b"")  # reading either would fail
    told = one_line_and_2([*command, "missing/out"])
    assert "the folder 'missing'" in told
    assert names(tmp_path) == {"people.csv", "model"}


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="takes no new files from root either")
def test_a_folder_that_takes_no_new_files_is_told_before_anything_is_read(csv: Path):
    csv.write_bytes(b"")
    asked = [str(csv), "-t", "y", "-s", "age", "--features", "score"]
    said = one_line_and_2(["train", *asked, "-o", "/proc/self/model"])
    assert "the model '/proc/self/model' cannot be written: " in said


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_or_file_that_is_read_only_is_refused(tmp_path: Path):
    tmp_path.chmod(0o500)
    with pytest.raises(ValueError, match="cannot be written"):
        require_writable({"report": tmp_path / "report.html"})
    tmp_path.chmod(0o700)


def test_a_file_that_is_read_only_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    report = tmp_path / "report.html"
    report.write_text("old")
    monkeypatch.setattr(
        os, "access", lambda path, mode: Path(path) != report
    )  # root may write everywhere
    with pytest.raises(ValueError, match=r"report.html' cannot be written: the file is read-only"):
        require_writable({"report": report})
    with pytest.raises(ValueError, match="read-only"):
        write_whole(report, b"new")
    assert report.read_text() == "old"


def test_two_outputs_are_two_files(tmp_path: Path):
    with pytest.raises(ValueError, match="would be the same file"):
        require_writable({"model": tmp_path / "a", "report": tmp_path / "." / "a"})


@pytest.mark.parametrize(
    "error", [OSError("disk full"), KeyboardInterrupt(), SystemExit(143), MemoryError()]
)
@pytest.mark.parametrize("step", ["fsync", "replace"])
@pytest.mark.parametrize("at", [1, 2, 3])
def test_a_failure_on_the_way_leaves_every_file_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException, step: str, at: int
):
    (tmp_path / "b").write_bytes(b"old b")
    (tmp_path / "b").chmod(0o640)
    monkeypatch.setattr(_files.os, step, failing(getattr(os, step), at, error))
    with pytest.raises(type(error)):
        write_together({tmp_path / name: name.encode() for name in "abc"})
    monkeypatch.undo()
    assert names(tmp_path) == {"b"}
    assert (tmp_path / "b").read_bytes() == b"old b"
    assert mode(tmp_path / "b") == 0o640
    write_together({tmp_path / name: name.encode() for name in "abc"})
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {
        "a": b"a",
        "b": b"b",
        "c": b"c",
    }


@pytest.mark.skipif(not hasattr(os, "O_TMPFILE"), reason="files without a name are of Linux")
def test_a_kill_while_a_file_is_written_leaves_nothing_of_it(tmp_path: Path):
    (tmp_path / "scores.csv").write_text("old")
    with _files.open_whole(tmp_path / "scores.csv") as stream:
        stream.write("new")
        stream.flush()
        assert names(tmp_path) == {"scores.csv"}  # what a kill would leave now
        assert (tmp_path / "scores.csv").read_text() == "old"
    assert names(tmp_path) == {"scores.csv"}
    assert (tmp_path / "scores.csv").read_text() == "new"


def test_where_files_need_a_name_they_are_written_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(_files, "_nameless", lambda folder, mode: None)
    write_together({tmp_path / "a": b"1", tmp_path / "b": b"2"})
    assert names(tmp_path) == {"a", "b"}


def test_a_link_keeps_leading_to_the_file(tmp_path: Path):
    (tmp_path / "latest").symlink_to(tmp_path / "report")
    write_whole(tmp_path / "latest", b"1")
    write_whole(tmp_path / "latest", b"2")
    assert (tmp_path / "latest").is_symlink()
    assert (tmp_path / "report").read_bytes() == b"2"


def test_a_name_of_any_length_that_the_system_has_is_written(tmp_path: Path):
    write_whole(tmp_path / ("a" * 255), b"1")
    assert names(tmp_path) == {"a" * 255}


def test_files_that_cannot_be_written_whole_are_not_written_in_part(csv: Path):
    asked = ["train", str(csv), "-t", "y", "-s", "age", "--features", "score", "--max-rows", "100"]
    files = ["-o", str(csv.parent / "model"), "-r", str(csv.parent / "report.html")]
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
        assert "File too large" in done([*asked, *files], 2).stderr
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert names(csv.parent) == {"people.csv"}


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("old", [0o600, 0o640, 0o664, 0o666])
def test_a_file_keeps_the_mode_of_what_it_replaces(tmp_path: Path, old: int):
    report, scores = tmp_path / "report.html", tmp_path / "scores.csv"
    for path in (report, scores):
        path.write_text("old")
        path.chmod(old)
    write_whole(report, b"new")
    with open_whole(scores) as stream:
        stream.write("new")
    assert [(path.read_text(), mode(path)) for path in (report, scores)] == [("new", old)] * 2


def test_a_group_that_cannot_be_kept_cannot_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    report = tmp_path / "report.html"
    report.write_text("old")
    report.chmod(0o660)
    others = os.stat_result((*report.stat()[:4], 4711, 4712, *report.stat()[6:]))
    monkeypatch.setattr(_files.os, "chown", failing(os.chown, 1, PermissionError()))
    _files._keep_access(report, others)
    assert mode(report) == 0o600


@pytest.mark.parametrize(
    ("private", "expected", "of_others"),
    [
        (0o600, 0o600, 0o600),
        (0o640, 0o640, 0o600),
        (0o644, 0o644, 0o644),
        (0o400, 0o600, 0o600),
    ],
)
def test_a_new_file_is_as_private_as_what_it_was_made_from(
    csv: Path, private: int, expected: int, of_others: int, monkeypatch: pytest.MonkeyPatch
):
    csv.chmod(private)
    before = os.umask(0o022)
    try:
        write_together({csv.parent / "new": b"x"}, [csv, csv.parent / "part-*.parquet"])
        monkeypatch.setattr(os, "getegid", lambda: csv.stat().st_gid + 1)  # the group is another
        write_together({csv.parent / "other": b"x"}, [csv])
    finally:
        os.umask(before)
    assert [mode(csv.parent / name) for name in ("new", "other")] == [expected, of_others]


def test_all_that_is_made_from_a_private_table_is_private(csv: Path):
    files = [csv.parent / name for name in ("model", "r.html", "scores.csv", "a.html", "b.html")]
    model, report, scores, audit, later = map(str, files)
    asked = [str(csv), "-s", "age", "--max-rows", "100"]
    csv.chmod(0o600)
    before = os.umask(0o022)
    try:
        fitted = ["-t", "y", "--features", "score", "--limit", "none", "-o", model, "-r", report]
        done(["train", *asked, *fitted])
        done(["predict", model, str(csv), "-o", scores])
        done(["audit", *asked, "--score", "score", "-o", audit])
        csv.chmod(0o644)
        done(["audit", *asked, "--model", model, "-o", later])
    finally:
        os.umask(before)
    assert [oct(mode(path)) for path in files] == ["0o600"] * 5
