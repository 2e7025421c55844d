"""Base models in the file of a model, without pickle.

Boosted trees of this library are arrays. LightGBM and XGBoost models are in their own text and JSON formats. Other
scikit-learn estimators are written by skops, which lists the types of a file before anything is built; only types of
scikit-learn and those that skops trusts itself (of NumPy, SciPy and Python) are read. Functions and other objects are
not written: pass them again to ``load(path, base=...)``.
"""

from __future__ import annotations

import importlib
from dataclasses import asdict, fields
from typing import Any

import numpy as np
import torch
from sklearn.base import BaseEstimator, clone
from sklearn.frozen import FrozenEstimator
from torch import Tensor

from frhsic.estimators.base_scores import BasePerformance
from frhsic.estimators.bases import FittedBase
from frhsic.estimators.boosted import BoostedTrees, BoostedTreesClassifier, BoostedTreesRegressor
from frhsic.estimators.plain import from_json, labels_from_json, labels_to_json, to_json
from frhsic.estimators.trees import Trees
from frhsic.estimators.xgboost_json import checked_json

TREES = {one.__name__: one for one in (BoostedTreesClassifier, BoostedTreesRegressor)}
ARRAYS = tuple(one.name for one in fields(Trees))
XGBOOST = ("XGBClassifier", "XGBRegressor", "XGBRFClassifier", "XGBRFRegressor")


