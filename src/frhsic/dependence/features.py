r"""HSIC from random features, in O(n) time, with a standard error, and from sums that can be added
over parts of the data.

A shift-invariant kernel is the mean of :math:`\cos(\omega^\top (x - y))` over its spectral
distribution. Drawing m frequencies gives features :math:`\varphi(x) = m^{-1/2} (\cos \omega_j^\top
x, \sin \omega_j^\top x)_j` with :math:`\mathbb E \, \varphi(x)^\top \varphi(y) = k(x, y)`, and HSIC
is the squared norm of a covariance matrix of features. HSIC depends on the data only through
:math:`n`, two sums of features and one sum of products of features.

References
----------
Rahimi and Recht (2007), *Random features for large-scale kernel machines*. Zhang, Filippi, Gretton
and Sejdinovic (2018), *Large-scale kernel methods for independence testing*.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any

import torch
from torch import Tensor

from frhsic import _arrays, _tensors
from frhsic.dependence.inputs import kernel_or_median, paired_rows, recenter
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

CHUNK_ROWS = 4096  # rows whose features are in memory at once

# Draws standard normal numbers of shape (blocks, rows, frequencies) for a given number of rows.
Normal = Callable[[int], Tensor]


@dataclass(frozen=True, eq=False)
class _Term:
    """Features of one kernel of a sum, times the square root of a factor.

    The features are cosines and sines at frequencies of shape (blocks, d, m). The linear kernel has
    no frequencies: its features are the coordinates themselves, and one block is enough.
    """

    frequencies: Tensor | None
    factor: float

    def __call__(self, x: Tensor) -> Tensor:
        features = x[:, None, :]
        if self.frequencies is not None:
            blocks, width, count = self.frequencies.shape
            # blocks are the last axis in memory, since a row has few frequencies in each
            phases = x @ self.frequencies.to(x.device).permute(1, 2, 0).reshape(width, -1)
            features = torch.cat([phases.cos(), phases.sin_()], dim=1).div_(math.sqrt(count))
            features = features.view(len(x), 2 * count, blocks).mT
        return features if self.factor == 1 else math.sqrt(self.factor) * features


def _feature_terms(
    kernel: Kernel, columns: int, normal: Normal, factor: float = 1.0
) -> list[_Term]:
    """Draw the features of a kernel times a factor, with one term for each kernel in a sum."""
    if isinstance(kernel, Sum):
        first = _feature_terms(kernel.a, columns, normal, factor)
        return first + _feature_terms(kernel.b, columns, normal, factor)
    if isinstance(kernel, Multiple):
        return _feature_terms(kernel.kernel, columns, normal, factor * kernel.factor)
    if isinstance(kernel, Linear):
        return [_Term(None, factor)]
    if not isinstance(kernel, PerColumn):
        return [_Term(_frequencies(kernel, columns, normal), factor)]
    if len(kernel.kernels) != columns:
        raise ValueError(
            f"got {len(kernel.kernels)} kernels for {columns} columns; pass one kernel per column."
        )
    frequencies = [_frequencies(part, 1, normal) for part in kernel.kernels]
    return [_Term(torch.cat(frequencies, dim=1), factor)]


def _frequencies(kernel: Kernel, columns: int, normal: Normal) -> Tensor:
    """Draw frequencies, of shape (blocks, columns, m), from the kernel's spectral distribution."""
    if not isinstance(kernel, (Gaussian, InverseMultiquadric, Laplacian)):
        raise TypeError(
            f"random features are not available for {type(kernel).__name__}; use"
            " frhsic.dependence.hsic, which is exact for any kernel."
        )
    bandwidth = float(torch.as_tensor(kernel.bandwidth, device="cpu").detach())
    frequencies = normal(columns) / bandwidth
    if isinstance(kernel, InverseMultiquadric):
        # E exp(-g² r² / 2σ²) over a standard normal g is (1 + r²/σ²)^(-1/2): a Gaussian of random
        # width
        return normal(1).abs() * frequencies
    if isinstance(kernel, Laplacian):
        # each exp(-|t|/σ) is the characteristic function of a Cauchy distribution, the ratio of two
        # normals
        return frequencies / normal(columns)
    return frequencies


@dataclass(frozen=True)
class FeatureEstimate:
    """An approximate statistic with the standard error of the approximation; ``float(...)`` gives
    the value.

    Attributes
    ----------
    value
        Estimate of the V-statistic :func:`frhsic.dependence.hsic` on the same rows.
    standard_error
        Standard error of the random features with the rows fixed: how far `value` is from the exact
        statistic. The sampling of the rows is not included.
    n
        Number of rows.
    features
        Number of features for each variable.
    blocks
        Number of independent parts of the draw; the standard error is estimated from the spread
        between parts.
    kernel_z
        The kernel on z, with its bandwidth.
    kernel_s
        The kernel on s, with its bandwidth.
    """

    value: float
    standard_error: float
    n: int
    features: int
    blocks: int
    kernel_z: Kernel
    kernel_s: Kernel

    def __float__(self) -> float:
        return self.value


