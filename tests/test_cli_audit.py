"""`frhsic audit` as a user meets it: what it reads and prints; and every month: limits, drift, exit
codes.
"""

import hashlib
import json
import re
from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd
import pytest

import frhsic
from cli_samples import done, one_line_and_2, people, run
from estimator_samples import quick
from frhsic import save
from frhsic.auditing import Audit, Settings, audit
from frhsic.auditing.results import Change
from frhsic.cli import app
from frhsic.parity import gdp
from frhsic.report import words

pytestmark = pytest.mark.usefixtures("few_trees")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("tables")
    data = people()
    data.to_csv(place / "people.csv", index=False)
    lost = pd.DataFrame({"age": ["?", "NA", ""], "score": ["1", "0,5", "1"]})
    pd.concat([lost, data.astype(object)]).to_csv(
        place / "messy.csv", index=False, sep=";", decimal=","
    )
    data.to_parquet(place / "people.parquet")
    return place


SCORE = ["-s", "age", "--score", "score", "--max-rows", "100"]


@cache
def audit_of_people(weights: str | None) -> Audit:
    data = people()
    design = {"groups": data["person"], "sample_weight": data[weights] if weights else None}
    settings = Settings(max_rows=100)
    return audit(data["score"], data["age"], data["repaid"], settings=settings, **design)


@pytest.mark.parametrize(
    ("name", "weights"),
    [("people.csv", "w"), ("people.csv", None), ("people.parquet", None), ("messy.csv", "w")],
)
def test_the_command_says_what_the_function_says_to_the_last_digit(folder, name, weights):
    asked = [*SCORE, "-t", "repaid", "--groups", "person", "--json"]
    result = done(
        ["audit", str(folder / name), *asked, *(["--row-weights", weights] if weights else [])]
    )
    expected = audit_of_people(weights)
    found = Audit.from_json(result.stdout)
    assert (found["age"], found.subject, found.quality) == (
        expected["age"],
        expected.subject,
        expected.quality,
    )
    rows = (found.rows.groups, found.rows.used, found.rows.effective)
    assert rows == (150, 300, expected.rows.effective)
    assert (found.rows.effective is None) == (weights is None)


@pytest.mark.parametrize("name", ["people.csv", "people.parquet"])
def test_controls_are_read_as_in_python(folder, name):
    asked = [*SCORE, "--json", "--control", "job", "--control", "hours"]
    found = Audit.from_json(done(["audit", str(folder / name), *asked]).stdout)
    data = people()
    expected = audit(
        data["score"],
        data["age"],
        control_features=data[["job", "hours"]],
        settings=Settings(max_rows=100),
    )
    assert found["age"].all_rows.within == expected["age"].all_rows.within
    assert set(expected.context.remarks) <= set(found.context.remarks)
    short = done(["audit", str(folder / name), *SCORE, "--control", "job", "--limit", "within=0.4"])
    kept = "The limit of 0.4 is met: the gap by age among people with the same job"
    assert kept in short.stderr
    assert "equal:   Among people with the same job, the gap is" in short.stderr
    assert "jbo" in one_line_and_2(["audit", str(folder / name), *SCORE, "--control", "jbo"])


def test_spellings_of_one_label_are_one_outcome_in_audits_and_trainings(tmp_path):
    data, path = people(120), tmp_path / "people.csv"
    random = np.random.default_rng(0)
    yes, no = random.choice(["Yes", "yes", "YES"], 120), random.choice(["no", "NO"], 120)
    data["leak"] = data["repaid"]
    data.assign(repaid=np.where(data["repaid"] == 1, yes, no)).to_csv(path, index=False)
    asked = [str(path), "-t", "repaid", "--json", "--max-rows", "100"]
    for positive in ([], ["--positive", "yes"]):
        audited = done(["audit", *asked, "-s", "age", "--score", "score", *positive]).stdout
        base_rate = Audit.from_json(audited).subject.base_rate
        assert base_rate.value == pytest.approx(data["repaid"].mean(), rel=1e-12)
    where = ["-s", "age", "--features", "leak", "--limit", "none", "-o", str(tmp_path / "m")]
    trained = json.loads(done(["train", *asked, *where, *positive]).stdout)
    ones = int(data["repaid"].sum())
    for remarks in (json.loads(audited)["context"]["remarks"], trained["notes"]):
        assert any(f"({ones} rows); 0 is" in note for note in remarks), remarks
        assert any("differ only in case or whitespace are merged" in note for note in remarks)
    assert any(note.startswith("'leak' alone predicts") for note in trained["notes"])


