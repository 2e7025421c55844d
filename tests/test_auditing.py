"""The audit: its inputs, its numbers, which are those of the library, its plain form, its limits
and changes.
"""

from __future__ import annotations

import json
import math
from dataclasses import asdict, replace
from importlib.util import find_spec
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import stats
from scipy.special import expit
from sklearn.metrics import log_loss, roc_auc_score
from typer.testing import CliRunner

import report_samples as samples
from frhsic.auditing import Audit, Context, Settings, audit, drift, since
from frhsic.auditing.comparing import check_limits, difference, largest_value, parse_audit_limits
from frhsic.auditing.gaps import gap_number, gap_terms
from frhsic.auditing.measures import PROBES
from frhsic.auditing.performance import base_rate, changes, class_quality, covariance, qualities
from frhsic.auditing.results import Law, LimitCheck, Number, Quality, Subject, are_chances
from frhsic.auditing.rows import Rows
from frhsic.auditing.running import Inputs, outcome
from frhsic.cli import app
from frhsic.independence.effects import METHOD
from frhsic.intervals import Interval
from frhsic.parity import correlation_ratio, gdp, gdp_curve, rank_gap, standardized_gdp
from frhsic.probes import cross_fitted_scores, probe
from frhsic.report import render, words
from frhsic.report.first_page import gap_sentence
from frhsic.report.words import resolution_sentence
from frhsic.splits import subsample

pytestmark = pytest.mark.usefixtures("few_trees", "few_epochs")

QUICK = Settings(resamples=60, max_rows=400, probe_rows=200)
FAST = replace(QUICK, fast=True)
SMALL = Settings(resamples=60, max_rows=100, probe_rows=100)


def table(
    n: int = 700, d: int = 1, strength: float = 1.0, seed: int = 0
) -> tuple[np.ndarray, pd.Series, pd.Series]:
    random = np.random.default_rng(seed)
    age = np.round(np.clip(18 + random.gamma(4, 6, n), 18, 90))
    z = random.standard_normal((n, d))
    z[:, 0] += strength * (age - 42) / 12
    y = (random.random(n) < 1 / (1 + np.exp(-z[:, 0]))).astype(float)
    return z, pd.Series(age, name="age"), pd.Series(y, name="repaid")


@pytest.fixture(scope="module")
def scored():
    z, age, y = table()
    return (
        z,
        age,
        y,
        audit(
            z,
            age,
            y,
            threshold=0.5,
            settings=QUICK,
            context=Context(name="risk"),
        ),
    )


@pytest.fixture(scope="module")
def embedded():
    z, age, y = table(d=6)
    hours = pd.Series(np.random.default_rng(5).normal(40, 8, len(z)), name="hours")
    return z, age, hours, y, audit(z, pd.concat([age, hours], axis=1), y, settings=QUICK)


def test_every_number_is_the_one_that_the_library_gives(scored):
    z, age, y, result = scored
    numbers, f = result["age"].all_rows, z[:, 0]
    common: dict[str, Any] = {"resamples": 60, "random_state": 0}
    decided = (f >= 0.5).astype(float)
    for key, expected in {
        "gdp": gdp(f, age, **common),
        "standardized_gdp": standardized_gdp(f, age, **common),
        "decision_gdp": gdp(decided, age, **common),
        "error_gdp": gdp((decided != y).astype(float), age, **common),
        "rank_gap": rank_gap(f, age, **common),
    }.items():
        number = numbers[key]
        assert (number.value, number.pvalue) == pytest.approx(
            (expected.value, expected.pvalue), rel=1e-9
        )
        assert tuple(number.interval) == pytest.approx(expected.interval, rel=1e-9)
        assert (number.interval.low > 0) == (number.pvalue <= 0.05)
        assert number.under_independence == pytest.approx(
            expected.expected_under_independence, rel=1e-9
        )
    assert "calibration_gdp" not in {
        number.key for number in numbers.numbers
    }  # these scores are no chances
    assert numbers["correlation_ratio"].value == float(correlation_ratio(f, age))
    left_out = {"calibration_gdp"}
    if find_spec("torch") is None:
        left_out |= {"hsic", "hsic_effect"}
    assert {number.key for number in numbers.numbers} == set(words.LABELS) - left_out
    rows = subsample(len(z), 200, QUICK.generator(4))
    for kind in PROBES:
        number, expected = numbers[f"probe_{kind}"], probe(z[rows], age.to_numpy()[rows], kind)
        assert (number.value, number.rows) == (expected.r2, 200)
        assert number.under_independence == expected.shuffled_r2


def test_hsic_in_an_audit_is_the_one_that_the_library_gives(scored):
    torch = pytest.importorskip("torch")
    from frhsic.dependence import distance_correlation, hsic, hsic_unbiased
    from frhsic.independence import gamma_test, hsic_interval, normalized_hsic_interval
    from frhsic.kernels import HalfDistance, gaussian_at_median

    z, age, _, result = scored
    numbers = result["age"].all_rows
    rows = subsample(len(z), 400, QUICK.generator(1))
    a, b = torch.from_numpy(z[rows]), torch.from_numpy(age.to_numpy()[rows])[:, None]
    k, l = gaussian_at_median(a), gaussian_at_median(b)
    assert numbers["hsic"].value == pytest.approx(float(hsic_unbiased(a, b, k, l)), rel=1e-10)
    assert numbers["hsic"].settings["biased"] == pytest.approx(float(hsic(a, b, k, l)), rel=1e-12)
    assert numbers["hsic"].pvalue == gamma_test(a, b, k, l).pvalue
    for key, function in (("hsic", hsic_interval), ("hsic_effect", normalized_hsic_interval)):
        expected = function(a, b, k, l)
        assert (numbers[key].value, numbers[key].interval) == (expected.value, expected.interval)
    half = HalfDistance()
    squared = numbers["squared_distance_correlation"].value
    assert squared == normalized_hsic_interval(a, b, half, half).value
    assert squared == pytest.approx(float(distance_correlation(a, b)) ** 2, abs=0.01)


def test_without_torch_an_audit_leaves_hsic_out_and_says_how_to_install_it(scored, monkeypatch):
    z, age, y, result = scored
    monkeypatch.setattr("frhsic._lazy.find_spec", lambda name: None)
    light = audit(z, age, y, threshold=0.5, settings=QUICK, context=Context(name="risk"))
    assert light.context.remarks == (
        "HSIC and its test were left out, because they need torch, which is not installed; run"
        " `pip install torch`.",
    )
    kept = [n for n in result["age"].all_rows.numbers if n.key not in ("hsic", "hsic_effect")]
    assert list(light["age"].all_rows.numbers) == kept
    several = audit(np.column_stack([z, y]), age, settings=replace(SMALL, resamples=20))
    assert "squared_distance_correlation" not in {n.key for n in several["age"].all_rows.numbers}
    assert audit(z, age, settings=replace(SMALL, fast=True)).context.remarks == ()


def test_each_number_says_how_it_was_computed(scored):
    pytest.importorskip("torch")
    *_, result = scored
    numbers = result["age"].all_rows
    gaps = dict.fromkeys(("gdp", "standardized_gdp", "decision_gdp", "error_gdp", "rank_gap"))
    assert {n.key: n.interval.method for n in numbers.numbers if n.interval} == {
        **dict.fromkeys(gaps, "influence function"),
        "decision_ratio": "band",
        "correlation_ratio": "normal approximation",
        **dict.fromkeys(("hsic", "hsic_effect", "squared_distance_correlation"), METHOD),
    }
    assert {n.interval.confidence for n in numbers.numbers if n.interval} == {0.95}
    assert all(numbers[key].settings["seed"] == 0 for key in gaps)
    details = numbers["hsic"].settings
    assert (details["bandwidth on z"], details["bandwidth on s"]) == ("median distance",) * 2
    assert str(details["kernel on z"]).startswith("Gaussian(bandwidth=")
    rate = result.subject.base_rate
    assert (rate.key, rate.rows, rate.interval.method) == ("base_rate", 700, "Clopper and Pearson")
    assert base_rate(np.arange(9.0), 0.9).interval.method == "Student's t"


