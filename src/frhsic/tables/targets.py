"""Read a target: two classes, several classes, or a number."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd

from frhsic.formatting import did_you_mean
from frhsic.tables.columns import distinct, numbers

Task = Literal["binary", "regression", "multiclass"]

MOST_CLASSES = 255
"""Different values of a target that is taken for classes."""

_TRUTH = {"true": True, "1": True, "1.0": True, "false": False, "0": False, "0.0": False}


@dataclass(frozen=True, eq=False)
class Target:
    """A target without missing values.

    Attributes
    ----------
    codes : ndarray, float64
        The position of each row's class in `classes`, or the number itself for a regression.
    task : "binary", "regression" or "multiclass"
    classes : tuple
        Values of the classes in their order; the last of two is the positive one. Empty for a regression. Where
        `positive` stands against several other values, the first is None.
    """

    codes: np.ndarray
    task: Task
    classes: tuple[Any, ...]

    @property
    def labels(self) -> np.ndarray:
        """The class of each row: text, booleans, or numbers, as integers where all of them are.

        For a regression, the numbers.
        """
        if self.task == "regression":
            return self.codes
        if any(isinstance(value, str) for value in self.classes):
            values: np.ndarray = np.array([str(value) for value in self.classes], dtype=object)
        elif all(isinstance(value, (bool, np.bool_)) for value in self.classes):
            values = np.array(self.classes, dtype=bool)
        else:
            values = np.array(self.classes, dtype=np.float64)
            values = values.astype(np.int64) if np.array_equal(values, np.round(values)) else values
        return values[self.codes.astype(np.int64)]


def read_target(column: pd.Series[Any], *, task: Task | None = None, positive: object = None) -> Target:
    """Read a target without missing values.

    Parameters
    ----------
    column
        Values of the target.
    task
        Left out: two different values are binary, other numbers a regression, other text several classes.
    positive
        Value of a binary target that counts as 1; left out, the last in sorted order. With `task="binary"`, a target of
        more than two values becomes this one against the rest.

    Examples
    --------
    >>> target = read_target(pd.Series(["no", "yes", "yes"], name="paid"))
    >>> target.task, target.classes, target.codes.tolist()
    ('binary', ('no', 'yes'), [0.0, 1.0, 1.0])
    """
    name = str(column.name)
    classes = distinct(column)
    values = numbers(column, f"target {name!r}") if pd.api.types.is_numeric_dtype(column) else None
    if len(classes) < 2:
        raise ValueError(f"target {name!r} is {classes[0]!r} in every row; there is nothing to predict.")
    if task is None:
        task = "binary" if len(classes) == 2 else "multiclass" if values is None else "regression"
    if task not in ("binary", "regression", "multiclass"):
        raise ValueError(f"task={task!r}; pass 'binary', 'regression' or 'multiclass'.")
    if positive is not None and task != "binary":
        raise ValueError(f"positive={positive!r} is for a binary target; the task is {task}.")
    if task == "regression":
        if values is None:
            raise TypeError(f"target {name!r} is text ({column.dtype}); a regression needs numbers.")
        return Target(values, task, ())
    if positive is not None:
        codes = is_positive(column, positive, name)
        if not codes.any():
            shown = ", ".join(repr(value) for value in classes[:5]) + (", ..." if len(classes) > 5 else "")
            hint = did_you_mean(str(positive), map(str, classes[:500]))
            raise ValueError(f"{positive!r} is not a value of {name!r}: {shown}.{hint}")
        others = column[codes == 0].unique()
        return Target(codes, task, (others[0] if len(others) == 1 else None, column[codes == 1].iloc[0]))
    if task == "binary" and len(classes) != 2:
        raise ValueError(f"target {name!r} has {len(classes)} different values; a binary one has two.")
    if len(classes) > MOST_CLASSES:
        raise ValueError(f"target {name!r} has {len(classes)} different values; is it a regression?")
    position = {value: float(i) for i, value in enumerate(classes)}
    return Target(column.map(position).to_numpy(dtype=np.float64), task, tuple(classes))


def is_positive(column: pd.Series[Any], positive: object, name: str) -> np.ndarray:
    """Return 1 where a column has the value `positive`, NaN where it is missing, and 0 elsewhere; text is stripped.

    Examples
    --------
    >>> is_positive(pd.Series([" >50K", "<=50K", None]), ">50K", "income").tolist()
    [1.0, 0.0, nan]
    """
    if pd.api.types.is_bool_dtype(column):
        if (word := str(positive).strip().lower()) not in _TRUTH:
            raise ValueError(f"{positive!r} is not a value of {name!r}, which holds True and False; pass one of them.")
        values = column.eq(_TRUTH[word]).to_numpy(dtype=np.float64, na_value=np.nan)
    elif pd.api.types.is_numeric_dtype(column):
        try:
            equal = column.eq(float(positive))  # type: ignore[arg-type]  # what is no number raises, and is caught
        except (TypeError, ValueError):
            raise ValueError(
                f"{positive!r} is to count as 1, but the target {name!r} holds numbers; pass one of them."
            ) from None
        values = equal.to_numpy(dtype=np.float64, na_value=np.nan)
    else:
        values = (column.astype(str).str.strip() == str(positive).strip()).to_numpy(dtype=np.float64)
    return np.where(column.isna().to_numpy(), np.nan, values)
