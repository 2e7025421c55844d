"""Forged model files: each is a ValueError, runs no code and takes little memory.

The forged files are written by hand, each with one idea of how to get past the loader. Damage is
one of them.
"""

from __future__ import annotations

import io
import json
import re
import resource
import warnings
import zipfile
from collections.abc import Callable
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
import pandas as pd
import pytest
import safetensors.torch
import skops.io
import torch
import xgboost
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    StackingClassifier,
)
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, LabelEncoder
from sklearn.utils._testing import assert_run_python_script_without_output as run_script

from estimator_samples import biased, quick
from frhsic import FRHSICClassifier, ParityClassifier, load, save
from frhsic.persistence import HEADER, SCHEMA, WEIGHTS, skops_entries

X, y, s = biased(80)
Entries = dict[str, bytes]
Files = dict[str, Entries]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    """The entries of a network and of a closed form."""
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
    path = written(tmp_path / "model", files["parity"] | skops_entries(parts))
    refused(path, r"inverse_transform'.*assert_run_python_script_without_output'.* may run code")
    assert not marker.exists()


CALLABLES: dict[str, Callable[[], Any]] = {
    "a function": lambda: FunctionTransformer(run_script),
    "a universal function": lambda: FunctionTransformer(np.log1p),
    "a builtin": lambda: FunctionTransformer(eval),
    "a partial": lambda: FunctionTransformer(partial(run_script, "")),
    "an operator": lambda: FunctionTransformer(attrgetter("a")),
    "a method": lambda: FunctionTransformer(LogisticRegression().fit),
    "a class": lambda: FunctionTransformer(Path),
    "an analyzer": lambda: HashingVectorizer(analyzer=print),
    "a foreign class": lambda: Foreign(),
    "a function in a list": lambda: LogisticRegression(class_weight=[{"a": (len,)}]),
}


class Foreign:
    """A class of no list; its state is harmless, its name is not."""

    def __init__(self) -> None:
        self.a = 1


@pytest.mark.parametrize("name", CALLABLES)
def test_what_can_be_called_is_refused_unless_it_is_named(name: str, files: Files, tmp_path: Path):
    parts = {
        "models_": [CALLABLES[name](), LogisticRegression()],
        "attribute_models_": [[Ridge()], [Ridge()]],
    }
    path = written(tmp_path / "model", files["parity"] | skops_entries(parts))
    refused(path, r"which may run code\. If you trust its author, pass load\(path, trusted=\[")


def test_a_class_that_the_user_names_is_loaded(files: Files, tmp_path: Path):
    parts = {
        "models_": [FunctionTransformer(np.log1p), Foreign()],
        "attribute_models_": [[Ridge()], [Ridge()]],
    }
    entries = files["parity"] | skops_entries(parts | {"estimator": LogisticRegression()})
    entries |= {HEADER: changed(files["parity"], ["parameters", "attribute_estimator"], None)}
    path = written(tmp_path / "model", entries)
    names = ["numpy.log1p", f"{Foreign.__module__}.Foreign"]
    first, second = load(path, trusted=names).models_
    assert first.func is np.log1p
    assert second.a == 1
    with pytest.raises(ValueError, match=r"it holds 'numpy\.log1p', which"):
        load(path, trusted=names[1:])


# Schemas that no save has written


def with_schema(change: Callable[[Any], Any], files: Files) -> Entries:
    schema = json.loads(files["parity"][SCHEMA])
    change(schema)
    return files["parity"] | {SCHEMA: json.dumps(schema).encode()}


def node(loader: str, name: str, **content: Any) -> dict[str, Any]:
    module, _, cls = name.rpartition(".")
    return {"__loader__": loader, "__module__": module, "__class__": cls, **content}


TEXT = node("JsonNode", "builtins.str", content='"import os"')


def put(value: Any) -> Callable[[Any], None]:
    """Return a change that puts a node in the place of the first model."""
    return lambda schema: schema["content"]["models_"]["content"].__setitem__(0, value)


def shared(schema: Any) -> None:
    """A list that holds itself."""
    put(
        node(
            "ListNode",
            "builtins.list",
            __id__=7,
            content=[node("ListNode", "builtins.list", __id__=7)],
        )
    )(schema)


