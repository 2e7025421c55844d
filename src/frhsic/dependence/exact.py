r"""Exact HSIC of two samples in O(n) memory, on CPU and GPU, differentiable by hand.

The V-statistic is three sums over pairs of rows,

.. math:: \sum_{ij} w_i w_j K_{ij} L_{ij} - 2 \sum_i w_i (Kw)_i (Lw)_i + (w^\top K w)(w^\top L w),

with :math:`w_i = 1/n`, and tiles of K and L are enough to take them. Its gradient with respect to K is
:math:`w_i w_j (L_{ij} - (Lw)_i - (Lw)_j + w^\top L w)`, so that the row sums kept from the forward pass and one
more pass over the tiles give the gradient with respect to the rows, and no matrix of n × n is ever held.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from typing import Any, NamedTuple

import torch
from torch import Tensor

from frhsic import _arrays
from frhsic.dependence import _tiles
from frhsic.dependence._sample import kernel_or_median, paired_rows, require_positive, require_varying
from frhsic.kernels import Column, Gaussian, Kernel, Sum

__all__ = ["hsic", "hsic_summed", "hsic_unbiased", "minority_weights"]


def hsic(
    z: Any,
    s: Any,
    kernel_z: Kernel | None = None,
    kernel_s: Kernel | None = None,
    *,
    where: Any = None,
    weights: Any = None,
    device: torch.device | str | None = None,
) -> Tensor:
    r"""HSIC of two samples as a V-statistic, :math:`\operatorname{tr}(KHLH) / n^2`, exactly and in O(n) memory.

    Zero in the population exactly when z and s are independent, if both kernels are characteristic. The
    sample's value is never negative, and above the population's by O(1/n); see :func:`hsic_unbiased`.
    Small is not yet fair: HSIC falls when z merely shrinks under a fixed bandwidth.

    Parameters
    ----------
    z, s
        One row per observation: NumPy, pandas, polars, torch or lists. Several columns of s are taken
        jointly, under one kernel (:func:`frhsic.kernels.per_column_gaussians` gives each its own bandwidth).
    kernel_z, kernel_s
        Kernels; None is a Gaussian at the median distance of that variable.
    where
        Booleans or a 0/1 target. Only rows that are true or 1 count, as Equal Opportunity asks (y == 1).
    weights
        Weights of the rows, not negative; they are scaled to sum to one. They enter the joint law and the
        product of the marginals alike, so that the value still vanishes under independence. See
        :func:`minority_weights`.
    device
        Where to compute, "auto" for the GPU if there is one. None keeps the place of the inputs.

    Returns
    -------
    Tensor
        A 0-d tensor in the wider dtype of the inputs; sums are taken in float64. Differentiable once, in z
        and in s, not in the weights and not in the kernels' bandwidths.

    References
    ----------
    The paper, Definition "Mean embeddings and HSIC" and the equation of the biased empirical statistic.

    Examples
    --------
    With linear kernels HSIC is the squared covariance, here 1.25 ** 2.

    >>> from frhsic.kernels import Linear
    >>> hsic([0.0, 1.0, 2.0, 3.0], [0.0, 1.0, 2.0, 3.0], Linear(), Linear())
    tensor(1.5625, dtype=torch.float64)
    """
    z, s = paired_rows(z, s, where=where, device=device, least=2, what="HSIC")
    kernel_z, kernel_s = _kernels(z, s, kernel_z, kernel_s)
    w = torch.full((len(z),), 1 / len(z), dtype=torch.float64, device=z.device)
    if weights is not None:
        w = _weights(weights, where, len(z)).to(z.device)
    return _hsic(z, s, kernel_z, kernel_s, w, _Form(1.0, 1.0, 1.0, skip_diagonal=False))


def hsic_unbiased(
    z: Any,
    s: Any,
    kernel_z: Kernel | None = None,
    kernel_s: Kernel | None = None,
    *,
    where: Any = None,
    device: torch.device | str | None = None,
) -> Tensor:
    r"""HSIC of two samples as a U-statistic, the mean over distinct quadruples of rows, in O(n) memory.

    .. math:: \frac{1}{n(n-3)} \Big[ \operatorname{tr}(\tilde K \tilde L)
        + \frac{1^\top \tilde K 1 \; 1^\top \tilde L 1}{(n-1)(n-2)}
        - \frac{2}{n-2} 1^\top \tilde K \tilde L 1 \Big],

    where :math:`\tilde K, \tilde L` are the Gram matrices with zero diagonals. Its expectation is the
    population's HSIC, so it is often negative where that is zero. Parameters and differentiability are
    those of :func:`hsic`; at least four rows are needed.

    References
    ----------
    Song, Smola, Gretton, Bedo and Borgwardt (2012), *Feature selection via dependence maximization*,
    Theorem 2.

    Examples
    --------
    Two tight pairs, far apart: 8/4 - 2 * 16/8 + 64/24, as K - 1 is -1 across the pairs and 0 within.

    >>> from frhsic.kernels import Gaussian
    >>> x = [0.0, 0.0, 100.0, 100.0]
    >>> hsic_unbiased(x, x, Gaussian(1.0), Gaussian(1.0))
    tensor(0.6667, dtype=torch.float64)
    """
    z, s = paired_rows(z, s, where=where, device=device, least=4, what="unbiased HSIC")
    kernel_z, kernel_s = _kernels(z, s, kernel_z, kernel_s)
    n = len(z)
    w = torch.ones(n, dtype=torch.float64, device=z.device)
    # Python's integers do not overflow, and each quotient is a float64 in range.
    pairs, triples, quadruples = n * (n - 3), n * (n - 2) * (n - 3), n * (n - 1) * (n - 2) * (n - 3)
    return _hsic(z, s, kernel_z, kernel_s, w, _Form(1 / pairs, 1 / triples, 1 / quadruples, skip_diagonal=True))


def hsic_summed(
    z: Any,
    s: Any,
    kernel_z: Kernel | None = None,
    kernels_s: Sequence[Kernel | None] | None = None,
    *,
    where: Any = None,
    weights: Any = None,
    device: torch.device | str | None = None,
) -> Tensor:
    r"""Sum over attributes of the HSIC of each, :math:`\sum_c \operatorname{HSIC}(z, s_c)`.

    Zero in the population exactly when z is independent of every column of s by itself, which is weaker
    than independence of them jointly; for that pass all columns to :func:`hsic`. HSIC is linear in the
    kernel of s, so the sum is one HSIC under :math:`\sum_c l_c` and costs one pass.

    Parameters
    ----------
    kernels_s
        One kernel for each column of s; None, for all or for one, is a Gaussian at that column's median distance.
    z, s, kernel_z, where, weights, device
        As for :func:`hsic`.

    References
    ----------
    The paper, appendix on Equal Opportunity and several attributes.

    Examples
    --------
    >>> from frhsic.kernels import Linear
    >>> z, s = [[0.0], [1.0]], [[0.0, 0.0], [1.0, 2.0]]
    >>> hsic_summed(z, s, Linear(), [Linear(), Linear()])  # covariances 1/4 and 1/2
    tensor(0.3125, dtype=torch.float64)
    """
    rows = _arrays.matrix(s, "s")
    names = _arrays.column_names(s, "s", rows.shape[1])
    inside = rows if where is None else rows[_arrays.subset_mask(where, len(rows)).to(rows.device)]
    if isinstance(kernels_s, Kernel):
        raise TypeError(f"kernels_s is one kernel, {kernels_s!r}; pass a list with one for each column of s.")
    given: Sequence[Kernel | None] = [None] * rows.shape[1] if kernels_s is None else kernels_s
    if len(given) != rows.shape[1]:
        raise ValueError(f"{len(given)} kernels came for the {rows.shape[1]} columns of s; pass one for each.")
    columns: list[Kernel] = []
    for index, (name, kernel) in enumerate(zip(names, given)):
        column = inside[:, index : index + 1]
        _arrays.require_rows(len(column), 2, "HSIC")
        require_varying(column, name)
        columns.append(Column(kernel_or_median(kernel, column, name), index))
    return hsic(z, rows, kernel_z, reduce(Sum, columns), where=where, weights=weights, device=device)


def minority_weights(
    s: Any, *, bandwidth: float | Sequence[float] | None = None, clip: tuple[float, float] = (0.1, 10.0)
) -> Tensor:
    r"""Weights of rows that make every value of s count alike, :math:`w_i \propto 1 / \hat p(s_i)`, clipped.

    The reference law of s becomes uniform instead of the sample's: rare values of the attribute are
    protected as much as common ones. Pass the result as `weights` to :func:`hsic`, where it enters the
    joint law and the product of the marginals alike.

    Here :math:`\hat p` is a Gaussian kernel density estimate at the sample's own points. The ratio
    :math:`r_i = \operatorname{med}(\hat p) / \hat p(s_i)`, one for a typical row, is held within `clip`, so that
    a single outlier cannot outweigh the rest, and scaled to sum to one.

    Parameters
    ----------
    s
        The attribute, shape (n,) or (n, q).
    bandwidth
        Of the density, one number or one per column, in the units of s. None is Scott's rule,
        :math:`h_c = \operatorname{sd}(s_c) \, n^{-1/(q+4)}` with the standard deviation of divisor n - 1.
    clip
        The least and the largest ratio of a row's weight to that of a row of median density.

    Returns
    -------
    Tensor
        Weights of shape (n,), positive and summing to one, in the dtype of s.

    References
    ----------
    The paper's Discussion, :math:`P_Z \otimes \mathrm{Unif}(\mathcal S)`. Scott (1992), *Multivariate density
    estimation*.

    Examples
    --------
    Three rows at 0 and one far away, which is as rare as a third and gets three times the weight.

    >>> minority_weights([0.0, 0.0, 0.0, 50.0], bandwidth=1.0)
    tensor([0.1667, 0.1667, 0.1667, 0.5000], dtype=torch.float64)
    """
    low, high = clip
    if not 0 < low <= 1 <= high:
        raise ValueError(f"clip={clip!r}; pass two positive numbers around 1, such as (0.1, 10.0).")
    given = _arrays.matrix(s, "s").detach()
    n, q = given.shape
    _arrays.require_rows(n, 2, "a density of s")
    rows = given.to(torch.float64)
    for index, name in enumerate(_arrays.column_names(s, "s", q)):
        require_varying(rows[:, index : index + 1], name)
    scale = rows.std(dim=0) * n ** (-1 / (q + 4))
    if bandwidth is not None:
        scales = [bandwidth] * q if isinstance(bandwidth, (int, float)) else list(bandwidth)
        if len(scales) != q:
            raise ValueError(f"{len(scales)} bandwidths came for the {q} columns of s; pass one for each.")
        for value in scales:
            require_positive(value, "bandwidth")
        scale = rows.new_tensor(scales)
    standard = (rows - rows.mean(dim=0)) / scale
    density = _tiles.row_sums(standard, Gaussian(1.0))
    ratio = (density.median() / density).clamp(low, high)
    return (ratio / ratio.sum()).to(given.dtype)


class _Form(NamedTuple):
    """Factors of the joint, the cross and the product term, and whether pairs (i, i) are left out."""

    joint: float
    cross: float
    product: float
    skip_diagonal: bool


class _TiledHSIC(torch.autograd.Function):
    """The three sums forward; their closed-form gradient, pulled back tile by tile, backward."""

    @staticmethod
    def forward(ctx: Any, z: Tensor, s: Tensor, kernel_z: Kernel, kernel_s: Kernel, w: Tensor, form: _Form) -> Tensor:
        x, y = _tiles.working_copy(z, kernel_z), _tiles.working_copy(s, kernel_s)
        k, l = _tiles.entries(x, kernel_z), _tiles.entries(y, kernel_s)
        joint, a, b = _tiles.sums(x, y, k, l, w, skip_diagonal=form.skip_diagonal)
        ctx.save_for_backward(z, s, w, a, b)
        ctx.kernels, ctx.form = (kernel_z, kernel_s), form
        value = form.joint * joint - 2 * form.cross * (w * a) @ b + form.product * (w @ a) * (w @ b)
        return value.to(z.dtype)

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        z, s, w, a, b = ctx.saved_tensors
        (kernel_z, kernel_s), form = ctx.kernels, ctx.form
        x, y = _tiles.working_copy(z, kernel_z), _tiles.working_copy(s, kernel_s)
        k, l = _tiles.entries(x, kernel_z), _tiles.entries(y, kernel_s)
        to_z = to_s = None
        with torch.no_grad():
            if ctx.needs_input_grad[0]:
                to_z = upstream * _gradient(x, k, y, l, b, w, form).to(z.dtype)
            if ctx.needs_input_grad[1]:
                to_s = upstream * _gradient(y, l, x, k, a, w, form).to(s.dtype)
        if torch.is_grad_enabled():  # create_graph=True: the graph must not pretend that it goes on
            to_z, to_s = (_ends_here(gradient, z, s, upstream) for gradient in (to_z, to_s))
        return to_z, to_s, None, None, None, None


class _EndOfGraph(torch.autograd.Function):
    """The identity in its first argument; refuses to be differentiated."""

    @staticmethod
    def forward(ctx: Any, gradient: Tensor, *depends_on: Tensor) -> Tensor:
        return gradient.clone()

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        raise RuntimeError(
            "exact HSIC by tiles is differentiable once. For second derivatives apply "
            "frhsic.dependence.grams.hsic_biased or hsic_unbiased to the Gram matrices."
        )


def _ends_here(gradient: Tensor | None, *depends_on: Tensor) -> Tensor | None:
    if gradient is None:
        return None
    ended: Tensor = _EndOfGraph.apply(gradient, *depends_on)  # type: ignore[no-untyped-call]  # untyped in torch
    return ended


def _gradient(x: Tensor, k: _tiles.Entries, y: Tensor, l: _tiles.Entries, b: Tensor, w: Tensor, form: _Form) -> Tensor:
    """Gradient with respect to x, given the row sums b of the other variable's kernel."""
    total = form.product * (w @ b)
    cross = form.cross * b

    def cotangent(rows: slice, columns: slice) -> Tensor:
        outer = form.joint * l(y[rows], y[columns])
        outer = outer.sub_(cross[rows, None]).sub_(cross[columns] - total)
        outer = outer.mul_(w[rows, None]).mul_(w[columns])
        return outer.fill_diagonal_(0) if form.skip_diagonal and rows == columns else outer

    return _tiles.pull_back(x, k, cotangent)