def test_each_step_is_told_as_it_begins():
    z, age, y = table(200)
    one = ["gaps", "HSIC and its test"]
    probes = ["linear probe", "trees probe"]
    favoured = [f"equal opportunity: {step}" for step in one]
    steps: list[str] = []
    audit(z, age, y, settings=replace(SMALL, watch=steps.append))
    assert steps == [*one, *probes, *favoured]
    steps.clear()
    audit(z, np.column_stack([age, age + z[:, 0]]), settings=replace(SMALL, watch=steps.append))
    each = [f"s_{i}: {step}" for i in (1, 2) for step in (*one, *probes)]
    assert steps == [*each, "all together: HSIC and its test"]


def test_a_rank_gap_of_many_rows_is_that_of_a_random_sample(monkeypatch):
    monkeypatch.setattr("frhsic.auditing.measures.RANK_ROWS", 300)
    z, age, _ = table()
    number = audit(z, age, settings=QUICK)["age"].all_rows["rank_gap"]
    rows = subsample(len(z), 300, QUICK.generator(9))
    assert number.rows == 300
    assert number.value == pytest.approx(rank_gap(z[rows, 0], age[rows], resamples=0).value)


@pytest.mark.parametrize(
    ("low", "high", "chances"),
    [(0, 1, True), (0.2, 0.4, True), (-1e-9, 1, False), (0, 1 + 1e-9, False)],
)
def test_scores_from_0_to_1_are_chances(low: float, high: float, chances: bool):
    assert are_chances(low, high) == chances
    scores = np.linspace(low, high, 200)
    y = (np.arange(200) % 3 == 0).astype(float)
    result = audit(scores, np.arange(200) % 7, y, settings=replace(SMALL, fast=True))
    assert (result.subject.threshold == 0.5) == chances
    assert (result["s"].all_rows.get("calibration_gdp") is not None) == chances
    assert ({"mean_error", "log_loss"} <= {one.key for one in result.quality}) == chances


def test_decisions_are_scores_above_the_threshold_on_one_side_too():
    scores = np.repeat([0.2, 0.4], 100)
    y = (np.arange(200) % 3 == 0).astype(float)
    s = np.arange(200) % 7
    tied = audit(scores, s, y, threshold=0.4, settings=replace(SMALL, fast=True))
    accuracy = {one.key: one.value for one in tied.quality}["accuracy"]
    assert accuracy == pytest.approx(np.mean(y == 0))  # 0.4 is not above 0.4
    without = audit(scores, s, y, threshold=0.9, settings=replace(SMALL, fast=True))
    assert without["s"].all_rows["decision_gdp"].value == 0


@pytest.mark.parametrize(
    ("key", "span", "largest"),
    [
        ("gdp", (0.0, 1.0), 0.5),
        ("gdp", (-1.0, 3.0), 2.0),
        ("gdp", None, math.inf),
        ("calibration_gdp", (0.0, 1.0), 1.0),
        ("calibration_gdp", (0.0, 2.0), math.inf),
        *((key, (-1.0, 3.0), 0.5) for key in ("decision_gdp", "error_gdp", "rank_gap")),
        *((key, (-1.0, 3.0), 1.0) for key in ("hsic_effect", "standardized_gdp", "decision_ratio")),
    ],
)
def test_a_mean_absolute_deviation_is_at_most_half_of_the_range(
    key: str, span: tuple[float, float] | None, largest: float
):
    assert largest_value(key, Subject("f", span=span)) == largest


def test_curves_are_the_librarys_and_marked_where_rows_are_few(scored):
    z, age, y, result = scored
    columns = {"gdp": z[:, 0], "decision_gdp": (z[:, 0] >= 0.5).astype(float)}
    columns["error_gdp"] = (columns["decision_gdp"] != y).astype(float)
    curves = result["age"].all_rows.curves
    assert curves.keys() == columns.keys()
    for key, column in columns.items():
        expected = gdp_curve(column, age)
        np.testing.assert_allclose(curves[key].mean, expected.mean, rtol=1e-12)
        np.testing.assert_allclose(curves[key].low, expected.lower, rtol=1e-12)
        assert curves[key].sparse == tuple(rows < 30 for rows in expected.rows)


def test_residuals_of_chances_are_followed_along_the_attribute():
    """A score that is too low for the old: the gap of y - f is that of the definition, and the
    curve shows where.
    """
    random = np.random.default_rng(1)
    age = random.uniform(20, 60, 4000)
    y = (random.random(4000) < 0.3 + 0.2 * (age > 40)).astype(float)
    numbers = audit(np.where(random.random(4000) < 0.5, 0.39, 0.41), age, y, settings=FAST)[
        "s"
    ].all_rows
    gap, curve = numbers["calibration_gdp"], numbers.curves["calibration_gdp"]
    assert gap.interval.low <= 0.1 <= gap.interval.high
    assert gap.pvalue < 0.01
    young = np.array(curve.end) < 40
    assert np.mean(np.array(curve.mean)[young]) == pytest.approx(-0.1, abs=0.03)
    assert numbers["gdp"].pvalue > 0.01
    few = audit(np.r_[0.9, np.full(99, 0.001)], age[:100], settings=FAST)["s"].all_rows.curves[
        "gdp"
    ]
    assert 0 <= min(few.low) <= max(few.high) <= 1  # means of chances are chances


def test_errors_of_groups_have_the_ends_of_the_exact_test_of_their_scores():
    """The band of outcome minus score in each group and window excludes 0 if and only if the
    binomial test of its scores rejects, whose ends are those of Clopper and Pearson.
    """
    random = np.random.default_rng(4)
    age = random.integers(20, 32, 1500).astype(float)
    y = (random.random(1500) < 0.02 + 0.1 * (age > 29)).astype(float)
    curves = audit(np.full(1500, 0.03), age, y, settings=FAST)["s"].all_rows.curves
    groups, windows = curves["calibration_gdp"], curves["calibration_windows"]
    means = len(groups.grid) + len(windows.grid)
    assert means == 12 + 4
    for curve in (groups, windows):
        for i, (start, end) in enumerate(zip(curve.start, curve.end)):
            own = y[(start <= age) & (age <= end)]
            test = stats.binomtest(int(own.sum()), len(own), 0.03)
            ends = test.proportion_ci(0.95 ** (1 / means), "exact")
            assert (curve.low[i], curve.high[i]) == pytest.approx(
                (ends.low - 0.03, ends.high - 0.03), abs=1e-12
            )
    pairs = np.repeat(np.arange(1500), 2)  # the same rows twice say no more
    twice = audit(np.full(3000, 0.03), age[pairs], y[pairs], settings=FAST, groups=pairs)
    again = twice["s"].all_rows.curves["calibration_gdp"]
    assert again.grid == groups.grid
    assert np.all(np.array(again.low) <= np.array(groups.low) + 1e-12)
    assert np.all(np.array(again.high) >= np.array(groups.high) - 1e-12)


