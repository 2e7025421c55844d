"""Conversion and checks of inputs: arrays of any kind become validated torch tensors.

Every public function calls :func:`matrix`, :func:`vector` or :func:`paired` on its arguments and
works on tensors from there on. No other module converts arrays. Checks of single numbers are here
as well.
"""

from __future__ import annotations

import datetime
import math
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

RandomState = int | np.random.Generator | torch.Generator | None

# Magnitudes that are admitted: eighth powers of them, as in the variance of a linear HSIC, are
# still floats.
LARGEST, SMALLEST = 1e30, 1e-30
# Magnitude, or one over it, from which on float32 becomes float64: products of four such numbers
# overflow.
WIDENED = 1e8
# Bandwidths and factors of kernels that are admitted.
SCALES = (1e-60, 1e60)


def matrix(
    x: Any, name: str, *, device: torch.device | str | None = None, allow_missing: bool = False
) -> Tensor:
    """Return `x` as a finite floating-point tensor of shape (n, d); a vector becomes (n, 1).

    NaN raises. With `allow_missing`, for columns that are scaled later, NaN and all magnitudes stay
    as they are.

    float32 and float64 keep their width, half precision widens to float32, integers and booleans
    become float64. Numbers so large or small that their products leave the range of float32 become
    float64, and those that leave the range of float64 are refused. A torch tensor keeps its device
    and its place in the autograd graph unless `device` asks for another.

    Examples
    --------
    >>> matrix([1, 2, 3], "s").shape
    torch.Size([3, 1])
    """
    tensor = _tensor(x, name)
    if tensor.ndim == 1:
        tensor = tensor[:, None]
    if tensor.ndim != 2 or 0 in tensor.shape:
        raise ValueError(
            f"{name} has shape {tuple(tensor.shape)}; pass one row per observation and one column"
            " per feature."
        )
    _require_finite(tensor, name, allow_missing)
    if not allow_missing:  # raw columns are scaled before anything is computed from them
        tensor = _in_range(tensor, name)
    return tensor if device is None else tensor.to(resolve_device(device))


def vector(x: Any, name: str) -> Tensor:
    """Return `x` as a finite floating-point tensor of shape (n,); a single column is flattened."""
    tensor = matrix(x, name)
    if tensor.shape[1] != 1:
        raise ValueError(f"{name} has {tensor.shape[1]} columns; pass one column.")
    return tensor[:, 0]


def paired(
    *arrays: tuple[Any, str], device: torch.device | str | None = None
) -> tuple[Tensor, ...]:
    """Return matrices of equal length on one device and in the widest dtype among them.

    Each argument is a pair (array, name). Unless `device` is given, the device is that of the first
    tensor that is not on the CPU.
    """
    require_same_rows(*arrays)
    tensors = [matrix(x, name) for x, name in arrays]
    lengths = {name: t.shape[0] for t, (_, name) in zip(tensors, arrays)}
    if len(set(lengths.values())) > 1:
        listed = ", ".join(f"{name} has {n}" for name, n in lengths.items())
        raise ValueError(
            f"lengths differ: {listed} rows. Pass one row of each per observation, in the same"
            " order."
        )
    wide = torch.float64 if any(t.dtype == torch.float64 for t in tensors) else torch.float32
    first = next((t.device for t in tensors if t.device.type != "cpu"), tensors[0].device)
    target = first if device is None else resolve_device(device)
    return tuple(t.to(device=target, dtype=wide) for t in tensors)


def require_same_rows(*arrays: tuple[Any, str]) -> None:
    r"""Compare the indexes of pandas objects whose rows are matched by position.

    The same labels in another order raise, and so do labels that agree in part: rows would be
    matched wrongly. Labels that have nothing in common, or those of an index that was reset, pass
    with a warning.

    Examples
    --------
    >>> import pandas as pd
    >>> age = pd.Series([20, 30, 40])
    >>> require_same_rows((age, "scores"), (age[::-1], "s"))
    Traceback (most recent call last):
    ValueError: scores and s have the same index in another order, and rows are matched ...
    """
    (first, name), *others = [(x.index, name) for x, name in arrays if hasattr(x, "iloc")] or [
        (None, "")
    ]
    for index, other in others:
        if len(index) != len(first) or index.equals(first):
            continue
        shared = index.isin(first)
        same = shared.all() and first.isin(index).all()
        if same or (shared.any() and not _is_default(first) and not _is_default(index)):
            how = (
                "the same index in another order"
                if same
                else f"indexes of which {int(shared.sum()):,} labels agree"
            )
            raise ValueError(
                f"{name} and {other} have {how}, and rows are matched by position. Pass"
                f" {other}.reindex({name}.index) if labels say which rows belong together, or"
                f" {other}.to_numpy() if the positions do."
            )
        warnings.warn(
            f"the indexes of {name} and {other} differ, so rows are matched by position; pass"
            f" {other}.to_numpy() if that is right.",
            stacklevel=2,
        )


