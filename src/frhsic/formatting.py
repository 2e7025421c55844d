"""Format numbers and hints consistently for sentences, tables, messages and reports."""

from __future__ import annotations

import difflib
import math
import re
import unicodedata
from collections.abc import Iterable, Sequence

# Maximum number of names listed in a hint or a sentence.
SHOWN = 30


def figure(value: float | None, digits: int = 3) -> str:
    """Format an estimate with three significant digits and a true minus sign; very large or small
    numbers get a power of ten.

    Examples
    --------
    >>> (
    ...     figure(0.08123),
    ...     figure(0.83),
    ...     figure(-12345.6),
    ...     figure(0.0000123),
    ...     figure(9.996e-6),
    ...     figure(999.9),
    ...     figure(None),
    ... )
    ('0.0812', '0.830', '−12,346', '1.23 × 10⁻⁵', '1 × 10⁻⁵', '1,000', '–')
    """
    if value is None:
        return "–"
    if value == 0:
        return "0"
    size = abs(value)
    sign = "−" if value < 0 else ""
    if size >= 1e6 or size < 1e-4:
        exponent = math.floor(math.log10(size))
        mantissa = float(f"{size / 10.0**exponent:.{digits}g}")
        if mantissa >= 10:
            mantissa /= 10
            exponent += 1
        raised = str(exponent).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
        return f"{sign}{mantissa:g} × 10{raised}"
    if float(f"{size:.{digits}g}") >= 10**digits:
        return f"{sign}{size:,.0f}"
    return f"{sign}{size:#.{digits}g}".removesuffix(".")


def amount(value: float | None, digits: int = 3) -> str:
    """Format an estimate as :func:`figure`, but write numbers from a million to a billion in full,
    rounded to four significant digits.

    Examples
    --------
    >>> amount(3148200.0), amount(-999_999_000.0), amount(3e9), amount(0.0812)
    ('3,148,000', '−1,000,000,000', '3 × 10⁹', '0.0812')
    """
    if value is None or not 1e6 <= abs(value) < 1e9:
        return figure(value, digits)
    return f"{float(f'{value:.{max(digits, 4)}g}'):,.0f}".replace("-", "−")


def format_estimate(value: float, limit: float | None = None) -> str:
    """Format an estimate with two significant digits (four from a million), or with more if they
    are needed to show on which side of a limit the estimate is.

    Examples
    --------
    >>> (
    ...     format_estimate(0.0366),
    ...     format_estimate(0.0496, 0.05),
    ...     format_estimate(0.05004, 0.05),
    ...     format_estimate(623.4),
    ...     format_estimate(3148200.0, 3150000.0),
    ... )
    ('0.037', '0.0496', '0.05004', '623', '3,148,000')
    """
    digits = 4 if abs(value) >= 1e6 else 2
    if limit is not None and value != limit:
        while digits < 9 and (float(f"{value:.{digits}g}") - limit) * (value - limit) <= 0:
            digits += 1
    return amount(value, digits)


def format_setting(value: float) -> str:
    """Format a number that was chosen rather than estimated, without trailing zeros.

    Examples
    --------
    >>> format_setting(30.0), format_setting(0.3), format_setting(7.25), format_setting(1e-6)
    ('30', '0.3', '7.25', '1 × 10⁻⁶')
    """
    text = figure(value)
    if "." not in text or "×" in text:
        return text
    return text.rstrip("0").removesuffix(".")


def format_value(value: float) -> str:
    """Format a value of an attribute as :func:`format_setting`, or as :func:`amount` from a
    million.

    Examples
    --------
    >>> format_value(30.0), format_value(1250000.0)
    ('30', '1,250,000')
    """
    return amount(value) if abs(value) >= 1e6 else format_setting(value)


def format_exact(value: float) -> str:
    """Format a number that a user entered, such as a limit, with all of its digits.

    Examples
    --------
    >>> format_exact(0.05), format_exact(0.01234), format_exact(2500000.0)
    ('0.05', '0.01234', '2,500,000')
    """
    return format_value(value) if float(f"{value:.3g}") == value else f"{value:,.10g}"


def format_difference(value: float) -> str:
    """Format a difference with two significant digits and its sign.

    Examples
    --------
    >>> format_difference(0.0634), format_difference(-0.5), format_difference(1234.0)
    ('+0.063', '−0.50', '+1,200')
    """
    rounded = float(f"{value:.2g}")
    decimals = 0
    if 0 < abs(rounded) < 10:
        decimals = 1 - math.floor(math.log10(abs(rounded)) + 1e-12)
    return f"{rounded:+,.{decimals}f}".replace("-", "−")