def test_equal_opportunity_is_the_same_on_the_rows_with_the_favourable_outcome(scored):
    z, age, y, result = scored
    positives = result["age"].positives
    expected = gdp(z, age, where=y == 1, resamples=60)
    assert positives.rows == int(y.sum())
    assert positives["gdp"].value == pytest.approx(expected.value, rel=1e-12)
    assert positives.curves.keys() == {"gdp", "decision_gdp"}
    other = audit(z, age, y, favourable=0, settings=QUICK)
    assert other["age"].positives["gdp"].value == pytest.approx(
        gdp(z, age, where=y == 0, resamples=0).value, rel=1e-12
    )
    assert (other.subject.target.favourable, other.subject.target.favours_high) == ("0", False)


def test_claims_about_many_attributes_are_adjusted():
    random = np.random.default_rng(3)
    s = random.random((400, 4))
    z = s[:, 0] + 0.3 * random.standard_normal(400)
    gaps = [attribute.all_rows["gdp"] for attribute in audit(z, s, settings=FAST).attributes]
    raw = sorted(gdp(z, column, resamples=60).pvalue for column in s.T)
    adjusted = np.maximum.accumulate(
        [min(1.0, (4 - i) * p) for i, p in enumerate(raw)]
    )  # Holm, 1979
    assert sorted(gap.pvalue for gap in gaps) == pytest.approx(raw)
    assert sorted(gap.adjusted for gap in gaps) == pytest.approx(adjusted)
    assert audit(z, s[:, 0], settings=FAST)["s"].all_rows["gdp"].adjusted is None


def test_weights_and_groups_reach_the_gaps():
    z, age, y = table(300)
    weights, people = np.arange(300) % 3 + 1.0, np.arange(300) // 2
    result = audit(z, age, y, sample_weight=weights, groups=people, settings=QUICK)
    options = {"sample_weight": weights, "groups": people}
    expected, numbers = gdp(z, age, resamples=60, **options), result["age"].all_rows
    assert (numbers["gdp"].value, numbers["gdp"].pvalue) == pytest.approx(
        (expected.value, expected.pvalue)
    )
    np.testing.assert_allclose(numbers.curves["gdp"].mean, gdp_curve(z, age, **options).mean)
    assert result.rows.groups == 150
    shares = weights.reshape(150, 2).sum(axis=1)
    assert result.rows.effective == pytest.approx(shares.sum() ** 2 / (shares @ shares))


def test_measures_of_dependence_use_one_row_of_each_group():
    """Equal rows of 60 persons: as independent rows they look dependent, and trees recover every
    person.
    """
    pytest.importorskip("torch")
    random = np.random.default_rng(0)
    z, age = (np.repeat(random.normal(size=60), 5) for _ in range(2))
    result = audit(z, age, groups=np.repeat(np.arange(60), 5), settings=QUICK)
    once = audit(z[::5], age[::5], settings=QUICK)
    for key in (
        "hsic",
        "hsic_effect",
        "squared_distance_correlation",
        "probe_trees",
    ):
        assert result["s"].all_rows[key] == once["s"].all_rows[key]
    assert (
        audit(z, age, settings=QUICK)["s"].all_rows["hsic"].pvalue
        < 0.01
        < result["s"].all_rows["hsic"].pvalue
    )
    few = audit(z, age, groups=np.arange(300) % 19, settings=QUICK)
    assert few["s"].all_rows.get("hsic") is None
    assert any("weights and units leave only 19 rows" in line for line in words.warnings(few))


def test_what_heavy_weights_leave_out_is_said():
    """One row has a fifth of the weight, so that about five rows are independent."""
    z, age, _ = table(1000)
    weights = np.ones(1000)
    weights[0] = 250.0
    heavy = audit(z, age, sample_weight=weights, settings=QUICK)
    assert heavy.rows.independent < 20
    halves = audit(z, age, sample_weight=np.arange(1000) % 7, settings=QUICK)
    assert halves.rows.independent == halves["age"].all_rows["correlation_ratio"].rows < 600
    assert {n.key for n in heavy["age"].all_rows.numbers} == {"gdp", "standardized_gdp", "rank_gap"}
    assert f"leave only {heavy.rows.independent} row" in render(heavy)
    usual = audit(z, age, sample_weight=np.ones(1000), settings=SMALL)
    assert usual.rows.independent == 1000
    assert len(usual.context.remarks) == (find_spec("torch") is None)


def test_an_interval_excludes_0_exactly_where_the_own_test_rejects():
    """Weak gaps along two attributes, whose tests are often near the level."""
    seen = set()
    for seed in range(3):
        random = np.random.default_rng(seed)
        s = random.uniform(size=(300, 2))
        chance = np.clip(0.3 + 0.1 * (s[:, 0] - 0.5) + 0.1 * random.standard_normal(300), 0, 1)
        late = (random.random(300) < chance).astype(int)
        result = audit(chance, s, late, settings=SMALL)
        for attribute in result.attributes:
            for population in (attribute.all_rows, attribute.positives):
                for number in () if population is None else population.numbers:
                    if number.pvalue is not None:
                        rejects = number.pvalue <= 0.05
                        assert (number.interval.low > 0) == rejects, number
                        assert number.adjusted >= number.pvalue
                        seen.add(rejects)
            gap = attribute.all_rows["gdp"]
            told = gap_sentence(gap, attribute.name, result)
            assert ("varies with" in told) == (gap.interval.low > 0)
    assert seen == {True, False}


def test_independent_rows_follow_the_weights():
    weights = np.tile([1.0, 3.0], 2000)
    rows = Rows(np.tile([0.0, 1.0], 2000)[:, None], np.zeros((4000, 1)), None, weights=weights)
    rows = rows.independent_rows(np.random.default_rng(0))
    assert rows.z.mean() == pytest.approx(0.75, abs=4 * math.sqrt(0.75 * 0.25 / rows.count))


def test_several_attributes_are_measured_one_by_one_and_together(embedded):
    pytest.importorskip("torch")
    result = embedded[-1]
    assert [attribute.name for attribute in result.attributes] == ["age", "hours"]
    assert result["age"].all_rows["hsic"].pvalue < 1e-6 < result["hours"].all_rows["hsic"].pvalue
    assert result.joint["hsic"].pvalue < 1e-6
    assert result.joint.get("gdp") is None


def test_the_head_of_a_representation_is_fitted_out_of_fold(embedded):
    z, age, _, y, result = embedded
    assert result.subject.score_name.endswith("fitted out of fold")
    expected = gdp(cross_fitted_scores(z, y.to_numpy()), age, resamples=0).value
    assert result["age"].all_rows["gdp"].value == pytest.approx(expected, rel=1e-12)
    scores = pd.Series(z[:, 0] ** 2, name="risk")
    given = audit(z, age, scores=scores, settings=QUICK)
    assert given.subject.score_name == "risk"
    assert given["age"].all_rows["gdp"].value == pytest.approx(
        gdp(scores, age, resamples=0).value, rel=1e-12
    )


def test_what_cannot_be_computed_is_left_out():
    z, age, _ = table(300, d=4)
    f, few, s = z[:, 0], np.arange(300) < 7, np.repeat([0.0, 1.0, 2.0], 100)
    bare = audit(z, age, settings=QUICK)["age"]
    assert (bare.all_rows.get("gdp"), bare.positives) == (None, None)
    flat = audit(np.full(300, 0.4), age, settings=QUICK)["age"].all_rows
    assert {number.key for number in flat.numbers} >= {"gdp", "decision_gdp", "probe_trees"}
    assert {number.key for number in flat.numbers}.isdisjoint(
        {"standardized_gdp", "rank_gap", "hsic"}
    )
    for attribute, y in (
        (age, few),
        (s, s == 1),
        (age, np.arange(300.0)),
    ):  # few, constant and unknown favoured rows
        assert audit(f, attribute, y, settings=QUICK).attributes[0].positives is None
    with pytest.raises(KeyError, match="'height' was not audited; use one of age"):
        audit(f, age, settings=QUICK)["height"]


