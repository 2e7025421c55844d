"""Sensitive attributes as numbers: bands as their midpoints, ordered levels as ranks."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from frhsic import _arrays
from frhsic.formatting import format_count
from frhsic.tables.columns import check_distinct, column_kind, is_frame, numbers, to_pandas

_NUMBER = r"(-?[0-9]+(?:\.[0-9]+)?)"
_CLOSED = re.compile(
    rf"{_NUMBER}\s*(?:-|\u2013|\u2014|to|\.\.)\s*{_NUMBER}"
    rf"|[\[(]\s*{_NUMBER}\s*[,;]\s*{_NUMBER}\s*[\])]",
    re.IGNORECASE,
)
# Words and signs before and after a number that is a bound.
UNDER = (
    "<=?|\u2264|under|below|(?:less|fewer) than|up to|at most|unter|bis(?: zu)?|weniger als"
    "|höchstens|moins de|jusqu'à|menos de|hasta|até"
)
OVER = (
    ">=?|\u2265|over|above|more than|at least|from|über|ab|mehr als|mindestens|plus de|au moins"
    "|más de|mais de|desde"
)
OR_LESS = (
    "(?:and|or) (?:under|below|less|fewer|younger)|(?:und|oder) (?:weniger|jünger)|(?:et|ou) moins"
    "|(?:o|y|e|ou) menos"
)
OR_MORE = (
    r"\+|(?:and|or) (?:over|above|more|older|up)|(?:und|oder) (?:mehr|älter|darüber)|(?:et|ou) plus"
    "|(?:o|y) más|(?:e|ou) mais"
)
_BELOW = re.compile(rf"(?:{UNDER})\s*{_NUMBER}|{_NUMBER}\s*(?:{OR_LESS})", re.IGNORECASE)
_ABOVE = re.compile(rf"(?:{OVER})\s*{_NUMBER}|{_NUMBER}\s*(?:{OR_MORE})", re.IGNORECASE)
_SINGLE = re.compile(_NUMBER)


class BandedAttributeWarning(UserWarning):
    """A sensitive attribute contained bands or ordered levels, which were converted to numbers."""


@dataclass(frozen=True, eq=False)
class Sensitive:
    """Attributes as a float64 array (n, q), their names, and a message for each one that was
    converted.
    """

    values: np.ndarray
    names: tuple[str, ...]
    notes: tuple[str, ...] = ()


def read_sensitive(
    values: Any,
    name: str = "sensitive_features",
    *,
    default: str = "sensitive",
    allow_missing: bool = False,
) -> Sensitive:
    """Return sensitive attributes as numbers.

    Parameters
    ----------
    values : array, Series or frame of shape (n,) or (n, q)
        Numbers, or bands written as text; a Series or a frame may also contain ordered categories.
        See :func:`attribute`.
    name
        Name of the argument in messages.
    default
        Name of an unnamed attribute.
    allow_missing
        Whether NaN is allowed; if not, NaN raises an error.

    Examples
    --------
    >>> read_sensitive(pd.Series(["20-29", "30-39", "40+"], name="age")).values.ravel().tolist()
    [24.5, 34.5, 44.5]
    """
    table = _attribute_frame(values, name, default)
    if table is None:
        array = _arrays.matrix(values, name, allow_missing=allow_missing).astype(np.float64)
        return Sensitive(array, tuple(_arrays.column_names(values, default, array.shape[1])))
    parts = [attribute(table[column], f"{name} {column!r}") for column in table]
    array = np.column_stack([part for part, _ in parts])
    notes = tuple(note for _, note in parts if note)
    _arrays.matrix(array, name, allow_missing=allow_missing)
    return Sensitive(array, tuple(map(str, table.columns)), notes)


def attribute(column: pd.Series[Any], name: str) -> tuple[np.ndarray, str | None]:
    """Return one attribute as numbers, with NaN for missing values, and a message if it was
    converted.

    A band such as "30-39", "30 to 39" or a pandas Interval becomes its midpoint. An open band such
    as "<25", "under 25", "65+" or "65 and over" is assumed to be as wide as the nearest closed one;
    if there is none, as among numbers with a detection limit, the band is replaced by its bound.
    Other ordered categories become 0, 1, ... in their order.

    Examples
    --------
    >>> attribute(pd.Series(["<20", "20-29", "30-39"]), "age")[0].tolist()
    [15.5, 24.5, 34.5]
    """
    if pd.api.types.is_numeric_dtype(column) or column_kind(column) != "category":
        return numbers(column, name), None
    categorical = isinstance(column.dtype, pd.CategoricalDtype)
    levels = list(column.cat.categories if categorical else column.dropna().unique())
    bands = {level: band(level) for level in levels}
    if levels and all(bands.values()):
        points = _points({level: band for level, band in bands.items() if band})
        widths = {level: band[1] - band[0] for level, band in bands.items() if band}
        if any(widths.values()):
            note = f"{name} contains {_bands_phrase(column, points, widths)}."
            return column.map(points).to_numpy(dtype=np.float64), note
    if categorical and column.cat.ordered:
        codes = np.asarray(column.cat.codes, dtype=np.float64)
        shown = _short_list([f"{level} as {i}" for i, level in enumerate(column.cat.categories)])
        note = f"{name} contains ordered levels, which are replaced by their ranks: {shown}."
        return np.where(codes < 0, np.nan, codes), note
    return numbers(column.astype(object), name), None


def new_numbers(column: pd.Series[Any], levels: Sequence[Any]) -> list[Any]:
    """Return the values of an attribute that are numbers or bounds but not known levels, provided
    that the known levels are also numbers or bounds, not bands.

    Examples
    --------
    >>> (
    ...     new_numbers(pd.Series(["3.5", "<1", "x"]), ["<1", "2", "4"]),
    ...     new_numbers(pd.Series(["3"]), ["0-4", "5-9"]),
    ... )
    (['3.5'], [])
    """
    if not all(map(_is_number_or_limit, levels)):
        return []
    known = {*levels}
    values = column.dropna().unique().tolist()
    return [value for value in values if value not in known and _is_number_or_limit(value)]


def _is_number_or_limit(level: Any) -> bool:
    ends = band(level)
    return ends is not None and (ends[0] == ends[1] or bool(np.isinf(ends).any()))


def _bands_phrase(
    column: pd.Series[Any], points: dict[Any, float], widths: dict[Any, float]
) -> str:
    """Describe what bands are replaced by; among numbers, open bands are detection limits."""
    levels = sorted(points, key=lambda level: points[level])
    if {*widths.values()} != {0, np.inf}:
        shown = _short_list([f"{level} as {points[level]:g}" for level in levels])
        return f"bands, which are replaced by their midpoints: {shown}"
    counts = column.value_counts()
    limits = [
        f"{str(level)!r} as {points[level]:g} ({format_count(counts.get(level, 0), 'row')})"
        for level in levels
        if widths[level]
    ]
    return (
        f"numbers known only to be beyond a limit, which are replaced by it: {_short_list(limits)}"
    )


def _short_list(levels: list[str]) -> str:
    """Return levels as text; if there are many, only the first and the last ones."""
    if len(levels) > 10:
        levels = [*levels[:5], "...", *levels[-5:]]
    return ", ".join(levels)


def _attribute_frame(values: Any, name: str, default: str) -> pd.DataFrame | None:
    """Return a table, a column or text as a frame; None for any other array."""
    if is_frame(values):
        table = to_pandas(values, name)
        check_distinct(table.columns, name)
        return table
    label = _arrays.array_name(values, default)
    if hasattr(values, "to_pandas"):  # a polars or pyarrow column
        values = values.to_pandas()
    text = isinstance(values, (list, np.ndarray)) and np.ndim(values) == 1
    if text and pd.api.types.infer_dtype(values, skipna=True) == "string":
        values = pd.Series(values)
    if isinstance(values, (pd.Series, pd.Index, pd.api.extensions.ExtensionArray)):
        return pd.DataFrame({label: pd.Series(values).reset_index(drop=True)})
    return None


def band(level: Any) -> tuple[float, float] | None:
    """Return both ends of a band (infinite if open), or None if the text is not a band."""
    if isinstance(level, pd.Interval):
        return float(level.left), float(level.right)
    text = str(level).strip()
    if closed := _CLOSED.fullmatch(text):
        low, high = (float(end) for end in closed.groups() if end is not None)
        return (low, high) if low <= high else None
    if below := _BELOW.fullmatch(text):
        return -np.inf, float(below[1] or below[2])
    if above := _ABOVE.fullmatch(text):
        return float(above[1] or above[2]), np.inf
    single = _SINGLE.fullmatch(text)
    return (float(single[0]), float(single[0])) if single else None


def _points(bands: dict[Any, tuple[float, float]]) -> dict[Any, float]:
    """Return the number that replaces each band."""
    closed = [band for band in bands.values() if np.isfinite(band).all()]
    points = {}
    for level, (low, high) in bands.items():
        if np.isfinite([low, high]).all():
            points[level] = low / 2 + high / 2
            continue
        bound = high if np.isinf(low) else low
        nearest = min(
            closed,
            key=lambda band: min(abs(band[0] - bound), abs(band[1] - bound)),
            default=(0.0, 0.0),
        )
        half = (nearest[1] - nearest[0]) / 2
        points[level] = bound - half if np.isinf(low) else bound + half
    return points
