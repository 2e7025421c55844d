"""What an audit is given, as checked arrays: scores or a representation, attributes, target, weights and groups."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
import pandas as pd

from frhsic import _arrays
from frhsic._warnings import warn
from frhsic.auditing.results import Law, Target
from frhsic.formatting import plain
from frhsic.tables.columns import attribute, is_positive, label, read_sensitive, row_number

LEAST_ROWS = 20
MOST_LEVELS = 12
"""Levels of unordered groups at most."""
LARGEST_LOGIT = 20.0
SHOWN_ROWS = 5
"""Rows without a value that a message names at most."""


@dataclass(frozen=True, eq=False)
class Rows:
    """Data of one population in float64: z of shape (n, d), s of shape (n, q), and per row or None the others.

    `y` is a target whose errors are looked at; among rows with one outcome it is None. `favoured` marks the rows with
    the favourable outcome; None if the target does not say which these are. `weights` and `groups` are used by the
    gaps; other measures use :meth:`independent` rows.
    """

    z: np.ndarray
    s: np.ndarray
    scores: np.ndarray | None
    y: np.ndarray | None = None
    favoured: np.ndarray | None = None
    weights: np.ndarray | None = None
    groups: np.ndarray | None = None
    threshold: float | None = None

    @property
    def count(self) -> int:
        """Number of rows."""
        return len(self.z)

    @property
    def effective(self) -> float:
        """Effective number of rows, or of groups."""
        weights = np.ones(self.count) if self.weights is None else self.weights
        sums = weights if self.groups is None else np.bincount(self.groups, weights)
        return float(sums.sum() ** 2 / (sums**2).sum())

    def law(self, values: np.ndarray) -> Law:
        """Return the distribution of a variable of these rows."""
        distinct, place = np.unique(values, return_inverse=True)
        return Law.of(distinct, np.bincount(place, self.weights), self.effective)

    def along(self, i: int) -> Self:
        """Return the rows with one of the attributes."""
        return replace(self, s=self.s[:, [i]])

    def keep(self, rows: np.ndarray) -> Self:
        """Return some of the rows, by mask or position."""
        parts: dict[str, Any] = {key: part[rows] for key, part in vars(self).items() if isinstance(part, np.ndarray)}
        return replace(self, **parts)

    def independent(self, random: np.random.Generator) -> Self:
        """Return independent rows of the weighted population: one of each group, kept in proportion to its weight."""
        kept = np.arange(self.count)
        if self.groups is not None:
            order = random.permutation(self.count)
            kept = np.sort(order[np.unique(self.groups[order], return_index=True)[1]])
        if self.weights is not None:
            weights = self.weights[kept]
            kept = kept[random.random(len(kept)) * weights.max() < weights]
        return replace(self.keep(kept), weights=None, groups=None)


@dataclass(frozen=True, eq=False)
class Inputs:
    """Rows that have every attribute, and what they are called; `lost` counts those that lack one.

    `unordered` has the labels of each column of unordered groups.
    """

    rows: Rows
    names: tuple[str, ...]
    name: str
    score_name: str
    target: Target | None = None
    lost: int = 0
    notes: tuple[str, ...] = ()
    unordered: dict[str, np.ndarray] = field(default_factory=dict)

    @classmethod
    def of(
        cls, z: Any, s: Any, y: Any, scores: Any, *, positive: object, favourable: object, weights: Any, groups: Any
    ) -> Inputs:
        """Check all that an audit is given, and leave out the rows that lack an attribute."""
        given = (z, "scores"), (s, "sensitive_features"), (y, "y"), (scores, "scores")
        _arrays.require_same_rows(*given, (weights, "sample_weight"), (groups, "groups"))
        words = "representation" if len(getattr(z, "shape", ())) == 2 and z.shape[1] != 1 else "scores"
        values = _arrays.to_numpy(_arrays.matrix(z, words)).astype(np.float64)
        if scores is None:
            values = _one_score(values)
        name = _arrays.array_name(z, "score" if values.shape[1] == 1 else "z")
        unordered = _unordered(s)
        sensitive = read_sensitive(s.drop(columns=[*unordered]) if unordered else s, default="s", allow_missing=True)
        n = len(values)
        if len(sensitive.values) != n:
            raise ValueError(
                f"lengths differ: {words} has {n} rows, sensitive_features has {len(sensitive.values)}. Pass one row "
                "of each per observation, in the same order."
            )
        codes, favoured, target = (None, None, None) if y is None else outcome(y, n, positive, favourable)
        rows = Rows(
            values,
            sensitive.values,
            None if scores is None else _numbers(scores, "scores", n),
            codes,
            favoured,
            None if weights is None else _weights(weights, n),
            None if groups is None else _groups(groups, n),
        )
        known = ~np.isnan(sensitive.values).any(axis=1)
        rows = rows.keep(known)
        if rows.count < LEAST_ROWS:
            have = f"{rows.count} of {n} have {' and '.join(sensitive.names)}"
            raise ValueError(f"an audit needs at least {LEAST_ROWS} rows; {have}.")
        for constant, column in zip(sensitive.names, rows.s.T):
            if np.ptp(column) == 0:
                raise ValueError(f"{constant} is constant in all {rows.count} rows, so nothing can depend on it.")
        return cls(
            rows,
            sensitive.names,
            name,
            _arrays.array_name(scores, "score"),
            target,
            n - rows.count,
            (*sensitive.notes, *_swapped(rows, sensitive.names)),
            {group: labels[known] for group, labels in unordered.items()},
        )


def outcome(y: Any, n: int, positive: object, favourable: object) -> tuple[np.ndarray, np.ndarray | None, Target]:
    """Return a target as numbers, its favoured rows, or None if it does not say which these are, and its names."""
    name, column = _arrays.array_name(y, "y"), _column(y, "y", n)
    if positive is not None:
        codes = _rows_with(column, positive, name, "positive").astype(np.float64)
    elif column.dtype == object or isinstance(column.dtype, (pd.CategoricalDtype, pd.StringDtype)):
        shown = ", ".join(repr(value) for value in column.unique()[:3])
        raise TypeError(f"y holds text ({shown}); pass positive=VALUE to say which value counts as 1.")
    else:
        codes = _numbers(y, "y", n)
    named = None if positive is None else label(positive)
    if favourable is None:
        return codes, codes == 1 if set(np.unique(codes)) <= {0.0, 1.0} else None, Target(name, named)
    favoured = _rows_with(column, favourable, name, "favourable")
    return codes, favoured, Target(name, named, label(favourable), bool(codes[favoured].mean() > codes.mean()))


def _unordered(s: Any) -> dict[str, np.ndarray]:
    """Return the columns of a frame that hold a few unordered groups, as text, if others are attributes."""
    groups: dict[str, np.ndarray] = {}
    if not isinstance(s, pd.DataFrame) or not s.columns.is_unique:
        return groups
    for name in s:
        try:
            attribute(s[name], str(name))
        except (TypeError, ValueError):
            if s[name].nunique() <= MOST_LEVELS:
                groups[str(name)] = s[name].map(label, na_action="ignore").fillna("not stated").to_numpy(dtype=str)
    return groups if len(groups) < s.shape[1] else {}


def _swapped(rows: Rows, attributes: tuple[str, ...]) -> list[str]:
    """Return a remark, and warn, if the attribute looks like a score, and the scores neither do nor could predict y.

    A logit leaves the range from 0 to 1 too, but has both signs and is not far from 0; an attribute of 0 and 1 is one.
    """
    z, s, y = rows.z, rows.s, rows.y
    if z.shape[1] > 1 or s.shape[1] > 1 or not _shares(s) or np.array_equal(s, np.round(s)):
        return []
    logits = z.min() < 0 and np.abs(z).max() <= LARGEST_LOGIT
    if _shares(z) or logits or (y is not None and not _shares(y)):
        return []
    remark = (
        f"The attribute {attributes[0]} lies between 0 and 1, and the scores do not: they may be swapped. The "
        "scores come first: audit(scores, sensitive_features). If they do, and are predictions of a number, pass it "
        "as y."
    )
    warn(remark, UserWarning)
    return [remark]


def _shares(values: np.ndarray) -> bool:
    return bool(values.min() >= 0 and values.max() <= 1)


def _one_score(values: np.ndarray) -> np.ndarray:
    """Return the second of two columns of probabilities, as `predict_proba` gives them; other values as they are."""
    columns = values.shape[1]
    if columns < 2 or not _shares(values) or np.abs(values.sum(axis=1) - 1).max() >= 1e-5:
        return values
    if columns > 2:
        raise ValueError(
            f"the representation has {columns} columns between 0 and 1 whose rows sum to 1, as predict_proba "
            "gives them for as many classes. Pass the column of one class as scores. If it is a representation, leave "
            "one column out, since it follows from the others."
        )
    return values[:, 1:]


def _groups(groups: Any, n: int) -> np.ndarray:
    """Return the number of the group of each row."""
    codes, distinct = pd.factorize(_column(groups, "groups", n).to_numpy(), sort=True)
    if len(distinct) == 1:
        raise ValueError(f"{_named(groups, 'groups')} has one value in all {n:,} rows; at least two groups are needed.")
    return codes


def _weights(weights: Any, n: int) -> np.ndarray:
    values, words = _numbers(weights, "sample_weight", n), _named(weights, "sample_weight")
    if values.min() < 0:
        row = row_number(_column(weights, "sample_weight", n), int((values < 0).argmax()))
        raise ValueError(f"{words} is {plain(values[values < 0][0])} in row {row}; pass weights of zero or more.")
    if values.max() == 0:
        raise ValueError(f"{words} is 0 in all {n:,} rows; no row would count.")
    return values


def _numbers(values: Any, argument: str, n: int) -> np.ndarray:
    """Return one number for each row."""
    _column(values, argument, n)
    return _arrays.to_numpy(_arrays.vector(values, argument)).astype(np.float64)


def _column(values: Any, argument: str, n: int) -> pd.Series[Any]:
    """Return one value for each row, with the index of a Series; raise if rows lack one, and name the first of them."""
    if hasattr(values, "to_pandas"):
        values = values.to_pandas()
    if isinstance(values, pd.Series):
        column: pd.Series[Any] = values
    else:
        array = _arrays.to_numpy(values) if hasattr(values, "detach") else np.asarray(values)
        array = array[:, 0] if array.ndim == 2 and array.shape[1] == 1 else array
        if array.ndim != 1:
            raise ValueError(f"{argument} has shape {array.shape}; pass one value for each row.")
        column = pd.Series(array.astype(object) if array.dtype.kind in "US" else array)
    if len(column) != n:
        raise ValueError(f"lengths differ: {argument} has {len(column)} rows, the scores have {n}.")
    places = np.flatnonzero(column.isna())
    if len(places):
        first = ", ".join(str(row_number(column, int(place))) for place in places[:SHOWN_ROWS])
        more = ", ..." if len(places) > SHOWN_ROWS else ""
        raise ValueError(
            f"{_named(values, argument)} lacks a value in {len(places):,} of {n:,} rows "
            f"({'row' if len(places) == 1 else 'rows'} {first}{more}); fill it, or leave these rows out."
        )
    return column


def _named(values: Any, argument: str) -> str:
    """Return what messages call a column: its name and the argument that it came as, or this alone."""
    name = _arrays.array_name(values, "")
    return f"{name!r} ({argument})" if name else argument


def _rows_with(column: pd.Series[Any], value: object, name: str, argument: str) -> np.ndarray:
    rows = np.asarray(is_positive(column, value, name) == 1)
    if not rows.any():
        shown = ", ".join(repr(label(item)) for item in column.unique()[:5])
        raise ValueError(f"{argument}={value!r} is not a value of {name}: {shown}.")
    return rows
