"""COMPAS (ProPublica): is a defendant of Broward County charged again within two years?"""

from __future__ import annotations

from io import BytesIO

import pandas as pd

from frhsic.datasets._entry import Content, Variant

COUNTS = ("juv_fel_count", "juv_misd_count", "juv_other_count", "priors_count")
DAYS = ("days_b_screening_arrest", "c_days_from_compas")
CATEGORICAL = ("c_charge_degree", "sex", "race")
# Names and dates of birth of real people are in the file; only these columns are ever parsed.
READ = (*COUNTS, *DAYS, *CATEGORICAL, "age", "is_recid", "score_text", "two_year_recid")


def build(data: bytes, variant: Variant) -> Content:
    """Return COMPAS after ProPublica's filter; `published` also has two counts of days as features."""
    frame = pd.read_csv(BytesIO(data), usecols=list(READ))
    kept = (
        (frame["days_b_screening_arrest"].abs() <= 30)
        & (frame["is_recid"] != -1)
        & (frame["c_charge_degree"] != "O")
        & frame["score_text"].notna()
    )
    dropped = [
        "age is the sensitive attribute and no feature.",
        "name, first, last and dob are not read: they name real people.",
        f"{int((~kept).sum())} rows by ProPublica's filter: charge not within 30 days of the screening, no case "
        "found, ordinary traffic offence, or no score.",
        "COMPAS's own scores, and all columns about what came after the screening.",
    ]
    numeric: tuple[str, ...] = COUNTS + DAYS
    if variant == "corrected":
        numeric = COUNTS
        dropped.append(
            "days_b_screening_arrest and c_days_from_compas: days between charge and screening, which describe the "
            "file rather than the person; the text of the paper does not list them, the published numbers used them."
        )
    frame = frame[kept].reset_index(drop=True)
    return Content(
        frame,
        numeric,
        dict.fromkeys(CATEGORICAL),
        frame["two_year_recid"],
        frame["age"],
        "COMPAS two-year file, ProPublica's analysis of Broward County, Florida, 2013-2014.",
        dropped,
    )
