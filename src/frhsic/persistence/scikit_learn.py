"""Models of scikit-learn: what compiled code reads without checking is checked and built again
here.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.interpolate import BSpline
from sklearn.base import is_classifier
from sklearn.ensemble._hist_gradient_boosting.binning import _BinMapper
from sklearn.ensemble._hist_gradient_boosting.common import PREDICTOR_RECORD_DTYPE
from sklearn.ensemble._hist_gradient_boosting.predictor import TreePredictor
from sklearn.multioutput import MultiOutputRegressor
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import BaseDecisionTree
from sklearn.tree._tree import NODE_DTYPE, Tree

from frhsic.persistence.rules import require
from frhsic.tables.columns import MOST_TABLE_COLUMNS

PartState = dict[str, Any]

# Degree of a spline: the time for a value grows with its square
MOST_DEGREE = 20
# Depth of a tree of scikit-learn, which each row goes through
MOST_DEPTH = 1000


def typed(values: Any, dtype: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Return an array of a type and shape, in order, which holds the same numbers."""
    array = np.ascontiguousarray(values, dtype=dtype)
    same = array.shape == shape and np.array_equal(array, values, equal_nan=True)
    require(same, "an array of another type or shape")
    return array


def _bytes(nodes: np.ndarray) -> np.ndarray:
    """Return the nodes of a tree as bytes, without what lies between their fields."""
    clean = np.zeros(len(nodes), nodes.dtype)
    for name in nodes.dtype.names or ():
        clean[name] = nodes[name]
    return clean.view(np.uint8)


def require_tree(left: np.ndarray, right: np.ndarray, leaf: np.ndarray) -> None:
    """Refuse children that are not those of a tree: each node but the first is the child of one,
    which stands before it.
    """
    require(len(leaf) > 0, "a tree without nodes")
    inner = np.flatnonzero(~leaf)
    children = np.concatenate([left[inner], right[inner]])
    require((children > np.tile(inner, 2)).all(), "a tree without an end")
    require(np.array_equal(np.sort(children), np.arange(1, len(left))), "a tree without an end")


# Trees and forests


def tree_state(tree: Tree) -> PartState:
    state = tree.__getstate__()
    sizes: PartState = {"n_features": tree.n_features, "n_classes": tree.n_classes}
    return sizes | {"nodes": _bytes(state["nodes"]), "value": state["values"]}


def build_tree(state: PartState) -> Tree:
    nodes = np.frombuffer(state["nodes"].tobytes(), NODE_DTYPE).copy()
    classes = typed(state["n_classes"], np.intp, (len(state["n_classes"]),))
    outputs = len(classes)
    require(outputs > 0 and (classes > 0).all(), "a tree without values")
    value = typed(state["value"], np.float64, (len(nodes), outputs, int(classes.max())))
    left = nodes["left_child"]
    right = nodes["right_child"]
    leaf = left == -1
    require(np.array_equal(leaf, right == -1), "a node with one child")
    require_tree(left, right, leaf)
    feature = nodes["feature"][~leaf]
    require(((feature >= 0) & (feature < state["n_features"])).all(), "a tree of other columns")
    tree = Tree(state["n_features"], classes, outputs)
    sizes = {"max_depth": _depth(left, right, leaf), "node_count": len(nodes)}
    tree.__setstate__(sizes | {"nodes": nodes, "values": value})
    return tree


def _depth(left: np.ndarray, right: np.ndarray, leaf: np.ndarray) -> int:
    depth = 0
    level = np.array([0])
    while len(inner := level[~leaf[level]]):
        level = np.concatenate([left[inner], right[inner]])
        depth += 1
        require(depth <= MOST_DEPTH, "a tree that is too deep")
    return depth


def _classes(model: Any) -> int:
    """Return the number of classes, 1 for numbers, once the model says the same everywhere."""
    if not is_classifier(model):
        return 1
    classes = len(model.classes_)
    require(getattr(model, "n_classes_", classes) == classes, "other classes")
    return classes


def check_decision_tree(model: Any) -> None:
    tree = model.tree_
    require(tree.n_classes.tolist() == [_classes(model)] * model.n_outputs_, "other classes")
    require(tree.n_features == model.n_features_in_, "a tree of other columns")


