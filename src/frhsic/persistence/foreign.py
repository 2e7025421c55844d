"""Models of scikit-learn, LightGBM and XGBoost: written by skops, and read if every part of them is listed."""

from __future__ import annotations

import io
import json
import re
import zipfile
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from frhsic.estimators.conditional import BoostedMeans, BoostedTrees, ConditionalLaw, Hinges, TreeTable

SCHEMA = "schema.json"

# brackets, braces and commas of a schema, of which Python takes about twenty times as much memory
MOST_PARTS = 1_500_000


def require(condition: Any, reason: str) -> None:
    if not condition:
        raise ValueError(f"frhsic.save has not written it: {reason}.")


def skops_entries(parts: Mapping[str, Any]) -> dict[str, bytes]:
    """Return the entries of a skops file.

    Addresses of objects are left out. A reader would build one object for equal addresses, so that a small forged
    schema could stand for a tree of any size.
    """
    import skops.io

    with zipfile.ZipFile(io.BytesIO(skops.io.dumps(dict(parts)))) as archive:
        schema = json.loads(archive.read(SCHEMA))
        files: dict[str, str] = {}
        for _, node in _nodes(schema):
            node.pop("__id__", None)
            if node["__class__"] == "Booster" and node["__module__"] == "lightgbm.basic":
                handle = node["content"]["content"]["_handle"]
                # by which LightGBM reads trees in threads whose errors end the process
                handle["content"] = json.dumps(re.sub(r"tree_sizes=.*\n", "", json.loads(handle["content"])))
            if "file" in node:
                node["file"] = files.setdefault(node["file"], f"{len(files)}{Path(node['file']).suffix}")
        text = json.dumps(schema).encode()
        if _parts_in(text) > MOST_PARTS:
            raise ValueError(f"the models have {_parts_in(text)} parts; a file holds {MOST_PARTS}. Use fewer trees.")
        return {SCHEMA: text} | {new: archive.read(old) for old, new in files.items()}


def skops_parts(archive: zipfile.ZipFile, trusted: frozenset[str]) -> dict[str, Any]:
    """Return the models of a file, once every node of its schema is known to be data or of a class that is listed."""
    import skops.io

    text = archive.read(SCHEMA)
    require(_parts_in(text) <= MOST_PARTS, f"its {SCHEMA} has more than {MOST_PARTS} parts")
    schema, listed = json.loads(text), _listed()
    require(schema["protocol"] > 0, "its protocol is too old")  # in which a function has another name than it says
    used, unknown, read = set(trusted), set(), 0
    for attribute, node in _nodes(schema):
        require("__id__" not in node, "it shares objects")
        name, loader = f"{node['__module__']}.{node['__class__']}", node["__loader__"]
        if loader == "MethodNode":
            name += f".{node['content']['func']}"
        used.add(name)
        known = name in listed.get(loader, ()) and (loader != "TypeNode" or attribute in TYPE_ATTRIBUTES)
        if loader != "JsonNode" and name not in trusted and not known:
            unknown.add(name)
        if loader == "JsonNode" and attribute in ALLOWED_VALUES:
            value = json.loads(node["content"])
            require(value in ALLOWED_VALUES[attribute], f"{attribute} is {value!r}")
        read += archive.getinfo(node["file"]).file_size if "file" in node else 0
        _check_trees(archive, name, node)
    if unknown:
        names = ", ".join(repr(name) for name in sorted(unknown))
        raise ValueError(
            f"it holds {names}, which may run code. If you trust its author, pass load(path, trusted=[{names}])."
        )
    require(read <= 4 * sum(e.file_size for e in archive.infolist()), "its arrays are used too often")
    assert archive.fp is not None
    archive.fp.seek(0)
    return dict(skops.io.loads(archive.fp.read(), trusted=sorted(used)))  # which copies the list for every node


def _parts_in(text: bytes) -> int:
    return sum(map(text.count, (b"{", b"[", b",")))


