"""Limits on a gap: a number, a share of the unconstrained gap, None, or a dictionary of these by attribute."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import numpy as np

Limit = float | str | Mapping[str, float | str | None] | None


def share(text: str) -> float:
    """Return a share that is written as a percentage.

    Examples
    --------
    >>> share("50%")
    0.5
    """
    try:
        value = float(text.removesuffix("%")) / 100
    except ValueError:
        value = math.nan
    if not text.endswith("%") or not 0 <= value <= 1:
        raise ValueError(f"limit is {text!r}; pass a number, a share of the unconstrained gap such as '50%', or None.")
    return value


def by_attribute(limit: Limit, names: Iterable[str]) -> dict[str, float | str | None]:
    """Return the limit of each attribute; a dictionary leaves attributes that it does not name unconstrained."""
    if not isinstance(limit, Mapping):
        return dict.fromkeys(names, limit)
    unknown = [name for name in limit if name not in names]
    if unknown:
        raise ValueError(f"limit names {unknown[0]!r}; the attributes are {', '.join(names)}.")
    return {name: limit.get(name) for name in names}


def check_limit(limit: Limit, most: float) -> None:
    """Raise if a limit cannot be one, or limits nothing: no gap is larger than `most`."""
    for one in limit.values() if isinstance(limit, Mapping) else [limit]:
        if isinstance(one, str):
            share(one)
        elif one is not None and (isinstance(one, bool) or not isinstance(one, (int, float, np.number))):
            raise TypeError(f"limit is {one!r}; pass a number, a share such as '50%', None, or a dictionary of these.")
        elif one is not None and not 0 <= one <= most:
            raise ValueError(f"limit is {one:g}, but a gap lies between 0 and {most:g}; a share is written '50%'.")
