"""Partitions of a Dask data frame: rows with keys, sums over rows on the workers, and samples."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from frhsic.distributed.frames import column_hashes, dask_module, hash_numbers, sampled_keys
from frhsic.parity.sums import Cells, ScoreSums

# The column of keys in tables of partitions.
KEY_COLUMN = "frhsic key"

FAN_IN = 8  # number of results that one task adds up

# Partitions send this many rows with small keys for each row that the sample is expected to take
# from them.
CANDIDATES = 16


@dataclass(frozen=True, eq=False)
class Parts:
    """Delayed tables, or other blocks of rows, keyed by the number of the partition."""

    blocks: dict[int, Any]
    rows: int

    @classmethod
    def of(cls, frame: Any, columns: list[str], key: str | None = None, seed: int = 0) -> Parts:
        """Return the non-empty partitions as tables with a column of keys, which are hashes of a
        column or of each row's number in the frame.

        Dask merges Parquet files depending on which columns are read, so other columns may have
        different partitions.
        """
        dask = dask_module()
        parts = frame[columns].to_delayed()
        lengths = _partition_lengths(parts)
        ends = np.cumsum(lengths).tolist()
        blocks = {
            number: dask.delayed(keyed_table, pure=False)(part, number, end - length, key, seed)
            for number, (part, length, end) in enumerate(zip(parts, lengths, ends))
            if length
        }
        return cls(blocks, sum(lengths))

    def map(self, step: Callable[[Any], Any]) -> Parts:
        """Return the result of a function for each block."""
        dask = dask_module()
        shared = dask.delayed(step, traverse=False)
        blocks = {
            number: dask.delayed(_apply, pure=False)(shared, block, number)
            for number, block in self.blocks.items()
        }
        return replace(self, blocks=blocks)

    def persist(self) -> Parts:
        """Return the blocks in the memory of the workers."""
        blocks = dask_module().persist(*self.blocks.values())
        return replace(self, blocks=dict(zip(self.blocks, blocks)))

    def sum(self, step: Callable[[Any], Any]) -> Any:
        """Return the sum of a function's results over blocks, computed with :func:`add_results`."""
        dask = dask_module()
        level = list(self.map(step).blocks.values())
        while (
            len(level) > 1
        ):  # the same tree for the same partitions, regardless of which worker finishes first
            level = [
                dask.delayed(reduce, pure=False)(add_results, level[i : i + FAN_IN])
                for i in range(0, len(level), FAN_IN)
            ]
        return dask.compute(*level)[0] if level else None


def _partition_lengths(parts: Sequence[Any]) -> Sequence[int]:
    """Return the number of rows in each partition; raise an error if a partition lacks columns."""
    dask = dask_module()
    counts = [dask.delayed(len)(part) for part in parts]
    try:
        counted: Sequence[int] = dask.compute(*counts)
        return counted
    except KeyError:
        for number, count in enumerate(counts):
            try:
                count.compute()
            except KeyError as error:
                raise ValueError(f"partition {number}: columns {error.args[0]}") from error
        raise


def _apply(step: Callable[[Any], Any], block: Any, number: int) -> Any:
    """Return the result for a block; errors name the partition of the block."""
    try:
        return step(block)
    except (ValueError, TypeError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"partition {number}: {error}") from error


def add_results(first: Any, second: Any) -> Any:
    """Return the sum of two results: tuples and dictionaries are added entry by entry; None stands
    for parts without rows.

    Examples
    --------
    >>> add_results((1, None, {"a": 2.0}), (10, 5, {"a": 20.0, "b": 1.0}))
    (11, 5, {'a': 22.0, 'b': 1.0})
    """
    if first is None:
        return second
    if second is None:
        return first
    if isinstance(first, dict):
        names = {**first, **second}
        return {name: add_results(first.get(name), second.get(name)) for name in names}
    if isinstance(first, tuple):
        parts = [add_results(a, b) for a, b in zip(first, second, strict=True)]
        return type(first)(*parts) if hasattr(first, "_fields") else tuple(parts)
    return first + second


