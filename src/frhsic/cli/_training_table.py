"""A user's table made ready for training: features as they are, target, attributes, and the parts of a split."""

from __future__ import annotations

import difflib
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from frhsic.cli import _tables
from frhsic.cli._terminal import Watch

if TYPE_CHECKING:
    import pandas as pd

    Part = tuple[pd.DataFrame, np.ndarray, pd.DataFrame]

__all__ = ["Columns", "Prepared", "prepare"]

LEAST_HELD_OUT = 20
"""Rows that an audit needs."""


@dataclass(frozen=True)
class Columns:
    """What was asked for on the command line: which columns play which part."""

    path: Path
    target: str
    sensitive: tuple[str, ...]
    positive: str | None = None
    features: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Prepared:
    """Rows without missing values. `y` holds two labels, or numbers (`binary` says which)."""

    X: pd.DataFrame
    y: np.ndarray
    s: pd.DataFrame
    binary: bool
    name: str
    target_name: str
    dropped: int = 0
    notes: tuple[str, ...] = ()

    def cut(self, shares: Sequence[float], seed: int) -> list[Part]:
        """Deal the rows at random: first those left for training, then one part of each share."""
        n = len(self.y)
        sizes = [round(share * n) for share in shares]
        for share, size in zip(shares, sizes):
            if not 0 < share < 1 or sum(shares) >= 1:
                said = " and ".join(f"{share:g}" for share in shares)
                raise ValueError(f"the shares held out are {said}; pass shares above 0 that leave rows to train on.")
            if size < LEAST_HELD_OUT:
                raise ValueError(
                    f"{self.name} has {n} complete rows; {100 * share:g} % of them are {size}, and to measure on held "
                    f"out rows takes {LEAST_HELD_OUT}. Bring more rows, or hold out a larger share."
                )
        order = np.random.default_rng([seed, 0]).permutation(n)
        ends = np.cumsum([n - sum(sizes), *sizes])
        parts = [self._part(order[a:b]) for a, b in zip([0, *ends], ends)]
        if self.binary and len(np.unique(parts[0][1])) < 2:
            raise ValueError(
                f"all {ends[0]:,} rows drawn for training have {parts[0][1][0]!r} as their target; {self.name} has too "
                "few of the other value. Bring more of them."
            )
        return parts

    def _part(self, rows: np.ndarray) -> Part:
        X, s = (frame.iloc[rows].reset_index(drop=True) for frame in (self.X, self.s))
        for name in s:
            if s[name].min() == s[name].max():
                raise ValueError(
                    f"{name} is {s[name].iloc[0]:g} in all {len(s):,} rows of one part of the split; it varies too "
                    "little, or the table is too small."
                )
        return X, self.y[rows], s


def prepare(columns: Columns, seed: int, watch: Watch) -> Prepared:
    """Read the table, check it, and drop the rows that lack a value."""
    path = columns.path
    names = _tables.column_names(path)
    target = _tables.find(columns.target, names, path)
    sensitive = [_tables.find(name, names, path) for name in dict.fromkeys(columns.sensitive)]
    if target in sensitive:
        raise ValueError(f"{target!r} is both the target and a sensitive attribute.")
    features = _features(columns, names, [target, *sensitive])
    frame, given = _read(path, [target, *sensitive, *features], sensitive, seed, watch)
    s = _sensitive(frame, sensitive, path)
    typed = _typed(frame[[target, *features]])
    whole = (typed.notna().all(axis=1) & s.notna().all(axis=1)).to_numpy()
    if not whole.any():
        holes = typed.isna().mean()
        raise ValueError(
            f"every row of {path.name} lacks a value in one of its columns, most often in {str(holes.idxmax())!r} "
            f"({100 * holes.max():.0f} % of the rows). Leave such columns out with --drop."
        )
    typed, s = typed[whole].reset_index(drop=True), s[whole].reset_index(drop=True)
    X = typed[features]
    _check(X, s, path)
    y, binary, said = _target(typed[target], target, columns.positive)
    notes = []
    if len(frame) < given:
        notes.append(f"The table has {given:,} rows; {len(frame):,} of them, drawn at random, were used.")
    return Prepared(X, y, s, binary, path.name, said, int((~whole).sum()), tuple(notes))


def _features(columns: Columns, names: list[str], taken: list[str]) -> list[str]:
    path = columns.path
    asked = [name for pattern in columns.features or ("*",) for name in _tables.expand(pattern, names, path)]
    left_out = {name for pattern in columns.drop for name in _tables.expand(pattern, names, path)}
    features = [name for name in dict.fromkeys(asked) if name not in taken and name not in left_out]
    if not features:
        raise ValueError(f"no column of {path.name} is left to predict from, beside the target and the attributes.")
    return features