def test_a_continuous_target_adds_its_calibration_alone():
    z, age, _ = table(300)
    y = z[:, 0] + np.random.default_rng(0).normal(size=300)
    without, with_target = (
        audit(z, age, target, settings=QUICK)["age"].all_rows for target in (None, y)
    )
    added = {number.key for number in with_target.numbers} - {n.key for n in without.numbers}
    assert added == {"calibration_gdp"}


def test_units_of_the_columns_do_not_matter():
    pytest.importorskip("torch")
    z, age, _ = table(400, d=6)
    units = np.array([1.0, 1e3, 1.0, 1e-3, 50.0, 1e4])
    plain, mixed = (audit(x, age, settings=QUICK)["age"].all_rows for x in (z, z * units))
    for key in ("hsic", "hsic_effect", "squared_distance_correlation"):
        assert mixed[key].value == pytest.approx(plain[key].value, rel=1e-6)


# how well the scores predict
# ------------------------------------------------------------------------------------


def test_quality_is_that_of_the_definition_beside_a_constant():
    scores, y = np.array([0.1, 0.4, 0.35, 0.8]), np.array([0.0, 0.0, 1.0, 1.0])
    quality = {one.key: (one.value, one.constant) for one in qualities(scores, y, 0.38)}
    pairs = [a > b for a in scores[y == 1] for b in scores[y == 0]]
    assert quality["accuracy"] == (0.5, 0.5)
    assert quality["auc"] == (np.mean(pairs), 0.5)
    assert quality["log_loss"] == pytest.approx((log_loss(y, scores), math.log(2)))
    assert (quality["true_positive_rate"], quality["false_positive_rate"]) == (
        (0.5, 0.0),
        (0.5, 0.0),
    )
    assert {one.key for one in qualities(scores - 1, y, None)} == {"auc"}
    other = {one.key: one for one in qualities(scores, 3 * y + scores, None)}
    assert (other["root_squared_error"].value, other["mean_error"].value) == pytest.approx(
        (np.sqrt(np.mean(9 * y)), 1.5)
    )
    spread = np.var(3 * y + scores)
    assert other["root_squared_error"].constant == pytest.approx(np.sqrt(spread))
    assert other["explained"].value == pytest.approx(1 - np.mean(9 * y) / spread)
    for one in qualities(np.full(100, 0.06), np.repeat([0.0, 1.0], [94, 6]), 0.5):
        assert one.value == pytest.approx(one.constant, abs=1e-12)
    assert {one.key for one in qualities(scores, np.ones(4), 0.5)} & {
        "auc",
        "true_positive_rate",
    } == set()


def test_standard_errors_are_those_of_repeated_samples():
    """AUC with ties and weights, a mean of groups that are alike, and changes between scores of the
    same groups.

    The oracle is the spread over 200 samples.
    """
    random = np.random.default_rng(0)
    errors, values = [], []
    for _ in range(200):
        y = (random.random(200) < 0.3).astype(float)
        scores = np.round(0.8 * y + random.standard_normal(200), 1)
        auc = next(one for one in qualities(scores, y, None, weights=1 + y) if one.key == "auc")
        people = np.repeat(np.arange(40), 5)
        mean = base_rate(np.repeat(random.standard_normal(40), 5), 0.95, None, people)
        pairs = np.repeat(np.arange(100), 2)
        noise = np.repeat(random.standard_normal(100), 2)
        own = np.repeat(y[:100], 2)
        was = own + noise + 0.5 * random.standard_normal(200)
        other = list(
            changes(
                was,
                was - 0.5 * own + 0.5 * random.standard_normal(100)[pairs],
                own,
                0.5,
                0.05,
                pairs,
            )
        )
        reach = 2 * stats.norm.ppf(0.975)
        values.append((auc.value, mean.value, *(one.after - one.before for one in other)))
        errors.append(
            (
                auc.standard_error,
                mean.standard_error,
                *(np.ptp([*one.interval]) / reach for one in other),
            )
        )
    assert auc.value == pytest.approx(roc_auc_score(y, scores, sample_weight=1 + y), rel=1e-12)
    assert np.sqrt(np.mean(np.square(errors), axis=0)) == pytest.approx(
        np.std(values, axis=0), rel=0.12
    )


@pytest.mark.parametrize("binary", [False, True])
def test_the_paired_intervals_of_errors_hold_the_change(binary: bool):
    """The oracle is the spread of the changes over 400 samples of the same law."""
    random = np.random.default_rng(1)
    found = []
    for _ in range(400):
        x = random.standard_normal(300)
        was, now = 1.0 * x, 0.6 * x + 0.2 * random.standard_normal(300)
        y = x + random.standard_normal(300)
        if binary:
            y = (random.random(300) < expit(x)).astype(float)
            was, now = expit(was), expit(now)
        found.append(list(changes(was, now, y, None, 0.05)))
    keys = [change.key for change in found[0]]
    other = {"auc", "log_loss"} if binary else {"root_squared_error", "explained"}
    assert {*keys} == other | {"mean_error"}
    for each in zip(*found):
        sizes = [one.after - one.before for one in each]
        errors = [np.ptp([*one.interval]) / (2 * stats.norm.ppf(0.975)) for one in each]
        assert np.sqrt(np.mean(np.square(errors))) == pytest.approx(np.std(sizes), rel=0.12)
        inside = [one.interval.low <= np.mean(sizes) <= one.interval.high for one in each]
        assert np.mean(inside) > 0.92


def test_a_base_rate_has_the_exact_interval_and_counts_weights():
    y = np.repeat([0.0, 1.0], [190, 10])
    expected = stats.binomtest(10, 200).proportion_ci(0.95, "exact")
    rate = base_rate(y, 0.95)
    assert (rate.interval.low, rate.interval.high) == pytest.approx(
        (expected.low, expected.high), rel=0.02
    )
    twice = np.repeat(np.arange(200), 1 + (y > 0))
    assert base_rate(y, 0.95, weights=1 + y).value == pytest.approx(y[twice].mean(), rel=1e-12)
    for value, ends in ((0.0, (0, 1 - 0.025 ** (1 / 200))), (1.0, (0.025 ** (1 / 200), 1))):
        interval = base_rate(np.full(200, value), 0.95).interval
        assert (interval.low, interval.high) == pytest.approx(ends)


def test_a_rate_of_rows_that_are_alike_has_the_interval_of_their_groups():
    """Of 60 groups of five equal rows, 45 have the outcome.

    Over 150 random laws of clustered and weighted rows, 99 % of intervals at 95 % held the rate.
    """
    people = np.repeat(np.arange(60), 5)
    expected = stats.binomtest(45, 60).proportion_ci(0.95, "exact")
    for weights in (None, np.full(300, 7.0)):
        rate = base_rate((people < 45).astype(float), 0.95, weights, people)
        assert tuple(rate.interval) == pytest.approx((expected.low, expected.high), rel=0.01)
    mixed = base_rate((np.arange(300) % 4 > 0).astype(float), 0.95, None, people)
    expected = stats.binomtest(225, 300).proportion_ci(0.95, "exact")
    assert tuple(mixed.interval) == pytest.approx((expected.low, expected.high))


def test_of_several_classes_the_most_probable_one_is_compared_with_the_most_common():
    outputs = np.array([[0.5, 0.3, 0.2], [0.2, 0.5, 0.3], [0.4, 0.3, 0.3], [0.1, 0.2, 0.7]])
    right = class_quality(outputs, np.array([0, 2, 0, 2]), 0.95, np.array([1.0, 2.0, 3.0, 4.0]))
    assert (right.value, right.constant) == pytest.approx((0.8, 0.6))


