"""The rows of one population that is audited."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from frhsic._arrays import effective_number
from frhsic.auditing.results import Law
from frhsic.parity.rows import ScoreRows, score_rows
from frhsic.parity.strata import Strata


@dataclass(frozen=True, eq=False)
class Rows:
    """The validated data of one population in float64: z of shape (n, d) and s of shape (n, q);
    other arrays have one entry per row, or are None. `y` is the target, used to measure errors; it
    is None for rows with a single outcome. `favoured` marks the rows with the favorable outcome; it
    is None if there is no favorable outcome. Gaps use `weights` and `groups`; measures of
    dependence use :meth:`independent_rows`. `strata` has the index of each row's stratum in
    `controls`. `attributes` is the number of attributes whose error bands share one level.
    """

    z: np.ndarray
    s: np.ndarray
    scores: np.ndarray | None
    y: np.ndarray | None = None
    favoured: np.ndarray | None = None
    weights: np.ndarray | None = None
    groups: np.ndarray | None = None
    threshold: float | None = None
    strata: np.ndarray | None = None
    controls: Strata | None = None
    attributes: int = 1

    @property
    def count(self) -> int:
        """Number of rows."""
        return len(self.z)

    @property
    def effective(self) -> float:
        """Effective number of rows, or of groups."""
        return effective_rows(self.count, self.weights, self.groups)

    def law(self, values: np.ndarray) -> Law:
        """Return the distribution of a variable over these rows."""
        distinct, place = np.unique(values, return_inverse=True)
        return Law.from_counts(distinct, np.bincount(place, self.weights), self.effective)

    def select_attribute(self, i: int) -> Self:
        """Return these rows with only one of the attributes."""
        return replace(self, s=self.s[:, [i]], attributes=self.s.shape[1])

    def keep(self, rows: np.ndarray) -> Self:
        """Select rows by a mask or by positions."""
        parts: dict[str, Any] = {
            key: part[rows] for key, part in vars(self).items() if isinstance(part, np.ndarray)
        }
        return replace(self, **parts)

    def score_rows(self, columns: np.ndarray) -> ScoreRows:
        """Return numeric columns for these rows, of shape (n, k), in the form needed to compute
        gaps.
        """
        return score_rows(columns, self.s[:, 0], self.weights, self.groups, self.strata)

    def independent_rows(self, random: np.random.Generator) -> Self:
        """Draw independent rows from the weighted population: one at random from each group, kept
        with a probability proportional to its weight.
        """
        kept = np.arange(self.count)
        if self.groups is not None:
            order = random.permutation(self.count)
            kept = np.sort(order[np.unique(self.groups[order], return_index=True)[1]])
        if self.weights is not None:
            weights = self.weights[kept]
            kept = kept[random.random(len(kept)) * weights.max() < weights]
        return replace(self.keep(kept), weights=None, groups=None)


def effective_rows(count: int, weights: np.ndarray | None, groups: np.ndarray | None) -> float:
    """Return the effective number of rows with weights, or the effective number of groups."""
    shares = np.ones(count) if weights is None else weights
    if groups is not None:
        shares = np.bincount(groups, shares)
    return effective_number(shares)
