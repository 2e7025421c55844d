"""S known for some rows: NaN in `sensitive_features`."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest

from estimator_samples import QUICK, biased
from frhsic.estimators import FRHSICClassifier, FRHSICRegressor, ParityEncoder, UnlabelledRowsWarning, fit_path

LONGER: dict[str, Any] = QUICK | {"epochs": 30, "penalty": "hsic", "penalty_weight": 20.0}


def hidden(s: np.ndarray, share: float, seed: int = 1) -> np.ndarray:
    """Return s with NaN in a share of the rows."""
    return np.where(np.random.default_rng(seed).uniform(size=len(s)) < share, np.nan, s)


def gap(model: Any, X: np.ndarray, s: np.ndarray) -> float:
    """Return the mean distance of the mean score in ten groups along s from the overall mean."""
    scores = model.predict_proba(X)[:, 1]
    groups = np.array_split(np.argsort(s), 10)
    return float(np.mean([abs(scores[rows].mean() - scores.mean()) for rows in groups]))


def quietly(model: Any, X: Any, y: Any, s: Any, **more: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnlabelledRowsWarning)
        return model.fit(X, y, sensitive_features=s, **more)


def test_half_of_the_attributes_do_nearly_as_much_as_all_of_them():
    X, y, s = biased(600)
    X_new, _, s_new = biased(4000, seed=5)
    free = FRHSICClassifier(**(LONGER | {"penalty_weight": 0.0})).fit(X, y, sensitive_features=s)
    whole = FRHSICClassifier(**LONGER).fit(X, y, sensitive_features=s)
    half = quietly(FRHSICClassifier(**LONGER), X, y, hidden(s, 0.5))
    gaps = [gap(model, X_new, s_new) for model in (free, whole, half)]
    assert gaps[1] < 0.25 * gaps[0]
    assert abs(gaps[2] - gaps[1]) < 0.1 * gaps[0]


def test_rows_without_the_attribute_teach_the_task():
    rng = np.random.default_rng(0)

    def draw(n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        s = rng.uniform(size=n)
        X = np.column_stack([s, rng.normal(size=(n, 12))])
        return X, (X[:, 1:].sum(axis=1) + rng.normal(size=n) > 0).astype(int), s

    X, y, s = draw(800)
    X_new, y_new, _ = draw(4000)
    some = np.where(np.arange(800) < 120, s, np.nan)
    light = LONGER | {"penalty_weight": 0.5}
    few = FRHSICClassifier(**light).fit(X[:120], y[:120], sensitive_features=s[:120])
    more = quietly(FRHSICClassifier(**light), X, y, some)
    assert more.score(X_new, y_new) > few.score(X_new, y_new) + 0.03


def test_what_the_hidden_values_were_does_not_matter():
    X, y, s = biased(200)
    known = np.arange(200) % 2 == 0
    other = np.where(known, s, s**2)
    models = [quietly(FRHSICClassifier(**QUICK), X, y, np.where(known, values, np.nan)) for values in (s, other)]
    assert np.array_equal(models[0].decision_function(X), models[1].decision_function(X))
    scale = models[0].sensitive_encoding_.columns[0]
    assert (scale.low, scale.high) == (s[known].min(), s[known].max())


def test_a_warning_of_its_own_says_how_many_and_all_known_says_nothing():
    X, y, s = biased(200)
    some = np.where(np.arange(200) < 50, np.nan, s)
    model = FRHSICClassifier(**(QUICK | {"epochs": 1}))
    with pytest.warns(
        UnlabelledRowsWarning, match=r"NaN in 50 of 200 rows.*48 rows of a batch of 64;.*batch_size=85"
    ) as caught:
        model.fit(X, y, sensitive_features=some)
    assert len([w for w in caught if w.category is UnlabelledRowsWarning]) == 1
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(X, y, sensitive_features=s)
        model.set_params(penalty_weight=0.0).fit(X, y, sensitive_features=some)


def test_a_row_counts_if_it_has_every_attribute():
    X, y, s = biased(200)
    second = np.where(np.arange(200) % 4 == 0, np.nan, X[:, 2])
    first = np.where(np.arange(200) % 4 == 1, np.nan, s)
    frame = pd.DataFrame({"age": first, "income": second})
    both = np.isnan(first) | np.isnan(second)
    with pytest.warns(UnlabelledRowsWarning, match="NaN in 100 of 200 rows"):
        model = FRHSICClassifier(**QUICK).fit(X, y, sensitive_features=frame)
    scales = {column.name: (column.low, column.high) for column in model.sensitive_encoding_.columns}
    assert scales["age"] == (s[~both].min(), s[~both].max())
    again = quietly(FRHSICClassifier(**QUICK), X, y, np.where(both[:, None], np.nan, frame.to_numpy()))
    assert np.array_equal(model.decision_function(X), again.decision_function(X))


def test_it_goes_with_weights_paths_ensembles_early_stopping_and_parts():
    X, y, s = biased(400)
    some = hidden(s, 0.4)
    options = QUICK | {"early_stopping": True, "n_iter_no_change": 3, "ensemble": 2, "epochs": 6}
    with pytest.warns(UnlabelledRowsWarning):
        path = fit_path(
            FRHSICRegressor(**options), X, X[:, 1], weights=[0.0, 1.0], sensitive_features=some,
            sample_weight=np.linspace(0.5, 1.5, 400),
        )  # fmt: skip
    assert all(np.isfinite(model.predict(X)).all() and len(model.best_epochs_) == 2 for model in path)
    assert np.isfinite(quietly(ParityEncoder(**QUICK), X, None, some).transform(X)).all()
    model = FRHSICClassifier(**QUICK)
    for _ in range(2):
        with pytest.warns(UnlabelledRowsWarning):
            model.partial_fit(X, y, sensitive_features=some)
    assert np.isfinite(model.decision_function(X)).all()


def test_missing_values_of_pandas_are_missing():
    X, y, s = biased(200)
    some = pd.Series(s).round().astype("Int64").mask(pd.Series(np.arange(200) < 60))
    with pytest.warns(UnlabelledRowsWarning, match="NaN in 60 of 200"):
        FRHSICClassifier(**(QUICK | {"epochs": 1})).fit(X, y, sensitive_features=some)


def test_no_row_or_too_few_rows_with_the_attribute_are_refused():
    X, y, s = biased(200)
    model = FRHSICClassifier(**(QUICK | {"epochs": 1}))
    with pytest.raises(ValueError, match="no row has all of sensitive_features"):
        model.fit(X, y, sensitive_features=np.full(200, np.nan))
    with pytest.raises(ValueError, match="a batch of 64 has 1 of them; a penalty needs 4"):
        quietly(model, X, y, np.where(np.arange(200) < 5, s, np.nan))
