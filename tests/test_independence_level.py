"""Level of the tests of independence: over independent draws each rejects as often as it says.

The long study (2,000 draws in each of 18 settings) is marked slow; a short one runs by default.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy import stats
from torch import Tensor

from frhsic.independence import gamma_test, permutation_test
from frhsic.independence._gram_pair import gram_pair
from frhsic.independence.permutation import cheapest_algorithm, permutations, tie_slack
from frhsic.kernels import Gaussian, Kernel
from frhsic.kernels.bandwidth import gaussian_at_median

KINDS = ["continuous", "integer", "skewed"]


def attribute(kind: str, n: int, draw: torch.Generator) -> Tensor:
    """A sensitive attribute: uniform, eight integer values (one pair in eight ties), or log-normal."""
    if kind == "continuous":
        return torch.rand(n, generator=draw, dtype=torch.float64)
    if kind == "integer":
        return torch.randint(8, (n,), generator=draw).double()
    return torch.randn(n, generator=draw, dtype=torch.float64).exp()


def permutations_reject(z: Tensor, s: Tensor, k: Kernel, l: Kernel, seed: int) -> bool:
    """The decision of permutation_test at .05 with 199 permutations, which falls as soon as ten of them exceed."""
    data = gram_pair(z, s, k, l, least=4)
    way = cheapest_algorithm(data)
    observed = float(way.statistics(torch.arange(data.n)[None])) - tie_slack(data, way)
    exceed = 0
    for block in permutations(data.n, 199, 20, torch.Generator().manual_seed(seed)):
        exceed += int((way.statistics(block) >= observed).sum())
        if exceed >= 10:
            return False
    return True


@pytest.mark.parametrize("d", [1, 50])
def test_stopping_early_does_not_change_the_decision(d: int) -> None:
    decisions = set()
    for seed in range(30):
        draw = torch.Generator().manual_seed(seed)
        z = torch.randn(60, d, generator=draw, dtype=torch.float64)
        s = torch.randn(60, generator=draw, dtype=torch.float64) + 0.3 * z[:, 0]
        k, l = gaussian_at_median(z), gaussian_at_median(s)
        whole = permutation_test(z, s, k, l, resamples=199, random_state=seed).rejected
        assert permutations_reject(z, s, k, l, seed) == whole
        decisions.add(whole)
    assert len(decisions) == 2


def rejections(n: int, d: int, kind: str, draws: int, *, seed: int) -> dict[str, int]:
    """How often each test rejects at .05 over independent draws of an isotropic normal Z and an independent S."""
    draw = torch.Generator().manual_seed(seed)
    count: Counter[str] = Counter()
    for index in range(draws):
        z = torch.randn(n, d, generator=draw, dtype=torch.float64)
        s = attribute(kind, n, draw)
        k, l = gaussian_at_median(z), gaussian_at_median(s)  # what None means, computed once
        if n * d < 50_000:  # the third moment takes O(n³) in many dimensions
            count["pearson moments"] += gamma_test(z, s, k, l).rejected
        count["permutations"] += permutations_reject(z, s, k, l, index)
    return dict(count)


def assert_within_the_band(count: dict[str, int], draws: int) -> None:
    low, high = stats.binom.interval(0.999, draws, 0.05)
    outside = {name: found / draws for name, found in count.items() if not low <= found <= high}
    assert not outside, f"rejection rates outside [{low / draws:.4f}, {high / draws:.4f}]: {outside}"


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("d", [1, 50])
@pytest.mark.parametrize("n", [50, 200, 1000])
def test_every_test_holds_its_level(n: int, d: int, kind: str) -> None:
    assert_within_the_band(rejections(n, d, kind, 2000, seed=n + d), 2000)


@pytest.mark.parametrize(
    ("d", "kind"),
    [(1, "skewed"), *(pytest.param(50, kind, marks=pytest.mark.slow) for kind in ("integer", "continuous"))],
)
def test_every_test_holds_its_level_over_a_few_draws(d: int, kind: str) -> None:
    assert_within_the_band(rejections(40, d, kind, 250, seed=d), 250)


def test_ties_do_not_raise_the_level() -> None:
    """Binary against binary: T takes few values, and ignoring ties would reject far too often."""
    draws, n = 600, 20
    draw = torch.Generator().manual_seed(0)
    rejected = 0
    for index in range(draws):
        z, s = torch.randint(2, (2, n), generator=draw).double()
        rejected += permutation_test(z, s, Gaussian(1.0), Gaussian(1.0), resamples=99, random_state=index).rejected
    assert rejected <= stats.binom.ppf(0.999, draws, 0.05)


PAGE = Path(__file__).resolve().parents[1] / "docs" / "tests.md"


def found(swings: int, n: int, draws: int) -> float:
    """Share of samples rejected where the score swings along S; the draws of docs/tests.md."""
    rejected = 0
    for draw in range(draws):
        random = np.random.default_rng([swings, n, draw])
        s = random.random(n)
        rejected += gamma_test(np.sin(2 * np.pi * swings * s) + random.standard_normal(n), s).rejected
    return rejected / draws


def test_fast_swings_are_hardly_ever_found() -> None:
    assert found(1, 200, 15) == 1
    assert found(8, 200, 15) <= 0.2


@pytest.mark.slow
@pytest.mark.parametrize(("n", "draws"), [(200, 100), (1000, 40)])
def test_fast_swings_are_found_as_rarely_as_the_page_says(n: int, draws: int) -> None:
    shares = next(line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith(f"| {n:,} rows"))
    for swings, share in zip((1, 2, 4, 8), shares.strip("| ").split(" | ")[1:], strict=True):
        assert found(swings, n, draws) == pytest.approx(float(share), abs=1.01 / draws)  # one may be at the threshold
