"""The comparison that crosses bases and ways: rows, bases, paths, and how costs are read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from pytest import approx
from scipy.stats import multivariate_normal
from sklearn.linear_model import LogisticRegression, Ridge

from frhsic_paper import code
from frhsic_paper.baselines import CorrelationAdversary, PairwiseMMD, UnbiasedCorrelation
from frhsic_paper.crossed.bands import (
    balancing_weights,
    linear_rule,
    randomised_thresholds,
    to_barycentre,
)
from frhsic_paper.crossed.bases import BASES, Encoded, Fit, Splines, ridge_fit
from frhsic_paper.crossed.penalties import PENALTIES, chi_squared
from frhsic_paper.crossed.reading import (
    CONSTANT,
    Cost,
    costs,
    gap_and_loss,
    loss_at_level,
    pool_points,
)
from frhsic_paper.crossed.rows import FRESH, SPLITS, Rows, divide_rows, tuning_rows
from frhsic_paper.crossed.settings import (
    BAG,
    CLOSED_FORM,
    COSINES,
    LEACE,
    NONE,
    REMOVER,
    WITH_S,
    setting_values,
)
from frhsic_paper.crossed.showing import (
    all_costs,
    compared,
    sentences,
    standing,
    standing_table,
    standings,
    tables,
)
from frhsic_paper.crossed.task import Point, Task
from frhsic_paper.crossed.ways import WAYS, erased_part, path
from frhsic_paper.options import Options
from frhsic_paper.protocol import CORRECTED
from frhsic_paper.results import Results
from frhsic_paper.studies.crossed import LONGEST, STUDY, chosen_trial, final_units
from frhsic_paper.studies.crossed import test as measured


def made(n: int = 1200, binary: bool = False) -> Rows:
    """Return rows whose first column follows S, with a nominal column, in which y is additive."""
    rng = np.random.default_rng(0)
    s = rng.uniform(size=n)
    follows = s + 0.3 * rng.normal(size=n)
    other = rng.normal(size=n)
    kind = rng.integers(4, size=n).astype(float)
    f = 2 * follows + other + np.array([0.0, 2.0, -1.0, 1.0])[kind.astype(int)]
    y = f + 0.5 * rng.normal(size=n)
    if binary:
        y = (y > np.median(y)).astype(float)
    X = pd.DataFrame({"x0": follows, "x1": other, "x2": kind})
    return Rows(X, y, s, binary, ("x2",))


@pytest.mark.parametrize("n", [997, 1000])
def test_no_test_row_tunes_and_none_is_tested_twice(n):
    tuning = np.concatenate([np.concatenate(divide_rows(n, "tune", k)) for k in range(3)])
    tests = [divide_rows(n, "test", k) for k in range(SPLITS["test"])]
    testing = np.concatenate([others for _, others in tests])
    assert not np.isin(testing, tuning).any()
    assert np.isin(tuning, tuning_rows(n)).all()
    assert len(np.unique(testing)) == len(testing)
    assert not any(np.isin(others, train).any() for train, others in tests)
    assert len({(len(train), len(others)) for train, others in tests}) == 1
    assert len(tests[0][0]) % 5 == 0


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("binary", [False, True])
def test_ridge_is_that_of_scikit_learn(binary, weighted):
    rng = np.random.default_rng(1)
    x = rng.normal(size=(300, 4))
    y = x @ [1.0, -1.0, 0.5, 0.0] + rng.normal(size=300)
    y = (y > 0).astype(float) if binary else y
    weights = rng.uniform(0.5, 2, size=300) if weighted else None
    total = 300 if weights is None else weights.sum()
    design = np.column_stack([np.ones(300), x])
    found = ridge_fit(design, y, binary, 0.1, weights)
    if binary:
        known = LogisticRegression(C=1 / (0.1 * total), tol=1e-10, max_iter=1000)
    else:
        known = Ridge(0.1 * total)
    known.fit(x, y, sample_weight=weights)
    assert found[0] == approx(float(np.squeeze(known.intercept_)), abs=1e-5)
    assert found[1:] == approx(np.ravel(known.coef_), abs=1e-5)


def test_names_of_categories_do_not_matter_to_splines_nor_add_to_a_network():
    table = made()
    other = table._replace(
        X=table.X.assign(x2=np.array([7.0, -1.0, 3.0, 5.0])[table.X.x2.astype(int)])
    )
    fit = Fit(np.arange(800), np.arange(800, 1200), table.y, False)
    values = setting_values(Splines.settings, 0)
    (first,) = Splines().outputs(table, [fit], values, "cpu")
    (second,) = Splines().outputs(other, [fit], values, "cpu")
    assert first == approx(second, rel=1e-6)
    assert np.mean((first - table.y[800:]) ** 2) < 0.35  # noise has a variance of .25
    assert Encoded(table, "range").width(fit.train) == 2 + 4


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("binary", [False, True])
def test_every_base_predicts_better_than_a_constant(base, binary):
    table = made(binary=binary)
    fits = [Fit(np.arange(800), np.arange(800, 1200), table.y, binary)]
    fits.append(Fit(np.arange(800), np.arange(900, 1200), table.s, False))
    own = BASES[base]
    options = {"epochs": 15} if "network" in base else {}
    f, of_s = own.outputs(table, fits, setting_values(own.settings, 0), "cpu", **options)
    assert [len(f), len(of_s)] == [400, 300]
    assert np.var(table.y[800:] - f) < 0.7 * np.var(table.y[800:])
    assert np.var(table.s[900:] - of_s) < 0.9 * np.var(table.s[900:])
    assert not binary or (f.min() >= 0 and f.max() <= 1)


def test_the_closed_form_begins_at_the_base_and_its_loss_is_the_least_at_a_level():
    """Where y is additive, splines are the truth, and no way on them can cost less than the closed
    form by more than chance.
    """
    table = made(4000)
    values = setting_values(Splines.settings, 0)
    task = Task(table, Splines(), values, values, "test", "cpu", 3)
    points = list(path(task, "plain", {0: ()}))
    points += [
        Point(CONSTANT, -1, 0.0, k, np.full(len(o), table.y.mean()))
        for k, (_, o) in enumerate(task.sets)
    ]
    points += path(task, COSINES, {0: (0.0, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 100.0)})
    records = pool_points(points, table, task.sets, None, True)
    first = {one["way"]: one["losses"][0][0] for one in records}
    assert first[CLOSED_FORM] == approx(first[NONE], rel=0.02)
    found = costs(records)
    assert found[NONE].value == approx(0.5)  # read between the base and a constant
    assert 0 < found[CLOSED_FORM].value < found["contraction"].value
    assert found[CLOSED_FORM].value < found[COSINES].value + 0.02


# --- other authors' methods, beside their packages


def waves(n: int = 400) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return S, scores that follow it, 0/1 targets and four bands: the same on every machine."""
    i = np.arange(n)
    s = (i + 0.5) / n
    f = np.sin(3 * s) + 0.5 * np.sin(17.0 * i)
    y = (np.sin(29.0 * i) + f > 0.7).astype(int)
    return s, f, y, np.minimum((4 * s).astype(int), 3)


