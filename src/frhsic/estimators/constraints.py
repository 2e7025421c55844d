"""The rows of a fit, and the gaps that it limits: one along each attribute, among the rows of each
condition.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Self

import numpy as np
from scipy.linalg import block_diag

from frhsic.estimators.basis import SensitiveBasis

# Rows among which a gap is measured: everybody, or those of one outcome.
Among = Literal["all", "positive", "negative"]

# Intercept and slope in η of the probability that a condition keeps a row.
CHANCES: dict[Among, tuple[float, float]] = {
    "all": (1.0, 0.0),
    "positive": (0.0, 1.0),
    "negative": (1.0, -1.0),
}


@dataclass(frozen=True, eq=False)
class FitRows:
    """Checked rows of a call of fit: the table, also as numbers, attributes (n, q) with their
    names, weights and groups or None, the fold of each row, and the seed.
    """

    X: Any
    codes: np.ndarray
    s: np.ndarray
    names: tuple[str, ...]
    weights: np.ndarray | None
    groups: np.ndarray | None
    fold: np.ndarray
    seed: int

    @property
    def mass(self) -> np.ndarray:
        """The weight of each row, 1 where none were given."""
        return np.ones(len(self.s)) if self.weights is None else self.weights

    def row_weights(self, rows: np.ndarray) -> np.ndarray | None:
        """Return the weights of some rows, if there are weights."""
        return None if self.weights is None else self.weights[rows]

    def row_groups(self, rows: np.ndarray) -> np.ndarray | None:
        """Return the groups of some rows, if there are groups."""
        return None if self.groups is None else self.groups[rows]


@dataclass(frozen=True, eq=False)
class LabelledRows(FitRows):
    """Rows with y as numbers or codes of the classes, and as labels that were given."""

    y: np.ndarray
    labels: np.ndarray
    numeric: bool

    def at(self, rows: np.ndarray) -> LabelledRows:
        """Return some of the rows, without their table."""
        return replace(
            self,
            X=None,
            codes=self.codes[rows],
            s=self.s[rows],
            weights=self.row_weights(rows),
            groups=self.row_groups(rows),
            fold=self.fold[rows],
            y=self.y[rows],
            labels=self.labels[rows],
        )

    @property
    def base_rate(self) -> float | None:
        """The mean of y; None for more than two classes."""
        if not self.numeric and self.y.max() > 1:
            return None
        return float(np.average(self.y, weights=self.mass))


@dataclass(frozen=True, eq=False)
class Constraint:
    """One attribute among the rows of one condition: "all", "positive" or "negative"."""

    attribute: int
    among: Among
    basis: SensitiveBasis
    rate: float

    @classmethod
    def fit(cls, sample: LabelledRows, attribute: int, among: Among) -> Self:
        """Learn the functions of the attribute, and the share of the rows that the condition
        keeps.
        """
        kept = condition_mask(among, sample.y)
        s = sample.s[:, attribute]
        rows = np.flatnonzero(kept & ~np.isnan(s))
        if len(np.unique(s[rows])) < 2:
            raise ValueError(f"{sample.names[attribute]!r} does not vary among the {among} rows.")
        basis = SensitiveBasis.fit(s[rows], sample.row_weights(rows))
        return cls(attribute, among, basis, float(np.average(kept, weights=sample.weights)))

    def rows(self, s: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return which rows the condition keeps that have the attribute, as booleans."""
        return np.asarray(condition_mask(self.among, y) & ~np.isnan(s[:, self.attribute]))

    def functions(self, s: np.ndarray) -> np.ndarray:
        """Return the functions of the attribute, zero where it is missing."""
        return self.basis(s[:, self.attribute])

    def targets(self, s: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return what m is the conditional mean of: φ(s) among the rows of the condition, over
        their share.
        """
        return np.asarray(self.functions(s) * (condition_mask(self.among, y) / self.rate)[:, None])

    def known_means(self, s: np.ndarray, eta: np.ndarray) -> np.ndarray:
        """Return m where S is known: φ(s), times the chance of the condition over its rate."""
        intercept, slope = CHANCES[self.among]
        chance = (intercept + slope * eta) / self.rate
        return np.asarray(self.functions(s) * chance[:, None])


@dataclass(frozen=True, eq=False)
class GapCurves:
    """The curves of all gaps that are limited, side by side, from a function of S for each row.

    The curves of scores f are ``values @ sums`` with their sums ``functions.T @ f``: one number for
    each cell, which is a node of an attribute. A gap is the mean of its curve's size.

    Attributes
    ----------
    mass
        Share of the rows in each cell, (M,).
    values
        The functions on the cells, (M, K), zero for those of other gaps.
    own
        Which gap each cell belongs to, one-hot, (M, J).
    functions
        Weighted, centred functions of rows, (n, K).
    chance
        Of each function, intercept and slope in η of the probability that its condition keeps a
        row, (2, K).
    scales
        What each gap is divided by where they are compared, (J,).
    """

    mass: np.ndarray
    values: np.ndarray
    own: np.ndarray
    functions: np.ndarray
    chance: np.ndarray
    scales: np.ndarray

    @classmethod
    def of(
        cls,
        constraints: Sequence[Constraint],
        s: np.ndarray,
        y: np.ndarray,
        weights: np.ndarray,
        scales: Sequence[float] | None = None,
    ) -> Self:
        """Return the curves of rows with weights."""
        functions = []
        chance = []
        for one in constraints:
            counted = weights * one.rows(s, y)
            shares = counted / counted.sum()
            values = one.functions(s)
            functions.append(shares[:, None] * (values - shares @ values))
            chance.append(np.repeat(np.transpose([CHANCES[one.among]]), values.shape[1], axis=1))
        bases = [one.basis for one in constraints]
        return cls(
            mass=np.concatenate([basis.mass for basis in bases]),
            values=block_diag(*(basis.values for basis in bases)),
            own=np.repeat(np.eye(len(bases)), [len(basis.mass) for basis in bases], axis=0),
            functions=np.column_stack(functions),
            chance=np.column_stack(chance),
            scales=np.ones(len(bases)) if scales is None else np.array(scales),
        )

    def gaps(self, sums: np.ndarray) -> np.ndarray:
        """Return the gaps (J,) of sums (K, c), means over their columns."""
        return np.asarray(self.own.T @ (self.mass * np.abs(self.values @ sums).mean(axis=1)))

    def largest(self, outputs: np.ndarray) -> float:
        """Return the largest gap of outputs (n, c), each over its scale."""
        return float((self.gaps(self.functions.T @ outputs) / self.scales).max())


def condition_mask(among: Among, y: np.ndarray) -> np.ndarray:
    """Return which rows a condition keeps, as booleans."""
    if among == "all":
        return np.full(len(y), True)
    return np.asarray(y == (1 if among == "positive" else 0))
