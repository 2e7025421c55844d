"""Tables as data: rows of numbers, and the format of each column."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import compress

import numpy as np

from frhsic_paper.protocol import PROTOCOLS, Protocol
from frhsic_paper.records import Record
from frhsic_paper.results import Results

MISSING = "—"


@dataclass(frozen=True)
class Spread:
    """A mean with a standard deviation or error, and whether it is printed in bold."""

    mean: float
    deviation: float | None = None
    bold: bool = False

    def __float__(self) -> float:
        return self.mean


Cell = str | int | float | Spread | bool | None


@dataclass(frozen=True)
class Column:
    """A heading, the decimals of the column's numbers (None for three significant digits), a factor
    for them, and whether they are the authors' numbers instead of ours.
    """

    name: str
    decimals: int | None = 3
    factor: float = 1.0
    printed: bool = False


@dataclass(frozen=True)
class Table:
    """Rows and columns; a heading given as text is a column with three decimals.

    Examples
    --------
    >>> print(
    ...     Table.from_rows(
    ...         ["method", Column("GDP", 2)], [("FREM", Spread(0.5, 0.1)), ("ADV", None)]
    ...     ).markdown()
    ... )
    | method | GDP |
    |---|---:|
    | FREM | 0.50 ± 0.10 |
    | ADV | — |
    """

    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(
                    f"the row {row} has {len(row)} cells, but the table has {len(self.columns)}"
                    " columns."
                )

    @classmethod
    def from_rows(cls, headings: Iterable[str | Column], rows: Iterable[Iterable[Cell]]) -> Table:
        """Return a table, given any sequences of headings and rows."""
        columns = tuple(
            Column(heading) if isinstance(heading, str) else heading for heading in headings
        )
        return cls(columns, tuple(tuple(row) for row in rows))

    def without_print(self) -> Table:
        """Return the table without the authors' numbers."""
        own = [not column.printed for column in self.columns]
        rows = (tuple(compress(row, own)) for row in self.rows)
        return Table(tuple(compress(self.columns, own)), tuple(rows))

    def markdown(self) -> str:
        """Return the table as GitHub Markdown, with right-aligned numbers. Repeated names in the
        first column are left out.
        """
        lines = [_line([column.name for column in self.columns])]
        lines.append(
            "|"
            + "|".join("---:" if self._numeric(i) else "---" for i in range(len(self.columns)))
            + "|"
        )
        before: Cell = None
        for name, *cells in self.rows:
            shown = "" if isinstance(name, str) and name == before else name
            texts = [cell_text(cell, column) for cell, column in zip((shown, *cells), self.columns)]
            lines.append(_line(texts))
            before = name
        return "\n".join(lines)

    def _numeric(self, index: int) -> bool:
        cells = [row[index] for row in self.rows if row[index] is not None]
        return bool(cells) and all(
            isinstance(cell, (int, float, Spread)) and not isinstance(cell, bool) for cell in cells
        )


@dataclass(frozen=True)
class Listed:
    """A table with a heading; with `folded`, it is collapsed below a line that the reader can
    open.
    """

    heading: str
    table: Table
    folded: bool = False


def protocol_tables(
    name: str,
    heading: str,
    make: Callable[[Sequence[Record], Protocol], Table],
    *,
    folded: bool = False,
) -> Callable[[Results], list[Listed]]:
    """Return the tables of a study, one for each protocol for which it has records. The authors'
    numbers are in the table for the published protocol.
    """

    def tables(results: Results) -> list[Listed]:
        listed = []
        for protocol in PROTOCOLS.values():
            if records := results.records(name, protocol.name):
                table = make(records, protocol)
                shown = table if protocol.printed else table.without_print()
                listed.append(Listed(f"{heading}, {protocol.name} protocol", shown, folded))
        return listed

    return tables


def mean_and_deviation(values: Sequence[float] | np.ndarray) -> Spread | None:
    """Return the mean of some values with their standard deviation (ddof 1); None if there are no
    values.
    """
    if not len(values):
        return None
    return Spread(
        float(np.mean(values)), float(np.std(values, ddof=1)) if len(values) > 1 else None
    )


def mean_and_error(values: Sequence[float] | np.ndarray) -> Spread | None:
    """Return the mean of some values with its standard error; None if there are no values."""
    spread = mean_and_deviation(values)
    if spread is None or spread.deviation is None:
        return spread
    return Spread(spread.mean, float(spread.deviation / np.sqrt(len(values))))


def cell_text(cell: Cell, column: Column) -> str:
    """Return a cell as text."""
    if cell is None:
        return MISSING
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if isinstance(cell, str):
        return cell
    if isinstance(cell, int):
        return str(cell)
    value = float(cell) * column.factor
    text = number(value, column.decimals)
    if isinstance(cell, Spread):
        if cell.deviation is not None and math.isfinite(cell.deviation):
            text += f" ± {number(cell.deviation * column.factor, column.decimals)}"
        if cell.bold:
            text = f"**{text}**"
    return text


def number(value: float, decimals: int | None = None) -> str:
    """Return a number with fixed decimals, or with three significant digits.

    Examples
    --------
    >>> number(0.12345, 2), number(0.00012345), number(12345.0), number(float("nan"))
    ('0.12', '0.000123', '1.23e+04', '—')
    """
    if not math.isfinite(value):
        return MISSING
    return f"{value:.3g}" if decimals is None else f"{value:.{decimals}f}"


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
