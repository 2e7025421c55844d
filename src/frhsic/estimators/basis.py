r"""Functions of sensitive attributes.

.. math:: \mathbb E\,\varphi_k(S) = 0, \qquad \mathbb E\,\varphi_j(S) \varphi_k(S) = \delta_{jk}.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

# Number of cosines of the rank of a continuous attribute.
FUNCTIONS = 8

# An attribute with at most this many levels gets enough functions to distinguish all of them.
MOST_LEVELS = 16

# A value with at least this share of the rows, such as zero income, gets its own function.
ATOM = 0.05

# A direction is kept if X explains at least this share of the total explained variance along it.
SMALLEST_SHARE = 0.01

# Smallest variance at which a combination of functions is used under another distribution, such as
# that of a stratum with few values of S; under the fitted distribution, all variances are 1.
LEAST_VARIANCE = 1e-6

# Number of equal-sized groups that replace the values of a continuous attribute.
BASIS_NODES = 256


@dataclass(frozen=True, eq=False)
class SensitiveBasis:
    r"""Functions :math:`\varphi_k` of one attribute that are orthonormal under the distribution of
    the fitted rows.

    The functions are constant on nodes. Nodes are the levels of S or, for a continuous S, groups of
    neighboring values of equal size, with separate nodes for frequent values. If S has at most 16
    levels, the functions span all functions of S with mean zero. Otherwise they span eight cosines
    of the rank and an indicator for each frequent value. The functions are the same for every
    increasing transformation of S.

    Attributes
    ----------
    starts
        Smallest value of each node, in increasing order; (M,).
    mass
        Share of the rows in each node; (M,).
    values
        The functions on the nodes; (M, K).

    Examples
    --------
    If one row in four has the second of two levels, there is one function, with mean 0 and
    variance 1.

    >>> basis = SensitiveBasis.fit(np.array([0.0, 0.0, 0.0, 1.0]))
    >>> basis(np.array([0.0, 1.0])).round(4).tolist()
    [[-0.5774], [1.7321]]
    """

    starts: np.ndarray
    mass: np.ndarray
    values: np.ndarray

    @classmethod
    def fit(cls, s: np.ndarray, weights: np.ndarray | None = None) -> Self:
        """Learn the nodes and functions from values (n,) without NaN and their weights."""
        levels, level = np.unique(s, return_inverse=True)
        mass = np.bincount(level, weights, minlength=len(levels))
        levels = levels[mass > 0]
        mass = mass[mass > 0] / mass.sum()
        node = (
            ranges(mass, BASIS_NODES, 1 / BASIS_NODES)
            if len(levels) > BASIS_NODES
            else np.arange(len(levels))
        )
        starts = levels[np.r_[True, node[1:] != node[:-1]]]
        mass = np.bincount(node, mass)
        if len(mass) <= MOST_LEVELS:
            candidates = np.eye(len(mass))[:, 1:]
        else:
            rank = np.cumsum(mass) - mass / 2
            cosines = np.cos(np.pi * rank[:, None] * np.arange(1, FUNCTIONS + 1))
            candidates = np.column_stack([cosines, np.eye(len(mass))[:, mass >= ATOM]])
        root = np.sqrt(mass)[:, None]
        with_constant = root * np.column_stack([np.ones(len(mass)), candidates])
        orthonormal, triangle = np.linalg.qr(with_constant)
        diagonal = np.diag(triangle)[1:]
        kept = np.abs(diagonal) > 1e-8  # a frequent value may add no dimension
        sign = np.sign(diagonal)[kept]
        return cls(starts, mass, orthonormal[:, 1:][:, kept] * sign / root)

    def node(self, s: np.ndarray) -> np.ndarray:
        """Return the node of each value; values outside the fitted range belong to the first or
        last node.
        """
        return np.asarray(np.clip(np.searchsorted(self.starts, s, side="right") - 1, 0, None))

    def __call__(self, s: np.ndarray) -> np.ndarray:
        """Return the functions' values, (n, K), at values of S, (n,); they are zero where S is
        missing.
        """
        return np.where(np.isnan(s)[:, None], 0.0, self.values[self.node(s)])

    def within(self, law: np.ndarray) -> SensitiveBasis:
        r"""Return the factors of gap curves under another distribution of the nodes, (M,).

        On the nodes with positive mass, the factors are :math:`\tilde\varphi^\top G^+` with
        :math:`\tilde\varphi = \varphi - E \varphi` and :math:`G = \mathrm{Cov}(\varphi)`. For f in
        the span of the functions, :math:`E[f | S] - E f` is then the product of the factors and
        :math:`E[f \tilde\varphi]`.
        """
        kept = law > 0
        values = self.values[kept] - law @ self.values
        variance, vectors = np.linalg.eigh(values.T @ (law[kept, None] * values))
        large = variance > LEAST_VARIANCE
        inverse = (vectors[:, large] / variance[large]) @ vectors[:, large].T
        return SensitiveBasis(self.starts[kept], law[kept], values @ inverse)

    def along(self, directions: np.ndarray) -> SensitiveBasis:
        """Return a basis of orthonormal combinations (K, R) of the functions."""
        return SensitiveBasis(self.starts, self.mass, self.values @ directions)


def ranges(mass: np.ndarray, count: int, frequent: float = ATOM) -> np.ndarray:
    """Group values in increasing order, given their masses, into about `count` ranges of equal
    mass, and return the range of each value. Each frequent value gets its own range, as does every
    value if there are at most 16.

    Examples
    --------
    >>> ranges(np.r_[0.5, np.full(20, 0.025)], 4).tolist()
    [0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2]
    """
    if len(mass) <= MOST_LEVELS:
        return np.arange(len(mass))
    group = np.minimum(((np.cumsum(mass) - mass / 2) * count).astype(np.int64), count - 1)
    apart = mass >= frequent
    return np.asarray(np.cumsum(np.r_[False, (group[1:] != group[:-1]) | apart[1:] | apart[:-1]]))


def predictable_directions(
    means: np.ndarray, targets: np.ndarray, weights: np.ndarray
) -> np.ndarray:
    r"""Return orthonormal combinations of the given targets that are predictable from X, (K, R),
    where R is at least 1.

    The combinations are eigenvectors of the symmetric part of :math:`E[\hat m(X) \varphi(S)^\top]`,
    for out-of-fold means (n, K) and targets (n, K). The part of an attribute that x predicts
    usually has few dimensions. A direction is kept if its eigenvalue, the variance along this
    direction that x explains, exceeds both a hundredth of the sum of all eigenvalues and a bound on
    noise: the largest eigenvalue of a symmetric K × K matrix of noise is about :math:`\sqrt{2K}`
    standard errors. Along any other direction, a score of x has almost no gap, since :math:`E[f(X)
    \varphi(S)] = E[f(X) m(X)]`.
    """
    shares = weights / weights.sum()
    covariance = (shares[:, None] * means).T @ targets
    values, vectors = np.linalg.eigh((covariance + covariance.T) / 2)
    products = (means @ vectors) * (targets @ vectors)
    errors = np.sqrt((shares[:, None] ** 2 * (products - values) ** 2).sum(axis=0))
    noise = np.sqrt(2 * len(values)) * errors
    kept = (values > noise) & (values > SMALLEST_SHARE * np.maximum(values, 0).sum())
    kept[-1] = True
    vectors = vectors[:, kept][:, ::-1]
    sign = np.sign(vectors[np.abs(vectors).argmax(axis=0), np.arange(vectors.shape[1])])
    return np.asarray(vectors * sign)
