"""Move the scores of any model towards a law that is the same at every value of an attribute, which must be known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.model_selection import KFold
from sklearn.utils.validation import check_is_fitted

from frhsic import _arrays

__all__ = ["ScoreTransport"]

Array = NDArray[np.float64]

LEAST_ROWS = 50
NODES = 128
"""Largest number of values of S at which the conditional law is estimated; in between it is interpolated."""

THRESHOLDS = 2048
"""Largest number of scores at which the conditional law is estimated."""

LEVELS = 2048
"""Number of equal cells of (0, 1) on which the quantiles of the barycenter are held."""

FOLDS = 5


class ScoreTransport(BaseEstimator):  # type: ignore[misc]  # scikit-learn is untyped
    r"""Transport of scores to the barycenter of their laws given one attribute. **Needs S to predict.**

    .. math:: T(f, s) = (1 - a) f + a \, \bar Q\bigl(F(f \mid s)\bigr), \qquad
        \bar Q(u) = \mathbb E_S \, Q(u \mid S),

    with the conditional distribution function F, the conditional quantiles Q and the dial a. With a = 1 and continuous
    scores, T has the same law at every value of S, and of all such maps the least mean squared move; its mean is that
    of the scores. With a = 0 it is the identity. In between, each conditional quantile moves a straight line, so
    :func:`frhsic.parity.gdp` falls as 1 − a.

    Use it if there is a score but no model to train again, and if the attribute may be used, and is known, at
    prediction: two rows that differ in S alone get different scores, which some laws forbid. Otherwise use
    :class:`frhsic.ParityClassifier` or :mod:`frhsic.boosting`, which need S for training only.

    **Fit it on rows that the model was not trained on.** The scores of training rows are too good, and their law given
    S is not that of new rows. Audit :meth:`transform` of further rows, or :meth:`fit_transform`, which is cross-fitted.

    Parameters
    ----------
    amount : float
        The dial a, from 0 to 1. It may be changed after `fit`.
    resolution : float, optional
        Bandwidth on the ranks of S, a share between 0 and 1. None is :math:`n^{-1/5}/2`: 0.13 for 1,000 rows, 0.08 for
        10,000.
    random_state : int, Generator or None
        Seed of the folds of :meth:`fit_transform`.

    Attributes
    ----------
    law_ : ConditionalLaw
        The estimated laws given S, and their barycenter.
    resolution_ : float
        The bandwidth that was used.
    n_rows_ : int
        Number of rows of `fit`.

    Notes
    -----
    F is smoothed over S by local linear weights on mid-ranks, so increasing maps of S change nothing; a value of S that
    has a larger share of the rows than the resolution is a group of its own. Estimates that are not monotone are
    rearranged. Where scores tie, F jumps, and all tied rows of one s get the mean of :math:`\bar Q` over the jump: the
    mean of T does not depend on S then, while its law still may. One attribute only.

    References
    ----------
    Chzhen, Denis, Hebiri, Oneto and Pontil (2020), *Fair regression with Wasserstein barycenters*. Chernozhukov,
    Fernández-Val and Galichon (2010), *Quantile and probability curves without crossing* (rearrangement).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> s = rng.uniform(size=2000)
    >>> scores = s + 0.1 * rng.normal(size=2000)
    >>> transport = ScoreTransport().fit(scores, s)
    >>> transport
    ScoreTransport() (needs sensitive_features to predict)
    >>> moved = transport.transform([0.2, 0.8], [0.2, 0.8])
    >>> bool(abs(moved[0] - moved[1]) < 0.05)
    True
    """

    law_: ConditionalLaw
    resolution_: float
    n_rows_: int

    def __init__(self, amount: float = 1.0, *, resolution: float | None = None, random_state: Any = 0) -> None:
        self.amount = amount
        self.resolution = resolution
        self.random_state = random_state

    def fit(self, scores: Any, sensitive_features: Any = None) -> Self:
        """Estimate the laws of the scores given S.

        Parameters
        ----------
        scores
            Scores of rows that the model was not trained on: probabilities, log-odds or predictions, of shape (n,).
        sensitive_features
            One attribute of the same rows, of shape (n,).
        """
        self._check_amount()
        f, s = _rows(scores, sensitive_features)
        _arrays.require_rows(len(f), LEAST_ROWS, "the law of scores given S")
        if (s == s[0]).all():
            raise ValueError(f"sensitive_features is {s[0]:g} in every row; no score can depend on it.")
        if self.resolution is not None:
            _arrays.require_fraction(self.resolution, "resolution")
        self.resolution_ = float(len(f) ** -0.2 / 2 if self.resolution is None else self.resolution)
        self.law_ = conditional_law(f, s, self.resolution_)
        self.n_rows_ = len(f)
        return self

    def transform(self, scores: Any, sensitive_features: Any = None) -> Array:
        """Return the transported scores, of shape (n,). Needs the attribute of each row."""
        check_is_fitted(self, "law_")
        amount = self._check_amount()
        f, s = _rows(scores, sensitive_features)
        return np.asarray(f + amount * (self.law_.barycentric(f, s) - f))

    def fit_transform(self, scores: Any, sensitive_features: Any = None) -> Array:
        """Fit on all rows, and return the scores of each fifth of the rows transported by a fit on the others.

        No row influences its own map, so that an audit of the result is of rows not seen. :meth:`transform` of the same
        rows gives other, slightly too good, scores.
        """
        self.fit(scores, sensitive_features)
        f, s = _rows(scores, sensitive_features)
        moved = np.empty_like(f)
        folds = KFold(FOLDS, shuffle=True, random_state=_arrays.seed_of(self.random_state))
        for others, rows in folds.split(f):
            moved[rows] = conditional_law(f[others], s[others], self.resolution_).barycentric(f[rows], s[rows])
        return np.asarray(f + self._check_amount() * (moved - f))

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        return f"{super().__repr__(N_CHAR_MAX)} (needs sensitive_features to predict)"

    def _check_amount(self) -> float:
        if isinstance(self.amount, bool) or not isinstance(self.amount, (int, float, np.number)):
            raise TypeError(f"amount={self.amount!r}; pass a number from 0 (leave scores) to 1 (full transport).")
        if not 0 <= self.amount <= 1:
            raise ValueError(f"amount={self.amount!r}; pass a number from 0 (leave scores) to 1 (full transport).")
        return float(self.amount)


@dataclass(frozen=True, eq=False)
class ConditionalLaw:
    """Laws of a score at some mid-ranks of S (nodes), and their barycenter.

    Attributes
    ----------
    s
        Sorted values of S of the rows that it was fitted on, for the ranks of others.
    nodes
        Increasing mid-ranks, of shape (g,).
    thresholds
        Increasing scores, of shape (k,).
    below, up_to
        Probability of a score below each threshold, and up to it, at each node; of shape (g, k).
    quantiles
        Mean quantile over S in the middle of each of the equal cells of (0, 1).
    """

    s: Array
    nodes: Array
    thresholds: Array
    below: Array
    up_to: Array
    quantiles: Array

    def barycentric(self, f: Array, s: Array) -> Array:
        """Return the mean of the barycenter's quantiles over the jump of the conditional distribution at each score."""
        low, high = self.levels(f, s)
        integral = np.concatenate([[0.0], np.cumsum(self.quantiles)]) / LEVELS
        cells = np.linspace(0.0, 1.0, LEVELS + 1)
        width = np.maximum(high - low, 1.0 / LEVELS)  # a narrower jump is widened to one cell, inside (0, 1)
        start = np.clip((low + high - width) / 2, 0.0, 1.0 - width)
        rise = np.interp(start + width, cells, integral) - np.interp(start, cells, integral)
        return np.asarray(rise / width)

    def levels(self, f: Array, s: Array) -> tuple[Array, Array]:
        """Return F(f−|s) and F(f|s), linear in the mid-rank of s between nodes and in f between thresholds."""
        rank = ranks_among(self.s, s)
        right = np.clip(np.searchsorted(self.nodes, rank), 1, len(self.nodes) - 1)
        gap = self.nodes[right] - self.nodes[right - 1]
        share = np.clip((rank - self.nodes[right - 1]) / gap, 0.0, 1.0)
        k = np.searchsorted(self.thresholds, f, side="right") - 1  # the last threshold that is at most f
        at = (k >= 0) & (self.thresholds[np.maximum(k, 0)] == f)
        last = len(self.thresholds) - 1
        previous, following = np.clip(k, 0, last), np.clip(k + 1, 0, last)
        span = self.thresholds[following] - self.thresholds[previous]
        part = np.where(span > 0, (f - self.thresholds[previous]) / np.where(span > 0, span, 1.0), 0.0)

        def mixed(table: Array, column: NDArray[np.int64]) -> Array:
            return np.asarray((1 - share) * table[right - 1, column] + share * table[right, column])

        between = mixed(self.up_to, previous) * (1 - part) + mixed(self.below, following) * part
        between = np.where(k < 0, 0.0, np.where(k >= last, 1.0, between))
        low = np.where(at, mixed(self.below, previous), between)
        return low, np.where(at, mixed(self.up_to, previous), between)


