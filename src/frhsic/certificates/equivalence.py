r"""What HSIC and the conditional criteria say about each other, where the conditional law is known.

Each takes a :class:`FiniteLaw`: a table of probabilities, or the empirical law of a sample whose S has ties.
"""

from __future__ import annotations

import itertools
import math
from typing import Any, Literal

import torch

from frhsic import _arrays
from frhsic.certificates.certificate import Certificate
from frhsic.certificates.directions import DirectionRule, NumericalRank
from frhsic.certificates.finite import FiniteLaw, probability_table
from frhsic.dependence import hsic
from frhsic.kernels import Kernel, gaussian_at_median

__all__ = [
    "conditional_gaps",
    "decomposable_identity",
    "discrete_identity",
    "disintegration_identity",
    "eipm_bound",
    "population_gdp",
    "spectral_equivalence",
]

SELECTORS = 1_000_000
"""So many witnesses of a decomposable class are enumerated at most."""

_ON_THIS_LAW = "the conditional law of z given s is the one of this finite law"


def spectral_equivalence(law: FiniteLaw, *, directions: DirectionRule | None = None) -> Certificate:
    r"""Bound the conditional MMD integral by HSIC, from both sides.

    .. math:: \frac{\mathrm{HSIC}}{\kappa_S} \;\le\; E_S\, \mathrm{MMD}^2(P_{Z \mid S}, P_Z)
        \;\le\; \frac{\mathrm{HSIC}}{\lambda_m} + \rho_m^2,

    where :math:`\rho_m^2` is the part of the integral outside the m leading eigenfunctions of S. The value is
    the right side; the left is `lower` in the details. Zero HSIC and a zero tail mean that no conditional law
    of Z differs from the marginal one.

    References
    ----------
    The paper, Theorem "Spectral equivalence of HSIC and the conditional MMD integral".

    Examples
    --------
    A fair binary attribute has Δ along the second eigenfunction alone: the right side is reached.

    >>> law = FiniteLaw.from_table([[0.3, 0.2], [0.2, 0.3]], [[1.0, 0.5], [0.5, 1.0]], [[1.0, 0.5], [0.5, 1.0]])
    >>> both = spectral_equivalence(law)
    >>> round(both.details["lower"], 6), round(both.bounded, 6), round(both.value, 6)
    (0.0025, 0.01, 0.01)
    """
    spectrum = law.spectrum(NumericalRank() if directions is None else directions)
    integral, dependence = law.mmd_integral, law.hsic
    resolved = float(law.coefficients(spectrum).trace())
    tail = max(integral - resolved, 0.0)
    last = float(spectrum.eigenvalues[-1])
    return Certificate(
        value=dependence / last + tail,
        bounds="conditional MMD integral of z given s",
        bounded=integral,
        assumes=(_ON_THIS_LAW, "bounded kernels"),
        trivial=law.spread,
        trivial_because="between-group variance in feature space is part of the total",
        details={
            "lower": dependence / law.kappa,
            "hsic": dependence,
            "kappa": law.kappa,
            "directions": spectrum.eigenvalues.shape[0],
            "eigenvalues": tuple(spectrum.eigenvalues.tolist()),
            "tail": tail,
            "resolved": resolved,
        },
    )


def eipm_bound(law: FiniteLaw) -> Certificate:
    r"""Bound HSIC by the expected MMD,
    :math:`\mathrm{HSIC} \le \kappa_S \,(E_S\, \mathrm{MMD}(P_{Z \mid S}, P_Z))^2`.

    Equality where the deviations and the features of S reverse together, as for two values :math:`\pm 1` with
    equal weight and the linear kernel on S.

    References
    ----------
    The paper, Proposition "Decomposition of HSIC and its expected-MMD bound".

    Examples
    --------
    >>> law = FiniteLaw.from_table([[0.5, 0.0], [0.0, 0.5]], [[1.0, 0.0], [0.0, 1.0]], [[1.0, -1.0], [-1.0, 1.0]])
    >>> bound = eipm_bound(law)
    >>> round(bound.value, 12), round(bound.bounded, 12)
    (0.5, 0.5)
    """
    return Certificate(
        value=law.kappa * law.expected_mmd**2,
        bounds="HSIC of z and s",
        bounded=law.hsic,
        assumes=(_ON_THIS_LAW, "bounded kernel on s"),
        trivial=law.kappa * law.spread,
        trivial_because="the squared expected MMD is at most the variance of z in feature space",
        details={"expected_mmd": law.expected_mmd, "kappa": law.kappa},
    )


