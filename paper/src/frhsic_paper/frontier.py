r"""The trade-off between performance and dependence in a sweep over the penalty's weight.

A :class:`Frontier` contains the runs of a sweep, one :class:`Run` for each method, weight and
repeat. It returns the non-dominated points and the smallest dependence within a performance band.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

__all__ = ["Frontier", "Point", "Run", "band_limit", "is_within_band"]


def band_limit(baseline: float, band: float, higher_is_better: bool) -> float:
    r"""Performance at the edge of a band around the baseline's performance.

    :math:`(1 - \text{band})` times the baseline, or :math:`(1 + \text{band})` times it if lower is
    better. For a negative baseline, such as an R² below 0, the two are swapped, so that the limit
    is always worse than the baseline.

    Examples
    --------
    >>> band_limit(0.5, 0.25, True), band_limit(0.5, 0.25, False)
    (0.375, 0.625)
    >>> band_limit(-0.5, 0.25, True), band_limit(-0.5, 0.25, False)
    (-0.625, -0.375)
    """
    return baseline * (1 - band) if higher_is_better == (baseline >= 0) else baseline * (1 + band)


def is_within_band(
    performance: float, baseline: float, band: float, higher_is_better: bool
) -> bool:
    """Return whether a performance is within a band of the baseline's; the limit itself is
    inside.
    """
    limit = band_limit(baseline, band, higher_is_better)
    return performance >= limit if higher_is_better else performance <= limit


@dataclass(frozen=True)
class Run:
    """One trained model: its method, penalty weight and repeat, its performance and its dependence
    on s.
    """

    method: str
    weight: float
    repeat: int
    performance: float
    dependence: float


@dataclass(frozen=True)
class Point:
    """The mean over repeats at one weight of one method, with the standard deviations (ddof 1)."""

    method: str
    weight: float
    performance: float
    dependence: float
    performance_sd: float
    dependence_sd: float
    repeats: int


@dataclass(frozen=True)
class Frontier:
    """Runs of one sweep on one dataset, with the unpenalized model as the baseline.

    Parameters
    ----------
    runs
        One :class:`Run` for each model. Those of `baseline` are the reference and must have a
        single weight.
    higher_is_better
        True for accuracy, False for an error such as MSE.
    baseline
        Name of the unpenalized method among the runs.

    Examples
    --------
    >>> runs = [
    ...     Run("none", 0, 0, 0.9, 1.0),
    ...     Run("hsic", 1, 0, 0.9, 0.5),
    ...     Run("hsic", 10, 0, 0.8, 0.1),
    ... ]
    >>> frontier = Frontier(tuple(runs))
    >>> frontier.matched_points(band=0.01)["hsic"].dependence
    0.5
    >>> [point.weight for point in frontier.non_dominated_points("hsic")]
    [10, 1]
    """

    runs: tuple[Run, ...]
    higher_is_better: bool = True
    baseline: str = "none"

    def __post_init__(self) -> None:
        if not self.runs:
            raise ValueError("a frontier needs at least one run.")
        for run in self.runs:
            if not (math.isfinite(run.performance) and math.isfinite(run.dependence)):
                raise ValueError(f"{run} is not finite; leave out models that diverged.")
        if self.baseline not in self.methods:
            raise ValueError(
                f"there is no run of the baseline {self.baseline!r}; the methods are"
                f" {list(self.methods)}."
            )

    @cached_property
    def methods(self) -> tuple[str, ...]:
        """Names of the methods, in order of appearance."""
        return tuple(dict.fromkeys(run.method for run in self.runs))

    @cached_property
    def points(self) -> tuple[Point, ...]:
        """Means over repeats, one for each method and weight."""
        groups: dict[tuple[str, float], list[Run]] = {}
        for run in self.runs:
            groups.setdefault((run.method, run.weight), []).append(run)
        return tuple(_mean(method, weight, runs) for (method, weight), runs in groups.items())

    def method_points(self, method: str) -> tuple[Point, ...]:
        """Return the points of one method, by increasing weight."""
        if method not in self.methods:
            raise ValueError(
                f"there is no run of the method {method!r}; the methods are {list(self.methods)}."
            )
        return tuple(sorted((p for p in self.points if p.method == method), key=lambda p: p.weight))

    def non_dominated_points(self, method: str) -> tuple[Point, ...]:
        """Return the points of a method that are not dominated by another of its points, in order
        of dependence.
        """
        kept: list[Point] = []
        for point in sorted(
            self.method_points(method), key=lambda p: (p.dependence, -self.signed(p.performance))
        ):
            if not kept or self.signed(point.performance) > self.signed(kept[-1].performance):
                kept.append(point)
        return tuple(kept)

    def matched_points(self, band: float = 0.01) -> dict[str, Point | None]:
        r"""Return each method's point with the smallest dependence within a performance band of the
        baseline.

        Unrounded means are compared; ties go to the smallest weight. The point is None if no weight
        is inside the band.
        """
        base, higher = self.method_points(self.baseline)[0].performance, self.higher_is_better
        inside = {
            m: [
                p
                for p in self.method_points(m)
                if is_within_band(p.performance, base, band, higher)
            ]
            for m in self.methods
        }
        return {
            m: min(points, key=lambda p: p.dependence, default=None) for m, points in inside.items()
        }

    def signed(self, performance: float) -> float:
        """Return a performance, or minus an error, so that higher is better."""
        return performance if self.higher_is_better else -performance


def _mean(method: str, weight: float, runs: Sequence[Run]) -> Point:
    if len(runs) == 1:  # for frontiers of single repeats, of which a sweep has many
        return Point(method, weight, runs[0].performance, runs[0].dependence, math.nan, math.nan, 1)
    values = np.array([[run.performance for run in runs], [run.dependence for run in runs]])
    performance, dependence = values.mean(axis=1).tolist()
    performance_sd, dependence_sd = values.std(axis=1, ddof=1).tolist()
    return Point(method, weight, performance, dependence, performance_sd, dependence_sd, len(runs))
