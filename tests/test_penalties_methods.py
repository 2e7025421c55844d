"""The other methods of the paper, each against its formula written as plain loops."""

from __future__ import annotations

import math

import pytest
import torch
from pytest import approx
from torch import Tensor

from frhsic.dependence import hsic_unbiased
from frhsic.kernels import HalfDistance
from frhsic.penalties import EIPM, GDP, BinnedMMD, DistanceCorrelation, DistanceCovariance

Rows = list[list[float]]


def batch(m: int = 8, d: int = 3, q: int = 1, dtype: torch.dtype = torch.float64, seed: int = 0) -> tuple[Tensor, ...]:
    source = torch.Generator().manual_seed(seed)
    s = torch.rand(m, q, generator=source, dtype=torch.float64)
    z = torch.randn(m, d, generator=source, dtype=torch.float64) + 2 * s[:, :1]
    f = torch.randn(m, 1, generator=source, dtype=torch.float64) + s[:, :1]
    return z.to(dtype), s.to(dtype), f.to(dtype)


def near(expected: float, dtype: torch.dtype) -> object:
    return approx(expected, rel=1e-10) if dtype == torch.float64 else approx(expected, rel=1e-4, abs=1e-7)


def lists(*tensors: Tensor) -> tuple[Rows, ...]:
    return tuple(t.double().tolist() for t in tensors)


def kernel(a: list[float], b: list[float], bandwidth: float) -> float:
    return math.exp(-(math.dist(a, b) ** 2) / (2 * bandwidth**2))


def mean(values: list[float]) -> float:
    return sum(values) / len(values)


# --- FREM ---------------------------------------------------------------------------------------------------------


def frem(z: Rows, s: Rows, anchors: int, gamma: float = 0.5) -> float:
    m = len(z)
    k = [[kernel(a, b, 1.0) for b in z] for a in z]
    marginal = sum(map(sum, k)) / m**2
    terms = []
    for i in range(anchors):
        w = [0.0 if j == i else kernel(s[i], s[j], gamma) for j in range(m)]
        w = [value / sum(w) for value in w]
        within = sum(w[a] * w[b] * k[a][b] for a in range(m) for b in range(m))
        across = sum(w[a] * k[a][b] / m for a in range(m) for b in range(m))
        terms.append(math.sqrt(max(within - 2 * across + marginal, 1e-10)))
    return mean(terms)


@pytest.mark.parametrize("q", [1, 2])
def test_eipm_is_frem_with_the_published_constants(q, dtype):
    z, s, _ = batch(q=q, dtype=dtype)
    assert EIPM()(z, s).item() == near(frem(*lists(z, s), anchors=8), dtype)


def test_eipm_of_a_collapsed_representation_is_the_root_of_the_floor(dtype):
    _, s, _ = batch(dtype=dtype)
    z = torch.ones(8, 2, dtype=dtype, requires_grad=True)
    value = EIPM(floor=1e-4)(z, s)
    assert value.item() == approx(1e-2, rel=1e-6)
    assert torch.isfinite(torch.autograd.grad(value, z)[0]).all()


# --- Reg-GDP ------------------------------------------------------------------------------------------------------


def reg_gdp(f: list[float], s: list[float], grid: list[float], bandwidth: float) -> float:
    gaps = []
    for at in grid:
        w = [math.exp(-((at - value) ** 2) / (2 * bandwidth**2)) for value in s]
        gaps.append(abs(sum(a * b for a, b in zip(w, f)) / sum(w) - mean(f)))
    return mean(gaps)


def equispaced(s: list[float], points: int) -> list[float]:
    return [min(s) + (max(s) - min(s)) * g / (points - 1) for g in range(points)]


def test_gdp_is_reg_gdp_with_the_published_constants(dtype):
    z, s, f = batch(dtype=dtype)
    scores, values = f.double().flatten().tolist(), s.double().flatten().tolist()
    expected = reg_gdp(scores, values, equispaced(values, 30), 0.2)
    assert GDP()(z, s, scores=f).item() == near(expected, dtype)


def test_gdp_with_population_weights_averages_over_the_rows(dtype):
    z, s, f = batch(dtype=dtype)
    scores, values = f.double().flatten().tolist(), s.double().flatten().tolist()
    expected = reg_gdp(scores, values, values, 0.3)
    assert GDP(weighting="population", bandwidth=0.3)(z, s, scores=f).item() == near(expected, dtype)


# --- bins ---------------------------------------------------------------------------------------------------------


def quantile(values: list[float], level: float) -> float:
    ordered = sorted(values)
    place = level * (len(ordered) - 1)
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (place - below) * (ordered[above] - ordered[below])


def binned(z: Rows, s: list[float], edges: list[float]) -> list[Rows]:
    bins = [[row for row, value in zip(z, s) if sum(value >= e for e in edges) == b] for b in range(len(edges) + 1)]
    return [rows for rows in bins if len(rows) >= 2]


