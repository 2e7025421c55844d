"""Settings for LightGBM on tables of any width."""

from __future__ import annotations

from typing import Any

# Widest table whose histograms are built row by row.
MOST_BY_ROWS = 128
# Total number of bins of a table: the more columns it has, the fewer bins each column has, between
# the two limits below. On wide tables, nearly all time is spent on bins. With 768 columns, 63 bins
# took a third of the time that 255 bins take, with equally good predictions; with fewer columns per
# tree, or with principal components, predictions were worse (`benchmarks/embeddings.py`).
BINS_OF_A_TABLE = 65_536
FEWEST_BINS = 63
MOST_BINS = 255


def bins_of_a_column(columns: int) -> int:
    """Return the largest number of bins per column for a table with this many columns: 255 for up
    to 257 columns, 63 for 1,041 or more.
    """
    return min(max(BINS_OF_A_TABLE // max(columns, 1), FEWEST_BINS), MOST_BINS)


def histogram_settings(columns: int) -> dict[str, Any]:
    """Return LightGBM's histogram settings for a table with this many columns."""
    return {
        "max_bin": bins_of_a_column(columns),
        # otherwise LightGBM times both ways to build histograms, which takes as long as a tree and
        # makes the last bits random
        "force_row_wise" if columns <= MOST_BY_ROWS else "force_col_wise": True,
        "verbose": -1,
    }
