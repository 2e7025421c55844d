"""Credit card default: does a client of a Taiwanese bank miss the next payment?"""

from __future__ import annotations

from io import BytesIO

import pandas as pd

from frhsic.datasets._entry import Content, Variant, words

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
