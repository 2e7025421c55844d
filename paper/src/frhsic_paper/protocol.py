"""The two protocols, as data: the conventions behind the printed numbers, and the corrected
ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

ProtocolName = Literal["published", "corrected"]

DATASETS = ("adult", "acs_income", "meps", "crime", "compas")

METHODS = ("frhsic", "frem", "reg-gdp", "adv", "mmd", "laftr", "dcor")
"""The paper's methods besides the unpenalized one, by the names of the estimators."""

BASELINE = "none"

OWN = "hsic"
"""This library's own penalty, beside the paper's."""

CONTRACTED = "contracted"
"""The unpenalized model with its scores contracted; see
:func:`frhsic_paper.frontiers.with_contraction`.
"""

BAND = 0.01
"""Share of the unpenalized model's performance that a chosen model may lose."""

PAPER_WEIGHTS = (0.01, 0.1, 0.5, 1.0, 5.0, 10.0, 50.0, 100.0, 500.0)
"""The nine weights that every published sweep shares."""


@dataclass(frozen=True)
class Protocol:
    """How a study is run and read.

    Attributes
    ----------
    variant
        Which construction of a dataset is loaded.
    validation
        Share of the rows held out for choosing a weight; 0 chooses on the test rows.
    gdp
        The column of a record that stands for GDP.
    scaling
        Rows that the scales of X and S are fitted on where the paper's code used all of them.
    decimals
        Digits to which means are rounded before a matched point is chosen, or None.
    ddof
        Degrees of freedom subtracted in standard deviations over repeats.
    printed
        Whether the printed numbers were computed this way; only the paper's own studies are run
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
