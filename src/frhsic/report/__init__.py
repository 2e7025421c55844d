"""The report: an audit, and where there is one the trade-off behind a model, as one self-contained page."""

from frhsic.report.driving import Driver, Drivers, Shift, drivers, shifts
from frhsic.report.model import Report, TradeOff, TradeOffPoint
from frhsic.report.page import render, write
from frhsic.report.printing import write_pdf
from frhsic.report.trained import trained_report

__all__ = [
    "Driver",
    "Drivers",
    "Report",
    "Shift",
    "TradeOff",
    "TradeOffPoint",
    "drivers",
    "render",
    "shifts",
    "trained_report",
    "write",
    "write_pdf",
]