def _read(path: Path, columns: list[str], numeric: list[str], seed: int, watch: Watch) -> tuple[pd.DataFrame, int]:
    """Return the rows, or of a long table a uniform sample, and how many there are."""
    import pandas as pd

    reservoir = _tables.Reservoir["pd.DataFrame"](len(columns), lambda parts: pd.concat(parts, ignore_index=True), seed)
    for piece in _tables.pieces(path, columns, numeric):
        reservoir.add(piece)
        watch(f"reading {path.name}: {reservoir.seen:,} rows")
    if reservoir.seen == 0:
        raise ValueError(f"{path.name} has a header and no rows.")
    return reservoir.rows().reset_index(drop=True), reservoir.seen


def _sensitive(frame: pd.DataFrame, names: list[str], path: Path) -> pd.DataFrame:
    import pandas as pd

    s = pd.DataFrame({name: _tables.numbers(frame[name], name, "sensitive attribute", 0, None) for name in names})
    for name in names:
        if s[name].isna().all():
            raise ValueError(
                f"column {name!r} (sensitive attribute) has no value in any of the {len(s):,} rows of {path.name}; "
                "choose another column or fill it."
            )
        if np.isinf(s[name]).any():
            raise ValueError(f"column {name!r} (sensitive attribute) holds infinite values; replace them first.")
    return s


def _typed(frame: pd.DataFrame) -> pd.DataFrame:
    """Columns of numbers in which "?" and the like mark what is missing become numbers; text stays text."""
    import pandas as pd

    typed = {}
    for name in frame:
        column = frame[name]
        if pd.api.types.is_object_dtype(column) or pd.api.types.is_string_dtype(column):
            marked = column.isna() | column.isin(_tables.MISSING)
            numbers = pd.to_numeric(column.mask(marked), errors="coerce")
            if not marked.all() and bool((numbers.notna() | marked).all()):
                column = numbers.astype(np.float64)
            elif column.map(type).nunique() > 1:  # pieces of a long file may have been read as different types
                column = column.map(str, na_action="ignore")
        typed[str(name)] = column
    return pd.DataFrame(typed)


def _check(X: pd.DataFrame, s: pd.DataFrame, path: Path) -> None:
    """Raise on what training would refuse, all columns of a kind in one message that says which option helps."""
    import pandas as pd

    from frhsic.estimators.tables import MOST_LEVELS

    def refuse(names: list[str], why: str) -> None:
        if names:
            said = ", ".join(map(repr, names))
            options = " ".join(f"--drop {shlex.quote(name)}" for name in names)
            raise ValueError(f"{said} of {path.name} {why} Leave out what identifies rows or is of no use: {options}.")

    kinds = {str(name): X[name].dtype for name in X}
    text = [name for name, kind in kinds.items() if not pd.api.types.is_numeric_dtype(kind)]
    times = [name for name in text if pd.api.types.is_datetime64_any_dtype(kinds[name])]
    refuse(times, "holds dates; write them as numbers, such as days since a reference.")
    levels = {name: X[name].nunique() for name in text}
    many = [name for name, count in levels.items() if count > MOST_LEVELS]
    refuse(many, f"holds text with more than {MOST_LEVELS} different values, which would be as many columns.")
    endless = [name for name in kinds if name not in text and np.isinf(X[name].to_numpy(dtype=np.float64)).any()]
    refuse(endless, "holds infinite values; replace them.")
    for name in s:
        if s[name].min() == s[name].max():
            raise ValueError(
                f"column {name!r} (sensitive attribute) is {s[name].iloc[0]:g} in every complete row of {path.name}; "
                "nothing can depend on it."
            )


def _target(column: pd.Series[Any], name: str, positive: str | None) -> tuple[np.ndarray, bool, str]:
    """Return the target, whether it is of two classes, and what it is called."""
    import pandas as pd

    distinct = pd.unique(column)
    shown = ", ".join(repr(str(value)[:30]) for value in distinct[:5]) + (", ..." if len(distinct) > 5 else "")
    if positive is not None:
        y = _tables.numbers(column, name, "target", 0, positive)
        if not (y == 1).any():
            near = difflib.get_close_matches(positive, [str(value) for value in distinct[:500]], n=1)
            hint = f" Did you mean {near[0]!r}?" if near else f" Its values: {shown}."
            raise ValueError(f"no complete row has {positive!r} as its target {name!r}.{hint}")
        if (y == 1).all():
            raise ValueError(
                f"every complete row has {positive!r} as its target {name!r}; there is nothing to predict."
            )
        return y.astype(np.int64), True, f"{name} = {positive}"
    if len(distinct) == 1:
        raise ValueError(f"the target {name!r} is {shown} in every complete row; there is nothing to predict.")
    if not pd.api.types.is_numeric_dtype(column):
        if len(distinct) > 2:
            raise ValueError(
                f"the target {name!r} is text with {len(distinct)} different values: {shown}. Pass --positive VALUE "
                "to predict one of them against the rest."
            )
        return column.astype(str).to_numpy(dtype=object), True, name
    y = column.to_numpy(dtype=np.float64)
    if np.isinf(y).any():
        raise ValueError(f"column {name!r} (target) holds infinite values; replace them first.")
    if len(distinct) == 2:
        return y.astype(np.int64) if np.array_equal(y, np.round(y)) else y, True, name
    return y, False, name
