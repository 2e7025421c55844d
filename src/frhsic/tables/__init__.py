"""Tables of any kind: read files, find the kinds of columns, say what is wrong, and encode as numbers.

Estimators, datasets and the command line take in tables by these functions and no others.
"""

from frhsic.tables.columns import (
    MISSING_MARKS,
    MOST_LEVELS,
    Advice,
    Kind,
    find_kinds,
    kind_of,
    numbers,
    to_pandas,
    typed,
)
from frhsic.tables.encoding import (
    Category,
    Number,
    TableEncoding,
    Unknown,
    column_from_json,
    column_to_json,
)
from frhsic.tables.files import ReadOptions, Reservoir, column_names, pieces, read_frame, read_sample
from frhsic.tables.names import check_distinct, closest, expand, find, nearest
from frhsic.tables.numeric import Derived, NumericTable, read_numbers
from frhsic.tables.targets import Target, Task, read_target
from frhsic.tables.training import ColumnRoles, TrainingTable, read_training_table

__all__ = [
    "MISSING_MARKS",
    "MOST_LEVELS",
    "Advice",
    "Category",
    "ColumnRoles",
    "Derived",
    "Kind",
    "Number",
    "NumericTable",
    "ReadOptions",
    "Reservoir",
    "TableEncoding",
    "Target",
    "Task",
    "TrainingTable",
    "Unknown",
    "check_distinct",
    "closest",
    "column_from_json",
    "column_names",
    "column_to_json",
    "expand",
    "find",
    "find_kinds",
    "kind_of",
    "nearest",
    "numbers",
    "pieces",
    "read_frame",
    "read_numbers",
    "read_sample",
    "read_target",
    "read_training_table",
    "to_pandas",
    "typed",
]
