"""The random laws on which intervals are counted: their truths by brute force, and a count that can
fail.
"""

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
    """The mean score of many samples is the same with and without clusters."""
    rng = laws.generator_of("design", number)
    law = laws.Law.random(rng)
    plain = replace(law, design=(None, None))
    both = [np.mean([np.mean(one.sample(rng)[0]) for _ in range(60)]) for one in (law, plain)]
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
    mean = wave.gaps[:: len(wave.gaps) // 1000]
    windows = [mean[max(i - 25, 0) : i + 26].mean() for i in range(1000)]
    assert wave.gap(0.05) == approx(np.abs(windows).mean(), rel=0.03)


def test_ranks_of_an_atom_are_its_middle_and_the_curve_is_constant_on_it(laws):
    for number in range(40):
        law, _ = law_of(laws, number)
        u = laws.middles(10_000)
        for start, end in law.attribute.atoms:
            inside = (u >= start) & (u < end)
            if inside.any():
                assert law.attribute.rank(u)[inside] == approx((start + end) / 2)
                assert np.ptp(law.mean(u)[inside]) < 1e-12
        assert (np.diff(law.attribute.value(u)) >= 0).all()


def test_every_ingredient_is_drawn_and_a_word_gives_the_same_laws_again(laws):
    drawn = [laws.Law.random(laws.generator_of("word", i)).ingredients for i in range(300)]
    kinds = {key: {one[key] for one in drawn} for key in drawn[0]}
    assert len(kinds["attribute"]) == 5
    assert len(kinds["curve"]) == 7
    assert len(kinds["scores"]) == 6
    assert len(kinds["weights"]) == 4
    assert len(kinds["clusters"]) == 3
    assert min(kinds["rows"]) < 80
    assert max(kinds["rows"]) > 15_000
    again = laws.Law.random(laws.generator_of("word", 7))
    assert again.ingredients == drawn[7]
    assert laws.Law.random(laws.generator_of("other", 7)).ingredients != drawn[7]


def test_a_law_on_which_the_measure_raises_is_a_miss(laws, monkeypatch, tmp_path, capsys):
    def broken(*_, **__):
        raise AttributeError("gone")

    monkeypatch.setattr(laws, "gdp", broken)
    path = tmp_path / "a.jsonl"
    laws.count(path, "word", 3, 1)
    records = laws.read(path)
    assert [one["failed"] for one in records] == ["AttributeError('gone')"] * 3
    assert all(laws.missed(one) and laws.contradicts(one) for one in records)
    lines = laws.misses(records)
    assert lines[0] == "coverage .000"
    assert sum("gone" in line for line in lines) == 3


def test_a_count_goes_on_where_it_ended_and_names_what_misses(laws, tmp_path):
    path = tmp_path / "b.jsonl"
    laws.count(path, "word", 2, 1)
    before = path.read_text()
    laws.count(path, "word", 3, 1)
    assert path.read_text().startswith(before)
    records = [json.loads(line) for line in path.read_text().splitlines()]
    assert [one["law"] for one in records] == [0, 1, 2]
    one = next(one for one in records if "high" in one)
    wrong = {**one, "gap_at": one["high"] * 2 + 1, "gap": one["high"] * 2 + 1}
    lines = laws.misses([wrong] * 200 + [one] * 200)
    assert any(line.startswith("all: truth above the upper end in .500 of 400") for line in lines)
    excluded = {**one, "curve": "flat", "gap": 0.0, "gap_at": 0.0, "low": 0.1, "high": 1.0}
    lines = laws.misses([{**excluded, "pvalue": 0.5}] * 200)
    assert "all: flat laws excluded in 1.000 of 200, more than .081" in lines
    assert "interval and p-value contradict each other in 200" in lines
