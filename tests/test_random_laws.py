"""The random laws on which intervals are counted: their truths by brute force, and a count that can
fail.
"""

import gzip
import importlib.util
import json
import math
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from pytest import approx

PATH = Path(__file__).parents[1] / "benchmarks" / "laws.py"


@pytest.fixture(scope="module")
def laws():
    spec = importlib.util.spec_from_file_location("laws", PATH)
    module = importlib.util.module_from_spec(spec)
    sys.modules["laws"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    yield module
    del sys.modules["laws"]


def law_of(laws, number, **fields):
    rng = laws.generator_of("test", number)
    law = laws.Law.random(rng)
    return replace(law, design=(None, None), **fields), rng


@pytest.mark.parametrize("number", range(16))
def test_the_truth_is_that_of_many_rows(laws, number):
    """Means of scores over the values of S, or over 400 equal groups of them, within four errors.

    A group moves the gap only where the curve crosses the mean within it.
    """
    n = 200_000
    law, rng = law_of(laws, number, n=n)
    f, s, _ = law.sample(rng)
    order = np.argsort(s, kind="stable")
    values, first = np.unique(s[order], return_index=True)
    if len(values) > 400:
        first = first[np.searchsorted(first, np.arange(0, n, n // 400))]
        first = np.unique(first[first < n])
    sizes = np.diff(np.append(first, n))
    means = np.add.reduceat(f[order], first) / sizes
    gap = float(sizes @ np.abs(means - f.mean())) / n
    noise = f.std() / math.sqrt(n)
    # the noise of the means adds at most its mean size, and the groups lose the crossings
    assert law.gap() - 4 * noise - 0.02 * law.gap() <= gap
    assert gap <= law.gap() + (4 + math.sqrt(len(first))) * noise
    assert f.mean() == approx(law.mean(laws.middles(10_000)).mean(), abs=5 * noise + 1e-3)


@pytest.mark.parametrize("number", range(8))
def test_the_design_does_not_change_the_law_of_a_row(laws, number):
    """The mean score of many samples, by 500 rows of each, is the same with and without clusters.

    Beside the fewest clusters, five in a sample, those rows add a hundredth to the variance.
    """
    rng = laws.generator_of("design", number)
    law = laws.Law.random(rng)
    plain = replace(law, design=(None, None))

    def mean_of_some_rows(one):
        u, noise, _ = one.rows(rng)
        some = rng.integers(len(u), size=500)
        return np.mean(one.scored(u[some], noise[some]))

    both = [np.mean([mean_of_some_rows(one) for _ in range(60)]) for one in (law, plain)]
    mean = law.mean(laws.middles(10_000)).mean()
    sd = law.scores.spread + abs(law.gap())
    assert both == approx([mean, mean], abs=4 * sd / math.sqrt(60 * 5))


def test_the_gap_at_a_resolution_averages_the_mean_over_the_people_nearby(laws):
    law, _ = law_of(laws, 0)
    wave = replace(law, attribute=laws.uniform_attribute(None), scores=laws.normal_scores(None))
    wave = replace(wave, shape=lambda u: np.sin(20 * np.pi * u), strength=1.0)
    assert wave.gap() == approx(2 / math.pi, rel=1e-3)
    # ten waves over a twentieth; windows at the two ends are shorter and average less
    attenuated = 2 / math.pi * math.sin(math.pi / 2) / (math.pi / 2)
    assert attenuated <= wave.gap(0.05) <= 0.95 * attenuated + 0.05
    mean = wave.means[:: len(wave.means) // 1000] - wave.means.mean()
    windows = [mean[max(i - 25, 0) : i + 26].mean() for i in range(1000)]
    assert wave.gap(0.05) == approx(np.abs(windows).mean(), rel=0.03)


def test_every_ingredient_is_drawn_and_a_word_gives_the_same_laws_again(laws):
    def ingredients(word, number):
        return laws.Law.random(laws.generator_of(word, number)).ingredients

    drawn = [ingredients("word", i) for i in range(100)]
    kinds = {key: {one[key] for one in drawn} for key in ("attribute", "curve", "scores")}
    assert [len(values) for values in kinds.values()] == [5, 7, 6]
    assert ingredients("word", 7) == drawn[7]
    assert ingredients("other", 7) != drawn[7]


@pytest.mark.parametrize("number", range(12))
def test_the_variance_and_the_shares_below_a_score_are_those_of_many_rows(laws, number):
    """By scores at equally spaced ranks, which have no noise; heavy tails lose some variance."""
    law, _ = law_of(laws, number)
    scores = law.scores
    mean = np.full(200_000, scores.mean + min(0.4 * scores.spread, 0.4 * scores.room))
    f = scores.score(mean, laws.middles(len(mean)))
    loss = 0.3 if scores.kind == "heavy tails" else 0.003
    assert (1 - loss) * scores.variance(mean[0]) <= f.var() <= 1.003 * scores.variance(mean[0])
    for q in (-0.1, 0.0, float(np.quantile(f, 0.3)), float(np.quantile(f, 0.9)), f.max() + 0.1):
        assert scores.below(mean[:1], q)[0] == approx((f <= q).mean(), abs=1e-4)


@pytest.mark.parametrize("number", range(8))
def test_the_rank_gap_is_that_of_many_rows(laws, number):
    """By the gaps of the decisions at the deciles of a large sample, of the mean share at u."""
    law, rng = law_of(laws, number, n=400_000)
    f, s, _ = law.sample(rng)
    values = np.quantile(f, np.arange(1, 10) / 10, method="inverted_cdf")
    order = np.argsort(s, kind="stable")
    levels, first = np.unique(s[order], return_index=True)
    if len(levels) > 200:
        first = np.unique(first[np.searchsorted(first, np.arange(0, len(f), len(f) // 200))])
    sizes = np.diff(np.append(first, len(f)))
    decided = (f[order][:, None] > values).astype(float)
    means = np.add.reduceat(decided, first, axis=0) / sizes[:, None]
    gap = float((sizes @ np.abs(means - decided.mean(axis=0))).mean()) / len(f)
    assert law.rank_gap() == approx(gap, rel=0.05, abs=0.012)


def test_the_rank_gap_sees_deciles_that_are_almost_zero(laws):
    """Beta scores of two levels, whose deciles go down to 1e-80: the gap of two groups is half of
    the difference of their shares above a decile, which 200,000 ranks of each level give.
    """
    law, _ = law_of(laws, 0, strength=1.0)
    law = replace(
        law, scores=laws.beta_scores_of(0.06, 0.5), attribute=laws.uniform_attribute(None)
    )
    law = replace(law, shape=lambda u: np.where(u < 0.5, -1.0, 1.0))
    v = laws.middles(200_000)
    two = np.stack([law.scores.score(law.mean(np.full_like(v, u)), v) for u in (0.2, 0.8)])
    deciles = np.quantile(two, np.arange(1, 10) / 10, method="inverted_cdf")
    assert deciles[0] < 1e-60
    shares = [(two > q).mean(axis=1) for q in deciles]
    truth = np.mean([abs(low - high) / 2 for low, high in shares])
    assert law.rank_gap() == approx(truth, rel=1e-3)


def test_the_hsic_of_two_normals_is_that_of_many_rows(laws):
    pair = laws.NormalPair(0.6, (0.7, 1.5), 3_000)
    rng = np.random.default_rng(0)
    ends = [laws.hsic_of(pair, rng, 0) for _ in range(4)]
    middle = np.mean([(one["low"] + one["high"]) / 2 for one in ends])
    assert pair.hsic == approx(middle, rel=0.1)
    assert laws.NormalPair(0.0, (0.7, 1.5), 60).hsic == approx(0, abs=1e-15)


def test_a_steady_law_has_its_gap_and_twice_its_strength_has_twice_the_gap(laws):
    law = laws.steady_law(laws.generator_of("steady", 0))
    assert law.gap() == approx(0.0147)
    assert replace(law, strength=2 * law.strength).gap() == approx(0.0294)
    assert (law.n, law.design) == (5_000, (None, None))


@pytest.mark.parametrize("claim", ["paired", "drift", "kept", "attributes", "band"])
def test_a_claim_is_recorded_with_its_truth(laws, claim):
    numbers = [laws.record("word", claim, number) for number in range(3)]
    assert not [one for one in numbers if "failed" in one]
    rates = laws.CLAIMS[claim].rates
    assert all(0 <= rate.share(numbers) <= 1 for rate in rates if rate.chosen(numbers))
    assert "| all | 3 |" in laws.table(laws.CLAIMS[claim], numbers)


def test_a_paired_reduction_is_judged_by_the_gaps_at_the_resolution(laws):
    law, rng = law_of(laws, 0, n=4_000, strength=1.5)
    law = replace(law, scores=laws.normal_scores(None), shape=lambda u: 2 * u - 1)
    law = replace(law, attribute=laws.uniform_attribute(None), curve="up to 2 waves")
    found = [{**law.ingredients, **laws.paired(law, rng, i)} for i in range(6)]
    for one in found:
        share = 1 + one["gap"] / law.gap(0.04)
        assert one["reduction"] == approx(1 - share, abs=0.01)
        assert laws.has_reduction(one)
        assert laws.covers(laws.quantity({**one, "reduction_low": 1 - share}, "reduction"))
        assert laws.below(laws.quantity({**one, "reduction_low": 1.1 - share}, "reduction"))


@pytest.fixture
def measured_by(laws, monkeypatch):
    """Let a claim be measured by another function."""

    def change(name, measured):
        monkeypatch.setitem(laws.CLAIMS, name, replace(laws.CLAIMS[name], measured=measured))

    return change


def test_a_law_on_which_the_measure_raises_is_a_miss(laws, measured_by, tmp_path):
    def broken(*_):
        raise AttributeError("gone")

    for name, claim in laws.CLAIMS.items():
        measured_by(name, broken)
        path = tmp_path / f"{name}.jsonl"
        laws.count(path, "word", name, 3, 1)
        records = laws.read(path)
        assert [one["failed"] for one in records] == ["AttributeError('gone')"] * 3
        lines = laws.misses(claim, records)
        assert sum("gone" in line for line in lines) == 3
        judged = [rate for rate in claim.rates if rate.least is not None or rate.most is not None]
        assert len(lines) >= 3 + len(judged)
        assert all(rate.share(records) == (rate.most is not None) for rate in claim.rates)


def test_the_exit_status_is_1_if_the_criterion_is_missed(laws, monkeypatch, tmp_path, capsys):
    arguments = ["--laws", "2", "--trial", "word", "--folder", str(tmp_path), "--of", "doubled"]
    laws.main(arguments)
    assert "- none" in capsys.readouterr().out
    path = tmp_path / "doubled.jsonl"
    path.write_text(path.read_text().replace('"called": true', '"called": false'))
    with pytest.raises(SystemExit) as status:
        laws.main([*arguments, "--page"])
    assert status.value.code == 1
    assert "- change called .000, less than .800" in capsys.readouterr().out


def test_a_count_goes_on_where_it_ended_and_names_what_misses(laws, tmp_path):
    path = tmp_path / "b.jsonl"
    laws.count(path, "word", "gdp", 2, 1)
    before = path.read_text()
    laws.count(path, "word", "gdp", 3, 1)
    assert path.read_text().startswith(before)
    records = laws.count_of(path, "word")
    assert [one["law"] for one in records] == [0, 1, 2]
    with gzip.open(tmp_path / "b.jsonl.gz", "wt") as file:  # a finished count of another commit
        file.write(json.dumps({**records[0], "commit": "earlier"}) + "\n")
    assert laws.count_of(path) == records
    assert [one["law"] for one in laws.count_of(path, "earlier")] == [0]
    one = next(one for one in records if "high" in one)
    claim = laws.CLAIMS["gdp"]
    wrong = {**one, "gap_at": one["high"] * 2 + 1, "gap": one["high"] * 2 + 1}
    lines = laws.misses(claim, [wrong] * 200 + [one] * 200)
    assert "covers .500, less than .940" in lines
    assert "all: truth above in .500 of 400, more than .072" in lines
    excluded = {**one, "curve": "flat", "gap": 0.0, "gap_at": 0.0, "low": 0.1, "high": 1.0}
    lines = laws.misses(claim, [{**excluded, "pvalue": 0.5}] * 200)
    assert "all: flat laws excluded in 1.000 of 200, more than .081" in lines
    assert "all: contradicts its p-value in 1.000 of 200, more than .000" in lines
