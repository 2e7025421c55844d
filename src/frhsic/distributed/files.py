"""Tables in several files as a Dask data frame."""

from __future__ import annotations

import glob
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from frhsic.distributed.rows import dask_module

if TYPE_CHECKING:
    import pandas as pd

ENTRIES = 1 << 24
"""Numbers that one partition of Parquet files holds at most, unless a row group has more: 128 MB."""
PARQUET, TEXT = (".parquet", ".pq"), (".csv", ".tsv")


def table_files(pattern: str) -> list[str]:
    """Return the files of a path, of a folder, or of a pattern such as ``"scores-*.parquet"``, sorted by name.

    Examples
    --------
    >>> table_files("no-such-*.parquet")
    Traceback (most recent call last):
    FileNotFoundError: no file matches 'no-such-*.parquet'.
    """
    if Path(pattern).is_dir():
        pattern = str(Path(glob.escape(pattern)) / "*.parquet")
    paths = sorted(glob.glob(pattern))
    if not paths:
        raise FileNotFoundError(f"no file matches {pattern!r}.")
    endings = {Path(path).suffix.lower() for path in paths}
    if not (endings <= set(PARQUET) or endings <= set(TEXT)):
        raise ValueError(
            f"{pattern!r} matches files that end in {', '.join(sorted(endings))}; pass Parquet or CSV alone."
        )
    return paths


def file_columns(path: str) -> list[str]:
    """Return the names of the columns of one file."""
    if path.endswith(PARQUET):
        from pyarrow import parquet

        return list(parquet.read_schema(path).names)
    import pandas as pd

    return list(pd.read_csv(path, nrows=0, sep="\t" if path.endswith(".tsv") else ",").columns)


def read_files(paths: Sequence[str], columns: Sequence[str]) -> Any:
    """Return columns of files as a Dask data frame; a file that lacks one of them raises."""
    dask = dask_module()
    for path in paths:
        names = file_columns(path)
        missing = [column for column in columns if column not in names]
        if missing:
            raise ValueError(f"{path} has no column {missing[0]!r}; its columns are {', '.join(names)}.")
    if paths[0].endswith(PARQUET):
        from pyarrow import parquet

        empty = parquet.read_schema(paths[0]).empty_table().select(list(columns)).to_pandas()
        most = max(ENTRIES // len(columns), 1)
        pieces = [piece for path in paths for piece in _pieces(path, most)]
        # types are checked in each partition: those of the first file need not be those of the others
        return dask.dataframe.from_map(_read_piece, pieces, columns=list(columns), meta=empty, enforce_metadata=False)
    separator = "\t" if paths[0].endswith(".tsv") else ","
    return dask.dataframe.read_csv(list(paths), usecols=list(columns), sep=separator)


def _pieces(path: str, most: int) -> list[tuple[str, list[int]]]:
    """Return a file as runs of its row groups with at most `most` rows each, or one row group if that has more."""
    from pyarrow import parquet

    about = parquet.read_metadata(path)
    pieces: list[tuple[str, list[int]]] = []
    rows = 0
    for group in range(about.num_row_groups):
        size = about.row_group(group).num_rows
        if not pieces or rows + size > most:
            pieces.append((path, []))
            rows = 0
        pieces[-1][1].append(group)
        rows += size
    return pieces


def _read_piece(piece: tuple[str, list[int]], columns: list[str]) -> pd.DataFrame:
    from pyarrow import parquet

    path, groups = piece
    with parquet.ParquetFile(path) as file:
        rows: pd.DataFrame = file.read_row_groups(groups, columns=columns, use_threads=False).to_pandas()
        return rows
