"""The rows of a fit, and the gaps that it limits: one for each attribute and condition, measured
within strata of similar people if there are controls.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Self

import numpy as np
from scipy.linalg import block_diag

from frhsic.estimators.basis import SensitiveBasis

# Rows among which a gap is measured: all of them, or those with one outcome.
Among = Literal["all", "positive", "negative"]

# The probability that a condition includes a row, as intercept and slope in η.
CHANCES: dict[Among, tuple[float, float]] = {
    "all": (1.0, 0.0),
    "positive": (0.0, 1.0),
    "negative": (1.0, -1.0),
}


@dataclass(frozen=True, eq=False)
class FitRows:
    """The validated rows of a call to fit: the table as passed and as numbers, the attributes (n,
    q) with their names, the weights and groups or None, the fold of each row, and the seed. With
    controls, the rows also have strata, from 0 to `n_strata` − 1; the last one contains the rows
    whose control values have no stratum of their own.
    """

    X: Any
    codes: np.ndarray
    s: np.ndarray
    names: tuple[str, ...]
    weights: np.ndarray | None
    groups: np.ndarray | None
    fold: np.ndarray
    seed: int
    strata: np.ndarray | None = field(default=None, kw_only=True)
    n_strata: int = field(default=1, kw_only=True)

    @property
    def mass(self) -> np.ndarray:
        """The weight of each row; 1 if no weights were passed."""
        return np.ones(len(self.s)) if self.weights is None else self.weights

    def row_weights(self, rows: np.ndarray) -> np.ndarray | None:
        """Return the weights of the given rows, or None if there are no weights."""
        return None if self.weights is None else self.weights[rows]

    def row_groups(self, rows: np.ndarray) -> np.ndarray | None:
        """Return the groups of the given rows, or None if there are no groups."""
        return None if self.groups is None else self.groups[rows]

    def row_strata(self, rows: np.ndarray) -> np.ndarray | None:
        """Return the strata of the given rows, or None if there are no strata."""
        return None if self.strata is None else self.strata[rows]


@dataclass(frozen=True, eq=False)
class LabelledRows(FitRows):
    """Rows with y, both as passed to fit and as numbers or class codes."""

    y: np.ndarray
    labels: np.ndarray
    numeric: bool

    def at(self, rows: np.ndarray) -> LabelledRows:
        """Return the given rows; their table is not included."""
        return replace(
            self,
            X=None,
            codes=self.codes[rows],
            s=self.s[rows],
            weights=self.row_weights(rows),
            groups=self.row_groups(rows),
            fold=self.fold[rows],
            strata=self.row_strata(rows),
            y=self.y[rows],
            labels=self.labels[rows],
        )

    @property
    def base_rate(self) -> float | None:
        """The mean of y, or None for more than two classes."""
        if not self.numeric and self.y.max() > 1:
            return None
        return float(np.average(self.y, weights=self.mass))


@dataclass(frozen=True, eq=False)
class Constraint:
    """One attribute whose gap is measured among the rows of one condition: "all", "positive" or
    "negative".
    """

    attribute: int
    among: Among
    basis: SensitiveBasis
    rate: float

    @classmethod
    def fit(cls, sample: LabelledRows, attribute: int, among: Among) -> Self:
        """Learn the functions of the attribute, and the share of rows that meet the condition."""
        kept = condition_mask(among, sample.y)
        s = sample.s[:, attribute]
        rows = np.flatnonzero(kept & ~np.isnan(s))
        name = sample.names[attribute]
        if len(np.unique(s[rows])) < 2:
            raise ValueError(
                f"{name!r} is constant among {among} rows, so there is no gap to limit. Leave this"
                " attribute out, or choose another condition."
            )
        if sample.strata is not None:
            pairs = np.unique(np.column_stack([sample.strata[rows], s[rows]]), axis=0)
            if len(np.unique(pairs[:, 0])) == len(pairs):
                raise ValueError(
                    f"{name!r} is constant among people with the same control_features, so there is"
                    " no gap to limit. Leave out the control that determines this attribute."
                )
        basis = SensitiveBasis.fit(s[rows], sample.row_weights(rows))
        return cls(attribute, among, basis, float(np.average(kept, weights=sample.weights)))

    def rows(self, s: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return a mask of the rows that meet the condition and whose attribute is known."""
        return np.asarray(condition_mask(self.among, y) & ~np.isnan(s[:, self.attribute]))

    def functions(self, s: np.ndarray) -> np.ndarray:
        """Return the functions of the attribute, which are zero where the attribute is missing."""
        return self.basis(s[:, self.attribute])

    def targets(self, s: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return the variable whose conditional mean is m: φ(s) divided by the share of the rows
        that meet the condition, and 0 for all other rows.
        """
        return np.asarray(self.functions(s) * (condition_mask(self.among, y) / self.rate)[:, None])

    def known_means(self, s: np.ndarray, eta: np.ndarray) -> np.ndarray:
        """Return m for known S: φ(s) times the conditional probability of the condition, divided by
        the condition's overall rate.
        """
        return np.asarray(self.functions(s) * self.chance(eta)[:, None])

    def chance(self, eta: np.ndarray) -> np.ndarray:
        """Return the probability of the condition given x, divided by the condition's overall rate,
        (n,).
        """
        if self.among == "all":
            return np.full(len(eta), 1 / self.rate)
        intercept, slope = CHANCES[self.among]
        return np.asarray((intercept + slope * eta) / self.rate)


@dataclass(frozen=True, eq=False)
class GapCurves:
    r"""The curves of all limited gaps, side by side, computed from functions of S on the rows.

    The curves of scores f are ``values @ sums`` with ``sums = functions.T @ f``. They have one
    number for each cell, which is a node of an attribute within a stratum. A gap is the mean
    absolute value of its curve.

    Within a stratum w with functions :math:`\tilde\varphi = \varphi - E[\varphi | w]` and :math:`G
    = \mathrm{Cov}(\varphi | w)`, the curve is :math:`\tilde\varphi^\top G^+ E[f \tilde\varphi |
    w]`. Without controls there is one stratum, in which the functions are orthonormal.

    Attributes
    ----------
    mass
        Share of the rows in each cell, (M,).
    values
        Factors of the curves on the cells, (M, K), which are zero for the functions of other gaps
        and strata. The columns are the functions of all attributes in the first stratum, then those
        in the second, and so on.
    own
        The gap that each cell belongs to, one-hot encoded, (M, J).
    functions
        Weighted, centered functions of rows, (n, K).
    shares
        For each stratum and function, the share of the rows in that stratum, (S, K / S).
    chance
        For each function, the probability that a row meets the function's condition, as an
        intercept and a slope in η, (2, K).
    scales
        Divisor of each gap for comparisons between gaps, (J,); infinite for an unlimited gap.
    """

    mass: np.ndarray
    values: np.ndarray
    own: np.ndarray
    functions: np.ndarray
    shares: np.ndarray
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
        strata: np.ndarray | None = None,
        count: int = 1,
    ) -> Self:
        """Return the curves for weighted rows, within each of `count` strata."""
        blocks = []
        for code in range(count):
            inside = 1.0 if strata is None else strata == code
            for gap, one in enumerate(constraints):
                counted = weights * one.rows(s, y)
                within = counted * inside
                share = float(within.sum() / counted.sum())
                within = within / (within.sum() or 1.0)
                at = one.functions(s)
                basis = one.basis
                if strata is not None:
                    nodes = basis.node(s[:, one.attribute])
                    basis = basis.within(np.bincount(nodes, within, len(basis.mass)))
                blocks.append((gap, share, basis, share * within[:, None] * (at - within @ at)))
        widths = [basis.values.shape[1] for _, _, basis, _ in blocks]
        gaps = np.array([gap for gap, _, _, _ in blocks])
        chances = np.transpose([CHANCES[one.among] for one in constraints])
        return cls(
            mass=np.concatenate([share * basis.mass for _, share, basis, _ in blocks]),
            values=block_diag(*(basis.values / (share or 1.0) for _, share, basis, _ in blocks)),
            own=np.eye(len(constraints))[
                np.repeat(gaps, [len(basis.mass) for _, _, basis, _ in blocks])
            ],
            functions=np.column_stack([functions for _, _, _, functions in blocks]),
            shares=np.repeat([share for _, share, _, _ in blocks], widths).reshape(count, -1),
            chance=np.repeat(chances[:, gaps], widths, axis=1),
            scales=np.ones(len(constraints)) if scales is None else np.array(scales),
        )

    def limited(self) -> tuple[Self, np.ndarray]:
        """Return only the limited curves, and a mask of the functions that they use."""
        kept = np.isfinite(self.scales)
        cells = self.own[:, kept].any(axis=1)
        used = self.values[cells].any(axis=0)
        curves = replace(
            self,
            mass=self.mass[cells],
            values=self.values[np.ix_(cells, used)],
            own=self.own[np.ix_(cells, kept)],
            functions=self.functions[:, used],
            chance=self.chance[:, used],
            scales=self.scales[kept],
        )
        return curves, np.asarray(used)

    def gaps(self, sums: np.ndarray) -> np.ndarray:
        """Return the gaps (J,) for sums (K, c), averaged over the c columns."""
        return np.asarray(self.own.T @ (self.mass * np.abs(self.values @ sums).mean(axis=1)))

    def largest(self, sums: np.ndarray) -> float:
        """Return the largest gap for sums (K, c), after dividing each gap by its scale."""
        return float((self.gaps(sums) / self.scales).max())


def condition_mask(among: Among, y: np.ndarray) -> np.ndarray:
    """Return a mask of the rows that meet a condition."""
    if among == "all":
        return np.full(len(y), True)
    return np.asarray(y == (1 if among == "positive" else 0))
