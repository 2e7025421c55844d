"""Excel workbooks: the cells of the first sheet as text, so that they are read like a text file."""

from __future__ import annotations

import datetime
import warnings
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from frhsic._files import TABLE_TIMES, Budget
from frhsic.formatting import format_count
from frhsic.tables.columns import level_text


@dataclass(frozen=True, eq=False)
class ExcelReader:
    """The first sheet of a workbook: names of columns, and rows of text or None."""

    names: tuple[str, ...]
    rows: list[list[str | None]]
    notes: tuple[str, ...]
    decimal = "."
    separator = ""

    @classmethod
    def open(cls, path: Path, max_bytes: int | None = None) -> ExcelReader:
        """Read a workbook; its first row that is not empty has the names."""
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
        with path.open("rb") as file, warnings.catch_warnings(action="ignore"):  # of lost styles
            book = openpyxl.load_workbook(file, read_only=True, data_only=True)
            sheet = book.worksheets[0]
            sheet.reset_dimensions()  # a cell far away would fill all rows before it
            rows = []
            for cells in sheet.iter_rows(values_only=True):
                row = list(map(_cell_text, cells))
                if any(row):
                    budget.charge(8 * len(row))
                    rows.append(row)
        if not rows:
            raise ValueError("it is empty, without even a header")
        if len(rows) == 1:
            raise ValueError("it has a header and no rows")
        width = max(map(len, rows))
        budget.charge(8 * width * len(rows))
        header, *rest = [row + [None] * (width - len(row)) for row in rows]
        notes = []
        if len(book.worksheets) > 1:
            sheets = format_count(len(book.worksheets), "sheet")
            notes.append(f"{path.name} has {sheets}; the first one, {sheet.title!r}, was read.")
        names = tuple((name or "").strip() or f"Unnamed: {i}" for i, name in enumerate(header))
        return cls(names, rest, tuple(notes))

    def row_count(self) -> int:
        """Return the number of rows."""
        return len(self.rows)

    def batches(self, columns: list[str]) -> Iterator[Any]:
        """Yield all rows, with some columns."""
        import pyarrow as pa

        places = [self.names.index(name) for name in columns]
        cells = [pa.array([row[place] for row in self.rows], pa.string()) for place in places]
        yield pa.RecordBatch.from_arrays(cells, columns)


def _cell_text(value: Any) -> str | None:
    """Return a cell as text: a date at midnight without the time, an empty cell as None."""
    if value is None or value == "":
        return None
    if isinstance(value, datetime.datetime) and value.time() == datetime.time():
        value = value.date()
    return level_text(value)
