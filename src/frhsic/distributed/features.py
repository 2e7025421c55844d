"""HSIC of data in parts, computed from sums of random features, which are added over the parts."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy import stats

from frhsic import _arrays, _tensors
from frhsic.auditing.kernels import audit_kernels
from frhsic.auditing.measures import unit_columns
from frhsic.auditing.results import Number
from frhsic.dependence.columns import column_scales
from frhsic.dependence.features import FeatureEstimate, FeatureMaps, draw_feature_maps
from frhsic.independence.features import FeatureMoments, feature_moments, feature_test
from frhsic.intervals import Interval
from frhsic.kernels import Kernel


@dataclass(frozen=True, eq=False)
class FeaturePlan:
    """Random features for HSIC with one attribute, and the scales of the columns of Z."""

    maps: FeatureMaps
    scales: np.ndarray

    def moments(self, z: np.ndarray, s: np.ndarray) -> FeatureMoments:
        """Return the sums over the given rows."""
        return feature_moments(self.maps, torch.from_numpy(z / self.scales), torch.from_numpy(s))

    def number(self, sampled: Number, moments: FeatureMoments, confidence: float) -> Number:
        """Return HSIC and its test based on the features of all rows, in place of the number from
        the sample.
        """
        test = feature_test(self.maps, moments)
        estimate = self.maps.estimate(moments.cross)
        if test.null_standard_deviation == 0:
            return sampled
        quantile = float(stats.norm.ppf((1 + confidence) / 2))
        assert sampled.interval is not None
        # the lower half is clipped at 0 if the sample shows little dependence
        rows = (sampled.interval.high - sampled.value) / quantile * math.sqrt(sampled.rows / test.n)
        error = math.hypot(estimate.standard_error, rows)
        value = estimate.value - test.null_mean
        low = min(value, max(value - quantile * error, 0.0))
        high = max(value + quantile * error, 0.0)
        interval = Interval(
            low, high, confidence, "normal approximation for random features and rows"
        )
        details = sampled.settings | {
            "test": "gamma, limit of random features",
            "biased": estimate.value,
            "features": estimate.features,
            "standard error of the features": estimate.standard_error,
        }
        interval = interval.agree_with(value, test.pvalue)
        return Number(
            "hsic", value, test.n, interval, 0.0, test.pvalue, details, standard_error=error
        )


def feature_plan(z: np.ndarray, s: np.ndarray, features: int, seed: int) -> FeaturePlan | None:
    """Return the random features for HSIC, with the kernels used in the audit of the sample; None
    if this audit has no HSIC.
    """
    try:
        kernels = audit_kernels(torch.from_numpy(unit_columns(z)), torch.from_numpy(s))[:2]
    except ValueError:
        return None
    maps = draw_feature_maps(*kernels, z.shape[1], 1, features=features, random_state=seed)
    return FeaturePlan(maps, np.ones(1) if z.shape[1] == 1 else column_scales(z))


def hsic_of_parts(
    parts: Iterable[tuple[Any, Any]],
    kernel_z: Kernel,
    kernel_s: Kernel,
    *,
    features: int = 512,
    random_state: _arrays.RandomState = 0,
) -> FeatureEstimate:
    r"""HSIC of data in parts, from sums of random features over the parts.

    Up to rounding, the estimate equals that of :func:`frhsic.dependence.hsic_features` on all rows
    together, for the same kernels and random state. Use this function for data that do not fit into
    memory. Pass kernels with fixed bandwidths, because a median distance is not a sum over parts.

    Parameters
    ----------
    parts
        Pairs (z, s) of arrays with one row per observation. Each pair is read once.
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
    pairs = (
        _tensors.paired_matrices((z, f"z of part {i}"), (s, f"s of part {i}"))
        for i, (z, s) in numbered
    )
    first = next(pairs, None)
    if first is None:
        raise ValueError("got no parts; pass at least one pair (z, s).")
    columns = (rows.shape[1] for rows in first)
    maps = draw_feature_maps(
        kernel_z, kernel_s, *columns, features=features, random_state=random_state
    )
    return maps.estimate(sum((maps.sums(z, s) for z, s in pairs), start=maps.sums(*first)))
