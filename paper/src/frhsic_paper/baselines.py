"""Baselines as described in the paper's text, where its reference code differs."""

from __future__ import annotations

import torch
from torch import Tensor

from frhsic.dependence.grams import euclidean_distances, hsic_unbiased_from_gram, ratio
from frhsic.kernels import Gaussian
from frhsic.penalties import EIPM, Penalty
from frhsic.penalties.adversary import _Adversarial
from frhsic.penalties.base import Batch, zero
from frhsic.penalties.bins import bin_membership, one_attribute
from frhsic.penalties.hsic import LEAST_BATCH_SPREAD

BINS = 10


def pairwise_mmd_from_bins(sums: Tensor, sizes: Tensor) -> Tensor:
    r"""Mean squared MMD over pairs of bins, from sums of the Gram matrix over pairs of bins.

    .. math:: \binom{B}{2}^{-1} \sum_{a<b} \bigl( G_{aa} - 2 G_{ab} + G_{bb} \bigr), \qquad
        G_{ab} = \frac{1}{n_a n_b} \sum_{i \in a, j \in b} k(z_i, z_j),

    over the bins with at least two rows; 0 if there are fewer than two such bins. The diagonal is
    included, so each term is a squared distance between mean embeddings, biased upwards by
    O(1/n_b). A pure function that works under ``vmap``.

    Parameters
    ----------
    sums
        :math:`M^\top K M` of shape (..., B, B), for a membership M of shape (..., n, B).
    sizes
        Rows in each bin, of shape (..., B).

    Examples
    --------
    With the linear kernel, the squared distance between the two bins, with means 0 and 2, is 4.

    >>> z = torch.tensor([[0.0], [0.0], [2.0], [2.0]])
    >>> m = bin_membership(torch.arange(4.0), torch.tensor([2.0]))
    >>> pairwise_mmd_from_bins(m.T @ (z @ z.T) @ m, m.sum(0))
    tensor(4.)
    """
    weights = 1 / sizes.clamp_min(1)
    g = sums * weights[..., :, None] * weights[..., None, :]
    own = torch.diagonal(g, dim1=-2, dim2=-1)
    enough = sizes >= 2
    pairs = (enough[..., :, None] & enough[..., None, :]).to(g.dtype)
    pairs = pairs * (1 - torch.eye(g.shape[-1], dtype=g.dtype, device=g.device))
    squares = own[..., :, None] + own[..., None, :] - 2 * g
    return (squares * pairs).sum(dim=(-2, -1)) / pairs.sum(dim=(-2, -1)).clamp_min(1)


def equal_width_edges(s: Tensor) -> Tensor:
    """Return the inner edges of ten bins of equal width over the range of s.

    Examples
    --------
    >>> equal_width_edges(torch.tensor([0.0, 1.0, 10.0]))
    tensor([1., 2., 3., 4., 5., 6., 7., 8., 9.])
    """
    low, high = one_attribute(s).detach().aminmax()
    return low + (high - low) * (torch.arange(1, BINS).to(s) / BINS)


def root_mean_square_distance(z: Tensor, w: Tensor) -> Tensor:
    r"""Root mean square distance, :math:`(\sum_{ij} w_i w_j \|z_i - z_j\|^2)^{1/2}`, at least 1e-6.

    Computed as :math:`(2 \sum_i w_i \|z_i - \bar z\|^2)^{1/2}`, without an m × m matrix.

    Examples
    --------
    The squared distances of the pairs (0, 0), (0, 3), (3, 0) and (3, 3) add up to 18, and the
    root of their mean is √(18/4).

    >>> root_mean_square_distance(torch.tensor([[0.0], [3.0]]), torch.tensor([0.5, 0.5]))
    tensor(2.1213)
    """
    centered = z - w @ z
    return (2 * (w @ (centered * centered)).sum()).clamp_min(LEAST_BATCH_SPREAD**2).sqrt()


