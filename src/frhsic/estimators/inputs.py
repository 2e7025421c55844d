"""Checks of X, y, sensitive features and seeds that the estimators share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from inspect import signature
from typing import Any, TypeVar

import numpy as np
import pandas as pd
from sklearn.utils import assert_all_finite
from sklearn.utils.validation import _num_samples, column_or_1d, validate_data

from frhsic import _arrays
from frhsic._warnings import warn
from frhsic.formatting import printable
from frhsic.tables.attributes import BandedAttributeWarning, read_sensitive
from frhsic.tables.columns import (
    LARGEST_FEATURE,
    check_distinct,
    examples,
    is_frame,
    numbers,
    to_pandas,
)
from frhsic.tables.features import feature_problems
from frhsic.tables.problems import SuspiciousColumnWarning
from frhsic.tables.schema import Schema


class MissingSensitiveFeaturesWarning(UserWarning):
    """An estimator was fitted without `sensitive_features`, and therefore without a penalty or
    limit.

    To turn the warning into an error, call ``warnings.simplefilter("error",
    MissingSensitiveFeaturesWarning)``.

    Examples
    --------
    >>> import warnings
    >>> from frhsic import ParityRegressor
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", MissingSensitiveFeaturesWarning)
    ...     ParityRegressor().fit([[0.0], [1.0]], [0.0, 1.0])
    Traceback (most recent call last):
    frhsic.estimators.inputs.MissingSensitiveFeaturesWarning: ParityRegressor was given no ...
    """


class UnlabelledRowsWarning(UserWarning):
    """Some rows have NaN in `sensitive_features`. These rows are used for the task, but not for the
    penalty or limit.

    Examples
    --------
    >>> import warnings
    >>> from frhsic import ParityRegressor
    >>> x = np.arange(40.0)
    >>> age = np.where(x < 30, x, np.nan)
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", UnlabelledRowsWarning)
    ...     ParityRegressor().fit(x[:, None], x, sensitive_features=age)
    Traceback (most recent call last):
    frhsic.estimators.inputs.UnlabelledRowsWarning: 10 of 40 rows lack sensitive_features: ...
    """


# How to pass attributes to an estimator inside a meta-estimator, whose own error doesn't explain
# it.
ROUTING = (
    " A Pipeline or a search passes them to a step that requests them, after"
    " sklearn.set_config(enable_metadata_routing=True)."
)

# Libraries whose frames are not in memory, and the method that loads them.
ELSEWHERE = {"dask": "compute()", "modin": "modin.to_pandas()"}

# Columns of X named by these arguments remain features; columns named by other arguments are
# removed from the features.
FEATURES_TOO = ("control_features",)

Method = TypeVar("Method", bound=Callable[..., Any])


def named_arguments(method: Method) -> Method:
    """Let a method accept the names of columns of X in place of columns, using
    :func:`named_columns`. For a call such as ``fit(X, y, age)``, raise an error that explains how
    to pass the attribute, because Python's error message states only the number of arguments.
    """
    known = signature(method).parameters

    @wraps(method)
    def checked(self: Any, *given: Any, **named: Any) -> Any:
        if len(given) > 2:
            raise TypeError(
                "fit takes X and y by position, and all other arguments by name: fit(X, y,"
                " sensitive_features=...)."
            )
        other = sorted(named.keys() - known.keys())
        if "control_features" in other:
            raise TypeError(
                f"{method.__name__} of {type(self).__name__} doesn't accept control_features; use"
                " ParityClassifier or ParityRegressor."
            )
        if other:
            raise TypeError(
                f"{method.__name__} doesn't accept {other[0]}. Arguments cannot be passed on to the"
                " fit of your own model, because each fold fits a clone of the model on different"
                " rows. Set the model's parameters in its constructor, or fit the model yourself"
                " and pass FrozenEstimator(model)."
            )
        arguments = dict(zip(("X", "y"), given)) | named
        return method(self, **named_columns(**arguments))

    return checked  # type: ignore[return-value]  # same signature


def named_columns(*, X: Any = None, **others: Any) -> dict[str, Any]:
    """Return the arguments, keyed by name. Strings and lists of strings are replaced by the columns
    of X that they name, and these columns are removed from X unless the argument is in
    `FEATURES_TOO`.

    Examples
    --------
    >>> X = pd.DataFrame({"age": [31, 52], "hours": [40, 20]})
    >>> taken = named_columns(X=X, sensitive_features="age")
    >>> taken["X"].columns.tolist(), taken["sensitive_features"].tolist()
    (['hours'], [31, 52])
    """
    X = table_of_rows(X)
    taken: set[str] = set()
    columns = {}
    for argument, value in others.items():
        names = [value] if isinstance(value, str) else value
        if argument == "y" or not _are_names(names, X):
            continue
        if not is_frame(X):
            raise ValueError(
                f"{argument} is {value!r}, but X has no column names. Pass the column itself, or X"
                " as a DataFrame."
            )
        if not hasattr(X, "iloc") and not hasattr(X, "get_columns"):
            X = to_pandas(X, "X")
        if lacking := [name for name in names if name not in X.columns]:
            raise ValueError(
                f"{argument} is {value!r}, but X has no column {lacking[0]!r}; it has"
                f" {printable(', '.join(map(str, X.columns)), 200)}."
            )
        columns[argument] = X[value if isinstance(value, str) else [*value]]
        if argument not in FEATURES_TOO:
            taken.update(names)
    if taken:
        X = X[[name for name in X.columns if name not in taken]]
    return {"X": X} | others | columns


def _are_names(values: Any, X: Any) -> bool:
    """Return whether values are column names rather than a column of text."""
    if not isinstance(values, list | tuple) or not values:
        return False
    texts = all(isinstance(value, str) for value in values)
    return texts and (len(values) == 1 or len(values) != _num_samples(X))


def table_of_rows(X: Any) -> Any:
    """Convert a list of dictionaries, such as a JSON request, to a DataFrame; return any other
    table unchanged.
    """
    if isinstance(X, Mapping) and not hasattr(X, "shape"):  # SciPy's sparse matrices have a shape
        raise TypeError("X is a dictionary; pass a list of rows, such as [row], or a DataFrame.")
    if isinstance(X, list) and X and all(isinstance(row, Mapping) for row in X):
        return pd.DataFrame(X)
    return X


def known_table(estimator: Any, X: Any, *, first: bool, **others: Any) -> Any:
    """Return a checked table whose columns match the schema. The first call learns the schema."""
    X = checked_table(estimator, X, first=first, **others)
    own = ("estimator", "attribute_estimator")
    if any(getattr(estimator, name, None) is not None for name in own):
        _require_moderate(X)
    if first:
        vars(estimator).pop("schema_", None)  # set by an earlier fit
    if not is_frame(X) and hasattr(estimator, "schema_"):  # scikit-learn warns
        X = pd.DataFrame(X, columns=estimator.schema_.names)
    if not is_frame(X) or not (first or hasattr(estimator, "schema_")):
        return X
    if first:
        estimator.schema_ = Schema.learn(to_pandas(X, "X"))
    names = [str(name) for name in X.columns]
    if names != estimator.schema_.names:  # scikit-learn compares only names that are strings
        raise ValueError(
            f"X has the columns {names}, but this model was fitted on"
            f" {estimator.schema_.names}. Pass these columns."
        )
    return X


def typed_table(estimator: Any, X: Any) -> Any:
    """Return a table whose columns have the types of the schema. For example, text columns that
    contained dates in fit are converted to dates, even if some dates are missing now.
    """
    return estimator.schema_(to_pandas(X, "X")) if is_frame(X) else X


def _require_moderate(X: Any) -> None:
    """Raise an error if a table contains infinite numbers, or numbers too large for most models."""
    frame = to_pandas(X) if is_frame(X) else pd.DataFrame(X)
    for name, column in frame.select_dtypes("number").items():
        large = np.abs(numbers(column, f"column {name!r}")) > LARGEST_FEATURE
        if large.any():
            raise ValueError(
                f"column {name!r} of X has numbers beyond {LARGEST_FEATURE:g}:"
                f" {examples(column[large])}. Correct or clear these cells, or rescale the column."
            )


def checked_table(estimator: Any, X: Any, *, first: bool, **others: Any) -> Any:
    """Return a frame unchanged, and any other table as a numeric array, after scikit-learn's
    checks.

    All other arguments that have an index must have the same index as X.
    """
    given = [(X, "X"), *((values, name) for name, values in others.items())]
    for values, name in given:
        library = type(values).__module__.split(".")[0]
        if library in ELSEWHERE:
            raise TypeError(
                f"{name} is a {library} {type(values).__name__}; pass {name}.{ELSEWHERE[library]}."
            )
    X = table_of_rows(X)
    _arrays.require_same_rows(*given)
    if isinstance(X, np.ma.MaskedArray):
        X = np.where(np.ma.getmaskarray(X), np.nan, X.data.astype(np.float64))
    if is_frame(X):
        known = hasattr(X, "iloc") or hasattr(
            X, "get_columns"
        )  # scikit-learn supports frames of pandas and polars
        X = X if known else to_pandas(X, "X")
        check_distinct(map(str, X.columns), "X")
        ordered = None if first else _columns_in_order(estimator, X)
        if ordered is None:
            validate_data(estimator, X, reset=first, skip_check_array=True)
            return X
        return ordered
    values = np.asarray(
        validate_data(estimator, X, reset=first, dtype="numeric", ensure_all_finite=False)
    )
    if values.dtype.kind == "f" and np.isinf(values).any():
        row, column = np.argwhere(np.isinf(values))[0]
        raise ValueError(
            f"X contains infinity (inf), first at index [{row}, {column}]; replace infinite values,"
            " or drop their rows."
        )
    return values


def _columns_in_order(estimator: Any, X: Any) -> Any:
    """Return the columns of a frame on which an estimator was fitted, in the order of the fit.
    Return None if the estimator was fitted without names, or if columns are missing, which
    scikit-learn reports.
    """
    schema = getattr(estimator, "schema_", None)
    names = [*(getattr(estimator, "feature_names_in_", ()) if schema is None else schema.names)]
    by_text = {str(name): name for name in X.columns}
    if not names or not by_text.keys() >= {*names}:
        return None
    return X if names == [*by_text] else X[[by_text[name] for name in names]]


def require_scores(scores: np.ndarray, *, probabilities: bool) -> np.ndarray:
    """Return a model's predictions. Raise an error if they are not finite or, for `probabilities`,
    not between 0 and 1.
    """
    sound = np.isfinite(scores)
    if probabilities:
        sound &= (scores >= -1e-9) & (scores <= 1 + 1e-9)
    if not sound.all():
        kind = "probability" if probabilities else "finite number"
        row = int(np.argwhere(~sound)[0][0])
        raise ValueError(
            f"the model returns {scores[~sound][0]:g}, which is not a {kind}, first in row {row}"
            " of X (counting from 0). If this row is correct, the model is damaged; fit the model"
            " again."
        )
    return scores


def target_column(estimator: Any, y: Any) -> np.ndarray:
    """Return y as one column without missing values, after scikit-learn's checks."""
    if y is None:
        raise ValueError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None."
        )
    _arrays.require_labels(y, "y")
    if isinstance(y, pd.Series) and not y.isna().any():
        y = y.to_numpy()  # scikit-learn would convert pandas' nullable types to floats
    values = column_or_1d(y, warn=True)
    assert_all_finite(values, input_name="y", estimator_name=type(estimator).__name__)
    return np.asarray(values)


