"""Dask clusters, and data frames of tables in several files."""

from __future__ import annotations

import contextlib
import glob
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

Keys = NDArray[np.uint64]

TIMEOUT = 10  # seconds to wait for a scheduler

# Number of partitions for reading Parquet files, so that many workers share them, and the fewest
# and most bytes of a partition, unless a row group has more.
PARTITIONS = 128
PARTITION_BYTES = (2**22, 2**27)

PARQUET = (".parquet", ".pq")
TEXT = (".csv", ".tsv")


def dask_module() -> Any:
    """Return the module dask, or raise an error with installation instructions."""
    try:
        import dask
        import dask.dataframe
        import distributed  # noqa: F401  # only checks that it is installed
    except ImportError as error:
        raise ImportError(
            "Dask is not installed; install it with pip install 'dask[dataframe,distributed]'."
        ) from error
    return dask


@contextlib.contextmanager
def cluster(address: str, *, timeout: float = TIMEOUT) -> Iterator[Any]:
    """Connect to a Dask cluster for the duration of a ``with`` block, and yield the client.

    Within the block, :func:`frhsic.distributed.audit`, :func:`frhsic.select_weight` and all other
    code that uses Dask or joblib run on the cluster.

    Parameters
    ----------
    address
        Address of a scheduler, such as ``"tcp://10.0.0.1:8786"``; or ``"local"`` for one process
        per core of this machine, or ``"local:4"`` for four processes.
    timeout
        Seconds to wait for the scheduler.

    Examples
    --------
    >>> with cluster("local:x"):
    ...     pass
    Traceback (most recent call last):
    ValueError: the scheduler is 'local:x'; pass local, local:4, or an address such as ...
    """
    local = re.fullmatch(r"local(?::([1-9]\d*))?", address)
    if local is None and (address.startswith("local:") or not re.fullmatch(r"\S+:\d+", address)):
        raise ValueError(
            f"the scheduler is {address!r}; pass local, local:4, or an address such as"
            " tcp://10.0.0.1:8786."
        )
    dask_module()
    import distributed
    import joblib

    with contextlib.ExitStack() as stack:
        if local is not None:
            workers = int(local[1]) if local[1] else None
            place: Any = stack.enter_context(
                distributed.LocalCluster(
                    n_workers=workers, threads_per_worker=1, dashboard_address=":0"
                )
            )
        else:
            place = address
        try:
            client = stack.enter_context(distributed.Client(place, timeout=timeout))
        except OSError as error:
            raise ConnectionError(
                f"no scheduler answered at {address} within {timeout:g} s; start one with dask"
                " scheduler, check the address and the firewall, or pass local to use this machine."
            ) from error
        stack.enter_context(joblib.parallel_config(backend="dask"))
        yield client


def table_files(pattern: str) -> list[str]:
    """Return the files, sorted by name, that a path, a folder, or a pattern such as
    ``"scores-*.parquet"`` refers to.

    Examples
    --------
    >>> table_files("no-such-*.parquet")
    Traceback (most recent call last):
    FileNotFoundError: no file matches 'no-such-*.parquet'; check the path.
    """
    if Path(pattern).is_dir():
        pattern = str(Path(glob.escape(pattern)) / "*.parquet")
    paths = sorted(glob.glob(pattern))
    if not paths:
        raise FileNotFoundError(f"no file matches {pattern!r}; check the path.")
    endings = {Path(path).suffix.lower() for path in paths}
    if not (endings <= set(PARQUET) or endings <= set(TEXT)):
        raise ValueError(
            f"{pattern!r} matches files that end in {' and '.join(sorted(endings))}; pass either"
            " Parquet or CSV files, not both."
        )
    return paths


def file_columns(path: str) -> list[str]:
    """Return the names of the columns of one file."""
    if path.endswith(PARQUET):
        from pyarrow import parquet

        return list(parquet.read_schema(path).names)
    return list(pd.read_csv(path, nrows=0, sep="\t" if path.endswith(".tsv") else ",").columns)


def read_files(paths: Sequence[str], columns: Sequence[str]) -> Any:
    """Return columns of files as a Dask data frame; raise an error if a file lacks one of the
    columns.
    """
    dask = dask_module()
    for path in paths:
        names = file_columns(path)
        missing = [column for column in columns if column not in names]
        if missing:
            raise ValueError(
                f"{path} has no column {missing[0]!r}; its columns are {', '.join(names)}."
            )
    if paths[0].endswith(PARQUET):
        size = sum(Path(path).stat().st_size for path in paths)
        return dask.dataframe.read_parquet(
            list(paths),
            columns=list(columns),
            split_row_groups="adaptive",
            blocksize=int(np.clip(size / PARTITIONS, *PARTITION_BYTES)),
        )
    separator = "\t" if paths[0].endswith(".tsv") else ","
    return dask.dataframe.read_csv(list(paths), usecols=list(columns), sep=separator)


def require_frame_columns(frame: Any, names: Sequence[str]) -> None:
    """Raise an error unless `frame` is a Dask data frame with these columns."""
    if not hasattr(frame, "to_delayed"):
        raise TypeError(
            f"frame is {type(frame).__name__}; pass a Dask data frame, for example from"
            " dask.dataframe.read_parquet."
        )
    missing = [name for name in names if name not in frame.columns]
    if missing:
        raise ValueError(
            f"frame has no column {missing[0]!r}; its columns are {list(frame.columns)}."
        )


def split_frame(frame: Any, share: float, groups: str | None, seed: int) -> tuple[Any, Any]:
    """Split a Dask data frame at random; the rows of a group stay together."""
    if groups is None:
        first, second = frame.random_split([share, 1 - share], random_state=seed)
        return first, second
    first = frame.map_partitions(_drawn, groups, share, seed, True, meta=frame._meta)
    return first, frame.map_partitions(_drawn, groups, share, seed, False, meta=frame._meta)


def _drawn(part: pd.DataFrame, groups: str, share: float, seed: int, inside: bool) -> Any:
    keys = hash_numbers(column_hashes(part[groups]), seed + 1)  # a fit uses a different seed
    return part.loc[sampled_keys(keys, share) == inside]


def hash_numbers(numbers: Keys, seed: int) -> Keys:
    """Return 64-bit pseudo-random numbers for whole numbers: the finalizer of SplitMix64 (Steele et
    al., 2014).

    Examples
    --------
    The first numbers of SplitMix64 with the seeds 0 and 1.

    >>> hash_numbers(np.arange(2, dtype=np.uint64), 0).tolist()
    [16294208416658607535, 10451216379200822465]
    """
    with np.errstate(over="ignore"):
        x = numbers + np.uint64((0x9E3779B97F4A7C15 * (2 * seed + 1)) % 2**64)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return x ^ (x >> np.uint64(31))


def column_hashes(column: pd.Series[Any]) -> Keys:
    """Return a hash of each value that does not depend on the column's type in the partition."""
    if pd.api.types.is_numeric_dtype(column):
        values = column.to_numpy(np.float64)  # integers hash like equal floats
    else:
        values = column.astype(str).to_numpy(object)
    return np.asarray(pd.util.hash_array(values, categorize=False))


def sampled_keys(keys: Keys, share: float) -> NDArray[np.bool_]:
    """Return which of the keys belong to a random share of all keys."""
    return np.asarray(keys / 2.0**64 <= share)
