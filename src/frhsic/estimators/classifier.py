"""Classification with a penalty on the dependence of the representation on sensitive attributes."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from scipy.special import expit, softmax
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets, unique_labels
from sklearn.utils.validation import check_is_fitted

from frhsic.estimators.base import ParityBase, Target
from frhsic.estimators.checks import target_column

__all__ = ["ParityClassifier"]


class ParityClassifier(ClassifierMixin, ParityBase):  # type: ignore[misc]  # scikit-learn is untyped
    r"""Classifier whose representation is trained to be independent of continuous sensitive attributes.

    .. math:: \min_{h, f} \; \frac1n \sum_i \ell(f(h(x_i)), y_i) + \lambda \cdot \text{penalty}(h(x), s)
        + \tfrac w2 \|W\|^2,

    with an encoder h, an affine head f, the cross-entropy :math:`\ell`, λ the `penalty_weight` and w the `weight_decay`
    of the encoder's weights W. Larger λ leaves less dependence and costs accuracy; :func:`frhsic.select_weight` chooses
    it. The attributes are needed to fit, not to predict. What is left of the dependence is to be measured on rows that
    were not trained on: :func:`frhsic.audit`.

    Parameters
    ----------
    penalty : str or Penalty
        A name (see :func:`frhsic.estimators.penalty_named`) or an object of :mod:`frhsic.penalties`, such as
        ``HSIC(condition="positive")`` for Equal Opportunity (the positive class is ``classes_[1]``).
    penalty_weight : float
        λ, zero or more.
    encoder : module, callable or None
        None is the paper's, d → 50 (SELU) → 50. A function is called with the number of encoded columns and makes a
        module; a module is copied, its own weights being the start.
    hidden_layer_sizes, representation_size
        Widths of the default encoder's hidden layers and of Z.
    epochs, batch_size, learning_rate
        Of Adam; the defaults are the paper's. The last, smaller batch of an epoch is kept, so fewer rows than
        `batch_size` are one batch.
    weight_decay : float, optional
        w, of the encoder's weight matrices W. None is 1e-3 with the default penalty and its variants (those on
        standardised or whitened Z), and 0 with the paper's methods, which are trained as the paper did, and without y;
        see :func:`frhsic.estimators.weight_decay_of`.
    variance_floor : float, optional
        After training, the principal directions of Z with less variance than this are taken out of it, a coordinate's
        own being 1: where S is left when the penalty has taken it out of the others. From 0, which leaves Z as it is,
        to below 1; None is 0.01 with the default penalty and its variants, with y or without, and 0 with the paper's
        methods and with a penalty on the head alone. Z keeps its number of columns, which are then collinear. The head
        is not fitted again. Nothing is cut with λ = 0, nor where there are fewer than four rows for each coordinate of
        Z; a `partial_fit` on so few goes on through the cut of before.
    handle_unknown : {"error", "ignore"}
        A category at predict that no training row has: an error that names it, or a row without level.
    feature_encoding, sensitive_encoding : TableEncoding, optional
        Scales and levels to use in place of those of the training rows (of the first call to `partial_fit`).
    warm_start : bool
        Whether `fit` goes on from the weights, scales and classes of the last call.
    device : str
        "auto" takes a GPU where there is one.
    random_state : int, Generator, RandomState or None
        Decides initial weights and batches.
    verbose : bool
        Show a progress bar on a terminal.

    Attributes
    ----------
    classes_ : ndarray
        Labels of the classes.
    encoder_, head_ : torch.nn.Module
        The trained modules, on the CPU.
    narrowed_ : bool
        Whether the floor was put under Z; `encoder_` then ends with the cut.
    representation_rank_ : int
        How many directions of Z are left.
    penalty_ : Penalty
        The penalty as it stood at the end of training.
    feature_encoding_, sensitive_encoding_ : TableEncoding
        How X and the attributes were scaled, by the minimum and maximum of the training rows.
    loss_curve_, penalty_curve_ : ndarray
        Task loss and penalty of each epoch of the last call.
    n_features_in_, feature_names_in_, sensitive_names_in_
        Columns that came.

    See Also
    --------
    ParityRegressor, ParityEncoder, frhsic.select_weight

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> s = rng.uniform(size=200)
    >>> X = np.column_stack([s + 0.1 * rng.normal(size=200), rng.normal(size=200)])
    >>> y = X[:, 1] > 0
    >>> model = ParityClassifier(penalty_weight=1.0, epochs=60, random_state=0).fit(X, y, sensitive_features=s)
    >>> model.score(X, y) > 0.9
    True
    """

    def fit(self, X: Any, y: Any, *, sensitive_features: Any = None, sample_weight: Any = None) -> Self:
        """Fit encoder and head.

        Parameters
        ----------
        X : DataFrame or array of shape (n, d)
            Text and categories of a DataFrame are encoded inside; columns are scaled to [0, 1].
        y : array of shape (n,)
            Labels, of two or more classes.
        sensitive_features : array, Series or DataFrame of shape (n,) or (n, q), optional
            Numeric attributes. None trains without penalty and warns, unless `penalty_weight` is 0.
        sample_weight : array of shape (n,), optional
            Weights of the rows in the task loss; the penalty does not use them.
        """
        fresh = not self.warm_start or not self.__sklearn_is_fitted__()
        return self._fit(X, y, sensitive_features, sample_weight, fresh=fresh)

    def partial_fit(
        self,
        X: Any,
        y: Any,
        classes: Any = None,
        *,
        sensitive_features: Any = None,
        sample_weight: Any = None,
    ) -> Self:
        """Train for one epoch on a part of the data, going on from where the last call ended.

        Scales, levels and classes are those of the first call (or `feature_encoding`, `sensitive_encoding` and
        `classes`); so is what the penalty fixes in advance. Adam's moments start anew in each call: give parts of
        many batches.

        Parameters
        ----------
        classes : array, optional
            All labels that will come; needed in the first call if its rows do not have them all.
        """
        fresh = not self.__sklearn_is_fitted__()
        return self._fit(X, y, sensitive_features, sample_weight, fresh=fresh, epochs=1, classes=classes)

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the head's raw output: log-odds (n,) of the second class, or one column per class."""
        check_is_fitted(self)
        scores = self._evaluated(self._features(X), with_head=True)
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of each class, (n, number of classes)."""
        scores = self.decision_function(X)
        if len(self.classes_) == 2:
            positive = expit(scores)
            return np.column_stack([expit(-scores), positive])
        return np.asarray(softmax(scores, axis=1))

    def predict(self, X: Any) -> np.ndarray:
        """Return the label of the most probable class of each row."""
        scores = self.decision_function(X)
        at = (scores > 0).astype(int) if len(self.classes_) == 2 else scores.argmax(axis=1)
        return np.asarray(self.classes_[at])

    def _target(self, y: Any, *, fresh: bool, classes: Any = None) -> Target:
        labels = target_column(self, y)
        check_classification_targets(labels)
        found = unique_labels(labels)
        if fresh:
            known = found if classes is None else unique_labels(classes)
            if len(known) < 2:
                raise ValueError(
                    f"y has one class only, {known[0]!r}; a classifier needs rows of at least two classes."
                )
            self.classes_ = known
        elif classes is not None and not np.array_equal(self.classes_, unique_labels(classes)):
            raise ValueError(f"classes={list(classes)!r} differ from those of the first call, {list(self.classes_)!r}.")
        new = np.setdiff1d(found, self.classes_)
        if len(new):
            raise ValueError(
                f"y has the labels {new.tolist()!r}, which are not among the classes {self.classes_.tolist()!r}. "
                "Name all of them in the first call to partial_fit: classes=[...]."
            )
        codes = np.searchsorted(self.classes_, labels).astype(np.float64)
        binary = len(self.classes_) == 2
        return Target(codes, "binary" if binary else "multiclass", 1 if binary else len(self.classes_))
