r"""Contrasts between the conditional distributions of Z, smoothed over S, for an attribute without
ties.

With :math:`\Delta(s) = \mu_{Z \mid S = s} - \mu_Z`, every average :math:`E_S[g(S) \Delta(S)]`
equals :math:`E[g(S) (k(Z, \cdot) - \mu_Z)]`. No conditional distribution is needed, and in a
sample, each bound holds with the biased HSIC of the same sample. All contrasts are zero if Z is
independent of S. :func:`localized_contrast` is the most useful case.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from frhsic import _tensors
from frhsic.dependence import hsic
from frhsic.kernels import Kernel
from frhsic_paper.certificates import ON_THESE_ROWS, Certificate, feature_spread, rows_and_kernels
from frhsic_paper.products import gram_times


@dataclass(frozen=True, eq=False)
class KernelExpansion:
    r"""A function given by coefficients, :math:`f = \sum_i a_i\, k(c_i, \cdot)` with
    :math:`\|f\|^2 = a^\top K_{cc}\, a`.

    Kernel ridge regression, support vector machines and Gaussian processes give such heads.

    Parameters
    ----------
    coefficients
        :math:`a`, of shape (c,).
    centers
        Rows :math:`c_i`, of shape (c, d); by default, the rows of the sample.

    Examples
    --------
    >>> from frhsic.kernels import Linear
    >>> f = KernelExpansion([2.0], centers=[[3.0]])
    >>> f.norm(Linear(), torch.zeros(1, 1)), f.values(Linear(), torch.tensor([[1.0], [5.0]]))
    (6.0, tensor([ 6., 30.], dtype=torch.float64))
    """

    coefficients: Any
    centers: Any = None

    def _parts(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        a = _tensors.vector(self.coefficients, "coefficients").to(rows.device, torch.float64)
        given = rows if self.centers is None else _tensors.matrix(self.centers, "centers")
        centers = given.to(rows.device, torch.float64)
        if a.shape[0] != centers.shape[0]:
            raise ValueError(
                f"there are {a.shape[0]} coefficients and {centers.shape[0]} centers; pass one"
                " coefficient for each center."
            )
        if centers.shape[1] != rows.shape[1]:
            raise ValueError(
                f"centers have {centers.shape[1]} columns, but the sample has {rows.shape[1]}; pass"
                " centers with the columns of the sample."
            )
        return a, centers

    def norm(self, kernel: Kernel, rows: Tensor) -> float:
        """Return the norm in the RKHS of `kernel`; `rows` are the default centers."""
        a, centers = self._parts(rows)
        return math.sqrt(max(float(a @ gram_times(kernel, centers, a)), 0.0))

    def values(self, kernel: Kernel, rows: Tensor) -> Tensor:
        """Return the values at `rows`, of shape (n,)."""
        a, centers = self._parts(rows)
        return gram_times(kernel, rows.to(torch.float64), a, y=centers)


def localized_contrast(
    z: Any,
    s: Any,
    at: Any,
    versus: Any = None,
    *,
    kernel_z: Kernel | None = None,
    kernel_s: Kernel | None = None,
) -> Certificate:
    r"""Bound the squared MMD between the distribution of Z near a sensitive value and its overall
    distribution, or its distribution near another value.

    .. math:: \mathrm{MMD}^2(P_{s_0}, P_{s_1}) = \| E_S[g(S) \Delta(S)] \|^2 \le \|g\|^2 \;
        \mathrm{HSIC}(Z, S),
        \qquad g = \frac{k_S(\cdot, s_0)}{E\, k_S(S, s_0)} - \frac{k_S(\cdot, s_1)}{E\, k_S(S,
        s_1)}.

    :math:`P_{s_0}` is the distribution of Z with rows weighted by :math:`k_S(S, s_0)`, so that rows
    near :math:`s_0` have the largest weights. If `versus` is None, the term of :math:`s_1` is left
    out and :math:`P_{s_1}` is the overall distribution of Z. The bound is divided by :math:`E\,
    k_S(S, s_0)`, so it is large if few rows are near :math:`s_0`.

    Parameters
    ----------
    z, s
        Representation, of shape (n, d), and attribute, of shape (n,) or (n, q).
    at, versus
        Sensitive values :math:`s_0` and :math:`s_1`: a number, or q numbers.
    kernel_z, kernel_s
        Kernels; None uses a Gaussian with the median distance as bandwidth. The kernel on s must be
        nonnegative.

    Raises
    ------
    ValueError
        If the weights of the rows are all zero, because every row is far away, or if some are
        negative.

    References
    ----------
    The paper, Corollary "Localized conditional-MMD control by HSIC". It has :math:`k_S(\cdot, s_0)
    - k_S(\cdot, s_1)` in place of g, which is not a difference between distributions.

    Examples
    --------
    Two values, z = s and linear kernels: only the row at 1 has a positive weight near 1, and it is
    half a unit from the mean; E k_S(S, 1) is 1/2, so the bound is 4 times an HSIC of 1/16.

    >>> from frhsic.kernels import Linear
    >>> c = localized_contrast([0.0, 1.0], [0.0, 1.0], 1.0, kernel_z=Linear(), kernel_s=Linear())
    >>> c.value, c.bounded, c.details["weight_mean"]
    (0.25, 0.25, 0.5)
    """
    z, s, kernel_z, kernel_s = rows_and_kernels(z, s, kernel_z, kernel_s)
    centers = torch.cat([_point(value, s) for value in (at, versus) if value is not None])
    weights = kernel_s(s, centers)
    means = weights.mean(0)
    if float(weights.min()) < 0 or float(means.min()) <= 0:
        raise ValueError(
            f"the weights k_S(s, {at if versus is None else (at, versus)}) of the rows are all"
            " zero, or some are negative. Pass a value closer to the observed values of s, or a"
            " nonnegative kernel on s."
        )
    g = KernelExpansion(means.new_tensor([1.0, -1.0])[: len(centers)] / means, centers)
    about = "its overall law" if versus is None else "that near another"
    bounds = f"squared MMD between the law of z near a value of s and {about}"
    contrast = _contrast(z, s, kernel_z, kernel_s, bounds, g)
    furthest = (
        2 * kernel_z.bound,
        "no two laws are further apart under a kernel that is not negative",
    )
    trivial, because = min(furthest, (contrast.trivial, contrast.trivial_because))
    details = {**contrast.details, "weight_mean": float(means[0])}
    return replace(contrast, trivial=trivial, trivial_because=because, details=details)


def smoothed_contrast(
    z: Any,
    s: Any,
    weight: KernelExpansion,
    *,
    kernel_z: Kernel | None = None,
    kernel_s: Kernel | None = None,
) -> Certificate:
    r"""Bound a smoothed deviation of the conditional distributions, :math:`\|E_S[g(S)
    \Delta(S)]\|^2 \le \|g\|^2\, \mathrm{HSIC}(Z, S)`.

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
    >>> from frhsic.kernels import Linear
    >>> g = KernelExpansion([1.0], centers=[[2.0]])
    >>> c = smoothed_contrast([0.0, 1.0], [0.0, 1.0], g, kernel_z=Linear(), kernel_s=Linear())
    >>> c.value, c.bounded
    (0.25, 0.25)
    """
    rows = rows_and_kernels(z, s, kernel_z, kernel_s)
    return _contrast(*rows, "squared norm of the smoothed conditional deviation", weight)


def _contrast(
    z: Tensor, s: Tensor, kernel_z: Kernel, kernel_s: Kernel, bounds: str, weight: KernelExpansion
) -> Certificate:
    """Bound the contrast of a function of s; the trivial bound is that of Cauchy and Schwarz."""
    n = z.shape[0]
    dependence = float(hsic(z, s, kernel_z, kernel_s))
    norm = weight.norm(kernel_s, s)
    g = weight.values(kernel_s, s)
    g = g - g.mean()
    # functions of norm 1 vary by at most √(2 sup k) if k is nonnegative, and a variance is at most
    # a quarter of the squared range
    variance_z = min(feature_spread(kernel_z, z), kernel_z.bound / 2)
    return Certificate(
        value=norm**2 * dependence,
        bounds=bounds,
        bounded=max(float(g @ gram_times(kernel_z.shifted, z, g)), 0.0) / n**2,
        assumes=(ON_THESE_ROWS,),
        trivial=variance_z * float(g @ g) / n,
        trivial_because="Cauchy-Schwarz between the features of z and the function of s",
        details={"n": n, "hsic": dependence, "weight_norm": norm},
    )


def _point(value: Any, s: Tensor) -> Tensor:
    row = torch.as_tensor(value, dtype=torch.float64, device=s.device).reshape(1, -1)
    if row.shape[1] != s.shape[1] or not bool(torch.isfinite(row).all()):
        raise ValueError(
            f"the value of s is {value!r}; pass one finite number for each column of s"
            f" ({s.shape[1]})."
        )
    return row
