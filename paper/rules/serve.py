"""Numbers of docs/serve.md."""

from __future__ import annotations

from collections.abc import Iterable

GIVEN = ("2·10⁻⁶", "(n, 1)")


def phrases() -> Iterable[str]:
    """Return nothing: the page has no measured numbers."""
    return ()
