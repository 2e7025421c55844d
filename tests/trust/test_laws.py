"""Any input to any public statistic: a finite number, or a ValueError or TypeError that names the argument."""

from __future__ import annotations

import math
import re
import warnings
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from frhsic import dependence, independence, parity, probes
from frhsic.kernels import Gaussian, InverseMultiquadric, Laplacian, Linear, default_gaussian, median_bandwidth

COUNTS: Counter[str] = Counter()
SPECIAL = [0.0, -0.0, 1.0, -1.0, 1e-300, 1e-160, 1e-40, 1e19, 1e38, 1e154, 1e300, -1e300, math.nan, math.inf, -math.inf]

seeded = {"random_state": 0}
FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "hsic": dependence.hsic,
    "hsic_linear": lambda z, s: dependence.hsic(z, s, Linear(), Linear()),
    "hsic_mixed": lambda z, s: dependence.hsic(z, s, Laplacian(2.0) + 3 * Linear(), InverseMultiquadric(0.1)),
    "hsic_unbiased": dependence.hsic_unbiased,
    "hsic_features": lambda z, s: dependence.hsic_features(z, s, **seeded),
    "eipm": dependence.eipm,
    "binned_mmd": dependence.binned_mmd,
    "binned_mean_difference": dependence.binned_mean_difference,
    "distance_covariance": dependence.distance_covariance,
    "distance_covariance_unbiased": dependence.distance_covariance_unbiased,
    "distance_correlation": dependence.distance_correlation,
    "distance_correlation_unbiased": dependence.distance_correlation_unbiased,
    "mutual_information": lambda z, s: dependence.mutual_information(z, s, **seeded),
    "kernel_hgr": dependence.kernel_hgr,
    "gdp": lambda z, s: parity.gdp(z, s, resamples=5, **seeded),
    "standardized_gdp": lambda z, s: parity.standardized_gdp(z, s, resamples=5, **seeded),
    "smoothed_gdp": lambda z, s: parity.smoothed_gdp(z, s, bandwidth=0.3),
    "correlation_ratio": parity.correlation_ratio,
    "quantile_gap": parity.quantile_gap,
    "gamma_test": lambda z, s: independence.gamma_test(z, s).pvalue,
    "permutation_test": lambda z, s: independence.permutation_test(z, s, resamples=19, **seeded).pvalue,
    "median_bandwidth": lambda z, s: median_bandwidth(z, name="z"),
    "default_gaussian": lambda z, s: default_gaussian(z, name="z")[0].bandwidth,
    "gaussian": lambda z, s: dependence.hsic(z, s, Gaussian(1e-9), Gaussian(1e9)),
}
NAMES = re.compile(r"\b(z|s|scores|where|lengths|bandwidth|kernel|rows)\b")


@st.composite
def arrays(draw: st.DrawFn, rows: int, columns: int) -> Any:
    """Arrays of many kinds: magnitudes, ties, constants, NaN, dtypes, strides, frames, tensors, wrong shapes."""
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    shape = (rows, columns) if columns else (rows,)
    kind = draw(st.sampled_from(["normal", "ties", "constant", "binary", "zero-inflated", "skewed", "far", "integers"]))
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
    form = draw(st.sampled_from(["plain", "read-only", "strided", "reversed", "fortran", "frame", "tensor", "list"]))
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
        values = pd.DataFrame(values, index=index) if values.ndim == 2 else pd.Series(values, index=index)
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


def obeys(name: str, pair: tuple[Any, Any]) -> None:
    COUNTS[name] += 1
    try:
        with warnings.catch_warnings(action="ignore"):
            value = float(FUNCTIONS[name](*pair))
    except (ValueError, TypeError) as error:
        if not NAMES.search(str(error)):
            pytest.fail(f"the message does not name the argument: {error}")
        return
    assert math.isfinite(value)


@pytest.mark.parametrize("name", FUNCTIONS)
@settings(max_examples=25, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
@given(pair=pairs())
def test_a_finite_number_or_an_error_that_names_the_argument(name: str, pair: tuple[Any, Any]):
    obeys(name, pair)


@pytest.mark.slow
@pytest.mark.parametrize("name", FUNCTIONS)
@settings(max_examples=4500, deadline=None, database=None, suppress_health_check=list(HealthCheck))
@given(pair=pairs())
def test_a_hundred_thousand_inputs(name: str, pair: tuple[Any, Any]):
    obeys(name, pair)


@pytest.mark.parametrize(
    "name", ["hsic", "eipm", "distance_correlation", "binned_mmd", "kernel_hgr", "mutual_information"]
)
def test_row_order_and_duplication_of_the_sample(name: str):
    rng = np.random.default_rng(1)
    s = rng.exponential(size=30)
    z = s + rng.normal(size=30)
    order = rng.permutation(30)
    value = float(FUNCTIONS[name](z, s))
    assert float(FUNCTIONS[name](z[order], s[order])) == pytest.approx(value, rel=1e-6)
    if name in ("hsic", "distance_correlation"):  # functions of the empirical law, at a fixed bandwidth
        fixed = {"hsic": lambda z, s: dependence.hsic(z, s, Gaussian(1.0), Gaussian(1.0))}.get(name, FUNCTIONS[name])
        assert float(fixed(np.tile(z, 2), np.tile(s, 2))) == pytest.approx(float(fixed(z, s)), rel=1e-9)


@pytest.mark.parametrize("name", ["gdp", "standardized_gdp", "correlation_ratio", "quantile_gap"])
def test_monotone_maps_of_the_attribute_do_not_matter(name: str):
    rng = np.random.default_rng(2)
    s = rng.normal(size=60)
    scores = np.tanh(s) + 0.3 * rng.normal(size=60)
    value = float(FUNCTIONS[name](scores, s))
    for mapped in (np.exp(s), s**3, 1e20 * s, np.argsort(np.argsort(s))):
        assert float(FUNCTIONS[name](scores, mapped)) == pytest.approx(value, rel=1e-9)


def test_probes_are_finite_or_refused():
    rng = np.random.default_rng(3)
    assert hasattr(probes, "held_out_r2")
    z, s = rng.normal(size=(40, 2)), rng.normal(size=40)
    assert math.isfinite(probes.held_out_r2("linear", z[:20], s[:20], z[20:], s[20:], seed=0))
