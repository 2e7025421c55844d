"""The description of each dataset on offer, and the encoding that they share.

The file ``catalogue.toml`` holds what is known of each dataset, by its name.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any, Literal

import numpy as np
import pandas as pd

from frhsic.datasets._dataset import Dataset, Feature
from frhsic.datasets.sources import Obtained, RawFile, Wheel
from frhsic.tables import Category, Task

Variant = Literal["corrected", "published"]
CATALOGUE = tomllib.loads(resources.files("frhsic.datasets").joinpath("catalogue.toml").read_text(encoding="utf-8"))


@dataclass(frozen=True, eq=False)
class Content:
    """The content of a dataset's file in one variant.

    `numeric` and `categorical` are the features among the columns of `frame`, as :func:`encoded` takes them. `source`
    says whose data and which rows these are.
    """

    frame: pd.DataFrame
    numeric: Sequence[str]
    categorical: Mapping[str, Sequence[object] | None]
    y: pd.Series[Any]
    s: pd.Series[Any]
    source: str
    dropped: list[str]


@dataclass(frozen=True)
class Entry:
    """A dataset on offer: its files in order of preference and its shape (n, d) in either variant.

    `classes` is empty for a regression. `published` is None for a dataset that the paper does not use. `build` turns
    the bytes of a file into the content of a variant.
    """

    name: str
    build: Callable[[bytes, Variant], Content]
    files: tuple[RawFile, ...]
    title: str
    owner: str
    licence: str
    citation: str
    classes: tuple[str, ...]
    sensitive: str
    corrected: tuple[int, int]
    published: tuple[int, int] | None = None

    @classmethod
    def of(
        cls,
        name: str,
        build: Callable[[bytes, Variant], Content],
        unpack: Callable[[bytes], bytes] | None = None,
        check: Callable[[bytes], None] | None = None,
    ) -> Entry:
        """Return the entry of the catalogue; `unpack` and `check` are for a file that comes in an archive."""
        facts = _tuples(CATALOGUE[name])
        files = []
        for file in facts.pop("files"):
            wheel = Wheel(*file["wheel"]) if "wheel" in file else None
            archived = {"unpack": unpack, "check": check} if "archive" in file else {}
            files.append(RawFile(folder=name, **_tuples(file) | archived | {"wheel": wheel}))
        return cls(name, build, tuple(files), **facts)

    @property
    def task(self) -> Task:
        """The task of the dataset's target."""
        return "binary" if self.classes else "regression"

    def dataset(self, obtained: Obtained, variant: Variant) -> Dataset:
        """Return the dataset that a file holds."""
        content = self.build(obtained.data, variant)
        X, features = encoded(content.frame, content.numeric, content.categorical)
        return Dataset(
            self.name,
            variant,
            X,
            content.y.astype("float64"),
            content.s.astype("float64"),
            features,
            self.task,
            self.classes,
            obtained.provenance(content.source),
            self.licence,
            self.citation,
            tuple(content.dropped),
        )


def encoded(
    frame: pd.DataFrame, numeric: Sequence[str], categorical: Mapping[str, Sequence[object] | None]
) -> tuple[pd.DataFrame, tuple[Feature, ...]]:
    """Return numeric columns as they are, then one 0/1 column for each level of each categorical one.

    A categorical column that maps to None has the levels that occur, sorted. A value that is not among the given levels
    is an error; a missing one has 0 everywhere.

    Examples
    --------
    >>> X, features = encoded(pd.DataFrame({"age": [3, 4], "sex": ["f", "m"]}), ["age"], {"sex": None})
    >>> X.to_dict("list")
    {'age': [3.0, 4.0], 'sex=f': [1.0, 0.0], 'sex=m': [0.0, 1.0]}
    """
    features = [Feature.numeric(name) for name in numeric]
    blocks = [frame[list(numeric)].to_numpy(np.float64)]
    for name, given in categorical.items():
        present = frame[name].dropna().unique().tolist()
        levels: list[Any] = sorted(present) if given is None else list(given)
        unknown = sorted(set(present) - set(levels), key=str)
        if unknown:
            raise ValueError(f"column {name} has the values {unknown}, which are not among its levels {levels}.")
        blocks.append(Category(name, tuple(levels))(frame[name].to_numpy(dtype=object), "ignore"))
        features += [Feature.indicator(name, level) for level in levels]
    X = pd.DataFrame(np.concatenate(blocks, axis=1), columns=[feature.name for feature in features])
    return X, tuple(features)


def _tuples(table: dict[str, Any]) -> dict[str, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in table.items()}


def words(text: str) -> tuple[str, ...]:
    """Return the names in a block of text.

    Examples
    --------
    >>> words("age sex")
    ('age', 'sex')
    """
    return tuple(text.split())
