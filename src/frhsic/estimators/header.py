"""Schema of the header of a model file, checked before anything is built from it.

The checksum of a file tells of damage. It does not tell who wrote the file: anyone can write another header and a new
checksum. So each entry has a type and limits here, and sizes have to agree with each other and with the tensors.
A new entry of the format is one more line of :data:`HEADER`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

from torch import Tensor

from frhsic.formatting import printable
from frhsic.tables import TableEncoding
from frhsic.training.recipe import ACTIVATIONS

Check = Callable[[Any, str], None]
"""Raises a ValueError if an entry is not what it should be; the text says where the entry stands."""

DEEPEST = 40
"""Nesting of a header at most; kernels nest, as sums of products of sums."""
WIDEST = 10_000_000
"""Columns, units or rows of any layer at most."""
MOST_LAYERS = 1000
LONGEST = 500
"""Characters of another error's message that a message repeats at most."""
LABEL_BYTES = 2**24
"""Memory of the class labels at most."""


class InvalidHeaderError(ValueError):
    """The header is not one that this version writes."""


def whole(least: int = 0, most: int = 2**63 - 1) -> Check:
    """Return the check of a whole number."""

    def check(value: Any, where: str) -> None:
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise InvalidHeaderError(f"{where} is {_shown(value)}; it must be a whole number from {least} to {most}")

    return check


def number(above: float = -math.inf) -> Check:
    """Return the check of a finite number above a limit."""

    def check(value: Any, where: str) -> None:
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not above < value < math.inf:
            raise InvalidHeaderError(
                f"{where} is {_shown(value)}; it must be a finite number" + f" above {above}" * (above > -1)
            )

    return check


def of_type(*types: type) -> Check:
    """Return the check of an entry of one of these types."""

    def check(value: Any, where: str) -> None:
        if type(value) not in types:
            raise InvalidHeaderError(f"{where} is {_shown(value)}; it must be {' or '.join(t.__name__ for t in types)}")

    return check


def one_of(*values: str) -> Check:
    """Return the check of a name."""

    def check(value: Any, where: str) -> None:
        if not isinstance(value, str) or value not in values:
            raise InvalidHeaderError(f"{where} is {_shown(value)}; this version knows {', '.join(values)}")

    return check


def items(check: Check, least: int = 0, most: int = WIDEST) -> Check:
    """Return the check of a list, with the check of its items."""

    def check_items(value: Any, where: str) -> None:
        if not isinstance(value, list) or not least <= len(value) <= most:
            raise InvalidHeaderError(f"{where} is {_shown(value)}; it must be a list of {least} to {most} items")
        for place, item in enumerate(value):
            check(item, f"{where}[{place}]")

    return check_items


def record(required: Mapping[str, Check], optional: Mapping[str, Check] | None = None) -> Check:
    """Return the check of an object with these entries and no others."""
    known = {**required, **(optional or {})}

    def check(value: Any, where: str) -> None:
        _require_object(value, where)
        for name in required:
            if name not in value:
                raise InvalidHeaderError(f"{where} lacks {name!r}")
        for name, entry in value.items():
            if name not in known:
                raise InvalidHeaderError(f"{where} has the entry {_shown(name)}, which this version does not know")
            known[name](entry, f"{where}.{name}" if where else name)

    return check


def mapping(check: Check) -> Check:
    """Return the check of an object with any names."""

    def check_entries(value: Any, where: str) -> None:
        _require_object(value, where)
        for name, entry in value.items():
            check(entry, f"{where}.{name}")

    return check_entries


def anything(value: Any, where: str) -> None:
    """Check nothing here; what is built from the entry checks it."""


def optional(check: Check) -> Check:
    """Return the check of an entry that may be null."""

    def check_unless_none(value: Any, where: str) -> None:
        if value is not None:
            check(value, where)

    return check_unless_none


def _column(value: Any, where: str) -> None:
    _require_object(value, where)
    of_type(str)(value.get("name"), f"{where}.name")
    try:
        TableEncoding.from_plain([value])
    except (ValueError, TypeError, OverflowError) as error:
        raise InvalidHeaderError(f"{where} is not a column: {printable(str(error), LONGEST)}") from error


def labels(value: Any, where: str) -> None:
    """Check class labels: their type, their number and that each is there once."""
    record({"dtype": of_type(str), "values": items(of_type(str, int, float, bool), 1)})(value, where)
    values, text = value["values"], re.fullmatch(r"[<>|=]?(?:[bifu][1248]|U(\d{1,8})|(object))", value["dtype"])
    if text is None or 4 * int(text[1] or 2) * len(values) > LABEL_BYTES:
        raise InvalidHeaderError(f"{where}.dtype is {_shown(value['dtype'])}, which class labels do not have")
    if len({(type(label), label) for label in values}) < len(values):
        raise InvalidHeaderError(f"{where} holds a label twice")


TABLE = record({"table": items(_column, 1)})
SIZE = whole(1, WIDEST)

HEADER = record(
    {
        "versions": mapping(of_type(str)),
        "estimator": one_of("FRHSICClassifier", "FRHSICRegressor", "ParityEncoder"),
        "parameters": mapping(anything),
        "architecture": record(
            {
                "encoder": anything,
                "columns": SIZE,
                "hidden": items(SIZE, 0, MOST_LAYERS),
                "activation": one_of(*ACTIVATIONS),
                "head": items(SIZE, 2, 2),
                "bottleneck": of_type(bool),
                "ensemble": whole(1, MOST_LAYERS),
            },
        ),
        "penalty": anything,
        "learned": record(
            {
                "n_features_in_": SIZE,
                "representation_size_": SIZE,
                "random_seed_": whole(),
                "n_fits_": whole(),
                "best_epochs_": optional(items(whole(-1), 1, MOST_LAYERS)),
                "feature_encoding_": TABLE,
            },
            {
                "sensitive_encoding_": TABLE,
                "target_mean_": number(),
                "target_scale_": number(above=0),
                "task_": one_of("binary", "multiclass", "regression", "reconstruction"),
                "feature_names_in_": items(of_type(str), 1),
                "sensitive_names_in_": items(of_type(str), 1),
                "classes_": labels,
            },
        ),
        "checksum": of_type(str),
    },
)


