"""What the change of a gap since an earlier audit is made of: who came, and their curve."""

import numpy as np
import pytest

from frhsic.auditing import Audit, Settings, audit, drift
from frhsic.auditing.gaps import score_nodes
from frhsic.parity.rows import check_rows
from frhsic.parity.sums import Cells

QUICK = Settings(fast=True, resamples=99)
AGES = np.array([20.0, 30.0, 40.0, 50.0])


def month(shares, means, *, rows=4000, noise=0.0, seed=0, **options) -> Audit:
    """An audit of people of four ages with exact shares; `noise` has mean 0 at each age."""
    age = np.repeat(AGES, (np.array(shares) * rows).round().astype(int))
    sign = np.where(np.arange(len(age)) % 2, 1.0, -1.0)
    score = np.repeat(means, (np.array(shares) * rows).round().astype(int)) + noise * sign
    order = np.random.default_rng(seed).permutation(len(age))
    return audit(score[order], age[order], settings=QUICK, **options)


def parts(new: Audit, old: Audit):
    return {change.key: change for change in drift(new, old) if change.attribute == "s"}


def gap(means, shares) -> float:
    return float(np.array(shares) @ np.abs(np.array(means) - np.array(shares) @ means))


def sample(seed, *, rows=2000, spread=None, slope=0.006, **options) -> Audit:
    rng = np.random.default_rng(seed)
    age = rng.uniform(20, 60, rows) if spread is None else rng.normal(40, spread, rows)
    score = 0.5 + slope * (age - 40) + 0.15 * rng.standard_normal(rows)
    return audit(score, age, settings=QUICK, **options)


def test_the_parts_are_those_of_a_finite_law_and_add_up():
    before = [0.25, 0.25, 0.25, 0.25], [0.1, 0.3, 0.2, 0.6]
    after = [0.1, 0.5, 0.3, 0.1], [0.2, 0.35, 0.28, 0.4]
    changes = parts(month(*after, noise=0.01), month(*before, noise=0.01))
    middle = gap(before[1], after[0])
    people = changes["people"]
    curve = changes["curve"]
    assert (people.before, people.after) == pytest.approx((gap(*before[::-1]), middle), rel=1e-3)
    assert (curve.before, curve.after) == pytest.approx((middle, gap(*after[::-1])), rel=1e-3)
    assert people.after == curve.before
    assert people.before == pytest.approx(changes["gdp"].before, rel=1e-3)
    assert curve.after == pytest.approx(changes["gdp"].after, rel=1e-3)
    difference = np.array(after[1]) - before[1]
    assert changes["shape"].after == pytest.approx(gap(difference, after[0]), rel=1e-2)
    assert changes["shape"].changed
    for part in (people, curve):
        assert part.interval.low < part.after - part.before < part.interval.high


def test_a_gap_that_falls_since_other_people_came_leaves_the_curve_as_it_was():
    called = {"gdp": 0, "people": 0, "curve": 0, "shape": 0}
    for seed in range(12):
        changes = parts(sample(2 * seed + 1, spread=4.0), sample(2 * seed))
        for key in called:
            called[key] += changes[key].changed
    assert called["gdp"] == called["people"] == 12
    assert called["curve"] == called["shape"] == 0


def test_a_curve_that_is_reversed_has_no_part_and_is_found():
    for seed in range(3):
        changes = parts(sample(2 * seed + 1, slope=-0.006), sample(2 * seed))
        assert not changes["curve"].changed
        assert not changes["people"].changed
        assert changes["shape"].changed
        assert changes["shape"].after == pytest.approx(0.12, rel=0.15)


def test_a_curve_that_is_flatter_is_the_part_of_the_curve():
    changes = parts(sample(1, slope=0.002), sample(0))
    assert changes["curve"].changed
    assert changes["curve"].improved
    assert not changes["people"].changed


def test_a_part_is_significant_exactly_where_its_interval_excludes_0():
    seen = set()
    cases = [(0.006, None), (0.005, 11.0), (0.004, 10.0), (0.003, 9.0), (0.002, None)]
    for seed, (slope, spread) in enumerate(cases):
        changes = parts(sample(2 * seed + 1, slope=slope, spread=spread), sample(2 * seed))
        for key in ("people", "curve"):
            low, high = changes[key].interval
            assert changes[key].significant == (not low <= 0 <= high)
            seen.add((key, changes[key].significant))
    assert len(seen) == 4


