"""Tests of independence by HSIC, with the level they claim, and intervals for HSIC."""

from frhsic.independence.effects import (
    hsic_interval,
    normalized_hsic_interval,
)
from frhsic.independence.gamma import gamma_test
from frhsic.independence.pairs import IndependenceResult
from frhsic.independence.permutation import permutation_test
from frhsic.independence.sequential import SequentialTest

__all__ = [
    "IndependenceResult",
    "SequentialTest",
    "gamma_test",
    "hsic_interval",
    "normalized_hsic_interval",
    "permutation_test",
]
