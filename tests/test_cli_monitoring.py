"""`frhsic audit` for a job that runs every month: limits, an earlier audit, a PDF, and exit codes."""

from __future__ import annotations

import hashlib
import json
import shutil

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from frhsic.auditing import Audit
from frhsic.cli import app

pytestmark = pytest.mark.usefixtures("few_trees")


def month(folder, name: str, slope: float, seed: int, n: int = 600):
    random = np.random.default_rng(seed)
    age = np.round(random.uniform(20, 70, n))
    p = np.clip(0.3 + slope * (age - 45) / 100 + 0.1 * random.standard_normal(n), 0, 1)
    frame = pd.DataFrame({"age": age, "p": p, "late": (random.random(n) < p).astype(int)})
    frame.to_csv(folder / name, index=False)
    return str(folder / name)


def asked(table: str, *more: str):
    line = ["audit", table, "-s", "age", "--score", "p", "--target", "late", "--max-rows", "100", "--json", *more]
    return CliRunner().invoke(app, line)


@pytest.fixture(scope="module")
def may(tmp_path_factory):
    folder = tmp_path_factory.mktemp("months")
    result = asked(month(folder, "may.csv", 0.2, 1), "--limit", "gdp=0.2", "--people", "applicants")
    assert result.exit_code == 0, result.output
    (folder / "may.json").write_text(result.stdout)
    return folder


def test_the_audit_says_what_it_read_and_for_whom(may):
    found = Audit.from_json((may / "may.json").read_text())
    assert found.context.data_sha256 == hashlib.sha256((may / "may.csv").read_bytes()).hexdigest()
    assert (found.context.people, found.limits[0].verdict) == ("applicants", "kept")
    assert {one.key for one in found.quality} == {
        "accuracy",
        "auc",
        "calibration_error",
        "true_positive_rate",
        "false_positive_rate",
    }


def test_exit_codes_say_whether_the_gap_has_grown_and_the_limit_is_kept(may):
    same = asked(month(may, "june.csv", 0.2, 2), "--against", str(may / "may.json"))
    assert same.exit_code == 0, same.output
    assert Audit.from_json(same.stdout).drift[0].verdict == "no change seen"
    page = may / "july.html"
    worse = asked(
        month(may, "july.csv", 0.9, 3), "--against", str(may / "may.json"), "--limit", "gdp=10%", "-o", str(page)
    )
    assert worse.exit_code == 1
    assert "gap grown: gdp of age went from" in worse.stderr
    assert "limit not kept: gdp of age is" in worse.stderr
    found = Audit.from_json(worse.stdout)
    assert (found.drift[0].verdict, found.limits[0].verdict) == ("grown", "not kept")
    text = page.read_text(encoding="utf-8")
    assert "Has it changed since the last audit?" in text
    assert "cannot be told" not in text


def test_a_limit_inside_the_interval_cannot_be_told_and_does_not_pass(may):
    number = Audit.from_json((may / "may.json").read_text())["age"].all_rows["gdp"]
    result = asked(str(may / "may.csv"), "--limit", f"gdp={number.value}")
    assert result.exit_code == 1
    assert "limit cannot be told: gdp of age" in result.stderr


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--against", "nowhere.json"], "nowhere.json"),
        (["--limit", "gpd=0.1"], "Did you mean 'gdp'"),
        (["--limit", "gdp"], "pass NAME=NUMBER"),
    ],
)
def test_what_cannot_be_read_is_refused_before_the_work(may, more: list[str], message: str):
    result = asked(str(may / "may.csv"), *more)
    assert result.exit_code == 2
    assert message in result.stderr


def test_a_document_that_is_no_audit_is_refused(may):
    (may / "other.json").write_text(json.dumps({"format": 3}))
    result = asked(str(may / "may.csv"), "--against", str(may / "other.json"))
    assert result.exit_code == 2
    assert "is not an audit that can be read: the document's format is 3" in result.stderr


def test_a_pdf_without_a_browser_is_refused_before_the_work(may, monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    result = asked(str(may / "may.csv"), "--pdf", str(may / "a.pdf"))
    assert result.exit_code == 2
    assert "on Debian: apt-get install chromium" in result.stderr


@pytest.mark.usefixtures("few_epochs")
def test_a_training_states_its_limit_and_names_its_model_by_a_fingerprint(may):
    model, page = may / "m.frhsic", may / "trained.html"
    line = ["train", str(may / "may.csv"), "-t", "late", "-s", "age", "-w", "1"]
    line += ["--max-rows", "100", "--device", "cpu", "--json", "-o", str(model), "-r", str(page)]
    result = CliRunner().invoke(app, [*line, "--limit", "gdp=0.9", "--decision", "whether a loan is granted"])
    assert result.exit_code == 0, result.output
    found = Audit.from_dict(json.loads(result.stdout)["report"]["audit"])
    assert found.limits[0].verdict == "kept"
    assert found.context.model_sha256 == hashlib.sha256(model.read_bytes()).hexdigest()
    text = page.read_text(encoding="utf-8")
    assert found.context.model_sha256 in text
    assert "whether a loan is granted" in text
    assert CliRunner().invoke(app, [*line, "--limit", "gdp=0.000001"]).exit_code == 1