def doubled(schema: Any) -> None:
    """Sixty lists, each of the one before twice: 2^60 texts if it is walked."""
    value = node("ListNode", "builtins.list", __id__=1, content=[TEXT])
    for place in range(2, 62):
        again = node("ListNode", "builtins.list", __id__=place - 1)
        value = node("ListNode", "builtins.list", __id__=place, content=[value, again])
    put(value)(schema)


def nested(schema: Any) -> None:
    value = TEXT
    for _ in range(300):
        value = node("ListNode", "builtins.list", content=[value])
    put(value)(schema)


def renamed(schema: Any) -> None:
    schema["content"] = {
        "predict" if name == "models_" else name: part for name, part in schema["content"].items()
    }


SCHEMAS: dict[str, Callable[[Any], None]] = {
    "a list that holds itself": shared,
    "sixty lists of lists": doubled,
    "three hundred nested lists": nested,
    "a list that is a class": put(node("ListNode", "lightgbm.basic.Booster", content=[TEXT])),
    "a constructor with arguments": put(
        node(
            "ConstructorFromReduceNode",
            "lightgbm.basic.Booster",
            content=node("TupleNode", "builtins.tuple"),
        )
    ),
    "an array that is a class": put(
        node("NdArrayNode", "subprocess.Popen", type="numpy", file="0.npy")
    ),
    "a module that is not loaded": put(node("ObjectNode", "antigravity.Anything")),
    "a cached node": put(node("CachedNode", "builtins.list")),
    "an unknown loader": put(node("CodeNode", "builtins.list", content=[])),
    "a node without a class": put({"__loader__": "ListNode", "content": []}),
    "one array a thousand times": put(
        node(
            "ListNode",
            "builtins.list",
            content=[node("NdArrayNode", "numpy.ndarray", type="numpy", file=HEADER)] * 1000,
        )
    ),
    "an array that is missing": put(
        node("NdArrayNode", "numpy.ndarray", type="numpy", file="99.npy")
    ),
    "a sparse matrix": put(
        node("SparseMatrixNode", "scipy.sparse._csr.csr_matrix", type="scipy", file="0.npy")
    ),
    "a random generator of no kind": put(
        node(
            "RandomGeneratorNode",
            "numpy.random._generator.Generator",
            content={
                "bit_generator": node("DictNode", "builtins.dict", content={}),
                "seed_seq": TEXT,
            },
        )
    ),
    "a booster without trees": put(
        node(
            "ObjectNode",
            "lightgbm.basic.Booster",
            content=node(
                "DictNode",
                "builtins.dict",
                content={"_handle": node("JsonNode", "builtins.str", content="null")},
                key_types=node(
                    "ListNode", "builtins.list", content=[node("TypeNode", "builtins.str")]
                ),
            ),
        )
    ),
    "keys made by a function": put(
        node(
            "DictNode",
            "builtins.dict",
            content={"1": TEXT},
            key_types=node(
                "ListNode", "builtins.list", content=[node("TypeNode", "builtins.exec")]
            ),
        )
    ),
    "an old protocol": lambda schema: schema.__setitem__("protocol", 0),
    "a protocol to come": lambda schema: schema.__setitem__("protocol", 10**6),
    "a method in the place of a model": renamed,
    "a model too few": lambda schema: schema["content"]["models_"]["content"].pop(),
    "models that are text": lambda schema: schema["content"].__setitem__("models_", TEXT),
    "models of S that are text": lambda schema: schema["content"].__setitem__(
        "attribute_models_", TEXT
    ),
}


def npy(shape: str) -> bytes:
    """An array that claims to be of another shape than its two numbers."""
    header = (
        f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}".ljust(117).encode()
        + b"\n"
    )
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + bytes(16)


def saved_array(values: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, values)
    return buffer.getvalue()


