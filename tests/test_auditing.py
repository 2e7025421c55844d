"""The audit: its numbers are those of the library, its plain form loses nothing, its words follow its numbers."""

import json
import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch

import report_samples as samples
from frhsic import sentences
from frhsic.auditing import Audit, Curve, Histogram, Number, Settings, Subject, audit, documents
from frhsic.auditing.measures import Rows, _contrast
from frhsic.certificates import VarianceShare, gdp_certificate, localized_contrast
from frhsic.dependence import (
    distance_correlation_unbiased,
    eipm,
    hsic,
    hsic_unbiased,
    kernel_hgr,
    mutual_information,
)
from frhsic.independence import gamma_test, hsic_interval, normalized_hsic_interval
from frhsic.intervals import subsample
from frhsic.kernels import Gaussian, Laplacian
from frhsic.kernels.bandwidth import gaussian_at_median
from frhsic.parity import correlation_ratio, gdp, gdp_curve, local_mean, quantile_gap, standardized_gdp
from frhsic.probes import cross_fitted_scores
from frhsic.sentences import LABELS

pytestmark = pytest.mark.usefixtures("few_trees")

QUICK = Settings(resamples=60, shuffles=2, max_rows=400, probe_rows=200)


def table(n=700, d=1, strength=1.0, seed=0, dtype=np.float64):
    random = np.random.default_rng(seed)
    age = np.round(np.clip(18 + random.gamma(4, 6, n), 18, 90))
    z = random.standard_normal((n, d))
    z[:, 0] += strength * (age - 42) / 12
    y = (random.random(n) < 1 / (1 + np.exp(-z[:, 0]))).astype(float)
    return z.astype(dtype), pd.Series(age.astype(dtype), name="age"), y


@pytest.fixture(scope="module")
def scored():
    z, age, y = table()
    return z, age, y, audit(z, age, y, at=[30, 60], settings=QUICK, name="risk", target_name="repaid")


@pytest.fixture(scope="module")
def embedded():
    z, age, y = table(d=6)
    hours = pd.Series(np.random.default_rng(5).normal(40, 8, len(z)), name="hours")
    return z, age, hours, y, audit(z, pd.concat([age, hours], axis=1), y, settings=QUICK, target_name="repaid")


def test_every_number_is_the_one_that_the_library_gives(scored):
    z, age, _, found = scored
    got = found["age"].all_rows
    common = {"resamples": 60, "random_state": 0}
    for key, function in (("gdp", gdp), ("standardized_gdp", standardized_gdp)):
        expected = function(z, age, **common)
        assert got[key].value == expected.value
        assert (got[key].interval.low, got[key].interval.high) == expected.interval
        assert got[key].under_independence == expected.expected_under_independence
        assert got[key].pvalue == expected.pvalue
    assert got["correlation_ratio"].value == float(correlation_ratio(z, age))
    assert got["quantile_gap"].value == float(quantile_gap(z, age))
    half = float(gdp(z, age, resolution=got["gdp"].settings["resolution"] / 2, resamples=0))
    assert got["gdp"].settings["value at half the resolution"] == half
    rows = subsample(len(z), 400, QUICK.generator(1))
    a, b = torch.from_numpy(z[rows]), torch.from_numpy(age.to_numpy()[rows])[:, None]
    k, l = gaussian_at_median(a), gaussian_at_median(b)
    test = gamma_test(a, b, k, l)
    assert got["hsic"].value == pytest.approx(float(hsic_unbiased(a, b, k, l)), rel=1e-10)
    assert got["hsic"].settings["biased"] == pytest.approx(float(hsic(a, b, k, l)), rel=1e-12)
    assert (got["hsic"].pvalue, got["hsic_effect"].settings["biased"]) == (test.pvalue, test.effect_size)
    for key, function in (("hsic", hsic_interval), ("hsic_effect", normalized_hsic_interval)):
        expected = function(a, b, k, l)
        assert (got[key].value, got[key].interval) == (expected.value, expected.interval)
    assert got["kernel_hgr"].value == float(kernel_hgr(a, b, k, l))
    assert got["eipm"].value == float(eipm(a, b, k))
    assert got["distance_correlation"].value == pytest.approx(float(distance_correlation_unbiased(a, b)), rel=1e-9)
    assert got["mutual_information"].value == float(mutual_information(a, b))
    assert {number.key for number in got.numbers} == set(LABELS) - {"separation"}  # the target is 0/1


