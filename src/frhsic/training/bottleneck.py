r"""Floor under the variance of a representation: drop the directions that hardly vary.

A penalty measures dependence in units of z and barely sees a direction with almost no variance. S can stay there, too
small for a kernel or a trained head, yet a linear map without ridge recovers it. The task does not need such
directions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import torch
from torch import Tensor, nn

from frhsic.training.data import TrainingData
from frhsic.training.result import CHUNK_BYTES, Fleet

ROWS_PER_DIRECTION = 4
"""Least number of rows for each coordinate of z; with fewer, small variances are noise and nothing is cut."""

CONSTANT = 1e-6
"""Standard deviation, as a share of its size, below which a coordinate counts as constant up to rounding."""


class Bottleneck(nn.Module):
    r"""Projection of z on some of its principal directions, in its own coordinates: :math:`\mu + (z - \mu) A B`.

    A is (d, d) with a column of zeros for each dropped direction, so that nothing of it passes, not even by rounding. A
    single matrix AB of lower rank has rounded entries and would let through a trace that a linear map can read.

    Attributes
    ----------
    mean : Tensor
        μ, (d,).
    inward, outward : Tensor
        A and B, (d, d): to standardized principal coordinates, and back.

    Examples
    --------
    >>> Bottleneck(2)(torch.tensor([[1.0, 2.0]]))
    tensor([[1., 2.]])
    """

    mean: Tensor
    inward: Tensor
    outward: Tensor

    def __init__(self, d: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(d))
        self.register_buffer("inward", torch.eye(d))
        self.register_buffer("outward", torch.eye(d))

    def forward(self, z: Tensor) -> Tensor:
        """Return z without the dropped directions."""
        kept: Tensor = (z - self.mean) @ self.inward @ self.outward + self.mean
        return kept

    @property
    def rank(self) -> int:
        """Number of directions that are kept."""
        return int(self.inward.any(0).sum())


def floored(fleet: Fleet, data: TrainingData, floor: float) -> Fleet:
    r"""Drop the principal directions of each model's standardized z whose variance is below `floor`.

    Variances are the eigenvalues of the correlation matrix of z on the training rows of the model's split. The head
    stays as it was trained. Models of weight 0 keep all of z, and so do all models if there are fewer than four
    training rows for each coordinate.

    Examples
    --------
    >>> from frhsic.training import Member, Recipe, train
    >>> data = TrainingData.of(torch.randn(256, 3), torch.ones(256), torch.rand(256))
    >>> fleet = train(data, [Member(1.0)], Recipe("binary", epochs=2), device="cpu")
    >>> floored(fleet, data, 0.01).module(0)[0][1].rank < 50
    True
    """
    if floor == 0 or all(member.weight == 0 for member in fleet.members):
        return fleet
    d = fleet.transform(data.x[:, :2]).shape[2]
    if not enough_rows(data.rows, d):
        return fleet
    mean, covariance = _moments(fleet, data.x, d)
    eye = torch.eye(d, dtype=covariance.dtype, device=fleet.device)
    whole = torch.tensor([member.weight == 0 for member in fleet.members], device=fleet.device)
    whole = (whole | ~covariance.isfinite().all(2).all(1))[:, None, None]
    covariance = torch.where(whole, eye, covariance)
    variance = covariance.diagonal(dim1=1, dim2=2).clamp_min(0)
    size = (variance + mean * mean).sqrt()
    spread = torch.where(variance.sqrt() > CONSTANT * size, variance.sqrt(), 0)  # (M, d)
    per_spread = torch.where(spread > 0, 1 / spread, 0)
    variances, directions = torch.linalg.eigh(per_spread[:, :, None] * covariance * per_spread[:, None, :])
    inward = per_spread[:, :, None] * directions * (variances >= floor)[:, None, :]
    outward = directions.mT * spread[:, None, :]
    like = next(iter(fleet.parameters.values()))
    cut = {
        "mean": torch.where(whole[:, 0], 0, mean),
        "inward": torch.where(whole, eye, inward),
        "outward": torch.where(whole, eye, outward),
    }
    buffers = {f"bottleneck.{name}": values.to(like) for name, values in cut.items()}
    return replace(fleet, bottleneck=Bottleneck(d).to(like), buffers=fleet.buffers | buffers)


def enough_rows(rows: int, d: int) -> bool:
    """Return whether there are enough rows to tell small variances of d coordinates from noise."""
    return rows >= ROWS_PER_DIRECTION * d


def _moments(fleet: Fleet, x: Tensor, d: int) -> tuple[Tensor, Tensor]:
    """Return mean (M, d) and covariance (M, d, d) of z over the rows of each model's split, in float64.

    Two passes over the rows keep all digits if the mean is far from zero. Only a piece of z is held at a time.
    """
    rows = max(1, CHUNK_BYTES // (8 * d * len(fleet)))

    def pieces() -> Iterator[Tensor]:
        for start in range(0, x.shape[1], rows):
            yield fleet.transform(x[:, start : start + rows]).double()

    mean = sum((z.sum(1) for z in pieces()), torch.zeros(())) / x.shape[1]
    covariance = sum(((z - mean[:, None]).mT @ (z - mean[:, None]) for z in pieces()), torch.zeros(())) / x.shape[1]
    return mean, covariance
