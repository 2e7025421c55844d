"""Base models in the file of a model."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import RandomForestRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from estimator_samples import QUICK, biased
from frhsic import load, save
from frhsic.estimators import BoostedTreesClassifier, ParityClassifier, ParityRegressor, describe
from frhsic.estimators.base_files import LoadedBooster

SHORT = {**QUICK, "epochs": 2}


def fitted_on(task: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    X, y, s = biased(120)
    targets = {"labels": y, "three labels": np.digitize(X[:, 1], [-0.5, 0.5]), "numbers": X[:, 1] + 0.1 * X[:, 2]}
    return X, targets[task], s


def based(base: Any, task: str = "labels") -> Any:
    X, y, s = fitted_on(task)
    return (ParityRegressor if task == "numbers" else ParityClassifier)(**{**SHORT, "base": base}).fit(
        X, y, sensitive_features=s
    )


def estimator_of(library: str, name: str, **parameters: Any) -> Any:
    return getattr(pytest.importorskip(library), name)(**parameters)


BASES: dict[str, tuple[Any, str, str]] = {
    "boosted": (lambda: "boosted", "labels", "trees"),
    "boosted numbers": (lambda: "boosted", "numbers", "trees"),
    "boosted classes": (lambda: BoostedTreesClassifier(n_iter=4), "three labels", "trees"),
    "pipeline": (lambda: make_pipeline(StandardScaler(), LogisticRegression()), "labels", "skops"),
    "forest": (lambda: RandomForestRegressor(5), "numbers", "skops"),
    "lightgbm": (
        lambda: estimator_of("lightgbm", "LGBMClassifier", n_estimators=5, n_jobs=1, verbose=-1),
        "labels",
        "lightgbm",
    ),
    "lightgbm numbers": (
        lambda: estimator_of("lightgbm", "LGBMRegressor", n_estimators=5, n_jobs=1, verbose=-1),
        "numbers",
        "lightgbm",
    ),
    "xgboost": (lambda: estimator_of("xgboost", "XGBClassifier", n_estimators=5), "three labels", "xgboost"),
}


@pytest.mark.parametrize("name", BASES)
def test_a_model_comes_back_with_its_base(name: str, tmp_path: Path):
    make, task, kind = BASES[name]
    model = based(make(), task)
    save(model, tmp_path / "model")
    again = load(tmp_path / "model")
    X, _, _ = biased(50, seed=3)
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    np.testing.assert_array_equal(again.base_(X), model.base_(X))
    assert again.base_performance_ == model.base_performance_
    assert describe(tmp_path / "model")["base"]["kind"] == kind
    save(again, tmp_path / "copy")
    np.testing.assert_array_equal(load(tmp_path / "copy").transform(X), model.transform(X))
    assert again.fit(*fitted_on(task)[:2], sensitive_features=fitted_on(task)[2]).base_ is not None


def test_a_frozen_base_stays_frozen(tmp_path: Path):
    X, y, _ = biased(60, seed=8)
    model = based(FrozenEstimator(LogisticRegression().fit(X, y)))
    save(model, tmp_path / "model")
    again = load(tmp_path / "model")
    assert isinstance(again.base, FrozenEstimator)
    np.testing.assert_array_equal(again.base_(X), model.base_(X))


def score_of(X: Any) -> Any:
    return np.asarray(X)[:, 1]


def test_a_loaded_base_gives_all_rows_the_scores_of_the_deployed_model(tmp_path: Path):
    """Out-of-fold scores are not saved."""
    X, _, _ = fitted_on("labels")
    model = based(LogisticRegression())
    save(model, tmp_path / "model")
    base = load(tmp_path / "model").base_
    encoded = model.feature_encoding_(X)
    np.testing.assert_array_equal(base.again(X, encoded), base(X))
    assert not np.allclose(model.base_.again(X, encoded), base(X), atol=1e-3)


def test_a_booster_of_other_classes_is_refused():
    model = estimator_of("lightgbm", "LGBMClassifier", n_estimators=2, n_jobs=1, verbose=-1)
    X, y, _ = fitted_on("three labels")
    text = model.fit(X, y).booster_.model_to_string()
    with pytest.raises(ValueError, match="the base has 3 outputs, not 1"):
        LoadedBooster(text, np.arange(2))


def test_a_function_is_passed_again(tmp_path: Path):
    model = based(score_of)
    save(model, tmp_path / "model")
    with pytest.raises(ValueError, match=r"a base of the user's own, function, .* load\(path, base=\.\.\.\)"):
        load(tmp_path / "model")
    again = load(tmp_path / "model", base=score_of)
    np.testing.assert_array_equal(again.predict_proba(biased(20)[0]), model.predict_proba(biased(20)[0]))
    assert again.base is score_of


class Foreign(LogisticRegression):
    pass


def test_a_base_of_types_that_are_not_trusted_is_refused(tmp_path: Path):
    with pytest.raises(TypeError, match="Foreign: only models made of types of scikit-learn"):
        save(based(Foreign()), tmp_path / "model")
    assert not (tmp_path / "model").exists()


def test_without_skops_the_message_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    model = based(LogisticRegression())
    monkeypatch.setitem(sys.modules, "skops.io", None)
    with pytest.raises(ImportError, match=r"pip install 'frhsic\[skops\]'"):
        save(model, tmp_path / "model")
