"""The two protocols as data: the conventions behind the printed numbers, and the corrected ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

ProtocolName = Literal["published", "corrected"]

DATASETS = ("adult", "acs_income", "meps", "crime", "compas")

METHODS = ("frhsic", "frem", "reg-gdp", "adv", "mmd", "laftr", "dcor")
"""The paper's methods, except the unpenalized one, by the names that the estimators use."""

BASELINE = "none"

OWN = "hsic"
"""This library's own penalty, in addition to the paper's."""

CONTRACTED = "contracted"
"""The unpenalized model with contracted scores; see
:func:`frhsic_paper.frontiers.with_contraction`.
"""

BAND = 0.01
"""Largest share of the unpenalized model's performance that a chosen model may lose."""

PAPER_WEIGHTS = (0.01, 0.1, 0.5, 1.0, 5.0, 10.0, 50.0, 100.0, 500.0)
"""The nine weights that all published sweeps have in common."""


@dataclass(frozen=True)
class Protocol:
    """How a study is run and evaluated.

    Attributes
    ----------
    variant
        The variant of each dataset that is loaded.
    validation
        Share of the rows held out to choose a weight; with 0, it is chosen on the test rows.
    gdp
        The column of a record that is used as GDP.
    scaling
        Rows on which the scales of X and S are fitted in the experiments for which the paper's code
        used all rows.
    decimals
        Digits to which means are rounded before a matched point is chosen, or None.
    ddof
        Degrees of freedom subtracted in standard deviations over repeats.
    printed
        Whether the printed numbers were computed in this way; only the paper's own studies are run
        under such a protocol.
    """

    name: ProtocolName
    variant: Literal["published", "corrected"]
    validation: float
    gdp: str
    scaling: Literal["train", "all"]
    decimals: int | None
    ddof: int
    printed: bool


PUBLISHED = Protocol("published", "published", 0.0, "gdp_logit_uniform", "all", 4, 0, True)
CORRECTED = Protocol("corrected", "corrected", 0.15, "gdp_probability", "train", None, 1, False)
PROTOCOLS = {protocol.name: protocol for protocol in (PUBLISHED, CORRECTED)}
