"""Penalties: differentiable measures, on one batch, of how much Z depends on S."""

from frhsic.penalties.adversary import Adversary, BinnedAdversary
from frhsic.penalties.base import NoPenalty, Penalty
from frhsic.penalties.hsic import HSIC
from frhsic.penalties.rivals import EIPM, GDP, BinnedMMD, DistanceCorrelation, DistanceCovariance

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
