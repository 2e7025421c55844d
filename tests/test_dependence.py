"""EIPM, bins, distances, kernel HGR and mutual information: definitions, population values,
identities and limits.
"""

import math
from itertools import pairwise

import numpy as np
import pytest
import torch
from numpy.polynomial.hermite_e import hermegauss
from pytest import approx

from dependence_samples import gaussian_pair, ksg_by_definition, waves, within
from frhsic import dependence
from frhsic.dependence import (
    binned_mmd,
    conditional,
    distance_correlation,
    eipm,
    kernel_hgr,
    mutual_information,
)
from frhsic.dependence.distance import distance_products, distance_rows
from frhsic.kernels import Gaussian, Laplacian, Linear

ONE = Gaussian(1.0)
KERNELS = [Gaussian(0.8), Laplacian(1.5), Linear(), Linear() + Gaussian(0.5)]
DISTANCES = [dependence.distance_covariance, distance_correlation]
S = torch.tensor([0.3, 0.1, 2.0, 1.0, 1.5, 4.0, 1.0, 3.2], dtype=torch.float64)
EDGES = [1.0, 2.0, 3.9]  # one value of S on an edge, one bin of a single row


# --- definitions
# -----------------------------------------------------------------------------------------------


def eipm_by_definition(z, s, kernel_z, bandwidth):
    """Sums written out, one anchor, one pair at a time."""
    n = len(z)
    k = kernel_z(z, z).tolist()
    total = 0.0
    for i in range(n):
        w = [
            0.0 if j == i else math.exp(-float(((s[i] - s[j]) ** 2).sum()) / (2 * bandwidth**2))
            for j in range(n)
        ]
        w = [x / sum(w) for x in w]
        own = sum(w[a] * w[b] * k[a][b] for a in range(n) for b in range(n))
        cross = sum(w[a] * k[a][b] / n for a in range(n) for b in range(n))
        mean = sum(k[a][b] for a in range(n) for b in range(n)) / n**2
        total += math.sqrt(max(own - 2 * cross + mean, 0.0)) / n
    return total


def bins_by_definition(s, edges):
    """Row numbers of each bin, one comparison at a time, without those of fewer than two rows."""
    bounds = [-np.inf, *edges, np.inf]
    bins = [[i for i, x in enumerate(s) if low <= x < high] for low, high in pairwise(bounds)]
    return [rows for rows in bins if len(rows) >= 2]


def binned_by_definition(z, _, kernel):
    k, bins = kernel(z, z), bins_by_definition(S.tolist(), EDGES)

    def mean(a, b):
        return sum(k[i, j].item() for i in a for j in b) / (len(a) * len(b))

    pairs = [(a, b) for x, a in enumerate(bins) for b in bins[x + 1 :]]
    return sum(mean(a, a) - 2 * mean(a, b) + mean(b, b) for a, b in pairs) / len(pairs)


def v_squared(z, s):
    """dCov² as the three sums of Székely, Rizzo and Bakirov (2007), equations 2.15 to 2.18."""
    a, b = ([[math.dist(one, two) for two in x.tolist()] for one in x.tolist()] for x in (z, s))
    n, rows = len(z), range(len(z))
    first = sum(a[i][j] * b[i][j] for i in rows for j in rows) / n**2
    second = (
        sum(a[i][j] for i in rows for j in rows)
        / n**2
        * sum(b[i][j] for i in rows for j in rows)
        / n**2
    )
    third = sum(a[i][j] * b[i][k] for i in rows for j in rows for k in rows) / n**3
    return first + second - 2 * third


def hgr_by_definition(z, s, kernel_z, kernel_s, ridge_z, ridge_s, tolerance):
    """The largest singular value of whitened features, with features from the eigenvectors of the
    Gram matrices.
    """

    def whitened(x, kernel, ridge):
        values, vectors = torch.linalg.eigh(kernel(x, x))
        features = vectors * values.clamp_min(0).sqrt()
        features = features - features.mean(0)
        covariance = features.T @ features / len(x)
        own, basis = torch.linalg.eigh(covariance + ridge * torch.eye(len(x), dtype=x.dtype))
        return features @ basis @ torch.diag(own**-0.5) @ basis.T

    cross = whitened(z, kernel_z, ridge_z).T @ whitened(s, kernel_s, ridge_s) / len(z)
    return torch.linalg.matrix_norm(cross, ord=2).item()


