"""`frhsic audit` as a user meets it: what it reads, what it refuses, what it prints, how it exits."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from estimator_samples import quick
from frhsic import save
from frhsic.auditing import Audit, Settings, audit
from frhsic.cli import app
from frhsic.formatting import figure
from frhsic.parity import gdp
from frhsic.report.words import findings, label
from frhsic.tables import files

pytestmark = pytest.mark.usefixtures("few_trees", "no_progress")

run = CliRunner().invoke


def frame(n=240, seed=0):
    random = np.random.default_rng(seed)
    age = np.round(random.uniform(20, 70, n))
    score = np.clip(0.3 + 0.006 * (age - 45) + 0.1 * random.standard_normal(n), 0, 1)
    return pd.DataFrame(
        {
            "age": age,
            "hours": random.normal(40, 5, n),
            "score": score,
            "z_1": score + 0.1 * random.standard_normal(n),
            "z_2": random.standard_normal(n),
            "income": np.where(random.random(n) < score, ">50K", "<=50K"),
            "repaid": (random.random(n) < 0.5).astype(int),
            "sex": np.where(random.random(n) < 0.5, "Male", "Female"),
            "empty": np.nan,
            "person": [f"{i // 2:03d}" for i in range(n)],
            "w": random.integers(0, 4, n),
        }
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("tables")
    data = frame()
    data.to_csv(place / "people.csv", index=False)
    lost = pd.DataFrame({"age": ["?", "NA", ""], "score": ["1", "0,5", "1"]})
    pd.concat([lost, data.astype(object)]).to_csv(place / "messy.csv", index=False, sep=";", decimal=",")
    data.to_parquet(place / "people.parquet")
    (place / "one.csv").write_text("age,score\n30,0.5\n")
    (place / "deep.json").write_text("[" * 100_000)
    (place / "broken.parquet").write_bytes(b"not parquet at all")
    return place


SCORE = ["-s", "age", "--score", "score"]
ASKED = [*SCORE, "-t", "repaid", "--groups", "person", "--at", "30", "--max-rows", "100", "--json"]


@pytest.mark.parametrize(
    ("name", "weights"), [("people.csv", "w"), ("people.csv", None), ("people.parquet", None), ("messy.csv", "w")]
)
def test_the_command_says_what_the_function_says_to_the_last_digit(folder, name, weights):
    result = run(app, ["audit", str(folder / name), *ASKED, *([] if weights is None else ["--row-weights", weights])])
    assert result.exit_code == 0, result.output
    data, design = frame(), {"groups": frame()["person"], "sample_weight": None if weights is None else frame()["w"]}
    settings = Settings(max_rows=100, at=[30])
    expected = audit(data["score"], data["age"], data["repaid"], settings=settings, **design)
    found = Audit.from_json(result.stdout)
    assert (found["age"], found.subject, found.quality) == (expected["age"], expected.subject, expected.quality)
    assert (found.rows.groups, found.rows.weighted, found.rows.used) == (120, weights is not None, 240)


def test_a_target_of_yes_and_no_needs_no_positive_value(tmp_path):
    data, table = frame(), tmp_path / "people.csv"
    data.assign(repaid=np.where(data["repaid"] == 1, "Ja", "nein")).to_csv(table, index=False)
    result = run(app, ["audit", str(table), *SCORE, "-t", "repaid", "--max-rows", "100", "--json"])
    assert result.exit_code == 0, result.output
    found = Audit.from_json(result.stdout)
    expected = audit(data["score"], data["age"], data["repaid"], settings=Settings(max_rows=100))
    assert (found["age"], found.quality, found.subject.target.positive) == (expected["age"], expected.quality, "Ja")
    assert any("'Ja' counts as 1 in 'repaid'" in remark for remark in found.context.remarks)


@pytest.mark.parametrize(
    ("column", "values", "option", "message"),
    [
        ("person", {3: None, 9: None}, "--groups", "'person' (groups) lacks a value in 2 of 239 rows (rows 4, 10)"),
        ("w", {3: None}, "--row-weights", "'w' (sample_weight) lacks a value in 1 of 239 rows (row 4)"),
        ("w", {3: -2}, "--row-weights", "'w' (sample_weight) is −2 in row 4; pass weights of zero or more"),
        ("w", {3: "many"}, "--row-weights", "column 'w' (weights) is not numeric: it holds 'many', first in row 4"),
        ("person", dict.fromkeys(range(240), 1), "--groups", "'person' (groups) has one value in all 239 rows"),
    ],
)
def test_bad_groups_and_weights_exit_with_2_and_name_column_and_rows(tmp_path, column, values, option, message):
    data = frame().astype({column: object, "age": object})
    data.loc[0, "age"] = None  # this row is dropped, and the others keep their numbers
    for row, value in values.items():
        data.loc[row, column] = value
    data.to_csv(tmp_path / "people.csv", index=False)
    result = run(app, ["audit", str(tmp_path / "people.csv"), *SCORE, "--json", option, column])
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-s", "agee", "--score", "score"], "no column 'agee'. Did you mean 'age'?"),
        ([*SCORE, "--target", "incom"], "Did you mean 'income'?"),
        (["-s", "age", "--embedding", "y_*"], "no column 'y_*'"),
        (["-s", "age", "--embedding", "person", "--groups", "person"], "nothing is left to audit"),
        ([*SCORE, "--groups", "w", "--scheduler", "tcp://1:1"], "are not used with --scheduler"),
        (["-s", "sex", "--score", "score"], "values as numbers"),
        ([*SCORE, "--target", "income"], "--positive VALUE"),
        (["-s", "empty", "--score", "score"], "has no value in any of the 240 rows"),
        (["-s", "age"], "say what to audit"),
        ([*SCORE, "--model", "m"], "brings its own scores"),
        ([*SCORE, "--favourable", "1"], "--favourable names a value of the target"),
        ([*SCORE, "--at", "300"], "at=300 lies outside the data"),
        ([*SCORE, "--limit", "gdp"], "pass NAME=NUMBER"),
        ([*SCORE, "--limit", "gdp=5"], "5 % is 0.05"),
        ([*SCORE, "--against", "deep.json"], "is not an audit that can be read"),
        ([*SCORE, "-o", "none/report.html"], "the folder"),
        ([*SCORE, "-o", "people.csv"], "the report would overwrite the table"),
        ([*SCORE, "--confidence", "95"], "confidence is 95"),
        (["-s", "age", "--model", "nowhere"], "there is no saved model"),
        (["one.csv", "-s", "age", "--score", "score"], "needs at least 20 rows; 1 of 1 have age"),
        (["broken.parquet", "-s", "age", "--score", "score"], "cannot be read as Parquet"),
    ],
)
def test_bad_input_exits_with_2_and_one_message(folder, monkeypatch, arguments, message):
    monkeypatch.chdir(folder)
    table = [] if "." in arguments[0] else ["people.csv"]
    result = run(app, ["audit", *table, *arguments])
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stderr.startswith("frhsic audit: ")
    assert "Traceback" not in result.output
    assert result.stdout == ""
    assert not (folder / "frhsic-report.html").exists()


def test_off_a_terminal_the_path_is_printed_and_the_finding_goes_to_standard_error(
    folder, tmp_path, monkeypatch, capfd
):
    monkeypatch.chdir(tmp_path)
    asked = ["-s", "age", "--score", "score", "--max-rows", "100"]
    with pytest.raises(SystemExit) as ended:
        app(["audit", str(folder / "people.csv"), *asked])
    stdout, stderr = capfd.readouterr()
    assert (ended.value.code, stdout) == (0, "frhsic-report.html\n")
    assert "age" in stderr.splitlines()[0]
    assert (tmp_path / "frhsic-report.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def test_on_a_terminal_the_finding_and_the_numbers_are_shown(folder, tmp_path, monkeypatch):
    for name, value in (("FORCE_COLOR", "1"), ("NO_COLOR", "1"), ("COLUMNS", "200"), ("TERM", "xterm")):
        monkeypatch.setenv(name, value)
    out = tmp_path / "report.html"
    asked = ["-s", "age", "--score", "score", "--max-rows", "100", "-o", str(out)]
    result = run(app, ["audit", str(folder / "people.csv"), *asked])
    assert result.exit_code == 0, result.stderr
    data = re.search(r'id="data">(.*?)</script>', out.read_text(encoding="utf-8"), re.DOTALL).group(1)
    found = Audit.from_dict(json.loads(data)["audit"])
    age = found["age"]
    shown = re.sub(r"\x1b\[[0-9;]*m", "", result.stdout)
    assert " ".join(findings(found, age)[0].split()) in " ".join(shown.split())
    for number in age.all_rows.numbers:
        (line,) = [line for line in shown.splitlines() if f"│ {label(number.key)} " in line]
        ends = "-" if number.interval is None else f"{figure(number.interval.low)} to {figure(number.interval.high)}"
        assert [cell.strip() for cell in line.split("│")[2:4]] == [figure(number.value), ends]
    assert shown.endswith(f"report: {out}\n")


@pytest.fixture(scope="module")
def fitted():
    from frhsic.estimators import FRHSICClassifier

    data = frame()
    X = data[["hours", "sex", "z_1"]]
    model = FRHSICClassifier(**quick(size=3, epochs=2))
    return model.fit(X, data["income"], sensitive_features=data["age"]), X


def test_a_saved_model_is_applied_to_the_table_piece_by_piece(folder, fitted, monkeypatch):
    """Text columns and all: its probability is the score, its representation is Z."""
    model, X = fitted
    save(model, folder / "model.frhsic")
    monkeypatch.setattr(files, "CELLS", 200)
    asked = ["audit", str(folder / "people.csv"), "-s", "age", "--model", str(folder / "model.frhsic")]
    result = run(app, [*asked, "--max-rows", "100", "--json"])
    assert result.exit_code == 0, result.stderr
    found = Audit.from_json(result.stdout)
    expected = gdp(model.predict_proba(X)[:, 1], frame()["age"], resamples=0).value
    assert found["age"].all_rows["gdp"].value == pytest.approx(expected, rel=1e-5)
    assert (found.subject.dimensions, found.subject.name) == (3, "representation of model.frhsic")
    assert found.subject.score_name == "score of model.frhsic"


def test_a_model_that_cannot_be_applied_says_why(folder, fitted, monkeypatch):
    from frhsic.estimators import FRHSICClassifier, FRHSICRegressor

    (_, X), data = fitted, frame()
    nameless = FRHSICRegressor(penalty_weight=0, **quick(epochs=1)).fit(data[["z_1"]].to_numpy(), data["score"])
    three = FRHSICClassifier(**quick(epochs=1)).fit(X, np.arange(len(X)) % 3, sensitive_features=data["age"])
    monkeypatch.chdir(folder)
    for model, message in ((nameless, "without column names"), (three, "predicts 3 classes; an audit takes one")):
        save(model, folder / "other.frhsic")
        assert message in run(app, ["audit", "people.csv", "-s", "age", "--model", "other.frhsic"]).stderr
