r"""Bounds on contrasts of the conditional laws, smoothed over S, by HSIC on a sample or in the population.

With :math:`\Delta(s) = \mu_{Z \mid S = s} - \mu_Z`, every average :math:`E_S[g(S) \Delta(S)]` equals
:math:`E[g(S) (k(Z, \cdot) - \mu_Z)]`. No conditional law is needed, and on a sample each bound holds with the biased
HSIC of the same sample. All contrasts are zero if Z is independent of S. Use them for an attribute without ties.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from frhsic.certificates._inputs import ON_THESE_ROWS, rows_and_kernels
from frhsic.certificates.certificate import Certificate
from frhsic.certificates.heads import AffineHead, DeployedHead, KernelExpansion, UnknownHead, evaluate, feature_spread
from frhsic.dependence import hsic
from frhsic.dependence.operators import gram_times
from frhsic.kernels import Kernel, Linear

KnownHead = KernelExpansion | AffineHead | DeployedHead

WHAT = "a contrast"


def localized_contrast(
    z: Any,
    s: Any,
    at: Any,
    versus: Any = None,
    *,
    kernel_z: Kernel | None = None,
    kernel_s: Kernel | None = None,
) -> Certificate:
    r"""Bound the conditional MMD localised at a sensitive value, or between two.

    .. math:: \| E_S[\{k_S(S, s_0) - k_S(S, s_1)\} \Delta(S)] \|^2
        \le \|k_S(s_0, \cdot) - k_S(s_1, \cdot)\|^2 \; \mathrm{HSIC}(Z, S),

    without the terms of :math:`s_1` if `versus` is None. For an attribute with two values the contrast between them
    equals the bound.

    Parameters
    ----------
    z, s
        Representation, of shape (n, d), and attribute, of shape (n,) or (n, q).
    at, versus
        Sensitive values :math:`s_0` and :math:`s_1`: a number, or q numbers.
    kernel_z, kernel_s
        Kernels; a Gaussian at the median distance where None.

    References
    ----------
    The paper, Corollary "Localized conditional-MMD control by HSIC".

    Examples
    --------
    Two values that z copies, with linear kernels: E[S Δ(S)] is the covariance 1/4, HSIC is 1/16, and
    k(1, 1) is 1.

    >>> c = localized_contrast([0.0, 1.0], [0.0, 1.0], 1.0, 0.0, kernel_z=Linear(), kernel_s=Linear())
    >>> c.value, c.bounded
    (0.0625, 0.0625)
    """
    z, s, kernel_z, kernel_s = rows_and_kernels(z, s, kernel_z, kernel_s, what=WHAT)
    centers = [_point(at, s, "at")]
    if versus is not None:
        centers.append(_point(versus, s, "versus"))
    g = KernelExpansion(torch.tensor([1.0, -1.0][: len(centers)], dtype=torch.float64), torch.cat(centers))
    about = "at one sensitive value" if versus is None else "between two sensitive values"
    return _smoothed(z, s, g, kernel_z, kernel_s, f"squared conditional MMD, localised {about}")


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
        As in :func:`localized_contrast`.
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
    z, s, kernel_z, kernel_s = rows_and_kernels(z, s, kernel_z, kernel_s, what=WHAT)
    return _smoothed(z, s, weight, kernel_z, kernel_s, "squared norm of the smoothed conditional deviation")


def fixed_head_contrast(
    z: Any,
    s: Any,
    head: KnownHead,
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
    >>> c = fixed_head_contrast([0.0, 1.0], [0.0, 1.0], AffineHead([2.0]), kernel_z=Linear(), kernel_s=Linear())
    >>> c.value, c.bounded
    (0.25, 0.25)
    """
    z, s, kernel_z, kernel_s = rows_and_kernels(z, s, kernel_z, kernel_s, what=WHAT)
    norm, scores, dependence = _head(head, z, s, kernel_z, kernel_s)
    return Certificate(
        value=norm**2 * dependence,
        bounds="squared norm of the smoothed gap of the head",
        bounded=float(hsic(scores, s, Linear(), kernel_s)),
        assumes=(ON_THESE_ROWS,),
        trivial=float(scores.var(correction=0)) * _largest_variance(kernel_s, s),
        trivial_because="Cauchy-Schwarz between the scores and the features of s",
        details={"n": z.shape[0], "hsic": dependence, "norm": norm},
    )


