"""What `neighbours.py` tries: a cell for each use of another library, on made-up applicants.

The first line of a cell has the library, what it imports and what is used of it. Comments below say
what the user has to know, and are printed on the page. "# refused:" ends lines that raise, with a
pattern of the message; the lines after it are what works instead.
"""

import re
import warnings

import numpy as np
import pandas as pd
import sklearn
from sklearn.compose import make_column_transformer
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import make_scorer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import frhsic
from frhsic import ParityClassifier, ParityEncoder, ParityRegressor
from frhsic.parity import gdp_difference

random = np.random.default_rng(0)
age = pd.Series(random.uniform(18, 65, 600).round(), name="age")
job = ((age - 18) * random.uniform(0, 1, 600)).round(1)
test = random.normal(60, 12, 600).round(1)
log_odds = 0.08 * (job - 12) + 0.05 * (test - 60)
y = pd.Series(random.random(600) < 1 / (1 + np.exp(-log_odds)), name="hired").astype(int)
X = pd.DataFrame({"years in job": job, "test": test})
people = X.assign(degree=random.choice(["none", "school", "university"], 600))
typed = people.astype({"degree": "category"})
older = (age > 40).astype(int)


def parity(estimator):
    return ParityClassifier(estimator, limit="50%", cv=2, random_state=0, n_jobs=1)


def fit(estimator, X=X, y=y, age=age):
    return parity(estimator).fit(X, y, sensitive_features=age)


def moved(estimator, X=X):
    """Train a model on old rows, and reduce its gap on newer ones."""
    old = estimator.fit(X[:300], y[:300])
    return fit(FrozenEstimator(old), X[300:], y[300:], age[300:])


def asks():
    return parity(LogisticRegression()).set_fit_request(sensitive_features=True)


def gap():
    scorer = make_scorer(gdp_difference, greater_is_better=False, response_method="predict_proba")
    return scorer.set_score_request(sensitive_features=True)


model = fit(LogisticRegression())
scores = model.predict_proba(X)


def same(fitted, X):
    np.testing.assert_allclose(fitted.predict_proba(X), scores, rtol=0, atol=1e-9)


def saved(model, X=X):
    """Save and load a model, as the warning of save says; return the classes to trust."""
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        frhsic.save(model, "model.frhsic")
    trusted = re.findall(r"'([^']*)'", "".join(str(one.message) for one in warned))
    again = frhsic.load("model.frhsic", trusted=trusted)
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    return trusted


# %%%% Tables

# %% NumPy | numpy | arrays
fitted = fit(LogisticRegression(), X.to_numpy())
X = X.to_numpy()
same(fitted, X)

# %% NumPy | numpy | an array, for a model that was fitted on a frame
# is read by position, with the warning of scikit-learn
same(model, X.to_numpy())

# %% pandas | pandas | frames with text, categories and missing values
rows = typed.mask(random.random(people.shape) < 0.1)
fit(None, rows).predict_proba(rows)

# %% pandas | pandas pyarrow | columns of Arrow types
X = X.convert_dtypes(dtype_backend="pyarrow")
fitted = fit(LogisticRegression(), X)
same(fitted, X)

# %% polars | polars | `DataFrame`, `Series`
import polars as pl

X = pl.from_pandas(X)
fitted = fit(LogisticRegression(), X, pl.from_pandas(y), pl.from_pandas(age))
same(fitted, X)

# %% polars | polars | `LazyFrame` as X
# is collected
import polars as pl

X = pl.from_pandas(X).lazy()
fitted = fit(LogisticRegression(), X)
same(fitted, X)

# %% PyArrow | pyarrow | `Table`, arrays
import pyarrow as pa

X = pa.Table.from_pandas(X)
fitted = fit(LogisticRegression(), X, pa.array(y), pa.array(age))
same(fitted, X)

# %% DuckDB | duckdb | a relation
# `relation.df()`
import duckdb

fit(LogisticRegression(), duckdb.sql("from X"))
# refused: which holds no values yet; pass X.df()
fit(LogisticRegression(), duckdb.sql("from X").df())

