"""Read a target: two classes, or a number."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from frhsic.formatting import did_you_mean
from frhsic.tables.columns import distinct, label, numbers

_TRUTH = {"true": True, "1": True, "1.0": True, "false": False, "0": False, "0.0": False}


@dataclass(frozen=True, eq=False)
class Target:
    """A target without missing values.

    Attributes
    ----------
    codes : ndarray, float64
        0 or 1, or the number itself for a regression.
    classes : tuple
        The two values; the second is the positive one. Empty for a regression. Where a value stands against several
        others, the first is "not" and this value.
    """

    codes: np.ndarray
    classes: tuple[Any, ...] = ()

    @property
    def names(self) -> np.ndarray:
        """The two classes: as text, booleans, or numbers, which are integers where both are."""
        if any(isinstance(value, str) for value in self.classes):
            return np.array([label(value) for value in self.classes], dtype=object)
        if all(isinstance(value, (bool, np.bool_)) for value in self.classes):
            return np.array(self.classes, dtype=bool)
        values = np.array(self.classes, dtype=np.float64)
        return values.astype(np.int64) if np.array_equal(values, np.round(values)) else values

    @property
    def labels(self) -> np.ndarray:
        """The class of each row; for a regression, its number."""
        return self.names[self.codes.astype(np.int64)] if self.classes else self.codes


def read_target(column: pd.Series[Any], positive: object = None) -> Target:
    """Read a target without missing values: two different values are classes, other numbers a regression.

    Parameters
    ----------
    column
        Values of the target.
    positive
        Value that counts as 1 against all others; left out, the last of two in sorted order.

    Examples
    --------
    >>> target = read_target(pd.Series(["no", "yes", "yes"], name="paid"))
    >>> target.classes, target.codes.tolist()
    (('no', 'yes'), [0.0, 1.0, 1.0])
    """
    name, classes = str(column.name), distinct(column)
    values = numbers(column, f"target {name!r}") if pd.api.types.is_numeric_dtype(column) else None
    shown = ", ".join(repr(str(value)[:30]) for value in classes[:5]) + ", ..." * (len(classes) > 5)
    if len(classes) < 2:
        raise ValueError(f"target {name!r} is {classes[0]!r} in every row; there is nothing to predict.")
    if positive is not None:
        codes = is_positive(column, positive, name)
        if not codes.any():
            hint = did_you_mean(str(positive), map(str, classes[:500]))
            raise ValueError(f"{positive!r} is not a value of {name!r}: {shown}.{hint}")
        others = column[codes == 0].unique()
        value = column[codes == 1].iloc[0]
        return Target(codes, (others[0] if len(others) == 1 else f"not {label(value)}", value))
    if len(classes) == 2:
        return Target((column == classes[1]).to_numpy(dtype=np.float64), tuple(classes))
    if values is None:
        raise ValueError(
            f"the target {name!r} is text with {len(classes)} different values: {shown}. Say which of them is positive "
            "(--positive VALUE) to predict it against the others."
        )
    return Target(values)


def is_positive(column: pd.Series[Any], positive: object, name: str) -> np.ndarray:
    """Return 1 where a column has the value `positive`, NaN where it is missing, and 0 elsewhere; text is stripped.

    Examples
    --------
    >>> is_positive(pd.Series([" >50K", "<=50K", None]), ">50K", "income").tolist()
    [1.0, 0.0, nan]
    """
    if pd.api.types.is_bool_dtype(column):
        if (word := str(positive).strip().lower()) not in _TRUTH:
            raise ValueError(f"{positive!r} is not a value of {name!r}, which holds True and False; pass one of them.")
        values = column.eq(_TRUTH[word]).to_numpy(dtype=np.float64, na_value=np.nan)
    elif pd.api.types.is_numeric_dtype(column):
        try:
            equal = column.eq(float(positive))  # type: ignore[arg-type]  # what is no number raises, and is caught
        except (TypeError, ValueError):
            raise ValueError(
                f"{positive!r} is to count as 1, but the target {name!r} holds numbers; pass one of them."
            ) from None
        values = equal.to_numpy(dtype=np.float64, na_value=np.nan)
    else:
        values = (column.astype(str).str.strip() == str(positive).strip()).to_numpy(dtype=np.float64)
    return np.where(column.isna().to_numpy(), np.nan, values)
