"""Targets: text and two distinct numbers are classes, other numbers stay numbers."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from frhsic.formatting import did_you_mean, format_count
from frhsic.tables.codes import CLEAR_CODE
from frhsic.tables.columns import (
    column_kind,
    distinct_values,
    fold_spelling,
    fold_text,
    level_text,
    list_names,
    numbers,
    unify_spelling,
)

# Affirmative and negative answers.
_YES = "yes y true t 1 1.0 ja j wahr oui vrai sí si sì sim tak ya evet да igen kyllä verdadero"
_NO = "no n false f 0 0.0 nein falsch non faux não nao nie tidak hayır hayir нет nem nee nej falso"
YES = {*_YES.split()}
NO = {*_NO.split()}
# Largest number of classes of a target of text or whole numbers.
MOST_CLASSES = 20
# Codes for a missing answer among the answers 0 and 1, or 1 and 2.
CODES_OF_ANSWERS = ("-1", "7", "8", "9")
_TRUTH = {"true": True, "1": True, "1.0": True, "false": False, "0": False, "0.0": False}


def read_target(
    column: pd.Series[Any], positive: object = None
) -> tuple[np.ndarray, np.ndarray | None, list[str]]:
    """Read a target without missing values: text and two different numbers are classes, other
    numbers are a regression target.

    Labels that differ only in case, whitespace, hyphens or periods are merged, as are answers with
    the same meaning, such as yes and y.

    Parameters
    ----------
    column
        Values of the target.
    positive
        Value that counts as 1, or several values; all others count as 0. Text that is not itself a
        value is read as a list of values separated by commas. By default the affirmative one of two
        answers such as yes and no, or the larger of two numbers.

    Returns
    -------
    codes
        0, 1, ... for each row, or the numbers themselves for a regression.
    classes
        The value that each code stands for, as text, booleans or numbers; None for a regression. If
        one value is compared with several others, the first class is "not" followed by this value.
    notes
        Sentences about merged labels and about the number of rows of each class.

    Examples
    --------
    >>> codes, classes, notes = read_target(pd.Series(["no", "yes", "yes"], name="paid"))
    >>> classes.tolist(), codes.tolist()
    (['no', 'yes'], [0.0, 1.0, 1.0])
    >>> notes
    ["Target 'paid': 1 is 'yes' (2 rows); 0 is 'no' (1 row)."]
    """
    column, notes = merge_labels(column)
    name = str(column.name)
    values = distinct_values(column)
    amounts = numbers(column, f"target {name!r}") if pd.api.types.is_numeric_dtype(column) else None
    if len(values) < 2:
        raise ValueError(
            f"target {name!r} is {values[0]!r} in every row, so there is nothing to predict."
        )
    if positive is None and amounts is None:
        answers = {answer_sense(value): value for value in values}
        if answers.keys() == {"yes", "no"}:
            positive = answers["yes"]
    if positive is not None:
        labels = positive_labels(positive, values)
        for label in labels:
            if not is_positive(column, label, name).any():
                hint = did_you_mean(str(label), (str(value)[:30] for value in values[:500]))
                raise ValueError(f"{label!r} is not a value of {name!r}.{hint}")
        joined, value = join_labels(column, labels, name)
        codes = is_positive(joined, value, name)
        others = joined[codes == 0].unique()
        if not len(others):
            raise ValueError(
                f"every value of {name!r} counts as 1, so there is nothing to predict."
            )
        classes = _class_pair(others[0] if len(others) == 1 else f"not {level_text(value)}", value)
        return codes, classes, [*notes, _class_sentence(column, codes)]
    if amounts is None:
        if not 2 < len(values) <= MOST_CLASSES:
            shown = ", ".join(repr(str(value)[:30]) for value in values[:5])
            more = ", ..." if len(values) > 5 else ""
            raise ValueError(
                f"target {name!r} is text with {len(values)} different values: {shown}{more}."
                f" Specify which one counts as 1 (--positive VALUE); all others count as 0."
            )
        classes = np.array([level_text(value) for value in values], dtype=object)
        codes = column.map(dict(zip(values, range(len(values))))).to_numpy(dtype=np.float64)
        counts = column.astype(object).map(level_text).value_counts()
        shown = ", ".join(f"{text!r} ({format_count(n, 'row')})" for text, n in counts.items())
        return codes, classes, [*notes, f"Target {name!r} has {len(values)} classes: {shown}."]
    if len(values) == 2:
        codes = (column == values[1]).to_numpy(dtype=np.float64)
        return codes, _class_pair(*values), [_class_sentence(column, codes)]
    return amounts, None, []


def rarest_label(column: pd.Series[Any]) -> str | None:
    """Return the label of a target with the fewest rows, after spellings are merged; None if there
    are too many labels to be classes.
    """
    counts = merge_labels(column)[0].astype(str).value_counts()
    return None if len(counts) > MOST_CLASSES else str(counts.index[-1])


def merge_labels(column: pd.Series[Any]) -> tuple[pd.Series[Any], list[str]]:
    """Return labels after merging those that differ only in spelling and answers with the
    same meaning, with sentences about what was merged.
    """
    column, notes = unify_spelling(column, fold_spelling)
    column, more = _merge_answers(column)
    return column, [*notes, *more]


def _merge_answers(column: pd.Series[Any]) -> tuple[pd.Series[Any], list[str]]:
    """Return labels after merging answers with the same meaning into the most frequent one, with a
    sentence on what was merged; nothing is merged unless both meanings occur.
    """
    if column_kind(column) != "category":
        return column, []
    counts = column.dropna().value_counts()
    senses: dict[str | None, list[Any]] = {"yes": [], "no": []}
    for label in counts.index:
        senses.setdefault(answer_sense(label, counts.index), []).append(label)
    answers = [senses["yes"], senses["no"]]
    several = [labels for labels in answers if len(labels) > 1]
    if not several or not all(answers):
        return column, []
    first = {label: labels[0] for labels in several for label in labels}
    shown = "; ".join(f"{list_names(labels[1:])} into {labels[0]!r}" for labels in several)
    rows = sum(int(counts[label]) for labels in several for label in labels[1:])
    merged = column.astype(object).map(lambda label: first.get(label, label), na_action="ignore")
    note = f"Answers in {str(column.name)!r} with the same meaning are merged: {shown}"
    return merged, [f"{note} ({format_count(rows, 'row')})."]


def answer_sense(label: object, labels: Iterable[object] = ()) -> str | None:
    """Return "yes" for an affirmative answer, "no" for a negative one, and None for anything else;
    a single letter counts as the answer given by all labels that begin with this letter.

    Examples
    --------
    >>> answer_sense("T"), answer_sense("T", ["Ya", "Tidak"]), answer_sense("O", ["Oui", "Non"])
    ('yes', 'no', 'yes')
    """
    text = fold_spelling(label)
    if len(text) == 1 and text.isalpha():
        words = [word for word in map(fold_text, labels) if len(word) > 1 and word[0] == text]
        senses = {answer_sense(word) for word in words}
        if len(senses) == 1 and None not in senses:
            return senses.pop()
    if text in YES:
        return "yes"
    return "no" if text in NO else None


def _merged_answer(positive: object, values: Sequence[Any]) -> object:
    """Return the value into which an answer was merged."""
    sense = answer_sense(positive, values)
    if sense is None or fold_spelling(positive) in map(fold_spelling, values):
        return positive
    return next((value for value in values if answer_sense(value, values) == sense), positive)


def _class_sentence(column: pd.Series[Any], codes: np.ndarray) -> str:
    """Return a sentence with the number of rows of each class."""
    labels = column.astype(object).map(level_text)
    ones = Counter(labels[codes == 1])
    zeros = Counter(labels[codes == 0])
    shown = [
        ", ".join(f"{text!r} ({format_count(n, 'row')})" for text, n in part)
        for part in (ones.most_common(), zeros.most_common(5))
    ]
    more = f" and {len(zeros) - 5:,} other values" if len(zeros) > 5 else ""
    return f"Target {str(column.name)!r}: 1 is {shown[0]}; 0 is {shown[1]}{more}."


def _class_pair(*pair: Any) -> np.ndarray:
    """Return two classes as an array of one type: text, booleans, or numbers (integers if both
    are).
    """
    if any(isinstance(value, str) for value in pair):
        return np.array([level_text(value) for value in pair], dtype=object)
    if all(isinstance(value, (bool, np.bool_)) for value in pair):
        return np.array(pair, dtype=bool)
    values = np.array(pair, dtype=np.float64)
    return values.astype(np.int64) if np.array_equal(values, np.round(values)) else values


def is_positive(column: pd.Series[Any], positive: object, name: str) -> np.ndarray:
    """Return 1 if a column has the value `positive`, NaN if it is missing, and 0 otherwise. Text is
    compared ignoring case, whitespace, hyphens and periods.

    Examples
    --------
    >>> is_positive(pd.Series([" >50K", "<=50K", None]), ">50K", "income").tolist()
    [1.0, 0.0, nan]
    """
    if pd.api.types.is_bool_dtype(column):
        if (word := fold_text(positive)) not in _TRUTH:
            raise ValueError(
                f"{positive!r} is not a value of {name!r}, which contains True and False; pass one"
                " of them."
            )
        values = column.eq(_TRUTH[word]).to_numpy(dtype=np.float64, na_value=np.nan)
    elif pd.api.types.is_numeric_dtype(column):
        try:
            # raises for text that is not a number
            equal = column.eq(float(positive))  # type: ignore[arg-type]
        except (TypeError, ValueError):
            raise ValueError(
                f"{positive!r} was passed as the positive value, but the target {name!r} contains"
                " numbers; pass one of them."
            ) from None
        values = equal.to_numpy(dtype=np.float64, na_value=np.nan)
    else:
        text = column.astype(str)
        same = [label for label in text.unique() if fold_spelling(label) == fold_spelling(positive)]
        values = text.isin(same).to_numpy(dtype=np.float64)
    return np.where(column.isna().to_numpy(), np.nan, values)


def positive_labels(positive: object, values: Iterable[Any]) -> tuple[object, ...]:
    """Return the values of the target that count as 1. Text that is not itself a value is read as a
    list of values separated by commas; quotes protect a comma.

    Examples
    --------
    >>> positive_labels("refused,withdrawn", ["granted", "refused", "withdrawn"])
    ('refused', 'withdrawn')
    >>> positive_labels("no, never", ["yes", "no, never"])
    ('no, never',)
    """
    labels: tuple[object, ...] = (positive,)
    values = [*values]
    if isinstance(positive, (list, tuple, set, frozenset, np.ndarray, pd.Series, pd.Index)):
        labels = tuple(positive)
    elif isinstance(positive, str) and fold_spelling(positive) not in map(fold_spelling, values):
        parts = next(csv.reader([positive], skipinitialspace=True))
        labels = tuple(part.strip() for part in parts if part.strip()) or labels
    return tuple(_merged_answer(label, values) for label in labels)


def join_labels(
    column: pd.Series[Any], labels: Sequence[object], name: str
) -> tuple[pd.Series[Any], object]:
    """Return a target in which the labels that count as 1 are merged into one label, and this
    label.

    Examples
    --------
    >>> joined, label = join_labels(pd.Series(["a", "b", "c"]), ["a", "b"], "grade")
    >>> joined.tolist(), label
    (['a or b', 'a or b', 'c'], 'a or b')
    """
    parts = [is_positive(column, label, name) == 1 for label in labels]
    values = [column[part].iloc[0] for part in parts if part.any()]
    if len(values) < 2:
        return column, values[0] if values else labels[0]
    joined = " or ".join(dict.fromkeys(map(level_text, values)))
    return column.astype(object).mask(np.any(parts, axis=0), joined), joined


def word_codes(labels: Sequence[str]) -> list[str]:
    """Return the labels that seem to be codes for missing values among words: 99 and, among answers
    such as yes and no, also 9.

    Examples
    --------
    >>> word_codes(["y", "n", "9"]), word_codes(["blue", "red", "9"]), word_codes(["A7", "99"])
    (['9'], [], [])
    >>> word_codes(["0", "1-2", "3-5", "-9"])
    ['-9']
    """
    answers = any(fold_text(label) in (YES | NO) - {"0", "1", "0.0", "1.0"} for label in labels)
    short = CODES_OF_ANSWERS if answers else ()
    codes = [label for label in labels if CLEAR_CODE.fullmatch(label) or label in short]
    others = [label for label in labels if label not in codes and answer_sense(label) is None]
    if any(label[-1:].isdigit() for label in others):  # then only negative numbers can't be labels
        return [code for code in codes if code.startswith("-")]
    return codes
