"""Generalized Demographic Parity as a penalty on the scores."""

from __future__ import annotations

from typing import get_args

import torch
from torch import Tensor

from frhsic import _arrays
from frhsic.parity.smoothed import Weighting, equispaced, gdp_value
from frhsic.penalties.base import Batch, Condition, Penalty, one_of

# Number of bandwidths by which rows of weight 0 are moved away, so that the smoother gives them weight 0.
FAR = 1e4


class GDP(Penalty):
    r"""How far the smoothed conditional mean of the scores is from their mean (Reg-GDP).

    .. math:: \frac1G \sum_{g=1}^{G} \bigl| \hat f(s_g) - \bar f \bigr|, \qquad
        \hat f(s_g) = \frac{\sum_i f_i \exp(-(s_g - s_i)^2 / 2b^2)}{\sum_i \exp(-(s_g - s_i)^2 / 2b^2)},

    on the head's raw output f; z is not used. Zero when the smoothed conditional mean is constant in s. It sees
    conditional means only, and can be lowered by shrinking the scores. With several attributes or several columns of
    scores it is the sum over all of them.

    Parameters
    ----------
    bandwidth
        The b of the Nadaraya–Watson smoother, in units of s.
    weighting
        ``"population"``: :math:`s_g` are the rows of the batch, as in the definition of GDP. ``"uniform"``: they are
        `points` equispaced values between the least and the largest s of the batch, as in the published numbers.
    points
        G, for the uniform weighting.
    condition
        Equal Opportunity, see :class:`~frhsic.penalties.base.Penalty`: range, mean and smoother of the rows with y = 1.

    References
    ----------
    Jiang, Han, Fan, Yang, Mostafavi and Hu (2022), *Generalized demographic parity for group fairness*. The published
    numbers were made with the defaults.

    Examples
    --------
    With a narrow smoother the two ends see their own scores, 0 and 2, about a mean of 1.

    >>> GDP(bandwidth=0.01, points=2)(torch.zeros(2, 3), torch.tensor([0.0, 1.0]), scores=torch.tensor([0.0, 2.0]))
    tensor(1.)
    """

    needs_scores = True

    def __init__(
        self,
        *,
        bandwidth: float = 0.2,
        weighting: Weighting = "uniform",
        points: int = 30,
        condition: Condition = "all",
    ) -> None:
        super().__init__(condition=condition)
        one_of("weighting", weighting, get_args(Weighting))
        _arrays.require_integer(points, "points", 2)
        _arrays.require_positive(bandwidth, "bandwidth")
        self.bandwidth = bandwidth
        self.weighting = weighting
        self.points = points

    def _value(self, batch: Batch) -> Tensor:
        assert batch.scores is not None
        f = batch.scores
        if batch.row_weight is not None:
            f = (f - batch.shares @ f) * batch.row_weight[:, None]  # mean 0 over all rows, and over those with weight
        return torch.stack([self._of_attribute(f.mT, s, batch) for s in batch.s.mT]).sum()

    def _of_attribute(self, f: Tensor, s: Tensor, batch: Batch) -> Tensor:
        """Return the gap of the scores, of shape (c, m), summed over columns."""
        inside = s
        if batch.row_weight is not None:
            counts = batch.row_weight > 0
            # rows of weight 0 move inside the range of the others for the points, and far away for the smoother
            inside = torch.where(counts, s, torch.where(counts, s, s.amax()).amin())
            s = torch.where(counts, s, s.amax() + FAR * self.bandwidth)
        if self.weighting == "population":
            return gdp_value(f, s, self.bandwidth, s, batch.shares).sum()
        return gdp_value(f, s, self.bandwidth, equispaced(inside, self.points)).sum()
