"""Read files of rows and columns piece by piece: cells of a text file as they are written, others with their types."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import itertools
import lzma
import re
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from frhsic.formatting import did_you_mean, printable
from frhsic.tables.columns import check_distinct, is_missing, quoted

CELLS = 2_000_000
"""Cells of a piece at most."""
KEPT_ROWS, KEPT_BYTES = 1_000_000, 256 * 2**20
"""Rows that are kept at most, and the memory that they may take; of a longer table, a uniform sample is kept."""
SNIFFED_LINES = 50
LONGEST_ERROR = 300
"""Characters of a reader's error that a message repeats at most."""

FORMATS = {
    **dict.fromkeys((".csv", ".tsv", ".txt"), "CSV"),
    **dict.fromkeys((".parquet", ".pq"), "Parquet"),
    **dict.fromkeys((".arrow", ".feather", ".ipc"), "Arrow"),
}
SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
_POINT, _COMMA = re.compile(r"[-+]?\d*\.\d+"), re.compile(r"[-+]?\d+,\d+")


@dataclass(frozen=True)
class ReadOptions:
    """How a text file is written, as far as it is known; what is None is found out from the file.

    Attributes
    ----------
    separator : str, optional
        Character between two fields. Left out, a comma (in .tsv and .txt files a tab), unless another of comma,
        semicolon, tab and bar is the only one that splits the first lines into equally many fields.
    decimal : str, optional
        "." or ",". Left out, a comma where commas do not separate fields and the first lines have numbers with decimal
        commas and none with points.
    encoding : str, optional
        Left out, UTF-8, or Windows-1252 (Latin-1) for a file that is not UTF-8.
    """

    separator: str | None = None
    decimal: str | None = None
    encoding: str | None = None

    def __post_init__(self) -> None:
        if self.separator is not None and (len(self.separator) != 1 or self.separator in '"\r\n'):
            raise ValueError(f"the delimiter is {self.separator!r}; pass one character, such as ';'.")
        if self.decimal not in (None, ".", ","):
            raise ValueError(f"the decimal sign is {self.decimal!r}; pass '.' or ','.")


