r"""The theory of the paper as certificates: its identities and bounds, each computed with both
sides.

Laws with finitely many sensitive values
----------------------------------------
Population identities can be computed exactly for them. HSIC, the conditional MMDs and the spectrum
of S depend on three quantities: the probabilities :math:`\pi_k`, the Gram matrix of the values
:math:`s_k`, and the Gram matrix :math:`\langle \Delta_k, \Delta_l \rangle` of the deviations
:math:`\Delta_k = \mu_{Z \mid s_k} - \mu_Z`. The empirical law of a sample with ties in S is such a
law.

Contrasts of the conditional laws, smoothed over S
--------------------------------------------------
With :math:`\Delta(s) = \mu_{Z \mid S = s} - \mu_Z`, every average :math:`E_S[g(S) \Delta(S)]`
equals :math:`E[g(S) (k(Z, \cdot) - \mu_Z)]`. No conditional law is needed, and on a sample each
bound holds with the biased HSIC of the same sample. All contrasts are zero if Z is independent of
S. Use them for an attribute without ties. :func:`localized_contrast` is the case of most use.

All encoders of a class at once
-------------------------------
The class enters by its Gaussian complexity,

.. math:: \mathcal G_n(\mathcal H) = E \sup_{h \in \mathcal H} \frac1n \sum_i \langle \xi_i, h(X_i)
    \rangle,
    \qquad \xi_i \sim N(0, I_{d_Z}).

Each bound on it is :math:`c / \sqrt n`; the property `complexity` is the constant c.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Literal

import torch
from torch import Tensor

from frhsic import _arrays, _tensors
from frhsic.dependence import hsic
from frhsic.dependence.inputs import kernel_or_median
from frhsic.kernels import (
    Gaussian,
    InverseMultiquadric,
    Kernel,
    PerColumn,
    gaussian_at_median,
)
from frhsic_paper.certificates import (
    FIXED_KERNELS,
    LARGEST_HSIC,
    ON_THESE_ROWS,
    Certificate,
    Detail,
    DirectionRule,
    Form,
    NumericalRank,
    count_directions,
    descending_eigenpairs,
    feature_spread,
    hsic_certificate,
    require_form,
    rows_and_kernels,
    symmetrized,
)
from frhsic_paper.products import gram_times
from frhsic_paper.statistics import kernel_hgr

# Laws with finitely many sensitive values

CONTRAST_ENTRIES = 100_000_000
"""Largest number of rows times distinct values of s: the size of the matrix of conditional weights.
"""


@dataclass(frozen=True, eq=False)
class Spectrum:
    r"""Eigenpairs of :math:`(T_S u)(s) = \sum_l \pi_l k(s, s_l) u(s_l)`, orthonormal in
    :math:`L^2(P_S)`.

    Attributes
    ----------
    eigenvalues
        Of shape (m,), descending.
    functions
        :math:`\psi_\ell(s_k)`, of shape (K, m).
    """

    eigenvalues: Tensor
    functions: Tensor


@dataclass(frozen=True, eq=False)
class FiniteLaw:
    r"""Joint law of a representation and an attribute with finitely many values, by its kernel
    embeddings.

    Attributes
    ----------
    probabilities
        :math:`\pi_k`, of shape (K,).
    gram_s
        :math:`k_S(s_k, s_l)`, of shape (K, K).
    deviations
        :math:`\langle \Delta_k, \Delta_l \rangle`, of shape (K, K).
    spread
        :math:`E \|k(Z, \cdot) - \mu_Z\|^2`, the variance of Z in feature space.

    Examples
    --------
    A binary attribute that z copies, with linear kernels: HSIC is the squared covariance, 1/16.

    >>> half = [[0.5, 0.0], [0.0, 0.5]]
    >>> product = [[0.0, 0.0], [0.0, 1.0]]
    >>> law = FiniteLaw.from_table(half, product, product)
    >>> law.hsic, law.conditional_mmd_squared.tolist(), law.expected_mmd
    (0.0625, [0.25, 0.25], 0.5)
    """

    probabilities: Tensor
    gram_s: Tensor
    deviations: Tensor
    spread: float

    @classmethod
    def from_table(cls, table: Any, gram_z: Any, gram_s: Any) -> FiniteLaw:
        r"""Build the law from the table of :math:`P(Z = z_i, S = s_k)` and the Gram matrices of the
        values.

        Parameters
        ----------
        table
            Non-negative, summing to one, of shape (a, K); every column has positive mass.
        gram_z, gram_s
            Symmetric, of shapes (a, a) and (K, K).
        """
        p = _probability_table(table)
        k, l = (
            _tensors.matrix(x, name).to(p) for x, name in ((gram_z, "gram_z"), (gram_s, "gram_s"))
        )
        for gram, size, name in ((k, p.shape[0], "gram_z"), (l, p.shape[1], "gram_s")):
            if tuple(gram.shape) != (size, size):
                raise ValueError(
                    f"{name} has shape {tuple(gram.shape)}; for this table pass {(size, size)}."
                )
            if not torch.allclose(gram, gram.T):
                raise ValueError(f"{name} is not symmetric; pass the Gram matrix of a kernel.")
        weights = p.sum(0)
        marginal = p.sum(1)
        contrast = p / weights - marginal[:, None]
        deviations = contrast.T @ k @ contrast
        spread = float(marginal @ k.diagonal() - marginal @ k @ marginal)
        return cls(weights, l, symmetrized(deviations), max(spread, 0.0))

    @classmethod
    def from_sample(
        cls, z: Any, s: Any, kernel_z: Kernel | None = None, kernel_s: Kernel | None = None
    ) -> FiniteLaw:
        r"""Build the empirical law of a sample with ties in S; O(n K) memory for K distinct values.

        Raises
        ------
        ValueError
            If the value of `s` is unique for more than half of the rows: the conditional laws of
            the sample are then single rows and say nothing about the population.
        """
        z, s, kernel_z, kernel_s = rows_and_kernels(z, s, kernel_z, kernel_s)
        values, group, counts = torch.unique(s, dim=0, return_inverse=True, return_counts=True)
        if 2 * int((counts == 1).sum()) > s.shape[0]:
            raise ValueError(
                f"s has {values.shape[0]} distinct values in {s.shape[0]} rows; its conditional"
                " laws are single rows. Round or bin s, or use gdp_certificate and"
                " localized_contrast, which need no conditional law."
            )
        if values.shape[0] * s.shape[0] > CONTRAST_ENTRIES:
            raise ValueError(
                f"{values.shape[0]} distinct values of s in {s.shape[0]} rows are too many"
                " conditional laws to hold. Round or bin s, or take fewer rows."
            )
        weights = counts.to(torch.float64) / z.shape[0]
        return cls.from_rows(z, group, weights, kernel_s(values, values), kernel_z)

    @classmethod
    def from_rows(
        cls, rows: Tensor, group: Tensor, probabilities: Tensor, gram_s: Tensor, kernel_z: Kernel
    ) -> FiniteLaw:
        """Build the law from float64 rows of Z, of shape (n, d), and the number of the value of S
        of each, (n,).
        """
        member = torch.nn.functional.one_hot(group, len(probabilities)).to(rows)
        member = member / member.sum(0)
        marginal = member @ probabilities[:, None]
        contrast = member - marginal
        product = gram_times(kernel_z.shifted, rows, torch.cat([contrast, marginal], dim=1))
        spread = float(
            marginal[:, 0] @ (kernel_z.diagonal(rows) - kernel_z.offset - product[:, -1])
        )
        return cls(
            probabilities, gram_s, symmetrized(contrast.T @ product[:, :-1]), max(spread, 0.0)
        )

    @property
    def kappa(self) -> float:
        r"""The bound :math:`\kappa_S` of :math:`k_S(s, s)` on the values that occur."""
        return float(self.gram_s.diagonal().max())

    @property
    def hsic(self) -> float:
        r"""HSIC, :math:`\sum_{kl} \pi_k \pi_l\, k_S(s_k, s_l) \langle \Delta_k, \Delta_l
        \rangle`.
        """
        pi = self.probabilities
        return max(float(pi @ (self.gram_s * self.deviations) @ pi), 0.0)

    @property
    def conditional_mmd_squared(self) -> Tensor:
        r"""The squared MMD of each conditional law from the marginal, :math:`\|\Delta_k\|^2`, of
        shape (K,).
        """
        return self.deviations.diagonal().clamp_min(0)

    @property
    def mmd_integral(self) -> float:
        r"""The conditional MMD integral, :math:`E_S\, \mathrm{MMD}^2(P_{Z \mid S}, P_Z)`."""
        return float(self.probabilities @ self.conditional_mmd_squared)

    @property
    def expected_mmd(self) -> float:
        r"""The exact EIPM over the unit ball, :math:`E_S\, \mathrm{MMD}(P_{Z \mid S}, P_Z)`,
        without smoothing.
        """
        return float(self.probabilities @ self.conditional_mmd_squared.sqrt())

    def spectrum(self, rule: DirectionRule) -> Spectrum:
        """Return the leading eigenpairs of the kernel operator of S, as many as `rule` says."""
        root = self.probabilities.sqrt()
        eigenvalues, vectors = descending_eigenpairs(root[:, None] * self.gram_s * root[None, :])
        m = count_directions(eigenvalues, float(eigenvalues.sum()), rule, error=0.0, what="s")
        return Spectrum(eigenvalues[:m].clone(), vectors[:, :m] / root[:, None])

    def coefficients(self, spectrum: Spectrum) -> Tensor:
        r"""Return :math:`\langle \Delta_\ell, \Delta_{\ell'} \rangle` of
        :math:`\Delta_\ell = E_S[\Delta(S) \psi_\ell(S)]`, of shape (m, m).
        """
        weighted = self.probabilities[:, None] * spectrum.functions
        return symmetrized(weighted.T @ self.deviations @ weighted)


def _probability_table(table: Any) -> Tensor:
    """Check a table of joint probabilities and return it as float64."""
    p = _tensors.matrix(table, "table").detach().to(torch.float64)
    if float(p.min()) < 0 or abs(float(p.sum()) - 1) > 1e-9:
        raise ValueError(
            f"table has entries from {float(p.min()):.3g} and sum {float(p.sum()):.9g}; "
            "pass probabilities that sum to 1."
        )
    if float(p.sum(0).min()) <= 0:
        raise ValueError("a column of table has no mass: drop values of s that do not occur.")
    return p


def _expected_mmd_certificate(
    law: FiniteLaw,
    expected: float,
    *,
    bounds: str,
    assumes: tuple[str, ...],
    details: Mapping[str, Detail],
) -> Certificate:
    r"""Return the bound :math:`\mathrm{HSIC} \le \kappa_S c^2` for c at least the expected MMD of
    the law.
    """
    return Certificate(
        value=law.kappa * expected**2,
        bounds=bounds,
        bounded=law.hsic,
        assumes=assumes,
        trivial=law.kappa * law.spread,
        trivial_because="the squared expected MMD is at most the variance of z in feature space",
        details=details,
    )


# HSIC and other criteria

SELECTORS = 1_000_000
"""Largest number of witnesses of a decomposable class."""

_ON_THIS_LAW = "the conditional law of z given s is that of this finite law"


def spectral_equivalence(law: FiniteLaw, *, directions: DirectionRule | None = None) -> Certificate:
    r"""Bound the conditional MMD integral by HSIC, from both sides.

    .. math:: \frac{\mathrm{HSIC}}{\kappa_S} \;\le\; E_S\, \mathrm{MMD}^2(P_{Z \mid S}, P_Z)
        \;\le\; \frac{\mathrm{HSIC}}{\lambda_m} + \rho_m^2,

    where :math:`\rho_m^2` is the part of the integral outside the m leading eigenfunctions of S.
    The value is the right side; the left side is `lower` in the details. If HSIC and the tail are
    zero, every conditional law of Z equals the marginal one.

    References
    ----------
    The paper, Theorem "Spectral equivalence of HSIC and the conditional MMD integral".

    Examples
    --------
    For a fair binary attribute Δ lies along the second eigenfunction, and the right side is exact.

    >>> law = FiniteLaw.from_table(
    ...     [[0.3, 0.2], [0.2, 0.3]], [[1.0, 0.5], [0.5, 1.0]], [[1.0, 0.5], [0.5, 1.0]]
    ... )
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

    Equality holds if the deviations and the features of S change sign together, as for two values
    :math:`\pm 1` of equal probability and the linear kernel on S.

    References
    ----------
    The paper, Proposition "Decomposition of HSIC and its expected-MMD bound".

    Examples
    --------
    >>> law = FiniteLaw.from_table(
    ...     [[0.5, 0.0], [0.0, 0.5]], [[1.0, 0.0], [0.0, 1.0]], [[1.0, -1.0], [-1.0, 1.0]]
    ... )
    >>> bound = eipm_bound(law)
    >>> round(bound.value, 12), round(bound.bounded, 12)
    (0.5, 0.5)
    """
    return _expected_mmd_certificate(
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

    with :math:`(Q_m)_{\ell \ell'} = \langle \Delta_\ell, \Delta_{\ell'} \rangle` and :math:`r_m^2`
    the part of :math:`E_S\, m_f^2` outside the m leading eigenfunctions of S. The paper has the
    last of the three; the first is the value of the worst head plus the tail.

    Parameters
    ----------
    law
        The joint law.
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
            f"{m_f.shape[0]} gaps came for {pi.shape[0]} values of s; pass one for each."
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
            _ON_THIS_LAW,
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


def discrete_identity(
    z: Any, s: Any, kernel_z: Kernel | None = None, kernel_s: Kernel | None = None
) -> Certificate:
    r"""HSIC of a sample with ties in S, as a sum over pairs of sensitive values.

    .. math:: \mathrm{HSIC}(Z, S) = \sum_{k, l} \pi_k \pi_l\, k_S(s_k, s_l)\, \langle \Delta_k,
        \Delta_l \rangle

    The value is the right side, from conditional mean embeddings; `bounded` is the left side, from
    pairs of rows. They are equal up to rounding, and zero exactly when the conditional MMD integral
    is, if both kernels are characteristic.

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
    p = _probability_table(table)
    f = torch.as_tensor(witnesses, dtype=torch.float64)
    if f.ndim != 3 or tuple(f.shape[1:]) != tuple(p.shape) or f.shape[0] == 0:
        raise ValueError(
            f"witnesses have shape {tuple(f.shape)}; pass (functions, {p.shape[0]}, {p.shape[1]})."
        )
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
    r"""Joint IPM over a witness class with one head for each sensitive value, as a conditional
    integral.

    .. math:: \mathrm{IPM}_{\mathcal F}(P_{Z,S}, P_Z \otimes P_S) = E_S\, \mathrm{IPM}_{\mathcal
        V}(P_{Z \mid S}, P_Z)

    The class :math:`\mathcal V` is `heads` and their negatives; :math:`\mathcal F` contains
    :math:`(z, s) \mapsto g_s(z)` for every choice :math:`s \mapsto g_s \in \mathcal V`. The left
    side is the maximum over all choices. For a class that is not decomposable, such as the unit
    ball of a product RKHS, it is smaller.

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
    p = _probability_table(table)
    g = _tensors.matrix(heads, "heads").to(p)
    if g.shape[1] != p.shape[0]:
        raise ValueError(f"heads have {g.shape[1]} values each for {p.shape[0]} rows of the table.")
    g = torch.cat([g, -g])
    if g.shape[0] ** p.shape[1] > SELECTORS:
        raise ValueError(
            f"{g.shape[0]} heads for {p.shape[1]} values of s are {g.shape[0] ** p.shape[1]}"
            f" choices; pass fewer than {SELECTORS}."
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

    Zero HSIC means that no smooth function of Z correlates with a smooth function of S on these
    rows. The bound is close if the ridges are large compared with the variances in feature space,
    and vacuous at small ridges.

    Parameters
    ----------
    z, s
        Representation, of shape (n, d), and attribute, of shape (n,) or (n, q).
    kernel_z, kernel_s
        Kernels; a Gaussian at the median distance where None.
    ridge_z, ridge_s
        :math:`\eta_Z, \eta_S`, as in :func:`frhsic_paper.statistics.kernel_hgr`.

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
        details={
            "n": z.shape[0],
            "hsic": dependence,
            "khgr": correlation,
            "ridge_z": ridge_z,
            "ridge_s": ridge_s,
        },
    )


def _against_product(p: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    r"""Return :math:`p_{ik} - p_i \pi_k`, the contrasts :math:`p_{i \mid k} - p_i`, and
    :math:`\pi_k`.
    """
    weights, marginal = p.sum(0), p.sum(1)
    return p - marginal[:, None] * weights, p / weights - marginal[:, None], weights


# Counterfactual fairness


def causal_necessity(
    representations: Any,
    s: Any,
    *,
    probabilities: Any = None,
    kernel_z: Kernel | None = None,
    kernel_s: Kernel | None = None,
) -> Certificate:
    r"""Bound HSIC by the mean change of the representation under interventions on S.

    .. math:: \mathrm{HSIC}(Z, S) \;\le\;
        \kappa_S \Big( E_{S, S', U} \| k(Z_{S \leftarrow S}, \cdot) - k(Z_{S \leftarrow S'}, \cdot)
        \| \Big)^2

    in a structural model :math:`Z = h(f_X(S, U))` whose noise U is independent of S. The right side
    is zero exactly when no intervention changes Z (counterfactual fairness of every head, if the
    kernel on Z is characteristic); then HSIC is zero. The converse fails: HSIC may be zero although
    interventions change every Z.

    Parameters
    ----------
    representations
        :math:`Z_{S \leftarrow s_k}(u_i)`: each unit's representation under each intervention, of
        shape (K, n, d) or (K, n). Units are rows of noise, the same in each block.
    s
        The interventions :math:`s_k`, of shape (K,) or (K, q).
    probabilities
        :math:`P(S = s_k)`; equal if not given.
    kernel_z, kernel_s
        Kernels; a Gaussian at the median distance where None.

    Returns
    -------
    Certificate
        The value is the right side; `bounded` is HSIC of the law in which S takes the values `s`
        independently of the units. Details: the mean change `effect`, and `largest_change`.

    References
    ----------
    The paper, Proposition "HSIC-fairness as a necessary condition for counterfactual fairness", of
    which this is the quantitative form: conditioning is intervening when S is exogenous, so
    :math:`\|\Delta_k\| \le \sum_l \pi_l E_U \|k(Z_{s_k}, \cdot) - k(Z_{s_l}, \cdot)\|`, and HSIC is
    at most :math:`\kappa_S (E \|\Delta\|)^2`.

    Examples
    --------
    Z = S xor U with fair coins: independent of S, but changed by every intervention.

    >>> from frhsic.kernels import Gaussian
    >>> c = causal_necessity(
    ...     [[0, 1], [1, 0]], [0, 1], kernel_z=Gaussian(1.0), kernel_s=Gaussian(1.0)
    ... )
    >>> c.bounded, round(c.value, 4), round(c.details["effect"], 4)
    (0.0, 0.1967, 0.4435)
    """
    z = torch.as_tensor(representations).to(torch.float64)
    z = z[..., None] if z.ndim == 2 else z
    if z.ndim != 3 or z.numel() == 0 or not bool(torch.isfinite(z).all()):
        raise ValueError(
            f"representations have shape {tuple(z.shape)}; pass finite numbers, (interventions,"
            " units, columns)."
        )
    values = _tensors.matrix(s, "s").to(z)
    if values.shape[0] != z.shape[0] or values.shape[0] < 2:
        raise ValueError(
            f"{values.shape[0]} values of s came for {z.shape[0]} interventions; pass two or more"
            " of each."
        )
    if probabilities is None:
        pi = torch.full_like(values[:, 0], 1 / values.shape[0])
    else:
        pi = _tensors.vector(probabilities, "probabilities").to(z)
        if (
            pi.shape[0] != values.shape[0]
            or float(pi.min()) <= 0
            or abs(float(pi.sum()) - 1) > 1e-9
        ):
            raise ValueError(
                "probabilities must be positive, sum to 1, and be one for each value of s."
            )
    kernel_z = (
        gaussian_at_median(z.flatten(0, 1), name="representations")
        if kernel_z is None
        else kernel_z
    )
    kernel_s = kernel_or_median(kernel_s, values, "s")
    group = torch.arange(z.shape[0], device=z.device).repeat_interleave(z.shape[1])
    law = FiniteLaw.from_rows(z.flatten(0, 1), group, pi, kernel_s(values, values), kernel_z)

    effect, largest = 0.0, 0.0
    for k in range(z.shape[0]):
        for l in range(k):
            change = _feature_distances(kernel_z, z[k], z[l])
            effect += 2 * float(pi[k] * pi[l] * change.mean())
            largest = max(largest, float(change.max()))
    return _expected_mmd_certificate(
        law,
        effect,
        bounds="HSIC of the representation and s",
        assumes=("s is exogenous and independent of the noise of the units", "bounded kernel on s"),
        details={
            "effect": effect,
            "largest_change": largest,
            "units": z.shape[1],
            "interventions": z.shape[0],
        },
    )


def _feature_distances(kernel: Kernel, x: Tensor, y: Tensor) -> Tensor:
    r"""Return :math:`\|k(x_i, \cdot) - k(y_i, \cdot)\|` row by row, of shape (n,)."""
    cross = kernel.shifted(x[:, None, :], y[:, None, :])[:, 0, 0]
    own = kernel.diagonal(x) + kernel.diagonal(y) - 2 * kernel.offset
    return (own - 2 * cross).clamp_min(0).sqrt()


# Contrasts of the conditional laws


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
        Rows :math:`c_i`, of shape (c, d). If not given, the rows of the sample.

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
                f"{a.shape[0]} coefficients came for {centers.shape[0]} centers; pass one for each."
            )
        if centers.shape[1] != rows.shape[1]:
            raise ValueError(
                f"centers have {centers.shape[1]} columns, the sample has {rows.shape[1]}."
            )
        return a, centers

    def norm(self, kernel: Kernel, rows: Tensor) -> float:
        """Return the norm in the RKHS of `kernel`; `rows` are the centers if none were given."""
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
    r"""Bound the squared MMD between the law of Z near a sensitive value and its overall law, or
    near two values.

    .. math:: \mathrm{MMD}^2(P_{s_0}, P_{s_1}) = \| E_S[g(S) \Delta(S)] \|^2 \le \|g\|^2 \;
        \mathrm{HSIC}(Z, S),
        \qquad g = \frac{k_S(\cdot, s_0)}{E\, k_S(S, s_0)} - \frac{k_S(\cdot, s_1)}{E\, k_S(S,
        s_1)}.

    :math:`P_{s_0}` is the law of Z with rows weighted by :math:`k_S(S, s_0)`, so that those near
    :math:`s_0` count most. If `versus` is None, the term of :math:`s_1` is left out and
    :math:`P_{s_1}` is the overall law of Z. The bound is large where few rows are near: it is
    divided by :math:`E\, k_S(S, s_0)`.

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
        If the weights of the rows are all zero, because every row is far away, or if some are
        negative.

    References
    ----------
    The paper, Corollary "Localized conditional-MMD control by HSIC". It has :math:`k_S(\cdot, s_0)
    - k_S(\cdot, s_1)` in place of g, which is not a difference of laws.

    Examples
    --------
    Two values that z copies, with linear kernels: near 1 is the row at 1 alone, half a unit from
    the mean; E k_S(S, 1) is 1/2, so the bound is 4 times an HSIC of 1/16.

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
            " zero, or some are negative. Pass a value that is nearer to rows, and a kernel on s"
            " that is not negative."
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
    """Bound the contrast of a function of s; what holds without the theorem is the bound of Cauchy
    and Schwarz.
    """
    n, dependence, norm = (
        z.shape[0],
        float(hsic(z, s, kernel_z, kernel_s)),
        weight.norm(kernel_s, s),
    )
    g = weight.values(kernel_s, s)
    g = g - g.mean()
    # functions of norm 1 vary by at most √(2 sup k) if k is not negative, and a variance is at most
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
            f"the value of s is {value!r}; pass {s.shape[1]} finite number(s), one for each column"
            " of s."
        )
    return row


