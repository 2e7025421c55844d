"""The engine of all regressions: its additive part against scikit-learn's on the same design, its
trees against single boosters, and what folds, weights and groups may and may not change.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import lightgbm
import numpy as np
import pandas as pd
import pytest
from pytest import approx
from scipy.linalg import hadamard
from scipy.special import expit, softmax
from sklearn.ensemble import BaggingClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import log_loss
from sklearn.model_selection import GroupKFold
from sklearn.tree import DecisionTreeClassifier

from frhsic.estimators import additive, boosters, engine
from frhsic.estimators.additive import (
    RIDGE_GRID,
    Basis,
    Design,
    Grams,
    RidgePath,
    column_functions,
    fit_logistic,
    logistic_sums,
    spline_functions,
)
from frhsic.estimators.basis import predictable_directions
from frhsic.estimators.boosters import leaf_count, merge_boosters, table_settings
from frhsic.estimators.engine import fit_engine
from frhsic.estimators.engine_rows import LocalRows
from frhsic.estimators.fitting import limit_boosters, with_seed
from frhsic.estimators.folds import HashedFolds, fold_of_rows, row_hashes
from frhsic.estimators.responses import FitTarget, Response, TargetColumn
from frhsic.tables.schema import Schema


def made_up(n: int = 400, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return a table with few and many numbers, categories and missing values, folds and
    weights.
    """
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 6))
    x[:, 0] += 1e6
    x[:, 1] = rng.integers(0, 4, n)
    x[:, 2] = rng.integers(0, 50, n)
    x[:, 3] = rng.integers(0, 2, n)
    x[rng.random(n) < 0.1, 4] = np.nan
    x[rng.random(n) < 0.1, 2] = np.nan
    return x, rng.integers(0, 3, n), rng.integers(1, 4, n) / 2


def design_of(basis: Basis, x: np.ndarray) -> np.ndarray:
    return np.asarray(basis.values(basis.bins.incidence(x)))


