"""Split rows into rows to fit on and held-out rows: at random, by group, by time, or by group and
time.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

__all__ = ["held_out_rows", "subsample", "take_rows"]


def held_out_rows(
    n: int, share: float, *, seed: int, groups: Any = None, order: Any = None, classes: Any = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return the indices of the rows to fit on and of the held-out rows.

    Without `groups` and `order`, rows are drawn at random, with the same share of each class if
    `classes` is given. With both `groups` and `order`, the later rows are held out. A group with
    both earlier and later rows is assigned to one side at random, and its rows on the other side
    are dropped, so fewer rows than `share` are held out.

    Parameters
    ----------
    n
        Number of rows.
    share
        Share of the rows to hold out; it is met only approximately, because groups and time steps
        are not split.
    seed
        Seed for the random draw.
    groups
        Group of each row, such as a person; no group is split.
    order
        Numbers, dates, or text such as 2024-05-31 by which the rows are ordered: held-out rows are
        later than all others. Rows with the same value stay together.
    classes
        Class of each row; ignored if `groups` or `order` is given.

    Examples
    --------
    >>> y = np.arange(1000) < 50
    >>> [int(y[rows].sum()) for rows in held_out_rows(1000, 0.4, seed=0, classes=y)]
    [30, 20]
    >>> held_out_rows(5, 0.4, seed=0, order=[3, 1, 2, 2, 5])
    (array([1, 2, 3]), array([0, 4]))
    >>> fit, held = held_out_rows(5, 0.4, seed=0, groups=["a", "b", "a", "c", "c"])
    >>> set(np.array(list("abacc"))[fit]) & set(np.array(list("abacc"))[held])
    set()
    """
    if not 0 < share < 1:
        raise ValueError(f"the held-out share is {share:g}; pass a number between 0 and 1.")
    rng = np.random.default_rng(seed)
    if groups is None and order is None:
        rows = rng.permutation(n)
        if classes is not None:
            rows = rows[np.argsort(np.asarray(classes)[rows], kind="stable")]
        passed = np.floor(share * np.arange(n + 1) + 0.5)  # rows held out among the first ones
        held = np.diff(passed) > 0
        return np.sort(rows[~held]), np.sort(rows[held])
    group = np.arange(n)
    if groups is not None:
        group = pd.factorize(_complete(groups, n, "groups"), sort=True)[0]
        place = rng.permutation(group.max() + 1)
    if order is None:
        later = _later(place[group], share, "groups")
    else:
        times = _times(_complete(order, n, "order"))
        later = _later(pd.factorize(times, sort=True)[0], share, "order")
    if groups is None or order is None:
        return np.flatnonzero(~later), np.flatnonzero(later)
    held = np.bincount(group, later, len(place)) > 0
    both = held & (np.bincount(group, ~later, len(place)) > 0)
    held[both] = place[both] < share * len(place)
    if held.all() or not held.any():
        raise ValueError(
            "no split respects both groups and order, because none keeps groups together and "
            "separates earlier from later rows. Pass only one of the two."
        )
    return np.flatnonzero(~later & ~held[group]), np.flatnonzero(later & held[group])


def _later(codes: np.ndarray, share: float, name: str) -> np.ndarray:
    """Return a mask of the rows in the last blocks, where the blocks are chosen so that their share
    of the rows is as close as possible to `share`.
    """
    ends = np.cumsum(np.bincount(codes))
    if len(ends) < 2:
        raise ValueError(
            f"{name} is the same in every row; a split needs at least two different values."
        )
    return np.asarray(codes > np.argmin(np.abs(ends[:-1] - len(codes) * (1 - share))))


def _complete(values: Any, n: int, name: str) -> np.ndarray:
    column = np.asarray(values)
    if column.ndim == 2 and column.shape[1] == 1:
        column = column[:, 0]
    if column.shape != (n,):
        raise ValueError(
            f"{name} has shape {column.shape}; pass one value for each of the {n} rows."
        )
    missing = int(pd.isna(column).sum())
    if missing:
        raise ValueError(
            f"{name} is missing in {missing:,} of {n:,} rows; fill in these values, or drop these"
            " rows."
        )
    return column


def _times(column: np.ndarray) -> np.ndarray:
    """Return text such as 2024-05-31 or 31.05.2024 as dates; raise if the text cannot be ordered in
    time.
    """
    if column.dtype.kind not in "OUST":
        return column
    for form in ("ISO8601", "%d.%m.%Y"):
        dates = pd.to_datetime(pd.Series(column.tolist()), format=form, utc=True, errors="coerce")
        if dates.notna().all():
            return dates.to_numpy()
    raise ValueError(
        f"order contains {str(column[0])!r}, which cannot be ordered in time; write dates as "
        "2024-05-31 or 31.05.2024, or as numbers."
    )


def take_rows(part: Any, rows: np.ndarray) -> Any:
    """Return the given rows of an array or frame of any kind."""
    from sklearn.utils import _safe_indexing  # slow to import; not always needed

    return _safe_indexing(part, rows)


def subsample(n: int, most: int, random: np.random.Generator) -> np.ndarray:
    """Return the indices of at most `most` of n rows, drawn without replacement, in increasing
    order.

    Examples
    --------
    >>> subsample(3, 10, np.random.default_rng(0)).tolist()
    [0, 1, 2]
    """
    return np.arange(n) if n <= most else np.sort(random.choice(n, most, replace=False))