def information_by_definition(z, s, n_neighbors):
    scaled = (((x - x.mean(0)) / x.std(0)).tolist() for x in (z.numpy(), s.numpy()))
    return ksg_by_definition(
        *scaled, n_neighbors, lambda d, radius: d < radius
    )  # counts are strict


RIDGES = {"ridge_z": 0.05, "ridge_s": 0.002, "tolerance": 1e-9}


def binned(z, s, kernel):
    return binned_mmd(z, S.to(z.dtype), kernel, edges=EDGES)


DEFINITIONS = [
    (dependence.distance_covariance, lambda z, s: v_squared(z, s) ** 0.5, {}),
    (
        distance_correlation,
        lambda z, s: (v_squared(z, s) / (v_squared(z, z) * v_squared(s, s)) ** 0.5) ** 0.5,
        {},
    ),
    *((eipm, eipm_by_definition, {"kernel_z": k, "bandwidth": 0.7}) for k in KERNELS),
    *((binned, binned_by_definition, {"kernel": k}) for k in KERNELS[:3]),
    *((mutual_information, information_by_definition, {"n_neighbors": k}) for k in (1, 3)),
    *(
        (kernel_hgr, hgr_by_definition, {"kernel_z": k, "kernel_s": l, **RIDGES})
        for k in KERNELS[:3]
        for l in KERNELS
    ),
]


@pytest.mark.parametrize("columns", [1, 3])
@pytest.mark.parametrize(("statistic", "definition", "options"), DEFINITIONS)
def test_a_statistic_is_its_definition(statistic, definition, options, columns, dtype):
    source = torch.Generator().manual_seed(columns)
    z, s = torch.randn(2, 8, columns, generator=source, dtype=dtype)
    value = statistic(z, s + z / 2, **options)
    assert value.dtype == dtype
    rel = 1e-6 if dtype == torch.float32 else 1e-8 if statistic is kernel_hgr else 1e-11
    assert value.item() == approx(definition(z.double(), (s + z / 2).double(), **options), rel=rel)


def test_the_core_of_eipm_counts_anchors_and_rows_as_it_is_told():
    g = torch.Generator().manual_seed(2)
    z, w = (
        torch.randn(6, 2, generator=g, dtype=torch.float64),
        torch.rand(4, 6, generator=g, dtype=torch.float64),
    )
    w, u, counts = w / w.sum(1, keepdim=True), w[0] / w[0].sum(), torch.tensor([0.0, 1.0, 0.0, 3.0])
    for marginal, floor in ((None, 0.0), (u, 0.05)):
        away = w - (1 / 6 if marginal is None else u)
        terms = [max(float(row @ z @ z.T @ row), floor) ** 0.5 for row in away]
        options = {"floor": floor, "marginal": marginal}
        assert conditional.eipm_from_gram(z @ z.T, w, **options).item() == approx(sum(terms) / 4)
        counted = conditional.eipm_from_gram(z @ z.T, w, counts=counts, **options).item()
        assert counted == approx((terms[1] + 3 * terms[3]) / 4)
    assert conditional.eipm_from_gram(z @ z.T, w, counts=0 * counts).item() == 0