# All encoders of a class at once

ACTIVATIONS = {
    "identity": 1.0,
    "relu": 1.0,
    "tanh": 1.0,
    "selu": 1.0507009873554805 * 1.6732632423543772,
}
"""Lipschitz constants of activations that are zero at zero; SELU's is its slope at 0 from below,
about 1.7581.
"""


@dataclass(frozen=True)
class SingleEncoder:
    """One encoder, fixed before the rows were drawn: its complexity is zero."""

    @property
    def complexity(self) -> float:
        r"""Gaussian complexity times :math:`\sqrt n`."""
        return 0.0


@dataclass(frozen=True)
class LinearEncoders:
    r"""Linear encoders :math:`x \mapsto Wx` with :math:`\|W\|_F \le R` on inputs with :math:`\|X\|
    \le M`.

    .. math:: \mathcal G_n \le R\, E \Big\| \frac1n \sum_i \xi_i X_i^\top \Big\|_F \le R M \sqrt{d_Z
        / n}

    References
    ----------
    The paper, "Encoder classes covered by the rate".

    Examples
    --------
    >>> LinearEncoders(weight_bound=2.0, input_bound=3.0, outputs=4).complexity
    12.0
    """

    weight_bound: float
    input_bound: float
    outputs: int

    def __post_init__(self) -> None:
        for name in ("weight_bound", "input_bound", "outputs"):
            _arrays.require_positive(getattr(self, name), name)

    @property
    def complexity(self) -> float:
        r"""Gaussian complexity times :math:`\sqrt n`, :math:`R M \sqrt{d_Z}`."""
        return self.weight_bound * self.input_bound * math.sqrt(self.outputs)


