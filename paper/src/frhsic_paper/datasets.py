"""The paper's five tables, under either protocol.

The corrected tables are those of :func:`frhsic.datasets.load_dataset`. The published ones have the
rows, columns and sensitive attribute from which the printed numbers were computed, including
mistakes; ``README.md`` compares them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from io import BytesIO

import pandas as pd

from frhsic.datasets import Dataset, load_dataset
from frhsic.datasets.catalogue import (
    CATALOGUE,
    Content,
    Facts,
    entry,
    high_income,
    make_dataset,
    many_visits,
    read_acs_income,
    read_adult,
    read_compas,
    read_crime,
    select_content,
)
from frhsic.datasets.sources import obtain
from frhsic_paper.protocol import Protocol


def load_variant(name: str, protocol: Protocol) -> Dataset:
    """Load the protocol's variant of a dataset.

    Hashes that identify records include this function's name.
    """
    return load_dataset(name) if protocol.variant == "corrected" else load_published(name)


def load_published(name: str) -> Dataset:
    """Load a dataset as it was used for the printed numbers."""
    described = entry(name)
    if described.name not in READERS:
        raise ValueError(
            f"the paper does not use {name}, so there is no published table of it; choose"
            " another dataset."
        )
    obtained = obtain(described.files)
    content = READERS[described.name](CATALOGUE[described.name]["table"], obtained.data)
    return make_dataset(described, obtained, content)


def protect(data: Dataset, *names: str) -> Dataset:
    """Return the same rows with exactly the given columns as sensitive attributes.

    They are removed from X; a sensitive attribute that is not named becomes a feature.

    Examples
    --------
    >>> data = Dataset(
    ...     "toy",
    ...     pd.DataFrame({"hours": [40.0, 20.0], "score": [1.0, 0.0]}),
    ...     pd.Series([1, 0]),
    ...     pd.Series([30.0, 50.0], name="age"),
    ...     "binary",
    ... )
    >>> moved = protect(data, "age", "hours")
    >>> moved.attributes, list(moved.X)
    (('age', 'hours'), ['score'])
    """
    everything = pd.concat([pd.DataFrame(data.s), data.X], axis=1)
    return replace(
        data,
        X=everything.drop(columns=list(names)),
        s=everything[names[0]] if len(names) == 1 else everything[list(names)],
    )


def _adult(facts: Facts, data: bytes) -> Content:
    """Return all rows of Adult, with "?" as its own level."""
    frame = read_adult(facts, data)
    return select_content(facts, frame, high_income(frame))


COMPAS_DAYS = ("days_b_screening_arrest", "c_days_from_compas")


def _compas(facts: Facts, data: bytes) -> Content:
    """Return COMPAS with two day counts that the paper's text doesn't list."""
    numeric = " ".join([facts["numeric"], *COMPAS_DAYS])
    dropped = [reason for reason in facts["dropped"] if COMPAS_DAYS[0] not in reason]
    return read_compas(facts | {"numeric": numeric, "dropped": dropped}, data)


def _crime(facts: Facts, data: bytes) -> Content:
    """Return Crime with the column next to the intended attribute as s, imputed using all rows."""
    content = read_crime(facts | {"attribute": "householdsize"}, data)
    X = content.frame
    imputed = (
        f"{int(X.isna().to_numpy().sum())} missing value was replaced by the median over all rows,"
        " test rows included."
    )
    # drops the last reason, which says that the value stays missing
    return replace(content, frame=X.fillna(X.median()), dropped=[*content.dropped[:-1], imputed])


MEPS_FEATURES = (
    "SEX RACEV1X MARRY31X EDUCYR REGION31 POVCAT15 INSCOV15 DIABDX ARTHDX ASTHDX CANCERDX MIDX"
    " STRKDX HIBPDX CHDDX ANGIDX OHRTDX TTLP15X FAMINC15"
)


def _meps(facts: Facts, data: bytes) -> Content:
    """Return the complete rows of both panels of MEPS, with codes as numbers."""
    features, age = MEPS_FEATURES.split(), facts["attribute"]
    used = {*features, *facts["visits"].split(), age, "PANEL"}
    frame = pd.read_csv(BytesIO(data), usecols=sorted(used))
    complete = (frame[[*features, age]] >= 0).all(axis=1)
    incomplete = (
        f"{int((~complete).sum())} rows with a negative value in a feature or in age: codes of"
        " missing answers, and incomes that really were negative."
    )
    frame = frame[complete].reset_index(drop=True)
    panels = frame["PANEL"].value_counts()
    source = (
        f"MEPS HC-181, Agency for Healthcare Research and Quality; {panels.get(19, 0)} rows are"
        f" of Panel 19 and {panels.get(20, 0)} of Panel 20."
    )
    published = {
        "source": source,
        "attribute": age,
        "numeric": MEPS_FEATURES,
        "dropped": facts["dropped"][:1],  # the attribute; the others are of Panel 19
    }
    return select_content(published, frame, many_visits(facts, frame), incomplete)


READERS: dict[str, Callable[[Facts, bytes], Content]] = {
    "acs_income": read_acs_income,
    "adult": _adult,
    "compas": _compas,
    "crime": _crime,
    "meps": _meps,
}
