"""Statistics of bins: definition, identities, population value, gradient, vmap and bad input."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import torch
from pytest import approx
from torch.func import vmap

from dependence_samples import KINDS, check_bad_pairs, gaussian_pair, within
from frhsic.dependence import binned, binned_mean_difference, binned_mmd
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
    value = binned_mean_difference(z.to(dtype), S.to(dtype), edges=EDGES)
    expected = mean_difference_by_definition(z, S.tolist(), EDGES)
    assert value.item() == approx(expected, rel=1e-5 if dtype == torch.float32 else 1e-12)


def test_linear_kernel_gives_the_squared_distance_of_the_means():
    z, s = gaussian_pair(200, 0.5, 0, columns=4)
    member = bin_membership(s[:, 0], quantile_edges(s, 5)).bool()
    means = torch.stack([z[member[:, b]].mean(0) for b in range(5)])
    expected = torch.nn.functional.pdist(means).square().mean()
    assert binned_mmd(z, s, Linear(), bins=5).item() == approx(expected.item(), rel=1e-10)


def test_with_two_equal_bins_the_two_statistics_differ_by_a_factor_of_two():
    z, s = gaussian_pair(100, 0.5, 1, columns=2)
    assert binned_mmd(z, s, Linear(), bins=2).item() == approx(
        2 * binned_mean_difference(z, s, bins=2).item(), rel=1e-10
    )


def test_an_offset_and_the_row_order_do_not_matter(dtype):
    z, s = (x.to(dtype) for x in gaussian_pair(100, 0.5, 2, columns=2))
    order = torch.randperm(100, generator=torch.Generator().manual_seed(0))
    rel = 2e-3 if dtype == torch.float32 else 1e-9  # 1e3 + z keeps 1e-4 of z in float32
    for statistic in (lambda z, s: binned_mmd(z, s, Gaussian(1.0)), binned_mean_difference):
        assert statistic(z[order], s[order]).item() == approx(statistic(z, s).item(), rel=1e-5)
        assert statistic(z + 1e3, s).item() == approx(statistic(z, s).item(), rel=rel)


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


def test_mean_difference_of_gaussians_tends_to_its_population_value():
    # halves of a normal S: E[Z | S > 0] = ρ √(2/π), so the sum over two bins is 2 ρ² 2/π, plus 1/n of noise per bin
    values = [binned_mean_difference(*gaussian_pair(2000, 0.5, seed), edges=[0.0]).item() for seed in range(30)]
    mean, error = within(values)
    within_bin = 1 - 0.25 * 2 / np.pi
    assert mean == approx(2 * 0.25 * 2 / np.pi + 2 * within_bin * (1 / 1000 - 1 / 2000), abs=4 * error)


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


def test_tiles_give_the_same_value_and_gradient(monkeypatch):
    z, s = gaussian_pair(90, 0.5, 4, columns=3)
    results = []
    for entries in (1 << 22, 90 * 7):
        monkeypatch.setattr(binned, "TILE_ENTRIES", entries)
        leaf = z.clone().requires_grad_()
        value = binned_mmd(leaf, s, Gaussian(1.0))
        value.backward()
        results.append((value.detach(), leaf.grad))
    torch.testing.assert_close(results[0], results[1], rtol=1e-12, atol=1e-15)


def test_gradcheck():
    z, s = gaussian_pair(12, 0.5, 5, columns=2)
    z.requires_grad_()
    assert torch.autograd.gradcheck(lambda z: binned_mmd(z, s, Gaussian(1.0), bins=3), (z,))
    assert torch.autograd.gradcheck(lambda z: binned_mean_difference(z, s, bins=3), (z,))


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


def test_the_batch_cores_take_leading_axes_and_each_batch_has_its_own_bins():
    z = torch.randn(2, 9, 3, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    edges = [torch.tensor([0.8, 1.8, 3.9]), torch.tensor([-3.0, 1.2, 9.0])]  # three bins of two rows or more, then two
    s = torch.tensor([0.3, 0.1, 2.0, 1.0, 1.5, 4.0, 1.0, 3.2, 4.4])
    m = torch.stack([bin_membership(s, each) for each in edges]).double()
    g, counts = m.mT @ Gaussian(1.0)(z, z) @ m, m.sum(-2)
    both, one_by_one = pairwise_mmd_from_bins(g, counts), [pairwise_mmd_from_bins(*each) for each in zip(g, counts)]
    torch.testing.assert_close(both, torch.stack(one_by_one))
    both, one_by_one = mean_difference_from_bins(z, m), [mean_difference_from_bins(*each) for each in zip(z, m)]
    torch.testing.assert_close(both, torch.stack(one_by_one))


@pytest.mark.parametrize("kernel", [*KERNELS, Linear() + Gaussian(1.0)], ids=repr)
def test_float32_keeps_its_digits_under_an_offset(kernel):
    z, s = (x.float() for x in gaussian_pair(200, 0.5, 8, columns=3))
    z = z + 1e3
    exact = binned_mmd(z.double(), s.double(), kernel)  # the same rounded inputs
    assert binned_mmd(z, s, kernel).item() == approx(exact.item(), abs=0, rel=1e-5)


def test_a_batch_whose_bins_are_too_small_counts_as_zero_in_the_core():
    z = torch.randn(3, 2)
    m = bin_membership(torch.tensor([0.0, 1.0, 2.0]), torch.tensor([0.5, 1.5]))
    assert mean_difference_from_bins(z, m).item() == 0
    assert pairwise_mmd_from_bins(m.T @ z @ z.T @ m, m.sum(0)).item() == 0


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_array_gives_the_same(kind):
    z, s = (x.numpy() for x in gaussian_pair(40, 0.5, 6, columns=2))
    for statistic in (binned_mmd, binned_mean_difference):
        assert statistic(KINDS[kind](z), KINDS[kind](s[:, 0])).item() == statistic(z, s).item()


def test_where_keeps_rows():
    z, s = gaussian_pair(90, 0.5, 7)
    y = torch.arange(90) % 3 == 0
    for statistic in (lambda z, s, **k: binned_mmd(z, s, Gaussian(1.0), bins=4, **k), binned_mean_difference):
        assert statistic(z, s, where=y).item() == approx(statistic(z[y], s[y]).item(), rel=1e-12)


@pytest.mark.parametrize("statistic", [binned_mmd, binned_mean_difference])
def test_bad_input_is_refused(statistic):
    check_bad_pairs(statistic)
    z, s = gaussian_pair(10, 0.5, 0)
    for arguments, error, message in [
        ({"bins": 1}, ValueError, "bins is 1"),
        ({"bins": 2.0}, TypeError, "bins is float"),
        ({"edges": [1.0, 0.0]}, ValueError, "rising order"),
        ({"edges": [99.0]}, ValueError, "fewer than two of 2 bins"),
    ]:
        with pytest.raises(error, match=message):
            statistic(z, s, **arguments)
    with pytest.raises(ValueError, match="bins are of one attribute"):
        statistic(z, torch.cat([s, s], 1))
