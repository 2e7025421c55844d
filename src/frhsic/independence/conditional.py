r"""A kernel test of conditional independence given a continuous variable: separation for
regression.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy.stats import norm, rankdata
from sklearn.tree import DecisionTreeRegressor
from torch import Tensor

from frhsic import _arrays
from frhsic.dependence.grams import column_scales, pivoted_cholesky, working_copy
from frhsic.independence.gamma import IndependenceResult, kernel_and_rule, require_level
from frhsic.independence.permutation import critical_value, permutation_pvalue
from frhsic.kernels import Gaussian, Kernel

RANK_WIDTHS, WIDTHS = (0.05, 0.1, 0.2, 0.4), (0.2, 0.4, 0.8)
"""Bandwidths on the ranks of y, and in units of its spread, among which leave-one-out errors
choose.
"""

RIDGES = tuple(10.0**k for k in range(-6, 2))
"""Ridges, as shares of the largest eigenvalue of the Gram matrix of y."""

MOST_STEPS, LEAST_ROWS = 20, 5
"""Most constant parts of a conditional mean with jumps, and the fewest rows of each."""

MAX_RANK = 100
LEFT_OUT = 1e-3
"""Share of the trace of a Gram matrix that its factor may leave out."""

LEFT_ALONG = 0.05
UNRESOLVED = (
    "The regressions on y do not find the conditional means: residuals of rows with nearly equal y"
    " still agree, for z and for s. The p-value may be too small."
)

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
    r"""Test of :math:`H_0`: Z and S independent given Y, where Y is continuous (separation, Equal
    Opportunity).

    .. math:: T = \frac{1}{n^2} \sum_{ij} \langle \hat r_i, \hat r_j \rangle \langle \hat q_i, \hat
        q_j \rangle
        k_Y(y_i, y_j) - B, \qquad \hat r_i = \phi(z_i) - \hat E[\phi(Z) | y_i], \quad
        \hat q_i = \psi(s_i) - \hat E[\psi(S) | y_i],

    where :math:`\phi, \psi` are the embeddings of the kernels. Its population value is zero exactly
    under :math:`H_0` if the kernels are characteristic. The null distribution multiplies each row
    by a random sign (wild bootstrap). Residuals of one regression are correlated with each other; B
    is the part of the sum over distinct rows that this explains.

    Use it for a regression whose score may depend on S through the outcome alone. For a 0/1 target,
    test the rows with y = 1 (`where=y` of the other tests).

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
        `statistic` is T. Its effect size divides T by its largest value for these residuals, and
        lies in [0, 1].

    Notes
    -----
    Conditional means are kernel ridge regressions on y or on its ranks, with and without jumps,
    which a regression tree on y proposes. Bandwidth, ridge and jumps have the least leave-one-out
    error, raised by a share of :math:`2 \log n / n` for each jump, since their places are
    estimated. With :math:`M = I - H`, H the matrix of a regression, and the variance :math:`v_l` of
    the noise at each row, :math:`E \langle \hat r_i, \hat r_j \rangle = \sum_l M_{il} M_{jl} v_l`;
    B is the sum of the products of these for Z and S.

    The level is approximate: no test of conditional independence has a level for every law (Shah
    and Peters, 2020). It needs regressions that find both conditional means. The result says where
    they do not (`caution`): where residuals of rows next to each other in y still agree, for Z and
    for S, each by a test at .05. A mean that changes between neighbouring values of y cannot be
    found by any of this. Ties in y are allowed. Factors of the Gram matrices have at most 100
    columns. O(n² · resamples) time, O(n · resamples) memory. Measured levels are in
    `docs/evidence/coverage.md`.

    References
    ----------
    Zhang et al. (2011), *Kernel-based conditional independence test*. Shah and Peters (2020), *The
    hardness of conditional independence testing and the generalised covariance measure*.

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
    _arrays.require_integer(resamples, "resamples")
    z, s, y = _arrays.paired((z, "z"), (s, "s"), (y, "y"), device="cpu")
    if y.shape[1] > 1:
        raise ValueError(f"y has {y.shape[1]} columns; pass one target.")
    if where is not None:
        kept = _arrays.subset_mask(where, len(z))
        z, s, y = z[kept], s[kept], y[kept]
    _arrays.require_rows(len(z), 20, "the conditional test")
    for x, name in ((z, "z"), (s, "s"), (y, "y")):
        _arrays.require_varying(x, name)
    order = np.lexsort(
        [x.detach().numpy() for x in (*s.mT, *z.mT, *y.mT)]
    )  # so that their order does not matter
    z, s, y = z[order], s[order], y[order]
    n, seed = len(z), _arrays.seed_of(random_state)
    ranks = torch.from_numpy((rankdata(y[:, 0].double().numpy()) - 0.5) / n)[:, None]
    values = working_copy(y, Gaussian(1.0)) / torch.from_numpy(column_scales(y.numpy()))
    bases = [_basis(x, w) for x, widths in ((ranks, RANK_WIDTHS), (values, WIDTHS)) for w in widths]
    (r, kernel_z, rule_z), (q, kernel_s, rule_s) = (
        _regressed(x, kernel, name, bases, ranks)
        for x, kernel, name in ((z, kernel_z, "z"), (s, kernel_s, "s"))
    )
    signs = r.residual.new_ones(n, resamples + 1)  # the first column is the sample itself
    draws = torch.randint(2, (n, resamples), generator=_arrays.generator(seed), device="cpu")
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
        bandwidth_rules=(rule_z, rule_s),
        effect_size=observed / size if size > 0 else 0.0,
        effect_size_null=float(null.mean()) / size if size > 0 else 0.0,
        null_mean=float(null.mean()),
        null_standard_deviation=float(null.std()),
        seed=seed,
        caution=UNRESOLVED if max(_left_along(r), _left_along(q)) <= LEFT_ALONG else None,
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


