"""One self-contained HTML page from a :class:`~frhsic.report.model.Report`."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from frhsic import formatting, sentences
from frhsic._files import write_whole
from frhsic.auditing import Audit, Number
from frhsic.report.driving import driver_sentence, shift_sentence
from frhsic.report.first_page import first_page
from frhsic.report.glossary import GLOSSARY
from frhsic.report.model import Report
from frhsic.report.quality import GAPS, LOSSES, MEASURES, tradeoff_rows, tradeoff_sentence

INCOMPARABLE = frozenset({"mutual_information"})
"""Numbers whose estimates for two models cannot be compared, which a comparison leaves out."""
SCRIPTS = ("chart.js", "figures.js", "tables.js", "page.js")


def render(report: Report | Audit) -> str:
    """Return the page as text. Styles, scripts and data are inside it; it refers to no other host.

    Every text is escaped, the data is JSON with ``<``, ``>`` and ``&`` escaped, and the content policy of the page
    admits no script but its own.
    """
    if isinstance(report, Audit):
        report = Report(report)
    style = _asset("report.css")
    script = "\n".join(_asset(name) for name in SCRIPTS)
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True, finalize=unbroken
    )
    environment.filters |= {
        name: getattr(formatting, name)
        for name in ("figure", "plain", "percent", "stated", "probability", "upper_figure")
    }
    environment.filters["count"] = lambda n: f"{n:,.0f}"
    environment.filters["rows"] = lambda n: formatting.counted(n, "row")
    page = environment.from_string(_asset("report.html.j2")).render(
        report=report,
        audit=report.audit,
        style=style,
        script=script,
        policy=_policy(style, script),
        data=_embeddable(report),
        compared=_compared(report),
        first=first_page(report),
        glossary=GLOSSARY,
        driver_sentence=driver_sentence,
        shift_sentence=shift_sentence,
        tradeoff_rows=tradeoff_rows,
        tradeoff_sentence=tradeoff_sentence,
        axes=_axes(report),
        words=sentences,
    )
    return page.lstrip().encode(errors="replace").decode()  # a file name need not be UTF-8


def write(report: Report | Audit, path: str | os.PathLike[str]) -> Path:
    """Write the page to `path`, completely or not at all, and return the path."""
    target = Path(path)
    text = render(report)
    if not target.parent.is_dir():
        raise ValueError(f"the folder {str(target.parent)!r} is not there; make it first or choose another path.")
    write_whole(target, text.encode())
    return target


def unbroken(value: Any) -> Any:
    """Return a text in which no line breaks between a number and its unit or power of ten."""
    return re.sub(r"(?<=\d) (?=%)|(?<=\d) (?=× 10)|(?<=×) (?=10)", "\u00a0", value) if type(value) is str else value


def _axes(report: Report) -> tuple[str, str, bool]:
    """Return the names of the gap and of the measure of a trade-off, and whether less of the measure is better."""
    if report.tradeoff is None:
        return "", "", False
    aim, measure = report.tradeoff.aim, report.tradeoff.measure
    return formatting.capitalized(GAPS[aim]), formatting.capitalized(MEASURES[measure]), measure in LOSSES


def _compared(report: Report) -> list[tuple[str, list[tuple[Number | None, Number]], str]]:
    """Return pairs of numbers (before, after) for each attribute that both audits hold, and where they disagree."""
    if report.before is None:
        return []
    before = {attribute.name: attribute for attribute in report.before.attributes}
    tables = []
    for attribute in report.audit.attributes:
        if attribute.name in before:
            old = {number.key: number for number in before[attribute.name].all_rows.numbers}
            pairs = [(old.get(new.key), new) for new in attribute.all_rows.numbers if new.key not in INCOMPARABLE]
            tables.append((attribute.name, pairs, disagreement(pairs)))
    return tables


def disagreement(pairs: Sequence[tuple[Number | None, Number]]) -> str:
    """Return why measures moved another way than GDP did, or an empty text if all moved alike."""
    changes = {new.key: (new, new.value - old.value) for old, new in pairs if old is not None}
    if "gdp" not in changes:
        return ""
    gap = changes["gdp"][1]
    other = [number.label for number, change in changes.values() if change * gap < 0]
    if not other:
        return ""
    return (
        f"GDP {'fell' if gap < 0 else 'rose'}, and {'this measure' if len(other) == 1 else 'these measures'} moved the "
        f"other way: {'; '.join(other)}. GDP looks at mean scores in units of the score. The others look at all of the "
        "distribution, at the whole representation, or relative to its spread; a gap that shrinks because all scores "
        "shrink lowers GDP and not them."
    )


def _embeddable(report: Report) -> Markup:
    """Return JSON that can neither end its script element nor open a comment there."""
    text = json.dumps(report.to_dict(), allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)


def _asset(name: str) -> str:
    return resources.files("frhsic.report").joinpath("assets", name).read_text(encoding="utf-8")


def _policy(style: str, script: str) -> str:
    """Return the content policy: the page may run its one script and style, and fetch nothing."""
    own = f"style-src '{_digest(style)}'; script-src '{_digest(script)}'"
    return f"default-src 'none'; {own}; base-uri 'none'; form-action 'none'"


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