def test_a_mean_of_numbers_has_the_interval_of_student():
    x = np.random.default_rng(0).normal(size=30)
    expected = stats.ttest_1samp(x, 0.0).confidence_interval(0.9)
    interval = base_rate(x, 0.9).interval
    assert tuple(interval) == pytest.approx((expected.low, expected.high))


# plain data
# --------------------------------------------------------------------------------------------------


BELOW_ZERO = asdict(Number("base_rate", -0.817, 300))


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("quality", 0, "value"), -0.817, "the document contains an invalid auc, -0.817"),
        (("quality", 0, "value"), 1.01, "the document contains an invalid auc, 1.01"),
        (("subject", "base_rate"), BELOW_ZERO, "contains an invalid base_rate, -0.817"),
        (
            ("quality", 0, "constant"),
            float("nan"),
            "contains nan, but all numbers must be finite",
        ),
        (("rows", "used"), -1, "the document contains an invalid used, -1"),
        (("attributes", 0, "all_rows", "numbers", 0, "interval", "low"), 2.0, "interval from 2"),
        (("attributes", 0, "all_rows", "numbers", 0, "pvalue"), 1.5, "an invalid pvalue, 1.5"),
    ],
)
def test_an_audit_with_numbers_that_no_audit_has_is_refused(path, value, message):
    quality = (Quality("auc", 0.8, 0.5),)
    document = replace(samples.audit(), quality=quality).to_dict()
    owner = document
    for key in path[:-1]:
        owner = owner[key]
    owner[path[-1]] = value
    with pytest.raises(ValueError, match=message):
        Audit.from_json(json.dumps(document))


def test_an_audit_survives_json_and_the_same_seed_repeats_it(scored, embedded):
    for result in (scored[-1], embedded[-1], samples.audit()):
        text = result.to_json()
        assert Audit.from_json(text) == result
        assert json.loads(text) == result.to_dict()
    z, age, _ = table(150)
    first, again, other = (
        audit(z, age, settings=replace(QUICK, seed=seed, max_rows=100)) for seed in (0, 0, 1)
    )
    assert first == again
    assert first != other
    assert "gdp=" in repr(first)


def test_an_audit_of_numbers_below_0_and_above_1_survives_json():
    age = np.repeat(np.arange(20.0, 60.0), 5)
    for mean in (-0.8, 19.0):
        y = mean + np.sin(age) / 10
        result = audit(y + 0.1, age, y, settings=replace(QUICK, fast=True))
        assert result.subject.base_rate.value == pytest.approx(mean, abs=0.05)
        assert Audit.from_json(result.to_json()) == result


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": 1}, "format is 1, but this version of frhsic reads"),
        ({"subjekt": "x"}, "the document is not a valid Audit: 'subjekt'"),
        ({"rows": []}, "the document is not a valid Audit"),
        ({"rows": {"given": 1}}, "the document is not a valid Audit: .*'dropped'"),
        ({"attributes": {}}, "the document is not a valid Audit: expected"),
        ({"settings": {"a": None}}, "the document is not a valid Audit: expected .*, got 'None'"),
        (
            {"subject": {"name": "p", "confidence": 10**400}},
            "the document is not a valid Audit: int too",
        ),
    ],
)
def test_a_document_that_is_wrong_is_refused(change: dict[str, Any], message: str):
    with pytest.raises(ValueError, match=message):
        Audit.from_dict(samples.audit().to_dict() | change)


# what an audit is given
# ----------------------------------------------------------------------------------------------


