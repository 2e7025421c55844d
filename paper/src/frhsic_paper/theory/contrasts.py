r"""Bounds on contrasts of the conditional laws, smoothed over S, by HSIC on a sample or in the population.

With :math:`\Delta(s) = \mu_{Z \mid S = s} - \mu_Z`, every average :math:`E_S[g(S) \Delta(S)]` equals
:math:`E[g(S) (k(Z, \cdot) - \mu_Z)]`. No conditional law is needed, and on a sample each bound holds with the biased
HSIC of the same sample. All contrasts are zero if Z is independent of S. Use them for an attribute
without ties. :func:`frhsic.certificates.contrasts.localized_contrast` is the case of most use.
"""

from __future__ import annotations

import math
from typing import Any

from torch import Tensor

from frhsic.certificates import Certificate
from frhsic.certificates.certificate import ON_THESE_ROWS, rows_and_kernels
from frhsic.certificates.contrasts import largest_variance
from frhsic.dependence import hsic
from frhsic.dependence.operators import gram_times
from frhsic.kernels import Kernel, Linear
from frhsic_paper.theory.heads import DeployedHead, Head, KernelExpansion, evaluate

WHAT = "a contrast"


def smoothed_contrast(
    z: Any,
    s: Any,
    weight: KernelExpansion,
    *,
    kernel_z: Kernel | None = None,
    kernel_s: Kernel | None = None,
) -> Certificate:
    r"""Bound a smoothed deviation of the conditional laws,
    :math:`\|E_S[g(S) \Delta(S)]\|^2 \le \|g\|^2\, \mathrm{HSIC}(Z, S)`.

    Parameters
    ----------
    z, s, kernel_z, kernel_s
        As in :func:`frhsic.certificates.contrasts.localized_contrast`.
    weight
        :math:`g = \sum_j b_j k_S(c_j, \cdot)`.

    References
    ----------
    The paper, Theorem "Smoothed conditional-distribution control by HSIC".

    Examples
    --------
    >>> g = KernelExpansion([1.0], centers=[[2.0]])
    >>> c = smoothed_contrast([0.0, 1.0], [0.0, 1.0], g, kernel_z=Linear(), kernel_s=Linear())
    >>> c.value, c.bounded
    (0.25, 0.25)
    """
    rows = rows_and_kernels(z, s, kernel_z, kernel_s, what=WHAT)
    return _contrast(*rows, "squared norm of the smoothed conditional deviation", weight=weight)


def fixed_head_contrast(
    z: Any,
    s: Any,
    head: Head,
    *,
    kernel_z: Kernel | None = None,
    kernel_s: Kernel | None = None,
) -> Certificate:
    r"""Bound the smoothed gap of one head,
    :math:`\|E_S[m_f(S)\, k_S(S, \cdot)]\|^2 \le \|f\|^2\, \mathrm{HSIC}(Z, S)`.

    The left side is HSIC of the head's scores under the linear kernel. With a :class:`DeployedHead` the kernel of the
    right side contains f(z) f(z').

    References
    ----------
    The paper, proof of the Theorem "Smoothed conditional-distribution control by HSIC", fixed-head form.

    Examples
    --------
    >>> from frhsic_paper.theory import AffineHead
    >>> c = fixed_head_contrast([0.0, 1.0], [0.0, 1.0], AffineHead([2.0]), kernel_z=Linear(), kernel_s=Linear())
    >>> c.value, c.bounded
    (0.25, 0.25)
    """
    rows = rows_and_kernels(z, s, kernel_z, kernel_s, what=WHAT)
    return _contrast(*rows, "squared norm of the smoothed gap of the head", head=head)


def bilinear_contrast(
    z: Any,
    s: Any,
    head: Head,
    weight: KernelExpansion,
    *,
    kernel_z: Kernel | None = None,
    kernel_s: Kernel | None = None,
) -> Certificate:
    r"""Bound the covariance of a head with a function of S,
    :math:`|E_S[g(S) m_f(S)]|^2 \le \|f\|^2 \|g\|^2\, \mathrm{HSIC}(Z, S)`.

    References
    ----------
    The paper, proof of the Theorem "Smoothed conditional-distribution control by HSIC", bilinear form.

    Examples
    --------
    >>> from frhsic_paper.theory import AffineHead
    >>> g = KernelExpansion([1.0], centers=[[1.0]])
    >>> c = bilinear_contrast([0.0, 1.0], [0.0, 1.0], AffineHead([2.0]), g, kernel_z=Linear(), kernel_s=Linear())
    >>> c.value, c.bounded
    (0.25, 0.25)
    """
    rows = rows_and_kernels(z, s, kernel_z, kernel_s, what=WHAT)
    return _contrast(*rows, "squared covariance of the head and the function of s", head=head, weight=weight)


def _contrast(
    z: Tensor,
    s: Tensor,
    kernel_z: Kernel,
    kernel_s: Kernel,
    bounds: str,
    *,
    head: Head | None = None,
    weight: KernelExpansion | None = None,
) -> Certificate:
    """Bound the contrast of a head, of a function of s, or of both by their squared norms times HSIC.

    What holds without the theorem is the bound of Cauchy and Schwarz.
    """
    n, dependence = z.shape[0], float(hsic(z, s, kernel_z, kernel_s))
    norms: dict[str, float] = {}
    variance_z, variance_s = largest_variance(kernel_z, z), largest_variance(kernel_s, s)
    side_z, side_s = "the features of z", "the features of s"
    f = None
    if head is not None:
        norms["norm"], f = evaluate(head, kernel_z, z)
        bounded = smoothed_gap = float(hsic(f, s, Linear(), kernel_s))
        if isinstance(head, DeployedHead):  # its kernel is the sum of two, and HSIC is linear in it
            dependence += smoothed_gap
        variance_z, side_z = float(f.var(correction=0)), "the scores"
    if weight is not None:
        norms["weight_norm"], g = weight.norm(kernel_s, s), weight.values(kernel_s, s)
        g = g - g.mean()
        variance_s, side_s = float(g @ g) / n, "the function of s"
        if f is None:
            bounded = max(float(g @ gram_times(kernel_z.shifted, z, g)), 0.0) / n**2
        else:
            bounded = (float(g @ (f - f.mean())) / n) ** 2
    return Certificate(
        value=math.prod(norm**2 for norm in norms.values()) * dependence,
        bounds=bounds,
        bounded=bounded,
        assumes=(ON_THESE_ROWS,),
        trivial=variance_z * variance_s,
        trivial_because=f"Cauchy-Schwarz between {side_z} and {side_s}",
        details={"n": n, "hsic": dependence, **norms},
    )
