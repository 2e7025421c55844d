"""Penalties that condition on S: by smoothing weights (FREM), or by bins."""

from __future__ import annotations

import math
from typing import Any, Literal, get_args

import torch
from torch import Tensor
from torch.nn import functional

from frhsic.dependence.binned import (
    bin_membership,
    equal_width_edges,
    mean_difference_from_bins,
    pairwise_mmd_from_bins,
    quantile_edges,
)
from frhsic.dependence.conditional import eipm_from_gram, leave_one_out_weights
from frhsic.kernels import Kernel
from frhsic.penalties.base import Batch, Condition, nothing, one_of, positive, whole
from frhsic.penalties.scales import ScaledPenalty, ScaleZ

__all__ = ["EIPM", "BinnedMMD"]

Kind = Literal["pairwise", "mean-difference"]
Edges = Literal["equal-width", "quantile"]


NEGLIGIBLE = 1e-30
"""Entries of a Gram matrix below this are taken as zero."""


class EIPM(ScaledPenalty):
    r"""Mean distance of the smoothed conditional law of Z from its marginal, as FREM trains it.

    .. math:: \frac1a \sum_{i=1}^{a} \sqrt{\max\bigl(w_i^\top K w_i - 2 w_i^\top K u + u^\top K u,\ \varepsilon\bigr)},
        \qquad w_{ij} \propto \exp\bigl(-\|s_i - s_j\|^2 / 2\gamma^2\bigr),\ j \ne i, \quad u = 1/m.

    The anchors i are the first a rows of the batch: batches come in random order. Zero, up to
    :math:`\sqrt\varepsilon`, when every smoothed conditional mean embedding is the marginal one; positive by
    chance on a batch. At a γ that does not shrink, it sees a smoothed conditional law only.

    Parameters
    ----------
    kernel_z, scale_z, refresh_every
        The kernel of K and the unit of z, see :class:`~frhsic.penalties.scales.ScaledPenalty`. The defaults, a
        Gaussian of bandwidth 1 on z as it is, are the published ones.
    gamma
        Bandwidth of the weights, in units of s; several attributes are weighted by one Gaussian in all.
    anchors
        How many rows to average over (all, if the batch has fewer); None for all.
    floor
        ε, the least value under the root.
    condition, fewest
        Equal Opportunity, see :class:`~frhsic.penalties.base.Penalty`: weights, marginal and anchors are those
        of the rows that count.

    References
    ----------
    Kong et al. (2025), FREM. The published numbers were made with the defaults.

    Examples
    --------
    Two groups far apart in s, and the linear kernel: each conditional mean is half a unit from the overall mean.

    >>> from frhsic.kernels import Linear
    >>> penalty = EIPM(Linear(), gamma=1.0)
    >>> penalty(torch.tensor([[0.0], [0.0], [1.0], [1.0]]), torch.tensor([0.0, 0.0, 9.0, 9.0]))
    tensor(0.5000)
    """

    def __init__(
        self,
        kernel_z: Kernel | None = None,
        *,
        scale_z: ScaleZ | float = 1.0,
        gamma: float = 0.5,
        anchors: int | None = 32,
        floor: float = 1e-10,
        refresh_every: int = 20,
        condition: Condition = "all",
        fewest: int = 11,
    ) -> None:
        super().__init__(kernel_z, scale_z, refresh_every, condition, fewest)
        if anchors is not None:
            whole("anchors", anchors, 1)
        self.gamma = positive("gamma", gamma)
        self.anchors = anchors
        self.floor = positive("floor", floor)

    def _value(self, batch: Batch) -> Tensor:
        m = batch.rows
        if m < 2:
            return nothing(batch.z)
        # With bandwidth 1 in many dimensions most entries underflow: as denormal numbers they make a product 10 times
        # slower on a CPU than as zeros.
        k = functional.hardshrink(self._gram_z(batch), NEGLIGIBLE)
        count = m if self.anchors is None else min(self.anchors, m)
        if batch.chosen is None:
            every = torch.arange(count, device=k.device)
            return eipm_from_gram(k, leave_one_out_weights(batch.s, self.gamma, every), floor=self.floor)
        return self._of_chosen(k, batch.s, batch.chosen, batch.weights, count)

    def _of_chosen(self, k: Tensor, s: Tensor, chosen: Tensor, u: Tensor, count: int) -> Tensor:
        """Return the same for the rows that count, at the first `count` of them."""
        m = k.shape[0]
        w = leave_one_out_weights(s, self.gamma) * chosen
        w = w / w.sum(-1, keepdim=True).clamp_min(torch.finfo(w.dtype).tiny)
        anchors = chosen * (chosen.cumsum(0) <= count)
        # eipm_from_gram takes 1/m off the weights, and averages over all m rows. So the weights are moved by
        # 1/m - u, rows that are no anchor get 1/m and give √floor each, and these are taken off again.
        w = torch.where(anchors[:, None] > 0, w - u, 0) + 1 / m
        idle: Tensor = (m - anchors.sum()) * math.sqrt(self.floor)
        return (m * eipm_from_gram(k, w, floor=self.floor) - idle) / anchors.sum().clamp_min(1)


