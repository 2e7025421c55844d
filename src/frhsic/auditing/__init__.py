"""Audits: what a score or a representation tells about a continuous sensitive attribute."""

from frhsic.auditing.limits import Limit
from frhsic.auditing.measures import Settings
from frhsic.auditing.monitoring import drift, since
from frhsic.auditing.results import AttributeAudit, Audit, Context, Drift, LimitCheck, Number
from frhsic.auditing.running import audit

__all__ = [
    "AttributeAudit",
    "Audit",
    "Context",
    "Drift",
    "Limit",
    "LimitCheck",
    "Number",
    "Settings",
    "audit",
    "drift",
    "since",
]
