"""Tables in several files as a Dask data frame."""

from __future__ import annotations

import glob
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from frhsic.distributed.rows import dask_module

BLOCK_BYTES = 2**27
"""Bytes that one partition of Parquet files holds at most, unless a row group has more."""
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
        return dask.dataframe.read_parquet(
            list(paths), columns=list(columns), split_row_groups="adaptive", blocksize=BLOCK_BYTES
        )
    separator = "\t" if paths[0].endswith(".tsv") else ","
    return dask.dataframe.read_csv(list(paths), usecols=list(columns), sep=separator)
