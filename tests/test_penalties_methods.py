"""The other methods of the paper, each against its formula written as plain loops."""

from __future__ import annotations

import math

import pytest
import torch
from pytest import approx

from dependence_samples import batch
from frhsic import dependence as d
from frhsic.kernels import Gaussian, HalfDistance
from frhsic.penalties import EIPM, GDP, BinnedMMD, DistanceCorrelation, DistanceCovariance

Rows = list[list[float]]


def near(expected: float, dtype: torch.dtype) -> object:
    return approx(expected, rel=1e-10) if dtype == torch.float64 else approx(expected, rel=1e-4, abs=1e-7)


def mean(values: list[float]) -> float:
    return sum(values) / len(values)


# --- statistics of dependence --------------------------------------------------------------------------------------


@pytest.mark.parametrize("q", [1, 2])
def test_statistics_of_a_batch_are_those_of_dependence(q, dtype):
    z, s, _ = batch(q=q, dtype=dtype)
    half = HalfDistance(), HalfDistance()
    for penalty, expected in (
        (EIPM(), d.eipm(z, s, Gaussian(1.0), bandwidth=0.5)),  # FREM with the published constants
        (DistanceCovariance(), d.distance_covariance(z, s) ** 2),
        (DistanceCorrelation(), d.distance_correlation(z, s) ** 2),
        (DistanceCovariance(statistic="unbiased"), 4 * d.hsic_unbiased(z, s, *half)),
    ):
        assert penalty(z, s).item() == near(expected.item(), dtype)
    assert DistanceCorrelation(statistic="unbiased")(s, 3 * s).item() == near(1.0, dtype)


def test_the_pairwise_binned_mmd_has_ten_bins_of_equal_width(dtype):
    z, s, _ = batch(m=25, dtype=dtype)
    penalty = BinnedMMD(scale_z=1.5)
    penalty.prepare(s, torch.Generator())
    edges = torch.linspace(s.min(), s.max(), 11, dtype=dtype)[1:-1]
    expected = d.binned_mmd(z, s, Gaussian(1.5), edges=edges)
    assert penalty(z, s).item() == near(expected.item(), dtype)


# --- Reg-GDP ------------------------------------------------------------------------------------------------------


def reg_gdp(f: list[float], s: list[float], grid: list[float], bandwidth: float) -> float:
    gaps = []
    for at in grid:
        w = [math.exp(-((at - value) ** 2) / (2 * bandwidth**2)) for value in s]
        gaps.append(abs(sum(a * b for a, b in zip(w, f)) / sum(w) - mean(f)))
    return mean(gaps)


def equispaced(s: list[float], points: int) -> list[float]:
    return [min(s) + (max(s) - min(s)) * g / (points - 1) for g in range(points)]


def test_gdp_is_reg_gdp_at_equispaced_points_or_at_the_rows(dtype):
    z, s, f = batch(dtype=dtype)
    scores, values = f.double().flatten().tolist(), s.double().flatten().tolist()
    published = reg_gdp(scores, values, equispaced(values, 30), 0.2)
    assert GDP()(z, s, scores=f).item() == near(published, dtype)
    population = reg_gdp(scores, values, values, 0.3)
    assert GDP(weighting="population", bandwidth=0.3)(z, s, scores=f).item() == near(population, dtype)


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
