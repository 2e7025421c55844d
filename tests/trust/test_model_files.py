"""Forged model files: each is a ValueError, runs no code and takes little memory.

The forged files are written by hand, each with one idea of how to get past the loader. Damage is
one of them.
"""

from __future__ import annotations

import io
import json
import os
import re
import resource
import subprocess
import sys
import warnings
import zipfile
from collections.abc import Callable
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
import pandas as pd
import pytest
import safetensors.numpy
import scipy.sparse
import skops.io
import xgboost
from frhsic.estimators.conditional import BoostedMeans, TreeTable
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    StackingClassifier,
)
from sklearn.ensemble._hist_gradient_boosting.common import PREDICTOR_RECORD_DTYPE as RECORD
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer
from sklearn.impute import MissingIndicator
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    LabelEncoder,
    OneHotEncoder,
    SplineTransformer,
)
from sklearn.tree._tree import NODE_DTYPE
from sklearn.utils._testing import assert_run_python_script_without_output as run_script

from estimator_samples import biased, quick
from frhsic import FRHSICClassifier, ParityClassifier, ParityCoupling, ParityRegressor, load, save
from frhsic.persistence import HEADER_ENTRY, WEIGHTS_ENTRY, file_bytes
from frhsic.persistence.rules import ATTRIBUTES, LISTED, fits
from frhsic.persistence.scikit_learn import MOST_DEPTH, build_predictor, build_tree
from frhsic.persistence.values import Reader, Writer
from trust.forging import OUTCOMES, cases, methods_of, nodes_of, outcome, samples

X, y, s = biased(80)
Entries = dict[str, bytes]
Files = dict[str, Entries]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    """The entries of a network, of a closed form and of a coupling."""
    folder = tmp_path_factory.mktemp("models")
    small = quick(hidden=(4,), size=3, epochs=1)
    with warnings.catch_warnings(action="ignore"):  # of a limit that 80 rows do not meet
        models = {
            "network": FRHSICClassifier(**small).fit(X, y, sensitive_features=s),
            "parity": (
                ParityClassifier(
                    LogisticRegression(), attribute_estimator=Ridge(), cv=2, random_state=0
                ).fit(X, y, sensitive_features=s)
            ),
            "coupling": ParityCoupling(BoostedMeans(2, n_jobs=1), cv=2, random_state=0).fit(
                X, sensitive_features=s
            ),
        }
    entries = {}
    for name, model in models.items():
        save(model, folder / name)
        with zipfile.ZipFile(folder / name) as archive:
            entries[name] = {entry: archive.read(entry) for entry in archive.namelist()}
    return entries


def written(path: Path, entries: Entries, compression: int = zipfile.ZIP_STORED) -> Path:
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, content in entries.items():
            archive.writestr(name, content)
    return path


def with_parts(entries: Entries, parts: dict[str, Any], change: Any = None) -> Entries:
    """A file with other models, whose JSON and arrays may be changed before they are written."""
    writer = Writer()
    header = json.loads(entries[HEADER_ENTRY])
    header["models"] = {name: writer.model(part) for name, part in parts.items()}
    header["not listed"] = sorted(writer.names)
    arrays = {str(place): values for place, values in enumerate(writer.arrays)}
    if change is not None:
        change(header, arrays)
    foreign = {f"{place}.skops": data for place, data in enumerate(writer.foreign)}
    text = json.dumps(header).encode()
    return {**entries, HEADER_ENTRY: text, WEIGHTS_ENTRY: safetensors.numpy.save(arrays), **foreign}


def refused(path: Path, match: str = "model") -> None:
    with pytest.raises(ValueError, match=match) as error:
        load(path)
    assert len(str(error.value)) < 2500


# Code in the place of a model


def chain(marker: Path) -> StackingClassifier:
    """A fitted stack of scikit-learn's own classes and functions that runs a script when it
    predicts.

    One transformer turns the number 0 into the text of the script, and an analyzer of words runs
    its text.
    """
    frame = pd.DataFrame({"a": [0, 0, 0, 0]})
    inner = make_pipeline(ColumnTransformer([("t", "passthrough", ["a"])]), LogisticRegression())
    stack = StackingClassifier([("p", inner.fit(frame, [0, 1, 0, 1]))], cv="prefit").fit(
        frame, [0, 1, 0, 1]
    )
    encoder = LabelEncoder()
    encoder.classes_ = np.array([f"open({str(marker)!r}, 'w').close()"])
    words = HashingVectorizer(analyzer=run_script, n_features=4)
    stack.estimators_[0].steps[0][1].transformers_ = [
        ("t", make_pipeline(FunctionTransformer(encoder.inverse_transform), words), "a")
    ]
    return stack


def test_a_chain_of_scikit_learn_that_runs_a_script_is_refused(files: Files, tmp_path: Path):
    marker = tmp_path / "ran"
    content = skops.io.dumps(chain(marker))
    every = skops.io.get_untrusted_types(data=content)
    assert all(name.startswith("sklearn.") for name in every)
    with pytest.raises(
        TypeError
    ):  # the chain works: this is what trusting all of scikit-learn leads to
        skops.io.loads(content, trusted=every).predict(pd.DataFrame({"a": [0]}))
    assert marker.exists()
    marker.unlink()
    parts = {"models_": [chain(marker)], "attribute_models_": []}
    path = written(tmp_path / "model", with_parts(files["parity"], parts))
    refused(path, r"assert_run_python_script_without_output'.* may run code")
    assert not marker.exists()


