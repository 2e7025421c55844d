"""The bound on the gap between groups of S: its definition, its size, and how often it fails."""

from __future__ import annotations

import numpy as np
import pytest
from pytest import approx
from scipy.stats import binom

from frhsic.certificates import binned_gap_bound

EDGES = np.arange(1, 10) / 10


def draw(law: str, n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, float]:
    """Scores, S, and the gap between ten groups of equal probability."""
    s = rng.uniform(size=n)
    group = np.minimum((10 * s).astype(int), 9)
    means = {
        "no gap": np.full(10, 0.3),
        "linear": 0.3 + 0.02 * np.arange(10),
        "one group": np.where(np.arange(10) == 4, 0.6, 0.2),
        "decisions": np.where(np.arange(10) < 5, 0.4, 0.6),
    }[law]
    truth = float(np.abs(means - means.mean()).mean())
    if law == "decisions":
        return (rng.random(n) < means[group]) * 1.0, s, truth
    return rng.beta(4 * means[group], 4 * (1 - means[group])), s, truth


def test_the_gap_is_its_definition():
    rng = np.random.default_rng(0)
    f, s = rng.uniform(size=50), rng.uniform(size=50)
    expected = sum(
        abs(f[(s >= a) & (s < a + 0.25)].mean() - f.mean()) * np.mean((s >= a) & (s < a + 0.25))
        for a in (0, 0.25, 0.5, 0.75)
    )
    assert binned_gap_bound(f, s, [0.25, 0.5, 0.75]).bounded == approx(expected)


@pytest.mark.parametrize("law", ["no gap", "linear", "one group", "decisions"])
def test_it_fails_at_most_as_often_as_it_says(law):
    """At δ = .5, so that failures could be seen; at .05 there are none in as many draws."""
    rng = np.random.default_rng(0)
    draws = [draw(law, 300, rng) for _ in range(400)]
    failures = {
        delta: sum(truth > float(binned_gap_bound(f, s, EDGES, delta=delta)) for f, s, truth in draws)
        for delta in (0.05, 0.5)
    }
    assert all(failures[delta] <= binom.ppf(0.999, 400, delta) for delta in failures)


def test_the_step_of_the_proof_that_bounds_the_variance():
    """E h² is at most twice the variance of f, whatever the signs: by enumeration of all pairs."""
    rng = np.random.default_rng(0)
    f, signs = rng.uniform(size=30), rng.choice([-1.0, 1.0], size=30)
    h = (signs[:, None] - signs) * (f[:, None] - f) / 2
    assert (h**2).mean() <= 2 * f.var()
    assert h.sum() / (30 * 29) == approx(np.cov(signs, f)[0, 1])
    assert h.min() >= -1
    sample = binned_gap_bound(f, signs, [0.0])
    assert 30 / 29 * sample.bounded >= abs(h.sum() / (30 * 29)) - 1e-12


@pytest.mark.parametrize(("n", "most"), [(1_000, 0.1), (5_000, 0.05), (20_000, 0.025)])
def test_it_says_something_at_ordinary_numbers_of_rows(n, most):
    f, s, _ = draw("no gap", n, np.random.default_rng(0))
    assert 0 < float(binned_gap_bound(f, s, EDGES)) < most


def test_increasing_maps_of_s_and_their_edges_change_nothing():
    f, s, _ = draw("linear", 200, np.random.default_rng(0))
    assert float(binned_gap_bound(f, np.exp(s), np.exp(EDGES))) == approx(float(binned_gap_bound(f, s, EDGES)))


def test_bad_input():
    f, s, _ = draw("linear", 50, np.random.default_rng(0))
    for arguments in ((2 * f, s, EDGES), (f, s[:-1], EDGES), (f, s, [0.5, 0.5]), (f, s, [])):
        with pytest.raises(ValueError, match=r"scores|edges"):
            binned_gap_bound(*arguments)
