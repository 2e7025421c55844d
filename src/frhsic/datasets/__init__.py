"""Tables with a target and a sensitive attribute: ten real ones, synthetic ones with known answers, and your own."""

from frhsic.datasets._dataset import Dataset, Feature
from frhsic.datasets._remote import WheelShelf
from frhsic.datasets._split import MinMaxScale, Split, Subset
from frhsic.datasets.frames import from_file, from_frame
from frhsic.datasets.loading import ENTRIES, Fetched, fetch, load_dataset, place
from frhsic.datasets.sources import DatasetUnavailableError, cache_dir

__all__ = [
    "ENTRIES",
    "Dataset",
    "DatasetUnavailableError",
    "Feature",
    "Fetched",
    "MinMaxScale",
    "Split",
    "Subset",
    "WheelShelf",
    "cache_dir",
    "fetch",
    "from_file",
    "from_frame",
    "load_dataset",
    "place",
]
