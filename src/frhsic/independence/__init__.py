"""Tests of independence by HSIC, and intervals for HSIC.

The tests are imported on first use, together with torch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from frhsic._lazy import lazy_attributes
from frhsic.independence.pairs import IndependenceResult

if TYPE_CHECKING:
    from frhsic.independence.gamma import gamma_test
    from frhsic.independence.intervals import hsic_interval, normalized_hsic_interval
    from frhsic.independence.permutation import permutation_test

__all__ = [
    "IndependenceResult",
    "gamma_test",
    "hsic_interval",
    "normalized_hsic_interval",
    "permutation_test",
]

__getattr__, __dir__ = lazy_attributes(
    __name__,
    {
        "gamma_test": "gamma",
        "hsic_interval": "intervals",
        "normalized_hsic_interval": "intervals",
        "permutation_test": "permutation",
    },
)
