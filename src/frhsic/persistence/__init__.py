"""Save fitted models to one file and load them again.

A file is an uncompressed zip archive. `model.json` holds parameters, coefficients, the frontier and
the models that a closed form is made of; `weights.safetensors` their arrays and the weights of a
network. Training rows are not in it, except in models that are made of them, such as
couplings.

Loading runs no code of the file, and neither does predicting. A file holds numbers, text and
objects of the classes in `listed.toml`, each with the attributes that stand there. Each of these is
compared with what it may be before its object is built, and whether they fit together is checked
before `load` returns. Trees and boosters are numbers: each
is compared with its range, and LightGBM and XGBoost read a text that is written from them. An
uncompressed file cannot unpack to more than its own size. A forged model still predicts what its
author likes: load models only from people you trust.

Objects of other classes are written by skops, and `load` reads them only if `trusted` names all
classes that they are made of.
"""

from __future__ import annotations

import io
import json
import re
import warnings
import zipfile
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy
from sklearn.utils.validation import check_is_fitted

from frhsic._files import write_whole
from frhsic.estimators.coupling import ParityCoupling
from frhsic.estimators.fitting import is_prefit
from frhsic.formatting import printable
from frhsic.persistence.boosters import MOST_NUMBERS
from frhsic.persistence.models import SOLVED, SavedParts
from frhsic.persistence.rules import ATTRIBUTES, OWN, OWN_PARAMETERS, fits, limited, require
from frhsic.persistence.values import Reader, Writer, from_json, is_custom, to_json

__all__ = ["load", "save"]

NETWORK_NAMES = ("FRHSICClassifier", "FRHSICRegressor")
SAVED = (*SOLVED, *NETWORK_NAMES)

HEADER_ENTRY = "model.json"
WEIGHTS_ENTRY = "weights.safetensors"
ENTRY = re.compile(rf"{re.escape(HEADER_ENTRY)}|{re.escape(WEIGHTS_ENTRY)}|\d{{1,4}}\.skops")
HEADER_KEYS = {"class", "parameters", "fitted", "models", "not listed"}

# Bytes and entries of a file
MOST_BYTES = 2**30
MOST_ENTRIES = 10**4
# Bytes of model.json, and of the names of the weights: Python takes about twenty times as much
# memory
MOST_JSON = 2**23
MOST_NAMES = 2**22


def save(model: Any, path: str | Path) -> None:
    """Write a fitted model to one file. A write that fails leaves no file.

    The code of a function as `estimator`, and of an encoder or a penalty of your own, is not in the
    file: pass the object again to :func:`load`. A `random_state` that is a generator is written as
    the seed drawn from it; generators inside of other models are left out. Folds of your own
    (`cv`) are not in the file either: the loaded model predicts the same, and has a number of
    folds if it is fitted again. A model that holds classes which are not listed warns that they
    have to be named again by whoever loads it.

    Examples
    --------
    >>> import tempfile
    >>> from frhsic import FRHSICRegressor
    >>> model = FRHSICRegressor(penalty_weight=0, random_state=0).fit([[0.0], [1.0]], [1.0, 3.0])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(model, f"{folder}/model.frhsic")
    ...     again = load(f"{folder}/model.frhsic")
    >>> bool((again.predict([[0.5]]) == model.predict([[0.5]])).all())
    True
    """
    write_whole(Path(path), file_bytes(model))