def sensitive_values(values: Any, rows: int, known: Any = None) -> tuple[np.ndarray, list[str]]:
    """Return the attributes as numbers, (n, q), and their names, which must match `known`, the
    names in the first call.

    Names are not compared if the attributes had no names in one of the calls.
    """
    attributes = read_sensitive(values, allow_missing=True)
    if len(attributes.values) != rows:
        raise ValueError(
            f"lengths differ: X has {rows} rows, but sensitive_features has"
            f" {len(attributes.values)}. Pass the attributes of each row of X."
        )
    names = list(attributes.names)
    if known is None:
        for note in attributes.notes:
            warn(note, BandedAttributeWarning)
        return attributes.values, names
    known = [str(name) for name in known]
    if len(names) == len(known) and {*names} == {*known}:
        return attributes.values[:, [names.index(name) for name in known]], known
    nameless = _arrays.column_names(None, "sensitive", len(known))
    if len(names) != len(known) or nameless not in (names, known):
        asked = ", ".join(known)
        raise ValueError(
            f"sensitive_features are {', '.join(names)}, but this model was fitted with {asked}."
            " Pass the attributes that it was fitted with."
        )
    return attributes.values, names


def require_variation(s: np.ndarray, names: list[str]) -> None:
    """Raise an error if an attribute is missing in every row, or has only one value."""
    for name, column in zip(names, s.T):
        values = np.unique(column[~np.isnan(column)])
        if not len(s):
            raise ValueError(
                f"no row has values for all sensitive_features ({', '.join(names)}). Fill in the"
                " missing values, or leave out attributes that are mostly missing."
            )
        if not len(values):
            raise ValueError(
                f"sensitive attribute {name!r} is missing in every row. Fill in its values, or"
                " leave it out."
            )
        if len(values) == 1:
            raise ValueError(
                f"sensitive attribute {name!r} is {values[0]:g} in every row, so nothing can depend"
                " on it. Leave it out."
            )


