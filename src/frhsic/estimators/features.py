"""Features as training and prediction take them: checked by scikit-learn, then encoded as a matrix."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import validate_data

from frhsic.tables import TableEncoding, check_distinct, is_frame, to_pandas

if TYPE_CHECKING:
    from frhsic.estimators.network import NetworkEstimator


def checked_table(estimator: Any, X: Any, *, first: bool) -> Any:
    """Return a frame as it is and anything else as an array of numbers, after scikit-learn's checks of the columns."""
    if not is_frame(X):
        return _numeric_array(estimator, X, reset=first)
    X = X if hasattr(X, "dtypes") else to_pandas(X, "X")  # scikit-learn knows no pyarrow tables
    check_distinct(map(str, X.columns), "X")
    validate_data(estimator, X, reset=first, skip_check_array=True)
    return X


def encoded_features(estimator: NetworkEstimator, X: Any) -> np.ndarray:
    """Return a checked table encoded, float64 (n, width); the first call learns scales and levels."""
    if not hasattr(estimator, "feature_encoding_"):
        if estimator.feature_encoding is not None and is_frame(X):
            estimator.feature_encoding.check_names(X)
        scaling: Any = estimator.scaling
        estimator.feature_encoding_ = estimator.feature_encoding or TableEncoding.fit(X, scaling=scaling)
    return estimator.feature_encoding_(X, "ignore" if estimator.handle_unknown == "ignore" else "error")


def _numeric_array(estimator: Any, X: Any, *, reset: bool) -> np.ndarray:
    """Return an array without column names as numbers; NaN is a missing value."""
    try:
        return np.asarray(validate_data(estimator, X, reset=reset, dtype="numeric", ensure_all_finite="allow-nan"))
    except ValueError as error:
        if not (isinstance(X, np.ndarray) and X.dtype.kind == "O"):
            raise
        raise ValueError(
            f"X is an array of objects that cannot be read as numbers ({error}). Pass a DataFrame, whose text and "
            "categories are encoded."
        ) from error
