"""Names of penalties: the table from which estimators and the command line turn a name such as "hsic" into an object.

This module imports no PyTorch, so that the command line can list the names quickly.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from frhsic.penalties import Penalty
    from frhsic.penalties.base import Condition

__all__ = ["PENALTIES", "PENALTY_NAMES", "penalty_named"]


class NamedPenalty(NamedTuple):
    """How to make a penalty, from the module of penalties, the columns of Z, whether there is a head, and condition."""

    make: Callable[[Any, int, bool, Condition], Penalty]
    description: str


PENALTIES = {
    "hsic": NamedPenalty(
        lambda p, z_dim, head, condition: p.HSIC(head_weight=1.0 if head else 0.0, condition=condition),
        "HSIC of the head and of whitened Z, this library's own",
    ),
    "frhsic": NamedPenalty(
        lambda p, z_dim, head, condition: p.HSIC.published(condition=condition),
        "HSIC of Z at median bandwidths, the paper's own",
    ),
    "frem": NamedPenalty(
        lambda p, z_dim, head, condition: p.EIPM(condition=condition),
        "distance between conditional and marginal laws of Z",
    ),
    "reg-gdp": NamedPenalty(
        lambda p, z_dim, head, condition: p.GDP(condition=condition),
        "GDP of the head's raw output, with Z left alone",
    ),
    "adv": NamedPenalty(
        lambda p, z_dim, head, condition: p.Adversary(z_dim),
        "an adversary that predicts S from Z",
    ),
    "mmd": NamedPenalty(
        lambda p, z_dim, head, condition: p.BinnedMMD(
            "mean-difference", scale_z=1.0, edges="quantile", condition=condition
        ),
        "differences of the mean of Z between ten quantile bins of S",
    ),
    "laftr": NamedPenalty(
        lambda p, z_dim, head, condition: p.BinnedAdversary(z_dim),
        "an adversary that predicts the quarter of S from Z",
    ),
    "dcor": NamedPenalty(
        lambda p, z_dim, head, condition: p.DistanceCovariance(condition=condition),
        "distance covariance of Z and S",
    ),
    "none": NamedPenalty(lambda p, z_dim, head, condition: p.NoPenalty(), "no penalty"),
}
"""Every penalty that has a name. All but "hsic" are those of the published numbers."""

PENALTY_NAMES = tuple(PENALTIES)
"""Every name that :func:`penalty_named` knows."""


def penalty_named(name: str, z_dim: int = 50, *, head: bool = True, condition: Condition = "all") -> Penalty:
    """Return the penalty of a name in :data:`PENALTIES`. For a variant, make an object of :mod:`frhsic.penalties`.

    Parameters
    ----------
    name
        A name such as "hsic".
    z_dim
        Columns of Z, which an adversary needs.
    head
        Whether there is a head to be deployed. If not (an encoder trained on reconstruction), "hsic" leaves out the
        term of the head; the linear part of its kernel on Z covers every affine head.
    condition
        ``"positive"`` for Equal Opportunity, see :class:`~frhsic.penalties.Penalty`; not for adversaries.

    Examples
    --------
    >>> penalty_named("hsic").needs_scores, penalty_named("frhsic").needs_scores
    (True, False)
    >>> penalty_named("adv", z_dim=8).z_dim
    8
    """
    from frhsic import penalties

    if name not in PENALTIES:
        raise ValueError(f"penalty={name!r} is not known; pass one of {', '.join(map(repr, PENALTIES))}, or an object.")
    penalty = PENALTIES[name].make(penalties, z_dim, head, condition)
    if penalty.condition != condition and name != "none":
        raise ValueError(f"penalty={name!r} has no form for Equal Opportunity; choose another, or condition='all'.")
    return penalty