def test_the_curve_is_the_librarys_and_is_marked_where_rows_are_few(scored):
    z, age, _, found = scored
    expected = gdp_curve(z, age)
    curve = found["age"].all_rows.curve
    assert (curve.grid, curve.mean) == (tuple(expected.at), tuple(expected.mean))
    assert (curve.low, curve.high) == (tuple(expected.lower), tuple(expected.upper))
    assert not any(curve.sparse)
    few = audit(z[:100], age[:100], settings=replace(QUICK, sparse_rows=20.0, max_rows=100, probe_rows=100))
    curve, age, found = few["age"].all_rows.curve, age[:100], few
    assert curve.sparse == tuple(rows < 20 for rows in curve.rows)
    assert any(curve.sparse)
    assert not all(curve.sparse)
    for region in found["age"].sparse_regions:
        inside = age.between(region.low, region.high).sum()
        assert (region.rows, region.share) == (inside, inside / len(age))
    marked = sum(r.low <= s <= r.high for s in curve.grid for r in found["age"].sparse_regions)
    assert marked == sum(curve.sparse)


def test_equal_opportunity_is_the_same_on_the_rows_with_y_1(scored):
    z, age, y, found = scored
    positives = found["age"].positives
    expected = gdp(z, age, where=y == 1, resamples=60)
    assert positives.rows == int(y.sum())
    assert positives["gdp"].value == expected.value
    assert positives["gdp"].interval.low == expected.interval[0]
    assert positives.name == "rows with repaid = 1"


def test_every_number_has_an_interval_around_it_or_a_reason(scored, embedded):
    for found in (scored[-1], embedded[-1]):
        for attribute in found.attributes:
            for population in (attribute.all_rows, attribute.positives):
                for number in population.numbers:
                    assert sentences.sentence(number, attribute.subject, attribute.name).endswith(".")
                    assert (number.interval is None) != (number.no_interval is None)
                    if number.interval is not None:
                        assert number.interval.low <= number.value <= number.interval.high


def test_an_audit_prints_as_its_findings(scored, embedded):
    for found in (scored[-1], embedded[-1]):
        assert all(attribute.finding in repr(found) for attribute in found.attributes)
        assert len(repr(found)) < 1000


def test_hsic_never_stands_without_a_probe(scored, embedded):
    for found in (scored[-1], embedded[-1]):
        for attribute in found.attributes:
            for population in (attribute.all_rows, attribute.positives):
                keys = {number.key for number in population.numbers}
                assert {"hsic", "probe_linear", "probe_trees"} <= keys


def test_certificates_carry_their_assumptions_and_bound_what_is_observed(scored):
    z, age, _, found = scored
    rows = subsample(len(z), 400, QUICK.generator(1))
    a, b = torch.from_numpy(z[rows]), torch.from_numpy(age.to_numpy()[rows])[:, None]
    by_key = {row.key: row for row in found["age"].certificates}
    head = gdp_certificate(a, b, scores=a[:, 0], directions=VarianceShare(0.95))
    assert by_key["gap_of_these_scores"].value == pytest.approx(math.sqrt(head.value), rel=1e-12)
    near = localized_contrast(a, b, 30.0)
    assert by_key["contrast_at_30"].value == pytest.approx(math.sqrt(near.value), rel=1e-12)
    assert {"gap_of_every_head", "population_hsic", "contrast_at_60"} <= set(by_key)
    for row in by_key.values():
        assert row.assumes
        assert row.observed <= row.value * (1 + 1e-9)
        assert row.vacuous == ("says nothing" in sentences.certificate_sentence(row, found.subject, "age"))


