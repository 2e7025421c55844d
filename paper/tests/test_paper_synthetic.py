"""Made data: the answers they carry, held against the definition, quadrature and large samples."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from frhsic.dependence.grams import hsic_unbiased_from_gram
from frhsic.kernels import Gaussian
from frhsic_paper.synthetic import gaussian_pair, synthetic_task


def hermite(points: int = 80) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights of the standard normal law."""
    x, w = np.polynomial.hermite_e.hermegauss(points)
    return x, w / w.sum()


def hsic_by_quadrature(r: float, sigma_z: float, sigma_s: float) -> float:
    """E k l + E k E l - 2 E[E k E l], each expectation by Gauss-Hermite quadrature."""
    x, w = hermite()
    root = math.sqrt(1 - r * r)
    u, v = x[:, None], r * x[:, None] + root * x[None, :]  # a pair with correlation r
    both = w[:, None] * w[None, :]

    def k(d: np.ndarray, sigma: float) -> np.ndarray:
        return np.exp(-(d**2) / (2 * sigma**2))

    def mean(z: np.ndarray, sigma: float) -> np.ndarray:
        return np.tensordot(k(z[..., None] - x, sigma), w, axes=1)

    joint = (both * k(math.sqrt(2) * u, sigma_z) * k(math.sqrt(2) * v, sigma_s)).sum()
    apart = (w * k(math.sqrt(2) * x, sigma_z)).sum() * (w * k(math.sqrt(2) * x, sigma_s)).sum()
    cross = (both * mean(u * np.ones_like(v), sigma_z) * mean(v, sigma_s)).sum()
    return float(joint + apart - 2 * cross)


@pytest.mark.parametrize("r", [-0.7, 0.1, 0.5])
@pytest.mark.parametrize(("sigma_z", "sigma_s"), [(1.0, 1.0), (1.5, 3.0), (4.0, 0.9)])
def test_gaussian_hsic_is_the_definition_by_quadrature(r, sigma_z, sigma_s):
    truth = hsic_by_quadrature(r, sigma_z, sigma_s)
    assert gaussian_pair(1, correlation=r).hsic(sigma_z, sigma_s) == pytest.approx(truth, rel=1e-7)


def test_gaussian_hsic_in_the_limit_of_wide_kernels_is_the_squared_covariance():
    sigma = 1e4
    assert gaussian_pair(1, correlation=0.6).hsic(sigma, sigma) * sigma**4 == pytest.approx(
        0.36, rel=1e-6
    )


def test_published_constants_of_the_gaussian_pair():
    pair = gaussian_pair(1, correlation=0.5)
    assert pair.hsic() == pytest.approx(
        0.0107633, abs=5e-8
    )  # an independent computation for the paper's figure
    assert pair.eipm() == pytest.approx(0.1995, abs=5e-5)


def test_hsic_of_a_gaussian_sample_is_near_the_truth(dtype):
    pair = gaussian_pair(40 * 250, correlation=0.5, random_state=0, dtype=dtype)
    kernel = Gaussian(1.0)
    z, s = pair.z.view(40, 250, 1), pair.s.view(40, 250, 1)
    values = torch.stack(
        [hsic_unbiased_from_gram(kernel(a, a), kernel(b, b)) for a, b in zip(z, s)]
    ).double()
    error = float(values.std()) / math.sqrt(40)
    assert abs(float(values.mean()) - pair.hsic()) < 4 * error
    assert error < 0.1 * pair.hsic()


def accuracies() -> tuple[float, float]:
    """Best accuracy, and that of a constant, by quadrature over S and the noise."""
    x, w = hermite()
    s, v = np.polynomial.legendre.leggauss(80)
    p = 1 / (1 + np.exp(-((s[:, None] + 1) / 2 + 0.3 * x)))
    weights = v[:, None] / 2 * w
    return (weights * np.maximum(p, 1 - p)).sum(), (weights * p).sum()


def test_the_synthetic_task_has_the_accuracies_that_are_known_of_it():
    # an independent computation for the paper's ablation
    assert accuracies() == pytest.approx((0.629, 0.618), abs=5e-4)


def test_the_synthetic_task_is_seen_in_a_sample():
    task = synthetic_task(200_000, random_state=3)
    n = len(task.y)
    best, constant = accuracies()
    p = torch.sigmoid(task.x[:, 0])
    assert abs(float(task.y.mean()) - constant) < 4 * float(task.y.std()) / math.sqrt(n)
    right = ((p > 0.5) == (task.y > 0.5)).double()
    assert abs(float(right.mean()) - best) < 4 * float(right.std()) / math.sqrt(n)
    assert float(torch.corrcoef(torch.stack([task.x[:, 1], task.s]))[0, 1]) == pytest.approx(
        0, abs=4 / math.sqrt(n)
    )


def test_under_independence_both_are_zero():
    pair = gaussian_pair(1, correlation=0.0)
    assert pair.hsic() == 0
    assert pair.eipm() == pytest.approx(0, abs=1e-7)


@pytest.mark.parametrize("generator", [gaussian_pair, synthetic_task])
def test_a_seed_gives_the_same_sample_and_another_seed_another(generator, dtype):
    first, again, other = (generator(30, random_state=seed, dtype=dtype) for seed in (1, 1, 2))
    assert torch.equal(first.s, again.s)
    assert not torch.equal(first.s, other.s)
    assert first.s.dtype == dtype


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: gaussian_pair(0), "at least 1 rows"),
        (lambda: synthetic_task(0), "at least 1 rows"),
        (lambda: gaussian_pair(5, correlation=1.0), "strictly between"),
        (lambda: gaussian_pair(5).hsic(0.0), "bandwidth_z"),
    ],
)
def test_parameters_that_make_no_sense_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
