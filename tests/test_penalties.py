"""What holds for every penalty: the contract of a training loop, alone and as a fleet."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, stack_module_state, vmap

from fleet_samples import PENALTIES, WIDTH
from frhsic.kernels import Laplacian, Linear
from frhsic.penalties import (
    EIPM,
    GDP,
    HSIC,
    Adversary,
    BinnedAdversary,
    BinnedMMD,
    NoPenalty,
    Penalty,
    make_penalty,
)

D = WIDTH
MAKERS: dict[str, Callable[[], Penalty]] = PENALTIES | {
    "published-sum": lambda: HSIC.published(attributes="sum"),
    "published-eo": lambda: HSIC.published(condition="positive"),
    "laplacian-sum": lambda: HSIC(Laplacian(1.0), scale_z=1.5, attributes="sum"),
    "isotropic": lambda: HSIC(scale_s=0.3, attributes="isotropic"),
    "head": lambda: HSIC(0 * Linear()),
}
every_penalty = pytest.mark.parametrize("name", MAKERS)


def draw(m: int, q: int, seed: int, dtype: torch.dtype) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    source = torch.Generator().manual_seed(seed)
    s = torch.rand(m, q, generator=source, dtype=dtype)
    z = torch.randn(m, D, generator=source, dtype=dtype) + 2 * s[:, :1]
    f = torch.randn(m, 1, generator=source, dtype=dtype) + s[:, :1]
    y = (torch.rand(m, generator=source, dtype=dtype) < 0.7).to(dtype)
    return z, s, f, y


def prepared(name: str, seed: int, q: int, dtype: torch.dtype) -> Penalty:
    penalty = MAKERS[name]()
    s_train = torch.rand(
        200, q, generator=torch.Generator().manual_seed(100 + seed), dtype=dtype
    ) ** (1 + seed)
    penalty.prepare(s_train, torch.Generator().manual_seed(seed))
    return penalty


class Step(nn.Module):
    """What a fleet does with a penalty in one step: adapt it in place, then call it."""

    def __init__(self, penalty: Penalty) -> None:
        super().__init__()
        self.penalty = penalty

    def forward(self, z: Tensor, s: Tensor, f: Tensor, y: Tensor, epoch: int) -> Tensor:
        self.penalty.adapt(z.detach(), s, epoch)
        return self.penalty(z, s, scores=f, y=y)


@every_penalty
@pytest.mark.parametrize("q", [1, 2])
def test_a_stack_of_penalties_under_vmap_is_each_penalty_alone(name, q, dtype):
    models = 3
    alone = [Step(prepared(name, seed, q, dtype)) for seed in range(models)]
    together = [copy.deepcopy(step) for step in alone]
    parameters, buffers = stack_module_state(together)
    assert parameters == {}
    held = {key: state.data_ptr() for key, state in buffers.items()}
    template = copy.deepcopy(together[0])

    def step_of(
        z: Tensor, buffers: dict[str, Tensor], s: Tensor, f: Tensor, y: Tensor, epoch: int
    ) -> Tensor:
        return functional_call(template, buffers, (z, s, f, y, epoch))

    def value_of(z: Tensor, f: Tensor, buffers: dict[str, Tensor], s: Tensor, y: Tensor) -> Tensor:
        own = {key.removeprefix("penalty."): state for key, state in buffers.items()}
        return functional_call(template.penalty, own, (z, s), {"scores": f, "y": y})

    close = (
        {"rtol": 1e-9, "atol": 1e-12} if dtype == torch.float64 else {"rtol": 2e-4, "atol": 2e-6}
    )
    for epoch in range(3):
        drawn = [draw(24, q, 10 * epoch + i, dtype) for i in range(models)]
        z, s, f, y = (torch.stack(part) for part in zip(*drawn))
        z.requires_grad_()
        f.requires_grad_()
        values = vmap(step_of, in_dims=(0, 0, 0, 0, 0, None))(z, buffers, s, f, y, epoch)
        slopes = torch.autograd.grad(values.sum() + 0 * (z.sum() + f.sum()), (z, f))
        transformed = vmap(grad(value_of, argnums=(0, 1)))(z.detach(), f.detach(), buffers, s, y)
        for i, module in enumerate(alone):
            z_i, f_i = z[i].detach().requires_grad_(), f[i].detach().requires_grad_()
            value = module(z_i, s[i], f_i, y[i], epoch)
            expected = torch.autograd.grad(value + 0 * (z_i.sum() + f_i.sum()), (z_i, f_i))
            torch.testing.assert_close(values[i], value, **close)
            for got in (slopes, transformed):
                torch.testing.assert_close(got[0][i], expected[0], **close)
                torch.testing.assert_close(got[1][i], expected[1], **close)
            for key, state in module.named_buffers():
                torch.testing.assert_close(buffers[key][i], state, **close)
    assert {
        key: state.data_ptr() for key, state in buffers.items()
    } == held  # changed in place, never replaced


@every_penalty
def test_adapts_says_when_adapt_does_anything_and_adapted_what_it_changes(name):
    penalty = prepared(name, 0, 1, torch.float64)
    changed: set[str] = set()
    for epoch in range(22):
        z, s, _, _ = draw(24, 1, epoch, torch.float64)
        before = {key: state.clone() for key, state in penalty.named_buffers()}
        penalty.adapt(z, s, epoch)
        moved = {k for k, state in penalty.named_buffers() if not torch.equal(state, before[k])}
        assert bool(moved) == penalty.adapts(epoch)
        changed |= moved
    assert changed == {key for key, _ in penalty.named_buffers()} & set(penalty.adapted)


@pytest.mark.parametrize(
    "name", [name for name in MAKERS if name != "frem"]
)  # its anchors are the first rows
def test_the_order_of_rows_does_not_matter(name):
    penalty = prepared(name, 0, 1, torch.float64)
    z, s, f, y = draw(24, 1, 0, torch.float64)
    penalty.adapt(z, s, 0)
    order = torch.randperm(24, generator=torch.Generator().manual_seed(0))
    there, back = (
        penalty(z, s, scores=f, y=y),
        penalty(z[order], s[order], scores=f[order], y=y[order]),
    )
    torch.testing.assert_close(there, back, rtol=1e-9, atol=1e-12)


@every_penalty
@pytest.mark.parametrize("m", [1, 3, 20])
def test_few_rows_and_a_collapsed_representation_give_a_finite_value_and_gradient(name, m, dtype):
    penalty = prepared(name, 0, 1, dtype)
    penalty.adapt(*draw(24, 1, 0, dtype)[:2], 0)
    z, s, f, y = draw(m, 1, 1, dtype)
    if m == 20:
        z, f = torch.ones_like(z), torch.ones_like(f)
    z.requires_grad_()
    f.requires_grad_()
    penalty.adapt(z, s, 0)
    value = penalty(z, s, scores=f, y=y)
    slopes = torch.autograd.grad(value + 0 * (z.sum() + f.sum()), (z, f))
    assert all(torch.isfinite(x).all() for x in (value, *slopes))
    if m == 20:
        assert value.item() <= (
            2e-5 if name.startswith("frem") else 1e-6
        )  # the root of EIPM's floor is 1e-5


@every_penalty
def test_gradients_are_those_of_finite_differences(name):
    penalty = prepared(name, 0, 1, torch.float64)
    z, s, f, _ = draw(14, 1, 0, torch.float64)
    y = (torch.arange(14) != 3).double()
    penalty.adapt(z, s, 0)
    inputs = (z.requires_grad_(), f.requires_grad_())
    # scores enter with weight 0 where a penalty does not read them
    assert torch.autograd.gradcheck(
        lambda z, f: penalty(z, s, scores=f, y=y) + 0 * f.sum() + 0 * z.sum(), inputs
    )


@every_penalty
def test_wrong_shapes_raise_before_anything_is_broadcast(name):
    penalty = prepared(name, 0, 1, torch.float64)
    z, s, f, y = draw(24, 1, 0, torch.float64)
    penalty.adapt(z, s, 0)
    bad = [
        (z[:, 0], s, f, y),
        (z[None], s, f, y),
        (z, s.mT, f, y),
        (z, s[1:], f, y),
        (z, torch.cat([s, s], 1), f, y),
    ]
    bad += [(z, s, f.mT, y)]
    bad += [(z, s, None, y)] if penalty.needs_scores else []
    bad += [(z, s, f, torch.stack([y, y], 1)), (z, s, f, None)] if penalty.needs_target else []
    for rows, attribute, scores, target in bad:
        with pytest.raises(ValueError):
            penalty(rows, attribute, scores=scores, y=target)


def test_without_scores_hsic_is_that_of_the_representation():
    z, s, f, _ = draw(24, 1, 0, torch.float64)
    whole = HSIC()
    alone = HSIC(head_weight=0)
    for penalty in (whole, alone):
        penalty.prepare(s, torch.Generator())
    assert torch.equal(whole(z, s), alone(z, s, scores=f))
    assert whole(z, s, scores=f) > whole(z, s)


@pytest.mark.parametrize("name", [name for name in MAKERS if name != "none"])
def test_a_representation_that_is_not_finite_is_not_taken_for_independence(name):
    penalty = prepared(name, 0, 1, torch.float64)
    z, s, f, _ = draw(24, 1, 0, torch.float64)
    penalty.adapt(z, s, 0)
    z[3], f[3] = math.nan, math.nan
    assert math.isnan(penalty(z, s, scores=f, y=torch.ones(24)).item())


EQUAL_OPPORTUNITY: dict[str, Callable[..., Penalty]] = {
    "hsic": HSIC,
    "hsic-laplacian": lambda **options: HSIC(
        Laplacian(1.0), scale_z=1.5, attributes="sum", **options
    ),
}


@pytest.mark.parametrize("name", EQUAL_OPPORTUNITY)
def test_equal_opportunity_is_the_penalty_of_the_positive_rows_and_zero_if_they_are_few(name):
    z, s, f, y = draw(40, 2, 0, torch.float64)
    restricted, plain = (
        EQUAL_OPPORTUNITY[name](**options) for options in ({"condition": "positive"}, {})
    )
    for penalty in (restricted, plain):
        penalty.prepare(s, torch.Generator())
    kept = y == 1
    value = restricted(z, s, scores=f, y=y).item()
    assert value == pytest.approx(plain(z[kept], s[kept], scores=f[kept]).item(), rel=1e-8)
    few = torch.where(kept.cumsum(0) <= 10, y, 0)
    z.requires_grad_()
    nothing = restricted(z, s, scores=f, y=few)
    assert nothing.item() == 0
    if nothing.requires_grad:
        assert not torch.autograd.grad(nothing, z, allow_unused=True)[0].any()


@pytest.mark.parametrize(
    "make",
    [
        lambda: HSIC(scale_z="none"),
        lambda: HSIC(scale_z=0.0),
        lambda: HSIC(scale_s=0.0),
        lambda: HSIC(attributes="both"),
        lambda: HSIC(head_weight=-1.0),
        lambda: HSIC(0 * Linear(), head_weight=0.0),
        lambda: HSIC(Laplacian),
        lambda: HSIC(condition="negative"),
        lambda: EIPM(anchors=0),
        lambda: EIPM(gamma=0.0),
        lambda: GDP(bandwidth=float("inf")),
        lambda: BinnedMMD(bins=1),
        lambda: Adversary(0),
        lambda: BinnedAdversary(3, learning_rate=0.0),
        lambda: HSIC()(torch.ones(9, 2), torch.arange(9.0), scores=torch.ones(9)),
        lambda: BinnedMMD()(torch.ones(9, 2), torch.arange(9.0)),
        lambda: Adversary(3)(torch.ones(9, 3), torch.arange(9.0)),
        lambda: NoPenalty()([[1.0]], torch.ones(1)),
        lambda: NoPenalty()(torch.ones(3, 2, dtype=torch.int64), torch.rand(3)),
        lambda: HSIC().prepare(torch.tensor([0.0, math.nan]), torch.Generator()),
        lambda: HSIC().prepare(torch.tensor(1.0), torch.Generator()),
        lambda: make_penalty("variance"),
    ],
)
def test_bad_options_and_calls_are_refused(make):
    with pytest.raises((ValueError, TypeError, RuntimeError)):
        make()
