"""Edges of numbers: a right finite number, or an error that names the argument."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import torch
from inputs import FUNCTIONS, PARITY

from estimator_samples import quick
from frhsic import FRHSICClassifier, FRHSICRegressor, dependence, independence, parity
from frhsic.kernels import Gaussian, Laplacian

RNG = np.random.default_rng(0)
S = RNG.normal(size=60)
Z = np.column_stack([S + 0.5 * RNG.normal(size=60), RNG.normal(size=60)])

# the power of the scale of z, and of the scale of s, that a statistic is proportional to
POWERS = {
    **dict.fromkeys(("hsic", "hsic_unbiased", "hsic_features"), (0.0, 0.0)),
    **dict.fromkeys(("distance_correlation", "mutual_information", "standardized_gdp"), (0.0, 0.0)),
    **dict.fromkeys(("correlation_ratio", "gamma_test", "permutation_test"), (0.0, 0.0)),
    "hsic_linear": (2.0, 2.0),
    "distance_covariance": (0.5, 0.5),
    "gdp": (1.0, 0.0),
    "median_bandwidth": (1.0, 0.0),
}


def statistic(name: str, z: np.ndarray, s: np.ndarray) -> float:
    return float(FUNCTIONS[name](z[:, 0] if name in PARITY else z, s))


SCALES = [1e-300, 1e-160, 1e-40, 1e-29, 1e-12, 1e12, 1e19, 1e29, 1e40, 1e155, 1e300]


@pytest.mark.parametrize("name", POWERS)
def test_any_scale_gives_the_right_number_or_an_error_that_names_the_argument(name: str):
    in_z, in_s = POWERS[name]
    expected = statistic(name, Z, S)
    for scale in SCALES:
        for z, s, power, argument in ((Z * scale, S, in_z, "z"), (Z, S * scale, in_s, "s")):
            try:
                value = statistic(name, z, s)
            except ValueError as error:
                assert not 1e-29 <= scale <= 1e29, (scale, error)  # noqa: PT017
                assert f" {argument} " in f" {error}" or "scores" in str(error)  # noqa: PT017
                continue
            assert value == pytest.approx(expected * scale**power, rel=1e-6), (argument, scale)


@pytest.mark.parametrize("name", POWERS)
def test_float32_near_its_ends_is_computed_in_float64(name: str):
    in_z, _ = POWERS[name]
    z, s = Z.astype(np.float32), S.astype(np.float32)
    expected = statistic(name, z.astype(float), s.astype(float))
    for scale in (1e-12, 1e12, 1e19, 1e29):
        value = statistic(name, z * np.float32(scale), s)
        assert value == pytest.approx(expected * float(np.float32(scale)) ** in_z, rel=1e-4), scale


@pytest.mark.parametrize("bandwidth", [1e-300, 1e-160, 1e160, 1e300, 0.0, -1.0, np.nan, np.inf])
def test_a_bandwidth_that_no_float_can_square_is_refused(bandwidth: float):
    for make in (Gaussian, Laplacian):
        with pytest.raises(ValueError, match="bandwidth"):
            make(bandwidth)


def test_a_column_that_is_too_narrow_is_refused_beside_a_wide_one():
    """Statistics that scale each column divided by zero here, or passed NaN on."""
    z = np.column_stack([Z[:, 0], 1e-200 * Z[:, 1]])
    for call in (parity.standardized_gdp, dependence.mutual_information, dependence.hsic):
        with pytest.raises(ValueError, match=r"a column of (z|scores)"):
            call(z, S)


@pytest.mark.parametrize("bandwidth", [1e-59, 1e-10, 1e10, 1e59])
def test_a_bandwidth_far_from_the_data_gives_a_finite_number(bandwidth: float):
    for kernel in (Gaussian(bandwidth), Laplacian(bandwidth)):
        value = float(dependence.hsic(Z, S, kernel, kernel))
        assert np.isfinite(value)
        assert value >= 0


ODD: dict[str, Callable[[], Any]] = {
    "masked": lambda: np.ma.MaskedArray(S, mask=S > 1),
    "sparse": lambda: scipy.sparse.csr_matrix(S[:, None]),
    "sparse tensor": lambda: torch.tensor(S)[:, None].to_sparse(),
    "compressed tensor": lambda: torch.tensor(S)[:, None].to_sparse_csr(),
    "meta": lambda: torch.empty(60, device="meta"),
    "quantized": lambda: torch.quantize_per_tensor(
        torch.tensor(S, dtype=torch.float32), 0.1, 0, torch.qint8
    ),
    "dates": lambda: pd.Series(pd.date_range("2020-01-01", periods=60)),
    "numpy dates": lambda: np.arange("2020-01-01", "2020-03-01", dtype="datetime64[D]"),
    "durations": lambda: np.arange(60).astype("timedelta64[D]"),
    "date objects": lambda: np.array(
        [datetime.date(2020, 1, 1 + i % 28) for i in range(60)], dtype=object
    ),
    "complex": lambda: S + 1j,
    "text": lambda: np.array(["a"] * 60),
    "None": lambda: None,
    "huge": lambda: S * 1e200,
    "NaN": lambda: np.where(S > 1, np.nan, S),
}


@pytest.mark.filterwarnings(
    "ignore::UserWarning"
)  # torch warns of kinds of tensors that it is giving up
@pytest.mark.parametrize("name", ODD)
def test_odd_arrays_are_refused_by_name(name: str):
    for call, argument in (
        (lambda odd: dependence.hsic(odd, S), "z"),
        (lambda odd: dependence.hsic(Z, odd), "s"),
        (lambda odd: parity.gdp(odd, S, random_state=0), "scores"),
        (lambda odd: independence.gamma_test(Z, odd), "s"),
    ):
        with pytest.raises((ValueError, TypeError), match=rf"\b{argument}\b"):
            call(ODD[name]())


@pytest.mark.filterwarnings(
    "ignore::UserWarning"
)  # torch warns of kinds of tensors that it is giving up
@pytest.mark.parametrize("name", [name for name in ODD if name not in ("text",)])
def test_odd_targets_are_refused_by_name(name: str):
    model = FRHSICRegressor(**quick(epochs=1))
    with pytest.raises((ValueError, TypeError), match=r"\by\b"):
        model.fit(Z, ODD[name](), sensitive_features=S)


@pytest.mark.parametrize(
    "name", ["dates", "numpy dates", "durations", "date objects", "masked", "sparse"]
)
def test_dates_are_no_classes(name: str):
    labels = ODD[name]()
    with pytest.raises((ValueError, TypeError), match=r"\by\b"):
        FRHSICClassifier(**quick(epochs=1)).fit(Z, labels, sensitive_features=S)
