"""Convert inputs to NumPy arrays and validate them.

Measures and tests call :func:`matrix`, :func:`vector` or :func:`paired_matrices` on their arguments
or, if they compute with torch, the functions with these names in :mod:`frhsic._tensors`. Frames are
converted in :mod:`frhsic.tables`, and the arguments of estimators in
:mod:`frhsic.estimators.inputs`, with scikit-learn's checks. This module also checks single numbers,
and recognizes tensors without importing torch.
"""

from __future__ import annotations

import datetime
import math
import sys
import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias, TypeGuard, TypeVar

import numpy as np

if TYPE_CHECKING:
    import torch

RandomState: TypeAlias = "int | np.random.Generator | torch.Generator | None"
AnyArray = TypeVar("AnyArray", np.ndarray, "torch.Tensor")

# Largest accepted number, and smallest difference within a column: a float can still hold their
# eighth powers, which occur in the variance of a linear HSIC.
LARGEST_NUMBER = 1e30
SMALLEST_SPREAD = 1e-30
# Smallest effective number of weighted rows, as a share of all rows and in total.
FEW_EFFECTIVE = 0.1
LEAST_EFFECTIVE = 50
# float32 becomes float64 beyond this magnitude, and below its inverse, since products of four such
# numbers overflow.
WIDENED = 1e8
# Accepted bandwidths and factors of kernels.
KERNEL_SCALES = (1e-60, 1e60)


