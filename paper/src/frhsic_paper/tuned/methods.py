"""The methods, their settings, and the budget of the search."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, NamedTuple

from frhsic.tables.scales import Scaling
from frhsic_paper.tuned import penalties

TRIALS = 12
"""Trials of each method on each dataset; the first has the method's own defaults, the others are quasi-random."""

TERM_SETS = 2
"""Sets of training terms: trials 0 to 5 have the method's own, trials 6 to 11 the other one."""

WEIGHTS = (0.0, 0.3, 2.0, 10.0, 50.0, 300.0)
"""Weights of every trial. The chosen trial gets `FINAL_WEIGHTS` of its own, between those that matter."""

FINAL_WEIGHTS = 8

AMOUNTS = (0.0, 0.25, 0.5, 0.75, 0.9, 1.0)
"""The dial of transport, in place of weights."""

LEVELS = (0.75, 0.5, 0.25)
"""Shares of the reference GDP at which performance is read; the search maximizes its mean over them."""

RIVALS = ("frhsic", "frem", "reg-gdp", "mmd", "dcor", "adv", "laftr")

UNTUNED = ", untuned"
"""Ends the name of a row that shows a method at its first trial, whatever the search says."""


WIDE = "default, 50 columns"
"""The default with the Z of 50 columns and the low variance floor that it had when the test folds were first seen."""


def tuned_name(name: str) -> str:
    """Return the method of a row.

    Examples
    --------
    >>> tuned_name("default, untuned")
    'default'
    """
    return name.removesuffix(UNTUNED)


class Setting(NamedTuple):
    """One setting of a method: its default, and the range that it is drawn from, uniformly in the logarithm."""

    name: str
    default: float
    low: float
    high: float
    whole: bool = False

    def drawn(self, share: float) -> float:
        """Return the value at a share of the range."""
        value = self.low * (self.high / self.low) ** share
        return float(round(value)) if self.whole else float(f"{value:.4g}")


def quasi_random(number: int, dimensions: int) -> list[float]:
    """Return a point of a Kronecker sequence, which fills the unit cube more evenly than random draws do.

    Coordinate j is the fractional part of 1/2 + number · g^-(j + 1), where g solves g^(d + 1) = g + 1.

    Examples
    --------
    >>> [round(quasi_random(number, 1)[0], 3) for number in (1, 2, 3)]
    [0.118, 0.736, 0.354]
    """
    root = 2.0
    for _ in range(40):
        root = (1 + root) ** (1 / (dimensions + 1))
    return [(0.5 + number * root ** -(j + 1)) % 1 for j in range(dimensions)]


@dataclass(frozen=True)
class Terms:
    """How long a network is trained, and how it is regularized; `epochs=None` is about 2,500 steps."""

    epochs: int | None
    schedule: Literal["constant", "cosine"]
    decay: float
    floor: float


@dataclass(frozen=True)
class Inputs:
    """What a network sees and how it is built."""

    base: bool
    scaling: Scaling
    hidden: tuple[int, ...]
    activation: str
    ranks: bool
    representation: int = 50