def test_a_contrast_is_the_mean_of_the_rows_nearby_and_says_which_they_are(scored):
    z, age, _, found = scored
    contrast = found["age"].all_rows.contrasts[0]
    near = local_mean(z, age, 30.0)
    assert (contrast.at, contrast.value, contrast.rows) == (30.0, near.value, near.rows)
    assert (contrast.start, contrast.end) == (near.start, near.end)
    assert (contrast.interval.low, contrast.interval.high) == near.interval
    words = sentences.contrast_sentence(contrast, found["age"].all_rows.curve, found.subject, "age")
    assert f"all rows with age from {near.start:g} to {near.end:g}." in words


def test_a_contrast_where_rows_are_few_has_no_interval():
    z, age, _ = table(60)
    rows = Rows(z, age.to_numpy(copy=True)[:, None], z[:, 0], "z", "age")
    one = _contrast(rows, float(age.max()), Settings())
    assert one.sparse
    assert one.interval is None
    assert "fewer than 30" in one.no_interval


@pytest.mark.slow
def test_a_spread_that_follows_the_attribute_is_no_move_of_the_mean():
    random = np.random.default_rng(2)
    said = []
    for _ in range(12):
        s = random.random(300)
        found = audit(random.standard_normal(300) * (0.05 + s**2), s, settings=replace(QUICK, resamples=99))
        said.append("is not seen to move" in found["s"].finding)
    assert sum(said) >= 9  # at level 0.05, 3 of 12 or more are called moving once in 50


def test_claims_about_many_attributes_are_adjusted():
    random = np.random.default_rng(3)
    s = random.random((400, 4))
    z = s[:, 0] + 0.3 * random.standard_normal(400)
    found = audit(z, s, settings=QUICK)
    gaps = [attribute.all_rows["gdp"] for attribute in found.attributes]
    raw = sorted(gap.pvalue for gap in gaps)
    adjusted = np.maximum.accumulate([min(1.0, (4 - i) * p) for i, p in enumerate(raw)])  # Holm, 1979
    assert sorted(gap.adjusted_pvalue for gap in gaps) == pytest.approx(adjusted)
    assert audit(z, s[:, 0], settings=QUICK)["s"].all_rows["gdp"].adjusted_pvalue is None
    claim = replace(gaps[1], pvalue=0.02, adjusted_pvalue=0.06)
    assert "could explain it (p = 0.060)" in sentences.sentence(claim, found.subject, "s_2")


def test_weights_and_clusters_reach_the_measures_of_parity():
    z, age, y = table(300)
    weights, people = np.arange(300) % 3 + 1.0, np.arange(300) // 2
    found = audit(z, age, y, sample_weight=weights, clusters=people, settings=QUICK, target_name="y")
    options = {"sample_weight": weights, "clusters": people}
    expected = gdp(z, age, resamples=60, **options)
    got = found["age"].all_rows
    assert (got["gdp"].value, got["gdp"].pvalue) == (expected.value, expected.pvalue)
    assert got.curve.mean == tuple(gdp_curve(z, age, **options).mean)
    assert "clustered" in got["correlation_ratio"].no_interval
    assert found["age"].positives["gdp"].value == gdp(z, age, where=y == 1, resamples=0, **options).value


def test_measures_of_dependence_use_one_row_of_each_cluster():
    """Equal rows of 60 persons: as independent rows they look dependent, and trees find every person again."""
    random = np.random.default_rng(0)
    z, age = (np.repeat(random.normal(size=60), 5) for _ in range(2))
    people = np.repeat(np.arange(60), 5)
    found = audit(z, age, clusters=people, settings=QUICK)
    once = audit(z[::5], age[::5], settings=QUICK)
    about_gaps = ("gdp", "standardized_gdp", "correlation_ratio", "quantile_gap")
    keys = [number.key for number in once["s"].all_rows.numbers if number.key not in about_gaps]
    assert {"hsic", "hsic_effect", "distance_correlation", "mutual_information", "probe_trees"} <= set(keys)
    for key in keys:
        assert found["s"].all_rows[key] == once["s"].all_rows[key]
    assert found["s"].certificates == once["s"].certificates
    assert (found.rows.used, found.rows.subsample) == (300, 60)
    assert audit(z, age, settings=QUICK)["s"].all_rows["hsic"].pvalue < 0.01 < found["s"].all_rows["hsic"].pvalue
    assert "one row of each group" in found.remarks[0]