@dataclass(frozen=True)
class MLPEncoders:
    r"""Fixed multilayer perceptrons :math:`x_l = \sigma(W_l x_{l-1} + b_l)`, without activation
    after the last layer.

    The class holds all networks with :math:`\|W_l\|_F \le R_l` and :math:`\|b_l\| \le \beta_l`;
    inputs have :math:`\|x_0\| \le M`; :math:`\sigma` is L-Lipschitz with :math:`\sigma(0) = 0`.
    Then

    .. math:: \mathcal G_n \le \sqrt{\frac{B}{n}} \sum_l D_l \Big( M_{l-1} R_l \sqrt{p_l} + \beta_l
        \sqrt{w_l} \Big),
        \quad D_l = \prod_{j > l} L R_j, \quad M_l = L (R_l M_{l-1} + \beta_l),

    with :math:`p_l` weights and :math:`w_l` units in layer l, and B the number of blocks (weight
    matrices and biases) that are not zero.

    Notes
    -----
    Changing one block at a time moves the output by at most
    :math:`D_l (M_{l-1} \|\Delta W_l\|_F + \|\Delta b_l\|)` in all, so by Cauchy-Schwarz the squared
    increments of the Gaussian process
    :math:`\theta \mapsto n^{-1} \sum_i \langle \xi_i, h_\theta(x_i) \rangle` are at most those of
    :math:`\theta \mapsto \sqrt{B/n} \sum_l D_l (M_{l-1} \langle \Xi_l, W_l \rangle + \langle
    \zeta_l, b_l \rangle)` with standard normal :math:`\Xi_l, \zeta_l`. The Sudakov-Fernique
    inequality orders their expected suprema, and :math:`E \|\Xi_l\|_F \le \sqrt{p_l}`. For one
    linear layer :class:`LinearEncoders` is smaller by the root of the number of inputs.

    Parameters
    ----------
    widths
        (d, w_1, ..., d_Z).
    weight_bounds
        :math:`R_l`, one for each layer.
    input_bound
        :math:`M`.
    bias_bounds
        :math:`\beta_l`, one for each layer; all zero if not given.
    activation
        "selu" (L = 1.7581), "relu", "tanh" or "identity" (L = 1).

    Examples
    --------
    One layer of 4 × 1 weights: √1 · M · R · √4.

    >>> MLPEncoders(widths=(4, 1), weight_bounds=(2.0,), input_bound=3.0).complexity
    12.0
    """

    widths: tuple[int, ...]
    weight_bounds: tuple[float, ...]
    input_bound: float
    bias_bounds: tuple[float, ...] = ()
    activation: Literal["selu", "relu", "tanh", "identity"] = "selu"

    def __post_init__(self) -> None:
        layers = len(self.widths) - 1
        if (
            layers < 1
            or len(self.weight_bounds) != layers
            or len(self.bias_bounds) not in (0, layers)
        ):
            raise ValueError(
                f"widths {self.widths} make {layers} layers; {len(self.weight_bounds)} bounds of"
                f" weights and {len(self.bias_bounds)} of biases were given. Pass one for each"
                " layer."
            )
        if self.activation not in ACTIVATIONS:
            raise ValueError(
                f"activation is {self.activation!r}; pass one of {', '.join(ACTIVATIONS)}."
            )
        _arrays.require_positive(self.input_bound, "input_bound")
        for width, bound in zip(self.widths[1:], self.weight_bounds):
            _arrays.require_positive(width, "width")
            _arrays.require_positive(bound, "weight_bound")
        if any(not (math.isfinite(b) and b >= 0) for b in self.bias_bounds):
            raise ValueError(
                f"bias_bounds are {self.bias_bounds}; pass finite numbers that are not negative."
            )

    @property
    def complexity(self) -> float:
        r"""Gaussian complexity times :math:`\sqrt n`, by the bound above."""
        slope = ACTIVATIONS[self.activation]
        biases = self.bias_bounds or (0.0,) * len(self.weight_bounds)
        blocks = len(self.weight_bounds) + sum(b > 0 for b in biases)
        size, total = self.input_bound, 0.0
        for layer, ((inputs, units), weight, bias) in enumerate(
            zip(pairwise(self.widths), self.weight_bounds, biases)
        ):
            after = math.prod(slope * later for later in self.weight_bounds[layer + 1 :])
            total += after * (size * weight * math.sqrt(inputs * units) + bias * math.sqrt(units))
            size = slope * (weight * size + bias)
        return math.sqrt(blocks) * total


