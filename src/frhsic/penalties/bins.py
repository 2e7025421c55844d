"""Bins of one continuous attribute: their edges, and the rows in each bin."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from frhsic import _arrays, _tensors


def quantile_edges(s: Any, bins: int = 10) -> Tensor:
    """Return the inner edges of bins with equally many rows: the quantiles 1/bins, ..., (bins -
    1)/bins of s.

    With ties, edges may coincide; the bin between two equal edges is empty.

    Examples
    --------
    >>> quantile_edges([0.0, 1.0, 2.0, 3.0, 4.0], bins=2)
    tensor([2.], dtype=torch.float64)
    """
    _arrays.require_integer(bins, "bins", 2)
    values = one_attribute(s)
    ordered = values.detach().sort().values
    # torch.quantile fails above 2**24 rows; this is the same linear interpolation
    shares = torch.arange(1, bins, dtype=torch.float64, device=values.device) / bins
    place = shares * (ordered.shape[0] - 1)
    below = place.floor().long()
    above = (below + 1).clamp_max(ordered.shape[0] - 1)
    return torch.lerp(ordered[below], ordered[above], (place - below).to(values.dtype))


def bin_membership(s: Tensor, edges: Tensor) -> Tensor:
    """Return the membership of each row in the bins between the edges, as zeros and ones of shape
    (n, bins).

    A value on an edge belongs to the bin above it. Pure, and safe under ``vmap``.

    Examples
    --------
    >>> bin_membership(torch.tensor([0.0, 1.0, 5.0]), torch.tensor([1.0, 2.0]))
    tensor([[1., 0., 0.],
            [0., 1., 0.],
            [0., 0., 1.]])
    """
    number = (s[..., :, None] >= edges).sum(-1)
    bins = torch.arange(edges.shape[-1] + 1, device=s.device)
    return (number[..., None] == bins).to(s.dtype)


def one_attribute(s: Any) -> Tensor:
    values = _tensors.matrix(s, "s")
    if values.shape[1] != 1:
        raise ValueError(
            f"s has {values.shape[1]} columns, but bins need a single attribute. Pass one"
            " column at a time."
        )
    _arrays.require_varying(values, "s")
    return values[:, 0]