def conditional_law(f: Array, s: Array, resolution: float) -> ConditionalLaw:
    """Estimate the law of f given s by local linear weights on the mid-ranks of s."""
    ordered = np.sort(s)
    rank = ranks_among(ordered, s)
    values, counts = np.unique(rank, return_counts=True)
    large = values[counts >= resolution * len(f)]
    nodes = values
    if len(values) > NODES:
        spread = values[np.linspace(0, len(values) - 1, NODES).round().astype(int)]
        nodes = np.unique(np.concatenate([spread, large]))
    thresholds = np.unique(f)
    if len(thresholds) > THRESHOLDS:
        thresholds = np.unique(np.quantile(f, np.linspace(0, 1, THRESHOLDS), method="nearest"))
    order = np.lexsort((s, f))  # by s too, so that no result depends on the order of the rows
    places = np.stack([np.searchsorted(f[order], thresholds, side=side) for side in ("left", "right")], axis=1).ravel()
    steps = np.empty((len(nodes), len(places)))
    for step, node in zip(steps, nodes):
        weights = _weights(rank, node, resolution, alone=bool(np.isin(node, large)))
        step[:] = np.sort(np.concatenate([[0.0], np.cumsum(weights[order])])[places].clip(0.0, 1.0))
    below, up_to = steps[:, ::2], steps[:, 1::2]
    middle = (np.arange(LEVELS) + 0.5) / LEVELS
    conditional = np.stack([_quantiles(thresholds, a, b, middle) for a, b in zip(below, up_to)])
    return ConditionalLaw(ordered, nodes, thresholds, below, up_to, _shares(rank, nodes) @ conditional)


