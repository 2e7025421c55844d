"""People with the same control features: columns are crossed into strata, each with enough rows for
a separate gap.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from frhsic import _arrays
from frhsic.formatting import format_count
from frhsic.parity.rows import Integers
from frhsic.tables.columns import (
    check_distinct,
    column_kind,
    distinct_values,
    is_frame,
    is_missing,
    level_text,
    numbers,
    to_pandas,
)

FIFTHS = 5
"""Number of bins with about equal counts for a numeric control with more distinct values."""

LEAST_STRATUM_ROWS = 50
"""Fewest rows in a stratum; with fewer rows, the interval of the gap is too wide to be useful."""

MOST_STRATA = 32
"""Largest number of strata; all other strata are merged."""

OTHER = "other"


@dataclass(frozen=True)
class ControlColumn:
    """How the values of one control are mapped to levels. For numbers, `cuts` contains the upper
    end of every bin except the last; other values are stored as text.
    """

    name: str
    cuts: tuple[float, ...] = ()
    levels: tuple[str, ...] = ()

    @classmethod
    def fit(cls, column: pd.Series[Any], name: str) -> ControlColumn:
        """Learn the levels of a column."""
        present = column[~is_missing(column)]
        if column_kind(column) in ("number", "date") and present.nunique() > FIFTHS:
            values = np.sort(numbers(present, name))
            below = values[values < values[-1]]  # the largest value is above all cuts
            places = np.ceil(np.arange(1, FIFTHS) / FIFTHS * len(values)).astype(int) - 1
            cuts = np.unique(values[np.minimum(places, len(below) - 1)])
            return cls(name, cuts=tuple(cuts.tolist()))
        texts = [level_text(value) for value in distinct_values(present)]
        return cls(name, levels=tuple(dict.fromkeys(texts)))

    def codes(self, column: pd.Series[Any]) -> Integers:
        """Return the index of each row's level, or -1 if the value is missing or new."""
        if self.cuts:
            values = numbers(column, self.name)
            level = np.searchsorted(self.cuts, values)
            return np.where(np.isnan(values), -1, level)
        known = {level: code for code, level in enumerate(self.levels)}
        place, present = pd.factorize(column)
        codes = [known.get(level_text(value), -1) for value in present.tolist()]
        return np.array([*codes, -1], dtype=np.int64)[place]

    @property
    def texts(self) -> tuple[str, ...]:
        """The name of each level, such as ``"cook"`` or ``"above 35 to 40"``."""
        if not self.cuts:
            return self.levels
        ends = [f"{cut:.6g}" for cut in self.cuts]
        between = [f"above {low} to {high}" for low, high in pairwise(ends)]
        return f"up to {ends[0]}", *between, f"above {ends[-1]}"


