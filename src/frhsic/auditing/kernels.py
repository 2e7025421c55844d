"""Measures that need torch: HSIC, and distances between rows with several columns."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from frhsic.auditing.results import Number, Setting
from frhsic.independence.effects import hsic_effect, normalized_effect
from frhsic.independence.gamma import gamma_test_from_pair
from frhsic.independence.grams import law_pair_from_rows
from frhsic.independence.pairs import Pair
from frhsic.kernels import Gaussian, HalfDistance, Kernel, PerColumn, default_gaussian


def audit_kernels(z: Tensor, s: Tensor) -> tuple[Gaussian, Kernel, str, str]:
    """Return a Gaussian kernel for z and one for each attribute in s, with the median distance as
    bandwidth, and the rules that determined the bandwidths.
    """
    kernel_z, rule_z = default_gaussian(z)
    columns = [default_gaussian(column) for column in s.T]
    kernel_s = columns[0][0] if len(columns) == 1 else PerColumn(tuple(part for part, _ in columns))
    return kernel_z, kernel_s, rule_z, "; ".join(dict.fromkeys(rule for _, rule in columns))


def hsic_numbers(z: np.ndarray, s: np.ndarray, confidence: float) -> list[Number]:
    """Return HSIC with its test, and normalized HSIC."""
    rows_z = torch.from_numpy(z)
    rows_s = torch.from_numpy(s)
    kernel_z, kernel_s, rule_z, rule_s = audit_kernels(rows_z, rows_s)
    pair = law_pair_from_rows(rows_z, rows_s, kernel_z, kernel_s)
    test = gamma_test_from_pair(pair, 1 - confidence)
    if test.null_standard_deviation == 0:
        raise ValueError(
            "the kernel of the scores or of the sensitive attribute is constant, so HSIC"
            " cannot be tested."
        )
    details: dict[str, Setting] = {
        "test": test.method,
        "kernel on z": test.kernels[0],
        "kernel on s": test.kernels[1],
        "bandwidth on z": rule_z,
        "bandwidth on s": rule_s,
        "biased": test.statistic,
    }
    effect = hsic_effect(pair, confidence)
    normalized = normalized_effect(pair, confidence)
    interval, scaled = (
        number.interval.agree_with(number.value, test.pvalue) for number in (effect, normalized)
    )
    return [
        Number("hsic", effect.value, test.n, interval, 0.0, test.pvalue, details),
        Number("hsic_effect", normalized.value, test.n, scaled, 0.0),
    ]


def distance_pair(z: np.ndarray, s: np.ndarray) -> Pair:
    """Return the half-distance Gram matrices of z and s."""
    half = HalfDistance()
    return law_pair_from_rows(torch.from_numpy(z), torch.from_numpy(s), half, half)
