"""Arguments of every public statistic: rows and kinds of arrays, defaults, the device, and what is
refused.
"""

import inspect
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
from frhsic.independence.gamma import feature_moments, feature_test
from frhsic.kernels import Gaussian, HalfDistance, Laplacian, Linear, PerColumn

k = np.arange(40.0)
S = np.exp(np.sin(1.3 * k))
Z = np.cos(1.7 * k) + 0.2 * S

STATISTICS: dict[str, Callable[..., Any]] = {
    name: getattr(package, name)
    for package in (dependence, independence, parity)
    for name in package.__all__
    if name == "SequentialTest" or name[0].islower()
}
every = pytest.mark.parametrize("name", STATISTICS)
GIVEN: dict[str, Any] = {  # what some statistics must be given
    "z": Z,
    "scores": Z,
    "s": S,
    "y": np.sin(k),
    "y_true": k % 2,
    "y_pred": Z,
    "sensitive_features": S,
    "at": 1.0,
    "epsilon": 0.1,
    "bandwidth": 0.4,
}
ROWS = (Z[:9], np.append(Z[1:], np.nan), ["a"] * 40, Z * 1j, [])
REFUSED: dict[str, tuple[Any, ...]] = {
    "z": ROWS,
    "scores": ROWS,
    "s": (*ROWS, np.ones(40)),
    "y": (*ROWS, np.ones(40), np.stack([Z, S], axis=1)),
    "sensitive_features": ROWS[1:],
    "at": (99.0, -99.0, np.nan),
    "weighting": ("grid",),
    "device": ("toaster",),
    "kernels": ([],),
    "edges": ([2.0, 1.0], [1e9]),
    "groups": ([1, 2], np.ones(40)),
    "where": ([True], k),
    "random_state": ("seed", -1),
    **dict.fromkeys(("kernel_z", "kernel_s"), ("gaussian",)),
    **dict.fromkeys(("confidence", "level", "resolution"), (0.0, 1.0, np.nan)),
    **dict.fromkeys(
        ("epsilon", "bandwidth", "ridge_z", "ridge_s", "tolerance"), (0.0, -1.0, np.inf)
    ),
    **dict.fromkeys(("bins", "blocks"), (1, 0)),
    **dict.fromkeys(("anchors", "components", "features"), (0, 41)),
    **dict.fromkeys(("resamples", "permutations", "bootstrap"), (-1, 2.5)),
    "max_rows": (3, 2.5),
    "max_rank": (1,),
    "n_neighbors": (0, 2.5),
    **dict.fromkeys(("weights", "sample_weight"), ([1.0], -k, np.full(40, np.inf))),
}
DEFAULTS = {
    "level": 0.05,
    "confidence": 0.95,
    "resamples": 999,
    "bootstrap": 500,
    "permutations": 500,
    "max_rows": 2000,
    "features": 512,
    "blocks": 16,
    "n_neighbors": 5,
    "ridge_z": 0.01,
    "ridge_s": 0.01,
    "tolerance": 1e-6,
    "weighting": "population",
}


def parameters(name):
    return inspect.signature(STATISTICS[name]).parameters


def call(name, **arguments):
    given = {key: GIVEN[key] for key, one in parameters(name).items() if one.default is one.empty}
    given |= {
        key: value
        for key, value in {"random_state": 3, "anchors": 30}.items()
        if key in parameters(name)
    }
    return STATISTICS[name](**(given | arguments))


def rows_of(name, change):
    """What the statistic is given for each row, changed."""
    return {
        key: change(value)
        for key, value in GIVEN.items()
        if key in parameters(name) and np.ndim(value)
    }


def few(name):
    return {
        key: 49 for key in ("resamples", "permutations", "bootstrap") if key in parameters(name)
    }


@every
def test_a_value_that_is_refused_is_named(name):
    for argument in parameters(name):
        for value in REFUSED.get(argument, ()):
            with pytest.raises((ValueError, TypeError), match=rf"\b{argument}\b"):
                call(name, **{argument: value})


@every
def test_an_argument_that_is_left_out_has_its_documented_default(name):
    defaults = {key: value for key, value in DEFAULTS.items() if key in parameters(name)}
    if name == "SequentialTest":
        assert (call(name).level, call(name).resamples) == (0.05, 999)
    elif defaults:
        assert repr(call(name)) == repr(call(name, **defaults))


@every
def test_a_default_device_does_not_matter(name):
    """The device is that of the data; on "meta" there are no numbers, so that nothing may be made
    there.
    """
    here = repr(call(name, **few(name)))
    with torch.device("meta"):
        assert repr(call(name, **few(name))) == here


@pytest.mark.parametrize("name", [name for name in STATISTICS if "where" in parameters(name)])
def test_where_keeps_rows(name):
    kept = np.arange(40) % 3 > 0
    options = few(name) | ({"anchors": 20} if name == "eipm" else {})
    assert repr(call(name, where=kept, **options)) == repr(
        call(name, **rows_of(name, lambda x: x[kept]), **options)
    )


