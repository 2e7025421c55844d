"""Check a table before anything is fitted: roles and types of columns, and all problems at once."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from frhsic._arrays import LARGEST_NUMBER
from frhsic.tables.attributes import attribute, band
from frhsic.tables.cells import (
    AS_NUMBERS,
    FEW_WORDS,
    are_percentages,
    plain_cells,
    readable_numbers,
    require_numbers,
    text_problems,
)
from frhsic.tables.codes import (
    clipped_problems,
    missing_option,
    number_problems,
    reads_missing,
    replace_option,
    unit_problems,
)
from frhsic.tables.columns import (
    MOST_ENCODED_LEVELS,
    absent_values,
    examples,
    fold_text,
    is_text,
    mask_codes,
    missing_codes,
    parse_replacements,
    quote_names,
    repeated_rows,
    replace_values,
    require_moderate,
    require_present,
    to_pandas,
    unify_spelling,
)
from frhsic.tables.dates import mixed_dates, spreadsheet_problems, unreadable_problem
from frhsic.tables.features import (
    class_leaks,
    feature_problems,
    joint_problems,
    late_attribute_problems,
    late_problems,
    later_date_problems,
    many_levels_problems,
    one_sided_problems,
    row_weight_problems,
    strong_features,
    weight_problems,
)
from frhsic.tables.identifiers import (
    ALIKE,
    contradicted_people,
    contradicted_targets,
    filled_by_class,
    group_problems,
    identifier_problem,
    identifiers,
    is_decimal_text,
    is_index,
    panel_problems,
    repeated_phrase,
    repeated_problem,
    unit_keys,
)
from frhsic.tables.leaks import LEAST_IN_CLASS
from frhsic.tables.problems import (
    LEAST_SUSPECTED_ROWS,
    TARGET_LABELS,
    UNREAD,
    UNREAD_NUMBERS,
    Problem,
    option_text,
)
from frhsic.tables.roles import ColumnRoles
from frhsic.tables.schema import (
    DATE,
    SHORT_DATE,
    ColumnType,
    Schema,
    converted_numbers,
)
from frhsic.tables.settling import (
    Answers,
    is_unclear,
    not_dropped,
    settle_dropped,
    settled_answers,
    settled_attributes,
    settled_features,
    sort_problems,
)
from frhsic.tables.targets import (
    abbreviations,
    class_problems,
    label_problems,
    merge_labels,
    number_target_problems,
    other_label_problems,
    positive_labels,
    rarest_label,
    read_target,
)

# Standard errors by which the mean targets of rows with and without an attribute must differ.
LACKING_ERRORS = 4


@dataclass(eq=False)
class TableCheck:
    """The columns of a table with their types, and the problems found while reading them.

    Columns that cannot be read are an error, and missing from `table` and `schema`.

    Attributes
    ----------
    cells
        Values as they were read.
    decimal
        Decimal sign of a text file, None for a table whose columns have types.
    repeats
        Returns which rows repeat an earlier one of the file in all columns but those given.
    """

    cells: pd.DataFrame
    decimal: str | None
    table: pd.DataFrame
    schema: Schema
    repeats: Callable[[Sequence[str]], np.ndarray]
    problems: list[Problem] = field(default_factory=list)

    @classmethod
    def from_cells(
        cls,
        cells: pd.DataFrame,
        *,
        decimal: str | None = None,
        separator: str = "",
        date_format: str = "",
        missing: dict[str, tuple[str, ...]] | None = None,
        repeats: Callable[[Sequence[str]], np.ndarray] | None = None,
    ) -> TableCheck:
        """Learn the schema of a table and read its columns with it."""
        whole = Schema((), decimal or ".", separator, missing=missing or {})
        repeats = repeats or (lambda names: repeated_rows(cells.drop(columns=list(names))))
        check = cls(cells, decimal, pd.DataFrame(index=cells.index), whole, repeats)
        columns = {}
        types: list[ColumnType] = []
        for name in cells.columns.astype(str):
            column = cells[[name]]
            try:
                sign = decimal
                if decimal is None and is_text(cells[name]):
                    column = unify_spelling(cells[name])[0].to_frame()
                    sign = "." if are_percentages(cells[name]) else None
                learned = Schema.learn(column, decimal=sign, date_format=date_format)
                columns[name] = replace(whole, columns=learned.columns)(column)[name]
                types += learned.columns
            except (ValueError, TypeError) as error:
                check.problems.append(unreadable_problem(cells[name], error, date_format))
        check.table = pd.DataFrame(columns, cells.index)
        check.schema = replace(whole, columns=tuple(types))
        return check

    @contextmanager
    def errors(self, kind: str, name: str, option: str = "") -> Iterator[None]:
        """Add the error of a column to the problems, and continue."""
        try:
            yield
        except (ValueError, TypeError) as error:
            self.problems.append(Problem(kind, str(error), (name,), None, "error", option))

    @property
    def sorted_problems(self) -> list[Problem]:
        """The problems, errors first and those that were handled last."""
        return sort_problems(self.problems)

    def find_attributes(self, names: Sequence[str]) -> pd.DataFrame:
        """Return sensitive attributes as numbers, without those that cannot be used."""
        attributes = {}
        for name in [name for name in names if name in self.table]:
            words = f"sensitive attribute {name!r}"
            numbers = self._numbers_among_words(name)
            if numbers is not None:
                bare = self.cells[name][numbers.index].str.strip()
                dates = converted_numbers(bare, self.decimal or ".")
                wrong = bare[numbers.isna()].drop(dates.index)
                if rows := len(wrong):
                    text = f"{words} is not numeric: {examples(wrong)}. {AS_NUMBERS}"
                    option = missing_option(name, wrong.unique().tolist())
                    self.problems.append(Problem("attribute", text, (name,), rows, "error", option))
                numbers = mask_codes(numbers, self.schema.missing.get(name, ()))
                attributes[name] = numbers.reindex(self.table.index)
                continue
            with self.errors("attribute", name):
                if is_text(self.table[name]) and self.table[name].dropna().map(band).isna().any():
                    require_numbers(self.cells[name], self.decimal, words)
                values, note = attribute(self.table[name], words)
                require_moderate(self.table[name], values, words)
                column = pd.DataFrame({name: values}, self.table.index)
                check_varies(column, "every row, so nothing can depend on it")
                attributes[name] = column[name]
                if note is None:
                    self.problems += text_problems(
                        self.cells, self.schema.select([name]), self.decimal
                    )
                    self.problems += number_problems(column[name])
                else:
                    self.problems.append(Problem("bands", note, (name,), certainty="certain"))
                    if is_text(self.table[name]):
                        self.problems += self._plain_number_problems(name)
                if missing := int(column[name].isna().sum()):
                    text = (
                        f"{name!r} is missing in {missing:,} of {len(column):,} rows, which"
                        f" {'is' if missing == 1 else 'are'} left out when gaps are measured."
                    )
                    self.problems.append(Problem("missing", text, (name,), missing, "certain"))
        return pd.DataFrame(attributes, self.table.index)

    def _numbers_among_words(self, name: str) -> pd.Series[Any] | None:
        """Return the numbers of an attribute if only a few words, words for missing values, or
        dates prevent it from being read as numbers or bands, with NaN in their place; else None.
        """
        if not is_text(self.table[name]):
            return None
        with contextlib.suppress(ValueError, TypeError):  # bands
            attribute(self.table[name], name)
            return None
        numbers = readable_numbers(self.cells[name], self.decimal or ".").rename(name)
        bare = self.cells[name][numbers.index].str.strip()
        bands = bare.map(band).notna()
        plain = plain_cells(bare)
        texts = bare.str.replace(",", ".")
        written = texts.isin(plain) & ~bands
        if not (numbers.isna() & bands).any():  # a unit can be read, but not beside bands
            written &= numbers.isna()
        wrong = numbers.isna() & ~bands & ~written
        if wrong.all() or not (wrong | written).any():
            return None
        dates = bare.str.fullmatch(f"{SHORT_DATE}|{DATE}", case=False)
        odd = bare[wrong & ~bare.map(reads_missing) & ~dates]
        if len(odd) > FEW_WORDS * len(numbers):
            return None
        if written.any():
            text = (
                f"sensitive attribute {name!r} is not numeric: {examples(bare[written])}. Replace"
                " them with numbers."
            )
            digits = {cell: plain[cell] for cell in texts[written].unique()}
            option = replace_option(name, digits)
            rows = int(written.sum())
            self.problems.append(Problem("attribute", text, (name,), rows, "error", option))
            bare = bare.mask(written, texts.map(digits))
            numbers = readable_numbers(bare, self.decimal or ".").rename(name)
        for problem in spreadsheet_problems(bare, self.decimal or "."):
            error = problem.certainty == "likely"
            self.problems.append(replace(problem, certainty="error") if error else problem)
        self.problems += self._plain_number_problems(name)
        if (numbers.isna() & ~wrong).any():
            numbers[~wrong], note = attribute(bare[~wrong], f"sensitive attribute {name!r}")
            self.problems.append(Problem("bands", str(note), (name,), certainty="certain"))
        return numbers

    def _plain_number_problems(self, name: str) -> Iterator[Problem]:
        """Yield problems of the numbers of an attribute that are not bands or words."""
        numbers = readable_numbers(self.cells[name], self.decimal or ".").rename(name)
        yield from number_problems(mask_codes(numbers.dropna(), self.schema.missing.get(name, ())))

    def find_target(
        self, name: str, positive: object = None
    ) -> tuple[np.ndarray, np.ndarray | None] | None:
        """Return the codes and classes of a target, or None if it cannot be used."""
        if name not in self.table:
            return None
        column = self.table[name]
        present = column.notna()
        for problem in self._target_problems(column, positive):
            rest = mask_codes(column, problem.values).dropna()
            if rest.nunique() < 2:
                continue
            if problem.values and positive is None and rest.nunique() == 2 and is_unclear(rest):
                option = option_text("positive", rest.value_counts().index[-1])
                text = f"{problem.text} Specify which of the two remaining labels counts as 1."
                problem = replace(problem, text=text, option=f"{problem.option} {option}")
            self.problems.append(problem)
        unread = {p.kind for p in self.problems if p.columns == (name,) and p.certainty == "error"}
        if "target" in unread:  # the numbers are examined as if the other cells were missing
            numbers = readable_numbers(self.cells[name], self.decimal or ".")
            column = numbers.reindex(column.index).rename(name)
            self.table[name] = column
            present = column.notna()
        rarest = rarest_label(column[present]) if positive is None and is_text(column) else None
        option = "" if rarest is None else option_text("positive", rarest)
        with self.errors("target", name, option):
            codes, classes, notes = read_target(column[present], positive)
            require_moderate(column[present], codes, f"target {name!r}")
            self.problems += [Problem("target", note, (name,), None, "certain") for note in notes]
            two = classes is not None and len(classes) == 2
            merged = merge_labels(column[present])[0]
            if is_text(column):
                alike = [*label_problems(merged, codes if two else None)]
                rest = merged.replace(abbreviations(merged.unique().tolist()) if alike else {})
                if alike and positive is None and rest.nunique() == 2 and is_unclear(rest):
                    option = option_text("positive", str(rarest_label(rest)))
                    alike[-1] = replace(alike[-1], option=f"{alike[-1].option} {option}")
                self.problems += alike
            if two and len(positive_labels(positive, merged)) == 1:
                self.problems += other_label_problems(merged, codes)
            if classes is None:
                self.problems += [*number_problems(column), *number_target_problems(column)]
            answers = settled_answers(column, self.problems, positive)
            if answers is not None and answers.classes is not None:
                self.problems += class_problems(answers.codes, answers.classes, name)
            return codes, classes
        return None

    def _target_problems(self, column: pd.Series[Any], positive: object) -> Iterator[Problem]:
        """Yield problems of the cells of a target. Labels can be outcomes, so whether they mean
        numbers or missing values is only asked, and not asked of those that are the positive ones;
        text with too many labels for classes is meant as numbers, so other cells are errors.
        """
        name = str(column.name)
        labels = {*map(fold_text, positive_labels(positive, column.dropna().unique()))}
        problems = [*text_problems(self.cells, self.schema.select([name]), self.decimal)]
        if positive is not None and is_text(column):
            cells = self.cells[name].dropna().str.strip()
            dates = cells.str.fullmatch(SHORT_DATE, case=False)
            problems = [p for p in problems if p.values or p.certainty == "certain"]
            problems += spreadsheet_problems(
                cells[~(dates & cells.map(fold_text).isin(labels))], self.decimal or "."
            )
        classes = positive is not None or rarest_label(column.dropna()) is not None
        for problem in problems:
            if problem.kind == "ranges" or labels & {*map(fold_text, problem.values)}:
                continue
            words = all(map(reads_missing, problem.values))  # or none: cells that are not numbers
            if not is_text(column) or problem.certainty == "certain" or not words:
                yield problem
                continue
            option = "" if "--drop" in problem.option else problem.option
            if classes or problem.values:
                # a word may be an answer: whoever refuses doesn't pay
                yield replace(problem, kind=TARGET_LABELS, certainty="possible", option=option)
            elif problem.kind in UNREAD_NUMBERS and problem.certainty == "likely":
                yield replace(problem, kind="target", certainty="error", option=option)
            else:
                yield replace(problem, option=option)

    def find_features(
        self,
        names: Sequence[str],
        asked: Sequence[str] = (),
        groups: str | None = None,
        answers: Answers | None = None,
    ) -> list[str]:
        """Return the features to train on, without identifiers that were not requested and columns
        without values; `groups` also identifies rows if it has many values.
        """
        kinds = self.schema.kinds
        for i, problem in enumerate(self.problems):
            if problem.kind == "unreadable" and not problem.option and problem.columns[0] in names:
                option = option_text("drop", problem.columns[0])
                self.problems[i] = replace(problem, option=option)
        names = [name for name in names if name in kinds]
        counting = identifiers(self.table[names])
        # an identifier with repeated values is that of people
        numbering = [
            name
            for name in names
            if name not in asked
            and is_index(self.table[name])
            and not (name in counting and self.table[name].is_unique)
        ]
        empty = [name for name in names if kinds[name] == "empty"]
        ids = [
            name
            for name in names
            if (kinds[name] == "identifier" or name in counting)
            and name not in (*numbering, *asked)
        ]
        constant = [
            name
            for name in names
            if name not in {*empty, *ids, *numbering, *asked}
            and self.table[name].notna().all()
            and self.table[name].nunique() == 1
        ]
        kept = [name for name in names if name not in {*empty, *ids, *numbering, *constant}]
        self.problems += text_problems(self.cells, self.schema.select(names), self.decimal)
        self.problems += clipped_problems(self.table[kept])
        self.problems += weight_problems(self.table[kept])
        for name in kept:
            if kinds[name] == "text":
                self.problems += label_problems(self.table[name], only_short=True)
        for name in kept:
            if kinds[name] == "number":
                self.problems += number_problems(self.table[name])
        if empty:
            verbs = ("has", "is") if len(empty) == 1 else ("have", "are")
            text = f"{quote_names(empty)} {verbs[0]} no value in any row and {verbs[1]} left out."
            self.problems.append(Problem("empty", text, tuple(empty), None, "certain"))
        if constant:
            verb = "is" if len(constant) == 1 else "are"
            text = f"{quote_names(constant)} {verb} the same in every row and {verb} left out."
            self.problems.append(Problem("constant", text, tuple(constant), None, "certain"))
        for name in numbering:
            text = f"{name!r} seems to number the rows and is left out."
            self.problems.append(Problem("identifier", text, (name,), certainty="certain"))
        repeats = self.repeats(())
        self.problems += self._identifier_problems(ids, ~repeats, groups, answers)
        keys = [*ids, *numbering]
        if groups is not None and self.cells[groups].nunique() > MOST_ENCODED_LEVELS:
            keys.append(groups)
        if keys and (repeated := int(repeats.sum())):
            harm = "the model is evaluated on rows that it was trained on"
            if groups is not None:
                harm = "they count several times"
            text = (
                f"{repeated_phrase(repeated, len(self.table))} in every column, even"
                f" {quote_names(keys)}. Leave out repeated rows; otherwise {harm}."
            )
            self.problems.append(
                Problem("repeated rows", text, tuple(keys), repeated, option="--drop-repeated")
            )
        if not kept:
            text = "No column is left to predict from except the target and the attributes."
            self.problems.append(Problem("no features", text, (), None, "error"))
        return kept

    def _identifier_problems(
        self, ids: Sequence[str], different: np.ndarray, groups: str | None, answers: Answers | None
    ) -> Iterator[Problem]:
        """Yield a problem for each identifier: a leak if it is filled for some classes only; groups
        if people have several rows, unless there are groups already or larger ones.
        """
        people = []
        for name in ids:
            if is_decimal_text(self.table[name]):
                continue
            leak: list[Problem] = []
            if answers is not None and answers.classes is not None:
                own = self.table.loc[answers.known, name]
                leak = [*filled_by_class(own, answers.codes, answers.classes)]
            problem = identifier_problem(self.table[name][different], left_out=True)
            if leak or problem.kind == "identifier":
                yield from leak or [problem]
            else:
                people.append(problem)
        people = sorted(people, key=lambda each: unit_keys(self.table[each.columns[0]]).nunique())
        if groups is None:
            yield from people[:1]
            people = people[1:]
        for each in people:
            name = each.columns[0]
            text = f"{name!r} seems to identify people or other units and is left out."
            yield Problem("identifier", text, (name,), certainty="certain")

    def examine(self, roles: ColumnRoles, names: Sequence[str]) -> Examined:
        """Read attributes, target and features, and look for problems in all of them."""
        s = self.find_attributes(roles.sensitive)
        clean = settled_attributes(s, self.problems)  # codes would hide repeated rows
        outcome = self.find_target(roles.target, roles.positive) if roles.target else None
        answers = None
        if roles.target is not None and roles.target in self.table:
            target = self.table[roles.target]
            answers = settled_answers(target, self.problems, roles.positive)
            answers = answers or settled_answers(target, self.problems)
        kept = self.find_features(names, roles.features or (), roles.groups, answers)
        if roles.groups in self.cells:
            self.problems += group_problems(self.cells[roles.groups])
        if roles.weights in self.table:
            self.problems += row_weight_problems(self.table[roles.weights])
        repeated = any(problem.kind == "repeated identifier" for problem in self.problems)
        if roles.groups is None and not repeated:
            others = [name for name in kept if name not in (roles.features or ())]
            self.problems += panel_problems(self.table[[*others, *s]])
        people = {p.columns[0] for p in self.problems if p.kind == "repeated identifier"}
        for name in sorted({*people, str(roles.groups)} & {*self.table}):
            facts = self.table[kept].join(clean)
            self.problems += contradicted_people(facts, self.table[name])
        lost = [name for name in names if name not in self.table]  # cells that cannot be read
        if rest := [name for name in (*kept, *lost) if name not in people]:
            cells = {
                name: self.table[name] if name in self.table else mixed_dates(self.cells[name])
                for name in rest
            }
            table = settled_features(pd.DataFrame(cells), self.problems)
            known = np.ones(len(self.table), dtype=bool)
            codes = None
            classes = None
            count = 0
            if answers is not None:
                known = answers.known
                codes = answers.codes
                classes = answers.classes
                count = 0 if classes is None else len(classes)
                self._warn_of_lacking(clean[known], codes, classes)
                if np.abs(codes).max(initial=0.0) > LARGEST_NUMBER:
                    codes = None  # the target has an error, so columns can't be compared with it
            if people and codes is not None:  # rows without an identifier are left out
                present = self.table.loc[known, [*people]].notna().all(axis=1).to_numpy()
                known = np.flatnonzero(known)[present]
                codes = codes[present]
            self.problems += unit_problems(table.join(clean))
            if codes is not None:
                self.problems += late_problems(table, str(roles.target))
                everything = table.join(clean).iloc[known]
                self.problems += contradicted_targets(everything, codes, str(roles.target))
            known_late = {*rest} - {*not_dropped(rest, self.problems)}
            kinds = {problem.kind for problem in self.problems}
            for problem in feature_problems(table.iloc[known], codes, count, clean.iloc[known]):
                if problem.kind == "repeated rows":
                    if problem.kind not in kinds:
                        self.problems += self._repeated_but_identifiers()
                elif problem.kind == "leak" and known_late.issuperset(problem.columns):
                    continue
                elif "identifier" not in problem.kind:  # identifiers were requested
                    self.problems.append(problem)
            for name in map(str, clean):
                facts = table[not_dropped(rest, self.problems)]
                self.problems += late_attribute_problems(facts, clean[name].to_numpy(), name)
            if codes is not None and len(codes) >= LEAST_SUSPECTED_ROWS:
                if classes is not None and count > 2:
                    facts = table[not_dropped(rest, self.problems)].iloc[known]
                    self.problems += class_leaks(facts, codes, classes)
                self.problems += later_date_problems(table[not_dropped(rest, self.problems)])
                searches = [strong_features, joint_problems]
                if count:
                    searches.insert(0, one_sided_problems)
                for search in searches:
                    asked = table[not_dropped(rest, self.problems)].iloc[known]
                    if search is not joint_problems:
                        leaks = [problem for problem in self.problems if problem.kind == "leak"]
                        named = [name for problem in leaks for name in problem.columns]
                        asked = asked.drop(columns=named, errors="ignore")
                    self.problems += search(asked, codes, count)
        known_otherwise = (*UNREAD, "repeated identifier")
        nearly = {p.columns[0] for p in self.problems if p.kind in known_otherwise}
        words = [name for name in kept if name not in {*(roles.features or ()), *nearly}]
        self.problems += many_levels_problems(self.table[not_dropped(words, self.problems)])
        dropped = {*names} - {*not_dropped(names, self.problems)}
        self.problems = settle_dropped(self.problems, dropped)
        target_codes, target_classes = outcome or (None, None)
        return Examined(s, target_codes, target_classes, kept)

    def _repeated_but_identifiers(self) -> Iterator[Problem]:
        """Yield the rows that repeat an earlier one of the file in all but the identifiers."""
        ids = [
            problem.columns[0]
            for problem in self.problems
            if problem.kind in ("identifier", "repeated identifier")
            and problem.columns[0] in self.cells
        ]
        repeated = int(self.repeats(ids).sum())
        if repeated >= max(LEAST_IN_CLASS, (1 - ALIKE) * len(self.table)):
            yield repeated_problem(repeated, len(self.table), ids)

    def _warn_of_lacking(
        self, s: pd.DataFrame, codes: np.ndarray, classes: np.ndarray | None
    ) -> None:
        """Add attributes whose missing rows differ from the others in their target."""
        if classes is not None and len(classes) > 2:
            return
        for name in map(str, s):
            lacking = s[name].isna().to_numpy()
            parts = codes[lacking], codes[~lacking]
            if min(map(len, parts)) < LEAST_SUSPECTED_ROWS:
                continue
            error = math.sqrt(sum(part.var() / len(part) for part in parts))
            without, rest = (float(part.mean()) for part in parts)
            if abs(without - rest) > LACKING_ERRORS * error:
                what = "mean target" if classes is None else f"share of {str(classes[1])!r}"
                text = (
                    f"Rows without {name!r} differ from the others in their target: their {what} is"
                    f" {without:.3g}, compared with {rest:.3g}. Only rows with {name!r} are used to"
                    " evaluate the model, so the evaluation does not cover all."
                )
                self.problems.append(
                    Problem("missing attribute", text, (name,), int(lacking.sum()), "certain")
                )


@dataclass(frozen=True, eq=False)
class Examined:
    """Sensitive attributes as numbers, codes and classes of the target, and the usable features to
    train on.
    """

    s: pd.DataFrame
    codes: np.ndarray | None
    classes: np.ndarray | None
    features: list[str]


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

    The only model that is fitted is a linear one, on at most 2,000 rows, which shows whether
    several columns give the target away together.

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
        Each has a `kind`, a `text`, the affected `columns` and number of `rows`, its `certainty`,
        and the command-line `option` that resolves it.

    Examples
    --------
    >>> people = pd.DataFrame({"age": [-9.0] * 4 + [*range(20, 80)] * 2, "paid": [0, 1] * 62})
    >>> people["town"] = (["Bern", "Basel", "Biel"] * 42)[:124]
    >>> problem, *_ = check(people, "paid", "age")
    >>> problem.text, problem.option
    ("−9 occurs 4 times in 'age' (next value: 20). ...", '--missing age=-9')
    """
    table = to_pandas(frame)
    sensitive = [sensitive] if isinstance(sensitive, str) else list(sensitive)
    roles = ColumnRoles(target, sensitive, positive, features, drop, groups=groups, weights=weights)
    names = roles.find_features(list(table.columns), "the table")
    new = parse_replacements(replace, list(table.columns))
    require_present(
        {name: absent_values(table[name], own) for name, own in new.items()}, "the table"
    )
    table = table.assign(**{name: replace_values(table[name], own) for name, own in new.items()})
    used = table[roles.columns(names)]
    codes = missing_codes(missing, list(used.columns))
    found = TableCheck.from_cells(used, missing=codes)
    found.examine(roles, names)
    return tuple(found.sorted_problems)


def check_varies(s: pd.DataFrame, where: str) -> None:
    """Raise if a sensitive attribute has no value, or the same value in all rows."""
    for name in s:
        if s[name].nunique() < 2:
            value = "missing" if s[name].isna().all() else f"{s[name].min():g}"
            raise ValueError(f"sensitive attribute {name!r} is {value} in {where}.")
