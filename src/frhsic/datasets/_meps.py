"""MEPS HC-181 (2015): does a person use health care ten times a year or more?"""

from __future__ import annotations

from io import BytesIO

import numpy as np
import pandas as pd

from frhsic.datasets._entry import Content, Variant, words

VISITS = ("OBTOTV15", "OPTOTV15", "ERTOT15", "IPNGTD15", "HHTOTD15")
AGE = "AGE15X"

# Codes: -1 inapplicable (often too young to be asked), -7 refused, -8 do not know, -9 not ascertained.
CATEGORICAL = words("""
REGION53 SEX RACETHX MARRY53X FTSTU53X ACTDTY53 HONRDC53 RTHLTH53 MNHLTH53 HIBPDX CHDDX ANGIDX MIDX OHRTDX
STRKDX EMPHDX CHBRON53 CHOLDX CANCERDX DIABDX JTPAIN53 ARTHDX ARTHTYPE ASTHDX ADHDADDX PREGNT53 WLKLIM53
ACTLIM53 SOCLIM53 COGLIM53 DFHEAR42 DFSEE42 ADSMOK42 PHQ242 EMPST53 POVCAT15 INSCOV15
""")
SCORES = words("PCS42 MCS42 K6SUM42")
KNOWN = ("REGION53", "AGE53X", "MARRY53X", "ASTHDX")  # Panel 19: must be 0 or more
ASKED = (*CATEGORICAL[4:], "EDUCYR", "HIDEG")  # Panel 19: must be -1 or more

PUBLISHED = words("""
SEX RACEV1X MARRY31X EDUCYR REGION31 POVCAT15 INSCOV15 DIABDX ARTHDX ASTHDX CANCERDX MIDX STRKDX HIBPDX CHDDX
ANGIDX OHRTDX TTLP15X FAMINC15
""")


def build(data: bytes, variant: Variant) -> Content:
    """Return MEPS; `corrected` is Panel 19 with its usual filter, `published` both panels, codes as numbers."""
    read = {*CATEGORICAL, *SCORES, *KNOWN, *ASKED, *PUBLISHED, *VISITS, AGE, "PANEL"}
    frame = pd.read_csv(BytesIO(data), usecols=sorted(read))
    dropped = [f"{AGE} is the sensitive attribute; the other age columns of the file tell the same."]
    if variant == "corrected":
        frame = _panel_19(frame, dropped)
        frame[list(SCORES)] = frame[list(SCORES)].where(frame[list(SCORES)] >= 0, np.nan)
        numeric, categorical = SCORES, CATEGORICAL
        text = "Panel 19 of MEPS HC-181, Agency for Healthcare Research and Quality."
    else:
        complete = (frame[[*PUBLISHED, AGE]] >= 0).all(axis=1)
        dropped.append(
            f"{int((~complete).sum())} rows with a negative value in a feature or in age: codes of missing answers, "
            "and incomes that really were negative."
        )
        frame = frame[complete].reset_index(drop=True)
        numeric, categorical = PUBLISHED, ()
        panels = frame["PANEL"].value_counts()
        text = (
            f"MEPS HC-181, Agency for Healthcare Research and Quality; {panels.get(19, 0)} rows are of Panel 19 and "
            f"{panels.get(20, 0)} of Panel 20."
        )
    visits = (frame[list(VISITS)].sum(axis=1) >= 10).rename("visits>=10")
    return Content(frame, numeric, dict.fromkeys(categorical), visits, frame[AGE], text, dropped)


def _panel_19(frame: pd.DataFrame, dropped: list[str]) -> pd.DataFrame:
    panel = frame["PANEL"] == 19
    usable = (frame[list(KNOWN)] >= 0).all(axis=1) & (frame[list(ASKED)] >= -1).all(axis=1)
    dropped += [
        f"{int((~panel).sum())} rows of Panel 20.",
        f"{int((panel & ~usable).sum())} rows of Panel 19: region, age, marital status or asthma not known, or an "
        "answer refused, not known or not ascertained. 'Inapplicable' (-1) is kept as a level.",
        "EDUCYR and HIDEG: inapplicable in nearly all rows of this panel.",
        "The sampling weight PERWT15F: it is no trait of the person.",
        "PCS42, MCS42 and K6SUM42 are missing for who did not get the questionnaire for adults; they stay NaN until a "
        "split fills them with the training rows' median. ADSMOK42=-1 marks nearly the same people.",
    ]
    return frame[panel & usable].reset_index(drop=True)