def scaled(design: np.ndarray, train: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the columns that vary in the training rows, centred there and over the root of their
    standard deviation.
    """
    mean = np.average(design[train], axis=0, weights=weights[train])
    variance = np.average((design[train] - mean) ** 2, axis=0, weights=weights[train])
    varies = variance > 1e-9
    return np.asarray((design - mean)[:, varies] / variance[varies] ** 0.25)


def test_least_squares_of_each_fold_are_those_of_scikit_learn():
    x, fold, weights = made_up()
    y = np.column_stack([np.sin(x[:, 5]), x[:, 0] - 1e6 + (x[:, 1] == 2)])
    rows = Design.fit(x, [2], fold, weights)
    grams = Grams.of(rows, y)
    path = RidgePath.fit(grams, 2)
    design = design_of(rows.basis, x)
    errors = np.zeros((len(RIDGE_GRID), 2))
    for j in range(3):
        train = fold != j
        columns = scaled(design, train, weights)
        for i, ridge in enumerate(RIDGE_GRID):
            model = Ridge(ridge * weights[train].sum())
            model.fit(columns[train], y[train], sample_weight=weights[train])
            own = (design - grams.means[:-2]) @ path.coefficients[j, i]
            own += path.intercepts[j, i] + grams.means[-2:]
            assert own == approx(model.predict(columns), abs=1e-6)
            errors[i] += weights[~train] @ (own[~train] - y[~train]) ** 2
    assert path.errors == approx(errors / weights.sum(), rel=1e-9)


def test_combinations_of_targets_have_the_combined_paths():
    x, fold, weights = made_up()
    y = np.column_stack([x[:, 5], np.cos(x[:, 5]), x[:, 3]])
    turn = np.array([[0.6, 0.0], [0.0, 1.0], [0.8, 0.5]])
    design = Design.fit(x, [2], fold, weights)
    path = RidgePath.fit(Grams.of(design, y), 3).along(turn)
    expected = RidgePath.fit(Grams.of(design, y @ turn), 2)
    assert path.grams.sums == approx(expected.grams.sums, abs=1e-9)
    assert path.coefficients == approx(expected.coefficients, abs=1e-8)
    assert path.errors == approx(expected.errors, rel=1e-9)


@pytest.mark.parametrize("classes", [2, 3])
def test_logistic_regressions_of_each_fold_are_those_of_scikit_learn(classes, monkeypatch):
    monkeypatch.setattr(additive, "LOGISTIC_PRECISION", 1e-9)
    x, fold, weights = made_up()
    rng = np.random.default_rng(1)
    odds = np.column_stack([np.zeros(len(x)), 2 * np.sin(x[:, 5]), x[:, 3]])[:, :classes]
    labels = np.array([rng.choice(classes, p=own) for own in softmax(odds, axis=1)])
    rows = Design.fit(x, [2], fold, weights)
    outputs = 1 if classes == 2 else classes
    grams = Grams.of(rows, np.eye(classes)[labels][:, -outputs:])
    ridge = 0.01
    sums = partial(logistic_sums, rows, labels)
    coefficients, intercepts = fit_logistic(grams, outputs, ridge, sums)
    design = design_of(rows.basis, x)
    for j in range(3):
        train = fold != j
        columns = scaled(design, train, weights)
        model = LogisticRegression(C=1 / (ridge * weights[train].sum()), tol=1e-11, max_iter=5000)
        model.fit(columns[train], labels[train], sample_weight=weights[train])
        own = design @ coefficients[j] + intercepts[j]
        chances = softmax(own, axis=1) if classes > 2 else np.c_[expit(-own), expit(own)]
        assert chances == approx(model.predict_proba(columns), abs=1e-6)


def test_a_large_constant_in_a_column_costs_no_digits():
    x, fold, weights = made_up()
    y = x[:, :1] - 1e6 + x[:, 5:]
    near = x - np.array([1e6, 0, 0, 0, 0, 0])
    errors = []
    for table in (x, near):
        grams = Grams.of(Design.fit(table, [2], fold, weights), y)
        errors.append(RidgePath.fit(grams, 1).errors)
    assert errors[0] == approx(errors[1], rel=1e-8)


def functions_of(column: np.ndarray, is_category: bool, splines: int) -> Any:
    return column_functions(column, is_category, splines, np.ones(len(column)))


def test_columns_have_lines_splines_and_indicators():
    k = np.arange(60.0)
    for column, width in ((k * 0, 0), (k % 2, 1), (k % 6, 6), (k % 7, 9), (k, 9)):
        edges, functions = functions_of(column, False, 8)
        assert functions.shape == (len(edges) + 2, width)
    assert functions_of(k, False, 0)[1].shape[1] == 1
    edges, functions = functions_of(np.where(k == 3, np.nan, k), False, 0)
    assert functions[-1] == approx([functions[:-1, 0][29], 1.0], abs=0.02)
    line = functions_of(k**3, False, 0)[1][:-1, 0]
    assert line == approx(k**3 / 59**3)
    levels = np.repeat([0.0, 1.0, 2.0, 3.0, 4.0], [500, 2, 500, 2, 1])
    edges, functions = functions_of(levels, True, 8)
    assert edges.tolist() == [1.0, 2.0, 3.0]  # 3 and 4 are rare and neighbours
    assert functions[:-1].tolist() == [[1, 0, 0], [0, 0, 1], [0, 1, 0], [0, 0, 1]]
    assert functions[-1].tolist() == [0, 0, 0]


def test_functions_of_weighted_columns_are_those_of_repeated_rows():
    x, _, _ = made_up(900)
    counts = np.random.default_rng(1).integers(0, 4, 900)
    some = counts > 0
    weighted = Basis.fit(x[some], [2], counts[some] / 7)
    repeated = Basis.fit(np.repeat(x, counts, axis=0), [2], np.ones(counts.sum()))
    for one, other in zip(weighted.bins.edges, repeated.bins.edges, strict=True):
        assert np.array_equal(one, other)
    assert weighted.functions.toarray() == approx(repeated.functions.toarray(), abs=1e-9)


@pytest.mark.parametrize("count", [2, 3, 4, 8])
def test_splines_sum_to_one(count):
    values = spline_functions(np.linspace(0, 1, 11), count)
    assert values.shape == (11, count)
    assert values.sum(axis=1) == approx(1.0)


def test_bins_of_new_rows_are_those_of_the_fitted_ones():
    x = np.array([[1.0], [2.0], [np.nan], [4.0]])
    bins = Basis.fit(x, [], np.ones(4)).bins
    rows = bins.incidence(np.array([[-9.0], [1.9], [2.0], [99.0], [np.nan]])).indices
    assert rows.tolist() == [0, 0, 1, 2, 3]


def fitted(x: np.ndarray, fold: np.ndarray, weights: np.ndarray, seed: int = 0) -> Any:
    rng = np.random.default_rng(5)
    binary = Response(x[:, 5] + rng.normal(size=len(x)) > 0, np.array([False, True]))
    three = Response(rng.integers(0, 3, len(x)), np.arange(3))
    functions = Response(np.column_stack([np.sin(2 * x[:, 5]) * x[:, 3], x[:, 5] ** 2]))
    return fit_engine(x, [2], [binary, three, functions], fold, weights, seed)


def test_a_row_is_predicted_by_the_models_without_its_fold(monkeypatch):
    """With one candidate for rounds and share, nothing is chosen by halves."""
    monkeypatch.setattr(engine, "ADDITIVE_SHARES", np.array([0.3]))
    monkeypatch.setattr(engine, "PATIENCE", 99)
    monkeypatch.setattr(boosters, "MOST_ROUNDS", 0)
    x, fold, weights = made_up()
    fit = fitted(x, fold, weights)
    assert fit.engine.booster is None
    own = fit.engine.predict(x)[fold, np.arange(len(x))]
    assert own == approx(fit.out_of_fold, abs=1e-12)
    assert own[:, 1:4].sum(axis=1) == approx(1.0)


def test_what_is_measured_on_a_row_was_chosen_on_folds_of_the_other_half(monkeypatch):
    """An additive part that is right in even folds and wrong in odd ones: odd folds leave it out
    for even ones, and these want it for odd ones.
    """
    monkeypatch.setattr(boosters, "MOST_ROUNDS", 0)
    x, _, weights = made_up()
    fold = np.arange(len(x)) % 4
    y = x[:, 5] - x[:, 5].mean()
    rows = LocalRows.of(x, [2], fold, weights, 0, 1)
    additive_part = np.where(fold % 2 == 0, y, -y)[:, None]
    response = Response(y[:, None])
    target = TargetColumn(response, y, FitTarget.of(0, response))
    trees = engine._boost(rows, target, additive_part, 0)
    even = fold % 2 == 0
    assert trees.out_of_fold[~even, 0] == approx(-y[~even])
    assert np.array_equal(trees.out_of_fold[even], target.constants(fold, weights)[fold][even])


def test_the_merged_booster_has_the_bits_of_the_single_ones():
    x, fold, _ = made_up(600)
    y = np.column_stack([np.sin(x[:, 5]), x[:, 3] * x[:, 5]])
    labels = (fold + (x[:, 5] > 0)) % 3
    settings = table_settings(6)
    texts: list[list[str]] = []
    expected = []
    for j in range(2):
        own = {"objective": "regression", "num_leaves": 4 + j, **settings}
        data = lightgbm.Dataset(x, y[:, j], categorical_feature=[2])
        texts.append(
            [
                lightgbm.train(own | {"seed": fold}, data, 5 + 2 * j).model_to_string()
                for fold in range(2)
            ]
        )
    several = settings | {"objective": "multiclass", "num_class": 3}
    data = lightgbm.Dataset(x, labels, categorical_feature=[2])
    texts.append(
        [lightgbm.train(several | {"seed": j}, data, 3).model_to_string() for j in range(2)]
    )
    texts.append([])
    merged = merge_boosters(texts, [1, 1, 3, 1], [5, 7, 3, 0])
    for j in range(2):
        for own in texts:
            if own:
                single = lightgbm.Booster(model_str=own[j])
                expected.append(single.predict(x, raw_score=True).reshape(len(x), -1))
            else:
                expected.append(np.zeros((len(x), 1)))
    assert np.array_equal(merged.predict(x, raw_score=True), np.column_stack(expected))
    assert np.array_equal(merged.predict(x[:1], raw_score=True), np.column_stack(expected)[:1])
    assert merge_boosters([[], []], [1, 1], [0, 0]) is None


def test_seeds_differ_by_fold_and_target(monkeypatch):
    seen = []
    booster = lightgbm.Booster

    def noted(*arguments: Any, **named: Any) -> Any:
        if arguments:
            seen.append(arguments[0]["seed"])
        return booster(*arguments, **named)

    monkeypatch.setattr(lightgbm, "Booster", noted)
    x, fold, weights = made_up()
    fitted(x, fold, weights)
    assert len(seen) == len(set(seen)) == 3 * 4
    fitted(x, fold, weights, seed=1)
    assert len(set(seen)) == 24


def test_settings_change_slowly_with_rows_and_columns():
    sizes = np.unique(np.geomspace(10, 1e7, 2000).astype(int))
    leaves = [leaf_count(int(n)) for n in sizes]
    steps = np.diff(leaves)
    assert steps.min() >= 0
    assert steps.max() <= 1
    assert leaves[0] == 8
    shares = [table_settings(d)["feature_fraction"] for d in range(1, 400)]
    assert np.diff(shares).max() <= 0
    assert np.abs(np.diff(shares)).max() <= 0.2
    bins = [table_settings(d)["max_bin"] for d in range(1, 5000)]
    assert np.diff(bins).max() <= 0
    assert np.diff(bins).min() >= -1
    assert (bins[0], bins[-1]) == (127, 63)
    x = np.random.default_rng(0).normal(size=(450, 500))
    widths = [Basis.fit(x[:, :d], [], np.ones(450)).count for d in (5, 40, 300, 400, 401, 500)]
    assert widths == [45, 360, 300, 400, 400, 400]


def test_rows_of_one_person_do_not_stop_the_trees_late():
    """Each person has a random label, and rows that tell who it is: nothing is to be learned."""
    rng = np.random.default_rng(0)
    person = np.repeat(np.arange(150), 20)
    x = rng.normal(size=(150, 5))[person] + 0.01 * rng.normal(size=(3000, 5))
    y = (rng.random(150) < 0.4)[person] * 1.0
    fold = np.empty(3000, dtype=int)
    for j, (_, held_out) in enumerate(GroupKFold(5).split(x, y, person)):
        fold[held_out] = j
    fit = fit_engine(x, [], [Response(y, np.arange(2))], fold, np.ones(3000), 0)
    constant = log_loss(y, np.full(3000, y.mean()))
    assert log_loss(y, fit.out_of_fold[:, 0]) < constant + 0.02


def test_trees_find_what_is_not_additive_and_splines_what_is():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2000, 3))
    values = np.column_stack([np.sign(x[:, 0] * x[:, 1]), np.sin(2 * x[:, 2])])
    fold = np.arange(2000) % 5
    fit = fit_engine(x, [], [Response(values)], fold, np.ones(2000), 0)
    error = ((fit.out_of_fold - values) ** 2).mean(axis=0) / values.var(axis=0)
    assert error[0] < 0.3
    assert error[1] < 0.01
    assert fit.engine.shares[1] > 0.5 > fit.engine.shares[0]


def test_directions_are_those_that_x_predicts():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(1500, 3))
    functions = rng.normal(size=(1500, 4))
    functions[:, 2] = 0.8 * x[:, 0] + 0.6 * functions[:, 2]
    fold = np.arange(1500) % 5
    target = Response(functions, known=rng.random(1500) < 0.8, reduced=True)
    fit = fit_engine(x, [], [target], fold, np.ones(1500), 0)
    (along,) = fit.directions
    assert along.shape == (4, 1)
    assert abs(along[2, 0]) > 0.98
    assert fit.engine.predict(x).shape == (5, 1500, 1)


def test_rows_without_a_value_do_not_count_and_are_predicted():
    x, fold, weights = made_up()
    known = np.arange(len(x)) % 4 > 0
    values = np.sin(x[:, 5:])
    results = []
    for filler in (0.0, 1e9):
        own = np.where(known[:, None], values, filler)
        target = Response(own, known=known)
        results.append(fit_engine(x, [2], [target], fold, weights, 0).out_of_fold)
    assert np.array_equal(results[0], results[1])
    assert np.isfinite(results[0]).all()


def test_numbers_in_any_unit_have_predictions_in_that_unit():
    x, fold, weights = made_up()
    y = np.sin(x[:, 5]) + 0.1 * x[:, 3]
    plain, scaled = (
        fit_engine(x, [2], [Response(own[:, None])], fold, weights, 0).out_of_fold
        for own in (y, 1e12 + 1e6 * y)
    )
    assert scaled == approx(1e12 + 1e6 * plain, abs=1.0)


def test_many_rows_are_predicted_in_blocks(monkeypatch):
    x, fold, weights = made_up()
    fit = fitted(x, fold, weights)
    whole = fit.engine.predict(x)
    monkeypatch.setattr(engine, "ROWS_AT_ONCE", 7)
    assert np.array_equal(fit.engine.predict(x), whole)
    assert fit.engine.predict(x[:0]).shape == (3, 0, 6)


def test_directions_are_kept_beyond_a_hundredth_and_beyond_noise():
    """Signs without correlation, so that eigenvalues and their errors are known: the mean of a
    function is a share of it, plus noise of a known size.
    """
    signs = hadamard(16)[:, 1:].astype(float)
    weights = np.full(16, 3.0)
    targets = signs[:, :4]
    shares = np.array([-0.5, 0.0099, 0.0103, 1.0])  # of all, a hundredth is 0.0102
    found = predictable_directions(shares * targets, targets, weights)
    assert found == approx(np.eye(4)[:, [3, 2]])
    # four functions: √8 standard errors of 0.1 / √16 are 0.0707
    means = np.array([0.070, 0.072, 0.2, 1.0]) * targets + 0.1 * signs[:, 4:8]
    assert predictable_directions(means, targets, weights) == approx(np.eye(4)[:, [3, 2, 1]])
    nothing = predictable_directions(0 * targets, targets, weights)
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
    boosters = limit_boosters(BaggingClassifier(lightgbm.LGBMClassifier()), 3)
    assert (boosters.n_jobs, boosters.estimator.n_jobs) == (None, 3)
    assert limit_boosters(lightgbm.LGBMClassifier(n_jobs=2), 3).n_jobs == 2


def test_directions_of_an_interaction_are_found_by_trees():
    rng = np.random.default_rng(0)
    truth, _ = np.linalg.qr(rng.normal(size=(5, 2)))
    x = rng.normal(size=(4_000, 3))
    predictable = np.column_stack([x[:, 0], x[:, 0] * x[:, 1]])
    functions = predictable @ truth.T + rng.normal(size=(4_000, 5))
    fold = np.arange(4_000) % 4
    fit = fit_engine(x, [], [Response(functions, reduced=True)], fold, np.ones(4_000), 0)
    (found,) = fit.directions
    assert found.shape == (5, 2)
    assert found.T @ found == approx(np.eye(2), abs=1e-12)
    # cosines of the angles between both planes
    assert np.linalg.svd(found.T @ truth)[1].min() > 0.98


@pytest.mark.parametrize("classes", [0, 2])
def test_few_rows_of_a_smooth_sum_are_followed_better_than_by_trees_alone(classes, monkeypatch):
    rng = np.random.default_rng(0)
    x = rng.uniform(-2, 2, size=(4_600, 4))
    truth = 2 * np.sin(2 * x[:, 0]) + x[:, 1] ** 2 - x[:, 2]
    y = truth[:600] + (rng.logistic(size=600) if classes else rng.normal(size=600))
    if classes:
        y = (y > 0) * 1.0
        truth = expit(truth)
    target = Response(y, np.arange(2)) if classes else Response(y[:, None])
    errors = []
    for shares in (engine.ADDITIVE_SHARES, np.zeros(1)):
        monkeypatch.setattr(engine, "ADDITIVE_SHARES", shares)
        fit = fit_engine(x[:600], [], [target], np.arange(600) % 5, np.ones(600), 0)
        predicted = fit.engine.predict(x[600:]).mean(axis=0)[:, 0]
        errors.append(np.mean((predicted - truth[600:]) ** 2))
    # least squares on four splines of eight columns has an error of about 32/600 of the noise
    assert errors[0] < (0.95 if classes else 0.9) * errors[1]
    assert errors[0] < (0.015 if classes else 0.1)


def test_a_missing_level_is_nan_where_every_column_is_a_category():
    X = pd.DataFrame({"a": ["x", None, "y"], "b": ["u", "v", "u"]})
    codes = Schema.learn(X).codes(X)
    assert np.array_equal(codes, [[0, 0], [np.nan, 1], [1, 0]], equal_nan=True)


def test_additive_parts_with_weights_are_those_of_repeated_rows(monkeypatch):
    """Trees count rows, whatever their weights: LightGBM's bins, leaves and draws."""
    monkeypatch.setattr(boosters, "MOST_ROUNDS", 0)
    x, fold, _ = made_up(500)
    rng = np.random.default_rng(3)
    y = (x[:, 5] + rng.normal(size=500) > 0) * 1.0
    values = np.column_stack([np.sin(x[:, 5]), x[:, 3]])
    counts = rng.integers(0, 4, 500)
    results = []
    for rows, weights in (
        (np.flatnonzero(counts), counts[counts > 0] / 3),
        (np.repeat(np.arange(500), counts), np.ones(counts.sum())),
    ):
        targets = [Response(y[rows], np.arange(2)), Response(values[rows])]
        fit = fit_engine(x[rows], [2], targets, fold[rows], weights, 0)
        results.append(fit.engine.predict(x))
    assert results[0] == approx(results[1], abs=1e-5)


def test_hashes_of_rows_are_the_same_on_every_platform():
    codes = np.array([[1.0, 2.5], [np.nan, -0.0], [np.nan, 0.0], [1e300, -3.0]])
    expected = [14960346899670384448, 9003503917149990594, 9003503917149990594]
    assert row_hashes(codes).tolist() == [*expected, 8525467557194568936]
    fold = HashedFolds.fit(codes, 2, np.ones(4))(codes)
    assert fold[1] == fold[2]


def test_trees_go_on_while_they_improve_beside_a_good_additive_part():
    """At first the additive part alone is better than any mixture with a few trees."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(1_500, 30))
    corner = (x[:, 20] > 0) & (x[:, 21] > 0)
    y = x[:, :20].sum(axis=1) + 6 * corner + rng.normal(size=1_500)
    fit = fit_engine(x, [], [Response(y[:, None])], np.arange(1_500) % 5, np.ones(1_500), 0)
    assert fit.engine.shares[0] < 1
    assert np.mean((fit.out_of_fold[:, 0] - y) ** 2) < 3.95  # the additive part alone: 4.04