@pytest.mark.parametrize(("most", "error"), [(0.3, 0.3425), (0.1, 0.3435), (0.0, 0.3500625)])
def test_thresholds_by_band_are_those_of_error_parity(most, error):
    """Errors of RelaxedThresholdOptimizer of error-parity 0.3.12, with its solver ECOS."""
    _, f, y, band = waves()
    chances = np.zeros(len(f))
    for number, (thresholds, weights) in randomised_thresholds(f, y - 0.5, band, most).items():
        chances[band == number] = (f[band == number, None] > thresholds) @ weights
    assert np.where(y == 1, 1 - chances, chances).mean() == approx(error, abs=1e-8)
    assert np.ptp([chances[band == k].mean() for k in range(4)]) <= most + 1e-9


def test_reweighing_is_that_of_aif360():
    """Weights of aif360.sklearn.preprocessing.Reweighing 0.6.1."""
    _, _, y, band = waves()
    weights = balancing_weights(band, y)
    assert sorted(set(weights.round(6)))[:3] == [0.834677, 0.846491, 0.877119]
    assert sorted(set(weights.round(6)))[3:] == [1.176829, 1.203488, 1.269737]


def test_erasure_is_that_of_concept_erasure():
    """Rows of LeaceEraser.fit(X, Z, shrinkage=False) of concept-erasure 0.2.4."""
    s, f, _, _ = waves()
    i = np.arange(len(s))
    X = np.column_stack([f, np.cos(5 * s) + np.sin(7.0 * i), np.sin(11.0 * i) * s])
    Z = np.column_stack([s, s**2])
    erased = X - erased_part(X, X, Z)
    assert erased[0] == approx([0.6620492803, -0.1855118931, 0.0068133008], abs=1e-8)
    assert erased[399] == approx([0.6660025808, -0.1805940093, -0.1789650720], abs=1e-8)
    assert np.cov(erased.T, Z.T)[:3, 3:] == approx(np.zeros((3, 2)), abs=1e-10)


