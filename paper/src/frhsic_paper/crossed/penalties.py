"""The penalties, with settings that can differ between the models of one fleet.

All trials of a penalty are trained at once. A model is identified by its random stream: a table
contains the settings of each trial, keyed by the stream's seed, which depends on the model's seed
and split. The settings are a tensor, which a fleet stacks like any other state.
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
from frhsic.penalties.bins import bin_membership, quantile_edges
from frhsic_paper.baselines import CorrelationAdversary, PairwiseMMD, UnbiasedCorrelation

Table = Mapping[int, tuple[float, ...]]
"""Settings of the trials, keyed by the seed of a random stream."""

MOST_BINS = 20
MOST_DEGREE = 5

TINY = 1e-12
"""Keeps quotients and roots defined for constant batches."""


def setting(place: int) -> Any:
    """Return a property that reads one of the settings; values assigned by the constructor are
    ignored.
    """
    return property(lambda self: self.settings[place], lambda self, value: None)


class Varied(Penalty):
    """A penalty that reads its settings from a table when it is prepared."""

    settings: Tensor | None

    def __init__(self, table: Table, **options: Any) -> None:
        super().__init__(**options)
        self.table = table
        self.register_buffer("settings", None)

    def _prepare(self, s: Tensor, generator: torch.Generator) -> None:
        self.settings = torch.tensor(self.table[generator.initial_seed()], dtype=s.dtype)
        super()._prepare(s, generator)


class VariedUnit(Varied):
    """A penalty whose first setting is the unit of Z, in addition to its own scale."""

    def _scaled_z(self, batch: Batch) -> Tensor:
        assert self.settings is not None
        # a mixin: the method is that of the other base class
        z: Tensor = super()._scaled_z(batch)  # type: ignore[misc]
        return z / self.settings[0]


class VariedHSIC(VariedUnit, HSIC):
    """HSIC; the settings are the unit of Z, and the bandwidth on S as a multiple of its default."""

    def _prepare(self, s: Tensor, generator: torch.Generator) -> None:
        super()._prepare(s, generator)
        assert self.settings is not None
        assert self.scale_s_now is not None
        self.scale_s_now = self.scale_s_now * self.settings[1]


class VariedEIPM(VariedUnit, EIPM):
    """FREM; its settings are γ and the bandwidth of the kernel on Z."""

    gamma = setting(1)


class VariedGDP(Varied, GDP):
    """Reg-GDP; the setting is its bandwidth."""

    bandwidth = setting(0)


class VariedMMD(Varied, BinnedMMD):
    """Binned MMD; the setting is the number of bins. Unused edges are above all values."""

    def _prepare(self, s: Tensor, generator: torch.Generator) -> None:
        super()._prepare(s, generator)
        assert self.settings is not None
        self.edges = torch.stack(
            [padded_edges(column, int(self.settings[0]), MOST_BINS) for column in s.mT]
        )


class VariedPairwiseMMD(Varied, PairwiseMMD):
    """MMD as in the paper's text; the setting is the number of bins, which have equal width."""

    def _prepare(self, s: Tensor, generator: torch.Generator) -> None:
        super()._prepare(s, generator)
        assert self.settings is not None
        shares = torch.arange(1, MOST_BINS).to(s) / self.settings[0]
        shares = torch.where(shares < 1, shares, torch.inf)
        low, high = s.aminmax(dim=0)
        self.edges = low[:, None] + (high - low)[:, None] * shares


class VariedDistance(Varied, DistanceCovariance):
    """Distance covariance, which has no settings."""


class VariedCorrelation(Varied, UnbiasedCorrelation):
    """Distance correlation as in the paper's text, which has no settings."""


class VariedAdversary(Varied, Adversary):
    """ADV; the setting is the learning rate of its adversary."""

    learning_rate = setting(0)


class VariedCorrelationAdversary(Varied, CorrelationAdversary):
    """ADV as in the paper's text; the setting is the learning rate of its adversary."""

    learning_rate = setting(0)


