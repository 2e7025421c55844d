"""GPU kernels of HSIC, in Triton's interpreter where there is no GPU: values, gradients and moments
against float64.

The interpreter is chosen when Triton is imported, so these tests run in a process of their own:
``make kernels``, or ``TRITON_INTERPRET=1 pytest tests/test_hsic_gpu.py``.
"""

from __future__ import annotations

import os
from functools import partial

import pytest
import torch

from frhsic.dependence import _gpu, hsic, hsic_unbiased
from frhsic.dependence.cubes import own_sums
from frhsic.dependence.sums import pair_sums
from frhsic.dependence.tiles import Gram
from frhsic.kernels import (
    Gaussian,
    HalfDistance,
    Laplacian,
    Linear,
    PerColumn,
    per_column_gaussians,
)
from frhsic.penalties import HSIC
from frhsic.training import MLP, Member, Recipe, TrainingData, train

pytest.importorskip("triton")
INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
needs_kernels = pytest.mark.skipif(
    not (INTERPRETED or torch.cuda.is_available()), reason="needs a GPU, or TRITON_INTERPRET=1"
)
DEVICE = "cuda" if torch.cuda.is_available() and not INTERPRETED else "cpu"
N = 100

CASES = {
    "gaussian": (20, 1, Gaussian(6.0), Gaussian(1.0)),
    "far from zero": (20, 1, Gaussian(6.0), Gaussian(1.0)),
    "wide": (100, 1, Gaussian(14.0), Gaussian(1.0)),
    "few columns": (3, 2, Gaussian(2.0), PerColumn((Gaussian(1.0), Gaussian(2.0)))),
    "narrow": (20, 1, Gaussian(0.5), Gaussian(1.0)),  # too narrow for matrix products
    "nearly constant": (20, 1, Gaussian(600.0), Gaussian(300.0)),
    "discrete": (10, 1, Gaussian(2.0), Gaussian(0.7)),
    "heavy tails": (10, 1, Gaussian(4.0), Gaussian(1.0)),
}


def rows(name):
    d, q, *_ = CASES[name]
    generator = torch.Generator().manual_seed(3)
    z = torch.randn(N, d, generator=generator)
    s = z[:, :1] + torch.randn(N, q, generator=generator)
    if name == "far from zero":
        z, s = z + 300, s - 70
    if name == "discrete":
        z, s = z.round() * 0.7, s.round() * 0.3
    if name == "heavy tails":
        z = z / torch.rand(N, 1, generator=generator)
    return z.to(DEVICE), s.to(DEVICE)


@pytest.fixture
def on_and_off(monkeypatch):
    """Return call(function): the results with the GPU kernels, in float32, and without, in
    float64.
    """

    def call(function):
        results = []
        for dtype in (torch.float32, torch.float64):
            monkeypatch.setattr(_gpu, "usable", lambda x, on=dtype == torch.float32: on)
            results.append(function(dtype))
        return results

    return call


@pytest.fixture
def use_in_steps(monkeypatch):
    """Return a function that says which kernels a training step uses, by its rows and columns."""
    return partial(monkeypatch.setattr, _gpu, "step_kernels")


@needs_kernels
@pytest.mark.parametrize("name", CASES)
def test_value_and_gradient_are_those_of_float64(name, on_and_off, monkeypatch):
    from frhsic.dependence._gpu import pairs

    monkeypatch.setattr(pairs, "HALVED_ROWS", 64)  # several chunks
    z, s = rows(name)

    def function(dtype):
        leaf = z.to(dtype, copy=True).requires_grad_()
        value = hsic(leaf, s.to(dtype), *CASES[name][2:])
        value.backward()
        return value.detach().double(), leaf.grad.double()

    (value, gradient), (truth, slope) = on_and_off(function)
    assert (
        abs(value / truth - 1) < 2e-6
    )  # relative to HSIC itself, smaller than the sums it is made of
    assert (gradient - slope).norm() < 5e-6 * slope.norm()