class ScaledEIPM(EIPM):
    r"""FREM's penalty on Z, with each column scaled to [0, 1] by its range in the batch.

    The text's bandwidth of 1 refers to these units. The value doesn't change if a column of z is
    shifted or multiplied by a positive number.

    Examples
    --------
    >>> z, s = torch.tensor([[0.0], [1.0], [4.0]]), torch.tensor([0.0, 1.0, 2.0])
    >>> bool(torch.isclose(ScaledEIPM()(z, s), EIPM()(z / 4, s)))
    True
    """

    def _scaled_z(self, batch: Batch) -> Tensor:
        low = batch.z.amin(dim=0)
        width = (batch.z.amax(dim=0) - low).clamp_min(LEAST_BATCH_SPREAD)
        return (batch.z - low) / width / self.scale_z


class PairwiseMMD(Penalty):
    r"""Mean squared MMD in Z over pairs of bins of S; see :func:`pairwise_mmd_from_bins`.

    It uses ten bins of equal width over the range of the training rows, and a Gaussian kernel on Z
    with bandwidth 1, in units of the root mean square distance. With several attributes, the values
    for all attributes are added up.
    """

    edges: Tensor | None

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("edges", None)

    def _prepare(self, s: Tensor, generator: torch.Generator) -> None:
        self.edges = torch.stack([equal_width_edges(column) for column in s.mT])

    def _value(self, batch: Batch) -> Tensor:
        if self.edges is None:
            raise self._not_prepared("bins")
        z = batch.z - batch.z.detach().mean(dim=0)
        z = z / root_mean_square_distance(z, batch.shares)
        k = Gaussian(1.0)(z, z)
        members = [
            bin_membership(column, edges)
            for column, edges in zip(batch.s.mT, self.edges.to(batch.s))
        ]
        terms = [pairwise_mmd_from_bins(m.mT @ k @ m, m.sum(0)) for m in members]
        return torch.stack(terms).sum()


class UnbiasedCorrelation(Penalty):
    r"""Squared distance correlation in a batch, as a ratio of unbiased estimates (U-centered
    distances).

    .. math:: \mathrm{dCov}^2(z, s) / \sqrt{\mathrm{dCov}^2(z, z)\, \mathrm{dCov}^2(s, s)}.

    It doesn't change if z is shifted, scaled or rotated. It is 0 if z or s is constant, and for
    batches with fewer than four rows.

    References
    ----------
    Székely and Rizzo (2014), *Partial distance correlation with methods for dissimilarities*.
    """

    def _value(self, batch: Batch) -> Tensor:
        if batch.rows < 4:
            return zero(batch.z)
        a = euclidean_distances(batch.s)
        b = euclidean_distances(batch.z)
        return ratio(
            hsic_unbiased_from_gram(a, b),
            hsic_unbiased_from_gram(a, a),
            hsic_unbiased_from_gram(b, b),
        )


LEAST_VARIANCE = 1e-8
"""Added to variances, so that a constant output has correlation 0."""


class CorrelationAdversary(_Adversarial):
    r"""Squared correlation of an adversary's output a with S, :math:`\operatorname{corr}^2(a(Z),
    S)`, in one batch.

    It is between 0 and 1. Its maximum over all a is the correlation ratio of S given Z, which is
    the maximal (HGR) correlation of Grari et al. (2022) with the identity in place of their second
    network. The adversary takes one Adam ascent step in each call of :meth:`adapt`. With several
    attributes, the value is the mean over attributes.

    Parameters
    ----------
    z_dim, hidden, learning_rate
        As in :class:`frhsic.penalties.Adversary`.

    Examples
    --------
    An adversary with zero weights outputs a constant, which isn't correlated with anything.

    >>> import torch
    >>> penalty = CorrelationAdversary(z_dim=2)
    >>> penalty.prepare(torch.tensor([1.0, 3.0]), torch.Generator())
    >>> for weight in penalty.buffers():
    ...     _ = weight.zero_()
    >>> penalty(torch.ones(2, 2), torch.tensor([1.0, 3.0]))
    tensor(0.)
    """

    def __init__(self, z_dim: int = 50, *, hidden: int = 50, learning_rate: float = 1e-3) -> None:
        super().__init__(z_dim, hidden, learning_rate)

    def _loss(self, outputs: Tensor, s: Tensor) -> Tensor:
        a, b = outputs - outputs.mean(0), s - s.mean(0)
        covariance = (a * b).mean(0)
        variances = (a.square().mean(0) + LEAST_VARIANCE) * (b.square().mean(0) + LEAST_VARIANCE)
        return -(covariance.square() / variances).mean()