def test_mean_differences_are_their_definition_with_bins_of_each_batch(dtype):
    z = torch.randn(2, 8, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    edges = torch.tensor([EDGES, [1.1, 1.2, 2.5]], dtype=torch.float64)
    members = torch.vmap(conditional.bin_membership)(torch.stack([S, S]), edges)
    values = conditional.mean_difference_from_bins(z.to(dtype), members.to(dtype))
    assert values.dtype == dtype
    for value, rows, cuts in zip(values, z, edges.tolist()):
        bins = bins_by_definition(S.tolist(), cuts)
        expected = sum(float((rows[b].mean(0) - rows.mean(0)).square().sum()) for b in bins)
        assert value.item() == approx(expected, rel=1e-5 if dtype == torch.float32 else 1e-12)


@pytest.mark.parametrize(
    "name", ["eipm", "binned_mmd", "distance_covariance", "distance_correlation"]
)
def test_gradients_in_z_are_those_of_finite_differences_across_tiles(name, monkeypatch):
    monkeypatch.setattr("frhsic.dependence.grams.CPU_TILE", 4)
    z, s = gaussian_pair(9, 0.5, 5, columns=2)
    options = {"kernel_z": ONE} if "distance" not in name else {}
    options |= {"bins": 3} if name == "binned_mmd" else {}
    without = getattr(dependence, name)(
        z, s, **options
    ).item()  # distances take another path without gradients
    assert torch.autograd.gradcheck(
        lambda z: getattr(dependence, name)(z, s, **options), (z.requires_grad_(),)
    )
    assert getattr(dependence, name)(z, s, **options).item() == approx(without, rel=1e-10)


# --- population values
# -----------------------------------------------------------------------------------------


def smoothed_population(rho, gamma, rows=math.inf):
    """E_S of the MMD between N(0, 1) and the law of Z weighted by a Gaussian of width gamma at S;
    unit bandwidth.

    The weights turn S into N(s/(1+γ²), γ²/(1+γ²)), hence Z into N(m, v) with m = ρs/(1+γ²) and
    v = 1 - ρ² + ρ²γ²/(1+γ²), and E k(X, Y) = (1 + var)^(-1/2) exp(-mean²/2(1+var)) for X - Y
    normal. With a finite number of rows the squared MMD of a sample is larger by (1 - E k) / n_eff
    in expectation, where n_eff = n E[w]²/E[w²], and the mean of its root is at most the root of
    that mean.
    """
    s = np.linspace(
        -9, 9, 20001
    )  # the root has a cusp, so a fine grid rather than a quadrature for polynomials
    weight = np.exp(-(s**2) / 2)
    weight = weight / weight.sum()
    m, v = rho * s / (1 + gamma**2), 1 - rho**2 + rho**2 * gamma**2 / (1 + gamma**2)
    squares = (1 + 2 * v) ** -0.5 - 2 * (2 + v) ** -0.5 * np.exp(-(m**2) / (2 * (2 + v))) + 3**-0.5
    if math.isfinite(rows):
        # E w = γ/√(1+γ²) e^{-s²/2(1+γ²)}, and the same with γ²/2 for E w²
        half = gamma**2 / 2
        first = gamma / math.sqrt(1 + gamma**2) * np.exp(-(s**2) / (2 * (1 + gamma**2)))
        second = math.sqrt(half / (1 + half)) * np.exp(-(s**2) / (2 * (1 + half)))
        share = np.minimum(first**2 / second, 1)
        squares = squares + 1 / np.maximum(rows * share, 1)
    return float(weight @ np.sqrt(np.maximum(squares, 0)))


def hgr_population(rho, ridge, nodes=40):
    """Quadrature of the regularised operators for jointly normal (Z, S) and Gaussian kernels at
    bandwidth one.
    """
    x, w = hermegauss(nodes)
    w = w / w.sum()
    # joint weights on the grid by Mehler's expansion of the normal density: p(x, y) / p(x)p(y) = Σ
    # ρ^j h_j(x) h_j(y)
    h = [np.ones(nodes), x.copy()]
    for j in range(2, nodes):
        h.append((x * h[-1] - np.sqrt(j - 1) * h[-2]) / np.sqrt(j))
    joint = w[:, None] * w * sum(rho**j * np.outer(h[j], h[j]) for j in range(nodes))
    values, vectors = np.linalg.eigh(np.exp(-((x[:, None] - x) ** 2) / 2))
    features = vectors * np.sqrt(values.clip(0))
    features = features - w @ features
    own, basis = np.linalg.eigh(features.T @ (w[:, None] * features) + ridge * np.eye(nodes))
    root_inverse = basis @ np.diag(own**-0.5) @ basis.T
    return np.linalg.norm(root_inverse @ features.T @ joint @ features @ root_inverse, 2)


def mean_over(seeds, statistic):
    return within([statistic(seed).item() for seed in range(seeds)])


@pytest.mark.parametrize("rho", [0.0, 0.5])
def test_eipm_at_a_fixed_bandwidth_tends_to_the_smoothed_value(rho):
    options = {"bandwidth": 1.0, "anchors": 150}
    mean, error = mean_over(
        12, lambda seed: eipm(*gaussian_pair(1500, rho, seed), ONE, random_state=seed, **options)
    )
    assert (
        smoothed_population(rho, 1.0) - 4 * error
        <= mean
        <= smoothed_population(rho, 1.0, 1500) + 4 * error
    )


def test_eipm_with_a_shrinking_bandwidth_tends_to_the_conditional_mmd():
    mean, error = mean_over(
        8, lambda seed: eipm(*gaussian_pair(3000, 0.5, seed), ONE, anchors=100, random_state=seed)
    )
    gamma = 3000**-0.2
    assert mean >= 0.1995 - gamma**2 / 4 - 4 * error
    assert mean <= smoothed_population(0.5, gamma, 3000) + 4 * error
    assert abs(mean - 0.1995) < 0.02


def test_bins_of_a_shifted_group_have_the_population_value():
    """Z ~ N(group, 1): MMD² = 2/√3 (1 - e^{-1/6}) at bandwidth 1, and V-statistics add (1 - E k)/n
    per bin.
    """
    group = torch.arange(400)[:, None] % 2
    mean, error = mean_over(
        30,
        lambda seed: binned_mmd(group + gaussian_pair(400, 0.0, seed)[0], group, ONE, edges=[0.5]),
    )
    assert mean == approx(
        2 / 3**0.5 * (1 - np.exp(-1 / 6)) + 2 * (1 - 3**-0.5) / 200, abs=4 * error
    )


def test_hgr_of_gaussians_has_the_regularised_population_value():
    truth, options = hgr_population(0.5, 0.02), {"ridge_z": 0.02, "ridge_s": 0.02}
    mean, error = mean_over(
        20, lambda seed: kernel_hgr(*gaussian_pair(1000, 0.5, seed), ONE, ONE, **options)
    )
    # the largest singular value of a noisy operator lies above the operator's, by less than 1 / (2
    # n η) here
    assert truth - 4 * error <= mean <= truth + 4 * error + 1 / (2 * 1000 * 0.02)


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.9])
def test_mutual_information_of_gaussians_has_its_closed_form(rho):
    mean, error = mean_over(30, lambda seed: mutual_information(*gaussian_pair(1000, rho, seed)))
    # the bias of the estimator at k = 5 is known to be below 0.01 nat here (Kraskov et al. 2004,
    # Figure 4)
    assert mean == approx(-math.log(1 - rho**2) / 2, abs=4 * error + 0.005)