EncoderClass = SingleEncoder | LinearEncoders | MLPEncoders


def feature_lipschitz(kernel: Kernel) -> float:
    r"""Lipschitz constant of the feature map, the smallest known :math:`\ell` with
    :math:`\|k(z, \cdot) - k(z', \cdot)\| \le \ell \|z - z'\|`.

    :math:`1/\sigma` for the Gaussian and the inverse multiquadric kernel, since :math:`2 - 2
    e^{-t/2}` and :math:`2 - 2 (1 + t)^{-1/2}` are at most :math:`t = \|z - z'\|^2 / \sigma^2`. For
    products of kernels with unit diagonal :math:`1 - ab \le (1 - a) + (1 - b)`: the squares add up
    on one variable, and the largest counts over columns.

    Raises
    ------
    ValueError
        For kernels without unit diagonal, since the constant of the bound does not scale like HSIC
        when a kernel is multiplied by a number, and for the Laplacian, whose feature map is not
        Lipschitz: :math:`\|k(z, \cdot) - k(z', \cdot)\|^2 \approx 2 \|z - z'\|_1 / \sigma` for
        close points.

    Examples
    --------
    >>> feature_lipschitz(Gaussian(0.5))
    2.0
    """
    if isinstance(kernel, (Gaussian, InverseMultiquadric)):
        return 1 / float(kernel.bandwidth)
    if isinstance(kernel, PerColumn):
        return max(feature_lipschitz(k) for k in kernel.kernels)
    raise ValueError(
        f"the bound needs a unit diagonal and a Lipschitz feature map, which {kernel} is not known"
        " to have. Pass Gaussian or InverseMultiquadric kernels, for each column if need be."
    )


