"""Predictors with a parity limit: a classifier and a regressor."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from frhsic import _arrays
from frhsic.estimators.constraints import LabelledRows
from frhsic.estimators.inputs import named_arguments, require_scores
from frhsic.estimators.predictor import ParityEstimator
from frhsic.estimators.solution import Solution
from frhsic.estimators.targets import log_losses
from frhsic.scoring import auc_and_influence, mean_and_error, weighted_moments


class ParityClassifier(ClassifierMixin, ParityEstimator):
    r"""Classifier that minimizes the log loss while the gap with respect to a continuous attribute
    stays within a limit.

    .. math:: \min_f \; E\,\ell(f(X), Y) \quad \text{subject to} \quad
        E\,\bigl|E[f(X) | S] - E f(X)\bigr| \le \text{limit}

    over all functions f of x. The solution shifts :math:`\eta(x) = P(Y = 1 | x)` along conditional
    means :math:`m_k(x) = E[\varphi_k(S) | x]`. Both are ordinary regressions, fitted out of fold; a
    few coefficients are then computed for every trade-off. Use this classifier to reduce the gap in
    scores, ranks or decisions. The attributes are required by `fit`, and by `predict` only with
    `uses_sensitive`.

    Parameters
    ----------
    estimator : classifier, FrozenEstimator, function or None
        Model for y, fitted out of fold. For a model in production, which was trained on other rows
        and must not be refitted, pass ``FrozenEstimator(model)`` or a function of X. None uses a
        weighted mean of additive splines and LightGBM trees, with weights chosen on held-out rows.
    limit : number, str, dict or None
        A number is a bound on the gap, in the unit of `aim`; see `confidence`. A share of the
        unconstrained gap such as "50%", or 0 for the smallest gap, is a target for the estimate.
        None sets no constraint. A dictionary sets a limit for each attribute.
    aim : {"score", "rank", "decision"}
        Whether to limit the gap in mean scores, in ranks of the score
        (:func:`~frhsic.parity.rank_gap`) or in decisions of `predict`. Decisions minimize the error
        rate instead of the log loss; if one class has less than 20 % of the rows, both classes have
        equal weight (balanced accuracy).
    condition : {None, "positive", "both"}
        Whether to compare all rows (None), only the rows of ``classes_[1]`` (equal opportunity), or
        the rows of each class (equalized odds).
    uses_sensitive : bool
        Whether predictions may use the attributes. The limit then costs less accuracy, but
        `predict` requires `sensitive_features`.
    confidence : float or None
        A numeric limit is compared with the upper end of the gap's interval at this confidence or,
        if None, with the estimate. If no upper end meets the limit, the closest trade-off among
        those whose estimates meet it is chosen, and a warning says about how many rows would be
        needed to show that the limit is met.
    attribute_estimator : regressor, optional
        Model for the :math:`m_k`. None uses the default model, but only for the combinations of
        functions that a small preliminary model can predict from x. Your own model is fitted to all
        functions.
    cv : int, splitter or list
        Number of folds, or custom folds as in scikit-learn: a splitter such as ``GroupKFold()``, or
        pairs of row indices (train, test). Each row must be in exactly one test set.
    n_jobs, random_state
        Number of threads that BLAS, OpenMP, LightGBM and XGBoost use during a call (one for None,
        all cores for -1), unless your own model sets `n_jobs`; and the seed for folds and models.

    Attributes
    ----------
    frontier_ : Frontier or None
        All trade-offs, measured out of fold; None without attributes.
    choice_ : Choice or None
        The trade-off in use, with its gaps; None without attributes.
    classes_ : ndarray
        The labels, sorted.
    models_ : list
        For each fold, your own fitted model for y.
    attribute_models_ : list
        For each fold, your own fitted models for the :math:`m_k`.
    solution_
        The coefficients of every trade-off.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> s = rng.uniform(size=400)
    >>> X = np.column_stack([s + 0.3 * rng.normal(size=400), rng.normal(size=400)])
    >>> y = X.sum(axis=1) + 0.5 * rng.normal(size=400) > 0.5
    >>> model = ParityClassifier(limit="50%", random_state=0).fit(X, y, sensitive_features=s)
    >>> bool(
    ...     model.choice_.gaps["sensitive"].value
    ...     <= 0.51 * model.choice_.unconstrained["sensitive"].value
    ... )
    True
    >>> tighter = model.at("40%")
    """

    @named_arguments
    def predict_proba(
        self, X: Any, *, sensitive_features: Any = None, control_features: Any = None
    ) -> np.ndarray:
        """Return the probability of each class, of shape (n, C). Columns that the model does not
        use are ignored; `control_features` are required unless they are columns of X.
        """
        scores = self._scores(X, sensitive_features, control_features)
        scores = require_scores(scores, probabilities=True)
        return scores if scores.ndim == 2 else np.column_stack([1 - scores, scores])

    @named_arguments
    def predict(
        self, X: Any, *, sensitive_features: Any = None, control_features: Any = None
    ) -> np.ndarray:
        """Return labels: for two classes, the second label if its probability exceeds `threshold_`;
        for more classes, the most probable label.

        With ``aim="decision"`` or ``"rank"``, the content of a row determines the fold whose models
        score the row, as in `fit`, so that predictions have the gap that was measured. With
        `groups` or custom folds, the models of the first fold score all rows.
        """
        chances = self.predict_proba(
            X, sensitive_features=sensitive_features, control_features=control_features
        )
        if len(self.classes_) > 2:
            return np.asarray(self.classes_[chances.argmax(axis=1)])
        return np.asarray(self.classes_[(chances[:, 1] > self.threshold_).astype(np.int64)])

    @property
    def threshold_(self) -> float:
        """Score above which `predict` returns the second of two classes."""
        check_is_fitted(self)
        return 0.5 if self.solution_ is None else self.solution_.units.threshold

    def _codes(self, y: np.ndarray) -> np.ndarray:
        check_classification_targets(y)
        self.classes_ = np.unique(y)
        if len(self.classes_) < 2:
            raise ValueError(
                f"Classifier can't train when only one class is present: {self.classes_.tolist()}."
            )
        if len(self.classes_) > 2 and (self.aim != "score" or self.condition is not None):
            raise ValueError(
                f"y has {len(self.classes_)} classes, which requires aim='score' and"
                " condition=None."
            )
        return np.searchsorted(self.classes_, y).astype(np.float64)

    def _losses(self, eta: np.ndarray, y: np.ndarray) -> np.ndarray:
        return log_losses(eta, y)

    def _performance(
        self, sample: LabelledRows, scores: np.ndarray, solution: Solution
    ) -> dict[str, float]:
        y = sample.y
        weights = sample.mass
        values = {}
        if not solution.family.decides:
            values = _mean_and_error("log_loss", self._losses(scores, y), weights)
        if scores.ndim == 2:
            right = scores.argmax(axis=1) == y
            return values | {"accuracy": float(np.average(right, weights=weights))}
        right = (scores > solution.units.threshold) == y
        recalls = [np.average(right[y == label], weights=weights[y == label]) for label in (0, 1)]
        return values | {
            "auc": auc_and_influence(scores, y, weights)[0],
            "accuracy": float(np.average(right, weights=weights)),
            "balanced_accuracy": float(np.mean(recalls)),
        }


class ParityRegressor(RegressorMixin, ParityEstimator):
    r"""Regressor that minimizes the squared error while the gap with respect to a continuous
    attribute stays within a limit.

    .. math:: \min_f \; E\,(f(X) - Y)^2 \quad \text{subject to} \quad
        E\,\bigl|E[f(X) | S] - E f(X)\bigr| \le \text{limit}, \qquad f = \eta - \sum_k c_k m_k

    See :class:`ParityClassifier` for the method and the fitted attributes.

    Parameters
    ----------
    estimator, limit, uses_sensitive, confidence, attribute_estimator, cv, n_jobs, random_state
        As in :class:`ParityClassifier`, but `estimator` is a regressor, and a numeric limit has the
        unit of y.
    aim : {"score", "rank"}
        Whether to limit the gap in mean predictions or in their ranks.
    condition : None
        Conditions require two classes.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> s = rng.uniform(size=400)
    >>> X = np.column_stack([s + 0.1 * rng.normal(size=400), rng.normal(size=400)])
    >>> model = ParityRegressor(random_state=0).fit(X, X.sum(axis=1), sensitive_features=s)
    >>> model.choice_.met
    True
    """

    @named_arguments
    def predict(
        self, X: Any, *, sensitive_features: Any = None, control_features: Any = None
    ) -> np.ndarray:
        """Return predictions of shape (n,). Columns that the model does not use are ignored;
        `control_features` are required unless they are columns of X.
        """
        scores = self._scores(X, sensitive_features, control_features)
        return require_scores(scores, probabilities=False)

    @property
    def _largest_gap(self) -> float:
        return np.inf if self.aim == "score" else super()._largest_gap

    def _check(self) -> None:
        super()._check()
        if self.aim == "decision" or self.condition is not None:
            raise ValueError(
                "a regressor supports only aim='score' or 'rank', and condition=None. For decisions"
                " or conditions, use ParityClassifier."
            )

    def _codes(self, y: np.ndarray) -> np.ndarray:
        return _arrays.vector(np.asarray(y, dtype=np.float64), "y")

    def _losses(self, eta: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.asarray((eta - y) ** 2)

    def _performance(
        self, sample: LabelledRows, scores: np.ndarray, solution: Solution
    ) -> dict[str, float]:
        return _mean_and_error("squared_error", self._losses(scores, sample.y), sample.mass)


def _mean_and_error(name: str, values: np.ndarray, weights: np.ndarray) -> dict[str, float]:
    center = float(np.average(values, weights=weights))
    return mean_and_error(name, weighted_moments(values - center, weights), center)
