"""Columns of text: words for missing values, amounts, and cells that prevent a column from being
read as numbers.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pandas as pd

from frhsic.formatting import format_count
from frhsic.tables.attributes import OR_LESS, OR_MORE, OVER, UNDER, band
from frhsic.tables.codes import (
    CLEAR_CODE,
    LEAST_FACTOR,
    LEAST_VALUES,
    YEARS_BEGIN,
    code_problem,
    number_problems,
    plain_number,
    reads_missing,
)
from frhsic.tables.columns import (
    MOST_ENCODED_LEVELS,
    examples,
    fold_text,
    is_text,
    list_names,
    quote_names,
    replace_values,
    row_number,
    unify_spelling,
)
from frhsic.tables.dates import month_problems, spreadsheet_problems
from frhsic.tables.problems import Certainty, Problem, drop_option, missing_option, replace_option
from frhsic.tables.schema import (
    GROUP_SIGNS,
    NUMBER_MARKS,
    ColumnType,
    Schema,
    common_measure,
    converted_numbers,
    parse_numbers,
    plain_digits,
    remove_measure,
)
from frhsic.tables.targets import CODES_OF_ANSWERS, NO, YES, word_codes

# What to do about an attribute or a score that is not numeric.
AS_NUMBERS = (
    "Write its values as numbers (two groups as 0 and 1, ordered levels as ranks) or as bands such"
    " as 30-39."
)
# Largest share of non-numeric cells in a column that seems to be numeric.
FEW_WORDS = 0.1
# Cells that look like numbers, and the share of such cells above which a column of text is
# reported.
LIKE_NUMBER = r"[-+]?[0-9]+([.,][0-9]{3})*([.,][0-9]+)?"
MOST_ALIKE = 0.5
# Percentages, and shares as fractions.
PERCENT = rf"{LIKE_NUMBER}\s*%"
FRACTION = r"0?[.,][0-9]+|[01]([.,]0+)?"
# Words for numbers, and words that mean a missing value among numbers but may mean 0.
_DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
NUMBER_WORDS = {word: str(digit) for digit, word in enumerate(_DIGITS)}
NONE = ("none", "None")
# Numbers below or above what can be measured.
LIMIT_SIGN = rf"(?:{UNDER}|{OVER})\s*"
_AMOUNT = "[0-9]+(?:[.,][0-9]+)?"
DETECTION_LIMIT = rf"(?i:{LIMIT_SIGN}{_AMOUNT}|{_AMOUNT}\s*(?:{OR_LESS}|{OR_MORE}))"
# Units of time, mass and length with their sizes; numbers with a unit, shares such as 27/52, and
# Roman numerals.
_UNITS = (
    "y 12 yr 12 yrs 12 year 12 years 12 yo 12 y.o 12 jahr 12 jahre 12 mo 1 mos 1 mth 1 mths 1"
    " month 1 months 1 monat 1 monate 1",
    "wk 168 wks 168 week 168 weeks 168 woche 168 wochen 168 d 24 day 24 days 24 tag 24 tage 24 h 1"
    " hr 1 hrs 1 hour 1 hours 1 min 0.0166666667",
    "t 1e6 kg 1000 g 1 mg 0.001 lb 453.592 lbs 453.592 oz 28.3495",
    "km 1000 m 1 cm 0.01 mm 0.001 mi 1609.344 mile 1609.344 miles 1609.344 ft 0.3048 feet 0.3048"
    " in 0.0254 inch 0.0254 inches 0.0254 l 1 ml 0.001",
)
UNIT_SIZES = [dict(zip(words[::2], map(float, words[1::2]))) for words in map(str.split, _UNITS)]
_SPELLINGS = "|".join(re.escape(unit) for sizes in UNIT_SIZES for unit in sizes)
WITH_UNIT = (
    rf"(?i)^(?:{LIMIT_SIGN})?[-+]?{_AMOUNT}\s*\+?\s*({_SPELLINGS}|%)\.?"
    rf"\s*(?:{OR_LESS}|{OR_MORE})?$"
)
MEASURED_CELL = rf"^{LIKE_NUMBER}\s*([^\W\d_]+|[^\w\s.,+%-])\.?$"
FOOTNOTES = ("*", "\u2020", "\u2021")
# What people write before numbers that aren't exact.
APPROXIMATE = r"~|\u2248|c\.|ca\.?|circa|approx\.?|about|around|etwa|environ|vers|unos"
ABOUT_CELL = rf"(?i)^({APPROXIMATE})\s*{LIKE_NUMBER}$"
# A year with two digits.
SHORT_YEAR = "['\u2019]([0-9]{2})"
OF_ALL = rf"^({_AMOUNT})\s*/\s*([0-9]+)$"
ROMAN = ("I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X")
# Fewest levels that are numbers or ranges, and largest share of others, in a column of text that is
# reported.
LEAST_RANGES = 2
MOST_OTHER = 0.75


def text_problems(cells: pd.DataFrame, schema: Schema, decimal: str | None) -> Iterator[Problem]:
    """Yield columns of text with spellings that are merged, words for missing values, and cells
    that prevent the column from being read as numbers; `decimal` is None for a table with typed
    columns.
    """
    words: dict[str, Counter[str]] = {}
    for column in schema.columns:
        name = column.name
        present = cells[name].dropna()
        if not is_text(present) or present.empty:
            continue
        if column.grouped:
            yield _amounts_problem(present, column, decimal or ".")
        textual = column.kind in ("text", "identifier")
        if column.kind == "number" or (decimal is not None and textual):
            yield from _none_problems(present, decimal or ".")
            percents = [*_percent_problems(present, parsed=column.kind == "number")]
            yield from percents
            if percents:
                continue
        if not textual:
            continue
        bare = present.str.strip()
        months = [*month_problems(bare)]
        dates = months
        if column.kind == "text" and not months:
            _, notes = unify_spelling(bare)
            for note in notes:
                yield Problem("spelling", note, (name,), certainty="certain")
            dates = [*spreadsheet_problems(bare, decimal or ".")]
        yield from dates
        nearly = []
        if not months:
            read = _nearly_numbers(present, decimal) if decimal else _stored_as_text(present)
            nearly = [*read]
        yield from nearly if nearly or dates else _range_problems(column)
        if column.kind == "text" and not nearly:
            for level, rows in bare.value_counts().items():
                if reads_missing(level):
                    words.setdefault(fold_text(level), Counter())[name] += rows
            if codes := word_codes([*map(str, column.levels)]):
                yield code_problem(name, codes, int(bare.isin(codes).sum()))
    for word, counts in words.items():
        yield Problem(
            "missing code",
            f"{word!r} is a value of {list_names([*counts])}. If it means missing, treat it as"
            " missing.",
            tuple(counts),
            counts.total(),
            option=" ".join(missing_option(name, [word]) for name in counts),
            values=(word,),
        )


def _percent_problems(cells: pd.Series[Any], *, parsed: bool) -> Iterator[Problem]:
    """Yield a question about a column of percentages and numbers without a percent sign, if all its
    cells are `parsed` as percentages although nearly all numbers without the sign seem to be
    fractions, or if the column cannot be parsed.
    """
    if not any("%" in value for value in cells.unique()):
        return
    cells = cells.str.strip()
    percents = cells[cells.str.fullmatch(PERCENT)]
    others = _unmarked_numbers(cells)
    large = ~percents.str.fullmatch(rf"({FRACTION})\s*%")
    fractions = others.str.fullmatch(FRACTION).mean() >= 1 - FEW_WORDS
    if parsed and not (fractions and large.any()):
        return
    if text := _percent_sentence(cells):
        name = str(cells.name)
        remedy = "Write all of them the same way, or drop the column."
        if parsed:
            remedy = (
                "All are read as percentages. If those without the sign are fractions, write all"
                " of them the same way."
            )
        option = "" if parsed else drop_option(name)
        kind = "percentages" if parsed else "text in numbers"
        yield Problem(kind, f"{name!r} {text} {remedy}", (name,), len(others), option=option)


def _percent_sentence(cells: pd.Series[Any]) -> str:
    """Return the end of a sentence about percentages among numbers; empty if there are no
    percentages.
    """
    percents = cells[cells.str.fullmatch(PERCENT)]
    others = _unmarked_numbers(cells)
    if percents.empty or others.empty or len(percents) + len(others) < MOST_ALIKE * len(cells):
        return ""
    return (
        f"contains percentages such as {percents.iloc[0]!r} ({format_count(len(percents), 'row')})"
        f" and numbers without a percent sign such as {others.iloc[0]!r}"
        f" ({format_count(len(others), 'row')})."
    )


def _unmarked_numbers(cells: pd.Series[Any]) -> pd.Series[Any]:
    """Return the numbers without a percent sign, except codes, 0 and 1."""
    numbers = cells[cells.str.fullmatch(LIKE_NUMBER)]
    return numbers[~numbers.isin(["0", "1"]) & ~numbers.str.fullmatch(CLEAR_CODE)]


def _none_problems(cells: pd.Series[Any], decimal: str) -> Iterator[Problem]:
    """Yield a question about "none" in a column of numbers, where it is read as missing."""
    none = cells[cells.isin(NONE)]
    if none.empty:
        return
    numbers = readable_numbers(cells, decimal)
    if not len(numbers) or numbers.count() < MOST_ALIKE * len(numbers):
        return
    name = str(cells.name)
    yield Problem(
        "missing code",
        f"{none.iloc[0]!r} among the numbers of {name!r} ({format_count(len(none), 'row')}) means"
        " either 0 or a missing value. If it means 0, replace it; otherwise treat it as missing"
        f" ({missing_option(name, none.unique()[:1].tolist())}).",
        (name,),
        len(none),
        option=replace_option(name, {none.iloc[0]: "0"}),
    )


def plain_cells(cells: pd.Series[Any], *, roman: bool = False) -> dict[str, str]:
    """Return cells that stand for numbers, each with its number as written in options: words;
    numbers and limits with a unit, if all units are the same; shares such as 27/52, if all
    totals are the same; and years such as '93, if the others show their century. With `roman`,
    Roman numerals are included.

    Examples
    --------
    >>> plain_cells(pd.Series(["three", "5 years", "27/52", "II", "7"]))
    {'three': '3', '5 years': '5', '27/52': '27'}
    >>> plain_cells(pd.Series(["3 km", "2 mi", "II"]), roman=True)
    {'II': '2'}
    """
    levels = pd.Series(cells.unique(), dtype=str).str.strip()
    # percentages that aren't limits are parsed, or reported if there are also shares
    measured = levels.mask(levels.str.fullmatch(PERCENT)).str.extract(WITH_UNIT)
    units = measured[0].str.casefold()
    shares = levels.str.extract(OF_ALL)
    same = shares[1].nunique() == 1
    years = levels[levels.str.fullmatch("(19|20)[0-9]{2}")].astype(int)
    plain = {}
    for level, unit, share in zip(levels, units, shares[0]):
        number = NUMBER_WORDS.get(fold_text(level))
        if roman and level in ROMAN:
            number = str(ROMAN.index(level) + 1)
        elif units.nunique() == 1 and isinstance(unit, str):
            number = _limit(level)
        elif same and isinstance(share, str):
            number = share
        elif found := re.fullmatch(SHORT_YEAR, level):
            full = [begin + int(found[1]) for begin in YEARS_BEGIN]
            near = [year for year in full if years.min() - 10 <= year <= years.max() + 10]
            number = str(near[0]) if len(near) == 1 else None
        if number is not None:
            plain[level.replace(",", ".")] = number.replace(",", ".")
    return plain


def unit_replacements(cells: pd.Series[Any], decimal: str = ".") -> dict[str, str]:
    r"""Return the replacements that convert cells to numbers in the most frequent unit, if nearly
    all of them are numbers with the same unit or with units that can be converted. Return no
    replacements if the cells can be read without any, or if their decimal separator is unclear.
    Footnote marks and words such as "about" are removed.

    Examples
    --------
    >>> unit_replacements(pd.Series(["2 km", "3.1 km", "850 m", "4"]))
    {'* km': '*', '* m': '0.001*'}
    >>> print(*unit_replacements(pd.Series(["28*", "31", "45"])))
    * \*
    >>> unit_replacements(pd.Series(["2 km", "3 kg"]))
    {}
    """
    about = cells.str.extract(ABOUT_CELL)[0]
    written = cells.str.extract(MEASURED_CELL)[2]
    units = written.str.casefold()
    if units.nunique() == 1 and common_measure(cells):
        units[:] = None
    counts = units.value_counts()
    if counts.empty and about.isna().all():
        return {}
    bare = cells.str.replace(GROUP_SIGNS, "", regex=True)
    numbers = bare.str.fullmatch(f"{LIKE_NUMBER}|{DETECTION_LIMIT}") | written.notna()
    if (numbers | about.notna()).mean() < 1 - FEW_WORDS:
        return {}
    measures = [unit for unit in map(str, counts.index) if unit not in FOOTNOTES]
    sizes = next((own for own in UNIT_SIZES if {*measures} <= {*own}), {})
    replacements = {}
    for unit in [*measures, *(mark for mark in FOOTNOTES if mark in counts.index)]:
        spelling = str(written[units == unit].mode()[0]).replace("*", r"\*")
        factor = sizes[unit] / sizes[measures[0]] if unit in sizes else 1.0
        replacements[f"* {spelling}"] = f"{factor:.6g}*" if factor != 1 else "*"
    replacements |= {f"{mark} *": "*" for mark in sorted(about.dropna().unique())}
    try:
        amounts = readable_numbers(replace_values(cells, replacements, decimal), decimal)
    except ValueError:
        return {}
    if not sizes:  # one unknown unit, which all numbers have, or all numbers seem to have
        measured = amounts[units.isin(measures)].median()
        others = amounts[~units.isin(measures)].median()
        alike = max(measured, others) < LEAST_FACTOR * min(measured, others)
        few = counts[measures].sum() <= FEW_WORDS * len(cells)
        if len(measures) > 1 or (few and not alike):
            return {}
    return replacements


def _range_problems(column: ColumnType) -> Iterator[Problem]:
    """Yield a note about text whose levels are numbers or ranges, since their order is lost."""
    ranges = [level for level in column.levels if band(level)]
    others = [level for level in column.levels if level not in ranges]
    if len(ranges) < LEAST_RANGES or len(others) > MOST_OTHER * len(column.levels):
        return
    if any(fold_text(level) in YES | NO for level in others):
        return  # a question about labels covers them
    mixed = f", and others are not ({quote_names(others[:2])})" if others else ""
    plain = plain_cells(pd.Series(column.levels), roman=True)
    limits = {level: _limit(level) for level in ranges if re.fullmatch(DETECTION_LIMIT, level)}
    numbers = all(level in limits or level.isdigit() for level in ranges)
    option = ""
    if numbers and {*others} <= plain.keys():
        option = replace_option(column.name, limits | {old: _limit(plain[old]) for old in plain})
    yield Problem(
        "ranges",
        f"{column.name!r} is read as text, so its values have no order, though some are numbers,"
        f" codes or ranges ({quote_names(ranges[:3])}){mixed}. To use their order, write them as"
        " numbers.",
        (column.name,),
        certainty="possible",
        option=option if limits or plain else "",
    )


def _limit(cell: str) -> str:
    """Return the number in a limit such as <5, 10+, or under 2 %."""
    return "".join(re.findall(rf"[-+]?{_AMOUNT}(?:\s*%)?", cell)[:1]).replace(",", ".")


def _stored_as_text(cells: pd.Series[Any]) -> Iterator[Problem]:
    """Yield a question about a column of text in a table with typed columns if most cells are
    numbers.
    """
    numbers = readable_numbers(cells, ".")
    if numbers.nunique() <= MOST_ENCODED_LEVELS or numbers.count() < MOST_ALIKE * len(cells):
        return
    name = str(cells.name)
    yield Problem(
        "text in numbers",
        f"{name!r} contains numbers stored as text, such as {cells[numbers.first_valid_index()]!r}."
        " If they are amounts rather than codes, convert them to numbers in the file, since rare"
        " values of text are merged.",
        (name,),
        certainty="possible",
    )


def _amounts_problem(cells: pd.Series[Any], column: ColumnType, decimal: str) -> Problem:
    """Return a note about how amounts of money and numbers with a unit are parsed."""
    bare = cells.str.strip()
    bare = bare[~bare.isin(NUMBER_MARKS)]
    plain = bare[plain_digits(remove_measure(bare, column.unit), decimal)[0] != bare]
    commas = plain.str.contains(r",[0-9]{1,2}(?![0-9])")
    shown = pd.concat([plain[commas].iloc[:1], plain[~commas].iloc[:1]])
    listed = " and ".join(
        f"{cell!r} as {plain_number(float(number))}"
        for cell, number in zip(shown, column(shown, decimal))
    )
    return Problem(
        "amounts",
        f"{column.name!r} is read as numbers: {listed}.",
        (column.name,),
        len(plain),
        "certain",
    )


def _nearly_numbers(cells: pd.Series[Any], decimal: str) -> Iterator[Problem]:
    """Yield a problem if a few cells, or the notation of the numbers, prevent a column from being
    read as numbers.
    """
    numbers = readable_numbers(cells, decimal)
    bare = cells[numbers.index].str.strip()
    numbers = numbers.drop(converted_numbers(bare, decimal).index)
    cells = cells[numbers.index]
    bare = bare[numbers.index]
    wrong = numbers.isna()
    alike = parse_numbers(bare, decimal).isna() & bare.str.fullmatch(LIKE_NUMBER)
    limits = wrong & bare.str.fullmatch(DETECTION_LIMIT)
    odd = wrong & ~limits & ~bare.map(reads_missing)
    if wrong.any() and (units := unit_replacements(bare, decimal)):
        names = {unit.removeprefix("* ").casefold() for unit in units}
        known = any(names <= {*sizes} for sizes in UNIT_SIZES) or not "".join(names).isalpha()
        yield units_problem(bare, units, decimal, "likely" if known else "possible")
        amounts = replace_values(bare, units, decimal)
        others = [*_nearly_numbers(amounts, decimal)]
        yield from others or number_problems(readable_numbers(amounts, decimal))
        return
    answers = odd.any() and set(bare[odd].map(fold_text)) <= YES | NO
    if answers and numbers.dropna().isin([0, 1, *map(int, CODES_OF_ANSWERS)]).all():
        return  # a question about labels covers them
    if limits.any() and not wrong.all() and odd.mean() <= FEW_WORDS:
        yield _limits_problem(bare[limits])
        wrong &= ~limits
        if not wrong.any():
            yield from number_problems(numbers)
    texts = bare.str.replace(",", ".")
    plain = {old: new for old, new in plain_cells(bare).items() if old in {*texts[odd]}}
    words = odd.any() and texts[odd].isin(plain).all()
    few = words or not odd.any() or wrong.mean() <= FEW_WORDS
    if few and wrong.any() and not wrong.all():
        yield _words_problem(bare[wrong], plain)
        meant = {old: float(new.rstrip(" %")) for old, new in plain.items()}
        yield from number_problems(numbers.fillna(texts.map(meant)))
        return
    mostly = numbers.count() > MOST_ALIKE * len(numbers) and numbers.nunique() > LEAST_VALUES
    shown = alike if alike.mean() > MOST_ALIKE else wrong & mostly
    if shown.any():
        swapped = bool(readable_numbers(cells, "." if decimal == "," else ",").notna().all())
        yield _notation_problem(cells[shown], decimal, swapped=swapped)


def _words_problem(cells: pd.Series[Any], plain: dict[str, str]) -> Problem:
    """Return a problem about a few cells that are not numbers; `plain` contains the cells that
    stand for numbers.
    """
    name = str(cells.name)
    absent = cells[~cells.str.replace(",", ".").isin(plain)].unique().tolist()
    option = missing_option(name, absent) if absent else ""
    remedy = "treat these cells as missing"
    if plain:
        remedy = "replace them with numbers"
        option = f"{replace_option(name, plain)} {option}".strip()
        if absent:
            remedy = "replace those that mean numbers and treat the others as missing"
    if not option:
        option = drop_option(name)
        remedy = "correct these cells in the file; otherwise drop the column"
    return Problem(
        "text in numbers",
        f"{name!r} is read as text, since some cells are not numbers: {examples(cells)}. To read it"
        f" as numbers, {remedy}.",
        (name,),
        len(cells),
        option=option,
    )


def _notation_problem(cells: pd.Series[Any], decimal: str, *, swapped: bool) -> Problem:
    """Return a question about cells in another notation; `swapped` if only the decimal separator
    differs.
    """
    name = str(cells.name)
    remedy = f"write its cells as 1234{decimal}5"
    option = drop_option(name)
    if swapped:
        option = "--decimal ." if decimal == "," else "--decimal ,"
        remedy = f"pass its decimal separator ({option}) if the other columns use it too"
    return Problem(
        "text in numbers",
        f"{name!r} is read as text, though most cells look like numbers: {examples(cells)}. To read"
        f" it as numbers, {remedy}.",
        (name,),
        len(cells),
        "possible",
        option,
    )


def units_problem(
    cells: pd.Series[Any], units: dict[str, str], decimal: str, certainty: Certainty
) -> Problem:
    """Return a problem about numbers that have units or footnote marks and therefore cannot be read
    as numbers.
    """
    name = str(cells.name)
    with_unit = cells[replace_values(cells, units, decimal) != cells]
    usual = next(iter(units)).removeprefix("* ").removeprefix("\\").removesuffix(" *")
    taken = " (assumed for numbers without a unit)" if len(with_unit) < len(cells) else ""
    parts = ("units", f"write all values in {usual!r}{taken}, without the unit")
    if usual in FOOTNOTES or re.fullmatch(APPROXIMATE, usual, re.IGNORECASE):
        parts = ("marks", "remove these")
    return Problem(
        "text in numbers",
        f"{name!r} is read as text, since its numbers have {parts[0]}: {examples(with_unit)}. To"
        f" read it as numbers, {parts[1]}.",
        (name,),
        len(with_unit),
        certainty,
        replace_option(name, units),
    )


def _limits_problem(limits: pd.Series[Any]) -> Problem:
    """Return a question about cells such as <0.7 in a column of numbers."""
    name = str(limits.name)
    rows = limits.value_counts()
    shown = limits.drop_duplicates()
    counts = [f"{cell!r} ({format_count(rows[cell], 'row')})" for cell in shown]
    cells = [cell.replace(",", ".") for cell in shown]
    absent = missing_option(name, cells) or drop_option(name)
    replaced = replace_option(name, {cell: _limit(cell) for cell in cells})
    return Problem(
        "detection limit",
        f"{name!r} is read as text, since some cells contain only a bound on a number:"
        f" {', '.join(counts[:3])}{', ...' if len(counts) > 3 else ''}, first in row"
        f" {row_number(limits, 0):,}. To read it as numbers, replace these cells with numbers, such"
        f" as the bound itself or half of it, or treat them as missing ({absent}).",
        (name,),
        len(limits),
        option=replaced or absent,
    )


def are_percentages(cells: pd.Series[Any]) -> bool:
    """Return whether all cells of text are numbers, and some are percentages.

    Examples
    --------
    >>> are_percentages(pd.Series(["35%", "0.4"])), are_percentages(pd.Series(["35%", "few"]))
    (True, False)
    """
    levels = pd.Series(cells.dropna().unique(), dtype=str)
    if not levels.str.fullmatch(rf"\s*{PERCENT}\s*").any():
        return False
    return bool(readable_numbers(levels, ".").notna().all())


def readable_numbers(cells: pd.Series[Any], decimal: str) -> pd.Series[Any]:
    """Convert cells of text to numbers, leaving out markers for missing values; cells that cannot
    be read become NaN.
    """
    bare = cells.dropna().str.strip()
    bare = bare[~bare.isin(NUMBER_MARKS)]
    values = pd.Series(bare.unique(), dtype=str)
    plain = remove_measure(values, common_measure(values))
    numbers = parse_numbers(*plain_digits(plain, decimal))
    return bare.map(dict(zip(values, numbers))).astype(float)


def require_numbers(cells: pd.Series[Any], decimal: str | None, subject: str) -> None:
    """Raise an error that shows which cells of text are not numbers in the file's notation."""
    if decimal is None or not is_text(cells):
        return
    bare = cells.dropna().str.strip()
    if [*month_problems(bare)]:
        raise TypeError(
            f"{subject} contains dates, such as {bare.iloc[0]!r}; convert it to a number, such as"
            " days since a reference date."
        )
    if text := _percent_sentence(bare):
        raise TypeError(f"{subject} {text} Write all of them the same way.")
    numbers = readable_numbers(cells, decimal)
    wrong = bare[numbers.index][numbers.isna()]
    ranges = [cell for cell in wrong.unique() if len({*(band(cell) or ())}) > 1]
    wrong = wrong[~wrong.isin(ranges)]
    if len(wrong):
        raise TypeError(f"{subject} is not numeric: {examples(wrong)}. {AS_NUMBERS}")
