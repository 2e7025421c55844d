"""Distances and mutual information: definitions, population values, identities and limits."""

import math

import numpy as np
import pytest
import torch
from pytest import approx

from dependence_samples import gaussian_pair, ksg_by_definition, mean_over, waves
from frhsic import dependence
from frhsic.dependence import distance_correlation, mutual_information
from frhsic.dependence.columns import (
    SortedColumn,
    column_scales,
    distance_product_rows,
    distance_products,
)
from frhsic.dependence.information import principal_components

DISTANCES = [dependence.distance_covariance, distance_correlation]


# --- definitions
# -----------------------------------------------------------------------------------------------


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


def information_by_definition(z, s, n_neighbors):
    scaled = (((x - x.mean(0)) / x.std(0)).tolist() for x in (z.numpy(), s.numpy()))
    return ksg_by_definition(
        *scaled, n_neighbors, lambda d, radius: d < radius
    )  # counts are strict


DEFINITIONS = [
    (dependence.distance_covariance, lambda z, s: v_squared(z, s) ** 0.5, {}),
    (
        distance_correlation,
        lambda z, s: (v_squared(z, s) / (v_squared(z, z) * v_squared(s, s)) ** 0.5) ** 0.5,
        {},
    ),
    *((mutual_information, information_by_definition, {"n_neighbors": k}) for k in (1, 3)),
]


@pytest.mark.parametrize("columns", [1, 3])
@pytest.mark.parametrize(("statistic", "definition", "options"), DEFINITIONS)
def test_a_statistic_is_its_definition(statistic, definition, options, columns, dtype):
    source = torch.Generator().manual_seed(columns)
    z, s = torch.randn(2, 8, columns, generator=source, dtype=dtype)
    value = statistic(z, s + z / 2, **options)
    if statistic is mutual_information:
        value = torch.tensor(value, dtype=dtype)
    assert value.dtype == dtype
    rel = 1e-6 if dtype == torch.float32 else 1e-11
    assert value.item() == approx(definition(z.double(), (s + z / 2).double(), **options), rel=rel)


@pytest.mark.parametrize("statistic", DISTANCES)
def test_gradients_in_z_are_those_of_finite_differences(statistic):
    z, s = gaussian_pair(9, 0.5, 5, columns=2)
    without = statistic(z, s).item()  # distances take another path without gradients
    assert torch.autograd.gradcheck(lambda z: statistic(z, s), (z.requires_grad_(),))
    assert statistic(z, s).item() == approx(without, rel=1e-10)


# --- population values
# -----------------------------------------------------------------------------------------


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
    assert [float(f(z, s)) for f in DISTANCES] == approx(
        [0.11790753828946414, 0.22724746286159672], rel=1e-10
    )
    assert [float(f(z[:, 0], s)) for f in DISTANCES] == approx(
        [0.15473102193868007, 0.3873004379107914], rel=1e-10
    )
    i = np.arange(200.0)
    assert mutual_information(np.sin(i), np.sin(i) ** 2 * 2 + np.cos(3 * i)) == approx(
        0.59746483, abs=1e-8
    )


# --- identities and limits
# -------------------------------------------------------------------------------------


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
        one, other = SortedColumn.from_values(a), SortedColumn.from_values(b)
        of_a, of_b = (np.abs(v[:, None] - v) for v in (a, b))
        weights = rng.random(n)
        assert one.distances_times(weights) == approx(of_a @ weights, rel=1e-12, abs=1e-12)
        assert distance_products(one, other) == approx((of_a * of_b).sum(1), rel=1e-12, abs=1e-11)


