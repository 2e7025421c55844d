"""Statistics of bins: definition, identities, population value, gradient, vmap and bad input."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import torch
from pytest import approx

from dependence_samples import gaussian_pair, within
from frhsic.dependence import binned_mmd
from frhsic.dependence.binned import (
    bin_membership,
    equal_width_edges,
    mean_difference_from_bins,
    pairwise_mmd_from_bins,
    quantile_edges,
)
from frhsic.kernels import Gaussian, Laplacian, Linear

KERNELS = [Gaussian(0.8), Laplacian(1.5), Linear()]


def bins_by_definition(s, edges):
    """Row numbers of each bin, one comparison at a time, without those of fewer than two rows."""
    bounds = [-np.inf, *edges, np.inf]
    bins = [[i for i, x in enumerate(s) if low <= x < high] for low, high in pairwise(bounds)]
    return [rows for rows in bins if len(rows) >= 2]


def pairwise_by_definition(z, s, edges, kernel):
    groups = bins_by_definition(s, edges)

    def mean(a, b):
        return sum(float(kernel(z[i : i + 1], z[j : j + 1])) for i in a for j in b) / (len(a) * len(b))

    pairs = [(a, b) for x, a in enumerate(groups) for b in groups[x + 1 :]]
    return sum(mean(a, a) - 2 * mean(a, b) + mean(b, b) for a, b in pairs) / len(pairs)


S = torch.tensor([0.3, 0.1, 2.0, 1.0, 1.5, 4.0, 1.0, 3.2], dtype=torch.float64)
EDGES = [1.0, 2.0, 3.9]  # one value on an edge, one bin of a single row


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_pairwise_mmd_is_its_definition(kernel, dtype):
    z = torch.randn(8, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    value = binned_mmd(z.to(dtype), S.to(dtype), kernel, edges=EDGES)
    assert value.dtype == dtype
    expected = pairwise_by_definition(z, S.tolist(), EDGES, kernel)
    assert value.item() == approx(expected, rel=1e-5 if dtype == torch.float32 else 1e-12)


def test_an_offset_does_not_matter(dtype):
    z, s = (x.to(dtype) for x in gaussian_pair(100, 0.5, 2, columns=2))
    rel = 2e-3 if dtype == torch.float32 else 1e-9  # 1e3 + z keeps 1e-4 of z in float32
    expected = binned_mmd(z, s, Gaussian(1.0)).item()
    assert binned_mmd(z + 1e3, s, Gaussian(1.0)).item() == approx(expected, rel=rel)


def test_population_value_of_a_shifted_group_within_four_standard_errors():
    # Z ~ N(group, 1): MMD² = 2/√3 (1 - e^{-1/6}) at bandwidth 1, and V-statistics add (1 - E k)/n per bin
    truth = 2 / 3**0.5 * (1 - np.exp(-1 / 6))
    values = []
    for seed in range(30):
        g = torch.Generator().manual_seed(seed)
        group = torch.arange(400) % 2
        z = group[:, None] + torch.randn(400, 1, generator=g, dtype=torch.float64)
        values.append(binned_mmd(z, group, Gaussian(1.0), edges=[0.5]).item())
    mean, error = within(values)
    assert mean == approx(truth + 2 * (1 - 3**-0.5) / 200, abs=4 * error)


def test_edges_are_those_of_numpy(dtype):
    s = torch.randn(101, generator=torch.Generator().manual_seed(0), dtype=dtype)
    levels, rel = np.arange(1, 10) / 10, 1e-5 if dtype == torch.float32 else 1e-12
    assert quantile_edges(s).tolist() == approx(np.quantile(s.numpy().astype(float), levels).tolist(), rel=rel)
    assert equal_width_edges(s).tolist() == approx(
        np.linspace(float(s.min()), float(s.max()), 11)[1:-1].tolist(), rel=rel
    )
    assert quantile_edges(s, 4).dtype == equal_width_edges(s, 4).dtype == dtype


def test_a_value_on_an_edge_belongs_above_it_in_single_precision_too():
    s = torch.tensor([0.1, 0.2, 0.7, 0.7])  # 0.7 is rounded down
    assert binned_mmd(torch.tensor([0.0, 0.0, 2.0, 2.0]), s, Linear(), edges=[0.7]).item() == 4
    assert bin_membership(s, torch.tensor([0.15, 0.7])).shape == (4, 3)
    sums = torch.tensor([[[8.0, 2.0], [2.0, 4.0]], [[1.0, 0.0], [0.0, 9.0]]])
    alone = [pairwise_mmd_from_bins(each, torch.tensor([2.0, 2.0])).item() for each in sums]
    assert pairwise_mmd_from_bins(sums, torch.full((2, 2), 2.0)).tolist() == alone == [2.0, 2.5]


def test_mean_differences_are_their_definition_with_bins_of_each_batch(dtype):
    z = torch.randn(2, 8, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    edges = torch.tensor([EDGES, [1.1, 1.2, 2.5]], dtype=torch.float64)
    s = torch.stack([S, S])
    values = mean_difference_from_bins(z.to(dtype), torch.vmap(bin_membership)(s, edges).to(dtype))
    assert values.dtype == dtype
    for value, rows, cuts in zip(values, z, edges.tolist()):
        bins = bins_by_definition(S.tolist(), cuts)
        expected = sum(float((rows[b].mean(0) - rows.mean(0)).square().sum()) for b in bins)
        assert value.item() == approx(expected, rel=1e-5 if dtype == torch.float32 else 1e-12)


def test_ties_leave_bins_empty_and_nothing_breaks():
    z, _ = gaussian_pair(60, 0.0, 3)
    s = torch.tensor([0.0] * 50 + [1.0] * 10)
    value = binned_mmd(z, s, Gaussian(1.0), bins=10)
    assert value.item() == approx(binned_mmd(z, s, Gaussian(1.0), edges=[0.5]).item(), rel=1e-12)


def test_a_batch_whose_bins_are_too_small_counts_as_zero_in_the_core():
    z = torch.randn(3, 2)
    m = bin_membership(torch.tensor([0.0, 1.0, 2.0]), torch.tensor([0.5, 1.5]))
    assert mean_difference_from_bins(z, m).item() == 0
    assert pairwise_mmd_from_bins(m.T @ z @ z.T @ m, m.sum(0)).item() == 0
