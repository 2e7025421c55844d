r"""HSIC of two Gram matrices: pure functions, batched over leading dimensions and safe under ``vmap``.

Everything here takes matrices :math:`K, L` of shape (..., n, n) that are already there: mini-batches,
permutation tests, eigenvalue bounds. Samples whose Gram matrices would not fit belong in
:func:`frhsic.dependence.hsic`. HSIC does not notice a constant added to a kernel, so `kernel.shifted`
serves as well as the kernel, and keeps more digits where it is nearly flat.
"""

from __future__ import annotations

import torch
from torch import Tensor

from frhsic import _arrays

__all__ = ["centered", "hsic_biased", "hsic_unbiased", "hsic_weighted"]


def centered(k: Tensor) -> Tensor:
    r"""Doubly centred Gram matrix, :math:`HKH` with :math:`H = I - 11^\top / n`.

    Rows and columns of the result sum to zero. It is zero exactly when :math:`K_{ij} = a_i + a_j`.

    Parameters
    ----------
    k
        Symmetric matrices of shape (..., n, n).

    Examples
    --------
    >>> centered(torch.tensor([[0.0, 2.0], [2.0, 0.0]]))
    tensor([[-1.,  1.],
            [ 1., -1.]])
    """
    rows = k.mean(-1, keepdim=True)
    return k - rows - rows.mT + rows.mean(-2, keepdim=True)


def hsic_biased(k: Tensor, l: Tensor) -> Tensor:
    r"""HSIC as a V-statistic, :math:`\operatorname{tr}(KHLH) / n^2`.

    Zero in the population exactly when the two variables are independent, if both kernels are
    characteristic. Never negative, and biased upwards by O(1/n); see :func:`hsic_unbiased`.

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
    >>> hsic_biased(x @ x.T, x @ x.T)
    tensor(1.5625)
    """
    return (centered(k) * l).mean(dim=(-2, -1))


def hsic_unbiased(k: Tensor, l: Tensor) -> Tensor:
    r"""HSIC as a U-statistic, the mean of its kernel of degree four over distinct quadruples of rows.

    .. math:: \frac{1}{n(n-3)} \Big[ \operatorname{tr}(\tilde K \tilde L)
        + \frac{1^\top \tilde K 1 \; 1^\top \tilde L 1}{(n-1)(n-2)}
        - \frac{2}{n-2} 1^\top \tilde K \tilde L 1 \Big],

    where :math:`\tilde K, \tilde L` are the Gram matrices with their diagonals set to zero. Its
    expectation is the population value; where that is zero it is therefore often negative.

    Parameters
    ----------
    k, l
        Symmetric Gram matrices of shape (..., n, n), with n at least 4.

    References
    ----------
    Song, Smola, Gretton, Bedo and Borgwardt (2012), *Feature selection via dependence maximization*,
    Theorem 2.

    Examples
    --------
    Rows in two pairs that see only the other pair: 8/4 - 2 * 16/8 + 64/24.

    >>> k = torch.tensor([[1.0, 0, 1, 1], [0, 1, 1, 1], [1, 1, 1, 0], [1, 1, 0, 1]])
    >>> hsic_unbiased(k, k)
    tensor(0.6667)
    """
    n = k.shape[-1]
    _arrays.require_rows(n, 4, "unbiased HSIC")
    diagonal = torch.eye(n, dtype=torch.bool, device=k.device)
    k, l = k.masked_fill(diagonal, 0), l.masked_fill(diagonal, 0)
    k_rows, l_rows = k.sum(-1), l.sum(-1)
    joint = (k * l).sum(dim=(-2, -1)) / (n * (n - 3))
    cross = (k_rows * l_rows).sum(-1) / (n * (n - 2) * (n - 3))
    # Divided one by one: the product of the totals stays in range, and Python's integers do not overflow.
    product = (k_rows.sum(-1) / (n * (n - 1))) * (l_rows.sum(-1) / ((n - 2) * (n - 3)))
    return joint - 2 * cross + product


def hsic_weighted(k: Tensor, l: Tensor, w: Tensor) -> Tensor:
    r"""HSIC of the weighted empirical law :math:`\sum_i w_i \delta_{(z_i, s_i)}`.

    .. math:: \sum_{ij} w_i w_j K_{ij} L_{ij} - 2 \sum_i w_i (Kw)_i (Lw)_i + (w^\top K w)(w^\top L w).

    The weights enter the joint law and the product of its marginals alike, so it is zero when that law is
    a product. With :math:`w_i = 1/n` it is :func:`hsic_biased`; with weights of zero it is the HSIC of
    the other rows.

    Parameters
    ----------
    k, l
        Symmetric Gram matrices of shape (..., n, n).
    w
        Weights of shape (..., n), not negative and summing to one. They are not checked here.

    Examples
    --------
    Two rows at weights 1/4 and 3/4: the squared variance of a coin of that bias, (3/16) ** 2.

    >>> x = torch.tensor([[0.0], [1.0]])
    >>> hsic_weighted(x @ x.T, x @ x.T, torch.tensor([0.25, 0.75]))
    tensor(0.0352)
    """
    rows = k @ w[..., :, None]
    total = w[..., None, :] @ rows
    return (w[..., :, None] * w[..., None, :] * (k - rows - rows.mT + total) * l).sum(dim=(-2, -1))