# %% Ibis | ibis duckdb | a table
import ibis

fitted = fit(LogisticRegression(), ibis.memtable(X))
same(fitted, X)

# %% Narwhals | narwhals | a frame
import narwhals

fitted = fit(LogisticRegression(), narwhals.from_native(X))
same(fitted, X)

# %% Modin | modin | a frame
# `frame.modin.to_pandas()` (tried with pandas 2.3, which it needs)
import modin.pandas

fit(LogisticRegression(), modin.pandas.DataFrame(X))
# refused: X is a DataFrame of modin; pass X.modin.to_pandas
fit(LogisticRegression(), modin.pandas.DataFrame(X).modin.to_pandas())

# %% Dask | dask | a frame in `fit`
# `frame.compute()`; to audit one or to train in parts, see
# [more rows than memory](../scale.md#more-rows-than-memory)
import dask.dataframe as dd

fit(LogisticRegression(), dd.from_pandas(X, npartitions=2))
# refused: X is a DataFrame of dask; pass X.compute
fit(LogisticRegression(), dd.from_pandas(X, npartitions=2).compute())

# %% PyTorch | torch | tensors
import torch

X = torch.tensor(X.to_numpy())
fitted = fit(LogisticRegression(), X, torch.tensor(y), torch.tensor(age))
same(fitted, X)

# %% SciPy | scipy | a sparse matrix
# `matrix.toarray()`
from scipy import sparse

fit(LogisticRegression(), sparse.csr_matrix(X))
# refused: dense data is required
fit(LogisticRegression(), sparse.csr_matrix(X).toarray())

# %%%% scikit-learn

# %% scikit-learn | sklearn | `clone`, `get_params`, `set_params`
from sklearn.base import clone

assert clone(model).set_params(estimator__C=2).get_params()["estimator__C"] == 2

# %% scikit-learn | sklearn | `ColumnTransformer` and `Pipeline` inside
columns = make_column_transformer((OneHotEncoder(), ["degree"]), remainder=StandardScaler())
assert saved(fit(make_pipeline(columns, LogisticRegression()), people), people) == []

# %% scikit-learn | sklearn | `Pipeline` outside, routing switched off
# `fit(X, y, parityclassifier__sensitive_features=age)`, or switch routing on
make_pipeline(StandardScaler(), parity(LogisticRegression())).fit(X, y, sensitive_features=age)
# refused: does not accept the sensitive_features parameter
pipeline = make_pipeline(StandardScaler(), parity(LogisticRegression()))
pipeline.fit(X, y, parityclassifier__sensitive_features=age)

# %% scikit-learn | sklearn | `Pipeline` outside
# with metadata routing switched on
sklearn.set_config(enable_metadata_routing=True)
make_pipeline(StandardScaler(), asks()).fit(X, y, sensitive_features=age).predict(X)

# %% scikit-learn | sklearn | `GridSearchCV` by AUC and gap
# with metadata routing switched on
from sklearn.model_selection import GridSearchCV

sklearn.set_config(enable_metadata_routing=True)
measures = {"auc": "roc_auc", "gap": gap()}
search = GridSearchCV(asks(), {"estimator__C": [0.1, 1]}, cv=2, refit="auc", scoring=measures)
search.fit(X, y, sensitive_features=age)
assert search.best_params_["estimator__C"] in (0.1, 1)

# %% scikit-learn | sklearn | `RandomizedSearchCV(n_jobs=2)`
# with metadata routing switched on
from sklearn.model_selection import RandomizedSearchCV

sklearn.set_config(enable_metadata_routing=True)
choices = {"estimator__C": [0.1, 1]}
search = RandomizedSearchCV(asks(), choices, n_iter=2, cv=2, scoring=gap(), n_jobs=2)
search.fit(X, y, sensitive_features=age)
assert search.best_params_["estimator__C"] in (0.1, 1)

# %% scikit-learn | sklearn | `HalvingGridSearchCV`
# with metadata routing switched on
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.model_selection import HalvingGridSearchCV

