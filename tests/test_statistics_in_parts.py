"""Statistics computed in small blocks, or from the sums of a GPU, are those computed at once on a
CPU.

The blocks of sums over rows and pairs are large, so that small tables would never need a second
one. Here they are small.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from pytest import approx

from frhsic import dependence as d
from frhsic import independence as i
from frhsic.dependence import _gpu, cubes
from frhsic.dependence.features import draw_feature_maps
from frhsic.dependence.grams import pivoted_cholesky
from frhsic.dependence.sums import pair_sums
from frhsic.dependence.tiles import Gram
from frhsic.independence import grams
from frhsic.kernels import Gaussian, InverseMultiquadric, Laplacian, Linear

k = np.arange(60.0)
S = np.round(np.exp(1.5 * np.sin(1.3 * k)), 1)  # skewed, with ties
S[::5] = 0  # and many zeros
Z = np.stack([np.sin(k) + 0.4 * S, np.cos(1.7 * k) * k / 20, k * k % 7], axis=1)
TENSOR, COLUMN = torch.tensor(Z), torch.tensor(S)[:, None]
KERNELS = (Laplacian(2.0) + 3 * Linear(), InverseMultiquadric(0.7))
FEW: dict[str, Any] = {"resamples": 49, "random_state": 3}

BLOCKS = {
    "dependence.tiles.CPU_TILE": 16,
    "dependence.tiles.FEWEST_FOR_FACTOR": 8,
    "dependence.features.CHUNK_ROWS": 16,
    "dependence.cubes.PANEL": 16,
    "independence.permutation.DENSE_ROWS": 10,
    "independence.permutation.BLOCK_ENTRIES": 300,
}


def gradient(function: Callable[..., Any], *args: Any, **options: Any) -> list[Any]:
    z, s = TENSOR.clone().requires_grad_(), COLUMN.clone().requires_grad_()
    function(z, s, *args, **options).backward()
    return [z.grad, s.grad]


def features() -> list[float]:
    maps = draw_feature_maps(
        Gaussian(1.0), Gaussian(2.0), 3, 1, features=32, blocks=4, random_state=1
    )
    estimate = maps.estimate(maps.sums(TENSOR, COLUMN))
    return [estimate.value, estimate.standard_error]


def of_test(result: Any) -> list[float]:
    return [
        result.statistic,
        result.pvalue,
        result.threshold,
        result.null_mean,
        result.null_standard_deviation,
    ]


CALLS: dict[str, Callable[[], Any]] = {
    "hsic": lambda: d.hsic(Z, S, *KERNELS),
    "hsic of one column": lambda: d.hsic(Z[:, 0], S, Gaussian(1.0), Gaussian(1.0)),
    "hsic_unbiased": lambda: d.hsic_unbiased(Z, S, *KERNELS),
    "hsic_features": features,
    "distance_correlation": lambda: d.distance_correlation(Z, S),
    "gradient of hsic": lambda: gradient(d.hsic, *KERNELS),
    "gradient of hsic, Gaussian": lambda: gradient(d.hsic, Gaussian(1.0), Gaussian(2.0)),
    "gradient of hsic_unbiased": lambda: gradient(d.hsic_unbiased, Gaussian(1.0), Laplacian(2.0)),
    "gradient of distance_correlation": lambda: gradient(d.distance_correlation),
    "gamma_test": lambda: of_test(i.gamma_test(Z, S, *KERNELS)),
    "permutation_test": lambda: of_test(i.permutation_test(Z, S, *KERNELS, **FEW)),
    "permutation_test of one column": lambda: of_test(i.permutation_test(Z[:, 0], S, **FEW)),
    "permutation_test by entries": lambda: of_test(
        i.permutation_test(Z, Z, Laplacian(0.2), Laplacian(0.3), **FEW)
    ),
}


def flat(value: Any) -> list[float]:
    if isinstance(value, (list, tuple)):
        return [number for part in value for number in flat(part)]
    return torch.as_tensor(value, dtype=torch.float64).flatten().tolist()


@pytest.mark.parametrize("name", CALLS)
def test_small_blocks_change_no_number(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    at_once = flat(CALLS[name]())
    for constant, value in BLOCKS.items():
        monkeypatch.setattr(f"frhsic.{constant}", value)
    assert flat(CALLS[name]()) == approx(at_once, rel=1e-8, abs=1e-12)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("z", [Z, np.full(60, 2.0)], ids=["varying", "constant"])
def test_a_statistic_of_tensors_has_their_type(z: np.ndarray, dtype: torch.dtype) -> None:
    rows, kernel = (torch.tensor(z, dtype=dtype), torch.tensor(S, dtype=dtype)), Gaussian(1.0)
    for statistic in (d.hsic, d.hsic_unbiased):
        assert statistic(*rows, kernel).dtype == dtype
    for plain in (d.distance_covariance, d.distance_correlation):
        assert plain(*rows).dtype == dtype


class Summed:
    """Stands for the GPU kernels: the sums that they return, from whole matrices."""

    has_gradient = True

    def __init__(self, *pairs: tuple[torch.Tensor, Any], multiplies: bool = True) -> None:
        self.pairs, self.multiplies = pairs, multiplies
        self.matrices = [kernel(x, x).to(torch.float64) for x, kernel in pairs]

    def sums(self, *, skip_diagonal: bool) -> tuple[torch.Tensor, ...]:
        a, b = (matrix.clone() for matrix in self.matrices)
        if skip_diagonal:
            a.fill_diagonal_(0), b.fill_diagonal_(0)
        return (a * b).sum(), a.sum(1), b.sum(1)

    def gradient(
        self, b: torch.Tensor, joint: torch.Tensor, cross: torch.Tensor, total: torch.Tensor
    ) -> torch.Tensor:
        outer = joint * self.matrices[1] + cross / 2 * (b + b[:, None]) + total
        x = self.pairs[0][0].detach().requires_grad_()
        with torch.enable_grad():
            return torch.autograd.grad((outer * self.pairs[0][1](x, x)).sum(), x)[0]

    def sums_with_squares(self, offsets: tuple[float, float]) -> tuple[torch.Tensor, ...]:
        a, b = (matrix - offset for matrix, offset in zip(self.matrices, offsets))
        return (a * b).sum(), a.sum(1), b.sum(1), (a * a).sum(), (b * b).sum()

    def cubes(self, centers: torch.Tensor, diagonal: torch.Tensor) -> tuple[torch.Tensor, ...]:
        a = self.matrices[0] - centers - centers[:, None]
        a.fill_diagonal_(0)
        return (a**3).sum(), diagonal @ (a * a).sum(1), diagonal @ a @ diagonal

    def times(self, b: torch.Tensor) -> torch.Tensor:
        assert self.multiplies
        return self.matrices[0] @ b


@pytest.fixture
def on_gpu(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Let the sums be those of the kernels."""

    def start(multiplies: bool = True) -> None:
        monkeypatch.setattr(_gpu, "pair", lambda x, y, of_x, of_y: Summed((x, of_x), (y, of_y)))
        monkeypatch.setattr(_gpu, "gram", lambda x, of_x: Summed((x, of_x), multiplies=multiplies))

    return start