def test_mutual_information_has_no_bias_from_ties_under_independence():
    rng = np.random.default_rng(0)  # whole years of age, and five columns
    mean, error = mean_over(
        12, lambda _: mutual_information(rng.standard_normal((600, 5)), rng.integers(17, 90, 600))
    )
    assert abs(mean) < 4 * error + 0.01


def test_distances_of_many_rows_of_one_column_take_no_pairs_and_meet_the_population_value():
    # Székely, Rizzo and Bakirov (2007), Theorem 7: dCov² of a bivariate normal, and dCov² of a
    # variable with itself. 2 * 10^5 rows are 4 * 10^10 pairs. The V-statistic is too high by E|z -
    # z'| E|s - s'| / n = 4 / (pi n) at most.
    rho = 0.5
    numerator = (
        rho * math.asin(rho)
        + math.sqrt(1 - rho**2)
        - rho * math.asin(rho / 2)
        - math.sqrt(4 - rho**2)
        + 1
    )
    denominator = 1 + math.pi / 3 - math.sqrt(3)
    parts = [gaussian_pair(20_000, rho, seed) for seed in range(10)]
    mean, error = mean_over(10, lambda seed: dependence.distance_covariance(*parts[seed]) ** 2)
    assert mean == approx(4 * numerator / math.pi, abs=4 * error + 1e-4)
    ratio, ratio_error = mean_over(10, lambda seed: distance_correlation(*parts[seed]) ** 2)
    assert ratio == approx(numerator / denominator, abs=4 * ratio_error + 1e-4)
    z, s = (torch.cat(x) for x in zip(*parts))
    assert dependence.distance_covariance(z, s).item() ** 2 == approx(mean, abs=4 * error)