class VariedBinnedAdversary(Varied, BinnedAdversary):
    """LAFTR; the settings are the learning rate of its adversary and the number of bins. Unused
    outputs have probability 0.
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


class VariedFairret(VariedMMD):
    r"""The norm of fairret (Buyl and De Bie 2024) on bands of S, :math:`\sum_b |\bar p_b / \bar p -
    1|` for the mean probabilities of the bands.
    """

    needs_scores = True

    def _value(self, batch: Batch) -> Tensor:
        assert batch.scores is not None
        assert self.edges is not None
        p = torch.sigmoid(batch.scores[:, 0])
        bands = bin_membership(batch.s[:, 0], self.edges[0].to(batch.s))
        sizes = bands.sum(0)
        means = (bands.mT @ p) / sizes.clamp_min(1)
        return ((means / p.mean() - 1).abs() * (sizes > 0)).sum()


class VariedGeDI(Varied):
    """Generalized disparate impact (Giuliani, Misino and Lombardi 2023): the standard deviation of
    a least-squares polynomial in S that predicts the scores, divided by the standard deviation of
    S.
    """

    needs_scores = True

    def _value(self, batch: Batch) -> Tensor:
        assert batch.scores is not None
        assert self.settings is not None
        s = batch.s[:, 0] - batch.s[:, 0].mean()
        s = s / (s.square().mean().sqrt() + TINY)
        f = batch.scores[:, 0] - batch.scores[:, 0].mean()
        explained = f.square().mean() * 0
        basis: list[Tensor] = []  # a solver would have to wait for the GPU
        for degree in range(1, MOST_DEGREE + 1):
            power = s**degree
            power = power - power.mean()
            for one in basis:
                power = power - (one * power).mean() * one
            basis.append(power / (power.square().mean().sqrt() + TINY))
            used = (degree <= self.settings[0]).to(f)
            explained = explained + used * (basis[-1] * f).mean().square()
        gedi: Tensor = (explained + TINY).sqrt() / (batch.s[:, 0].var(correction=0).sqrt() + TINY)
        return gedi


class VariedKernelHGR(Varied):
    """The chi-squared bound on HGR, from kernel densities of the scores and S (Mary, Calauzènes and
    El Karoui 2019); the setting is a factor on their bandwidth.
    """

    needs_scores = True

    def _value(self, batch: Batch) -> Tensor:
        assert batch.scores is not None
        assert self.settings is not None
        return chi_squared(batch.scores[:, 0], batch.s[:, 0], self.settings[0])


def chi_squared(f: Tensor, s: Tensor, factor: float | Tensor = 1.0) -> Tensor:
    """Return the chi-squared divergence between the joint density of standardized f and s and the
    product of its marginals, on a grid.
    """
    width = len(f) ** (-1 / 6)  # Silverman's rule for two dimensions
    places = torch.linspace(-2.5, 2.5, min(50, int(5 / width)), device=f.device, dtype=f.dtype)

    def bumps(x: Tensor) -> Tensor:
        x = (x - x.mean()) / (x.var() + 1e-12).sqrt()
        return torch.exp(-((places[:, None] - x) ** 2) / (2 * (factor * width) ** 2))

    joint = bumps(f) @ bumps(s).mT / len(f) + 1e-10
    joint = joint / joint.sum()
    return (joint**2 / (joint.sum(1, keepdim=True) * joint.sum(0, keepdim=True))).sum() - 1


class VariedNetworkHGR(VariedAdversary):
    """The largest correlation between the outputs of two networks, one on Z and one on S (Grari and
    others 2021). They are stored as one network, in which the weights between the two parts stay 0.
    """

    bins = 2
    apart_in: Tensor
    apart_out: Tensor
    weight_in: Tensor
    weight_out: Tensor

    def __init__(self, table: Table, **options: Any) -> None:
        super().__init__(table, **options)
        self.z_dim += 1
        for name in ("apart_in", "apart_out"):
            self.register_buffer(name, None)

    def _prepare(self, s: Tensor, generator: torch.Generator) -> None:
        super()._prepare(s, generator)
        first = (torch.arange(self.hidden) < self.hidden // 2).to(s)
        own = torch.stack([first, 1 - first])  # the hidden units for Z, and those for S
        self.apart_in = torch.cat([own[:1].expand(self.z_dim - 1, -1), own[1:]]).mT.contiguous()
        self.apart_out = own
        self._separate()

    def _separate(self) -> None:
        self.weight_in.mul_(self.apart_in)
        self.weight_out.mul_(self.apart_out)

    def _adapt(self, z: Tensor, s: Tensor) -> None:
        super()._adapt(torch.cat([z, s], dim=1), s)
        self._separate()

    def _value(self, batch: Batch) -> Tensor:
        return -self._loss(self.predict(torch.cat([batch.z, batch.s], dim=1)), batch.s)

    def _loss(self, outputs: Tensor, s: Tensor) -> Tensor:
        away = outputs - outputs.mean(0)
        squares = away.square().mean(0) + 1e-8
        return -(away[:, 0] * away[:, 1]).mean() / squares.prod().sqrt()


def padded_edges(column: Tensor, bins: int, most: int) -> Tensor:
    """Return the inner edges of quantile bins, followed by edges above all values.

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
    "adv-text": VariedCorrelationAdversary,
    "mmd-text": VariedPairwiseMMD,
    "dcor-text": VariedCorrelation,
    "laftr": partial(VariedBinnedAdversary, bins=12),
    "hgr-kde": VariedKernelHGR,
    "hgr-networks": VariedNetworkHGR,
    "gedi": VariedGeDI,
    "fairret": VariedFairret,
}
"""Functions that create each penalty from a table of settings."""
