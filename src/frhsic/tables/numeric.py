"""Read columns of a file as numbers, such as scores and sensitive attributes for an audit."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from frhsic.tables.columns import PYTHON, Advice, numbers
from frhsic.tables.dialect import DEFAULTS, ReadOptions
from frhsic.tables.files import NOTHING, Derived, read_rows
from frhsic.tables.sensitive import attribute
from frhsic.tables.targets import is_positive

WHOLE_NUMBER = re.compile(r"0|-?[1-9]\d{0,17}")


@dataclass(frozen=True, eq=False)
class NumericTable:
    """Columns as float64 without missing values, and how many rows were given, dropped and sampled.

    `target` holds the values of the target as they are in the file, and `notes` what was found out about the file.
    `groups` and `weights` of the rows, or None, may have missing values; their index counts the rows of the file.
    """

    columns: dict[str, np.ndarray]
    derived: np.ndarray
    given: int
    dropped: int
    sampled: bool
    target: pd.Series[Any] | None = None
    notes: tuple[str, ...] = ()
    groups: pd.Series[Any] | None = None
    weights: pd.Series[Any] | None = None

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(self.derived)


def read_numbers(
    path: Path,
    roles: Mapping[str, str],
    *,
    target: str | None = None,
    positive: object = None,
    derived: Derived = NOTHING,
    groups: str | None = None,
    weights: str | None = None,
    seed: int = 0,
    watch: Callable[[int], None] | None = None,
    advice: Advice = PYTHON,
    options: ReadOptions = DEFAULTS,
) -> NumericTable:
    """Read columns of a file as numbers. Rows with a missing value are dropped; of a long file, a sample is kept.

    Parameters
    ----------
    path
        CSV, TSV, Parquet or Arrow (IPC, Feather).
    roles
        The columns to read, and what messages call each of them, such as "sensitive attribute". Bands such as "30-39"
        become numbers, see :func:`frhsic.tables.sensitive.attribute`.
    target, positive
        The column whose value `positive` becomes 1 and any other 0; without `positive` it must be numeric.
    derived
        Further numbers, made piece by piece from columns of any kind.
    groups, weights
        Columns that say which rows belong together, by identifiers of any kind, and how much each row counts. A missing
        value there drops no row.
    seed, watch, options
        As in :func:`frhsic.tables.read_rows`.
    advice
        How to tell a user what to do.
    """
    names = list(roles)
    as_text = [] if positive is None else [target]
    beside = [name for name in dict.fromkeys((groups, weights)) if name is not None and name not in names]
    written = [name for name in beside if name == groups and name != weights and name not in derived.columns]
    rows = read_rows(
        path,
        [*names, *beside],
        numeric=[name for name in (*names, *beside) if name == weights or (name in names and name not in as_text)],
        text=written,
        required=names,
        derived=derived,
        seed=seed,
        watch=watch,
        options=options,
    )
    columns, notes = {}, list(rows.notes)
    for name in names:
        values, words = rows.frame[name], f"column {name!r} ({roles[name]})"
        if name != target:
            columns[name], note = attribute(values, words)
            notes += [note] if note else []
        elif positive is not None:
            columns[name] = is_positive(values, positive, name)
        else:
            columns[name] = numbers(values, words, remedy=f"{advice.positive} to say which value counts as 1.")
    return NumericTable(
        columns={name: np.ascontiguousarray(values) for name, values in columns.items()},
        derived=rows.derived,
        given=rows.given,
        dropped=rows.dropped,
        sampled=rows.sampled,
        target=None if target is None else rows.frame[target].reset_index(drop=True),
        notes=tuple(notes),
        groups=None if groups is None else _identifiers(rows.frame[groups]),
        weights=None if weights is None else _weights(rows.frame[weights], weights),
    )


def _identifiers(column: pd.Series[Any]) -> pd.Series[Any]:
    """Return identifiers; text of whole numbers without leading zeros becomes numbers, which sort as such."""
    present = column.dropna()
    whole = len(present) == len(column) and all(
        isinstance(value, str) and WHOLE_NUMBER.fullmatch(value) for value in present.unique()
    )
    return column.astype(np.int64) if whole else column


def _weights(column: pd.Series[Any], name: str) -> pd.Series[Any]:
    return pd.Series(numbers(column, f"column {name!r} (weights of rows)"), column.index, name=name)
