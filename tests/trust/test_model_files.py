"""Damaged and crafted model files: a ValueError, or a model that predicts finite numbers, in little memory.

A crafted file has a right checksum, so that the schema of the header is what refuses it.
"""

from __future__ import annotations

import copy
import json
import math
import os
import random
import resource
import traceback
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from counting import Counts
from safetensors.torch import load_file, save_file
from torch import Tensor

from estimator_samples import QUICK, biased, people
from frhsic import load, save
from frhsic.estimators import FRHSICClassifier, FRHSICRegressor, ParityEncoder, describe
from frhsic.estimators.header import InvalidHeaderError, check_tensors, number
from frhsic.estimators.persistence import CURVES, _checksum

SMALL = {**QUICK, "epochs": 2, "hidden_layer_sizes": (4,), "representation_size": 3}
X, y, s = biased(40)

Header = dict[str, Any]
Tensors = dict[str, Tensor]
Outcomes = dict[str, int]


def signed(path: Path, header: Header, tensors: Tensors) -> None:
    """Write a file with a right checksum."""
    header = dict(header)
    try:
        header["checksum"] = _checksum(header, tensors)
    except (TypeError, ValueError, RecursionError):
        header["checksum"] = ""
    save_file(tensors, path, {"frhsic": json.dumps(header)})


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("models")
    frame, paid, age = people(60)
    models = {
        "classifier": FRHSICClassifier(**SMALL).fit(X, y, sensitive_features=s),
        "regressor": FRHSICRegressor("adv", **SMALL).fit(X, X[:, 1], sensitive_features=s),
        "encoder": ParityEncoder("mmd", **SMALL).fit(X, sensitive_features=s),
        "ensemble": FRHSICClassifier("hsic", ensemble=2, **SMALL).fit(X, y, sensitive_features=s),
        "frame": FRHSICClassifier("reg-gdp", **SMALL).fit(frame, np.where(paid, "a", "b"), sensitive_features=age),
    }
    for name, model in models.items():
        save(model, folder / name)
    return [folder / name for name in models]


def refused_or_harmless(path: Path, rows: Any = X) -> bool:
    """Return whether a file was refused; fail if it is neither refused by a ValueError nor usable."""
    try:
        model = load(path)
    except ValueError as error:
        if len(str(error)) > 3000:
            pytest.fail("the message is too long")
        return True
    try:
        with warnings.catch_warnings(action="ignore"):  # of names that a model has lost
            result = model.transform(rows)
    except ValueError:  # a model of other columns
        return False
    except TypeError as error:
        if not str(error).startswith("X is an array"):  # a model of a table
            raise
        return False
    assert np.isfinite(result).all()
    return False


def flipped(data: bytes, rng: random.Random) -> bytes:
    """Change some bytes, cut, repeat or insert some."""
    changed = bytearray(data)
    kind = rng.randrange(5)
    at = rng.randrange(len(changed))
    if kind == 0:
        for _ in range(rng.choice([1, 1, 4, 40])):
            changed[rng.randrange(len(changed))] = rng.randrange(256)
    elif kind == 1:
        del changed[at:]
    elif kind == 2:
        del changed[at : at + rng.choice([1, 8, 100])]
    elif kind == 3:
        changed[at:at] = rng.randbytes(rng.choice([1, 8, 100]))
    else:
        changed[at % 8] = rng.randrange(256)  # the length of safetensors' own header
    return bytes(changed)


ODD: list[Any] = [
    None, True, -1, 0, 1, 2**31, 2**63, 2**70, 10**400, 1e308, -1e308, 1e-320, float("nan"), math.inf, "", "x" * 2000,
    "__class__", "\x00", "predict", [], {}, [[]], [0], {"kernel": "Gaussian", "arguments": {"bandwidth": 0}},
    {"penalty": "HSIC", "arguments": {"nothing": 1}}, {"custom": "os.system"}, {"table": []}, [1] * 5000,
]  # fmt: skip


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner: list[tuple[Any, ...]] = [path] if path else []
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in pairs:
        inner += places(item, (*path, key))
    return inner


def mutated(header: Header, rng: random.Random) -> Header:
    """Replace, remove or add an entry anywhere in a header."""
    changed = copy.deepcopy(header)
    for _ in range(rng.choice([1, 1, 2, 4])):
        path = rng.choice(places(changed))
        owner: Any = changed
        for key in path[:-1]:
            owner = owner[key]
        kind = rng.randrange(4)
        if kind == 0 and isinstance(owner, dict):
            owner[rng.choice(["predict", "fit", "__dict__", "extra_", "penalty__x"])] = rng.choice(ODD)
        elif kind == 1:
            del owner[path[-1]]
        elif kind == 2 and isinstance(owner[path[-1]], (int, float)) and not isinstance(owner[path[-1]], bool):
            owner[path[-1]] = owner[path[-1]] * rng.choice([-1, 2, 1000]) + rng.choice([0, 1])
        else:
            owner[path[-1]] = copy.deepcopy(rng.choice(ODD))
    return changed


