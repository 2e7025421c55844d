"""What each dataset on offer says of itself, and the encoding they share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd

from frhsic.datasets._dataset import Column, Dataset
from frhsic.datasets.sources import Obtained, RawFile

__all__ = ["Entry", "Variant", "encoded", "words"]

Variant = Literal["corrected", "published"]


@dataclass(frozen=True)
class Entry:
    """A dataset on offer: its files in order of preference and its shape (n, d) in either variant.

    `published` is None for a dataset that the paper does not use.
    """

    name: str
    title: str
    files: tuple[RawFile, ...]
    owner: str
    licence: str
    sensitive: str
    corrected: tuple[int, int]
    published: tuple[int, int] | None
    build: Callable[[Obtained, Variant], Dataset]
    task: Literal["binary", "regression"] = "binary"


def encoded(
    frame: pd.DataFrame, numeric: Sequence[str], categorical: Mapping[str, Sequence[object] | None]
) -> tuple[pd.DataFrame, tuple[Column, ...]]:
    """Return numeric columns as they are, then one 0/1 column for each level of each categorical one.

    The levels are those given, or where None came those that occur, sorted. A value that is not among
    the levels given is an error; a missing one has 0 everywhere.

    Examples
    --------
    >>> X, columns = encoded(pd.DataFrame({"age": [3, 4], "sex": ["f", "m"]}), ["age"], {"sex": None})
    >>> X.to_dict("list")
    {'age': [3.0, 4.0], 'sex=f': [1.0, 0.0], 'sex=m': [0.0, 1.0]}
    """
    columns = [Column.numeric(name) for name in numeric]
    parts = [frame[list(numeric)].to_numpy(np.float64)]
    for name, given in categorical.items():
        present = frame[name].dropna().unique().tolist()
        levels = sorted(present) if given is None else list(given)
        unknown = sorted(set(present) - set(levels), key=str)
        if unknown:
            raise ValueError(f"column {name} has the values {unknown}, which are not among its levels {levels}.")
        values = frame[name].to_numpy()
        parts.append(np.stack([values == level for level in levels], axis=1).astype(np.float64))
        columns += [Column.indicator(name, level) for level in levels]
    X = pd.DataFrame(np.concatenate(parts, axis=1), columns=[column.name for column in columns])
    return X, tuple(columns)


def words(text: str) -> tuple[str, ...]:
    """Return the names in a block of text.

    Examples
    --------
    >>> words("age sex")
    ('age', 'sex')
    """
    return tuple(text.split())