def bilinear_contrast(
    z: Any,
    s: Any,
    head: KnownHead,
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
    >>> g = KernelExpansion([1.0], centers=[[1.0]])
    >>> c = bilinear_contrast([0.0, 1.0], [0.0, 1.0], AffineHead([2.0]), g, kernel_z=Linear(), kernel_s=Linear())
    >>> c.value, c.bounded
    (0.25, 0.25)
    """
    z, s, kernel_z, kernel_s = rows_and_kernels(z, s, kernel_z, kernel_s, what=WHAT)
    norm, scores, dependence = _head(head, z, s, kernel_z, kernel_s)
    g, size = weight.values(kernel_s, s), weight.norm(kernel_s, s)
    covariance = float((g - g.mean()) @ (scores - scores.mean())) / z.shape[0]
    return Certificate(
        value=norm**2 * size**2 * dependence,
        bounds="squared covariance of the head and the function of s",
        bounded=covariance**2,
        assumes=(ON_THESE_ROWS,),
        trivial=float(scores.var(correction=0) * g.var(correction=0)),
        trivial_because="Cauchy-Schwarz between the scores and the function of s",
        details={"n": z.shape[0], "hsic": dependence, "norm": norm, "weight_norm": size},
    )


def _point(value: Any, s: Tensor, name: str) -> Tensor:
    row = torch.as_tensor(value, dtype=torch.float64, device=s.device).reshape(1, -1)
    if row.shape[1] != s.shape[1] or not bool(torch.isfinite(row).all()):
        raise ValueError(f"{name} is {value!r}; pass {s.shape[1]} finite number(s), one for each column of s.")
    return row


def _head(head: KnownHead, z: Tensor, s: Tensor, kernel_z: Kernel, kernel_s: Kernel) -> tuple[float, Tensor, float]:
    """Return the norm of a head, its scores, and HSIC under the kernel in whose RKHS it has that norm."""
    norm, scores, _ = evaluate(head, kernel_z, z)
    if scores is None or isinstance(head, UnknownHead):
        raise TypeError("this contrast is of one head; pass KernelExpansion, AffineHead or DeployedHead.")
    dependence = float(hsic(z, s, kernel_z, kernel_s))
    if isinstance(head, DeployedHead):
        dependence += float(hsic(scores, s, Linear(), kernel_s))
    return norm, scores, dependence


def _smoothed(
    z: Tensor, s: Tensor, weight: KernelExpansion, kernel_z: Kernel, kernel_s: Kernel, bounds: str
) -> Certificate:
    g, size = weight.values(kernel_s, s), weight.norm(kernel_s, s)
    n = z.shape[0]
    g = g - g.mean()
    dependence = float(hsic(z, s, kernel_z, kernel_s))
    return Certificate(
        value=size**2 * dependence,
        bounds=bounds,
        bounded=max(float(g @ gram_times(kernel_z.shifted, z, g)), 0.0) / n**2,
        assumes=(ON_THESE_ROWS,),
        trivial=float(g @ g) / n * _largest_variance(kernel_z, z),
        trivial_because="Cauchy-Schwarz between the function of s and the features of z",
        details={"n": n, "hsic": dependence, "weight_norm": size},
    )


def _largest_variance(kernel: Kernel, rows: Tensor) -> float:
    r"""Return a bound on the variance of functions of norm 1: :math:`\operatorname{tr}(\tilde K)/n`, or half of a
    bounded kernel's bound.

    A function of norm 1 varies by at most :math:`\sqrt{2 \sup k}` if k is not negative, and a variance is at
    most a quarter of the squared range.
    """
    return min(feature_spread(kernel, rows), kernel.bound / 2)