ENTRIES = {
    "a larger array": ("0.npy", npy("(10000000000000,)")),
    "a negative shape": ("0.npy", npy("(-1,)")),
    "more columns": ("0.npy", npy("(2, 10000000)")),
    "a pickle": ("0.npy", saved_array(np.array([{"a": 1}], dtype=object))),
    "many parts": (SCHEMA, b"[" + b"[]," * 3_000_000 + b"[]]"),
    **{
        name: (name, b"")
        for name in (
            "../model.json",
            "/etc/passwd",
            "model.json.exe",
            "0.pkl",
            "a/0.npy",
            "0.npy\n",
        )
    },
    **{
        f"no JSON: {text[:9]!r} {len(text)}": (HEADER, text)
        for text in (
            b"[" * 100_000,
            b'{"kind":' * 100_000,
            b"",
            b"\xff",
            b"[1]",
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
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files["parity"].items():
            archive.writestr(name, content)
        with archive.open(WEIGHTS, "w") as entry:
            for _ in range(300):
                entry.write(bytes(2**20))
    (tmp_path / "model").write_bytes(bomb.getvalue())
    refused(tmp_path / "model", "compressed")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000  # kB


def test_many_entries_of_no_size_are_refused(files: Files, tmp_path: Path, monkeypatch: Any):
    monkeypatch.setattr("frhsic.persistence.MOST_ENTRIES", 100)
    refused(
        written(tmp_path / "model", files["parity"] | {f"{i}.bin": b"" for i in range(100, 201)}),
        "100 entries",
    )


def test_two_entries_of_one_name_are_refused(files: Files, tmp_path: Path):
    path = written(tmp_path / "model", files["parity"])
    with warnings.catch_warnings(action="ignore"), zipfile.ZipFile(path, "a") as archive:
        archive.writestr(HEADER, files["network"][HEADER])
    refused(path, "two entries")


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
        files["parity"] | {f"{i}.bin": bytes(10**5 if i == 50 else 0) for i in range(51)},
    )
    content = bytearray(path.read_bytes())
    last = content.rindex(b"PK\x01\x02")
    place = content.index(b"PK\x01\x02")
    while place < last:  # every entry says that it lies where the large one does
        name = content[place + 46 : place + 46 + 6]
        if name.endswith((b".bin", b".bi")):
            content[place + 16 : place + 28] = content[last + 16 : last + 28]
            content[place + 42 : place + 46] = content[last + 42 : last + 46]
        place = content.index(b"PK\x01\x02", place + 4)
    path.write_bytes(content)
    refused(path, "overlap")


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
    header = json.loads(entries[HEADER])
    owner = header
    for key in path[:-1]:
        owner = owner[key]
    owner[path[-1]] = value
    return json.dumps(header).encode()


SOLUTION = ["fitted", "solution_", "fields"]
FRONTIER = ["fitted", "frontier_", "fields"]
BLOCK = [*SOLUTION, "blocks", 0, "fields"]
TABLE = ["fitted", "feature_encoding_", "fields", "columns", 0, "fields"]
LAYERS = ["parameters", "encoder", "fields"]
NAN = {"class": "float", "fields": "nan"}
ARRAY = {"class": "array", "fields": {"dtype": "<f8", "shape": [2], "values": [1.0, 2.0]}}
HEADERS: dict[str, tuple[str, list[Any], Any]] = {
    "another kind": ("parity", ["kind"], "Path"),
    "NaN as a coefficient": (
        "parity",
        [*SOLUTION, "parameters", "fields", "values", 3],
        float("nan"),
    ),
    "NaN as a coefficient, as we write it": (
        "parity",
        [*SOLUTION, "parameters", "fields", "values", 3],
        NAN,
    ),
    "another shape": ("parity", [*SOLUTION, "parameters", "fields", "shape"], [1, 2, 3]),
    "fewer coefficients": ("parity", [*SOLUTION, "parameters"], ARRAY),
    "another family": ("parity", [*SOLUTION, "family"], "numbers"),
    "a scale of 0": ("parity", [*SOLUTION, "scale"], 0.0),
    "a basis of other functions": ("parity", [*BLOCK, "basis", "fields", "values"], ARRAY),
    "another attribute": ("parity", [*BLOCK, "attribute"], 3),
    "a condition of no rows": ("parity", [*BLOCK, "condition"], "none"),
    "blocks that are one": ("parity", [*SOLUTION, "blocks"], 1),
    "no solution": ("parity", ["fitted", "solution_"], None),
    "a place beyond the frontier": ("parity", ["fitted", "choice_", "fields", "position"], 400.0),
    "gaps that are numbers": (
        "parity",
        ["fitted", "choice_", "fields", "gaps"],
        {"class": "dict", "fields": {"a": 1}},
    ),
    "a frontier of another length": ("parity", [*FRONTIER, "performance", "fields", "auc"], ARRAY),
    "a class of no list": ("parity", ["fitted", "choice_", "class"], "Popen"),
    "a method in the place of data": ("parity", ["fitted", "predict"], 1),
    "an unknown parameter": ("parity", ["parameters", "estimator__C"], 3),
    "an aim of no kind": ("parity", ["parameters", "aim"], "all"),
    "a function that is not given": ("parity", ["parameters", "limit"], {"custom": "os.system"}),
    "labels of 10^8 letters": (
        "parity",
        ["fitted", "classes_", "fields"],
        {"dtype": "<U99999999", "shape": [2], "values": ["a", "b"]},
    ),
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
    "one label twice": ("network", ["fitted", "classes_", "fields", "values"], [1, 1]),
    "three labels": (
        "network",
        ["fitted", "classes_", "fields"],
        {"dtype": "<i8", "shape": [3], "values": [1, 2, 3]},
    ),
    "another number of columns": ("network", ["fitted", "n_features_in_"], 4),
    "a regressor": ("network", ["kind"], "FRHSICRegressor"),
    "a penalty of no kind": ("network", ["fitted", "penalty_"], {"class": "Penalty", "fields": {}}),
    "a foreign argument": ("network", ["fitted", "penalty_", "fields", "self"], 1),
    "no encoding": ("network", ["fitted"], {}),
}


def with_header(kind: str, place: list[Any], value: Any, files: Files) -> Entries:
    return files[kind] | {HEADER: changed(files[kind], place, value)}


def with_weights(change: Callable[[dict[str, torch.Tensor]], Any], files: Files) -> Entries:
    tensors = safetensors.torch.load(files["network"][WEIGHTS])
    change(tensors)
    return files["network"] | {WEIGHTS: safetensors.torch.save(tensors)}


TENSORS: dict[str, Callable[[dict[str, torch.Tensor]], Any]] = {
    "NaN": lambda tensors: tensors["encoder.0.weight"].fill_(float("nan")),
    "whole numbers": lambda tensors: tensors.update({"head.bias": tensors["head.bias"].long()}),
    "another shape": lambda tensors: tensors.update({"head.weight": torch.zeros(1, 9)}),
    "one too many": lambda tensors: tensors.update({"encoder.9.weight": torch.zeros(2)}),
    "one too few": lambda tensors: tensors.pop("encoder.0.bias"),
    "no head": lambda tensors: tensors.pop("head.bias"),
    "a state that no penalty has": lambda tensors: tensors.update(
        {"penalty.forward": torch.zeros(2)}
    ),
}


FIT = LogisticRegression().fit(X, y)


def with_models(files: Files, model: Any) -> Entries:
    """A closed form with another model of y, which loads if the model is not forged."""
    parts = {"models_": [model, model], "attribute_models_": [[Ridge()], [Ridge()]]}
    parts |= {"estimator": FIT, "attribute_estimator": Ridge()}
    return files["parity"] | skops_entries(parts)


def stacked(files: Files) -> Entries:
    """A stack that writes a text to a file, by the name of a method, when it predicts."""
    stack = StackingClassifier([("a", FIT)], cv="prefit").fit(X, y)
    stack.estimators_, stack.stack_method_ = [np.array(["text"])], ["tofile"]
    return with_models(files, stack)


def edited_arrays(entries: Entries, field: str, value: int) -> Entries:
    """The first node of every tree has another value."""
    changed = {}
    for name, content in entries.items():
        nodes = np.load(io.BytesIO(content)) if name.endswith(".npy") else None
        if nodes is not None and nodes.dtype.names and field in nodes.dtype.names:
            nodes[field][0] = value
            changed[name] = saved_array(nodes)
    assert changed
    return entries | changed


def boosted(files: Files, pattern: str, text: str) -> Entries:
    model = lightgbm.LGBMClassifier(n_estimators=2, num_leaves=4, n_jobs=1, verbose=-1).fit(X, y)
    entries = with_models(files, model)
    schema = entries[SCHEMA].decode()
    assert re.search(pattern, schema)
    return entries | {SCHEMA: re.sub(pattern, text, schema).encode()}


def xgboosted(files: Files, place: str, values: list[int]) -> Entries:
    """An XGBoost model whose first tree has other children or columns, or whose trees belong to
    other classes.
    """
    model = xgboost.XGBClassifier(n_estimators=2, max_depth=2, n_jobs=1).fit(X, y)
    content = json.loads(model.get_booster().save_raw("json"))
    trees = content["learner"]["gradient_booster"]["model"]
    owner = trees if place in trees else trees["trees"][0]
    owner[place] = [*values, *owner[place][len(values) :]]
    model.get_booster().load_model(bytearray(json.dumps(content), "utf-8"))
    return with_models(files, model)


def wide(files: Files) -> Entries:
    """A basis of no nodes and 4e8 functions, which is a file of 20 kB."""
    empty = {"class": "array", "fields": {"dtype": "<f8", "shape": [0], "values": []}}
    values = {"class": "array", "fields": {"dtype": "<f8", "shape": [0, 400_000_000], "values": []}}
    fields = {"starts": empty, "mass": empty, "values": values}
    return with_header(
        "parity", [*BLOCK, "basis"], {"class": "SensitiveBasis", "fields": fields}, files
    )


def names_of_weights(files: Files) -> Entries:
    header = json.dumps(
        {f"a{i}": {"dtype": "U8", "shape": [0], "data_offsets": [0, 0]} for i in range(30_000)}
    ).encode()
    return files["network"] | {WEIGHTS: len(header).to_bytes(8, "little") + header}


FOREST = RandomForestClassifier(2, max_depth=2, random_state=0).fit(X, y)
HISTOGRAMS = HistGradientBoostingClassifier(max_iter=2).fit(X, y)
FOUND: dict[str, Callable[[Files], Entries]] = {
    "the name of a method": stacked,
    "a type that is called": lambda files: with_models(
        files, make_pipeline(FunctionTransformer(str), FIT)
    ),
    "files that are read": lambda files: with_models(files, HashingVectorizer(input="filename")),
    "a million threads": lambda files: with_models(files, LogisticRegression(n_jobs=10**6)),
    "a tree without an end": lambda files: edited_arrays(
        with_models(files, FOREST), "left_child", 0
    ),
    "a child that is not there": lambda files: edited_arrays(
        with_models(files, FOREST), "right_child", 2**40
    ),
    "a column that is not there": lambda files: edited_arrays(
        with_models(files, FOREST), "feature", 2**40
    ),
    "a histogram tree without an end": lambda files: edited_arrays(
        with_models(files, HISTOGRAMS), "left", 0
    ),
    "2^31 leaves": lambda files: boosted(files, r"num_leaves=\d+", "num_leaves=2147483647"),
    "10^9 classes": lambda files: boosted(files, r"num_class=\d+", "num_class=1000000000"),
    "a booster without an end": lambda files: boosted(files, r"left_child=\S+", "left_child=0"),
    "a column that no booster has": lambda files: boosted(
        files, r"split_feature=\d+", "split_feature=1000000000"
    ),
    "trees read in threads": lambda files: boosted(files, "label_index=0", "tree_sizes=7"),
    "an XGBoost tree with a circle": lambda files: xgboosted(files, "left_children", [1, 1]),
    "an XGBoost tree that comes back to its root": lambda files: xgboosted(
        files, "left_children", [1, 0]
    ),
    "a child that XGBoost does not have": lambda files: xgboosted(files, "right_children", [10**6]),
    "a column that XGBoost does not have": lambda files: xgboosted(files, "split_indices", [10**6]),
    "a class that XGBoost does not have": lambda files: xgboosted(files, "tree_info", [10**6]),
    "a wide basis of no rows": wide,
    "many weights of no size": names_of_weights,
}


def test_models_that_are_not_forged_are_loaded(files: Files, tmp_path: Path):
    deep = xgboost.XGBClassifier(n_estimators=5, gamma=1, tree_method="exact", n_jobs=1).fit(X, y)
    three = xgboost.XGBClassifier(n_estimators=2, n_jobs=1).fit(X, np.arange(80) % 3)
    for i, model in enumerate([FIT, FOREST, HISTOGRAMS, deep, three]):
        loaded = load(written(tmp_path / str(i), with_models(files, model)))
        np.testing.assert_array_equal(loaded.models_[0].predict(X), model.predict(X))


FORGED: dict[str, Callable[[Files], Entries]] = {
    **{f"schema: {name}": partial(with_schema, change) for name, change in SCHEMAS.items()},
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