@needs_kernels
@pytest.mark.parametrize("name", ["gaussian", "few columns", "discrete"])
def test_unbiased_values_are_those_of_float64(name, on_and_off):
    z, s = rows(name)

    def function(dtype):
        leaf = z.to(dtype, copy=True).requires_grad_()
        value = hsic_unbiased(leaf, s.to(dtype), *CASES[name][2:])
        value.backward()
        return value.detach().double(), leaf.grad.double()

    (value, gradient), (truth, slope) = on_and_off(function)
    assert abs(value / truth - 1) < 2e-6
    assert (gradient - slope).norm() < 5e-6 * slope.norm()


@needs_kernels
@pytest.mark.parametrize("name", ["gaussian", "few columns", "nearly constant"])
def test_moments_of_tests_are_those_of_float64(name, on_and_off, monkeypatch):
    monkeypatch.setattr("frhsic.dependence.cubes.CUBE_ROWS", 50)
    z, s = (x.double() - x.double().median(dim=0).values for x in rows(name))

    def function(dtype):
        k, l = (
            Gram.from_rows(x, kernel, single=True) for x, kernel in zip((z, s), CASES[name][2:])
        )
        sums = pair_sums(k, l)
        of_k, of_l = sums.k.centered_gram, sums.l.centered_gram
        values = [
            sums.biased_hsic,
            sums.unbiased_hsic,
            of_k.trace,
            of_k.squares,
            of_l.trace,
            of_l.squares,
        ]
        cubes = torch.tensor(own_sums(k, sums.k).cubes, dtype=torch.float64)
        return torch.stack(values), cubes, float(of_k.squares) ** 1.5

    (values, cubes, _), (truth, same, size) = on_and_off(function)
    assert (values / truth - 1).abs().max() < 2e-6
    assert (cubes - same).abs().max() < 1e-6 * size


@needs_kernels
@pytest.mark.parametrize(
    ("lead", "lead_g", "m", "d"),
    [
        ((), (), 70, 8),
        ((3,), (3,), 64, 50),
        ((3,), (), 65, 5),
        ((2, 3), (2, 1), 40, 50),
        ((2, 2, 2), (2, 1, 1), 20, 5),
    ],
)
def test_inner_product_of_a_training_step_is_that_of_float64(lead, lead_g, m, d):
    from frhsic.dependence._gpu.step import gram_inner_and_gradient

    generator = torch.Generator().manual_seed(0)
    z = (torch.randn(*lead, m, d, generator=generator) / d**0.5).to(DEVICE)
    g = torch.randn(*lead_g, m, m, generator=generator).to(DEVICE)
    z, g = z - z.mean(-2, keepdim=True), g + g.mT
    leaf = z.double().requires_grad_()
    gram = 2 * leaf @ leaf.mT + 3 * Gaussian(1.0)(leaf, leaf)
    truth = (gram * g).sum((-2, -1))
    truth.sum().backward()
    value, slope = gram_inner_and_gradient(z, g, 2.0, 3.0)
    assert (value - truth).abs().max() < 1e-6 * (gram * g).abs().sum((-2, -1)).max()
    assert (slope - leaf.grad).norm() < 2e-6 * leaf.grad.norm()