def people(n: int = 400, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    age = np.round(rng.uniform(20, 70, n))
    risk = 1 / (1 + np.exp(-(0.05 * (45 - age) + rng.normal(size=n))))
    return pd.DataFrame(
        {
            "age": age,
            "risk": risk,
            "late": (rng.random(n) < risk).astype(int),
            "x": rng.normal(size=n),
        }
    ).assign(outcome=lambda frame: np.where(frame["late"] == 1, "late", "repaid"))


def gap(result: Audit, attribute: str = "age") -> float:
    return result[attribute].all_rows["gdp"].value


def taken(z: Any, scores: Any = None, s: Any = None, y: Any = None) -> np.ndarray:
    """What an audit takes z for."""
    names: dict[str, Any] = dict.fromkeys(["positive", "favourable", "weights", "groups"])
    return Inputs.from_arrays(z, people()["age"] if s is None else s, y, scores, **names).rows.z


def test_two_probabilities_mean_that_of_the_second_class():
    data = people()
    both = np.column_stack([1 - data["risk"], data["risk"]])
    expected = gdp(data["risk"], data["age"], resamples=0).value
    result = audit(both.astype(np.float32), data["age"], settings=SMALL)
    assert (result.subject.dimensions, result.subject.name) == (1, "score")
    assert gap(result) == pytest.approx(expected, rel=1e-5)
    np.testing.assert_allclose(
        taken(pd.DataFrame(both, columns=["repaid", "late"])), data[["risk"]]
    )


def test_probabilities_of_more_classes_are_refused_and_other_columns_are_a_representation():
    data = people()
    three = np.column_stack([1 - data["risk"], data["risk"] / 3, 2 * data["risk"] / 3])
    with pytest.raises(
        ValueError,
        match=r"3 columns with values between 0 and 1, and each row sums to 1.*positive=LABEL",
    ):
        audit(three, data["age"], settings=SMALL)
    assert taken(three[:, 1:]).shape == (400, 2)
    assert taken(three, scores=data["risk"]).shape == (400, 3)
    assert taken(np.column_stack([data["risk"], data["x"]])).shape == (400, 2)


def test_a_text_target_is_taken_with_its_positive_value():
    data = people()
    for y in (
        data["outcome"],
        data["outcome"].astype("category"),
        data[["outcome"]],
        pl.Series(data["outcome"].to_list()),
        list(data["outcome"]),
    ):
        codes, favoured, target = outcome(y, "late", None)
        assert target.positive == "late"
        np.testing.assert_array_equal(codes, data["late"])
        np.testing.assert_array_equal(favoured, data["late"] == 1)


# All conversions of arrays to NumPy or torch, and what reads columns: each is called with the name
# that messages have for what it checks.
def test_rows_without_an_attribute_are_left_out_counted_and_compared():
    data = people()
    age = data["age"].where(data.index % 4 > 0)
    result = audit(data["risk"], age, data["late"], context=Context(dropped=7), settings=SMALL)
    known = data[age.notna()]
    assert (result.rows.given, result.rows.dropped, result.rows.used) == (407, 107, 300)
    assert gap(result) == pytest.approx(
        gdp(known["risk"], known["age"], resamples=0).value, rel=1e-12
    )
    assert result["age"].positives.rows == int(known["late"].sum())
    few = "an audit needs at least 20 rows, but only 10 of 400 rows have a value for age"
    with pytest.raises(ValueError, match=few):
        audit(data["risk"], age.where(data.index % 40 == 1), settings=SMALL)


def test_swapped_scores_and_attribute_are_warned_of():
    data = people()
    for swapped in (data["age"], 1000 * data["x"]):
        with pytest.warns(UserWarning, match="swapped"):
            remarks = audit(swapped, data["risk"], settings=SMALL).context.remarks
        assert len(remarks) == 1 + (find_spec("torch") is None)
    with pytest.warns(UserWarning, match="swapped"):
        taken(data["age"], s=data["risk"], y=data["late"])


def test_scores_beyond_0_and_1_are_not_taken_for_an_attribute():
    data = people()
    income, share = 1000 * data["x"], data["risk"]
    for z, s, y in (
        (share, data["x"].abs(), None),
        (income, share, 900 * data["x"]),  # predictions of a number
        (income, data["late"], None),  # an attribute of two values
        (data["x"], share, data["late"]),  # logits
        (data[["age", "x"]], share, None),
    ):
        taken(z, s=s, y=y)  # a warning is an error


def test_the_names_of_groups_change_nothing():
    data = people()
    number = np.arange(400) // 4
    named = pd.Series(number, name="person")
    mixed = [label if label % 2 else f"a{label}" for label in number.tolist()]  # numbers and text
    results = [
        audit(data["risk"], data["age"], groups=groups, settings=SMALL)
        for groups in (
            number,
            named,
            named.map("{:03d}".format),
            named.astype("category"),
        )
    ]
    assert all(result == results[0] for result in results)
    assert results[0].rows.groups == 100
    assert gap(audit(data["risk"], data["age"], groups=mixed, settings=SMALL)) == gap(results[0])


def test_bands_are_audited_and_remarked():
    data = people()
    bands = (data["age"] // 10 * 10).astype(int).map(lambda low: f"{low}-{low + 9}").rename("age")
    result = audit(data["risk"], bands, settings=SMALL)
    expected = gdp(data["risk"], data["age"] // 10 * 10, resamples=0).value
    assert gap(result) == pytest.approx(expected, rel=1e-12)
    assert "'age' contains bands" in result.context.remarks[0]


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (
            {"z": np.r_[np.nan, np.ones(399)]},
            ValueError,
            "scores is NaN or infinite in 1 of",
        ),
        (
            {"z": np.array(["a"] * 400, dtype=object)},
            TypeError,
            r"scores contains text, bands or categories \(object\)",
        ),
        ({"z": None}, TypeError, "scores is None"),
        ({"sensitive_features": np.full(400, 3.0)}, ValueError, "s is constant"),
        ({"threshold": 50}, ValueError, "threshold=50 is outside the range of the scores,"),
        ({"limit": "eo <= 0.1"}, ValueError, "pass the target as well"),
        ({"z": np.arange(399.0)}, ValueError, "scores has 399 rows, sensitive_features has 400"),
        (
            {"sensitive_features": np.array([["a", 1.0]] * 400, dtype=object)},
            TypeError,
            "sensitive_features contains text",
        ),
        ({"sensitive_features": None}, TypeError, "sensitive_features is None"),
        (
            {"sensitive_features": pd.DataFrame(np.ones((400, 2)), columns=["a", "a"])},
            ValueError,
            "more than one column named a",
        ),
        (
            {"y": np.r_[np.nan, np.ones(399)]},
            ValueError,
            r"y is missing in 1 of 400 rows \(row 1\)",
        ),
        (
            {"groups": [None] * 7 + ["a"] * 393},
            ValueError,
            r"in 7 of 400 rows \(rows 1, 2, 3, 4, 5, \.\.\.\)",
        ),
        ({"y": np.zeros((400, 2))}, ValueError, r"y has shape \(400, 2\)"),
        (
            {"y": np.arange(400) % 2, "favourable": 2},
            ValueError,
            "favourable=2 is not a value of y; pass a value such as '0', '1'",
        ),
        ({"y": ["late"] * 400}, TypeError, r"y contains text \('late'\); pass positive=VALUE"),
        (
            {"groups": pd.Series(["a"] * 400, name="id")},
            ValueError,
            r"'id' \(groups\) is the same in all 400",
        ),
        (
            {"sample_weight": np.r_[1, -0.5, np.ones(398)]},
            ValueError,
            "sample_weight is −0.5 in row 2; pass nonnegative",
        ),
        ({"sample_weight": np.zeros(400)}, ValueError, "sample_weight is 0 in all 400"),
    ],
)
def test_messages_use_the_words_of_the_caller(
    change: dict[str, Any], error: type[Exception], message: str
):
    data = people()
    with pytest.raises(error, match=message):
        audit(
            **({"z": data["risk"], "sensitive_features": data["age"], "settings": SMALL} | change)
        )


def test_counts_of_an_audit_of_a_sample_are_those_of_the_file(tmp_path, reading):
    reading(1500, rows=1000)
    data = people(6000)
    data.loc[data.index % 10 == 0, "risk"] = np.nan
    data.to_csv(tmp_path / "long.csv", index=False, sep="\t")
    asked = [
        "audit",
        str(tmp_path / "long.csv"),
        "-s",
        "age",
        "--score",
        "risk",
        "--target",
        "outcome",
    ]
    asked += ["--positive", "late", "--favourable", "repaid", "--max-rows", "100", "--json"]
    result = CliRunner().invoke(app, asked)
    assert result.exit_code == 0, result.output
    audited = Audit.from_json(result.stdout)
    assert (audited.rows.given, audited.rows.dropped, audited.rows.used) == (6000, 600, 1000)
    said = " ".join(words.warnings(audited))
    why = "were left out because a value is missing or was declared missing."
    assert f"600 of 6,000 rows (10 %) {why}" in said
    assert "long.csv was read with tabs between fields." in said
    assert "The table has 6,000 rows; 1,000 of them, drawn at random, were audited." in said


# limits
# --------------------------------------------------------------------------------------------------


def loans(
    n: int = 600, seed: int = 1, *, age: float = 45.0, slope: float = 0.2, skill: float = 1.0
) -> tuple[Any, ...]:
    """Chances of being late that follow age, and outcomes that follow them, or with skill 0 a
    coin.
    """
    random = np.random.default_rng(seed)
    years = np.round(random.uniform(age - 25, age + 25, n))
    chance = np.clip(0.3 + slope * (years - 45) / 100 + 0.1 * random.standard_normal(n), 0.01, 0.99)
    late = random.random(n) < skill * chance + (1 - skill) * chance.mean()
    return chance, years, late.astype(int)


@pytest.fixture(scope="module")
def may() -> Audit:
    return audit(*loans(), limit=["gdp <= 0.2", "gdp <= 1% of base rate"], settings=SMALL)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "probe_trees <= 0.1",
            "limit names 'probe_trees'; measures that can be limited here are gdp, ",
        ),
        ("gdp <= 0", "or compare with an earlier audit"),
        ("gdp <= 5%", "or compare with an earlier audit"),
        ("gdp <= 5", "gdp=5 has no effect: gdp is at most 0.500 .* percentage, write 0.05"),
        ("rank_gap <= 0.5", "has no effect"),
        ("gdp <= 0.5", "has no effect"),
        ("hsic_effect <= 1", "has no effect: hsic_effect is at most 1"),
        ({"hours": 0.1}, "limit names 'hours'; the attributes are s"),
    ],
)
def test_limits_that_cannot_be_read_or_checked_or_limit_nothing_are_refused(
    may: Audit, text: str, message: str
):
    if text == "hsic_effect <= 1":
        pytest.importorskip("torch")
    with pytest.raises(ValueError, match=message):
        check_limits(may, parse_audit_limits(text))


@pytest.mark.parametrize(
    ("key", "limit", "low", "high", "verdict"),
    [
        ("gdp", 0.05, 0.01, 0.05, "kept"),
        ("gdp", 0.05, 0.04, 0.06, "unclear"),
        ("gdp", 0.05, 0.0501, 0.06, "not kept"),
        ("decision_ratio", 0.3, 0.7, 0.9, "kept"),  # a ratio has a least value
        ("decision_ratio", 0.75, 0.7, 0.9, "unclear"),
        ("decision_ratio", 0.95, 0.7, 0.9, "not kept"),
    ],
)
def test_the_interval_decides_whether_a_limit_is_kept(
    key: str, limit: float, low: float, high: float, verdict: str
):
    check = LimitCheck("age", key, "all", limit, (low + high) / 2, Interval(low, high, 0.95, ""))
    assert check.verdict == verdict


