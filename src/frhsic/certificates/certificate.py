"""What all certificates share: the result, with its assumptions, and the preparation of rows and kernels."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from frhsic import _arrays
from frhsic.dependence._inputs import kernel_or_median
from frhsic.dependence.operators import gram_times
from frhsic.kernels import Kernel

Detail = float | int | tuple[float, ...]
"""A value of :attr:`Certificate.details`: a number or a tuple of numbers."""

ON_THESE_ROWS = "none on the law of the rows: it holds on these rows"


@dataclass(frozen=True, kw_only=True)
class Certificate:
    """A bound with its assumptions.

    Attributes
    ----------
    value
        The bound, also given by ``float(certificate)``.
    bounds
        The bounded quantity, in words.
    bounded
        The measured value of that quantity, or None if it is not known.
    confidence
        Probability with which the bound holds; 1 if it holds for every data set.
    assumes
        The assumptions, one statement each.
    trivial
        A bound on the same quantity that holds without the theorem; None for identities.
    trivial_because
        The reason for `trivial`.
    details
        The numbers that the value was computed from.

    Examples
    --------
    >>> c = Certificate(value=0.3, bounds="a gap", bounded=0.1, trivial=0.25, trivial_because="scores in [0, 1]")
    >>> float(c), round(c.tightness, 3), c.vacuous
    (0.3, 3.0, True)
    >>> print(c)
    a gap <= 0.3 (measured 0.1; vacuous, since it is always at most 0.25: scores in [0, 1])
    """

    value: float
    bounds: str
    bounded: float | None = None
    confidence: float = 1.0
    assumes: tuple[str, ...] = ()
    trivial: float | None = None
    trivial_because: str = ""
    details: Mapping[str, Detail] = field(default_factory=dict)

    def __float__(self) -> float:
        return self.value

    @property
    def tightness(self) -> float | None:
        """The bound divided by the bounded quantity: 1 is exact, None if the quantity is not known."""
        if self.bounded is None:
            return None
        if self.bounded == 0:
            return 1.0 if self.value == 0 else math.inf
        return self.value / self.bounded

    @property
    def vacuous(self) -> bool:
        """Whether the bound is no better than `trivial`, which always holds."""
        return self.trivial is not None and self.value >= self.trivial

    def __str__(self) -> str:
        notes = [] if self.bounded is None else [f"measured {self.bounded:.6g}"]
        if self.confidence < 1:
            notes.append(f"with probability at least {self.confidence:g}")
        if self.vacuous:
            notes.append(f"vacuous, since it is always at most {self.trivial:.6g}: {self.trivial_because}")
        return f"{self.bounds} <= {self.value:.6g}" + (f" ({'; '.join(notes)})" if notes else "")


def paired_float64(z: Any, s: Any, *, device: torch.device | str | None = None, what: str) -> tuple[Tensor, Tensor]:
    """Return z and s as detached float64 matrices with the same number of rows, at least two."""
    z, s = (x.detach().to(torch.float64) for x in _arrays.paired((z, "z"), (s, "s"), device=device))
    _arrays.require_rows(z.shape[0], 2, what)
    return z, s


def rows_and_kernels(
    z: Any,
    s: Any,
    kernel_z: Kernel | None,
    kernel_s: Kernel | None,
    *,
    device: torch.device | str | None = None,
    what: str = "a certificate",
) -> tuple[Tensor, Tensor, Kernel, Kernel]:
    """Return z and s as :func:`paired_float64` does, and their kernels; None is a Gaussian at the median distance."""
    z, s = paired_float64(z, s, device=device, what=what)
    return z, s, kernel_or_median(kernel_z, z, "z"), kernel_or_median(kernel_s, s, "s")


def feature_spread(kernel: Kernel, rows: Tensor, row_sums: Tensor | None = None) -> float:
    r"""Return the variance of the rows in feature space, :math:`\operatorname{tr}(\tilde K)/n`.

    Parameters
    ----------
    kernel, rows
        The kernel and the rows, of shape (n, d).
    row_sums
        Row sums of `kernel.shifted`, if they are known already.
    """
    n = rows.shape[0]
    if row_sums is None:
        row_sums = gram_times(kernel.shifted, rows, torch.ones_like(rows[:, 0]))
    return max(float((kernel.diagonal(rows) - kernel.offset).mean()) - float(row_sums.sum()) / n**2, 0.0)
