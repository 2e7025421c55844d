"""Tests of independence by HSIC, with the level they claim, and intervals for HSIC."""

from frhsic.independence.effects import (
    hsic_interval,
    normalized_hsic_interval,
)
from frhsic.independence.gamma import gamma_test
from frhsic.independence.pairs import IndependenceResult
from frhsic.independence.permutation import permutation_test

__all__ = [
    "IndependenceResult",
    "gamma_test",
    "hsic_interval",
    "normalized_hsic_interval",
    "permutation_test",
]
