"""A table of the user's own as a :class:`Dataset`, in one call."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd

from frhsic.datasets._dataset import Column, Dataset, Task, nearest
from frhsic.datasets._entry import encoded

__all__ = ["Missing", "from_file", "from_frame"]

Missing = Literal["raise", "drop", "impute"]
MOST_LEVELS = 100
MISSING_LEVEL = "missing"


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

    Parameters
    ----------
    frame : pandas or polars DataFrame, pyarrow Table, or mapping of columns
    target : str
        Column to be predicted.
    sensitive : str or sequence of str
        Numeric column or columns that the prediction is not to depend on. They leave the features.
    task : "binary", "regression" or "multiclass", optional
        Left out: two different values are binary, other numbers a regression, other text several classes.
    positive : object, optional
        Value of a binary target that counts as 1; left out, the last in sorted order.
    categorical : iterable of str
        Columns of numbers that are codes of categories. Text and categories are found without; booleans are 0 and 1.
    drop : iterable of str
        Columns to leave out, such as identifiers.
    missing : "raise", "drop" or "impute"
        "raise" counts what is missing and stops. "drop" drops the rows. "impute" makes a level of its own of a
        missing category and leaves a missing number to :meth:`Dataset.split`, which fills in the median of
        the training rows; a missing target or sensitive value is never made up.
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
    table = _pandas(frame)
    protected = [sensitive] if isinstance(sensitive, str) else list(sensitive)
    categorical, drop = _names(categorical, "categorical"), _names(drop, "drop")
    _check_names(table, target, protected, categorical, drop)
    table = table.drop(columns=drop)
    table, dropped = _without_missing(table, target, protected, missing)
    features = [column for column in table.columns if column != target and column not in protected]
    if not features:
        raise ValueError("no column is left for the features; the table has only the target and sensitive columns.")
    parts = [_feature(table[column], column in categorical) for column in features]
    codes, kind, classes = _target(table[target], task, positive)
    s = pd.DataFrame({column: _sensitive(table[column]) for column in protected})
    columns = tuple(column for _, described in parts for column in described)
    return Dataset(
        name,
        "own",
        pd.concat([X for X, _ in parts], axis=1),
        codes,
        s[protected[0]] if len(protected) == 1 else s,
        columns,
        kind,
        classes,
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

    In text files an empty cell and "?" count as missing, with or without blanks around them.
    """
    file = Path(path)
    table = read_table(file)
    return from_frame(
        table,
        target,
        sensitive,
        task=task,
        positive=positive,
        categorical=categorical,
        drop=drop,
        missing=missing,
        name=file.name.partition(".")[0],
    )


def read_table(file: Path) -> pd.DataFrame:
    """Read a table by the ending of its name: .csv, .tsv (also .gz), .parquet, .arrow, .feather."""
    if not file.is_file():
        there = [path.name for path in file.parent.iterdir()] if file.parent.is_dir() else []
        raise FileNotFoundError(f"there is no file {file}.{nearest(file.name, there) if there else ''}")
    ending = file.suffixes[-2] if file.suffix == ".gz" and len(file.suffixes) > 1 else file.suffix
    try:
        if ending.lower() in (".csv", ".tsv", ".txt"):
            separator = "," if ending.lower() == ".csv" else "\t"
            return pd.read_csv(file, sep=separator, skipinitialspace=True, na_values=["?", "? "])
        if ending.lower() in (".parquet", ".pq"):
            return pd.read_parquet(file)
        if ending.lower() in (".arrow", ".feather", ".ipc"):
            return _pandas(_arrow(file))
    except (ValueError, OSError) as error:
        raise ValueError(f"{file} cannot be read as {ending.lstrip('.')}: {error}") from error
    raise ValueError(
        f"{file.name} ends in {ending or 'nothing'}; there is a reader for .csv, .tsv, .parquet and .arrow."
    )


def _arrow(file: Path) -> Any:
    import pyarrow as pa

    with pa.memory_map(str(file)) as source:
        try:
            return pa.ipc.open_file(source).read_all()
        except pa.ArrowInvalid:
            source.seek(0)
            return pa.ipc.open_stream(source).read_all()


def _pandas(frame: Any) -> pd.DataFrame:
    if isinstance(frame, pd.DataFrame):
        return frame.reset_index(drop=True).rename(columns=str)
    if hasattr(frame, "collect") and hasattr(frame, "lazy"):  # a polars LazyFrame
        frame = frame.collect()
    if hasattr(frame, "to_pandas"):
        converted = frame.to_pandas()
        if isinstance(converted, pd.DataFrame):
            return converted.reset_index(drop=True).rename(columns=str)
    if isinstance(frame, Mapping):
        return pd.DataFrame(dict(frame))
    raise TypeError(
        f"frame is {type(frame).__name__}; pass a pandas or polars DataFrame, a pyarrow Table or a mapping of columns."
    )


def _names(given: Iterable[str], argument: str) -> list[str]:
    if isinstance(given, str):
        raise TypeError(f"{argument} is the text {given!r}; pass a list of column names, [{given!r}].")
    return list(given)


def _check_names(
    table: pd.DataFrame, target: str, protected: list[str], categorical: list[str], drop: list[str]
) -> None:
    names = list(table.columns)
    twice = sorted({column for column in names if names.count(column) > 1})
    if twice:
        raise ValueError(f"the table has more than one column named {', '.join(twice)}; rename them.")
    if not protected:
        raise ValueError("sensitive is empty; name at least one column.")
    for column in (target, *protected, *categorical, *drop):
        if column not in names:
            raise ValueError(f"the table has no column {column!r}.{nearest(str(column), names)}")
    if target in protected:
        raise ValueError(f"{target!r} is both the target and a sensitive column.")
    if len(set(protected)) < len(protected):
        raise ValueError(f"a sensitive column is named twice among {', '.join(protected)}.")
    lost = [column for column in (target, *protected) if column in drop]
    if lost:
        raise ValueError(f"{', '.join(lost)} is to be dropped but is the target or a sensitive column.")
    if not len(table):
        raise ValueError("the table has no rows.")