def _nodes(schema: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield what skops builds, the nodes of a schema, each with the name of the attribute that holds it."""
    return ((name, value) for name, value in _dictionaries(schema) if "__loader__" in value)


def _dictionaries(content: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the dictionaries of a JSON text, each with the name of what holds it."""
    stack = [("", content)]
    while stack:
        name, value = stack.pop()
        if isinstance(value, dict):
            yield name, value
            stack.extend((name if key == "content" else key, item) for key, item in value.items())
        elif isinstance(value, list):
            stack.extend((name, item) for item in value)


def _check_trees(archive: zipfile.ZipFile, name: str, node: dict[str, Any]) -> None:
    """Refuse trees that would run for ever, or take more memory than the file, when they predict."""
    content = node.get("content", {})
    if name == "lightgbm.basic.Booster":
        _check_lightgbm(json.loads(content["content"]["_handle"]["content"]))
    elif name == "xgboost.core.Booster":
        _check_xgboost(archive.read(content["content"]["handle"]["file"]))
    elif node["__loader__"] == "TreeNode" or name.endswith(".TreePredictor"):
        file = io.BytesIO(archive.read(content["content"]["nodes"]["file"]))
        nodes, histogram = np.lib.format.read_array(file, allow_pickle=False), name.endswith(".TreePredictor")
        leaf = nodes["is_leaf"] == 1 if histogram else nodes["left_child"] == -1
        for side in ("left", "right") if histogram else ("left_child", "right_child"):
            _require_end(nodes[side].astype(np.int64), leaf)
        if not histogram:
            columns, feature = json.loads(node["__reduce__"]["args"]["content"][0]["content"]), nodes["feature"]
            require(((feature < columns) & (leaf | (feature >= 0))).all(), "a tree of other columns")


def _check_lightgbm(text: str) -> None:
    require("tree_sizes" not in text, "a booster of another writer")
    columns = int(re.findall(r"max_feature_idx=(.*)", text)[0])
    for block in re.split(r"[\r\n]\s*Tree\s*=", text):
        pairs = [line.partition("=")[::2] for line in re.split(r"[\r\n]", block)]
        pairs = [(key.strip(), value) for key, value in pairs if key.strip() in (*BOOSTER_SIZES, *BOOSTER_LISTS)]
        values = {key: np.array(value.split(), dtype=np.int64) for key, value in pairs}
        sizes = [int(values[key][0]) for key in BOOSTER_SIZES if key in values]
        fits = len(values) == len(pairs) and max(sizes, default=0) <= len(text)
        require(fits, "a booster of more parts than its text has")
        if "num_leaves" in values:
            left, right, features = (values.get(key, np.zeros(0)) for key in BOOSTER_LISTS)
            same = len(left) == len(right) == len(features) == values["num_leaves"][0] - 1
            require(same and (features <= columns).all(), "a tree of a booster without branches")
            for child in (left, right):
                _require_end(child, (child < 0) & (child >= -len(child) - 1))


def _check_xgboost(content: bytes) -> None:
    from xgboost import Booster

    booster = Booster()
    booster.__setstate__({"handle": bytearray(content)})
    learner = json.loads(booster.save_raw("json"))["learner"]
    sizes = {key: int(learner["learner_model_param"][key]) for key in ("num_feature", "num_class", "num_target")}
    outputs = max(sizes["num_class"], sizes["num_target"], 1)
    for _, part in _dictionaries(learner):
        require(all(0 <= group < outputs for group in part.get("tree_info", [])), "a tree of no class")
        if "left_children" in part:
            left, right, features = (np.array(part[key]) for key in XGBOOST_LISTS)
            inner = left != -1
            columns = (features >= 0) & (features < sizes["num_feature"])
            require(columns[inner].all(), "a tree of other columns")
            # each node is the child of one other, and the root of none: so every path has an end
            children = np.sort(np.concatenate([left[inner], right[inner]]))
            once = (np.diff(children, prepend=0) > 0).all() and (children < len(left)).all()
            require(once, "a tree without an end")


def _require_end(child: np.ndarray, leaf: np.ndarray) -> None:
    place = np.arange(len(child))
    require((leaf | ((place < child) & (child < len(child)))).all(), "a tree without an end")


BOOSTER_SIZES = ("num_class", "num_tree_per_iteration", "max_feature_idx", "num_leaves", "num_cat")
XGBOOST_LISTS = ("left_children", "right_children", "split_indices")
BOOSTER_LISTS = ("left_child", "right_child", "split_feature")

TYPE_ATTRIBUTES = ("dtype", "key_types", "default_factory")
"""Where fitted models hold a type, such as that of the numbers of an encoder; elsewhere it would be called."""

METHODS = (None, "auto", "predict", "predict_proba", "predict_log_proba", "decision_function")
ALLOWED_VALUES: dict[str, tuple[Any, ...]] = {
    "stack_method": METHODS, "stack_method_": METHODS, "chain_method": METHODS, "chain_method_": METHODS,
    "response_method": METHODS, "_response_method": METHODS, "input": ("content",), "pool_size": (4,),
    "n_jobs": (None, *range(-256, 257)),
}  # fmt: skip
"""Values of attributes by which a model would call any method of any object, read files, or take much memory
or many threads."""

INTERNAL = {
    "lightgbm.basic": "Booster",
    "lightgbm.sklearn": "LGBMClassifier LGBMRegressor",
    "sklearn.calibration": "_CalibratedClassifier _SigmoidCalibration",
    "sklearn.ensemble._hist_gradient_boosting.binning": "_BinMapper",
    "sklearn.ensemble._hist_gradient_boosting.predictor": "TreePredictor",
    "sklearn.metrics._scorer": "_PassthroughScorer",
    "sklearn.model_selection._split": "KFold StratifiedKFold",
    "sklearn.neural_network._stochastic_optimizers": "AdamOptimizer SGDOptimizer",
    "xgboost.core": "Booster",
    "xgboost.sklearn": "XGBClassifier XGBRegressor XGBRFClassifier XGBRFRegressor",
}
"""Classes beyond the public estimators of scikit-learn that fitted models hold."""


@cache
def _listed() -> dict[str, frozenset[str]]:
    """Return what each loader of skops may build. Loaders that are missing here build what can be called."""
    from sklearn._loss import _loss, link, loss
    from sklearn.utils import Bunch, all_estimators

    estimators = {cls for _, cls in all_estimators() if not any("__call__" in vars(base) for base in cls.__mro__)}
    parts = {
        cls
        for module in (link, loss)
        for cls in vars(module).values()
        if getattr(cls, "__module__", "") == module.__name__
    }
    scalars = {cls for cls in np.sctypeDict.values() if issubclass(cls, (np.number, np.bool_, np.str_))}
    ours = (TreeTable, BoostedMeans, BoostedTrees, ConditionalLaw, Hinges)
    names = {f"{cls.__module__}.{cls.__name__}" for cls in (*ours, *estimators, *parts)}
    names |= {f"{module}.{name}" for module, own in INTERNAL.items() for name in own.split()}
    losses = {f"{_loss.__name__}.{name}" for name in vars(_loss) if name.startswith("Cy") and "Function" not in name}
    by_loader: dict[str, set[Any]] = {
        "DictNode": {dict, Bunch, "collections.OrderedDict"}, "DefaultDictNode": {"collections.defaultdict"},
        "ListNode": {list}, "TupleNode": {tuple}, "SetNode": {set}, "SliceNode": {slice},
        "BytesNode": {bytes}, "BytearrayNode": {bytearray},
        "TypeNode": {int, float, str, bool, list, dict, tuple, type(None), "collections.OrderedDict", *scalars},
        "NdArrayNode": {np.ndarray, *scalars}, "MaskedArrayNode": {np.ma.MaskedArray}, "DTypeNode": {np.dtype},
        "RandomStateNode": {np.random.RandomState}, "RandomGeneratorNode": {np.random.Generator},
        "TreeNode": {"sklearn.tree._tree.Tree"}, "LossNode": losses, "ObjectNode": names,
    }  # fmt: skip
    return {
        loader: frozenset(cls if isinstance(cls, str) else f"{cls.__module__}.{cls.__name__}" for cls in classes)
        for loader, classes in by_loader.items()
    }
