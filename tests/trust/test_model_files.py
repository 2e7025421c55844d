"""Forged and damaged model files: each is refused or predicts, runs no code, reads and writes no
other file, and takes little memory.
"""

from __future__ import annotations

import io
import json
import os
import resource
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from functools import partial
from itertools import islice
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import safetensors.numpy
import skops.io
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import StackingClassifier
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.multioutput import ClassifierChain
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, LabelEncoder
from sklearn.utils._testing import assert_run_python_script_without_output as run_script

from frhsic import load
from frhsic.persistence import ARRAYS_ENTRY, HEADER_ENTRY, file_bytes
from frhsic.persistence.boosters import checked_text
from trust.forging import OUTCOMES, Entries, Samples, archived, cases, entries_of, outcome, samples
from trust.forging import with_value as with_path

Files = dict[str, Entries]
# Where models are in their files.
SCORES = ("model", "ParityClassifier")
COUPLING = ("model", "ParityCoupling")
NETWORK = ("model", "FRHSICClassifier")


@pytest.fixture(scope="module")
def models() -> Samples:
    return samples()


@pytest.fixture(scope="module")
def files(models: Samples) -> Files:
    return {name: entries_of(file_bytes(model)) for name, (model, _) in models.items()}


def refused(path: Path, match: str = "model", **given: Any) -> None:
    """A file is a ValueError, after little time and memory."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.perf_counter()
    with pytest.raises(ValueError, match=match) as error:
        load(path, **given)
    assert time.perf_counter() - start < 10
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 400_000  # kB
    assert len(str(error.value)) < 2500


def written(path: Path, entries: Entries) -> Path:
    path.write_bytes(archived(entries))
    return path


def with_model(files: Files, model: Any) -> Entries:
    """A file with a model of another library in the place of one of ours."""
    forged = with_path(files["scores"], (*SCORES, "models_"), [[{"model": "9.skops"}]])
    return forged | {"9.skops": skops.io.dumps(model)}


# Code in the place of a model


def chain(marker: Path) -> StackingClassifier:
    """A fitted stack of scikit-learn's own classes and functions that runs a script when it
    predicts: one transformer turns a number into the text of the script, and another runs it.
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


def test_a_chain_of_scikit_learn_that_runs_a_script_is_refused_whoever_is_trusted(
    files: Files, tmp_path: Path
):
    marker = tmp_path / "ran"
    content = skops.io.dumps(chain(marker))
    every = skops.io.get_untrusted_types(data=content)
    with pytest.raises(TypeError):  # the chain works: this is what skops leads to
        skops.io.loads(content, trusted=every).predict(pd.DataFrame({"a": [0]}))
    assert marker.exists()
    marker.unlink()
    path = written(tmp_path / "model", with_model(files, chain(marker)))
    refused(path, "a function, which is never saved", trusted=every)
    assert not marker.exists()


CALLABLES: dict[str, Any] = {
    "a function": FunctionTransformer(run_script),
    "a universal function": FunctionTransformer(np.log1p),
    "a builtin": FunctionTransformer(eval),
    "a partial": FunctionTransformer(partial(run_script, "")),
    "an operator": FunctionTransformer(attrgetter("a")),
    "a method": FunctionTransformer(LogisticRegression().fit),
    "an analyzer": HashingVectorizer(analyzer=print),
    "a function in a list": LogisticRegression(class_weight=[{"a": (len,)}]),
}


@pytest.mark.parametrize("name", CALLABLES)
def test_what_can_be_called_is_always_refused(name: str, files: Files, tmp_path: Path):
    entries = with_model(files, CALLABLES[name])
    names = skops.io.get_untrusted_types(data=entries["9.skops"])
    path = written(tmp_path / "model", entries)
    refused(path, "a function, which is never saved", trusted=names)


