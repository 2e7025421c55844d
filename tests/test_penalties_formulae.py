"""Each penalty against its formula written as plain loops, and adversaries against torch's own
network and Adam.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from pytest import approx
from torch import Tensor, nn

from dependence_samples import (
    batch,
    bins_by_definition,
    eipm_by_definition,
)
from frhsic import dependence as d
from frhsic.dependence.grams import centered_gram
from frhsic.kernels import (
    Gaussian,
    InverseMultiquadric,
    Laplacian,
    Linear,
    median_bandwidth,
)
from frhsic.penalties import (
    EIPM,
    GDP,
    HSIC,
    Adversary,
    BinnedAdversary,
    BinnedMMD,
    DistanceCovariance,
    Penalty,
)
from frhsic.penalties.bins import bin_membership, quantile_edges
from frhsic.penalties.closed_forms import gram_inner_product
from frhsic.penalties.hsic import median_distance
from frhsic.penalties.rivals import (
    eipm_from_gram,
    leave_one_out_weights,
    mean_difference_from_bins,
)


def tolerance(dtype: torch.dtype) -> dict[str, float]:
    return {"rel": 1e-10, "abs": 0.0} if dtype == torch.float64 else {"rel": 2e-5, "abs": 1e-9}


def by_definition(k: list[list[float]], l: list[list[float]]) -> float:
    """Mean over all i, j, a, b of K_ij (L_ij + L_ab - 2 L_ia), which is tr(KHLH) / n²."""
    n = len(k)
    rows = range(n)
    total = sum(
        k[i][j] * (l[i][j] + l[a][b] - 2 * l[i][a])
        for i in rows
        for j in rows
        for a in rows
        for b in rows
    )
    return total / n**4


def gaussians(x: Tensor, bandwidth: float) -> list[list[float]]:
    rows = x.double().tolist()
    return [
        [math.exp(-sum((a - b) ** 2 for a, b in zip(u, v)) / (2 * bandwidth**2)) for v in rows]
        for u in rows
    ]


def lower_median(x: Tensor) -> float:
    rows = x.double().tolist()
    d = sorted(math.dist(rows[i], rows[j]) for i in range(len(rows)) for j in range(i))
    return d[(len(d) - 1) // 2]


def prepared(penalty: Penalty, s: Tensor, z: Tensor | None = None) -> Penalty:
    penalty.prepare(s, torch.Generator().manual_seed(3))
    if z is not None:
        penalty.adapt(z, s, 0)
    return penalty


def test_published_is_the_definition_with_gaussians_at_lower_medians_plus_1e_5(dtype):
    z, s, _ = batch(dtype=dtype)
    penalty = prepared(HSIC.published(), s, z)
    k = gaussians(z, lower_median(z) + 1e-5)
    l = gaussians(s, lower_median(s) + 1e-5)
    assert penalty(z, s).item() == approx(by_definition(k, l), **tolerance(dtype))


def whitened_inner(z):
    """Inner products of standardised rows under the inverse of correlation matrix + 0.1, over 2
    d.
    """
    unit = (z.double() - z.double().mean(0)) / z.double().std(0, correction=0)
    correlation = unit.T @ unit / len(z)
    d = z.shape[1]
    return (
        unit
        @ torch.linalg.inv(correlation + 0.1 * torch.eye(d, dtype=torch.float64))
        @ unit.T
        / (2 * d)
    )


def test_default_is_head_plus_ten_times_linear_and_gaussian_on_whitened_z(dtype):
    z, s, f = batch(dtype=dtype)
    penalty = prepared(HSIC(), s)
    scores = f.double().flatten().tolist()
    inner = whitened_inner(z)
    away = inner.diagonal()[:, None] + inner.diagonal() - 2 * inner
    linear, gauss = inner.tolist(), torch.exp(-away / 2).tolist()
    k = [
        [scores[i] * scores[j] + 10 * linear[i][j] + 10 * gauss[i][j] for j in range(8)]
        for i in range(8)
    ]
    expected = by_definition(k, gaussians(s, median_bandwidth(s)))
    assert penalty(z, s, scores=f).item() == approx(expected, **tolerance(dtype))


@pytest.mark.parametrize("kernel", [Laplacian(1.0), InverseMultiquadric(1.0), Linear()])
def test_any_kernel_goes_with_any_scale(kernel, dtype):
    z, s, _ = batch(dtype=dtype)
    penalty = HSIC(kernel, kernel, scale_z=2.0, scale_s=0.5, head_weight=0.0)
    k = kernel(z.double() / 2, z.double() / 2).tolist()
    l = kernel(s.double() / 0.5, s.double() / 0.5).tolist()
    assert penalty(z, s).item() == approx(by_definition(k, l), **tolerance(dtype))


# --- several attributes
# -------------------------------------------------------------------------------------------


def test_joint_is_the_product_of_gaussians_at_each_columns_median(dtype):
    z, s, _ = batch(q=2, dtype=dtype)
    s = s * torch.tensor([1.0, 100.0], dtype=dtype)
    first, second = (gaussians(s[:, [c]], median_bandwidth(s[:, c])) for c in (0, 1))
    l = [[first[i][j] * second[i][j] for j in range(8)] for i in range(8)]
    penalty = prepared(HSIC(None, scale_z=1.0, head_weight=0.0), s)
    assert penalty(z, s).item() == approx(by_definition(gaussians(z, 1.0), l), **tolerance(dtype))


def test_sum_is_the_sum_over_attributes(dtype):
    z, s, _ = batch(q=2, dtype=dtype)
    apart = [prepared(HSIC(head_weight=0.0), s[:, c])(z, s[:, c]).item() for c in (0, 1)]
    together = prepared(HSIC(head_weight=0.0, attributes="sum"), s)(z, s).item()
    assert together == approx(sum(apart), **tolerance(dtype))


# --- units of length
# ----------------------------------------------------------------------------------------------


def test_median_distance_is_the_lower_median_with_ties_and_for_even_and_odd_counts(dtype):
    for m in (2, 3, 4, 5, 8):
        z, _, _ = batch(m=m, dtype=dtype, seed=m)
        assert median_distance(z).item() == approx(lower_median(z), **tolerance(dtype))
    tied = torch.tensor([[0.0], [0.0], [1.0], [1.0], [5.0]], dtype=dtype)
    assert median_distance(tied).item() == lower_median(tied) == 1.0
    assert median_distance(tied).item() == median_bandwidth(tied)


@pytest.mark.parametrize("condition", [None, "positive"])
def test_shrinking_or_growing_z_changes_nothing_where_z_is_whitened(condition, dtype):
    z, s, _ = batch(m=30, dtype=dtype)
    y = (torch.arange(30) % 3 > 0).to(dtype)
    penalty = prepared(HSIC(head_weight=0.0, condition=condition), s)
    at_one = penalty(z, s, y=y).item()
    assert at_one > 1e-3
    for factor in (1e-3, 0.1, 25.0, 1e4):
        assert penalty(factor * z + 3, s, y=y).item() == approx(
            at_one, rel=1e-9 if dtype == torch.float64 else 2e-3
        )


def test_the_published_scale_is_refreshed_on_every_batch_of_epochs_0_20_40_and_kept_between(dtype):
    penalty = prepared(HSIC.published(), torch.rand(50, dtype=dtype))
    assert torch.isnan(penalty.scale_z_now)
    kept = math.nan
    for epoch in range(45):
        assert penalty.adapts(epoch) == (epoch in (0, 20, 40))
        for number, m in enumerate((6, 6, 3)):  # the last batch is partial
            z, s, _ = batch(m=m, dtype=dtype, seed=10 * epoch + number)
            penalty.adapt(z, s, epoch)
            if epoch in (0, 20, 40):
                kept = lower_median(z) + 1e-5
            assert penalty.scale_z_now.item() == approx(kept, **tolerance(dtype))


def test_no_gradient_flows_through_a_refreshed_scale_and_one_row_leaves_it_alone():
    z, s, _ = batch()
    z.requires_grad_()
    penalty = prepared(HSIC(scale_z="published", head_weight=0.0), s, z)
    fixed = HSIC(
        scale_z=lower_median(z.detach()) + 1e-5, scale_s=median_bandwidth(s), head_weight=0.0
    )
    slopes = [torch.autograd.grad(p(z, s), z)[0] for p in (penalty, fixed)]
    torch.testing.assert_close(*slopes, rtol=1e-10, atol=1e-14)
    before = penalty.scale_z_now.clone()
    penalty.adapt(z[:1], s[:1], 0)
    assert penalty.scale_z_now == before


def test_the_published_scale_of_s_is_over_the_first_thousand_training_rows():
    s = torch.cat(
        [torch.rand(1000, generator=torch.Generator().manual_seed(0)), 100 * torch.rand(500)]
    )
    penalty = prepared(HSIC.published(), s)
    assert penalty.scale_s_now.item() == approx(median_bandwidth(s[:1000]) + 1e-5, rel=1e-6)


def test_where_the_median_is_zero_the_unit_is_that_of_the_distances_that_are_not():
    s = torch.tensor([0.0] * 6 + [1.0, 3.0])  # distances: fifteen 0, six 1, one 2, six 3
    assert prepared(HSIC(), s).scale_s_now.item() == approx(2.0)
    with pytest.raises(ValueError, match="s_train"):
        prepared(HSIC(), torch.zeros(5))
    s = torch.tensor([0.0, 0.0, 0.0, 0.0, 1.0])
    with pytest.raises(ValueError, match=r"needs at least 2 rows; got 1"):
        prepared(HSIC(), s[:1])
    assert prepared(HSIC.published(), s).scale_s_now.item() == approx(1e-5)


# --- gradients, limits, errors
# ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("linear", "gaussian"), [(0.0, 1.0), (3.0, 0.5), (2.0, 0.0)])
def test_the_fused_inner_product_is_that_of_the_gram_matrix_with_gradients_to_second_order(
    linear, gaussian, dtype
):
    z, s, _ = batch(m=9, dtype=dtype)
    g = centered_gram(Gaussian(0.3)(s, s))
    z = z.requires_grad_()
    gram = linear * z @ z.mT + gaussian * Gaussian(1.0)(z, z)
    fused, plain = gram_inner_product(z, g, linear, gaussian), (gram * g).sum()
    close = (
        {"rtol": 1e-9, "atol": 1e-12} if dtype == torch.float64 else {"rtol": 1e-4, "atol": 1e-5}
    )
    torch.testing.assert_close(fused, plain, **close)
    slopes = [torch.autograd.grad(value, z, create_graph=True)[0] for value in (fused, plain)]
    torch.testing.assert_close(*slopes, **close)
    torch.testing.assert_close(
        *[torch.autograd.grad(x.square().sum(), z)[0] for x in slopes], **close
    )


# --- statistics of dependence
# --------------------------------------------------------------------------------------


def near(expected: float, dtype: torch.dtype) -> object:
    return (
        approx(expected, rel=1e-10)
        if dtype == torch.float64
        else approx(expected, rel=1e-4, abs=1e-7)
    )


@pytest.mark.parametrize("q", [1, 2])
def test_distance_covariance_of_a_batch_is_that_of_dependence(q, dtype):
    z, s, _ = batch(q=q, dtype=dtype)
    expected = d.distance_covariance(z, s) ** 2
    assert DistanceCovariance()(z, s).item() == near(expected.item(), dtype)


# --- EIPM
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("q", [1, 2])
def test_eipm_is_its_definition_with_the_published_constants_of_frem(q, dtype):
    z, s, _ = batch(q=q, dtype=dtype)
    expected = eipm_by_definition(z.double(), s.double(), Gaussian(1.0), bandwidth=0.5)
    assert EIPM()(z, s).item() == near(expected, dtype)


def test_the_core_of_eipm_has_a_floor_under_each_root():
    g = torch.Generator().manual_seed(2)
    z = torch.randn(6, 2, generator=g, dtype=torch.float64)
    w = torch.rand(4, 6, generator=g, dtype=torch.float64)
    w = w / w.sum(1, keepdim=True)
    squares = [float(row @ z @ z.T @ row) for row in w - 1 / 6]
    floor = sorted(squares)[1]
    for least in (0.0, floor):
        expected = sum(max(square, least) ** 0.5 for square in squares) / 4
        assert eipm_from_gram(z @ z.T, w, floor=least).item() == approx(expected)


def test_weights_of_eipm_leave_the_anchor_out_and_sum_to_one_even_far_from_all(dtype):
    s = torch.tensor([0.0, 0.1, 0.2, 1e4], dtype=dtype)
    w = leave_one_out_weights(s, 0.05)
    assert torch.equal(w.diagonal(), torch.zeros(4, dtype=dtype))
    assert w.sum(1).tolist() == approx([1.0] * 4, rel=1e-6)
    assert w[3].tolist() == approx([0, 0, 1, 0])  # the nearest


# --- bins
# --------------------------------------------------------------------------------------------------


def test_edges_are_those_of_numpy(dtype):
    s = torch.randn(101, generator=torch.Generator().manual_seed(0), dtype=dtype)
    rel, deciles = (
        1e-5 if dtype == torch.float32 else 1e-12,
        np.quantile(s.double().numpy(), np.arange(1, 10) / 10),
    )
    assert quantile_edges(s).tolist() == approx(deciles.tolist(), rel=rel)
    assert quantile_edges(s, 4).dtype == dtype


def test_a_value_on_an_edge_belongs_above_it_in_single_precision_too():
    s = torch.tensor([0.1, 0.2, 0.7, 0.7])  # 0.7 is rounded down
    member = bin_membership(s, torch.tensor([0.7]))
    assert member.tolist() == [[1, 0], [1, 0], [0, 1], [0, 1]]
    assert bin_membership(s, torch.tensor([0.15, 0.7])).shape == (4, 3)


def test_mean_differences_are_their_definition_with_bins_of_each_batch(dtype):
    z = torch.randn(2, 8, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    s = torch.tensor([0.3, 0.1, 2.0, 1.0, 1.5, 4.0, 1.0, 3.2], dtype=torch.float64)
    # one value on an edge, one bin of a single row
    edges = torch.tensor([[1.0, 2.0, 3.9], [1.1, 1.2, 2.5]], dtype=torch.float64)
    members = torch.vmap(bin_membership)(torch.stack([s, s]), edges)
    values = mean_difference_from_bins(z.to(dtype), members.to(dtype))
    assert values.dtype == dtype
    for value, rows, cuts in zip(values, z, edges.tolist()):
        bins = bins_by_definition(s.tolist(), cuts)
        expected = sum(float((rows[b].mean(0) - rows.mean(0)).square().sum()) for b in bins)
        assert value.item() == approx(expected, rel=1e-5 if dtype == torch.float32 else 1e-12)


def test_the_published_binned_mmd_is_a_sum_of_squared_mean_differences_over_ten_quantile_bins(
    dtype,
):
    train = torch.rand(200, generator=torch.Generator().manual_seed(5), dtype=torch.float64) ** 2
    z, s, _ = batch(m=25, dtype=dtype)
    penalty = prepared(BinnedMMD(), train.to(dtype))
    rows, edges = z.double().numpy(), np.quantile(train, np.arange(1, 10) / 10)
    bin_of = (s.double().numpy() >= edges).sum(1)
    bins = [rows[bin_of == b] for b in range(10) if (bin_of == b).sum() >= 2]
    assert 2 < len(bins) < 10  # some bins are left out
    expected = sum(((members.mean(0) - rows.mean(0)) ** 2).sum() for members in bins)
    assert penalty(z, s).item() == near(expected, dtype)


# --- Reg-GDP
# --------------------------------------------------------------------------------------------------


def reg_gdp(f: Tensor, s: Tensor, grid: np.ndarray, bandwidth: float) -> float:
    scores, values = f.double().flatten().numpy(), s.double().flatten().numpy()
    weights = [np.exp(-((at - values) ** 2) / (2 * bandwidth**2)) for at in grid]
    return float(np.mean([abs(w @ scores / w.sum() - scores.mean()) for w in weights]))


def test_gdp_is_reg_gdp_at_equispaced_points(dtype):
    z, s, f = batch(dtype=dtype)
    points = np.linspace(s.min().item(), s.max().item(), 30)
    assert GDP()(z, s, scores=f).item() == near(reg_gdp(f, s, points, 0.2), dtype)


# --- adversaries
# --------------------------------------------------------------------------------------------------


def rows(**options: object) -> tuple[Tensor, ...]:
    return batch(**{"m": 16, "d": 5, **options})[:2]


def by_torch(outputs: int, dtype: torch.dtype) -> nn.Sequential:
    """The same network as torch builds it from the same stream of random numbers."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)  # as in `prepared`
        layers = (nn.Linear(5, 50, dtype=dtype), nn.SELU(), nn.Linear(50, outputs, dtype=dtype))
    return nn.Sequential(*layers)


