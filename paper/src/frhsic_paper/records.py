"""Records of the studies: one Parquet file for each study and protocol, such as
``bound-corrected.parquet``.

A record is a dict. Its column ``part`` distinguishes the types of records in a file: "models" for
trained models, and another name for each measurement. Every record also contains

``protocol``      "published" or "corrected"
``task``          "binary" or "regression", where a model is concerned
``epochs``        epochs that the model was trained for
``device``        "cpu" or "cuda"; ``hardware`` its name, such as "NVIDIA H200"
``frhsic``, ``torch``   versions
``depends_on``    hash of the settings and the code that its numbers depend on, see :func:`digest`
                  and ``code.py``; only the steps that make records compute it

A column that a record doesn't have is null in the file. A number that is not finite is NaN in the
file and None in the record.
"""

from __future__ import annotations

import dataclasses
import hashlib
import io
import json
import math
import platform
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import torch

from frhsic import __version__
from frhsic._files import write_whole

Record = dict[str, Any]

Unit = tuple[Any, ...]
"""Values of the columns that identify what is run and written together."""

MODEL = frozenset({"part", "dataset", "method", "weight", "repeat"})
"""Columns that identify a trained model; a file has one record for each."""

RUN = frozenset({"seconds", "hardware", "frhsic", "torch", "depends_on"})
"""Columns that describe how a record was computed. Two records that differ only in these are
duplicates.

The device is not one of them, since studies of running times have a record for each device.
"""

DIGITS = 7
"""Significant digits of floats in records, as in float32, from which they are computed."""


class Wanted(NamedTuple):
    """When a unit counts as done: it has at least this many records, all with this hash."""

    records: int
    depends_on: str


def read(path: Path, part: str | None = None) -> list[Record]:
    """Return the records of a file, or of one part of it; without a file, there are none.

    Raises
    ------
    ValueError
        If the file is truncated, or contains a record twice, since means and verdicts would count
        that record twice.
    """
    if not path.exists():
        return []
    try:
        with path.open("rb") as file:
            rows = pq.ParquetFile(file).read().to_pylist()
    except (pa.ArrowInvalid, OSError) as error:
        raise ValueError(
            f"{path} cannot be read as Parquet ({error}). The file is truncated or was changed by"
            " another program; restore it, or delete it and run the study again."
        ) from error
    records = [
        {name: _restored(value) for name, value in row.items() if value is not None} for row in rows
    ]
    _refuse_duplicates(path, records)
    return [record for record in records if part is None or record.get("part") == part]


def _refuse_duplicates(path: Path, records: Sequence[Record]) -> None:
    seen: set[str] = set()
    for record in records:
        columns = (
            MODEL
            if record.get("part") == "models" and record.keys() >= MODEL
            else record.keys() - RUN
        )
        name = json.dumps({column: record[column] for column in sorted(columns)})
        if name in seen:
            raise ValueError(
                f"{path} contains a record twice: {name[:300]}. Two runs may have written it at the"
                " same time; restore the file, or delete it and run the study again."
            )
        seen.add(name)


def write(path: Path, records: Iterable[Mapping[str, Any]]) -> None:
    """Write a complete file that replaces the old one."""
    rounded = [{name: _rounded(value) for name, value in record.items()} for record in records]
    names = dict.fromkeys(name for record in rounded for name in record)
    table = pa.table({name: pa.array([record.get(name) for record in rounded]) for name in names})
    content = io.BytesIO()
    pq.write_table(table, content, compression="zstd", compression_level=9)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, content.getvalue())


def put(path: Path, by: Sequence[str], records: Sequence[Record]) -> None:
    """Add records to a file, replacing those of the same units; `by` contains the columns that
    identify a unit.
    """
    units = {record_unit(record, by) for record in records}
    write(
        path, [*(record for record in read(path) if record_unit(record, by) not in units), *records]
    )


