"""Tables of any kind: read files, learn their schema, say what is wrong, and encode as numbers.

Estimators, datasets and the command line take in tables by these functions and no others.
"""

from frhsic.tables.columns import check_distinct, common_name, expand, is_frame, kind_of, numbers, to_pandas
from frhsic.tables.encoding import Category, Number, Quantiles, Robust, TableEncoding
from frhsic.tables.files import ReadOptions, Rows, TableFile, read_rows
from frhsic.tables.schema import Schema
from frhsic.tables.sensitive import BandedAttributeWarning, read_sensitive
from frhsic.tables.suspicions import SuspiciousColumnWarning, suspicions
from frhsic.tables.targets import read_target
from frhsic.tables.training import ColumnRoles, TrainingTable, read_frame, read_training_table

__all__ = [
    "BandedAttributeWarning",
    "Category",
    "ColumnRoles",
    "Number",
    "Quantiles",
    "ReadOptions",
    "Robust",
    "Rows",
    "Schema",
    "SuspiciousColumnWarning",
    "TableEncoding",
    "TableFile",
    "TrainingTable",
    "check_distinct",
    "common_name",
    "expand",
    "is_frame",
    "kind_of",
    "numbers",
    "read_frame",
    "read_rows",
    "read_sensitive",
    "read_target",
    "read_training_table",
    "suspicions",
    "to_pandas",
]
