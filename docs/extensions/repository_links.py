"""Links and docstrings as Sphinx needs them.

A link to a program of the gallery leads to its page, and its small picture has its title as
alternative text. An anchor that a page sets by itself, ``<a id="...">``, becomes a target. Methods
that scikit-learn adds to every estimator are left out, and constants are described by their values.
"""

from __future__ import annotations

import re
from typing import Any

from sphinx.application import Sphinx

ADDED_BY_SKLEARN = re.compile(r"set_\w+_request|get_metadata_routing")
ANCHOR = re.compile(r'^<a id="([\w-]+)"></a>$', re.MULTILINE)
PROGRAM = re.compile(r"\]\(\.\./examples/(gallery/plot_\w+)\.py\)")
THUMBNAIL = re.compile(
    r":alt:\n(.*?<div class=\"sphx-glr-thumbnail-title\">(.*?)</div>)", re.DOTALL
)


def translate_links(app: Sphinx, page: str, source: list[str]) -> None:
    """Give the anchors that a page sets for any viewer to Sphinx as targets, and programs as pages
    of the gallery.
    """
    source[0] = PROGRAM.sub(r"](\1.rst)", ANCHOR.sub(r"(\1)=", source[0]))


def name_thumbnails(app: Sphinx, page: str, source: list[str]) -> None:
    """Give each picture of the gallery's first page its title as alternative text."""
    if page == "gallery/index":
        source[0] = THUMBNAIL.sub(r":alt: \2\n\1", source[0])


def skip(app: Sphinx, what: str, name: str, value: Any, skipped: bool, options: Any) -> bool | None:
    """Return whether a member is left out of the reference; None leaves it to others."""
    foreign = (getattr(value, "__module__", None) or "").startswith("sklearn.")
    return True if foreign or ADDED_BY_SKLEARN.fullmatch(name) else None


def describe_constant(
    app: Sphinx, what: str, name: str, value: Any, options: Any, lines: list[str]
) -> None:
    """Replace the words of the built-in class, which a constant would show, by the constant or its
    keys.
    """
    if what == "data" and isinstance(value, tuple | int | float):
        lines[:] = [f"Constant, ``{value!r}``.", ""]
    if what == "data" and isinstance(value, dict):
        lines[:] = [
            "Dictionary with the keys " + ", ".join(f"``{key!r}``" for key in value) + ".",
            "",
        ]


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("source-read", translate_links)
    app.connect("source-read", name_thumbnails)
    app.connect("autodoc-skip-member", skip)
    app.connect("autodoc-process-docstring", describe_constant)
    return {"parallel_read_safe": True}
