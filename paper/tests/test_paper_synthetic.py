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
    assert pair.mutual_information == pytest.approx(0.5 * math.log(4 / 3), rel=1e-12)


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


def test_distance_correlation_has_the_limits_of_the_theorem():
    small, near_one, negative, positive = (
        gaussian_pair(1, correlation=r).distance_correlation for r in (1e-4, 1 - 1e-12, -0.4, 0.4)
    )
    assert small / 1e-4 == pytest.approx(
        0.89066, abs=2e-4
    )  # Székely et al. (2007), Theorem 7 (iii)
    assert near_one == pytest.approx(1.0, abs=1e-5)
    assert negative == positive <= 0.4


def test_the_mean_gap_of_the_gaussian_pair_is_seen_in_a_sample():
    pair = gaussian_pair(200_000, correlation=-0.3, random_state=1)
    gap = (0.3 * pair.s).abs()
    assert abs(float(gap.mean()) - pair.mean_gap) < 4 * float(gap.std()) / math.sqrt(len(gap))
    assert float(torch.corrcoef(torch.stack([pair.z, pair.s]))[0, 1]) == pytest.approx(
        -0.3, abs=4 / math.sqrt(2e5)
    )


def test_the_synthetic_task_has_the_accuracies_that_are_known_of_it():
    task = synthetic_task(1)
    assert task.bayes_accuracy == pytest.approx(
        0.629, abs=5e-4
    )  # an independent computation for the paper's ablation
    assert task.positive_rate == pytest.approx(0.618, abs=5e-4)


def test_the_synthetic_task_is_seen_in_a_sample():
    task = synthetic_task(200_000, random_state=3)
    n = len(task.y)
    p = torch.sigmoid(task.x[:, 0])
    assert abs(float(task.y.mean()) - task.positive_rate) < 4 * float(task.y.std()) / math.sqrt(n)
    right = ((p > 0.5) == (task.y > 0.5)).double()
    assert abs(float(right.mean()) - task.bayes_accuracy) < 4 * float(right.std()) / math.sqrt(n)
    bins = (task.s * 100).long()
    means = torch.zeros(100, dtype=torch.float64).index_add(0, bins, p) / torch.bincount(
        bins, minlength=100
    )
    gap = float((means[bins] - p.mean()).abs().mean())
    assert gap == pytest.approx(task.mean_gap, abs=4 * float(p.std()) / math.sqrt(n) + 1e-4)
    assert float(torch.corrcoef(torch.stack([task.x[:, 1], task.s]))[0, 1]) == pytest.approx(
        0, abs=4 / math.sqrt(n)
    )


def test_independence_has_every_answer_zero():
    pair = gaussian_pair(1, correlation=0.0)
    assert (pair.hsic(), pair.mutual_information, pair.mean_gap, pair.distance_correlation) == (
        0,
        0,
        0,
        0,
    )
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
