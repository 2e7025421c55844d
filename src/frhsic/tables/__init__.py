"""Tables of any kind: read files, find the kinds of columns, say what is wrong, and encode as numbers.

Estimators, datasets and the command line take in tables by these functions and no others.
"""

from frhsic.tables.columns import Advice, Kind, find_kinds, kind_of, numbers, to_pandas
from frhsic.tables.encoding import Category, Number, TableEncoding
from frhsic.tables.files import ReadOptions, column_names, read_frame
from frhsic.tables.names import check_distinct, expand, find
from frhsic.tables.numeric import Derived, NumericTable, read_numbers
from frhsic.tables.roles import ColumnRoles
from frhsic.tables.targets import Target, Task, read_target
from frhsic.tables.training import TrainingTable, read_training_table

__all__ = [
    "Advice",
    "Category",
    "ColumnRoles",
    "Derived",
    "Kind",
    "Number",
    "NumericTable",
    "ReadOptions",
    "TableEncoding",
    "Target",
    "Task",
    "TrainingTable",
    "check_distinct",
    "column_names",
    "expand",
    "find",
    "find_kinds",
    "kind_of",
    "numbers",
    "read_frame",
    "read_numbers",
    "read_target",
    "read_training_table",
    "to_pandas",
]
