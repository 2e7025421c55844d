"""Read a file of rows and columns piece by piece, so that memory stays bounded."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from frhsic.formatting import did_you_mean, printable
from frhsic.tables.columns import quoted, typed
from frhsic.tables.dialect import (
    COMPRESSIONS,
    DEFAULTS,
    Dialect,
    ReadOptions,
    check_fields,
    dialect_of,
    open_text,
)
from frhsic.tables.names import check_distinct

CHUNK_ROWS = 100_000
"""Rows of a piece."""
KEPT_ROWS = 1_000_000
"""Rows that are kept at most; of a longer table, a uniform sample."""
KEPT_BYTES = 256 * 2**20
"""Memory that the kept rows may take; tables of many columns keep fewer rows."""

FORMATS = {
    **dict.fromkeys((".csv", ".tsv", ".txt"), "CSV"),
    **dict.fromkeys((".parquet", ".pq"), "Parquet"),
    **dict.fromkeys((".arrow", ".feather", ".ipc"), "Arrow"),
}
PANDAS = [int(part) for part in pd.__version__.split(".")[:2]]
EXACT: dict[str, Any] = {"float_precision": "round_trip"} if PANDAS < [3, 1] else {}
"""Before 3.1, pandas reads some numbers of a text file as a float next to the right one, unless asked not to."""
LONGEST_ERROR = 300
"""Characters of a reader's error that a message repeats at most."""


def column_names(path: Path, options: ReadOptions = DEFAULTS) -> list[str]:
    """Return the names of the columns of a file without reading its rows; raise if two are the same."""
    file_format = _format(path)
    if path.stat().st_size == 0:
        raise ValueError(f"{path.name} cannot be read as {file_format}: it is empty and has not even a header.")
    if file_format == "CSV":
        return list(_dialect(path, options).header)
    with _readable(path, file_format):
        names = [str(name) for name in _schema(path, file_format).names]
    check_distinct(names, path.name)
    return names


def reading_notes(path: Path, options: ReadOptions = DEFAULTS) -> tuple[str, ...]:
    """Return a sentence for each thing about a text file that was found out rather than said, such as its separator."""
    return _dialect(path, options).notes if _format(path) == "CSV" else ()


def decimal(path: Path, options: ReadOptions = DEFAULTS) -> str:
    """Return the decimal sign of a file."""
    return _dialect(path, options).decimal if _format(path) == "CSV" else "."


def pieces(
    path: Path,
    columns: Sequence[str],
    numeric: Sequence[str] = (),
    options: ReadOptions = DEFAULTS,
    *,
    text: Sequence[str] = (),
) -> Iterator[pd.DataFrame]:
    """Yield the rows of a file piece by piece, only these columns of them.

    In the columns `numeric`, marks such as "?" are missing values. In a text file, the columns `text` stay as they are
    written.
    """
    file_format = _format(path)
    if file_format == "CSV":
        dialect = _dialect(path, options)
        marks = [form for mark in options.text_marks for form in (mark, f"{mark} ")]
        with _readable(path, "CSV"):
            check_fields(path, dialect)
            with (
                open_text(path) as file,
                pd.read_csv(
                    file,
                    usecols=list(columns),
                    chunksize=CHUNK_ROWS,
                    na_values={name: [*marks, *(options.number_marks if name in numeric else ())] for name in columns},
                    dtype=dict.fromkeys(text, str),
                    low_memory=False,
                    **EXACT,
                    **dialect.arguments(),
                ) as reader,
            ):
                yield from reader
    elif file_format == "Parquet":
        import pyarrow.parquet as pq

        with _readable(path, file_format), pq.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=CHUNK_ROWS, columns=list(columns)):
                yield batch.to_pandas()
    else:
        import pyarrow as pa

        with _readable(path, file_format), pa.memory_map(str(path)) as source:
            for batch in _open(source)[1]:
                for start in range(0, batch.num_rows, CHUNK_ROWS):
                    yield batch.slice(start, CHUNK_ROWS).select(list(columns)).to_pandas()


