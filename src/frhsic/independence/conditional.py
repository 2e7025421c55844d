r"""A kernel test of conditional independence given a continuous variable: separation for regression."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy.stats import rankdata
from torch import Tensor

from frhsic import _arrays
from frhsic.dependence._inputs import column_scales, kernel_or_median, working_copy
from frhsic.dependence.operators import pivoted_cholesky
from frhsic.independence.permutation import critical_value, permutation_pvalue, require_resamples
from frhsic.independence.result import IndependenceResult, require_level
from frhsic.kernels import Gaussian, Kernel, default_gaussian

RANK_WIDTHS, WIDTHS = (0.05, 0.1, 0.2, 0.4), (0.2, 0.4, 0.8)
"""Bandwidths on the ranks of y, and in units of its spread, among which leave-one-out errors choose."""

RIDGES = tuple(10.0**k for k in range(-6, 2))
"""Ridges, as shares of the largest eigenvalue of the Gram matrix of y."""

MAX_RANK = 100
LEFT_OUT = 1e-3
"""Share of the trace of a Gram matrix that its factor may leave out."""

TILE_ENTRIES = 1 << 22


def conditional_test(
    z: Any,
    s: Any,
    y: Any,
    kernel_z: Kernel | None = None,
    kernel_s: Kernel | None = None,
    *,
    resamples: int = 999,
    random_state: _arrays.RandomState = None,
    level: float = 0.05,
    where: Any = None,
) -> IndependenceResult:
    r"""Test of :math:`H_0`: Z and S independent given Y, where Y is continuous (separation, Equal Opportunity).

    .. math:: T = \frac{1}{n^2} \sum_{ij} \langle \hat r_i, \hat r_j \rangle \langle \hat q_i, \hat q_j \rangle
        k_Y(y_i, y_j), \qquad \hat r_i = \phi(z_i) - \hat E[\phi(Z) | y_i], \quad
        \hat q_i = \psi(s_i) - \hat E[\psi(S) | y_i],

    where :math:`\phi, \psi` are the embeddings of the kernels. Its population value is zero exactly under
    :math:`H_0` if the kernels are characteristic. The null distribution multiplies each row by a random sign (wild
    bootstrap).

    Use it for a regression whose score may depend on S through the outcome alone. For a 0/1 target, test the rows with
    y = 1 (`where=y` of the other tests).

    Parameters
    ----------
    z, s, y
        One row per observation. Several columns of z or s are tested together; y has one column.
    kernel_z, kernel_s
        Kernels; None is a Gaussian at the median distance.
    resamples
        Number of random signs for each row.
    random_state
        Seed; None draws one, which the result holds.
    level
        Level of the test.
    where
        Rows to keep: a boolean mask.

    Returns
    -------
    IndependenceResult
        `statistic` is T. Its effect size divides T by its largest value for these residuals, and lies in [0, 1].

    Notes
    -----
    Conditional means are kernel ridge regressions on y or on its ranks. Residuals are those of leaving the row out, and
    bandwidth and ridge have the least sum of their squares. The level is approximate: no test of conditional
    independence has a level for every law (Shah and Peters, 2020). It needs conditional means that are smooth in y or
    in its rank, and the product of the two errors to be small beside :math:`n^{-1/2}`. Ties in y are allowed. Factors
    of the Gram matrices have at most 100 columns. O(n² · resamples) time, O(n · resamples) memory.

    References
    ----------
    Zhang et al. (2011), *Kernel-based conditional independence test*. Shah and Peters (2020), *The hardness of
    conditional independence testing and the generalised covariance measure*.

    Examples
    --------
    The score and S move together, but only through y.

    >>> draw = torch.Generator().manual_seed(0)
    >>> y, e, d = torch.randn(3, 200, generator=draw)
    >>> conditional_test(y + e, y + d, y, random_state=0).rejected
    False
    >>> conditional_test(y + e, y + d + e, y, random_state=0).rejected
    True
    """
    require_level(level, None)
    require_resamples(resamples)
    z, s, y = _arrays.paired((z, "z"), (s, "s"), (y, "y"), device="cpu")
    if y.shape[1] > 1:
        raise ValueError(f"y has {y.shape[1]} columns; pass one target.")
    if where is not None:
        kept = _arrays.subset_mask(where, len(z))
        z, s, y = z[kept], s[kept], y[kept]
    _arrays.require_rows(len(z), 20, "the conditional test")
    for x, name in ((z, "z"), (s, "s"), (y, "y")):
        _arrays.require_varying(x, name)
    order = np.lexsort([x.detach().numpy() for x in (*s.mT, *z.mT, *y.mT)])  # so that their order does not matter
    z, s, y = z[order], s[order], y[order]
    n, seed = len(z), _arrays.seed_of(random_state)
    ranks = torch.from_numpy((rankdata(y[:, 0].numpy()) - 0.5) / n)[:, None]
    values = working_copy(y, Gaussian(1.0)) / torch.from_numpy(column_scales(y.numpy()))
    bases = [_basis(x, w) for x, widths in ((ranks, RANK_WIDTHS), (values, WIDTHS)) for w in widths]
    (r, kernel_z, rule_z), (q, kernel_s, rule_s) = (
        _residuals(x, kernel, name, bases) for x, kernel, name in ((z, kernel_z, "z"), (s, kernel_s, "s"))
    )
    signs = torch.ones(n, resamples + 1, dtype=torch.float64)  # the first column is the sample itself
    draws = torch.randint(2, (n, resamples), generator=_arrays.generator(seed))
    signs[:, 1:] = 2.0 * draws - 1
    statistics, size = _statistics(r, q, ranks, signs)
    observed, null = float(statistics[0]), statistics[1:]
    slack = 100 * torch.finfo(torch.float64).eps * size
    return IndependenceResult(
        statistic=observed,
        pvalue=permutation_pvalue(observed, null, slack),
        threshold=critical_value(null, level),
        level=level,
        method="conditional, wild bootstrap",
        n=n,
        kernels=(repr(kernel_z), repr(kernel_s)),
        bandwidths=(_width(kernel_z), _width(kernel_s)),
        effect_size=observed / size if size > 0 else 0.0,
        effect_size_null=float(null.mean()) / size if size > 0 else 0.0,
        null_mean=float(null.mean()),
        null_standard_deviation=float(null.std()),
        resamples=int(resamples),
        seed=seed,
        bandwidth_rules=(rule_z, rule_s),
    )


@dataclass(frozen=True)
class _Basis:
    """Eigenvectors of a Gram matrix of y, and its eigenvalues as shares of the largest."""

    vectors: Tensor
    values: Tensor


def _basis(y: Tensor, width: float) -> _Basis:
    factor, _ = pivoted_cholesky(Gaussian(width), y, tolerance=1e-10, max_rank=MAX_RANK)
    vectors, singular, _ = torch.linalg.svd(factor, full_matrices=False)
    return _Basis(vectors, (singular / singular[0]) ** 2)


def _residuals(x: Tensor, kernel: Kernel | None, name: str, bases: list[_Basis]) -> tuple[Tensor, Kernel, str]:
    """Return what leave-one-out regressions on y leave of the features of x, the kernel, and the rule of its width."""
    kernel, rule = default_gaussian(x, name=name) if kernel is None else (kernel_or_median(kernel, x, name), "given")
    features, _ = pivoted_cholesky(kernel, working_copy(x, kernel), tolerance=LEFT_OUT, max_rank=MAX_RANK)
    features = features - features.mean(dim=0)
    best, least = features, math.inf
    for basis in bases:
        along = basis.vectors.mT @ features
        for ridge in RIDGES:
            shrink = basis.values / (basis.values + ridge)
            leverage = (basis.vectors.square() * shrink).sum(dim=1)
            residual = (features - basis.vectors @ (shrink[:, None] * along)) / (1 - leverage).clamp_min(1e-3)[:, None]
            error = float(residual.square().sum())
            if error < least:
                best, least = residual, error
    return best, kernel, rule


def _statistics(r: Tensor, q: Tensor, ranks: Tensor, signs: Tensor) -> tuple[Tensor, float]:
    """Return T for each column of signs, and the bound of T by the norms of the two Gram matrices of residuals."""
    n, kernel = len(r), Gaussian(0.2)
    totals, squares = signs.new_zeros(signs.shape[1]), torch.zeros(2, dtype=torch.float64)
    step = max(1, TILE_ENTRIES // n)
    for start in range(0, n, step):
        rows = slice(start, start + step)
        left, right = (r[rows] @ r.mT) * kernel(ranks[rows], ranks), q[rows] @ q.mT
        totals += (signs[rows] * ((left * right) @ signs)).sum(dim=0)
        squares += torch.stack([left.square().sum(), right.square().sum()])
    return totals / n**2, math.sqrt(float(squares.prod())) / n**2


def _width(kernel: Kernel) -> tuple[float, ...]:
    width = getattr(kernel, "bandwidth", None)
    return () if width is None else (float(width),)