def _hsic(z: Tensor, s: Tensor, kernel_z: Kernel, kernel_s: Kernel, w: Tensor, form: _Form) -> Tensor:
    value: Tensor = _TiledHSIC.apply(z, s, kernel_z, kernel_s, w, form)  # type: ignore[no-untyped-call]  # untyped in torch
    return value


def _kernels(z: Tensor, s: Tensor, kernel_z: Kernel | None, kernel_s: Kernel | None) -> tuple[Kernel, Kernel]:
    """Put a kernel where None came, and refuse those whose gradient would silently be missing."""
    require_varying(s, "s")
    kernel_z, kernel_s = kernel_or_median(kernel_z, z, "z"), kernel_or_median(kernel_s, s, "s")
    for kernel, name in ((kernel_z, "kernel_z"), (kernel_s, "kernel_s")):
        if any(t.requires_grad for t in _tensors(kernel)):
            raise ValueError(
                f"{name} holds a tensor that requires a gradient, and would get none here. Detach it, or apply "
                "frhsic.dependence.grams.hsic_biased to the Gram matrices."
            )
    return kernel_z, kernel_s


def _tensors(kernel: Kernel) -> Iterator[Tensor]:
    """Yield the tensors that a kernel and its parts hold, such as bandwidths."""
    for value in getattr(kernel, "__dict__", {}).values():
        for part in value if isinstance(value, tuple) else (value,):
            if isinstance(part, Tensor):
                yield part
            elif isinstance(part, Kernel):
                yield from _tensors(part)


def _weights(weights: Any, where: Any, n: int) -> Tensor:
    """Return the weights of the n rows that `where` keeps, summing to one."""
    w = _arrays.vector(weights, "weights").detach().to(torch.float64)
    rows = n if where is None else len(_arrays.vector(where, "where"))
    if len(w) != rows:
        before = "" if where is None else ", those that `where` leaves out too"
        raise ValueError(
            f"lengths differ: weights has {len(w)} rows, z has {rows}. Pass one weight per row of z{before}."
        )
    w = w if where is None else w[_arrays.subset_mask(where, rows).to(w.device)]
    if bool((w < 0).any()):
        raise ValueError(f"{int((w < 0).sum())} of the weights are negative; pass weights of zero or more.")
    if not bool(w.sum() > 0):
        raise ValueError("all weights are zero; at least one row must count.")
    return w / w.sum()
