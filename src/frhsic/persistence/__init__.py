"""Save fitted models to one file and load them again.

A file is an uncompressed zip archive. `model.json` holds the class, the versions that wrote it,
parameters, fitted attributes and the proof; `arrays.safetensors` their arrays; entries that end in
`.txt` the trees of LightGBM, and in `.skops` models of other libraries. It contains no training
rows, except in models that consist of them, such as couplings.

The library's own models are data, so that of all other libraries only the version of LightGBM
matters to them. Loading runs no code of the file, and neither does predicting. skops reads models
of other libraries, with the classes that it trusts and those that `trusted` names. The proof
consists of a few synthetic rows with their scores: `load` predicts them and raises if they differ.
"""

from __future__ import annotations

import io
import json
import os
import platform
import re
import warnings
import zipfile
from collections.abc import Collection, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar, overload

import safetensors.numpy
from sklearn.exceptions import InconsistentVersionWarning
from sklearn.utils.validation import check_is_fitted

from frhsic import estimators
from frhsic._files import MODEL_TIMES, Budget, require_regular, write_whole
from frhsic._warnings import ignore_warnings
from frhsic.formatting import printable
from frhsic.persistence.boosters import require
from frhsic.persistence.proof import LARGEST_DIFFERENCE, difference, prove
from frhsic.persistence.values import DATA, HEADER_MARKS, JSON, Reader, Writer, trusting

__all__ = ["load", "save"]

Loaded = TypeVar("Loaded")

NETWORKS = ("FRHSICClassifier", "FRHSICRegressor")
DISTILLED = ("Distilled", "DistilledClassifier")
SAVED = (
    "ParityClassifier",
    "ParityRegressor",
    "ParityEncoder",
    "ParityCoupling",
    *DISTILLED,
    *NETWORKS,
)

FITTED = re.compile(
    r"n_features_in_|feature_names_in_|sensitive_names_in_|classes_|random_seed_|schema_"
    r"|sensitive_schema_|strata_|engine_|models_|attribute_models_|folds_|solution_"
    r"|frontier_|choice_"
    r"|repeated_|choices_|feature_encoding_|sensitive_encoding_|ratio_|move_cost_"
    r"|untouched_|_table|_schema|_identity|_release|n_fits_|best_epoch_|representation_size_"
    r"|loss_curve_|penalty_curve_|validation_curve_|has_bottleneck_|penalty_|target_mean_"
    r"|target_scale_|_sklearn_output_config"
)
"""Fitted attributes that a file holds, as far as a model has them."""

# Modules of a network, which are built for their weights.
MODULES = ("encoder_", "head_")
# Parameters that may be the user's own code, which is passed again to `load`.
USER_CODE = ("estimator", "encoder", "penalty")
# Fitted attributes that hold it.
PASSED = {"models_": "estimator", "penalty_": "penalty"}

HEADER_ENTRY = "model.json"
ARRAYS_ENTRY = "arrays.safetensors"
LIBRARIES = ("frhsic", "numpy", "scikit-learn", "lightgbm", "skops")


