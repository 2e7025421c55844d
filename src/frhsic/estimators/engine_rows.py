"""The rows on which the engine is fitted: sums over rows for the additive part, and trees."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import lightgbm
import numpy as np

from frhsic import _progress
from frhsic.estimators.additive import GRAM_ROWS, Design
from frhsic.estimators.boosters import (
    STRIDE,
    held_out_margins,
    leaf_count,
    step_length,
    table_settings,
)
from frhsic.estimators.responses import FitTarget, Response, TargetColumn
from frhsic.splits import subsample

# Computes, from rows of the design and their values, sums that are added over blocks of rows.
RowStep = Callable[[Design, np.ndarray], Any]


class Boosting(NamedTuple):
    """Boosters of one column, one for each fold. Iterating over `margins` trains the boosters, and
    yields the margins of the held-out rows, (n, outputs), after every few trees.
    """

    boosters: list[lightgbm.Booster]
    margins: Iterator[np.ndarray]


@dataclass(frozen=True, eq=False)
class EngineRows(ABC):
    """The rows that are used to choose directions, rounds and shares, in the forms that the
    additive part and LightGBM need. Subclasses compute whatever depends on all rows: the sums for
    the additive part, and the trees.
    """

    design: Design
    data: lightgbm.Dataset
    settings: dict[str, Any]
    seed: int

    @property
    @abstractmethod
    def count(self) -> int:
        """Number of rows of the fit."""

    @abstractmethod
    def known(self, response: Response) -> np.ndarray:
        """Return rows of the design for which the response is known, as many as are needed to
        compute means.
        """

    @abstractmethod
    def sums(self, target: FitTarget, response: Response, step: RowStep) -> Any:
        """Return the sums that `step` computes over all rows for which the target is known."""

    @abstractmethod
    def boostings(self, columns: Sequence[TargetColumn]) -> Iterator[Boosting]:
        """Yield the boosters of each column. The caller trains these boosters before requesting
        those of the next column.
        """

    def tell(self, done: int, total: int) -> None:
        """Report how many regressions have been fitted."""
        _progress.tell(done, total, "regressions")

    def booster_settings(
        self, number: int, column: TargetColumn, trained: Sequence[int]
    ) -> list[dict[str, Any]]:
        """Return the LightGBM settings for one column, given the number of training rows of each
        fold.
        """
        seeds = np.random.SeedSequence([self.seed, number]).generate_state(len(trained))
        shared = self.settings | {
            "learning_rate": step_length(self.count),
            "objective": column.objective,
            "num_class": column.outputs,
        }
        return [
            shared | {"num_leaves": leaf_count(rows), "seed": int(seed % 2**31)}
            for rows, seed in zip(trained, seeds)
        ]

    def sample(self, known: np.ndarray, most: int) -> np.ndarray:
        """Return the known rows, or a sample of `most` rows if there are more."""
        rows = np.flatnonzero(known)
        chosen = subsample(len(rows), most, np.random.default_rng(self.seed))
        return np.asarray(rows[chosen])


def learn_table(
    x: np.ndarray, categorical: Sequence[int], fold: np.ndarray, weights: np.ndarray, threads: int
) -> tuple[Design, lightgbm.Dataset, dict[str, Any]]:
    """Return the rows of a table, (n, d), in the forms that the additive part and LightGBM need,
    and the LightGBM settings.
    """
    settings = table_settings(x.shape[1]) | {"num_threads": threads}
    data = lightgbm.Dataset(
        x, np.zeros(len(x)), params=settings, categorical_feature=list(categorical)
    ).construct()
    return Design.fit(x, categorical, fold, weights), data, settings


@dataclass(frozen=True, eq=False)
class LocalRows(EngineRows):
    """All rows of a fit in memory, grouped by fold."""

    held_out: list[lightgbm.Dataset]

    @classmethod
    def of(
        cls,
        x: np.ndarray,
        categorical: Sequence[int],
        fold: np.ndarray,
        weights: np.ndarray,
        seed: int,
        threads: int,
    ) -> LocalRows:
        table = learn_table(x, categorical, fold, weights, threads)
        parts: list[Any] = [np.flatnonzero(fold == j) for j in range(fold.max() + 1)]
        held_out = [table[1].subset(part).construct() for part in parts]
        return cls(*table, seed, held_out)

    @property
    def count(self) -> int:
        return len(self.design.fold)

    def known(self, response: Response) -> np.ndarray:
        return self.sample(response.rows, GRAM_ROWS)

    def sums(self, target: FitTarget, response: Response, step: RowStep) -> Any:
        some = self.known(response)
        return step(self.design.at(some), response.values[some])

    def boostings(self, columns: Sequence[TargetColumn]) -> Iterator[Boosting]:
        for number, column in enumerate(columns):
            boosters = self._boosters(column, number)
            yield Boosting(boosters, self._margins(boosters, column))

    def _boosters(self, column: TargetColumn, number: int) -> list[lightgbm.Booster]:
        """Return a new booster for each fold."""
        outside = self.design.fold != np.arange(self.design.folds)[:, None]
        trained: list[Any] = [np.flatnonzero(own) for own in outside & column.response.rows]
        settings = self.booster_settings(number, column, [*map(len, trained)])
        boosters = []
        for train, own, held_out in zip(trained, settings, self.held_out):
            data = self.data.subset(train).construct()
            data.set_label(column.values[train])
            data.set_weight(self.design.weights[train])
            booster = lightgbm.Booster(own, data)
            booster.add_valid(held_out, "held out")
            boosters.append(booster)
        return boosters

    def _margins(
        self, boosters: Sequence[lightgbm.Booster], column: TargetColumn
    ) -> Iterator[np.ndarray]:
        """Train the boosters, and yield the margins of the held-out rows after every few trees."""
        fold = self.design.fold
        margins = np.empty((len(fold), column.outputs))
        while True:
            for j, booster in enumerate(boosters):
                for _ in range(STRIDE):
                    booster.update()
                margins[fold == j] = held_out_margins(booster, column)
            yield margins.copy()
