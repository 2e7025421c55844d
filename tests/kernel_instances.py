"""One list of kernels for all laws: every kind, sums, products, products over columns, on three columns."""

from __future__ import annotations

import torch

from frhsic.kernels import Gaussian, InverseMultiquadric, Kernel, Laplacian, Linear
from frhsic.kernels.kernel import PerColumn

COLUMNS = 3

KERNELS: dict[str, Kernel] = {
    "gaussian": Gaussian(1.5),
    "gaussian, bandwidth a tensor": Gaussian(torch.tensor(1.5, dtype=torch.float64)),
    "laplacian": Laplacian(2.5),
    "inverse multiquadric": InverseMultiquadric(1.5),
    "linear": Linear(),
    "linear + gaussian": Linear() + Gaussian(1.5),
    "laplacian + inverse multiquadric": Laplacian(2.5) + InverseMultiquadric(1.5),
    "gaussian * laplacian": Gaussian(2.0) * Laplacian(4.0),
    "linear * gaussian": Linear() * Gaussian(1.5),
    "(linear + gaussian) * laplacian": (Linear() + Gaussian(1.5)) * Laplacian(4.0),
    "per column": PerColumn((Gaussian(1.5), Laplacian(2.5), InverseMultiquadric(1.0))),
    "per column with a sum": PerColumn((Gaussian(1.5), Laplacian(2.5) + Linear(), Gaussian(0.5))),
    "10 linear + gaussian": 10 * Linear() + Gaussian(1.5),
    "0.5 (linear + gaussian)": 0.5 * (Linear() + Gaussian(1.5)),
    "gaussian times 2": Gaussian(1.5) * 2.0,
    "2 gaussian * laplacian": (2 * Gaussian(2.0)) * Laplacian(4.0),
}
