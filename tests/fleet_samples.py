"""Small data, small networks and a plain training loop that the fleet's tests compare with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
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
    DistanceCorrelation,
    DistanceCovariance,
    NoPenalty,
    Penalty,
)
from frhsic.training import MLP, Fleet, Member, Recipe, TrainingData, train
from frhsic.training.batches import batch_order
from frhsic.training.streams import Purpose, stream, stream_seed

ROWS, COLUMNS, WIDTH, BATCH = 150, 4, 5, 64  # batches of 64, 64 and 22: the last is partial

ENCODER = MLP((8,), WIDTH)

PENALTIES: dict[str, Callable[[], Penalty]] = {
    "none": NoPenalty,
    "frhsic": HSIC.published,
    "head and gaussian": HSIC,
    "standardised": partial(HSIC, scale_z="standardized", standardize_scores=True),
    "whitened": partial(HSIC, scale_z="whitened"),
    "sum of kernels": partial(HSIC, Gaussian(0.5) + Linear(), scale_z=1.0),
    "equal opportunity": partial(HSIC, condition="positive"),
    "frem": EIPM,
    "frem, all anchors": partial(EIPM, anchors=None),
    "reg-gdp": GDP,
    "binned mmd": BinnedMMD,
    "binned mmd, published": BinnedMMD.published,
    "dcov": DistanceCovariance,
    "dcor": DistanceCorrelation,
    "adv": partial(Adversary, WIDTH, hidden=6),
    "laftr": partial(BinnedAdversary, WIDTH, hidden=6),
}


def sample(
    splits: int = 2, rows: int = ROWS, attributes: int = 1, dtype: torch.dtype = torch.float32, task: str = "binary"
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
        "reconstruction": x[..., 1:] - x[..., :1],
    }[task]
    return TrainingData(x.to(dtype), y.to(dtype), s.to(dtype))


LOSSES: dict[str, Callable[[Tensor, Tensor, Tensor], Tensor]] = {
    "binary": lambda f, y, x: nn.functional.binary_cross_entropy_with_logits(f[:, 0], y, reduction="none"),
    "multiclass": lambda f, y, x: nn.functional.cross_entropy(f, y.long(), reduction="none"),
    "regression": lambda f, y, x: nn.functional.mse_loss(f[:, 0], y, reduction="none"),
    "reconstruction": lambda f, y, x: nn.functional.mse_loss(f, y, reduction="none").mean(1),
}


def by_hand(
    data: TrainingData,
    member: Member,
    make_penalty: Callable[[], Penalty],
    *,
    task: str = "binary",
    epochs: int = 3,
    batch: int = BATCH,
    outputs: int = 1,
    encoder: Callable[[int], nn.Module] = ENCODER,
    weight_decay: float = 0.0,
    cosine: bool = False,
) -> dict[str, Tensor]:
    """Train one model in an ordinary loop with torch.optim.Adam; return its parameters as the fleet names them."""
    torch.manual_seed(stream_seed(member.seed, member.split, Purpose.WEIGHTS))
    model = nn.ModuleDict({"encoder": encoder(COLUMNS), "head": nn.Linear(WIDTH, outputs)}).to(data.x.dtype)
    penalty = make_penalty()
    x, s = data.x[member.split], data.s[member.split]
    y = data.y[member.split]
    weights = torch.ones(len(x)) if data.sample_weight is None else data.sample_weight[member.split]
    penalty.prepare(s, stream(member.seed, member.split, Purpose.PENALTY))
    matrices = [p for p in model["encoder"].parameters() if p.ndim > 1]
    others = [*(p for p in model["encoder"].parameters() if p.ndim == 1), *model["head"].parameters()]
    optimiser = torch.optim.Adam([{"params": matrices, "weight_decay": weight_decay}, {"params": others}], lr=1e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, epochs)
    for epoch in range(epochs):
        for rows in batch_order(member.seed, member.split, epoch, len(x)).split(batch):
            z = model["encoder"](x[rows])
            penalty.adapt(z.detach(), s[rows], epoch)
            scores = model["head"](z)
            target = y[rows]
            loss = (weights[rows] * LOSSES[task](scores, target, x[rows])).mean()
            if member.weight:
                loss = loss + member.weight * penalty(z, s[rows], scores=scores, y=target)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
        if cosine:
            schedule.step()
    return {name: value.detach() for name, value in model.named_parameters()}


def trained(data: TrainingData, members: Sequence[Member], **options: Any) -> Fleet:
    """Train a fleet without decay and floor; options are those of `train` and the fields of its recipe."""
    what = {field.name: options.pop(field.name) for field in fields(Recipe) if field.name in options}
    return train(data, members, Recipe(**{"weight_decay": 0.0, "variance_floor": 0.0} | what), **options)


def gap(fleet: Fleet, index: int, other: dict[str, Tensor]) -> float:
    """Return the largest difference between a model's parameters and others of the same names."""
    assert set(other) == set(fleet.parameters)
    return max(float((fleet.parameters[name][index] - value).abs().max()) for name, value in other.items())


def alone(fleet: Fleet) -> dict[str, Tensor]:
    """Return the parameters of a fleet of one."""
    assert len(fleet) == 1
    return {name: values[0] for name, values in fleet.parameters.items()}
