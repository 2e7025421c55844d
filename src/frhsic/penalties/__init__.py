"""Penalties: differentiable measures, on one batch, of how much Z depends on S."""

from frhsic.penalties.adversary import Adversary, BinnedAdversary
from frhsic.penalties.base import NoPenalty, Penalty
from frhsic.penalties.conditional import EIPM, BinnedMMD
from frhsic.penalties.distance import DistanceCorrelation, DistanceCovariance
from frhsic.penalties.gdp import GDP
from frhsic.penalties.hsic import HSIC

__all__ = [
    "EIPM",
    "GDP",
    "HSIC",
    "Adversary",
    "BinnedAdversary",
    "BinnedMMD",
    "DistanceCorrelation",
    "DistanceCovariance",
    "NoPenalty",
    "Penalty",
]
