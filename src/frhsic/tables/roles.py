"""Which columns of a table are target, sensitive attributes and features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from frhsic.tables.names import check_distinct, expand, find
from frhsic.tables.sensitive import attribute


@dataclass(frozen=True)
class ColumnRoles:
    """Names of the target, of the sensitive attributes and of the features.

    `features` and `drop` may hold patterns such as ``x_*``; without `features`, all other columns are features.
    `positive` is the value of the target that counts as 1, `favourable` the value that is good for a person, on which
    Equal Opportunity is measured; left out, it is the positive one. `groups` and `order` are columns to split rows by;
    they are no features.
    """

    target: str
    sensitive: tuple[str, ...]
    positive: object = None
    features: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    favourable: object = None
    groups: str | None = None
    order: str | None = None

    @property
    def split_by(self) -> list[str]:
        """The columns to split rows by."""
        return [name for name in (self.groups, self.order) if name is not None]

    def find_features(self, names: Sequence[str], table: str) -> list[str]:
        """Return the features among the columns of a table; raise if the roles do not fit the table."""
        check_distinct(names, table)
        if not self.sensitive:
            raise ValueError("sensitive is empty; name at least one column.")
        for name in (self.target, *self.sensitive, *self.split_by):
            find(name, names, table)
            if name in self.drop:
                raise ValueError(
                    f"{name!r} is to be dropped but is the target, an attribute, or what rows are split by."
                )
        if self.target in self.sensitive:
            raise ValueError(f"{self.target!r} is both the target and a sensitive attribute.")
        if len(set(self.sensitive)) < len(self.sensitive):
            raise ValueError(f"a sensitive attribute is named twice among {', '.join(self.sensitive)}.")
        chosen = [name for pattern in self.features or ("*",) for name in expand(pattern, names, table)]
        excluded = {name for pattern in self.drop for name in expand(pattern, names, table)}
        excluded |= {self.target, *self.sensitive, *self.split_by}
        features = [name for name in dict.fromkeys(chosen) if name not in excluded]
        if not features:
            raise ValueError(f"no column is left to predict from in {table}, beside the target and the attributes.")
        if named := [name for name in (self.target, *self.sensitive) if name in self.features]:
            raise ValueError(f"{named[0]!r} is named as a feature but is the target or a sensitive attribute.")
        return features


def read_attributes(frame: pd.DataFrame, table: str) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Return sensitive attributes as numbers, with NaN for missing values, and a sentence for each that had bands.

    Raise if one has no value at all.
    """
    read = {str(name): attribute(frame[name], f"sensitive attribute {str(name)!r}") for name in frame}
    s = pd.DataFrame({name: values for name, (values, _) in read.items()})
    for name in s:
        if s[name].isna().all():
            raise ValueError(
                f"sensitive attribute {name!r} has no value in any of the {len(s):,} rows of {table}; choose another "
                "column or fill it."
            )
    return s, tuple(note for _, note in read.values() if note)


def check_varies(s: pd.DataFrame, where: str) -> None:
    """Raise if a sensitive attribute has the same value in all rows."""
    for name in s:
        if s[name].min() == s[name].max():
            raise ValueError(f"sensitive attribute {name!r} is {s[name].min():g} in {where}.")
