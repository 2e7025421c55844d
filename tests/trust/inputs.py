"""Arrays of every kind that a caller may pass, and the public functions that they are passed to."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import torch
from hypothesis import strategies as st

from estimator_samples import quick
from frhsic import dependence, independence, kernels, parity
from frhsic.estimators import FRHSICClassifier, FRHSICRegressor
from frhsic.kernels import Gaussian, InverseMultiquadric, Laplacian, Linear

SPECIAL = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    1e-300,
    1e-160,
    1e-40,
    1e19,
    1e38,
    1e154,
    1e300,
    -1e300,
    math.nan,
    math.inf,
    -math.inf,
]

NAMES = re.compile(
    r"'\d+'|\b(z|s|s_\d|x|y|X|scores|where|lengths|bandwidth|kernel|rows|at|sensitive_features|"
    r"sensitive attribute)\b"
)
"""One of these, or the number of a column, is in every message of a refused argument."""

Statistic = Callable[[Any, Any], Any]
seeded = {"random_state": 0}

DEPENDENCE: dict[str, Statistic] = {
    "hsic": dependence.hsic,
    "hsic_linear": lambda z, s: dependence.hsic(z, s, Linear(), Linear()),
    "hsic_mixed": lambda z, s: dependence.hsic(
        z, s, Laplacian(2.0) + 3 * Linear(), InverseMultiquadric(0.1)
    ),
    "hsic_far_bandwidths": lambda z, s: dependence.hsic(z, s, Gaussian(1e-9), Gaussian(1e9)),
    "hsic_unbiased": dependence.hsic_unbiased,
    "hsic_features": lambda z, s: dependence.hsic_features(z, s, features=64, **seeded),
    "distance_covariance": dependence.distance_covariance,
    "distance_correlation": dependence.distance_correlation,
    "mutual_information": lambda z, s: dependence.mutual_information(z, s, **seeded),
}

PARITY: dict[str, Statistic] = {
    "gdp": lambda z, s: parity.gdp(z, s, resamples=5, **seeded),
    "standardized_gdp": lambda z, s: parity.standardized_gdp(z, s, resamples=5, **seeded),
    "correlation_ratio": parity.correlation_ratio,
    "gdp_curve": lambda z, s: parity.gdp_curve(z, s).mean,
    "gdp_difference": lambda z, s: parity.gdp_difference(None, z, sensitive_features=s),
}

INDEPENDENCE: dict[str, Statistic] = {
    "gamma_test": lambda z, s: independence.gamma_test(z, s).pvalue,
    "permutation_test": lambda z, s: (
        independence.permutation_test(z, s, resamples=19, **seeded).pvalue
    ),
    "hsic_interval": independence.hsic_interval,
    "normalized_hsic_interval": independence.normalized_hsic_interval,
}

OTHERS: dict[
    str, Statistic
] = {  # not penalties, objectives and probes: they trust the loop that calls them
    "median_bandwidth": lambda z, s: kernels.median_bandwidth(z, name="z"),
}


TINY = quick(hidden=(3,), size=2, epochs=1)


def binary(values: Any) -> np.ndarray:
    return np.arange(len(values)) % 2


HEAVY: dict[str, Statistic] = {
    "FRHSICClassifier": lambda x, s: (
        FRHSICClassifier(**TINY).fit(x, binary(x), sensitive_features=s).predict_proba(x)
    ),
    "FRHSICRegressor": lambda x, s: (
        FRHSICRegressor(**TINY).fit(x, binary(x), sensitive_features=s).predict(x)
    ),
    "representation": lambda x, s: (
        FRHSICRegressor(**TINY).fit(x, binary(x), sensitive_features=s).transform(x)
    ),
    "FRHSICRegressor on y": lambda y, s: (
        FRHSICRegressor(**TINY).fit(s, y, sensitive_features=s).predict(s)
    ),
}

FUNCTIONS = {**DEPENDENCE, **PARITY, **INDEPENDENCE, **OTHERS, **HEAVY}


@st.composite
def arrays(draw: st.DrawFn, rows: int, columns: int) -> Any:
    """Arrays of many kinds: magnitudes, ties, constants, NaN, dtypes, strides, frames, tensors,
    wrong shapes.
    """
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    shape = (rows, columns) if columns else (rows,)
    kind = draw(
        st.sampled_from(
            ["normal", "ties", "constant", "binary", "zero-inflated", "skewed", "far", "integers"]
        )
    )
    values = {
        "normal": lambda: rng.normal(size=shape),
        "ties": lambda: rng.integers(0, 3, size=shape).astype(float),
        "constant": lambda: np.full(shape, rng.normal()),
        "binary": lambda: (rng.random(shape) < 0.1).astype(float),
        "zero-inflated": lambda: rng.exponential(size=shape) * (rng.random(shape) < 0.4),
        "skewed": lambda: np.exp(3 * rng.normal(size=shape)),
        "far": lambda: 1e6 + 1e-3 * rng.normal(size=shape),
        "integers": lambda: rng.integers(-100, 100, size=shape),
    }[kind]()
    if draw(st.booleans()) and values.dtype == float:
        values = values * 10.0 ** draw(st.integers(-300, 300))
    if draw(st.integers(0, 4)) == 0 and values.size:
        values = values.astype(float)
        values.flat[rng.integers(values.size)] = draw(st.sampled_from(SPECIAL))
    with np.errstate(over="ignore"):
        dtype = draw(st.sampled_from([None, None, np.float32, np.float16, np.longdouble]))
        values = values if dtype is None else values.astype(dtype)
    form = draw(
        st.sampled_from(
            ["plain", "read-only", "strided", "reversed", "fortran", "frame", "tensor", "list"]
        )
    )
    if form == "read-only":
        values.flags.writeable = False
    elif form == "strided":
        values = np.repeat(values, 2, axis=0)[::2]
    elif form == "reversed":
        values = values[::-1]
    elif form == "fortran":
        values = np.asfortranarray(values)
    elif form == "frame" and values.dtype in (np.float64, np.float32, np.int64):
        index = rng.permutation(len(values)) - 3
        values = (
            pd.DataFrame(values, index=index)
            if values.ndim == 2
            else pd.Series(values, index=index)
        )
    elif form == "tensor" and values.dtype in (np.float64, np.float32, np.float16, np.int64):
        values = torch.from_numpy(np.ascontiguousarray(values))
    elif form == "list":
        values = values.tolist()
    return values


@st.composite
def pairs(draw: st.DrawFn) -> tuple[Any, Any]:
    rows = draw(st.sampled_from([0, 1, 2, 3, 4, 5, 7, 12, 25]))
    other = rows if draw(st.integers(0, 15)) else rows + 1
    return draw(arrays(rows, draw(st.integers(0, 3)))), draw(arrays(other, draw(st.integers(0, 2))))
