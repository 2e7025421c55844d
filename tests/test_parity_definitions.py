"""What the gaps of parity are made of, row by row: sums, local means, the statistic, its error and
what it misses.
"""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats
from scipy.special import ndtr

from frhsic.parity import correlation_ratio, gdp, gdp_curve
from frhsic.parity.curve import local_mean
from frhsic.parity.gap import GapOptions, RankGap, columns_of, tail_share
from frhsic.parity.local_means import (
    Cells,
    Rows,
    Smoother,
    group_levels,
    groups_for,
    node_levels,
    noise_like,
    rows_of,
)


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
    return rows_of(
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
    cells = Cells.of_rows(rows)
    return cells.sums_of(rows)[0].over(cells.nodes)


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
    fourth = by_unit(rest**4 / w) if kind != "clusters" else totals**4
    expected = [
        [part[units[:, 0] == g].sum() for g in range(nodes)]
        for part in (totals**2, totals**3, fourth)
    ]
    for mine, other in zip(sums.residuals(at), expected):
        assert mine == approx(other)
    for j in range(2):
        squares = by_unit(w * f**j) ** 2
        assert sums.own_squares(j) == approx(
            [squares[units[:, 0] == g].sum() for g in range(nodes)]
        )
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
    joined, union = sums.joined(starts), np.searchsorted(starts, node, side="right") - 1
    assert joined.counts == approx(np.bincount(union, w))
    pairs = np.unique(np.stack([union, labels]), axis=1).T
    squares = np.array([(w * f)[(union == g) & (labels == c)].sum() ** 2 for g, c in pairs])
    assert joined.own_squares(1) == approx(np.bincount(pairs[:, 0], squares))
    normals = rng.standard_normal((labels.max() + 1 if kind == "clusters" else nodes, 50_000))
    drawn, spread = noise_like(sums, at, normals), sums.residuals(at)[0]
    assert drawn.mean(axis=1) == pytest.approx(0, abs=5 * math.sqrt(spread.max() / 50_000) * 1.1)
    assert (drawn**2).mean(axis=1) == pytest.approx(sums.bessel * spread, rel=0.1)


class Reference:
    """The local means and the statistic of rows that are independent, each sum over rows."""

    def __init__(self, rows, resolution=None):
        self.f, self.node, self.w, _ = parts(rows)
        f, w = self.f, self.w
        self.n, nodes = w.sum(), self.node.max() + 1
        u = np.array([w[rows.s < x].sum() + w[rows.s == x].sum() / 2 for x in rows.s]) / self.n
        own = np.array(
            [w[self.node == g].sum() ** 2 / (w[self.node == g] ** 2).sum() for g in self.node]
        )
        effective = self.n**2 / (w**2).sum()
        widths = [0.5 * effective**-0.25 if resolution is None else resolution]
        least = 5 / (2 * math.sqrt(math.pi) * effective)
        while (
            resolution is None
            and (finer := max(widths[-1] / 8, least if len(widths) == 1 else 0)) >= least
        ):
            if finer * nodes <= 0.5:
                break
            widths.append(finer)
        kernels = [np.exp(-((np.subtract.outer(u, u) / width) ** 2) / 2) for width in widths]
        if resolution is None and (own >= 5).any():
            same = np.equal.outer(self.node, self.node)
            mixed = (own[:, None] < 5) & (own < 5)
            kernels.append(np.where(mixed, kernels[-1], 0) * ~same + same)
            smallest = min(w[self.node == g].sum() for g in set(self.node[own >= 5])) / self.n
            widths.append(min(widths[-1], smallest))
        means = [k @ (w * f) / (k @ w) for k in kernels]
        ratios = [k**2 @ w**2 / (k @ w) ** 2 for k in kernels]
        # w² f is taken as w f times the mean weight of the rows with this s
        each = np.array(
            [(w[self.node == g] ** 2).sum() / w[self.node == g].sum() for g in self.node]
        )
        residual = w**2 * f**2 - 2 * means[-1] * each * w * f + means[-1] ** 2 * w**2
        residual = (np.maximum(np.bincount(self.node, residual), 0) / np.bincount(self.node))[
            self.node
        ]
        noise_of_row = residual / np.maximum(1 - ratios[-1], 0.5)
        spread = kernels[0] @ noise_of_row / (kernels[0] @ w**2)
        mean, square, share = means[0], spread * ratios[0], 1 / (kernels[0] @ w)
        self.hidden = 0 * f
        for k in range(1, len(kernels)):
            step, finer = means[k] - mean, spread * ratios[k]
            noise = np.maximum(finer - square, 0.1 * finer)
            energy = step**2 / noise
            nearby, overall = (
                kernels[k - 1] @ (w * energy) / (kernels[k - 1] @ w),
                w @ energy / self.n,
            )
            independent = widths[k - 1] / widths[k], max(min(1 / (3.5 * widths[k]), nodes), 1)
            local, whole = (math.sqrt(2 / number) for number in independent)
            kept = 1 / np.maximum(
                np.maximum(nearby / (1 + 3 * local), overall / (1 + 2 * whole)), 1
            )
            excess = np.maximum(nearby - 1.5 * local, overall - 1.5 * whole) - 1
            self.hidden = self.hidden + kept**2 * np.maximum(excess, 0) * noise
            mean, square = kept * mean + (1 - kept) * means[k], square + (1 - kept) ** 2 * noise
            share = kept * share + (1 - kept) / (kernels[k] @ w)
        self.mean, self.error, self.share = mean, np.sqrt(square), share
        x = mean / (0.5 * self.error)
        self.soft = 2 * ndtr(x) - 1
        slope = 2 * stats.norm.pdf(x) / (0.5 * self.error)
        # what a row itself adds to the mean at its place and to the overall mean, to first order
        own_part = (w**2 * f**2 - mean * each * w * f) * share - w**2 * f**2 / self.n
        self.value = (self.soft @ (w * f) - slope @ own_part) / self.n


@pytest.mark.parametrize("resolution", [None, 0.2])
@pytest.mark.parametrize("kind", ["rows", "weights"])
@pytest.mark.parametrize("seed", range(3))
def test_local_means_and_the_statistic_are_those_of_rows(kind, seed, resolution):
    rows = design(kind, 40 + 60 * seed, seed)
    reference, column = Reference(rows, resolution), columns_of(rows, resolution)[0]
    for mine, other in (
        (column.mean, reference.mean),
        (column.error, reference.error),
        (column.hidden, reference.hidden),
        (column.soft, reference.soft),
        (column.own, reference.share),
    ):
        assert mine[reference.node] == approx(other)
    assert column.gap == approx(reference.value)


def reference_beside(reference, tail):
    """The bound for every shape, and what values of s with several rows show beyond the local
    means.
    """
    f, w, n = reference.f, reference.w, reference.n
    groups = [np.flatnonzero(reference.node == g) for g in range(reference.node.max() + 1)]
    several = [g for g in groups if len(g) > 1]
    share = {g[0]: w[g].sum() / sum(w[x].sum() for x in several) for g in several}
    mean = np.array([w[g] @ f[g] / w[g].sum() for g in groups])
    between = chance = missed = spread = 0.0
    for g in several:
        total, ones = w[g].sum(), (w[g] ** 2).sum()
        pairs = total**2 - ones
        m = w[g] @ f[g] / total
        between += (
            share[g[0]] * sum(w[i] * w[j] * f[i] * f[j] for i in g for j in g if i != j) / pairs
        )
        noise = max((w[g] ** 2 * f[g] ** 2).sum() - m**2 * ones, 0) / pairs  # of the mean
        chance += 2 * share[g[0]] ** 2 * noise**2
        expected = max(
            noise * (1 - 2 * reference.share[g[0]] * total) + reference.error[g[0]] ** 2, 0
        )
        missed += share[g[0]] * ((m - reference.mean[g[0]]) ** 2 - expected)
        spread += 2 * share[g[0]] ** 2 * expected**2
    variance, effective, z = w @ f**2 / n, n**2 / (w**2).sum(), stats.norm.isf(tail)
    unit, value = 4 * variance / effective, max(between, 0)
    terms = w * (2 * mean[reference.node] * f - mean[reference.node] ** 2 - between)
    linear = max(effective / (effective - 1) * (terms**2).sum() / n**2 - 2 * chance, 0)
    growth = z * (linear + unit**2) / (value + unit)
    high = value + z * growth / 2 + z * math.sqrt(growth * value / z + chance + growth**2 / 4)

    def unseen(variance):
        return w @ np.maximum(math.sqrt(max(variance, 0)) - np.abs(reference.mean), 0) / n

    few, repeated = effective < 250, effective >= 4 * len(groups)
    error = math.sqrt(spread)
    levels = unseen(missed + (0.5 if few else -1.5) * error) if repeated else 0
    return (
        math.sqrt(min(high, variance * n / (n - 1))),
        levels,
        unseen(missed + (3 if few else -3) * error),
    )


@pytest.mark.parametrize("kind", ["rows", "weights"])
@pytest.mark.parametrize(("n", "values"), [(60, 6), (60, 14), (300, 40), (300, 90)])
def test_intervals_are_made_of_influences_uncertain_signs_and_what_is_missed(kind, n, values):
    rng = np.random.default_rng([n, values])
    s = np.concatenate([np.tile(np.arange(values), 3), rng.integers(values, size=n - 3 * values)])
    f = np.exp(rng.standard_normal(n)) + (-1.0) ** s
    rows = rows_of(f, s, None, rng.integers(1, 4, n) / 2 if kind == "weights" else None)
    reference, column = Reference(rows), columns_of(rows)[0]
    assert column.beside(0.02) == approx(reference_beside(reference, 0.02))
    options = GapOptions(0.96, 99, 0)
    extra, lost = column.uncertain_signs(options)
    size, error = np.abs(reference.mean), np.sqrt(reference.error**2 + reference.hidden)
    place = np.abs(
        size / error + np.linspace(-2, 2, 4001)[:, None]
    )  # a sign is uncertain within two standard errors
    worst = (2 * place * ndtr(-place / math.sqrt(1.25))).max(axis=0) * error
    assert lost == pytest.approx(reference.w @ worst / reference.n, rel=1e-3)
    quantile = stats.t.isf(0.02, column.sums.effective - 1)

    def reach(terms, cubes):
        error = math.sqrt(column.sums.bessel * (terms**2).sum() / reference.n**2 + extra)
        shift = (cubes**3).sum() / reference.n**3 / error**3 * (2 * quantile**2 + 1) / 6
        shift = np.clip(shift, -1.5 * quantile, 1.5 * quantile)
        return error, error * (quantile + max(-shift, 0)), error * (quantile + max(shift, 0))

    for scaled in (False, True):
        weight, slope = reference.w, reference.soft - reference.w @ reference.soft / reference.n
        spread = weight @ reference.f**2 / reference.n if scaled else 1.0

        gap = reference.value
        error, below, above = reach(*[weight * (slope * reference.f - gap)] * 2)
        low = max(gap - below, 0)
        if scaled:
            linear = weight * (slope * reference.f - gap / 2)
            error, below, above = reach(linear - weight * gap / 2 * reference.f**2 / spread, linear)
            low = max(gap - below, 0) if low > 0 else 0
        bound, missed, doubtful = column.beside(0.02)
        high, unit = max(gap, 0) + above + lost + missed, math.sqrt(spread)
        ends = (column.standardized() if scaled else column).ends(options, 0.02)
        expected = [min(end / unit, 1 if scaled else math.inf) for end in (low, high, bound)]
        assert (ends.low, ends.high, ends.bound, ends.error) == approx((*expected, error / unit))
        assert ends.trusted == (doubtful / unit <= (ends.high - max(gap, 0) / unit) / 2)


@pytest.mark.parametrize("kind", ["rows", "weights", "clusters"])
def test_resamples_are_statistics_of_drawn_sums_and_squares(kind):
    """Squares lie about their line given the sums; where one row is alone they are the square of
    its sum.
    """
    rows = design(kind, 60, 2)
    (f, node, w, labels), column = parts(rows), columns_of(rows)[0]
    sums, smoother, options = column.sums, column.smoother, GapOptions(0.9, 40, 3)
    counts, weight = np.bincount(node, w), sums.own_squares(0)
    kernel = np.exp(-((np.subtract.outer(smoother.u, smoother.u) / smoother.resolution) ** 2) / 2)
    spread = kernel @ np.bincount(node, w * f**2) / (kernel @ counts)
    center = np.full(len(counts), (w / spread[node]) @ f / (w / spread[node]).sum())
    assert column.precise_mean() == approx(center)
    small = columns_of(Rows(0.01 * rows.scores, rows.s, w, rows.clusters))[0]
    assert small.precise_mean() == approx(0.01 * center)

    def resampled(curve, at, drawn, alone):
        second, third = sums.residuals(at)[:2]
        line = np.maximum(second + third / second * drawn.T, 0.1 * second).T
        squares = (curve**2 * weight)[:, None] + (2 * curve * weight / counts)[:, None] * drawn
        squares = squares + (1 - alone)[:, None] * line + alone[:, None] * drawn**2
        totals = (curve * counts)[:, None] + drawn
        middle = totals.sum(axis=0) / w.sum()
        squares = (
            squares - 2 * middle * (weight / counts)[:, None] * totals + middle**2 * weight[:, None]
        )
        totals = totals - middle * counts[:, None]
        return smoother.signed(smoother.curve(totals, squares), totals, squares)

    size = len(counts) if kind != "clusters" else labels.max() + 1
    normals = np.random.default_rng((3, 0)).standard_normal((size, 40))
    drawn, flat = noise_like(sums, center, normals), np.zeros(len(counts))
    squares, _, fourths = sums.residuals(
        center
    )  # the spread is estimated: tails are those of Student's t
    degrees = 3 * squares.sum() ** 2 / fourths.sum()
    chance = np.random.default_rng((3, 0, 1)).chisquare(degrees, 40)
    assert column.null(options) == approx(
        resampled(flat, center, drawn, flat) * np.sqrt(degrees / chance)
    )
    alone = weight / counts**2
    assert smoother.resampled(sums, center, center, drawn, alone) == approx(
        resampled(center, center, drawn, alone)
    )
    near = np.abs(column.mean) <= 2 * column.error
    drawn = noise_like(sums, column.mean, normals)
    values = resampled(np.where(near, 0, column.mean), column.mean, drawn, flat)
    signs = np.where(near, column.soft, np.sign(column.mean))
    linear = (signs - counts @ signs / w.sum()) @ drawn / w.sum()
    assert column.uncertain_signs(options)[0] == approx(max(values.var() - linear.var(), 0))


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
        (r**4).sum() if kind == "clusters" else w[g] ** 3 @ (f[g] - m) ** 4
        for g, r, m in zip(groups, rest, mean)
    ]
    count = weight**2 / [(np.bincount(labels[g], w[g]) ** 2).sum() for g in groups]
    squares, cubes = np.array([[(r**power).sum() for r in rest] for power in (2, 3)])
    variance = squares / weight**2 * count**2 / (count - 1)
    pooled = weight @ variance / weight.sum()
    skewness = cubes.sum() / squares.sum() ** 1.5 * math.sqrt(count.sum()) / np.sqrt(count)
    tails = sum(fourths) / squares.sum() ** 2 * count.sum() - 3
    assert tails > 0
    freedom = 2 * count / (tails + 2)
    prior = min(2 / max(variance.var() / pooled**2 - (2 / freedom).mean(), 1e-300), 1e3)
    borrowed = prior / (freedom + prior)
    error = np.sqrt(np.maximum(variance, variance + borrowed * (pooled - variance)) / count)
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
    rows = rows_of(f, s, None, w)
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


