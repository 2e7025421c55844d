"""HSIC of data in parts, such as chunks of a file.

Sums of random features add up over parts, so the parts together give the estimate of the whole. Each part is read once,
and a few megabytes per part are transferred.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from frhsic import _arrays
from frhsic.dependence.features import Estimate, draw_feature_maps
from frhsic.kernels import Kernel


def hsic_of_parts(
    parts: Iterable[tuple[Any, Any]],
    kernel_z: Kernel,
    kernel_s: Kernel,
    *,
    features: int = 512,
    random_state: _arrays.RandomState = None,
) -> Estimate:
    r"""HSIC by random features of data in parts, from sums of features over the parts.

    It equals :func:`frhsic.dependence.hsic_features` on all rows together, for the same kernels and random state, up to
    rounding. Use it for data that do not fit into memory. Pass kernels with fixed bandwidths, since a median distance
    cannot be added up over parts.

    Parameters
    ----------
    parts
        Pairs (z, s) of arrays with one row per observation. Each is read once.
    kernel_z, kernel_s
        Kernels with fixed bandwidths.
    features, random_state
        As in :func:`frhsic.dependence.hsic_features`.

    Examples
    --------
    >>> import torch
    >>> from frhsic.kernels import Gaussian
    >>> z = torch.linspace(0, 1, 40, dtype=torch.float64)[:, None]
    >>> halves = [(z[:20], z[:20]), (z[20:], z[20:])]
    >>> apart = hsic_of_parts(halves, Gaussian(1.0), Gaussian(1.0), random_state=0)
    >>> whole = hsic_of_parts([(z, z)], Gaussian(1.0), Gaussian(1.0), random_state=0)
    >>> abs(float(apart) - float(whole)) < 1e-12
    True
    """
    numbered = enumerate(parts)
    pairs = (_arrays.paired((z, f"z of part {i}"), (s, f"s of part {i}")) for i, (z, s) in numbered)
    first = next(pairs, None)
    if first is None:
        raise ValueError("no parts came; pass at least one pair (z, s).")
    columns = (rows.shape[1] for rows in first)
    maps = draw_feature_maps(kernel_z, kernel_s, *columns, features=features, random_state=random_state)
    return maps.estimate(sum((maps.sums(z, s) for z, s in pairs), start=maps.sums(*first)))