# The function of splines, the only one that a file may hold.
ASARRAY = {
    "__loader__": "FunctionNode",
    "__module__": "scipy.a.numpy._aliases",
    "__class__": "asarray",
}
METHOD = {"__loader__": "MethodNode", "content": {"func": "__call__", "obj": ASARRAY}}
SYSTEM = {"content": {"module_path": "os", "function": "system"}}
TEXT = {"__loader__": "JsonNode", "__module__": "builtins", "__class__": "str", "__id__": 5}
CRAFTED: dict[str, tuple[Any, str, int]] = {
    "a method of that name": (ASARRAY | METHOD, "a function", 2),
    "an old function of that name": (ASARRAY | SYSTEM, "a function", 0),
    "a name of two lines": (ASARRAY | SYSTEM | {"__module__": "a\nb"}, "a function", 0),
    "a cache folder by its number": (TEXT | {"content": '"/tmp/c"'}, "a cache folder", 2),
}


@pytest.mark.parametrize("name", CRAFTED)
def test_what_skops_reads_and_never_writes_is_refused(name: str, files: Files, tmp_path: Path):
    """Names that a node does not use, and two nodes of one number, which are one object."""
    node, match, protocol = CRAFTED[name]
    entries = with_model(files, make_pipeline(LogisticRegression()))
    inner = entries_of(entries["9.skops"])
    schema = json.loads(inner["schema.json"]) | {"protocol": protocol}
    attributes = schema["content"]["content"]
    # its number comes first
    nothing = {"memory": TEXT | {"content": "null"}}
    schema["content"]["content"] = {"verbose": node} | attributes | {"verbose": node} | nothing
    entries["9.skops"] = archived(inner | {"schema.json": json.dumps(schema).encode()})
    name = "scipy.a.numpy._aliases.asarray"
    trusted = [name, f"{name}.__call__", "os.system"]
    refused(written(tmp_path / "model", entries), match, trusted=trusted)


NAMES = SimpleImputer(strategy="constant", fill_value="/etc/passwd").fit([["a"]])
NAMED: dict[str, tuple[Any, str]] = {
    "a class of pathlib": (FunctionTransformer(Path), "pathlib.Path"),
    "a stack that calls any method": (chain(Path("ran")).set_params(), "function"),
    "a chain that calls any method": (ClassifierChain(LogisticRegression()), "ClassifierChain"),
    "a text that names files": (
        make_pipeline(NAMES, CountVectorizer(input="filename"), LogisticRegression()),
        "CountVectorizer",
    ),
    "a cache folder": (make_pipeline(LogisticRegression(), memory="/tmp/c"), "cache"),
}


@pytest.mark.parametrize("name", NAMED)
def test_what_reads_or_writes_files_is_refused_unless_it_is_named(
    name: str, files: Files, tmp_path: Path
):
    model, match = NAMED[name]
    refused(written(tmp_path / "model", with_model(files, model)), match)
    assert not Path("/tmp/c").exists()


# The archive


