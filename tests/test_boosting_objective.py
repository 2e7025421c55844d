"""The objective of boosted trees against its definition, the library's own HSIC, and automatic differentiation."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from pytest import approx
from scipy.stats import rankdata

from frhsic.boosting import ParityObjective, midranks, objective
from frhsic.dependence import hsic
from frhsic.kernels import Gaussian, Linear, median_bandwidth, per_column_gaussians
from frhsic.penalties import HSIC

TASKS = ("binary", "regression")


def sample(n: int, task: str, columns: int = 1, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Raw scores, a target and skewed attributes with ties."""
    rng = np.random.default_rng(seed)
    s = np.exp(rng.normal(size=(n, columns))).round(1)
    f = s[:, 0] / 2 + rng.normal(size=n)
    y = (f + rng.normal(size=n) > 1).astype(float) if task == "binary" else f + rng.normal(size=n)
    return f, y, s


def prediction(f: np.ndarray, task: str) -> np.ndarray:
    return 1 / (1 + np.exp(-f)) if task == "binary" else f


def value_by_torch(f: torch.Tensor, y: np.ndarray, s: np.ndarray, weight: float, task: str, w: np.ndarray) -> Any:
    """The library's own loss and penalty on the same kernels."""
    target, ranks = torch.from_numpy(y), torch.from_numpy(rankdata(s, axis=0) / len(s))
    if task == "binary":
        losses = torch.nn.functional.binary_cross_entropy_with_logits(f, target, reduction="none")
        q = torch.sigmoid(f)
    else:
        losses, q = (f - target) ** 2, f
    penalty = HSIC(0 * Linear())
    penalty.prepare(ranks, torch.Generator())
    return torch.from_numpy(w / w.sum()) @ losses + weight * penalty(q[:, None], ranks, scores=q)


@pytest.mark.parametrize("task", TASKS)
def test_hsic_is_the_sum_over_pairs_of_its_definition(task: str):
    f, _, s = sample(8, task)
    q, ranks = prediction(f, task), rankdata(s[:, 0]) / 8
    width = median_bandwidth(ranks)
    total = 0.0
    for i in range(8):
        for j in range(8):
            kernel = math.exp(-((ranks[i] - ranks[j]) ** 2) / (2 * width**2))
            total += (q[i] - q.mean()) * (q[j] - q.mean()) * kernel
    assert objective(s, 1.0, task).hsic(f) == approx(total / 64, rel=1e-10)


@pytest.mark.parametrize("columns", [1, 2, 3])
@pytest.mark.parametrize("task", TASKS)
def test_hsic_is_that_of_the_library(task: str, columns: int):
    f, _, s = sample(400, task, columns)
    ranks = midranks(s)
    expected = hsic(prediction(f, task), ranks, Linear(), per_column_gaussians(ranks))
    assert objective(s, 1.0, task).hsic(f) == approx(float(expected), rel=1e-9)


@pytest.mark.parametrize("columns", [1, 2])
@pytest.mark.parametrize("task", TASKS)
def test_value_and_gradient_are_those_of_the_penalty_by_autograd(task: str, columns: int):
    f, y, s = sample(120, task, columns)
    w = np.random.default_rng(1).uniform(0, 3, size=120)
    raw = torch.from_numpy(f).requires_grad_()
    value = value_by_torch(raw, y, s, 70.0, task, w)
    (gradient,) = torch.autograd.grad(value, raw)
    penalized = objective(s, 70.0, task)
    assert penalized.value(f, y, w) == approx(value.item(), rel=1e-9)
    np.testing.assert_allclose(penalized.gradient(f, y, w), gradient, rtol=1e-7, atol=1e-11)


@pytest.mark.parametrize("task", TASKS)
def test_gradient_is_that_of_finite_differences(task: str):
    f, y, s = sample(40, task)
    penalized, step = objective(s, 30.0, task), 1e-5
    differences = [
        (penalized.value(f + step * e, y) - penalized.value(f - step * e, y)) / (2 * step) for e in np.eye(40)
    ]
    np.testing.assert_allclose(penalized.gradient(f, y), differences, rtol=1e-5, atol=1e-9)