def ranks_among(ordered: Array, s: Array) -> Array:
    """Return the mid-ranks of values of s in a sorted sample, as shares of it."""
    ranks = np.searchsorted(ordered, s, side="left") + np.searchsorted(ordered, s, side="right")
    return np.asarray(ranks / (2 * len(ordered)))


def _weights(rank: Array, node: float, resolution: float, *, alone: bool) -> Array:
    """Return the weights of the rows at one node; they sum to one."""
    if alone:
        own = (rank == node).astype(np.float64)
        return np.asarray(own / own.sum())
    away = (rank - node) / resolution
    kernel = np.exp(-(away**2) / 2)
    # A small ridge: where all rows nearby share one value of s, the weights are those of a local mean.
    first, second = kernel @ away, kernel @ away**2 + 1e-4 * kernel.sum()
    weights = kernel * (second - first * away)
    return np.asarray(weights / weights.sum())


def _quantiles(thresholds: Array, below: Array, up_to: Array, levels: Array) -> Array:
    """Return quantiles: a threshold on the levels of its jump, linear in between."""
    heights = np.stack([below, up_to], axis=1).ravel()
    return np.asarray(np.interp(levels, heights, np.repeat(thresholds, 2)))


def _shares(rank: Array, nodes: Array) -> Array:
    """Return the share of the rows at each node; a row between two nodes is divided between them."""
    right = np.clip(np.searchsorted(nodes, rank), 1, len(nodes) - 1)
    part = np.clip((rank - nodes[right - 1]) / (nodes[right] - nodes[right - 1]), 0.0, 1.0)
    shares = np.bincount(right, part, len(nodes)) + np.bincount(right - 1, 1 - part, len(nodes))
    return np.asarray(shares / len(rank))


def _rows(scores: Any, sensitive_features: Any) -> tuple[Array, Array]:
    if sensitive_features is None:
        raise TypeError(
            "sensitive_features is None: transport moves a score by the law of scores at the row's own value of S, so "
            "it needs S to fit and to predict. If S is not known at prediction, train a model with a penalty instead "
            "(frhsic.ParityClassifier, frhsic.boosting)."
        )
    columns = _arrays.matrix(sensitive_features, "sensitive_features").shape[1]
    if columns > 1:
        raise ValueError(
            f"sensitive_features has {columns} columns; transport is given one attribute. Pass one column."
        )
    f = _arrays.to_numpy(_arrays.vector(scores, "scores")).astype(np.float64)
    s = _arrays.to_numpy(_arrays.vector(sensitive_features, "sensitive_features")).astype(np.float64)
    if len(f) != len(s):
        raise ValueError(f"lengths differ: scores has {len(f)} rows, sensitive_features has {len(s)}.")
    return f, s