def test_a_row_with_a_fifth_of_the_weight_is_no_proof_of_a_change():
    """The variance of a part could come out as 0, so that its change was certain."""

    def heavy(seed, rows):
        weights = np.append((rows - 1) / 4, np.ones(rows - 1))
        return sample(seed, rows=rows, slope=0.02, sample_weight=weights)

    for seed in range(4, 11):
        changes = parts(heavy(2 * seed + 1, 300), heavy(2 * seed, 400))
        assert min(changes[key].pvalue for key in ("people", "curve")) > 1e-4


@pytest.mark.slow
def test_nothing_is_called_changed_more_often_than_the_level():
    called = {"people": 0, "curve": 0, "shape": 0}
    for seed in range(60):
        changes = parts(sample(2 * seed, rows=400), sample(2 * seed + 1, rows=300))
        for key in called:
            called[key] += changes[key].significant
    assert max(called.values()) <= 3 + 2 * np.sqrt(60 * 0.05 * 0.95)


def test_people_whose_values_hardly_occurred_before_are_counted():
    old = month([0.5, 0.5, 0.0, 0.0], [0.1, 0.3, 0.2, 0.6], noise=0.05)
    new = month([0.4, 0.3, 0.2, 0.1], [0.1, 0.3, 0.2, 0.6], noise=0.05)
    changes = parts(new, old)
    assert changes["people"].unknown == pytest.approx(0.3)
    assert changes["gdp"].unknown == 0
    back = parts(old, new)
    assert back["people"].unknown == 0
    assert back["people"].after == pytest.approx(gap([0.1, 0.3], [0.5, 0.5]), rel=1e-3)


def test_nodes_have_the_moments_of_their_rows():
    rng = np.random.default_rng(0)
    s = rng.integers(6, size=300) * 1.0
    f = rng.gamma(2, size=300) + s
    rows = check_rows(f, s)
    cells = Cells.from_rows(rows)
    nodes = score_nodes(cells.score_sums(rows, rows.scores[:, 0]), cells)
    assert nodes.low == nodes.high == tuple(range(6))
    for i in range(6):
        own = f[s == i]
        assert nodes.rows[i] == pytest.approx(len(own))
        assert nodes.share[i] == pytest.approx(len(own) / 300)
        assert nodes.mean[i] == pytest.approx(own.mean())
        for order, moments in enumerate(nodes.moments, 2):
            assert moments[i] == pytest.approx(((own - own.mean()) ** order).mean())


def test_rows_that_come_three_times_are_worth_one():
    rng = np.random.default_rng(1)
    s = rng.integers(5, size=200) * 1.0
    f = rng.standard_normal(200)
    three = np.repeat(np.arange(200), 3)
    nodes = []
    for data in ((f, s, None, None, None), (f[three], s[three], None, None, three)):
        rows = check_rows(*data)
        cells = Cells.from_rows(rows)
        nodes.append(score_nodes(cells.score_sums(rows, rows.scores[:, 0]), cells))
    np.testing.assert_allclose(nodes[1].rows, nodes[0].rows)
    np.testing.assert_allclose(nodes[1].moments, nodes[0].moments)


def test_weighted_rows_are_worth_those_that_give_the_same_variance():
    rng = np.random.default_rng(2)
    s = rng.integers(4, size=4000) * 1.0
    weights = rng.uniform(0.2, 2, 4000)
    f = rng.standard_normal(4000)
    rows = check_rows(f, s, None, weights)
    cells = Cells.from_rows(rows)
    nodes = score_nodes(cells.score_sums(rows, rows.scores[:, 0]), cells)
    for i in range(4):
        own = s == i
        mean = np.average(f[own], weights=weights[own])
        variance = (weights[own] ** 2 * (f[own] - mean) ** 2).sum() / weights[own].sum() ** 2
        assert nodes.moments[0][i] / nodes.rows[i] == pytest.approx(variance)
        assert nodes.share[i] == pytest.approx(weights[own].sum() / weights.sum())
