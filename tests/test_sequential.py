"""The sequential test: its factors by the definition, false alarms over a stream, growth of
evidence, bad input.
"""

import itertools
import json

import numpy as np
import pytest
from pytest import approx

from frhsic.independence import SequentialTest, sequential


def test_a_factor_is_its_definition_over_all_permutations(monkeypatch):
    """With every permutation in place of random ones, the mean of the factors over all orders of s
    is one.
    """
    rng = np.random.default_rng(0)
    f, s = rng.normal(size=(2, 4))
    orders = np.array(list(itertools.permutations(range(4))))

    class Every:
        def permuted(self, table, axis):
            return orders[1:]

    monkeypatch.setattr(sequential.np.random, "default_rng", lambda seed: Every())
    factors = []
    for order in orders:
        test = SequentialTest(resamples=len(orders) - 1, random_state=0)
        test._direction = np.eye(sequential.WAVES)
        a, b = sequential._waves(f[:, None]), sequential._waves(s[order][:, None])
        gain = test._gain(a, b)
        values = [sum(float(a[i] @ b[p[i]]) for i in range(4)) for p in orders]
        z = (np.array(values) - np.mean(values)) / np.std(values)
        expected = np.exp(np.outer(sequential.BETS, z))
        assert np.exp(gain) == approx(expected[:, 0] / expected.mean(axis=1), rel=1e-10)
        factors.append(np.exp(gain))
    assert np.mean(factors, axis=0) == approx(np.ones(len(sequential.BETS)), rel=1e-10)


def fed(batches, test):
    for f, s in batches:
        test.update(f, s)
    return test


def stream(seed, batches, rows, effect, *, tied=False):
    rng = np.random.default_rng([seed, 1])
    test = SequentialTest(resamples=49, random_state=seed)
    for batch in range(batches):
        s = rng.lognormal(size=rows)
        f = effect * np.log(s) + rng.normal(size=rows) + 0.3 * batch  # the law drifts
        test.update(*((f > 1) * 1.0, np.floor(s)) if tied else (f, s))
    return test


@pytest.mark.parametrize("tied", [False, True])
def test_false_alarms_over_a_stream_with_a_look_after_each_batch_are_at_most_the_level(tied):
    tests = [stream(seed, 20, 12, 0.0, tied=tied) for seed in range(60)]
    assert (
        sum(test.rejected for test in tests) <= 9
    )  # 3 expected at most; P(more than 9) = .001 at a level of .05
    assert np.mean([min(test.history) for test in tests]) < 1


def test_evidence_grows_under_dependence():
    weak, strong = stream(0, 30, 40, 0.3), stream(0, 30, 40, 0.8)
    assert 20 < weak.evalue < strong.evalue
    assert weak.rejected
    assert weak.pvalue == approx(1 / max(weak.history))


def test_a_spread_that_follows_s_is_found():
    rng, test = np.random.default_rng(0), SequentialTest(resamples=199, random_state=0)
    for _ in range(25):
        s = rng.uniform(size=100)
        test.update(s * rng.normal(size=100), s)
    assert test.rejected


def test_increasing_maps_change_nothing():
    batches = np.random.default_rng(0).normal(size=(3, 2, 30))
    mapped = [(np.exp(f), s**3) for f, s in batches]
    assert (
        fed(batches, SequentialTest(random_state=0)).history
        == fed(mapped, SequentialTest(random_state=0)).history
    )


def test_the_direction_is_the_sum_of_the_means_of_earlier_batches():
    rng = np.random.default_rng(0)
    batches = [rng.normal(size=(2, rows)) for rows in (5, 20, 11)]
    test = fed(batches, SequentialTest(resamples=9, random_state=0))
    means = [
        sequential._waves(f[:, None]).T @ sequential._waves(s[:, None]) / len(f) for f, s in batches
    ]
    assert test._direction == approx(sum(means))


