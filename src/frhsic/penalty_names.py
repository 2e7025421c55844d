"""Names of penalties: the table from which estimators and the command line turn a name such as "hsic" into an object.

This module imports no PyTorch, so that the command line can list the names quickly.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from frhsic.penalties import Penalty
    from frhsic.penalties.base import Condition


class Use(NamedTuple):
    """What a penalty is made for: the columns of Z, whether there is a head, and which rows count."""

    z_dim: int
    head: bool
    condition: Condition


class NamedPenalty(NamedTuple):
    """One line of description, and how to make the penalty from the module of penalties and its use."""

    description: str
    make: Callable[[Any, Use], Penalty]


PENALTIES = {
    "hsic": NamedPenalty(
        "HSIC, a measure of any dependence, of the score and of Z; this library's own",
        lambda p, use: p.HSIC(head_weight=1.0 if use.head else 0.0, condition=use.condition),
    ),
    "frhsic": NamedPenalty(
        "HSIC of Z alone; the paper's own", lambda p, use: p.HSIC.published(condition=use.condition)
    ),
    "frem": NamedPenalty(
        "distance between Z of people near a value of S and Z of all", lambda p, use: p.EIPM(condition=use.condition)
    ),
    "reg-gdp": NamedPenalty("the gap of the raw score alone", lambda p, use: p.GDP(condition=use.condition)),
    "adv": NamedPenalty("an adversary that predicts S from Z", lambda p, use: p.Adversary(use.z_dim)),
    "mmd": NamedPenalty(
        "differences of the mean of Z between bins of S", lambda p, use: p.BinnedMMD.published(condition=use.condition)
    ),
    "laftr": NamedPenalty("an adversary that predicts the quarter of S", lambda p, use: p.BinnedAdversary(use.z_dim)),
    "dcor": NamedPenalty(
        "distance covariance of Z and S, a relative of HSIC",
        lambda p, use: p.DistanceCovariance(condition=use.condition),
    ),
    "none": NamedPenalty("no penalty", lambda p, use: p.NoPenalty()),
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
    penalty = PENALTIES[name].make(penalties, Use(z_dim, head, condition))
    if penalty.condition != condition and name != "none":
        raise ValueError(f"penalty={name!r} has no form for Equal Opportunity; choose another, or condition='all'.")
    return penalty