sklearn.set_config(enable_metadata_routing=True)
search = HalvingGridSearchCV(asks(), {"estimator__C": [0.1, 1]}, cv=2, scoring=gap())
search.fit(X, y, sensitive_features=age)
assert search.best_params_["estimator__C"] in (0.1, 1)

# %% scikit-learn | sklearn | `cross_validate`, `cross_val_predict`
from sklearn.model_selection import cross_val_predict, cross_validate

settings = {"cv": 2, "params": {"sensitive_features": age}}
assert cross_validate(parity(LogisticRegression()), X, y, **settings)["test_score"].min() > 0.5
assert cross_val_predict(parity(LogisticRegression()), X, y, **settings).shape == (600,)

# %% scikit-learn | sklearn | `GroupKFold` as `cv`
from sklearn.model_selection import GroupKFold

person = np.arange(600) // 3
grouped = parity(LogisticRegression()).set_params(cv=GroupKFold(2))
grouped.fit(X, y, sensitive_features=age, groups=person).predict(X)

# %% scikit-learn | sklearn | `TimeSeriesSplit` as `cv`
# fit on the earlier rows of each split, and measure on the later ones
from sklearn.model_selection import TimeSeriesSplit

parity(LogisticRegression()).set_params(cv=TimeSeriesSplit(2)).fit(X, y, sensitive_features=age)
# refused: each of these 600 rows has to be tested once
for known, later in TimeSeriesSplit(2).split(X):
    fit(LogisticRegression(), X.loc[known], y[known], age[known]).score(X.loc[later], y[later])

# %% scikit-learn | sklearn | `sample_weight`
fitted = parity(LogisticRegression())
same(fitted.fit(X, y, sensitive_features=age, sample_weight=np.ones(600)), X)

# %% scikit-learn | sklearn | `FrozenEstimator` inside
assert saved(moved(LogisticRegression())) == []

# %% scikit-learn | sklearn | `CalibratedClassifierCV` outside
# of a frozen model; audit it again, since calibration changes the gap
from sklearn.calibration import CalibratedClassifierCV

CalibratedClassifierCV(FrozenEstimator(model)).fit(X, y).predict_proba(X)

# %% scikit-learn | sklearn | `CalibratedClassifierCV` inside
# loads with `trusted=[...]`, the line that `frhsic.save` prints
from sklearn.calibration import CalibratedClassifierCV

saved(fit(CalibratedClassifierCV(LogisticRegression(), cv=2)))

# %% scikit-learn | sklearn | `VotingClassifier` outside
# with metadata routing switched on
sklearn.set_config(enable_metadata_routing=True)
from sklearn.ensemble import VotingClassifier

voting = VotingClassifier([("a", asks()), ("b", LogisticRegression())], voting="soft")
voting.fit(X, y, sensitive_features=age).predict_proba(X)

# %% scikit-learn | sklearn | `StackingClassifier` outside
# scikit-learn passes age on to the last model, too; stack fitted models with `cv="prefit"`
sklearn.set_config(enable_metadata_routing=True)
from sklearn.ensemble import StackingClassifier

stack = StackingClassifier([("a", asks()), ("b", LogisticRegression())], cv=2)
stack.fit(X, y, sensitive_features=age)
# refused: unexpected keyword argument 'sensitive_features'
StackingClassifier([("a", model), ("b", LogisticRegression().fit(X, y))], cv="prefit").fit(X, y)

# %% scikit-learn | sklearn | `StackingClassifier` inside
# loads with `trusted=[...]`, the line that `frhsic.save` prints
from sklearn.ensemble import RandomForestClassifier, StackingClassifier

stack = [("a", LogisticRegression()), ("b", RandomForestClassifier(5, random_state=0))]
saved(fit(StackingClassifier(stack, cv=2)))

# %% scikit-learn | sklearn | `TunedThresholdClassifierCV`
# of a fitted model, with `cv="prefit"`
from sklearn.model_selection import TunedThresholdClassifierCV

TunedThresholdClassifierCV(model, cv="prefit", refit=False).fit(X, y).predict(X)