CALLABLES: dict[str, Callable[[], Any]] = {
    "a function": lambda: FunctionTransformer(run_script),
    "a universal function": lambda: FunctionTransformer(np.log1p),
    "a builtin": lambda: FunctionTransformer(eval),
    "a partial": lambda: FunctionTransformer(partial(run_script, "")),
    "a class": lambda: FunctionTransformer(Path),
    "an analyzer": lambda: HashingVectorizer(analyzer=print),
    "a foreign class": lambda: Foreign(),
    "a function in a list": lambda: LogisticRegression(class_weight=[{"a": (len,)}]),
}


class Foreign:
    """A class of no list; its state is harmless, its name is not."""

    def __init__(self) -> None:
        self.a = 1

    def predict(self, rows: Any) -> Any:
        return rows


@pytest.mark.parametrize("name", CALLABLES)
def test_what_can_be_called_is_refused_unless_it_is_named(name: str, files: Files, tmp_path: Path):
    parts = {
        "models_": [CALLABLES[name](), LogisticRegression()],
        "attribute_models_": [[Ridge()], [Ridge()]],
    }
    path = written(tmp_path / "model", with_parts(files["parity"], parts))
    refused(path, r"which may run code\. If you trust its author, pass load\(path, trusted=\[")


def test_a_class_that_the_user_names_is_loaded(files: Files, tmp_path: Path):
    parts = {
        "models_": [FunctionTransformer(np.log1p), Foreign()],
        "attribute_models_": [[Ridge()], [Ridge()]],
    }
    parts |= {"estimator": LogisticRegression(), "attribute_estimator": Ridge()}
    path = written(tmp_path / "model", with_parts(files["parity"], parts))
    names = [
        "numpy.log1p",
        "sklearn.preprocessing._function_transformer.FunctionTransformer",
        f"{Foreign.__module__}.Foreign",
    ]
    first, second = load(path, trusted=names).models_
    assert first.func is np.log1p
    assert second.a == 1
    for missing in range(3):
        with pytest.raises(ValueError, match="which may run code"):
            load(path, trusted=[name for i, name in enumerate(names) if i != missing])


# Values that no save has written


def with_value(value: Any, files: Files) -> Entries:
    """A closed form with something else in the place of its first model."""

    def change(header: Any, arrays: Any) -> None:
        header["models"]["models_"]["fields"][0] = value

    return with_parts(files["parity"], PARTS, change)


def a_list(*items: Any) -> dict[str, Any]:
    return {"class": "list", "fields": list(items)}


def nested(depth: int) -> Any:
    value: Any = a_list()
    for _ in range(depth):
        value = a_list(value)
    return value


VALUES: dict[str, Any] = {
    "text": "import os",
    "a list": a_list(1.0),
    "three hundred nested lists": nested(300),
    "a class of no list": {"class": "subprocess.Popen", "fields": {"args": "true"}},
    "a module that is not loaded": {"class": "antigravity.Anything", "fields": {}},
    "a listed module": {"class": "sklearn.linear_model", "fields": {}},
    "a class without its module": {"class": "Ridge", "fields": {}},
    "another estimator": {"class": "sklearn.svm.SVC", "fields": {}},
    "no fields": {"class": "sklearn.linear_model.Ridge"},
    "no class": {"fields": {}},
    "one array twice": a_list(*[{"class": "numbers", "fields": [0, "C"]}] * 2),
    "an array that is missing": {"class": "numbers", "fields": [99, "C"]},
    "an object of skops that is missing": {"class": "skops", "fields": 0},
    "an object of skops of no number": {"class": "skops", "fields": "../0"},
    "keys that are lists": {"class": "pairs", "fields": [[a_list(), 1]]},
    "text of 10^8 letters": {"class": "dtype", "fields": "<U99999999"},
    "half of a model": {"class": "sklearn.linear_model.Ridge", "fields": {"coef_": 1.0}},
    "a function as a parameter": {
        "class": "sklearn.preprocessing.FunctionTransformer",
        "fields": {"func": "os.system"},
    },
    "a folder for a cache": {
        "class": "sklearn.pipeline.Pipeline",
        "fields": {"steps": a_list(), "memory": "/tmp"},
    },
    "an unknown parameter": {
        "class": "lightgbm.LGBMClassifier",
        "fields": {"predict_disable_shape_check": True},
    },
}


def weights(shape: list[int], dtype: str = "F64") -> bytes:
    """Weights that claim to be of another shape than their two numbers."""
    header = {"0": {"dtype": dtype, "shape": shape, "data_offsets": [0, 16]}}
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + bytes(16)


