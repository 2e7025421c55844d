"""Exit codes: 0 done, 1 above the limit, 2 any error as one line, 130 interrupted; never a traceback."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from frhsic.cli import _terminal, app
from trust_samples import ASKED, ESCAPES, one_line_and_2, table

pytestmark = pytest.mark.usefixtures("few_trees", "no_progress")


@pytest.mark.parametrize("name", ["a.csv.gz", "a.parquet", "a.feather", "torn.csv", "empty.csv"])
def test_a_damaged_table_is_one_line_and_2(name: str, tmp_path: Path):
    path, frame = tmp_path / name, table(500)
    writers = {".gz": frame.to_csv, ".parquet": frame.to_parquet, ".feather": frame.to_feather}
    if path.suffix in writers:
        writers[path.suffix](path)
        path.write_bytes(path.read_bytes()[: path.stat().st_size * 2 // 3])
    else:
        path.write_bytes("age,score\n1,2\nä,1\n".encode()[:-4] if name == "torn.csv" else b"")
    assert name in one_line_and_2(["audit", str(path), *ASKED])


@pytest.fixture(scope="module")
def csv(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("tables") / "people.csv"
    table().to_csv(path, index=False)
    return str(path)


@pytest.mark.parametrize("more", [["--at", "inf"], ["--at", "nan"], ["--confidence", "nan"]])
def test_bad_numbers_of_an_audit(more: list[str], csv: str):
    one_line_and_2(["audit", csv, *ASKED, *more])


@pytest.mark.parametrize("size", [1e308, 1e200, -1.7e308])
def test_scores_of_any_size(size: float, tmp_path: Path):
    """A right number or a message; the scores here are the old ones, times a number."""
    frame = table()
    frame["score"] *= size
    frame.to_csv(tmp_path / "large.csv", index=False)
    result = CliRunner().invoke(app, ["audit", str(tmp_path / "large.csv"), *ASKED])
    assert result.exit_code in (0, 2), (result.output, result.exception)
    assert "Traceback" not in result.output
    assert "NaN" not in result.stdout


def test_a_loop_of_links_is_one_line_and_2(tmp_path: Path, csv: str):
    (tmp_path / "a.csv").symlink_to(tmp_path / "b.csv")
    (tmp_path / "b.csv").symlink_to(tmp_path / "a.csv")
    one_line_and_2(["audit", str(tmp_path / "a.csv"), *ASKED])
    one_line_and_2(["audit", csv, *ASKED, "-o", str(tmp_path / "a.csv")])


def test_an_error_that_nobody_foresaw_is_one_line_and_2(csv: str, monkeypatch: pytest.MonkeyPatch):
    def broken(*arguments: object, **named: object) -> None:
        raise ZeroDivisionError("first line\nsecond line")

    monkeypatch.setattr("frhsic.auditing.audit", broken)
    assert "ZeroDivisionError: first line second line" in one_line_and_2(["audit", csv, *ASKED])


def test_escape_sequences_in_names_do_not_reach_the_terminal(tmp_path: Path):
    frame = table().rename(columns={"age": "age\x1b[2J\x9b\u202e", "score": "sc\x07ore"})
    frame.to_csv(tmp_path / "a.csv", index=False)
    asked = ["audit", str(tmp_path / "a.csv"), "-s", "age\x1b[2J\x9b\u202e", "--max-rows", "100"]
    one_line_and_2([*asked, "--score", "nothing\x1b[31m"])
    result = CliRunner().invoke(app, [*asked, "--score", "sc\x07ore", "--json"])
    assert result.exit_code == 0, result.output
    assert not ESCAPES.search(result.stdout)


def test_a_file_name_that_is_not_utf8(tmp_path: Path):
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/a\xff.csv"))
    table().to_csv(path, index=False)
    result = CliRunner().invoke(app, ["audit", str(path), *ASKED, "-o", str(tmp_path / "report.html")])
    assert result.exit_code == 0, (result.output, result.exception)
    (tmp_path / "report.html").read_text(encoding="utf-8")
    one_line_and_2(["audit", str(path), "-s", "nothing", "--score", "score"])


@pytest.mark.slow
def test_a_closed_pipe_is_2_not_1(csv: str):
    command = [sys.executable, "-m", "frhsic.cli", "audit", csv, *ASKED]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.close()
        _, said = process.communicate()
    assert process.returncode == 2
    assert "Traceback" not in said


def test_1_means_above_the_limit(csv: str):
    assert CliRunner().invoke(app, ["audit", csv, *ASKED, "--limit", "gdp=0.0001"]).exit_code == 1
    assert CliRunner().invoke(app, ["audit", csv, *ASKED, "--limit", "gdp=0.49"]).exit_code == 0


def test_a_traceback_is_shown_if_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("FRHSIC_TRACEBACK", "1")
    result = CliRunner().invoke(app, ["audit", str(tmp_path / "none.csv"), *ASKED])
    assert result.exit_code == 2
    assert "Traceback (most recent call last)" in result.stderr
    assert result.stderr.splitlines()[-1].startswith("frhsic audit: ")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_error_after_a_signal_is_the_signal(number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Other libraries turn an interrupt into errors of their own."""
    monkeypatch.setattr(_terminal, "_received", [number])
    result = CliRunner().invoke(app, ["audit", str(tmp_path / "none.csv"), *ASKED])
    assert (result.exit_code, result.stderr) == (128 + number, "frhsic audit: interrupted.\n")


def test_signals_end_the_program_and_are_remembered(monkeypatch: pytest.MonkeyPatch):
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    monkeypatch.setattr(_terminal, "_received", [])
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        _terminal.on_signals()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        with pytest.raises(SystemExit) as ended:
            signal.raise_signal(signal.SIGTERM)
        assert ended.value.code == 143
        assert _terminal._received == [signal.SIGINT, signal.SIGTERM]
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # as nohup does
        _terminal.on_signals()
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@pytest.mark.parametrize("way", [["-m", "frhsic.cli"], ["-c", "from frhsic.cli import main; main()"]])
def test_the_version_is_printed_by_the_module_and_by_the_script(way: list[str]):
    from frhsic import __version__

    done = subprocess.run([sys.executable, *way, "--version"], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == (f"frhsic {__version__}\n", "")
