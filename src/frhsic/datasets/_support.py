"""SUPPORT: does a seriously ill patient of a hospital die within half a year?"""

from __future__ import annotations

from io import BytesIO

import pandas as pd

from frhsic.datasets._entry import Content, Variant, words

NUMERIC = words(
    "num.co edu scoma hday diabetes dementia meanbp wblc hrt resp temp pafi alb bili crea sod ph glucose bun urine "
    "adlp adls"
)
CATEGORICAL = words("sex dzgroup income race ca")
DAYS = 180


def build(data: bytes, variant: Variant) -> Content:
    """Return the patients of SUPPORT, described by what was known on the third day."""
    frame = pd.read_csv(BytesIO(data), usecols=[*NUMERIC, *CATEGORICAL, "age", "death", "d.time"])
    return Content(
        frame,
        NUMERIC,
        dict.fromkeys(CATEGORICAL),
        ((frame["death"] == 1) & (frame["d.time"] <= DAYS)).rename("death within 180 days"),
        frame["age"],
        "SUPPORT, five hospitals in the United States, 1989 to 1994, file support2.csv.",
        [
            "age is the sensitive attribute and no feature.",
            "hospdead, death, d.time, slos, sfdm2, charges, totcst, totmcst, avtisst: known only afterwards.",
            "surv2m, surv6m, prg2m, prg6m, aps, sps, adlsc: predictions and scores, some computed from age.",
            "dnr, dnrday: a decision that foresees the outcome.",
            "dzclass: groups of dzgroup. sno: a row number.",
        ],
    )
