"""The paper's experiments, and those that it leaves open, as data; tables and figures are computed
from records.
"""
