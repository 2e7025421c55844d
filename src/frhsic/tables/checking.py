"""Check a table before anything is fitted: roles and types of columns, and all problems at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from frhsic.formatting import inflect
from frhsic.tables.cells import text_problems
from frhsic.tables.codes import clipped_problems, number_problems, unit_problems
from frhsic.tables.columns import (
    absent_values,
    list_names,
    missing_codes,
    parse_replacements,
    replace_values,
    require_present,
    to_pandas,
)
from frhsic.tables.features import (
    class_leaks,
    joint_problems,
    late_attribute_problems,
    late_problems,
    later_problems,
    many_levels_problems,
    one_sided_problems,
    row_weight_problems,
    searched_features,
    strong_features,
    weight_problems,
)
from frhsic.tables.identifiers import group_problems
from frhsic.tables.outcomes import find_target, label_problems
from frhsic.tables.people import (
    contradicted_people,
    contradicted_targets,
    identifier_problems,
    panel_problems,
    repeated_row_problems,
)
from frhsic.tables.problems import Problem, settle_dropped
from frhsic.tables.roles import ColumnRoles
from frhsic.tables.sensitive import find_attributes, lacking_problems
from frhsic.tables.view import TableCheck, View


def cell_problems(view: View) -> Iterator[Problem]:
    """Yield problems with the cells of single features."""
    check = view.check
    names = [name for name in view.names if name in view.table]
    yield from text_problems(check.cells, check.schema.select(names), check.decimal)
    yield from clipped_problems(view.table[view.kept])
    yield from weight_problems(view)
    for name in view.kept:
        if check.schema.kinds[name] == "text":
            yield from label_problems(view.table[name], only_short=True)
    for name in view.kept:
        if check.schema.kinds[name] == "number":
            yield from number_problems(view.table[name])


def left_out_notes(view: View) -> Iterator[Problem]:
    """Yield notes on columns without information, and on columns that number the rows."""
    notes = {
        "empty": "[has|have] no value in any row and [is|are] left out.",
        "constant": "[is|are] the same in every row and [is|are] left out.",
    }
    for kind, note in notes.items():
        if names := view.left_out_as(kind):
            text = f"{list_names(names)} {inflect(note, len(names))}"
            yield Problem(kind, text, tuple(names), None, "certain")
    for name in view.left_out_as("number"):
        text = f"{name!r} seems to number the rows and is left out."
        yield Problem("identifier", text, (name,), certainty="certain")


def design_problems(view: View) -> Iterator[Problem]:
    """Yield an error if no feature is left, and problems with the groups and weights of rows."""
    if not view.kept:
        text = (
            "No features are left, only the target and the attributes. Add columns, or drop fewer."
        )
        yield Problem("no features", text, (), None, "error")
    if view.roles.groups in view.check.cells:
        yield from group_problems(view.check.cells[view.roles.groups])
    yield from row_weight_problems(view)


def measured_problems(view: View) -> Iterator[Problem]:
    """Yield columns of numbers whose size depends on a column of units."""
    yield from unit_problems(view.features.join(view.s))


Search = Callable[[View], Iterator[Problem]]

# The searches, in order, since later ones use the problems found by earlier ones: first cells and
# single columns; then, unless no feature is left, what features reveal about the target, attributes
# and rows.
COLUMN_SEARCHES: tuple[Search, ...] = (
    cell_problems,
    left_out_notes,
    identifier_problems,
    repeated_row_problems,
    design_problems,
    panel_problems,
    contradicted_people,
)
FEATURE_SEARCHES: tuple[Search, ...] = (
    lacking_problems,
    measured_problems,
    late_problems,
    contradicted_targets,
    searched_features,
    late_attribute_problems,
    class_leaks,
    later_problems,
    one_sided_problems,
    strong_features,
    joint_problems,
    many_levels_problems,
)


@dataclass(frozen=True, eq=False)
class Examined:
    """Sensitive attributes as numbers; the codes and classes of the target; and the usable
    features.
    """

    s: pd.DataFrame
    codes: np.ndarray | None
    classes: np.ndarray | None
    features: list[str]


def examine(check: TableCheck, roles: ColumnRoles, names: Sequence[str]) -> Examined:
    """Read the attributes, the target and the features, and add their problems to the check."""
    s = find_attributes(check, roles.sensitive)
    outcome = find_target(check, roles.target, roles.positive) if roles.target else None
    view = View(check, roles, names, s)
    _search(COLUMN_SEARCHES, view)
    if view.features.shape[1]:
        _search(FEATURE_SEARCHES, view)
    check.problems = settle_dropped(check.problems, names)
    codes, classes = outcome or (None, None)
    return Examined(s, codes, classes, view.kept)


def _search(searches: Sequence[Search], view: View) -> None:
    for search in searches:
        for problem in search(view):
            view.problems.append(problem)


def check(
    frame: Any,
    target: str | None = None,
    sensitive: str | Sequence[str] = (),
    *,
    positive: object = None,
    features: Sequence[str] | None = None,
    drop: Sequence[str] | None = None,
    groups: str | None = None,
    weights: str | None = None,
    missing: Sequence[str] = (),
    replace: Sequence[str] = (),
) -> tuple[Problem, ...]:
    """Return every problem of a training table, errors first.

    Only a linear model is fitted, on at most 2,000 rows: it shows whether several columns together
    give the target away.

    Parameters
    ----------
    frame
        pandas or polars frame, pyarrow table, or mapping of columns.
    target, sensitive
        Names of the target and of the sensitive attributes.
    positive
        Value of the target that counts as 1, or a list of several.
    features, drop
        Names or patterns of columns to predict from, and of columns to leave out.
    groups, weights
        Names of the columns with groups of rows and with weights.
    missing
        Codes for missing values, such as ``"-9"`` for all columns or ``"age=-9"`` for one.
    replace
        Values to replace, such as ``"sex=M:male,F:female"``.

    Returns
    -------
    tuple of Problem
        Each has a `kind`, a `text`, the affected `columns`, the number of affected `rows`, a
        `certainty`, and the command-line `option` that resolves the problem.

    Examples
    --------
    >>> people = pd.DataFrame({"age": [-9.0] * 4 + [*range(20, 80)] * 2, "paid": [0, 1] * 62})
    >>> people["town"] = (["Bern", "Basel", "Biel"] * 42)[:124]
    >>> problem, *_ = check(people, "paid", "age")
    >>> problem.text, problem.option
    ("−9 occurs 4 times in 'age' (nearest other value: 20). ...", '--missing age=-9')
    """
    table = to_pandas(frame)
    sensitive = [sensitive] if isinstance(sensitive, str) else list(sensitive)
    roles = ColumnRoles(target, sensitive, positive, features, drop, groups=groups, weights=weights)
    names = roles.find_features(list(table.columns), "the table")
    for name, own in parse_replacements(replace, list(table.columns)).items():
        require_present({name: absent_values(table[name], own)}, "the table")
        table = table.assign(**{name: replace_values(table[name], own)})
    used = table[roles.columns(names)]
    codes = missing_codes(missing, list(used.columns))
    found = TableCheck.from_cells(used, missing=codes)
    examine(found, roles, names)
    return tuple(found.sorted_problems)