ENTRIES = {
    "a larger array": (WEIGHTS_ENTRY, weights([10**13])),
    "a negative shape": (WEIGHTS_ENTRY, weights([-1])),
    "more columns": (WEIGHTS_ENTRY, weights([2, 10**7])),
    "numbers of no type": (WEIGHTS_ENTRY, weights([2], "O64")),
    "names of 2^60 bytes": (WEIGHTS_ENTRY, (2**60).to_bytes(8, "little")),
    "no weights": (WEIGHTS_ENTRY, b""),
    "a pickle": (WEIGHTS_ENTRY, b"\x80\x04cos\nsystem\n"),
    **{
        name: (name, b"")
        for name in (
            "../model.json",
            "/etc/passwd",
            "a/0.skops",
            "0.skops\n",
        )
    },
    **{
        f"no JSON: {text[:9]!r} {len(text)}": (HEADER_ENTRY, text)
        for text in (
            b"[" * 100_000,
            b'{"class":' * 100_000,
            b"",
            b"\xff",
            b"1" * 10_000,
            b" " * 2**25,
        )
    },
}


def with_entry(name: str, content: bytes, files: Files) -> Entries:
    return files["parity"] | {name: content}


# The archive


def test_a_compressed_entry_is_refused_before_it_is_unpacked(files: Files, tmp_path: Path):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    bomb = io.BytesIO()
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr(HEADER_ENTRY, files["parity"][HEADER_ENTRY])
        with archive.open(WEIGHTS_ENTRY, "w") as entry:
            for _ in range(300):
                entry.write(bytes(2**20))
    (tmp_path / "model").write_bytes(bomb.getvalue())
    refused(tmp_path / "model", "an entry is compressed, or of another size than it says")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000  # kB


def test_many_entries_of_no_size_are_refused(files: Files, tmp_path: Path):
    many = {f"{i}.skops": b"" for i in range(100, 10_101)}
    refused(written(tmp_path / "model", files["parity"] | many), "it has more than 10000 entries")


def test_two_entries_of_one_name_are_refused(files: Files, tmp_path: Path):
    path = written(tmp_path / "model", files["parity"])
    with warnings.catch_warnings(action="ignore"), zipfile.ZipFile(path, "a") as archive:
        archive.writestr(HEADER_ENTRY, files["network"][HEADER_ENTRY])
    refused(path, "it has two entries of one name")


@pytest.mark.parametrize("field", [20, 24])
def test_an_entry_that_says_another_size_is_refused(field: int, files: Files, tmp_path: Path):
    path = written(tmp_path / "model", files["parity"])
    content = bytearray(path.read_bytes())
    central = content.rindex(b"PK\x01\x02")
    content[central + field : central + field + 4] = (2**31).to_bytes(4, "little")
    path.write_bytes(content)
    refused(path)


def test_entries_that_overlap_are_refused(files: Files, tmp_path: Path):
    path = written(
        tmp_path / "model",
        files["parity"] | {f"{i}.skops": bytes(10**5 if i == 50 else 0) for i in range(51)},
    )
    content = bytearray(path.read_bytes())
    last = content.rindex(b"PK\x01\x02")
    place = content.index(b"PK\x01\x02")
    while place < last:  # every entry says that it lies where the large one does
        name = content[place + 46 : place + 46 + 7]
        if name.endswith((b".skops", b".skop")):
            content[place + 16 : place + 28] = content[last + 16 : last + 28]
            content[place + 42 : place + 46] = content[last + 42 : last + 46]
        place = content.index(b"PK\x01\x02", place + 4)
    path.write_bytes(content)
    refused(path, "its entries overlap")


