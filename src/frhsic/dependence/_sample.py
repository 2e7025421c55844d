"""What every statistic of two samples does first: rows paired, a subset kept, a kernel chosen."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from frhsic import _arrays
from frhsic.kernels import Kernel, gaussian_at_median


def paired_rows(
    z: Any, s: Any, *, where: Any, device: torch.device | str | None, least: int, what: str
) -> tuple[Tensor, Tensor]:
    """Return z and s as matrices of equal length, restricted to `where`, with at least `least` rows left."""
    z, s = _arrays.paired((z, "z"), (s, "s"), device=device)
    if where is not None:
        kept = _arrays.subset_mask(where, z.shape[0]).to(z.device)
        z, s = z[kept], s[kept]
        what = f"{what}, on the rows that `where` keeps,"
    _arrays.require_rows(z.shape[0], least, what)
    return z, s


def kernel_or_median(kernel: Kernel | None, x: Tensor, name: str) -> Kernel:
    """Return the kernel that was passed, or the Gaussian at the median distance of x for None."""
    if kernel is None:
        return gaussian_at_median(x, name=name)
    if not isinstance(kernel, Kernel):
        raise TypeError(f"kernel_{name} is {type(kernel).__name__}; pass a kernel such as Gaussian(1.0), or None.")
    return kernel


def require_varying(x: Tensor, name: str) -> None:
    """Raise if every row of x is the same."""
    if bool((x == x[:1]).all()):
        raise ValueError(
            f"{name} is constant: all {x.shape[0]} rows are equal, so nothing can depend on it. "
            "Check the column, or the rows that `where` keeps."
        )


def require_positive(value: float, name: str) -> None:
    """Raise unless value is a positive, finite number."""
    if not (math.isfinite(value) and value > 0):
        raise ValueError(f"{name} is {value}; pass a positive, finite number.")


def recentred(x: Tensor, kernel: Kernel) -> Tensor:
    """Return x moved to mean zero where the kernel's HSIC and MMD do not notice: products then keep their digits."""
    return x - x.detach().mean(dim=0) if kernel.centering_safe else x


def recomputed(function: Callable[..., Tensor], *inputs: Tensor) -> Tensor:
    """Call `function`, and call it again in the backward pass rather than keep what it computed.

    Differentiable once, in the inputs alone: what the function closes over is taken as fixed.
    """
    if not torch.is_grad_enabled() or not any(x.requires_grad for x in inputs):
        return function(*inputs)
    result: Tensor = _Recomputed.apply(function, *inputs)  # type: ignore[no-untyped-call]  # torch leaves apply untyped
    return result


class _Recomputed(torch.autograd.Function):
    """torch.utils.checkpoint would do the same, after importing a compiler for several seconds."""

    @staticmethod
    def forward(ctx: Any, function: Callable[..., Tensor], *inputs: Tensor) -> Tensor:
        ctx.function = function
        ctx.save_for_backward(*inputs)
        return function(*inputs)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        wanted = ctx.needs_input_grad[1:]
        inputs = [x.detach().requires_grad_(want) for x, want in zip(ctx.saved_tensors, wanted)]
        with torch.enable_grad():
            value = ctx.function(*inputs)
        found = iter(torch.autograd.grad(value, [x for x in inputs if x.requires_grad], gradient, allow_unused=True))
        return (None, *(next(found) if want else None for want in wanted))


def safe_sqrt(x: Tensor) -> Tensor:
    """Square root of x, 0 with a gradient of 0 where x is 0 or, by rounding, below; NaN stays NaN."""
    vanishes = x <= 0
    return torch.where(vanishes, 0, torch.where(vanishes, 1, x).sqrt())
