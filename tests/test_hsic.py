"""HSIC by tiles and by features: references that share no code with it, gradients, identities,
closed forms.
"""

import math
from functools import lru_cache, partial

import numpy as np
import pytest
import torch
from pytest import approx

from dependence_samples import gaussian_population
from frhsic.dependence import features, grams, hsic, hsic_features, hsic_unbiased
from frhsic.dependence.features import draw_feature_maps
from frhsic.kernels import Gaussian, Laplacian, Linear, PerColumn
from kernel_instances import KERNELS, reference_gram

JOINT = PerColumn((Gaussian(1.0), Laplacian(1.5)))


# --- references
# ------------------------------------------------------------------------------------------------

FLAT = PerColumn((Gaussian(1.0), Gaussian(1.0)))


class Reference:
    """Both statistics from the n x n matrices, with 64 bits of mantissa where the processor has
    them.
    """

    def __init__(self, x, kernel):
        rows = x.double().numpy().astype(np.longdouble)
        rows = rows - rows.mean(0) if kernel.centering_safe else rows
        self.gram, self.n = reference_gram(kernel, rows, rows), len(rows)

    def hsic(self, other):
        centred = [g - g.mean(0) - g.mean(1)[:, None] + g.mean() for g in (self.gram, other.gram)]
        return float((centred[0] * centred[1]).sum() / self.n**2)

    def unbiased(self, other):
        # U-centred matrices, whose inner product over n(n - 3) is the U-statistic
        n, centred = self.n, []
        for gram in (self.gram, other.gram):
            g = gram - np.diag(np.diagonal(gram))
            rows = g.sum(0) / (n - 2)
            centred.append(
                (g - rows - rows[:, None] + g.sum() / ((n - 1) * (n - 2))) * (1 - np.eye(n))
            )
        return float((centred[0] * centred[1]).sum() / (n * (n - 3)))


def rounded(n, dtype, scale=1.0, offset=0.0):
    g = torch.Generator().manual_seed(n)
    z = torch.randn(n, 3, generator=g, dtype=torch.float64)
    s = torch.stack([z[:, 0] + z[:, 1], z[:, 2] ** 2], 1) + torch.randn(
        n, 2, generator=g, dtype=torch.float64
    )
    return (z * scale + offset).to(dtype), (s * scale).to(dtype)


@lru_cache(maxsize=2)
def reference_of_s(n, dtype, scale):
    return Reference(rounded(n, dtype, scale)[1], JOINT if scale == 1 else FLAT)


SMALL = 280  # rows of two tiles
CASES = [(SMALL, name) for name in KERNELS] + [(700, "gaussian"), (700, "linear + gaussian")]


@pytest.mark.parametrize(
    ("scale", "offset"), [(1.0, 0.0), (1.0, 1e3), (1e-3, 0.0)], ids=["plain", "offset", "flat"]
)
@pytest.mark.parametrize(("n", "name"), CASES)
def test_hsic_agrees_with_the_reference_on_the_same_rounded_inputs(n, name, scale, offset, dtype):
    kernel, flat = KERNELS[name], scale < 1
    z, s = rounded(n, dtype, scale, offset)
    k, l, kernel_s = Reference(z, kernel), reference_of_s(n, dtype, scale), FLAT if flat else JOINT
    tolerance = (1e-4 if flat else 1e-5) if dtype == torch.float32 else 1e-7 if flat else 1e-11
    assert hsic(z, s, kernel, kernel_s).item() == approx(k.hsic(l), abs=0, rel=tolerance)
    assert hsic_unbiased(z, s, kernel, kernel_s).item() == approx(
        k.unbiased(l), abs=0, rel=tolerance
    )


