"""Read a file as a training table: features as they are, a target, sensitive attributes, and random splits of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from frhsic.splits import by_group, in_order
from frhsic.tables.columns import PYTHON, Advice, find_kinds, typed
from frhsic.tables.files import DEFAULTS, ReadOptions, column_names, read_sample
from frhsic.tables.roles import ColumnRoles, check_varies, read_sensitive
from frhsic.tables.targets import Target, read_target

LEAST_HELD_OUT = 20
"""Rows that an audit needs."""


@dataclass(frozen=True, eq=False)
class TrainingTable:
    """Rows without missing values. `y` holds two labels if `binary`, else numbers."""

    X: pd.DataFrame
    y: np.ndarray
    s: pd.DataFrame
    binary: bool
    name: str
    target_name: str
    dropped: int = 0
    notes: tuple[str, ...] = ()
    groups: np.ndarray | None = None
    order: np.ndarray | None = None

    def split(self, shares: Sequence[float], seed: int) -> list[tuple[pd.DataFrame, np.ndarray, pd.DataFrame]]:
        """Split the rows into X, y, s: first those left for training, then one part of each share."""
        return [self._rows(rows) for rows in self.split_rows(shares, seed)]

    def split_rows(self, shares: Sequence[float], seed: int) -> list[np.ndarray]:
        """Return the rows of each part: at random, or with groups kept together, or the later the last in `order`."""
        n = len(self.y)
        sizes = [round(share * n) for share in shares]
        for share, size in zip(shares, sizes):
            if not 0 < share < 1 or sum(shares) >= 1:
                shown = " and ".join(f"{share:g}" for share in shares)
                raise ValueError(f"the shares held out are {shown}; pass shares above 0 that leave rows to train on.")
            if size < LEAST_HELD_OUT:
                raise ValueError(
                    f"{self.name} has {n} complete rows; {100 * share:g} % of them are {size}, and to measure on held "
                    f"out rows takes {LEAST_HELD_OUT}. Bring more rows, or hold out a larger share."
                )
        if self.groups is not None:
            parts = by_group(self.groups, shares, seed=seed, name="the column of groups")
        elif self.order is not None:
            parts = in_order(self.order, shares, name="the column to split by")
        else:
            order = np.random.default_rng([seed, 0]).permutation(n)
            parts = np.split(order, n - np.cumsum(sizes[::-1])[::-1])
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
    """Read a file, check it, and drop the rows with a missing value; of a long file, a uniform sample is kept.

    Parameters
    ----------
    path
        CSV, TSV, Parquet or Arrow (IPC, Feather).
    roles
        Which columns are what.
    seed
        Seed of the sample.
    watch
        Called with the number of rows read so far.
    advice
        How to tell a user what to do.
    options
        How a text file is read.
    """
    features = roles.find_features(column_names(path, options), path.name)
    target, sensitive = roles.target, list(roles.sensitive)
    columns = [target, *sensitive, *features, *(name for name in roles.split_by if name not in (target, *sensitive))]
    frame, given = read_sample(path, columns, sensitive, seed=seed, watch=watch, options=options)
    s = read_sensitive(frame[sensitive], path.name)
    table = typed(frame[[target, *features]], options.number_marks)
    keys = frame[roles.split_by]
    complete = (table.notna().all(axis=1) & s.notna().all(axis=1) & keys.notna().all(axis=1)).to_numpy()
    if not complete.any():
        share = table.isna().mean()
        worst = str(share.idxmax())
        raise ValueError(
            f"every row of {path.name} lacks a value in one of its columns, most often in {worst!r} "
            f"({100 * share.max():.0f} % of the rows). Leave such columns out. {advice.drop([worst])}."
        )
    table, s = table[complete].reset_index(drop=True), s[complete].reset_index(drop=True)
    find_kinds(table[features], path.name, advice=advice)
    check_varies(s, f"every complete row of {path.name}; nothing can depend on it")
    y = _target(table[target], roles.positive, advice)
    used = f"The table has {given:,} rows; {len(frame):,} of them, drawn at random, were used."
    return TrainingTable(
        table[features],
        y.codes.astype(np.int64) if roles.positive is not None else y.labels,
        s,
        y.task == "binary",
        path.name,
        target if roles.positive is None else f"{target} = {roles.positive}",
        int((~complete).sum()),
        (used,) if len(frame) < given else (),
        *(None if name is None else keys.loc[complete, name].to_numpy() for name in (roles.groups, roles.order)),
    )


def _target(column: pd.Series[Any], positive: object, advice: Advice) -> Target:
    target = read_target(column, task=None if positive is None else "binary", positive=positive)
    if target.task == "multiclass":
        shown = ", ".join(repr(str(value)[:30]) for value in target.classes[:5])
        raise ValueError(
            f"the target {str(column.name)!r} is text with {len(target.classes)} different values: {shown}, ... "
            f"{advice.positive} to predict one of them against the rest."
        )
    return target
