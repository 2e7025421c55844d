"""The audit: its numbers are those of the library, its plain form loses nothing."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import stats
from sklearn.metrics import log_loss

import report_samples as samples
from frhsic.auditing import Audit, Context, LimitCheck, Settings, audit
from frhsic.auditing.measures import Rows, base_rate, between_levels, changes, mean_and_error, qualities
from frhsic.certificates import VarianceShare, gdp_certificate
from frhsic.dependence import hsic, hsic_unbiased
from frhsic.independence import gamma_test, hsic_interval, normalized_hsic_interval
from frhsic.independence.effects import Interval
from frhsic.kernels import HalfDistance, gaussian_at_median
from frhsic.parity import correlation_ratio, gdp, gdp_curve, local_mean, rank_gap, standardized_gdp
from frhsic.probes import cross_fitted_scores
from frhsic.report import render, words
from frhsic.splits import subsample

pytestmark = pytest.mark.usefixtures("few_trees")

QUICK = Settings(resamples=60, max_rows=400, probe_rows=200)


def table(n: int = 700, d: int = 1, strength: float = 1.0, seed: int = 0) -> tuple[np.ndarray, pd.Series, pd.Series]:
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
        audit(z, age, y, threshold=0.5, settings=replace(QUICK, at=[30, 60]), context=Context(name="risk")),
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
        "gdp_common": gdp(f, age, resolution=0.1, **common),
        "standardized_gdp": standardized_gdp(f, age, **common),
        "decision_gdp": gdp(decided, age, **common),
        "error_gdp": gdp((decided != y).astype(float), age, **common),
        "rank_gap": rank_gap(f, age, **common),
    }.items():
        number = numbers[key]
        high = expected.interval[1] if expected.trusted else max(expected.interval[1], expected.bound)
        assert (number.value, number.pvalue) == pytest.approx((expected.value, expected.pvalue), rel=1e-9)
        assert (number.interval.low, number.interval.high) == pytest.approx((expected.interval[0], high), rel=1e-9)
        assert number.under_independence == pytest.approx(expected.expected_under_independence, rel=1e-9)
    assert "calibration_gdp" not in {number.key for number in numbers.numbers}  # these scores are no chances
    assert numbers["correlation_ratio"].value == float(correlation_ratio(f, age))
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
    assert numbers["distance_correlation"].value == normalized_hsic_interval(a, b, half, half).value
    assert {number.key for number in numbers.numbers} == set(words.LABELS) - {"separation", "calibration_gdp"}


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
    """A score that is too low for the old: the gap of y - f is that of the definition, and the curve shows where."""
    random = np.random.default_rng(1)
    age = random.uniform(20, 60, 4000)
    y = (random.random(4000) < 0.3 + 0.2 * (age > 40)).astype(float)
    numbers = audit(np.where(random.random(4000) < 0.5, 0.39, 0.41), age, y, settings=QUICK)["s"].all_rows
    gap, curve = numbers["calibration_gdp"], numbers.curves["calibration_gdp"]
    assert gap.interval.low <= 0.1 <= gap.interval.high
    assert gap.pvalue < 0.01
    young = np.array(curve.end) < 40
    assert np.mean(np.array(curve.mean)[young]) == pytest.approx(-0.1, abs=0.03)
    assert numbers["gdp"].pvalue > 0.01
    few = audit(np.r_[0.9, np.full(99, 0.001)], age[:100], settings=QUICK)["s"].all_rows.curves["gdp"]
    assert 0 <= min(few.low) <= max(few.high) <= 1  # means of chances are chances


def test_equal_opportunity_is_the_same_on_the_rows_with_the_favourable_outcome(scored):
    z, age, y, result = scored
    positives = result["age"].positives
    expected = gdp(z, age, where=y == 1, resamples=60)
    assert positives.rows == int(y.sum())
    assert positives["gdp"].value == pytest.approx(expected.value, rel=1e-12)
    assert positives.curves.keys() == {"gdp", "decision_gdp"}
    other = audit(z, age, y, favourable=0, settings=QUICK)
    assert other["age"].positives["gdp"].value == pytest.approx(gdp(z, age, where=y == 0, resamples=0).value, rel=1e-12)
    assert (other.subject.target.favourable, other.subject.target.favours_high) == ("0", False)


def test_certificates_bound_what_is_observed(scored):
    z, age, _, result = scored
    rows = subsample(len(z), 400, QUICK.generator(1))
    a, b = torch.from_numpy(z[rows]), torch.from_numpy(age.to_numpy()[rows])[:, None]
    by_key = {row.key: row for row in result["age"].certificates}
    head = gdp_certificate(a, b, scores=a[:, 0], directions=VarianceShare(0.95))
    assert by_key["gap_of_these_scores"].value == pytest.approx(math.sqrt(head.value), rel=1e-12)
    assert {"gap_of_every_head", "population_hsic"} <= set(by_key)
    for row in by_key.values():
        assert row.assumes
        assert row.observed <= row.value * (1 + 1e-9)


def test_a_contrast_is_the_mean_of_the_rows_nearby(scored):
    z, age, _, result = scored
    contrast, near = result["age"].all_rows.contrasts[0], local_mean(z, age, 30.0)
    assert (contrast.value, contrast.rows) == (near.value, near.rows)
    assert contrast.settings == {"at": 30.0, "start": near.start, "end": near.end}
    assert (contrast.interval.low, contrast.interval.high) == near.interval
    assert audit(z[:60], age[:60], settings=replace(QUICK, at=[30]))["age"].all_rows.contrasts[0].interval is None


def test_claims_about_many_attributes_are_adjusted():
    random = np.random.default_rng(3)
    s = random.random((400, 4))
    z = s[:, 0] + 0.3 * random.standard_normal(400)
    gaps = [attribute.all_rows["gdp"] for attribute in audit(z, s, settings=QUICK).attributes]
    raw = sorted(gdp(z, column, resamples=60).pvalue for column in s.T)
    adjusted = np.maximum.accumulate([min(1.0, (4 - i) * p) for i, p in enumerate(raw)])  # Holm, 1979
    assert sorted(gap.pvalue for gap in gaps) == pytest.approx(adjusted)


def test_weights_and_groups_reach_the_gaps():
    z, age, y = table(300)
    weights, people = np.arange(300) % 3 + 1.0, np.arange(300) // 2
    result = audit(z, age, y, sample_weight=weights, groups=people, settings=QUICK)
    options = {"sample_weight": weights, "groups": people}
    expected, numbers = gdp(z, age, resamples=60, **options), result["age"].all_rows
    assert (numbers["gdp"].value, numbers["gdp"].pvalue) == pytest.approx((expected.value, expected.pvalue))
    np.testing.assert_allclose(numbers.curves["gdp"].mean, gdp_curve(z, age, **options).mean)
    assert (result.rows.groups, result.rows.weighted) == (150, True)


def test_measures_of_dependence_use_one_row_of_each_group():
    """Equal rows of 60 persons: as independent rows they look dependent, and trees recover every person."""
    random = np.random.default_rng(0)
    z, age = (np.repeat(random.normal(size=60), 5) for _ in range(2))
    result = audit(z, age, groups=np.repeat(np.arange(60), 5), settings=QUICK)
    once = audit(z[::5], age[::5], settings=QUICK)
    for key in ("hsic", "hsic_effect", "distance_correlation", "correlation_ratio", "probe_trees"):
        assert result["s"].all_rows[key] == once["s"].all_rows[key]
    assert result["s"].certificates == once["s"].certificates
    assert audit(z, age, settings=QUICK)["s"].all_rows["hsic"].pvalue < 0.01 < result["s"].all_rows["hsic"].pvalue
    few = audit(z, age, groups=np.arange(300) % 19, settings=QUICK)["s"]
    assert few.all_rows.get("hsic") is None
    assert few.certificates == ()


def test_independent_rows_follow_the_weights():
    weights = np.tile([1.0, 3.0], 2000)
    rows = Rows(np.tile([0.0, 1.0], 2000)[:, None], np.zeros((4000, 1)), None, weights=weights)
    rows = rows.independent(np.random.default_rng(0))
    assert rows.z.mean() == pytest.approx(0.75, abs=4 * math.sqrt(0.75 * 0.25 / rows.count))


def test_several_attributes_are_measured_one_by_one_and_together(embedded):
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
    assert given["age"].all_rows["gdp"].value == pytest.approx(gdp(scores, age, resamples=0).value, rel=1e-12)


def test_what_cannot_be_computed_is_left_out():
    z, age, _ = table(300, d=4)
    f, few, s = z[:, 0], np.arange(300) < 7, np.repeat([0.0, 1.0, 2.0], 100)
    bare = audit(z, age, settings=QUICK)["age"]
    assert (bare.all_rows.get("gdp"), bare.positives) == (None, None)
    flat = audit(np.full(300, 0.4), age, settings=QUICK)["age"].all_rows
    assert {number.key for number in flat.numbers} >= {"gdp", "decision_gdp", "probe_trees"}
    assert {number.key for number in flat.numbers}.isdisjoint({"standardized_gdp", "rank_gap", "hsic"})
    for attribute, y in ((age, few), (s, s == 1), (age, np.arange(300.0))):  # few, constant and unknown favoured rows
        assert audit(f, attribute, y, settings=QUICK).attributes[0].positives is None
    with pytest.raises(KeyError, match="'height' was not audited; this audit holds age"):
        audit(f, age, settings=QUICK)["height"]


def test_a_continuous_target_gets_a_test_of_separation():
    rng = np.random.default_rng(0)
    y, e, d = rng.normal(size=(3, 300))
    age, settings = 40 + 5 * (y + d), replace(QUICK, resamples=99)
    through, direct = (audit(f, age, y, settings=settings)["s"].all_rows for f in (y + e, y + e + 0.8 * d))
    assert through["separation"].pvalue > 0.05 >= direct["separation"].pvalue
    assert direct["separation"].value > direct["separation"].under_independence


def test_units_of_the_columns_do_not_matter():
    z, age, _ = table(400, d=6)
    units = np.array([1.0, 1e3, 1.0, 1e-3, 50.0, 1e4])
    plain, mixed = (audit(x, age, settings=QUICK)["age"].all_rows for x in (z, z * units))
    for key in ("hsic", "hsic_effect", "distance_correlation"):
        assert mixed[key].value == pytest.approx(plain[key].value, rel=1e-6)


# how well the scores predict ------------------------------------------------------------------------------------


def test_quality_is_that_of_the_definition_beside_a_constant():
    scores, y = np.array([0.1, 0.4, 0.35, 0.8]), np.array([0.0, 0.0, 1.0, 1.0])
    quality = {one.key: (one.value, one.constant) for one in qualities(scores, y, 0.38)}
    pairs = [a > b for a in scores[y == 1] for b in scores[y == 0]]
    assert quality["accuracy"] == (0.5, 0.5)
    assert quality["auc"] == (np.mean(pairs), 0.5)
    assert quality["log_loss"] == pytest.approx((log_loss(y, scores), math.log(2)))
    assert (quality["true_positive_rate"], quality["false_positive_rate"]) == ((0.5, 0.0), (0.5, 0.0))
    assert {one.key for one in qualities(scores - 1, y, None)} == {"auc"}
    other = {one.key: one for one in qualities(scores, 3 * y + scores, None)}
    assert (other["squared_error"].value, other["mean_error"].value) == pytest.approx((np.mean(9 * y), 1.5))
    for one in qualities(np.full(100, 0.06), np.repeat([0.0, 1.0], [94, 6]), 0.5):
        assert one.value == pytest.approx(one.constant, abs=1e-12)
    assert {one.key for one in qualities(scores, np.ones(4), 0.5)} & {"auc", "true_positive_rate"} == set()


def test_standard_errors_are_those_of_repeated_samples():
    """AUC with ties and weights, a mean of groups that are alike, and changes between scores of the same groups.

    The oracle is the spread over 400 samples.
    """
    random = np.random.default_rng(0)
    errors, values = [], []
    for _ in range(400):
        y = (random.random(200) < 0.3).astype(float)
        scores = np.round(0.8 * y + random.standard_normal(200), 1)
        auc = next(one for one in qualities(scores, y, None, weights=1 + y) if one.key == "auc")
        people = np.repeat(np.arange(40), 5)
        mean = mean_and_error(np.repeat(random.standard_normal(40), 5), None, people)
        pairs = np.repeat(np.arange(100), 2)
        noise = np.repeat(random.standard_normal(100), 2)
        own = np.repeat(y[:100], 2)
        was = own + noise + 0.5 * random.standard_normal(200)
        other = list(changes(was, was - 0.5 * own + 0.5 * random.standard_normal(100)[pairs], own, 0.5, pairs))
        values.append((auc.value, mean[0], *(one.value for one in other)))
        errors.append((auc.standard_error, mean[1], *(one.standard_error for one in other)))
    assert np.sqrt(np.mean(np.square(errors), axis=0)) == pytest.approx(np.std(values, axis=0), rel=0.12)


def test_a_base_rate_has_the_exact_interval_and_counts_weights():
    y = np.repeat([0.0, 1.0], [190, 10])
    expected = stats.binomtest(10, 200).proportion_ci(0.95, "exact")
    rate = base_rate(y, 0.95)
    assert (rate.interval.low, rate.interval.high) == pytest.approx((expected.low, expected.high), rel=0.02)
    twice = np.repeat(np.arange(200), 1 + (y > 0))
    assert base_rate(y, 0.95, weights=1 + y).value == pytest.approx(y[twice].mean(), rel=1e-12)
    empty = base_rate(np.zeros(200), 0.95).interval
    assert (empty.low, empty.high) == pytest.approx((0, 1 - 0.025 ** (1 / 200)))


# plain data -----------------------------------------------------------------------------------------------------


def test_an_audit_survives_json_and_the_same_seed_repeats_it(scored, embedded):
    for result in (scored[-1], embedded[-1], samples.audit()):
        text = result.to_json()
        assert Audit.from_json(text) == result
        assert json.loads(text) == result.to_dict()
    z, age, _ = table(150)
    first, again, other = (audit(z, age, settings=replace(QUICK, seed=seed, max_rows=100)) for seed in (0, 0, 1))
    assert first == again
    assert first != other
    assert "gdp=" in repr(first)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": 1}, "format is 1; this version reads"),
        ({"subjekt": "x"}, "the document is no Audit: 'subjekt'"),
        ({"rows": []}, "the document is no Audit"),
        ({"rows": {"given": 1}}, "the document is no Audit: .*'dropped'"),
        ({"attributes": {}}, "the document is no Audit: .* was expected"),
        ({"settings": {"a": None}}, "the document is no Audit: 'None' came where"),
    ],
)
def test_a_document_that_is_wrong_is_refused(change: dict[str, Any], message: str):
    with pytest.raises(ValueError, match=message):
        Audit.from_dict(samples.audit().to_dict() | change)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"s": np.full(700, 3.0)}, "s is constant"),
        ({"settings": Settings(at=[30, 200])}, "at=200 lies outside the data: age runs from 20 to"),
        ({"threshold": 50}, "threshold=50 is outside the scores, which run from"),
        ({"limit": "eo=0.1", "y": None}, "pass the target y as well"),
    ],
)
def test_bad_input_is_refused(change: dict[str, Any], message: str):
    z, age, y = table()
    with pytest.raises((ValueError, TypeError), match=message):
        audit(**({"z": z, "s": age, "y": y, "settings": QUICK} | change))


def test_groups_beside_an_attribute_are_compared_and_the_gap_is_measured_within_each():
    z, age, _ = table()
    sex = pd.Series(np.where(np.arange(len(z)) % 3 == 0, "f", "m"), age.index, name="sex")
    score = z[:, 0] + np.where(sex == "f", 0.05 * (age - age.mean()), 1.0)
    result = audit(score, pd.concat([age, sex], axis=1), settings=QUICK)
    assert [attribute.name for attribute in result.attributes] == ["age"]
    (group,) = result.groups
    assert (group.name, group.levels) == ("sex", ("f", "m"))
    curve = group.between
    for i, level in enumerate(group.levels):
        own = (sex == level).to_numpy()
        assert curve.mean[i] == pytest.approx(score[own].mean())
        expected = gdp(score[own], age[own], resamples=60)
        assert group.within["age"][i]["gdp"].value == pytest.approx(expected.value, rel=1e-12)
        assert group.within["age"][i].rows == own.sum()
    assert Audit.from_json(result.to_json()) == result
    assert "age within sex" in render(result)
    with pytest.raises(TypeError, match="not numeric"):
        audit(score, sex.to_frame(), settings=QUICK)


def test_mean_scores_of_equal_groups_are_seldom_said_to_differ():
    """The band holds the means of all groups at once: a false alarm in at most 5 % of samples."""
    random, alarms = np.random.default_rng(0), 0
    for _ in range(100):
        codes = random.integers(0, 6, 400)
        rows = Rows(np.zeros((400, 1)), codes[:, None].astype(float), random.exponential(size=400))
        curve = between_levels(rows, 6, Settings())
        alarms += any(not low <= 1.0 <= high for low, high in zip(curve.low, curve.high))
    assert alarms <= stats.binom.ppf(0.999, 100, 0.05)


@pytest.mark.parametrize(("limit", "verdict"), [(0.3, "kept"), (0.95, "not kept"), (0.75, "unclear")])
def test_a_ratio_has_a_least_value(limit: float, verdict: str):
    check = LimitCheck("age", "decision_ratio", "all", limit, 0.8, Interval(0.7, 0.9, 0.95, "band"))
    assert check.verdict == verdict