class LoadedBooster:
    """A LightGBM model read from a file. It predicts as the estimator did that it is of."""

    def __init__(self, text: str, classes: np.ndarray | None) -> None:
        from frhsic.boosting import booster_from_text  # boosting imports this package to save

        self.booster = booster_from_text(text)
        outputs = 1 if classes is None or len(classes) <= 2 else len(classes)
        if self.booster.num_model_per_iteration() != outputs:
            raise ValueError(f"the base has {self.booster.num_model_per_iteration()} outputs, not {outputs}.")
        if classes is not None:
            self.classes_ = classes

    def predict(self, X: Any) -> np.ndarray:
        """Return predictions, or probabilities of a classifier as LightGBM gives them."""
        return np.asarray(self.booster.predict(X))

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of each class."""
        probabilities = self.predict(X)
        return np.column_stack([1 - probabilities, probabilities]) if probabilities.ndim == 1 else probabilities


def base_to_file(base: FittedBase | None) -> tuple[dict[str, Any] | None, dict[str, Tensor]]:
    """Return a fitted base as JSON and tensors."""
    if base is None:
        return None, {}
    frozen = isinstance(base.model, FrozenEstimator)
    model = base.model.estimator if frozen else base.model
    header, tensors = _model_to_file(model)
    header |= {
        "model": type(model).__name__,
        "frozen": frozen,
        "classes": None if base.classes is None else labels_to_json(base.classes),
        "performance": asdict(base.performance),
    }
    own = getattr(model, "classes_", None)
    header["model_classes"] = None if own is None else labels_to_json(np.asarray(own))
    tensors |= {"center": torch.from_numpy(base.center), "spread": torch.from_numpy(base.spread)}
    return header, tensors


def base_from_file(header: dict[str, Any] | None, tensors: dict[str, Tensor], given: Any) -> FittedBase | None:
    """Return the fitted base of a file; `given` takes the place of a model that a file cannot hold."""
    if header is None:
        return None
    classes, own = (labels_from_json(header[name]) for name in ("classes", "model_classes"))
    model = _model_from_file(header, tensors, own, given)
    if header["frozen"] and isinstance(model, BaseEstimator) and not isinstance(model, FrozenEstimator):
        model = FrozenEstimator(model)
    performance = BasePerformance(**header["performance"])
    return FittedBase(model, classes, tensors["center"].numpy(), tensors["spread"].numpy(), performance)


def base_parameter(base: FittedBase | None) -> Any:
    """Return the parameter `base` of a model read from a file.

    An unfitted clone, where the file holds the parameters; else the fitted model, which later fits use as it is.
    """
    model = None if base is None else base.model
    if isinstance(model, FrozenEstimator) or not isinstance(model, BaseEstimator):
        return model
    return FrozenEstimator(model) if type(model).__name__ in XGBOOST else clone(model)


def _model_to_file(model: Any) -> tuple[dict[str, Any], dict[str, Tensor]]:
    package = type(model).__module__.split(".")[0]
    if isinstance(model, LoadedBooster):
        return {"kind": "lightgbm"}, {"file": _bytes(model.booster.model_to_string().encode())}
    if package == "lightgbm":
        return {"kind": "lightgbm"}, {"file": _bytes(model.booster_.model_to_string().encode())}
    if package == "xgboost" and type(model).__name__ in XGBOOST:
        categorical = bool(model.get_params().get("enable_categorical"))
        raw = bytes(checked_json(model.get_booster().save_raw("json")))
        return {"kind": "xgboost", "enable_categorical": categorical}, {"file": _bytes(raw)}
    if type(model) in TREES.values():
        return _trees_to_file(model)
    if not isinstance(model, BaseEstimator):
        return {"kind": "custom"}, {}
    skops = _library("skops.io", "skops")
    written = skops.dumps(model)
    _trusted(skops.get_untrusted_types(data=written), type(model).__name__)
    return {"kind": "skops"}, {"file": _bytes(written)}


def _model_from_file(header: dict[str, Any], tensors: dict[str, Tensor], classes: np.ndarray | None, given: Any) -> Any:
    kind, name = header["kind"], header["model"]
    if kind == "custom":
        if given is None:
            raise ValueError(
                f"the model was made with a base of the user's own, {name}, which a file cannot hold. Pass it again: "
                "load(path, base=...)."
            )
        return given
    if kind == "trees":
        return _trees_from_file(header, tensors, classes)
    written = tensors["file"].numpy().tobytes()
    if kind == "lightgbm":
        return LoadedBooster(written.decode(), classes)
    if kind == "xgboost" and name in XGBOOST:
        model = getattr(_library("xgboost"), name)(enable_categorical=header["enable_categorical"])
        model.load_model(checked_json(written))
        return model
    if kind != "skops":
        raise ValueError(f"the file holds a base of kind {kind!r}, which this version does not know.")
    skops = _library("skops.io", "skops")
    return skops.loads(written, trusted=_trusted(skops.get_untrusted_types(data=written), name))


def _trees_to_file(model: BoostedTrees) -> tuple[dict[str, Any], dict[str, Tensor]]:
    parameters = model.get_params()
    state = parameters["random_state"]
    names = getattr(model, "feature_names_in_", None)
    header = {
        "kind": "trees",
        "parameters": parameters | {"random_state": state if isinstance(state, int) else None},
        "n_iter": model.n_iter_,
        "encoding": to_json(model.encoding_),
        "columns": model.n_features_in_,
        "names": None if names is None else [str(label) for label in names],
    }
    arrays = {name: getattr(model.trees_, name) for name in ARRAYS} | {"kept": model.trees_.kept.view(np.int32)}
    return header, {name: torch.from_numpy(np.ascontiguousarray(values)) for name, values in arrays.items()}


def _trees_from_file(header: dict[str, Any], tensors: dict[str, Tensor], classes: np.ndarray | None) -> BoostedTrees:
    if header["model"] not in TREES:
        raise ValueError(f"the file holds boosted trees {header['model']!r}, which this version does not know.")
    model = TREES[header["model"]](**header["parameters"])
    arrays = {name: tensors[name].numpy() for name in ARRAYS}
    model.trees_ = Trees(**arrays | {"kept": arrays["kept"].view(np.uint32)})
    model.encoding_ = from_json(header["encoding"])
    model.trees_.check(model.encoding_.width)
    model.n_iter_, model.n_features_in_ = header["n_iter"], header["columns"]
    if header["names"] is not None:
        model.feature_names_in_ = np.array(header["names"], dtype=object)
    if classes is not None:
        model.classes_ = classes
    return model


def _trusted(types: list[str], name: str) -> list[str]:
    """Return the types of a file that skops does not know, if all are scikit-learn's own; else raise."""
    foreign = [one for one in types if not one.startswith("sklearn.")]
    if foreign:
        raise TypeError(
            f"the base {name} holds {', '.join(foreign)}: only models made of types of scikit-learn, NumPy and SciPy "
            "are saved and loaded. Pass a function of X as base, such as lambda X: model.predict_proba(X)[:, 1]; it is "
            "not saved, and load takes it again."
        )
    return types


def _library(module: str, package: str | None = None) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = package or module
        extra = {"skops": "'frhsic[skops]'", "lightgbm": "'frhsic[boosting]'"}.get(package, package)
        raise ImportError(
            f"a file with such a base needs {package}, which is not installed: pip install {extra}."
        ) from error


def _bytes(content: bytes) -> Tensor:
    return torch.from_numpy(np.frombuffer(content, dtype=np.uint8).copy())
