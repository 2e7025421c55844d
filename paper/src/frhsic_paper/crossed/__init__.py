"""The fair comparison: tables, four bases, ways to parity on each, and what parity costs there.

ANALYSIS.md was fixed before the fresh tables were looked at.
"""
