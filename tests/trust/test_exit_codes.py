"""Exit codes: 0 done, 1 above the limit, 2 any error as one line, 130 interrupted; never a
traceback.
"""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from cli_samples import ASKED, ESCAPES, FEATURES, done, one_line_and_2, people, run, table
from frhsic import __version__, cli
from frhsic.cli import _terminal

INSTALLED = re.compile(r"pip install (?:-e )?'?([^\s`']+)")

pytestmark = pytest.mark.usefixtures("few_trees")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("tables")
    data = people()
    data.to_csv(place / "people.csv", index=False)
    data.head(60).to_csv(place / "few.csv", index=False)
    table().to_csv(place / "table.csv", index=False)
    (place / "one.csv").write_text("age,score\n30,0.5\n")
    (place / "deep.json").write_text("[" * 100_000)
    return place


@pytest.fixture
def csv(folder: Path) -> str:
    return str(folder / "table.csv")


SCORE = ["-s", "age", "--score", "score"]
TRAIN = ["-t", "approved", "-s", "age", *FEATURES]
BAD = [
    (["audit", "-s", "agee", "--score", "score"], "Did you mean 'age'?"),
    (["audit", "-s", "age", "--embedding", "y_*"], "no column 'y_*'"),
    (
        ["audit", "-s", "age", "--embedding", "person", "--groups", "person"],
        "nothing is left to audit",
    ),
    (
        ["audit", *SCORE, "--groups", "w", "--scheduler", "tcp://1:1"],
        "cannot be used with --scheduler",
    ),
    (["audit", "-s", "job", "--score", "score"], "values as numbers"),
    (["audit", "-s", "empty", "--score", "score"], "is empty in all 300 rows"),
    (["audit", "-s", "age"], "specify what to audit"),
    (["audit", *SCORE, "--model", "m"], "computes its own scores"),
    (["audit", *SCORE, "--favourable", "1"], "names a value of the target"),
    (["audit", *SCORE, "--limit", "gdp=5"], "percentage, write 0.05"),
    (["audit", *SCORE, "--against", "deep.json"], "cannot be read as an audit"),
    (["audit", *SCORE, "-o", "none/report.html"], "the folder"),
    (["audit", *SCORE, "-o", "people.csv"], "would overwrite the table"),
    (["audit", *SCORE, "--confidence", "95"], "Invalid value for '--confidence'"),
    (["audit", "-s", "age", "--model", "nowhere"], "no saved model"),
    (["audit", "one.csv", *SCORE], "'age' is 30 in every row"),
    (["train", "-t", "approved", "-s", "empty"], "missing in every row"),
    (["train", "-t", "approved", "-s", "same", *FEATURES], "is 1 in every row"),
    (["train", *TRAIN, "--test-share", "1.5"], "Invalid value for '--test-share'"),
    (["train", *TRAIN, "--aim", "scores"], "'score', 'rank', 'decision'"),
    (["train", *TRAIN, "--delimiter", ";;"], "one character"),
    (["train", *TRAIN, "--decimal", ","], "cannot be both the delimiter"),
    (["train", "few.csv", *TRAIN], "60 rows with a target"),
    (["train", *TRAIN, "--limit", "150%"], "limit is 150% of the unconstrained gap"),
    (["train", *TRAIN, "--limit", "agee=0.1"], "Did you mean 'age'?"),
    (["train", *TRAIN, "--require", "gpd=1"], "Did you mean 'gdp'?"),
    (["train", *TRAIN, "--limit", "gdp=5"], "a gap is between 0 and 0.5"),
    (["train", *TRAIN, "--threshold", "50"], "--threshold is 50"),
    (["train", "peopel.csv", *TRAIN], "Did you mean 'people.csv'?"),
    (["train", *TRAIN, "--out", "nowhere/model"], "the folder 'nowhere' of the model"),
    (["train", *TRAIN, "--out", "same.html", "--report", "same.html"], "would be the same file"),
    (["train", *TRAIN, "--out", "."], "a folder"),
    (["train", *TRAIN, "--split-by", "person"], "cannot be ordered in time"),
    (["demo", "--out", "nowhere/report.html"], "the folder 'nowhere' of the report"),
]


@pytest.mark.parametrize(
    ("arguments", "message"), BAD, ids=lambda value: value[-30:] if isinstance(value, str) else ""
)
def test_bad_input_is_one_line_and_2_before_anything_is_trained_or_written(
    folder: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], message: str
):
    monkeypatch.chdir(folder)
    monkeypatch.setattr(
        "frhsic.estimators.fitting.fit_engine", lambda *a: pytest.fail("training began")
    )
    before = sorted(folder.iterdir())
    command, *rest = arguments
    read = [] if command == "demo" or rest[0].endswith(".csv") else ["people.csv"]
    assert message in one_line_and_2([command, *read, *rest])
    assert sorted(folder.iterdir()) == before


