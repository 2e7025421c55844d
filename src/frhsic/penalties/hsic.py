"""HSIC as a penalty: kernels, units of length, the head in the kernel."""

from __future__ import annotations

import math
from typing import Literal, get_args

import torch
from torch import Tensor

from frhsic.dependence.grams import hsic_biased, hsic_unbiased, hsic_weighted
from frhsic.kernels import Gaussian, Kernel, PerColumn, median_bandwidth
from frhsic.penalties import scales
from frhsic.penalties.base import Batch, Condition, Penalty, nothing, one_of, positive, whole

__all__ = ["HSIC"]

ScaleZ = Literal["normalised", "standardised", "step", "published"]
ScaleS = Literal["median", "published"]
Attributes = Literal["joint", "sum", "isotropic"]
Estimator = Literal["biased", "unbiased"]


class HSIC(Penalty):
    r"""HSIC of a batch, with the head in the kernel.

    .. math:: \mathrm{HSIC}(K, L), \qquad
        K_{ij} = h\, f_i^\top f_j + r\, \kappa_Z\!\left(\frac{z_i}{\sigma_Z}, \frac{z_j}{\sigma_Z}\right), \qquad
        L_{ij} = \kappa_S\!\left(\frac{s_i}{\sigma_S}, \frac{s_j}{\sigma_S}\right),

    with the head's raw output :math:`f_i`, the head's weight h and the representation's weight r. Being
    linear in K, it is the sum of a head-level and a representation-level term. With h > 0 the head lies in
    the kernel's RKHS, with norm at most :math:`h^{-1/2}`; with r > 0 and a characteristic
    :math:`\kappa_Z` the kernel is characteristic on Z, and zero in the population means that Z and S are
    independent. In expectation over independent batches the biased estimator is not zero but of order 1/m.

    Parameters
    ----------
    kernel_z, kernel_s
        :math:`\kappa_Z` and :math:`\kappa_S`, any kernels, their own bandwidths in units of the scales:
        ``Gaussian(1.0)`` on a scale that is the median distance is a Gaussian at the median bandwidth,
        ``Gaussian(0.5)`` one at half of it, ``Gaussian(0.5) + Gaussian(2.0)`` two scales at once,
        ``Linear() + Gaussian(1.0)`` a linear and a Gaussian part. Left None: ``Gaussian(1.0)``.
    scale_z
        The unit :math:`\sigma_Z` of z.

        - ``"normalised"``: the batch's root mean square distance,
          :math:`\sigma_Z^2 = m^{-2} \sum_{ij} \|z_i - z_j\|^2`, with gradient. Multiplying z by a constant
          changes nothing, so the penalty cannot be lowered by shrinking or growing z.
        - ``"standardised"``: each coordinate is divided by its own standard deviation times
          :math:`\sqrt{2d}`, with gradient; the root mean square distance is again one, and no coordinate
          can hide by being small.
        - ``"step"``: the batch's median distance + 1e-5 in every step, without gradient.
        - ``"published"``: the same, but only in epochs 0, 20, 40, ... (`refresh_every`); the value of the last
          batch of such an epoch is kept until the next. Before the first :meth:`adapt` it is NaN.
        - a number: that.
    scale_s
        The unit :math:`\sigma_S` of s, fixed in :meth:`prepare`: ``"median"`` (its median distance, see
        :func:`frhsic.kernels.median_bandwidth`), ``"published"`` (the lower median distance over the first
        1,000 training rows, + 1e-5), a number, or one number per attribute.
    head_weight, representation_weight
        h and r, not both zero. With h = 0 no scores are needed.
    standardise_scores
        Standardise the columns of f over the batch first, with gradient, so that shrinking the scores does
        not lower the penalty. The head's norm in the RKHS then scales with its standard deviation.
    estimator
        ``"biased"`` (V-statistic, never negative) or ``"unbiased"`` (U-statistic; 0 for batches under 4 rows).
    attributes
        Several columns of s: ``"joint"`` is the product over columns of :math:`\kappa_S`, each at its own
        scale; ``"sum"`` the sum over columns of HSIC(z, s_k), each at its own scale; ``"isotropic"`` applies
        :math:`\kappa_S` to the rows as points, at one scale for all.
    refresh_every
        Epochs between refreshes under ``scale_z="published"``.
    condition, fewest
        Equal Opportunity, see :class:`~frhsic.penalties.base.Penalty`. HSIC of the rows that count: scales
        with gradient and score statistics are theirs alone; medians are over all rows of the batch.

    References
    ----------
    Ni and Huo, *A Joint-Distribution Route to Fair Representations with Continuous Sensitive Attributes*,
    section 4 (the penalty) and its finite-sample theorem (a head in the RKHS).

    Examples
    --------
    The linear kernel on the head alone, and on s: the squared covariance of scores and s, here 1.25 ** 2.

    >>> from frhsic.kernels import Linear
    >>> penalty = HSIC(kernel_s=Linear(), scale_s=1.0, representation_weight=0.0)
    >>> s = torch.arange(4.0)
    >>> penalty(torch.zeros(4, 2), s, scores=s)
    tensor(1.5625)
    """

    scale_z_now: Tensor | None
    scale_s_now: Tensor | None

    def __init__(
        self,
        kernel_z: Kernel | None = None,
        kernel_s: Kernel | None = None,
        *,
        scale_z: ScaleZ | float = "normalised",
        scale_s: ScaleS | float | tuple[float, ...] = "median",
        head_weight: float = 1.0,
        representation_weight: float = 1.0,
        standardise_scores: bool = False,
        estimator: Estimator = "biased",
        attributes: Attributes = "joint",
        refresh_every: int = 20,
        condition: Condition = "all",
        fewest: int = 11,
    ) -> None:
        super().__init__(condition=condition, fewest=fewest)
        for name, weight in (("head_weight", head_weight), ("representation_weight", representation_weight)):
            if not (math.isfinite(weight) and weight >= 0):
                raise ValueError(f"{name}={weight!r}; pass a finite number that is not negative.")
        if head_weight == 0 and representation_weight == 0:
            raise ValueError("head_weight and representation_weight are both 0; give one of them weight.")
        one_of("estimator", estimator, get_args(Estimator))
        one_of("attributes", attributes, get_args(Attributes))
        whole("refresh_every", refresh_every, 1)
        if estimator == "unbiased" and condition == "positive":
            raise ValueError(
                "the unbiased estimator takes no weights; use estimator='biased' with condition='positive'."
            )
        self.kernel_z = Gaussian(1.0) if kernel_z is None else kernel_z
        self.kernel_s = Gaussian(1.0) if kernel_s is None else kernel_s
        self.scale_z = _policy("scale_z", scale_z, get_args(ScaleZ))
        self.scale_s = _policy_s(scale_s)
        self.head_weight = float(head_weight)
        self.representation_weight = float(representation_weight)
        self.standardise_scores = standardise_scores
        self.estimator = estimator
        self.attributes = attributes
        self.refresh_every = refresh_every
        self.needs_scores = head_weight > 0
        refreshed = representation_weight > 0 and self.scale_z in ("step", "published")
        self.register_buffer("scale_z_now", torch.tensor(math.nan) if refreshed else None)
        fixed = None if isinstance(self.scale_s, str) else torch.tensor(self.scale_s, dtype=torch.float64)
        self.register_buffer("scale_s_now", fixed)

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
            scale_z="published" if medians else 1.0,
            scale_s="published" if medians else 1.0,
            head_weight=0.0,
            attributes=attributes,
            condition=condition,
        )

    def adapts(self, epoch: int) -> bool:
        """Return whether the scale of z is refreshed in this epoch."""
        if self.scale_z_now is None:
            return False
        return self.scale_z == "step" or epoch % self.refresh_every == 0

    def _prepare(self, s: Tensor, generator: torch.Generator) -> None:
        if isinstance(self.scale_s, str):
            parts = [s] if self.attributes == "isotropic" else _apart(s)
            measure = _published_scale if self.scale_s == "published" else _median_scale
            self.scale_s_now = torch.stack([measure(part).to(s) for part in parts])
        elif len(self.scale_s) not in (1, s.shape[1]):
            raise ValueError(f"scale_s has {len(self.scale_s)} numbers for {s.shape[1]} attributes; pass one for each.")
        else:
            self.scale_s_now = torch.tensor(self.scale_s, dtype=s.dtype, device=s.device)
        if self.scale_z_now is not None:
            self.scale_z_now = torch.full((), math.nan, dtype=s.dtype, device=s.device)

    def _adapt(self, z: Tensor, s: Tensor) -> None:
        if self.scale_z_now is not None and z.shape[0] > 1:
            self.scale_z_now.copy_(scales.median_distance(z) + scales.PUBLISHED_SLACK)

    def _value(self, batch: Batch) -> Tensor:
        if self.estimator == "unbiased" and batch.rows < 4:
            return nothing(batch.z)
        k, l = self._gram_z(batch), self._gram_s(batch.s)
        if self.estimator == "unbiased":
            return hsic_unbiased(l, k)
        if batch.chosen is None:
            return hsic_biased(l, k)  # the first is centred: L needs no gradient, so that backward stays cheap
        return hsic_weighted(l, k, batch.weights)

    def _gram_z(self, batch: Batch) -> Tensor:
        terms = []
        if self.representation_weight > 0:
            z = self._measured(batch)
            terms.append(_times(self.representation_weight, self.kernel_z.shifted(z, z)))
        if batch.scores is not None:
            f = scales.standardised(batch.scores, batch.weights) if self.standardise_scores else batch.scores
            terms.append(_times(self.head_weight, f @ f.mT))
        return terms[0] if len(terms) == 1 else terms[0] + terms[1]

    def _measured(self, batch: Batch) -> Tensor:
        """Return z in units of its scale."""
        z = batch.z
        if self.scale_z == "normalised":
            return z / scales.root_mean_square_distance(z, batch.weights)
        if self.scale_z == "standardised":
            return scales.standardised(z, batch.weights) / math.sqrt(2 * z.shape[1])
        if self.scale_z_now is not None:
            return z / self.scale_z_now.to(z)
        assert isinstance(self.scale_z, float)
        return z / self.scale_z

    def _gram_s(self, s: Tensor) -> Tensor:
        if self.scale_s_now is None:
            raise self._lacks("scale of s")
        s = s / self.scale_s_now.to(s)
        if self.attributes == "sum":
            return torch.stack([self.kernel_s.shifted(part, part) for part in _apart(s)]).sum(0)
        kernel = PerColumn((self.kernel_s,) * s.shape[1]) if self.attributes == "joint" else self.kernel_s
        return kernel.shifted(s, s)


def _apart(s: Tensor) -> list[Tensor]:
    return [s[:, k : k + 1] for k in range(s.shape[1])]


def _times(weight: float, k: Tensor) -> Tensor:
    return k if weight == 1 else weight * k


def _policy(name: str, value: object, known: tuple[str, ...]) -> str | float:
    if isinstance(value, str):
        one_of(name, value, known)
        return value
    return positive(name, value)


def _policy_s(value: object) -> str | tuple[float, ...]:
    if isinstance(value, tuple):
        if not value:
            raise ValueError("scale_s is empty; pass one number per attribute.")
        return tuple(positive("scale_s", number) for number in value)
    policy = _policy("scale_s", value, get_args(ScaleS))
    return policy if isinstance(policy, str) else (policy,)


def _published_scale(s: Tensor) -> Tensor:
    return scales.median_distance(s[: scales.PUBLISHED_ROWS]) + scales.PUBLISHED_SLACK


def _median_scale(s: Tensor) -> Tensor:
    return torch.tensor(median_bandwidth(s, name="s_train"), dtype=torch.float64)
