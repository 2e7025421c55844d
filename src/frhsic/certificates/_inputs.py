"""Inputs that certificates share: float64 rows and kernels, and the form of a gap bound."""

from __future__ import annotations

from typing import Any, Literal, get_args

import torch
from torch import Tensor

from frhsic import _arrays
from frhsic.dependence._inputs import kernel_or_median
from frhsic.kernels import Kernel

Form = Literal["tight", "trace", "published"]

ON_THESE_ROWS = "none on the law of the rows: it holds on these rows"


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


def require_form(form: str) -> None:
    """Raise unless the form is one of the three."""
    if form not in get_args(Form):
        raise ValueError(f"form is {form!r}; pass 'tight', 'trace' or 'published'.")
