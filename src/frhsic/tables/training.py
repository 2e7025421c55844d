"""Read a file as a training table: features, a target, sensitive attributes, and the schema of the
file.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from frhsic.splits import held_out_rows
from frhsic.tables.attributes import attribute
from frhsic.tables.columns import (
    LARGEST_FEATURE,
    check_distinct,
    distinct_values,
    examples,
    expand,
    is_text,
    level_text,
    quote_names,
    require_moderate,
)
from frhsic.tables.files import TableFile, read_rows
from frhsic.tables.schema import Schema, parse_numbers, remove_grouping
from frhsic.tables.suspicions import identifiers
from frhsic.tables.targets import is_positive, read_target

# Rows that an audit needs.
LEAST_HELD_OUT = 20
# Different whole numbers of a target up to which it may have been meant as classes.
FEW_NUMBERS = 10
# Share of a column's cells that may be no numbers if it seems to have been meant as numbers.
FEW_WORDS = 0.1
# Cells that look like numbers, and the share of them above which a column of text is remarked on.
LIKE_NUMBER = r"[-+]?[0-9]+([.,][0-9]{3})*([.,][0-9]+)?"
MOST_ALIKE = 0.5


@dataclass(frozen=True)
class ColumnRoles:
    """Names of the target, of the sensitive attributes and of the features.

    `features` and `drop` may hold patterns such as ``x_*``; without `features`, all other columns
    are features. `positive` is the value of the target that counts as 1, `favourable` the value
    that is good for a person, on which Equal Opportunity is measured; left out, it is the positive
    one. `groups` and `order` are columns to split rows by; they are no features.
    """

    target: str
    sensitive: Sequence[str]
    positive: object = None
    features: Sequence[str] | None = None
    drop: Sequence[str] | None = None
    favourable: object = None
    groups: str | None = None
    order: str | None = None

    @property
    def split_columns(self) -> list[str]:
        """The columns to split rows by."""
        return [name for name in (self.groups, self.order) if name is not None]

    def find_features(self, names: Sequence[str], table: str) -> list[str]:
        """Return the features among the columns of a table; raise if the roles do not fit the
        table.
        """
        check_distinct(names, table)
        for name in (self.target, *self.sensitive, *self.split_columns):
            if [name] != expand(name, names, table) or name in (self.drop or ()):
                raise ValueError(
                    f"{name!r} is to be dropped but is the target, an attribute, or what rows are"
                    " split by."
                )
        if self.target in self.sensitive:
            raise ValueError(f"{self.target!r} is both the target and a sensitive attribute.")
        if len(set(self.sensitive)) < len(self.sensitive):
            raise ValueError(
                f"a sensitive attribute is named twice among {', '.join(self.sensitive)}."
            )
        chosen = [
            name for pattern in self.features or ("*",) for name in expand(pattern, names, table)
        ]
        excluded = {name for pattern in self.drop or () for name in expand(pattern, names, table)}
        excluded |= {self.target, *self.sensitive, *self.split_columns}
        features = [name for name in dict.fromkeys(chosen) if name not in excluded]
        if not features:
            raise ValueError(
                f"no column is left to predict from in {table}, beside the target and the"
                " attributes."
            )
        if named := [
            name for name in (self.target, *self.sensitive) if name in (self.features or ())
        ]:
            raise ValueError(
                f"{named[0]!r} is named as a feature but is the target or a sensitive attribute."
            )
        return features


@dataclass(frozen=True, eq=False)
class TrainingTable:
    """Rows to train on and to measure on.

    Features may be missing. A row whose sensitive attribute is missing may train and is not
    measured on.

    Attributes
    ----------
    X
        Features.
    y
        Target: labels or numbers.
    s
        Sensitive attributes.
    classes
        The two labels, the positive one last; None for numbers.
    name
        Name of the table.
    target_name
        Name of the target.
    dropped
        Number of rows of the table that lack the target, or the column to split by.
    notes
        Sentences that a reader should see.
    given
        Number of rows of the table, those that were dropped or not drawn among them; 0 if they are
        all here.
    favourable
        The label that is good for a person, or None for the positive one.
    groups
        Column of rows that belong together, or None.
    order
        Column to split rows by, such as a date, or None.
    schema
        What the features hold in the file; None if there was none.
    """

    X: pd.DataFrame
    y: np.ndarray
    s: pd.DataFrame
    classes: np.ndarray | None
    name: str
    target_name: str
    dropped: int = 0
    notes: tuple[str, ...] = ()
    given: int = 0
    favourable: object = None
    groups: np.ndarray | None = None
    order: np.ndarray | None = None
    schema: Schema | None = None
    sensitive_schema: Schema | None = None

    def split(self, share: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the rows to train on and those held out, of which each has the sensitive
        attributes.
        """
        train, held = held_out_rows(
            len(self.y), share, seed=seed, groups=self.groups, order=self.order
        )
        held = held[self.s.iloc[held].notna().all(axis=1).to_numpy()]
        if len(held) < LEAST_HELD_OUT:
            raise ValueError(
                f"{self.name} has {len(self.y)} rows with a target, of which {len(held)} are held"
                f" out; measuring needs {LEAST_HELD_OUT}. Pass more rows, or hold out a larger"
                " share."
            )
        labels = self.y[train]
        if self.classes is not None and len(np.unique(labels)) < 2:
            raise ValueError(
                f"all {len(labels):,} rows drawn for training have {labels[0]!r} as their target;"
                f" {self.name} has too few of the other value. Pass more of them."
            )
        for rows in (train, held):
            check_varies(
                self.s.iloc[rows],
                f"all {len(rows):,} rows of one part of the split; the table is too small",
            )
        return train, held


