"""What an audit is given, as checked arrays: scores or a representation, attributes, target, weights and groups."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from frhsic import _arrays
from frhsic.formatting import plain
from frhsic.tables.columns import label, row_number
from frhsic.tables.sensitive import attribute, read_sensitive
from frhsic.tables.targets import is_positive

LEAST_ROWS = 20
MOST_LEVELS = 12
"""Levels of unordered groups at most."""
SHOWN_ROWS = 5
"""Rows without a value that a message names at most."""


@dataclass(frozen=True, eq=False)
class Outcome:
    """A target as numbers, and the rows with the favourable outcome.

    `favoured` is None if the target does not say which rows these are. `positive` and `favourable` are the values that
    count as 1 and that are good for a person, as text; None where they were not stated.
    """

    codes: np.ndarray
    name: str
    favoured: np.ndarray | None
    positive: str | None = None
    favourable: str | None = None

    @classmethod
    def of(cls, y: Any, n: int, positive: object, favourable: object) -> Outcome:
        """Check y and turn it into numbers; `positive` and `favourable` are values of it, or None."""
        name = _arrays.array_name(y, "y")
        column = _series(y)
        if len(column) != n:
            raise ValueError(f"lengths differ: y has {len(column)} rows, the scores have {n}.")
        missing = int(column.isna().sum())
        if missing:
            raise ValueError(f"y holds {missing} missing values (NaN); drop those rows.")
        if positive is None:
            if column.dtype == object or isinstance(column.dtype, (pd.CategoricalDtype, pd.StringDtype)):
                shown = ", ".join(repr(value) for value in column.unique()[:3])
                raise TypeError(f"y holds text ({shown}); pass positive=VALUE to say which value counts as 1.")
            codes = _arrays.to_numpy(_arrays.vector(y, "y")).astype(np.float64)
        else:
            codes = _rows_with(column, positive, name, "positive").astype(np.float64)
        named = None if positive is None else label(positive)
        if favourable is None:
            return cls(codes, name, codes == 1 if set(np.unique(codes)) <= {0.0, 1.0} else None, named)
        return cls(codes, name, _rows_with(column, favourable, name, "favourable"), named, label(favourable))

    @property
    def binary(self) -> bool:
        """Whether the target is 0 or 1."""
        return set(np.unique(self.codes)) <= {0.0, 1.0}

    @property
    def favours_high(self) -> bool | None:
        """Whether a high score speaks for the favourable outcome; None if that was not stated."""
        if self.favourable is None or self.favoured is None:
            return None
        return bool(self.codes[self.favoured].mean() > self.codes.mean())

    def keep(self, rows: np.ndarray) -> Outcome:
        """Return the outcome of some of the rows."""
        favoured = None if self.favoured is None else self.favoured[rows]
        return replace(self, codes=self.codes[rows], favoured=favoured)


@dataclass(frozen=True, eq=False)
class Inputs:
    """Arrays with one row per observation, all of which have every attribute; `lost` counts those that had not.

    `unordered` has the labels of each column of unordered groups.
    """

    values: np.ndarray
    attributes: np.ndarray
    names: tuple[str, ...]
    name: str
    score_name: str
    outcome: Outcome | None
    scores: np.ndarray | None
    weights: np.ndarray | None = None
    groups: np.ndarray | None = None
    lost: int = 0
    notes: tuple[str, ...] = ()
    unordered: dict[str, np.ndarray] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        z: Any,
        s: Any,
        y: Any,
        scores: Any,
        *,
        positive: object,
        favourable: object,
        sample_weight: Any,
        groups: Any,
    ) -> Inputs:
        """Check all that an audit is given, and leave out the rows that lack an attribute."""
        given = (z, "scores"), (s, "sensitive_features"), (y, "y"), (scores, "scores")
        _arrays.require_same_rows(*given, (sample_weight, "sample_weight"), (groups, "groups"))
        words = "representation" if len(getattr(z, "shape", ())) == 2 and z.shape[1] != 1 else "scores"
        values = _arrays.to_numpy(_arrays.matrix(z, words)).astype(np.float64)
        if scores is None and _sums_to_one(values):
            values = _second_of_two(values)
        name = _arrays.array_name(z, "score" if values.shape[1] == 1 else "z")
        unordered = _unordered(s)
        sensitive = read_sensitive(s.drop(columns=[*unordered]) if unordered else s, default="s", allow_missing=True)
        n = len(values)
        if len(sensitive.values) != n:
            raise ValueError(
                f"lengths differ: {words} has {n} rows, sensitive_features has {len(sensitive.values)}. Pass one row "
                "of each per observation, in the same order."
            )
        outcome = None if y is None else Outcome.of(y, n, positive, favourable)
        f = None if scores is None else _column(scores, "scores", n)
        weights = None if sample_weight is None else _weights(sample_weight, n)
        codes = None if groups is None else _groups(groups, n)
        known = ~np.isnan(sensitive.values).any(axis=1)
        lost = int((~known).sum())
        if lost and n - lost < LEAST_ROWS:
            raise ValueError(
                f"an audit needs at least {LEAST_ROWS} rows; {n - lost} of {n} have {' and '.join(sensitive.names)}."
            )
        _arrays.require_rows(n, LEAST_ROWS, "an audit")
        attributes = sensitive.values[known]
        for constant, column in zip(sensitive.names, attributes.T):
            if float(np.ptp(column)) == 0:
                raise ValueError(f"{constant} is constant: all {n - lost} rows are equal, so nothing can depend on it.")
        return cls(
            values[known],
            attributes,
            sensitive.names,
            name,
            _arrays.array_name(scores, "score"),
            None if outcome is None else outcome.keep(known),
            None if f is None else f[known],
            None if weights is None else weights[known],
            None if codes is None else codes[known],
            lost,
            (*sensitive.notes, *_swapped(values, attributes, name, sensitive.names)),
            {group: labels[known] for group, labels in unordered.items()},
        )


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


def _swapped(z: np.ndarray, s: np.ndarray, name: str, attributes: tuple[str, ...]) -> list[str]:
    """Return a remark if the attribute looks like a score and the score does not."""
    whole = z.shape[1] == 1 and np.array_equal(z, np.round(z)) and len(np.unique(z)) > 2
    if not whole or s.shape[1] > 1 or s.min() < 0 or s.max() > 1 or np.array_equal(s, np.round(s)):
        return []
    return [
        f"The score {name} has whole numbers only, and the attribute {attributes[0]} lies between 0 and 1. The scores "
        "come first: audit(scores, sensitive_features)."
    ]


def _groups(groups: Any, n: int) -> np.ndarray:
    """Return the number of the group of each row; raise if a row has none."""
    labels = _arrays.to_numpy(groups) if hasattr(groups, "detach") else np.asarray(groups)
    if len(labels) != n:
        raise ValueError(f"lengths differ: groups has {len(labels)} rows, the scores have {n}.")
    if labels.ndim != 1:
        raise ValueError(f"groups has shape {labels.shape}; pass one label for each of the {n} rows.")
    codes, distinct = pd.factorize(labels, sort=True)
    _require_complete(codes < 0, groups, "groups")
    if len(distinct) == 1:
        words = _words(groups, "groups")
        raise ValueError(f"{words} has one value in all {n:,} rows; at least two groups are needed.")
    return codes


def _weights(sample_weight: Any, n: int) -> np.ndarray:
    if isinstance(sample_weight, pd.Series):
        _require_complete(sample_weight.isna().to_numpy(), sample_weight, "sample_weight")
    weights = _column(sample_weight, "sample_weight", n)
    if weights.min() < 0:
        words = _words(sample_weight, "sample_weight")
        row = row_number(_indexed(sample_weight, n), int((weights < 0).argmax()))
        raise ValueError(f"{words} is {plain(weights[weights < 0][0])} in row {row}; pass weights of zero or more.")
    if weights.max() == 0:
        raise ValueError(f"{_words(sample_weight, 'sample_weight')} is 0 in all {n:,} rows; no row would count.")
    return weights


def _require_complete(missing: np.ndarray, values: Any, argument: str) -> None:
    """Raise if rows lack a value; the message names the column and the first of these rows."""
    places = np.flatnonzero(missing)
    if not len(places):
        return
    column = _indexed(values, len(missing))
    first = ", ".join(str(row_number(column, int(place))) for place in places[:SHOWN_ROWS])
    more = ", ..." if len(places) > SHOWN_ROWS else ""
    raise ValueError(
        f"{_words(values, argument)} lacks a value in {len(places):,} of {len(missing):,} rows "
        f"({'row' if len(places) == 1 else 'rows'} {first}{more}); fill it, or leave these rows out."
    )


def _indexed(values: Any, n: int) -> pd.Series[Any]:
    return values if isinstance(values, pd.Series) else pd.Series(np.arange(n))


def _words(values: Any, argument: str) -> str:
    """Return what messages call a column: its name and the argument that it came as, or this alone."""
    name = _arrays.array_name(values, "")
    return f"{name!r} ({argument})" if name else argument


def _sums_to_one(values: np.ndarray) -> bool:
    """Return whether rows of several columns are probabilities, as `predict_proba` gives them."""
    if values.shape[1] < 2 or values.min() < 0 or values.max() > 1:
        return False
    return bool(np.abs(values.sum(axis=1) - 1).max() < 1e-5)


def _second_of_two(values: np.ndarray) -> np.ndarray:
    if values.shape[1] > 2:
        raise ValueError(
            f"the representation has {values.shape[1]} columns between 0 and 1 whose rows sum to 1, as predict_proba "
            "gives them for as many classes. Pass the column of one class as scores. If it is a representation, leave "
            "one column out: the others tell it."
        )
    return values[:, 1:]


def _rows_with(column: pd.Series[Any], value: object, name: str, argument: str) -> np.ndarray:
    rows = np.asarray(is_positive(column, value, name) == 1)
    if not rows.any():
        shown = ", ".join(repr(label(item)) for item in column.unique()[:5])
        raise ValueError(f"{argument}={value!r} is not a value of {name}: {shown}.")
    return rows


def _series(y: Any) -> pd.Series[Any]:
    if isinstance(y, pd.Series):
        return y.reset_index(drop=True)
    if hasattr(y, "to_pandas"):
        return pd.Series(y.to_pandas()).reset_index(drop=True)
    if isinstance(y, pd.DataFrame) and y.shape[1] == 1:
        return y.iloc[:, 0].reset_index(drop=True)
    if hasattr(y, "detach"):
        y = _arrays.to_numpy(y)
    values = np.asarray(y)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1:
        raise ValueError(f"y has shape {values.shape}; pass one column.")
    return pd.Series(values.astype(object) if values.dtype.kind in "US" else values)


def _column(x: Any, name: str, n: int) -> np.ndarray:
    column = _arrays.to_numpy(_arrays.vector(x, name)).astype(np.float64)
    if len(column) != n:
        raise ValueError(f"lengths differ: {name} has {len(column)} rows, the representation has {n}.")
    return column
