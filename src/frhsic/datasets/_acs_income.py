"""ACS Income (US Census Bureau): does a worker in California earn more than 50,000 dollars a year?"""

from __future__ import annotations

import hashlib
from io import BytesIO

import numpy as np
import pandas as pd

from frhsic.datasets._dataset import legacy_permutation
from frhsic.datasets._entry import Content, Variant
from frhsic.datasets._remote import zip_member

FEATURES = ("COW", "SCHL", "MAR", "OCCP", "POBP", "RELP", "WKHP", "SEX", "RAC1P")
LABEL = "PINCP_gt_50000"
TABLE = ("AGEP", *FEATURES, LABEL)
MEMBER = "psam_p06.csv"
STATE_ROWS = 195_665
DRAWN, SEED = 20_000, 42

# SOC major groups, by the first 2018 Census occupation code of each (PUMS code list).
OCCUPATIONS = {
    10: "management",
    500: "business and finance",
    1005: "computers and mathematics",
    1305: "architecture and engineering",
    1600: "science",
    2001: "community and social service",
    2100: "legal",
    2205: "education",
    2600: "arts, sports and media",
    3000: "health care practice",
    3601: "health care support",
    3700: "protective service",
    4000: "food",
    4200: "cleaning and grounds",
    4330: "personal care",
    4700: "sales",
    5000: "office",
    6005: "farming, fishing and forestry",
    6200: "construction and extraction",
    7000: "installation and repair",
    7700: "production",
    9005: "transportation",
    9800: "military",
}
LAST_OCCUPATION = 9840

# World areas of birth (PUMS variable WAOB), by the first place-of-birth code of each run of codes.
BIRTHPLACES = {
    1: "US state",
    60: "US island area",
    100: "Europe",
    158: "Asia",  # Armenia, Azerbaijan
    160: "Europe",
    161: "Asia",  # Georgia
    162: "Europe",
    200: "Asia",
    300: "Northern America",
    303: "Latin America",  # Mexico
    304: "Northern America",
    310: "Latin America",
    400: "Africa",
    500: "Oceania or at sea",
}
LAST_BIRTHPLACE = 554

LEVELS: dict[str, list[object]] = {
    "COW": list(range(1, 9)),
    "SCHL": list(range(1, 25)),
    "MAR": list(range(1, 6)),
    "OCCP": list(OCCUPATIONS.values()),
    "POBP": list(dict.fromkeys(BIRTHPLACES.values())),
    "RELP": list(range(18)),
    "SEX": [1, 2],
    "RAC1P": list(range(1, 10)),
}


def grouped(codes: pd.Series[int], starts: dict[int, str], last: int) -> pd.Series[str]:
    """Return the group of each code: the last one that starts at or before it.

    Examples
    --------
    >>> grouped(pd.Series([1021, 9825]), OCCUPATIONS, LAST_OCCUPATION).tolist()
    ['computers and mathematics', 'military']
    """
    first = min(starts)
    outside = codes[(codes < first) | (codes > last)]
    if len(outside):
        raise ValueError(f"column {codes.name} has the code {outside.iloc[0]}; codes are {first} to {last}.")
    position = np.searchsorted(list(starts), codes.to_numpy(), side="right") - 1
    return pd.Series(np.array(list(starts.values()), dtype=object)[position], name=codes.name)


def build(data: bytes, variant: Variant) -> Content:
    """Return 20,000 rows drawn by the paper's seed; `published` leaves all codes as numbers."""
    table = pd.read_csv(BytesIO(data), usecols=list(TABLE))
    n = len(table)
    frame = table.iloc[legacy_permutation(n, SEED)[:DRAWN]].reset_index(drop=True)
    dropped = [
        "AGEP is the sensitive attribute and no feature.",
        "People up to 16 years, or with an income up to 100 dollars, no working hours or no weight.",
        f"{n - DRAWN} of {n} rows: {DRAWN} are drawn without replacement by seed {SEED}.",
    ]
    if variant == "corrected":
        dropped.append(
            "Occupation and place of birth within their major groups: 23 SOC groups for some 530 codes, 8 world areas "
            "for some 210."
        )
        frame["OCCP"] = grouped(frame["OCCP"], OCCUPATIONS, LAST_OCCUPATION)
        frame["POBP"] = grouped(frame["POBP"], BIRTHPLACES, LAST_BIRTHPLACE)
    whole = "of all of them: these are the paper's rows" if n == STATE_ROWS else (
        f"of a {n / STATE_ROWS:.0%} sample of the state's {STATE_ROWS}: another draw than the paper's"
    )  # fmt: skip
    return Content(
        frame,
        FEATURES if variant == "published" else ("WKHP",),
        {} if variant == "published" else LEVELS,
        frame[LABEL].rename("income>50000"),
        frame["AGEP"],
        f"American Community Survey, PUMS 2018 1-year, California, US Census Bureau; {DRAWN} rows {whole}.",
        dropped,
    )


def unpack(archive: bytes) -> bytes:
    """Return the Census Bureau's zip of the state's person records as the table of the task.

    The task of Ding et al.: older than 16, income above 100, hours above 0, weight of at least 1.
    """
    text = zip_member(archive, MEMBER, 1_000_000_000)
    try:
        people = pd.read_csv(BytesIO(text), usecols=["AGEP", *FEATURES, "PINCP", "PWGTP"])
    except ValueError as error:
        raise ValueError(f"{MEMBER} does not have the columns of the 2018 person file: {error}") from error
    kept = (people["AGEP"] > 16) & (people["PINCP"] > 100) & (people["WKHP"] > 0) & (people["PWGTP"] >= 1)
    people = people[kept]
    table = people[["AGEP", *FEATURES]].fillna(-1).astype("int64")
    table[LABEL] = (people["PINCP"] > 50_000).astype("int64")
    return table.to_csv(index=False).encode()


# Positions of some rows in the whole table and the checksum of their values, from an independent copy of them.
KNOWN_ROWS = (
    3, 8535, 17032, 25257, 33739, 42216, 50655, 59048, 67636, 76179, 84618, 92847, 101460, 109942, 118532,
    127061, 135624, 144067, 152712, 161330, 170026, 178671, 187095, 195662,
)  # fmt: skip
KNOWN_SHA256 = "068a7b808805f70ffe60f960329ae3c954d86d8729a374e254eb0cd0eff01172"


def check(data: bytes) -> None:
    """Raise ValueError unless the bytes are the whole table, in its order."""
    try:
        table = pd.read_csv(BytesIO(data), usecols=list(TABLE))[list(TABLE)]
    except ValueError as error:
        raise ValueError(f"the table does not have the columns {', '.join(TABLE)}: {error}") from error
    if len(table) != STATE_ROWS:
        raise ValueError(f"the table has {len(table)} rows; California in 2018 has {STATE_ROWS} that qualify")
    if known_digest(table.iloc[list(KNOWN_ROWS)]) != KNOWN_SHA256:
        raise ValueError("the table has the right length but not the rows that are known of it")


def known_digest(rows: pd.DataFrame) -> str:
    """Return a checksum of rows' values in the order of TABLE."""
    return hashlib.sha256(rows[list(TABLE)].to_numpy("<i8").tobytes()).hexdigest()
