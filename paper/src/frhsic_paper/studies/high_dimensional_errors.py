"""Errors of HSIC and EIPM on a Gaussian model with several columns of S, whose answers are known."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from frhsic.dependence import eipm, hsic, hsic_unbiased
from frhsic.kernels import Gaussian
from frhsic_paper.options import Options
from frhsic_paper.protocol import Protocol
from frhsic_paper.records import Record, Unit
from frhsic_paper.synthetic import gaussian_pair

CORRELATION = 0.5


@dataclass(frozen=True)
class Samples:
    """Numbers of columns and rows of the Gaussian model, and how often each is drawn."""

    dimensions: tuple[int, ...]
    sizes: tuple[int, ...]
    repeats: int


ERRORS = {"corrected": Samples((1, 2, 3, 5, 10, 20), (250, 500, 1000, 2000), 20)}

NAMES = {"hsic": "HSIC", "hsic-unbiased": "unbiased HSIC", "eipm": "EIPM"}
"""The statistics, and their names in the claim about errors."""


def true_hsic(dim_s: int) -> float:
    r"""HSIC of the Gaussian model, bandwidth 1 on Z and :math:`\sqrt q` on the q columns of S.

    The first column has correlation 1/2 with Z, the others are noise: the isotropic kernel is a product, and each
    column of noise brings the factor :math:`E\,k(S, S') = (\sigma^2/(\sigma^2 + 2))^{1/2}`,

    .. math:: \mathrm{HSIC}_q = \mathrm{HSIC}_1(\sigma = \sqrt q)\; \bigl(q / (q + 2)\bigr)^{(q - 1)/2}.

    Examples
    --------
    >>> round(true_hsic(1), 7)
    0.0107633
    """
    first = gaussian_pair(2, correlation=CORRELATION, random_state=0).hsic(1.0, math.sqrt(dim_s))
    return first * float((dim_s / (dim_s + 2)) ** ((dim_s - 1) / 2))


def error_units(protocol: Protocol, options: Options) -> dict[Unit, int]:
    """Return numbers of columns and rows."""
    samples = ERRORS[protocol.name]
    count = options.limited(samples.repeats) * len(NAMES)
    return {(d, n): count for d in samples.dimensions for n in samples.sizes}


def errors(missing: Sequence[Unit], protocol: Protocol, options: Options) -> Iterator[list[Record]]:
    r"""Yield errors of HSIC and EIPM on the Gaussian model for each number of columns and rows.

    Given S only its first column tells about Z, so the true EIPM is the same for every number of columns. Bandwidths: 1
    on Z; on S :math:`\sqrt q` for HSIC, and for EIPM Scott's rule :math:`n^{-1/(4 + q)}`.
    """
    repeats = options.limited(ERRORS[protocol.name].repeats)
    for d, n in missing:
        yield [record for repeat in range(repeats) for record in _estimates(d, n, repeat)]


def _estimates(d: int, n: int, repeat: int) -> list[Record]:
    pair = gaussian_pair(n, correlation=CORRELATION, random_state=repeat)
    noise = torch.from_numpy(np.random.default_rng((repeat, d)).standard_normal((n, d - 1)))
    s = torch.cat([pair.s[:, None], noise], dim=1)
    kernel_z, kernel_s = Gaussian(1.0), Gaussian(math.sqrt(d))
    truths = {"hsic": true_hsic(d), "hsic-unbiased": true_hsic(d), "eipm": pair.eipm()}
    estimates = {
        "hsic": float(hsic(pair.z, s, kernel_z, kernel_s)),
        "hsic-unbiased": float(hsic_unbiased(pair.z, s, kernel_z, kernel_s)),
        "eipm": float(eipm(pair.z, s, kernel_z)),
    }
    return [
        {
            "statistic": name,
            "repeat": repeat,
            "estimate": estimate,
            "truth": truths[name],
            "error": abs(estimate - truths[name]),
            "relative_error": abs(estimate - truths[name]) / truths[name],
        }
        for name, estimate in estimates.items()
    ]