def _without_missing(
    table: pd.DataFrame, target: str, protected: list[str], missing: Missing
) -> tuple[pd.DataFrame, list[str]]:
    numbers = table.select_dtypes("number").columns
    endless = [str(column) for column in numbers if np.isinf(table[column].to_numpy(float, na_value=np.nan)).any()]
    if endless:
        raise ValueError(f"infinite values came in {', '.join(endless)}; replace them or drop those rows.")
    holes = table.isna()
    counts = holes.sum()
    said = ", ".join(f"{column} {count}" for column, count in counts[counts > 0].items())
    if not said:
        return table, []
    if missing == "raise":
        raise ValueError(
            f"{int(holes.any(axis=1).sum())} of {len(table)} rows have missing values ({said}). Pass missing='drop' "
            "to drop these rows or missing='impute' to fill in features."
        )
    if missing == "impute":
        lost = counts[[target, *protected]]
        if lost.any():
            raise ValueError(
                f"missing values in {', '.join(f'{c} {k}' for c, k in lost[lost > 0].items())}: a target or a "
                "sensitive value is not made up. Drop these rows first, or pass missing='drop'."
            )
        return table, [f"missing values are imputed from the training rows or are a level of their own ({said})."]
    kept = table[~holes.any(axis=1)].reset_index(drop=True)
    if not len(kept):
        raise ValueError(f"every row has a missing value ({said}); none is left.")
    return kept, [f"{len(table) - len(kept)} of {len(table)} rows with missing values ({said})."]


def _feature(values: pd.Series[Any], coded: bool) -> tuple[pd.DataFrame, tuple[Column, ...]]:
    name = str(values.name)
    if pd.api.types.is_datetime64_any_dtype(values.dtype) or pd.api.types.is_timedelta64_dtype(values.dtype):
        raise TypeError(
            f"column {name!r} holds dates or times; turn it into a number, such as days since a reference, or pass "
            f"drop=[{name!r}]."
        )
    if not coded and pd.api.types.is_numeric_dtype(values.dtype):
        numbers = values.to_numpy(dtype=np.float64, na_value=np.nan)
        return pd.DataFrame({name: numbers}), (Column.numeric(name),)
    labels = values.map(_label, na_action="ignore").astype(object).where(values.notna(), MISSING_LEVEL)
    levels = list(dict.fromkeys(_label(value) for value in _sorted(values)))
    if values.isna().any():
        levels.append(MISSING_LEVEL)
    if len(levels) > MOST_LEVELS and not coded:
        raise ValueError(
            f"column {name!r} is text with {len(levels)} different values, which would be as many columns. Pass "
            f"drop=[{name!r}] if it identifies rows, or categorical=[{name!r}] if it is meant."
        )
    return encoded(pd.DataFrame({name: labels}), [], {name: levels})


def _sensitive(values: pd.Series[Any]) -> np.ndarray:
    if not pd.api.types.is_numeric_dtype(values.dtype):
        raise TypeError(
            f"sensitive column {values.name!r} is not numeric ({values.dtype}). Map its levels to numbers that mean "
            "something, or use a tool for groups."
        )
    numbers = values.to_numpy(dtype=np.float64)
    if numbers.min() == numbers.max():
        raise ValueError(f"sensitive column {values.name!r} is {numbers[0]:g} in every row; nothing can depend on it.")
    return np.asarray(numbers)


def _target(
    values: pd.Series[Any], task: Task | None, positive: object
) -> tuple[pd.Series[Any], Task, tuple[str, ...]]:
    levels = _sorted(values)
    numeric = pd.api.types.is_numeric_dtype(values.dtype)
    if len(levels) < 2:
        raise ValueError(f"target {values.name!r} is {levels[0]!r} in every row; there is nothing to predict.")
    if task is None:
        task = "binary" if len(levels) == 2 else "regression" if numeric else "multiclass"
    if task not in ("binary", "regression", "multiclass"):
        raise ValueError(f"task={task!r}; pass 'binary', 'regression' or 'multiclass'.")
    if positive is not None and task != "binary":
        raise ValueError(f"positive={positive!r} is for a binary target; the task is {task}.")
    if task == "regression":
        if not numeric:
            raise TypeError(f"target {values.name!r} is text ({values.dtype}); a regression needs numbers.")
        return values.astype("float64"), task, ()
    if task == "binary":
        if len(levels) != 2:
            raise ValueError(f"target {values.name!r} has {len(levels)} different values; a binary one has two.")
        if positive is not None:
            if positive not in levels:
                raise ValueError(
                    f"positive={positive!r} is not a value of {values.name!r}: {levels[0]!r}, {levels[1]!r}."
                )
            levels = [level for level in levels if level != positive] + [positive]
    if len(levels) > MOST_LEVELS:
        raise ValueError(f"target {values.name!r} has {len(levels)} different values; is it a regression?")
    code = {level: float(i) for i, level in enumerate(levels)}
    return values.map(code).astype("float64"), task, tuple(_label(level) for level in levels)


def _sorted(values: pd.Series[Any]) -> list[Any]:
    present = values.dropna().unique()
    if isinstance(values.dtype, pd.CategoricalDtype):
        return [level for level in values.cat.categories if level in set(present)]
    return sorted(present.tolist(), key=lambda value: (str(type(value)), value))


def _label(value: object) -> str:
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