def mutated_tensors(tensors: Tensors, rng: random.Random) -> Tensors:
    changed = dict(tensors)
    name = rng.choice(sorted(changed))
    values = changed[name]
    kind = rng.randrange(6)
    if not values.is_floating_point() and values.numel() and kind == 3:
        flat = values.clone().reshape(-1)
        flat[rng.randrange(len(flat))] = rng.choice([0, -1, 1]) if flat.dtype == torch.bool else rng.choice([-1, 0, 99])
        changed[name] = flat.reshape(values.shape)
    elif kind == 0:
        del changed[name]
    elif kind == 1:
        changed[name] = torch.zeros(*values.shape, 2)
    elif kind == 2:
        changed[rng.choice(["encoder.9.weight", "predict", "penalty.x", "head.x.y"])] = values
    elif kind == 3:
        changed[name] = torch.full_like(values, float("nan")) if values.is_floating_point() else values + 1
    elif kind == 4:
        changed[name] = values.to(rng.choice([torch.int8, torch.bool, torch.float16, torch.float64]))
    else:
        changed[name] = values.reshape(-1)[:0]
    return {key: value.contiguous().clone() for key, value in changed.items()}


def attack(files: list[Path], path: Path, number: int) -> bool:
    rng = random.Random(number)
    file = files[number % len(files)]
    rows = people(20)[0] if file.name == "frame" else X
    if number % 3 == 0:
        path.write_bytes(flipped(file.read_bytes(), rng))
    elif number % 3 == 1:
        signed(path, mutated(describe(file), rng), load_file(file))
    else:
        signed(path, describe(file), mutated_tensors(load_file(file), rng))
    return refused_or_harmless(path, rows)


def test_mutated_files_are_refused_or_harmless(files: list[Path], tmp_path: Path):
    refused = sum(attack(files, tmp_path / "model", number) for number in range(300))
    assert refused > 200  # the others changed what a model is, such as its title or a weight, and are models


def attacks(files: list[Path], path: Path, numbers: Iterable[int]) -> Outcomes:
    refused = [attack(files, path, number) for number in numbers]
    return {"refused": sum(refused), "harmless": len(refused) - sum(refused)}


def apart(task: Callable[[], Outcomes]) -> Outcomes:
    """Do a task in a forked process: a crash of a library's parser is a failure too, and its memory is its own."""
    reader, writer = os.pipe()
    number = os.fork()
    if number == 0:
        try:
            answer = json.dumps(task())
        except BaseException:
            answer = json.dumps(traceback.format_exc()[-3000:])
        with open(writer, "w") as stream:
            stream.write(answer)
        os._exit(0)
    os.close(writer)
    with open(reader) as stream:
        answer = stream.read()
    _, status, usage = os.wait4(number, 0)
    assert status == 0, f"the process ended with status {status}"
    outcomes = json.loads(answer)
    assert isinstance(outcomes, dict), outcomes
    return {**outcomes, "peak MB": round(usage.ru_maxrss / 1024)}


@pytest.mark.slow
@pytest.mark.parametrize("start", range(0, 5000, 500))
def test_five_thousand_mutated_files_are_refused_or_harmless_within_a_gigabyte(
    start: int, files: list[Path], tmp_path: Path, counts: Counts
):
    if counts.has("model files", "mutated", f"from {start:4}"):
        pytest.skip("counted already")
    outcomes = apart(lambda: attacks(files, tmp_path / "model", range(start, start + 500)))
    assert outcomes["peak MB"] < 1024
    counts.put("model files", "mutated", f"from {start:4}", outcomes)


def put(header: Header, *path: Any) -> Header:
    """Return a header with the last of `path` at the place that the others name."""
    changed = copy.deepcopy(header)
    owner: Any = changed
    for key in path[:-2]:
        owner = owner[key]
    owner[path[-2]] = path[-1]
    return changed


def nested(depth: int) -> dict[str, Any]:
    kernel: dict[str, Any] = {"kernel": "Linear", "arguments": {}}
    for _ in range(depth):
        kernel = {"kernel": "Multiple", "arguments": {"factor": 1.0, "kernel": kernel}}
    return kernel