def test_batches_without_information_leave_the_evalue():
    test = (
        SequentialTest(random_state=0).update([1.0], [2.0]).update([1.0, 1.0, 1.0], [1.0, 2.0, 3.0])
    )
    test.update([1.0, 2.0, 3.0], [5.0, 5.0, 5.0])
    assert test.history == (1.0, 1.0, 1.0)
    assert test.n == 7
    assert test.pvalue == 1.0


def test_a_saved_test_continues_where_it_stopped():
    batches = [(f, s + f) for f, s in np.random.default_rng(0).normal(size=(6, 2, 30))]
    whole = fed(batches, SequentialTest(random_state=3))
    half = fed(batches[:3], SequentialTest(random_state=3))
    again = fed(batches[3:], SequentialTest.from_dict(json.loads(json.dumps(half.to_dict()))))
    assert (again.history, again.n) == (whole.history, whole.n)


def evalues_by_definition(batches, resamples, seed):
    """Sums over rows, waves and permutations as the docstring has them, of scores with any number
    of columns.
    """

    def waves(column):
        ranks = [(np.sum(column < x) + (np.sum(column == x) + 1) / 2) for x in column]
        u = (np.array(ranks) - 0.5) / len(column)
        each = [np.cos(np.pi * j * u) for j in range(1, 7)]
        return [wave - wave.mean() for wave in each]

    direction, wealth, values = {}, np.ones(5), []
    for number, (f, s) in enumerate(batches):
        b = waves(s)
        places = [(c, j, l) for c in range(f.shape[1]) for j in range(6) for l in range(6)]
        a = {c: waves(f[:, c]) for c in range(f.shape[1])}
        along = [np.zeros(len(s)) for _ in range(6)]
        for c, j, l in places:
            weight = direction.get((c, j, l), 0.0) / ((j + 1) * (l + 1)) ** 2
            along[l] = along[l] + weight * a[c][j]
        rows = np.tile(np.arange(len(s)), (resamples, 1))
        orders = np.random.default_rng([seed, number]).permuted(rows, axis=1)
        orders = [np.arange(len(s)), *orders]
        t = np.array([sum(along[l] @ b[l][order] for l in range(6)) for order in orders])
        if t.std() > 0:
            t = (t - t.mean()) / t.std()
            bets = np.exp(np.outer([0.25, 0.5, 1, 2, 4], t))
            wealth = wealth * bets[:, 0] / bets.mean(axis=1)
        values.append(wealth.mean())
        for c, j, l in places:
            direction[c, j, l] = direction.get((c, j, l), 0.0) + a[c][j] @ b[l] / len(s)
    return values


@pytest.mark.parametrize("columns", [1, 2])
def test_the_e_values_are_those_of_the_definition(columns, monkeypatch):
    rng = np.random.default_rng(columns)
    batches = []
    for rows in (8, 15, 11):
        s = np.round(rng.normal(size=rows), 1)
        batches.append((s[:, None] + rng.normal(size=(rows, columns)), s))
    test = fed(batches, SequentialTest(resamples=19, random_state=5))
    assert test.history == approx(evalues_by_definition(batches, 19, 5))
    assert test.history[0] == 1 != test.history[1]
    assert repr(test) == f"SequentialTest(batches=3, n=34, evalue={test.evalue:.3g})"
    monkeypatch.setattr(sequential, "BLOCK_ENTRIES", 6 * 15 * 4)  # four permutations at a time
    again = fed(batches, SequentialTest(resamples=19, random_state=5))
    assert again.history == approx(test.history, rel=1e-9)


def test_an_e_value_stays_a_finite_number():
    test = SequentialTest(random_state=0).update([1.0, 2.0, 3.0], [1.0, 2.0, 3.0])
    test._wealth = np.full(5, 900.0)
    assert test.update([1.0, 1.0], [1.0, 2.0]).evalue == approx(np.exp(700.0))
    assert test.pvalue == approx(np.exp(-700.0), abs=0)