@pytest.mark.parametrize("kind", KINDS)
@every
def test_every_kind_of_array_gives_the_same(name, kind):
    assert repr(call(name, **rows_of(name, KINDS[kind]), **few(name))) == repr(
        call(name, **few(name))
    )


SYMMETRIC = (
    "hsic",
    "hsic_unbiased",
    "distance_covariance",
    "distance_correlation",
    "mutual_information",
)


@pytest.mark.parametrize("name", [name for name in dependence.__all__ if name in STATISTICS])
def test_the_order_of_rows_does_not_matter_and_where_both_are_treated_alike_that_of_arguments(name):
    options = {"anchors": None} if name == "eipm" else {}
    expected, order = float(call(name, **options)), np.random.default_rng(1).permutation(40)
    assert float(call(name, z=Z[order], s=S[order], **options)) == approx(expected, rel=1e-7)
    if name in SYMMETRIC:
        assert float(call(name, z=S, s=Z)) == approx(expected, rel=1e-7)


@pytest.mark.parametrize(
    "name", ["distance_covariance", "distance_correlation", "mutual_information", "kernel_hgr"]
)
@pytest.mark.parametrize("n", [9, 500])
def test_a_constant_z_tells_nothing(name, n):
    s = torch.linspace(-1, 3, n, dtype=torch.float64)
    assert float(call(name, z=torch.full((n,), 0.1, dtype=torch.float64), s=s)) == 0


@pytest.mark.parametrize("name", [name for name in STATISTICS if name != "SequentialTest"])
def test_one_row_is_refused(name):
    with pytest.raises(ValueError, match="row"):
        call(name, **rows_of(name, lambda x: x[:1]))


MAPS = draw_feature_maps(Linear(), Linear(), 1, 1)
COLUMN, BOTH, MANY = torch.tensor(Z)[:, None], np.stack([Z, S], axis=1), np.arange(20_000.0)
OF_ONE_SCORE = (parity.gdp_curve, parity.correlation_ratio, parity.rank_gap)
TOGETHER: list[
    tuple[str, Callable[[], Any]]
] = [  # arguments that do not fit each other, with a word of the reason
    ("median", lambda: dependence.hsic(np.ones(40), S)),
    ("weights", lambda: dependence.hsic(Z, S, weights=np.zeros(40))),
    ("at least 4 rows", lambda: dependence.hsic_unbiased(Z[:3], S[:3])),
    ("features", lambda: dependence.hsic_features(Z, S, features=100)),
    ("features", lambda: dependence.hsic_features(Z, S, HalfDistance())),
    (
        "column",
        lambda: dependence.hsic_features(Z, S, PerColumn((Gaussian(1.0), Gaussian(1.0)))),
    ),
    ("at least 2 rows", lambda: MAPS.estimate(MAPS.sums(COLUMN[:1], COLUMN[:1]))),
    ("anchors", lambda: dependence.eipm(MANY, MANY, Gaussian(1.0))),
    ("column", lambda: dependence.binned_mmd(Z, BOTH)),
    ("at least 42 rows", lambda: dependence.mutual_information(Z, S, n_neighbors=40)),
    ("max_rank=3", lambda: dependence.kernel_hgr(Z, S, kernel_s=Laplacian(0.1), max_rank=3)),
    (
        "max_rank=2",
        lambda: dependence.kernel_hgr(Z, S, Gaussian(1.0), Gaussian(0.1), max_rank=2),
    ),
    ("ridge_z", lambda: dependence.kernel_hgr(1e12 * Z, S, Linear(), Linear(), ridge_z=1e-9)),
    ("at least 6 rows", lambda: independence.gamma_test(Z[:5], S[:5])),
    ("at least 4 rows", lambda: independence.permutation_test(Z[:3], S[:3])),
    (
        "at least 6 rows",
        lambda: feature_test(MAPS, feature_moments(MAPS, COLUMN[:5], COLUMN[:5])),
    ),
    ("resamples is 0", lambda: independence.permutation_test(Z, S, resamples=0)),
    ("groups", lambda: independence.permutation_test(Z, S, groups=k // 2, epsilon=0.1)),
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
    ("bandwidth=1e-05", lambda: parity.smoothed_gdp(MANY, MANY / 20_000, bandwidth=1e-5)),
    *(("2 columns", partial(one, BOTH, S)) for one in OF_ONE_SCORE),
    *(("at least 2 rows", partial(one, Z, S, where=k == 0)) for one in OF_ONE_SCORE),
    *(("at least 2 rows", partial(one, Z, S, sample_weight=k == 0)) for one in OF_ONE_SCORE),
]


@pytest.mark.parametrize(("reason", "call"), TOGETHER)
def test_arguments_that_do_not_fit_each_other_are_refused(reason, call):
    with pytest.raises((ValueError, TypeError), match=reason):
        call()
