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
from frhsic.certificates.certificate import ON_THESE_ROWS, Certificate, Detail, rows_and_kernels
from frhsic.certificates.directions import (
    DirectionRule,
    NumericalRank,
    SensitiveDirections,
    leading_directions,
    symmetrized,
)
from frhsic.certificates.heads import DeployedHead, Head, KernelExpansion, UnknownHead, evaluate, feature_spread
from frhsic.dependence import hsic
from frhsic.dependence.operators import gram_times
from frhsic.kernels import Kernel, Linear
from frhsic.parity import gdp

Form = Literal["tight", "trace", "published"]


@dataclass(frozen=True, kw_only=True, eq=False)
class GapCertificate(Certificate):
    """A bound on the gap of heads, with the head whose gap equals the tight form.

    Attributes
    ----------
    worst_head
        The head of the given norm with the largest gap, as coefficients on the rows of the sample. With a
        :class:`DeployedHead` they expand in the kernel f(z) f(z') + k_Z(z, z').
    worst_scores
        Its scores at the rows of the sample, of shape (n,).
    directions
        The directions of S along which gaps are measured.
    """

    worst_head: KernelExpansion
    worst_scores: Tensor
    directions: SensitiveDirections

    def gap(self, scores: Any) -> float:
        """Return the mean squared gap of any scores on the same rows, along the same directions."""
        values = _arrays.vector(scores, "scores").to(self.directions.vectors)
        if values.shape[0] != self.directions.vectors.shape[0]:
            raise ValueError(f"{values.shape[0]} scores were given for {self.directions.vectors.shape[0]} rows.")
        return self.directions.squared_gap(values)


def gdp_certificate(
    z: Any,
    s: Any,
    *,
    kernel_z: Kernel | None = None,
    kernel_s: Kernel | None = None,
    head: Head | None = None,
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
    head
        :class:`UnknownHead` (the default, with norm 1), :class:`KernelExpansion`, :class:`AffineHead` (the
        kernel on z must have a linear part) or :class:`DeployedHead` (adds f(z) f(z') to the kernel; norm at
        most 1).
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

    >>> from frhsic.certificates import AffineHead
    >>> z = s = [0.0, 0.0, 1.0, 1.0]
    >>> c = gdp_certificate(z, s, kernel_z=Linear(), kernel_s=Linear(), head=AffineHead([1.0]))
    >>> round(c.value, 12), round(c.bounded, 12), c.details["directions"], round(c.details["published"], 12)
    (0.25, 0.25, 1, 0.25)
    """
    require_form(form)
    z, s, kernel_z, kernel_s = rows_and_kernels(z, s, kernel_z, kernel_s, device=device, what="a gap certificate")
    n = z.shape[0]
    head = UnknownHead() if head is None else head
    norm, scores, about = evaluate(head, kernel_z, z)
    along = leading_directions(kernel_s, s, NumericalRank() if directions is None else directions)

    deployed = scores if isinstance(head, DeployedHead) and scores is not None else z.new_zeros(n)
    in_kernel = deployed - deployed.mean()
    small, spread = _projected_gram(kernel_z, z, in_kernel, along)
    sizes, rotations = torch.linalg.eigh(small)
    dependence = float(hsic(z, s, kernel_z, kernel_s))
    if isinstance(head, DeployedHead):  # HSIC of a sum of kernels is the sum of the two
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
    bound = kernel_z.bound / 2 if kernel_z.bounded and not isinstance(head, DeployedHead) else math.inf
    trivial, because = norm**2 * min(spread, bound), "the variance of any head of this norm is no larger"
    bounded = norm**2 * forms["tight"]
    if scores is not None:
        bounded = along.squared_gap(scores)
        variance = float(scores.var(correction=0))
        details |= {
            "head_gap": bounded,
            "head_absolute_gap": along.absolute_gap(scores),
            "scores_variance": variance,
            "unresolved": 1 - bounded / variance if variance > 0 else 0.0,
        }
        if s.shape[1] == 1:
            details["gdp"] = float(gdp(scores, s, resamples=0))
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
        worst_head=KernelExpansion(worst, z),
        worst_scores=gram_times(kernel_z, z, worst) + deployed * (in_kernel @ worst),
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


def require_form(form: str) -> None:
    """Raise unless the form is one of the three."""
    if form not in get_args(Form):
        raise ValueError(f"form is {form!r}; pass 'tight', 'trace' or 'published'.")
