"""`n_jobs` limits every pool that a call uses, and the pools are given back."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
import torch
from lightgbm import LGBMClassifier, LGBMRegressor
from sklearn.base import BaseEstimator, ClassifierMixin, MultiOutputMixin, RegressorMixin
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_info, threadpool_limits
from xgboost import XGBClassifier

from frhsic import ParityClassifier, ParityCoupling, _threads
from frhsic._threads import limit_threads
from frhsic.cli import _terminal

BEFORE = 3
"""Threads of every pool before a call, also on machines with fewer cores."""

seen: list[int] = []


def pools() -> set[int]:
    return {pool["num_threads"] for pool in threadpool_info()}


class Watched(ClassifierMixin, BaseEstimator):
    """A classifier that notes the threads of all pools in `seen`."""

    def fit(self, X: Any, y: Any) -> Watched:
        seen.extend(pools())
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        seen.extend(pools())
        return np.full((len(X), 2), 0.5)


class WatchedMeans(MultiOutputMixin, RegressorMixin, BaseEstimator):
    """A regression of several columns that does the same."""

    def fit(self, X: Any, y: np.ndarray, sample_weight: Any = None) -> WatchedMeans:
        seen.extend(pools())
        self.columns_ = y.shape[1]
        return self

    def predict(self, X: Any) -> np.ndarray:
        seen.extend(pools())
        return np.zeros((len(X), self.columns_))


@pytest.fixture
def data():
    seen.clear()
    torch.get_num_threads()  # which sets the number of OpenMP, the first time
    rng = np.random.default_rng(0)
    X = rng.normal(size=(220, 2))
    with threadpool_limits(limits=BEFORE):
        assert pools() == {BEFORE}  # BLAS and OpenMP are loaded
        yield X, (X[:, 0] > 0).astype(int), rng.normal(size=220)


@pytest.mark.parametrize(("n_jobs", "within"), [(None, 1), (1, 1), (2, 2), (BEFORE + 2, BEFORE)])
@pytest.mark.filterwarnings("ignore::frhsic.estimators.IndistinctGapWarning")
@pytest.mark.filterwarnings("ignore::frhsic.estimators.UnmetLimitWarning")
def test_fit_and_predict_use_so_many_threads_and_give_them_back(data, n_jobs, within):
    X, y, s = data
    model = ParityClassifier(Watched(), n_jobs=n_jobs, cv=2, limit=None, random_state=0)
    model.fit(X, y, sensitive_features=s)
    assert pools() == {BEFORE}
    in_fit = len(seen)
    model.predict(X)
    assert pools() == {BEFORE}
    assert len(seen) > in_fit
    assert set(seen) == {within}


def test_a_coupling_uses_so_many_threads_and_gives_them_back(data):
    X, _, s = data
    coupling = ParityCoupling(WatchedMeans(), cv=2, n_jobs=2, random_state=0)
    coupling.fit_transform(X, sensitive_features=s)
    assert set(seen) == {2}
    assert pools() == {BEFORE}


def test_an_error_gives_the_threads_back(data):
    with pytest.raises(ValueError, match="limit"):
        ParityClassifier(limit=7, n_jobs=1).fit(data[0], data[1], sensitive_features=data[2])
    assert pools() == {BEFORE}


class ProcessWide:
    """A BLAS with one number of threads for the process, as older versions of threadpoolctl set
    it.
    """

    threads = BEFORE

    def info(self) -> list[dict[str, Any]]:
        return [{"user_api": "blas", "prefix": "blas", "num_threads": self.threads}]

    @contextmanager
    def limit(self, limits: dict[str, int]) -> Iterator[None]:
        before = self.threads
        self.threads = limits.get("blas", before)
        yield
        if "blas" in limits:
            self.threads = before


def test_of_calls_at_once_the_first_gives_the_threads_back(monkeypatch):
    blas = ProcessWide()
    monkeypatch.setattr(_threads, "_pools", lambda modules: blas)
    began, ended = threading.Event(), threading.Event()

    def second() -> None:
        with limit_threads(1):
            began.set()
            assert ended.wait(20)

    worker = threading.Thread(target=second)
    with limit_threads(1):
        worker.start()
        assert began.wait(20)
        assert blas.threads == 1
    ended.set()
    worker.join()
    assert blas.threads == BEFORE


@pytest.mark.parametrize(
    ("estimator", "threads"),
    [
        (LGBMClassifier(n_estimators=2, verbose=-1), 2),
        (LGBMClassifier(n_estimators=2, verbose=-1, n_jobs=3), 3),
        (XGBClassifier(n_estimators=2), 2),
        (make_pipeline(StandardScaler(), LGBMClassifier(n_estimators=2, verbose=-1)), 2),
    ],
    ids=["LightGBM", "its own", "XGBoost", "in a pipeline"],
)
@pytest.mark.filterwarnings("ignore::frhsic.estimators.IndistinctGapWarning")
@pytest.mark.filterwarnings("ignore::frhsic.estimators.UnmetLimitWarning")
def test_boosters_that_would_take_all_cores_take_n_jobs(data, estimator, threads):
    X, y, s = data
    means = LGBMRegressor(n_estimators=2, verbose=-1)
    model = ParityClassifier(
        estimator, attribute_estimator=means, n_jobs=2, cv=2, limit=None, random_state=0
    ).fit(X, y, sensitive_features=s)
    for (own,) in model.models_:
        last = own[-1] if hasattr(own, "steps") else own
        assert last.n_jobs == threads
    for own in model.attribute_models_:
        assert own[0].estimator.n_jobs == 2
    assert means.n_jobs is None  # what was passed is not changed


def test_a_command_computes_on_one_thread_and_gives_the_others_back(data, monkeypatch):
    assert torch.get_num_threads() == BEFORE
    monkeypatch.setenv("OMP_NUM_THREADS", "5")
    with _terminal.one_thread():
        assert pools() == {1}
        assert os.environ["OMP_NUM_THREADS"] == "1"
    assert pools() == {BEFORE}
    assert os.environ["OMP_NUM_THREADS"] == "5"
    monkeypatch.delenv("OMP_NUM_THREADS")
    with _terminal.one_thread():
        assert os.environ["OMP_NUM_THREADS"] == "1"
    assert "OMP_NUM_THREADS" not in os.environ
