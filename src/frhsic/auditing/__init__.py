"""Audits: what a score or a representation tells about a continuous sensitive attribute."""

from frhsic.auditing.measures import Settings
from frhsic.auditing.results import (
    AttributeAudit,
    Audit,
    Context,
    Drift,
    LimitCheck,
    Number,
    drift,
    since,
)
from frhsic.auditing.running import audit

__all__ = [
    "AttributeAudit",
    "Audit",
    "Context",
    "Drift",
    "LimitCheck",
    "Number",
    "Settings",
    "audit",
    "drift",
    "since",
]
