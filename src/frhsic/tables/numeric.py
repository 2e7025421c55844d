"""Read columns of a file as numbers, such as scores and sensitive attributes for an audit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from frhsic.tables.columns import PYTHON, Advice, numbers
from frhsic.tables.files import DEFAULTS, ReadOptions, Reservoir, pieces
from frhsic.tables.roles import REMEDY
from frhsic.tables.targets import is_positive


@dataclass(frozen=True)
class Derived:
    """Numbers made from the rows as they are read, such as the scores of a model.

    `make` takes a frame of `columns`, without missing values, and returns `width` columns. Columns in `numeric` hold
    numbers, so that marks such as "?" are missing values there.
    """

    columns: tuple[str, ...]
    width: int
    make: Callable[[pd.DataFrame], np.ndarray]
    numeric: tuple[str, ...] = ()


@dataclass(frozen=True)
class NumericTable:
    """Columns as float64 without missing values, and how many rows were given, dropped and sampled."""

    columns: dict[str, np.ndarray]
    derived: np.ndarray
    given: int
    dropped: int
    sampled: bool

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(self.derived)


def read_numbers(
    path: Path,
    roles: Mapping[str, str],
    *,
    target: str | None = None,
    positive: str | None = None,
    derived: Derived | None = None,
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
        The columns to read, and what messages call each of them, such as "sensitive attribute".
    target, positive
        The column whose value `positive` becomes 1 and any other 0; without `positive` it must be numeric.
    derived
        Further numbers, made piece by piece from columns of any kind.
    seed
        Seed of the sample.
    watch
        Called with the number of rows read so far.
    advice
        How to tell a user what to do.
    options
        How a text file is read.
    """
    columns = list(roles)
    derived = derived or Derived((), 0, lambda frame: np.empty((len(frame), 0)))
    raw = list(derived.columns)
    reservoir = Reservoir(len(columns) + derived.width, seed)
    given = 0
    present = np.zeros(len(columns), dtype=np.int64)

    def column(frame: pd.DataFrame, name: str) -> np.ndarray:
        if name == target and positive is not None:
            return is_positive(frame[name], positive, name)
        remedy = f"{advice.positive} to say which value counts as 1." if name == target else REMEDY
        return numbers(frame[name], f"column {name!r} ({roles[name]})", remedy=remedy, offset=given)

    for frame in pieces(path, list(dict.fromkeys([*columns, *raw])), [*columns, *derived.numeric], options):
        values = np.column_stack([column(frame, name) for name in columns])
        present += (~np.isnan(values)).sum(axis=0)
        given += len(frame)
        complete = ~np.isnan(values).any(axis=1) & frame[raw].notna().all(axis=1).to_numpy()
        if complete.any():
            made = derived.make(frame.loc[complete, raw])
            reservoir.add(pd.DataFrame(np.concatenate([values[complete], made], axis=1)))
        if watch is not None:
            watch(given)
    if given == 0:
        raise ValueError(f"{path.name} has a header and no rows.")
    for name, count in zip(columns, present):
        if count == 0:
            raise ValueError(
                f"column {name!r} ({roles[name]}) has no value in any of the {given:,} rows of {path.name}; "
                "choose another column or fill it."
            )
    if reservoir.seen == 0:
        raise ValueError(
            f"every row of {path.name} lacks a value in one of {', '.join(map(repr, [*columns, *raw]))}; none is left."
        )
    rows = reservoir.rows().to_numpy()
    return NumericTable(
        columns={name: np.ascontiguousarray(rows[:, i]) for i, name in enumerate(columns)},
        derived=np.ascontiguousarray(rows[:, len(columns) :]),
        given=given,
        dropped=given - reservoir.seen,
        sampled=reservoir.seen > len(rows),
    )
