"""Penalties: differentiable measures, on one batch, of how much Z depends on S."""

from __future__ import annotations

from collections.abc import Callable

from frhsic.penalties.adversary import Adversary, BinnedAdversary
from frhsic.penalties.base import NoPenalty, Penalty, PenaltyCondition
from frhsic.penalties.hsic import HSIC
from frhsic.penalties.rivals import EIPM, GDP, BinnedMMD, DistanceCovariance

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

# How to make each penalty from the columns of Z and which rows count.
MAKERS: dict[str, Callable[[int, PenaltyCondition], Penalty]] = {
    "hsic": lambda z_dim, condition: HSIC(condition=condition),
    "frhsic": lambda z_dim, condition: HSIC.published(condition=condition),
    "frem": lambda z_dim, condition: EIPM(condition=condition),
    "reg-gdp": lambda z_dim, condition: GDP(condition=condition),
    "adv": lambda z_dim, condition: Adversary(z_dim),
    "mmd": lambda z_dim, condition: BinnedMMD(condition=condition),
    "laftr": lambda z_dim, condition: BinnedAdversary(z_dim),
    "dcor": lambda z_dim, condition: DistanceCovariance(condition=condition),
    "none": lambda z_dim, condition: NoPenalty(),
}

# Every name that :func:`penalty_named` knows. All but "hsic" are those of the published numbers.
PENALTY_NAMES = tuple(MAKERS)


def penalty_named(name: str, z_dim: int = 50, *, condition: PenaltyCondition = None) -> Penalty:
    """Return the penalty of a name in :data:`PENALTY_NAMES`. For a variant, make an object of
    :mod:`frhsic.penalties`.

    Parameters
    ----------
    name
        A name such as "hsic".
    z_dim
        Columns of Z, which an adversary needs.
    condition
        ``"positive"`` for Equal Opportunity, see :class:`~frhsic.penalties.Penalty`; not for
        adversaries.

    Examples
    --------
    >>> penalty_named("hsic").needs_scores, penalty_named("frhsic").needs_scores
    (True, False)
    >>> penalty_named("adv", z_dim=8).z_dim
    8
    """
    if name not in MAKERS:
        raise ValueError(
            f"penalty={name!r} is not known; pass one of {', '.join(map(repr, MAKERS))}, or an"
            " object."
        )
    penalty = MAKERS[name](z_dim, condition)
    if penalty.condition != condition and name != "none":
        raise ValueError(
            f"penalty={name!r} has no form for Equal Opportunity; choose another, or"
            " condition=None."
        )
    return penalty