def test_few_clusters_are_too_few_for_measures_of_dependence():
    z, age, _ = table(300)
    found = audit(z, age, clusters=np.arange(300) % 19, settings=QUICK)["age"]
    reasons = {omitted.key: omitted.reason for omitted in found.all_rows.omitted}
    assert {"hsic", "eipm", "distance_correlation", "mutual_information", "probe_trees"} <= set(reasons)
    assert set(reasons.values()) == {"only 19 clusters of rows are here; at least 20 are needed."}
    assert found.certificates == ()
    assert found.all_rows["gdp"].rows == 300


def test_independent_data_are_called_independent():
    z, age, _ = table(900, strength=0.0, seed=3)
    found = audit(z, age, settings=QUICK, name="risk")
    got = found["age"].all_rows
    assert got["hsic"].pvalue > 0.05
    assert got["probe_linear"].value < 0.02
    assert got["gdp"].value < 2 * got["gdp"].under_independence
    assert "is not seen to move with age" in found["age"].finding
    said = " ".join(found["age"].evidence)
    assert "finds no dependence" in said
    assert "Neither a linear model nor boosted trees" in said


def test_dependent_data_are_called_dependent(scored):
    found = scored[-1]["age"]
    assert found.finding.startswith("The score “risk” moves with age: ")
    assert "dependent (HSIC test, p < 0.001)" in " ".join(found.evidence)


def test_a_representation_that_was_shrunk_is_still_given_away_by_the_probe():
    """HSIC under a fixed bandwidth falls when Z shrinks; the audit's does not, and the probe never did."""
    z, age, _ = table(600, d=3)
    wide, narrow = (audit(scale * z, age, settings=QUICK)["age"].all_rows for scale in (1.0, 1e-4))
    fixed = gaussian_at_median(torch.from_numpy(z))
    s = torch.from_numpy(age.to_numpy(copy=True))
    assert float(hsic(1e-4 * z, s, fixed)) < 1e-6 * float(hsic(z, s, fixed))
    assert narrow["hsic"].value == pytest.approx(wide["hsic"].value, rel=1e-6)
    assert narrow["probe_linear"].value == pytest.approx(wide["probe_linear"].value, abs=1e-6)


def test_several_attributes_are_measured_one_by_one_and_together(embedded):
    found = embedded[-1]
    assert [attribute.name for attribute in found.attributes] == ["age", "hours"]
    assert found["age"].all_rows["hsic"].pvalue < 1e-6 < found["hours"].all_rows["hsic"].pvalue
    assert found.joint.name == "age and hours"
    assert found.joint["hsic"].pvalue < 1e-6
    assert "gdp" not in {number.key for number in found.joint.numbers}


def test_the_head_of_a_representation_is_fitted_out_of_fold(embedded):
    z, age, _, y, found = embedded
    scores = cross_fitted_scores(z, y)
    assert found.subject.score_name == "out-of-fold linear head for repaid"
    assert found["age"].all_rows["gdp"].value == gdp(scores, age, resamples=0).value
    noise = np.random.default_rng(0).standard_normal((200, 60))
    labels = np.random.default_rng(1).integers(0, 2, 200).astype(float)
    fitted = cross_fitted_scores(noise, labels)
    correlation = np.corrcoef(fitted, labels)[0, 1]
    assert correlation < 0.3  # in sample, 60 columns would reach above 0.5 on pure noise