def check_outputs(model: Any) -> None:
    """Check what is predicted: one class, or one or several numbers."""
    require(model.n_outputs_ == 1 or not is_classifier(model), "classes of several outputs")
    if hasattr(model, "constant_"):
        require(np.shape(model.constant_) == (1, model.n_outputs_), "other constants")
    if hasattr(model, "class_prior_"):
        require(np.shape(model.class_prior_) == (_classes(model),), "other classes")


def check_linear(model: Any) -> None:
    """Check that a linear model has a number for each output, and an output for each class."""
    outputs = np.shape(model.coef_)[:-1]
    require(np.shape(model.intercept_) in ((), (1,), outputs), "another intercept")
    require(len(outputs) < 2 and np.prod(outputs) <= MOST_TABLE_COLUMNS, "too many outputs")
    if is_classifier(model):
        classes = _classes(model)
        expected = classes if classes > 2 else 1
        require(outputs == (expected,), "other classes")


def check_estimators(model: Any) -> None:
    """Check that a model for each output has few outputs, and that all trees of others are of the
    same columns, classes and outputs.
    """
    if isinstance(model, MultiOutputRegressor):
        require(0 < len(model.estimators_) <= MOST_TABLE_COLUMNS, "too many outputs")
        return
    boosted = hasattr(model, "n_trees_per_iteration_")
    trees = np.array(model.estimators_, dtype=object)
    require(trees.ndim == 1 + boosted and trees.size, "no trees")
    values = (1, 1) if boosted else (_classes(model), model.n_outputs_)
    for tree in trees.ravel():
        require(isinstance(tree, BaseDecisionTree), "other trees")
        own = tree.tree_.max_n_classes, tree.tree_.n_outputs
        require(own == values and tree.n_features_in_ == model.n_features_in_, "other trees")
    if boosted:
        _check_boosting(model)
        require(trees.shape[1] == model.n_trees_per_iteration_, "other classes")
        if not isinstance(model.init_, str):
            start = model.init_.class_prior_ if is_classifier(model) else model.init_.constant_[0]
            require(np.shape(start) == (_classes(model),), "another start")


# Boosting


def _check_boosting(model: Any) -> None:
    classes = _classes(model)
    require(model.n_trees_per_iteration_ == (classes if classes > 2 else 1), "other classes")
    model._loss = model._get_loss(sample_weight=None)


def predictor_state(predictor: TreePredictor) -> PartState:
    return {"nodes": _bytes(predictor.nodes)}


def build_predictor(state: PartState) -> TreePredictor:
    nodes = np.frombuffer(state["nodes"].tobytes(), PREDICTOR_RECORD_DTYPE).copy()
    leaf = nodes["is_leaf"] != 0
    left = nodes["left"].astype(np.int64)
    right = nodes["right"].astype(np.int64)
    require_tree(left, right, leaf)
    _depth(left, right, leaf)
    require((nodes["feature_idx"] >= 0).all(), "a tree of other columns")
    require(not nodes["is_categorical"].any(), "a tree of categories")
    return TreePredictor(nodes, *np.zeros((2, 0, 8), np.uint32))


def check_histograms(model: Any) -> None:
    _check_boosting(model)
    outputs = model.n_trees_per_iteration_
    columns = model.n_features_in_
    require(np.shape(model._baseline_prediction) in ((), (1, outputs)), "another start")
    for predictors in model._predictors:
        largest = max(predictor.nodes["feature_idx"].max() for predictor in predictors)
        require(len(predictors) == outputs and largest < columns, "other trees")
    model._bin_mapper = _BinMapper()
    model._bin_mapper.is_categorical_ = np.zeros(columns, np.uint8)
    model._bin_mapper.bin_thresholds_ = []


# Encoders and splines


def check_encoder(encoder: Any) -> None:
    """Check categories, and compute again what depends on them."""
    require(len(encoder.categories_) == encoder.n_features_in_, "its columns differ")
    require(sum(map(len, encoder.categories_)) <= MOST_TABLE_COLUMNS, "too many categories")
    for categories in encoder.categories_:
        _require_ascending(categories.tolist())
    encoder._check_infrequent_enabled()
    if encoder._infrequent_enabled:
        counts = [len(categories) for categories in encoder.categories_]
        for column in getattr(encoder, "_missing_indices", {}):
            counts[column] -= 1
        encoder._default_to_infrequent_mappings = [
            _grouped(count, rare)
            for count, rare in zip(counts, encoder._infrequent_indices, strict=True)
        ]
    if hasattr(encoder, "encodings_"):
        outputs = len(encoder.classes_) if encoder.target_type_ == "multiclass" else 1
        require(len(encoder.encodings_) == encoder.n_features_in_ * outputs, "other columns")
    if isinstance(encoder, OneHotEncoder):
        encoder._set_drop_idx()
        encoder._n_features_outs = encoder._compute_n_features_outs()


