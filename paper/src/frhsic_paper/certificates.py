r"""Bounds with their assumptions: the guarantees of HSIC about gaps, conditional distributions and
the population.

:func:`gdp_certificate` is the finite-sample theorem: HSIC bounds the gap of every head with a given
norm. Write :math:`\delta` for the centered scores of a head :math:`f` and :math:`P_m` for the
projection onto the m leading eigenvectors of :math:`\tilde L / n`. The gap is :math:`\|P_m
\delta\|^2 / n`: the part of the variance of the scores that S explains along those directions. Its
square root bounds the mean absolute gap. Then

.. math:: \frac1n \|P_m \delta\|^2
    \le \frac{\|f\|^2}{n} \lambda_{\max}(P_m \tilde K P_m)
    \le \frac{\|f\|^2}{n} \operatorname{tr}(P_m \tilde K P_m)
    \le \frac{\|f\|^2}{\hat\lambda_m} \widehat{\mathrm{HSIC}}.

The last inequality is the paper's Theorem "Finite-sample control", and the second is a step of its
proof. The first, the *tight* form, is an equality for one head with that norm, which the
certificate contains: :math:`u^\top \delta = \langle f, \sum_i u_i k(z_i, \cdot) \rangle` for every
centered u, and the supremum of :math:`\|P_m \delta\|` over the ball is the largest singular value
of that map.

The number m must be set by a rule that doesn't depend on the bound; the smallest bound over all m
would not be valid.

:func:`held_out_bound` is for nonnegative kernels with unit diagonal that were fixed before the rows
were drawn. Under such kernels, HSIC is between 0 and 1/4, both in a sample and in the population:
with :math:`\kappa = E k(Z, Z')`, :math:`\mathrm{HSIC}(Z, Z) = E k^2 - 2 E_Z (E_{Z'} k)^2 + \kappa^2
\le \kappa - \kappa^2 \le 1/4`, and :math:`\mathrm{HSIC}(Z, S)^2 \le \mathrm{HSIC}(Z, Z)\,
\mathrm{HSIC}(S, S)`. A bound at or above 1/4 is vacuous.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import torch
from torch import Tensor

from frhsic import _arrays, _tensors
from frhsic.dependence import hsic
from frhsic.dependence.inputs import kernel_or_median, paired_rows
from frhsic.kernels import Kernel, Linear
from frhsic.parity import gdp
from frhsic_paper.directions import (
    DirectionRule,
    NumericalRank,
    SensitiveDirections,
    leading_directions,
    symmetrize,
)
from frhsic_paper.products import gram_times

Detail = float | int | tuple[float, ...]
"""A value of :attr:`Certificate.details`: a number or a tuple of numbers."""

ON_THESE_ROWS = "none on the law of the rows: it holds on these rows"


@dataclass(frozen=True, kw_only=True)
class Certificate:
    """A bound with its assumptions.

    Attributes
    ----------
    value
        The bound, also given by ``float(certificate)``.
    bounds
        A description of the bounded quantity.
    bounded
        The measured value of that quantity, or None if it is not known.
    confidence
        Probability with which the bound holds; 1 if it holds for every dataset.
    assumes
        The assumptions, one statement each.
    trivial
        A bound on the same quantity that doesn't need the theorem; None for identities.
    trivial_because
        The reason for `trivial`.
    details
        The numbers from which the value was computed.

    Examples
    --------
    >>> c = Certificate(
    ...     value=0.3, bounds="a gap", bounded=0.1, trivial=0.25, trivial_because="scores in [0, 1]"
    ... )
    >>> float(c), round(c.tightness, 3), c.vacuous
    (0.3, 3.0, True)
    >>> print(c)
    a gap <= 0.3 (measured 0.1; vacuous, since it is always at most 0.25: scores in [0, 1])
    """

    value: float
    bounds: str
    bounded: float | None = None
    confidence: float = 1.0
    assumes: tuple[str, ...] = ()
    trivial: float | None = None
    trivial_because: str = ""
    details: Mapping[str, Detail] = field(default_factory=dict)

    def __float__(self) -> float:
        return self.value

    @property
    def tightness(self) -> float | None:
        """The bound divided by the bounded quantity: 1 if it is exact, None if the quantity is not
        known.
        """
        if self.bounded == 0:
            return 1.0 if self.value == 0 else math.inf
        return None if self.bounded is None else self.value / self.bounded

    @property
    def vacuous(self) -> bool:
        """Whether the bound is no better than `trivial`, which always holds."""
        return self.trivial is not None and self.value >= self.trivial

    def __str__(self) -> str:
        notes = [] if self.bounded is None else [f"measured {self.bounded:.6g}"]
        if self.confidence < 1:
            notes.append(f"with probability at least {self.confidence:g}")
        if self.vacuous:
            notes.append(
                f"vacuous, since it is always at most {self.trivial:.6g}: {self.trivial_because}"
            )
        return f"{self.bounds} <= {self.value:.6g}" + (f" ({'; '.join(notes)})" if notes else "")


def rows_and_kernels(
    z: Any,
    s: Any,
    kernel_z: Kernel | None,
    kernel_s: Kernel | None,
) -> tuple[Tensor, Tensor, Kernel, Kernel]:
    """Return z and s as detached float64 matrices, and their kernels; None is replaced with a
    Gaussian whose bandwidth is the median distance.
    """
    pair = paired_rows(z, s, where=None, device=None, least=2, what="a certificate")
    z, s = (x.detach().to(torch.float64) for x in pair)
    return z, s, kernel_or_median(kernel_z, z, "z"), kernel_or_median(kernel_s, s, "s")


def feature_spread(kernel: Kernel, rows: Tensor, row_sums: Tensor | None = None) -> float:
    r"""Return the variance of the rows in feature space, :math:`\operatorname{tr}(\tilde K)/n`.

    Parameters
    ----------
    kernel, rows
        The kernel and the rows, of shape (n, d).
    row_sums
        Row sums of `kernel.shifted`, if already computed.
    """
    n = rows.shape[0]
    if row_sums is None:
        row_sums = gram_times(kernel.shifted, rows, torch.ones_like(rows[:, 0]))
    return max(
        float((kernel.diagonal(rows) - kernel.offset).mean()) - float(row_sums.sum()) / n**2, 0.0
    )


Form = Literal["tight", "trace", "published"]


@dataclass(frozen=True, kw_only=True, eq=False)
class GapCertificate(Certificate):
    r"""A bound on the gap of heads, and the head whose gap equals the tight form.

    Attributes
    ----------
    worst_coefficients
        Coefficients a of the head :math:`\sum_i a_i k(z_i, \cdot)` with the largest gap for the
        given norm, of shape (n,). If the kernel includes scores, the coefficients refer to f(z)
        f(z') + k_Z(z, z').
    worst_scores
        Its scores on the rows of the sample, of shape (n,).
    directions
        The directions of S along which the gaps are measured.
    """

    worst_coefficients: Tensor
    worst_scores: Tensor
    directions: SensitiveDirections

    def gap(self, scores: Any) -> float:
        """Return the mean squared gap of any scores on the same rows, along the same directions."""
        return self.directions.gaps(_scores(scores, self.directions.vectors))[0]


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
) -> GapCertificate:
    r"""Bound the gap :math:`\|P_m \delta_f\|^2 / n` of a head, or of every head with a given norm,
    on these rows.

    .. math:: \|f\|^2 \lambda_{\max}(P_m \tilde K P_m)/n \;\le\; \|f\|^2 \operatorname{tr}(P_m
        \tilde K P_m)/n
        \;\le\; \|f\|^2\, \widehat{\mathrm{HSIC}} / \hat\lambda_m

    for ``form`` "tight", "trace" and "published". Zero means that no such head depends on S along
    the directions. Use it for heads that are not known yet and, with held-out rows, for rows that
    were not in the training set. The gap of a known head doesn't need a bound: it is in `bounded`.
    Computed in float64 with O(n m) memory.

    Parameters
    ----------
    z
        Representation, of shape (n, d).
    s
        Sensitive attribute, of shape (n,) or (n, q).
    kernel_z, kernel_s
        Kernels; None uses a Gaussian with the median distance as bandwidth.
    scores
        Scores :math:`f(z_i)` of one head, of shape (n,). Without `norm`, the head is included in
        the kernel, :math:`f(z) f(z') + k_Z(z, z')`, so that its norm is at most 1. Use this for
        networks and other heads without a known norm. The bound then also covers sums of a multiple
        of f and a function in the RKHS of k.
    norm
        :math:`\|f\|` in the RKHS of the kernel on z: the norm of the head with these scores or,
        without scores, of all heads that are bounded (1 by default). For :math:`f = \sum_i a_i
        k(c_i, \cdot)` (kernel ridge regression, support vector machines) it is :math:`(a^\top
        K_{cc}\, a)^{1/2}`. For an affine head it is at most the length of the weight vector, for
        kernels with a linear part; the RKHS of a Gaussian contains no affine head.
    form
        The bound used as the value; all three are in the details.
    directions
        Rule for the number m of directions of S: :class:`NumericalRank` (the default, at 1e-6),
        :class:`VarianceShare`, or a number fixed in advance.

    Returns
    -------
    GapCertificate
        The details contain m, the eigenvalues, HSIC, the three forms for norm 1 as `tight`, `trace`
        and `published`, the square root of the value, and the expected trace form for shuffled s.
        For a known head they also contain its norm, its squared and absolute gap along the
        directions, `gdp` of its scores (for one attribute), and the share of their variance that is
        not explained by the m directions.

    References
    ----------
    The paper, Theorem "Finite-sample control of the empirical demographic-parity gap by HSIC", and
    its proof.

    Examples
    --------
    A binary attribute has one direction, for which the three forms are equal. With z = s in {0, 1}
    and the linear kernel, the head f(z) = z has norm 1, and its gap is its whole variance, 1/4.

    >>> z = s = [0.0, 0.0, 1.0, 1.0]
    >>> c = gdp_certificate(z, s, kernel_z=Linear(), kernel_s=Linear(), scores=z, norm=1.0)
    >>> (
    ...     round(c.value, 12),
    ...     round(c.bounded, 12),
    ...     c.details["directions"],
    ...     round(c.details["published"], 12),
    ... )
    (0.25, 0.25, 1, 0.25)
    """
    require_form(form)
    z, s, kernel_z, kernel_s = rows_and_kernels(z, s, kernel_z, kernel_s)
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
    if deployed is not None:  # HSIC under a sum of kernels is the sum of the two HSIC
        dependence += float(hsic(in_kernel, s, Linear(), kernel_s))
    forms = {
        "tight": max(float(sizes[-1]), 0.0) / n,
        "trace": max(float(small.trace()), 0.0) / n,
        "published": dependence / float(along.eigenvalues[-1]),
    }
    # f = Σ v_i k(z_i, ·) / √μ for the unit vector v = E u of the largest eigenvalue μ: norm 1, and
    # P_m δ = √μ v
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
    bound = kernel_z.bound / 2 if deployed is None else math.inf
    trivial, because = (
        norm**2 * min(spread, bound),
        "the variance of any head of this norm is no larger",
    )
    bounded = norm**2 * forms["tight"]
    if f is not None:
        (bounded, absolute), variance = along.gaps(f), float(f.var(correction=0))
        details |= {
            "head_gap": bounded,
            "head_absolute_gap": absolute,
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
        worst_scores=gram_times(kernel_z, z, worst)
        + (0 if deployed is None else deployed * (in_kernel @ worst)),
        directions=along,
    )


def _projected_gram(
    kernel: Kernel, z: Tensor, in_kernel: Tensor, along: SensitiveDirections
) -> tuple[Tensor, float]:
    r"""Return :math:`E^\top \tilde K E` and :math:`\operatorname{tr}(\tilde K)/n` in one pass over
    the tiles.

    The columns of E are centered, so subtracting a constant from K doesn't change the result.
    """
    e = along.vectors
    product = gram_times(kernel.shifted, z, torch.cat([e, torch.ones_like(e[:, :1])], dim=1))
    head = e.T @ in_kernel
    small = e.T @ product[:, :-1] + head[:, None] * head[None, :]
    n = z.shape[0]
    spread = feature_spread(kernel, z, product[:, -1]) + float(in_kernel @ in_kernel) / n
    return symmetrize(small), spread


def _scores(scores: Any, rows: Tensor) -> Tensor:
    """Return the scores, one for each row."""
    values = _tensors.vector(scores, "scores").detach().to(rows)
    if values.shape[0] != rows.shape[0]:
        raise ValueError(
            f"lengths differ: scores has {values.shape[0]} rows, the sample has {rows.shape[0]}."
            " Pass one score for each row."
        )
    return values


def require_form(form: str) -> None:
    """Raise an error unless the form is one of the three."""
    if form not in get_args(Form):
        raise ValueError(f"form is {form!r}; pass 'tight', 'trace' or 'published'.")


LARGEST_HSIC = 0.25
"""Largest possible HSIC of two kernels with values in [0, 1]."""

FIXED_KERNELS = "kernels with unit diagonal and their bandwidths fixed before the rows were drawn"


def held_out_bound(
    z: Any,
    s: Any,
    kernel_z: Kernel,
    kernel_s: Kernel,
    *,
    confidence: float = 0.95,
) -> Certificate:
    r"""Bound HSIC in the population, using held-out rows.

    With probability at least :math:`1 - \delta`, the `confidence`,

    .. math:: \sqrt{\mathrm{HSIC}} \;\le\;
        \frac{n}{n - 1} \Big( \sqrt{\widehat{\mathrm{HSIC}}} + \sqrt{\frac{3 \log(1/\delta)}{n}}
        \Big).

    The value is the square of the right-hand side. It is useful with a few thousand rows or more.

    Parameters
    ----------
    z, s
        Representation and attribute of rows that were not used to choose the encoder or the
        kernels.
    kernel_z, kernel_s
        Nonnegative kernels with unit diagonal, such as Gaussians; others, such as `Linear`, raise
        an error. Their bandwidths must come from other rows (the training rows), so None raises an
        error.
    confidence
        Probability :math:`1 - \delta` with which the bound holds.

    Notes
    -----
    Write :math:`\hat W = \frac{1}{2n^2} \sum_{ij} (\phi_i - \phi_j) \otimes (\psi_i - \psi_j)` for
    the cross-covariance operator of the sample: :math:`\|\hat W\|^2 = \widehat{\mathrm{HSIC}}` and
    :math:`E \hat W = (1 - 1/n) W` with :math:`\|W\|^2 = \mathrm{HSIC}`, so by Jensen's inequality
    :math:`(1 - 1/n) \|W\| \le E \|\hat W\|`. Replacing one row changes n - 1 pairs. Features of
    unit norm with non-negative products are at most :math:`\sqrt2` apart, and a pair changes by at
    most :math:`\sqrt6`:

    .. math:: \|a \otimes b - a' \otimes b'\|^2
        = \|a\|^2 \|b\|^2 + \|a'\|^2 \|b'\|^2 - 2 \langle a, a' \rangle \langle b, b' \rangle \le 6.

    Indeed :math:`\langle a, a' \rangle \ge p = (\|a\|^2 + \|a'\|^2)/2 - 1` because :math:`\|a -
    a'\|^2 \le 2`, and likewise :math:`\langle b, b' \rangle \ge q`. If p and q are not negative,
    the first two terms are at most :math:`4 + 4pq` and the whole at most :math:`4 + 2pq \le 6`; if
    one is negative, say p, the product is at least :math:`p \|b\| \|b'\| \ge 2p` and the whole at
    most :math:`4(1 + p) - 4p = 4`. So :math:`\|\hat W\|` changes by at most :math:`\sqrt6 / n`, and
    McDiarmid's inequality gives the second term.

    Examples
    --------
    >>> from frhsic.kernels import Gaussian
    >>> x = torch.arange(400.0) % 20
    >>> bound = held_out_bound(x, torch.arange(400.0) // 20, Gaussian(5.0), Gaussian(5.0))
    >>> round(bound.details["hsic"], 12), round(bound.value, 4), bound.vacuous
    (0.0, 0.0226, False)
    """
    _arrays.require_fraction(confidence, "confidence")
    for kernel, name in ((kernel_z, "kernel_z"), (kernel_s, "kernel_s")):
        if kernel is None or not kernel.unit_diagonal:
            raise ValueError(
                f"{name} is {kernel}; pass a kernel with unit diagonal whose bandwidth does not"
                " come from these rows, such as Gaussian(median_bandwidth(training rows))."
            )
    z, s, *_ = rows_and_kernels(z, s, kernel_z, kernel_s)
    n = z.shape[0]
    measured = max(float(hsic(z, s, kernel_z, kernel_s)), 0.0)
    deviation = math.sqrt(3 * math.log(1 / (1 - confidence)) / n)
    return hsic_certificate(
        (n / (n - 1) * (math.sqrt(measured) + deviation)) ** 2,
        "HSIC of z and s in the population",
        confidence,
        ("rows i.i.d. and independent of the encoder", FIXED_KERNELS, "kernels not negative"),
        {"n": n, "hsic": measured, "deviation": deviation},
    )


def hsic_certificate(
    value: float,
    bounds: str,
    confidence: float,
    assumes: tuple[str, ...],
    details: Mapping[str, Detail],
) -> Certificate:
    """Return a bound on HSIC under kernels with values in [0, 1]."""
    return Certificate(
        value=value,
        bounds=bounds,
        confidence=confidence,
        assumes=assumes,
        trivial=LARGEST_HSIC,
        trivial_because="HSIC of kernels with values in [0, 1] is at most 1/4",
        details=details,
    )
