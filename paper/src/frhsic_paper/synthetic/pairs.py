"""Two variables whose dependence has a closed form."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from scipy import integrate, special
from torch import Tensor

from frhsic._arrays import RandomState, numpy_generator, require_rows
from frhsic_paper.synthetic._integrals import normal_mean, positive, tensor


@dataclass(frozen=True, eq=False)
class GaussianPair:
    """A sample of two standard normal variables with a known correlation, and the truth about them."""

    z: Tensor
    s: Tensor
    correlation: float

    @property
    def mutual_information(self) -> float:
        r"""Return :math:`-\tfrac12 \log(1 - \rho^2)`, in nats; zero exactly under independence.

        Examples
        --------
        >>> round(gaussian_pair(2, correlation=0.6, random_state=0).mutual_information, 6)
        0.223144
        """
        return -0.5 * math.log1p(-(self.correlation**2))

    @property
    def maximal_correlation(self) -> float:
        r"""Return Hirschfeld-Gebelein-Rényi's maximal correlation, :math:`|\rho|` (Gebelein 1941)."""
        return abs(self.correlation)

    @property
    def mean_gap(self) -> float:
        r"""Return :math:`E|E[Z \mid S] - E Z| = |\rho| \sqrt{2/\pi}`, the GDP of z."""
        return abs(self.correlation) * math.sqrt(2 / math.pi)

    @property
    def distance_correlation(self) -> float:
        r"""Return the distance correlation (not squared) of the pair.

        .. math:: R^2 = \frac{\rho \arcsin \rho + \sqrt{1 - \rho^2} - \rho \arcsin(\rho/2)
                  - \sqrt{4 - \rho^2} + 1}{1 + \pi/3 - \sqrt 3}

        References
        ----------
        Székely, Rizzo and Bakirov (2007), Theorem 7.
        """
        r = self.correlation
        top = r * math.asin(r) + math.sqrt(1 - r * r) - r * math.asin(r / 2) - math.sqrt(4 - r * r) + 1
        return math.sqrt(max(top, 0.0) / (1 + math.pi / 3 - math.sqrt(3)))

    def hsic(self, bandwidth_z: float = 1.0, bandwidth_s: float = 1.0) -> float:
        r"""Return HSIC of the population under Gaussian kernels; zero exactly at :math:`\rho = 0`.

        With :math:`a = \sigma_Z^2, b = \sigma_S^2`, the three terms are Gaussian integrals:

        .. math:: \sqrt{\frac{ab}{(a+2)(b+2) - 4\rho^2}} + \sqrt{\frac{ab}{(a+2)(b+2)}}
                  - 2 \sqrt{\frac{ab}{(a+2)(b+2) - \rho^2}}

        Examples
        --------
        >>> round(gaussian_pair(2, correlation=0.5, random_state=0).hsic(), 7)
        0.0107633
        """
        a, b = positive(bandwidth_z, "bandwidth_z") ** 2, positive(bandwidth_s, "bandwidth_s") ** 2
        # 1/sqrt(1 - t) - 1 by expm1 and log1p: the three terms nearly cancel when bandwidths are wide.
        free = (a + 2) * (b + 2)
        square = self.correlation**2

        def excess(t: float) -> float:
            return math.expm1(-0.5 * math.log1p(-t))

        return math.sqrt(a * b / free) * (excess(4 * square / free) - 2 * excess(square / free))

    def eipm(self, bandwidth_z: float = 1.0) -> float:
        r"""Return :math:`E_S\, \mathrm{MMD}(P_{Z \mid S}, P_Z)` under a Gaussian kernel on z.

        Given :math:`S = s`, Z is normal with mean :math:`\rho s` and variance :math:`v = 1 - \rho^2`; with
        :math:`a = \sigma_Z^2`,

        .. math:: \mathrm{MMD}^2 = \sqrt{\tfrac{a}{a + 2v}} + \sqrt{\tfrac{a}{a + 2}}
                  - 2 \sqrt{\tfrac{a}{a + 1 + v}}\, e^{-\rho^2 s^2 / 2(a + 1 + v)}

        Examples
        --------
        >>> round(gaussian_pair(2, correlation=0.5, random_state=0).eipm(), 4)
        0.1995
        """
        a, r = positive(bandwidth_z, "bandwidth_z") ** 2, self.correlation
        v = 1 - r * r

        def mmd(s: float) -> float:
            cross = math.sqrt(a / (a + 1 + v)) * math.exp(-((r * s) ** 2) / (2 * (a + 1 + v)))
            return math.sqrt(max(math.sqrt(a / (a + 2 * v)) + math.sqrt(a / (a + 2)) - 2 * cross, 0.0))

        return normal_mean(mmd)


def gaussian_pair(
    n: int, *, correlation: float = 0.5, random_state: RandomState = None, dtype: torch.dtype = torch.float64
) -> GaussianPair:
    r"""Draw :math:`Z \sim N(0, 1)`, :math:`S = \rho Z + \sqrt{1 - \rho^2}\, \varepsilon`.

    Examples
    --------
    >>> pair = gaussian_pair(100, correlation=0.0, random_state=0)
    >>> pair.z.shape, pair.hsic(), pair.eipm()
    (torch.Size([100]), 0.0, 0.0)
    """
    require_rows(n, 1, "a sample")
    if not -1 < correlation < 1:
        raise ValueError(f"correlation={correlation}; pass a number strictly between -1 and 1.")
    z, noise = numpy_generator(random_state).standard_normal((2, n))
    s = correlation * z + math.sqrt(1 - correlation**2) * noise
    return GaussianPair(tensor(z, dtype), tensor(s, dtype), float(correlation))


