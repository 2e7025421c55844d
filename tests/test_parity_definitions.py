"""What the gaps of parity are made of, row by row: sums, local means, the statistic, its error and
what it misses.
"""

import math
from dataclasses import replace
from types import SimpleNamespace
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from scipy import optimize, stats
from scipy.special import ndtr

from frhsic.parity import correlation_ratio, gdp_curve
from frhsic.parity.column import GapOptions, column_gap
from frhsic.parity.gap import ParityResult, largest_gap, tail_share
from frhsic.parity.interval import (
    CORRECTIONS,
    Ends,
    GapEstimate,
    corrected_ends,
    decision_rates,
    skewness,
    student_ends,
    uncertain_signs,
)
from frhsic.parity.local_means import RowNoise, Windows, spread_trend, window_share
from frhsic.parity.ranks import RankGap
from frhsic.parity.rows import check_rows
from frhsic.parity.sums import Cells, bin_levels, max_bins, node_levels


def approx(expected):
    return pytest.approx(expected, rel=1e-9, abs=1e-12)


def design(kind, n=60, seed=0):
    """Skewed scores along repeated values of s, some with one row; with weights, or in clusters of
    neighbours.
    """
    rng = np.random.default_rng([seed, 41])
    s = np.floor(25 * rng.random(n) ** 1.5)
    f = np.exp(rng.standard_normal(n)) + 0.3 * np.sin(s)
    weights = rng.integers(1, 4, n) / 2 if kind != "rows" else None
    return check_rows(
        f, s, None, weights, rng.integers(n // 3, size=n) if kind == "clusters" else None
    )


def parts(rows):
    """Centred scores, the number of the value of s, weights, and labels of what is independent, of
    each row.
    """
    f = rows.scores[:, 0] - rows.weights @ rows.scores[:, 0] / rows.weights.sum()
    labels = np.arange(len(f)) if rows.clusters is None else rows.clusters
    return f, np.unique(rows.s, return_inverse=True)[1], rows.weights, labels


def sums_of(rows):
    cells = Cells.from_rows(rows)
    return cells.score_sums(rows, rows.scores[:, 0]).group_sums(cells.nodes)


def first_column(rows, resolution=None):
    return column_gap(rows, rows.scores[:, 0], resolution)


@pytest.mark.parametrize("kind", ["rows", "weights", "clusters"])
def test_sums_are_those_of_rows(kind):
    rows = design(kind)
    f, node, w, labels = parts(rows)
    rng, sums = np.random.default_rng(1), sums_of(rows)
    nodes, n = node.max() + 1, w.sum()
    at, constant, slope = rng.standard_normal((3, nodes))
    units = np.unique(
        np.stack([node, labels]), axis=1
    ).T  # rows of a cluster at a node belong together

    def by_unit(values):
        return np.array([values[(node == g) & (labels == c)].sum() for g, c in units])

    rest = w * (f - at[node])
    totals = by_unit(rest)
    fourth = by_unit(rest**4) if kind != "clusters" else totals**4
    expected = [
        [part[units[:, 0] == g].sum() for g in range(nodes)]
        for part in (totals**2, totals**3, fourth)
    ]
    for mine, other in zip(sums.residuals(at), expected):
        assert mine == approx(other)
    squares = by_unit(w) ** 2
    assert sums.squared_weights == approx([squares[units[:, 0] == g].sum() for g in range(nodes)])
    effective = np.bincount(labels, w)
    effective = effective.sum() ** 2 / (effective**2).sum()
    assert (sums.effective, sums.bessel, sums.n) == approx(
        (effective, effective / (effective - 1), n)
    )
    assert sums.variance == approx(w @ f**2 / n)
    for bend in (0.0, 0.7):
        linear = w * (constant[node] + slope[node] * f)
        whole = np.bincount(labels, linear + bend * w * f**2)
        straight = whole if kind == "clusters" else np.bincount(labels, linear)
        variance = sums.bessel * (whole**2).sum() / n**2
        assert sums.influence(constant, slope, bend) == approx(
            (variance, (straight**3).sum() / n**3)
        )
    starts = np.array([0, 2, 3, nodes - 1])
    joined, union = sums.merge(starts), np.searchsorted(starts, node, side="right") - 1
    assert joined.counts == approx(np.bincount(union, w))
    pairs = np.unique(np.stack([union, labels]), axis=1).T
    squares = np.array([w[(union == g) & (labels == c)].sum() ** 2 for g, c in pairs])
    assert joined.squared_weights == approx(np.bincount(pairs[:, 0], squares))
    sums_of_units = np.array([(w * f)[(union == g) & (labels == c)].sum() for g, c in pairs])
    if kind == "clusters":
        zero = np.zeros(len(starts))
        assert joined.residuals(zero)[0] == approx(np.bincount(pairs[:, 0], sums_of_units**2))
    for power, order in ((1, 2), (1, 3), (2, 2), (4, 4)):
        assert sums.moment(power, order, at) == approx(
            np.bincount(node, w**power * (f - at[node]) ** order)
        )


def spread_of(ranks, squares, w):
    """The log-linear trend of the variance with the highest normal likelihood (Harvey, 1976), its
    slope shrunk by four times its robust variance.
    """

    def moved(slope):
        residuals = squares / np.exp(slope * ranks)
        return residuals / np.average(residuals, weights=w) - 1

    slope = optimize.brentq(lambda slope: w @ (moved(slope) * ranks), -10, 10, xtol=1e-13)
    terms = pd.Series(w * moved(slope)).groupby(ranks).sum()
    variance = terms**2 @ terms.index**2 / (w @ ranks**2) ** 2
    return np.exp(slope * max(1 - 4 * variance / slope**2, 0) * ranks)


class Reference:
    """Local means, their errors and the gap of independent rows, each sum over rows."""

    def __init__(self, rows, share):
        self.f, self.node, self.w, _ = parts(rows)
        f, w = self.f, self.w
        self.n = w.sum()
        end = np.array([w[rows.s <= x].sum() for x in rows.s]) / self.n
        start = np.array([w[rows.s < x].sum() for x in rows.s]) / self.n
        middle = (start + end) / 2

        def window(share):
            """Which part of the people with the s of one row is near that of another."""
            last = np.minimum(end, middle[:, None] + share / 2)
            first = np.maximum(start, middle[:, None] - share / 2)
            part = np.clip((last - first) / (end - start), 0, 1)
            return np.where(np.equal.outer(self.node, self.node), 1.0, part)

        alone = end - start >= share
        near = window(share)
        near[(alone | alone[:, None]) & ~np.equal.outer(self.node, self.node)] = 0
        self.average = near * w / (near @ w)[:, None]
        self.mean = self.average @ f
        rest = f - self.mean
        left = np.maximum(1 - (self.average**2).sum(axis=1), 0.5)
        wide = window(min(4 * share, 1))
        count = (wide @ w) ** 2 / (wide**2 @ w**2)

        def nearby(values, by):
            overall = (by * values).sum() / by.sum()
            return (count * (wide @ (by * values)) / (wide @ by) + 10 * overall) / (count + 10)

        trend = spread_of(middle - w @ middle / self.n, rest**2, w)
        squares = rest**2 / left / trend
        self.spread = np.maximum(nearby(squares, w), nearby(squares, w**2)) * trend
        self.third = nearby(rest**3 / left**2 / trend**1.5, w) * trend**1.5
        self.away = self.average - w / self.n  # of each row in the local mean less the overall one
        self.wide = wide * w / (wide @ w)[:, None] - w / self.n
        step = (self.away - self.wide) @ f
        noise = (self.away - self.wide) ** 2 @ self.spread
        self.shrinkage = 1 / max((w @ step**2) / (w @ noise) / (1 + 2 * math.sqrt(2 * share)), 1)

    def signs(self, shrinkage):
        """The means whose signs are taken, their errors, the signs, the gap and its slopes."""
        weights = self.away - shrinkage * (self.away - self.wide)
        mean = weights @ self.f
        error = np.sqrt(weights**2 @ self.spread)
        x = mean / (0.5 * error)
        soft = 2 * ndtr(x) - 1
        slope = 2 * stats.norm.pdf(x) / (0.5 * error)
        shared = (weights * self.away) @ self.spread
        gap = self.w @ (soft * self.mean - slope * shared) / self.n
        return mean, error, soft, gap, (self.w * soft) @ self.away / self.w


@pytest.mark.parametrize("share", [0.06, 0.2, 0.5])
@pytest.mark.parametrize("kind", ["rows", "weights"])
@pytest.mark.parametrize("seed", range(3))
def test_local_means_and_the_statistic_are_those_of_rows(kind, seed, share):
    rows = design(kind, 40 + 60 * seed, seed)
    reference, column = Reference(rows, share), first_column(rows, share)
    node = reference.node
    assert column.means.mean[node] == approx(reference.mean)
    assert column.signs.shrinkage == approx(reference.shrinkage)
    for mine, shrinkage in ((column.fine_signs, 0.0), (column.signs, reference.shrinkage)):
        mean, error, soft, gap, slope = reference.signs(shrinkage)
        assert mine.mean[node] == approx(mean)
        assert mine.error[node] == approx(error)
        assert mine.soft[node] == approx(soft)
        assert mine.slope[node] == approx(slope)
        assert mine.gap == approx(gap)
    assert column.value == column.signs.gap
    squares = np.bincount(node, reference.w**2)
    cubes = np.bincount(node, reference.w**3)
    first = np.unique(node, return_index=True)[1]
    noise = column.means.noise
    assert noise.variance == approx(squares * reference.spread[first])
    assert noise.skewness == approx(cubes * reference.third[first] / noise.variance**1.5)
    terms = reference.w * (reference.f - reference.mean)
    heavy = 3 * (terms**2).sum() ** 2 / (terms**4).sum()
    assert column.means.freedom == approx(min(heavy, column.sums.effective - 1))


def test_the_estimate_is_centred_where_the_mean_is_flat_and_never_above_the_gap():
    """Its expectation over the noise of the local means is E g times the mean (Stein)."""
    column = first_column(design("rows", 200, 3), 0.1)
    error = np.sqrt(column.means.variance)
    normal = RowNoise(column.means.rows.variance, np.zeros_like(error))
    noise, wide = column.means.means_from_sums(normal.draw([0], 40_000))
    noise, wide = (part - part.mean(axis=1, keepdims=True) for part in (noise, wide))
    for size in (np.zeros_like(error), 0.8 * error, np.linspace(-3, 3, len(error)) * error):
        mean = size[:, None]
        for shrinkage in (0.0, 0.7):
            drawn = column.statistic(mean + noise, mean + wide, shrinkage)
            signed, own, _ = column._signed_means(mean + noise, mean + wide, shrinkage)
            sign = (2 * ndtr(signed / (0.5 * own)) - 1).mean(axis=1)
            chance = drawn.std() / math.sqrt(40_000)
            expected = column.shares @ (size * sign)
            assert drawn.mean() == pytest.approx(expected, abs=5 * chance)
            assert drawn.mean() <= column.shares @ np.abs(size) + 5 * chance


def test_clusters_widen_the_errors_by_what_their_rows_share_between_nodes():
    rows = design("clusters", 90, 4)
    f, node, w, labels = parts(rows)
    means = first_column(rows, 0.2).means
    rest = np.zeros((node.max() + 1, labels.max() + 1))
    np.add.at(rest, (node, labels), w * (f - means.mean[node]))
    loads = means.windows.deviations
    together = ((loads @ rest) ** 2).sum(axis=1)
    apart = loads**2 @ (rest**2).sum(axis=1)
    variance = loads**2 @ means.rows.variance * np.maximum(together / apart, 1)
    assert means.variance == approx(variance)
    # draws of the means have these variances
    drawn, wide = means.draw([0], 40_000)
    assert drawn.var(axis=1) == pytest.approx(variance, rel=0.1)
    assert wide.std() < drawn.std()


def test_windows_hold_a_fixed_share_of_the_people_and_few_values_stand_alone():
    assert [window_share(n) for n in (100, 1000, 64_000)] == approx(
        [0.05 * 10 ** (2 / 3), 0.05, 0.025]
    )
    assert window_share(10**9) == 1 / 64
    assert window_share(2) == 1
    rng = np.random.default_rng(0)
    for values, share in ((20, 0.0), (21, 0.05)):
        s = np.arange(1000) % values
        windows = first_column(check_rows(rng.random(1000), s)).means.windows
        assert windows.share == approx(share)
        assert (np.count_nonzero(windows.weights) == values) == (share == 0)
    # a value that more people have stands alone among many
    s = np.append(np.zeros(300), rng.random(700))
    windows = first_column(check_rows(rng.random(1000), s)).means.windows
    assert np.count_nonzero(windows.weights[0]) == np.count_nonzero(windows.weights[:, 0]) == 1
    inside = windows.totals[20:-20] / 1000
    assert inside == pytest.approx(0.05, abs=0.01)
    fixed = Windows(first_column(check_rows(rng.random(1000), np.arange(1000) % 10)).sums, 0.5)
    assert fixed.share == 0.5


@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("kind", ["rows", "weights"])
@pytest.mark.parametrize(("n", "values"), [(60, 6), (300, 90)])
def test_estimates_are_made_of_influences_and_uncertain_signs(kind, n, values, scaled):
    rng = np.random.default_rng([n, values])
    s = np.concatenate([np.tile(np.arange(values), 3), rng.integers(values, size=n - 3 * values)])
    f = np.exp(rng.standard_normal(n)) + (-1.0) ** s
    rows = check_rows(f, s, None, rng.integers(1, 4, n) / 2 if kind == "weights" else None)
    column = first_column(rows, 0.02)
    reference = Reference(rows, 0.02)
    w, n = reference.w, reference.n
    if scaled:
        column = column.standardized_gap()
    options = GapOptions(0.96, 99, 0)
    lower, upper = column.estimates(options)
    for estimate, signs in ((lower, column.signs), (upper, column.fine_signs)):
        mean, error, _, gap, slope = reference.signs(signs.shrinkage)
        linear = w * (slope * reference.f - gap)
        terms = linear
        if scaled:
            variance = w @ reference.f**2 / n
            linear = w * (slope * reference.f - gap / 2)
            terms = linear - w * gap / 2 * reference.f**2 / variance
        spread = column.sums.bessel * (terms**2).sum() / n**2
        if not scaled:
            spread = max(spread, reference.spread @ (w * slope / n) ** 2)
        whole = math.sqrt(spread + column.uncertain_variance(signs, options))
        assert (estimate.value, estimate.error) == approx((gap, whole))
        assert estimate.skewness == approx((linear**3).sum() / n**3 / whole**3)
    # a sign is uncertain within two standard errors
    place = np.abs(np.abs(mean) / error + np.linspace(-2, 2, 4001)[:, None])
    worst = (2 * place * ndtr(-place / math.sqrt(1.25))).max(axis=0) * error
    assert (lower.lost, upper.lost) == pytest.approx((0, w @ worst / n), rel=1e-3)


def test_uncertain_signs_add_the_variance_that_resamples_find():
    column = first_column(design("rows", 120, 2), 0.2)
    means, options = column.means, GapOptions(0.9, 40, 3)
    noise, wide = means.draw([(3, 0)], 40)
    for signs in (column.signs, column.fine_signs):
        near = np.abs(signs.mean) <= 2 * signs.error
        middle = np.where(near, 0, signs.mean)[:, None]
        values = column.statistic(middle + noise, middle + wide, signs.shrinkage)
        linear = (column.shares * np.where(near, signs.soft, np.sign(signs.mean))) @ noise
        expected = max(values.var() - linear.var(), 0)
        assert column.uncertain_variance(signs, options) == approx(expected)
    chance = np.random.default_rng((3, 1, 1)).chisquare(means.freedom, 40)
    values = column.statistic(noise, wide, means.shrinkage(noise, wide))
    assert column.null(options) == approx(values * np.sqrt(means.freedom / chance))


def test_the_variance_of_uncertain_signs_takes_199_resamples_at_most():
    column = first_column(design("rows", 120, 2), 0.2)
    found = [
        column.uncertain_variance(column.fine_signs, GapOptions(0.9, n, 3)) for n in (198, 199, 999)
    ]
    assert found[0] != found[1] == found[2]


ESTIMATE = GapEstimate(value=0.3, error=0.1, skewness=0.5, freedom=12.0, lost=0.04)


def corrected(correction, estimate, ends=None):
    """Return by how much a correction moves the ends, at an error of .025 on each side."""
    assert correction in CORRECTIONS
    ends = Ends(0.1, 0.5) if ends is None else ends
    moved = correction(ends, estimate, 0.025)
    return moved.low - ends.low, moved.high - ends.high


def test_each_correction_moves_the_ends_by_its_own_amount():
    quantile = stats.t.isf(0.025, 12)
    reach = quantile * 0.1
    ends = student_ends(ESTIMATE, 0.025)
    assert (ends.low, ends.high) == approx((0.3 - reach, 0.3 + reach))
    shift = 0.1 * 0.5 * (2 * quantile**2 + 1) / 6
    assert corrected(skewness, ESTIMATE) == approx((0, shift))
    left = GapEstimate(0.3, 0.1, -0.5, 12.0, 0.04)
    assert corrected(skewness, left) == approx((-shift, 0))
    assert corrected(uncertain_signs, ESTIMATE) == approx((0, 0.04))
    assert corrected(decision_rates, ESTIMATE) == (0, 0)
    ends = corrected_ends(ESTIMATE, 0.025)
    assert (ends.low, ends.high) == approx((0.3 - reach, 0.3 + reach + shift + 0.04))
    assert corrected_ends(GapEstimate(-0.1, 0.01, 0, 1e9, 0), 0.025).low == 0


def test_the_rate_of_decisions_bounds_the_end_that_uncertain_signs_have_raised():
    decisions = first_column(check_rows(np.arange(200) < 60, np.arange(200) % 5)).sums
    rate = stats.beta.ppf(0.975, 61, 140)
    raised = corrected_ends(ESTIMATE, 0.025).high
    assert raised > 2 * rate * (1 - rate) > ESTIMATE.value
    bounded = corrected_ends(replace(ESTIMATE, decisions=decisions), 0.025).high
    assert bounded == approx(2 * rate * (1 - rate))


def measured(lower, upper, scale=1.0, most=math.inf):
    """A column, or several, whose estimates are known."""
    return SimpleNamespace(
        value=np.divide(lower.value, scale),
        n=9,
        resolution=0.1,
        scale=scale,
        most=most,
        estimates=lambda options: (lower, upper),
    )


def test_the_interval_is_that_of_the_largest_ends_of_both_estimates_and_all_columns():
    options = GapOptions(0.9, 99, 0, test=False)
    wide = GapEstimate(0.3, 0.1, 0, 1e9)
    narrow = GapEstimate(0.25, 0.01, 0, 1e9)
    z, both = stats.norm.isf([0.05, 0.025])
    for lower, upper, ends in (
        (wide, narrow, (0.3 - 0.1 * z, 0.3 + 0.1 * z)),
        (narrow, wide, (0.25 - 0.01 * z, 0.3 + 0.1 * z)),
    ):
        result = largest_gap(measured(lower, upper), options)
        assert result.interval == pytest.approx(ends, rel=1e-6)
        assert result.standard_error == lower.error
    both_columns = GapEstimate(np.array([0.3, 0.25]), np.array([0.1, 0.01]), 0, 1e9)
    # each column has half of the error probability
    result = largest_gap(measured(both_columns, both_columns), options)
    assert result.interval == pytest.approx((0.25 - 0.01 * both, 0.3 + 0.1 * both), rel=1e-6)
    assert (result.value, result.per_column) == (0.3, (0.3, 0.25))
    scaled = largest_gap(measured(wide, wide, scale=0.4, most=1.0), options)
    assert scaled.interval == pytest.approx(((0.3 - 0.1 * z) / 0.4, 1.0), rel=1e-6)
    assert (scaled.value, scaled.standard_error) == approx((0.75, 0.25))


@pytest.mark.parametrize(("positive", "n"), [(3, 200), (7, 200), (8, 200), (193, 200), (3, 8)])
def test_few_decisions_of_a_kind_allow_the_gap_of_their_largest_rate(positive, n):
    f = np.zeros(n)
    f[:positive] = 1
    sums = first_column(check_rows(f, np.arange(n) % 5)).sums
    rare = min(positive, n - positive)
    rate = min(stats.beta.ppf(0.975, rare + 1, n - rare), 0.5)  # 2μ(1 - μ) is largest at 1/2
    most = 2 * rate * (1 - rate)
    estimate = GapEstimate(0.001, 0.001, 0, 1e9, 0, sums)
    low = Ends(0.0, 0.003)
    high = Ends(0.0, 0.9)
    if rare < 8:  # so few show no gap
        assert corrected(decision_rates, estimate, low) == approx((0, most - 0.003))
        assert corrected(decision_rates, estimate, high) == (0, 0)
    else:  # so many cannot have a larger one
        assert corrected(decision_rates, estimate, low) == (0, 0)
        assert corrected(decision_rates, estimate, high) == approx((0, most - 0.9))
        large = replace(estimate, value=most + 0.1)  # the end stays above the estimate
        assert corrected(decision_rates, large, high) == approx((0, most + 0.1 - 0.9))


@pytest.mark.parametrize("kind", ["rows", "weights", "clusters"])
@pytest.mark.parametrize("n", [60, 400])
def test_the_band_is_that_of_students_t_with_borrowed_variance_and_skewness(kind, n):
    rows = design(kind, n, 3)
    f, w, (_, _, _, labels) = rows.scores[:, 0], rows.weights, parts(rows)
    curve = gdp_curve(f, rows.s, sample_weight=w, groups=rows.clusters)
    groups = [
        np.flatnonzero((rows.s >= start) & (rows.s <= end))
        for start, end in zip(curve.start, curve.end)
    ]
    weight, mean = (
        np.array(x) for x in zip(*((w[g].sum(), w[g] @ f[g] / w[g].sum()) for g in groups))
    )
    rest = [np.bincount(labels[g], w[g] * (f[g] - m)) for g, m in zip(groups, mean)]
    fourths = [
        (r**4).sum() if kind == "clusters" else w[g] ** 4 @ (f[g] - m) ** 4
        for g, r, m in zip(groups, rest, mean)
    ]
    count = weight**2 / [(np.bincount(labels[g], w[g]) ** 2).sum() for g in groups]
    squares, cubes = np.array([[(r**power).sum() for r in rest] for power in (2, 3)])
    scale = count**2 / (count - 1) / weight**2
    heavy = fourths * (count / weight) ** 4 @ np.ones(len(count))
    heavy = max(heavy / (count @ (squares * scale) ** 2) - 3, 0)
    few = 1 + heavy / 2
    trend = spread_trend(count, count * squares * scale)
    trend **= count.sum() / (count.sum() + 5 * 10 * few)
    flat = squares * scale / trend
    overall = count @ flat / count.sum()
    spread = []
    for i in range(len(count)):  # one group on either side, since there are fewer than 20
        near = slice(max(i - 1, 0), i + 2)
        share = count[near].sum() / (count[near].sum() + 10 * few)
        nearby = count[near] @ flat[near] / count[near].sum()
        spread.append(trend[i] * nearby**share * overall ** (1 - share))
    spread = np.array(spread)
    squares = squares / spread
    cubes = cubes / spread**1.5
    fourths = fourths / spread**2
    variance = squares * scale
    pooled = weight @ variance / weight.sum()
    skewness = cubes.sum() / squares.sum() ** 1.5 * math.sqrt(count.sum()) / np.sqrt(count)
    tails = sum(fourths) / squares.sum() ** 2 * count.sum() - 3
    assert tails > 0
    freedom = 2 * count / (tails + 2)
    prior = min(2 / max(variance.var() / pooled**2 - (2 / freedom).mean(), 1e-300), 1e3)
    borrowed = prior / (freedom + prior)
    own = ((count - 1) * variance + few * pooled) / (count - 1 + few)
    error = np.maximum(variance, own ** (1 - borrowed) * pooled**borrowed)
    error = np.sqrt(spread * error / count)
    quantile = stats.t.isf((1 - 0.95 ** (1 / len(groups))) / 2, count - 1)
    shift, more = (
        skewness * (2 * quantile**2 + 1) / 6,
        error * borrowed * skewness * (quantile**2 - 1) / 6,
    )
    shift = np.clip(shift, -1.5 * quantile, 1.5 * quantile)
    assert curve.mean == approx(mean)
    assert curve.lower == approx(
        mean - error * (quantile + np.maximum(-shift, 0)) - np.maximum(more, 0)
    )
    assert curve.upper == approx(
        mean + error * (quantile + np.maximum(shift, 0)) + np.maximum(-more, 0)
    )
    assert (curve.n, curve.overall) == (n, approx(w @ f / w.sum()))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("values", [12, 50, 1000])
def test_the_correlation_ratio_and_its_interval_are_those_of_rows(weighted, values):
    """Variances within values of s, or of differences from the values next to it where a value has
    one row.
    """
    rng = np.random.default_rng(values)
    s = np.sort(rng.integers(values, size=80)) + 0.0
    f = 0.1 * s / values + rng.standard_normal(80) ** 2
    w = rng.integers(1, 4, 80) / 2 if weighted else np.ones(80)
    rows = check_rows(f, s, None, w)
    (f, node, w, _), n = parts(rows), 80
    level = [np.flatnonzero(node == g) for g in range(node.max() + 1)]
    size = np.array([w[g].sum() ** 2 / (w[g] ** 2).sum() for g in level])
    mean = np.array([w[g] @ f[g] / w[g].sum() for g in level])
    within = np.empty(n)
    for j, g in enumerate(level):
        beside = [i for i in (j - 1, j + 1) if 0 <= i < len(level)]
        differences = [(mean[i] - mean[j]) ** 2 / (1 + 1 / size[i]) for i in beside]
        within[g] = (
            (f[g] - mean[j]) ** 2 * size[j] / (size[j] - 1) if len(g) > 1 else np.mean(differences)
        )
    effective = n**2 / (w**2).sum()
    square = effective / (effective - 1) * f**2
    variance = w @ square / n
    ratio = (w @ within / n) / variance
    value = max(1 - ratio, 0)
    terms = w * (within - ratio * square) / variance
    carried = (terms**4).sum() / (terms**2).sum() ** 2 - 1 / n
    z = stats.t.ppf(0.95, min(effective / 4, 2 / carried))
    result = correlation_ratio(f, rows.s, sample_weight=w, confidence=0.9)
    alone = len(level) > n / 2
    if alone:
        lags = [terms[lag:] @ terms[: n - lag] for lag in range(4)]
        error = math.sqrt(max(lags[0] + 2 * (lags[1] + lags[2] - 2 * lags[3]), 0.1 * lags[0])) / n
        near, apart = np.diff(f) ** 2 / 2, (f[2:] - f[:-2]) ** 2 / 2
        error = max(error, math.sqrt(near[2:] @ near[:-2] / n / effective) / variance)
        ends = (
            value - z * error,
            value + z * error + max(apart.mean() - near.mean(), 0) / 2 / variance,
        )
    else:
        b = 0.0
        for g, m in zip(level, size):
            spread = w[g] @ within[g] / w[g].sum()
            b += w[g].sum() ** 2 * (
                2 * spread**2 / m / (m + 1) if len(g) > 1 else (w @ within / n) ** 2
            )
        b /= n**2 * variance**2
        a = ((terms**2).sum() / n**2 + (4 / n) ** 2) / (value + 4 / n)
        error = math.sqrt(a * value + b)
        middle, root = value + z**2 * a / 2, z * math.sqrt(error**2 + z**2 * a**2 / 4)
        ends = middle - root, middle + root
    assert (result.value, result.standard_error) == approx((value, error))
    assert result.interval == approx((max(ends[0], 0), min(ends[1], 1)))
    assert (result.trusted, result.n, result.confidence) == (not alone, 80, 0.9)


@pytest.mark.parametrize(("n", "trusted"), [(249, False), (250, True)])
def test_the_correlation_ratio_of_single_values_is_trusted_from_250_rows_on(n, trusted):
    s = np.arange(n) + 0.0
    assert correlation_ratio(np.sin(s), s).trusted == trusted
    assert correlation_ratio(np.sin(s), s // 4).trusted


@pytest.mark.parametrize("kind", ["rows", "weights", "clusters"])
def test_the_rank_gap_of_few_scores_is_the_gap_of_their_mean_decision(kind):
    """Inside of large ties deciles do not move; where all signs are certain, the mean of the gaps
    is the gap of the mean of the decisions, with its influences.
    """
    rng = np.random.default_rng(6)
    n = 1200
    s = np.arange(n) % 3 // 2 * 1.0
    score = np.floor(2.5 * rng.random(n) + 1.2 * s)
    weights = rng.integers(1, 4, n) / 2 if kind == "weights" else None
    clusters = s * 1000 + rng.integers(200, size=n) if kind == "clusters" else None
    rows = check_rows(score, s, None, weights, clusters)
    ranks = RankGap(rows)
    decided = ranks.rows.scores @ ranks.shares[:, None]
    column = first_column(replace(rows, scores=decided))
    options = GapOptions(0.9, 49, 0)
    for estimate, signs in zip(ranks.estimates(options), (column.signs, column.fine_signs)):
        variance, third = column.sums.influence(np.full(2, -signs.gap), signs.slope)
        error = math.sqrt(variance)
        assert (estimate.value, estimate.error) == pytest.approx((signs.gap, error), rel=1e-6)
        assert estimate.skewness == pytest.approx(third / error**3, rel=1e-5)
    assert ranks.value == approx(ranks.estimates(options)[0].value)


@pytest.mark.parametrize("kind", ["rows", "weights", "clusters"])
def test_the_rank_gap_of_rare_decisions_is_their_gap(kind):
    """All deciles are 0, and exceeding it is the decision itself."""
    rng = np.random.default_rng(7)
    n = 500
    f = (rng.random(n) < 0.05) * 1.0
    weights = rng.integers(1, 4, n) / 2 if kind == "weights" else None
    clusters = rng.integers(200, size=n) if kind == "clusters" else None
    rows = check_rows(f, rng.random(n), None, weights, clusters)
    ranks = RankGap(rows)
    column = first_column(rows)
    options = GapOptions(0.9, 49, 0)
    both = zip(
        ranks.estimates(options), column.estimates(options), (column.signs, column.fine_signs)
    )
    for mine, other, signs in both:
        extra = column.uncertain_variance(signs, options)
        variance, third = column.sums.influence(np.full(len(signs.slope), -signs.gap), signs.slope)
        assert extra > 0
        assert (mine.value, mine.lost) == approx((other.value, other.lost))
        assert mine.error**2 == approx(variance + extra)
        assert mine.skewness == approx(third / mine.error**3)
        assert mine.freedom == other.freedom
    assert mine.lost > 0


def test_the_interval_of_the_rank_gap_has_the_fewest_degrees_of_freedom_of_its_decisions():
    rng = np.random.default_rng(8)
    ranks = RankGap(check_rows(rng.random(300), rng.random(300)))
    freedom = ranks.columns.means.freedom
    assert max(freedom) > min(freedom)
    for estimate in ranks.estimates(GapOptions(0.9, 49, 0)):
        assert estimate.freedom == min(freedom)


@pytest.mark.parametrize("kind", ["rows", "weights"])
def test_decisions_of_a_row_covary_as_those_of_independent_scores_do(kind):
    rows = design(kind, 120, 5)
    ranks = RankGap(rows)
    score, w = rows.scores[:, 0], rows.weights
    _, node, _, _ = parts(rows)
    above = (score[:, None] > ranks.thresholds) * 1.0
    above -= w @ above / w.sum()
    covariance = ranks.columns.sums.bessel * (w[:, None] * above).T @ above / w.sum()
    root = ranks.decision_root(w @ (score[:, None] > ranks.thresholds) / w.sum())
    assert root @ root.T == approx(covariance)
    resamples = 20_000
    drawn = ranks._joint_noise(GapOptions(0.9, resamples, 0))
    for g in range(node.max() + 1):
        size = (w[node == g] ** 2).sum()
        found = drawn[:, g] @ drawn[:, g].T / resamples
        assert found == pytest.approx(size * covariance, abs=0.05 * size * covariance.max())


def test_many_values_of_s_are_joined_to_nodes_and_groups():
    weights = np.random.default_rng(0).random(1000)
    ranks = (np.cumsum(weights) - weights / 2) / weights.sum()
    starts = node_levels(weights, 256)
    assert np.searchsorted(starts, np.arange(1000), side="right") - 1 == approx(
        np.unique(np.floor(256 * ranks), return_inverse=True)[1]
    )
    assert node_levels(weights, 1000).tolist() == list(range(1000))
    # a value with five rows is a group; rarer ones are joined, and less than half a group goes to
    # the last
    assert bin_levels(np.array([5, 2, 2, 1, 9, 1]), 6).tolist() == [0, 1, 4]
    assert bin_levels(np.array([5, 2, 2, 1, 9, 3]), 6).tolist() == [0, 1, 4, 5]
    assert bin_levels(np.ones(1000, int), 40).tolist() == list(range(0, 1000, 25))
    assert bin_levels(np.array([5, 1]), 6).tolist() == [0]
    assert bin_levels(np.ones(4, int), 6).tolist() == [0, 2]  # half of the rows, if these are few
    assert bin_levels(np.array([6, 1, 1]), 2).tolist() == [0, 1]  # half a group stays one
    # what rounding adds to all weights is no node of its own
    assert node_levels(np.append(np.ones(300), 1e-18), 256)[-1] < 300
    assert [max_bins(n) for n in (10, 499, 700, 3999, 10**6)] == [5, 5, 7, 39, 40]


def test_a_p_value_beyond_the_resamples_is_that_of_an_exponential_tail():
    null = np.sort(np.random.default_rng(0).exponential(size=200))
    excess = (null[-20:] - null[-21]).mean()
    for value in (null[-1] + 3, null[-1] + 8):
        assert tail_share(null, value) == approx(
            21 / 201 * (1 + (value - null[-21]) / (20 * excess)) ** -20
        )
    assert tail_share(null, null[-10]) == 11 / 201  # ten reach it
    assert tail_share(null[:49], 99.0) == 1 / 50  # too few for a tail
    assert tail_share(np.arange(50.0), 49.5) == approx(6 / 51 * (1 + 5.5 / 15) ** -5)
    assert tail_share(np.arange(50.0), 44.0) == 7 / 51  # the tail begins there
    assert tail_share(np.zeros(200), 1.0) == 1 / 201  # no draw exceeds another


def test_values_that_differ_by_rounding_are_ties():
    """A hundred times the rounding of the largest score is a tie, and no more."""
    estimate = GapEstimate(0.3, 0.1, 0, 1e9)
    for magnitude in (1.0, 1e6):
        small = 2.0**-52 * magnitude
        for less, pvalue in ((50, 1.0), (200, 1 / 50)):
            column = measured(estimate, estimate)
            column.magnitude = magnitude
            draws = np.full(49, 0.3 - less * small)
            column.null = lambda options, draws=draws: draws
            assert largest_gap(column, GapOptions(0.9, 49, 0)).pvalue == pvalue
    nothing = measured(replace(estimate, value=0.0), estimate)
    nothing.magnitude = 1.0
    nothing.null = lambda options: np.full(49, -0.1)
    result = largest_gap(nothing, GapOptions(0.9, 49, 0))
    assert (result.pvalue, result.expected_under_independence) == (1.0, 0.0)


@pytest.mark.parametrize("kind", ["rows", "weights", "clusters"])
@pytest.mark.parametrize("ends", [(0.0, 1.0), (2.0, 5.0)])
def test_the_band_of_decisions_is_that_of_clopper_and_pearson(kind, ends):
    rng = np.random.default_rng(9)
    n, low, size = 300, ends[0], ends[1] - ends[0]
    s = rng.integers(4, size=n) * 1.0
    decided = rng.random(n) < 0.1 + 0.2 * s
    w = rng.integers(1, 4, n) / 2 if kind == "weights" else np.ones(n)
    labels = rng.integers(100, size=n) if kind == "clusters" else np.arange(n)
    curve = gdp_curve(
        low + size * decided,
        s,
        sample_weight=w,
        groups=labels if kind == "clusters" else None,
        confidence=0.9,
    )
    tail = (1 - 0.9 ** (1 / 4)) / 2
    for at in range(4):
        own = s == at
        count = w[own].sum() ** 2 / (np.bincount(labels[own], w[own]) ** 2).sum()
        ones = count * (w[own] @ decided[own]) / w[own].sum()
        below = stats.beta.ppf(tail, ones, count - ones + 1)
        above = stats.beta.isf(tail, ones + 1, count - ones)
        assert curve.lower[at] == approx(low + size * below)
        assert curve.upper[at] == approx(low + size * above)
    assert (curve.at.tolist(), curve.confidence, curve.rows.dtype) == ([0, 1, 2, 3], 0.9, float)


@pytest.mark.parametrize("kind", ["rows", "weights"])
def test_rows_add_to_the_rank_gap_also_by_moving_its_deciles(kind):
    """A decile that moves takes the rows within a twentieth of the ranks with it."""
    rng = np.random.default_rng(10)
    n = 240
    s = rng.integers(6, size=n) * 1.0
    weights = rng.integers(1, 4, n) / 2 if kind == "weights" else None
    rows = check_rows(s + 3 * rng.standard_normal(n), s, None, weights)
    ranks = RankGap(rows)
    f, w = rows.scores[:, 0], rows.weights
    node = np.searchsorted(np.unique(rows.s), rows.s)
    rank = np.array([w[f <= value].sum() for value in f]) / n
    signs = ranks.columns.fine_signs
    expected = np.zeros(n)
    for k in range(1, 10):
        cut = min(value for value in f if w[f <= value].sum() >= k * n / 10 - 1e-9)
        column = np.searchsorted(ranks.thresholds, cut)
        slope = signs.slope[column, node]
        near = w * (np.abs(rank - rank[f == cut]) <= 0.05)
        above = (f > cut) - w @ (f > cut) / n
        expected += ((slope - near @ slope / near.sum()) * above - signs.gap[column]) / 9
    assert len(ranks.thresholds) == 9
    assert ranks.terms(signs) == approx(w * expected / n)


@pytest.mark.parametrize("kind", ["rows", "clusters"])
def test_draws_of_the_rank_gap_are_the_mean_of_those_of_its_decisions(kind):
    rng = np.random.default_rng(11)
    n = 120
    labels = rng.integers(40, size=n) if kind == "clusters" else None
    ranks = RankGap(
        check_rows(np.floor(6 * rng.random(n)), rng.integers(5, size=n), None, None, labels)
    )
    options = GapOptions(0.9, 30, 4)
    if kind == "clusters":
        each = ranks.columns.null(options)
    else:
        freedom = ranks.columns.means.freedom[0]
        factor = np.sqrt(freedom / np.random.default_rng((4, 1, 1)).chisquare(freedom, 30))
        drawn = ranks.columns.means.means_from_sums(ranks._joint_noise(options))
        each = ranks.columns.noise_statistics(*drawn) * factor
    counts = [round(9 * share) for share in ranks.shares]
    assert sum(counts) == 9
    assert len(counts) < 9
    assert ranks.null(options) == approx(sum(np.multiply(counts, np.transpose(each)).T) / 9)


def test_results_print_their_numbers():
    result = ParityResult(0.12345, (0.01, 0.2), 0.03, 0.02, 0.0123, (0.12345,), 1234, 0.05, 0.9, 7)
    assert repr(result) == (
        "ParityResult(value=0.1235, interval=(0.01, 0.2), pvalue=0.0123, n=1234, resolution=0.05)"
    )
    text = [*ElementTree.fromstring(result._repr_html_().replace("<br>", "<br/>")).itertext()]
    assert "gap 0.123 (0.0100 to 0.200), p = 0.012" in text
    assert "90 % confidence, 1,234 rows, over the nearest 5 % of people" in text
    curve = gdp_curve([0.0, 0.1, 0.2, 0.8, 0.9, 1.0] * 10, [1.0, 1.0, 1.0, 9.0, 9.0, 9.0] * 10)
    assert repr(curve) == "ParityCurve(bins=2, overall=0.5, n=60, confidence=0.95)"
    text = [*ElementTree.fromstring(curve._repr_html_().replace("<br>", "<br/>")).itertext()]
    assert "mean score along s, 95 % band, 60 rows" in text
