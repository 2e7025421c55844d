"""Penalties that compare Z across values of S: smoothed (FREM), or in bins (MMD)."""

from __future__ import annotations

from typing import Any, Literal, get_args

import torch
from torch import Tensor
from torch.nn import functional

from frhsic import _arrays
from frhsic.dependence.binned import (
    bin_membership,
    equal_width_edges,
    mean_difference_from_bins,
    pairwise_mmd_from_bins,
    quantile_edges,
)
from frhsic.dependence.conditional import eipm_from_gram, leave_one_out_weights
from frhsic.kernels import Kernel
from frhsic.penalties.base import Batch, Condition, one_of, zero
from frhsic.penalties.scales import ScaledPenalty, ScaleZ

Kind = Literal["pairwise", "mean-difference"]
Edges = Literal["equal-width", "quantile"]


# Least value under the root of an EIPM.
FLOOR = 1e-10

# Entries of a Gram matrix below this are set to zero.
NEGLIGIBLE = 1e-30


class EIPM(ScaledPenalty):
    r"""Mean distance of the smoothed conditional law of Z from its marginal, as FREM trains it.

    .. math:: \frac1a \sum_{i=1}^{a} \sqrt{\max\bigl(w_i^\top K w_i - 2 w_i^\top K u + u^\top K u,\ \varepsilon\bigr)},
        \qquad w_{ij} \propto \exp\bigl(-\|s_i - s_j\|^2 / 2\gamma^2\bigr),\ j \ne i, \quad u = 1/m.

    The anchors i are the first a rows of the batch, which come in random order, and ε is 1e-10. Zero, up to
    :math:`\sqrt\varepsilon`, when every smoothed conditional mean embedding is the marginal one; positive by chance on
    a batch. With a fixed γ it does not see dependence on a finer scale than γ.

    Parameters
    ----------
    kernel_z, scale_z
        The kernel of K and the unit of z, see :class:`~frhsic.penalties.scales.ScaledPenalty`. The defaults are the
        published ones: a Gaussian of bandwidth 1 on unscaled z.
    gamma
        Bandwidth of the weights, in units of s; several attributes share one Gaussian.
    anchors
        How many rows to average over (all, if the batch has fewer); None for all.
    condition
        Equal Opportunity, see :class:`~frhsic.penalties.base.Penalty`: weights, marginal and anchors of the rows with
        y = 1.

    References
    ----------
    Kong et al. (2025), FREM. The published numbers use the defaults.

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
        condition: Condition = "all",
    ) -> None:
        super().__init__(kernel_z, scale_z, condition)
        if anchors is not None:
            _arrays.require_integer(anchors, "anchors", 1)
        _arrays.require_positive(gamma, "gamma")
        self.gamma = gamma
        self.anchors = anchors

    def _value(self, batch: Batch) -> Tensor:
        m = batch.rows
        if m < 2:
            return zero(batch.z)
        # With bandwidth 1 in many dimensions most entries underflow. Denormal numbers make a product 10 times slower on
        # a CPU than zeros.
        k = functional.hardshrink(self._gram_z(batch), NEGLIGIBLE)
        count = m if self.anchors is None else min(self.anchors, m)
        if batch.row_weight is None:
            anchors = torch.arange(count, device=k.device)
            return eipm_from_gram(k, leave_one_out_weights(batch.s, self.gamma, anchors), floor=FLOOR)
        w = leave_one_out_weights(batch.s, self.gamma) * batch.row_weight
        w = w / w.sum(-1, keepdim=True).clamp_min(torch.finfo(w.dtype).tiny)
        counts = batch.row_weight * (batch.row_weight.cumsum(0) <= count)
        return eipm_from_gram(k, w, floor=FLOOR, marginal=batch.shares, counts=counts)


class BinnedMMD(ScaledPenalty):
    r"""Distance in Z between bins of S: kernel MMD between pairs of bins, or differences of means.

    ``kind="pairwise"``, the paper's text, is the mean over pairs of bins of their squared MMD,

    .. math:: \binom{B}{2}^{-1} \sum_{a<b} \bigl\| \hat\mu_a - \hat\mu_b \bigr\|^2_{\mathcal F}, \qquad
        \hat\mu_b = \frac{1}{n_b} \sum_{i \in b} \kappa(z_i / \sigma_Z, \cdot);

    ``kind="mean-difference"``, as in the published numbers, has no kernel and is a sum,
    :math:`\sum_b \|\bar z_b - \bar z\|^2`. Bins with fewer than two rows of the batch are left out. Zero when the law
    of Z (its mean) is the same in all bins; dependence inside a bin is not seen. Several attributes: the sum over them.

    Parameters
    ----------
    kind
        ``"pairwise"`` or ``"mean-difference"``.
    kernel_z, scale_z
        The kernel of ``"pairwise"`` and the unit of z, see :class:`~frhsic.penalties.scales.ScaledPenalty`.
        ``"mean-difference"`` uses the unit too: z is divided by it.
    bins
        Number of bins of each attribute.
    edges
        ``"equal-width"`` over the range of the training rows, or ``"quantile"`` for equal shares of them.
    condition
        Equal Opportunity, see :class:`~frhsic.penalties.base.Penalty`: bins and means of the rows with y = 1.

    Examples
    --------
    Two bins with means 0 and 2, about an overall mean of 1.

    >>> penalty = BinnedMMD("mean-difference", bins=2, scale_z=1.0)
    >>> penalty.prepare(torch.arange(4.0), torch.Generator())
    >>> penalty(torch.tensor([[0.0], [0.0], [2.0], [2.0]]), torch.arange(4.0))
    tensor(2.)
    """

    edges: Tensor | None

    def __init__(
        self,
        kind: Kind = "pairwise",
        kernel_z: Kernel | None = None,
        *,
        scale_z: ScaleZ | float = "normalized",
        bins: int = 10,
        edges: Edges = "equal-width",
        condition: Condition = "all",
    ) -> None:
        super().__init__(kernel_z, scale_z, condition)
        one_of("kind", kind, get_args(Kind))
        one_of("edges", edges, get_args(Edges))
        if kind == "mean-difference" and kernel_z is not None:
            raise ValueError("kind='mean-difference' has no kernel; leave kernel_z out, or pass kind='pairwise'.")
        _arrays.require_integer(bins, "bins", 2)
        self.kind = kind
        self.bins = bins
        self.edge_rule = edges
        self.register_buffer("edges", None)

    @classmethod
    def published(cls, *, condition: Condition = "all") -> BinnedMMD:
        """Return the penalty of the paper's printed numbers: mean differences over 10 quantile bins of unscaled z.

        Examples
        --------
        >>> BinnedMMD.published().kind
        'mean-difference'
        """
        return cls("mean-difference", scale_z=1.0, edges="quantile", condition=condition)

    def arguments(self) -> dict[str, Any]:
        """Return the arguments; `edges` is the rule, not the edges it gave, and differences of means have no kernel."""
        own = {"edges": self.edge_rule} | ({"kernel_z": None} if self.kind == "mean-difference" else {})
        return super().arguments() | own

    def _prepare(self, s: Tensor, generator: torch.Generator) -> None:
        super()._prepare(s, generator)
        rule = quantile_edges if self.edge_rule == "quantile" else equal_width_edges
        self.edges = torch.stack([rule(column, self.bins) for column in s.mT])

    def _value(self, batch: Batch) -> Tensor:
        if self.edges is None:
            raise self._not_prepared("bins")
        k = self._gram_z(batch) if self.kind == "pairwise" else None
        z = self._in_units(batch) if self.kind == "mean-difference" else batch.z
        if batch.row_weight is not None:
            z = (z - batch.shares @ z) * batch.row_weight[:, None]  # mean 0 over all rows, and over those with weight
        terms = []
        for column, edges in zip(batch.s.mT, self.edges.to(batch.s)):
            member = bin_membership(column, edges)
            if batch.row_weight is not None:
                member = member * batch.row_weight[:, None]
            if k is None:
                terms.append(mean_difference_from_bins(z, member))
            else:
                terms.append(pairwise_mmd_from_bins(member.mT @ k @ member, member.sum(0)))
        return torch.stack(terms).sum()
