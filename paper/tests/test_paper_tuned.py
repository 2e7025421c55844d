"""Yardsticks that shrinking cannot win, the contraction, and the search."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
from pytest import approx
from sklearn.metrics import roc_auc_score

from frhsic_paper.frontiers import with_contraction
from frhsic_paper.measures import _auc
from frhsic_paper.studies.tuned import chosen
from frhsic_paper.tuned.rows import divided
from frhsic_paper.yardsticks import CONSTANT, REFERENCE, YARDSTICKS, at_level, contrasts, readings, standings


def test_auc_of_a_fleet_is_that_of_scikit_learn_also_with_ties():
    rng = np.random.default_rng(0)
    y, scores = rng.integers(2, size=60), rng.integers(5, size=60)
    own = _auc(torch.tensor(scores, dtype=torch.float64), torch.tensor(y, dtype=torch.float64))
    assert float(own) == approx(roc_auc_score(y, scores), rel=1e-12)


def test_the_error_of_contracted_predictions_is_the_one_that_they_have():
    rng = np.random.default_rng(1)
    y, f = rng.normal(size=(2, 50))
    record = {
        "dataset": "crime", "method": "none", "weight": 0.0, "repeat": 0, "task": "regression", "gdp_probability": 0.2,
        "performance": np.mean((f - y) ** 2), "score_sd": f.std(),
    }  # fmt: skip
    constant = record | {"method": "frem", "performance": np.mean((f.mean() - y) ** 2), "score_sd": 0.0}
    assert len(with_contraction([record])) == 1  # nothing tells the error of the mean
    for one in with_contraction([record, constant])[2:]:
        share = 1 / one["weight"]
        assert one["performance"] == approx(np.mean((f.mean() + share * (f - f.mean()) - y) ** 2), rel=1e-12)
        assert one["gdp_probability"] == approx(0.2 * share)


def test_contraction_keeps_accuracy_and_what_has_no_scale():
    record = {
        "dataset": "adult", "method": "none", "weight": 0.0, "repeat": 0, "task": "binary", "performance": 0.8,
        "gdp_logit": 1.0, "gdp_probability": 0.2, "gdp_decision": 0.3, "gdp_standardized": 0.4, "score_sd": 1.0,
    }  # fmt: skip
    for one in with_contraction([record])[1:]:
        assert (one["performance"], one["gdp_decision"], one["gdp_standardized"]) == (0.8, 0.3, 0.4)
        assert one["gdp_probability"] < 0.2


def test_no_test_row_tunes_and_none_is_tested_twice():
    tuning = np.concatenate([np.concatenate(divided(1000, "tune", k)) for k in range(3)])
    testing = np.concatenate([divided(1000, "test", k)[1] for k in range(5)])
    assert not np.isin(testing, tuning).any()
    assert len(np.unique(testing)) == len(testing) == 500


def paths(losses: dict[str, float]) -> pd.DataFrame:
    """Paths with loss a − a gap + noise, so that at gap g a method with advantage a has loss 1 − a + noise."""
    rng, rows = np.random.default_rng(2), []
    for dataset in ("one", "two", "three"):
        for split in range(6):
            fixed = {REFERENCE: [(1.0, 0.2)], CONSTANT: [(0.0, 1.0)]}
            for method, loss in losses.items():
                fixed[method] = [(gap, loss + 0.001 * rng.normal()) for gap in (0.0, 0.5, 1.0)]
            rows += [
                {"dataset": dataset, "split": split, "method": m, "gdp": g, "loss": value, "spread": 1.0}
                for m, points in fixed.items()
                for g, value in points
            ]
    return pd.DataFrame(rows)


def test_rank_regret_and_holm_of_a_comparison_whose_answer_is_known():
    read = readings(paths({"a": 0.3, "b": 0.5}))
    table = standings(read, ("a", "b"))
    name = next(iter(YARDSTICKS))
    assert [table.loc[(name, method), "rank"] for method in "ab"] == [1, 2]
    assert table.loc[(name, "b"), "regret"] == approx(0.2 / 0.8, rel=0.02)
    compared = contrasts(read, "a", ("b",), 0.2)
    assert compared.difference.to_numpy() == approx(-0.2, abs=0.005)
    assert (compared.adjusted < 0.05).all()
    assert (contrasts(readings(paths({"a": 0.3, "b": 0.3})), "a", ("b",), 0.2).adjusted > 0.05).all()


def test_a_model_that_diverged_is_no_point_and_a_path_without_points_is_a_constant():
    assert at_level(np.array([np.nan]), np.array([np.nan]), 0.5, 3.0) == (3.0, False)
    assert at_level(np.array([1.0, np.nan]), np.array([1.0, 0.0]), 0.5, 3.0) == (2.0, False)


@pytest.mark.parametrize("best", [0, 3])
def test_the_search_takes_the_trial_with_the_least_loss_at_equal_gdp(best):
    trials = paths({"frem": 0.5}).query("dataset == 'one'").assign(trial=0)
    trials = trials.assign(variant=trials.method, dial=trials.gdp.map({0.0: 50.0, 0.5: 2.0, 1.0: 0.0}))
    trials["method"] = trials.method.replace({CONSTANT: REFERENCE})  # both are of the unit of the reference
    own = trials[trials.method == "frem"]
    more = [own.assign(trial=k, loss=own.loss - 0.1 * (k == best)) for k in range(5)]
    ((trial, weights),) = chosen(pd.concat([trials[trials.method != "frem"], *more]), "frem").items()
    assert trial == best
    assert weights[0] == 0.0
