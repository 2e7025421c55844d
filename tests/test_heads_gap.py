"""The gap that no head of a representation exceeds: bound, interval, and what rows hide."""

from __future__ import annotations

import numpy as np
import pytest
from pytest import approx
from scipy.stats import chi2_contingency

from frhsic.estimators.heads_gap import (
    MOST_WINDOWS,
    WINDOW_ROWS,
    HeadsTest,
    explained_shares,
)

SEEDS = range(4)


def random_law(prototypes: int, levels: int, rng: np.random.Generator) -> np.ndarray:
    """P(z, s), from nearly independent to nearly certain."""
    return rng.dirichlet(np.full(prototypes * levels, rng.choice([0.2, 1, 20]))).reshape(
        prototypes, levels
    )


def orthonormal(mass: np.ndarray) -> np.ndarray:
    """All functions of S with mean zero at its levels, (levels, levels − 1)."""
    root = np.sqrt(mass)
    basis = np.linalg.qr(np.column_stack([root, np.eye(len(mass))[:, 1:]]))[0]
    return basis[:, 1:] / root[:, None]


def chi_square(law: np.ndarray) -> float:
    expected = np.outer(law.sum(axis=1), law.sum(axis=0))
    return ((law - expected) ** 2 / expected).sum()


def drawn(law: np.ndarray, n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    return np.unravel_index(rng.choice(law.size, size=n, p=law.ravel()), law.shape)


@pytest.mark.parametrize("seed", SEEDS)
def test_heads_gap_is_pearsons_statistic_without_its_noise(seed):
    rng = np.random.default_rng(seed)
    law = random_law(4, 3, rng)
    z, s = drawn(law, 500, rng)
    table = np.zeros((4, 3))
    np.add.at(table, (z, s), 1 / 500)
    table = table[table.sum(axis=1) > 0]
    excess = chi_square(table) - 2 * (len(table) - 1) / 500
    gap = HeadsTest.from_rows(z, orthonormal(law.sum(axis=0))[s], np.ones(500)).gap()
    assert gap.value == approx(np.sqrt(max(excess, 0)) / 2)
    assert gap.low <= gap.value <= gap.high


def test_heads_gap_depends_on_the_span_of_functions_alone():
    rng = np.random.default_rng(0)
    z, s = drawn(random_law(5, 4, rng), 400, rng)
    phi = np.eye(4)[s]
    weights = rng.uniform(size=400)
    expected = HeadsTest.from_rows(z, phi[:, :3], weights).gap()
    mixed = HeadsTest.from_rows(-z, phi @ rng.normal(size=(4, 4)), 7 * weights).gap()
    assert [mixed.value, mixed.low, mixed.high] == approx(
        [expected.value, expected.low, expected.high]
    )


def test_a_representation_without_choice_or_an_attribute_without_levels_has_no_gap():
    phi = np.random.default_rng(0).normal(size=(50, 2))
    assert HeadsTest.from_rows(np.zeros(50), phi, np.ones(50)).gap().high == 0
    assert HeadsTest.from_rows(np.arange(50) % 3, np.ones((50, 2)), np.ones(50)).gap().high == 0


@pytest.mark.parametrize("strength", [0.0, 0.1, 0.4, 1.0])
def test_the_upper_end_covers_the_bound_of_the_population(strength):
    rng = np.random.default_rng(0)
    dependent = random_law(6, 5, rng)
    independent = np.outer(dependent.sum(axis=1), dependent.sum(axis=0))
    law = strength * dependent + (1 - strength) * independent
    bound = np.sqrt(chi_square(law)) / 2
    phi = orthonormal(law.sum(axis=0))
    covered = []
    for _ in range(300):
        z, s = drawn(law, 1000, rng)
        covered.append(HeadsTest.from_rows(z, phi[s], np.ones(1000)).gap().high >= bound - 1e-12)
    assert np.mean(covered) >= 0.95 - 2 * np.sqrt(0.95 * 0.05 / 300)


def test_the_upper_end_under_independence_is_that_of_the_page_of_theory():
    """32 prototypes, and a window of S for each 100 rows, at most 20."""
    for rows, windows, floor in ((1000, 10, 0.104), (3000, 20, 0.071)):
        degrees = 31 * (windows - 1)
        for statistic in (degrees, 0.5 * degrees):
            assert HeadsTest(statistic, degrees, rows, 32).gap().high == approx(floor, abs=5e-4)
    assert (MOST_WINDOWS, WINDOW_ROWS) == (20, 100)


def test_what_rows_hide_is_added_to_estimate_and_upper_end():
    test = HeadsTest(statistic=90.0, degrees=30, rows=2000.0, cells=11)
    plain = test.gap()
    # one function that x tells to 40 %, solved on 500 rows, and one that it does not tell
    gap = test.gap(0.95, np.array([0.4, 0.0]), 500)
    hidden = 10 * (0.6 / 2000 + 0.4 / 500)
    assert gap.value == approx(np.sqrt(plain.value**2 + hidden / 4))
    assert gap.high == approx(np.sqrt(plain.high**2 + hidden / 4))
    assert gap.low == plain.low
    few = test.gap(0.95, np.array([0.001]), 500)  # no more than x tells
    assert few.value == approx(np.sqrt(plain.value**2 + 0.001 / 4))


def test_the_explained_share_is_that_of_unseen_rows():
    rng = np.random.default_rng(0)
    mean = rng.normal(size=(2000, 1))
    functions = np.column_stack([mean + rng.normal(size=(2000, 1)), rng.normal(size=2000)])
    means = np.column_stack([mean, 0.3 * rng.normal(size=2000)])
    shares = explained_shares(functions, means, np.ones(2000))
    assert shares == approx([0.5, 0.0], abs=0.04)
    assert shares[1] == 0  # worse than the mean
    signs = np.tile([[1.0], [-1.0]], (3, 1))
    assert explained_shares(signs, 0 * signs, np.ones(6)) == 0
    assert explained_shares(signs, 0.5 * signs, np.ones(6)) == approx(
        [0.75]
    )  # the same for every row


def test_the_pvalue_is_that_of_pearsons_test():
    rng = np.random.default_rng(0)
    z, s = drawn(random_law(4, 3, rng), 200, rng)
    table = np.zeros((4, 3))
    np.add.at(table, (z, s), 1)
    expected = chi2_contingency(table[table.sum(axis=1) > 0], correction=False).pvalue
    assert HeadsTest.from_rows(z, np.eye(3)[s], np.ones(200)).pvalue == approx(expected, abs=1e-12)


def test_rows_of_a_group_count_as_one():
    """Copies of a row in one group tell no more than the row; alone, they would be news."""
    rng = np.random.default_rng(0)
    z, s = drawn(random_law(4, 3, rng), 300, rng)
    phi = np.eye(3)[s]
    once = HeadsTest.from_rows(z, phi, np.ones(300))
    copies = np.repeat(np.arange(300), 4)
    grouped = HeadsTest.from_rows(z[copies], phi[copies], np.ones(1200), copies)
    assert grouped.rows == approx(once.rows, rel=0.05)
    assert grouped.gap().high == approx(once.gap().high, rel=0.05)
    assert HeadsTest.from_rows(z[copies], phi[copies], np.ones(1200)).rows == approx(1200)
