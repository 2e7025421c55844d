"""Audits: what a score or a representation tells about a continuous sensitive attribute."""

from frhsic.auditing.changes import Drift, drift
from frhsic.auditing.measures import Settings, Watch
from frhsic.auditing.results import (
    AttributeAudit,
    Audit,
    CertificateRow,
    Contrast,
    Curve,
    Histogram,
    Number,
    Omitted,
    Population,
    RowCounts,
    SparseRegion,
    Subject,
)
from frhsic.auditing.running import audit
from frhsic.auditing.schema import audit_schema
from frhsic.auditing.scores import Quality, ScoreQuantiles
from frhsic.auditing.stated import Context, Limit, LimitCheck
from frhsic.intervals import Interval

__all__ = [
    "AttributeAudit",
    "Audit",
    "CertificateRow",
    "Context",
    "Contrast",
    "Curve",
    "Drift",
    "Histogram",
    "Interval",
    "Limit",
    "LimitCheck",
    "Number",
    "Omitted",
    "Population",
    "Quality",
    "RowCounts",
    "ScoreQuantiles",
    "Settings",
    "SparseRegion",
    "Subject",
    "Watch",
    "audit",
    "audit_schema",
    "drift",
]
