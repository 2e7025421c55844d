"""The second pass over the rows: sums for GDP and its curve, HSIC and its test, the linear probe and histograms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch

from frhsic.dependence.features import FeatureMaps
from frhsic.distributed.reduction import added
from frhsic.distributed.rows import Block
from frhsic.independence.featured import FeatureMoments, feature_moments
from frhsic.parity.summed import Cells, ScoreSums
from frhsic.probes import ProbeSums

SLICE = 4096
"""Rows of Z that are float64 at once."""


@dataclass(frozen=True, eq=False)
class Scaling:
    """A shift and a scale for each column."""

    center: np.ndarray
    scale: np.ndarray

    @classmethod
    def of(cls, rows: np.ndarray) -> Scaling:
        """Return mean and standard deviation of a sample; 1 for a constant column."""
        spread = rows.std(axis=0)
        return cls(rows.mean(axis=0), np.where(spread > 0, spread, 1.0))

    def __call__(self, rows: np.ndarray) -> np.ndarray:
        return np.asarray((rows - self.center) / self.scale)


@dataclass(frozen=True, eq=False)
class Parity:
    """What the sums of scores of one population need: cells along each attribute, center and extremes of the scores."""

    cells: tuple[Cells | None, ...]
    center: float
    ends: tuple[float, float]
    threshold: float | None

    def sums(self, f: np.ndarray, s: np.ndarray) -> tuple[CurveSums | None, ...]:
        """Return the sums of some rows, for each attribute."""
        if not len(f):
            return tuple(None for _ in self.cells)
        decided = None if self.threshold is None else (f >= self.threshold).astype(np.float64)
        result: list[CurveSums | None] = []
        for cells, column in zip(self.cells, s.T):
            if cells is None:
                result.append(None)
                continue
            decisions = None if decided is None else cells.sums(decided, column, 0.0, (0.0, 1.0))
            result.append(CurveSums(cells.sums(f, column, self.center, self.ends), decisions))
        return tuple(result)


@dataclass(frozen=True, eq=False)
class CurveSums:
    """Sums of the scores along one attribute, and of the decisions where there is a threshold."""

    scores: ScoreSums
    decisions: ScoreSums | None

    def __add__(self, other: CurveSums) -> CurveSums:
        decisions = None if self.decisions is None or other.decisions is None else self.decisions + other.decisions
        return CurveSums(self.scores + other.scores, decisions)


@dataclass(frozen=True, eq=False)
class Dependence:
    """What HSIC of one attribute needs: random features, and how both variables are scaled before."""

    maps: FeatureMaps
    z: Scaling
    s: Scaling


@dataclass(frozen=True, eq=False)
class Plan:
    """What the second pass needs to know; None for what is not summed."""

    everyone: Parity | None
    favoured: Parity | None
    dependence: tuple[Dependence | None, ...]
    z: Scaling
    s: Scaling
    edges: tuple[np.ndarray, ...]


class Sums(NamedTuple):
    """Sums over rows: parity of all and of the favoured rows, and dependence, by attribute; probe; histograms."""

    everyone: tuple[CurveSums | None, ...] | None
    favoured: tuple[CurveSums | None, ...] | None
    dependence: tuple[FeatureMoments | None, ...]
    probe: ProbeSums | None
    histograms: tuple[np.ndarray, ...]


def sums_of(_: int, block: Block, plan: Plan) -> tuple[object, ...]:
    """Return the sums over the rows of one partition, in the order of :class:`Sums`."""
    everyone = favoured = probe = None
    moments: list[FeatureMoments | None] = [None] * len(plan.dependence)
    if len(block):
        if plan.everyone is not None and block.f is not None:
            everyone = plan.everyone.sums(block.f, block.s)
        if plan.favoured is not None and block.f is not None and block.favoured is not None:
            favoured = plan.favoured.sums(block.f[block.favoured], block.s[block.favoured])
        fold, targets = block.fold, np.column_stack([plan.s(block.s), block.noise])
        for rows in (slice(start, start + SLICE) for start in range(0, len(block), SLICE)):
            for i, one in enumerate(plan.dependence):
                if one is not None:
                    z, s = one.z(block.z[rows]), one.s(block.s[rows, i : i + 1])
                    moments[i] = added(moments[i], feature_moments(one.maps, torch.from_numpy(z), torch.from_numpy(s)))
            probe = added(probe, ProbeSums.of(plan.z(block.z[rows]), targets[rows], fold[rows]))
    histograms = tuple(np.histogram(column, bins=edges)[0] for column, edges in zip(block.s.T, plan.edges))
    return everyone, favoured, tuple(moments), probe, histograms
