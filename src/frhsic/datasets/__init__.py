"""Ten real tables with a target and a sensitive attribute, each in the variant of the paper's text and as published."""

from frhsic.datasets.dataset import Dataset, Feature, Split, Subset
from frhsic.datasets.loading import ENTRIES, load_dataset
from frhsic.datasets.sources import DatasetUnavailableError, cache_dir

__all__ = [
    "ENTRIES",
    "Dataset",
    "DatasetUnavailableError",
    "Feature",
    "Split",
    "Subset",
    "cache_dir",
    "load_dataset",
]
