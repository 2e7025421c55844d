"""The test of conditional independence: its statistic by the definition, limits, level, power, ties
and bad input.
"""

import numpy as np
import pytest
import torch
from pytest import approx
from scipy.stats import norm

from frhsic.independence import conditional, conditional_test, permutation_test
from frhsic.kernels import Gaussian, Linear


def test_the_ridge_has_the_least_leave_one_out_error_and_residuals_multiply_as_in_the_regression():
    """Kernel ridge regression fitted anew without each row chooses the same ridge.

    Expected products of residuals are M diag(v) M' off its diagonal, M the matrix that takes
    features to residuals and v the noise of each row.
    """
    y = torch.linspace(0, 1, 8, dtype=torch.float64)[:, None]
    x = torch.randn(8, 1, generator=torch.Generator().manual_seed(1)).double()
    x = x - x.mean()
    k, eye = Gaussian(0.4)(y, y), torch.eye(8, dtype=torch.float64)
    top, rests = torch.linalg.eigvalsh(k)[-1], [[j for j in range(8) if j != i] for i in range(8)]
    errors = {}
    for ridge in conditional.RIDGES:
        fits = [
            k[i, a] @ torch.linalg.solve((k + ridge * top * eye)[a][:, a], x[a])
            for i, a in enumerate(rests)
        ]
        errors[ridge] = float((x - torch.stack(fits)).square().sum())
    basis = conditional._basis(y, 0.4)
    assert [conditional._left_out_error(x, basis, r) for r in errors] == approx(
        list(errors.values()), rel=1e-4
    )
    regressed, _, _ = conditional._regressed(x, Linear(), "z", [basis], y)
    m = eye - k @ torch.linalg.inv(k + min(errors, key=errors.get) * top * eye)
    assert regressed.residual[:, 0].abs().numpy() == approx((m @ x)[:, 0].abs().numpy(), rel=1e-4)
    noise = regressed.residual.square().sum(dim=1) / m.diagonal()
    expected, value = m @ torch.diag(noise) @ m.mT, regressed.left @ regressed.right.mT
    assert value[eye == 0].numpy() == approx(expected[eye == 0].numpy(), rel=1e-4, abs=1e-8)


def test_what_is_left_along_y_is_a_sum_over_neighbours():
    residual, left, right = torch.randn(
        3, 7, 2, generator=torch.Generator().manual_seed(3)
    ).double()
    products = [float(residual[i] @ residual[i + 1]) for i in range(6)]
    expected = [float(left[i] @ right[i + 1]) for i in range(6)]
    score = (sum(products) - sum(expected)) / np.linalg.norm(products)
    assert conditional._left_along(conditional._Regressed(residual, left, right)) == approx(
        norm.sf(score), rel=1e-9
    )
    small = conditional._Regressed(
        1e-3 * residual, 1e-3 * left, 1e-3 * right
    )  # the unit does not matter
    assert conditional._left_along(small) == approx(norm.sf(score), rel=1e-9)
    assert (
        conditional._left_along(conditional._Regressed(0 * residual, left, right)) == 1
    )  # nothing is left


