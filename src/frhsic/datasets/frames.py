"""Turn a table of your own into a :class:`Dataset`."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Literal

import pandas as pd

from frhsic.datasets._dataset import Dataset, Feature
from frhsic.datasets._entry import encoded
from frhsic.tables import (
    BandedAttributeWarning,
    ColumnRoles,
    ReadOptions,
    SuspiciousColumnWarning,
    Task,
    find,
    find_kinds,
    read_frame,
    read_target,
    suspicions,
    to_pandas,
)
from frhsic.tables.columns import MOST_LEVELS, distinct, feature, label
from frhsic.tables.roles import check_varies, read_attributes

Missing = Literal["raise", "drop", "impute"]
MISSING_LEVEL, OTHER_LEVEL = "missing", "other"


def from_frame(
    frame: Any,
    target: str,
    sensitive: str | Sequence[str],
    *,
    task: Task | None = None,
    positive: object = None,
    categorical: Iterable[str] = (),
    drop: Iterable[str] = (),
    missing: Missing = "raise",
    name: str = "table",
) -> Dataset:
    """Return a table as a dataset: text becomes one 0/1 column per level, numbers stay as they are.

    A column of text with more than 64 levels gets a column for each of the 63 most frequent and one for all others.
    Dates become days since 1970. A column that identifies rows, repeats a sensitive attribute or gives the target away
    is named in a warning (:func:`frhsic.tables.suspicions` states the rules).

    Parameters
    ----------
    frame : pandas or polars DataFrame, pyarrow Table, or mapping of columns
    target : str
        Column to predict.
    sensitive : str or sequence of str
        Numeric column or columns that the prediction must not depend on. They are no features. Bands such as "30-39"
        and ordered categories become numbers, with a warning.
    task : "binary", "regression" or "multiclass", optional
        Left out: two different values are binary, other numbers a regression, other text several classes.
    positive : object, optional
        Value of a binary target that counts as 1; left out, the last in sorted order. With ``task="binary"``, a target
        of more than two values becomes this one against the rest.
    categorical : iterable of str
        Columns of numbers that are codes of categories, and columns of text of which every level is to get a column.
        Other text and categories are found without; booleans are 0 and 1.
    drop : iterable of str
        Columns to leave out, such as identifiers.
    missing : "raise", "drop" or "impute"
        "raise" counts the missing values and stops. "drop" drops the rows. "impute" makes a level of its own of a
        missing category and leaves a missing number to :meth:`Dataset.split`, which fills in the median of the training
        rows, or to an estimator; a missing target or sensitive value is never imputed.
    name : str

    Returns
    -------
    Dataset

    Examples
    --------
    >>> table = pd.DataFrame({"age": [31, 52, 44], "job": ["cook", "clerk", "cook"], "paid": ["no", "yes", "yes"]})
    >>> data = from_frame(table, "paid", "age")
    >>> data
    Dataset('table', 'own': n=3, d=2, binary, target 'paid', sensitive age)
    >>> list(data.X), data.y.tolist()
    (['job=clerk', 'job=cook'], [0.0, 1.0, 1.0])
    """
    if missing not in ("raise", "drop", "impute"):
        raise ValueError(f"missing={missing!r}; pass 'raise', 'drop' or 'impute'.")
    table = to_pandas(frame)
    protected = [sensitive] if isinstance(sensitive, str) else list(sensitive)
    categorical, drop = _names(categorical, "categorical"), _names(drop, "drop")
    columns = [str(column) for column in table]
    names = ColumnRoles(target, tuple(protected), drop=tuple(drop)).find_features(columns, "the table")
    for column in categorical:
        find(column, columns, "the table")
    if not len(table):
        raise ValueError("the table has no rows.")
    table, dropped = _without_missing(table[[*names, target, *protected]], target, protected, missing)
    kinds = find_kinds(table[names], "the table", categorical=categorical)
    blocks = [_feature(table[column], kinds[column] == "category", column in categorical) for column in names]
    outcome = read_target(table[target], task=task, positive=positive)
    s, banded = read_attributes(table[protected], "the table")
    check_varies(s, "every row; nothing can depend on it")
    for note in banded:
        warnings.warn(note, BandedAttributeWarning, stacklevel=2)
    for note in suspicions(table[names], outcome, s):
        warnings.warn(note, SuspiciousColumnWarning, stacklevel=2)
    return Dataset(
        name,
        "own",
        pd.concat([X for X, _ in blocks], axis=1),
        pd.Series(outcome.codes, name=target),
        s[protected[0]] if len(protected) == 1 else s,
        tuple(feature for _, features in blocks for feature in features),
        outcome.task,
        tuple("other" if value is None else label(value) for value in outcome.classes),
        "a table of the user's own",
        dropped=(*dropped, *(f"column {column}: left out on request." for column in drop)),
    )


def from_file(
    path: str | Path,
    target: str,
    sensitive: str | Sequence[str],
    *,
    task: Task | None = None,
    positive: object = None,
    categorical: Iterable[str] = (),
    drop: Iterable[str] = (),
    missing: Missing = "raise",
) -> Dataset:
    """Return a CSV, TSV, Parquet or Arrow file as a dataset; see :func:`from_frame` for the rest.

    In text files an empty cell and "?" count as missing, in columns of numbers also marks such as "n/a" and "-".
    """
    file = Path(path)
    return from_frame(
        read_frame(file, ReadOptions(text_marks=("?",))),
        target,
        sensitive,
        task=task,
        positive=positive,
        categorical=categorical,
        drop=drop,
        missing=missing,
        name=file.name.partition(".")[0],
    )


def _names(given: Iterable[str], argument: str) -> list[str]:
    if isinstance(given, str):
        raise TypeError(f"{argument} is the text {given!r}; pass a list of column names, [{given!r}].")
    return list(given)


def _without_missing(
    table: pd.DataFrame, target: str, protected: list[str], missing: Missing
) -> tuple[pd.DataFrame, list[str]]:
    incomplete = table.isna()
    counts = incomplete.sum()
    shown = ", ".join(f"{column} {count}" for column, count in counts[counts > 0].items())
    if not shown:
        return table, []
    if missing == "raise":
        raise ValueError(
            f"{int(incomplete.any(axis=1).sum())} of {len(table)} rows have missing values ({shown}). Pass "
            "missing='drop' to drop these rows or missing='impute' to fill in features."
        )
    if missing == "impute":
        lost = counts[[target, *protected]]
        if lost.any():
            raise ValueError(
                f"missing values in {', '.join(f'{c} {k}' for c, k in lost[lost > 0].items())}: a target or a "
                "sensitive value is not made up. Drop these rows first, or pass missing='drop'."
            )
        return table, [f"missing values are imputed from the training rows or are a level of their own ({shown})."]
    kept = table[~incomplete.any(axis=1)].reset_index(drop=True)
    if not len(kept):
        raise ValueError(f"every row has a missing value ({shown}); none is left.")
    return kept, [f"{len(table) - len(kept)} of {len(table)} rows with missing values ({shown})."]


def _feature(values: pd.Series[Any], categorical: bool, every_level: bool) -> tuple[pd.DataFrame, tuple[Feature, ...]]:
    name = str(values.name)
    if not categorical:
        return pd.DataFrame({name: feature(values, name)[0]}), (Feature.numeric(name),)
    labels = values.map(label, na_action="ignore").astype(object)
    levels = list(dict.fromkeys(map(label, distinct(values))))
    if len(levels) > MOST_LEVELS and not every_level:
        common = set(labels.value_counts().index[: MOST_LEVELS - 1])
        labels = labels.where(labels.isin(common) | values.isna(), OTHER_LEVEL)
        levels = [*(level for level in levels if level in common), OTHER_LEVEL]
    labels = labels.where(values.notna(), MISSING_LEVEL)
    levels = list(dict.fromkeys([*levels, *([MISSING_LEVEL] if values.isna().any() else [])]))
    return encoded(pd.DataFrame({name: labels}), [], {name: levels})