@dataclass(frozen=True, eq=False)
class DiscreteGroups:
    r"""A sample of :math:`Z \mid S = s_j \sim N(\mu_j, 1)` with finitely many values of S, and the truth about it."""

    z: Tensor
    s: Tensor
    values: tuple[float, ...]
    means: tuple[float, ...]
    probabilities: tuple[float, ...]

    @property
    def mean_gap(self) -> float:
        r"""Return :math:`E|E[Z \mid S] - E Z| = \sum_j p_j |\mu_j - \bar\mu|`, the GDP of z."""
        p, mu = np.array(self.probabilities), np.array(self.means)
        return float(p @ np.abs(mu - p @ mu))

    @property
    def mutual_information(self) -> float:
        """Return the mutual information of z and s in nats, the entropy of the mixture less that of a normal."""
        p, mu = np.array(self.probabilities), np.array(self.means)

        def term(z: float) -> float:
            log_density = float(special.logsumexp(-((z - mu) ** 2) / 2, b=p)) - 0.5 * math.log(2 * math.pi)
            return -log_density * math.exp(log_density)

        cuts = sorted({float(m) for m in mu})
        entropy = integrate.quad(term, cuts[0] - 12, cuts[-1] + 12, points=cuts, limit=400)[0]
        return float(entropy) - 0.5 * math.log(2 * math.pi * math.e)

    def hsic(self, bandwidth_z: float = 1.0, bandwidth_s: float = 1.0) -> float:
        r"""Return HSIC of the population under Gaussian kernels.

        .. math:: \sum_{k, l} \pi_k \pi_l\, k_S(s_k, s_l) \langle \Delta_k, \Delta_l \rangle

        where :math:`\Delta_k` is the mean embedding of Z given :math:`s_k` less that of Z, and two normal laws have
        :math:`\langle \mu_k, \mu_l \rangle = \sqrt{a / (a + 2)}\, e^{-(\mu_k - \mu_l)^2 / 2(a + 2)}`,
        :math:`a = \sigma_Z^2` (the paper, lemma "Discrete sensitive attribute coincidence").

        Examples
        --------
        >>> discrete_groups(2, means=(1.0, 1.0), random_state=0).hsic()
        0.0
        """
        p, values = np.array(self.probabilities), np.array(self.values)
        differences = self._inner(bandwidth_z)
        differences = differences - (differences @ p)[:, None] - p @ differences + p @ differences @ p
        gram = np.exp(-((values[:, None] - values) ** 2) / (2 * positive(bandwidth_s, "bandwidth_s") ** 2))
        return float(p @ (gram * differences) @ p)

    def conditional_mmd(self, bandwidth_z: float = 1.0) -> tuple[float, ...]:
        """Return MMD(P(Z | S = s_j), P(Z)) for each value of S; all zero exactly under independence."""
        p, inner = np.array(self.probabilities), self._inner(bandwidth_z)
        squared = np.diag(inner) - 2 * inner @ p + p @ inner @ p
        return tuple(float(x) for x in np.sqrt(np.maximum(squared, 0.0)))

    def eipm(self, bandwidth_z: float = 1.0) -> float:
        """Return the mean of :meth:`conditional_mmd` over S."""
        return float(np.dot(self.probabilities, self.conditional_mmd(bandwidth_z)))

    def _inner(self, bandwidth_z: float) -> np.ndarray:
        mu, a = np.array(self.means), positive(bandwidth_z, "bandwidth_z") ** 2
        return np.asarray(math.sqrt(a / (a + 2)) * np.exp(-((mu[:, None] - mu) ** 2) / (2 * (a + 2))))


def discrete_groups(
    n: int,
    *,
    means: Sequence[float] = (-1.0, 0.0, 2.0),
    probabilities: Sequence[float] | None = None,
    values: Sequence[float] | None = None,
    random_state: RandomState = None,
    dtype: torch.dtype = torch.float64,
) -> DiscreteGroups:
    """Draw S from finitely many `values` (0, 1, ... by default) and Z normal around the mean of its group.

    Examples
    --------
    >>> groups = discrete_groups(30, means=(0.0, 3.0), probabilities=(0.25, 0.75), random_state=0)
    >>> groups.mean_gap
    1.125
    """
    require_rows(n, 1, "a sample")
    mu = np.asarray(means, dtype=np.float64)
    p = np.full(len(mu), 1 / len(mu)) if probabilities is None else np.asarray(probabilities, dtype=np.float64)
    v = np.arange(len(mu), dtype=np.float64) if values is None else np.asarray(values, dtype=np.float64)
    if not len(mu) == len(p) == len(v) or len(mu) < 2:
        raise ValueError(
            f"{len(mu)} means, {len(p)} probabilities, {len(v)} values; pass as many of each, at least two."
        )
    if (p <= 0).any() or not math.isclose(float(p.sum()), 1.0, abs_tol=1e-9):
        raise ValueError(f"probabilities={tuple(p.tolist())}; pass positive numbers that add up to 1.")
    if len(set(v.tolist())) < len(v):
        raise ValueError(f"values={tuple(v.tolist())}; pass a different one for each group.")
    draw = numpy_generator(random_state)
    group = draw.choice(len(mu), size=n, p=p / p.sum())
    z = mu[group] + draw.standard_normal(n)
    return DiscreteGroups(
        tensor(z, dtype), tensor(v[group], dtype), tuple(v.tolist()), tuple(mu.tolist()), tuple(p.tolist())
    )
