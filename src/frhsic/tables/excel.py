"""Excel workbooks: the cells of a sheet as text, so that they are read like a text file."""

from __future__ import annotations

import datetime
import itertools
import warnings
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from frhsic._files import TABLE_TIMES, Budget
from frhsic.formatting import did_you_mean, inflect, printable
from frhsic.tables.columns import level_text, quote_names
from frhsic.tables.text import SHOWN_CHARACTERS, UNNAMED

# Rows at the top of a sheet in which its header is looked for.
HEADER_ROWS = 50


@dataclass(frozen=True, eq=False)
class ExcelReader:
    """A sheet of a workbook: names of columns, and rows of text or None."""

    names: tuple[str, ...]
    rows: list[list[str | None]]
    notes: tuple[str, ...]
    decimal = "."
    separator = ""

    @classmethod
    def open(
        cls, path: Path, max_bytes: int | None = None, named: Sequence[str] = ()
    ) -> ExcelReader:
        """Read the first sheet of a workbook that has all columns in `named`, starting at the row
        with these names; if `named` is empty, read the first sheet, starting at its first nonempty
        row.
        """
        try:
            import openpyxl
        except ModuleNotFoundError:
            raise ValueError(
                "this needs openpyxl, which is not installed; run `pip install openpyxl`, or save"
                " the sheet as CSV"
            ) from None
        budget = Budget.of_file(path, TABLE_TIMES, max_bytes)
        with zipfile.ZipFile(path) as archive:
            budget.charge(sum(part.file_size for part in archive.infolist()))
        with path.open("rb") as file, warnings.catch_warnings(action="ignore"):  # about lost styles
            book = openpyxl.load_workbook(file, read_only=True, data_only=True)
            sheet, above = _find_table(book.worksheets, named)
            alike = [
                other.title
                for other in book.worksheets
                if other is not sheet and _find_header(other, named) == _find_header(sheet, named)
            ]
            rows = []
            for row in _filled_rows(sheet):
                budget.charge(8 * len(row))
                rows.append(row)
        titles = rows[:above]
        rows = rows[above:]
        if len(rows) == 1:
            raise ValueError("it has a header but no rows")
        width = max(map(len, rows))
        budget.charge(8 * width * len(rows))
        header, *rest = [row + [None] * (width - len(row)) for row in rows]
        notes = []
        if len(book.worksheets) > 1:
            others = [other.title for other in book.worksheets if other is not sheet]
            notes.append(
                f"The sheet {sheet.title!r} of {path.name} was read, but not {quote_names(others)}."
            )
        if named and alike:
            notes.append(
                f"{quote_names(alike)} {inflect('[has|have]', len(alike))} the same columns; to use"
                f" {inflect('[its|their]', len(alike))} rows, too, append them to the sheet"
                f" {sheet.title!r}."
            )
        if titles:
            above_it = "1 row" if above == 1 else f"{above} rows"
            first = printable(next(filter(None, titles[0])), SHOWN_CHARACTERS)
            notes.append(
                f"{above_it} above the header of the sheet {sheet.title!r}, {first!r},"
                f" {inflect('[was|were]', above)} left out."
            )
        names = tuple((name or "").strip() or f"{UNNAMED}{i}" for i, name in enumerate(header))
        return cls(names, rest, tuple(notes))

    def row_count(self) -> int:
        """Return the number of rows."""
        return len(self.rows)

    def batches(self, columns: list[str]) -> Iterator[Any]:
        """Yield all rows of some columns."""
        import pyarrow as pa

        places = [self.names.index(name) for name in columns]
        cells = [pa.array([row[place] for row in self.rows], pa.string()) for place in places]
        yield pa.RecordBatch.from_arrays(cells, columns)


def _filled_rows(sheet: Any) -> Iterator[list[str | None]]:
    """Yield the cells of each nonempty row of a sheet."""
    sheet.reset_dimensions()  # a cell far away would fill all rows before it
    for cells in sheet.iter_rows(values_only=True):
        row = list(map(_cell_text, cells))
        if any(row):
            yield row


def _find_header(sheet: Any, named: Sequence[str]) -> list[str | None]:
    """Return the first row of a sheet that has all of these columns; empty if there is none."""
    rows = itertools.islice(_filled_rows(sheet), HEADER_ROWS)
    return next((row for row in rows if {*named} <= {str(cell).strip() for cell in row}), [])


def _find_table(sheets: Sequence[Any], named: Sequence[str]) -> tuple[Any, int]:
    """Return the first sheet with all of these columns, and the number of nonempty rows above the
    header; raise if there are several sheets and none has all of them.
    """
    wanted = set(named)
    best: tuple[Any, int] | None = None
    found: set[str] = set()
    header: set[str] = set()
    for sheet in sheets:
        for above, row in enumerate(itertools.islice(_filled_rows(sheet), HEADER_ROWS)):
            names = {cell.strip() for cell in row if cell}
            if best is None or len(names & wanted) > len(found):
                best = (sheet, above)
                found = names & wanted
                header = names
    if best is None:
        raise ValueError("it is empty, without even a header")
    lacking = [name for name in named if name not in found]
    if lacking and len(sheets) > 1:
        raise ValueError(
            f"none of its sheets, {quote_names([sheet.title for sheet in sheets])}, has all"
            f" the named columns; {best[0].title!r} lacks {quote_names(lacking)}."
            f"{did_you_mean(lacking[0], header)}"
        )
    return best


def _cell_text(value: Any) -> str | None:
    """Return a cell as text: a date at midnight without the time, an empty cell as None."""
    if value is None or value == "":
        return None
    if isinstance(value, datetime.datetime) and value.time() == datetime.time():
        value = value.date()
    return level_text(value)
