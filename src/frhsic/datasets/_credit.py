"""Credit card default: does a client of a Taiwanese bank miss the next payment?"""

from __future__ import annotations

from io import BytesIO

import pandas as pd

from frhsic.datasets._entry import Content, Entry, Variant, words
from frhsic.datasets.sources import RawFile, Wheel

NUMERIC = words(
    "LIMIT_BAL PAY_0 PAY_2 PAY_3 PAY_4 PAY_5 PAY_6 BILL_AMT1 BILL_AMT2 BILL_AMT3 BILL_AMT4 BILL_AMT5 BILL_AMT6 "
    "PAY_AMT1 PAY_AMT2 PAY_AMT3 PAY_AMT4 PAY_AMT5 PAY_AMT6"
)
CATEGORICAL = words("SEX EDUCATION MARRIAGE")
TARGET = "default.payment.next.month"


def build(data: bytes, variant: Variant) -> Content:
    """Return the credit card clients of 2005."""
    frame = pd.read_csv(BytesIO(data), usecols=[*NUMERIC, *CATEGORICAL, "AGE", TARGET])
    return Content(
        frame,
        NUMERIC,
        dict.fromkeys(CATEGORICAL),
        frame[TARGET],
        frame["AGE"].rename("age"),
        "Default of Credit Card Clients, Taiwan, April to September 2005.",
        ["AGE is the sensitive attribute and no feature.", "ID: a row number."],
    )


CREDIT = Entry(
    name="credit",
    title="Credit card default",
    files=(
        RawFile(
            folder="credit",
            name="UCI_Credit_Card.csv",
            sha256=("a0f0ab49d6326671d6cd83be5c88dcf18007025fe9a53ecd699119c871176ca1",),
            page="https://archive.ics.uci.edu/dataset/350/default+of+credit+card+clients",
            no_url="the owner offers a spreadsheet",
            wheel=Wheel("equiaudit==0.1.2", "equiaudit/data/UCI_Credit_Card.csv"),
        ),
    ),
    owner="UCI Machine Learning Repository, dataset 350",
    licence="CC BY 4.0",
    citation="Yeh, I.-C. and Lien, C.-H. (2009). The comparisons of data mining techniques for the predictive accuracy "
    "of probability of default of credit card clients. Expert Systems with Applications 36(2).",
    classes=("paid", "default"),
    sensitive="age",
    corrected=(30_000, 32),
    published=None,
    build=build,
)
