"""Parts of a training step on a GPU: whitening, and inner products with Gram matrices that are not
stored.

Each part is one kernel for all batches, where PyTorch needs dozens of small kernels. The formulas
are in :mod:`frhsic.penalties.closed_forms`.
"""

from __future__ import annotations

from math import ceil

import torch
from torch import Tensor

from frhsic.dependence._gpu import kernels

# Rows of one program and of its steps, in sums over pairs of rows.
TILE_I = 32
TILE_J = 64

# Entries of the rows that are whitened at a time.
WHITENED_ENTRIES = 2048


def gram_inner_and_gradient(
    z: Tensor, g: Tensor, linear: float, gaussian: float
) -> tuple[Tensor, Tensor]:
    """Return Σ G ∘ K (...) for centered rows z (..., m, d), and its gradient; g is broadcast."""
    *lead, m, d = z.shape
    g = g.expand(*lead, m, m)
    strides = g.stride()[:-2]
    if len(lead) > 2 or g.stride()[-2:] != (m, 1):
        g = g.contiguous()
        lead = [g.shape[:-2].numel()]
        strides = (m * m,)
    together = lead[-1] if lead else 1
    group, member = (0, 0, *strides)[-2:]
    z = z.contiguous()
    rows = torch.empty_like(z[..., 0])
    slope = torch.empty_like(z)
    kernels.inner_kernel[(ceil(m / TILE_I), _batches(z))](
        z=z,
        g=g,
        rows=rows,
        slope=slope,
        m=m,
        d=d,
        together=together,
        stride_group=group,
        stride_member=member,
        linear=linear,
        gaussian=gaussian,
        BI=TILE_I,
        BJ=TILE_J,
        **_settings(d),
    )
    return rows.sum(-1), slope


def whiten(z: Tensor, w: Tensor, ridge: float, least: float, length: float) -> tuple[Tensor, ...]:
    """Return the whitened rows, the centered rows, the whitening map and the variances of z (...,
    m, d).
    """
    *lead, m, d = z.shape
    white = z.new_empty((*lead, m, d))
    centered = z.new_empty((*lead, m, d))
    mapping = z.new_empty((*lead, d, d))
    variance = z.new_empty((*lead, d))
    kernels.whiten_kernel[(_batches(z),)](
        z=z.contiguous(),
        w=w.expand(*lead, m).contiguous(),
        white=white,
        centered=centered,
        mapping=mapping,
        variance=variance,
        m=m,
        d=d,
        ridge=ridge,
        least=least,
        length=length,
        BLOCK=_rows_at_once(d),
        **_settings(d),
    )
    return white, centered, mapping, variance


def whiten_backward(
    upstream: Tensor, w: Tensor, parts: tuple[Tensor, ...], least: float, length: float
) -> Tensor:
    """Return the gradient with respect to z."""
    *lead, m, d = upstream.shape
    slope = upstream.new_empty(upstream.shape)
    white, centered, mapping, variance = parts
    kernels.whiten_backward_kernel[(_batches(upstream),)](
        upstream=upstream.contiguous(),
        w=w.expand(*lead, m).contiguous(),
        white=white,
        centered=centered,
        mapping=mapping,
        variance=variance,
        slope=slope,
        m=m,
        d=d,
        least=least,
        square=length**-2,
        BLOCK=_rows_at_once(d),
        **_settings(d),
    )
    return slope


def _batches(z: Tensor) -> int:
    return z.shape[:-2].numel()


def _settings(d: int) -> dict[str, int]:
    return {"WIDTH": _padded_width(d), "num_warps": 4, "num_stages": 1}


def _rows_at_once(d: int) -> int:
    return WHITENED_ENTRIES // _padded_width(d)


def _padded_width(d: int) -> int:
    return max(16, 1 << (d - 1).bit_length())
