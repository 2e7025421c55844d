"""Names of penalties, turned into objects: the only place where a word such as "hsic" means a formula."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, get_args

from frhsic.fleet import Task
from frhsic.penalties import (
    EIPM,
    GDP,
    HSIC,
    Adversary,
    BinnedAdversary,
    BinnedMMD,
    DistanceCovariance,
    NoPenalty,
    Penalty,
)
from frhsic.penalties.base import Condition

__all__ = ["PENALTY_NAMES", "PenaltyName", "penalty_named", "variance_floor_of", "weight_decay_of"]

PenaltyName = Literal["hsic", "frhsic", "frem", "reg-gdp", "adv", "mmd", "laftr", "dcor", "none"]

PENALTY_NAMES: tuple[str, ...] = get_args(PenaltyName)
"""Every name that :func:`penalty_named` knows."""


WEIGHT_DECAY = 1e-3
"""Weight decay of the encoder under this library's own penalty."""

VARIANCE_FLOOR = 0.01
"""Variance, in units of that of a coordinate, below which a direction of Z goes under this library's own penalty."""


def weight_decay_of(penalty: str | Penalty, task: Task = "binary") -> float:
    """Return the weight decay of the encoder that goes with a penalty: 1e-3 if that is blind to the scale of Z, else 0.

    A penalty that is blind to the scale of Z leaves overfitting alone, which others hold down in part by shrinking Z; a
    decay does it for all weights λ alike. The paper trained without, and so are its methods here, by name or as
    objects. Without a target (the task ``"reconstruction"``) there is none either.

    Examples
    --------
    >>> weight_decay_of("hsic"), weight_decay_of(HSIC(condition="positive"))
    (0.001, 0.001)
    >>> weight_decay_of("frhsic"), weight_decay_of(HSIC.published())
    (0.0, 0.0)
    """
    return WEIGHT_DECAY if _scale_blind(penalty) is not None and task != "reconstruction" else 0.0


def variance_floor_of(penalty: str | Penalty) -> float:
    """Return the floor under the variance of Z's directions that goes with a penalty: 0.01 for our own, else 0.

    Directions that hardly vary are where S is left when a penalty on Z has taken it out of the others; a penalty on the
    head alone pushes nothing there, and the paper's methods are left as the paper had them. See
    :class:`frhsic.fleet.Recipe`.

    Examples
    --------
    >>> variance_floor_of("hsic"), variance_floor_of("frhsic"), variance_floor_of(HSIC(representation_weight=0.0))
    (0.01, 0.0, 0.0)
    """
    made = _scale_blind(penalty)
    return VARIANCE_FLOOR if made is not None and made.representation_weight > 0 else 0.0


def _scale_blind(penalty: str | Penalty) -> HSIC | None:
    """Return the penalty, or that of the name, if it is HSIC in units that follow every coordinate of Z."""
    made = penalty_named(penalty) if isinstance(penalty, str) else penalty
    return made if isinstance(made, HSIC) and made.scale_z in ("standardised", "whitened") else None


def penalty_named(name: str, z_dim: int = 50, *, head: bool = True, condition: Condition = "all") -> Penalty:
    r"""Return the penalty of a name.

    ============  =====================================================================================
    ``hsic``      this library's own, the defaults of :class:`~frhsic.penalties.HSIC`: the head, every affine head
                  and a Gaussian in the kernel on Z
    ``frhsic``    the paper's to the letter: Gaussians at median bandwidths on Z and S
    ``frem``      :class:`~frhsic.penalties.EIPM`
    ``reg-gdp``   :class:`~frhsic.penalties.GDP` on the head's raw output
    ``adv``       :class:`~frhsic.penalties.Adversary`, a regression of S on Z
    ``mmd``       :class:`~frhsic.penalties.BinnedMMD`, differences of means over ten quantile bins
    ``laftr``     :class:`~frhsic.penalties.BinnedAdversary`, a classification of four quantile bins
    ``dcor``      :class:`~frhsic.penalties.DistanceCovariance`
    ``none``      nothing
    ============  =====================================================================================

    All but the first are the penalties that the published numbers were made with; variants are had by passing an
    object in place of a name. Several attributes: ``hsic`` takes the product of one kernel per attribute.

    Parameters
    ----------
    name
        One of the above.
    z_dim
        Columns of Z, which an adversary must know.
    head
        Whether there is a head to be deployed. Where there is none (an encoder trained on reconstruction), ``hsic``
        leaves out the head's own term; the linear part of its kernel on Z holds every affine head.
    condition
        ``"positive"`` for Equal Opportunity, see :class:`~frhsic.penalties.Penalty`; not for adversaries.

    Examples
    --------
    >>> penalty_named("hsic").needs_scores, penalty_named("frhsic").needs_scores
    (True, False)
    >>> penalty_named("adv", z_dim=8).z_dim
    8
    """
    makers: dict[str, Callable[[], Penalty]] = {
        "hsic": lambda: HSIC(condition=condition) if head else HSIC(head_weight=0.0, condition=condition),
        "frhsic": lambda: HSIC.published(condition=condition),
        "frem": lambda: EIPM(condition=condition),
        "reg-gdp": lambda: GDP(condition=condition),
        "adv": lambda: Adversary(z_dim),
        "mmd": lambda: BinnedMMD("mean-difference", scale_z=1.0, edges="quantile", condition=condition),
        "laftr": lambda: BinnedAdversary(z_dim),
        "dcor": lambda: DistanceCovariance(condition=condition),
        "none": NoPenalty,
    }
    if name not in makers:
        raise ValueError(f"penalty={name!r} is not known; pass one of {', '.join(map(repr, makers))}, or an object.")
    made = makers[name]()
    if made.condition != condition and name != "none":
        raise ValueError(f"penalty={name!r} has no form for Equal Opportunity; choose another, or condition='all'.")
    return made
