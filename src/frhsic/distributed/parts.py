"""HSIC of data in parts: chunks of a file, or partitions of a cluster.

Sums of random features add up over parts, so the parts together give the estimate of the whole. Each part is read once,
and a few megabytes per part are transferred.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from frhsic import _arrays
from frhsic.dependence.features import Estimate, FeatureSums, draw_feature_maps
from frhsic.kernels import Kernel

if TYPE_CHECKING:
    import pandas as pd


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


def hsic_of_frame(
    frame: Any,
    z: list[str],
    s: list[str],
    kernel_z: Kernel,
    kernel_s: Kernel,
    *,
    features: int = 512,
    random_state: _arrays.RandomState = None,
) -> Estimate:
    """HSIC by random features of columns of a Dask data frame, with each partition on its own worker.

    Needs Dask: ``pip install 'frhsic[dask]'``.

    Parameters
    ----------
    frame
        A Dask data frame.
    z, s
        Names of the columns of the representation and of the attribute.
    kernel_z, kernel_s, features, random_state
        As in :func:`hsic_of_parts`.
    """
    try:
        import dask
    except ImportError as error:
        raise ImportError("hsic_of_frame needs Dask; install it with pip install 'frhsic[dask]'.") from error
    if not hasattr(frame, "to_delayed"):
        raise TypeError(f"frame is {type(frame).__name__}; pass a Dask data frame, or use hsic_of_parts.")
    missing = [name for name in (*z, *s) if name not in frame.columns]
    if missing:
        raise ValueError(f"frame has no column {missing[0]!r}; its columns are {list(frame.columns)}.")
    maps = draw_feature_maps(kernel_z, kernel_s, len(z), len(s), features=features, random_state=random_state)

    def sums_of(part: pd.DataFrame) -> FeatureSums | None:
        if part.empty:
            return None
        return maps.sums(*_arrays.paired((part[z], "z"), (part[s], "s")))

    partitions = dask.compute(*(dask.delayed(sums_of)(part) for part in frame.to_delayed()))
    first, *others = [sums for sums in partitions if sums is not None] or [None]
    if first is None:
        raise ValueError("frame has no rows; pass a frame with at least two.")
    return maps.estimate(sum(others, start=first))
