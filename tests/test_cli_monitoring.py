"""`frhsic audit` for a job that runs every month: limits, an earlier audit, a PDF, and exit codes."""

from __future__ import annotations

import hashlib
import json
import shutil
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from frhsic.auditing import Audit, Drift
from frhsic.cli import app
from frhsic.cli.audit import _changes
from frhsic.report.words import alarms

pytestmark = pytest.mark.usefixtures("few_trees")


def month(folder, name: str, slope: float, seed: int, n: int = 600, *, older: float = 0.0, skill: float = 1.0):
    random = np.random.default_rng(seed)
    age = np.round(random.uniform(20 + older, 70 + older, n))
    p = np.clip(0.3 + slope * (age - 45 - older) / 100 + 0.1 * random.standard_normal(n), 0, 1)
    late = random.random(n) < skill * p + (1 - skill) * p.mean()
    frame = pd.DataFrame({"age": age, "p": p, "late": late.astype(int)})
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
    assert found.context.origin["data"] == hashlib.sha256((may / "may.csv").read_bytes()).hexdigest()
    assert (found.context.people, found.limits[0].verdict) == ("applicants", "kept")


def test_exit_codes_say_whether_the_gap_has_grown_and_the_limit_is_kept(may):
    same = asked(month(may, "june.csv", 0.2, 2), "--against", str(may / "may.json"))
    assert same.exit_code == 0, same.output
    june = Audit.from_json(same.stdout)
    assert not any(change.changed for change in june.drift)
    assert _changes(june, may / "may.json") == ["no change is seen since may.json."]
    assert _changes(june, None) == []
    page = may / "july.html"
    limit = "gdp=10% of base rate"
    worse = asked(month(may, "july.csv", 0.9, 3), "--against", str(may / "may.json"), "--limit", limit, "-o", str(page))
    assert worse.exit_code == 1
    assert "changed: the average gap along age from" in worse.stderr
    assert "limit not kept: gdp of age is" in worse.stderr
    earlier, found = Audit.from_json((may / "may.json").read_text()), Audit.from_json(worse.stdout)
    assert found.limits[0].reference == earlier.subject.base_rate
    assert "Has it changed since the last audit?" in page.read_text(encoding="utf-8")


def test_a_gap_that_has_fallen_is_told_and_is_no_alarm(may):
    (may / "wide.json").write_text(asked(month(may, "wide.csv", 0.6, 8, 2000, skill=0.0)).stdout)
    line = ["audit", month(may, "narrow.csv", 0.35, 9, 2000, skill=0.0), "-s", "age", "--score", "p"]
    line += ["--max-rows", "100", "-o", str(may / "narrow.html"), "--against", str(may / "wide.json")]
    result = CliRunner().invoke(app, line)
    fallen = [text for text in result.stderr.splitlines() if text.startswith("changed: the average gap along age")]
    assert len(fallen) == 1, result.stderr
    audit = Audit.from_json((may / "wide.json").read_text())
    drift = Drift("gdp", "age", 0.1, 0.05, None, 0.001, 0.05)
    assert drift.improved
    assert not replace(drift, pvalue=0.2).improved
    assert not replace(drift, after=0.2).improved
    assert not replace(drift, key="score").improved
    assert alarms(replace(audit, drift=(drift,))) == []
    assert len(alarms(replace(audit, drift=(replace(drift, key="auc"),)))) == 1


@pytest.mark.parametrize(
    ("change", "said"), [({"older": 13.0}, "the distribution of age"), ({"skill": 0.0}, "pairs in the right order")]
)
def test_a_month_that_only_keeps_its_gap_is_not_passed(may, change: dict[str, float], said: str):
    """An older population, and outcomes that are a coin: the gap is as it was, and the exit code is 1."""
    before = asked(month(may, "before.csv", 0.6, 5, 2000))
    (may / "before.json").write_text(before.stdout)
    result = asked(month(may, "after.csv", 0.6, 6, 2000, **change), "--against", str(may / "before.json"))
    assert result.exit_code == 1, result.output
    assert f"changed: {'the share of ' if 'pairs' in said else ''}{said}" in result.stderr
    assert "changed: the average gap" not in result.stderr


def test_a_pdf_without_a_browser_is_refused_before_the_work(may, monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    result = asked(str(may / "may.csv"), "--pdf", str(may / "a.pdf"))
    assert result.exit_code == 2
    assert "on Debian: apt-get install chromium" in result.stderr


def test_a_training_states_its_limit_and_names_its_model_by_a_fingerprint(may):
    model, page = may / "m.frhsic", may / "trained.html"
    line = ["train", str(may / "may.csv"), "-t", "late", "-s", "age", "--positive", "1", "--favourable", "0"]
    line += ["--max-rows", "100", "--json", "-o", str(model), "-r", str(page)]
    result = CliRunner().invoke(app, [*line, "--require", "gdp=0.4", "--decision", "whether a loan is granted"])
    assert result.exit_code == 0, result.output
    found = Audit.from_dict(json.loads(result.stdout)["report"]["audit"])
    assert found.limits[0].verdict == "kept"
    target = found.subject.target
    assert (target.name, target.favourable, target.favours_high) == ("late", "0", False)
    assert found.context.origin["model"] == hashlib.sha256(model.read_bytes()).hexdigest()
    text = page.read_text(encoding="utf-8")
    assert found.context.origin["model"] in text
    assert "whether a loan is granted" in text
    assert CliRunner().invoke(app, [*line, "--require", "gdp=0.000001"]).exit_code == 1
