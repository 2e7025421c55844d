"""Forge files of the library's own models, one value after the other, and count what comes of them.

`python tests/trust/forging.py STEP` takes each STEP-th forged file (1 if left out), loads it and
predicts in a process of its own, which may take 10 seconds of the processor and 1 GB. A file may be
refused, or predict; nothing else may happen.
"""

from __future__ import annotations

import io
import json
import os
import resource
import signal
import sys
import tempfile
import warnings
import zipfile
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import safetensors.numpy
import skops.io  # noqa: F401  # once, not in each process

from frhsic import (
    FRHSICClassifier,
    ParityClassifier,
    ParityCoupling,
    ParityEncoder,
    ParityRegressor,
    load,
)
from frhsic.persistence import ARRAYS_ENTRY, HEADER_ENTRY, file_bytes
from frhsic.training import MLP, Training

# Of the processor, and in all, so that a process that waits ends, too.
SECONDS = 10
PATIENCE = 200
BYTES = 2**30
OUTCOMES = ("refused", "raises", "predicts", "takes memory")
Entries = dict[str, bytes]
Samples = dict[str, tuple[Any, Callable[[Any], Any]]]
Case = tuple[str, Callable[[], Entries], Callable[[Any], Any]]

rng = np.random.default_rng(0)
S = rng.uniform(20, 60, 120)
X = pd.DataFrame(
    {
        "years": S + rng.normal(scale=9, size=120),
        "job": rng.choice(["cook", "clerk", "smith"], 120),
        "hours": np.where(rng.random(120) < 0.1, np.nan, rng.normal(size=120)),
    }
)
Y = (X["years"] / 10 + rng.normal(size=120) > 4).to_numpy()


def entries_of(content: bytes) -> Entries:
    """Return the entries of a file."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def archived(entries: Entries) -> bytes:
    """Return the file of some entries."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in entries.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def samples() -> Samples:
    """Return models of every kind, and what is asked of them."""
    settings: dict[str, Any] = {"cv": 2, "random_state": 0}
    small = {"encoder": MLP(hidden=(4,), size=3), "training": Training(epochs=1)}
    models: Samples = {
        "scores": (ParityClassifier(**settings), lambda model: model.predict_proba(X)),
        "ranks with S": (
            ParityRegressor(aim="rank", uses_sensitive=True, **settings),
            lambda model: model.predict(X, sensitive_features=S),
        ),
        "encoder": (ParityEncoder(prototypes=3, **settings), lambda model: model.transform(X)),
        "coupling": (
            ParityCoupling(**settings),
            lambda model: model.transform(X, sensitive_features=S).fillna(-1).to_numpy(),
        ),
        "network": (
            FRHSICClassifier(**small, random_state=0),
            lambda model: model.predict_proba(X),
        ),
    }
    with warnings.catch_warnings(action="ignore"):
        for name, (model, _) in models.items():
            y = X["years"] if name == "ranks with S" else Y
            model.fit(X, y, sensitive_features=S)
    return models


WRONG: list[Any] = [
    None,
    True,
    -1,
    10**12,
    2**70,
    -1e300,
    float("nan"),
    "/etc/passwd",
    [],
    [[], {"tuple": [1]}],
    {"dict": {"a": 1}},
    {"array": "0"},
    {"objects": ["U", ["a", "b"]]},
    {"objects": ["O", [[], 10**12]]},
    {"booster": "0.txt"},
    {"model": "0.txt"},
    {"frame": [["a", "datetime64[ns, /etc/passwd]", {"array": "0"}, None, None]]},
    {"Gap": {"value": 1.0, "low": 0.0, "high": 2.0}},
    {"MLP": {"hidden": {"tuple": [10**9]}, "size": 10**9}},
    {"Popen": {"args": "true"}},
    {"custom": ["encoder", "os.system"]},
]
"""What may stand in the place of any value."""