def test_without_scores_or_target_the_gap_is_left_out_and_says_why():
    z, age, _ = table(300, d=4)
    found = audit(z, age, settings=QUICK)
    assert found["age"].all_rows.curve is None
    assert {missing.key for missing in found["age"].all_rows.omitted} == {
        "gdp",
        "standardized_gdp",
        "correlation_ratio",
        "quantile_gap",
    }
    with pytest.raises(KeyError, match="there are no scores"):
        found["age"].all_rows["gdp"]
    with pytest.raises(KeyError, match="quantile_gap was not computed: there are no scores"):
        found["age"].all_rows["quantile_gap"]
    assert found["age"].no_positives == "no target was given."


def test_scores_beside_a_representation_are_what_the_gap_is_of():
    z, age, _ = table(300, d=4)
    scores = pd.Series(z[:, 0] ** 2, name="risk")
    found = audit(z, age, scores=scores, settings=QUICK)
    assert found.subject.score_name == "risk"
    assert found["age"].all_rows["gdp"].value == gdp(scores, age, resamples=0).value


def test_the_costly_numbers_say_how_many_rows_they_used(scored):
    found = scored[-1]
    assert found.rows.subsample == 400
    assert {n.key: n.rows for n in found["age"].all_rows.numbers}["hsic"] == 400
    assert found["age"].all_rows["gdp"].rows == 700
    assert found["age"].all_rows["probe_trees"].rows == 200


def test_the_same_seed_gives_the_same_audit_and_another_does_not():
    z, age, _ = table(150)
    first, again, other = (audit(z, age, settings=replace(QUICK, seed=seed, max_rows=100)) for seed in (0, 0, 1))
    assert first == again
    assert first != other


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_both_widths_give_the_same_numbers(dtype):
    z, age, _ = table(250, dtype=dtype)
    wide, _, _ = table(250)
    got, expected = (audit(x, age, settings=QUICK)["age"].all_rows for x in (z, wide))
    for number in expected.numbers:
        assert got[number.key].value == pytest.approx(number.value, rel=2e-3, abs=2e-4)


# plain data ---------------------------------------------------------------------------------------------------


def test_an_audit_survives_json(scored, embedded):
    for found in (scored[-1], embedded[-1], samples.audit()):
        text = found.to_json()
        assert Audit.from_json(text) == found
        assert json.loads(text) == found.to_dict()
        assert "NaN" not in text
        assert "Infinity" not in text


def test_a_document_that_is_wrong_says_where():
    plain = samples.audit().to_dict()
    for change, message in (
        ({"format": 1}, "format is 1; this version reads 4"),
        ({"titel": "x"}, r"'titel', which is not a field of Audit. Did you mean 'title'\?"),
        ({"title": 3}, r"Audit.title is int '3'; str was expected"),
        ({"rows": []}, "Audit.rows is list; an object was expected"),
        ({"rows": {"given": 1}}, "Audit.rows lacks 'dropped'"),
        ({"attributes": {}}, "Audit.attributes is dict; a list was expected"),
        ({"settings": {"a": None}}, "Audit.settings.a is null"),
        ({"settings": []}, "Audit.settings is list; an object was expected"),
    ):
        with pytest.raises(ValueError, match=message):
            Audit.from_dict(plain | change)
    deep = json.loads(json.dumps(plain))
    deep["attributes"][0]["all_rows"]["numbers"][0]["value"] = "high"
    with pytest.raises(ValueError, match=r"Audit.attributes\[0\].all_rows.numbers\[0\].value is str 'high'"):
        Audit.from_dict(deep)
    deep["attributes"][0]["all_rows"]["numbers"][0]["value"] = math.inf
    with pytest.raises(ValueError, match=r"numbers\[0\].value is inf; a finite number was expected"):
        Audit.from_dict(deep)
    with pytest.raises(ValueError, match="format is None"):
        Audit.from_dict([])


def test_a_number_that_is_not_finite_is_not_written():
    bad = replace(samples.audit().attributes[0].all_rows.numbers[0], value=math.nan)
    with pytest.raises(ValueError, match="nan cannot be written"):
        documents.to_plain(bad)
    with pytest.raises(TypeError, match="ndarray cannot be written"):
        documents.to_plain({"a": np.zeros(2)})