def test_rows_that_lack_a_value_and_rows_of_totals_are_counted_apart(tmp_path):
    data = people().astype({"age": object})
    data.loc[:4, "age"] = "?"
    data.loc[5:7, "score"] = np.nan
    data.insert(0, "branch", "Ulm")
    total = pd.DataFrame({"branch": ["Total"], "score": [data["score"].sum()]})
    pd.concat([data, total]).to_csv(tmp_path / "t.csv", index=False)
    result = Audit.from_json(done(["audit", str(tmp_path / "t.csv"), *SCORE, "--json"]).stdout)
    assert (result.rows.given, result.rows.dropped, result.rows.used) == (301, 8, 292)
    said = " ".join(words.warnings(result))
    why = "were left out because a value is missing or was declared missing."
    assert f"8 of 301 rows (2.66 %) {why}" in said
    assert "Row 301 contains totals of the other rows and is left out." in said


def test_words_among_scores_come_with_the_option_that_treats_them_as_missing(tmp_path):
    data, path = people(), tmp_path / "people.csv"
    asked = ["audit", str(path), *SCORE, "-o", str(tmp_path / "report.html")]
    data.astype({"score": object}).assign(score=data["score"].mask(data.index < 3, "n/k")).to_csv(
        path, index=False
    )
    said = one_line_and_2(asked).rstrip()
    assert said.endswith(" (--missing score=n/k).")
    done([*asked, "--missing", "score=n/k"])
    data.assign(score="n/k").to_csv(path, index=False)
    assert "--missing" not in one_line_and_2(asked)


def test_codes_and_outliers_of_a_numeric_target_are_asked_about(tmp_path):
    data, path = people(), tmp_path / "people.csv"
    coded = data["wage"].mask(data.index % 30 == 0, -9)
    asked = [str(path), *SCORE, "-t", "wage", "--json"]
    outlier = data["wage"].mask(data.index == 7, 1e9)
    for wage, said in ((coded, "−9 occurs 10 times"), (outlier, "1,000,000,000 occurs once")):
        data.assign(wage=wage).to_csv(path, index=False)
        audited = Audit.from_json(done(["audit", *asked]).stdout)
        assert any(f"{said} in 'wage'" in remark for remark in audited.context.remarks)


def test_off_a_terminal_the_path_is_printed_and_the_finding_goes_to_standard_error(
    folder, tmp_path, monkeypatch, capfd
):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ended:
        app(["audit", str(folder / "people.csv"), *SCORE])
    stdout, stderr = capfd.readouterr()
    assert (ended.value.code, stdout) == (0, "frhsic-report.html\n")
    assert "age" in stderr.splitlines()[-5]
    assert stderr.splitlines()[-5].startswith("verdict: ")
    assert (
        (tmp_path / "frhsic-report.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    )


@pytest.fixture(scope="module")
def fitted():
    data = people()
    X = data[["hours", "job", "skill"]]
    pytest.importorskip("torch")
    model = frhsic.FRHSICClassifier(**quick(size=3, epochs=2))
    return model.fit(X, data["income"], sensitive_features=data["age"]), X


def test_a_saved_model_is_applied_to_the_table_piece_by_piece(folder, fitted, reading):
    """Text columns and all: its probability is the score, its representation is Z."""
    model, X = fitted
    save(model, folder / "model.frhsic")
    reading(200)
    asked = [
        "audit",
        str(folder / "people.csv"),
        "-s",
        "age",
        "--model",
        str(folder / "model.frhsic"),
    ]
    found = Audit.from_json(done([*asked, "--max-rows", "100", "--json"]).stdout)
    expected = gdp(model.predict_proba(X)[:, 1], people()["age"], resamples=0).value
    assert found["age"].all_rows["gdp"].value == pytest.approx(expected, rel=1e-5)
    assert (found.subject.dimensions, found.subject.name) == (3, "representation of model.frhsic")
    assert found.subject.score_name == "score of model.frhsic"


def test_a_model_that_cannot_be_applied_says_why(folder, fitted, monkeypatch):
    (_, X), data = fitted, people()
    nameless = frhsic.FRHSICRegressor(penalty_weight=0, **quick(epochs=1)).fit(
        data[["skill"]].to_numpy(), data["score"]
    )
    three = frhsic.FRHSICClassifier(**quick(epochs=1)).fit(
        X, np.arange(len(X)) % 3, sensitive_features=data["age"]
    )
    monkeypatch.chdir(folder)
    for model, message in ((nameless, "without column names"), (three, "3 classes")):
        save(model, folder / "other.frhsic")
        assert message in one_line_and_2(
            ["audit", "people.csv", "-s", "age", "--model", "other.frhsic"]
        )


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["-s", "age", "--threshold", "5"], "--threshold 5 is outside the range of the scores"),
        (["-s", "age", "--limit", "eo=0.1"], "pass the target as well (y, or --target)"),
        (["-s", "job"], "sensitive attribute 'job' is not numeric: it contains 'clerk'"),
    ],
)
def test_an_error_names_the_option(folder, options, said):
    line = one_line_and_2(["audit", str(folder / "people.csv"), "--score", "score", *options])
    assert said in line


