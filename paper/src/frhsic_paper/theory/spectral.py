"""HSIC, the conditional MMD integral and the gaps of heads, in terms of the eigenfunctions of S."""

from __future__ import annotations

from typing import Any

import torch

from frhsic import _arrays, _tensors
from frhsic_paper.certificates import Certificate, Detail, Form, require_form
from frhsic_paper.directions import DirectionRule, NumericalRank
from frhsic_paper.theory.finite import ON_THIS_LAW, FiniteLaw, Spectrum


def spectral_equivalence(law: FiniteLaw, *, directions: DirectionRule | None = None) -> Certificate:
    r"""Bound the conditional MMD integral from below and above by HSIC.

    .. math:: \frac{\mathrm{HSIC}}{\kappa_S} \;\le\; E_S\, \mathrm{MMD}^2(P_{Z \mid S}, P_Z)
        \;\le\; \frac{\mathrm{HSIC}}{\lambda_m} + \rho_m^2,

    where :math:`\rho_m^2` is the part of the integral outside the m leading eigenfunctions of S.
    The value is the right-hand side; the left-hand side is `lower` in the details. If HSIC and the
    tail are zero, every conditional distribution of Z equals the marginal one.

    References
    ----------
    The paper, Theorem "Spectral equivalence of HSIC and the conditional MMD integral".

    Examples
    --------
    For a balanced binary attribute, Δ is a multiple of the second eigenfunction, and the right-hand
    side is exact.

    >>> law = FiniteLaw.from_table(
    ...     [[0.3, 0.2], [0.2, 0.3]], [[1.0, 0.5], [0.5, 1.0]], [[1.0, 0.5], [0.5, 1.0]]
    ... )
    >>> both = spectral_equivalence(law)
    >>> round(both.details["lower"], 6), round(both.bounded, 6), round(both.value, 6)
    (0.0025, 0.01, 0.01)
    """
    spectrum = law.spectrum(NumericalRank() if directions is None else directions)
    integral = law.mmd_integral
    dependence = law.hsic
    resolved = float(law.coefficients(spectrum).trace())
    tail = max(integral - resolved, 0.0)
    return Certificate(
        value=dependence / float(spectrum.eigenvalues[-1]) + tail,
        bounds="conditional MMD integral of z given s",
        bounded=integral,
        assumes=(ON_THIS_LAW, "bounded kernels"),
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


def population_gdp(
    law: FiniteLaw,
    gaps: Any,
    norm: float,
    *,
    form: Form = "tight",
    directions: DirectionRule | None = None,
) -> Certificate:
    r"""Bound the squared population GDP of a head, :math:`(E_S |m_f(S)|)^2`.

    .. math:: (E_S |m_f(S)|)^2 \le \|f\|^2 \{\lambda_{\max}(Q_m),\ \operatorname{tr} Q_m,\
        \mathrm{HSIC}/\lambda_m\} + r_m^2,

    with :math:`(Q_m)_{\ell \ell'} = \langle \Delta_\ell, \Delta_{\ell'} \rangle` and :math:`r_m^2`
    the part of :math:`E_S\, m_f^2` outside the m leading eigenfunctions of S. The paper has the
    last of the three forms; the first is the squared gap of the worst head, plus the tail.

    Parameters
    ----------
    law
        The joint distribution.
    gaps
        :math:`m_f(s_k) = E[f(Z) \mid s_k] - E f(Z)`, of shape (K,).
    norm
        :math:`\|f\|` in the RKHS of the kernel on Z.
    form, directions
        As in :func:`frhsic_paper.certificates.gdp_certificate`.

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
    m_f = _tensors.vector(gaps, "gaps").detach().to(law.probabilities)
    pi = law.probabilities
    if m_f.shape != pi.shape:
        raise ValueError(
            f"there are {m_f.shape[0]} gaps and {pi.shape[0]} values of s; pass one gap for each"
            " value."
        )
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
        assumes=(
            ON_THIS_LAW,
            f"the head has norm at most {norm:g} in the RKHS of the kernel on z",
        ),
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
    return {
        "directions": len(spectrum.eigenvalues),
        "eigenvalues": tuple(spectrum.eigenvalues.tolist()),
    }
