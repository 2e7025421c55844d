"""Why a weight was chosen, in sentences to be filled in."""

from __future__ import annotations

REASONS = {
    "not_rejected": "the smallest weight at which a test does not reject independence of the {of} at level {level} "
    "(p {pvalue}), which does not show that it is independent",
    "below_epsilon": "the smallest weight at which independence of the {of} is not rejected or HSIC is negligible: "
    "HSIC {hsic} is below epsilon = {epsilon}",
    "rejected": "independence of the {of} is rejected at every weight; this one has the least HSIC",
    "within_target": "the best performance among weights whose {measure} is at most {target} with {confidence} "
    "confidence (upper bound {bound})",
    "above_target": "no weight keeps {measure} at {target} with {confidence} confidence; this one has the least "
    "upper bound, {bound}",
    "within_loss": "the least GDP among models that keep {keep} of the unpenalised model's gain over a constant; this "
    "one keeps {gain}",
    "unpenalised": "no penalised model has less GDP and keeps {keep} of the unpenalised model's gain over a constant, "
    "so this is the model without a penalty",
    "outside_loss": "no weight keeps {keep} of the unpenalised model's gain over a constant; this one has the best "
    "performance",
    "no_gain": "the unpenalised model does not beat a constant ({name} {unpenalised} against {constant}), so there is "
    "no gain to keep",
    "low_gain": "it keeps {gain} of the unpenalised model's gain over a constant, less than {least}",
    "no_better": "its log loss, or squared error, is no better than that of a constant",
}
"""Why a weight was chosen, by key."""
