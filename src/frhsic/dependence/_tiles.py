"""Sums over all pairs of rows, computed tile by tile in O(n) memory; each tile of a symmetric matrix once.

All arithmetic is in float64: the terms of HSIC nearly cancel, and float32 sums of a million of them would keep fewer
than five digits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from frhsic.kernels import Kernel

CPU_TILE = 256
"""Rows of a tile for one thread. A tile of 256 and its temporaries fit a core's cache; 512 was slower."""
CUDA_TILE = 4096


def nearly_constant(x: Tensor, kernel: Kernel) -> bool:
    """Return whether to sum the kernel minus its offset, by ``expm1``, on the rows x.

    ``expm1`` costs more than ``exp``. It keeps more digits only where the values differ by less than a thousandth of
    the offset.
    """
    some = x[:: max(1, len(x) // 128)]
    return bool(kernel.shifted(some, some).std() < 1e-3 * kernel.offset)


def pairs(n: int, device: torch.device) -> Iterator[tuple[slice, slice]]:
    """Yield the tiles on and above the diagonal as (rows, columns), for all threads to work on one tile at a time.

    Threads that share a tile wait for each other at every step, so each gets twice the entries of a thread alone.
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
    """Return the totals that `add(rows, columns, *totals)` adds to in place, over all tiles on and above the diagonal.

    On a CPU each thread takes a fixed share of the tiles and has its own totals, which are added up at the end, so
    threads wait for each other once instead of at every step.
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
        torch.set_num_threads(threads)  # the pool's threads set it to one, also for new threads
    return tuple(torch.stack(total).sum(0) for total in zip(*parts))


def add_rows(total: Tensor, tile: Tensor, rows: slice, columns: slice) -> int:
    """Add the row sums of a tile and of its mirror image to the total; return how often the tile counts."""
    ones = tile.new_ones(max(tile.shape))  # products with it are quicker than sums
    total[rows] += tile @ ones[: tile.shape[1]]
    if rows == columns:
        return 1
    total[columns] += ones[: tile.shape[0]] @ tile
    return 2


def row_sums(x: Tensor, tile: Callable[[slice, slice], Tensor]) -> Tensor:
    """Return the row sums, of shape (n,), of a symmetric matrix on the rows of x, given its tiles."""

    def add(rows: slice, columns: slice, total: Tensor) -> None:
        add_rows(total, tile(rows, columns), rows, columns)

    return over_tiles(len(x), x.device, lambda: (x.new_zeros(len(x)),), add)[0]


def summed_over_columns(function: Callable[..., Tensor], n: int, step: int, *inputs: Tensor) -> Tensor:
    """Return the sum of `function(*inputs, columns)` over blocks of `step` of n column numbers.

    For the gradient each block is computed again instead of kept, so memory is that of one block.
    """
    blocks = torch.split(torch.arange(n, device=inputs[0].device), step)
    return sum((recomputed(function, *inputs, block) for block in blocks[1:]), recomputed(function, *inputs, blocks[0]))


def recomputed(function: Callable[..., Tensor], *inputs: Tensor) -> Tensor:
    """Call `function` now, and once more in the backward pass, instead of keeping intermediate results.

    Differentiable once, with respect to the inputs only: variables that the function closes over count as fixed.
    """
    if not torch.is_grad_enabled() or not any(x.requires_grad for x in inputs):
        return function(*inputs)
    result: Tensor = _Recomputed.apply(function, *inputs)  # type: ignore[no-untyped-call]  # torch leaves apply untyped
    return result


class _Recomputed(torch.autograd.Function):
    """Do what torch.utils.checkpoint does, without the seconds that importing it takes."""

    @staticmethod
    def forward(ctx: Any, function: Callable[..., Tensor], *inputs: Tensor) -> Tensor:
        ctx.function = function
        ctx.save_for_backward(*inputs)
        return function(*inputs)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        needed = ctx.needs_input_grad[1:]
        inputs = [x.detach().requires_grad_(need) for x, need in zip(ctx.saved_tensors, needed)]
        with torch.enable_grad():
            value = ctx.function(*inputs)
        gradients = iter(
            torch.autograd.grad(value, [x for x in inputs if x.requires_grad], upstream, allow_unused=True)
        )
        return (None, *(next(gradients) if need else None for need in needed))
