"""Distance covariance and correlation as penalties: no bandwidth anywhere."""

from __future__ import annotations

from typing import Literal, get_args

from torch import Tensor

from frhsic.dependence.distance import euclidean_distances, ratio
from frhsic.dependence.grams import hsic_biased, hsic_unbiased, hsic_weighted
from frhsic.penalties.base import Batch, Condition, Penalty, nothing, one_of

__all__ = ["DistanceCorrelation", "DistanceCovariance"]

Estimator = Literal["biased", "unbiased"]


class DistanceCovariance(Penalty):
    r"""Squared distance covariance of a batch, :math:`m^{-2} \sum_{ij} A_{ij} B_{ij}`.

    A and B are the doubly centred Euclidean distances of z and of s. Zero in the population exactly when Z and S
    are independent. It falls when z is shrunk: multiplying z by c multiplies it by c. Several attributes are one
    point each in their distances.

    Parameters
    ----------
    estimator
        ``"biased"``, the V-statistic above, of which the published "dCor" numbers were made, or ``"unbiased"``
        (U-centred distances; 0 for batches under 4 rows).
    condition, fewest
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

    def __init__(self, *, estimator: Estimator = "biased", condition: Condition = "all", fewest: int = 11) -> None:
        super().__init__(condition=condition, fewest=fewest)
        one_of("estimator", estimator, get_args(Estimator))
        if estimator == "unbiased" and condition == "positive":
            raise ValueError("the unbiased estimator takes no weights; pass estimator='biased' or condition='all'.")
        self.estimator = estimator

    def _value(self, batch: Batch) -> Tensor:
        if batch.rows < self._least:
            return nothing(batch.z)
        return self._product(euclidean_distances(batch.s), euclidean_distances(batch.z), batch)

    @property
    def _least(self) -> int:
        return 4 if self.estimator == "unbiased" else 2

    def _product(self, a: Tensor, b: Tensor, batch: Batch) -> Tensor:
        """Return the inner product of two matrices of distances after centring, by the estimator."""
        if self.estimator == "unbiased":
            return hsic_unbiased(a, b)
        return hsic_biased(a, b) if batch.chosen is None else hsic_weighted(a, b, batch.weights)


class DistanceCorrelation(DistanceCovariance):
    r"""Squared distance correlation of a batch.

    .. math:: \mathrm{dCov}^2(z, s) / \sqrt{\mathrm{dCov}^2(z, z)\, \mathrm{dCov}^2(s, s)}.

    Between 0 and 1 as a V-statistic, and the same when z is shifted, scaled or rotated. Zero in the population
    exactly when Z and S are independent; on a batch it is positive by chance, more so in more dimensions, which
    the unbiased estimator is not. 0 where z or s is constant.

    Parameters
    ----------
    estimator
        ``"biased"``, or ``"unbiased"``, a ratio of unbiased estimates, which the paper's text names.
    condition, fewest
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

    def _value(self, batch: Batch) -> Tensor:
        if batch.rows < self._least:
            return nothing(batch.z)
        a, b = euclidean_distances(batch.s), euclidean_distances(batch.z)
        return ratio(self._product(a, b, batch), self._product(a, a, batch), self._product(b, b, batch))
