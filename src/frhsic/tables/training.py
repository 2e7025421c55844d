"""Read a file as a training table: features, target, sensitive attributes, and the schema of the
file.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from frhsic.splits import held_out_rows
from frhsic.tables.checking import Examined, examine
from frhsic.tables.columns import distinct_values, level_text
from frhsic.tables.files import FileRows, TableFile, read_rows
from frhsic.tables.identifiers import unit_keys
from frhsic.tables.people import lost_classes
from frhsic.tables.problems import require_none
from frhsic.tables.roles import ColumnRoles
from frhsic.tables.schema import ReplacingSchema, Schema
from frhsic.tables.sensitive import check_varies
from frhsic.tables.targets import MOST_CLASSES, is_positive, merge_labels
from frhsic.tables.view import TableCheck

# Fewest rows for an audit.
LEAST_HELD_OUT = 20


@dataclass(frozen=True, eq=False)
class TrainingTable:
    """Rows for training and evaluation.

    Features may have missing values. Rows with a missing sensitive attribute are used for training
    but not for evaluation.

    Attributes
    ----------
    X
        Features.
    y
        Target: labels or numbers.
    s
        Sensitive attributes.
    classes
        The labels, with the positive one of two last; None for numbers.
    name
        Name of the table.
    target_name
        Name of the target.
    dropped
        Number of rows of the table that lack the target or the column to split by, or were removed.
    lacking
        For each required column, the number of rows without a value that have values for the
        columns named before it.
    removed, repeated
        Numbers of dropped lines that contain totals or repeat the header, and of dropped rows that
        repeat an earlier one.
    notes
        Notes for the user.
    given
        Number of rows of the table, including rows that were dropped or not sampled; 0 if none
        were.
    favourable
        The favourable label, or None for the positive one.
    groups
        Column that identifies rows that belong together, or None.
    order
        Column to split rows by, such as a date, or None.
    weights
        Column of row weights, or None.
    places
        Position of each row in the file, or None.
    late
        Features that may be known only after the target.
    schema
        Schema of the features in the file; None without a file.
    """

    X: pd.DataFrame
    y: np.ndarray
    s: pd.DataFrame
    classes: np.ndarray | None
    name: str
    target_name: str
    dropped: int = 0
    removed: int = 0
    repeated: int = 0
    notes: tuple[str, ...] = ()
    given: int = 0
    favourable: object = None
    groups: np.ndarray | None = None
    order: np.ndarray | None = None
    weights: np.ndarray | None = None
    places: np.ndarray | None = None
    late: tuple[str, ...] = ()
    schema: Schema | None = None
    sensitive_schema: Schema | None = None
    lacking: dict[str, int] = field(default_factory=dict)

    def split(self, share: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the training rows and the held-out rows, all of which have the sensitive
        attributes. Both have the same share of each class, unless there are groups or an order.
        """
        train, held = held_out_rows(
            len(self.y),
            share,
            seed=seed,
            groups=self.groups,
            order=self.order,
            classes=None if self.classes is None else self.y,
        )
        held = held[self.s.iloc[held].notna().all(axis=1).to_numpy()]
        if len(held) < LEAST_HELD_OUT:
            raise ValueError(
                f"{self.name} has {len(self.y)} rows with a target, of which {len(held)} are held"
                f" out, but at least {LEAST_HELD_OUT} are needed. Pass more rows, or hold out a"
                " larger share."
            )
        labels = self.y[train]
        if self.classes is not None and len(np.unique(labels)) < 2:
            raise ValueError(
                f"all {len(labels):,} rows drawn for training have the target {labels[0]!r}, since"
                f" {self.name} has too few rows with the other value. Pass more rows with this"
                " value."
            )
        for rows in (train, held):
            check_varies(
                self.s.iloc[rows],
                f"all {len(rows):,} rows of one part of the split; pass more rows",
            )
        return train, held


