"""Verdicts on the paper's claims, for README.md and docs/reproduction.md.

They are read on the pages under docs/evidence/.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from typing import NamedTuple

from rules.records import ROOT
from rules.writing import listed

VERDICTS = {  # by its sign: of one claim, of several
    "✓": ("holds", "hold"),
    "◐": ("holds in part", "hold in part"),
    "✗": ("does not hold", "do not hold"),
    "?": ("cannot be judged", "cannot be judged"),
}
KINDS = {
    "results": "claims about results",
    "reporting": "about reporting (what the paper says about its own setup and tables)",
    "theory": (
        "formulas of theorems, checked on small distributions (where uniform bounds are vacuous)"
    ),
}


def in_words(signs: list[str]) -> str:
    """Return how many verdicts there are of each kind."""
    counts = Counter(signs)
    return listed(
        [
            f"{counts[sign]} {names[counts[sign] > 1]}"
            for sign, names in VERDICTS.items()
            if counts[sign]
        ]
    )


class Claim(NamedTuple):
    """A claim as its page has it: signs of the verdict and of that by decisions (or ""), what it is
    about, and the tables and figures that it stands for.
    """

    statement: str
    page: str
    sign: str
    second: str
    kind: str
    items: tuple[str, ...]


@cache
def claims() -> dict[str, Claim]:
    """Return the claims on the pages of the studies, by name."""
    found = {}
    for path in sorted((ROOT / "docs" / "evidence").glob("*.md")):
        for name, text in re.findall(
            r'<a id="([^"]+)"></a>\n(.*?)(?=<a id=|\n## |\Z)', path.read_text("utf-8"), re.DOTALL
        ):
            sign = re.search(r"^\*\*([✓◐✗?]) ", text, re.MULTILINE)
            if sign:
                first = text.split("\n")[0]
                kind = "reporting" if first.endswith("; about reporting)") else "results"
                second = re.search(r"GDP of the decisions[^:]*: ([✓◐✗?]) ", text)
                items = re.search(r"; for ((?:(?:Table|Figure) \d+(?:, )?)+)", first)
                found[name] = Claim(
                    first.split("**")[1],
                    path.name,
                    sign[1],
                    second[1] if second else "",
                    "theory" if name.startswith("theorem-") else kind,
                    tuple(items[1].split(", ")) if items else (),
                )
    return found


def counted(kind: str) -> str:
    """Return how many claims of a kind there are, and their verdicts."""
    signs = [claim.sign for claim in claims().values() if claim.kind == kind]
    return f"of {len(signs)} {KINDS[kind]}, {in_words(signs)}"