@pytest.mark.parametrize("n", [2, 3, 8, 33])
@pytest.mark.parametrize(
    "draw",
    [
        lambda n, rng: rng.standard_normal(n),
        lambda n, rng: rng.integers(0, 3, n).astype(float),
        lambda n, rng: np.append(rng.standard_normal(n - 1), 1e8),
        lambda n, rng: 1e6 + rng.random(n),
        lambda n, rng: np.ones(n),
    ],
    ids=["normal", "ties", "far off", "far from 0", "constant"],
)
def test_sums_over_a_centred_matrix_by_sorting_are_those_over_its_entries(draw, n):
    rng = np.random.default_rng(n)
    x, y = draw(n, rng), rng.standard_normal(n)
    centering = np.eye(n) - 1 / n
    k, l = (-centering @ np.abs(v[:, None] - v) @ centering / 2 for v in (x, y))
    d = k.diagonal()
    column = SortedColumn.from_values(x)
    # the sums over entries, which cancel, lose digits; by sorting, terms are positive
    size = np.abs(k).max()
    for got, wanted, degree in [
        (column.diagonal, d, 1),
        (column.squares, (k**2).sum(), 2),
        (column.square_rows, (k**2).sum(1), 2),
        (column.cubes.trace, np.trace(k @ k @ k), 3),
        (column.cubes.entries, (k**3).sum(), 3),
        (column.cubes.diagonal, (d**3).sum(), 3),
        (column.cubes.diagonal_squares, d @ (k**2).sum(1), 3),
        (column.cubes.quadratic, d @ k @ d, 3),
    ]:
        assert got == approx(wanted, rel=1e-12, abs=1e-13 * n**2 * max(size, np.ptp(x)) ** degree)
    rows = distance_product_rows(column, SortedColumn.from_values(y))
    assert rows == approx((k * l).sum(1), rel=1e-12, abs=1e-13 * n * size)


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


def test_units_constant_columns_and_a_far_off_row_do_not_matter_to_mutual_information():
    z, s = gaussian_pair(500, 0.8, 3, columns=8)
    value, units = mutual_information(z, s), torch.logspace(-3, 3, 8, dtype=z.dtype)
    scaled = torch.cat([z * units, torch.ones(500, 1)], 1)
    assert mutual_information(scaled, s) == approx(value, abs=1e-9)
    far = torch.cat([z, torch.full((1, 8), 1e11, dtype=z.dtype)])
    assert mutual_information(far, torch.cat([s, s[:1]])) == approx(value, abs=0.05)


def test_values_that_coincide_count_as_one_value():
    # s takes four values, and z is a copy of it, or reveals it: log 4, the entropy of s
    z = np.repeat(np.arange(4.0), 250)
    revealing = z + 0.05 * np.random.default_rng(0).standard_normal(1000)
    assert mutual_information(z, z) == approx(math.log(4), abs=0.05)
    assert mutual_information(revealing, z) == approx(math.log(4), abs=0.02)


def test_the_scale_of_a_column_draws_in_what_is_more_than_ten_quartile_ranges_away():
    x = np.array([[0.0, 0.0, 5.0], [1.0, 0.0, 5.0], [2.0, 0.0, 5.0], [3.0, 0.0, 5.0]])
    x = np.vstack([x, [100.0, 7.0, 5.0]])  # quartiles 1, 2, 3 and 0, 0, 0
    drawn_in = np.array([0.0, 1.0, 2.0, 3.0, 22.0])
    assert column_scales(x) == approx([drawn_in.std(), x[:, 1].std(), 1.0])
    assert column_scales(-x) == approx(column_scales(x))


@pytest.mark.parametrize(
    ("deviations", "least", "kept"),
    [
        ([10.0, 1.0, 1.0], 1, 1),
        ([10.0, 1.0, 1.0], 2, 2),
        ([3.0, 2.0, 1.0, 0.1], 1, 3),
        ([1.0] * 8, 1, 5),
        ([10.0, 1.0], 4, 2),
    ],
)
def test_the_fewest_components_with_95_percent_of_the_variance_are_kept(deviations, least, kept):
    """Columns without correlation: the components are the columns with the largest variance."""
    width = len(deviations)
    signs = np.array([[(-1.0) ** (i >> j & 1) for j in range(width)] for i in range(2**width)])
    order = np.random.default_rng(0).permutation(width)
    x = (5 + signs * deviations)[:, order]
    found = principal_components(x, least=least)
    assert found.shape == (2**width, kept)
    assert found.std(axis=0) == approx(deviations[:kept])


def test_a_second_derivative_says_what_to_use():
    z, s = gaussian_pair(6, 0.5, 0)
    value = dependence.hsic(z.requires_grad_(), s)
    with pytest.raises(RuntimeError) as refused:
        torch.autograd.grad(value, z, create_graph=True)
    assert str(refused.value) == (
        "exact HSIC by tiles is differentiable only once. For second derivatives, apply"
        " frhsic.dependence.grams.hsic_biased or hsic_unbiased to the Gram matrices."
    )