def zipped(**entries: bytes | str) -> bytes:
    """An archive of compressed entries."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, content in entries.items():
            archive.writestr(name, content)
    return buffer.getvalue()


ZEROS = bytes(3 * 10**8)


def bomb(entries: Entries) -> bytes:
    """300 MB of zeros, compressed."""
    return zipped(**entries | {ARRAYS_ENTRY: ZEROS})


def packed_model(entries: Entries, array: bytes = ZEROS, nodes: int = 1) -> bytes:
    """A model of skops with an array that unpacks to 300 MB, or with many nodes of one array."""
    forged = with_path(entries, (*COUPLING, "models_"), {"model": "9.skops"})
    schema = json.dumps([{"file": "array"}] * nodes)
    return archived(forged | {"9.skops": zipped(array=array, **{"schema.json": schema})})


def sparse_matrix(entries: Entries) -> bytes:
    """A model of skops with an archive in an archive."""
    return packed_model(entries, zipped(data=ZEROS))


def nodes_of_one_array(entries: Entries) -> bytes:
    return packed_model(entries, ZEROS[: 10**6], 1000)


def nodes(entries: Entries) -> bytes:
    return packed_model(entries, b"", 50_000)


def long_level(entries: Entries) -> bytes:
    """A level of 100,000 letters that a million rows have."""
    frame = (*COUPLING, "_table", "frame", 1)
    forged = with_path(entries, (*frame, 3), {"objects": ["O", ["a" * 10**5]]})
    arrays = safetensors.numpy.load(entries[ARRAYS_ENTRY])
    place = json.loads(entries[HEADER_ENTRY])["model"]["ParityCoupling"]["_table"]["frame"][1][2][
        "array"
    ]
    rows = safetensors.numpy.save(arrays | {place: np.zeros(10**6, np.int8)})
    return archived(forged | {ARRAYS_ENTRY: rows})


def resized(entries: Entries) -> bytes:
    """An entry that says another size."""
    content = bytearray(archived(entries))
    central = content.rindex(b"PK\x01\x02")
    content[central + 20 : central + 28] = (2**31).to_bytes(4, "little") * 2
    return bytes(content)


TOO_MUCH = r"takes more than .* bytes of memory. .* raise max_bytes"
ARCHIVES: dict[Callable[[Entries], bytes], str] = {
    bomb: "an entry is compressed",
    packed_model: TOO_MUCH,
    sparse_matrix: TOO_MUCH,
    nodes_of_one_array: TOO_MUCH,
    nodes: TOO_MUCH,
    long_level: TOO_MUCH,
    resized: TOO_MUCH,
    lambda entries: b"": "cannot be loaded",
    lambda entries: archived(entries)[:-1]: "cannot be loaded",
    lambda entries: archived({HEADER_ENTRY: entries[HEADER_ENTRY]}): "arrays.safetensors",
}


@pytest.mark.parametrize("make", ARCHIVES)
def test_a_forged_archive_is_refused(make: Any, files: Files, tmp_path: Path):
    (tmp_path / "model").write_bytes(make(files["coupling"]))
    refused(tmp_path / "model", ARCHIVES[make])


def test_a_pipe_and_a_folder_are_no_models(tmp_path: Path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", tmp_path, Path("/dev/zero")):
        refused(path, "a folder, a pipe or a device")
    with pytest.raises(FileNotFoundError, match="there is no saved model"):
        load(tmp_path / "nothing")


# Values


def weights(shape: list[int], dtype: str = "F64") -> bytes:
    """Arrays that claim to be of another shape than their two numbers."""
    header = {"0": {"dtype": dtype, "shape": shape, "data_offsets": [0, 16]}}
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + bytes(16)


def nested(depth: int) -> Any:
    value: Any = []
    for _ in range(depth):
        value = [value]
    return value


def many_texts(count: int, longest: int) -> Any:
    """Arrays of text of which one is long and the others are empty."""
    texts = ["a" * longest] + [""] * 4000
    return [{"objects": ["U", texts]}] * count


CLASSES = (*SCORES, "classes_")
ENGINE = (*SCORES, "engine_", "Engine")
SCALE = (*SCORES, "solution_", "Solution", "units", "Units", "scale")
LAYERS = (*NETWORK, "encoder", "MLP", "hidden")
VALUES: dict[str, tuple[str, tuple[Any, ...], Any]] = {
    "200 arrays of text": ("scores", CLASSES, many_texts(200, 4000)),
    "text as long as its longest": ("scores", CLASSES, many_texts(1, 10**5)[0]),
    "4 million lists in lists": ("scores", (*SCORES, "folds_"), [[[]]] * 4_000_000),
    "3 million texts": ("scores", (*SCORES, "folds_"), ["ab"] * 3_000_000),
    "numbers with one hash as keys": (
        "scores",
        (*SCORES, "weights"),
        [[(2**61 - 1) * i, 0] for i in range(60_000)],
    ),
    "200,000 rows of a proof": ("scores", ("proof", "dict", "rows"), [0] * 200_000),
    "text of text": ("scores", CLASSES, {"objects": ["U", [["a"], ["b"]]]}),
    "10,000 nested lists": ("scores", CLASSES, nested(10_000)),
    "a class of no list": ("scores", CLASSES, {"Popen": {"args": "true"}}),
    "a field of another type": (
        "scores",
        (*SCORES, "choice_", "Choice", "gaps"),
        {"dict": {"age": 1}},
    ),
    "a method in the place of data": ("scores", (*SCORES, "predict"), 1),
    "an array twice": ("scores", (*ENGINE, "shares"), {"array": "0"}),
    "an unknown parameter": ("scores", (*SCORES, "estimator__C"), 3),
    "no parameters": ("scores", SCORES, {}),
    "a scale of 1e18": ("scores", SCALE, 1e18),
    "a place beyond the frontier": (
        "scores",
        (*SCORES, "choice_", "Choice", "position"),
        400,
    ),
    "gigabytes of layers": ("network", LAYERS, {"tuple": [10**6, 10**6]}),
    "300,000 layers": ("network", LAYERS, {"tuple": [1] * 300_000}),
    "a wide representation": ("network", (*NETWORK, "representation_size_"), 10**9),
    "a class that has no file": ("network", ("model",), {"Training": {}}),
    "a class of Python": ("network", ("model",), {"Path": {}}),
    "a time zone that is a file": (
        "coupling",
        (*COUPLING, "_table", "frame", 0, 1),
        "datetime64[ns, /etc/passwd]",
    ),
    "a column of 10^8 letters": ("coupling", (*COUPLING, "_table", "frame", 0, 1), "U99999999"),
}
COLUMNS = b"num_tree_per_iteration=1\nmax_feature_idx=17000000\n" + bytes(18 * 10**6)
LEAVES = b"num_tree_per_iteration=1\nmax_feature_idx=0\nTree=0\nleaf_value=" + b"00 " * 6_000_000
RAW: dict[str, tuple[str, bytes]] = {
    "a booster of 17 million columns": ("0.txt", COLUMNS),
    "a booster of 6 million leaves": ("0.txt", LEAVES),
    "a larger array": (ARRAYS_ENTRY, weights([10**13])),
    "numbers of no type": (ARRAYS_ENTRY, weights([2], "O64")),
    "names of 2^60 bytes": (ARRAYS_ENTRY, (2**60).to_bytes(8, "little")),
    "a pickle": (ARRAYS_ENTRY, b"\x80\x04cos\nsystem\n"),
    "an array that is empty in one direction": (
        ARRAYS_ENTRY,
        safetensors.numpy.save({"0": np.zeros((0, 10**9), np.int8)}),
    ),
    "many arrays without numbers": (
        ARRAYS_ENTRY,
        safetensors.numpy.save({str(i): np.zeros(0) for i in range(40_000)}),
    ),
    "many brackets": (HEADER_ENTRY, b"[" * 10**6),
    "many lists": (HEADER_ENTRY, b"[" + b"[]," * 10**6 + b"[]]"),
    "a long number": (HEADER_ENTRY, b"1" * 10_000),
    "no text": (HEADER_ENTRY, b"\xff"),
}


@pytest.mark.parametrize("name", [*VALUES, *RAW])
def test_a_forged_value_is_refused(name: str, files: Files, tmp_path: Path):
    if name in RAW:
        forged = files["scores"] | dict([RAW[name]])
    else:
        kind, path, value = VALUES[name]
        sample = files[kind]
        header = json.loads(sample[HEADER_ENTRY])
        owner = header
        for key in path[:-1]:
            owner = owner[key]
        owner[path[-1]] = "VALUE"
        text = json.dumps(header)
        forged = sample | {HEADER_ENTRY: text.replace('"VALUE"', as_json(value)).encode()}
    refused(written(tmp_path / "model", forged))


def as_json(value: Any) -> str:
    """Return JSON, also of lists that are nested too deeply for Python's own writer."""
    depth = 0
    while isinstance(value, list) and len(value) == 1 and isinstance(value[0], list):
        value = value[0]
        depth += 1
    return "[" * depth + json.dumps(value) + "]" * depth


