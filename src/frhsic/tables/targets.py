"""Targets: text and two distinct numbers are classes, other numbers stay numbers."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from frhsic.formatting import did_you_mean, format_count
from frhsic.tables.codes import (
    CLEAR_CODE,
    code_problem,
    is_code,
    missing_option,
    reads_missing,
    replace_option,
)
from frhsic.tables.columns import (
    MOST_ENCODED_LEVELS,
    column_kind,
    distinct_values,
    fold_text,
    level_text,
    numbers,
    quote_names,
    unify_spelling,
)
from frhsic.tables.identifiers import identifiers
from frhsic.tables.problems import Certainty, Problem

# Affirmative and negative answers.
YES = {"yes", "y", "true", "t", "1", "1.0", "ja", "j", "wahr", "oui", "vrai", "sí", "si", "sim"}
NO = {"no", "n", "false", "f", "0", "0.0", "nein", "falsch", "non", "faux", "não"}
# Largest number of classes of a target of text or whole numbers.
MOST_CLASSES = 20
# Rows of the rarer class below which its scarcity is a problem of its own.
FEW_IN_CLASS = 50
# Fewest letters of a label that may mean the same as another.
LEAST_LETTERS = 3
# Roman numerals with or without a letter, and sizes, in lower case.
GRADE = re.compile("[ivx]+[a-e]?|x*[sml]?")
# A target with at most this many distinct whole numbers may have been meant as classes.
FEW_NUMBERS = 10
# Codes for a missing answer beside 0 and 1, or 1 and 2.
CODES_OF_ANSWERS = ("-1", "7", "8", "9")
_TRUTH = {"true": True, "1": True, "1.0": True, "false": False, "0": False, "0.0": False}


def read_target(
    column: pd.Series[Any], positive: object = None
) -> tuple[np.ndarray, np.ndarray | None, list[str]]:
    """Read a target without missing values: text and two different numbers are classes, other
    numbers are a regression target.

    Labels that differ only in case or surrounding blanks are merged, and so are answers with the
    same meaning, such as yes and y.

    Parameters
    ----------
    column
        Values of the target.
    positive
        Value that counts as 1, or several of them, while all others count as 0; text that is no
        value lists them, separated by commas. By default the affirmative one of two answers such as
        yes and no, or the larger of two numbers.

    Returns
    -------
    codes
        0, 1, ... for each row, or its number for a regression.
    classes
        The values of the codes, as text, booleans or numbers; None for a regression. If one value
        is compared with several others, the first class is "not" followed by this value.
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
        answers = {_sense(value): value for value in values}
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
            option = " (--positive VALUE)" if len(values) > MOST_CLASSES else ""
            raise ValueError(
                f"target {name!r} is text with {len(values)} different values: {shown}{more}."
                f" Specify which one counts as 1{option}; all others count as 0."
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
    are too many for classes.
    """
    counts = merge_labels(column)[0].astype(str).value_counts()
    return None if len(counts) > MOST_CLASSES else str(counts.index[-1])


def merge_labels(column: pd.Series[Any]) -> tuple[pd.Series[Any], list[str]]:
    """Return labels after merging those that differ only in case or blanks and answers with the
    same meaning, with sentences about what was merged.
    """
    column, notes = unify_spelling(column)
    column, more = _merge_answers(column)
    return column, [*notes, *more]


def _merge_answers(column: pd.Series[Any]) -> tuple[pd.Series[Any], list[str]]:
    """Return labels after merging answers with the same meaning into the most frequent one, with a
    sentence about it; only if both meanings occur.
    """
    if column_kind(column) != "category":
        return column, []
    counts = column.dropna().value_counts()
    senses: dict[str | None, list[Any]] = {"yes": [], "no": []}
    for label in counts.index:
        senses.setdefault(_sense(label), []).append(label)
    answers = [senses["yes"], senses["no"]]
    several = [labels for labels in answers if len(labels) > 1]
    if not several or not all(answers):
        return column, []
    first = {label: labels[0] for labels in several for label in labels}
    shown = "; ".join(f"{quote_names(labels[1:])} as {labels[0]!r}" for labels in several)
    rows = sum(int(counts[label]) for labels in several for label in labels[1:])
    merged = column.astype(object).map(lambda label: first.get(label, label), na_action="ignore")
    note = f"Answers of {str(column.name)!r} with the same meaning are merged: {shown}"
    return merged, [f"{note} ({format_count(rows, 'row')})."]


def _sense(label: object) -> str | None:
    """Return whether a label is an affirmative or a negative answer; None if it is neither."""
    if fold_text(label) in YES:
        return "yes"
    return "no" if fold_text(label) in NO else None


def _merged_answer(positive: object, values: Sequence[Any]) -> object:
    """Return the value that an answer was merged into."""
    sense = _sense(positive)
    if sense is None or fold_text(positive) in map(fold_text, values):
        return positive
    return next((value for value in values if _sense(value) == sense), positive)


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
    """Return two classes in one type: text, booleans, or numbers, which are integers if both
    are.
    """
    if any(isinstance(value, str) for value in pair):
        return np.array([level_text(value) for value in pair], dtype=object)
    if all(isinstance(value, (bool, np.bool_)) for value in pair):
        return np.array(pair, dtype=bool)
    values = np.array(pair, dtype=np.float64)
    return values.astype(np.int64) if np.array_equal(values, np.round(values)) else values


def is_positive(column: pd.Series[Any], positive: object, name: str) -> np.ndarray:
    """Return 1 if a column has the value `positive`, NaN if it is missing, and 0 otherwise. Text is
    compared ignoring case and surrounding blanks.

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
        text = column.astype(str).str.strip().str.casefold()
        values = (text == fold_text(positive)).to_numpy(dtype=np.float64)
    return np.where(column.isna().to_numpy(), np.nan, values)


def positive_labels(positive: object, values: Iterable[Any]) -> tuple[object, ...]:
    """Return the values that count as 1, among those of the target. Text that is none of these
    lists several, separated by commas; quotes protect a comma.

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
    elif isinstance(positive, str) and fold_text(positive) not in map(fold_text, values):
        parts = next(csv.reader([positive], skipinitialspace=True))
        labels = tuple(part.strip() for part in parts if part.strip()) or labels
    return tuple(_merged_answer(label, values) for label in labels)


def join_labels(
    column: pd.Series[Any], labels: Sequence[object], name: str
) -> tuple[pd.Series[Any], object]:
    """Return a target in which the labels that count as 1 are one label, and this label.

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
    """Return the labels that seem to be codes for missing values beside words: 99, and beside
    answers such as yes and no also 9.

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
    others = [label for label in labels if label not in codes and _sense(label) is None]
    if any(label[-1:].isdigit() for label in others):  # only negative numbers are no labels then
        return [code for code in codes if code.startswith("-")]
    return codes


def class_problems(codes: np.ndarray, classes: np.ndarray, name: str) -> Iterator[Problem]:
    """Yield classes with few rows, and whether their labels may be codes for missing values."""
    labels = [level_text(label) for label in classes]
    digits = {label for label in labels if label.isdigit()}
    for label, rows in zip(labels, np.bincount(codes.astype(int), minlength=len(classes))):
        if rows >= FEW_IN_CLASS:
            continue
        text = (
            f"Only {format_count(rows, 'row')} of {name!r} {'has' if rows == 1 else 'have'}"
            f" {label!r}, so intervals will be wide."
        )
        option = ""
        # a word may be an answer
        certainty: Certainty = "possible" if reads_missing(label) else "likely"
        if len(labels) > 2 and (is_code(label) or digits == {label} <= {*CODES_OF_ANSWERS}):
            text += " If it means missing, treat it as missing."
            option = missing_option(name, [label])
        yield Problem("few rows", text, (name,), int(rows), certainty, option)


def label_problems(
    column: pd.Series[Any], codes: np.ndarray | None = None, *, only_short: bool = False
) -> Iterator[Problem]:
    """Yield labels that may be abbreviations of others: three letters or more, or, if there is no
    other such label, fewer; `only_short` skips the others unless they end in a point. With `codes`,
    labels that count as the same one of two classes are skipped. It is likely only of answers, and
    of labels that differ only in blanks and punctuation.

    Examples
    --------
    >>> labels = pd.Series(["Approved", "Denied", "Appr."], name="loan")
    >>> [problem.text for problem in label_problems(labels)]
    ["'Appr.' may mean the same as 'Approved' in 'loan', but counts as a separate label. ..."]
    >>> labels = pd.Series(["Female", "Male", "F"], name="sex")
    >>> [problem.text for problem in label_problems(labels)]
    ["'F' may mean the same as 'Female' in 'sex', but counts as a separate label. ..."]
    """
    labels = column.dropna().astype(str).unique().tolist()
    if len(labels) > MOST_ENCODED_LEVELS:
        return
    name = str(column.name)
    texts = column.astype(str)
    for label, longer in abbreviations(labels).items():
        merged = fold_text(label) in YES | NO
        if only_short and len(label) >= LEAST_LETTERS and not (merged or label.endswith(".")):
            continue
        if codes is not None and len({*codes[texts.isin([label, longer])]}) == 1:
            continue
        answers = _sense(label) is not None and _sense(label) == _sense(longer)
        same = answers or "".join(_label_words(label)) == "".join(_label_words(longer))
        yield Problem(
            "labels",
            f"{label!r} may mean the same as {longer!r} in {name!r}, but counts as a separate"
            " label. If it does, replace it.",
            (name,),
            int((texts == label).sum()),
            "likely" if same else "possible",
            replace_option(name, {label: longer}),
        )


def abbreviations(labels: list[str]) -> dict[str, str]:
    """Return labels that may be abbreviations, with the longer one of each: answers with the same
    meaning, and labels with which longer ones begin. Labels of one or two letters count only if
    each of them can be an abbreviation of only one other.
    """
    found: dict[str, str] = {}
    labels = [label for label in labels if not is_code(label)]
    found |= {
        label: max(shortened, key=len)
        for label in labels
        if (shortened := [other for other in labels if _shortens(label, other)])
    }
    labels = [label for label in labels if label not in found]
    answers = [[label for label in labels if _sense(label) == sense] for sense in ("yes", "no")]
    if all(answers):
        for same in answers:
            longest = max(same, key=len)
            found |= {label: longest for label in same if label != longest}
        labels = [label for label in labels if _sense(label) is None]
    labels = [label for label in labels if not label.strip().isdigit()]
    starts = {label: fold_text(label).removesuffix(".") for label in labels}
    words = [label for label in labels if " " not in label and len(starts[label]) >= LEAST_LETTERS]
    longer = {
        label: [word for word in words if _continues(starts[label], starts[word])]
        for label in labels
        if starts[label]
    }
    short = [label for label in longer if len(starts[label]) < LEAST_LETTERS]
    clear = all(len(longer[label]) == 1 and starts[label].isalpha() for label in short)
    others = {label: both[0] for label, both in longer.items() if both}
    return found | {label: word for label, word in others.items() if clear or label not in short}


def _continues(start: str, word: str) -> bool:
    """Return whether a word begins with an abbreviation and isn't another grade or size.

    Examples
    --------
    >>> _continues("f", "female"), _continues("sing", "single")
    (True, True)
    >>> _continues("ii", "iii"), _continues("aa", "aaa"), _continues("s1", "s10")
    (False, False, False)
    """
    rest = word.removeprefix(start)
    if rest in ("", word) or set(rest) == {start[-1]} or not rest[:1].isalpha():
        return False
    return not all(map(GRADE.fullmatch, (start, word)))


def _shortens(label: str, other: str) -> bool:
    """Return whether each of several words of a label begins a word of another, as in LibDem and
    Liberal Democrat, or whether the two differ only in blanks.
    """
    short = _label_words(label)
    long = _label_words(other)
    if len(short) < 2 or len(short) != len(long) or not all(map(str.isalpha, short)):
        return False
    begins = all(len(a) >= LEAST_LETTERS and b.startswith(a) for a, b in zip(short, long))
    return begins and (short != long or len(label) < len(other))


def _label_words(label: str) -> list[str]:
    """Return the words of a label such as Lib Dem, LibDem or Lib.-Dem., in lower case."""
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", label)
    return re.split(r"[\s._-]+", spaced.strip(" .").casefold())


def other_label_problems(column: pd.Series[Any], codes: np.ndarray) -> Iterator[Problem]:
    """Yield labels that count as 0 although they are neither the positive answer nor its opposite.

    Examples
    --------
    >>> labels = pd.Series(["yes", "no", "withdrawn"], name="paid")
    >>> [problem.option for problem in other_label_problems(labels, np.array([1.0, 0.0, 0.0]))]
    ['--missing paid=withdrawn']
    """
    name = str(column.name)
    labels = column[codes == 0].map(level_text)
    known = [label for label in labels.unique() if not reads_missing(label)]
    others = [label for label in known if _sense(label) is None]
    positive = _sense(level_text(column[codes == 1].iloc[0]))
    if positive is None or not others or len(others) == len(known):
        return
    rows = int(labels.isin(others).sum())
    yield Problem(
        "labels",
        f"{quote_names(others[:5])} in {name!r} ({format_count(rows, 'row')})"
        f" {'counts' if len(others) == 1 else 'count'} as 0, like the opposite of the positive"
        " answer. To leave these rows out, treat them as missing.",
        (name,),
        rows,
        "possible",
        missing_option(name, others),
    )


def number_target_problems(column: pd.Series[Any]) -> Iterator[Problem]:
    """Yield problems of a target that is predicted as a number."""
    name = str(column.name)
    if identifiers(column.to_frame()):
        text = f"The target {name!r} seems to identify rows. Is it really the column to predict?"
        yield Problem("target", text, (name,))
    values = np.unique(column.dropna().to_numpy(dtype=np.float64))
    texts = [text for text in map(level_text, values.tolist()) if not CLEAR_CODE.fullmatch(text)]
    labels = [text for text in texts if text not in CODES_OF_ANSWERS]
    codes = [text for text in texts if text in CODES_OF_ANSWERS]
    if codes and labels in (["0", "1"], ["1", "2"]):
        yield code_problem(name, codes, int(column.isin([*map(float, codes)]).sum()))
    elif 2 < len(texts) <= FEW_NUMBERS and np.array_equal(values, np.round(values)):
        text = (
            f"The target {name!r} has {len(values)} different values and is predicted as a number."
            " To predict one value against all others, pass it with --positive."
        )
        yield Problem("target", text, (name,))