def require_rows(n: int, least: int, what: str) -> None:
    """Raise unless there are at least `least` rows for `what`."""
    if n < least:
        raise ValueError(f"{what} needs at least {least} rows; {n} came.")


def require_integer(value: Any, name: str, least: int = 1, most: int | None = None) -> None:
    """Raise unless value is a whole number from `least` to `most`."""
    allowed = f"at least {least}" if most is None else f"between {least} and {most}"
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise TypeError(f"{name} is {type(value).__name__}; pass a whole number, {allowed}.")
    _require(
        value >= least and (most is None or value <= most),
        value,
        name,
        f"a whole number, {allowed}",
    )


def require_positive(value: float, name: str) -> None:
    """Raise unless value is a positive, finite number."""
    _require(math.isfinite(value) and value > 0, value, name, "a positive, finite number")


def require_nonnegative(value: Any, name: str, below: float = math.inf) -> None:
    """Raise unless value is a number that is zero or more, and below a limit."""
    if isinstance(value, bool) or not isinstance(value, (int, float, np.number)):
        raise TypeError(f"{name} is {value!r}; pass a number.")
    _require(0 <= value < below, value, name, f"a number from 0 to below {below:g}")


def require_scale(value: float, name: str) -> None:
    """Raise unless value is a positive number whose square a float can hold with ease."""
    low, high = SCALES
    _require(
        low <= value <= high, value, name, f"a number from {low:g} to {high:g}, or change the units"
    )


def as_given(value: Tensor, *inputs: Any) -> Tensor | float:
    """Return a result as a tensor if a tensor came in, and as a float otherwise."""
    return value if any(isinstance(x, Tensor) for x in inputs) else value.item()


def require_fraction(value: float, name: str) -> None:
    """Raise unless value lies strictly between 0 and 1."""
    _require(0 < value < 1, value, name, "a number between 0 and 1, without either")


def _require(holds: Any, value: Any, name: str, wanted: str) -> None:
    if not holds:
        raise ValueError(f"{name} is {value}; pass {wanted}.")


def require_varying(x: Tensor, name: str) -> None:
    """Raise if every row of x is the same."""
    if bool((x == x[:1]).all()):
        raise ValueError(
            f"{name} is constant: all {x.shape[0]} rows are equal, so nothing can depend on it. "
            "Check the column, or the rows that `where` keeps."
        )


def subset_mask(where: Any, n: int) -> Tensor:
    """Return a boolean mask of length n from booleans or from a 0/1 target (rows with 1 are
    kept).
    """
    values = vector(where, "where")
    if values.shape[0] != n:
        raise ValueError(f"lengths differ: where has {values.shape[0]} rows, the data have {n}.")
    if not bool(((values == 0) | (values == 1)).all()):
        raise ValueError(
            "where must be boolean or 0/1; other values came. Pass a mask such as `y == 1`."
        )
    return values == 1


def require_labels(y: Any, name: str) -> None:
    """Raise if y cannot be a target: masked, sparse, without values, complex, or of dates."""
    if isinstance(y, Tensor):
        _floating(y, name)
    if isinstance(y, np.ma.MaskedArray) and np.ma.getmaskarray(y).any():
        raise ValueError(
            f"{name} is a masked array with missing values; drop those rows or impute them."
        )
    if type(y).__module__.partition(".")[0] == "scipy":
        raise TypeError(
            f"{name} is sparse ({type(y).__name__}); pass a dense array, such as {name}.toarray()."
        )
    values = np.asarray(y)
    if values.dtype.kind == "c":
        raise ValueError(f"Complex data not supported: {name} is complex; pass its real part.")
    first = values.flat[0] if values.size else None
    if values.dtype.kind in "mM" or isinstance(
        first, (datetime.date, datetime.time, datetime.timedelta)
    ):
        raise _not_numeric(
            values.dtype if values.dtype.kind in "mM" else np.dtype("datetime64"), name
        )


def resolve_device(device: torch.device | str | None) -> torch.device:
    """Turn "auto", None, a name or a device into an available torch device."""
    if device is None or device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        resolved = torch.device(device)
        torch.empty(0, device=resolved)
    except (
        RuntimeError,
        AssertionError,
    ) as error:  # a name that torch does not know, or a GPU that is not here
        raise ValueError(
            f"device={str(device)!r} is not available; pass 'auto', 'cpu' or 'cuda'. {error}"
        ) from error
    if resolved.type not in ("cpu", "cuda"):
        raise ValueError(f"device={str(device)!r} is not supported; pass 'auto', 'cpu' or 'cuda'.")
    return resolved


