"""Arguments of the paper's statistics: what is refused, kinds of arrays, scales and blocks."""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any

import hypothesis
import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from pytest import approx

from dependence_samples import KINDS
from frhsic.kernels import Gaussian, Linear
from frhsic_paper.statistics import eipm, kernel_hgr
from statistic_arguments import (
    S,
    Z,
    check_defaults,
    check_kind_of_array,
    check_that_a_constant_z_tells_nothing,
    check_that_a_default_device_does_not_matter,
    check_that_one_row_is_refused,
    check_that_refused_values_are_named,
    check_that_the_order_of_rows_does_not_matter,
)
from trust.inputs import NAMES, pairs

every = pytest.mark.parametrize("statistic", [eipm, kernel_hgr])


@every
def test_a_value_that_is_refused_is_named(statistic):
    check_that_refused_values_are_named(statistic)


@every
def test_an_argument_that_is_left_out_has_its_documented_default(statistic):
    check_defaults(statistic)


@every
def test_a_default_device_does_not_matter(statistic):
    check_that_a_default_device_does_not_matter(statistic)


@pytest.mark.parametrize("kind", KINDS)
@every
def test_every_kind_of_array_gives_the_same(statistic, kind):
    check_kind_of_array(statistic, kind)


@every
def test_the_order_of_rows_does_not_matter(statistic):
    options = {"anchors": None} if statistic is eipm else {}
    check_that_the_order_of_rows_does_not_matter(statistic, **options)


@pytest.mark.parametrize("n", [9, 500])
def test_a_constant_z_tells_nothing_to_hgr(n):
    check_that_a_constant_z_tells_nothing(kernel_hgr, n)


@every
def test_one_row_is_refused(statistic):
    check_that_one_row_is_refused(statistic)


def test_a_ridge_that_is_lost_in_rounding_is_refused():
    with pytest.raises(ValueError, match="ridge_z"):
        kernel_hgr(1e12 * Z, S, Linear(), Linear(), ridge_z=1e-9)


# --- any input


@every
@settings(
    max_examples=12,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
    phases=[hypothesis.Phase.generate],
)
@given(pair=pairs())
def test_a_finite_number_or_an_error_that_names_the_argument(statistic: Any, pair: tuple[Any, Any]):
    try:
        with warnings.catch_warnings(action="ignore"):
            value = float(statistic(*pair))
    except (ValueError, TypeError) as error:
        if not NAMES.search(str(error)):
            pytest.fail(f"the message of {statistic.__name__} does not name the argument: {error}")
    else:
        assert np.isfinite(value)


RNG = np.random.default_rng(0)
LONG_S = RNG.normal(size=60)
LONG_Z = np.column_stack([LONG_S + 0.5 * RNG.normal(size=60), RNG.normal(size=60)])
SCALES = [1e-300, 1e-160, 1e-40, 1e-29, 1e-12, 1e12, 1e19, 1e29, 1e40, 1e155, 1e300]


@every
def test_any_scale_gives_the_right_number_or_an_error_that_names_the_argument(statistic):
    expected = float(statistic(LONG_Z, LONG_S))
    for scale in SCALES:
        for z, s, argument in (
            (LONG_Z * scale, LONG_S, "z"),
            (LONG_Z, LONG_S * scale, "s"),
        ):
            try:
                value = float(statistic(z, s))
            except ValueError as error:
                assert not 1e-29 <= scale <= 1e29, (scale, error)  # noqa: PT017
                assert f" {argument} " in f" {error}"  # noqa: PT017
                continue
            assert value == approx(expected, rel=1e-6), (argument, scale)


@every
def test_float32_near_its_ends_is_computed_in_float64(statistic):
    z, s = LONG_Z.astype(np.float32), LONG_S.astype(np.float32)
    expected = float(statistic(z.astype(float), s.astype(float)))
    for scale in (1e-12, 1e12, 1e19, 1e29):
        assert float(statistic(z * np.float32(scale), s)) == approx(expected, rel=1e-4), scale


@pytest.mark.parametrize("bandwidth", [1e-300, 1e-160, 1e160, 1e300, 0.0, -1.0, np.nan, np.inf])
def test_a_bandwidth_that_no_float_can_square_is_refused(bandwidth):
    with pytest.raises(ValueError, match="bandwidth"):
        eipm(LONG_Z, LONG_S, bandwidth=bandwidth)


def test_kernel_hgr_of_large_numbers_is_right_or_refused():
    large = np.where(LONG_S > 0, 1e8, -1e8)
    for z in (large, 1e8 * LONG_S, 1e20 * LONG_S):
        try:
            value = float(kernel_hgr(z, 1e8 * LONG_S, Linear(), Linear()))
        except ValueError as error:
            assert "ridge" in str(error)  # noqa: PT017
        else:
            assert 0 < value <= 1


# --- blocks


k = np.arange(60.0)
TIED_S = np.round(np.exp(1.5 * np.sin(1.3 * k)), 1)  # skewed, with ties
TIED_S[::5] = 0  # and many zeros
TIED_Z = np.stack([np.sin(k) + 0.4 * TIED_S, np.cos(1.7 * k) * k / 20, k * k % 7], axis=1)

BLOCKS = {
    "frhsic.dependence.tiles.CPU_TILE": 16,
    "frhsic.dependence.tiles.FEWEST_FOR_FACTOR": 8,
    "frhsic_paper.products.TILE_ENTRIES": 300,
    "frhsic_paper.statistics.conditional.TILE_ENTRIES": 300,
}


def test_small_blocks_change_no_number(monkeypatch):
    call = partial(eipm, TIED_Z, TIED_S, Gaussian(1.0), bandwidth=0.4)
    at_once = float(call())
    for constant, value in BLOCKS.items():
        monkeypatch.setattr(constant, value)
    assert float(call()) == approx(at_once, rel=1e-8, abs=1e-12)


@pytest.mark.parametrize("z", [TIED_Z, np.full(60, 2.0)], ids=["varying", "constant"])
def test_a_statistic_of_tensors_has_their_type(z, dtype):
    rows = torch.tensor(z, dtype=dtype), torch.tensor(TIED_S, dtype=dtype)
    for statistic in (kernel_hgr, eipm):
        assert statistic(*rows, Gaussian(1.0)).dtype == dtype
