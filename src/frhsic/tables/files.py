"""Read tables from files in chunks: cells of text files and workbooks as text, cells of Parquet
files with their types.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from frhsic import _progress
from frhsic.formatting import did_you_mean, inflect, printable
from frhsic.tables.columns import (
    MOST_TABLE_COLUMNS,
    NAMED_ID,
    absent_values,
    check_distinct,
    is_missing,
    is_text,
    mask_codes,
    missing_codes,
    parse_replacements,
    repeated_rows,
    replace_values,
    require_present,
)
from frhsic.tables.excel import ExcelReader
from frhsic.tables.parquet import PIECE_BYTES, ParquetReader
from frhsic.tables.problems import Problem
from frhsic.tables.text import COMPRESSED, UNNAMED, TextReader, is_total, with_points

# Most cells and rows of a piece. However short its text is, a model computes hundreds of numbers
# per row: one for each fold and function of the attributes.
PIECE_CELLS = 2_000_000
PIECE_ROWS = 65_536
# Most rows that are kept, and the memory that they may take; from a longer table, a uniform sample
# is kept.
KEPT_ROWS = 1_000_000
KEPT_BYTES = 256 * 2**20
# Column of the random keys for drawing rows; no column name equals it.
KEY: Any = object()
# Column with hashes of the cells that are not kept.
OTHERS: Any = object()
# Largest relative difference between a sum or mean and the number in a line of totals.
NEARLY_SUM = 0.01
# Fewest rows for which distinct whole numbers count as row numbers.
LEAST_NUMBERED = 50
# Most characters of a reader's error in a message.
LONGEST_ERROR = 300

TEXT_ENDINGS = (".csv", ".tsv", ".txt")
PARQUET_ENDINGS = (".parquet", ".pq")
EXCEL_ENDINGS = (".xlsx", ".xlsm")


@dataclass(frozen=True)
class TableFile:
    """A table file whose header has been read.

    Attributes
    ----------
    reader
        Reads the file in batches.
    date_format
        Format of dates in text; empty if not given.
    missing
        Codes for missing values in each column.
    replacements
        Values to replace in each column, before codes are looked for.
    new_rows
        Whether values to replace may be absent, as in new rows for a model.
    """

    path: Path
    reader: TextReader | ParquetReader | ExcelReader
    date_format: str = ""
    missing: dict[str, tuple[str, ...]] = field(default_factory=dict)
    replacements: dict[str, dict[str, str]] = field(default_factory=dict)
    new_rows: bool = False
    requested: tuple[str, ...] = ()

    @classmethod
    def open(
        cls,
        path: Path,
        separator: str | None = None,
        decimal: str | None = None,
        encoding: str | None = None,
        date_format: str | None = None,
        max_bytes: int | None = None,
        missing: Sequence[str] | None = None,
        replace: Sequence[str] | None = None,
        sheet: str | None = None,
        named: Sequence[str | None] = (),
    ) -> TableFile:
        """Read the header of a file and check that no two columns share a name.

        Parameters
        ----------
        path
            CSV, TSV, Parquet or, with openpyxl, an Excel workbook, of which one sheet is read like
            a text file.
        separator
            Character between two fields of a text file; a tab may be written as a backslash and t.
            By default a comma (a tab in .tsv and .txt files), unless another one of comma,
            semicolon, tab and bar is the only one that splits the first lines into equally many
            fields.
        decimal
            "." or ",". By default a comma if commas do not separate fields and the first lines
            contain numbers with decimal commas and none with points.
        encoding
            By default UTF-8 or, for a file that is not UTF-8, the first of Windows-1252,
            Windows-1250 and Latin-1 that can decode every byte.
        date_format
            A strptime format for columns of text that contain dates.
        max_bytes
            Maximum memory for reading the whole table at once. None means 200 times the size of the
            file, but at least 128 MiB.
        missing
            Codes for missing values, as in :func:`frhsic.tables.columns.missing_codes`.
        replace
            Values to replace, as in :func:`frhsic.tables.columns.parse_replacements`.
        sheet
            Name or number of the sheet of a workbook to read.
        named
            Names of columns that are needed; None is ignored. In a workbook, the first sheet with
            all of these columns and those of codes and replacements is read.
        """
        separator = "\t" if separator == "\\t" else separator
        if separator is not None and (len(separator) != 1 or separator in '"\r\n'):
            raise ValueError(
                f"the delimiter must be one character, such as ';'; got {separator!r}."
            )
        if decimal not in (None, ".", ","):
            raise ValueError(f"the decimal separator must be '.' or ','; got {decimal!r}.")
        kind = _file_kind(path)
        if sheet is not None and kind != "Excel":
            raise ValueError(f"{path.name} is not an Excel workbook; leave out --sheet.")
        with _readable(path):
            if path.stat().st_size == 0:
                raise ValueError("it is empty, without even a header")
            if kind == "CSV":
                reader: Any = TextReader.open(path, separator, decimal, encoding, max_bytes)
            elif kind == "Excel":
                coded = [text.rpartition("=")[0] for text in missing or ()]
                coded += [text.partition("=")[0] for text in replace or ()]
                needed = [name for name in (*named, *coded) if name]
                reader = ExcelReader.open(path, max_bytes, needed, sheet)
            else:
                reader = ParquetReader.open(path, max_bytes)
            names = reader.names
        if len(names) > MOST_TABLE_COLUMNS:
            raise ValueError(
                f"{path.name} has {len(names):,} columns; a table may have at most"
                f" {MOST_TABLE_COLUMNS:,}."
            )
        check_distinct(names, path.name)
        codes = missing_codes(missing or (), names)
        requested = []
        if missing:
            requested.append(f"Treated as missing, as requested: {'; '.join(missing)}.")
        if replace:
            requested.append(f"Replaced, as requested: {'; '.join(replace)}.")
        new = parse_replacements(replace or (), names)
        return cls(path, reader, date_format or "", codes, new, requested=tuple(requested))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return self.reader.names

    @property
    def decimal(self) -> str | None:
        """Decimal separator of a text file, None for a file with typed columns."""
        return self.reader.decimal

    @property
    def separator(self) -> str:
        """Character between the fields of a text file; empty for other files."""
        return self.reader.separator

    @property
    def label_columns(self) -> list[str]:
        """The column that may mark rows of totals in a text file, in addition to the columns that
        are read anyway.
        """
        return list(self.names[:1]) if self.decimal else []

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences about settings that were detected, and about cells changed on request."""
        return (*self.reader.notes, *self.requested)

    def find(self, name: str) -> str:
        """Return a name if the file has such a column; otherwise raise and suggest the closest
        one.
        """
        if name not in self.names:
            raise ValueError(
                f"{self.path.name} has no column {name!r}.{did_you_mean(name, self.names)}"
            )
        return name

    @contextmanager
    def name_in_errors(self) -> Iterator[None]:
        """Add the name of the file to errors about its columns and rows."""
        try:
            yield
        except (ValueError, TypeError) as error:
            if self.path.name in str(error):
                raise
            kind = TypeError if isinstance(error, TypeError) else ValueError
            raise kind(f"{self.path.name}: {error}") from error

    def row_count(self) -> int | None:
        """Return the number of rows (lines, for a text file), or None if counting would take too
        long.
        """
        return self.reader.row_count()

    def pieces(self, columns: Sequence[str]) -> Iterator[pd.DataFrame]:
        """Yield the rows in pieces, with only these columns, indexed by their position. A row of a
        text file with more or fewer fields than the header raises an error.
        """
        columns = list(columns)
        absent = {name: [*own] for name, own in self.replacements.items() if name in columns}
        size = min(PIECE_ROWS, max(1, PIECE_CELLS // max(1, len(columns))))
        place = 0
        with _readable(self.path):
            for batch in _join_batches(self.reader.batches(columns), size):
                for start in range(0, batch.num_rows, size):
                    # floats would round long identifiers
                    piece = batch.slice(start, size).to_pandas(
                        integer_object_nulls=True, ignore_metadata=True
                    )[columns]
                    piece.index = pd.RangeIndex(place, place + len(piece))
                    for name in columns:
                        if name in absent:
                            absent[name] = absent_values(piece[name], absent[name], self.decimal)
                            new = self.replacements[name]
                            piece[name] = replace_values(piece[name], new, self.decimal)
                        if name in self.missing:
                            piece[name] = mask_codes(piece[name], self.missing[name])
                    place += len(piece)
                    yield piece
        if not self.new_rows:
            require_present(absent, self.path.name)


@dataclass(eq=False)
class LeftOut:
    """Positions of lines in a file that are not rows: totals, and repeated headers."""

    totals: list[int] = field(default_factory=list)
    headers: list[int] = field(default_factory=list)

    def drop(self, piece: pd.DataFrame) -> pd.DataFrame:
        """Return the rows of a piece, and record the positions of lines that are not rows: in a
        header, each cell is the name of its column; a line of totals has a label such as "Total".
        """
        labels = {}
        header = pd.Series(piece.shape[1] > 1, index=piece.index)
        for name in piece:
            if not is_text(piece[name]):
                header[:] = False
                continue
            values = piece[name].dropna().unique()
            if own := [value for value in values if is_total(value, begins=True)]:
                labels[name] = own
            if header.any():
                names = [value for value in values if value.strip() == name]
                unnamed = str(name).startswith(UNNAMED)
                header &= is_missing(piece[name]) if unnamed else piece[name].isin(names)
        totals = sorted(_total_rows(piece[~header], labels)) if labels else []
        headers = piece.index[header].tolist()
        self.totals += totals
        self.headers += headers
        return piece.drop(index=[*totals, *headers]) if totals or headers else piece

    def __len__(self) -> int:
        return len(self.totals) + len(self.headers)

    @property
    def problems(self) -> list[Problem]:
        """A note about the lines of each kind."""
        kinds = {
            "totals": (self.totals, "contain[s|] totals of the other rows"),
            "repeated header": (self.headers, "repeat[s|] the names of the columns"),
        }
        problems = []
        for kind, (places, what) in kinds.items():
            if places:
                shown = ", ".join(f"{place + 1:,}" for place in places[:5])
                more = ", ..." if len(places) > 5 else ""
                text = f"[Row|Rows] {shown}{more} {what} and [is|are] left out."
                text = inflect(text, len(places))
                problems.append(Problem(kind, text, (), len(places), "certain"))
        return problems


def _total_rows(piece: pd.DataFrame, labels: dict[Any, list[str]]) -> set[Any]:
    """Return which rows with the given labels are lines of totals: every row with the label has an
    empty cell (at least half of its cells are empty if the label only begins with a word for
    totals), or the only row with the label contains the sums or means of the other rows.
    """
    missing = piece.apply(is_missing)
    empty = missing.loc[:, missing.mean() < 0.5].mean(axis=1)
    found: set[Any] = set()
    for name, own in labels.items():
        for label in own:
            rows = piece.index[piece[name] == label]
            least = empty[rows].min()
            if least >= 0.5 or (is_total(label) and (least > 0 or _adds_up(piece, rows))):
                found.update(rows)
    return found


def _adds_up(piece: pd.DataFrame, rows: pd.Index[Any]) -> bool:
    """Return whether `rows` is a single row and, in most columns of numbers, contains the sum or
    mean of the other rows.
    """
    cells = piece.map(with_points).apply(pd.to_numeric, errors="coerce")
    numbers = cells.loc[:, cells.notna().mean() > 0.5]
    own = numbers.loc[rows[0]]
    rest = numbers.drop(index=rows)
    near = np.zeros(numbers.shape[1], dtype=bool)
    for sums in (rest.sum(), rest.mean()):
        near |= np.isclose(own, sums, rtol=NEARLY_SUM)
    return len(rows) == 1 and bool(near.any()) and near.mean() > 0.5


@dataclass(frozen=True, eq=False)
class FileRows:
    """Rows of a file, indexed by their position in it.

    `dropped` of its `given` rows lack a required value, are `left_out`, or are `repeated`. `frame`
    contains the other rows or, if `is_sample`, a uniform sample of them, and `others` contains
    hashes of the columns that were not kept, except identifiers. For each required column,
    `lacking` counts the rows without a value that have values for the columns named before it.
    """

    frame: pd.DataFrame
    given: int
    dropped: int
    left_out: LeftOut = field(default_factory=LeftOut)
    repeated: int = 0
    others: np.ndarray | None = None
    lacking: dict[str, int] = field(default_factory=dict)

    @property
    def is_sample(self) -> bool:
        """Whether the file has more rows than were kept."""
        return self.given - self.dropped > len(self.frame)

    def without_repeated(self) -> FileRows:
        """Return the rows that do not repeat an earlier one in all columns of the file."""
        repeats = self.repeats()
        repeated = int(repeats.sum())
        return replace(
            self,
            frame=self.frame[~repeats],
            dropped=self.dropped + repeated,
            repeated=repeated,
            others=None if self.others is None else self.others[~repeats],
        )

    def repeats(self, ignored: Sequence[str] = ()) -> np.ndarray:
        """Return which rows repeat an earlier one in all columns of the file except `ignored`."""
        frame = self.frame.drop(columns=list(ignored))
        if self.others is not None:
            frame[OTHERS] = self.others
        return repeated_rows(frame)

    @property
    def repeated_note(self) -> list[str]:
        """A sentence about rows that were left out since they repeat an earlier one."""
        if not self.repeated:
            return []
        if self.repeated == 1:
            return ["1 row that repeats an earlier one is left out."]
        return [f"{self.repeated:,} rows that repeat an earlier one are left out."]

    def note(self, what: str) -> list[str]:
        """Return a sentence with the size of the sample if the rows were sampled; `what` is a
        participle such as "used".
        """
        if not self.is_sample:
            return []
        return [
            f"The table has {self.given:,} rows; {len(self.frame):,} of them, drawn at random, were"
            f" {what}."
        ]


def _join_batches(batches: Iterable[Any], size: int) -> Iterator[Any]:
    """Yield tables of several batches each, since a Parquet file may have thousands of row groups
    of a few rows.
    """
    import pyarrow as pa

    waiting: list[Any] = []
    rows = 0
    text = 0
    for batch in batches:
        waiting.append(batch)
        rows += batch.num_rows
        text += batch.nbytes
        if rows >= size or text >= PIECE_BYTES:
            yield pa.Table.from_batches(waiting)
            waiting = []
            rows = 0
            text = 0
    if waiting:
        yield pa.Table.from_batches(waiting)


def read_rows(
    file: TableFile,
    columns: Sequence[str],
    *,
    required: Sequence[str] = (),
    seed: int = 0,
    whole: bool = False,
) -> FileRows:
    """Read the rows of a file that have the required values; from a long file, a uniform sample is
    kept.

    Parameters
    ----------
    file
        The file.
    columns
        The columns to keep.
    required
        A row with a missing value in any of these columns is dropped.
    seed
        Seed of the sample.
    whole
        Whether to hash the other columns, so that repeated rows can be found.
    """
    columns = list(dict.fromkeys(columns))
    looked_at = list(dict.fromkeys([*columns, *file.label_columns]))
    others = [
        name
        for name in file.names
        if whole and name not in columns and not NAMED_ID.fullmatch(name)
    ]
    required = list(dict.fromkeys(required))
    keep = max(1000, min(KEPT_ROWS, KEPT_BYTES // (8 * len(columns))))
    rng = np.random.default_rng(seed)
    parts: list[pd.DataFrame] = []
    left_out = LeftOut()
    given = 0
    complete = 0
    present = pd.Series(0, index=required)
    lacking = pd.Series(0, index=required)
    total = file.row_count() if _progress.has_listener() else None
    for whole_piece in file.pieces(list(dict.fromkeys([*looked_at, *others]))):
        given += len(whole_piece)
        piece = left_out.drop(whole_piece[looked_at])[columns]
        if others:
            piece = piece.copy()
            piece[OTHERS] = _hash_rows(whole_piece.loc[piece.index, others])
        has = pd.DataFrame({name: ~is_missing(piece[name]) for name in required}, index=piece.index)
        present += has.sum()
        lacking += (~has & has.shift(axis=1, fill_value=True).cummin(axis=1)).sum()
        rows = piece[has.all(axis=1)].copy()
        rows[KEY] = rng.random(len(rows))
        parts.append(rows)
        complete += len(rows)
        if sum(map(len, parts)) > 2 * keep:
            parts = [_sample_rows(parts, keep)]
        _progress.tell(given, total, "rows")
    if given == 0:
        raise ValueError(f"{file.path.name} has a header but no rows.")
    for name in required:
        if present[name] == 0:
            raise ValueError(
                f"column {name!r} is empty in all {given:,} rows of {file.path.name}; fill in"
                " its values or choose another column."
            )
    if complete == 0:
        raise ValueError(
            f"every row of {file.path.name} lacks a value for {' or '.join(map(repr, required))},"
            " so no rows remain; fill in these values or choose other columns."
        )
    frame = _sample_rows(parts, keep).sort_index().drop(columns=KEY)
    hashes = frame.pop(OTHERS).to_numpy() if others else None
    first = {name: int(lacking[name]) for name in required}
    return FileRows(frame, given, given - complete, left_out, others=hashes, lacking=first)


def _hash_rows(piece: pd.DataFrame) -> np.ndarray:
    """Return a hash of each row, without columns that number the rows."""
    text = piece.astype(str)
    numbering = [
        name
        for name in text
        if len(text) >= LEAST_NUMBERED
        and text[name].is_unique
        and text[name].str.fullmatch(r"\s*[0-9]+\s*").all()
    ]
    text = text.drop(columns=numbering)
    if text.shape[1] == 0:
        return np.zeros(len(text), dtype=np.uint64)
    return pd.util.hash_pandas_object(text, index=False).to_numpy()


def _sample_rows(parts: list[pd.DataFrame], keep: int) -> pd.DataFrame:
    """Return the rows with the smallest keys, which are a uniform sample."""
    rows = pd.concat(parts)
    return rows if len(rows) <= keep else rows.nsmallest(keep, KEY)


def _file_kind(path: Path) -> str:
    """Return the kind of a file by its suffix; raise if it does not exist or has another suffix."""
    if not path.is_file():
        if path.exists() and not path.is_dir():
            raise ValueError(
                f"{path} is a pipe or a device, which can be read only once; save it as a file"
                " first."
            )
        hint = ""
        if path.parent.is_dir():
            hint = did_you_mean(path.name, (entry.name for entry in path.parent.iterdir()))
        raise FileNotFoundError(f"there is no file {path}.{hint}")
    name = path.name.lower()
    if name.endswith(PARQUET_ENDINGS):
        return "Parquet"
    if name.endswith(EXCEL_ENDINGS):
        return "Excel"
    for compressed in COMPRESSED:
        name = name.removesuffix(compressed)
    if not name.endswith(TEXT_ENDINGS):
        ending = f"ends in {path.suffix}" if path.suffix else "has no extension"
        raise ValueError(
            f"{path.name} {ending}; supported formats are .csv, .tsv, .parquet and .xlsx. Convert"
            " the table to one of them."
        )
    return "CSV"


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    """Convert errors of readers and decompressors to ValueErrors that name the file."""
    try:
        yield
    except MemoryError as error:
        raise MemoryError(
            f"{path.name} does not fit into memory. Pass fewer rows, or use a machine with more"
            " memory."
        ) from error
    except Exception as error:  # decompressors, zipfile and pyarrow each have their own exceptions
        if isinstance(error, OSError) and error.errno is not None:  # errors of the system
            raise
        words = printable(" ".join(str(error).split()).rstrip("."), LONGEST_ERROR)
        end = "" if words.endswith("?") else "."
        said = f"{path.name} cannot be read as {_file_kind(path)}: {words}{end}"
        raise ValueError(said) from error