def population_gdp(
    law: FiniteLaw,
    gaps: Any,
    norm: float,
    *,
    form: Literal["tight", "trace", "published"] = "tight",
    directions: DirectionRule | None = None,
) -> Certificate:
    r"""Bound the squared GDP of a head in the population, :math:`(E_S |m_f(S)|)^2`.

    .. math:: (E_S |m_f(S)|)^2 \le \|f\|^2 \{\lambda_{\max}(Q_m),\ \operatorname{tr} Q_m,\
        \mathrm{HSIC}/\lambda_m\} + r_m^2,

    with :math:`(Q_m)_{\ell \ell'} = \langle \Delta_\ell, \Delta_{\ell'} \rangle` and :math:`r_m^2` the part
    of :math:`E_S\, m_f^2` outside the m leading eigenfunctions of S. The paper has the last of the three; the
    first is the worst head's own value plus the tail.

    Parameters
    ----------
    law
        The joint law.
    gaps
        :math:`m_f(s_k) = E[f(Z) \mid s_k] - E f(Z)`, of shape (K,); see :func:`conditional_gaps` for a
        sample.
    norm
        :math:`\|f\|` in the RKHS of the kernel on Z.
    form, directions
        As in :func:`gdp_certificate`.

    References
    ----------
    The paper, Corollary "Spectral control of GDP for RKHS heads".

    Examples
    --------
    The head f(z) = z on z = s in {0, 1} with linear kernels has gaps ∓1/2 and norm 1.

    >>> product = [[0.0, 0.0], [0.0, 1.0]]
    >>> law = FiniteLaw.from_table([[0.5, 0.0], [0.0, 0.5]], product, [[1.0, 0.0], [0.0, 1.0]])
    >>> bound = population_gdp(law, [-0.5, 0.5], 1.0)
    >>> round(bound.value, 12), round(bound.bounded, 12)
    (0.25, 0.25)
    """
    m_f = _arrays.vector(gaps, "gaps").detach().to(law.probabilities)
    pi = law.probabilities
    if m_f.shape != pi.shape:
        raise ValueError(f"{m_f.shape[0]} gaps came for {pi.shape[0]} values of s; pass one for each.")
    if abs(float(pi @ m_f)) > 1e-8 * max(float(m_f.abs().max()), 1e-300):
        raise ValueError("the gaps do not average to zero over s: pass E[f | s] minus E f.")
    if not (math.isfinite(norm) and norm > 0):
        raise ValueError(f"norm is {norm}; pass the positive, finite norm of the head.")
    spectrum = law.spectrum(NumericalRank() if directions is None else directions)
    inner = law.coefficients(spectrum)
    forms = {
        "tight": max(float(torch.linalg.eigvalsh(inner)[-1]), 0.0),
        "trace": max(float(inner.trace()), 0.0),
        "published": law.hsic / float(spectrum.eigenvalues[-1]),
    }
    if form not in forms:
        raise ValueError(f"form is {form!r}; pass 'tight', 'trace' or 'published'.")
    squared = float(pi @ m_f**2)
    resolved = float(((pi * m_f) @ spectrum.functions).square().sum())
    tail = max(squared - resolved, 0.0)
    return Certificate(
        value=norm**2 * forms[form] + tail,
        bounds="squared GDP of the head",
        bounded=float(pi @ m_f.abs()) ** 2,
        assumes=(_ON_THIS_LAW, f"the head has norm at most {norm:g} in the RKHS of the kernel on z"),
        trivial=norm**2 * law.spread,
        trivial_because="the variance of any head of this norm is no larger",
        details={
            **forms,
            "tail": tail,
            "projected_gap": resolved,
            "mean_squared_gap": squared,
            "directions": spectrum.eigenvalues.shape[0],
            "eigenvalues": tuple(spectrum.eigenvalues.tolist()),
            "hsic": law.hsic,
        },
    )


def conditional_gaps(scores: Any, s: Any) -> torch.Tensor:
    r"""Return :math:`m_f(s_k)`, the mean score at each distinct value of s less the mean of all, in ascending
    order of s.

    Examples
    --------
    >>> conditional_gaps([0.0, 2.0, 4.0], [1, 1, 7])
    tensor([-1.,  2.], dtype=torch.float64)
    """
    f, values = (x.detach().to(torch.float64) for x in _arrays.paired((scores, "scores"), (s, "s")))
    if f.shape[1] != 1:
        raise ValueError(f"scores have {f.shape[1]} columns; pass one.")
    distinct, group, counts = torch.unique(values, dim=0, return_inverse=True, return_counts=True)
    sums = torch.zeros(distinct.shape[0], dtype=f.dtype, device=f.device).index_add_(0, group, f[:, 0])
    means: torch.Tensor = sums / counts - f.mean()
    return means


def discrete_identity(z: Any, s: Any, kernel_z: Kernel | None = None, kernel_s: Kernel | None = None) -> Certificate:
    r"""HSIC of a sample with ties in S, as a sum over pairs of sensitive values.

    .. math:: \mathrm{HSIC}(Z, S) = \sum_{k, l} \pi_k \pi_l\, k_S(s_k, s_l)\, \langle \Delta_k, \Delta_l \rangle

    The value is the right side, from conditional mean embeddings; `bounded` is the left, from pairs of rows.
    They are equal to rounding, and zero together with the conditional MMD integral if both kernels are
    characteristic.

    References
    ----------
    The paper, Lemma "Discrete sensitive attribute coincidence".

    Examples
    --------
    >>> from frhsic.kernels import Linear
    >>> both = discrete_identity([0.0, 1.0, 2.0, 3.0], [0.0, 0.0, 1.0, 1.0], Linear(), Linear())
    >>> both.value, both.bounded
    (0.25, 0.25)
    """
    z, s = (x.detach().to(torch.float64) for x in _arrays.paired((z, "z"), (s, "s")))
    kernel_z = gaussian_at_median(z, name="z") if kernel_z is None else kernel_z
    kernel_s = gaussian_at_median(s, name="s") if kernel_s is None else kernel_s
    law = FiniteLaw.from_sample(z, s, kernel_z, kernel_s)
    return Certificate(
        value=law.hsic,
        bounds="HSIC of z and s (an identity)",
        bounded=float(hsic(z, s, kernel_z, kernel_s)),
        assumes=("s has ties; the law is the empirical one",),
        details={"values": law.probabilities.shape[0], "mmd_integral": law.mmd_integral},
    )


