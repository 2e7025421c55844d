"""Numbers that aren't what they seem: codes for missing values, outliers, and numbers too large to
use.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from frhsic.formatting import inflect
from frhsic.tables.columns import (
    LARGEST_FEATURE,
    examples,
    fold_text,
    level_text,
    mask_codes,
    row_number,
)
from frhsic.tables.problems import Certainty, Problem, missing_option, replace_option

# Numbers and words that people write for a missing value.
MISSING_NUMBERS = re.compile(r"-?(9+[678]?|8+|7+)|-1|-2|0")
_WORDS = (
    "unknown|missing|refused|invalid|undetermined|unspecified|undisclosed|don't know|no answer"
    "|no response|no data|prefer not to say|declined to say|nk|n.k.|n/k|unk|unbekannt|ungültig|k.a."
    "|k. a.|keine angabe|keine angaben|weiß nicht|inconnu|inconnue|ne sait pas|non renseigné"
    "|non précisé|non testé|desconocido|no sabe|no contesta|no especificado|desconhecido|não sabe"
)
_ASKED = (
    "known stated available applicable answered recorded reported provided given tested asked"
    " measured examined traced assessed determined collected observed specified disclosed contacted"
    " interviewed"
)
_GERMAN = "bekannt getestet erhoben gemessen befragt erfasst"
MISSING_WORDS = {
    *_WORDS.split("|"),
    *(f"not {word}" for word in _ASKED.split()),
    *(f"nicht {word}" for word in _GERMAN.split()),
}
# Names of columns with people's ages; the oldest age; and the share of rows with higher ages above
# which the column contains other ages, such as ages of houses or ages in months.
NAMED_AGE = re.compile(
    r"(.*[^a-zA-Z])?(?i:ages?|alter|edad|âge|idade|leeftijd)([^a-zA-Z].*)?|.*[a-z]Age([^a-z].*)?"
)
OLDEST = 120
MOST_IMPOSSIBLE = 0.1
# Ages of a few children that may be mistakes if all others are adults.
OLDEST_CHILD = 14
YOUNGEST_ADULT = 16
MOST_YOUNG = 0.01
# Most distinct values of a column of numbers that is searched only for clear codes; how many of the
# nearest other values a code is compared with; how many times farther it is from them than they are
# from each other, and how many times farther outliers are from the median than the next value; the
# largest share of rows with outliers, unless these have only a few values; and how many outliers
# are shown.
LEAST_VALUES = 10
NEIGHBOURS = 11
FAR_CODE = 3
FAR_OUTLIER = 10
MOST_OUTLYING = 0.005
SHOWN_VALUES = 5
LEAST_CODED_ROWS = 3
# Range of years of births and events, centuries of two-digit years, and the largest share of
# two-digit years in a column.
YEARS = (1900, 2100)
YEARS_BEGIN = (1900, 2000)
MOST_SHORT_YEARS = 0.5
# Codes that can't be a rank or a count, searched for among few numbers and among words.
CLEAR_CODE = re.compile(r"-(9+|8+|7+)|99+|88+|77+")
MOST_CODES = 3
# Codes that may be among the other values, if they occur in ten rows and ten times as often as any
# of the nearest values. Two-digit codes are only possible problems.
HEAPED_CODE = re.compile("-?(99+|88+|77+)")
LEAST_HEAPED = 10
# Units of measurement, except single letters, which may be anything; names of columns with units;
# most units in a column, and the smallest factor by which the medians of their numbers differ.
UNIT = re.compile(
    r"kg|mg|lbs?|oz|[ckm]m|in|inch(es)?|ft|miles?|\u00b0[cf]|celsius|fahrenheit|[mnp]?g/[dm]?l"
    r"|[mnu\u00b5\u03bc]mol/l|kpa|mmhg|kj|kcal|(hour|day|week|month|year)s?|(hour|week|month|year)ly"
    r"|annual|usd|eur|gbp|chf|jpy|inr|cny|[$\u20ac\u00a3]"
)
NAMED_UNITS = re.compile("(?i)(?<![a-z])(units?|uom|einheit)(?![a-z])|(?<=[a-z])Units?$")
MOST_UNITS = 6
LEAST_FACTOR = 1.8
# Codes if all other values are positive; a scale such as 0, 1, 2 may begin with them.
UNCLEAR_CODES = ("-1", "-2")
MOST_ZEROS = 0.1
# Smallest share of the median at which the other values begin if 0 may be a code.
LEAST_START = 0.2


def reads_missing(level: object) -> bool:
    """Return whether a level looks like a code for a missing value.

    Examples
    --------
    >>> (
    ...     reads_missing("Unknown/Refused"),
    ...     reads_missing("(invalid)"),
    ...     reads_missing("unknown soldier"),
    ... )
    (True, True, False)
    """
    text = fold_text(level).strip("()[]<>*?")
    if text in MISSING_WORDS:
        return True
    return all(part.strip() in MISSING_WORDS for part in re.split("/| or ", text))


def is_code(level: str) -> bool:
    """Return whether text is a word or a number that people write for a missing value."""
    return reads_missing(level) or CLEAR_CODE.fullmatch(level.strip()) is not None


def number_problems(column: pd.Series[Any]) -> Iterator[Problem]:
    """Yield values in a column of numbers that are far from all others, as codes for missing values
    if they repeat, otherwise as outliers; and numbers in a column of ages that can't be ages.

    A code occurs much more often than the nearest values (9999); or it is the smallest or largest
    value, occurs in at least three rows, is three times as far from the next value as the nearby
    values are from each other, and also looks like a code (-9, 99, -1, 0) or is farther away than
    the whole range of the other values. Outliers are ten times as far from the median as the next
    value; if there are more than three different ones, they are in at most one row in 200.
    """
    short = [*_short_year_problems(column)]
    if short:
        yield from short
        return
    while far := [*_far_problems(column)]:  # an outlier hides codes that are less extreme
        yield from far
        column = mask_codes(column, [value for problem in far for value in problem.values])
    yield from _heaped_problems(column)
    if NAMED_AGE.fullmatch(str(column.name)):
        yield from _age_problems(column)


def _age_problems(ages: pd.Series[Any]) -> Iterator[Problem]:
    """Yield numbers that can't be people's ages, and a question about a few children among
    adults.
    """
    name = str(ages.name)
    plausible = ages.between(0, OLDEST)
    young = ages[plausible & (ages < OLDEST_CHILD)]
    others = ages[plausible & (ages >= OLDEST_CHILD)]
    if not others.min() >= YOUNGEST_ADULT:
        young = others.iloc[:0]
    reasons: tuple[tuple[Any, float, str, Certainty], ...] = (
        (ages[~plausible & ages.notna()], MOST_IMPOSSIBLE, "can't be a person's age", "likely"),
        (young, MOST_YOUNG, "may be a mistake, since all other people are adults", "possible"),
    )
    for odd, most, reason, certainty in reasons:
        if not 0 < len(odd) <= most * ages.count():
            continue
        values = odd.unique().tolist()
        codes = tuple(map(level_text, map(float, values)))
        yield Problem(
            "impossible age",
            f"{', '.join(map(plain_number, values[:3]))}{', ...' if len(values) > 3 else ''} in"
            f" {name!r} (first in row {row_number(odd, 0):,}) {reason}."
            f" {inflect('Correct [it|them], or treat [it|them] as missing.', len(codes))}",
            (name,),
            len(odd),
            certainty,
            missing_option(name, codes),
            codes,
        )


def _short_year_problems(column: pd.Series[Any]) -> Iterator[Problem]:
    """Yield two-digit years among four-digit years, if all of them are in the same decades."""
    present = column.dropna().astype(float)
    short = present[(present >= 0) & (present < 100)]
    long = present.drop(short.index)
    if not 0 < len(short) <= MOST_SHORT_YEARS * len(present) or (present % 1 != 0).any():
        return
    if long.min() < YEARS[0] or long.max() > YEARS[1] or short.nunique() < LEAST_CODED_ROWS:
        return
    near = [
        (short + century).between(long.min() - LEAST_VALUES, long.max() + LEAST_VALUES)
        for century in YEARS_BEGIN
    ]
    if not np.any(near, axis=0).all():
        return
    name = str(column.name)
    clear = not np.all(near, axis=0).any()
    full = {
        level_text(year): level_text(year + YEARS_BEGIN[0 if first else 1])
        for year, first in sorted({*zip(short.tolist(), near[0].tolist())})
    }
    yield Problem(
        "short years",
        f"{name!r} contains years, {len(short):,} of which {inflect('[has|have]', len(short))} two"
        " digits"
        f" ({', '.join(map(plain_number, short.unique()[:3]))}, first in row"
        f" {row_number(short, 0):,}). Write all years with four digits, or don't use the column.",
        (name,),
        len(short),
        option=replace_option(name, full) if clear else "",
        values=tuple(full),
    )


def _far_problems(column: pd.Series[Any]) -> Iterator[Problem]:
    name = str(column.name)
    present = column.dropna()
    values, counts = np.unique(present.to_numpy(dtype=np.float64), return_counts=True)
    if len(values) <= LEAST_VALUES:
        yield from _codes_among_few(name, values, counts)
        return
    middle = float(np.median(present))
    for sign in (1, -1):
        ends, rows = (values, counts) if sign == 1 else (-values[::-1], counts[::-1])
        number = _far_values(ends, rows, sign * middle, sign)
        if not number:
            continue
        far = sign * ends[:number]
        total = int(rows[:number].sum())
        shown = [*map(plain_number, far[:SHOWN_VALUES]), *["..."] * (number > SHOWN_VALUES)]
        occurs = _occurs_phrase(name, shown, total)
        next_value = plain_number(sign * ends[number])
        kind = "missing code"
        text = f"{occurs} (nearest other value: {next_value}). {_if_missing(number)}"
        if (rows[:number] < LEAST_CODED_ROWS).any():
            kind = "outlier"
            first = row_number(present[present.isin(far)], 0)
            remedy = "If [it is a mistake|they are mistakes], correct [it|them] or treat [it|them]"
            text = (
                f"{occurs} (first in row {first:,}) and {inflect('[is|are]', number)} far from the"
                f" nearest other value, {next_value}. {inflect(remedy, number)} as missing."
            )
        codes = tuple(level_text(float(value)) for value in far)
        outlying = _are_outlying(ends[number - 1], ends[number], sign * middle)
        named = outlying or all(map(MISSING_NUMBERS.fullmatch, codes))
        certainty: Certainty = "likely" if named else "possible"
        option = missing_option(name, codes)
        yield Problem(kind, text, (name,), total, certainty, option, codes)


def _heaped_problems(column: pd.Series[Any]) -> Iterator[Problem]:
    """Yield codes such as 9999 that occur much more often than the values around them. One-digit
    codes such as -9 must also be below all other values, and farther from the nearest values than
    these are from each other.
    """
    values, counts = np.unique(column.dropna().to_numpy(dtype=np.float64), return_counts=True)
    if len(values) <= LEAST_VALUES:
        return
    for place in np.flatnonzero(counts >= LEAST_HEAPED):
        code = level_text(float(values[place]))
        below = place == 0 and values[1] - values[0] >= np.ptp(values[1 : NEIGHBOURS + 1])
        digit = below and code.startswith("-") and CLEAR_CODE.fullmatch(code)
        if not (digit or HEAPED_CODE.fullmatch(code)):
            continue
        nearest = np.argsort(np.abs(values - values[place]), kind="stable")[1 : NEIGHBOURS + 1]
        if counts[place] < LEAST_HEAPED * counts[nearest].max():
            continue
        problem = code_problem(str(column.name), [code], int(counts[place]))
        sure = digit or abs(values[place]) > 99
        yield problem if sure else replace(problem, certainty="possible")


def _codes_among_few(name: str, values: np.ndarray, counts: np.ndarray) -> Iterator[Problem]:
    """Yield codes for missing values in columns with few distinct numbers, such as 99 next to
    values from 1 to 5.
    """
    texts = list(map(level_text, values.tolist()))
    codes = [text for text in texts if CLEAR_CODE.fullmatch(text) or text in UNCLEAR_CODES]
    rest = [value for value, text in zip(values, texts) if text not in codes]
    far = [
        code
        for code in codes
        if rest
        and (
            (float(code) < 0 <= rest[0] and (code not in UNCLEAR_CODES or rest[0] > 0))
            or float(code) > 5 * rest[-1]
        )
    ]
    if far and len(rest) > 1:
        yield code_problem(name, far, int(counts[[text in far for text in texts]].sum()))


def code_problem(name: str, codes: Sequence[str], rows: int) -> Problem:
    """Return a problem about codes, without mentioning neighboring values."""
    shown = [code.replace("-", "−") for code in codes]
    return Problem(
        "missing code",
        f"{_occurs_phrase(name, shown, rows)}. {_if_missing(len(codes))}",
        (name,),
        rows,
        option=missing_option(name, codes),
        values=tuple(codes),
    )


def _occurs_phrase(name: str, values: Sequence[str], rows: int) -> str:
    occur = inflect("[occurs|occur]", len(values))
    return f"{', '.join(values)} {occur} {inflect(f'[once|{rows:,} times]', rows)} in {name!r}"


def _if_missing(codes: int) -> str:
    return inflect("If [it means|they mean] missing, treat [it|them] as missing.", codes)


def plain_number(value: float) -> str:
    return f"{value:,.10g}".replace("-", "−")


def _far_values(values: np.ndarray, rows: np.ndarray, middle: float, sign: int) -> int:
    """Return how many of the smallest values are codes or outliers; `sign` is -1 if the values were
    negated.
    """
    shares = np.cumsum(rows) / rows.sum()
    several = min(int(np.searchsorted(shares, MOST_OUTLYING)), len(values) - LEAST_VALUES)
    for number in range(1, max(several, MOST_CODES) + 1):
        head = values[:number]
        rest = values[number:]
        share = shares[number - 1]
        gap = rest[0] - head[-1]
        named = all(MISSING_NUMBERS.fullmatch(level_text(sign * value)) for value in head.tolist())
        nearby = np.diff(rest[:NEIGHBOURS]).max()
        apart = gap >= FAR_CODE * nearby and (named or gap >= np.ptp(rest))
        negative = named and sign == 1 and head[-1] < 0 <= rest[0]
        if (rows[:number] >= LEAST_CODED_ROWS).all() and number <= MOST_CODES:
            # many columns are zero in most rows, and amounts start near zero
            usual = 0 in head and (share > MOST_ZEROS or abs(rest[0]) < LEAST_START * abs(middle))
            if (apart or negative) and not usual:
                return number
        elif _are_outlying(head[-1], rest[0], middle):
            return number
    return 0


def _are_outlying(value: float, following: float, middle: float) -> bool:
    return following < middle and middle - value >= FAR_OUTLIER * (middle - following)


def unit_problems(table: pd.DataFrame) -> Iterator[Problem]:
    """Yield a question about numbers whose size depends on another column, which contains units.

    Examples
    --------
    >>> unit = np.array(["kg", "lb"]).repeat(50)
    >>> weight = np.where(unit == "kg", 1, 2.2) * np.linspace(50, 90, 100)
    >>> [problem.text for problem in unit_problems(pd.DataFrame({"weight": weight, "unit": unit}))]
    ["The median of 'weight' is 59.9 where 'unit' is 'kg' and 176 where it is 'lb'. ..."]
    """
    amounts = table.select_dtypes("number")
    for unit in map(str, table.columns.difference(amounts.columns, sort=False)):
        labels = table[unit].map(fold_text, na_action="ignore")
        if not 1 < labels.nunique() <= MOST_UNITS:
            continue
        subject = NAMED_UNITS.sub("", unit).strip(" _-.").casefold()
        own = [name for name in map(str, amounts) if subject and name.casefold() == subject]
        if not own and not all(map(UNIT.fullmatch, labels.dropna().unique())):
            continue
        for name in own or map(str, amounts):
            column = amounts[name].astype(float)
            if column.nunique() <= LEAST_VALUES:
                continue
            known = column.notna() & labels.notna()
            groups = column[known].groupby(table[unit][known].astype(str))
            medians = groups.median()[groups.size() >= LEAST_HEAPED].sort_values()
            if len(medians) < 2 or not 0 < LEAST_FACTOR * medians.iloc[0] <= medians.iloc[-1]:
                continue
            shown = [f"{plain_number(float(f'{value:.3g}'))}" for value in medians]
            parts = f"{shown[0]} where {unit!r} is {medians.index[0]!r}"
            last = f"{shown[-1]} where it is {medians.index[-1]!r}"
            yield Problem(
                "units",
                f"The median of {name!r} is {parts} and {last}. If these are units, convert the"
                f" numbers to one of them in the file, or keep {unit!r} as a feature.",
                (name, unit),
                certainty="possible",
            )


def clipped_problems(features: pd.DataFrame) -> Iterator[Problem]:
    """Yield columns of numbers that are too large to be used unchanged."""
    for name, column in features.select_dtypes("number").items():
        large = column.abs() > LARGEST_FEATURE
        if large.any():
            yield Problem(
                "too large",
                f"{str(name)!r} contains numbers beyond {LARGEST_FEATURE:g}, which are clipped:"
                f" {examples(column[large])}.",
                (str(name),),
                int(large.sum()),
                "certain",
            )
