"""Rows of a fit in the partitions of a Dask data frame: a sketch of all of them with a random
sample, and the checked rows of one partition as numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from frhsic.distributed.frames import Keys, column_hashes, hash_numbers
from frhsic.estimators.constraints import LabelledRows
from frhsic.tables.columns import column_kind, level_text, numbers, plain_level
from frhsic.tables.schema import Schema

# Most distinct texts of a column that are counted; beyond that, levels come from the sample.
MOST_COUNTED_LEVELS = 10_000
# Rows that partitions send for each row of the sample: those with the smallest hashes.
CANDIDATE_SHARE = 2
# Kinds of columns that may differ between partitions.
MIXED_KINDS = {"number", "boolean"}


@dataclass(frozen=True)
class FitColumns:
    """Columns of a frame by their role, and the seed of the hashes."""

    features: tuple[str, ...]
    target: str
    sensitive: tuple[str, ...]
    controls: tuple[str, ...]
    groups: str | None
    weights: str | None
    key: str | None
    seed: int
    classifies: bool

    @property
    def names(self) -> list[str]:
        """The names of all columns."""
        named = (*self.features, self.target, *self.sensitive, self.groups, self.weights, self.key)
        return list(dict.fromkeys(name for name in named if name is not None))

    def identities(self, part: pd.DataFrame, place: Place) -> Keys:
        """Return an identity for each row: its group, or else its key, or else its position in the
        frame.
        """
        name = self.groups or self.key
        if name is None:
            return np.arange(place.first_row, place.first_row + len(part), dtype=np.uint64)
        column = part[name]
        if column.isna().any():
            raise ValueError(f"column {name!r} has missing values, so their rows have no fold")
        return column_hashes(column)

    def usable_rows(self, part: pd.DataFrame, place: Place) -> tuple[pd.DataFrame, Keys]:
        """Return the rows of a partition that have a positive weight, and their identities."""
        lacking = [name for name in self.names if name not in part.columns]
        if lacking:
            raise ValueError(f"it has no column {lacking[0]!r}; its columns are {[*part.columns]}")
        part = part.reset_index(drop=True)
        identities = self.identities(part, place)
        weights = self.row_weights(part)
        if weights is None or (weights > 0).all():
            return part, identities
        return part[weights > 0].reset_index(drop=True), identities[weights > 0]

    def row_weights(self, part: pd.DataFrame) -> np.ndarray | None:
        """Return the weights of rows."""
        if self.weights is None:
            return None
        weights = numbers(part[self.weights], f"column {self.weights!r}")
        if not (weights >= 0).all():
            raise ValueError(f"column {self.weights!r} has missing or negative weights")
        return weights

    def sample_keys(self, identities: Keys) -> Keys:
        """Return random numbers, of which rows with the smallest are sampled: groups as a whole."""
        return hash_numbers(identities, self.seed + 1)

    def folds(self, identities: Keys, count: int) -> np.ndarray:
        """Return the fold of each row."""
        return (hash_numbers(identities, self.seed) % np.uint64(count)).astype(np.int64)


@dataclass(frozen=True)
class Place:
    """Number of a partition, for messages, and that of its first row in the frame."""

    partition: int
    first_row: int

    @contextmanager
    def named_in_errors(self) -> Iterator[None]:
        """Add the number of the partition to errors about its rows."""
        try:
            yield
        except (ValueError, TypeError) as error:
            raise type(error)(f"partition {self.partition}: {error}") from error


@dataclass(frozen=True, eq=False)
class FitSketch:
    """What one pass over the rows of a fit learns; ``+`` joins parts.

    Attributes
    ----------
    rows
        Number of rows with a positive weight.
    weight
        Sum of their weights.
    missing
        Missing values of target and attributes.
    kinds
        For each column the kinds that it has, each with a partition that shows it.
    levels
        For each column of text, and for the target, the different values; None if they are many.
    sample
        The rows with the smallest keys.
    identities, keys
        Theirs.
    most
        Rows of the sample, at most.
    """

    rows: int
    weight: float
    missing: dict[str, int]
    kinds: dict[str, dict[str, int]]
    levels: dict[str, frozenset[Any] | None]
    sample: pd.DataFrame
    identities: Keys
    keys: Keys
    most: int

    def __add__(self, other: FitSketch) -> FitSketch:
        keys = np.concatenate([self.keys, other.keys])
        first = np.argsort(keys, kind="stable")[: self.most]
        return FitSketch(
            rows=self.rows + other.rows,
            weight=self.weight + other.weight,
            missing={name: n + other.missing[name] for name, n in self.missing.items()},
            kinds={name: other.kinds[name] | own for name, own in self.kinds.items()},
            levels={
                name: _joined_levels(
                    self.levels.get(name, frozenset()), other.levels.get(name, frozenset())
                )
                for name in {*self.levels, *other.levels}
            },
            sample=pd.concat([self.sample, other.sample]).iloc[first].reset_index(drop=True),
            identities=np.concatenate([self.identities, other.identities])[first],
            keys=keys[first],
            most=self.most,
        )

    def check(self, columns: FitColumns) -> None:
        """Raise if rows cannot be fitted."""
        if self.missing[columns.target]:
            raise ValueError(
                f"the target {columns.target!r} is missing in {self.missing[columns.target]:,} of"
                f" {self.rows:,} rows; drop these rows, frame.dropna(subset=[{columns.target!r}])."
            )
        for name, kinds in self.kinds.items():
            if len(kinds) > 1 and not kinds.keys() <= MIXED_KINDS:
                shown = " and ".join(f"{kind} in partition {at}" for kind, at in kinds.items())
                raise TypeError(
                    f"column {name!r} has no common type: {shown}. Convert it to one, such as"
                    f" frame.astype({{{name!r}: str}})."
                )

    def known_schema(self, schema: Schema) -> Schema:
        """Return a schema that was learned on the sample, with the levels of all rows."""
        columns = []
        for column in schema.columns:
            levels = self.levels.get(column.name)
            if column.kind == "text" and levels:
                texts = {level_text(plain_level(level)) for level in levels}
                column = replace(column, levels=tuple(sorted(texts)))
            columns.append(column)
        return replace(schema, columns=tuple(columns))


def _joined_levels(
    first: frozenset[Any] | None, second: frozenset[Any] | None
) -> frozenset[Any] | None:
    if first is None or second is None:
        return None
    both = first | second
    return both if len(both) <= MOST_COUNTED_LEVELS else None


def sketch_part(part: pd.DataFrame, place: Place, shared: tuple[FitColumns, int, int]) -> FitSketch:
    """Return the sketch of one partition of a frame, of which so many rows are sampled at most of
    so many in all.
    """
    columns, most, total = shared
    with place.named_in_errors():
        part, identities = columns.usable_rows(part, place)
        weights = columns.row_weights(part)
    keys = columns.sample_keys(identities)
    candidates = np.arange(len(part))
    share = CANDIDATE_SHARE * most / max(total, 1)
    if share < 1 and columns.groups is None:
        candidates = np.flatnonzero(keys < np.uint64(int(share * 2**64)))
    first = candidates[np.argsort(keys[candidates], kind="stable")[:most]]
    counted = [*columns.features, *([columns.target] if columns.classifies else [])]
    kinds: dict[str, dict[str, int]] = {}
    levels: dict[str, frozenset[Any] | None] = {}
    for name in dict.fromkeys([*counted, columns.target, *columns.sensitive]):
        filled = part[name].dropna()
        kind = column_kind(filled) if len(filled) else None
        kinds[name] = {} if kind is None else {kind: place.partition}
        if name in counted and (kind == "category" or name == columns.target):
            values = filled.unique()
            levels[name] = frozenset(values) if len(values) <= MOST_COUNTED_LEVELS else None
    return FitSketch(
        rows=len(part),
        weight=float(len(part) if weights is None else weights.sum()),
        missing={
            name: int(part[name].isna().sum()) for name in (columns.target, *columns.sensitive)
        },
        kinds=kinds,
        levels=levels,
        sample=part.iloc[first].reset_index(drop=True),
        identities=identities[first],
        keys=keys[first],
        most=most,
    )


@dataclass(frozen=True, eq=False)
class BlockPlan:
    """The plan that turns rows of a frame into rows of a fit: the columns, an estimator that knows
    their types, and the number of folds.
    """

    columns: FitColumns
    model: Any
    n_folds: int

    def block(self, part: pd.DataFrame, identities: Keys) -> LabelledRows:
        """Return usable rows as numbers, without their table."""
        columns = self.columns
        model = self.model
        s = np.column_stack([numbers(part[name], f"column {name!r}") for name in columns.sensitive])
        strata = None
        if model.strata_ is not None:
            strata = model.strata_.codes(part[[*columns.controls]])
        codes = model._coded(part[[*columns.features]], s, strata)
        if model.folds_ is not None:
            fold = model.folds_(codes)
        else:
            fold = columns.folds(identities, self.n_folds)
        if columns.classifies:
            y = pd.Index(model.classes_).get_indexer(part[columns.target]).astype(np.float64)
            labels = model.classes_[y.astype(np.int64)]
        else:
            y = numbers(part[columns.target], f"column {columns.target!r}")
            labels = y
        return LabelledRows(
            X=None,
            codes=codes,
            s=s,
            names=columns.sensitive,
            weights=columns.row_weights(part),
            groups=None if columns.groups is None else identities,
            fold=fold,
            seed=model.random_seed_,
            y=y,
            labels=labels,
            numeric=not columns.classifies,
            strata=strata,
            n_strata=1 if strata is None else model.strata_.other + 1,
        )


def block_of_part(part: pd.DataFrame, place: Place, plan: BlockPlan) -> LabelledRows:
    """Return the rows of one partition."""
    with place.named_in_errors():
        return plan.block(*plan.columns.usable_rows(part, place))


def with_codes(
    frame: Any, target: str, known: pd.Series[Any], codes: np.ndarray, positive: object
) -> Any:
    """Return a Dask data frame whose target has codes in place of labels, as some known ones have
    them; of two classes, `positive` has 1 and all others 0.
    """
    table = dict(zip(map(level_text, known), codes.tolist()))
    types = frame._meta.assign(**{target: np.zeros(0, dtype=np.int64)})
    return frame.map_partitions(_coded, target, table, positive is not None, meta=types)


def _coded(part: pd.DataFrame, target: str, table: dict[str, int], positive: bool) -> pd.DataFrame:
    labels = part[target].map(level_text)
    codes = labels.map(table)
    if positive:
        codes = codes.fillna(0)  # of labels other than the positive one
    if codes.isna().any():
        raise ValueError(
            f"{target!r} is {labels[codes.isna()].iloc[0]!r} in some row, a class that no row of"
            " the report has. Merge rare classes, or pass --positive."
        )
    return part.assign(**{target: codes.astype(np.int64)})
