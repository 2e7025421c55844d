"""What each check of a model file says, and where its limit lies.

Each case changes one thing of what a good file holds: it is refused with the very sentence, or
read, if the sentence is empty.
"""

from __future__ import annotations

import copy
import io
import json
import os
import re
import warnings
import zipfile
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
import pandas as pd
import pytest
import safetensors.numpy
import xgboost
from frhsic.estimators.conditional import BoostedMeans
from sklearn import ensemble, linear_model, preprocessing
from sklearn.compose import ColumnTransformer
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.impute import MissingIndicator
from sklearn.multioutput import MultiOutputRegressor
from sklearn.tree import DecisionTreeClassifier
from sklearn.tree._tree import NODE_DTYPE

from estimator_samples import biased, quick
from frhsic import (
    FRHSICClassifier,
    FRHSICRegressor,
    ParityClassifier,
    ParityCoupling,
    ParityEncoder,
    load,
)
from frhsic.persistence import (
    HEADER_ENTRY,
    MOST_BYTES,
    MOST_JSON,
    MOST_NAMES,
    WEIGHTS_ENTRY,
    boosters,
    file_bytes,
    models,
    networks,
    scikit_learn,
)
from frhsic.persistence.rules import NOT_WRITTEN, check_state, fits, limited
from frhsic.persistence.values import MOST_EMPTY, MOST_TEXT, Reader
from frhsic.tables.columns import MOST_ENCODED_LEVELS, MOST_TABLE_COLUMNS
from frhsic.tables.encoding import Category

X, y, s = biased(80)
THREE = np.arange(80) % 3
LEAVES: dict[str, Any] = {"num_leaves": 4, "n_jobs": 1, "verbose": -1, "random_state": 0}
Good = tuple[Any, Callable[[Any], Any]]


def longer(values: Any) -> Any:
    return (
        np.concatenate([values, values[:1]])
        if isinstance(values, np.ndarray)
        else (values + values[:1])
    )


def shorter(values: Any) -> Any:
    return values[:-1]


