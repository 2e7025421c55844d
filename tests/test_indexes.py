"""pandas indexes are read where they are given: rows in another order are refused, reset ones pass
with a warning.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest

import frhsic
from frhsic import dependence, parity
from frhsic._arrays import require_same_rows
from frhsic.auditing import Settings
from frhsic.estimators import ParityCoupling, ParityRegressor

RANDOM = np.random.default_rng(0)
LABELS = pd.Index(RANDOM.permutation(400) + 1000)
AGE = pd.Series(RANDOM.uniform(20, 60, 400), index=LABELS, name="age")
SCORE = pd.Series(AGE / 100 + 0.1 * RANDOM.standard_normal(400), index=LABELS, name="score")
QUICK = Settings(resamples=20, max_rows=100, probe_rows=100)
DOORS: dict[str, Any] = {
    "audit": lambda score, age: frhsic.audit(score, age, settings=QUICK),
    "audit, y": lambda score, age: frhsic.audit(score.to_numpy(), score, age, settings=QUICK),
    "audit, weights": lambda score, age: frhsic.audit(
        score, score, sample_weight=age, settings=QUICK
    ),
    "audit, groups": lambda score, age: frhsic.audit(
        score, score, groups=age.round(), settings=QUICK
    ),
    "gdp": lambda score, age: parity.gdp(score, age, resamples=0),
    "gdp, weights": lambda score, age: parity.gdp(
        score, score.to_numpy(), sample_weight=age, resamples=0
    ),
    "rank_gap": lambda score, age: parity.rank_gap(score, age, resamples=0),
    "hsic": lambda score, age: dependence.hsic(score, age),
    "ParityRegressor": lambda score, age: ParityRegressor(cv=2, n_jobs=1, random_state=0).fit(
        score.to_frame(), score.to_numpy(), sensitive_features=age
    ),
    "FRHSICRegressor": lambda score, age: frhsic.FRHSICRegressor(random_state=0).fit(
        score.to_frame(), score.to_numpy(), sensitive_features=age
    ),
    "ParityCoupling": lambda score, age: ParityCoupling(cv=2, n_jobs=1, random_state=0).fit(
        score.to_frame(), sensitive_features=age
    ),
    "probe_heads": lambda score, age: frhsic.probe_heads(
        None, score.to_frame(), score.to_numpy(), sensitive_features=age, heads=["linear"]
    ),
}

WITH_TORCH = ("hsic", "FRHSICRegressor")

pytestmark = pytest.mark.usefixtures("few_trees")


@pytest.mark.parametrize("door", DOORS)
def test_the_same_labels_in_another_order_are_refused_at_every_door(door: str):
    if door in WITH_TORCH:
        pytest.importorskip("torch")
    with pytest.raises(ValueError, match=r"same index in a different order.*reindex.*to_numpy"):
        DOORS[door](SCORE, AGE.sample(frac=1, random_state=1))


@pytest.mark.parametrize("door", ["audit", "gdp", "hsic"])
def test_the_remedies_give_the_number_that_is_right(door: str):
    if door in WITH_TORCH:
        pytest.importorskip("torch")
    turned = AGE.sample(frac=1, random_state=1)
    assert DOORS[door](SCORE, turned.reindex(SCORE.index)) == DOORS[door](SCORE, AGE)
    assert (
        DOORS[door](SCORE, AGE.to_numpy()) is not None
    )  # without a warning, which would be an error here


@pytest.mark.parametrize("other", [AGE.reset_index(drop=True), AGE.set_axis(range(5000, 5400))])
def test_labels_without_anything_in_common_pass_by_position_with_a_warning(other: pd.Series):
    with pytest.warns(UserWarning, match="rows are matched by position; pass s.to_numpy"):
        result = parity.gdp(SCORE, other, resamples=0)
    assert result == parity.gdp(SCORE, AGE, resamples=0)


def test_which_indexes_pass():
    """By the rule itself: a reset index that overlaps by accident warns, labels that agree in part
    are refused.
    """
    kept = AGE[:300]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        require_same_rows(
            (SCORE, "a"), (AGE, "b"), (AGE.to_numpy(), "c"), (None, "d"), ([1, 2], "e")
        )
        require_same_rows((SCORE, "a"), (kept, "b"))  # lengths are checked elsewhere
    drawn = AGE.set_axis(range(200, 600))
    with pytest.warns(UserWarning, match="the indexes of a and b differ"):
        require_same_rows((drawn, "a"), (drawn.reset_index(drop=True), "b"))
    with pytest.raises(ValueError, match="share only 200 labels"):
        require_same_rows((drawn, "a"), (AGE.set_axis(range(400, 800)), "b"))