def uniform_bound(
    n: int, encoders: EncoderClass, kernel_z: Kernel, kernel_s: Kernel, *, confidence: float = 0.95
) -> Certificate:
    r"""Bound how far HSIC on n rows lies from the population, for all encoders of a class at once.

    .. math:: B_n(\mathcal H, \delta) = 8 \sqrt2 \sqrt{\frac{\log(2/\delta)}{n}} + \frac4n
        + 48 \sqrt\pi \max\{\ell_S, \ell_Z\}\, \mathcal G_n(\mathcal H)

    for kernels with unit diagonal. With probability at least :math:`1 - \delta`, the `confidence`,
    no encoder of the class, chosen on these rows or not, has :math:`|\widehat{\mathrm{HSIC}} -
    \mathrm{HSIC}|` above it. At realistic n the bound is vacuous; `n_needed` in the details is the
    number of rows from which it is not. For an encoder that was fixed before the rows were drawn
    use :func:`frhsic_paper.certificates.held_out_bound`, which is far smaller.

    Parameters
    ----------
    n
        Number of rows, drawn independently from one law.
    encoders
        :class:`LinearEncoders`, :class:`MLPEncoders` or :class:`SingleEncoder`.
    kernel_z, kernel_s
        Fixed kernels with unit diagonal and a Lipschitz feature map.
    confidence
        Probability :math:`1 - \delta` with which the bound holds.

    References
    ----------
    The paper, Theorem "Uniform concentration of empirical HSIC over the encoder class", after Ni
    and Huo (2024).

    Examples
    --------
    >>> bound = uniform_bound(10_000, LinearEncoders(1.0, 1.0, 2), Gaussian(1.0), Gaussian(1.0))
    >>> round(bound.value, 3), bound.vacuous, bound.details["n_needed"]
    (1.421, True, 322874)
    """
    _arrays.require_integer(n, "n")
    _arrays.require_fraction(confidence, "confidence")
    slope = max(feature_lipschitz(kernel_z), feature_lipschitz(kernel_s))
    # B_n = a / sqrt(n) + 4 / n
    sampling = 8 * math.sqrt(2 * math.log(2 / (1 - confidence)))
    complexity = 48 * math.sqrt(math.pi) * slope * encoders.complexity
    root = (sampling + complexity) / math.sqrt(n)
    return hsic_certificate(
        root + 4 / n,
        "largest distance of HSIC on the rows from the population over the encoder class",
        confidence,
        ("rows i.i.d.", FIXED_KERNELS, "every encoder considered lies in the class"),
        {
            "n": n,
            "sampling_term": sampling / math.sqrt(n),
            "bias_term": 4 / n,
            "complexity_term": complexity / math.sqrt(n),
            "gaussian_complexity": encoders.complexity / math.sqrt(n),
            "lipschitz": slope,
            "n_needed": _rows_below(sampling + complexity),
        },
    )


