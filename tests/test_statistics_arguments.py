"""Arguments of every public statistic: rows and kinds of arrays, defaults, the device, and what is
refused.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from pytest import approx

from dependence_samples import KINDS
from frhsic import dependence, independence, parity
from frhsic.dependence.features import draw_feature_maps
from frhsic.independence import SequentialTest
from frhsic.independence.features import feature_moments, feature_test
from frhsic.kernels import Gaussian, HalfDistance, Linear, PerColumn
from statistic_arguments import (
    S,
    Z,
    call,
    check_defaults,
    check_kind_of_array,
    check_that_a_constant_z_tells_nothing,
    check_that_a_default_device_does_not_matter,
    check_that_one_row_is_refused,
    check_that_refused_values_are_named,
    check_that_the_order_of_rows_does_not_matter,
    check_that_where_keeps_rows,
    k,
    parameters,
)

STATISTICS: dict[str, Callable[..., Any]] = {
    name: getattr(package, name)
    for package in (dependence, independence, parity)
    for name in package.__all__
    if name == "SequentialTest" or name[0].islower()
}
every = pytest.mark.parametrize("name", STATISTICS)


def takes(name, parameter):
    return parameter in parameters(STATISTICS[name])


@every
def test_a_value_that_is_refused_is_named(name):
    check_that_refused_values_are_named(STATISTICS[name])


@every
def test_an_argument_that_is_left_out_has_its_documented_default(name):
    if name == "SequentialTest":
        test = call(SequentialTest)
        assert (test.level, test.resamples) == (0.05, 999)
    else:
        check_defaults(STATISTICS[name])


@every
def test_a_default_device_does_not_matter(name):
    check_that_a_default_device_does_not_matter(STATISTICS[name])


@pytest.mark.parametrize("name", [name for name in STATISTICS if takes(name, "where")])
def test_where_keeps_rows(name):
    check_that_where_keeps_rows(STATISTICS[name])


@pytest.mark.parametrize("kind", KINDS)
@every
def test_every_kind_of_array_gives_the_same(name, kind):
    check_kind_of_array(STATISTICS[name], kind)


@pytest.mark.parametrize(
    "name",
    ["hsic", "hsic_unbiased", "distance_covariance", "distance_correlation", "mutual_information"],
)
def test_arrays_give_a_float_and_tensors_a_tensor(name: str):
    statistic = getattr(dependence, name)
    assert type(statistic(Z, S)) is float
    assert type(statistic(Z.tolist(), S.tolist())) is float
    for rows in ((torch.tensor(Z), S), (Z, torch.tensor(S))):
        assert isinstance(statistic(*rows), torch.Tensor)


SYMMETRIC = (
    "hsic",
    "hsic_unbiased",
    "distance_covariance",
    "distance_correlation",
    "mutual_information",
)


@pytest.mark.parametrize("name", [name for name in dependence.__all__ if name in STATISTICS])
def test_the_order_of_rows_does_not_matter_and_where_both_are_treated_alike_that_of_arguments(name):
    statistic = STATISTICS[name]
    check_that_the_order_of_rows_does_not_matter(statistic)
    if name in SYMMETRIC:
        assert float(call(statistic, z=S, s=Z)) == approx(float(call(statistic)), rel=1e-7)


@pytest.mark.parametrize(
    "name", ["distance_covariance", "distance_correlation", "mutual_information"]
)
@pytest.mark.parametrize("n", [9, 500])
def test_a_constant_z_tells_nothing(name, n):
    check_that_a_constant_z_tells_nothing(STATISTICS[name], n)


@pytest.mark.parametrize("name", [name for name in STATISTICS if name != "SequentialTest"])
def test_one_row_is_refused(name):
    check_that_one_row_is_refused(STATISTICS[name])


MAPS = draw_feature_maps(Linear(), Linear(), 1, 1)
COLUMN, BOTH = torch.tensor(Z)[:, None], np.stack([Z, S], axis=1)
OF_ONE_SCORE = (parity.gdp_curve, parity.correlation_ratio, parity.rank_gap)
TOGETHER: list[
    tuple[str, Callable[[], Any]]
] = [  # arguments that do not fit each other, with a word of the reason
    ("median", lambda: dependence.hsic(np.ones(40), S)),
    ("at least 4 rows", lambda: dependence.hsic_unbiased(Z[:3], S[:3])),
    ("features", lambda: dependence.hsic_features(Z, S, features=100)),
    ("features", lambda: dependence.hsic_features(Z, S, HalfDistance())),
    (
        "column",
        lambda: dependence.hsic_features(Z, S, PerColumn((Gaussian(1.0), Gaussian(1.0)))),
    ),
    ("at least 2 rows", lambda: MAPS.estimate(MAPS.sums(COLUMN[:1], COLUMN[:1]))),
    ("at least 42 rows", lambda: dependence.mutual_information(Z, S, n_neighbors=40)),
    ("at least 6 rows", lambda: independence.gamma_test(Z[:5], S[:5])),
    ("at least 4 rows", lambda: independence.permutation_test(Z[:3], S[:3])),
    (
        "at least 6 rows",
        lambda: feature_test(MAPS, feature_moments(MAPS, COLUMN[:5], COLUMN[:5])),
    ),
    ("resamples is 0", lambda: independence.permutation_test(Z, S, resamples=0)),
    (
        "constant",
        lambda: independence.hsic_interval(np.ones(40), S, Gaussian(1.0), Gaussian(1.0)),
    ),
    (
        "constant",
        lambda: independence.normalized_hsic_interval(np.ones(40), S, Gaussian(1.0), Gaussian(1.0)),
    ),
    ("s has 2 columns", lambda: SequentialTest().update(Z, BOTH)),
    ("scores has 2 columns", lambda: SequentialTest().update(Z, S).update(BOTH, S)),
    ("lengths differ", lambda: SequentialTest().update(Z, S[:-1])),
    ("2 columns", lambda: parity.gdp(Z, BOTH)),
    ("constant", lambda: parity.standardized_gdp(np.ones(40), S)),
    ("constant", lambda: parity.correlation_ratio(np.ones(40), S)),
    *(("2 columns", partial(one, BOTH, S)) for one in OF_ONE_SCORE),
    *(("at least 2 rows", partial(one, Z, S, where=k == 0)) for one in OF_ONE_SCORE),
    *(("at least 2 rows", partial(one, Z, S, sample_weight=k == 0)) for one in OF_ONE_SCORE),
]


@pytest.mark.parametrize(("reason", "call"), TOGETHER)
def test_arguments_that_do_not_fit_each_other_are_refused(reason, call):
    with pytest.raises((ValueError, TypeError), match=reason):
        call()
