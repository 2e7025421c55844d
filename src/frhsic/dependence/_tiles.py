r"""Sums over all pairs of rows, tile by tile: O(n) memory, every tile of a symmetric matrix once.

For weights w and kernels k, l this module computes

.. math:: J = \sum_{ij} w_i w_j K_{ij} L_{ij}, \qquad a = Kw, \qquad b = Lw,

from which HSIC follows, and pulls a gradient with respect to K back to the rows. All arithmetic is in
float64: the terms of HSIC nearly cancel, and float32 sums of a million of them would not hold five digits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import torch
from torch import Tensor

from frhsic.dependence._sample import recentred
from frhsic.kernels import Kernel

__all__ = ["Entries", "Sums", "entries", "over_tiles", "pairs", "pull_back", "row_sums", "sums", "working_copy"]

Entries = Callable[[Tensor, Tensor], Tensor]
"""A kernel as a function of two blocks of rows, up to a constant that HSIC does not notice."""

CPU_TILE = 256
"""Rows of a tile for one thread: with its temporaries it stays in a core's cache, where 512 took longer."""
CUDA_TILE = 4096


class Sums(NamedTuple):
    """The joint sum J (0-d) and the weighted row sums a and b, each of shape (n,)."""

    joint: Tensor
    k_rows: Tensor
    l_rows: Tensor


def working_copy(x: Tensor, kernel: Kernel) -> Tensor:
    """Return x off the graph in float64, moved to mean zero where the kernel's HSIC does not notice."""
    return recentred(x.detach().to(torch.float64), kernel)


def entries(x: Tensor, kernel: Kernel) -> Entries:
    """Return the kernel, or the kernel less its offset where it is nearly flat on the rows x.

    exp costs a third of expm1, and loses nothing where values differ by more than a thousandth of the
    constant that expm1 spares.
    """
    some = x[:: max(1, len(x) // 128)]
    flat = bool(kernel.shifted(some, some).std() < 1e-3 * kernel.offset)
    return kernel.shifted if flat else kernel


def pairs(n: int, device: torch.device) -> Iterator[tuple[slice, slice]]:
    """Yield the tiles on and above the diagonal, as (rows, columns), for all threads to work on one at a time.

    Where threads share a tile each gets twice what one alone would, because they wait at every step.
    """
    threads = torch.get_num_threads()
    cpu = CPU_TILE if threads == 1 else int(CPU_TILE * (2 * threads) ** 0.5)
    yield from _grid(n, CUDA_TILE if device.type == "cuda" else cpu)


def _grid(n: int, size: int) -> Iterator[tuple[slice, slice]]:
    for i in range(0, n, size):
        for j in range(i, n, size):
            yield slice(i, min(i + size, n)), slice(j, min(j + size, n))


def over_tiles(
    n: int, device: torch.device, start: Callable[[], tuple[Tensor, ...]], add: Callable[..., None]
) -> tuple[Tensor, ...]:
    """Return what `add(rows, columns, *totals)` adds in place, over all tiles on and above the diagonal.

    On a CPU each thread takes a fixed share of the tiles, with totals of its own that are added up in the
    end: threads meet once, and not at every step of every tile, where on a busy machine they mostly wait.
    """
    threads = torch.get_num_threads() if device.type == "cpu" else 1
    tiles = list(_grid(n, CUDA_TILE if device.type == "cuda" else CPU_TILE))

    def share(first: int, step: int) -> tuple[Tensor, ...]:
        totals = start()
        for rows, columns in tiles[first::step]:
            add(rows, columns, *totals)
        return totals

    if threads == 1 or len(tiles) < 4 * threads:
        return share(0, 1)
    try:
        with ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,)) as pool:
            parts = list(pool.map(share, range(threads), [threads] * threads))
    finally:
        torch.set_num_threads(threads)  # the pool's threads set theirs to one, and with it the default of new ones
    return tuple(torch.stack(total).sum(0) for total in zip(*parts))


def sums(x: Tensor, y: Tensor, k: Entries, l: Entries, w: Tensor, *, skip_diagonal: bool) -> Sums:
    """Return J, a and b for the rows of x under k and the rows of y under l.

    Parameters
    ----------
    x, y
        Working copies, of shapes (n, d) and (n, q).
    k, l
        What :func:`entries` gives for them.
    w
        Weights of shape (n,).
    skip_diagonal
        Leave out the pairs (i, i), as U-statistics do.
    """

    def start() -> tuple[Tensor, ...]:
        return w.new_zeros(()), torch.zeros_like(w), torch.zeros_like(w)

    def add(rows: slice, columns: slice, joint: Tensor, k_rows: Tensor, l_rows: Tensor) -> None:
        k_tile, l_tile = k(x[rows], x[columns]), l(y[rows], y[columns])
        if rows == columns:
            if skip_diagonal:
                k_tile.fill_diagonal_(0)
                l_tile.fill_diagonal_(0)
        else:
            k_rows[columns] += k_tile.mT @ w[rows]
            l_rows[columns] += l_tile.mT @ w[rows]
        k_rows[rows] += k_tile @ w[columns]
        l_rows[rows] += l_tile @ w[columns]
        once = w[rows] @ ((k_tile * l_tile) @ w[columns])
        joint += once if rows == columns else 2 * once

    return Sums(*over_tiles(len(w), w.device, start, add))


def row_sums(x: Tensor, k: Kernel) -> Tensor:
    """Return the sums over j of k(x_i, x_j), of shape (n,), in float64."""

    def add(rows: slice, columns: slice, total: Tensor) -> None:
        tile = k(x[rows], x[columns])
        total[rows] += tile.sum(1)
        if rows != columns:
            total[columns] += tile.sum(0)

    return over_tiles(len(x), x.device, lambda: (x.new_zeros(len(x)),), add)[0]


def pull_back(x: Tensor, k: Entries, cotangent: Callable[[slice, slice], Tensor]) -> Tensor:
    """Return the gradient with respect to x of a symmetric function of its Gram matrix under k.

    `cotangent(rows, columns)` gives that tile of the function's gradient with respect to K. The tile of
    K is computed anew and differentiated by itself, so memory stays O(n) and one tile.
    """

    def add(rows: slice, columns: slice, gradient: Tensor) -> None:
        outer = cotangent(rows, columns)
        with torch.enable_grad():
            left, right = x[rows].requires_grad_(), x[columns].requires_grad_()
            tile = k(left, right)
        to_left, to_right = torch.autograd.grad(tile, (left, right), outer)
        factor = 1 if rows == columns else 2  # the tile and its mirror image
        gradient[rows] += factor * to_left
        gradient[columns] += factor * to_right

    return over_tiles(len(x), x.device, lambda: (torch.zeros_like(x),), add)[0]