def is_tensor(x: Any) -> TypeGuard[torch.Tensor]:
    """Return whether x is a torch tensor, without importing torch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(x, torch.Tensor)


def matrix(x: Any, name: str, *, allow_missing: bool = False) -> np.ndarray:
    """Return `x` as a finite floating-point array of shape (n, d); a vector gets the shape (n, 1).

    NaN raises an error. With `allow_missing`, which is for columns that are scaled later, NaN and
    numbers of any magnitude are left unchanged.

    Arrays of float32 and float64 keep their dtype, half precision becomes float32, and integers and
    booleans become float64. Numbers whose products are outside the range of float32 become float64,
    and those whose products are outside the range of float64 are rejected. The result may share
    memory with `x`.

    Examples
    --------
    >>> matrix([1, 2, 3], "s").shape
    (3, 1)
    """
    array = numeric_array(x, name)
    if array.dtype not in (np.float32, np.float64):
        array = array.astype(np.float32 if array.dtype == np.float16 else np.float64)
    array = as_columns(np.asarray(array, order="C"), name)
    low = array.min(axis=0)
    high = array.max(axis=0)
    if not (np.isfinite(low).all() and np.isfinite(high).all()):
        require_finite(array, name, allow_missing)
    if allow_missing:  # raw columns are scaled before anything is computed from them
        return array
    widened = needs_float64(low.astype(np.float64), high.astype(np.float64), name)
    return array.astype(np.float64) if widened else array


def vector(x: Any, name: str) -> np.ndarray:
    """Return `x` as a finite floating-point array of shape (n,); a single column is flattened."""
    return only_column(matrix(x, name), name)


def paired_matrices(*arrays: tuple[Any, str]) -> tuple[np.ndarray, ...]:
    """Return matrices of equal length in the widest dtype among them.

    Each argument is a pair (array, name).
    """
    require_same_rows(*arrays)
    matrices = [matrix(x, name) for x, name in arrays]
    require_same_lengths({name: len(x) for x, (_, name) in zip(matrices, arrays)})
    widest = np.result_type(*matrices)
    return tuple(x.astype(widest, copy=False) for x in matrices)


def require_same_lengths(lengths: Mapping[str, int]) -> None:
    """Raise unless all arrays, keyed by name, have the same number of rows."""
    if len(set(lengths.values())) > 1:
        listed = ", ".join(f"{name} has {n} rows" for name, n in lengths.items())
        raise ValueError(
            f"lengths differ: {listed}. Pass arrays with one row per observation, in the same"
            " order."
        )


def require_same_rows(*arrays: tuple[Any, str]) -> None:
    r"""Compare the indexes of pandas objects whose rows are matched by position.

    Raise if the labels are the same but in a different order, or if they overlap only partly,
    because rows would be matched wrongly. Warn if no label is shared, or if one index was reset.

    Examples
    --------
    >>> import pandas as pd
    >>> age = pd.Series([20, 30, 40])
    >>> require_same_rows((age, "scores"), (age[::-1], "s"))
    Traceback (most recent call last):
    ValueError: scores and s have the same index in a different order, but rows are matched ...
    """
    indexed = [(x.index, name) for x, name in arrays if hasattr(x, "iloc")]
    if not indexed:
        return
    first, name = indexed[0]
    for index, other in indexed[1:]:
        if len(index) != len(first) or index.equals(first):
            continue
        shared = index.isin(first)
        same = shared.all() and first.isin(index).all()
        if same or (shared.any() and not _is_default(first) and not _is_default(index)):
            how = f"indexes that share only {int(shared.sum()):,} labels"
            if same:
                how = "the same index in a different order"
            raise ValueError(
                f"{name} and {other} have {how}, but rows are matched by position. Pass"
                f" {other}.reindex({name}.index) to match them by label, or {other}.to_numpy() to"
                " match them by position."
            )
        warnings.warn(
            f"the indexes of {name} and {other} differ, so rows are matched by position; pass"
            f" {other}.to_numpy() if that is intended.",
            stacklevel=2,
        )


def require_rows(n: int, least: int, what: str) -> None:
    """Raise unless there are at least `least` rows for `what`."""
    if n < least:
        raise ValueError(f"{what} needs at least {least} rows; got {n}.")


def require_integer(value: Any, name: str, least: int = 1, most: int | None = None) -> None:
    """Raise unless value is a whole number from `least` to `most`."""
    allowed = f"of at least {least}" if most is None else f"between {least} and {most}"
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise TypeError(f"{name} is {type(value).__name__}; pass a whole number {allowed}.")
    _require(
        value >= least and (most is None or value <= most),
        value,
        name,
        f"a whole number {allowed}",
    )


def require_positive(value: float, name: str) -> None:
    """Raise unless value is a positive, finite number."""
    _require(math.isfinite(value) and value > 0, value, name, "a positive, finite number")


def require_nonnegative(value: Any, name: str, below: float = math.inf) -> None:
    """Raise unless value is a number that is at least zero and below a limit."""
    if isinstance(value, bool) or not isinstance(value, (int, float, np.number)):
        raise TypeError(f"{name} is {value!r}; pass a number.")
    _require(0 <= value < below, value, name, f"a number that is at least 0 and below {below:g}")


def require_scale(value: float, name: str) -> None:
    """Raise unless value is a positive number whose square neither overflows nor underflows."""
    low, high = KERNEL_SCALES
    _require(
        low <= value <= high, value, name, f"a number from {low:g} to {high:g}, or change the units"
    )


def require_fraction(value: float, name: str) -> None:
    """Raise unless value is strictly between 0 and 1."""
    _require(0 < value < 1, value, name, "a number strictly between 0 and 1")


def _require(holds: Any, value: Any, name: str, wanted: str) -> None:
    if not holds:
        raise ValueError(f"{name} is {value}; pass {wanted}.")


def require_varying(x: AnyArray, name: str) -> None:
    """Raise if every row of x is the same."""
    if bool((x == x[:1]).all()):
        raise ValueError(
            f"{name} is constant: all {x.shape[0]} rows are equal, so nothing can depend on it. "
            "Check the column, or the rows that `where` keeps."
        )


def subset_mask(where: Any, n: int) -> np.ndarray:
    """Return a boolean mask of length n from booleans or from a 0/1 target (rows with 1 are
    kept).
    """
    values = vector(where, "where")
    require_mask(values, n)
    return np.asarray(values == 1)


def require_mask(values: AnyArray, n: int) -> None:
    """Raise unless a vector has n numbers that are 0 or 1."""
    if values.shape[0] != n:
        raise ValueError(
            f"lengths differ: `where` has {values.shape[0]} rows, but the data have {n}. Pass one"
            " value per row."
        )
    valid = (values == 0) | (values == 1)
    if not bool(valid.all()):
        raise ValueError(
            f"`where` contains {float(values[~valid][0]):g}; pass a mask of booleans or of 0 and 1,"
            " such as `y == 1`."
        )


def require_labels(y: Any, name: str) -> None:
    """Raise if y cannot be a target because it is masked, sparse, complex or not yet computed, or
    contains dates.
    """
    require_dense(y, name)
    values = np.asarray(y)
    if values.dtype.kind == "c":
        raise ValueError(f"Complex data not supported: {name} is complex; pass its real part.")
    if values.dtype.kind in "mM":
        raise _not_numeric(values.dtype, name)
    first = values.flat[0] if values.size else None
    if isinstance(first, (datetime.date, datetime.time, datetime.timedelta)):
        raise _not_numeric(np.dtype("datetime64"), name)


def integer_seed(random_state: RandomState) -> int:
    """Return a seed below 2**32: the integer itself, or one drawn from the generator, or a fresh
    one for None.

    Results store this seed; passing it as `random_state` reproduces the result.

    Examples
    --------
    >>> integer_seed(7)
    7
    """
    if random_state is None:
        return int(np.random.SeedSequence().generate_state(1)[0])
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**32))
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(random_state, torch.Generator):
        return int(torch.randint(2**32, (1,), generator=random_state, device=random_state.device))
    # torch would drop the higher bits, so different seeds could give the same stream
    require_integer(random_state, "random_state", 0, 2**32 - 1)
    return int(random_state)  # type: ignore[arg-type]  # a whole number


def numpy_generator(random_state: RandomState) -> np.random.Generator:
    """Return the given NumPy generator, or a new one seeded by :func:`integer_seed`."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    return np.random.default_rng(integer_seed(random_state))


