"""Roles of the columns of a table: target, attributes, features, and columns to split or weight
rows by.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from frhsic.tables.columns import check_distinct, expand


@dataclass(frozen=True)
class ColumnRoles:
    """Names of the target, of the sensitive attributes and of the features.

    `features` and `drop` may contain patterns such as ``x_*``; without `features`, all other
    columns are features. `positive` is the value of the target that counts as 1, or several (in
    text, separated by commas); `favourable` is the desirable outcome, on which equal opportunity is
    measured (by default the positive one). `groups` and `order` are columns to split rows by,
    `weights` contains row weights; none of them are features. `drop_repeated` keeps only the first
    of several identical rows.
    """

    target: str | None
    sensitive: Sequence[str]
    positive: object = None
    features: Sequence[str] | None = None
    drop: Sequence[str] | None = None
    favourable: object = None
    groups: str | None = None
    order: str | None = None
    weights: str | None = None
    drop_repeated: bool = False

    @property
    def required(self) -> list[str]:
        """The columns without which a row cannot be used: the target, and those used to split or
        weight rows.
        """
        names = (self.target, self.groups, self.order, self.weights)
        return [name for name in names if name is not None]

    def columns(self, features: Sequence[str]) -> list[str]:
        """Return all columns that are read."""
        return list(dict.fromkeys([*self.required, *self.sensitive, *features]))

    def find_features(self, names: Sequence[str], table: str) -> list[str]:
        """Return the features among the columns of a table; raise if the roles do not fit the
        table.
        """
        check_distinct(names, table)
        taken = [*self.required, *self.sensitive]
        for name in taken:
            if [name] != expand(name, names, table) or name in (self.drop or ()):
                raise ValueError(
                    f"{name!r} cannot be dropped: it is the target, an attribute, or the column"
                    " that rows are split or weighted by."
                )
        if self.target in self.sensitive:
            raise ValueError(f"{self.target!r} is both the target and a sensitive attribute.")
        if len(set(self.sensitive)) < len(self.sensitive):
            raise ValueError(
                f"name each sensitive attribute only once; got {', '.join(self.sensitive)}."
            )
        chosen = [
            name for pattern in self.features or ("*",) for name in expand(pattern, names, table)
        ]
        excluded = {name for pattern in self.drop or () for name in expand(pattern, names, table)}
        excluded |= {*taken}
        features = [name for name in dict.fromkeys(chosen) if name not in excluded]
        if not features:
            raise ValueError(
                f"{table} has no features left, only the target and the attributes. Add columns or"
                " drop fewer."
            )
        if named := [name for name in taken if name in (self.features or ())]:
            raise ValueError(
                f"{named[0]!r} cannot be a feature: it is the target, an attribute, or the column"
                " that rows are split or weighted by."
            )
        return features