def test_a_share_of_the_base_rate_counts_the_error_of_both():
    """The ends of g - c r by Zou and Donner: kept where the upper end is below 0."""
    reference = Number("base_rate", 0.3, 100, Interval(0.2, 0.42, 0.95, ""))
    for gap, verdict in ((0.02, "kept"), (0.05, "unclear"), (0.09, "not kept")):
        interval = Interval(gap - 0.01, gap + 0.01, 0.95, "")
        check = LimitCheck(
            "age", "gdp", "all", 0.15 * 0.3, gap, interval, 0.15, "base rate", reference
        )
        low, high = (
            gap - 0.045 + sign * math.hypot(0.01, 0.15 * reach)
            for sign, reach in ((-1, 0.12), (1, 0.1))
        )
        assert (
            check.verdict
            == verdict
            == ("kept" if high <= 0 else "not kept" if low > 0 else "unclear")
        )


def test_kept_is_said_by_mistake_no_more_often_than_stated():
    """A rate of 0.03 in 600 rows, the gap known: the true gap is 20.5 % of the rate, the limit 20
    %.
    """
    random, kept, draws = np.random.default_rng(0), 0, 1000
    gap = 0.205 * 0.03
    for count in random.binomial(600, 0.03, draws):
        rate = base_rate(np.repeat([0.0, 1.0], [600 - count, count]), 0.95)
        sure = Interval(gap, gap, 0.95, "")
        check = LimitCheck("s", "gdp", "all", 0.2 * rate.value, gap, sure, 0.2, "base rate", rate)
        kept += check.verdict == "kept"
    assert kept <= stats.binom.ppf(0.999, draws, 0.025)


def test_limits_are_those_of_the_numbers_among_all_and_among_the_favoured(may: Audit):
    wide, narrow = may.limits
    number, rate = may["s"].all_rows["gdp"], loans()[2].mean()
    assert (wide.limit, wide.verdict, wide.interval) == (0.2, "kept", number.interval)
    assert (narrow.limit, narrow.verdict) == (pytest.approx(0.01 * rate, rel=1e-12), "not kept")
    chance, age, late = loans()
    result = audit(
        chance, age, late, favourable=0, limit=["eo <= 0.4", "eo.rank_gap <= 0.01"], settings=SMALL
    )
    apart = audit(chance[late == 0], age[late == 0], settings=SMALL)["s"].all_rows["gdp"]
    assert result.limits[0].value == pytest.approx(apart.value, rel=1e-12)
    assert [check.verdict for check in result.limits] == ["kept", "not kept"]
    score = audit(
        chance, age, limit="gdp <= 10% of base rate", settings=SMALL
    )  # without a target, of the mean score
    assert score.limits[0].reference.value == pytest.approx(chance.mean())
    with pytest.raises(ValueError, match="the base rate is not positive"):
        audit(chance - 2, age, limit="gdp <= 10% of base rate", settings=SMALL)


def test_a_gap_names_the_share_of_the_people_that_it_averages_over():
    """Forty waves in 300 rows are averaged out: the sentence says over whom."""
    u = np.random.default_rng(0).random(300)
    result = audit(np.sin(2 * np.pi * 40 * u), u, settings=SMALL)
    gap = result["s"].all_rows["gdp"]
    assert gap.settings["resolution"] == pytest.approx(0.05 * (1000 / 300) ** (2 / 3))
    assert gap.value < 0.2
    assert "over the 11.2 % of people nearest in s" in resolution_sentence([gap], "s")
    few = audit(u, np.round(4 * u), settings=SMALL)
    assert resolution_sentence(few["s"].all_rows.numbers, "s") == ""


# changes
# --------------------------------------------------------------------------------------------------


def changed(after: Audit, before: Audit) -> set[str]:
    return {change.key for change in drift(after, before) if change.changed}


@pytest.mark.parametrize(
    ("change", "moved"),
    [
        ({}, set()),
        ({"age": 58.0, "slope": 0.0}, {"attribute"}),
        ({"slope": 1.2}, {"gdp", "curve", "shape", "score"}),
        ({"skill": 0.0}, {"auc"}),
    ],
)
def test_what_has_moved_is_named(may: Audit, change: dict[str, float], moved: set[str]):
    steep = audit(*loans(2000, slope=0.8), settings=SMALL) if "skill" in change else may
    extra = {"slope": 0.8} if "skill" in change else {}
    june = audit(*loans(2000, 2, **extra, **change), settings=SMALL)
    assert (
        moved
        <= changed(june, steep)
        <= moved | {"score", "gdp"} | ({"auc"} if "slope" in change else set())
    )


def test_the_same_rows_are_refused(may: Audit):
    with pytest.raises(ValueError, match="the same rows"):
        drift(may, may)
    other = audit(*loans(seed=9), settings=SMALL)
    named = [replace(one, context=Context(origin={"data": "a"})) for one in (may, other)]
    with pytest.raises(ValueError, match="the same rows"):
        drift(*named)
    other = replace(may, attributes=(replace(may["s"], name="hours"),))
    with pytest.raises(ValueError, match="the earlier audit covers hours"):
        drift(may, other)


@pytest.mark.slow
def test_changes_are_found_by_mistake_no_more_often_than_the_level():
    """Tables of the same population and different size: any alarm in at most 5 % of them, by one
    family-wise level.
    """
    alarms, pairs = 0, 100
    for seed in range(pairs):
        small, large = (audit(*loans(n, 100 + seed + n), settings=SMALL) for n in (250, 2500))
        alarms += bool(changed(large, small))
    assert alarms <= stats.binom.ppf(0.999, pairs, 0.05)


def month(random: np.random.Generator, n: int, gap: float) -> Number:
    """The gap of scores with mean 0.2 and standard deviation 0.16 that follow age on a line."""
    age = np.round(random.uniform(18, 88, n))
    mean = 0.2 + 2 * gap * (age - 53) / 35
    size = mean * (1 - mean) / 0.16**2 - 1
    score = random.beta(mean * size, (1 - mean) * size)
    return gap_number("gdp", gdp(score, age, resamples=99))


def found(pairs: int, old: tuple[int, float], new: tuple[int, float], seed: int = 0) -> int:
    """Return how many of some pairs of months show a change of the gap at level 0.05."""
    random = np.random.default_rng(seed)
    every = [
        difference("gdp", "age", month(random, *old), month(random, *new), 0.05)
        for _ in range(pairs)
    ]
    return sum(change.significant for change in every)


def test_a_doubled_gap_is_found_in_eight_of_ten_months():
    assert found(20, (5000, 0.0147), (5000, 0.0290)) >= 16


@pytest.mark.slow
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ((5000, 0.0147), (5000, 0.0147)),
        ((500, 0.0147), (20_000, 0.0147)),
        ((500, 0.0), (20_000, 0.0)),
        ((500, 0.03), (5000, 0.03)),
    ],
)
def test_an_equal_gap_is_called_changed_no_more_often_than_the_level(
    old: tuple[int, float], new: tuple[int, float]
):
    assert found(200, old, new) <= stats.binom.ppf(0.99, 200, 0.05)


def gap_of(value: float, error: float, low: float, high: float) -> Number:
    return Number("gdp", value, 100, Interval(low, high, 0.95, ""), standard_error=error)


