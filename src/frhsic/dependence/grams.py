r"""HSIC of two Gram matrices in memory, and factors of larger matrices.

The functions of matrices are pure, batched over leading dimensions and safe under ``vmap``. Use
them where Gram matrices :math:`K, L` of shape (..., n, n) fit in memory: for mini-batches,
permutation tests, and eigenvalue bounds. For larger samples, use :func:`frhsic.dependence.hsic`.
Adding a constant to a kernel does not change HSIC, so `kernel.shifted` may be used in place of the
kernel, which keeps more digits if the kernel is nearly constant.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from frhsic import _arrays
from frhsic.dependence.formulas import unbiased_from_sums
from frhsic.kernels import Kernel, squared_distances


def centered_gram(k: Tensor) -> Tensor:
    r"""Doubly centered Gram matrix, :math:`HKH` with :math:`H = I - 11^\top / n`.

    Rows and columns of the result sum to zero. The result is zero exactly when :math:`K_{ij} = a_i
    + a_j`.

    Parameters
    ----------
    k
        Symmetric matrices of shape (..., n, n).

    Examples
    --------
    >>> centered_gram(torch.tensor([[0.0, 2.0], [2.0, 0.0]]))
    tensor([[-1.,  1.],
            [ 1., -1.]])
    """
    rows = k.mean(-1, keepdim=True)
    return k - rows - rows.mT + rows.mean(-2, keepdim=True)


def hsic_biased_from_gram(k: Tensor, l: Tensor) -> Tensor:
    r"""HSIC as a V-statistic, :math:`\operatorname{tr}(KHLH) / n^2`.

    Zero in the population exactly when the two variables are independent, if both kernels are
    characteristic. Never negative, and biased upward by O(1/n). Prefer this statistic as a penalty
    on mini-batches for its stability; to compare values at different n, use
    :func:`hsic_unbiased_from_gram`.

    Parameters
    ----------
    k, l
        Symmetric Gram matrices of shape (..., n, n).

    References
    ----------
    Gretton, Bousquet, Smola and Schölkopf (2005), *Measuring statistical dependence with
    Hilbert-Schmidt norms*, Definition 2, with n in place of n - 1.

    Examples
    --------
    With linear kernels HSIC is the squared covariance, here 1.25 ** 2.

    >>> x = torch.arange(4.0)[:, None]
    >>> hsic_biased_from_gram(x @ x.T, x @ x.T)
    tensor(1.5625)
    """
    return (centered_gram(k) * l).mean(dim=(-2, -1)).clamp_min(0)  # negative only by rounding


def hsic_unbiased_from_gram(k: Tensor, l: Tensor) -> Tensor:
    r"""HSIC as a U-statistic, the mean of a kernel of degree four over quadruples of distinct rows.

    .. math:: \frac{1}{n(n-3)} \Big[ \operatorname{tr}(\tilde K \tilde L)
        + \frac{1^\top \tilde K 1 \; 1^\top \tilde L 1}{(n-1)(n-2)}
        - \frac{2}{n-2} 1^\top \tilde K \tilde L 1 \Big],

    where :math:`\tilde K, \tilde L` are the Gram matrices with their diagonals set to zero. The
    expectation is the population value, so under independence the statistic is zero on average and
    often negative.

    Parameters
    ----------
    k, l
        Symmetric Gram matrices of shape (..., n, n), with n at least 4.

    References
    ----------
    Song, Smola, Gretton, Bedo and Borgwardt (2012), *Feature selection via dependence
    maximization*, Theorem 2.

    Examples
    --------
    Two pairs of rows, each similar only to the other pair: 8/4 - 2 * 16/8 + 64/24.

    >>> k = torch.tensor([[1.0, 0, 1, 1], [0, 1, 1, 1], [1, 1, 1, 0], [1, 1, 0, 1]])
    >>> hsic_unbiased_from_gram(k, k)
    tensor(0.6667)
    """
    n = k.shape[-1]
    _arrays.require_rows(n, 4, "unbiased HSIC")
    diagonal = torch.eye(n, dtype=torch.bool, device=k.device)
    k = k.masked_fill(diagonal, 0)
    l = l.masked_fill(diagonal, 0)
    k_rows = k.sum(-1)
    l_rows = l.sum(-1)
    cross = (k_rows * l_rows).sum(-1)
    return unbiased_from_sums((k * l).sum(dim=(-2, -1)), cross, k_rows.sum(-1), l_rows.sum(-1), n)


def hsic_weighted_from_gram(k: Tensor, l: Tensor, w: Tensor) -> Tensor:
    r"""HSIC of the weighted empirical distribution :math:`\sum_i w_i \delta_{(z_i, s_i)}`.

    .. math:: \sum_{ij} w_i w_j K_{ij} L_{ij} - 2 \sum_i w_i (Kw)_i (Lw)_i + (w^\top K w)(w^\top L
        w).

    The weights are used in both the joint distribution and the product of its marginals, so the
    value is zero when the weighted distribution is a product. With :math:`w_i = 1/n`, it is
    :func:`hsic_biased_from_gram`. Rows with weight zero have no effect.

    Parameters
    ----------
    k, l
        Symmetric Gram matrices of shape (..., n, n).
    w
        Weights of shape (..., n), nonnegative and with sum one, which is not checked.

    Examples
    --------
    Two rows with weights 1/4 and 3/4: the squared variance of a coin with that bias, (3/16) ** 2.

    >>> x = torch.tensor([[0.0], [1.0]])
    >>> hsic_weighted_from_gram(x @ x.T, x @ x.T, torch.tensor([0.25, 0.75]))
    tensor(0.0352)
    """
    rows = k @ w[..., :, None]
    total = w[..., None, :] @ rows
    return (w[..., :, None] * w[..., None, :] * (k - rows - rows.mT + total) * l).sum(dim=(-2, -1))


def safe_sqrt(x: Tensor) -> Tensor:
    """Square root of x; 0 with gradient 0 where x is 0 or slightly negative due to rounding. NaN
    stays NaN.
    """
    vanishes = x <= 0
    return torch.where(vanishes, 0, torch.where(vanishes, 1, x).sqrt())


def euclidean_distances(x: Tensor) -> Tensor:
    r"""Distances between the rows of one matrix, :math:`\|x_i - x_j\|`, of shape (..., n, n).

    The diagonal is exactly zero, and the gradient is zero where two rows coincide. Pure, and safe
    under ``vmap``.

    Examples
    --------
    >>> euclidean_distances(torch.tensor([[0.0, 0.0], [3.0, 4.0]]))
    tensor([[0., 5.],
            [5., 0.]])
    """
    same = torch.eye(x.shape[-2], dtype=torch.bool, device=x.device)
    return safe_sqrt(squared_distances(x, x).masked_fill(same, 0))


def ratio(zs: Tensor, zz: Tensor, ss: Tensor) -> Tensor:
    r"""A correlation from three inner products, :math:`\langle z, s \rangle / \|z\| \|s\|`; 0 if
    either norm is 0.

    Pure, and safe under ``vmap``. The root of each square is computed separately, because the
    product of the squares may be out of range.

    Examples
    --------
    >>> ratio(torch.tensor(3.0), torch.tensor(4.0), torch.tensor(9.0))
    tensor(0.5000)
    """
    scale = safe_sqrt(zz) * safe_sqrt(ss)
    vanishes = scale == 0
    return torch.where(vanishes, 0, zs / torch.where(vanishes, 1, scale))


def pivoted_cholesky(
    kernel: Kernel, x: Tensor, *, tolerance: float = 1e-12, max_rank: int | None = None
) -> tuple[Tensor, float]:
    r"""Incomplete Cholesky factor with diagonal pivots, :math:`K = GG^\top + R` with :math:`R
    \succeq 0`.

    Each step adds the row with the largest remaining diagonal entry. The algorithm stops when
    :math:`\operatorname{tr} R \le` `tolerance` :math:`\cdot \operatorname{tr} K`, at `max_rank`
    columns, or when the largest remaining diagonal entry is a rounding error. Every eigenvalue of
    :math:`GG^\top` is below the corresponding eigenvalue of :math:`K` by at most
    :math:`\operatorname{tr} R`. O(n r) memory, O(n r²) time.

    Returns
    -------
    tuple of Tensor and float
        The factor :math:`G`, of shape (n, r), and :math:`\operatorname{tr} R / \operatorname{tr}
        K`.

    References
    ----------
    Fine and Scheinberg (2001), *Efficient SVM training using low-rank kernel representations*.

    Examples
    --------
    Two of these three rows coincide, so two columns give the whole matrix.

    >>> from frhsic.kernels import Gaussian
    >>> x = torch.tensor([[0.0], [1.0], [0.0]], dtype=torch.float64)
    >>> factor, left = pivoted_cholesky(Gaussian(1.0), x)
    >>> factor.shape, left
    (torch.Size([3, 2]), 0.0)
    """
    n = x.shape[0]
    limit = n if max_rank is None else min(max_rank, n)
    remaining = kernel.diagonal(x).clone()
    total = float(remaining.sum())
    if total == 0:
        return x.new_zeros((n, 0)), 0.0
    noise = float(remaining.max()) * torch.finfo(x.dtype).eps * 4
    rank = 0
    factor = x.new_empty((n, min(limit, 32)))
    while rank < limit:
        pivot = int(remaining.argmax())
        largest = float(remaining[pivot])
        if largest <= noise or float(remaining.sum()) <= tolerance * total:
            break
        if rank == factor.shape[1]:
            factor = torch.cat([factor, x.new_empty((n, min(rank, limit - rank)))], dim=1)
        column = kernel(x, x[pivot : pivot + 1])[:, 0]
        if rank:
            column = column - factor[:, :rank] @ factor[pivot, :rank]
        column = column / math.sqrt(largest)
        factor[:, rank] = column
        rank += 1
        remaining = (remaining - column * column).clamp_min(0)
        remaining[pivot] = 0
    return factor[:, :rank], float(remaining.sum()) / total
