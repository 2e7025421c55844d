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

from frhsic.estimators import conditional
from frhsic.estimators.conditional import (
    SplinesAndTrees,
    Targets,
    TreeTable,
    fold_of_rows,
    limit_boosters,
    predicted_directions,
)
from frhsic.estimators.fitting import with_seed


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
    ("n", "columns", "classes", "rounds", "leaves", "rate", "share"),
    [
        (9_999, 5, 2, 40, 8, 0.05, 0.8),
        (9_999, 3, 0, 12, 8, 0.1, 1.0),
        (10_000, 8, 3, 40, 31, 0.2, 0.5),
        (10_000, 8, 2, 21, 31, 0.3, 0.5),
        (10_000, 60, 0, 20, 47, 0.3, 0.5),
    ],
)
def test_many_rows_have_few_large_trees_with_long_steps(
    asked, n, columns, classes, rounds, leaves, rate, share
):
    """A tree sees half of the columns, but four at least."""
    rows = Targets(np.zeros((n, columns)), np.zeros((n, 1)), None)
    model_of(classes, rounds=rounds, n_jobs=3, random_state=7)._trees(rows, [rounds])
    assert asked.calls[0].settings == {
        "objective": {0: "regression", 2: "binary", 3: "multiclass"}[classes],
        "num_class": 3 if classes == 3 else 1,
        "num_leaves": leaves,
        "learning_rate": approx(rate),
        "feature_fraction": share,
        "seed": 7,
        "num_threads": 3,
    }
    assert asked.calls[0].patience == max(rounds, 20)


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
    imputer, ranks, splines = (step for _, step in parts["curves"][0].steps)
    assert (imputer.strategy, ranks.n_quantiles, splines.n_knots) == ("median", 200, 6)
    assert isinstance(pipeline["model"], LogisticRegression)
    few = Targets(rows.x[:90], rows.x[:90, :1], np.ones(90))
    pipeline = model_of(0)._additive(few)
    assert isinstance(pipeline["model"], RidgeCV)
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
