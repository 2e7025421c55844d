"""Read files of rows and columns piece by piece: cells of a text file as they are written, others
with their types.
"""

from __future__ import annotations

import codecs
import csv
import io
import itertools
import lzma
import mmap
import re
import struct
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from frhsic import _progress
from frhsic.formatting import did_you_mean, printable
from frhsic.tables.columns import MOST_COLUMNS, check_distinct, is_missing, quoted

# Cells of a piece at most, and bytes of a text file that are parsed at once.
CELLS, BLOCK_BYTES = 2_000_000, 2**24
# Rows that are kept at most, and the memory that they may take; of a longer table, a uniform sample
# is kept.
KEPT_ROWS, KEPT_BYTES = 1_000_000, 256 * 2**20
# Lines, and characters of them, by which a text file is known.
SNIFFED_LINES, SNIFFED_CHARACTERS = 50, 2**22
# A file may unpack to this many times its size, and to this many bytes in any case.
MOST_TIMES, ALWAYS_BYTES = 200, 2**28
# Characters of a reader's error that a message repeats at most.
LONGEST_ERROR = 300
LONGEST_WORD = 30

FORMATS = {
    **dict.fromkeys((".csv", ".tsv", ".txt"), "CSV"),
    **dict.fromkeys((".parquet", ".pq"), "Parquet"),
    **dict.fromkeys((".arrow", ".feather", ".ipc"), "Arrow"),
}
COMPRESSED = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd", ".xz": None, ".zip": None}
# What text is read as that is not UTF-8: the first in which each byte has a meaning.
WINDOWS = {"cp1252": "Windows-1252", "cp1250": "Windows-1250", "latin-1": "Latin-1"}
SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
_POINT = re.compile(r"[-+]?[0-9]*\.[0-9]+")
_COMMA = re.compile(r"[-+]?[0-9]+,[0-9]+")
# Text that a spreadsheet takes for a formula, and what is none of it: signed numbers, a sign alone.
_FORMULA = re.compile(r"'*(\s*[=+\-@＝＋－＠]|[\t\r\n])")
_SIGNED = re.compile(r"\s*[-+][0-9.,]*([eE][-+]?[0-9]+)?%?\s*")


