"""Audits: what a score or a representation tells about a continuous sensitive attribute."""

from frhsic.auditing.conduct import audit
from frhsic.auditing.measures import Settings
from frhsic.auditing.results import (
    AttributeAudit,
    Audit,
    CertificateRow,
    Contrast,
    Curve,
    Histogram,
    Interval,
    Note,
    Number,
    Omitted,
    Population,
    Rows,
    SparseRegion,
)

__all__ = [
    "AttributeAudit",
    "Audit",
    "CertificateRow",
    "Contrast",
    "Curve",
    "Histogram",
    "Interval",
    "Note",
    "Number",
    "Omitted",
    "Population",
    "Rows",
    "Settings",
    "SparseRegion",
    "audit",
]