@dataclass(frozen=True)
class _Regressed:
    """What a regression on y leaves of features.

    The expected inner product of two residuals i and j, which the regression makes, is that of row
    i of `left` and row j of `right`.
    """

    residual: Tensor
    left: Tensor
    right: Tensor


def _regressed(
    x: Tensor, kernel: Kernel | None, name: str, bases: list[_Basis], ranks: Tensor
) -> tuple[_Regressed, Kernel, str]:
    """Return the regression of the features of x on y, the kernel of x, and the rule of its
    width.
    """
    kernel, rule = kernel_and_rule(x, kernel, name)
    features, _ = pivoted_cholesky(
        kernel, working_copy(x, kernel), tolerance=LEFT_OUT, max_rank=MAX_RANK
    )
    features = features - features.mean(dim=0)
    steps = _steps(features, ranks)
    price = 1 + 2 * (steps.shape[1] - 1) * math.log(len(x)) / len(x)
    candidates = [(basis, 1.0) for basis in bases]
    if steps.shape[1] > 1:
        candidates += [(_with_steps(basis, steps), price) for basis in bases]
    basis, ridge = min(
        ((basis, ridge, factor) for basis, factor in candidates for ridge in RIDGES),
        key=lambda one: one[2] * _left_out_error(features, one[0], one[1]),
    )[:2]
    vectors = basis.vectors
    residual, shrink, kept = _fit(features, basis, ridge)
    noise = residual.square().sum(dim=1, keepdim=True) / kept[:, None]
    shrunk = vectors * shrink  # the matrix of the regression is H = shrunk @ vectors.mT
    mixed = noise * shrunk
    left = torch.cat([vectors @ (shrunk.mT @ mixed) - mixed, -vectors], dim=1)
    return _Regressed(residual, left, torch.cat([vectors, mixed], dim=1)), kernel, rule


def _steps(features: Tensor, ranks: Tensor) -> Tensor:
    """Return the indicators of parts of y between which the mean of the features jumps, of shape
    (rows, parts).

    A split must lower the squared error by three times the variance of a row and log n; differences
    between neighbours estimate that variance.
    """
    n = len(features)
    noise = float(features.diff(dim=0).square().mean()) / 2
    tree = DecisionTreeRegressor(
        max_leaf_nodes=MOST_STEPS,
        min_samples_leaf=LEAST_ROWS,
        min_impurity_decrease=3 * noise * math.log(n) / n,
    )
    leaf = tree.fit(ranks.numpy(), features.numpy()).apply(ranks.numpy())
    return torch.from_numpy((leaf[:, None] == np.unique(leaf)).astype(np.float64))


def _with_steps(basis: _Basis, steps: Tensor) -> _Basis:
    """Return the basis of the sum of a Gram matrix of y, with half the rows as its largest
    eigenvalue, and of steps.
    """
    smooth = basis.vectors * (basis.values * len(steps) / 2).sqrt()
    vectors, singular, _ = torch.linalg.svd(torch.cat([steps, smooth], dim=1), full_matrices=False)
    kept = singular > 1e-6 * singular[0]
    return _Basis(vectors[:, kept], (singular[kept] / singular[0]) ** 2)


def _fit(features: Tensor, basis: _Basis, ridge: float) -> tuple[Tensor, Tensor, Tensor]:
    """Return the residuals of ridge regression, its shrinkage along the basis, and one less each
    row's leverage.
    """
    shrink = basis.values / (basis.values + ridge)
    kept = (1 - (basis.vectors.square() * shrink).sum(dim=1)).clamp_min(1e-3)
    return (
        features - basis.vectors @ (shrink[:, None] * (basis.vectors.mT @ features)),
        shrink,
        kept,
    )


def _left_out_error(features: Tensor, basis: _Basis, ridge: float) -> float:
    """Return the sum of squared errors of predicting each row from the others."""
    residual, _, kept = _fit(features, basis, ridge)
    return float((residual / kept[:, None]).square().sum())


def _statistics(r: _Regressed, q: _Regressed, ranks: Tensor, signs: Tensor) -> tuple[Tensor, float]:
    """Return T for each column of signs, B taken from the first, and the bound by the norms of the
    Gram matrices.
    """
    n, kernel = len(ranks), Gaussian(0.2)
    totals, squares, explained = signs.new_zeros(signs.shape[1]), signs.new_zeros(2), 0.0
    step = max(1, TILE_ENTRIES // n)
    for start in range(0, n, step):
        rows = slice(start, start + step)
        near = kernel(ranks[rows], ranks)
        left, right = (r.residual[rows] @ r.residual.mT) * near, q.residual[rows] @ q.residual.mT
        totals += (signs[rows] * ((left * right) @ signs)).sum(dim=0)
        squares += torch.stack([left.square().sum(), right.square().sum()])
        product = near * (r.left[rows] @ r.right.mT) * (q.left[rows] @ q.right.mT)
        explained += float(product.sum() - product.diagonal(offset=start).sum())
    totals[0] -= explained
    return totals / n**2, math.sqrt(float(squares.prod())) / n**2


def _left_along(x: _Regressed) -> float:
    """Return the p-value of the hypothesis that residuals of rows next to each other in y do not
    agree.
    """
    products = (x.residual[:-1] * x.residual[1:]).sum(dim=1)
    expected = (x.left[:-1] * x.right[1:]).sum(dim=1)
    spread = float(products.square().sum().sqrt())
    return float(norm.sf(float((products - expected).sum()) / spread)) if spread > 0 else 1.0
