"""One list of kernels for all laws, on three columns, and their values by the formulae."""

from __future__ import annotations

import numpy as np
import torch

from frhsic.kernels import (
    Gaussian,
    InverseMultiquadric,
    Kernel,
    Laplacian,
    Linear,
    Multiple,
    PerColumn,
    Sum,
)

COLUMNS = 3

KERNELS: dict[str, Kernel] = {
    "gaussian": Gaussian(1.5),
    "gaussian, bandwidth a tensor": Gaussian(torch.tensor(1.5, dtype=torch.float64)),
    "laplacian": Laplacian(2.5),
    "inverse multiquadric": InverseMultiquadric(1.5),
    "linear": Linear(),
    "linear + gaussian": Linear() + Gaussian(1.5),
    "laplacian + inverse multiquadric": Laplacian(2.5) + InverseMultiquadric(1.5),
    "per column": PerColumn((Gaussian(1.5), Laplacian(2.5), InverseMultiquadric(1.0))),
    "per column with a sum": PerColumn((Gaussian(1.5), Laplacian(2.5) + Linear(), Gaussian(0.5))),
    "10 linear + gaussian": 10 * Linear() + Gaussian(1.5),
    "0.5 (linear + gaussian)": 0.5 * (Linear() + Gaussian(1.5)),
    "gaussian times 2": Gaussian(1.5) * 2.0,
}


def reference_gram(kernel: Kernel, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Kernel values by their formulae, from differences: nothing shared with the library."""
    match kernel:
        case Sum(a, b):
            return reference_gram(a, x, y) + reference_gram(b, x, y)
        case Multiple(factor, part):
            return x.dtype.type(factor) * reference_gram(part, x, y)
        case PerColumn(parts):
            values = [reference_gram(part, x[:, [c]], y[:, [c]]) for c, part in enumerate(parts)]
            return np.prod(values, axis=0)
        case Linear():
            return sum(np.multiply.outer(x[:, c], y[:, c]) for c in range(x.shape[1]))
    gaps = [np.subtract.outer(x[:, c], y[:, c]) for c in range(x.shape[1])]
    bandwidth = x.dtype.type(float(kernel.bandwidth))
    match kernel:
        case Laplacian():
            return np.exp(-sum(np.abs(g) for g in gaps) / bandwidth)
        case Gaussian():
            return np.exp(-sum(g * g for g in gaps) / (2 * bandwidth**2))
        case InverseMultiquadric():
            return 1 / np.sqrt(1 + sum(g * g for g in gaps) / bandwidth**2)
    raise AssertionError(f"no reference for {kernel}")
