"""Convert inputs to torch tensors and validate them.

The checks are the same as in :mod:`frhsic._arrays`. A torch tensor stays on its device and in the
autograd graph.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from frhsic import _arrays
from frhsic._arrays import RandomState


def matrix(
    x: Any, name: str, *, device: torch.device | str | None = None, allow_missing: bool = False
) -> Tensor:
    """Return `x` as a finite floating-point tensor of shape (n, d); a vector gets the shape (n, 1).

    The dtype and the checks are the same as in :func:`frhsic._arrays.matrix`. A tensor stays on its
    device unless `device` is given.

    Examples
    --------
    >>> matrix([1, 2, 3], "s").shape
    torch.Size([3, 1])
    """
    tensor = _arrays.as_columns(_floating(x, name), name)
    values = tensor.detach()
    if not bool(torch.stack(values.aminmax()).isfinite().all()):
        _arrays.require_finite(_arrays.to_numpy(values), name, allow_missing)
    if not allow_missing:  # raw columns are scaled before anything is computed from them
        low, high = (_arrays.to_numpy(end.to(torch.float64)) for end in values.aminmax(dim=0))
        if _arrays.needs_float64(low, high, name):
            tensor = tensor.to(torch.float64)
    return tensor if device is None else tensor.to(resolve_device(device))


def vector(x: Any, name: str) -> Tensor:
    """Return `x` as a finite floating-point tensor of shape (n,); a single column is flattened."""
    return _arrays.only_column(matrix(x, name), name)


def column_values(x: Tensor) -> np.ndarray:
    """Return the only column of a matrix as a NumPy array of float64, of shape (n,)."""
    return _arrays.to_numpy(x[:, 0].detach().to(torch.float64))


def paired_matrices(
    *arrays: tuple[Any, str], device: torch.device | str | None = None
) -> tuple[Tensor, ...]:
    """Return matrices of equal length on one device and in the widest dtype among them.

    Each argument is a pair (array, name). Unless `device` is given, the device is that of the first
    tensor that is not on the CPU.
    """
    _arrays.require_same_rows(*arrays)
    tensors = [matrix(x, name) for x, name in arrays]
    _arrays.require_same_lengths({name: len(x) for x, (_, name) in zip(tensors, arrays)})
    wide = torch.float64 if any(t.dtype == torch.float64 for t in tensors) else torch.float32
    first = next((t.device for t in tensors if t.device.type != "cpu"), tensors[0].device)
    target = first if device is None else resolve_device(device)
    return tuple(t.to(device=target, dtype=wide) for t in tensors)


def subset_mask(where: Any, n: int) -> Tensor:
    """Return a boolean mask of length n from booleans or from a 0/1 target (rows with 1 are
    kept).
    """
    values = vector(where, "where")
    _arrays.require_mask(values, n)
    return values == 1


def to_input_type(value: Tensor, *inputs: Any) -> Tensor | float:
    """Return a result as a tensor if the input was a tensor, otherwise as a float."""
    return value if any(isinstance(x, Tensor) for x in inputs) else value.item()


def resolve_device(device: torch.device | str | None) -> torch.device:
    """Return the torch device for "auto", None, a name or a device; raise if it is unavailable."""
    if device is None or device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        resolved = torch.device(device)
        torch.empty(0, device=resolved)
    except (
        RuntimeError,
        AssertionError,
    ) as error:  # an unknown name, or a GPU that is not available
        raise ValueError(
            f"device={str(device)!r} is not available; pass 'auto', 'cpu' or 'cuda'. {error}"
        ) from error
    if resolved.type not in ("cpu", "cuda"):
        raise ValueError(f"device={str(device)!r} is not supported; pass 'auto', 'cpu' or 'cuda'.")
    return resolved


def generator(random_state: RandomState) -> torch.Generator:
    """Return the given torch generator, or a new one on the CPU, seeded with
    :func:`frhsic._arrays.integer_seed`.
    """
    if isinstance(random_state, torch.Generator):
        return random_state
    return torch.Generator().manual_seed(_arrays.integer_seed(random_state))


def _floating(x: Any, name: str) -> Tensor:
    """Return any array as a tensor of float32 or float64."""
    if isinstance(x, Tensor):
        _arrays.require_dense(x, name)
        tensor = x
    else:
        values = _arrays.numeric_array(x, name)
        # pandas and polars return read-only memory, which torch must not share; it rejects
        # negative strides, which a reversed array of one row keeps even in C order; a 0-d array
        # stays 0-d
        shared = values.flags.writeable and min(values.strides, default=0) >= 0
        tensor = torch.from_numpy(
            np.asarray(values, order="C") if shared else values.copy(order="C")
        )
    if tensor.dtype in (torch.float32, torch.float64):
        return tensor
    half = tensor.dtype in (torch.float16, torch.bfloat16)
    return tensor.to(torch.float32 if half else torch.float64)
