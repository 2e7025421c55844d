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
from frhsic.tables.columns import MISSING_MARKS, typed
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
LONGEST_ERROR = 300
"""Characters of a reader's error that a message repeats at most."""
COMPRESSIONS = (".gz", ".bz2", ".xz", ".zst", ".zip")


@dataclass(frozen=True)
class ReadOptions:
    """How a text file is read. Parquet and Arrow files say themselves how.

    Attributes
    ----------
    separator : str, optional
        Text between two fields. Left out, a tab in .tsv and .txt files and a comma in others.
    number_marks : tuple of str
        Marks of a missing value in a column of numbers, beside an empty field.
    text_marks : tuple of str
        Marks of a missing value in any column.
    """

    separator: str | None = None
    number_marks: tuple[str, ...] = MISSING_MARKS
    text_marks: tuple[str, ...] = ()

    def arguments(self, path: Path) -> dict[str, Any]:
        """Return the arguments of `pandas.read_csv` for a file."""
        tabs = {suffix.lower() for suffix in path.suffixes} & {".tsv", ".txt"}
        # index_col=False: a comma at the end of each row must not shift the columns
        return {"sep": self.separator or ("\t" if tabs else ","), "skipinitialspace": True, "index_col": False}


DEFAULTS = ReadOptions()


def column_names(path: Path, options: ReadOptions = DEFAULTS) -> list[str]:
    """Return the names of the columns of a file without reading its rows; raise if two are the same."""
    file_format = _format(path)
    if path.stat().st_size == 0:
        raise ValueError(f"{path.name} cannot be read as {file_format}: it is empty and has not even a header.")
    with _readable(path, file_format):
        if file_format != "CSV":
            names = header = [str(name) for name in _schema(path, file_format).names]
        else:
            arguments = options.arguments(path)
            names = [str(name) for name in pd.read_csv(path, nrows=0, **arguments)]
            # as they are written: pandas numbers names that occur twice
            header = pd.read_csv(path, header=None, nrows=1, dtype=str, **arguments).iloc[0].dropna().tolist()
    check_distinct(header, path.name)
    return names


def pieces(
    path: Path, columns: Sequence[str], numeric: Sequence[str] = (), options: ReadOptions = DEFAULTS
) -> Iterator[pd.DataFrame]:
    """Yield the rows of a file piece by piece, only these columns of them.

    In the columns `numeric`, marks such as "?" are missing values.
    """
    file_format = _format(path)
    if file_format == "CSV":
        text = [form for mark in options.text_marks for form in (mark, f"{mark} ")]
        with (
            _readable(path, "CSV"),
            pd.read_csv(
                path,
                usecols=list(columns),
                chunksize=CHUNK_ROWS,
                na_values={name: [*text, *(options.number_marks if name in numeric else ())] for name in columns},
                low_memory=False,
                **options.arguments(path),
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
    return typed(frame, options.number_marks) if _format(path) == "CSV" else frame


def read_sample(
    path: Path,
    columns: Sequence[str],
    numeric: Sequence[str] = (),
    *,
    seed: int = 0,
    watch: Callable[[int], None] | None = None,
    options: ReadOptions = DEFAULTS,
) -> tuple[pd.DataFrame, int]:
    """Return the rows of a file, or of a long one a uniform sample, and how many it has."""
    reservoir = Reservoir(len(columns), seed)
    for piece in pieces(path, columns, numeric, options):
        reservoir.add(piece)
        if watch is not None:
            watch(reservoir.seen)
    if reservoir.seen == 0:
        raise ValueError(f"{path.name} has a header and no rows.")
    return reservoir.rows(), reservoir.seen


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
        return self._pieces[0].reset_index(drop=True)

    def _shrink(self) -> None:
        keys = np.concatenate(self._keys)
        kept = np.arange(len(keys))
        if len(keys) > self.keep:
            kept = np.sort(np.argpartition(keys, self.keep)[: self.keep])
        self._pieces = [pd.concat(self._pieces, ignore_index=True).take(kept)]
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
    except MemoryError:
        raise
    except Exception as error:  # gzip, zlib, lzma, zipfile, zstandard and pyarrow each have exceptions of their own
        hint = " Save it as UTF-8 with one header line." if file_format == "CSV" else ""
        said = printable(" ".join(str(error).split()).rstrip("."), LONGEST_ERROR)
        raise ValueError(f"{path.name} cannot be read as {file_format}: {said}.{hint}") from error


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
