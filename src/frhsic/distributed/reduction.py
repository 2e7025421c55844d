"""Sums over the partitions of a Dask data frame, added up on the workers in a fixed order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from frhsic.distributed.rows import Block, Roles, block_of

if TYPE_CHECKING:
    import pandas as pd

T = TypeVar("T")

FAN_IN = 8
"""Results that one task adds up."""


def dask_module() -> Any:
    """Return the module dask, or raise with what to install."""
    try:
        import dask
        import dask.dataframe
    except ImportError as error:
        raise ImportError("Dask is not installed; install it with pip install 'frhsic[dask]'.") from error
    return dask


def require_columns(frame: Any, names: Sequence[str]) -> None:
    """Raise unless `frame` is a Dask data frame with these columns."""
    if not hasattr(frame, "to_delayed"):
        raise TypeError(
            f"frame is {type(frame).__name__}; pass a Dask data frame, such as dask.dataframe.read_parquet."
        )
    missing = [name for name in names if name not in frame.columns]
    if missing:
        raise ValueError(f"frame has no column {missing[0]!r}; its columns are {list(frame.columns)}.")


def first_rows(frame: Any, column: str) -> list[int]:
    """Return the number of the first row of each partition, from the lengths of one column, and the number of rows."""
    dask = dask_module()
    lengths = dask.compute(*(dask.delayed(len)(part) for part in frame[[column]].to_delayed()))
    return [0, *np.cumsum(lengths).tolist()]


def over_partitions(
    frame: Any, roles: Roles, starts: Sequence[int], step: Callable[[int, Block, Any], T], plan: Any
) -> T:
    """Return the sum over partitions of ``step(rows given, block, plan)``; see :func:`added`."""
    dask = dask_module()
    shared = dask.delayed((roles, step, plan), traverse=False)
    parts = frame[roles.columns].to_delayed()
    level = [
        dask.delayed(_stepped, pure=False)(part, shared, number, first)
        for number, (part, first) in enumerate(zip(parts, starts))
    ]
    while len(level) > 1:  # the same tree for the same partitions, whichever worker is first
        level = [dask.delayed(_joined, pure=False)(level[i : i + FAN_IN]) for i in range(0, len(level), FAN_IN)]
    result: T = dask.compute(level[0])[0]
    return result


def added(first: Any, second: Any) -> Any:
    """Return the sum of two results: of tuples entry by entry, with None for what has no rows.

    Examples
    --------
    >>> added((1, None, (2.0,)), (10, 5, (20.0,)))
    (11, 5, (22.0,))
    """
    if first is None or second is None:
        return second if first is None else first
    if isinstance(first, tuple):
        return tuple(added(a, b) for a, b in zip(first, second, strict=True))
    return first + second


def _stepped(part: pd.DataFrame, shared: tuple[Roles, Callable[..., Any], Any], number: int, first_row: int) -> Any:
    roles, step, plan = shared
    return step(*block_of(part, roles, number, first_row), plan)


def _joined(parts: Sequence[Any]) -> Any:
    total = parts[0]
    for part in parts[1:]:
        total = added(total, part)
    return total
