"""Write numbers as the pages have them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable

WORDS = re.findall(r"\w+", "zero one two three four five six seven eight nine ten eleven twelve")


def short(value: float, digits: int) -> str:
    """Return a share without the zero before its point."""
    text = f"{value:.{digits}f}"
    return text.replace("0.", ".", 1) if abs(value) < 1 else text


def span(values: Iterable[float], digits: int) -> str:
    """Return the least and the largest of some shares."""
    some = list(values)
    return f"{short(min(some), digits)} to {short(max(some), digits)}"


def percents(shares: Iterable[float]) -> str:
    """Return the least and the largest of some shares in %."""
    some = [round(100 * share) for share in shares]
    return f"{min(some)} to {max(some)} %"


def listed(texts: list[str]) -> str:
    """Return texts as a list in prose."""
    *first, last = texts
    return f"{', '.join(first)} and {last}" if first else last


def two(value: float) -> str:
    """Return a number with two digits that count, or with all before its point."""
    return f"{value:.{max(0, 1 - math.floor(math.log10(value)))}f}"


def seconds(value: float) -> str:
    """Return a time in seconds or milliseconds."""
    return f"{two(value)} s" if value > 0.5 else f"{two(1000 * value)} ms"


def power(value: float, digits: int) -> str:
    """Return a small number times a power of ten."""
    mantissa, exponent = f"{value:.{digits}e}".split("e-")
    raised = str(int(exponent)).translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"{mantissa}·10⁻{raised}"
