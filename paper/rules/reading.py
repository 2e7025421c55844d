"""Compare a page with the phrases of its rules."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache

from rules.writing import WORDS

NUMBER = (
    r"(?<![\w.])−?(?:\d+(?:,\d{3})*(?:\.\d+)?|\.\d+)(?:·10[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)?"
    r"|\b(?i:half an?|(?<=in )an?)(?=\s(?:second|minute|hour)\b)"
    rf"|\b(?i:a few|{'|'.join(WORDS[2:])})"
    r"(?=\s(?:\w+\s)?(?:tables|cells|comparisons|times|seconds|minutes|hours)\b)"
    r"|\[\[\w\]\]"
)
UNREAD = re.compile(
    r"^```.*?^```|^<!--.*?-->|`(?:[^`\n]|\n(?!\n))*`|<[a-z][^>]*>|\]\([^)]*\)"
    r"|\b(?:Table|Figure|Python) \d[\d.]*|\(\d{4}\)",
    re.DOTALL | re.MULTILINE,
)


def read(text: str) -> str:
    """Return a text of the same length without the digits that are not read."""
    return UNREAD.sub(lambda found: re.sub(r"\d", "#", found[0]), text)


@cache
def pattern(phrase: str, exact: bool = True) -> str:
    """Return what finds a phrase on a page that was read, with any numbers if it need not be
    exact.
    """
    parts = re.split(f"({NUMBER})", read(phrase))
    for place, part in enumerate(parts):
        literal = re.sub(r"(?:\\?\s)+", r"\\**\\s+\\**", re.escape(part))
        parts[place] = literal if exact or place % 2 == 0 else f"({NUMBER})"
    return rf"(?<!\d){''.join(parts)}(?!\d|[.,]\d)"


def compare(text: str, phrases: Iterable[str]) -> tuple[list[str], list[str], str]:
    """Return the phrases that a page lacks, its numbers that no phrase claims, and the page with
    the numbers of the phrases.
    """
    page = read(text)
    unclaimed = {found.start(): found for found in re.finditer(NUMBER, page)}
    missing = []
    for phrase in dict.fromkeys(phrases):
        places = list(re.finditer(pattern(phrase), page))
        for place in places:
            for start in range(*place.span()):
                unclaimed.pop(start, None)
        if not places:
            missing.append(phrase)
    wrong = []
    changes: list[tuple[int, int, str]] = []
    for phrase in missing:
        numbers = re.findall(NUMBER, read(phrase))
        places = [
            place
            for place in re.finditer(pattern(phrase, exact=False), page)
            if any(place.start(k + 1) in unclaimed for k in range(len(numbers)))
        ]
        if not places:
            wrong.append(f"no place for: {phrase}")
            continue
        nearest = max(places, key=lambda p: sum(a == b for a, b in zip(p.groups(), numbers)))
        wrong.append(f"{_line(nearest[0])}\n    the records give: {phrase}")
        for k, number in enumerate(numbers):
            changes.append((*nearest.span(k + 1), number))
            unclaimed.pop(nearest.start(k + 1), None)
    numbers_left = []
    for found in unclaimed.values():
        around = page[max(found.start() - 40, 0) : found.end() + 30]
        numbers_left.append(f"no rule for {found[0]}: …{_line(around)}…")
    for start, end, number in sorted(changes, reverse=True):
        text = text[:start] + number + text[end:]
    return wrong, numbers_left, text


def _line(text: str) -> str:
    return " ".join(text.split())
