"""Read columns of a file as numbers, such as scores and sensitive attributes for an audit."""

from __future__ import annotations

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


@dataclass(frozen=True, eq=False)
class NumericTable:
    """Columns as float64 without missing values, and how many rows were given, dropped and sampled.

    `target` holds the values of the target as they are in the file, and `notes` what was found out about the file.
    """

    columns: dict[str, np.ndarray]
    derived: np.ndarray
    given: int
    dropped: int
    sampled: bool
    target: pd.Series[Any] | None = None
    notes: tuple[str, ...] = ()

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
    seed, watch, options
        As in :func:`frhsic.tables.read_rows`.
    advice
        How to tell a user what to do.
    """
    names = list(roles)
    rows = read_rows(
        path,
        names,
        numeric=[name for name in names if name != target or positive is None],
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
    )
