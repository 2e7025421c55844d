"""Any input to any public function: finite numbers, or a ValueError or TypeError that names the
argument.
"""

from __future__ import annotations

import re
import warnings
from typing import Any

import hypothesis
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from inputs import FUNCTIONS, HEAVY, NAMES, pairs

from frhsic import dependence
from frhsic.kernels import Gaussian

SKLEARN = re.compile(
    r"Expected 2D array|Expected a 2-dimensional|Found array with 0|Found input variables with"
    r" inconsistent numbers"
)
"""Messages of scikit-learn, whose own checks of estimators ask for them."""


@pytest.mark.parametrize("name", FUNCTIONS)
@settings(
    max_examples=12,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
    phases=[hypothesis.Phase.generate],
)
@given(pair=pairs())
def test_a_finite_number_or_an_error_that_names_the_argument(name: str, pair: tuple[Any, Any]):
    try:
        with warnings.catch_warnings(action="ignore"):
            value = np.asarray(FUNCTIONS[name](*pair), dtype=float)
    except (ValueError, TypeError) as error:
        if not (NAMES.search(str(error)) or (name in HEAVY and SKLEARN.search(str(error)))):
            pytest.fail(f"the message of {name} does not name the argument: {error}")
    else:
        assert np.isfinite(value).all(), name


@pytest.mark.parametrize("name", ["hsic", "distance_correlation"])
def test_a_sample_that_is_repeated_has_the_same_value(name: str):
    """Both are functions of the empirical law, at a fixed bandwidth."""
    rng = np.random.default_rng(1)
    s = rng.exponential(size=30)
    z = s + rng.normal(size=30)
    fixed = {"hsic": lambda z, s: dependence.hsic(z, s, Gaussian(1.0), Gaussian(1.0))}.get(
        name, FUNCTIONS[name]
    )
    assert float(fixed(np.tile(z, 2), np.tile(s, 2))) == pytest.approx(float(fixed(z, s)), rel=1e-9)
