"""EIPM and kernel HGR: definitions, population values, identities and limits."""

import math

import numpy as np
import pytest
import torch
from numpy.polynomial.hermite_e import hermegauss
from pytest import approx

from dependence_samples import eipm_by_definition, gaussian_pair, mean_over
from frhsic.kernels import Gaussian, Laplacian, Linear
from frhsic_paper.statistics import eipm, kernel_hgr
from frhsic_paper.statistics.conditional import smoothing_bandwidth

ONE = Gaussian(1.0)
KERNELS = [Gaussian(0.8), Laplacian(1.5), Linear(), Linear() + Gaussian(0.5)]


# --- definitions


def hgr_by_definition(z, s, kernel_z, kernel_s, ridge_z, ridge_s):
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


RIDGES = {"ridge_z": 0.05, "ridge_s": 0.002}


DEFINITIONS = [
    *((eipm, eipm_by_definition, {"kernel_z": k, "bandwidth": 0.7}) for k in KERNELS),
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


def test_gradients_in_z_are_those_of_finite_differences_across_tiles(monkeypatch):
    monkeypatch.setattr("frhsic.dependence.tiles.CPU_TILE", 4)
    z, s = gaussian_pair(9, 0.5, 5, columns=2)
    without = eipm(z, s, ONE).item()
    assert torch.autograd.gradcheck(lambda z: eipm(z, s, ONE), (z.requires_grad_(),))
    assert eipm(z, s, ONE).item() == approx(without, rel=1e-10)


# --- population values


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


def test_hgr_of_gaussians_has_the_regularised_population_value():
    truth, options = hgr_population(0.5, 0.02), {"ridge_z": 0.02, "ridge_s": 0.02}
    mean, error = mean_over(
        20, lambda seed: kernel_hgr(*gaussian_pair(1000, 0.5, seed), ONE, ONE, **options)
    )
    # the largest singular value of a noisy operator lies above the operator's, by less than 1 / (2
    # n η) here
    assert truth - 4 * error <= mean <= truth + 4 * error + 1 / (2 * 1000 * 0.02)


# --- identities and limits


def test_the_bandwidth_of_eipm_shrinks_as_scott_says():
    s = torch.tensor([0.0, 2.0] * 16)
    assert smoothing_bandwidth(s).tolist() == approx([32**-0.2])
    both = smoothing_bandwidth(torch.stack([s, 3 * s], 1))
    assert both.tolist() == approx([32 ** (-1 / 6), 3 * 32 ** (-1 / 6)])


def test_anchors_are_drawn_by_the_random_state_and_all_of_them_are_all():
    z, s = gaussian_pair(80, 0.5, 7)
    some = [eipm(z, s, anchors=10, random_state=seed).item() for seed in (1, 1, 2)]
    assert some[0] == some[1] != some[2]
    assert eipm(z, s, anchors=80, random_state=0).item() == approx(eipm(z, s).item(), rel=1e-12)


def test_hgr_of_linear_kernels_of_several_columns_is_the_first_canonical_correlation():
    z, s = gaussian_pair(300, 0.6, 2, columns=3)
    design = torch.cat([torch.ones(300, 1), z], 1)
    fitted = design @ torch.linalg.lstsq(design, s).solution
    value = kernel_hgr(z, s, Linear(), Linear(), ridge_z=1e-9, ridge_s=1e-9)
    assert value.item() ** 2 == approx((fitted.var() / s.var()).item(), abs=1e-6)
