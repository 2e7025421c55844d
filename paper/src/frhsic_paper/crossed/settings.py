"""The methods by name, with their settings: each setting has a default and a search range, and all
methods get the same number of trials.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np

TRIALS = 8
"""Number of trials for everything that has settings; the first trial has the defaults, the others
are quasi-random.
"""

POINTS = 8
"""Number of points of every path, from no constraint to the strictest."""


class Setting(NamedTuple):
    """A setting's default and its range, from which values are drawn log-uniformly."""

    name: str
    default: float
    low: float
    high: float
    whole: bool = False

    def value_at_share(self, share: float) -> float:
        """Return the value at a share of the (logarithmic) range."""
        value = self.low * (self.high / self.low) ** share
        return float(round(value)) if self.whole else float(f"{value:.4g}")


def quasi_random(number: int, dimensions: int) -> list[float]:
    """Return a point of a Kronecker sequence, which fills the unit cube more evenly than random
    draws.

    Coordinate j is the fractional part of 1/2 + number · g^-(j + 1), where g solves g^(d + 1) = g +
    1.

    Examples
    --------
    >>> [round(quasi_random(number, 1)[0], 3) for number in (1, 2, 3)]
    [0.118, 0.736, 0.354]
    """
    root = 2.0
    for _ in range(40):
        root = (1 + root) ** (1 / (dimensions + 1))
    return [(0.5 + number * root ** -(j + 1)) % 1 for j in range(dimensions)]


def setting_values(settings: Sequence[Setting], trial: int) -> tuple[float, ...]:
    """Return the settings of a trial."""
    shares = quasi_random(trial, len(settings))
    return tuple(
        one.value_at_share(share) if trial else one.default for one, share in zip(settings, shares)
    )


SHARES = np.linspace(0, 1, POINTS)
"""Strengths of methods that have a natural range."""

WEIGHTS = (0.0, 0.3, 2.0, 10.0, 50.0, 300.0)
"""Weights in every trial of a penalty; the chosen trial gets its own `POINTS` weights."""

Quantity = Literal["scores", "ranks", "decisions"]
"""The quantities for which parity is measured; for numeric targets, only scores."""

Trials = Mapping[int, Sequence[float]]
"""The strengths used in each trial of a method."""

MOST_BANDS = 20
BANDS = (Setting("bands", 10.0, 2.0, MOST_BANDS, whole=True),)
OF_HSIC = (Setting("unit of z", 1.0, 0.1, 3.0), Setting("unit of s", 1.0, 0.2, 3.0))
RATE = Setting("learning rate of the adversary", 1e-3, 1e-4, 3e-2)

PENALTY_SETTINGS: dict[str, tuple[Setting, ...]] = {
    "frhsic": OF_HSIC,
    "frem": (Setting("unit of z", 1.0, 0.3, 10.0), Setting("gamma", 0.5, 0.03, 1.0)),
    "reg-gdp": (Setting("bandwidth of s", 0.2, 0.02, 0.8),),
    "adv": (RATE,),
    "mmd": BANDS,
    "laftr": (RATE, Setting("bins", 4.0, 2.0, 12.0, whole=True)),
    "dcor": (),
    "adv-text": (RATE,),
    "mmd-text": BANDS,
    "dcor-text": (),
    "hsic": OF_HSIC,
    "hgr-kde": (Setting("width of the kernel", 1.0, 0.3, 3.0),),
    "hgr-networks": (RATE,),
    "gedi": (Setting("degree", 3.0, 1.0, 5.0, whole=True),),
    "fairret": BANDS,
}
"""The settings of the paper's seven penalties, of the versions of three of them described in its
text, of this library's own and of four by other authors.
"""

NONE = "none"
CONTRACTION = "contraction"
CLOSED_FORM = "closed form"
WITH_S = "closed form, with S"
BAG = "contraction of nine models"
LEACE = "LEACE"
REWEIGHING = "Reweighing"
LINEAR_POST = "LinearPost"
FAIRGBM = "FairGBM"
GRADIENT = "fairlearn ExponentiatedGradient"
OPTIMIZER = "fairlearn ThresholdOptimizer"
REMOVER = "fairlearn CorrelationRemover"
ERROR_PARITY = "error-parity"
BARYCENTRE = "Wasserstein barycentre"
COSINES = "cosines"

OWN_SETTINGS: dict[str, tuple[Setting, ...]] = {
    **PENALTY_SETTINGS,
    COSINES: (Setting("cosines", 8.0, 2.0, 16.0, whole=True),),
    REWEIGHING: BANDS,
    LINEAR_POST: BANDS,
    FAIRGBM: (*BANDS, Setting("learning rate of the multipliers", 0.1, 0.003, 3.0)),
    GRADIENT: BANDS,
    OPTIMIZER: BANDS,
    ERROR_PARITY: BANDS,
    BARYCENTRE: BANDS,
}
"""Settings of the methods that have any."""

USES_S = (WITH_S, OPTIMIZER, REMOVER, ERROR_PARITY, BARYCENTRE)
"""Methods that need the attribute of the rows that they predict."""

DECIDES = (LINEAR_POST, GRADIENT, OPTIMIZER, ERROR_PARITY)
"""Methods that return decisions but no scores."""

WEIGHTED = (*PENALTY_SETTINGS, COSINES)
"""Methods whose strength is a weight, which is refined for the chosen trial."""

SHARES_OF_GRADIENT = (0.0, 1 / 3, 2 / 3, 1.0)
"""Strengths of ExponentiatedGradient, which fits the base model up to a hundred times for each."""

ITERATIONS = 50
"""Maximum number of iterations of ExponentiatedGradient; each fits up to two models."""

FAIRGBM_SLACK = 0.3
"""Largest difference between error rates that FairGBM may leave at the mildest point of its
path.
"""

MODELS = 9
"""Number of models in the bag: as many as the closed form has, one for y and eight for functions of
S.
"""
