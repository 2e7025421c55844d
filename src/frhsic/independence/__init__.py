"""Tests of independence by HSIC, with the level they claim, and intervals for HSIC."""

from frhsic.independence.conditional import conditional_test
from frhsic.independence.effects import (
    EquivalenceResult,
    equivalence_test,
    hsic_interval,
    normalized_hsic_interval,
)
from frhsic.independence.gamma import IndependenceResult, gamma_test
from frhsic.independence.permutation import aggregated_test, permutation_test
from frhsic.independence.sequential import SequentialTest

__all__ = [
    "EquivalenceResult",
    "IndependenceResult",
    "SequentialTest",
    "aggregated_test",
    "conditional_test",
    "equivalence_test",
    "gamma_test",
    "hsic_interval",
    "normalized_hsic_interval",
    "permutation_test",
]