def warn_without_attributes(estimator: Any, remedy: str) -> None:
    """Warn that nothing is constrained."""
    text = (
        f"{type(estimator).__name__} was given no sensitive_features, so nothing is constrained:"
        " pass them, or "
    )
    warn(f"{text}{remedy}.{ROUTING}", MissingSensitiveFeaturesWarning)


def warn_of_unlabelled(known: np.ndarray, consequence: str) -> None:
    """Warn if attributes are missing in some rows, and state the consequence."""
    if not known.all():
        rows = f"{int((~known).sum()):,} of {len(known):,} rows"
        warn(f"{rows} lack sensitive_features: {consequence}.", UnlabelledRowsWarning)


def warn_of_suspicions(
    estimator: Any, X: Any, y: np.ndarray | None, s: np.ndarray | None, names: list[str]
) -> None:
    """Warn about columns of a frame that identify rows, repeat an attribute, or leak the target."""
    if is_frame(X):
        attributes = pd.DataFrame(
            {name: s[:, j] for j, name in enumerate(names)} if s is not None else {}
        )
        classes = len(getattr(estimator, "classes_", ()))
        for problem in feature_problems(to_pandas(X), y, classes, attributes):
            warn(problem.text, SuspiciousColumnWarning)


def estimator_seed(random_state: Any) -> int:
    """Return an integer seed for a random state of any type."""
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31))
    return _arrays.integer_seed(random_state) % 2**32
