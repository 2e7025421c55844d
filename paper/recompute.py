"""Compute every measured number of the pages again, by code of its own, and compare.

Uses pandas, NumPy and PyArrow alone: nothing of frhsic, frhsic_paper or benchmarks/ is imported.

    python paper/recompute.py            # prints what differs; exit code 1 if anything does
    python paper/recompute.py --write    # puts the numbers of the records into the pages

A rule is a phrase of a page as the records give it, and claims the numbers in it. Each page has a
module in rules/. A phrase that does not stand on its page and a number that no phrase claims are
printed. A number is written in digits, as a word before "tables", "cells", "comparisons", "times"
or a unit of time, or as [[N]] where it is to be filled in. Not read are code, link targets,
comments, numbers of tables and figures, years in brackets, and digits that follow a letter
(AIF360). Settings, formulas and quotations are in `GIVEN` of a page: no measurement gives them. Of
the files in `PARTS`, only the phrases are compared.

The rules that decide claims are not repeated here: counts of verdicts come from the pages under
docs/evidence/.
"""

from __future__ import annotations

import sys

from rules import bounds, index, methods, readme, representations, reproduction, serve, speed
from rules.reading import compare
from rules.records import ROOT

PAGES = {
    "README.md": readme,
    "docs/index.md": index,
    "docs/methods.md": methods,
    "docs/representations.md": representations,
    "docs/serve.md": serve,
    "docs/speed.md": speed,
    "docs/reproduction.md": reproduction,
}
PARTS = {
    "docs/choosing.md": bounds.phrases,
    "src/frhsic/estimators/frontier.py": bounds.docstring,
    "src/frhsic/estimators/encoder.py": representations.docstring,
}


def differences(page: str, write: bool = False) -> list[str]:
    """Return what differs between a page and the records."""
    path = ROOT / page
    text = path.read_text(encoding="utf-8")
    rules = PAGES.get(page)
    if rules is None:
        wrong, _, corrected = compare(text, PARTS[page]())
    else:
        phrases = [*rules.phrases(), *rules.GIVEN]
        missing, unclaimed, corrected = compare(text, phrases)
        wrong = missing + unclaimed
    if write and rules is not reproduction:  # which `frhsic reproduce --docs` writes
        path.write_text(corrected, encoding="utf-8")
    return [f"{page}: {line}" for line in wrong]


def main() -> int:
    """Print what differs."""
    write = "--write" in sys.argv[1:]
    wrong = [line for page in [*PAGES, *PARTS] for line in differences(page, write)]
    wrong += reproduction.file_counts(ROOT / "docs" / "evidence")
    print(
        "\n".join(wrong)
        or f"every number of {', '.join([*PAGES, *PARTS])} follows from the records"
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
