"""Limits and changes: how they are written, what decides them, and how often they are wrong."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from frhsic.auditing import Audit, LimitCheck, Number, Settings, audit, drift, since
from frhsic.auditing.measures import base_rate
from frhsic.auditing.results import Context, Law, checked, limits_of
from frhsic.independence.effects import Interval

pytestmark = pytest.mark.usefixtures("few_trees")

QUICK = Settings(resamples=60, max_rows=100, probe_rows=100)


def loans(n: int = 600, seed: int = 1, *, age: float = 45.0, slope: float = 0.2, skill: float = 1.0) -> tuple[Any, ...]:
    """Chances of being late that follow age, and outcomes that follow them, or with skill 0 a coin."""
    random = np.random.default_rng(seed)
    years = np.round(random.uniform(age - 25, age + 25, n))
    chance = np.clip(0.3 + slope * (years - 45) / 100 + 0.1 * random.standard_normal(n), 0.01, 0.99)
    late = random.random(n) < skill * chance + (1 - skill) * chance.mean()
    return chance, years, late.astype(int)


@pytest.fixture(scope="module")
def may() -> Audit:
    return audit(*loans(), limit=["gdp=0.2", "gdp=1% of base rate"], settings=QUICK)


# limits ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("gpd=0.1", "'gpd', which has no interval to decide. Did you mean 'gdp'"),
        ("gdp", "pass NAME=NUMBER or a share"),
        ("gdp=high", "pass NAME=NUMBER or a share"),
        ("gdp=0", "pass a number above 0"),
        ("probe_trees=0.1", "has no interval to decide"),
        ("gdp=5%", "say of what: 5% of base rate, or 5% of gap .* As a number, 5 % is 0.05"),
        ("gdp=5% of score", "say of what"),
        ("hsic=10% of base rate", "Only gdp and eo"),
        ("gdp=0.1 of gap", "only a percentage"),
    ],
)
def test_limits_that_cannot_be_read_are_refused(text: str, message: str):
    with pytest.raises(ValueError, match=message):
        limits_of(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("gdp=5", "gdp=5 limits nothing: gdp is at most 0.500 .* 5 % is 0.05"),
        ("rank_gap=0.5", "limits nothing"),
        ("hsic_effect=1", "limits nothing: hsic_effect is at most 1"),
        ("gdp=50% of gap", "there is none"),
        ("separation=0.1", "no interval"),
    ],
)
def test_limits_that_limit_nothing_or_cannot_be_checked_are_refused(may: Audit, text: str, message: str):
    with pytest.raises(ValueError, match=message):
        checked(may, limits_of(text))


def test_the_interval_decides_whether_a_limit_is_kept():
    def verdict(low: float, high: float) -> str:
        return LimitCheck("age", "gdp", "all", 0.05, (low + high) / 2, Interval(low, high, 0.95, "")).verdict

    assert (verdict(0.01, 0.05), verdict(0.04, 0.06), verdict(0.0501, 0.06)) == ("kept", "unclear", "not kept")


def test_a_share_of_the_base_rate_counts_the_error_of_both():
    """The ends of g - c r by Zou and Donner: kept where the upper end is below 0."""
    reference = Number("base_rate", 0.3, 100, Interval(0.2, 0.42, 0.95, ""))
    for gap, verdict in ((0.02, "kept"), (0.05, "unclear"), (0.09, "not kept")):
        interval = Interval(gap - 0.01, gap + 0.01, 0.95, "")
        check = LimitCheck("age", "gdp", "all", 0.15 * 0.3, gap, interval, 0.15, "base rate", reference)
        low, high = (gap - 0.045 + sign * math.hypot(0.01, 0.15 * reach) for sign, reach in ((-1, 0.12), (1, 0.1)))
        assert check.verdict == verdict == ("kept" if high <= 0 else "not kept" if low > 0 else "unclear")


def test_kept_is_said_by_mistake_no_more_often_than_stated():
    """A rate of 0.03 in 600 rows, the gap known: the true gap is 20.5 % of the rate, the limit 20 %."""
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
    result = audit(chance, age, late, favourable=0, limit=["eo=0.4", "eo.rank_gap=0.01"], settings=QUICK)
    apart = audit(chance[late == 0], age[late == 0], settings=QUICK)["s"].all_rows["gdp"]
    assert result.limits[0].value == pytest.approx(apart.value, rel=1e-12)
    assert [check.verdict for check in result.limits] == ["kept", "not kept"]
    score = audit(chance, age, limit="gdp=10% of base rate", settings=QUICK)  # without a target, of the mean score
    assert score.limits[0].reference.value == pytest.approx(chance.mean())
    with pytest.raises(ValueError, match="not above 0 here"):
        audit(chance - 2, age, limit="gdp=10% of base rate", settings=QUICK)


def test_a_gap_that_is_not_to_be_trusted_is_limited_by_its_bound():
    """Twelve waves in 300 rows: the estimate misses them, and the interval of the audit reaches up to the bound."""
    random = np.random.default_rng(0)
    for seed in range(20):
        u = random.random(300)
        numbers = audit(np.sin(2 * np.pi * 40 * u), u, settings=replace(QUICK, seed=seed))["s"].all_rows
        if not numbers["gdp"].trusted:
            assert numbers["gdp"].interval.high >= numbers["gdp"].settings["bound"]
            return
    pytest.fail("no gap was called untrusted")


# changes --------------------------------------------------------------------------------------------------------


def changed(after: Audit, before: Audit) -> set[str]:
    return {change.key for change in drift(after, before) if change.changed}


@pytest.mark.parametrize(
    ("change", "moved"),
    [
        ({}, set()),
        ({"age": 58.0, "slope": 0.0}, {"attribute"}),
        ({"slope": 1.2}, {"gdp", "score"}),
        ({"skill": 0.0}, {"auc"}),
    ],
)
def test_what_has_moved_is_named(may: Audit, change: dict[str, float], moved: set[str]):
    steep = audit(*loans(2000, slope=0.8), settings=QUICK) if "skill" in change else may
    extra = {"slope": 0.8} if "skill" in change else {}
    june = audit(*loans(2000, 2, **extra, **change), settings=QUICK)
    assert moved <= changed(june, steep) <= moved | {"score", "gdp"} | ({"auc"} if "slope" in change else set())


def test_the_same_rows_are_refused(may: Audit):
    with pytest.raises(ValueError, match="the same rows"):
        drift(may, may)
    other = audit(*loans(seed=9), settings=QUICK)
    named = [replace(one, context=Context(origin={"data": "a"})) for one in (may, other)]
    with pytest.raises(ValueError, match="the same rows"):
        drift(*named)
    other = replace(may, attributes=(replace(may["s"], name="hours"),))
    with pytest.raises(ValueError, match="the earlier audit is of hours"):
        drift(may, other)


@pytest.mark.slow
def test_changes_are_found_by_mistake_no_more_often_than_the_level():
    """Tables of the same population and different size: any alarm in at most 5 % of them, by one family-wise level."""
    alarms, pairs = 0, 100
    for seed in range(pairs):
        small, large = (audit(*loans(n, 100 + seed + n), settings=QUICK) for n in (250, 2500))
        alarms += bool(changed(large, small))
    assert alarms <= stats.binom.ppf(0.999, pairs, 0.05)


def test_a_difference_joins_the_ends_that_face_each_other_and_is_adjusted(may: Audit):
    def with_gap(value: float, error: float, low: float, high: float, seed: int) -> Audit:
        gap = Number("gdp_common", value, 100, Interval(low, high, 0.95, ""), standard_error=error)
        attribute = replace(may["s"], all_rows=replace(may["s"].all_rows, numbers=(gap,)))
        law = Law((0.0, float(seed)), (0.5, 1.0), 1.0, 100, True)
        return replace(may, attributes=(attribute,), subject=replace(may.subject, law=law), quality=())

    z = 1.959964
    before, after = with_gap(0.02, 0.04, 0.0, 0.02 + z * 0.06, 1), with_gap(0.22, 0.03, 0.22 - z * 0.08, 0.28, 1)
    after = replace(after, subject=replace(after.subject, law=replace(after.subject.law, mean=2.0)))
    changes = {change.key: change for change in drift(after, before)}
    gap = changes["gdp"]
    raw = 2 * stats.norm.sf(0.2 / math.hypot(0.08, 0.06))
    assert gap.pvalue == min(change.pvalue for change in changes.values()) == pytest.approx(len(changes) * raw)
    assert gap.interval.low == pytest.approx(0.2 - z * 0.1)
    assert gap.interval.high == pytest.approx(0.2 + z * math.hypot(0.06 / z, 0.04), rel=1e-3)  # an end was cut off at 0


@pytest.mark.parametrize("values", [30, 5000])
def test_distributions_are_compared_by_kolmogorov_and_smirnov(values: int):
    """With all values kept the distance is the statistic itself; with some of them it is never larger."""
    random = np.random.default_rng(0)
    x, y = random.integers(0, values, 3000), random.integers(0, values, 2000) + values // 20
    laws = [Law.of(*np.unique(part, return_counts=True), len(part)) for part in (x, y)]
    exact = stats.ks_2samp(x, y).statistic
    at = np.union1d(laws[0].values, laws[1].values)
    (low, high), (other_low, other_high) = (law.bounds(at) for law in laws)
    distance = max((low - other_high).max(), (other_low - high).max())
    assert distance <= exact + 1e-12
    assert distance == pytest.approx(exact, abs=1e-12 if values == 30 else 0.012)


def test_limits_keep_the_base_of_the_earlier_audit(may: Audit):
    june = audit(*loans(seed=3), settings=QUICK)
    both = since(june, may, ["gdp=10% of base rate", "gdp=300% of gap"])
    assert both.limits[0].reference == may.subject.base_rate
    assert both.limits[1].limit == pytest.approx(3 * may["s"].all_rows["gdp"].value)
    assert both.drift == drift(june, may)
    assert Audit.from_json(both.to_json()) == both