def paths(content: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the place of every value of JSON, but of a long list the first three."""
    pairs = content.items() if isinstance(content, dict) else enumerate(content[:3])
    for key, item in pairs:
        yield (*path, key)
        if isinstance(item, (dict, list)):
            yield from paths(item, (*path, key))


def with_value(entries: Entries, path: tuple[Any, ...], value: Any) -> Entries:
    """Return a file with another value at one place of its JSON."""
    header = json.loads(entries[HEADER_ENTRY])
    owner = header
    for key in path[:-1]:
        owner = owner[key]
    owner[path[-1]] = value
    return entries | {HEADER_ENTRY: json.dumps(header).encode()}


def with_arrays(entries: Entries, arrays: dict[str, np.ndarray]) -> Entries:
    """Return a file with other arrays."""
    return entries | {ARRAYS_ENTRY: safetensors.numpy.save(arrays)}


def changed_arrays(values: np.ndarray) -> Iterator[np.ndarray]:
    """Yield arrays of other numbers, types and shapes."""
    flat = values.ravel()
    for number in (-1, 7, 2**31 - 1, np.nan):
        other = flat.copy()
        with warnings.catch_warnings(action="ignore"):
            other[len(flat) // 2 :] = np.array(number).astype(values.dtype)
        yield other.reshape(values.shape)
    yield flat[:0]
    yield flat[:-1]
    yield np.concatenate([flat, flat])
    yield np.zeros((0, 2**16 + 1))
    yield values.astype(np.float32)
    yield np.full(values.shape, 1e308 if values.dtype.kind == "f" else 3)


def changed_texts(text: str) -> Iterator[str]:
    """Yield texts of a booster with other numbers, names or lines."""
    lines = text.split("\n")
    for place, line in enumerate(lines[:40]):
        name, _, numbers = line.partition("=")
        words = numbers.split(" ")
        for other in ("-2000000", "2000000000", "1e400", "nan", "0.5", "x", "1_0", "١"):
            changed = f"{name}={' '.join([other, *words[1:]])}"
            yield "\n".join([*lines[:place], changed, *lines[place + 1 :]])
        yield "\n".join([*lines[:place], *lines[place + 1 :]])
        yield "\n".join([*lines[: place + 1], f"{name}=0", "machines=a", *lines[place + 1 :]])


def cases(models: Samples) -> Iterator[Case]:
    """Yield forged files: what is forged, what makes the entries, what is asked of the model."""
    for sample, (model, ask) in models.items():
        entries = entries_of(file_bytes(model))
        for path in paths(json.loads(entries[HEADER_ENTRY])):
            for wrong in WRONG:
                yield f"{sample} {path}: {wrong}", partial(with_value, entries, path, wrong), ask
        arrays = safetensors.numpy.load(entries[ARRAYS_ENTRY])
        for place, values in arrays.items():
            for number, other in enumerate(changed_arrays(values)):
                make = partial(with_arrays, entries, arrays | {place: other})
                yield f"{sample} array {place}: {number}", make, ask
        for name in entries.keys() - {HEADER_ENTRY, ARRAYS_ENTRY}:
            for number, text in enumerate(changed_texts(entries[name].decode())):
                make = partial(entries.__or__, {name: text.encode()})
                yield f"{sample} {name}: {number}", make, ask


def outcome(entries: Entries, ask: Callable[[Any], Any]) -> str:
    """Return what comes of a forged file."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(action="ignore"):
        path = Path(folder, "model")
        path.write_bytes(archived(entries))
        try:
            model = load(path)
        except ValueError as error:
            return "takes memory" if isinstance(error.__cause__, MemoryError) else "refused"
        try:
            ask(model)
        except MemoryError:
            return "takes memory"
        except Exception:
            return "raises"
    return "predicts"


def in_a_process(entries: Entries, ask: Callable[[Any], Any]) -> str:
    """Return the outcome in a process that may take 10 seconds of the processor and 1 GB more than
    this one.
    """
    child = os.fork()
    if child == 0:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        most = pages * resource.getpagesize() + BYTES
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
        signal.alarm(PATIENCE)
        code = 99
        try:
            code = OUTCOMES.index(outcome(entries, ask))
        finally:
            os._exit(code)
    status = os.waitpid(child, 0)[1]
    if os.WIFEXITED(status) and os.WEXITSTATUS(status) < len(OUTCOMES):
        return OUTCOMES[os.WEXITSTATUS(status)]
    return f"ends with status {status}"


def children_seconds() -> float:
    """Return the processor time of the processes that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def main(step: int) -> None:
    counts: dict[str, int] = {}
    slowest = 0.0
    for what, make, ask in islice(cases(samples()), 0, None, step):
        start = children_seconds()
        result = in_a_process(make(), ask)
        slowest = max(slowest, children_seconds() - start)
        counts[result] = counts.get(result, 0) + 1
        if result not in OUTCOMES[:3]:
            sys.stderr.write(f"{what[:300]} {result}\n")
    sys.stdout.write(json.dumps(counts | {"seconds of the slowest": round(slowest, 2)}) + "\n")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1)