def save(model: Any, path: str | Path) -> None:
    """Write a fitted model to one file. If writing fails, no file is left behind.

    The file does not contain the code of a function passed as `estimator`, or of a custom encoder
    or penalty: pass the object again to :func:`load`. A `random_state` that is a generator is
    written as the seed drawn from it. Custom folds (`cv`) are not in the file either: the loaded
    model predicts the same, and uses a number of folds if it is fitted again. If a model contains
    classes that skops does not trust, a warning shows the line that loads it.

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
    """Return the content of the file that :func:`save` writes."""
    name = type(model).__name__
    if name not in SAVED or type(model) is not getattr(estimators, name):
        raise TypeError(f"model is {name}; pass a fitted {', '.join(SAVED)}.")
    writer = Writer()
    parameters: dict[str, Any] = {}
    if name in DISTILLED:  # data as a whole
        fitted = writer.value(model)
    else:
        parameters, fitted = _estimator_state(model, writer)
    weights: dict[str, Any] = {}
    if name in NETWORKS:
        from frhsic.persistence import networks

        weights = networks.weights_of(model)
    header = {
        "class": name,
        "versions": _versions(),
        "parameters": parameters,
        "fitted": fitted,
        "weights": writer.value(weights),
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
        HEADER_ENTRY: json.dumps(header, allow_nan=False).encode(),
        ARRAYS_ENTRY: safetensors.numpy.save(writer.arrays),
        **writer.entries,
    }
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for entry, content in entries.items():
            archive.writestr(zipfile.ZipInfo(entry), content)  # without the time of day
    return buffer.getvalue()


def _estimator_state(model: Any, writer: Writer) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return parameters and fitted attributes of an estimator as JSON."""
    check_is_fitted(model)
    name = type(model).__name__
    parameters = _written_parameters(model, writer)
    fitted = {}
    for attribute, value in vars(model).items():
        passed = _is_custom(parameters.get(PASSED.get(attribute, "")))
        if attribute in parameters or attribute in MODULES or passed:
            continue
        if not FITTED.fullmatch(attribute):
            raise TypeError(f"{attribute} of the {name} has no place in a file.")
        fitted[attribute] = writer.value(value)
    return parameters, fitted


def _versions() -> dict[str, str]:
    return {"python": platform.python_version(), **{name: version(name) for name in LIBRARIES}}


def _written_parameters(model: Any, writer: Writer) -> dict[str, Any]:
    """Return parameters as JSON; of the user's own code, only the name is written."""
    parameters = {}
    for name, value in model.get_params(deep=False).items():
        if name == "random_state" and not isinstance(value, int | None):
            value = model.random_seed_
        elif name == "cv" and not isinstance(value, int):
            value = type(model)().cv
        known = type(value).__name__ in DATA or hasattr(value, "get_params")
        if name in USER_CODE and callable(value) and not known:
            named = value if hasattr(value, "__qualname__") else type(value)
            parameters[name] = {"custom": f"{named.__module__}.{named.__qualname__}"}
        else:
            parameters[name] = writer.value(value)
    return parameters


@overload
def load(
    path: str | Path,
    kind: type[Loaded],
    *,
    estimator: Any = ...,
    encoder: Any = ...,
    penalty: Any = ...,
    trusted: Collection[str] = ...,
    max_bytes: int | None = ...,
) -> Loaded: ...


@overload
def load(
    path: str | Path,
    kind: None = None,
    *,
    estimator: Any = ...,
    encoder: Any = ...,
    penalty: Any = ...,
    trusted: Collection[str] = ...,
    max_bytes: int | None = ...,
) -> Any: ...


