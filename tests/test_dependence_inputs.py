"""What all statistics of dependence do with their inputs: rows that `where` keeps, kinds of arrays, refusals."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
from pytest import approx

from dependence_samples import gaussian_pair
from frhsic import dependence as d
from frhsic.dependence import grams
from frhsic.kernels import Gaussian, HalfDistance, Laplacian, PerColumn

RNG = np.random.default_rng(0)
S = RNG.normal(size=60)
Z = S + RNG.normal(size=60)

STATISTICS = {
    "hsic": d.hsic,
    "hsic_unbiased": d.hsic_unbiased,
    "hsic_features": lambda z, s, **options: d.hsic_features(z, s, random_state=0, **options),
    "eipm": d.eipm,
    "binned_mmd": d.binned_mmd,
    "distance_covariance": d.distance_covariance,
    "distance_correlation": d.distance_correlation,
    "mutual_information": d.mutual_information,
    "kernel_hgr": d.kernel_hgr,
}
every = pytest.mark.parametrize("name", STATISTICS)


@every
def test_where_keeps_rows(name: str) -> None:
    kept = np.arange(60) % 3 > 0
    whole = float(STATISTICS[name](Z, S, where=kept))
    assert whole == approx(float(STATISTICS[name](Z[kept], S[kept])), rel=1e-9)


@every
def test_every_kind_of_array_gives_the_same(name: str) -> None:
    expected = float(STATISTICS[name](Z, S))
    for z, s in ((Z.tolist(), S.tolist()), (pd.Series(Z), pd.DataFrame({"s": S})), (torch.tensor(Z), S[:, None])):
        assert float(STATISTICS[name](z, s)) == approx(expected, rel=1e-12)


SYMMETRIC = ("hsic", "hsic_unbiased", "distance_covariance", "distance_correlation", "mutual_information")


@every
def test_the_order_of_rows_does_not_matter_and_where_both_are_treated_alike_that_of_arguments(name: str) -> None:
    expected, order = float(STATISTICS[name](Z, S)), np.random.default_rng(1).permutation(60)
    assert float(STATISTICS[name](Z[order], S[order])) == approx(expected, rel=1e-7)
    if name in SYMMETRIC:
        assert float(STATISTICS[name](S, Z)) == approx(expected, rel=1e-7)


@pytest.mark.parametrize("name", ["distance_covariance", "distance_correlation", "mutual_information", "kernel_hgr"])
@pytest.mark.parametrize("n", [9, 500])
def test_a_constant_z_tells_nothing(name: str, n: int) -> None:
    s = torch.linspace(-1, 3, n, dtype=torch.float64)
    assert float(STATISTICS[name](torch.full((n,), 0.1, dtype=torch.float64), s)) == 0


@pytest.mark.parametrize(
    "name", ["hsic", "hsic_unbiased", "eipm", "binned_mmd", "distance_covariance", "distance_correlation"]
)
def test_gradients_in_z_are_those_of_finite_differences_across_tiles(name: str, monkeypatch) -> None:
    monkeypatch.setattr(grams, "CPU_TILE", 4)
    z, s = gaussian_pair(9, 0.5, 5, columns=2)
    options = {"kernel_z": Gaussian(1.0)} if "distance" not in name else {}
    options |= {"bins": 3} if name == "binned_mmd" else {}
    assert torch.autograd.gradcheck(lambda z: STATISTICS[name](z, s, **options), (z.requires_grad_(),))


@every
def test_one_row_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="row"):
        STATISTICS[name]([1.0], [1.0])


REFUSED = {
    "a median of zero": lambda: d.hsic(np.ones(60), S),
    "zero weights": lambda: d.hsic(Z, S, weights=np.zeros(60)),
    "three rows": lambda: d.hsic_unbiased([1.0, 2.0, 3.0], [1.0, 2.0, 4.0]),
    "odd features": lambda: d.hsic_features(Z, S, features=100),
    "a kernel without features": lambda: d.hsic_features(Z, S, HalfDistance()),
    "kernels for other columns": lambda: d.hsic_features(Z, S, PerColumn((Gaussian(1.0), Gaussian(1.0)))),
    "hours of work": lambda: d.eipm(np.arange(20_000.0), np.arange(20_000.0), Gaussian(1.0)),
    "bins of two attributes": lambda: d.binned_mmd(Z, np.stack([S, S], axis=1)),
    "more neighbours than rows": lambda: d.mutual_information(Z, S, n_neighbors=60),
    "too few columns for s": lambda: d.kernel_hgr(Z, S, kernel_s=Laplacian(0.1), max_rank=3),
}


@pytest.mark.parametrize("call", REFUSED.values(), ids=REFUSED)
def test_bad_arguments_are_refused(call) -> None:
    with pytest.raises((ValueError, TypeError)):
        call()