def labels(s: Tensor, edges: list[float]) -> Tensor:
    return torch.tensor([sum(value >= e for e in edges) for value in s.flatten().tolist()])


@pytest.mark.parametrize("case", ["one attribute", "two attributes", "four bins"])
def test_adapt_is_adam_on_the_squared_error_or_on_the_cross_entropy_of_training_quantile_bins(
    case, dtype
):
    train = torch.rand(101, 2, generator=torch.Generator().manual_seed(9), dtype=torch.float64) ** 2
    edges = train[:, 0].sort().values[[25, 50, 75]].tolist()  # exact quantiles of 101 values
    q, outputs = (2, 2) if case == "two attributes" else (1, 4 if case == "four bins" else 1)
    penalty = prepared(
        BinnedAdversary(5) if case == "four bins" else Adversary(5), train[:, :q].to(dtype)
    )
    network = by_torch(outputs, dtype)

    def loss(z: Tensor, s: Tensor) -> Tensor:
        if case == "four bins":
            return nn.functional.cross_entropy(network(z), labels(s, edges))
        return nn.functional.mse_loss(network(z), s)

    optimiser = torch.optim.Adam(network.parameters(), lr=1e-3)
    for step in range(25):
        z, s = rows(q=q, dtype=dtype, seed=step)
        penalty.adapt(z, s, epoch=0)
        optimiser.zero_grad()
        loss(z, s).backward()
        optimiser.step()
    for ours, theirs in zip(
        ("weight_in", "bias_in", "weight_out", "bias_out"), network.parameters()
    ):
        torch.testing.assert_close(getattr(penalty, ours), theirs.detach(), rtol=0, atol=1e-6)
    assert penalty.steps.item() == 25
    assert penalty(z, s).item() == approx(-loss(z, s).item(), rel=1e-5)


def test_binned_adversary_averages_the_cross_entropy_over_attributes(dtype):
    z, s = rows(q=2, dtype=dtype)
    penalty = prepared(BinnedAdversary(5, bins=3), s)
    outputs = penalty.predict(z)
    terms = []
    for c in (0, 1):
        ordered = s[:, c].sort().values  # thirds of 16 values stand at places 5 and 10
        terms.append(
            nn.functional.cross_entropy(
                outputs[:, 3 * c : 3 * c + 3], labels(s[:, c], ordered[[5, 10]].tolist())
            )
        )
    assert penalty(z, s).item() == approx(-sum(terms).item() / 2, rel=1e-5)


@pytest.mark.parametrize("method", [Adversary, BinnedAdversary])
def test_the_penalty_has_gradient_in_z_and_none_in_the_adversary(method):
    z, s = rows()
    penalty = prepared(method(5), s)
    for state in penalty.buffers():
        state.requires_grad_()  # even where someone asks for it
    z.requires_grad_()
    penalty(z, s).backward()
    assert z.grad.any()
    assert all(state.grad is None for state in penalty.buffers())
    assert list(penalty.parameters()) == []
