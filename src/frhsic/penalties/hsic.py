"""HSIC as a penalty, with any kernels and any unit of length, and with the head as part of the
kernel.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable
from functools import reduce
from typing import Literal, get_args

import torch
from torch import Tensor

from frhsic import _arrays
from frhsic.dependence.grams import centered_gram
from frhsic.dependence.inputs import recenter, require_kernel
from frhsic.kernels import (
    Gaussian,
    Kernel,
    Linear,
    Multiple,
    PerColumn,
    Sum,
    default_gaussian,
    squared_distances,
)
from frhsic.penalties.base import Batch, Penalty, PenaltyCondition, require_choice
from frhsic.penalties.closed_forms import gram_inner_product, whiten_rows

ScaleZ = Literal["whitened", "published"]
ScaleS = Literal["median", "published"]
Attributes = Literal["joint", "sum", "isotropic"]

# Kernels with their factors, which are summed.
Terms = tuple[tuple[float, Kernel], ...]

# Added to a median distance by the published runs, so that it is never zero.
SLACK = 1e-5

# Epochs between refreshes of the published scale of Z.
REFRESH_EVERY = 20

# Smallest spread by which a representation is divided.
LEAST_BATCH_SPREAD = 1e-6

# Number of training rows whose median distance is the published bandwidth of S.
PUBLISHED_ROWS = 1000

# The default kernel on Z: every affine head lies in its linear part, and the Gaussian makes it
# characteristic.
KERNEL_Z = 10 * (Linear() + Gaussian(1.0))


class HSIC(Penalty):
    r"""HSIC of a batch, with the head as part of the kernel.

    .. math:: \mathrm{HSIC}(K, L), \qquad
        K_{ij} = h\, f_i^\top f_j + \kappa_Z\!\left(\frac{z_i}{\sigma_Z},
        \frac{z_j}{\sigma_Z}\right), \qquad L_{ij} = \kappa_S\!\left(\frac{s_i}{\sigma_S},
        \frac{s_j}{\sigma_S}\right),

    with the head's raw output :math:`f_i` and the head's weight h. HSIC is linear in K, so the
    penalty is the sum of a term for the head and a term for the representation. With h > 0, the
    head is in the kernel's RKHS, with a norm of at most :math:`h^{-1/2}`. With a characteristic
    :math:`\kappa_Z`, the kernel is characteristic on Z, and zero in the population means that Z and
    S are independent. On batches with independent Z and S, the biased statistic is not zero but of
    order 1/m.

    **Which options to choose.** The defaults suit a classifier, a regressor or an encoder whose Z
    may be shared. If only the scores of the head are used, ``HSIC(0 * Linear())`` can cost less
    accuracy, but S can then still be predicted from Z. If there is no head, pass no scores. For the
    method of the paper, use :meth:`published`.

    Parameters
    ----------
    kernel_z
        :math:`\kappa_Z`, any kernel, with its bandwidth in units of `scale_z`. Factors weight each
        term relative to the head and to the other terms, as in ``10 * Linear() + 3 *
        Gaussian(1.0)``. Keep a linear term if heads will be trained on Z, and a Gaussian, Laplacian
        or inverse multiquadric term to exclude all dependence. A larger factor removes more of S
        from Z and lowers the accuracy of the head more. ``0 * Linear()`` leaves out the term for
        the representation; None uses ``Gaussian(1.0)``.
    kernel_s
        :math:`\kappa_S`, any kernel, with its bandwidth in units of `scale_s`; None uses
        ``Gaussian(1.0)``, which suits a continuous attribute. A smaller bandwidth detects finer
        dependence, with more noise.
    scale_z
        The unit :math:`\sigma_Z`. A kernel of bandwidth :math:`\sigma` on z is the kernel of
        bandwidth 1 on :math:`z / \sigma`, so one unit works with every kernel, including sums.

        - ``"whitened"``: standardize the coordinates, multiply them by the inverse root of their
          correlation matrix plus a tenth of the identity, and divide by :math:`\sqrt{2d}`; all with
          a gradient. Shrinking Z does not lower the penalty. A direction with variance v has the
          weight v / (v + 0.1): directions with a large variance count equally, and those with a
          small variance count less, so that their noise does not drive training. If Z varies in
          only a few of its d directions, its root mean square distance is well below one, and a
          Gaussian with bandwidth 1 is wide in comparison.
        - ``"published"``: the batch's median distance + 1e-5, without a gradient, refreshed in
          epochs 0, 20, 40, ... The value from the last batch of such an epoch is used until the
          next of these epochs. Before the first :meth:`adapt`, it is NaN.
        - a number, if Z has a natural unit.
    scale_s
        The unit :math:`\sigma_S`, fixed by :meth:`prepare`. ``"median"`` is the median distance of
        the training rows, see :func:`frhsic.kernels.median_bandwidth`; ``"published"`` is the lower
        median distance of the first 1,000 training rows, plus 1e-5. If the median is 0, because
        half or more of the pairs coincide, the median of the nonzero distances is used. Or pass a
        number.
    head_weight
        The weight h of the head. The head is left out if h is 0, or in calls without scores.
    attributes
        How to treat several columns of s. ``"joint"``, the product over columns of
        :math:`\kappa_S`, each in its own unit, makes Z independent of all columns together.
        ``"sum"`` adds HSIC(z, s_k) over columns; it makes Z independent of each column separately,
        which is weaker and easier to reach. ``"isotropic"`` applies :math:`\kappa_S` to whole rows
        in one unit; use it for the coordinates of one quantity, such as a position on a map.
    condition
        ``"positive"`` for equal opportunity: HSIC on the rows with y = 1, which also determine the
        whitening of Z; the published unit is the median over all rows. See
        :class:`~frhsic.penalties.base.Penalty`.

    References
    ----------
    Ni and Huo, *A Joint-Distribution Route to Fair Representations with Continuous Sensitive
    Attributes*: the penalty, its restriction to Y = 1, and the finite-sample theorem for a head in
    the RKHS.

    Examples
    --------
    With only the head and a linear kernel on s, HSIC is the squared covariance of scores and s,
    here 1.25 ** 2.

    >>> from frhsic.kernels import Linear
    >>> penalty = HSIC(0 * Linear(), Linear(), scale_s=1.0)
    >>> s = torch.arange(4.0)
    >>> penalty(torch.zeros(4, 2), s, scores=s)
    tensor(1.5625)
    """

    scale_z_now: Tensor | None
    scale_s_now: Tensor | None
    adapted = ("scale_z_now",)

    def __init__(
        self,
        kernel_z: Kernel | None = KERNEL_Z,
        kernel_s: Kernel | None = None,
        *,
        scale_z: ScaleZ | float = "whitened",
        scale_s: ScaleS | float = "median",
        head_weight: float = 1.0,
        attributes: Attributes = "joint",
        condition: PenaltyCondition = None,
    ) -> None:
        super().__init__(condition=condition)
        _require_unit("scale_z", scale_z, get_args(ScaleZ))
        _require_unit("scale_s", scale_s, get_args(ScaleS))
        require_choice("attributes", attributes, get_args(Attributes))
        require_kernel(kernel_z, "kernel_z")
        require_kernel(kernel_s, "kernel_s")
        self.kernel_z = Gaussian(1.0) if kernel_z is None else kernel_z
        self.kernel_s = Gaussian(1.0) if kernel_s is None else kernel_s
        self._terms = _kernel_terms(self.kernel_z)
        if not (math.isfinite(head_weight) and head_weight >= 0):
            raise ValueError(f"head_weight={head_weight!r}; pass a finite nonnegative number.")
        if head_weight == 0 and not self._terms:
            raise ValueError(
                "head_weight and the factor of kernel_z are both 0; make one of them positive."
            )
        self.scale_z: ScaleZ | float = scale_z
        self.scale_s: ScaleS | float = scale_s
        self.head_weight = float(head_weight)
        self.attributes = attributes
        self.needs_scores = not self._terms
        if scale_z == "whitened":
            # Shrinking Z no longer lowers the penalty, so it does not curb overfitting either, as
            # it does for others.
            self.default_weight_decay = 1e-3
            # Such a term for the representation pushes S into directions of Z that hardly vary; the
            # head alone does not. A head uses few directions, so the others can be dropped; a
            # representation without a head keeps all but the smallest.
            if self._terms:
                self.default_variance_floor = 0.3 if head_weight > 0 else 0.01
        followed = torch.tensor(math.nan) if scale_z == "published" else None
        self.register_buffer("scale_z_now", followed)
        fixed = None
        if not isinstance(scale_s, str):
            fixed = torch.tensor([scale_s], dtype=torch.float64)
        self.register_buffer("scale_s_now", fixed)

    @classmethod
    def published(
        cls,
        *,
        attributes: Literal["isotropic", "sum"] = "isotropic",
        condition: PenaltyCondition = None,
    ) -> HSIC:
        """Return the penalty behind the paper's printed numbers: Gaussians with median bandwidths
        on Z and S, without a term for the head.

        For several attributes, the kernel is a single Gaussian on the rows, or the sum of one
        Gaussian per attribute. Equal opportunity was trained with both bandwidths at 1, on batches
        with more than 10 positive rows.

        Examples
        --------
        >>> HSIC.published().needs_scores
        False
        """
        scale: Literal["published"] | float = "published" if condition is None else 1.0
        return cls(
            Gaussian(1.0),
            scale_z=scale,
            scale_s=scale,
            head_weight=0.0,
            attributes=attributes,
            condition=condition,
        )

    def adapts(self, epoch: int) -> bool:
        """Return whether the scale of z is refreshed in this epoch."""
        return self.scale_z == "published" and epoch % REFRESH_EVERY == 0

    def _adapt(self, z: Tensor, s: Tensor) -> None:
        if self.scale_z_now is not None and z.shape[0] > 1:
            self.scale_z_now.copy_(median_distance(z) + SLACK)

    def _prepare(self, s: Tensor, generator: torch.Generator) -> None:
        if self.scale_z_now is not None:
            self.scale_z_now = torch.full((), math.nan, dtype=s.dtype, device=s.device)
        if isinstance(self.scale_s, str):
            parts = [s] if self.attributes == "isotropic" else torch.split(s, 1, dim=1)
            self.scale_s_now = torch.stack([_unit(part, self.scale_s).to(s) for part in parts])
        else:
            self.scale_s_now = s.new_tensor([self.scale_s])

    def _value(self, batch: Batch) -> Tensor:
        l = self._gram_s(batch.s)
        terms = self._weighted_kernels(batch)
        if batch.row_weight is None and all(
            isinstance(kernel, (Linear, Gaussian)) for x, kernels in terms for _, kernel in kernels
        ):
            l = centered_gram(l)
            return _sum(_inner(x, l, kernels) for x, kernels in terms)
        return batch.hsic(
            l, _sum(factor * kernel(x, x) for x, kernels in terms for factor, kernel in kernels)
        )

    def _weighted_kernels(self, batch: Batch) -> list[tuple[Tensor, Terms]]:
        """Return the inputs of the terms of K: the scores, and z in its unit, each with its
        kernels.
        """
        terms: list[tuple[Tensor, Terms]] = []
        if batch.scores is not None and self.head_weight:
            head = Linear()
            terms.append((recenter(batch.scores, head), ((self.head_weight, head),)))
        if self._terms:
            terms.append((self._scaled_z(batch), self._terms))
        return terms

    def _scaled_z(self, batch: Batch) -> Tensor:
        """Return z divided by its scale."""
        if self.scale_z == "whitened":
            return whiten_rows(batch.z, batch.shares, smallest=LEAST_BATCH_SPREAD)
        z = recenter(batch.z, self.kernel_z)
        if isinstance(self.scale_z, (int, float)):
            return z if self.scale_z == 1 else z / self.scale_z
        assert self.scale_z_now is not None
        return z / self.scale_z_now.to(z)

    def _gram_s(self, s: Tensor) -> Tensor:
        """Return L. HSIC is linear in L, so the sum of HSIC over attributes is HSIC with the sum of
        the attributes' matrices.
        """
        if self.scale_s_now is None:
            raise self._not_prepared("scale of s")
        s = s / self.scale_s_now.to(s)
        if self.attributes == "isotropic":
            return self.kernel_s(s, s)
        if self.attributes == "joint":
            return PerColumn((self.kernel_s,) * s.shape[1])(s, s)
        return torch.stack(
            [self.kernel_s(column, column) for column in torch.split(s, 1, dim=1)]
        ).sum(0)


def _require_unit(name: str, scale: str | float, choices: tuple[str, ...]) -> None:
    if isinstance(scale, str):
        require_choice(name, scale, choices)
    else:
        _arrays.require_positive(scale, name)


def _kernel_terms(kernel: Kernel, factor: float = 1.0) -> Terms:
    """Write a kernel as a weighted sum of kernels that are not sums, leaving out terms with weight
    0.
    """
    if isinstance(kernel, Sum):
        return _kernel_terms(kernel.a, factor) + _kernel_terms(kernel.b, factor)
    if isinstance(kernel, Multiple):
        return _kernel_terms(kernel.kernel, factor * kernel.factor)
    return ((factor, kernel),) if factor > 0 else ()


def _inner(x: Tensor, l: Tensor, terms: Terms) -> Tensor:
    """Return the biased HSIC of a centered L and a sum of linear and Gaussian kernels, without
    storing K.
    """
    share = 1 / len(x) ** 2
    linear = share * sum(factor for factor, kernel in terms if isinstance(kernel, Linear))
    values = []
    for factor, kernel in terms:
        if not isinstance(kernel, Gaussian):
            continue
        if isinstance(kernel.bandwidth, Tensor) or kernel.bandwidth != 1:
            values.append(gram_inner_product(x / kernel.bandwidth, l, 0.0, share * factor))
        else:  # together with the linear kernel, at no extra cost
            values.append(gram_inner_product(x, l, linear, share * factor))
            linear = 0.0
    if linear > 0:
        values.append(gram_inner_product(x, l, linear, 0.0))
    return _sum(values)


def _sum(terms: Iterable[Tensor]) -> Tensor:
    return reduce(operator.add, terms)


def _unit(s: Tensor, scale: str) -> Tensor:
    if scale == "published":
        return median_distance(s[:PUBLISHED_ROWS]) + SLACK
    # the bandwidth that tests and audits use, which also exists for zero-inflated s
    kernel, _ = default_gaussian(s, name="s_train")
    return torch.tensor(kernel.bandwidth, dtype=torch.float64)


def median_distance(x: Tensor) -> Tensor:
    r"""Lower median of off-diagonal Euclidean distances, :math:`\mathrm{med}_{i<j} \|x_i - x_j\|`.

    It equals :func:`frhsic.kernels.median_bandwidth`, but is a 0-d tensor on the device of `x`,
    works under vmap as well, and is zero if half of the pairs coincide.

    Examples
    --------
    >>> median_distance(torch.tensor([[0.0], [1.0], [3.0], [10.0]]))
    tensor(3.)
    """
    m = x.shape[0]
    # Drop the first of the m*m entries and read the rest in rows of m + 1: the last column is the
    # diagonal. Each pair then occurs twice, which does not change the lower median.
    pairs = squared_distances(x, x).reshape(-1)[1:].reshape(m - 1, m + 1)[:, :-1]
    return pairs.reshape(-1).median().sqrt()
