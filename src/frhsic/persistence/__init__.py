"""Save a fitted model to one file, and load it again.

A file is an uncompressed zip archive. `model.json` contains the versions of the software that wrote
the file, the model, and a proof; `arrays.safetensors` contains the arrays of both; entries whose
names end in `.txt` contain LightGBM trees, and entries whose names end in `.skops` contain models
from other libraries. The file contains no training rows, except for models that consist of training
rows, such as couplings. The library's own models are stored as data, so LightGBM is the only
dependency whose version matters for these models; neither loading nor predicting runs code from the
file. skops reads models from other libraries, allowing the classes that it trusts and those named
in `trusted`. The proof consists of a few synthetic rows with their scores: `load` scores these rows
and raises an error if the scores differ.
"""

from __future__ import annotations

import io
import json
import platform
import warnings
import zipfile
from collections.abc import Collection
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import safetensors.numpy
from sklearn.exceptions import InconsistentVersionWarning

from frhsic._files import MODEL_TIMES, Budget, require_regular, write_whole
from frhsic._warnings import ignore_warnings
from frhsic.formatting import printable
from frhsic.persistence.boosters import require
from frhsic.persistence.proof import LARGEST_DIFFERENCE, difference, prove
from frhsic.persistence.values import (
    ESTIMATORS,
    HEADER_MARKS,
    JSON,
    Reader,
    Writer,
    is_own,
    trusting,
)

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    Loaded = TypeVar("Loaded", default=Any)

__all__ = ["load", "save"]

HEADER_ENTRY = "model.json"
ARRAYS_ENTRY = "arrays.safetensors"
LIBRARIES = ("frhsic", "numpy", "scikit-learn", "lightgbm", "skops")


def save(model: Any, path: str | Path) -> None:
    """Write a fitted model to one file. If writing fails, no file is left behind.

    The file does not contain the code of a function passed as `estimator`, or of a custom encoder
    or penalty; pass these objects to :func:`load` again. If `random_state` is a generator, the seed
    drawn from it is saved. Custom folds (`cv`) are not saved either: the loaded model makes the
    same predictions, but uses the default number of folds if it is refitted. If a model contains
    classes that skops does not trust, a warning shows how to load it.

    Examples
    --------
    >>> import tempfile
    >>> from frhsic import FRHSICRegressor
    >>> model = FRHSICRegressor(penalty_weight=0, random_state=0).fit([[0.0], [1.0]], [1.0, 3.0])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(model, f"{folder}/model.frhsic")
    ...     loaded = load(f"{folder}/model.frhsic")
    >>> bool((loaded.predict([[0.5]]) == model.predict([[0.5]])).all())
    True
    """
    write_whole(Path(path), file_bytes(model))


def file_bytes(model: Any) -> bytes:
    """Return the contents of the file that :func:`save` writes."""
    name = type(model).__name__
    if name not in ESTIMATORS or not is_own(model):
        raise TypeError(f"model is {name}; pass a fitted {', '.join(ESTIMATORS)}.")
    writer = Writer(model)
    header = {
        "versions": _versions(),
        "model": writer.value(model),
        "proof": writer.value(prove(model)),
    }
    if writer.untrusted:
        warnings.warn(
            "the model contains classes that skops does not trust, because they may run code."
            f" {trusting(writer.untrusted)}",
            UserWarning,
            stacklevel=3,
        )
    entries = {
        HEADER_ENTRY: json.dumps(header).encode(),
        ARRAYS_ENTRY: safetensors.numpy.save(writer.arrays),
        **writer.entries,
    }
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for entry, content in entries.items():
            archive.writestr(zipfile.ZipInfo(entry), content)  # not the current time
    return buffer.getvalue()


def _versions() -> dict[str, str]:
    return {"python": platform.python_version(), **{name: version(name) for name in LIBRARIES}}


