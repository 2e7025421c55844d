"""Audits: what a score or a representation tells about a continuous sensitive attribute."""

from frhsic.auditing.limits import Limit
from frhsic.auditing.measures import Settings
from frhsic.auditing.monitoring import drift, since
from frhsic.auditing.results import AttributeAudit, Audit, Context, Curve, Drift, LimitCheck, Number, Population
from frhsic.auditing.running import audit

__all__ = [
    "AttributeAudit",
    "Audit",
    "Context",
    "Curve",
    "Drift",
    "Limit",
    "LimitCheck",
    "Number",
    "Population",
    "Settings",
    "audit",
    "drift",
    "since",
]
