"""HSIC as a penalty: any kernels, units of length, the head in the kernel."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Literal, get_args

import torch
from torch import Tensor

from frhsic.dependence.grams import centered, hsic_biased, hsic_unbiased, hsic_weighted
from frhsic.kernels import Gaussian, Kernel, Linear, PerColumn, Sum, median_bandwidth
from frhsic.penalties.base import Batch, Condition, nothing, one_of, positive
from frhsic.penalties.fused import gaussian_inner
from frhsic.penalties.scales import (
    SLACK,
    ScaledPenalty,
    ScaleZ,
    kernel_or_unit,
    median_distance,
    standardised,
)

__all__ = ["HSIC"]

ScaleS = Literal["median", "published"]
Attributes = Literal["joint", "sum", "isotropic"]
Estimator = Literal["biased", "unbiased"]

PUBLISHED_ROWS = 1000
"""The published bandwidth of S is the median distance over the first so many training rows."""

AFFINE_AND_ANY = Linear() + Gaussian(1.0)
"""The default kernel on Z: the linear part holds every affine head, the Gaussian one makes it characteristic."""

DENSITY_ROWS = 512
"""Training rows on which the density of S rests when minorities are protected."""


class HSIC(ScaledPenalty):
    r"""HSIC of a batch, with the head in the kernel.

    .. math:: \mathrm{HSIC}(K, L), \qquad
        K_{ij} = h\, f_i^\top f_j + r\, \kappa_Z\!\left(\frac{z_i}{\sigma_Z}, \frac{z_j}{\sigma_Z}\right), \qquad
        L_{ij} = \kappa_S\!\left(\frac{s_i}{\sigma_S}, \frac{s_j}{\sigma_S}\right),

    with the head's raw output :math:`f_i`, the head's weight h and the representation's weight r. Being
    linear in K, it is the sum of a head-level and a representation-level term. With h > 0 the head lies in
    the kernel's RKHS, with norm at most :math:`h^{-1/2}`; with r > 0 and a characteristic
    :math:`\kappa_Z` the kernel is characteristic on Z, and zero in the population means that Z and S are
    independent. On independent batches the biased estimator is not zero but of order 1/m.

    Parameters
    ----------
    kernel_z, scale_z, refresh_every
        :math:`\kappa_Z` and :math:`\sigma_Z`: any kernel (by default ``Linear() + Gaussian(1.0)``; None is
        ``Gaussian(1.0)``), and ``"normalised"``, ``"standardised"``, ``"whitened"``,
        ``"step"``, ``"published"`` or a number; see :class:`~frhsic.penalties.scales.ScaledPenalty`.
    kernel_s
        :math:`\kappa_S`, any kernel, its bandwidth in units of `scale_s`; None is ``Gaussian(1.0)``.
    scale_s
        The unit :math:`\sigma_S`, fixed in :meth:`prepare`: ``"median"`` (the median distance of the training
        rows, see :func:`frhsic.kernels.median_bandwidth`), ``"published"`` (the lower median distance of
        the first 1,000, + 1e-5), a number, or one number per attribute.
    head_weight, representation_weight
        h and r, not both zero. With h = 0 no scores are needed.
    standardise_scores
        Give the columns of f mean 0 and variance 1 over the batch first, with gradient, so that shrinking the
        scores does not lower the penalty.
    estimator
        ``"biased"`` (V-statistic, never negative) or ``"unbiased"`` (U-statistic; 0 for batches under 4 rows).
    attributes
        Several columns of s: ``"joint"`` is the product over columns of :math:`\kappa_S`, each at its own
        scale; ``"sum"`` the sum over columns of HSIC(z, s_k), each at its own scale; ``"isotropic"`` applies
        :math:`\kappa_S` to the rows as points, at one scale for all.
    minority_clip
        Protect rare values of s: rows weigh :math:`w_i \propto 1/\hat p(s_i)`, in the joint law and in the product of
        the marginals alike, so that it still vanishes under independence. :math:`\hat p` is a Gaussian density
        estimate by Scott's rule on at most 512 training rows; the ratio of a row's weight to that of a row of median
        density is held within these two numbers, such as (0.1, 10.0). As
        :func:`frhsic.dependence.minority_weights`, with the training rows in place of the sample. None: no weights.
    condition, fewest
        Equal Opportunity, see :class:`~frhsic.penalties.base.Penalty`: HSIC of the rows that count.

    References
    ----------
    Ni and Huo, *A Joint-Distribution Route to Fair Representations with Continuous Sensitive Attributes*: the
    penalty, its restriction to Y = 1, and the finite-sample theorem for a head in the RKHS.

    Examples
    --------
    The linear kernel on the head alone, and on s: the squared covariance of scores and s, here 1.25 ** 2.

    >>> from frhsic.kernels import Linear
    >>> penalty = HSIC(kernel_s=Linear(), scale_s=1.0, representation_weight=0.0)
    >>> s = torch.arange(4.0)
    >>> penalty(torch.zeros(4, 2), s, scores=s)
    tensor(1.5625)
    """

    fixed_state = ("scale_s_now", "density_rows", "density_scale", "density_median")
    scale_s_now: Tensor | None
    density_rows: Tensor | None
    density_scale: Tensor
    density_median: Tensor

    def __init__(
        self,
        kernel_z: Kernel | None = AFFINE_AND_ANY,
        kernel_s: Kernel | None = None,
        *,
        scale_z: ScaleZ | float = "whitened",
        scale_s: ScaleS | float | tuple[float, ...] = "median",
        head_weight: float = 1.0,
        representation_weight: float = 10.0,
        standardise_scores: bool = False,
        estimator: Estimator = "biased",
        attributes: Attributes = "joint",
        minority_clip: tuple[float, float] | None = None,
        refresh_every: int = 20,
        condition: Condition = "all",
        fewest: int = 11,
    ) -> None:
        super().__init__(kernel_z, scale_z, refresh_every, condition, fewest)
        for name, weight in (("head_weight", head_weight), ("representation_weight", representation_weight)):
            if not (math.isfinite(weight) and weight >= 0):
                raise ValueError(f"{name}={weight!r}; pass a finite number that is not negative.")
        if head_weight == 0 and representation_weight == 0:
            raise ValueError("head_weight and representation_weight are both 0; give one of them weight.")
        one_of("estimator", estimator, get_args(Estimator))
        one_of("attributes", attributes, get_args(Attributes))
        if estimator == "unbiased" and (condition == "positive" or minority_clip is not None):
            raise ValueError(
                "the unbiased estimator takes no weights: neither condition='positive' nor minority_clip. "
                "Pass estimator='biased'."
            )
        if minority_clip is not None and not 0 < minority_clip[0] <= 1 <= minority_clip[1] < math.inf:
            raise ValueError(
                f"minority_clip={minority_clip!r}; pass two positive numbers around 1, such as (0.1, 10.0)."
            )
        self.kernel_s = kernel_or_unit("kernel_s", kernel_s)
        self._simple = _simple_terms(self.kernel_z)
        self.scale_s = _policy(scale_s)
        self.head_weight = float(head_weight)
        self.representation_weight = float(representation_weight)
        self.standardise_scores = standardise_scores
        self.estimator = estimator
        self.attributes = attributes
        self.minority_clip = minority_clip
        self.needs_scores = head_weight > 0
        fixed = None if isinstance(self.scale_s, str) else torch.tensor(self.scale_s, dtype=torch.float64)
        self.register_buffer("scale_s_now", fixed)
        for name in ("density_rows", "density_scale", "density_median"):
            self.register_buffer(name, None)

    @classmethod
    def published(cls, *, attributes: Literal["isotropic", "sum"] = "isotropic", condition: Condition = "all") -> HSIC:
        """Return the penalty of the paper's printed numbers: Gaussians at median bandwidths on Z and S, no head.

        Several attributes: one Gaussian of the rows with one bandwidth, or a sum. Equal Opportunity was
        trained with both bandwidths at 1, on batches with more than 10 positive rows.

        Examples
        --------
        >>> HSIC.published().needs_scores
        False
        """
        medians = condition == "all"
        return cls(
            Gaussian(1.0),
            scale_z="published" if medians else 1.0,
            scale_s="published" if medians else 1.0,
            head_weight=0.0,
            representation_weight=1.0,
            attributes=attributes,
            condition=condition,
        )

    def adapts(self, epoch: int) -> bool:
        """Return whether the scale of z is refreshed in this epoch."""
        return self.representation_weight > 0 and super().adapts(epoch)

    def _prepare(self, s: Tensor, generator: torch.Generator) -> None:
        super()._prepare(s, generator)
        if self.minority_clip is not None:
            drawn = torch.randperm(s.shape[0], generator=generator, device=generator.device)[:DENSITY_ROWS]
            rows = s[drawn.to(s.device)]
            self.density_scale = rows.std(dim=0) * rows.shape[0] ** (-1 / (rows.shape[1] + 4))
            if not bool((self.density_scale > 0).all()):
                raise ValueError("an attribute is constant in s_train, so it has no density; leave minority_clip out.")
            self.density_rows = rows
            self.density_median = self._density(rows).median()
        if isinstance(self.scale_s, str):
            parts = [s] if self.attributes == "isotropic" else _apart(s)
            measure = _published_scale if self.scale_s == "published" else _median_scale
            self.scale_s_now = torch.stack([measure(part).to(s) for part in parts])
            return
        if len(self.scale_s) not in (1, s.shape[1]):
            raise ValueError(f"scale_s has {len(self.scale_s)} numbers, s {s.shape[1]} columns; pass one for each.")
        self.scale_s_now = torch.tensor(self.scale_s, dtype=s.dtype, device=s.device)

    def _value(self, batch: Batch) -> Tensor:
        if self.estimator == "unbiased" and batch.rows < 4:
            return nothing(batch.z)
        l = self._gram_s(batch.s)
        if self.minority_clip is not None:
            batch = self._protected(batch, self.minority_clip)
        if self.estimator == "biased" and batch.chosen is None and self._simple is not None:
            return self._without_gram(batch, centered(l), self._simple) / batch.rows**2
        k = self._gram(batch)  # L comes first below because the first is centred, and L has no gradient
        if self.estimator == "unbiased":
            return hsic_unbiased(l, k)
        return hsic_biased(l, k) if batch.chosen is None else hsic_weighted(l, k, batch.weights)

    def _without_gram(self, batch: Batch, centred: Tensor, simple: tuple[Linear | Gaussian, ...]) -> Tensor:
        """Return Σ K ∘ HLH, which is m² times the biased HSIC, term by term: the same number in fewer passes."""
        terms = []
        if batch.scores is not None:
            terms.append(_times(self.head_weight, _linear_inner(self._head(batch, batch.scores), centred)))
        if self.representation_weight > 0:
            z = self._measured(batch)
            for kernel in simple:
                if isinstance(kernel, Gaussian):
                    inner = gaussian_inner(z / kernel.bandwidth, centred)
                else:
                    inner = _linear_inner(z, centred)
                terms.append(_times(self.representation_weight, inner))
        return sum(terms[1:], start=terms[0])

    def _head(self, batch: Batch, scores: Tensor) -> Tensor:
        """Return the scores about their mean, which HSIC does not notice: far from zero float32 would lose them."""
        if self.standardise_scores:
            return standardised(scores, batch.weights)
        return scores - batch.weights @ scores

    def _protected(self, batch: Batch, clip: tuple[float, float]) -> Batch:
        """Let each row count by the reciprocal of its density, clipped about that of a row of median density."""
        ratio = (self.density_median.to(batch.s) / self._density(batch.s)).clamp(*clip)
        return replace(batch, chosen=ratio if batch.chosen is None else ratio * batch.chosen)

    def _density(self, s: Tensor) -> Tensor:
        """Return the density of s (m, q) among the training rows, up to a factor, of shape (m,)."""
        if self.density_rows is None:
            raise self._lacks("density of s")
        scale = self.density_scale.to(s)
        return Gaussian(1.0)(s / scale, self.density_rows.to(s) / scale).sum(-1)

    def _gram(self, batch: Batch) -> Tensor:
        """Return K: the head's part, the representation's, or both."""
        terms = []
        if batch.scores is not None:
            f = self._head(batch, batch.scores)
            terms.append(_times(self.head_weight, f @ f.mT))
        if self.representation_weight > 0:
            terms.append(_times(self.representation_weight, self._gram_z(batch)))
        return terms[0] if len(terms) == 1 else terms[0] + terms[1]

    def _gram_s(self, s: Tensor) -> Tensor:
        """Return L. HSIC is linear in it, so that the sum over attributes is the HSIC of a sum."""
        if self.scale_s_now is None:
            raise self._lacks("scale of s")
        s = s / self.scale_s_now.to(s)
        if self.attributes == "isotropic":
            return self.kernel_s(s, s)
        if self.attributes == "joint":
            return PerColumn((self.kernel_s,) * s.shape[1])(s, s)
        grams = [self.kernel_s(part, part) for part in _apart(s)]
        return grams[0] if len(grams) == 1 else torch.stack(grams).sum(0)


def _simple_terms(kernel: Kernel) -> tuple[Linear | Gaussian, ...] | None:
    """Return the linear and Gaussian kernels that a kernel is the sum of, or None if it is not such a sum."""
    if isinstance(kernel, (Linear, Gaussian)):
        return (kernel,)
    if isinstance(kernel, Sum):
        a, b = _simple_terms(kernel.a), _simple_terms(kernel.b)
        return None if a is None or b is None else a + b
    return None


def _linear_inner(x: Tensor, centred: Tensor) -> Tensor:
    """Return Σ (x xᵀ) ∘ HLH."""
    return (x * (centred @ x)).sum()


def _apart(s: Tensor) -> list[Tensor]:
    return [s[:, k : k + 1] for k in range(s.shape[1])]


def _times(weight: float, k: Tensor) -> Tensor:
    return k if weight == 1 else weight * k


def _policy(value: object) -> str | tuple[float, ...]:
    if isinstance(value, str):
        one_of("scale_s", value, get_args(ScaleS))
        return value
    numbers = value if isinstance(value, tuple) else (value,)
    if not numbers:
        raise ValueError("scale_s is empty; pass a number, or one per attribute.")
    return tuple(positive("scale_s", number) for number in numbers)


def _published_scale(s: Tensor) -> Tensor:
    return median_distance(s[:PUBLISHED_ROWS]) + SLACK


def _median_scale(s: Tensor) -> Tensor:
    try:
        return torch.tensor(median_bandwidth(s, name="s_train"), dtype=torch.float64)
    except ValueError as error:
        if len(s) < 2:
            raise
        raise ValueError(
            "the median distance of s_train is 0: half or more of the pairs of an attribute coincide, so it gives no "
            "scale. Pass scale_s as a number, or one per attribute, in units of s."
        ) from error
