"""Synthetic data whose true dependence is known, to compare estimates with.

Each function draws a sample and returns it in a frozen dataclass that also carries the answers of the
population it was drawn from: closed forms, or integrals in one dimension to twelve digits.
"""

from frhsic_paper.synthetic.causal import (
    CircleExample,
    LinearCausalModel,
    XorExample,
    circle_example,
    linear_causal_model,
    xor_example,
)
from frhsic_paper.synthetic.pairs import DiscreteGroups, GaussianPair, discrete_groups, gaussian_pair
from frhsic_paper.synthetic.task import SyntheticTask, synthetic_task

__all__ = [
    "CircleExample",
    "DiscreteGroups",
    "GaussianPair",
    "LinearCausalModel",
    "SyntheticTask",
    "XorExample",
    "circle_example",
    "discrete_groups",
    "gaussian_pair",
    "linear_causal_model",
    "synthetic_task",
    "xor_example",
]
