"""Maps to random features, drawn from the spectral laws of kernels."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from frhsic.kernels import (
    Column,
    Gaussian,
    InverseMultiquadric,
    Kernel,
    Laplacian,
    Linear,
    Multiple,
    PerColumn,
    Product,
    Sum,
)


@dataclass(frozen=True)
class Draw:
    """Number of frequencies, number of blocks, and the generator."""

    blocks: int
    frequencies: int
    generator: torch.Generator

    def normal(self, rows: int) -> Tensor:
        """Return standard normal numbers of shape (blocks, rows, frequencies)."""
        shape = (self.blocks, rows, self.frequencies)
        return torch.randn(shape, dtype=torch.float64, generator=self.generator, device=self.generator.device)


@dataclass(frozen=True, eq=False)
class _Term:
    """Features of one product of kernels: cosines and sines, times a coordinate for each linear factor.

    Frequencies have shape (blocks, d, m); without radial factors there are none, and one block is enough.
    """

    frequencies: Tensor | None
    linear: tuple[slice, ...]
    factor: float = 1.0

    def __call__(self, x: Tensor) -> Tensor:
        features = x.new_ones(len(x), 1, 1)
        if self.frequencies is not None:
            blocks, width, count = self.frequencies.shape
            # blocks are the last axis in memory, since a row has few frequencies in each
            phases = x @ self.frequencies.to(x.device).permute(1, 2, 0).reshape(width, -1)
            features = torch.cat([phases.cos(), phases.sin_()], dim=1).div_(math.sqrt(count))
            features = features.view(len(x), 2 * count, blocks).mT
        for columns in self.linear:
            features = (features[..., :, None] * x[:, None, None, columns]).flatten(2)
        return features if self.factor == 1 else math.sqrt(self.factor) * features


@dataclass(frozen=True, eq=False)
class FeatureMap:
    """Features of a sum of products of kernels, side by side: (n, d) to (n, blocks, features per block)."""

    terms: tuple[_Term, ...]

    def __call__(self, x: Tensor) -> Tensor:
        parts = [term(x) for term in self.terms]
        if len(parts) == 1:
            return parts[0]
        blocks = max(part.shape[1] for part in parts)
        return torch.cat([part.expand(-1, blocks, -1) for part in parts], dim=-1)

    def fingerprint(self) -> bytes:
        """Return bytes that differ between draws."""
        frequencies = [t.frequencies.cpu().numpy().tobytes() for t in self.terms if t.frequencies is not None]
        return b"".join([repr([t.linear for t in self.terms]).encode(), *frequencies])


_Factor = tuple[Kernel, int | None]
"""A kernel that is neither sum nor product, and the column that it applies to, None for all; or a multiple."""


def feature_map(kernel: Kernel, columns: int, draw: Draw) -> FeatureMap:
    """Draw the features of a kernel on so many columns."""
    return FeatureMap(tuple(_term(factors, columns, draw) for factors in _expanded(kernel, None, columns)))


def _expanded(kernel: Kernel, index: int | None, columns: int) -> list[list[_Factor]]:
    """Write a kernel as a sum of products."""
    if isinstance(kernel, Sum):
        return _expanded(kernel.a, index, columns) + _expanded(kernel.b, index, columns)
    if isinstance(kernel, Product):
        left, right = _expanded(kernel.a, index, columns), _expanded(kernel.b, index, columns)
        return [a + b for a in left for b in right]
    if isinstance(kernel, Multiple):
        return [[(kernel, None), *factors] for factors in _expanded(kernel.kernel, index, columns)]
    if isinstance(kernel, Column):
        return _expanded(kernel.kernel, kernel.index, columns)
    if isinstance(kernel, PerColumn):
        if len(kernel.kernels) != columns:
            raise ValueError(f"{len(kernel.kernels)} kernels for {columns} columns; pass one for each.")
        return _expanded(kernel.kernel, index, columns)
    return [[(kernel, index)]]


def _term(factors: list[_Factor], columns: int, draw: Draw) -> _Term:
    frequencies: Tensor | None = None
    linear = []
    factor = 1.0
    for kernel, index in factors:
        if isinstance(kernel, Multiple):
            factor *= kernel.factor
            continue
        applies_to = slice(None) if index is None else slice(index, index + 1)
        if isinstance(kernel, Linear):
            linear.append(applies_to)
            continue
        drawn = _frequencies(kernel, columns if index is None else 1, draw)
        # a product of kernels has the convolution of their spectral laws: frequencies add
        if frequencies is None:
            frequencies = drawn.new_zeros(draw.blocks, columns, draw.frequencies)
        frequencies[:, applies_to] += drawn
    return _Term(frequencies, tuple(linear), factor)


def _frequencies(kernel: Kernel, columns: int, draw: Draw) -> Tensor:
    """Draw frequencies, of shape (blocks, columns, m), from the kernel's spectral law."""
    if not isinstance(kernel, (Gaussian, InverseMultiquadric, Laplacian)):
        raise TypeError(
            f"random features are not known for {type(kernel).__name__}; use frhsic.dependence.hsic, which is "
            "exact for any kernel."
        )
    bandwidth = float(torch.as_tensor(kernel.bandwidth, device="cpu").detach())
    normal = draw.normal(columns) / bandwidth
    if isinstance(kernel, InverseMultiquadric):
        # E exp(-g² r² / 2σ²) over a standard normal g is (1 + r²/σ²)^(-1/2): a Gaussian of random width
        return draw.normal(1).abs() * normal
    if isinstance(kernel, Laplacian):
        # each exp(-|t|/σ) is the characteristic function of a Cauchy law, the ratio of two normals
        return normal / draw.normal(columns)
    return normal
