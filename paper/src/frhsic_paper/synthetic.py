"""Synthetic data with known dependence, for comparison with estimates.

Each function draws a sample and returns it in a frozen dataclass that also has the true values in
the population: closed forms, or one-dimensional integrals to twelve digits.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch
from scipy import integrate, special
from torch import Tensor

from frhsic._arrays import RandomState, numpy_generator, require_positive, require_rows
from frhsic.datasets import Dataset


@dataclass(frozen=True, eq=False)
class GaussianPair:
    """A sample of two standard normal variables with a known correlation, and the true values of
    statistics.
    """

    z: Tensor
    s: Tensor
    correlation: float

    def hsic(self, bandwidth_z: float = 1.0, bandwidth_s: float = 1.0) -> float:
        r"""Return HSIC in the population under Gaussian kernels; zero exactly if :math:`\rho = 0`.

        With :math:`a = \sigma_Z^2, b = \sigma_S^2`, the three terms are Gaussian integrals:

        .. math:: \sqrt{\frac{ab}{(a+2)(b+2) - 4\rho^2}} + \sqrt{\frac{ab}{(a+2)(b+2)}}
                  - 2 \sqrt{\frac{ab}{(a+2)(b+2) - \rho^2}}

        Examples
        --------
        >>> round(gaussian_pair(2, correlation=0.5, random_state=0).hsic(), 7)
        0.0107633
        """
        require_positive(bandwidth_z, "bandwidth_z")
        require_positive(bandwidth_s, "bandwidth_s")
        a, b = bandwidth_z**2, bandwidth_s**2
        # 1/sqrt(1 - t) - 1 by expm1 and log1p: the three terms nearly cancel when bandwidths are
        # wide.
        free = (a + 2) * (b + 2)
        square = self.correlation**2

        def excess(t: float) -> float:
            return math.expm1(-0.5 * math.log1p(-t))

        return math.sqrt(a * b / free) * (excess(4 * square / free) - 2 * excess(square / free))

    def eipm(self, bandwidth: float = 0.0) -> float:
        r"""Return the limit of EIPM with bandwidth γ for the weights, under a Gaussian kernel of
        bandwidth 1 on z; with γ = 0, it is :math:`E_S\, \mathrm{MMD}(P_{Z \mid S}, P_Z)`.

        The weighted distribution at s is that of Z given a normal :math:`S'` with mean :math:`s/(1
        + \gamma^2)` and variance :math:`\gamma^2/(1 + \gamma^2)`: normal with mean :math:`m = \rho
        s/(1 + \gamma^2)` and variance :math:`v = 1 - \rho^2 + \rho^2 \gamma^2/(1 + \gamma^2)`. Then

        .. math:: \mathrm{MMD}^2 = \sqrt{\tfrac{1}{1 + 2v}} + \sqrt{\tfrac13}
                  - 2 \sqrt{\tfrac{1}{2 + v}}\, e^{-m^2 / 2(2 + v)}

        Examples
        --------
        >>> pair = gaussian_pair(2, correlation=0.5, random_state=0)
        >>> round(pair.eipm(), 4), round(pair.eipm(1.0), 4)
        (0.1995, 0.0976)
        """
        square = self.correlation**2
        shrink = 1 + bandwidth**2
        v = 1 - square + square * bandwidth**2 / shrink

        def mmd(s: float) -> float:
            mean = self.correlation * s / shrink
            cross = math.sqrt(1 / (2 + v)) * math.exp(-(mean**2) / (2 * (2 + v)))
            return math.sqrt(max(math.sqrt(1 / (1 + 2 * v)) + math.sqrt(1 / 3) - 2 * cross, 0.0))

        return normal_mean(mmd)


def gaussian_pair(
    n: int,
    *,
    correlation: float = 0.5,
    random_state: RandomState = None,
    dtype: torch.dtype = torch.float64,
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
    return GaussianPair(
        torch.as_tensor(z, dtype=dtype), torch.as_tensor(s, dtype=dtype), float(correlation)
    )


@dataclass(frozen=True, eq=False)
class SyntheticTask:
    """A sample of the paper's synthetic task."""

    x: Tensor
    y: Tensor
    s: Tensor

    NOISE = 0.3

    def dataset(self) -> Dataset:
        """Return the sample as a :class:`~frhsic.datasets.Dataset`, to be split and trained on."""
        X = pd.DataFrame(self.x.numpy().astype("float64"), columns=["x1", "x2"])
        return Dataset(
            "synthetic",
            X,
            pd.Series(self.y.numpy().astype("float64"), name="y"),
            pd.Series(self.s.numpy().astype("float64"), name="s"),
            "binary",
            ("0", "1"),
            "Made: S uniform, X = (S + 0.3 noise, noise), Y Bernoulli with log-odds x1.",
            "public domain",
            "the paper, section on running time and appendix on synthetic data",
        )


def synthetic_task(
    n: int, *, random_state: RandomState = None, dtype: torch.dtype = torch.float64
) -> SyntheticTask:
    r"""Draw S uniform, :math:`X = (S + 0.3\varepsilon, \varepsilon')`, :math:`P(Y = 1) = 1 / (1 +
    e^{-X_1})`.

    Only the first feature depends on S and Y. The best possible accuracy is barely above that of a
    constant, so a method whose accuracy is that of a constant has learned nothing.

    Examples
    --------
    >>> task = synthetic_task(100, random_state=0)
    >>> task.x.shape, task.dataset().d
    (torch.Size([100, 2]), 2)
    """
    require_rows(n, 1, "a sample")
    draw = numpy_generator(random_state)
    s = draw.random(n)
    x = np.stack(
        [s + SyntheticTask.NOISE * draw.standard_normal(n), draw.standard_normal(n)], axis=1
    )
    y = draw.random(n) < special.expit(x[:, 0])
    return SyntheticTask(*(torch.as_tensor(values, dtype=dtype) for values in (x, y, s)))


def normal_mean(f: Callable[[float], float]) -> float:
    """Return E f(e) for a standard normal e, to about twelve digits."""

    def term(e: float) -> float:
        return f(e) * math.exp(-0.5 * e * e) / math.sqrt(2 * math.pi)

    return float(
        integrate.quad(term, -12, 12, points=[0.0], epsabs=1e-13, epsrel=1e-12, limit=400)[0]
    )