def test_threads_share_the_tiles_and_change_nothing(dtype, request):
    request.addfinalizer(partial(torch.set_num_threads, torch.get_num_threads()))
    z, s = rounded(1400, dtype)
    values = {}
    for threads in (1, 2, 3):
        torch.set_num_threads(threads)
        own = z.clone().requires_grad_()
        value = hsic(own, s, Gaussian(1.5), JOINT)
        value.backward()
        values[threads] = value.item(), hsic_unbiased(z, s, Gaussian(1.5), JOINT).item(), own.grad
        assert torch.get_num_threads() == threads
        assert hsic(z, s, Gaussian(1.5), JOINT).item() == value.item()
    for threads in (2, 3):
        assert values[threads][:2] == approx(
            values[1][:2], abs=0, rel=1e-6 if dtype == torch.float32 else 1e-11
        )
        torch.testing.assert_close(values[threads][2], values[1][2])


# --- gradients
# -------------------------------------------------------------------------------------------------

KEPT = torch.arange(5) > 1

STATISTICS = {
    "biased": hsic,
    "unbiased": hsic_unbiased,
    "of a subset": lambda z, s, k, l: hsic(z, s, k, l, where=KEPT),
}


@pytest.mark.parametrize(
    ("name", "statistic"),
    [
        (name, statistic)
        for name in KERNELS
        for statistic in STATISTICS
        if statistic == "biased" or name == "gaussian"
    ],
)
def test_gradients_in_z_and_s_are_those_of_finite_differences(name, statistic):
    rows = 3 if statistic == "biased" else 5
    z, s = rounded(rows, torch.float64)

    def value(z, s):
        return STATISTICS[statistic](z, s, KERNELS[name], JOINT)

    assert torch.autograd.gradcheck(value, (z.requires_grad_(), s.requires_grad_()))


@pytest.mark.parametrize("offset", [0.0, 1e3])
@pytest.mark.parametrize("name", KERNELS)
def test_gradients_over_tiles_are_those_of_the_full_matrices(name, offset, dtype):
    kernel = KERNELS[name]
    z, s = rounded(SMALL, dtype)
    z = z + offset
    full = z.double().requires_grad_()
    k, l = kernel(full, full), JOINT(s.double(), s.double())
    for tiled, formula in (
        (hsic, grams.hsic_biased_from_gram),
        (hsic_unbiased, grams.hsic_unbiased_from_gram),
    ):
        (expected,) = torch.autograd.grad(formula(k, l), full, retain_graph=True)
        own = z.clone().requires_grad_()
        (got,) = torch.autograd.grad(tiled(own, s, kernel, JOINT), own)
        assert got.dtype == dtype
        error = (got.double() - expected).norm() / expected.norm()
        assert error < (1e-6 if dtype == torch.float32 else 1e-9 if offset else 1e-11)


# --- identities
# ---------------------------------------------------------------------------------------------


def test_a_sample_that_is_a_product_has_hsic_zero(dtype):
    z, s = (
        torch.cartesian_prod(torch.tensor([0.0, 1, 4, 9]), torch.tensor([0.0, 1, 1, 7, 7, 7]))
        .to(dtype)
        .T
    )
    assert hsic(z, s, Gaussian(1.0), Gaussian(1.0)).item() == approx(0, abs=1e-15)


# --- closed forms and outside constants
# -----------------------------------------------------------------------


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.9])
def test_unbiased_hsic_of_gaussians_has_the_population_value_as_its_mean(rho, dtype):
    g = torch.Generator().manual_seed(7)
    values, biased = [], []
    for _ in range(40):
        z, e = torch.randn(2, 400, generator=g, dtype=torch.float64)
        s = rho * z + math.sqrt(1 - rho**2) * e
        z, s = z.to(dtype), s.to(dtype)
        values.append(hsic_unbiased(z, s, Gaussian(1.0), Gaussian(1.0)).item())
        biased.append(hsic(z, s, Gaussian(1.0), Gaussian(1.0)).item())
    error = np.std(values, ddof=1) / math.sqrt(40)
    assert gaussian_population(0.5) == approx(0.0107633, abs=5e-8)  # as printed in the literature
    assert abs(np.mean(values) - gaussian_population(rho)) < 4 * error
    assert np.mean(biased) > np.mean(values)


