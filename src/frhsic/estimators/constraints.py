"""The rows of a fit, and the gaps that it limits: one along each attribute, among the rows of each
condition.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal, Self

import numpy as np

from frhsic.estimators.basis import SensitiveBasis

# Rows among which a gap is measured: everybody, or those of one outcome.
Among = Literal["all", "positive", "negative"]


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
class GapCurve:
    """The gap along one attribute among the rows of one condition, from a function of x or of S for
    each row, (n, K).

    `functions` are weighted, centred rows. The curve of scores f is ``basis.values @ sums`` with
    their sums ``functions.T @ f``.
    """

    basis: SensitiveBasis
    functions: np.ndarray
    scale: float = 1.0
    among: Among = "all"

    @classmethod
    def from_rows(
        cls,
        basis: SensitiveBasis,
        functions: np.ndarray,
        weights: np.ndarray,
        scale: float = 1.0,
        among: Among = "all",
    ) -> GapCurve:
        """Return the curve of rows with weights, which are 0 where a row does not count."""
        shares = (weights / weights.sum())[:, None]
        centred = functions - (shares * functions).sum(axis=0)
        return cls(basis, shares * centred, scale, among)

    def gap(self, outputs: np.ndarray) -> float:
        """Return N without smoothing, the mean over the columns of outputs (n, c)."""
        return self.norm(self.functions.T @ outputs, 0.0)[0]

    def norm(self, sums: np.ndarray, smoothness: float) -> tuple[float, np.ndarray]:
        """Return N of sums (K, c), the mean over their columns, and its gradient."""
        values = self.basis.values
        curve = values @ sums
        length = np.sqrt(curve**2 + smoothness**2)
        weights = self.basis.mass[:, None] / sums.shape[1]
        gradient = values.T @ (weights * curve / np.maximum(length, 1e-300))
        return float((weights * (length - smoothness)).sum()), gradient


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

    def curve(
        self, s: np.ndarray, y: np.ndarray, weights: np.ndarray, scale: float = 1.0
    ) -> GapCurve:
        """Return the curve of the rows that count."""
        counted = weights * self.rows(s, y)
        return GapCurve.from_rows(self.basis, self.functions(s), counted, scale, self.among)

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
        return np.asarray(
            self.functions(s) * condition_probability(self.among, eta)[:, None] / self.rate
        )


def condition_mask(among: Among, y: np.ndarray) -> np.ndarray:
    """Return which rows a condition keeps, as booleans."""
    if among == "all":
        return np.full(len(y), True)
    return np.asarray(y == (1 if among == "positive" else 0))


def condition_probability(among: Among, eta: np.ndarray) -> np.ndarray:
    """Return the probability that a condition keeps rows of which η is known."""
    if among == "all":
        return np.ones(len(eta))
    return eta if among == "positive" else 1 - eta