@dataclass(frozen=True)
class Method:
    """A method, its settings, and for a network its inputs, its penalty and two sets of terms, its own first."""

    name: str
    settings: tuple[Setting, ...]
    inputs: Inputs | None = None
    penalty: Callable[[Mapping[int, tuple[float, ...]]], Any] | None = None
    terms: tuple[Terms, ...] = ()
    stops_early: bool = False

    def values(self, trial: int) -> tuple[float, ...]:
        """Return the settings of a trial."""
        if trial == 0:
            return tuple(setting.default for setting in self.settings)
        shares = quasi_random(trial, len(self.settings))
        return tuple(setting.drawn(share) for setting, share in zip(self.settings, shares))

    def terms_of(self, trial: int) -> Terms:
        """Return the terms of a trial."""
        return self.terms[trial * TERM_SETS // TRIALS]

    def described(self, trial: int) -> dict[str, float]:
        """Return settings and terms of a trial by name."""
        values = {setting.name: value for setting, value in zip(self.settings, self.values(trial))}
        if self.terms:
            terms = self.terms_of(trial)
            values |= {"decay": terms.decay, "floor": terms.floor, "epochs": float(terms.epochs or 0)}
        return values


PAPER = Inputs(base=False, scaling="range", hidden=(50,), activation="selu", ranks=False)
NEW = Inputs(base=True, scaling="robust", hidden=(128, 128), activation="gelu", ranks=True)
NEW_WITHOUT_BASE = replace(NEW, base=False)
NARROW = replace(NEW, representation=16)
NARROW_WITHOUT_BASE = replace(NARROW, base=False)

LONG = Terms(200, "constant", 0.0, 0.0)
LONG_DECAYED = Terms(200, "constant", 1e-3, 0.01)
SHORT = Terms(None, "cosine", 0.0, 0.0)
SHORT_DECAYED = Terms(None, "cosine", 1e-3, 0.01)
SHORT_LIGHTLY = Terms(None, "cosine", 3e-4, 0.003)
SHORT_HIGH_FLOOR = Terms(None, "cosine", 1e-3, 0.3)
SHORT_LIGHTLY_HIGH_FLOOR = Terms(None, "cosine", 3e-4, 0.1)

OF_HSIC = (Setting("unit of z", 1.0, 0.4, 2.5), Setting("unit of s", 1.0, 0.4, 2.5))
SETTINGS = {
    "frhsic": (Setting("bandwidth of z", 1.0, 0.1, 3.0), Setting("bandwidth of s", 1.0, 0.2, 3.0)),
    "frem": (Setting("bandwidth of z", 1.0, 0.3, 10.0), Setting("gamma", 0.5, 0.03, 1.0)),
    "reg-gdp": (Setting("bandwidth of s", 0.2, 0.02, 0.8),),
    "mmd": (Setting("bins", 10.0, 2.0, 20.0, whole=True),),
    "dcor": (),
    "adv": (Setting("learning rate of the adversary", 1e-3, 1e-4, 3e-2),),
    "laftr": (
        Setting("learning rate of the adversary", 1e-3, 1e-4, 3e-2),
        Setting("bins", 4.0, 2.0, 12.0, whole=True),
    ),
}
"""Settings of the paper's methods. Distance covariance has none of its own: only its terms differ."""

OF_TREES = (
    Setting("learning rate", 0.1, 0.03, 0.3),
    Setting("leaves", 31.0, 7.0, 63.0, whole=True),
    Setting("rows in a leaf", 20.0, 5.0, 100.0, whole=True),
)


def _methods() -> dict[str, Method]:
    hsic = penalties.PENALTIES["hsic"]
    early = partial(Method, stops_early=True)
    listed = [
        early("default", OF_HSIC, NARROW, hsic, (SHORT_HIGH_FLOOR, SHORT_LIGHTLY_HIGH_FLOOR)),
        early("default, no base", OF_HSIC, NARROW_WITHOUT_BASE, hsic, (SHORT_HIGH_FLOOR, SHORT_LIGHTLY_HIGH_FLOOR)),
        early(WIDE, OF_HSIC, NEW, hsic, (SHORT_DECAYED, SHORT_LIGHTLY)),
        early(f"{WIDE}, no base", OF_HSIC, NEW_WITHOUT_BASE, hsic, (SHORT_DECAYED, SHORT_LIGHTLY)),
        Method("default before", OF_HSIC, PAPER, penalties.PENALTIES["hsic before"], (LONG_DECAYED, SHORT_DECAYED)),
    ]
    for name in RIVALS:
        made, settings = penalties.PENALTIES[name], SETTINGS[name]
        listed.append(Method(name, settings, PAPER, made, (LONG, SHORT_DECAYED)))
        stops = name not in ("adv", "laftr")
        listed.append(Method(f"{name}, base", settings, NEW, made, (SHORT, SHORT_DECAYED), stops))
    listed.append(Method("boosting", OF_TREES))
    listed.append(Method("transport (needs S)", (*OF_TREES, Setting("resolution", math.nan, 0.03, 0.3))))
    return {method.name: method for method in listed}


METHODS = _methods()
