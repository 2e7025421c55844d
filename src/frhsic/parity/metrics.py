"""GDP as a metric of predictions, ``f(y_true, y_pred, *, sensitive_features)``, for scikit-learn and fairlearn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from frhsic import _arrays
from frhsic.parity.gap import ParityResult, gdp, standardized_gdp


def gdp_difference(y_true: Any, y_pred: Any, *, sensitive_features: Any) -> float:
    r"""Mean distance of the conditional mean prediction from the mean, :math:`E_S |E[f | S] - E f|`; worst attribute.

    Zero in the population when the mean prediction does not depend on s. Use it in scorers and
    searches; :func:`frhsic.parity.gdp` adds an interval and the value under independence.

    Parameters
    ----------
    y_true
        Not used; metrics are called with it.
    y_pred
        Probabilities, decisions 0/1, or predictions. With several columns, the worst counts.
    sensitive_features
        One or several numeric attributes.

    Examples
    --------
    >>> round(gdp_difference(None, [0.1, 0.2, 0.3, 0.6] * 50, sensitive_features=[0.0, 0.0, 0.0, 1.0] * 50), 4)
    0.15

    A scorer for a search, better when smaller:

    >>> from sklearn.metrics import make_scorer
    >>> scorer = make_scorer(gdp_difference, greater_is_better=False, response_method="predict_proba")
    """
    return _worst(gdp, y_pred, sensitive_features)


def standardized_gdp_difference(y_true: Any, y_pred: Any, *, sensitive_features: Any) -> float:
    r"""As :func:`gdp_difference`, in standard deviations of the predictions, so that shrinking them does not lower it.

    Examples
    --------
    >>> s = [0.0, 0.0, 1.0, 1.0] * 25
    >>> round(standardized_gdp_difference(None, [0.2, 0.2, 0.6, 0.6] * 25, sensitive_features=s), 4)
    1.0
    """
    return _worst(standardized_gdp, y_pred, sensitive_features)


def equal_opportunity_gdp(y_true: Any, y_pred: Any, *, sensitive_features: Any) -> float:
    r"""As :func:`gdp_difference`, among the rows with y = 1: :math:`E |E[f | S, Y=1] - E[f | Y=1]|`.

    Examples
    --------
    >>> s, y = [0.0, 0.0, 1.0, 1.0] * 25, [1, 1, 1, 0] * 25
    >>> round(equal_opportunity_gdp(y, [0.2, 0.2, 0.8, 0.0] * 25, sensitive_features=s), 4)
    0.2667
    """
    return _worst(gdp, y_pred, sensitive_features, where=y_true)


def _worst(gap: Callable[..., ParityResult], scores: Any, sensitive_features: Any, where: Any = None) -> float:
    """Return the largest gap over the attributes, without interval or test."""
    s = _arrays.matrix(sensitive_features, "sensitive_features")
    return max(float(gap(scores, column, where=where, resamples=0)) for column in s.mT)
