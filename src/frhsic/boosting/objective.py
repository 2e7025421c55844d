"""Loss plus a penalty on dependence, as LightGBM and XGBoost take it: gradient and curvature of every row."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import expit, logit
from scipy.stats import rankdata

from frhsic import _arrays
from frhsic.dependence.operators import pivoted_cholesky
from frhsic.kernels import Kernel, PerColumn, default_gaussian

Array = NDArray[np.float64]
Task = Literal["binary", "regression"]

MAX_RANK = 1000
"""Largest number of columns of the factor of the Gram matrix of S; one attribute needs about 15."""


@dataclass(frozen=True, eq=False)
class ParityObjective:
    r"""Mean loss plus a weighted HSIC of predictions and sensitive attributes; made by :func:`objective`.

    An object is called as ``objective(raw_scores, data)`` by LightGBM (``params["objective"]``) and by XGBoost
    (``obj=``), and returns gradient and curvature of each row. Both libraries sum over rows, so these are those of
    :meth:`value` times the sum of the sample weights.

    Attributes
    ----------
    weight
        λ.
    task
        ``"binary"`` or ``"regression"``.
    learning_rate
        Learning rate of the booster; see :meth:`curvature`.
    factor
        C of shape (n, r), with :math:`HLH = CC^\top` for the Gram matrix L of S and the centering matrix H. If S is
        known for m of the n rows, the others are zero, and C is that of the known rows times n/m.
    left_out
        Share of the trace of L that the factor leaves out: rounding, unless it would need more than 1,000 columns.
    bound
        σ, the largest eigenvalue of :math:`C^\top C / n`.
    known
        Rows whose S is known, (n,): the penalty is that of these rows.
    """

    weight: float
    task: Task
    learning_rate: float
    factor: Array
    left_out: float
    bound: float
    known: NDArray[np.bool_]

    def hsic(self, raw_scores: Any) -> float:
        r"""Return HSIC of the predictions, :math:`q^\top H L H q / n^2 = \|C^\top q\|^2 / n^2`."""
        return float((self._moments(self._predictions(self._rows(raw_scores))) ** 2).sum())

    def value(self, raw_scores: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the mean loss plus λ times HSIC. The loss is cross-entropy, or squared error for a regression."""
        f, target, shares, _ = self._inputs(raw_scores, y, sample_weight)
        losses = np.logaddexp(0.0, f) - target * f if self.task == "binary" else (f - target) ** 2
        return float(shares @ losses) + self.weight * self.hsic(f)

    def unbiased_value(self, raw_scores: Any, y: Any, sample_weight: Any = None) -> float:
        r"""Return :meth:`value` without the terms of HSIC that pair a row with itself.

        On independent rows these terms make HSIC positive by O(1/n), which a large λ multiplies. Use this value to stop
        early on held-out rows, with an objective made from their attributes.
        """
        q = self._predictions(self._rows(raw_scores))
        own = ((self.factor**2).sum(axis=1) * (q - q[self.known].mean()) ** 2).sum() / len(q) ** 2
        return self.value(raw_scores, y, sample_weight) - self.weight * float(own)

    def gradient(self, raw_scores: Any, y: Any, sample_weight: Any = None) -> Array:
        """Return the gradient of :meth:`value` with respect to the raw scores, of shape (n,)."""
        f, target, shares, _ = self._inputs(raw_scores, y, sample_weight)
        q = self._predictions(f)
        slope = self._slope(q)
        loss = q - target if self.task == "binary" else 2 * (f - target)
        penalty = (2 / len(f)) * slope * (self.factor @ self._moments(q))
        return np.asarray(shares * loss + self.weight * penalty)

    def curvature(self, raw_scores: Any, y: Any, sample_weight: Any = None) -> Array:
        r"""Return a positive curvature for each row, of shape (n,).

        .. math:: v_i \ell''_i + \lambda \, \frac{\nu}{2} \, \frac{2 \sigma q_i'^2}{n}

        with the row's share v of the sample weights, the learning rate ν, the slope q' of the link, and σ = `bound`.
        Without the factor ν/2 the last term is a bound on the second derivative of the penalty in every direction of
        the scores (for a probability, without the curvature of the link). A booster makes only ν of a Newton step, so
        ν/2 times the bound is the least under which a tree cannot raise the quadratic part. The whole bound slows
        learning by up to 2/ν. The diagonal of the second derivative ignores that rows of one leaf move together, and
        diverges.
        """
        f, _, shares, _ = self._inputs(raw_scores, y, sample_weight)
        slope = self._slope(self._predictions(f))
        loss = slope if self.task == "binary" else 2.0
        reached = np.where(self.known, slope, 0.0)
        return np.asarray(shares * loss + self.weight * self.bound * self.learning_rate * reached**2 / len(f))

    def base_score(self, y: Any, sample_weight: Any = None) -> float:
        """Return the best constant raw score: the log-odds of y, or its mean.

        Neither library adds a base score under a custom objective. Pass it as `init_score` or `base_margin`, and add it
        to the scores that the booster predicts.
        """
        _, target, shares, _ = self._inputs(np.zeros(len(self.factor)), y, sample_weight)
        mean = float(shares @ target)
        if self.task == "regression":
            return mean
        if not 0 < mean < 1:
            raise ValueError(f"y is {mean:g} in every row that has a weight; rows of both classes are needed.")
        return float(logit(mean))

    def __call__(self, raw_scores: Any, data: Any) -> tuple[Array, Array]:
        """Return gradient and curvature for a LightGBM Dataset or an XGBoost DMatrix with labels and weights."""
        y, weights = data.get_label(), data.get_weight()
        return self.summed(raw_scores, y, None if weights is None or len(weights) == 0 else weights)

    def summed(self, raw_scores: Any, y: Any, sample_weight: Any = None) -> tuple[Array, Array]:
        """Return gradient and curvature times the sum of the sample weights, without a data object."""
        *_, total = self._inputs(raw_scores, y, sample_weight)
        gradient = self.gradient(raw_scores, y, sample_weight)
        return total * gradient, total * self.curvature(raw_scores, y, sample_weight)

    def _moments(self, q: Array) -> Array:
        return np.asarray(self.factor.T @ (q - q[self.known].mean()) / len(q))

    def _predictions(self, f: Array) -> Array:
        return np.asarray(expit(f)) if self.task == "binary" else f

    def _slope(self, q: Array) -> Array:
        return q * (1 - q) if self.task == "binary" else np.ones_like(q)

    def _rows(self, raw_scores: Any) -> Array:
        f = np.asarray(raw_scores, dtype=np.float64)
        if f.shape != (len(self.factor),):
            raise ValueError(
                f"raw scores have shape {f.shape}; the objective was made for {len(self.factor)} rows of one score. "
                "Pass the sensitive attributes of exactly the rows that are trained on, in their order."
            )
        return f

    def _inputs(self, raw_scores: Any, y: Any, sample_weight: Any) -> tuple[Array, Array, Array, float]:
        """Return scores, target, shares of the sample weights and their sum."""
        f, target = self._rows(raw_scores), np.asarray(y, dtype=np.float64)
        if target.shape != f.shape:
            raise ValueError(f"y has shape {target.shape} for {len(f)} rows; pass one number for each.")
        if self.task == "binary" and not ((target == 0) | (target == 1)).all():
            raise ValueError("y holds values other than 0 and 1; encode the two classes as 0 and 1.")
        if sample_weight is None:
            return f, target, np.full(len(f), 1 / len(f)), float(len(f))
        weights = np.asarray(sample_weight, dtype=np.float64)
        total = float(weights.sum())
        if not (weights.shape == f.shape and weights.min() >= 0 and 0 < total < math.inf):
            raise ValueError("sample_weight must have one finite number per row, none negative and not all zero.")
        return f, target, weights / total, total