# %% scikit-learn | sklearn | `TransformedTargetRegressor` inside
from sklearn.compose import TransformedTargetRegressor

logs = TransformedTargetRegressor(Ridge(), func=np.log1p, inverse_func=np.expm1)
model = ParityRegressor(logs, cv=2, random_state=0, n_jobs=1)
model.fit(X[["test"]], X["years in job"], sensitive_features=age).predict(X)

# %% scikit-learn | sklearn | `permutation_importance`, `partial_dependence`
from sklearn.inspection import partial_dependence, permutation_importance

assert permutation_importance(model, X, y, n_repeats=2, random_state=0).importances_mean[1] > 0
assert np.ptp(partial_dependence(model, X, ["test"], grid_resolution=5)["average"]) > 0

# %% scikit-learn | sklearn polars | `set_output`
import polars as pl

encoder = ParityEncoder(random_state=0, n_jobs=1).set_output(transform="polars")
assert isinstance(encoder.fit_transform(X, y, sensitive_features=age), pl.DataFrame)
assert isinstance(encoder.set_output(transform="pandas").transform(X), pd.DataFrame)

# %%%% Models inside

# %% LightGBM | lightgbm | inside and frozen, a blank in a column name
from lightgbm import LGBMClassifier

boosting = LGBMClassifier(n_estimators=10, n_jobs=1, verbose=-1)
assert saved(fit(boosting, typed), typed) == []
assert saved(moved(boosting, typed), typed) == []

# %% LightGBM | lightgbm | a `Booster` of `lightgbm.train`
# pass its function `booster.predict`
import lightgbm

settings = {"objective": "binary", "num_threads": 1, "verbose": -1}
booster = lightgbm.train(settings, lightgbm.Dataset(X[:300], y[:300]), 10)
fit(booster.predict, X[300:], y[300:], age[300:]).predict_proba(X)

# %% XGBoost | xgboost | inside and frozen
from xgboost import XGBClassifier

assert saved(fit(XGBClassifier(n_estimators=10, n_jobs=1))) == []
assert saved(moved(XGBClassifier(n_estimators=10, n_jobs=1))) == []

# %% XGBoost | xgboost | with categories
# loads with `trusted=[...]`, the line that `frhsic.save` prints
from xgboost import XGBClassifier

saved(fit(XGBClassifier(n_estimators=10, n_jobs=1, enable_categorical=True), typed), typed)

# %% CatBoost | catboost | inside and frozen
# loads with `trusted=[...]`, the line that `frhsic.save` prints
from catboost import CatBoostClassifier

quick = {"iterations": 10, "thread_count": 1, "verbose": False, "allow_writing_files": False}
saved(fit(CatBoostClassifier(**quick)))
saved(moved(CatBoostClassifier(**quick)))

# %% CatBoost | catboost | `cat_features` as a list
# scikit-learn cannot clone it; pass a tuple. A frozen model may have a list
from catboost import CatBoostClassifier

quick = {"iterations": 10, "thread_count": 1, "verbose": False, "allow_writing_files": False}
fit(CatBoostClassifier(cat_features=["degree"], **quick), people)
# refused: Cannot clone object CatBoostClassifier
fit(CatBoostClassifier(cat_features=("degree",), **quick), people)
saved(moved(CatBoostClassifier(cat_features=["degree"], **quick), people), people)

# %% skrub | skrub | `TableVectorizer`, `tabular_pipeline`
# loads with `trusted=[...]`, the line that `frhsic.save` prints
import skrub

saved(fit(make_pipeline(skrub.TableVectorizer(), LogisticRegression()), people), people)
saved(fit(skrub.tabular_pipeline(LogisticRegression()), people), people)

# %% imbalanced-learn | imblearn | a pipeline with a sampler
# loads with `trusted=[...]`, the line that `frhsic.save` prints
from imblearn.over_sampling import SMOTE
from imblearn.pipeline import make_pipeline

saved(fit(make_pipeline(SMOTE(random_state=0), LogisticRegression())))

# %% category_encoders | category_encoders | `TargetEncoder` inside
from category_encoders import TargetEncoder

