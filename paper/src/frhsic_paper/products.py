"""Products with Gram matrices that are not stored."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from frhsic.kernels import Kernel

# Entries of the Gram matrix in memory at once.
TILE_ENTRIES = 1 << 21


def gram_times(
    kernel: Kernel | Callable[[Tensor, Tensor], Tensor],
    x: Tensor,
    b: Tensor,
    *,
    y: Tensor | None = None,
) -> Tensor:
    r"""Return the product of a Gram matrix and a thin matrix, :math:`(K b)_{ic} = \sum_j k(x_i,
    y_j)\, b_{jc}`, by tiles of rows.

    If the columns of `b` sum to zero or the result is centered afterwards, pass `kernel.shifted` in
    place of the kernel: the product differs only by a constant per column, and nearly constant
    kernels keep more digits.

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
    >>> import torch
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