@pytest.mark.parametrize("factored", [True, False])
@pytest.mark.parametrize("multiplies", [True, False])
@pytest.mark.parametrize("rows", [100, 20])
def test_sums_of_a_gpu_are_put_together_as_those_of_a_cpu(
    rows: int, multiplies: bool, factored: bool, monkeypatch: Any, on_gpu: Any
) -> None:
    a, b = (
        Gram.without_factor(x, kernel)
        for x, kernel in ((TENSOR, Gaussian(2.0)), (COLUMN, Gaussian(1.0)))
    )
    expected = pair_sums(a, b)
    exact = cubes.own_sums(a, expected.k)
    monkeypatch.setattr(cubes, "CUBE_ROWS", rows)
    of_a = exact if factored else cubes.own_sums(a, expected.k)
    on_gpu(multiplies)
    a, b = (Gram.without_factor(gram.x, gram.kernel, single=True) for gram in (a, b))
    sums = pair_sums(a, b)
    for mine, other in ((sums.k, expected.k), (sums.l, expected.l)):
        assert flat(mine[:3]) == approx(flat(other[:3]), rel=1e-9)
    assert float(sums.joint) == approx(float(expected.joint))
    if factored:  # its trace is exact
        a = replace(a, factor=pivoted_cholesky(a.kernel, a.x, tolerance=0.0)[0])
    own = cubes.own_sums(a, sums.k)
    assert own.square_rows is None
    assert flat(list(own.cubes)) == approx(flat(list(of_a.cubes)), rel=1e-9)
    (value, influence), (same, expected_influence) = (
        grams.own_dependence(a, sums.k, one.square_rows) for one in (own, of_a)
    )
    assert value == same
    assert influence == approx(expected_influence, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("statistic", [d.hsic, d.hsic_unbiased])
def test_value_and_gradient_of_a_gpu_are_those_of_a_cpu(statistic: Any, on_gpu: Any) -> None:
    def of_single() -> tuple[float, torch.Tensor]:
        z, s = TENSOR.float().requires_grad_(), COLUMN.float()
        value = statistic(z, s, Gaussian(2.0), Gaussian(1.0))
        (3 * value).backward()
        return float(value.detach()), z.grad

    value, slope = of_single()
    on_gpu()
    value_on_gpu, slope_on_gpu = of_single()
    assert value_on_gpu == approx(value, rel=1e-4)
    torch.testing.assert_close(slope_on_gpu, slope, rtol=1e-3, atol=1e-7)
