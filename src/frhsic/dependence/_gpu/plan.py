r"""A kernel as a short program that a GPU kernel evaluates, and the coordinates that it reads.

Every sum or product of Gaussian, Laplacian, inverse multiquadric and linear kernels, on all columns or on some, is a
sum of products of *factors*. A factor is a function of one number per pair of rows, its *metric*: minus a squared
distance, minus an absolute distance, or an inner product, in coordinates that are scaled so that a Gaussian or
Laplacian is :math:`2^m`. Gaussians of one product merge into one factor, also if they act on different columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from math import ceil, log2
from typing import NamedTuple

import torch
from torch import Tensor

from frhsic.dependence import _tiles
from frhsic.kernels import Column, Gaussian, InverseMultiquadric, Kernel, Laplacian, Linear, Multiple, PerColumn, Sum
from frhsic.kernels import Product as ProductKernel

SQUARED, ABSOLUTE, INNER = 0, 1, 2
"""Metrics."""
EXPONENTIAL, QUADRATIC, LINEAR = 0, 1, 2
"""Families of factors: 2^m, (1 - m)^(-1/2) and m."""

MOST_TERMS = 8
MOST_COLUMNS = 512
FEWEST_FOR_PRODUCTS = 5
"""Columns from which distances come from matrix products; below, differences are as quick and keep all digits."""

MOST_ENERGY = 16.0
"""Largest mean squared norm, in units in which a Gaussian is 2 to the minus squared distance, for matrix products.