fit(make_pipeline(TargetEncoder(), LogisticRegression()), people).predict(people)

# %% category_encoders | category_encoders | `frhsic.save` of such a model
# `joblib.dump`, or `TargetEncoder` of scikit-learn, which needs no trust
from category_encoders import TargetEncoder

saved(fit(make_pipeline(TargetEncoder(), LogisticRegression()), people), people)
# refused: holds a category_encoders\S+TargetEncoder, .*joblib.dump
import joblib

joblib.dump(fit(make_pipeline(TargetEncoder(), LogisticRegression()), people), "model.joblib")
joblib.load("model.joblib").predict(people)

# %% Feature-engine | feature_engine | `CountFrequencyEncoder` inside
from feature_engine.encoding import CountFrequencyEncoder

fit(make_pipeline(CountFrequencyEncoder(), LogisticRegression()), people).predict(people)

# %% InterpretML | interpret | `ExplainableBoostingClassifier` inside
from interpret.glassbox import ExplainableBoostingClassifier

fit(ExplainableBoostingClassifier(max_rounds=20, interactions=0, n_jobs=1)).predict(X)

# %% statsmodels | statsmodels | a fitted formula
# pass its function `predict`
import statsmodels.formula.api as smf

rows = X.rename(columns={"years in job": "years"})
formula = smf.logit("hired ~ years + test", rows.assign(hired=y)[:300]).fit(disp=0)
fit(formula.predict, rows[300:], y[300:], age[300:]).predict(rows)

# %% skorch | skorch torch | a network inside
import torch
from skorch import NeuralNetClassifier

torch.manual_seed(0)
layers = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Softmax(1))
rows = StandardScaler().fit_transform(X).astype(np.float32)
fit(NeuralNetClassifier(layers, max_epochs=5, verbose=0), rows).predict(rows)

# %% FLAML | flaml | `flaml.default.LGBMClassifier` inside
from flaml.default import LGBMClassifier

fit(LGBMClassifier(n_estimators=10, n_jobs=1, verbose=-1)).predict(X)

# %%%% Explaining, measuring, tuning

# %% SHAP | shap | `Explainer(model.predict_proba, X)`
# columns of numbers
import shap

values = shap.Explainer(model.predict_proba, X[:50])(X[:5])
np.testing.assert_allclose(values.base_values + values.values.sum(axis=1), scores[:5])

# %% SHAP | shap | columns of text
# SHAP subtracts rows; write text as numbers before `fit`
import shap

encoded = make_column_transformer((OneHotEncoder(), ["degree"]))
fitted = fit(make_pipeline(encoded, LogisticRegression()), people)
shap.Explainer(fitted.predict_proba, people[:50])(people[:5])
# refused: unsupported operand type
rows = people.assign(degree=people["degree"].astype("category").cat.codes)
shap.Explainer(fit(LogisticRegression(), rows).predict_proba, rows[:50])(rows[:5])

# %% LIME | lime | `LimeTabularExplainer`
from lime.lime_tabular import LimeTabularExplainer

rows = X.to_numpy()
explainer = LimeTabularExplainer(rows, random_state=0)
assert len(explainer.explain_instance(rows[0], model.predict_proba, num_samples=100).as_list()) == 2

# %% DiCE | dice_ml | counterfactuals
import dice_ml

rows = dice_ml.Data(dataframe=X.assign(hired=y), continuous_features=[*X], outcome_name="hired")
dice = dice_ml.Dice(rows, dice_ml.Model(model=model, backend="sklearn"), method="random")
dice.generate_counterfactuals(X[:1], total_CFs=1, desired_class="opposite", random_seed=0)

# %% MAPIE | mapie | `SplitConformalClassifier`
from mapie.classification import SplitConformalClassifier

SplitConformalClassifier(model, prefit=True).conformalize(X, y).predict_set(X)

# %% fairlearn | fairlearn | `MetricFrame`
from fairlearn.metrics import MetricFrame, selection_rate