def test_more_memory_can_be_allowed(files: Files, tmp_path: Path):
    path = written(tmp_path / "model", files["scores"])
    refused(path, r"takes more than 1,000 bytes of memory.*--max-bytes", max_bytes=1000)
    load(path, max_bytes=10**9)


def test_threads_are_at_most_those_of_the_machine(files: Files, tmp_path: Path):
    forged = with_path(files["scores"], (*SCORES, "n_jobs"), 10**6)
    assert load(written(tmp_path / "model", forged)).n_jobs == os.cpu_count()


# The text of LightGBM

TREES = """tree
num_tree_per_iteration=1
max_feature_idx=1
feature_names=a b

Tree=0
num_leaves=3
num_cat=1
split_feature=0 1
threshold=0.5 0
decision_type=2 1
left_child=-1 -2
right_child=1 -3
leaf_value=0.1 -0.2 inf-
cat_boundaries=0 1
cat_threshold=1
shrinkage=0.1

end of trees
machines=a
""".replace("inf-", "0.3")


def test_a_text_of_lightgbm_keeps_what_a_prediction_needs():
    import lightgbm

    rows = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0]])
    text = checked_text(TREES)
    assert "machines" not in text
    assert checked_text(text) == text
    booster = lightgbm.Booster(model_str=text)
    assert booster.predict(rows).tolist() == [0.1, -0.2, 0.3]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("num_tree_per_iteration=1", "num_tree_per_iteration=2"),
        ("num_tree_per_iteration=1", "num_tree_per_iteration=0"),
        ("max_feature_idx=1", "max_feature_idx=3"),
        ("num_leaves=3", "num_leaves=2000000000"),
        ("num_leaves=3", "num_leaves=0"),
        ("num_cat=1", "num_cat=0"),
        ("split_feature=0 1", "split_feature=0 2"),
        ("split_feature=0 1", "split_feature=0 -1"),
        ("threshold=0.5 0", "threshold=0.5 1"),
        ("decision_type=2 1", "decision_type=12 1"),
        ("decision_type=2 1", "decision_type=1.5 1"),
        ("left_child=-1 -2", "left_child=0 -2"),
        ("left_child=-1 -2", "left_child=-1 -1"),
        ("right_child=1 -3", "right_child=1"),
        ("leaf_value=0.1", "leaf_value=1e400"),
        ("leaf_value=0.1", "leaf_value=0.1\t"),
        ("leaf_value=0.1", "leaf_value=nan"),
        ("cat_boundaries=0 1", "cat_boundaries=0 7"),
        ("cat_boundaries=0 1", "cat_boundaries=1 1"),
        ("cat_threshold=1", "cat_threshold=4294967296"),
        ("leaf_value", "leaves"),
    ],
)
def test_a_number_that_leads_nowhere_is_refused(old: str, new: str):
    assert old in TREES
    with pytest.raises((ValueError, KeyError)):
        checked_text(TREES.replace(old, new))