@dataclass(frozen=True, eq=False)
class FeatureSums:
    """Sums of random features over a part of the rows; ``+`` adds the sums of two parts with
    features from the same draw.

    Attributes
    ----------
    n
        Number of rows.
    z
        Sums of the features of z, (blocks, features per block).
    s
        Sums of the features of s, of the same shape.
    cross
        Sum of products of features of z and of s, each minus its mean over these rows, because sums
        of uncentered products would lose digits.
    """

    n: int
    z: Tensor
    s: Tensor
    cross: Tensor

    def __add__(self, other: FeatureSums) -> FeatureSums:
        # Chan, Golub and LeVeque (1979): products about the joint mean, from those about the mean
        # of each part
        n = self.n + other.n
        between = (other.z / other.n - self.z / self.n)[:, :, None, None] * (
            other.s / other.n - self.s / self.n
        )
        cross = self.cross + other.cross + self.n * other.n / n * between
        return FeatureSums(n, self.z + other.z, self.s + other.s, cross)


@dataclass(frozen=True, eq=False)
class FeatureMaps:
    """Random features for both variables, drawn by :func:`draw_feature_maps`."""

    kernel_z: Kernel
    kernel_s: Kernel
    features: int
    blocks: int
    terms_z: list[_Term]
    terms_s: list[_Term]

    def sums(self, z: Tensor, s: Tensor) -> FeatureSums:
        """Return the sums of features over the rows of z, of shape (n, d), and s, of shape (n,
        q).
        """
        return reduce(add, (products(f, g) for f, g in self.chunks(z, s)))

    def chunks(self, z: Tensor, s: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield the features of both variables in chunks of rows, of shape (rows, blocks, features
        per block).
        """
        some_z = torch.split(z.detach().to(torch.float64), CHUNK_ROWS)
        some_s = torch.split(s.detach().to(torch.float64), CHUNK_ROWS)
        for x, y in zip(some_z, some_s):
            yield _side_by_side(self.terms_z, x), _side_by_side(self.terms_s, y)

    def estimate(self, sums: FeatureSums) -> FeatureEstimate:
        r"""Return HSIC and its standard error from sums over all rows.

        Each pair of a block of features of z and a block of s gives an unbiased estimate
        :math:`H_{bc}` of the exact V-statistic; the value is the mean of these estimates. The rows
        and columns of the table of estimates are independent draws, so its mean has the variance
        :math:`\sigma_z^2 / B_z + \sigma_s^2 / B_s + \sigma_{zs}^2 / B_z B_s`, estimated from the
        margins.
        """
        _arrays.require_rows(sums.n, 2, "HSIC by features")
        table = (sums.cross / sums.n).square().sum(dim=(1, 3))  # (blocks of z, blocks of s)
        return FeatureEstimate(
            value=float(table.mean()),
            standard_error=_standard_error(table),
            n=sums.n,
            features=self.features,
            blocks=self.blocks,
            kernel_z=self.kernel_z,
            kernel_s=self.kernel_s,
        )


def _side_by_side(terms: list[_Term], x: Tensor) -> Tensor:
    parts = [term(x) for term in terms]
    if len(parts) == 1:
        return parts[0]
    blocks = max(part.shape[1] for part in parts)
    return torch.cat([part.expand(-1, blocks, -1) for part in parts], dim=-1)


def products(f: Tensor, g: Tensor) -> FeatureSums:
    """Return the sums and the sum of products of two sets of features on the same rows, each of
    shape (rows, blocks, features per block).
    """
    shape_f = f.mT.shape[1:]
    shape_g = g.mT.shape[1:]
    a = f.mT.flatten(1)
    b = g.mT.flatten(1)
    total_f = a.sum(0)
    total_g = b.sum(0)
    cross = (a - total_f / len(a)).mT @ (b - total_g / len(b))
    return FeatureSums(
        n=len(a),
        z=total_f.view(shape_f).mT,
        s=total_g.view(shape_g).mT,
        cross=cross.view(*shape_f, *shape_g).permute(1, 0, 3, 2),
    )


def hsic_features(
    z: Any,
    s: Any,
    kernel_z: Kernel | None = None,
    kernel_s: Kernel | None = None,
    *,
    features: int = 512,
    blocks: int = 16,
    where: Any = None,
    random_state: _arrays.RandomState = 0,
    device: torch.device | str | None = None,
) -> FeatureEstimate:
    r"""HSIC from random features, :math:`\| n^{-1} \sum_i \tilde\varphi(z_i) \tilde\psi(s_i)^\top
    \|_F^2`, in O(n) time.

    Here :math:`\tilde\varphi, \tilde\psi` are the features minus their means. The expectation over
    the draw is exactly :func:`frhsic.dependence.hsic` for the same rows, so zero has the same
    meaning. Use random features with more than about 100,000 rows, or with
    :mod:`frhsic.distributed` for data in parts.

    Parameters
    ----------
    z, s, kernel_z, kernel_s, where, device
        As for :func:`frhsic.dependence.hsic`. Kernels may be Gaussian, Laplacian, inverse
        multiquadric, linear (which needs no draw), products over columns without linear kernels,
        and sums of these kernels.
    features
        Number of features for each variable, half of them cosines and half sines: a multiple of 2 *
        blocks. The error falls with the square root of this number, and the time grows with its
        square.
    blocks
        Number of independent parts of the draw, which the standard error requires; at least 2.
    random_state
        Seed of the draw.

    Returns
    -------
    FeatureEstimate
        The value, and the standard error due to the features with the rows fixed.

    Examples
    --------
    A linear kernel has finitely many features, so the answer is exact: the squared covariance, 1.25
    ** 2.

    >>> from frhsic.kernels import Linear
    >>> x = [0.0, 1.0, 2.0, 3.0]
    >>> result = hsic_features(x, x, Linear(), Linear())
    >>> result.value, result.standard_error
    (1.5625, 0.0)
    """
    z, s = paired_rows(z, s, where=where, device=device, least=2, what="HSIC by features")
    _arrays.require_varying(s, "s")
    kernel_z = kernel_or_median(kernel_z, z, "z")
    kernel_s = kernel_or_median(kernel_s, s, "s")
    maps = draw_feature_maps(
        kernel_z,
        kernel_s,
        z.shape[1],
        s.shape[1],
        features=features,
        blocks=blocks,
        random_state=random_state,
    )
    # a shift changes neither HSIC nor the distribution of its features, and keeps more digits
    return maps.estimate(maps.sums(recenter(z.detach(), kernel_z), recenter(s.detach(), kernel_s)))


def draw_feature_maps(
    kernel_z: Kernel,
    kernel_s: Kernel,
    columns_z: int,
    columns_s: int,
    *,
    features: int = 512,
    blocks: int = 16,
    random_state: _arrays.RandomState = 0,
) -> FeatureMaps:
    """Draw random features for two kernels once; they can be summed over parts of the data.

    Parameters
    ----------
    kernel_z, kernel_s
        Kernels with fixed bandwidths.
    columns_z, columns_s
        Number of columns of z and of s.
    features, blocks, random_state
        As for :func:`hsic_features`.

    Examples
    --------
    Two parts together give the same estimate as the whole.

    >>> from frhsic.kernels import Gaussian
    >>> z, s = torch.arange(6.0)[:, None], torch.arange(6.0)[:, None] ** 2
    >>> maps = draw_feature_maps(Gaussian(1.0), Gaussian(1.0), 1, 1, random_state=0)
    >>> parts = maps.sums(z[:2], s[:2]) + maps.sums(z[2:], s[2:])
    >>> whole = maps.sums(z, s)
    >>> abs(maps.estimate(parts).value - maps.estimate(whole).value) < 1e-12
    True
    """
    if blocks < 2:
        raise ValueError(f"blocks={blocks}; pass at least 2, which the standard error requires.")
    if features < 1 or features % (2 * blocks):
        raise ValueError(f"features={features}; pass a multiple of 2 * blocks = {2 * blocks}.")
    generator = _tensors.generator(random_state)

    def normal(rows: int) -> Tensor:
        shape = (blocks, rows, features // (2 * blocks))
        return torch.randn(shape, dtype=torch.float64, generator=generator, device=generator.device)

    terms_z = _feature_terms(kernel_z, columns_z, normal)
    terms_s = _feature_terms(kernel_s, columns_s, normal)
    return FeatureMaps(kernel_z, kernel_s, features, blocks, terms_z, terms_s)


def _standard_error(table: Tensor) -> float:
    """Return the standard error of the mean of a table whose rows and columns are independent
    draws.
    """
    rows, columns = table.shape
    if rows == columns == 1:
        return 0.0
    if rows == 1 or columns == 1:
        return float(table.std() / math.sqrt(table.numel()))
    mean = table.mean()
    by_row = table.mean(1)
    by_column = table.mean(0)
    rest = table - by_row[:, None] - by_column + mean
    interaction = rest.square().sum() / ((rows - 1) * (columns - 1))
    # either margin's variance contains the interaction; the variance of the mean contains it once
    variance = by_row.var() / rows + by_column.var() / columns - interaction / (rows * columns)
    return math.sqrt(max(float(variance), float(interaction) / (rows * columns)))
