"""Adversaries: their first weights, their Adam step, and what the encoder sees of them."""

from __future__ import annotations

import pytest
import torch
from pytest import approx
from torch import Tensor, nn

from dependence_samples import batch
from frhsic.penalties import Adversary, BinnedAdversary


def rows(**options: object) -> tuple[Tensor, ...]:
    return batch(**{"m": 16, "d": 5, **options})[:2]


def by_torch(outputs: int, seed: int, dtype: torch.dtype) -> nn.Sequential:
    """The same network as torch builds it from the same stream of random numbers."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        layers = (nn.Linear(5, 50, dtype=dtype), nn.SELU(), nn.Linear(50, outputs, dtype=dtype))
    return nn.Sequential(*layers)


def labels(s: Tensor, edges: list[float]) -> Tensor:
    return torch.tensor([sum(value >= e for e in edges) for value in s.flatten().tolist()])


def prepared(penalty: Adversary | BinnedAdversary, s: Tensor, seed: int = 3) -> Adversary | BinnedAdversary:
    penalty.prepare(s, torch.Generator().manual_seed(seed))
    return penalty


@pytest.mark.parametrize("case", ["one attribute", "two attributes", "four bins"])
def test_adapt_is_adam_on_the_squared_error_or_on_the_cross_entropy_of_training_quantile_bins(case, dtype):
    train = torch.rand(101, 2, generator=torch.Generator().manual_seed(9), dtype=torch.float64) ** 2
    edges = train[:, 0].sort().values[[25, 50, 75]].tolist()  # exact quantiles of 101 values
    q, outputs = (2, 2) if case == "two attributes" else (1, 4 if case == "four bins" else 1)
    penalty = prepared(BinnedAdversary(5) if case == "four bins" else Adversary(5), train[:, :q].to(dtype))
    network = by_torch(outputs, 3, dtype)

    def loss(z: Tensor, s: Tensor) -> Tensor:
        if case == "four bins":
            return nn.functional.cross_entropy(network(z), labels(s, edges))
        return nn.functional.mse_loss(network(z), s)

    optimiser = torch.optim.Adam(network.parameters(), lr=1e-3)
    for step in range(25):
        z, s = rows(q=q, dtype=dtype, seed=step)
        penalty.adapt(z, s, epoch=0)
        optimiser.zero_grad()
        loss(z, s).backward()
        optimiser.step()
    for ours, theirs in zip(("weight_in", "bias_in", "weight_out", "bias_out"), network.parameters()):
        torch.testing.assert_close(getattr(penalty, ours), theirs.detach(), rtol=0, atol=1e-6)
    assert penalty.steps.item() == 25
    assert penalty(z, s).item() == approx(-loss(z, s).item(), rel=1e-5)


def test_binned_adversary_averages_the_cross_entropy_over_attributes(dtype):
    z, s = rows(q=2, dtype=dtype)
    penalty = prepared(BinnedAdversary(5, bins=3), s)
    outputs = penalty.predict(z)
    terms = []
    for c in (0, 1):
        ordered = s[:, c].sort().values  # thirds of 16 values stand at places 5 and 10
        terms.append(
            nn.functional.cross_entropy(outputs[:, 3 * c : 3 * c + 3], labels(s[:, c], ordered[[5, 10]].tolist()))
        )
    assert penalty(z, s).item() == approx(-sum(terms).item() / 2, rel=1e-5)


@pytest.mark.parametrize("method", [Adversary, BinnedAdversary])
def test_the_penalty_has_gradient_in_z_and_none_in_the_adversary(method):
    z, s = rows()
    penalty = prepared(method(5), s)
    for state in penalty.buffers():
        state.requires_grad_()  # even where someone asks for it
    z.requires_grad_()
    penalty(z, s).backward()
    assert z.grad.any()
    assert all(state.grad is None for state in penalty.buffers())
    assert list(penalty.parameters()) == []


def test_an_adversary_learns_what_can_be_read_and_nothing_where_nothing_can():
    source = torch.Generator().manual_seed(0)
    s = torch.rand(400, generator=source)
    readable = torch.stack([s, torch.randn(400, generator=source)], 1)
    blank = torch.randn(400, 2, generator=source)
    values = []
    for z in (readable, blank):
        penalty = prepared(Adversary(2, learning_rate=1e-2), s)
        for _ in range(300):
            penalty.adapt(z, s, 0)
        values.append(penalty(z, s).item())
    variance = s.var(correction=0).item()
    assert values[0] > -variance / 20
    assert values[1] == approx(-variance, rel=0.15)