def load(
    path: str | Path,
    kind: type[Loaded] | None = None,
    *,
    estimator: Any = None,
    encoder: Any = None,
    penalty: Any = None,
    trusted: Collection[str] = (),
    max_bytes: int | None = None,
) -> Loaded:
    """Load a fitted model from a file.

    The loaded model makes the same predictions as the saved model: on the synthetic rows in the
    file, the scores differ by at most 1e-6 of the largest score. Otherwise, or if the file is
    damaged or contains anything that `save` never writes, a ValueError gives the reason and the
    versions that wrote the file.

    Parameters
    ----------
    path
        File written by :func:`save`.
    kind
        The expected class, such as ``ParityClassifier``; any other class is an error. Type checkers
        also use it as the type of the result.
    estimator, encoder, penalty
        The function, custom encoder or custom penalty that the model was created with, if any.
        Passing an object that the file does not need is an error.
    trusted
        Names of classes, such as your own estimators, that skops does not trust and that the file
        may contain: ``trusted=["my_module.MyModel"]``. These classes can run any code when the
        model is loaded and when it predicts.
    max_bytes
        Largest amount of memory that reading the file may take. None means 25 times the size of the
        file, but at least 128 MiB.

    Examples
    --------
    >>> import tempfile
    >>> from frhsic import FRHSICRegressor
    >>> model = FRHSICRegressor(penalty_weight=0, random_state=0).fit([[0.0], [1.0]], [1.0, 3.0])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(model, f"{folder}/model.frhsic")
    ...     load(f"{folder}/model.frhsic")
    FRHSICRegressor(penalty_weight=0, random_state=0)
    """
    file = Path(path)
    require_regular(file, "saved model")
    given = {"estimator": estimator, "encoder": encoder, "penalty": penalty}
    budget = Budget.of_file(file, MODEL_TIMES, max_bytes)
    saved = here = _versions()
    try:
        # read only once, so that what is checked is also what is used
        with zipfile.ZipFile(io.BytesIO(file.read_bytes())) as archive:
            for entry in archive.infolist():
                require(entry.compress_type == zipfile.ZIP_STORED, "an entry is compressed")
                budget.charge(entry.file_size)
            text = archive.read(HEADER_ENTRY)
            budget.charge_text(text, JSON)
            header = json.loads(text)
            saved = dict(header["versions"])
            (name,) = header["model"]
            require(name in ESTIMATORS, f"this version has no {name!r}")
            if kind and name != kind.__name__:
                raise ValueError(f"it contains a {name}, but a {kind.__name__} was requested")
            data = archive.read(ARRAYS_ENTRY)
            budget.charge_text(data[8 : 8 + int.from_bytes(data[:8], "little")], HEADER_MARKS)
            reader = Reader(safetensors.numpy.load(data), archive.read, budget, trusted, given)
            # comparing the proof is more informative than a warning about versions
            with ignore_warnings(InconsistentVersionWarning):
                model: Loaded = reader.value(header["model"])
                for name, value in given.items():
                    if value is not None and name not in reader.used:
                        raise ValueError(
                            f"{name} is {value!r}, but the file contains the complete model. Call"
                            f" load without {name}="
                        )
                found = difference(model, reader.value(header["proof"]))
                if not found <= LARGEST_DIFFERENCE:
                    raise ValueError(
                        "its scores on the synthetic rows stored with it have changed since it was"
                        f" saved, by up to {found:.2g} of the largest score"
                    )
                return model
    except Exception as error:
        name = "" if isinstance(error, ValueError) else f"{type(error).__name__}: "
        reason = f"{name}{error}"
        others = [
            f"{name} {saved.get(name)} (here {here[name]})"
            for name in here
            if saved.get(name) != here[name]
        ]
        if others:
            reason = (
                f"{reason.rstrip('.')}. It was saved with {', '.join(others)}. Load it with the"
                " versions that saved it, or fit and save the model again with the installed ones."
            )
        raise ValueError(f"{file.name} cannot be loaded: {printable(reason, 2000)}") from error
