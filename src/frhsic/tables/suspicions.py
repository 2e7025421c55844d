"""Columns that should not be among the features: empty ones, identifiers, and those that repeat a
sensitive attribute or give the target away.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd

from frhsic.tables.columns import (
    MOST_ENCODED_LEVELS,
    column_kind,
    feature,
    identifies_rows,
    quote_names,
)

# Rows below which nothing is suspected, and those that are looked at, at even distances.
LEAST_SUSPECTED_ROWS = 50
LOOKED_AT_ROWS = 10_000
# Rows that the rarer class needs, and each value of a column on average.
LEAST_IN_CLASS = 10
# Rank correlation with S, or share of the target's errors or of its variance that one column takes
# away.
ALIKE = 0.99
NAMED_ID = re.compile(
    r"((.*[^a-zA-Z])?(?i:id|uuid|guid|nr|no|number)|.*[a-z](Id|ID|Nr|No|Number))\W*"
)
# Pairs of equal values that chance alone would make, on average, from which on a column without any
# holds keys: as many draws all differ with a probability of at most exp(-10).
EXPECTED_PAIRS = 10


class SuspiciousColumnWarning(UserWarning):
    """A feature has no values, identifies rows, repeats a sensitive attribute, or gives the target
    away.
    """


def identifiers(X: pd.DataFrame) -> list[str]:
    """Return the columns of whole numbers that seem to identify rows or persons.

    All of their values differ, and they only rise along the table, or lie so close together that
    draws by chance would repeat some; or the column is named so, such as customer_id or CustomerNo,
    and has more than 64 values.

    Examples
    --------
    >>> identifiers(
    ...     pd.DataFrame({"row": range(100), "customer_id": [i // 1.25 // 1 for i in range(100)]})
    ... )
    ['row', 'customer_id']
    """
    rows = _examined_rows(X)
    return [
        str(name)
        for name in X
        if len(X) >= LEAST_SUSPECTED_ROWS
        and pd.api.types.is_numeric_dtype(X[name])
        and _identifies(str(name), feature(X[name].iloc[rows], str(name))[0])
    ]


def suspicions(
    X: pd.DataFrame, y: np.ndarray | None, classes: int, s: pd.DataFrame
) -> tuple[str, ...]:
    """Return a sentence for each kind of suspicious column, which names the columns.

    - A column has no values at all.
    - A column of numbers identifies rows by the rules of :func:`identifiers`.
    - A column repeats a sensitive attribute if it has its name, or if their rank correlation is at
      least 0.99 in absolute value.
    - A column gives the target away if it takes away 99 % of the errors of the constant prediction:
      the area under its ROC curve is at least 0.995 or at most 0.005, or with at most 64 different
      values, their most frequent class is right; for a number, if the squared rank correlation is
      at least 0.99.
    - At least 1 % of the rows, and ten, repeat an earlier row in all columns but identifiers, and
      hardly any repeats one in all but the target: persons that came twice, not coarse columns.

    Parameters
    ----------
    X, s
        Features and sensitive attributes.
    y, classes
        Target: codes 0, 1, ... of so many classes, or numbers if `classes` is 0.

    Examples
    --------
    >>> age = np.arange(100.0) ** 2
    >>> suspicions(
    ...     pd.DataFrame({"x": np.sin(age), "born": 2000 - age}),
    ...     None,
    ...     0,
    ...     pd.DataFrame({"age": age}),
    ... )
    ("'born' repeats the sensitive attribute 'age', which the prediction must not depend on; ...",)
    """
    rows = _examined_rows(X)
    columns = {str(name): feature(X[name].iloc[rows], str(name))[0] for name in X}
    lines = []
    if names := [str(name) for name in X if X[name].isna().all()]:
        lines.append(f"{quote_names(names)} has no value in any row; drop it.")
    if names := identifiers(X):
        lines.append(
            f"{quote_names(names)} holds whole numbers that seem to identify rows; drop it."
        )
    for attribute in map(str, s):
        known = s[attribute].to_numpy()[rows]
        alike = [
            name
            for name, values in columns.items()
            if name == attribute or _correlation(values, known) >= ALIKE
        ]
        if alike:
            lines.append(
                f"{quote_names(alike)} repeats the sensitive attribute {attribute!r}, which the"
                " prediction must not depend on; drop it."
            )
    if y is not None and len(X) >= LEAST_SUSPECTED_ROWS:
        away = [name for name, values in columns.items() if _gives_away(values, y[rows], classes)]
        if away:
            lines.append(
                f"{quote_names(away)} alone predicts the target nearly without error. If it is"
                " known only after the target, drop it."
            )
        if repeated := _repeated_rows(X, y, s):
            lines.append(
                f"{repeated:,} of {len(X):,} rows repeat an earlier one in every column but"
                " identifiers. If these are the same persons, drop them or pass the persons as"
                " groups: else rows that measure the model have trained it."
            )
    return tuple(lines)


def _repeated_rows(X: pd.DataFrame, y: np.ndarray, s: pd.DataFrame) -> int:
    """Return how many rows repeat an earlier one in X, y and s but for identifiers; 0 if they are
    few, or if rows are often alike in X and s alone.
    """
    ids = identifiers(X)
    ids += [
        str(name)
        for name in X
        if column_kind(X[name]) == "category" and identifies_rows(X[name].nunique(), len(X))
    ]
    known = pd.concat([X.drop(columns=ids), s.set_axis(X.index)], axis=1)
    if known.shape[1] == 0:
        return 0
    keys = pd.util.hash_pandas_object(known, index=False)
    alike = int(keys.duplicated().sum())
    repeated = int(pd.DataFrame({"known": keys, "y": y}).duplicated().sum())
    least = max(LEAST_IN_CLASS, (1 - ALIKE) * len(X))
    clear = repeated >= ALIKE * alike and len(X) - alike > MOST_ENCODED_LEVELS
    return repeated if repeated >= least and clear else 0


def _examined_rows(X: pd.DataFrame) -> np.ndarray:
    return np.linspace(0, len(X) - 1, min(len(X), LOOKED_AT_ROWS)).astype(int)


def _identifies(name: str, values: np.ndarray) -> bool:
    values = values[~np.isnan(values)]
    if not np.array_equal(values, np.round(values)):
        return False
    different = len(np.unique(values))
    if NAMED_ID.fullmatch(name) and different > MOST_ENCODED_LEVELS:
        return True
    if different < len(values) or different < LEAST_SUSPECTED_ROWS:
        return False
    pairs = different * (different - 1) / 2
    # of all laws on a range, the uniform one repeats least
    return bool(pairs >= EXPECTED_PAIRS * (np.ptp(values) + 1) or (np.diff(values) > 0).all())


def _correlation(values: np.ndarray, other: np.ndarray) -> float:
    """Return the absolute rank correlation on the rows that have both; 0 for categories."""
    if values.dtype == object:
        return 0.0
    table = (
        pd.DataFrame({"values": values, "other": other})
        .corr("spearman", min_periods=LEAST_SUSPECTED_ROWS)
        .to_numpy()
    )
    return float(np.nan_to_num(abs(table[0, 1])))


def _gives_away(values: np.ndarray, codes: np.ndarray, classes: int) -> bool:
    if not classes:
        return _correlation(values, codes) ** 2 >= ALIKE
    levels: Any = pd.factorize(values, use_na_sentinel=False)[0]
    if levels.max() < min(MOST_ENCODED_LEVELS, len(codes) / LEAST_IN_CLASS):
        cells = levels * classes + codes.astype(np.int64)
        counts = np.bincount(cells, minlength=(levels.max() + 1) * classes).reshape(-1, classes)
        errors = len(codes) - counts.max(axis=1).sum()
        constant = len(codes) - counts.sum(axis=0).max()
        return bool(constant >= LEAST_IN_CLASS and errors <= (1 - ALIKE) * constant)
    if values.dtype == object or classes > 2:
        return False
    known = ~np.isnan(values)
    positive = codes[known] == 1
    if min(positive.sum(), (~positive).sum()) < LEAST_IN_CLASS:
        return False
    # the area under the ROC curve, from ranks
    ranks = pd.Series(values[known]).rank().to_numpy()
    area = (ranks[positive].mean() - (positive.sum() + 1) / 2) / (~positive).sum()
    return bool(abs(2 * area - 1) >= ALIKE)
