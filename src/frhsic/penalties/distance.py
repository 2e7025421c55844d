"""Distance covariance and correlation as penalties, which need no bandwidth."""

from __future__ import annotations

from typing import get_args

from torch import Tensor

from frhsic.dependence.distance import euclidean_distances, ratio
from frhsic.penalties.base import Batch, Condition, Penalty, Statistic, one_of, zero


class DistanceCovariance(Penalty):
    r"""Squared distance covariance of a batch, :math:`m^{-2} \sum_{ij} A_{ij} B_{ij}`.

    A and B are the doubly centered Euclidean distances of z and of s. Zero in the population exactly when Z and S are
    independent. Multiplying z by c multiplies it by c, so it can be lowered by shrinking z. Several attributes are
    measured jointly, by the distance between rows of s.

    Parameters
    ----------
    statistic
        ``"biased"``, the V-statistic above, as in the published "dCor" numbers, or ``"unbiased"`` (U-centered
        distances; 0 for batches under 4 rows).
    condition
        Equal Opportunity, see :class:`~frhsic.penalties.base.Penalty`.

    References
    ----------
    Székely, Rizzo and Bakirov (2007), *Measuring and testing dependence by correlation of distances*.

    Examples
    --------
    Two rows one apart: A = B = [[-1/2, 1/2], [1/2, -1/2]].

    >>> import torch
    >>> DistanceCovariance()(torch.tensor([[0.0], [1.0]]), torch.tensor([0.0, 1.0]))
    tensor(0.2500)
    """

    def __init__(self, *, statistic: Statistic = "biased", condition: Condition = "all") -> None:
        super().__init__(condition=condition)
        one_of("statistic", statistic, get_args(Statistic))
        if statistic == "unbiased" and condition == "positive":
            raise ValueError("statistic='unbiased' takes no weights, which condition='positive' needs.")
        self.statistic = statistic

    def _value(self, batch: Batch) -> Tensor:
        if batch.rows < (4 if self.statistic == "unbiased" else 2):
            return zero(batch.z)
        return self._from_distances(euclidean_distances(batch.s), euclidean_distances(batch.z), batch)

    def _from_distances(self, a: Tensor, b: Tensor, batch: Batch) -> Tensor:
        """Return the penalty, from the distances of s and of z."""
        return batch.hsic(a, b, self.statistic)


class DistanceCorrelation(DistanceCovariance):
    r"""Squared distance correlation of a batch.

    .. math:: \mathrm{dCov}^2(z, s) / \sqrt{\mathrm{dCov}^2(z, z)\, \mathrm{dCov}^2(s, s)}.

    Between 0 and 1 as a V-statistic, and the same when z is shifted, scaled or rotated. Zero in the population
    exactly when Z and S are independent. On a batch the biased statistic is positive by chance, more so in more
    dimensions; the unbiased one is not. 0 if z or s is constant.

    Parameters
    ----------
    statistic
        ``"biased"``, or ``"unbiased"``, a ratio of unbiased estimates, which the paper's text names.
    condition
        Equal Opportunity, see :class:`~frhsic.penalties.base.Penalty`.

    References
    ----------
    Székely and Rizzo (2014), *Partial distance correlation with methods for dissimilarities*.

    Examples
    --------
    >>> import torch
    >>> DistanceCorrelation()(torch.tensor([[0.0], [1.0], [5.0]]), torch.tensor([3.0, 1.0, -7.0]))
    tensor(1...)
    """

    def _from_distances(self, a: Tensor, b: Tensor, batch: Batch) -> Tensor:
        return ratio(*(batch.hsic(x, y, self.statistic) for x, y in ((a, b), (a, a), (b, b))))
