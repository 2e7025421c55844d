"""Transformer that learns a representation independent of sensitive attributes, for heads fitted
later.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import ndtri
from sklearn.utils.multiclass import type_of_target
from torch import nn

from frhsic.estimators.inputs import target_column
from frhsic.estimators.network import NetworkEstimator
from frhsic.penalties import Penalty
from frhsic.tables.columns import read_sensitive
from frhsic.tables.encoding import Scaling, Unknown
from frhsic.training import MLP, Training
from frhsic.training.recipe import Task

# Number of knots of each attribute, and least number of rows for each; fewer rows have fewer knots,
# down to two.
KNOTS, ROWS_PER_KNOT = 13, 10


class ParityEncoder(NetworkEstimator):
    r"""Transformer: a representation Z = h(X) trained to be independent of continuous sensitive
    attributes.

    .. math:: \min_{h, f} \; \frac1n \sum_i \ell(f(h(x_i)), y_i) + \lambda \cdot
        \text{penalty}(h(x), s)
        + \tfrac w2 \|W\|^2.

    With y the head f predicts y: labels by cross-entropy, continuous numbers by the squared error
    of the standardized y (scikit-learn's ``type_of_target`` decides which). Without y it
    reconstructs what the attributes do not tell of the scaled columns, :math:`\ell = \frac1d \|f(z)
    - (x - \hat E[x \mid s]) / \sigma\|^2` with :math:`\sigma^2` their mean variance, so that Z
    gains nothing from carrying S. The attributes are needed to fit, not to transform.

    Pass y if the tasks to come resemble it: Z then keeps little else. Leave it out if they are
    unknown: Z keeps more of X, and more of S with it. :func:`frhsic.probe_heads` measures what
    heads on Z still recover of S.

    Parameters
    ----------
    penalty, penalty_weight, encoder, training, scaling, handle_unknown, device, random_state
        As in :class:`FRHSICClassifier`, with other defaults. `encoder` is ``MLP((128, 128), 16,
        "gelu")``, whose Z has 50 columns without y. `training` is ``Training(epochs="auto",
        schedule="cosine", early_stopping="auto")``. Without y, "hsic" drops the term of the head,
        and the default weight decay is 0.

    Attributes
    ----------
    task_ : str
        "binary", "multiclass", "regression" or "reconstruction". The others are those of
        :class:`FRHSICClassifier`.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> s = rng.uniform(size=100)
    >>> X = np.column_stack([s + 0.1 * rng.normal(size=100), rng.normal(size=100)])
    >>> encoder = ParityEncoder(encoder=MLP(size=2), random_state=0)
    >>> encoder.fit_transform(X, sensitive_features=s).shape
    (100, 2)
    """

    task_: Task
    _default_training = Training(epochs="auto", schedule="cosine", early_stopping="auto")

    def __init__(
        self,
        penalty: str | Penalty = "hsic",
        penalty_weight: float = 10.0,
        *,
        encoder: nn.Module | Callable[[int], nn.Module] | None = None,
        training: Training | None = None,
        scaling: Scaling = "robust",
        handle_unknown: Unknown = "ignore",
        device: str = "auto",
        random_state: Any = None,
    ) -> None:
        options: Any = {
            "encoder": encoder,
            "training": training,
            "scaling": scaling,
            "handle_unknown": handle_unknown,
        }
        super().__init__(
            penalty, penalty_weight, **options, device=device, random_state=random_state
        )

    @property
    def _default_encoder(self) -> MLP:  # type: ignore[override]  # read only
        # a score needs few directions; a reconstruction needs many
        return MLP((128, 128), 50 if self.task_ == "reconstruction" else 16, "gelu")

    def _target(
        self, y: Any, x: np.ndarray, s: Any, weights: Any, classes: Any
    ) -> tuple[np.ndarray, Task]:
        task = getattr(self, "task_", None)
        if task is not None and (y is None) != (task == "reconstruction"):
            raise ValueError(
                f"the first call was for {task}, this one has {'no y' if y is None else 'a y'}."
            )
        if y is None:
            self.task_ = "reconstruction"
            return _reconstruction(x, s, weights), self.task_
        kind = task or type_of_target(target_column(self, y), input_name="y", raise_unknown=True)
        if kind not in ("continuous", "regression", "binary", "multiclass"):
            raise ValueError(f"y is {kind}; pass one column of labels or numbers, or None.")
        values, self.task_ = (
            self._numbers(y) if kind in ("continuous", "regression") else self._labels(y)
        )
        return values, self.task_


def _reconstruction(
    x: np.ndarray, sensitive_features: Any, weights: np.ndarray | None
) -> np.ndarray:
    r"""Return :math:`(x - \hat E[x \mid s]) / \sigma`; where no attribute is known the mean is
    taken.
    """
    values = x - np.average(x, axis=0, weights=weights)
    variance = float(np.average(values**2, axis=0, weights=weights).mean())
    if sensitive_features is not None:
        s = read_sensitive(sensitive_features, allow_missing=True).values
        known = ~np.isnan(s).any(axis=1)
        values[known] = residuals(x[known], s[known], None if weights is None else weights[known])
    return np.asarray(values / (np.sqrt(variance) or 1.0))


def rank_hats(s: np.ndarray) -> np.ndarray:
    """Return the hat functions of rows (n, q), one block for each attribute: linear splines in the
    ranks of the rows.

    Examples
    --------
    Few values have a knot each, and the hat functions are their indicators.

    >>> rank_hats(np.repeat([1.0, 2.0, 7.0], 10)[:, None])[::10].round(2).tolist()
    [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """
    most, blocks = int(np.clip(len(s) // ROWS_PER_KNOT, 2, KNOTS)), []
    for column in s.T:
        _, place, counts = np.unique(column, return_inverse=True, return_counts=True)
        capped = np.minimum(counts, len(s) / KNOTS)
        score = ndtri((np.cumsum(capped) - capped / 2) / capped.sum())
        inner = np.clip(ndtri(np.linspace(0, 1, most)[1:-1]), score[0], score[-1])
        knots = score if len(score) <= most else np.unique([score[0], *inner, score[-1]])
        blocks += [np.interp(score[place], knots, one) for one in np.eye(len(knots))]
    return np.stack(blocks, axis=1)


def residuals(x: np.ndarray, s: np.ndarray, sample_weight: np.ndarray | None = None) -> np.ndarray:
    r"""Return x (n, d) without its conditional mean given s (n, q), :math:`x - \hat E[x \mid s]`.

    The conditional mean is a least-squares fit to the same rows of a linear spline in each
    attribute,

    .. math:: \hat E[x \mid s] = \sum_a \sum_k b_{ak}\, \Lambda_{ak}(g_a(s_a)),

    where :math:`g_a(s)` is the normal score of the rank of s among the training rows, and
    :math:`\Lambda_{ak}` the hat function of knot k: one at this knot, zero at all others, linear
    between. Ranks make the fit the same for every increasing map of an attribute, and normal scores
    leave few rows of a tail to one line. A value that many rows share moves the ranks by one knot
    at most, and up to 13 different values have a knot each. Several attributes add up; their
    interactions stay in the residuals.

    Examples
    --------
    A column that is a function of s leaves nothing; one that is not keeps its variance.

    >>> s = np.repeat([1.0, 2.0, 7.0], 10)[:, None]
    >>> noise = np.tile([-1.0, 1.0], 15)[:, None]
    >>> residuals(np.hstack([s**2, noise]), s).std(axis=0).round(2).tolist()
    [0.0, 1.0]
    """
    root = np.sqrt(np.ones(len(x)) if sample_weight is None else sample_weight)[:, None]
    basis = rank_hats(s)
    coefficients, *_ = np.linalg.lstsq(root * basis, root * x, rcond=None)
    return np.asarray(x - basis @ coefficients)