def points(share: float) -> str:
    """Format a difference between shares in percentage points, with its sign; a difference that
    would be rounded to 0 gets two significant digits.

    Examples
    --------
    >>> points(-0.0243), points(-0.00033), points(0.0)
    ('−2.4', '−0.033', '0')
    """
    if abs(share) < 0.0005:
        return format_difference(100 * share) if share else "0"
    return f"{100 * share:+.1f}".replace("-", "−")


def format_interval(value: float, low: float, high: float) -> str:
    """Format an estimate together with its interval.

    Examples
    --------
    >>> format_interval(0.05, 0, 0.123)
    '0.0500 (0 to 0.123)'
    """
    return f"{amount(value)} ({amount(low)} to {amount(high)})"


def chance(pvalue: float) -> str:
    """Format a p-value with a sign such as = or <, so that it can follow the letter p.

    Examples
    --------
    >>> chance(0.0002), chance(0.04), chance(1.0)
    ('< 0.001', '= 0.040', '= 1.000')
    """
    return "< 0.001" if pvalue < 0.001 else f"= {pvalue:.3f}"


def percent(value: float) -> str:
    """Format a share in percent, with three significant digits as in :func:`figure`, but without
    trailing zeros.

    Examples
    --------
    >>> percent(0.95), percent(0.01234), percent(0.8524)
    ('95 %', '1.23 %', '85.2 %')
    """
    return f"{format_setting(100 * float(f'{value:.3g}'))} %"


def inflect(text: str, count: int) -> str:
    """Choose words in a text according to a count: of ``[is|are]``, the first if the count is one,
    otherwise the second.

    Examples
    --------
    >>> inflect("[it is|they are]", 1), inflect("drop [it|them]", 2)
    ('it is', 'drop them')
    """
    return re.sub(r"\[(.*?)\|(.*?)\]", r"\1" if count == 1 else r"\2", text)


def format_count(count: float, noun: str) -> str:
    """Return a count with its noun.

    Examples
    --------
    >>> format_count(1, "row"), format_count(1200, "row")
    ('1 row', '1,200 rows')
    """
    return f"{count:,.0f} {noun}{'' if round(count) == 1 else 's'}"


def rows_needed_phrase(rows: int, noun: str = "rows") -> str:
    """Return a phrase that states, to two digits, how many rows would show that a limit is met.

    Examples
    --------
    >>> rows_needed_phrase(12_345)
    'about 13,000 rows in total would settle it'
    """
    unit = 10 ** max(len(str(rows)) - 2, 0)
    return f"about {-(-rows // unit) * unit:,} {noun} in total would settle it"


def features_sentence(names: Sequence[str]) -> str:
    """Return a sentence that lists the features.

    Examples
    --------
    >>> features_sentence(["hours", "town"])
    'Features (2): hours, town.'
    """
    more = f", and {len(names) - SHOWN:,} more" if len(names) > SHOWN else ""
    return f"Features ({len(names):,}): {', '.join(names[:SHOWN])}{more}."


def capitalize(text: str) -> str:
    """Return the text with its first letter in upper case and the rest unchanged."""
    return text[:1].upper() + text[1:]


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """Return a hint for an error message: the closest known name, or one that starts with the given
    name, or else all known names. Case is ignored.

    Examples
    --------
    >>> did_you_mean("Ages", ["age", "hours"]), did_you_mean("Age", ["hours", "age_in_years"])
    (" Did you mean 'age'?", " Did you mean 'age_in_years'?")
    >>> did_you_mean("z", ["age", "hours"])
    ' Available: age, hours.'
    """
    known = list(names)
    lowered = {option.strip().lower(): option for option in reversed(known)}
    asked = name.strip().lower()
    near = difflib.get_close_matches(asked, lowered, n=1) or [
        option for option in lowered if len(asked) > 1 and option.startswith(asked)
    ]
    if near:
        return f" Did you mean {lowered[near[0]]!r}?"
    return f" Available: {', '.join(known[:SHOWN])}{', ...' if len(known) > SHOWN else ''}."


def printable(text: str, most: int | None = None) -> str:
    r"""Return a text that is safe to show on a terminal: control characters and invalid characters
    become �, and the text is truncated to `most` characters.

    Column names come from files, and an escape sequence in a name could rewrite the screen.

    Examples
    --------
    >>> printable("a\x1b[2Jb")
    'a�[2Jb'
    """
    clean = "".join(character if _is_shown(character) else "�" for character in text[:most])
    if len(clean) == len(text):
        return clean
    return f"{clean}… ({len(text):,} characters)"


def _is_shown(character: str) -> bool:
    # LRE to PDF and LRI to PDI change the direction of the text after them
    reordering = "\u202a" <= character <= "\u202e" or "\u2066" <= character <= "\u2069"
    return character in "\n\t" or (
        unicodedata.category(character) not in ("Cc", "Cs") and not reordering
    )