def load(
    path: str | Path,
    kind: type[Any] | None = None,
    *,
    estimator: Any = None,
    encoder: Any = None,
    penalty: Any = None,
    trusted: Collection[str] = (),
    max_bytes: int | None = None,
) -> Any:
    """Return the fitted model of a file.

    It predicts what the saved one did: the synthetic rows in the file get the same scores, up to
    1e-6 of the largest. Otherwise, or if the file is damaged or contains anything that `save` never
    writes, a ValueError gives the reason and the versions that wrote the file.

    Parameters
    ----------
    path
        File that :func:`save` has written.
    kind
        The expected class, such as ``ParityClassifier``; any other class is an error. Type checkers
        then know the class of the model.
    estimator, encoder, penalty
        The function, custom encoder or custom penalty that the model was created with, if any; an
        error if the file needs none.
    trusted
        Names of classes that skops does not trust and that the file may contain, such as your own
        estimators. They can run any code when the model is loaded and when it predicts.
    max_bytes
        Memory that reading the file may take. None is 25 times its size, but at least 128 MiB.

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
    passed = {"estimator": estimator, "encoder": encoder, "penalty": penalty}
    given = {name: value for name, value in passed.items() if value is not None}
    budget = Budget.of_file(file, MODEL_TIMES, max_bytes)
    saved = here = _versions()
    try:
        content = io.BytesIO(file.read_bytes())  # read once: what is checked is what is used
        with zipfile.ZipFile(content) as archive:
            for entry in archive.infolist():
                require(entry.compress_type == zipfile.ZIP_STORED, "an entry is compressed")
                budget.charge(entry.file_size)
            text = archive.read(HEADER_ENTRY)
            budget.charge_text(text, JSON)
            header = json.loads(text)
            saved = dict(header["versions"])
            require(header["class"] in SAVED, f"this version knows no {header['class']!r}")
            if kind is not None and header["class"] != kind.__name__:
                raise ValueError(f"it holds a {header['class']}, and {kind.__name__} was asked for")
            data = archive.read(ARRAYS_ENTRY)
            budget.charge_text(data[8 : 8 + int.from_bytes(data[:8], "little")], HEADER_MARKS)
            reader = Reader(safetensors.numpy.load(data), archive.read, budget, trusted)
            # the proof says more than a warning that versions differ
            with ignore_warnings(InconsistentVersionWarning):
                return _model(header, reader, given)
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


def _model(header: Mapping[str, Any], reader: Reader, given: Mapping[str, Any]) -> Any:
    """Build a model, and compare its scores with those of the file."""
    cls = getattr(estimators, header["class"])  # torch is imported for networks alone
    if header["class"] in DISTILLED:
        require(not given, "a distilled model contains no custom models")
        model = reader.value(header["fitted"])
        require(type(model) is cls, "it does not contain the class that it names")
    else:
        model = _estimator(cls, header, reader, given)
    proof = reader.value(header["proof"])
    found = difference(model, proof)
    if not found <= LARGEST_DIFFERENCE:
        raise ValueError(
            f"the scores of its synthetic rows differ by {found:.2g} of the largest from those that"
            " the model had when it was saved"
        )
    return model


def _estimator(
    cls: Any, header: Mapping[str, Any], reader: Reader, given: Mapping[str, Any]
) -> Any:
    """Build an estimator from its parameters and fitted attributes."""
    parameters = _parameters(header["class"], header["parameters"], given, reader)
    if parameters.get("n_jobs") is not None:
        parameters["n_jobs"] = min(parameters["n_jobs"], os.cpu_count() or 1)
    model = cls(**parameters)
    require(
        parameters.keys() == model.get_params(deep=False).keys(),
        "its parameters are not those of this version",
    )
    (getattr(model, "_check", None) or model._validate_params)()
    for name, value in header["fitted"].items():
        require(FITTED.fullmatch(name), f"this version knows no {name!r}")
        setattr(model, name, reader.value(value))
    if "estimator" in given:
        model.models_ = [[given["estimator"]]]
    weights = reader.value(header["weights"])
    if weights:
        from frhsic.persistence import networks

        networks.complete(model, weights)
    return model


def _parameters(
    cls: str, written: Mapping[str, Any], given: Mapping[str, Any], reader: Reader
) -> dict[str, Any]:
    """Return parameters of a constructor, with those that the user passed again."""
    parameters = {}
    for name in {*given, *written}:
        value = written.get(name, {})
        custom = _is_custom(value)
        if name in given and not custom:
            raise ValueError(
                f"{name} is {given[name]!r}, but the {cls} in the file has no custom {name}. Call"
                f" load without {name}=."
            )
        if custom and name not in given:
            raise ValueError(
                f"the model was made with {'a' if name == 'penalty' else 'an'} {name} of the user's"
                f" own, {value['custom']}, whose code is not in the file. Pass it again:"
                f" load(path, {name}=...)."
            )
        parameters[name] = given[name] if custom else reader.value(value)
    return parameters


def _is_custom(value: Any) -> bool:
    return isinstance(value, dict) and "custom" in value
