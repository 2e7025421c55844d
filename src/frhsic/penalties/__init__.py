"""Penalties: differentiable scalars of one batch that say how far Z depends on S."""

from frhsic.penalties.base import NoPenalty, Penalty
from frhsic.penalties.hsic import HSIC

__all__ = ["HSIC", "NoPenalty", "Penalty"]
