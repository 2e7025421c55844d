"""Sensitive attributes as numbers, and the problems with their cells."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from frhsic.formatting import inflect
from frhsic.tables.attributes import attribute, band
from frhsic.tables.cells import (
    AS_NUMBERS,
    FEW_WORDS,
    plain_cells,
    readable_numbers,
    require_numbers,
    text_problems,
    unit_replacements,
    units_problem,
)
from frhsic.tables.codes import number_problems, reads_missing
from frhsic.tables.columns import examples, is_text, mask_codes, replace_values, require_moderate
from frhsic.tables.dates import spreadsheet_problems
from frhsic.tables.problems import (
    LEAST_SUSPECTED_ROWS,
    Problem,
    missing_option,
    replace_option,
)
from frhsic.tables.schema import DATE, NUMBER_MARKS, SHORT_DATE, Schema, converted_numbers
from frhsic.tables.view import TableCheck, View

# Least difference between the mean targets of rows with and without an attribute, in standard
# errors.
LACKING_ERRORS = 4


def find_attributes(check: TableCheck, names: Sequence[str]) -> pd.DataFrame:
    """Return sensitive attributes as numbers, without those that cannot be used, and add their
    problems to the check.
    """
    attributes = {}
    for name in names:
        if name not in check.table:
            continue
        _convert_units(check, name)
        numbers = _numbers_among_words(check, name)
        if numbers is not None:
            attributes[name] = numbers.reindex(check.table.index)
            continue
        with check.errors("attribute", name):
            attributes[name] = _read_attribute(check, name)
            if missing := int(attributes[name].isna().sum()):
                text = (
                    f"{name!r} is missing in {missing:,} of {len(check.table):,} rows, which"
                    f" {inflect('[is|are]', missing)} left out when gaps are measured."
                )
                check.problems.append(Problem("missing", text, (name,), missing, "certain"))
    return pd.DataFrame(attributes, check.table.index)


def _convert_units(check: TableCheck, name: str) -> None:
    """Convert the numbers of an attribute to one unit, and add an error with the option that does
    so.
    """
    cells = check.cells[name].dropna().str.strip() if is_text(check.table[name]) else None
    if cells is None or not (units := unit_replacements(cells, check.sign)):
        return
    check.problems.append(units_problem(cells, units, check.sign, "error"))
    check.cells[name] = replace_values(cells, units, check.decimal)
    learned = Schema.learn(check.cells[[name]], decimal=check.decimal).columns[0]
    columns = [learned if own.name == name else own for own in check.schema.columns]
    check.schema = replace(check.schema, columns=tuple(columns))
    check.table[name] = check.schema.select([name])(check.cells[[name]])[name]


def _read_attribute(check: TableCheck, name: str) -> pd.Series[Any]:
    """Return an attribute whose cells are numbers or bands, and add its problems to the check."""
    words = f"sensitive attribute {name!r}"
    column = check.table[name]
    if is_text(column) and check.decimal is not None:  # among numbers, "-" is a missing value
        column = column.mask(column.str.strip().isin(NUMBER_MARKS))
    if is_text(column) and column.dropna().map(band).isna().any():
        require_numbers(check.cells[name], check.decimal, words)
    values, note = attribute(column, words)
    require_moderate(column, values, words)
    numbers = pd.Series(values, check.table.index, name=name)
    check_varies(numbers.to_frame(), "every row, so nothing can depend on it")
    if note is None:
        check.problems += text_problems(check.cells, check.schema.select([name]), check.decimal)
        check.problems += number_problems(numbers)
    else:
        check.problems.append(Problem("bands", note, (name,), certainty="certain"))
        if is_text(column):
            check.problems += _plain_number_problems(check, name)
    return numbers


def _numbers_among_words(check: TableCheck, name: str) -> pd.Series[Any] | None:
    """Return the numbers of an attribute if only a few words, words for missing values, or dates
    prevent it from being read as numbers or bands, with NaN in their place; otherwise None.
    """
    if not is_text(check.table[name]):
        return None
    with contextlib.suppress(ValueError, TypeError):  # it contains bands only
        attribute(check.table[name], name)
        return None
    words = f"sensitive attribute {name!r}"
    numbers = readable_numbers(check.cells[name], check.sign)
    bare = check.cells[name][numbers.index].str.strip()
    bands = bare.map(band).notna()
    plain = plain_cells(bare)
    texts = bare.str.replace(",", ".")
    words_for_numbers = texts.isin(plain) & ~bands
    if not (numbers.isna() & bands).any():  # a unit can be read, but not among bands
        words_for_numbers &= numbers.isna()
    wrong = numbers.isna() & ~bands & ~words_for_numbers
    if wrong.all() or not (wrong | words_for_numbers).any():
        return None
    dates = bare.str.fullmatch(f"{SHORT_DATE}|{DATE}", case=False)
    odd = bare[wrong & ~bare.map(reads_missing) & ~dates]
    if len(odd) > FEW_WORDS * len(numbers):
        return None
    if words_for_numbers.any():
        digits = {cell: plain[cell] for cell in texts[words_for_numbers].unique()}
        said = f"{words} is not numeric: {examples(bare[words_for_numbers])}."
        check.problems.append(
            Problem(
                "attribute",
                f"{said} Replace such values with numbers.",
                (name,),
                int(words_for_numbers.sum()),
                "error",
                replace_option(name, digits),
            )
        )
        bare = bare.mask(words_for_numbers, texts.map(digits))
        numbers = readable_numbers(bare, check.sign)
    for problem in spreadsheet_problems(bare, check.sign):
        error = problem.certainty == "likely"
        check.problems.append(replace(problem, certainty="error") if error else problem)
    check.problems += _plain_number_problems(check, name)
    if (numbers.isna() & ~wrong).any():
        numbers[~wrong], note = attribute(bare[~wrong], words)
        check.problems.append(Problem("bands", str(note), (name,), certainty="certain"))
    cells = check.cells[name][numbers.index].str.strip()
    other = cells[numbers.isna()].drop(converted_numbers(cells, check.sign).index)
    if len(other):
        option = missing_option(name, other.unique().tolist())
        text = f"{words} is not numeric: {examples(other)}. {AS_NUMBERS}"
        check.problems.append(Problem("attribute", text, (name,), len(other), "error", option))
    return mask_codes(numbers, check.schema.missing.get(name, ()))


def _plain_number_problems(check: TableCheck, name: str) -> Iterator[Problem]:
    """Yield problems with the numbers of an attribute that are not bands or words."""
    numbers = readable_numbers(check.cells[name], check.sign)
    yield from number_problems(mask_codes(numbers.dropna(), check.schema.missing.get(name, ())))


def check_varies(s: pd.DataFrame, where: str) -> None:
    """Raise if a sensitive attribute has no values, or the same value in all rows."""
    for name in s:
        if s[name].nunique() < 2:
            value = "missing" if s[name].isna().all() else f"{s[name].min():g}"
            raise ValueError(f"sensitive attribute {name!r} is {value} in {where}.")


def lacking_problems(view: View) -> Iterator[Problem]:
    """Yield attributes for which the mean target of rows without a value differs from that of the
    other rows.
    """
    if view.answers is None or view.count > 2:
        return
    rows, codes, classes = view.answers
    for name, column in view.s.iloc[rows].items():
        lacking = column.isna().to_numpy()
        parts = codes[lacking], codes[~lacking]
        if min(map(len, parts)) < LEAST_SUSPECTED_ROWS:
            continue
        error = math.sqrt(sum(part.var() / len(part) for part in parts))
        without, rest = (float(part.mean()) for part in parts)
        if abs(without - rest) > LACKING_ERRORS * error:
            what = "mean target" if classes is None else f"share of {str(classes[1])!r}"
            yield Problem(
                "missing attribute",
                f"Rows without {name!r} differ from the others in their target: their {what} is"
                f" {without:.3g}, compared with {rest:.3g}. Only rows with {name!r} are used to"
                " evaluate the model, so the evaluation does not cover all rows.",
                (str(name),),
                int(lacking.sum()),
                "certain",
            )
