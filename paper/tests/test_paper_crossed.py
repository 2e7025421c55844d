"""The comparison that crosses bases and ways: rows, bases, paths, and how costs are read."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from pytest import approx
from sklearn.linear_model import LogisticRegression, Ridge

from frhsic_paper.crossed.bases import (
    BASES,
    Encoded,
    Fit,
    Splines,
    ridge_fit,
)
from frhsic_paper.crossed.reading import (
    CONSTANT,
    YARDSTICKS,
    Cost,
    costs,
    loss_at_level,
    measure_outputs,
    pool_points,
)
from frhsic_paper.crossed.rows import SPLITS, Rows, divide_rows, tuning_rows
from frhsic_paper.crossed.settings import setting_values
from frhsic_paper.crossed.showing import (
    all_costs,
    best_rivals,
    count_beyond_errors,
    gaining_cells,
    is_within_error,
    sentences,
)
from frhsic_paper.crossed.ways import (
    CLOSED_FORM,
    COSINES,
    NONE,
    REMOVER,
    WITH_S,
    Point,
    Task,
    path,
)
from frhsic_paper.results import Results
from frhsic_paper.studies.crossed import chosen_trial

LOSS, ERRORS = YARDSTICKS.values()


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
    frame = pd.DataFrame(pool_points(points, table, task.sets, None, True))
    base = frame[(frame.way == NONE) & (frame.left_out == -1)].iloc[0]
    first = frame[(frame.way == CLOSED_FORM) & (frame.left_out == -1)].sort_values("dial").iloc[0]
    assert first.loss == approx(base.loss, rel=0.02)
    found = costs(frame, LOSS)
    assert found[NONE].value == approx(0.5)  # read between the base and a constant
    assert 0 < found[CLOSED_FORM].value < found["contraction"].value
    assert found[CLOSED_FORM].value < found[COSINES].value + 0.02
    assert found[CLOSED_FORM].reached == 1


# --- how costs are read


def test_a_model_that_diverged_is_no_point_and_a_path_without_points_is_a_constant():
    assert loss_at_level(np.array([np.nan]), np.array([np.nan]), 0.5, 3.0) == (3.0, False)
    assert loss_at_level(np.array([1.0, np.nan]), np.array([1.0, 0.0]), 0.5, 3.0) == (2.0, False)


def test_errors_count_both_classes_alike_where_positives_are_rare():
    y = np.array([1.0] * 10 + [0.0] * 90)
    s = np.arange(100.0)
    decisions = np.zeros(100)
    assert measure_outputs(None, decisions, y, s, 0.1)["errors"] == 0.5
    assert measure_outputs(None, decisions, y, s, 0.3)["errors"] == approx(0.1)


def paths(losses: dict[str, float], folds: int = 4, noise: float = 0.0) -> pd.DataFrame:
    """Records in which a base has a gap of 1 and a loss of .2, a constant a loss of 1, and a way
    the loss that is given, at every gap.
    """
    rng = np.random.default_rng(2)
    fixed = {NONE: [(1.0, 0.2)], CONSTANT: [(0.0, 1.0)]}
    rows = []
    for left_out in range(-1, folds):
        moved = noise * rng.normal()
        flat = {way: [(g, loss + moved) for g in (0.0, 1.0)] for way, loss in losses.items()}
        rows += [
            {"way": way, "left_out": left_out, "gdp": gap, "loss": loss, "test_rows": 10}
            for way, points in (fixed | flat).items()
            for gap, loss in points
        ]
    return pd.DataFrame(rows).assign(training_rows=40)


def test_a_cost_is_what_is_lost_over_what_the_base_gains():
    found = costs(paths({"a": 0.3, "b": 0.5}), LOSS)
    assert [found[way].value for way in "ab"] == approx([0.125, 0.375])
    assert found["a"].difference_error() == approx(0.0, abs=1e-12)
    assert costs(paths({"a": 0.3}), ERRORS) == {}


def test_the_error_is_that_of_a_mean_and_is_widened():
    """For a mean of fold means the jackknife gives the standard error of a mean."""
    rng = np.random.default_rng(3)
    each = rng.normal(size=10)
    without = np.array([np.delete(each, j).mean() for j in range(10)])
    one = Cost(each.mean(), without, 1.0, 1.0)
    assert one.difference_error() == approx(each.std(ddof=1) / np.sqrt(10))
    assert one._replace(factor=2.0).difference_error() == approx(2 * one.difference_error())
    assert one.difference_error(one) == 0
    assert costs(paths({"a": 0.3}), LOSS)["a"].factor == approx(np.sqrt(1 + 4 * 10 / 40))


def test_noise_that_two_ways_share_does_not_count_between_them():
    found = costs(paths({"a": 0.3, "b": 0.5}, noise=0.1), LOSS)
    assert found["a"].difference_error() > 0.02
    assert found["a"].difference_error(found["b"]) == approx(0.0, abs=1e-12)
    assert is_within_error(found, ["a", "b"])
    assert not is_within_error(found, ["b", "a"])


@pytest.mark.parametrize("best", [0, 3])
def test_the_search_takes_the_trial_with_the_least_cost(best):
    shared = paths({"frem": 0.5}).query("left_out == -1").assign(trial=-1)
    own = shared[shared.way == "frem"].assign(dial=[50.0, 0.0])
    more = [own.assign(trial=k, loss=own.loss - 0.1 * (k == best)) for k in range(5)]
    trials = pd.concat([shared[shared.way != "frem"], *more])
    ((trial, weights),) = chosen_trial(trials, "frem").items()
    assert trial == best
    assert weights[0] == 0.0


# --- how costs are shown


def shown(losses: dict[str, dict[str, float]], base: str = "trees") -> Results:
    """Return records of a base with the losses of ways on some tables, as in `paths`."""
    parts = [paths(own).assign(dataset=name, base=base) for name, own in losses.items()]
    frame = pd.concat(parts).assign(part="final", dial=0.0, trial=0)
    return Results({("crossed", "corrected"): frame.to_dict("records")})


LOSSES = {
    "loans": {CLOSED_FORM: 0.30, "contraction": 0.50, REMOVER: 0.4},
    "pay": {CLOSED_FORM: 0.40, "contraction": 0.30, REMOVER: 0.4},
    "births": {CLOSED_FORM: 0.28, "contraction": 0.52, WITH_S: 0.2, REMOVER: 0.4},
}
"""The base loses .2, a constant 1: a loss of .3 is a cost of 12.5 %."""


def test_the_best_rival_is_named_with_what_it_costs_more():
    cells = all_costs(shown(LOSSES), tuple(LOSSES))
    ((gap, base, best, near, rival, more, *counted),) = best_rivals(cells, False).rows
    assert (gap, base, best, near) == ("scores", "trees", "2 of 3", "2 of 3")
    assert rival == "contraction"
    assert more == approx(25.0)  # the median of 25, -12.5 and 30
    assert counted == [2, 1, 3]
    ((*_, rival, more, behind, ahead, total),) = best_rivals(cells, True).rows  # one table has both
    assert (rival, behind, ahead, total) == ("fairlearn CorrelationRemover", 1, 0, 1)
    assert more == approx(25.0)


def test_two_errors_decide_who_is_ahead():
    wide, narrow = (np.array([-1.0, 1.0]) * spread for spread in (0.2, 0.02))
    base = Cost(0.1, np.zeros(2), 1.0, 1.0)
    pairs = [(Cost(0.2, without, 1.0, 1.0), base) for without in (wide, narrow)]
    assert count_beyond_errors({"a": pairs}) == (1, 0, 2)
    assert count_beyond_errors({"a": [(b, a) for a, b in pairs]}) == (0, 1, 2)


def test_a_base_that_loses_to_a_constant_is_counted_and_not_shown():
    worse = [
        record | {"loss": 0.1}
        if (record["dataset"], record["way"]) == ("pay", CONSTANT)
        else record
        for record in shown(LOSSES).records("crossed/final", "corrected")
    ]
    results = Results({("crossed", "corrected"): worse})
    cells = all_costs(results, tuple(LOSSES))
    gain = gaining_cells(results, cells)
    assert {name for *_, name in cells} == set(LOSSES)
    assert {name for *_, name in gain} == {"loans", "births"}
    *_, without = sentences(results)
    assert "without S in 2 of 2" in without


def test_nothing_is_compared_where_the_closed_form_was_not_run():
    results = shown({"pay": {"contraction": 0.3, "frhsic": 0.4}})
    assert sentences(results) == []
    assert not best_rivals(all_costs(results, ("pay",)), False).rows
