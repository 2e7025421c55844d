"""Inputs of statistics of two samples: paired rows, a subset of them, and kernels."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from frhsic import _arrays, _tensors
from frhsic.kernels import Kernel, gaussian_at_median


def paired_rows(
    z: Any, s: Any, *, where: Any, device: torch.device | str | None, least: int, what: str
) -> tuple[Tensor, Tensor]:
    """Return z and s as matrices of equal length, restricted to `where`, with at least `least` rows
    left.
    """
    z, s = _tensors.paired_matrices((z, "z"), (s, "s"), device=device)
    if where is not None:
        kept = _tensors.subset_mask(where, z.shape[0]).to(z.device)
        z = z[kept]
        s = s[kept]
        what = f"{what}, on the rows that `where` keeps,"
    _arrays.require_rows(z.shape[0], least, what)
    return z, s


def kernel_or_median(kernel: Kernel | None, x: Tensor, name: str) -> Kernel:
    """Return the given kernel or, for None, a Gaussian with the median distance of x as
    bandwidth.
    """
    if kernel is None:
        return gaussian_at_median(x, name=name)
    require_kernel(kernel, f"kernel_{name}")
    return kernel


def require_kernel(kernel: object, name: str) -> None:
    """Raise an error unless the argument is a kernel or None."""
    if kernel is not None and not isinstance(kernel, Kernel):
        raise TypeError(
            f"{name} is {type(kernel).__name__}; pass a kernel such as Gaussian(1.0), or None."
        )


def recenter(x: Tensor, kernel: Kernel) -> Tensor:
    """Return x, centered at zero if centering does not change HSIC and MMD under the kernel;
    products of centered rows keep more digits.
    """
    return x - x.detach().mean(dim=0) if kernel.centering_safe else x


def working_copy(x: Tensor, kernel: Kernel) -> Tensor:
    """Return x in float64, detached, and shifted to median zero if the shift does not change HSIC
    under the kernel.
    """
    x = x.detach().to(torch.float64)
    return x - x.median(dim=0).values if kernel.centering_safe else x
