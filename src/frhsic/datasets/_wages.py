"""Wages after college: log hourly wage in 1986 of the high-school class of 1972."""

from __future__ import annotations

import bz2
from io import BytesIO

import pandas as pd

from frhsic.datasets._entry import Content, Variant, words

NUMERIC = words(
    "female phsrank BA AA black hispanic exper jc univ smcity medcity submed lgcity sublg vlgcity subvlg ne nc south"
)


def build(data: bytes, variant: Variant) -> Content:
    """Return the graduates, with their standardized test score at school as the sensitive attribute."""
    frame = pd.read_csv(BytesIO(bz2.decompress(data)))
    return Content(
        frame,
        NUMERIC,
        {},
        frame["lwage"],
        frame["stotal"].rename("test score"),
        "National Longitudinal Study of the High School Class of 1972, wages of 1986; used by Kane and Rouse (1995).",
        [
            "stotal is the sensitive attribute and no feature.",
            "totcoll: the sum of jc and univ. id: a number of the person.",
        ],
    )
