"""Ten real datasets with a target and a sensitive attribute."""

from frhsic.datasets.catalogue import load_dataset
from frhsic.datasets.dataset import Dataset
from frhsic.datasets.sources import DatasetUnavailableError

__all__ = ["Dataset", "DatasetUnavailableError", "load_dataset"]