def missing_units(path: Path, by: Sequence[str], wanted: Mapping[Unit, Wanted]) -> list[Unit]:
    """Return the units that are missing from a file, have too few records in it, or have a
    different hash.

    A unit is always run as a whole, since only then are its numbers reproducible to the last bit.
    More records than wanted are fine: a unit with more repeats contains those of a unit with fewer.
    """
    stored = grouped(read(path), *by)

    def done(unit: Unit) -> bool:
        own, (count, depends_on) = stored.get(unit, []), wanted[unit]
        return len(own) >= count and all(r.get("depends_on") == depends_on for r in own)

    return [unit for unit in wanted if not done(unit)]


def content(record: Mapping[str, Any]) -> Record:
    """Return the content of a record, without the columns that describe how it was computed. A
    measurement of the model depends on this content.
    """
    return {name: value for name, value in record.items() if name not in RUN}


def matching(records: Iterable[Record], **values: object) -> list[Record]:
    """Return the records with the given values.

    Examples
    --------
    >>> matching([{"n": 1, "repeat": 0}, {"n": 2, "repeat": 0}], n=2)
    [{'n': 2, 'repeat': 0}]
    """
    return [r for r in records if all(r.get(name) == value for name, value in values.items())]


def grouped(records: Iterable[Record], *by: str) -> dict[Unit, list[Record]]:
    """Return the records, grouped by their values in the given columns.

    Examples
    --------
    >>> grouped([{"n": 1, "repeat": 0}, {"n": 2, "repeat": 0}], "repeat")
    {(0,): [{'n': 1, 'repeat': 0}, {'n': 2, 'repeat': 0}]}
    """
    groups: dict[Unit, list[Record]] = {}
    for record in records:
        groups.setdefault(record_unit(record, by), []).append(record)
    return groups


def record_unit(record: Mapping[str, Any], by: Sequence[str]) -> Unit:
    """Return the unit to which a record belongs."""
    return tuple(record.get(name) for name in by)


def digest(*parts: object) -> str:
    """Return a short hash of settings: numbers, strings, dataclasses, modules, and functions, by
    name.

    Examples
    --------
    >>> (
    ...     digest("hsic", (0.1, 1.0)) == digest("hsic", (0.1, 1.0)),
    ...     digest("hsic", (0.1,)) == digest("hsic", (1.0,)),
    ... )
    (True, False)
    """
    text = json.dumps(parts, default=_described, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def stamp(part: str, protocol: str, device: str, depends_on: str) -> Record:
    """Return the columns that every record has; see the top of this file."""
    versions = {"frhsic": __version__, "torch": torch.__version__}
    where = {"device": device, "hardware": hardware(torch.device(device))}
    return {"part": part, "protocol": protocol, **where, **versions, "depends_on": depends_on}


@cache
def hardware(device: torch.device) -> str:
    """Return the name of a device's processor or GPU."""
    if device.type == "cuda":
        return str(torch.cuda.get_device_name(device))
    listed = Path("/proc/cpuinfo")
    lines = (
        listed.read_text(encoding="utf-8", errors="replace").splitlines() if listed.exists() else []
    )
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine() or "CPU"


def _described(value: Any) -> Any:
    if isinstance(value, partial):
        return [value.func, value.args, value.keywords]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return [
            type(value).__name__,
            {f.name: getattr(value, f.name) for f in dataclasses.fields(value)},
        ]
    return getattr(value, "__qualname__", None) or repr(value)


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}") if math.isfinite(value) else math.nan
    if isinstance(value, (list, tuple)):
        return [_rounded(item) for item in value]
    if isinstance(value, Mapping):
        return {key: _rounded(item) for key, item in value.items()}
    return math.nan if value is None else value


def _restored(value: Any) -> Any:
    if isinstance(value, float):
        return None if math.isnan(value) else value
    if isinstance(value, list):
        return [_restored(item) for item in value]
    if isinstance(value, dict):
        return {key: _restored(item) for key, item in value.items() if item is not None}
    return value