def penalty_of(name: str, setting: float) -> float:
    """Return a penalty on the scores of `waves` in double precision."""
    s, f, _, _ = waves()
    generator = torch.Generator()
    penalty = PENALTIES[name]({generator.initial_seed(): (setting,)})
    s = torch.tensor(s)
    penalty.prepare(s, generator)
    return float(penalty(torch.zeros(len(s), 1, dtype=s.dtype), s, scores=torch.tensor(f)))


@pytest.mark.parametrize(
    ("name", "setting", "value"),
    [
        ("fairret", 4.0, 0.3312989706),  # NormLoss(PositiveRate()) of fairret 0.1.3
        (
            "hgr-kde",
            1.0,
            0.2624035975,
        ),  # hgr("kde", chi_square=True) of maxcorr 0.1.2, damping 1e-10
        ("gedi", 1.0, 0.1671577247),  # gedi("sk", kernel=1) of maxcorr 0.1.2
        ("gedi", 3.0, 1.0066643505),
    ],
)
def test_penalties_are_those_of_their_packages(name, setting, value):
    assert penalty_of(name, setting) == approx(value, rel=1e-5)


@pytest.mark.parametrize(
    ("name", "setting", "text"),
    [
        ("adv-text", 1e-3, CorrelationAdversary()),
        ("mmd-text", 10.0, PairwiseMMD()),
        ("dcor-text", 0.0, UnbiasedCorrelation()),
    ],
)
def test_penalties_of_the_text_have_its_constants_by_default(name, setting, text):
    generator = torch.Generator().manual_seed(0)
    z, s = torch.randn(200, 51, generator=generator).split((50, 1), dim=1)
    s = s + z[:, :1]
    own = PENALTIES[name]({1: (setting,)})
    for penalty in (own, text):
        penalty.prepare(s, torch.Generator().manual_seed(1))
        penalty.adapt(z, s, 0)
    assert float(own(z, s)) == approx(float(text(z, s)), rel=1e-6)
    assert float(text(z, s)) > 1e-4
    if name == "mmd-text":
        four = PENALTIES[name]({1: (4.0,)})
        four.prepare(torch.tensor([0.0, 3.0, 8.0]), torch.Generator().manual_seed(1))
        assert four.edges[0, :4].tolist() == [2.0, 4.0, 6.0, np.inf]