def test_parts_that_do_not_fit_together_are_refused():
    with pytest.raises(ValueError, match="either an interval or the reason"):
        Number("gdp", 0.1, 10)
    with pytest.raises(ValueError, match="mean has 1 points, the grid has 2"):
        Curve((0.0, 1.0), (0.5,), 0.5)
    with pytest.raises(ValueError, match="low and high"):
        Curve((0.0,), (0.5,), 0.5, low=(0.4,))
    with pytest.raises(ValueError, match="2 counts need 3 edges"):
        Histogram((0.0, 1.0), (1, 2))


def test_looking_up_what_is_not_there_says_what_is(scored):
    with pytest.raises(KeyError, match="'height' was not audited; this audit holds age"):
        scored[-1]["height"]
    with pytest.raises(KeyError, match="which holds gdp"):
        scored[-1]["age"].all_rows["nonsense"]


# pieces -------------------------------------------------------------------------------------------------------


def test_the_words_follow_the_confidence_of_the_audit():
    """A p-value of 0.03 is significant at 5 % and not at 1 %, in every sentence that speaks of chance."""
    usual = samples.attribute()
    numbers = tuple(replace(n, pvalue=0.03) if n.pvalue is not None else n for n in usual.all_rows.numbers)
    usual = replace(usual, all_rows=replace(usual.all_rows, numbers=numbers))
    strict = replace(usual, subject=replace(usual.subject, confidence=0.99))
    assert "moves with age" in usual.finding
    assert "are dependent" in " ".join(usual.evidence)
    assert "is not seen to move with age" in strict.finding
    assert "finds no dependence" in " ".join(strict.evidence)
    for key in ("gdp", "hsic"):
        assert "does not explain" in sentences.sentence(usual.all_rows[key], usual.subject, "age")
        assert "could explain" in sentences.sentence(strict.all_rows[key], strict.subject, "age")


def test_every_number_of_an_audit_has_a_label_and_a_sentence(scored):
    assert set(sentences.SENTENCES) == set(LABELS)
    assert set(sentences.HEADLINES) | sentences.UNIT_SCALE <= set(LABELS)
    assert set(scored[-1].settings) | {"features", "sample_rows"} == set(sentences.SETTINGS)  # two of Dask alone


def test_a_sentence_says_nothing_is_recovered_where_r2_is_negative():
    for key, words in (("probe_linear", "recovers nothing"), ("probe_trees", "recover nothing")):
        number = Number(key, -0.01, 10, no_interval="none")
        assert words in sentences.sentence(number, Subject("score", "risk"), "age")


# bad input ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"z": np.zeros((699, 1))}, "lengths differ"),
        ({"y": np.zeros(10)}, "y has 10 rows"),
        ({"scores": np.zeros(10)}, "scores has 10 rows"),
        ({"s": np.full(700, 3.0)}, "s is constant"),
        ({"at": [30, 200]}, "at=200 lies outside the data: age runs from 20 to"),
        ({"at": {"height": [1]}}, "at names 'height', which is not audited"),
        ({"s": pd.Series(["a"] * 700, name="group")}, "'group' is not numeric: it holds 'a'"),
        ({"s": [math.nan] * 700}, "0 of 700 have s"),
    ],
)
def test_bad_input_is_refused_before_anything_is_computed(change, message):
    z, age, y = table()
    given = {"z": z, "s": age, "y": y} | change
    with pytest.raises((ValueError, TypeError), match=message):
        audit(given.pop("z"), given.pop("s"), given.pop("y"), **given)


def test_too_few_rows_are_refused():
    with pytest.raises(ValueError, match="an audit needs at least 20 rows; 19 came"):
        audit(np.arange(19.0), np.arange(19.0))


def test_settings_are_checked():
    for change in ({"confidence": 1.5}, {"max_rows": 5}, {"resamples": 1.5}, {"shuffles": True}):
        with pytest.raises(ValueError, match=next(iter(change))):
            Settings(**change)