@dataclass(frozen=True)
class TableFile:
    """A file whose header was read.

    `decimal` is the decimal sign of a text file and None for one whose columns have types. `spaced` tells whether a
    blank follows each separator, which belongs to no field. `notes` say what was found out rather than known.
    """

    path: Path
    names: tuple[str, ...]
    separator: str | None = None
    decimal: str | None = None
    encoding: str = ""
    spaced: bool = False
    notes: tuple[str, ...] = ()

    @classmethod
    def open(cls, path: Path, options: ReadOptions = ReadOptions()) -> TableFile:  # noqa: B008  # frozen
        """Read the header of a file and check that two columns never have one name."""
        file_format = _format(path)
        with _readable(path, file_format):
            if path.stat().st_size == 0:
                raise ValueError("it is empty and has not even a header")
            file = _inspected(path, options) if file_format == "CSV" else cls(path, _typed_names(path, file_format))
        check_distinct(file.names, path.name)
        return file

    def find(self, name: str) -> str:
        """Return a name if the file has such a column; else raise and suggest the nearest one."""
        if name not in self.names:
            raise ValueError(f"{self.path.name} has no column {name!r}.{did_you_mean(name, self.names)}")
        return name

    def pieces(self, columns: Sequence[str]) -> Iterator[pd.DataFrame]:
        """Yield the rows piece by piece, only these columns of them.

        A row of a text file that has more or fewer fields than the header raises.
        """
        size, file_format = max(1, CELLS // max(1, len(columns))), _format(self.path)
        with _readable(self.path, file_format):
            if file_format == "CSV":
                places = [self.names.index(name) for name in columns]
                with _open_text(self.path, self.encoding) as file:
                    rows = self._rows(file)
                    while part := list(itertools.islice(rows, size)):
                        cells = np.array(part, dtype=object).T  # half of the time of lists
                        yield pd.DataFrame({n: pd.Series(cells[i], dtype=str) for n, i in zip(columns, places)})
            else:
                for batch in _batches(self.path, file_format, list(columns), size):
                    # floats would round long identifiers
                    yield batch.to_pandas(integer_object_nulls=True)[list(columns)]

    def _rows(self, file: Iterable[str]) -> Iterator[list[str]]:
        """Yield the fields of each row below the header of a text file."""
        columns, separator = len(self.names), self.separator or ","
        reader = csv.reader(file, delimiter=separator, skipinitialspace=self.spaced)
        next(row for row in reader if any(map(str.strip, row)))
        for row in reader:
            if len(row) == columns + 1 and not row[-1].strip():
                row.pop()  # a separator at the end of a row
            elif len(row) < 2 <= columns and not "".join(row).strip():
                continue
            row = row or [""]  # an empty line of one column is a row whose value is missing
            if len(row) != columns:
                raise ValueError(
                    f"line {reader.line_num} has {len(row)} fields and the header {columns}, with "
                    f"{SEPARATORS.get(separator, repr(separator))} between fields. Put text that holds {separator!r} "
                    "in quotes, or repair the line"
                )
            yield row


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of a file, indexed by their place in it.

    `dropped` of its `given` rows lack a value where one is required. `frame` holds the others, or if `sampled` a
    uniform sample of them.
    """

    frame: pd.DataFrame
    given: int
    dropped: int

    @property
    def sampled(self) -> bool:
        """Whether the file has more rows than were kept."""
        return self.given - self.dropped > len(self.frame)


def read_rows(
    file: TableFile,
    columns: Sequence[str],
    *,
    required: Sequence[str] = (),
    seed: int = 0,
    watch: Callable[[int], None] | None = None,
) -> Rows:
    """Read the rows of a file that have the required values; of a long file, a uniform sample is kept.

    Parameters
    ----------
    file
        The file.
    columns
        The columns to keep.
    required
        Columns whose missing values drop a row.
    seed
        Seed of the sample.
    watch
        Called with the number of rows read so far.
    """
    columns, required = list(dict.fromkeys(columns)), list(dict.fromkeys(required))
    keep, rng = max(1000, min(KEPT_ROWS, KEPT_BYTES // (8 * len(columns)))), np.random.default_rng(seed)
    parts, keys, given, seen, present = [], [], 0, 0, pd.Series(0, index=required)
    for piece in file.pieces(columns):
        piece.index = pd.RangeIndex(given, given + len(piece))
        given += len(piece)
        has = pd.DataFrame({name: ~is_missing(piece[name]) for name in required}, index=piece.index)
        present += has.sum()
        parts.append(piece[has.all(axis=1)])
        keys.append(rng.random(len(parts[-1])))
        seen += len(parts[-1])
        if sum(map(len, keys)) > 2 * keep:  # the rows with the smallest keys are a uniform sample
            parts, keys = _smallest(parts, keys, keep)
        if watch is not None:
            watch(given)
    if given == 0:
        raise ValueError(f"{file.path.name} has a header and no rows.")
    for name in required:
        if present[name] == 0:
            raise ValueError(
                f"column {name!r} has no value in any of the {given:,} rows of {file.path.name}; choose another "
                "column or fill it."
            )
    if seen == 0:
        raise ValueError(f"every row of {file.path.name} lacks a value in one of {quoted(required)}; none is left.")
    (frame,), _ = _smallest(parts, keys, keep)
    return Rows(frame, given, given - seen)


def _smallest(parts: list[pd.DataFrame], keys: list[np.ndarray], keep: int) -> tuple[list[Any], list[np.ndarray]]:
    joined = np.concatenate(keys)
    kept = np.sort(np.argsort(joined, kind="stable")[:keep])
    return [pd.concat(parts).take(kept)], [joined[kept]]


def _format(path: Path) -> str:
    """Return the format that the ending of a name stands for; raise if there is no such file or reader."""
    if not path.is_file():
        if path.exists() and not path.is_dir():
            raise ValueError(f"{path} is a pipe or a device, which can be read only once; write it to a file first.")
        beside = [entry.name for entry in path.parent.iterdir()] if path.parent.is_dir() else None
        hint = " Its folder is missing too." if beside is None else did_you_mean(path.name, beside)
        raise FileNotFoundError(f"there is no file {path}.{hint}")
    endings = [suffix.lower() for suffix in path.suffixes] or ["nothing"]
    if endings[-1] in OPENERS and FORMATS.get("".join(endings[-2:-1])) == "CSV":
        return "CSV"
    if endings[-1] not in FORMATS:
        raise ValueError(
            f"{path.name} ends in {endings[-1]}; there is a reader for .csv, .tsv, .parquet, .arrow and .feather."
        )
    return FORMATS[endings[-1]]


@contextmanager
def _readable(path: Path, file_format: str) -> Iterator[None]:
    """Name the file in the errors of a reader and of its decompression, and make them ValueErrors."""
    try:
        yield
    except MemoryError:
        raise
    except Exception as error:  # gzip, zlib, lzma, zipfile, zstandard and pyarrow each have exceptions of their own
        if isinstance(error, OSError) and error.errno is not None:  # of the system, not of a decompressor
            raise
        words = printable(" ".join(str(error).split()).rstrip("."), LONGEST_ERROR)
        raise ValueError(f"{path.name} cannot be read as {file_format}: {words}.") from error


# Text


def _inspected(path: Path, options: ReadOptions) -> TableFile:
    """Find out how a text file is written."""
    encoding = _encoding(path, options)
    with _open_text(path, encoding) as file:
        lines = list(itertools.islice(itertools.dropwhile(lambda line: not line.strip(), file), SNIFFED_LINES))
    if not lines:
        raise ValueError("it is empty and has not even a header")
    usual = "\t" if {suffix.lower() for suffix in path.suffixes} & {".tsv", ".txt"} else ","
    separator = options.separator or _separator(lines, usual)
    spaced = f"{separator} " in lines[0]
    rows = [row for row in csv.reader(lines, delimiter=separator, skipinitialspace=spaced) if row]
    decimal = options.decimal or _decimal(rows[1:], separator)
    if separator == decimal:
        raise ValueError(f"{decimal!r} cannot separate its fields and be the decimal sign; say what separates them")
    names = [name.strip() for name in rows[0]]
    if len(names) > 1 and not names[-1]:
        names.pop()
    header = tuple(name or f"Unnamed: {i}" for i, name in enumerate(names))
    notes = {
        f"{path.name} was read with {SEPARATORS.get(separator)} between fields.": separator
        not in (usual, options.separator),
        f"{path.name} was read with decimal commas.": options.decimal is None and decimal == ",",
        f"{path.name} is not UTF-8; it was read as Windows-1252.": options.encoding is None and encoding != "utf-8-sig",
    }
    return TableFile(path, header, separator, decimal, encoding, spaced, tuple(n for n, due in notes.items() if due))


def _encoding(path: Path, options: ReadOptions) -> str:
    """Return the first encoding in which the whole file is text."""
    for encoding in [options.encoding] if options.encoding else ["utf-8-sig", "cp1252", "latin-1"]:
        try:
            with _open_text(path, encoding) as file:
                while text := file.read(2**20):
                    if "\0" in text:
                        raise ValueError("it has a NUL character; it is damaged or in another encoding")
        except UnicodeDecodeError:
            continue
        except LookupError:
            break
        return encoding
    raise ValueError(f"it is not text in the encoding {options.encoding}; name the right one, such as cp1252")


@contextmanager
def _open_text(path: Path, encoding: str) -> Iterator[io.TextIOWrapper]:
    with OPENERS.get(path.suffix.lower(), open)(path, "rb") as raw:
        yield io.TextIOWrapper(raw, encoding, newline="")


def _open_zst(path: Path, mode: str) -> Any:
    import pyarrow as pa

    return pa.input_stream(str(path), compression="zstd")


def _open_zip(path: Path, mode: str) -> Any:
    with zipfile.ZipFile(path) as archive:  # whose member keeps the file open
        names = [name for name in archive.namelist() if not name.endswith("/")]
        if len(names) != 1:
            raise ValueError(f"it holds {len(names)} files; pass an archive of one")
        return archive.open(names[0])


OPENERS: dict[str, Any] = {
    ".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open, ".zst": _open_zst, ".zip": _open_zip,
}  # fmt: skip


def _separator(lines: list[str], usual: str) -> str:
    """Return the usual separator, unless it does not split the lines evenly and exactly one other does."""
    even = [candidate for candidate in SEPARATORS if _even(lines, candidate)]
    return usual if usual in even or len(even) != 1 else even[0]


def _even(lines: list[str], separator: str) -> bool:
    rows = [row for row in csv.reader(lines, delimiter=separator, skipinitialspace=True) if row]
    if len(lines) >= SNIFFED_LINES - 1:  # the last row may go on
        rows.pop()
    columns = len(rows[0]) if rows else 0
    return columns > 1 and all(len(row) == columns or (len(row) == columns + 1 and not row[-1].strip()) for row in rows)


def _decimal(rows: list[list[str]], separator: str) -> str:
    if separator == ",":
        return "."
    fields = [cell.strip() for row in rows for cell in row]
    commas = any(_COMMA.fullmatch(cell) for cell in fields)
    return "," if commas and not any(_POINT.fullmatch(cell) for cell in fields) else "."


# Parquet and Arrow


def _typed_names(path: Path, file_format: str) -> tuple[str, ...]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    if file_format == "Parquet":
        return tuple(pq.read_schema(path).names)
    with pa.memory_map(str(path)) as source:
        return tuple(_arrow(source)[0].names)


def _batches(path: Path, file_format: str, columns: list[str], size: int) -> Iterator[Any]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    if file_format == "Parquet":
        with pq.ParquetFile(path) as file:
            yield from file.iter_batches(batch_size=size, columns=columns)
        return
    with pa.memory_map(str(path)) as source:
        for batch in _arrow(source)[1]:
            for start in range(0, batch.num_rows, size):
                yield batch.slice(start, size).select(columns)


def _arrow(source: Any) -> tuple[Any, Iterator[Any]]:
    """Return schema and batches of an Arrow file, or of a stream."""
    import pyarrow as pa

    try:
        reader = pa.ipc.open_file(source)
    except pa.ArrowInvalid:
        source.seek(0)
        reader = pa.ipc.open_stream(source)
        return reader.schema, iter(reader)
    return reader.schema, map(reader.get_batch, range(reader.num_record_batches))