@pytest.mark.parametrize("correlation", [0.0, 0.5])
def test_the_kernel_bound_is_that_of_a_normal_law(correlation):
    """The kernel adds its variance to a normal law, whose density on the grid gives the bound."""
    rng = np.random.default_rng(0)
    x, noise = torch.tensor(rng.normal(size=(2, 20_000)))
    y = correlation * x + (1 - correlation**2) ** 0.5 * noise
    variance = 1 + 20_000 ** (-1 / 3)
    places = np.stack(np.meshgrid(*[np.linspace(-2.5, 2.5, 25)] * 2), axis=-1)
    law = multivariate_normal(cov=[[variance, correlation], [correlation, variance]])
    joint = law.pdf(places) / law.pdf(places).sum()
    bound = (joint**2 / np.outer(joint.sum(1), joint.sum(0))).sum() - 1
    assert float(chi_squared(x, y)) == approx(bound, rel=0.05, abs=0.005)


def test_two_networks_see_what_a_line_does_not():
    """Z is a hump of S, without correlation; S and Z never meet inside of the adversary."""
    generator = torch.Generator().manual_seed(0)
    penalty = PENALTIES["hgr-networks"]({generator.initial_seed(): (0.01,)}, z_dim=1)
    s = torch.linspace(-1, 1, 500)[:, None]
    penalty.prepare(s, generator)
    z = s**2
    for step in range(300):
        penalty.adapt(z, s, step)
    assert float(penalty(z, s)) > 0.9
    assert float(penalty(z, s.flip(0) * 0 + torch.randn(500, 1, generator=generator))) < 0.3
    for weight, apart in (
        (penalty.weight_in, penalty.apart_in),
        (penalty.weight_out, penalty.apart_out),
    ):
        assert not weight[apart == 0].any()


def test_the_linear_rule_is_the_program_of_decisions():
    """On known bands: the least error at equal rates is that of all pairs of numbers of positives;
    the rule decides all rows but those at the threshold of their band.
    """
    rng = np.random.default_rng(0)
    gain = rng.uniform(-0.5, 0.5, size=40)
    gain[20:] += 0.2
    columns = np.repeat(np.eye(2), 20, axis=0) * 2
    slope = linear_rule(gain, columns, 0.0)
    ordered = [np.sort(part)[::-1].cumsum() for part in np.split(gain, 2)]
    best = max(0.0, *(ordered[0] + ordered[1]))
    taken = gain > columns @ slope
    assert gain[taken].sum() == approx(best, abs=0.3)
    assert abs(taken[:20].mean() - taken[20:].mean()) <= 2 / 20
    free = linear_rule(gain, columns, 1.0)
    assert free == approx(np.zeros(2), abs=1e-9)


def test_the_barycentre_of_normal_laws_has_the_mean_of_their_means_and_deviations():
    rng = np.random.default_rng(0)
    band = np.repeat([0, 1], 4000)
    f = np.where(band == 0, rng.normal(0, 1, 8000), rng.normal(3, 2, 8000))
    moved = to_barycentre(f, band, f, band)
    for own in (moved[band == 0], moved[band == 1]):
        assert own.mean() == approx(1.5, abs=0.1)
        assert own.std() == approx(1.5, abs=0.1)


# --- how costs are read


def test_a_model_that_diverged_is_no_point_and_a_path_without_points_is_a_constant():
    assert loss_at_level(np.array([np.nan]), np.array([np.nan]), 0.5, 3.0) == 3.0
    assert loss_at_level(np.array([1.0, np.nan]), np.array([1.0, 0.0]), 0.5, 3.0) == 2.0
    nothing = np.full(4, np.nan)
    assert np.isnan(gap_and_loss(nothing, "scores", np.arange(4) % 2, np.arange(4.0), 0.5)).all()


def test_errors_count_both_classes_alike_where_positives_are_rare():
    y = np.array([1.0] * 10 + [0.0] * 90)
    s = np.arange(100.0)
    decisions = np.zeros(100)
    assert gap_and_loss(decisions, "decisions", y, s, 0.5)[1] == approx(0.1)
    assert gap_and_loss(decisions, "decisions", y, s, 0.1)[1] == approx(0.5)


