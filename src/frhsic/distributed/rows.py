"""Rows of a fit in the partitions of a Dask data frame: a sketch of all rows with a random sample,
and the checked rows of one partition as numbers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from frhsic.distributed.parts import KEY_COLUMN, Sample
from frhsic.estimators.constraints import LabelledRows
from frhsic.tables.columns import column_kind, level_text, numbers, plain_level
from frhsic.tables.schema import Schema
from frhsic.tables.targets import positive_labels

# Most distinct text values of a column for which all levels are collected; beyond that, levels come
# from the sample.
MOST_COUNTED_LEVELS = 10_000
# Kinds of columns that may differ between partitions.
MIXED_KINDS = {"number", "boolean"}


@dataclass(frozen=True)
class ColumnFacts:
    """Facts about a column; ``+`` merges the facts about parts of the column.

    Attributes
    ----------
    missing
        Number of missing values.
    kinds
        The kinds of values, each with an example.
    levels
        The distinct values; None if there are many, or if they are not counted.
    """

    missing: int
    kinds: dict[str, Any]
    levels: frozenset[Any] | None

    @classmethod
    def of(cls, column: pd.Series[Any], *, counted: bool) -> ColumnFacts:
        """Summarize a column in one partition, with the levels of text, or of all kinds if
        `counted`.
        """
        filled = column.dropna()
        kinds: dict[str, Any] = {}
        if len(filled):
            kinds[column_kind(filled)] = plain_level(filled.iloc[0])
        values = filled.unique() if counted or "category" in kinds else ()
        return cls(len(column) - len(filled), kinds, _few(frozenset(values)))

    def __add__(self, other: ColumnFacts) -> ColumnFacts:
        levels = None
        if self.levels is not None and other.levels is not None:
            levels = _few(self.levels | other.levels)
        return ColumnFacts(self.missing + other.missing, other.kinds | self.kinds, levels)


def _few(levels: frozenset[Any]) -> frozenset[Any] | None:
    return levels if len(levels) <= MOST_COUNTED_LEVELS else None


class FitSketch(NamedTuple):
    """Summary of the rows of a fit from one pass: their number, the sum of their weights, a summary
    of each column, and a sample.
    """

    rows: int
    weight: float
    columns: dict[str, ColumnFacts]
    sample: Sample

    def check(self, target: str) -> None:
        """Raise an error if a model cannot be fitted to these rows."""
        missing = self.columns[target].missing
        if missing:
            raise ValueError(
                f"the target {target!r} is missing in {missing:,} of {self.rows:,} rows; drop these"
                f" rows with frame.dropna(subset=[{target!r}])."
            )
        for name, column in self.columns.items():
            if len(column.kinds) > 1 and not column.kinds.keys() <= MIXED_KINDS:
                shown = [f"{kind} values such as {one!r}" for kind, one in column.kinds.items()]
                raise TypeError(
                    f"column {name!r} has no common type: its partitions contain"
                    f" {' and '.join(sorted(shown))}. Convert it to a single type, for example with"
                    f" frame.astype({{{name!r}: str}})."
                )

    def known_schema(self, schema: Schema) -> Schema:
        """Return the schema learned from the sample, with the levels that occur in all rows."""
        columns = []
        for column in schema.columns:
            levels = self.columns[column.name].levels
            if column.kind == "text" and levels:
                texts = {level_text(plain_level(level)) for level in levels}
                column = replace(column, levels=tuple(sorted(texts)))
            columns.append(column)
        return replace(schema, columns=tuple(columns))


@dataclass(frozen=True)
class FitColumns:
    """The columns of a frame, by role."""

    features: tuple[str, ...]
    target: str
    sensitive: tuple[str, ...]
    controls: tuple[str, ...]
    groups: str | None
    weights: str | None
    classifies: bool

    def names(self, key: str | None) -> list[str]:
        """Return the names of all columns, including the column that identifies rows."""
        named = (*self.features, self.target, *self.sensitive, self.groups, self.weights, key)
        return list(dict.fromkeys(name for name in named if name is not None))

    def usable(self, table: pd.DataFrame) -> tuple[pd.DataFrame, np.ndarray | None]:
        """Return the rows that have a positive weight, and their weights."""
        if self.weights is None:
            return table, None
        weights = numbers(table[self.weights], f"column {self.weights!r}")
        if not (weights >= 0).all():
            raise ValueError(
                f"column {self.weights!r} has missing or negative weights; pass nonnegative weights"
                " for all rows"
            )
        kept = weights > 0
        return table[kept].reset_index(drop=True), weights[kept]

    def sketch(self, table: pd.DataFrame, most: int, total: int) -> FitSketch | None:
        """Sketch one partition, given the maximum size of the sample and the total number of
        rows.
        """
        table, weights = self.usable(table)
        if not len(table):
            return None
        names = dict.fromkeys([*self.features, self.target, *self.sensitive])
        return FitSketch(
            rows=len(table),
            weight=float(len(table) if weights is None else weights.sum()),
            columns={
                name: ColumnFacts.of(table[name], counted=self.classifies and name == self.target)
                for name in names
            },
            sample=Sample.of(table, most, total),
        )


@dataclass(frozen=True, eq=False)
class BlockPlan:
    """How rows of a frame become rows of a fit: the columns, an estimator with the types of the
    columns, and the number of folds.
    """

    columns: FitColumns
    model: Any
    n_folds: int

    def block(self, table: pd.DataFrame) -> LabelledRows:
        """Return the usable rows as numbers, without the table; the keys of the rows are used as
        groups.
        """
        columns = self.columns
        model = self.model
        table, weights = columns.usable(table)
        keys = table[KEY_COLUMN].to_numpy()
        s = np.column_stack(
            [numbers(table[name], f"column {name!r}") for name in columns.sensitive]
        )
        strata = None
        if model.strata_ is not None:
            strata = model.strata_.codes(table[[*columns.controls]])
        codes = model._coded(table[[*columns.features]], s, strata)
        if model.folds_ is not None:
            fold = model.folds_(codes)
        else:
            fold = (keys % np.uint64(self.n_folds)).astype(np.int64)
        if columns.classifies:
            y = pd.Index(model.classes_).get_indexer(table[columns.target]).astype(np.float64)
            labels = model.classes_[y.astype(np.int64)]
        else:
            y = numbers(table[columns.target], f"column {columns.target!r}")
            labels = y
        return LabelledRows(
            X=None,
            codes=codes,
            s=s,
            names=columns.sensitive,
            weights=weights,
            groups=keys,
            fold=fold,
            seed=model.random_seed_,
            y=y,
            labels=labels,
            numeric=not columns.classifies,
            strata=strata,
            n_strata=1 if strata is None else model.strata_.other + 1,
        )


def join_blocks(blocks: list[LabelledRows]) -> LabelledRows:
    """Return the rows of several blocks, sorted by their keys, so that the order of the blocks does
    not matter.
    """
    arrays: dict[str, Any] = {
        name: np.concatenate([getattr(block, name) for block in blocks])
        for name, values in vars(blocks[0]).items()
        if isinstance(values, np.ndarray)
    }
    return replace(blocks[0], **arrays).at(np.argsort(arrays["groups"], kind="stable"))


def with_codes(
    frame: Any, target: str, known: pd.Series[Any], codes: np.ndarray, positive: object
) -> Any:
    """Return a Dask data frame whose target is coded like the known labels; with two classes,
    `positive` is 1 and everything else 0.
    """
    table = dict(zip(map(level_text, known), codes.tolist()))
    if positive is not None:  # a label may not occur in the known rows
        labels = positive_labels(positive, known.unique())
        table = dict.fromkeys(map(level_text, labels), 1) | table
    types = frame._meta.assign(**{target: np.zeros(0, dtype=np.int64)})
    return frame.map_partitions(_coded, target, table, positive is not None, meta=types)


def _coded(part: pd.DataFrame, target: str, table: dict[str, int], positive: bool) -> pd.DataFrame:
    labels = part[target].map(level_text)
    codes = labels.map(table)
    if positive:
        codes = codes.fillna(0)  # labels other than the positive one
    if codes.isna().any():
        raise ValueError(
            f"the class {labels[codes.isna()].iloc[0]!r} of {target!r} does not occur in the rows"
            " held out for the report. Merge rare classes, or pass --positive."
        )
    return part.assign(**{target: codes.astype(np.int64)})
