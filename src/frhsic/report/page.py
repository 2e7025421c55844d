"""One self-contained HTML page from a :class:`~frhsic.report.model.Report`."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
from importlib import resources
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup, escape

from frhsic._files import require_writable, write_whole
from frhsic.auditing import Audit, Context
from frhsic.report import costs, equals, first_page, people, words
from frhsic.report.model import Report

SCRIPTS = ("tables.js", "page.js")


def render(report: Report | Audit) -> str:
    """Return the page as text. Styles, scripts and data are embedded, and nothing is loaded from
    other hosts.

    All text is escaped, the data is JSON with ``<``, ``>`` and ``&`` escaped, and the content
    security policy allows only the page's own script.

    Examples
    --------
    >>> import numpy as np
    >>> from frhsic import audit
    >>> from frhsic.auditing import Settings
    >>> age = np.repeat(np.arange(20.0, 60.0), 10)
    >>> page = render(audit(age / 50, age, settings=Settings(fast=True)))
    >>> page[:15], "gap" in page
    ('<!DOCTYPE html>', True)
    """
    if isinstance(report, Audit):
        report = Report(report)
    if not isinstance(report, Report):
        raise TypeError(
            f"report is {type(report).__name__}; pass the result of frhsic.audit or trained_report."
        )
    style = _asset("report.css")
    script = "\n".join(_asset(name) for name in SCRIPTS)
    environment = jinja2.Environment(
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=keep_together,
    )
    environment.filters |= words.FORMS | {
        "breakable": breakable,
        "remove_options": words.remove_options,
    }
    audit = report.audit
    texts = {name: words.WORDS[name] for name in ("page", "curves", "notes", "glossary")}
    absent = []
    if len(audit.attributes) == 1:
        absent.append("Not every combination")
    if all(attribute.all_rows.get("hsic") is None for attribute in audit.attributes):
        absent += ["HSIC", "Kernel"]
    for part in ("notes", "glossary"):
        texts[part] = {
            heading: text
            for heading, text in texts[part].items()
            if not any(name in heading for name in absent)
        }
    page = environment.from_string(_asset("report.html.j2")).render(
        report=report,
        audit=audit,
        verdict=first_page.verdict(report),
        origin=Context().stamped().origin | audit.context.origin,
        style=style,
        script=script,
        # the page may use only its own script and style, and may not fetch anything
        policy=f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}';"
        " base-uri 'none'; form-action 'none'",
        data=_embeddable(report),
        costs=costs,
        first=first_page,
        equals=equals,
        people=people,
        words=words,
        **texts,
    )
    return page.lstrip().encode(errors="replace").decode()  # a file name might not be valid UTF-8


def write(report: Report | Audit, path: str | os.PathLike[str]) -> Path:
    """Write a report to `path`, completely or not at all, and return the path.

    To get a PDF, print the page from a browser; its first screen fits on one sheet of A4.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from frhsic import audit
    >>> from frhsic.auditing import Settings
    >>> age = np.repeat(np.arange(20.0, 60.0), 10)
    >>> result = audit(age / 50, age, settings=Settings(fast=True))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write(result, f"{folder}/report.html").name
    'report.html'
    """
    target = Path(path)
    require_writable({"report": target})
    write_whole(target, render(report).encode())
    return target


def keep_together(value: Any) -> Any:
    """Return text with nonbreaking spaces between numbers and their units or powers of ten, and
    within short ranges in parentheses.
    """
    if type(value) is not str:
        return value
    text = re.sub(r"(?<=\d) (?=%)|(?<=\d) (?=× 10)|(?<=×) (?=10)", "\u00a0", value)
    return re.sub(r"\(\S{1,8} to \S{1,8}\)", lambda range_: range_[0].replace(" ", "\u00a0"), text)


def breakable(text: str) -> Markup:
    """Return text for a narrow column, which may break only before a power of ten."""
    return Markup(escape(keep_together(text).replace("×\u00a0", "× ")))


def _embeddable(report: Report) -> Markup:
    """Return JSON that can neither close its script element nor start a comment in it."""
    text = json.dumps(report.to_dict(), allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)


def _asset(name: str) -> str:
    return resources.files("frhsic.report").joinpath("assets", name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
