"""Audits: what a score or a representation tells about a continuous sensitive attribute."""

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
from frhsic.intervals import Interval

__all__ = [
    "AttributeAudit",
    "Audit",
    "CertificateRow",
    "Contrast",
    "Curve",
    "Histogram",
    "Interval",
    "Number",
    "Omitted",
    "Population",
    "RowCounts",
    "Settings",
    "SparseRegion",
    "Subject",
    "Watch",
    "audit",
]
