"""The default model of a table: what LightGBM and the splines are asked for, by size of the table,
and the folds, seeds and rows that it is fitted with.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from lightgbm import LGBMClassifier
from pytest import approx
from scipy.linalg import hadamard
from sklearn.ensemble import BaggingClassifier
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.tree import DecisionTreeClassifier

from frhsic import ParityClassifier
from frhsic.estimators import conditional, fitting
from frhsic.estimators.conditional import (
    BoostedMeans,
    SensitiveBasis,
    SplinesAndTrees,
    Targets,
    TreeTable,
    boosted,
    fold_of_rows,
    limit_boosters,
    predicted_directions,
)
from frhsic.estimators.constraints import FitRows
from frhsic.estimators.fitting import with_seed
from frhsic.estimators.laws import ConditionalLaw


class Asked:
    """In place of LightGBM: notes what it is asked for, and gives boosters that stop at `best`."""

    def __init__(self, best: int = 0) -> None:
        self.best = best
        self.calls: list[SimpleNamespace] = []

    def __call__(self, rows, rounds, settings, categorical, check=None, patience=0) -> list[Any]:
        self.calls.append(SimpleNamespace(**locals()))
        flat = SimpleNamespace(best_iteration=self.best, predict=lambda x, **_: np.zeros(len(x)))
        return [flat] * len(rounds)


@pytest.fixture
def asked(monkeypatch):
    asked = Asked()
    monkeypatch.setattr(conditional, "boosted", asked)
    return asked


def model_of(classes: int, **options: Any) -> SplinesAndTrees:
    model = SplinesAndTrees(classes > 0, **options)
    model.table_ = TreeTable().fit(np.zeros((1, 1)))
    model.classes_ = np.arange(classes)
    return model


@pytest.mark.parametrize(
    ("n", "rounds", "leaves", "rate"),
    [
        (9_999, 40, 8, 0.05),
        (9_999, 12, 8, 0.1),
        (10_000, 40, 31, 0.2),
        (10_000, 21, 31, 0.3),
        (10_000, 20, 47, 0.3),
    ],
)
def test_many_rows_have_few_large_trees_with_long_steps(asked, n, rounds, leaves, rate):
    rows = Targets(np.zeros((n, 8)), np.zeros((n, 1)), None)
    model_of(0, rounds=rounds, n_jobs=3, random_state=7)._trees(rows, [rounds])
    assert asked.calls[0].settings == {
        "objective": "regression",
        "num_class": 1,
        "num_leaves": leaves,
        "learning_rate": approx(rate),
        "feature_fraction": 0.5,
        "seed": 7,
        "num_threads": 3,
    }
    assert asked.calls[0].patience == max(rounds, 20)


@pytest.mark.parametrize(
    ("width", "share"), [(1, 1.0), (4, 1.0), (5, 0.8), (8, 0.5), (9, 0.5), (60, 0.5)]
)
def test_a_tree_sees_half_of_the_columns_but_four_at_least(asked, width, share):
    model_of(0)._trees(Targets(np.zeros((9, width)), np.zeros((9, 1)), None), [1])
    assert asked.calls[0].settings["feature_fraction"] == share
    assert asked.calls[0].settings["seed"] == 0


@pytest.mark.parametrize(
    ("classes", "objective", "several"),
    [(0, "regression", 1), (2, "binary", 1), (3, "multiclass", 3)],
)
def test_the_objective_is_that_of_the_target(asked, classes, objective, several):
    model_of(classes)._trees(Targets(np.zeros((9, 2)), np.zeros((9, 1)), None), [1])
    settings = asked.calls[0].settings
    assert (settings["objective"], settings["num_class"]) == (objective, several)


@pytest.mark.parametrize(("best", "served"), [(100, 130), (3, 10)])
def test_a_fourth_of_few_rows_stops_the_trees_and_all_rows_have_1_3_times_as_many(
    asked, best, served
):
    asked.best = best
    X = np.random.default_rng(0).normal(size=(102, 2))
    model = SplinesAndTrees(random_state=0).fit(X, np.column_stack([X[:, 0], X[:, 1]]))
    first, second = asked.calls
    assert (len(first.rows.y), len(first.check.y), first.rounds) == (77, 25, [800, 800])
    assert (len(second.rows.y), second.check, second.rounds) == (102, None, [served, served])
    chosen = np.random.default_rng(0).permutation(102) < 25
    assert np.array_equal(first.check.x, X[chosen])
    assert model.shares_ == approx([1.0, 1.0])  # trees that say nothing have no share


def test_rows_that_cannot_be_held_out_and_many_rows_have_a_fixed_number_of_trees(asked):
    y = np.arange(40) == 3  # on one side of every cut
    SplinesAndTrees(True, random_state=0).fit(np.zeros((40, 1)), y)
    SplinesAndTrees(random_state=0).fit(np.zeros((3, 1)), np.zeros(3))
    SplinesAndTrees(random_state=0).fit(np.zeros((10_000, 1)), np.zeros((10_000, 2)))
    assert [call.rounds for call in asked.calls] == [[160], [160], [40, 40]]
    assert [call.check for call in asked.calls] == [None] * 3


@pytest.mark.parametrize(("width", "way"), [(128, "force_row_wise"), (129, "force_col_wise")])
def test_histograms_are_made_in_one_way_that_the_number_of_columns_decides(monkeypatch, width, way):
    seen = {}

    def train(settings, data, count, **more):
        seen.update(settings=settings, count=count, more=more, label=data.get_label())

    monkeypatch.setattr(conditional.lightgbm, "train", train)
    rows = Targets(
        np.random.default_rng(0).normal(size=(30, width)), np.eye(30)[:, :2], np.ones(30)
    )
    boosted(rows, [5, 6], {"num_leaves": 3}, [])
    assert seen["settings"] == {"num_leaves": 3, way: True, "verbose": -1}
    assert (seen["count"], seen["more"]) == (6, {})
    assert np.array_equal(seen["label"], rows.y[:, 1])
    boosted(rows, [5], {}, [], rows.at(np.arange(10)), 4)
    (held_out,) = seen["more"]["valid_sets"]
    assert np.array_equal(held_out.get_label(), rows.y[:10, 0])
    assert seen["more"]["callbacks"][0].stopping_rounds == 4


def test_means_of_attributes_have_40_small_trees_each(asked):
    BoostedMeans(n_jobs=2).fit(np.zeros((5, 1)), np.zeros((5, 3)))
    assert asked.calls[0].settings == {"num_leaves": 15, "learning_rate": 0.15, "num_threads": 2}
    assert asked.calls[0].rounds == [40] * 3


def test_the_additive_model_has_lines_curves_and_levels():
    """Two values are a line, up to six numbers are levels, more are a curve beside the line."""
    n = 300
    k = np.arange(n)
    columns = [k % 2, k % 3, k % 6, k % 7, np.where(k == 5, np.nan, k)]
    rows = Targets(np.column_stack(columns).astype(float), (k % 2)[:, None], np.ones(n))
    pipeline = model_of(2)._additive(rows)
    parts = {name: (part, places) for name, part, places in pipeline["columns"].transformers_}
    assert {name: places for name, (_, places) in parts.items()} == {
        "lines": [0, 3, 4],
        "curves": [3, 4],
        "levels": [1, 2],
    }
    encoder = parts["levels"][0]
    assert (encoder.min_frequency, encoder.max_categories) == (10, 32)
    assert encoder.handle_unknown == "infrequent_if_exist"
    imputer, ranks, splines = (step for _, step in parts["curves"][0].steps)
    assert (imputer.strategy, imputer.keep_empty_features) == ("median", True)
    assert (ranks.n_quantiles, splines.n_knots, splines.sparse_output) == (200, 6, True)
    assert parts["lines"][0][-1].clip
    assert pipeline["columns"].sparse_threshold == 1.0
    model = pipeline["model"]
    assert isinstance(model, LogisticRegression)
    assert (model.C, model.solver, model.max_iter) == (0.5, "newton-cholesky", 50)
    few = Targets(rows.x[:90], rows.x[:90, :1], np.ones(90))
    pipeline = model_of(0)._additive(few)
    assert isinstance(pipeline["model"], RidgeCV)
    assert pipeline["model"].alphas == approx(10.0 ** np.linspace(-1, 4, 11))
    assert not pipeline["model"].alpha_per_target
    assert pipeline["columns"].transformers_[1][1][1].n_quantiles == 90
    assert model_of(0)._additive(few._replace(y=rows.x[:90, :2]))["model"].alpha_per_target


@pytest.mark.parametrize(("curves", "lines", "fits"), [(111, 1, True), (111, 2, False)])
def test_an_additive_model_has_at_most_a_thousand_columns(curves, lines, fits):
    """A curve has nine columns: eight of its splines, and a line."""
    k = np.arange(20)[:, None]
    x = np.hstack([np.sin(k * np.arange(1, curves + 1)), np.repeat(k % 2, lines, axis=1)])
    found = model_of(0)._additive(Targets(x, x[:, :1], np.ones(20)))
    assert (found is not None) == fits


def test_losses_are_those_of_the_target_by_weights():
    weights = np.array([1.0, 3.0])
    numbers = Targets(np.zeros((2, 1)), np.array([[1.0], [2.0]]), weights)
    assert model_of(0)._losses(np.array([[0.0], [4.0]]), numbers) == approx([1 + 3 * 4])
    two = Targets(np.zeros((2, 1)), np.array([[1], [0]]), weights)
    odds = np.log([[3.0], [3.0]])
    assert model_of(2)._losses(odds, two) == approx([-np.log(0.75) - 3 * np.log(0.25)])
    assert model_of(2)._losses(np.array([[-99.0], [0.0]]), two) == approx(
        [-np.log(1e-12) + 3 * np.log(2)]
    )
    three = model_of(3)
    margins = three._normalized(np.log([[2.0, 1.0, 1.0], [1.0, 1.0, 6.0]]))
    assert margins == approx(np.log([[0.5, 0.25, 0.25], [0.125, 0.125, 0.75]]))
    assert three._losses(margins, two) == approx([-np.log(0.25) - 3 * np.log(0.125)])


def test_directions_are_kept_beyond_a_hundredth_and_beyond_noise():
    """Signs without correlation, so that eigenvalues and their errors are known: the mean of a
    function is a share of it, plus noise of a known size.
    """
    signs = hadamard(16)[:, 1:].astype(float)
    weights = np.full(16, 3.0)
    targets = signs[:, :4]
    shares = np.array([-0.5, 0.0099, 0.0103, 1.0])  # of all, a hundredth is 0.0102
    found = predicted_directions(shares * targets, targets, weights)
    assert found == approx(np.eye(4)[:, [3, 2]])
    # four functions: √8 + 1 standard errors of 0.1 / √16 are 0.0957
    means = np.array([0.095, 0.096, 0.2, 1.0]) * targets + 0.1 * signs[:, 4:8]
    assert predicted_directions(means, targets, weights) == approx(np.eye(4)[:, [3, 2, 1]])
    nothing = predicted_directions(0 * targets, targets, weights)
    assert nothing.shape == (4, 1)  # at least one


@pytest.mark.parametrize("levels", [3, 40])
def test_a_law_given_s_is_that_of_its_people_and_of_a_hundred_like_those_near_it(levels):
    rng = np.random.default_rng(levels)
    n = 400
    s = rng.integers(levels, size=n) * 1.0
    score = rng.normal(size=n) + s / levels
    weights = rng.integers(1, 4, n) / 2
    law = ConditionalLaw.fit(score, s, weights)
    w = weights * n / weights.sum()
    grid = np.quantile(score, np.linspace(0, 1, 201))
    cell = np.minimum(np.searchsorted(grid, score, side="right") - 1, 199)
    values = np.unique(s)
    table = np.array([np.bincount(cell, w * (s == value), 200) for value in values])
    mass = table.sum(axis=1) / n
    rank = np.cumsum(mass) - mass / 2
    for i in range(len(values)):
        near = np.exp(-((rank - rank[i]) ** 2) / (2 * 0.02**2)) if levels > 16 else np.eye(3)[i]
        people = near @ table
        share = (table[i] + 100 * people / people.sum()) / (table[i].sum() + 100)
        assert law.shares[i] == approx(np.append(0, np.cumsum(share)), abs=1e-12)
    pooled = np.append(0, np.cumsum(table.sum(axis=0)) / n)
    at = (score[0] - grid[cell[0]]) / (grid[cell[0] + 1] - grid[cell[0]])
    row = law.shares[np.searchsorted(values, s[0])]
    expected = np.interp(row[cell[0]] + at * (row[cell[0] + 1] - row[cell[0]]), pooled, grid)
    moved = law.moved(score, s)
    assert moved[0] == approx(expected)
    ends = law.moved(np.array([-99.0, 99.0, 0.1]), np.array([-5.0, 999.0, np.nan]))
    assert ends == approx([grid[0], grid[-1], 0.1])
    assert ConditionalLaw.fit(np.ones(n), s).moved(score, s) is score


def test_folds_are_stratified_by_labels_and_keep_groups_together():
    labels = np.arange(60) % 3
    groups = np.arange(60) // 4
    plain = fold_of_rows(labels, 5, None, None, 1)
    assert np.bincount(plain).tolist() == [12] * 5
    assert not np.array_equal(plain, fold_of_rows(labels, 5, None, None, 2))
    assert np.array_equal(plain, fold_of_rows(labels, 5, None, None, 1 + 2**32))
    by_label = fold_of_rows(labels, 5, labels, None, 1)
    assert all(np.bincount(by_label[labels == label]).tolist() == [4] * 5 for label in range(3))
    rows = np.arange(60)
    halves = [(rows[30:], rows[:30]), (rows, rows[:0]), (rows < 30, rows >= 30)]
    assert fold_of_rows(labels, halves, None, None, 1).tolist() == [0] * 30 + [1] * 30
    for own in (labels, None):
        fold = fold_of_rows(labels, 5, own, groups, 1)
        assert all(len(set(fold[groups == group])) == 1 for group in range(15))
        assert set(fold) == set(range(5))


def test_every_random_state_that_is_open_gets_the_seed():
    model = BaggingClassifier(DecisionTreeClassifier(), random_state=5)
    seeded = with_seed(model, 2**31 + 9)
    assert (seeded.random_state, seeded.estimator.random_state) == (5, 9)
    assert model.estimator.random_state is None
    boosters = limit_boosters(BaggingClassifier(LGBMClassifier()), 3)
    assert (boosters.n_jobs, boosters.estimator.n_jobs) == (None, 3)
    assert limit_boosters(LGBMClassifier(n_jobs=2), 3).n_jobs == 2


def test_directions_come_from_a_seeded_part_of_many_rows(monkeypatch):
    monkeypatch.setattr(fitting, "PILOT_ROWS", 60)
    rng = np.random.default_rng(0)
    s = rng.uniform(size=(200, 1))
    s[:20] = np.nan
    X = np.nan_to_num(s) + 0.1 * rng.normal(size=(200, 2))
    rows = FitRows(X, s, ("age",), None, None, np.arange(200) % 4, 11)
    basis = SensitiveBasis.fit(s[20:, 0])
    seen = []

    def told(X, targets, weights, part, n_jobs):
        seen.append((X, part, weights, n_jobs))
        return np.eye(basis.values.shape[1])[:, :2]

    monkeypatch.setattr(fitting, "told_directions", told)
    model = ParityClassifier(n_jobs=1)
    found = model._told(rows, 0, basis, basis(s[:, 0]))
    assert found.values == approx(basis.values[:, :2])
    pilot = 20 + np.sort(np.random.default_rng(11).choice(180, 60, replace=False))
    assert np.array_equal(seen[0][0], X[pilot])
    assert np.array_equal(seen[0][1], pilot % 4 % 2 == 0)
    assert (seen[0][2].tolist(), seen[0][3]) == ([1.0] * 60, 1)
    assert ParityClassifier(uses_sensitive=True)._told(rows, 0, basis, basis(s[:, 0])) is basis