@pytest.mark.parametrize(
    ("column", "values", "option", "message"),
    [
        (
            "person",
            {3: None, 9: None},
            "--groups",
            "'person' (groups) is missing in 2 of 299 rows (rows 4, 10)",
        ),
        (
            "w",
            {3: None},
            "--row-weights",
            "'w' (sample_weight) is missing in 1 of 299 rows (row 4)",
        ),
        ("w", {3: -2}, "--row-weights", "'w' (sample_weight) is −2 in row 4"),
        ("w", {3: "many"}, "--row-weights", "'many', first in row 4"),
        (
            "person",
            dict.fromkeys(range(300), 1),
            "--groups",
            "'person' (groups) is the same in all 299 rows",
        ),
    ],
)
def test_bad_groups_and_weights_name_column_and_rows(
    tmp_path: Path, column: str, values: dict[int, object], option: str, message: str
):
    data = people().astype({column: object, "age": object})
    data.loc[0, "age"] = None  # this row is dropped, and the others keep their numbers
    for row, value in values.items():
        data.loc[row, column] = value
    data.to_csv(tmp_path / "people.csv", index=False)
    assert message in one_line_and_2(
        ["audit", str(tmp_path / "people.csv"), *SCORE, "--json", option, column]
    )


@pytest.mark.parametrize(
    ("column", "arguments", "message"),
    [
        ("age", ["audit", *SCORE], "sensitive attribute 'age' contains numbers that are too large"),
        ("score", ["audit", *SCORE], "column 'score' contains numbers that are too large"),
        ("age", ["train", *TRAIN], "sensitive attribute 'age' contains numbers that are too large"),
        (
            "wage",
            ["train", "-t", "wage", *TRAIN[2:]],
            "target 'wage' contains numbers that are too",
        ),
    ],
)
def test_a_number_that_is_too_large_names_file_column_and_row(
    tmp_path: Path, column: str, arguments: list[str], message: str
):
    data = people()
    data.loc[7, column] = 1e308
    data.loc[0, "approved"] = None
    data.to_csv(tmp_path / "people.csv", index=False)
    command, *rest = arguments
    said = one_line_and_2([command, str(tmp_path / "people.csv"), *rest])
    assert f"people.csv: {message}" in said
    assert "it contains '1e+308', first in row 8" in said


