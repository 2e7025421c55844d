"""The report: an audit, and where there is one the trade-off behind a model, as text and as one
self-contained page.
"""

from frhsic.report.first_page import text
from frhsic.report.model import Report
from frhsic.report.page import render, write
from frhsic.report.trained import trained_report

__all__ = ["Report", "render", "text", "trained_report", "write"]