CRAFTED: dict[str, Callable[[Header], Header]] = {
    "3.8 gigabytes of layers": lambda h: put(h, "architecture", "hidden", [31_000, 31_000]),
    "a huge bottleneck": lambda h: put(put(h, "architecture", "bottleneck", True), "architecture", "head", [30_000, 1]),
    "300,000 layers": lambda h: put(h, "architecture", "hidden", [1] * 300_000),
    "1,000 layers": lambda h: put(h, "architecture", "hidden", [1] * 1000),
    "a head of 10^12": lambda h: put(h, "architecture", "head", [10**6, 10**6]),
    "more columns": lambda h: put(h, "architecture", "columns", 10**7),
    "a NaN scale": lambda h: put(h, "learned", "feature_encoding_", "table", 0, "high", float("nan")),
    "an infinite scale": lambda h: put(h, "learned", "feature_encoding_", "table", 0, "high", float("inf")),
    "a scale turned round": lambda h: put(h, "learned", "feature_encoding_", "table", 0, "low", 1e9),
    "predict": lambda h: put(h, "learned", "predict", 1),
    "transform": lambda h: put(h, "learned", "transform", None),
    "__class__": lambda h: put(h, "learned", "__class__", "x"),
    "huge labels": lambda h: put(h, "learned", "classes_", {"dtype": "<U99999999", "values": ["a", "b"]}),
    "labels without a type": lambda h: put(h, "learned", "classes_", {"dtype": "V9", "values": [0, 1]}),
    "one label twice": lambda h: put(h, "learned", "classes_", {"dtype": "<i8", "values": [1, 1]}),
    "labels that are not numbers": lambda h: put(h, "learned", "classes_", {"dtype": "<i8", "values": ["a", "b"]}),
    "deep kernels": lambda h: put(h, "penalty", {"penalty": "HSIC", "arguments": {"kernel_z": nested(100)}}),
    "an unknown penalty": lambda h: put(h, "penalty", {"penalty": "Penalty", "arguments": {}}),
    "a penalty without arguments": lambda h: put(h, "penalty", {"penalty": "HSIC"}),
    "arguments that are a list": lambda h: put(h, "penalty", {"penalty": "HSIC", "arguments": [1]}),
    "a foreign argument": lambda h: put(h, "penalty", {"penalty": "HSIC", "arguments": {"self": 1}}),
    "a foreign parameter": lambda h: put(h, "parameters", "penalty__head_weight", 3),
    "another estimator": lambda h: put(h, "estimator", "Path"),
    "a regressor": lambda h: put(h, "estimator", "FRHSICRegressor"),
    "versions that are text": lambda h: put(h, "versions", "1"),
    "a parameter is missing": lambda h: put(h, "parameters", {"penalty": "hsic"}),
    "no learned": lambda h: {key: value for key, value in h.items() if key != "learned"},
    "another entry": lambda h: {**h, "code": "import os"},
}  # fmt: skip


def test_a_scale_whose_range_overflows_is_refused_or_harmless(files: list[Path], tmp_path: Path):
    header = describe(files[0])
    for name, value in (("low", -1.7e308), ("high", 1.7e308)):
        header = put(header, "learned", "feature_encoding_", "table", 0, name, value)
    signed(tmp_path / "model", header, load_file(files[0]))
    refused_or_harmless(tmp_path / "model")


@pytest.mark.parametrize("name", CRAFTED)
def test_a_crafted_header_is_refused(name: str, files: list[Path], tmp_path: Path):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    signed(tmp_path / "model", CRAFTED[name](describe(files[0])), load_file(files[0]))
    with pytest.raises(ValueError, match="model"):
        load(tmp_path / "model")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300_000  # kB


def test_every_odd_value_at_every_place_of_the_top_is_refused_or_harmless(files: list[Path], tmp_path: Path):
    header, tensors = describe(files[0]), load_file(files[0])
    tops = [place for place in places(header) if len(place) == 1 and place != ("checksum",)]
    count = 0
    for top in tops:
        for odd in ODD:
            signed(tmp_path / "model", put(header, *top, odd), tensors)
            refused_or_harmless(tmp_path / "model")
            count += 1
    assert count == 6 * len(ODD)


def test_a_wide_bottleneck_of_an_encoder_of_one_s_own_is_refused(files: list[Path]):
    header = put(put(describe(files[0]), "architecture", "bottleneck", True), "architecture", "encoder", "Own")
    tensors = {name: values for name, values in load_file(files[0]).items() if not name.startswith("encoder.")}
    with pytest.raises(InvalidHeaderError, match="the bottleneck is wider than what the file holds of the encoder"):
        check_tensors(header, tensors, CURVES)


@pytest.mark.parametrize("value", [True, "1", 0.0, math.inf, math.nan])
def test_a_number_of_a_header_is_finite_and_above_its_limit(value: Any):
    check = number(0.0)
    check(0.5, "weight")
    with pytest.raises(InvalidHeaderError, match=r"weight is .*; it must be a finite number above 0.0"):
        check(value, "weight")
