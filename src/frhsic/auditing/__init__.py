"""Audits: what a score or a representation reveals about a continuous sensitive attribute. The code
that computes an audit is imported on first use; reading a saved audit does not need it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from frhsic._lazy import lazy_attributes
from frhsic.auditing.results import Audit, Context

if TYPE_CHECKING:
    from frhsic.auditing.earlier import drift, since
    from frhsic.auditing.running import audit
    from frhsic.auditing.settings import Settings

__all__ = [
    "Audit",
    "Context",
    "Settings",
    "audit",
    "drift",
    "since",
]

__getattr__, __dir__ = lazy_attributes(
    __name__,
    {"Settings": "settings", "audit": "running", "drift": "earlier", "since": "earlier"},
)