def test_jumps_are_added_to_a_basis_where_the_means_jump():
    rng = np.random.default_rng(0)
    ranks = torch.from_numpy((np.arange(60) + 0.5) / 60)[:, None]
    features = torch.from_numpy((np.arange(60) >= 24) + 0.1 * rng.normal(size=60))[:, None]
    steps = conditional._steps(features, ranks)
    assert steps.T.tolist() == [[1.0] * 24 + [0.0] * 36, [0.0] * 24 + [1.0] * 36]
    assert conditional._steps(torch.from_numpy(rng.normal(size=(60, 1))), ranks).shape[1] == 1
    gram = Gaussian(0.4)(ranks, ranks)
    both = steps @ steps.T + 30 * gram / torch.linalg.eigvalsh(gram)[-1]
    basis = conditional._with_steps(conditional._basis(ranks, 0.4), steps)
    top = torch.linalg.eigvalsh(both)[-1]
    assert (top * (basis.vectors * basis.values) @ basis.vectors.T).numpy() == approx(
        both.numpy(), abs=1e-6
    )
    bases = [conditional._basis(ranks, width) for width in (0.05, 0.4)]
    price = 1 + 2 * np.log(60) / 60  # one jump
    errors = {
        (jumps, number, ridge): (
            (price if jumps else 1)
            * conditional._left_out_error(features - features.mean(), one, ridge)
        )
        for jumps in (False, True)
        for number, one in enumerate(
            [conditional._with_steps(b, steps) for b in bases] if jumps else bases
        )
        for ridge in conditional.RIDGES
    }
    jumps, number, ridge = min(errors, key=errors.get)
    chosen = conditional._with_steps(bases[number], steps) if jumps else bases[number]
    fitted = chosen.vectors @ (
        (chosen.values / (chosen.values + ridge))[:, None] * (chosen.vectors.T @ features)
    )
    residual = conditional._regressed(features, Linear(), "z", bases, ranks)[0].residual
    mean = chosen.vectors @ (
        (chosen.values / (chosen.values + ridge)) * (chosen.vectors.T @ torch.ones(60).double())
    )
    expected = features[:, 0] - features.mean() - fitted[:, 0] + features.mean() * mean
    assert residual[:, 0].abs().numpy() == approx(expected.abs().numpy(), abs=1e-9)
    assert jumps
    assert (
        conditional._basis(
            torch.linspace(0, 1, 150, dtype=torch.float64)[:, None], 1e-3
        ).vectors.shape[1]
        == 100
    )


def test_the_test_is_its_statistic_under_random_signs():
    z, s, y = samples("direct", 40, 0)
    kernels = Gaussian(1.0), Gaussian(2.0)
    result = conditional_test(z, s, y, *kernels, resamples=39, random_state=5, level=0.1)
    order = np.lexsort((s, z, y))
    ranks = torch.from_numpy((np.arange(40) + 0.5) / 40)[:, None]
    values = torch.from_numpy((y[order] - np.sort(y)[19]) / y.std())[:, None]
    bases = [conditional._basis(ranks, width) for width in (0.05, 0.1, 0.2, 0.4)]
    bases += [conditional._basis(values, width) for width in (0.2, 0.4, 0.8)]
    r, q = (
        conditional._regressed(torch.from_numpy(x[order])[:, None], kernel, "x", bases, ranks)[0]
        for x, kernel in zip((z, s), kernels)
    )
    near = Gaussian(0.2)(ranks, ranks)
    left, right = r.residual @ r.residual.T * near, q.residual @ q.residual.T
    explained = near * (r.left @ r.right.T) * (q.left @ q.right.T)
    observed = float((left * right).sum() - explained.sum() + explained.trace()) / 1600
    signs = (
        2.0 * torch.randint(2, (40, 39), generator=torch.Generator().manual_seed(5)).double() - 1
    )
    null = ((signs * (left * right @ signs)).sum(0) / 1600).numpy()
    size = float(left.norm() * right.norm()) / 1600
    assert result.pvalue == (1 + (null >= observed).sum()) / 40
    assert (result.statistic, result.threshold) == approx((observed, np.sort(null)[-4]), rel=1e-6)
    assert (result.effect_size, result.effect_size_null) == approx(
        (observed / size, null.mean() / size), rel=1e-6
    )
    assert (result.null_mean, result.null_standard_deviation) == approx(
        (null.mean(), null.std(ddof=1)), rel=1e-6
    )
    assert (result.n, result.seed, result.level, result.caution) == (40, 5, 0.1, None)
    assert result.kernels == tuple(map(repr, kernels))
    assert result.bandwidth_rules == ("given", "given")


def test_a_kernel_that_sees_nothing_finds_nothing():
    result = conditional_test(
        *samples("direct", 40, 0), Gaussian(1e12), resamples=19, random_state=0
    )
    assert (result.statistic, result.effect_size, result.effect_size_null, result.pvalue) == (
        0,
        0,
        0,
        1,
    )


