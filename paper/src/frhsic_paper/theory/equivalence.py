r"""Relations between HSIC and other criteria: conditional ones, where the conditional law is known, and kHGR.

Most functions take a :class:`FiniteLaw`: a table of probabilities, or the empirical law of a sample with ties in S.
"""

from __future__ import annotations

import itertools
from typing import Any

import torch

from frhsic import _arrays
from frhsic.certificates import (
    ON_THESE_ROWS,
    Certificate,
    Detail,
    DirectionRule,
    Form,
    NumericalRank,
    require_form,
    rows_and_kernels,
)
from frhsic.dependence import hsic, kernel_hgr
from frhsic.kernels import Kernel
from frhsic_paper.theory.finite import FiniteLaw, Spectrum, expected_mmd_certificate, probability_table

SELECTORS = 1_000_000
"""Largest number of witnesses of a decomposable class."""

_ON_THIS_LAW = "the conditional law of z given s is that of this finite law"


def spectral_equivalence(law: FiniteLaw, *, directions: DirectionRule | None = None) -> Certificate:
    r"""Bound the conditional MMD integral by HSIC, from both sides.

    .. math:: \frac{\mathrm{HSIC}}{\kappa_S} \;\le\; E_S\, \mathrm{MMD}^2(P_{Z \mid S}, P_Z)
        \;\le\; \frac{\mathrm{HSIC}}{\lambda_m} + \rho_m^2,

    where :math:`\rho_m^2` is the part of the integral outside the m leading eigenfunctions of S. The value is the right
    side; the left side is `lower` in the details. If HSIC and the tail are zero, every conditional law of Z equals the
    marginal one.

    References
    ----------
    The paper, Theorem "Spectral equivalence of HSIC and the conditional MMD integral".

    Examples
    --------
    For a fair binary attribute Δ lies along the second eigenfunction, and the right side is exact.

    >>> law = FiniteLaw.from_table([[0.3, 0.2], [0.2, 0.3]], [[1.0, 0.5], [0.5, 1.0]], [[1.0, 0.5], [0.5, 1.0]])
    >>> both = spectral_equivalence(law)
    >>> round(both.details["lower"], 6), round(both.bounded, 6), round(both.value, 6)
    (0.0025, 0.01, 0.01)
    """
    spectrum = law.spectrum(NumericalRank() if directions is None else directions)
    integral, dependence = law.mmd_integral, law.hsic
    resolved = float(law.coefficients(spectrum).trace())
    tail = max(integral - resolved, 0.0)
    return Certificate(
        value=dependence / float(spectrum.eigenvalues[-1]) + tail,
        bounds="conditional MMD integral of z given s",
        bounded=integral,
        assumes=(_ON_THIS_LAW, "bounded kernels"),
        trivial=law.spread,
        trivial_because="between-group variance in feature space is part of the total",
        details={
            "lower": dependence / law.kappa,
            "hsic": dependence,
            "kappa": law.kappa,
            **_spectrum_details(spectrum),
            "tail": tail,
            "resolved": resolved,
        },
    )


def eipm_bound(law: FiniteLaw) -> Certificate:
    r"""Bound HSIC by the expected MMD,
    :math:`\mathrm{HSIC} \le \kappa_S \,(E_S\, \mathrm{MMD}(P_{Z \mid S}, P_Z))^2`.

    Equality holds if the deviations and the features of S change sign together, as for two values :math:`\pm 1` of
    equal probability and the linear kernel on S.

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
    return expected_mmd_certificate(
        law,
        law.expected_mmd,
        bounds="HSIC of z and s",
        assumes=(_ON_THIS_LAW, "bounded kernel on s"),
        details={"expected_mmd": law.expected_mmd, "kappa": law.kappa},
    )


def population_gdp(
    law: FiniteLaw,
    gaps: Any,
    norm: float,
    *,
    form: Form = "tight",
    directions: DirectionRule | None = None,
) -> Certificate:
    r"""Bound the squared GDP of a head in the population, :math:`(E_S |m_f(S)|)^2`.

    .. math:: (E_S |m_f(S)|)^2 \le \|f\|^2 \{\lambda_{\max}(Q_m),\ \operatorname{tr} Q_m,\
        \mathrm{HSIC}/\lambda_m\} + r_m^2,

    with :math:`(Q_m)_{\ell \ell'} = \langle \Delta_\ell, \Delta_{\ell'} \rangle` and :math:`r_m^2` the part
    of :math:`E_S\, m_f^2` outside the m leading eigenfunctions of S. The paper has the last of the three; the first is
    the value of the worst head plus the tail.

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
        As in :func:`frhsic.certificates.gdp_certificate`.

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
    require_form(form)
    m_f = _arrays.vector(gaps, "gaps").detach().to(law.probabilities)
    pi = law.probabilities
    if m_f.shape != pi.shape:
        raise ValueError(f"{m_f.shape[0]} gaps came for {pi.shape[0]} values of s; pass one for each.")
    if abs(float(pi @ m_f)) > 1e-8 * max(float(m_f.abs().max()), 1e-300):
        raise ValueError("the gaps do not average to zero over s: pass E[f | s] minus E f.")
    _arrays.require_positive(norm, "norm")
    spectrum = law.spectrum(NumericalRank() if directions is None else directions)
    inner = law.coefficients(spectrum)
    forms = {
        "tight": max(float(torch.linalg.eigvalsh(inner)[-1]), 0.0),
        "trace": max(float(inner.trace()), 0.0),
        "published": law.hsic / float(spectrum.eigenvalues[-1]),
    }
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
            **_spectrum_details(spectrum),
            "hsic": law.hsic,
        },
    )


