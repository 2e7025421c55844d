"""Statistics of bins: definition, identities, population value, gradient, vmap and bad input."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import torch
from pytest import approx
from torch.func import vmap

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


def mean_difference_by_definition(z, s, edges):
    z = z.numpy()
    return sum(((z[rows].mean(0) - z.mean(0)) ** 2).sum() for rows in bins_by_definition(s, edges))


S = torch.tensor([0.3, 0.1, 2.0, 1.0, 1.5, 4.0, 1.0, 3.2], dtype=torch.float64)
EDGES = [1.0, 2.0, 3.9]  # one value on an edge, one bin of a single row


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_pairwise_mmd_is_its_definition(kernel, dtype):
    z = torch.randn(8, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    value = binned_mmd(z.to(dtype), S.to(dtype), kernel, edges=EDGES)
    assert value.dtype == dtype
    expected = pairwise_by_definition(z, S.tolist(), EDGES, kernel)
    assert value.item() == approx(expected, rel=1e-5 if dtype == torch.float32 else 1e-12)


def test_mean_difference_is_its_definition(dtype):
    z = torch.randn(8, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    value = mean_difference_from_bins(z.to(dtype), bin_membership(S.to(dtype), torch.tensor(EDGES, dtype=dtype)))
    expected = mean_difference_by_definition(z, S.tolist(), EDGES)
    assert value.item() == approx(expected, rel=1e-5 if dtype == torch.float32 else 1e-12)


def test_linear_kernel_gives_the_squared_distance_of_the_means():
    z, s = gaussian_pair(200, 0.5, 0, columns=4)
    member = bin_membership(s[:, 0], quantile_edges(s, 5)).bool()
    means = torch.stack([z[member[:, b]].mean(0) for b in range(5)])
    expected = torch.nn.functional.pdist(means).square().mean()
    assert binned_mmd(z, s, Linear(), bins=5).item() == approx(expected.item(), rel=1e-10)


def test_an_offset_and_the_row_order_do_not_matter(dtype):
    z, s = (x.to(dtype) for x in gaussian_pair(100, 0.5, 2, columns=2))
    order = torch.randperm(100, generator=torch.Generator().manual_seed(0))
    rel = 2e-3 if dtype == torch.float32 else 1e-9  # 1e3 + z keeps 1e-4 of z in float32
    expected = binned_mmd(z, s, Gaussian(1.0)).item()
    assert binned_mmd(z[order], s[order], Gaussian(1.0)).item() == approx(expected, rel=1e-5)
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
    levels = np.arange(1, 10) / 10
    assert quantile_edges(s).tolist() == approx(np.quantile(s.numpy().astype(float), levels).tolist(), rel=1e-5)
    assert equal_width_edges(s, 4).tolist() == approx(
        np.linspace(float(s.min()), float(s.max()), 5)[1:-1].tolist(), rel=1e-5
    )


def test_ties_leave_bins_empty_and_nothing_breaks():
    z, _ = gaussian_pair(60, 0.0, 3)
    s = torch.tensor([0.0] * 50 + [1.0] * 10)
    value = binned_mmd(z, s, Gaussian(1.0), bins=10)
    assert value.item() == approx(binned_mmd(z, s, Gaussian(1.0), edges=[0.5]).item(), rel=1e-12)


def test_gradcheck():
    z, s = gaussian_pair(12, 0.5, 5, columns=2)
    z.requires_grad_()
    assert torch.autograd.gradcheck(lambda z: binned_mmd(z, s, Gaussian(1.0), bins=3), (z,))
    member = bin_membership(s[:, 0], quantile_edges(s, 3))
    assert torch.autograd.gradcheck(lambda z: mean_difference_from_bins(z, member), (z,))


def test_the_batch_cores_run_under_vmap_with_edges_of_their_own():
    pairs = [gaussian_pair(30, 0.5, seed, columns=3) for seed in range(3)]
    z, s = (torch.stack(side) for side in zip(*pairs))
    s = s[..., 0]
    edges = torch.stack([quantile_edges(each, 4) for each in s])

    def core(z, s, edges):
        m = bin_membership(s, edges)
        return pairwise_mmd_from_bins(m.mT @ Gaussian(1.0)(z, z) @ m, m.sum(-2)), mean_difference_from_bins(z, m)

    loop = [torch.stack(side) for side in zip(*(core(*each) for each in zip(z, s, edges)))]
    torch.testing.assert_close(list(vmap(core)(z, s, edges)), loop)
    torch.testing.assert_close(loop[0][0], binned_mmd(z[0], s[0], Gaussian(1.0), bins=4))


def test_a_batch_whose_bins_are_too_small_counts_as_zero_in_the_core():
    z = torch.randn(3, 2)
    m = bin_membership(torch.tensor([0.0, 1.0, 2.0]), torch.tensor([0.5, 1.5]))
    assert mean_difference_from_bins(z, m).item() == 0
    assert pairwise_mmd_from_bins(m.T @ z @ z.T @ m, m.sum(0)).item() == 0