def samples(kind, n, seed):
    rng = np.random.default_rng([seed, n])
    y, e, d = rng.normal(size=(3, n))
    match kind:
        case "linear":
            return y + e, y + d, y
        case "skewed":
            return np.exp(y + 0.5 * e), np.exp(d - y), np.exp(2 * y)
        case "decisions":
            return (y + e > 1) * 1.0, np.floor(3 * y + d), y
        case "zeros":
            y = np.maximum(y, 0)
            return y + 0.5 * e, y + 0.5 * d, y
        case "direct":
            return y + e, y + d + 0.5 * e, y
        case _:  # the sign of the dependence follows y
            return y + e, y + d + 0.8 * e * np.sign(y), y


@pytest.mark.parametrize(
    "kind",
    [
        "skewed",
        *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("linear", "decisions", "zeros")),
    ],
)
def test_dependence_through_y_alone_is_rejected_about_as_often_as_the_level(kind):
    tests = [
        conditional_test(*samples(kind, 120, seed), resamples=99, random_state=seed)
        for seed in range(30)
    ]
    assert sum(test.rejected for test in tests) <= 6  # 1.5 expected; P(more than 6) = .001
    z, s, _ = samples(kind, 120, 0)
    assert permutation_test(
        z, s, resamples=99, random_state=0
    ).rejected  # not independent without y


def test_jumps_of_the_conditional_means_are_not_taken_for_dependence():
    """The level with four errors of 30 draws; without jumps in the regression most are rejected."""
    rejected = 0
    for seed in range(30):
        rng = np.random.default_rng(seed)
        y = rng.normal(size=200)
        z, s = (y > 0) + 0.1 * rng.normal(size=(2, 200))
        rejected += conditional_test(z, s, y, resamples=39, random_state=seed).rejected
    assert rejected / 30 <= 0.05 + 4 * np.sqrt(0.05 * 0.95 / 30)


@pytest.mark.parametrize("kind", ["direct", "signed"])
def test_direct_dependence_is_found(kind):
    for seed in range(4):
        assert (
            conditional_test(*samples(kind, 300, seed), resamples=99, random_state=seed).pvalue
            <= 0.05
        )


@pytest.mark.parametrize("kind", ["linear", "direct"])
def test_means_that_the_regressions_find_raise_no_caution(kind):
    cautions = [
        conditional_test(*samples(kind, 150, i), resamples=19, random_state=i).caution
        for i in range(8)
    ]
    assert cautions.count(None) >= 7


def test_means_that_the_regressions_do_not_find_raise_a_caution():
    """Thirty oscillations over 150 rows are too many for the regressions, but neighbours still
    agree.
    """
    rng = np.random.default_rng(0)
    y = rng.uniform(size=150)
    z, s = np.sin(190 * y) + 0.1 * rng.normal(size=(2, 150))
    assert "may be too small" in conditional_test(z, s, y, resamples=19, random_state=0).caution
    assert (
        conditional_test(z, rng.normal(size=150), y, resamples=19, random_state=0).caution is None
    )


def test_units_and_order_do_not_matter():
    z, s, y = samples("direct", 80, 0)
    value = conditional_test(z, s, y, resamples=19, random_state=0)
    moved = conditional_test(3 * z - 1, s / 7, 1e3 * y + 5, resamples=19, random_state=0)
    assert moved.statistic == approx(value.statistic, rel=1e-6)
    order = np.random.default_rng(0).permutation(80)
    again = conditional_test(z[order], s[order], y[order], resamples=19, random_state=0)
    assert again.statistic == approx(value.statistic, rel=1e-4)
    assert 0 <= value.effect_size_null < value.effect_size <= 1


def test_a_score_that_is_y_itself_is_separated():
    _, s, y = samples("linear", 150, 0)
    assert not conditional_test(y, s, y, resamples=99, random_state=0).rejected


def test_twenty_rows_are_enough():
    assert conditional_test(*(x[:20] for x in samples("linear", 40, 0)), resamples=2).n == 20