def read_training_table(
    file: TableFile,
    roles: ColumnRoles,
    *,
    seed: int = 0,
) -> TrainingTable:
    """Read a file and learn its schema. Rows without a target are dropped; of a long file, a
    uniform sample is kept.

    Columns that identify rows are left out unless `roles` name them as features, and those without
    any value always, with a note.

    Parameters
    ----------
    file
        The file.
    roles
        Which columns are what.
    seed
        As in :func:`frhsic.tables.files.read_rows`.
    """
    name = file.path.name
    features = roles.find_features(file.names, name)
    target = roles.target
    sensitive = list(roles.sensitive)
    columns = [target, *sensitive, *features, *roles.split_columns]
    rows = read_rows(file, columns, required=[target, *roles.split_columns], seed=seed)
    frame = rows.frame
    schema = Schema.learn(
        frame,
        decimal=file.decimal,
        separator=file.separator,
        date_format=file.date_format,
    )
    table = schema(frame)
    notes = [*file.notes, *rows.note("used")]
    attributes = {
        column: attribute(table[column], f"sensitive attribute {column!r}") for column in sensitive
    }
    for column, (values, _) in attributes.items():
        require_moderate(table[column], values, f"sensitive attribute {column!r}")
    s = pd.DataFrame({column: values for column, (values, _) in attributes.items()})
    check_varies(s, f"every row of {name}; nothing can depend on it")
    kept, left_out = _usable_features(table, schema, features, roles.features or ())
    if not kept:
        raise ValueError(f"no column is left to predict from in {name}: {' '.join(left_out)}")
    codes, classes, said = read_target(table[target], roles.positive)
    require_moderate(table[target], codes, f"target {target!r}")
    if identifiers(table[[target]]):
        said.append(f"The target {target!r} seems to identify rows; is it what is to be predicted?")
    notes += [
        *(note for _, note in attributes.values() if note),
        *_mostly_numeric_notes(table[features], file.decimal),
        *left_out,
        *_clipped_notes(table[kept]),
        *said,
        *_notes(s, codes, classes, target),
    ]
    labels = codes if classes is None else classes[codes.astype(np.int64)]
    groups = None
    if roles.groups is not None:
        groups = frame[roles.groups].map(level_text).to_numpy(dtype=object)
    return TrainingTable(
        X=table[kept].reset_index(drop=True),
        y=labels,
        s=s,
        classes=classes,
        name=name,
        target_name=target,
        dropped=rows.dropped,
        notes=tuple(notes),
        given=rows.given,
        favourable=_favourable_class(table[target], codes, classes, roles.favourable),
        groups=groups,
        order=None if roles.order is None else table[roles.order].to_numpy(),
        schema=schema.select(kept),
        sensitive_schema=schema.select(sensitive),
    )