def test_values_of_other_packages():
    """Constants of dcor 0.7, and of mutual_info_regression(n_neighbors=5, random_state=0) in
    scikit-learn 1.9.1.
    """
    z, s = waves(40)
    assert [f(z, s).item() for f in DISTANCES] == approx(
        [0.11790753828946414, 0.22724746286159672], rel=1e-10
    )
    assert [f(z[:, 0], s).item() for f in DISTANCES] == approx(
        [0.15473102193868007, 0.3873004379107914], rel=1e-10
    )
    i = np.arange(200.0)
    assert mutual_information(np.sin(i), np.sin(i) ** 2 * 2 + np.cos(3 * i)).item() == approx(
        0.59746483, abs=1e-8
    )


# --- identities and limits
# -------------------------------------------------------------------------------------


def test_weights_of_eipm_leave_the_anchor_out_and_sum_to_one_even_far_from_all(dtype):
    s = torch.tensor([0.0, 0.1, 0.2, 1e4], dtype=dtype)
    w = conditional.leave_one_out_weights(s, 0.05)
    assert torch.equal(w.diagonal(), torch.zeros(4, dtype=dtype))
    assert w.sum(1).tolist() == approx([1.0] * 4, rel=1e-6)
    assert w[3].tolist() == approx([0, 0, 1, 0])  # the nearest


def test_the_bandwidth_of_eipm_shrinks_as_scott_says():
    s = torch.tensor([0.0, 2.0] * 16)
    assert conditional.smoothing_bandwidth(s).tolist() == approx([32**-0.2])
    both = conditional.smoothing_bandwidth(torch.stack([s, 3 * s], 1))
    assert both.tolist() == approx([32 ** (-1 / 6), 3 * 32 ** (-1 / 6)])


def test_anchors_are_drawn_by_the_random_state_and_all_of_them_are_all():
    z, s = gaussian_pair(80, 0.5, 7)
    some = [eipm(z, s, anchors=10, random_state=seed).item() for seed in (1, 1, 2)]
    assert some[0] == some[1] != some[2]
    assert eipm(z, s, anchors=80, random_state=0).item() == approx(eipm(z, s).item(), rel=1e-12)


def test_an_offset_does_not_matter_to_bins(dtype):
    z, s = (x.to(dtype) for x in gaussian_pair(100, 0.5, 2, columns=2))
    rel = 2e-3 if dtype == torch.float32 else 1e-9  # 1e3 + z keeps 1e-4 of z in float32
    assert binned_mmd(z + 1e3, s, ONE).item() == approx(binned_mmd(z, s, ONE).item(), rel=rel)


def test_edges_are_those_of_numpy(dtype):
    s = torch.randn(101, generator=torch.Generator().manual_seed(0), dtype=dtype)
    rel, deciles = (
        1e-5 if dtype == torch.float32 else 1e-12,
        np.quantile(s.double().numpy(), np.arange(1, 10) / 10),
    )
    assert conditional.quantile_edges(s).tolist() == approx(deciles.tolist(), rel=rel)
    widths = np.linspace(float(s.min()), float(s.max()), 11)[1:-1]
    assert conditional.equal_width_edges(s).tolist() == approx(widths.tolist(), rel=rel)
    assert (
        conditional.quantile_edges(s, 4).dtype == conditional.equal_width_edges(s, 4).dtype == dtype
    )


