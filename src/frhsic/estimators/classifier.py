"""Classifier with a penalty on the dependence of its representation on sensitive attributes."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from scipy.special import expit, softmax
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets, unique_labels

from frhsic.estimators.checks import check_continues
from frhsic.estimators.network import NetworkEstimator
from frhsic.estimators.problem import FitCall
from frhsic.estimators.targets import Target, class_target, target_column


class FRHSICClassifier(ClassifierMixin, NetworkEstimator):  # type: ignore[misc]  # scikit-learn is untyped
    r"""Classifier whose representation is trained to be independent of continuous sensitive attributes.

    .. math:: \min_{h, f} \; \frac1n \sum_i \ell(f(h(x_i)), y_i) + \lambda \cdot \text{penalty}(h(x), s)
        + \tfrac w2 \|W\|^2,

    with an encoder h, an affine head f, the cross-entropy :math:`\ell`, λ the `penalty_weight` and w the `weight_decay`
    of the encoder's weight matrices W. The attributes are needed to fit, not to predict. Measure the dependence that is
    left on rows that were not trained on: :func:`frhsic.audit`.

    The defaults are the method of the paper. A larger λ leaves less dependence and costs accuracy;
    :func:`frhsic.select_weight` finds one by a rule that you state. The methods that the paper compares have names,
    such as "frem" and "reg-gdp"; for Equal Opportunity pass ``HSIC(condition="positive")``.
    :class:`frhsic.penalties.HSIC` says more about kernels and units.

    Parameters
    ----------
    penalty : str or Penalty
        A name in :data:`frhsic.estimators.PENALTIES`, or an object of :mod:`frhsic.penalties`. With
        ``condition="positive"`` the positive class is ``classes_[1]``.
    penalty_weight : float
        λ, zero or more.
    encoder : module, callable or None
        None is d → 50 → 50 with SELU between the layers. A function is called with the number of encoded columns
        and returns a module. A module is copied, and training starts from its weights.
    hidden_layer_sizes, representation_size, activation
        Widths of the default encoder's hidden layers and of Z, and the function after each hidden layer: "selu",
        "relu", "gelu", "silu", "tanh" or "sigmoid". A `representation_size` of None is 16, and 50 without a target.
    epochs, batch_size, learning_rate
        Parameters of training with Adam. "auto" takes as many epochs as make about 2,500 steps, from 20 to 100. The
        last, smaller batch of an epoch is kept, so fewer rows than `batch_size` are one batch.
    schedule : {"constant", "cosine"}
        Keep the learning rate, or lower it from epoch to epoch along half a cosine, to zero after `epochs`.
    weight_decay : float, optional
        w. None uses the penalty's `default_weight_decay`: 1e-3 for "hsic" and other HSIC penalties on whitened or
        standardized Z, 0 for the paper's methods. Raise it if the model overfits.
    variance_floor : float, optional
        After training, drop principal directions of standardized Z whose variance is below this. The penalty barely
        sees them, yet a linear probe can recover S from them. From 0 (drop none) to below 1. None uses the penalty's
        `default_variance_floor`: 0.3 for "hsic" and other HSIC penalties on whitened or standardized Z and the head,
        0.01 for those without a term of the head, 0 for the paper's methods and for a penalty on the head alone. Z
        keeps its number of columns, which are then collinear, and the head is not fitted again. Nothing is dropped if
        λ is 0, or if there are fewer than four rows for each coordinate of Z; a `partial_fit` on so few rows keeps the
        directions of the calls before.
    early_stopping : bool or "auto"
        Hold out a share `validation_fraction` of the rows and keep the weights of the epoch with the least task loss
        + λ · penalty on them; stop after `n_iter_no_change` epochs without a smaller one. Not the task loss alone,
        which would choose early epochs, in which the penalty has not yet worked. "auto" does so from 500 to
        10,000 rows, and not for the penalties "adv" and "laftr", which learn during training and look small at first.
    validation_fraction, n_iter_no_change
        See `early_stopping`. Rows are drawn by `random_state`, the same share of each class.
    ensemble : int
        Number of models that are trained at once from different seeds and deployed as one: Z holds the columns of all,
        and the head's raw output is the mean of theirs. An ensemble cannot continue training (`warm_start`,
        `partial_fit`).
    scaling : {"quantile", "robust", "range"}
        How numbers and dates are scaled: by their ranks in the training rows, to [0, 1]; by median and quartiles with
        smooth clipping; or by minimum and maximum, as in the paper. See :class:`frhsic.tables.TableEncoding`. The
        attributes are scaled by their ranks, and only with "range" by theirs: so an increasing map of an attribute
        changes nothing.
    handle_unknown : {"ignore", "error"}
        Unseen category at predict: encode as all zeros (or as "other", if rare levels of the training rows were
        grouped), or raise.
    feature_encoding, sensitive_encoding : TableEncoding, optional
        Scales and levels to use in place of those of the training rows (of the first call to `partial_fit`).
    warm_start : bool
        Whether `fit` continues from the weights, scales and classes of the last call.
    device : str
        "auto" uses a GPU if there is one.
    random_state : int, Generator, RandomState or None
        Seed of initial weights, batches and held-out rows.
    verbose : bool
        Show a progress bar on a terminal.

    Attributes
    ----------
    classes_ : ndarray
        Labels of the classes.
    encoder_, head_ : torch.nn.Module
        The trained modules, on the CPU: float32, of an ensemble float64.
    has_bottleneck_ : bool
        Whether `encoder_` ends in a bottleneck that drops directions of Z below the variance floor.
    representation_rank_ : int
        Number of directions of Z that are left.
    penalty_ : Penalty
        The penalty with its state at the end of training; of an ensemble, that of its first member.
    feature_encoding_, sensitive_encoding_ : TableEncoding
        Scales and levels of X in the training rows, and scales of the attributes.
    loss_curve_, penalty_curve_ : ndarray
        Task loss and penalty of each epoch of the last call; of an ensemble, the mean of its members'.
    validation_curve_, best_epochs_ : ndarray and tuple of int, or None
        With early stopping: task loss + λ · penalty on the held-out rows after each epoch, and the epoch, counted from
        0, whose weights the model has; of an ensemble, the epoch of each member.
    n_features_in_, feature_names_in_, sensitive_names_in_
        Number and names of the columns seen in `fit`.

    See Also
    --------
    FRHSICRegressor, ParityEncoder, frhsic.select_weight

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> s = rng.uniform(size=200)
    >>> X = np.column_stack([s + 0.1 * rng.normal(size=200), rng.normal(size=200)])
    >>> y = X[:, 1] > 0
    >>> model = FRHSICClassifier(penalty_weight=1.0, epochs=60, random_state=0).fit(X, y, sensitive_features=s)
    >>> model.score(X, y) > 0.9
    True
    """

    def partial_fit(
        self,
        X: Any,
        y: Any = None,
        classes: Any = None,
        *,
        sensitive_features: Any = None,
        sample_weight: Any = None,
    ) -> Self:
        """Train for one epoch on a part of the data, continuing from the last call.

        The first call fixes scales, levels, classes and what the penalty fits in advance; pass `feature_encoding` and
        `sensitive_encoding` to set the scales of the whole data. Adam's moments start anew in each call, so pass parts
        of many batches. The other parameters are those of :meth:`fit`.

        Parameters
        ----------
        classes : array, optional
            All labels. Needed in the first call if its rows lack some of them.
        """
        check_continues(self)
        if not self.__sklearn_is_fitted__():
            return self._train(self._start, FitCall(X, y, sensitive_features, sample_weight, 1, classes))
        if classes is not None and not np.array_equal(self.classes_, unique_labels(classes)):
            raise ValueError(f"classes={list(classes)!r} differ from those of the first call, {list(self.classes_)!r}.")
        return self._train(self._resume, FitCall(X, y, sensitive_features, sample_weight, 1))

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the head's raw output: log-odds (n,) of the second class, or one column per class."""
        scores = self._evaluated(X, with_head=True)
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of each class, (n, number of classes)."""
        scores = self.decision_function(X)
        if len(self.classes_) == 2:
            return np.column_stack([expit(-scores), expit(scores)])
        return np.asarray(softmax(scores, axis=1))

    def predict(self, X: Any) -> np.ndarray:
        """Return the label of the most probable class of each row."""
        scores = self.decision_function(X)
        at = (scores > 0).astype(int) if len(self.classes_) == 2 else scores.argmax(axis=1)
        return np.asarray(self.classes_[at])

    def _target(self, y: Any, classes: Any = None) -> Target:
        labels = target_column(self, y)
        check_classification_targets(labels)
        target = class_target(self, labels, classes)
        if len(self.classes_) < 2:
            raise ValueError(
                f"y has one class only, {self.classes_.tolist()[0]!r}; a classifier needs rows of at least two classes."
            )
        return target
