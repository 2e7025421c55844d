"""Rows dealt into parts that keep groups together or follow time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

__all__ = ["by_group", "in_order"]


def by_group(groups: Any, shares: Sequence[float], *, seed: int, name: str = "groups") -> list[np.ndarray]:
    """Deal rows into parts so that all rows of a group, such as a person, are in one part.

    Groups are drawn at random. Each part takes the number of groups whose rows come nearest to its share.

    Parameters
    ----------
    groups
        Group of each row: numbers or text, without missing values.
    shares
        Share of the rows of each part beside the first, which takes the others.
    seed
        Seed of the draw.
    name
        What error messages call `groups`.

    Returns
    -------
    list of arrays
        Indices of rows: first those that are left, then one array for each share.

    Examples
    --------
    >>> left, held = by_group(["a", "b", "a", "c", "c"], [0.4], seed=0)
    >>> set(np.array(list("abacc"))[left]) & set(np.array(list("abacc"))[held])
    set()
    """
    codes, _ = pd.factorize(_complete(groups, name), sort=True)
    order = np.random.default_rng(seed).permutation(codes.max() + 1)
    return _dealt(np.argsort(order)[codes], shares, f"{name} has {len(order)} different value(s)")


def in_order(keys: Any, shares: Sequence[float], *, name: str = "order") -> list[np.ndarray]:
    """Deal rows into parts by time: the first part has the earliest rows, the last part the latest.

    Rows with the same key stay together. Each part takes the number of keys whose rows come nearest to its share.

    Parameters
    ----------
    keys
        Key of each row, such as its date: numbers, dates, or text such as 2024-05-31.
    shares, name
        As in :func:`by_group`.

    Examples
    --------
    >>> in_order([3, 1, 2, 2, 5], [0.4])
    [array([1, 2, 3]), array([0, 4])]
    """
    column = _complete(keys, name)
    if column.dtype.kind in "OUST":
        column = _dates(column, name)
    codes, distinct = pd.factorize(column, sort=True)
    return _dealt(codes, shares, f"{name} has {len(distinct)} different value(s)")


def _complete(values: Any, name: str) -> np.ndarray:
    column = np.asarray(values)
    if column.ndim == 2 and column.shape[1] == 1:
        column = column[:, 0]
    if column.ndim != 1:
        raise ValueError(f"{name} has shape {column.shape}; pass one value for each row.")
    missing = int(pd.isna(column).sum())
    if missing:
        raise ValueError(f"{name} lacks a value in {missing:,} of {len(column):,} rows; fill them or leave them out.")
    return column


def _dates(column: np.ndarray, name: str) -> np.ndarray:
    """Return text as dates, such as 2024-05-31 or 31.05.2024; raise on text whose order is not that of time."""
    for written in ("ISO8601", "%d.%m.%Y"):
        try:
            return pd.to_datetime(pd.Series(column.tolist()), format=written, utc=True).to_numpy()
        except (ValueError, TypeError):
            continue
    raise ValueError(
        f"{name} holds {str(column[0])!r}, whose order in time is not clear; write dates as 2024-05-31 or 31.05.2024, "
        "or as numbers."
    )


def _dealt(codes: np.ndarray, shares: Sequence[float], found: str) -> list[np.ndarray]:
    """Cut blocks, numbered by `codes`, into parts; the last blocks go to the last part."""
    ends = np.cumsum(np.bincount(codes))  # ends[k]: rows in blocks 0 to k
    n, parts = len(codes), len(shares) + 1
    if len(ends) < parts:
        raise ValueError(f"{found}, and the rows are dealt into {parts} parts; each part needs one.")
    cuts: list[int] = []  # number of blocks before each part but the first
    for i in range(len(shares)):
        wanted = n * (1 - sum(shares[i:]))
        least, most = (cuts[-1] if cuts else 0) + 1, len(ends) - len(shares) + i
        cuts.append(least + int(np.argmin(np.abs(ends[least - 1 : most] - wanted))))
    return [np.flatnonzero(part) for part in (np.digitize(codes, cuts) == k for k in range(parts))]