def disintegration_identity(table: Any, witnesses: Any) -> Certificate:
    r"""The joint-versus-product IPM over a finite class, as an average over S of conditional contrasts.

    .. math:: \sup_f \Big| \sum_{ik} f(z_i, s_k) (p_{ik} - p_i \pi_k) \Big|
        = \sup_f \Big| \sum_k \pi_k \sum_i f(z_i, s_k) (p_{i \mid k} - p_i) \Big|

    Parameters
    ----------
    table
        :math:`P(Z = z_i, S = s_k)`, of shape (a, K).
    witnesses
        The class, of shape (functions, a, K).

    References
    ----------
    The paper, Theorem "Disintegration of the joint-vs-product IPM".

    Examples
    --------
    >>> both = disintegration_identity([[0.5, 0.0], [0.0, 0.5]], [[[1.0, 0.0], [0.0, 1.0]]])
    >>> both.value, both.bounded
    (0.5, 0.5)
    """
    p = probability_table(table)
    f = torch.as_tensor(witnesses, dtype=torch.float64)
    if f.ndim != 3 or tuple(f.shape[1:]) != tuple(p.shape) or f.shape[0] == 0:
        raise ValueError(f"witnesses have shape {tuple(f.shape)}; pass (functions, {p.shape[0]}, {p.shape[1]}).")
    weights, marginal = p.sum(0), p.sum(1)
    joint = ((p - marginal[:, None] * weights) * f).sum((1, 2)).abs().max()
    conditional = (((p / weights - marginal[:, None]) * f).sum(1) @ weights).abs().max()
    return Certificate(
        value=float(conditional),
        bounds="joint-versus-product IPM (an identity)",
        bounded=float(joint),
        assumes=("bounded witnesses",),
        details={"witnesses": f.shape[0]},
    )


def decomposable_identity(table: Any, heads: Any) -> Certificate:
    r"""For a witness class that picks one head per sensitive value, the joint IPM is the conditional
    integral.

    .. math:: \mathrm{IPM}_{\mathcal F}(P_{Z,S}, P_Z \otimes P_S) = E_S\, \mathrm{IPM}_{\mathcal V}(P_{Z \mid S}, P_Z)

    The class :math:`\mathcal V` is `heads` and their negatives; :math:`\mathcal F` holds
    :math:`(z, s) \mapsto g_s(z)` for every choice :math:`s \mapsto g_s \in \mathcal V`. The left side is the
    maximum over all of them, one by one; a class that is not decomposable, such as the unit ball of a product
    RKHS, stays below.

    Parameters
    ----------
    table
        :math:`P(Z = z_i, S = s_k)`, of shape (a, K).
    heads
        Of shape (functions, a); at most 1,000,000 choices in all.

    References
    ----------
    The paper, Corollary "Recovery of the conditional-integral IPM under decomposability".

    Examples
    --------
    >>> both = decomposable_identity([[0.5, 0.0], [0.0, 0.5]], [[0.0, 1.0]])
    >>> both.value, both.bounded
    (0.5, 0.5)
    """
    p = probability_table(table)
    g = _arrays.matrix(heads, "heads").to(p)
    if g.shape[1] != p.shape[0]:
        raise ValueError(f"heads have {g.shape[1]} values each for {p.shape[0]} rows of the table.")
    g = torch.cat([g, -g])
    if g.shape[0] ** p.shape[1] > SELECTORS:
        raise ValueError(
            f"{g.shape[0]} heads for {p.shape[1]} values of s are {g.shape[0] ** p.shape[1]} choices; "
            f"pass fewer than {SELECTORS}."
        )
    weights, marginal = p.sum(0), p.sum(1)
    integral = float((g @ (p / weights - marginal[:, None])).abs().amax(0) @ weights)
    # left side from the joint law alone: each witness is a table, summed against p − p ⊗ π
    per_value = (g @ (p - marginal[:, None] * weights)).T.tolist()  # one row of contributions per value of s
    joint = max(abs(sum(choice)) for choice in itertools.product(*per_value))
    return Certificate(
        value=integral,
        bounds="joint-versus-product IPM over a decomposable class (an identity)",
        bounded=joint,
        assumes=("the class is symmetric and decomposable over s",),
        details={"heads": g.shape[0], "witnesses": g.shape[0] ** p.shape[1]},
    )