def read_frame(path: Path, options: ReadOptions = DEFAULTS) -> pd.DataFrame:
    """Return all rows and columns of a file. In a text file, numbers with marks of missing values become numbers."""
    names = column_names(path, options)
    parts = list(pieces(path, names, options=options))
    frame = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=names)
    return typed(frame, options.number_marks, decimal(path, options)) if _format(path) == "CSV" else frame


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of a file, indexed by their place in it, and how many it has.

    `dropped` counts the rows of the file that lack a value in a column where one is required. `frame` holds the others,
    or of a long file a uniform sample of them, and `derived` the numbers that were made from them.
    """

    frame: pd.DataFrame
    given: int
    dropped: int
    sampled: bool
    derived: np.ndarray
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Derived:
    """Numbers made from the rows as they are read, such as the scores of a model.

    `make` takes a frame of `columns` and returns `width` columns.
    Columns in `numeric` hold numbers, so that marks such as "?" are missing values there.
    """

    columns: tuple[str, ...]
    width: int
    make: Callable[[pd.DataFrame], np.ndarray]
    numeric: tuple[str, ...] = ()


NOTHING = Derived((), 0, lambda frame: np.empty((len(frame), 0)))


def read_rows(
    path: Path,
    columns: Sequence[str],
    *,
    numeric: Sequence[str] = (),
    text: Sequence[str] = (),
    required: Sequence[str] = (),
    derived: Derived = NOTHING,
    seed: int = 0,
    watch: Callable[[int], None] | None = None,
    options: ReadOptions = DEFAULTS,
) -> Rows:
    """Read the rows of a file that have the required values; of a long file, a uniform sample is kept.

    Parameters
    ----------
    path
        CSV, TSV, Parquet or Arrow (IPC, Feather).
    columns
        The columns to keep.
    numeric
        Columns of numbers, where marks such as "?" are missing values.
    text
        Columns of a text file that stay as they are written, such as the identifier 007.
    required
        Columns whose missing values drop a row.
    derived
        Further numbers, made piece by piece from columns of any kind.
    seed
        Seed of the sample.
    watch
        Called with the number of rows read so far.
    options
        How a text file is read.
    """
    columns, raw = list(columns), list(derived.columns)
    wanted, needed = list(dict.fromkeys([*columns, *raw])), list(dict.fromkeys(required))
    reservoir = Reservoir(len(columns) + derived.width, seed)
    given, present = 0, pd.Series(0, index=needed)
    for piece in pieces(path, wanted, [*numeric, *derived.numeric], options, text=text):
        piece.index = pd.RangeIndex(given, given + len(piece))
        given += len(piece)
        has = piece[needed].notna()
        present += has.sum()
        kept = piece[has.all(axis=1)]
        if len(kept):
            made = pd.DataFrame(derived.make(kept[raw]), index=kept.index)
            made.columns = pd.Index([(i,) for i in made.columns], tupleize_cols=False)  # no name of a file is a tuple
            reservoir.add(pd.concat([kept[columns], made], axis=1))
        if watch is not None:
            watch(given)
    if given == 0:
        raise ValueError(f"{path.name} has a header and no rows.")
    for name in needed:
        if present[name] == 0:
            raise ValueError(
                f"column {name!r} has no value in any of the {given:,} rows of {path.name}; choose another column or "
                "fill it."
            )
    if reservoir.seen == 0:
        raise ValueError(f"every row of {path.name} lacks a value in one of {quoted(needed)}; none is left.")
    rows = reservoir.rows()
    return Rows(
        rows[columns],
        given,
        given - reservoir.seen,
        reservoir.seen > len(rows),
        np.ascontiguousarray(rows.iloc[:, len(columns) :].to_numpy(dtype=np.float64)),
        reading_notes(path, options),
    )


class Reservoir:
    """A uniform sample without replacement of rows that come in pieces: the rows with the smallest random keys."""

    def __init__(self, columns: int, seed: int) -> None:
        self.keep, self.seen = max(1000, min(KEPT_ROWS, KEPT_BYTES // (8 * columns))), 0
        self._random = np.random.default_rng(seed)
        self._pieces: list[pd.DataFrame] = []
        self._keys: list[np.ndarray] = []

    def add(self, rows: pd.DataFrame) -> None:
        """Take in more rows."""
        self._pieces.append(rows)
        self._keys.append(self._random.random(len(rows)))
        self.seen += len(rows)
        if sum(map(len, self._keys)) > self.keep + max(CHUNK_ROWS, self.keep // 2):
            self._shrink()

    def rows(self) -> pd.DataFrame:
        """Return the sample in the order of the table; at least one piece must have come."""
        self._shrink()
        return self._pieces[0]

    def _shrink(self) -> None:
        keys = np.concatenate(self._keys)
        kept = np.arange(len(keys))
        if len(keys) > self.keep:
            kept = np.sort(np.argpartition(keys, self.keep)[: self.keep])
        self._pieces = [pd.concat(self._pieces).take(kept)]
        self._keys = [keys[kept]]


def _format(path: Path) -> str:
    """Return the format that the ending of a name stands for; raise if the file or a reader for it is missing."""
    if not path.is_file():
        beside = [entry.name for entry in path.parent.iterdir()] if path.parent.is_dir() else None
        hint = " Its folder is missing too." if beside is None else did_you_mean(path.name, beside)
        raise FileNotFoundError(f"there is no file {path}.{hint}")
    endings = [suffix.lower() for suffix in path.suffixes]
    if len(endings) > 1 and endings[-1] in COMPRESSIONS and FORMATS.get(endings[-2]) == "CSV":
        endings.pop()
    ending = endings[-1] if endings else "nothing"
    if ending not in FORMATS:
        raise ValueError(
            f"{path.name} ends in {ending}; there is a reader for .csv, .tsv, .parquet, .arrow and .feather."
        )
    return FORMATS[ending]


@contextmanager
def _readable(path: Path, file_format: str) -> Iterator[None]:
    """Name the file in the errors of a reader and of its decompression, and make them ValueErrors."""
    try:
        yield
    except UnicodeDecodeError as error:
        raise ValueError(f"{path.name} cannot be read as {file_format}: it is not UTF-8. Save it as UTF-8.") from error
    except MemoryError:
        raise
    except Exception as error:  # gzip, zlib, lzma, zipfile, zstandard and pyarrow each have exceptions of their own
        if isinstance(error, OSError) and error.errno is not None:  # of the system, not of a decompressor
            raise
        said = printable(" ".join(str(error).split()).rstrip("."), LONGEST_ERROR)
        raise ValueError(f"{path.name} cannot be read as {file_format}: {said}.") from error


def _dialect(path: Path, options: ReadOptions) -> Dialect:
    with _readable(path, "CSV"):
        dialect = dialect_of(path, options)
    check_distinct(dialect.header, path.name)
    return dialect


def _schema(path: Path, file_format: str) -> Any:
    import pyarrow as pa
    import pyarrow.parquet as pq

    if file_format == "Parquet":
        return pq.read_schema(path)
    with pa.memory_map(str(path)) as source:
        return _open(source)[0]


def _open(source: Any) -> tuple[Any, Iterator[Any]]:
    """Return schema and batches of an Arrow file, or of a stream."""
    import pyarrow as pa

    try:
        reader = pa.ipc.open_file(source)
    except pa.ArrowInvalid:
        source.seek(0)
        reader = pa.ipc.open_stream(source)
        return reader.schema, iter(reader)
    return reader.schema, map(reader.get_batch, range(reader.num_record_batches))
