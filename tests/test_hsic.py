"""Exact HSIC by tiles: definition, identities, closed forms, outside constants and bad input."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
import torch
from pytest import approx
from scipy import stats

from frhsic.dependence import _tiles, grams, hsic, hsic_summed, hsic_unbiased, minority_weights
from frhsic.kernels import Gaussian, Laplacian, Linear, PerColumn, gaussian_at_median
from kernel_instances import KERNELS


def dependent(n: int, dtype: torch.dtype = torch.float64, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """Three columns of z, two of s that depend on them."""
    g = torch.Generator().manual_seed(seed)
    z = torch.randn(n, 3, generator=g, dtype=torch.float64)
    s = z[:, :2] ** 2 + torch.randn(n, 2, generator=g, dtype=torch.float64)
    return z.to(dtype), s.to(dtype)


def close(dtype: torch.dtype) -> float:
    return 1e-6 if dtype == torch.float32 else 1e-11


JOINT = PerColumn((Gaussian(1.0), Laplacian(1.5)))


@pytest.fixture(autouse=True, params=[4, 512], ids=["many tiles", "one tile"])
def _tile(request, monkeypatch):
    """Every claim holds whether the rows fit one tile or not."""
    monkeypatch.setattr(_tiles, "CPU_TILE", request.param)


# --- the definition -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", KERNELS)
def test_tiles_give_what_gram_matrices_give(name, dtype):
    kernel = KERNELS[name]
    z, s = dependent(11, dtype)
    k, l = kernel(z.double(), z.double()), JOINT(s.double(), s.double())
    w = torch.arange(11.0, dtype=torch.float64)
    for got, expected in (
        (hsic(z, s, kernel, JOINT), grams.hsic_biased(k, l)),
        (hsic_unbiased(z, s, kernel, JOINT), grams.hsic_unbiased(k, l)),
        (hsic(z, s, kernel, JOINT, weights=w), grams.hsic_weighted(k, l, w / w.sum())),
    ):
        assert got.shape == ()
        assert got.dtype == dtype
        assert got.item() == approx(expected.item(), abs=0, rel=close(dtype))


def test_none_is_a_gaussian_at_the_median_of_each_variable(dtype):
    z, s = dependent(20, dtype)
    explicit = hsic(z, s, gaussian_at_median(z), gaussian_at_median(s))
    assert hsic(z, s).item() == explicit.item()
    assert hsic_unbiased(z, s).item() == hsic_unbiased(z, s, gaussian_at_median(z), gaussian_at_median(s)).item()


# --- identities ---------------------------------------------------------------------------------------------


def test_linear_hsic_is_the_squared_covariance(dtype):
    z, s = dependent(30, dtype)
    covariance = torch.cov(torch.cat([z, s], 1).double().T, correction=0)[:3, 3:]
    assert hsic(z, s, Linear(), Linear()).item() == approx(covariance.square().sum().item(), abs=0, rel=close(dtype))


@pytest.mark.parametrize("scale", [1e-4, 1e-7])
def test_a_flat_gaussian_kernel_sees_the_squared_covariance_and_loses_no_digits(scale, dtype):
    # k - 1 tends to -|x - y|^2 / 2 sigma^2, which centring turns into the linear kernel over sigma^2
    z, s = (x * scale for x in dependent(30, dtype))
    limit = hsic(z, s, Linear(), Linear()).item() / (2.0 * 3.0) ** 2
    assert hsic(z, s, Gaussian(2.0), Gaussian(3.0)).item() == approx(limit, abs=0, rel=max(close(dtype), 10 * scale**2))


def linear_unbiased(z: torch.Tensor, s: torch.Tensor) -> float:
    """U-statistic for products of numbers, K_ij = z_i z_j, from sums of powers in exact integers."""
    z, s = ([int(v) for v in x] for x in (z, s))
    n, sum_z, sum_s = len(z), sum(z), sum(s)
    joint = sum(a * b for a, b in zip(z, s)) ** 2 - sum((a * b) ** 2 for a, b in zip(z, s))
    cross = sum(a * (sum_z - a) * b * (sum_s - b) for a, b in zip(z, s))
    outer = (sum_z**2 - sum(a * a for a in z)) * (sum_s**2 - sum(b * b for b in s))
    return joint / (n * (n - 3)) - 2 * cross / (n * (n - 2) * (n - 3)) + outer / (n * (n - 1) * (n - 2) * (n - 3))


def test_unbiased_linear_hsic_is_a_sum_of_powers(dtype):
    g = torch.Generator().manual_seed(0)
    z = torch.randint(-9, 10, (50,), generator=g)
    s = z + torch.randint(-9, 10, (50,), generator=g)
    got = hsic_unbiased(z.to(dtype), s.to(dtype), Linear(), Linear()).item()
    assert got == approx(linear_unbiased(z, s), abs=0, rel=close(dtype))


def test_order_of_variables_and_rows_does_not_matter():
    z, s = dependent(30)
    order = torch.randperm(30, generator=torch.Generator().manual_seed(1))
    for statistic in (hsic, hsic_unbiased):
        value = statistic(z, s, Gaussian(1.0), JOINT).item()
        assert statistic(s, z, JOINT, Gaussian(1.0)).item() == approx(value, abs=0, rel=1e-10)
        assert statistic(z[order], s[order], Gaussian(1.0), JOINT).item() == approx(value, abs=0, rel=1e-10)


def test_a_subset_is_the_statistic_of_its_rows(dtype):
    z, s = dependent(30, dtype)
    y = (torch.arange(30) % 3 == 0).int()
    for statistic in (hsic, hsic_unbiased):
        assert statistic(z, s, where=y).item() == approx(statistic(z[y == 1], s[y == 1]).item(), abs=0, rel=1e-6)
        assert statistic(z, s, where=(y == 1).tolist()).item() == statistic(z, s, where=y).item()


def test_whole_weights_are_repeated_rows_and_zero_weights_absent_ones(dtype):
    z, s = dependent(12, dtype)
    times = torch.arange(12) % 4
    repeated = hsic(z.repeat_interleave(times, 0), s.repeat_interleave(times, 0), Gaussian(1.0), JOINT)
    weighted = hsic(z, s, Gaussian(1.0), JOINT, weights=times)
    assert weighted.item() == approx(repeated.item(), abs=0, rel=close(dtype))
    kept = hsic(z, s, Gaussian(1.0), JOINT, weights=times, where=times > 0)
    assert kept.item() == approx(repeated.item(), abs=0, rel=close(dtype))


def test_several_attributes_are_summed_each_with_its_own_kernel(dtype):
    z, s = dependent(30, dtype)
    kernels = [Gaussian(1.0), Laplacian(2.0)]
    one_by_one = sum(hsic(z, s[:, c], None, kernels[c]).item() for c in range(2))
    assert hsic_summed(z, s, None, kernels).item() == approx(one_by_one, abs=0, rel=close(dtype))
    at_medians = sum(hsic(z, s[:, c]).item() for c in range(2))
    assert hsic_summed(z, s).item() == approx(at_medians, abs=0, rel=close(dtype))
    y = torch.arange(30) % 2
    restricted = sum(hsic(z, s[:, c], where=y, weights=range(30)).item() for c in range(2))
    assert hsic_summed(z, s, where=y, weights=range(30)).item() == approx(restricted, abs=0, rel=close(dtype))


def test_few_values_of_s_give_the_weighted_sum_of_contrasts_of_the_discrete_lemma(dtype):
    # Lemma "Discrete sensitive attribute coincidence", for the empirical law: exact, not in the limit.
    z, _ = dependent(24, dtype)
    s = (torch.arange(24) % 3).to(dtype)
    k = Gaussian(1.0)(z.double(), z.double())
    values = torch.tensor([[0.0], [1.0], [2.0]], dtype=torch.float64)
    membership = (s.double()[:, None] == values.T).double()  # (24, 3)
    shares = membership.mean(0)
    contrast = membership / membership.sum(0) - 1 / 24  # weights of the embedding of Z | S = s_k, less that of Z
    inner = contrast.T @ k @ contrast
    expected = (shares[:, None] * shares * Gaussian(1.0)(values, values) * inner).sum().item()
    assert hsic(z, s, Gaussian(1.0), Gaussian(1.0)).item() == approx(expected, abs=0, rel=close(dtype))


def test_a_sample_that_is_a_product_has_hsic_zero(dtype):
    z, s = torch.cartesian_prod(torch.tensor([0.0, 1, 4, 9]), torch.tensor([0.0, 1, 1, 7, 7, 7])).to(dtype).T
    assert hsic(z, s, Gaussian(1.0), Gaussian(1.0)).item() == approx(0, abs=1e-15)
    assert hsic(z, s, Gaussian(1.0), Gaussian(1.0), weights=minority_weights(s)).item() == approx(0, abs=1e-15)


# --- closed forms and outside constants -----------------------------------------------------------------------


def gaussian_population(rho: float) -> float:
    r"""HSIC of a standard bivariate normal law of correlation rho under Gaussian kernels of bandwidth 1.

    E exp(-x'x/2) = det(I + S)^(-1/2) for x ~ N(0, S). The joint term has S = 2R, of determinant
    det(I + 2R) = 9 - 4 rho^2; each marginal mean is 3^(-1/2); given z the mean over z' is
    exp(-z^2/4) / sqrt(2), so that the cross term is det(I + R/2)^(-1/2) / 2, with
    det(I + R/2) = (9 - rho^2) / 4.
    """
    return (9 - 4 * rho**2) ** -0.5 + 1 / 3 - 2 * (9 - rho**2) ** -0.5


def test_the_population_value_of_the_literature_is_the_closed_form():
    assert gaussian_population(0.5) == approx(0.0107633, abs=5e-8)
    assert gaussian_population(0.0) == approx(0, abs=1e-15)


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.9])
def test_unbiased_hsic_of_gaussians_has_the_population_value_as_its_mean(rho, dtype, monkeypatch):
    monkeypatch.setattr(_tiles, "CPU_TILE", 512)
    g = torch.Generator().manual_seed(7)
    values, biased = [], []
    for _ in range(40):
        z, e = torch.randn(2, 400, generator=g, dtype=torch.float64)
        s = rho * z + math.sqrt(1 - rho**2) * e
        z, s = z.to(dtype), s.to(dtype)
        values.append(hsic_unbiased(z, s, Gaussian(1.0), Gaussian(1.0)).item())
        biased.append(hsic(z, s, Gaussian(1.0), Gaussian(1.0)).item())
    error = np.std(values, ddof=1) / math.sqrt(40)
    assert abs(np.mean(values) - gaussian_population(rho)) < 4 * error
    assert np.mean(biased) > np.mean(values)


def outside_sample() -> tuple[np.ndarray, np.ndarray]:
    i = np.arange(1, 21.0)
    return np.sin(i), np.cos(1.3 * i) + np.sin(i) ** 2


def test_ratios_are_those_of_hyppo():
    # hyppo 0.5.2, Hsic(compute_kernel="gaussian", gamma=0.5): bias=False and bias=True
    x, y = outside_sample()
    g = Gaussian(1.0)
    unbiased = hsic_unbiased(x, y, g, g) / (hsic_unbiased(x, x, g, g) * hsic_unbiased(y, y, g, g)).sqrt()
    biased = hsic(x, y, g, g) / (hsic(x, x, g, g) * hsic(y, y, g, g)).sqrt()
    assert unbiased.item() == approx(-0.05724446369575431, abs=0, rel=1e-10)
    assert biased.sqrt().item() == approx(0.1645246109513687, abs=0, rel=1e-10)


def test_the_statistic_is_that_of_causal_learn():
    # causal-learn 0.1.4.8, KCI_UInd(est_width="manual", kwidthx=1.0, kwidthy=1.0).HSIC_V_statistic: n^2 HSIC
    x, y = (stats.zscore(v, ddof=1) for v in outside_sample())
    assert 400 * hsic(x, y, Gaussian(1.0), Gaussian(1.0)).item() == approx(1.6239456007403543, abs=0, rel=1e-10)


# --- minority protection --------------------------------------------------------------------------------------


def test_minority_weights_are_one_over_scipys_density(dtype):
    s = torch.randn(60, generator=torch.Generator().manual_seed(0), dtype=torch.float64).to(dtype)
    density = stats.gaussian_kde(s.double().numpy())(s.double().numpy())  # Scott's rule is its default
    got = minority_weights(s, clip=(1e-9, 1e9))
    assert got.dtype == dtype
    np.testing.assert_allclose(
        got.numpy(), (1 / density) / (1 / density).sum(), rtol=1e-5 if dtype == torch.float32 else 1e-10
    )


def test_minority_weights_of_several_attributes_use_one_bandwidth_each():
    _, s = dependent(15)
    h = [0.5, 2.0]
    d = (s[:, None] - s[None]) / torch.tensor(h, dtype=torch.float64)
    inverse = 1 / torch.exp(-d.square().sum(-1) / 2).sum(1)
    torch.testing.assert_close(minority_weights(s, bandwidth=h, clip=(1e-9, 1e9)), inverse / inverse.sum())


def test_minority_weights_give_every_value_the_same_share():
    s = np.repeat([0.0, 10.0, 20.0], [6, 3, 1])
    w = minority_weights(s, bandwidth=0.1, clip=(1e-3, 1e3)).numpy()
    assert [w[s == v].sum() for v in (0, 10, 20)] == approx([1 / 3] * 3)


def test_minority_weights_are_clipped_around_the_row_of_median_density():
    s = np.repeat([0.0, 10.0, 20.0], [6, 3, 1])  # densities 6, 3, 1; the lower median is 6
    w = minority_weights(s, bandwidth=0.1, clip=(0.5, 1.5)).numpy()
    assert w[-1] / w[0] == approx(1.5)
    assert w[6] / w[0] == approx(1.5)
    assert w.sum() == approx(1)


def test_minority_protection_is_the_weighted_statistic():
    z, s = dependent(20)
    w = minority_weights(s[:, 0])
    expected = grams.hsic_weighted(Gaussian(1.0)(z, z), Gaussian(1.0)(s[:, :1], s[:, :1]), w)
    got = hsic(z, s[:, 0], Gaussian(1.0), Gaussian(1.0), weights=w)
    assert got.item() == approx(expected.item(), abs=0, rel=1e-11)


# --- bad input ------------------------------------------------------------------------------------------------

Z, S = np.arange(6.0)[:, None] ** 2, np.arange(6.0)

REFUSED = {
    "different lengths": (lambda: hsic(Z, S[:4]), ValueError, r"lengths differ: z has 6, s has 4 rows"),
    "NaN": (lambda: hsic(Z, [0, 1, np.nan, 3, 4, np.inf]), ValueError, r"s holds 2 values .*first is NaN, at row 2"),
    "too few rows": (lambda: hsic([1.0], [1.0]), ValueError, r"HSIC needs at least 2 rows; 1 came"),
    "too few rows, unbiased": (
        lambda: hsic_unbiased(Z[:3], S[:3]),
        ValueError,
        r"unbiased HSIC needs at least 4 rows; 3 came",
    ),
    "too small a subset": (
        lambda: hsic(Z, S, where=[0, 0, 0, 0, 0, 1]),
        ValueError,
        r"`where` keeps.* at least 2 rows; 1 came",
    ),
    "constant attribute": (lambda: hsic(Z, np.ones(6)), ValueError, r"s is constant: all 6 rows are equal"),
    "constant attribute, kernel given": (
        lambda: hsic(Z, np.ones(6), Linear(), Linear()),
        ValueError,
        r"s is constant",
    ),
    "one constant column, summed": (
        lambda: hsic_summed(Z, np.stack([S, np.ones(6)], 1), None, [Linear(), Linear()]),
        ValueError,
        r"s_2 is constant",
    ),
    "zero median of s": (
        lambda: hsic(Z, [0, 0, 0, 0, 0, 1]),
        ValueError,
        r"median distance of s, .*is 0: .*Pass a kernel with a bandwidth, such as Gaussian\(bandwidth=\.\.\.\), for s",
    ),
    "zero median of z": (lambda: hsic(np.ones(6), S), ValueError, r"median distance of z"),
    "zero median of a column": (
        lambda: hsic_summed(Z, pd.DataFrame({"age": S, "rare": [0, 0, 0, 0, 0, 1]})),
        ValueError,
        r"median distance of rare",
    ),
    "strings": (lambda: hsic(Z, list("abcdef")), TypeError, r"s holds text or categories .*Encode it"),
    "categories": (
        lambda: hsic(Z, pd.Series(list("abcdef"), dtype="category")),
        TypeError,
        r"s holds text or categories",
    ),
    "object": (lambda: hsic(Z, pd.Series(S, dtype=object)), TypeError, r"s has dtype object; convert it to float64"),
    "complex": (lambda: hsic(Z * 1j, S), TypeError, r"z is complex"),
    "empty": (lambda: hsic(np.ones((0, 1)), []), ValueError, r"z is empty"),
    "a number for a kernel": (lambda: hsic(Z, S, 1.0), TypeError, r"kernel_z is float; pass a kernel such as"),
    "kernels for other columns": (
        lambda: hsic_summed(Z, S, None, [Linear(), Linear()]),
        ValueError,
        r"2 kernels came for the 1 columns of s",
    ),
    "a learnt bandwidth": (
        lambda: hsic(Z, S, Linear() + Gaussian(torch.tensor(1.0, requires_grad=True))),
        ValueError,
        r"kernel_z holds a tensor that requires a gradient",
    ),
    "a learnt bandwidth of a column": (
        lambda: hsic(Z, S, Gaussian(1.0), PerColumn((Gaussian(torch.tensor(1.0, requires_grad=True)),))),
        ValueError,
        r"kernel_s holds a tensor that requires a gradient",
    ),
    "negative weights": (lambda: hsic(Z, S, weights=[1, 1, 1, 1, 1, -1]), ValueError, r"1 of the weights are negative"),
    "zero weights": (lambda: hsic(Z, S, weights=np.zeros(6)), ValueError, r"all weights are zero"),
    "weights of other length": (lambda: hsic(Z, S, weights=[1, 1]), ValueError, r"weights has 2 rows, z has 6"),
    "weights of the rows that are kept": (
        lambda: hsic(Z, S, where=[1, 1, 1, 1, 0, 0], weights=np.ones(4)),
        ValueError,
        r"weights has 4 rows, z has 6\. Pass one weight per row of z, those that `where` leaves out too",
    ),
    "one kernel for all columns": (
        lambda: hsic_summed(Z, S, None, Gaussian(1.0)),
        TypeError,
        r"kernels_s is one kernel, Gaussian\(bandwidth=1\.0\); pass a list",
    ),
    "a constant column, no kernels": (
        lambda: hsic_summed(Z, np.stack([S, np.ones(6)], 1)),
        ValueError,
        r"s_2 is constant",
    ),
    "no kernel": (lambda: hsic_summed(Z, S, None, ["gaussian"]), TypeError, r"kernel_s is str; pass a kernel"),
    "a mask of other length": (lambda: hsic(Z, S, where=[1, 1]), ValueError, r"where has 2 rows"),
    "clip without one": (lambda: minority_weights(S, clip=(2.0, 3.0)), ValueError, r"clip=\(2\.0, 3\.0\); pass two"),
    "a density of a constant": (lambda: minority_weights(np.ones(6)), ValueError, r"s is constant"),
    "a negative bandwidth": (lambda: minority_weights(S, bandwidth=-1.0), ValueError, r"bandwidth is -1\.0"),
    "bandwidths for other columns": (
        lambda: minority_weights(S, bandwidth=[1.0, 1.0]),
        ValueError,
        r"2 bandwidths came for the 1 columns",
    ),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_bad_input_is_refused_with_its_name_and_a_remedy(kind):
    call, error, words = REFUSED[kind]
    with pytest.raises(error, match=words):
        call()


def test_a_summed_kernel_left_none_is_at_the_median_of_its_column():
    z, s = dependent(20)
    mixed = hsic_summed(z, s, None, [None, Gaussian(2.0)])
    assert torch.equal(mixed, hsic_summed(z, s, None, [gaussian_at_median(s[:, 0]), Gaussian(2.0)]))


def test_inputs_of_mixed_kinds_and_widths_meet_in_the_wider():
    z, s = dependent(10, torch.float32)
    value = hsic(pd.DataFrame(z.numpy()), s.double(), Gaussian(1.0), JOINT, device="cpu")
    assert value.dtype == torch.float64
    assert value.item() == hsic(z.double(), s.double(), Gaussian(1.0), JOINT).item()
