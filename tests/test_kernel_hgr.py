"""Kernel HGR: definition, identities, bound by HSIC, population value, large n and bad input."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy.polynomial.hermite_e import hermegauss
from pytest import approx

from dependence_samples import gaussian_pair, within
from frhsic.dependence import hgr, kernel_hgr
from frhsic.kernels import Gaussian, Laplacian, Linear

KERNELS = [Gaussian(0.8), Laplacian(1.5), Linear(), Linear() + Gaussian(0.5)]


def by_definition(z, s, k, l, ridge_z, ridge_s):
    """The largest singular value of whitened features, with features from the eigenvectors of the Gram matrices."""

    def whitened(x, kernel, ridge):
        values, vectors = torch.linalg.eigh(kernel(x, x))
        features = vectors * values.clamp_min(0).sqrt()
        features = features - features.mean(0)
        covariance = features.T @ features / len(x)
        own, basis = torch.linalg.eigh(covariance + ridge * torch.eye(len(x), dtype=x.dtype))
        return features @ basis @ torch.diag(own**-0.5) @ basis.T

    cross = whitened(z, k, ridge_z).T @ whitened(s, l, ridge_s) / len(z)
    return torch.linalg.matrix_norm(cross, ord=2).item()


def population(rho, ridge_z, ridge_s, nodes=40):
    """Quadrature of the regularised operators for jointly normal (Z, S) and Gaussian kernels at bandwidth one."""
    x, w = hermegauss(nodes)
    w = w / w.sum()
    # joint weights on the grid by Mehler's expansion of the normal density: p(x, y) / p(x)p(y) = Σ ρ^j h_j(x) h_j(y)
    h = [np.ones(nodes), x.copy()]
    for j in range(2, nodes):
        h.append((x * h[-1] - np.sqrt(j - 1) * h[-2]) / np.sqrt(j))
    joint = w[:, None] * w * sum(rho**j * np.outer(h[j], h[j]) for j in range(nodes))
    gram = np.exp(-((x[:, None] - x) ** 2) / 2)
    values, vectors = np.linalg.eigh(gram)
    features = vectors * np.sqrt(values.clip(0))
    features = features - w @ features

    def root_inverse(ridge):
        own, basis = np.linalg.eigh(features.T @ (w[:, None] * features) + ridge * np.eye(nodes))
        return basis @ np.diag(own**-0.5) @ basis.T

    return np.linalg.norm(root_inverse(ridge_z) @ features.T @ joint @ features @ root_inverse(ridge_s), 2)


@pytest.mark.parametrize("kernel_s", KERNELS, ids=repr)
@pytest.mark.parametrize("kernel_z", KERNELS[:3], ids=repr)
def test_it_is_its_definition(kernel_z, kernel_s, dtype):
    z, s = (x.to(dtype) for x in gaussian_pair(8, 0.5, 0, columns=2))
    value = kernel_hgr(z, s, kernel_z, kernel_s, ridge_z=0.05, ridge_s=0.002, tolerance=1e-9)
    assert value.dtype == dtype
    expected = by_definition(z.double(), s.double(), kernel_z, kernel_s, 0.05, 0.002)
    assert value.item() == approx(expected, rel=1e-6 if dtype == torch.float32 else 1e-8)


def test_linear_kernels_of_several_columns_give_the_first_canonical_correlation():
    z, s = gaussian_pair(300, 0.6, 2, columns=3)
    design = torch.cat([torch.ones(300, 1), z], 1)
    fitted = design @ torch.linalg.lstsq(design, s).solution
    share = fitted.var() / s.var()
    value = kernel_hgr(z, s, Linear(), Linear(), ridge_z=1e-9, ridge_s=1e-9)
    assert value.item() ** 2 == approx(share.item(), abs=1e-6)


def test_gaussians_give_the_regularised_population_value():
    truth = population(0.5, 0.02, 0.02)
    pairs = [gaussian_pair(1000, 0.5, seed) for seed in range(20)]
    values = [kernel_hgr(*pair, Gaussian(1.0), Gaussian(1.0), ridge_z=0.02, ridge_s=0.02).item() for pair in pairs]
    mean, error = within(values)
    # the largest singular value of a noisy operator lies above the operator's, by less than 1 / (2 n η) here
    assert truth - 4 * error <= mean <= truth + 4 * error + 1 / (2 * 1000 * 0.02)


@pytest.mark.parametrize("kernel_s", KERNELS, ids=repr)
def test_conjugate_gradients_on_tiles_agree_with_the_factored_matrix(kernel_s, monkeypatch):
    z, s = gaussian_pair(300, 0.5, 5, columns=3)
    options = {"ridge_z": 0.01, "ridge_s": 0.005, "tolerance": 1e-7}
    exact = kernel_hgr(z, s, Gaussian(1.5), kernel_s, **options).item()
    monkeypatch.setattr(hgr, "DENSE_ROWS", 10)
    monkeypatch.setattr(hgr, "PRECONDITIONER_RANK", 20)
    assert kernel_hgr(z, s, Gaussian(1.5), kernel_s, **options).item() ** 2 == approx(exact**2, abs=1e-7)
    monkeypatch.setattr(hgr, "MAX_ITERATIONS", 2)
    with pytest.raises(ValueError, match="conjugate gradients"):
        kernel_hgr(z, s, Gaussian(1.5), kernel_s, **options)


def test_a_ridge_that_is_lost_in_rounding_and_a_rank_that_is_too_small_are_named():
    z, s = gaussian_pair(50, 0.5, 5, columns=3)
    with pytest.raises(ValueError, match="ridge_z"):
        kernel_hgr(1e12 * z, s, Linear(), Linear(), ridge_z=1e-9)
    with pytest.raises(ValueError, match="max_rank=2"):
        kernel_hgr(z, s, Gaussian(1.0), Gaussian(0.1), max_rank=2)
