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
from frhsic.tables.columns import level_text, list_names
from frhsic.tables.problems import option_text
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
        cls,
        path: Path,
        max_bytes: int | None = None,
        named: Sequence[str] = (),
        chosen: str | None = None,
    ) -> ExcelReader:
        """Read the sheet with the name or number `chosen` or, by default, the first sheet that has
        all columns in `named`, starting at the row with these names; if `named` is empty, read the
        first sheet, starting at its first nonempty row.
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
            headers = {sheet.title: _find_header(sheet, named) for sheet in book.worksheets}
            title = _find_sheet(headers, named, chosen)
            rows = []
            for row in _filled_rows(book[title]):
                budget.charge(8 * len(row))
                rows.append(row)
        above, found = headers.pop(title)
        titles = rows[:above]
        rows = rows[above:]
        if len(rows) == 1:
            raise ValueError("it has a header but no rows")
        width = max(map(len, rows))
        budget.charge(8 * width * len(rows))
        header, *rest = [row + [None] * (width - len(row)) for row in rows]
        notes = []
        alike = [other for other, (_, names) in headers.items() if named and names == found]
        if headers:
            option = option_text("sheet", (alike or [*headers])[0])
            notes.append(
                f"The sheet {title!r} of {path.name} was read, but not {list_names([*headers])}."
                f" To read another sheet, pass its name, such as {option}."
            )
        if alike:
            notes.append(
                f"{list_names(alike)} {inflect('[has|have]', len(alike))} the same columns; to use"
                f" {inflect('[its|their]', len(alike))} rows, too, append them to the sheet"
                f" {title!r}."
            )
        if titles:
            first = printable(next(filter(None, titles[0])), SHOWN_CHARACTERS)
            notes.append(
                f"The {inflect(f'[row|{above:,} rows]', above)} above the header of the sheet"
                f" {title!r} ({first!r}{', ...' if above > 1 else ''})"
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


def _find_header(sheet: Any, named: Sequence[str]) -> tuple[int, list[str]]:
    """Return the number of nonempty rows above the header, the first row with the most of the
    `named` columns, and the names in it; no names if the sheet is empty.
    """
    rows = itertools.islice(_filled_rows(sheet), HEADER_ROWS)
    names = [[cell.strip() for cell in row if cell] for row in rows]
    above = max(range(len(names)), key=lambda place: len({*names[place]} & {*named}), default=0)
    return above, names[above] if names else []


def _find_sheet(
    headers: dict[str, tuple[int, list[str]]], named: Sequence[str], chosen: str | None
) -> str:
    """Return the title of the sheet with the name or number `chosen` or, by default, of the first
    sheet with all columns in `named`; raise if there are several sheets and none has all of these
    columns.
    """
    titles = [title for title, (_, names) in headers.items() if names]
    if not titles:
        raise ValueError("it is empty, without even a header")
    if chosen is not None:
        numbers = {str(number): title for number, title in enumerate(headers, 1)}
        title = chosen if chosen in headers else numbers.get(chosen, "")
        if title not in titles:
            raise ValueError(
                f"{chosen!r} is neither the name nor the number of a nonempty"
                f" sheet.{did_you_mean(chosen, titles)}"
            )
        return title
    best = max(titles, key=lambda title: len({*headers[title][1]} & {*named}))
    lacking = [name for name in named if name not in headers[best][1]]
    if lacking and len(headers) > 1:
        raise ValueError(
            f"none of its sheets, {list_names([*headers])}, has all the named columns; {best!r}"
            f" lacks {list_names(lacking)}.{did_you_mean(lacking[0], headers[best][1])}"
        )
    return best


def _cell_text(value: Any) -> str | None:
    """Return a cell as text: a date at midnight without the time, an empty cell as None."""
    if value is None or value == "":
        return None
    if isinstance(value, datetime.datetime) and value.time() == datetime.time():
        value = value.date()
    return level_text(value)