def test_scores_are_judged_by_all_three_quantities_and_decisions_by_one():
    table = made(binary=True)._replace(X=pd.DataFrame({"x0": np.zeros(1200)}))
    sets = [divide_rows(1200, "test", split) for split in range(3)]
    points = [Point("a", 0, 0.0, k, table.s[others]) for k, (_, others) in enumerate(sets)]
    points += [
        Point("b", 0, 1.0, k, table.y[others], "decisions", decided=True)
        for k, (_, others) in enumerate(sets)
    ]
    found = {
        (one["way"], one["quantity"]): one for one in pool_points(points, table, sets, 0.5, True)
    }
    assert list(found) == [("a", "scores"), ("a", "ranks"), ("a", "decisions"), ("b", "decisions")]
    assert np.shape(found["a", "ranks"]["gaps"]) == (1, 4)
    assert found["b", "decisions"]["losses"] == [[0.0] * 4]
    others = np.concatenate([others for _, others in sets[1:]])
    wrong = np.mean((table.s[others] > 0.5) != table.y[others])
    assert found["a", "decisions"]["losses"][0][1] == approx(wrong)


def paths(losses: dict[str, float], folds: int = 8, noise: float = 0.0) -> list[dict]:
    """Return records in which a base has a gap of 1 and a loss of .2, a constant a loss of 1, and a
    way the loss that is given, at every gap.
    """
    rng = np.random.default_rng(2)
    moved = noise * rng.normal(size=folds + 1)
    flat = np.ones(folds + 1)
    each = {NONE: ([flat], [0.2 * flat]), CONSTANT: ([0 * flat], [flat])}
    each |= {way: ([0 * flat, flat], [loss + moved] * 2) for way, loss in losses.items()}
    return [
        {
            "way": way,
            "trial": -1 if way in (NONE, CONSTANT) else 0,
            "quantity": "scores",
            "dials": list(range(len(gaps))),
            "gaps": np.array(gaps).tolist(),
            "losses": np.array(values).tolist(),
            "test_rows": 10,
            "training_rows": 40,
        }
        for way, (gaps, values) in each.items()
    ]


def test_a_cost_is_what_is_lost_over_what_the_base_gains():
    found = costs(paths({"a": 0.3, "b": 0.5}))
    assert [found[way].value for way in "ab"] == approx([0.125, 0.375])
    assert found["a"].difference_error() == approx(0.0, abs=1e-12)
    assert costs([]) == {}


def test_a_base_that_loses_to_a_constant_or_has_no_gap_is_no_cell():
    records = paths({"a": 0.3})
    worse = [one | {"losses": [[0.1] * 9]} if one["way"] == CONSTANT else one for one in records]
    assert costs(worse) == {}
    gaps = [[1.0, *np.linspace(0, 2, 8)]]
    assert costs([one | {"gaps": gaps} if one["way"] == NONE else one for one in records]) == {}


def test_the_error_is_that_of_a_mean_and_is_widened():
    """For a mean of fold means the jackknife gives the standard error of a mean."""
    rng = np.random.default_rng(3)
    each = rng.normal(size=10)
    without = np.array([np.delete(each, j).mean() for j in range(10)])
    one = Cost(each.mean(), without, 1.0)
    assert one.difference_error() == approx(each.std(ddof=1) / np.sqrt(10))
    assert one._replace(factor=2.0).difference_error() == approx(2 * one.difference_error())
    assert one.difference_error(one) == 0
    assert costs(paths({"a": 0.3}))["a"].factor == approx(np.sqrt(1 + 8 * 10 / 40))


def test_noise_that_two_ways_share_does_not_count_between_them():
    found = costs(paths({"a": 0.3, "b": 0.5}, noise=0.1))
    assert found["a"].difference_error() > 0.02
    assert found["a"].difference_error(found["b"]) == approx(0.0, abs=1e-12)
    assert standing(found, "a", "b", 2.0) == "ahead"
    assert standing(found, "b", "a", 2.0) == "behind"