@pytest.mark.parametrize("columns", [1, 2])
@pytest.mark.parametrize("task", TASKS)
def test_rows_without_s_skip_the_penalty(task: str, columns: int):
    """Value, gradient and curvature are those of the loss of all rows plus the penalty of the known ones."""
    f, y, s = sample(90, task, columns)
    known = np.random.default_rng(1).random(90) < 0.6
    some = np.where(known[:, None], s, np.nan)
    if columns == 2:
        some[~known, 1] = 1.0  # one missing attribute is enough
    penalized, loss, alone = objective(some, 70.0, task), objective(s, 0.0, task), objective(s[known], 70.0, task)
    no_loss = objective(s[known], 0.0, task)
    assert penalized.hsic(f) == approx(alone.hsic(f[known]), rel=1e-12)
    assert penalized.value(f, y) == approx(loss.value(f, y) + 70.0 * alone.hsic(f[known]), rel=1e-12)
    own = alone.value(f[known], y[known]) - alone.unbiased_value(f[known], y[known])
    assert penalized.value(f, y) - penalized.unbiased_value(f, y) == approx(own, rel=1e-9)
    for name in ("gradient", "curvature"):
        of_known = getattr(alone, name)(f[known], y[known]) - getattr(no_loss, name)(f[known], y[known])
        expected = getattr(loss, name)(f, y)
        expected[known] += of_known
        np.testing.assert_allclose(getattr(penalized, name)(f, y), expected, rtol=1e-9, atol=1e-12)


def test_the_factor_is_the_centered_gram_matrix_to_rounding_and_thin():
    s = np.random.default_rng(0).gamma(1.0, size=3000)
    penalized = objective(s, 1.0)
    assert penalized.factor.shape[1] < 25
    assert penalized.left_out < 1e-11
    some = np.arange(0, 3000, 30)
    ranks = torch.from_numpy(midranks(s))
    gram = Gaussian(median_bandwidth(ranks))(ranks, ranks).numpy()
    gram = gram - gram.mean(0) - gram.mean(1)[:, None] + gram.mean()
    np.testing.assert_allclose(
        (penalized.factor @ penalized.factor.T)[np.ix_(some, some)], gram[np.ix_(some, some)], atol=1e-9
    )


@pytest.mark.parametrize("task", TASKS)
def test_increasing_maps_of_an_attribute_change_nothing(task: str):
    f, y, s = sample(200, task)
    there, back = objective(s, 10.0, task), objective(np.exp(3 * s), 10.0, task)
    np.testing.assert_array_equal(there.gradient(f, y), back.gradient(f, y))