def seed_of(random_state: RandomState) -> int:
    """Return a seed below 2**32: the integer itself, or one drawn from the generator, or a fresh
    one for None.

    Store the seed in a result, so that passing it as `random_state` repeats the result.

    Examples
    --------
    >>> seed_of(7)
    7
    """
    if random_state is None:
        return int(np.random.SeedSequence().generate_state(1)[0])
    if isinstance(random_state, torch.Generator):
        return int(torch.randint(2**32, (1,), generator=random_state, device=random_state.device))
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**32))
    # torch would drop the higher bits, and two seeds would give one stream
    require_integer(random_state, "random_state", 0, 2**32 - 1)
    return int(random_state)


def generator(random_state: RandomState) -> torch.Generator:
    """Return a torch generator on the CPU: a given one, or a new one at :func:`seed_of` the
    state.
    """
    if isinstance(random_state, torch.Generator):
        return random_state
    return torch.Generator().manual_seed(seed_of(random_state))


def numpy_generator(random_state: RandomState) -> np.random.Generator:
    """Return a NumPy generator: a given one, or a new one at :func:`seed_of` the state."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    return np.random.default_rng(seed_of(random_state))


def to_numpy(x: Tensor) -> np.ndarray:
    """Return a tensor's values as a NumPy array, off the graph and off the GPU."""
    return x.detach().cpu().numpy()


def array_name(x: Any, default: str) -> str:
    """Return the name of a Series, or `default`."""
    name = getattr(x, "name", None)
    return str(name) if isinstance(name, str) and name else default


def column_names(x: Any, default: str, columns: int) -> list[str]:
    """Return one name per column: a frame's own, a Series' name, or default, default_2, ..."""
    names = getattr(x, "columns", None)
    if names is not None and len(names) == columns:
        return [str(name) for name in names]
    first = array_name(x, default)
    return [first] if columns == 1 else [f"{first}_{i + 1}" for i in range(columns)]


def _tensor(x: Any, name: str) -> Tensor:
    if isinstance(x, Tensor):
        return _floating(x, name)
    if x is None or isinstance(x, (str, bytes)):
        raise TypeError(f"{name} is {x!r}; pass an array with one row per observation.")
    values = _numeric(x, name)
    # pandas and polars give read-only memory, which torch must not share, and it admits no negative
    # strides, which a reversed array of one row keeps even in C order; a 0-d array stays 0-d
    shared = values.flags.writeable and min(values.strides, default=0) >= 0
    owned = np.asarray(values, order="C") if shared else values.copy(order="C")
    return _floating(torch.from_numpy(owned), name)


def _numeric(x: Any, name: str) -> np.ndarray:
    """Return any array but a tensor as a numeric NumPy array; missing values become NaN, which is
    refused later.
    """
    module = type(x).__module__.partition(".")[0]
    if module == "pyarrow" and hasattr(x, "to_pandas"):
        x, module = x.to_pandas(), "pandas"
    if module in ("pandas", "polars"):
        x = _from_frame(x, name)
    elif module == "scipy":
        raise TypeError(
            f"{name} is sparse ({type(x).__name__}); pass a dense array, such as x.toarray()."
        )
    elif isinstance(x, np.ma.MaskedArray) and x.dtype.kind in "biuf":
        missing = np.ma.getmaskarray(x)
        x = np.where(missing, np.nan, x.data) if missing.any() else x.data
    elif isinstance(x, Sequence) and any(isinstance(item, Tensor) for item in x):
        x = np.stack(
            [to_numpy(item) if isinstance(item, Tensor) else np.asarray(item) for item in x]
        )
    try:
        values = np.asarray(x)
    except ValueError as error:
        raise ValueError(
            f"{name} has rows of different lengths; pass a rectangular array."
        ) from error
    if values.dtype.kind in "biuf":
        unknown = values.dtype.itemsize > {"f": 8, "u": 1}.get(values.dtype.kind, 8)  # to torch
        return values.astype(np.float64 if unknown else values.dtype.newbyteorder("="), copy=False)
    raise _not_numeric(values.dtype, name, values)


def _not_numeric(dtype: Any, name: str, values: Any = ()) -> TypeError:
    """Return the error for values that are no numbers. Objects are looked at: pandas before 3 keeps
    text as objects.
    """
    kind = getattr(dtype, "kind", "O")
    family = str(dtype).partition("(")[
        0
    ]  # polars writes Enum(categories=...), Datetime(time_unit=...)
    text = kind in "US" or family in {"str", "string", "String", "category", "Categorical", "Enum"}
    bands = family.startswith("interval") or any(
        hasattr(value, "mid") for value in np.ravel(values)
    )
    if (
        text
        or bands
        or (family == "object" and any(isinstance(value, str) for value in np.ravel(values)))
    ):
        return TypeError(
            f"{name} holds text, bands or categories ({dtype}), not numbers. Write a band such as"
            " 30-39 as its mid-point and ordered levels as their ranks, as frhsic.audit and"
            " fit(sensitive_features=...) do by themselves; other categories are one 0/1 column"
            " for each level."
        )
    if kind == "c":
        return TypeError(
            f"{name} is complex ({dtype}); pass its real and imaginary parts as columns."
        )
    if kind in "mM" or family in {"Date", "Datetime", "Duration", "Time"}:
        return TypeError(
            f"{name} holds dates ({dtype}); convert it to a number such as days since a reference."
        )
    return TypeError(
        f"{name} has dtype {dtype}; convert it to float64 first, for instance with astype(float)."
    )