def objective(s: Any, weight: float, task: Task = "binary", *, learning_rate: float = 0.1) -> ParityObjective:
    r"""Make a custom objective for LightGBM or XGBoost whose predictions depend less on sensitive attributes.

    .. math:: \frac1n \sum_i \ell(f_i, y_i) + \lambda \, \mathrm{HSIC}(q, S), \qquad
        \mathrm{HSIC}(q, S) = \frac{1}{n^2} \sum_{ij} (q_i - \bar q)(q_j - \bar q)\, \kappa(r_i, r_j)

    Here f is the raw score of the trees and q the prediction: the probability of a binary target, or f itself. The
    kernel on predictions is linear, so zero means that no smooth function of S correlates with the prediction: its mean
    does not follow S. The spread of the predictions still may. The kernel on S is Gaussian on the mid-ranks r of each
    attribute, at their median distance, and the product over several attributes. Increasing maps of an attribute
    change nothing. A pivoted Cholesky factor of r columns makes value and gradient exact in O(n r), with no n × n
    matrix.

    HSIC also falls if the predictions merely shrink, so look at :func:`frhsic.parity.standardized_gdp` of held-out rows
    beside :func:`frhsic.parity.gdp`.

    Parameters
    ----------
    s
        Sensitive attributes of the training rows, (n,) or (n, q), in the order of the training data. Rows with NaN
        have no part in the penalty. Row subsampling by the booster is fine.
    weight
        λ, zero or more. Try 1 to 1,000 for probabilities. For a regression the trade-off does not depend on the unit
        of y; try 1 to 100.
    task
        ``"binary"`` (y is 0 or 1) or ``"regression"`` (squared error).
    learning_rate
        That of the booster. It damps the curvature of the penalty; see :meth:`ParityObjective.curvature`.

    Examples
    --------
    >>> penalized = objective([20.0, 30.0, 40.0, 50.0], weight=10.0, task="regression")
    >>> penalized.hsic([1.0, 1.0, 1.0, 1.0])
    0.0
    >>> penalized.hsic([1.0, 2.0, 3.0, 4.0]) > penalized.hsic([1.0, 4.0, 1.0, 4.0])
    True

    With LightGBM, for data with the same rows:

    >>> train = lightgbm.Dataset(X, y, init_score=...)  # doctest: +SKIP
    >>> lightgbm.train({"objective": penalized}, train)  # doctest: +SKIP
    """
    if task not in get_args(Task):
        raise ValueError(f"task={task!r}; pass 'binary' or 'regression'. Several classes are not supported.")
    _arrays.require_nonnegative(weight, "weight")
    _arrays.require_positive(learning_rate, "learning_rate")
    ranks = midranks(s)
    known = np.asarray(~np.isnan(ranks).any(axis=1))
    ranks = ranks[known]
    values, row = np.unique(ranks, axis=0, return_inverse=True)
    factor, left_out = pivoted_cholesky(kernel_on_ranks(ranks), torch.from_numpy(values), max_rank=MAX_RANK)
    columns = _arrays.to_numpy(factor)[row.ravel()]
    columns = (columns - columns.mean(axis=0)) * (len(known) / known.sum())
    whole = np.zeros((len(known), columns.shape[1]))
    whole[known] = columns
    bound = float(np.linalg.eigvalsh(whole.T @ whole / len(whole))[-1])
    return ParityObjective(float(weight), task, float(learning_rate), whole, left_out, bound, known)


