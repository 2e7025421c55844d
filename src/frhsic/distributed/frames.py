"""Dask data frames: a cluster, tables in several files, rows of partitions, and sums over them on
the workers.
"""

from __future__ import annotations

import contextlib
import glob
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from frhsic.auditing.measures import Rows
from frhsic.tables.columns import numbers
from frhsic.tables.targets import is_positive

Keys = NDArray[np.uint64]
T = TypeVar("T")

FAN_IN = 8  # number of results that one task adds

TIMEOUT = 10  # seconds to wait for a scheduler

# Largest partition of Parquet files in bytes, unless a row group is larger.
PARTITION_BYTES = 2**27

PARQUET = (".parquet", ".pq")
TEXT = (".csv", ".tsv")


def dask_module() -> Any:
    """Return the module dask, or raise with installation instructions."""
    try:
        import dask
        import dask.dataframe
        import distributed  # noqa: F401  # only asked whether it is there
    except ImportError as error:
        raise ImportError(
            "Dask is not installed; install it with pip install 'dask[dataframe,distributed]'."
        ) from error
    return dask


@contextlib.contextmanager
def cluster(address: str, *, timeout: float = TIMEOUT) -> Iterator[Any]:
    """Connect to a Dask cluster for the duration of a ``with`` block, and yield the client.

    Within the block, :func:`frhsic.distributed.audit`, :func:`frhsic.select_weight` and everything
    else that uses Dask or joblib run on the cluster.

    Parameters
    ----------
    address
        Address of a scheduler, such as ``"tcp://10.0.0.1:8786"``; or ``"local"`` for one process
        for each core of this machine, ``"local:4"`` for four.
    timeout
        Seconds to wait for the scheduler.

    Examples
    --------
    >>> with cluster("local:x"):
    ...     pass
    Traceback (most recent call last):
    ValueError: the scheduler is 'local:x'; pass an address such as tcp://10.0.0.1:8786, ...
    """
    local = re.fullmatch(r"local(?::([1-9]\d*))?", address)
    if local is None and (address.startswith("local:") or not re.fullmatch(r"\S+:\d+", address)):
        raise ValueError(
            f"the scheduler is {address!r}; pass an address such as tcp://10.0.0.1:8786, local, or"
            " local:4."
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
                f"no scheduler answers at {address} within {timeout:g} s; start one with dask"
                " scheduler, check address and firewall, or pass local to use this machine."
            ) from error
        stack.enter_context(joblib.parallel_config(backend="dask"))
        yield client


