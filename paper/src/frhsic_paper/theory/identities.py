"""Joint distances as sums over sensitive values, with both sides of each identity."""

from __future__ import annotations

import itertools
from typing import Any

import torch
from torch import Tensor

from frhsic import _tensors
from frhsic.dependence import hsic
from frhsic.kernels import Kernel
from frhsic_paper.certificates import Certificate, rows_and_kernels
from frhsic_paper.theory.finite import FiniteLaw, probability_table

SELECTORS = 1_000_000
"""Largest number of witnesses of a decomposable class."""


def discrete_identity(
    z: Any, s: Any, kernel_z: Kernel | None = None, kernel_s: Kernel | None = None
) -> Certificate:
    r"""HSIC of a sample with ties in S as a sum over pairs of sensitive values.

    .. math:: \mathrm{HSIC}(Z, S) = \sum_{k, l} \pi_k \pi_l\, k_S(s_k, s_l)\, \langle \Delta_k,
        \Delta_l \rangle

    The value is the right-hand side, from conditional mean embeddings; `bounded` is the left-hand
    side, from pairs of rows. They are equal up to rounding and, if both kernels are characteristic,
    zero exactly when the conditional MMD integral is.

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
        raise ValueError(
            f"witnesses have shape {tuple(f.shape)}; pass an array of shape (functions,"
            f" {p.shape[0]}, {p.shape[1]})."
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
    :math:`(z, s) \mapsto g_s(z)` for every choice :math:`s \mapsto g_s \in \mathcal V`. The
    left-hand side is the maximum over all choices. It is smaller for a class that is not
    decomposable, such as the unit ball of a product RKHS.

    Parameters
    ----------
    table
        :math:`P(Z = z_i, S = s_k)`, of shape (a, K).
    heads
        The values of each function, (functions, a). The number of functions, raised to the number
        of values of s, must be at most 1,000,000.

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
    g = _tensors.matrix(heads, "heads").to(p)
    if g.shape[1] != p.shape[0]:
        raise ValueError(
            f"each head has {g.shape[1]} values, but the table has {p.shape[0]} rows; pass one"
            " value for each row."
        )
    g = torch.cat([g, -g])
    if g.shape[0] ** p.shape[1] > SELECTORS:
        raise ValueError(
            f"{g.shape[0]} heads for {p.shape[1]} values of s give {g.shape[0] ** p.shape[1]}"
            f" choices, more than {SELECTORS}; pass fewer heads or fewer values of s."
        )
    excess, contrast, weights = _against_product(p)
    integral = float((g @ contrast).abs().amax(0) @ weights)
    # the left-hand side needs only the joint distribution: each witness is a table, multiplied by p
    # − p ⊗ π and summed
    per_value = (g @ excess).T.tolist()  # one row of contributions per value of s
    joint = max(abs(sum(choice)) for choice in itertools.product(*per_value))
    return Certificate(
        value=integral,
        bounds="joint-versus-product IPM over a decomposable class (an identity)",
        bounded=joint,
        assumes=("the class is symmetric and decomposable over s",),
        details={"heads": g.shape[0], "witnesses": g.shape[0] ** p.shape[1]},
    )


def _against_product(p: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    r"""Return :math:`p_{ik} - p_i \pi_k`, the contrasts :math:`p_{i \mid k} - p_i`, and
    :math:`\pi_k`.
    """
    weights = p.sum(0)
    marginal = p.sum(1)
    return p - marginal[:, None] * weights, p / weights - marginal[:, None], weights