def to_numpy(x: torch.Tensor) -> np.ndarray:
    """Return a tensor's values as a NumPy array, detached and on the CPU."""
    return x.detach().cpu().numpy()


def array_name(x: Any, default: str) -> str:
    """Return the name of a Series, or `default`."""
    name = getattr(x, "name", None)
    return str(name) if isinstance(name, str) and name else default


def column_names(x: Any, default: str, columns: int) -> list[str]:
    """Return one name per column: the column names of a frame, the name of a Series, or default,
    default_2 and so on.
    """
    names = getattr(x, "columns", None)
    if names is not None and len(names) == columns:
        return [str(name) for name in names]
    first = array_name(x, default)
    return [first] if columns == 1 else [f"{first}_{i + 1}" for i in range(columns)]


def numeric_array(x: Any, name: str) -> np.ndarray:
    """Return any array as a numeric NumPy array that torch accepts; missing values become NaN,
    which later checks reject.
    """
    if x is None or isinstance(x, (str, bytes)):
        raise TypeError(f"{name} is {x!r}; pass an array with one row per observation.")
    require_dense(x, name)
    if is_tensor(x):
        x = to_numpy(x.float() if x.is_floating_point() and x.element_size() < 4 else x)
    if type(x).__module__.partition(".")[0] in ("pandas", "polars", "pyarrow"):
        x = _from_frame(x, name)
    try:
        values = np.asarray(x)
    except ValueError as error:
        raise ValueError(
            f"{name} has rows of different lengths; pass a rectangular array."
        ) from error
    if values.dtype.kind not in "biuf":
        raise _not_numeric(values.dtype, name, values)
    widest = 1 if values.dtype.kind == "u" else 8  # supported by torch
    if values.dtype.itemsize > widest:
        return values.astype(np.float64, copy=False)
    return values.astype(values.dtype.newbyteorder("="), copy=False)


def _not_numeric(dtype: Any, name: str, values: Any = ()) -> TypeError:
    """Return the error for non-numeric values. Arrays of objects are inspected, because pandas
    before version 3 stores text as objects.
    """
    kind = dtype.kind
    if kind in "US" or any(
        isinstance(value, str) or hasattr(value, "mid") for value in np.ravel(values)
    ):
        return TypeError(
            f"{name} contains text, bands or categories ({dtype}), not numbers. Replace bands such"
            " as 30-39 by their midpoints and ordered levels by their ranks, as frhsic.audit and"
            " fit(sensitive_features=...) do automatically; encode other categories as one 0/1"
            " column per level."
        )
    if kind == "c":
        return TypeError(
            f"{name} is complex ({dtype}); pass its real and imaginary parts as columns."
        )
    if kind in "mM":
        return TypeError(
            f"{name} contains dates ({dtype}); convert them to numbers such as days since a"
            " reference date."
        )
    return TypeError(
        f"{name} has dtype {dtype}; convert it to float64 first, for instance with astype(float)."
    )


def _from_frame(x: Any, name: str) -> np.ndarray:
    """Return a frame or Series from pandas, polars or pyarrow as an array."""
    if hasattr(x, "to_pandas"):
        x = x.to_pandas()
    if x.ndim == 1:
        return _column(x, name)
    if not x.shape[1]:
        raise ValueError(f"{name} has no columns; pass at least one.")
    columns = [x.iloc[:, i] for i in range(x.shape[1])]
    return np.stack([_column(column, f"{name}[{column.name!r}]") for column in columns], axis=1)


def _column(column: Any, name: str) -> np.ndarray:
    """Return a pandas Series as an array, with NaN for missing values."""
    dtype = column.dtype
    if dtype.kind not in "biuf":
        raise _not_numeric(dtype, name, column)
    if hasattr(dtype, "na_value"):  # one of pandas' own dtypes
        width = np.float32 if dtype.kind == "f" and dtype.itemsize <= 4 else np.float64
        return np.asarray(column.to_numpy(dtype=width, na_value=np.nan))
    return np.asarray(column.to_numpy())


