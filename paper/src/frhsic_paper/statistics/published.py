"""Statistics as used for the paper's printed numbers, including wrong ones. Use them to reproduce
these numbers, not to measure.
"""

from __future__ import annotations

import math
from typing import Any, Literal

from torch import Tensor

from frhsic.dependence.information import information_rows, ksg, principal_components
from frhsic.dependence.tiles import sum_over_tiles
from frhsic.independence import IndependenceResult
from frhsic.independence.grams import GramPair, gram_pair
from frhsic.independence.moments import is_degenerate, pearson_tail
from frhsic.kernels import Kernel


def published_gamma_test(
    z: Any, s: Any, kernel_z: Kernel | None = None, kernel_s: Kernel | None = None
) -> IndependenceResult:
    r"""The gamma test used for the published numbers, to reproduce them. It does not hold its
    nominal level.

    Its null mean of :math:`n\,\mathrm{HSIC}` is about :math:`\mu_K \mu_L`, where for unit-diagonal
    kernels it should be :math:`(1 - \mu_K)(1 - \mu_L)`, and its variance is far too small, so the
    threshold is near :math:`\mu_K \mu_L` for any data (:func:`published_moments`). At nominal level
    .05 it rejects independent data in 0 % of samples for an isotropic Z in 50 dimensions and in 10
    % to 13 % for one dimension. The published figure drew HSIC against a threshold for n·HSIC; here
    both are HSIC.

    Parameters
    ----------
    z, s, kernel_z, kernel_s
        As for :func:`frhsic.independence.gamma_test`.

    Examples
    --------
    >>> import torch
    >>> x = torch.linspace(0, 1, 20)
    >>> published_gamma_test(x, x).method
    'gamma, published moments (wrong level)'
    """
    pair = gram_pair(z, s, kernel_z, kernel_s)
    n, parts = pair.n, []
    for sums, c in ((pair.sums.k, pair.k.offset), (pair.sums.l, pair.l.offset)):
        total = float(sums.off_diagonal_rows.sum())  # without the offset
        squares = float(sums.squares - sums.diagonal.square().sum())
        pairs = n * (n - 1)
        parts.append((total + pairs * c, squares + 2 * c * total + pairs * c * c))
    mean, variance = published_moments(parts[0], parts[1], n)
    method = "gamma, published moments (wrong level)"
    return _gamma_from_zero(pair, (mean / n, variance / n**2), method)


def gamma_test_two_moments(
    z: Any,
    s: Any,
    kernel_z: Kernel,
    kernel_s: Kernel,
    *,
    moments: Literal["permutation", "gretton"],
) -> IndependenceResult:
    """The gamma test with a gamma distribution that starts at 0 and has the mean and variance of
    HSIC under independence.

    At level .01 and below its p-values are too small by a third or more;
    :func:`frhsic.independence.gamma_test` also uses the third moment.

    Parameters
    ----------
    z, s, kernel_z, kernel_s
        As for :func:`frhsic.independence.gamma_test`.
    moments
        ``"permutation"``: the moments over all permutations of s. ``"gretton"``: those of Gretton
        et al. (2007), only for kernels with k(x, x) = 1.
    """
    pair = gram_pair(z, s, kernel_z, kernel_s)
    null = pair.permutation_mean_variance() if moments == "permutation" else _gretton(pair)
    return _gamma_from_zero(pair, null, f"gamma, {moments} moments")


def _gamma_from_zero(pair: GramPair, null: tuple[float, float], method: str) -> IndependenceResult:
    """Return the test against the gamma distribution that starts at 0 and has this mean and
    variance.
    """
    mean, variance = null
    pvalue = 1.0
    threshold = mean
    if not is_degenerate(mean, variance):
        deviation = math.sqrt(variance)
        skewness = 2 * deviation / mean
        pvalue, threshold = pearson_tail(pair.statistic, mean, deviation, skewness, 0.05)
    return pair.result(pvalue, threshold, 0.05, method, null=null)


