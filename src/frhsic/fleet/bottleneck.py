r"""A floor under the variance of a representation: directions that hardly vary are taken out of it.

A penalty measures dependence in units of z, and a direction without variance has none to speak of: what an encoder
cannot cancel is left there, too small for a kernel and for a head that learns a task, and a linear map without ridge
brings it back. Such a direction costs the task nothing, so it goes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import torch
from torch import Tensor, nn

from frhsic.fleet.data import TrainingData
from frhsic.fleet.result import CHUNK_BYTES, Fleet

__all__ = ["Bottleneck", "enough_rows", "floored"]

ROWS_PER_DIRECTION = 4
"""Below so many rows for each coordinate of z, small variances say more of the sample than of z: nothing is cut."""

CONSTANT = 1e-6
"""A coordinate whose standard deviation is below this share of its size is constant up to rounding."""


class Bottleneck(nn.Module):
    r"""Map z onto some of its principal directions, in its own coordinates: :math:`\mu + (z - \mu) A B`.

    A is (d, d) with a column of zeros for each direction that is left out, so that nothing of it passes, rounding
    included: not a single matrix of lower rank, whose rounded entries would let through what a linear map with enough
    digits reads.

    Attributes
    ----------
    mean : Tensor
        μ, (d,).
    inward, outward : Tensor
        A and B, (d, d): to standardised principal coordinates, and back.

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
        """Return z without the directions that are left out."""
        passed: Tensor = (z - self.mean) @ self.inward @ self.outward + self.mean
        return passed

    @property
    def rank(self) -> int:
        """How many directions pass."""
        return int(self.inward.any(0).sum())


def floored(fleet: Fleet, data: TrainingData, floor: float) -> Fleet:
    r"""Take out of each model's z the principal directions whose variance is below `floor`.

    Coordinates are standardised by the training rows of the model's split first: variances are the eigenvalues of their
    correlation matrix, of mean one unless a coordinate is constant. The head stays as it was trained. Models of weight
    0 keep all of z, since nothing had to hide from a penalty; and all do where there are fewer than four training rows
    for each coordinate.

    Examples
    --------
    >>> from frhsic.fleet import Member, train
    >>> data = TrainingData.of(torch.randn(256, 3), torch.ones(256), torch.rand(256))
    >>> fleet = train(data, [Member(1.0)], task="binary", epochs=2, device="cpu")
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
    found, directions = torch.linalg.eigh(per_spread[:, :, None] * covariance * per_spread[:, None, :])
    inward = per_spread[:, :, None] * directions * (found >= floor)[:, None, :]
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
    """Return whether small variances of d coordinates can be told from so many rows."""
    return rows >= ROWS_PER_DIRECTION * d


def _moments(fleet: Fleet, x: Tensor, d: int) -> tuple[Tensor, Tensor]:
    """Return mean (M, d) and covariance (M, d, d) of z over the rows of each model's split, in float64.

    In two passes over the rows, so that a mean far from zero costs no digits, and no more than a piece of z is held.
    """
    rows = max(1, CHUNK_BYTES // (8 * d * len(fleet)))

    def pieces() -> Iterator[Tensor]:
        for start in range(0, x.shape[1], rows):
            yield fleet.transform(x[:, start : start + rows]).double()

    mean = sum((z.sum(1) for z in pieces()), torch.zeros(())) / x.shape[1]
    covariance = sum(((z - mean[:, None]).mT @ (z - mean[:, None]) for z in pieces()), torch.zeros(())) / x.shape[1]
    return mean, covariance
