"""What the generators share."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import torch
from scipy import integrate
from torch import Tensor


def tensor(values: np.ndarray, dtype: torch.dtype) -> Tensor:
    """Return an array as a tensor of the dtype asked for."""
    return torch.from_numpy(np.ascontiguousarray(values, dtype=np.float64)).to(dtype)


def positive(value: float, name: str) -> float:
    """Return the value; ValueError unless it is positive."""
    if not value > 0:
        raise ValueError(f"{name}={value}; pass a positive number.")
    return float(value)


def normal_mean(f: Callable[[float], float]) -> float:
    """Return E f(e) of a standard normal e, to about twelve digits."""

    def term(e: float) -> float:
        return f(e) * math.exp(-0.5 * e * e) / math.sqrt(2 * math.pi)

    return float(integrate.quad(term, -12, 12, points=[0.0], epsabs=1e-13, epsrel=1e-12, limit=400)[0])
