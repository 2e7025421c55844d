r"""Gram matrices as operators: products with thin matrices and low-rank factors, without the n × n matrix.

Both functions take float64 or float32 rows on any device and hold :math:`O(n r)` numbers for r columns.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from frhsic.kernels import Kernel

# Entries of the Gram matrix held at once.
TILE_ENTRIES = 1 << 21


def gram_times(
    kernel: Kernel | Callable[[Tensor, Tensor], Tensor], x: Tensor, b: Tensor, *, y: Tensor | None = None
) -> Tensor:
    r"""Product of a Gram matrix with a thin one, :math:`(K b)_{ic} = \sum_j k(x_i, y_j)\, b_{jc}`, by tiles of rows.

    If the columns of `b` sum to zero or the result is centred afterwards, pass `kernel.shifted` in place of the
    kernel: the product differs by a constant per column, and nearly constant kernels keep more digits.

    Parameters
    ----------
    kernel
        A kernel, or any function of two matrices of rows.
    x
        Rows, of shape (n, d).
    b
        Of shape (m,) or (m, c), one row for each row of `y`.
    y
        Rows, of shape (m, d); `x` itself if not given.

    Examples
    --------
    >>> from frhsic.kernels import Linear
    >>> x = torch.tensor([[1.0], [2.0]])
    >>> gram_times(Linear(), x, torch.ones(2))
    tensor([3., 6.])
    """
    other = x if y is None else y
    step = max(1, TILE_ENTRIES // other.shape[0])
    # in place: small results allocated between large tiles would fragment the heap
    product = b.new_empty((x.shape[0], *b.shape[1:]))
    for i in range(0, x.shape[0], step):
        product[i : i + step] = kernel(x[i : i + step], other) @ b
    return product


def pivoted_cholesky(
    kernel: Kernel, x: Tensor, *, tolerance: float = 1e-12, max_rank: int | None = None
) -> tuple[Tensor, float]:
    r"""Incomplete Cholesky factor with diagonal pivots, :math:`K = GG^\top + R` with :math:`R \succeq 0`.

    Each step adds the row with the largest remaining diagonal. The algorithm stops when
    :math:`\operatorname{tr} R \le` `tolerance` :math:`\cdot \operatorname{tr} K`, at `max_rank` columns, or when the
    largest remaining diagonal is rounding error. Every eigenvalue of :math:`GG^\top` lies below that of :math:`K` by at
    most :math:`\operatorname{tr} R`. O(n r) memory, O(n r²) time.

    Returns
    -------
    tuple of Tensor and float
        The factor :math:`G`, of shape (n, r), and :math:`\operatorname{tr} R / \operatorname{tr} K`.

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
