"""Targets: two values as classes, other numbers as they are."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pandas as pd

from frhsic.formatting import did_you_mean, format_count
from frhsic.tables.columns import column_kind, distinct_values, level_text, numbers, quote_names

# Affirmative answers, and the negative one that goes with each.
YES = {
    "ja": "nein",
    "yes": "no",
    "y": "n",
    "true": "false",
    "oui": "non",
    "sí": "no",
    "si": "no",
    "1": "0",
}
_TRUTH = {"true": True, "1": True, "1.0": True, "false": False, "0": False, "0.0": False}


def read_target(
    column: pd.Series[Any], positive: object = None
) -> tuple[np.ndarray, np.ndarray | None, list[str]]:
    """Read a target without missing values: two different values are classes, other numbers a
    regression.

    Labels that differ only in case or in blanks around them are one.

    Parameters
    ----------
    column
        Values of the target.
    positive
        Value that counts as 1 against all others; left out, the affirmative of two answers such as
        yes and no, or the larger of two numbers.

    Returns
    -------
    codes
        0 or 1 for each row, or its number for a regression.
    classes
        What 0 and 1 stand for, as text, booleans or numbers; None for a regression. Where a value
        stands against several others, the first class is "not" and this value.
    notes
        Sentences on labels that were taken as one, and on the rows of each class.

    Examples
    --------
    >>> codes, classes, notes = read_target(pd.Series(["no", "yes", "yes"], name="paid"))
    >>> classes.tolist(), codes.tolist()
    (['no', 'yes'], [0.0, 1.0, 1.0])
    >>> notes
    ["Target 'paid': 1 is 'yes' (2 rows); 0 is 'no' (1 row)."]
    """
    column, notes = unify_spelling(column)
    name = str(column.name)
    values = distinct_values(column)
    amounts = numbers(column, f"target {name!r}") if pd.api.types.is_numeric_dtype(column) else None
    shown = ", ".join(repr(str(value)[:30]) for value in values[:5])
    if len(values) > 5:
        shown += ", ..."
    if len(values) < 2:
        raise ValueError(
            f"target {name!r} is {values[0]!r} in every row; there is nothing to predict."
        )
    if positive is None and amounts is None:
        answers = {_fold_text(value): value for value in values}
        positive = next(
            (answers[yes] for yes, no in YES.items() if answers.keys() == {yes, no}), None
        )
    if positive is not None:
        codes = is_positive(column, positive, name)
        if not codes.any():
            hint = did_you_mean(str(positive), (str(value)[:30] for value in values[:500]))
            raise ValueError(f"{positive!r} is not a value of {name!r}.{hint}")
        value = column[codes == 1].iloc[0]
        others = column[codes == 0].unique()
        classes = _class_pair(others[0] if len(others) == 1 else f"not {level_text(value)}", value)
        return codes, classes, [*notes, _class_sentence(column, codes)]
    if amounts is None:
        raise ValueError(
            f"the target {name!r} is text with {len(values)} different values: {shown}. Say which"
            " of them counts as 1 (--positive VALUE), against the others."
        )
    if len(values) == 2:
        codes = (column == values[1]).to_numpy(dtype=np.float64)
        return codes, _class_pair(*values), [_class_sentence(column, codes)]
    return amounts, None, []


def unify_spelling(column: pd.Series[Any]) -> tuple[pd.Series[Any], list[str]]:
    """Return labels of text, each in the most frequent of the spellings that differ only in case or
    blanks, and a sentence if some do.
    """
    if column_kind(column) != "category":
        return column, []
    counts = column.dropna().astype(str).value_counts()
    spellings: dict[str, list[str]] = {}
    for text in sorted(counts.index, key=lambda text: (-counts[text], text)):
        spellings.setdefault(_fold_text(text), []).append(text)
    several = [texts for texts in spellings.values() if len(texts) > 1]
    if not several:
        return column, []
    shown = "; ".join(f"{quote_names(texts[1:6])} as {texts[0].strip()!r}" for texts in several[:3])
    more = "; ..." if len(several) > 3 else ""
    note = (
        f"Labels of {str(column.name)!r} that differ only in case or blanks are one: {shown}{more}."
    )
    merged = column.astype(object).map(
        lambda value: spellings[_fold_text(value)][0].strip(), na_action="ignore"
    )
    return merged, [note]


def _fold_text(text: object) -> str:
    return str(text).strip().casefold()


def _class_sentence(column: pd.Series[Any], codes: np.ndarray) -> str:
    """Return a sentence on the rows of each class."""
    labels = column.astype(object).map(level_text)
    ones = Counter(labels[codes == 1])
    zeros = Counter(labels[codes == 0])
    shown = [
        ", ".join(f"{text!r} ({format_count(n, 'row')})" for text, n in part)
        for part in (ones.items(), zeros.most_common(5))
    ]
    more = f" and {len(zeros) - 5:,} other values" if len(zeros) > 5 else ""
    return f"Target {str(column.name)!r}: 1 is {shown[0]}; 0 is {shown[1]}{more}."


def _class_pair(*pair: Any) -> np.ndarray:
    """Return two classes in one type: text, booleans, or numbers, which are integers where both
    are.
    """
    if any(isinstance(value, str) for value in pair):
        return np.array([level_text(value) for value in pair], dtype=object)
    if all(isinstance(value, (bool, np.bool_)) for value in pair):
        return np.array(pair, dtype=bool)
    values = np.array(pair, dtype=np.float64)
    return values.astype(np.int64) if np.array_equal(values, np.round(values)) else values


def is_positive(column: pd.Series[Any], positive: object, name: str) -> np.ndarray:
    """Return 1 where a column has the value `positive`, NaN where it is missing, and 0 elsewhere.

    Text is compared without regard to case and to blanks around it.

    Examples
    --------
    >>> is_positive(pd.Series([" >50K", "<=50K", None]), ">50K", "income").tolist()
    [1.0, 0.0, nan]
    """
    if pd.api.types.is_bool_dtype(column):
        if (word := _fold_text(positive)) not in _TRUTH:
            raise ValueError(
                f"{positive!r} is not a value of {name!r}, which holds True and False; pass one of"
                " them."
            )
        values = column.eq(_TRUTH[word]).to_numpy(dtype=np.float64, na_value=np.nan)
    elif pd.api.types.is_numeric_dtype(column):
        try:
            # what is no number raises, and is caught
            equal = column.eq(float(positive))  # type: ignore[arg-type]
        except (TypeError, ValueError):
            raise ValueError(
                f"{positive!r} is to count as 1, but the target {name!r} holds numbers; pass one of"
                " them."
            ) from None
        values = equal.to_numpy(dtype=np.float64, na_value=np.nan)
    else:
        text = column.astype(str).str.strip().str.casefold()
        values = (text == _fold_text(positive)).to_numpy(dtype=np.float64)
    return np.where(column.isna().to_numpy(), np.nan, values)