def _spectrum_details(spectrum: Spectrum) -> dict[str, Detail]:
    return {"directions": len(spectrum.eigenvalues), "eigenvalues": tuple(spectrum.eigenvalues.tolist())}


def conditional_gaps(scores: Any, s: Any) -> torch.Tensor:
    r"""Return the mean score at each distinct value of s minus the overall mean, :math:`m_f(s_k)`, in ascending order
    of s.

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

    The value is the right side, from conditional mean embeddings; `bounded` is the left side, from pairs of rows. They
    are equal up to rounding, and zero exactly when the conditional MMD integral is, if both kernels are
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
    z, s, kernel_z, kernel_s = rows_and_kernels(z, s, kernel_z, kernel_s)
    law = FiniteLaw.from_sample(z, s, kernel_z, kernel_s)
    return Certificate(
        value=law.hsic,
        bounds="HSIC of z and s (an identity)",
        bounded=float(hsic(z, s, kernel_z, kernel_s)),
        assumes=("s has ties; the law is the empirical one",),
        details={"values": law.probabilities.shape[0], "mmd_integral": law.mmd_integral},
    )


def disintegration_identity(table: Any, witnesses: Any) -> Certificate:
    r"""Joint-versus-product IPM over a finite class, as an average over S of conditional contrasts.

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
    excess, contrast, weights = _against_product(p)
    joint = (excess * f).sum((1, 2)).abs().max()
    conditional = ((contrast * f).sum(1) @ weights).abs().max()
    return Certificate(
        value=float(conditional),
        bounds="joint-versus-product IPM (an identity)",
        bounded=float(joint),
        assumes=("bounded witnesses",),
        details={"witnesses": f.shape[0]},
    )


def decomposable_identity(table: Any, heads: Any) -> Certificate:
    r"""Joint IPM over a witness class with one head for each sensitive value, as a conditional integral.

    .. math:: \mathrm{IPM}_{\mathcal F}(P_{Z,S}, P_Z \otimes P_S) = E_S\, \mathrm{IPM}_{\mathcal V}(P_{Z \mid S}, P_Z)

    The class :math:`\mathcal V` is `heads` and their negatives; :math:`\mathcal F` contains
    :math:`(z, s) \mapsto g_s(z)` for every choice :math:`s \mapsto g_s \in \mathcal V`. The left side is the maximum
    over all choices. For a class that is not decomposable, such as the unit ball of a product RKHS, it is smaller.

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
    excess, contrast, weights = _against_product(p)
    integral = float((g @ contrast).abs().amax(0) @ weights)
    # the left side needs the joint law only: each witness is a table, summed against p − p ⊗ π
    per_value = (g @ excess).T.tolist()  # one row of contributions per value of s
    joint = max(abs(sum(choice)) for choice in itertools.product(*per_value))
    return Certificate(
        value=integral,
        bounds="joint-versus-product IPM over a decomposable class (an identity)",
        bounded=joint,
        assumes=("the class is symmetric and decomposable over s",),
        details={"heads": g.shape[0], "witnesses": g.shape[0] ** p.shape[1]},
    )


def khgr_bound(
    z: Any,
    s: Any,
    kernel_z: Kernel | None = None,
    kernel_s: Kernel | None = None,
    *,
    ridge_z: float = 0.01,
    ridge_s: float = 0.01,
) -> Certificate:
    r"""Bound the squared kernel maximal correlation,
    :math:`\widehat{\mathrm{kHGR}}^2 \le \widehat{\mathrm{HSIC}} / (\eta_Z \eta_S)`.

    Zero HSIC means that no smooth function of Z correlates with a smooth function of S on these rows. The
    bound is close if the ridges are large compared with the variances in feature space, and vacuous at small ridges.

    Parameters
    ----------
    z, s
        Representation, of shape (n, d), and attribute, of shape (n,) or (n, q).
    kernel_z, kernel_s
        Kernels; a Gaussian at the median distance where None.
    ridge_z, ridge_s
        :math:`\eta_Z, \eta_S`, as in :func:`frhsic.dependence.kernel_hgr`.

    References
    ----------
    The paper, Proposition "Regularized empirical sandwich bound".

    Examples
    --------
    Linear kernels, variance and covariance 1.25: (1.25 / 5)², and the correlation (1.25 / 6.25)².

    >>> from frhsic.kernels import Linear
    >>> x = [0.0, 1.0, 2.0, 3.0]
    >>> c = khgr_bound(x, x, Linear(), Linear(), ridge_z=5.0, ridge_s=5.0)
    >>> round(c.value, 12), round(c.bounded, 12)
    (0.0625, 0.04)
    """
    z, s, kernel_z, kernel_s = rows_and_kernels(z, s, kernel_z, kernel_s)
    correlation = float(kernel_hgr(z, s, kernel_z, kernel_s, ridge_z=ridge_z, ridge_s=ridge_s))
    dependence = float(hsic(z, s, kernel_z, kernel_s))
    return Certificate(
        value=dependence / (ridge_z * ridge_s),
        bounds="squared regularised kernel maximal correlation of z and s",
        bounded=correlation**2,
        assumes=(ON_THESE_ROWS,),
        trivial=1.0,
        trivial_because="a correlation is at most 1",
        details={"n": z.shape[0], "hsic": dependence, "khgr": correlation, "ridge_z": ridge_z, "ridge_s": ridge_s},
    )


def _against_product(p: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    r"""Return :math:`p_{ik} - p_i \pi_k`, the contrasts :math:`p_{i \mid k} - p_i`, and :math:`\pi_k`."""
    weights, marginal = p.sum(0), p.sum(1)
    return p - marginal[:, None] * weights, p / weights - marginal[:, None], weights