@dataclass(frozen=True)
class Strata:
    """Control features crossed into strata, fitted on some rows and applied to new ones.

    Attributes
    ----------
    columns
        How the values of each control are mapped to levels.
    levels
        The level of each control in each stratum.
    rows
        Number of rows in each stratum when the strata were fitted; the last number is that of all
        other rows.
    joined
        Number of combinations of levels with few rows, which were merged into "other".
    missing
        Number of rows with a missing control, which are also in "other".

    Examples
    --------
    >>> strata = Strata.fit(["cook", "nurse"] * 60 + ["diver"] * 3)
    >>> strata.names, strata.rows, strata.codes(["nurse", "diver", None]).tolist()
    (('cook', 'nurse', 'other'), (60, 60, 3), [1, 2, 2])
    """

    columns: tuple[ControlColumn, ...]
    levels: tuple[tuple[int, ...], ...]
    rows: tuple[int, ...]
    joined: int
    missing: int

    @classmethod
    def fit(cls, controls: Any, *, least: int = LEAST_STRATUM_ROWS) -> Strata:
        """Define strata, each with at least `least` of the given rows."""
        table = control_frame(controls)
        columns = tuple(ControlColumn.fit(table[name], str(name)) for name in table)
        codes = np.column_stack([column.codes(table[column.name]) for column in columns])
        known = codes[(codes >= 0).all(axis=1)]
        cells, counts = np.unique(known, axis=0, return_counts=True)
        largest = np.argsort(-counts, kind="stable")[:MOST_STRATA]
        kept = np.sort(largest[counts[largest] >= least])
        rows = counts[kept]
        return cls(
            columns=columns,
            levels=tuple(tuple(cell) for cell in cells[kept].tolist()),
            rows=(*rows.tolist(), len(table) - int(rows.sum())),
            joined=len(counts) - len(kept),
            missing=len(table) - len(known),
        )

    def codes(self, controls: Any) -> Integers:
        """Return the stratum of each row; this is `other` if the row's controls are missing, new or
        rare.
        """
        table = control_frame(controls)
        names = self._names
        if len(names) == 1 and table.shape[1] == 1:
            table.columns = pd.Index(names)  # a column without a name is still the control
        lacking = [name for name in names if name not in table]
        if lacking:
            raise ValueError(
                f"control_features lacks {', '.join(lacking)}; pass the same columns that you"
                " passed to fit."
            )
        codes = np.column_stack([column.codes(table[column.name]) for column in self.columns])
        places = np.full([len(column.texts) + 1 for column in self.columns], self.other)
        for place, cell in enumerate(self.levels):
            places[cell] = place
        return np.asarray(places[tuple(codes.T)])  # level -1 gives the last one

    def recounted(self, controls: Any) -> Strata:
        """Return the same strata with the counts of different rows."""
        codes = self.codes(controls)
        table = control_frame(controls)
        if table.shape[1] > 1:  # a single column may have a different name
            table = table[self._names]
        rows = np.bincount(codes, minlength=self.other + 1)
        missing = table.apply(is_missing).any(axis=1).sum()
        return replace(self, rows=tuple(rows.tolist()), missing=int(missing))

    @property
    def _names(self) -> list[str]:
        return [column.name for column in self.columns]

    @property
    def other(self) -> int:
        """Code of the last stratum, for rows whose combination of controls has no stratum."""
        return len(self.levels)

    @property
    def names(self) -> tuple[str, ...]:
        """The name of each stratum; the last is "other"."""
        texts = [column.texts for column in self.columns]
        crossed = [
            ", ".join(each[level] for each, level in zip(texts, cell)) for cell in self.levels
        ]
        return *crossed, OTHER

    @property
    def label(self) -> str:
        """The names of the controls, such as ``"education and sex"``."""
        return " and ".join(column.name for column in self.columns)

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences about the controls that were binned and the strata that were merged."""
        notes = [
            f"{column.name} is numeric and was split into {len(column.texts)} bins of about equal"
            f" size: {'; '.join(column.texts)}."
            for column in self.columns
            if column.cuts
        ]
        if self.joined:
            group, was = ("group", "was") if self.joined == 1 else ("groups", "were")
            notes.append(
                f"{self.joined:,} small {group} with the same {self.label} {was} merged into"
                f" {OTHER!r}, which has {format_count(self.rows[-1], 'row')}."
            )
        if self.missing:
            has, counts = ("has", "counts") if self.missing == 1 else ("have", "count")
            notes.append(
                f"{format_count(self.missing, 'row')} {has} no value of {self.label} and"
                f" {counts} as {OTHER!r}."
            )
        return tuple(notes)


def control_frame(controls: Any) -> pd.DataFrame:
    """Return control features as a frame with named columns."""
    _arrays.require_values(controls, "control_features")
    if is_frame(controls) or isinstance(controls, dict):
        table = to_pandas(controls, "control_features")
    else:
        name = _arrays.array_name(controls, "control")
        if hasattr(controls, "to_pandas"):  # a column of polars or pyarrow
            controls = controls.to_pandas()
        if _arrays.is_tensor(controls):
            controls = _arrays.to_numpy(controls)
        if not isinstance(controls, pd.Series):
            controls = np.asarray(controls)
        if controls.ndim > 2:
            raise ValueError(
                f"control_features has shape {controls.shape}; pass one row per observation and one"
                " column per control."
            )
        table = pd.DataFrame(controls).reset_index(drop=True)
        table.columns = pd.Index(_arrays.column_names([], name, table.shape[1]))
    if table.shape[1] == 0:
        raise ValueError("control_features has no columns; pass at least one column, or None.")
    check_distinct(table.columns, "control_features")
    return table
