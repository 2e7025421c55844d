"""What all statistics of dependence do with their inputs: rows that `where` keeps, kinds of arrays, refusals."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
from pytest import approx

from dependence_samples import gaussian_pair
from frhsic import dependence as d
from frhsic.dependence import _gram
from frhsic.kernels import Gaussian, HalfDistance, Laplacian
from frhsic.kernels.kernel import PerColumn

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
    monkeypatch.setattr(_gram, "CPU_TILE", 4)
    z, s = gaussian_pair(9, 0.5, 5, columns=2)
    options = {"kernel_z": Gaussian(1.0)} if "distance" not in name else {}
    options |= {"bins": 3} if name == "binned_mmd" else {}
    assert torch.autograd.gradcheck(lambda z: STATISTICS[name](z, s, **options), (z.requires_grad_(),))


@every
@pytest.mark.parametrize(
    "rows",
    [
        (Z, S[:4]),
        (Z, np.append(S[1:], np.nan)),
        ([1.0], [1.0]),
        (Z, np.ones(60)),
        (Z, ["a"] * 60),
        (Z * 1j, S),
        (np.ones((0, 1)), []),
    ],
    ids=["lengths", "NaN", "one row", "constant", "text", "complex", "empty"],
)
def test_bad_rows_are_refused(name: str, rows: tuple) -> None:
    with pytest.raises((ValueError, TypeError)):
        STATISTICS[name](*rows)


REFUSED = {
    "a number for a kernel": lambda: d.hsic(Z, S, 1.0),
    "a median of zero": lambda: d.hsic(np.ones(60), S),
    "negative weights": lambda: d.hsic(Z, S, weights=-np.ones(60)),
    "zero weights": lambda: d.hsic(Z, S, weights=np.zeros(60)),
    "weights of other length": lambda: d.hsic(Z, S, weights=[1, 1]),
    "a mask of other length": lambda: d.hsic(Z, S, where=[1, 1]),
    "a device that is not known": lambda: d.hsic(Z, S, device="toaster"),
    "three rows": lambda: d.hsic_unbiased([1.0, 2.0, 3.0], [1.0, 2.0, 4.0]),
    "odd features": lambda: d.hsic_features(Z, S, features=100),
    "one block": lambda: d.hsic_features(Z, S, blocks=1),
    "a kernel without features": lambda: d.hsic_features(Z, S, HalfDistance()),
    "kernels for other columns": lambda: d.hsic_features(Z, S, PerColumn((Gaussian(1.0), Gaussian(1.0)))),
    "a seed of another kind": lambda: d.hsic_features(Z, S, random_state="0"),
    "a bandwidth of zero": lambda: d.eipm(Z, S, bandwidth=0.0),
    "more anchors than rows": lambda: d.eipm(Z, S, anchors=61),
    "hours of work": lambda: d.eipm(np.arange(20_000.0), np.arange(20_000.0), Gaussian(1.0)),
    "one bin": lambda: d.binned_mmd(Z, S, bins=1),
    "edges out of order": lambda: d.binned_mmd(Z, S, edges=[1.0, 0.0]),
    "one bin with rows": lambda: d.binned_mmd(Z, S, edges=[99.0]),
    "bins of two attributes": lambda: d.binned_mmd(Z, np.stack([S, S], axis=1)),
    "no neighbours": lambda: d.mutual_information(Z, S, n_neighbors=0),
    "more neighbours than rows": lambda: d.mutual_information(Z, S, n_neighbors=60),
    "more components than columns": lambda: d.mutual_information(Z, S, components=2),
    "a ridge of zero": lambda: d.kernel_hgr(Z, S, ridge_z=0.0),
    "too few columns for s": lambda: d.kernel_hgr(Z, S, kernel_s=Laplacian(0.1), max_rank=3),
}


@pytest.mark.parametrize("call", REFUSED.values(), ids=REFUSED)
def test_bad_arguments_are_refused(call) -> None:
    with pytest.raises((ValueError, TypeError)):
        call()
