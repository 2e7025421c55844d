r"""Regularised kernel maximal correlation (kHGR).

With empirical covariance operators :math:`\hat\Sigma`,

.. math:: \widehat{\mathrm{kHGR}} = \bigl\| (\hat\Sigma_{ZZ} + \eta_Z I)^{-1/2}\, \hat\Sigma_{ZS}\,
    (\hat\Sigma_{SS} + \eta_S I)^{-1/2} \bigr\|_{\mathrm{op}}.

On Gram matrices: with :math:`A = HKH/n`, :math:`B = HLH/n` and :math:`R(A) = A (A + \eta I)^{-1}`
it is the root of the largest eigenvalue of :math:`R(A) R(B)`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from frhsic import _arrays
from frhsic.dependence.grams import centered_gram, pivoted_cholesky
from frhsic.dependence.inputs import kernel_or_median, paired_rows, working_copy
from frhsic.kernels import Kernel
from frhsic_paper.products import gram_times

# Up to this many rows the Gram matrix of z is held and factored; above, it is multiplied by tiles.
DENSE_ROWS = 2048

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
    r"""Regularised kernel maximal correlation: the largest correlation of a smooth f(Z) with a
    smooth g(S).

    .. math:: \bigl\| (\hat\Sigma_{ZZ} + \eta_Z I)^{-1/2}\, \hat\Sigma_{ZS}\,
        (\hat\Sigma_{SS} + \eta_S I)^{-1/2} \bigr\|_{\mathrm{op}}
        = \max_{f, g} \frac{\widehat{\mathrm{cov}}(f(Z), g(S))}{\sqrt{(\widehat{\mathrm{var}} f(Z) +
        \eta_Z \|f\|^2) (\widehat{\mathrm{var}} g(S) + \eta_S \|g\|^2)}}.

    Between 0 and 1; zero in the population exactly when Z and S are independent, if both kernels
    are characteristic. On a sample it is positive even then. The ridges limit how rough f and g may
    be, and pull every correlation towards zero: along a direction of variance :math:`\lambda` it is
    multiplied by :math:`\lambda / (\lambda + \eta)`. So the value stays below the maximal
    correlation, also for z = s, where it is about .96 at the defaults. Its square is at most HSIC
    divided by :math:`\eta_Z \eta_S`. Use it to ask how well the best pair of functions correlates;
    :func:`frhsic.dependence.hsic` averages over all pairs.

    Parameters
    ----------
    z, s
        One row per observation.
    kernel_z, kernel_s
        Kernels; None is the Gaussian at the median distance.
    ridge_z, ridge_s
        The ridges η, in units of the kernel's variance: for a kernel bounded by one, at most about
        one.
    tolerance
        Largest error of the *square* of the returned value, see Notes.
    max_rank
        Largest number of columns of the factor of the Gram matrix of s. Raises if a factor of this
        rank does not reach the tolerance because the kernel on s is too rough.
    where
        Rows to keep: a boolean mask, or a 0/1 target for Equal Opportunity.
    device
        Where to compute; that of the inputs if not given.

    Returns
    -------
    Tensor
        0-d, in the dtype of the inputs, computed in float64; not differentiable.

    Notes
    -----
    The Gram matrix of s is factored by pivoted Cholesky, :math:`L = GG^\top + E` with :math:`E
    \succeq 0`. Since R is operator monotone and Lipschitz with constant 1/η, the square is
    underestimated by at most :math:`\operatorname{tr} E / (n \eta_S)`, which is kept below half the
    tolerance. On z the equations :math:`(A + \eta_Z I) x = b` are solved by Cholesky up to 2,048
    rows. Above, conjugate gradients on tiles run in O(n) memory until the residuals change the
    square by less than the other half.

    References
    ----------
    The paper, appendix "Regularized empirical kHGR", with its bound by HSIC; Fukumizu, Bach and
    Gretton (2007), *Statistical consistency of kernel canonical correlation analysis*.

    Examples
    --------
    With linear kernels it is the correlation, reduced by the ridges: 1.25 / sqrt(1.35 * 1.35).

    >>> from frhsic.kernels import Linear
    >>> x = [0.0, 1.0, 2.0, 3.0]
    >>> kernel_hgr(x, x, Linear(), Linear(), ridge_z=0.1, ridge_s=0.1)
    tensor(0.9259, dtype=torch.float64)
    """
    z, s = paired_rows(z, s, where=where, device=device, least=2, what="kernel HGR")
    _arrays.require_varying(s, "s")
    for value, name in ((ridge_z, "ridge_z"), (ridge_s, "ridge_s"), (tolerance, "tolerance")):
        _arrays.require_positive(value, name)
    _arrays.require_integer(max_rank, "max_rank")
    if bool((z == z[:1]).all()):  # every f(z) is constant
        return torch.zeros((), dtype=z.dtype, device=z.device)
    k, l = kernel_or_median(kernel_z, z, "z"), kernel_or_median(kernel_s, s, "s")
    (n, _), dtype = z.shape, z.dtype
    z, s = working_copy(z, k), working_copy(s, l)
    b = _factor(l, s, tolerance * ridge_s / 2, max_rank) / math.sqrt(n)
    # bᵀ R(A) b = bᵀb - η bᵀ(A + ηI)⁻¹b, and R(B) = b (bᵀb + ηI)⁻¹ bᵀ
    own = b.mT @ b
    form = own - ridge_z * _inverse_form(k, z, ridge_z, b, tolerance * ridge_s / 2)
    inner = _cholesky(own, ridge_s)
    half = torch.linalg.solve_triangular(inner, form, upper=False)
    square: Tensor = torch.linalg.eigvalsh(
        torch.linalg.solve_triangular(inner, half.mT, upper=False)
    )[-1]
    return square.clamp(0, 1).sqrt().to(dtype)


def _cholesky(a: Tensor, ridge: float) -> Tensor:
    """Return the Cholesky factor of a + ridge · I; raise if the ridge is lost in the rounding of
    a.
    """
    try:
        factor: Tensor = torch.linalg.cholesky(
            a + ridge * torch.eye(a.shape[0], dtype=a.dtype, device=a.device)
        )
    except torch.linalg.LinAlgError as error:  # type: ignore[attr-defined]  # public, untyped
        message = (
            f"kernel values are too large for a ridge of {ridge:g}; pass larger ridge_z and"
            " ridge_s."
        )
        raise ValueError(message) from error
    return factor


def _column_centered(x: Tensor) -> Tensor:
    return x - x.mean(dim=0)


def _factor(kernel: Kernel, x: Tensor, error: float, max_rank: int) -> Tensor:
    """Return G, centred, with GGᵀ below HLH by at most n · error in operator norm."""
    share = min(error / float(kernel.diagonal(x).mean()), 0.5)
    factor, left = pivoted_cholesky(kernel, x, tolerance=share, max_rank=max_rank)
    rounding = 8 * torch.finfo(x.dtype).eps
    if left > max(share, rounding):
        raise ValueError(
            f"max_rank={max_rank} misses the tolerance by a factor of {left / share:.2g}: the"
            " kernel on s is rough. Pass a smoother kernel_s, or a larger ridge_s, tolerance or"
            " max_rank."
        )
    return _column_centered(factor)


def _inverse_form(kernel: Kernel, z: Tensor, ridge: float, b: Tensor, error: float) -> Tensor:
    r"""Return :math:`b^\top (HKH/n + \eta I)^{-1} b` for columns b that sum to zero, to `error` /
    η.
    """
    n = z.shape[0]
    if n <= DENSE_ROWS:
        inner = _cholesky(centered_gram(kernel.shifted(z, z)) / n, ridge)
        half: Tensor = torch.linalg.solve_triangular(inner, b, upper=False)
        return half.mT @ half

    def times(v: Tensor) -> Tensor:
        return _column_centered(gram_times(kernel.shifted, z, v)) / n + ridge * v

    factor, _ = pivoted_cholesky(kernel, z, max_rank=PRECONDITIONER_RANK)
    g = _column_centered(factor) / math.sqrt(n)
    inner = _cholesky(g.mT @ g, ridge)

    def precondition(
        v: Tensor,
    ) -> Tensor:  # η times the inverse of ggᵀ + ηI, by Woodbury's identity
        return v - g @ torch.cholesky_solve(g.mT @ v, inner)

    x, residual = _conjugate_gradients(times, precondition, b, error)
    # With M = A + ηI and residual r = b - Mx, xᵀb + xᵀr falls short of bᵀM⁻¹b by rᵀM⁻¹r, at most
    # rᵀr / η
    form = x.mT @ (b + residual)
    return (form + form.mT) / 2


def _conjugate_gradients(
    times: Callable[[Tensor], Tensor],
    precondition: Callable[[Tensor], Tensor],
    b: Tensor,
    error: float,
) -> tuple[Tensor, Tensor]:
    """Solve for all columns of b until the squared residuals sum to at most `error`; return
    solution and residual.
    """
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
    raise ValueError("conjugate gradients do not converge: pass a larger ridge_z or tolerance.")
