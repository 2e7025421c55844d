"""Read a target: two classes, or a number."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from frhsic.formatting import did_you_mean
from frhsic.tables.columns import distinct, label, numbers

YES = {"ja": "nein", "yes": "no", "y": "n", "true": "false", "oui": "non", "sí": "no", "si": "no", "1": "0"}
"""Affirmative answers, and the negative one that goes with each."""
_TRUTH = {"true": True, "1": True, "1.0": True, "false": False, "0": False, "0.0": False}


def read_target(column: pd.Series[Any], positive: object = None) -> tuple[np.ndarray, np.ndarray | None]:
    """Read a target without missing values: two different values are classes, other numbers a regression.

    Parameters
    ----------
    column
        Values of the target.
    positive
        Value that counts as 1 against all others; left out, the affirmative of two answers such as yes and no, or the
        larger of two numbers.

    Returns
    -------
    codes
        0 or 1 for each row, or its number for a regression.
    classes
        What 0 and 1 stand for, as text, booleans or numbers; None for a regression. Where a value stands against
        several others, the first class is "not" and this value.

    Examples
    --------
    >>> codes, classes = read_target(pd.Series(["no", "yes", "yes"], name="paid"))
    >>> classes.tolist(), codes.tolist()
    (['no', 'yes'], [0.0, 1.0, 1.0])
    """
    name, values = str(column.name), distinct(column)
    amounts = numbers(column, f"target {name!r}") if pd.api.types.is_numeric_dtype(column) else None
    shown = ", ".join(repr(str(value)[:30]) for value in values[:5]) + ", ..." * (len(values) > 5)
    if len(values) < 2:
        raise ValueError(f"target {name!r} is {values[0]!r} in every row; there is nothing to predict.")
    if positive is None and amounts is None:
        answers = {str(value).strip().casefold(): value for value in values}
        positive = next((answers[yes] for yes, no in YES.items() if answers.keys() == {yes, no}), None)
    if positive is not None:
        codes = is_positive(column, positive, name)
        if not codes.any():
            hint = did_you_mean(str(positive), map(str, values[:500]))
            raise ValueError(f"{positive!r} is not a value of {name!r}: {shown}.{hint}")
        value, others = column[codes == 1].iloc[0], column[codes == 0].unique()
        return codes, _classes(others[0] if len(others) == 1 else f"not {label(value)}", value)
    if amounts is None:
        raise ValueError(
            f"the target {name!r} is text with {len(values)} different values: {shown}. Say which of them counts as 1 "
            "(--positive VALUE), against the others."
        )
    if len(values) == 2:
        return (column == values[1]).to_numpy(dtype=np.float64), _classes(*values)
    return amounts, None


def _classes(*pair: Any) -> np.ndarray:
    """Return two classes in one type: text, booleans, or numbers, which are integers where both are."""
    if any(isinstance(value, str) for value in pair):
        return np.array([label(value) for value in pair], dtype=object)
    if all(isinstance(value, (bool, np.bool_)) for value in pair):
        return np.array(pair, dtype=bool)
    values = np.array(pair, dtype=np.float64)
    return values.astype(np.int64) if np.array_equal(values, np.round(values)) else values


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