def check_file(
    file: TableFile, roles: ColumnRoles, *, seed: int = 0
) -> tuple[FileRows, TableCheck, Examined]:
    """Read the usable rows of a file, and check all its columns for problems."""
    names = roles.find_features(file.names, file.path.name)
    rows = read_rows(file, roles.columns(names), required=roles.required, seed=seed, whole=True)
    if roles.drop_repeated:
        rows = rows.without_repeated()
    check = TableCheck.from_cells(
        rows.frame,
        decimal=file.decimal,
        separator=file.separator,
        date_format=file.date_format,
        missing=file.missing,
        repeats=rows.repeats,
    )
    check.problems += rows.left_out.problems
    examined = examine(check, roles, names)
    if roles.groups is not None and roles.target is not None:
        columns = [roles.target, roles.groups]
        answered = read_rows(file, columns, required=columns[:1], seed=seed).frame
        labels, _ = merge_labels(answered[roles.target])
        if labels.nunique() <= MOST_CLASSES:
            check.problems += lost_classes(answered[roles.groups], labels)
    return rows, check, examined


def read_training_table(
    file: TableFile,
    roles: ColumnRoles,
    *,
    seed: int = 0,
) -> TrainingTable:
    """Read a file and learn its schema. Rows without a target are dropped; of a long file, a
    uniform sample is kept.

    Columns that identify rows are dropped, with a note, unless `roles` name them as features;
    columns without any value are always dropped. All problems that make the table unusable are
    reported in one error.

    Parameters
    ----------
    file
        The file.
    roles
        The roles of the columns.
    seed
        As in :func:`frhsic.tables.files.read_rows`.
    """
    rows, check, examined = check_file(file, roles, seed=seed)
    require_none(check.problems, file.path.name)
    assert roles.target is not None
    assert examined.codes is not None
    codes, classes, table = examined.codes, examined.classes, check.table
    schema = check.schema
    if file.replacements:
        schema = ReplacingSchema(**vars(schema), replacements=file.replacements)
    notes = [*file.notes, *rows.note("used"), *map(str, check.sorted_problems)]
    leaks = {name for one in check.problems if one.kind == "leak" for name in one.columns}
    groups = None
    if roles.groups is not None:
        cells = rows.frame[roles.groups].map(level_text)
        first = cells.groupby(unit_keys(rows.frame[roles.groups])).transform("first")
        keys = first.fillna(cells)
        if not keys.is_unique:  # single rows are independent
            groups = keys.to_numpy(dtype=object)
    return TrainingTable(
        X=table[examined.features].reset_index(drop=True),
        y=codes if classes is None else classes[codes.astype(np.int64)],
        s=examined.s.reset_index(drop=True),
        classes=classes,
        name=file.path.name,
        target_name=roles.target,
        dropped=rows.dropped,
        removed=len(rows.left_out),
        repeated=rows.repeated,
        notes=tuple(notes),
        given=rows.given,
        favourable=_favourable_class(table[roles.target], codes, classes, roles.favourable),
        groups=groups,
        order=None if roles.order is None else table[roles.order].to_numpy(),
        weights=None if roles.weights is None else table[roles.weights].to_numpy(),
        places=rows.frame.index.to_numpy(),
        late=tuple(name for name in examined.features if name in leaks),
        schema=schema.select(examined.features),
        sensitive_schema=schema.select(list(roles.sensitive)),
        lacking=rows.lacking,
    )


def _favourable_class(
    column: pd.Series[Any], codes: np.ndarray, classes: np.ndarray | None, favourable: object
) -> object:
    """Return the class of the favourable value, or None if none was named."""
    if favourable is None:
        return None
    if classes is None:
        raise ValueError(
            f"favourable={favourable!r} needs a target with two classes, but the target is numeric."
        )
    rows = is_positive(column, favourable, str(column.name)) == 1
    if not rows.any():
        shown = ", ".join(repr(level_text(value)) for value in distinct_values(column)[:5])
        raise ValueError(
            f"favourable={favourable!r} is not a value of {str(column.name)!r}; pass a value"
            f" such as {shown}."
        )
    return classes[int(codes[rows][0])]
