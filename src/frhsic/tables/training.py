"""Read a file as a training table: features as they are, a target, sensitive attributes, and random splits of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from frhsic.splits import by_group, in_order
from frhsic.tables.columns import PYTHON, Advice, distinct, find_kinds, label, typed
from frhsic.tables.dialect import DEFAULTS, ReadOptions
from frhsic.tables.files import column_names, decimal, read_rows
from frhsic.tables.roles import ColumnRoles, check_varies, read_attributes
from frhsic.tables.suspicions import suspicions
from frhsic.tables.targets import Target, is_positive, read_target

LEAST_HELD_OUT = 20
"""Rows that an audit needs."""


@dataclass(frozen=True, eq=False)
class TrainingTable:
    """Rows to train on and to measure on.

    Features may be missing. A row whose sensitive attribute is missing may train and is not measured on.

    Attributes
    ----------
    X, y, s
        Features, target (two labels if `binary`, else numbers) and sensitive attributes.
    binary
        Whether the target has two classes.
    name, target_name
        Names of the table and of the target.
    dropped
        Number of rows of the table that lack the target, or the column to split by.
    notes
        Sentences that a reader should see.
    given
        Number of rows of the table, those that were dropped or not drawn among them; 0 if they are all here.
    favourable
        The label that is good for a person, or None for the positive one.
    groups, order
        Columns to split rows by, or None.
    """

    X: pd.DataFrame
    y: np.ndarray
    s: pd.DataFrame
    binary: bool
    name: str
    target_name: str
    dropped: int = 0
    notes: tuple[str, ...] = ()
    given: int = 0
    favourable: object = None
    groups: np.ndarray | None = None
    order: np.ndarray | None = None

    def split(self, shares: Sequence[float], seed: int) -> list[tuple[pd.DataFrame, np.ndarray, pd.DataFrame]]:
        """Split the rows into X, y, s: first those left for training, then one part of each share."""
        return [self._rows(rows) for rows in self.split_rows(shares, seed)]

    def split_rows(self, shares: Sequence[float], seed: int) -> list[np.ndarray]:
        """Return the rows of each part: at random, or with groups kept together, or the later the last in `order`.

        Rows without a sensitive attribute are left out of all parts but the first.
        """
        n = len(self.y)
        sizes = [round(share * n) for share in shares]
        if not all(0 < share < 1 for share in shares) or sum(shares) >= 1:
            shown = " and ".join(f"{share:g}" for share in shares)
            raise ValueError(f"the shares held out are {shown}; pass shares above 0 that leave rows to train on.")
        if self.groups is not None:
            parts = by_group(self.groups, shares, seed=seed, name="the column of groups")
        elif self.order is not None:
            parts = in_order(self.order, shares, name="the column to split by")
        else:
            order = np.random.default_rng([seed, 0]).permutation(n)
            parts = np.split(order, n - np.cumsum(sizes[::-1])[::-1])
        known = self.s.notna().all(axis=1).to_numpy()
        parts = [parts[0], *(rows[known[rows]] for rows in parts[1:])]
        for share, rows in zip(shares, parts[1:]):
            if len(rows) < LEAST_HELD_OUT:
                raise ValueError(
                    f"{self.name} has {n} rows with a target; {100 * share:g} % of them are {len(rows)}, and to "
                    f"measure on held out rows takes {LEAST_HELD_OUT}. Bring more rows, or hold out a larger share."
                )
        labels = self.y[parts[0]]
        if self.binary and len(np.unique(labels)) < 2:
            raise ValueError(
                f"all {len(labels):,} rows drawn for training have {labels[0]!r} as their target; {self.name} has too "
                "few of the other value. Bring more of them."
            )
        return parts

    def _rows(self, rows: np.ndarray) -> tuple[pd.DataFrame, np.ndarray, pd.DataFrame]:
        X, s = (frame.iloc[rows].reset_index(drop=True) for frame in (self.X, self.s))
        where = f"all {len(s):,} rows of one part of the split; it varies too little, or the table is too small"
        check_varies(s, where)
        return X, self.y[rows], s


def read_training_table(
    path: Path,
    roles: ColumnRoles,
    *,
    seed: int = 0,
    watch: Callable[[int], None] | None = None,
    advice: Advice = PYTHON,
    options: ReadOptions = DEFAULTS,
) -> TrainingTable:
    """Read a file and check it. Rows without a target are dropped; of a long file, a uniform sample is kept.

    Parameters
    ----------
    path
        CSV, TSV, Parquet or Arrow (IPC, Feather).
    roles
        Which columns are what.
    advice
        How to tell a user what to do.
    seed, watch, options
        As in :func:`frhsic.tables.read_rows`.
    """
    features = roles.find_features(column_names(path, options), path.name)
    target, sensitive = roles.target, list(roles.sensitive)
    keys = [name for name in roles.split_by if name not in (target, *sensitive)]
    rows = read_rows(
        path,
        [target, *sensitive, *features, *keys],
        numeric=sensitive,
        required=[target, *roles.split_by],
        seed=seed,
        watch=watch,
        options=options,
    )
    notes = [*rows.notes]
    if rows.sampled:
        notes.append(f"The table has {rows.given:,} rows; {len(rows.frame):,} of them, drawn at random, were used.")
    s, banded = read_attributes(rows.frame[sensitive], path.name)
    check_varies(s, f"every row of {path.name}; nothing can depend on it")
    table = typed(rows.frame[[target, *features]], options.number_marks, decimal(path, options))
    table, s = table.reset_index(drop=True), s.reset_index(drop=True)
    find_kinds(table[features], path.name, advice=advice)
    y = _target(table[target], roles.positive, advice)
    notes += [*banded, *_without_attribute(s), *suspicions(table[features], y, s, advice)]
    return TrainingTable(
        table[features],
        y.codes.astype(np.int64) if roles.positive is not None else y.labels,
        s,
        y.task == "binary",
        path.name,
        target if roles.positive is None else f"{target} = {roles.positive}",
        rows.dropped,
        tuple(notes),
        rows.given,
        _favourable(table[target], y, roles),
        *(None if name is None else rows.frame[name].to_numpy() for name in (roles.groups, roles.order)),
    )


def _without_attribute(s: pd.DataFrame) -> Iterator[str]:
    """Yield a sentence for each attribute that some rows lack."""
    for name in s:
        missing = int(s[name].isna().sum())
        if missing:
            yield (f"{missing:,} of {len(s):,} rows lack {name}; the numbers below are of rows that have it.")


def _favourable(column: pd.Series[Any], target: Target, roles: ColumnRoles) -> object:
    """Return the label of the favourable outcome among the labels that are trained on, or None if it is not named."""
    if roles.favourable is None:
        return None
    if target.task != "binary":
        raise ValueError(f"favourable={roles.favourable!r} is for a target of two classes; this one is a number.")
    rows = is_positive(column, roles.favourable, str(column.name)) == 1
    if not rows.any():
        shown = ", ".join(repr(label(value)) for value in distinct(column)[:5])
        raise ValueError(f"favourable={roles.favourable!r} is not a value of {str(column.name)!r}: {shown}.")
    codes = np.unique(target.codes[rows])
    return int(codes[0]) if roles.positive is not None else target.labels[rows][0]


def _target(column: pd.Series[Any], positive: object, advice: Advice) -> Target:
    target = read_target(column, task=None if positive is None else "binary", positive=positive)
    if target.task == "multiclass":
        shown = ", ".join(repr(str(value)[:30]) for value in target.classes[:5])
        raise ValueError(
            f"the target {str(column.name)!r} is text with {len(target.classes)} different values: {shown}, ... "
            f"{advice.positive} to predict one of them against the rest."
        )
    return target