def test_a_value_on_an_edge_belongs_above_it_in_single_precision_too():
    s = torch.tensor([0.1, 0.2, 0.7, 0.7])  # 0.7 is rounded down
    assert binned_mmd(torch.tensor([0.0, 0.0, 2.0, 2.0]), s, Linear(), edges=[0.7]).item() == 4
    assert conditional.bin_membership(s, torch.tensor([0.15, 0.7])).shape == (4, 3)
    sums = torch.tensor([[[8.0, 2.0], [2.0, 4.0]], [[1.0, 0.0], [0.0, 9.0]]])
    alone = [
        conditional.pairwise_mmd_from_bins(each, torch.tensor([2.0, 2.0])).item() for each in sums
    ]
    assert (
        conditional.pairwise_mmd_from_bins(sums, torch.full((2, 2), 2.0)).tolist()
        == alone
        == [2.0, 2.5]
    )


def test_bins_that_are_empty_or_too_small_count_as_nothing():
    z, _ = gaussian_pair(60, 0.0, 3)
    s = torch.tensor([0.0] * 50 + [1.0] * 10)
    assert binned_mmd(z, s, ONE, bins=10).item() == approx(
        binned_mmd(z, s, ONE, edges=[0.5]).item(), rel=1e-12
    )
    z, m = (
        z[:3],
        conditional.bin_membership(
            torch.tensor([0.0, 1.0, 2.0]), torch.tensor([0.5, 1.5])
        ).double(),
    )
    assert conditional.mean_difference_from_bins(z, m).item() == 0
    assert conditional.pairwise_mmd_from_bins(m.T @ z @ z.T @ m, m.sum(0)).item() == 0


@pytest.mark.parametrize("n", [2, 5, 100])
def test_the_distance_correlation_of_a_similarity_is_one(n, dtype):
    z = gaussian_pair(n, 0.0, 2, columns=2)[0].to(dtype)
    turned = 1e3 - 5 * z @ torch.tensor([[0.6, -0.8], [0.8, 0.6]], dtype=dtype)
    # 1e3 + z keeps four digits of z in float32
    assert distance_correlation(z, turned).item() == approx(
        1, rel=1e-4 if dtype == torch.float32 else 1e-12
    )


@pytest.mark.parametrize("n", [2, 3, 4, 15, 16, 17, 129])
def test_sums_of_distances_by_sorting_are_those_over_all_pairs(n):
    rng = np.random.default_rng(n)
    x, few, some = (
        rng.standard_normal(n),
        rng.integers(0, 2, n).astype(float),
        rng.integers(-4, 5, n).astype(float),
    )
    skewed = np.where(rng.random(n) < 0.4, 0.0, rng.lognormal(0, 2, n))
    for a, b in [
        (x, -x),
        (x, x),
        (x, few),
        (few, some),
        (skewed, some),
        (skewed, x),
        (x, 0 * x),
        (some, few),
    ]:
        of_a, of_b = (np.abs(v[:, None] - v) for v in (a, b))
        assert distance_rows(a, a.argsort()) == approx(of_a.sum(1), rel=1e-12, abs=1e-12)
        whole = (of_a * of_b).sum()
        assert distance_products(a, b, a.argsort(), b.argsort()) == approx(
            whole, rel=1e-12, abs=1e-11
        )


@pytest.mark.parametrize("scale", [1e-15, 1e-11, 1e15])
def test_the_distance_correlation_does_not_notice_the_unit_in_float32(scale):
    z, s = (x.float() for x in gaussian_pair(60, 0.5, 8, columns=2))
    got = distance_correlation((z * scale), (s * scale)).item()
    assert got == approx(distance_correlation(z, s).item(), abs=0, rel=1e-6)


