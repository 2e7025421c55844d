"""Ten real tables with a target and a sensitive attribute, each in the variant of the paper's text
and as published.
"""

from frhsic.datasets.catalogue import load_dataset
from frhsic.datasets.dataset import Dataset, Feature, Split
from frhsic.datasets.sources import DatasetUnavailableError, cache_dir

__all__ = [
    "Dataset",
    "DatasetUnavailableError",
    "Feature",
    "Split",
    "cache_dir",
    "load_dataset",
]
