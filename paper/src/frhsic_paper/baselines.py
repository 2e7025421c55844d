"""The paper's baselines as its text describes them. The printed numbers were made with other variants.

| | text, here | reference code, ``frhsic.penalties.names`` |
|---|---|---|
| MMD | mean squared MMD of pairs of ten bins of equal width | sum of squared mean differences, ten quantile bins |
| dCor | unbiased distance correlation | squared distance covariance, biased |
| ADV | correlation of an adversary's one output with S | minus its squared error, which has no lower bound |
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from torch import Tensor

from frhsic.penalties import BinnedMMD, DistanceCorrelation, Penalty
from frhsic.penalties.adversary import _Adversarial

LEAST_VARIANCE = 1e-8
"""Added to variances, so that a constant output has correlation 0."""


class CorrelationAdversary(_Adversarial):
    r"""Squared correlation of an adversary's output a with S, :math:`\operatorname{corr}^2(a(Z), S)`, over one batch.

    Between 0 and 1. The largest value over all a is the correlation ratio of S given Z, which is the maximal (HGR)
    correlation of Grari et al. (2022) with the identity in the place of their second network. The adversary takes one
    Adam step up in each :meth:`adapt`. Several attributes: the mean over them.

    Parameters
    ----------
    z_dim, hidden, learning_rate
        As in :class:`frhsic.penalties.Adversary`.

    Examples
    --------
    An adversary with zero weights gives a constant, which is correlated with nothing.

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


def text_baselines(z_dim: int) -> dict[str, Callable[[], Penalty]]:
    """Return the makers of the baselines that the text describes otherwise than the reference code has them.

    Examples
    --------
    >>> [type(make()).__name__ for make in text_baselines(8).values()]
    ['BinnedMMD', 'DistanceCorrelation', 'CorrelationAdversary']
    """
    return {
        "mmd": BinnedMMD,
        "dcor": partial(DistanceCorrelation, statistic="unbiased"),
        "adv": partial(CorrelationAdversary, z_dim),
    }
