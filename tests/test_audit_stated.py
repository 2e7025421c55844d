"""Limits, thresholds, quantiles, the quality of scores, drift and the schema of an audit."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

import frhsic.auditing
import report_samples as samples
from frhsic.auditing import Audit, Context, Limit, LimitCheck, Settings, audit, audit_schema, drift
from frhsic.auditing.scores import qualities, score_quantiles
from frhsic.auditing.stated import checked, limits_of
from frhsic.intervals import Interval
from frhsic.parity import quantile_gap

pytestmark = pytest.mark.usefixtures("few_trees")

QUICK = Settings(resamples=40, shuffles=1, max_rows=200, probe_rows=200)


def loans(n: int = 800, seed: int = 0, slope: float = 1.0):
    """Whole ages with ties, and a rare outcome of about 6 % whose chance rises with age."""
    random = np.random.default_rng(seed)
    age = np.round(random.gamma(6, 7, n) + 18)
    chance = 1 / (1 + np.exp(3.2 - slope * (age - 60) / 30 - random.standard_normal(n)))
    return chance, age, (random.random(n) < chance).astype(float)


@pytest.fixture(scope="module")
def audited() -> Audit:
    chance, age, y = loans()
    return audit(chance, age, y, limit=["gdp=0.5", "gdp=1%"], settings=QUICK)


def check(low: float, high: float) -> str:
    return LimitCheck("age", "gdp", 0.05, (low + high) / 2, low, high, 0.95).verdict


def test_the_interval_decides_whether_a_limit_is_kept():
    assert (check(0.01, 0.05), check(0.04, 0.06), check(0.0501, 0.06)) == ("kept", "unclear", "not kept")


def test_a_limit_in_percent_is_a_share_of_the_base_rate(audited):
    wide, narrow = audited.limits
    number = audited.attributes[0].all_rows["gdp"]
    rate = loans()[2].mean()
    assert (wide.limit, wide.share, wide.verdict) == (0.5, None, "kept")
    assert narrow.limit == pytest.approx(0.01 * rate, rel=1e-12)
    assert (narrow.reference, narrow.share) == (pytest.approx(rate), 0.01)
    assert narrow.verdict == "not kept"
    for one in audited.limits:
        assert (one.value, one.low, one.high) == (number.value, number.interval.low, number.interval.high)


def test_without_a_target_the_base_rate_is_the_mean_score():
    chance, age, _ = loans(300)
    found = audit(chance, age, limit={"gdp": "10%"}, settings=QUICK)
    assert found.limits[0].reference == pytest.approx(chance.mean())
    assert found.quality == ()


def test_a_base_rate_counts_the_weights_of_the_rows():
    """A row of weight 2 is the row twice."""
    chance, age, paid = loans(300)
    twice = np.repeat(np.arange(300), 1 + (paid > 0))
    found = audit(chance, age, paid, sample_weight=1 + (paid > 0), limit="gdp=10%", settings=QUICK)
    assert found.limits[0].reference == pytest.approx(paid[twice].mean(), rel=1e-12)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("gpd=0.1", "'gpd', which has no interval to decide. Did you mean 'gdp'"),
        ("gdp", "pass NAME=NUMBER or NAME=NUMBER%"),
        ("gdp=high", "pass NAME=NUMBER or NAME=NUMBER%"),
        ("gdp=0", "pass a number above 0"),
        ("probe_trees=0.1", "has no interval to decide"),
        ("probe_trees=0.1", "There are: gdp, standardized_gdp, .*, eo, .*, eo.distance_correlation"),
        ("eo.probe_trees=0.1", "'eo.probe_trees', which has no interval"),
        ("eo.gpd=0.1", "There are: gdp, "),
        ("hsic=10%", "only those of gdp and eo can be"),
        ("eo.hsic=10%", "only those of gdp and eo can be"),
    ],
)
def test_limits_that_cannot_be_read_are_refused(given: str, message: str):
    with pytest.raises(ValueError, match=message):
        Limit.parse(given)


def test_every_number_with_an_interval_can_be_limited_among_all_and_among_the_favoured():
    chance, age, y = loans()
    plain = audit(chance, age, y, favourable=0, settings=QUICK)["s"]
    for among, population in (("", plain.all_rows), ("eo.", plain.positives)):
        names = [number.key for number in population.numbers if number.interval is not None]
        assert len(names) == 6
        found = audit(chance, age, y, favourable=0, limit={f"{among}{name}": 0.3 for name in names}, settings=QUICK)
        for check, name in zip(found.limits, names, strict=True):
            number = population[name]
            assert (check.key, check.value, check.high) == (name, number.value, number.interval.high)
            assert check.among == ("favourable" if among else "all")


def test_a_limit_of_equal_opportunity_is_on_the_gap_among_the_favoured():
    chance, age, y = loans()
    found = audit(chance, age, y, favourable=0, limit=["eo=0.9", "eo=1%"], settings=QUICK)
    apart = audit(chance[y == 0], age[y == 0], settings=QUICK)
    assert found.limits[0].value == pytest.approx(apart["s"].all_rows["gdp"].value, rel=1e-12)
    assert [check.verdict for check in found.limits] == ["kept", "not kept"]
    assert found.limits[1].limit == pytest.approx(0.01 * y.mean())
    assert Audit.from_json(found.to_json()) == found


def test_equal_opportunity_cannot_be_limited_where_there_is_none():
    chance, age, y = loans()
    with pytest.raises(ValueError, match="pass the target y as well"):
        audit(chance, age, limit="eo=0.1", settings=QUICK)
    with pytest.raises(ValueError, match=r"the limit of eo cannot be checked for s: .* equal opportunity asks"):
        audit(chance, age, 3 * y + chance, limit="eo=0.1", settings=QUICK)


def test_an_audit_that_was_written_before_these_limits_is_read(audited):
    earlier = json.loads(audited.to_json())
    for check in earlier["limits"]:
        del check["among"]
    for subject in (earlier["subject"], *(attribute["subject"] for attribute in earlier["attributes"])):
        del subject["favourable"], subject["favours_high"]
    assert Audit.from_json(json.dumps(earlier)) == audited


def test_a_number_without_an_interval_cannot_be_limited(audited):
    (attribute,) = audited.attributes
    gap = replace(attribute.all_rows["gdp"], interval=None, no_interval="too few rows")
    bare = replace(attribute, all_rows=replace(attribute.all_rows, numbers=(gap,)))
    with pytest.raises(ValueError, match=f"the limit of gdp cannot be checked for {attribute.name}: too few rows"):
        checked(bare, limits_of("gdp=0.1")[0], None)


def test_a_share_of_a_base_rate_that_is_not_positive_is_refused():
    chance, age, _ = loans(200)
    with pytest.raises(ValueError, match="not above 0 here"):
        audit(chance - chance.mean() - 1, age, limit="gdp=10%", settings=QUICK)
    with pytest.raises(ValueError, match="cannot be checked for s"):
        audit(np.column_stack([chance, age]), age, limit="gdp=0.1", settings=QUICK)


def test_quality_is_that_of_the_definition_beside_a_constant():
    scores, y = np.array([0.1, 0.4, 0.35, 0.8]), np.array([0.0, 0.0, 1.0, 1.0])
    found = {one.key: (one.value, one.constant) for one in qualities(scores, y, 0.38)}
    pairs = [a > b for a in scores[y == 1] for b in scores[y == 0]]
    assert found["accuracy"] == (0.5, 0.5)
    assert found["auc"] == (np.mean(pairs), 0.5)
    assert found["calibration_error"][1] == 0.0
    assert (found["true_positive_rate"], found["false_positive_rate"]) == ((0.5, 0.0), (0.5, 0.0))
    assert {one.key for one in qualities(scores - 1, y, None)} == {"auc"}
    other = next(qualities(scores, 3 * y + scores, None))
    assert (other.key, other.value) == ("squared_error", pytest.approx(np.mean(9 * y)))
    assert other.constant == pytest.approx(np.var(3 * y + scores))


@pytest.mark.parametrize("only", [0.0, 1.0])
def test_the_quality_where_only_one_outcome_came_has_no_rates_and_no_order(only: float):
    found = {one.key: one.value for one in qualities(np.array([0.2, 0.4, 0.9]), np.full(3, only), 0.5)}
    assert found.keys() == {"accuracy", "calibration_error"}
    assert found["accuracy"] == pytest.approx(1 / 3 if only else 2 / 3)


def test_the_quality_of_a_constant_score_is_the_constants_own():
    y = np.repeat([0.0, 1.0], [94, 6])
    for one in qualities(np.full(100, 0.06), y, 0.5):
        assert one.value == pytest.approx(one.constant, abs=1e-12)


def test_quantiles_are_those_that_the_gap_compares_and_of_all_rows():
    chance, age, _ = loans()
    groups = score_quantiles(chance, age)
    values = np.array(groups.values)
    assert np.ptp(values, axis=0).max() == pytest.approx(quantile_gap(chance, age, permutations=0).value, rel=1e-12)
    assert sum(groups.rows) == len(age)
    first = chance[(age >= groups.start[0]) & (age <= groups.end[0])]
    np.testing.assert_allclose(values[0], np.quantile(first, groups.levels))


def test_decisions_are_shares_at_or_above_the_threshold_in_the_groups_of_the_curve(audited):
    chance, age, _ = loans()
    population = audited.attributes[0].all_rows
    assert (audited.subject.threshold, audited.subject.threshold_stated) == (0.5, False)
    assert population.decisions.grid == population.curve.grid
    assert population.decisions.overall == pytest.approx(np.mean(chance >= 0.5))
    strict = audit(chance, age, threshold=0.1, settings=QUICK)
    share = strict.attributes[0].all_rows.decisions
    inside = (age >= share.start[1]) & (age <= share.end[1])
    assert share.mean[1] == pytest.approx(np.mean(chance[inside] >= 0.1))
    assert strict.subject.threshold_stated
    assert audit(10 * chance, age, settings=QUICK).subject.threshold is None


def with_gap(value: float, error: float, *names: str, ends: tuple[float, float] | None = None) -> Audit:
    found = samples.audit(*names)
    interval = Interval(*(ends or (value - 1.959964 * error, value + 1.959964 * error)), 0.95, "normal law")
    attributes = []
    for attribute in found.attributes:
        gap = replace(attribute.all_rows.numbers[0], value=value, standard_error=error, interval=interval)
        numbers = (gap, *attribute.all_rows.numbers[1:])
        attributes.append(replace(attribute, all_rows=replace(attribute.all_rows, numbers=numbers)))
    return replace(found, attributes=tuple(attributes))


def test_drift_is_the_difference_in_its_standard_errors():
    (change,) = drift(with_gap(0.09, 0.03, "age"), with_gap(0.02, 0.04, "age"))
    assert change.standard_error == pytest.approx(0.05)
    assert change.pvalue == pytest.approx(2 * norm.sf(0.07 / 0.05))
    assert (change.low, change.high) == (pytest.approx(0.07 - 1.959964 * 0.05), pytest.approx(0.07 + 1.959964 * 0.05))
    assert change.verdict == "no change seen"
    assert drift(with_gap(0.2, 0.03, "age"), with_gap(0.02, 0.04, "age"))[0].verdict == "grown"
    assert drift(with_gap(0.02, 0.03, "age"), with_gap(0.2, 0.04, "age"))[0].verdict == "shrunk"


def test_drift_joins_the_ends_of_intervals_that_face_each_other():
    before = with_gap(0.02, 0.04, "age", ends=(0.0, 0.02 + 1.959964 * 0.06))
    after = with_gap(0.12, 0.03, "age", ends=(0.12 - 1.959964 * 0.08, 0.12 + 1.959964 * 0.03))
    (change,) = drift(after, before)
    assert change.pvalue == pytest.approx(2 * norm.sf(0.1 / math.hypot(0.08, 0.06)))
    assert change.low == pytest.approx(0.1 - 1.959964 * 0.1)
    assert change.high == pytest.approx(0.1 + 1.959964 * math.hypot(0.03, 0.04))  # the end at 0 was cut off
    (back,) = drift(before, after)
    assert (back.pvalue, back.low, back.high) == pytest.approx((change.pvalue, -change.high, -change.low))


def test_drift_of_a_gap_without_an_interval_takes_its_standard_error():
    def bare(found: Audit) -> Audit:
        (attribute,) = found.attributes
        gap = replace(attribute.all_rows.numbers[0], interval=None, no_interval="none")
        return replace(found, attributes=(replace(attribute, all_rows=replace(attribute.all_rows, numbers=(gap,))),))

    whole = with_gap(0.09, 0.03, "age"), with_gap(0.02, 0.04, "age")
    (change,), (expected,) = drift(*map(bare, whole)), drift(*whole)
    assert (change.low, change.high, change.pvalue) == pytest.approx((expected.low, expected.high, expected.pvalue))


def test_drift_is_adjusted_for_the_number_of_attributes():
    once = drift(with_gap(0.13, 0.03, "age"), with_gap(0.02, 0.04, "age"))[0]
    both = drift(with_gap(0.13, 0.03, "age", "hours"), with_gap(0.02, 0.04, "age", "hours"))
    assert once.verdict == "grown"
    assert [change.adjusted_pvalue for change in both] == pytest.approx([2 * once.pvalue] * 2)
    assert [change.verdict for change in both] == ["no change seen"] * 2


def test_drift_needs_a_common_attribute_and_standard_errors():
    with pytest.raises(ValueError, match="the earlier audit is of hours"):
        drift(with_gap(0.1, 0.1, "age"), with_gap(0.1, 0.1, "hours"))
    with pytest.raises(ValueError, match="no standard error"):
        drift(samples.audit("age"), with_gap(0.1, 0.1, "age"))


def test_an_audit_has_the_standard_error_that_drift_needs(audited):
    (change,) = drift(audited, audited)
    assert (change.pvalue, change.verdict) == (1.0, "no change seen")
    assert change.standard_error > 0


def problems(schema: dict[str, Any], value: Any, root: dict[str, Any], where: str = "") -> list[str]:
    """Where a value does not fit a schema, for the keywords that ours uses; an unknown keyword is an error."""
    if "$ref" in schema:
        return problems(root["$defs"][schema["$ref"].removeprefix("#/$defs/")], value, root, where)
    if "const" in schema:
        return [] if value == schema["const"] else [f"{where} is not {schema['const']}"]
    if "anyOf" in schema:
        fits = [not problems(option, value, root, where) for option in schema["anyOf"]]
        return [] if any(fits) else [f"{where} fits none"]
    assert set(schema) <= {"type", "properties", "required", "additionalProperties", "items"}
    kinds = {
        "string": isinstance(value, str),
        "integer": isinstance(value, int) and not isinstance(value, bool),
        "number": isinstance(value, (int, float)) and not isinstance(value, bool),
        "boolean": isinstance(value, bool),
        "null": value is None,
        "array": isinstance(value, list),
        "object": isinstance(value, dict),
    }
    wanted = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    if not any(kinds[kind] for kind in wanted):
        return [f"{where} is no {wanted}"]
    found = []
    if isinstance(value, list):
        found += [p for i, item in enumerate(value) for p in problems(schema["items"], item, root, f"{where}[{i}]")]
    if isinstance(value, dict):
        found += [f"{where} lacks {name}" for name in schema.get("required", []) if name not in value]
        for name, item in value.items():
            part = schema.get("properties", {}).get(name, schema["additionalProperties"])
            found += [f"{where}.{name} is unknown"] if part is False else problems(part, item, root, f"{where}.{name}")
    return found


def test_the_schema_that_is_shipped_is_that_of_the_dataclasses_and_audits_fit_it(audited):
    shipped = json.loads(Path(frhsic.auditing.__file__).with_name("audit.schema.json").read_text())
    assert shipped == audit_schema(), "write src/frhsic/auditing/audit.schema.json again from audit_schema()"
    for one in (audited, samples.full().audit, replace(audited, drift=drift(audited, audited))):
        assert problems(shipped, json.loads(one.to_json()), shipped) == []
    plain = json.loads(audited.to_json())
    assert problems(shipped, plain | {"format": 3}, shipped) == [".format is not 4"]
    assert problems(shipped, plain | {"rows": {"given": "1"}}, shipped) != []
    assert problems(shipped, plain | {"more": 1}, shipped) == [".more is unknown"]


def test_an_audit_survives_json_with_all_its_parts(audited):
    whole = replace(audited, drift=drift(audited, audited), context=Context(people="applicants", versions={"a": "1"}))
    assert Audit.from_json(whole.to_json()) == whole


def test_a_context_has_time_versions_and_fingerprints(tmp_path):
    (tmp_path / "a.csv").write_bytes(b"abc")
    found = Context.now(author="Ann", data=tmp_path / "a.csv")
    assert found.data_sha256 == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert (found.author, found.model_sha256) == ("Ann", "")
    assert "frhsic" in found.versions
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d, universal time", found.made)