def as_columns(x: AnyArray, name: str) -> AnyArray:
    """Return a two-dimensional array or tensor; a vector becomes one column."""
    if x.ndim == 1:
        x = x[:, None]
    if x.ndim != 2 or 0 in x.shape:
        raise ValueError(
            f"{name} has shape {tuple(x.shape)}; pass one row per observation and one column"
            " per feature."
        )
    return x


def only_column(x: AnyArray, name: str) -> AnyArray:
    """Return the only column of a matrix."""
    if x.shape[1] != 1:
        raise ValueError(f"{name} has {x.shape[1]} columns; pass one column.")
    return x[:, 0]


def needs_float64(low: np.ndarray, high: np.ndarray, name: str) -> bool:
    """Return whether columns with minima `low` and maxima `high` need float64 because products of
    their numbers don't fit into float32; raise if they don't fit into float64 either.

    The magnitude of constant columns does not matter.
    """
    largest = float(np.maximum(-low, high).max())
    spread = high - low
    narrowest = float(np.where(spread > 0, spread, np.inf).min())
    if largest > LARGEST_NUMBER:
        raise ValueError(
            f"{name} contains numbers as large as {largest:.3g}, whose products overflow a float;"
            f" the limit is {LARGEST_NUMBER:g}. Rescale {name}, or treat such numbers as missing."
        )
    if narrowest < SMALLEST_SPREAD:
        raise ValueError(
            f"the numbers in a column of {name} differ by at most {narrowest:.3g}, and products of"
            f" such small differences underflow a float. Rescale {name} so that they differ by at"
            f" least {SMALLEST_SPREAD:g}."
        )
    return largest > WIDENED or 0 < float(spread.max()) < 1 / WIDENED


def require_values(x: Any, name: str) -> None:
    """Raise if x is a query that has not been run: a polars LazyFrame or a DuckDB relation."""
    kind = type(x).__name__
    call = {"LazyFrame": "collect()", "DuckDBPyRelation": "df()"}.get(kind)
    if call is not None:
        raise TypeError(f"{name} is a {kind}, which has not been computed yet; pass {name}.{call}.")


def require_dense(x: Any, name: str) -> None:
    """Raise if an array or a tensor is sparse or masked, or doesn't contain plain real numbers."""
    require_values(x, name)
    if is_tensor(x):
        plain = str(x.layout) == "torch.strided" and x.device.type != "meta"
        if not plain or x.is_nested or x.is_quantized:
            raise TypeError(
                f"{name} is sparse, nested, quantized or on the meta device; pass a dense tensor."
            )
        if x.is_complex():
            raise _not_numeric(np.dtype(complex), name)
    if type(x).__module__.partition(".")[0] == "scipy":
        raise TypeError(
            f"{name} is sparse ({type(x).__name__}); pass a dense array, such as {name}.toarray()."
        )
    if isinstance(x, np.ma.MaskedArray) and np.ma.is_masked(x):
        raise ValueError(
            f"{name} is a masked array with missing values; pass {name}.filled(np.nan), or drop"
            " the rows with missing values."
        )


def require_finite(values: np.ndarray, name: str, allow_missing: bool) -> None:
    """Raise if a number is infinite or, unless `allow_missing`, NaN."""
    bad = np.isinf(values) if allow_missing else ~np.isfinite(values)
    if bad.any():
        row, column = np.argwhere(bad)[0]
        index = f"[{row}, {column}]" if bad.shape[1] > 1 else f"[{row}]"
        kinds = "infinite" if allow_missing else "NaN or infinite"
        raise ValueError(
            f"{name} is {kinds} in {int(bad.any(axis=1).sum()):,} of {len(bad):,} rows, first at"
            f" index {index}. Drop these rows, or replace the values."
        )


def _is_default(index: Any) -> bool:
    """Return whether an index is 0, 1, 2 and so on, as in a new object or after a reset."""
    return bool(index.dtype.kind == "i" and (np.asarray(index) == np.arange(len(index))).all())


def effective_number(weights: np.ndarray) -> float:
    """Return the number of equally weighted rows whose mean would be as precise (Kish, 1965): the
    square of the sum of the weights divided by the sum of their squares.

    Examples
    --------
    >>> effective_number(np.array([1.0, 1.0, 1.0])), effective_number(np.array([98.0, 1.0, 1.0]))
    (3.0, 1.0410160316468873)
    """
    return float(weights.sum() ** 2 / (weights**2).sum())


def has_few_effective(rows: int, effective: float) -> bool:
    """Return whether a few rows with large weights dominate the mean, or whether the effective
    number of rows is too small for an interval.
    """
    return effective < max(FEW_EFFECTIVE * rows, min(LEAST_EFFECTIVE, rows / 2))
