"""Competing methods for which the paper gives a formula: FREM, means of bins, distance covariance
and Reg-GDP. The function for each formula precedes the penalty.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional

from frhsic import _arrays
from frhsic.dependence.grams import euclidean_distances, hsic_biased_from_gram, safe_sqrt
from frhsic.kernels import Gaussian, squared_distances
from frhsic.penalties.base import Batch, Penalty, zero
from frhsic.penalties.bins import bin_membership, quantile_edges

# Least value under the root of an EIPM.
EIPM_FLOOR = 1e-10

# Entries of a Gram matrix below this are set to zero.
SMALLEST_ENTRY = 1e-30


def leave_one_out_weights(
    s: Tensor, bandwidth: float | Tensor, anchors: Tensor | None = None
) -> Tensor:
    r"""Weights of the other rows for each anchor, :math:`w_{ij} \propto \exp(-\|s_i - s_j\|^2 /
    2\gamma^2)` for j ≠ i.

    The weights for an anchor sum to one, and the anchor itself has no weight. For an anchor far
    from all other rows, the weights concentrate on the nearest rows. Pure, and safe under ``vmap``.

    Parameters
    ----------
    s
        Values of shape (n,) or (n, q).
    bandwidth
        The γ of the formula: a positive number, a 0-d tensor, or one value per column.
    anchors
        Indices of rows, of shape (a,); by default, every row is an anchor.

    Returns
    -------
    Tensor
        Of shape (a, n).

    Examples
    --------
    For the middle row, the two neighbors have equal weight; for the first row, the nearer neighbor
    has more weight.

    >>> leave_one_out_weights(torch.tensor([0.0, 1.0, 2.0]), 1.0)
    tensor([[0.0000, 0.8176, 0.1824],
            [0.5000, 0.0000, 0.5000],
            [0.1824, 0.8176, 0.0000]])
    """
    rows = (s[:, None] if s.ndim == 1 else s) / bandwidth
    numbers = torch.arange(rows.shape[0], device=rows.device)
    anchors = numbers if anchors is None else anchors
    exponents = -squared_distances(rows[anchors], rows) / 2
    return torch.softmax(exponents.masked_fill(numbers == anchors[:, None], -math.inf), dim=-1)


def eipm_from_gram(k: Tensor, weights: Tensor, *, floor: float = 0.0) -> Tensor:
    r"""Mean over anchors of the distance between the weighted and the overall mean embedding.

    .. math:: \frac1a \sum_{i=1}^{a} \sqrt{(w_i - u)^\top K (w_i - u)}, \qquad u = 1/n,

    with :math:`w_i^\top K w_i - 2 w_i^\top K u + u^\top K u` under the root. Zero when every
    weighted mean equals the overall mean. Pure, and safe under ``vmap``. Adding a constant to the
    Gram matrix does not change the result, because the weights sum to one.

    Parameters
    ----------
    k
        Gram matrix of z, of shape (n, n).
    weights
        Weights of shape (a, n) with rows that sum to one, such as those from
        :func:`leave_one_out_weights`.
    floor
        Smallest value under the root. With a floor of 0, a vanishing term has gradient 0; the
        published training code used 1e-10.

    Examples
    --------
    With the linear kernel, each term is a difference of means: |0 - 1/2| and |1 - 1/2|.

    >>> z = torch.tensor([[0.0], [1.0]])
    >>> eipm_from_gram(z @ z.T, torch.tensor([[1.0, 0.0], [0.0, 1.0]]))
    tensor(0.5000)
    """
    away = weights - 1 / k.shape[-1]
    return safe_sqrt(((away @ k) * away).sum(-1).clamp_min(floor)).mean(-1)


class EIPM(Penalty):
    r"""Mean distance of the smoothed conditional distribution of Z from its marginal, as in FREM.

    .. math:: \frac1a \sum_{i=1}^{a} \sqrt{\max\bigl(w_i^\top K w_i - 2 w_i^\top K u + u^\top K u,\
        \varepsilon\bigr)},
        \qquad w_{ij} \propto \exp\bigl(-\|s_i - s_j\|^2 / 2\gamma^2\bigr),\ j \ne i, \quad u = 1/m.

    The anchors i are the first a rows of the batch, which is in random order, and ε is 1e-10. Zero,
    up to :math:`\sqrt\varepsilon`, when every smoothed conditional mean embedding equals the
    marginal mean embedding. On a batch, the value is also positive by chance. With a fixed γ, the
    penalty does not detect dependence on scales finer than γ.

    Parameters
    ----------
    scale_z
        Bandwidth of the Gaussian kernel of K, in units of z.
    gamma
        Bandwidth of the weights, in units of s; several attributes share one Gaussian.
    anchors
        Number of rows to average over, or all rows if the batch has fewer; None for all rows.

    References
    ----------
    Kong et al. (2025), FREM. The published numbers use the defaults.

    Examples
    --------
    Two groups far apart in s and in z: each conditional distribution is half of the marginal
    distribution, and the squared distance between their embeddings is 1/4 + 1/4.

    >>> penalty = EIPM(gamma=1.0)
    >>> penalty(torch.tensor([[0.0], [0.0], [99.0], [99.0]]), torch.tensor([0.0, 0.0, 9.0, 9.0]))
    tensor(0.7071)
    """

    def __init__(
        self,
        *,
        scale_z: float = 1.0,
        gamma: float = 0.5,
        anchors: int | None = 32,
    ) -> None:
        super().__init__()
        _arrays.require_positive(scale_z, "scale_z")
        if anchors is not None:
            _arrays.require_integer(anchors, "anchors", 1)
        _arrays.require_positive(gamma, "gamma")
        self.scale_z = scale_z
        self.gamma = gamma
        self.anchors = anchors

    def _value(self, batch: Batch) -> Tensor:
        m = batch.rows
        if m < 2:
            return zero(batch.z)
        # With bandwidth 1 in many dimensions most entries underflow. Denormal numbers make a
        # product 10 times slower on a CPU than zeros.
        z = self._scaled_z(batch)
        k = functional.hardshrink(Gaussian(1.0)(z, z), SMALLEST_ENTRY)
        count = m if self.anchors is None else min(self.anchors, m)
        anchors = torch.arange(count, device=k.device)
        weights = leave_one_out_weights(batch.s, self.gamma, anchors)
        return eipm_from_gram(k, weights, floor=EIPM_FLOOR)

    def _scaled_z(self, batch: Batch) -> Tensor:
        """Return z divided by the bandwidth of its kernel."""
        return (batch.z - batch.z.detach().mean(dim=0)) / self.scale_z


def mean_difference_from_bins(z: Tensor, membership: Tensor) -> Tensor:
    r"""Sum over bins of the squared distance to the overall mean, :math:`\sum_b \|\bar z_b - \bar
    z\|^2`.

    Bins with fewer than two rows are omitted. Pure, and safe under ``vmap``.

    Examples
    --------
    Means 0 and 2 around an overall mean of 1.

    >>> z = torch.tensor([[0.0], [0.0], [2.0], [2.0]])
    >>> mean_difference_from_bins(z, bin_membership(torch.arange(4.0), torch.tensor([2.0])))
    tensor(2.)
    """
    sizes = membership.sum(-2)
    away = z - z.mean(-2, keepdim=True)
    means = (membership.mT @ away) / sizes.clamp_min(1)[..., None]
    return ((means * means).sum(-1) * (sizes >= 2)).sum(-1)


class BinnedMMD(Penalty):
    r"""Differences between the means of Z in bins of S, :math:`\sum_b \|\bar z_b - \bar z\|^2`.

    Zero when the mean of Z is the same in all bins; dependence inside a bin is not detected. Bins
    with fewer than two rows of the batch are omitted. With several attributes, the penalty is the
    sum over attributes. The published numbers of "MMD" use the defaults.

    Parameters
    ----------
    bins
        Number of bins for each attribute, with equal shares of the training rows.

    Examples
    --------
    Two bins with means 0 and 2, around an overall mean of 1.

    >>> penalty = BinnedMMD(bins=2)
    >>> penalty.prepare(torch.arange(4.0), torch.Generator())
    >>> penalty(torch.tensor([[0.0], [0.0], [2.0], [2.0]]), torch.arange(4.0))
    tensor(2.)
    """

    edges: Tensor | None

    def __init__(self, *, bins: int = 10) -> None:
        super().__init__()
        _arrays.require_integer(bins, "bins", 2)
        self.bins = bins
        self.register_buffer("edges", None)

    def _prepare(self, s: Tensor, generator: torch.Generator) -> None:
        self.edges = torch.stack([quantile_edges(column, self.bins) for column in s.mT])

    def _value(self, batch: Batch) -> Tensor:
        if self.edges is None:
            raise self._not_prepared("bins")
        terms = [
            mean_difference_from_bins(batch.z, bin_membership(column, edges))
            for column, edges in zip(batch.s.mT, self.edges.to(batch.s))
        ]
        return torch.stack(terms).sum()


class DistanceCovariance(Penalty):
    r"""Squared distance covariance of a batch, :math:`m^{-2} \sum_{ij} A_{ij} B_{ij}`.

    A and B are the doubly centered Euclidean distances of z and of s. Zero in the population
    exactly when Z and S are independent. Multiplying z by c multiplies the value by c, so shrinking
    z lowers the value. Several attributes are measured jointly, using the distance between rows of
    s. The published numbers of "dCor" come from this penalty.

    References
    ----------
    Székely, Rizzo and Bakirov (2007), *Measuring and testing dependence by correlation of
    distances*.

    Examples
    --------
    Two rows at distance one: A = B = [[-1/2, 1/2], [1/2, -1/2]].

    >>> import torch
    >>> DistanceCovariance()(torch.tensor([[0.0], [1.0]]), torch.tensor([0.0, 1.0]))
    tensor(0.2500)
    """

    def __init__(self) -> None:  # without a condition
        super().__init__()

    def _value(self, batch: Batch) -> Tensor:
        if batch.rows < 2:
            return zero(batch.z)
        return hsic_biased_from_gram(euclidean_distances(batch.s), euclidean_distances(batch.z))


def nadaraya_watson_weights(at: Tensor, s: Tensor, bandwidth: float | Tensor) -> Tensor:
    r"""Weights of the rows at given values of s, :math:`w_{gj} \propto \exp(-(s_g - s_j)^2 /
    2h^2)`, summing to one.

    At a value far from all rows, the weights concentrate on the nearest rows. Pure, and safe under
    ``vmap``.

    Parameters
    ----------
    at
        Values of shape (g,).
    s
        Rows, of shape (n,).
    bandwidth
        The h of the smoother, in units of s.

    Returns
    -------
    Tensor
        Weights of shape (g, n).

    Examples
    --------
    >>> nadaraya_watson_weights(torch.tensor([0.0]), torch.tensor([0.0, 1.0, 2.0]), 1.0)
    tensor([[0.5741, 0.3482, 0.0777]])
    """
    return torch.softmax(-(((at[..., :, None] - s[..., None, :]) / bandwidth) ** 2) / 2, dim=-1)


def gdp_value(
    scores: Tensor,
    s: Tensor,
    bandwidth: float | Tensor,
    grid: Tensor,
    weights: Tensor | None = None,
) -> Tensor:
    r"""Gaps in the smoothed mean scores of many models at once, without intervals or tests.

    .. math:: \sum_g v_g \Bigl| \sum_j w_{gj} f_j - \bar f \Bigr|, \qquad
        w_{gj} \propto \exp\bigl(-(s_g - s_j)^2 / 2h^2\bigr).

    Zero when the smoothed mean of the scores is constant on the grid. Pure, differentiable, and
    safe under ``vmap``; memory is O(grid · n).

    Parameters
    ----------
    scores
        Scores of shape (..., n), such as one row per model.
    s
        The attribute, of shape (n,).
    bandwidth
        The h of the smoother, in units of s.
    grid
        Values of s at which the gap is computed, of shape (g,).
    weights
        The v in the formula, of shape (g,), which must sum to one; by default, all are equal.

    Examples
    --------
    With a narrow smoother, the smoothed means are the scores themselves: 0 and 2 around a mean of
    1, and for a second model 0 and 4 around a mean of 2.

    >>> s = torch.tensor([0.0, 1.0])
    >>> gdp_value(torch.tensor([[0.0, 2.0], [0.0, 4.0]]), s, 0.01, grid=s)
    tensor([1., 2.])
    """
    away = scores - scores.mean(dim=-1, keepdim=True)
    gaps = (away @ nadaraya_watson_weights(grid, s, bandwidth).mT).abs()
    return gaps.mean(dim=-1) if weights is None else gaps @ weights


def equispaced_points(values: Tensor, points: int) -> Tensor:
    """Return equispaced points from the smallest to the largest value."""
    low, high = values.aminmax()
    steps = torch.arange(points, dtype=values.dtype, device=values.device)
    return low + (high - low) * steps / (points - 1)


class GDP(Penalty):
    r"""Mean distance of the smoothed conditional mean of the scores from their overall mean
    (Reg-GDP).

    .. math:: \frac1G \sum_{g=1}^{G} \bigl| \hat f(s_g) - \bar f \bigr|, \qquad
        \hat f(s_g) = \frac{\sum_i f_i \exp(-(s_g - s_i)^2 / 2b^2)}{\sum_i \exp(-(s_g - s_i)^2 /
        2b^2)},

    on the head's raw output f; z is not used. Zero when the smoothed conditional mean is constant
    in s. The penalty measures only conditional means, and can be lowered by shrinking the scores.
    With several attributes or several columns of scores, it is the sum over all pairs of an
    attribute and a column of scores.

    Parameters
    ----------
    bandwidth
        Bandwidth b of the Nadaraya–Watson smoother, in units of s.
    points
        Number G of the values :math:`s_g`, which are equispaced from the smallest to the largest s
        in the batch.

    References
    ----------
    Jiang, Han, Fan, Yang, Mostafavi and Hu (2022), *Generalized demographic parity for group
    fairness*. The published numbers use the defaults.

    Examples
    --------
    With a narrow smoother, the smoothed means at both ends are the scores themselves, 0 and 2,
    around a mean of 1.

    >>> GDP(bandwidth=0.01, points=2)(
    ...     torch.zeros(2, 3), torch.tensor([0.0, 1.0]), scores=torch.tensor([0.0, 2.0])
    ... )
    tensor(1.)
    """

    needs_scores = True

    def __init__(self, *, bandwidth: float = 0.2, points: int = 30) -> None:
        super().__init__()
        _arrays.require_integer(points, "points", 2)
        _arrays.require_positive(bandwidth, "bandwidth")
        self.bandwidth = bandwidth
        self.points = points

    def _value(self, batch: Batch) -> Tensor:
        assert batch.scores is not None
        gaps = [
            gdp_value(batch.scores.mT, s, self.bandwidth, equispaced_points(s, self.points)).sum()
            for s in batch.s.mT
        ]
        return torch.stack(gaps).sum()
