"""Bank Marketing: does a client of a Portuguese bank take a term deposit after a call?"""

from __future__ import annotations

from io import BytesIO

import pandas as pd

from frhsic.datasets._entry import Content, Variant, words

NUMERIC = words("campaign pdays previous emp.var.rate cons.price.idx cons.conf.idx euribor3m nr.employed")
CATEGORICAL = words("job marital education default housing loan contact month day_of_week poutcome")


def build(data: bytes, variant: Variant) -> Content:
    """Return Bank Marketing; "unknown" is a level of its own, as the owners mean it."""
    frame = pd.read_csv(BytesIO(data), sep=";")
    return Content(
        frame,
        NUMERIC,
        dict.fromkeys(CATEGORICAL),
        frame["y"] == "yes",
        frame["age"],
        "Bank Marketing, file bank-additional-full.csv, calls from May 2008 to November 2010.",
        [
            "age is the sensitive attribute and no feature.",
            "duration: the length of the call is known only once its outcome is, and the owners advise against it.",
        ],
    )
