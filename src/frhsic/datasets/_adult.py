"""Adult (UCI): does a person of the 1994 census earn more than 50,000 dollars a year?"""

from __future__ import annotations

from io import BytesIO

import pandas as pd

from frhsic.datasets._entry import Content, Variant, words

COLUMNS = words("""
age workclass fnlwgt education education-num marital-status occupation relationship race sex
capital-gain capital-loss hours-per-week native-country income
""")
NUMERIC = words("fnlwgt education-num capital-gain capital-loss hours-per-week")
CATEGORICAL = words("workclass education marital-status occupation relationship race sex native-country")


def build(data: bytes, variant: Variant) -> Content:
    """Return Adult; `corrected` drops the rows with a "?", `published` keeps "?" as a level."""
    frame = pd.read_csv(BytesIO(data), header=None, names=COLUMNS, skipinitialspace=True)
    dropped = ["age is the sensitive attribute and no feature.", "adult.test is not used."]
    if variant == "corrected":
        complete = (frame[list(CATEGORICAL)] != "?").all(axis=1)
        dropped.append(
            f"{int((~complete).sum())} rows with '?' (missing) in workclass, occupation or native-country; the "
            "published numbers kept '?' as a level."
        )
        frame = frame[complete].reset_index(drop=True)
    return Content(
        frame,
        NUMERIC,
        dict.fromkeys(CATEGORICAL),
        (frame["income"] == ">50K").rename("income>50K"),
        frame["age"],
        "Adult, UCI Machine Learning Repository, dataset 2; the training file adult.data.",
        dropped,
    )