@pytest.mark.parametrize("kind", ["rows", "weights", "clusters"])
def test_the_interval_of_ranks_counts_that_deciles_move(kind, monkeypatch):
    rows = design(kind, 120, 5)
    rows = Rows(np.round(rows.scores, 1), rows.s, rows.weights, rows.clusters)
    ranks, options = RankGap(rows), GapOptions(0.9, 49, 0)
    score, w, (_, node, _, labels), n = (
        rows.scores[:, 0],
        rows.weights,
        parts(rows),
        rows.weights.sum(),
    )
    rank = np.array([w[score <= x].sum() for x in score]) / n  # of the last of tied rows
    cuts = [min(x for x in score if w[score <= x].sum() >= k / 10 * n - 1e-9) for k in range(1, 10)]
    influence, extra, beside = 0.0, 0.0, 0.0
    for q, column in zip(ranks.thresholds, ranks.columns):
        share, soft = cuts.count(q) / 9, column.soft[node]
        tied = w[score == q].sum() / n > 0.05
        near = w * (1 if tied else np.abs(ranks.rank - ranks.rank[score == q].mean()) <= 0.05)
        influence = influence + share * (
            (soft - near @ soft / near.sum()) * ((score > q) - w @ (score > q) / n) - column.gap
        )
        own, lost = column.uncertain_signs(options)
        extra += share * math.sqrt(own)
        beside = beside + share * np.array([lost, *column.beside(0.05 / len(ranks.columns))])
    assert np.maximum.reduceat(
        np.sort(ranks.rank), np.unique(np.sort(score), return_index=True)[1]
    ) == approx(np.unique(rank))
    terms, effective = np.bincount(labels, w * influence / n), ranks.rows.effective
    error = math.sqrt(effective / (effective - 1) * (terms**2).sum() + extra**2)
    quantile = stats.t.isf(0.05, effective - 1)
    shift = np.clip(
        (terms**3).sum() / error**3 * (2 * quantile**2 + 1) / 6, -1.5 * quantile, 1.5 * quantile
    )
    ends = ranks.ends(options, 0.05)
    lost, bound, missed, doubtful = beside
    value = max(ranks.value, 0)
    high = value + error * (quantile + max(shift, 0)) + lost + missed
    assert ranks.value == approx(
        np.mean([ranks.columns[list(ranks.thresholds).index(q)].gap for q in cuts])
    )
    assert (ends.error, ends.high, ends.bound) == approx((error, high, bound))
    assert ends.low == approx(max(ranks.value - error * (quantile + max(-shift, 0)), 0))
    assert ends.trusted == (doubtful <= (high - value) / 2)
    if kind != "clusters":  # sums over a value of s covary as the decisions of its rows do
        count = len(ranks.thresholds)
        unit = SimpleNamespace(standard_normal=lambda shape: np.broadcast_to(np.eye(count), shape))
        monkeypatch.setattr(np.random, "default_rng", lambda seed: unit)
        drawn = ranks._normal_noise(GapOptions(0.9, count, 0))
        away = w[:, None] * (
            (score[:, None] > ranks.thresholds) - w @ (score[:, None] > ranks.thresholds) / n
        )
        for g in range(node.max() + 1):
            expected = effective / (effective - 1) * away[node == g].T @ away[node == g]
            assert drawn[:, g] @ drawn[:, g].T == approx(expected)


