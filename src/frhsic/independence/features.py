r"""The test of independence computed from sums of random features over rows, for data in parts.

Random features define a kernel of finite rank, under which HSIC is a squared covariance. Under
independence :math:`n\,\mathrm{HSIC}` has the limit :math:`\sum_{ab} \lambda_a \mu_b \chi^2_{ab}`,
where λ and μ are the eigenvalues of the two covariance matrices of features; sums of their powers
are traces. Since the features do not depend on the rows, the level is correct for any number of
features, which affects only the power.

References
----------
Zhang, Filippi, Gretton and Sejdinovic (2018), *Large-scale kernel methods for independence
testing*.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import reduce
from operator import add

from torch import Tensor

from frhsic import _arrays
from frhsic.dependence.features import FeatureMaps, FeatureSums, products
from frhsic.independence.moments import is_degenerate, pearson_tail, permutation_mean_variance


@dataclass(frozen=True, eq=False)
class FeatureMoments:
    """Sums of products between features of z, between features of s, and between both; ``+`` adds
    the sums of parts of the data.
    """

    cross: FeatureSums
    z: FeatureSums
    s: FeatureSums

    def __add__(self, other: FeatureMoments) -> FeatureMoments:
        return FeatureMoments(self.cross + other.cross, self.z + other.z, self.s + other.s)


@dataclass(frozen=True)
class FeatureTest:
    """HSIC computed from random features of n rows, its p-value, and its mean and standard
    deviation under independence.
    """

    statistic: float
    pvalue: float
    null_mean: float
    null_standard_deviation: float
    n: int


def feature_moments(maps: FeatureMaps, z: Tensor, s: Tensor) -> FeatureMoments:
    """Return the sums of products of features over the rows of z, of shape (n, d), and s, of shape
    (n, q).
    """
    parts = (
        FeatureMoments(products(f, g), products(f, f), products(g, g)) for f, g in maps.chunks(z, s)
    )
    return reduce(add, parts)


def feature_test(maps: FeatureMaps, moments: FeatureMoments) -> FeatureTest:
    r"""Test of the independence of Z and S (:math:`H_0`), based on HSIC from random features and a
    shifted gamma distribution.

    The mean and variance of the gamma are those over permutations, without the part of the variance
    that is smaller by a factor of n. The third cumulant is that of the limit, :math:`8
    \operatorname{tr} C_z^3 \operatorname{tr} C_s^3 / n^3`. Use the test with thousands of rows or
    more.

    Examples
    --------
    >>> import torch
    >>> from frhsic.dependence.features import draw_feature_maps
    >>> from frhsic.kernels import Gaussian
    >>> x = torch.linspace(-1, 1, 200, dtype=torch.float64)[:, None]
    >>> maps = draw_feature_maps(Gaussian(1.0), Gaussian(1.0), 1, 1, random_state=0)
    >>> feature_test(maps, feature_moments(maps, x, x.square())).pvalue < 1e-6
    True
    """
    n = moments.cross.n
    _arrays.require_rows(n, 6, "the test by features")
    statistic = maps.estimate(moments.cross).value
    trace_z, square_z, cube_z = _traces(moments.z)
    trace_s, square_s, cube_s = _traces(moments.s)
    # A = n C and B = n C' have these traces; the squares of their diagonals sum to at least the
    # last entry
    a = (n * trace_z, n**2 * square_z, n * trace_z * trace_z)
    b = (n * trace_s, n**2 * square_s, n * trace_s * trace_s)
    mean, variance = permutation_mean_variance(a, b, n)
    mean = mean / n**2
    variance = variance / n**4
    if is_degenerate(mean, variance):  # z or s is constant under its kernel
        return FeatureTest(statistic, 1.0, mean, 0.0, n)
    deviation = math.sqrt(variance)
    skewness = 8 * cube_z * cube_s / n**3 / deviation**3
    pvalue, _ = pearson_tail(statistic, mean, deviation, skewness, 0.05)
    return FeatureTest(statistic, pvalue, mean, deviation, n)


def _traces(sums: FeatureSums) -> tuple[float, float, float]:
    """Return the traces of the covariance matrix of features, and of its square and cube."""
    blocks, features = sums.z.shape
    size = blocks * features
    # the kernel is the mean over the blocks
    covariance = sums.cross.reshape(size, size) / (sums.n * blocks)
    square = covariance @ covariance
    return float(covariance.trace()), float(square.trace()), float((square * covariance).sum())