def test_a_difference_joins_the_ends_that_face_each_other():
    z = stats.norm.ppf(0.975)
    before = gap_of(0.02, 0.04, 0.0, 0.02 + z * 0.06)
    after = gap_of(0.22, 0.03, 0.22 - z * 0.08, 0.28)
    change = difference("gdp", "age", before, after, 0.05)
    assert change.interval.low == pytest.approx(0.2 - z * 0.1)
    assert change.interval.high == pytest.approx(
        0.2 + z * math.hypot(0.06 / z, 0.04), rel=1e-3
    )  # an end was cut off at 0
    # only the standard errors grow with the confidence
    beyond = (z * 0.06) ** 2 - (z * 0.04) ** 2 + (z * 0.08) ** 2 - (z * 0.03) ** 2
    expected = 2 * stats.norm.sf(math.sqrt((0.2**2 - beyond) / 0.05**2))
    assert change.pvalue == pytest.approx(expected)
    assert change.reduction is None  # the first gap may be 0


def test_a_change_its_interval_its_p_value_and_its_reduction_agree():
    """For random numbers and covariances, 0 is outside of both intervals exactly at p <= level."""
    random = np.random.default_rng(0)
    verdicts = set()
    for _ in range(500):
        errors = random.uniform(0.001, 0.01, 2)
        values = random.uniform(0, 0.06, 2)
        shared = random.uniform(0, 0.95) * errors.prod()
        numbers = [
            gap_of(v, e, max(v - 2 * e, 0.0), v + 2 * e + random.uniform(0, 0.01))
            for v, e in zip(values, errors)
        ]
        level = random.choice([0.01, 0.05, 0.2])
        change = difference("gdp", "age", *numbers, level, shared)
        outside = not change.interval.low <= 0 <= change.interval.high
        assert change.significant == outside
        verdicts.add(outside)
        if change.reduction is not None:
            low, high = change.reduction
            assert low <= 1 - change.after / change.before <= high
            assert outside == (not low <= 0 <= high)
    assert verdicts == {True, False}
    same = difference("gdp", "age", gap_of(0, 0, 0, 0), gap_of(0, 0, 0, 0), 0.05)
    assert (same.pvalue, same.significant) == (1.0, False)


def paired(random: np.random.Generator, n: int, slopes: tuple[float, float]) -> Any:
    """Scores of the same rows without and with a limit, which share their noise."""
    age = np.round(random.uniform(18, 88, n))
    noise = random.standard_normal(n)
    scores = [
        1 / (1 + np.exp(1 - slope * (age - 53) / 35 - noise - 0.2 * random.standard_normal(n)))
        for slope in slopes
    ]
    numbers = [gap_number("gdp", gdp(score, age, resamples=49)) for score in scores]
    shared = covariance(*(gap_terms(score, age) for score in scores))
    return difference("gdp", "age", *numbers, 0.05, shared), difference(
        "gdp", "age", *numbers, 0.05
    )


@pytest.mark.parametrize("draws", [25, pytest.param(200, marks=pytest.mark.slow)])
def test_a_paired_change_covers_the_true_one_and_is_narrower_than_one_of_other_rows(draws: int):
    """The true gaps are means over 71 ages of two million rows."""
    random = np.random.default_rng(1)
    truth = []
    for slope in (0.5, 0.25):
        u = (np.arange(18, 89) - 53) / 35
        noise = math.sqrt(1.04) * np.random.default_rng(0).standard_normal((30_000, 1))
        mean = (1 / (1 + np.exp(1 - slope * u - noise))).mean(axis=0)
        share = np.r_[0.5, np.ones(69), 0.5] / 70
        truth.append(share @ np.abs(mean - share @ mean))
    covered = reduced = 0
    widths = []
    for _ in range(draws):
        same, other = paired(random, 800, (0.5, 0.25))
        covered += same.interval.low <= truth[1] - truth[0] <= same.interval.high
        reduced += same.reduction.low <= 1 - truth[1] / truth[0] <= same.reduction.high
        widths.append([np.ptp([*change.interval]) for change in (same, other)])
    least = stats.binom.ppf(0.01, draws, 0.95)
    assert covered >= least
    assert reduced >= least
    narrow, wide = np.mean(widths, axis=0)
    assert narrow < 0.6 * wide


@pytest.mark.slow
def test_equal_gaps_of_two_models_are_called_different_no_more_often_than_the_level():
    random = np.random.default_rng(2)
    for slopes in ((0.0, 0.0), (0.4, 0.4)):
        called = sum(paired(random, 600, slopes)[0].significant for _ in range(150))
        assert called <= stats.binom.ppf(0.99, 150, 0.05)


@pytest.mark.parametrize("ranks", [False, True])
def test_what_rows_add_to_a_gap_has_its_standard_error(ranks: bool):
    """Signs are certain along a steep line, so that the terms of the rows carry the whole error."""
    random = np.random.default_rng(0)
    s = random.random(1500)
    f = s + 0.2 * random.standard_normal(1500)
    people = np.arange(1500) // 3
    for groups in (None, people):
        terms = gap_terms(f, s, groups, ranks=ranks)
        expected = (rank_gap if ranks else gdp)(f, s, groups=groups, resamples=99)
        error = math.sqrt(covariance(terms, terms, groups))
        assert error == pytest.approx(expected.standard_error, rel=0.05)


@pytest.mark.parametrize("values", [30, 5000])
def test_distributions_are_compared_by_kolmogorov_and_smirnov(values: int):
    """With all values kept the distance is the statistic itself; with some of them it is never
    larger.
    """
    random = np.random.default_rng(0)
    x, y = random.integers(0, values, 3000), random.integers(0, values, 2000) + values // 20
    laws = [Law.from_counts(*np.unique(part, return_counts=True), len(part)) for part in (x, y)]
    exact = stats.ks_2samp(x, y).statistic
    at = np.union1d(laws[0].values, laws[1].values)
    (low, high), (other_low, other_high) = (law.bounds(at) for law in laws)
    distance = max((low - other_high).max(), (other_low - high).max())
    assert distance <= exact + 1e-12
    assert distance == pytest.approx(exact, abs=1e-12 if values == 30 else 0.012)


def test_limits_keep_the_base_of_the_earlier_audit(may: Audit):
    june = audit(*loans(seed=3), settings=SMALL)
    both = since(june, may, ["gdp <= 10% of base rate", "300%"])
    assert both.limits[0].reference == may.subject.base_rate
    assert both.limits[1].limit == pytest.approx(3 * may["s"].all_rows["gdp"].value)
    assert both.drift == drift(june, may)
    early = audit(*loans(seed=4), settings=replace(SMALL, fast=True))
    with pytest.raises(
        ValueError, match=r"share of rank_gap, which the earlier audit lacks for s;"
    ):
        since(june, early, "rank_gap <= 50%")
    with pytest.raises(ValueError, match="rank_gap cannot be checked, because the audit"):
        since(early, may, "rank_gap <= 50%")
    assert Audit.from_json(both.to_json()) == both


@pytest.mark.parametrize("rate", [0.002, 0.0151, 0.125, 0.2, 0.3, 0.5])
def test_swapped_labels_give_mirrored_decisions(rate):
    random = np.random.default_rng(2)
    y = random.permutation(np.arange(2_000) < rate * 2_000).astype(int)
    score = np.clip(0.8 * rate + 0.1 * y + 0.2 * random.uniform(size=2_000), 0, 1)
    age = random.uniform(20, 60, 2_000)
    one, other = (
        audit(f, age, target, settings=Settings(fast=True, resamples=20))
        for f, target in ((score, y), (1 - score, 1 - y))
    )
    assert one.subject.threshold == pytest.approx(1 - other.subject.threshold, abs=1e-12)
    assert (one.subject.threshold == 0.5) == (rate >= 0.2)
    rates, mirrored = ({q.key: q.value for q in each.quality} for each in (one, other))
    assert mirrored["accuracy"] == pytest.approx(rates["accuracy"])
    assert mirrored["true_positive_rate"] == pytest.approx(1 - rates["false_positive_rate"])
    assert mirrored["false_positive_rate"] == pytest.approx(1 - rates["true_positive_rate"])
