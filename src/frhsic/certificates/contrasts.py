r"""How far the law of Z near a sensitive value is from its overall law: a bound by HSIC.

With :math:`\Delta(s) = \mu_{Z \mid S = s} - \mu_Z`, every average :math:`E_S[g(S) \Delta(S)]` equals
:math:`E[g(S) (k(Z, \cdot) - \mu_Z)]`. No conditional law is needed, and on a sample the bound holds with the biased
HSIC of the same sample. Use it for an attribute without ties.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from frhsic.certificates.certificate import ON_THESE_ROWS, Certificate, feature_spread, rows_and_kernels
from frhsic.dependence import hsic
from frhsic.dependence.operators import gram_times
from frhsic.kernels import Kernel


def localized_contrast(
    z: Any,
    s: Any,
    at: Any,
    versus: Any = None,
    *,
    kernel_z: Kernel | None = None,
    kernel_s: Kernel | None = None,
) -> Certificate:
    r"""Bound the squared MMD between the law of Z near a sensitive value and its overall law, or near two values.

    .. math:: \mathrm{MMD}^2(P_{s_0}, P_{s_1}) = \| E_S[g(S) \Delta(S)] \|^2 \le \|g\|^2 \; \mathrm{HSIC}(Z, S),
        \qquad g = \frac{k_S(\cdot, s_0)}{E\, k_S(S, s_0)} - \frac{k_S(\cdot, s_1)}{E\, k_S(S, s_1)}.

    :math:`P_{s_0}` is the law of Z with rows weighted by :math:`k_S(S, s_0)`, so that those near :math:`s_0` count
    most. If `versus` is None, the term of :math:`s_1` is left out and :math:`P_{s_1}` is the overall law of Z. The
    bound is large where few rows are near: it is divided by :math:`E\, k_S(S, s_0)`.

    Parameters
    ----------
    z, s
        Representation, of shape (n, d), and attribute, of shape (n,) or (n, q).
    at, versus
        Sensitive values :math:`s_0` and :math:`s_1`: a number, or q numbers.
    kernel_z, kernel_s
        Kernels; a Gaussian at the median distance where None. The one on s must not be negative.

    Raises
    ------
    ValueError
        If the weights of the rows are all zero, because every row is far away, or if some are negative.

    References
    ----------
    The paper, Corollary "Localized conditional-MMD control by HSIC". It has :math:`k_S(\cdot, s_0) - k_S(\cdot, s_1)`
    in place of g, which is not a difference of laws.

    Examples
    --------
    Two values that z copies, with linear kernels: near 1 is the row at 1 alone, half a unit from the mean; E k_S(S, 1)
    is 1/2, so the bound is 4 times an HSIC of 1/16.

    >>> from frhsic.kernels import Linear
    >>> c = localized_contrast([0.0, 1.0], [0.0, 1.0], 1.0, kernel_z=Linear(), kernel_s=Linear())
    >>> c.value, c.bounded, c.details["weight_mean"]
    (0.25, 0.25, 0.5)
    """
    z, s, kernel_z, kernel_s = rows_and_kernels(z, s, kernel_z, kernel_s, what="a contrast")
    points = {"at": at} if versus is None else {"at": at, "versus": versus}
    centers = torch.cat([_point(value, s, name) for name, value in points.items()])
    weights = kernel_s(s, centers)
    means = weights.mean(0)
    if float(weights.min()) < 0 or float(means.min()) <= 0:
        raise ValueError(
            f"the weights k_S(s, {at if versus is None else (at, versus)}) of the rows are all zero, or some are "
            "negative. Pass a value that is nearer to rows, and a kernel on s that is not negative."
        )
    b = means.new_tensor([1.0, -1.0])[: len(centers)] / means  # g = Σ b_j k_S(c_j, ·)
    norm = math.sqrt(max(float(b @ kernel_s(centers, centers) @ b), 0.0))
    values = weights @ b
    values = values - values.mean()
    n, dependence = z.shape[0], float(hsic(z, s, kernel_z, kernel_s))
    about = "its overall law" if versus is None else "that near another"
    spread = largest_variance(kernel_z, z) * float(values @ values) / n
    furthest = 2 * kernel_z.bound, "no two laws are further apart under a kernel that is not negative"
    trivial, because = min(furthest, (spread, "Cauchy-Schwarz between the features of z and the function of s"))
    return Certificate(
        value=norm**2 * dependence,
        bounds=f"squared MMD between the law of z near a value of s and {about}",
        bounded=max(float(values @ gram_times(kernel_z.shifted, z, values)), 0.0) / n**2,
        assumes=(ON_THESE_ROWS,),
        trivial=trivial,
        trivial_because=because,
        details={"n": n, "hsic": dependence, "weight_norm": norm, "weight_mean": float(means[0])},
    )


def _point(value: Any, s: Tensor, name: str) -> Tensor:
    row = torch.as_tensor(value, dtype=torch.float64, device=s.device).reshape(1, -1)
    if row.shape[1] != s.shape[1] or not bool(torch.isfinite(row).all()):
        raise ValueError(f"{name} is {value!r}; pass {s.shape[1]} finite number(s), one for each column of s.")
    return row


def largest_variance(kernel: Kernel, rows: Tensor) -> float:
    r"""Return a bound on the variance of functions of norm 1: :math:`\operatorname{tr}(\tilde K)/n`, or half of a
    bounded kernel's bound.

    A function of norm 1 varies by at most :math:`\sqrt{2 \sup k}` if k is not negative, and a variance is at
    most a quarter of the squared range.
    """
    return min(feature_spread(kernel, rows), kernel.bound / 2)