class BinnedMMD(ScaledPenalty):
    r"""How far apart bins of S are in Z: kernel MMD between pairs of bins, or differences of means.

    ``kind="pairwise"``, the paper's text, is the mean over pairs of bins of their squared MMD,

    .. math:: \binom{B}{2}^{-1} \sum_{a<b} \bigl\| \hat\mu_a - \hat\mu_b \bigr\|^2_{\mathcal F}, \qquad
        \hat\mu_b = \frac{1}{n_b} \sum_{i \in b} \kappa(z_i / \sigma_Z, \cdot);

    ``kind="mean-difference"``, of which the published numbers were made, has no kernel and is a sum,
    :math:`\sum_b \|\bar z_b - \bar z\|^2`. Bins with fewer than two rows of the batch are left out. Zero when the
    law of Z (its mean) is the same in all bins; what happens inside a bin is not seen. Several attributes:
    the sum over them.

    Parameters
    ----------
    kind
        ``"pairwise"`` or ``"mean-difference"``.
    kernel_z, scale_z, refresh_every
        The kernel of ``"pairwise"`` and the unit of z, see :class:`~frhsic.penalties.scales.ScaledPenalty`.
        The unit holds for ``"mean-difference"`` too: z is divided by it.
    bins
        Number of bins of each attribute.
    edges
        ``"equal-width"`` over the range of the training rows, or ``"quantile"`` for equal shares of them.
    condition, fewest
        Equal Opportunity, see :class:`~frhsic.penalties.base.Penalty`: bins and means are of the rows that count.

    Examples
    --------
    Two bins with means 0 and 2, about an overall mean of 1.

    >>> penalty = BinnedMMD("mean-difference", bins=2, scale_z=1.0)
    >>> penalty.prepare(torch.arange(4.0), torch.Generator())
    >>> penalty(torch.tensor([[0.0], [0.0], [2.0], [2.0]]), torch.arange(4.0))
    tensor(2.)
    """

    fixed_state = ("edges",)
    edges: Tensor | None

    def __init__(
        self,
        kind: Kind = "pairwise",
        kernel_z: Kernel | None = None,
        *,
        scale_z: ScaleZ | float = "normalised",
        bins: int = 10,
        edges: Edges = "equal-width",
        refresh_every: int = 20,
        condition: Condition = "all",
        fewest: int = 11,
    ) -> None:
        super().__init__(kernel_z, scale_z, refresh_every, condition, fewest)
        one_of("kind", kind, get_args(Kind))
        one_of("edges", edges, get_args(Edges))
        if kind == "mean-difference" and kernel_z is not None:
            raise ValueError("kind='mean-difference' has no kernel; leave kernel_z out, or pass kind='pairwise'.")
        whole("bins", bins, 2)
        self.kind = kind
        self.bins = bins
        self.edge_rule = edges
        self.register_buffer("edges", None)

    @classmethod
    def published(cls) -> BinnedMMD:
        """Return the penalty of the paper's printed numbers: mean differences over 10 quantile bins, z as it is.

        Examples
        --------
        >>> BinnedMMD.published().kind
        'mean-difference'
        """
        return cls("mean-difference", scale_z=1.0, edges="quantile")

    def arguments(self) -> dict[str, Any]:
        """Return the arguments; the rule for edges is kept apart from the edges, and means have no kernel."""
        own = {"edges": self.edge_rule} | ({"kernel_z": None} if self.kind == "mean-difference" else {})
        return super().arguments() | own

    def _prepare(self, s: Tensor, generator: torch.Generator) -> None:
        super()._prepare(s, generator)
        rule = quantile_edges if self.edge_rule == "quantile" else equal_width_edges
        self.edges = torch.stack([rule(column, self.bins) for column in s.mT])

    def _value(self, batch: Batch) -> Tensor:
        if self.edges is None:
            raise self._lacks("bins")
        k = self._gram_z(batch) if self.kind == "pairwise" else None
        z = self._measured(batch) if self.kind == "mean-difference" else batch.z
        if batch.chosen is not None:
            z = (z - batch.weights @ z) * batch.chosen[:, None]  # of mean 0 over all rows and over those that count
        terms = []
        for column, edges in zip(batch.s.mT, self.edges.to(batch.s)):
            member = bin_membership(column, edges)
            if batch.chosen is not None:
                member = member * batch.chosen[:, None]
            if k is None:
                terms.append(mean_difference_from_bins(z, member))
            else:
                terms.append(pairwise_mmd_from_bins(member.mT @ k @ member, member.sum(0)))
        return torch.stack(terms).sum()
