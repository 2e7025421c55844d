"""The report: an audit and, for a model, the trade-off behind it, as text and as one self-contained
page.
"""

from frhsic.report.first_page import text
from frhsic.report.model import Report
from frhsic.report.page import render, write
from frhsic.report.trained import trained_report

__all__ = ["Report", "render", "text", "trained_report", "write"]