bands = pd.cut(age, [0, 30, 50, 99], labels=["to 30", "to 50", "older"])
rates = MetricFrame(
    metrics=selection_rate, y_true=y, y_pred=model.predict(X), sensitive_features=bands
)
assert rates.by_group["to 30"] == model.predict(X[age <= 30]).mean()

# %% fairlearn | fairlearn | `ThresholdOptimizer` of a fitted model
from fairlearn.postprocessing import ThresholdOptimizer

rates = ThresholdOptimizer(estimator=model, prefit=True, predict_method="predict_proba")
rates.fit(X, y, sensitive_features=older).predict(X, sensitive_features=older, random_state=0)

# %% fairlearn | fairlearn | `CorrelationRemover` inside
# loads with `trusted=[...]`, the line that `frhsic.save` prints
from fairlearn.preprocessing import CorrelationRemover

saved(fit(make_pipeline(CorrelationRemover(sensitive_feature_ids=["test"]), LogisticRegression())))

# %% AIF360 | aif360 | metrics of its datasets and of `aif360.sklearn`
from aif360.datasets import BinaryLabelDataset
from aif360.metrics import BinaryLabelDatasetMetric
from aif360.sklearn.metrics import statistical_parity_difference

decided = model.predict(X)
difference = decided[older == 0].mean() - decided[older == 1].mean()
assert np.isclose(statistical_parity_difference(y, decided, prot_attr=older), difference)
rows = pd.DataFrame({"older": older, "hired": decided})
rows = BinaryLabelDataset(df=rows, label_names=["hired"], protected_attribute_names=["older"])
measured = BinaryLabelDatasetMetric(rows, [{"older": 0}], [{"older": 1}])
assert np.isclose(measured.mean_difference(), difference)

# %% Optuna | optuna | two objectives, two jobs
import optuna


def objectives(trial):
    regularized = LogisticRegression(C=trial.suggest_float("C", 0.01, 10, log=True))
    fitted = fit(regularized, X[:400], y[:400], age[:400])
    return fitted.score(X[400:], y[400:]), fitted.choice_.gaps["age"].value


study = optuna.create_study(directions=["maximize", "minimize"])
study.optimize(objectives, n_trials=2, n_jobs=2)
assert study.best_trials

# %%%% Keeping, serving, parallel work, notebooks

# %% joblib | joblib | `dump` and `load`, and pickle
# loading runs code of the file; `frhsic.load` does not
import pickle

import joblib

joblib.dump(model, "model.joblib")
for again in (pickle.loads(pickle.dumps(model)), joblib.load("model.joblib")):
    np.testing.assert_array_equal(again.predict_proba(X), scores)

# %% skops | skops | `skops.io.dumps` and `loads`
# every class has to be trusted; a file of `frhsic.save` needs no trust
import skops.io

data = skops.io.dumps(model)
again = skops.io.loads(data, trusted=skops.io.get_untrusted_types(data=data))
np.testing.assert_array_equal(again.predict_proba(X), scores)

# %% MLflow | mlflow | `mlflow.sklearn.log_model`
# log the file of `frhsic.save` as in the [cookbook](../cookbook.md#mlflow), or pass
# `serialization_format="cloudpickle"`
import mlflow

with mlflow.start_run():
    mlflow.sklearn.log_model(model, name="model")
# refused: untrusted types
with mlflow.start_run():
    logged = mlflow.sklearn.log_model(model, name="model", serialization_format="cloudpickle")
assert mlflow.pyfunc.load_model(logged.model_uri).predict(X).shape == (600,)

# %% MLflow | mlflow fastapi httpx | a logged file: load and serve
# the application that `mlflow models serve` starts
import mlflow
from fastapi.testclient import TestClient
from mlflow.pyfunc.scoring_server import init


class Scores(mlflow.pyfunc.PythonModel):
    def load_context(self, context):
        import frhsic

        self.model = frhsic.load(context.artifacts["model"])

    def predict(self, context, model_input):
        return self.model.predict_proba(model_input)[:, 1]


frhsic.save(model, "applicants.frhsic")
with mlflow.start_run():
    logged = mlflow.pyfunc.log_model(
        name="scores", python_model=Scores(), artifacts={"model": "applicants.frhsic"}
    )
