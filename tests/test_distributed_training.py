"""Training on partitions, and sweeps whose fleets are tasks."""

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.metrics import r2_score, roc_auc_score

from frhsic import FRHSICClassifier, FRHSICRegressor, distributed
from frhsic.selection import fit_weights
from frhsic.training import Training

dask = pytest.importorskip("dask")
dd = pytest.importorskip("dask.dataframe")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")


def table(n=2000):
    rng = np.random.default_rng(0)
    age = rng.uniform(20, 70, n)
    skill = rng.normal(size=n)
    job = np.where(rng.random(n) < 0.5, "cook", "clerk")
    paid = np.where(skill + (age - 45) / 30 + 0.5 * rng.normal(size=n) > 0, "yes", "no")
    seniority = age + 5 * rng.normal(size=n)
    return pd.DataFrame({"age": age, "skill": skill, "seniority": seniority, "job": job, "paid": paid})


def test_partitions_train_one_model_with_one_encoding():
    frame = table()
    frame.loc[3, "paid"] = None
    parts = dd.concat([dd.from_pandas(frame, npartitions=3), dd.from_pandas(frame[:0], npartitions=1)])
    training = Training(batch_size=64, learning_rate=5e-3)
    estimator = FRHSICClassifier(penalty_weight=1.0, training=training, random_state=0)
    steps = []
    with dask.config.set(scheduler="sync"):
        model = distributed.fit(
            estimator, parts, target="paid", sensitive="age", epochs=6, sample_rows=500, watch=steps.append
        )
    assert not hasattr(estimator, "classes_")
    assert list(model.classes_) == ["no", "yes"]
    assert model.n_fits_ == 1 + 6 * 3  # the sample, then each partition but the empty one
    features = frame[["skill", "seniority", "job"]]
    scores = model.predict_proba(features)[:, 1]
    assert roc_auc_score(frame["paid"].drop(3) == "yes", np.delete(scores, 3)) > 0.8
    sizes = [int(step.split()[6].replace(",", "")) for step in steps if step.startswith("first call")]
    assert 400 < sizes[0] < 600
    with pytest.raises(ValueError, match="no column 'wage'"):
        distributed.fit(estimator, parts, target="wage", sensitive="age")
    with pytest.raises(TypeError, match="estimator is LinearRegression; pass an FRHSICClassifier"):
        distributed.fit(LinearRegression(), parts, target="paid", sensitive="age")
    nobody = dd.from_pandas(frame.assign(paid=None), npartitions=2)
    with pytest.raises(ValueError, match="no row has the target 'paid'; there is nothing to train on"):
        distributed.fit(estimator, nobody, target="paid", sensitive="age")


def test_partitions_train_a_regression():
    noise = np.random.default_rng(1).normal(size=600)
    frame = table(600).assign(years=lambda rows: rows["seniority"] + 2 * noise)
    parts, columns = dd.from_pandas(frame, npartitions=2), ["skill", "years"]
    training = Training(batch_size=64, learning_rate=1e-2)
    estimator = FRHSICRegressor(penalty_weight=0.0, training=training, random_state=0)
    with dask.config.set(scheduler="sync"):
        model = distributed.fit(estimator, parts, target="seniority", sensitive="age", columns=columns, epochs=5)
    assert r2_score(frame["seniority"], model.predict(frame[columns])) > 0.9


def test_fleets_as_tasks_give_the_models_of_one_fleet():
    frame = table(300)
    X, y, s = frame[["skill", "seniority"]], frame["paid"], frame["age"]
    model, weights = FRHSICClassifier(training=Training(epochs=2), random_state=0), [0.0, 1.0, 10.0]
    whole = fit_weights(model, weights, X, y, s)
    with joblib.parallel_config(backend="threading", n_jobs=2):
        tasks = fit_weights(model, weights, X, y, s)
    for one, other in zip(whole, tasks):
        assert one.penalty_weight == other.penalty_weight
        np.testing.assert_allclose(one.predict_proba(X), other.predict_proba(X), rtol=1e-4)