def second(change_one: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda values: (values[0], change_one(values[1]), *values[2:])


def fewer(columns: dict[str, Any]) -> dict[str, Any]:
    return {name: values[:-1] for name, values in columns.items()}


def renamed(columns: dict[str, Any]) -> dict[str, Any]:
    return {f"other {name}": values for name, values in columns.items()}


def all_choose(choices: np.ndarray, prototype: int) -> np.ndarray:
    return np.full((len(choices), 1), prototype)


def with_levels(count: int, columns: Any) -> Any:
    return (Category("a", tuple(range(count)), other=False, missing=False), *columns[1:])


def one_nan(values: np.ndarray) -> np.ndarray:
    return np.where(np.arange(values.size).reshape(values.shape) == 0, np.nan, values)


def text(pattern: str, new: str) -> Callable[[str], str]:
    """Return a change of a text at the first place that matches."""
    return partial(re.sub, pattern, new, count=1)


def lightgbm_model(trees: int = 2, classes: int = 1, objective: str = "binary sigmoid:1") -> str:
    """The text of a model of two columns, the second of two categories."""
    head = f"""tree
version=v4
num_class={classes}
num_tree_per_iteration={classes}
label_index=0
max_feature_idx=1
objective={objective}
feature_names=a b
feature_infos=none none
"""
    tree = """
Tree={}
num_leaves=3
num_cat=1
split_feature=0 1
split_gain=2.0 1.0
threshold=0.5 0.0
decision_type=2 1
left_child=1 -1
right_child=-2 -3
leaf_value=0.1 0.2 0.3
leaf_weight=1.0 1.0 1.0
leaf_count=1 1 1
internal_value=0.1 0.2
internal_weight=3.0 2.0
internal_count=3 2
cat_boundaries=0 1
cat_threshold=2
is_linear=0
shrinkage=0.1

"""
    return head + "".join(map(tree.format, range(trees))) + "end of trees\n"


ONE_LEAF = """
num_leaves=1
num_cat=0
leaf_value=0.5
split_feature=
split_gain=
threshold=
decision_type=
left_child=
right_child=
leaf_weight=
leaf_count=
internal_value=
internal_weight=
internal_count=
is_linear=0
shrinkage=1.0
"""


def xgboost_model(model: Any) -> Any:
    raw = model(n_estimators=2, max_depth=2, n_jobs=1).fit(X, THREE).get_booster().save_raw("json")
    return json.loads(raw)


def tree_parts() -> Any:
    tree = DecisionTreeClassifier(max_depth=2, random_state=0).fit(X, y).tree_
    state = scikit_learn.tree_state(tree)
    return state | {"nodes": state["nodes"].view(NODE_DTYPE)}


def built(build: Callable[[Any], Any], state: Any) -> Any:
    return build(state | {"nodes": state["nodes"].view(np.uint8)})


def histogram_nodes() -> Any:
    model = ensemble.HistGradientBoostingClassifier(max_iter=1).fit(X, y)
    return {"nodes": model._predictors[0][0].nodes}


def without_gap(model: Any, *arguments: Any) -> Any:
    with warnings.catch_warnings(action="ignore"):  # of a limit that 80 rows do not meet
        return model.fit(*arguments, sensitive_features=s)


def whole(name: str, model: Any) -> Good:
    """A fitted model of the library with its arrays."""
    saved = (models.SOLVED | networks.NETWORKS)[name][1]
    return [model, saved.arrays(model)], lambda parts: saved.complete(*parts)


def closed_form() -> Good:
    model = ParityClassifier(
        linear_model.LogisticRegression(),
        attribute_estimator=linear_model.Ridge(),
        cv=2,
        random_state=0,
    )
    return whole("ParityClassifier", without_gap(model, X, y))


def encoder() -> Good:
    model = ParityEncoder(
        linear_model.LogisticRegression(),
        attribute_estimator=linear_model.LinearRegression(),
        prototypes=3,
        cv=2,
        random_state=0,
    )
    return whole("ParityEncoder", without_gap(model, X, y))


def coupling() -> Good:
    table = pd.DataFrame({"a": X[:, 0], "b": np.where(y, "yes", "no")})
    model = ParityCoupling(BoostedMeans(2, n_jobs=1), cv=2, random_state=0)
    return whole("ParityCoupling", model.fit(table, sensitive_features=s))


def network(cls: Any, target: Any) -> Good:
    model = cls(**quick(hidden=(4,), size=3, epochs=1)).fit(X, target, sensitive_features=s)
    return whole(cls.__name__, model)


def column_transformer(steps: int) -> ColumnTransformer:
    encoder = preprocessing.OneHotEncoder(categories=[range(2**12)])
    values = np.zeros((2, 1), int)
    return ColumnTransformer([(str(i), encoder, [0]) for i in range(steps)]).fit(values)


GOOD: dict[str, Callable[[], Good]] = {
    "tree": lambda: (tree_parts(), partial(built, scikit_learn.build_tree)),
    "histogram": lambda: (histogram_nodes(), partial(built, scikit_learn.build_predictor)),
    "decision tree": lambda: (
        DecisionTreeClassifier(max_depth=2).fit(X, y),
        scikit_learn.check_decision_tree,
    ),
    "constant": lambda: (DummyRegressor().fit(X, y), scikit_learn.check_outputs),
    "prior": lambda: (DummyClassifier().fit(X, y), scikit_learn.check_outputs),
    "linear": lambda: (linear_model.Ridge().fit(X, X), scikit_learn.check_linear),
    "two classes": lambda: (linear_model.LogisticRegression().fit(X, y), scikit_learn.check_linear),
    "three classes": lambda: (
        linear_model.LogisticRegression().fit(X, THREE),
        scikit_learn.check_linear,
    ),
    "outputs": lambda: (
        MultiOutputRegressor(linear_model.Ridge()).fit(X, X),
        scikit_learn.check_estimators,
    ),
    "forest": lambda: (
        ensemble.RandomForestClassifier(2, max_depth=2, random_state=0).fit(X, THREE),
        scikit_learn.check_estimators,
    ),
    "boosting": lambda: (
        ensemble.GradientBoostingClassifier(n_estimators=2, max_depth=1).fit(X, THREE),
        scikit_learn.check_estimators,
    ),
    "boosted numbers": lambda: (
        ensemble.GradientBoostingRegressor(n_estimators=2, max_depth=1).fit(X, y),
        scikit_learn.check_estimators,
    ),
    "histograms": lambda: (
        ensemble.HistGradientBoostingClassifier(max_iter=2).fit(X, THREE),
        scikit_learn.check_histograms,
    ),
    "categories": lambda: (
        preprocessing.OneHotEncoder(min_frequency=30).fit(np.minimum(THREE, 1)[:, None]),
        scikit_learn.check_encoder,
    ),
    "target encoder": lambda: (
        preprocessing.TargetEncoder().fit(THREE[:, None], THREE),
        scikit_learn.check_encoder,
    ),
    "spline": lambda: (
        scikit_learn.spline_state(preprocessing.SplineTransformer(n_knots=4).fit(X).bsplines_[0]),
        scikit_learn.build_spline,
    ),
    "splines": lambda: (
        preprocessing.SplineTransformer(n_knots=4).fit(X),
        scikit_learn.check_splines,
    ),
    "splines without bias": lambda: (
        preprocessing.SplineTransformer(n_knots=4, include_bias=False).fit(X),
        scikit_learn.check_splines,
    ),
    "columns": lambda: (column_transformer(32), scikit_learn.check_columns),
    "more columns": lambda: (column_transformer(33), scikit_learn.check_columns),
    "flags": lambda: (
        MissingIndicator(features="all").fit(X),
        scikit_learn.check_indicator,
    ),
    "LightGBM": lambda: (
        {"text": lightgbm_model()},
        lambda parts: boosters.lightgbm_text(parts["text"]),
    ),
    "LightGBM of three classes": lambda: (
        {"text": lightgbm_model(3, 3, "multiclass num_class:3")},
        lambda parts: boosters.lightgbm_text(parts["text"]),
    ),
    "LightGBM classifier": lambda: (
        lightgbm.LGBMClassifier(n_estimators=1, **LEAVES).fit(X, THREE),
        boosters.check_lightgbm,
    ),
    "XGBoost": lambda: (xgboost_model(xgboost.XGBClassifier), boosters.xgboost_content),
    "text of XGBoost": lambda: (
        {"text": np.array(json.dumps(xgboost_model(xgboost.XGBClassifier)))},
        lambda parts: boosters.build_xgboost(
            {"text": np.frombuffer(str(parts["text"]).encode(), np.uint8)}
        ),
    ),
    "closed form": closed_form,
    "encoder": encoder,
    "coupling": coupling,
    "classifier": partial(network, FRHSICClassifier, y),
    "regressor": partial(network, FRHSICRegressor, X[:, 1]),
    "state": lambda: (
        {"coef_": np.ones(2), "intercept_": 0.0, "n_features_in_": 2, "n_iter_": None},
        partial(check_state, "sklearn.linear_model.Ridge"),
    ),
    "value": lambda: ({"read": None, "arrays": {}}, read_value),
}


def read_value(parts: Any) -> Any:
    return Reader(parts["arrays"]).read(parts["read"])


def an_array(dtype: str, shape: list[int], *values: Any) -> Any:
    return {
        "class": "array",
        "fields": {"dtype": dtype, "shape": shape, "values": list(values)},
    }


def two_boosters(blanks: int) -> dict[str, Any]:
    """Boosters whose texts end in so many blanks, each of which counts as a number."""
    texts = np.frombuffer(lightgbm_model().ljust(blanks + 1000).encode(), np.uint8)
    fields = {"best_iteration": -1, "pandas_categorical": None}
    read = [
        {
            "class": "lightgbm.Booster",
            "fields": {"text": {"class": "numbers", "fields": [place, "C"]}, **fields},
        }
        for place in range(2)
    ]
    return {"read": read, "arrays": {"0": texts, "1": texts}}


NUMBERS = {"class": "numbers", "fields": [0, "C"]}
LETTERS = {"class": "text", "fields": 0}
MODEL = "learner.gradient_booster.model"
FIRST = "solution_.constraints.0"
NO_BASIS = "a basis is no basis"
NO_END = "a tree without an end"
CLASSES = "other classes"
NO_MODEL = "a column, decision or category of no model"
NO_COUNT = "a booster with a number too many or too few"
CASES: dict[str, list[tuple[dict[str, Any], str]]] = {
    "tree": [
        ({"n_classes": np.array([], int)}, "a tree without values"),
        ({"n_classes": np.array([0])}, "a tree without values"),
        ({"n_classes": np.array([1.5])}, "an array of another type or shape"),
        ({"value": shorter}, "an array of another type or shape"),
        ({"value": one_nan}, ""),
        ({"nodes": lambda nodes: nodes[:0], "value": lambda v: v[:0]}, "a tree without nodes"),
        ({"nodes.right_child.0": -1}, "a node with one child"),
        ({"nodes.left_child.0": 0}, NO_END),
        ({"nodes.feature.0": -1}, "a tree of other columns"),
        ({"nodes.feature.0": 3}, "a tree of other columns"),
        ({"nodes.feature.0": 2}, ""),
        ({"nodes.feature.0": 0}, ""),
    ],
    "histogram": [
        ({"nodes.feature_idx.0": -1}, "a tree of other columns"),
        ({"nodes.feature_idx.0": 0}, ""),
        ({"nodes.is_categorical.0": 1}, "a tree of categories"),
    ],
    "decision tree": [
        ({"n_classes_": 3}, CLASSES),
        ({"n_outputs_": 2}, CLASSES),
        ({"n_features_in_": 4}, "a tree of other columns"),
    ],
    "constant": [
        ({"constant_": np.zeros((1, 2))}, "other constants"),
        ({"constant_": np.zeros((1, 2)), "n_outputs_": 2}, ""),
    ],
    "prior": [
        ({"n_outputs_": 2}, "classes of several outputs"),
        ({"class_prior_": np.ones(3)}, CLASSES),
        ({"classes_": np.arange(3), "class_prior_": np.ones(3)}, CLASSES),
        ({"classes_": np.arange(3), "class_prior_": np.ones(3), "n_classes_": 3}, ""),
    ],
    "linear": [
        ({"intercept_": np.zeros(2)}, "another intercept"),
        ({"intercept_": np.zeros(1)}, ""),
        ({"coef_": np.zeros((2, 2, 3)), "intercept_": 0.0}, "too many outputs"),
        ({"coef_": np.zeros((MOST_TABLE_COLUMNS + 1, 0)), "intercept_": 0.0}, "too many outputs"),
        ({"coef_": np.zeros((MOST_TABLE_COLUMNS, 0)), "intercept_": 0.0}, ""),
    ],
    "two classes": [
        ({"classes_": np.arange(3)}, CLASSES),
        ({"classes_": np.arange(1)}, ""),
        ({"coef_": np.zeros(3)}, CLASSES),
    ],
    "three classes": [({"classes_": np.arange(2)}, CLASSES)],
    "outputs": [
        ({"estimators_": []}, "too many outputs"),
        ({"estimators_": lambda one: one[:1] * (MOST_TABLE_COLUMNS + 1)}, "too many outputs"),
        ({"estimators_": lambda one: one[:1] * MOST_TABLE_COLUMNS}, ""),
    ],
    "forest": [
        ({"estimators_": []}, "no trees"),
        ({"estimators_.0": linear_model.Ridge()}, "other trees"),
        ({"estimators_.1.n_features_in_": 2}, "other trees"),
        ({"n_outputs_": 2}, "other trees"),
        ({"n_classes_": 2}, CLASSES),
    ],
    "boosting": [
        ({"estimators_": lambda trees: trees[:, :2]}, CLASSES),
        ({"n_trees_per_iteration_": 1}, CLASSES),
        ({"init_": "zero"}, ""),
        ({"init_.class_prior_": np.ones(2)}, "another start"),
    ],
    "boosted numbers": [({"init_.constant_": np.zeros((1, 2))}, "another start")],
    "histograms": [
        ({"_baseline_prediction": np.zeros((1, 2))}, "another start"),
        ({"_baseline_prediction": 0.0}, ""),
        ({"_predictors.1": shorter}, "other trees"),
        ({"_predictors.1.2.nodes.feature_idx.0": 3}, "other trees"),
        ({"_predictors.1.2.nodes.feature_idx.0": 2}, ""),
        ({"n_trees_per_iteration_": 1}, CLASSES),
    ],
    "categories": [
        ({"categories_": longer}, "its columns differ"),
        (
            {"categories_": [np.array(["a"] * (MOST_TABLE_COLUMNS + 1), object)]},
            "too many categories",
        ),
        ({"categories_": [np.array(["a"] * MOST_TABLE_COLUMNS, object)]}, ""),
        ({"categories_.0": np.array([1.0, 1.0])}, "categories without order"),
        ({"categories_.0": np.array([1.0, np.nan])}, ""),
        ({"categories_.0": np.array([np.nan, 1.0])}, "categories without order"),
        ({"categories_.0": np.array([1.0, None], object)}, ""),
        ({"_infrequent_indices.0": np.array([], int)}, "categories that do not exist"),
        ({"_infrequent_indices.0": np.array([2])}, "categories that do not exist"),
        ({"_infrequent_indices.0": np.array([0, 0])}, "categories that do not exist"),
        ({"_infrequent_indices.0": None}, ""),
    ],
    "target encoder": [
        ({"encodings_": shorter}, "other columns"),
        ({"encodings_": longer}, "other columns"),
        ({"target_type_": "binary", "encodings_": lambda one: one[:1]}, ""),
    ],
    "spline": [
        ({"k": 21}, "a spline of too high a degree"),
        ({"k": 20, "t": np.arange(42.0), "c": np.ones((21, 1))}, ""),
        ({"k": 20, "t": np.arange(41.0)}, "a spline without knots"),
        ({"t.0": -np.inf}, "a spline without knots"),
        ({"t": lambda t: t[::-1]}, "a spline without order"),
        ({"t": lambda t: np.append(t[:-1], t[-2])}, ""),
        ({"c": np.ones(6)}, "a spline without order"),
        ({"c": shorter}, "a spline of too few functions"),
        ({"c": longer}, ""),
        ({"c": np.ones((9, 7))}, "a spline of too few functions"),
        ({"c": np.ones((9, 6))}, ""),
    ],
    "splines": [
        ({"bsplines_": shorter}, "other splines"),
        ({"bsplines_.0.c": lambda c: c[:, :3]}, "other splines"),
        ({"n_features_out_": 15}, "its columns differ"),
    ],
    "splines without bias": [({"n_features_out_": 18}, "its columns differ")],
    "more columns": [({}, "too many columns")],
    "columns": [
        ({"transformers_.0": lambda step: (*step[:2], [0, 0])}, "a column twice"),
        ({"_transformer_to_input_indices.31": [0, 0]}, "a column twice"),
        ({"transformers_.0": lambda step: (*step[:2], slice(9))}, ""),
    ],
    "flags": [
        ({"features_": np.zeros(4, int)}, "a column twice"),
        ({"features_": np.zeros(3, int)}, ""),
    ],
    "LightGBM": [
        ({"text": text("a b", "a\tb")}, "a booster with other blanks"),
        (
            {"text": text("=a b", "=" + " ".join("a" * (MOST_TABLE_COLUMNS + 1)))},
            "too many columns",
        ),
        ({"text": text("=a b", "=" + " ".join("a" * MOST_TABLE_COLUMNS))}, ""),
        ({"text": text("=a b", "=a  b")}, "names with spaces"),
        ({"text": text("binary", "custom")}, "another objective"),
        ({"text": text("sigmoid:1", "x")}, "another objective"),
        ({"text": text("binary.*", "regression")}, ""),
        ({"text": text("sigmoid:1", "num_class:2")}, "an objective of other classes"),
        ({"text": text("version=v4", "version=v3")}, "a booster of another version"),
        ({"text": text("num_class=1", "num_class=0")}, "a booster of other classes"),
        (
            {"text": text("end", "x=" + "a" * boosters.MOST_TREE + "\nend")},
            "a tree that is too large",
        ),
        ({"text": text("num_leaves=3", "num_leaves=0")}, "another tree"),
        ({"text": text("is_linear=0", "is_linear=1")}, "another tree"),
        ({"text": text("leaf_value=0.1 ", "leaf_value=")}, NO_COUNT),
        ({"text": text("leaf_value=0.1", "leaf_value=1e400")}, "a number that is not finite"),
        ({"text": text("leaf_value=0.1", "leaf_value=1.7976931348623157e+308")}, ""),
        ({"text": text("threshold=0.5", "threshold=nan")}, "a number that is not finite"),
        ({"text": text("threshold=0.5", "threshold=inf")}, ""),
        ({"text": text("left_child=1", "left_child=0")}, "a circle"),
        ({"text": text("left_child=1", "left_child=-1")}, NO_END),
        ({"text": text("split_feature=0", "split_feature=2")}, NO_MODEL),
        ({"text": text("split_feature=0", "split_feature=-1")}, NO_MODEL),
        ({"text": text("split_feature=0", "split_feature=1")}, ""),
        ({"text": text("decision_type=2", "decision_type=12")}, NO_MODEL),
        ({"text": text("decision_type=2 1", "decision_type=10 11")}, ""),
        ({"text": text("threshold=0.5 0", "threshold=0.5 1")}, NO_MODEL),
        ({"text": text("decision_type=2 1", "decision_type=2 3")}, ""),
        (
            {"text": text("cat_boundaries=0 1", "cat_boundaries=1 1")},
            "categories that do not exist",
        ),
        (
            {"text": text("cat_boundaries=0 1", "cat_boundaries=0 -1")},
            "categories that do not exist",
        ),
        ({"text": text("cat_boundaries=0 1", "cat_boundaries=0 2")}, NO_COUNT),
        ({"text": text("0 1\ncat_threshold=2", "0 0\ncat_threshold=")}, ""),
        ({"text": text("(?s)\nnum_leaves=.*", ONE_LEAF)}, ""),
        ({"text": text("(?s)\nnum_leaves=.*", ONE_LEAF.replace("0.5", ""))}, NO_COUNT),
    ],
    "LightGBM of three classes": [
        ({"text": text("multiclass", "multiclassova")}, ""),
        ({"text": text("(?s)\nTree=2.*", "\n")}, "a booster of other classes"),
        ({"text": text("end", "Tree=3" + ONE_LEAF)}, "a booster of other classes"),
    ],
    "LightGBM classifier": [
        ({"_n_features": 4}, "other columns"),
        ({"_n_features_in": 4}, "other columns"),
        ({"_n_classes": 2}, CLASSES),
        ({"_le.classes_": np.arange(2)}, CLASSES),
        ({"_classes": np.arange(2), "_le.classes_": np.arange(2), "_n_classes": 2}, CLASSES),
    ],
    "XGBoost": [
        ({"version": [2, 0, 9]}, "a booster of other classes"),
        ({"version": [2, 1, 0]}, ""),
        ({"learner.learner_model_param.num_class": "7"}, "a booster of other classes"),
        ({"learner.objective.name": "custom"}, "another objective"),
        (
            {"learner.objective.softmax_multiclass_param.num_class": "2"},
            "a booster of other classes",
        ),
        ({"learner.learner_model_param.base_score": "[0.5, 0.5]"}, "a start of other classes"),
        ({f"{MODEL}.tree_info.0": 3}, NO_MODEL),
        ({f"{MODEL}.tree_info": longer}, NO_COUNT),
        ({f"{MODEL}.iteration_indptr.0": 1}, "rounds without trees"),
        ({f"{MODEL}.iteration_indptr.2": 5}, "rounds without trees"),
        ({f"{MODEL}.iteration_indptr": [0, 3, 3, 6]}, "rounds without trees"),
        ({f"{MODEL}.iteration_indptr": [0, 1, 6]}, ""),
        ({"learner.feature_names": ["a", "b"]}, "names of other columns"),
        ({"learner.feature_types": ["float", "i", "q"]}, ""),
        ({"learner.feature_types": ["int", "i", "c"]}, "columns of other types"),
        ({"learner.learner_model_param.num_feature": "0"}, "other columns or trees"),
        (
            {"learner.learner_model_param.num_feature": str(MOST_TABLE_COLUMNS + 1)},
            "other columns or trees",
        ),
        ({"learner.learner_model_param.num_feature": str(MOST_TABLE_COLUMNS)}, ""),
        ({f"{MODEL}.gbtree_model_param.num_parallel_tree": "0"}, "other columns or trees"),
        ({f"{MODEL}.gbtree_model_param.num_parallel_tree": "7"}, "other columns or trees"),
        ({f"{MODEL}.gbtree_model_param.num_parallel_tree": "6"}, ""),
        ({f"{MODEL}.trees.0.default_left": longer}, "a node too many"),
        ({f"{MODEL}.trees.0.split_indices.0": 3}, NO_MODEL),
        ({f"{MODEL}.trees.0.left_children.0": 0}, NO_END),
        ({f"{MODEL}.trees.0.base_weights.0": np.inf}, "a number that is not finite"),
        ({"learner.gradient_booster.name": "dart"}, "a booster with 'dart'"),
        ({"learner.learner_model_param.num_target": "2"}, "a booster with '2'"),
    ],
    "text of XGBoost": [
        (
            {"text": lambda one: str(one).ljust(boosters.MOST_XGBOOST + 1)},
            "a booster that is too large",
        ),
        ({"text": lambda one: str(one).ljust(boosters.MOST_XGBOOST)}, ""),
    ],
    "closed form": [
        ({f"0.{FIRST}.basis.values": lambda values: values[:, 0]}, NO_BASIS),
        ({f"0.{FIRST}.basis.values": shorter}, NO_BASIS),
        ({f"0.{FIRST}.basis.starts": shorter}, NO_BASIS),
        ({f"0.{FIRST}.basis.mass": shorter}, NO_BASIS),
        ({f"0.{FIRST}.basis.mass": one_nan}, NO_BASIS),
        (
            {f"0.{FIRST}.basis.{name}": lambda v: v[:0] for name in ("starts", "mass", "values")},
            NO_BASIS,
        ),
        ({f"0.{FIRST}.attribute": -1}, NO_BASIS),
        ({f"0.{FIRST}.attribute": 1}, NO_BASIS),
        ({f"0.{FIRST}.rate": 0.0}, NO_BASIS),
        ({f"0.{FIRST}.rate": 1.01}, NO_BASIS),
        ({f"0.{FIRST}.rate": 0.01}, ""),
        ({"0.solution_.family": "decisions"}, "its coefficients differ"),
        ({"0.solution_.units.scale": 0.0}, "its coefficients differ"),
        ({"0.solution_.units.scale": 0.01}, ""),
        ({"0.solution_.parameters": lambda values: values[:1]}, "its coefficients differ"),
        ({"0.solution_.parameters": shorter}, "its trade-offs differ"),
        ({"0.solution_.parameters": one_nan}, "a coefficient is not a finite number"),
        ({"0.choice_.position": -1}, "its trade-offs differ"),
        ({"0.choice_.position": 0}, ""),
        ({"0.solution_.laws": (None,)}, "its coefficients differ"),
        ({"0.table_": 1.0}, "its coefficients differ"),
        ({"0.models_": longer}, "it has a model too many or too few"),
        ({"0.attribute_models_": longer}, "it has models of S too many or too few"),
        ({"0.attribute_models_.1": longer}, "it has models of S too many or too few"),
        ({"0.solution_": None}, "it has no coefficients"),
        ({"0.solution_": None, "0.frontier_": None}, "it has no coefficients"),
        ({"0.solution_": None, "0.frontier_": None, "0.choice_": None}, "it has no coefficients"),
        (
            {
                "0.solution_": None,
                "0.frontier_": None,
                "0.choice_": None,
                "0.models_": lambda one: one[:1],
            },
            "",
        ),
    ],
    "encoder": [
        ({"0.solution_.targets": ()}, "it keeps no target"),
        ({"0.solution_.path": shorter}, "its trade-offs differ"),
        ({"0.solution_.coordinates": shorter}, "its trade-offs differ"),
        ({"0.solution_.tables": shorter}, "its trade-offs differ"),
        ({"0.solution_.bases": longer}, "its attributes differ"),
        ({"0.solution_.directions": longer}, "its attributes differ"),
        ({"0.solution_.bases.0.mass": one_nan}, NO_BASIS),
        ({"0.solution_.directions": lambda d: (d[0][0],)}, NO_BASIS),
        ({"0.solution_.directions": lambda d: (d[0][:-1],)}, NO_BASIS),
        ({"0.solution_.directions": lambda d: (one_nan(d[0]),)}, NO_BASIS),
        ({"1.repeated": np.zeros(1, int)}, "its rows differ in number"),
        ({"1.choices": shorter}, "its rows differ in number"),
        ({"0.solution_.path.0.multipliers": one_nan}, "a prototype is none"),
        ({"0.solution_.path.0.mass": shorter}, "a prototype is none"),
        ({"0.solution_.coordinates": second(fewer)}, "other coordinates"),
        ({"0.solution_.coordinates": second(renamed)}, "other coordinates"),
        ({"0.solution_.tables": second(fewer)}, "other prototypes"),
        (
            {"1.repeated": np.zeros(1, int), "1.choices": partial(all_choose, prototype=-1)},
            "other prototypes",
        ),
        (
            {"1.repeated": np.zeros(1, int), "1.choices": partial(all_choose, prototype=3)},
            "other prototypes",
        ),
        ({"1.repeated": np.zeros(1, int), "1.choices": partial(all_choose, prototype=2)}, ""),
        ({"0.models_": longer}, "it has models too many or too few"),
        ({"0.models_": lambda one: one[:1]}, ""),
        ({"0.models_.1": longer}, "it has models of y too many or too few"),
        ({"0.attribute_models_.1": longer}, "it has models of S too many or too few"),
    ],
    "coupling": [
        ({"0.n_features_in_": 3}, "its columns or models differ"),
        ({"0.models_": longer}, "its columns or models differ"),
        ({"1.column 0": shorter}, "its rows differ in number"),
        ({"1.release": shorter}, "its rows differ in number"),
        ({"1.release.0": 80}, "other nodes"),
        ({"1.release.0": -1}, "other nodes"),
        ({"1.release.0": 79}, ""),
        ({"1.release": lambda values: values.astype(float)}, "other nodes"),
        ({"0.move_cost_": np.inf}, "its cost is no number"),
        ({"0.move_cost_": -0.1}, "its cost is no number"),
        ({"0.move_cost_": 0.0}, ""),
        ({"0.ratio_.basis.groups": longer}, "its attributes differ"),
        ({"0.ratio_.basis.parts": longer}, "its attributes differ"),
        ({"0.ratio_.basis.mass": shorter}, "other nodes"),
        ({"0.ratio_.scale": shorter}, "other nodes"),
        ({"0.ratio_.basis.places": lambda places: places[:0]}, "other nodes"),
        ({"0.ratio_.basis.places.0": 10**9}, "other nodes"),
        ({"0.ratio_.basis.parts.0.mass": shorter}, "other nodes"),
        ({"0.ratio_.basis.groups": lambda groups: (groups[0] + 10**9,)}, "other nodes"),
        (
            {"1.types": lambda one: np.frombuffer(b'[["V8", null, null]]', np.uint8)},
            "a column of 'V8'",
        ),
        (
            {"1.types": lambda one: np.full(models.MOST_LEVEL_BYTES + 1, ord(" "), np.uint8)},
            "columns of too many levels",
        ),
        (
            {
                "1.types": lambda one: np.append(
                    one, np.full(models.MOST_LEVEL_BYTES - len(one), ord(" "), np.uint8)
                )
            },
            "",
        ),
    ],
    "classifier": [
        ({"0.n_features_in_": 4}, "its columns are of two numbers"),
        ({"0.encoder.hidden": (4,) * 30}, "it has too few weights"),
        ({"0.classes_": np.arange(3)}, "its classes differ"),
        ({"0.classes_": np.array([1, 1])}, "its classes differ"),
        ({"1.head.bias": np.zeros(2, np.float32)}, "its classes differ"),
        ({"1.head.bias": one_nan}, "the head has weights that are not finite numbers"),
        (
            {"1.encoder.0.bias": lambda one: one.astype(int)},
            "the encoder has weights that are not finite numbers",
        ),
        ({"0.penalty_": None}, "its penalty is None"),
        ({"0.encoder": lambda own: lambda columns: 3}, "encoder must make a torch.nn.Module"),
        (
            {"0.feature_encoding_.columns": partial(with_levels, MOST_ENCODED_LEVELS + 2)},
            "a column of too many levels",
        ),
    ],
    "regressor": [
        ({"0.target_mean_": np.inf}, "no scale"),
        ({"0.target_scale_": np.inf}, "no scale"),
        ({"0.target_scale_": 0.0}, "no scale"),
        ({"0.target_scale_": 0.01}, ""),
        ({"1.head.bias": np.zeros(2, np.float32)}, "no scale"),
    ],
    "state": [
        ({"coef_": "1"}, "'coef_' of a sklearn.linear_model.Ridge is not as it should be"),
        ({"x": 1}, "'x' of a sklearn.linear_model.Ridge is not as it should be"),
        ({"classes_": None}, "'classes_' of a sklearn.linear_model.Ridge is not as it should be"),
        ({"feature_names_in_": np.array(["a", "b"])}, ""),
        ({"coef_": np.ones(3)}, "'coef_' of other columns"),
        ({"coef_": 1.0}, ""),
        ({"coef_": np.ones((3, 2))}, ""),
        ({"coef_": ..., "n_iter_": ...}, "a sklearn.linear_model.Ridge without coef_, n_iter_"),
        ({"coef_": ..., "n_iter_": ..., "intercept_": ..., "n_features_in_": ...}, ""),
    ],
    "value": [
        ({"read": NUMBERS, "arrays.0": np.zeros((0, MOST_EMPTY + 1))}, "an array without numbers"),
        ({"read": NUMBERS, "arrays.0": np.zeros((0, MOST_EMPTY))}, ""),
        ({"read": LETTERS, "arrays.0": np.zeros((1, 1))}, "text without letters"),
        ({"read": LETTERS, "arrays.0": np.zeros((0, 1), np.uint32)}, "text without letters"),
        (
            {"read": LETTERS, "arrays.0": np.full((1, 1), 0x110000, np.uint32)},
            "a letter that does not exist",
        ),
        ({"read": LETTERS, "arrays.0": np.full((1, 1), 0x10FFFF, np.uint32)}, ""),
        (two_boosters(3 * 10**6), "boosters of too many trees"),
        (two_boosters(29 * 10**5), ""),
        ({"read": {"class": "dtype", "fields": "<U3"}}, "a type of no numbers"),
        ({"read": {"class": "type", "fields": "|S3"}}, "a type of no numbers"),
        ({"read": {"class": "Popen", "fields": {}}}, "'Popen' is not known to this version"),
        ({"read": {"class": "skops", "fields": 0}}, "it holds objects that it does not name"),
        (
            {"read": {"class": "Gaussian", "fields": {"bandwidth": "1"}}},
            "'bandwidth' of a Gaussian is not as it should be",
        ),
        ({"read": an_array("<f8", [0, MOST_EMPTY + 1])}, "an array of float64"),
        ({"read": an_array("<f8", [0, MOST_EMPTY])}, ""),
        ({"read": an_array("<U", [1], "a")}, "an array of <U0"),
        ({"read": an_array("<M8[s]", [1], 3)}, "an array of datetime64[s]"),
        (
            {"read": an_array(f"<U{MOST_TEXT // 4 + 3}", [1], "a")},
            f"an array of <U{MOST_TEXT // 4 + 3}",
        ),
        ({"read": an_array(f"<U{MOST_TEXT // 4 + 2}", [1], "a")}, ""),
        ({"read": an_array("<f8", [1], None)}, "an array of other things than text and numbers"),
    ],
}


def item(owner: Any, key: str) -> Any:
    if isinstance(owner, dict):
        return owner.get(key)
    if key.isdigit():
        return owner[int(key)]
    return owner[key] if isinstance(owner, np.ndarray) else getattr(owner, key)


def change(owner: Any, path: str, value: Any) -> None:
    """Change one place; an ellipsis removes it, and a function is given what was there."""
    key, _, rest = path.partition(".")
    if isinstance(owner, dict) and path in owner:  # names of weights have dots
        key, rest = path, ""
    if rest:
        change(item(owner, key), rest, value)
    elif value is ...:
        del owner[key]
    else:
        new = value(item(owner, key)) if callable(value) else value
        if isinstance(owner, dict):
            owner[key] = new
        elif isinstance(owner, (list, np.ndarray)):
            owner[int(key)] = new
        else:
            object.__setattr__(owner, key, new)


@cache
def good(name: str) -> Good:
    return GOOD[name]()


def all_cases() -> Iterator[Any]:
    for name, cases in CASES.items():
        for place, (changes, sentence) in enumerate(cases):
            yield pytest.param(name, changes, sentence, id=f"{name} {place}: {sentence or 'read'}")


@pytest.mark.parametrize(("name", "changes", "sentence"), list(all_cases()))
def test_one_change_is_refused_with_its_reason_or_read(
    name: str, changes: dict[str, Any], sentence: str
):
    parts, check = good(name)
    parts = copy.deepcopy(parts)
    for path, value in changes.items():
        change(parts, path, value)
    if sentence:
        with pytest.raises(ValueError, match=re.escape(f"{NOT_WRITTEN}{sentence}.") + "$"):
            check(parts)
    else:
        check(parts)


@pytest.mark.parametrize("name", sorted(GOOD.keys() - {"more columns", "value"}))
def test_what_is_not_changed_is_read(name: str):
    parts, check = good(name)
    check(copy.deepcopy(parts))


# Texts of boosters


@pytest.mark.parametrize(
    "model",
    [
        lightgbm_model(),
        lightgbm_model(6, 3, "multiclass num_class:3"),
        lightgbm_model().replace("feature_names", "average_output\nfeature_names"),
    ],
)
def test_a_text_of_lightgbm_is_written_anew_as_it_was(model: str):
    assert boosters.lightgbm_text(model) == model
    # the importance of a column with the name of a line of trees
    assert boosters.lightgbm_text(f"{model}\nnum_leaves=1\nleaf_value=7") == model


def test_a_model_of_xgboost_is_written_anew_as_it_was():
    once = boosters.xgboost_content(good("XGBoost")[0])
    assert boosters.xgboost_content(copy.deepcopy(once)) == once


def test_the_numbers_of_a_booster_are_counted_by_their_separators():
    for separator in (b" ", b","):
        words = np.frombuffer(separator.join(b"abcd"[i : i + 1] for i in range(4)), np.uint8)
        assert boosters.numbers_of({"text": words}) == 3
    assert boosters.numbers_of({"text": np.frombuffer(b"a:1 2\nb:3,4,5\n", np.uint8)}) == 42


# Words of the list

KINDS: dict[str, tuple[list[Any], list[Any]]] = {
    "integer": ([-(2**63), 2**64 - 1, np.int8(3)], [-(2**63) - 1, 2**64, True, 1.0, "1"]),
    "count": ([0, MOST_TABLE_COLUMNS - 1], [-1, MOST_TABLE_COLUMNS, 0.5, None]),
    "share": ([0, 0.5, 1], [-1e-9, 1 + 1e-9, "0", None]),
    "number": ([1, 0.5, np.float32(2)], [True, None, "1", np.ones(1)]),
    "numbers": ([1, 0.5, np.ones((2, 2)), np.array([True])], [np.array(["a"]), "1", [1.0]]),
    "none | text": ([None, "a"], [1, ["a"]]),
    "flag": ([True, np.bool_(False)], [0, None]),
    "labels": (
        [np.array(["a"]), np.array([None, 1, "a"], object), np.ones(2)],
        [np.array([[1]]), np.array([[1], 2], object), np.array([b"a"]), ["a"]],
    ),
    "plain": ([None, "a", [1, (2, {"a": [True]})], {1: "a"}], [len, [len], {"a": len}, {(): 1}]),
    "columns": (["a", 1, ["a", None], np.array([True])], [None, [len], [[1]], 0.5]),
    "weights": ([{"a": 1.0}], [[1.0], {"a": len}]),
    "dtype": ([np.dtype("f8"), np.float32], ["f8", float]),
    "slice": ([slice(1)], [1]),
    "step": (
        [("a", None), ("a", "drop"), ("a", "passthrough"), ("a", DummyRegressor())],
        [["a", None], ("a",), (1, None), ("a", "keep"), ("a", None, "b")],
    ),
    "transformer": ([("a", "drop", ["b"]), ("a", "drop", 0)], [("a", "drop"), ("a", "drop", None)]),
    "list of count": ([[], [1, 2]], [(1, 2), [1, -1], {"a": 1}]),
    "list of none/count": ([[None, 1]], [["a"], None]),
    "mapping of text": ([{}, {"a": "b"}], [["b"], {"a": 1}]),
    "grid of DummyRegressor": (
        [np.array([[DummyRegressor()]])],
        [np.array([DummyRegressor()]), np.array([[DummyClassifier()]]), [[DummyRegressor()]]],
    ),
    "solvers": (["lbfgs", "saga"], ["lbfgs saga", "", 1]),
    "C | F": (["C", "F"], ["c", "C | F", None]),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_of_value_has_its_limits(kind: str):
    allowed, others = KINDS[kind]
    assert [value for value in allowed if not fits(value, kind)] == []
    assert [value for value in others if fits(value, kind)] == []


def test_threads_are_limited_where_a_number_of_them_is_given():
    processors = os.cpu_count() or 1
    for given, expected in ((None, None), (-1, -1), (processors, processors)):
        assert limited({"a": 1, "n_jobs": given}) == {"a": 1, "n_jobs": expected}
    assert limited({"n_jobs": processors + 1}) == {"n_jobs": processors}
    assert limited({"a": 1}) == {"a": 1}


# Files

Entries = dict[str, bytes]


def header(**parts: Any) -> Callable[[Entries], Entries]:
    """Return a change of the parts of model.json; those that are mappings are joined."""

    def changed(entries: Entries) -> Entries:
        content = json.loads(entries[HEADER_ENTRY])
        for name, value in parts.items():
            own = content.get(name)
            content[name] = own | value if isinstance(own, dict) else value
        return entries | {HEADER_ENTRY: json.dumps(content).encode()}

    return changed


def padded(size: int) -> Callable[[Entries], Entries]:
    return lambda entries: entries | {HEADER_ENTRY: entries[HEADER_ENTRY].ljust(size)}


def named_weights(size: int) -> Callable[[Entries], Entries]:
    """Return a change to weights whose names take more bytes."""

    def changed(entries: Entries) -> Entries:
        weights = entries[WEIGHTS_ENTRY]
        end = 8 + int.from_bytes(weights[:8], "little")
        names = weights[8:end].ljust(size)
        return entries | {WEIGHTS_ENTRY: size.to_bytes(8, "little") + names + weights[end:]}

    return changed


ONE = np.ones(1, np.complex64)
FILES: list[tuple[Callable[[Entries], Entries], str]] = [
    (lambda entries: entries | {"0.pkl": b""}, "it has entries that no model has"),
    (lambda entries: entries | {"12345.skops": b""}, "it has entries that no model has"),
    (lambda entries: entries | {"1234.skops": b""}, ""),
    (padded(MOST_JSON), ""),
    (padded(MOST_JSON + 1), "its model.json is larger than 8388608 bytes"),
    (lambda entries: entries | {HEADER_ENTRY: b"[1]"}, "not a model"),
    (header(more=1), "not a model"),
    (header(**{"class": "Path"}), "this version knows no 'Path'"),
    (named_weights(MOST_NAMES), ""),
    (named_weights(MOST_NAMES + 1), "its weights have too many names"),
    (
        lambda entries: entries | {WEIGHTS_ENTRY: safetensors.numpy.save({"0": 1j * ONE})},
        "weights that are not numbers",
    ),
    (header(models={"tables_": 1.0}), "it holds models that its class does not have"),
    (header(models={"estimator": "a"}), "it holds models that its class does not have"),
    (header(parameters={"x": 1}), "it has other parameters than this version"),
    (header(parameters={"cv": -1}), "'cv' is not as it should be"),
    (header(parameters={"n_jobs": 0.5}), "'n_jobs' is not as it should be"),
    (header(fitted={"random_seed_": "1"}), "'random_seed_' is not as it should be"),
    (header(fitted={"predict": 1}), "'predict' is not as it should be"),
]


@pytest.mark.parametrize(("changed", "sentence"), FILES)
def test_a_file_is_refused_with_its_reason_or_read(
    changed: Callable[[Entries], Entries], sentence: str, tmp_path: Path
):
    content = file_bytes(good("closed form")[0][0])
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    path = tmp_path / "model"
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in changed(entries).items():
            archive.writestr(name, data)
    if sentence:
        whole_sentence = f"model cannot be loaded: {NOT_WRITTEN}{sentence}."
        with pytest.raises(ValueError, match=f"^{re.escape(whole_sentence)}$"):
            load(path)
    else:
        load(path)


def test_a_file_of_more_bytes_than_a_model_has_is_not_opened(tmp_path: Path):
    path = tmp_path / "model"
    path.touch()
    os.truncate(path, MOST_BYTES + 1)  # of which the disk holds none
    with pytest.raises(ValueError, match="it is larger than 1073741824 bytes"):
        load(path)


# All of them
