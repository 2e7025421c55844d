"""Columns that should not be among the features: identifiers, copies of a sensitive attribute, and of the target."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import rankdata

from frhsic.tables.columns import MOST_LEVELS, PYTHON, Advice, feature, quoted
from frhsic.tables.targets import Target

LEAST_ROWS = 50
"""Rows below which nothing is suspected."""
LEAST_IN_CLASS = 10
"""Rows that the rarer class needs, and each value of a column on average."""
MOST_ROWS = 20_000
"""Rows that are looked at, at even distances."""
ALIKE = 0.99
"""Rank correlation with S, or share of the target's errors or of its variance that one column takes away."""


class SuspiciousColumnWarning(UserWarning):
    """A feature identifies rows, repeats a sensitive attribute, or gives the target away."""


def suspicions(X: pd.DataFrame, target: Target | None, s: pd.DataFrame, advice: Advice = PYTHON) -> tuple[str, ...]:
    """Return a sentence for each kind of suspicious column, which names the columns.

    - A column of numbers identifies rows if it holds whole numbers, all distinct, that lie close together or only rise
      along the table.
    - A column repeats a sensitive attribute if their rank correlation is at least 0.99 in absolute value.
    - A column gives the target away if it takes away 99 % of the errors of the constant prediction: the area under its
      ROC curve is at least 0.995 or at most 0.005, or with at most 64 different values, their most frequent class is
      right; for a number, if the squared rank correlation is at least 0.99.

    Examples
    --------
    >>> age = np.arange(100.0) ** 2
    >>> suspicions(pd.DataFrame({"x": np.sin(age), "born": 2000 - age}), None, pd.DataFrame({"age": age}))
    ("'born' repeats the sensitive attribute 'age', which the prediction must not depend on. Pass drop=['born'].",)
    """
    if len(X) < LEAST_ROWS:
        return ()
    rows = np.linspace(0, len(X) - 1, min(len(X), MOST_ROWS)).astype(int)
    read = {str(name): feature(X[name].iloc[rows], str(name)) for name in X}
    columns = {name: values for name, (values, _) in read.items()}
    lines = []
    whole = [name for name, (_, unit) in read.items() if unit == "number"]
    identifiers = [name for name in whole if _counts_rows(columns[name], len(X) / len(rows))]
    if identifiers:
        lines.append(
            f"{quoted(identifiers)} holds whole numbers that all differ, and seems to identify rows. "
            f"{advice.drop(identifiers)}."
        )
    for attribute in s:
        known = s[attribute].to_numpy()[rows]
        copies = [name for name, values in columns.items() if _correlation(values, known) >= ALIKE]
        if copies:
            lines.append(
                f"{quoted(copies)} repeats the sensitive attribute {str(attribute)!r}, which the prediction must not "
                f"depend on. {advice.drop(copies)}."
            )
    if target is not None:
        codes = target.codes[rows]
        away = [name for name, values in columns.items() if _gives_away(values, codes, target.task)]
        if away:
            lines.append(
                f"{quoted(away)} alone predicts the target nearly without error. If it is known only after the target, "
                f"leave it out. {advice.drop(away)}."
            )
    return tuple(lines)


def _counts_rows(values: np.ndarray, step: float) -> bool:
    if np.isnan(values).any() or not np.array_equal(values, np.round(values)):
        return False
    if len(np.unique(values)) < len(values):
        return False
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


def _gives_away(values: np.ndarray, codes: np.ndarray, task: str) -> bool:
    if task == "regression":
        return _correlation(values, codes) ** 2 >= ALIKE
    levels: Any = pd.factorize(values, use_na_sentinel=False)[0]
    if levels.max() < min(MOST_LEVELS, len(codes) / LEAST_IN_CLASS):
        counts = pd.crosstab(levels, codes).to_numpy()
        errors, constant = len(codes) - counts.max(axis=1).sum(), len(codes) - counts.sum(axis=0).max()
        return bool(constant >= LEAST_IN_CLASS and errors <= (1 - ALIKE) * constant)
    if values.dtype == object or task != "binary":
        return False
    known = ~np.isnan(values)
    ranks, positive = rankdata(values[known]), codes[known] == 1
    n1, n0 = int(positive.sum()), int((~positive).sum())
    if min(n1, n0) < LEAST_IN_CLASS:
        return False
    area = (ranks[positive].sum() - n1 * (n1 + 1) / 2) / (n1 * n0)
    return bool(abs(2 * area - 1) >= ALIKE)