# Every value in turn, and single bits


def test_a_sample_of_forged_values_is_refused_or_predicts(models: Samples):
    """The slow test does it for more of them, each in a process."""
    counts = dict.fromkeys(OUTCOMES, 0)
    for _, make, ask in islice(cases(models), 11, None, 400):
        counts[outcome(make(), ask)] += 1
    assert counts["takes memory"] == 0
    assert counts["refused"] > 50
    assert counts["refused"] > 10 * counts["raises"]
    assert counts["predicts"] > 0


@pytest.mark.slow
def test_no_forged_value_ends_the_process_or_takes_long_or_much():
    """A process for each, with 10 seconds of the processor and 1 GB."""
    program = Path(__file__).with_name("forging.py")
    folders = os.pathsep.join(path for path in sys.path if path)
    settings = {**os.environ, "PYTHONPATH": folders, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, str(program), "10"]
    done = subprocess.run(command, env=settings, capture_output=True, text=True, check=True)
    counts = json.loads(done.stdout.splitlines()[-1])
    assert set(counts) <= {*OUTCOMES[:3], "seconds of the slowest"}, done.stderr
    assert counts["refused"] > 1000


def flipped(sample: Any, count: int, folder: Path) -> None:
    model, ask = sample
    content = file_bytes(model)
    expected = ask(model)
    rng = np.random.default_rng(0)
    for place in rng.integers(0, 8 * len(content), count):
        damaged = bytearray(content)
        damaged[place // 8] ^= 1 << (place % 8)
        (folder / "model").write_bytes(damaged)
        try:
            again = load(folder / "model")
        except ValueError:
            continue
        np.testing.assert_array_equal(ask(again), expected)


KINDS = ["scores", "ranks with S", "encoder", "coupling", "network"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_with_another_bit_is_refused_or_predicts_the_same(
    kind: str, models: Samples, tmp_path: Path
):
    flipped(models[kind], 50, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_10_000_files_with_another_bit_are_refused_or_predict_the_same(
    kind: str, models: Samples, tmp_path: Path
):
    flipped(models[kind], 2_000, tmp_path)
