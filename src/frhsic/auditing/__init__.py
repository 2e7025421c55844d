"""Audits: what a score or a representation tells about a continuous sensitive attribute."""

from frhsic.auditing.measures import Settings
from frhsic.auditing.results import Audit, Context, drift, since
from frhsic.auditing.running import audit

__all__ = [
    "Audit",
    "Context",
    "Settings",
    "audit",
    "drift",
    "since",
]