loaded = mlflow.pyfunc.load_model(logged.model_uri)
rows = {"dataframe_split": X[:3].to_dict("split", index=False)}
served = TestClient(init(loaded)).post("/invocations", json=rows).json()["predictions"]
np.testing.assert_allclose(served, scores[:3, 1])

# %% FastAPI | fastapi httpx | a route that predicts
from fastapi import FastAPI
from fastapi.testclient import TestClient

app = FastAPI()


@app.post("/score")
def score(row: dict) -> float:
    return model.predict_proba(pd.DataFrame([row]))[0, 1]


assert np.isclose(TestClient(app).post("/score", json=X.iloc[0].to_dict()).json(), scores[0, 1])

# %% skl2onnx | skl2onnx onnxruntime | a fitted model as ONNX
# `distill`, then `to_onnx(distilled.model[-1], …)`, for columns of numbers
# ([recipe](../cookbook.md#onnx))
from skl2onnx import to_onnx

to_onnx(model, X[:1])
# refused: Unable to find a shape calculator
import onnxruntime
from sklearn.ensemble import GradientBoostingClassifier

trees = GradientBoostingClassifier(n_estimators=10)
plain = frhsic.distill(model, trees, X, y, sensitive_features=age).model
rows = X.to_numpy(np.float32)
graph = to_onnx(plain[-1], rows[:1], options={"zipmap": False})
scored = onnxruntime.InferenceSession(graph.SerializeToString()).run(None, {"X": rows})[1]
np.testing.assert_allclose(scored, plain.predict_proba(X), rtol=0, atol=1e-5)

# %% onnxmltools | onnxmltools onnxruntime | a distilled LightGBM as ONNX
# `distilled.model[-1]`, of columns of numbers
import onnxruntime
from lightgbm import LGBMClassifier
from onnxmltools import convert_lightgbm
from onnxmltools.convert.common.data_types import FloatTensorType

trees = LGBMClassifier(n_estimators=10, n_jobs=1, verbose=-1)
plain = frhsic.distill(model, trees, X, y, sensitive_features=age).model
graph = convert_lightgbm(plain[-1], initial_types=[("X", FloatTensorType([None, 2]))], zipmap=False)
session = onnxruntime.InferenceSession(graph.SerializeToString())
scored = session.run(None, {"X": X.to_numpy(np.float32)})[1]
np.testing.assert_allclose(scored, plain.predict_proba(X), rtol=0, atol=1e-5)

# %% joblib | joblib | `Parallel`, two processes
from joblib import Parallel, delayed

parts = Parallel(n_jobs=2)(delayed(model.predict_proba)(rows) for rows in (X[:300], X[300:]))
np.testing.assert_allclose(np.concatenate(parts), scores)

# %% Dask | distributed dask | a cluster: fits, predictions and an audit
import dask.dataframe as dd
from distributed import Client
from joblib import parallel_config
from sklearn.model_selection import cross_validate

with Client(n_workers=2, threads_per_worker=1, dashboard_address=None), parallel_config("dask"):
    cross_validate(parity(LogisticRegression()), X, y, cv=2, params={"sensitive_features": age})
    frame = dd.from_pandas(X.assign(age=age), npartitions=2)
    frame["p"] = frame.map_partitions(lambda rows: model.predict_proba(rows)[:, 1])
    assert frhsic.distributed.audit(frame, sensitive="age", score="p").rows.used == 600

# %% nbconvert | nbconvert nbclient ipykernel | a Jupyter notebook, run and written as HTML
# [what is shown](../cookbook.md#in-a-notebook)
import nbformat
from nbclient import NotebookClient
from nbconvert import HTMLExporter

frhsic.save(model, "model.frhsic")
lines = "import frhsic\nmodel = frhsic.load('model.frhsic')", "model", "model.choice_"
notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(line) for line in lines])
NotebookClient(notebook).execute()
assert all("text/html" in cell.outputs[0].data for cell in notebook.cells[1:])
assert HTMLExporter().from_notebook_node(notebook)[0].count("<svg") == 1
