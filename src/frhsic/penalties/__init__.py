"""Penalties: differentiable measures, on one batch, of how much Z depends on S."""

from __future__ import annotations

from collections.abc import Callable

from frhsic._lazy import missing_module

try:
    from frhsic.penalties.adversary import Adversary, BinnedAdversary
    from frhsic.penalties.base import NoPenalty, Penalty
    from frhsic.penalties.hsic import HSIC
    from frhsic.penalties.rivals import EIPM, GDP, BinnedMMD, DistanceCovariance
except ModuleNotFoundError as error:
    raise missing_module("frhsic.penalties", error) from error

__all__ = [
    "EIPM",
    "GDP",
    "HSIC",
    "Adversary",
    "BinnedAdversary",
    "BinnedMMD",
    "DistanceCovariance",
    "NoPenalty",
    "Penalty",
]

# How to create each penalty from the number of columns of Z.
MAKERS: dict[str, Callable[[int], Penalty]] = {
    "hsic": lambda z_dim: HSIC(),
    "frhsic": lambda z_dim: HSIC.published(),
    "frem": lambda z_dim: EIPM(),
    "reg-gdp": lambda z_dim: GDP(),
    "adv": Adversary,
    "mmd": lambda z_dim: BinnedMMD(),
    "laftr": BinnedAdversary,
    "dcor": lambda z_dim: DistanceCovariance(),
    "none": lambda z_dim: NoPenalty(),
}

# Every name that :func:`make_penalty` accepts. All but "hsic" are the published methods.
PENALTY_NAMES = tuple(MAKERS)


def make_penalty(name: str, z_dim: int = 50) -> Penalty:
    """Return the penalty with this name. For variants, create an object from
    :mod:`frhsic.penalties`.

    Parameters
    ----------
    name
        One of :data:`PENALTY_NAMES`, such as "hsic".
    z_dim
        Number of columns of Z, required by adversaries.

    Examples
    --------
    >>> make_penalty("reg-gdp").needs_scores, make_penalty("hsic").needs_scores
    (True, False)
    >>> make_penalty("adv", z_dim=8).z_dim
    8
    """
    if name not in MAKERS:
        raise ValueError(
            f"penalty={name!r} is not known; pass one of {', '.join(map(repr, MAKERS))}, or a"
            " penalty object."
        )
    return MAKERS[name](z_dim)
