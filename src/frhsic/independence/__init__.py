"""Tests of independence by HSIC, with the level they claim."""

from frhsic.independence.aggregated import aggregated_test
from frhsic.independence.gamma import gamma_test, gamma_test_published
from frhsic.independence.permutation import permutation_test
from frhsic.independence.result import IndependenceResult

__all__ = ["IndependenceResult", "aggregated_test", "gamma_test", "gamma_test_published", "permutation_test"]
