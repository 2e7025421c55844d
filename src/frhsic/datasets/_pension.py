"""Pension plans: does a household's employer offer a 401(k) plan?"""

from __future__ import annotations

import bz2
from io import BytesIO

import pandas as pd

from frhsic.datasets._entry import Content, Variant, words

NUMERIC = words("age marr male fsize nettfa pira")


def build(data: bytes, variant: Variant) -> Content:
    """Return the households of the survey of 1991, with income as the sensitive attribute."""
    frame = pd.read_csv(BytesIO(bz2.decompress(data)))
    return Content(
        frame,
        NUMERIC,
        {},
        frame["e401k"],
        frame["inc"].rename("income"),
        "Survey of Income and Program Participation, 1991, households with an income from 10,000 to 200,000 dollars, "
        "as used by Abadie (2003).",
        [
            "inc is the sensitive attribute and no feature; incsq is its square.",
            "agesq: the square of age.",
            "p401k: only a household with a plan can take part in it.",
        ],
    )
