"""A user's table: only the columns that are asked for, read piece by piece, so that memory stays bounded."""

from __future__ import annotations

import difflib
import fnmatch
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

Piece = TypeVar("Piece", "np.ndarray", "pd.DataFrame")

__all__ = [
    "KEPT_BYTES",
    "KEPT_ROWS",
    "MISSING",
    "Derived",
    "Reservoir",
    "Table",
    "column_names",
    "expand",
    "find",
    "numbers",
    "pieces",
    "read",
]

CHUNK_ROWS = 100_000
KEPT_ROWS = 1_000_000
"""Rows that are kept at most: of a longer table a uniform sample, and the audit says so."""
KEPT_BYTES = 256 * 2**20
"""Memory that the kept rows may take; tables of many columns keep fewer rows."""
MISSING = ("?", "n/a", "na", "NaN", "nan", "NULL", "null", "None", "none", "-", ".")

CSV = {".csv", ".tsv", ".txt"}
PARQUET = {".parquet", ".pq"}
ARROW = {".arrow", ".feather", ".ipc"}


@dataclass(frozen=True)
class Derived:
    """Numbers made from the rows as they are read, such as what a model makes of them.

    `make` takes a frame with `columns`, text and all, without missing values, and returns `width` columns. Those
    named in `numeric` are numbers, so that marks such as "?" are missing values there.
    """

    columns: tuple[str, ...]
    width: int
    make: Callable[[pd.DataFrame], np.ndarray]
    numeric: tuple[str, ...] = ()


@dataclass(frozen=True)
class Table:
    """The columns that were read, as float64 without missing values, and what became of the rows."""

    columns: dict[str, np.ndarray]
    derived: np.ndarray
    given: int
    dropped: int
    sampled: bool

    @property
    def rows(self) -> int:
        """How many rows are here."""
        return len(next(iter(self.columns.values()))) if self.columns else 0


def column_names(path: Path) -> list[str]:
    """Return the names of the table's columns, without reading its rows."""
    if not path.is_file():
        raise ValueError(f"there is no file {str(path)!r}.{_neighbour(path)}")
    if path.stat().st_size == 0:
        raise ValueError(f"{path.name} is empty: it has not even a header.")
    kind = _kind(path)
    if kind == "csv":
        import pandas as pd

        try:
            names = [str(name) for name in pd.read_csv(path, nrows=0, sep=_separator(path), skipinitialspace=True)]
        except (pd.errors.EmptyDataError, pd.errors.ParserError, UnicodeDecodeError) as error:
            raise ValueError(
                f"{path.name} cannot be read as CSV: {error}. Save it as UTF-8 with one header line."
            ) from error
        return names
    return [str(name) for name in _arrow_schema(path, kind).names]


def find(wanted: str, names: Sequence[str], path: Path) -> str:
    """Return `wanted` if the table has it; else raise and suggest the nearest name."""
    if wanted in names:
        return wanted
    folded = {name.strip().casefold(): name for name in names}
    near = [folded[wanted.strip().casefold()]] if wanted.strip().casefold() in folded else []
    near = near or difflib.get_close_matches(wanted, names, n=1, cutoff=0.5)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    shown = ", ".join(repr(name) for name in names[:12]) + (", ..." if len(names) > 12 else "")
    raise ValueError(f"{path.name} has no column {wanted!r}.{hint} Its columns: {shown}.")


def expand(pattern: str, names: Sequence[str], path: Path) -> list[str]:
    """Return the columns that a pattern such as ``z_*`` matches, in the table's order."""
    if pattern in names:
        return [pattern]
    if not any(c in pattern for c in "*?["):
        return [find(pattern, names, path)]
    found = [name for name in names if fnmatch.fnmatchcase(name, pattern)]
    if not found:
        shown = ", ".join(repr(name) for name in names[:12]) + (", ..." if len(names) > 12 else "")
        raise ValueError(f"no column of {path.name} matches {pattern!r}. Its columns: {shown}.")
    return found