They lose about 1e-6 times the squared norms of a distance. Rows farther out are subtracted from each other.
"""

LEAST_ENERGY = 2.0**-6
"""Mean squared norm below which coordinates are enlarged: small float16 numbers have fewer digits."""

SOME_ROWS = 1024
"""Rows whose mean is subtracted from the entries before they are summed."""

_LOG2E = 1.4426950408889634


class Factor(NamedTuple):
    """Family, metric, and the weight of each column in the metric."""

    family: int
    metric: int
    weights: tuple[float, ...]


Term = tuple[float, tuple[Factor, ...]]


@dataclass(frozen=True)
class Plan:
    """A kernel on given rows, ready for a GPU.

    Attributes
    ----------
    codes
        One integer per factor. Its bits: 0-1 the family; 2 it has a scale; 3 it opens a term; 4 it closes a term; 5 the
        term has a coefficient; 6 all factors before it in the term are radial; 7 its view is not that of the factor
        before; 8 it is in the first term; from 9 the number of its view.
    views
        Metric, first column and end of each view, one after the other.
    numbers
        The constant that is subtracted from the kernel; then scale and coefficient of each factor. float32.
    shifted
        Whether the kernel minus its offset is evaluated, as it is nearly constant.
    unit
        Factor on squared coordinates if distances come from matrix products, else 0.
    bound
        Upper bound of the entries after the constant is subtracted.
    spread
        Standard deviation of the entries on some rows.
    center
        Subtracted from the rows, in float64, of shape (d,).
    scales
        Factors on the columns, for each view; for matrix products one factor for all.
    """

    codes: tuple[int, ...]
    views: tuple[int, ...]
    numbers: Tensor
    shifted: bool
    unit: float
    bound: float
    spread: float
    center: Tensor
    scales: Tensor
    columns: tuple[int, ...]

    @property
    def constant(self) -> float:
        """The constant that is subtracted from the kernel, or from the kernel minus its offset."""
        return float(self.numbers[0])

    def coordinates(self, x: Tensor, rows: int) -> Tensor:
        """Return the columns of all views, of shape (columns, rows) in float32, padded with zeros."""
        placed = torch.zeros(len(self.columns), rows, dtype=torch.float32, device=x.device)
        for start in range(0, len(x), 1 << 15):
            block = x[start : start + (1 << 15)].double() - self.center
            placed[:, start : start + len(block)] = (block[:, list(self.columns)] * self.scales).mT
        return placed


def plan(x: Tensor, kernel: Kernel, w: Tensor, *, products: bool = True) -> Plan | None:
    """Return the plan of a kernel on rows x with weights w; None if there is none.

    Rows in float64 are working copies, which are centred already. Without `products` distances never come from matrix
    products.
    """
    d = x.shape[1]
    if d > MOST_COLUMNS:
        return None
    terms = _terms(kernel, tuple(range(d)), d)
    if terms is None or not terms or len(terms) > MOST_TERMS:
        return None
    terms = [(coefficient, _merged(factors)) for coefficient, factors in terms]
    center = x.new_zeros(d, dtype=torch.float64)
    if kernel.centering_safe and x.dtype != torch.float64:
        center = sum((block.double().sum(0) for block in torch.split(x, 1 << 16)), center) / len(x)
    some = x[:: max(1, len(x) // SOME_ROWS)].double() - center
    shifted = _tiles.nearly_constant(some, kernel)
    sample = (kernel.shifted if shifted else kernel)(some, some)
    constant, spread = float(sample.mean()), float(sample.std())
    square, largest = _square_norms(x, center, w)
    unit = _unit(terms, kernel, d, square) if products else 0.0
    keys: list[tuple[int, tuple[float, ...]]] = []
    units: list[float] = []
    codes: list[int] = []
    numbers = [constant]
    bound = abs(constant)
    for coefficient, factors in terms:
        most, opening = coefficient, not codes  # whether this is the first term
        for place, factor in enumerate(factors):
            top = max(factor.weights)
            if unit:
                view, own = 0, unit
            else:
                key = (factor.metric, tuple(value / top for value in factor.weights))
                if key not in keys:
                    keys.append(key)
                    units.append(1 / max(square, 1e-300) if factor.metric == INNER else top)
                view = keys.index(key)
                own = units[view]
            scale = top / own
            fresh = not codes or codes[-1] >> 9 != view
            radial = all(other.family != LINEAR for other in factors[:place])
            flags = (scale != 1, place == 0, place == len(factors) - 1, coefficient != 1, radial, fresh, opening)
            codes.append(factor.family | sum(flag << bit for bit, flag in enumerate(flags, 2)) | view << 9)
            numbers += [scale, coefficient]
            most *= largest if factor.family == LINEAR else 1.0
        bound += most
    columns: list[int] = []
    scales: list[float] = []
    views: list[int] = []
    for (metric, weights), own in zip(keys, units):
        used = [c for c in range(d) if weights[c] > 0]
        views += [metric, len(columns), len(columns) + len(used)]
        columns += used
        scales += [weights[c] * own if metric == ABSOLUTE else (weights[c] * own) ** 0.5 for c in used]
    return Plan(
        tuple(codes),
        tuple(views),
        torch.tensor(numbers, dtype=torch.float64).to(x.device, torch.float32),
        shifted,
        unit,
        bound,
        max(spread, 1e-30),
        center,
        torch.tensor(scales, dtype=torch.float64, device=x.device),
        tuple(columns),
    )


def fixed_point(bound: float, total: float) -> float:
    """Return the power of two that turns sums of entries up to `bound`, of weight `total`, into 62-bit integers."""
    return 2.0 ** (61 - ceil(log2(max(bound * total, 1e-30))))


def _terms(kernel: Kernel, columns: tuple[int, ...], d: int) -> list[Term] | None:
    """Write a kernel as a sum of products of factors; None if it holds a kernel that has no factor."""
    if isinstance(kernel, Multiple):
        inner = _terms(kernel.kernel, columns, d)
        return None if inner is None else [(kernel.factor * c, factors) for c, factors in inner if kernel.factor]
    if isinstance(kernel, (Sum, ProductKernel)):
        a, b = _terms(kernel.a, columns, d), _terms(kernel.b, columns, d)
        if a is None or b is None:
            return None
        if isinstance(kernel, Sum):
            return a + b
        return [(c * e, left + right) for (c, left), (e, right) in product(a, b)]
    if isinstance(kernel, PerColumn):
        return _terms(kernel.kernel, columns, d)
    if isinstance(kernel, Column):
        return _terms(kernel.kernel, columns[kernel.index : kernel.index + 1], d)
    if type(kernel) not in (Gaussian, Laplacian, InverseMultiquadric, Linear):
        return None
    bandwidth = float(getattr(kernel, "bandwidth", 1.0))
    family, metric, weight = {
        Gaussian: (EXPONENTIAL, SQUARED, _LOG2E / (2 * bandwidth**2)),
        Laplacian: (EXPONENTIAL, ABSOLUTE, _LOG2E / bandwidth),
        InverseMultiquadric: (QUADRATIC, SQUARED, 1 / bandwidth**2),
        Linear: (LINEAR, INNER, 1.0),
    }[type(kernel)]
    weights = tuple(weight if c in columns else 0.0 for c in range(d))
    return [(1.0, (Factor(family, metric, weights),))]


def _merged(factors: tuple[Factor, ...]) -> tuple[Factor, ...]:
    """Replace exponentials of one metric by one: exponents add."""
    merged: list[Factor] = []
    for factor in factors:
        same = [f for f in merged if f[:2] == factor[:2] and f.family == EXPONENTIAL]
        if same:
            weights = tuple(a + b for a, b in zip(same[0].weights, factor.weights))
            merged[merged.index(same[0])] = factor._replace(weights=weights)
        else:
            merged.append(factor)
    return tuple(merged)


def _square_norms(x: Tensor, center: Tensor, w: Tensor) -> tuple[float, float]:
    """Return the weighted mean and the maximum of the squared norms of the rows minus the center."""
    total, largest = x.new_zeros((), dtype=torch.float64), x.new_zeros((), dtype=torch.float64)
    for start in range(0, len(x), 1 << 16):
        norms = (x[start : start + (1 << 16)].double() - center).square().sum(1)
        total = total + w[start : start + (1 << 16)] @ norms
        largest = torch.maximum(largest, norms.max())
    return float(total / w.sum()), float(largest)


def _unit(terms: list[Term], kernel: Kernel, d: int, square: float) -> float:
    """Return the factor on squared coordinates for matrix products, or 0 if they do not serve."""
    factors = [factor for _, some in terms for factor in some]
    even = all(min(factor.weights) == max(factor.weights) for factor in factors)
    if d < FEWEST_FOR_PRODUCTS or not kernel.centering_safe or not even or square == 0:
        return 0.0
    if any(factor.metric == ABSOLUTE for factor in factors):
        return 0.0
    scales = [max(factor.weights) for factor in factors if factor.metric == SQUARED]
    if scales and max(scales) * square > MOST_ENERGY:
        return 0.0
    if not scales or scales[0] * square < LEAST_ENERGY:
        return 1 / square
    return scales[0]