def file_bytes(model: Any) -> bytes:
    """Return the content of the file that :func:`save` writes. Equal models have equal bytes."""
    name = type(model).__name__
    if name not in SAVED or type(model) is not _saved(name)[0]:
        raise TypeError(f"model is {name}; pass a fitted {', '.join(SAVED)}.")
    saved = _saved(name)[1]
    check_is_fitted(model)
    parameters = model.get_params(deep=False)
    parts = _model_parts(model, saved, parameters)
    plain = {name: to_json(value) for name, value in parameters.items() if name not in parts}
    if is_custom(plain["random_state"]):
        plain["random_state"] = model.random_seed_
    if not isinstance(plain.get("cv", 0), int):
        default = type(model)().cv
        plain["cv"] = len(model.models_) if isinstance(model, ParityCoupling) else default
    fitted = {name: to_json(getattr(model, name)) for name in OWN if hasattr(model, name)}
    for attribute in [attribute for attribute, value in fitted.items() if is_custom(value)]:
        if not is_custom(plain.get(attribute.rstrip("_"))):  # else the user passes it again
            value = printable(repr(getattr(model, attribute)), 200)
            raise TypeError(
                f"{attribute} of the {name} is {value}, which a file cannot hold. Fit with numbers"
                " or text in its place."
            )
        del fitted[attribute]
    writer = Writer()
    header = {
        "class": name,
        "parameters": plain,
        "fitted": fitted,
        "models": {name: writer.model(part) for name, part in parts.items()},
        "not listed": sorted(writer.names),
    }
    arrays = {str(place): values for place, values in enumerate(writer.arrays)}
    weights = safetensors.numpy.save(arrays | saved.arrays(model))
    entries = {HEADER_ENTRY: json.dumps(header, allow_nan=False).encode(), WEIGHTS_ENTRY: weights}
    entries |= {f"{place}.skops": data for place, data in enumerate(writer.foreign)}
    _warn_of(writer)
    return _archived(entries, writer.numbers)


