"""Tables as pure functions of records."""

from frhsic.experiments.tables.table import Cell, Column, Spread, Table

__all__ = ["Cell", "Column", "Spread", "Table"]
