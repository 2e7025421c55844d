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
    if name[0].islower()
}
every = pytest.mark.parametrize("name", STATISTICS)


def takes(name, parameter):
    return parameter in parameters(STATISTICS[name])


@every
def test_a_value_that_is_refused_is_named(name):
    check_that_refused_values_are_named(STATISTICS[name])


@every
def test_an_argument_that_is_left_out_has_its_documented_default(name):
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
    "name", ["hsic", "hsic_unbiased", "distance_covariance", "distance_correlation"]
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


@every
def test_one_row_is_refused(name):
    check_that_one_row_is_refused(STATISTICS[name])


MAPS = draw_feature_maps(Linear(), Linear(), 1, 1)
COLUMN, BOTH = torch.tensor(Z)[:, None], np.stack([Z, S], axis=1)
OF_ONE_SCORE = (parity.gdp_curve, parity.correlation_ratio, parity.rank_gap)
FLAT = (
    "z or s is constant under its kernel, so every permutation of s gives the same HSIC. Check the"
    " columns, or pass another kernel or bandwidth."
)
ONE_CLASS = "scores has 2 columns; pass one class at a time."
TWO_ROWS = "a gap in mean scores needs at least 2 rows; got 1."
TOGETHER: list[tuple[str, Callable[[], Any]]] = [  # arguments that do not fit each other
    (
        "median distance of z, of shape (40, 1), is 0: half or more of its pairs coincide. Pass a"
        " kernel with a bandwidth, such as Gaussian(bandwidth=...), for z.",
        lambda: dependence.hsic(np.ones(40), S),
    ),
    (
        "median distance of s, of shape (40, 1), is 0: half or more of its pairs coincide. Pass a"
        " kernel with a bandwidth, such as Gaussian(bandwidth=...), for s.",
        lambda: dependence.hsic_features(Z, k == 0),
    ),
    *(
        (f"kernel_{name} is str; pass a kernel such as Gaussian(1.0), or None.", call)
        for name, call in (
            ("z", lambda: dependence.hsic(Z, S, "rbf")),
            ("s", lambda: dependence.hsic(Z, S, None, "rbf")),
        )
    ),
    ("HSIC needs at least 2 rows; got 1.", lambda: dependence.hsic(Z[:1], S[:1])),
    (
        "HSIC, on the rows that `where` keeps, needs at least 2 rows; got 1.",
        lambda: dependence.hsic(Z, S, where=k == 0),
    ),
    (
        "unbiased HSIC needs at least 4 rows; got 3.",
        lambda: dependence.hsic_unbiased(Z[:3], S[:3]),
    ),
    (
        "distance covariance needs at least 2 rows; got 1.",
        lambda: dependence.distance_correlation(Z[:1], S[:1]),
    ),
    (
        "HSIC by features needs at least 2 rows; got 1.",
        lambda: MAPS.estimate(MAPS.sums(COLUMN[:1], COLUMN[:1])),
    ),
    (
        "features=100; pass a multiple of 2 * blocks = 32.",
        lambda: dependence.hsic_features(Z, S, features=100),
    ),
    (
        "blocks=1; pass at least 2, which the standard error requires.",
        lambda: dependence.hsic_features(Z, S, blocks=1),
    ),
    (
        "random features are not available for HalfDistance; use frhsic.dependence.hsic, which is"
        " exact"
        " for any kernel.",
        lambda: dependence.hsic_features(Z, S, HalfDistance()),
    ),
    (
        "got 2 kernels for 1 columns; pass one kernel per column.",
        lambda: dependence.hsic_features(Z, S, PerColumn((Gaussian(1.0), Gaussian(1.0)))),
    ),
    (
        "mutual information needs at least 42 rows; got 40.",
        lambda: dependence.mutual_information(Z, S, n_neighbors=40),
    ),
    *(
        (
            "s is constant: all 40 rows are equal, so nothing can depend on it. Check the column,"
            " or the rows that `where` keeps.",
            partial(statistic, Z, np.ones(40)),
        )
        for statistic in (
            dependence.mutual_information,
            parity.gdp,
        )
    ),
    *(
        (f"a test of independence needs at least {least} rows; got {least - 1}.", call)
        for least, call in (
            (6, lambda: independence.gamma_test(Z[:5], S[:5])),
            (6, lambda: independence.hsic_interval(Z[:5], S[:5])),
            (4, lambda: independence.permutation_test(Z[:3], S[:3])),
        )
    ),
    (
        "the test by features needs at least 6 rows; got 5.",
        lambda: feature_test(MAPS, feature_moments(MAPS, COLUMN[:5], COLUMN[:5])),
    ),
    (
        "resamples is 0; pass a whole number of at least 1.",
        lambda: independence.permutation_test(Z, S, resamples=0),
    ),
    (
        "groups has shape (39,); pass one label for each row of the data.",
        lambda: independence.permutation_test(Z, S, groups=k[1:]),
    ),
    (
        "no two groups have the same number of rows, so groups cannot be exchanged. Drop rows so"
        " that some groups have equal sizes.",
        lambda: independence.permutation_test(Z, S, groups=k > 10),
    ),
    (FLAT, lambda: independence.hsic_interval(np.ones(40), S, Gaussian(1.0), Gaussian(1.0))),
    (
        FLAT,
        lambda: independence.normalized_hsic_interval(np.ones(40), S, Gaussian(1.0), Gaussian(1.0)),
    ),
    ("s has 2 columns; pass one column.", lambda: parity.gdp(Z, BOTH)),
    (
        "sample_weight contains negative numbers; pass nonnegative weights.",
        lambda: parity.gdp(Z, S, sample_weight=k - 1),
    ),
    (
        "groups has shape (39,); pass one label for each of the 40 rows.",
        lambda: parity.gdp(Z, S, groups=k[1:]),
    ),
    (
        "groups is the same in all rows; pass at least two groups.",
        lambda: parity.gdp(Z, S, groups=0 * k),
    ),
    (
        "scores are constant, so their standard deviation is 0. Use gdp instead, whose value is 0"
        " for constant scores.",
        lambda: parity.standardized_gdp(np.ones(40), S),
    ),
    (
        "scores are constant, so they have no variance that s could explain. Pass scores that"
        " differ.",
        lambda: parity.correlation_ratio(np.ones(40), S),
    ),
    (
        "the share of variance that s explains needs at least 8 rows; got 7.",
        lambda: parity.correlation_ratio(Z[:7], S[:7]),
    ),
    ("bins is 1; pass a whole number of at least 2.", lambda: parity.gdp_curve(Z, S, bins=1)),
    *((ONE_CLASS, partial(one, BOTH, S)) for one in OF_ONE_SCORE),
    *((TWO_ROWS, partial(one, Z, S, where=k == 0)) for one in OF_ONE_SCORE),
    *((TWO_ROWS, partial(one, Z, S, sample_weight=k == 0)) for one in OF_ONE_SCORE),
]


@pytest.mark.parametrize(("sentence", "call"), TOGETHER)
def test_arguments_that_do_not_fit_each_other_are_refused(sentence, call):
    with pytest.raises((ValueError, TypeError)) as refused:
        call()
    assert str(refused.value) == sentence