def _model_parts(model: Any, saved: SavedParts, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters and fitted attributes that are models; of a function, only its name is
    written.
    """
    parts = {}
    for name in saved.models:
        part = parameters.get(name, getattr(model, name, None))
        is_function = callable(part) and not hasattr(part, "get_params")
        if part is not None and not is_function:
            parts[name] = part
    if is_prefit(parameters.get("estimator")):
        del parts["models_"]  # a model that was given is a parameter
    return parts


def _saved(name: str) -> tuple[Any, SavedParts]:
    """Return a class that is saved and how; torch is imported for networks alone."""
    if name in NETWORK_NAMES:
        from frhsic.persistence import networks

        return networks.NETWORKS[name]
    return SOLVED[name]


def _warn_of(writer: Writer) -> None:
    if writer.names:
        text = ", ".join(map(repr, sorted(writer.names)))
        odd = "".join(f" {reason}" for reason in sorted(writer.odd))
        warnings.warn(
            "the model holds classes that files do not hold by default, because they may run code."
            f" Whoever loads it has to name them: load(path, trusted=[{text}]).{odd}",
            UserWarning,
            stacklevel=4,
        )


def _archived(entries: Mapping[str, bytes], numbers: int) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in entries.items():
            archive.writestr(zipfile.ZipInfo(name), content)  # without the time of day
    for size, most in (
        (buffer.tell(), MOST_BYTES),
        (len(entries[HEADER_ENTRY]), MOST_JSON),
        (_bytes_of_names(entries[WEIGHTS_ENTRY]), MOST_NAMES),
        (numbers, MOST_NUMBERS),
    ):
        if size > most:
            raise ValueError(
                f"the model takes {size:,} bytes or numbers, and {most:,} are read. Use fewer"
                " trees, or columns with fewer levels."
            )
    return buffer.getvalue()


def _bytes_of_names(weights: bytes) -> int:
    return int.from_bytes(weights[:8], "little")


def load(
    path: str | Path,
    *,
    estimator: Any = None,
    encoder: Any = None,
    penalty: Any = None,
    trusted: Collection[str] = (),
) -> Any:
    """Return the fitted model of a file. It predicts bit for bit what the saved one did on the same
    machine.

    A file that is cut off or foreign, or that holds what no saved model does, is a ValueError with
    the reason. Changed numbers that a model may have are loaded: see the notes of the module on
    what is promised of forged files.

    Parameters
    ----------
    path
        File that :func:`save` has written.
    estimator, encoder, penalty
        The function, custom encoder or custom penalty that the model was made with, if it was made
        with one; an error if the file needs none.
    trusted
        Names of classes and functions beyond the list of this library that the file may hold, such
        as those of your own estimators. They can run any code when the model is loaded and when it
        predicts.

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
    given = {"estimator": estimator, "encoder": encoder, "penalty": penalty}
    with _opened(path) as archive:
        header = _header(archive)
        cls, saved = _saved(header["class"])
        model = cls()
        arrays = _arrays(archive.read(WEIGHTS_ENTRY))
        reader = Reader(
            arrays,
            lambda place: archive.read(f"{place:d}.skops"),
            trusted,
            header["not listed"],
        )
        parts = {name: reader.read(part) for name, part in header["models"].items()}
        for name, part in parts.items():
            known = name in saved.models and fits(part, ATTRIBUTES[name])
            require(known, "it holds models that its class does not have")
        parameters = {name: part for name, part in parts.items() if not name.endswith("_")}
        parameters |= _parameters(header["class"], header["parameters"], given)
        require(
            parameters.keys() == model.get_params(deep=False).keys(),
            "it has other parameters than this version",
        )
        for name in parameters.keys() & OWN_PARAMETERS:
            require(fits(parameters[name], ATTRIBUTES[name]), f"{name!r} is not as it should be")
        model.set_params(**limited(parameters))
        for name, value in header["fitted"].items():
            attribute = from_json(value)
            require(
                name in OWN and fits(attribute, ATTRIBUTES[name]),
                f"{name!r} is not as it should be",
            )
            setattr(model, name, attribute)
        for name, part in parts.items():
            setattr(model, name, part)
        saved.complete(model, arrays)
    return model


@contextmanager
def _opened(path: str | Path) -> Iterator[zipfile.ZipFile]:
    """Open a file whose sizes and names are in order; every error of reading it is a ValueError
    that names it.
    """
    file = Path(path)
    if not file.is_file():
        raise FileNotFoundError(f"there is no saved model {str(file)!r}.")
    try:
        require(file.stat().st_size <= MOST_BYTES, f"it is larger than {MOST_BYTES} bytes")
        content = io.BytesIO(file.read_bytes())  # read once: what is checked is what is used
        require(
            content.getvalue().count(b"PK\x01\x02") <= MOST_ENTRIES,
            f"it has more than {MOST_ENTRIES} entries",
        )
        with zipfile.ZipFile(content) as archive:
            entries = archive.infolist()
            names = {entry.filename for entry in entries}
            require(all(map(ENTRY.fullmatch, names)), "it has entries that no model has")
            require(len(names) == len(entries), "it has two entries of one name")
            stored = all(e.compress_type == 0 and e.compress_size == e.file_size for e in entries)
            require(stored, "an entry is compressed, or of another size than it says")
            require(
                sum(e.file_size for e in entries) <= len(content.getbuffer()), "its entries overlap"
            )
            yield archive
    except Exception as error:
        detail = str(error) if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"
        raise ValueError(f"{file.name} cannot be loaded: {printable(detail, 2000)}") from error


def _header(archive: zipfile.ZipFile) -> dict[str, Any]:
    require(
        archive.getinfo(HEADER_ENTRY).file_size <= MOST_JSON,
        f"its {HEADER_ENTRY} is larger than {MOST_JSON} bytes",
    )
    # int raises on NaN and Infinity
    header = json.loads(archive.read(HEADER_ENTRY), parse_constant=int)
    require(isinstance(header, dict) and header.keys() == HEADER_KEYS, "not a model")
    require(header["class"] in SAVED, f"this version knows no {header['class']!r}")
    return dict(header)


def _arrays(weights: bytes) -> dict[str, np.ndarray]:
    require(_bytes_of_names(weights) <= MOST_NAMES, "its weights have too many names")
    arrays = safetensors.numpy.load(weights)
    require(all(v.dtype.kind in "biuf" for v in arrays.values()), "weights that are not numbers")
    for name, values in arrays.items():  # one after another, so that few are there twice
        arrays[name] = values.copy()
    return arrays


def _parameters(cls: str, written: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters of a constructor, with those that the user passed again."""
    parameters = {name: value for name, value in given.items() if value is not None}
    for name, value in parameters.items():
        if not is_custom(written.get(name)):
            raise ValueError(
                f"{name} is {value!r}, but the {cls} in the file was made with no {name} of the"
                f" user's own, and the file lacks nothing. Call load without {name}=."
            )
    for name in written.keys() - parameters.keys():
        value = written[name]
        if is_custom(value):
            raise ValueError(
                f"the model was made with {'a' if name == 'penalty' else 'an'} {name} of the user's"
                f" own, {value.get('custom')}, whose code is not in the file. Pass it again:"
                f" load(path, {name}=...)."
            )
        parameters[name] = from_json(value)
    return parameters
