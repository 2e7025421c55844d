"""Sums of degree three over a centered Gram matrix, for the third moment over permutations."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from frhsic.dependence import _gpu
from frhsic.dependence.columns import CubicSums
from frhsic.dependence.sums import (
    CenteredGram,
    GramSums,
    add_product,
    centered_columns,
    inner_product,
    times,
)
from frhsic.dependence.tiles import THIN, Gram, sum_over_tiles

if TYPE_CHECKING:  # Triton is optional
    from frhsic.dependence._gpu.pairs import One


# Rows above which the trace of a cube is estimated, and the number of random vectors for it.
CUBE_ROWS = 2048
VECTORS = 16

# Rows of a Gram matrix that are multiplied at once for a trace; only one of the products of two
# panels is needed.
PANEL = 256


class OwnSums(NamedTuple):
    r"""Sums over one centered matrix: the :class:`CubicSums`, and :math:`\sum_j \tilde K_{ij}^2` of
    shape (n,).

    The second is None if the sums were computed on a GPU, because then there is no pass over the
    pairs that would compute it.
    """

    cubes: CubicSums
    square_rows: Tensor | None


def own_sums(k: Gram, sums: GramSums) -> OwnSums:
    r"""Return the sums over one centered matrix :math:`\tilde K`, in O(n) memory.

    With a thin factor of r columns, the sums take O(n r³) time. Otherwise, for up to
    :data:`CUBE_ROWS` rows, the trace of the cube is computed by multiplying panels of rows, in
    O(n³); for more rows, the trace is estimated from random signs with a fixed seed
    (:func:`_estimated_trace`), in O(n²). The other sums take one pass over the pairs.
    """
    on_gpu = _gpu.gram(k.x, k.kernel) if k.single else None
    if on_gpu is not None:
        return OwnSums(_cubic_sums_on_gpu(k, on_gpu, sums), None)
    if k.factor is not None:
        return _own_sums_of_factor(centered_columns(k.factor), sums.centered_gram.diagonal)
    d = sums.centered_gram.diagonal
    centers = sums.centers
    ones = k.x.new_ones(k.n)
    signs = random_signs(k)
    vectors = d[:, None]
    if signs is not None:
        once = centered_columns(times(k, signs) if sums.signed is None else sums.signed)
        vectors = torch.cat([vectors, once], dim=1)

    def start() -> tuple[Tensor, ...]:
        return k.x.new_zeros(()), k.x.new_zeros(k.n), k.x.new_zeros(vectors.shape[1])

    def add(rows: slice, columns: slice, cubes: Tensor, of_squares: Tensor, forms: Tensor) -> None:
        tile = k.centered_tile(centers, rows, columns)
        squares = tile * tile
        count = add_product(of_squares, squares, ones, rows, columns)
        cubes += count * inner_product(squares, tile)
        forms += count * ((tile @ vectors[columns]) * vectors[rows]).sum(0)

    cubes, of_squares, forms = sum_over_tiles(k.n, k.x.device, start, add)
    if signs is None:
        trace = _trace_of_cube(k, centers)
    else:
        trace = _estimated_trace(signs, once, forms[1:], sums.centered_gram)
    return OwnSums(_cubic_sums(trace, cubes, (d * d) @ d, d @ of_squares, forms[0]), of_squares)


def _estimated_trace(signs: Tensor, once: Tensor, cubed: Tensor, centered: CenteredGram) -> Tensor:
    r"""Estimate :math:`\operatorname{tr} A^3` from random signs g, their products Ag, and
    :math:`g^\top A^3 g`.

    The mean of :math:`g^\top A^3 g` over the signs is corrected by regression on :math:`g^\top A g`
    and :math:`g^\top A^2 g`, whose expectations :math:`\operatorname{tr} A` and
    :math:`\operatorname{tr} A^2` are known. This removes most of the error of the mean
    (docs/evidence/tests_evidence.md).
    """
    known = torch.stack([centered.trace, centered.squares])
    scale = torch.where(known > 0, known, 1)
    forms = torch.stack([(signs * once).sum(0), once.square().sum(0)], dim=1)
    excess = forms / scale - known / scale
    # float32 on a GPU keeps six digits
    slopes = torch.linalg.pinv(centered_columns(excess), rtol=1e-5) @ centered_columns(cubed)
    estimate: Tensor = cubed.mean() - excess.mean(dim=0) @ slopes
    # no eigenvalue is negative, so the Cauchy-Schwarz inequality bounds the trace on both sides
    return estimate.clamp(known[1] ** 2 / scale[0], known[1] ** 1.5)


def _own_sums_of_factor(f: Tensor, d: Tensor) -> OwnSums:
    r"""Return the sums for :math:`A = FF^\top`; :math:`\sum A_{ij}^3 = \sum_{abc} (\sum_i f_{ia}
    f_{ib} f_{ic})^2`.
    """
    small = f.mT @ f
    triples = f.new_zeros(f.shape[1] ** 2, f.shape[1])
    for part in torch.split(f, max(1, PANEL * THIN // max(1, f.shape[1]))):
        triples += (part[:, :, None] * part[:, None, :]).flatten(1).mT @ part
    of_squares = ((f @ small) * f).sum(1)
    cubes = _cubic_sums(
        inner_product(small @ small, small),
        inner_product(triples, triples),
        (d * d) @ d,
        d @ of_squares,
        (f.mT @ d).square().sum(),
    )
    return OwnSums(cubes, of_squares)


def _cubic_sums_on_gpu(k: Gram, on_gpu: One, sums: GramSums) -> CubicSums:
    d = sums.centered_gram.diagonal
    cubes, weighted, quadratic = on_gpu.cubes(sums.centers + k.offset / 2, d)
    signs = random_signs(k)
    if k.factor is not None:
        small = centered_columns(k.factor)
        small = small.mT @ small
        trace = inner_product(small @ small, small)
    elif signs is None:
        trace = _trace_of_cube(k, sums.centers)
    else:
        multiply = on_gpu.times if on_gpu.multiplies else partial(times, k)
        once = centered_columns(multiply(signs))
        trace = _estimated_trace(signs, once, (once * multiply(once)).sum(0), sums.centered_gram)
    cubed = (d * d) @ d  # of the diagonal: each sum above is over distinct rows
    return _cubic_sums(trace, cubes + cubed, cubed, weighted + cubed, quadratic + cubed)


def _cubic_sums(*sums: Tensor) -> CubicSums:
    return CubicSums(*(float(value) for value in sums))


def _trace_of_cube(k: Gram, centers: Tensor) -> Tensor:
    trace = k.x.new_zeros(())
    panels = [slice(i, min(i + PANEL, k.n)) for i in range(0, k.n, PANEL)]
    for first, rows in enumerate(panels):
        left = k.centered_tile(centers, rows, slice(0, k.n))
        for columns in panels[first:]:
            right = k.centered_tile(centers, columns, slice(0, k.n))
            times = 1 if columns == rows else 2  # the panel and its mirror image
            trace += times * inner_product(left @ right.mT, left[:, columns])
    return trace


def random_signs(k: Gram) -> Tensor | None:
    """Return random signs from a fixed seed, minus their means, of shape (n, :data:`VECTORS`); None
    for up to :data:`CUBE_ROWS` rows, for which the trace of the cube is exact.
    """
    if k.n <= CUBE_ROWS:
        return None
    generator = torch.Generator().manual_seed(0)
    signs = torch.randint(2, (k.n, VECTORS), generator=generator, device="cpu")
    return centered_columns(signs.to(k.x) * 2)
