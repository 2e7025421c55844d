"""Bank Marketing: does a client of a Portuguese bank take a term deposit after a call?"""

from __future__ import annotations

from io import BytesIO

import pandas as pd

from frhsic.datasets._entry import Content, Entry, Variant, words
from frhsic.datasets.sources import RawFile, Wheel

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


BANK = Entry(
    name="bank",
    title="Bank Marketing",
    files=(
        RawFile(
            folder="bank",
            name="bank-additional-full.csv",
            sha256=("74adfc578bf77a7ff4bb1ba4a9f8709d9e3c6907342959c2c8416847e0afb4d8",),
            page="https://archive.ics.uci.edu/dataset/222/bank+marketing",
            no_url="the owner offers an archive inside an archive",
            wheel=Wheel("aif360==0.2.0", "aif360/data/raw/bank/bank-additional-full.csv"),
        ),
    ),
    owner="UCI Machine Learning Repository, dataset 222",
    licence="CC BY 4.0",
    citation="Moro, S., Cortez, P. and Rita, P. (2014). A data-driven approach to predict the success of bank "
    "telemarketing. Decision Support Systems 62.",
    classes=("no deposit", "deposit"),
    sensitive="age",
    corrected=(41_188, 61),
    published=None,
    build=build,
)
