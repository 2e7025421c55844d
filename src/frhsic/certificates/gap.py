r"""The finite-sample theorem: HSIC bounds the gap of every head of a given norm.

Write :math:`\delta` for the centred scores of a head :math:`f` and :math:`P_m` for the projection on the m
leading eigenvectors of :math:`\tilde L / n`. The gap is :math:`\|P_m \delta\|^2 / n`: the part of the
variance of the scores that S explains along those directions. Its root bounds the mean absolute gap. Then

.. math:: \frac1n \|P_m \delta\|^2
    \le \frac{\|f\|^2}{n} \lambda_{\max}(P_m \tilde K P_m)
    \le \frac{\|f\|^2}{n} \operatorname{tr}(P_m \tilde K P_m)
    \le \frac{\|f\|^2}{\hat\lambda_m} \widehat{\mathrm{HSIC}}.

The last is the paper's Theorem "Finite-sample control", the second a step of its proof. The first, the *tight* form,
is an equality for one head of that norm, which the certificate contains:
:math:`u^\top \delta = \langle f, \sum_i u_i k(z_i, \cdot) \rangle` for every centred u, and the supremum of
:math:`\|P_m \delta\|` over the ball is the largest singular value of that map.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, get_args

import torch
from torch import Tensor

from frhsic import _arrays
from frhsic.certificates.certificate import ON_THESE_ROWS, Certificate, Detail, feature_spread, rows_and_kernels
from frhsic.certificates.directions import (
    DirectionRule,
    NumericalRank,
    SensitiveDirections,
    leading_directions,
    symmetrized,
)
from frhsic.dependence import hsic
from frhsic.dependence.operators import gram_times
from frhsic.kernels import Kernel, Linear
from frhsic.parity import gdp

Form = Literal["tight", "trace", "published"]


@dataclass(frozen=True, kw_only=True, eq=False)
class GapCertificate(Certificate):
    r"""A bound on the gap of heads, with the head whose gap equals the tight form.

    Attributes
    ----------
    worst_coefficients
        Coefficients a of the head :math:`\sum_i a_i k(z_i, \cdot)` of the given norm with the largest gap, of shape
        (n,). If scores were put into the kernel, they expand in f(z) f(z') + k_Z(z, z').
    worst_scores
        Its scores at the rows of the sample, of shape (n,).
    directions
        The directions of S along which gaps are measured.
    """

    worst_coefficients: Tensor
    worst_scores: Tensor
    directions: SensitiveDirections

    def gap(self, scores: Any) -> float:
        """Return the mean squared gap of any scores on the same rows, along the same directions."""
        return self.directions.squared_gap(_scores(scores, self.directions.vectors))


def gdp_certificate(
    z: Any,
    s: Any,
    *,
    kernel_z: Kernel | None = None,
    kernel_s: Kernel | None = None,
    scores: Any = None,
    norm: float | None = None,
    form: Form = "tight",
    directions: DirectionRule | None = None,
    device: torch.device | str | None = None,
) -> GapCertificate:
    r"""Bound the gap :math:`\|P_m \delta_f\|^2 / n` of a head, or of every head of a norm, on these rows.

    .. math:: \|f\|^2 \lambda_{\max}(P_m \tilde K P_m)/n \;\le\; \|f\|^2 \operatorname{tr}(P_m \tilde K P_m)/n
        \;\le\; \|f\|^2\, \widehat{\mathrm{HSIC}} / \hat\lambda_m

    for ``form`` "tight", "trace" and "published". Zero means that no head of that kind depends on S along the
    directions. Use it for heads that are not known yet and, on held-out rows, for rows that were not in the training
    set. The gap of a known head needs no bound: it is in `bounded`. Computed in float64 with O(n m) memory.

    Parameters
    ----------
    z
        Representation, of shape (n, d).
    s
        Sensitive attribute, of shape (n,) or (n, q).
    kernel_z, kernel_s
        Kernels; a Gaussian at the median distance where None.
    scores
        Scores :math:`f(z_i)` of one head, of shape (n,). Without `norm` the head is put into the kernel,
        :math:`f(z) f(z') + k_Z(z, z')`, where every head has norm at most 1. Use it for networks and other heads
        without a known norm. Every sum of a multiple of f and a function of the RKHS of k is then bounded too.
    norm
        :math:`\|f\|` in the RKHS of the kernel on z: of the head with these scores, or of all heads that are bounded, 1
        if not given. For :math:`f = \sum_i a_i k(c_i, \cdot)` (kernel ridge regression, support vector machines) it is
        :math:`(a^\top K_{cc}\, a)^{1/2}`. For an affine head it is at most the length of the weights, under kernels
        with a linear part; the RKHS of a Gaussian contains no affine head.
    form
        The bound to use as the value; all three are in the details.
    directions
        Rule for the number m of directions of S: :class:`NumericalRank` (the default, at 1e-6),
        :class:`VarianceShare`, or a number fixed beforehand.
    device
        Where to compute; that of the data if None.

    Returns
    -------
    GapCertificate
        The details contain m, the eigenvalues, HSIC, the three forms for norm 1 as `tight`, `trace` and `published`,
        the root of the value, and the trace form expected if s were shuffled. For a known head they also contain its
        norm, its squared and absolute gap along the directions, `gdp` of its scores (for one attribute), and the share
        of their variance that the m directions do not explain.

    References
    ----------
    The paper, Theorem "Finite-sample control of the empirical demographic-parity gap by HSIC", and its proof.

    Examples
    --------
    A binary attribute has one direction; there the three forms are equal. With z = s in {0, 1} and the linear
    kernel, the head f(z) = z has norm 1, and all of its variance, 1/4, is its gap.

    >>> z = s = [0.0, 0.0, 1.0, 1.0]
    >>> c = gdp_certificate(z, s, kernel_z=Linear(), kernel_s=Linear(), scores=z, norm=1.0)
    >>> round(c.value, 12), round(c.bounded, 12), c.details["directions"], round(c.details["published"], 12)
    (0.25, 0.25, 1, 0.25)
    """
    require_form(form)
    z, s, kernel_z, kernel_s = rows_and_kernels(z, s, kernel_z, kernel_s, device=device, what="a gap certificate")
    n = z.shape[0]
    f = None if scores is None else _scores(scores, z)
    deployed = None if norm is not None else f
    about = "the head" if f is not None else f"every head of norm {1.0 if norm is None else norm:g}"
    norm = 1.0 if norm is None else norm
    _arrays.require_positive(norm, "norm")
    along = leading_directions(kernel_s, s, NumericalRank() if directions is None else directions)

    in_kernel = z.new_zeros(n) if deployed is None else deployed - deployed.mean()
    small, spread = _projected_gram(kernel_z, z, in_kernel, along)
    sizes, rotations = torch.linalg.eigh(small)
    dependence = float(hsic(z, s, kernel_z, kernel_s))
    if deployed is not None:  # HSIC of a sum of kernels is the sum of the two
        dependence += float(hsic(in_kernel, s, Linear(), kernel_s))
    forms = {
        "tight": max(float(sizes[-1]), 0.0) / n,
        "trace": max(float(small.trace()), 0.0) / n,
        "published": dependence / float(along.eigenvalues[-1]),
    }
    # f = Σ v_i k(z_i, ·) / √μ for the unit vector v = E u of the largest eigenvalue μ: norm 1, and P_m δ = √μ v
    largest = float(sizes[-1])
    worst = along.vectors @ rotations[:, -1] * (norm / math.sqrt(largest) if largest > 0 else 0.0)
    details: dict[str, Detail] = {
        "n": n,
        "directions": along.count,
        "eigenvalues": tuple(along.eigenvalues.tolist()),
        "eigenvalue_error": along.error,
        "hsic": dependence,
        "norm": norm,
        **forms,
        "root": norm * math.sqrt(forms[form]),
        "trace_if_shuffled": along.count * spread / (n - 1),
    }
    bound = kernel_z.bound / 2 if kernel_z.bounded and deployed is None else math.inf
    trivial, because = norm**2 * min(spread, bound), "the variance of any head of this norm is no larger"
    bounded = norm**2 * forms["tight"]
    if f is not None:
        bounded = along.squared_gap(f)
        variance = float(f.var(correction=0))
        details |= {
            "head_gap": bounded,
            "head_absolute_gap": along.absolute_gap(f),
            "scores_variance": variance,
            "unresolved": 1 - bounded / variance if variance > 0 else 0.0,
        }
        if s.shape[1] == 1:
            details["gdp"] = float(gdp(f, s, resamples=0))
        trivial, because = variance, "the gap of the head is part of the variance of its scores"
    return GapCertificate(
        value=norm**2 * forms[form],
        bounds=f"mean squared gap of {about} along {along.count} directions of s",
        bounded=bounded,
        assumes=(
            ON_THESE_ROWS,
            f"the head has norm at most {norm:g} in the RKHS of the kernel on z",
            "the number of directions was set by the stated rule",
        ),
        trivial=trivial,
        trivial_because=because,
        details=details,
        worst_coefficients=worst,
        worst_scores=gram_times(kernel_z, z, worst) + (0 if deployed is None else deployed * (in_kernel @ worst)),
        directions=along,
    )


def _projected_gram(kernel: Kernel, z: Tensor, in_kernel: Tensor, along: SensitiveDirections) -> tuple[Tensor, float]:
    r"""Return :math:`E^\top \tilde K E` and :math:`\operatorname{tr}(\tilde K)/n` in one pass over the tiles.

    The columns of E are centred, so K less a constant gives the same.
    """
    e = along.vectors
    product = gram_times(kernel.shifted, z, torch.cat([e, torch.ones_like(e[:, :1])], dim=1))
    head = e.T @ in_kernel
    small = e.T @ product[:, :-1] + head[:, None] * head[None, :]
    n = z.shape[0]
    spread = feature_spread(kernel, z, product[:, -1]) + float(in_kernel @ in_kernel) / n
    return symmetrized(small), spread


def _scores(scores: Any, rows: Tensor) -> Tensor:
    """Return one score for each of the rows."""
    values = _arrays.vector(scores, "scores").detach().to(rows)
    if values.shape[0] != rows.shape[0]:
        raise ValueError(f"lengths differ: {values.shape[0]} scores came for {rows.shape[0]} rows.")
    return values


def require_form(form: str) -> None:
    """Raise unless the form is one of the three."""
    if form not in get_args(Form):
        raise ValueError(f"form is {form!r}; pass 'tight', 'trace' or 'published'.")
