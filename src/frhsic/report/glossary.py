"""What the words of the evidence mean."""

from __future__ import annotations

GLOSSARY = (
    ("Accuracy", "Share of rows that are predicted right: at the threshold, on the same side as what happened."),
    ("Area under the curve (AUC)", "Share of pairs, one row with the outcome and one without, whose scores are in the "
     "right order. A constant has one half."),
    ("Attribute", "What the score is not to depend on, such as age."),
    ("Average gap (generalised demographic parity, GDP)", "How far the mean score at a row's value of the attribute "
     "lies from the mean score of all rows, on average over the rows."),
    ("Base rate", "Mean of the target: the share of rows with the outcome."),
    ("Calibration error", "How far the score lies from the share of rows with the outcome, in ten groups of rows with "
     "similar scores (root mean square)."),
    ("Certificate", "A bound that follows from a theorem, with its assumptions; not an estimate."),
    ("Confidence of 95 %", "An interval made in this way holds the true number in 95 of 100 samples of rows."),
    ("Constant", "The model that gives everybody the same score: the base rate, or the mean of the target."),
    ("Equal opportunity", "The same question among the rows with the favourable outcome alone."),
    ("Fingerprint (SHA-256)", "A number computed from every byte of a file. Another file has another fingerprint."),
    ("HSIC", "Hilbert–Schmidt independence criterion: distance of score and attribute from independence; zero only if "
     "they are independent."),
    ("Kernel", "A measure of how similar two rows are; its bandwidth says how near counts as similar."),
    ("Limit", "The largest gap that the model may have; 50% is half of the gap of the same model without a limit."),
    ("Log loss", "Mean of minus the logarithm of the chance that the score gave to what happened; less is better."),
    ("p-value", "Share of samples in which chance alone shows as much or more."),
    ("Probe", "A model that tries to recover the attribute from the score or the representation."),
    ("Quantile", "Score below which a given share of the rows lies; half of them lie below the quantile 0.5."),
    ("Rank gap", "How far the share of rows above a score lies from that of all rows, on average over the rows and "
     "over nine scores that cut the rows into tenths. It sees the order of the scores and not their size."),
    ("Representation", "The numbers that a model computes from the columns before it makes a score of them."),
)  # fmt: skip
"""What the words of the evidence mean."""