def table_files(pattern: str) -> list[str]:
    """Return the files of a path, of a folder, or of a pattern such as ``"scores-*.parquet"``,
    sorted by name.

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
            f"{pattern!r} matches files that end in {', '.join(sorted(endings))}; pass Parquet or"
            " CSV alone."
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
            raise ValueError(
                f"{path} has no column {missing[0]!r}; its columns are {', '.join(names)}."
            )
    if paths[0].endswith(PARQUET):
        return dask.dataframe.read_parquet(
            list(paths),
            columns=list(columns),
            split_row_groups="adaptive",
            blocksize=PARTITION_BYTES,
        )
    separator = "\t" if paths[0].endswith(".tsv") else ","
    return dask.dataframe.read_csv(list(paths), usecols=list(columns), sep=separator)


@dataclass(frozen=True)
class Roles:
    """Columns of a frame by their role: Z (or only the score), attributes, score, target and
    controls.
    """

    z: tuple[str, ...]
    s: tuple[str, ...]
    score: str | None = None
    target: str | None = None
    positive: object = None
    favourable: object = None
    seed: int = 0
    controls: tuple[str, ...] = ()

    @property
    def columns(self) -> list[str]:
        """The names of all columns."""
        named = (*self.z, *self.s, self.score, self.target, *self.controls)
        return list(dict.fromkeys(name for name in named if name is not None))


@dataclass(frozen=True, eq=False)
class KeyedRows(Rows):
    """Rows without missing values; `key` is a hash of the number of each row in the whole frame.

    So random draws do not depend on the partitions. `values` are those of the controls, which may
    be missing.
    """

    key: Keys = field(kw_only=True)
    values: np.ndarray | None = field(default=None, kw_only=True)

    def first(self, most: int) -> KeyedRows:
        """Return the rows with the smallest keys, in the order of their keys: a random sample."""
        return self.keep(np.argsort(self.key)[:most])

    def join(self, other: KeyedRows) -> KeyedRows:
        """Return the rows of two blocks."""
        arrays = {name: part for name, part in vars(self).items() if isinstance(part, np.ndarray)}
        both: dict[str, Any] = {
            name: np.concatenate([part, getattr(other, name)]) for name, part in arrays.items()
        }
        return replace(self, **both)


def hash_numbers(numbers: Keys, seed: int) -> Keys:
    """Return pseudo-random numbers of 64 bits for whole numbers: the finalizer of SplitMix64
    (Steele et al., 2014).

    Examples
    --------
    The first numbers of that generator with the seeds 0 and 1.

    >>> hash_numbers(np.arange(2, dtype=np.uint64), 0).tolist()
    [16294208416658607535, 10451216379200822465]
    """
    with np.errstate(over="ignore"):
        x = numbers + np.uint64((0x9E3779B97F4A7C15 * (2 * seed + 1)) % 2**64)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return x ^ (x >> np.uint64(31))


def complete_block(
    part: pd.DataFrame, roles: Roles, number: int, first_row: int
) -> tuple[int, KeyedRows]:
    """Return the number of rows of a partition, and its rows without missing values.

    `number` is that of the partition, for messages; `first_row` is the number of its first row in
    the frame.
    """
    part = part.reset_index(drop=True)

    def columns(*names: str) -> np.ndarray:
        return np.column_stack(
            [numbers(part[name], f"column {name!r} of partition {number}") for name in names]
        )

    z = columns(*roles.z)
    s = columns(*roles.s)
    f = None if roles.score is None else columns(roles.score)[:, 0]
    y = None
    favoured = None
    known = ~(np.isnan(s).any(axis=1) | np.isnan(z).any(axis=1))
    if f is not None:
        known &= ~np.isnan(f)
    if roles.target is not None:
        target = part[roles.target]
        known &= target.notna().to_numpy()
        if roles.positive is None:
            y = columns(roles.target)[:, 0]
            known &= ~np.isnan(y)
        else:
            y = is_positive(target, roles.positive, f"{roles.target} of partition {number}")
        favoured = y == 1
        if roles.favourable is not None:
            favoured = is_positive(target, roles.favourable, roles.target) == 1
    key = hash_numbers(np.arange(first_row, first_row + len(part), dtype=np.uint64), roles.seed)
    values = None
    if roles.controls:
        values = part[list(roles.controls)].astype(object).to_numpy()
    block = KeyedRows(z, s, f, y, favoured, key=key, values=values)
    return len(part), block if known.all() else block.keep(known)


def require_frame_columns(frame: Any, names: Sequence[str]) -> None:
    """Raise unless `frame` is a Dask data frame with these columns."""
    if not hasattr(frame, "to_delayed"):
        raise TypeError(
            f"frame is {type(frame).__name__}; pass a Dask data frame, such as"
            " dask.dataframe.read_parquet."
        )
    missing = [name for name in names if name not in frame.columns]
    if missing:
        raise ValueError(
            f"frame has no column {missing[0]!r}; its columns are {list(frame.columns)}."
        )


def split_frame(frame: Any, share: float, groups: str | None, seed: int) -> tuple[Any, Any]:
    """Split a Dask data frame at random; rows of one group stay together."""
    if groups is None:
        first, second = frame.random_split([share, 1 - share], random_state=seed)
        return first, second
    first = frame.map_partitions(_drawn, groups, share, seed, True, meta=frame._meta)
    return first, frame.map_partitions(_drawn, groups, share, seed, False, meta=frame._meta)


def _drawn(part: pd.DataFrame, groups: str, share: float, seed: int, inside: bool) -> Any:
    drawn = hash_numbers(column_hashes(part[groups]), seed) < np.uint64(int(share * (2**64 - 1)))
    return part.loc[drawn == inside]


def column_hashes(column: pd.Series[Any]) -> Keys:
    """Return a hash of each value that does not depend on the type of the partition."""
    if pd.api.types.is_numeric_dtype(column):
        values = column.to_numpy(np.float64)  # integers hash like equal floats
    else:
        values = column.astype(str).to_numpy(object)
    return np.asarray(pd.util.hash_array(values, categorize=False))


def first_rows(parts: Sequence[Any]) -> list[int]:
    """Return the number of the first row of each delayed partition, and the number of rows.

    Dask merges Parquet files depending on the columns that are read, so other columns may have
    different partitions.
    """
    dask = dask_module()
    lengths = dask.compute(*(dask.delayed(len)(part) for part in parts))
    return [0, *np.cumsum(lengths).tolist()]


def sum_over_partitions(
    parts: Sequence[Any],
    roles: Roles,
    starts: Sequence[int],
    step: Callable[[int, KeyedRows, Any], T],
    plan: Any,
) -> T:
    """Return the sum over partitions of ``step(rows given, block, plan)``; see
    :func:`add_results`.
    """
    dask = dask_module()
    shared = dask.delayed((roles, step, plan), traverse=False)
    results = [
        dask.delayed(_stepped, pure=False)(part, shared, number, first)
        for number, (part, first) in enumerate(zip(parts, starts[:-1], strict=True))
    ]
    total: T = sum_delayed(results)
    return total


def sum_delayed(results: Sequence[Any]) -> Any:
    """Return the sum of delayed results by :func:`add_results`, added where they are."""
    dask = dask_module()
    level = list(results)
    while len(level) > 1:  # the same order of additions whichever worker finishes first
        level = [
            dask.delayed(reduce, pure=False)(add_results, level[i : i + FAN_IN])
            for i in range(0, len(level), FAN_IN)
        ]
    return dask.compute(level[0])[0]


def add_results(first: Any, second: Any) -> Any:
    """Return the sum of two results: of tuples entry by entry, with None for what has no rows.

    Examples
    --------
    >>> add_results((1, None, (2.0,)), (10, 5, (20.0,)))
    (11, 5, (22.0,))
    """
    if first is None:
        return second
    if second is None:
        return first
    if isinstance(first, tuple):
        parts = [add_results(a, b) for a, b in zip(first, second, strict=True)]
        return type(first)(*parts) if hasattr(first, "_fields") else tuple(parts)
    return first + second


def _stepped(
    part: pd.DataFrame, shared: tuple[Roles, Callable[..., Any], Any], number: int, first_row: int
) -> Any:
    roles, step, plan = shared
    return step(*complete_block(part, roles, number, first_row), plan)