def read(
    path: Path,
    columns: Sequence[str],
    *,
    roles: dict[str, str],
    target: str | None = None,
    positive: str | None = None,
    derived: Derived | None = None,
    seed: int = 0,
    watch: Callable[[int], None] | None = None,
) -> Table:
    """Read `columns` of the table in pieces and return them as numbers; rows with a missing value are dropped.

    Parameters
    ----------
    path
        CSV, TSV, Parquet or Arrow (IPC, Feather).
    columns
        Names, each of which the table has.
    roles
        For messages: what each column is, such as "sensitive attribute".
    target, positive
        The column whose value `positive` becomes 1 and any other 0; without `positive` it must be numeric.
    derived
        Further numbers, made piece by piece from columns of any kind.
    seed
        Of the sample that is kept from a long table.
    watch
        Called with the number of rows read so far.
    """
    columns = list(dict.fromkeys(columns))
    derived = derived or Derived((), 0, lambda frame: np.empty((len(frame), 0)))
    raw = list(derived.columns)
    width = len(columns) + derived.width
    reservoir = Reservoir[np.ndarray](width, np.concatenate, seed)
    given = 0
    present = np.zeros(len(columns), dtype=np.int64)
    for frame in pieces(path, list(dict.fromkeys([*columns, *raw])), [*columns, *derived.numeric]):
        values = np.empty((len(frame), len(columns)))
        for i, name in enumerate(columns):
            values[:, i] = numbers(frame[name], name, roles[name], given, positive if name == target else None)
        present += (~np.isnan(values)).sum(axis=0)
        given += len(frame)
        whole = ~np.isnan(values).any(axis=1) & frame[raw].notna().all(axis=1).to_numpy()
        if whole.any():
            reservoir.add(np.concatenate([values[whole], derived.make(frame.loc[whole, raw])], axis=1))
        if watch is not None:
            watch(given)
    if given == 0:
        raise ValueError(f"{path.name} has a header and no rows.")
    for name, count in zip(columns, present):
        if count == 0:
            raise ValueError(
                f"column {name!r} ({roles[name]}) has no value in any of the {given:,} rows of {path.name}; "
                "choose another column or fill it."
            )
    if reservoir.seen == 0:
        raise ValueError(
            f"every row of {path.name} lacks a value in one of {', '.join(map(repr, [*columns, *raw]))}; none is left."
        )
    rows = reservoir.rows()
    return Table(
        columns={name: np.ascontiguousarray(rows[:, i]) for i, name in enumerate(columns)},
        derived=np.ascontiguousarray(rows[:, len(columns) :]),
        given=given,
        dropped=given - reservoir.seen,
        sampled=reservoir.seen > len(rows),
    )


