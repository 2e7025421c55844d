"""The target of a table and its problems: labels that may mean the same or a missing value, and
classes with few rows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from frhsic.formatting import format_count, inflect
from frhsic.tables.cells import FEW_WORDS, readable_numbers, text_problems
from frhsic.tables.codes import (
    CLEAR_CODE,
    code_problem,
    is_code,
    number_problems,
    reads_missing,
)
from frhsic.tables.columns import (
    MOST_ENCODED_LEVELS,
    fold_spelling,
    fold_text,
    is_text,
    level_text,
    mask_codes,
    quote_names,
    require_moderate,
)
from frhsic.tables.dates import spreadsheet_problems
from frhsic.tables.identifiers import identifiers
from frhsic.tables.problems import (
    TARGET_LABELS,
    UNREAD_NUMBERS,
    Certainty,
    Problem,
    missing_option,
    option_text,
    replace_option,
)
from frhsic.tables.schema import SHORT_DATE
from frhsic.tables.targets import (
    CODES_OF_ANSWERS,
    answer_sense,
    merge_labels,
    positive_labels,
    rarest_label,
    read_target,
)
from frhsic.tables.view import TableCheck, is_unclear, settled_answers

# Rows of the rarer class below which its scarcity is a problem of its own.
FEW_IN_CLASS = 50
# Labels that count as 0 may not be outcomes if they have less than this share of the rows of the
# most frequent one.
RARE_OUTCOME = 0.2
# Fewest letters of a label that may mean the same as another.
LEAST_LETTERS = 3
# Roman numerals with or without a letter, and sizes, in lower case.
GRADE = re.compile("[ivx]+[a-e]?|x*[sml]?")
# Words of a label such as Lib Dem, LibDem or Lib.-Dem.
WORD = re.compile(r"[^\W\d_](?:[^\W\d_A-Z]+|[A-Z]+)?\.?")
OTHER_SIGN = re.compile(r"[^\w\s.-]|[0-9]")
# Labels that mean nothing, and beginnings of other labels that may mean the same.
NOTHING = ("none", "nothing", "nichts", "keine", "keiner", "aucun", "aucune", "ninguno", "nada")
NEGATIONS = ("no ", "not ", "kein ", "keine ", "nicht ", "pas de ", "sin ", "sem ")
# A target with at most this many distinct whole numbers may have been meant as classes.
FEW_NUMBERS = 10
# Most rare classes that may mean the same as frequent ones.
MOST_SPELLINGS = 6


def find_target(
    check: TableCheck, name: str, positive: object = None
) -> tuple[np.ndarray, np.ndarray | None] | None:
    """Return the codes and classes of a target, or None if it cannot be used, and add its problems
    to the check.
    """
    if name not in check.table:
        return None
    column = check.table[name]
    for problem in _cell_problems(check, column, positive):
        rest = mask_codes(column, problem.values).dropna()
        if rest.nunique() < 2:
            continue
        check.problems.append(_ask_positive(problem, rest, positive) if problem.values else problem)
    errors = [p.kind for p in check.problems if p.columns == (name,) and p.certainty == "error"]
    if "target" in errors:  # the numbers are examined as if the other cells were missing
        numbers = readable_numbers(check.cells[name], check.sign)
        column = numbers.reindex(column.index)
        check.table[name] = column
    present = column.dropna()
    with check.errors("target", name):
        codes, classes, notes = read_target(present, positive)
        require_moderate(present, codes, f"target {name!r}")
        check.problems += [Problem("target", note, (name,), None, "certain") for note in notes]
        if classes is None:
            check.problems += [*number_problems(column), *number_target_problems(column)]
        else:
            check.problems += _merged_label_problems(present, codes, len(classes), positive)
        answers = settled_answers(column, check.problems, positive)
        if answers is not None and answers.classes is not None:
            check.problems += class_problems(answers.codes, answers.classes, name)
            if positive is None:
                check.problems += _several_spellings(answers.codes, answers.classes, name)
        return codes, classes
    return None


def _merged_label_problems(
    column: pd.Series[Any], codes: np.ndarray, classes: int, positive: object
) -> Iterator[Problem]:
    """Yield problems with labels that remain after spellings are merged."""
    merged = merge_labels(column)[0]
    if is_text(column):
        alike = [*label_problems(merged, codes if classes == 2 else None)]
        rest = merged.replace(abbreviations(merged.unique().tolist()) if alike else {})
        yield from alike[:-1]
        yield from (_ask_positive(problem, rest, positive) for problem in alike[-1:])
    if classes == 2 and len(positive_labels(positive, merged)) == 1:
        yield from other_label_problems(merged, codes)


def _several_spellings(codes: np.ndarray, classes: np.ndarray, name: str) -> Iterator[Problem]:
    """Yield a question about the classes of a target if all except two are rare, since several may
    have the same meaning.
    """
    counts = np.bincount(codes.astype(int), minlength=len(classes))
    rare = np.argsort(-counts, kind="stable")[2:]
    if not 0 < len(rare) <= MOST_SPELLINGS or counts[rare[0]] > FEW_WORDS * len(codes):
        return
    yield Problem(
        TARGET_LABELS,
        f"{name!r} has {len(classes)} classes, some of them rare"
        f" ({quote_names([level_text(classes[i]) for i in rare])}). If several mean the same, so"
        " that there are only two outcomes, list those that count as 1 (--positive VALUE,VALUE):"
        " with more classes, some columns that give away the target aren't found.",
        (name,),
        int(counts[rare].sum()),
        "possible",
    )


def _ask_positive(problem: Problem, labels: pd.Series[Any], positive: object) -> Problem:
    """Return a problem that also asks which of two remaining labels counts as 1, if unknown."""
    if positive is not None or labels.nunique() != 2 or not is_unclear(labels):
        return problem
    shown = " or ".join(option_text("positive", str(label)) for label in labels.unique())
    text = f"{problem.text} Specify which of the two remaining labels counts as 1 ({shown})."
    return replace(problem, text=text)


def _cell_problems(
    check: TableCheck, column: pd.Series[Any], positive: object
) -> Iterator[Problem]:
    """Yield problems with the cells of a target. Labels may be outcomes, so the user is only asked
    whether they mean numbers or missing values; positive labels are not questioned. Text with too
    many labels to be classes is meant to be numeric, so its other cells are errors.
    """
    name = str(column.name)
    labels = {*map(fold_text, positive_labels(positive, column.dropna().unique()))}
    problems = [*text_problems(check.cells, check.schema.select([name]), check.decimal)]
    if positive is not None and is_text(column):
        cells = check.cells[name].dropna().str.strip()
        dates = cells.str.fullmatch(SHORT_DATE, case=False)
        problems = [p for p in problems if p.values or p.certainty == "certain"]
        problems += spreadsheet_problems(
            cells[~(dates & cells.map(fold_text).isin(labels))], check.sign
        )
    classes = positive is not None or rarest_label(column.dropna()) is not None
    for problem in problems:
        if problem.kind == "ranges" or labels & {*map(fold_text, problem.values)}:
            continue
        # true if there are no values: cells that aren't numbers
        words = all(map(reads_missing, problem.values))
        if not is_text(column) or problem.certainty == "certain" or not words:
            yield problem
            continue
        option = "" if "--drop" in problem.option else problem.option
        if classes or problem.values:
            # a word may be an outcome: those who refused didn't pay
            yield replace(problem, kind=TARGET_LABELS, certainty="possible", option=option)
        elif problem.kind in UNREAD_NUMBERS and problem.certainty == "likely":
            yield replace(problem, kind="target", certainty="error", option=option)
        else:
            yield replace(problem, option=option)


def class_problems(codes: np.ndarray, classes: np.ndarray, name: str) -> Iterator[Problem]:
    """Yield classes with few rows, and say whether their labels may be codes for missing values."""
    labels = [level_text(label) for label in classes]
    digits = {label for label in labels if label.isdigit()}
    for label, rows in zip(labels, np.bincount(codes.astype(int), minlength=len(classes))):
        if rows >= FEW_IN_CLASS:
            continue
        text = (
            f"{name!r} is {label!r} in only {format_count(rows, 'row')}, so intervals will be wide."
        )
        option = ""
        # a word may be an outcome
        certainty: Certainty = "possible" if reads_missing(label) else "likely"
        if len(labels) > 2 and (is_code(label) or digits == {label} <= {*CODES_OF_ANSWERS}):
            text += " If it means missing, treat it as missing."
            option = missing_option(name, [label])
        yield Problem("few rows", text, (name,), int(rows), certainty, option)


def label_problems(
    column: pd.Series[Any], codes: np.ndarray | None = None, *, only_short: bool = False
) -> Iterator[Problem]:
    """Yield labels that may be abbreviations of others, by the rules of :func:`abbreviations`. With
    `only_short`, labels of three letters or more are skipped unless they are answers, contain a
    period, differ from the longer label only in spelling, or, unlike the longer label, are in
    capitals. With `codes`, pairs that belong to the same class are skipped. Problems are likely
    only for answers, and for labels that differ only in whitespace, hyphens or periods.

    Examples
    --------
    >>> labels = pd.Series(["Approved", "Denied", "Appr."], name="loan")
    >>> [problem.text for problem in label_problems(labels)]
    ["'Appr.' may mean the same as 'Approved' in 'loan', but it counts as a separate label. ..."]
    >>> labels = pd.Series(["Female", "Male", "F"], name="sex")
    >>> [problem.text for problem in label_problems(labels)]
    ["'F' may mean the same as 'Female' in 'sex', but it counts as a separate label. ..."]
    """
    labels = column.dropna().astype(str).value_counts().index.tolist()
    if len(labels) > MOST_ENCODED_LEVELS:
        return
    name = str(column.name)
    texts = column.astype(str)
    for label, longer in abbreviations(labels).items():
        marked = "." in label or label.isupper() > longer.isupper()
        sense = answer_sense(label, labels)
        same = fold_spelling(label) == fold_spelling(longer)
        if only_short and len(label) >= LEAST_LETTERS and not (sense or marked or same):
            continue
        if codes is not None and len({*codes[texts.isin([label, longer])]}) == 1:
            continue
        yield Problem(
            "labels",
            f"{label!r} may mean the same as {longer!r} in {name!r}, but it counts as a separate"
            f" label. If they mean the same, replace {label!r}.",
            (name,),
            int((texts == label).sum()),
            "likely" if same or (sense and sense == answer_sense(longer)) else "possible",
            replace_option(name, {label: longer}),
        )


def abbreviations(labels: list[str]) -> dict[str, str]:
    """Return labels that may be abbreviations, each with the longer label: spellings of earlier
    labels, answers with the same meaning, "none" if there is exactly one label such as "no reply",
    and labels with which longer ones begin. Labels of one or two letters count only if each of them
    can abbreviate exactly one other.
    """
    labels = [label for label in labels if not is_code(label)]
    first: dict[str, str] = {}
    spellings = {label: first.setdefault(fold_spelling(label), label) for label in labels}
    labels = [*first.values()]
    found = {
        label: max(shortened, key=len)
        for label in labels
        if (shortened := [other for other in labels if _shortens(label, other)])
    }
    negated = [label for label in labels if fold_text(label).startswith(NEGATIONS)]
    if len(negated) == 1:
        found |= {label: negated[0] for label in labels if fold_text(label) in NOTHING}
    labels = [label for label in labels if label not in found]
    answers = [
        [label for label in labels if answer_sense(label, labels) == sense]
        for sense in ("yes", "no")
    ]
    if all(answers):
        for same in answers:
            longest = max(same, key=len)
            found |= {label: longest for label in same if label != longest}
        labels = [label for label in labels if label not in answers[0] + answers[1]]
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
    found |= {label: word for label, word in others.items() if clear or label not in short}
    found = {label: found.get(other, other) for label, other in (spellings | found).items()}
    return {label: other for label, other in found.items() if label != other}


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
    """Return whether each of several words of a label begins a word of another label, as in LibDem,
    N. Central and v. good; a word of fewer than three letters must end in a period.
    """
    short = WORD.findall(label)
    long = WORD.findall(other)
    if not 1 < len(short) == len(long) or OTHER_SIGN.search(label):
        return False
    return len(label) < len(other) and all(
        fold_text(b).startswith(fold_text(a).removesuffix("."))
        and (a.endswith(".") or len(a) >= LEAST_LETTERS)
        for a, b in zip(short, long)
    )


def other_label_problems(column: pd.Series[Any], codes: np.ndarray) -> Iterator[Problem]:
    """Yield labels that count as 0 but may not be outcomes: they are neither the positive nor the
    negative answer or, if the positive label is not an answer, they are rare compared with the most
    frequent label that counts as 0.

    Examples
    --------
    >>> labels = pd.Series(["yes", "no", "withdrawn"], name="paid")
    >>> [problem.option for problem in other_label_problems(labels, np.array([1.0, 0.0, 0.0]))]
    ['--missing paid=withdrawn']
    """
    name = str(column.name)
    labels = column[codes == 0].map(level_text)
    counts = labels.value_counts()
    known = [label for label in labels.unique() if not reads_missing(label)]
    others = [label for label in known if answer_sense(label) is None]
    like = "the negative answer"
    if answer_sense(level_text(column[codes == 1].iloc[0])) is None:
        others = [label for label in known if counts[label] < RARE_OUTCOME * counts.iloc[0]]
        others = [label for label in others if label[:1].isalpha() and label not in NOTHING]
        like = repr(counts.index[0])
    if not others or len(others) == len(known):
        return
    rows = int(labels.isin(others).sum())
    yield Problem(
        "labels",
        f"{quote_names(others[:5])} in {name!r} ({format_count(rows, 'row')})"
        f" {inflect('[counts|count]', len(others))} as 0, like {like}. To leave these rows out,"
        " treat their target as missing.",
        (name,),
        rows,
        "possible",
        missing_option(name, others),
    )


def number_target_problems(column: pd.Series[Any]) -> Iterator[Problem]:
    """Yield problems with a target that is predicted as a number."""
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
