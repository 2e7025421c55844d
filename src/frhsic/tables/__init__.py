"""Tables of any kind: read files, find the kinds of columns, say what is wrong, and encode as numbers.

Estimators, datasets and the command line take in tables by these functions and no others.
"""

from frhsic.tables.columns import Advice, Kind, find_kinds, is_frame, kind_of, numbers, to_pandas
from frhsic.tables.dialect import ReadOptions
from frhsic.tables.encoding import Category, TableEncoding
from frhsic.tables.files import Derived, Rows, column_names, read_frame, read_rows
from frhsic.tables.names import check_distinct, common_name, expand, find
from frhsic.tables.numeric import NumericTable, read_numbers
from frhsic.tables.roles import ColumnRoles
from frhsic.tables.scales import Number, Quantiles, Robust, Scaling
from frhsic.tables.sensitive import BandedAttributeWarning, Sensitive, read_sensitive
from frhsic.tables.suspicions import SuspiciousColumnWarning, suspicions
from frhsic.tables.targets import Target, Task, read_target
from frhsic.tables.training import TrainingTable, read_training_table

__all__ = [
    "Advice",
    "BandedAttributeWarning",
    "Category",
    "ColumnRoles",
    "Derived",
    "Kind",
    "Number",
    "NumericTable",
    "Quantiles",
    "ReadOptions",
    "Robust",
    "Rows",
    "Scaling",
    "Sensitive",
    "SuspiciousColumnWarning",
    "TableEncoding",
    "Target",
    "Task",
    "TrainingTable",
    "check_distinct",
    "column_names",
    "common_name",
    "expand",
    "find",
    "find_kinds",
    "is_frame",
    "kind_of",
    "numbers",
    "read_frame",
    "read_numbers",
    "read_rows",
    "read_sensitive",
    "read_target",
    "read_training_table",
    "suspicions",
    "to_pandas",
]