def _gretton(pair: GramPair) -> tuple[float, float]:
    if not (pair.k.kernel.unit_diagonal and pair.l.kernel.unit_diagonal):
        raise ValueError(
            "moments='gretton' needs kernels with k(x, x) = 1; pass moments='permutation'."
        )
    n, of_k, of_l = pair.n, pair.sums.k.centers, pair.sums.l.centers
    mean_k, mean_l = (
        gram.offset + float(sums.off_diagonal_rows.sum()) / (n * (n - 1))
        for gram, sums in ((pair.k, pair.sums.k), (pair.l, pair.sums.l))
    )

    def add(rows: slice, columns: slice, total: Tensor) -> None:
        product = pair.k.centered_tile(of_k, rows, columns).mul_(
            pair.l.centered_tile(of_l, rows, columns)
        )
        if rows == columns:
            product.fill_diagonal_(0)
        total += (1 if rows == columns else 2) * product.square().sum()

    (total,) = sum_over_tiles(n, pair.k.x.device, lambda: (pair.k.x.new_zeros(()),), add)
    return gretton_moments(mean_k, mean_l, float(total), n)


def gretton_moments(mean_k: float, mean_l: float, products: float, n: int) -> tuple[float, float]:
    r"""Mean and variance of biased HSIC under independence for unit-diagonal kernels, from Gretton
    et al. (2007).

    .. math::
        \frac{(1 - \mu_K)(1 - \mu_L)}{n}, \qquad
        \frac{2 (n-4)(n-5)}{n(n-1)(n-2)(n-3)} \cdot \frac{1}{n(n-1)} \sum_{i \ne j} \tilde K_{ij}^2
        \tilde L_{ij}^2,

    where :math:`\mu` are the means off the diagonal (Theorems 3 and 4, to leading order).

    Examples
    --------
    >>> gretton_moments(0.5, 0.6, 90.0, 10)[0]
    0.02
    """
    spread = products / (n * (n - 1))
    variance = 2 * (n - 4) * (n - 5) * spread / (n * (n - 1) * (n - 2) * (n - 3))
    return (1 - mean_k) * (1 - mean_l) / n, variance


def published_moments(
    k: tuple[float, float], l: tuple[float, float], n: int
) -> tuple[float, float]:
    r"""The mean and variance used for :math:`n \cdot \mathrm{HSIC}` in the published numbers. They
    are wrong.

    .. math::
        \frac{\sum K^\circ \sum L^\circ}{n(n-1)(n-2)(n-3)}, \qquad
        \frac{2 \sum (K^\circ)^2 \sum (L^\circ)^2}{n(n-1)(n-2)(n-3)(n-4)(n-5)},

    where :math:`K^\circ` is K with its diagonal set to zero; `k` and `l` are the two sums of each
    matrix.
    """
    falling = math.prod(range(n - 3, n + 1))  # Python's integers: exact beyond n = 55,000
    mean = k[0] * (l[0] / falling)
    return mean, 2 * k[1] * (l[1] / (falling * (n - 4) * (n - 5)))


def published_mutual_information(z: Any, s: Any, *, n_neighbors: int = 5) -> float:
    r"""Mutual information as in the published numbers: inclusive counts, no scaling, clipped at
    zero.

    Like :func:`frhsic.dependence.mutual_information`, but :math:`n_z(i)` counts the other rows at
    distance *at most* :math:`\varepsilon_i`; z is projected onto the fewest principal components
    with 95 % of its variance, from two to five; z and s are not scaled, and ties are not broken. If
    z has a larger scale than s, the counts bias it by up to -1/k, so zero does not mean
    independence. Use it to compare with the published values only, and
    :func:`frhsic.dependence.mutual_information` to measure.

    Parameters
    ----------
    z, s, n_neighbors
        As in :func:`frhsic.dependence.mutual_information`.

    Examples
    --------
    For the four corners of a square, each row has all three others within distance 1, and ψ(1) +
    ψ(4) - 2 ψ(4) < 0 is clipped.

    >>> published_mutual_information([0.0, 0.0, 1.0, 1.0], [0.0, 1.0, 0.0, 1.0], n_neighbors=1)
    0.0
    """
    z, s = information_rows(z, s, None, n_neighbors)
    z = principal_components(z, least=2)
    return max(ksg(z, s, n_neighbors, strict=False), 0.0)