def cut(path: Path) -> None:
    """Write a table in the format that the name says, and keep two thirds of the file."""
    if path.suffix == ".parquet":
        table(500).to_parquet(path)
    else:
        table(500).to_csv(path, index=False)
    path.write_bytes(path.read_bytes()[: path.stat().st_size * 2 // 3])


DAMAGED = {
    "a.csv.gz": cut,
    "a.parquet": cut,
    "torn.csv": lambda path: path.write_bytes("age,score\n1,2\nä,1\n".encode()[:-4]),
    "empty.csv": Path.touch,
}


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_table_is_one_line_and_2(name: str, tmp_path: Path):
    DAMAGED[name](tmp_path / name)
    assert name in one_line_and_2(["audit", str(tmp_path / name), *ASKED])


@pytest.mark.parametrize("size", [1e308, 1e200, -1.7e308])
def test_scores_of_any_size(size: float, tmp_path: Path):
    """A right number or a message; the scores here are the old ones, times a number."""
    frame = table()
    frame["score"] *= size
    frame.to_csv(tmp_path / "large.csv", index=False)
    result = run(["audit", str(tmp_path / "large.csv"), *ASKED])
    assert result.exit_code in (0, 2), (result.output, result.exception)
    assert "Traceback" not in result.output
    assert "NaN" not in result.stdout


def test_a_loop_of_links_is_one_line_and_2(tmp_path: Path, csv: str):
    (tmp_path / "a.csv").symlink_to(tmp_path / "b.csv")
    (tmp_path / "b.csv").symlink_to(tmp_path / "a.csv")
    one_line_and_2(["audit", str(tmp_path / "a.csv"), *ASKED])
    one_line_and_2(["audit", csv, *ASKED, "-o", str(tmp_path / "a.csv")])


def test_an_unexpected_error_is_one_line_and_ends_with_2():
    def broken() -> None:
        raise ZeroDivisionError("first line\nsecond line")

    other = typer.Typer(cls=_terminal.Commands)
    other.command("broken")(broken)
    other.command("other")(lambda: None)  # an app of one command would have no names
    result = CliRunner().invoke(other, ["broken"])
    assert result.exit_code == 2
    assert "ZeroDivisionError: first line second line" in result.stderr
    assert result.stderr.count("\n") == 1


def test_escape_sequences_in_names_do_not_reach_the_terminal(tmp_path: Path):
    frame = table().rename(columns={"age": "age\x1b[2J\x9b\u202e", "score": "sc\x07ore"})
    frame.to_csv(tmp_path / "a.csv", index=False)
    asked = ["audit", str(tmp_path / "a.csv"), "-s", "age\x1b[2J\x9b\u202e", "--max-rows", "100"]
    one_line_and_2([*asked, "--score", "nothing\x1b[31m"])
    assert not ESCAPES.search(done([*asked, "--score", "sc\x07ore", "--json"]).stdout)


def test_help_into_a_closed_pipe_is_silent():
    command = [sys.executable, "-m", "frhsic", "train", "--help"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.communicate()[1] == b""


def test_a_pipe_that_closes_in_the_middle_is_silent():
    """`frhsic train --help | head` closes it between two lines, or between two writes."""

    def closed() -> None:
        raise BrokenPipeError(32, "Broken pipe")

    other = typer.Typer(cls=_terminal.Commands)
    other.command("closed")(closed)
    other.command("other")(lambda: None)
    result = CliRunner().invoke(other, ["closed"])
    assert result.exit_code == 2
    assert result.stderr == ""


@pytest.mark.slow
def test_a_closed_pipe_is_2_not_1(csv: str):
    command = [sys.executable, "-m", "frhsic", "audit", csv, *ASKED]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        process.stdout.close()
        _, said = process.communicate()
    assert process.returncode == 2
    assert "Traceback" not in said


def test_1_means_above_the_limit(csv: str):
    done(["audit", csv, *ASKED, "--limit", "gdp=0.0001"], 1)
    done(["audit", csv, *ASKED, "--limit", "gdp=0.49"], 0)


def test_a_traceback_is_shown_if_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("FRHSIC_TRACEBACK", "1")
    said = done(["audit", str(tmp_path / "none.csv"), *ASKED], 2).stderr
    assert "Traceback (most recent call last)" in said
    assert said.splitlines()[-1].startswith("frhsic audit: ")


def test_an_interrupted_training_writes_nothing_and_exits_with_130(
    folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("frhsic.estimators.fitting.fit_engine", interrupt)
    asked = ["train", str(folder / "people.csv"), *TRAIN, "--max-rows", "100"]
    result = done([*asked, "-o", str(tmp_path / "model"), "-r", str(tmp_path / "report.html")], 130)
    assert result.stderr == "frhsic train: interrupted.\n"
    assert list(tmp_path.iterdir()) == []


def test_signals_end_the_program_and_an_error_after_one_is_the_signal(tmp_path: Path):
    """Other libraries turn an interrupt into errors of their own."""
    audit = ["audit", str(tmp_path / "none.csv"), *ASKED]
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        _terminal.handle_signals()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        assert done(audit, 130).stderr == "frhsic audit: interrupted.\n"
        _terminal._received.clear()
        with pytest.raises(SystemExit) as ended:
            signal.raise_signal(signal.SIGTERM)
        assert ended.value.code == 143
        assert done(audit, 143).stderr == "frhsic audit: interrupted.\n"
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # as nohup does
        _terminal.handle_signals()
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        _terminal._received.clear()
        for number, handler in before.items():
            signal.signal(number, handler)


@pytest.mark.parametrize("way", [["-m", "frhsic"], ["-c", "from frhsic.cli import main; main()"]])
def test_the_version_is_printed_by_the_module_and_by_the_script(way: list[str]):
    done = subprocess.run(
        [sys.executable, *way, "--version"], capture_output=True, text=True, check=True
    )
    assert (done.stdout, done.stderr) == (f"frhsic {__version__}\n", "")


def greet(name: str) -> None:
    """Say hello."""
    typer.echo(f"hello {name}")


def app_with(monkeypatch: pytest.MonkeyPatch, *points: EntryPoint) -> typer.Typer:
    monkeypatch.setattr(cli, "entry_points", lambda group: EntryPoints(points).select(group=group))
    app = typer.Typer()
    app.command("other")(lambda: None)  # an app of one command would have no names
    cli.add_plugins(app)
    return app


def test_a_command_of_another_package_is_found_by_its_entry_point(monkeypatch: pytest.MonkeyPatch):
    app = app_with(monkeypatch, EntryPoint("greet", f"{__name__}:greet", cli.PLUGINS))
    assert CliRunner().invoke(app, ["greet", "Ada"]).output == "hello Ada\n"


def test_a_known_command_that_is_not_installed_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch):
    result = CliRunner().invoke(app_with(monkeypatch), ["reproduce", "bound", "--docs"])
    assert isinstance(
        result.exception, ValueError
    )  # `frhsic` turns it into one line and exit code 2
    assert "`pip install ./paper`" in str(result.exception)


def test_no_message_installs_a_name_that_anybody_may_take_on_the_package_index():
    """Neither this package nor the paper's is on the index; the others are."""
    sources = Path(cli.__file__).parents[1].rglob("*.py")
    advised = [name for path in sources for name in INSTALLED.findall(path.read_text("utf-8"))]
    names = {name.rstrip('.",').lstrip("'") for name in advised} - {""}
    assert sorted(names) == ["./paper", "dask[dataframe,distributed]", "onnx", "openpyxl", "torch"]
