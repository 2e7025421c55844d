"""The penalties, with settings of their own that differ between the models of one fleet.

All trials of a penalty train at once. A model is known by its random stream: a table holds the
settings of a trial by the seed of that stream, a function of the model's seed and split. The
settings are a tensor, which a fleet stacks like any other state.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import torch
from torch import Tensor

from frhsic.kernels import Gaussian
from frhsic.penalties import (
    EIPM,
    GDP,
    HSIC,
    Adversary,
    BinnedAdversary,
    BinnedMMD,
    DistanceCovariance,
    Penalty,
)
from frhsic.penalties.base import Batch
from frhsic.penalties.bins import quantile_edges

Table = Mapping[int, tuple[float, ...]]
"""Settings of the trials, by the seed of a random stream."""

MOST_BINS = 20


def setting(place: int) -> Any:
    """Return an attribute that reads one of the settings; what the constructor writes into it is
    ignored.
    """
    return property(lambda self: self.settings[place], lambda self, value: None)


class Varied(Penalty):
    """A penalty that takes its settings from a table when it is prepared."""

    settings: Tensor | None

    def __init__(self, table: Table, **options: Any) -> None:
        super().__init__(**options)
        self.table = table
        self.register_buffer("settings", None)

    def _prepare(self, s: Tensor, generator: torch.Generator) -> None:
        self.settings = torch.tensor(self.table[generator.initial_seed()], dtype=s.dtype)
        super()._prepare(s, generator)


class VariedUnit(Varied):
    """The first setting is the unit of Z, on top of the penalty's own scale."""

    def _scaled_z(self, batch: Batch) -> Tensor:
        assert self.settings is not None
        # a mixin: the penalty beside it has the method
        z: Tensor = super()._scaled_z(batch)  # type: ignore[misc]
        return z / self.settings[0]


class VariedHSIC(VariedUnit, HSIC):
    """HSIC with the unit of Z, and the bandwidth on S as a multiple of its own."""

    def _prepare(self, s: Tensor, generator: torch.Generator) -> None:
        super()._prepare(s, generator)
        assert self.settings is not None
        assert self.scale_s_now is not None
        self.scale_s_now = self.scale_s_now * self.settings[1]


class VariedEIPM(VariedUnit, EIPM):
    """FREM with the bandwidth on Z, and γ."""

    gamma = setting(1)


class VariedGDP(Varied, GDP):
    """Reg-GDP with its bandwidth."""

    bandwidth = setting(0)


class VariedMMD(Varied, BinnedMMD):
    """Binned MMD with its number of bins: edges that are not used lie above every value."""

    def _prepare(self, s: Tensor, generator: torch.Generator) -> None:
        super()._prepare(s, generator)
        assert self.settings is not None
        self.edges = torch.stack(
            [padded_edges(column, int(self.settings[0]), MOST_BINS) for column in s.mT]
        )


class VariedDistance(Varied, DistanceCovariance):
    """Distance covariance, which has no setting."""


class VariedAdversary(Varied, Adversary):
    """ADV with the learning rate of its adversary."""

    learning_rate = setting(0)


class VariedBinnedAdversary(Varied, BinnedAdversary):
    """LAFTR with the learning rate of its adversary, and its number of bins: outputs that are not
    used get no mass.
    """

    learning_rate = setting(0)
    unused: Tensor | None

    def __init__(self, table: Table, **options: Any) -> None:
        super().__init__(table, **options)
        self.register_buffer("unused", None)

    def _prepare(self, s: Tensor, generator: torch.Generator) -> None:
        super()._prepare(s, generator)
        assert self.settings is not None
        bins = int(self.settings[1])
        self.edges = torch.stack([padded_edges(column, bins, self.bins) for column in s.mT])
        self.unused = torch.where(torch.arange(self.bins) < bins, 0.0, -1e4).to(s)

    def _loss(self, outputs: Tensor, s: Tensor) -> Tensor:
        assert self.unused is not None
        return super()._loss(outputs + self.unused, s)


def padded_edges(column: Tensor, bins: int, most: int) -> Tensor:
    """Return the inner edges of some quantile bins, followed by edges that no value reaches.

    Examples
    --------
    >>> padded_edges(torch.arange(5.0), 2, 4)
    tensor([2., inf, inf])
    """
    edges = quantile_edges(column, bins)
    return torch.cat([edges, torch.full((most - bins,), torch.inf).to(edges)])


PENALTIES: dict[str, Callable[[Table], Penalty]] = {
    "hsic": VariedHSIC,
    "frhsic": partial(
        VariedHSIC,
        kernel_z=Gaussian(1.0),
        scale_z="published",
        scale_s="published",
        head_weight=0.0,
        attributes="isotropic",
    ),
    "frem": VariedEIPM,
    "reg-gdp": VariedGDP,
    "mmd": VariedMMD,
    "dcor": VariedDistance,
    "adv": VariedAdversary,
    "laftr": partial(VariedBinnedAdversary, bins=12),
}
"""How each penalty is made from a table of settings."""