@pytest.mark.parametrize("statistic", DISTANCES)
def test_ties_have_finite_gradients_and_a_constant_one_of_zero(statistic, dtype):
    z = torch.tensor([[0.0, 1.0]] * 4 + [[2.0, 3.0]] * 4, dtype=dtype, requires_grad=True)
    statistic(z, torch.arange(8, dtype=dtype) // 2).backward()
    assert bool(torch.isfinite(z.grad).all())
    z = torch.ones(6, 3, dtype=dtype, requires_grad=True)
    value = statistic(z, torch.arange(6, dtype=dtype))
    value.backward()
    assert value.item() == approx(0, abs=1e-12)
    assert torch.equal(z.grad, torch.zeros_like(z))


def test_hgr_of_linear_kernels_of_several_columns_is_the_first_canonical_correlation():
    z, s = gaussian_pair(300, 0.6, 2, columns=3)
    design = torch.cat([torch.ones(300, 1), z], 1)
    fitted = design @ torch.linalg.lstsq(design, s).solution
    value = kernel_hgr(z, s, Linear(), Linear(), ridge_z=1e-9, ridge_s=1e-9)
    assert value.item() ** 2 == approx((fitted.var() / s.var()).item(), abs=1e-6)


@pytest.mark.parametrize("kernel_s", KERNELS, ids=repr)
def test_conjugate_gradients_on_tiles_agree_with_the_factored_matrix(kernel_s, monkeypatch):
    z, s = gaussian_pair(300, 0.5, 5, columns=3)
    options = {"ridge_z": 0.01, "ridge_s": 0.005, "tolerance": 1e-7}
    exact = kernel_hgr(z, s, Gaussian(1.5), kernel_s, **options).item()
    monkeypatch.setattr("frhsic.dependence.hgr.DENSE_ROWS", 10)
    monkeypatch.setattr("frhsic.dependence.hgr.PRECONDITIONER_RANK", 20)
    assert kernel_hgr(z, s, Gaussian(1.5), kernel_s, **options).item() ** 2 == approx(
        exact**2, abs=1e-7
    )
    monkeypatch.setattr("frhsic.dependence.hgr.MAX_ITERATIONS", 2)
    with pytest.raises(ValueError, match="conjugate gradients"):
        kernel_hgr(z, s, Gaussian(1.5), kernel_s, **options)


def test_units_constant_columns_and_a_far_off_row_do_not_matter_to_mutual_information():
    z, s = gaussian_pair(500, 0.8, 3, columns=8)
    value, units = mutual_information(z, s).item(), torch.logspace(-3, 3, 8, dtype=z.dtype)
    assert mutual_information(torch.cat([z * units, torch.ones(500, 1)], 1), s).item() == approx(
        value, abs=1e-9
    )
    far = torch.cat([z, torch.full((1, 8), 1e11, dtype=z.dtype)])
    assert mutual_information(far, torch.cat([s, s[:1]])).item() == approx(value, abs=0.05)


def test_values_that_coincide_count_as_one_value():
    # s takes four values, and z is a copy of it, or reveals it: log 4, the entropy of s
    z = np.repeat(np.arange(4.0), 250)
    revealing = z + 0.05 * np.random.default_rng(0).standard_normal(1000)
    assert mutual_information(z, z).item() == approx(math.log(4), abs=0.05)
    assert mutual_information(revealing, z).item() == approx(math.log(4), abs=0.02)


def test_fifty_columns_in_mixed_units_are_reduced_to_the_components_that_carry_the_variance():
    rng = np.random.default_rng(1)
    core = rng.standard_normal((600, 2))
    z = core @ rng.standard_normal((2, 50)) + 0.01 * rng.standard_normal((600, 50))
    z, s = z * 10 ** rng.uniform(-3, 3, 50), core[:, 0] + 0.5 * rng.standard_normal(600)
    assert mutual_information(z, s).item() == approx(math.log(1 + 4) / 2, abs=0.12)
    assert mutual_information(z, s).item() == approx(
        mutual_information(z, s, components=2).item(), abs=1e-9
    )