def check_varies(s: pd.DataFrame, where: str) -> None:
    """Raise if a sensitive attribute has no value, or the same in all rows."""
    for name in s:
        if s[name].nunique() < 2:
            value = "missing" if s[name].isna().all() else f"{s[name].min():g}"
            raise ValueError(f"sensitive attribute {name!r} is {value} in {where}.")


def _usable_features(
    table: pd.DataFrame, schema: Schema, features: Sequence[str], asked: Sequence[str]
) -> tuple[list[str], list[str]]:
    """Return the features that are trained on, and a sentence for each kind of those that are left
    out.
    """
    kinds = schema.kinds
    counting = identifiers(table[list(features)])
    empty = [name for name in features if kinds[name] == "empty"]
    ids = [
        name
        for name in features
        if (kinds[name] == "identifier" or name in counting) and name not in asked
    ]
    lines = []
    if empty:
        lines.append(f"{quote_names(empty)} has no value in any row and is left out.")
    if ids:
        lines.append(
            f"{quote_names(ids)} seems to identify rows and is left out; name it with --features to"
            " use it."
        )
        alike = table[table.duplicated(ids, keep=False)]
        if repeated := int(alike.duplicated().sum()):
            lines.append(
                f"{repeated:,} of {len(table):,} rows repeat an earlier one in every column,"
                f" {quote_names(ids)} included; drop them: else rows that measure the model have"
                " trained it."
            )
    return [name for name in features if name not in {*empty, *ids}], lines


def _mostly_numeric_notes(features: pd.DataFrame, decimal: str | None) -> Iterator[str]:
    """Yield a sentence for each column of a text file that a few cells, or the way in which they
    are written, keep from being numbers.
    """
    for name, column in features.items():
        cells = column.dropna()
        if decimal is None or not is_text(cells) or cells.empty:
            continue
        bare = cells.str.strip()
        wrong = parse_numbers(remove_grouping(bare, decimal), decimal).isna()
        alike = parse_numbers(bare, decimal).isna() & bare.str.fullmatch(LIKE_NUMBER)
        if 0 < wrong.mean() <= FEW_WORDS:
            yield (
                f"{str(name)!r} is read as text, since some cells are no numbers:"
                f" {examples(cells[wrong])}. To read it as numbers, leave them empty."
            )
        elif alike.mean() > MOST_ALIKE:
            yield (
                f"{str(name)!r} is read as text, though most cells look like numbers:"
                f" {examples(cells[alike])}. To read it as numbers, write them as 1234{decimal}5."
            )


def _clipped_notes(features: pd.DataFrame) -> Iterator[str]:
    """Yield a sentence for each column of numbers that are too large to be taken as they are."""
    for name, column in features.select_dtypes("number").items():
        large = column.abs() > LARGEST_FEATURE
        if large.any():
            yield (
                f"{str(name)!r} has numbers beyond {LARGEST_FEATURE:g}, which are taken as this"
                f" one: {examples(column[large])}."
            )


def _notes(
    s: pd.DataFrame, codes: np.ndarray, classes: np.ndarray | None, name: str
) -> Iterator[str]:
    """Yield a sentence for each attribute that some rows lack, and for a target that may have been
    meant as classes.
    """
    for attribute_name, missing in s.isna().sum().items():
        if missing:
            yield (
                f"{missing:,} of {len(s):,} rows lack {attribute_name}; they may train the model"
                " and are not measured on."
            )
    values = np.unique(codes)
    if classes is None and len(values) <= FEW_NUMBERS and np.array_equal(values, np.round(values)):
        yield (
            f"The target {name!r} has {len(values)} different values and is predicted as a number;"
            " say which of them is positive to predict it against the others."
        )


def _favourable_class(
    column: pd.Series[Any], codes: np.ndarray, classes: np.ndarray | None, favourable: object
) -> object:
    """Return the class of the favourable value, or None if it is not named."""
    if favourable is None:
        return None
    if classes is None:
        raise ValueError(
            f"favourable={favourable!r} is for a target of two classes; this one is a number."
        )
    rows = is_positive(column, favourable, str(column.name)) == 1
    if not rows.any():
        shown = ", ".join(repr(level_text(value)) for value in distinct_values(column)[:5])
        raise ValueError(
            f"favourable={favourable!r} is not a value of {str(column.name)!r}: {shown}."
        )
    return classes[int(codes[rows][0])]