def test_rows_of_a_cluster_at_several_values_count_as_dependent():
    """The variance of a local mean is that of sums over clusters; what they add to its own rows is
    taken out.
    """
    rows = design("clusters", 90, 4)
    (f, node, w, labels), sums = parts(rows), sums_of(rows)
    plain = Smoother(sums)
    clustered = plain.with_clusters(sums)
    last = plain.averages[-1] @ np.bincount(node, w * f)
    rest = np.zeros((node.max() + 1, labels.max() + 1))
    np.add.at(rest, (node, labels), w * (f - last[node]))
    for k, kernel in enumerate(plain.kernels):
        inflation = ((kernel @ rest) ** 2).sum(axis=1) / ((kernel**2) @ (rest**2).sum(axis=1))
        assert clustered.per_spread[k][:, 0] == approx(
            plain.per_spread[k][:, 0] * np.maximum(inflation, 1)
        )
        shares = kernel / plain.totals[k][:, None] - 1 / w.sum()
        others = [
            sum(shares[g, h] * rest[g] @ rest[h] for h in range(len(rest)) if h != g)
            for g in range(len(rest))
        ]
        assert clustered.cross[k][:, 0] == approx(others)


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
    assert group_levels(np.array([5, 2, 2, 1, 9, 1]), 6).tolist() == [0, 1, 4]
    assert group_levels(np.array([5, 2, 2, 1, 9, 3]), 6).tolist() == [0, 1, 4, 5]
    assert group_levels(np.ones(1000, int), 40).tolist() == list(range(0, 1000, 25))
    assert [groups_for(n) for n in (10, 499, 700, 3999, 10**6)] == [5, 5, 7, 39, 40]
    column = columns_of(design("rows"))[0]
    assert column.within_nodes() == 0  # nodes are values of s
    column.mean = 12 * np.arange(256.0) ** 2
    assert column.within_nodes() == approx(1.0)  # its second differences are 24