@needs_kernels
@pytest.mark.parametrize(
    ("lead", "m", "d"), [((), 70, 8), ((3,), 64, 50), ((2, 3), 20, 16), ((), 1, 3), ((2,), 130, 64)]
)
def test_whitening_of_a_training_step_is_that_of_float64(lead, m, d, use_in_steps):
    from frhsic.dependence._gpu import step
    from frhsic.penalties.closed_forms import whiten_rows

    generator = torch.Generator().manual_seed(0)
    mixed = torch.randn(d, d, generator=generator)
    z = torch.randn(*lead, m, d, generator=generator) @ mixed + 5
    z[..., 1] = 0.0  # a column without variance, which has no gradient through its scale
    w = torch.rand(m, generator=generator)
    w = (w / w.sum()).to(DEVICE)
    upstream = torch.randn(z.shape, generator=generator).to(DEVICE)
    results = []
    for dtype, kernels in ((torch.float32, step), (torch.float64, None)):
        use_in_steps(lambda x, columns, chosen=kernels: chosen)
        leaf = z.to(DEVICE, dtype, copy=True).requires_grad_()
        white = whiten_rows(leaf, w.to(dtype), smallest=1e-3)
        white.backward(upstream.to(dtype))
        results.append((white.detach().double(), leaf.grad.double()))
    for result, truth in zip(*results):
        assert (result - truth).norm() <= 2e-5 * truth.norm()


@needs_kernels
def test_a_fleet_trains_with_the_kernels_of_a_step_as_it_does_without(use_in_steps):
    from frhsic.dependence._gpu import step

    generator = torch.Generator().manual_seed(0)
    x, s = torch.rand(60, 4, generator=generator), torch.rand(60, 1, generator=generator)
    data = TrainingData.of(x, (x[:, 0] + s[:, 0] > 1).float(), s)
    members = [Member(weight, seed) for seed in (1, 2) for weight in (0.0, 1.0, 20.0)]
    recipe = Recipe("binary", HSIC, MLP((5,), size=3), epochs=2, batch_size=25)
    calls = []

    def chosen(z, columns):
        calls.append(z.shape)
        return step if INTERPRETED or z.is_cuda else None

    scores = []
    for kernels in (chosen, lambda z, columns: None):
        use_in_steps(kernels)
        scores.append(train(data, members, recipe, device=DEVICE).scores(x.to(DEVICE)))
    assert (2, 3, 25, 3) in calls
    torch.testing.assert_close(*scores, rtol=1e-4, atol=1e-5)


@needs_kernels
@pytest.mark.parametrize("name", ["of s", "of z", "of both"])
def test_few_levels_do_not_round_in_one_direction_again_and_again(name, on_and_off):
    n = 1000 if name == "of both" else 400
    generator = torch.Generator().manual_seed(0)
    s = (
        torch.randn(n, 1, generator=generator)
        if name == "of z"
        else torch.randint(0, 3, (n, 1), generator=generator)
    )
    z = (
        torch.randn(n, 1, generator=generator)
        if name == "of s"
        else torch.randint(0, 2, (n, 1), generator=generator)
    )
    z, s = z.float().to(DEVICE), s.float().to(DEVICE)

    def function(dtype):
        return hsic_unbiased(z.to(dtype), s.to(dtype), Gaussian(0.9), Gaussian(1.3)).double()

    value, truth = on_and_off(function)
    assert truth.abs() < 1 / n  # independent: the sums nearly cancel
    # 1/n is the size of HSIC of independent rows; one direction of rounding would give 3e-8,
    # whatever n is
    assert abs(value - truth) < 1e-6 / n


@needs_kernels
def test_other_kernels_and_float64_rows_take_the_tiles(on_and_off):
    z, s = rows("gaussian")
    for kernel in (HalfDistance(), Laplacian(5.0), 2 * Gaussian(6.0), Linear() + Gaussian(6.0)):
        value, plain = on_and_off(
            lambda dtype, kernel=kernel: hsic(z.to(dtype), s.to(dtype), kernel, Gaussian(1.0))
        )
        assert float(value) == pytest.approx(float(plain), rel=1e-6)
    both = on_and_off(
        lambda _: hsic(z.double(), s.double(), Gaussian(6.0), per_column_gaussians(s))
    )
    assert both[0].dtype == torch.float64
    assert torch.equal(*both)


def test_rows_on_a_cpu_never_reach_the_kernels():
    assert not _gpu.usable(torch.zeros(5000, 2))
    assert _gpu.pair(*torch.zeros(2, 5000, 2), Gaussian(1.0), Gaussian(1.0)) is None