@pytest.mark.parametrize("kind", ["zero-inflated", "binary", "decisions"])
def test_tied_attributes_and_decisions_are_audited_at_a_stated_bandwidth(kind):
    """More than half of the pairs coincide: 60 of 400 values of s are not 0, or z or s is 0/1."""
    z, age, _ = table(400)
    s = np.zeros(400)
    s[:60] = 1.0 if kind == "binary" else np.arange(60)
    if kind == "decisions":
        z, s = (z[:, 0] > 1.2).astype(float), age.to_numpy()
    result = audit(z, s, at=[s.max()], settings=QUICK)["s"]
    assert {number.key for number in result.all_rows.numbers} == set(LABELS) - {"separation"}
    assert {"gap_of_these_scores", "gap_of_every_head"} <= {row.key for row in result.certificates}
    side = "bandwidth on z" if kind == "decisions" else "bandwidth on s"
    assert result.all_rows["hsic"].settings[side] == "median of the non-zero distances"
    assert (result.all_rows["hsic"].pvalue < 0.05) == (kind == "decisions")


def test_the_caller_gives_the_kernels():
    z, age, _ = table(300)
    kernel = Gaussian(7.0)
    number = audit(z, age, settings=replace(QUICK, kernel_z=Gaussian(0.3), kernel_s=kernel))["age"].all_rows["hsic"]
    rows = subsample(300, 400, QUICK.generator(1))
    assert number.value == pytest.approx(
        float(hsic_unbiased(z[rows], age.to_numpy()[rows], Gaussian(0.3), kernel)), rel=1e-9
    )
    assert (number.settings["kernel on s"], number.settings["bandwidth on s"]) == (repr(kernel), "given")
    assert float(number) == number.value


def test_certificates_are_for_gaussian_kernels():
    z, age, _ = table(300)
    given = audit(z, age, settings=replace(QUICK, kernel_z=Laplacian(0.3)))["age"]
    assert given.certificates == ()
    assert audit(z, age, settings=QUICK)["age"].certificates


def test_scores_that_are_constant_under_a_given_kernel_leave_its_statistics_out():
    _, age, _ = table(300)
    numbers = audit(np.full(300, 0.4), age, settings=replace(QUICK, kernel_z=Gaussian(1.0)))["age"].all_rows
    for key in ("hsic", "hsic_effect", "kernel_hgr", "eipm"):
        with pytest.raises(KeyError, match=rf"{key} was not computed: z or s is constant under its kernel, Gaussian\("):
            numbers[key]
    assert numbers["distance_correlation"].value == 0


def test_an_attribute_that_is_constant_in_the_rows_that_were_drawn_leaves_numbers_out():
    z, _, _ = table(700)
    drawn = np.union1d(*(subsample(700, 100, QUICK.generator(part)) for part in (1, 4)))
    s = np.zeros(700)
    s[np.setdiff1d(np.arange(700), drawn)[0]] = 1.0
    found = audit(z, s, settings=replace(QUICK, max_rows=100, probe_rows=100))
    numbers = found["s"].all_rows
    for keys, argument in (
        (("distance_correlation", "mutual_information"), "max_rows"),
        (("probe_linear", "probe_trees"), "probe_rows"),
    ):
        for key in keys:
            with pytest.raises(KeyError, match=f"s is constant in the 100 rows that were drawn; raise {argument}"):
                numbers[key]
    assert found["s"].finding.startswith("The score is not seen to move with s")
    assert {row.key for row in found["s"].all_rows.numbers} >= {"gdp", "correlation_ratio"}


def test_a_test_of_separation_hands_its_caution_on():
    """Too many oscillations for the regressions, as in the test of the test."""
    rng = np.random.default_rng(0)
    y = rng.uniform(size=150)
    z, s = np.sin(190 * y) + 0.1 * rng.normal(size=(2, 150))
    number = audit(z, s, y, settings=QUICK)["s"].all_rows["separation"]
    assert "may be too small" in number.settings["caution"]


