"""Adult (UCI): does a person of the 1994 census earn more than 50,000 dollars a year?"""

from __future__ import annotations

from io import BytesIO

import pandas as pd

from frhsic.datasets._entry import Content, Entry, Variant, words
from frhsic.datasets.sources import RawFile, Wheel

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


ADULT = Entry(
    name="adult",
    title="Adult",
    files=(
        RawFile(
            folder="adult",
            name="adult.data",
            sha256=("5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",),
            page="https://archive.ics.uci.edu/dataset/2/adult",
            url="https://archive.ics.uci.edu/ml/machine-learning-databases/adult/adult.data",
            wheel=Wheel("aif360==0.2.0", "aif360/data/raw/adult/adult.data"),
        ),
    ),
    owner="UCI ML Repository",
    licence="CC BY 4.0",
    citation="Becker, B. and Kohavi, R. (1996). Adult. UCI Machine Learning Repository. doi:10.24432/C5XW20",
    classes=("<=50K", ">50K"),
    sensitive="age",
    corrected=(30_162, 103),
    published=(32_561, 107),
    build=build,
)
