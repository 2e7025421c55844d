r"""The kernel maximal correlation (kHGR), regularised.

With empirical covariance operators :math:`\hat\Sigma`,

.. math:: \widehat{\mathrm{kHGR}} = \bigl\| (\hat\Sigma_{ZZ} + \eta_Z I)^{-1/2}\, \hat\Sigma_{ZS}\,
    (\hat\Sigma_{SS} + \eta_S I)^{-1/2} \bigr\|_{\mathrm{op}}.

On Gram matrices: with :math:`A = HKH/n`, :math:`B = HLH/n` and :math:`R(A) = A (A + \eta I)^{-1}` it is the root of
the largest eigenvalue of :math:`R(A) R(B)`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from frhsic.dependence._sample import kernel_or_median, paired_rows, require_positive, require_varying
from frhsic.dependence._tiles import working_copy
from frhsic.dependence.grams import centered
from frhsic.dependence.operators import gram_times, pivoted_cholesky
from frhsic.kernels import Kernel

__all__ = ["kernel_hgr"]

DENSE_ROWS = 2048
"""Up to so many rows the Gram matrix of z is held and factored; above, it is only multiplied with, by tiles."""

PRECONDITIONER_RANK = 256
MAX_ITERATIONS = 500


def kernel_hgr(
    z: Any,
    s: Any,
    kernel_z: Kernel | None = None,
    kernel_s: Kernel | None = None,
    *,
    ridge_z: float = 0.01,
    ridge_s: float = 0.01,
    tolerance: float = 1e-6,
    max_rank: int = 2048,
    where: Any = None,
    device: torch.device | str | None = None,
) -> Tensor:
    r"""Tikhonov-regularised kernel maximal correlation, the largest correlation of a smooth f(Z) with a smooth g(S).

    .. math:: \bigl\| (\hat\Sigma_{ZZ} + \eta_Z I)^{-1/2}\, \hat\Sigma_{ZS}\,
        (\hat\Sigma_{SS} + \eta_S I)^{-1/2} \bigr\|_{\mathrm{op}}
        = \max_{f, g} \frac{\widehat{\mathrm{cov}}(f(Z), g(S))}{\sqrt{(\widehat{\mathrm{var}} f(Z) + \eta_Z \|f\|^2)
        (\widehat{\mathrm{var}} g(S) + \eta_S \|g\|^2)}}.

    Between 0 and 1; zero in the population exactly when Z and S are independent, if both kernels are characteristic.
    The ridges decide how rough f and g may be: with fixed ridges it converges to a regularised value below the
    maximal correlation, and on a sample under independence it is positive. Its square is at most HSIC divided by
    :math:`\eta_Z \eta_S`.

    Parameters
    ----------
    z, s
        One row per observation.
    kernel_z, kernel_s
        Kernels; None is the Gaussian at the median distance.
    ridge_z, ridge_s
        The regularisers η, in units of the kernel's variance: for a kernel bounded by one, at most about one.
    tolerance
        Largest error of the *square* of the returned value, see Notes.
    max_rank
        Most columns of the factor of the Gram matrix of s. More rows than these and a kernel on s too rough to be
        represented by them raise an error that says what was reached.
    where
        Rows to keep: a boolean mask, or a 0/1 target for Equal Opportunity.
    device
        Where to compute; that of the inputs if not given.

    Returns
    -------
    Tensor
        0-d, in the width of the inputs, computed in float64; not differentiable.

    Notes
    -----
    The Gram matrix of s is factored by pivoted Cholesky, :math:`L = GG^\top + E` with :math:`E \succeq 0`. Since R is
    operator monotone and Lipschitz with constant 1/η, the square is underestimated by at most
    :math:`\operatorname{tr} E / (n \eta_S)`, which is brought below half the tolerance. On z the equations
    :math:`(A + \eta_Z I) x = b` are solved by Cholesky up to 2,048 rows, and above by conjugate gradients on
    tiles, in O(n) memory, until their residuals cannot move the square by the other half.

    References
    ----------
    The paper, appendix "Regularized empirical kHGR", with its bound by HSIC; Fukumizu, Bach and Gretton (2007),
    *Statistical consistency of kernel canonical correlation analysis*.

    Examples
    --------
    With linear kernels it is the correlation, but for the ridges: 1.25 / sqrt(1.35 * 1.35).

    >>> from frhsic.kernels import Linear
    >>> x = [0.0, 1.0, 2.0, 3.0]
    >>> kernel_hgr(x, x, Linear(), Linear(), ridge_z=0.1, ridge_s=0.1)
    tensor(0.9259, dtype=torch.float64)
    """
    z, s = paired_rows(z, s, where=where, device=device, least=2, what="kernel HGR")
    require_varying(s, "s")
    for value, name in ((ridge_z, "ridge_z"), (ridge_s, "ridge_s"), (tolerance, "tolerance")):
        require_positive(value, name)
    if isinstance(max_rank, bool) or not isinstance(max_rank, int) or max_rank < 1:
        raise ValueError(f"max_rank is {max_rank!r}; pass a whole number, at least 1.")
    if bool((z == z[:1]).all()):  # every f(z) is constant
        return torch.zeros((), dtype=z.dtype, device=z.device)
    k, l = kernel_or_median(kernel_z, z, "z"), kernel_or_median(kernel_s, s, "s")
    width = z.dtype
    z, s = working_copy(z, k), working_copy(s, l)
    n = z.shape[0]
    b = _factor(l, s, tolerance * ridge_s / 2, max_rank) / math.sqrt(n)
    # bᵀ R(A) b = bᵀb - η bᵀ(A + ηI)⁻¹b, and R(B) = b (bᵀb + ηI)⁻¹ bᵀ
    own = b.mT @ b
    form = own - ridge_z * _inverse_form(k, z, ridge_z, b, tolerance * ridge_s / 2)
    inner = torch.linalg.cholesky(own + ridge_s * torch.eye(own.shape[0], dtype=own.dtype, device=own.device))
    half = torch.linalg.solve_triangular(inner, form, upper=False)
    square: Tensor = torch.linalg.eigvalsh(torch.linalg.solve_triangular(inner, half.mT, upper=False))[-1]
    return square.clamp(0, 1).sqrt().to(width)


def _centred(x: Tensor) -> Tensor:
    return x - x.mean(dim=0)


def _factor(kernel: Kernel, x: Tensor, error: float, max_rank: int) -> Tensor:
    """Return G, centred, with GGᵀ below HLH by at most n · error in operator norm."""
    share = min(error / float(kernel.diagonal(x).mean()), 0.5)
    factor, left = pivoted_cholesky(kernel, x, tolerance=share, max_rank=max_rank)
    rounding = 8 * torch.finfo(x.dtype).eps
    if left > max(share, rounding):
        raise ValueError(
            f"max_rank={max_rank} columns leave the square of kernel HGR uncertain by {left / share:.2g} times what "
            f"tolerance allows: the kernel on s is too rough for {x.shape[0]} rows. Pass a smoother kernel_s, a larger "
            "ridge_s, a larger tolerance, or a larger max_rank."
        )
    return _centred(factor)


def _inverse_form(kernel: Kernel, z: Tensor, ridge: float, b: Tensor, error: float) -> Tensor:
    r"""Return :math:`b^\top (HKH/n + \eta I)^{-1} b` for columns b that sum to zero, to `error` / η."""
    n = z.shape[0]
    if n <= DENSE_ROWS:
        a = centered(kernel.shifted(z, z)) / n
        a.diagonal().add_(ridge)
        half: Tensor = torch.linalg.solve_triangular(torch.linalg.cholesky(a), b, upper=False)
        return half.mT @ half

    def times(v: Tensor) -> Tensor:
        return _centred(gram_times(kernel.shifted, z, v)) / n + ridge * v

    factor, _ = pivoted_cholesky(kernel, z, max_rank=PRECONDITIONER_RANK)
    precondition = _low_rank_inverse(_centred(factor) / math.sqrt(n), ridge)
    x, residual = _conjugate_gradients(times, precondition, b, error)
    # With M = A + ηI and residual r = b - Mx, xᵀb + xᵀr falls short of bᵀM⁻¹b by rᵀM⁻¹r, at most rᵀr / η
    form = x.mT @ (b + residual)
    return (form + form.mT) / 2


def _low_rank_inverse(g: Tensor, ridge: float) -> Callable[[Tensor], Tensor]:
    """Return the inverse of ggᵀ + ηI as a function, by Woodbury's identity."""
    inner = torch.linalg.cholesky(g.mT @ g + ridge * torch.eye(g.shape[1], dtype=g.dtype, device=g.device))
    return lambda v: (v - g @ torch.cholesky_solve(g.mT @ v, inner)) / ridge


def _conjugate_gradients(
    times: Callable[[Tensor], Tensor], precondition: Callable[[Tensor], Tensor], b: Tensor, error: float
) -> tuple[Tensor, Tensor]:
    """Solve for all columns of b at once until the squares of the residuals sum to `error`; return both."""
    tiny = torch.finfo(b.dtype).tiny
    x, residual = torch.zeros_like(b), b
    direction = precondition(residual)
    size = (residual * direction).sum(0)
    for _ in range(MAX_ITERATIONS):
        if float((residual * residual).sum()) <= error:
            return x, residual
        product = times(direction)
        step = size / (direction * product).sum(0).clamp_min(tiny)
        x, residual = x + step * direction, residual - step * product
        ahead = precondition(residual)
        size, before = (residual * ahead).sum(0), size
        direction = ahead + size / before.clamp_min(tiny) * direction
    raise ValueError(
        f"{MAX_ITERATIONS} steps of conjugate gradients left residuals whose squares sum to "
        f"{float((residual * residual).sum()):.1g}, where {error:.1g} was asked for: the ridge on z is too small for "
        "these data. Pass a larger ridge_z or tolerance."
    )
