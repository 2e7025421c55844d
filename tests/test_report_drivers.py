"""Which columns carry an attribute into a score, and whose score a penalty changed."""

from __future__ import annotations

import html

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import report_samples as samples
from frhsic.auditing import Settings
from frhsic.cli import app
from frhsic.estimators import FRHSICClassifier, fit_path
from frhsic.formatting import plain
from frhsic.parity import gdp
from frhsic.report import Driver, Drivers, Report, Shift, drivers, render, shifts, trained_report
from frhsic.report.driving import driver_sentence, shift_sentence

pytestmark = pytest.mark.usefixtures("few_trees")

QUICK = Settings(resamples=30, shuffles=1, max_rows=150, probe_rows=150)


def loans(n: int = 500, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    random = np.random.default_rng(seed)
    age = np.round(random.gamma(5, 6, n) + 18)
    frame = pd.DataFrame(
        {
            "job": age / 10 + random.standard_normal(n),
            "debt": random.standard_normal(n),
            "home": pd.Categorical(np.where(random.random(n) < 0.05, "own", "rent")),
        },
        index=np.arange(n) + 7,
    )
    return frame, age


def score(frame: pd.DataFrame) -> np.ndarray:
    return (0.1 * frame["job"] + 0.3 * frame["debt"] + (frame["home"] == "own")).to_numpy()


def test_the_column_that_knows_the_attribute_carries_it():
    frame, age = loans()
    (found,) = drivers(score, frame, age[:, None], ["age"], QUICK)
    assert found.gap == pytest.approx(float(gdp(score(frame), age, resamples=0)))
    assert (found.rows, {driver.column for driver in found.columns}) == (500, {"job", "debt", "home"})
    first = found.columns[0]
    assert first.column == "job"
    assert first.carried > 0.6 * found.gap
    for driver in found.columns:
        assert driver.carried == pytest.approx(found.gap - driver.shuffled)
        assert driver.column == "job" or abs(driver.carried) < 0.3 * found.gap


def test_a_column_that_the_score_does_not_use_carries_nothing():
    frame, age = loans()
    (found,) = drivers(lambda rows: 0.1 * rows["job"].to_numpy(), frame, age[:, None], ["age"], QUICK)
    assert {d.column: d.carried for d in found.columns if d.column != "job"} == {"debt": 0.0, "home": 0.0}


def test_matrices_are_taken_rows_are_bounded_and_wide_tables_are_left_out():
    random = np.random.default_rng(1)
    X = random.standard_normal((2100, 2))
    (found,) = drivers(lambda rows: rows[:, 1], X, X[:, 1:], ["s"], QUICK)
    assert (found.columns[0].column, found.rows) == ("1", 2000)
    assert drivers(lambda rows: rows[:, 0], np.zeros((50, 41)), X[:50], ["a", "b"], QUICK) == ()


def test_a_shift_is_the_mean_change_of_each_group():
    _, age = loans()
    before = np.linspace(0, 1, 500)
    after = before + 0.01 * (age - age.mean())
    (found,) = shifts(before, after, age[:, None], ["age"], QUICK)
    inside = (age >= found.curve.start[0]) & (age <= found.curve.end[0])
    assert found.curve.mean[0] == pytest.approx(0.01 * (age[inside].mean() - age.mean()))
    said = shift_sentence(found)
    assert said.startswith(f"The penalty raised scores most at age from {plain(found.curve.start[-1])} to ")
    assert f", and lowered scores most at age from {plain(found.curve.start[0])} to " in said


def test_sentences_say_when_there_is_nothing():
    flat = Drivers("age", 0.1, 500, (Driver("job", 0.1, 0.0),))
    assert driver_sentence(flat).startswith("No single column carries age")
    still = shifts(np.zeros(500), np.zeros(500), loans()[1][:, None], ["age"], QUICK)[0]
    assert shift_sentence(still) == "The penalty changed no score."


def test_the_page_shows_columns_and_shifts_with_all_digits():
    found = Drivers("age", 0.1, 500, (Driver("job<b>", 0.02, 0.08), Driver("debt", 0.1, -0.0001)))
    page = render(Report(samples.audit(), drivers=(found,), shifts=(Shift("age", samples.curve()),)))
    assert html.escape("job<b>") in page
    for value in (0.02, 0.08, 0.1, -0.0001):
        assert f'data-value="{value}"' in page
    report = Report(samples.audit(), drivers=(found,), shifts=(Shift("age", samples.curve()),))
    assert Report.from_json(report.to_json()) == report


@pytest.fixture(scope="module")
def models():
    frame, age = loans(300)
    y = (score(frame) + 0.3 * np.random.default_rng(2).standard_normal(300) > 0.4).astype(int)
    start = FRHSICClassifier(epochs=3, random_state=0)
    return fit_path(start, frame, y, weights=[0, 10], sensitive_features=age), frame, y, age


def test_a_trained_report_says_what_drives_it_and_whose_score_changed(models):
    fitted, frame, y, age = models
    report = trained_report(fitted, 1, frame, y, sensitive_features=pd.Series(age, name="age"), settings=QUICK)
    assert {driver.column for driver in report.drivers[0].columns} == {"job", "debt", "home"}
    change = fitted[1].predict_proba(frame)[:, 1] - fitted[0].predict_proba(frame)[:, 1]
    assert report.shifts[0].curve.overall == pytest.approx(change.mean())
    assert report.audit.quality[0].key == "accuracy"
    assert report.audit.quality[0].value == pytest.approx(report.tradeoff.points[1].performance)


def test_an_audit_of_a_saved_model_says_what_drives_it(models, tmp_path):
    fitted, frame, _, age = models
    fitted[1].save(tmp_path / "m.frhsic")
    frame.assign(age=age).to_csv(tmp_path / "t.csv", index=False)
    asked = ["audit", str(tmp_path / "t.csv"), "-s", "age", "--model", str(tmp_path / "m.frhsic"), "--max-rows", "100"]
    result = CliRunner().invoke(app, [*asked, "-o", str(tmp_path / "r.html")])
    assert result.exit_code == 0, result.output
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "Columns that carry age into the score" in page
    assert "the representation of m.frhsic" in page