@pytest.mark.parametrize("task", TASKS)
def test_the_order_of_the_rows_does_not_matter(task: str):
    f, y, s = sample(200, task, columns=2)
    order = np.random.default_rng(1).permutation(200)
    a, b = objective(s, 10.0, task), objective(s[order], 10.0, task)
    assert a.value(f, y) == approx(b.value(f[order], y[order]), rel=1e-10)
    np.testing.assert_allclose(a.gradient(f, y)[order], b.gradient(f[order], y[order]), rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(a.curvature(f, y)[order], b.curvature(f[order], y[order]), rtol=1e-8)


def test_a_shift_of_a_regression_s_scores_leaves_hsic_and_a_factor_squares_it():
    f, _, s = sample(200, "regression")
    penalized = objective(s, 1.0, "regression")
    assert penalized.hsic(f + 1e6) == approx(penalized.hsic(f), rel=1e-6)
    assert penalized.hsic(3 * f) == approx(9 * penalized.hsic(f), rel=1e-12)


@pytest.mark.parametrize("weight", [1.0, 100.0, 1e4])
def test_a_tree_s_step_never_raises_the_objective_of_a_regression(weight: float):
    """Leaves sorted by s are the worst tree: rows that move together have the same attribute."""
    f, y, s = sample(300, "regression")
    for rate in (0.05, 0.3, 1.0):
        penalized = objective(s, weight, "regression", learning_rate=rate)
        for leaves in (2, 10, 100):
            leaf = np.argsort(np.argsort(s[:, 0])) * leaves // 300
            totals = [np.bincount(leaf, values) for values in penalized.summed(f, y)]
            after = f - rate * (totals[0] / totals[1])[leaf]
            assert penalized.value(after, y) <= penalized.value(f, y) * (1 + 1e-12)


def test_with_the_diagonal_as_curvature_such_a_step_raises_it():
    f, y, s = sample(300, "regression")
    penalized = objective(s, 1e4, "regression")
    gradient, _ = penalized.summed(f, y)
    diagonal = 2 + 2 * 1e4 * (penalized.factor**2).sum(axis=1) / 300
    leaf = np.argsort(np.argsort(s[:, 0])) // 30
    after = f - 0.1 * (np.bincount(leaf, gradient) / np.bincount(leaf, diagonal))[leaf]
    assert penalized.value(after, y) > 2 * penalized.value(f, y)


def test_without_own_terms_hsic_has_mean_zero_under_independence():
    rng = np.random.default_rng(0)
    s, y = rng.uniform(size=100), np.zeros(100)
    penalized, loss = objective(s, 1.0, "regression"), objective(s, 0.0, "regression")
    biased, unbiased = [], []
    for _ in range(400):
        f = rng.normal(size=100)
        biased.append(penalized.value(f, y) - loss.value(f, y))
        unbiased.append(penalized.unbiased_value(f, y) - loss.value(f, y))
    error = np.std(unbiased) / 20
    assert abs(np.mean(unbiased)) < 4 * error
    assert np.mean(biased) > 8 * error


def test_the_base_score_is_the_best_constant():
    _, y, s = sample(100, "binary")
    w = np.random.default_rng(0).uniform(size=100)
    penalized = objective(s, 5.0, "binary")
    best = penalized.base_score(y, w)
    around = [penalized.value(np.full(100, best + d), y, w) for d in (-0.01, 0.0, 0.01)]
    assert around[1] < min(around[0], around[2])
    assert objective(s, 5.0, "regression").base_score(y) == approx(y.mean())


class Data:
    """What both libraries hand to an objective."""

    def __init__(self, y: np.ndarray, w: np.ndarray | None):
        self.y, self.w = y, w

    def get_label(self) -> np.ndarray:
        return self.y

    def get_weight(self) -> np.ndarray | None:
        return self.w


def test_a_booster_gets_sums_over_rows():
    f, y, s = sample(50, "binary")
    w = np.random.default_rng(0).uniform(size=50)
    penalized = objective(s, 5.0)
    gradient, curvature = penalized(f, Data(y, w))
    np.testing.assert_allclose(gradient, w.sum() * penalized.gradient(f, y, w))
    np.testing.assert_allclose(curvature, w.sum() * penalized.curvature(f, y, w))
    for none in (None, np.array([])):
        np.testing.assert_allclose(penalized(f, Data(y, none))[0], 50 * penalized.gradient(f, y))


@pytest.mark.parametrize(
    "s",
    [
        np.repeat([0.0, 1.0], [450, 50]),
        np.repeat([0.0, 1.0, 7.0], [300, 150, 50]),
        np.r_[np.zeros(400), 1 + np.arange(100.0)],
    ],
    ids=["binary", "discrete", "zero-inflated"],
)
def test_attributes_with_atoms_have_a_kernel(s: np.ndarray):
    f = (s > 0) + 0.1 * np.random.default_rng(0).normal(size=500)
    penalized = objective(s, 1.0, "regression")
    assert penalized.hsic(f) > 20 * penalized.hsic(np.random.default_rng(1).permutation(f))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"task": "multiclass"}, "Several classes are not supported"),
        ({"weight": -1.0}, "zero or more"),
        ({"weight": math.inf}, "zero or more"),
        ({"learning_rate": 0.0}, "learning_rate"),
        ({"s": [1.0, 1.0, 1.0]}, "in every row"),
        ({"s": [1.0, math.nan, 1.0]}, "in every row"),
        ({"s": [math.nan, math.nan, math.nan]}, "NaN in each of its 3 rows"),
    ],
)
def test_bad_arguments_are_refused(arguments: dict[str, Any], message: str):
    with pytest.raises(ValueError, match=message):
        objective(**{"s": [1.0, 2.0, 3.0], "weight": 1.0} | arguments)


def test_rows_that_do_not_fit_are_refused():
    penalized: ParityObjective = objective([1.0, 2.0, 3.0], 1.0)
    with pytest.raises(ValueError, match="made for 3 rows"):
        penalized.value([0.0, 1.0], [0, 1])
    with pytest.raises(ValueError, match="other than 0 and 1"):
        penalized.value([0.0, 1.0, 2.0], [0, 1, 2])
    with pytest.raises(ValueError, match="both classes"):
        penalized.base_score([1, 1, 1])
    for weights in ([0.0, 0.0, 0.0], [1.0, -1.0, 1.0], [1.0, 1.0]):
        with pytest.raises(ValueError, match="sample_weight"):
            penalized.value([0.0, 1.0, 2.0], [0, 1, 1], weights)


def test_a_target_of_another_length_is_refused():
    loss = objective(np.arange(5.0), 1.0, "regression")
    with pytest.raises(ValueError, match=r"y has shape \(4,\) for 5 rows; pass one number for each"):
        loss.summed(np.zeros(5), np.zeros(4))
