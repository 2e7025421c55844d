"""Tables as pure functions of records."""

from frhsic_paper.tables.table import Cell, Column, Spread, Table

__all__ = ["Cell", "Column", "Spread", "Table"]