# --- a job that runs every month


def month(folder, name, slope, seed, n=600, *, older=0.0, skill=1.0):
    random = np.random.default_rng(seed)
    age = np.round(random.uniform(20 + older, 70 + older, n))
    p = np.clip(0.3 + slope * (age - 45 - older) / 100 + 0.1 * random.standard_normal(n), 0, 1)
    late = random.random(n) < skill * p + (1 - skill) * p.mean()
    pd.DataFrame({"age": age, "p": p, "late": late.astype(int)}).to_csv(folder / name, index=False)
    return str(folder / name)


MONTHLY = ["-s", "age", "--score", "p", "--target", "late", "--max-rows", "100", "--json"]


@pytest.fixture(scope="module")
def may(tmp_path_factory):
    folder = tmp_path_factory.mktemp("months")
    table = month(folder, "may.csv", 0.2, 1)
    result = done(["audit", table, *MONTHLY, "--limit", "gdp=0.2", "--people", "applicants"])
    (folder / "may.json").write_text(result.stdout)
    return folder


def test_the_audit_says_what_it_read_and_for_whom(may):
    found = Audit.from_json((may / "may.json").read_text())
    assert (
        found.context.origin["data"] == hashlib.sha256((may / "may.csv").read_bytes()).hexdigest()
    )
    assert (found.context.people, found.limits[0].verdict) == ("applicants", "kept")


def test_exit_codes_say_whether_the_gap_has_grown_and_the_limit_is_kept(may):
    asked = [*MONTHLY, "--against", str(may / "may.json")]
    june = Audit.from_json(done(["audit", month(may, "june.csv", 0.2, 2), *asked]).stdout)
    assert not any(change.changed for change in june.drift)
    page = may / "july.html"
    asked += ["--limit", "gdp=10% of base rate", "-o", str(page)]
    worse = done(["audit", month(may, "july.csv", 0.9, 3), *asked], 1)
    assert "Gap by age: " in worse.stderr
    assert re.search(
        r"10 % of the base rate of the earlier rows, [\d.]+ %\) is exceeded: the gap by age is",
        worse.stderr,
    )
    earlier, found = Audit.from_json((may / "may.json").read_text()), Audit.from_json(worse.stdout)
    assert found.limits[0].reference == earlier.subject.base_rate
    assert "What else has changed" in page.read_text(encoding="utf-8")


def test_a_gap_that_has_fallen_is_told_and_is_no_alarm(may):
    (may / "wide.json").write_text(
        done(["audit", month(may, "wide.csv", 0.6, 8, 2000, skill=0.0), *MONTHLY]).stdout
    )
    asked = ["-s", "age", "--score", "p", "--max-rows", "100", "-o", str(may / "narrow.html")]
    table = month(may, "narrow.csv", 0.35, 9, 2000, skill=0.0)
    said = run(["audit", table, *asked, "--against", str(may / "wide.json")]).stderr
    assert "gap by age  " in said
    assert re.search(r"has fallen from 0\.\d+ to 0\.\d+ since wide\.csv", said)
    assert said.splitlines()[-1].startswith("rows:")  # changes are told once
    assert f"{'rows:':9}95 % confidence, 2,000 rows" in said
    drift = Change("gdp", "age", 0.1, 0.05, None, 0.001, 0.05)
    assert drift.improved
    assert not any(
        replace(drift, **change).improved
        for change in ({"pvalue": 0.2}, {"after": 0.2}, {"key": "score"})
    )