def _require_ascending(values: list[Any]) -> None:
    """Refuse categories that a binary search would miss: those that are not text ascend, and
    missing ones are last.
    """
    while values and (values[-1] is None or values[-1] != values[-1]):
        values.pop()
    numbers = [value for value in values if not isinstance(value, str)]
    require(all(a < b for a, b in pairwise(numbers)), "categories without order")


def _grouped(count: int, rare: np.ndarray | None) -> np.ndarray | None:
    """Return the code of each category once the rare ones are one."""
    if rare is None:
        return None
    frequent = np.setdiff1d(np.arange(count), rare)
    require(len(rare) > 0 and len(frequent) == count - len(rare), "categories that do not exist")
    codes = np.full(count, len(frequent))
    codes[frequent] = np.arange(len(frequent))
    return codes


def spline_state(spline: BSpline) -> PartState:
    return {name: getattr(spline, name) for name in ("t", "c", "k", "extrapolate")}


def build_spline(state: PartState) -> BSpline:
    knots = typed(state["t"], np.float64, (np.size(state["t"]),))
    degree = state["k"]
    functions = len(knots) - degree - 1
    require(degree <= MOST_DEGREE, "a spline of too high a degree")
    require(functions > degree and np.isfinite(knots).all(), "a spline without knots")
    require((np.diff(knots) >= 0).all() and np.ndim(state["c"]) == 2, "a spline without order")
    coefficients = typed(state["c"], np.float64, np.shape(state["c"]))
    enough = len(coefficients) >= functions >= coefficients.shape[1]
    require(enough, "a spline of too few functions")
    return BSpline.construct_fast(knots, coefficients, degree, state["extrapolate"])


def check_splines(model: Any) -> None:
    widths = {spline.c.shape[1] for spline in model.bsplines_}
    require(len(model.bsplines_) == model.n_features_in_ and len(widths) == 1, "other splines")
    width = widths.pop()
    if not model.include_bias:
        width -= 1
    require(model.n_features_out_ == model.n_features_in_ * width, "its columns differ")


def check_columns(model: Any) -> None:
    """Check that a column transformer makes no more columns than a table may have."""
    require(_width(model) <= MOST_TABLE_COLUMNS, "too many columns")


def _width(model: Any) -> int:
    """Return how many columns a step makes at most, once none of its inputs is repeated."""
    if hasattr(model, "steps"):
        return _width(model.steps[-1][1])
    given = getattr(model, "n_features_in_", 0)
    if not hasattr(model, "transformers_"):
        made = getattr(model, "n_features_out_", 0)
        indicators = sum(getattr(model, "_n_features_outs", ()))
        encodings = len(getattr(model, "encodings_", ()))
        flags = given if getattr(model, "indicator_", None) is not None else 0
        return int(max(given, made, indicators, encodings) + flags)
    widths = []
    for name, step, columns in model.transformers_:
        every = [columns, model._transformer_to_input_indices.get(name, ())]
        sizes = [np.size(np.asarray(one)) for one in every if not isinstance(one, slice)]
        require(max(sizes, default=0) <= given, "a column twice")
        widths.append(max(_width(step), *sizes))
    return sum(widths)


def check_indicator(model: Any) -> None:
    require(np.size(model.features_) <= model.n_features_in_, "a column twice")


SCIKIT_LEARN_CHECKS: dict[str, Callable[[Any], None]] = {
    "_predictors": check_histograms,
    "bsplines_": check_splines,
    "categories_": check_encoder,
    "estimators_": check_estimators,
    "features_": check_indicator,
    "intercept_": check_linear,
    "n_outputs_": check_outputs,
    "transformers_": check_columns,
    "tree_": check_decision_tree,
}
"""How a fitted estimator is checked, by an attribute that it has, in whichever class."""
