"""Columns that should not be among the features: identifiers, copies of a sensitive attribute, and of the target."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import rankdata

from frhsic.tables.columns import MOST_LEVELS, feature, quoted

LEAST_ROWS = 50
"""Rows below which nothing is suspected."""
LEAST_IN_CLASS = 10
"""Rows that the rarer class needs, and each value of a column on average."""
MOST_ROWS = 10_000
"""Rows that are looked at, at even distances."""
ALIKE = 0.99
"""Rank correlation with S, or share of the target's errors or of its variance that one column takes away."""
NAMED_ID = re.compile(r"(.*[^a-z])?(id|uuid|guid|nr|no|number)|.*[a-z](Id|ID|Nr|No|Number)", re.IGNORECASE)


class SuspiciousColumnWarning(UserWarning):
    """A feature has no values, identifies rows, repeats a sensitive attribute, or gives the target away."""


def identifiers(X: pd.DataFrame) -> list[str]:
    """Return the columns of whole numbers that seem to identify rows or persons.

    All of their values differ and lie close together or only rise along the table; or the column is named so, such as
    customer_id or CustomerNo, and has more than 64 values.

    Examples
    --------
    >>> identifiers(pd.DataFrame({"row": range(100), "customer_id": [i // 1.25 // 1 for i in range(100)]}))
    ['row', 'customer_id']
    """
    rows = _looked_at(X)
    return [
        str(name)
        for name in X
        if len(X) >= LEAST_ROWS
        and pd.api.types.is_numeric_dtype(X[name])
        and _identifies(str(name), feature(X[name].iloc[rows], str(name))[0], len(X) / len(rows))
    ]


def suspicions(X: pd.DataFrame, y: np.ndarray | None, classes: int, s: pd.DataFrame) -> tuple[str, ...]:
    """Return a sentence for each kind of suspicious column, which names the columns.

    - A column has no values at all.
    - A column of numbers identifies rows by the rules of :func:`identifiers`.
    - A column repeats a sensitive attribute if it has its name, or if their rank correlation is at least 0.99 in
      absolute value.
    - A column gives the target away if it takes away 99 % of the errors of the constant prediction: the area under its
      ROC curve is at least 0.995 or at most 0.005, or with at most 64 different values, their most frequent class is
      right; for a number, if the squared rank correlation is at least 0.99.

    Parameters
    ----------
    X, s
        Features and sensitive attributes.
    y, classes
        Target: codes 0, 1, ... of so many classes, or numbers if `classes` is 0.

    Examples
    --------
    >>> age = np.arange(100.0) ** 2
    >>> suspicions(pd.DataFrame({"x": np.sin(age), "born": 2000 - age}), None, 0, pd.DataFrame({"age": age}))
    ("'born' repeats the sensitive attribute 'age', which the prediction must not depend on; drop it.",)
    """
    rows = _looked_at(X)
    columns = {str(name): feature(X[name].iloc[rows], str(name))[0] for name in X}
    lines = []
    if names := [str(name) for name in X if X[name].isna().all()]:
        lines.append(f"{quoted(names)} has no value in any row; drop it.")
    if names := identifiers(X):
        lines.append(f"{quoted(names)} holds whole numbers that seem to identify rows; drop it.")
    for attribute in map(str, s):
        known = s[attribute].to_numpy()[rows]
        alike = [name for name, values in columns.items() if name == attribute or _correlation(values, known) >= ALIKE]
        if alike:
            lines.append(
                f"{quoted(alike)} repeats the sensitive attribute {attribute!r}, which the prediction must not depend "
                "on; drop it."
            )
    if y is not None and len(X) >= LEAST_ROWS:
        away = [name for name, values in columns.items() if _gives_away(values, y[rows], classes)]
        if away:
            lines.append(
                f"{quoted(away)} alone predicts the target nearly without error. If it is known only after the target, "
                "drop it."
            )
    return tuple(lines)


def _looked_at(X: pd.DataFrame) -> np.ndarray:
    return np.linspace(0, len(X) - 1, min(len(X), MOST_ROWS)).astype(int)


def _identifies(name: str, values: np.ndarray, step: float) -> bool:
    values = values[~np.isnan(values)]
    if not np.array_equal(values, np.round(values)):
        return False
    different = len(np.unique(values))
    if different < len(values) or len(values) < LEAST_ROWS:
        return bool(NAMED_ID.fullmatch(name)) and different > MOST_LEVELS
    return bool(np.ptp(values) < 2 * step * len(values) or (np.diff(values) > 0).all())


def _correlation(values: np.ndarray, other: np.ndarray) -> float:
    """Return the absolute rank correlation on the rows that have both; 0 for categories."""
    if values.dtype == object:
        return 0.0
    both = ~np.isnan(values) & ~np.isnan(other)
    if both.sum() < LEAST_ROWS:
        return 0.0
    a, b = (rankdata(x[both]) - (both.sum() + 1) / 2 for x in (values, other))
    norm = float(np.sqrt((a @ a) * (b @ b)))
    return abs(float(a @ b)) / norm if norm > 0 else 0.0


def _gives_away(values: np.ndarray, codes: np.ndarray, classes: int) -> bool:
    if not classes:
        return _correlation(values, codes) ** 2 >= ALIKE
    levels: Any = pd.factorize(values, use_na_sentinel=False)[0]
    if levels.max() < min(MOST_LEVELS, len(codes) / LEAST_IN_CLASS):
        counts = pd.crosstab(levels, codes).to_numpy()
        errors, constant = len(codes) - counts.max(axis=1).sum(), len(codes) - counts.sum(axis=0).max()
        return bool(constant >= LEAST_IN_CLASS and errors <= (1 - ALIKE) * constant)
    if values.dtype == object or classes > 2:
        return False
    known = ~np.isnan(values)
    ranks, positive = rankdata(values[known]), codes[known] == 1
    n1, n0 = int(positive.sum()), int((~positive).sum())
    if min(n1, n0) < LEAST_IN_CLASS:
        return False
    area = (ranks[positive].sum() - n1 * (n1 + 1) / 2) / (n1 * n0)
    return bool(abs(2 * area - 1) >= ALIKE)
