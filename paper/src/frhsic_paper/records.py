"""Records of runs: one JSON object a line, appended as it comes, so that a run that was cut off goes on."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

__all__ = ["Record", "Unit", "append", "keep_complete", "read", "replace_unit", "resume"]

Record = dict[str, Any]
Unit = tuple[Any, ...]

DIGITS = 7
"""Significant digits of a float in a record: those of the float32 that it came from."""


def read(path: Path) -> list[Record]:
    """Return the records of a file; a last line that was cut off is left out, a broken one elsewhere is an error."""
    if not path.exists():
        return []
    lines = path.read_text(encoding="utf-8").splitlines()
    records: list[Record] = []
    for number, line in enumerate(lines, start=1):
        try:
            records.append(json.loads(line))
        except json.JSONDecodeError as error:
            if number == len(lines):
                break
            raise ValueError(
                f"line {number} of {path} is not a JSON record, and is not the last one. The file was changed by "
                "hand or by another program; delete it to run the experiment again."
            ) from error
    return records


def append(path: Path, records: Iterable[Mapping[str, Any]]) -> None:
    """Append records to a file, one line each, after making sure that the file ends with a whole line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists():
        _drop_partial_line(path)
    with path.open("a", encoding="utf-8") as file:
        for record in records:
            file.write(json.dumps(_plain(record), separators=(",", ":"), allow_nan=False) + "\n")


def resume(
    path: Path,
    units: Sequence[Unit],
    unit_of: Callable[[Record], Unit],
    sizes: Mapping[Unit, int],
) -> list[Unit]:
    """Return the units still to run, after dropping from the file those that are not whole.

    A unit is what is trained together, and its numbers are only the same to the last bit when it is trained
    together again: so a unit of which some records are there is run anew. More than asked for are enough: a unit of
    more repeats holds those of fewer.
    """
    records = read(path)
    counts: dict[Unit, int] = {}
    for record in records:
        unit = unit_of(record)
        counts[unit] = counts.get(unit, 0) + 1
    whole = {unit for unit in units if counts.get(unit, 0) >= sizes[unit]}
    keep_complete(path, records, [r for r in records if unit_of(r) in whole or unit_of(r) not in sizes])
    return [unit for unit in units if unit not in whole]


def replace_unit(path: Path, fresh: Sequence[Record], unit_of: Callable[[Record], Unit]) -> None:
    """Append records, after dropping from the file those of the same units."""
    units = {unit_of(record) for record in fresh}
    before = read(path)
    keep_complete(path, before, [record for record in before if unit_of(record) not in units])
    append(path, fresh)


def keep_complete(path: Path, before: Sequence[Record], after: Sequence[Record]) -> None:
    """Rewrite the file with the records `after`, if they are fewer than `before`, by way of a temporary name."""
    if len(after) == len(before):
        return
    temporary = path.with_suffix(path.suffix + ".part")
    temporary.unlink(missing_ok=True)
    append(temporary, after)
    if after:
        temporary.replace(path)
    else:
        path.unlink()


def _drop_partial_line(path: Path) -> None:
    content = path.read_bytes()
    if content and not content.endswith(b"\n"):
        path.write_bytes(content[: content.rfind(b"\n") + 1])


def _plain(record: Mapping[str, Any]) -> Record:
    return {key: _rounded(value) for key, value in record.items()}


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}") if math.isfinite(value) else None
    if isinstance(value, (list, tuple)):
        return [_rounded(item) for item in value]
    if isinstance(value, Mapping):
        return {key: _rounded(item) for key, item in value.items()}
    return value
