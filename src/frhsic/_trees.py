"""Settings of LightGBM for tables of any width."""

from __future__ import annotations

from typing import Any

# Columns of a table whose histograms are made row by row, at most.
MOST_BY_ROWS = 128
# Bins of all columns together: the more columns, the fewer bins each of them has, between the two
# counts. Nearly all time on wide tables goes by bins. Of 768 columns, 63 bins took a third of the
# time of 255 and predicted as well; fewer columns for each tree, and principal components in place
# of the columns, predicted worse (`benchmarks/embeddings.py`).
BINS_OF_A_TABLE = 65_536
FEWEST_BINS = 63
MOST_BINS = 255


def bins_of_a_column(columns: int) -> int:
    """Return how many bins each column of a table of so many columns has at most: 255 up to 257
    columns, 63 from 1,041 on.
    """
    return min(max(BINS_OF_A_TABLE // max(columns, 1), FEWEST_BINS), MOST_BINS)


def histogram_settings(columns: int) -> dict[str, Any]:
    """Return how LightGBM makes histograms of a table of so many columns."""
    return {
        "max_bin": bins_of_a_column(columns),
        # LightGBM would try both ways to make histograms, which takes as long as a tree, and chance
        # would decide the last bits
        "force_row_wise" if columns <= MOST_BY_ROWS else "force_col_wise": True,
        "verbose": -1,
    }