def test_an_attribute_that_is_constant_among_the_favoured_has_no_equal_opportunity():
    z, _, _ = table(300)
    s = np.repeat([0.0, 1.0, 2.0], 100)
    found = audit(z, s, (s == 1).astype(float), settings=QUICK, target_name="old")
    assert found["s"].no_positives == "s is constant among the rows with old = 1."


def test_units_of_the_columns_do_not_matter():
    z, age, _ = table(400, d=6)
    units = np.array([1.0, 1e3, 1.0, 1e-3, 50.0, 1e4])
    plain, mixed = (audit(x, age, settings=QUICK)["age"].all_rows for x in (z, z * units))
    for key in ("hsic", "hsic_effect", "kernel_hgr", "eipm", "distance_correlation", "mutual_information"):
        assert mixed[key].value == pytest.approx(plain[key].value, rel=1e-6)


def test_probes_show_what_they_give_with_the_attribute_shuffled(embedded):
    numbers = embedded[-1]["age"].all_rows
    for key in ("probe_linear", "probe_trees", "kernel_hgr", "eipm", "mutual_information"):
        assert "coverage" in numbers[key].no_interval
        assert numbers[key].under_independence != 0
    assert numbers["probe_trees"].under_independence < 0 < numbers["probe_trees"].value


def test_scores_that_are_constant_have_a_gap_of_zero_and_no_scaled_one():
    _, age, _ = table(300)
    found = audit(np.full(300, 0.4), age, settings=QUICK)
    assert found["age"].all_rows["gdp"].value == 0
    assert "standardized_gdp" in {one.key for one in found["age"].all_rows.omitted}


def test_a_target_that_is_not_binary_or_has_few_ones_leaves_equal_opportunity_out():
    z, age, _ = table(300)
    assert "has 300 values" in audit(z, age, np.arange(300.0), settings=QUICK)["age"].no_positives
    few = np.zeros(300)
    few[:7] = 1
    assert "only 7 rows" in audit(z, age, few, settings=QUICK)["age"].no_positives


def test_a_careful_reader_is_warned():
    z, age, _ = table(300)
    found = audit(z, (age > 40).astype(float), settings=QUICK, dropped=100)
    said = " ".join(found.warnings)
    assert "25 % of the rows were dropped" in said
    assert "takes only 2 values" in said
    assert "only 300 rows" in said
    assert found.rows.given == 400


def test_a_continuous_target_gets_a_test_of_separation():
    rng = np.random.default_rng(0)
    y, e, d = rng.normal(size=(3, 300))
    age = pd.Series(40 + 5 * (y + d), name="age")
    settings = replace(QUICK, resamples=99)
    through, direct = (audit(f, age, y, settings=settings, target_name="pay")["age"] for f in (y + e, y + e + 0.8 * d))
    assert through.all_rows["separation"].pvalue > 0.05 >= direct.all_rows["separation"].pvalue
    assert direct.all_rows["separation"].value > direct.all_rows["separation"].under_independence
    found, not_found = (
        next(line for line in part.evidence if line.startswith("Among rows with an equal pay"))
        for part in (direct, through)
    )
    assert " depends on age" in found
    assert "is not seen to depend" in not_found
    assert "see separation" in through.no_positives
    number = direct.all_rows["separation"]
    assert "Among rows with an equal pay" in sentences.sentence(number, direct.subject, "age")


def test_separation_is_left_out_with_a_reason():
    rng = np.random.default_rng(0)
    y, e, d = rng.normal(size=(3, 60))
    clustered = audit(y + e, y + d, y, settings=QUICK, clusters=np.arange(60) // 2)["s"].all_rows
    constant = audit(0 * y, y + d, y, settings=QUICK)["s"].all_rows
    reasons = [{o.key: o.reason for o in part.omitted}["separation"] for part in (clustered, constant)]
    assert "clustered" in reasons[0]
    assert "constant" in reasons[1]


def test_mutual_information_of_several_columns_is_called_low():
    number = Number("mutual_information", 0.4, 500, None, "none")
    narrow, wide = (sentences.sentence(number, Subject("embedding", "z", columns), "age") for columns in (2, 8))
    assert "too little" in wide
    assert "too little" not in narrow
