"""Reports: an audit and, for a model, its trade-off, as text or as one self-contained page."""

from frhsic.report.first_page import text
from frhsic.report.model import Report
from frhsic.report.page import render, write
from frhsic.report.trained import trained_report

__all__ = ["Report", "render", "text", "trained_report", "write"]
