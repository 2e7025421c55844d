"""The paper's experiments, and further ones on open questions, as data. Tables and figures are
computed from records.
"""