def test_ratios_are_those_of_hyppo():
    # hyppo 0.5.2, Hsic(compute_kernel="gaussian", gamma=0.5): bias=False and bias=True
    i, g = np.arange(1, 21.0), Gaussian(1.0)
    x, y = np.sin(i), np.cos(1.3 * i) + np.sin(i) ** 2
    unbiased, biased = (
        f(x, y, g, g) / math.sqrt(f(x, x, g, g) * f(y, y, g, g)) for f in (hsic_unbiased, hsic)
    )
    assert unbiased == approx(-0.05724446369575431, abs=0, rel=1e-10)
    assert math.sqrt(biased) == approx(0.1645246109513687, abs=0, rel=1e-10)


# --- random features
# -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in KERNELS if name != "per column with a sum"])
def test_products_of_features_have_the_kernel_as_their_mean(name):
    kernel = KERNELS[name]
    z, _ = rounded(5, torch.float64)
    maps = draw_feature_maps(kernel, Linear(), 3, 1, features=40_000, blocks=500, random_state=1)
    phi, _ = next(maps.chunks(z, z[:, :1]))
    by_block = torch.einsum("ibf,jbf->bij", phi, phi)
    error = by_block.std(0) / math.sqrt(len(by_block)) if len(by_block) > 1 else torch.zeros(5, 5)
    assert ((by_block.mean(0) - kernel(z, z)).abs() <= 4 * error + 1e-9).all()
    assert error.max() < 0.1


def test_the_standard_error_is_the_spread_over_draws():
    z, s = rounded(300, torch.float64)
    exact = hsic(z, s, Gaussian(2.0), JOINT).item()
    draws = [
        hsic_features(z, s, Gaussian(2.0), JOINT, features=256, random_state=i) for i in range(150)
    ]
    values = np.array([d.value for d in draws])
    claimed = math.sqrt(np.mean([d.standard_error**2 for d in draws]))
    assert claimed == approx(
        values.std(ddof=1), abs=0, rel=0.25
    )  # a standard deviation of 150 draws is known to 6 %
    assert abs(values.mean() - exact) < 4 * values.std(ddof=1) / math.sqrt(150)


def test_the_error_of_a_two_way_mean_counts_rows_columns_and_their_interaction():
    g = torch.Generator().manual_seed(0)
    a, b = torch.randn(3000, 8, 1, generator=g), 0.5 * torch.randn(3000, 1, 6, generator=g)
    e = 2 * torch.randn(3000, 8, 6, generator=g)
    squares = [features._standard_error(table) ** 2 for table in a + b + e]
    assert np.mean(squares) == approx(
        1 / 8 + 0.25 / 6 + 4 / 48, abs=0, rel=0.07
    )  # never below 4/48: a little high
    assert features._standard_error(torch.ones(8, 6)) == 0
    one = torch.tensor([[1.0, 2.0, 6.0]])  # only one side is drawn: independent columns
    assert (
        features._standard_error(one) == features._standard_error(one.T) == approx(math.sqrt(7 / 3))
    )
    assert features._standard_error(one[:, :1]) == 0


def test_two_rows_are_enough():
    maps = draw_feature_maps(Linear(), Linear(), 1, 1)
    x = torch.tensor([[0.0], [1.0]])
    assert maps.estimate(maps.sums(x, 2 * x)).value == approx(1 / 4)  # the squared covariance


def test_linear_kernels_need_no_draw_and_are_exact(dtype):
    z, s = rounded(60, dtype)
    estimate = hsic_features(z + 1000, s, Linear(), Linear())
    assert estimate.value == approx(hsic(z + 1000, s, Linear(), Linear()).item(), abs=0, rel=1e-5)
    assert estimate.standard_error == 0
