"""Made data: the answers they carry, held against the definition, quadrature and large samples."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from frhsic.dependence.grams import hsic_biased, hsic_unbiased
from frhsic.kernels import Gaussian
from frhsic_paper import synthetic
from frhsic_paper.synthetic import (
    circle_example,
    discrete_groups,
    gaussian_pair,
    linear_causal_model,
    synthetic_task,
    xor_example,
)


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
    assert gaussian_pair(1, correlation=0.6).hsic(sigma, sigma) * sigma**4 == pytest.approx(0.36, rel=1e-6)


def test_published_constants_of_the_gaussian_pair():
    pair = gaussian_pair(1, correlation=0.5)
    assert pair.hsic() == pytest.approx(0.0107633, abs=5e-8)  # an independent computation for the paper's figure
    assert pair.eipm() == pytest.approx(0.1995, abs=5e-5)
    assert pair.mutual_information == pytest.approx(0.5 * math.log(4 / 3), rel=1e-12)


def test_hsic_of_a_gaussian_sample_is_near_the_truth(dtype):
    pair = gaussian_pair(40 * 250, correlation=0.5, random_state=0, dtype=dtype)
    kernel = Gaussian(1.0)
    z, s = pair.z.view(40, 250, 1), pair.s.view(40, 250, 1)
    values = torch.stack([hsic_unbiased(kernel(a, a), kernel(b, b)) for a, b in zip(z, s)]).double()
    error = float(values.std()) / math.sqrt(40)
    assert abs(float(values.mean()) - pair.hsic()) < 4 * error
    assert error < 0.1 * pair.hsic()


def test_distance_correlation_has_the_limits_of_the_theorem():
    def of(r: float) -> float:
        return gaussian_pair(1, correlation=r).distance_correlation

    assert of(1e-4) / 1e-4 == pytest.approx(0.89066, abs=2e-4)  # Székely et al. (2007), Theorem 7 (iii)
    assert of(1 - 1e-12) == pytest.approx(1.0, abs=1e-5)
    assert of(-0.4) == of(0.4) <= 0.4


def test_the_mean_gap_of_the_gaussian_pair_is_seen_in_a_sample():
    pair = gaussian_pair(200_000, correlation=-0.3, random_state=1)
    gap = (0.3 * pair.s).abs()
    assert abs(float(gap.mean()) - pair.mean_gap) < 4 * float(gap.std()) / math.sqrt(len(gap))
    assert float(torch.corrcoef(torch.stack([pair.z, pair.s]))[0, 1]) == pytest.approx(-0.3, abs=4 / math.sqrt(2e5))


def test_the_synthetic_task_has_the_accuracies_that_are_known_of_it():
    task = synthetic_task(1)
    assert task.bayes_accuracy == pytest.approx(0.629, abs=5e-4)  # an independent computation for the paper's ablation
    assert task.positive_rate == pytest.approx(0.618, abs=5e-4)


def test_the_synthetic_task_is_seen_in_a_sample():
    task = synthetic_task(200_000, random_state=3)
    n = len(task.y)
    p = torch.sigmoid(task.x[:, 0])
    assert abs(float(task.y.mean()) - task.positive_rate) < 4 * float(task.y.std()) / math.sqrt(n)
    right = ((p > 0.5) == (task.y > 0.5)).double()
    assert abs(float(right.mean()) - task.bayes_accuracy) < 4 * float(right.std()) / math.sqrt(n)
    bins = (task.s * 100).long()
    means = torch.zeros(100, dtype=torch.float64).index_add(0, bins, p) / torch.bincount(bins, minlength=100)
    gap = float((means[bins] - p.mean()).abs().mean())
    assert gap == pytest.approx(task.mean_gap, abs=4 * float(p.std()) / math.sqrt(n) + 1e-4)
    assert float(torch.corrcoef(torch.stack([task.x[:, 1], task.s]))[0, 1]) == pytest.approx(0, abs=4 / math.sqrt(n))


def test_the_synthetic_task_as_a_dataset_is_the_same_sample():
    task = synthetic_task(50, random_state=0, dtype=torch.float32)
    data = task.dataset()
    assert (data.n, data.d, data.task) == (50, 2, "binary")
    assert data.s.tolist() == task.s.tolist()


def test_a_linear_counterfactual_keeps_the_noise(dtype):
    model = linear_causal_model(40, effect=(1.0, -2.0, 0.0), random_state=0, dtype=dtype)
    moved = model.counterfactual(0.7)
    noise = model.x - model.s[:, None] * model.effect
    torch.testing.assert_close(moved - 0.7 * model.effect, noise)
    torch.testing.assert_close(model.counterfactual(model.s), model.x)


def test_what_is_counterfactually_fair_is_independent_of_s():
    model = linear_causal_model(4000, random_state=0)
    fair = model.x @ model.invariant
    torch.testing.assert_close(model.counterfactual(-1.5) @ model.invariant, fair)
    correlations = torch.corrcoef(torch.cat([fair, model.s[:, None]], dim=1).T)[-1, :-1]
    assert float(correlations.abs().max()) < 4 / math.sqrt(4000)
    direction = model.invariant[:, 0].tolist()
    assert model.correlation(direction) == pytest.approx(0, abs=1e-12)


def test_the_correlation_of_a_linear_representation_is_the_one_stated():
    model = linear_causal_model(100_000, effect=(1.0, 0.5, 0.0), random_state=2)
    v = (0.5, -1.0, 2.0)
    z = model.x @ torch.tensor(v, dtype=torch.float64)
    observed = float(torch.corrcoef(torch.stack([z, model.s]))[0, 1])
    assert observed == pytest.approx(model.correlation(v), abs=4 / math.sqrt(1e5))
    assert model.correlation((1.0, 0.0, 0.0)) == pytest.approx(1 / math.sqrt(2), rel=1e-12)


def test_exclusive_or_is_independent_of_s_and_yet_every_counterfactual_differs():
    z, s = torch.tensor([0.0, 1.0, 1.0, 0.0]), torch.tensor([0.0, 0.0, 1.0, 1.0])  # the whole population, once each
    k, l = Gaussian(0.5)(z[:, None], z[:, None]), Gaussian(0.5)(s[:, None], s[:, None])
    assert float(hsic_biased(k.double(), l.double())) == pytest.approx(0.0, abs=1e-15)
    xor = xor_example(4000, random_state=0)
    assert ((xor.counterfactual(1) - xor.counterfactual(0)).abs() == xor.counterfactual_change).all()
    factual = torch.where(xor.s == 1, xor.counterfactual(1), xor.counterfactual(0))
    assert torch.equal(factual, xor.z)
    for pair in ((0, 0), (0, 1), (1, 0), (1, 1)):
        share = float(((xor.z == pair[0]) & (xor.s == pair[1])).double().mean())
        assert share == pytest.approx(0.25, abs=4 * math.sqrt(0.25 * 0.75 / 4000))


def test_the_circle_does_the_same_for_a_continuous_attribute(dtype):
    circle = circle_example(20_000, random_state=0, dtype=dtype)
    cells = (circle.z * 8).long() * 8 + (circle.s * 8).long()
    counts = torch.bincount(cells, minlength=64).double()
    expected = len(circle.z) / 64
    assert float(((counts - expected) ** 2 / expected).sum()) < 63 + 4 * math.sqrt(2 * 63)  # chi squared, 4 sd
    torch.testing.assert_close(
        torch.remainder(circle.counterfactual(0.3) - circle.u, 1.0), torch.full_like(circle.u, 0.3)
    )
    again = torch.remainder(circle.u + circle.s, 1.0)
    assert torch.equal(again, circle.z)


def test_hsic_of_groups_is_the_definition_by_sums_over_groups():
    groups = discrete_groups(1, means=(-1.0, 0.3, 2.0), probabilities=(0.2, 0.5, 0.3), values=(0.0, 1.0, 4.0))
    p, mu, v = (np.array(x) for x in (groups.probabilities, groups.means, groups.values))
    x, w = hermite()

    def k(a: int, b: int) -> float:  # E k(Z, Z') for Z in group a, Z' in group b, apart
        return float((w * np.exp(-((mu[a] - mu[b] + math.sqrt(2) * x) ** 2) / (2 * 1.3**2))).sum())

    def gram_s(a: int, b: int) -> float:
        return math.exp(-((v[a] - v[b]) ** 2) / (2 * 0.8**2))

    every = range(3)
    joint = sum(p[a] * p[b] * k(a, b) * gram_s(a, b) for a in every for b in every)
    mean_k = sum(p[a] * p[b] * k(a, b) for a in every for b in every)
    mean_l = sum(p[a] * p[b] * gram_s(a, b) for a in every for b in every)
    cross = sum(p[a] * sum(p[b] * k(a, b) for b in every) * sum(p[b] * gram_s(a, b) for b in every) for a in every)
    assert groups.hsic(1.3, 0.8) == pytest.approx(joint + mean_k * mean_l - 2 * cross, rel=1e-9)


def test_hsic_of_a_sample_of_groups_is_near_the_truth(dtype):
    groups = discrete_groups(30 * 200, random_state=4, dtype=dtype)
    kernel = Gaussian(1.0)
    z, s = groups.z.view(30, 200, 1), groups.s.view(30, 200, 1)
    values = torch.stack([hsic_unbiased(kernel(a, a), kernel(b, b)) for a, b in zip(z, s)]).double()
    assert abs(float(values.mean()) - groups.hsic()) < 4 * float(values.std()) / math.sqrt(30)


def test_hsic_of_two_groups_is_a_multiple_of_their_mmd():
    groups = discrete_groups(1, means=(0.0, 1.5), probabilities=(0.3, 0.7))
    a, b = groups.conditional_mmd(1.0)  # from the mixture: 0.7 and 0.3 times the distance between the groups
    assert a / 0.7 == pytest.approx(b / 0.3, rel=1e-9)
    between = (a / 0.7) ** 2
    assert groups.hsic(1.0, 2.0) == pytest.approx((0.3 * 0.7) ** 2 * 2 * (1 - math.exp(-1 / 8)) * between, rel=1e-9)
    assert groups.eipm(1.0) == pytest.approx(0.3 * a + 0.7 * b, rel=1e-12)


def test_the_information_of_groups_runs_from_nothing_to_the_entropy_of_s():
    p = (0.25, 0.75)
    entropy = -sum(q * math.log(q) for q in p)
    assert discrete_groups(1, means=(1.0, 1.0), probabilities=p).mutual_information == pytest.approx(0, abs=1e-10)
    assert discrete_groups(1, means=(0.0, 30.0), probabilities=p).mutual_information == pytest.approx(entropy, rel=1e-9)
    near, far = (discrete_groups(1, means=(0.0, m), probabilities=p).mutual_information for m in (1.0, 2.0))
    assert 0 < near < far < entropy


def test_independence_has_every_answer_zero():
    pair = gaussian_pair(1, correlation=0.0)
    groups = discrete_groups(1, means=(2.0, 2.0, 2.0))
    assert (pair.hsic(), pair.mutual_information, pair.mean_gap, pair.distance_correlation) == (0, 0, 0, 0)
    assert pair.eipm() == pytest.approx(0, abs=1e-7)
    assert groups.hsic() == pytest.approx(0, abs=1e-15)
    assert (groups.mean_gap, groups.eipm()) == pytest.approx((0, 0), abs=1e-7)


GENERATORS = (gaussian_pair, synthetic_task, linear_causal_model, xor_example, circle_example, discrete_groups)


@pytest.mark.parametrize("generator", GENERATORS)
def test_a_seed_gives_the_same_sample_and_another_seed_another(generator, dtype):
    first, again, other = (generator(30, random_state=seed, dtype=dtype) for seed in (1, 1, 2))
    assert torch.equal(first.s, again.s)
    assert not torch.equal(first.s, other.s)
    assert first.s.dtype == dtype


@pytest.mark.parametrize("generator", GENERATORS)
def test_a_sample_has_at_least_one_row(generator):
    with pytest.raises(ValueError, match="needs at least 1 rows"):
        generator(0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: gaussian_pair(5, correlation=1.0), "strictly between"),
        (lambda: gaussian_pair(5).hsic(0.0), "bandwidth_z=0.0"),
        (lambda: discrete_groups(5, means=(1.0,)), "at least two"),
        (lambda: discrete_groups(5, probabilities=(0.5, 0.5, 0.5)), "add up to 1"),
        (lambda: discrete_groups(5, values=(0.0, 0.0, 1.0)), "a different one for each"),
        (lambda: linear_causal_model(5, effect=(0.0, 0.0)), "zero in every feature"),
        (lambda: linear_causal_model(5, weight=(1.0,)), "equal length"),
        (lambda: linear_causal_model(5).counterfactual([1.0, 2.0]), "2 values, the sample 5"),
        (lambda: xor_example(5).counterfactual(2), "is 0 or 1"),
    ],
)
def test_parameters_that_make_no_sense_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_every_public_name_is_there():
    assert all(hasattr(synthetic, name) for name in synthetic.__all__)
