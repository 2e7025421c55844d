"""Small data, small networks and a plain training loop that the fleet's tests compare with."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from frhsic.kernels import Gaussian, Linear
from frhsic.penalties import (
    EIPM,
    GDP,
    HSIC,
    Adversary,
    BinnedAdversary,
    BinnedMMD,
    DistanceCovariance,
    NoPenalty,
    Penalty,
)
from frhsic.training import MLP, Fleet, Member, Recipe, TrainingData, train
from frhsic.training.data import Purpose, batch_order, stream, stream_seed

ROWS, COLUMNS, WIDTH, BATCH = 150, 4, 5, 64  # batches of 64, 64 and 22: the last is partial

ENCODER = MLP((8,), WIDTH)

PENALTIES: dict[str, Callable[[], Penalty]] = {
    "none": NoPenalty,
    "frhsic": HSIC.published,
    "head and gaussian": HSIC,
    "sum of kernels": partial(HSIC, Gaussian(0.5) + Linear(), scale_z=1.0),
    "equal opportunity": partial(HSIC, condition="positive"),
    "frem": EIPM,
    "frem, all anchors": partial(EIPM, anchors=None),
    "reg-gdp": GDP,
    "binned mmd": BinnedMMD,
    "dcov": DistanceCovariance,
    "adv": partial(Adversary, WIDTH, hidden=6),
    "laftr": partial(BinnedAdversary, WIDTH, hidden=6),
}


def sample(
    splits: int = 2,
    rows: int = ROWS,
    attributes: int = 1,
    dtype: torch.dtype = torch.float32,
    task: str = "binary",
) -> TrainingData:
    """Return data in which X, Y and S depend on each other."""
    draw = torch.Generator().manual_seed(7)
    s = torch.rand(splits, rows, attributes, generator=draw, dtype=torch.float64)
    x = torch.randn(splits, rows, COLUMNS, generator=draw, dtype=torch.float64) + s[..., :1]
    signal = x[..., 0] + x[..., 1] - 1
    y = {
        "binary": (signal > 0).double(),
        "regression": signal,
        "multiclass": (signal > -0.5).double() + (signal > 0.5).double(),
    }[task]
    return TrainingData(x.to(dtype), y.to(dtype), s.to(dtype))


LOSSES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "binary": lambda f, y: nn.functional.binary_cross_entropy_with_logits(
        f[:, 0], y, reduction="none"
    ),
    "multiclass": lambda f, y: nn.functional.cross_entropy(f, y.long(), reduction="none"),
    "regression": lambda f, y: nn.functional.mse_loss(f[:, 0], y, reduction="none"),
}


def batches(
    data: TrainingData, member: Member, epoch: int, purpose: Purpose = Purpose.ORDER
) -> Iterator[tuple[list[int], int]]:
    """Yield the rows of each batch in the epoch's order, those with S first, and how many have it:
    an even share.
    """
    n, known = data.rows, data.rows if data.labelled is None else data.labelled
    order = batch_order(member.seed, member.split, epoch, n, purpose).tolist()
    with_s, without = [row for row in order if row < known], [row for row in order if row >= known]
    for start in range(0, n, BATCH):
        size = min(BATCH, n - start)
        k = known * (start + size) // n - known * start // n
        yield [with_s.pop(0) for _ in range(k)] + [without.pop(0) for _ in range(size - k)], k


def loss_of(
    encoder: nn.Module,
    head: nn.Module,
    penalty: Penalty,
    data: TrainingData,
    member: Member,
    rows: list[int],
    k: int,
    epoch: int | None = None,
    task: str = "binary",
) -> Tensor:
    """Return task loss + weight · penalty of a batch whose first k rows have S; with an epoch, the
    penalty adapts.
    """
    x, y, s = (part[member.split, rows] for part in (data.x, data.y, data.s))
    weights = (
        torch.ones(len(x)) if data.sample_weight is None else data.sample_weight[member.split, rows]
    )
    z = encoder(x)
    scores = head(z)
    loss = (weights * LOSSES[task](scores, y)).mean()
    if epoch is not None and k:
        penalty.adapt(z[:k].detach(), s[:k], epoch)
    return (
        loss + member.penalty_weight * penalty(z[:k], s[:k], scores=scores[:k], y=y[:k])
        if member.penalty_weight and k
        else loss
    )


def by_hand(
    data: TrainingData,
    member: Member,
    make_penalty: Callable[[], Penalty],
    *,
    task: str = "binary",
    epochs: int = 3,
    outputs: int = 1,
    encoder: Callable[[int], nn.Module] = ENCODER,
    weight_decay: float = 0.0,
    cosine: bool = False,
) -> dict[str, Tensor]:
    """Train one model in an ordinary loop with torch.optim.Adam; return its parameters as the fleet
    names them.
    """
    torch.manual_seed(stream_seed(member.seed, member.split, Purpose.WEIGHTS))
    model = nn.ModuleDict({"encoder": encoder(COLUMNS), "head": nn.Linear(WIDTH, outputs)}).to(
        data.x.dtype
    )
    penalty = make_penalty()
    penalty.prepare(
        data.s[member.split, : data.labelled], stream(member.seed, member.split, Purpose.PENALTY)
    )
    matrices = [p for p in model["encoder"].parameters() if p.ndim > 1]
    others = [
        *(p for p in model["encoder"].parameters() if p.ndim == 1),
        *model["head"].parameters(),
    ]
    optimiser = torch.optim.Adam(
        [{"params": matrices, "weight_decay": weight_decay}, {"params": others}], lr=1e-3
    )
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, epochs)
    for epoch in range(epochs):
        for rows, k in batches(data, member, epoch):
            loss = loss_of(
                model["encoder"], model["head"], penalty, data, member, rows, k, epoch, task
            )
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
        if cosine:
            schedule.step()
    return {name: value.detach() for name, value in model.named_parameters()}


def held_out_objective(fleet: Fleet, index: int, data: TrainingData, penalty: Penalty) -> float:
    """Return task loss + weight · penalty of a model on the held-out rows, in batches of the
    training size.
    """
    member, held = fleet.members[index], data.held_out
    penalty.prepare(data.s[member.split, : data.labelled], torch.Generator())
    total = 0.0
    for rows, k in batches(held, member, 0, Purpose.HELD_OUT):
        total += len(rows) * float(
            loss_of(*fleet.module(index), penalty, held, member, rows, k).detach()
        )
    return total / held.rows


def trained(data: TrainingData, members: Sequence[Member], **options: Any) -> Fleet:
    """Train a fleet without decay and floor; options are those of `train` and the fields of its
    recipe.
    """
    what = {
        field.name: options.pop(field.name) for field in fields(Recipe) if field.name in options
    }
    return train(
        data, members, Recipe(**{"weight_decay": 0.0, "variance_floor": 0.0} | what), **options
    )


def gap(fleet: Fleet, index: int, other: dict[str, Tensor]) -> float:
    """Return the largest difference between a model's parameters and others of the same names."""
    assert set(other) == set(fleet.parameters)
    return max(
        float((fleet.parameters[name][index] - value).abs().max()) for name, value in other.items()
    )


def quick(**options: Any) -> Callable[..., Fleet]:
    """Return `trained` for small binary fleets on a CPU."""
    return partial(
        trained,
        **{"task": "binary", "encoder": ENCODER, "epochs": 3, "batch_size": BATCH, "device": "cpu"}
        | options,
    )


def held_out(data: TrainingData, rows: int) -> TrainingData:
    """Hold out all rows but the first."""
    first, later = (
        TrainingData(data.x[:, at], data.y[:, at], data.s[:, at])
        for at in (slice(rows), slice(rows, None))
    )
    return replace(first, held_out=later)


def alone(fleet: Fleet) -> dict[str, Tensor]:
    """Return the parameters of a fleet of one."""
    assert len(fleet) == 1
    return {name: values[0] for name, values in fleet.parameters.items()}