class Reservoir(Generic[Piece]):
    """A uniform sample without replacement of rows that come in pieces: those with the smallest random keys.

    Pieces are arrays or frames, which `join` puts together; `width` columns of them fit into memory.
    """

    def __init__(self, width: int, join: Callable[[list[Piece]], Piece], seed: int) -> None:
        self.keep, self.seen = max(1000, min(KEPT_ROWS, KEPT_BYTES // (8 * width))), 0
        self._join: Callable[[list[Piece]], Piece] = join
        self._random = np.random.default_rng(seed)
        self._pieces: list[Piece] = []
        self._keys: list[np.ndarray] = []
        self._held = 0

    def add(self, rows: Piece) -> None:
        """Take in more rows."""
        self._pieces.append(rows)
        self._keys.append(self._random.random(len(rows)))
        self.seen += len(rows)
        self._held += len(rows)
        if self._held > self.keep + max(CHUNK_ROWS, self.keep // 2):
            self._shrink()

    def rows(self) -> Piece:
        """Return the sample, in the order of the table; at least one row must have come."""
        if self._held > self.keep or len(self._pieces) > 1:
            self._shrink()
        return self._pieces[0]

    def _shrink(self) -> None:
        keys = np.concatenate(self._keys)
        chosen = np.arange(len(keys))
        if len(keys) > self.keep:
            chosen = np.sort(np.argpartition(keys, self.keep)[: self.keep])
        rows = self._join(self._pieces).take(chosen, axis=0)
        self._pieces, self._keys = [rows], [keys[chosen]]
        self._held = len(rows)


def pieces(path: Path, columns: list[str], numeric: list[str]) -> Iterator[pd.DataFrame]:
    """Yield the rows of a table piece by piece; in the columns `numeric`, marks such as "?" are missing values."""
    kind = _kind(path)
    if kind == "csv":
        yield from _csv_pieces(path, columns, numeric)
    elif kind == "parquet":
        import pyarrow.parquet as pq

        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=CHUNK_ROWS, columns=columns):
                yield batch.to_pandas()
    else:
        import pyarrow as pa

        with pa.memory_map(str(path)) as source:
            reader = _arrow_reader(source)
            indexed = hasattr(reader, "num_record_batches")
            for batch in (reader.get_batch(i) for i in range(reader.num_record_batches)) if indexed else reader:
                for start in range(0, batch.num_rows, CHUNK_ROWS):
                    yield batch.slice(start, CHUNK_ROWS).select(columns).to_pandas()


def _csv_pieces(path: Path, columns: list[str], numeric: list[str]) -> Iterator[pd.DataFrame]:
    import pandas as pd

    try:
        with pd.read_csv(
            path,
            usecols=columns,
            chunksize=CHUNK_ROWS,
            sep=_separator(path),
            skipinitialspace=True,
            na_values={name: list(MISSING) for name in numeric},  # in a column of text "none" may be a level
            low_memory=False,
        ) as reader:
            yield from reader
    except pd.errors.EmptyDataError:
        return
    except (pd.errors.ParserError, UnicodeDecodeError) as error:
        raise ValueError(f"{path.name} cannot be read as CSV: {error}.") from error


def numbers(column: pd.Series[Any], name: str, role: str, offset: int, positive: str | None) -> np.ndarray:
    """A piece of a column as float64, missing values as NaN; text and dates raise and say what to do."""
    import pandas as pd

    if positive is not None:
        missing = column.isna().to_numpy()
        if pd.api.types.is_numeric_dtype(column):
            try:
                equal = (column == float(positive)).to_numpy(dtype=float, na_value=np.nan)
            except ValueError:
                raise ValueError(
                    f"--positive is {positive!r}, but the target {name!r} holds numbers; pass one of them."
                ) from None
        else:
            equal = (column.astype(str).str.strip() == positive.strip()).to_numpy(dtype=float)
        return np.where(missing, np.nan, equal)
    if pd.api.types.is_bool_dtype(column) or pd.api.types.is_numeric_dtype(column):
        if pd.api.types.is_complex_dtype(column):
            raise ValueError(f"column {name!r} ({role}) is complex; write its real and imaginary parts as columns.")
        return column.to_numpy(dtype=np.float64, na_value=np.nan)
    if pd.api.types.is_datetime64_any_dtype(column) or pd.api.types.is_timedelta64_dtype(column):
        raise ValueError(
            f"column {name!r} ({role}) holds dates; write it as a number first, such as days since a reference."
        )
    numbers = pd.to_numeric(column, errors="coerce")
    bad = numbers.isna() & column.notna()
    if not bool(bad.any()):
        return numbers.to_numpy(dtype=np.float64, na_value=np.nan)
    first = int(np.flatnonzero(bad.to_numpy())[0])
    examples = ", ".join(repr(str(value)[:30]) for value in pd.unique(column[bad])[:3])
    raise ValueError(
        f"column {name!r} ({role}) is not numeric: it holds {examples}, first in row {offset + first + 1}. "
        + _remedy(role)
    )


def _remedy(role: str) -> str:
    if role == "target":
        return "Pass --positive VALUE to say which value counts as 1."
    if role == "sensitive attribute":
        return (
            "A continuous attribute is audited here: write its values as numbers (two groups as 0 and 1, ordered "
            "levels as their rank), or choose a numeric column."
        )
    return "Write its values as numbers, or choose a numeric column."


def _kind(path: Path) -> str:
    suffixes = [suffix.lower() for suffix in path.suffixes]
    last = suffixes[-1] if suffixes else ""
    if last in {".gz", ".bz2", ".xz", ".zst", ".zip"} and len(suffixes) > 1:
        last = suffixes[-2] if suffixes[-2] in CSV else last
    if last in CSV:
        return "csv"
    if last in PARQUET:
        return "parquet"
    if last in ARROW:
        return "arrow"
    raise ValueError(
        f"{path.name} ends in {last or 'nothing'}; pass a table that ends in .csv, .tsv, .parquet, .arrow or .feather."
    )


def _separator(path: Path) -> str:
    return "\t" if ".tsv" in {suffix.lower() for suffix in path.suffixes} else ","


def _arrow_schema(path: Path, kind: str) -> Any:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        if kind == "parquet":
            return pq.read_schema(path)
        with pa.memory_map(str(path)) as source:
            return _arrow_reader(source).schema
    except pa.ArrowInvalid as error:
        raise ValueError(f"{path.name} cannot be read as {kind.title()}: {error}") from error


def _arrow_reader(source: Any) -> Any:
    """The reader of an Arrow file, or of a stream, which does not know its number of batches."""
    import pyarrow as pa

    try:
        return pa.ipc.open_file(source)
    except pa.ArrowInvalid:
        source.seek(0)
        return pa.ipc.open_stream(source)


def _neighbour(path: Path) -> str:
    if not path.parent.is_dir():
        return f" The folder {str(path.parent)!r} is not there either."
    near = difflib.get_close_matches(path.name, [entry.name for entry in path.parent.iterdir()], n=1)
    return f" Did you mean {near[0]!r}?" if near else ""
