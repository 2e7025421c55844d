"""Name the column of each cell of a table, so that the style sheet can show rows as cards on a
phone.
"""

from __future__ import annotations

import re
from html import escape, unescape
from typing import Any

from sphinx.application import Sphinx

TABLE = re.compile(r"<table\b.*?</table>", re.DOTALL)
HEAD = re.compile(r"<thead>.*?</thead>", re.DOTALL)
HEADING = re.compile(r"<th\b[^>]*>(.*?)</th>", re.DOTALL)
ROW = re.compile(r"<tr\b.*?</tr>", re.DOTALL)
CELL = re.compile(r"<td\b")
TAG = re.compile(r"<[^>]+>")


def labelled(table: re.Match[str]) -> str:
    """Return a table whose cells have the heading of their column as an attribute."""
    head = HEAD.search(table.group())
    if head is None:
        return table.group()
    names = [unescape(TAG.sub("", text)).strip() for text in HEADING.findall(head.group())]

    def label_row(row: re.Match[str]) -> str:
        left = iter(names)

        def label(_: re.Match[str]) -> str:
            return f'<td data-label="{escape(next(left, ""))}"'

        return CELL.sub(label, row.group())

    return table.group()[: head.end()] + ROW.sub(label_row, table.group()[head.end() :])


def label_tables(
    app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: Any
) -> None:
    """Label the tables of a page."""
    if "body" in context:
        context["body"] = TABLE.sub(labelled, context["body"])


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("html-page-context", label_tables)
    return {"parallel_read_safe": True}
