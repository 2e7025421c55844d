"""The paper's synthetic task."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch
from scipy import integrate, optimize, special
from torch import Tensor

from frhsic._arrays import RandomState, numpy_generator, require_rows
from frhsic.datasets import Dataset, Feature
from frhsic_paper.synthetic._integrals import normal_mean, tensor


@dataclass(frozen=True, eq=False)
class SyntheticTask:
    """A sample of the paper's synthetic task, and what the best predictor can do on it."""

    x: Tensor
    y: Tensor
    s: Tensor

    NOISE = 0.3

    @classmethod
    def score(cls, s: float) -> float:
        r"""Return :math:`P(Y = 1 \mid S = s) = E\, \mathrm{sigmoid}(s + 0.3\, \varepsilon)`."""
        return normal_mean(lambda e: float(special.expit(s + cls.NOISE * e)))

    @property
    def positive_rate(self) -> float:
        """Return P(Y = 1), the accuracy of the constant predictor.

        Examples
        --------
        >>> round(synthetic_task(2, random_state=0).positive_rate, 3)
        0.618
        """
        return float(integrate.quad(self.score, 0, 1)[0])

    @property
    def bayes_accuracy(self) -> float:
        """Return E max(p, 1 - p) with p = sigmoid(x1), the best accuracy there is."""

        def best(s: float) -> float:
            return normal_mean(lambda e: 0.5 + abs(float(special.expit(s + self.NOISE * e)) - 0.5))

        return float(integrate.quad(best, 0, 1)[0])

    @property
    def mean_gap(self) -> float:
        """Return the GDP of the best score, E|E[p | S] - E p|, under P_S."""
        rate = self.positive_rate
        crossing = float(optimize.brentq(lambda s: self.score(s) - rate, 0, 1))  # the score rises with s
        return 2 * float(integrate.quad(lambda s: self.score(s) - rate, crossing, 1)[0])

    def dataset(self) -> Dataset:
        """Return the sample as a :class:`~frhsic.datasets.Dataset`, to be split and trained on."""
        X = pd.DataFrame(self.x.numpy().astype("float64"), columns=["x1", "x2"])
        return Dataset(
            "synthetic",
            "paper",
            X,
            pd.Series(self.y.numpy().astype("float64"), name="y"),
            pd.Series(self.s.numpy().astype("float64"), name="s"),
            (Feature.numeric("x1"), Feature.numeric("x2")),
            "binary",
            ("0", "1"),
            "Made: S uniform, X = (S + 0.3 noise, noise), Y Bernoulli with log-odds x1.",
            "public domain",
            "the paper, section on running time and appendix on synthetic data",
        )


def synthetic_task(n: int, *, random_state: RandomState = None, dtype: torch.dtype = torch.float64) -> SyntheticTask:
    r"""Draw S uniform, :math:`X = (S + 0.3\varepsilon, \varepsilon')`, :math:`P(Y = 1) = 1 / (1 + e^{-X_1})`.

    Only the first feature knows of S and of Y. The best accuracy is barely above that of a constant, so a
    method that reaches the constant's accuracy has learned nothing.

    Examples
    --------
    >>> task = synthetic_task(100, random_state=0)
    >>> task.x.shape, task.dataset().d
    (torch.Size([100, 2]), 2)
    """
    require_rows(n, 1, "a sample")
    draw = numpy_generator(random_state)
    s = draw.random(n)
    x = np.stack([s + SyntheticTask.NOISE * draw.standard_normal(n), draw.standard_normal(n)], axis=1)
    y = draw.random(n) < special.expit(x[:, 0])
    return SyntheticTask(tensor(x, dtype), tensor(y, dtype), tensor(s, dtype))