@pytest.mark.parametrize("best", [0, 3])
def test_the_search_takes_the_trial_with_the_least_cost(best):
    base, constant, first = paths({"frem": 0.5}, folds=0)
    first["dials"] = [50.0, 0.0]
    losses = [[loss - 0.1] for (loss,) in first["losses"]]
    trials = [first | {"trial": k} | ({"losses": losses} if k == best else {}) for k in range(5)]
    trial, weights = chosen_trial([base, constant, *trials], "frem")
    assert trial == best
    assert weights[0] == 0.0


# --- how costs are shown


def shown(losses: dict[str, dict[str, float]], base: str = "trees") -> Results:
    """Return records of a base with the losses of ways on some tables, as in `paths`."""
    about = {"base": base, "part": "final"}
    records = [
        one | about | {"dataset": name} for name, own in losses.items() for one in paths(own)
    ]
    return Results({("crossed", "corrected"): records})


LOSSES = {
    "plebiscite": {CLOSED_FORM: 0.30, "contraction": 0.50, REMOVER: 0.4},
    "neuroticism": {CLOSED_FORM: 0.40, "contraction": 0.30, REMOVER: 0.4},
    "medical_bills": {CLOSED_FORM: 0.28, "contraction": 0.52, WITH_S: 0.2, REMOVER: 0.4},
}
"""The base loses .2, a constant 1: a loss of .3 is a cost of 12.5 %."""


def test_every_method_is_counted_ahead_level_and_behind():
    cells = all_costs(shown(LOSSES))
    first, second = standing_table(cells, "scores", False).rows
    assert first[0] == "closed form"
    assert first[3] == first[5] == "2/0/1 (2/0/1)"  # on trees, and on all bases
    assert first[6] == approx(12.5)  # the median of 12.5, 25 and 10
    assert second[0] == "contraction"
    assert second[5] == "1/0/2 (1/0/2)"
    with_s = standing_table(cells, "scores", True)  # one table has both
    assert [row[0] for row in with_s.rows] == [WITH_S, REMOVER]
    assert tables(shown(LOSSES))[0].table.rows[0] == ("scores without S", 3, "2/0/1", "2/0/1")
    assert sentences(shown(LOSSES))[0].endswith("missed for scores without S.")


def test_errors_decide_who_is_ahead_and_an_undefined_one_is_behind():
    spread = 0.03 * np.array([-1.0, 1.0, -1.0, 1.0])
    cell = {"a": Cost(0.1, np.zeros(4), 1.0), "b": Cost(0.2, spread, 1.0)}
    assert standing(cell, "a", "b", 1.0) == "ahead"
    assert standing(cell, "a", "b", 2.0) == standing(cell, "b", "a", 2.0) == "level"
    cell["b"] = Cost(0.2, np.full(4, np.nan), 1.0)
    assert standing(cell, "a", "b", 1.0) == "behind"


def test_nothing_is_compared_where_the_closed_form_was_not_run():
    results = shown({"plebiscite": {"contraction": 0.3, "frhsic": 0.4}})
    assert sentences(results) == []
    assert not len(standings(all_costs(results), "scores", False, 1.0))
    assert compared([CLOSED_FORM, NONE], False) == []


def test_units_begin_with_the_longest():
    found = list(final_units(CORRECTED, Options(Path())))
    ways = [way for *_, way in found]
    longest = [way for way in ways if way in LONGEST]
    assert ways[: len(longest)] == longest == sorted(longest, key=LONGEST.index)
    assert {base for _, base, way in found if way == LONGEST[0]} == {"trees", "splines"}
    assert {name for name, *_ in found} == set(FRESH)


@pytest.mark.parametrize(("way", "solves"), [("plain", True), (WITH_S, True), (LEACE, False)])
def test_only_the_closed_form_becomes_stale_with_its_solver(way, solves):
    names = dict(code.code(measured, WAYS[way]))
    assert ("frhsic.estimators.families.ScoreRanks" in names) == solves
    stamps = STUDY.train[2].stamps(CORRECTED, None)["crossed", "final"]
    unit = {"dataset": "neuroticism", "base": "trees", "unit": way}
    assert stamps(unit) != stamps(unit | {"unit": BAG})