def train_to_population(hsic_train: float, uniform: Certificate) -> Certificate:
    r"""Bound HSIC of a trained encoder in the population,
    :math:`\mathrm{HSIC}(\hat h) \le \widehat{\mathrm{HSIC}}(\hat h) + B_n(\mathcal H, \delta)`.

    Parameters
    ----------
    hsic_train
        Biased HSIC on the training rows, under the kernels of `uniform`.
    uniform
        Result of :func:`uniform_bound` for the searched class and the number of training rows.

    References
    ----------
    The paper, Corollary "Train-population HSIC bridge".

    Examples
    --------
    >>> uniform = uniform_bound(10**9, LinearEncoders(1.0, 1.0, 2), Gaussian(1.0), Gaussian(1.0))
    >>> bound = train_to_population(0.01, uniform)
    >>> round(bound.value, 4), bound.vacuous
    (0.0145, False)
    """
    if not 0 <= hsic_train <= 1:
        raise ValueError(
            f"hsic_train is {hsic_train}; pass the biased HSIC on the rows, under unit-diagonal"
            " kernels."
        )
    return replace(
        uniform,
        value=hsic_train + uniform.value,
        bounds="HSIC of the trained encoder in the population",
        details={"hsic_train": hsic_train, "uniform": uniform.value, **uniform.details},
    )


def _rows_below(root: float) -> int:
    r"""Return the smallest n with :math:`a / \sqrt n + 4 / n < c`: with x = 1/√n, the root of 4 x²
    + a x − c.
    """
    x = 2 * LARGEST_HSIC / (root + math.sqrt(root**2 + 16 * LARGEST_HSIC))
    n = max(1, math.floor(1 / x**2) - 1)
    while root / math.sqrt(n) + 4 / n >= LARGEST_HSIC:
        n += 1
    return n