def keyed_table(
    part: pd.DataFrame, number: int, first_row: int, key: str | None, seed: int
) -> pd.DataFrame:
    """Return a partition with a column of keys; `first_row` is the number, in the frame, of the
    partition's first row.
    """
    if key is None:
        numbers = np.arange(first_row, first_row + len(part), dtype=np.uint64)
    elif part[key].isna().any():
        raise ValueError(
            f"partition {number}: column {key!r} has missing values, so these rows can't be"
            " assigned to folds; fill in the missing values, or drop these rows"
        )
    else:
        numbers = column_hashes(part[key])
    return part.reset_index(drop=True).assign(**{KEY_COLUMN: hash_numbers(numbers, seed)})


@dataclass(frozen=True, eq=False)
class Sample:
    """The rows of a table with the smallest keys, up to a given number: a random sample that does
    not depend on the partitions. ``+`` merges parts.
    """

    table: pd.DataFrame
    most: int

    @classmethod
    def of(cls, table: pd.DataFrame, most: int, rows: int) -> Sample:
        """Return the part of a sample that comes from one partition, given the number of rows in
        the frame.
        """
        candidates = sampled_keys(table[KEY_COLUMN].to_numpy(), CANDIDATES * most / rows)
        return cls(table[candidates], most).cut()

    def cut(self) -> Sample:
        """Drop the surplus rows with the largest keys."""
        table = self.table.sort_values(KEY_COLUMN, kind="stable", ignore_index=True)
        return Sample(table.iloc[: self.most], self.most)

    def __add__(self, other: Sample) -> Sample:
        return Sample(pd.concat([self.table, other.table]), self.most).cut()


@dataclass(frozen=True, eq=False)
class SampledCells:
    """Cells along an attribute, learned from a sample of the rows, and the indices of the strata
    that occur in the sample. Rows in other strata are counted in the last stratum.
    """

    cells: Cells
    places: np.ndarray | None = None

    @classmethod
    def of(
        cls,
        s: np.ndarray,
        rows: int,
        weights: np.ndarray | None = None,
        strata: np.ndarray | None = None,
        n_strata: int = 1,
    ) -> SampledCells:
        """Learn the cells from a sample, given the total number of rows."""
        if strata is None:
            return cls(_cells(s, rows, weights, 1))
        present, own = np.unique(strata, return_inverse=True)
        places = np.full(n_strata, len(present) - 1)
        places[present] = np.arange(len(present))
        parts = []
        for number in range(len(present)):
            x = own == number
            size = round(rows * x.mean())
            some = None if weights is None else weights[x]
            parts.append(_cells(s[x], size, some, len(present)))
        return cls(_cells(s, rows, weights, 1).with_strata(parts), places)

    def own_strata(self, codes: np.ndarray | None) -> np.ndarray | None:
        """Return each row's stratum as an index into the strata that occur in the sample."""
        return None if codes is None or self.places is None else self.places[codes]

    def sums(
        self,
        columns: Sequence[np.ndarray],
        known: Sequence[ColumnEnds],
        s: np.ndarray,
        weights: np.ndarray | None,
        strata: np.ndarray | None,
    ) -> tuple[ScoreSums, ...]:
        """Return the sums of each column over the given rows."""
        places = self.own_strata(strata)
        return tuple(
            self.cells.sums(column, s, own.center, own.ends, weights, places)
            for column, own in zip(columns, known)
        )


class ColumnEnds(NamedTuple):
    """The mean and the extremes of a column in a sample."""

    center: float
    ends: tuple[float, float]

    @classmethod
    def of(cls, column: np.ndarray) -> ColumnEnds:
        """Return the mean and the extremes of a column."""
        return cls(float(column.mean()), (float(column.min()), float(column.max())))


def _cells(s: np.ndarray, rows: int, weights: np.ndarray | None, strata: int) -> Cells:
    values, place = np.unique(s, return_inverse=True)
    mass = np.bincount(place, weights).astype(np.float64)
    return Cells.from_values(values, np.bincount(place), rows, mass, None, strata)
