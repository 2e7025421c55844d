"""How a text file is written: what stands between fields, the decimal sign, and as many fields in each row."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import itertools
import lzma
import re
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from frhsic.tables.columns import MISSING_MARKS

COMPRESSIONS = (".gz", ".bz2", ".xz", ".zst", ".zip")
SEPARATORS = (",", ";", "\t", "|")
SNIFFED_LINES = 50
_POINT, _COMMA = re.compile(r"[-+]?\d*\.\d+"), re.compile(r"[-+]?\d+,\d+")
_SHOWN = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}


@dataclass(frozen=True)
class ReadOptions:
    """How a text file is read. Parquet and Arrow files say themselves how.

    Attributes
    ----------
    separator : str, optional
        Text between two fields. Left out, a comma (in .tsv and .txt files a tab), unless another of comma, semicolon,
        tab and bar is the only one that splits the first lines into equally many fields.
    decimal : str, optional
        "." or ",". Left out, a comma where commas do not separate fields and the first lines have numbers with decimal
        commas and none with points.
    number_marks : tuple of str
        Marks of a missing value in a column of numbers, beside an empty field.
    text_marks : tuple of str
        Marks of a missing value in any column.
    """

    separator: str | None = None
    decimal: str | None = None
    number_marks: tuple[str, ...] = MISSING_MARKS
    text_marks: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.separator is not None and (len(self.separator) != 1 or self.separator in '"\r\n'):
            raise ValueError(f"the delimiter is {self.separator!r}; pass one character, such as ';'.")
        if self.decimal not in (None, ".", ","):
            raise ValueError(f"the decimal sign is {self.decimal!r}; pass '.' or ','.")
        if self.separator is not None and self.separator == self.decimal:
            raise ValueError(
                f"{self.decimal!r} cannot separate fields and be the decimal sign; pass another of the two."
            )


DEFAULTS = ReadOptions()


@dataclass(frozen=True)
class Dialect:
    """How one text file is written, its header, and what was found out rather than said."""

    separator: str
    decimal: str
    header: tuple[str, ...]
    notes: tuple[str, ...] = ()

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of `pandas.read_csv`, beside the columns."""
        # index_col=False: a separator at the end of each row must not shift the columns
        return {
            "sep": self.separator,
            "decimal": self.decimal,
            "skipinitialspace": True,
            "index_col": False,
            "header": 0,
            "names": list(self.header),
        }


def dialect_of(path: Path, options: ReadOptions = DEFAULTS) -> Dialect:
    """Find out how a text file is written from its first lines."""
    with open_text(path) as file:
        lines = [line for line in itertools.islice(file, SNIFFED_LINES) if line.strip()]
    if not lines:
        raise ValueError("it is empty and has not even a header")
    usual = "\t" if {suffix.lower() for suffix in path.suffixes} & {".tsv", ".txt"} else ","
    separator = options.separator or _separator(lines, usual)
    rows = [row for row in csv.reader(lines, delimiter=separator, skipinitialspace=True) if row]
    decimal = options.decimal or _decimal(rows[1:], separator)
    if separator == decimal:
        raise ValueError(f"{decimal!r} cannot separate its fields and be the decimal sign; say what separates them")
    notes = []
    if options.separator is None and separator != usual:
        notes.append(f"{path.name} was read with {_SHOWN[separator]} between fields.")
    if options.decimal is None and decimal == ",":
        notes.append(f"{path.name} was read with decimal commas.")
    return Dialect(separator, decimal, _header(rows[0]), tuple(notes))


def check_fields(path: Path, dialect: Dialect) -> None:
    """Raise at the first row that has more or fewer fields than the header; one empty field at its end is tolerated."""
    columns, separator = len(dialect.header), dialect.separator
    with open_text(path) as file:
        for number, line in enumerate(file, 1):
            if '"' in line:  # from here on, fields may hold separators and line breaks
                reader = csv.reader(itertools.chain([line], file), delimiter=separator, skipinitialspace=True)
                for row in reader:
                    _check_row(row, columns, number - 1 + reader.line_num, separator)
            elif line.count(separator) + 1 != columns:
                _check_row(line.rstrip("\r\n").split(separator), columns, number, separator)


def _check_row(row: list[str], columns: int, number: int, separator: str) -> None:
    trailing = len(row) == columns + 1 and not row[-1].strip()
    blank = not row or (len(row) == 1 and not row[0].strip())
    if len(row) != columns and not trailing and not blank:
        raise ValueError(
            f"line {number} has {len(row)} fields and the header {columns}, with "
            f"{_SHOWN.get(separator, repr(separator))} between fields. Put text that holds {separator!r} in quotes, or "
            "mend the line"
        )


@contextmanager
def open_text(path: Path) -> Iterator[Any]:
    """Open a text file, compressed or not, as UTF-8 with or without a byte order mark."""
    with _open_bytes(path, path.suffix.lower()) as raw:
        yield io.TextIOWrapper(raw, encoding="utf-8-sig", newline="")


@contextmanager
def _open_bytes(path: Path, ending: str) -> Iterator[Any]:
    if ending == ".zip":
        with zipfile.ZipFile(path) as archive:
            names = [name for name in archive.namelist() if not name.endswith("/")]
            if len(names) != 1:
                raise ValueError(f"it holds {len(names)} files; pass an archive of one")
            with archive.open(names[0]) as raw:
                yield raw
    elif ending == ".zst":
        import pyarrow as pa

        with pa.input_stream(str(path), compression="zstd") as raw:
            yield raw
    else:
        opener: Any = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}.get(ending, open)
        with opener(path, "rb") as raw:
            yield raw


def _separator(lines: list[str], usual: str) -> str:
    """Return the usual separator, unless it does not split the lines evenly and exactly one other does."""
    even = [candidate for candidate in SEPARATORS if _even(lines, candidate)]
    return usual if usual in even or len(even) != 1 else even[0]


def _even(lines: list[str], separator: str) -> bool:
    rows = [row for row in csv.reader(lines, delimiter=separator, skipinitialspace=True) if row]
    if len(lines) == SNIFFED_LINES:  # the last row may go on
        rows.pop()
    columns = len(rows[0]) if rows else 0
    return columns > 1 and all(len(row) == columns or (len(row) == columns + 1 and not row[-1].strip()) for row in rows)


def _decimal(rows: list[list[str]], separator: str) -> str:
    if separator == ",":
        return "."
    fields = [field.strip() for row in rows for field in row]
    commas = any(_COMMA.fullmatch(field) for field in fields)
    return "," if commas and not any(_POINT.fullmatch(field) for field in fields) else "."


def _header(fields: list[str]) -> tuple[str, ...]:
    names = [field.strip() for field in fields]
    if len(names) > 1 and not names[-1]:
        names.pop()
    return tuple(name or f"Unnamed: {i}" for i, name in enumerate(names))