def check_header(header: Any) -> None:
    """Raise unless a header follows the schema and its sizes agree with each other."""
    _require_plain(header, 0)
    HEADER(header, "")
    learned, architecture = header["learned"], header["architecture"]
    table = learned["feature_encoding_"]["table"]
    _require_equal("columns that came", learned["n_features_in_"], len(table))
    _require_equal("width of Z", architecture["head"][0], learned["representation_size_"])
    for names, encoding in (("feature_names_in_", "feature_encoding_"), ("sensitive_names_in_", "sensitive_encoding_")):
        if names in learned:
            _require_equal(f"names in {names}", len(learned[names]), len(_required(learned, encoding)["table"]))
    penalized = isinstance(header["penalty"], dict) and header["penalty"].get("penalty") != "NoPenalty"
    if penalized:
        _required(learned, "sensitive_encoding_")
    outputs = architecture["head"][1]
    if header["estimator"] == "FRHSICClassifier":
        classes = len(_required(learned, "classes_")["values"])
        _require_equal("outputs of the head", outputs, 1 if classes <= 2 else classes)
    elif header["estimator"] == "FRHSICRegressor":
        _required(learned, "target_mean_"), _required(learned, "target_scale_")
        _require_equal("outputs of the head", outputs, 1)


def check_tensors(header: dict[str, Any], tensors: Mapping[str, Tensor], curves: Iterable[str]) -> None:
    """Raise unless the tensors are those of a model of this header, as far as that shows before it is built.

    The model then takes no more memory than the file has on the disk.
    """
    for name in curves:
        if name not in tensors and name == "validation_curve_":
            continue  # no early stopping
        if name not in tensors or tensors[name].ndim != 1 or not tensors[name].is_floating_point():
            raise InvalidHeaderError(f"the curve {name!r} is missing, or is not a vector of numbers")
    for name, values in tensors.items():
        if name in curves:
            continue
        if not name.startswith(("encoder.", "head.", "penalty.")):
            raise InvalidHeaderError(f"the tensor {_shown(name)} belongs to no part of a model")
        own = name.startswith("head.") or header["architecture"]["encoder"] == "mlp_encoder"
        if own and not name.startswith("penalty.") and not bool(values.isfinite().all()):
            raise InvalidHeaderError(f"the tensor {name!r} holds NaN or infinity")
    architecture = header["architecture"]
    table = TableEncoding.from_plain(header["learned"]["feature_encoding_"]["table"])
    _require_equal("columns of X", architecture["columns"], table.width)
    size, outputs = architecture["head"]
    _require_equal("numbers in the head", size * outputs + outputs, _count(tensors, "head."))
    count = architecture["ensemble"]
    _require_equal("columns of Z", size, size // count * count)
    size //= count
    bottleneck = count * (2 * size**2 + size) if architecture["bottleneck"] else 0
    widths = [architecture["columns"], *architecture["hidden"], size]
    numbers = count * sum(before * after + after for before, after in pairwise(widths)) + bottleneck
    if architecture["encoder"] == "mlp_encoder":
        _require_equal("numbers in the encoder", numbers, _count(tensors, "encoder."))
    elif bottleneck > _count(tensors, "encoder."):
        raise InvalidHeaderError("the bottleneck is wider than what the file holds of the encoder")


@contextmanager
def reading(name: str) -> Iterator[None]:
    """Turn every error of reading a file into a ValueError that names it."""
    try:
        yield
    except InvalidHeaderError as error:
        raise ValueError(f"{name} is not a file that frhsic.save has written: {error}.") from error
    except ValueError as error:
        raise ValueError(f"{name} cannot be loaded: {printable(str(error), LONGEST)}") from error
    except Exception as error:
        said = f"{type(error).__name__}: {printable(str(error), LONGEST)}"
        raise ValueError(f"{name} is not a file that frhsic.save has written: {said}.") from error


def _count(tensors: Mapping[str, Tensor], prefix: str) -> int:
    return sum(values.numel() for name, values in tensors.items() if name.startswith(prefix))


def _required(learned: dict[str, Any], name: str) -> Any:
    if name not in learned:
        raise InvalidHeaderError(f"learned lacks {name!r}")
    return learned[name]


def _require_object(value: Any, where: str) -> None:
    if not isinstance(value, dict):
        raise InvalidHeaderError(f"{where or 'the header'} is {_shown(value)}; it must be an object")


def _require_equal(what: str, stated: int, actual: int) -> None:
    if stated != actual:
        raise InvalidHeaderError(f"the {what} are {stated} in one place and {actual} in another")


def _require_plain(value: Any, depth: int) -> None:
    """Raise on deep nesting, numbers that are not finite, and whole numbers that torch cannot hold."""
    if depth > DEEPEST:
        raise InvalidHeaderError(f"it is nested more than {DEEPEST} deep")
    if isinstance(value, float) and not math.isfinite(value):
        raise InvalidHeaderError("it holds a number that is not finite")
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        raise InvalidHeaderError("it holds a whole number of more than 64 bits")
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        _require_plain(item, depth + 1)


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}..."
