r"""Regularised kernel maximal correlation (kHGR).

With empirical covariance operators :math:`\hat\Sigma`,

.. math:: \widehat{\mathrm{kHGR}} = \bigl\| (\hat\Sigma_{ZZ} + \eta_Z I)^{-1/2}\, \hat\Sigma_{ZS}\,
    (\hat\Sigma_{SS} + \eta_S I)^{-1/2} \bigr\|_{\mathrm{op}}.

On Gram matrices: with :math:`A = HKH/n`, :math:`B = HLH/n` and :math:`R(A) = A (A + \eta I)^{-1}`
it is the square root of the largest eigenvalue of :math:`R(A) R(B)`.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from frhsic import _arrays
from frhsic.dependence.grams import centered_gram, pivoted_cholesky
from frhsic.dependence.inputs import kernel_or_median, paired_rows, working_copy
from frhsic.kernels import Kernel


def kernel_hgr(
    z: Any,
    s: Any,
    kernel_z: Kernel | None = None,
    kernel_s: Kernel | None = None,
    *,
    ridge_z: float = 0.01,
    ridge_s: float = 0.01,
) -> Tensor:
    r"""Regularised kernel maximal correlation: the largest correlation of a smooth f(Z) with a
    smooth g(S).

    .. math:: \bigl\| (\hat\Sigma_{ZZ} + \eta_Z I)^{-1/2}\, \hat\Sigma_{ZS}\,
        (\hat\Sigma_{SS} + \eta_S I)^{-1/2} \bigr\|_{\mathrm{op}}
        = \max_{f, g} \frac{\widehat{\mathrm{cov}}(f(Z), g(S))}{\sqrt{(\widehat{\mathrm{var}} f(Z) +
        \eta_Z \|f\|^2) (\widehat{\mathrm{var}} g(S) + \eta_S \|g\|^2)}}.

    Between 0 and 1; zero in the population exactly when Z and S are independent, if both kernels
    are characteristic. In a sample it is positive even then. The ridges limit how rough f and g can
    be, and shrink every correlation towards zero: along a direction with variance :math:`\lambda`,
    it is multiplied by :math:`\lambda / (\lambda + \eta)`. So the value is below the maximal
    correlation, even for z = s, where it is about .96 with the defaults. Its square is at most HSIC
    divided by :math:`\eta_Z \eta_S`. Use it to measure the correlation of the best pair of
    functions; :func:`frhsic.dependence.hsic` averages over all pairs.

    Parameters
    ----------
    z, s
        One row per observation.
    kernel_z, kernel_s
        Kernels; None uses a Gaussian with the median distance as bandwidth.
    ridge_z, ridge_s
        The ridges η, in units of the kernel's variance; for a kernel bounded by one, use at most
        about one.

    Returns
    -------
    Tensor
        0-d, in the dtype of the inputs, computed in float64 in O(n²) memory; not differentiable.

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
    z, s = paired_rows(z, s, where=None, device=None, least=2, what="kernel HGR")
    _arrays.require_varying(s, "s")
    _arrays.require_positive(ridge_z, "ridge_z")
    _arrays.require_positive(ridge_s, "ridge_s")
    if bool((z == z[:1]).all()):  # every f(z) is constant
        return torch.zeros((), dtype=z.dtype, device=z.device)
    k, l = kernel_or_median(kernel_z, z, "z"), kernel_or_median(kernel_s, s, "s")
    (n, _), dtype = z.shape, z.dtype
    z, s = working_copy(z, k), working_copy(s, l)
    factor, _ = pivoted_cholesky(l, s)
    b = (factor - factor.mean(dim=0)) / math.sqrt(n)
    # bᵀ R(A) b = bᵀb - η bᵀ(A + ηI)⁻¹b, and R(B) = b (bᵀb + ηI)⁻¹ bᵀ
    own = b.mT @ b
    whitened = _whitened(centered_gram(k.shifted(z, z)) / n, ridge_z, b)
    form = own - ridge_z * whitened.mT @ whitened
    inner = _whitened(own, ridge_s, _whitened(own, ridge_s, form).mT)
    square: Tensor = torch.linalg.eigvalsh(inner)[-1]
    return square.clamp(0, 1).sqrt().to(dtype)


def _whitened(a: Tensor, ridge: float, b: Tensor) -> Tensor:
    r"""Return :math:`C^{-1} b` for the Cholesky factor :math:`CC^\top = A + \eta I`; raise an error
    if the ridge is lost in the rounding of A.
    """
    try:
        factor = torch.linalg.cholesky(a.diagonal_scatter(a.diagonal() + ridge))
    except torch.linalg.LinAlgError as error:  # type: ignore[attr-defined]  # public, untyped
        raise ValueError(
            f"kernel values are too large for a ridge of {ridge:g}; pass larger ridge_z and"
            " ridge_s."
        ) from error
    whitened: Tensor = torch.linalg.solve_triangular(factor, b, upper=False)
    return whitened
