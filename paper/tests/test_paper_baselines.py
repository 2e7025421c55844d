"""The baselines of the paper's text against their definitions."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from pytest import approx

from frhsic import dependence as d
from frhsic.kernels import Gaussian, HalfDistance
from frhsic.penalties import EIPM, HSIC
from frhsic_paper.baselines import (
    PairwiseMMD,
    ScaledEIPM,
    UnbiasedCorrelation,
    pairwise_mmd_from_bins,
)
from frhsic_paper.frontiers import corrected_error
from frhsic_paper.protocol import CORRECTED, PUBLISHED
from frhsic_paper.results import Results
from frhsic_paper.studies.minority import EVEN, STUDY, EvenHSIC, even_weights


def batch(q=1, m=8):
    """Return z (m, 3) and s (m, q), which depend on each other."""
    draw = torch.Generator().manual_seed(q)
    s = torch.rand(m, q, generator=draw, dtype=torch.float64)
    return torch.randn(m, 3, generator=draw, dtype=torch.float64) + s[:, :1], s


@pytest.mark.parametrize("q", [1, 2])
def test_the_unbiased_correlation_is_a_ratio_of_hsic_under_half_distances(q):
    z, s = batch(q)
    half = HalfDistance()
    zs, zz, ss = (d.hsic_unbiased(a, b, half, half).item() for a, b in ((z, s), (z, z), (s, s)))
    value = UnbiasedCorrelation()(z, s).item()
    assert value == approx(zs / math.sqrt(zz * ss), rel=1e-9)
    assert UnbiasedCorrelation()(s, 3 * s).item() == approx(1.0)
    assert UnbiasedCorrelation()(z[:3], s[:3]).item() == 0


def test_the_pairwise_mmd_is_its_definition_on_ten_bins_of_equal_width():
    z, s = batch(m=25)
    penalty = PairwiseMMD()
    penalty.prepare(s, torch.Generator())
    unit = math.sqrt(np.mean([float((a - b).square().sum()) for a in z for b in z]))
    edges = np.linspace(float(s.min()), float(s.max()), 11)[1:-1]
    number = np.searchsorted(edges, s[:, 0].numpy(), side="right")
    bins = [z[number == b] for b in range(10) if (number == b).sum() >= 2]
    kernel = Gaussian(unit)
    distances = [
        float(kernel(a, a).mean() + kernel(b, b).mean() - 2 * kernel(a, b).mean())
        for i, a in enumerate(bins)
        for b in bins[:i]
    ]
    assert len(distances) > 10
    assert penalty(z, s).item() == approx(np.mean(distances), rel=1e-9)
    assert penalty(100 * z + 3, s).item() == approx(np.mean(distances), rel=1e-7)


def test_the_pairwise_mmd_of_many_batches_is_that_of_each():
    sums = torch.tensor([[[8.0, 2.0], [2.0, 4.0]], [[1.0, 0.0], [0.0, 9.0]]])
    alone = [pairwise_mmd_from_bins(each, torch.tensor([2.0, 2.0])).item() for each in sums]
    together = pairwise_mmd_from_bins(sums, torch.full((2, 2), 2.0))
    assert together.tolist() == alone == [2.0, 2.5]


@pytest.mark.parametrize("scale", [0.5, 1.0])
def test_frem_of_the_text_is_that_of_the_code_on_columns_scaled_to_their_range(scale):
    z, s = batch(m=40)
    values = z.numpy()
    low, high = values.min(axis=0), values.max(axis=0)
    scaled = torch.from_numpy((values - low) / (high - low))
    expected = EIPM(scale_z=scale)(scaled, s).item()
    assert ScaledEIPM(scale_z=scale)(z, s).item() == approx(expected, rel=1e-9)
    stretched = z * torch.tensor([5.0, 0.01, 300.0]) - 7
    assert ScaledEIPM(scale_z=scale)(stretched, s).item() == approx(expected, rel=1e-6)
    assert EIPM(scale_z=scale)(z, s).item() != approx(expected, rel=1e-2)


def test_frem_of_the_text_has_a_finite_gradient_where_a_column_has_collapsed():
    z, s = batch(m=12)
    z[:, 1] = 0.25
    z.requires_grad_()
    (gradient,) = torch.autograd.grad(ScaledEIPM()(z, s), z)
    assert gradient.isfinite().all()
    assert gradient[:, 0].abs().max() > 0


def test_the_uniform_reference_is_a_weighted_sum_of_centered_features():
    """Its value by sums over quadruples of rows, from the kernels and the weights alone."""
    z, s = batch(m=7)
    penalty = EvenHSIC()
    penalty.prepare(s, torch.Generator())
    penalty.adapt(z, s, 0)
    density = [float(torch.exp(-50 * (s[:, 0] - one) ** 2).mean()) for one in s[:, 0]]
    w = (1 / np.array(density)) / (1 / np.array(density)).sum()
    k, l = (
        torch.exp(-((a[:, None] - a[None]) ** 2).sum(-1) / (2 * float(unit) ** 2)).numpy()
        for a, unit in ((z, penalty.scale_z_now), (s, penalty.scale_s_now))
    )
    rows = range(7)
    value = sum(
        w[i] * w[j] * l[i, j] * (k[i, j] - k[i, b] - k[a, j] + k[a, b]) / 49
        for i in rows
        for j in rows
        for a in rows
        for b in rows
    )
    assert penalty(z, s).item() == approx(value, rel=1e-5)


def test_with_equal_weights_the_uniform_reference_is_the_papers():
    z, _ = batch(m=8)
    s = torch.arange(8, dtype=torch.float64)[:, None] * 100  # each value has one neighbor, itself
    z[:, :1] += s / 400
    own, paper = EvenHSIC(), HSIC.published()
    for penalty in (own, paper):
        penalty.prepare(s, torch.Generator())
        penalty.adapt(z, s, 0)
    assert own(z, s).item() == approx(paper(z, s).item(), rel=1e-6)


def test_weights_make_a_skewed_attribute_uniform():
    """The mean of a uniform law on [0, 1] is 1/2 and its variance 1/12."""
    s = torch.tensor((np.arange(2000) + 0.5) / 2000) ** 2
    w = even_weights(s, s, 0.02)
    mean = float(w @ s)
    assert float(s.mean()) == approx(1 / 3, abs=0.01)
    assert mean == approx(1 / 2, abs=0.02)
    assert float(w @ (s - mean) ** 2) == approx(1 / 12, abs=0.01)


def test_a_difference_inside_its_error_does_not_protect_rare_values():
    """COMPAS: the uniform reference gains in every split; Crime: in two splits of five."""
    records = [
        {"dataset": dataset, "method": method, "weight": weight, "repeat": repeat}
        | {"performance": performance, "gdp_probability_uniform": 0.1 if weight else 1.0}
        | {"task": "classification", "part": "models"}
        for dataset, gains in {"crime": (0.1, 0.1, -0.05, -0.05, 0.0), "compas": [0.1] * 5}.items()
        for repeat, gain in enumerate(gains)
        for method, weight, performance in (
            ("none", 0.0, 0.9),
            ("frhsic", 1.0, 0.6 + 0.01 * repeat),
            (EVEN, 1.0, 0.6 + 0.012 * repeat + gain),
        )
    ]
    (claim,) = STUDY.claims
    outcome = claim.rule(Results({("minority", "corrected"): records}), CORRECTED)
    assert outcome.label == "1 of 2"
    assert corrected_error(np.array([1.0, 2.0, 3.0]), PUBLISHED) == approx((1 / 3 + 1 / 4) ** 0.5)
