"""Tables with a target and a sensitive attribute: five real ones, made ones with known answers, and your own."""

from frhsic.datasets._dataset import Column, Dataset
from frhsic.datasets._split import Part, Scale, Split
from frhsic.datasets.frames import from_file, from_frame
from frhsic.datasets.loading import ENTRIES, Fetched, fetch, load_dataset, place
from frhsic.datasets.sources import DatasetUnavailableError, WheelShelf, cache_dir

__all__ = [
    "ENTRIES",
    "Column",
    "Dataset",
    "DatasetUnavailableError",
    "Fetched",
    "Part",
    "Scale",
    "Split",
    "WheelShelf",
    "cache_dir",
    "fetch",
    "from_file",
    "from_frame",
    "load_dataset",
    "place",
]