def _from_frame(x: Any, name: str) -> np.ndarray:
    """Return a frame or a Series of pandas or polars as an array."""
    if not hasattr(x, "to_numpy"):
        raise TypeError(
            f"{name} is a polars {type(x).__name__}, which holds no values yet; pass"
            f" {name}.collect()."
        )
    if len(x.shape) == 1:
        return _column(x, name)
    columns = (
        x.get_columns() if hasattr(x, "get_columns") else [x.iloc[:, i] for i in range(x.shape[1])]
    )
    if not columns:
        raise ValueError(f"{name} has no columns.")
    return np.stack([_column(column, f"{name}[{column.name!r}]") for column in columns], axis=1)


def _column(column: Any, name: str) -> np.ndarray:
    """Return a Series as an array; NaN for missing values."""
    dtype = column.dtype
    if hasattr(dtype, "is_numeric"):  # polars
        numeric = dtype.is_numeric() or str(dtype) == "Boolean"
    else:
        numeric = getattr(dtype, "kind", "O") in "biuf"
    if not numeric:
        raise _not_numeric(dtype, name, column)
    if hasattr(dtype, "na_value"):  # pandas' own dtypes
        width = np.float32 if dtype.kind == "f" and dtype.itemsize <= 4 else np.float64
        return np.asarray(column.to_numpy(dtype=width, na_value=np.nan))
    values = np.asarray(column.to_numpy())
    return (
        values.astype(float) if values.dtype.kind == "O" else values
    )  # booleans of polars with nulls


def _in_range(tensor: Tensor, name: str) -> Tensor:
    """Return a finite matrix, in float64 if float32 is too narrow for its products; raise if
    float64 is, too.

    Columns that are constant have no magnitude that matters.
    """
    low, high = (end.to(torch.float64) for end in torch.aminmax(tensor.detach(), dim=0))
    largest, spread = float(torch.maximum(-low, high).max()), float((high - low).max())
    narrowest = float(torch.where(high > low, high - low, torch.inf).min())
    if largest > LARGEST:
        raise ValueError(
            f"{name} holds numbers as large as {largest:.3g}, whose products no float can hold; the"
            f" limit is {LARGEST:g}. Rescale it, or treat such numbers as missing."
        )
    if narrowest < SMALLEST:
        raise ValueError(
            f"the numbers of a column of {name} differ by {narrowest:.3g} at most, and no float can"
            f" hold the products of such differences; the limit is {SMALLEST:g}. Rescale it."
        )
    narrow = largest > WIDENED or 0 < spread < 1 / WIDENED
    return tensor.to(torch.float64) if narrow and tensor.dtype == torch.float32 else tensor


def _floating(tensor: Tensor, name: str) -> Tensor:
    if (
        tensor.device.type == "meta"
        or tensor.layout != torch.strided
        or tensor.is_nested
        or tensor.is_quantized
    ):
        raise TypeError(
            f"{name} is a sparse, nested or quantized tensor, or on the device meta; pass a dense"
            " one."
        )
    if tensor.dtype in (torch.float32, torch.float64):
        return tensor
    if tensor.dtype in (torch.float16, torch.bfloat16):
        return tensor.to(torch.float32)
    if tensor.is_complex():
        raise _not_numeric(np.dtype(complex), name)
    return tensor.to(torch.float64)


def _require_finite(tensor: Tensor, name: str, allow_missing: bool) -> None:
    values = tensor.detach()
    if values.numel() and bool(torch.stack(values.aminmax()).isfinite().all()):
        return  # in most cases, and without a temporary matrix
    bad = torch.isinf(values) if allow_missing else ~torch.isfinite(values)
    if bool(bad.any()):
        row, column = (int(i) for i in bad.nonzero()[0])
        kinds = "infinite" if allow_missing else "NaN or infinite"
        raise ValueError(
            f"{name} holds {int(bad.sum())} values that are {kinds}; the first is in row {row},"
            f" column {column}. Drop those rows or impute them."
        )


def _is_default(index: Any) -> bool:
    """Return whether an index counts from 0, as that of a new or reset object does."""
    return bool(index.dtype.kind == "i" and (np.asarray(index) == np.arange(len(index))).all())