@pytest.mark.parametrize("kind", ["network", "parity"])
def test_damage_is_refused(kind: str, files: Files, tmp_path: Path):
    content = written(tmp_path / "model", files[kind]).read_bytes()
    path = tmp_path / "damaged"
    for place in range(
        40, len(content) // 2, len(content) // 40
    ):  # a byte of the entries, which have a checksum
        path.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
        try:
            load(path)
        except ValueError:
            continue
        with zipfile.ZipFile(
            path
        ) as archive:  # a byte of a local header that repeats what stands at the end
            assert {name: archive.read(name) for name in archive.namelist()} == files[kind]
    for cut in (0, 10, len(content) // 2, len(content) - 1):
        path.write_bytes(content[:cut])
        refused(path, "damaged")


# The description


def changed(entries: Entries, path: list[Any], value: Any) -> bytes:
    """Return the JSON of a model with another value at one place."""
    header = json.loads(entries[HEADER_ENTRY])
    owner = header
    for key in path[:-1]:
        owner = owner[key]
    owner[path[-1]] = value
    return json.dumps(header).encode()


SOLUTION = ["fitted", "solution_", "fields"]
FRONTIER = ["fitted", "frontier_", "fields"]
CONSTRAINT = [*SOLUTION, "constraints", 0, "fields"]
TABLE = ["fitted", "feature_encoding_", "fields", "columns", 0, "fields"]
LAYERS = ["parameters", "encoder", "fields"]
RATIO = ["fitted", "ratio_", "fields"]
BASIS = [*RATIO, "basis", "fields"]
ONE_PLACE = {"dtype": "<i8", "shape": [1], "values": [10**9]}
GAP = {"class": "Gap", "fields": {"value": 1.0, "low": 1.0, "high": 1.0}}
NAN = {"class": "float", "fields": "nan"}
ARRAY = {"class": "array", "fields": {"dtype": "<f8", "shape": [2], "values": [1.0, 2.0]}}
HEADERS: dict[str, tuple[str, list[Any], Any]] = {
    "NaN as a coefficient": (
        "parity",
        [*SOLUTION, "parameters", "fields", "values", 3],
        float("nan"),
    ),
    "another shape": ("parity", [*SOLUTION, "parameters", "fields", "shape"], [1, 2, 3]),
    "a condition of no rows": ("parity", [*CONSTRAINT, "among"], "none"),
    "constraints that are one": ("parity", [*SOLUTION, "constraints"], 1),
    "a place beyond the frontier": ("parity", ["fitted", "choice_", "fields", "position"], 400.0),
    "gaps that are numbers": (
        "parity",
        ["fitted", "choice_", "fields", "gaps"],
        {"class": "dict", "fields": {"a": 1}},
    ),
    "a frontier of another length": ("parity", [*FRONTIER, "performance", "fields", "auc"], ARRAY),
    "an aim of no kind": ("parity", ["parameters", "aim"], "all"),
    "a function that is not given": ("parity", ["parameters", "limit"], {"custom": "os.system"}),
    "labels of records": ("parity", ["fitted", "classes_", "fields", "dtype"], "f8,f8"),
    "labels that are lists": (
        "parity",
        ["fitted", "classes_", "fields"],
        {"dtype": "|O", "shape": [2], "values": [[1], [2]]},
    ),
    "parameters are missing": ("parity", ["parameters"], {}),
    "gigabytes of layers": ("network", [*LAYERS, "hidden"], [10**6, 10**6]),
    "300,000 layers": ("network", [*LAYERS, "hidden"], [1] * 300_000),
    "layers that are text": ("network", [*LAYERS, "hidden"], "abc"),
    "a wide representation": ("network", ["fitted", "representation_size_"], 10**9),
    "a bottleneck": ("network", ["fitted", "has_bottleneck_"], True),
    "an activation of no kind": ("network", [*LAYERS, "activation"], "system"),
    "a device that is a number": ("network", ["parameters", "device"], 3),
    "NaN as a scale": ("network", [*TABLE, "high"], float("nan")),
    "a regressor": ("network", ["class"], "FRHSICRegressor"),
    "a penalty of no kind": ("network", ["fitted", "penalty_"], {"class": "Penalty", "fields": {}}),
    "a foreign argument": ("network", ["fitted", "penalty_", "fields", "self"], 1),
    "no encoding": ("network", ["fitted"], {}),
    "text without a size, as long as its longest": (
        "parity",
        ["fitted", "classes_", "fields"],
        {"dtype": "<U", "shape": [1001], "values": ["a" * 10**5] + [""] * 1000},
    ),
    "a model as a seed": (
        "parity",
        ["parameters", "random_state"],
        {"class": "sklearn.linear_model.Ridge", "fields": {}},
    ),
    "a seed that is no number": ("coupling", ["fitted", "random_seed_"], NAN),
    **{
        f"{name} of a coupling is {value}": ("coupling", ["parameters", name], value)
        for name, value in (("amount", -1), ("amount", "1"), ("amount", [0.5]))
    },
    **{
        f"{name} of other nodes": ("coupling", [*BASIS, name], value)
        for name, value in (
            ("values", {"class": "array", "fields": ONE_PLACE | {"shape": [1, 1]}}),
            ("parts", ["text"]),
        )
    },
    "a calibration of other functions": ("coupling", [*RATIO, "calibration"], ARRAY),
    "a column of a table that is another class": ("network", TABLE[:-1], {**GAP}),
    "a middle that is text": ("network", [*TABLE, "middle"], "1"),
}


def with_header(kind: str, place: list[Any], value: Any, files: Files) -> Entries:
    return files[kind] | {HEADER_ENTRY: changed(files[kind], place, value)}


def with_weights(change: Callable[[dict[str, np.ndarray]], Any], files: Files) -> Entries:
    arrays = {
        n: v.copy() for n, v in safetensors.numpy.load(files["network"][WEIGHTS_ENTRY]).items()
    }
    change(arrays)
    return files["network"] | {WEIGHTS_ENTRY: safetensors.numpy.save(arrays)}


TENSORS: dict[str, Callable[[dict[str, np.ndarray]], Any]] = {
    "NaN": lambda arrays: arrays["encoder.0.weight"].fill(np.nan),
    "whole numbers": lambda arrays: arrays.update({"head.bias": arrays["head.bias"].astype(int)}),
    "another shape": lambda arrays: arrays.update({"head.weight": np.zeros((1, 9), np.float32)}),
    "one too many": lambda arrays: arrays.update({"encoder.9.weight": np.zeros(2)}),
    "one too few": lambda arrays: arrays.pop("encoder.0.bias"),
    "no head": lambda arrays: arrays.pop("head.bias"),
    "a state that no penalty has": lambda arrays: arrays.update({"penalty.forward": np.zeros(2)}),
}


FIT = LogisticRegression().fit(X, y)
PARTS = {
    "models_": [FIT, FIT],
    "attribute_models_": [[Ridge()], [Ridge()]],
    "estimator": FIT,
    "attribute_estimator": Ridge(),
}


def with_models(files: Files, model: Any, change: Any = None) -> Entries:
    """A closed form with another model of y, which loads if the model is not forged."""
    return with_parts(files["parity"], PARTS | {"models_": [model, model]}, change)


def with_attribute(files: Files, model: Any, owner: str, attribute: str, value: Any) -> Entries:
    """A model of which objects of one class have another attribute."""

    def change(header: Any, arrays: Any) -> None:
        found = [node for node in nodes_of(header["models"]) if node["class"].endswith(owner)]
        assert found
        for node in found:
            node["fields"][attribute] = value

    return with_models(files, model, change)


TEXT = {"class": "array", "fields": {"dtype": "<U11", "shape": [], "values": ["/etc/passwd"]}}


def with_nodes(files: Files, model: Any, owner: str, field: str, value: int) -> Entries:
    """The first node of every tree has another value."""
    part: Any = model
    while not hasattr(part, "nodes") and not hasattr(part, "tree_"):
        part = part[0] if isinstance(part, list) else getattr(part, "_predictors", None) or part[0]
    dtype = part.nodes.dtype if hasattr(part, "nodes") else part.tree_.__getstate__()["nodes"].dtype

    def change(header: Any, arrays: Any) -> None:
        for node in nodes_of(header["models"]):
            if node["class"].endswith(owner):
                place = str(node["fields"]["nodes"]["fields"][0])
                nodes = arrays[place].view(dtype)
                nodes[field][0] = value

    return with_models(files, model, change)


def with_text(files: Files, model: Any, change_text: Callable[[str], str]) -> Entries:
    """A booster of another text."""

    def change(header: Any, arrays: Any) -> None:
        for node in nodes_of(header["models"]):
            if node["class"].endswith("Booster"):
                place = str(node["fields"]["text"]["fields"][0])
                text = change_text(arrays[place].tobytes().decode())
                assert text != arrays[place].tobytes().decode()
                arrays[place] = np.frombuffer(text.encode(), np.uint8)

    return with_models(files, model, change)


def boosted(files: Files, pattern: str, text: str, classes: int = 2) -> Entries:
    model = lightgbm.LGBMClassifier(n_estimators=2, num_leaves=4, n_jobs=1, verbose=-1)
    model.fit(X, y if classes == 2 else np.arange(80) % classes)
    return with_text(files, model, partial(re.sub, pattern, text, count=1))


def xgboosted(files: Files, place: str, values: list[int]) -> Entries:
    """An XGBoost model whose first tree has other children or columns, or whose trees belong to
    other classes.
    """
    model = xgboost.XGBClassifier(n_estimators=2, max_depth=2, n_jobs=1).fit(X, y)

    def change(text: str) -> str:
        content = json.loads(text)
        trees = content["learner"]["gradient_booster"]["model"]
        owner = trees if place in trees else trees["trees"][0]
        owner[place] = [*values, *owner[place][len(values) :]]
        return json.dumps(content)

    return with_text(files, model, change)


def softmax(files: Files) -> Entries:
    """An objective of other classes than the model: its transformation would read beyond them."""
    model = xgboost.XGBClassifier(n_estimators=2, max_depth=2, n_jobs=1).fit(X, np.arange(80) % 3)
    known = '"softmax_multiclass_param": {"num_class": "3"}'
    return with_text(files, model, lambda text: text.replace(known, known.replace("3", "3000000")))


def with_numbers(
    files: Files, model: Any, owner: str, attribute: str, values: np.ndarray
) -> Entries:
    """A model of which objects of one class have other numbers in an attribute."""

    def change(header: Any, arrays: Any) -> None:
        found = [node for node in nodes_of(header["models"]) if node["class"].endswith(owner)]
        assert found
        for node in found:
            place = len(arrays)
            arrays[str(place)] = values
            node["fields"][attribute] = {"class": "numbers", "fields": [place, "C"]}

    return with_models(files, model, change)


MANY_TREES = "\nTree=1\nnum_leaves=1\nnum_cat=0\nleaf_value=0\nis_linear=0" * 10**5


def repeated(files: Files, steps: int = 1, times: int = 10**6) -> Entries:
    """A column transformer whose steps take one column many times, or make many of it."""
    values = np.arange(5000)[:, None]
    encoder = OneHotEncoder(categories=[values[:, 0]]) if steps > 1 else "passthrough"
    model = ColumnTransformer([(str(i), encoder, [0]) for i in range(steps)]).fit(values)

    def change(header: Any, arrays: Any) -> None:
        for node in nodes_of(header["models"]):
            if node["class"].endswith("ColumnTransformer") and times > 1:
                place = len(arrays)
                arrays[str(place)] = np.zeros(times, np.int8)
                node["fields"]["transformers_"]["fields"][0][2] = {
                    "class": "numbers",
                    "fields": [place, "C"],
                }

    return with_models(files, make_pipeline(model, FIT), change)


@pytest.mark.parametrize("depth", [MOST_DEPTH, MOST_DEPTH + 1])
def test_a_tree_is_as_deep_as_the_limit_and_no_deeper(depth: int):
    """A chain: each row would go through all of its nodes."""
    inner = np.arange(0, 2 * depth, 2)
    for dtype, sides in ((NODE_DTYPE, ("left_child", "right_child")), (RECORD, ("left", "right"))):
        nodes = np.zeros(2 * depth + 1, dtype)
        for side, next_node in zip(sides, (1, 2)):
            nodes[side] = -1 if dtype is NODE_DTYPE else 0
            nodes[side][inner] = inner + next_node
        state = {"nodes": nodes.view(np.uint8)}
        if dtype is NODE_DTYPE:
            value = np.zeros((len(nodes), 1, 1))
            build = partial(build_tree, state | {"n_features": 1, "n_classes": [1], "value": value})
        else:
            nodes["is_leaf"] = 1
            nodes["is_leaf"][inner] = 0
            build = partial(build_predictor, state)
        if depth > MOST_DEPTH:
            with pytest.raises(ValueError, match="a tree that is too deep"):
                build()
        else:
            build()


def test_boosters_that_are_too_many_to_be_read_are_not_saved(monkeypatch: Any):
    model = lightgbm.LGBMRegressor(n_estimators=2, verbose=-1, n_jobs=1)
    parity = ParityRegressor(model, attribute_estimator=Ridge(), cv=2, random_state=0)
    with warnings.catch_warnings(action="ignore"):
        parity.fit(X, y, sensitive_features=s)
    file_bytes(parity)
    monkeypatch.setattr("frhsic.persistence.MOST_NUMBERS", 100)
    with pytest.raises(ValueError, match="Use fewer trees"):
        file_bytes(parity)


def wide(files: Files) -> Entries:
    """A basis of no nodes and 4e8 functions, which is a file of 20 kB."""
    empty = {"class": "array", "fields": {"dtype": "<f8", "shape": [0], "values": []}}
    values = {"class": "array", "fields": {"dtype": "<f8", "shape": [0, 400_000_000], "values": []}}
    fields = {"starts": empty, "mass": empty, "values": values}
    return with_header(
        "parity", [*CONSTRAINT, "basis"], {"class": "SensitiveBasis", "fields": fields}, files
    )


def names_of_weights(files: Files) -> Entries:
    header = json.dumps(
        {f"a{i}": {"dtype": "U8", "shape": [0], "data_offsets": [0, 0]} for i in range(30_000)}
    ).encode()
    return files["network"] | {WEIGHTS_ENTRY: len(header).to_bytes(8, "little") + header}


FOREST = RandomForestClassifier(2, max_depth=2, random_state=0).fit(X, y)
HISTOGRAMS = HistGradientBoostingClassifier(max_iter=2).fit(X, y)
STACK = StackingClassifier([("a", FIT)], cv="prefit").fit(X, y)
LETTERS = OneHotEncoder().fit([["a"], ["b"]])
FOUND: dict[str, Callable[[Files], Entries]] = {
    # what once read and wrote files, and started threads
    "a stack that calls any method": lambda files: with_models(files, STACK),
    "a text that names files": lambda files: with_models(
        files, make_pipeline(CountVectorizer(input="filename"), LinearRegression())
    ),
    "a folder for a cache": lambda files: with_attribute(
        files, make_pipeline(FIT), "Pipeline", "memory", "/tmp/cache"
    ),
    "a folder for a cache, as an array": lambda files: with_attribute(
        files, make_pipeline(FIT), "Pipeline", "memory", TEXT
    ),
    "threads as text": lambda files: with_attribute(
        files, FOREST, "ForestClassifier", "n_jobs", TEXT
    ),
    "a type that is called": lambda files: with_models(
        files, make_pipeline(FunctionTransformer(str), FIT)
    ),
    # trees
    **{
        f"{field} of a tree is {value}": partial(
            with_nodes, model=FOREST, owner=".Tree", field=field, value=value
        )
        for field, value in (
            ("left_child", 0),
            ("feature", 2**40),
        )
    },
    **{
        f"{field} of a histogram tree is {value}": partial(
            with_nodes, model=HISTOGRAMS, owner="TreePredictor", field=field, value=value
        )
        for field, value in (
            ("left", 0),
            ("feature_idx", 2**40),
        )
    },
    "a tree of more columns than its forest": lambda files: with_attribute(
        files, FOREST, ".Tree", "n_features", 2**30
    ),
    "a forest of fewer columns": lambda files: with_attribute(
        files, FOREST, "ForestClassifier", "n_features_in_", 1
    ),
    # LightGBM
    **{
        f"a booster with {text}": partial(boosted, pattern=pattern, text=text)
        for pattern, text in (
            (r"num_leaves=\d+", "num_leaves=2147483647"),
            (r"num_class=\d+", "num_class=1000000000"),
            (r"left_child=\S+", "left_child=0"),
            (r"split_feature=\d+", "split_feature=1000000000"),
            (r"num_cat=0", "num_cat=1"),
        )
    },
    "an objective of other classes": partial(
        boosted, pattern="num_class:3", text="num_class:3000000", classes=3
    ),
    # XGBoost
    "an XGBoost tree with a circle": lambda files: xgboosted(files, "left_children", [1, 1]),
    "a child that XGBoost does not have": lambda files: xgboosted(files, "right_children", [10**6]),
    "an XGBoost objective of other classes": softmax,
    # others
    "columns that an encoder does not have": lambda files: with_attribute(
        files, make_pipeline(LETTERS, FIT), "OneHotEncoder", "_n_features_outs", a_list(10**9)
    ),
    # few bytes that become many numbers for each row
    "more outputs than classes": lambda files: with_numbers(
        files, FIT, "LogisticRegression", "coef_", np.zeros((10**5, 3))
    ),
    "categories for each of which a row has a number": lambda files: with_attribute(
        files,
        make_pipeline(OneHotEncoder().fit(X[:, :1]), FIT),
        "OneHotEncoder",
        "categories_",
        a_list(
            {
                "class": "array",
                "fields": {"dtype": "<i8", "shape": [2**18], "values": list(range(2**18))},
            }
        ),
    ),
    "a booster of many names": partial(
        boosted, pattern="feature_names=", text="feature_names=" + "a " * 10**6
    ),
    "boosters of many trees": partial(boosted, pattern=r"\nTree=1\n", text=MANY_TREES),
    "a booster with blanks of another kind": partial(boosted, pattern="leaf_value=", text="\x1c"),
    "a column that is handed on many times": repeated,
    "a flag of one column many times": lambda files: with_numbers(
        files,
        make_pipeline(MissingIndicator(features="all").fit(X), FIT),
        "MissingIndicator",
        "features_",
        np.zeros(10**6, np.int8),
    ),
    "a wide basis of no rows": wide,
    "many weights of no size": names_of_weights,
}


def test_what_once_got_past_the_checks_of_boosters_does_not_reach_them(
    files: Files, tmp_path: Path
):
    """Lines beside those that are known are not in the text that LightGBM reads."""
    entries = boosted(
        files, "max_feature_idx=2", "xmax_feature_idx=9\nmachines=a\nmax_feature_idx=2"
    )
    model = load(written(tmp_path / "model", entries)).models_[0]
    text = model.booster_.model_to_string()
    assert "xmax" not in text
    assert "machines=a" not in text
    model.predict(X)


def test_threads_are_at_most_those_of_the_machine(files: Files, tmp_path: Path):
    entries = with_attribute(files, FOREST, "ForestClassifier", "n_jobs", 10**6)
    header = json.loads(entries[HEADER_ENTRY])
    header["parameters"]["n_jobs"] = 10**6
    model = load(written(tmp_path / "model", entries | {HEADER_ENTRY: json.dumps(header).encode()}))
    assert model.n_jobs == model.models_[0].n_jobs == os.cpu_count()
    np.testing.assert_array_equal(model.models_[0].predict(X), FOREST.predict(X))


def test_text_that_is_no_text_is_refused(files: Files, tmp_path: Path):
    words = np.where(y, "yes", "no")
    model = LogisticRegression().fit(X, words)

    def change(header: Any, arrays: Any) -> None:
        for values in arrays.values():
            if values.dtype == np.uint32:
                values[-1, -1] = 2**31

    loaded = load(written(tmp_path / "model", with_models(files, model)))
    assert loaded.models_[0].classes_.tolist() == ["no", "yes"]
    refused(written(tmp_path / "other", with_models(files, model, change)), "letter")


def test_levels_of_a_table_are_not_repeated_in_the_description(files: Files):
    """The JSON of a model is limited, and each of ten models knows all levels."""
    frame = pd.DataFrame({"job": [f"level {i}" for i in range(10_000)]})
    entries = with_models(files, make_pipeline(TreeTable().fit(frame), FIT))
    assert len(entries[HEADER_ENTRY]) < len(files["parity"][HEADER_ENTRY]) + 10_000


def test_steps_that_each_make_five_columns_of_one_do_not_add_up(files: Files, tmp_path: Path):
    """Twenty steps of a file of few bytes would make 5^20 columns."""
    one = SplineTransformer(n_knots=3).fit(X[:, :1])
    path = written(tmp_path / "model", with_models(files, make_pipeline(*[one] * 20, FIT)))
    with pytest.raises(ValueError, match="X has 5 features, but SplineTransformer is expecting 1"):
        load(path).models_[0].predict(X[:, :1])


def test_models_that_are_not_forged_are_loaded(files: Files, tmp_path: Path):
    deep = xgboost.XGBClassifier(n_estimators=5, gamma=1, tree_method="exact", n_jobs=1).fit(X, y)
    three = xgboost.XGBClassifier(n_estimators=2, n_jobs=1).fit(X, np.arange(80) % 3)
    for i, model in enumerate([FIT, FOREST, HISTOGRAMS, deep, three]):
        loaded = load(written(tmp_path / str(i), with_models(files, model)))
        np.testing.assert_array_equal(loaded.models_[0].predict(X), model.predict(X))


FORGED: dict[str, Callable[[Files], Entries]] = {
    **{f"value: {name}": partial(with_value, value) for name, value in VALUES.items()},
    **{f"entry: {name}": partial(with_entry, *entry) for name, entry in ENTRIES.items()},
    **{f"description: {name}": partial(with_header, *header) for name, header in HEADERS.items()},
    **{f"weights: {name}": partial(with_weights, change) for name, change in TENSORS.items()},
    **FOUND,
}


@pytest.mark.parametrize("name", FORGED)
def test_a_forged_file_is_refused(name: str, files: Files, tmp_path: Path):
    path = written(tmp_path / "model", FORGED[name](files))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    refused(path, "model")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000  # kB


def test_missing_parts_are_refused(files: Files, tmp_path: Path):
    for kind, entries in files.items():
        for missing in entries:
            refused(
                written(
                    tmp_path / kind,
                    {name: data for name, data in entries.items() if name != missing},
                ),
                kind,
            )


# The list


def test_every_attribute_of_the_list_says_what_it_may_be():
    for name, attributes in LISTED.items():
        assert {attribute.rstrip("?") for attribute in attributes} <= ATTRIBUTES.keys(), name
    words = {word for kind in ATTRIBUTES.values() for word in re.split(r" \| | of |/", kind)}
    assert not {"callable", "any", "object", "path"} & words
    assert not any(
        fits(value, kind) for value in (len, np.log, type) for kind in ATTRIBUTES.values()
    )


def test_each_listed_class_comes_back_bit_for_bit():
    for model, rows in samples().values():
        writer = Writer()
        content = json.loads(json.dumps(writer.model(model)))
        assert not writer.names
        arrays = {str(place): values.copy() for place, values in enumerate(writer.arrays)}
        again = Reader(arrays).read(content)
        assert not arrays
        for method in methods_of(model):
            with warnings.catch_warnings(action="ignore"):
                expected = getattr(model, method)(*rows)
                values = getattr(again, method)(*rows)
            if scipy.sparse.issparse(expected):
                expected, values = expected.toarray(), values.toarray()
            np.testing.assert_array_equal(np.asarray(values), np.asarray(expected), strict=True)


def test_a_sample_of_forged_attributes_is_refused_or_predicts():
    """Each attribute of each class in turn is something else; the slow test does it for all."""
    counts = dict.fromkeys(OUTCOMES, 0)
    for _, _, *forged in islice(cases(), 11, None, 83):
        counts[outcome(*forged)] += 1
    assert counts["takes memory"] == 0
    assert sum(counts.values()) >= 200
    assert counts["refused"] > 2 * counts["raises"]
    assert counts["predicts"] > 0


@pytest.mark.slow
def test_no_forged_attribute_ends_the_process_or_takes_long_or_much():
    """A process for each, with 10 seconds and 1 GB."""
    program = Path(__file__).with_name("forging.py")
    folders = os.pathsep.join(path for path in sys.path if path)
    settings = {**os.environ, "PYTHONPATH": folders, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, str(program), "10"]
    done = subprocess.run(command, env=settings, capture_output=True, text=True, check=True)
    counts = json.loads(done.stdout.splitlines()[-1])
    assert set(counts) <= {*OUTCOMES[:3], "seconds of the slowest"}, done.stderr
    assert counts["refused"] + counts["predicts"] + counts["raises"] > 1000


# Single bits


@pytest.fixture(scope="module")
def whole(
    tmp_path_factory: pytest.TempPathFactory,
) -> dict[str, tuple[bytes, Callable[[Any], Any]]]:
    """Files of three kinds, and what is asked of the model in each."""
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    with warnings.catch_warnings(action="ignore"):
        closed = ParityClassifier(
            lightgbm.LGBMClassifier(n_estimators=2, num_leaves=4, n_jobs=1, verbose=-1),
            attribute_estimator=Ridge(),
            cv=2,
            random_state=0,
        ).fit(frame, y, sensitive_features=s)
        network = FRHSICClassifier(**quick(hidden=(4,), size=3, epochs=1))
        network.fit(X, y, sensitive_features=s)
        coupling = ParityCoupling(BoostedMeans(2, n_jobs=1), cv=2, random_state=0)
        coupling.fit(frame, sensitive_features=s)
    return {
        "closed form": (file_bytes(closed), lambda model: model.predict_proba(frame)),
        "network": (file_bytes(network), lambda model: model.predict_proba(X)),
        "coupling": (
            file_bytes(coupling),
            lambda model: model.transform(frame, sensitive_features=s).to_numpy(),
        ),
    }


def flipped(whole: Any, kind: str, count: int, folder: Path) -> None:
    content, ask = whole[kind]
    path = folder / "model"
    path.write_bytes(content)
    expected = ask(load(path))
    rng = np.random.default_rng(0)
    for place in rng.integers(0, 8 * len(content), count):
        damaged = bytearray(content)
        damaged[place // 8] ^= 1 << (place % 8)
        path.write_bytes(damaged)
        try:
            model = load(path)
        except ValueError:
            continue
        np.testing.assert_array_equal(ask(model), expected)


@pytest.mark.parametrize("kind", ["closed form", "network", "coupling"])
def test_a_file_with_another_bit_is_refused_or_predicts_the_same(
    kind: str, whole: Any, tmp_path: Path
):
    flipped(whole, kind, 100, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["closed form", "network", "coupling"])
def test_10_000_files_with_another_bit_are_refused_or_predict_the_same(
    kind: str, whole: Any, tmp_path: Path
):
    flipped(whole, kind, 3_334, tmp_path)