def test_the_published_binned_mmd_is_a_sum_of_squared_mean_differences_over_ten_quantile_bins(dtype):
    train = torch.rand(200, generator=torch.Generator().manual_seed(5), dtype=torch.float64) ** 2
    z, s, _ = batch(m=25, dtype=dtype)
    penalty = BinnedMMD.published()
    penalty.prepare(train.to(dtype), torch.Generator())
    rows, values = z.double().tolist(), s.double().flatten().tolist()
    bins = binned(rows, values, [quantile(train.tolist(), b / 10) for b in range(1, 10)])
    assert 2 < len(bins) < 10  # some bins are left out
    overall = [mean(list(c)) for c in zip(*rows)]
    expected = sum(math.dist([mean(list(c)) for c in zip(*members)], overall) ** 2 for members in bins)
    assert penalty(z, s).item() == near(expected, dtype)


def test_the_pairwise_binned_mmd_is_a_mean_of_kernel_mmds_over_ten_bins_of_equal_width(dtype):
    z, s, _ = batch(m=25, dtype=dtype)
    penalty = BinnedMMD(scale_z=1.5)
    penalty.prepare(s, torch.Generator())
    rows, values = z.double().tolist(), s.double().flatten().tolist()
    width = (max(values) - min(values)) / 10
    bins = binned(rows, values, [min(values) + width * b for b in range(1, 10)])

    def product(a: Rows, b: Rows) -> float:
        return mean([kernel(x, y, 1.5) for x in a for y in b])

    pairs = [(a, b) for i, a in enumerate(bins) for b in bins[:i]]
    expected = mean([product(a, a) - 2 * product(a, b) + product(b, b) for a, b in pairs])
    assert penalty(z, s).item() == near(expected, dtype)


# --- distances ----------------------------------------------------------------------------------------------------


def centred(x: Rows) -> Rows:
    d = [[math.dist(a, b) for b in x] for a in x]
    rows = [mean(row) for row in d]
    return [[d[i][j] - rows[i] - rows[j] + mean(rows) for j in range(len(x))] for i in range(len(x))]


def dcov(x: Rows, y: Rows) -> float:
    a, b = centred(x), centred(y)
    return mean([a[i][j] * b[i][j] for i in range(len(x)) for j in range(len(x))])


@pytest.mark.parametrize("q", [1, 2])
def test_distance_covariance_is_the_mean_product_of_centred_distances(q, dtype):
    z, s, _ = batch(q=q, dtype=dtype)
    assert DistanceCovariance()(z, s).item() == near(dcov(*lists(z, s)), dtype)


def test_distance_correlation_is_the_ratio_of_covariances(dtype):
    z, s, _ = batch(dtype=dtype)
    rows = lists(z, s)
    expected = dcov(*rows) / math.sqrt(dcov(rows[0], rows[0]) * dcov(rows[1], rows[1]))
    assert DistanceCorrelation()(z, s).item() == near(expected, dtype)


def test_unbiased_distance_covariance_is_that_of_dependence_and_correlates_one_with_itself(dtype):
    z, s, _ = batch(dtype=dtype)
    expected = 4 * hsic_unbiased(z, s, HalfDistance(), HalfDistance()).item()
    assert DistanceCovariance(statistic="unbiased")(z, s).item() == near(expected, dtype)
    assert DistanceCorrelation(statistic="unbiased")(s, 3 * s).item() == near(1.0, dtype)


def test_distance_correlation_is_zero_with_a_finite_gradient_where_z_is_constant():
    _, s, _ = batch()
    z = torch.ones(8, 2, dtype=torch.float64, requires_grad=True)
    value = DistanceCorrelation()(z, s)
    assert value.item() == 0
    assert not torch.autograd.grad(value, z)[0].any()


# --- all ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "penalty",
    [
        EIPM(scale_z="normalized"),
        EIPM(condition="positive", min_rows=2, anchors=3),
        GDP(),
        GDP(condition="positive", min_rows=2, weighting="population"),
        BinnedMMD(bins=2),
        BinnedMMD("mean-difference", bins=2, condition="positive", min_rows=2),
        DistanceCovariance(),
        DistanceCovariance(statistic="unbiased"),
        DistanceCorrelation(condition="positive", min_rows=2),
        DistanceCorrelation(),
    ],
)
def test_gradcheck(penalty):
    z, s, f = batch(m=9)
    y = torch.tensor([1.0, 1, 0, 1, 0, 1, 1, 0, 1])
    penalty.prepare(s, torch.Generator())
    inputs = (z.requires_grad_(), f.requires_grad_())
    # scores enter with weight 0 where a penalty does not read them
    assert torch.autograd.gradcheck(lambda z, f: penalty(z, s, scores=f, y=y) + 0 * f.sum() + 0 * z.sum(), inputs)