def midranks(s: Any, name: str = "s") -> Array:
    """Return each column as mid-ranks divided by the number of rows: in (0, 1], ties share their mean rank.

    Rows with NaN have no rank and do not count.

    Examples
    --------
    >>> midranks([10.0, 30.0, 30.0, 1e9]).ravel().tolist()
    [0.25, 0.625, 0.625, 1.0]
    """
    values = _arrays.to_numpy(_arrays.matrix(s, name, allow_missing=True))  # ranks take any magnitude
    known = ~np.isnan(values).any(axis=1)
    if not known.any():
        raise ValueError(f"{name} holds NaN in each of its {len(known)} rows; pass rows that have it.")
    for label, column in zip(_arrays.column_names(s, name, values.shape[1]), values[known].T):
        if (column == column[0]).all():
            raise ValueError(f"{label!r} is {column[0]:g} in every row; nothing can depend on it. Leave it out.")
    ranks = np.full(values.shape, np.nan)
    ranks[known] = rankdata(values[known], axis=0) / known.sum()
    return ranks


def kernel_on_ranks(ranks: Array) -> Kernel:
    """Return the product over columns of Gaussians at the median distance (of the non-zero ones, where that is 0)."""
    return PerColumn(tuple(default_gaussian(column, name="ranks of s")[0] for column in ranks.T))
