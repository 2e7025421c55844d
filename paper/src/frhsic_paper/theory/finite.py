r"""Distributions with finitely many sensitive values, for which population identities can be
computed exactly.

HSIC, the conditional MMDs and the spectrum of S depend on three quantities: the probabilities
:math:`\pi_k`, the Gram matrix of the values :math:`s_k`, and the Gram matrix :math:`\langle
\Delta_k, \Delta_l \rangle` of the deviations :math:`\Delta_k = \mu_{Z \mid s_k} - \mu_Z`. The
empirical distribution of a sample with ties in S is one of these.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from frhsic import _tensors
from frhsic.kernels import Kernel
from frhsic_paper.certificates import rows_and_kernels
from frhsic_paper.directions import (
    DirectionRule,
    count_directions,
    descending_eigenpairs,
    symmetrize,
)
from frhsic_paper.products import gram_times

CONTRAST_ENTRIES = 100_000_000
"""Largest number of rows times distinct values of s: the size of the matrix of conditional weights.
"""

ON_THIS_LAW = "the conditional law of z given s is that of this finite law"


@dataclass(frozen=True, eq=False)
class Spectrum:
    r"""Eigenpairs of :math:`(T_S u)(s) = \sum_l \pi_l k(s, s_l) u(s_l)`, orthonormal in
    :math:`L^2(P_S)`.

    Attributes
    ----------
    eigenvalues
        The largest first, (m,).
    functions
        :math:`\psi_\ell(s_k)`, of shape (K, m).
    """

    eigenvalues: Tensor
    functions: Tensor


@dataclass(frozen=True, eq=False)
class FiniteLaw:
    r"""Joint distribution of a representation and an attribute with finitely many values, given by
    its kernel embeddings.

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
    With z = s binary and linear kernels, HSIC is the squared covariance, 1/16.

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
        r"""Return the distribution for a table of :math:`P(Z = z_i, S = s_k)` and the Gram matrices
        of the values.

        Parameters
        ----------
        table
            Non-negative, summing to one, of shape (a, K); every column has positive mass.
        gram_z, gram_s
            Symmetric, of shapes (a, a) and (K, K).
        """
        p = probability_table(table)
        grams = []
        for size, name, given in zip(p.shape, ("gram_z", "gram_s"), (gram_z, gram_s)):
            gram = _tensors.matrix(given, name).to(p)
            if tuple(gram.shape) != (size, size):
                raise ValueError(
                    f"{name} has shape {tuple(gram.shape)}; for this table, pass an array of shape"
                    f" {(size, size)}."
                )
            if not torch.allclose(gram, gram.T):
                raise ValueError(f"{name} is not symmetric; pass the Gram matrix of a kernel.")
            grams.append(gram)
        k, l = grams
        weights = p.sum(0)
        marginal = p.sum(1)
        contrast = p / weights - marginal[:, None]
        deviations = contrast.T @ k @ contrast
        spread = float(marginal @ k.diagonal() - marginal @ k @ marginal)
        return cls(weights, l, symmetrize(deviations), max(spread, 0.0))

    @classmethod
    def from_sample(
        cls, z: Any, s: Any, kernel_z: Kernel | None = None, kernel_s: Kernel | None = None
    ) -> FiniteLaw:
        r"""Return the empirical distribution of a sample with ties in S; uses O(n K) memory for K
        distinct values.

        Raises
        ------
        ValueError
            If more than half of the rows have a unique value of `s`, since most conditional
            distributions of the sample are then single rows, which say nothing about the
            population.
        """
        z, s, kernel_z, kernel_s = rows_and_kernels(z, s, kernel_z, kernel_s)
        values, group, counts = torch.unique(s, dim=0, return_inverse=True, return_counts=True)
        if 2 * int((counts == 1).sum()) > s.shape[0]:
            raise ValueError(
                f"s has {values.shape[0]} distinct values in {s.shape[0]} rows; most of the"
                " conditional distributions given s come from a single row. Round or bin s, or use"
                " gdp_certificate and localized_contrast, which don't use them."
            )
        if values.shape[0] * s.shape[0] > CONTRAST_ENTRIES:
            raise ValueError(
                f"{values.shape[0]} distinct values of s in {s.shape[0]} rows have too many"
                " conditional distributions to store. Round or bin s, or pass fewer rows."
            )
        weights = counts.to(torch.float64) / z.shape[0]
        return cls.from_rows(z, group, weights, kernel_s(values, values), kernel_z)

    @classmethod
    def from_rows(
        cls, rows: Tensor, group: Tensor, probabilities: Tensor, gram_s: Tensor, kernel_z: Kernel
    ) -> FiniteLaw:
        """Return the distribution of float64 rows of Z, of shape (n, d), and the index of each
        row's value of S, (n,).
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
            probabilities, gram_s, symmetrize(contrast.T @ product[:, :-1]), max(spread, 0.0)
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
        r"""The squared MMD between each conditional distribution and the marginal one,
        :math:`\|\Delta_k\|^2`, of shape (K,).
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
        """Return the leading eigenpairs of the kernel operator of S; `rule` determines how many."""
        root = self.probabilities.sqrt()
        eigenvalues, vectors = descending_eigenpairs(root[:, None] * self.gram_s * root[None, :])
        m = count_directions(eigenvalues, float(eigenvalues.sum()), rule, error=0.0, what="s")
        return Spectrum(eigenvalues[:m].clone(), vectors[:, :m] / root[:, None])

    def coefficients(self, spectrum: Spectrum) -> Tensor:
        r"""Return :math:`\langle \Delta_\ell, \Delta_{\ell'} \rangle` of
        :math:`\Delta_\ell = E_S[\Delta(S) \psi_\ell(S)]`, of shape (m, m).
        """
        weighted = self.probabilities[:, None] * spectrum.functions
        return symmetrize(weighted.T @ self.deviations @ weighted)


def probability_table(table: Any) -> Tensor:
    """Check a table of joint probabilities and return it as float64."""
    p = _tensors.matrix(table, "table").detach().to(torch.float64)
    if float(p.min()) < 0 or abs(float(p.sum()) - 1) > 1e-9:
        raise ValueError(
            f"the smallest entry of table is {float(p.min()):.3g} and its entries sum to"
            f" {float(p.sum()):.9g}; pass probabilities that sum to 1."
        )
    if float(p.sum(0).min()) <= 0:
        raise ValueError("a column of table sums to 0; drop the values of s that do not occur.")
    return p