@dataclass(frozen=True)
class TableFile:
    """A file whose header was read.

    Attributes
    ----------
    decimal
        Decimal sign of a text file, None for a file whose columns have types.
    header_lines
        Lines of a text file up to the end of its header.
    spaced
        Whether a blank follows each separator, which belongs to no field.
    trailing
        Whether each row ends with a separator.
    notes
        Sentences on what was found out rather than known.
    date_format
        How dates are written in text; empty if that was not said.
    """

    path: Path
    names: tuple[str, ...]
    separator: str = ""
    decimal: str | None = None
    encoding: str = ""
    header_lines: int = 0
    spaced: bool = False
    trailing: bool = False
    notes: tuple[str, ...] = ()
    date_format: str = ""

    @classmethod
    def open(
        cls,
        path: Path,
        separator: str | None = None,
        decimal: str | None = None,
        encoding: str | None = None,
        date_format: str | None = None,
    ) -> TableFile:
        """Read the header of a file and check that two columns never have one name.

        Parameters
        ----------
        path
            CSV, TSV, Parquet or Arrow (IPC, Feather).
        separator
            Character between two fields of a text file; a tab may be written as a backslash and t.
            Left out, a comma (in .tsv and .txt files a tab), unless another of comma, semicolon,
            tab and bar is the only one that splits the first lines into equally many fields.
        decimal
            "." or ",". Left out, a comma where commas do not separate fields and the first lines
            have numbers with decimal commas and none with points.
        encoding
            Left out, UTF-8, or for a file that is not UTF-8, Windows-1252, Windows-1250 or Latin-1,
            whichever has a meaning for each byte.
        date_format
            Format of strptime for columns of text that hold dates.
        """
        separator = "\t" if separator == "\\t" else separator
        if separator is not None and (len(separator) != 1 or separator in '"\r\n'):
            raise ValueError(f"the delimiter is {separator!r}; pass one character, such as ';'.")
        if decimal not in (None, ".", ","):
            raise ValueError(f"the decimal sign is {decimal!r}; pass '.' or ','.")
        is_text = _format(path) == "CSV"
        with _readable(path):
            if path.stat().st_size == 0:
                raise ValueError("it is empty and has not even a header")
            names = () if is_text else tuple(_typed(path)[0].names)
            file = _inspected(path, separator, decimal, encoding) if is_text else cls(path, names)
        if len(file.names) > MOST_COLUMNS:
            raise ValueError(
                f"{path.name} has {len(file.names):,} columns; a table has at most"
                f" {MOST_COLUMNS:,}."
            )
        check_distinct(file.names, path.name)
        return replace(file, date_format=date_format or "")

    def find(self, name: str) -> str:
        """Return a name if the file has such a column; else raise and suggest the nearest one."""
        if name not in self.names:
            raise ValueError(
                f"{self.path.name} has no column {name!r}.{did_you_mean(name, self.names)}"
            )
        return name

    @contextmanager
    def naming(self) -> Iterator[None]:
        """Name the file in errors about its columns and rows."""
        try:
            yield
        except (ValueError, TypeError) as error:
            if self.path.name in str(error):
                raise
            kind = TypeError if isinstance(error, TypeError) else ValueError
            raise kind(f"{self.path.name}: {error}") from error

    def row_count(self) -> int | None:
        """Return the number of rows, of a text file its lines; None where it would take long to
        count.
        """
        kind = _format(self.path)
        if kind == "Parquet":
            from pyarrow import parquet

            with self.path.open("rb") as file:
                return int(parquet.read_metadata(file).num_rows)
        if kind == "Arrow" or self.path.suffix.lower() in COMPRESSED:
            return None
        with self.path.open("rb") as file:
            blocks = iter(lambda: file.read(BLOCK_BYTES), b"")
            lines = sum(block.count(b"\n") for block in blocks)
        return max(lines - self.header_lines, 0)

    def pieces(self, columns: Sequence[str]) -> Iterator[pd.DataFrame]:
        """Yield the rows piece by piece, only these columns of them, indexed by their place.

        A row of a text file that has more or fewer fields than the header raises.
        """
        columns = list(columns)
        size = max(1, CELLS // max(1, len(columns)))
        place = 0
        with _readable(self.path):
            batches = _typed(self.path)[1](columns) if self.decimal is None else self._text(columns)
            for batch in batches:
                for start in range(0, batch.num_rows, size):
                    # floats would round long identifiers
                    piece = batch.slice(start, size).to_pandas(
                        integer_object_nulls=True, ignore_metadata=True
                    )[columns]
                    piece.index = pd.RangeIndex(place, place + len(piece))
                    place += len(piece)
                    yield piece

    def _text(self, columns: list[str]) -> Iterator[Any]:
        """Yield batches of the cells of a text file."""
        import pyarrow as pa
        from pyarrow import csv as arrow_csv

        extra = [""] * self.trailing
        read = arrow_csv.ReadOptions(
            use_threads=False,
            block_size=BLOCK_BYTES,
            skip_rows=self.header_lines,
            column_names=[*self.names, *extra],
            encoding="utf8" if self.spaced else self.encoding.removesuffix("-sig"),
        )
        parse = arrow_csv.ParseOptions(
            delimiter=self.separator,
            newlines_in_values=True,
            ignore_empty_lines=len(self.names)
            > 1,  # an empty line of one column is a missing value
            invalid_row_handler=lambda row: "error" if row.text.strip() else "skip",
        )
        columns = [*columns, *extra]
        convert = arrow_csv.ConvertOptions(
            column_types=dict.fromkeys(columns, pa.string()), include_columns=columns
        )
        with _rewritten(self) if self.spaced else _open(self.path) as stream:
            try:
                for batch in arrow_csv.open_csv(stream, read, parse, convert):
                    if extra and "".join(batch[""].unique().to_pylist()).strip():
                        raise ValueError(
                            f"some rows have a value after the last of the {len(self.names)}"
                            " columns"
                        )
                    yield _unshielded(batch)
            except pa.ArrowInvalid as error:
                sign = SEPARATORS.get(self.separator, repr(self.separator))
                raise ValueError(
                    f"fields are read between {sign}, and text with them needs quotes; {error}"
                ) from error


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of a file, indexed by their place in it.

    `dropped` of its `given` rows lack a value where one is required. `frame` holds the others, or
    if `sampled` a uniform sample of them.
    """

    frame: pd.DataFrame
    given: int
    dropped: int

    @property
    def sampled(self) -> bool:
        """Whether the file has more rows than were kept."""
        return self.given - self.dropped > len(self.frame)

    def note(self, what: str) -> list[str]:
        """Return a sentence on the sample, if it is one: how many rows were `what` ("used")."""
        drawn = (
            f"The table has {self.given:,} rows; {len(self.frame):,} of them, drawn at random, were"
            f" {what}."
        )
        return [drawn] * self.sampled


def read_rows(
    file: TableFile,
    columns: Sequence[str],
    *,
    required: Sequence[str] = (),
    seed: int = 0,
) -> Rows:
    """Read the rows of a file that have the required values; of a long file, a uniform sample is
    kept.

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
    """
    columns, required = list(dict.fromkeys(columns)), list(dict.fromkeys(required))
    keep, rng = (
        max(1000, min(KEPT_ROWS, KEPT_BYTES // (8 * len(columns)))),
        np.random.default_rng(seed),
    )
    parts, keys, given, seen, present = [], [], 0, 0, pd.Series(0, index=required)
    total = file.row_count() if _progress.is_heard() else None
    for piece in file.pieces(columns):
        given += len(piece)
        has = pd.DataFrame({name: ~is_missing(piece[name]) for name in required}, index=piece.index)
        present += has.sum()
        parts.append(piece[has.all(axis=1)])
        keys.append(rng.random(len(parts[-1])))
        seen += len(parts[-1])
        if sum(map(len, keys)) > 2 * keep:  # the rows with the smallest keys are a uniform sample
            parts, keys = _smallest(parts, keys, keep)
        _progress.tell(given, total, "rows")
    if given == 0:
        raise ValueError(f"{file.path.name} has a header and no rows.")
    for name in required:
        if present[name] == 0:
            raise ValueError(
                f"column {name!r} has no value in any of the {given:,} rows of {file.path.name};"
                " choose another column or fill it."
            )
    if seen == 0:
        raise ValueError(
            f"every row of {file.path.name} lacks a value in one of {quoted(required)}; none is"
            " left."
        )
    (frame,), _ = _smallest(parts, keys, keep)
    return Rows(frame, given, given - seen)


def _smallest(
    parts: list[pd.DataFrame], keys: list[np.ndarray], keep: int
) -> tuple[list[Any], list[np.ndarray]]:
    joined = np.concatenate(keys)
    kept = np.sort(np.argsort(joined, kind="stable")[:keep])
    return [pd.concat(parts).take(kept)], [joined[kept]]


def _format(path: Path) -> str:
    """Return the format that the ending of a name stands for; raise if there is no such file or
    reader.
    """
    if not path.is_file():
        if path.exists() and not path.is_dir():
            raise ValueError(
                f"{path} is a pipe or a device, which can be read only once; write it to a file"
                " first."
            )
        folder = path.parent
        hint = (
            did_you_mean(path.name, (entry.name for entry in folder.iterdir()))
            if folder.is_dir()
            else ""
        )
        raise FileNotFoundError(f"there is no file {path}.{hint}")
    *before, ending = ["", *(suffix.lower() for suffix in path.suffixes or ["nothing"])]
    if ending in COMPRESSED and FORMATS.get(before[-1]) == "CSV":
        return "CSV"
    if ending not in FORMATS:
        raise ValueError(
            f"{path.name} ends in {ending}; there is a reader for .csv, .tsv, .parquet, .arrow,"
            " .feather."
        )
    return FORMATS[ending]


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    """Name the file in the errors of a reader and of its decompression, and make them
    ValueErrors.
    """
    try:
        yield
    except MemoryError as error:
        raise MemoryError(f"{path.name} does not fit into memory.") from error
    except (
        Exception
    ) as error:  # gzip, zlib, lzma, zipfile and pyarrow each have exceptions of their own
        if (
            isinstance(error, OSError) and error.errno is not None
        ):  # of the system, not of a decompressor
            raise
        words = printable(" ".join(str(error).split()).rstrip("."), LONGEST_ERROR)
        raise ValueError(f"{path.name} cannot be read as {_format(path)}: {words}.") from error


# Text


def with_points(value: Any) -> Any:
    """Return text that is a number with a decimal comma with a point; anything else as it is.

    Examples
    --------
    >>> with_points("16,5"), with_points("007"), with_points("a,5")
    ('16.5', '007', 'a,5')
    """
    if isinstance(value, str) and _COMMA.fullmatch(value.strip()):
        return value.strip().replace(",", ".")
    return value


def _inspected(
    path: Path, known_separator: str | None, known_decimal: str | None, known: str | None
) -> TableFile:
    """Find out how a text file is written, as far as separator, decimal sign and encoding are not
    known.
    """
    encoding = _encoding(path, known)
    with _open_text(path, encoding) as file:
        lines = _first_lines(file)
        whole = not file.readline(1)
    blank = len(list(itertools.takewhile(lambda line: not line.strip(), lines)))
    if blank == len(lines):
        raise ValueError("it is empty and has not even a header")
    usual = "\t" if {suffix.lower() for suffix in path.suffixes} & {".tsv", ".txt"} else ","
    even = [candidate for candidate in SEPARATORS if _splits_evenly(lines, candidate, whole=whole)]
    separator = known_separator or (usual if usual in even or len(even) != 1 else even[0])
    spaced = f"{separator} " in lines[blank]
    header, *rows = _rows(lines, separator, spaced=spaced, whole=whole) or [[]]
    header_lines = blank + 1 + sum(name.count("\n") for name in header)
    if header_lines >= len(lines):
        raise ValueError("it has a header and no rows")
    decimal = known_decimal or _decimal(rows, separator)
    if separator == decimal:
        raise ValueError(
            f"{decimal!r} cannot separate its fields and be the decimal sign; say what separates"
            " them"
        )
    names = [_unshield(name.strip()) for name in header]
    if len(names) > 1 and not names[-1]:
        names.pop()
    notes = []
    if separator not in (usual, known_separator):
        notes.append(f"{path.name} was read with {SEPARATORS[separator]} between fields.")
    if known_decimal is None and decimal == ",":
        notes.append(f"{path.name} was read with decimal commas.")
    if known is None and encoding in WINDOWS:
        read = f"{path.name} is not UTF-8; it was read as {WINDOWS[encoding]}"
        if encoding == "cp1252" and (word := _read_otherwise(path)):
            other = word.encode("cp1252").decode("cp1250", "replace")
            notes.append(
                f"{read}, with {word!r} in it. If that should be {other!r}, pass --encoding cp1250."
            )
        else:
            notes.append(f"{read}. Name another encoding by --encoding, such as cp1250.")
    return TableFile(
        path,
        tuple(name or f"Unnamed: {i}" for i, name in enumerate(names)),
        separator,
        decimal,
        encoding,
        header_lines,
        spaced,
        bool(rows) and all(len(row) == len(names) + 1 and not row[-1].strip() for row in rows),
        tuple(notes),
    )


def _encoding(path: Path, known: str | None) -> str:
    """Return the encoding of a byte-order mark, or the first in which the whole file is text."""
    with _open(path) as raw:
        mark = raw.read(2)
    guesses = ["utf-8-sig", *WINDOWS]
    if mark in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        guesses = ["utf-16"]
    for encoding in [known] if known else guesses:
        try:
            _check_text(path, encoding)
        except UnicodeError:
            continue
        except LookupError:
            break
        return encoding
    raise ValueError(
        f"it is not text in the encoding {known or 'utf-16'}; name the right one by --encoding,"
        " such as cp1252"
    )


def _check_text(path: Path, encoding: str) -> None:
    """Read a whole file; raise if it is no text, unpacks to far more than its size, or has a line
    that does not fit into a block.
    """
    size = 0
    line = 0
    with _open_text(path, encoding) as file:
        while text := file.read(2**20):
            if "\0" in text:
                raise ValueError(
                    "it has a NUL character; it is damaged or in another encoding, which"
                    " --encoding names"
                )
            line = 0 if "\n" in text or "\r" in text else line + len(text)
            if line > BLOCK_BYTES:
                raise ValueError(f"it has a line of more than {BLOCK_BYTES:,} characters")
            size += len(text)
            _check_size(path, size)


def _check_size(path: Path, size: int) -> None:
    if size > max(MOST_TIMES * path.stat().st_size, ALWAYS_BYTES):
        raise ValueError(
            f"it unpacks to more than {MOST_TIMES} times its size; if that is right, unpack it"
            " first"
        )


def _read_otherwise(path: Path) -> str:
    """Return the first word of a file that Windows-1250 (Central Europe) reads otherwise than
    Windows-1252; empty if there is none.
    """
    high = [bytes([code]) for code in range(128, 256)]
    signs = [one.decode("cp1252", "ignore") for one in high if _differs(one)]
    word = re.compile(rf"\w*[{''.join(signs)}]\w*")
    with _open_text(path, "cp1252") as file:
        while text := file.read(2**20):
            if match := word.search(text):
                return match[0][:LONGEST_WORD]
    return ""


def _differs(byte: bytes) -> bool:
    return byte.decode("cp1252", "ignore") != byte.decode("cp1250", "ignore")


def _first_lines(file: Iterable[str]) -> list[str]:
    """Return the header, a line after it, and as many more as are needed."""
    lines: list[str] = []
    for line in itertools.islice(file, SNIFFED_LINES):
        lines.append(line)
        if len(lines) > 1 and sum(map(len, lines)) > SNIFFED_CHARACTERS:
            break
    return lines


def _rows(lines: list[str], separator: str, *, spaced: bool, whole: bool) -> list[list[str]]:
    """Return the fields of rows that are not blank; unless the lines are the whole file, without
    the last row, which may go on.
    """
    reader = csv.reader(lines, delimiter=separator, skipinitialspace=spaced)
    rows = [row for row in reader if "".join(row).strip()]
    return rows if whole or len(rows) < 2 else rows[:-1]


def _splits_evenly(lines: list[str], separator: str, *, whole: bool) -> bool:
    """Return whether all rows have as many fields as the header, up to an empty one at the end."""
    try:
        header, *rows = _rows(lines, separator, spaced=True, whole=whole)
    except csv.Error:  # a line that it does not split is longer than a field may be
        return False
    columns = len(header)
    return columns > 1 and all(
        len(row) - (len(row) > columns and not row[-1].strip()) == columns for row in rows
    )


def _decimal(rows: list[list[str]], separator: str) -> str:
    if separator == ",":
        return "."
    fields = [cell.strip() for row in rows for cell in row]
    commas = any(_COMMA.fullmatch(cell) for cell in fields)
    return "," if commas and not any(_POINT.fullmatch(cell) for cell in fields) else "."


@contextmanager
def _rewritten(file: TableFile) -> Iterator[Any]:
    """Open a copy of a text file without the blanks after its separators, which pyarrow would
    keep.
    """
    with _open_text(file.path, file.encoding) as text, tempfile.TemporaryFile() as copy:
        rows = csv.reader(text, delimiter=file.separator, skipinitialspace=True)
        stream = io.TextIOWrapper(copy, "utf-8", newline="", write_through=True)
        csv.writer(stream, delimiter=file.separator, lineterminator="\n").writerows(rows)
        stream.seek(0)
        yield copy
        stream.detach()


@contextmanager
def _open_text(path: Path, encoding: str) -> Iterator[io.TextIOWrapper]:
    with _open(path) as raw:
        yield io.TextIOWrapper(raw, encoding, newline="")


def _open(path: Path) -> Any:
    """Open a file that may be compressed, by the ending of its name."""
    import pyarrow as pa

    if path.suffix.lower() == ".xz":
        return lzma.open(path)
    if path.suffix.lower() != ".zip":
        file = pa.PythonFile(path.open("rb"), mode="r")  # pyarrow takes no name that is not UTF-8
        return pa.input_stream(file, compression=COMPRESSED.get(path.suffix.lower()))
    with zipfile.ZipFile(path) as archive:  # whose member keeps the file open
        names = [name for name in archive.namelist() if not name.endswith("/")]
        if len(names) != 1:
            raise ValueError(f"it holds {len(names)} files; pass an archive of one")
        return archive.open(names[0])


def shield(value: Any) -> Any:
    """Return text that a spreadsheet would run as a formula with a quote before it, which
    :class:`TableFile` takes away; anything else as it is.

    Examples
    --------
    >>> shield("=1+1"), shield("-1.5"), shield("it's")
    ("'=1+1", '-1.5', "it's")
    """
    if isinstance(value, str) and _FORMULA.match(value) and not _SIGNED.fullmatch(value):
        return f"'{value}"
    return value


def _unshield(text: str) -> str:
    return text[1:] if text.startswith("'") and shield(text[1:]) == text else text


def _unshielded(batch: Any) -> Any:
    """Return cells of text as they were before :func:`shield`."""
    import pyarrow as pa
    from pyarrow import compute

    columns = batch.columns
    for i, column in enumerate(columns):
        if compute.any(compute.starts_with(column, "'")).as_py():
            cells = [None if cell is None else _unshield(cell) for cell in column.to_pylist()]
            columns[i] = pa.array(cells, column.type)
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)


# Parquet and Arrow


def _typed(path: Path) -> tuple[Any, Callable[[list[str]], Iterable[Any]]]:
    """Return the schema of a file whose columns have types, and what reads batches of some
    columns.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    with path.open("rb") as file:  # pyarrow takes no name that is not UTF-8
        buffer = pa.py_buffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    if _format(path) == "Parquet":
        metadata = pq.read_metadata(pa.BufferReader(buffer))
        groups = map(metadata.row_group, range(metadata.num_row_groups))
        _check_size(path, sum(group.total_byte_size for group in groups))
        schema = metadata.schema.to_arrow_schema()
        # as it is stored: one long text may stand for all rows
        text = [field.name for field in schema if field.type in (pa.string(), pa.binary())]
        reader = pq.ParquetFile(pa.BufferReader(buffer), metadata=metadata, read_dictionary=text)

        def batches(columns: list[str]) -> Iterable[Any]:
            _check_size(path, 8 * metadata.num_rows * len(columns))
            return _unpacked(path, schema, reader.iter_batches(columns=columns))

        return schema, batches
    _check_size(path, sum(map(_unpacked_bytes, _messages(buffer))))
    if _is_arrow_file(buffer):
        reader = pa.ipc.open_file(buffer)
        every: Iterable[Any] = map(reader.get_batch, range(reader.num_record_batches))
    else:
        every = reader = pa.ipc.open_stream(buffer)
    schema = reader.schema
    return schema, lambda columns: _unpacked(path, schema, (b.select(columns) for b in every))


def _unpacked(path: Path, schema: Any, batches: Iterable[Any]) -> Iterator[Any]:
    """Yield batches with the types of a schema, once it is known that their offsets lie within
    their buffers and that they do not stand for far more than the file is large.
    """
    import pyarrow as pa

    size = 0
    for batch in batches:
        batch.validate(full=True)
        # a column of nothing has any number of rows
        size += 8 * batch.num_rows * batch.num_columns + sum(map(_text_bytes, batch.columns))
        _check_size(path, size)
        columns = [
            column if schema.field(name).type == column.type else column.dictionary_decode()
            for name, column in zip(batch.schema.names, batch.columns)
        ]
        yield pa.RecordBatch.from_arrays(columns, batch.schema.names)


def _text_bytes(column: Any) -> int:
    """Return how long the text of all cells is in a column that may point to one text many
    times.
    """
    import pyarrow as pa
    from pyarrow import compute

    views = (pa.string_view(), pa.binary_view())
    several = pa.types.is_dictionary(column.type)
    text = column.dictionary if several else column
    if text.type in views:  # the length of a text stands before its place
        lengths = np.frombuffer(text.buffers()[1], np.int32)[::4][text.offset :][: len(text)]
    elif several and text.type in (pa.string(), pa.large_string(), pa.binary(), pa.large_binary()):
        lengths = compute.binary_length(text).fill_null(0).to_numpy(zero_copy_only=False)
    else:
        return 0
    cells = lengths[column.indices.drop_null().to_numpy()] if several else lengths
    return int(cells.sum(dtype=np.int64))


# The format of Arrow files, as far as it says how large they are (Message.fbs and File.fbs of
# Arrow). A table of FlatBuffers has the offsets of its fields before it.


def _is_arrow_file(buffer: Any) -> bool:
    """Return whether a file has a footer, and is not a stream."""
    return bool(buffer[:6].to_pybytes() == b"ARROW1")


def _messages(buffer: Any) -> Iterator[Any]:
    """Yield the messages of a stream, or those that the footer of a file names."""
    import pyarrow as pa

    if not _is_arrow_file(buffer):
        yield from pa.ipc.MessageReader.open_stream(buffer)
        return
    end = buffer.size - 10
    (length,) = struct.unpack_from("<i", buffer, end)
    footer = buffer[end - length : end].to_pybytes()
    for blocks in (2, 3):  # of dictionaries and of rows
        for start, _, _ in _vector(footer, _field(footer, _follow(footer, 0), blocks), "<qi4xq"):
            yield pa.ipc.read_message(buffer[start:])


def _unpacked_bytes(message: Any) -> int:
    """Return to how many bytes the compressed buffers of a message say that they unpack."""
    if message.type not in ("record batch", "dictionary"):
        return 0
    head = message.metadata.to_pybytes()
    batch = _follow(head, _field(head, _follow(head, 0), 2))
    if message.type == "dictionary":
        batch = _follow(head, _field(head, batch, 1))
    if not _field(head, batch, 3):  # not compressed
        return 0
    buffers = _vector(head, _field(head, batch, 2), "<qq")
    return sum(
        max(struct.unpack_from("<q", message.body, start)[0], length)
        for start, length in buffers
        if length
    )


def _field(table: bytes, place: int, number: int) -> int:
    """Return the place of a field of the table at a place, 0 if it has none."""
    offsets = place - struct.unpack_from("<i", table, place)[0]
    slot = 4 + 2 * number
    (length,) = struct.unpack_from("<H", table, offsets)
    (offset,) = struct.unpack_from("<H", table, offsets + slot) if slot < length else (0,)
    return place + offset if offset else 0


def _follow(table: bytes, place: int) -> int:
    return place + int(struct.unpack_from("<I", table, place)[0])


def _vector(table: bytes, place: int, form: str) -> Iterator[tuple[int, ...]]:
    """Yield the records of a vector."""
    if place:
        start = _follow(table, place)
        (count,) = struct.unpack_from("<I", table, start)
        yield from struct.iter_unpack(form, table[start + 4 :][: count * struct.calcsize(form)])
