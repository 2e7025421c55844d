"""The paper's experiments, and further ones that it leaves open, as data. Tables and figures are
computed from records.
"""
