"""Random instances on which every certificate has to hold."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from frhsic.kernels import Gaussian, InverseMultiquadric, Kernel, Laplacian, Linear

INSTANCES = range(100)


@dataclass(frozen=True)
class Instance:
    z: Tensor
    s: Tensor
    kernel_z: Kernel
    kernel_s: Kernel
    rng: np.random.Generator

    @property
    def n(self) -> int:
        return self.z.shape[0]


def instance(
    seed: int, *, ties: bool | None = None, dtype: torch.dtype = torch.float64
) -> Instance:
    """A sample of 6 to 25 rows, S dependent on Z or not, continuous or with ties, kernels drawn at
    random.
    """
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(6, 26)), int(rng.integers(1, 4))
    z = rng.normal(size=(n, d)) * rng.choice([0.1, 1.0, 5.0])
    s = rng.choice([0.0, 0.3, 2.0]) * z[:, 0] + rng.normal(size=n)
    if rng.random() < 0.5 if ties is None else ties:
        s = (
            s.argsort().argsort() * int(rng.integers(2, 5)) // n
        )  # 2 to 4 values, each taken by several rows
    return Instance(
        torch.tensor(z, dtype=dtype),
        torch.tensor(s, dtype=dtype),
        kernel_of(rng),
        kernel_of(rng, linear=False),
        rng,
    )


def kernel_of(rng: np.random.Generator, *, linear: bool = True) -> Kernel:
    sigma = float(rng.uniform(0.3, 3.0))
    kernels: list[Kernel] = [Gaussian(sigma), Laplacian(sigma), InverseMultiquadric(sigma)]
    if linear:
        kernels += [Linear(), Linear() + Gaussian(sigma)]
    return kernels[int(rng.integers(len(kernels)))]


def table_of(rng: np.random.Generator, rows: int, columns: int) -> np.ndarray:
    """A table of joint probabilities, some of them zero, none of the columns empty."""
    table = rng.exponential(size=(rows, columns)) * (rng.random((rows, columns)) < 0.8)
    table += 1e-3
    return table / table.sum()


def gram_of(rng: np.random.Generator, size: int, kernel: Kernel, columns: int = 2) -> Tensor:
    x = torch.tensor(rng.normal(size=(size, columns)))
    return kernel(x, x)


def holds(left: float, right: float) -> bool:
    """Left side at most right side, to rounding."""
    return left <= right + 1e-10 * abs(right) + 1e-14