@pytest.mark.parametrize("positive", [3, 7, 8, 193])
def test_few_decisions_of_a_kind_allow_the_gap_of_their_largest_rate(positive):
    f = np.zeros(200)
    f[:positive] = 1
    result = gdp(f, np.arange(200) % 5, resamples=50)
    rare = min(positive, 200 - positive)
    rate = stats.beta.ppf(0.975, rare + 1, 200 - rare)
    most = 2 * rate * (1 - rate)
    assert result.bound <= most + 1e-12
    if rare < 8:
        assert (result.interval[0], result.bound) == approx((0, most))
        assert result.interval[1] >= most - 1e-12
    assert gdp(np.arange(200) % 2, np.arange(200) // 2 % 5, resamples=50).bound <= 0.5


def test_a_p_value_beyond_the_resamples_is_that_of_an_exponential_tail():
    null = np.sort(np.random.default_rng(0).exponential(size=200))
    excess = (null[-20:] - null[-21]).mean()
    for value in (null[-1] + 3, null[-1] + 8):
        assert tail_share(null, value) == approx(
            21 / 201 * (1 + (value - null[-21]) / (20 * excess)) ** -20
        )
    assert tail_share(null, null[-10]) == 11 / 201  # ten reach it
    assert tail_share(null[:49], 99.0) == 1 / 50  # too few for a tail


def test_the_interval_of_a_local_mean_of_decisions_is_that_of_two_rates():
    s = np.arange(500.0)
    f = (np.arange(500) % 7 < 2) * 1.0
    near = local_mean(f, s, 200.0, confidence=0.9)
    inside = (s >= near.start) & (s <= near.end)
    assert (near.start, near.end, near.rows) == (
        150,
        250,
        101,
    )  # a hundred rows, half of them on either side
    ends = []
    for rows in (f[inside], f):
        k, n = rows.sum(), len(rows)
        ends.append(
            (
                stats.beta.ppf(0.05, k, n - k + 1) - rows.mean(),
                stats.beta.isf(0.05, k + 1, n - k) - rows.mean(),
            )
        )
    value = f[inside].mean() - f.mean()
    low, high = (
        value - math.hypot(ends[0][0], ends[1][1]),
        value + math.hypot(ends[0][1], ends[1][0]),
    )
    assert (near.value, *near.interval, near.confidence, near.at) == approx(
        (value, low, high, 0.9, 200)
    )
