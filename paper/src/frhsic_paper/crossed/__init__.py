"""The fair comparison: tables, four base models, ways to parity on each, and the cost of parity.

ANALYSIS.md was fixed before the fresh tables were looked at.
"""
